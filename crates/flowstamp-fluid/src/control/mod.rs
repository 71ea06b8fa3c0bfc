//! Control theory of the papers' laws: their models as delay differential equations, and their loops in the frequency domain.
//!
//! - [`delay`]: the solver.
//! - [`frequency`]: Bode, Nyquist, margins and characteristic roots of a loop with a delay, exactly.
//! - [`models`]: XCP, RCP, VCP, and a router that takes the capacity for more than it is.
//! - [`region`]: where models settle, over two of their parameters.
//! - [`unscaled`]: RCP's equations in their own units.
//! - [`windows`]: VCP's model with each flow's window, over several links.

pub mod delay;
pub mod frequency;
pub mod models;
pub mod region;
pub mod unscaled;
pub mod windows;

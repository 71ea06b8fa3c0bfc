//! Control theory of the papers' laws: their models as delay differential equations, and their loops in the frequency domain.
//!
//! - [`blind`]: XCP-b on a link of unknown capacity: the router itself, with a fluid for packets.
//! - [`delay`]: the solver.
//! - [`frequency`]: Bode, Nyquist, margins and characteristic roots of a loop with a delay, exactly.
//! - [`models`]: one link and one RTT: RCP, what XCP and RCP are near their equilibrium, a router that takes the capacity for more than it is, VCP.
//! - [`network`]: XCP, RCP and VCP on several links, with flows of several RTTs.
//! - [`proof`]: proofs that the switched system is stable, for any RTT.
//! - [`region`]: where models settle, over two of their parameters.
//! - [`routes`]: what a user asks of [`network`]: capacities, and who passes which links.
//! - [`settle`]: what a user asks for: laws by their names, from a disturbance, with one RTT or several.
//! - [`switched`]: the border of the switched system.

pub mod blind;
pub mod delay;
pub mod frequency;
pub mod models;
pub mod network;
pub mod proof;
pub mod region;
mod roots;
pub mod routes;
pub mod settle;
pub mod switched;

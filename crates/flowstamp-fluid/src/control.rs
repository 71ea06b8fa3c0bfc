//! Control theory of the papers' laws: their models as delay differential equations, and their loops in the frequency domain.
//!
//! - [`blind`]: XCP-b on a link of unknown capacity: the router law itself, fed with fluid instead of packets.
//! - [`delay`]: the solver of delay differential equations.
//! - [`frequency`]: Bode, Nyquist, margins and characteristic roots of a loop with a delay, exactly.
//! - [`models`]: one link and one RTT: RCP, the linear form of XCP and RCP near equilibrium, a router that overestimates the
//!   capacity, VCP.
//! - [`network`], [`network_vcp`]: XCP, RCP and VCP on several links, with flows of several RTTs.
//! - [`proof`]: proofs that the switched system is stable, for any RTT.
//! - [`region`]: stability regions of models over two of their parameters.
//! - [`routes`]: checks a user's links and groups of flows and solves them with [`network`].
//! - [`settle`]: solves a law that the user names after a disturbance, with one RTT or several.
//! - [`switched`]: the stability border of the switched system.

pub mod blind;
pub mod delay;
pub mod frequency;
pub mod models;
pub mod network;
pub mod network_vcp;
pub mod proof;
pub mod region;
mod roots;
pub mod routes;
pub mod settle;
pub mod switched;

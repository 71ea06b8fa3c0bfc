//! Packet-level simulator for explicit-feedback congestion control.
//!
//! [`load`] reads a scenario, [`Simulation::new`] lays out its network, [`Simulation::run`] runs it.

pub mod results;
pub mod scenario;

//! Packet-level simulator for explicit-feedback congestion control.
//!
//! [`load`] reads a scenario, [`Simulation::new`] lays out its network, and [`Simulation::run`] runs it. [`run_many`]
//! runs several on all cores. A run is a pure function of scenario and seed: it gives the same bytes on any machine.
//!
//! | feature | without it | default |
//! |---|---|---|
//! | `clock` | `wall_s`, `cpu_s` and `packet_hops_per_s` are 0 | yes |
//! | `full` | keys that the browser lab does not offer are refused by name; no TOML | yes |
//! | `parallel` | [`run_many`] runs one scenario after the other, on the calling thread | yes |
//! | `tables` | no `output` module; lists of flows are CSV, not Parquet | no |
//!
//! Without default features it needs no operating system and builds for `wasm32-unknown-unknown`.

mod active;
mod air;
mod application;
mod bulk;
#[cfg(feature = "full")]
mod by_links;
mod capture;
mod change;
mod clock;
mod delays;
pub mod digest;
pub mod events;
mod fabric;
mod flow_list;
mod host;
pub mod link;
mod load;
mod many;
pub mod medium;
pub mod network;
#[cfg(feature = "tables")]
pub mod output;
mod packet;
#[cfg(feature = "parallel")]
mod parts;
pub mod plan;
mod port;
mod prefetch;
mod probe;
pub mod release;
pub mod results;
mod run;
mod size_bins;
mod summary;
mod workload;

#[cfg(feature = "full")]
pub use by_links::{ByLinks, Found, PASSES, run_by_links};
pub use flowstamp_laws::random;
pub use flowstamp_scenario as scenario;
pub use load::{load, load_within};
pub use many::{run_each_within, run_many, run_many_within};
pub use plan::Needs;
#[cfg(feature = "parallel")]
pub use run::{Balance, Divided};
pub use run::{Crossing, LinkView, SenderView, Simulation, StepError, Stopped};
pub use scenario::{FilesFrom, Format, Loaded, ScenarioError};

use flowstamp_laws::units::Time;

/// Without the feature `full`, no cell has A-MPDUs and no link has flow control. The compiler leaves out their code.
const FULL: bool = cfg!(feature = "full");

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time so far.
    pub simulated: Time,
    /// Simulated time of the whole run.
    pub duration: Time,
    /// Number of events handled so far.
    pub events: u64,
}

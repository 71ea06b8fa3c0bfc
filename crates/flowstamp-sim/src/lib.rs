//! Packet-level simulator for explicit-feedback congestion control.
//!
//! [`load`] reads a scenario, [`Simulation::new`] lays out its network, [`Simulation::run`] runs it; [`run_many`] runs
//! several on all cores. A run is a pure function of scenario and seed: the same bytes on any machine.
//!
//! | feature | without it | default |
//! |---|---|---|
//! | `clock` | `wall_s`, `cpu_s` and `packet_hops_per_s` of a summary are 0 | yes |
//! | `parallel` | [`run_many`] runs one after the other, on the calling thread | yes |
//! | `tables` | there is no `output` | no |
//!
//! Without default features it needs no operating system and builds for `wasm32-unknown-unknown`.

mod active;
mod air;
mod capture;
mod change;
mod clock;
pub mod digest;
pub mod events;
mod fabric;
mod host;
pub mod link;
mod load;
pub mod medium;
pub mod network;
#[cfg(feature = "tables")]
pub mod output;
mod packet;
mod port;
mod prefetch;
mod probe;
pub mod random;
pub mod results;
mod run;
mod summary;
mod workload;

pub use flowstamp_scenario as scenario;
pub use load::load;
pub use run::{Simulation, StepError, Stopped};
pub use scenario::{FilesFrom, Format, Loaded, ScenarioError};

use flowstamp_laws::units::Time;
use std::ops::ControlFlow;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time so far.
    pub simulated: Time,
    /// Simulated time in all.
    pub duration: Time,
    /// Events handled so far.
    pub events: u64,
}

/// Runs scenarios in parallel, each begun in its turn as soon as a thread is free; results in their order. `tick` gets the
/// scenario's number and may stop all. `threads` is how many run at a time, one per core by default; without the feature
/// `parallel` one does.
///
/// # Errors
/// [`Stopped`] if `tick` said so.
///
/// # Panics
/// Never: a scenario that [`load`] let through can be laid out.
pub fn run_many(
    loaded: &[Loaded],
    seed: Option<u64>,
    threads: Option<usize>,
    tick: &(dyn Fn(usize, Progress) -> ControlFlow<()> + Sync),
) -> Result<Vec<results::Results>, Stopped> {
    let one =
        |(i, l): (usize, &Loaded)| Simulation::new(l, seed).map_err(|_| Stopped)?.run(&mut |p| tick(i, p));
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        // One at a time and in order: who puts the longest first must not find several of them in one thread's share.
        let all = || {
            let each = loaded.iter().enumerate().par_bridge().map(|(i, l)| Ok((i, one((i, l))?)));
            let mut done = each.collect::<Result<Vec<_>, Stopped>>()?;
            done.sort_unstable_by_key(|(i, _)| *i);
            Ok(done.into_iter().map(|(_, results)| results).collect())
        };
        match rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build() {
            Ok(pool) => pool.install(all),
            // Without threads of its own the work is still done, on this one.
            Err(_) => all(),
        }
    }
    #[cfg(not(feature = "parallel"))]
    {
        let _ = threads;
        loaded.iter().enumerate().map(one).collect()
    }
}

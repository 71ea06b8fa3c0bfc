//! Several runs in parallel.

use crate::plan::Needs;
use crate::results::Results;
use crate::{Loaded, Progress, Simulation, Stopped};
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError};

/// Runs scenarios in parallel and returns the results in their order. Each starts in its turn as soon as a thread is
/// free. `tick` gets the scenario's number and may stop all runs. `threads` is the number of runs at a time, by default
/// one per core; without the feature `parallel` it is one.
///
/// # Errors
/// [`Stopped`] if `tick` said so.
///
/// # Panics
/// Never: the network of a scenario from [`crate::load`] can be laid out.
pub fn run_many(
    loaded: &[Loaded],
    seed: Option<u64>,
    threads: Option<usize>,
    tick: &(dyn Fn(usize, Progress) -> ControlFlow<()> + Sync),
) -> Result<Vec<Results>, Stopped> {
    let runs = loaded.iter().map(|loaded| (loaded, Needs::default()));
    run_all(runs, &Room::default(), seed, threads, tick, &|_, results| results)
}

/// Like [`run_many`], with `memory` bytes shared by the runs. A run starts when the memory that it may need is free, or
/// when no other is running. [`Needs::together`] tells whether that suffices in the worst case.
///
/// # Errors
/// As [`run_many`].
pub fn run_many_within(
    loaded: &[(Loaded, Needs)],
    memory: Option<u64>,
    seed: Option<u64>,
    threads: Option<usize>,
    tick: &(dyn Fn(usize, Progress) -> ControlFlow<()> + Sync),
) -> Result<Vec<Results>, Stopped> {
    let room = Room { memory, ..Room::default() };
    let runs = loaded.iter().map(|(loaded, needs)| (loaded, *needs));
    run_all(runs, &room, seed, threads, tick, &|_, results| results)
}

/// Like [`run_many_within`], but passes each run's results with the scenario's number to `done` as the run ends, in any
/// order. Results that the caller does not keep take no memory from other runs.
///
/// # Errors
/// As [`run_many`]. Results of runs that had ended were passed on.
pub fn run_each_within(
    loaded: &[(Loaded, Needs)],
    memory: Option<u64>,
    threads: Option<usize>,
    tick: &(dyn Fn(usize, Progress) -> ControlFlow<()> + Sync),
    done: &(dyn Fn(usize, Results) + Sync),
) -> Result<(), Stopped> {
    let room = Room { memory, ..Room::default() };
    let runs = loaded.iter().map(|(loaded, needs)| (loaded, Needs { kept: 0, ..*needs }));
    run_all(runs, &room, None, threads, tick, done).map(|_| ())
}

fn run_all<'a, T: Send>(
    runs: impl Iterator<Item = (&'a Loaded, Needs)> + Send,
    room: &Room,
    seed: Option<u64>,
    threads: Option<usize>,
    tick: &(dyn Fn(usize, Progress) -> ControlFlow<()> + Sync),
    done: &(dyn Fn(usize, Results) -> T + Sync),
) -> Result<Vec<T>, Stopped> {
    let one = |(i, (loaded, needs)): (usize, (&Loaded, Needs))| {
        let _entered = room.enter(needs);
        let results = Simulation::new(loaded, seed).map_err(|_| Stopped)?.run(&mut |p| tick(i, p))?;
        Ok(done(i, results))
    };
    on_threads(runs, threads, one)
}

/// Calls `one` for each item, with its number, on several threads, and returns what it returns in the order of the
/// items.
pub fn on_threads<I: Send, T: Send>(
    items: impl Iterator<Item = I> + Send,
    threads: Option<usize>,
    one: impl Fn((usize, I)) -> Result<T, Stopped> + Sync + Send,
) -> Result<Vec<T>, Stopped> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        // Threads take one run at a time and in order. A caller that puts the longest first must not find several of
        // them in one thread's share.
        let all = || {
            let each = items.enumerate().par_bridge().map(|(i, item)| Ok((i, one((i, item))?)));
            let mut done = each.collect::<Result<Vec<_>, Stopped>>()?;
            done.sort_unstable_by_key(|(i, _)| *i);
            Ok(done.into_iter().map(|(_, results)| results).collect())
        };
        match rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build() {
            Ok(pool) => pool.install(all),
            // If no threads can be created, this thread does the work.
            Err(_) => all(),
        }
    }
    #[cfg(not(feature = "parallel"))]
    {
        let _ = threads;
        items.enumerate().map(one).collect()
    }
}

/// Memory shared by runs.
#[derive(Default)]
struct Room {
    /// Bytes; `None` for no limit.
    memory: Option<u64>,
    taken: Mutex<Taken>,
    left: Condvar,
}

#[derive(Default)]
struct Taken {
    bytes: u64,
    runs: u32,
}

impl Room {
    /// Waits until there is enough memory.
    fn enter(&self, needs: Needs) -> Entered<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.runs > 0 && self.memory.is_some_and(|all| taken.bytes.saturating_add(needs.bytes) > all) {
            taken = self.left.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.bytes = taken.bytes.saturating_add(needs.bytes);
        taken.runs += 1;
        Entered { room: self, needs }
    }
}

/// A run in progress. When it is dropped, only the memory of its results stays taken.
struct Entered<'a> {
    room: &'a Room,
    needs: Needs,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.bytes = taken.bytes.saturating_sub(self.needs.bytes.saturating_sub(self.needs.kept));
        taken.runs -= 1;
        self.room.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    /// Each run's results are passed on once, with its number, and equal those of `run_many`. If `tick` stops the runs,
    /// results of runs that had ended are passed on.
    #[test]
    fn runs_are_handed_over_as_they_end() {
        let text = |count: u32| {
            format!(
                "duration = \"200ms\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"20ms\"\n[[flows]]\nname = \"x\"\nlaw = \"sack\"\ncount = {count}\n"
            )
        };
        let folder = std::path::Path::new(".");
        let load = |count| {
            crate::load_within(&text(count), crate::Format::Toml, "test", &[], folder, None)
                .expect("a scenario")
        };
        let loaded: Vec<_> = (1..6).map(load).collect();
        let go_on = |_, _| ControlFlow::Continue(());
        let known = run_many_within(&loaded, None, None, None, &go_on).expect("nobody stops them");
        let seen = Mutex::new(vec![None; loaded.len()]);
        let done = |i: usize, results: Results| {
            let before = seen.lock().expect("nobody panicked")[i].replace(results.digest());
            assert!(before.is_none());
        };
        run_each_within(&loaded, Some(1), Some(2), &go_on, &done).expect("nobody stops them");
        let seen = seen.into_inner().expect("nobody panicked");
        assert_eq!(seen, known.iter().map(|results| Some(results.digest())).collect::<Vec<_>>());

        let ended = Mutex::new(0);
        let stop = |i, _| if i == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let stopped = run_each_within(&loaded, None, Some(1), &stop, &|_, _| {
            *ended.lock().expect("nobody panicked") += 1;
        });
        assert_eq!(stopped, Err(Stopped));
        assert_eq!(ended.into_inner().expect("nobody panicked"), 2);
    }

    /// For any number of concurrent runs, the memory taken never exceeds the limit, except by a run that is alone, and
    /// all have their turn.
    #[test]
    fn runs_share_what_there_is() {
        let room = Room { memory: Some(100), ..Room::default() };
        let (now, most, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for bytes in [60, 50, 40, 30, 70, 10, 20, 45] {
                let (room, now, most, done) = (&room, &now, &most, &done);
                scope.spawn(move || {
                    let _entered = room.enter(Needs { bytes, kept: 0 });
                    most.fetch_max(now.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
                    thread::yield_now();
                    now.fetch_sub(bytes, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert!((70..=100).contains(&most.into_inner()));
        assert_eq!(done.into_inner(), 8);
        // Results stay in memory; a run without room beside them runs alone.
        drop(room.enter(Needs { bytes: 90, kept: 80 }));
        drop(room.enter(Needs { bytes: 90, kept: 0 }));
        let taken = room.taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!((taken.bytes, taken.runs), (80, 0));
        assert_eq!(Needs::together(&[Needs { bytes: 90, kept: 80 }, Needs { bytes: 30, kept: 5 }]), 110);
    }
}

//! A bottleneck whose rate changes during the run: an `htb` root with one class and a FIFO, whose rate a
//! thread changes through rtnetlink. Packets queue in the kernel, and the root counts them.
//!
//! It uses `htb` because `tbf` fills its bucket at each change.
//!
//! Steps take effect at their exact times. A trace is followed in windows of 10 ms: in each window, the rate
//! is what the trace can carry in it. In a window without an opportunity, the rate is such that a packet that
//! starts now ends with the window of the next opportunity. A packet keeps the rate at which it started.

use super::namespaces::{Id, Place};
use crate::path::{Epoch, real_time};
use crate::router::htb;
use anyhow::Context;
use flowstamp_laws::medium::{Capacity, OPPORTUNITY_BYTES};
use flowstamp_laws::units::{Rate, Time};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The window in which a trace's rate is constant.
const WINDOW: Time = Time::from_millis(10);
/// Maximum sleep, so that a stop is noticed.
const MAX_SLEEP: Duration = Duration::from_millis(20);

/// The rate at an instant, and when it may change next.
fn rate_at(capacity: &Capacity, now: Time) -> (Rate, Option<Time>) {
    let Capacity::Trace(..) = capacity else { return capacity.known_at(now) };
    let next = now + WINDOW;
    let mut end = next;
    // Terminates, because a trace has an opportunity in each period.
    while capacity.bytes_between(now, end) == 0.0 {
        end += WINDOW;
    }
    let bytes = if end == next { capacity.bytes_between(now, end) } else { f64::from(OPPORTUNITY_BYTES) };
    (Rate::from_bytes_per_sec(bytes / (end - now).as_secs_f64()), Some(next))
}

/// Upper limit on the 98th percentile of changes' lateness in a valid run.
pub const LATEST: Time = Time::from_millis(5);

/// Number of changes, and the 98th percentile and maximum of their lateness in seconds.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Changes {
    pub count: usize,
    pub late_p98_s: f64,
    pub late_max_s: f64,
}

/// The thread that changes the rate, until stopped.
pub struct Shaper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<Changes>>>,
}

/// Makes the bottleneck with its first rate.
pub fn make(id: &Id, capacity: &Capacity, buffer_bytes: u64) -> anyhow::Result<()> {
    let (namespace, capacity) = (open(id)?, capacity.clone());
    let made = move || -> std::io::Result<()> {
        let (socket, index) = htb::socket_in(&namespace, "out")?;
        htb::make_one(&socket, index, rate_at(&capacity, Time::ZERO).0, buffer_bytes)
    };
    // Uses a separate thread, because it stays in that namespace.
    std::thread::scope(|scope| scope.spawn(made).join().expect("it does not panic"))
        .context("the bottleneck's htb")
}

fn open(id: &Id) -> anyhow::Result<File> {
    let file = id.file(Place::Router);
    File::open(&file).with_context(|| format!("{}", file.display()))
}

impl Shaper {
    pub fn start(id: &Id, capacity: Capacity, epoch: Epoch) -> anyhow::Result<Self> {
        let namespace = open(id)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("shaper".to_owned()).spawn(move || {
            let (socket, index) = htb::socket_in(&namespace, "out")?;
            real_time();
            let mut late = Vec::new();
            let mut due = rate_at(&capacity, Time::ZERO).1;
            while !stopped.load(Ordering::Relaxed) {
                let now = epoch.now();
                let Some(at) = due else {
                    std::thread::sleep(MAX_SLEEP);
                    continue;
                };
                if now < at {
                    let wait = Duration::from_nanos(at.saturating_sub(now).as_ps() / 1000);
                    std::thread::sleep(wait.min(MAX_SLEEP));
                    continue;
                }
                // Does not catch up on missed changes: the trace follows the clock.
                let (rate, next) = rate_at(&capacity, at);
                htb::change_one(&socket, index, rate)?;
                late.push(epoch.now().saturating_sub(at).as_secs_f64());
                due = next;
            }
            late.sort_by(f64::total_cmp);
            let rank = |share: f64| (share * late.len() as f64).ceil().max(1.0) as usize - 1;
            let of = |share| late.get(rank(share)).copied().unwrap_or(0.0);
            Ok(Changes { count: late.len(), late_p98_s: of(0.98), late_max_s: of(1.0) })
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops the thread and returns the lateness of its changes.
    pub fn finish(mut self) -> anyhow::Result<Changes> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it runs")?;
        thread
            .join()
            .map_err(|_| anyhow::anyhow!("the shaper's thread has ended"))?
            .context("the shaper's rate")
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_laws::medium::Trace;

    #[test]
    fn steps_are_followed_to_the_instant() {
        let (a, b) = (Rate::from_mbps(20.0), Rate::from_mbps(5.0));
        let capacity = Capacity::Steps(vec![(Time::ZERO, a), (Time::from_millis(1234), b)]);
        assert_eq!(rate_at(&capacity, Time::ZERO), (a, Some(Time::from_millis(1234))));
        assert_eq!(rate_at(&capacity, Time::from_millis(1234)), (b, None));
    }

    /// A packet of 1500 bytes at 5 and at 7 ms of the first window; then one at 95 ms, and the trace's end at 200 ms.
    #[test]
    fn a_traces_windows_carry_what_it_carries_and_gaps_end_at_its_next_opportunity() {
        let trace = Trace::new(&[5, 7, 95, 200]);
        let capacity = Capacity::Trace(Box::new(trace), Time::from_millis(100));
        let at = |ms| {
            let (rate, next) = rate_at(&capacity, Time::from_millis(ms));
            assert_eq!(next, Some(Time::from_millis(ms + 10)));
            rate.bps().round()
        };
        // 3000 bytes in 10 ms; then 1500 bytes until the end of the window that has the next one.
        assert_eq!(at(0), 2.4e6);
        assert_eq!(at(10), (12_000.0f64 / 0.09).round());
        assert_eq!(at(80), (12_000.0f64 / 0.02).round());
        assert_eq!(at(90), 1.2e6);
    }
}

//! Samples the queue of a kernel qdisc through rtnetlink, to measure a BPF router's link.

use super::namespaces::{Id, Place};
use crate::netlink::{Object, Socket, TC_H_ROOT, TCA_STATS2, attribute, u32_at};
use crate::path::{Epoch, real_time};
use crate::router::htb::socket_in;
use anyhow::Context;
use flowstamp_laws::units::Time;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval between samples.
const INTERVAL: Duration = Duration::from_millis(5);

/// One sample of a qdisc's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    pub time: Time,
    pub backlog_bytes: u32,
    /// Packets dropped so far.
    pub drops: u32,
    /// Bytes sent so far.
    pub bytes: u64,
    /// Packets sent so far.
    pub packets: u32,
}

/// A thread that samples the root qdisc of an interface until stopped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Counted>>>,
}

impl Watch {
    /// Starts sampling the root qdisc of an interface in a namespace.
    pub fn start(id: &Id, place: Place, interface: &str, epoch: Epoch) -> anyhow::Result<Self> {
        let file = id.file(place);
        let namespace = File::open(&file).with_context(|| format!("{}", file.display()))?;
        let interface = interface.to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("backlog".to_owned()).spawn(move || {
            let mut all = Vec::new();
            let Ok((socket, index)) = socket_in(&namespace, &interface) else { return all };
            // Each request holds the kernel's lock on network settings (RTNL), and rate changes must not wait
            // long for it.
            real_time();
            while !stopped.load(Ordering::Relaxed) {
                let time = epoch.now();
                if let Ok(Some(counted)) = ask(&socket, index) {
                    all.push(Counted { time, ..counted });
                }
                std::thread::sleep(INTERVAL);
            }
            all
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops and returns the samples.
    pub fn finish(mut self) -> Vec<Counted> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// linux/gen_stats.h.
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

fn counted(root: &Object<'_>) -> Option<Counted> {
    let stats = attribute(root.attributes, TCA_STATS2)?;
    let basic = attribute(stats, TCA_STATS_BASIC)?;
    let queue = attribute(stats, TCA_STATS_QUEUE)?;
    Some(Counted {
        time: Time::ZERO,
        backlog_bytes: u32_at(queue, 4)?,
        drops: u32_at(queue, 8)?,
        bytes: u64::from_ne_bytes(basic.get(..8)?.try_into().ok()?),
        packets: u32_at(basic, 8)?,
    })
}

fn ask(socket: &Socket, index: u32) -> io::Result<Option<Counted>> {
    let mut found = None;
    socket.qdiscs(index, |qdisc| {
        if qdisc.parent == TC_H_ROOT {
            found = counted(qdisc);
        }
    })?;
    Ok(found)
}

/// The samples between two instants.
pub struct Window<'a> {
    seen: &'a [Counted],
    before: Counted,
}

impl<'a> Window<'a> {
    /// The samples in `from..to`.
    pub fn of(all: &'a [Counted], from: Time, to: Time) -> Self {
        let start = all.partition_point(|c| c.time < from);
        let end = all.partition_point(|c| c.time < to).max(start);
        let before = if start > 0 { all[start - 1] } else { Counted::default() };
        Self { seen: &all[start..end], before }
    }

    fn last(&self) -> Counted {
        self.seen.last().copied().unwrap_or(self.before)
    }

    /// The last sampled queue, bytes.
    pub fn queue_bytes(&self) -> f64 {
        f64::from(self.last().backlog_bytes)
    }

    /// The mean of the sampled queues, bytes.
    pub fn mean_queue_bytes(&self) -> f64 {
        let sum: f64 = self.seen.iter().map(|c| f64::from(c.backlog_bytes)).sum();
        if self.seen.is_empty() { self.queue_bytes() } else { sum / self.seen.len() as f64 }
    }

    /// The quantile of the sampled queues by nearest rank, bytes.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut queues: Vec<u32> = self.seen.iter().map(|c| c.backlog_bytes).collect();
        queues.sort_unstable();
        let rank = (share * queues.len() as f64).ceil().max(1.0) as usize;
        queues.get(rank - 1).copied().map_or(0.0, f64::from)
    }

    /// Packets dropped in the window.
    pub fn drops(&self) -> u64 {
        u64::from(self.last().drops.wrapping_sub(self.before.drops))
    }

    /// Bytes sent in the window.
    pub fn bytes(&self) -> u64 {
        self.last().bytes.saturating_sub(self.before.bytes)
    }

    /// Packets sent in the window.
    pub fn packets(&self) -> u64 {
        u64::from(self.last().packets.wrapping_sub(self.before.packets))
    }
}

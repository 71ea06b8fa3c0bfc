//! Weights of a link's two classes by the demands of their largest flows, as ABC's routers set them.
//!
//! Goyal et al. 2020, the paper of ABC, on traffic without ABC; the *emulation* is the authors' queue for Mahimahi
//! (`weighted_packet_queue.cc`). Equal average rates ([`super::zombies`]) count a short flow like a long one. A class with
//! many short flows then gets more than its long flows should have. Here each class gets what max-min fairness gives its flows:
//!
//! ```text
//!   demand of a large flow    1.1 times its rate, so that a flow which the link holds back may grow
//!   demand of all others      their rate, together
//!   weight                    w_R = A_R / (A_R + A_T)    A the max-min allocations of a class's flows on the capacity C
//! ```
//!
//! Each class finds its [`LARGEST`] flows by *space saving* (Metwally, Agrawal, El Abbadi 2005): a packet of a flow without an
//! entry takes over the smallest entry, with its count as the error. A flow with more than `1 / LARGEST` of the bytes always
//! has an entry.
//!
//! Deviations (source says / we do / because):
//! 1. The emulation has a table of all flows, and knows from port numbers which ones are short / space saving, as the
//!    paper names it / a router has no such table.
//! 2. The number of large flows could not be checked / [`LARGEST`] in each class / a search for each packet stays short.
//! 3. The emulation forgets with 1/4000 per packet, and sets the weights for each packet / counts keep three quarters per
//!    update, five updates a second by default / it is 0.7 s, some round trips, whatever the packet rate.
//! 4. The emulation's allocations fill what the link has carried / the capacity / both are the same on a full link.
//! 5. The emulation changes a class's weight by at most 20% of what it has / no such bound / demands grow by a tenth only.
//! 6. The emulation takes each short flow for a flow of its own in the max-min division / all others get their rate before the
//!    large flows / a short flow has less than the fair share.
//! 7. The paper names no bounds of the weights / 5% and 95%, and they stay if a class has had no packets at all / the emulation's
//!    bounds. A class that has just begun must get some service.

/// Flows of each class whose rates are measured.
pub const LARGEST: usize = 32;

/// How much more than its rate a large flow demands.
pub const HEADROOM: f64 = 0.1; // the emulation

/// Share of the counts that an update keeps.
const MEMORY: f64 = 0.75; // deviation 3

/// Weights are at least this, and at most 1 minus this.
pub const LEAST_WEIGHT: f64 = 0.05; // the emulation

/// A counter of space saving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// The flow.
    pub flow: u64,
    /// Bytes: never less than the flow's.
    pub bytes: f64,
    /// How much of `bytes` may belong to other flows.
    pub error: f64,
}

/// The large flows of one class, by space saving.
#[derive(Clone, Debug, Default)]
pub struct Largest {
    counters: Vec<Counter>,
    /// Bytes of all flows.
    total: f64,
}

impl Largest {
    /// Counts an arriving packet of `flow`.
    #[inline]
    pub fn on_arrival(&mut self, flow: u64, size: u32) {
        let size = f64::from(size);
        self.total += size;
        if let Some(counter) = self.counters.iter_mut().find(|it| it.flow == flow) {
            counter.bytes += size;
        } else if self.counters.len() < LARGEST {
            self.counters.push(Counter { flow, bytes: size, error: 0.0 });
        } else if let Some(least) = self.counters.iter_mut().min_by(|a, b| a.bytes.total_cmp(&b.bytes)) {
            *least = Counter { flow, bytes: least.bytes + size, error: least.bytes };
        }
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Bytes of the large flows, as far as they are certain, and of all others together.
    #[must_use]
    pub fn bytes(&self) -> (Vec<f64>, f64) {
        let large: Vec<f64> = self.counters.iter().map(|it| it.bytes - it.error).collect();
        let rest = self.total - large.iter().sum::<f64>();
        (large, rest.max(0.0))
    }

    /// Forgets a part of all counts.
    fn forget(&mut self) {
        self.total *= MEMORY;
        for counter in &mut self.counters {
            counter.bytes *= MEMORY;
            counter.error *= MEMORY;
        }
    }
}

/// The most that a flow gets if `capacity` is divided max-min fairly among `demands`: each gets its demand or this level. Infinite
/// where all demands fit.
#[must_use]
pub fn level(demands: &mut [f64], capacity: f64) -> f64 {
    demands.sort_by(f64::total_cmp);
    let mut left = capacity;
    for (n, demand) in demands.iter().enumerate() {
        let equal = left / (demands.len() - n) as f64;
        if *demand > equal {
            return equal.max(0.0);
        }
        left -= demand;
    }
    f64::INFINITY
}

/// Measures the demands of both classes.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    classes: [Largest; super::CLASSES],
    /// Seconds that the counts stand for.
    seconds: f64,
}

impl Demands {
    /// Counts an arriving packet.
    #[inline]
    pub fn on_arrival(&mut self, class: usize, flow: u64, size: u32) {
        self.classes[class].on_arrival(flow, size);
    }

    /// Ends a period of so many seconds. Returns the allocations of both classes in bytes/s.
    pub fn allocate(&mut self, seconds: f64, capacity: f64) -> [f64; super::CLASSES] {
        self.seconds += seconds;
        let rates = self.classes.each_ref().map(|class| {
            let (large, rest) = class.bytes();
            let demands = large.iter().map(|bytes| (1.0 + HEADROOM) * bytes / self.seconds);
            (demands.collect::<Vec<f64>>(), rest / self.seconds)
        });
        let others: f64 = rates.iter().map(|(_, rest)| rest).sum();
        let mut demands: Vec<f64> = rates.iter().flat_map(|(large, _)| large).copied().collect();
        let level = level(&mut demands, (capacity - others).max(0.0));
        self.seconds *= MEMORY;
        self.classes.iter_mut().for_each(Largest::forget);
        rates.map(|(large, rest)| rest + large.iter().map(|demand| demand.min(level)).sum::<f64>())
    }
}

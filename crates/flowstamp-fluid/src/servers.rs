//! Exact event simulations of one server: when the flows of a run would have ended under an ideal discipline.
//!
//! | discipline | serves | structure | time |
//! |---|---|---|---|
//! | FCFS | the flow that came first | running finish time | `O(n)` |
//! | PS | all flows equally | virtual time `dV = C/N dt`; a flow ends when `V` has grown by its size | `O(n log n)` |
//! | SRPT | the flow with the least left (Schrage and Miller 1966) | heap by what is left | `O(n log n)` |
//! | FB (LAS) | the flows with the least received, equally | stack of groups by service received, each a meldable heap by size | `O(n log n)` |
//!
//! Flows arrive whole and are perfectly divisible. The server is never idle while there is work. Times exclude the round-trip
//! time: add it, as [`crate::formulas::RoundTrips`] does. Flows of equal size or equal arrival are served in the order of the input.
//!
//! [`rate_limited`] is the queue of section 3.3 of Dukkipati 2007: flows that send at one rate into a FIFO queue (figures 3.6 to 3.8).
//!
//! Valid for fewer than 2^32 - 1 flows; times to about 10^-12 of the run's length.

use core::cmp::Ordering;
use flowstamp_laws::Rate;
use std::collections::BinaryHeap;

/// Scheduling discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// First come, first served.
    Fcfs,
    /// Processor sharing: all equally.
    Ps,
    /// Shortest remaining processing time first.
    Srpt,
    /// Foreground-background, also called least attained service: those that have received least, equally.
    Fb,
}

impl Discipline {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Fcfs, Self::Ps, Self::Srpt, Self::Fb];
}

/// A flow as it arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Arrival time in seconds: finite, at least 0.
    pub arrival_s: f64,
    /// Size in bytes: finite, above 0.
    pub size_bytes: f64,
}

impl Flow {
    /// Pairs arrival times with sizes.
    #[must_use]
    pub fn all(arrivals_s: &[f64], sizes_bytes: &[f64]) -> Vec<Self> {
        let pairs = arrivals_s.iter().zip(sizes_bytes);
        pairs.map(|(arrival_s, size_bytes)| Self { arrival_s: *arrival_s, size_bytes: *size_bytes }).collect()
    }
}

/// Why flows cannot be served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ServerError {
    /// The server's rate is 0.
    #[error("the rate is 0bps; it must be above 0")]
    Rate,
    /// A flow's size or time is not a number that can be served.
    #[error(
        "flow {index} arrives at {arrival_s} s with {size_bytes} bytes; times must be at least 0, sizes above 0, both finite"
    )]
    Flow {
        /// Index of the flow, from 0.
        index: usize,
        /// The flow's arrival in seconds.
        arrival_s: f64,
        /// The flow's size in bytes.
        size_bytes: f64,
    },
    /// Arrivals are not sorted.
    #[error("flow {index} arrives before the flow ahead of it; sort flows by arrival")]
    Order {
        /// Index of the flow, from 0.
        index: usize,
    },
    /// More flows than 32-bit indices can number.
    #[error("{0} flows; at most 4294967294 can be served")]
    TooMany(usize),
}

/// A heap key: the least `(value, index)` comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Least {
    value: f64,
    index: u32,
}

impl Eq for Least {}
impl Ord for Least {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: `BinaryHeap` gives the greatest.
        other.value.total_cmp(&self.value).then(other.index.cmp(&self.index))
    }
}
impl PartialOrd for Least {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn check(flows: &[Flow], rate: Rate) -> Result<f64, ServerError> {
    if rate.bps() <= 0.0 {
        return Err(ServerError::Rate);
    }
    if flows.len() >= u32::MAX as usize {
        return Err(ServerError::TooMany(flows.len()));
    }
    let mut before = 0.0;
    for (index, &Flow { arrival_s, size_bytes }) in flows.iter().enumerate() {
        let served = arrival_s.is_finite() && arrival_s >= 0.0 && size_bytes.is_finite() && size_bytes > 0.0;
        if !served {
            return Err(ServerError::Flow { index, arrival_s, size_bytes });
        }
        if arrival_s < before {
            return Err(ServerError::Order { index });
        }
        before = arrival_s;
    }
    Ok(rate.bytes_per_sec())
}

/// Completion times of `flows`, sorted by arrival, at a server of `rate`: seconds, in the order of `flows`.
///
/// # Errors
/// A rate of zero, flows out of order or with numbers that cannot be served.
pub fn completions(discipline: Discipline, flows: &[Flow], rate: Rate) -> Result<Vec<f64>, ServerError> {
    let rate = check(flows, rate)?;
    Ok(match discipline {
        Discipline::Fcfs => fcfs(flows, rate),
        Discipline::Ps => ps(flows, rate),
        Discipline::Srpt => srpt(flows, rate),
        Discipline::Fb => Fb::new(flows).run(flows, rate),
    })
}

/// Time that each flow spent in the system, in seconds: completion minus arrival.
#[must_use]
pub fn sojourns(flows: &[Flow], completions_s: &[f64]) -> Vec<f64> {
    flows.iter().zip(completions_s).map(|(f, c)| c - f.arrival_s).collect()
}

fn fcfs(flows: &[Flow], rate: f64) -> Vec<f64> {
    let mut free_at: f64 = 0.0;
    flows
        .iter()
        .map(|f| {
            free_at = free_at.max(f.arrival_s) + f.size_bytes / rate;
            free_at
        })
        .collect()
}

fn ps(flows: &[Flow], rate: f64) -> Vec<f64> {
    let mut done = vec![0.0; flows.len()];
    // Bytes that every flow has received since the busy period began. A flow ends when this reaches its key.
    let mut virtual_bytes = 0.0;
    let mut due: BinaryHeap<Least> = BinaryHeap::new();
    let mut now = 0.0;
    let mut arrivals = flows.iter().zip(0u32..).peekable();
    loop {
        let next_arrival = arrivals.peek().map_or(f64::INFINITY, |(f, _)| f.arrival_s);
        let share = rate / due.len() as f64;
        if let Some(&first) = due.peek() {
            let end = now + (first.value - virtual_bytes).max(0.0) / share;
            if end <= next_arrival {
                due.pop();
                now = end;
                done[first.index as usize] = end;
                // Restarts at zero in every busy period, so that rounding errors do not add up.
                virtual_bytes = if due.is_empty() { 0.0 } else { first.value };
                continue;
            }
            virtual_bytes += (next_arrival - now) * share;
        }
        let Some((flow, index)) = arrivals.next() else { return done };
        now = flow.arrival_s;
        due.push(Least { value: virtual_bytes + flow.size_bytes, index });
    }
}

fn srpt(flows: &[Flow], rate: f64) -> Vec<f64> {
    let mut done = vec![0.0; flows.len()];
    let mut waiting: BinaryHeap<Least> = BinaryHeap::new();
    // The flow in service; its value is the bytes that it has left.
    let mut serving: Option<Least> = None;
    let mut now = 0.0;
    let mut arrivals = flows.iter().zip(0u32..).peekable();
    loop {
        let next_arrival = arrivals.peek().map_or(f64::INFINITY, |(f, _)| f.arrival_s);
        if let Some(flow) = serving.as_mut() {
            let end = now + flow.value.max(0.0) / rate;
            if end <= next_arrival {
                now = end;
                done[flow.index as usize] = end;
                serving = waiting.pop();
                continue;
            }
            flow.value -= (next_arrival - now) * rate;
        }
        let Some((flow, index)) = arrivals.next() else { return done };
        now = flow.arrival_s;
        let new = Least { value: flow.size_bytes, index };
        serving = Some(match serving {
            Some(old) if new.value < old.value => {
                waiting.push(old);
                new
            }
            Some(old) => {
                waiting.push(new);
                old
            }
            None => new,
        });
    }
}

/// Tolerance within which two events count as simultaneous, as a share of the time since the start.
///
/// Under FB a flow with 10^-10 bytes left waits for the whole of a flow that arrives just then: rounding must not decide it.
const SAME_INSTANT: f64 = 1e-13;
/// Marks a missing node in [`Fb`]'s heaps.
const NONE: u32 = u32::MAX;

/// Foreground-background: a stack of groups. Members of a group have received the same; the group that has received least is on top.
///
/// A group that catches up with the one below melds with it. Groups are leftist heaps by size (Crane 1972; Knuth vol. 3,
/// section 5.2.3) over flat arrays, so that a meld costs `O(log n)`.
struct Fb {
    sizes: Vec<f64>,
    left: Vec<u32>,
    right: Vec<u32>,
    /// Distance to the nearest missing child.
    rank: Vec<u32>,
    /// The right spine of a meld under way.
    spine: Vec<u32>,
}

struct Group {
    /// Bytes that each member has received.
    received: f64,
    /// The heap's root: the smallest member.
    root: u32,
    members: u32,
}

impl Fb {
    fn new(flows: &[Flow]) -> Self {
        let n = flows.len();
        Self {
            sizes: flows.iter().map(|f| f.size_bytes).collect(),
            left: vec![NONE; n],
            right: vec![NONE; n],
            rank: vec![1; n],
            spine: Vec::new(),
        }
    }

    fn rank_of(&self, node: u32) -> u32 {
        if node == NONE { 0 } else { self.rank[node as usize] }
    }

    fn meld(&mut self, mut a: u32, mut b: u32) -> u32 {
        // Down both right spines, the smaller root first; then up again, the shorter child to the right.
        self.spine.clear();
        while a != NONE && b != NONE {
            let (size_a, size_b) = (self.sizes[a as usize], self.sizes[b as usize]);
            if size_b.total_cmp(&size_a).then(b.cmp(&a)).is_lt() {
                core::mem::swap(&mut a, &mut b);
            }
            self.spine.push(a);
            a = self.right[a as usize];
        }
        let mut child = if a == NONE { b } else { a };
        while let Some(node) = self.spine.pop() {
            let i = node as usize;
            self.right[i] = child;
            if self.rank_of(self.left[i]) < self.rank_of(child) {
                self.right[i] = self.left[i];
                self.left[i] = child;
            }
            self.rank[i] = self.rank_of(self.right[i]) + 1;
            child = node;
        }
        child
    }

    fn run(mut self, flows: &[Flow], rate: f64) -> Vec<f64> {
        let mut done = vec![0.0; flows.len()];
        let mut groups: Vec<Group> = Vec::new();
        let mut now = 0.0;
        let mut arrivals = flows.iter().zip(0u32..).peekable();
        loop {
            let next_arrival = arrivals.peek().map_or(f64::INFINITY, |(f, _)| f.arrival_s);
            let below = groups.len().checked_sub(2).map_or(f64::INFINITY, |i| groups[i].received);
            if let Some(top) = groups.last_mut() {
                let share = rate / f64::from(top.members);
                let smallest = self.sizes[top.root as usize];
                // Runs until its smallest member ends or it catches up with the next group, whichever comes first.
                let goal = smallest.min(below);
                let reached = now + (goal - top.received).max(0.0) / share;
                if reached > next_arrival * (1.0 + SAME_INSTANT) {
                    top.received += (next_arrival - now) * share;
                } else {
                    now = reached.min(next_arrival);
                    top.received = goal;
                    if smallest <= below {
                        done[top.root as usize] = now;
                        top.members -= 1;
                        let (left, right) = (self.left[top.root as usize], self.right[top.root as usize]);
                        top.root = self.meld(left, right);
                        if top.members == 0 {
                            groups.pop();
                        }
                    } else if let (Some(upper), Some(lower)) = (groups.pop(), groups.last_mut()) {
                        lower.root = self.meld(lower.root, upper.root);
                        lower.members += upper.members;
                    }
                    continue;
                }
            }
            let Some((flow, index)) = arrivals.next() else { return done };
            now = flow.arrival_s;
            match groups.last_mut() {
                // It arrived at the same instant as the flow before, which has received nothing yet either.
                Some(top) if top.received <= 0.0 => {
                    top.root = self.meld(top.root, index);
                    top.members += 1;
                }
                _ => groups.push(Group { received: 0.0, root: index, members: 1 }),
            }
        }
    }
}

/// Result of flows that send at one rate into a FIFO queue.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimited {
    /// Per flow, from its first byte's arrival to its last byte's departure: `L/R + q/C`, in seconds (eq. 3.4 without
    /// the propagation delay).
    pub durations_s: Vec<f64>,
    /// Time average of the queue, in bytes, until the last flow stops sending.
    pub mean_queue_bytes: f64,
    /// Share of the capacity used in that time.
    pub utilization: f64,
}

/// Flows, sorted by arrival, that each send at `flow_rate` into a fluid FIFO queue served at `capacity` (section 3.3).
///
/// # Errors
/// A rate of zero, flows out of order or with numbers that cannot be served.
pub fn rate_limited(flows: &[Flow], flow_rate: Rate, capacity: Rate) -> Result<RateLimited, ServerError> {
    let flow_rate = check(flows, flow_rate)?;
    let capacity = check(&[], capacity)?;
    let mut durations_s = vec![0.0; flows.len()];
    let mut sending: BinaryHeap<Least> = BinaryHeap::new();
    let (mut now, mut queue, mut queue_seconds, mut sent) = (0.0, 0.0, 0.0, 0.0);
    let mut arrivals = flows.iter().zip(0u32..).peekable();
    loop {
        let next_arrival = arrivals.peek().map_or(f64::INFINITY, |(f, _)| f.arrival_s);
        let next_end = sending.peek().map_or(f64::INFINITY, |e| e.value);
        let next = next_arrival.min(next_end);
        if next.is_infinite() {
            break;
        }
        // The queue moves on a straight line, and stays at zero once it is there.
        let length = next - now;
        let slope = sending.len() as f64 * flow_rate - capacity;
        let end = queue + slope * length;
        if end >= 0.0 {
            queue_seconds += f64::midpoint(queue, end) * length;
            queue = end;
        } else {
            queue_seconds += 0.5 * queue * queue / -slope;
            queue = 0.0;
        }
        now = next;
        if next_end <= next_arrival {
            if let Some(e) = sending.pop() {
                let i = e.index as usize;
                durations_s[i] = flows[i].size_bytes / flow_rate + queue / capacity;
                sent += flows[i].size_bytes;
            }
        } else if let Some((flow, index)) = arrivals.next() {
            sending.push(Least { value: now + flow.size_bytes / flow_rate, index });
        }
    }
    let (mean_queue_bytes, utilization) =
        if now > 0.0 { (queue_seconds / now, (sent - queue) / (capacity * now)) } else { (0.0, 0.0) };
    Ok(RateLimited { durations_s, mean_queue_bytes, utilization })
}

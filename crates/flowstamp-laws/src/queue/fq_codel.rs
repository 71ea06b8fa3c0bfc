//! FQ-CoDel: each flow has a queue with its own CoDel, and the link serves the queues in turn, new flows first
//! (Hoeiland-Joergensen, McKenney, Taht, Gettys & Dumazet, RFC 8290).
//!
//! ```text
//!   enqueue   queue = hash(flow, salt) mod flows                                            section 4.1
//!             a queue in neither list joins the end of the new ones, with credit = quantum
//!             while the limit is exceeded: the queue with the most bytes drops half of its packets, at most
//!             drop_batch, from its head
//!
//!   dequeue   the first queue of the new ones, or else of the old ones                      section 4.2
//!             credit <= 0:   credit += quantum, move it to the end of the old ones, and repeat
//!             CoDel takes packets from it until one may be sent:  credit -= its size
//!             if empty:      move a new one to the end of the old ones, remove an old one, and repeat
//! ```
//! An emptied queue leaves the lists, and counts as new with its next packet. A flow that sends less than a quantum
//! per round therefore never waits behind backlogged flows (section 1.3). Backlogged flows get equal shares of the
//! link in bytes. A queue's credit is above minus one packet and at most one quantum, and numbers of turns differ by
//! at most one. The bytes sent by two queues since both became backlogged therefore differ by less than a quantum and
//! a packet (deficit round robin, Shreedhar & Varghese 1996).
//!
//! [`FqCodel`] holds the queued packets, of any type, and has no limit of its own. The owner of the buffer makes it
//! drop packets until the rest fits. The valid range is CoDel's.
//!
//! Deviations (RFC says / we do / because):
//! 1. Section 4.1 hashes addresses, protocol and ports / we hash the flow's number / the caller knows its flows. The
//!    hash is SplitMix64's finalizer, and its upper bits choose the queue.
//! 2. A limit of 10,240 packets (section 5.2.3) / the link's buffer is the limit / every queue law uses it.
//! 3. Enqueue and then, above the limit, drop (section 4.1) / a packet that finds an empty queue and does not fit by
//!    itself is dropped at once / it would be the packet to drop anyway.
//! 4. Half of the packets (section 4.1) / rounded up / one packet must go.
//! 5. `quantum` is 1514 bytes (section 5.2.4) / it is a full packet of the network, if unset / 1514 bytes are a full
//!    packet on Ethernet.
//! 6. Linux's CoDel tests the backlog of all queues for at most one packet, and counts overflow drops as its own /
//!    ours tests its own queue's backlog, and does not count them / section 4.2 gives each queue its CoDel, and RFC
//!    8289 knows one queue.
//! 7. No `ce_threshold` (section 5.2.7) / it is off by default there.
//! 8. `interval` and `target` as in `codel`, deviations 2 and 3.

use super::codel::{self, CoDel};
use super::{Arrival, Departure, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict};
use crate::units::{Bytes, Time};
use crate::{Refused, within};
use std::collections::VecDeque;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Delay that may persist in a flow's queue. Default: a twentieth of `interval`, 5 ms for 100 ms.
        pub target: Option<Time> = None,
        /// How long the delay of a flow's queue must be above `target` before the first drop. Default: 100 ms, or the
        /// longest propagation RTT of the flows through the link if that is below 10 ms or above 1 s.
        pub interval: Option<Time> = None,
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = true, // RFC 8290, section 5.2.6
        /// Number of queues to which flows are hashed. Several flows may share one.
        pub flows: u32 = 1024, // section 5.2.5
        /// Bytes that a queue may send in its turn. Default: the scenario's `packet`.
        pub quantum: Option<Bytes> = None,
        /// Maximum number of packets that the longest queue drops at once when the buffer is full. It drops half of its
        /// packets, up to this number.
        pub drop_batch: u32 = 64, // section 4.1
    }
}

impl Params {
    const fn codel(&self) -> codel::Params {
        let Self { target, interval, ecn, .. } = *self;
        codel::Params { target, interval, ecn }
    }
}

/// A packet that can be queued.
pub trait Waits {
    /// Its size in bytes.
    fn size(&self) -> u32;
    /// When it joined the queue.
    fn since(&self) -> Time;
    /// Whether it may be marked instead of dropped (ECN-capable transport).
    fn ecn_capable(&self) -> bool;
}

/// One queue.
#[derive(Clone, Debug)]
struct Flow<T> {
    packets: VecDeque<T>,
    /// Bytes that the queue may send before another's turn; negative after a large packet.
    credit: i64,
    codel: CoDel,
    /// The queue is in one of the lists.
    listed: bool,
}

/// Marks a queue that no flow has used yet.
const UNUSED: u32 = u32::MAX;

/// All queues, and the lists that give their order of service.
#[derive(Clone, Debug)]
pub struct FqCodel<T> {
    /// For each queue its index among the used ones, which alone take memory.
    used: Box<[u32]>,
    flows: Vec<Flow<T>>,
    /// Bytes in each queue; a separate array makes the search for the longest fast.
    backlogs: Vec<u64>,
    /// CoDel state of an empty queue.
    codel: CoDel,
    /// New queues, and those that have had a turn.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
    drop_batch: usize,
    salt: u64,
    /// How long the last packet waited, for probes.
    sojourn: Time,
}

impl<T: Waits> FqCodel<T> {
    /// Creates empty queues. The salt varies from link to link which flows share a queue.
    #[must_use]
    pub fn new(params: &Params, view: &QueueView, salt: u64) -> Self {
        Self {
            used: (0..params.flows.max(1)).map(|_| UNUSED).collect(),
            flows: Vec::new(),
            backlogs: Vec::new(),
            codel: CoDel::new(&params.codel(), view),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: params.quantum.map_or(i64::from(view.mean_packet_bytes), |q| q.get() as i64).max(1),
            drop_batch: params.drop_batch.max(1) as usize,
            salt,
            sojourn: Time::ZERO,
        }
    }

    /// Number of the queue to which a flow is hashed.
    #[must_use]
    pub fn queue_of(&self, flow: u64) -> usize {
        let mut hash = flow.wrapping_add(self.salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        // No modulo: the upper half of the product.
        ((u128::from(hash) * self.used.len() as u128) >> 64) as usize
    }

    /// Adds a packet of `flow` to its queue, without a check of the buffer.
    pub fn enqueue(&mut self, flow: u64, packet: T) {
        let queue = self.queue_of(flow);
        if self.used[queue] == UNUSED {
            self.used[queue] = self.flows.len() as u32;
            let codel = self.codel.clone();
            self.flows.push(Flow { packets: VecDeque::new(), credit: 0, codel, listed: false });
            self.backlogs.push(0);
        }
        let number = self.used[queue] as usize;
        let flow = &mut self.flows[number];
        self.backlogs[number] += u64::from(packet.size());
        flow.packets.push_back(packet);
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.quantum;
            self.new.push_back(number as u32);
        }
    }

    /// Index of the longest queue in bytes, and its bytes.
    fn longest(&self) -> (usize, u64) {
        let all = self.backlogs.iter().copied().enumerate();
        all.fold((0, 0), |longest, other| if other.1 > longest.1 { other } else { longest })
    }

    /// Bytes of the longest queue.
    #[must_use]
    pub fn longest_bytes(&self) -> u64 {
        self.longest().1
    }

    /// Drops half of the longest queue's packets from its head, at most `drop_batch`. Calls `lost` for each.
    pub fn give_up(&mut self, mut lost: impl FnMut(T)) {
        let (number, _) = self.longest();
        let Some(Flow { packets, .. }) = self.flows.get_mut(number) else { return };
        let batch = packets.len().div_ceil(2).min(self.drop_batch); // deviation 4
        for packet in packets.drain(..batch) {
            self.backlogs[number] -= u64::from(packet.size());
            lost(packet);
        }
    }

    /// Returns the packet whose transmission could begin, and whether to send, mark or drop it. After a drop, call
    /// again at the same instant. `None` if all queues are empty.
    pub fn dequeue(&mut self, now: Time) -> Option<(T, Verdict)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.flows[number as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let Some(packet) = flow.packets.pop_front() else {
                list.pop_front();
                flow.codel.on_empty();
                if is_new {
                    self.old.push_back(number);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            let backlog = &mut self.backlogs[number as usize];
            *backlog -= u64::from(packet.size());
            self.sojourn = now.saturating_sub(packet.since());
            let departure = Departure {
                now,
                size: packet.size(),
                flow: u64::from(number),
                sojourn: self.sojourn,
                queue_bytes: *backlog,
                queue_packets: flow.packets.len() as u32,
                ecn_capable: packet.ecn_capable(),
                l4s: false,
            };
            // CoDel draws no random numbers.
            let verdict = flow.codel.on_departure(&departure, || 0.0);
            if verdict != Verdict::Drop {
                flow.credit -= i64::from(packet.size());
            }
            return Some((packet, verdict));
        }
    }

    /// Calls `report` with each variable's name and value, for probes.
    pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("new_flows", self.new.len() as f64);
        report("old_flows", self.old.len() as f64);
        report("sojourn_s", self.sojourn.as_secs_f64());
    }
}

/// The queue law of a link with these queues, which decides only on arrivals. The link asks [`FqCodel`] about queued
/// packets.
#[derive(Clone, Debug)]
pub struct Joins {
    limit: Limit,
}

impl QueueLaw for Joins {
    type Params = Params;
    const HEARS: Hears = Hears { departures: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        CoDel::check(&p.codel())?;
        // Linux's bounds: FQ_CODEL's table has at most 65536 entries, a quantum is 256 bytes to a megabyte.
        within("flows", f64::from(p.flows), 1.0, 65536.0)?;
        within("drop_batch", f64::from(p.drop_batch), 1.0, 65536.0)?;
        match p.quantum.filter(|q| !(256..=1 << 20).contains(&q.get())) {
            Some(quantum) => Err(("quantum", format!("is {quantum}; it must be 256B to 1MiB"))),
            None => Ok(()),
        }
    }

    fn time_constant(params: &mut Params) -> Option<TimeConstant<'_>> {
        codel::time_constant(&mut params.interval)
    }

    fn new(_: &Params, view: &QueueView) -> Self {
        Self { limit: view.limit }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, arrival: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        // Deviation 3: where other packets wait, the longest queue drops as much as necessary.
        if arrival.queue_packets > 0 || arrival.fits(self.limit) { Verdict::Enqueue } else { Verdict::Drop }
    }
}

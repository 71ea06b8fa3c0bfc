//! Laws and statistics of a router link, whatever serves it.

use super::LinkStats;
use super::plain::Plain;
use super::police::Police;
use crate::medium::Capacity;
use crate::packet::{CONGESTED, DATA, ECN_CAPABLE, Packet};
use crate::random::Stream;
use flowstamp_laws::Stamp;
use flowstamp_laws::queue::{Arrival, Limit, Verdict};
use flowstamp_laws::registry::{AnyQueue, AnyRouter};
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut};
use flowstamp_laws::units::Time;

/// ECN fields (RFC 3168 section 5): of a packet that may be marked, and of one that is.
const ECT_1: u16 = 1;
const CE: u16 = 3;

/// What waits somewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u32,
}

impl Backlog {
    /// A packet begins to wait.
    #[inline]
    pub fn add(&mut self, size: u16) {
        self.bytes += u64::from(size);
        self.packets += 1;
    }

    /// A packet has waited.
    #[inline]
    pub fn take(&mut self, size: u16) {
        self.bytes -= u64::from(size);
        self.packets -= 1;
    }

    /// As a law sees it.
    #[inline]
    #[must_use]
    pub fn view(self, now: Time) -> LinkView {
        LinkView { now, queue_bytes: self.bytes, queue_packets: self.packets }
    }
}

/// Laws and statistics.
#[derive(Clone, Debug)]
pub struct Laws {
    /// The link's name.
    pub name: String,
    /// What the link can carry.
    pub capacity: Capacity,
    /// The router law is told of that.
    pub told: bool,
    /// The router law marks packets of other protocols.
    pub marks: bool,
    /// The router law hears of what comes in over a shared medium.
    pub over_medium: bool,
    /// Buffer.
    pub limit: Limit,
    /// Queue law.
    pub queue: AnyQueue,
    /// Router law.
    pub router: Option<AnyRouter>,
    /// Randomness of its laws.
    pub random: Stream,
    /// What happened.
    pub stats: LinkStats,
    /// Packets whose transmission begins are recorded.
    pub captured: bool,
    /// Who is tested, if anybody is.
    pub police: Option<Box<Police>>,
    backlog: Backlog,
}

impl Laws {
    /// Laws of a link, nothing having happened.
    #[must_use]
    pub fn new(
        name: String,
        capacity: Capacity,
        limit: Limit,
        queue: AnyQueue,
        router: Option<AnyRouter>,
        random: Stream,
        captured: bool,
    ) -> Self {
        let stats = LinkStats::default();
        let backlog = Backlog::default();
        Self {
            name,
            capacity,
            told: true,
            marks: false,
            over_medium: false,
            limit,
            queue,
            router,
            random,
            stats,
            captured,
            police: None,
            backlog,
        }
    }

    /// Bytes that the buffer holds, if packets are of `packet_bytes`.
    #[must_use]
    pub fn buffer_bytes(&self, packet_bytes: f64) -> f64 {
        match self.limit {
            Limit::Bytes(bytes) => bytes as f64,
            Limit::Packets(packets) => f64::from(packets) * packet_bytes,
        }
    }

    /// Bytes that wait.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.backlog.bytes
    }

    /// What waits.
    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Whether it is a packet with the router law's header.
    #[inline]
    pub(super) fn is_own(&self, packet: &Packet) -> bool {
        self.router.as_ref().is_some_and(|r| r.header() == packet.header)
    }

    /// The router law, if there is one, hears of an arrival.
    #[inline(always)] // most links of most networks have none
    pub(super) fn arrives(&mut self, now: Time, seen: Backlog, packet: &Packet) {
        if self.router.is_some() {
            self.router_hears(now, seen, packet);
        }
    }

    #[inline(always)] // a call would save and restore more registers than most laws need
    fn router_hears(&mut self, now: Time, seen: Backlog, packet: &Packet) {
        if let Some(router) = &mut self.router {
            let own = packet.flags & DATA != 0 && packet.header == router.header();
            let (size, bits) = (u32::from(packet.size), packet.bits);
            if let (true, Some(police)) = (own, &self.police) {
                let believed = police.believed(packet);
                router.on_arrival(seen.view(now), PacketIn { size, stamp: believed.as_ref(), bits });
            } else {
                let stamp = own.then_some(&packet.stamp);
                router.on_arrival(seen.view(now), PacketIn { size, stamp, bits });
            }
        }
    }

    /// The transmission of `packet` begins: the router law stamps it if it is one of its own, else it may mark it.
    #[inline(always)]
    pub(super) fn stamp(&mut self, now: Time, seen: Backlog, packet: &mut Packet) {
        if self.router.is_some() {
            self.router_stamps(now, seen, packet);
        }
    }

    #[inline(always)] // likewise
    fn router_stamps(&mut self, now: Time, seen: Backlog, packet: &mut Packet) {
        if let Some(router) = &mut self.router {
            let named = self.police.as_ref().map(|police| police.bound(packet));
            let Packet { stamp, bits, size, flags, header, .. } = packet;
            let random = &mut self.random;
            let size = u32::from(*size);
            if *flags & DATA != 0 && *header == router.header() {
                router.on_departure(seen.view(now), PacketOut { size, stamp, bits }, || random.uniform());
                if let (Some(police), Some(named)) = (&mut self.police, named) {
                    police.tell(now, packet, &named);
                }
            } else if self.marks && *flags & (ECN_CAPABLE | CONGESTED) == ECN_CAPABLE {
                let (stamp, bits) = (&mut Stamp::default(), &mut { ECT_1 });
                router.on_departure(seen.view(now), PacketOut { size, stamp, bits }, || random.uniform());
                if *bits == CE {
                    *flags |= CONGESTED;
                    self.stats.marks += 1;
                }
            }
        }
    }

    /// Whether a packet may go on, before anybody else hears of it: one of an isolated flow may not, and is lost. Were it input to the router
    /// law, others would leave room for it all the same.
    #[inline(always)] // most links have no police
    pub(super) fn admits(&mut self, now: Time, packet: &Packet, own: bool) -> bool {
        let Some(police) = self.police.as_mut().filter(|_| own) else { return true };
        let admitted = police.admits(now, packet, self.stats.whole_run()[1]);
        if !admitted {
            self.stats.lose(packet);
        }
        admitted
    }

    /// The link's own queue law decides on `packet`: the mark that it gets, or `None` if it is lost.
    #[inline(always)]
    pub(super) fn decide(&mut self, arrival: &Arrival, packet: &Packet) -> Option<u8> {
        let random = &mut self.random;
        let verdict = self.queue.on_arrival(arrival, || random.uniform());
        self.settle_verdict(verdict, packet)
    }

    /// What follows from a queue law's verdict: the mark that the packet gets, or `None` if it is lost.
    #[inline]
    pub(super) fn settle_verdict(&mut self, verdict: Verdict, packet: &Packet) -> Option<u8> {
        let mut mark = 0;
        match verdict {
            Verdict::Drop => {
                self.stats.lose(packet);
                return None;
            }
            Verdict::Mark => {
                self.stats.marks += 1;
                mark = CONGESTED;
            }
            Verdict::Enqueue => {}
        }
        self.stats.accepted_bytes += f64::from(packet.size);
        Some(mark)
    }

    /// The queue law's verdict on a packet that was let in and whose transmission could begin: the mark that it gets, or
    /// `None` if it is lost after all.
    pub(super) fn settle_departure(&mut self, verdict: Verdict, packet: &Packet) -> Option<u8> {
        match verdict {
            Verdict::Enqueue => Some(0),
            Verdict::Mark => {
                self.stats.marks += 1;
                Some(CONGESTED)
            }
            Verdict::Drop => {
                self.stats.lose(packet);
                self.stats.accepted_bytes -= f64::from(packet.size);
                None
            }
        }
    }

    /// A packet begins to wait.
    #[inline(always)] // likewise
    pub(super) fn enter(&mut self, now: Time, size: u16) {
        self.stats.account(now, self.backlog.bytes);
        self.backlog.add(size);
        self.stats.max_queue = self.stats.max_queue.max(self.backlog.bytes);
    }

    /// A packet begins to wait in the place of others that were let in, of which it may be one itself, and are lost, which has been counted.
    pub(super) fn enter_for(&mut self, now: Time, size: u16, lost: Backlog) {
        self.stats.account(now, self.backlog.bytes);
        self.backlog.add(size);
        self.backlog.bytes -= lost.bytes;
        self.backlog.packets -= lost.packets;
        self.stats.max_queue = self.stats.max_queue.max(self.backlog.bytes);
        self.stats.accepted_bytes -= lost.bytes as f64;
    }

    /// A packet has waited until `now`.
    #[inline]
    pub(super) fn leave(&mut self, now: Time, size: u16) {
        self.stats.account(now, self.backlog.bytes);
        self.backlog.take(size);
    }

    /// Brings statistics up to `now`.
    pub(super) fn account(&mut self, now: Time) {
        self.stats.account(now, self.backlog.bytes);
    }

    /// Bytes that have been transmitted of those accepted, at `now`, to an opportunity's part on a trace, when the
    /// transmission of `in_transmission` bytes ends at `under_way`.
    pub(super) fn sent_bytes(&self, now: Time, under_way: Time, in_transmission: f64) -> f64 {
        let rest = if under_way > now { self.capacity.bytes_between(now, under_way) } else { 0.0 };
        // An opportunity of a trace may be larger than the packet that waits for it.
        let rest = rest.min(in_transmission);
        self.stats.accepted_bytes - self.backlog.bytes as f64 - rest
    }
}

/// A packet as a queue law sees it.
#[inline]
pub(super) fn arrival(
    line: &Plain,
    now: Time,
    packet: &Packet,
    queue_bytes: u64,
    queue_packets: u32,
) -> Arrival {
    Arrival {
        now,
        size: u32::from(packet.size),
        flow: packet.flow_id(),
        label: None,
        queue_bytes,
        queue_packets,
        ecn_capable: packet.flags & ECN_CAPABLE != 0,
        l4s: packet.is_l4s(),
        idle_since: (line.free_at() <= now).then_some(line.free_at()),
    }
}

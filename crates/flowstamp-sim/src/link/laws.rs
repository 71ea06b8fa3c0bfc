//! Laws and statistics of a router link, common to all kinds of port.

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

/// ECN codepoints (RFC 3168 section 5): ECT(1) for a packet that may be marked, CE for a marked one.
const ECT_1: u16 = 1;
const CE: u16 = 3;
/// Without `full` no link has police, and the compiler leaves out its code.
const POLICED: bool = cfg!(feature = "full");

/// A backlog.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u32,
}

impl Backlog {
    /// Takes note that a packet enters the queue.
    #[inline]
    pub fn add(&mut self, size: u16) {
        self.bytes += u64::from(size);
        self.packets += 1;
    }

    /// Takes note that a packet leaves the queue.
    #[inline]
    pub fn take(&mut self, size: u16) {
        self.bytes -= u64::from(size);
        self.packets -= 1;
    }

    /// The backlog as a law sees it.
    #[inline]
    #[must_use]
    pub fn view(self, now: Time) -> LinkView {
        LinkView { now, queue_bytes: self.bytes, queue_packets: self.packets }
    }
}

/// Laws and statistics. Fields that packets need come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Laws {
    backlog: Backlog,
    /// Police of the link, if there is one.
    pub police: Option<Box<Police>>,
    /// A capture records packets as their transmission begins.
    pub captured: bool,
    /// The router law marks packets of other protocols.
    pub marks: bool,
    /// The router law is told the capacity.
    pub told: bool,
    /// The router law hears of packets that arrive over the shared medium.
    pub over_medium: bool,
    /// Statistics.
    pub stats: LinkStats,
    /// Router law.
    pub router: Option<AnyRouter>,
    /// Queue law.
    pub queue: AnyQueue,
    /// Random stream of the laws.
    pub random: Stream,
    /// Buffer limit.
    pub limit: Limit,
    /// Capacity of the link.
    pub capacity: Capacity,
    /// The link's name.
    pub name: String,
}

impl Laws {
    /// Laws of an idle link.
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

    /// Buffer size in bytes, if packets have `packet_bytes`.
    #[must_use]
    pub fn buffer_bytes(&self, packet_bytes: f64) -> f64 {
        match self.limit {
            Limit::Bytes(bytes) => bytes as f64,
            Limit::Packets(packets) => f64::from(packets) * packet_bytes,
        }
    }

    /// Backlog, bytes.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.backlog.bytes
    }

    /// The backlog.
    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Whether the packet has the router law's header.
    #[inline]
    pub(super) fn is_own(&self, packet: &Packet) -> bool {
        self.router.as_ref().is_some_and(|r| r.header() == packet.header)
    }

    /// Tells the router law, if there is one, of an arrival.
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
            if let (true, Some(police)) = (own && POLICED, &self.police) {
                let believed = police.believed(packet);
                router.on_arrival(seen.view(now), PacketIn { size, stamp: believed.as_ref(), bits });
            } else {
                let stamp = own.then_some(&packet.stamp);
                router.on_arrival(seen.view(now), PacketIn { size, stamp, bits });
            }
        }
    }

    /// Lets the router law stamp `packet` as its transmission begins. A packet of another protocol may be marked
    /// instead.
    #[inline(always)]
    pub(super) fn stamp(&mut self, now: Time, seen: Backlog, packet: &mut Packet) {
        if self.router.is_some() {
            self.router_stamps(now, seen, packet);
        }
    }

    #[inline(always)] // likewise
    fn router_stamps(&mut self, now: Time, seen: Backlog, packet: &mut Packet) {
        if let Some(router) = &mut self.router {
            let named = self.police.as_ref().filter(|_| POLICED).map(|police| police.bound(packet));
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

    /// Whether the police admits a packet, before router law and queue hear of it. A packet of an isolated flow may be
    /// dropped. If the router law counted it as input, it would slow other flows for traffic that is not sent.
    #[inline(always)] // most links have no police
    pub(super) fn admits(&mut self, now: Time, packet: &Packet, own: bool) -> bool {
        let Some(police) = self.police.as_mut().filter(|_| POLICED && own) else { return true };
        let admitted = police.admits(now, packet, self.stats.whole_run()[1]);
        if !admitted {
            self.stats.lose(packet);
        }
        admitted
    }

    /// Lets the link's queue law decide on `packet`. Returns the mark it gets, or `None` if it is dropped.
    #[inline(always)]
    pub(super) fn decide(&mut self, arrival: &Arrival, packet: &Packet) -> Option<u8> {
        let random = &mut self.random;
        let verdict = self.queue.on_arrival(arrival, || random.uniform());
        self.settle_verdict(verdict, packet)
    }

    /// Carries out a queue law's verdict on arrival. Returns the mark that the packet gets, or `None` if it is dropped.
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

    /// Carries out a queue law's verdict on departure. Returns the mark that the packet gets, or `None` if it is
    /// dropped after all.
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

    /// Takes note that a packet enters the queue.
    #[inline(always)] // likewise
    pub(super) fn enter(&mut self, now: Time, size: u16) {
        self.stats.account(now, self.backlog.bytes);
        self.backlog.add(size);
        self.stats.max_queue = self.stats.max_queue.max(self.backlog.bytes);
    }

    /// Takes note that a packet enters the queue and that `lost` packets were dropped to make room. The new packet may
    /// be among them. Their drops are already counted.
    pub(super) fn enter_for(&mut self, now: Time, size: u16, lost: Backlog) {
        self.stats.account(now, self.backlog.bytes);
        self.backlog.add(size);
        self.backlog.bytes -= lost.bytes;
        self.backlog.packets -= lost.packets;
        self.stats.max_queue = self.stats.max_queue.max(self.backlog.bytes);
        self.stats.accepted_bytes -= lost.bytes as f64;
    }

    /// Takes note that a packet leaves the queue at `now`.
    #[inline]
    pub(super) fn leave(&mut self, now: Time, size: u16) {
        self.stats.account(now, self.backlog.bytes);
        self.backlog.take(size);
    }

    /// Brings statistics up to `now`.
    pub(super) fn account(&mut self, now: Time) {
        self.stats.account(now, self.backlog.bytes);
    }

    /// Bytes transmitted by `now`, to within one opportunity of a trace. The transmission of `in_transmission` bytes
    /// ends at `under_way`.
    pub(super) fn sent_bytes(&self, now: Time, under_way: Time, in_transmission: f64) -> f64 {
        let rest = if under_way > now { self.capacity.bytes_between(now, under_way) } else { 0.0 };
        // An opportunity of a trace may exceed the packet that uses it.
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

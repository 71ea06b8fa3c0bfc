//! The bottleneck of a path: a buffer, a rate and a router's law. It uses no clock: callers pass times in.

use super::Spec;
use crate::headers;
use crate::sender::BELOW_QUIC;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::AnyRouter;
use flowstamp_laws::router::{LinkView, MAX_TIMERS, PacketIn, PacketOut, RouterView};
use flowstamp_laws::stamp::Stamp;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_wire::option::Protocol;
use flowstamp_wire::quic_stamp::{self, Packet};
use flowstamp_wire::scone::{self, Signal};
use std::collections::VecDeque;

/// Size of a full packet, for a law that asks.
const PACKET: u32 = 1500;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Counts {
    /// Packets that reached the bottleneck.
    pub arrived: u64,
    /// Packets that the buffer dropped.
    pub dropped: u64,
    /// Packets with a stamp.
    pub stamped: u64,
    /// SCONE packets whose signal was lowered.
    pub advised: u64,
    /// The longest queue, bytes.
    pub longest_queue_bytes: u64,
    /// Sum of the queues that packets found, bytes. Divided by `arrived`, their mean.
    pub queue_sum_bytes: u64,
}

/// A datagram, and where it goes.
#[derive(Debug)]
pub struct Datagram<W> {
    /// The payload of UDP.
    pub bytes: Vec<u8>,
    /// Where it goes.
    pub way: W,
}

impl<W> Datagram<W> {
    fn size(&self) -> u32 {
        self.bytes.len() as u32 + BELOW_QUIC
    }
}

/// The bottleneck towards clients.
#[derive(Debug)]
pub struct Bottleneck<W> {
    rate: Rate,
    buffer: u64,
    law: Option<AnyRouter>,
    /// The protocol whose stamp packets the law reads and writes.
    protocol: Option<Protocol>,
    timers: [Option<Time>; MAX_TIMERS],
    scone: Option<Signal>,
    /// When the transmission under way ends.
    free: Time,
    waiting: VecDeque<Datagram<W>>,
    queue_bytes: u64,
    counts: Counts,
}

impl<W> Bottleneck<W> {
    /// Creates an empty one at time zero.
    #[must_use]
    pub fn new(spec: &Spec) -> Self {
        let round = spec.rate.bytes_in(spec.delay * 2) as u64;
        let buffer = spec.buffer.map_or(round.max(10 * u64::from(PACKET)), Bytes::get);
        let limit = Limit::Bytes(buffer);
        let traits = spec.router.traits();
        Self {
            rate: spec.rate,
            buffer,
            law: spec.router.build(&RouterView { capacity: Some(spec.rate), limit, packet_bytes: PACKET }),
            protocol: headers::protocol_of(spec.router.header()),
            timers: traits.first_timers,
            scone: spec.scone,
            free: Time::ZERO,
            waiting: VecDeque::new(),
            queue_bytes: 0,
            counts: Counts::default(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    fn view(&self, now: Time) -> LinkView {
        LinkView { now, queue_bytes: self.queue_bytes, queue_packets: self.waiting.len() as u32 }
    }

    /// The next transmission or timer.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        let start = (!self.waiting.is_empty()).then_some(self.free);
        let timers = self.timers.iter().flatten().copied().filter(|_| self.law.is_some());
        timers.chain(start).min()
    }

    /// Takes a datagram at `now`, up to which [`advance`](Self::advance) has come.
    pub fn arrive(&mut self, now: Time, datagram: Datagram<W>) {
        let size = datagram.size();
        let stamp = self.stamp_of(&datagram).map(|(_, stamp)| stamp);
        let view = self.view(now);
        if let Some(law) = &mut self.law {
            law.on_arrival(view, PacketIn::of(size, stamp.as_ref()));
        }
        self.counts.arrived += 1;
        self.counts.queue_sum_bytes += self.queue_bytes;
        if self.waiting.is_empty() && self.free < now {
            self.free = now;
        }
        if self.queue_bytes + u64::from(size) > self.buffer && self.free > now {
            self.counts.dropped += 1;
            return;
        }
        self.queue_bytes += u64::from(size);
        self.waiting.push_back(datagram);
        self.counts.longest_queue_bytes = self.counts.longest_queue_bytes.max(self.queue_bytes);
    }

    /// Handles all transmissions and timers up to `now`, in order. `send` gets each datagram and the end of its transmission.
    pub fn advance(&mut self, now: Time, mut send: impl FnMut(Time, Datagram<W>)) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            let due = self.timers.iter().position(|timer| *timer == Some(at));
            let view = self.view(at);
            if let (Some(which), Some(law)) = (due, &mut self.law) {
                self.timers[which] = Some(law.on_timer(which, view));
            } else if let Some(datagram) = self.waiting.pop_front() {
                let datagram = self.start(at, datagram);
                self.free = at + self.rate.tx_time(Bytes::new(datagram.size().into()));
                send(self.free, datagram);
            }
        }
    }

    /// The stamp of the law's protocol in a datagram.
    fn stamp_of(&self, datagram: &Datagram<W>) -> Option<(Protocol, Stamp)> {
        let packet =
            Packet::parse(&datagram.bytes).filter(|packet| Some(packet.protocol) == self.protocol)?;
        Some((packet.protocol, headers::at_router(packet.protocol, packet.stamp, datagram.size())))
    }

    /// Stamps a datagram whose transmission starts.
    fn start(&mut self, now: Time, mut datagram: Datagram<W>) -> Datagram<W> {
        let size = datagram.size();
        self.queue_bytes -= u64::from(size);
        let view = self.view(now);
        let carried = self.stamp_of(&datagram);
        if let (Some(law), Some((protocol, was))) = (&mut self.law, carried) {
            let (mut stamp, mut bits) = (was, 0);
            law.on_departure(view, PacketOut { size, stamp: &mut stamp, bits: &mut bits }, || 0.5);
            // A stamp that the law leaves as it is must not change by rounding.
            if stamp != was {
                quic_stamp::replace(&mut datagram.bytes, protocol, |was| {
                    headers::from_router(protocol, &stamp, was.value)
                });
            }
            self.counts.stamped += 1;
        }
        if let Some(advice) = self.scone {
            if let scone::Lowered::From(_) = scone::lower(&mut datagram.bytes, advice) {
                self.counts.advised += 1;
            }
        }
        datagram
    }
}

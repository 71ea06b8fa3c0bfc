//! Per-flow measurements on the path: data delivered in order, according to the returning acks, and
//! retransmissions. QUIC's acks are encrypted, so the path knows only when such a flow began, and its client reports the
//! rest.
//!
//! A flow is identified by its unique port, which is the same in both directions.

use super::frame::{Datagram, Segment};
use flowstamp_laws::units::Time;
use std::ops::Range;

/// The range of flow ports; no other connection in the lab uses them.
pub const PORTS: Range<u16> = 40_000..48_000;

/// The number of the flow between these ports.
pub fn number_of(ports: [u16; 2]) -> Option<usize> {
    ports.into_iter().find(|port| PORTS.contains(port)).map(|port| usize::from(port - PORTS.start))
}

/// Measurements of one flow.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Bytes that the application exchanges before its data.
    preamble_bytes: u64,
    /// When its connection opened.
    pub opened: Option<Time>,
    /// When its first data passed, without the preamble.
    pub started: Option<Time>,
    /// When it sent a FIN.
    pub finished: Option<Time>,
    /// Bytes acknowledged in order, each counted once, without the preamble.
    pub delivered_bytes: u64,
    /// Delivered bytes at the end of the warm-up.
    pub delivered_at_warmup: u64,
    /// When the last new acknowledgement passed.
    pub last_ack: Option<Time>,
    /// Data packets whose bytes had all been sent before: retransmissions.
    pub retransmissions: u32,
    /// Retransmissions at the end of the warm-up.
    pub retransmissions_at_warmup: u32,
    /// Number of data packets.
    pub packets: u64,
    acked_bytes: u64,
    ack: Option<u32>,
    first_seq: Option<u32>,
    high_seq: Option<u32>,
}

/// The measurements of all flows, and samples at fixed intervals.
#[derive(Debug)]
pub struct Flows {
    flows: Vec<Flow>,
    warmup: Time,
    warm: bool,
    until: Time,
    /// State of the flows at `until`.
    ended: Option<Vec<Flow>>,
    every: Time,
    sample_at: Time,
    /// Delivered bytes of all flows at the end of each interval.
    samples: Vec<(Time, Vec<u64>)>,
}

impl Flows {
    /// Creates one flow per entry of `preambles`.
    pub fn new(preambles: &[u64], warmup: Time, until: Time, every: Time) -> Self {
        let flow = |preamble_bytes: &u64| Flow { preamble_bytes: *preamble_bytes, ..Flow::default() };
        Self {
            flows: preambles.iter().map(flow).collect(),
            warmup,
            warm: false,
            until,
            ended: None,
            every,
            sample_at: every,
            samples: Vec::new(),
        }
    }

    /// The flows in order, at the end of statistics.
    pub fn flows(&self) -> &[Flow] {
        self.ended.as_ref().unwrap_or(&self.flows)
    }

    /// Delivered bytes of all flows at the end of each interval.
    pub fn samples(&self) -> &[(Time, Vec<u64>)] {
        &self.samples
    }

    /// Takes the samples that are due up to `now`.
    pub fn advance(&mut self, now: Time) {
        if !self.warm && self.warmup <= now {
            self.warm = true;
            for flow in &mut self.flows {
                flow.delivered_at_warmup = flow.delivered_bytes;
                flow.retransmissions_at_warmup = flow.retransmissions;
            }
        }
        while self.sample_at <= now.min(self.until) {
            self.samples.push((self.sample_at, self.flows.iter().map(|f| f.delivered_bytes).collect()));
            self.sample_at += self.every;
        }
        if self.ended.is_none() && self.until <= now {
            self.ended = Some(self.flows.clone());
        }
    }

    fn of(&mut self, segment: &Segment) -> Option<&mut Flow> {
        self.flows.get_mut(number_of([segment.source, segment.destination])?)
    }

    /// Records a segment in the direction of the data.
    pub fn data(&mut self, now: Time, segment: &Segment) {
        let Some(flow) = self.of(segment) else { return };
        if segment.is_syn() {
            flow.opened.get_or_insert(now);
        }
        if segment.is_fin() {
            flow.finished.get_or_insert(now);
        }
        if segment.payload == 0 {
            return;
        }
        flow.packets += 1;
        let first = *flow.first_seq.get_or_insert(segment.seq);
        let end = segment.seq.wrapping_add(segment.payload);
        if u64::from(end.wrapping_sub(first)) > flow.preamble_bytes {
            flow.started.get_or_insert(now);
        }
        match flow.high_seq {
            Some(high) if (end.wrapping_sub(high) as i32) <= 0 => flow.retransmissions += 1,
            _ => flow.high_seq = Some(end),
        }
    }

    /// Records a datagram in either direction.
    pub fn datagram(&mut self, now: Time, datagram: &Datagram) {
        let number = number_of([datagram.source, datagram.destination]);
        let flow = number.and_then(|number| self.flows.get_mut(number));
        flow.map(|flow| flow.opened.get_or_insert(now));
    }

    /// Replaces the measurements of a flow by those that its client reports. `delivered` is the bytes delivered up
    /// to a time.
    pub fn report(&mut self, number: usize, flow: Flow, delivered: impl Fn(Time) -> u64) {
        let flows = self.ended.as_mut().unwrap_or(&mut self.flows);
        flows[number] = Flow { delivered_at_warmup: delivered(self.warmup), ..flow };
        for (time, all) in &mut self.samples {
            all[number] = delivered(*time);
        }
    }

    /// Records a segment in the direction of the acks.
    pub fn answer(&mut self, now: Time, segment: &Segment) {
        let Some(flow) = self.of(segment) else { return };
        if segment.is_syn() {
            flow.opened.get_or_insert(now);
        }
        if !segment.is_ack() {
            return;
        }
        let before = *flow.ack.get_or_insert(segment.ack);
        let more = segment.ack.wrapping_sub(before) as i32;
        if more > 0 {
            flow.ack = Some(segment.ack);
            flow.acked_bytes += more as u64;
            flow.delivered_bytes = flow.acked_bytes.saturating_sub(flow.preamble_bytes);
            flow.last_ack = Some(now);
        }
    }
}

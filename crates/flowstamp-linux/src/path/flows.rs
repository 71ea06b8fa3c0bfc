//! What the path sees of each flow: data delivered in order, by the acknowledgements that come back, and packets sent again.
//!
//! A flow is known by its one port of its own, the same for both directions.

use super::frame::Segment;
use flowstamp_laws::units::Time;
use std::ops::Range;

/// Ports of flows: no other connection in the lab uses them.
pub const PORTS: Range<u16> = 40_000..48_000;

/// The number of the flow between these ports.
pub fn number_of(ports: [u16; 2]) -> Option<usize> {
    ports.into_iter().find(|port| PORTS.contains(port)).map(|port| usize::from(port - PORTS.start))
}

/// One flow.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Bytes that the application exchanges before what it is about.
    preamble_bytes: u64,
    /// Its connection opened.
    pub opened: Option<Time>,
    /// Its first data came by, without the preamble.
    pub started: Option<Time>,
    /// It said that no more follows.
    pub finished: Option<Time>,
    /// Bytes acknowledged, in order and each once, without the preamble.
    pub delivered_bytes: u64,
    /// Of these, those of before the warm-up's end.
    pub delivered_at_warmup: u64,
    /// The last new acknowledgement.
    pub last_ack: Option<Time>,
    /// Data packets whose bytes had all been sent before.
    pub retransmissions: u32,
    /// Of these, those of before the warm-up's end.
    pub retransmissions_at_warmup: u32,
    /// Data packets.
    pub packets: u64,
    acked_bytes: u64,
    ack: Option<u32>,
    first_seq: Option<u32>,
    high_seq: Option<u32>,
}

/// All flows, and their progress at fixed intervals.
#[derive(Debug)]
pub struct Flows {
    flows: Vec<Flow>,
    warmup: Time,
    warm: bool,
    until: Time,
    /// The flows at `until`.
    ended: Option<Vec<Flow>>,
    every: Time,
    sample_at: Time,
    /// Delivered bytes of all flows at the end of each interval.
    samples: Vec<(Time, Vec<u64>)>,
}

impl Flows {
    /// As many flows as `preambles` has entries.
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

    /// The flows in their order, as they were at the end of statistics.
    pub fn flows(&self) -> &[Flow] {
        self.ended.as_ref().unwrap_or(&self.flows)
    }

    /// Their progress.
    pub fn samples(&self) -> &[(Time, Vec<u64>)] {
        &self.samples
    }

    /// Takes the samples due until `now`.
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

    /// A segment on its way with the data.
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

    /// A segment on its way back.
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

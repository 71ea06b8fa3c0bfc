//! A flow over one link, whose law can be looked at: a pace, a buffer, losses by chance, packets that are late.

use flowstamp_laws::sender::{FlowView, SenderLaw};
use flowstamp_laws::transport::{AckInfo, AckPacket, Agreed, DataPacket, Params, Receiver, Sender};
use flowstamp_laws::{Stamp, Time};
use std::collections::BTreeMap;

pub const PACKET: u32 = 1000;
/// 10 Mb/s in packets.
pub const RATE: f64 = 1250.0;
/// With it a pipe of 50 packets.
pub const RTT: Time = Time::from_millis(40);

enum Event {
    Data { seq: u32, sent_at: Time },
    Ack(AckInfo),
}

/// The flow and its link, at `now`.
pub struct FlowOnLink<L> {
    pub law: L,
    pub now: Time,
    pub sender: Sender,
    receiver: Receiver,
    /// Packets/s.
    pub rate: f64,
    /// Packets that may wait.
    pub buffer: f64,
    /// The share that is lost on the way.
    pub loss: f64,
    /// Packets/s of the application; none if there is always more. It produces from `since` on.
    pub application: Option<(f64, Time)>,
    /// By how much the next packet to leave is late.
    pub late: Time,
    /// Acks come at multiples of it, one for all.
    pub slot: Option<Time>,
    pub lost: u32,
    free: Time,
    last_departure: Option<Time>,
    pace_at: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    chance: u64,
    produced_before: f64,
}

impl<L: SenderLaw> FlowOnLink<L> {
    pub fn new(params: &L::Params, initial_window: f64) -> Self {
        let law = L::new(params, &FlowView { packet_bytes: PACKET, initial_window, app_rate: None });
        let transport = Params { min_rto: Time::from_secs(1), ..Params::default() };
        let agreed = Agreed::between(&transport, &L::traits(params));
        Self {
            law,
            now: Time::ZERO,
            sender: Sender::new(&transport, agreed, None),
            receiver: Receiver::new(&transport, agreed),
            rate: RATE,
            buffer: 1e9,
            loss: 0.0,
            application: None,
            late: Time::ZERO,
            slot: None,
            lost: 0,
            free: Time::ZERO,
            last_departure: None,
            pace_at: Time::MAX,
            events: BTreeMap::new(),
            order: 0,
            chance: 1,
            produced_before: 0.0,
        }
    }

    /// The application produces at another rate, none for as fast as it can, from now on.
    pub fn apply(&mut self, rate: Option<f64>) {
        self.produced_before = f64::from(self.sender.next_seq());
        self.application = rate.map(|rate| (rate, self.now));
    }

    fn available(&self) -> u32 {
        self.application.map_or(u32::MAX, |(rate, since)| {
            (self.produced_before + rate * (self.now - since).as_secs_f64()) as u32
        })
    }

    /// Packets that the receiver has.
    pub fn delivered(&self) -> u32 {
        self.receiver.delivered()
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> f64 {
        f64::from(self.sender.flight())
    }

    /// A number in [0, 1) (Knuth's MMIX constants).
    fn draw(&mut self) -> f64 {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 11) as f64 / (1u64 << 53) as f64
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn send(&mut self) {
        self.pace_at = Time::MAX;
        loop {
            if let (Some(last), Some(pace)) = (self.last_departure, self.law.pacing()) {
                let next = last + Time::from_secs_f64(f64::from(PACKET) / pace.rate.bytes_per_sec());
                if next > self.now {
                    self.pace_at = next;
                    return;
                }
            }
            let available = self.available();
            let Some(out) = self.sender.next_packet(self.now, &self.law, PACKET, available) else {
                if available < u32::MAX {
                    self.pace_at = self.now + Time::from_millis(1); // more may be there then
                }
                return;
            };
            self.last_departure = Some(self.now);
            let waiting = self.free.saturating_sub(self.now).as_secs_f64() * self.rate;
            let late = core::mem::take(&mut self.late);
            if self.draw() < self.loss || waiting > self.buffer {
                self.lost += 1;
                continue;
            }
            self.free = self.free.max(self.now) + Time::from_secs_f64(1.0 / self.rate);
            let at = self.free + RTT / 2 + late;
            self.schedule(at, Event::Data { seq: out.seq, sent_at: self.now });
        }
    }

    /// The next thing happens.
    pub fn step(&mut self) {
        let next = self.events.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
        self.now = next.min(self.pace_at).min(self.sender.deadline());
        assert!(self.now < Time::MAX, "nothing will happen");
        let stamp = Stamp::default();
        if next == self.now {
            match self.events.pop_first().expect("the next").1 {
                Event::Data { seq, sent_at } => {
                    let data = DataPacket { seq, ce: false, cwr: false, sent_at, stamp: &stamp, bits: 0 };
                    if let Some(ack) = self.receiver.on_data(self.now, &data, |_, _| {}) {
                        let at = self.now + RTT / 2;
                        match self.slot {
                            None => self.schedule(at, Event::Ack(ack)),
                            Some(slot) => {
                                let at = slot * at.as_ps().div_ceil(slot.as_ps());
                                self.events.insert((at, 0), Event::Ack(ack)); // instead of the one before it
                            }
                        }
                    }
                }
                Event::Ack(ack) => {
                    let packet = AckPacket {
                        cumulative: ack.cumulative,
                        sack: ack.sack.as_slice(),
                        ecn_echo: ack.ecn_echo,
                        sent_at: ack.sent_at,
                        stamp: &ack.stamp,
                        bits: ack.bits,
                    };
                    self.sender.on_ack(self.now, &mut self.law, PACKET, &packet);
                }
            }
        } else if self.sender.deadline() == self.now {
            self.sender.on_timeout(self.now, &mut self.law);
        }
        self.send();
    }

    /// Until something holds, at most for so long.
    pub fn until(&mut self, what: &str, most: Time, holds: impl Fn(&Self) -> bool) {
        let end = self.now + most;
        if self.now == Time::ZERO {
            self.send();
        }
        while !holds(self) {
            assert!(self.now < end, "{what}: not within {most}");
            self.step();
        }
    }

    /// For so long; `look` is called at each step.
    pub fn run(&mut self, time: Time, mut look: impl FnMut(&Self)) {
        let end = self.now + time;
        if self.now == Time::ZERO {
            self.send();
        }
        while self.now < end {
            self.step();
            look(self);
        }
    }
}

//! A path on which acks come one by one, and what tests say of numbers.

use flowstamp_laws::sender::{Ack, Congestion, FlowView, SenderLaw};
use flowstamp_laws::{Refused, Stamp, Time};

pub const PACKET: f64 = 1000.0;

/// A law on a path that loses nothing by itself: an ack takes a w-th of a round trip.
pub struct LosslessPath<L> {
    pub law: L,
    pub now: Time,
    pub min_rtt: Time,
    pub rtt: Time,
    delivered: u32,
    /// Since acks were last counted.
    pub acks: f64,
    pub round_trips: f64,
}

impl<L: SenderLaw> LosslessPath<L> {
    /// A flow that begins with so many packets.
    pub fn new(params: &L::Params, packets: f64, rtt: Time) -> Self {
        let flow = FlowView { packet_bytes: PACKET as u32, initial_window: packets, app_rate: None };
        assert_eq!(L::check(params), Ok(()));
        let law = L::new(params, &flow);
        let now = Time::from_secs(1);
        Self { law, now, min_rtt: rtt, rtt, delivered: 0, acks: 0.0, round_trips: 0.0 }
    }

    /// The window in packets.
    pub fn window(&self) -> f64 {
        self.law.cwnd() / PACKET
    }

    fn flight(&self) -> u32 {
        self.window() as u32
    }

    pub fn ack(&mut self) {
        let part = 1.0 / self.window();
        self.acks += 1.0;
        self.round_trips += part;
        self.ack_after(self.rtt.scale(part));
    }

    pub fn ack_after(&mut self, span: Time) {
        self.now += span;
        self.delivered = self.delivered.wrapping_add(1);
        let stamp = Stamp::default();
        self.law.on_ack(&Ack {
            min_rtt: self.min_rtt,
            delivered: self.delivered,
            flight: self.flight().max(1),
            ..Ack::of_one(self.now, self.rtt, &stamp)
        });
    }

    pub fn acks_for(&mut self, span: Time) {
        let end = self.now + span;
        while self.now < end {
            self.ack();
        }
    }

    pub fn lose(&mut self) {
        self.law.on_congestion(self.now, Congestion::Loss { flight: u32::MAX });
    }

    /// The mean window over time where one packet in `1 / p` is lost, from a loss at the present window on. Curves that are flat
    /// where a loss is come to rest after hundreds of cycles only: such a law begins where its formula has the loss.
    pub fn mean_window(&mut self, p: f64, settle: u32, cycles: u32) -> f64 {
        self.lose();
        for cycle in 0..settle + cycles {
            if cycle == settle {
                (self.acks, self.round_trips) = (0.0, 0.0);
            }
            for _ in 0..(1.0 / p) as u32 {
                self.ack();
            }
            self.lose();
        }
        self.acks / self.round_trips
    }
}

/// Equal within a share.
#[track_caller]
pub fn near(ours: f64, theirs: f64, within: f64) {
    assert!((ours / theirs - 1.0).abs() <= within, "{ours}, and {theirs} is expected within {within}");
}

/// Which parameter is refused.
#[track_caller]
pub fn refused<L: SenderLaw>(params: &L::Params, name: &str) {
    let refused: Refused = L::check(params).expect_err(name);
    assert_eq!(refused.0, name, "{}", refused.1);
}

//! What BBR knows of its path: the largest delivery rate of the last round trips, and the least round-trip time.

use crate::units::Time;

/// The most round trips that the filter can be asked for.
pub const LONGEST: usize = 32;

/// What a draft draws at random follows from the time's bits, well mixed: a law has no randomness, and two flows of a link do not
/// hear of a packet at the same time.
#[must_use]
pub const fn drawn(now: Time) -> u32 {
    (now.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The largest of what the last `window` round trips gave.
#[derive(Clone, Debug)]
pub struct MaxOverRounds {
    /// Of each round trip, at its number modulo the length.
    rounds: [f64; LONGEST],
    window: u32,
    round: u32,
    /// Of the rounds before the present one.
    earlier: f64,
}

impl MaxOverRounds {
    /// An empty filter over so many round trips.
    #[must_use]
    pub fn new(window: u32) -> Self {
        Self { rounds: [0.0; LONGEST], window: window.clamp(1, LONGEST as u32), round: 0, earlier: 0.0 }
    }

    fn at(&self, back: u32) -> f64 {
        self.rounds[self.round.wrapping_sub(back) as usize % LONGEST]
    }

    /// A round trip begins.
    pub fn next_round(&mut self) {
        self.round = self.round.wrapping_add(1);
        self.rounds[self.round as usize % LONGEST] = 0.0;
        self.earlier = (1..self.window).map(|back| self.at(back)).fold(0.0, f64::max);
    }

    /// A value of the present round trip.
    pub fn add(&mut self, value: f64) {
        let present = &mut self.rounds[self.round as usize % LONGEST];
        *present = present.max(value);
    }

    /// The largest, zero while there is none.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.earlier.max(self.at(0))
    }
}

/// Round trips by packets delivered: one is over when a packet arrives that left after it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    next: u32,
    /// The present ack is the first of a round trip.
    pub start: bool,
}

impl Rounds {
    /// An ack, after which `delivered` packets have been delivered, of a packet that left when `prior` had been.
    pub fn on_ack(&mut self, prior: u32, delivered: u32) {
        self.start = prior >= self.next;
        if self.start {
            self.next = delivered;
        }
    }

    /// The round trip begins anew here.
    pub fn restart(&mut self, delivered: u32) {
        self.next = delivered;
    }
}

/// The least round-trip time, and when it was last seen.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    window: Time,
    /// The least; [`Time::MAX`] while there is none.
    pub rtt: Time,
    /// When it was last seen, or waited for in vain.
    pub seen: Time,
    /// It was not seen for the whole window, as of the present ack.
    pub expired: bool,
}

impl MinRtt {
    /// A filter over so long.
    #[must_use]
    pub const fn new(window: Time) -> Self {
        Self { window, rtt: Time::MAX, seen: Time::ZERO, expired: false }
    }

    /// A sample.
    pub fn add(&mut self, now: Time, rtt: Time) {
        self.expired = self.rtt < Time::MAX && now > self.seen.saturating_add(self.window);
        if rtt <= self.rtt || self.expired {
            self.rtt = rtt;
            self.seen = now;
        }
    }
}

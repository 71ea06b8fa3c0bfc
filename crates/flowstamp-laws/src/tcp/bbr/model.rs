//! What every version of BBR has: the largest of what the last round trips gave, the least round-trip time, the count of round
//! trips, the pace, and which samples are the law's own doing.

use crate::units::Time;

/// The most round trips that the filter can be asked for.
pub const LONGEST: usize = 32;

/// What a draft draws at random follows from the time's bits, well mixed: a law has no randomness, and two flows of a link do not
/// hear of a packet at the same time.
#[must_use]
pub const fn drawn(now: Time) -> u32 {
    (now.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The largest of what the last `window` round trips gave, as of the last value: it ages only when a value enters, as Linux'
/// `minmax_running_max` does. So a flow that sees nothing but samples that do not count keeps what it knew, however long that lasts.
#[derive(Clone, Debug)]
pub struct MaxOverRounds {
    /// Of each round trip up to `newest`, at its number modulo the length.
    rounds: [f64; LONGEST],
    window: u32,
    round: u32,
    /// The round trip of the last value.
    newest: u32,
    /// Of the rounds before `newest`.
    earlier: f64,
}

impl MaxOverRounds {
    /// An empty filter over so many round trips.
    #[must_use]
    pub fn new(window: u32) -> Self {
        let window = window.clamp(1, LONGEST as u32);
        Self { rounds: [0.0; LONGEST], window, round: 0, newest: 0, earlier: 0.0 }
    }

    /// A round trip begins; what is too old for it stays until a value enters.
    pub const fn next_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// A round trip begins, and what is too old for it goes at once: for callers that have a value in each.
    pub fn forget_a_round(&mut self) {
        self.next_round();
        self.age();
    }

    /// Over so many round trips from the next one on.
    pub fn set_window(&mut self, window: u32) {
        self.window = window.clamp(1, LONGEST as u32);
    }

    /// A value of the present round trip.
    pub fn add(&mut self, value: f64) {
        if self.newest != self.round {
            self.age();
        }
        let present = &mut self.rounds[self.round as usize % LONGEST];
        *present = present.max(value);
    }

    /// Forgets what is out of the window of the present round trip.
    fn age(&mut self) {
        let since = self.round.wrapping_sub(self.newest).min(LONGEST as u32);
        (0..since).for_each(|back| *self.at(back) = 0.0);
        self.newest = self.round;
        self.earlier = (1..self.window).map(|back| *self.at(back)).fold(0.0, f64::max);
    }

    const fn at(&mut self, back: u32) -> &mut f64 {
        &mut self.rounds[self.round.wrapping_sub(back) as usize % LONGEST]
    }

    /// The largest, zero while there is none.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.earlier.max(self.rounds[self.newest as usize % LONGEST])
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
    /// The window follows the path where that is longer than a second.
    follows: bool,
    /// The least; [`Time::MAX`] while there is none.
    pub rtt: Time,
    /// When it was last seen, or waited for in vain.
    pub seen: Time,
    /// It was not seen for the whole window, as of the present ack.
    pub expired: bool,
}

impl MinRtt {
    /// A filter over the time that is given, or else over `usual`, and over as many round trips as that has seconds where they are longer. A
    /// visit to `ProbeRtt` takes two or three round trips, and would follow upon the last one there.
    #[must_use]
    pub fn new(given: Option<Time>, usual: Time) -> Self {
        let window = given.unwrap_or(usual);
        Self { window, follows: given.is_none(), rtt: Time::MAX, seen: Time::ZERO, expired: false }
    }

    /// A sample, which one as small as the least renews.
    pub fn add(&mut self, now: Time, rtt: Time) {
        self.expire(now);
        if rtt <= self.rtt || self.expired {
            (self.rtt, self.seen) = (rtt, now);
        }
    }

    /// A sample from when it was seen, which only a smaller one renews.
    pub fn lower(&mut self, now: Time, rtt: Time, seen: Time) {
        self.expire(now);
        if rtt < self.rtt || self.expired {
            (self.rtt, self.seen) = (rtt, seen);
        }
    }

    fn expire(&mut self, now: Time) {
        if self.rtt == Time::MAX {
            return;
        }
        let long = self.follows && self.rtt > Time::from_secs(1);
        let window = if long { self.window.scale(self.rtt.as_secs_f64()) } else { self.window };
        self.expired = now > self.seen.saturating_add(window);
    }
}

/// The pace in packets/s. It does not fall before the pipe was full.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub(super) rate: f64,
    seen_rtt: bool,
    /// Packets: the initial window times the gain of Startup.
    first: f64,
}

impl Pace {
    /// As if a round trip took a millisecond, while none is known.
    #[must_use]
    pub fn new(gain: f64, initial_window: f64) -> Self {
        let first = gain * initial_window;
        Self { rate: first / 1e-3, seen_rtt: false, first }
    }

    /// After an ack: the initial window's at the first round-trip time, then what the law wants.
    pub fn set(&mut self, srtt: Time, wanted: f64, filled_pipe: bool) {
        if !self.seen_rtt && srtt > Time::ZERO {
            self.seen_rtt = true;
            self.rate = self.first / srtt.as_secs_f64();
        }
        if wanted > 0.0 && (filled_pipe || wanted > self.rate) {
            self.rate = wanted;
        }
    }
}

/// Samples that the law itself limited, in `ProbeRtt`: of packets that left before so many were delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limited(Option<u32>);

impl Limited {
    /// What is in flight now is limited.
    pub fn mark(&mut self, delivered: u32, in_flight: f64) {
        self.0 = Some(delivered.saturating_add(in_flight as u32));
    }

    /// Whether a sample is.
    #[must_use]
    pub fn covers(&self, prior_delivered: u32) -> bool {
        self.0.is_some_and(|until| prior_delivered <= until)
    }
}

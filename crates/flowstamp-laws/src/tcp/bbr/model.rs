//! The parts that all versions of BBR share: windowed maximum, minimum RTT, round-trip counter, pace, and the record
//! of samples that the law itself limited.

use crate::units::Time;

/// Longest window of the maximum filter, in round trips.
pub const LONGEST: usize = 32;

/// Replaces the drafts' random draws by a hash of the time. A law has no randomness, and two flows on one link never
/// receive an ack at the same time.
#[must_use]
pub const fn drawn(now: Time) -> u32 {
    (now.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Maximum of the last `window` round trips. It ages only when a value enters, as in Linux's `minmax_running_max`. A
/// flow whose samples do not count therefore keeps its estimate, however long that lasts.
#[derive(Clone, Debug)]
pub struct MaxOverRounds {
    /// Maximum of each round trip up to `newest`, at index round modulo the length.
    rounds: [f64; LONGEST],
    window: u32,
    round: u32,
    /// The round trip of the last value.
    newest: u32,
    /// Maximum of the rounds before `newest`.
    earlier: f64,
}

impl MaxOverRounds {
    /// Creates an empty filter over `window` round trips, 1 to [`LONGEST`].
    #[must_use]
    pub fn new(window: u32) -> Self {
        let window = window.clamp(1, LONGEST as u32);
        Self { rounds: [0.0; LONGEST], window, round: 0, newest: 0, earlier: 0.0 }
    }

    /// Begins a round trip. Values too old for it stay until a value enters.
    pub const fn next_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Begins a round trip and drops values too old for it at once. For callers that add a value in every round trip.
    pub fn forget_a_round(&mut self) {
        self.next_round();
        self.age();
    }

    /// Sets the window in round trips, from the next round trip on.
    pub fn set_window(&mut self, window: u32) {
        self.window = window.clamp(1, LONGEST as u32);
    }

    /// Adds a value of the current round trip.
    pub fn add(&mut self, value: f64) {
        if self.newest != self.round {
            self.age();
        }
        let present = &mut self.rounds[self.round as usize % LONGEST];
        *present = present.max(value);
    }

    /// Drops values that are outside the window of the current round trip.
    fn age(&mut self) {
        let since = self.round.wrapping_sub(self.newest).min(LONGEST as u32);
        (0..since).for_each(|back| *self.at(back) = 0.0);
        self.newest = self.round;
        self.earlier = (1..self.window).map(|back| *self.at(back)).fold(0.0, f64::max);
    }

    const fn at(&mut self, back: u32) -> &mut f64 {
        &mut self.rounds[self.round.wrapping_sub(back) as usize % LONGEST]
    }

    /// The maximum, zero while there is no value.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.earlier.max(self.rounds[self.newest as usize % LONGEST])
    }
}

/// Counts round trips by packets delivered. A round trip ends when a packet that left after its start is
/// acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    next: u32,
    /// The current ack is the first of a round trip.
    pub start: bool,
}

impl Rounds {
    /// Takes an ack after which `delivered` packets are delivered. Its packet left when `prior` packets were
    /// delivered.
    pub fn on_ack(&mut self, prior: u32, delivered: u32) {
        self.start = prior >= self.next;
        if self.start {
            self.next = delivered;
        }
    }

    /// Restarts the round trip at `delivered` packets.
    pub fn restart(&mut self, delivered: u32) {
        self.next = delivered;
    }
}

/// Minimum round-trip time over a time window.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    window: Time,
    /// The window scales with the minimum RTT where that is above one second.
    follows: bool,
    /// The minimum; [`Time::MAX`] before the first sample.
    pub rtt: Time,
    /// When the minimum was last seen, or when the last ProbeRTT ended without seeing it.
    pub seen: Time,
    /// The minimum was not seen for a whole window, as of the current ack.
    pub expired: bool,
}

impl MinRtt {
    /// Creates a filter over the time `given`, or else over `usual`. Without `given`, an RTT above one second extends
    /// the window to as many round trips as `usual` has seconds. A visit to `ProbeRtt` takes two or three round
    /// trips, so that one visit would otherwise follow directly on the last.
    #[must_use]
    pub fn new(given: Option<Time>, usual: Time) -> Self {
        let window = given.unwrap_or(usual);
        Self { window, follows: given.is_none(), rtt: Time::MAX, seen: Time::ZERO, expired: false }
    }

    /// Takes a sample. One equal to the minimum renews it.
    pub fn add(&mut self, now: Time, rtt: Time) {
        self.expire(now);
        if rtt <= self.rtt || self.expired {
            (self.rtt, self.seen) = (rtt, now);
        }
    }

    /// Takes a sample seen at `seen`. Only a smaller one renews the minimum.
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

/// The pace in packets/s. It does not fall before the pipe has been full.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub(super) rate: f64,
    seen_rtt: bool,
    /// Packets: the initial window times Startup's gain.
    first: f64,
}

impl Pace {
    /// Creates a pace that assumes a round trip of one millisecond until the first RTT sample.
    #[must_use]
    pub fn new(gain: f64, initial_window: f64) -> Self {
        let first = gain * initial_window;
        Self { rate: first / 1e-3, seen_rtt: false, first }
    }

    /// Updates the pace after an ack: the initial window over the first RTT sample, then the rate that the law wants.
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

/// Samples that the law itself limited in `ProbeRtt`: those of packets that left before this many were delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limited(Option<u32>);

impl Limited {
    /// Marks the packets in flight now as limited.
    pub fn mark(&mut self, delivered: u32, in_flight: f64) {
        self.0 = Some(delivered.saturating_add(in_flight as u32));
    }

    /// Returns whether the sample of a packet is limited.
    #[must_use]
    pub fn covers(&self, prior_delivered: u32) -> bool {
        self.0.is_some_and(|until| prior_delivered <= until)
    }
}

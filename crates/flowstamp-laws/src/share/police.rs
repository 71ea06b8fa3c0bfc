//! Whether a flow obeys the feedback that it gets.
//!
//! Katabi 2002, section 7: a router that suspects a flow sends it a test feedback, and sees what it does within a round
//! trip; a flow that does not follow is isolated.
//!
//! ```text
//!   Watch     r over a round trip T; a heavy flow that has not been tested for a while is suspect, and so with RCP,
//!             where the rate it was told is known, only if r is a quarter above that
//!   Hold      T in which XCP gives nothing more, so that what it was given before has come
//!   Refer     r over another: what the test is measured by, r_0
//!   Tell      2 T: test feedback of r_0/2, for as long as it takes to be everywhere in the path and to be followed
//!   Judge     r over another; r <= 3/4 r_0 has passed, anything else has failed and is tested again at once
//!   Isolate   after the second failure in a row, for a time
//!
//!   r = bytes that came in a phase / the phase's length
//!   XCP's test feedback: each packet of b bytes in the first T of Tell carries -b / (2 T), which adds up to -r_0/2
//! ```
//!
//! A [`Flow`] is the state of one, told of each of its packets in turn. Which flows are kept is the caller's choice, and so is
//! what isolation means: a class of its own, or [`Flow::admits`], which holds it to `r_0/2`.
//!
//! A flow names its own round trip, and a stranger may name another in its name. T is the longest that was named in two watches, so that a
//! few packets that name too short a one have nobody judged too early; it stays as it is through a test; and it is within 10 ms and 2 s, or
//! one second where nobody names any. Who lies is judged the later, and two tests of the longest take 24 s.
//!
//! Deviations (paper says / we do / because):
//! 1. A flow that a router suspects / is one above a given rate, and with RCP above what it was told / the paper leaves
//!    open how suspicion arises, and light flows do no harm.
//! 2. The window is to fall to a particular value / to half, with 3/4 as the limit / what a flow's stack bunches
//!    together makes its rate over one round trip uncertain.
//! 3. One round trip / two, and 50 ms / one for the feedback to be at the sender, one for what it had sent before; acks
//!    may be held back that long.
//! 4. One failure is enough / it takes two in a row / a change of route or a pause of the peer looks like one.
//! 5. Nothing on several suspects / of one source a few are tested at a time, by [`Packet::free`] and [`Flow::test_time`] / many that
//!    halve at once leave a dent in the link; but were it one of all, who names long round trips would keep others from being tested.
//! 6. Isolation has no end / it ends, and the flow is watched again / a flow's ports and addresses may be another's by then.

use crate::Refused;
use crate::units::{Rate, Time};

/// Bounds of the round trip that a flow may name.
const MIN_ROUND: Time = Time::from_millis(10);
/// The longest; flows whose RTT is more have no time to follow a test.
pub const MAX_ROUND: Time = Time::from_secs(2);
/// T where none was named: what RFC 6298 (section 2.1) takes for the timeout of a path of which nothing is known.
const UNKNOWN_ROUND: Time = Time::from_secs(1);
/// An ack may be held back this long, and packets queue on the way.
const GRACE: Time = Time::from_millis(50);
/// Failures in a row that isolate.
const FAILURES: u32 = 2;
/// An isolated flow may send at once what it may send in this time, and two of the largest segments in any case.
const BUCKET_S: f64 = 0.1;
const MIN_BUCKET_BYTES: f64 = 4.0 * 65536.0;
/// The longest pause that fills the bucket.
const MAX_PAUSE_S: f64 = 1.0;

/// How strict the police is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Flows below it are not tested.
    pub heavy: Rate,
    /// From a test passed to the next.
    pub retest: Time,
    /// How long a flow is isolated.
    pub isolate: Time,
}

impl Params {
    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Refused> {
        if !(8000.0..=1e12).contains(&self.heavy.bps()) {
            return Err(("heavy", format!("is {}; it must be 8kbps to 1Tbps", self.heavy)));
        }
        if self.isolate == Time::ZERO {
            return Err(("isolate", "is 0s; it must be longer".into()));
        }
        Ok(())
    }
}

/// A packet, as it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When.
    pub now: Time,
    /// Its length.
    pub bytes: u32,
    /// The round trip that its sender names, if it knows one.
    pub rtt: Option<Time>,
    /// RCP: the rate that it carries.
    pub told: Option<Rate>,
    /// A test of the flow may begin: not too many of its source are being tested.
    pub free: bool,
}

/// The most that a packet of a flow under test is to tell it; `None` for whatever it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// RCP: a rate.
    pub rate: Option<Rate>,
    /// XCP: a change of throughput, bytes/s.
    pub change: Option<f64>,
}

/// How far the test of a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not tested.
    Watch,
    /// It is given nothing more.
    Hold,
    /// Its rate is taken.
    Refer,
    /// It is told to halve.
    Tell,
    /// Its rate is taken again.
    Judge,
    /// It has failed.
    Isolate,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct Flow {
    phase: Phase,
    since: Time,
    /// When the phase ends; none before the first packet.
    until: Option<Time>,
    /// Bytes in this phase.
    bytes: u64,
    /// T.
    round: Time,
    /// The longest round trip that was named since the last watch began, and in the one before.
    named: Time,
    named_before: Time,
    /// Not tested before.
    rest_until: Time,
    /// `r_0`, bytes/s.
    reference: f64,
    failures: u32,
    /// RCP: the most that it was told in this phase and the one before, bytes/s.
    told: f64,
    told_before: f64,
    /// Bytes that it may send while isolated, and when that was so.
    tokens: f64,
    tokens_at: Time,
    tests: u64,
    isolations: u64,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            phase: Phase::Watch,
            since: Time::ZERO,
            until: None,
            bytes: 0,
            round: Time::ZERO,
            named: Time::ZERO,
            named_before: Time::ZERO,
            rest_until: Time::ZERO,
            reference: 0.0,
            failures: 0,
            told: 0.0,
            told_before: 0.0,
            tokens: 0.0,
            tokens_at: Time::ZERO,
            tests: 0,
            isolations: 0,
        }
    }
}

impl Flow {
    fn enter(&mut self, phase: Phase, now: Time, lasts: Time) {
        self.phase = phase;
        self.since = now;
        self.until = Some(now.saturating_add(lasts));
        self.bytes = 0;
    }

    /// A watch begins, and with it another T.
    fn watch(&mut self, now: Time) {
        self.round = match self.named.max(self.named_before) {
            Time::ZERO => UNKNOWN_ROUND,
            named => named,
        };
        self.named_before = self.named;
        self.named = Time::ZERO;
        self.enter(Phase::Watch, now, self.round);
    }

    /// One of its packets leaves. What the packet is to carry is asked after this.
    pub fn on_packet(&mut self, params: &Params, packet: &Packet) {
        let now = packet.now;
        let unknown = self.named.max(self.named_before) == Time::ZERO;
        if let Some(rtt) = packet.rtt {
            self.named = self.named.max(rtt.clamp(MIN_ROUND, MAX_ROUND));
        }
        let told_now = packet.told.map_or(0.0, Rate::bytes_per_sec);
        self.told = self.told.max(told_now);
        // What a watch of an unknown flow would wait for has come.
        let named = unknown && self.phase == Phase::Watch && packet.rtt.is_some();
        if self.until.is_none() || named {
            self.watch(now);
        }
        if self.until.is_some_and(|until| now >= until) {
            let rate = self.rate(now);
            let told = self.told.max(self.told_before);
            self.told_before = self.told;
            self.told = told_now;
            self.advance(params, packet, rate, told);
        }
        self.bytes += u64::from(packet.bytes);
    }

    /// The phase has ended; its `rate`, and the most that the flow was told, bytes/s.
    fn advance(&mut self, params: &Params, packet: &Packet, rate: f64, told: f64) {
        let now = packet.now;
        let round = self.round;
        let heavy = rate >= params.heavy.bytes_per_sec();
        match self.phase {
            Phase::Watch => {
                let suspect = heavy && rate > 1.25 * told; // deviation 1
                if packet.free && suspect && now >= self.rest_until {
                    self.enter(Phase::Hold, now, round + GRACE);
                } else {
                    self.watch(now);
                }
            }
            Phase::Hold => self.enter(Phase::Refer, now, round),
            Phase::Refer if heavy => {
                self.reference = rate;
                self.tests += 1;
                self.enter(Phase::Tell, now, round * 2 + GRACE); // deviation 3
            }
            Phase::Refer => self.watch(now),
            Phase::Tell => self.enter(Phase::Judge, now, round + GRACE),
            Phase::Judge if rate <= 0.75 * self.reference => {
                self.failures = 0;
                self.rest_until = now.saturating_add(params.retest);
                self.watch(now);
            }
            Phase::Judge => {
                self.failures += 1;
                if self.failures >= FAILURES {
                    self.isolations += 1;
                    self.tokens = 0.0;
                    self.tokens_at = now;
                    self.enter(Phase::Isolate, now, params.isolate);
                } else {
                    // The rate that it now has counts, which may be above the one before.
                    self.watch(now);
                }
            }
            Phase::Isolate => {
                self.failures = 0;
                self.rest_until = now;
                self.watch(now); // deviation 6
            }
        }
    }

    /// `r` so far in this phase, bytes/s.
    fn rate(&self, now: Time) -> f64 {
        self.bytes as f64 / now.saturating_sub(self.since).max(Time::from_nanos(1)).as_secs_f64()
    }

    /// RCP: the most that its packets are to carry; none while it is not being told anything.
    #[must_use]
    pub fn most_told(&self) -> Option<Rate> {
        matches!(self.phase, Phase::Tell | Phase::Judge)
            .then(|| Rate::from_bytes_per_sec(self.reference / 2.0))
    }

    /// XCP: the most that its packet of `bytes` is to carry, a change of throughput in bytes/s; none while it is not tested.
    #[must_use]
    pub fn most_change(&self, now: Time, bytes: u32) -> Option<f64> {
        match self.phase {
            Phase::Watch | Phase::Isolate => None,
            Phase::Tell if now.saturating_sub(self.since) < self.round => {
                Some(-f64::from(bytes) / 2.0 / self.round.as_secs_f64())
            }
            _ => Some(0.0),
        }
    }

    /// The most that its packet of `bytes`, which leaves now, is to tell it.
    #[must_use]
    pub fn told(&self, now: Time, bytes: u32) -> Told {
        Told { rate: self.most_told(), change: self.most_change(now, bytes) }
    }

    /// Whether an isolated flow's packet is within `r_0/2`; a token bucket of 100 ms.
    pub fn admits(&mut self, now: Time, bytes: u32) -> bool {
        let allowed = self.reference / 2.0;
        let passed = now.saturating_sub(self.tokens_at).as_secs_f64().min(MAX_PAUSE_S);
        self.tokens = (self.tokens + passed * allowed).min((allowed * BUCKET_S).max(MIN_BUCKET_BYTES));
        self.tokens_at = now;
        let within = self.tokens >= f64::from(bytes);
        if within {
            self.tokens -= f64::from(bytes);
        }
        within
    }

    /// How long a test that now begins may take, and what it leaves behind: it counts as one of its source's for so long.
    #[must_use]
    pub fn test_time(&self) -> Time {
        self.round * 12 + GRACE * 3
    }

    /// How far its test has come.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The rate `r_0` that it was last tested at.
    #[must_use]
    pub const fn reference(&self) -> Rate {
        Rate::from_bytes_per_sec(self.reference)
    }

    /// T; none before the first packet.
    #[must_use]
    pub const fn round(&self) -> Option<Time> {
        if self.until.is_none() { None } else { Some(self.round) }
    }

    /// When the running phase began, and what has come in it.
    #[must_use]
    pub const fn running(&self) -> (Time, u64) {
        (self.since, self.bytes)
    }

    /// Tests begun, failures in a row, and isolations so far.
    #[must_use]
    pub const fn outcome(&self) -> (u64, u32, u64) {
        (self.tests, self.failures, self.isolations)
    }
}

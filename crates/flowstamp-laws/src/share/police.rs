//! Tests whether a flow obeys the feedback that it gets, and isolates one that does not.
//!
//! Katabi 2002, section 7: a router that suspects a flow sends it a test feedback, and sees what it does within a round
//! trip; a flow that does not follow is isolated.
//!
//! ```text
//!   Watch     r over a round trip T; a heavy flow that has not been tested for a while is suspect, and so with RCP,
//!             where the rate it was told is known, only if r is a quarter above that
//!   Hold      T in which XCP gives nothing more, so that what it was given before has come
//!   Refer     r over another; the test is measured by r_0, the larger of this rate and Hold's
//!   Tell      2 T: test feedback of r_0/2, for as long as it takes to be everywhere in the path and to be followed
//!   Judge     r over another
//!               r >  3/4 r_0                failed: told again at once, r_0 = r
//!               r >= 1/4 r_0                passed
//!               r <  1/4 r_0                void: more than the test asked for, so something else slowed the flow
//!   Isolate   after the second failure without a pass in between, for a time
//!
//!   r = bytes that came in a phase / the phase's length
//!   XCP's test feedback: each packet of b bytes in the first T of Tell carries -b / (2 T), which adds up to -r_0/2
//! ```
//!
//! A [`Flow`] is the state of one flow. Tell it of each packet in turn. The caller chooses which flows to keep. It also chooses
//! what isolation means: a class of its own, or [`Flow::admits`], which holds the flow to its allowance:
//!
//! ```text
//!   allowance = min(allowance before, r_0) / 2         at each isolation, and at most 2 heavy
//!   allowance = allowance / 2                          after each second in which the link dropped packets; at least heavy/8
//! ```
//!
//! Packets of an isolated flow are input to the router law and no more: they enter none of its sums and carry no increase. **Probation** follows
//! isolation. The flow stays as it is until its next tests: two passes set it free, a failure isolates it again, and a flow that has become
//! light is let go with one failure.
//!
//! A flow is **proven** by a pass; by four, if the link dropped packets during the tests; or with RCP by four watches at the rate that it was told. A
//! failure takes the proof away. A link in [`Trouble`] drops packets all the time. There a flow that is not proven has `heavy`, and goes on
//! probation if it sends more. What packets of other flows say is bounded by a [`Belief`].
//!
//! A flow names its own round trip, and a stranger may name another in its name. T is the longest that was named in two watches, so that a
//! few packets that name too short a one have nobody judged too early. T stays as it is through a test. It is within 10 ms and 2 s, or
//! one second where nobody names any. Two tests of the longest take 18 s.
//!
//! Deviations (paper says / we do / because):
//! 1. A flow that a router suspects / is one above a given rate, and with RCP above what it was told / the paper leaves
//!    open how suspicion arises, and light flows do no harm.
//! 2. The window is to fall to a particular value / to half, with 3/4 as the limit / what a flow's stack bunches
//!    together makes its rate over one round trip uncertain.
//! 3. One round trip / two, and 50 ms / one for the feedback to be at the sender, one for what it had sent before; acks
//!    may be held back that long.
//! 4. One failure is enough / it takes two without a pass / a change of route or a pause of the peer looks like one.
//! 5. Nothing on several suspects / of one source a few are tested at a time, by [`Packet::free`] and [`Flow::test_time`] / many that
//!    halve at once leave a dent in the link; but were it one of all, who names long round trips would keep others from being tested.
//! 6. Isolation has no end / it ends, and probation follows / a flow's ports and addresses may be another's by then.
//! 7. A flow passes if its window has fallen / only if its rate is not below a quarter and none of it was held back / a flow whose own
//!    losses stop it for a while has not obeyed, and would pass by chance.
//! 8. Nothing on how much an isolated flow may send / half, and half again while the link drops packets / half of a flow that sends
//!    twice what the link carries is all of the link.
//! 9. Packets count for what their senders say / a flow weighs at most 1.25 times as an honest one of its measured rate, and its RTT at
//!    most four times what proven flows have named ([`Belief`]) / a flow is judged only after seconds, and takes what it likes until then.
//! 10. Only verdicts isolate / on a link in trouble flows that are not proven are held, too / one that names 2 s is judged after 18 s.

use crate::Refused;
pub use crate::stamp::{Belief, Told};
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
/// What proves that a flow obeys: one pass without losses, or so many with losses of the link, or watches at the rate that it was told.
const PROOF: u32 = 4;
/// What a void test takes of that.
const VOID: u32 = 2;
/// The link's drops are looked at this often, and after so many periods in a row with drops it is in trouble.
const PERIOD: Time = Time::from_secs(1);
const TROUBLED_PERIODS: u32 = 2;
/// A flow's packets weigh at most as so many flows of its rate do.
const MOST_FLOWS: f64 = 1.25;
/// An RTT counts as at most this many times the longest that a flow which passed has named.
const MOST_RTT: u64 = 4;
/// RTTs of flows that passed are remembered for one to two times so many retest times.
const MEMORY: u64 = 2;
/// An isolated flow may send at once what it may send in this time, and two of the largest segments in any case.
const BUCKET_S: f64 = 0.1;
const MIN_BUCKET_BYTES: f64 = 2.0 * 65536.0;
/// Isolation begins with at most so many times `heavy`.
const MOST_HEAVY: f64 = 2.0;
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
    /// How many packets the link has dropped so far.
    pub drops: u64,
}

/// Whether a link drops packets all the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    since: Time,
    seen: u64,
    /// Periods with drops, in a row and in all.
    row: u32,
    all: u64,
}

impl Trouble {
    /// The link has dropped `drops` packets by now.
    pub fn look(&mut self, now: Time, drops: u64) {
        if now.saturating_sub(self.since) < PERIOD {
            return;
        }
        let bad = drops != self.seen;
        self.row = if bad { self.row.saturating_add(1) } else { 0 };
        self.all += u64::from(bad);
        self.seen = drops;
        self.since = now;
    }

    /// It does.
    #[must_use]
    pub fn lasts(&self) -> bool {
        self.row >= TROUBLED_PERIODS
    }
}

/// RTTs that flows which passed a test have named: what others are believed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Witnesses {
    longest: Time,
    before: Time,
    until: Time,
}

impl Witnesses {
    /// A flow that named `rtt` has passed a test.
    pub fn passed(&mut self, params: &Params, now: Time, rtt: Time) {
        if now >= self.until {
            self.before = self.longest;
            self.longest = Time::ZERO;
            self.until = now.saturating_add(params.retest * MEMORY);
        }
        self.longest = self.longest.max(rtt);
    }

    /// The longest that is remembered; none before the first.
    #[must_use]
    pub fn longest(&self) -> Option<Time> {
        Some(self.longest.max(self.before)).filter(|rtt| *rtt > Time::ZERO)
    }
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
    /// The rate of the last phase that has ended, bytes/s.
    last_rate: f64,
    /// The RTT that it named when it last passed; zero if it never has.
    passed: Time,
    /// Isolation has ended, and no test has ended since.
    probation: bool,
    /// What speaks for it since its last failure, up to `PROOF`.
    credit: u32,
    /// How many packets the link had dropped when the test began, and isolation had held back of this flow when its judgement did.
    test_drops: u64,
    judge_held: u64,
    /// How many isolation has held back.
    held: u64,
    /// Some were since it was last proven.
    marked: bool,
    /// Not tested before.
    rest_until: Time,
    /// `r_0`, bytes/s.
    reference: f64,
    failures: u32,
    /// RCP: the most that it was told in this phase and the one before, bytes/s.
    told: f64,
    told_before: f64,
    /// The most that it may send while isolated, bytes/s; infinite before the first time.
    allowed: f64,
    /// How many bad periods of the link it has been slowed down for.
    eased: u64,
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
            last_rate: 0.0,
            passed: Time::ZERO,
            probation: false,
            credit: 0,
            test_drops: 0,
            judge_held: 0,
            held: 0,
            marked: false,
            rest_until: Time::ZERO,
            reference: 0.0,
            failures: 0,
            told: 0.0,
            told_before: 0.0,
            allowed: f64::INFINITY,
            eased: 0,
            tokens: 0.0,
            tokens_at: Time::ZERO,
            tests: 0,
            isolations: 0,
        }
    }
}

/// What an allowance of so many bytes/s lets go on at once.
fn depth(allowed: f64) -> f64 {
    (allowed * BUCKET_S).max(MIN_BUCKET_BYTES)
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
            named => named.clamp(MIN_ROUND, MAX_ROUND),
        };
        self.named_before = self.named;
        self.named = Time::ZERO;
        let lasts = if self.probation { MAX_ROUND } else { self.round };
        self.enter(Phase::Watch, now, lasts);
    }

    /// One of its packets leaves. What the packet is to carry is asked after this.
    pub fn on_packet(&mut self, params: &Params, packet: &Packet) {
        let now = packet.now;
        let unknown = self.named.max(self.named_before) == Time::ZERO;
        let rtt = packet.rtt.unwrap_or_default();
        self.named = self.named.max(rtt);
        let told_now = packet.told.map_or(0.0, Rate::bytes_per_sec);
        self.told = self.told.max(told_now);
        // What a watch of an unknown flow would wait for has come.
        let named = unknown && self.phase == Phase::Watch && rtt > Time::ZERO;
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
        // A marked flow is told to stay below `heavy`.
        let least = params.heavy.bytes_per_sec() / if self.marked { 2.0 } else { 1.0 };
        let heavy = rate >= least;
        self.last_rate = rate;
        match self.phase {
            Phase::Watch => {
                let suspect = heavy && (self.probation || rate > 1.25 * told); // deviation 1
                let due = self.probation || now >= self.rest_until;
                if suspect && packet.free && due {
                    self.test_drops = packet.drops;
                    self.enter(Phase::Hold, now, round + GRACE);
                    return;
                }
                if heavy && told > 0.0 && !suspect && !self.probation {
                    self.credit(1);
                }
                if self.probation && !suspect {
                    self.probation = false;
                    self.failures = self.failures.min(FAILURES - 1);
                }
                self.watch(now);
            }
            Phase::Hold => {
                self.reference = rate;
                self.enter(Phase::Refer, now, round);
            }
            Phase::Refer if rate.max(self.reference) >= least => {
                self.tell(now, rate.max(self.reference));
            }
            Phase::Refer => self.watch(now),
            Phase::Tell => {
                self.judge_held = self.held;
                self.enter(Phase::Judge, now, round + GRACE);
            }
            Phase::Judge if rate > 0.75 * self.reference => {
                self.failures += 1;
                self.credit = 0;
                self.passed = Time::ZERO;
                if self.failures >= FAILURES {
                    self.isolate(params, now);
                } else {
                    self.test_drops = packet.drops;
                    self.tell(now, rate);
                }
            }
            Phase::Judge => {
                self.rest_until = now.saturating_add(Time::from_ps(params.retest.as_ps() / 4));
                // Deviation 7.
                if rate >= 0.25 * self.reference && self.held == self.judge_held {
                    self.credit(match (packet.drops == self.test_drops, self.marked) {
                        (true, false) => PROOF,
                        (true, true) => PROOF / 2,
                        (false, _) => 1,
                    });
                    if self.is_proven() {
                        self.rest_until = now.saturating_add(params.retest);
                    }
                } else {
                    self.credit = self.credit.saturating_sub(VOID);
                }
                self.watch(now);
            }
            Phase::Isolate => {
                self.probation = true;
                self.watch(now); // deviation 6
            }
        }
    }

    /// It is told to halve `reference`, bytes/s.
    fn tell(&mut self, now: Time, reference: f64) {
        self.reference = reference;
        self.tests += 1;
        self.enter(Phase::Tell, now, self.round * 2 + GRACE); // deviation 3
    }

    /// Something speaks for it. With enough, a failure is forgotten; without failures it is free.
    fn credit(&mut self, credit: u32) {
        self.credit = (self.credit + credit).min(PROOF);
        if self.credit < PROOF {
            return;
        }
        self.failures = self.failures.saturating_sub(1);
        if self.failures > 0 {
            self.credit = 0;
            return;
        }
        self.probation = false;
        self.marked = false;
        self.allowed = f64::INFINITY;
        self.passed = self.named.max(self.named_before);
    }

    fn isolate(&mut self, params: &Params, now: Time) {
        self.isolations += 1;
        self.failures = FAILURES;
        let most = MOST_HEAVY * params.heavy.bytes_per_sec();
        self.allowed =
            (self.allowed.min(self.reference) / 2.0).clamp(params.heavy.bytes_per_sec() / 8.0, most);
        self.tokens = 0.0;
        self.tokens_at = now;
        self.enter(Phase::Isolate, now, params.isolate);
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
            Phase::Watch if !self.probation => None,
            Phase::Tell if now.saturating_sub(self.since) < self.round => {
                Some(-f64::from(bytes) / 2.0 / self.round.as_secs_f64())
            }
            _ => Some(0.0),
        }
    }

    /// The most that its packet of `bytes`, which leaves now, is to tell it. A marked flow is to stay within its bucket, so that it can be
    /// tested if it obeys: it grows by half in a round trip, and not at all once half of its bucket is used up.
    #[must_use]
    pub fn told(&self, params: &Params, now: Time, bytes: u32) -> Told {
        let heavy = params.heavy;
        let (mut rate, mut change) = (self.most_told(), self.most_change(now, bytes));
        if self.marked && !self.is_isolated() {
            rate = Some(rate.map_or(heavy, |rate| if rate < heavy { rate } else { heavy }));
            let short = self.tokens < depth(heavy.bytes_per_sec()) / 2.0;
            let growth = if short { 0.0 } else { f64::from(bytes) / 2.0 / self.round.as_secs_f64() };
            change = change.or(Some(growth));
        }
        Told { rate, change }
    }

    /// Whether it is isolated, or on probation: [`Self::admits`] says what of it goes on.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.phase == Phase::Isolate || self.probation
    }

    /// Whether enough speaks for it, and nothing since against it.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.credit >= PROOF
    }

    /// What its packets are believed.
    #[must_use]
    pub fn belief(&self, witnesses: &Witnesses) -> Belief {
        let most_rtt = witnesses.longest().map(|longest| self.passed.max(longest) * MOST_RTT);
        Belief { most_rtt, least_rate: self.last_rate / MOST_FLOWS }
    }

    /// The RTT that it named when it was last proven; none if it never was, or has failed since.
    #[must_use]
    pub fn passed(&self) -> Option<Time> {
        Some(self.passed).filter(|rtt| *rtt > Time::ZERO)
    }

    /// Whether its packet may go on, by a token bucket of 100 ms. An isolated flow has its allowance. A flow that is not proven has
    /// `heavy` while the link is in trouble, and from then on; one that sends more goes on probation.
    pub fn admits(&mut self, params: &Params, now: Time, bytes: u32, trouble: &Trouble) -> bool {
        let heavy = params.heavy.bytes_per_sec();
        let isolated = self.is_isolated();
        if !isolated {
            self.eased = trouble.all;
            if self.is_proven() || (!trouble.lasts() && !self.marked) {
                return true;
            }
        }
        if self.eased != trouble.all {
            // Deviation 8; without a verdict no further than it can be tested at.
            let least = heavy / if self.failures > 0 { 8.0 } else { 2.0 };
            self.allowed = self.allowed.min((self.allowed / 2.0).max(least));
            self.eased = trouble.all;
        }
        let allowed = if isolated { self.allowed } else { heavy };
        let within = self.takes(now, bytes, allowed);
        if !within {
            self.held += 1;
            self.marked = true;
            if !isolated {
                self.probation = true; // deviation 10
                self.allowed = self.allowed.min(heavy);
            }
        }
        within
    }

    /// Whether the bucket of `allowed` bytes/s has a packet's tokens, which are then gone.
    fn takes(&mut self, now: Time, bytes: u32, allowed: f64) -> bool {
        let passed = now.saturating_sub(self.tokens_at).as_secs_f64().min(MAX_PAUSE_S);
        self.tokens = (self.tokens + passed * allowed).min(depth(allowed));
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
        self.round * 12 + GRACE * 5
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

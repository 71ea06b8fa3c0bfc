//! Tests whether a flow obeys its feedback, and isolates a flow that does not.
//!
//! Katabi 2002, section 7: a router that suspects a flow sends it a test feedback and observes its rate within a
//! round trip. It isolates a flow that does not follow.
//!
//! ```text
//!   Watch     r over a round trip T, at least 200 ms; a heavy flow that has not been tested for a while is suspect. With
//!             RCP, where the rate that it was told is known, it is suspect only if r is a quarter above that rate
//!   Hold      T and 50 ms in which XCP gives no more increases, so that earlier ones take effect
//!   Refer     r over as long again; the reference rate r_0 is the larger of this rate and Hold's
//!   Tell      2 T and 50 ms: test feedback of r_0/2, until it has crossed the path and the flow has followed
//!   Judge     r over T and 50 ms
//!               r >  3/4 r_0                failed: Tell follows again at once, with r_0 = r
//!             otherwise r over 200 ms, if that is longer
//!               r >  3/4 r_0                failed
//!               r >  3/4 of Refer's rate    unclear: it had slowed before it was told. Tell follows again at once, with
//!                                           r_0 = r, and r replaces Refer's rate. Where T is below 200 ms, Watch's rate
//!                                           stands for Refer's if it is lower. A flow below 3/4 of heavy is not told
//!                                           again: one of the next two verdicts holds
//!               r >= 1/4 r_0                passed
//!               r <  1/4 r_0                void: it fell by more than the test asked for, so something else slowed the flow
//!   Isolate   at the second failure on record, for a time
//!
//!   r = bytes that arrived in a phase / the phase's length
//!   XCP's test feedback: each packet of b bytes in the first T of Tell carries -b / (2 T), which adds up to -r_0/2
//! ```
//!
//! A [`Flow`] is the state of one flow. The caller reports each packet and chooses which flows to keep. It also
//! chooses the kind of isolation: a separate class, or [`Flow::admits`], which limits the flow to its allowance:
//!
//! ```text
//!   allowance = min(allowance before, r_0) / 2         at each isolation, and at most 2 heavy
//!   allowance = allowance / 2                          after each second in which the link dropped packets; at least heavy/8
//! ```
//!
//! For the router law, packets of an isolated flow are only input: they enter none of its sums and carry no increase.
//! **Probation** follows isolation. The flow keeps its limits until its next tests. A failure isolates it again. A flow
//! that has become light leaves probation with one failure on record.
//!
//! One pass **proves** a flow. It takes two if the flow is marked, and four if the link dropped packets during the tests.
//! With RCP, four watches at the rate that it was told also prove it. A failure removes the proof, and the first proof
//! after it only removes the failure. A link in [`Trouble`] drops packets continually. On such a link an unproven flow
//! may send at `heavy`. If it sends more, it goes on probation without a verdict, and is **marked**: until it is proven,
//! `heavy` limits it on any link. Deviation 10 names the other flows that are marked. A [`Belief`] bounds the values in
//! a flow's headers.
//!
//! A flow's headers state its round trip, and an attacker may spoof packets with another one. T is the longest round
//! trip stated in two watches, so that a few packets with too short a value do not cause an early verdict. T does not
//! change during a test. It is between 10 ms and 2 s, or one second where no packet states one. Two tests at the longest T take 18 s.
//! A flow that states 1 ms and sends a window every 50 ms can show any rate over 60 ms; 200 ms cover at least four such
//! windows.
//!
//! Deviations (paper says / we do / because):
//! 1. The router tests a flow that it suspects / a flow is suspect above a given rate, and with RCP only above the
//!    rate it was told / the paper leaves open how suspicion arises, and light flows do no harm.
//! 2. The window must fall to a particular value / the rate must fall to half, with 3/4 as the limit / bursts from
//!    the flow's stack make its rate over one round trip uncertain.
//! 3. The test lasts one round trip / it lasts two round trips and 50 ms / one for the feedback to reach the sender,
//!    one for its earlier packets; acks may be delayed by 50 ms.
//! 4. One failure is enough / isolation takes two failures on record, and a proof removes one / a change of route or a
//!    pause of the peer looks like a failure.
//! 5. Nothing on several suspects / a few flows of each source are tested at a time, by [`Packet::free`] and
//!    [`Flow::test_time`] / many flows that halve at once leave the link under-used. With one test for all sources, a
//!    flow that states long round trips would block the tests of others.
//! 6. Isolation has no end / it ends, and probation follows / a flow's ports and addresses may pass to another flow.
//! 7. A flow passes if its window has fallen / it passes only if its rate is also at least a quarter of r_0, below what
//!    it was before the test, and none of its packets was held back / a flow that pauses because of its own losses, or
//!    that is slowed by a growing queue, has not obeyed. It would otherwise pass by chance.
//! 8. Nothing on how much an isolated flow may send / half of its rate, halved again while the link drops packets /
//!    half of a flow at twice the link's rate still fills the link.
//! 9. Packets count as their headers state / a flow weighs at most 1.25 times as much as an honest one of its
//!    measured rate, and its RTT counts as at most four times the longest that proven flows have stated ([`Belief`])
//!    / a verdict takes seconds, and until then the flow would take as much as it claims.
//! 10. Only verdicts isolate / unproven flows are also limited to `heavy`: on a link in trouble, after void tests in which
//!     the link dropped packets, and where a window of less than two packets cannot be halved / the verdict on a flow that
//!     states 2 s takes 18 s, and some flows never get a verdict.

mod limit;
mod link;

use crate::Refused;
pub use crate::stamp::{Belief, FeedbackBounds};
use crate::units::{Rate, Time};
pub use link::{Trouble, Witnesses};

/// Lower bound of T.
const MIN_ROUND: Time = Time::from_millis(10);
/// Upper bound of T. Flows with a longer RTT have no time to follow a test.
pub const MAX_ROUND: Time = Time::from_secs(2);
/// T where no packet states one: RFC 6298's timeout (section 2.1) for an unknown path.
const UNKNOWN_ROUND: Time = Time::from_secs(1);
/// Allowance for delayed acks and queueing.
const GRACE: Time = Time::from_millis(50);
/// A pass needs a rate over at least this time. It covers four round trips of 50 ms, so that one burst more or less does
/// not decide.
const MEASURE: Time = Time::from_millis(200);
/// A flow with less in flight, two packets of 1500 bytes, cannot halve its window.
const MIN_WINDOW_BYTES: f64 = 3000.0;
/// Number of failures on record that isolate a flow. A full credit removes one.
const FAILURES: u32 = 2;
/// Credit that proves that a flow follows its law. A pass gives all of it if the link dropped no packets during the
/// test, or half to a marked flow. A pass with drops gives 1, as does an RCP watch at the rate that the flow was told.
const PROOF: u32 = 4;
/// Credit that a void test removes.
const VOID: u32 = 2;
/// A flow's packets weigh at most as much as this many honest flows of its rate.
const MOST_FLOWS: f64 = 1.25;
/// An RTT counts as at most this many times the longest that a proven flow has stated.
const MOST_RTT: u64 = 4;
/// Upper bound of the allowance at the start of isolation, in multiples of `heavy`.
const MOST_HEAVY: f64 = 2.0;

/// Parameters of the tests.
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
    /// Checks the parameters.
    ///
    /// # Errors The first invalid parameter, and a value that would be right.
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

/// A packet of a flow, as the caller counts it.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Time at which it is counted.
    pub now: Time,
    /// Size of the packet.
    pub bytes: u32,
    /// The round trip that its header states, if any.
    pub rtt: Option<Time>,
    /// RCP: the rate that it carries.
    pub told: Option<Rate>,
    /// A test of the flow may begin, because not too many flows of its source are being tested.
    pub free: bool,
    /// Number of packets that the link has dropped so far.
    pub drops: u64,
}

/// Phase of a flow's test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The flow is not under test.
    Watch,
    /// The flow gets no more increases.
    Hold,
    /// Its reference rate is measured.
    Refer,
    /// The flow is told to halve its rate.
    Tell,
    /// Its rate is measured again.
    Judge,
    /// The flow has failed and is isolated.
    Isolate,
}

/// State of one flow.
#[derive(Clone, Debug)]
pub struct Flow {
    phase: Phase,
    since: Time,
    /// When the phase ends; `None` before the first packet.
    until: Option<Time>,
    /// Bytes that arrived in this phase.
    bytes: u64,
    /// T.
    round: Time,
    /// The longest round trip stated since the last watch began, and in the watch before.
    named: Time,
    named_before: Time,
    /// Rate in the last complete T, bytes/s; when the running T began, and the bytes that arrived in it.
    last_rate: f64,
    last_since: Time,
    last_bytes: u64,
    /// The RTT that the flow stated when last proven; zero if it never was, or has failed since.
    passed: Time,
    /// The flow keeps its rate limit until its next tests: isolation has ended, or the unproven flow sent more than
    /// `heavy` while that was its limit.
    probation: bool,
    /// Credit since the last failure, up to `PROOF`.
    credit: u32,
    /// Packets that the link had dropped when the test began, and packets of this flow held back when Judge began.
    test_drops: u64,
    judge_held: u64,
    /// Number of packets of this flow held back.
    held: u64,
    /// The flow is limited to `heavy` until it is proven. Since it was last proven, packets of it were held back, void
    /// tests on a link that dropped packets used up its credit, or its window was too small to halve.
    marked: bool,
    /// The next test begins no earlier.
    rest_until: Time,
    /// `r_0`, bytes/s.
    reference: f64,
    /// The rate before the test, bytes/s: Refer's, or Watch's if that is lower and T is below 200 ms. After an unclear
    /// verdict it is the rate that was judged.
    before: f64,
    failures: u32,
    /// RCP: the highest rate that the flow was told in this phase and in the one before, bytes/s.
    told: f64,
    told_before: f64,
    /// Allowance while isolated or on probation, bytes/s; infinite if there is none.
    allowed: f64,
    /// Number of the link's periods with drops for which the allowance has been halved.
    eased: u64,
    /// Tokens of the bucket in bytes, and when they were last computed.
    tokens: f64,
    tokens_at: Time,
    /// Largest packet that has asked for tokens, bytes.
    largest: u32,
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
            last_since: Time::ZERO,
            last_bytes: 0,
            passed: Time::ZERO,
            probation: false,
            credit: 0,
            test_drops: 0,
            judge_held: 0,
            held: 0,
            marked: false,
            rest_until: Time::ZERO,
            reference: 0.0,
            before: 0.0,
            failures: 0,
            told: 0.0,
            told_before: 0.0,
            allowed: f64::INFINITY,
            eased: 0,
            tokens: 0.0,
            tokens_at: Time::ZERO,
            largest: 0,
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

    /// Begins a watch with a new T.
    fn watch(&mut self, now: Time) {
        self.round = match self.named.max(self.named_before) {
            Time::ZERO => UNKNOWN_ROUND,
            named => named.clamp(MIN_ROUND, MAX_ROUND),
        };
        self.named_before = self.named;
        self.named = Time::ZERO;
        let lasts = if self.probation { MAX_ROUND } else { self.round.max(MEASURE) };
        self.enter(Phase::Watch, now, lasts);
    }

    /// Counts a packet of the flow. Call this before asking what the packet may carry.
    pub fn on_packet(&mut self, params: &Params, packet: &Packet) {
        let now = packet.now;
        let unknown = self.named.max(self.named_before) == Time::ZERO;
        let rtt = packet.rtt.unwrap_or_default();
        self.named = self.named.max(rtt);
        let told_now = packet.told.map_or(0.0, Rate::bytes_per_sec);
        self.told = self.told.max(told_now);
        // The first stated RTT restarts the watch, which began with an unknown T.
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
        let passed = now.saturating_sub(self.last_since);
        if passed >= self.round {
            self.last_rate = self.last_bytes as f64 / passed.as_secs_f64();
            self.last_since = now;
            self.last_bytes = 0;
        }
        self.last_bytes += u64::from(packet.bytes);
    }

    /// Ends the phase. `rate` is the phase's rate and `told` the highest rate that the flow was told, in bytes/s.
    fn advance(&mut self, params: &Params, packet: &Packet, rate: f64, told: f64) {
        let now = packet.now;
        let round = self.round;
        // A marked flow is limited to `heavy`, so that it counts as heavy from half of that.
        let least = params.heavy.bytes_per_sec() / if self.marked { 2.0 } else { 1.0 };
        let heavy = rate >= least;
        match self.phase {
            Phase::Watch => {
                let suspect = heavy && (self.probation || rate > 1.25 * told); // deviation 1
                let due = self.probation || now >= self.rest_until;
                if suspect && packet.free && due {
                    self.test_drops = packet.drops;
                    self.before = if round < MEASURE { rate } else { f64::INFINITY };
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
                self.enter(Phase::Refer, now, round + GRACE);
            }
            Phase::Refer if rate.max(self.reference) >= least => {
                self.before = self.before.min(rate);
                self.tell(now, rate.max(self.reference));
            }
            Phase::Refer => self.watch(now),
            Phase::Tell => {
                self.judge_held = self.held;
                self.enter(Phase::Judge, now, round + GRACE);
            }
            Phase::Judge => self.judge(params, packet, rate, least),
            Phase::Isolate => {
                self.probation = true;
                self.watch(now); // deviation 6
            }
        }
    }

    /// Judges the test by the flow's `rate` in bytes/s. The flow counts as heavy from `least` bytes/s.
    fn judge(&mut self, params: &Params, packet: &Packet, rate: f64, least: f64) {
        let now = packet.now;
        if rate > 0.75 * self.reference {
            self.fail(params, packet, rate);
            return;
        }
        if now.saturating_sub(self.since) < MEASURE {
            self.until = Some(self.since.saturating_add(MEASURE));
            return;
        }
        // Deviation 7.
        if rate > 0.75 * self.before && rate >= 0.75 * least {
            self.test_drops = packet.drops;
            self.before = rate;
            self.tell(now, rate);
            return;
        }
        if rate >= 0.25 * self.reference && self.held == self.judge_held {
            self.credit(match (packet.drops == self.test_drops, self.marked) {
                (true, false) => PROOF,
                (true, true) => PROOF / 2,
                (false, _) => 1,
            });
        } else {
            self.credit = self.credit.saturating_sub(VOID);
            self.marked |= self.credit == 0 && packet.drops != self.test_drops; // deviation 10
        }
        self.rest(params, now);
    }

    /// Ends a test. A flow that is not proven is tested again soon.
    fn rest(&mut self, params: &Params, now: Time) {
        let retest = params.retest.as_ps() / if self.is_proven() { 1 } else { 4 };
        self.rest_until = now.saturating_add(Time::from_ps(retest));
        self.watch(now);
    }

    /// Records that the flow did not halve.
    fn fail(&mut self, params: &Params, packet: &Packet, rate: f64) {
        let now = packet.now;
        let named = self.named.max(self.named_before);
        if named > Time::ZERO && rate * named.as_secs_f64() < MIN_WINDOW_BYTES {
            self.credit = self.credit.saturating_sub(VOID);
            self.marked = true; // deviation 10
            self.rest(params, now);
            return;
        }
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

    /// Begins Tell: the flow is told to halve `reference`, in bytes/s.
    fn tell(&mut self, now: Time, reference: f64) {
        self.reference = reference;
        self.tests += 1;
        self.enter(Phase::Tell, now, self.round * 2 + GRACE); // deviation 3
    }

    /// Adds credit. A full credit removes one failure; without failures the flow is free.
    fn credit(&mut self, credit: u32) {
        self.credit = (self.credit + credit).min(PROOF);
        if self.credit < PROOF {
            return;
        }
        if self.failures > 0 {
            self.failures -= 1;
            self.credit = 0;
            return;
        }
        self.probation = false;
        self.marked = false;
        self.allowed = f64::INFINITY;
        self.passed = self.named.max(self.named_before).min(MAX_ROUND);
    }

    fn isolate(&mut self, params: &Params, now: Time) {
        self.isolations += 1;
        self.failures = FAILURES;
        let heavy = params.heavy.bytes_per_sec();
        self.allowed = (self.allowed.min(self.reference) / 2.0).clamp(heavy / 8.0, MOST_HEAVY * heavy);
        self.tokens = 0.0;
        self.tokens_at = now;
        self.enter(Phase::Isolate, now, params.isolate);
    }

    /// `r` of this phase so far, bytes/s.
    fn rate(&self, now: Time) -> f64 {
        self.bytes as f64 / now.saturating_sub(self.since).max(Time::from_nanos(1)).as_secs_f64()
    }

    /// RCP: the highest rate that the flow's packets may carry; `None` outside of Tell and Judge.
    #[must_use]
    pub fn most_told(&self) -> Option<Rate> {
        matches!(self.phase, Phase::Tell | Phase::Judge)
            .then(|| Rate::from_bytes_per_sec(self.reference / 2.0))
    }

    /// XCP: the largest change of throughput that a packet of `bytes` may carry, in bytes/s; `None` if the flow is
    /// neither under test nor on probation.
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

    /// Upper bounds of the feedback in a packet of `bytes` that leaves now. A marked flow should stay within its
    /// bucket, so that it can be tested if it obeys. It may grow by half in a round trip, and not at all once half of
    /// its bucket is empty.
    #[must_use]
    pub fn feedback_bounds(&self, params: &Params, now: Time, bytes: u32) -> FeedbackBounds {
        let heavy = params.heavy;
        let (mut rate, mut change) = (self.most_told(), self.most_change(now, bytes));
        if self.marked && !self.is_isolated() {
            rate = Some(rate.map_or(heavy, |rate| if rate < heavy { rate } else { heavy }));
            let short = self.tokens < self.depth(heavy.bytes_per_sec()) / 2.0;
            let growth = if short { 0.0 } else { f64::from(bytes) / 2.0 / self.round.as_secs_f64() };
            change = change.or(Some(growth));
        }
        FeedbackBounds { rate, change }
    }

    /// Whether the flow is isolated or on probation, in which case [`Self::admits`] limits it.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.phase == Phase::Isolate || self.probation
    }

    /// Whether the flow is proven.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.credit >= PROOF
    }

    /// Bounds of what the flow's headers may state.
    #[must_use]
    pub fn belief(&self, witnesses: &Witnesses) -> Belief {
        let most_rtt = witnesses.longest().map(|longest| self.passed.max(longest) * MOST_RTT);
        Belief { most_rtt, least_rate: self.last_rate / MOST_FLOWS }
    }

    /// The RTT that the flow stated when last proven; `None` if it never was, or has failed since.
    #[must_use]
    pub fn passed(&self) -> Option<Time> {
        Some(self.passed).filter(|rtt| *rtt > Time::ZERO)
    }

    /// Usual duration of a test that begins now, with its aftermath. For this time it counts as one test of its source.
    /// Unclear verdicts prolong a test.
    #[must_use]
    pub fn test_time(&self) -> Time {
        self.round * 12 + GRACE * 6 + MEASURE * 2
    }

    /// Phase of the flow's test.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The rate `r_0` of the last test.
    #[must_use]
    pub const fn reference(&self) -> Rate {
        Rate::from_bytes_per_sec(self.reference)
    }

    /// T; `None` before the first packet.
    #[must_use]
    pub const fn round(&self) -> Option<Time> {
        if self.until.is_none() { None } else { Some(self.round) }
    }

    /// Start of the running phase, and the bytes that arrived in it.
    #[must_use]
    pub const fn running(&self) -> (Time, u64) {
        (self.since, self.bytes)
    }

    /// Number of tests begun, failures on record, and isolations so far.
    #[must_use]
    pub const fn outcome(&self) -> (u64, u32, u64) {
        (self.tests, self.failures, self.isolations)
    }
}

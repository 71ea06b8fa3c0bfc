//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): a pace at the bottleneck's rate, a window of
//! twice its BDP.
//!
//! ```text
//! btl_bw  = largest delivery rate of 10 round trips         section 4.1.1: samples that the application limited only if larger;
//!                                                            it ages only when a sample enters
//! rt_prop = least round-trip time of 10 s                   section 4.1.2
//! pace    = pacing_gain btl_bw                              section 4.2.1: never down before the pipe was full
//! window  = cwnd_gain btl_bw rt_prop + 3 packets            section 4.2.3: by what is delivered towards it, 4 packets at least
//!
//!              btl_bw grew by less than a quarter                in flight <= btl_bw rt_prop
//!              in each of 3 round trips
//!   +---------+ --------------------------------> +-------+ ---------------------------> +---------+
//!   | Startup |                                   | Drain |                              | ProbeBw | <-+ 5/4, 3/4, 1, 1, 1, 1, 1, 1:
//!   +---------+                                   +-------+                              +---------+ --+ rt_prop each
//!    2/ln 2, 2/ln 2                                ln 2/2, 2/ln 2                          cycle, 2
//!        ^                                                                                    ^   |
//!        |  pipe never full    +----------+   200 ms and a round trip with 4 packets in flight|   | rt_prop not seen for 10 s
//!        +-------------------- | ProbeRtt | --------------------------------------------------+   | (from any state)
//!                              +----------+ <-----------------------------------------------------+
//!                               1, 4 packets
//! loss:     window = in flight + delivered for a round trip (packet conservation), then as above;
//!           when it is repaired the window before it                                section 4.2.3.4
//! timeout:  window = 1 packet, then as above                                        section 4.2.3.4
//! ```
//!
//! The diagram shows under each state its pacing gain and its window gain. 2/ln 2 = 2.885 is the least gain that
//! doubles the rate each round trip (section 4.3.2). Drain uses its inverse, which drains Startup's queue within one
//! round trip (section 4.3.3).
//!
//! Valid for any rate and round-trip time. The law does not react to marks, so its flows are not ECN-capable unless
//! the scenario sets that.
//!
//! Deviations (draft says / we do / because):
//! 1. Section 4.3.4 draws the first phase of the cycle at random / it is a hash of the time at which `ProbeBw`
//!    begins, and never 3/4 / a law has no randomness; flows that enter at different times still have different
//!    phases.
//! 2. Section 4.2.3.4 subtracts lost packets from the window / packet conservation computes the window from the
//!    packets in flight, which exclude them / the law does not hear of each lost packet.
//! 3. Section 4.2.2 sends up to 64 kB at once / one packet at a time / nothing here aggregates segments; the window's
//!    3 quanta are 3 packets.
//! 4. Section 4.2.1 begins with the initial window per millisecond while no round-trip time is known / and restarts
//!    from the first RTT sample / the assumed rate would otherwise hold until the pipe is full.
//! 5. Section 4.3.5 has the transport mark all samples of `ProbeRtt` as application-limited / the law does it / only
//!    the law knows its state.
//! 6. Section 4.3.4.4 paces at `btl_bw` when sending begins again after an idle time / the pace stays that of the
//!    phase; the first ack after it does not begin `ProbeRtt` / a law is not told when sending begins, and an idle
//!    pipe is empty, so its RTT needs no probe.
//! 7. The draft has no marks / marks are ignored / version 1 uses rate and round-trip time alone.
//! 8. Section 4.1.2 has a window of 10 s / 10 round trips where that is longer, unless a parameter sets it / at a
//!    round trip of 6 s a flow would be in ProbeRTT most of the time.

use super::model::{LONGEST, Limited, MaxOverRounds, MinRtt, Pace, Rounds, drawn};
use crate::sender::{Ack, Congestion, FlowView, Pacing, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Refused, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `BBRHighGain`: pacing and window gain of Startup; Drain's pacing gain is its inverse.
        pub high_gain: f64 = 2.0 / core::f64::consts::LN_2, // section 4.3.2.1: 2/ln(2), about 2.89
        /// The window gain of ProbeBW.
        pub cwnd_gain: f64 = 2.0, // section 4.3.4
        /// How much ProbeBW's first phase paces above the bottleneck's rate, and its second phase below, as a share of
        /// the rate.
        pub probe_gain: f64 = 0.25, // section 4.3.4: 5/4, 3/4
        /// `BtlBwFilterLen` in round trips.
        pub bandwidth_rounds: u32 = 10, // section 4.1.1
        /// `RTpropFilterLen`. Default: 10 s, or ten times the minimum RTT if that is longer.
        pub min_rtt_window: Option<Time> = None,
        /// `ProbeRTTDuration`.
        pub probe_rtt_time: Time = Time::from_millis(200), // section 4.3.5
        /// `BBRMinPipeCwnd`: the smallest window in packets, which ProbeRTT uses.
        pub min_window: f64 = 4.0, // section 4.2.3.2
    }
}

/// `RTpropFilterLen` (section 4.1.2), and deviation 8.
const MIN_RTT_WINDOW: Time = Time::from_secs(10);
/// Number of phases in ProbeBW's cycle.
const CYCLE: u32 = 8;
/// The pipe is full after this many round trips in which the rate grew by less than a quarter (section 4.3.2.2).
const FULL_ROUNDS: u8 = 3;

/// Where the law is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles each round trip.
    Startup,
    /// Startup's queue drains.
    Drain,
    /// The steady state: the gain cycles.
    ProbeBw,
    /// Few packets are in flight, so that the queue empties and the minimum RTT shows.
    ProbeRtt,
}

/// Loss repair under way, which affects the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// Fast recovery, with packet conservation until `conserve_until` packets are delivered.
    Recovery {
        conserve_until: u32,
    },
    /// Repair after a timeout, until `until` packets are delivered.
    Timeout {
        until: u32,
    },
}

/// State of one BBR flow. Windows are in packets, rates in packets/s.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: Params,
    packet: f64,
    initial_window: f64,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    window: f64,
    pace: Pace,
    btl_bw: MaxOverRounds,
    rounds: Rounds,
    rt_prop: MinRtt,
    filled_pipe: bool,
    full_bw: f64,
    full_count: u8,
    cycle: u32,
    cycle_began: Time,
    /// When ProbeRTT may end; `None` until at most `min_window` packets are in flight.
    probe_rtt_end: Option<Time>,
    probe_rtt_round_done: bool,
    /// Samples taken in ProbeRTT.
    limited: Limited,
    prior_window: f64,
    repair: Repair,
    /// Packets in flight after the last ack.
    in_flight: f64,
    delivered: u32,
    newly: f64,
}

impl Bbr {
    /// Where the law is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// `BtlBw`, packets/s.
    #[must_use]
    pub fn btl_bw(&self) -> f64 {
        self.btl_bw.max()
    }

    /// `RTprop`; [`Time::MAX`] before the first sample.
    #[must_use]
    pub const fn rt_prop(&self) -> Time {
        self.rt_prop.rtt
    }

    /// The pacing gain of the current state and phase.
    #[must_use]
    pub const fn pacing_gain(&self) -> f64 {
        self.pacing_gain
    }

    /// `BBRInflight`: `gain` times the BDP, plus 3 packets.
    fn pipe(&self, gain: f64) -> f64 {
        if self.rt_prop.rtt == Time::MAX {
            return self.initial_window;
        }
        gain * self.btl_bw() * self.rt_prop.rtt.as_secs_f64() + 3.0 // section 4.2.3.2
    }

    fn enter(&mut self, state: State, pacing_gain: f64, cwnd_gain: f64) {
        (self.state, self.pacing_gain, self.cwnd_gain) = (state, pacing_gain, cwnd_gain);
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.enter(State::ProbeBw, 1.0, self.params.cwnd_gain);
        // Deviation 1: any phase except the second, chosen by a hash of the time.
        let phase = drawn(now) % (CYCLE - 1);
        self.cycle = if phase == 0 { 0 } else { phase + 1 };
        self.begin_phase(now);
    }

    fn begin_phase(&mut self, now: Time) {
        self.cycle_began = now;
        self.pacing_gain = match self.cycle {
            0 => 1.0 + self.params.probe_gain,
            1 => 1.0 - self.params.probe_gain,
            _ => 1.0,
        };
    }

    /// Section 4.3.4.3.
    fn check_cycle(&mut self, now: Time, prior_in_flight: f64) {
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = now.saturating_sub(self.cycle_began) > self.rt_prop.rtt;
        let over = match self.cycle {
            0 => {
                let lost = self.repair != Repair::None;
                full_length && (lost || prior_in_flight >= self.pipe(self.pacing_gain))
            }
            1 => full_length || prior_in_flight <= self.pipe(1.0),
            _ => full_length,
        };
        if over {
            self.cycle = (self.cycle + 1) % CYCLE;
            self.begin_phase(now);
        }
    }

    /// Section 4.3.2.2.
    fn check_full_pipe(&mut self, app_limited: bool) {
        if self.filled_pipe || !self.rounds.start || app_limited {
            return;
        }
        if self.btl_bw() >= 1.25 * self.full_bw {
            (self.full_bw, self.full_count) = (self.btl_bw(), 0);
            return;
        }
        self.full_count += 1;
        self.filled_pipe = self.full_count >= FULL_ROUNDS;
    }

    /// Section 4.3.3.
    fn check_drain(&mut self, now: Time) {
        if self.state == State::Startup && self.filled_pipe {
            self.enter(State::Drain, 1.0 / self.params.high_gain, self.params.high_gain);
        }
        if self.state == State::Drain && self.in_flight <= self.pipe(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// Section 4.3.5.
    fn check_probe_rtt(&mut self, now: Time, idle: bool) {
        if self.state != State::ProbeRtt && self.rt_prop.expired && !idle {
            self.save_window();
            self.enter(State::ProbeRtt, 1.0, 1.0);
            self.probe_rtt_end = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.limited.mark(self.delivered, self.in_flight); // deviation 5
        match self.probe_rtt_end {
            None if self.in_flight <= self.params.min_window => {
                self.probe_rtt_end = Some(now.saturating_add(self.params.probe_rtt_time));
                self.probe_rtt_round_done = false;
                self.rounds.restart(self.delivered);
            }
            None => {}
            Some(end) => {
                self.probe_rtt_round_done |= self.rounds.start;
                if self.probe_rtt_round_done && now > end {
                    self.rt_prop.seen = now;
                    self.window = self.window.max(self.prior_window);
                    if self.filled_pipe {
                        self.enter_probe_bw(now);
                    } else {
                        self.enter(State::Startup, self.params.high_gain, self.params.high_gain);
                    }
                }
            }
        }
    }

    fn save_window(&mut self) {
        let undisturbed = self.repair == Repair::None && self.state != State::ProbeRtt;
        self.prior_window = if undisturbed { self.window } else { self.prior_window.max(self.window) };
    }

    /// Section 4.2.3.4: restores the earlier window when a repair ends.
    fn check_repair(&mut self, ack: &Ack<'_>) {
        let over = match self.repair {
            Repair::None => false,
            Repair::Recovery { .. } => !ack.in_recovery,
            Repair::Timeout { until } => ack.delivered >= until,
        };
        if over {
            self.repair = Repair::None;
            self.window = self.window.max(self.prior_window);
        }
    }

    /// Section 4.2.3.
    fn set_window(&mut self) {
        let target = self.pipe(self.cwnd_gain);
        match self.repair {
            Repair::Recovery { conserve_until } if self.delivered <= conserve_until => {
                self.window = self.window.max(self.in_flight + self.newly);
            }
            _ => {
                if self.filled_pipe {
                    self.window = (self.window + self.newly).min(target);
                } else if self.window < target || f64::from(self.delivered) < self.initial_window {
                    self.window += self.newly;
                }
                self.window = self.window.max(self.params.min_window);
            }
        }
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.params.min_window);
        }
    }
}

impl SenderLaw for Bbr {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("high_gain", p.high_gain, 1.0, 100.0)?;
        within("cwnd_gain", p.cwnd_gain, 1.0, 100.0)?;
        within("probe_gain", p.probe_gain, 0.0, 0.9)?;
        within("bandwidth_rounds", f64::from(p.bandwidth_rounds), 1.0, LONGEST as f64)?;
        within("min_window", p.min_window, 1.0, 1e6)
    }

    fn traits(_: &Params) -> SenderTraits {
        SenderTraits { ecn: false, delivery_rate: true, ..SenderTraits::DEFAULT }
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let initial_window = flow.initial_window.max(1.0);
        Self {
            params: *p,
            packet: f64::from(flow.packet_bytes),
            initial_window,
            state: State::Startup,
            pacing_gain: p.high_gain,
            cwnd_gain: p.high_gain,
            window: initial_window,
            pace: Pace::new(p.high_gain, initial_window), // section 4.2.1 and deviation 4
            btl_bw: MaxOverRounds::new(p.bandwidth_rounds),
            rounds: Rounds::default(),
            rt_prop: MinRtt::new(p.min_rtt_window, MIN_RTT_WINDOW),
            filled_pipe: false,
            full_bw: 0.0,
            full_count: 0,
            cycle: 0,
            cycle_began: Time::ZERO,
            probe_rtt_end: None,
            probe_rtt_round_done: false,
            limited: Limited::default(),
            prior_window: 0.0,
            repair: Repair::None,
            in_flight: 0.0,
            delivered: 0,
            newly: 0.0,
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.window * self.packet
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        Some(Rate::from_bytes_per_sec(self.pace.rate * self.packet).into())
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let prior_in_flight = f64::from(ack.flight);
        self.newly = f64::from(ack.newly_acked);
        self.in_flight = (prior_in_flight - self.newly).max(0.0);
        self.delivered = ack.delivered;
        self.check_repair(ack);
        let mut app_limited = false;
        self.rounds.start = false;
        if let Some(sample) = ack.rate {
            self.rounds.on_ack(sample.prior_delivered, ack.delivered);
            if self.rounds.start {
                self.btl_bw.next_round();
            }
            app_limited = sample.app_limited || self.limited.covers(sample.prior_delivered);
            let rate = f64::from(sample.delivered) / sample.interval.as_secs_f64();
            if !app_limited || rate >= self.btl_bw() {
                self.btl_bw.add(rate);
            }
        }
        // Deviation 6: an idle flow had nothing in flight, so there is no queue of its own to drain.
        let idle = prior_in_flight <= self.newly && !ack.window_limited;
        self.check_cycle(ack.now, prior_in_flight);
        self.check_full_pipe(app_limited);
        self.check_drain(ack.now);
        self.rt_prop.add(ack.now, ack.rtt);
        self.check_probe_rtt(ack.now, idle);
        self.pace.set(ack.srtt, self.pacing_gain * self.btl_bw(), self.filled_pipe); // section 4.2.1
        self.set_window();
    }

    fn on_congestion(&mut self, _: Time, sign: Congestion<'_>) {
        match sign {
            Congestion::Loss { .. } => {
                self.save_window();
                // Section 4.2.3.4: packets_in_flight + max(packets_delivered, 1).
                self.window = self.in_flight + self.newly.max(1.0);
                let conserve_until = self.delivered.saturating_add(self.in_flight as u32);
                self.repair = Repair::Recovery { conserve_until };
            }
            Congestion::Timeout { flight } => {
                self.save_window();
                self.window = 1.0;
                self.repair = Repair::Timeout { until: self.delivered.saturating_add(flight) };
            }
            _ => {}
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}

//! BBR, version 3 (draft-ietf-ccwg-bbr, editors' copy "-latest"): version 1's model of the path, with bounds set by
//! losses.
//!
//! ```text
//! max_bw = largest delivery rate of this cycle and the one before it                      section 5.5.5: limited by the
//!                                                                                          application only if larger
//! min_rtt = least round-trip time of 10 s                                                  section 5.3.4.3
//! bw = min(max_bw, bw_shortterm),  bdp = bw min_rtt                                        section 5.5.10.3
//! pace = pacing_gain bw 99%                                                                section 5.6.2: never down before
//!                                                                                          the pipe was full
//! window = cwnd_gain bdp + extra_acked, by what is delivered towards it; 4 packets at least,     section 5.6.4.6
//!          at most inflight_shortterm and, from Down on, inflight_longterm               section 5.6.4.7
//!          (in Cruise and ProbeRtt 85% of that)
//! extra_acked = largest excess of acked packets over bw times time, of 10 round trips     section 5.5.9: in Startup of 1
//!
//! state     gains       until                                                        then                  sections
//! Startup   2.77, 2     full, or lossy                                               Drain                 5.3.1
//! Drain     0.5, 2      in flight <= bdp, or 3 round trips                           Down                  5.3.2
//! Down      0.9, 2      in flight <= bdp and 85% of inflight_longterm;               Cruise; Refill        5.3.3.1
//!                       or time to probe
//! Cruise    1, 2        time to probe                                                Refill                5.3.3.2
//! Refill    1, 2        a round trip                                                 Up                    5.3.3.3
//! Up        1.25, 2.25  full again, or too lossy                                     Down                  5.3.3.4
//! ProbeRtt  1, 0.5      200 ms and a round trip with bdp / 2 in flight               Cruise, or Startup    5.3.4
//!           from any state, where the least round-trip time was not seen lower for 5 s
//!
//! time to probe: 2 s to 3 s, or min(bdp in packets, 62 or 63) round trips, since Down began           section 5.3.3.8.2
//! full:      3 round trips, not application-limited, whose rate grew by less than a quarter           section 5.3.1.2
//! lossy:     in recovery for a round trip, in which more than 2% of a flight and 6 ranges             section 5.3.1.3
//!            or more were lost: inflight_longterm = max(bdp, inflight_latest)
//! too lossy: more than 2% of a flight of Refill or Up was lost:                                       section 5.5.10.2
//!            inflight_longterm = max(in flight when it was 2%, 0.7 min(bdp, window))
//! in Up, if the window is full and at inflight_longterm: the bound grows by 1, 2, 4, ... packets/RTT  section 5.3.3.9
//! a round trip with a loss, except in Startup, Refill and Up:                                         section 5.5.10.3
//!            bw_shortterm = max(bw_latest, 0.7 bw_shortterm), inflight_shortterm alike;
//!            Refill and the end of ProbeRtt forget both
//! a timeout: window = 1 packet; after the repair, the earlier window                                  section 5.6.4.4
//! a spurious loss: its changes are undone                                                             section 5.5.11
//! ```
//!
//! The two gains are the pacing gain and the window gain. After a probe that lost too much, a flow stops its next
//! probe when `inflight_longterm` packets are in flight. If that probe loses little, the flow probes again at once
//! without that stop (section 5.3.3.6).
//!
//! Valid for any rate and round-trip time; where the BDP is below 4 packets, the pace alone keeps the queue short.
//! Section numbers are those of the draft's headings.
//!
//! Deviations (draft says / we do / because):
//! 1. Section 5.3.3.8.3 draws the waits between probes at random / they are a hash of the time at which Down begins /
//!    a law has no randomness; flows that enter at different times still have different waits.
//! 2. Section 5.6.3 sends a millisecond of the pace at once, at least two packets / one packet at a time / nothing
//!    here aggregates segments, and the section asks for the smallest feasible quantum; three quanta are then three
//!    packets, less than the least window.
//! 3. Section 5.6.2 begins with the initial window per millisecond while no round-trip time is known / and restarts
//!    from the first RTT sample / the assumed rate would otherwise hold until the pipe is full.
//! 4. Section 5.3.4.3 has the transport mark all samples of ProbeRTT as application-limited / the law does it / only
//!    the law knows its state.
//! 5. Section 5.4.1 acts when sending restarts after an idle time / the ack that leaves nothing in flight sets the
//!    pace to `bw`, and the first ack after the idle time may end ProbeRTT / a law is not told when sending begins.
//! 6. Section 3.7 requires a response to marks and leaves it open / flows are not ECN-capable unless the scenario
//!    sets that; a mark then counts as a loss in its round trip, and ends a probe as too lossy / a queue that marks
//!    is too long.
//! 7. Section 2 counts bytes / we count packets / all packets of a flow have one size, except the last.
//! 8. Section 5.6.4.4 sets the window at a timeout to one packet above the packets in flight / it is one packet / at
//!    a timeout all packets count as lost.
//! 9. Section 2.16 has windows of 10 s and 5 s / 10 and 5 round trips where that is longer, unless parameters set
//!    them / at a round trip of 6 s a flow would be in ProbeRTT most of the time.

mod cycle;
mod losses;
mod params;
mod path;

pub use params::Params;

use super::model::{LONGEST, Limited, MaxOverRounds, MinRtt, Pace, Rounds};
use crate::sender::{Ack, Congestion, FlowView, LostPacket, Pacing, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Refused, within};

/// `MinRTTFilterLen` (section 2.16.1), and deviation 9.
const MIN_RTT_WINDOW: Time = Time::from_secs(10);
/// `ProbeRTTInterval` (section 2.16.2), and deviation 9.
const PROBE_RTT_INTERVAL: Time = Time::from_secs(5);
/// Probing cycles whose rates count: this one and the one before it (section 2.11).
const BANDWIDTH_CYCLES: u32 = 2;
/// Packets that segment offload may hold back: three quanta (section 5.5.8.1).
const OFFLOAD_BUDGET: f64 = 3.0;

/// Where the law is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles each round trip.
    Startup,
    /// Startup's queue drains.
    Drain,
    /// ProbeBW_DOWN: the probe's queue drains, and headroom is left.
    Down,
    /// ProbeBW_CRUISE: the flow sends at the estimated bandwidth.
    Cruise,
    /// ProbeBW_REFILL: the pipe refills before the next probe.
    Refill,
    /// ProbeBW_UP: the flow sends faster than its estimate, to find more bandwidth.
    Up,
    /// Half a BDP is in flight, so that the queue empties and the minimum RTT shows.
    ProbeRtt,
}

impl State {
    const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    const fn in_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// `ack_phase`: which part of a probe the acks belong to (section 2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Loss repair under way, which affects the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// A loss was found; fast recovery begins with the next ack.
    Found,
    /// Fast recovery.
    Recovery,
    /// Repair after a timeout, until this many packets are delivered.
    Timeout(u32),
}

/// `RS`: the rate sample of an ack; all zero where the ack gave none.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    rate: f64,
    delivered: f64,
    tx_in_flight: f64,
    lost: f64,
    app_limited: bool,
    window_full: bool,
}

/// State to restore when a loss proves spurious (section 2.15).
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// State of one BBRv3 flow. Windows and volumes are in packets, rates in packets/s; an unset bound is infinite.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    params: Params,
    packet: f64,
    initial_window: f64,
    state: State,
    window: f64,
    prior_window: f64,
    pace: Pace,
    repair: Repair,
    undo: Undo,

    max_bw: MaxOverRounds,
    bw: f64,
    rounds: Rounds,
    round_count: u32,
    min_rtt: MinRtt,
    probe_rtt_min: MinRtt,
    /// When ProbeRTT may end; `None` until the packets in flight fit its window.
    probe_rtt_end: Option<Time>,
    probe_rtt_round_done: bool,
    limited: Limited,
    idle_restart: bool,

    extra_acked: MaxOverRounds,
    extra_began: Time,
    extra_delivered: f64,

    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: f64,
    full_bw_count: u8,
    drain_start_round: u32,

    ack_phase: AckPhase,
    probe_sample: bool,
    cycle_began: Time,
    probe_wait: Time,
    rounds_since_probe: u32,
    up_rounds: i32,
    up_acked: f64,
    up_acked_per_packet: f64,
    prev_too_high: bool,
    prev_precautionary: bool,

    inflight_longterm: f64,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_in_round: bool,
    loss_round_delivered: u32,
    loss_round_start: bool,
    /// Lost ranges in the current loss round trip, and the sequence number after the last of them.
    loss_ranges: u32,
    after_lost: u32,
    /// Acks are selective, so that several losses can be found within one round trip.
    selective: bool,

    /// Packets in flight after the last ack.
    in_flight: f64,
    delivered: u32,
    newly: f64,
    /// When losses were last found, and how many packets.
    found: (Time, f64),
    sample: Sample,
}

/// Observable state.
impl Bbr3 {
    /// Where the law is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// `max_bw`, packets/s.
    #[must_use]
    pub fn max_bw(&self) -> f64 {
        self.max_bw.max()
    }

    /// `bw`, packets/s.
    #[must_use]
    pub const fn bw(&self) -> f64 {
        self.bw
    }

    /// `min_rtt`; [`Time::MAX`] before the first sample.
    #[must_use]
    pub const fn min_rtt(&self) -> Time {
        self.min_rtt.rtt
    }

    /// `extra_acked` in packets.
    #[must_use]
    pub fn extra_acked(&self) -> f64 {
        self.extra_acked.max()
    }

    /// `inflight_longterm` in packets; infinite while unset.
    #[must_use]
    pub const fn inflight_longterm(&self) -> f64 {
        self.inflight_longterm
    }

    /// `bw_shortterm` in packets/s and `inflight_shortterm` in packets; infinite while unset.
    #[must_use]
    pub const fn shortterm(&self) -> (f64, f64) {
        (self.bw_shortterm, self.inflight_shortterm)
    }

    /// `bw_probe_wait`, and the round trips left until the next probe by the Reno bound.
    #[must_use]
    pub fn probe_wait(&self) -> (Time, f64) {
        (self.probe_wait, self.reno_rounds() - f64::from(self.rounds_since_probe))
    }

    /// The pacing gain and the window gain of the current state (section 5.6.1).
    #[must_use]
    pub const fn gains(&self) -> (f64, f64) {
        let p = &self.params;
        match self.state {
            State::Startup => (p.startup_gain, p.cwnd_gain),
            State::Drain => (p.drain_gain, p.cwnd_gain),
            State::Down => (p.probe_down_gain, p.cwnd_gain),
            State::Cruise | State::Refill => (1.0, p.cwnd_gain),
            State::Up => (p.probe_up_gain, p.probe_up_cwnd_gain),
            State::ProbeRtt => (1.0, p.probe_rtt_gain),
        }
    }
}

/// Volumes in packets (section 5.6.4.2).
impl Bbr3 {
    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt.rtt == Time::MAX {
            return self.initial_window;
        }
        gain * bw * self.min_rtt.rtt.as_secs_f64()
    }

    fn quantized(&self, volume: f64) -> f64 {
        let least = volume.max(OFFLOAD_BUDGET).max(self.params.min_window);
        if self.state == State::Up { least + 2.0 } else { least }
    }

    fn inflight(&self, bw: f64) -> f64 {
        self.quantized(self.bdp_multiple(bw, 1.0))
    }

    /// Section 5.3.3.8.3: the BDP, unless congestion has cut the window below it.
    fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(self.window)
    }

    fn reno_rounds(&self) -> f64 {
        self.target_inflight().min(f64::from(self.params.reno_rounds))
    }

    /// Section 5.3.3.9.
    fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        let headroom = (self.params.headroom.get() * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(self.params.min_window)
    }

    fn probe_rtt_window(&self) -> f64 {
        self.bdp_multiple(self.bw, self.params.probe_rtt_gain).max(self.params.min_window)
    }
}

/// Pace, window and reactions to losses.
impl Bbr3 {
    fn set_pace(&mut self, ack: &Ack<'_>) {
        // Section 5.4.1 and deviation 5: the next packet leaves after an idle time.
        let idle = self.in_flight <= 0.0 && !ack.window_limited;
        let gain = if idle && self.state.in_cycle() { 1.0 } else { self.gains().0 };
        let pace = gain * self.bw * (1.0 - self.params.pacing_margin.get());
        self.pace.set(ack.srtt, pace, self.full_bw_reached);
    }

    /// Sections 5.6.4.6, 5.6.4.5 and 5.6.4.7.
    fn set_window(&mut self) {
        let most = self.quantized(self.bdp_multiple(self.bw, self.gains().1) + self.extra_acked());
        if self.full_bw_reached {
            self.window = (self.window + self.newly).min(most);
        } else if self.window < most || f64::from(self.delivered) < self.initial_window {
            self.window += self.newly;
        }
        self.window = self.window.max(self.params.min_window);
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise => self.inflight_with_headroom(),
            State::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_window()),
        };
        self.window = self.window.min(cap.min(self.inflight_shortterm).max(self.params.min_window));
    }

    /// Section 5.5.10.2.
    fn on_packet_lost(&mut self, now: Time, packet: &LostPacket) {
        self.selective = packet.selective;
        self.found = (now, if self.found.0 == now { self.found.1 + 1.0 } else { 1.0 });
        self.loss_ranges = self.loss_ranges.saturating_add(u32::from(packet.seq != self.after_lost));
        self.after_lost = packet.seq.saturating_add(1);
        self.begin_repair(Repair::Found);
        self.delivered = packet.delivered;
        self.note_loss(packet.delivered);
        if !self.probe_sample {
            return;
        }
        let (lost, tx_in_flight) = (f64::from(packet.lost), f64::from(packet.tx_in_flight));
        if self.too_high(lost, tx_in_flight) {
            self.handle_too_high(now, self.inflight_at_loss(lost, tx_in_flight), packet.app_limited);
        }
    }

    /// Section 5.5.11.2.
    fn on_spurious_loss(&mut self, delivered: u32) {
        self.delivered = delivered;
        self.restore_window();
        self.loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => self.start_refill(),
            _ => {}
        }
    }
}

impl SenderLaw for Bbr3 {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("startup_gain", p.startup_gain, 1.0, 100.0)?;
        within("drain_gain", p.drain_gain, 0.01, 1.0)?;
        within("probe_up_gain", p.probe_up_gain, 1.0, 100.0)?;
        within("probe_down_gain", p.probe_down_gain, 0.01, 1.0)?;
        within("cwnd_gain", p.cwnd_gain, 1.0, 100.0)?;
        within("probe_up_cwnd_gain", p.probe_up_cwnd_gain, 1.0, 100.0)?;
        within("probe_rtt_gain", p.probe_rtt_gain, 0.01, 1.0)?;
        within("pacing_margin", p.pacing_margin.get(), 0.0, 0.9)?;
        within("loss_threshold", p.loss_threshold.get(), 0.0, 0.9)?;
        within("startup_losses", f64::from(p.startup_losses), 1.0, 1e6)?;
        within("beta", p.beta.get(), 0.01, 1.0)?;
        within("headroom", p.headroom.get(), 0.0, 0.9)?;
        within("reno_rounds", f64::from(p.reno_rounds), 2.0, 1e6)?;
        within("extra_acked_rounds", f64::from(p.extra_acked_rounds), 1.0, LONGEST as f64)?;
        within("min_window", p.min_window, 1.0, 1e6)
    }

    fn traits(_: &Params) -> SenderTraits {
        SenderTraits { ecn: false, delivery_rate: true, ..SenderTraits::DEFAULT }
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let initial_window = flow.initial_window.max(1.0);
        let unset = f64::INFINITY;
        Self {
            params: *p,
            packet: f64::from(flow.packet_bytes),
            initial_window,
            state: State::Startup,
            window: initial_window,
            prior_window: 0.0,
            pace: Pace::new(p.startup_gain, initial_window),
            repair: Repair::None,
            undo: Undo { state: None, bw_shortterm: 0.0, inflight_shortterm: 0.0, inflight_longterm: 0.0 },
            max_bw: MaxOverRounds::new(BANDWIDTH_CYCLES),
            bw: 0.0,
            rounds: Rounds::default(),
            round_count: 0,
            min_rtt: MinRtt::new(p.min_rtt_window, MIN_RTT_WINDOW),
            probe_rtt_min: MinRtt::new(p.probe_rtt_interval, PROBE_RTT_INTERVAL),
            probe_rtt_end: None,
            probe_rtt_round_done: false,
            limited: Limited::default(),
            idle_restart: false,
            extra_acked: MaxOverRounds::new(1),
            extra_began: Time::ZERO,
            extra_delivered: 0.0,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            probe_sample: false,
            cycle_began: Time::ZERO,
            probe_wait: Time::ZERO,
            rounds_since_probe: 0,
            up_rounds: 0,
            up_acked: 0.0,
            up_acked_per_packet: unset,
            prev_too_high: false,
            prev_precautionary: false,
            inflight_longterm: unset,
            bw_shortterm: unset,
            inflight_shortterm: unset,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_ranges: 0,
            after_lost: 0,
            selective: true,
            in_flight: 0.0,
            delivered: 0,
            newly: 0.0,
            found: (Time::ZERO, 0.0),
            sample: Sample::default(),
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

    /// Section 5.2.3.
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.newly = f64::from(ack.newly_acked);
        // Packets that a timeout found lost earlier are no longer in flight, so only this ack's losses are
        // subtracted.
        let newly_lost = if self.found.0 == ack.now { self.found.1 } else { 0.0 };
        self.in_flight = (f64::from(ack.flight) - self.newly - newly_lost).max(0.0);
        self.delivered = ack.delivered;
        self.sample = ack.rate.map_or_else(Sample::default, |rate| Sample {
            rate: f64::from(rate.delivered) / rate.interval.as_secs_f64(),
            delivered: f64::from(rate.delivered),
            tx_in_flight: f64::from(rate.tx_in_flight),
            lost: f64::from(rate.lost),
            app_limited: rate.app_limited || self.limited.covers(rate.prior_delivered),
            window_full: rate.window_full,
        });
        if let Some(rate) = ack.rate.filter(|rate| rate.restarted) {
            self.idle_restart = true; // section 5.4.1
            self.extra_began = ack.now.saturating_sub(rate.interval);
        }
        self.check_repair(ack);
        self.update_signals(ack);
        self.update_extra_acked(ack.now);
        self.check_full_bw();
        self.check_startup_done();
        self.check_drain_done(ack.now);
        self.check_cycle(ack.now);
        self.update_min_rtt(ack.now, ack.rtt);
        self.check_probe_rtt(ack.now, ack.rate.is_some());
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (self.sample.rate, self.sample.delivered);
        }
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.set_pace(ack);
        self.set_window();
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        match sign {
            Congestion::Loss { .. } => self.begin_repair(Repair::Recovery),
            // Deviation 6.
            Congestion::Mark { .. } => {
                self.note_loss(self.delivered);
                if self.probe_sample {
                    self.handle_too_high(now, self.sample.tx_in_flight, self.sample.app_limited);
                }
            }
            Congestion::Timeout { flight } => {
                self.save_state();
                self.window = 1.0; // deviation 8
                self.repair = Repair::Timeout(self.delivered.saturating_add(flight));
            }
            Congestion::Packet(packet) => self.on_packet_lost(now, packet),
            Congestion::Spurious { delivered } => self.on_spurious_loss(delivered),
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}

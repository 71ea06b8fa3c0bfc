//! BBR, version 3 (draft-ietf-ccwg-bbr, its editors' copy "-latest"): version 1's model of the path, with bounds by what is lost.
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
//! extra_acked = most that was acknowledged beyond bw times its time, of 10 round trips     section 5.5.9: in Startup of 1
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
//! full:      3 round trips, not limited by the application, that did not bring a quarter more         section 5.3.1.2
//! lossy:     in recovery for a round trip, in which more than 2% of a flight and 6 ranges             section 5.3.1.3
//!            or more were lost: inflight_longterm = max(bdp, inflight_latest)
//! too lossy: more than 2% of a flight of Refill or Up was lost:                                       section 5.5.10.2
//!            inflight_longterm = max(in flight when it was 2%, 0.7 min(bdp, window))
//! in Up, the window full and at inflight_longterm: that grows by 1, 2, 4, ... packets a round trip    section 5.3.3.9
//! a round trip with a loss, but in Startup, Refill and Up:                                            section 5.5.10.3
//!            bw_shortterm = max(bw_latest, 0.7 bw_shortterm), inflight_shortterm alike;
//!            Refill and the end of ProbeRtt forget both
//! a timeout: window = 1 packet; repaired, the window before it                                        section 5.6.4.4
//! a loss that was none: what it changed is taken back                                                 section 5.5.11
//! ```
//!
//! The gains are the pace's and the window's. A flow that found too much lost stops its next probe where `inflight_longterm`
//! is in flight, and if that loses little probes again at once, without that stop (section 5.3.3.6).
//!
//! Valid for any rate and round-trip time; below 4 packets of pipe the pace alone keeps the queue short. Section numbers are
//! those of the text's headings.
//!
//! Deviations (draft says / we do / because):
//! 1. Section 5.3.3.8.3 draws the waits between probes at random / they follow from the time at which Down begins / a law has no
//!    randomness; flows that enter at different times have different waits all the same.
//! 2. Section 5.6.3 sends a millisecond of the pace at once, two packets at least / a packet / nothing here aggregates segments, and it
//!    asks for the smallest quantum that is feasible; three quanta are three packets then, less than the least window.
//! 3. Section 5.6.2 begins with the initial window per millisecond while no round-trip time is known / and starts from the first
//!    sample's when it comes / what was assumed before any sample would otherwise hold until the pipe is full.
//! 4. Section 5.3.4.3 has the transport take all samples of ProbeRTT as limited by the application / the law does it / it is the
//!    one who knows.
//! 5. Section 5.4.1 acts when sending begins again after an idle time / the pace of it, `bw`, is set by the ack that leaves nothing in
//!    flight; that ProbeRTT is over is seen by the first ack after it / a law is not told when sending begins.
//! 6. Section 3.7 leaves the response to marks open, but that it is one / flows are not ECN-capable unless told to be; a mark then
//!    counts as a loss of its round trip, and ends a probe as too lossy / a queue that marks has said that it is too long.
//! 7. Section 2 counts bytes / we count packets / all are of one size but a flow's last.
//! 8. Section 5.6.4.4 leaves the window at a timeout one packet above what is in flight / it is one packet / at a timeout all is
//!    taken for lost.
//! 9. Section 2.16 has windows of 10 s and 5 s / of 10 and 5 round trips where that is longer, unless they are given / at a round trip of 6 s a flow
//!    would be in ProbeRTT most of the time.

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
/// Packets that hosts hold back: three quanta (section 5.5.8.1).
const OFFLOAD_BUDGET: f64 = 3.0;

/// Where the law is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles each round trip.
    Startup,
    /// What Startup queued leaves.
    Drain,
    /// ProbeBW_DOWN: what a probe queued leaves, and headroom with it.
    Down,
    /// ProbeBW_CRUISE: as much leaves as arrives.
    Cruise,
    /// ProbeBW_REFILL: the pipe fills for the next probe.
    Refill,
    /// ProbeBW_UP: more leaves than arrives, to see if more would.
    Up,
    /// Half of what the pipe holds is in flight, so that the least round-trip time is seen.
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

/// `ack_phase`: what acks say of the last probe (section 2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// What a loss does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// Fast recovery, found by the ack that comes next.
    Found,
    /// Fast recovery.
    Recovery,
    /// After a timeout, until so many packets are delivered.
    Timeout(u32),
}

/// `RS`: what an ack brought, nothing but zeros where it brought no sample.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    rate: f64,
    delivered: f64,
    tx_in_flight: f64,
    lost: f64,
    app_limited: bool,
    window_full: bool,
}

/// What a loss that was none is taken back to (section 2.15).
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// BBR, version 3. Windows and volumes are in packets, rates in packets/s; a bound that is not set is infinite.
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
    /// When ProbeRTT may end; none until no more is in flight than it asks for.
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
    /// Ranges lost in the present round trip of losses, and the packet after the last of them.
    loss_ranges: u32,
    after_lost: u32,
    /// More than one loss of a round trip can be found in it.
    selective: bool,

    /// As of the last ack.
    in_flight: f64,
    delivered: u32,
    newly: f64,
    /// Packets found lost at a time.
    found: (Time, f64),
    sample: Sample,
}

/// What can be asked of the law.
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

    /// `inflight_longterm` in packets, infinite while it is not set.
    #[must_use]
    pub const fn inflight_longterm(&self) -> f64 {
        self.inflight_longterm
    }

    /// `bw_shortterm` in packets/s and `inflight_shortterm` in packets, infinite while they are not set.
    #[must_use]
    pub const fn shortterm(&self) -> (f64, f64) {
        (self.bw_shortterm, self.inflight_shortterm)
    }

    /// `bw_probe_wait`, and after how many round trips of what Reno would take the next probe comes.
    #[must_use]
    pub fn probe_wait(&self) -> (Time, f64) {
        (self.probe_wait, self.reno_rounds() - f64::from(self.rounds_since_probe))
    }

    /// The pacing gain and the window gain of the present state (section 5.6.1).
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

/// Volumes (section 5.6.4.2).
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

    /// Section 5.3.3.8.3: the pipe, unless congestion has cut the window below it.
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

/// What follows from all of it.
impl Bbr3 {
    fn set_pace(&mut self, ack: &Ack<'_>) {
        // Section 5.4.1 and deviation 5: what leaves next leaves after an idle time.
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
            params: p.clone(),
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
        // What a timeout found lost before is not in flight any more.
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

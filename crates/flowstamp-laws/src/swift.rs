//! Swift (Kumar et al., SIGCOMM 2020): a window that grows while the RTT is below a target, and shrinks in proportion
//! to the excess.
//!
//! ```text
//!   target = base_target + hops * hop_target + max(0, min(a / sqrt(cwnd) + b, fs_range))     section 3.5
//!       a  = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd))
//!       b  = -a / sqrt(fs_max_cwnd)
//!   ack:      delay <  target:  cwnd += ai n / cwnd if cwnd >= 1, else ai n     n packets acknowledged; alg. 1
//!             delay >= target:  cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf)     once per RTT
//!   loss:                       cwnd *= 1 - max_mdf                                             once per RTT
//!   timeout:                    as a loss; from the retx_reset_threshold-th in a row on, cwnd = min_cwnd
//!   cwnd < 1: a packet each RTT / cwnd
//! ```
//!
//! Each hop may add a queue, so flows with longer paths have a higher target (topology scaling). `N` flows of a link
//! have a queue that varies as `sqrt(N)`, so flows with smaller windows have a higher target (flow scaling).
//!
//! There is no slow start: a flow needs a round trip per packet of its window. With 375 packets, as at 100 Gb/s and
//! 30 us, set `transport.initial_window` to the window with which a host starts.
//!
//! Valid for windows of `min_cwnd` to 10^9 packets.
//!
//! Deviations (paper says / we do / because):
//! 1. Fabric delay and endpoint delay have a window each, and the lesser counts / only the fabric's is here / hosts
//!    have no delay of their own. `endpoint_target` is refused.
//! 2. Base target and hop scaling are constants of the data centre / by default the target is 1.25 times the path's
//!    own base RTT, which contains its hops, or the least RTT so far where delays vary / the paper's microseconds suit
//!    its network only.
//! 3. The flow-scaling range is a constant / its default is as long as the base target / as deviation 2.
//! 4. Hops follow from the time to live / the network layout tells them / it is the same number.
//! 5. Nothing on application-limited flows / their window does not grow / nothing else would bound it.
//! 6. Most constants have no value / they are those of htsim's model, whose comments call them guesses; the least
//!    window is 0.001 packets / laws need defaults.
//! 7. Each timeout counts / one counts only if the pace has let a packet go since the last / the timer here runs while
//!    the pace holds a retransmission back, and each expiry would lower the pace further.

use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, Congestion, FlowChange, FlowView, Pacing, PathView, Probes, SenderLaw,
    SenderTraits,
};
use crate::stamp::Stamp;
use crate::units::{Rate, Ratio, Time};
use crate::{Refused, check_times, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Target RTT without scaling. Default: 1.25 times the RTT of a packet over the flow's idle path, or 1.25 times the
        /// least RTT so far where delays vary.
        pub base_target: Option<Time> = None, // deviation 2
        /// Time that each router link of the data path adds to the target.
        pub hop_target: Time = Time::ZERO, // deviation 2
        /// `fs_range`: the most that a small window adds to the target. Default: the base target.
        pub fs_range: Option<Time> = None, // deviation 3
        /// `fs_min_cwnd`: window in packets up to which the target has all of `fs_range`.
        pub fs_min_cwnd: f64 = 0.1, // deviation 6
        /// `fs_max_cwnd`: window in packets from which on the target has nothing of `fs_range`.
        pub fs_max_cwnd: f64 = 100.0, // deviation 6
        /// `ai`: additive increase in packets per round trip.
        pub ai: f64 = 1.0, // deviation 6
        /// `beta`: share of the excess delay by which the window shrinks.
        pub beta: f64 = 0.8, // deviation 6
        /// `max_mdf`: largest share of the window that a decrease takes.
        pub max_mdf: Ratio = Ratio::new(0.5), // deviation 6
        /// `min_cwnd`: least window in packets, 0.001 or more.
        pub min_cwnd: f64 = 0.001, // deviation 6
        /// `max_cwnd`: largest window in packets.
        pub max_cwnd: f64 = 1e9,
        /// `RETX_RESET_THRESHOLD`: timeouts in a row from which on the window is `min_cwnd`.
        pub retx_reset_threshold: u32 = 5, // deviation 6
        /// Target of the endpoint delay, which hosts here do not have.
        pub endpoint_target: Option<Time> = None, // deviation 1
    }
}

/// Base target over the RTT of the idle path (deviation 2).
const TARGET_PER_RTT: f64 = 1.25;

/// A pace so high that packets leave at once: none takes a picosecond.
const UNPACED: f64 = 1e6 * AS_MUCH_AS_THERE_IS;

/// Addition to the target for a window of `cwnd` packets, where `range` is in seconds (section 3.5).
#[must_use]
pub fn flow_scaling(cwnd: f64, range: f64, fs_min_cwnd: f64, fs_max_cwnd: f64) -> f64 {
    let [least, most] = [fs_min_cwnd, fs_max_cwnd].map(|cwnd| 1.0 / libm::sqrt(cwnd));
    let alpha = range / (least - most);
    (alpha / libm::sqrt(cwnd) - alpha * most).min(range).max(0.0)
}

/// State of one flow. Windows are in packets, times in seconds.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Params,
    packet: f64,
    cwnd: f64,
    /// RTT of the idle path; if that is unknown, the least RTT so far.
    path_rtt: f64,
    path_known: bool,
    hops: f64,
    /// The newest RTT; zero before the first.
    rtt: f64,
    last_decrease: Option<Time>,
    /// Timeouts since the last ack, and the time from which on the next one counts.
    timeouts: u32,
    timeout_counts_from: Time,
}

impl Sender {
    /// The window in packets, which may be less than one.
    #[must_use]
    pub const fn window(&self) -> f64 {
        self.cwnd
    }

    /// The target delay, seconds (section 3.5).
    #[must_use]
    pub fn target(&self) -> f64 {
        let p = &self.params;
        let base = p.base_target.map_or(TARGET_PER_RTT * self.path_rtt, Time::as_secs_f64);
        let range = p.fs_range.map_or(base, Time::as_secs_f64);
        let flows = flow_scaling(self.cwnd, range, p.fs_min_cwnd, p.fs_max_cwnd);
        base + self.hops * p.hop_target.as_secs_f64() + flows
    }

    /// Time between two packets; zero for a window of a packet or more.
    fn pacing_delay(&self) -> Time {
        Time::from_secs_f64(if self.cwnd < 1.0 { self.rtt / self.cwnd } else { 0.0 })
    }

    fn set(&mut self, now: Time, cwnd: f64) {
        let next = cwnd.max(self.params.min_cwnd).min(self.params.max_cwnd);
        if next < self.cwnd {
            self.last_decrease = Some(now);
        }
        self.cwnd = next;
    }

    /// Reduces the window to `share` of it, at most once per RTT.
    fn decrease(&mut self, now: Time, share: f64) {
        let since = self.last_decrease.map_or(f64::MAX, |last| now.saturating_sub(last).as_secs_f64());
        if since >= self.rtt {
            self.set(now, share * self.cwnd);
        }
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // The law reads delays, not marks.
        SenderTraits { ecn: false, knows_path: true, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        check_times([("base_target", p.base_target)])?;
        within("fs_min_cwnd", p.fs_min_cwnd, 1e-6, 1e9)?;
        if p.fs_max_cwnd.is_nan() || p.fs_max_cwnd <= p.fs_min_cwnd {
            let message =
                format!("is {}; it must be above fs_min_cwnd, which is {}", p.fs_max_cwnd, p.fs_min_cwnd);
            return Err(("fs_max_cwnd", message));
        }
        within("ai", p.ai, 1e-6, 1e6)?;
        within("beta", p.beta, 1e-6, 1.0)?;
        within("max_mdf", p.max_mdf.get(), 1e-6, 1.0)?;
        within("min_cwnd", p.min_cwnd, 0.001, 1e9)?;
        within("max_cwnd", p.max_cwnd, p.min_cwnd.max(1.0), 1e9)?;
        match p.endpoint_target {
            Some(target) => Err((
                "endpoint_target",
                format!("is {target}; hosts here have no delay of their own: leave it out"),
            )),
            None => Ok(()),
        }
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        Self {
            params: *p,
            packet: f64::from(flow.packet_bytes),
            cwnd: flow.initial_window.max(1.0).min(p.max_cwnd),
            path_rtt: 0.0,
            path_known: false,
            hops: 0.0,
            rtt: 0.0,
            last_decrease: None,
            timeouts: 0,
            timeout_counts_from: Time::ZERO,
        }
    }

    fn on_change(&mut self, change: FlowChange<'_, Params>) {
        if let FlowChange::Path(PathView { hops, rtt, .. }) = change {
            (self.hops, self.path_known) = (f64::from(hops), rtt.is_some());
            self.path_rtt = rtt.unwrap_or_default().as_secs_f64();
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd.max(1.0) * self.packet
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        let paced = self.cwnd < 1.0 && self.rtt > 0.0;
        let rate = if paced { self.cwnd * self.packet / self.rtt } else { UNPACED };
        Some(Pacing { rate: Rate::from_bytes_per_sec(rate), alone: false, probes: Some(Probes::NONE) })
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timeouts = 0;
        self.rtt = ack.rtt.as_secs_f64();
        if !self.path_known {
            self.path_rtt = ack.min_rtt.as_secs_f64();
        }
        let (delay, target) = (self.rtt, self.target());
        if delay >= target {
            let share = 1.0 - self.params.beta * (delay - target) / delay;
            self.decrease(ack.now, share.max(1.0 - self.params.max_mdf.get()));
        } else if ack.window_limited {
            let added = self.params.ai * f64::from(ack.newly_acked);
            self.set(ack.now, self.cwnd + if self.cwnd >= 1.0 { added / self.cwnd } else { added });
        }
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        match sign {
            Congestion::Timeout { .. } if now >= self.timeout_counts_from => {
                self.timeouts += 1;
                if self.timeouts >= self.params.retx_reset_threshold {
                    self.set(now, self.params.min_cwnd);
                } else {
                    self.decrease(now, 1.0 - self.params.max_mdf.get());
                }
                self.timeout_counts_from = now + self.pacing_delay(); // deviation 7
            }
            Congestion::Loss { .. } => {
                self.timeouts = 0;
                self.decrease(now, 1.0 - self.params.max_mdf.get());
            }
            _ => {}
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}

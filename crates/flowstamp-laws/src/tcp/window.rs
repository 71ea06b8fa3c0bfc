//! The part that TCP's growth laws share: slow start, threshold, window limits, timeouts (RFC 5681), and pacing.
//!
//! ```text
//! cwnd < ssthresh:   cwnd += packet per ack                                      slow start, section 3.1 eq. 2
//! else               cwnd += the law's step per ack, at most a packet            the law's own
//! loss:              ssthresh = max(what the law leaves, 2 packets), cwnd = ssthresh     section 3.1 eq. 4, section 3.2
//! ECN mark:          the same unless the law says otherwise, and an ack with an echo adds nothing   RFC 3168 section 6.1.2
//! timeout:           ssthresh as after a loss, cwnd = 1 packet                        section 3.1
//! pacing:            packets leave at cwnd / srtt, from the first RTT sample on       Aggarwal, Savage, Anderson 2000
//! ```
//!
//! A [`Growth`] law defines the step, and the window that a loss, a mark or a timeout leaves. Deviations, which all
//! laws share:
//!
//! 1. RFC 5681 eq. 4 applies to the packets in flight. We apply it to the lesser of these and the window: just after
//!    a reduction more is in flight than the window allows, and a second loss must not raise the window.
//! 2. RFC 5681 lets the window grow even when it is not used. We hold it while the application, not the window,
//!    limits the sender (RFC 7661's reason; Linux does the same).

use crate::sender::{Ack, Congestion, FlowView, Pacing, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Refused, within};

/// Parameters that all growth laws share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// First slow-start threshold in packets. Default: slow start goes on until the first loss.
    pub initial_ssthresh: Option<f64>,
    /// Smallest slow-start threshold in packets.
    pub min_ssthresh: f64,
    /// Largest window in packets.
    pub max_window: Option<f64>,
    /// Whether packets leave evenly over a round trip.
    pub pacing: bool,
}

/// The parameters of one growth law, which include those that all growth laws share.
pub trait Sharing {
    /// Returns the parameters that all growth laws share.
    fn shared(&self) -> Shared;
}

/// Defines a law's parameters as `crate::params!` does, and adds those that all growth laws share.
macro_rules! window_params {
    ($(#[$about:meta])* pub struct Params { $($own:tt)* }) => {
        crate::params! {
            $(#[$about])*
            pub struct Params {
                $($own)*
                /// First slow-start threshold in packets. Default: slow start goes on until the first loss or mark.
                pub initial_ssthresh: Option<f64> = None, // RFC 5681 section 3.1: arbitrarily high
                /// Smallest slow-start threshold in packets.
                pub min_ssthresh: f64 = 2.0, // RFC 5681 eq. 4
                /// Largest window in packets (ns-2's `window_`; the receiver's window).
                pub max_window: Option<f64> = None,
                /// Whether packets leave evenly, at `cwnd / srtt`, in slow start too (Aggarwal, Savage and Anderson
                /// 2000). Otherwise they leave as soon as the window allows.
                pub pacing: bool = false,
            }
        }

        impl super::window::Sharing for Params {
            fn shared(&self) -> super::window::Shared {
                let Self { initial_ssthresh, min_ssthresh, max_window, pacing, .. } = *self;
                super::window::Shared { initial_ssthresh, min_ssthresh, max_window, pacing }
            }
        }
    };
}
pub(super) use window_params;

/// Defines how a window grows in congestion avoidance and what a loss leaves of it. Windows are in bytes.
pub trait Growth: Sized {
    /// Parameters that a scenario may set.
    type Params: Default + Sharing;

    /// Static properties of the law with these parameters.
    fn traits(params: &Self::Params) -> SenderTraits {
        let _ = params;
        SenderTraits::DEFAULT
    }

    /// Checks the parameters.
    ///
    /// # Errors The first invalid parameter, and a value that would be right.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The law at the start of a flow.
    fn new(params: &Self::Params, flow: &FlowView) -> Self;

    /// Observes every ack of new data, before the window changes.
    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let _ = ack;
    }

    /// Bytes that an ack adds to a window of `cwnd` bytes in congestion avoidance.
    fn step(&mut self, cwnd: f64, ack: &Ack<'_>) -> f64;

    /// Window in bytes after a loss, where `used` bytes were in use.
    fn after_loss(&mut self, now: Time, used: f64) -> f64;

    /// Window in bytes after a mark at a window of `cwnd`, of which `used` bytes were in use.
    fn after_mark(&mut self, now: Time, cwnd: f64, used: f64) -> f64 {
        let _ = cwnd;
        self.after_loss(now, used)
    }

    /// Slow-start threshold in bytes after a timeout.
    fn after_timeout(&mut self, now: Time, used: f64) -> f64 {
        self.after_loss(now, used)
    }
}

/// A congestion window under a growth law.
#[derive(Clone, Copy, Debug)]
pub struct Window<G> {
    cwnd: f64,
    ssthresh: f64,
    packet_bytes: u32,
    /// In packets, as is `max_window`. Single precision keeps seven digits, which is enough for a limit, and makes a
    /// flow smaller.
    min_ssthresh: f32,
    max_window: f32,
    /// Smoothed RTT in seconds, kept for pacing; zero without pacing or before the first ack.
    srtt_s: f64,
    pacing: bool,
    /// The timer expired and no ack has come since.
    timed_out: bool,
    growth: G,
}

impl<G> Window<G> {
    /// The growth law's state.
    #[must_use]
    pub const fn growth(&self) -> &G {
        &self.growth
    }

    /// Lowers the window to at most this many bytes, and at least one packet.
    pub(crate) fn limit(&mut self, most: f64) {
        self.cwnd = self.cwnd.min(most.max(self.packet()));
    }

    /// The slow-start threshold in bytes.
    #[must_use]
    pub const fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    #[inline]
    fn packet(&self) -> f64 {
        f64::from(self.packet_bytes)
    }

    /// `ssthresh`, but no less than the least slow-start threshold, in bytes.
    fn at_least(&self, ssthresh: f64) -> f64 {
        ssthresh.max(f64::from(self.min_ssthresh) * self.packet())
    }

    /// The part of the window in use, in bytes (deviation 1).
    fn used(&self, flight: u32) -> f64 {
        self.cwnd.min(f64::from(flight) * self.packet())
    }
}

impl<G: Growth> Window<G> {
    /// The same window in packets of another size. The growth law starts afresh.
    #[must_use]
    pub fn resized(&self, params: &G::Params, packet_bytes: u32) -> Self {
        let scale = f64::from(packet_bytes) / self.packet();
        Self {
            cwnd: self.cwnd * scale,
            ssthresh: self.ssthresh * scale,
            srtt_s: self.srtt_s,
            timed_out: self.timed_out,
            ..Self::new(params, &FlowView { packet_bytes, initial_window: 1.0, app_rate: None })
        }
    }
}

impl<G: Growth> SenderLaw for Window<G> {
    type Params = G::Params;

    fn traits(params: &G::Params) -> SenderTraits {
        G::traits(params)
    }

    fn check(params: &G::Params) -> Result<(), Refused> {
        // Every TCP law is valid for windows of 1 to 10^9 packets.
        let shared = params.shared();
        let given = [("initial_ssthresh", shared.initial_ssthresh), ("max_window", shared.max_window)];
        for (name, packets) in given.into_iter().chain([("min_ssthresh", Some(shared.min_ssthresh))]) {
            within(name, packets.unwrap_or(1.0), 1.0, 1e9)?;
        }
        G::check(params)
    }

    fn new(params: &G::Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        let shared = params.shared();
        let max_window = shared.max_window.map_or(f32::INFINITY, |w| w.max(1.0) as f32);
        Self {
            cwnd: (flow.initial_window * packet).max(packet).min(f64::from(max_window) * packet),
            ssthresh: shared.initial_ssthresh.map_or(f64::MAX, |s| s * packet),
            packet_bytes: flow.packet_bytes,
            min_ssthresh: shared.min_ssthresh.max(1.0) as f32,
            max_window,
            srtt_s: 0.0,
            pacing: shared.pacing,
            timed_out: false,
            growth: G::new(params, flow),
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        // The first window leaves unpaced, because the pace needs an RTT sample.
        (self.srtt_s > 0.0).then(|| Rate::from_bytes_per_sec(self.cwnd / self.srtt_s).into())
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timed_out = false;
        if self.pacing {
            self.srtt_s = ack.srtt.as_secs_f64();
        }
        self.growth.on_ack(ack);
        if ack.in_recovery || ack.marked > 0 || !ack.window_limited {
            return; // deviation 2
        }
        let step = if self.cwnd < self.ssthresh { self.packet() } else { self.growth.step(self.cwnd, ack) };
        self.cwnd = (self.cwnd + step).min(f64::from(self.max_window) * self.packet());
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        let left = match sign {
            Congestion::Loss { flight } => self.growth.after_loss(now, self.used(flight)),
            Congestion::Mark { flight } => self.growth.after_mark(now, self.cwnd, self.used(flight)),
            // Section 3.1: a packet that times out again leaves ssthresh as it is.
            Congestion::Timeout { .. } if self.timed_out => self.ssthresh,
            Congestion::Timeout { flight } => self.growth.after_timeout(now, self.used(flight)),
            _ => return,
        };
        self.ssthresh = self.at_least(left);
        self.cwnd = self.ssthresh;
        if let Congestion::Timeout { .. } = sign {
            self.timed_out = true;
            self.cwnd = self.packet();
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}

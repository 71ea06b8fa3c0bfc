//! Parameters of BBRv3; section numbers are those of the draft.

use crate::units::{Ratio, Time};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `StartupPacingGain`.
        pub startup_gain: f64 = 2.77, // section 2.5: about 4 ln(2)
        /// `DrainPacingGain`.
        pub drain_gain: f64 = 0.5, // section 2.5
        /// The pacing gain of ProbeBW_UP.
        pub probe_up_gain: f64 = 1.25, // section 5.3.3.5
        /// The pacing gain of ProbeBW_DOWN.
        pub probe_down_gain: f64 = 0.9, // section 5.3.3.1
        /// `DefaultCwndGain`: the window gain of all states but ProbeBW_UP and ProbeRTT.
        pub cwnd_gain: f64 = 2.0, // section 2.6
        /// The window gain of ProbeBW_UP.
        pub probe_up_cwnd_gain: f64 = 2.25, // section 5.3.3.5
        /// `ProbeRTTCwndGain`.
        pub probe_rtt_gain: f64 = 0.5, // section 2.16.2
        /// `PacingMarginPercent`: how much the pace is below the rate.
        pub pacing_margin: Ratio = Ratio::new(0.01), // section 2.5
        /// `LossThresh`: the lost share of a flight above which a probe was too high.
        pub loss_threshold: Ratio = Ratio::new(0.02), // section 2.8
        /// `BBRStartupFullLossCnt`: number of lost ranges in a round trip that ends Startup.
        pub startup_losses: u32 = 6, // section 5.3.1.3
        /// `Beta`: the smallest share of a bound that a round trip with losses leaves.
        pub beta: Ratio = Ratio::new(0.7), // section 2.8
        /// `Headroom`: the share of `inflight_longterm` that is left to others.
        pub headroom: Ratio = Ratio::new(0.15), // section 2.8
        /// Shortest wait from ProbeBW_DOWN to the next probe, unless Reno's is shorter.
        pub probe_wait: Time = Time::from_secs(2), // section 5.3.3.8.2
        /// Longest random addition to `probe_wait`.
        pub probe_wait_spread: Time = Time::from_secs(1), // section 5.3.3.8.2
        /// Maximum number of round trips from one probe to the next, if the pipe holds that many packets. One less is
        /// drawn as often.
        pub reno_rounds: u32 = 63, // section 5.3.3.8.2
        /// `ExtraAckedFilterLen` in round trips.
        pub extra_acked_rounds: u32 = 10, // section 2.12
        /// `MinRTTFilterLen`. Default: 10 s, or ten times the minimum RTT if that is longer.
        pub min_rtt_window: Option<Time> = None,
        /// `ProbeRTTInterval`. Default: 5 s, or five times the minimum RTT if that is longer.
        pub probe_rtt_interval: Option<Time> = None,
        /// `ProbeRTTDuration`.
        pub probe_rtt_time: Time = Time::from_millis(200), // section 2.16.2
        /// `MinPipeCwnd`: the smallest window in packets.
        pub min_window: f64 = 4.0, // section 2.8
    }
}

//! Parameters of BBRv3; section numbers are those of the draft.

use crate::units::{Ratio, Time};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `StartupPacingGain`: pacing gain of Startup.
        pub startup_gain: f64 = 2.77, // section 2.5: about 4 ln(2)
        /// `DrainPacingGain`: pacing gain of Drain.
        pub drain_gain: f64 = 0.5, // section 2.5
        /// Pacing gain of ProbeBW_UP.
        pub probe_up_gain: f64 = 1.25, // section 5.3.3.5
        /// Pacing gain of ProbeBW_DOWN.
        pub probe_down_gain: f64 = 0.9, // section 5.3.3.1
        /// `DefaultCwndGain`: window gain of all states but ProbeBW_UP and ProbeRTT.
        pub cwnd_gain: f64 = 2.0, // section 2.6
        /// Window gain of ProbeBW_UP.
        pub probe_up_cwnd_gain: f64 = 2.25, // section 5.3.3.5
        /// `ProbeRTTCwndGain`: window gain of ProbeRTT.
        pub probe_rtt_gain: f64 = 0.5, // section 2.16.2
        /// `PacingMarginPercent`: share by which the pace is below the pacing gain times the bandwidth.
        pub pacing_margin: Ratio = Ratio::new(0.01), // section 2.5
        /// `LossThresh`: a probe was too high if more than this share of a flight is lost.
        pub loss_threshold: Ratio = Ratio::new(0.02), // section 2.8
        /// `BBRStartupFullLossCnt`: minimum number of lost ranges in a round trip that end Startup. More than
        /// `loss_threshold` must also be lost.
        pub startup_losses: u32 = 6, // section 5.3.1.3
        /// `Beta`: losses in a round trip reduce a bound to no less than this share of it.
        pub beta: Ratio = Ratio::new(0.7), // section 2.8
        /// `Headroom`: share of `inflight_longterm` that the flow leaves free for others while it cruises.
        pub headroom: Ratio = Ratio::new(0.15), // section 2.8
        /// Shortest time from ProbeBW_DOWN to the next probe. `reno_rounds` may shorten it.
        pub probe_wait: Time = Time::from_secs(2), // section 5.3.3.8.2
        /// Largest addition to `probe_wait`. A hash of the time draws each addition from 0 to this.
        pub probe_wait_spread: Time = Time::from_secs(1), // section 5.3.3.8.2
        /// Maximum number of round trips from one probe to the next, as after Reno. It is the BDP in packets where that is
        /// less. Half of the draws are one round trip shorter.
        pub reno_rounds: u32 = 63, // section 5.3.3.8.2
        /// `ExtraAckedFilterLen`: number of round trips over which the largest excess of acked packets counts.
        pub extra_acked_rounds: u32 = 10, // section 2.12
        /// `MinRTTFilterLen`: time over which the minimum RTT is taken. Default: 10 s, or ten times the minimum RTT if that is longer.
        pub min_rtt_window: Option<Time> = None,
        /// `ProbeRTTInterval`: a flow enters ProbeRTT after this time without a lower RTT. Default: 5 s, or five times the minimum RTT if that is longer.
        pub probe_rtt_interval: Option<Time> = None,
        /// `ProbeRTTDuration`: shortest stay in ProbeRTT.
        pub probe_rtt_time: Time = Time::from_millis(200), // section 2.16.2
        /// `MinPipeCwnd`: smallest window, in packets.
        pub min_window: f64 = 4.0, // section 2.8
    }
}

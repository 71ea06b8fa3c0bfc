//! Parameters of BBRv3; section numbers are those of the draft.

use crate::units::{Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters that a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// `StartupPacingGain`.
    pub startup_gain: f64,
    /// `DrainPacingGain`.
    pub drain_gain: f64,
    /// The pacing gain of ProbeBW_UP.
    pub probe_up_gain: f64,
    /// The pacing gain of ProbeBW_DOWN.
    pub probe_down_gain: f64,
    /// `DefaultCwndGain`: the window gain of all states but ProbeBW_UP and ProbeRTT.
    pub cwnd_gain: f64,
    /// The window gain of ProbeBW_UP.
    pub probe_up_cwnd_gain: f64,
    /// `ProbeRTTCwndGain`.
    pub probe_rtt_gain: f64,
    /// `PacingMarginPercent`: how much the pace is below the rate.
    pub pacing_margin: Ratio,
    /// `LossThresh`: the lost share of a flight above which a probe was too high.
    pub loss_threshold: Ratio,
    /// `BBRStartupFullLossCnt`: number of lost ranges in a round trip that ends Startup.
    pub startup_losses: u32,
    /// `Beta`: the smallest share of a bound that a round trip with losses leaves.
    pub beta: Ratio,
    /// `Headroom`: the share of `inflight_longterm` that is left to others.
    pub headroom: Ratio,
    /// Shortest wait from ProbeBW_DOWN to the next probe, unless Reno's is shorter.
    pub probe_wait: Time,
    /// Longest random addition to `probe_wait`.
    pub probe_wait_spread: Time,
    /// Maximum number of round trips from one probe to the next, if the pipe holds that many packets. One less is
    /// drawn as often.
    pub reno_rounds: u32,
    /// `ExtraAckedFilterLen` in round trips.
    pub extra_acked_rounds: u32,
    /// `MinRTTFilterLen`. Default: 10 s, or ten times the minimum RTT if that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_window: Option<Time>,
    /// `ProbeRTTInterval`. Default: 5 s, or five times the minimum RTT if that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_rtt_interval: Option<Time>,
    /// `ProbeRTTDuration`.
    pub probe_rtt_time: Time,
    /// `MinPipeCwnd`: the smallest window in packets.
    pub min_window: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            startup_gain: 2.77,                    // section 2.5: about 4 ln(2)
            drain_gain: 0.5,                       // section 2.5
            probe_up_gain: 1.25,                   // section 5.3.3.5
            probe_down_gain: 0.9,                  // section 5.3.3.1
            cwnd_gain: 2.0,                        // section 2.6
            probe_up_cwnd_gain: 2.25,              // section 5.3.3.5
            probe_rtt_gain: 0.5,                   // section 2.16.2
            pacing_margin: Ratio::new(0.01),       // section 2.5
            loss_threshold: Ratio::new(0.02),      // section 2.8
            startup_losses: 6,                     // section 5.3.1.3
            beta: Ratio::new(0.7),                 // section 2.8
            headroom: Ratio::new(0.15),            // section 2.8
            probe_wait: Time::from_secs(2),        // section 5.3.3.8.2
            probe_wait_spread: Time::from_secs(1), // section 5.3.3.8.2
            reno_rounds: 63,                       // section 5.3.3.8.2
            extra_acked_rounds: 10,                // section 2.12
            min_rtt_window: None,
            probe_rtt_interval: None,
            probe_rtt_time: Time::from_millis(200), // section 2.16.2
            min_window: 4.0,                        // section 2.8
        }
    }
}

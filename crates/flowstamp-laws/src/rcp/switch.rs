//! Decides when an RCP flow becomes a TCP (Dukkipati 2007, section 6.2.2): when a router without RCP is the
//! bottleneck. The header of [`super::sender`] has the rules and their deviations.

use crate::sender::{Congestion, FlowView, SenderLaw};
use crate::tcp::{Params as TcpParams, Sack};
use crate::units::Time;

/// Round trips over which a decrease counts as a reaction to a queue, and the factor below which the rate must fall.
const ROUNDS: usize = 4;
const DECREASE: f64 = 0.9;

/// State of the switch, and the TCP after it.
#[derive(Clone, Debug)]
pub struct Switch {
    pub(super) flow: FlowView,
    /// The TCP that the flow has become.
    pub(super) tcp: Option<Sack>,
    /// When the flow became a TCP; [`Time::MAX`] if it has not.
    pub(super) switched: Time,
    /// The least smoothed RTT.
    least_rtt: Time,
    /// When the running round trip ends.
    round_end: Time,
    /// Rates at the start of the last round trips, newest first, bytes/s.
    round_rates: [f64; ROUNDS],
    /// Whether a packet was lost in the running round trip, and in the one before.
    pub(super) lost: [bool; 2],
    /// The smoothed RTT has been at least twice the least since the running round trip began.
    doubled: bool,
}

impl Switch {
    /// Creates a switch for a new flow.
    pub(super) fn new(flow: &FlowView) -> Self {
        Self {
            flow: *flow,
            tcp: None,
            switched: Time::MAX,
            least_rtt: Time::ZERO,
            round_end: Time::ZERO,
            round_rates: [0.0; ROUNDS],
            lost: [false; 2],
            doubled: false,
        }
    }

    /// Turns the flow into a TCP with a window of `window` packets.
    pub(super) fn become_tcp(&mut self, now: Time, window: f64) -> &mut Sack {
        self.switched = now;
        let flow = FlowView { initial_window: window, ..self.flow };
        self.tcp.insert(Sack::new(&TcpParams::default(), &flow))
    }

    /// Whether `rate` is a corresponding decrease, which means that its router reacts to its own queue.
    pub(super) fn fell_to(&self, rate: f64) -> bool {
        rate < DECREASE * self.round_rates.iter().copied().fold(0.0, f64::max)
    }

    /// Checks for the signs of section 6.2.2 at the end of each round trip: an RTT that has doubled, or a loss, while
    /// the rate has not fallen. `rate` is the current rate in bytes/s, `window` the flow's window in packets.
    pub(super) fn watch(&mut self, now: Time, srtt: Time, flight: u32, rate: f64, window: f64) {
        if srtt == Time::ZERO {
            return;
        }
        if self.least_rtt == Time::ZERO || srtt < self.least_rtt {
            self.least_rtt = srtt;
        }
        self.doubled &= srtt >= self.least_rtt * 2;
        if now < self.round_end {
            return;
        }
        let not_the_bottleneck = (self.doubled || self.lost[1]) && !self.fell_to(rate);
        self.round_rates.rotate_right(1);
        self.round_rates[0] = rate;
        self.round_end = now + srtt;
        self.doubled = true;
        self.lost = [false, self.lost[0]];
        if not_the_bottleneck {
            self.become_tcp(now, window).on_congestion(now, Congestion::Loss { flight });
        }
    }
}

//! A VCP macro-flow between two edges of an island, which carries the traffic of other flows.
//!
//! Xia and others 2008, section VI-D, refers to CSFQ and XCP for details. We follow [`crate::xcp::edge`], with VCP's
//! code in place of feedback. Once per round trip a control packet returns the path's code, which counts as the code
//! of a whole window's acks:
//!
//! ```text
//!   rate = W / rtt,    01: W += xi_s W,    10: W += alpha_s s,    11: W *= beta           eqs. 2 to 4, once a round trip
//! ```
//!
//! Deviations (paper says / we do / because):
//! 1. Nothing on how codes return / one control packet per round trip / as in XCP's paper (Katabi 2002, section 8.1).
//! 2. Nothing on unused windows / no increase after a round trip that left more than a tenth of the window and a
//!    packet unused / VCP's senders do not grow either while the application limits them.

use crate::sender::{Ack, Congestion, Feedback, FlowView, Pacing, Recovery, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::vcp::sender;
use crate::xcp::edge::in_use;
use crate::{Open, Refused};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `t_rho`, as VCP's routers and senders have it. Default: 2.5 times the flows' mean RTT; the paper has 200 ms.
        pub t_rho: Option<Time> = None,
        /// Weight of the flow, above 0. Throughputs at one bottleneck are in proportion to it; 1 stands for one VCP
        /// flow, as in the paper.
        pub weight: f64 = 1.0, // section VI-D: one VCP flow
    }
}

fn of_one_flow(p: &Params) -> sender::Params {
    sender::Params { t_rho: p.t_rho, weight: p.weight, ..sender::Params::default() }
}

/// The window of one macro-flow.
#[derive(Clone, Debug)]
pub struct Sender {
    flow: sender::Sender,
    packet_bytes: f64,
    /// Smoothed RTT at the last control packet's return; zero before the first.
    rtt: Time,
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // The transport never uses this recovery, because there are no data packets.
        let recovery = Recovery::Count;
        SenderTraits { recovery, handshake: true, governs: true, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        sender::Sender::check(&of_one_flow(p))
    }

    fn open(p: &mut Params) -> Open<'_> {
        super::open(&mut p.t_rho)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        Self {
            flow: sender::Sender::new(&of_one_flow(params), flow),
            packet_bytes: f64::from(flow.packet_bytes),
            rtt: Time::ZERO,
        }
    }

    fn cwnd(&self) -> f64 {
        self.flow.cwnd()
    }

    fn pacing(&self) -> Option<Pacing> {
        let seconds = self.rtt.as_secs_f64();
        (seconds > 0.0).then(|| Rate::from_bytes_per_sec(self.cwnd() / seconds).into())
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let Feedback { now, srtt, stamp, bits, carried } = *feedback;
        let packets = (self.cwnd() / self.packet_bytes).clamp(1.0, 1e9) as u32;
        let window_limited = in_use(carried, self.cwnd(), self.packet_bytes); // deviation 2
        let acked = Ack {
            newly_acked: packets,
            flight: packets,
            bits,
            window_limited,
            ..Ack::of_one(now, srtt, stamp)
        };
        self.flow.on_ack(&acked);
        self.rtt = srtt;
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}

    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        self.flow.stamp(now, srtt)
    }

    fn bits(&self) -> u16 {
        self.flow.bits()
    }
}

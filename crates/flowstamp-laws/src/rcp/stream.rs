//! A stream of datagrams over RCP, such as video over UDP: it sends at the rate of the slowest router, and repairs nothing.
//!
//! Dukkipati 2007, section 6.1.1: as a shim between IP and the transport, RCP serves any transport, "including TCP for
//! file-transfers, as well as [...] UDP for streaming content". The equations are those of the
//! [sender with a window](super::sender), without the window:
//!
//! ```text
//!   pace    one datagram each max(s / R, its time at the application's rate)
//! ```
//!
//! The application is an encoder that produces no more than may leave, so that no datagram waits in the host.
//!
//! Deviations (thesis says / we do / because):
//! 1. The receiver returns the rate with data and acks / UDP has no acks, and nothing may travel back. The sender sends a
//!    header-only packet once per RTT, at most a tenth of `R`, and its answer brings the rate and the RTT / the author's
//!    ns-2 host asks in this way where it waits long for its pace.
//! 2. Headers state how much the flow has sent (section 3.6) / they state zero / a stream does not end, so that its age
//!    says nothing of what is left.

use super::header::MOST_WEIGHT;
use super::sender::{self, Sender as Paced};
use crate::sender::{Ack, Congestion, Feedback, FlowView, Pacing, Recovery, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::Time;
use crate::{Refused, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Weight: routers give the flow this many times their rate `R` (section 3.6); 1 to 63488. Five binary digits of it
        /// count, so that 1 to 32 are exact.
        pub weight: f64 = 1.0,
    }
}

/// State of one stream.
#[derive(Clone, Debug)]
pub struct Sender(Paced);

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // The transport never uses this recovery, because datagrams are not repaired.
        let recovery = Recovery::Count;
        SenderTraits { recovery, datagrams: true, handshake: true, ecn: false, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("weight", p.weight, 1.0, MOST_WEIGHT)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        Self(Paced::new(&sender::Params { weight: params.weight, ..Default::default() }, flow))
    }

    fn cwnd(&self) -> f64 {
        self.0.cwnd()
    }

    fn pacing(&self) -> Option<Pacing> {
        self.0.pacing()
    }

    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        self.0.stamp(now, srtt)
    }

    fn bits(&self) -> u16 {
        self.0.bits()
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.0.on_feedback(feedback);
    }

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}
}

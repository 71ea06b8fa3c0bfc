//! A random delay before a host's packets leave (`transport.send_jitter`).
//!
//! It follows ns-2's `overhead_` (`TcpAgent::send_much` and `Sack1TcpAgent::send_much`). When the window allows a
//! packet and none is waiting, a delay is drawn, uniform in `[0, overhead_)`. When the delay is over, all packets that
//! the window allows by then leave at once, so packets keep their order. Floyd and Jacobson 1992 ("On traffic phase
//! effects in packet-switched gateways") propose such a random processing time at sources. They find that phase effects
//! vanish if it is as long as the bottleneck's transmission time of one packet.
//!
//! Deviations (ns-2 does / we do / because):
//! 1. A fast retransmission leaves at once / it is delayed like all packets / a host that needs time for a packet needs
//!    it for that one too.
//! 2. ns-2's senders are not paced / a paced packet's delay and the gap to the next packet count from its paced time,
//!    but a packet never leaves before the one before it / otherwise the delay would lower the rate.

use crate::random::Stream;
use flowstamp_laws::units::Time;

/// The delays of one flow.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    most: Time,
    draws: Stream,
    /// When the waiting packets leave; [`Time::MAX`] if none waits.
    until: Time,
    /// When they began to wait.
    since: Time,
}

impl Jitter {
    /// Delays up to `most`, for the flow with this index in its group. `None` if `most` is zero.
    pub(super) fn new(most: Time, seed: u64, group: &str, index: u32) -> Option<Box<Self>> {
        (most > Time::ZERO).then(|| {
            let draws = Stream::new(seed, &format!("jitter/{group}/{index}"));
            Box::new(Self { most, draws, until: Time::MAX, since: Time::ZERO })
        })
    }

    /// Draws a delay for a packet that leaves alone: a datagram, or a request of a flow that governs a link.
    pub(super) fn draw(&mut self) -> Time {
        self.most.scale(self.draws.uniform())
    }

    /// When a packet leaves that may be sent now, and might have been sent since `due`.
    pub(super) fn leaves(&mut self, now: Time, due: Time) -> Time {
        if self.until == Time::MAX {
            // A sender that was idle for longer than a delay is due now.
            self.since = if due.saturating_add(self.most) < now { now } else { due };
            self.until = self.since.saturating_add(self.most.scale(self.draws.uniform())).max(now);
        }
        self.until
    }

    /// Takes note that a paced packet has left. Returns when it would have left without its delay.
    pub(super) fn paced(&mut self) -> Time {
        self.until = Time::MAX;
        self.since
    }

    /// Takes note that the waiting packets have left, if their delay is over.
    pub(super) fn sent(&mut self, now: Time) {
        if self.until <= now {
            self.until = Time::MAX;
        }
    }
}

//! A random delay before what a host sends (`transport.send_jitter`).
//!
//! As ns-2's `overhead_` (`TcpAgent::send_much` and `Sack1TcpAgent::send_much`): when the window allows something and nothing waits
//! yet, a delay is drawn, uniform in `[0, overhead_)`. When it is over, all that the window allows by then leaves at once: packets keep
//! their order. Floyd and Jacobson 1992 ("On traffic phase effects in packet-switched gateways") have such a random
//! processing time at sources, and find that phase effects go if it is as long as the bottleneck takes for one packet.
//!
//! Deviations (ns-2 does / we do / because):
//! 1. A fast retransmission leaves at once / it waits as all else / a host that needs time for a packet needs it for that one too.
//! 2. Its senders have no pace / a paced packet's delay counts from when the pace lets it go, and so does the gap to the next one,
//!    but it never leaves before the one before it / else the delay would lower the rate.

use crate::random::Stream;
use flowstamp_laws::units::Time;

/// The delays of one flow.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    most: Time,
    draws: Stream,
    /// When what waits leaves; [`Time::MAX`] if nothing does.
    until: Time,
    /// Since when it waits.
    since: Time,
}

impl Jitter {
    /// Delays up to `most`, of the flow with this index in its group.
    pub(super) fn new(most: Time, seed: u64, group: &str, index: u32) -> Option<Box<Self>> {
        (most > Time::ZERO).then(|| {
            let draws = Stream::new(seed, &format!("jitter/{group}/{index}"));
            Box::new(Self { most, draws, until: Time::MAX, since: Time::ZERO })
        })
    }

    /// How long the next of those waits that leave one by one: datagrams behind their clock, requests of a flow that governs a link.
    pub(super) fn draw(&mut self) -> Time {
        self.most.scale(self.draws.uniform())
    }

    /// When that may leave which may be sent now, and might have been since `due`.
    pub(super) fn leaves(&mut self, now: Time, due: Time) -> Time {
        if self.until == Time::MAX {
            // Who was idle for longer than a delay is due now.
            self.since = if due.saturating_add(self.most) < now { now } else { due };
            self.until = self.since.saturating_add(self.most.scale(self.draws.uniform())).max(now);
        }
        self.until
    }

    /// One paced packet has left: when it would have without its delay.
    pub(super) fn paced(&mut self) -> Time {
        self.until = Time::MAX;
        self.since
    }

    /// What waited has left, if its time had come.
    pub(super) fn sent(&mut self, now: Time) {
        if self.until <= now {
            self.until = Time::MAX;
        }
    }
}

//! CoDel: drops by the waiting time of packets, not by the queue's length (Nichols, Jacobson, McGregor & Iyengar, RFC
//! 8289).
//!
//! ```text
//!   below  = sojourn < target, or at most a packet's bytes wait behind     section 5.6, dodequeue
//!   ok     = not below, from a full interval after the first packet that was not below
//!
//!   not dropping:  if ok, drop this packet and send the next one, whatever it has waited; dropping begins with
//!     count = count - last_count   if that is above 1 and drop_next was less than 16 intervals ago, else 1
//!     drop_next = now + interval / sqrt(count)     last_count = count
//!
//!   dropping:      while ok and now >= drop_next
//!     drop this packet; count = count + 1; look at the next one, and if ok
//!     drop_next = drop_next + interval / sqrt(count)                       section 5.6, control_law
//!   dropping ends with the first packet that is not ok
//! ```
//! A packet's *sojourn* is the time from its arrival to the start of its transmission. A packet that the buffer
//! cannot hold is dropped on arrival. With `ecn`, an ECN-capable packet is marked and sent where it would be dropped.
//!
//! Valid for 1 kb/s to 400 Gb/s.
//!
//! Deviations (RFC says / we do / because):
//! 1. Section 5.5's `deque` is one call that takes packets until one may be sent / one call per packet, which
//!    remembers that the previous one was dropped at this instant / a law holds no packets. The decisions are the
//!    same.
//! 2. `interval` is 100 ms / where all paths are known and their longest RTT is not within a factor of ten of that,
//!    it is that RTT / section 4.2 gives 100 ms for RTTs of 10 ms to 1 s, and at 30 us a queue would stand for 3,000
//!    RTTs before the first drop.
//! 3. `target` is 5 ms / it is a twentieth of the interval / this is the same at 100 ms; section 3.2 derives 5% to
//!    10% of an RTT.
//! 4. Section 5.5 drops / we mark ECN-capable packets, unless `ecn` is false / Linux's `codel.h` does the same: a
//!    mark counts as a drop, and there is at most one per packet sent.
//! 5. `now - drop_next < 16 interval` is computed in clock ticks that may wrap / a `drop_next` in the future counts
//!    as just passed / times here do not wrap.

use super::{Arrival, Departure, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict};
use crate::Refused;
use crate::units::Time;

/// Default `interval` (RFC 8289, sections 4.2 and 5.3).
const USUAL_INTERVAL: Time = Time::from_millis(100);
/// Intervals after which the last drop rate is forgotten (RFC 8289, section 5.5).
const MEMORY: u64 = 16;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Queueing delay that may persist. Default: a twentieth of `interval`, 5 ms for 100 ms.
        pub target: Option<Time> = None,
        /// How long the delay must be above `target` before the first drop: about the longest RTT of the flows.
        /// Default: 100 ms, or the longest propagation RTT of the flows through the link if that is below 10 ms or
        /// above 1 s.
        pub interval: Option<Time> = None,
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = true, // as RFC 7567, section 4.2.1, asks of queue laws
    }
}

impl Params {
    fn interval(&self) -> Time {
        self.interval.unwrap_or(USUAL_INTERVAL)
    }

    fn target(&self) -> Time {
        self.target.unwrap_or(self.interval() / 20)
    }
}

/// Declares that an unset interval follows the paths where the default does not suit them.
pub(super) fn time_constant(interval: &mut Option<Time>) -> Option<TimeConstant<'_>> {
    // RFC 8289, section 4.3.
    let usual_for = Some(Time::from_millis(10)..=Time::from_secs(1));
    Some(TimeConstant { name: "interval", value: interval, usual_for })
}

/// Fate of the previous packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// It was sent.
    Sent,
    /// It was dropped, and dropping began with it: the next one is sent.
    Began,
    /// It was dropped in the dropping state: the next one decides whether that state continues.
    Dropped,
}

/// State of the law.
#[derive(Clone, Debug)]
pub struct CoDel {
    limit: Limit,
    target: Time,
    interval: Time,
    ecn: bool,
    /// Bytes of a full packet. No drop happens while at most this many bytes wait behind a packet.
    packet_bytes: u64,
    /// When packets will have waited too long for a full interval; `None` if the last one did not wait too long.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping began.
    last_count: u32,
    dropping: bool,
    before: Before,
    /// Waiting time of the last packet, for probes.
    sojourn: Time,
}

impl CoDel {
    /// Target and interval.
    #[must_use]
    pub const fn times(&self) -> (Time, Time) {
        (self.target, self.interval)
    }

    /// Section 5.6, `control_law`.
    fn control_law(&self, from: Time) -> Time {
        from + Time::from_secs_f64(self.interval.as_secs_f64() / libm::sqrt(f64::from(self.count.max(1))))
    }

    /// Section 5.6, `dodequeue`: whether packets have waited too long for a full interval.
    fn ok_to_drop(&mut self, packet: &Departure) -> bool {
        if packet.sojourn < self.target || packet.queue_bytes <= self.packet_bytes {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(packet.now + self.interval);
                false
            }
            Some(at) => packet.now >= at,
        }
    }

    /// Notes that a dequeue found the queue empty (section 5.6, `dodequeue`). Needed where others than the law remove
    /// packets. Otherwise the last departure already shows an empty queue behind it.
    pub fn on_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
        self.before = Before::Sent;
    }

    /// Enters the dropping state.
    fn begin(&mut self, now: Time) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < self.interval * MEMORY; // deviation 5
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        self.dropping = true;
    }
}

impl QueueLaw for CoDel {
    type Params = Params;
    const HEARS: Hears = Hears { departures: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        for (name, time) in [("interval", p.interval), ("target", p.target)] {
            if let Some(time) = time.filter(|t| !(Time::from_nanos(1)..=Time::from_secs(1000)).contains(t)) {
                return Err((name, format!("is {time}; it must be 1ns to 1000s")));
            }
        }
        match (p.target, p.interval) {
            (Some(target), Some(interval)) if target > interval => {
                Err(("target", format!("is {target}; it must be at most interval, {interval}")))
            }
            (Some(target), None) if target > USUAL_INTERVAL => {
                Err(("target", format!("is {target}; it must be at most interval, give that too")))
            }
            _ => Ok(()),
        }
    }

    fn time_constant(params: &mut Params) -> Option<TimeConstant<'_>> {
        time_constant(&mut params.interval)
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        Self {
            limit: view.limit,
            target: params.target(),
            interval: params.interval(),
            ecn: params.ecn,
            packet_bytes: u64::from(view.mean_packet_bytes),
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            before: Before::Sent,
            sojourn: Time::ZERO,
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, arrival: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        if arrival.fits(self.limit) { Verdict::Enqueue } else { Verdict::Drop }
    }

    fn on_departure(&mut self, packet: &Departure, _: impl FnMut() -> f64) -> Verdict {
        self.sojourn = packet.sojourn;
        let ok = self.ok_to_drop(packet);
        let before = std::mem::replace(&mut self.before, Before::Sent);
        if before == Before::Began {
            return Verdict::Enqueue;
        }
        let mark = self.ecn && packet.ecn_capable;
        if !self.dropping {
            if !ok {
                return Verdict::Enqueue;
            }
            self.begin(packet.now);
            if mark {
                return Verdict::Mark;
            }
            self.before = Before::Began;
            return Verdict::Drop;
        }
        if !ok {
            self.dropping = false;
            return Verdict::Enqueue;
        }
        if before == Before::Dropped {
            self.drop_next = self.control_law(self.drop_next);
        }
        if packet.now < self.drop_next {
            return Verdict::Enqueue;
        }
        self.count = self.count.saturating_add(1);
        if mark {
            self.drop_next = self.control_law(self.drop_next);
            return Verdict::Mark;
        }
        self.before = Before::Dropped;
        Verdict::Drop
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("sojourn_s", self.sojourn.as_secs_f64());
        report("dropping", f64::from(u8::from(self.dropping)));
        report("count", f64::from(self.count));
    }
}

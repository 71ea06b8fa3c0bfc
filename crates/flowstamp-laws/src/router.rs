//! What a router does to a packet and every control interval.

use crate::queue::Limit;
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{AgreedTime, LongestRtt, Refused};

/// The most timers a router law may keep.
pub const MAX_TIMERS: usize = 2;

/// Gains of a law whose linear form is, with the delay `d`, the input rate `y` and the queue `q`,
/// `y' = -alpha/d (y(t - d) - C) - beta/d^2 q(t - d)` (Katabi 2002, eq. 16): parameters of these names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Gain on the input rate.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// What evens rates of flows out, in a mean round trip: a share of the capacity, 0 for laws that give all the same rate.
    pub shuffle: f64,
}

/// What a router law is told of the link it governs when it is made.
#[derive(Clone, Copy, Debug)]
pub struct RouterView {
    /// The link's capacity; `None` where nobody knows it.
    pub capacity: Option<Rate>,
    /// The buffer.
    pub limit: Limit,
    /// Size of a full data packet, bytes.
    pub packet_bytes: u32,
}

impl RouterView {
    /// A link of known capacity, with packets of 1000 bytes and a buffer of 1 MB.
    #[must_use]
    pub const fn of(capacity: Rate) -> Self {
        Self { capacity: Some(capacity), limit: Limit::Bytes(1_000_000), packet_bytes: 1000 }
    }

    /// The capacity, for a law that cannot do without ([`RouterLaw::needs_capacity`]): who makes one has seen to it that
    /// it is known.
    #[must_use]
    pub fn known_capacity(&self) -> Rate {
        debug_assert!(
            self.capacity.is_some(),
            "a law that needs the capacity on a link that has none to tell"
        );
        self.capacity.unwrap_or(Rate::ZERO)
    }
}

/// What a law knows of the flows of its own protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnFlows {
    /// Their mean window, bytes.
    pub window_bytes: f64,
    /// Their mean RTT.
    pub rtt: Time,
}

/// What a law works with of a link that it shares by windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// What other traffic leaves, and beside it its part, of which [`RouterLaw::set_part`] tells.
    Leftover,
    /// Its part alone.
    Part,
}

/// What a law may see of the link it governs, at one instant.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Now.
    pub now: Time,
    /// Bytes that wait, without the packet in transmission.
    pub queue_bytes: u64,
    /// Packets that wait, without the one in transmission.
    pub queue_packets: u32,
}

/// A router's control law on one output link: a state machine that is told of arrivals, departures and its own
/// timers. It has no clock and does no I/O.
///
/// Order of calls for one packet: `on_arrival` when it reaches the output queue, whether or not it is then dropped;
/// `on_departure` when its transmission starts, only for data packets with this law's header.
pub trait RouterLaw: Sized {
    /// What the scenario may set.
    type Params: Default;

    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameter that stands for the flows' RTT until packets carry one, by its name: whoever knows the path sets it
    /// where it is open. A law that is told nothing takes the first RTT that it sees.
    fn time_constant(params: &mut Self::Params) -> Option<(&'static str, &mut Option<Time>)> {
        let _ = params;
        None
    }

    /// The longest RTT that the law believes, which is to be beyond those of its flows: whoever knows the paths sets it where it is open.
    fn longest_rtt(params: &mut Self::Params) -> Option<LongestRtt<'_>> {
        let _ = params;
        None
    }

    /// The parameter that must be the same on all routers and senders of the law's header.
    fn agreed_time(params: &mut Self::Params) -> Option<AgreedTime<'_>> {
        let _ = params;
        None
    }

    /// The gains by which its loop is stable or not, if its linear form is [that of XCP](Gains).
    fn gains(params: &Self::Params) -> Option<Gains> {
        let _ = params;
        None
    }

    /// Whether a link with this law sends acks before data unless the scenario says otherwise.
    const ACKS_FIRST: bool = false;

    /// Whether the law marks packets of other protocols ([`RouterLaw::marks`]).
    const MARKS: bool = false;

    /// Whether the law cannot do without the link's capacity. Where nobody knows it, only a law that can is made.
    fn needs_capacity(params: &Self::Params) -> bool {
        let _ = params;
        true
    }

    /// A law for this link, with all estimates at their start.
    fn new(params: &Self::Params, link: &RouterView) -> Self;

    /// Parameters by which the law begins, and which mean nothing later.
    const BEGINS_WITH: &'static [&'static str] = &[];

    /// The link's capacity is `capacity` from now on; never called where nobody knows it.
    fn set_capacity(&mut self, capacity: Rate);

    /// What the law works with on a link that is shared by windows: if anything, it knows of its own flows what
    /// [`own_flows`](Self::own_flows) tells.
    const BY_WINDOWS: Option<Room> = None;

    /// What it knows of them, if it has seen any.
    fn own_flows(&self) -> Option<OwnFlows> {
        None
    }

    /// The link is shared by windows, [`Room::Leftover`]: of its capacity `link` the law's own traffic is to have `part`. What
    /// [`set_capacity`](Self::set_capacity) tells then is what other traffic leaves.
    fn set_part(&mut self, part: Rate, link: Rate) {
        let _ = (part, link);
    }

    /// The parameters are these from now on; estimates stay.
    fn set_params(&mut self, params: &Self::Params);

    /// The bits of the data packet with this law's header of which `on_arrival` or `on_departure` is told next, for laws that
    /// look at them there; `bits` changes them.
    #[inline]
    fn read_bits(&mut self, bits: u16) {
        let _ = bits;
    }

    /// A packet of `size` bytes reached the queue. `stamp` is there for data packets with this law's header; acks and
    /// packets with other headers come without.
    fn on_arrival(&mut self, link: LinkView, size: u32, stamp: Option<&Stamp>);

    /// A packet of `size` bytes has come in over the medium that this link shares with other stations. What comes in has taken
    /// of the same time on the air as what goes out, so a law may count it, and stamp it if it is a data packet with its
    /// header. A link with a medium of its own never calls this.
    fn on_medium_arrival(&mut self, link: LinkView, size: u32, stamp: Option<&mut Stamp>) {
        let _ = (link, size, stamp);
    }

    /// A data packet with this law's header starts its transmission: stamp it.
    fn on_departure(&mut self, link: LinkView, size: u32, stamp: &mut Stamp);

    /// What becomes of the packet's bits ([`crate::sender::SenderLaw::bits`]) after `on_departure`. `uniform` draws from 0 to 1.
    #[inline]
    fn bits(&mut self, link: LinkView, size: u32, bits: u16, uniform: impl FnMut() -> f64) -> u16 {
        let _ = (link, size, uniform);
        bits
    }

    /// Whether a packet of another protocol that is ECN-capable has its congestion-experienced mark set as its transmission
    /// starts; asked only of laws that mark ([`RouterLaw::MARKS`]).
    #[inline]
    fn marks(&mut self, link: LinkView, size: u32, uniform: impl FnMut() -> f64) -> bool {
        let _ = (link, size, uniform);
        false
    }

    /// When timer `which` (below [`MAX_TIMERS`]) first fires, if the law keeps it.
    fn first_timer(&self, which: usize) -> Option<Time>;

    /// Timer `which` fired; returns when it fires next, later than now.
    fn on_timer(&mut self, which: usize, link: LinkView) -> Time;

    /// Calls `report` with each variable's name and value, for probes.
    fn variables(&self, report: &mut dyn FnMut(&'static str, f64));
}

/// Parameters of a law that has none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

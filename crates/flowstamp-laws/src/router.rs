//! What a router does to a packet and every control interval.

pub use crate::link::LinkView;
use crate::queue::Limit;
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Open, Refused};

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

    /// The capacity, for a law that cannot do without ([`RouterTraits::needs_capacity`]): who makes one has seen to it that
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
    /// What other traffic leaves, and beside it its part, of which [`LinkChange::Part`] tells.
    Leftover,
    /// Its part alone.
    Part,
}

/// A packet that reached the queue.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'a> {
    /// Bytes.
    pub size: u32,
    /// There for data packets with the law's header; acks and packets with other headers come without.
    pub stamp: Option<&'a Stamp>,
    /// The bits of a packet with a stamp ([`crate::sender::SenderLaw::bits`]).
    pub bits: u16,
}

impl<'a> PacketIn<'a> {
    /// A packet without bits.
    #[inline]
    #[must_use]
    pub const fn of(size: u32, stamp: Option<&'a Stamp>) -> Self {
        Self { size, stamp, bits: 0 }
    }
}

/// A packet whose transmission starts.
#[derive(Debug)]
pub struct PacketOut<'a> {
    /// Bytes.
    pub size: u32,
    /// What the law may change.
    pub stamp: &'a mut Stamp,
    /// Likewise. Of a packet of another protocol they are its ECN field (RFC 3168 section 5).
    pub bits: &'a mut u16,
}

/// What is known of a law and its parameters before it is made. A law names what differs from the default.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub struct RouterTraits {
    /// When each timer that the law keeps first fires.
    pub first_timers: [Option<Time>; MAX_TIMERS],
    /// The law cannot do without the link's capacity. Where nobody knows it, only a law that can is made.
    pub needs_capacity: bool,
    /// Gains by which its loop is stable or not, if its linear form is [that of XCP](Gains).
    pub gains: Option<Gains>,
    /// A link with this law sends acks before data unless the scenario says otherwise.
    pub acks_first: bool,
    /// The law marks ECN-capable packets of other protocols: [`RouterLaw::on_departure`] is told of these with an empty stamp and
    /// the bits of ECT(1), and the packet is marked if it leaves them as those of CE.
    pub marks: bool,
    /// The law counts and stamps what comes in over a medium that the link shares with other stations as it does what goes out, since
    /// both take of the same time on the air.
    pub over_medium: bool,
    /// What the law works with on a link that is shared by windows: if anything, it knows of its own flows what
    /// [`RouterLaw::own_flows`] tells.
    pub by_windows: Option<Room>,
    /// Parameters by which the law begins, and which mean nothing later.
    pub begins_with: &'static [&'static str],
}

impl RouterTraits {
    /// A law that needs the capacity and keeps no timer.
    pub const DEFAULT: Self = Self {
        first_timers: [None; MAX_TIMERS],
        needs_capacity: true,
        gains: None,
        acks_first: false,
        marks: false,
        over_medium: false,
        by_windows: None,
        begins_with: &[],
    };
}

/// A change from outside while the law governs its link.
#[derive(Clone, Copy, Debug)]
pub enum LinkChange<'a, P> {
    /// The parameters are these from now on; estimates stay.
    Params(&'a P),
    /// The link's capacity is this from now on; never told where nobody knows it. With [`Room::Leftover`], what other traffic leaves.
    Capacity(Rate),
    /// The link is shared by windows, [`Room::Leftover`].
    Part {
        /// What the law's own traffic is to have.
        own: Rate,
        /// The link's capacity.
        link: Rate,
    },
}

/// A router's control law on one output link: a state machine that is told of arrivals, departures and its own
/// timers. It has no clock and does no I/O.
///
/// Order of calls for one packet: `on_arrival` when it reaches the output queue, whether or not it is then dropped;
/// `on_departure` when its transmission starts, only for data packets with this law's header.
pub trait RouterLaw: Sized {
    /// What the scenario may set.
    type Params: Default;

    /// What is known of the law with these parameters.
    fn traits(params: &Self::Params) -> RouterTraits;

    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameters that follow from the network where the scenario leaves them open.
    fn open(params: &mut Self::Params) -> Open<'_> {
        let _ = params;
        Open::default()
    }

    /// A law for this link, with all estimates at their start.
    fn new(params: &Self::Params, link: &RouterView) -> Self;

    /// A packet reached the queue.
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>);

    /// A data packet with this law's header starts its transmission: stamp it. `uniform` draws from 0 to 1.
    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, uniform: impl FnMut() -> f64);

    /// Timer `which` (below [`MAX_TIMERS`]) fired; returns when it fires next, later than now.
    fn on_timer(&mut self, which: usize, link: LinkView) -> Time;

    /// Something outside of the law has changed.
    fn on_change(&mut self, change: LinkChange<'_, Self::Params>);

    /// What the law knows of its own flows, if it has seen any.
    fn own_flows(&self) -> Option<OwnFlows> {
        None
    }

    /// Calls `report` with each variable's name and value, for probes.
    fn variables(&self, report: &mut dyn FnMut(&'static str, f64));
}

/// Parameters of a law that has none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

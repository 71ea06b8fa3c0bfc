//! Router laws: how a router stamps packets, and what it computes every control interval.

pub use crate::link::LinkView;
use crate::queue::Limit;
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Open, Refused};

/// Maximum number of timers of a router law.
pub const MAX_TIMERS: usize = 2;

/// Gains of a law with the linear form `y' = -alpha/d (y(t - d) - C) - beta/d^2 q(t - d)` (Katabi 2002, eq. 16),
/// where `d` is the delay, `y` the input rate and `q` the queue. The law's parameters have the same names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Gain on the input rate.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// Share of the capacity that is shuffled in a mean round trip to equalise rates; 0 for laws that give all flows
    /// the same rate.
    pub shuffle: f64,
}

/// The link as a router law sees it at its creation.
#[derive(Clone, Copy, Debug)]
pub struct RouterView {
    /// The link's capacity; `None` where it is unknown.
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

    /// The capacity, for a law that needs it ([`RouterTraits::needs_capacity`]). Such a law is created only where the
    /// capacity is known.
    #[must_use]
    pub fn known_capacity(&self) -> Rate {
        debug_assert!(
            self.capacity.is_some(),
            "a law that needs the capacity on a link that has none to tell"
        );
        self.capacity.unwrap_or(Rate::ZERO)
    }
}

/// A law's estimates of the flows of its own protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnFlows {
    /// Their mean window, bytes.
    pub window_bytes: f64,
    /// Their mean RTT.
    pub rtt: Time,
}

/// The capacity that a law works with on a link whose scheduler sets weights by windows (`weights = "windows"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The capacity that other traffic leaves. [`LinkChange::Part`] also tells the law its part.
    Leftover,
    /// Only its part.
    Part,
}

/// A packet that reached the queue.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'a> {
    /// Bytes.
    pub size: u32,
    /// The stamp of a data packet with the law's header; `None` for acks and packets with other headers.
    pub stamp: Option<&'a Stamp>,
    /// The bits of a packet with a stamp ([`crate::sender::SenderLaw::bits`]).
    pub bits: u16,
}

impl<'a> PacketIn<'a> {
    /// A packet whose bits are zero.
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
    /// The stamp, which the law may change.
    pub stamp: &'a mut Stamp,
    /// The bits, which the law may change. For a packet of another protocol they are its ECN field (RFC 3168 section
    /// 5).
    pub bits: &'a mut u16,
}

/// A batch of frames that one ack has answered, on an interface of a radio cell: an A-MPDU with its block ack (IEEE
/// 802.11n), or a single frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// When the ack came.
    pub at: Time,
    /// Frames that were sent since the ack before, 1 or more: also those of turns that no ack answered.
    pub frames: u32,
    /// Frames that the ack reports as received.
    pub acked: u32,
    /// Maximum number of frames in a turn. It is `frames` if `frames` is larger, or if packets waited although the turn was
    /// not full.
    pub most: u32,
    /// Mean size of a frame's packet, bytes.
    pub packet_bytes: f64,
    /// Mean bytes that a frame takes in the batch, with its headers.
    pub frame_bytes: f64,
    /// The rate at which the frames were sent.
    pub rate: Rate,
    /// Time from the previous ack to this one. If nothing waited at the previous ack, it starts at the arrival of the first
    /// packet.
    pub elapsed: Time,
}

impl Batch {
    /// Seconds on the air that one more frame takes.
    #[inline]
    #[must_use]
    pub fn frame_s(&self) -> f64 {
        self.frame_bytes / self.rate.bytes_per_sec()
    }
}

/// A law's use of [batches](Batch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// The law ignores batches.
    Ignored,
    /// The law ignores batches. With this parameter it would use them, and would need no capacity.
    Suffice(&'static str),
    /// The law needs batches, so it works only on an interface of a radio cell.
    Needed,
}

/// Static properties of a law with its parameters. A law sets those that differ from the default.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub struct RouterTraits {
    /// When each of the law's timers first fires.
    pub first_timers: [Option<Time>; MAX_TIMERS],
    /// The law needs the link's capacity. It is not created where the capacity is unknown.
    pub needs_capacity: bool,
    /// Gains that decide on the loop's stability, if its linear form is [that of XCP](Gains).
    pub gains: Option<Gains>,
    /// By default a link with this law sends acks before data.
    pub acks_first: bool,
    /// The law marks ECN-capable packets of other protocols. [`RouterLaw::on_departure`] gets these with an empty
    /// stamp and the bits of ECT(1). The packet is marked if the law sets the bits to CE.
    pub marks: bool,
    /// On a medium that the link shares with other stations, the law counts and stamps incoming packets like outgoing
    /// ones, because both use the same air time.
    pub over_medium: bool,
    /// Use of the batches of a radio cell.
    pub batches: Batches,
    /// The capacity with which the law works on a link that is shared by windows; `None` if it cannot share by
    /// windows. Such a law implements [`RouterLaw::own_flows`].
    pub by_windows: Option<Room>,
    /// Parameters that matter only at the law's start.
    pub begins_with: &'static [&'static str],
}

impl RouterTraits {
    /// A law that needs the capacity and has no timer.
    pub const DEFAULT: Self = Self {
        first_timers: [None; MAX_TIMERS],
        needs_capacity: true,
        gains: None,
        acks_first: false,
        marks: false,
        over_medium: false,
        batches: Batches::Ignored,
        by_windows: None,
        begins_with: &[],
    };
}

/// An external change while the law governs its link.
#[derive(Clone, Copy, Debug)]
pub enum LinkChange<'a, P> {
    /// New parameters; estimates stay.
    Params(&'a P),
    /// New capacity of the link, or with [`Room::Leftover`] the capacity that other traffic leaves. Never sent where
    /// the capacity is unknown.
    Capacity(Rate),
    /// New part of a link that is shared by windows with [`Room::Leftover`].
    Part {
        /// The part of the law's own traffic.
        own: Rate,
        /// The link's capacity.
        link: Rate,
    },
    /// New buffer of the link.
    Buffer(Limit),
    /// An ack has answered a batch of frames. Sent only to a law that [needs](Batches::Needed) batches.
    Acked(&'a Batch),
}

/// A router's control law on one output link: a state machine that hears of arrivals, departures and its own timers.
/// It has no clock and does no I/O.
///
/// Order of calls for one packet: `on_arrival` when it reaches the output queue, whether or not it is then dropped;
/// `on_departure` when its transmission starts. Departures are data packets with this law's header and, with
/// [`RouterTraits::marks`], ECN-capable packets of other protocols.
pub trait RouterLaw: Sized {
    /// Parameters that a scenario may set.
    type Params: Default;

    /// Static properties of the law with these parameters.
    fn traits(params: &Self::Params) -> RouterTraits;

    /// Checks the parameters.
    ///
    /// # Errors The first invalid parameter, and a value that would be right.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameters that follow from the network if the scenario does not set them.
    fn open(params: &mut Self::Params) -> Open<'_> {
        let _ = params;
        Open::default()
    }

    /// Creates the law for a link, with initial estimates.
    fn new(params: &Self::Params, link: &RouterView) -> Self;

    /// A packet reached the queue.
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>);

    /// Stamps a data packet of this law, or marks another packet, when its transmission starts. `uniform` draws from `[0, 1)`.
    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, uniform: impl FnMut() -> f64);

    /// Handles timer `which`, below [`MAX_TIMERS`]. Returns when it fires next, later than now.
    fn on_timer(&mut self, which: usize, link: LinkView) -> Time;

    /// Handles an external change.
    fn on_change(&mut self, change: LinkChange<'_, Self::Params>);

    /// The law's estimates of its own flows, if it has seen any.
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

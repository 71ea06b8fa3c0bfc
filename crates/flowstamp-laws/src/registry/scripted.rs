//! Scripted laws for tests: they do what the test sets and record what they hear.
//!
//! The interface of laws has more than any single listed law uses: labels, bits, a queue's timer. A test lays out a
//! network, replaces its laws by these and checks the effects of what they write. No scenario can name them.

use super::Header;
use crate::queue::{Arrival, Departure, Hears, Limit, QueueLaw, QueueView, Verdict};
use crate::router::{LinkView, NoParams, OwnFlows, PacketIn, PacketOut};
use crate::sender::{Ack, Congestion, FlowView, SenderLaw};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue law that admits all packets.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Events that it hears.
    pub hears: Hears,
    /// The label that it writes.
    pub writes: Option<f64>,
    /// Times at which its timer fires, in order.
    pub timer: Vec<Time>,
    /// The link as it saw it each time its timer fired.
    pub fired: Vec<LinkView>,
    /// Packets that arrived.
    pub arrived: Vec<Arrival>,
    /// Packets that left.
    pub left: Vec<Departure>,
    /// Capacities that it heard of.
    pub capacities: Vec<Rate>,
}

impl QueueLaw for Queue {
    type Params = NoParams;
    const HEARS: Hears = Hears { departures: true, labels: true, capacity: true };

    fn new(_: &NoParams, _: &QueueView) -> Self {
        Self {
            hears: Self::HEARS,
            writes: None,
            timer: Vec::new(),
            fired: Vec::new(),
            arrived: Vec::new(),
            left: Vec::new(),
            capacities: Vec::new(),
        }
    }

    fn set_limit(&mut self, _: Limit) {}

    fn set_capacity(&mut self, capacity: Rate) {
        self.capacities.push(capacity);
    }

    fn on_arrival(&mut self, arrival: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        self.arrived.push(*arrival);
        Verdict::Enqueue
    }

    fn label(&mut self, _: &Arrival) -> Option<f64> {
        self.writes
    }

    fn on_departure(&mut self, departure: &Departure, _: impl FnMut() -> f64) -> Verdict {
        self.left.push(*departure);
        Verdict::Enqueue
    }

    fn first_timer(&self) -> Option<Time> {
        self.timer.first().copied()
    }

    fn on_timer(&mut self, link: LinkView) -> Time {
        self.fired.push(link);
        self.timer.get(self.fired.len()).copied().unwrap_or(Time::MAX)
    }
}

/// The events of a test's router law.
pub trait Routes: Debug + Send {
    /// [`crate::router::RouterLaw::on_arrival`].
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>);
    /// [`crate::router::RouterLaw::on_departure`].
    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>);
    /// [`crate::router::RouterLaw::on_timer`].
    fn on_timer(&mut self, which: usize, link: LinkView) -> Time;
}

/// A router law that a test writes, perhaps in another crate. Clones share its state, which the test reads afterwards.
#[derive(Clone, Debug)]
pub struct Router {
    /// Header of the packets that it may change.
    pub header: Header,
    /// The law.
    pub law: Arc<Mutex<dyn Routes>>,
}

impl Router {
    fn law(&self) -> MutexGuard<'_, dyn Routes + 'static> {
        self.law.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
        self.law().on_arrival(link, packet);
    }

    pub(super) fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        self.law().on_departure(link, packet);
    }

    pub(super) fn on_timer(&mut self, which: usize, link: LinkView) -> Time {
        self.law().on_timer(which, link)
    }

    #[expect(clippy::unused_self, reason = "as the listed laws have it")]
    pub(super) fn own_flows(&self) -> Option<OwnFlows> {
        None
    }

    #[expect(clippy::unused_self, reason = "likewise")]
    pub(super) fn variables(&self, _: &mut dyn FnMut(&'static str, f64)) {}
}

/// A sender law with a constant window.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Its window, bytes.
    pub window: f64,
    /// The stamp of its packets.
    pub stamp: Stamp,
    /// The bits of its packets.
    pub bits: u16,
    /// For each ack its newly acknowledged packets, bits and stamp.
    pub acks: Vec<(u32, u16, Stamp)>,
}

impl SenderLaw for Sender {
    type Params = NoParams;

    fn new(_: &NoParams, flow: &FlowView) -> Self {
        let window = flow.initial_window * f64::from(flow.packet_bytes);
        Self { window, stamp: Stamp::default(), bits: 0, acks: Vec::new() }
    }

    fn cwnd(&self) -> f64 {
        self.window
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.acks.push((ack.newly_acked, ack.bits, *ack.stamp));
    }
    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        self.stamp
    }
    fn bits(&self) -> u16 {
        self.bits
    }
}

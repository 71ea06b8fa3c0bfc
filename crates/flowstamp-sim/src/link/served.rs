//! A router link whose scheduler serves classes in turn.
//!
//! What is sent next is known only when the packet before has gone, so such a link has an event for each packet that
//! waited. Only what is in transmission or beyond is in the ring.

use super::laws::{Backlog, Laws, arrival};
use super::plain::Plain;
use super::{Admission, Tap};
use crate::packet::{DATA, Packet};
use flowstamp_laws::registry::AnyQueue;
use flowstamp_laws::share::Scheduler;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// By what packets are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// The router law's own protocol, and everything else.
    Protocol,
    /// Nothing: there is one class.
    None,
    /// Acks and answers, and all that goes the way of the data.
    Acks,
}

impl Classifier {
    /// How many classes there are.
    #[must_use]
    pub fn classes(self) -> usize {
        self.names().len()
    }

    /// Names of the classes, and of their queues in probes.
    fn names(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::None => &[("all", "queue_bytes")],
            Self::Protocol => &[("own", "own_queue_bytes"), ("other", "other_queue_bytes")],
            Self::Acks => &[("ack", "ack_queue_bytes"), ("data", "data_queue_bytes")],
        }
    }

    #[inline]
    fn class(self, own: bool, packet: &Packet) -> usize {
        usize::from(match self {
            Self::None => false,
            Self::Protocol => !own,
            Self::Acks => packet.flags & DATA != 0,
        })
    }
}

/// What waits of one class.
#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<Packet>,
    backlog: Backlog,
}

/// The law that moves the weights of the classes, and the queue law of each, which has a part of the buffer.
#[derive(Clone, Debug)]
struct Divided {
    split: Split,
    laws: Vec<AnyQueue>,
}

/// Queues of classes before a line.
#[derive(Clone, Debug)]
pub struct Served {
    /// Laws and statistics. Its queue law serves all classes together unless the link is divided.
    pub laws: Laws,
    classifier: Classifier,
    scheduler: Scheduler,
    queues: Box<[Queue]>,
    /// Sizes of the queues' first packets.
    heads: Box<[Option<u32>]>,
    weights: Box<[f64]>,
    divided: Option<Box<Divided>>,
    /// A choice is due when the packet in transmission has gone.
    choice_due: bool,
    /// Who sends next is not for the link alone to say: its medium is shared.
    asks: bool,
}

impl Served {
    /// A link on which nothing waits. With a `split` each class has a queue law like the link's, and the weights are
    /// the split's; else all have the same weight and one buffer.
    #[must_use]
    pub fn new(laws: Laws, classifier: Classifier, scheduler: Scheduler, split: Option<Split>) -> Self {
        let classes = classifier.classes();
        let mut served = Self {
            classifier,
            scheduler,
            queues: vec![Queue::default(); classes].into(),
            heads: vec![None; classes].into(),
            weights: vec![1.0; classes].into(),
            divided: split.map(|split| Box::new(Divided { split, laws: vec![laws.queue.clone(); classes] })),
            laws,
            choice_due: false,
            asks: false,
        };
        served.weigh();
        served
    }

    /// The same link on a shared medium: each packet waits until it is granted.
    #[must_use]
    pub fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    fn weigh(&mut self) {
        if let Some(divided) = &self.divided {
            self.weights.copy_from_slice(&divided.split.weights());
        }
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.queues.iter().map(|q| q.backlog.packets).sum()
    }

    /// The queue that the router law sees: where the link is divided, its own class's.
    #[must_use]
    pub fn seen(&self) -> Backlog {
        if self.divided.is_some() { self.queues[0].backlog } else { self.laws.backlog() }
    }

    /// The law that divides the link.
    pub(super) fn split(&mut self) -> Option<&mut Split> {
        self.divided.as_mut().map(|d| &mut d.split)
    }

    /// The running period of the law that divides the link has ended; returns when the next one does.
    pub(super) fn divide(&mut self, now: Time) -> Option<Time> {
        let next = self.divided.as_mut().map(|d| d.split.on_timer(now));
        self.weigh();
        next
    }

    /// Calls `report` with each variable's name and value, for probes.
    pub(super) fn variables(&self, report: &mut dyn FnMut(&str, f64)) {
        if let Some(divided) = &self.divided {
            divided.split.variables(&mut |name, value| report(name, value));
        }
        for ((_, name), queue) in self.classifier.names().iter().zip(&self.queues) {
            report(name, queue.backlog.bytes as f64);
        }
        let Some(divided) = &self.divided else {
            self.laws.queue.variables(&mut |name, value| report(name, value));
            return;
        };
        for ((class, _), law) in self.classifier.names().iter().zip(&divided.laws) {
            law.variables(&mut |name, value| report(&format!("{class}_{name}"), value));
        }
    }

    /// A copy of `packet` reaches the link.
    #[cold]
    pub fn admit(&mut self, line: &mut Plain, now: Time, packet: &Packet, tap: &mut Tap<'_>) -> Admission {
        line.arrivals += 1;
        let seen = self.seen();
        let waiting = self.waiting();
        let laws = &mut self.laws;
        laws.stats.arrivals += 1;
        let own = laws.is_own(packet);
        let class = self.classifier.class(own, packet);
        let size = u32::from(packet.size);
        let queue = &mut self.queues[class];
        let random = &mut laws.random;
        if let Some(divided) = &mut self.divided {
            divided.split.on_arrival(class, packet.flow_id(), size, || random.uniform());
        }
        if own || self.divided.is_none() {
            laws.arrives(now, seen, packet);
        }
        let mut arrival = arrival(line, now, packet, laws.queue_bytes(), waiting);
        if self.choice_due {
            arrival.idle_since = None;
        }
        let mark = match &mut self.divided {
            None => laws.decide(&arrival),
            Some(divided) => {
                // Each class has its part of the buffer, or one with little of the link would wait for many buffers'
                // time: to its queue law a queue is as long as it would be if the class had all of the link.
                let part = divided.split.shares()[class];
                arrival.queue_bytes = (queue.backlog.bytes as f64 / part) as u64;
                arrival.queue_packets = (f64::from(queue.backlog.packets) / part) as u32;
                let random = &mut laws.random;
                let verdict = divided.laws[class].on_arrival(&arrival, || random.uniform());
                laws.settle_verdict(verdict, size)
            }
        };
        let Some(mark) = mark else { return Admission::Dropped };
        if arrival.idle_since.is_some() && !self.asks {
            return self.begin(line, now, packet, mark, tap);
        }
        laws.enter(now, packet.size);
        queue.backlog.add(packet.size);
        queue.packets.push_back(Packet { flags: packet.flags | mark, ..*packet });
        self.heads[class].get_or_insert(size);
        self.scheduler.enqueue(class, size, &self.weights);
        if std::mem::replace(&mut self.choice_due, true) {
            Admission::Behind
        } else {
            Admission::Choose(line.free_at())
        }
    }

    /// The transmission of a packet begins.
    fn begin(
        &mut self,
        line: &mut Plain,
        now: Time,
        packet: &Packet,
        mark: u8,
        tap: &mut Tap<'_>,
    ) -> Admission {
        let seen = self.seen();
        let (first, entry) = line.transmit(now, packet);
        entry.packet.flags |= mark;
        self.laws.stamp(now, seen, &mut entry.packet);
        if self.laws.captured {
            tap.record(now, &entry.packet);
        }
        Admission::sent(first, entry.arrives)
    }

    /// The packet in transmission has gone: the scheduler chooses the next. Returns what became of that one, and when
    /// the next choice is due.
    pub fn choose(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) -> (Admission, Option<Time>) {
        let class = self.scheduler.pick(&self.heads, &self.weights);
        let Some((class, packet)) = class.and_then(|c| Some((c, self.queues[c].packets.pop_front()?))) else {
            return (Admission::Behind, None);
        };
        let queue = &mut self.queues[class];
        queue.backlog.take(packet.size);
        self.heads[class] = queue.packets.front().map(|p| u32::from(p.size));
        self.laws.leave(now, packet.size);
        let admission = self.begin(line, now, &packet, 0, tap);
        self.choice_due = self.heads.iter().any(Option::is_some);
        (admission, self.choice_due.then_some(line.free_at()))
    }

    /// When the next choice is due, if one is.
    pub(super) fn choice(&self, line: &Plain) -> Option<Time> {
        self.choice_due.then_some(line.free_at())
    }
}

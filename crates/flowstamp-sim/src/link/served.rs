//! A router link whose scheduler serves several classes.
//!
//! The next packet is chosen only when the one before has left, so each queued packet costs an event. The ring holds
//! only packets in transmission or in flight.
//!
//! A single class is served like this where the queue law decides or labels on departure. A packet that is dropped on
//! departure uses up its class's turn. A class can have an order by flow within it.

use super::classes::Classifier;
use super::cloud::Cloud;
use super::hold::Hold;
use super::laws::{Backlog, Laws, arrival};
use super::plain::Plain;
use super::waiting::{Order, Queue, Waiting};
use super::{Admission, Tap};
use crate::packet::{DATA, ECN_CAPABLE, Packet};
use flowstamp_laws::queue::fq_codel::FqCodel;
use flowstamp_laws::queue::token_bucket::Buckets;
use flowstamp_laws::queue::{Departure, Hears, Verdict};
use flowstamp_laws::registry::{AnyQueue, Header};
use flowstamp_laws::share::Scheduler;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::units::{Bytes, Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// Queue laws of a link that has one for each class.
#[derive(Clone, Debug)]
struct Divided {
    /// The law that sets the weights of the classes; each class then has a part of one buffer. Without it each class
    /// has a buffer of its own.
    split: Option<Split>,
    laws: Vec<AnyQueue>,
}

/// Queues of classes before a line.
#[derive(Clone, Debug)]
pub struct Served {
    /// Laws and statistics. The queue law serves all classes together unless `divided` is set.
    pub laws: Laws,
    hears: Hears,
    classifier: Classifier,
    scheduler: Scheduler,
    queues: Box<[Queue]>,
    /// Size of the first packet of each queue, bytes.
    heads: Box<[Option<u32>]>,
    weights: Box<[f64]>,
    divided: Option<Box<Divided>>,
    /// A choice is pending for when the packet in transmission has left.
    pub(super) choice_due: bool,
    /// The medium is shared: the link needs a grant before it sends.
    asks: bool,
    shaper: Option<Shaper>,
    /// Token buckets that delay the first packet of the single class, beside the line.
    buckets: Option<Box<Buckets>>,
    /// A full buffer drops its oldest packet instead of the one that arrives.
    drops_head: bool,
    /// Selective acks of packets that were dropped to make room, until [`Served::given_up`] takes them.
    given_up: Vec<u32>,
    /// Bytes that the MAC of a cell's station holds for A-MPDUs.
    pub aside_bytes: u64,
    /// Set where priority flow control may stop the link.
    pub(super) hold: Option<Box<Hold>>,
}

/// Spaces the starts of transmissions: each comes `size / rate` after the one before.
#[derive(Clone, Debug, Default)]
struct Shaper {
    /// `None` until a flow has set the rate.
    rate: Option<Rate>,
    /// When the last transmission began, and its size in bytes.
    began: Time,
    size: u64,
    /// When each flow's last data packet arrived, once a flow has asked for their number.
    seen: Option<BTreeMap<u64, Time>>,
    cloud: Option<Cloud>,
}

impl Shaper {
    /// When the next transmission may begin.
    fn next(&self) -> Time {
        let gap = self.rate.map_or(Time::ZERO, |rate| rate.tx_time(Bytes::new(self.size)));
        // At a rate near zero the time overflows: it is then never, until the rate changes.
        self.began.saturating_add(gap).min(Time::from_ps(Time::MAX.as_ps() - 1))
    }
}

impl Served {
    /// An empty link. With a `split` each class has a queue law like the link's, and the split sets the weights.
    /// Otherwise all classes have the same weight and one buffer.
    #[must_use]
    pub fn new(laws: Laws, classifier: Classifier, scheduler: Scheduler, split: Option<Split>) -> Self {
        let classes = classifier.classes();
        let mut served = Self {
            hears: laws.queue.hears(),
            classifier,
            scheduler,
            queues: vec![
                Queue { order: Order::Arrival(VecDeque::new()), backlog: Backlog::default() };
                classes
            ]
            .into(),
            heads: vec![None; classes].into(),
            weights: vec![1.0; classes].into(),
            divided: split.map(|split| {
                Box::new(Divided { split: Some(split), laws: vec![laws.queue.clone(); classes] })
            }),
            laws,
            choice_due: false,
            asks: false,
            shaper: None,
            buckets: None,
            drops_head: false,
            given_up: Vec::new(),
            aside_bytes: 0,
            hold: None,
        };
        served.weigh();
        if let Some(rate) = served.split().map(|split| split.capacity()) {
            served.tell(rate);
        }
        served
    }

    /// Returns this undivided link with a queue law and a buffer like the link's for each class.
    #[must_use]
    pub fn apart(mut self) -> Self {
        let laws = vec![self.laws.queue.clone(); self.queues.len()];
        self.divided = Some(Box::new(Divided { split: None, laws }));
        self.laws.limit = self.laws.limit.times(self.buffers());
        self
    }

    /// Number of buffers of the link's size.
    #[must_use]
    pub fn buffers(&self) -> u32 {
        self.divided.as_ref().filter(|d| d.split.is_none()).map_or(1, |d| d.laws.len() as u32)
    }

    /// Returns this link of one class with token buckets that shape its departures.
    #[must_use]
    pub fn shaped(self, buckets: Buckets) -> Self {
        Self { buckets: Some(Box::new(buckets)), ..self }
    }

    /// Returns this link of one class with a buffer that drops its oldest packet when full.
    #[must_use]
    pub fn dropping_head(self) -> Self {
        Self { drops_head: true, ..self }
    }

    /// Returns this link with `law` as the first class's queue law, if it is divided.
    #[must_use]
    pub fn with_first(mut self, law: AnyQueue) -> Self {
        if let Some(divided) = &mut self.divided {
            divided.laws[0] = law;
        }
        self
    }

    /// Tells the queue laws the capacity, if they ask for it. On a divided link each hears its class's part.
    pub(super) fn tell(&mut self, rate: Rate) {
        if !self.laws.queue.hears().capacity {
            return;
        }
        let Some(divided) = &mut self.divided else { return self.laws.queue.set_capacity(rate) };
        let shares = divided.split.as_ref().map(Split::shares);
        for (class, law) in divided.laws.iter_mut().enumerate() {
            law.set_capacity(rate * shares.map_or(1.0, |shares| shares[class]));
        }
    }

    /// Returns this link with constant weights.
    #[must_use]
    pub fn weighing(mut self, weights: [f64; 2]) -> Self {
        self.weights = weights.into();
        self
    }

    /// Returns this undivided link with each class served by flow.
    #[must_use]
    pub fn by_flow(mut self, flows: &FqCodel<Waiting>) -> Self {
        for queue in &mut self.queues {
            queue.order = Order::Flows(Box::new(flows.clone()));
        }
        self
    }

    /// Returns this link on a shared medium: each packet waits for a grant.
    #[must_use]
    pub fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Returns this link with a shaper whose rate a flow sets.
    #[must_use]
    pub fn governed(self) -> Self {
        Self { shaper: Some(Shaper::default()), ..self }
    }

    /// Sets the shaper's rate.
    pub(super) fn shape(&mut self, rate: Rate) {
        if let Some(shaper) = &mut self.shaper {
            shaper.rate = Some(rate);
        }
    }

    /// The cloud that begins behind this link, if its packets carry a header there.
    pub(super) fn cloud(&mut self) -> Option<&mut Option<Cloud>> {
        self.shaper.as_mut().map(|shaper| &mut shaper.cloud)
    }

    /// Number of flows whose data have arrived within the time `idle` before `now`.
    pub(super) fn flows_within(&mut self, idle: Time, now: Time) -> u32 {
        let Some(shaper) = &mut self.shaper else { return 0 };
        let seen = shaper.seen.get_or_insert_default();
        seen.retain(|_, last| now - *last < idle);
        seen.len() as u32
    }

    /// When the next transmission may begin: line, shaper and token buckets allow it.
    fn ready(&self, line: &Plain) -> Time {
        let paced = self.shaper.as_ref().map_or(line.free_at(), |shaper| shaper.next().max(line.free_at()));
        self.heads[0].map_or(paced, |size| self.conforms(size).max(paced))
    }

    /// When the buckets hold enough tokens for a packet of `size` bytes.
    fn conforms(&self, size: u32) -> Time {
        // At a rate near zero the time overflows: it is then never.
        let never = Time::from_ps(Time::MAX.as_ps() - 1);
        self.buckets.as_ref().map_or(Time::ZERO, |buckets| buckets.ready(size).min(never))
    }

    fn weigh(&mut self) {
        if let Some(weights) = self.split().map(|split| split.weights()) {
            self.weights.copy_from_slice(&weights);
        }
    }

    /// Queued packets of the classes that are served in the order of arrival.
    pub fn waiting_packets(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flat_map(|queue| {
            let packets = if let Order::Arrival(packets) = &queue.order { Some(packets) } else { None };
            packets.into_iter().flatten().map(|waiting| &waiting.packet)
        })
    }

    /// Number of queued packets.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.queues.iter().map(|q| q.backlog.packets).sum()
    }

    /// The queue that the router law sees. On a divided link it is that of the law's own class.
    #[must_use]
    pub fn seen(&self) -> Backlog {
        let splits = self.divided.as_ref().is_some_and(|divided| divided.split.is_some());
        if splits { self.queues[0].backlog } else { self.laws.backlog() }
    }

    /// The law that divides the link.
    pub(super) fn split(&mut self) -> Option<&mut Split> {
        self.divided.as_mut().and_then(|d| d.split.as_mut())
    }

    /// Ends the current period of the law that divides the link. Returns when the next one ends.
    pub(super) fn divide(&mut self, now: Time) -> Option<Time> {
        let next = self.split().map(|split| split.on_timer(now));
        self.weigh();
        if let Some(rate) = self.split().map(|split| split.capacity()) {
            self.tell(rate);
        }
        next
    }

    /// Calls `report` with each variable's name and value, for probes.
    pub(super) fn variables(&self, report: &mut dyn FnMut(&str, f64)) {
        if let Some(split) = self.divided.as_ref().and_then(|divided| divided.split.as_ref()) {
            split.variables(&mut |name, value| report(name, value));
        }
        if self.queues.len() > 1 {
            for ((_, name), queue) in self.classifier.names().iter().zip(&self.queues) {
                report(name, queue.backlog.bytes as f64);
            }
        }
        let several = self.queues.len() > 1;
        for ((class, _), queue) in self.classifier.names().iter().zip(&self.queues) {
            match &queue.order {
                Order::Arrival(_) => {}
                Order::Flows(flows) if several => {
                    flows.variables(&mut |name, value| report(&format!("{class}_{name}"), value));
                }
                Order::Flows(flows) => flows.variables(&mut |name, value| report(name, value)),
            }
        }
        let Some(divided) = &self.divided else {
            self.laws.queue.variables(&mut |name, value| report(name, value));
            return;
        };
        for ((class, _), law) in self.classifier.names().iter().zip(&divided.laws) {
            law.variables(&mut |name, value| report(&format!("{class}_{name}"), value));
        }
    }

    /// The queue laws: one for each class where the link is divided, else one for all.
    pub(super) fn queue_laws(&mut self) -> &mut [AnyQueue] {
        match &mut self.divided {
            None => std::slice::from_mut(&mut self.laws.queue),
            Some(divided) => &mut divided.laws,
        }
    }

    /// The queue as the queue law of `class` sees it.
    ///
    /// On a divided link the class has a part of the buffer in proportion to its share. Its queue law therefore sees
    /// the backlog divided by that share. With the whole buffer, a class with a small share would wait for many times
    /// the buffer's delay.
    pub(super) fn seen_by(&self, class: usize) -> Backlog {
        let Some(divided) = &self.divided else { return self.laws.backlog() };
        let Some(split) = &divided.split else { return self.queues[class].backlog };
        let part = split.shares()[class];
        let Backlog { bytes, packets } = self.queues[class].backlog;
        Backlog { bytes: (bytes as f64 / part) as u64, packets: (f64::from(packets) / part) as u32 }
    }

    /// Enqueues a copy of `packet`, begins its transmission, or drops it.
    #[cold]
    pub fn admit(&mut self, line: &mut Plain, now: Time, packet: &Packet, tap: &mut Tap<'_>) -> Admission {
        line.arrivals += 1;
        let seen = self.seen();
        let own = self.laws.is_own(packet);
        let class = self.classifier.class(own, packet, &tap.sacks.labels);
        self.laws.stats.arrivals += 1;
        if !self.laws.admits(now, packet, own) {
            return Admission::Dropped;
        }
        let size = u32::from(packet.size);
        if let Some(seen) = self.shaper.as_mut().and_then(|shaper| shaper.seen.as_mut()) {
            if packet.flags & DATA != 0 {
                seen.insert(packet.flow_id(), now);
            }
        }
        let random = &mut self.laws.random;
        let split = self.divided.as_mut().and_then(|divided| divided.split.as_mut());
        let hears = own || split.is_none();
        if let Some(split) = split {
            split.on_arrival(class, packet.flow_id(), size, || random.uniform());
        }
        if hears {
            self.laws.arrives(now, seen, packet);
        }
        let Backlog { bytes, packets } = self.seen_by(class);
        let mut arrival = arrival(line, now, packet, bytes, packets);
        if self.choice_due || self.conforms(size) > now {
            arrival.idle_since = None;
        }
        if self.hold.is_some() && !self.has_room(&mut arrival, packet) {
            return Admission::Dropped;
        }
        let bears_label = self.hears.labels && packet.header == Header::Plain && packet.flags & DATA != 0;
        if bears_label {
            arrival.label = Some(packet.stamp.0[0]).filter(|label| *label != 0.0);
        }
        let laws = &mut self.laws;
        let mark = match &mut self.divided {
            None => laws.decide(&arrival, packet),
            Some(divided) => {
                let random = &mut laws.random;
                let mut verdict = divided.laws[class].on_arrival(&arrival, || random.uniform());
                let split = &mut divided.split;
                // A class whose part has shrunk may hold more than its part of the buffer while another's part has
                // grown. The sum must still fit into the buffer.
                let Backlog { bytes, packets } = laws.backlog();
                if arrival.idle_since.is_none() && !laws.limit.admits(bytes, packets, size) {
                    verdict = Verdict::Drop;
                }
                if let (Some(split), true) = (split, verdict != Verdict::Enqueue) {
                    split.on_loss(class);
                }
                laws.settle_verdict(verdict, packet)
            }
        };
        let Some(mark) = mark else { return Admission::Dropped };
        let mut packet = Packet { flags: packet.flags | mark, ..*packet };
        if bears_label {
            if let Some(label) = self.law(class).label(&arrival) {
                packet.stamp.0[0] = label;
            }
        }
        let waiting = Waiting { since: now, packet };
        let at_once = arrival.idle_since.is_some() && !self.asks && self.ready(line) <= now;
        let queue = &mut self.queues[class];
        let packets = match &mut queue.order {
            Order::Flows(flows) => {
                flows.enqueue(packet.flow_id(), waiting);
                if at_once {
                    // The packet still passes through FQ-CoDel, so that its flow uses up its turn.
                    let Some((waiting, verdict)) = flows.dequeue(now) else { return Admission::Dropped };
                    let mark = self.laws.settle_departure(verdict, &waiting.packet);
                    return self.begin(line, now, &waiting, mark, tap);
                }
                queue.backlog.add(packet.size);
                self.heads[class] = Some(size);
                return self.waits_by_flow(line, now, packet.size);
            }
            Order::Arrival(packets) => packets,
        };
        if at_once {
            let mark = self.leaves(now, class, &waiting);
            return self.begin(line, now, &waiting, mark, tap);
        }
        packets.push_back(waiting);
        queue.backlog.add(packet.size);
        let Backlog { bytes, packets } = self.laws.backlog();
        if self.drops_head && !self.laws.limit.admits(bytes, packets, size) && packets > 0 {
            self.make_room(now, packet.size);
            return Admission::Overfull;
        }
        self.laws.enter(now, packet.size);
        self.heads[class].get_or_insert(size);
        self.scheduler.enqueue(class, size, &self.weights);
        if std::mem::replace(&mut self.choice_due, true) {
            Admission::Behind
        } else {
            Admission::Choose(self.ready(line))
        }
    }

    /// Accounts for a packet of `size` bytes that has joined its flow's queue.
    fn waits_by_flow(&mut self, line: &Plain, now: Time, size: u16) -> Admission {
        let Backlog { bytes, packets } = self.laws.backlog();
        if !self.laws.limit.admits(bytes, packets, u32::from(size)) {
            // The queue was not empty, or the law would have dropped the packet. Therefore a choice is already pending.
            self.make_room(now, size);
            return Admission::Overfull;
        }
        self.laws.enter(now, size);
        if std::mem::replace(&mut self.choice_due, true) {
            Admission::Behind
        } else {
            Admission::Choose(self.ready(line))
        }
    }

    /// Drops packets until the backlog fits the buffer again, after a packet of `size` bytes has joined. Packets come
    /// from the longest flow of all classes, or from the head of the longest class. The new packet may be among them.
    #[cold]
    fn make_room(&mut self, now: Time, size: u16) {
        let mut rest = self.laws.backlog();
        rest.add(size);
        let mut lost = Backlog::default();
        while !self.laws.limit.holds(rest.bytes, rest.packets) {
            let longest = self.queues.iter_mut().max_by_key(|queue| queue.longest_bytes());
            let Some(Queue { order, backlog }) = longest else { break };
            let mut lose = |waiting: Waiting| {
                let size = waiting.packet.size;
                self.laws.stats.lose(&waiting.packet);
                lost.add(size);
                backlog.take(size);
                rest.take(size);
                self.given_up.push(waiting.packet.sack);
            };
            match order {
                Order::Flows(flows) => flows.give_up(lose),
                Order::Arrival(packets) => match packets.pop_front() {
                    Some(first) => lose(first),
                    None => break,
                },
            }
        }
        for (head, queue) in self.heads.iter_mut().zip(&self.queues) {
            *head = queue.head();
        }
        self.laws.enter_for(now, size, lost);
    }

    /// Takes the selective acks of packets that were dropped to make room since the last call.
    pub fn given_up(&mut self) -> impl Iterator<Item = u32> {
        self.given_up.drain(..)
    }

    /// The queue law that decides on packets of `class`.
    fn law(&mut self, class: usize) -> &mut AnyQueue {
        match &mut self.divided {
            None => &mut self.laws.queue,
            Some(divided) => &mut divided.laws[class],
        }
    }

    /// The queue law's verdict on departure for a packet of `class`: the mark it gets, or `None` if it is dropped.
    fn leaves(&mut self, now: Time, class: usize, waiting: &Waiting) -> Option<u8> {
        if !self.hears.departures {
            return Some(0);
        }
        let packet = &waiting.packet;
        let backlog = self.queues[class].backlog;
        let backlog = if self.divided.is_some() { backlog } else { self.laws.backlog() };
        let departure = Departure {
            now,
            size: u32::from(packet.size),
            flow: packet.flow_id(),
            sojourn: now - waiting.since,
            queue_bytes: backlog.bytes,
            queue_packets: backlog.packets,
            ecn_capable: packet.flags & ECN_CAPABLE != 0,
            l4s: packet.is_l4s(),
        };
        let random = &mut self.laws.random;
        let verdict = match &mut self.divided {
            None => self.laws.queue.on_departure(&departure, || random.uniform()),
            Some(divided) => {
                let verdict = divided.laws[class].on_departure(&departure, || random.uniform());
                if let (Some(split), true) = (&mut divided.split, verdict != Verdict::Enqueue) {
                    split.on_loss(class);
                }
                verdict
            }
        };
        self.laws.settle_departure(verdict, packet)
    }

    /// Begins the transmission of a packet with `mark`, or drops the packet if `mark` is `None`.
    fn begin(
        &mut self,
        line: &mut Plain,
        now: Time,
        waiting: &Waiting,
        mark: Option<u8>,
        tap: &mut Tap<'_>,
    ) -> Admission {
        let Some(mark) = mark else { return Admission::Dropped };
        self.laws.stats.waits.add(now - waiting.since);
        let seen = self.seen();
        if let Some(shaper) = &mut self.shaper {
            (shaper.began, shaper.size) = (now, u64::from(waiting.packet.size));
        }
        if let Some(buckets) = &mut self.buckets {
            buckets.take(now, u32::from(waiting.packet.size));
        }
        let (first, entry) = line.transmit(now, &waiting.packet);
        entry.packet.flags |= mark;
        if let Some(cloud) = self.shaper.as_ref().and_then(|shaper| shaper.cloud.as_ref()) {
            cloud.put_on(&mut entry.packet);
        }
        self.laws.stamp(now, seen, &mut entry.packet);
        if self.laws.captured {
            tap.record(now, now - waiting.since, &entry.packet);
        }
        Admission::sent(first, entry.arrives)
    }

    /// Lets the scheduler choose the next packet, when the line is free. Returns its outcome and its selective acks, or
    /// `None` if the queue is empty. After a drop the line is still free.
    pub fn choose(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) -> Option<(Admission, u32)> {
        let class = self.scheduler.pick(&self.heads, &self.weights);
        let chosen = class.and_then(|c| Some((c, self.queues[c].take(now)?)));
        let Some((class, (waiting, verdict))) = chosen else {
            self.choice_due = false;
            return None;
        };
        let size = waiting.packet.size;
        self.heads[class] = self.queues[class].head();
        self.laws.leave(now, size);
        let mark = match verdict {
            None => self.leaves(now, class, &waiting),
            Some(verdict) => self.laws.settle_departure(verdict, &waiting.packet),
        };
        let admission = self.begin(line, now, &waiting, mark, tap);
        self.choice_due = self.heads.iter().any(Option::is_some);
        Some((admission, waiting.packet.sack))
    }

    /// When the next packet is to be chosen, if a choice is pending.
    pub(super) fn choice(&self, line: &Plain) -> Option<Time> {
        self.choice_due.then(|| self.ready(line))
    }
}

//! A link whose router law shares it with other traffic.
//!
//! With a scheduler each class has a queue, and what is sent next is known only when the packet before has gone: such a
//! link needs an event for each packet that waited. With one queue for all, the ring serves as ever.

use super::{Admission, Link, Policy};
use crate::packet::{DATA, Packet};
use flowstamp_laws::registry::AnyQueue;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::{CLASSES, OTHER, OWN, Scheduler};
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// How a router law shares its link.
#[derive(Clone, Debug)]
pub struct Share {
    /// Who gets how much.
    pub split: Split,
    scheduler: Scheduler,
    /// The queue law of each class that has a queue of its own; [`Policy::queue`] serves the single queue.
    laws: [AnyQueue; CLASSES],
    queues: [VecDeque<Packet>; CLASSES],
    queue_bytes: [u64; CLASSES],
    /// A choice is due when the packet in transmission has gone.
    choice_due: bool,
}

impl Share {
    /// A share of a link on which nothing waits; each class gets a queue law like `queue`.
    #[must_use]
    pub fn new(split: Split, scheduler: Scheduler, queue: &AnyQueue) -> Self {
        Self {
            split,
            scheduler,
            laws: [queue.clone(), queue.clone()],
            queues: [VecDeque::new(), VecDeque::new()],
            queue_bytes: [0; CLASSES],
            choice_due: false,
        }
    }

    /// Bytes that wait of the router law's own protocol.
    #[must_use]
    pub fn own_queue_bytes(&self) -> u64 {
        self.queue_bytes[OWN]
    }

    /// Packets that wait in the queues of classes.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.queues.iter().map(|q| q.len() as u32).sum()
    }

    /// Calls `report` with each variable's name and value, for probes.
    pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.split.variables(report);
        report("own_queue_bytes", self.queue_bytes[OWN] as f64);
        report("other_queue_bytes", self.queue_bytes[OTHER] as f64);
    }

    /// The queue laws of the classes, where each has a queue.
    #[must_use]
    pub fn queue_laws(&self) -> Option<[(&'static str, &AnyQueue); CLASSES]> {
        (!self.is_one_queue()).then(|| [("own", &self.laws[OWN]), ("other", &self.laws[OTHER])])
    }

    fn is_one_queue(&self) -> bool {
        matches!(self.scheduler, Scheduler::Fifo)
    }

    fn pick(&mut self) -> Option<Packet> {
        let heads = [0, 1].map(|c| self.queues[c].front().map(|p| u32::from(p.size)));
        let class = self.scheduler.pick(heads, self.split.weights())?;
        self.queues[class].pop_front()
    }
}

impl Policy {
    fn class(&self, packet: &Packet) -> usize {
        let own = self.router.as_ref().is_some_and(|r| r.protocol() == packet.protocol);
        if own { OWN } else { OTHER }
    }

    /// `packet` joins or leaves what waits of its class.
    #[cold]
    pub(super) fn count_class(&mut self, packet: &Packet, joins: bool) {
        let class = self.class(packet);
        let Some(share) = &mut self.share else { return };
        if joins {
            share.queue_bytes[class] += u64::from(packet.size);
        } else {
            share.queue_bytes[class] -= u64::from(packet.size);
        }
    }
}

impl Link {
    /// A copy of `packet` reaches a shared link.
    #[cold]
    pub(super) fn admit_shared(
        &mut self,
        now: Time,
        packet: &Packet,
        policy: &mut Policy,
        mut record: impl FnMut(Time, &Packet),
    ) -> Admission {
        let class = policy.class(packet);
        let size = u32::from(packet.size);
        let view = policy.view(now);
        let (Some(share), random) = (&mut policy.share, &mut policy.random) else {
            return Admission::Dropped;
        };
        let flow = u64::from(packet.flow) << 16 | u64::from(packet.generation);
        share.split.on_arrival(class, flow, size, || random.uniform());
        if let Some(router) = policy.router.as_mut().filter(|_| class == OWN) {
            router.on_arrival(view, size, (packet.flags & DATA != 0).then_some(&packet.stamp));
        }
        if share.is_one_queue() {
            let arrival = self.arrival(now, packet, policy.queue_bytes, self.waiting);
            let verdict = policy.queue.on_arrival(&arrival, || random.uniform());
            return match policy.settle_verdict(verdict, packet.size) {
                Some(mark) => self.join(now, packet, mark, policy, record),
                None => Admission::Dropped,
            };
        }
        // Each class has its part of the buffer, or one with little of the link would wait for many buffers' time: to its
        // queue law a queue is as long as it would be if the class had all of the link.
        let part = share.split.shares()[class];
        let bytes = (share.queue_bytes[class] as f64 / part) as u64;
        let packets = (share.queues[class].len() as f64 / part) as u32;
        let mut arrival = self.arrival(now, packet, bytes, packets);
        if share.choice_due {
            arrival.idle_since = None;
        }
        let idle = arrival.idle_since.is_some();
        let verdict = share.laws[class].on_arrival(&arrival, || random.uniform());
        let Some(mark) = policy.settle_verdict(verdict, packet.size) else { return Admission::Dropped };
        if idle {
            return self.begin(now, packet, mark, policy, &mut record);
        }
        let packet = Packet { flags: packet.flags | mark, ..*packet };
        policy.stats.account(now, policy.queue_bytes);
        policy.enter(&packet);
        let Some(share) = &mut policy.share else { return Admission::Dropped };
        share.scheduler.enqueue(class, size, share.split.weights());
        share.queues[class].push_back(packet);
        let first = !std::mem::replace(&mut share.choice_due, true);
        Admission::Waits(first.then_some(self.last_finish))
    }

    /// The packet in transmission has gone: the scheduler chooses the next. Returns what became of that one, and when
    /// the next choice is due.
    pub fn choose(
        &mut self,
        now: Time,
        policy: &mut Policy,
        mut record: impl FnMut(Time, &Packet),
    ) -> (Admission, Option<Time>) {
        let Some(packet) = policy.share.as_mut().and_then(|s| s.pick()) else {
            return (Admission::Behind, None);
        };
        policy.stats.account(now, policy.queue_bytes);
        policy.leave(&packet);
        let admission = self.begin(now, &packet, 0, policy, &mut record);
        let more = policy.share.as_mut().is_some_and(|share| {
            share.choice_due = share.held() > 0;
            share.choice_due
        });
        (admission, more.then_some(self.last_finish))
    }
}

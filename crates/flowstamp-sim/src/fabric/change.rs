//! What changes in mid-run: rates, delays, buffers, and statistics that begin anew.

use super::Fabric;
use crate::events::{Class, Source};
use crate::link::{Laws, LinkStats};
use crate::medium::Capacity;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::units::{Rate, Time};

impl Fabric {
    /// A router link's rate is `rate` from now on.
    pub fn set_rate(&mut self, number: usize, rate: Rate) {
        self.settle_link(number);
        let (port, link) = (&mut self.ports[number], &mut self.links[number]);
        let before = (link.next_arrival(), port.choice(link));
        port.set_rate(link, self.now, rate);
        let after = (link.next_arrival(), port.choice(link));
        for (class, from, to) in [(Class::Delivery, before.0, after.0), (Class::Transmit, before.1, after.1)]
        {
            if let (Some(from), Some(to)) = (from, to) {
                self.events.reschedule(from, to, Source::new(class, number as u32));
            }
        }
    }

    /// The propagation delay of any link is `delay` from now on.
    pub fn set_delay(&mut self, number: usize, delay: Time) {
        if number < self.ports.len() {
            self.settle_link(number);
        }
        let link = &mut self.links[number];
        let before = link.next_arrival();
        link.set_delay(self.now, delay);
        if let (Some(from), Some(to)) = (before, link.next_arrival()) {
            self.events.reschedule(from, to, Source::new(Class::Delivery, number as u32));
        }
    }

    /// A router link's buffer is `limit` from now on.
    pub fn set_limit(&mut self, number: usize, limit: Limit) {
        self.ports[number].set_limit(limit);
    }

    /// A station's data rate is `rate` from now on.
    pub fn set_station_rate(&mut self, cell: u32, station: u32, rate: Rate) {
        self.air.set_rate(self.now, cell, station, rate);
        let moved = self.air.planned(cell);
        self.air_moves(cell, moved);
    }

    /// A rate that stands for the capacity of an interface of a cell, the fastest that there is, is now at least this.
    pub fn raise_capacity(&mut self, number: usize, rate: Rate) {
        let port = &mut self.ports[number];
        if matches!(port.laws().capacity, Capacity::Constant(before) if before < rate) {
            port.laws_mut().capacity = Capacity::Constant(rate);
            port.learn_capacity(self.now);
        }
    }

    /// What waits for a governed link leaves at `rate` from now on. Returns the bytes that it has sent so far.
    pub fn shape(&mut self, number: usize, rate: Option<Rate>) -> f64 {
        self.settle_link(number);
        let (port, link) = (&mut self.ports[number], &self.links[number]);
        if let Some(rate) = rate {
            let before = port.choice(link);
            port.shape(rate);
            if let (Some(from), Some(to)) = (before, port.choice(link)) {
                // It may be overdue by the new rate, as the old one was lower.
                let to = to.max(self.now);
                self.events.reschedule(from, to, Source::new(Class::Transmit, number as u32));
            }
        }
        port.sent_bytes(link, self.now)
    }

    /// Laws and statistics of a router link, to be changed.
    pub fn laws_mut(&mut self, number: usize) -> &mut Laws {
        self.ports[number].laws_mut()
    }

    /// Statistics of router links begin anew, as of now; `before` sees each link's number, bytes sent and statistics.
    pub fn end_warmup(&mut self, mut before: impl FnMut(usize, f64, &LinkStats)) {
        self.settle();
        self.air.end_warmup(self.now);
        self.impaired.iter_mut().flatten().for_each(|link| link.restart());
        for (number, (port, link)) in self.ports.iter_mut().zip(&self.links).enumerate() {
            before(number, port.sent_bytes(link, self.now), &port.laws().stats);
            let queue = port.laws().queue_bytes();
            port.laws_mut().stats.restart(self.now, queue);
            // What waits or is under way was accepted before and is sent after.
            let sent = port.sent_bytes(link, self.now);
            port.laws_mut().stats.accepted_bytes = 0.0 - sent;
        }
    }
}

//! Changes to links during a run: rates, delays, buffers, and statistics at the end of warm-up.

use super::Fabric;
use crate::FULL;
use crate::events::{Class, Source};
use crate::link::{Cloud, Laws, LinkStats};
use crate::medium::Capacity;
use crate::plan::{END, Medium};
use flowstamp_laws::Stamp;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::Header;
use flowstamp_laws::units::{Rate, Time};

impl Fabric {
    /// Sets a router link's rate.
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

    /// Sets the propagation delay of a link.
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

    /// Sets a router link's buffer.
    pub fn set_limit(&mut self, number: usize, limit: Limit) {
        self.ports[number].set_limit(limit);
    }

    /// Sets a station's data rate.
    pub fn set_station_rate(&mut self, cell: u32, station: u32, rate: Rate) {
        self.air.set_rate(self.now, cell, station, rate);
        let moved = self.air.planned(cell);
        self.air_moves(cell, moved);
    }

    /// Raises the nominal capacity of a cell's interface, which is its fastest rate, to at least `rate`.
    pub fn raise_capacity(&mut self, number: usize, rate: Rate) {
        let port = &mut self.ports[number];
        if matches!(port.laws().capacity, Capacity::Constant(before) if before < rate) {
            port.laws_mut().capacity = Capacity::Constant(rate);
            port.learn_capacity(self.now);
        }
    }

    /// Sets the rate of a governed link, if `rate` is given. Returns the bytes that the link has sent so far.
    pub fn shape(&mut self, number: usize, rate: Option<Rate>) -> f64 {
        self.settle_link(number);
        let (port, link) = (&mut self.ports[number], &self.links[number]);
        if let Some(rate) = rate {
            let before = port.choice(link);
            port.shape(rate);
            if let (Some(from), Some(to)) = (before, port.choice(link)) {
                // With a higher rate the next transmission may already be overdue.
                let to = to.max(self.now);
                self.events.reschedule(from, to, Source::new(Class::Transmit, number as u32));
            }
        }
        port.sent_bytes(link, self.now)
    }

    /// Lets packets of a governed link carry this header to the end of their cloud, which is the last link of the route that
    /// starts at `route`.
    pub fn stamp_link(&mut self, number: usize, stamp: (Header, Stamp), route: u32) {
        let links = self.routes[route as usize..].iter().take_while(|link| **link != END);
        let (Some(egress), Some(cloud)) = (links.last().copied(), self.ports[number].cloud()) else { return };
        let feedback = cloud.as_ref().map_or(0.0, |cloud| cloud.feedback);
        *cloud = Some(Cloud { stamp, egress, feedback });
        self.clouds = true;
    }

    /// Takes the feedback that packets of a governed link have brought to the end of their cloud.
    pub fn take_feedback(&mut self, number: usize) -> f64 {
        let cloud = self.ports[number].cloud().and_then(Option::as_mut);
        cloud.map_or(0.0, |cloud| std::mem::take(&mut cloud.feedback))
    }

    /// Number of flows whose data have arrived at a governed link within the time `idle`.
    pub fn flows_within(&mut self, number: usize, idle: Time) -> u32 {
        self.ports[number].flows_within(idle, self.now)
    }

    /// Mutable laws and statistics of a router link.
    pub fn laws_mut(&mut self, number: usize) -> &mut Laws {
        self.ports[number].laws_mut()
    }

    /// Restarts the statistics of router links. `before` gets each link's number, bytes sent and statistics.
    pub fn end_warmup(&mut self, mut before: impl FnMut(usize, f64, &LinkStats)) {
        self.settle();
        self.air.end_warmup(self.now);
        self.impaired.iter_mut().flatten().for_each(|link| link.restart());
        self.pfc.iter_mut().filter(|_| FULL).for_each(|pfc| pfc.restart(self.now));
        for (number, (port, link)) in self.ports.iter_mut().zip(&self.links).enumerate() {
            before(number, port.sent_bytes(link, self.now), &port.laws().stats);
            let queue = port.laws().queue_bytes();
            port.laws_mut().stats.restart(self.now, queue);
            // Packets queued or in transmission were accepted before and will be sent after.
            let sent = port.sent_bytes(link, self.now);
            port.laws_mut().stats.accepted_bytes = 0.0 - sent;
        }
    }

    /// Divides a link anew among its classes.
    pub fn divide(&mut self, number: u32) {
        if let Some(next) = self.ports[number as usize].divide(self.now) {
            let next = next.max(self.now + Time::from_ps(1));
            self.events.push(next, Source::new(Class::Share, number));
        }
    }

    /// Handles a change of a link's capacity, as its laws know it, or of a station's data rate.
    pub fn learn_capacity(&mut self, number: u32) {
        if let Medium::Cell { cell, station } = self.medium_of[number as usize] {
            if let Some(next) = self.air.change(self.now, cell, station) {
                self.events.push(next, Source::new(Class::Capacity, number));
            }
            let moved = self.air.planned(cell);
            self.air_moves(cell, moved);
            return;
        }
        if let Some(next) = self.ports[number as usize].learn_capacity(self.now) {
            self.events.push(next, Source::new(Class::Capacity, number));
        }
    }
}

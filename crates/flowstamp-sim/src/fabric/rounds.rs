//! Arrivals and prefetching for runs part by part ([`crate::run`]).

use super::Fabric;
use crate::events::{Class, Source};
use crate::link::{Port, Tap};
use crate::plan::FlowRoutes;
use crate::prefetch::{prefetch, prefetch_part};
use flowstamp_laws::units::Time;

impl Fabric {
    /// Whether memory is to be prefetched.
    #[must_use]
    pub fn prefetches(&self) -> bool {
        self.prefetches
    }

    /// The next link of the packet at the head of a link.
    #[inline]
    fn next_of_head(&self, number: u32) -> Option<usize> {
        let head = self.links[number as usize].first()?;
        Some(*self.routes.get(head.packet.next as usize)? as usize)
    }

    /// Prefetches the next link of the packet at the head of a link.
    #[inline]
    pub fn ask_for_next(&self, number: u32) {
        let Some(to) = self.next_of_head(number) else { return };
        if let Some(port) = self.ports.get(to) {
            prefetch(&self.links[to]);
            prefetch_part(port, 0..256);
            port.expect();
        }
    }

    /// Prefetches the place on its next link of the packet at the head of a link.
    #[inline]
    pub fn ask_for_place(&self, number: u32) {
        if let Some(link) = self.next_of_head(number).and_then(|to| self.links.get(to)) {
            link.expect();
        }
    }

    /// Calls `with` with each arrival at the end of a link by `until`, in order. All events up to `known` have been handled.
    /// Prefetches what the first packet needs there.
    #[inline]
    pub fn arrivals(&mut self, number: u32, known: Time, until: Time, with: impl FnMut(Time)) {
        let at = number as usize;
        match self.ports.get_mut(at) {
            // Other links have the packets in flight from their arrival in the queue on.
            Some(port @ Port::Ranked(_)) => {
                let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
                port.advance(&mut self.links[at], known, &mut tap);
            }
            Some(port) => prefetch_part(port, 0..64),
            None => {}
        }
        self.links[at].arrivals(until, with);
    }

    /// Schedules the arrival of the flow in `slot`, which is number `number` of its round. Returns whether this thread has the
    /// sender, and whether it has the receiver.
    pub fn arrival(&mut self, time: Time, number: u32, slot: u32, routes: FlowRoutes) -> [bool; 2] {
        let begins = [routes.data, routes.acks].map(|route| self.routes[route as usize]);
        self.events.push_arrival(time, number, slot, begins).unwrap_or([true; 2])
    }

    /// Schedules the arrival of the next packet on a link, if there is one.
    pub fn await_next(&mut self, number: u32) {
        if let Some(time) = self.next_arrival(number) {
            self.events.push(time, Source::new(Class::Delivery, number));
        }
    }
}

//! Packets at the end of impaired links: loss, copies and delays.

use super::Fabric;
use crate::events::{Class, Source};
use crate::link::{Fate, Impaired};
use crate::packet::Packet;
use crate::plan::END;
use flowstamp_laws::units::Time;

impl Fabric {
    /// Handles the head of an impaired link, whose event is `source`, at the link's end. Returns the packets that have
    /// reached their host: the packet and a copy.
    #[inline(never)]
    pub fn impair(&mut self, number: u32, source: Source) -> [Option<Packet>; 2] {
        let link = &mut self.links[number as usize];
        let left = self.now.saturating_sub(link.delay());
        let mut packet = *link.deliver();
        if let Some(time) = link.next_arrival() {
            self.events.push(time, source);
        }
        #[cfg(feature = "full")]
        self.advise(number, &mut packet);
        let Some(impaired) = &mut self.impaired[number as usize] else { return [None, None] };
        match impaired.fate(left, self.now, &mut packet) {
            Fate::Lost => {
                self.lost += 1;
                self.sacks.release(packet.sack);
                [None, None]
            }
            Fate::Onward { after, copy } => {
                if self.clouds {
                    self.leave_cloud(number, &mut packet);
                }
                let copy = copy.map(|after| {
                    self.sent += 1;
                    (after, Packet { sack: self.sacks.copy(packet.sack), ..packet })
                });
                let first = self.onward(number, after, packet);
                [first, copy.and_then(|(after, copy)| self.onward(number, after, copy))]
            }
        }
    }

    /// Takes the header off a packet whose cloud ends with this link.
    fn leave_cloud(&mut self, number: u32, packet: &mut Packet) {
        let behind = self.routes[..packet.next as usize].iter().rev().take_while(|link| **link != END);
        for link in behind {
            let cloud = self.ports.get_mut(*link as usize).and_then(|port| port.cloud()?.as_mut());
            if let Some(cloud) = cloud.filter(|cloud| cloud.egress == number) {
                cloud.take_off(packet);
            }
        }
    }

    /// Moves on a packet that was put aside at the end of a link. Returns it if it has reached its host. On a link
    /// without impairments, a frame of flow control has arrived.
    pub fn rejoin(&mut self, number: u32) -> Option<Packet> {
        let Some(impaired) = &mut self.impaired[number as usize] else {
            self.frame_arrives(number);
            return None;
        };
        let packet = impaired.take(self.now)?;
        self.go_on(packet)
    }

    /// Moves a packet on from the end of a link, now or after a delay. Returns it if it has reached its host.
    fn onward(&mut self, number: u32, after: Time, packet: Packet) -> Option<Packet> {
        let impaired = self.impaired[number as usize].as_mut()?;
        if impaired.passes(after) {
            return self.go_on(packet);
        }
        let until = self.now.saturating_add(after);
        impaired.put_aside(until, &packet);
        self.events.push(until, Source::new(Class::Rejoin, number));
        None
    }

    fn go_on(&mut self, packet: Packet) -> Option<Packet> {
        let to = self.routes[packet.next as usize];
        if to == END {
            self.arrived += 1;
            return Some(packet);
        }
        self.enter(to, packet);
        None
    }

    /// The impairments of a router link.
    #[must_use]
    pub fn impaired(&self, number: usize) -> Option<&Impaired> {
        self.impaired[number].as_deref()
    }
}

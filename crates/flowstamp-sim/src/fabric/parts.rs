//! Packets that leave a part of the network for another, and the fabric of all parts together.

use super::Fabric;
use crate::events::{Class, Source};
use crate::packet::Packet;
use crate::parts::Threads;
use crate::plan::END;
use flowstamp_laws::transport::SackBlocks;
use flowstamp_laws::units::Time;

/// A packet that goes to another part.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    link: u32,
    arrives: Time,
    packet: Packet,
    sacks: SackBlocks,
}

impl Moved {
    /// When it reaches the other part.
    pub fn arrives(&self) -> Time {
        self.arrives
    }
}

impl Fabric {
    /// Takes the packets out of a link that reach its end by `until`. They must have been transmitted by now. Returns when
    /// the next one does.
    pub fn take_out(&mut self, link: u32, until: Time, to: &mut Vec<Moved>) -> Time {
        self.advance(link as usize);
        let line = &mut self.links[link as usize];
        while let Some(arrives) = line.next_arrival() {
            if arrives > until {
                return arrives;
            }
            let packet = *line.deliver();
            to.push(Moved { link, arrives, packet, sacks: self.sacks.get(packet.sack) });
            self.sacks.release(packet.sack);
        }
        Time::MAX
    }

    /// Takes in a packet of another part, behind those of the same link.
    pub fn take_in(&mut self, moved: &Moved) {
        let Moved { link, arrives, mut packet, sacks } = *moved;
        debug_assert!(arrives > self.now, "a packet of another part comes too late");
        packet.sack = self.sacks.put(sacks);
        let line = &mut self.links[link as usize];
        if line.held() == 0 {
            self.events.push(arrives, Source::new(Class::Delivery, link));
        }
        line.come_over(arrives, &packet);
    }

    /// The first and the last link of a route.
    pub fn ends(&self, route: u32) -> [u32; 2] {
        let links = self.routes[route as usize..].iter().take_while(|link| **link != END);
        [self.routes[route as usize], links.last().copied().unwrap_or_default()]
    }

    /// Takes over the state and the counts of part `number` of the network.
    pub fn take_over(&mut self, mut of: Self, number: usize, parts: &Threads) {
        for link in (0..self.links.len()).filter(|link| parts.of_queue(*link) == number) {
            std::mem::swap(&mut self.links[link], &mut of.links[link]);
            if let Some((here, there)) = self.ports.get_mut(link).zip(of.ports.get_mut(link)) {
                std::mem::swap(here, there);
            }
            if let Some((here, there)) = self.impaired.get_mut(link).zip(of.impaired.get_mut(link)) {
                std::mem::swap(here, there);
            }
            #[cfg(feature = "full")]
            if let Some((here, there)) = self.advisors.get_mut(link).zip(of.advisors.get_mut(link)) {
                std::mem::swap(here, there);
            }
        }
        self.sent += of.sent;
        self.arrived += of.arrived;
        self.lost += of.lost;
    }
}

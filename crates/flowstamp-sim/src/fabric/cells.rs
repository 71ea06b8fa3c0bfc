//! Cells: packets between the queues of their interfaces, the MACs of their stations, and the links' ends.

use super::Fabric;
use crate::FULL;
use crate::events::{Class, Source};
use crate::link::{Admission, Port, Tap};
use crate::medium::dcf::{Happened, Kind};
use crate::packet::Packet;
use crate::plan::Medium;
use flowstamp_laws::router::LinkChange;
use flowstamp_laws::units::Time;

impl Fabric {
    /// Gives the MAC of a station, if it has no frame, the next queued packet that is not dropped.
    pub(super) fn take_up(&mut self, number: u32, cell: u32, station: u32) {
        let (full, special) = self.air.state(cell, station);
        if full {
            return;
        }
        let special = FULL && special;
        if special && self.air.aggregates(cell) {
            return self.gather(number, cell, station);
        }
        let at = number as usize;
        while let Port::Served(port) = &mut self.ports[at] {
            let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
            let Some((admission, sack)) = port.choose(&mut self.links[at], self.now, &mut tap) else {
                return;
            };
            if admission != Admission::Dropped {
                let moved = self.air.offer(self.now, cell, station, self.links[at].head());
                self.air_moves(cell, moved);
                if special {
                    self.note_behind(number, cell, station);
                }
                return;
            }
            self.admitted(number, admission, sack);
        }
    }

    /// Takes note of whether packets wait behind the frame that a station's MAC has just taken.
    #[cold]
    #[inline(never)]
    fn note_behind(&mut self, number: u32, cell: u32, station: u32) {
        if let Port::Served(port) = &self.ports[number as usize] {
            self.air.set_behind(cell, station, port.waiting() > 0);
        }
    }

    /// Gives the MAC of a station, which has room, the queued packets that its next A-MPDU can take.
    #[cold]
    #[inline(never)]
    fn gather(&mut self, number: u32, cell: u32, station: u32) {
        let at = number as usize;
        while !self.air.is_full(cell, station) {
            let packet = if let Some(packet) = self.air.unstage(cell, station) {
                packet
            } else {
                let Port::Served(port) = &mut self.ports[at] else { return };
                let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
                let Some((admission, sack)) = port.choose(&mut self.links[at], self.now, &mut tap) else {
                    break;
                };
                if admission == Admission::Dropped {
                    self.admitted(number, admission, sack);
                    continue;
                }
                let packet = self.links[at].take_back();
                port.aside_bytes += u64::from(packet.size);
                packet
            };
            if !self.air.join(self.now, cell, station, packet) {
                break;
            }
        }
        let Port::Served(port) = &mut self.ports[at] else { return };
        let behind = port.waiting() > 0;
        let moved = self.air.offer_joined(self.now, cell, station, behind);
        self.air_moves(cell, moved);
    }

    /// Takes the oldest packet that the MAC of a station has for A-MPDUs. It has arrived, or was given up.
    #[cold]
    #[inline(never)]
    fn leave_mac(&mut self, number: u32, cell: u32, station: u32, arrived: bool) {
        let Some(mut packet) = self.air.take_oldest(cell, station) else { return };
        let at = number as usize;
        if let Port::Served(port) = &mut self.ports[at] {
            port.aside_bytes -= u64::from(packet.size);
        }
        if !arrived {
            self.lost += 1;
            self.sacks.release(packet.sack);
            return;
        }
        if let Some(back) = self.air.interface_of_receiver(cell, &packet) {
            self.ports[back as usize].comes_in(self.now, &mut packet);
        }
        let line = &mut self.links[at];
        let first = line.held() == 0;
        line.come_over(self.now, &packet);
        if first {
            self.events.push(self.now, Source::new(Class::Delivery, number));
        }
    }

    /// The packets that the MAC before a link has for A-MPDUs, oldest first.
    pub fn in_mac(&self, number: usize) -> impl Iterator<Item = &Packet> {
        let station = match self.medium_of[number] {
            Medium::Cell { cell, station } => Some((cell, station)),
            _ => None,
        };
        station.into_iter().flat_map(|(cell, station)| self.air.held_by(cell, station))
    }

    /// Tells the router law of a station's interface of an ack.
    #[cold]
    #[inline(never)]
    fn acked(&mut self, number: u32, cell: u32, station: u32) {
        let batch = self.air.batch(cell, station);
        if let Some(router) = &mut self.ports[number as usize].laws_mut().router {
            router.on_change(LinkChange::Acked(&batch));
        }
    }

    /// Moves the pending event of a cell.
    pub(super) fn air_moves(&mut self, cell: u32, (from, to): (Option<Time>, Option<Time>)) {
        let source = Source::new(Class::Air, cell);
        match (from, to) {
            (Some(from), Some(to)) if from != to => self.events.reschedule(from, to, source),
            (None, Some(to)) => self.events.push(to, source),
            _ => {}
        }
    }

    /// Handles an event of a cell. Returns the link of a frame that has arrived, which the caller must forward now.
    #[cold] // an event of a cell is expensive anyway
    pub fn air(&mut self, cell: u32) -> Option<u32> {
        let mut delivered = None;
        let happened = self.air.step(self.now, cell);
        self.air.heard(cell, |captured, sent, link| {
            let line = &self.links[link as usize];
            let packet = (sent.kind == Kind::Data).then(|| line.head());
            self.capture.record_frame(captured, sent, (link, packet), &self.sacks);
        });
        for (number, what) in happened.iter() {
            let at = *number as usize;
            match *what {
                Happened::Delivered { .. } => {
                    let packet = self.links[at].land(self.now);
                    if let Some(back) = self.air.interface_of_receiver(cell, packet) {
                        self.ports[back as usize].comes_in(self.now, packet);
                    }
                    delivered = Some(*number);
                }
                Happened::Free { station, sent } => {
                    let line = &mut self.links[at];
                    if !sent {
                        let sack = line.deliver().sack;
                        self.lost += 1;
                        self.sacks.release(sack);
                    }
                    line.release(self.now);
                    self.take_up(*number, cell, station);
                }
                _ if !FULL => {}
                Happened::Acked { station } => self.acked(*number, cell, station),
                Happened::PassedOn { station } => self.leave_mac(*number, cell, station, true),
                Happened::Lost { station } => self.leave_mac(*number, cell, station, false),
                Happened::Room { station } => self.gather(*number, cell, station),
            }
        }
        self.air.give_back(happened);
        let moved = self.air.planned(cell);
        self.air_moves(cell, moved);
        delivered
    }
}

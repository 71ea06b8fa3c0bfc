//! Records each frame on the air of a cell, for captures.

use super::air::Exchange;
use super::{Cell, Waiting};
use flowstamp_laws::units::{Rate, Time};

/// A frame's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Announces a data frame.
    Rts,
    /// Answers an RTS.
    Cts,
    /// Carries a packet.
    Data,
    /// Answers a data frame.
    Ack,
}

/// A frame that has been on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// Kind of frame.
    pub kind: Kind,
    /// The sending station.
    pub from: u32,
    /// The receiving station.
    pub to: u32,
    /// When the preamble began.
    pub begin: Time,
    /// When the first bit after the PLCP header was sent.
    pub mpdu: Time,
    /// Data rate.
    pub rate: Rate,
    /// The preamble is the short one of two that the PHY has.
    pub short_preamble: bool,
    /// The duration field: how long the frame reserves the medium after its end, microseconds.
    pub duration_us: u64,
    /// Number of the packet, counted at its sender.
    pub sequence: u64,
    /// Failed attempts for the same packet before this one.
    pub failed: u32,
    /// A data frame that was sent before.
    pub retry: bool,
    /// The frame was received: it did not collide and had no error.
    pub good: bool,
    /// Bytes of the packet that the exchange is for.
    pub bytes: u32,
}

impl Cell {
    /// Starts to record frames, for [`heard`](Self::heard).
    pub fn listen(&mut self) {
        self.heard.get_or_insert_default();
    }

    /// Takes the frames whose ends have become known since the last call, in the order of their senders' exchanges.
    /// [`hear_into`](Self::hear_into) gives their memory back. Empty unless the cell [listens](Self::listen).
    pub fn heard(&mut self) -> Vec<Transmission> {
        self.heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Gives back memory for the next recorded frames.
    pub fn hear_into(&mut self, mut memory: Vec<Transmission>) {
        memory.clear();
        if let Some(heard) = &mut self.heard {
            *heard = memory;
        }
    }

    /// Records a station's first frame, lost in a collision.
    pub(super) fn hear_collided(&mut self, station: u32) {
        self.hear(station, |writer, exchange| {
            writer.put(if exchange.rts { Kind::Rts } else { Kind::Data }, false);
        });
    }

    /// Records a station's data frame, and the RTS and CTS before it.
    pub(super) fn hear_data(&mut self, station: u32, good: bool) {
        self.hear(station, |writer, exchange| {
            if exchange.rts {
                writer.put(Kind::Rts, true);
                writer.put(Kind::Cts, true);
            }
            writer.put(Kind::Data, good);
        });
    }

    /// Records the ack of a station's data frame.
    pub(super) fn hear_ack(&mut self, station: u32) {
        self.hear(station, |writer, _| writer.put(Kind::Ack, true));
    }

    fn hear(&mut self, station: u32, write: impl FnOnce(&mut Writer<'_>, &Exchange)) {
        let Some(mut heard) = self.heard.take() else { return };
        let s = &self.stations[station as usize];
        if let Some(waiting) = s.waiting {
            write(&mut Writer { cell: self, station, waiting, heard: &mut heard }, &s.exchange);
        }
        self.heard = Some(heard);
    }
}

/// Records the frames of one exchange.
struct Writer<'a> {
    cell: &'a Cell,
    station: u32,
    waiting: Waiting,
    heard: &'a mut Vec<Transmission>,
}

impl Writer<'_> {
    fn put(&mut self, kind: Kind, good: bool) {
        let (air, s) = (&self.cell.air, &self.cell.stations[self.station as usize]);
        let e = &s.exchange;
        let opening = if e.rts { e.first } else { Time::ZERO };
        let data_begins = e.data - (e.sent - opening);
        // 802.11-2012, 8.3.1.2 and 8.3.1.3: the reservation lasts to the end of the ack. A CTS carries what remains of
        // the RTS's.
        let announced = air.microseconds(e.ack.saturating_sub(e.first));
        let after_rts = data_begins.saturating_sub(air.sifs + e.first);
        let (begin, reserves) = match kind {
            Kind::Rts => (Time::ZERO, announced),
            Kind::Cts => {
                (e.first + air.sifs, air.microseconds(Time::from_micros(announced).saturating_sub(after_rts)))
            }
            Kind::Data => (data_begins, air.microseconds(e.ack - e.data)),
            Kind::Ack => (e.data + air.sifs, 0),
        };
        let (from, to) = (self.station, self.waiting.frame.to);
        let answers = matches!(kind, Kind::Cts | Kind::Ack);
        let rate = if kind == Kind::Data { e.rate } else { air.control(e.rate) };
        let begin = self.cell.begin + begin;
        self.heard.push(Transmission {
            kind,
            from: if answers { to } else { from },
            to: if answers { from } else { to },
            begin,
            mpdu: begin + air.preamble(rate),
            rate,
            short_preamble: air.preamble(rate) < air.longest_preamble(),
            duration_us: reserves,
            sequence: s.stats.offered.wrapping_sub(1),
            failed: s.short + s.long,
            retry: kind == Kind::Data && if e.rts { s.long > 0 } else { s.short > 0 },
            good,
            bytes: self.waiting.frame.bytes,
        });
    }
}

//! What one who hears a whole cell would write down: each frame on the air, for captures.

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
    /// What it is.
    pub kind: Kind,
    /// Who sent it.
    pub from: u32,
    /// Who it is for.
    pub to: u32,
    /// When its preamble began.
    pub begin: Time,
    /// When its first bit behind the PLCP header was sent.
    pub mpdu: Time,
    /// Its rate.
    pub rate: Rate,
    /// It has a preamble that is shorter than the PHY's other.
    pub short_preamble: bool,
    /// For how long after its end it reserves the medium, as it says so, microseconds.
    pub duration_us: u64,
    /// Number of its sender's packet.
    pub sequence: u64,
    /// Failed attempts for that packet before this one.
    pub failed: u32,
    /// It is a data frame that has been on the air before.
    pub retry: bool,
    /// It has been read: it did not collide, and no error hit it.
    pub good: bool,
    /// Bytes of the packet that the exchange is for.
    pub bytes: u32,
}

impl Cell {
    /// From now on frames are recorded, for [`heard`](Self::heard).
    pub fn listen(&mut self) {
        self.heard.get_or_insert_default();
    }

    /// Frames whose ends have become known since this was last asked, in the order of their senders' exchanges; their memory may be given
    /// back by [`hear_into`](Self::hear_into). Nothing unless the cell [listens](Self::listen).
    pub fn heard(&mut self) -> Vec<Transmission> {
        self.heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Memory for what will be heard.
    pub fn hear_into(&mut self, mut memory: Vec<Transmission>) {
        memory.clear();
        if let Some(heard) = &mut self.heard {
            *heard = memory;
        }
    }

    /// A station's first frame was lost in a collision.
    pub(super) fn hear_collided(&mut self, station: u32) {
        self.hear(station, |writer, exchange| {
            writer.put(if exchange.rts { Kind::Rts } else { Kind::Data }, false);
        });
    }

    /// A station's data frame is over, with what came before it.
    pub(super) fn hear_data(&mut self, station: u32, good: bool) {
        self.hear(station, |writer, exchange| {
            if exchange.rts {
                writer.put(Kind::Rts, true);
                writer.put(Kind::Cts, true);
            }
            writer.put(Kind::Data, good);
        });
    }

    /// A station's data frame has been acknowledged.
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

/// Writes frames of one exchange.
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
        // 802.11-2012, 8.3.1.2 and 8.3.1.3: up to the end of the ack; a CTS says what is left of what the RTS said.
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

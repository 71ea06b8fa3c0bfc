//! Stamp packets of one connection: written at the sender, read and echoed at the receiver.
//!
//! ```text
//!   server                                  router                          client
//!   law.stamp --> FSRC packet + datagram --> lowers the rate --> socket strips the packet, keeps the newest rate
//!   law.on_ack <-- newest echo  <------------------------- DATAGRAM frame, at most eight per round trip
//! ```
//!
//! Only RCP is carried: its rate is a state, so the newest value is enough. XCP's changes would have to add up over each
//! packet.
//!
//! Deviations (RCP on other hosts does / this one does / because):
//! 1. Each ack echoes the rate / at most eight DATAGRAM frames per round trip do, and the first one at once / quinn
//!    offers no frame in each ack, and a router's rate changes at most once per round trip.
//! 2. A flow that sends less than a packet per round trip probes its path / it does not / quinn sends no empty packets
//!    on request.
//! 3. A packet states its flow's age and weight / it states neither / the stamp has no room. A weight is refused.
//! 4. A rate counts if the rest of its datagram was processed / it counts if the packet behind it has a connection ID that
//!    this host has chosen / quinn does not say what it has processed. An attacker beside the path does not know the ID.

use crate::ids::OwnIds;
use crate::sender::Sender;
use flowstamp_laws::rcp;
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_laws::sender::AS_MUCH_AS_THERE_IS;
use flowstamp_laws::stamp::Stamp;
use flowstamp_laws::units::Time;
use flowstamp_wire::option::{self, MicrosFloat, Protocol, UNBOUNDED_RATE};
use flowstamp_wire::quic_stamp::{Echo, MAX_ID, MIN_LEN, Packet};
use quinn::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Echoes per round trip.
const ECHOES: u32 = 8;
/// Shortest time between two echoes: the steps of tokio's timers.
const LEAST_GAP: Duration = Duration::from_millis(1);
/// Length of quinn's connection IDs, until a long header tells another.
const ID_LEN: usize = 8;

/// Whether QUIC carries the stamps of this law.
#[must_use]
pub const fn carried(spec: &SenderSpec) -> bool {
    matches!(spec, SenderSpec::Rcp(_))
}

/// State of a connection's stamps, at either end.
#[derive(Debug, Default)]
pub struct Stamps {
    /// The receiver has asked for them.
    wanted: AtomicBool,
    /// Length of the peer's connection IDs plus one; 0 before a long header told it.
    id_len: AtomicUsize,
    newest: Mutex<Option<Echo>>,
    arrived: Notify,
    received: AtomicU64,
}

impl Stamps {
    /// Starts sending stamps, for a law that has them. Returns the bytes that each datagram is longer by.
    pub fn want(&self, spec: &SenderSpec) -> u32 {
        let wanted = spec.header() != Header::Plain;
        self.wanted.store(wanted, Ordering::Relaxed);
        if wanted { (MIN_LEN + self.id_len()) as u32 } else { 0 }
    }

    /// Whether the receiver has asked for stamps, and a law sends them.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Stamp packets received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Length of the peer's connection IDs.
    pub fn id_len(&self) -> usize {
        self.id_len.load(Ordering::Relaxed).checked_sub(1).unwrap_or(ID_LEN)
    }

    /// Learns the length of the peer's connection IDs from a datagram that leaves.
    pub fn learn(&self, datagram: &[u8]) {
        if let [0x80..=0xff, _, _, _, _, len, ..] = *datagram {
            self.id_len.store(usize::from(len).min(MAX_ID) + 1, Ordering::Relaxed);
        }
    }

    /// The datagram with a stamp packet before it; `None` if it has none.
    pub fn stamped(&self, sender: &mut Sender, now: Instant, datagram: &[u8]) -> Option<Vec<u8>> {
        let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        if !short || !self.wanted() || !carried(sender.spec()) {
            return None;
        }
        let stamp = to_wire(&sender.stamp(now).0)?;
        let dcid = datagram.get(1..1 + self.id_len())?;
        let packet = Packet { protocol: Protocol::Rcp, dcid, scid: &[], stamp };
        let mut bytes = Vec::with_capacity(packet.wire_len() + datagram.len());
        packet.append(&mut bytes);
        bytes.extend_from_slice(datagram);
        Some(bytes)
    }

    /// Reads the stamp packet at the start of a datagram that arrived. Returns its length, zero if there is none. It counts
    /// if the packet behind it has one of this host's connection IDs.
    pub fn strip(&self, datagram: &[u8], own: &OwnIds) -> usize {
        let Some(packet) = Packet::parse(datagram) else { return 0 };
        if !own.are_of(packet.dcid, &datagram[packet.wire_len()..]) {
            return packet.wire_len();
        }
        let echo = Echo { protocol: packet.protocol, value: packet.stamp.value };
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(echo);
        self.received.fetch_add(1, Ordering::Relaxed);
        self.arrived.notify_one();
        packet.wire_len()
    }

    /// Echoes stamps until the connection ends.
    pub async fn echo(&self, connection: &Connection) {
        loop {
            self.arrived.notified().await;
            let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(echo) = newest {
                let frame = bytes::Bytes::copy_from_slice(&echo.to_bytes());
                if connection.send_datagram(frame).is_err() {
                    return;
                }
                tokio::time::sleep((connection.rtt() / ECHOES).max(LEAST_GAP)).await;
            }
        }
    }
}

/// RCP's stamp as it is on the wire; `None` if the law sends none, as after a switch to TCP.
#[must_use]
pub fn to_wire(stamp: &Stamp) -> Option<option::Stamp> {
    let header = rcp::Header::from(*stamp);
    if header.rate <= 0.0 {
        return None;
    }
    // A float-to-integer cast saturates, here at the request for an unbounded rate.
    let value = ((header.rate / 1e3).round() as u32).max(1);
    let micros = header.rtt_s * 1e6;
    let rtt = if micros > 0.0 { MicrosFloat::from_micros(micros as u64) } else { MicrosFloat::UNKNOWN };
    Some(option::Stamp { value, rtt, last: 0 })
}

/// RCP's stamp as a router's law reads it.
#[must_use]
pub fn from_wire(stamp: option::Stamp) -> Stamp {
    let rtt = stamp.rtt.to_micros().map_or(Time::ZERO, |micros| Time::from_micros(micros.into()));
    rcp::Header { rtt_s: rtt.as_secs_f64(), ..echoed(stamp.value) }.into()
}

/// The header that an echo of `value` stands for.
#[must_use]
pub fn echoed(value: u32) -> rcp::Header {
    let rate = if value == UNBOUNDED_RATE { AS_MUCH_AS_THERE_IS } else { f64::from(value) * 1e3 };
    rcp::Header { rate, rtt_s: 0.0, age_bytes: 0.0 }
}

/// Reads a DATAGRAM frame as an echo, and returns the stamp that an ack would bring.
#[must_use]
pub fn heard(frame: &[u8]) -> Option<Stamp> {
    let echo = Echo::parse(frame).filter(|echo| echo.protocol == Protocol::Rcp)?;
    Some(echoed(echo.value).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::ConnectionIdGenerator;

    #[test]
    fn rates_survive_the_wire() {
        let stamp = |rate, rtt_s| rcp::Header { rate, rtt_s, age_bytes: 0.0 }.into();
        let there_and_back =
            |rate, rtt_s| to_wire(&stamp(rate, rtt_s)).map(|wire| rcp::Header::from(from_wire(wire)));
        let known = there_and_back(1.25e6, 0.04).expect("a stamp");
        assert_eq!((known.rate, known.rtt_s), (1.25e6, 0.04));
        assert_eq!(there_and_back(AS_MUCH_AS_THERE_IS, 0.0).map(|h| h.rate), Some(AS_MUCH_AS_THERE_IS));
        assert_eq!(there_and_back(1.0, 0.0).map(|h| (h.rate, h.rtt_s)), Some((1e3, 0.0)), "never zero");
        assert_eq!(there_and_back(0.0, 0.04), None, "a flow that became a TCP");
    }

    #[test]
    fn stamps_are_stripped_and_only_they() {
        let (stamps, mut own) = (Stamps::default(), OwnIds::default());
        let id = own.generate_cid();
        let mut datagram = Vec::new();
        let stamp = to_wire(&echoed(125).into()).expect("a stamp");
        Packet { protocol: Protocol::Rcp, dcid: &id, scid: &[], stamp }.append(&mut datagram);
        let len = datagram.len();
        assert_eq!(stamps.strip(&datagram, &own), 0, "nothing behind it");
        datagram.push(0x40);
        datagram.extend_from_slice(&id);
        assert_eq!((stamps.strip(&datagram, &own), stamps.received()), (len, 1));
        assert_eq!(
            (stamps.strip(&datagram, &OwnIds::default()), stamps.received()),
            (len, 1),
            "another connection's"
        );
        assert_eq!(stamps.strip(&datagram[len..], &own), 0);
    }

    #[test]
    fn the_length_of_ids_comes_from_long_headers() {
        let stamps = Stamps::default();
        assert_eq!(stamps.id_len(), ID_LEN);
        stamps.learn(&[0xc3, 0, 0, 0, 1, 2, 9, 9, 3, 4, 5, 6, 0]);
        assert_eq!(stamps.id_len(), 2);
        stamps.learn(&[0x43, 0, 0, 0, 1, 5, 9, 9, 3, 4, 5, 6, 0]);
        assert_eq!(stamps.id_len(), 2, "a short header tells nothing");
    }
}

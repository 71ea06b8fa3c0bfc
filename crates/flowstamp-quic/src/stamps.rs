//! Stamp packets of one connection: written at the sender, read and echoed at the receiver.
//!
//! ```text
//!   server                                router                        client
//!   law.stamp --> stamp packet + datagram --> lowers the value --> socket strips the packet, keeps the echo
//!   law <-- newest echo  <----------------------------- DATAGRAM frame, at most eight per round trip
//! ```
//!
//! [`headers`] says what the packets of RCP and XCP hold. Each full datagram has a stamp packet, and one QUIC packet behind it. XCP needs
//! that: its router shares feedback among the packets that carry a stamp, each for its part of the flow's window. If only some of a
//! flow's packets had one, the flow would get that part of its share. Datagrams below 200 bytes, mostly acks, have none, and a
//! SCONE packet takes the place of a stamp packet a few times a minute. Routers count these as input without feedback.
//!
//! Deviations (RCP and XCP on other hosts do / these do / because):
//! 1. Each ack echoes / at most eight DATAGRAM frames per round trip do, and the first one at once / quinn
//!    offers no frame in each ack, and a router decides once per round trip.
//! 2. A flow of RCP that sends less than a packet per round trip probes its path / it does not / quinn sends no empty packets
//!    on request.
//! 3. A packet of RCP states its flow's age and weight / it states neither / the stamp has no room. A weight is refused.
//! 4. A stamp counts if the rest of its datagram was processed / it counts if the packet behind it has a connection ID that
//!    this host has chosen / quinn does not say what it has processed. An attacker beside the path does not know the ID.
//! 5. DATAGRAM frames may arrive out of order / the older of two sums of XCP then takes changes back until the next echo / a sum
//!    modulo 2^32 does not show its age.

use crate::headers::{self, Received};
use crate::ids::OwnIds;
use crate::sender::Sender;
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_wire::quic_stamp::{Echo, MAX_ID, MIN_LEN, Packet};
use quinn::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Echoes per round trip.
pub const ECHOES: u32 = 8;
/// Shortest time between two echoes: the steps of tokio's timers.
const LEAST_GAP: Duration = Duration::from_millis(1);
/// Length of quinn's connection IDs, until a long header tells another.
const ID_LEN: usize = 8;

/// State of a connection's stamps, at either end.
#[derive(Debug, Default)]
pub struct Stamps {
    /// The receiver has asked for them.
    wanted: AtomicBool,
    /// Length of the peer's connection IDs plus one; 0 before a long header told it.
    id_len: AtomicUsize,
    to_echo: Mutex<Received>,
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
        let protocol = headers::protocol_of(sender.header()).filter(|_| short && self.wanted())?;
        let stamp = headers::request(protocol, &sender.stamp(now), sender.packet_bytes())?;
        let dcid = datagram.get(1..1 + self.id_len())?;
        let packet = Packet { protocol, dcid, scid: &[], stamp };
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
        self.to_echo().take(packet.protocol, packet.stamp);
        self.received.fetch_add(1, Ordering::Relaxed);
        self.arrived.notify_one();
        packet.wire_len()
    }

    fn to_echo(&self) -> MutexGuard<'_, Received> {
        self.to_echo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stamp has come since the last echo.
    #[must_use]
    pub fn has_echo(&self) -> bool {
        self.to_echo().has_echo()
    }

    /// The echo of the stamps that have come, if any has since the last echo.
    pub fn take_echo(&self) -> Option<Echo> {
        self.to_echo().echo()
    }

    /// Echoes stamps until the connection ends.
    pub async fn echo(&self, connection: &Connection) {
        loop {
            self.arrived.notified().await;
            if let Some(echo) = self.take_echo() {
                let frame = bytes::Bytes::copy_from_slice(&echo.to_bytes());
                if connection.send_datagram(frame).is_err() {
                    return;
                }
                tokio::time::sleep((connection.rtt() / ECHOES).max(LEAST_GAP)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_wire::option::Protocol;
    use quinn::ConnectionIdGenerator;

    #[test]
    fn stamps_are_stripped_and_only_they() {
        let (stamps, mut own) = (Stamps::default(), OwnIds::default());
        let id = own.generate_cid();
        let mut datagram = Vec::new();
        let stamp = headers::request(Protocol::Rcp, &headers::rate_of(125).into(), 1200).expect("a stamp");
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

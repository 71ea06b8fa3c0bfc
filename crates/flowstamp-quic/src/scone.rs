//! SCONE of one connection (draft-ietf-scone-protocol): throughput advice from the network.
//!
//! A client that is willing to receive SCONE packets sends the transport parameter 0x219e ([`crate::handshake`]), and its first
//! datagrams end with an indication. The server then puts SCONE packets before some of its datagrams,
//! several at the start and one every 20 to 30 s. Network elements lower their signal, and the client's socket removes them
//! and keeps the advice: the lowest of the last monitoring period, 67 s. Without the peer's parameter an end sends no SCONE
//! packet. Without its own it takes no advice.
//!
//! Deviations (the draft says / we do / because):
//! 1. Advice counts if another packet of its datagram was processed / it counts if that packet has a connection ID that this
//!    host has chosen / quinn does not say what it has processed. An attacker beside the path does not know the ID.
//! 2. An endpoint may send SCONE packets for either direction / only the server does, and it does not send the parameter / the client
//!    hardly sends data.

use crate::ids::OwnIds;
use flowstamp_laws::scone::{GAP_S, MORE_GAP_S, PERIOD_S};
use flowstamp_wire::scone::{INDICATION, Packet, Signal};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// SCONE packets at the start of a connection: the first packets of a flow matter most.
const AT_START: u32 = 8;
/// Shortest time between two SCONE packets after the start.
const GAP: Duration = Duration::from_secs(GAP_S);
/// How long advice lasts.
const PERIOD: Duration = Duration::from_secs(PERIOD_S);

/// State of a connection's SCONE, at either end.
#[derive(Debug, Default)]
pub struct Scone {
    /// This end has said that it is willing to receive SCONE packets.
    willing: AtomicBool,
    /// This client indicates that until the server answers.
    indicates: AtomicBool,
    /// The peer is willing to receive SCONE packets.
    wanted: AtomicBool,
    received: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sent: u32,
    due: Option<Instant>,
    advice: Advice,
}

/// Advice received, and when. Signals rise from front to back, so the front is the lowest.
#[derive(Debug, Default)]
struct Advice(VecDeque<(Instant, Signal)>);

impl Advice {
    fn take(&mut self, now: Instant, signal: Signal) {
        while self.0.back().is_some_and(|(_, higher)| *higher >= signal) {
            self.0.pop_back();
        }
        self.0.push_back((now, signal));
    }

    fn lowest(&mut self, now: Instant) -> Option<Signal> {
        while self.0.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > PERIOD) {
            self.0.pop_front();
        }
        self.0.front().map(|(_, signal)| *signal)
    }
}

impl Scone {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this client willing to receive SCONE packets. Call it before the handshake, which tells the server. The client's
    /// datagrams indicate it to the network.
    pub fn welcome(&self) {
        self.willing.store(true, Ordering::Relaxed);
        self.indicates.store(true, Ordering::Relaxed);
    }

    /// Whether this end is willing to receive SCONE packets.
    #[must_use]
    pub fn is_willing(&self) -> bool {
        self.willing.load(Ordering::Relaxed)
    }

    /// Notes that the peer is willing to receive SCONE packets.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether the peer is willing to receive SCONE packets.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// SCONE packets sent.
    #[must_use]
    pub fn sent(&self) -> u32 {
        self.state().sent
    }

    /// SCONE packets received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The advice in force at `now`.
    #[must_use]
    pub fn advice(&self, now: Instant) -> Option<Signal> {
        self.state().advice.lowest(now)
    }

    /// The datagram with the indication behind it; `None` if it has none.
    #[must_use]
    pub fn indicated(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        self.indicates.load(Ordering::Relaxed).then(|| [datagram, &INDICATION].concat())
    }

    /// The datagram with a SCONE packet before it; `None` if none is due. `id_len` is the length of the peer's connection
    /// IDs. It counts once [`note_announced`](Self::note_announced) says that it was sent.
    #[must_use]
    pub fn announced(&self, now: Instant, datagram: &[u8], id_len: usize) -> Option<Vec<u8>> {
        let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        if !short || !self.is_wanted() {
            return None;
        }
        if self.state().due.is_some_and(|due| due > now) {
            return None;
        }
        let dcid = datagram.get(1..1 + id_len)?;
        let packet = Packet { signal: Signal::UNKNOWN, dcid, scid: &[] };
        let mut bytes = vec![0; packet.wire_len()];
        packet.emit(&mut bytes).ok()?;
        bytes.extend_from_slice(datagram);
        Some(bytes)
    }

    /// Counts a SCONE packet that was sent before `datagram`.
    pub fn note_announced(&self, now: Instant, datagram: &[u8], id_len: usize) {
        let mut state = self.state();
        state.sent += 1;
        if state.sent >= AT_START {
            // The connection ID is random.
            let dcid = datagram.get(1..1 + id_len).unwrap_or_default();
            let drawn = dcid.iter().fold(u64::from(state.sent), |sum, byte| sum * 31 + u64::from(*byte));
            state.due = Some(now + GAP + Duration::from_millis(drawn % (MORE_GAP_S * 1000)));
        }
    }

    /// Reads the SCONE packet at the start of a datagram that arrived. Returns its length, zero if there is none. Its advice
    /// counts if this end is willing to receive it, and the packet behind it has one of this host's connection IDs.
    pub fn strip(&self, now: Instant, datagram: &[u8], own: &OwnIds) -> usize {
        self.indicates.store(false, Ordering::Relaxed);
        let Ok(packet) = Packet::parse(datagram) else { return 0 };
        let behind = &datagram[packet.wire_len()..];
        if behind.is_empty() {
            return 0;
        }
        self.received.fetch_add(1, Ordering::Relaxed);
        if packet.signal.is_advice() && self.is_willing() && own.are_of(packet.dcid, behind) {
            self.state().advice.take(now, packet.signal);
        }
        packet.wire_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::ConnectionIdGenerator;

    const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    fn of(id: &[u8]) -> Vec<u8> {
        [&[0x40][..], id, &[0; 40]].concat()
    }

    fn datagram() -> Vec<u8> {
        of(&ID)
    }

    fn advised(signal: Signal, id: &[u8]) -> Vec<u8> {
        let packet = Packet { signal, dcid: id, scid: &[] };
        let mut bytes = vec![0; packet.wire_len()];
        packet.emit(&mut bytes).expect("room");
        [bytes, of(id)].concat()
    }

    fn signal(bits: u8) -> Signal {
        Signal::from_bits(bits).expect("seven bits")
    }

    #[test]
    fn a_sender_announces_at_the_start_and_twice_a_period() {
        let scone = Scone::default();
        let start = Instant::now();
        assert_eq!(scone.announced(start, &datagram(), 8), None, "nobody has asked");
        scone.want();
        let mut times = Vec::new();
        for second in 0..670 {
            let now = start + Duration::from_secs(second);
            for _ in 0..20 {
                let Some(bytes) = scone.announced(now, &datagram(), 8) else { continue };
                let packet = Packet::parse(&bytes).expect("a SCONE packet");
                assert_eq!((packet.signal, packet.dcid, packet.scid), (Signal::UNKNOWN, &ID[..], &[][..]));
                assert_eq!(bytes[packet.wire_len()..], datagram());
                scone.note_announced(now, &datagram(), 8);
                times.push(second);
            }
        }
        assert_eq!(times[..AT_START as usize], [0; AT_START as usize]);
        let after = &times[AT_START as usize - 1..];
        assert!(after.windows(2).all(|pair| (20..=31).contains(&(pair[1] - pair[0]))), "{times:?}");
        let long = [&[0xc0][..], &[0; 50]].concat();
        assert_eq!(scone.announced(start + PERIOD * 20, &long, 8), None, "a long header");
    }

    #[test]
    fn the_lowest_advice_of_a_period_counts_and_expires() {
        let (scone, mut own) = (Scone::default(), OwnIds::default());
        scone.welcome();
        let id = own.generate_cid();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (second, bits) in [(0, 60), (10, 40), (20, 50), (30, 127)] {
            assert_eq!(scone.strip(at(second), &advised(signal(bits), &id), &own), 15);
        }
        assert_eq!(scone.received(), 4);
        assert_eq!(scone.advice(at(30)), Some(signal(40)));
        assert_eq!(scone.advice(at(77)), Some(signal(40)));
        assert_eq!(scone.advice(at(78)), Some(signal(50)), "the lower one has expired");
        assert_eq!(scone.advice(at(88)), None);
    }

    #[test]
    fn advice_needs_a_packet_of_this_connection_behind_it() {
        let (scone, mut own) = (Scone::default(), OwnIds::default());
        scone.welcome();
        let id = own.generate_cid();
        let now = Instant::now();
        let mut forged = advised(signal(5), &id);
        assert_eq!(scone.strip(now, &forged[..15], &own), 0, "nothing behind it");
        assert_eq!(scone.strip(now, &forged, &OwnIds::default()), 15);
        assert_eq!(scone.strip(now, &advised(signal(5), &ID), &own), 15, "an ID that nobody made");
        forged[16] ^= 1; // in the ID of the packet behind
        assert_eq!(scone.strip(now, &forged, &own), 15);
        assert_eq!(scone.strip(now, &datagram(), &own), 0);
        assert_eq!(scone.advice(now), None);
    }

    /// The packets of a server that sends them unasked are removed all the same, since quinn does not know their version.
    #[test]
    fn an_end_that_welcomes_no_advice_takes_none() {
        let (scone, mut own) = (Scone::default(), OwnIds::default());
        let (id, now) = (own.generate_cid(), Instant::now());
        assert_eq!(scone.strip(now, &advised(signal(5), &id), &own), 15);
        assert_eq!(scone.advice(now), None);
        scone.welcome();
        scone.strip(now, &advised(signal(5), &id), &own);
        assert_eq!(scone.advice(now), Some(signal(5)));
    }

    #[test]
    fn clients_indicate_until_the_server_answers() {
        let scone = Scone::default();
        assert_eq!(scone.indicated(&datagram()), None);
        scone.welcome();
        let sent = scone.indicated(&datagram()).expect("an indication");
        assert!(flowstamp_wire::scone::indicates(&sent) && sent.len() == datagram().len() + 2);
        scone.strip(Instant::now(), &datagram(), &OwnIds::default());
        assert_eq!(scone.indicated(&datagram()), None);
    }
}

//! Viewers of videos: the client of `flowstamp_laws::video` at a receiving host, and its statistics.
//!
//! The client's requests and the responses are those of the application `requests`. A segment's size travels with the
//! request in zero bytes: both ends of a flow are in one place.
//!
//! If a link gives throughput advice, the server sends a SCONE packet with its first response, and then with a response
//! each 20 to 30 s, as draft-ietf-scone-protocol recommends. The client applies the lowest advice of the last 67 s. It
//! takes off the share of headers, because bitrates count media. `flowstamp quic serve` sends eight SCONE packets at the
//! start, one with each of its first full datagrams. Here it is one: if it is lost, the next one is due after 20 to 30 s.

use super::{Flow, Hosts, balance};
use crate::fabric::Fabric;
use crate::packet::{ADVICE, CONTROL, DATA, NO_SACK, Packet};
use crate::results::VideoCounts;
use flowstamp_laws::Stamp;
use flowstamp_laws::registry::Header;
use flowstamp_laws::scone::{GAP_S, MORE_GAP_S, PERIOD_S};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::video::{Action, Client, Params, Segment, Viewed};
use flowstamp_wire::scone::Signal;
use std::collections::VecDeque;

/// The client of one video.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    params: Params,
    /// `None` before the flow has begun.
    client: Option<Client>,
    /// The segment of the last request.
    segment: Option<Segment>,
    /// All segments have arrived.
    done: bool,
    at_warmup: Viewed,
    /// The client's advice: when it came, and the rate that media may have.
    advice: VecDeque<(Time, Rate)>,
    /// When the server sends the next SCONE packet.
    next_scone: Time,
}

impl Viewer {
    /// Memory of a viewer's parameters, of its client, and of its statistics, which the heap holds, bytes.
    pub fn heap_bytes(params: &Params) -> usize {
        let copies = 3 * (size_of::<Params>() + params.ladder.len() * size_of::<Rate>());
        // Advice comes every 20 s at most, and counts for 67 s.
        let advice = 8 * size_of::<(Time, Rate)>();
        copies
            + 8 * params.samples as usize
            + advice
            + 2 * size_of::<(u32, Watched)>()
            + size_of::<VideoCounts>()
    }
}

/// Statistics of a viewer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// Playback and requests at the end.
    pub end: Viewed,
    /// The same at the end of warm-up.
    pub at_warmup: Viewed,
}

impl Viewer {
    pub(super) fn new(params: &Params) -> Self {
        Self {
            params: params.clone(),
            client: None,
            segment: None,
            done: false,
            at_warmup: Viewed::default(),
            advice: VecDeque::new(),
            next_scone: Time::ZERO,
        }
    }

    /// Asks the client for its next request. Returns the time until which it waits, or `None` if it requests a segment
    /// now.
    pub(super) fn waits(&mut self, now: Time) -> Option<Time> {
        let client = self.client.get_or_insert_with(|| Client::new(self.params.clone(), now));
        // Advice expires after a period.
        while self.advice.front().is_some_and(|(came, _)| *came + Time::from_secs(PERIOD_S) <= now) {
            self.advice.pop_front();
        }
        client.advised(
            now,
            self.advice.iter().map(|(_, rate)| *rate).min_by(|a, b| a.bps().total_cmp(&b.bps())),
        );
        match client.poll(now) {
            Action::Fetch(segment) => {
                self.segment = Some(segment);
                None
            }
            Action::Wait(time) => Some(time),
            action @ (Action::Await | Action::Done) => {
                self.done = action == Action::Done;
                Some(Time::MAX)
            }
        }
    }

    /// Bytes of the requested segment.
    pub(super) fn requested_bytes(&self) -> u64 {
        self.segment.map_or(0, |segment| segment.bytes.get())
    }

    fn viewed(&mut self, now: Time) -> Viewed {
        self.client.as_mut().map_or_else(Viewed::default, |client| client.viewed(now))
    }
}

impl Flow {
    /// Whether the flow is a video of which all segments have arrived.
    pub(super) fn has_whole_video(&self) -> bool {
        self.app.as_ref().and_then(|app| app.viewer.as_ref()).is_some_and(|viewer| viewer.done)
    }

    fn viewer(&mut self) -> Option<&mut Viewer> {
        self.app.as_mut()?.viewer.as_deref_mut()
    }
}

impl Hosts {
    /// Tells a client that the requested segment has arrived. A viewer leaves when its flow stops.
    pub(super) fn segment_arrived(&mut self, now: Time, number: u32) {
        let stop = self.leaves(number as usize);
        let Some(viewer) = self.flows[number as usize].viewer().filter(|_| now < stop) else { return };
        if let (Some(client), Some(segment)) = (&mut viewer.client, viewer.segment) {
            client.arrived(now, segment.bytes);
        }
    }

    /// Sends a SCONE packet from a video's server, if one is due.
    #[cold]
    pub(super) fn ask_for_advice(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Some(app) = &mut flow.app else { return };
        let Some(viewer) = app.viewer.as_mut().filter(|viewer| viewer.next_scone <= net.now) else { return };
        let more_s = MORE_GAP_S as f64 * app.process.uniform();
        viewer.next_scone = net.now + Time::from_secs_f64(GAP_S as f64 + more_s);
        let packet = Packet {
            stamp: Stamp::default(),
            sent_at: net.now,
            flow: number,
            seq: flow.sender.next_seq(),
            next: balance::route(&mut self.balancer, flow.routes.data, number, balance::DATA, net.now),
            sack: NO_SACK,
            size: self.ack_bytes,
            generation: flow.generation,
            bits: u16::from(Signal::UNKNOWN.bits()),
            flags: DATA | CONTROL | ADVICE,
            header: Header::Plain,
        };
        net.send(packet);
    }

    /// Takes note of a SCONE packet that has reached a video's client.
    #[cold]
    pub(super) fn advised(&mut self, now: Time, packet: &Packet) {
        let media = f64::from(self.payload()) / f64::from(self.packet_bytes);
        let signal = Signal::from_bits(packet.bits as u8).and_then(Signal::bits_per_sec);
        let Some(viewer) = self.flows[packet.flow as usize].viewer() else { return };
        if let Some(bps) = signal {
            viewer.advice.push_back((now, Rate::from_bps(bps as f64 * media)));
        }
    }

    fn leaves(&self, number: usize) -> Time {
        let flow = &self.flows[number];
        self.groups[flow.group as usize].stops(&self.records[flow.record as usize])
    }

    /// Notes the viewers' statistics at the end of warm-up.
    pub(super) fn videos_at_warmup(&mut self, now: Time) {
        for number in 0..self.flows.len() {
            if self.flows[number].app.is_some() {
                let now = now.min(self.leaves(number));
                if let Some(viewer) = self.flows[number].viewer() {
                    viewer.at_warmup = viewer.viewed(now);
                }
            }
        }
    }

    /// Writes the viewers' statistics at the end of the run.
    pub fn write_watched(&mut self, now: Time) {
        for number in 0..self.flows.len() {
            if self.flows[number].app.is_some() {
                let now = now.min(self.leaves(number));
                let record = self.flows[number].record;
                if let Some(viewer) = self.flows[number].viewer() {
                    let watched = Watched { end: viewer.viewed(now), at_warmup: viewer.at_warmup };
                    self.watched.insert(record, watched);
                }
            }
        }
    }
}

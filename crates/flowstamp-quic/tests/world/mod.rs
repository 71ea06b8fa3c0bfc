//! Connections of quinn-proto, and the path that they share, in virtual time.

#[path = "../end/mod.rs"]
mod end;

use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_quic::controller::{self, Flow};
use flowstamp_quic::endpoint::{endpoint_config, transport};
use flowstamp_quic::handshake::{ClientTls, ServerTls};
use flowstamp_quic::ids::OwnIds;
use flowstamp_quic::path::bottleneck::{Bottleneck, Datagram};
use flowstamp_quic::path::{Counts, Spec};
use flowstamp_quic::stamps::ECHOES;
use flowstamp_quic::tls::{self, Trust};
use flowstamp_wire::quic_stamp::Echo;
use quinn::crypto::rustls::QuicServerConfig;
use quinn_proto::{ClientConfig, Dir, Endpoint, Event, ServerConfig, StreamEvent, StreamId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const MTU: u16 = 1200;
pub const DELAY: Time = Time::from_millis(20);

/// One end of a connection, and its socket.
struct End {
    quinn: end::End,
    flow: Arc<Flow>,
    /// A datagram that the pace holds back.
    held: Option<Vec<u8>>,
}

impl End {
    /// The datagrams that leave now, as the socket sends them.
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            let contents = self.held.take().or_else(|| self.quinn.datagram(now));
            let Some(contents) = contents else { return sent };
            let mut sender = self.flow.lock();
            let Ok(departure) = self.flow.leaving(&mut sender, now, &contents) else {
                drop(sender);
                self.held = Some(contents);
                return sent;
            };
            self.flow.left(&mut sender, now, &departure);
            sent.push(departure.into_bytes());
        }
    }

    /// When it has something to do next.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        let (_, connection) = self.quinn.connection.as_mut()?;
        let held = if self.held.is_some() { self.flow.lock().held(now) } else { None };
        held.into_iter().chain(connection.poll_timeout()).min()
    }
}

/// A connection: both ends, its request and what has arrived.
struct Pair {
    client: End,
    server: End,
    addresses: [SocketAddr; 2],
    /// The client's connection IDs.
    own: OwnIds,
    /// When the next echo may leave.
    echoed: Time,
    law: SenderSpec,
    /// The stream of the request, and when it was sent.
    asked: Option<(StreamId, Time)>,
    got: usize,
    done: Option<Time>,
}

impl Pair {
    fn new(law: &str, number: u8, epoch: Instant) -> Self {
        let law = controller::law(law).unwrap();
        // A law with stamps starts when a request asks for them.
        let stamps = flowstamp_quic::headers::protocol_of(law.header()).is_some();
        let start = if stamps { SenderSpec::default() } else { law.clone() };
        let [client_flow, server_flow] = [SenderSpec::default(), start].map(|law| Flow::new(&law, MTU));
        let addresses: [SocketAddr; 2] = [([10, 0, number, 1], 1).into(), ([10, 0, number, 2], 2).into()];
        let server_tls = Arc::new(tls::server().unwrap().0);
        let plain = Arc::new(QuicServerConfig::try_from(Arc::clone(&server_tls)).unwrap());
        let mut server_config = ServerConfig::with_crypto(ServerTls::new(&server_tls, &plain, &server_flow));
        server_config.transport_config(Arc::new(transport(&server_flow, MTU)));
        let own = OwnIds::default();
        let (mut config, made) = (endpoint_config(), own.clone());
        config.cid_generator(move || Box::new(made.clone()));
        let mut endpoint = Endpoint::new(Arc::new(config), None, false, Some([1 + number; 32]));
        let mut client_config =
            ClientConfig::new(ClientTls::new(tls::client(Trust::Anybody).unwrap(), &client_flow));
        client_config.transport_config(Arc::new(transport(&client_flow, MTU)));
        let connection = endpoint.connect(epoch, client_config, addresses[1], "localhost").unwrap();
        let client = End { quinn: end::End::new(endpoint, Some(connection)), flow: client_flow, held: None };
        let config = Arc::new(endpoint_config());
        let endpoint = Endpoint::new(config, Some(Arc::new(server_config)), false, Some([101 + number; 32]));
        let server = End { quinn: end::End::new(endpoint, None), flow: server_flow, held: None };
        Self { client, server, addresses, own, echoed: Time::ZERO, law, asked: None, got: 0, done: None }
    }

    /// Hands a datagram over. Returns the one that answers it at once.
    fn arrive(&mut self, now: Instant, to_client: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        let stamp = if to_client { self.client.flow.stamps.strip(bytes, &self.own) } else { 0 };
        let from = self.addresses[usize::from(to_client)];
        let end = if to_client { &mut self.client } else { &mut self.server };
        end.quinn.receive(now, from, &bytes[stamp..]).answer
    }

    fn echo_due(&self, now: Time) -> Option<Time> {
        self.client.flow.stamps.has_echo().then(|| self.echoed.max(now))
    }

    /// Echoes as the client's task does.
    fn echo(&mut self, now: Time) {
        if self.echo_due(now).is_some_and(|due| due <= now) {
            let echo: Echo = self.client.flow.stamps.take_echo().unwrap();
            let connection = &mut self.client.quinn.connection.as_mut().unwrap().1;
            connection.datagrams().send(bytes::Bytes::copy_from_slice(&echo.to_bytes()), true).unwrap();
            self.echoed = now + Time::from_nanos((connection.rtt() / ECHOES).as_nanos() as u64);
        }
    }

    /// Asks once the client is connected, and reads what has arrived of the answer of `size` bytes.
    fn ask_and_read(&mut self, now: Time, size: usize) {
        let connection = &mut self.client.quinn.connection.as_mut().unwrap().1;
        while let Some(event) = connection.poll() {
            if let Event::Connected = event {
                let id = connection.streams().open(Dir::Bi).unwrap();
                connection.send_stream(id).write(&[1; 60]).unwrap();
                connection.send_stream(id).finish().unwrap();
                self.asked = Some((id, now));
            }
        }
        let Some((stream, _)) = self.asked else { return };
        if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.got += chunk.bytes.len();
            }
            let _ = chunks.finalize();
        }
        if self.got >= size && self.done.is_none() {
            self.done = Some(now);
        }
    }

    /// The server hears echoes, and answers a request with `size` bytes. A request that names another law starts it afresh.
    fn serve(&mut self, now: Instant, size: usize) {
        let Some((_, connection)) = &mut self.server.quinn.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { .. }) => {
                    let id = connection.streams().accept(Dir::Bi).unwrap();
                    let mut sender = self.server.flow.lock();
                    if *sender.spec() != self.law {
                        sender.restart(&self.law, self.server.flow.stamps.want(&self.law));
                    }
                    drop(sender);
                    assert_eq!(connection.send_stream(id).write(&vec![0; size]).unwrap(), size);
                    connection.send_stream(id).finish().unwrap();
                }
                Event::DatagramReceived => {
                    while let Some(frame) = connection.datagrams().recv() {
                        self.server.flow.lock().hear(now, Echo::parse(&frame).unwrap());
                    }
                }
                _ => {}
            }
        }
    }
}

/// Connections, the path of their datagrams, and the time.
pub struct World {
    epoch: Instant,
    now: Time,
    pairs: Vec<Pair>,
    bottleneck: Bottleneck<usize>,
    /// Datagrams on the way: when, their number, whether to the client, and the connection.
    flying: BTreeMap<(Time, u64), (bool, usize, Vec<u8>)>,
    number: u64,
    /// The servers' host pauses in each of the first times for the second.
    pauses: Option<[Time; 2]>,
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Seconds from the request to the last byte.
    pub seconds: f64,
    /// When the request was sent.
    pub asked: Time,
    /// Whether the sender has become a TCP.
    pub has_left: bool,
}

impl World {
    /// Connections of these laws, over a path with this router.
    pub fn new(laws: &[&str], router: &str, pauses: Option<[Time; 2]>) -> Self {
        let epoch = Instant::now();
        let anywhere = ([127, 0, 0, 1], 0).into();
        let bottleneck = Bottleneck::new(&Spec {
            listen: anywhere,
            to: anywhere,
            rate: Rate::from_bps(10e6),
            delay: DELAY,
            buffer: Some(Bytes::new(50_000)),
            router: controller::router(router).unwrap(),
            scone: None,
        });
        let pairs =
            laws.iter().enumerate().map(|(number, law)| Pair::new(law, number as u8, epoch)).collect();
        Self { epoch, now: Time::ZERO, pairs, bottleneck, flying: BTreeMap::new(), number: 0, pauses }
    }

    /// Makes the servers ask each client for proof of its address.
    pub fn with_retries(mut self) -> Self {
        for pair in &mut self.pairs {
            pair.server.quinn.retries = true;
        }
        self
    }

    /// The counts of the bottleneck so far.
    pub fn counts(&self) -> Counts {
        self.bottleneck.counts()
    }

    /// Transfers `size` bytes over each connection.
    pub fn transfer(&mut self, size: usize) -> Vec<Transfer> {
        while self.pairs.iter().any(|pair| pair.done.is_none()) {
            self.send();
            self.step();
            let (now, at) = (self.now, self.at(self.now));
            for pair in &mut self.pairs {
                pair.ask_and_read(now, size);
                pair.serve(at, size);
            }
        }
        let told = |pair: &Pair| {
            let (asked, has_left) = (pair.asked.unwrap().1, pair.server.flow.lock().has_left());
            Transfer { seconds: (pair.done.unwrap() - asked).as_secs_f64(), asked, has_left }
        };
        self.pairs.iter().map(told).collect()
    }

    fn at(&self, time: Time) -> Instant {
        self.epoch + Duration::from_nanos(time.as_ps() / 1000)
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos((at - self.epoch).as_nanos() as u64)
    }

    /// When the pause of the servers' host ends, if it pauses now.
    fn paused(&self) -> Option<Time> {
        let [every, length] = self.pauses?;
        let begin = Time::from_ps(self.now.as_ps() / every.as_ps() * every.as_ps());
        Some(begin + length).filter(|end| self.now < *end)
    }

    fn fly(&mut self, at: Time, to_client: bool, which: usize, bytes: Vec<u8>) {
        self.number += 1;
        self.flying.insert((at, self.number), (to_client, which, bytes));
    }

    fn advance(&mut self) {
        let mut left = Vec::new();
        self.bottleneck.advance(self.now, |end, datagram| left.push((end + DELAY, datagram)));
        for (at, Datagram { bytes, way }) in left {
            self.fly(at, true, way, bytes);
        }
    }

    /// Sends what all ends have to send.
    fn send(&mut self) {
        let (now, paused) = (self.at(self.now), self.paused().is_some());
        for which in 0..self.pairs.len() {
            let pair = &mut self.pairs[which];
            pair.client.quinn.settle();
            pair.server.quinn.settle();
            let up = pair.client.send(now);
            let down = if paused { Vec::new() } else { pair.server.send(now) };
            for bytes in up {
                self.fly(self.now + DELAY, false, which, bytes);
            }
            for bytes in down {
                self.advance();
                self.bottleneck.arrive(self.now, Datagram { bytes, way: which });
                self.advance();
            }
        }
    }

    /// The next time at which anything happens.
    fn next(&mut self) -> Time {
        let now = self.at(self.now);
        let paused = self.paused().map(|end| self.at(end));
        let mut ends = Vec::new();
        for pair in &mut self.pairs {
            ends.extend(pair.client.next(now));
            ends.extend(pair.server.next(now).map(|at| paused.map_or(at, |end| at.max(end))));
        }
        let ends = ends.into_iter().map(|at| self.time(at));
        let flying = self.flying.keys().next().map(|(at, _)| *at);
        let echoes = self.pairs.iter().filter_map(|pair| pair.echo_due(self.now));
        ends.chain(flying).chain(self.bottleneck.next()).chain(echoes).min().unwrap()
    }

    /// Goes to the next event.
    fn step(&mut self) {
        self.now = self.now.max(self.next());
        self.advance();
        let (now, pause) = (self.at(self.now), self.paused());
        for pair in &mut self.pairs {
            for (server, end) in [(false, &mut pair.client), (true, &mut pair.server)] {
                if let Some((_, connection)) = &mut end.quinn.connection {
                    if connection.poll_timeout().is_some_and(|at| at <= now) && !(server && pause.is_some()) {
                        connection.handle_timeout(now);
                    }
                }
            }
        }
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to_client, which, bytes) = entry.remove();
            match pause {
                Some(end) if !to_client => self.fly(end, to_client, which, bytes),
                _ => {
                    if let Some(answer) = self.pairs[which].arrive(now, to_client, &bytes) {
                        self.fly(self.now + DELAY, !to_client, which, answer);
                    }
                }
            }
        }
        for pair in &mut self.pairs {
            pair.echo(self.now);
        }
    }
}

//! A path in user space: a UDP forwarder with a rate, a delay, a buffer and a router's law. It needs no root.
//!
//! ```text
//!   client -- socket `listen` --------- delay --------> a socket per client -- server
//!   client <- delay <- bottleneck: buffer, rate, law <- a socket per client -- server
//! ```
//!
//! The law stamps when the transmission of a packet starts, as in the simulator. A packet's times follow from its arrival only, so
//! a late thread shifts one packet and not those behind it. Sizes include the headers of IPv4 and UDP.

use crate::sender::BELOW_QUIC;
use crate::stamps;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{AnyRouter, RouterSpec};
use flowstamp_laws::router::{LinkView, MAX_TIMERS, PacketIn, PacketOut, RouterView};
use flowstamp_laws::stamp::Stamp;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_wire::option::{Protocol, UNBOUNDED_RATE};
use flowstamp_wire::quic_stamp::{self, Packet};
use flowstamp_wire::scone::{self, Signal};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Clients that a path serves in its life: the socket and thread of each stay. It drops the datagrams of later ones.
const MOST_CLIENTS: usize = 1024;
/// Datagrams on the way in both directions; more are dropped.
const MOST_FLYING: usize = 100_000;
/// The forwarder looks this often whether it is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// Size of a full packet, for a law that asks.
const PACKET: u32 = 1500;

/// The properties of a path.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The address of clients.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// Rate towards clients.
    pub rate: Rate,
    /// Delay each way.
    pub delay: Time,
    /// Buffer towards clients; `None` for what the rate carries in a round trip, but at least ten packets.
    pub buffer: Option<Bytes>,
    /// The router's law.
    pub router: RouterSpec,
    /// Advice for SCONE packets.
    pub scone: Option<Signal>,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Counts {
    /// Packets that reached the bottleneck.
    pub arrived: u64,
    /// Packets that the buffer dropped.
    pub dropped: u64,
    /// Packets with a stamp.
    pub stamped: u64,
    /// SCONE packets whose signal was lowered.
    pub advised: u64,
    /// The longest queue, bytes.
    pub longest_queue_bytes: u64,
    /// Sum of the queues that packets found, bytes. Divided by `arrived`, their mean.
    pub queue_sum_bytes: u64,
}

/// A datagram, and where it goes.
#[derive(Debug)]
struct Datagram {
    bytes: Vec<u8>,
    socket: Arc<UdpSocket>,
    to: Option<SocketAddr>,
}

impl Datagram {
    fn size(&self) -> u32 {
        self.bytes.len() as u32 + BELOW_QUIC
    }
}

/// The bottleneck towards clients. It uses no clock: callers pass times in.
struct Bottleneck {
    rate: Rate,
    buffer: u64,
    law: Option<AnyRouter>,
    timers: [Option<Time>; MAX_TIMERS],
    scone: Option<Signal>,
    /// When the transmission under way ends.
    free: Time,
    waiting: VecDeque<Datagram>,
    queue_bytes: u64,
    counts: Counts,
}

impl Bottleneck {
    fn new(spec: &Spec) -> Self {
        let round = spec.rate.bytes_in(spec.delay * 2) as u64;
        let buffer = spec.buffer.map_or(round.max(10 * u64::from(PACKET)), Bytes::get);
        let limit = Limit::Bytes(buffer);
        let traits = spec.router.traits();
        Self {
            rate: spec.rate,
            buffer,
            law: spec.router.build(&RouterView { capacity: Some(spec.rate), limit, packet_bytes: PACKET }),
            timers: traits.first_timers,
            scone: spec.scone,
            free: Time::ZERO,
            waiting: VecDeque::new(),
            queue_bytes: 0,
            counts: Counts::default(),
        }
    }

    fn view(&self, now: Time) -> LinkView {
        LinkView { now, queue_bytes: self.queue_bytes, queue_packets: self.waiting.len() as u32 }
    }

    /// The next transmission or timer.
    fn next(&self) -> Option<Time> {
        let start = (!self.waiting.is_empty()).then_some(self.free);
        let timers = self.timers.iter().flatten().copied().filter(|_| self.law.is_some());
        timers.chain(start).min()
    }

    /// Takes a datagram at `now`, up to which [`advance`](Self::advance) has come.
    fn arrive(&mut self, now: Time, datagram: Datagram) {
        let size = datagram.size();
        let stamp = stamp_of(&datagram.bytes);
        let view = self.view(now);
        if let Some(law) = &mut self.law {
            law.on_arrival(view, PacketIn::of(size, stamp.as_ref()));
        }
        self.counts.arrived += 1;
        self.counts.queue_sum_bytes += self.queue_bytes;
        if self.waiting.is_empty() && self.free < now {
            self.free = now;
        }
        if self.queue_bytes + u64::from(size) > self.buffer && self.free > now {
            self.counts.dropped += 1;
            return;
        }
        self.queue_bytes += u64::from(size);
        self.waiting.push_back(datagram);
        self.counts.longest_queue_bytes = self.counts.longest_queue_bytes.max(self.queue_bytes);
    }

    /// Handles all transmissions and timers up to `now`, in order. `send` gets each datagram and the end of its transmission.
    fn advance(&mut self, now: Time, mut send: impl FnMut(Time, Datagram)) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            let due = self.timers.iter().position(|timer| *timer == Some(at));
            let view = self.view(at);
            if let (Some(which), Some(law)) = (due, &mut self.law) {
                self.timers[which] = Some(law.on_timer(which, view));
            } else if let Some(datagram) = self.waiting.pop_front() {
                let datagram = self.start(at, datagram);
                self.free = at + self.rate.tx_time(Bytes::new(datagram.size().into()));
                send(self.free, datagram);
            }
        }
    }

    /// Stamps a datagram whose transmission starts.
    fn start(&mut self, now: Time, mut datagram: Datagram) -> Datagram {
        let size = datagram.size();
        self.queue_bytes -= u64::from(size);
        let view = self.view(now);
        if let (Some(law), Some(mut stamp)) = (&mut self.law, stamp_of(&datagram.bytes)) {
            let mut bits = 0;
            law.on_departure(view, PacketOut { size, stamp: &mut stamp, bits: &mut bits }, || 0.5);
            let offered = stamps::to_wire(&stamp).map_or(UNBOUNDED_RATE, |wire| wire.value);
            quic_stamp::replace(&mut datagram.bytes, Protocol::Rcp, |was| was.value.min(offered));
            self.counts.stamped += 1;
        }
        if let Some(advice) = self.scone {
            if let scone::Lowered::From(_) = scone::lower(&mut datagram.bytes, advice) {
                self.counts.advised += 1;
            }
        }
        datagram
    }
}

fn stamp_of(bytes: &[u8]) -> Option<Stamp> {
    let packet = Packet::parse(bytes).filter(|packet| packet.protocol == Protocol::Rcp)?;
    Some(stamps::from_wire(packet.stamp))
}

/// A datagram at its end of the path, in order of time and then of number.
struct Due {
    at: Time,
    number: u64,
    datagram: Datagram,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

struct State {
    bottleneck: Bottleneck,
    flying: BinaryHeap<Reverse<Due>>,
    numbers: u64,
}

struct Shared {
    epoch: Instant,
    delay: Time,
    state: Mutex<State>,
    changed: Condvar,
    over: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Takes a datagram from a client, or from the server.
    fn take(&self, datagram: Datagram, from_server: bool) {
        let mut state = self.lock();
        let now = self.now();
        state.advance(now, self.delay);
        if from_server {
            state.bottleneck.arrive(now, datagram);
            state.advance(now, self.delay);
        } else {
            state.fly(now + self.delay, datagram);
        }
        self.changed.notify_one();
    }

    /// Sends datagrams when they are due.
    fn deliver(&self) {
        let mut state = self.lock();
        while !self.is_over() {
            let now = self.now();
            state.advance(now, self.delay);
            if let Some(due) = state.due(now) {
                drop(state);
                let Datagram { bytes, socket, to } = due;
                // An error is that of a host that has gone: its datagram is lost.
                let _ = match to {
                    Some(to) => socket.send_to(&bytes, to),
                    None => socket.send(&bytes),
                };
                state = self.lock();
                continue;
            }
            let next = state.flying.peek().map(|Reverse(due)| due.at);
            let next = next.into_iter().chain(state.bottleneck.next()).min();
            let wait =
                next.map_or(PATIENCE, |at| Duration::from_nanos(at.saturating_sub(now).as_ps() / 1000 + 1));
            let waited = self.changed.wait_timeout(state, wait.min(PATIENCE));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn fly(&mut self, at: Time, datagram: Datagram) {
        if self.flying.len() < MOST_FLYING {
            self.numbers += 1;
            self.flying.push(Reverse(Due { at, number: self.numbers, datagram }));
        }
    }

    fn due(&mut self, now: Time) -> Option<Datagram> {
        let due = self.flying.peek().is_some_and(|Reverse(due)| due.at <= now);
        if due { self.flying.pop().map(|Reverse(due)| due.datagram) } else { None }
    }

    fn advance(&mut self, now: Time, delay: Time) {
        let mut left = Vec::new();
        self.bottleneck.advance(now, |end, datagram| left.push((end + delay, datagram)));
        for (at, datagram) in left {
            self.fly(at, datagram);
        }
    }
}

/// A running path. It ends when this is dropped.
pub struct Path {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Path {
    /// Starts a path.
    ///
    /// # Errors
    ///
    /// The address is in use, or the system lacks a thread.
    pub fn start(spec: &Spec) -> io::Result<Self> {
        let front = Arc::new(UdpSocket::bind(spec.listen)?);
        let address = front.local_addr()?;
        let state = State { bottleneck: Bottleneck::new(spec), flying: BinaryHeap::new(), numbers: 0 };
        let shared = Arc::new(Shared {
            epoch: Instant::now(),
            delay: spec.delay,
            state: Mutex::new(state),
            changed: Condvar::new(),
            over: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        thread::Builder::new().name("deliver".into()).spawn(move || own.deliver())?;
        let (own, to) = (Arc::clone(&shared), spec.to);
        thread::Builder::new().name("clients".into()).spawn(move || from_clients(&own, &front, to))?;
        Ok(Self { shared, address })
    }

    /// The address of clients.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.lock().bottleneck.counts
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.changed.notify_one();
    }
}

/// Receives from clients, and makes a socket for each.
fn from_clients(shared: &Arc<Shared>, front: &Arc<UdpSocket>, to: SocketAddr) {
    let mut sockets: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    let _ = front.set_read_timeout(Some(PATIENCE));
    while !shared.is_over() {
        let Ok((len, client)) = front.recv_from(&mut buffer) else { continue };
        let make = || towards(shared, front, to, client);
        if let Some(socket) = socket_of(&mut sockets, client, make) {
            let bytes = buffer[..len].to_vec();
            shared.take(Datagram { bytes, socket, to: None }, false);
        }
    }
}

/// The socket of a client, which `make` makes for a new one; `None` for one client too many, and after an error.
fn socket_of(
    sockets: &mut HashMap<SocketAddr, Arc<UdpSocket>>,
    client: SocketAddr,
    make: impl FnOnce() -> io::Result<Arc<UdpSocket>>,
) -> Option<Arc<UdpSocket>> {
    if let Some(socket) = sockets.get(&client) {
        return Some(Arc::clone(socket));
    }
    if sockets.len() >= MOST_CLIENTS {
        return None;
    }
    let socket = make().ok()?;
    sockets.insert(client, Arc::clone(&socket));
    Some(socket)
}

/// Makes the socket of a client towards the server, and receives what comes back.
fn towards(
    shared: &Arc<Shared>,
    front: &Arc<UdpSocket>,
    to: SocketAddr,
    client: SocketAddr,
) -> io::Result<Arc<UdpSocket>> {
    let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = Arc::new(UdpSocket::bind(any)?);
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let (shared, front, own) = (Arc::clone(shared), Arc::clone(front), Arc::clone(&socket));
    thread::Builder::new().name("server".into()).spawn(move || {
        let mut buffer = vec![0; 65_536];
        while !shared.is_over() {
            let Ok(len) = own.recv(&mut buffer) else { continue };
            let bytes = buffer[..len].to_vec();
            shared.take(Datagram { bytes, socket: Arc::clone(&front), to: Some(client) }, true);
        }
    })?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client too many costs neither a socket nor a thread, however often it sends.
    #[test]
    fn a_client_too_many_gets_no_socket() {
        let one = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        let client = |n: u16| SocketAddr::from(([127, 0, 0, 1], n));
        let mut sockets = HashMap::new();
        for n in 0..MOST_CLIENTS as u16 {
            assert!(socket_of(&mut sockets, client(n), || Ok(Arc::clone(&one))).is_some());
        }
        for _ in 0..3 {
            assert!(socket_of(&mut sockets, client(u16::MAX), || unreachable!("a socket is made")).is_none());
        }
        assert!(socket_of(&mut sockets, client(7), || unreachable!("it has one")).is_some());
        assert_eq!(sockets.len(), MOST_CLIENTS);
    }
}

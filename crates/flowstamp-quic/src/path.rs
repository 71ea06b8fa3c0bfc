//! A path in user space: a UDP forwarder with a rate, a delay, a buffer and a router's law. It needs no root.
//!
//! ```text
//!   client -- socket `listen` --------- delay --------> a socket per client -- server
//!   client <- delay <- bottleneck: buffer, rate, law <- a socket per client -- server
//! ```
//!
//! The law stamps when the transmission of a packet starts, as in the simulator. A packet's times follow from its arrival only, so
//! a late thread shifts one packet and not those behind it. Sizes include the headers of IPv4 and UDP.

pub mod bottleneck;

pub use bottleneck::Counts;
use bottleneck::{Bottleneck, Datagram};
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_wire::scone::Signal;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
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

/// Where a datagram goes: a socket, and an address if the socket has several peers.
#[derive(Debug)]
struct Way {
    socket: Arc<UdpSocket>,
    to: Option<SocketAddr>,
}

/// A datagram at its end of the path, in order of time and then of number.
struct Due {
    at: Time,
    number: u64,
    datagram: Datagram<Way>,
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
    bottleneck: Bottleneck<Way>,
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
    fn take(&self, datagram: Datagram<Way>, from_server: bool) {
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
                let Datagram { bytes, way: Way { socket, to } } = due;
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
    fn fly(&mut self, at: Time, datagram: Datagram<Way>) {
        if self.flying.len() < MOST_FLYING {
            self.numbers += 1;
            self.flying.push(Reverse(Due { at, number: self.numbers, datagram }));
        }
    }

    fn due(&mut self, now: Time) -> Option<Datagram<Way>> {
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
        self.shared.lock().bottleneck.counts()
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
            shared.take(Datagram { bytes, way: Way { socket, to: None } }, false);
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
            let way = Way { socket: Arc::clone(&front), to: Some(client) };
            shared.take(Datagram { bytes, way }, true);
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

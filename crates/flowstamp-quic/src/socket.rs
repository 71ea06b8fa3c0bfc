//! A socket for quinn that sends at the pace of each connection's law.
//!
//! quinn's congestion controllers have no pace: quinn spreads a window over a round trip. Laws such as BBR and RCP
//! give a rate, so the socket holds a connection's next datagram back until the rate lets it leave. The round trip of a
//! packet starts when it leaves the socket.
//!
//! Small datagrams, mostly acks, are not held back.

use crate::alarm::Alarm;
use crate::controller::Flow;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Datagrams below this size are not paced, bytes.
const UNPACED: usize = 200;

thread_local! {
    /// Until when the pace held back the datagram that this thread tried to send last. quinn asks the connection's poller
    /// next, which does not know its connection otherwise.
    static HELD: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A UDP socket whose connections have laws.
#[derive(Debug)]
pub struct LawSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    flows: Mutex<HashMap<SocketAddr, Arc<Flow>>>,
    alarm: Alarm,
}

/// An address as it is compared: IPv4 within IPv6 is IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl LawSocket {
    /// Wraps a bound socket. Call it within tokio's runtime.
    ///
    /// # Errors
    ///
    /// The operating system refuses the socket or a thread.
    pub fn new(socket: std::net::UdpSocket) -> io::Result<Arc<Self>> {
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        Ok(Arc::new(Self { inner, flows: Mutex::default(), alarm: Alarm::start()? }))
    }

    fn flows(&self) -> MutexGuard<'_, HashMap<SocketAddr, Arc<Flow>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the flow of the connection with this peer.
    pub fn add(&self, peer: SocketAddr, flow: Arc<Flow>) {
        self.flows().insert(canonical(peer), flow);
    }

    /// Forgets a connection's flow, unless the peer has a newer one.
    pub fn remove(&self, peer: SocketAddr, flow: &Arc<Flow>) {
        let mut flows = self.flows();
        if flows.get(&canonical(peer)).is_some_and(|known| Arc::ptr_eq(known, flow)) {
            flows.remove(&canonical(peer));
        }
    }

    fn flow(&self, peer: SocketAddr) -> Option<Arc<Flow>> {
        self.flows().get(&canonical(peer)).cloned()
    }
}

impl AsyncUdpSocket for LawSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let inner = Arc::clone(&self.inner).create_io_poller();
        Box::pin(PacedPoller { inner, alarm: self.alarm.clone(), held: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let Some(flow) = self.flow(transmit.destination) else { return self.inner.try_send(transmit) };
        let now = Instant::now();
        let mut sender = flow.lock();
        if transmit.contents.len() >= UNPACED {
            if let Some(until) = sender.paced(now, transmit.contents.len()) {
                HELD.set(Some(until));
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        let traits = sender.traits();
        let ecn = match transmit.ecn {
            Some(_) if !traits.ecn => None,
            Some(EcnCodepoint::Ect0) if traits.l4s => Some(EcnCodepoint::Ect1),
            as_it_is => as_it_is,
        };
        let Transmit { destination, contents, segment_size, src_ip, .. } = *transmit;
        self.inner.try_send(&Transmit { destination, ecn, contents, segment_size, src_ip })?;
        sender.on_departure(now, contents.len() as u64);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// One: each datagram has its own time and stamp.
    fn max_transmit_segments(&self) -> usize {
        1
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// Says when a connection's next datagram may be tried.
#[derive(Debug)]
struct PacedPoller {
    inner: Pin<Box<dyn UdpPoller>>,
    alarm: Alarm,
    held: Option<(Instant, Option<Waker>)>,
}

impl UdpPoller for PacedPoller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(until) = HELD.take() {
            self.held = Some((until, None));
        }
        if let Some((until, waits)) = self.held.take() {
            if Instant::now() < until {
                let waits = waits.filter(|waker| waker.will_wake(cx.waker()));
                let waits = waits.unwrap_or_else(|| {
                    self.alarm.wake_at(until, cx.waker().clone());
                    cx.waker().clone()
                });
                self.held = Some((until, Some(waits)));
                return Poll::Pending;
            }
        }
        self.inner.as_mut().poll_writable(cx)
    }
}

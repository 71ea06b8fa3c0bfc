//! A socket for quinn that sends at the pace of each connection's law, and adds and removes stamp packets.
//!
//! quinn's congestion controllers have no pace: quinn spreads a window over a round trip. Laws such as BBR and RCP
//! give a rate, so the socket holds a connection's next datagram back until the rate lets it leave. The round trip of a
//! packet starts when it leaves the socket.
//!
//! Small datagrams, mostly acks, are not held back.

use crate::alarm::Alarm;
use crate::controller::Flow;
use crate::ids::OwnIds;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

thread_local! {
    /// Until when the pace held back the datagram that this thread tried to send last. quinn asks the connection's poller
    /// next, which does not know its connection otherwise.
    static HELD: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A UDP socket whose connections have laws.
#[derive(Debug)]
pub struct LawSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    /// Flows of each peer's connections, the newest last. A packet of an older one goes by the newest.
    flows: Mutex<HashMap<SocketAddr, Vec<Arc<Flow>>>>,
    alarm: Alarm,
    /// The connection IDs of this end, at clients.
    own: OwnIds,
    /// Datagrams that arrived and were not handed out yet.
    left: Mutex<VecDeque<(Vec<u8>, RecvMeta)>>,
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
    pub fn new(socket: std::net::UdpSocket, own: OwnIds) -> io::Result<Arc<Self>> {
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        Ok(Arc::new(Self {
            inner,
            flows: Mutex::default(),
            own,
            alarm: Alarm::start()?,
            left: Mutex::default(),
        }))
    }

    fn flows(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<Arc<Flow>>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the flow of the newest connection with this peer.
    pub fn add(&self, peer: SocketAddr, flow: Arc<Flow>) {
        self.flows().entry(canonical(peer)).or_default().push(flow);
    }

    /// Forgets a connection's flow. An older one of the peer counts again.
    pub fn remove(&self, peer: SocketAddr, flow: &Arc<Flow>) {
        let (mut flows, peer) = (self.flows(), canonical(peer));
        let Some(known) = flows.get_mut(&peer) else { return };
        known.retain(|other| !Arc::ptr_eq(other, flow));
        if known.is_empty() {
            flows.remove(&peer);
        }
    }

    /// The flow of the newest connection with this peer.
    pub fn flow(&self, peer: SocketAddr) -> Option<Arc<Flow>> {
        self.flows().get(&canonical(peer))?.last().cloned()
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<(Vec<u8>, RecvMeta)>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the stamp packets and SCONE packets of the datagrams in `buffer`. The kernel may have joined several of `meta.stride` bytes. If
    /// they differ in length afterwards, only the first stays, and the others wait for the next call.
    fn strip(&self, flow: &Flow, buffer: &mut [u8], meta: &mut RecvMeta) {
        if meta.len == 0 || meta.stride == 0 {
            return;
        }
        let now = Instant::now();
        let starts = (0..meta.len).step_by(meta.stride);
        let parts: Vec<_> = starts
            .map(|start| {
                let end = (start + meta.stride).min(meta.len);
                let scone = flow.scone.strip(now, &buffer[start..end], &self.own);
                let start = start + scone;
                start + flow.stamps.strip(&buffer[start..end], &self.own)..end
            })
            .collect();
        let stride = parts[0].len();
        let alike = parts[..parts.len() - 1].iter().all(|part| part.len() == stride)
            && parts.last().is_some_and(|last| last.len() <= stride);
        let stay = if alike { parts.len() } else { 1 };
        for part in &parts[stay..] {
            let (len, stride) = (part.len(), part.len());
            self.left().push_back((buffer[part.clone()].to_vec(), RecvMeta { len, stride, ..*meta }));
        }
        let mut len = 0;
        for part in &parts[..stay] {
            buffer.copy_within(part.clone(), len);
            len += part.len();
        }
        (meta.len, meta.stride) = (len, stride);
    }

    /// Hands out datagrams that [`strip`](Self::strip) has kept; `None` if there are none.
    fn put_back(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> Option<usize> {
        let mut left = self.left();
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta.iter_mut()) {
            let Some((bytes, of)) = left.pop_front() else { break };
            buffer[..bytes.len()].copy_from_slice(&bytes);
            *meta = of;
            count += 1;
        }
        (count > 0).then_some(count)
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
        let departure = flow.leaving(&mut sender, now, transmit.contents).map_err(|until| {
            HELD.set(Some(until));
            io::Error::from(io::ErrorKind::WouldBlock)
        })?;
        let traits = sender.traits();
        let ecn = match transmit.ecn {
            Some(_) if !traits.ecn => None,
            Some(EcnCodepoint::Ect0) if traits.l4s => Some(EcnCodepoint::Ect1),
            as_it_is => as_it_is,
        };
        let Transmit { destination, segment_size, src_ip, .. } = *transmit;
        let contents = departure.bytes();
        self.inner.try_send(&Transmit { destination, ecn, contents, segment_size, src_ip })?;
        // The socket may have been full: only a datagram that was sent counts.
        flow.left(&mut sender, now, &departure);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        if let Some(count) = self.put_back(bufs, meta) {
            return Poll::Ready(Ok(count));
        }
        let received = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (buffer, meta) in bufs.iter_mut().zip(meta.iter_mut()).take(received) {
            if let Some(flow) = self.flow(meta.addr) {
                self.strip(&flow, buffer, meta);
            }
        }
        Poll::Ready(Ok(received))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A socket that is full until told otherwise, and forgets what it sends.
    #[derive(Debug)]
    struct Full(AtomicBool);

    impl AsyncUdpSocket for Full {
        fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
            unreachable!("nobody polls")
        }

        fn try_send(&self, _: &Transmit<'_>) -> io::Result<()> {
            if self.0.load(Ordering::Relaxed) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        }

        fn poll_recv(
            &self,
            _: &mut Context<'_>,
            _: &mut [IoSliceMut<'_>],
            _: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(PEER)
        }
    }

    const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4433);

    fn socket() -> (LawSocket, Arc<Full>) {
        let inner = Arc::new(Full(AtomicBool::new(true)));
        let alarm = Alarm::start().expect("a thread");
        let (own, flows, left) = (OwnIds::default(), Mutex::default(), Mutex::default());
        (LawSocket { inner: inner.clone(), flows, alarm, own, left }, inner)
    }

    fn flow(law: &str) -> Arc<Flow> {
        Flow::new(&controller::law(law).expect("a law"), 1200)
    }

    /// A datagram that a full socket refuses uses up neither the pace nor a SCONE packet of the start.
    #[test]
    fn only_a_datagram_that_was_sent_counts() {
        let (socket, full) = socket();
        let flow = flow("bbr");
        flow.scone.want();
        socket.add(PEER, Arc::clone(&flow));
        let contents = [0x40; 1200];
        let transmit =
            Transmit { destination: PEER, ecn: None, contents: &contents, segment_size: None, src_ip: None };
        assert!(flow.lock().pace().is_some(), "bbr has a pace from the start");
        let far = || Instant::now().checked_sub(std::time::Duration::from_secs(1)).expect("an old machine");
        for _ in 0..20 {
            assert!(socket.try_send(&transmit).is_err());
            assert_eq!((flow.lock().held(far()), flow.scone.sent()), (None, 0));
        }
        full.0.store(false, Ordering::Relaxed);
        assert!(socket.try_send(&transmit).is_ok());
        assert!(flow.lock().held(far()).is_some());
        assert_eq!(flow.scone.sent(), 1);
    }

    /// A connection that fails gives the peer's older one back.
    #[test]
    fn an_older_flow_counts_again_after_a_newer_one() {
        let (socket, _) = socket();
        let [old, new] = [flow("cubic"), flow("cubic")];
        let is = |flow: &Arc<Flow>| socket.flow(PEER).is_some_and(|known| Arc::ptr_eq(&known, flow));
        socket.add(PEER, Arc::clone(&old));
        socket.add(PEER, Arc::clone(&new));
        assert!(is(&new));
        socket.remove(PEER, &new);
        assert!(is(&old));
        socket.add(PEER, Arc::clone(&new));
        socket.remove(PEER, &old);
        assert!(is(&new));
        socket.remove(PEER, &new);
        assert!(socket.flow(PEER).is_none() && socket.flows().is_empty());
    }
}

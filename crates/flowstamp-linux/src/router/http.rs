//! A minimal HTTP server for the metrics page: one thread, many concurrent clients, and one deadline per
//! client.
//!
//! A slow client delays no other. At more than [`CLIENTS`] connections, the oldest one is closed. An honest
//! request takes milliseconds, so an attacker can block it only by opening that many connections in that
//! time.

use crate::path::monotonic_ns;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Maximum number of concurrent clients.
pub const CLIENTS: usize = 64;
/// Deadline from the start of a connection to its last byte, in nanoseconds.
const DEADLINE_NS: u64 = 2_000_000_000;
/// Maximum request size; a longer request is answered by its first bytes.
const REQUEST_BYTES: usize = 4096;

/// Status line, content type and body of an answer.
pub type Page = (&'static str, &'static str, String);

/// A connected client; it connected one deadline before `until_ns`.
struct Client {
    stream: TcpStream,
    until_ns: u64,
    request: Vec<u8>,
    /// The rest of the answer, once the request is complete.
    rest: Option<Vec<u8>>,
}

impl Client {
    fn new(stream: TcpStream, now_ns: u64) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, until_ns: now_ns + DEADLINE_NS, request: Vec::new(), rest: None })
    }

    /// Reads and writes without blocking. `Ok` means that the client is done; the error `WouldBlock` means
    /// that it must wait.
    fn advance(&mut self, page: &mut impl FnMut(&[u8]) -> Page) -> io::Result<()> {
        let mut part = [0; REQUEST_BYTES];
        while self.rest.is_none() {
            let room = REQUEST_BYTES - self.request.len();
            match self.stream.read(&mut part[..room])? {
                0 => return Ok(()),
                n => self.request.extend(&part[..n]),
            }
            let is_whole = self.request.windows(4).any(|bytes| bytes == b"\r\n\r\n");
            if is_whole || self.request.len() == REQUEST_BYTES {
                let (status, kind, body) = page(&self.request);
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}");
                self.rest = Some(format!("{head}\r\nConnection: close\r\n\r\n{body}").into());
            }
        }
        let rest = self.rest.get_or_insert_default();
        while !rest.is_empty() {
            let sent = self.stream.write(rest)?;
            if sent == 0 {
                return Ok(());
            }
            rest.drain(..sent);
        }
        Ok(())
    }

    /// Calls [`Self::advance`] and returns whether the client stays connected. Any other error ends only this
    /// client.
    fn stays(&mut self, now_ns: u64, page: &mut impl FnMut(&[u8]) -> Page) -> bool {
        let waits =
            |error: io::Error| [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind());
        now_ns < self.until_ns && self.advance(page).is_err_and(waits)
    }

    fn polled(&self) -> libc::pollfd {
        let events = if self.rest.is_some() { libc::POLLOUT } else { libc::POLLIN };
        libc::pollfd { fd: self.stream.as_raw_fd(), events, revents: 0 }
    }
}

/// Waits until a client or the listener is ready, or the next deadline passes.
fn wait(listener: &TcpListener, clients: &[Client], now_ns: u64) {
    let mut all = vec![libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    all.extend(clients.iter().map(Client::polled));
    let ms = clients
        .first()
        .map_or(-1, |oldest| (oldest.until_ns.saturating_sub(now_ns) / 1_000_000 + 1) as libc::c_int);
    // SAFETY: the array has the given length. The result does not matter, because all clients are checked.
    unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, ms) };
}

/// Answers each request with the result of `page`, forever.
pub fn serve(listener: &TcpListener, mut page: impl FnMut(&[u8]) -> Page) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    // Oldest first.
    let mut clients: Vec<Client> = Vec::new();
    loop {
        wait(listener, &clients, monotonic_ns());
        // Bounded, so that new connections cannot starve existing clients.
        for _ in 0..CLIENTS {
            let Ok((stream, _)) = listener.accept() else { break };
            let now_ns = monotonic_ns();
            let Ok(mut client) = Client::new(stream, now_ns) else { continue };
            if client.stays(now_ns, &mut page) {
                clients.drain(..(clients.len() + 1).saturating_sub(CLIENTS));
                clients.push(client);
            }
        }
        clients.retain_mut(|client| client.stays(monotonic_ns(), &mut page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::time::Duration;

    /// A server whose page contains the length of the request.
    fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            serve(&listener, |request| ("200 OK", "text/plain", format!("{} bytes", request.len())))
        });
        at
    }

    fn connect(at: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        stream
    }

    fn ask(at: SocketAddr, request: &[u8]) -> String {
        let (mut stream, mut text) = (connect(at), String::new());
        stream.write_all(request).expect("sent");
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    const WHOLE: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    #[test]
    fn a_slow_client_shuts_nobody_out_and_has_one_deadline() {
        let at = start();
        let slow = connect(at);
        let mut sends = slow.try_clone().expect("a descriptor");
        // Never stops by itself; sends each byte well within a second.
        let sender = std::thread::spawn(move || {
            while sends.write_all(b"G").is_ok() {
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        std::thread::sleep(Duration::from_millis(300));
        assert!(ask(at, WHOLE).ends_with("18 bytes"));
        assert!(!sender.is_finished(), "it was let go before others were answered");
        // The server closes the connection: the client sees its end or an error.
        assert!(matches!((&slow).read(&mut [0; 64]), Ok(0)) || sender.join().is_ok());
    }

    #[test]
    fn a_crowd_that_says_nothing_shuts_nobody_out() {
        let at = start();
        let crowd: Vec<TcpStream> = (0..3 * CLIENTS).map(|_| connect(at)).collect();
        assert!(ask(at, WHOLE).ends_with("18 bytes"));
        // The oldest connection was closed; the newest is still open.
        assert!(matches!((&crowd[0]).read(&mut [0; 64]), Ok(0)));
        let mut last = crowd.last().expect("there are some");
        last.write_all(WHOLE).expect("sent");
        let mut text = String::new();
        last.read_to_string(&mut text).expect("an answer");
        assert!(text.ends_with("18 bytes"), "{text}");
    }

    #[test]
    fn requests_in_parts_long_ones_and_large_answers() {
        let at = start();
        let (mut stream, mut text) = (connect(at), String::new());
        for part in WHOLE.chunks(5) {
            stream.write_all(part).expect("sent");
            std::thread::sleep(Duration::from_millis(20));
        }
        stream.read_to_string(&mut text).expect("an answer");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n18 bytes"), "{text}");
        assert!(ask(at, &[b'x'; REQUEST_BYTES]).ends_with("4096 bytes"));
        // A body larger than a socket's buffer.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let body = "y".repeat(8 << 20);
        let sent = body.clone();
        std::thread::spawn(move || serve(&listener, |_| ("200 OK", "text/plain", sent.clone())));
        assert!(ask(at, WHOLE).ends_with(&format!("\r\n\r\n{body}")));
    }
}

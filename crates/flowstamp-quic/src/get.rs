//! The HTTP/3 client.

use crate::endpoint::{Client, Options};
use crate::serve::{ACCOUNT, Account, LAW};
use crate::tls::Trust;
use anyhow::{Context, anyhow, bail, ensure};
use bytes::Buf;
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_wire::scone::Signal;
use http::{Request, Uri};
use serde::Serialize;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A page to fetch, and the way to do so.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The address of the page, `https://HOST[:PORT]/PATH`.
    pub uri: Uri,
    /// The law of both ends, and its text for the server; `None` for the server's own.
    pub law: Option<(SenderSpec, String)>,
    /// Size of datagrams above UDP, bytes.
    pub mtu: u16,
    /// Which server is trusted.
    pub trust: Trust,
    /// Tells the server that SCONE packets are welcome, and indicates it to the network.
    pub scone: bool,
    /// Longest time for everything.
    pub timeout: Duration,
    /// The client's port; 0 for any.
    pub port: u16,
    /// When and how the body is watched.
    pub watch: Watch,
}

impl Wish {
    /// Asks for the page at `uri` from a server that `trust` accepts. All else is the default of `flowstamp quic get`.
    #[must_use]
    pub fn new(uri: Uri, trust: Trust) -> Self {
        let watch = Watch::default();
        Self { uri, law: None, mtu: 1200, trust, scone: false, timeout: TIMEOUT, port: 0, watch }
    }
}

/// How a body is watched while it arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// Ends request, answer and body after this time, complete or not.
    pub lasts: Option<Duration>,
    /// Interval at which the bytes received are noted.
    pub every: Option<Duration>,
}

/// Bytes of a body that had arrived at some time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Arrived {
    /// Seconds since the request.
    pub seconds: f64,
    /// Bytes so far.
    pub bytes: u64,
}

/// A body that has arrived.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// HTTP's status; 0 if time ended before the answer.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// Whether the body arrived completely.
    pub complete: bool,
    /// Seconds from the request to its end.
    pub seconds: f64,
    /// Bytes over time, if [`Watch::every`] asks for that.
    pub arrived: Vec<Arrived>,
}

/// A download's result.
#[derive(Clone, Debug, Serialize)]
pub struct Fetched {
    /// The address of the page.
    pub url: String,
    /// HTTP's status; 0 if time ended before the answer.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// Whether the body is complete; false if the time ran out.
    pub complete: bool,
    /// Seconds from the request to the body's end.
    pub seconds: f64,
    /// Seconds of the handshake before.
    pub handshake_seconds: f64,
    /// The body's rate, bit/s.
    pub goodput_bps: f64,
    /// Stamp packets received.
    pub stamps: u64,
    /// SCONE packets received.
    pub scone_packets: u64,
    /// SCONE's advice at the end, bit/s; `None` if there was none.
    pub advice_bps: Option<u64>,
    /// Bytes over time, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<Arrived>,
    /// The server's account of its connection; `None` if it gave none.
    pub server: Option<Account>,
}

/// The longest time for a page, by default.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// The longest wait for a server's account. Without it, the client reports what it knows itself.
const ACCOUNT_WAIT: Duration = Duration::from_secs(5);

type Requests = h3::client::SendRequest<h3_quinn::OpenStreams, bytes::Bytes>;

/// A connection to a server, for any number of pages.
pub struct Session {
    client: Client,
    requests: Requests,
    /// The law that requests name.
    law: Option<String>,
    /// Tasks of the connection. They end with it.
    tasks: [JoinHandle<()>; 2],
    /// Time of the handshake.
    pub handshake: Duration,
}

impl Session {
    /// Connects to the server of the wish.
    ///
    /// # Errors
    ///
    /// One line that says what failed.
    pub async fn open(wish: &Wish) -> anyhow::Result<Self> {
        let (address, host) = resolve(&wish.uri).await?;
        let start = Instant::now();
        // Stamps are for the server's packets. The client sends hardly more than acks.
        let own =
            wish.law.as_ref().map(|(spec, _)| spec.clone()).filter(|spec| spec.header() == Header::Plain);
        let own = own.unwrap_or_default();
        let options =
            Options { mtu: wish.mtu, trust: wish.trust.clone(), scone: wish.scone, port: wish.port };
        let client = Client::connect(address, &host, &own, options).await;
        let client = client.map_err(|error| refused(&wish.uri, error))?;
        let handshake = start.elapsed();
        let (mut driver, requests) =
            h3::client::new(h3_quinn::Connection::new(client.connection.clone())).await?;
        let driver = tokio::spawn(async move { drop(driver.wait_idle().await) });
        let (connection, flow) = (client.connection.clone(), Arc::clone(&client.flow));
        let echoes = tokio::spawn(async move { flow.stamps.echo(&connection).await });
        let law = wish.law.as_ref().map(|(_, text)| text.clone());
        Ok(Self { client, requests, law, tasks: [driver, echoes], handshake })
    }

    /// Fetches a page of the server under the wish's law and writes its body to `out`.
    ///
    /// # Errors
    ///
    /// One line that says what failed.
    pub async fn fetch(
        &mut self,
        uri: &Uri,
        watch: Watch,
        out: &mut (dyn Write + Send),
    ) -> anyhow::Result<Body> {
        let mut request = Request::get(uri.clone());
        if let Some(text) = &self.law {
            request = request.header(LAW, text);
        }
        body(&mut self.requests, request.body(())?, watch, out).await
    }

    /// The server's account of this connection; `None` if the server is another program, or does not answer within 5 s.
    pub async fn account(&mut self, uri: &Uri) -> Option<Account> {
        let request = Request::get(sibling(uri, ACCOUNT)?).body(()).ok()?;
        let mut text = Vec::new();
        let watch = Watch { lasts: Some(ACCOUNT_WAIT), every: None };
        let told = body(&mut self.requests, request, watch, &mut text).await.ok()?;
        if told.status == 200 && told.complete { serde_json::from_slice(&text).ok() } else { None }
    }

    /// Stamp packets received, SCONE packets received, and SCONE's advice now in bit/s.
    #[must_use]
    pub fn heard(&self) -> (u64, u64, Option<u64>) {
        let flow = &self.client.flow;
        let advice = flow.scone.advice(Instant::now()).and_then(Signal::bits_per_sec);
        (flow.stamps.received(), flow.scone.received(), advice)
    }

    /// Ends the connection.
    pub async fn close(self) {
        let [driver, echoes] = self.tasks;
        echoes.abort();
        drop(self.requests);
        self.client.close().await;
        driver.abort();
    }
}

/// Fetches a page and writes its body to `out`.
///
/// # Errors
///
/// One line that says what failed.
pub async fn get(wish: &Wish, out: &mut (dyn Write + Send)) -> anyhow::Result<Fetched> {
    within(wish, fetch(wish, out)).await
}

/// Waits for `work`, but not longer than the wish allows.
///
/// # Errors
///
/// Those of `work`, or that it took too long.
pub async fn within<T>(wish: &Wish, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let done = tokio::time::timeout(wish.timeout, work).await;
    done.map_err(|_| {
        let seconds = wish.timeout.as_secs_f64();
        anyhow!("{}: not complete after {seconds} s; check that a server listens there, or set a longer --timeout", wish.uri)
    })?
}

async fn fetch(wish: &Wish, out: &mut (dyn Write + Send)) -> anyhow::Result<Fetched> {
    let mut session = Session::open(wish).await?;
    let Body { status, bytes, complete, seconds, arrived } =
        session.fetch(&wish.uri, wish.watch, out).await?;
    let server = session.account(&wish.uri).await;
    let handshake_seconds = session.handshake.as_secs_f64();
    let (stamps, scone_packets, advice_bps) = session.heard();
    session.close().await;
    let (url, goodput_bps) = (wish.uri.to_string(), bytes as f64 * 8.0 / seconds);
    Ok(Fetched {
        url,
        status,
        bytes,
        complete,
        seconds,
        handshake_seconds,
        goodput_bps,
        stamps,
        scone_packets,
        advice_bps,
        arrived,
        server,
    })
}

/// Returns the address of another path on the same server.
#[must_use]
pub fn sibling(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Says why there is no connection. Only the check of the fingerprint ends a handshake with this alert.
fn refused(uri: &Uri, error: anyhow::Error) -> anyhow::Error {
    let access_denied = quinn::TransportErrorCode::crypto(49);
    match error.downcast_ref() {
        Some(quinn::ConnectionError::TransportError(told)) if told.code == access_denied => {
            anyhow!(
                "{uri}: the server's certificate is not that of --fingerprint; use the one that `serve` prints"
            )
        }
        _ => error.context(format!("{uri}: no connection")),
    }
}

async fn resolve(uri: &Uri) -> anyhow::Result<(SocketAddr, String)> {
    ensure!(
        uri.scheme_str() == Some("https"),
        "{uri}: HTTP/3 needs https://, like https://127.0.0.1:4433/bytes/1000000"
    );
    let Some(host) = uri.host() else { bail!("{uri}: a host is needed") };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(443);
    let found =
        tokio::net::lookup_host((host, port)).await.with_context(|| format!("{host}: unknown host"))?;
    let address = found.into_iter().next().with_context(|| format!("{host}: no address"))?;
    Ok((address, host.to_owned()))
}

/// Fetches a body until it ends or the watch's time runs out.
async fn body(
    requests: &mut Requests,
    request: Request<()>,
    watch: Watch,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<Body> {
    let start = Instant::now();
    let mut body = Body::default();
    let whole = body.fetch(start, requests, request, watch.every, out);
    match watch.lasts {
        // The end of the stream's scope tells the server to stop.
        Some(lasts) => match tokio::time::timeout_at((start + lasts).into(), whole).await {
            Ok(done) => done?,
            Err(_) => body.note(start.elapsed(), watch.every),
        },
        None => whole.await?,
    }
    body.seconds = start.elapsed().as_secs_f64();
    Ok(body)
}

impl Body {
    /// Fetches the whole body. Dropping this before its end keeps the bytes that have arrived.
    async fn fetch(
        &mut self,
        start: Instant,
        requests: &mut Requests,
        request: Request<()>,
        every: Option<Duration>,
        out: &mut (dyn Write + Send),
    ) -> anyhow::Result<()> {
        let mut stream = requests.send_request(request).await?;
        stream.finish().await?;
        self.status = stream.recv_response().await?.status().as_u16();
        loop {
            let piece = stream.recv_data().await?;
            self.note(start.elapsed(), every);
            let Some(mut piece) = piece else {
                self.complete = true;
                return Ok(());
            };
            while piece.has_remaining() {
                let now = piece.chunk();
                out.write_all(now)?;
                self.bytes += now.len() as u64;
                let now = now.len();
                piece.advance(now);
            }
        }
    }

    /// Notes the bytes at each multiple of `every` that has passed. Call it before more bytes count.
    fn note(&mut self, passed: Duration, every: Option<Duration>) {
        let Some(every) = every.filter(|every| !every.is_zero()) else { return };
        loop {
            let next = every * (self.arrived.len() as u32 + 1);
            if next > passed {
                return;
            }
            self.arrived.push(Arrived { seconds: next.as_secs_f64(), bytes: self.bytes });
        }
    }
}

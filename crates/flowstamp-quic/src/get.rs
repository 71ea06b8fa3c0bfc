//! The HTTP/3 client.

use crate::endpoint::{Client, Options};
use crate::scone;
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
    /// Asks for SCONE packets, and indicates it to the network.
    pub scone: bool,
    /// Longest time for everything.
    pub timeout: Duration,
}

/// A download's result.
#[derive(Clone, Debug, Serialize)]
pub struct Fetched {
    /// The address of the page.
    pub url: String,
    /// HTTP's status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
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
    /// The server's account of its connection; `None` if the server is another program.
    pub server: Option<Account>,
}

type Requests = h3::client::SendRequest<h3_quinn::OpenStreams, bytes::Bytes>;

/// Fetches a page and writes its body to `out`.
///
/// # Errors
///
/// One line that says what failed.
pub async fn get(wish: &Wish, out: &mut (dyn Write + Send)) -> anyhow::Result<Fetched> {
    let fetched = tokio::time::timeout(wish.timeout, fetch(wish, out)).await;
    fetched.map_err(|_| {
        let seconds = wish.timeout.as_secs_f64();
        anyhow!("{}: not complete after {seconds} s; check that a server listens there, or set a longer --timeout", wish.uri)
    })?
}

async fn fetch(wish: &Wish, out: &mut (dyn Write + Send)) -> anyhow::Result<Fetched> {
    let (address, host) = resolve(&wish.uri).await?;
    let start = Instant::now();
    // Stamps are for the server's packets. The client sends hardly more than acks.
    let own = wish.law.as_ref().map(|(spec, _)| spec.clone()).filter(|spec| spec.header() == Header::Plain);
    let own = own.unwrap_or_default();
    let options = Options { mtu: wish.mtu, trust: wish.trust.clone(), scone: wish.scone };
    let client = Client::connect(address, &host, &own, options).await;
    let client = client.map_err(|error| refused(&wish.uri, error))?;
    let handshake = start.elapsed();
    let (mut driver, mut requests) =
        h3::client::new(h3_quinn::Connection::new(client.connection.clone())).await?;
    let driver = tokio::spawn(async move { driver.wait_idle().await });
    let (connection, flow) = (client.connection.clone(), Arc::clone(&client.flow));
    let echoes = tokio::spawn(async move { flow.stamps.echo(&connection).await });
    let start = Instant::now();
    let mut request = Request::get(wish.uri.clone());
    if let Some((_, text)) = &wish.law {
        request = request.header(LAW, text);
    }
    if wish.scone {
        request = request.header(scone::HEADER, "1");
    }
    let (status, bytes) = body(&mut requests, request.body(())?, out).await?;
    let seconds = start.elapsed().as_secs_f64();
    let server = account(&wish.uri, &mut requests).await;
    drop(requests);
    echoes.abort();
    let (stamps, scone) = (client.flow.stamps.received(), &client.flow.scone);
    let (scone_packets, advice) = (scone.received(), scone.advice(Instant::now()));
    client.close().await;
    driver.abort();
    Ok(Fetched {
        url: wish.uri.to_string(),
        status,
        bytes,
        seconds,
        handshake_seconds: handshake.as_secs_f64(),
        goodput_bps: bytes as f64 * 8.0 / seconds,
        stamps,
        scone_packets,
        advice_bps: advice.and_then(Signal::bits_per_sec),
        server,
    })
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

async fn body(
    requests: &mut Requests,
    request: Request<()>,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<(u16, u64)> {
    let mut stream = requests.send_request(request).await?;
    stream.finish().await?;
    let status = stream.recv_response().await?.status();
    let mut bytes = 0;
    while let Some(mut piece) = stream.recv_data().await? {
        while piece.has_remaining() {
            let now = piece.chunk();
            out.write_all(now)?;
            bytes += now.len() as u64;
            let now = now.len();
            piece.advance(now);
        }
    }
    Ok((status.as_u16(), bytes))
}

async fn account(uri: &Uri, requests: &mut Requests) -> Option<Account> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(ACCOUNT.parse().ok()?);
    let request = Request::get(Uri::from_parts(parts).ok()?).body(()).ok()?;
    let mut text = Vec::new();
    let (status, _) = body(requests, request, &mut text).await.ok()?;
    if status == 200 { serde_json::from_slice(&text).ok() } else { None }
}

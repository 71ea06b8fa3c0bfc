//! The HTTP/3 server: files of a folder, and bodies of any size.

use crate::controller::{self, Flow};
use crate::endpoint::Server;
use anyhow::Context;
use bytes::Bytes;
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_laws::units::Rate;
use flowstamp_wire::quic_stamp::Echo;
use h3::server::RequestStream;
use http::{Request, Response, StatusCode};
use quinn::Connection;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::io::AsyncReadExt;

/// The request's header that names the law of the answer.
pub const LAW: &str = "flowstamp-law";
/// The page that describes the connection on which it is asked for, as JSON ([`Account`]).
pub const ACCOUNT: &str = "/.flowstamp/connection";
/// Bodies of `/bytes/SIZE` are at most this long: 1 TB.
const MOST_BYTES: u64 = 1_000_000_000_000;
/// A rate that paces nothing, bit/s.
const UNPACED_BPS: f64 = 1e15;
/// A body is handed to quinn in pieces of this size, bytes.
const PIECE: usize = 64 << 10;

/// The content of a server.
#[derive(Clone, Debug)]
pub struct Site {
    /// The law of a connection whose client names none. [`controller::default_law`] reads one that needs no stamps.
    pub law: SenderSpec,
    /// Whether clients may name another law.
    pub clients_choose: bool,
    /// The folder of the files.
    pub root: Option<PathBuf>,
}

/// A server's account of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The law of the server's packets.
    pub law: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets lost. QUIC sends their content again in new packets.
    pub lost_packets: u64,
    /// Smoothed round-trip time, milliseconds.
    pub rtt_ms: f64,
    /// Shortest round-trip time, milliseconds.
    pub min_rtt_ms: f64,
    /// The law's window, packets.
    pub window_packets: f64,
    /// The law's rate, bit/s; `None` if it has none now.
    pub rate_bps: Option<f64>,
    /// The law found no router of its own at the bottleneck, and became a TCP.
    pub fell_back: bool,
}

impl Account {
    fn of(connection: &Connection, flow: &Flow) -> Self {
        let path = connection.stats().path;
        let mut sender = flow.lock();
        Self {
            rate_bps: sender.pace().map(Rate::bps).filter(|rate| *rate < UNPACED_BPS),
            fell_back: sender.has_left(),
            law: sender.spec().name().to_owned(),
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
            rtt_ms: sender.srtt().as_secs_f64() * 1e3,
            min_rtt_ms: sender.min_rtt().as_secs_f64() * 1e3,
            window_packets: controller::packets(&sender),
        }
    }
}

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Serves until the endpoint is closed.
///
/// # Errors
///
/// None: a connection's errors end that connection.
pub async fn serve(server: Arc<Server>, site: Arc<Site>) {
    while let Some(incoming) = server.incoming().await {
        let (server, site) = (Arc::clone(&server), Arc::clone(&site));
        tokio::spawn(async move {
            let peer = incoming.remote_address();
            if let Ok((connection, flow)) = server.accept(incoming, &site.law).await {
                let hears = tokio::spawn({
                    let (connection, flow) = (connection.clone(), Arc::clone(&flow));
                    async move { hear(&connection, &flow).await }
                });
                let _ = requests(&connection, &flow, &site).await;
                connection.closed().await;
                hears.abort();
                server.forget(peer, &flow);
            }
        });
    }
}

/// Hands echoes to a connection's law until the connection ends.
async fn hear(connection: &Connection, flow: &Flow) {
    while let Ok(frame) = connection.read_datagram().await {
        if let Some(echo) = Echo::parse(&frame) {
            flow.lock().hear(Instant::now(), echo);
        }
    }
}

async fn requests(connection: &Connection, flow: &Arc<Flow>, site: &Arc<Site>) -> anyhow::Result<()> {
    let own = h3_quinn::Connection::new(connection.clone());
    let mut h3: h3::server::Connection<_, Bytes> = h3::server::Connection::new(own).await?;
    while let Some(resolver) = h3.accept().await? {
        let (connection, flow, site) = (connection.clone(), Arc::clone(flow), Arc::clone(site));
        tokio::spawn(async move {
            if let Ok((request, mut stream)) = resolver.resolve_request().await {
                // The client sees an answer that ends early.
                let _ = answer(&request, &mut stream, &connection, &flow, &site).await;
            }
        });
    }
    Ok(())
}

async fn answer(
    request: &Request<()>,
    stream: &mut Stream,
    connection: &Connection,
    flow: &Arc<Flow>,
    site: &Site,
) -> anyhow::Result<()> {
    let path = request.uri().path();
    if path == ACCOUNT {
        let body = serde_json::to_vec(&Account::of(connection, flow))?;
        head(stream, StatusCode::OK, Some(body.len() as u64)).await?;
        stream.send_data(body.into()).await?;
        return Ok(stream.finish().await?);
    }
    if let Err(why) = choose(request, connection, flow, site) {
        return refuse(stream, StatusCode::BAD_REQUEST, why).await;
    }
    if let Some(size) = path.strip_prefix("/bytes/") {
        match size.parse() {
            Ok(size) if size <= MOST_BYTES => zeros(stream, size).await?,
            _ => {
                let why = format!("/bytes/{size}: a number of bytes up to {MOST_BYTES} is needed");
                return refuse(stream, StatusCode::BAD_REQUEST, why).await;
            }
        }
        return Ok(stream.finish().await?);
    }
    let Some(file) = site.root.as_deref().and_then(|root| within(root, path)) else {
        return refuse(stream, StatusCode::NOT_FOUND, format!("{path}: not found")).await;
    };
    send_file(stream, &file).await?;
    Ok(stream.finish().await?)
}

/// Starts the law that the request names. The request also asks for the stamps that the law needs.
fn choose(request: &Request<()>, connection: &Connection, flow: &Flow, site: &Site) -> Result<(), String> {
    let Some(named) = request.headers().get(LAW) else { return Ok(()) };
    let spec = controller::law(named.to_str().map_err(|_| format!("{LAW}: not a name"))?)?;
    let mut sender = flow.lock();
    let same = *sender.spec() == spec;
    if same && (spec.header() == Header::Plain || flow.stamps.wanted()) {
        return Ok(());
    }
    if !same && !site.clients_choose {
        return Err(format!("{LAW}: this server's law is {}; leave the header out", sender.spec().name()));
    }
    if spec.header() != Header::Plain && connection.max_datagram_size().is_none() {
        return Err(format!(
            "{LAW}: {} needs DATAGRAM frames (RFC 9221), which this client does not accept",
            spec.name()
        ));
    }
    sender.restart(&spec, flow.stamps.want(&spec));
    Ok(())
}

/// The file of a path below `root`, if there is one.
fn within(root: &Path, path: &str) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let file = root.join(path.trim_start_matches('/')).canonicalize().ok()?;
    (file.starts_with(&root) && file.is_file()).then_some(file)
}

async fn head(stream: &mut Stream, status: StatusCode, length: Option<u64>) -> anyhow::Result<()> {
    let mut response = Response::builder().status(status);
    if let Some(length) = length {
        response = response.header("content-length", length);
    }
    Ok(stream.send_response(response.body(())?).await?)
}

async fn refuse(stream: &mut Stream, status: StatusCode, why: String) -> anyhow::Result<()> {
    head(stream, status, Some(why.len() as u64)).await?;
    stream.send_data(why.into()).await?;
    Ok(stream.finish().await?)
}

async fn zeros(stream: &mut Stream, size: u64) -> anyhow::Result<()> {
    head(stream, StatusCode::OK, Some(size)).await?;
    let piece = Bytes::from_static(&[0; PIECE]);
    let mut left = size;
    while left > 0 {
        let now = left.min(PIECE as u64);
        stream.send_data(piece.slice(..now as usize)).await?;
        left -= now;
    }
    Ok(())
}

async fn send_file(stream: &mut Stream, path: &Path) -> anyhow::Result<()> {
    let mut file = tokio::fs::File::open(path).await.with_context(|| path.display().to_string())?;
    head(stream, StatusCode::OK, Some(file.metadata().await?.len())).await?;
    loop {
        let mut piece = bytes::BytesMut::with_capacity(PIECE);
        if file.read_buf(&mut piece).await? == 0 {
            return Ok(());
        }
        stream.send_data(piece.freeze()).await?;
    }
}

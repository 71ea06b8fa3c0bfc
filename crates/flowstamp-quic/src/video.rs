//! A video client over HTTP/3. `flowstamp_laws::video` chooses each segment, and here its bytes are fetched as `/bytes/SIZE`.
//!
//! The network's advice includes QUIC's headers, and the client's ladder does not. Their share comes off first.

use crate::get::{Arrived, Session, Watch, Wish, sibling};
use crate::serve::Account;
use anyhow::{Context, ensure};
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_laws::video::{Action, Client, Params, Segment, Viewed};
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// Bytes of a full datagram that are not media: QUIC's short header and tag, and the headers of STREAM and DATA frames.
const HEADERS: f64 = 40.0;

/// A segment that has arrived.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Its number, from 0.
    pub segment: u32,
    /// Seconds from the client's begin to its request.
    pub requested_seconds: f64,
    /// Bitrate of its media, bit/s.
    pub bitrate_bps: f64,
    /// Its bytes.
    pub bytes: u64,
    /// Seconds from its request to its last byte.
    pub seconds: f64,
    /// Media in the buffer after it, seconds.
    pub buffer_seconds: f64,
    /// SCONE's advice at its request, bit/s; `None` without any.
    pub advice_bps: Option<u64>,
}

/// A video's result.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// The address of the server.
    pub url: String,
    /// HTTP's status of the last segment.
    pub status: u16,
    /// Bytes of media received.
    pub bytes: u64,
    /// Whether all segments have arrived.
    pub complete: bool,
    /// Seconds from the client's begin to its end, when the last segment has arrived.
    pub seconds: f64,
    /// Seconds of the handshake before.
    pub handshake_seconds: f64,
    /// Seconds from the client's begin to the first picture.
    pub startup_seconds: f64,
    /// Number of times that playback stood still after it had started.
    pub stalls: u32,
    /// Seconds for which it stood still.
    pub stalled_seconds: f64,
    /// Segments whose bitrate differs from that of the one before.
    pub switches: u32,
    /// Mean bitrate of the media, bit/s; `None` without a segment.
    pub mean_bitrate_bps: Option<f64>,
    /// Stamp packets received.
    pub stamps: u64,
    /// SCONE packets received.
    pub scone_packets: u64,
    /// SCONE's advice at the end, bit/s; `None` if there was none.
    pub advice_bps: Option<u64>,
    /// The segments in order.
    pub segments: Vec<Row>,
    /// Bytes over time: at each request, and at each last byte.
    pub arrived: Vec<Arrived>,
    /// The server's account of its connection; `None` if it gave none.
    pub server: Option<Account>,
}

/// Watches a video, and calls `show` after each segment. `wish` names the server, and [`Watch::lasts`] ends the client before
/// the video's end.
///
/// # Errors
///
/// One line that says what failed.
pub async fn watch(
    wish: &Wish,
    params: &Params,
    show: impl FnMut(&Row) -> io::Result<()>,
) -> anyhow::Result<Watched> {
    let mut session = Session::open(wish).await?;
    let mut player = Player {
        wish,
        share: 1.0 - HEADERS / f64::from(wish.mtu),
        begin: Instant::now(),
        client: Client::new(params.clone(), Time::ZERO),
        rows: Vec::new(),
        arrived: Vec::new(),
        bytes: 0,
        status: 0,
    };
    let complete = player.play(&mut session, show).await?;
    let (now, seconds) = (player.now(), player.begin.elapsed().as_secs_f64());
    let viewed: Viewed = player.client.viewed(now);
    let server = session.account(&wish.uri).await;
    let (stamps, scone_packets, advice_bps) = session.heard();
    let handshake_seconds = session.handshake.as_secs_f64();
    session.close().await;
    Ok(Watched {
        url: wish.uri.to_string(),
        status: player.status,
        bytes: player.bytes,
        complete,
        seconds,
        handshake_seconds,
        startup_seconds: viewed.startup.as_secs_f64(),
        stalls: viewed.stalls,
        stalled_seconds: viewed.stalled.as_secs_f64(),
        switches: viewed.switches,
        mean_bitrate_bps: viewed.mean_bitrate().map(Rate::bps),
        stamps,
        scone_packets,
        advice_bps,
        segments: player.rows,
        arrived: player.arrived,
        server,
    })
}

struct Player<'a> {
    wish: &'a Wish,
    /// Share of the network's rate that is media.
    share: f64,
    begin: Instant,
    client: Client,
    rows: Vec<Row>,
    arrived: Vec<Arrived>,
    bytes: u64,
    status: u16,
}

impl Player<'_> {
    /// The client's time.
    fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// The time left; `None` if there is no end, zero after it.
    fn left(&self) -> Option<Duration> {
        self.wish.watch.lasts.map(|lasts| lasts.saturating_sub(self.begin.elapsed()))
    }

    /// Fetches segments until the video's end, or the client's. Returns whether it was the video's.
    async fn play(
        &mut self,
        session: &mut Session,
        mut show: impl FnMut(&Row) -> io::Result<()>,
    ) -> anyhow::Result<bool> {
        loop {
            if self.left().is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            let (_, _, advice) = session.heard();
            let now = self.now();
            self.client.advised(now, advice.map(|bps| Rate::from_bps(bps as f64 * self.share)));
            match self.client.poll(now) {
                Action::Done => return Ok(true),
                Action::Await => {}
                Action::Wait(until) => {
                    let wait = Duration::from_nanos(until.saturating_sub(self.now()).as_ps() / 1000 + 1);
                    tokio::time::sleep(self.left().map_or(wait, |left| left.min(wait))).await;
                }
                Action::Fetch(segment) => {
                    let Some(row) = self.fetch(session, segment, advice).await? else { return Ok(false) };
                    show(&row)?;
                    self.rows.push(row);
                }
            }
        }
    }

    /// Fetches a segment; `None` if the client's end comes first.
    async fn fetch(
        &mut self,
        session: &mut Session,
        segment: Segment,
        advice_bps: Option<u64>,
    ) -> anyhow::Result<Option<Row>> {
        let requested = self.note();
        let path = format!("/bytes/{}", segment.bytes.get());
        let uri = sibling(&self.wish.uri, &path).with_context(|| format!("{}: no server", self.wish.uri))?;
        let watch = Watch { lasts: self.left(), every: None };
        let body = session.fetch(&uri, watch, &mut io::sink()).await?;
        if body.status == 0 {
            self.note();
            return Ok(None);
        }
        ensure!(
            body.status == 200,
            "{uri}: the server answers with status {}; give the address of one that has /bytes/SIZE, such as `flowstamp quic serve`",
            body.status
        );
        self.status = body.status;
        self.bytes += body.bytes;
        self.note();
        if !body.complete {
            return Ok(None);
        }
        ensure!(
            body.bytes == segment.bytes.get(),
            "{uri}: the server sent {} bytes, and {} were asked for; give the address of one that has /bytes/SIZE, such as `flowstamp quic serve`",
            body.bytes,
            segment.bytes.get()
        );
        let now = self.now();
        self.client.arrived(now, Bytes::new(body.bytes));
        Ok(Some(Row {
            segment: segment.number,
            requested_seconds: requested,
            bitrate_bps: segment.bitrate.bps(),
            bytes: body.bytes,
            seconds: body.seconds,
            buffer_seconds: self.client.buffer(now).as_secs_f64(),
            advice_bps,
        }))
    }

    /// Notes the bytes so far. Returns the time.
    fn note(&mut self) -> f64 {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.arrived.push(Arrived { seconds, bytes: self.bytes });
        seconds
    }
}

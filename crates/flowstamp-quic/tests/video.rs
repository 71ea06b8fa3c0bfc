//! A video over the path in user space, whose router advises 300 kb/s on a link that carries more.
//!
//! Sockets and time are real, so no test here needs a throughput: segments are small, and no client chooses by what it measures.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use bytes::Bytes;
use common::{fetch_until, start};
use flowstamp_laws::registry::{RouterSpec, SenderSpec};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::video::{Advice, Choice, Params};
use flowstamp_quic::endpoint::Server;
use flowstamp_quic::get::{Session, Watch, Wish, within};
use flowstamp_quic::path::{Path, Spec};
use flowstamp_quic::tls::Trust;
use flowstamp_quic::video::{Watched, watch};
use flowstamp_wire::scone::Signal;
use std::net::SocketAddr;
use std::time::Duration;

/// The highest signal up to 300 kb/s, bit/s.
const ADVICE: u64 = 281_838;

fn path(to: SocketAddr) -> Path {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (rate, delay) = (Rate::from_mbps(50.0), Time::from_millis(5));
    let scone = Signal::at_most(300_000);
    Path::start(&Spec { listen, to, rate, delay, buffer: None, router: RouterSpec::default(), scone })
        .unwrap()
}

fn wish(address: SocketAddr, watch: Watch) -> Wish {
    let uri = format!("https://{address}/").parse().unwrap();
    Wish { scone: true, timeout: Duration::from_secs(60), watch, ..Wish::new(uri, Trust::Anybody) }
}

/// Ten segments of a second.
fn ten(more: Params) -> Params {
    let second = Time::from_secs(1);
    Params { segment: second, startup: second, length: Some(second * 10), ..more }
}

/// Three bitrates, of which the advice allows two.
fn small(choice: Choice, advice: Advice) -> Params {
    let ladder = [0.1, 0.2, 0.5].map(Rate::from_mbps).to_vec();
    ten(Params { ladder, choice, advice, ..Params::default() })
}

async fn watched(address: SocketAddr, params: &Params, lasts: Option<Duration>) -> anyhow::Result<Watched> {
    let wish = wish(address, Watch { lasts, every: None });
    within(&wish, watch(&wish, params, |_| Ok(()))).await
}

/// Starts a server of HTTP/3 that answers each request with these bytes, or never.
fn start_other(answer: Option<&'static [u8]>) -> SocketAddr {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), 1200).unwrap();
    let address = server.address().unwrap();
    tokio::spawn(async move {
        let incoming = server.incoming().await.unwrap();
        let (connection, _) = server.accept(incoming, &SenderSpec::default()).await.unwrap();
        let own = h3_quinn::Connection::new(connection);
        let mut h3: h3::server::Connection<_, Bytes> = h3::server::Connection::new(own).await.unwrap();
        let mut held = Vec::new();
        while let Ok(Some(resolver)) = h3.accept().await {
            let (_, mut stream) = resolver.resolve_request().await.unwrap();
            if let Some(bytes) = answer {
                stream.send_response(http::Response::new(())).await.unwrap();
                stream.send_data(Bytes::from_static(bytes)).await.unwrap();
                stream.finish().await.unwrap();
            }
            held.push(stream);
        }
    });
    address
}

/// A client that follows the advice takes at most that once it knows it, and one that ignores it takes more.
#[tokio::test]
async fn a_client_follows_the_networks_advice_or_ignores_it() {
    let (server, _) = start(false, None);
    let path = path(server);
    let follows = watched(path.address(), &small(Choice::Advice, Advice::Follow), None).await.unwrap();
    assert!(follows.complete && follows.segments.len() == 10, "{follows:?}");
    assert_eq!((follows.advice_bps, follows.status), (Some(ADVICE), 200));
    // The first segment is fetched before there is advice. 200 kb/s is the ladder's highest bitrate below the advice.
    assert_eq!((follows.segments[0].advice_bps, follows.segments[0].bitrate_bps), (None, 1e5));
    assert_eq!((follows.segments[9].advice_bps, follows.segments[9].bitrate_bps), (Some(ADVICE), 2e5));
    for row in &follows.segments {
        let wanted = if row.advice_bps.is_some() { 2e5 } else { 1e5 };
        assert_eq!(row.bitrate_bps, wanted, "{follows:?}");
    }
    assert_eq!(follows.bytes, follows.segments.iter().map(|row| row.bytes).sum::<u64>());
    // With any media in its buffer, this client takes the highest bitrate.
    let any = Params { reservoir: Time::ZERO, cushion: Time::from_nanos(1), ..Params::default() };
    let by_buffer = |advice| Params {
        ladder: small(Choice::Buffer, advice).ladder,
        choice: Choice::Buffer,
        advice,
        ..ten(any.clone())
    };
    let ignores = watched(path.address(), &by_buffer(Advice::Ignore), None).await.unwrap();
    assert_eq!(ignores.advice_bps, Some(ADVICE), "it is told all the same");
    assert!(ignores.segments.iter().any(|row| row.advice_bps.is_some() && row.bitrate_bps == 5e5));
    let obeys = watched(path.address(), &by_buffer(Advice::Follow), None).await.unwrap();
    let over = |watched: &Watched| {
        watched.segments.iter().any(|row| row.advice_bps.is_some() && row.bitrate_bps > ADVICE as f64)
    };
    assert!(obeys.segments.iter().any(|row| row.advice_bps.is_some()), "{obeys:?}");
    assert!(!over(&obeys), "{obeys:?}");
}

/// A page of the right name and of another size is no segment.
#[tokio::test]
async fn a_segment_of_another_size_is_refused() {
    let server = start_other(Some(b"Welcome!"));
    let told = watched(server, &small(Choice::Rate, Advice::Follow), None).await.unwrap_err().to_string();
    assert!(
        told.contains("/bytes/12500: the server sent 8 bytes, and 12500 were asked for; give the address"),
        "{told}"
    );
}

/// Time ends a download without an answer, too. Its samples go up to that time.
#[tokio::test]
async fn a_download_may_end_before_the_answer() {
    let watch = Watch { lasts: Some(Duration::from_millis(200)), every: Some(Duration::from_millis(50)) };
    let wish = wish(start_other(None), watch);
    let mut session = within(&wish, Session::open(&wish)).await.unwrap();
    let fetch = async { session.fetch(&wish.uri, watch, &mut std::io::sink()).await };
    let body = within(&wish, fetch).await.unwrap();
    assert_eq!((body.status, body.bytes, body.complete), (0, 0, false));
    assert!(body.seconds >= 0.2 && body.arrived.len() >= 4, "{body:?}");
}

/// The client's end comes before the video's, in the middle of a segment too.
#[tokio::test]
async fn a_client_may_end_before_the_video() {
    let (server, _) = start(false, None);
    let path = path(server);
    let params = ten(Params { advice: Advice::Ignore, ..Params::default() });
    let cut = watched(path.address(), &params, Some(Duration::from_millis(150))).await.unwrap();
    assert!(!cut.complete && cut.segments.len() < 10, "{cut:?}");
    let rises = |pair: &[flowstamp_quic::get::Arrived]| {
        pair[0].seconds <= pair[1].seconds && pair[0].bytes <= pair[1].bytes
    };
    assert!(cut.arrived.windows(2).all(rises), "{:?}", cut.arrived);
}

/// A download that ends by time reports the bytes so far, and their course.
#[tokio::test]
async fn a_download_may_end_by_time() {
    let (server, _) = start(false, None);
    let path = path(server);
    let url = format!("https://{}/bytes/1000000000000", path.address());
    let (lasts, every) = (Duration::from_secs(2), Duration::from_millis(250));
    let fetched = fetch_until(&url, Watch { lasts: Some(lasts), every: Some(every) }).await.unwrap();
    assert!(!fetched.complete && fetched.bytes > 0 && fetched.seconds >= 2.0, "{fetched:?}");
    let is_due = |(n, at): (usize, f64)| (at - 0.25 * (n + 1) as f64).abs() < 1e-9;
    assert!(fetched.arrived.iter().map(|sample| sample.seconds).enumerate().all(is_due), "{fetched:?}");
    // Samples go up to the end.
    assert!(fetched.arrived.len() >= 8, "{fetched:?}");
    assert!(fetched.arrived.is_sorted_by_key(|sample| sample.bytes), "{fetched:?}");
    // The connection is as good as before: the server's account came behind the body.
    assert!(fetched.server.is_some());
}

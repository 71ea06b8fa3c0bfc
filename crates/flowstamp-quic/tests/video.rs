//! A video over the path in user space, whose router advises 3 Mb/s on a link that carries more.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{fetch_until, start};
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::video::{Advice, Params};
use flowstamp_quic::get::{Watch, Wish};
use flowstamp_quic::path::{Path, Spec};
use flowstamp_quic::tls::Trust;
use flowstamp_quic::video::{Watched, watch};
use flowstamp_wire::scone::Signal;
use std::net::SocketAddr;
use std::time::Duration;

/// The highest signal up to 3 Mb/s, bit/s.
const ADVICE: u64 = 2_818_382;

fn path(to: SocketAddr) -> Path {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (rate, delay) = (Rate::from_mbps(50.0), Time::from_millis(5));
    let scone = Signal::at_most(3_000_000);
    Path::start(&Spec { listen, to, rate, delay, buffer: None, router: RouterSpec::default(), scone })
        .unwrap()
}

/// Watches ten segments of a second.
async fn watched(address: SocketAddr, advice: Advice, lasts: Option<Duration>) -> Watched {
    let wish = Wish {
        uri: format!("https://{address}/").parse().unwrap(),
        law: None,
        mtu: 1200,
        trust: Trust::Anybody,
        scone: true,
        timeout: Duration::from_secs(60),
        port: 0,
        watch: Watch { lasts, every: None },
    };
    let second = Time::from_secs(1);
    let params =
        Params { segment: second, startup: second, length: Some(second * 10), advice, ..Params::default() };
    watch(&wish, &params, |_| Ok(())).await.unwrap()
}

/// Segments after the first one know the advice. A client that follows it takes at most that, and one that ignores it takes
/// more, because the link carries it.
#[tokio::test]
async fn a_client_follows_the_networks_advice_or_ignores_it() {
    let (server, _) = start(false, None);
    let path = path(server);
    let follows = watched(path.address(), Advice::Follow, None).await;
    assert!(follows.complete && follows.segments.len() == 10, "{follows:?}");
    assert_eq!((follows.advice_bps, follows.status), (Some(ADVICE), 200));
    let after: Vec<_> = follows.segments.iter().filter(|row| row.advice_bps.is_some()).collect();
    assert!(after.len() >= 8, "{follows:?}");
    assert!(after.iter().all(|row| row.bitrate_bps <= ADVICE as f64), "{follows:?}");
    // 2.35 Mb/s is the ladder's highest below the advice, and the link carries it.
    assert!(after.iter().any(|row| row.bitrate_bps == 2.35e6), "{follows:?}");
    assert_eq!(follows.bytes, follows.segments.iter().map(|row| row.bytes).sum::<u64>());
    let ignores = watched(path.address(), Advice::Ignore, None).await;
    assert_eq!(ignores.advice_bps, Some(ADVICE), "it is told all the same");
    assert!(ignores.segments.iter().any(|row| row.bitrate_bps > ADVICE as f64), "{ignores:?}");
    assert!(ignores.mean_bitrate_bps > follows.mean_bitrate_bps, "{ignores:?}");
}

/// The client's end comes before the video's, in the middle of a segment too.
#[tokio::test]
async fn a_client_may_end_before_the_video() {
    let (server, _) = start(false, None);
    let path = path(server);
    let cut = watched(path.address(), Advice::Ignore, Some(Duration::from_millis(150))).await;
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
    let (lasts, every) = (Duration::from_millis(400), Duration::from_millis(50));
    let fetched = fetch_until(&url, Watch { lasts: Some(lasts), every: Some(every) }).await.unwrap();
    assert!(!fetched.complete && fetched.bytes > 0 && fetched.seconds >= 0.4, "{fetched:?}");
    let is_due = |(n, at): (usize, f64)| (at - 0.05 * (n + 1) as f64).abs() < 1e-9;
    assert!(fetched.arrived.iter().map(|sample| sample.seconds).enumerate().all(is_due), "{fetched:?}");
    let last = fetched.arrived.last().unwrap();
    assert!((0..=fetched.bytes).contains(&last.bytes), "{fetched:?}");
    // The connection is as good as before: the server's account came behind the body.
    assert!(fetched.server.is_some());
}

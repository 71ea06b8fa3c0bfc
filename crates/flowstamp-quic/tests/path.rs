//! Laws over the path in user space: 10 Mb/s with a round trip of 20 ms, whose router has the law of RCP or XCP, or none.
//!
//! The path keeps real time, so numbers vary by what the machine does besides. The short tests assert only what a busy
//! machine keeps too.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{fetch, start};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_quic::controller;
use flowstamp_quic::path::{Path, Spec};
use flowstamp_quic::tls::Trust;
use flowstamp_wire::scone::Signal;
use std::net::SocketAddr;

const RATE: f64 = 10e6;

fn path(to: SocketAddr, router: &str) -> Path {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (rate, delay) = (Rate::from_bps(RATE), Time::from_millis(10));
    let router = controller::router(router).unwrap();
    Path::start(&Spec { listen, to, rate, delay, buffer: None, router, scone: Signal::at_most(5_000_000) })
        .unwrap()
}

/// Stamps cross the path, and the flow obeys their rate: it never fills the buffer.
#[tokio::test]
async fn rcp_obeys_the_stamps_of_its_router() {
    let (server, _) = start(false, None);
    let path = path(server, "rcp");
    let url = format!("https://{}/bytes/300000", path.address());
    let (fetched, _) = fetch(&url, Some("rcp"), Trust::Anybody).await.unwrap();
    let counts = path.counts();
    assert_eq!((fetched.bytes, counts.dropped), (300_000, 0), "{fetched:?}");
    assert!(fetched.stamps > 200 && counts.stamped >= fetched.stamps, "{counts:?}, {fetched:?}");
    // A flow that ignored the stamps would fill the buffer, 25 kB.
    assert!(counts.longest_queue_bytes < 20_000, "{counts:?}");
}

/// One flow gets the link, and the router's rate keeps the queue short: nothing is lost.
#[tokio::test]
#[ignore = "long"]
async fn rcp_fills_the_link_without_a_loss() {
    let (server, _) = start(false, None);
    let path = path(server, "rcp");
    let url = format!("https://{}/bytes/3000000", path.address());
    let (fetched, _) = fetch(&url, Some("rcp"), Trust::Anybody).await.unwrap();
    let account = fetched.server.clone().unwrap();
    assert_eq!((account.lost_packets, account.fell_back), (0, false), "{account:?}");
    let rate = account.rate_bps.unwrap();
    assert!(rate > 0.9 * RATE && rate <= RATE, "the router's rate: {rate}");
    let counts = path.counts();
    // The buffer holds a round trip, 25 kB.
    assert!(counts.dropped == 0 && counts.longest_queue_bytes < 20_000, "{counts:?}");
    assert!(fetched.goodput_bps > 0.7 * RATE, "{}", fetched.goodput_bps);
}

/// Advice reaches a client that asks, and no other. 4.47 Mb/s is the highest signal up to 5 Mb/s.
#[tokio::test]
async fn scone_advice_reaches_the_client() {
    let (server, _) = start(false, None);
    let path = path(server, "none");
    let url = format!("https://{}/bytes/50000", path.address());
    let (asked, _) = fetch(&format!("{url}?scone"), None, Trust::Anybody).await.unwrap();
    assert_eq!((asked.bytes, asked.advice_bps), (50_000, Some(4_466_835)), "{asked:?}");
    assert!(asked.scone_packets >= 8 && path.counts().advised >= asked.scone_packets, "{asked:?}");
    let (not_asked, _) = fetch(&url, None, Trust::Anybody).await.unwrap();
    assert_eq!((not_asked.bytes, not_asked.scone_packets, not_asked.advice_bps), (50_000, 0, None));
}

/// Where no router stamps, the flow becomes a TCP instead of sending without limit.
#[tokio::test]
async fn without_a_router_rcp_falls_back() {
    let (server, _) = start(false, None);
    let path = path(server, "none");
    let url = format!("https://{}/bytes/200000", path.address());
    let (fetched, _) = fetch(&url, Some("rcp"), Trust::Anybody).await.unwrap();
    let account = fetched.server.clone().unwrap();
    assert_eq!(
        (fetched.bytes, account.law.as_str(), account.fell_back),
        (200_000, "rcp", true),
        "{fetched:?}"
    );
    assert_eq!(path.counts().stamped, 0, "a path without a law");
}

/// Window laws and BBR over the same path, with a drop-tail buffer of a round trip.
#[tokio::test]
#[ignore = "long"]
async fn every_law_carries_a_file_over_the_path() {
    let (server, _) = start(false, None);
    for law in SenderSpec::names_over_quic() {
        let path = path(server, if ["rcp", "xcp"].contains(&law) { law } else { "none" });
        let url = format!("https://{}/bytes/2000000", path.address());
        let (fetched, _) = fetch(&url, Some(law), Trust::Anybody).await.unwrap();
        assert_eq!(fetched.bytes, 2_000_000, "{law}");
        // Slow start, at most half a second, and one recovery leave at least half of 10 Mb/s. Swift's target delay is
        // for data centres: it may leave more idle.
        let least = if law == "swift" { 0.05 } else { 0.5 };
        assert!(fetched.goodput_bps > least * RATE, "{law}: {} bit/s", fetched.goodput_bps);
    }
}

//! HTTP/3 over loopback: a server and a client in this process.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{fetch, start, start_with};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_quic::controller;
use flowstamp_quic::endpoint::Server;
use flowstamp_quic::tls::{self, Trust};
use quinn::crypto::rustls::QuicClientConfig;
use std::future::IntoFuture;
use std::sync::Arc;

#[tokio::test]
async fn every_law_downloads() {
    let (address, fingerprint) = start(false, None);
    for law in SenderSpec::names_over_quic() {
        let (fetched, body) = fetch(
            &format!("https://{address}/bytes/100001"),
            Some(law),
            Trust::Fingerprint(fingerprint.clone()),
        )
        .await
        .unwrap();
        assert_eq!((fetched.status, fetched.bytes, body.len()), (200, 100_001, 100_001), "{law}");
        let server = fetched.server.expect("a server of ours");
        assert_eq!(server.law, law);
        assert!(server.sent_packets >= 100_001 / 1200 && server.min_rtt_ms > 0.0, "{server:?}");
    }
}

#[tokio::test]
async fn servers_are_known_by_their_fingerprint() {
    let (address, _) = start(false, None);
    let refused =
        fetch(&format!("https://{address}/"), None, Trust::Fingerprint("00".repeat(32))).await.unwrap_err();
    assert!(format!("{refused:#}").contains("use the one that `serve` prints"), "{refused:#}");
    let (fetched, _) = fetch(&format!("https://{address}/"), None, Trust::Anybody).await.unwrap();
    assert_eq!(fetched.status, 404);
}

#[tokio::test]
async fn a_server_may_keep_its_law() {
    let (address, _) = start(true, None);
    let (fetched, body) =
        fetch(&format!("https://{address}/bytes/10"), Some("bbr"), Trust::Anybody).await.unwrap();
    assert_eq!(fetched.status, 400);
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "flowstamp-law: this server's law is cubic; leave the header out"
    );
}

/// A connection that starts with RCP has no stamps until its client asks: naming the same law must ask for them.
#[tokio::test]
async fn naming_the_law_of_the_connection_asks_for_stamps() {
    for fixed in [false, true] {
        let (address, _) = start_with("rcp", fixed, None);
        let url = format!("https://{address}/bytes/100000");
        let (fetched, _) = fetch(&url, Some("rcp"), Trust::Anybody).await.unwrap();
        assert_eq!((fetched.status, fetched.bytes), (200, 100_000));
        // The first ones are all that a flow sends whose path has no router of RCP's.
        assert!(fetched.stamps > 0, "{fetched:?}");
    }
}

/// Anybody can send a first packet from a client's address. It must not replace the flow of the client, which has to
/// show first that the address is its own.
#[tokio::test]
async fn an_unproved_address_does_not_replace_a_flow() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), 1200).unwrap();
    let to = server.address().unwrap();
    let law = controller::law("cubic").unwrap();
    let client = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let plain = QuicClientConfig::try_from(tls::client(Trust::Anybody).unwrap()).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(plain));
    let connect = || client.connect_with(config.clone(), to, "localhost").unwrap();
    let accept = async || {
        let incoming = server.incoming().await.unwrap();
        let proved = incoming.remote_address_validated();
        (proved, server.accept(incoming, &law).await)
    };
    let (first, (proved, accepted)) = tokio::join!(connect(), accept());
    let (_first, _connection) = (first.unwrap(), accepted.unwrap());
    assert!(!proved);
    let second = tokio::spawn(connect().into_future());
    let (proved, accepted) = accept().await;
    assert!(!proved && accepted.is_err(), "a second connection from the same address");
    let (proved, accepted) = accept().await;
    assert!(proved && accepted.is_ok(), "the client repeats it with the token");
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn files_are_those_of_the_folder() {
    let folder = std::env::temp_dir().join(format!("flowstamp-quic-{}", std::process::id()));
    let root = folder.join("root");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("page"), b"inside").unwrap();
    std::fs::write(folder.join("secret"), b"outside").unwrap();
    let (address, _) = start(false, Some(root));
    let (fetched, body) = fetch(&format!("https://{address}/page"), None, Trust::Anybody).await.unwrap();
    assert_eq!((fetched.status, &body[..]), (200, &b"inside"[..]));
    for path in ["/../secret", "/%2e%2e/secret", "/nothing", "/", "/bytes/x", "/bytes/99999999999999"] {
        let (fetched, body) = fetch(&format!("https://{address}{path}"), None, Trust::Anybody).await.unwrap();
        assert!(fetched.status >= 400 && !body.ends_with(b"outside"), "{path}: {}", fetched.status);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

//! HTTP/3 over loopback: a server and a client in this process.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use flowstamp_quic::controller;
use flowstamp_quic::endpoint::Server;
use flowstamp_quic::get::{Fetched, Wish, get};
use flowstamp_quic::serve::{Site, serve};
use flowstamp_quic::tls::Trust;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Starts a server. Returns its address and its certificate's fingerprint.
fn start(fixed: bool, root: Option<PathBuf>) -> (String, String) {
    let server = Arc::new(Server::bind("127.0.0.1:0".parse().unwrap(), 1200).unwrap());
    let told = (format!("https://{}", server.address().unwrap()), server.fingerprint().to_owned());
    let site = Site { law: controller::law("cubic").unwrap(), clients_choose: !fixed, root };
    tokio::spawn(serve(server, Arc::new(site)));
    told
}

async fn fetch(url: &str, law: Option<&str>, trust: Trust) -> anyhow::Result<(Fetched, Vec<u8>)> {
    let law = law.map(|name| (controller::law(name).unwrap(), name.to_owned()));
    let wish = Wish { uri: url.parse()?, law, mtu: 1200, trust, timeout: Duration::from_secs(20) };
    let mut body = Vec::new();
    Ok((get(&wish, &mut body).await?, body))
}

#[tokio::test]
async fn every_law_downloads() {
    let (url, fingerprint) = start(false, None);
    for law in controller::names() {
        let (fetched, body) =
            fetch(&format!("{url}/bytes/200001"), Some(law), Trust::Fingerprint(fingerprint.clone()))
                .await
                .unwrap();
        assert_eq!((fetched.status, fetched.bytes, body.len()), (200, 200_001, 200_001), "{law}");
        let server = fetched.server.expect("a server of ours");
        assert_eq!(server.law, law);
        assert!(server.sent_packets >= 200_001 / 1200 && server.min_rtt_ms > 0.0, "{server:?}");
    }
}

#[tokio::test]
async fn servers_are_known_by_their_fingerprint() {
    let (url, _) = start(false, None);
    let refused = fetch(&url, None, Trust::Fingerprint("00".repeat(32))).await.unwrap_err();
    assert!(format!("{refused:#}").contains("certificate"), "{refused:#}");
    let (fetched, _) = fetch(&url, None, Trust::Anybody).await.unwrap();
    assert_eq!(fetched.status, 404);
}

#[tokio::test]
async fn a_server_may_keep_its_law() {
    let (url, _) = start(true, None);
    let (fetched, body) = fetch(&format!("{url}/bytes/10"), Some("bbr"), Trust::Anybody).await.unwrap();
    assert_eq!(fetched.status, 400);
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "flowstamp-law: this server's law is cubic; leave the header out"
    );
}

#[tokio::test]
async fn files_are_those_of_the_folder() {
    let folder = std::env::temp_dir().join(format!("flowstamp-quic-{}", std::process::id()));
    let root = folder.join("root");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("page"), b"inside").unwrap();
    std::fs::write(folder.join("secret"), b"outside").unwrap();
    let (url, _) = start(false, Some(root));
    let (fetched, body) = fetch(&format!("{url}/page"), None, Trust::Anybody).await.unwrap();
    assert_eq!((fetched.status, &body[..]), (200, &b"inside"[..]));
    for path in ["/../secret", "/%2e%2e/secret", "/nothing", "/", "/bytes/x", "/bytes/99999999999999"] {
        let (fetched, body) = fetch(&format!("{url}{path}"), None, Trust::Anybody).await.unwrap();
        assert!(fetched.status >= 400 && !body.ends_with(b"outside"), "{path}: {}", fetched.status);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

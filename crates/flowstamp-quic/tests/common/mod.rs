//! A server and a client in this process.

use flowstamp_quic::controller;
use flowstamp_quic::endpoint::Server;
use flowstamp_quic::get::{Fetched, Watch, Wish, get};
use flowstamp_quic::serve::{Site, serve};
use flowstamp_quic::tls::Trust;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Starts a server. Returns its address and its certificate's fingerprint.
pub fn start(fixed: bool, root: Option<PathBuf>) -> (SocketAddr, String) {
    start_with("cubic", fixed, root)
}

/// Starts a server whose connections start with `law`.
pub fn start_with(law: &str, fixed: bool, root: Option<PathBuf>) -> (SocketAddr, String) {
    let server = Arc::new(Server::bind("127.0.0.1:0".parse().unwrap(), 1200).unwrap());
    let told = (server.address().unwrap(), server.fingerprint().to_owned());
    let site = Site { law: controller::law(law).unwrap(), clients_choose: !fixed, root };
    tokio::spawn(serve(server, Arc::new(site)));
    told
}

fn wish(url: &str) -> anyhow::Result<Wish> {
    let (scone, timeout) = (url.ends_with("?scone"), Duration::from_secs(20));
    Ok(Wish { scone, timeout, ..Wish::new(url.parse()?, Trust::Anybody) })
}

/// Fetches a page, and asks for SCONE packets if the address ends with `?scone`. Returns the result and the body.
#[allow(dead_code, reason = "not every test fetches a page as a whole")]
pub async fn fetch(url: &str, law: Option<&str>, trust: Trust) -> anyhow::Result<(Fetched, Vec<u8>)> {
    let law = law.map(|name| (controller::law(name).unwrap(), name.to_owned()));
    let mut body = Vec::new();
    Ok((get(&Wish { law, trust, ..wish(url)? }, &mut body).await?, body))
}

/// Fetches a page and watches it.
#[allow(dead_code, reason = "not every test watches a page")]
pub async fn fetch_until(url: &str, watch: Watch) -> anyhow::Result<Fetched> {
    get(&Wish { watch, ..wish(url)? }, &mut std::io::sink()).await
}

//! Handshakes of two endpoints of quinn-proto in memory.

#[path = "../../tests/end/mod.rs"]
mod end;

use super::*;
use crate::controller;
use crate::endpoint::{endpoint_config, transport};
use crate::tls::{self, Trust};
use quinn::crypto::ServerConfig as _;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, ServerConfig};
use quinn_proto::{ConnectionError, Endpoint, Event};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

const MTU: u16 = 1200;

fn flow(welcomes: bool) -> Arc<Flow> {
    let flow = Flow::new(&controller::law("cubic").expect("a law"), MTU);
    if welcomes {
        flow.scone.welcome();
    }
    flow
}

fn client_tls() -> rustls::ClientConfig {
    tls::client(Trust::Anybody).expect("a configuration")
}

fn server_tls() -> (Arc<rustls::ServerConfig>, Arc<QuicServerConfig>) {
    let tls = Arc::new(tls::server().expect("a certificate").0);
    let quinn = QuicServerConfig::try_from(Arc::clone(&tls)).expect("a suite");
    (tls, Arc::new(quinn))
}

/// One end of a handshake.
struct End {
    quinn: end::End,
    done: Option<Result<(), ConnectionError>>,
    /// The answer to a first packet, without a connection.
    answer: Option<Vec<u8>>,
}

impl End {
    fn new(quinn: end::End) -> Self {
        Self { quinn, done: None, answer: None }
    }

    /// Hands a datagram over.
    fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let end::Reaction { answer, refusal } = self.quinn.receive(now, from, bytes);
        self.answer = answer;
        self.done = refusal.map(Err).or(self.done.take());
    }

    /// The datagrams that it sends now.
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.quinn.settle();
        if let Some((_, connection)) = &mut self.quinn.connection {
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected => self.done = Some(Ok(())),
                    Event::ConnectionLost { reason } => self.done = Some(Err(reason)),
                    _ => {}
                }
            }
        }
        self.answer.take().into_iter().chain(std::iter::from_fn(|| self.quinn.datagram(now))).collect()
    }
}

/// A change of a datagram on its way.
type OnTheWay<'a> = &'a dyn Fn(&mut Vec<u8>);
/// How a handshake ends for the client and for the server.
type Ends = [Option<Result<(), ConnectionError>>; 2];

/// Performs a handshake.
fn shake(client: Arc<dyn crypto::ClientConfig>, server: Arc<dyn crypto::ServerConfig>) -> Ends {
    shake_over(client, server, None)
}

/// Performs a handshake. With `retry`, the server sends a Retry packet first, which `retry` may change.
fn shake_over(
    client: Arc<dyn crypto::ClientConfig>,
    server: Arc<dyn crypto::ServerConfig>,
    retry: Option<OnTheWay<'_>>,
) -> Ends {
    let now = Instant::now();
    let addresses: [SocketAddr; 2] = [([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()];
    let config = Arc::new(endpoint_config());
    let mut client_config = ClientConfig::new(client);
    client_config.transport_config(Arc::new(transport(&flow(false), MTU)));
    let mut server_config = ServerConfig::with_crypto(server);
    server_config.transport_config(Arc::new(transport(&flow(false), MTU)));
    let mut endpoint = Endpoint::new(Arc::clone(&config), None, false, Some([1; 32]));
    let connection = endpoint.connect(now, client_config, addresses[1], "localhost").expect("a client");
    let mut client = End::new(end::End::new(endpoint, Some(connection)));
    let endpoint = Endpoint::new(config, Some(Arc::new(server_config)), false, Some([2; 32]));
    let mut server = End::new(end::End { retries: retry.is_some(), ..end::End::new(endpoint, None) });
    let mut flying = VecDeque::new();
    loop {
        flying.extend(client.send(now).into_iter().map(|bytes| (true, bytes)));
        flying.extend(server.send(now).into_iter().map(|bytes| (false, bytes)));
        let Some((to_server, mut bytes)) = flying.pop_front() else { return [client.done, server.done] };
        // RFC 9000 section 17.2.5: a long header of type 3 is a Retry packet.
        if let (false, true, Some(change)) = (to_server, bytes[0] & 0xf0 == 0xf0, retry) {
            change(&mut bytes);
        }
        let (end, from) = if to_server { (&mut server, addresses[0]) } else { (&mut client, addresses[1]) };
        end.receive(now, from, &bytes);
    }
}

/// Each end learns what the other has said, whatever it has said itself.
#[test]
fn each_end_learns_whether_the_other_welcomes_scone() {
    let (tls, quinn) = server_tls();
    for [own, other] in [[false, false], [false, true], [true, false], [true, true]] {
        let (client, server) = (flow(own), flow(other));
        let done = shake(ClientTls::new(client_tls(), &client), ServerTls::new(&tls, &quinn, &server));
        assert_eq!(done, [Some(Ok(())), Some(Ok(()))]);
        assert_eq!((client.scone.is_wanted(), server.scone.is_wanted()), (other, own));
    }
}

/// quinn's own ends ignore the parameter, as RFC 9000 section 7.4.2 demands of unknown ones, and do not send it.
#[test]
fn plain_quinn_at_the_other_end_has_no_scone() {
    let (tls, quinn) = server_tls();
    let client = flow(true);
    let done = shake(ClientTls::new(client_tls(), &client), quinn.clone());
    assert_eq!((done, client.scone.is_wanted()), ([Some(Ok(())), Some(Ok(()))], false));
    let server = flow(true);
    let plain = QuicClientConfig::try_from(client_tls()).expect("a suite");
    let done = shake(Arc::new(plain), ServerTls::new(&tls, &quinn, &server));
    assert_eq!((done, server.scone.is_wanted()), ([Some(Ok(())), Some(Ok(()))], false));
}

/// The draft demands a connection error if the parameter has a value, at either end. Its reason reaches the peer.
#[test]
fn a_malformed_parameter_ends_the_handshake() {
    let (tls, quinn) = server_tls();
    let told = |done: Option<Result<(), ConnectionError>>| match done {
        Some(Err(ConnectionError::TransportError(error))) => (error.code, error.reason),
        Some(Err(ConnectionError::ConnectionClosed(close))) => {
            (close.error_code, String::from_utf8_lossy(&close.reason).into_owned())
        }
        other => panic!("{other:?}"),
    };
    for (more, why) in [
        (vec![0x61, 0x9e, 2, 7, 7], "scone_supported (0x219e) has 2 bytes: must be empty"),
        ([parameter::SUPPORTED, parameter::SUPPORTED].concat(), "scone_supported (0x219e) appears twice"),
    ] {
        for at_client in [false, true] {
            let (client, server) = (flow(true), flow(true));
            let of = |is: bool, flow: &Flow| if is { more.clone() } else { own_parameters(flow) };
            let ends = [
                (of(at_client, &client), Arc::clone(&client)),
                (of(!at_client, &server), Arc::clone(&server)),
            ];
            let [(client_more, client_flow), (server_more, server_flow)] = ends;
            let client_end = ClientTls { tls: Arc::new(client_tls()), flow: client_flow, more: client_more };
            let server_end = ServerTls {
                tls: Arc::clone(&tls),
                quinn: Arc::clone(&quinn),
                flow: server_flow,
                more: server_more,
            };
            let [of_client, of_server] = shake(Arc::new(client_end), Arc::new(server_end));
            let (found, heard) = if at_client { (of_server, of_client) } else { (of_client, of_server) };
            for (code, reason) in [found, heard].map(told) {
                assert_eq!(code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR, "{reason}");
                assert!(reason.starts_with(why), "{reason}");
            }
            let wanted = if at_client { &server } else { &client };
            assert!(!wanted.scone.is_wanted(), "a malformed parameter asks for nothing");
        }
    }
}

/// A client that gets a Retry packet starts again with its token, and learns of SCONE as others do.
#[test]
fn a_retry_packet_starts_the_handshake_again() {
    let (tls, quinn) = server_tls();
    let retried = std::cell::Cell::new(0);
    let count = |_: &mut Vec<u8>| retried.set(retried.get() + 1);
    let (client, server) = (flow(true), flow(true));
    let ends = (ClientTls::new(client_tls(), &client), ServerTls::new(&tls, &quinn, &server));
    assert_eq!(shake_over(ends.0, ends.1, Some(&count)), [Some(Ok(())), Some(Ok(()))]);
    assert_eq!((retried.get(), client.scone.is_wanted(), server.scone.is_wanted()), (1, true, true));
}

/// A client ignores a Retry packet that was changed anywhere (RFC 9000 section 17.2.5.2).
#[test]
fn a_changed_retry_packet_is_ignored() {
    let (tls, quinn) = server_tls();
    // Bytes: flags; version; two connection IDs of 8 with their lengths; the token; the tag.
    for at in [0, 6, 16, 30, 60, usize::MAX] {
        let change = |bytes: &mut Vec<u8>| {
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 1;
        };
        let (client, server) = (flow(true), flow(true));
        let ends = (ClientTls::new(client_tls(), &client), ServerTls::new(&tls, &quinn, &server));
        assert_eq!(shake_over(ends.0, ends.1, Some(&change)), [None, None], "byte {at}");
    }
}

/// The tag of quinn's own Retry packets is right, and no other.
#[test]
fn retry_packets_are_checked() {
    let (_, quinn) = server_tls();
    let flow = flow(false);
    let inner = ServerConnection::new(server_tls().0, Version::V1, Vec::new()).expect("TLS 1.3");
    let session = Session::new(Connection::Server(inner), &flow);
    let id = ConnectionId::new(&[7; 8]);
    let (header, token) = ([0xf0, 0, 0, 0, 1, 0, 2, 9, 9], [5; 20]);
    let tag = quinn.retry_tag(VERSION, &id, &[&header[..], &token].concat());
    let mut payload = [&token[..], &tag].concat();
    let valid =
        |id: &ConnectionId, payload: &[u8]| crypto::Session::is_valid_retry(&session, id, &header, payload);
    assert!(valid(&id, &payload));
    assert!(!valid(&ConnectionId::new(&[8; 8]), &payload), "another connection's");
    assert!(!valid(&id, &payload[..15]), "no room for a tag");
    payload[3] ^= 1;
    assert!(!valid(&id, &payload), "another token");
}

//! TLS of quinn's connections, with SCONE's transport parameter.
//!
//! quinn writes and reads the transport parameters itself, and has no place for others. The cryptography below it can be replaced,
//! and carries the parameters as bytes. [`Session`] is quinn's own session over rustls, with two additions: it writes
//! `scone_supported` behind quinn's parameters if this end is willing to receive SCONE packets, and it looks for the peer's.
//!
//! ```text
//!   quinn-proto ---- TransportParameters ----> Session ---- bytes + 61 9e 00 ----> rustls ---- TLS extension ----> peer
//!   Scone::want <--- scone_supported is there --- Session <--- bytes ------------- rustls <--- TLS extension ----- peer
//! ```
//!
//! Only QUIC version 1 is supported, as [`endpoint_config`](crate::endpoint::endpoint_config) says to peers.
//!
//! 0-RTT must stay off. [`Session`]'s `transport_parameters()` has a side effect: it records that the peer wants SCONE
//! packets. With 0-RTT, quinn would call it with parameters that are remembered from an earlier connection.

use crate::controller::Flow;
use flowstamp_wire::scone::parameter;
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn::{ConnectError, ConnectionId, Side, TransportErrorCode};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use ring::aead;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, ServerConnection, Suite, Version};
use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

/// The one version of QUIC (RFC 9000).
pub const VERSION: u32 = 1;
/// Key and nonce of the tag of Retry packets (RFC 9001 section 5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
const RETRY_TAG_LEN: usize = 16;

/// The cipher suite of a connection's first packets (RFC 9001 section 5.2). The provider `ring` has it.
fn initial_suite() -> Suite {
    TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(|suite| suite.quic_suite())
        .expect("ring has QUIC's first suite")
}

/// Returns the bytes that this end adds behind quinn's transport parameters.
fn own_parameters(flow: &Flow) -> Vec<u8> {
    if flow.scone.is_willing() { parameter::SUPPORTED.to_vec() } else { Vec::new() }
}

/// A client's side of the handshake, for the connection of one flow.
pub struct ClientTls {
    tls: Arc<rustls::ClientConfig>,
    flow: Arc<Flow>,
    /// Bytes behind quinn's transport parameters.
    more: Vec<u8>,
}

impl ClientTls {
    /// Prepares the handshake of this flow's connection, which tells the server whether the flow is willing to receive SCONE packets.
    #[must_use]
    pub fn new(tls: rustls::ClientConfig, flow: &Arc<Flow>) -> Arc<Self> {
        Arc::new(Self { tls: Arc::new(tls), flow: Arc::clone(flow), more: own_parameters(flow) })
    }
}

impl crypto::ClientConfig for ClientTls {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION {
            return Err(ConnectError::UnsupportedVersion);
        }
        let invalid = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name).map_err(|_| invalid())?.to_owned();
        let bytes = written(params, &self.more);
        // This fails only without TLS 1.3, and `tls::client` enables it.
        let inner = ClientConnection::new(Arc::clone(&self.tls), Version::V1, name, bytes).expect("TLS 1.3");
        Ok(Box::new(Session::new(Connection::Client(inner), &self.flow)))
    }
}

/// A server's side of the handshake, for the connection of one flow.
pub struct ServerTls {
    tls: Arc<rustls::ServerConfig>,
    /// quinn's own configuration, for initial keys and Retry tags.
    quinn: Arc<QuicServerConfig>,
    flow: Arc<Flow>,
    more: Vec<u8>,
}

impl ServerTls {
    /// Prepares the handshake of this flow's connection, which tells the client whether the flow is willing to receive SCONE packets.
    #[must_use]
    pub fn new(
        tls: &Arc<rustls::ServerConfig>,
        quinn: &Arc<QuicServerConfig>,
        flow: &Arc<Flow>,
    ) -> Arc<Self> {
        let (tls, quinn) = (Arc::clone(tls), Arc::clone(quinn));
        Arc::new(Self { tls, quinn, flow: Arc::clone(flow), more: own_parameters(flow) })
    }
}

impl crypto::ServerConfig for ServerTls {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        crypto::ServerConfig::initial_keys(&*self.quinn, version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        crypto::ServerConfig::retry_tag(&*self.quinn, version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn crypto::Session> {
        let bytes = written(params, &self.more);
        // This fails only without TLS 1.3, and `tls::server` enables it.
        let inner = ServerConnection::new(Arc::clone(&self.tls), Version::V1, bytes).expect("TLS 1.3");
        Box::new(Session::new(Connection::Server(inner), &self.flow))
    }
}

/// quinn's transport parameters as bytes, and `more` behind them.
fn written(params: &TransportParameters, more: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes);
    bytes.extend(more);
    bytes
}

/// The TLS session of one connection.
struct Session {
    inner: Connection,
    flow: Arc<Flow>,
    suite: Suite,
    /// Secrets of the next keys, once the handshake is over.
    next: Option<Secrets>,
    /// Whether quinn was told that the handshake's data are there.
    has_told: bool,
}

impl Session {
    fn new(inner: Connection, flow: &Arc<Flow>) -> Self {
        Self { inner, flow: Arc::clone(flow), suite: initial_suite(), next: None, has_told: false }
    }

    fn side(&self) -> Side {
        match self.inner {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }

    /// The name that the client asked for, at a server.
    fn server_name(&self) -> Option<&str> {
        match &self.inner {
            Connection::Client(_) => None,
            Connection::Server(inner) => inner.server_name(),
        }
    }
}

/// rustls's keys as quinn takes them.
fn keys(keys: rustls::quic::Keys) -> Keys {
    let rustls::quic::Keys { local, remote } = keys;
    Keys {
        header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
        packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        keys(self.suite.keys(dst_cid, side.into(), Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        if !self.has_told {
            return None;
        }
        let protocol = self.inner.alpn_protocol().map(<[u8]>::to_vec);
        Some(Box::new(HandshakeData { protocol, server_name: self.server_name().map(str::to_owned) }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain = self.inner.peer_certificates()?;
        Some(Box::new(chain.iter().map(|one| one.clone().into_owned()).collect::<Vec<_>>()))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.inner.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.inner {
            Connection::Client(inner) => Some(inner.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_hs(buf).map_err(|error| TransportError {
            code: self.inner.alert().map_or(TransportErrorCode::PROTOCOL_VIOLATION, |alert| {
                TransportErrorCode::crypto(alert.into())
            }),
            frame: None,
            reason: format!("TLS: {error}"),
        })?;
        // rustls does not say when its data are there, so quinn is told at the first sign of it.
        let there = self.inner.alpn_protocol().is_some()
            || self.server_name().is_some()
            || !self.inner.is_handshaking();
        let first = there && !self.has_told;
        self.has_told |= there;
        Ok(first)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(bytes) = self.inner.quic_transport_parameters() else { return Ok(None) };
        let parameters = TransportParameters::read(self.side(), &mut Cursor::new(bytes))?;
        let supported = parameter::is_supported(bytes).map_err(|error| TransportError {
            code: TransportErrorCode::TRANSPORT_PARAMETER_ERROR,
            frame: None,
            reason: error.to_string(),
        })?;
        if supported {
            self.flow.scone.want();
        }
        Ok(Some(parameters))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        Some(keys(match self.inner.write_hs(buf)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                keys
            }
        }))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// A Retry packet ends with a tag over the client's first destination ID and the packet (RFC 9001 section 5.8).
    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(text_len) = payload.len().checked_sub(RETRY_TAG_LEN) else { return false };
        let (text, tag) = payload.split_at(text_len);
        let packet = [&[orig_dst_cid.len() as u8], &orig_dst_cid[..], header, text].concat();
        let key = aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY).expect("16 bytes");
        let nonce = aead::Nonce::assume_unique_for_key(RETRY_NONCE);
        aead::LessSafeKey::new(key).open_in_place(nonce, aead::Aad::from(packet), &mut tag.to_vec()).is_ok()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.inner.export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

#[cfg(test)]
mod tests;

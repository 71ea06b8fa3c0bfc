//! Endpoints: quinn with one flow per connection.

use crate::controller::{Factory, Flow};
use crate::handshake::{ClientTls, ServerTls, VERSION};
use crate::ids::OwnIds;
use crate::socket::LawSocket;
use crate::tls::{self, Trust};
use flowstamp_laws::registry::SenderSpec;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{AckFrequencyConfig, TransportConfig, VarInt};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// Least and largest size of datagrams above UDP, bytes. QUIC needs 1200 (RFC 9000 section 14). With a stamp packet and
/// headers the largest fits Ethernet.
pub const MTU: std::ops::RangeInclusive<u16> = 1200..=1420;

/// Flow control lets so much be on its way, bytes: 64 MB are 5 s at 100 Mb/s.
const RECEIVE_WINDOW: u32 = 64 << 20;
/// Bytes that an application may have written before they are acknowledged.
const SEND_WINDOW: u64 = 16 << 20;

/// quinn's settings for a connection of this flow. The size of datagrams stays as it is, because laws count packets.
#[must_use]
pub fn transport(flow: &Arc<Flow>, mtu: u16) -> TransportConfig {
    let mut config = TransportConfig::default();
    // The peer acknowledges each packet, if it has the extension for that, as receivers of the simulator do.
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(0));
    config
        .ack_frequency_config(Some(acks))
        .congestion_controller_factory(Arc::new(Factory(Arc::clone(flow))))
        .enable_segmentation_offload(false)
        .initial_mtu(mtu)
        .min_mtu(mtu)
        .mtu_discovery_config(None)
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .send_window(SEND_WINDOW);
    config
}

/// quinn's settings for an endpoint: QUIC version 1 alone.
#[must_use]
pub fn endpoint_config() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.supported_versions(vec![VERSION]);
    config
}

/// A server, whose connections start with one law.
pub struct Server {
    endpoint: Endpoint,
    socket: Arc<LawSocket>,
    tls: Arc<rustls::ServerConfig>,
    quinn: Arc<QuicServerConfig>,
    config: ServerConfig,
    fingerprint: String,
    mtu: u16,
}

impl Server {
    /// Listens on `address`. Call it within tokio's runtime.
    ///
    /// # Errors
    ///
    /// The address is in use, or the system lacks something.
    pub fn bind(address: SocketAddr, mtu: u16) -> anyhow::Result<Self> {
        let (tls, fingerprint) = tls::server()?;
        let tls = Arc::new(tls);
        let quinn = Arc::new(QuicServerConfig::try_from(Arc::clone(&tls))?);
        let config = ServerConfig::with_crypto(quinn.clone());
        let socket = LawSocket::new(UdpSocket::bind(address)?, OwnIds::default())?;
        let own = Arc::clone(&socket);
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_config(),
            Some(config.clone()),
            own,
            Arc::new(TokioRuntime),
        )?;
        Ok(Self { endpoint, socket, tls, quinn, config, fingerprint, mtu })
    }

    /// SHA-256 of the server's certificate.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The server's address.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next connection attempt; `None` after the end.
    pub async fn incoming(&self) -> Option<Incoming> {
        self.endpoint.accept().await
    }

    /// Accepts a connection, whose flow starts with this law. A connection stays on its path.
    ///
    /// The socket knows flows by the peer's address, and anybody can send a first packet from a false one. A peer that has a
    /// flow must therefore show that the address is its own: it gets a Retry packet (RFC 9000 section 8.1.2).
    ///
    /// # Errors
    ///
    /// The handshake fails, or starts again after the Retry packet, as another connection attempt.
    pub async fn accept(
        &self,
        incoming: Incoming,
        law: &SenderSpec,
    ) -> anyhow::Result<(Connection, Arc<Flow>)> {
        let peer = incoming.remote_address();
        if self.socket.flow(peer).is_some() && !incoming.remote_address_validated() {
            incoming.retry()?;
            anyhow::bail!("{peer} has a connection; a Retry packet asks whether the address is its own");
        }
        let flow = Flow::new(law, self.mtu);
        let mut config = self.config.clone();
        config.crypto = ServerTls::new(&self.tls, &self.quinn, &flow);
        config.transport_config(Arc::new(transport(&flow, self.mtu))).migration(false);
        self.socket.add(peer, Arc::clone(&flow));
        let accepted = async { anyhow::Ok(incoming.accept_with(Arc::new(config))?.await?) }.await;
        match accepted {
            Ok(connection) => Ok((connection, flow)),
            Err(error) => {
                self.socket.remove(peer, &flow);
                Err(error)
            }
        }
    }

    /// Forgets a connection's flow after its end.
    pub fn forget(&self, peer: SocketAddr, flow: &Arc<Flow>) {
        self.socket.remove(peer, flow);
    }
}

/// A client's choices.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of datagrams above UDP, bytes.
    pub mtu: u16,
    /// Which server is trusted.
    pub trust: Trust,
    /// Tells the server that SCONE packets are welcome, and indicates it to the network.
    pub scone: bool,
    /// The client's port; 0 for any.
    pub port: u16,
}

/// A client's endpoint, which has one connection.
#[derive(Debug)]
pub struct Client {
    /// The connection.
    pub connection: Connection,
    /// Its flow.
    pub flow: Arc<Flow>,
    endpoint: Endpoint,
}

impl Client {
    /// Connects to `server`. Call it within tokio's runtime.
    ///
    /// # Errors
    ///
    /// The server does not answer, or is not trusted.
    pub async fn connect(
        server: SocketAddr,
        name: &str,
        law: &SenderSpec,
        options: Options,
    ) -> anyhow::Result<Self> {
        let Options { mtu, trust, scone, port } = options;
        let any: SocketAddr = if server.is_ipv4() { ([0; 4], port).into() } else { ([0u16; 8], port).into() };
        let own = OwnIds::default();
        let mut ids = endpoint_config();
        let made = own.clone();
        ids.cid_generator(move || Box::new(made.clone()));
        let socket = LawSocket::new(UdpSocket::bind(any)?, own.clone())?;
        let flow = Flow::new(law, mtu);
        if scone {
            flow.scone.welcome();
        }
        socket.add(server, Arc::clone(&flow));
        let endpoint = Endpoint::new_with_abstract_socket(ids, None, socket, Arc::new(TokioRuntime))?;
        let mut config = ClientConfig::new(ClientTls::new(tls::client(trust)?, &flow));
        config.transport_config(Arc::new(transport(&flow, mtu)));
        let connection = endpoint.connect_with(config, server, name)?.await?;
        Ok(Self { connection, flow, endpoint })
    }

    /// Ends the connection and tells the server.
    pub async fn close(self) {
        self.connection.close(VarInt::from_u32(0x100), b""); // H3_NO_ERROR, RFC 9114 section 8.1
        self.endpoint.wait_idle().await;
    }
}

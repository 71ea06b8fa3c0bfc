//! An end of a connection of quinn-proto, in memory. Unit tests include this file too, so it names nothing of this crate.

#![allow(dead_code, reason = "each test uses a part")]

use bytes::BytesMut;
use quinn_proto::{Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint};
use std::net::SocketAddr;
use std::time::Instant;

/// An endpoint with at most one connection.
pub struct End {
    pub endpoint: Endpoint,
    pub connection: Option<(ConnectionHandle, Connection)>,
    /// As a server, asks each client for proof of its address by a Retry packet.
    pub retries: bool,
}

/// How an endpoint reacts to a datagram, besides telling its connection.
#[derive(Debug, Default)]
pub struct Reaction {
    /// The datagram that it answers with at once.
    pub answer: Option<Vec<u8>>,
    /// The reason for which it refuses a connection.
    pub refusal: Option<ConnectionError>,
}

impl End {
    pub fn new(endpoint: Endpoint, connection: Option<(ConnectionHandle, Connection)>) -> Self {
        Self { endpoint, connection, retries: false }
    }

    /// Hands a datagram over.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> Reaction {
        let mut buffer = Vec::new();
        match self.endpoint.handle(now, from, None, None, BytesMut::from(bytes), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connection.as_mut().expect("a connection").1.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming))
                if self.retries && !incoming.remote_address_validated() =>
            {
                let transmit = self.endpoint.retry(incoming, &mut buffer).expect("a first packet");
                return Reaction { answer: Some(buffer[..transmit.size].to_vec()), refusal: None };
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => {
                        let answer = error.response.map(|transmit| buffer[..transmit.size].to_vec());
                        return Reaction { answer, refusal: Some(error.cause) };
                    }
                }
            }
            _ => {}
        }
        Reaction::default()
    }

    /// Handles what the connection has for its endpoint.
    pub fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    /// The next datagram that the connection makes now.
    pub fn datagram(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        let transmit = self.connection.as_mut()?.1.poll_transmit(now, 1, &mut buffer)?;
        buffer.truncate(transmit.size);
        Some(buffer)
    }
}

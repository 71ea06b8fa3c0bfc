//! Sizes of packets of `flowstamp quic`.

use flowstamp_laws::units::Bytes;

/// Size of datagrams above UDP, the largest that fits Ethernet with a stamp packet.
pub const MTU: u64 = 1420;
/// Headers of Ethernet, IPv4 and UDP.
const BELOW: u64 = 14 + 20 + 8;
/// A short header with a connection ID of 8 bytes and a packet number of 2, the authentication tag, and the header of a STREAM
/// frame with an offset of 4 bytes.
const SHORT: u64 = 1 + 8 + 2 + 16 + 6;
/// A stamp packet with a connection ID of 8 bytes.
const STAMP: u64 = flowstamp_wire::quic_stamp::MIN_LEN as u64 + 8;

/// Sizes on the wire, without Ethernet's checksum.
pub struct Sizes {
    pub packet: Bytes,
    pub header: Bytes,
}

/// The sizes of QUIC's packets, with or without stamp packets.
pub fn sizes(stamped: bool) -> Sizes {
    let below = BELOW + if stamped { STAMP } else { 0 };
    Sizes { packet: Bytes::new(below + MTU), header: Bytes::new(below + SHORT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_ethernet() {
        assert_eq!(sizes(false).packet.get() - sizes(false).header.get(), MTU - SHORT);
        assert!(sizes(true).packet.get() <= 1514);
    }
}

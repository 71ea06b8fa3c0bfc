//! How each header of the registry is written on a wire: the one place where a header meets its codec.

use crate::frame::{Ecn, Shim};
use crate::{pcp, rcp, vcp, xcp};
use flowstamp_laws::Stamp;
use flowstamp_laws::registry::Header;

/// What a packet says to routers, in the laws' terms.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The stamp.
    pub stamp: Stamp,
    /// The bits beside it.
    pub bits: u16,
    /// It goes the way of the data; else it is an ack or an answer.
    pub data: bool,
    /// Bytes of a full data packet.
    pub packet_bytes: u32,
}

/// How a header is written between IP and TCP.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// Its length in bytes.
    pub len: usize,
    /// Its bytes in this packet.
    pub shim: fn(&Told) -> Shim,
}

/// The codec of `header`; `None` of one that has no bytes of its own.
#[must_use]
pub const fn codec(header: Header) -> Option<Codec> {
    match header {
        Header::Plain => None,
        // VCP's is in IP's own header (`ecn`), and its model has no form on a wire.
        Header::Vcp | Header::VcpExact => None,
        Header::Xcp => Some(xcp::PAPER),
        Header::XcpDraft => Some(xcp::DRAFT),
        Header::Rcp => Some(rcp::CODEC),
        Header::Pcp => Some(pcp::CODEC),
    }
}

/// The ECN bits of a packet with this header, where it has them for its own.
#[must_use]
pub fn ecn(header: Header, bits: u16) -> Option<Ecn> {
    (header == Header::Vcp).then(|| vcp::ecn(bits))
}

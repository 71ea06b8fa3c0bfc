//! Maps each header of the registry to its codec, the way it is written on a wire. Only this module connects the two.

use crate::frame::{Ecn, Shim};
use crate::{pcp, rcp, vcp, xcp};
use flowstamp_laws::Stamp;
use flowstamp_laws::registry::Header;

/// The content of a packet's header, in the laws' terms.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The stamp.
    pub stamp: Stamp,
    /// The header's bits beside the stamp.
    pub bits: u16,
    /// Whether the packet carries data in the flow's direction; if not it is an ack or an answer.
    pub data: bool,
    /// Bytes of a full data packet.
    pub packet_bytes: u32,
}

/// Writes a header between IP and TCP.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// Its length in bytes.
    pub len: usize,
    /// Writes a packet's header.
    pub shim: fn(&Told) -> Shim,
}

/// The codec of `header`; `None` if the header has no bytes of its own.
#[must_use]
pub const fn codec(header: Header) -> Option<Codec> {
    match header {
        Header::Plain => None,
        // VCP uses IP's own ECN bits (`ecn`); its model, `VcpExact`, has no form on a wire.
        Header::Vcp | Header::VcpExact => None,
        Header::Xcp => Some(xcp::PAPER),
        Header::XcpDraft => Some(xcp::DRAFT),
        Header::Rcp => Some(rcp::CODEC),
        Header::Pcp => Some(pcp::CODEC),
    }
}

/// The ECN bits of a packet with this header; `None` if the header does not use them.
#[must_use]
pub fn ecn(header: Header, bits: u16) -> Option<Ecn> {
    (header == Header::Vcp).then(|| vcp::ecn(bits))
}

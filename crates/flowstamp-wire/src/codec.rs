//! Maps each header of the registry to its codec, the way it is written on a wire. Only this module connects the two.

use crate::frame::{Codec, Ecn, MAX_SHIM_LEN};
use crate::{abc, pcp, rcp, vcp, xcp};
use flowstamp_laws::registry::Header;

const _: () = assert!(xcp::HEADER_LEN <= MAX_SHIM_LEN, "the longest");

/// The codec of `header`; `None` if the header has no bytes of its own.
#[must_use]
pub const fn codec(header: Header) -> Option<Codec> {
    match header {
        Header::Plain => None,
        // VCP uses IP's own ECN bits (`ecn`); its model, `VcpExact`, has no form on a wire.
        Header::Vcp | Header::VcpExact => None,
        // ABC uses IP's own ECN bits, too.
        Header::Abc => None,
        // HPCC-PINT's papers leave the layout of the digest to the switch.
        Header::Hpcc => None,
        Header::Xcp => Some(xcp::PAPER),
        Header::XcpDraft => Some(xcp::DRAFT),
        Header::Rcp => Some(rcp::CODEC),
        Header::Pcp => Some(pcp::CODEC),
    }
}

/// The ECN bits of a packet with this header; `None` if the header does not use them.
#[must_use]
pub fn ecn(header: Header, bits: u16) -> Option<Ecn> {
    match header {
        Header::Vcp => Some(vcp::ecn(bits)),
        Header::Abc => Some(abc::ecn(bits)),
        _ => None,
    }
}

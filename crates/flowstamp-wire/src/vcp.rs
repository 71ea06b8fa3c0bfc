//! VCP's code on a wire: the two ECN bits of the IP header (Xia et al. 2008, section III-B).
//!
//! A data packet carries the code of the busiest router so far, and its ack echoes that code (section III-E.2). The codes are ECN's
//! codepoints: a router that knows only ECN takes 01 and 10 for ECN-capable transport and 11 for congestion experienced (section VI-C).

use crate::frame::Ecn;
use flowstamp_laws::vcp::Code;

/// The ECN codepoint of VCP's code.
#[must_use]
pub const fn ecn(bits: u16) -> Ecn {
    match Code::read(bits) {
        Code::NotCapable => Ecn::NotEct,
        Code::Low => Ecn::Ect1,
        Code::High => Ecn::Ect0,
        Code::Overload => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameSpec, MAX_LEN};

    /// The last two bits of the second byte of the IP header (RFC 3168, section 5) are the code itself.
    #[test]
    fn the_code_is_what_stands_in_the_ip_header() {
        for code in [Code::NotCapable, Code::Low, Code::High, Code::Overload] {
            let mut frame = [0; MAX_LEN];
            FrameSpec { ecn: ecn(code.bits()), ..FrameSpec::default() }.write(&mut frame);
            assert_eq!(u16::from(frame[15] & 3), code.bits());
        }
    }
}

//! ABC's mark on a wire: the two ECN bits of the IP header (Goyal et al. 2020).
//!
//! ECT(1) is accelerate and ECT(0) brake. A queue that knows only ECN overwrites either with congestion experienced.

use crate::frame::Ecn;
use flowstamp_laws::abc::Mark;

/// The ECN codepoint of ABC's mark.
#[must_use]
pub const fn ecn(bits: u16) -> Ecn {
    match Mark::read(bits) {
        Mark::NotCapable => Ecn::NotEct,
        Mark::Accelerate => Ecn::Ect1,
        Mark::Brake => Ecn::Ect0,
        Mark::Congested => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameSpec, MAX_LEN};

    /// The last two bits of the second byte of the IP header (RFC 3168, section 5) are the mark itself.
    #[test]
    fn the_mark_is_what_stands_in_the_ip_header() {
        for mark in [Mark::NotCapable, Mark::Accelerate, Mark::Brake, Mark::Congested] {
            let mut frame = [0; MAX_LEN];
            FrameSpec { ecn: ecn(mark.bits()), ..FrameSpec::default() }.write(&mut frame);
            assert_eq!(u16::from(frame[15] & 3), mark.bits());
        }
    }
}

//! The parsers of XCP's, RCP's and PCP's headers on arbitrary bytes: an accepted header must be emitted unchanged,
//! except for fields that the parser documents as ignored.

#![no_main]

use flowstamp_wire::{pcp, rcp, xcp};
use libfuzzer_sys::fuzz_target;

/// Offset of the byte that XCP's parser does not look at and its emitter writes as zero.
const XCP_UNUSED: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = xcp::Header::parse(bytes) {
        let mut expected = [0; xcp::HEADER_LEN];
        expected.copy_from_slice(&bytes[..xcp::HEADER_LEN]);
        expected[XCP_UNUSED] = 0;
        assert_eq!(header.to_bytes(), expected);
        assert_eq!(xcp::Header::parse(&expected), Ok(header));
    }
    if let Ok(header) = rcp::Header::parse(bytes) {
        assert_eq!(rcp::Header::parse(&header.to_bytes()), Ok(header));
    }
    if let Ok(header) = pcp::Header::parse(bytes) {
        assert_eq!(pcp::Header::parse(&header.to_bytes()), Ok(header));
    }
});

//! The parsers of XCP's, RCP's and PCP's headers, and of QUIC's stamp packets, on arbitrary bytes: an accepted header must be
//! emitted unchanged, except for fields that the parser documents as ignored.

#![no_main]

use flowstamp_wire::{pcp, quic_stamp, rcp, xcp};
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
    if let Some(packet) = quic_stamp::Packet::parse(bytes) {
        let mut emitted = Vec::new();
        packet.append(&mut emitted);
        // The parser ignores all bits of the first byte except the header's form.
        assert_eq!(emitted[1..], bytes[1..packet.wire_len()]);
        let mut replaced = bytes.to_vec();
        assert_eq!(
            quic_stamp::replace(&mut replaced, packet.protocol, |stamp| stamp.value),
            Some(packet.stamp.value)
        );
        assert_eq!(replaced, bytes);
    }
    if let Some(echo) = quic_stamp::Echo::parse(bytes) {
        assert_eq!(echo.to_bytes(), bytes);
    }
});

//! The XCP header's parser on arbitrary bytes: it must not panic, and what it accepts must come out as it went in.
//!
//! Run with `cargo +nightly fuzz run xcp_header` in the repository's root; `cargo check` here needs stable only.

#![no_main]

use flowstamp_wire::xcp::{HEADER_LEN, Header};
use libfuzzer_sys::fuzz_target;

/// Offset of the byte that the parser does not look at and the emitter writes as zero.
const UNUSED: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = Header::parse(bytes) {
        let mut expected = [0; HEADER_LEN];
        expected.copy_from_slice(&bytes[..HEADER_LEN]);
        expected[UNUSED] = 0;
        let mut emitted = [0xff; HEADER_LEN];
        header.emit(&mut emitted).expect("the buffer has the header's length");
        assert_eq!(emitted, expected);
        assert_eq!(Header::parse(&emitted), Ok(header));
    }
});

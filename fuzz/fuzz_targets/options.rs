//! TCP's options as hosts and routers read them: the stamp that is found is where it was found, and comes out as it went in.

#![no_main]

use flowstamp_wire::option::{Protocol, StampOption};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(option) = StampOption::parse(bytes) {
        let out = option.to_vec();
        assert_eq!(out, bytes[..out.len()]);
    }
    for protocol in Protocol::ALL {
        let Some((at, found)) = StampOption::find(bytes, protocol) else { continue };
        assert_eq!(found.protocol, protocol);
        assert_eq!(StampOption::parse(&bytes[at..]), Ok(found));
        // Nothing behind it matters.
        let end = at + found.to_vec().len();
        assert_eq!(StampOption::find(&bytes[..end], protocol), Some((at, found)));
    }
});

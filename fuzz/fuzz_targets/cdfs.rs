//! Distributions of transfers' sizes.

#![no_main]

mod reading;

use flowstamp_sim::scenario::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: reading::is_good(reading::WEB, &[]),
    |text: &str| {
        reading::read(reading::WEB, Format::Toml, &[], &reading::files("", text));
    }
);

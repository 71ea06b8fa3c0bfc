//! Lists of flows.

#![no_main]

mod reading;

use flowstamp_sim::scenario::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: reading::is_good(reading::LIST, &[]),
    |text: &str| {
        let mut files = reading::files("", "");
        files.insert("list".into(), text.to_owned());
        reading::read(reading::LIST, Format::Toml, &[], &files);
    }
);

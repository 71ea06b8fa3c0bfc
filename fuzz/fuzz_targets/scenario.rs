//! A scenario's text, as TOML and as JSON: refused in one line, or a scenario that is the same written out and read again.

#![no_main]

mod reading;

use flowstamp_sim::scenario::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for format in [Format::Toml, Format::Json] {
        let Some(loaded) = reading::read(text, format, &[], &reading::files("1\n2\n", "100 0\n2000 100\n"))
        else {
            continue;
        };
        let out = loaded.scenario.to_toml();
        let again = reading::read(&out, Format::Toml, &[], &loaded.files);
        let again = again.unwrap_or_else(|| panic!("not read again: {out}"));
        assert_eq!(again.scenario, loaded.scenario);
    }
});

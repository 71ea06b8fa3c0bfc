//! Traces of links, as Mahimahi has them.

#![no_main]

mod reading;

use flowstamp_sim::scenario::Format;
use libfuzzer_sys::fuzz_target;

fn traced() -> Vec<(String, String)> {
    vec![("dumbbell.rate".to_owned(), "{ trace = \"trace\" }".to_owned())]
}

fuzz_target!(
    init: reading::is_good(reading::DUMBBELL, &traced()),
    |text: &str| {
        reading::read(reading::DUMBBELL, Format::Toml, &traced(), &reading::files(text, ""));
    }
);

//! `--set KEY=VALUE` on scenarios of every kind: what users may change, and one line on what they may not.

#![no_main]

mod reading;

use flowstamp_sim::scenario::Format;
use libfuzzer_sys::fuzz_target;

const SCENARIOS: [&str; 4] = [
    reading::DUMBBELL,
    include_str!("../../examples/graph.toml"),
    include_str!("../../examples/parking-lot.toml"),
    include_str!("../../examples/wifi.toml"),
];

fuzz_target!(init: SCENARIOS.iter().for_each(|s| reading::is_good(s, &[])), |text: &str| {
    let sets: Vec<_> = text
        .lines()
        .take(4)
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let scenario = SCENARIOS[text.len() % SCENARIOS.len()];
    reading::read(scenario, Format::Toml, &sets, &reading::files("1\n2\n", "100 0\n2000 100\n"));
});

//! Graphs in files: GraphML, CSV and what is taken for them.

#![no_main]

mod reading;

use flowstamp_sim::scenario::Format;
use libfuzzer_sys::fuzz_target;

fn files(graph: &str) -> flowstamp_sim::scenario::Files {
    let mut files = reading::files("", "");
    files.insert("graph".into(), graph.to_owned());
    files
}

fuzz_target!(
    init: {
        let good = flowstamp_sim::load(reading::GRAPH, Format::Toml, "good", &[], &files("source,target,speed\na,b,1Mbps\nb,c,2\n"));
        good.unwrap_or_else(|error| panic!("{error}"));
    },
    |text: &str| {
        reading::read(reading::GRAPH, Format::Toml, &[], &files(text));
    }
);

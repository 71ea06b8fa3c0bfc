//! Shared by the engine's tests.
#![allow(dead_code, reason = "each test file uses a part")]

use flowstamp_laws::registry::SenderSpec;
use flowstamp_sim::results::{Results, Summary};
use flowstamp_sim::{Format, Loaded, ScenarioError, Simulation, load};
use std::ops::ControlFlow;
use std::path::Path;

/// The laws of the registry whose flows send by a window of their own, each with the router that its flows have by themselves.
pub fn laws() -> Vec<(&'static str, &'static str)> {
    let by_window = |law: &SenderSpec| {
        let traits = law.traits();
        !(traits.datagrams || traits.governs || traits.told)
    };
    let laws = SenderSpec::all().into_iter().filter(by_window);
    laws.map(|law| (law.name(), law.router().map_or("none", |router| router.name()))).collect()
}

/// Loads a scenario text.
pub fn try_load(text: &str) -> Result<Loaded, ScenarioError> {
    load(text, Format::Toml, "test.toml", &[], Path::new("."))
}

/// Runs a scenario text.
pub fn run(text: &str) -> Results {
    let loaded = try_load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let sim = Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"));
    sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it")
}

/// A summary as text.
pub fn timeless(summary: &Summary) -> String {
    serde_json::to_string_pretty(summary).expect("a summary is JSON")
}

//! Shared by the engine's tests.
#![allow(dead_code, reason = "each test file uses a part")]

use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::Time;
use flowstamp_sim::results::{Results, Summary};
use flowstamp_sim::{Format, Loaded, ScenarioError, Simulation, load};
use std::ops::ControlFlow;
use std::path::Path;

/// The senders of the registry that send data by a window or a rate of their own.
pub fn senders() -> Vec<SenderSpec> {
    SenderSpec::all().into_iter().filter(|law| law.traits().stands_alone()).collect()
}

/// The same senders without those that lie.
pub fn honest() -> Vec<SenderSpec> {
    senders().into_iter().filter(|law| !law.name().ends_with("-liar")).collect()
}

/// The names of senders, each with its own router's.
pub fn with_routers(senders: &[SenderSpec]) -> Vec<(&'static str, &'static str)> {
    senders.iter().map(|law| (law.name(), law.router().map_or("none", |router| router.name()))).collect()
}

/// [`senders`] with their own routers.
pub fn laws() -> Vec<(&'static str, &'static str)> {
    with_routers(&senders())
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

/// Says why a scenario text is refused, when it is read or laid out.
#[track_caller]
pub fn refusal(text: &str) -> String {
    let laid_out = try_load(text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ()));
    laid_out.expect_err(text).to_string()
}

/// Runs a scenario text in steps that end at these times.
pub fn run_in_steps(text: &str, ends: &[Time]) -> Results {
    let loaded = try_load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut sim = Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"));
    for end in ends {
        sim.run_until(*end, &mut |_| ControlFlow::Continue(())).expect("nobody stops it");
    }
    sim.results().expect("the last step is the end")
}

/// The samples of a series after `from_s` seconds.
#[track_caller]
pub fn samples(results: &Results, name: &str, metric: &str, from_s: f64) -> Vec<f64> {
    let series = &results.series;
    let key = series.keys.iter().position(|key| key.name == name && key.metric == metric);
    let key = key.unwrap_or_else(|| panic!("no {metric} of {name}")) as u32;
    let rows = (0..series.key.len()).filter(|row| series.key[*row] == key && series.time_s[*row] > from_s);
    rows.map(|row| series.value[row]).collect()
}

/// The mean of these values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

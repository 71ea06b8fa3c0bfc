//! Reading as the command does, of files in memory.

#![allow(dead_code, reason = "each target has its own part")]

use flowstamp_sim::scenario::{self, Files, FilesFrom, Format, Loaded};
use std::path::PathBuf;

pub const DUMBBELL: &str = r#"
duration = "2s"
[dumbbell]
rate = "10Mbps"
router = "xcp"
rtt = "40ms"
[[flows]]
name = "a"
law = "xcp"
"#;

pub const WEB: &str = r#"
duration = "2s"
[dumbbell]
rate = "10Mbps"
router = "rcp"
rtt = "40ms"
[[flows]]
name = "web"
law = "rcp"
[flows.web]
load = 0.5
sizes = { distribution = "empirical", file = "sizes" }
"#;

pub const LIST: &str = r#"
duration = "2s"
[graph]
links = [
    { from = "a", to = "b", rate = "10Mbps", delay = "5ms", router = "xcp" },
    { from = "b", to = "c", rate = "5Mbps", delay = "5ms" },
]
[[flows]]
name = "listed"
law = "reno"
from = "a"
to = "c"
list = "list"
"#;

pub const GRAPH: &str = r#"
duration = "2s"
[graph]
file = "graph"
delay = "1ms"
rate_key = "speed"
rate_unit = "Mbps"
ignore_columns = ["note*"]
[[flows]]
name = "a"
law = "reno"
from = "a"
to = "c"
"#;

/// The files that a scenario may name: a trace, a distribution and a list of flows.
pub fn files(trace: &str, sizes: &str) -> Files {
    let list = "start,size\n0,1000\n";
    [("trace", trace), ("sizes", sizes), ("list", list)]
        .map(|(name, text)| (PathBuf::from(name), text.to_owned()))
        .into()
}

/// Whether every number is small. Large networks would exceed a fuzzer's time and memory.
fn is_small(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => number.as_f64().is_some_and(|n| n.abs() < 2000.0),
        serde_json::Value::Array(items) => items.iter().all(is_small),
        serde_json::Value::Object(map) => map.iter().all(|(key, v)| key == "seed" || is_small(v)),
        _ => true,
    }
}

/// Reads a scenario. An error must be one line. An accepted scenario is checked as a whole, if it is small.
pub fn read(text: &str, format: Format, sets: &[(String, String)], files: &Files) -> Option<Loaded> {
    let said = |error: scenario::ScenarioError| {
        let line = error.to_string();
        assert!(!line.is_empty() && line.lines().count() == 1, "{line:?}");
    };
    let loaded =
        scenario::read(text, format, "fuzz", sets, FilesFrom::Contents(files), None).map_err(said).ok()?;
    if is_small(&loaded.scenario.to_json()) {
        let _ = flowstamp_sim::load(text, format, "fuzz", sets, files).map_err(said);
    }
    Some(loaded)
}

/// Asserts that a target starts from a valid scenario. Otherwise it would test only one error.
pub fn is_good(text: &str, sets: &[(String, String)]) {
    let good = flowstamp_sim::load(text, Format::Toml, "good", sets, &files("1\n2\n", "100 0\n2000 100\n"));
    good.unwrap_or_else(|error| panic!("{error}"));
}

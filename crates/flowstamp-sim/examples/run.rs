//! Runs one scenario and prints its summary and how long it took: the engine without Python, for benches and profiles.
//!
//! `run SCENARIO.toml [key=value ...]`

use flowstamp_sim::results::{Summary, Took};
use flowstamp_sim::{Format, Simulation, load};
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(flatten)]
    took: Took,
}

fn run() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: run SCENARIO.toml [key=value ...]")?;
    let sets: Vec<(String, String)> =
        args.filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let base = Path::new(&path).parent().unwrap_or(Path::new("."));
    let loaded = load(&text, Format::Toml, &path, &sets, base).map_err(|e| e.to_string())?;
    let sim = Simulation::new(&loaded, None).map_err(|e| e.to_string())?;
    let results = sim.run(&mut |_| ControlFlow::Continue(())).map_err(|_| "stopped".to_owned())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let output = Output { summary: &results.summary, took: results.took };
    serde_json::to_writer_pretty(&mut out, &output).map_err(|e| e.to_string())?;
    writeln!(out).and_then(|()| out.flush()).map_err(|e| e.to_string())
}

#[expect(clippy::print_stderr, reason = "a command's output")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

//! Runs one scenario and prints its summary and how long it took: the engine without Python, for benches and profiles.
//!
//! `run SCENARIO.toml [threads=N] [key=value ...]`

use flowstamp_sim::results::{Summary, Took};
use flowstamp_sim::{Balance, Divided, Format, Simulation, load};
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
    /// The number of windows of a run on several threads, and the sum of the most events of any part in each.
    windows_and_longest: Option<[u64; 2]>,
}

fn run() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: run SCENARIO.toml [threads=N] [key=value ...]")?;
    let mut sets: Vec<(String, String)> =
        args.filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
    let threads = sets.iter().position(|(key, _)| key == "threads").map(|at| sets.remove(at).1);
    let threads: usize =
        threads.map_or(Ok(1), |text| text.parse().map_err(|_| format!("threads: is {text}")))?;
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let base = Path::new(&path).parent().unwrap_or(Path::new("."));
    let loaded = load(&text, Format::Toml, &path, &sets, base).map_err(|e| e.to_string())?;
    let mut go_on = |_| ControlFlow::Continue(());
    let mut balance = None;
    let results = if threads > 1 {
        let divided = Divided::new(&loaded, None, threads).map_err(|e| e.to_string())?;
        divided.run_and_weigh(&mut go_on).map(|(results, shared)| {
            balance = Some(shared);
            results
        })
    } else {
        Simulation::new(&loaded, None).map_err(|e| e.to_string())?.run(&mut go_on)
    };
    let results = results.map_err(|_| "stopped".to_owned())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let balance = balance.map(|Balance { windows, longest, .. }| [windows, longest]);
    let output = Output { summary: &results.summary, took: results.took, windows_and_longest: balance };
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

//! Digests of all scenarios of a folder, by so many threads: `digests FOLDER THREADS`, one line each. `tools/determinism.py` compares them.

#![expect(clippy::print_stdout, reason = "what it says is what it is for")]

use flowstamp_sim::{Format, load, run_many};
use std::ops::ControlFlow;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads] = &arguments[..] else { panic!("say a folder and how many threads") };
    let (folder, threads) = (Path::new(folder), threads.parse().expect("a number of threads"));
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    let scenario = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a text");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        load(&text, Format::Toml, &name, &[], folder).unwrap_or_else(|error| panic!("{error}"))
    };
    let loaded: Vec<_> = paths.iter().map(scenario).collect();
    let results =
        run_many(&loaded, None, Some(threads), &|_, _| ControlFlow::Continue(())).expect("nobody stops it");
    for (loaded, results) in loaded.iter().zip(results) {
        println!("{} {}", loaded.source, results.digest());
    }
}

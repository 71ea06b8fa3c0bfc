//! Tests lab files with random changes. Each file is either refused in one line or a valid lab. A valid lab
//! has a scenario, or a one-line reason why not.
//!
//! `FLOWSTAMP_FUZZ_SECONDS` sets the duration and `FLOWSTAMP_FUZZ_FROM` the first seed. This does not use
//! libFuzzer as fuzz/ does, because this crate is only a program, and building it needs libelf and a compiler
//! for BPF.

#[path = "../../tests/packets/random.rs"]
mod random;

use super::file::Lab;
use random::Random;
use std::fs;
use std::path::Path;

/// Replacements for values.
const VALUES: [&str; 26] = [
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "9223372036854775807",
    "\"0s\"",
    "\"1ps\"",
    "\"213h\"",
    "\"5000h\"",
    "\"1Tbps\"",
    "\"0bps\"",
    "\"1bps\"",
    "\"0B\"",
    "\"9007199254740992B\"",
    "\"-3s\"",
    "\"\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "[[\"0s\", \"1Mbps\"]]",
    "true",
    "\"xcp\"",
    "\"cubic\"",
    "{ law = \"xcp\", gamma = 1e300 }",
    "\"1e-300s\"",
];

fn changed(random: &mut Random, files: &[String]) -> String {
    let mut lines: Vec<String> = files[random.below(files.len())].lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let at = random.below(lines.len());
        let other = files[random.below(files.len())].lines().collect::<Vec<_>>();
        match random.below(7) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[random.below(lines.len())].clone()),
            2 => lines.insert(at, other[random.below(other.len())].to_owned()),
            3 => {
                let mut text: Vec<char> = lines[at].chars().collect();
                let place = random.below(text.len() + 1);
                text.insert(
                    place,
                    ['"', '\'', '[', ']', '{', '}', '=', '.', '#', '\u{0}', '\u{fffd}', '9']
                        [random.below(12)],
                );
                lines[at] = text.into_iter().collect();
            }
            _ => {
                if let Some((key, _)) = lines[at].clone().split_once('=') {
                    lines[at] = format!("{key}= {}", VALUES[random.below(VALUES.len())]);
                }
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the duration is given in seconds")]
fn mutated_files_are_labs_or_refused_in_a_line() {
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/labs");
    let entries = fs::read_dir(&labs).expect("labs").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    let files: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).expect("a text")).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seconds, from) = (number("FLOWSTAMP_FUZZ_SECONDS"), number("FLOWSTAMP_FUZZ_FROM").unwrap_or(0));
    // In a directory without the labs' traces.
    let path = std::env::temp_dir().join(format!("flowstamp-lab-{}.toml", std::process::id()));
    let began = std::time::Instant::now();
    let (mut seen, mut accepted) = (0u64, 0u64);
    while seconds.map_or(seen < 2000, |s| began.elapsed().as_secs() < s) {
        let text = changed(&mut Random(from + seen), &files);
        fs::write(&path, &text).expect("written");
        let what = std::panic::catch_unwind(|| match Lab::read(&path) {
            Ok(lab) => (true, lab.scenario().err()),
            Err(refusal) => (false, Some(refusal.0)),
        });
        let seed = from + seen;
        let (is_lab, said) = what.unwrap_or_else(|_| panic!("seed {seed} panics: {text}"));
        if let Some(line) = said {
            assert!(!line.is_empty() && line.lines().count() == 1, "seed {seed}: {line:?} of {text}");
        }
        accepted += u64::from(is_lab);
        seen += 1;
    }
    let _ = fs::remove_file(&path);
    println!("{seen} files from seed {from}: {accepted} are labs");
    assert!(accepted > seen / 50 && accepted < seen, "{accepted} of {seen}");
}

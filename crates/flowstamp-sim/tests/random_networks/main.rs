//! Random networks: scenarios drawn from the schema, each of which must be refused in one clear line or keep every
//! invariant of [`check`]. A failing scenario is printed with its seed, as drawn and as small as possible.
//!
//! ```text
//! cargo test -p flowstamp-sim --test random_networks                            the same cases each time
//! FLOWSTAMP_FUZZ_SEED=4711 cargo test -p flowstamp-sim --test random_networks   one case
//! make fuzz FUZZ_SECONDS=3600                                                   new cases for that long
//! ```
#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without")]

mod cells;
mod check;
mod draw;
mod impairments;
mod lists;
mod memory;
mod operations;
mod pauses;
mod quiet;
mod schema;
mod shrink;

use check::{Failure, Outcome, Ran, case};
use draw::Registry;
use flowstamp_sim::{Divided, Simulation, run_many};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use toml::{Table, Value};

/// Cases of a run that is not told otherwise: about 20 seconds of CPU time. With `FLOWSTAMP_NIGHTLY=1` there are twice as
/// many. `.ci/run` has 3,000 for each change, without debug assertions.
const CASES: u64 = 250;
/// Cases between two looks at the clock, and at the runs of several threads.
const ROUND: u64 = 50;

/// Where the files are that scenarios name.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random_networks/data")
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}; it must be a whole number")))
}

/// The results of many cases.
#[derive(Default)]
struct Tally {
    refused: u64,
    endless: u64,
    ran: u64,
    watched: u64,
    events: u64,
    threads: u64,
    /// Runs of which each was also done by several threads.
    divided: u64,
    /// How often each law, router, queue and scheduler was in a run.
    used: BTreeMap<String, u64>,
    /// How often each reason for refusal came, by its beginning.
    reasons: BTreeMap<String, u64>,
}

#[test]
fn random_networks_keep_every_invariant() {
    let registry = Registry::new();
    if let Some(seed) = from_environment("FLOWSTAMP_FUZZ_SEED") {
        if let Err(failure) = try_one(&registry, seed) {
            report(&registry, &[(seed, &failure)]);
        }
        return;
    }
    let first = from_environment("FLOWSTAMP_FUZZ_FROM").unwrap_or(0);
    let limit = from_environment("FLOWSTAMP_FUZZ_SECONDS").map(Duration::from_secs);
    let nightly = from_environment("FLOWSTAMP_NIGHTLY").is_some();
    let cases = from_environment("FLOWSTAMP_FUZZ_CASES").unwrap_or(if nightly { 2 * CASES } else { CASES });
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to go on is said in seconds; no case depends on it"
    )]
    let clock = Instant::now();
    let mut tally = Tally::default();
    let mut seed = first;
    while limit.map_or(seed < first + cases, |limit| clock.elapsed() < limit) {
        let seeds: Vec<u64> = (seed..seed + ROUND).collect();
        let results: Vec<_> = seeds.par_iter().map(|s| try_one(&registry, *s)).collect();
        let cases = || seeds.iter().zip(&results);
        let failures: Vec<_> = cases().filter_map(|(s, r)| Some((*s, r.as_ref().err()?))).collect();
        if !failures.is_empty() {
            report(&registry, &failures);
        }
        for (seed, outcome) in cases().filter_map(|(s, r)| Some((*s, r.as_ref().ok()?))) {
            count(&mut tally, &draw::scenario(&registry, seed), outcome);
        }
        same_on_all_threads(&seeds, &results, &mut tally);
        seed += ROUND;
    }
    summarise(&registry, &tally, seed - first);
}

fn try_one(registry: &Registry, seed: u64) -> Result<Outcome, Failure> {
    quiet::quietly(|| case(&draw::scenario(registry, seed), &folder()))
}

/// Fails with these cases: the first of each kind as it is and as small as it can be made.
fn report(registry: &Registry, failures: &[(u64, &Failure)]) -> ! {
    let mut kinds: BTreeMap<&str, Vec<(u64, &Failure)>> = BTreeMap::new();
    for (seed, failure) in failures {
        kinds.entry(&failure.kind).or_default().push((*seed, failure));
    }
    let text = |t: &Table| toml::to_string(t).unwrap_or_default();
    let mut told = String::new();
    for (kind, cases) in kinds {
        let (seed, failure) = cases[0];
        let tree = draw::scenario(registry, seed);
        let fails = |t: &Table| quiet::quietly(|| case(t, &folder()).err());
        let (small, as_small, runs) = shrink::shrink(tree.clone(), failure.clone(), &fails);
        let seeds: Vec<_> = cases.iter().map(|c| c.0).collect();
        told += &format!(
            "\n## {kind}: seeds {seeds:?}\n## seed {seed}: {}\n\n{}\n## shrunk in {runs} runs: {}\n\n{}",
            failure.text,
            text(&tree),
            as_small.text,
            text(&small),
        );
    }
    panic!(
        "{told}\n## files are in {}; again: FLOWSTAMP_FUZZ_SEED=... cargo test -p flowstamp-sim --test random_networks",
        folder().display()
    );
}

fn count(tally: &mut Tally, tree: &Table, outcome: &Outcome) {
    match outcome {
        Outcome::Refused(line) => {
            tally.refused += 1;
            let reason = line.split(['"', ';']).next().unwrap_or_default();
            let reason = reason.replace(|c: char| c.is_ascii_digit(), "#");
            *tally.reasons.entry(reason).or_default() += 1;
        }
        Outcome::Endless => tally.endless += 1,
        Outcome::Ran(ran) => {
            tally.ran += 1;
            tally.watched += ran.watched;
            tally.events += ran.events;
            let mut words = Vec::new();
            check::words(&Value::Table(tree.clone()), &mut words);
            words.sort();
            words.dedup();
            words.extend(ran.pauses.iter().map(|word| (*word).to_owned()));
            words.into_iter().for_each(|w| *tally.used.entry(w).or_default() += 1);
        }
    }
}

/// A quarter of the runs again, side by side on one, two and four threads, each on several threads, part by part, and without the engine's short cuts: the same bits.
fn same_on_all_threads(seeds: &[u64], results: &[Result<Outcome, Failure>], tally: &mut Tally) {
    let ran: Vec<(u64, &Ran)> = seeds
        .iter()
        .zip(results)
        .filter_map(|(s, r)| match r {
            Ok(Outcome::Ran(ran)) if s % 4 == 0 => Some((*s, &**ran)),
            _ => None,
        })
        .collect();
    let loaded: Vec<_> = ran.iter().map(|(_, r)| r.loaded.clone()).collect();
    for threads in [1, 2, 4] {
        let again = run_many(&loaded, None, Some(threads), &|_, _| ControlFlow::Continue(()));
        let again = again.expect("nobody stops it");
        for ((seed, ran), again) in ran.iter().zip(&again) {
            assert_eq!(ran.digest, again.digest(), "seed {seed} gives other bits on {threads} threads");
        }
    }
    // One after the other, because each takes several threads.
    let divided = ran.iter().map(|(seed, ran)| {
        // Some networks cannot be divided.
        let Ok(divided) = Divided::as_large(&ran.loaded, 2 + (*seed as usize / 4) % 3) else { return 0 };
        let whole = Simulation::new(&ran.loaded, None).expect("it ran before").as_large();
        let whole = whole.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it").digest();
        let run = || divided.run(&mut |_| ControlFlow::Continue(()));
        let again = std::panic::catch_unwind(AssertUnwindSafe(run));
        let again = again.unwrap_or_else(|_| panic!("seed {seed} fails in parts")).expect("nobody stops it");
        assert_eq!(whole, again.digest(), "seed {seed} gives other bits in parts");
        let count = 2 + (*seed as usize / 8) % 5;
        // In half of them, rounds end because no part ever has so many events.
        let fewest = if *seed % 8 == 0 { 0 } else { 1 << 40 };
        if let Ok(rounds) = Simulation::in_rounds(&ran.loaded, count, fewest) {
            let run = || rounds.run(&mut |_| ControlFlow::Continue(()));
            let again = std::panic::catch_unwind(AssertUnwindSafe(run));
            let again =
                again.unwrap_or_else(|_| panic!("seed {seed} fails in rounds")).expect("nobody stops it");
            assert_eq!(whole, again.digest(), "seed {seed} gives other bits in rounds");
        }
        1
    });
    tally.divided += divided.sum::<u64>();
    ran.par_iter().for_each(|(seed, ran)| {
        let sim = Simulation::new(&ran.loaded, None).expect("it ran before").one_by_one();
        let again = sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
        assert_eq!(ran.digest, again.digest(), "seed {seed} gives other bits packet by packet");
    });
    tally.threads += ran.len() as u64;
}

/// Says what was tried, and fails if that was no test.
fn summarise(registry: &Registry, tally: &Tally, cases: u64) {
    let Tally { refused, endless, ran, watched, events, threads, divided, used, reasons } = tally;
    let mut reasons: Vec<_> = reasons.iter().collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let reasons: Vec<_> = reasons.iter().take(20).map(|(r, n)| format!("{n:6} {r}")).collect();
    let told = format!(
        "{cases} cases: {ran} ran ({events} events), {refused} refused, {endless} too long; {threads} again on 1, 2 and 4 \
         threads, {divided} of them in parts; {watched} flows held to progress; in use: {used:?}\nrefused:\n{}",
        reasons.join("\n")
    );
    #[expect(
        clippy::print_stderr,
        reason = "what was covered is what the reader of a long run wants to know"
    )]
    {
        eprintln!("{told}");
    }
    if cases < 1000 {
        return;
    }
    assert!(refused * 3 < cases, "too many are refused: {told}");
    assert!(endless * 20 < cases, "too many are too long: {told}");
    assert!(
        *watched > cases / 50 && *threads > cases / 20 && *divided > cases / 100,
        "too little is checked: {told}"
    );
    for list in lists::LISTS.into_iter().chain([operations::LIST]) {
        assert!(used.get(&format!("list {list}")).is_some_and(|n| *n > 0), "{list} is in no run: {told}");
    }
    for (standard, _) in cells::STANDARDS {
        let n = used.get(&format!("mac {standard}")).copied().unwrap_or(0);
        assert!(n > 0, "no cell of {standard} is in any run: {told}");
    }
    let ampdus = used.get("ampdu frames").copied().unwrap_or(0);
    assert!(ampdus > cases / 100, "A-MPDUs are in {ampdus} runs: {told}");
    for impairment in [
        "loss",
        "duplicate",
        "reorder",
        "detours",
        "burst_loss",
        "lost_packets",
        "mark",
        "jitter",
        "delays",
        "outages",
    ] {
        let n = used.get(&format!("impairment {impairment}")).copied().unwrap_or(0);
        assert!(n > cases / 100, "{impairment} is in {n} runs: {told}");
    }
    let paused = used.get("pfc pauses").copied().unwrap_or(0);
    assert!(paused > cases / 50, "links are paused in {paused} runs: {told}");
    for (key, spec) in
        [("law", "SenderSpec"), ("router", "RouterSpec"), ("queue", "QueueSpec"), ("share", "ShareSpec")]
    {
        for (name, _) in schema::variants(&registry.schema, spec) {
            let n = used.get(&format!("{key} {name}")).copied().unwrap_or(0);
            // A name that no sender may use beside its router, as `router = "reno"` was, is not drawn.
            let usable = key != "router" || registry.routers.iter().any(|(r, s)| r == name && !s.is_empty());
            assert!(n > 0 || !usable, "{key} {name} is in no run: {told}");
        }
    }
}

/// The bound on memory is one on what is counted.
#[test]
fn memory_is_counted() {
    let (held, _) = memory::of_this_thread();
    drop(vec![1u8; 10 << 20]);
    let (after, peak) = memory::of_this_thread();
    assert!(peak >= held + (10 << 20) && after < held + (10 << 20), "{held}, {peak}, {after}");
}

/// A fuzzer that cannot fail finds nothing: a made-up fault is found, and shrunk to what it needs.
#[test]
fn a_failing_scenario_is_shrunk_to_what_it_needs() {
    let registry = Registry::new();
    // It fails where a flow goes back and a packet is at least 300 bytes.
    let fails = |t: &Table| {
        let back =
            t.get("flows")?.as_array()?.iter().any(|g| g.get("reverse") == Some(&Value::Boolean(true)));
        let bytes: f64 = t.get("packet")?.as_str()?.trim_end_matches('B').parse().ok()?;
        (back && bytes >= 300.0).then(|| Failure { kind: "made up".into(), text: String::new() })
    };
    let tree =
        (0..).map(|seed| draw::scenario(&registry, seed)).find(|t| fails(t).is_some()).expect("endless");
    let failure = fails(&tree).expect("found");
    let (small, _, _) = shrink::shrink(tree, failure, &fails);
    let expected: Table = "packet = \"300B\"\nflows = [{ reverse = true }]".parse().expect("TOML");
    let bytes: f64 = small["packet"].as_str().expect("text").trim_end_matches('B').parse().expect("a number");
    assert!((300.0..600.0).contains(&bytes), "{small}");
    assert_eq!(small["flows"], expected["flows"], "{small}");
    assert_eq!(small.len(), 2, "{small}");
}

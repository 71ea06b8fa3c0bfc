//! Golden runs: small scenarios of every kind, in `golden/`, whose results are known to the bit.
//!
//! A change that only rearranges the code leaves `golden/digests.txt` as it is. One that changes behaviour on purpose
//! changes it and `golden/table.txt`, which shows what changed, in a commit of its own that says why:
//!
//! ```text
//! FLOWSTAMP_ACCEPT=1 cargo test -p flowstamp-sim --test golden
//! ```
//!
//! Each sender of the registry has a scenario with its own router and one with each other router of its header. Their digests are in
//! `golden/laws.txt`. A new law has none: its runs only have to be the same twice and conserve packets. `make bless` runs the command
//! above, which records the digests. A long test fails until they are recorded, so no law goes in without
//! them.

use flowstamp_laws::registry::{QueueSpec, RouterSpec, SenderSpec, ShareSpec};
use flowstamp_laws::sender::Recovery;
use flowstamp_sim::results::{LinkSummary, Results};
use flowstamp_sim::scenario::{Arrivals, Link, LinkRate, Scenario, Sizes};
use flowstamp_sim::{Format, Loaded, load, run_many};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// All golden scenarios by name.
fn scenarios() -> BTreeMap<String, Loaded> {
    let entries = std::fs::read_dir(folder()).expect("the folder of golden scenarios");
    let paths =
        entries.map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "toml"));
    paths
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a text");
            let loaded = load(&text, Format::Toml, &name, &[], &folder()).unwrap_or_else(|e| panic!("{e}"));
            (name, loaded)
        })
        .collect()
}

/// The results of all golden scenarios by name. The tests share one run of them.
fn results() -> &'static BTreeMap<String, Results> {
    static RESULTS: LazyLock<BTreeMap<String, Results>> = LazyLock::new(|| {
        let (names, loaded): (Vec<_>, Vec<_>) = scenarios().into_iter().unzip();
        let results =
            run_many(&loaded, None, Some(2), &|_, _| ControlFlow::Continue(())).expect("nobody stops it");
        names.into_iter().zip(results).collect()
    });
    &RESULTS
}

/// Whether a change is meant.
fn accepts() -> bool {
    std::env::var_os("FLOWSTAMP_ACCEPT").is_some()
}

/// Compares lines with a file of `golden/`; writes the file instead where a change is meant.
fn as_known(file: &str, columns: &str, lines: &[String]) {
    let path = folder().join(file);
    if accepts() {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap_or_else(|e| panic!("golden/{file}: {e}"));
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("golden/{file}: {e}"));
    let known: BTreeSet<&str> = known.lines().collect();
    let now: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    let changed: Vec<_> = now.difference(&known).collect();
    let was: Vec<_> = known.difference(&now).collect();
    assert!(
        changed.is_empty() && was.is_empty(),
        "{columns}; now {changed:#?}, known {was:#?}; seed 1. Where the change is meant: FLOWSTAMP_ACCEPT=1 cargo test \
         -p flowstamp-sim --test golden, in a commit that says why"
    );
}

#[test]
fn results_are_those_known_to_the_bit() {
    let line = |(name, results): (&String, &Results)| format!("{name} {}", results.digest());
    let lines: Vec<String> = results().iter().map(line).collect();
    as_known("digests.txt", "name, then digests of summary, flows, series, capture", &lines);
}

/// A scenario for each sender law on the default router of its flows, and on each other router of its header. A law that
/// governs a link needs a network of its own: `golden/` has one for each.
fn of_the_registry() -> BTreeMap<String, Loaded> {
    let senders: Vec<_> = SenderSpec::all().into_iter().filter(|law| !law.traits().governs).collect();
    let routers = RouterSpec::all();
    for router in &routers {
        let has_sender = senders.iter().any(|sender| sender.header() == router.header());
        assert!(has_sender, "{}: no sender has its header", router.name());
    }
    let mut found = BTreeMap::new();
    for sender in senders {
        let (law, own) = (sender.name(), sender.router().map_or("none", |router| router.name()));
        let others =
            routers.iter().filter(|router| router.header() == sender.header() && router.name() != own);
        for router in others.map(RouterSpec::name).chain([own]) {
            let name = if router == own { law.to_owned() } else { format!("{law}-on-{router}") };
            let text = law_alone(&sender, router);
            let loaded =
                load(&text, Format::Toml, &name, &[], &folder()).unwrap_or_else(|e| panic!("{name}: {e}"));
            found.insert(name, loaded);
        }
    }
    found
}

/// Names of the laws' scenarios with a recorded digest.
fn recorded() -> BTreeSet<String> {
    let lines = std::fs::read_to_string(folder().join("laws.txt")).unwrap_or_default();
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Long flows both ways and short ones, or datagrams, of one law.
fn law_alone(sender: &SenderSpec, router: &str) -> String {
    let law = sender.name();
    let more = if sender.traits().datagrams {
        "rate = \"4Mbps\"".to_owned()
    } else {
        let sizes = "{ distribution = \"exponential\", mean = \"20kB\" }";
        format!(
            "[[flows]]\nname = \"back\"\nlaw = \"{law}\"\nreverse = true\n\
             [[flows]]\nname = \"web\"\nlaw = \"{law}\"\nweb = {{ flows_per_s = 10.0, sizes = {sizes} }}"
        )
    };
    format!(
        "duration = \"4s\"\nprobes = {{ every = \"100ms\", flows = true, laws = true }}\n\
         [dumbbell]\nrate = \"10Mbps\"\nrtt = \"40ms\"\nbuffer = \"1BDP\"\nrouter = \"{router}\"\n\
         [[flows]]\nname = \"long\"\nlaw = \"{law}\"\ncount = 3\nevery = \"500ms\"\n{more}\n"
    )
}

#[test]
fn every_law_of_the_registry_gives_what_it_gave() {
    let (names, loaded): (Vec<_>, Vec<_>) = of_the_registry().into_iter().unzip();
    let run = |threads| {
        run_many(&loaded, None, Some(threads), &|_, _| ControlFlow::Continue(())).expect("nobody stops it")
    };
    let recorded = recorded();
    let mut lines = Vec::new();
    for (name, (once, again)) in names.iter().zip(run(1).iter().zip(&run(2))) {
        let (groups, packets) = (&once.summary.groups, once.summary.packets.expect("a whole run"));
        assert!(packets.arrived > 100, "{name}: {packets:?}");
        assert!(packets.arrived + packets.lost <= packets.sent, "{name}: {packets:?}");
        assert!(groups.values().all(|g| g.goodput_bps > 0.0), "{name}: a group got nothing");
        assert_eq!(once.digest(), again.digest(), "{name}: two runs of the same differ");
        if accepts() || recorded.contains(name) {
            lines.push(format!("{name} {}", once.digest()));
        }
    }
    as_known("laws.txt", "name, then digests of summary, flows, series, capture", &lines);
}

#[test]
#[ignore = "long: a law that is being written has no digests yet"]
fn every_law_has_its_digests() {
    let recorded = recorded();
    let missing: Vec<_> = of_the_registry().into_keys().filter(|name| !recorded.contains(name)).collect();
    assert!(missing.is_empty(), "golden/laws.txt lacks {missing:?}; make bless records them");
}

/// Shows a change to reviewers: a line for each scenario in `golden/table.txt`.
#[test]
fn the_table_shows_what_changed() {
    let header = format!(
        "{:25} {:18} {:>8} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "# scenario",
        "busiest link",
        "utilised",
        "mean queue B",
        "p95 queue B",
        "drops",
        "marks",
        "retrans.",
        "Jain",
        "Mb/s"
    );
    let lines =
        [header.clone()].into_iter().chain(results().iter().map(|(name, results)| row(name, results)));
    as_known("table.txt", &header, &lines.collect::<Vec<_>>());
}

/// The link that was used most; drops and marks of all links, retransmissions of all flows, the least of the groups' Jain indices.
fn row(name: &str, results: &Results) -> String {
    let summary = &results.summary;
    let used = |link: &LinkSummary| link.utilization;
    let (link, busiest) = summary
        .links
        .iter()
        .max_by(|(_, a), (_, b)| used(a).total_cmp(&used(b)))
        .expect("a scenario has a router link");
    let jain = summary.groups.values().filter_map(|group| group.jain_index).min_by(f64::total_cmp);
    let jain = jain.map_or_else(|| "-".to_owned(), |jain| format!("{jain:.4}"));
    let marks: u64 = summary.links.values().map(|link| link.marks).sum();
    let retransmissions: u64 = summary.groups.values().map(|group| group.retransmissions).sum();
    format!(
        "{name:25} {link:18} {:8.4} {:12.0} {:12.0} {:8} {marks:8} {retransmissions:8} {jain:>8} {:10.3}",
        busiest.utilization,
        busiest.mean_queue_bytes,
        busiest.p95_queue_bytes,
        summary.total.drops,
        summary.total.goodput_bps / 1e6,
    )
}

/// Every word that a scenario may use for a law that governs a link, a queue, a scheduler, a repair or a kind of network occurs.
#[test]
fn nothing_that_a_scenario_can_name_is_missing() {
    let all: Vec<Scenario> = scenarios().into_values().map(|l| l.scenario).collect();
    assert!(all.len() >= 30, "{}", all.len());
    let toml = all.iter().map(toml_of).collect::<String>();
    for law in SenderSpec::all().into_iter().filter(|law| law.traits().governs) {
        assert!(toml.contains(&format!("law = \"{}\"", law.name())), "{}", law.name());
    }
    for queue in QueueSpec::NAMES {
        assert!(toml.contains(&format!("kind = \"{queue}\"")), "{queue}");
    }
    for scheduler in ShareSpec::NAMES {
        assert!(toml.contains(&format!("scheduler = \"{scheduler}\"")), "{scheduler}");
    }
    let recoveries: Vec<_> = all.iter().flat_map(|s| &s.flows).filter_map(|g| g.transport.recovery).collect();
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Count] {
        assert!(recoveries.contains(&recovery), "{recovery:?}");
    }
    let has = |what: &str, which: &dyn Fn(&Scenario) -> bool| assert!(all.iter().any(which), "{what}");
    has("a dumbbell", &|s| s.dumbbell.is_some());
    has("a parking lot", &|s| s.parking_lot.is_some());
    has("a graph", &|s| s.graph.is_some());
    has("a capture", &|s| s.capture.is_some());
    has("a police", &|s| s.dumbbell.as_ref().is_some_and(|d| d.police.is_some()));
    let impaired = |l: &Link| l.impairments.is_some();
    has("impairments", &|s| s.graph.as_ref().is_some_and(|g| g.links.iter().any(impaired)));
    let rate = |s: &Scenario, f: &dyn Fn(&LinkRate) -> bool| s.dumbbell.as_ref().is_some_and(|d| f(&d.rate));
    has("steps", &|s| rate(s, &|r| matches!(r, LinkRate::Varying(v) if v.steps.is_some())));
    has("a trace", &|s| rate(s, &|r| matches!(r, LinkRate::Varying(v) if v.trace.is_some())));
    has("an application's rate", &|s| s.flows.iter().any(|g| g.rate.is_some()));
    has("a transfer", &|s| s.flows.iter().any(|g| g.size.is_some()));
    has("a stop", &|s| s.flows.iter().any(|g| g.stop.is_some()));
    let webs: Vec<_> = all.iter().flat_map(|s| &s.flows).filter_map(|g| g.web.as_ref()).collect();
    let web = |what: &str, which: fn(&Sizes) -> bool| assert!(webs.iter().any(|w| which(&w.sizes)), "{what}");
    web("fixed", |s| matches!(s, Sizes::Fixed { .. }));
    web("uniform", |s| matches!(s, Sizes::Uniform { .. }));
    web("exponential", |s| matches!(s, Sizes::Exponential { .. }));
    web("pareto", |s| matches!(s, Sizes::Pareto { .. }));
    web("empirical", |s| matches!(s, Sizes::Empirical { .. }));
    for arrivals in [Arrivals::Poisson, Arrivals::Pareto { shape: 1.5 }] {
        assert!(webs.iter().any(|w| w.arrivals == arrivals), "{arrivals:?}");
    }
}

fn toml_of(scenario: &Scenario) -> String {
    toml::to_string(scenario).expect("a scenario is TOML")
}

/// A golden run that moves no packet, or loses none where losses are its point, would guard nothing.
#[test]
fn golden_runs_have_something_to_guard() {
    let results = results();
    for (name, r) in results {
        assert!(
            r.summary.packets.expect("a whole run").arrived > 100,
            "{name}: {} packets",
            r.summary.packets.expect("a whole run").arrived
        );
        assert!(
            r.summary
                .groups
                .values()
                .all(|g| g.goodput_bps > 0.0 || g.completed > 0 || g.law.ends_with("-edge")), // it has no data
            "{name}: a group got nothing"
        );
    }
    for name in
        ["rcp-small-buffer", "recovery-crossed", "sack-no-limited-transmit", "reno", "highspeed", "capture"]
    {
        assert!(results[name].summary.packets.expect("a whole run").lost > 0, "{name}: nothing was lost");
    }
    let switched = &results["rcp-switch"].flows;
    assert!(switched.iter().any(|f| f.switched_s.get().is_some()), "no flow left RCP");
    let i = results["impaired"].summary.links["first"].impaired.expect("it is");
    assert!(
        i.lost > 0 && i.duplicated > 0 && i.reordered > 0 && i.detoured > 0,
        "nothing was impaired: {i:?}"
    );
    assert!(!results["capture"].capture.packets.is_empty());
    let marks: u64 = results["sack-red"].summary.links.values().map(|l| l.marks).sum();
    assert!(marks > 0, "RED marked nothing");
}

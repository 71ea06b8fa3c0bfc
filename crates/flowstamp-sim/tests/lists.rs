//! Flows that a file lists.

mod common;

use common::laws;
use flowstamp_sim::results::{FlowRow, Results};
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Format, Simulation, load};
use proptest::prelude::*;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

fn try_run(text: &str, list: &str) -> Result<Results, String> {
    let files = Files::from([(PathBuf::from("flows.csv"), list.to_owned())]);
    let loaded = load(text, Format::Toml, "test.toml", &[], &files).map_err(|e| e.to_string())?;
    let sim = Simulation::new(&loaded, None).map_err(|e| e.to_string())?;
    Ok(sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it"))
}

fn run(text: &str, list: &str) -> Results {
    try_run(text, list).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn refused(text: &str, list: &str) -> String {
    try_run(text, list).err().unwrap_or_else(|| panic!("not refused: {text}{list}"))
}

/// Rows of flows without their numbers, which are those of the file or of the arrivals.
fn rows(results: &Results) -> Vec<FlowRow> {
    results.flows.iter().map(|f| FlowRow { flow: 0, index: 0, ..f.clone() }).collect()
}

fn as_text(rows: &[FlowRow]) -> String {
    serde_json::to_string_pretty(rows).expect("rows are JSON")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Flows that arrived at random in one run, and are listed for another in any order, have the same completion times
    /// to the bit.
    #[test]
    fn a_list_of_what_arrived_gives_the_same(
        law in prop::sample::select(laws()),
        load in 0.1..0.95f64, rate in 1.0..30.0f64, rtt in 5u32..100, buffer in 3u32..100, seed in any::<u32>(),
        shift in 0usize..1000,
    ) {
        let (law, router) = law;
        let scenario = |what: &str| format!(r#"
            duration = "3s"
            warmup = "300ms"
            seed = {seed}
            [dumbbell]
            rate = "{rate}Mbps"
            rtt = "{rtt}ms"
            buffer = "{buffer}pkt"
            router = "{router}"
            queue = {{ kind = "red" }}
            [[flows]]
            name = "back"
            law = "{law}"
            reverse = true
            [[flows]]
            name = "short"
            law = "{law}"
            {what}
        "#);
        let web = format!(r#"web = {{ load = {load}, sizes = {{ distribution = "pareto", mean = "20kB", shape = 1.3 }} }}"#);
        let random = run(&scenario(&web), "");
        let flows: Vec<&FlowRow> = random.flows.iter().filter(|f| &*f.group == "short").collect();
        prop_assume!(!flows.is_empty());
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.rotate_left(shift % flows.len());
        let mut list = "size,start\n".to_owned();
        for f in order.iter().map(|i| flows[*i]) {
            writeln!(list, "{},{}", f.size_bytes.expect("a size"), f.start_s).expect("a string takes all");
        }
        let listed = run(&scenario("list = \"flows.csv\""), &list);
        let others = random.flows.len() - flows.len();
        let (random_rows, listed_rows) = (rows(&random), rows(&listed));
        prop_assert_eq!(as_text(&random_rows[..others]), as_text(&listed_rows[..others]));
        for (i, row) in order.into_iter().zip(&listed_rows[others..]) {
            prop_assert_eq!(as_text(&random_rows[others + i..=others + i]), as_text(std::slice::from_ref(row)));
        }
        let of = |r: &Results| r.summary.groups["short"].littles_law.map(|law| law.unaccounted);
        prop_assert_eq!(of(&random), of(&listed));
        prop_assert_eq!(random.digest().series, listed.digest().series);
    }
}

const GRAPH: &str = r#"
    duration = "4s"
    [graph]
    links = [
        { from = "a", to = "b", rate = "20Mbps", delay = "3ms", buffer = "40pkt", router = "xcp" },
        { from = "b", to = "c", rate = "8Mbps", delay = "2ms", buffer = "40pkt" },
    ]
"#;

/// A list is what groups of transfers are that say the same, with a list of starts.
#[test]
fn a_list_is_as_good_as_groups() {
    let listed = run(
        &format!(
            "{GRAPH}\n[[flows]]\nname = \"all\"\nlaw = \"reno\"\nto = \"c\"\nfrom = \"a\"\nlist = \"flows.csv\""
        ),
        "start,size,from,to,law\n\
         0.5,300kB,,,\n\
         10ms,200000,a,b,xcp\n\
         20ms,200000,a,b,xcp\n\
         1.25,100000,c,a,cubic\n\
         0.7,300kB,,,reno\n\
         0.3,100000,c,a,cubic\n",
    );
    let groups = run(
        &format!(
            "{GRAPH}\n\
             [[flows]]\nname = \"x\"\nlaw = \"reno\"\nfrom = \"a\"\nto = \"c\"\ncount = 2\nsize = \"300kB\"\nstart = [\"500ms\", \"700ms\"]\n\
             [[flows]]\nname = \"y\"\nlaw = \"xcp\"\nfrom = \"a\"\nto = \"b\"\ncount = 2\nsize = \"200kB\"\nstart = \"10ms\"\nevery = \"10ms\"\n\
             [[flows]]\nname = \"z\"\nlaw = \"cubic\"\nfrom = \"c\"\nto = \"a\"\ncount = 2\nsize = \"100kB\"\nstart = [\"1250ms\", \"300ms\"]\n"
        ),
        "",
    );
    let [x, y, z] =
        ["x", "y", "z"].map(|g| groups.flows.iter().filter(move |f| &*f.group == g).collect::<Vec<_>>());
    let as_listed = [x[0], y[0], y[1], z[0], x[1], z[1]];
    assert_eq!(listed.flows.len(), as_listed.len());
    for (number, (row, other)) in (0..).zip(listed.flows.iter().zip(as_listed)) {
        assert_eq!((&*row.group, row.index), ("all", number));
        assert_eq!(row.law, other.law);
        assert!(row.fct_s.is_some(), "{row:?}");
        assert_eq!((row.start_s, row.fct_s, row.size_bytes), (other.start_s, other.fct_s, other.size_bytes));
        assert_eq!(
            (row.retransmissions, row.min_rtt_s.get()),
            (other.retransmissions, other.min_rtt_s.get())
        );
    }
    let all = &listed.summary.groups["all"];
    assert_eq!(all.law, "reno, xcp, cubic");
    assert_eq!((all.flows, all.completed), (6, 6));
    assert_eq!(all.mean_size_bytes, Some(200_000.0));
    assert_eq!(all.capacity_bps, 8e6);
    // The two of 300 kB, whole packets of 1000 B with 40 B of headers among them, over b to c in 4 s.
    let wire = 2.0 * (300e3 + 40.0 * 313.0);
    assert!((all.offered_load - 8.0 * wire / 4.0 / 8e6).abs() < 1e-12, "{}", all.offered_load);
    assert!(listed.summary.flows.is_empty());
}

/// A list in the format of HPCC's simulator is the same flows as a list with names of columns.
#[test]
fn hpccs_format_gives_the_same() {
    let text = "duration = \"1ms\"\n[fat_tree]\nk = 4\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
        [[flows]]\nname = \"all\"\nlaw = \"dctcp\"\nlist = \"flows.csv\"";
    let ours = run(text, "start,size,from,to\n0.0001,20000,h0,h15\n0.00005,1000000,h3,h2\n");
    let theirs = run(text, "2\n0 15 3 100 20000 0.0001\n3 2 3 100 1000000 0.00005\n0 1 these are notes\n");
    assert_eq!(as_text(&rows(&ours)), as_text(&rows(&theirs)));
    assert_eq!(rows(&ours).iter().filter(|row| row.end_s.is_some()).count(), 2);
    let error = refused(text, "1\n0 16 3 100 20000 0.0001\n");
    assert!(
        error.contains("\"flows.csv\": line 2: to is \"h16\", which is not a node; use one of"),
        "{error}"
    );
}

#[test]
fn what_would_start_too_late_does_not() {
    let text = format!(
        "{GRAPH}\n[[flows]]\nname = \"all\"\nlaw = \"reno\"\nfrom = \"a\"\nto = \"c\"\nlist = \"flows.csv\"\nstart = \"1s\"\nstop = \"2s\""
    );
    let results = run(&text, "start,size\n0.5,1000\n1,1000\n0.999,1000\n7,1000\n0,100MB\n");
    let ended: Vec<bool> = results.flows.iter().map(|f| f.end_s.is_some()).collect();
    assert_eq!(ended, [true, false, true, false, false]);
    let all = &results.summary.groups["all"];
    assert_eq!((all.flows, all.completed), (3, 2));
    assert_eq!(all.littles_law.expect("flows were there").unaccounted, 0.0);
    assert_eq!(
        results.summary.warnings,
        ["flows.all.list: 2 of 5 flows would start at 2s or later, and do not; set stop to more than 8s"]
    );
    assert_eq!(results.flows[3].start_s, 8.0);
    assert_eq!(results.flows[3].delivered_bytes, 0);
}

#[test]
fn what_is_wrong_is_named() {
    let group =
        "\n[[flows]]\nname = \"all\"\nlaw = \"reno\"\nfrom = \"a\"\nto = \"c\"\nlist = \"flows.csv\"\n";
    let good = "start,size\n0,1000\n";
    for (more, list, words) in [
        (
            "",
            "start,size\n0,1000\n1,\n",
            "flows.all.list: \"flows.csv\": line 3: size is \"\"; write whole bytes",
        ),
        (
            "",
            "start,size,to\n0,1000,c\n0,1,x\n",
            "line 3: to is \"x\", which is not a node; use one of a, b, c",
        ),
        ("", "start,size,to\n0,1000,a\n", "line 2: to is \"a\", where the flow starts"),
        (
            "",
            "start,size,law\n0,1,\n0,1,rcp\n",
            "line 3: law: \"rcp\" obeys routers, but no link on the path has",
        ),
        ("transport = { recovery = \"count\" }", good, "flows.all.transport.recovery"),
        ("size = \"1kB\"", good, "flows.all.size: is not for a list"),
        ("every = \"1s\"", good, "flows.all.every: is not for a list"),
        ("spread = \"1s\"", good, "flows.all.spread: is not for a list"),
        ("rate = \"1Mbps\"", good, "flows.all.rate: is not for a list"),
        ("lifetime = \"1s\"", good, "flows.all.lifetime: is not for a list"),
        ("each_hop = true", good, "flows.all.each_hop: is not for a list"),
        ("count = 0", good, "flows.all.count: is 0; it must be at least 1"),
        ("start = [\"1s\"]", good, "flows.all.start: says when each flow starts, and so does list"),
        ("start = \"4s\"", good, "flows.all.start: is 4s; it must be before duration"),
    ] {
        let error = refused(&format!("{GRAPH}{group}{more}"), list);
        assert!(error.contains(words), "{more}{list}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let group = "\n[[flows]]\nname = \"all\"\nlaw = \"reno\"\ncount = 3\nfrom = \"a\"\nto = \"c\"\n";
    for (more, words) in [
        ("start = [\"1s\", \"2s\"]", "flows.all.start: has 2 entries; it needs one for each of 3 flows"),
        ("start = [\"1s\", \"2s\", \"5s\"]", "flows.all.start: is 5s; it must be before duration, 4s"),
        ("start = [\"1s\", \"2s\", \"3s\"]\nstop = \"3s\"", "flows.all.stop: must be after start, 3s"),
        (
            "start = [\"1s\", \"2s\", \"3s\"]\nevery = \"1s\"",
            "flows.all.start: says when each flow starts, and so does every",
        ),
        ("start = [1, 2, 3]", "flows.all.start"),
    ] {
        let error = refused(&format!("{GRAPH}{group}{more}"), "");
        assert!(error.contains(words), "{more}: {error}");
    }
}

/// A list in which all start together may need as many slots as it has flows, one after the other few.
#[test]
fn memory_is_that_of_flows_at_a_time() {
    let text = format!(
        "{GRAPH}\n[[flows]]\nname = \"all\"\nlaw = \"reno\"\nfrom = \"a\"\nto = \"c\"\nlist = \"flows.csv\""
    );
    let needs = |gap_s: f64| {
        let rows: Vec<String> = (0..2000).map(|i| format!("{},1000\n", f64::from(i) * gap_s)).collect();
        let files = Files::from([(PathBuf::from("flows.csv"), format!("start,size\n{}", rows.concat()))]);
        let loaded =
            flowstamp_sim::load_within(&text, Format::Toml, "test", &[], &files, None).expect("a scenario");
        loaded.1.bytes as f64
    };
    let (together, apart) = (needs(0.0), needs(0.002));
    assert!(together - apart > 1000.0 * 1000.0, "{together} {apart}");
}

/// A stop that is set in mid-run is that of the list from then on, whatever comes later in the file.
#[test]
fn a_stop_in_mid_run_ends_arrivals() {
    let text = |stop: &str| {
        format!(
            "{GRAPH}\n[[flows]]\nname = \"all\"\nlaw = \"reno\"\nfrom = \"a\"\nto = \"c\"\nlist = \"flows.csv\"\n{stop}"
        )
    };
    let lines: Vec<String> = (0..40).map(|i| format!("{},20kB\n", f64::from(39 - i) / 10.0)).collect();
    let list = format!("start,size\n{}", lines.concat());
    let files = Files::from([(PathBuf::from("flows.csv"), list.clone())]);
    let loaded = load(&text(""), Format::Toml, "test.toml", &[], &files).expect("a scenario");
    let mut go = |_| ControlFlow::Continue(());
    let mut sim = Simulation::new(&loaded, None).expect("a network");
    sim.run_until("1s".parse().expect("a time"), &mut go).expect("nobody stops it");
    let early = sim.results().expect("it is past warm-up").summary.groups["all"].flows;
    sim.set("flows.all.stop", "2s").expect("it may be set");
    let set = sim.run(&mut go).expect("nobody stops it");
    let given = run(&text("stop = \"2s\""), &list);
    assert_eq!(as_text(&rows(&set)), as_text(&rows(&given)));
    let [set, given] = [set, given].map(|r| r.summary.groups["all"].clone());
    assert_eq!((early, set.flows, set.completed), (11, 20, 20));
    assert_eq!((set.flows, set.littles_law.map(|law| law.unaccounted)), (given.flows, Some(0.0)));
}

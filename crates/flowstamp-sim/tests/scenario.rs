//! Scenarios: what is refused and in which words, overrides, and the schema.

mod common;

use common::{run, try_load};
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Format, load};
use std::path::Path;

const GOOD: &str = r#"
duration = "2s"
[dumbbell]
rate = "10Mbps"
rtt = "40ms"
router = "xcp"
[[flows]]
name = "long"
law = "xcp"
count = 2
"#;

fn with(sets: &[(&str, &str)]) -> Result<flowstamp_sim::Loaded, String> {
    let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(GOOD, Format::Toml, "good.toml", &sets, Path::new(".")).map_err(|e| e.to_string())
}

/// Contents stand for files: in what is loaded, in `--set` and in what is said of one that is missing.
#[test]
fn contents_are_as_good_as_paths() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a golden file");
    let contents = |names: &[&str]| names.iter().map(|n| (n.into(), read(n))).collect::<Files>();
    let both = contents(&["cell.down", "sizes.txt"]);
    for (name, file) in [("sack-trace.toml", "cell.down"), ("web-sizes.toml", "sizes.txt")] {
        let text = read(name);
        let from_folder = load(&text, Format::Toml, name, &[], &folder).expect("on disk");
        let from_contents = load(&text, Format::Toml, name, &[], &both).expect("in memory");
        assert_eq!(from_folder.scenario, from_contents.scenario);
        assert_eq!(from_folder.files, from_contents.files);
        assert_eq!(from_folder.files, contents(&[file]), "only what is named");
        let error =
            load(&text, Format::Toml, name, &[], &Files::new()).expect_err("nothing given").to_string();
        assert!(error.contains(&format!("\"{file}\" is not among the files given: none")), "{error}");
    }
    let set = |path: &str| [("dumbbell.rate.trace".to_owned(), path.to_owned())];
    let loaded = load(GOOD, Format::Toml, "good.toml", &set("cell.down"), &both).expect("by its own name");
    assert_eq!(loaded.files, contents(&["cell.down"]));
    let error =
        load(GOOD, Format::Toml, "good.toml", &set("cell.up"), &both).expect_err("not given").to_string();
    assert_eq!(
        error,
        "good.toml: dumbbell.rate.trace: \"cell.up\" is not among the files given: cell.down, sizes.txt"
    );
}

#[test]
fn each_mistake_gets_one_clear_line() {
    for (key, value, expected) in [
        ("dumbbell.rate", "45mbps", "did you mean \"Mbps\""),
        ("dumbbell.rate", "45", "a rate with its unit"),
        ("dumbbell.rate", "0bps", "dumbbell.rate"),
        ("dumbbell.rtt", "-1ms", "negative"),
        ("dumbbell.rtt", "40", "a time with its unit"),
        ("dumbbell.delay", "30ms", "at most half of rtt"),
        ("dumbbell.buffer", "5", "a buffer such as"),
        ("dumbbell.color", "red", "unknown key `color`; "),
        ("dumbbell.queue", "fifo", "there is no `fifo`; there are"),
        ("dumbbell.router.alhpa", "0.3", "dumbbell.router.alhpa: unknown key `alhpa`"),
        ("dumbbell.router.alpha", "fast", "dumbbell.router.alpha: \"fast\" must be a number"),
        ("dumbbell.rate", "{ steps = [[\"0s\", \"1Mbps\", \"2Mbps\"]] }", "a list of 3 must be a list of 2"),
        ("dumbbell.rate", "{ steps = [[\"0s\"]] }", "a list of 1 must be a list of 2"),
        ("dumbbell.rate.trace", "nowhere.down", "cannot read"),
        ("duration", "0s", "must be longer"),
        ("warmup", "3s", "shorter than duration"),
        ("packet", "0B", "1B to 65535B"),
        ("flows.long.law", "tpc", "there is no `tpc`"),
        ("flows.long.count", "-4", "flows.long.count"),
        ("flows.long.start", "5s", "before duration"),
        ("flows.long.rtt", "1ms", "the path alone takes"),
        ("flows.long.to", "middle", "not a node; there are left, right"),
        ("flows.long.to", "left", "where the flow starts"),
        ("flows.long.size", "1.5B", "whole number of bytes"),
        ("flows.long.transport.initial_window", "0.5", "1 to 65536"),
        ("flows.long.transport.recovery", "counts", "there is no `counts`"),
        ("flows.nobody.count", "3", "there is no \"nobody\""),
        ("dumbbell.router", "none", "obeys routers, but no link"),
        ("flows.long.web", "{ load = 1.2, sizes = { distribution = \"fixed\", size = \"1kB\" } }", "below 1"),
        (
            "flows.long.web",
            "{ load = 0.5, sizes = { distribution = \"pareto\", mean = \"1kB\", shape = 1.0 } }",
            "above 1",
        ),
        (
            "flows.long.web",
            "{ sizes = { distribution = \"fixed\", size = \"1kB\" } }",
            "exactly one of flows_per_s and load",
        ),
        ("dumbbell.rate", "1e300Tbps", "1bps to 100Tbps"),
        ("dumbbell.rate", "{ steps = [[\"0s\", \"1Mbps\"], [\"1s\", \"0.1bps\"]] }", "1bps to 100Tbps"),
        ("dumbbell.rtt", "0.4ps", "whole picoseconds"),
        ("dumbbell.router.alpha", "-3.0", "alpha: is -3; it must be 0 to 10"),
        ("dumbbell.router.alpha", "nan", "alpha: is NaN"),
        ("dumbbell.router", "{ law = \"rcp\", mtu = \"0B\" }", "mtu: is 0; it must be 1 to 65535"),
        (
            "flows.long.law",
            "{ law = \"rcp\", desired_rate = \"0bps\" }",
            "law.desired_rate: is 0bps; it must be above 0",
        ),
        (
            "flows.long.web",
            "{ load = 0.5, sizes = { distribution = \"pareto\", mean = \"1kB\", shape = inf } }",
            "is inf; it must be a number above 1",
        ),
        ("dumbbell.router.queue_window", "0.0", "queue_window"),
        ("dumbbell.router.min_queue_interval", "0s", "1ns or longer"),
        ("dumbbell.router.max_rtt", "0s", "1ns or longer"),
        ("dumbbell.queue", "{ kind = \"red\", max_p = 5.0 }", "max_p: is 5"),
        ("dumbbell.queue", "{ kind = \"red\", max_threshold = 0.1 }", "max_threshold: is 0.1"),
        ("flows.long.law", "{ law = \"xcp\", price = 0.0 }", "price: is 0"),
        ("flows.long.transport.max_rto", "0s", "1us or longer"),
        ("flows.long.transport.max_rto", "100ms", "min_rto: is 200ms; it must be at most max_rto, 100ms"),
        (
            "flows.long.transport",
            "{ initial_rto = \"3s\", max_rto = \"1s\" }",
            "initial_rto: is 3s; it must be at most max_rto, 1s",
        ),
        ("flows.long.count", "3000000000", "at least 0 and at most 1000000"),
        ("flows.long.lifetime", "0s", "is 0s; it must be longer"),
        ("flows.long.lifetime_spread", "1s", "flows.long.lifetime: is missing"),
        ("flows.long.rtt", "[\"50ms\"]", "one for each of 2 flows"),
        (
            "flows.long.web",
            "{ flows_per_s = 1e300, sizes = { distribution = \"fixed\", size = \"1kB\" } }",
            "a run may have",
        ),
        ("probes.every", "1ps", "samples"),
        ("probes.every", "0s", "above zero"),
        ("capture.links", "[\"nowhere\"]", "is not a link"),
        ("", "x", "is not a key"),
    ] {
        let error = match with(&[(key, value)]) {
            Ok(_) => panic!("{key}={value} was accepted"),
            Err(e) => e,
        };
        assert!(error.contains(expected), "{key}={value}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.starts_with("good.toml: ") || error.starts_with("--set: "), "{error}");
    }
}

#[test]
fn impossible_networks_are_refused() {
    for (text, expected) in [
        ("duration = \"1s\"", "no topology"),
        ("duration = ", "line 1: not TOML"),
        ("duration = \"1s\"\n[dumbbell]\nrate = \"1Mbps\"\nrtt = \"1ms\"\n", "flows: is empty"),
        (
            "duration = \"1s\"\n[graph]\nlinks = [{ from = \"a\", to = \"b\", rate = \"1Mbps\", delay = \"1ms\", duplex = false }]\n\
             [[flows]]\nname = \"x\"\nlaw = \"sack\"\nfrom = \"b\"\nto = \"a\"\n",
            "there is no path from b to a",
        ),
        (
            "duration = \"1s\"\n[graph]\nlinks = [{ from = \"a\", to = \"b\", rate = \"1Mbps\", delay = \"1ms\", duplex = false }]\n\
             [[flows]]\nname = \"x\"\nlaw = \"sack\"\nfrom = \"a\"\nto = \"b\"\n",
            "there is no path for acks",
        ),
        (
            "duration = \"1s\"\n[dumbbell]\nrate = \"1Mbps\"\nrtt = \"1ms\"\n\
             [[flows]]\nname = \"x\"\nlaw = \"sack\"\ntransport = { recovery = \"count\" }\n",
            "flows.x.transport.recovery: is \"count\", which tells the law of no loss; \"sack\" must hear of them",
        ),
        (
            "duration = \"1s\"\n[parking_lot]\nrates = []\ndelay = \"1ms\"\n[[flows]]\nname = \"x\"\nlaw = \"sack\"\n",
            "parking_lot.rates: is empty",
        ),
    ] {
        let error = try_load(text).map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn overrides_reach_everything() {
    let loaded = with(&[
        ("flows.long.count", "7"),
        ("flows.0.start", "1s"),
        ("dumbbell.router.alpha", "0.3"),
        ("dumbbell.queue.kind", "red"),
        ("probes.every", "50ms"),
    ])
    .expect("good");
    let text = loaded.scenario.to_toml();
    for expected in ["count = 7", "start = \"1s\"", "alpha = 0.3", "kind = \"red\"", "every = \"50ms\""] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

/// A pattern stands for every group that it fits, in the place of one name.
#[test]
fn overrides_reach_all_of_a_pattern() {
    let text = GOOD.to_owned()
        + "[[flows]]\nname = \"up1\"\nlaw = \"xcp\"\n[[flows]]\nname = \"up2\"\nlaw = \"xcp\"\n";
    let laws = |key: &str| {
        let sets = [(key.to_owned(), "cubic".to_owned())];
        let loaded =
            load(&text, Format::Toml, "good.toml", &sets, Path::new(".")).map_err(|e| e.to_string())?;
        Ok::<_, String>(loaded.scenario.flows.iter().map(|f| f.law.name()).collect::<Vec<_>>())
    };
    assert_eq!(laws("flows.up*.law").expect("good"), ["xcp", "cubic", "cubic"]);
    assert_eq!(laws("flows.*.law").expect("good"), ["cubic"; 3]);
    assert_eq!(laws("flows.*2.law").expect("good"), ["xcp", "xcp", "cubic"]);
    assert_eq!(laws("flows.u*p*1*.law").expect("good"), ["xcp", "cubic", "xcp"]);
    let refused = laws("flows.down*.law").expect_err("there is none");
    assert!(refused.contains("there is no \"down*\"; there are long, up1, up2"), "{refused}");
}

/// A written scenario reads back as the same scenario.
#[test]
fn the_spelled_out_scenario_is_the_same() {
    let loaded = with(&[]).expect("good");
    let again = try_load(&loaded.scenario.to_toml()).expect("its own text");
    assert_eq!(loaded.scenario, again.scenario);
    let json = serde_json::to_string(&loaded.scenario).expect("JSON");
    let again = load(&json, Format::Json, "python", &[], Path::new(".")).expect("its own JSON");
    assert_eq!(loaded.scenario, again.scenario);
}

#[test]
fn shortest_paths_and_access_links_in_a_graph() {
    let r = run(r#"
        duration = "5s"
        [graph]
        links = [
            { from = "a", to = "b", rate = "10Mbps", delay = "5ms", router = "xcp" },
            { from = "b", to = "c", rate = "10Mbps", delay = "5ms", router = "xcp" },
            { from = "a", to = "c", rate = "10Mbps", delay = "30ms", router = "xcp", name = "detour" },
        ]
        [[flows]]
        name = "x"
        law = "xcp"
        from = "a"
        to = "c"
        rtt = "100ms"
        access = { rate = "100Mbps", delay = "1ms" }
        "#);
    assert_eq!(r.summary.links["detour"].arrivals, 0);
    assert!(r.summary.links["a->b"].arrivals > 100);
    let rtt = r.flows[0].min_rtt_s.get().expect("samples");
    assert!((0.100..0.104).contains(&rtt), "{rtt}");
}

#[test]
fn the_schema_names_every_key() {
    let schema = flowstamp_sim::scenario::schema();
    let properties = schema["properties"].as_object().expect("properties");
    for key in [
        "duration",
        "warmup",
        "seed",
        "packet",
        "dumbbell",
        "parking_lot",
        "graph",
        "flows",
        "probes",
        "capture",
    ] {
        assert!(properties.contains_key(key), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
    // A law goes by its name alone too.
    let router = &schema["$defs"]["RouterSpec"]["anyOf"][0]["enum"];
    assert!(router.as_array().is_some_and(|names| names.iter().any(|n| n == "xcp")), "{router}");
}

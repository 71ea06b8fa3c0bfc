//! Runs that are stepped, watched and changed on the way.

mod common;

use common::{run, timeless, try_load};
use flowstamp_laws::units::Time;
use flowstamp_sim::{Format, Loaded, Progress, Simulation, StepError, load};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;

fn go(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn golden(name: &str) -> Loaded {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a golden scenario");
    load(&text, Format::Toml, name, &[], &folder).expect("a scenario")
}

fn start(text: &str) -> Simulation {
    let loaded = try_load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Simulation::new(&loaded, None).expect("a network")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Wherever a run is cut, and whatever is asked of it there, its results are those of one that was left alone.
    #[test]
    fn steps_leave_no_trace(
        name in prop::sample::select(vec!["xcp", "xcp-draft", "rcp-switch", "sack-red", "sack-trace", "xcp-steps",
            "xcp-shared-wfq", "xcp-shared-red", "web-sizes", "capture", "xcp-parking-lot"]),
        parts in prop::collection::vec(0.0f64..1.0, 1..8),
        look in any::<bool>(),
        copy in any::<bool>(),
    ) {
        let loaded = golden(name);
        let duration = loaded.scenario.duration;
        let whole = Simulation::new(&loaded, None).expect("a network").run(&mut go).expect("nobody stops it");
        let mut instants: Vec<Time> = parts.iter().map(|p| duration.scale(*p)).collect();
        instants.sort_unstable();
        instants.push(duration);
        let mut sim = Simulation::new(&loaded, None).expect("a network");
        for at in instants {
            sim.run_until(at, &mut go).expect("a step");
            prop_assert_eq!(sim.now(), at);
            if look && at > loaded.scenario.warmup {
                let seen = sim.results().expect("results");
                prop_assert_eq!(seen.summary.duration_s, at.as_secs_f64());
                prop_assert!(seen.summary.packets.expect("a whole run").sent <= whole.summary.packets.expect("a whole run").sent);
                prop_assert!(whole.series.value.starts_with(&seen.series.value));
            }
            if copy {
                sim = sim.clone();
            }
        }
        prop_assert_eq!(sim.results().expect("results").digest(), whole.digest());
    }
}

/// Samples are handed out piece by piece, each exactly once.
#[test]
fn series_come_in_pieces() {
    let loaded = golden("xcp");
    let whole = Simulation::new(&loaded, None).expect("a network").run(&mut go).expect("nobody stops it");
    let mut sim = Simulation::new(&loaded, None).expect("a network");
    let (mut times, mut values, mut seen) = (Vec::new(), Vec::new(), Time::ZERO);
    for at in [0.013, 0.4, 0.4, 0.77, 1.0].map(|part| loaded.scenario.duration.scale(part)) {
        sim.run_until(at, &mut go).expect("a step");
        let piece = sim.series_since(seen);
        times.extend(piece.time_s);
        values.extend(piece.value);
        seen = at;
    }
    assert_eq!((times, values), (whole.series.time_s, whole.series.value));
}

#[test]
fn a_stopped_step_can_go_on() {
    let text = "
        duration = '3s'
        [dumbbell]
        rate = '100Mbps'
        rtt = '40ms'
        router = 'xcp'
        [[flows]]
        name = 'x'
        law = 'xcp'
        count = 5
    ";
    let loaded = try_load(text).unwrap_or_else(|e| panic!("{e}"));
    let whole = Simulation::new(&loaded, None).expect("a network").run(&mut go).expect("nobody stops it");
    let mut sim = Simulation::new(&loaded, None).expect("a network");
    let end = loaded.scenario.duration;
    assert_eq!(sim.run_until(end, &mut |_| ControlFlow::Break(())), Err(StepError::Stopped));
    let stopped = sim.results().expect("results");
    sim.run_until(end, &mut go).expect("the rest");
    assert_eq!(sim.results().expect("results").digest(), whole.digest());
    // It was stopped at one instant, though hosts run ahead.
    let at = Time::from_secs_f64(stopped.summary.duration_s);
    assert!(at < end);
    let mut to_there = Simulation::new(&loaded, None).expect("a network");
    to_there.run_until(at, &mut go).expect("a step");
    assert_eq!(stopped.digest(), to_there.results().expect("results").digest());
}

/// Ten packets of 1 ms each; after 3.5 of them the link is half, or twice, as fast.
#[test]
fn what_has_not_left_leaves_at_the_new_rate() {
    let text = |extra: &str| {
        format!(
            r#"
            duration = "1s"
            header = "0B"
            [dumbbell]
            rate = "8Mbps"
            access_rate = "80Mbps"
            rtt = "40ms"
            buffer = "100pkt"
            {extra}
            [[flows]]
            name = "one"
            law = "sack"
            size = "10kB"
            transport = {{ initial_window = 10.0 }}
            "#
        )
    };
    for extra in
        ["", "router = \"xcp\"\nshare = \"wfq\"", "router = \"xcp\"\nshare = \"fifo\"", "priority = \"acks\""]
    {
        for (rate, ms) in [("4Mbps", 2.0), ("16Mbps", 0.5)] {
            let mut sim = start(&text(extra));
            // The first packet reaches the bottleneck after 0.1 ms of transmission and 2 ms of propagation.
            sim.run_until(Time::from_micros(5_600), &mut go).expect("a step");
            sim.set("dumbbell.rate", rate).expect("a rate");
            sim.run_until(Time::from_secs(1), &mut go).expect("the rest");
            let fct = sim.results().expect("results").flows[0].fct_s.expect("done");
            // 3.5 packets at 1 ms, 6.5 at the new rate; then 16 ms, the last access link of 0.1 ms and 2 ms.
            let expected = (5.6 + 6.5 * ms + 16.0 + 0.1 + 2.0) * 1e-3;
            assert!((fct - expected).abs() < 2e-12, "{extra} {rate}: {fct}, not {expected}");
        }
    }
}

/// A rate that is set is a rate that steps.
#[test]
fn a_rate_that_is_set_is_a_step() {
    let text = |law: &str, router: &str, rate: &str| {
        format!(
            r#"
            duration = "6s"
            warmup = "1s"
            [dumbbell]
            rate = {rate}
            rtt = "40ms"
            buffer = "60pkt"
            access_rate = "200Mbps"
            router = "{router}"
            [[flows]]
            name = "there"
            law = "{law}"
            count = 4
            spread = "500ms"
            [[flows]]
            name = "back"
            law = "{law}"
            reverse = true
            "#
        )
    };
    for (law, router) in [("xcp", "xcp"), ("rcp", "rcp"), ("sack", "none")] {
        // No other event is at these instants.
        let stepped = run(&text(
            law,
            router,
            r#"{ steps = [["0s", "20Mbps"], ["2.0000000013s", "5Mbps"], ["4.0000000017s", "16Mbps"]] }"#,
        ));
        let mut sim = start(&text(law, router, "\"20Mbps\""));
        for (at, rate) in [("2.0000000013s", "5Mbps"), ("4.0000000017s", "16Mbps")] {
            sim.run_until(at.parse().expect("a time"), &mut go).expect("a step");
            sim.set("dumbbell.rate", rate).expect("a rate");
        }
        sim.run_until(Time::from_secs(6), &mut go).expect("the rest");
        let mut set = sim.results().expect("results");
        // The area under a queue is summed in parts, and a rate that is set ends one: each of some 10^4 additions rounds by 2^-53.
        for (name, link) in &mut set.summary.links {
            let known = stepped.summary.links[name].mean_queue_bytes;
            assert!((link.mean_queue_bytes / known - 1.0).abs() < 1e-12, "{law}: {name}");
            link.mean_queue_bytes = known;
        }
        let but_for_events = |r: &flowstamp_sim::results::Results| {
            let mut summary = r.summary.clone();
            summary.events = 0; // the capacity's own
            timeless(&summary)
        };
        assert_eq!(but_for_events(&set), but_for_events(&stepped), "{law}");
        assert_eq!(set.changes.len(), 2);
    }
}

fn cell(rate: &str, more: &str) -> String {
    format!(
        r#"
        duration = "6s"
        warmup = "1s"
        [graph]
        links = [{{ from = "n", to = "ap", rate = "100Mbps", delay = "5ms", router = "xcp" }}]
        [[wireless]]
        name = "air"
        access_point = "ap"
        router = "xcp-b"
        stations = [{{ name = "w0", rate = {rate} }}, {{ name = "w1", rate = "11Mbps" }}]
        {more}
        [[flows]]
        name = "down"
        law = "xcp"
        from = "n"
        to = "w0"
        [[flows]]
        name = "up"
        law = "xcp"
        from = "w1"
        to = "n"
        "#
    )
}

/// Likewise a station's, whatever rates it was to have.
#[test]
fn a_stations_rate_that_is_set_is_a_step() {
    let stepped = run(&cell(
        r#"{ steps = [["0s", "5.5Mbps"], ["2.0000000013s", "2Mbps"], ["4.0000000017s", "11Mbps"]] }"#,
        "",
    ));
    for begins in ["\"5.5Mbps\"", r#"{ steps = [["0s", "5.5Mbps"], ["3s", "1Mbps"], ["5s", "1Mbps"]] }"#] {
        let mut sim = start(&cell(begins, ""));
        for (at, key, rate) in [
            ("2.0000000013s", "wireless.air.stations.w0.rate", "2Mbps"),
            ("4.0000000017s", "wireless.0.stations.0.rate", "11Mbps"),
        ] {
            sim.run_until(at.parse().expect("a time"), &mut go).expect("a step");
            sim.set(key, rate).expect("a rate");
        }
        sim.run_until(Time::from_secs(6), &mut go).expect("the rest");
        let set = sim.results().expect("results");
        let but_for_events = |r: &flowstamp_sim::results::Results| {
            let mut summary = r.summary.clone();
            summary.events = 0; // the capacity's own
            timeless(&summary)
        };
        assert_eq!(but_for_events(&set), but_for_events(&stepped), "{begins}");
        let rate = set.summary.cells["air"].stations["w0"].rate_bps;
        assert_eq!(rate, Some(11e6));
        // A slower one would have left more to wait for.
        assert_ne!(timeless(&run(&cell("\"5.5Mbps\"", "")).summary), timeless(&set.summary));
    }
}

#[test]
fn rates_and_routers_of_cells_are_checked_as_in_a_file() {
    let mut sim = start(&cell("\"5.5Mbps\"", ""));
    sim.run_until(Time::from_secs(2), &mut go).expect("a step");
    let before = sim.clone();
    for (key, value, why) in [
        (
            "wireless.air.stations.w0.rate",
            "54Mbps",
            "is 54Mbps, a rate that 802.11b lacks; it has 1Mbps, 2Mbps, 5.5Mbps, 11Mbps",
        ),
        (
            "wireless.air.stations.w0.rate",
            "{ steps = [[\"0s\", \"2Mbps\"]] }",
            "must be a rate such as \"11Mbps\"",
        ),
        ("wireless.air.stations.w0.rate", "11", "unit"),
        ("wireless.air.stations.w2.rate", "11Mbps", "there is no \"w2\"; there are w0, w1"),
        ("wireless.air.stations.w0.error_rate", "0.1", "a station's data rate"),
        ("wireless.air.told", "5Mbps", "cannot change in mid-run"),
        ("wireless.air.router.q_max", "0B", "q_max"),
        ("dumbbell.rate", "5Mbps", "no dumbbell"),
    ] {
        let error = sim.set(key, value).expect_err(key).to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{key}: {error}");
    }
    let end = |mut sim: Simulation| {
        sim.run_until(Time::from_secs(6), &mut go).expect("the rest");
        sim.results().expect("results")
    };
    let untouched = end(before.clone()).digest();
    assert_eq!(end(sim).digest(), untouched);
    let mut other = before;
    other.set("wireless.air.router.kappa", "20pkt").expect("a parameter");
    assert_ne!(end(other).digest(), untouched);
    let wired = start(XCP).set("wireless.air.stations.w0.rate", "11Mbps").expect_err("no cell").to_string();
    assert!(wired.contains("the scenario has no wireless"), "{wired}");
}

const XCP: &str = r#"
    duration = "4s"
    [dumbbell]
    rate = "10Mbps"
    rtt = "40ms"
    router = "xcp"
    [[flows]]
    name = "long"
    law = "xcp"
    count = 2
    [[flows]]
    name = "stops"
    law = "xcp"
    stop = "3s"
    [[flows]]
    name = "web"
    law = "xcp"
    web = { flows_per_s = 50.0, sizes = { distribution = "fixed", size = "5kB" } }
    [probes]
    laws = true
"#;

#[test]
fn parameters_of_routers_and_stops_can_be_set() {
    let whole = run(XCP).digest();
    let with = |sets: &[(&str, &str)]| {
        let mut sim = start(XCP);
        sim.run_until(Time::from_secs(2), &mut go).expect("a step");
        for (key, value) in sets {
            sim.set(key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        sim.run_until(Time::from_secs(4), &mut go).expect("the rest");
        sim.results().expect("results")
    };
    // Setting an unchanged value has no effect.
    let same =
        with(&[("dumbbell.router.alpha", "0.4"), ("flows.stops.stop", "3s"), ("dumbbell.rate", "10Mbps")]);
    assert_eq!(same.digest(), whole);
    assert_ne!(with(&[("dumbbell.router.alpha", "0.1")]).digest(), whole);
    let goodput = |sets: &[(&str, &str)]| with(sets).summary.groups["stops"].goodput_bps;
    assert!(goodput(&[("flows.stops.stop", "2.5s")]) < 0.9 * goodput(&[]));
    assert!(goodput(&[("flows.stops.stop", "3.9s")]) > 1.1 * goodput(&[]));
    let flows = |sets: &[(&str, &str)]| with(sets).summary.groups["web"].flows as f64;
    assert!(flows(&[("flows.web.stop", "3s")]) < 0.85 * flows(&[]));
}

/// One packet leaves its host at 0.1 ms, the bottleneck at 3.1 ms and, as its way is 16 ms long, has 13.5 of them before it at 5.6 ms.
/// With a way half as long it has 6.75; those that leave the transmitter later have all of the new one.
#[test]
fn what_is_under_way_keeps_its_part_of_a_way_that_changes() {
    for (packets, key, value, expected_ms) in [
        (1, "dumbbell.delay", "8ms", 5.6 + 13.5 / 2.0 + 0.1 + 6.0), // and 12 ms for two access links
        (1, "dumbbell.rtt", "80ms", 5.6 + 13.5 * 2.0 + 0.1 + 4.0),
        (10, "dumbbell.delay", "8ms", 12.1 + 8.0 + 0.1 + 6.0),
        (10, "dumbbell.rtt", "80ms", 12.1 + 32.0 + 0.1 + 4.0),
    ] {
        for extra in ["", "queue = \"codel\"", "router = \"xcp\"\nshare = \"fifo\""] {
            let mut sim = start(&format!(
                r#"
                duration = "1s"
                header = "0B"
                [dumbbell]
                rate = "8Mbps"
                access_rate = "80Mbps"
                rtt = "40ms"
                buffer = "100pkt"
                {extra}
                [[flows]]
                name = "one"
                law = "sack"
                size = "{packets}kB"
                transport = {{ initial_window = 10.0 }}
                "#
            ));
            sim.run_until(Time::from_micros(5_600), &mut go).expect("a step");
            sim.set(key, value).expect("a delay");
            sim.run_until(Time::from_secs(1), &mut go).expect("the rest");
            let fct = sim.results().expect("results").flows[0].fct_s.expect("done");
            assert!(
                (fct - expected_ms * 1e-3).abs() < 2e-12,
                "{extra} {key} {packets}: {fct}, not {expected_ms}"
            );
        }
    }
}

/// A delay or a buffer that is set before anything has happened is that of the file; a start is, whenever it is set.
#[test]
fn delays_buffers_and_starts_that_are_set_are_those_of_a_file() {
    let text = |queue: &str, rtt: &str, buffer: &str, late: &str| {
        format!(
            r#"
            duration = "6s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "{rtt}"
            buffer = "{buffer}"
            queue = "{queue}"
            [[flows]]
            name = "long"
            law = "sack"
            count = 3
            every = "100ms"
            transport = {{ initial_rto = "1s" }}
            [[flows]]
            name = "late"
            law = "sack"
            start = "{late}"
            transport = {{ initial_rto = "1s" }}
            [probes]
            flows = true
            "#
        )
    };
    for queue in ["droptail", "codel", "fq_codel"] {
        let begun = text(queue, "40ms", "40kB", "5s");
        for (at, key, value, of_file) in [
            ("0s", "dumbbell.rtt", "60ms", text(queue, "60ms", "40kB", "5s")),
            ("0s", "dumbbell.buffer", "15kB", text(queue, "40ms", "15kB", "5s")),
            ("2s", "flows.late.start", "2.5s", text(queue, "40ms", "40kB", "2.5s")),
        ] {
            let mut sim = start(&begun);
            if at != "0s" {
                sim.run_until(at.parse().expect("a time"), &mut go).expect("a step");
            }
            sim.set(key, value).unwrap_or_else(|e| panic!("{e}"));
            sim.run_until(Time::from_secs(6), &mut go).expect("the rest");
            let set = sim.results().expect("results").digest();
            let (file, other) = (run(&of_file).digest(), run(&begun).digest());
            assert_eq!((set.flows, set.series), (file.flows, file.series), "{queue}: {key}");
            assert_ne!((set.flows, set.series), (other.flows, other.series), "{queue}: {key}");
        }
    }
}

/// Router laws that use the buffer follow it.
#[test]
fn a_buffer_that_is_set_is_that_of_the_router_law() {
    for (router, sender) in [
        (r#"{ law = "xcp", max_fill = 0.6 }"#, "xcp"),
        (r#""xcp-b""#, "xcp"),
        (r#"{ law = "vcp", tcp_friendly = true }"#, "vcp"),
    ] {
        let text = |buffer: &str| {
            format!(
                "duration = '4s'\n[dumbbell]\nrate = '10Mbps'\nrtt = '40ms'\nbuffer = '{buffer}'\nrouter = {router}\n\
                 [[flows]]\nname = 'long'\nlaw = '{sender}'\ncount = 8\nevery = '200ms'\n"
            )
        };
        let mut sim = start(&text("40kB"));
        sim.set("dumbbell.buffer", "15kB").expect("a buffer");
        sim.run_until(Time::from_secs(4), &mut go).expect("the run");
        let [set, file, other] = [sim.results().expect("results"), run(&text("15kB")), run(&text("40kB"))]
            .map(|results| results.digest().flows);
        assert_eq!(set, file, "{router}");
        assert_ne!(set, other, "{router}");
    }
}

/// A smaller buffer admits no packet until the backlog fits.
#[test]
fn a_buffer_that_is_set_bounds_the_queue() {
    let mut sim = start(
        r#"
        duration = "6s"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        buffer = "100kB"
        [[flows]]
        name = "long"
        law = "sack"
        count = 3
        [probes]
        every = "10ms"
        "#,
    );
    sim.run_until(Time::from_secs(3), &mut go).expect("a step");
    sim.set("dumbbell.buffer", "20kB").expect("a buffer");
    sim.run_until(Time::from_secs(6), &mut go).expect("the rest");
    let series = sim.series_since(Time::ZERO);
    let most = |from: f64| {
        let rows = (0..series.value.len()).filter(|row| {
            let key = &series.keys[series.key[*row] as usize];
            (key.name.as_str(), key.metric.as_str()) == ("bottleneck", "queue_bytes")
                && series.time_s[*row] > from
        });
        rows.map(|row| series.value[row]).fold(0.0, f64::max)
    };
    assert!(most(0.0) > 50e3, "{}", most(0.0));
    // 80 kB at 10 Mb/s have left after 64 ms.
    assert!((15e3..=20e3).contains(&most(3.1)), "{}", most(3.1));
}

/// The same run in the browser (`tools/wasm.mjs`) has this digest too.
#[test]
fn a_run_with_changes_gives_the_known_bits() {
    let known: serde_json::Value = serde_json::from_str(include_str!("changed.json")).expect("JSON");
    let words = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().expect("a list").iter().map(|w| w.as_str().expect("text").to_owned()).collect()
    };
    let mut sim = start(&words(&known["scenario"]).join("\n"));
    for change in known["changes"].as_array().expect("changes") {
        let [at, key, value] = &words(change)[..] else { panic!("{change}") };
        sim.run_until(at.parse().expect("a time"), &mut go).expect("a step");
        sim.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    sim.run_until(Time::from_secs(8), &mut go).expect("the rest");
    assert_eq!(sim.results().expect("results").digest().to_string(), known["digest"]);
}

/// Packets on a link lie on it in the order in which they arrive, those that wait behind them.
#[test]
fn packets_are_seen_on_their_way() {
    for extra in ["", "queue = \"codel\""] {
        let mut sim = start(&format!(
            "duration = '2s'\n[dumbbell]\nrate = '8Mbps'\nrtt = '40ms'\nbuffer = '30pkt'\n{extra}\n\
             [[flows]]\nname = 'f'\nlaw = 'sack'\ncount = 2\n"
        ));
        assert_eq!(sim.crossing("bottleneck"), []);
        sim.run_until(Time::from_millis(1_500), &mut go).expect("a step");
        let seen = sim.crossing("bottleneck");
        let gone: Vec<f64> = seen.iter().map_while(|packet| packet.part).collect();
        // 16 ms of the way, 1 ms for each packet.
        assert!((14..=17).contains(&gone.len()), "{extra}: {gone:?}");
        assert!(gone.windows(2).all(|pair| pair[0] > pair[1]) && gone[0] <= 1.0, "{gone:?}");
        assert!(seen[gone.len()..].iter().all(|packet| packet.part.is_none() && packet.data));
        assert!(sim.crossing("bottleneck.reverse").iter().all(|packet| !packet.data));
        assert_eq!(sim.crossing("nowhere"), []);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut sim = start(XCP);
    let early = sim.results().expect_err("nothing has run").to_string();
    assert!(early.contains("warmup, 0s"), "{early}");
    sim.run_until(Time::from_secs(2), &mut go).expect("a step");
    let before = sim.clone();
    for (key, value, why) in [
        ("dumbbell.queue", "red", "cannot change in mid-run"),
        ("dumbbell.rtt", "1", "unit"),
        ("dumbbell.delay", "30ms", "at most half of rtt"),
        ("dumbbell.buffer", "5", "must be a buffer such as"),
        ("flows.long.start", "3s", "a flow started at 0s"),
        ("flows.web.start", "3s", "arrive at random"),
        ("dumbbell.router", "rcp", "cannot change in mid-run"),
        ("dumbbell.router.law", "rcp", "cannot change in mid-run"),
        ("dumbbell.router.initial_interval", "5ms", "begins with"),
        ("dumbbell.router.alpha", "-1", "alpha"),
        ("dumbbell.router.omega", "1", "omega"),
        ("dumbbell.rate", "0bps", "1bps"),
        ("dumbbell.rate", "5", "unit"),
        ("dumbbell.rate", "{ steps = [[\"0s\", \"5Mbps\"]] }", "such as \"45Mbps\""),
        ("graph.links.0.rate", "5Mbps", "no graph"),
        ("flows.stops.stop", "1s", "later than now, 2s"),
        ("flows.nobody.stop", "3s", "nobody"),
        ("flows.stops.count", "3", "cannot change in mid-run"),
    ] {
        let error = sim.set(key, value).expect_err(key).to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{key}: {error}");
    }
    for (until, why) in [("1s", "already"), ("5s", "duration, 4s")] {
        match sim.run_until(until.parse().expect("a time"), &mut go) {
            Err(StepError::Refused(e)) => assert!(e.to_string().contains(why), "{e}"),
            other => panic!("{until}: {other:?}"),
        }
    }
    // Nothing of that left a trace.
    let end = |mut sim: Simulation| {
        sim.run_until(Time::from_secs(4), &mut go).expect("the rest");
        sim.results().expect("results").digest()
    };
    assert_eq!(end(sim), end(before));
}

/// However often and whichever way the delay changes while the first packets are under way, all that is sent arrives.
#[test]
fn delays_that_change_again_and_again_stall_nobody() {
    for steps in [["160ms", "320ms", "40ms"], ["1s", "500ms", "40ms"], ["4s", "40ms", "10ms"]] {
        let mut sim = start(
            "duration = \"12s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"40ms\"\nrouter = \"xcp\"\n[[flows]]\nname = \"f\"\nlaw = \"xcp\"\ncount = 2\n",
        );
        for (at, rtt) in ["100ms", "105ms", "110ms"].iter().zip(steps) {
            sim.run_until(at.parse().expect("a time"), &mut go).expect("a step");
            sim.set("dumbbell.rtt", rtt).expect("a delay");
        }
        sim.run_until(Time::from_secs(12), &mut go).expect("the rest");
        let goodput: f64 =
            sim.results().expect("results").summary.groups.values().map(|g| g.goodput_bps).sum();
        // Share of the 9.5 Mb/s that they have undisturbed; who stalls has less than 0.7.
        assert!(goodput > 7e6, "{steps:?}: {goodput}");
    }
}

/// A buffer that is set is the buffer, though a rate that changed before has left its bytes as they were.
#[test]
fn a_buffer_is_set_after_a_rate_too() {
    let mut sim = start(
        "duration = \"2s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"40ms\"\nbuffer = \"1BDP\"\n[[flows]]\nname = \"f\"\nlaw = \"reno\"\n",
    );
    sim.run_until(Time::from_secs(1), &mut go).expect("a step");
    sim.set("dumbbell.rate", "20Mbps").expect("a rate");
    sim.set("dumbbell.buffer", "100kB").expect("a buffer");
    sim.run_until(Time::from_secs(2), &mut go).expect("the rest");
    assert_eq!(sim.results().expect("results").summary.links["bottleneck"].buffer_bytes, 100_000.0);
}

/// A sender that is told its window and its rate sends as it is told, from the next packet on.
#[test]
fn a_sender_does_what_it_is_told() {
    let text = |law: &str| {
        format!(
            r#"
            duration = "5s"
            [dumbbell]
            rate = "100Mbps"
            rtt = "100ms"
            [[flows]]
            name = "told"
            law = {law}
            count = 2
            [[flows]]
            name = "late"
            law = {law}
            start = "4s"
            size = "100kB"
            [probes]
            every = "100ms"
            groups = true
            "#
        )
    };
    let mut sim = start(&text("\"told\""));
    let mut change = |at: &str, key: &str, value: &str| {
        sim.run_until(at.parse().expect("a time"), &mut go).expect("a step");
        sim.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    };
    change("1s", "flows.told.law.window", "40");
    change("2s", "flows.told.law.rate", "800kbps");
    change("2500ms", "flows.late.law.window", "20");
    change("3s", "flows.told.law.rate", "1.6Mbps");
    change("4s", "flows.told.law.window", "1");
    sim.run_until(Time::from_secs(5), &mut go).expect("a step");
    let results = sim.results().expect("results");
    let series = &results.series;
    let key =
        series.keys.iter().position(|k| k.name == "told" && k.metric == "goodput_bps").expect("a series");
    let mbps = |from: f64| {
        let of = (0..series.key.len()).filter(|i| series.key[*i] as usize == key);
        let here: Vec<f64> = of
            .filter(|i| (from..from + 0.55).contains(&series.time_s[*i]))
            .map(|i| series.value[i] / 1e6)
            .collect();
        here.iter().sum::<f64>() / here.len() as f64
    };
    // Two flows; packets of 1000 B, 960 of them payload; the RTT is 100.2 ms.
    for (from, packets_per_s) in
        [(0.45, 10.0 / 0.1002), (1.45, 40.0 / 0.1002), (2.45, 100.0), (3.45, 200.0), (4.45, 1.0 / 0.1002)]
    {
        let expected = 2.0 * packets_per_s * 960.0 * 8e-6;
        assert!(
            (mbps(from) - expected).abs() < 0.03 * expected,
            "{from} s: {} and not {expected}",
            mbps(from)
        );
    }
    // Later flows start with the values set by then: 105 packets by 20 in each round trip arrive within five and a half
    // of them.
    let late = results.flows.iter().find(|flow| &*flow.group == "late").expect("a flow");
    let fct_s = late.fct_s.expect("it ends");
    assert!((0.54..0.58).contains(&fct_s), "{fct_s}");
    // A change of a sender moves no path.
    assert!(late.ideal_fct_s.get().is_some_and(|ideal_s| ideal_s < fct_s));

    // Told at once is told from the start, and what is told again changes nothing.
    let whole = run(&text("{ law = \"told\", window = 30, rate = \"3Mbps\" }"));
    let mut sim = start(&text("{ law = \"told\", window = 30, rate = \"3Mbps\" }"));
    for at in [700, 2345, 4100] {
        sim.run_until(Time::from_millis(at), &mut go).expect("a step");
        sim.set("flows.told.law.rate", "3Mbps").expect("a rate");
        sim.set("flows.late.law.window", "30").expect("a window");
    }
    sim.run_until(Time::from_secs(5), &mut go).expect("a step");
    let (told, whole) = (sim.results().expect("results").digest(), whole.digest());
    assert_eq!((told.summary, told.flows, told.series), (whole.summary, whole.flows, whole.series));

    let mut other = start(XCP);
    other.run_until(Time::from_secs(1), &mut go).expect("a step");
    for (key, value, why) in [
        ("flows.told.law.window", "0.5", "window: is 0.5; it must be 1 to 1000000"),
        ("flows.told.law.rate", "0bps", "rate: is 0bps; it must be above zero"),
        ("flows.told.law.rate", "7", "unit"),
        ("flows.told.law.pace", "7Mbps", "pace"),
        ("flows.told.law", "told", "cannot change in mid-run"),
        ("flows.told.law.law", "xcp", "cannot change in mid-run"),
    ] {
        let error = sim.set(key, value).expect_err(key).to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{key}: {error}");
    }
    let error = other.set("flows.long.law.stamped_window", "exact").expect_err("of XCP").to_string();
    assert!(
        error.contains("cannot change in mid-run: xcp sets its window itself; law = \"told\""),
        "{error}"
    );
}

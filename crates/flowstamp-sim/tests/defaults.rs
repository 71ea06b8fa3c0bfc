//! What somebody gets who sets nothing: laws start from the path that the scenario describes.

use flowstamp_sim::results::Results;
use flowstamp_sim::{Format, Simulation, load};
use std::ops::ControlFlow;
use std::path::Path;

fn run(text: &str) -> Results {
    let loaded = load(text, Format::Toml, "test", &[], Path::new(".")).expect("a scenario");
    Simulation::new(&loaded, None)
        .expect("a network")
        .run(&mut |_| ControlFlow::Continue(()))
        .expect("nobody stops it")
}

/// Rate, RTT in microseconds.
const PATHS: [(&str, u64); 4] =
    [("10Gbps", 30), ("60Mbps", 25_000), ("1Mbps", 1_000_000), ("100Mbps", 100_000)];

/// `flows` long flows of `law` that start at once; statistics from `from` to `to` RTTs.
fn dumbbell(law: &str, (rate, rtt_us): (&str, u64), flows: u32, from: u64, to: u64) -> Results {
    run(&format!(
        r#"
        duration = "{}us"
        warmup = "{}us"
        [dumbbell]
        rate = "{rate}"
        rtt = "{rtt_us}us"
        router = "{law}"
        [[flows]]
        name = "long"
        law = "{law}"
        count = {flows}
        "#,
        to * rtt_us,
        from * rtt_us,
    ))
}

/// Round trips after which one flow alone uses 0.9 of the link, by the law's own equations, to the next whole one.
fn round_trips(law: &str) -> u64 {
    match law {
        // Equation 3.3 with an empty queue is logistic growth from R(0) = C/20 at rate alpha = 0.4 per RTT:
        // ln(19 * 9) / 0.4 = 12.9. The handshake and the way of the first data add two.
        "rcp" => 15,
        // Equation 1 with an empty queue closes the gap at rate alpha = 0.4 per RTT: ln(10) / 0.4 = 5.8. Before it come a
        // round trip without an RTT in the packets, the first interval to measure in, and the feedback's way back.
        _ => 9,
    }
}

#[test]
fn a_flow_that_sets_nothing_fills_the_link() {
    for law in ["xcp", "xcp-draft", "rcp"] {
        for path in PATHS {
            let n = round_trips(law);
            let results = dumbbell(law, path, 1, n, n + 20);
            let used = results.summary.links["bottleneck"].utilization;
            assert!(used >= 0.9, "{law} on {path:?}: {used} after {n} round trips");
        }
    }
}

#[test]
fn flows_that_start_at_once_lose_nothing() {
    // Ten flows: their first windows of two packets fit each path's buffer of one bandwidth-delay product, 37 packets at
    // least, and RCP's first rate is half the link between them.
    for law in ["xcp", "xcp-draft", "rcp"] {
        for path in PATHS {
            let n = round_trips(law);
            let results = dumbbell(law, path, 10, 0, n + 20);
            let link = &results.summary.links["bottleneck"];
            let timeouts = results.summary.groups["long"].timeouts;
            assert_eq!((link.drops, timeouts), (0, 0), "{law} on {path:?}");
        }
    }
}

#[test]
fn what_is_assumed_is_said() {
    let results = dumbbell("rcp", ("1Mbps", 1_000_000), 1, 0, 2);
    let assumed: Vec<(&str, &str)> =
        results.summary.assumed.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let expected = [
        ("bottleneck.reverse.router.initial_rtt", "1s"),
        ("bottleneck.router.initial_rtt", "1s"),
        ("flows.long.transport.initial_rto", "3s"),
    ];
    assert_eq!(assumed, expected);
    assert!(results.summary.warnings.is_empty());
}

#[test]
fn a_time_constant_far_off_warns() {
    let with = |router: &str| {
        run(&format!(
            r#"
            duration = "1ms"
            [dumbbell]
            rate = "10Gbps"
            rtt = "30us"
            router = {router}
            [[flows]]
            name = "long"
            law = "rcp"
            "#
        ))
        .summary
        .warnings
    };
    let told = "router of bottleneck and bottleneck.reverse: initial_rtt: is 200ms, but the flows' RTT is 30us; \
                leave it out for that";
    let warnings = with(r#"{ law = "rcp", initial_rtt = "200ms" }"#);
    assert_eq!(warnings, [told]);
    assert!(with(r#"{ law = "rcp", initial_rtt = "200us" }"#).is_empty());
}

#[test]
fn gains_of_no_stable_loop_warn() {
    let with = |router: &str, law: &str| {
        let scenario = format!(
            r#"
            duration = "1ms"
            [dumbbell]
            rate = "10Mbps"
            rtt = "40ms"
            router = {router}
            [[flows]]
            name = "long"
            law = "{law}"
            "#
        );
        let of = "router of bottleneck and bottleneck.reverse: ";
        let warnings = run(&scenario).summary.warnings;
        warnings.iter().map(|line| line.strip_prefix(of).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let told = |alpha: f64, beta: f64, most: f64| {
        [format!(
            "alpha: is {alpha}; with beta = {beta} the law's model is stable below {most:.2}; see flowstamp stability"
        )]
    };
    for law in ["xcp", "rcp"] {
        let warned = |alpha: f64, beta: f64| {
            with(&format!(r#"{{ law = "{law}", alpha = {alpha}, beta = {beta} }}"#), law)
        };
        for (alpha, beta, most) in [(1.3, 1.0, 0.98), (1.9, 2.0, 0.77), (1.45, 0.246, 1.44), (1.6, 0.0, 1.57)]
        {
            assert_eq!(warned(alpha, beta), told(alpha, beta, most), "{law}");
        }
        // The thesis's own, theorem 1's end, and what is outside of the linear region alone; nothing at all is done without gains.
        for (alpha, beta) in
            [(0.1, 1.0), (0.4, 0.5), (0.8, 0.6), (0.9, 0.1), (0.5554, 0.4361), (0.4, 0.9), (0.0, 0.0)]
        {
            assert_eq!(warned(alpha, beta), Vec::<String>::new(), "{law}, {alpha}, {beta}");
        }
    }
    let blind = r#"{ law = "xcp-b", alpha = 1.3, beta = 1 }"#;
    assert_eq!(with(blind, "xcp"), told(1.3, 1.0, 0.98));
}

#[test]
fn rtts_far_apart_are_told_of() {
    let with = |gains: &str, law: &str, count: u32, far_ms: u32| {
        let summary = run(&format!(
            r#"
            duration = "16s"
            warmup = "8s"
            [dumbbell]
            rate = "20Mbps"
            rtt = "10ms"
            router = {{ law = "xcp" {gains} }}
            [[flows]]
            name = "short"
            law = {{ law = "xcp" {law} }}
            count = {count}
            [[flows]]
            name = "long"
            law = {{ law = "xcp" {law} }}
            rtt = "{far_ms}ms"
            "#
        ))
        .summary;
        let [long, short] = ["long", "short"].map(|name| summary.groups[name].goodput_bps);
        (summary.warnings, long * f64::from(count) / short)
    };
    // Windows that are sent at once (docs/stability.md).
    let (warnings, share) = with("", "", 5, 120);
    let told = "router of bottleneck: its flows' RTTs are 10ms to 120ms; the longest starve where windows are sent at once: \
                give their laws pacing = true";
    assert_eq!(warnings, [told]);
    assert!(share < 0.5, "{share}");
    for (law, far_ms) in [("", 60), (", pacing = true", 120)] {
        let (warnings, share) = with("", law, 5, far_ms);
        assert_eq!(warnings, Vec::<String>::new());
        assert!((0.9..1.1).contains(&share), "{share}");
    }
    // The loop of all RTTs, not of their mean: here it bears more, and beyond pi/2 mean RTTs over gamma less.
    assert_eq!(with(", alpha = 1.5", "", 1, 60).0, Vec::<String>::new());
    let (told, of) = ("the law's linear model is unstable with the flows' RTTs", "see flowstamp stability");
    let told = format!("alpha = 0.4, beta = 0.226, gamma = 0.1: {told}, 10ms to 200ms; {of}");
    let warnings = |gamma: &str| with(gamma, ", pacing = true", 80, 200).0;
    assert!(
        warnings("").contains(&format!("router of bottleneck and bottleneck.reverse: {told}")),
        "{:?}",
        warnings("")
    );
    assert!(!warnings(", gamma = 0.05").iter().any(|line| line.contains("linear model")));
}

#[test]
fn rcps_flows_of_less_than_a_packet_per_rtt_are_told_of() {
    let with = |law: &str, count: u32| {
        let summary = run(&format!(
            r#"
            duration = "200ms"
            warmup = "100ms"
            [dumbbell]
            rate = "1Gbps"
            rtt = "30us"
            buffer = "1MB"
            router = "{law}"
            [[flows]]
            name = "long"
            law = "{law}"
            count = {count}
            "#
        ))
        .summary;
        (summary.warnings, summary.links["bottleneck"].utilization)
    };
    let (warnings, used) = with("rcp", 10);
    let told = "router of bottleneck: its link carries 3.75 packets in a round trip of 30us, fewer than its 10 flows; packets \
                that meet by chance then keep R low and the link is not full";
    assert_eq!(warnings, [told]);
    assert!(used < 0.8, "{used}");
    for (law, count) in [("rcp", 3), ("xcp", 10)] {
        let (warnings, used) = with(law, count);
        assert_eq!(warnings, Vec::<String>::new());
        assert!(used > 0.9, "{law}: {used}");
    }
}

#[test]
fn a_link_gets_the_mean_of_its_own_flows() {
    let assumed = run(r#"
        duration = "1s"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        router = "xcp"
        [[flows]]
        name = "long"
        law = "xcp"
        count = 2
        rtt = ["40ms", "80ms"]
        [[flows]]
        name = "other"
        law = "sack"
        rtt = "400ms"
        "#)
    .summary
    .assumed;
    assert_eq!(assumed["bottleneck.router.initial_interval"], "60ms");
}

#[test]
fn goodput_means_payload() {
    // 200 packets of 1000 bytes with 40 of headers carry 192,000 bytes, and one byte more takes one packet more.
    let scenario = |size: u64, header: u64| {
        run(&format!(
            r#"
            duration = "5s"
            header = "{header}B"
            [dumbbell]
            rate = "10Mbps"
            rtt = "40ms"
            buffer = "1000pkt"
            [[flows]]
            name = "one"
            law = "sack"
            size = "{size}B"
            "#
        ))
        .summary
    };
    for (size, header, packets) in [(192_000, 40, 200), (192_001, 40, 201), (192_000, 0, 192)] {
        let summary = scenario(size, header);
        let flow = &summary.flows[0];
        assert_eq!((flow.delivered_bytes, flow.size_bytes), (size, Some(size)));
        let link = &summary.links["bottleneck"];
        assert_eq!(link.arrivals, packets);
        let wire = link.utilization * link.rate_bps * 5.0 / 8.0;
        let expected = (size + packets * header) as f64;
        // The sum over the run is exact but for rounding.
        assert!((wire - expected).abs() < 1e-6 * expected, "{wire} on the wire for {expected}");
        assert!((summary.groups["one"].goodput_bps - size as f64 * 8.0 / 5.0).abs() < 1e-6 * expected);
    }
}

#[test]
fn offered_load_counts_headers() {
    let summary = run(r#"
        duration = "400s"
        [dumbbell]
        rate = "10Mbps"
        rtt = "20ms"
        [[flows]]
        name = "web"
        law = "sack"
        web = { load = 0.5, sizes = { distribution = "fixed", size = "960B" } }
        "#)
    .summary;
    // 0.5 of 10 Mb/s is 625 packets of 1000 bytes a second, each of them a flow; the error of a Poisson count is its root.
    let flows = summary.groups["web"].flows as f64;
    let expected = 625.0 * 400.0;
    assert!((flows - expected).abs() < 5.0 * expected.sqrt(), "{flows} flows for {expected}");
    let error = 5.0 / expected.sqrt();
    assert!((summary.links["bottleneck"].utilization - 0.5).abs() < 0.5 * error + 1e-3);
}

#[test]
fn flows_that_need_a_router_are_refused_without_one() {
    let text = r#"
        duration = "1s"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        [[flows]]
        name = "long"
        law = "xcp"
    "#;
    let error = load(text, Format::Toml, "test", &[], Path::new(".")).expect_err("a refusal").to_string();
    assert!(error.contains("\"xcp\" obeys routers, but no link on the path has router = \"xcp\""), "{error}");
}

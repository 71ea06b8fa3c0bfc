//! Defaults: laws start from the path that the scenario describes.

mod common;

use common::{honest, with_routers};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::Rate;
use flowstamp_sim::results::Results;
use flowstamp_sim::{Format, Simulation, load};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

fn run(text: &str) -> Results {
    let loaded = load(text, Format::Toml, "test", &[], Path::new(".")).expect("a scenario");
    Simulation::new(&loaded, None)
        .expect("a network")
        .run(&mut |_| ControlFlow::Continue(()))
        .expect("nobody stops it")
}

/// Rate, RTT in microseconds.
const PATHS: [(&str, u64); 6] = [
    ("10Gbps", 30),
    ("60Mbps", 25_000),
    ("1Mbps", 1_000_000),
    ("100Mbps", 100_000),
    ("80kbps", 12_000_000),
    ("10kbps", 90_000_000),
];

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
            if law == "xcp-draft" && path.1 > 16_000_000 {
                continue; // its header holds 32 bits of 2^-28 s
            }
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

/// A flow gets the same share on a path that is a thousand times shorter or longer than the Internet's. A TCP that
/// halves its window on a buffer of one pipe uses at least 3/4 of the link (`W` from pipe to two, and once from half a
/// pipe, where slow start overshot). BBR uses all except its visits to ProbeRTT. Each of those takes 2 or 3 round trips
/// of 10 where paths are long: 0.7.
#[test]
fn every_law_works_on_every_path_or_says_why_not() {
    let blind = |law: &SenderSpec| Some((law.name(), law.blind_router()?.name()));
    let on_blind: Vec<_> = honest().iter().filter_map(blind).collect();
    let pairs: BTreeSet<_> = with_routers(&honest()).into_iter().chain(on_blind).collect();
    for (law, router) in pairs {
        for (rate, rtt_us) in PATHS {
            let packets = Rate::from_str(rate).expect("a rate").bps() * rtt_us as f64 / 8e9;
            if packets > 150.0 {
                continue; // the same at more cost
            }
            let summary = run(&format!(
                r#"
                duration = "{}us"
                warmup = "{}us"
                [dumbbell]
                rate = "{rate}"
                rtt = "{rtt_us}us"
                router = "{router}"
                [[flows]]
                name = "long"
                law = "{law}"
                count = 2
                "#,
                300 * rtt_us,
                200 * rtt_us,
            ))
            .summary;
            let (used, warnings) = (summary.links["bottleneck"].utilization, &summary.warnings);
            let why: &[&str] = match (law, rtt_us) {
                // The first losses cost a timeout, which is longer than the run.
                ("reno" | "bbr", 30) => &["200ms are 6667 round trips of 30us: set transport.min_rto"],
                ("xcp-draft", 90_000_000) => &["carry RTTs up to 16s, but the flows' RTT is 90s"],
                _ => &[],
            };
            assert_eq!(warnings.len(), why.len(), "{law} at {rtt_us} us: {warnings:?}");
            assert!(warnings.iter().zip(why).all(|(line, why)| line.contains(why)), "{law}: {warnings:?}");
            assert!(used >= 0.7 || !why.is_empty(), "{law} over {router} at {rtt_us} us: {used}");
        }
    }
}

#[test]
fn timers_follow_long_paths() {
    let summary = dumbbell("xcp", ("10kbps", 90_000_000), 1, 0, 2).summary;
    let assumed = &summary.assumed;
    // RFC 6298 (2.2) gives 3 R after a first sample of R, and (2.5) lets it double; 3 R too, as 4 s to the paper's 1.4 s.
    assert_eq!(assumed["flows.long.transport.initial_rto"], "270s");
    assert_eq!(assumed["flows.long.transport.max_rto"], "540s");
    assert_eq!(assumed["bottleneck.router.max_rtt"], "270s");
    assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    let usual = dumbbell("xcp", PATHS[2], 1, 0, 2).summary.assumed;
    assert!(!usual.keys().any(|key| key.ends_with("max_rto") || key.ends_with("max_rtt")), "{usual:?}");
}

/// The warnings of one second of `law` over 1 Mb/s and 6 s with these keys.
fn over_six_seconds(law: &str, router: &str, link: &str, transport: &str) -> Vec<String> {
    run(&format!(
        r#"
        duration = "1s"
        [dumbbell]
        rate = "1Mbps"
        rtt = "6s"
        router = {router}
        {link}
        [[flows]]
        name = "long"
        law = "{law}"
        transport = {{ {transport} }}
        "#
    ))
    .summary
    .warnings
}

/// One line each: the key, its value, and a value that would be right.
#[test]
fn time_constants_shorter_than_the_path_warn() {
    let none = Vec::<String>::new();
    assert_eq!(over_six_seconds("sack", r#""none""#, "", ""), none);
    assert_eq!(over_six_seconds("sack", r#""none""#, "", r#"max_rto = "7s""#), none);
    assert_eq!(over_six_seconds("pcp", r#"{ law = "pcp", max_rtt = "6s" }"#, "", ""), none);
    let told = "flows.long.transport.max_rto: is 5s, but the flows' RTT is 6s, so that every packet times out; leave it out, or \
                give more than the RTT";
    assert_eq!(over_six_seconds("sack", r#""none""#, "", r#"max_rto = "5s""#), [told]);
    for (law, key) in [("xcp", "max_rtt"), ("rcp", "max_allowable_rtt")] {
        let router = format!(r#"{{ law = "{law}", {key} = "4s" }}"#);
        let told = format!("{key}: is 4s, but the flows' RTT is 6s; leave it out, or give more");
        let told = format!("router of bottleneck and bottleneck.reverse: {told}");
        assert_eq!(over_six_seconds(law, &router, "", ""), [told]);
    }
    let told = "police of bottleneck and bottleneck.reverse: judges flows within round trips of 2s, but their RTT is 6s, so that honest flows fail; \
                leave it out";
    assert_eq!(over_six_seconds("xcp", r#""xcp""#, "police = {}", ""), [told]);
    let told = "share of bottleneck and bottleneck.reverse: max_interval: is 2s, but the flows' RTT is 6s, so that flows are counted over less than a \
                round trip; set min_interval = \"12s\" and max_interval = \"120s\"";
    assert_eq!(over_six_seconds("xcp", r#""xcp""#, r#"share = "wfq""#, ""), [told]);
}

/// RFC 6298 (2.3) and (2.4): RTO = max(min_rto, SRTT + 4 RTTVAR), to which the clock of a simulator adds nothing. With
/// a buffer of 64 packets no RTT is above 100 us + 64 * 8 us = 612 us, no deviation above 512 us, and so no RTO above
/// max(2 ms, 612 us + 4 * 512 us) = 2.66 ms. By ns-2's clock of 10 ms it is two ticks.
#[test]
fn incast_waits_for_the_timeout_that_is_asked_for() {
    let with = |tick: &str| {
        let summary = run(&format!(
            r#"
            duration = "400ms"
            [dumbbell]
            rate = "1Gbps"
            rtt = "100us"
            buffer = "64pkt"
            [[flows]]
            name = "incast"
            law = "sack"
            count = 32
            size = "64kB"
            transport = {{ min_rto = "2ms", initial_rto = "2ms" {tick} }}
            "#
        ))
        .summary;
        let group = &summary.groups["incast"];
        assert!(group.timeouts > 0 && group.completed == 32);
        let link = &summary.links["bottleneck"];
        let busy_s = (link.arrivals - link.drops) as f64 * 8e-6;
        let last_s = summary.flows.iter().filter_map(|flow| flow.fct_s).fold(0.0, f64::max);
        let timeouts = summary.flows.iter().map(|flow| flow.timeouts).max().expect("flows");
        (last_s - busy_s, f64::from(timeouts))
    };
    let (idle_s, timeouts) = with("");
    // Each timeout in a row doubles it (5.5); what is lost again is found a round trip later.
    let most_s = 2.66e-3 * (timeouts.exp2() - 1.0) + 4.0 * 612e-6;
    assert!(idle_s < most_s, "{idle_s} s idle, {timeouts} timeouts of a flow");
    let (idle_s, _) = with(r#", tick = "10ms""#);
    assert!(idle_s > 10e-3, "{idle_s} s idle by a clock of 10 ms");
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
            "alpha: is {alpha}; with beta = {beta} the law's model is stable below {most:.2}; set alpha below that; see flowstamp stability"
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
    // Windows that are sent at once (docs/explanation/stability.md).
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
    let told = format!("alpha = 0.4, beta = 0.226, gamma = 0.1: {told}, 10ms to 200ms; set ");
    let warnings = |gamma: &str| with(gamma, ", pacing = true", 80, 200).0;
    let said = warnings("");
    let begin = format!("router of bottleneck and bottleneck.reverse: {told}");
    let line = said.iter().find(|line| line.starts_with(&begin) && line.ends_with(of));
    let line = line.unwrap_or_else(|| panic!("{said:?}"));
    // Its advice is right: that value gives no such warning, and a hundredth more does.
    if let Some(alpha) = line.split("set alpha to ").nth(1).and_then(|rest| rest.split(' ').next()) {
        let alpha: f64 = alpha.parse().expect("a number");
        let linear = |alpha: f64| {
            warnings(&format!(", alpha = {alpha}")).iter().any(|line| line.contains("linear model"))
        };
        assert_eq!([linear(alpha), linear(alpha + 0.01)], [false, true]);
    } else {
        assert!(line.contains("set a smaller beta and alpha"), "{line}");
    }
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
                that meet by chance then keep R low and the link is not full; set a rate of at least 2666.667Mbps, a smaller packet or a \
                smaller count";
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
        // The sum over the run is exact except for rounding.
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

//! VCP in the simulator: what follows from a scenario that says nothing, what other packets meet, where the exact law rests.

mod common;

use common::{run, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;

fn refused(text: &str) -> String {
    try_load(text).err().map_or_else(|| panic!("this was taken:\n{text}"), |e| e.to_string())
}

/// The mean of a law's variable from an instant on.
fn mean_of(results: &Results, metric: &str, from_s: f64) -> f64 {
    let series = &results.series;
    let key = series.keys.iter().position(|k| k.kind == "law" && k.metric == metric).expect("it was probed");
    let rows = series.key.iter().zip(&series.time_s).zip(&series.value);
    let values: Vec<f64> =
        rows.filter(|((k, t), _)| **k as usize == key && **t >= from_s).map(|(_, v)| *v).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// One flow told nothing fills the link in the time of the multiplicative increase: t_rho is 2.5 RTTs, each of which brings
/// a sixteenth. Between cuts to 7/8 of gamma = 0.98 the link is used to 0.92 in the mean.
#[test]
fn a_flow_that_sets_nothing_fills_the_link() {
    for (rate, bps, rtt_us) in
        [("10Gbps", 1e10, 30), ("60Mbps", 6e7, 25_000), ("1Mbps", 1e6, 1_000_000), ("100Mbps", 1e8, 100_000)]
    {
        let packets = bps * rtt_us as f64 / 8e9;
        let from = (2.5 * (packets / 2.0).ln() / (17.0_f64 / 16.0).ln()).ceil() as u64 + 10;
        let results = run(&format!(
            r#"
            duration = "{}us"
            warmup = "{}us"
            [dumbbell]
            rate = "{rate}"
            rtt = "{rtt_us}us"
            router = "vcp"
            [[flows]]
            name = "one"
            law = "vcp"
            "#,
            (from + 200) * rtt_us,
            from * rtt_us,
        ));
        let link = &results.summary.links["bottleneck"];
        assert!(link.utilization >= 0.85, "{rate} {rtt_us} us: {}", link.utilization);
        assert_eq!(link.drops, 0, "{rate} {rtt_us} us");
        let assumed = &results.summary.assumed["vcp.t_rho"];
        assert_eq!(*assumed, flowstamp_laws::Time::from_micros(rtt_us * 5 / 2).to_string());
    }
}

/// Section III-D: with equation 8 flows of 40 and 160 ms have equal rates, with equation 7 (footnote 5) equal windows. A
/// flow whose acks come in bursts waits for whole round trips after a cut: 320 ms in place of a `t_rho` of 200 ms.
#[test]
fn equal_windows_are_rates_by_the_rtt() {
    let ratio = |law: &str, t_rho_ms: u32| {
        let r = run(&format!(
            r#"
            duration = "120s"
            warmup = "40s"
            [dumbbell]
            rate = "20Mbps"
            rtt = "40ms"
            router = {{ law = "vcp", t_rho = "{t_rho_ms}ms" }}
            [[flows]]
            name = "short"
            law = {law}
            count = 4
            [[flows]]
            name = "long"
            law = {law}
            count = 4
            rtt = ["160ms", "160ms", "160ms", "160ms"]
            "#
        ));
        r.summary.groups["short"].goodput_bps / r.summary.groups["long"].goodput_bps
    };
    let windows = r#"{ law = "vcp", equal_windows = true }"#;
    for (law, t_rho_ms, expected) in
        [(r#""vcp""#, 200, 1.0), (windows, 160, 4.0), (windows, 200, 5.0), (windows, 320, 4.0)]
    {
        let ratio = ratio(law, t_rho_ms);
        assert!((ratio / expected - 1.0).abs() < 0.05, "{law}, {t_rho_ms} ms: {ratio}, not {expected}");
    }
}

fn one(router: &str, law: &str, more: &str) -> String {
    format!(
        r#"
        duration = "40s"
        warmup = "20s"
        header = "0B"
        [dumbbell]
        rate = "10Mbps"
        rtt = "80ms"
        router = {router}
        {more}
        [[flows]]
        name = "vcp"
        law = {law}
        [probes]
        every = "100ms"
        laws = true
        "#
    )
}

#[test]
fn all_of_a_network_have_the_same_interval() {
    let warnings = |router: &str, law: &str| run(&one(router, law, "")).summary.warnings;
    // One router has the value, the others follow; and 200 ms are 2.5 RTTs of 80 ms.
    let router = r#"{ law = "vcp", t_rho = "100ms" }"#;
    let by_router = run(&one(router, "\"vcp\"", ""));
    let by_both = run(&one(router, r#"{ law = "vcp", t_rho = "100ms" }"#, ""));
    let by_nobody = run(&one("\"vcp\"", "\"vcp\"", ""));
    let by_paper =
        run(&one(r#"{ law = "vcp", t_rho = "200ms" }"#, r#"{ law = "vcp", t_rho = "200ms" }"#, ""));
    assert_eq!(by_router.flows[0].delivered_bytes, by_both.flows[0].delivered_bytes);
    assert_eq!(by_nobody.flows[0].delivered_bytes, by_paper.flows[0].delivered_bytes);
    assert_ne!(by_router.flows[0].delivered_bytes, by_nobody.flows[0].delivered_bytes);
    assert_eq!(by_router.summary.assumed["vcp.t_rho"], "100ms");
    // Values that contradict each other or the path are reported.
    let said = warnings(router, r#"{ law = "vcp", t_rho = "300ms" }"#);
    assert!(said.iter().any(|w| w.contains("300ms") && w.contains("must have the same")), "{said:?}");
    let said = warnings(r#"{ law = "vcp", t_rho = "1ms" }"#, "\"vcp\"");
    assert!(said.iter().any(|w| w.contains("t_rho: is 1ms") && w.contains("200ms")), "{said:?}");
    assert!(warnings("\"vcp\"", "\"vcp\"").is_empty());
}

#[test]
fn its_links_send_acks_first_unless_told_otherwise() {
    let queues = |more: &str| {
        let results = run(&one("\"vcp\"", "\"vcp\"", more));
        let has = |metric: &str| results.series.keys.iter().any(|k| k.metric == metric);
        (has("ack_queue_bytes"), has("data_queue_bytes"))
    };
    assert_eq!(queues(""), (true, true));
    assert_eq!(queues("priority = \"acks\""), (true, true));
    assert_eq!(queues("priority = \"none\""), (false, false));
    // A link with its own scheduler keeps it.
    assert!(!queues("share = \"wfq\"").0);
    assert!(!queues("queue = \"dualpi2\"").0);
}

/// Section VI-C: overload is congestion experienced to TCP, any other load is nothing.
#[test]
fn tcp_is_marked_at_overload() {
    let tcp = |ecn: bool, others: bool| {
        run(&format!(
            r#"
            duration = "60s"
            warmup = "5s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "80ms"
            router = {{ law = "vcp", t_rho = "200ms", mark_others = {others} }}
            buffer = "2BDP"
            [[flows]]
            name = "tcp"
            law = "sack"
            transport = {{ ecn = {ecn} }}
            "#
        ))
    };
    for (ecn, others) in [(true, true), (true, false), (false, true)] {
        let link = &tcp(ecn, others).summary.links["bottleneck"];
        let marked = ecn && others;
        assert_eq!((link.marks > 0, link.drops == 0), (marked, marked), "{link:?}");
    }
}

#[test]
fn a_law_without_its_router_or_out_of_range_is_refused() {
    let none = refused(&one("\"xcp\"", "\"vcp\"", ""));
    assert!(none.contains("flows.vcp.law") && none.contains("router = \"vcp\""), "{none}");
    for (router, law, key, right) in [
        (r#"{ law = "vcp", gamma = 1.5 }"#, "\"vcp\"", "gamma", "0"),
        (r#"{ law = "vcp", t_rho = "0s" }"#, "\"vcp\"", "t_rho", "1ns or longer"),
        (r#"{ law = "vcp", t_q = "1s", t_rho = "200ms" }"#, "\"vcp\"", "t_q", "at most t_rho"),
        ("\"vcp\"", r#"{ law = "vcp", kappa = 0.0 }"#, "kappa", "0.000001"),
        ("\"vcp\"", r#"{ law = "vcp", ai_limiter = "half" }"#, "half", "tenth"),
    ] {
        let text = one(router, law, "");
        let said = match try_load(&text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ())) {
            Ok(()) => panic!("this was taken:\n{text}"),
            Err(e) => e.to_string(),
        };
        assert!(said.contains(key) && said.contains(right), "{said}");
    }
}

/// Section V in equilibrium: rho = 1 + alpha / (kappa gamma P) with P the bandwidth-delay product for t_rho. alpha and
/// gamma as they are, 200 ms at 10 Mb/s are 250 packets, so that rho = 1 + 1/(0.25 * 0.98 * 250) = 1.0163; and a flow
/// of an RTT of t_rho.
#[test]
fn the_exact_law_rests_where_section_v_says() {
    let text = |step: f64| {
        format!(
            r#"
            duration = "120s"
            warmup = "80s"
            header = "0B"
            [dumbbell]
            rate = "10Mbps"
            rtt = "200ms"
            buffer = "2BDP"
            router = {{ law = "vcp-exact", t_rho = "200ms", step = {step}, target = 0.9, gamma = 0.95 }}
            [[flows]]
            name = "one"
            law = "vcp-exact"
            [probes]
            every = "200ms"
            laws = true
            "#
        )
    };
    let still = run(&text(0.0));
    let rho = mean_of(&still, "load_factor", 80.0);
    let expected = 1.0 + 1.0 / (0.25 * 0.95 * 250.0);
    // A load is of whole packets: one in 237.
    assert!((rho - expected).abs() < 1.0 / 237.0, "{rho}, not {expected}");
    let used = still.summary.links["bottleneck"].utilization;
    assert!((used - 0.95 * expected).abs() < 0.005, "{used}");
    // Equation 14: gamma goes below what is wanted by what alpha adds, a hundredth at a time.
    let moved = run(&text(0.01));
    let used = moved.summary.links["bottleneck"].utilization;
    assert!((used - 0.9).abs() < 0.01, "{used}");
}

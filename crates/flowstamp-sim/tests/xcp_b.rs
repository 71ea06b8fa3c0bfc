//! XCP-b in the engine: a link whose capacity no router knows is filled, its queue rests at kappa and stays below the bound of
//! figure 4, and a capacity that falls away costs losses that halve windows (Abrantes and Ricardo 2006, section 3).

mod common;

use common::{run, try_load};
use flowstamp_sim::results::Results;
use proptest::prelude::*;

/// A dumbbell of these rates from instants on, which nobody knows, with flows of XCP over XCP-b.
fn blind(steps: &str, rtt_ms: f64, duration_s: f64, warmup_s: f64, link: &str, flows: &str) -> Results {
    run(&format!(
        r#"
        duration = "{duration_s}s"
        warmup = "{warmup_s}s"
        [dumbbell]
        rate = {{ steps = {steps}, known = false }}
        rtt = "{rtt_ms}ms"
        {link}
        [[flows]]
        name = "flows"
        {flows}
        "#
    ))
}

/// The highest queue of figure 4 in bytes, whose queue is to rest at `kappa`: feedback of `fixed` bytes in each interval until one
/// after the first queue is there, from then on equation 9's. Figure 4 has no kappa yet: it is this with 0.
fn figure_4(fixed: f64, kappa: f64) -> f64 {
    const ALPHA: f64 = 0.4;
    const BETA: f64 = 0.2263;
    // The rate over the capacity in bytes in an interval, and the queue, at 5d.
    let (mut excess, mut before, mut queue, mut highest) = (2.0 * fixed, 0.0, fixed, fixed);
    for _ in 5..60 {
        let feedback = -ALPHA * (queue - before) - BETA * (queue - kappa);
        (before, queue, excess) = (queue, f64::max(queue + excess, 0.0), excess + feedback);
        highest = highest.max(queue);
    }
    highest
}

#[test]
fn without_kappa_the_bound_is_the_papers() {
    assert!((figure_4(1.0, 0.0) - (5.0 - 0.4 - 0.2263)).abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Figure 4: `(5 - alpha - beta) chi Qmax` at the most, for a capacity that stays, and what resting at kappa adds. The paper's model is a
    /// fluid; in packets each flow may have as much as its first window, two packets, arrive at one instant. First windows together
    /// must fit into the pipe: before anything is known, nobody can hold them back.
    #[test]
    fn the_queue_stays_below_figure_4s_bound(
        (law, router) in prop::sample::select(vec![("xcp", "xcp-b"), ("xcp-draft", "xcp-b-draft")]),
        mbps in (0.0..2.3f64).prop_map(|e| 10f64.powf(e)),
        rtt_ms in (0.7..2.5f64).prop_map(|e| 10f64.powf(e)),
        flows in 1u32..30,
        q_max in (4.0..5.7f64).prop_map(|e| 10f64.powf(e)),
        chi in 0.05..0.2286f64,
        (kappa, kappa_bytes) in prop::sample::select(vec![("3pkt", 3000.0), ("6pkt", 6000.0), ("3kB", 3000.0)]),
        detection in prop::sample::select(vec!["average", "counter"]),
    ) {
        let pipe = mbps * 1e6 * rtt_ms * 1e-3 / 8.0;
        let flows = flows.min((pipe / 2000.0) as u32);
        let fill = pipe / (chi * q_max);
        prop_assume!(flows > 0 && fill < 60.0 && pipe * fill < 2e8);
        let r = blind(
            &format!("[[\"0s\", \"{mbps}Mbps\"]]"), rtt_ms, (fill + 60.0) * rtt_ms * 1e-3, 0.0,
            &format!("buffer = \"1GB\"\nrouter = {{ law = \"{router}\", q_max = \"{}B\", chi = {chi}, kappa = \"{kappa}\", \
                detection = \"{detection}\" }}", q_max as u64),
            &format!("law = \"{law}\"\ncount = {flows}"),
        );
        let bound = figure_4(chi * q_max, kappa_bytes) + f64::from(flows) * 2000.0;
        let link = &r.summary.links["bottleneck"];
        prop_assert!(link.max_queue_bytes as f64 <= bound, "{} of {bound}: {link:?}", link.max_queue_bytes);
    }
}

/// The queue rests at kappa, which with it keeps the link busy, and flows share evenly, as of an XCP that knows the capacity.
#[test]
fn rests_at_kappa_with_the_link_full() {
    for (kappa, least, most) in
        [("3pkt", 2000.0, 5000.0), ("8pkt", 7000.0, 10_000.0), ("8kB", 7000.0, 10_000.0)]
    {
        let r = blind(
            r#"[["0s", "10Mbps"]]"#,
            100.0,
            40.0,
            20.0,
            &format!("buffer = \"64kB\"\nrouter = {{ law = \"xcp-b\", kappa = \"{kappa}\" }}"),
            "law = \"xcp\"\ncount = 5\nevery = \"1s\"",
        );
        let link = &r.summary.links["bottleneck"];
        assert!(link.utilization > 0.99, "{link:?}");
        // The persistent queue is at kappa; what comes and goes above it within an interval is a packet or two.
        assert!((least..most).contains(&link.mean_queue_bytes), "kappa {kappa}: {link:?}");
        assert_eq!(link.drops, 0);
        let jain = r.summary.groups["flows"].jain_index.expect("five flows");
        assert!(jain > 0.999, "{jain}");
    }
}

/// Section 3: "If such a drastic change occurs, packets may be dropped, and sources will half the congestion window."
#[test]
fn a_capacity_that_falls_away_halves_windows() {
    let r = blind(
        r#"[["0s", "20Mbps"], ["20s", "2Mbps"]]"#,
        100.0,
        30.0,
        19.0,
        "buffer = \"64kB\"\nrouter = \"xcp-b\"",
        "law = \"xcp\"\n[probes]\nevery = \"10ms\"\nflows = true",
    );
    // A window of 250 kB does not fit into a pipe of 25 and a buffer of 64 kB.
    assert!(r.summary.links["bottleneck"].drops > 0);
    let key = r.series.keys.iter().position(|k| k.metric == "cwnd_packets").expect("windows");
    let windows: Vec<f64> = (0..r.series.key.len())
        .filter(|i| r.series.key[*i] as usize == key && r.series.time_s[*i] > 20.0)
        .map(|i| r.series.value[i])
        .collect();
    assert!(windows.windows(2).any(|w| w[1] <= 0.55 * w[0]), "no halving in {windows:?}");
    // "After that, XCP-b congestion control is resumed": the last seconds are steady again.
    let (last, before) = (windows[windows.len() - 1], windows[windows.len() - 100]);
    assert!((last / before - 1.0).abs() < 0.2 && last < 60.0, "{before} to {last} packets");
}

/// "Only needs to be deployed in the nodes where capacity is variable and it inter-operates with XCP": a path through both has
/// what the tighter of them gives, wherever that is.
#[test]
fn inter_operates_with_xcp_routers_on_the_other_links() {
    for (wired, blind) in [(8, 20), (20, 8)] {
        let r = run(&format!(
            r#"
            duration = "40s"
            warmup = "20s"
            [graph]
            links = [
                {{ from = "n", to = "ap", rate = "{wired}Mbps", delay = "20ms", router = "xcp" }},
                {{ from = "ap", to = "w", rate = {{ steps = [["0s", "{blind}Mbps"]], known = false }}, delay = "1ms", buffer = "64kB", router = "xcp-b" }},
            ]
            [[flows]]
            name = "flows"
            law = "xcp"
            count = 4
            from = "n"
            to = "w"
            access = {{ rate = "100Mbps", delay = "1ms" }}
            "#
        ));
        let links = &r.summary.links;
        let tight = if wired < blind { &links["n->ap"] } else { &links["ap->w"] };
        assert!(tight.utilization > 0.95, "{wired}, {blind}: {links:?}");
        assert!(links.values().all(|l| l.drops == 0), "{links:?}");
        assert!(r.summary.groups["flows"].jain_index.is_some_and(|j| j > 0.99));
    }
}

#[test]
fn bad_input_is_refused_by_name() {
    let refused = |router: &str| {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = {{ steps = [[\"0s\", \"10Mbps\"]], known = false }}\nrtt = \"40ms\"\nrouter = {router}\n\
             [[flows]]\nname = \"f\"\nlaw = \"xcp\"\n"
        );
        let loaded = try_load(&text).and_then(|l| flowstamp_sim::Simulation::new(&l, None).map(|_| ()));
        loaded.expect_err(router).to_string()
    };
    for (router, words) in [
        ("{ law = \"xcp-b\", q_max = \"0B\" }", "q_max: is 0B"),
        ("{ law = \"xcp-b\", kappa = \"0pkt\" }", "kappa: is 0pkt; it must be above 0"),
        ("{ law = \"xcp-b\", kappa = 3 }", "such as \"3pkt\""),
        ("{ law = \"xcp-b\", kappa = \"3\" }", "has no unit"),
        ("{ law = \"xcp-b\", detection = \"counter\", tau = 0.1 }", "leave it out"),
        ("\"xcp\"", "\"xcp\" needs the link's capacity"),
    ] {
        let message = refused(router);
        assert!(message.contains(words) && !message.contains('\n'), "{router}: {message}");
    }
}

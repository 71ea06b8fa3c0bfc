//! The harm that lying senders can do to a link and to honest flows, without the routers' bounds and with them.

mod common;

use common::{run, samples};
use flowstamp_sim::results::Results;
use proptest::prelude::*;

/// Mean goodput of a group's flows over some of the time, bits per second.
fn goodput(r: &Results, group: &str, (from_s, to_s): (f64, f64)) -> f64 {
    let key =
        r.series.keys.iter().position(|k| k.name == group && k.metric == "goodput_bps").expect("series");
    let values: Vec<f64> = (0..r.series.key.len())
        .filter(|i| r.series.key[*i] as usize == key)
        .filter(|i| from_s < r.series.time_s[*i] && r.series.time_s[*i] <= to_s)
        .map(|i| r.series.value[i])
        .collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The most that a series of the bottleneck came to after 15 s.
fn most(r: &Results, metric: &str) -> f64 {
    samples(r, "bottleneck", metric, 15.0).into_iter().fold(0.0, f64::max)
}

/// Share of the link, with headers of 40 bytes in packets of 1500.
const PAYLOAD: f64 = 1460.0 / 1500.0;
const LINK: f64 = 95e6;

/// Packets of 74 bytes, `per_s` of them in a second from 10 s on, that name 15 s and one packet in flight; three honest flows, a fourth from
/// 40 s on.
fn xcp(law: &str, bound: &str, per_s: f64) -> Results {
    let stranger = if per_s > 0.0 {
        format!(
            r#"
            [[flows]]
            name = "stranger"
            law = {{ law = "{law}-liar", rtt = "15s", window = 1 }}
            start = "10s"
            count = {}
            every = "{}us"
            size = "34B"
            "#,
            (50.0 * per_s) as u64,
            1e6 / per_s
        )
    } else {
        String::new()
    };
    run(&format!(
        r#"
        duration = "60s"
        packet = "1500B"
        [dumbbell]
        rate = "95Mbps"
        rtt = "50ms"
        buffer = "2BDP"
        router = {{ law = "{law}"{bound} }}
        [[flows]]
        name = "honest"
        law = "{law}"
        count = 3
        [[flows]]
        name = "newcomer"
        law = "{law}"
        start = "40s"
        {stranger}
        [probes]
        every = "1s"
        laws = true
        "#
    ))
}

/// The review's attack on XCP as the papers write it: the honest flows' sum falls towards C alpha / (alpha + gamma), `d` rises to seconds, and
/// newcomers stay where they begin. The harm that the other tests bound really exists.
#[test]
fn one_small_packet_costs_xcp_a_fifth() {
    for (law, per_s) in [("xcp", 20.0), ("xcp-draft", 1.0), ("xcp-draft", 20.0)] {
        let r = xcp(law, "", per_s);
        let sum = goodput(&r, "honest", (30.0, 40.0)) / PAYLOAD;
        let newcomer = goodput(&r, "newcomer", (47.0, 50.0)) / PAYLOAD;
        // alpha and gamma are 0.4 and 0.1; what the last intervals have not settled.
        assert!((0.75..0.85).contains(&(sum / LINK)), "{law}, {per_s} a second: {sum}");
        assert!(newcomer < 0.1 * LINK / 4.0, "{law}, {per_s} a second: {newcomer}");
        assert!(most(&r, "avg_rtt_s") > 2.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// With a share `b` of the bytes, here up to 0.4%, a liar takes at most `c b`, and 2%; who comes has 80% of its share in 10 s.
    #[test]
    fn bounded_a_liar_takes_little_of_xcp(
        law in prop::sample::select(vec!["xcp", "xcp-draft"]),
        log_per_s in 0.0..6.5f64,
    ) {
        let c = 16.0;
        let per_s = log_per_s.exp();
        let b = per_s * 74.0 * 8.0 / LINK;
        let r = xcp(law, &format!(", max_weight = {c}"), per_s);
        let honest = goodput(&r, "honest", (30.0, 40.0)) / PAYLOAD;
        prop_assert!(honest > (1.0 - c * b - 0.02) * LINK, "{} of {}", honest, LINK);
        let newcomer = goodput(&r, "newcomer", (49.0, 51.0)) / PAYLOAD;
        prop_assert!(newcomer > 0.8 * (LINK - b * LINK) / 4.0, "{} for {} packets a second", newcomer, per_s);
    }
}

/// Without liars, the bound changes no rate by 0.1 Mb/s, neither in equilibrium nor after a start.
#[test]
fn honest_flows_do_not_notice_the_bound() {
    for law in ["xcp", "xcp-draft"] {
        let (free, bounded) = (xcp(law, "", 0.0), xcp(law, ", max_weight = 16", 0.0));
        for (group, span) in [("honest", (5.0, 40.0)), ("honest", (50.0, 60.0)), ("newcomer", (42.0, 60.0))] {
            let (a, b) = (goodput(&free, group, span), goodput(&bounded, group, span));
            assert!((a - b).abs() < 0.1e6, "{law}, {group} in {span:?}: {a} and {b}");
        }
    }
}

/// Flows of RCP of which half leave at 30 s and others come at 50 s, and packets of 74 bytes that name `rtt`.
fn rcp(flows: u32, bound: &str, rtt: &str, per_s: u32) -> Results {
    let half = flows / 2;
    run(&format!(
        r#"
        duration = "62s"
        packet = "1500B"
        [dumbbell]
        rate = "95Mbps"
        rtt = "50ms"
        buffer = "2BDP"
        router = {{ law = "rcp"{bound} }}
        [[flows]]
        name = "stays"
        law = "rcp"
        count = {half}
        [[flows]]
        name = "leaves"
        law = "rcp"
        count = {half}
        stop = "30s"
        [[flows]]
        name = "comes"
        law = "rcp"
        count = {half}
        start = "50s"
        [[flows]]
        name = "stranger"
        law = {{ law = "rcp-liar", rtt = "{rtt}", hears = "nothing" }}
        transport = {{ handshake = false }}
        start = "10s"
        count = {}
        every = "{}us"
        size = "34B"
        [probes]
        every = "1s"
        laws = true
        "#,
        52 * per_s,
        1_000_000 / per_s.max(1)
    ))
}

/// The quality of `R` if `d` is a liar's: the spare capacity two seconds after half of the flows have left, and the
/// losses when others come.
#[test]
fn rcp_adapts_slowly_where_a_liar_is_believed() {
    for flows in [4, 40] {
        let r = rcp(flows, "", "19s", 20);
        let after = goodput(&r, "stays", (30.0, 33.0)) / PAYLOAD;
        assert!(most(&r, "avg_rtt_s") > 0.2 && after < 0.93 * LINK, "{flows}: {after}");
        assert!(r.summary.links["bottleneck"].drops > 100);
    }
}

/// Bounded, `d` is within a quarter of what it is without the stranger, whatever that names, and `R` keeps up.
#[test]
fn bounded_a_liar_does_nothing_to_rcp() {
    for flows in [4, 40] {
        let alone = most(&rcp(flows, "", "1s", 0), "avg_rtt_s");
        for (rtt, per_s) in [("19s", 1), ("19s", 20), ("19s", 200), ("1us", 200), ("1us", 2000)] {
            let r = rcp(flows, ", max_rtt_factor = 4", rtt, per_s);
            let b = f64::from(per_s) * 74.0 * 8.0 / LINK;
            let what = format!("{flows} flows, {rtt}, {per_s} a second");
            let d = most(&r, "avg_rtt_s");
            assert!((0.75..1.25).contains(&(d / alone)), "{what}: d {d}, {alone} alone");
            for (group, span, share) in
                [("stays", (31.0, 34.0), 1.0), ("stays", (40.0, 50.0), 1.0), ("comes", (52.0, 55.0), 0.5)]
            {
                let got = goodput(&r, group, span) / PAYLOAD;
                // 2% as for XCP, and what the liar's packets carry.
                assert!(got > (share - b - 0.02) * LINK, "{what}: {group} has {got} in {span:?}");
            }
            assert_eq!(r.summary.links["bottleneck"].drops, 0, "{what}");
        }
    }
}

/// The tables of docs/models/police.md are what these runs give.
#[test]
fn the_page_says_what_was_measured() {
    let mut rows = Vec::new();
    for (bound, rates) in [("", &[1.0, 20.0][..]), (", max_weight = 16", &[1.0, 20.0, 200.0])] {
        for per_s in rates {
            let r = xcp("xcp-draft", bound, *per_s);
            let [sum, newcomer] =
                [goodput(&r, "honest", (30.0, 40.0)), goodput(&r, "newcomer", (49.0, 51.0))]
                    .map(|bps| bps / PAYLOAD / 1e6);
            rows.push(format!("| {per_s} | {sum:.1} | {:.3} | {newcomer:.1} |", most(&r, "avg_rtt_s")));
        }
    }
    for bound in ["", ", max_rtt_factor = 4"] {
        for per_s in [1, 20, 200] {
            let r = rcp(40, bound, "19s", per_s);
            let after = goodput(&r, "stays", (31.0, 34.0)) / PAYLOAD / 1e6;
            let drops = r.summary.links["bottleneck"].drops;
            rows.push(format!("| {per_s} | {after:.1} | {:.3} | {drops} |", most(&r, "avg_rtt_s")));
        }
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models/police.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert!(missing.is_empty(), "{missing:#?}\nof\n{}", rows.join("\n"));
}

/// A flow that ignores what it is told is found, held to half of its rate, and the honest never are; what it is worth to the others.
#[test]
fn the_police_isolates_who_does_not_obey_and_nobody_else() {
    for (law, lies, link) in [
        ("xcp", r#"hears = "nothing""#, ""),
        ("xcp", r#"hears = "nothing", rtt = "2s""#, ""),
        ("xcp", r#"hears = "nothing", rtt = "0s""#, ""),
        ("xcp", r#"hears = "increases""#, ""),
        ("xcp", r#"hears = "increases""#, r#"share = "wfq""#),
        ("xcp", r#"hears = "increases""#, r#"share = "drr""#),
        ("xcp", r#"hears = "nothing""#, r#"queue = "codel""#),
        ("xcp-draft", r#"hears = "nothing""#, ""),
        ("xcp-draft", r#"hears = "largest""#, ""),
        ("rcp", r#"hears = "nothing""#, ""),
        ("rcp", r#"hears = "nothing", rtt = "0s""#, ""),
        ("rcp", r#"hears = "largest""#, ""),
        ("rcp", r#"hears = "largest""#, r#"share = "wfq""#),
    ] {
        let pace = if lies.contains("nothing") { r#", pace = "20Mbps""# } else { "" };
        let r = run(&format!(
            r#"
            duration = "60s"
            packet = "1500B"
            [dumbbell]
            rate = "50Mbps"
            rtt = "50ms"
            buffer = "2BDP"
            police = {{ heavy = "4Mbps", isolate = "100s" }}
            router = "{law}"
            {link}
            [[flows]]
            name = "honest"
            law = "{law}"
            count = 4
            [[flows]]
            name = "liar"
            law = {{ law = "{law}-liar", {lies}{pace} }}
            start = "5s"
            "#
        ));
        let tested = r.summary.links["bottleneck"].police.as_ref().expect("there is a police");
        let liar = tested
            .iter()
            .find(|t| t.group == "liar")
            .unwrap_or_else(|| panic!("{law}, {lies}, {link}: it is not tested"));
        let isolated = liar.isolated_s.unwrap_or_else(|| panic!("{law}, {lies}, {link}: {liar:?}"));
        assert!(isolated < 35.0, "{law}, {lies}, {link}: {liar:?}");
        assert!(
            tested.iter().all(|t| t.group == "liar" || t.isolations == 0),
            "{law}, {lies}, {link}: {tested:?}"
        );
    }
}

//! A core cloud whose edges map flows onto XCP macro-flows (Katabi 2002, section 8.1), and datagrams.

mod common;

use common::{run, timeless, try_load};
use flowstamp_sim::results::Results;
use proptest::prelude::*;

/// Three sites with links of their own into the cloud; what all take is its last link.
fn cloud(seed: u64, flows: [u32; 2], core_mbps: u32, buffer: &str, extra: &str) -> String {
    let [many, few] = flows;
    let links: String = (1..=3)
        .map(|n| {
            format!(
                r#"
        [[graph.links]]
        name = "edge{n}"
        from = "site{n}"
        to = "in{n}"
        rate = "100Mbps"
        delay = "1ms"
        buffer = "{buffer}"
        [[graph.links]]
        name = "cloud{n}"
        from = "in{n}"
        to = "core"
        rate = "100Mbps"
        delay = "5ms"
        router = "xcp"
        [[flows]]
        name = "macro{n}"
        law = "xcp-edge"
        from = "in{n}"
        to = "out"
        governs = "edge{n}"
        "#
            )
        })
        .collect();
    format!(
        r#"
        seed = {seed}
        duration = "20s"
        warmup = "5s"
        header = "0B"
        {links}
        [[graph.links]]
        name = "core"
        from = "core"
        to = "out"
        rate = "{core_mbps}Mbps"
        delay = "15ms"
        router = "xcp"
        [[flows]]
        name = "many"
        law = "reno"
        count = {many}
        from = "site1"
        to = "out"
        spread = "1s"
        access = {{ rate = "1Gbps", delay = "2ms" }}
        [[flows]]
        name = "few"
        law = "reno"
        count = {few}
        from = "site2"
        to = "out"
        spread = "1s"
        access = {{ rate = "1Gbps", delay = "2ms" }}
        [[flows]]
        name = "udp"
        law = "udp"
        rate = "30Mbps"
        from = "site3"
        to = "out"
        access = {{ rate = "1Gbps", delay = "2ms" }}
        {extra}
        "#
    )
}

/// Section 8.1's basic form: a header on each packet, and `H_rtt` is the propagation delay.
const BASIC: &str = r#"{ law = "xcp-edge", headers = "packets", stated_rtt = "propagation" }"#;

fn mbps(r: &Results, group: &str) -> f64 {
    r.summary.groups[group].goodput_bps / 1e6
}

/// Section 8.1: each macro-flow gets the core's capacity in proportion to its micro-flows, so that an unresponsive flow is held to the share of
/// one; the core drops nothing, and its queue stays small. The same holds in the basic form, with a header on each packet.
#[test]
fn macro_flows_get_what_their_micro_flows_would() {
    let cases = [([10, 5], 45), ([4, 4], 30), ([12, 3], 60)];
    for (law, (flows, core)) in [r#""xcp-edge""#, BASIC].into_iter().flat_map(|law| cases.map(|c| (law, c))) {
        let r = run(&cloud(1, flows, core, "400pkt", "").replace(r#""xcp-edge""#, law));
        let share = f64::from(core) / f64::from(flows[0] + flows[1] + 1);
        for (group, n) in [("many", flows[0]), ("few", flows[1]), ("udp", 1)] {
            let fair = share * f64::from(n);
            assert!(
                (mbps(&r, group) / fair - 1.0).abs() < 0.1,
                "{law}: {group} of {flows:?}: {} of {fair}",
                mbps(&r, group)
            );
        }
        let link = &r.summary.links["core"];
        // A tenth of a round trip's worth, 40 ms in the cloud.
        let tenth = f64::from(core) * 1e6 / 8.0 * 0.004;
        assert!(link.drops == 0 && link.mean_queue_bytes < tenth, "{link:?}");
        assert!(link.utilization > 0.95, "{law}: {link:?}");
        // All losses are at the edge, and the law of macro-flows has no data to be unfair with.
        assert!(r.summary.links["edge3"].drops > 0);
        assert_eq!(mbps(&r, "macro1"), 0.0);
    }
}

/// Micro-flows come and go: after eight of the ten flows of a site have ended, it gets the share of two. More than 255
/// flows count, too, and routers may see the propagation delay. In both forms.
#[test]
fn macro_flows_follow_their_micro_flows() {
    for headers in ["control", "packets"] {
        follows(&format!(
            r#"{{ law = "xcp-edge", idle = "1s", stated_rtt = "propagation", headers = "{headers}" }}"#
        ));
    }
}

fn follows(law: &str) {
    let some_leave = cloud(1, [2, 5], 45, "400pkt", "").replace(r#""xcp-edge""#, law)
        + r#"
        [[flows]]
        name = "leaving"
        law = "reno"
        count = 8
        stop = "10s"
        from = "site1"
        to = "out"
        access = { rate = "1Gbps", delay = "2ms" }
        "#;
    let r = run(&some_leave.replace("warmup = \"5s\"", "warmup = \"12s\""));
    let share = 45.0 / 8.0;
    for (group, n) in [("many", 2.0), ("few", 5.0), ("udp", 1.0)] {
        assert!(
            (mbps(&r, group) / (n * share) - 1.0).abs() < 0.15,
            "{law}: {group}: {} of {}",
            mbps(&r, group),
            n * share
        );
    }
    // Two bandwidth-delay products keep the larger edge queue filled.
    let many =
        cloud(1, [400, 100], 450, "4000pkt", "").replace(r#""xcp-edge""#, law).replace("100Mbps", "1Gbps");
    let r = run(&many);
    let ratio = mbps(&r, "many") / mbps(&r, "few");
    assert!((ratio / 4.0 - 1.0).abs() < 0.15, "{law}: {ratio}");
}

/// Before its macro-flow begins nobody holds an edge link, and the same unresponsive flow gets what it sends.
#[test]
fn nobody_holds_what_nobody_governs() {
    let late = cloud(1, [10, 5], 45, "400pkt", "").replace("governs =", "start = \"19.9s\"\ngoverns =");
    assert!(mbps(&run(&late), "udp") > 25.0);
}

/// Datagrams come at their rate, are not sent again, and stop when they are to.
#[test]
fn datagrams_keep_their_rate() {
    let scenario = |rate: &str, stop: &str| {
        format!(
            r#"
            duration = "4s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "20ms"
            buffer = "20pkt"
            queue = "red"
            [[flows]]
            name = "udp"
            law = "udp"
            rate = "{rate}"
            jitter = "none"
            stop = "{stop}"
            "#
        )
    };
    // 4.8 Mb/s of payload is 5 Mb/s on the wire, and 3 s of it are 1875 packets of 960 bytes.
    let r = run(&scenario("4.8Mbps", "3s"));
    let flow = &r.flows[0];
    assert!((flow.delivered_bytes as f64 / 960.0 - 1875.0).abs() <= 1.0, "{flow:?}");
    assert_eq!((flow.retransmissions, r.summary.packets.expect("a whole run").lost), (0, 0));
    // Twice the capacity: what does not fit is lost, unmarked, and the rest fills the link.
    let r = run(&scenario("19.2Mbps", "3s"));
    let link = &r.summary.links["bottleneck"];
    assert!(link.drops > 3000 && link.marks == 0, "{link:?}");
    assert!((r.flows[0].delivered_bytes as f64 * 8.0 / 3.0 / 9.6e6 - 1.0).abs() < 0.05, "{:?}", r.flows[0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The engine asserts that packets are conserved; besides, two runs are the same, and no link sends more than it can.
    #[test]
    fn clouds_conserve_packets(
        seed in 0u64..1000,
        many in 1u32..20,
        few in 1u32..5,
        core in 2u32..80,
        buffer in prop::sample::select(vec!["1pkt", "5kB", "50pkt", "400pkt"]),
        law in prop::sample::select(vec![r#""xcp-edge""#, BASIC]),
    ) {
        let text = cloud(seed, [many, few], core, buffer, "[probes]\nlaws = true\nflows = true");
        let text = text.replace(r#""xcp-edge""#, law);
        let r = run(&text);
        prop_assert!(timeless(&r.summary) == timeless(&run(&text).summary), "two runs differ");
        let p = r.summary.packets.expect("a whole run");
        prop_assert!(p.arrived + p.lost <= p.sent);
        for (name, link) in &r.summary.links {
            prop_assert!((0.0..=1.0 + 1e-6).contains(&link.utilization), "{name}: {link:?}");
            prop_assert!(link.max_queue_bytes <= link.buffer_bytes, "{name}: {link:?}");
        }
    }
}

#[test]
fn what_is_asked_for_is_checked() {
    let refused = |from: &str, to: &str| {
        let text = cloud(1, [2, 2], 20, "50pkt", "").replacen(from, to, 1);
        let text = text.replacen(r#""xcp-edge""#, BASIC, 1);
        try_load(&text).expect_err("refused").to_string()
    };
    for (from, to, said) in [
        ("governs = \"edge1\"", "", "flows.macro1.governs: is missing"),
        ("governs = \"edge1\"", "governs = \"nowhere\"", "flows.macro1.governs: \"nowhere\" is not a link"),
        (
            "governs = \"edge1\"",
            "governs = \"edge2\"",
            "flows.macro1.from: must be where \"edge2\" ends, in2",
        ),
        (
            "governs = \"edge1\"",
            "governs = \"edge1\"\nsize = \"1MB\"",
            "flows.macro1.size: is not for a flow that governs",
        ),
        (
            "governs = \"edge1\"",
            "governs = \"edge1\"\n[[flows]]\nname = \"again\"\nlaw = \"xcp-edge\"\nfrom = \"in1\"\nto = \"out\"\ngoverns = \"edge1\"",
            "flows.again.governs: \"edge1\" is governed by another",
        ),
        (
            "law = \"reno\"",
            "law = \"reno\"\ngoverns = \"edge1\"",
            "flows.many.governs: is for laws of macro-flows",
        ),
        (
            "buffer = \"50pkt\"",
            "buffer = \"50pkt\"\npriority = \"acks\"",
            "flows.macro1.governs: \"edge1\" has priority",
        ),
        (
            "count = 2\n        from = \"site1\"\n        to = \"out\"",
            "count = 2\n        from = \"site1\"\n        to = \"core\"",
            "flows.many.to: takes \"edge1\", whose macro-flow ends at out",
        ),
        (
            "count = 2",
            "count = 33000",
            "flows.macro1.law.flows: is 33000; it must be 1 to 32767: \"edge1\" is taken by 33000",
        ),
        (
            "law = \"reno\"\n        count = 2\n        from = \"site1\"",
            "law = \"xcp\"\n        count = 2\n        from = \"site1\"",
            "flows.many.law: is \"xcp\", which has a header of its own, and takes \"edge1\"; give flows.macro1.law.headers",
        ),
        ("rate = \"30Mbps\"", "", "flows.udp.rate: is missing; \"udp\" sends at"),
        ("rate = \"30Mbps\"", "rate = \"30Mbps\"\nsize = \"1MB\"", "flows.udp.size: is for flows that end"),
    ] {
        let line = refused(from, to);
        assert!(line.contains(said), "{to}: {line}");
    }
}

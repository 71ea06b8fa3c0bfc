//! Links that share a medium.

mod common;

use common::{run, timeless, try_load};
use flowstamp_sim::results::Results;
use proptest::prelude::*;

/// Two links one way and one both ways, on one medium or on their own; what comes back from the first two is free.
fn three(medium: &str, router: &str, law: &str, extra: &str) -> String {
    let link = |from: &str, to: &str, duplex: bool, medium: &str| {
        format!(
            r#"
            [[graph.links]]
            from = "{from}"
            to = "{to}"
            rate = "10Mbps"
            delay = "5ms"
            buffer = "60pkt"
            router = "{router}"
            duplex = {duplex}
            {medium}
            {extra}
            "#
        )
    };
    let flow = |name: &str, from: &str, to: &str| {
        format!("[[flows]]\nname = \"{name}\"\nlaw = \"{law}\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
    };
    format!(
        "duration = \"10s\"\nwarmup = \"2s\"\n{}{}{}{}{}{}{}{}[capture]\npackets = 100000\n",
        link("a", "b", false, medium),
        link("b", "a", false, ""),
        link("c", "d", false, medium),
        link("d", "c", false, ""),
        link("e", "f", true, medium),
        flow("ab", "a", "b"),
        flow("cd", "c", "d"),
        flow("ef", "e", "f"),
    )
}

const ON_AIR: [&str; 4] = ["a->b", "c->d", "e->f", "f->e"];

/// Transmissions on the medium, as (start, end) in picoseconds.
fn transmissions(r: &Results) -> Vec<(u64, u64)> {
    let on_air = |link: u32| ON_AIR.contains(&r.capture.links[link as usize].as_str());
    let all = r.capture.packets.iter().filter(|p| on_air(p.link));
    all.map(|p| (p.time_ps, p.time_ps + u64::from(p.size) * 800_000)).collect() // 10 Mb/s: 0.8 us a byte
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// One at a time, whoever they are; packets are conserved (the engine asserts it), and two runs are the same.
    #[test]
    fn transmissions_do_not_overlap(
        (router, law) in prop::sample::select(vec![("none", "sack"), ("xcp", "xcp"), ("rcp", "rcp")]),
        extra in prop::sample::select(vec!["", "priority = \"acks\"", "queue = \"red\""]),
    ) {
        let text = three("medium = \"air\"", router, law, extra);
        let r = run(&text);
        prop_assert!(timeless(&r.summary) == timeless(&run(&text).summary), "two runs differ");
        let sent = transmissions(&r);
        prop_assert!(sent.len() > 5000, "{} packets are no test", sent.len());
        for pair in sent.windows(2) {
            prop_assert!(pair[1].0 >= pair[0].1, "{:?} overlap", pair);
        }
        let used: f64 = ON_AIR.iter().map(|l| r.summary.links[*l].utilization).sum();
        prop_assert!(used <= 1.0 + 1e-6, "{used}");
    }
}

/// Stations that always have something to send take turns: as many packets each, of 1000 bytes on three links and of 40 on
/// the one that carries acks, so that a round takes 3040 bytes.
#[test]
fn busy_stations_get_equal_turns() {
    let goodput = |medium: &str| {
        let r = run(&three(medium, "none", "sack", ""));
        ["ab", "cd", "ef"].map(|g| r.summary.groups[g].goodput_bps)
    };
    // Payload is 960 bytes of a packet. A link of its own carries 10 Mb/s.
    for rate in goodput("") {
        assert!((rate / 9.6e6 - 1.0).abs() < 0.02, "{rate}");
    }
    let turns = goodput("medium = \"air\"");
    for rate in turns {
        // Losses and the packets under way at both ends of 8 s.
        assert!((rate / (9.6e6 * 1000.0 / 3040.0) - 1.0).abs() < 0.03, "{turns:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let text = three("medium = \"air\"", "rcp", "rcp", "share = \"fifo\"");
    let error = try_load(&text).expect_err("refused").to_string();
    assert!(error.contains("graph.links[0].share: ") && error.contains("wfq"), "{error}");
    let mut sim = flowstamp_sim::Simulation::new(
        &try_load(&three("medium = \"air\"", "rcp", "rcp", "")).expect("a scenario"),
        None,
    )
    .expect("a network");
    let error = sim.set("graph.links.0.rate", "5Mbps").expect_err("refused").to_string();
    assert!(error.contains("a->b shares its medium"), "{error}");
}

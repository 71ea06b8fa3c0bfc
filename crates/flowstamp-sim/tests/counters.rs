//! Counters of a run: data and acks apart, from the first packet on and after warm-up, and flows at both of their ends.

mod common;

use common::run;
use flowstamp_sim::results::Results;
use proptest::prelude::*;

/// Loss of data and of acks, transfers and endless flows, both ways, and impairments.
fn scenario(law: &str, warmup_ms: u32, seed: u32, buffer: u32) -> String {
    format!(
        r#"
        duration = "3s"
        warmup = "{warmup_ms}ms"
        seed = {seed}
        [dumbbell]
        rate = "8Mbps"
        reverse_rate = "2Mbps"
        rtt = "30ms"
        buffer = "{buffer}pkt"
        reverse_impairments = {{ loss = "1%", duplicate = "1%", reorder = "2%", reorder_delay = "3ms" }}
        [[flows]]
        name = "there"
        law = "{law}"
        count = 3
        spread = "100ms"
        [[flows]]
        name = "back"
        law = "{law}"
        reverse = true
        [[flows]]
        name = "transfers"
        law = "{law}"
        size = "40kB"
        count = 5
        every = "500ms"
        [[flows]]
        name = "web"
        law = "{law}"
        [flows.web]
        load = 0.2
        sizes = {{ distribution = "exponential", mean = "10kB" }}
        "#
    )
}

/// Numbers of flows at the end of the run, in the order of the flows.
fn done(results: &Results) -> Vec<(u64, u32, u32)> {
    results.flows.iter().map(|f| (f.delivered_bytes, f.retransmissions, f.timeouts)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Warm-up changes only the counters: the whole run is counted as without warm-up.
    #[test]
    fn the_whole_run_is_a_run_without_warm_up(
        law in prop_oneof![Just("reno"), Just("sack"), Just("cubic"), Just("bbr")],
        warmup_ms in 1u32..2900, seed in any::<u32>(), buffer in 3u32..20,
    ) {
        let [later, all] = [warmup_ms, 0].map(|warmup| run(&scenario(law, warmup, seed, buffer)));
        prop_assert_eq!(done(&later), done(&all));
        for (name, link) in &all.summary.links {
            let other = &later.summary.links[name];
            prop_assert_eq!(link.whole_run, link.after_warmup, "{}", name);
            prop_assert_eq!(other.whole_run, link.whole_run, "{}", name);
            for link in [link, other] {
                let flat = (link.arrivals, link.drops, link.drops_data, link.drops_acks, link.marks, link.impaired);
                let c = link.after_warmup;
                prop_assert_eq!(flat, (c.arrivals, c.drops, c.drops_data, c.drops_acks, c.marks, c.impaired));
            }
        }
        prop_assert_eq!(all.summary.total.whole_run, later.summary.total.whole_run);
        prop_assert!(all.summary.total.whole_run.drops_data > 0 && all.summary.total.whole_run.drops_acks > 0);
        for (name, group) in &all.summary.groups {
            let other = &later.summary.groups[name];
            prop_assert_eq!(group.whole_run, group.after_warmup, "{}", name);
            prop_assert_eq!(other.whole_run, group.whole_run, "{}", name);
            let rows = || later.flows.iter().filter(|f| *f.group == **name);
            let c = other.after_warmup;
            prop_assert_eq!(c.delivered_bytes, rows().map(|f| f.delivered_bytes_after_warmup).sum::<u64>());
            prop_assert_eq!(c.retransmissions, rows().map(|f| u64::from(f.retransmissions_after_warmup)).sum::<u64>());
            let begins = f64::from(warmup_ms) / 1e3;
            prop_assert_eq!(c.flows, rows().filter(|f| f.start_s >= begins).count() as u64);
            prop_assert_eq!(c.completed, rows().filter(|f| f.end_s.is_some_and(|end| end >= begins)).count() as u64);
        }
        for f in later.flows.iter().filter(|f| f.end_s.is_some()) {
            // An ack takes at least the way back.
            prop_assert!(f.fct_sender_s.get().is_none_or(|at| at > f.fct_s.unwrap_or_default() + 0.015), "{:?}", f);
        }
    }
}

/// The results after warm-up are those of the whole run minus those of a run that ends with the warm-up.
#[test]
fn before_and_after_make_the_whole() {
    let whole = run(&scenario("sack", 1000, 3, 6));
    let before = run(&scenario("sack", 0, 3, 6).replace("duration = \"3s\"", "duration = \"1s\""));
    let (link, first) = (&whole.summary.links["bottleneck"], &before.summary.links["bottleneck"]);
    assert!(first.drops > 0 && link.drops > 0);
    assert_eq!(link.whole_run.drops, link.drops + first.drops);
    assert_eq!(link.whole_run.arrivals, link.arrivals + first.arrivals);
    let sum = |of: fn(&Results) -> u64| (of(&whole), of(&before));
    let (after, first) = sum(|r| r.summary.groups["there"].after_warmup.retransmissions);
    assert!(after > 0 && first > 0);
    assert_eq!(whole.summary.groups["there"].retransmissions, after + first);
}

/// On the way back there are acks alone, of which a queue of one packet loses some, and an endless flow's data on the way there.
#[test]
fn data_and_acks_are_told_apart() {
    let text = r#"
        duration = "2s"
        [graph]
        links = [
            { name = "there", from = "a", to = "b", rate = "10Mbps", delay = "5ms", buffer = "10pkt", duplex = false },
            { name = "back", from = "b", to = "a", rate = "150kbps", delay = "5ms", buffer = "2pkt", duplex = false },
        ]
        [[flows]]
        name = "one"
        law = "reno"
        from = "a"
        to = "b"
    "#;
    let by_flows = text.replace("buffer = \"2pkt\"", "buffer = \"2pkt\", queue = \"fq_codel\"");
    for text in [text, by_flows.as_str()] {
        let links = run(text).summary.links;
        let (there, back) = (&links["there"], &links["back"]);
        assert!(back.drops_acks > 0, "{back:?}");
        assert_eq!((back.drops_data, back.drops), (0, back.drops_acks));
        assert!(there.drops_data > 0, "{there:?}");
        assert_eq!((there.drops_acks, there.drops), (0, there.drops_data));
    }
}

/// A flow of one packet has its last byte at the receiver when the packet arrives, and at the sender when its ack does.
#[test]
fn a_flow_ends_at_both_ends() {
    let results = run(r#"
        duration = "1s"
        header = "0B"
        [graph]
        links = [{ from = "a", to = "b", rate = "8Mbps", delay = "5ms" }]
        [[flows]]
        name = "one"
        law = "sack"
        from = "a"
        to = "b"
        size = "1kB"
        start = "100ms"
        [[flows]]
        name = "late"
        law = "sack"
        from = "b"
        to = "a"
        size = "1kB"
        start = "993ms"
    "#);
    let (one, late) = (&results.flows[0], &results.flows[1]);
    // 1000 B at 8 Mb/s are 1 ms, an ack of 40 B 40 us. Times are differences of instants near 0.1 s.
    assert!((one.fct_s.expect("it ends") - 6e-3).abs() < 1e-12);
    assert!((one.fct_sender_s.get().expect("it ends") - 11.04e-3).abs() < 1e-12);
    assert_eq!(one.fct_sender_s.get(), one.min_rtt_s.get());
    assert!(late.fct_s.is_some() && late.fct_sender_s.get().is_none());
    let group = &results.summary.groups["one"];
    let mean = |fct: &Option<flowstamp_sim::results::FctSummary>| fct.as_ref().map(|f| f.all.mean);
    assert_eq!((mean(&group.fct_s), mean(&group.fct_sender_s)), (one.fct_s, one.fct_sender_s.get()));
    assert!(results.summary.groups["late"].fct_sender_s.is_none());
}

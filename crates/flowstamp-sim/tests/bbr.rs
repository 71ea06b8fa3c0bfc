//! BBR on a link: a full pipe, a short queue, and shares.

mod common;

use common::run;
use flowstamp_sim::results::{Results, SeriesKey};

/// This number of flows over 10 Mb/s and 40 ms, 50 packets, with a buffer of 4 such pipes. Startup overflows it where
/// flows are many; with the least timeout of RFC 6298, which is longer than any round trip here, what that lost is
/// repaired and over when counting begins.
fn flows(count: u32, every: &str) -> Results {
    run(&format!(
        r#"
        duration = "60s"
        warmup = "20s"
        header = "0B"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        buffer = "4BDP"
        [[flows]]
        name = "bbr"
        law = "bbr"
        count = {count}
        every = "{every}"
        transport = {{ min_rto = "1s" }}
        [probes]
        every = "10ms"
        links = true
        groups = false
        "#
    ))
}

/// A flow alone. Section 4.3.4: of a cycle of eight round trips one probes at 5/4, which queues a quarter of a pipe, 12.5 packets, and
/// one drains it: over a cycle less than 12.5 / 4 packets in the mean (a ramp up and one down), and the 3 quanta of the window never
/// more than that beyond. Section 4.3.5: of ten seconds 200 ms and the round trips about it have an idle link, 2% to 3.5%.
#[test]
fn a_flow_alone_fills_its_pipe_and_queues_little() {
    let results = flows(1, "1s");
    let link = &results.summary.links["bottleneck"];
    assert!(link.utilization > 0.96 && link.utilization < 0.985, "{}", link.utilization);
    assert!(link.mean_queue_bytes < (12.5 / 4.0 + 3.0) * 1000.0, "{}", link.mean_queue_bytes);
    assert!(link.max_queue_bytes < (12.5 + 4.0) * 1000.0, "{}", link.max_queue_bytes);
    assert_eq!(link.drops, 0);
}

/// Flows that share a link see one another's queue; the window holds each to two pipes of its own, so that they have one pipe of
/// queue at most, and three packets each.
#[test]
fn flows_that_share_a_link_have_a_pipe_of_queue_at_most() {
    for (count, every) in [(2, "0s"), (2, "2s"), (4, "500ms")] {
        let results = flows(count, every);
        let link = &results.summary.links["bottleneck"];
        let jain = results.summary.groups["bbr"].jain_index.expect("flows");
        assert!(link.utilization > 0.96, "{}", link.utilization);
        assert!(link.mean_queue_bytes < 1000.0 * f64::from(50 + 3 * count), "{}", link.mean_queue_bytes);
        assert_eq!(link.drops, 0);
        assert!(jain > 0.9, "{count} flows: {jain}");
    }
}

/// A flow alone over 8 ms, which visits ProbeRTT each second; for how long the link was below a share of its rate each time, in samples of a
/// round trip.
fn dips(law: &str, share: f64) -> Vec<u32> {
    let results = run(&format!(
        r#"
        duration = "5s"
        header = "0B"
        [dumbbell]
        rate = "500Mbps"
        rtt = "8ms"
        buffer = "4BDP"
        [[flows]]
        name = "bbr"
        law = {law}
        [probes]
        every = "8ms"
        links = true
        groups = false
        "#
    ));
    let series = &results.series;
    let of_link = |k: &SeriesKey| k.name == "bottleneck" && k.metric == "utilization";
    let key = series.keys.iter().position(of_link).expect("the link's utilization") as u32;
    let rows = (0..series.key.len()).filter(|i| series.key[*i] == key && series.time_s[*i] > 0.5);
    let low: Vec<bool> = rows.map(|i| series.value[i] < share).collect();
    low.chunk_by(|a, b| a == b).filter(|part| part[0]).map(|part| part.len() as u32).collect()
}

/// Section 4.3.5: ProbeRTT lasts 200 ms, 25 round trips here, and a round trip. As in Linux (tcp_bbr.c, `bbr_update_bw`; lib/win_minmax.c) its samples
/// are limited by the law, so that none enters the filter of ten round trips and none in it ages: the pace afterwards is the one before. The
/// queue of what the window held beyond the pipe leaves first; what the first packets take to come is a round trip. Therefore three of them besides the 200 ms
/// at the most, within a sample at each end.
#[test]
fn a_visit_to_probe_rtt_costs_200_ms_and_a_few_round_trips() {
    let dips = dips(r#"{ law = "bbr", min_rtt_window = "1s" }"#, 0.9);
    assert!((3..=4).contains(&dips.len()), "one each 1.2 s: {dips:?}");
    assert!(dips.iter().all(|samples| (25..=25 + 3 + 2).contains(samples)), "{dips:?}");
}

/// Version 3 (draft-ietf-ccwg-bbr, section 5.3.4.3) has half of the pipe in flight for as long, and `max_bw` of this cycle and the one
/// before it survives in the same way.
#[test]
fn a_visit_of_version_3_to_probe_rtt_costs_no_more() {
    let law = r#"{ law = "bbr3", probe_rtt_interval = "1s", min_rtt_window = "2s" }"#;
    let dips = dips(law, 0.9);
    assert!((3..=4).contains(&dips.len()), "one each 1.2 s: {dips:?}");
    assert!(dips.iter().all(|samples| (24..=25 + 3 + 2).contains(samples)), "{dips:?}");
}

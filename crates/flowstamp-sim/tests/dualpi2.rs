//! PI2 and DualPI2 on links: delays near their targets, and a classic and an L4S flow with about the same rate.

mod common;

use common::{run, samples, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;

/// Flows over 40 Mb/s and 20 ms with a buffer of 250 ms, 40 s after 20 s.
fn results(queue: &str, flows: &str) -> Results {
    run(&format!(
        r#"
        duration = "60s"
        warmup = "20s"
        header = "0B"
        [dumbbell]
        rate = "40Mbps"
        rtt = "20ms"
        buffer = "250ms"
        queue = {queue}
        {flows}
        [probes]
        every = "10ms"
        links = true
        laws = true
        groups = false
        "#
    ))
}

const CLASSIC: &str = "[[flows]]\nname = \"classic\"\nlaw = \"sack\"\n";
const L4S: &str = "[[flows]]\nname = \"l4s\"\nlaw = { law = \"dctcp\", l4s = true }\n";

/// The mean over time of a variable of the bottleneck after 20 s.
fn mean(results: &Results, metric: &str) -> f64 {
    common::mean(&samples(results, "bottleneck", metric, 20.0))
}

#[test]
fn pi2_holds_the_delay_at_its_target_whatever_the_number_of_flows() {
    for (count, ecn) in [(4, true), (16, true), (16, false)] {
        let flows = format!("{CLASSIC}count = {count}\nspread = \"1s\"\ntransport = {{ ecn = {ecn} }}\n");
        let results = results("\"pi2\"", &flows);
        let link = &results.summary.links["bottleneck"];
        // The controller integrates the error: over 40 s its mean is what p' has moved, at most some tenths, over alpha and the
        // 2500 updates: below a millisecond.
        let delay = link.mean_queue_bytes * 8.0 / 40e6;
        assert!((delay - 0.015).abs() < 1e-3, "{count} flows: {delay} s");
        assert!(link.utilization > 0.97, "{count} flows: {}", link.utilization);
        assert_eq!((link.marks > 0, link.drops > 0), (ecn, !ecn), "{link:?}");
    }
}

#[test]
fn a_classic_and_an_l4s_flow_have_about_the_same_rate() {
    let results = results("\"dualpi2\"", &format!("{CLASSIC}{L4S}"));
    let rate = |group: &str| results.summary.groups[group].goodput_bps;
    let (classic, l4s) = (rate("classic"), rate("l4s"));
    // Windows of 1.22/sqrt(p) and 1/sqrt(p), round trips of 20 + 15 and 20 + 1 ms: rates of 0.82 * 35/21 = 1.37 to 1. RFC 9332
    // says "roughly equal"; within a factor of 2 of that.
    let ratio = l4s / classic;
    assert!(ratio > 1.37 / 2.0 && ratio < 1.37 * 2.0, "{ratio}: {l4s} and {classic}");
    let (waits, l4s_waits) = (mean(&results, "classic_delay_s"), mean(&results, "l4s_delay_s"));
    // One flow's window halves: the queue is at the target on average, except while it is empty.
    assert!((waits - 0.015).abs() < 0.005, "classic: {waits} s");
    assert!(l4s_waits < 0.001, "L4S: {l4s_waits} s");
    let link = &results.summary.links["bottleneck"];
    assert!(link.utilization > 0.95 && link.drops == 0, "{link:?}");
}

#[test]
fn l4s_flows_alone_wait_a_millisecond() {
    let results = results("\"dualpi2\"", &format!("{L4S}count = 4\n"));
    let link = &results.summary.links["bottleneck"];
    let delay = link.mean_queue_bytes * 8.0 / 40e6;
    // The ramp ends at 1.2 ms, and windows of 4 flows that hold a quarter of 20 ms each move by a packet, 0.2 ms, in a round trip.
    assert!(delay > 0.0002 && delay < 0.0016, "{delay} s");
    assert!(link.utilization > 0.95 && link.marks > 0 && link.drops == 0, "{link:?}");
}

/// Classic flows that do not react: a wall of 16 that can only be dropped leaves the L4S flow a low delay, and the other way about the
/// classic one its part.
#[test]
fn the_l4s_queue_stays_short_beside_many_classic_flows() {
    let flows = format!("{CLASSIC}count = 16\ntransport = {{ ecn = false }}\n{L4S}");
    let results = results("\"dualpi2\"", &flows);
    assert!(mean(&results, "l4s_delay_s") < 0.001);
    let rate = |group: &str| results.summary.groups[group].goodput_bps;
    // An equal part is 1/17, the ratio of rates as above.
    let ratio = rate("l4s") / (rate("classic") / 16.0);
    assert!(ratio > 1.37 / 2.0 && ratio < 1.37 * 2.0, "{ratio}");
}

#[test]
fn two_queues_are_refused_beside_another_scheduler() {
    for extra in ["priority = \"acks\"", "router = \"xcp\"\nshare = \"wfq\""] {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = \"1Mbps\"\nrtt = \"20ms\"\nqueue = \"dualpi2\"\n{extra}\n[[flows]]\nname = \"one\"\nlaw = \"sack\"\n"
        );
        let error = try_load(&text)
            .and_then(|loaded| Simulation::new(&loaded, None).map(|_| ()))
            .expect_err("refused");
        assert!(error.to_string().contains("\"dualpi2\" is two queues with a scheduler"), "{error}");
    }
}

#[test]
fn the_longest_round_trip_follows_a_path_that_the_rfcs_does_not_fit() {
    let assumed = |queue: &str, rtt: &str| {
        let text = format!(
            "duration = \"10ms\"\n[dumbbell]\nrate = \"10Gbps\"\nrtt = \"{rtt}\"\nqueue = \"{queue}\"\n[[flows]]\nname = \"one\"\nlaw = \"sack\"\n"
        );
        run(&text).summary.assumed.get("bottleneck.queue.max_rtt").cloned()
    };
    for queue in ["pi2", "dualpi2"] {
        assert_eq!(assumed(queue, "30us").as_deref(), Some("30us"));
        assert_eq!(assumed(queue, "50ms"), None);
        assert_eq!(assumed(queue, "300ms").as_deref(), Some("300ms"));
    }
}

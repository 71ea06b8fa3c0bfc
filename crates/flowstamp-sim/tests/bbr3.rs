//! BBR's version 3 on a link, beside version 1: a full pipe, few losses on a short buffer, and a share for CUBIC.

mod common;

use common::run;
use flowstamp_sim::results::Results;

/// This number of flows over 10 Mb/s and 40 ms, 50 packets. The least timeout is RFC 6298's, longer than any round trip
/// here.
fn flows(law: &str, count: u32, every: &str, buffer: &str) -> Results {
    run(&format!(
        r#"
        duration = "60s"
        warmup = "20s"
        header = "0B"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        buffer = "{buffer}"
        [[flows]]
        name = "flows"
        law = "{law}"
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

/// A flow alone. Section 5.6.2 paces 1% below the rate, and section 5.3.4.2 counts on 98% of it with ProbeRTT, which on top of its 200 ms
/// takes a round trip or two to get there: 95.5% to 98%.
///
/// Section 5.3.3.7: Up ends when three round trips at 1.25 99% of the rate have brought no more, and a further one tells it: 0.2375 of
/// a pipe each, 47.5 packets at most in the queue. Down at 0.9 99% drains 0.109 of a pipe a round trip, in 0.35 s. Therefore two triangles of
/// 47.5 packets, 0.2 s and 0.35 s long, from probe to probe, which are 50 round trips apart (section 5.3.3.8.2) and these four: 6.1
/// packets in the mean at most.
#[test]
fn a_flow_alone_fills_its_pipe_and_queues_little() {
    let results = flows("bbr3", 1, "0s", "4BDP");
    let link = &results.summary.links["bottleneck"];
    assert!(link.utilization > 0.955 && link.utilization < 0.98, "{}", link.utilization);
    assert!(link.mean_queue_bytes < 6100.0, "{}", link.mean_queue_bytes);
    assert!(link.max_queue_bytes > 0.5 * 47_500.0, "no probe: {}", link.max_queue_bytes);
    assert!(link.max_queue_bytes < 47_500.0 + 3000.0, "{}", link.max_queue_bytes);
    assert_eq!(link.drops, 0);
}

/// Section 5.1.2 aims at shares that are approximately fair. Each flow's window holds two pipes of its own at most, in Up 2.25, so that
/// the queue is 1.25 pipes and the four packets a flow that the window rounds up by.
#[test]
fn flows_that_share_a_link_share_it_fairly() {
    for (count, every, buffer) in [(2, "0s", "4BDP"), (2, "2s", "4BDP"), (4, "2s", "4BDP"), (2, "2s", "1BDP")]
    {
        let results = flows("bbr3", count, every, buffer);
        let link = &results.summary.links["bottleneck"];
        let jain = results.summary.groups["flows"].jain_index.expect("flows");
        assert!(link.utilization > 0.96, "{}", link.utilization);
        assert!(
            link.max_queue_bytes < 1000.0 * (1.25 * 50.0 + 4.0 * f64::from(count)) * 1.5,
            "{}",
            link.max_queue_bytes
        );
        assert!(jain > 0.95, "{count} flows, {buffer}: {jain}");
    }
}

/// Section 2.8: a probe tolerates 2% of loss, and between probes a flow stays below what lost that. Version 1 knows no such bound: on
/// a tenth of a pipe of buffer it loses more.
#[test]
fn on_a_short_buffer_losses_are_what_a_probe_tolerates() {
    for (count, most) in [(1, 0.02), (2, 0.02), (4, 0.025)] {
        let rate = |law| flows(law, count, "2s", "0.1BDP").summary.links["bottleneck"].drop_rate;
        let (v3, v1) = (rate("bbr3"), rate("bbr"));
        assert!(v3 < most, "{count} flows: {v3}");
        assert!(v1 > 0.025 && v1 > 1.5 * v3, "{count} flows: {v1} and {v3}");
    }
}

/// Goodput in b/s of a flow of a law beside one of CUBIC, over 100 s.
fn beside_cubic(law: &str, buffer: &str) -> (f64, f64) {
    let results = run(&format!(
        r#"
        duration = "120s"
        warmup = "20s"
        header = "0B"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        buffer = "{buffer}"
        [[flows]]
        name = "bbr"
        law = "{law}"
        [[flows]]
        name = "cubic"
        law = "cubic"
        "#
    ));
    let goodput = |group: &str| results.summary.groups[group].goodput_bps;
    (goodput("bbr"), goodput("cubic"))
}

/// Section 5.3.3.8.2: where the pipe holds about 60 packets or less, a CUBIC flow shall get as much as a BBR flow beside it. Nine tenths of
/// that are asked for here, of one run. Version 1 takes nearly all that a short buffer leaves (6/7 and more up to a pipe of buffer).
#[test]
fn cubic_gets_a_share() {
    for buffer in ["0.1BDP", "0.5BDP", "1BDP", "2BDP"] {
        let (bbr, cubic) = beside_cubic("bbr3", buffer);
        assert!(cubic > 0.9 * bbr, "{buffer}: {bbr} {cubic}");
        assert!(bbr > 0.3e7, "{buffer}: {bbr}, it does not give way either");
    }
    for (buffer, most) in [("0.1BDP", 0.02), ("0.5BDP", 0.2), ("1BDP", 0.2)] {
        let (bbr, cubic) = beside_cubic("bbr", buffer);
        assert!(cubic < most * bbr, "{buffer}: {bbr} {cubic}");
    }
}

/// The defaults serve a data centre as they do a satellite. At a second ProbeRTT takes 200 ms and a round trip at half of the pipe, and about
/// as long to get there, of each 5 s and itself: 2.5 s of 7.5 at half of the rate leave 83% at least. Neither of two
/// flows gets less than a quarter of both, a Jain's index of 0.8.
#[test]
fn the_defaults_hold_from_microseconds_to_seconds() {
    for (rate, rtt, warmup, duration) in [("10Gbps", "30us", "20ms", "100ms"), ("1Mbps", "1s", "60s", "240s")]
    {
        let results = run(&format!(
            r#"
            duration = "{duration}"
            warmup = "{warmup}"
            header = "0B"
            [dumbbell]
            rate = "{rate}"
            rtt = "{rtt}"
            buffer = "2BDP"
            [[flows]]
            name = "flows"
            law = "bbr3"
            count = 2
            every = "{rtt}"
            transport = {{ min_rto = "{rtt}" }}
            "#
        ));
        let link = &results.summary.links["bottleneck"];
        let jain = results.summary.groups["flows"].jain_index.expect("flows");
        assert!(link.utilization > 0.83 && jain > 0.8, "{rate}: {} {jain}", link.utilization);
        assert!(link.drop_rate < 0.02, "{rate}: {}", link.drop_rate);
    }
}

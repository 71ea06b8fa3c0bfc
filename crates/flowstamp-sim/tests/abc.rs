//! ABC in networks: the fixed point and the border of its theorem 3.1, defaults on any path, and other traffic.

mod common;

use common::{run, try_load};
use flowstamp_sim::results::Results;

/// Ten flows on a link of 1000 packets per second and an RTT of 100 ms.
fn ten(delta: &str) -> Results {
    run(&format!(
        r#"
        duration = "50s"
        warmup = "30s"
        packet = "1500B"
        [dumbbell]
        rate = "12Mbps"
        rtt = "100ms"
        buffer = "250pkt"
        router = {{ law = "abc", delta = "{delta}" }}
        [[flows]]
        name = "abc"
        law = "abc"
        count = 10
        every = "100ms"
        "#
    ))
}

/// Theorem 3.1: the queueing delay settles at x = A delta + d_t, where A = eta - 1 + N / (mu tau). A round trip includes the queue.
#[test]
fn the_queue_settles_where_the_theorem_says() {
    for delta in [0.1, 0.133, 0.2] {
        let x = (0..50).fold(0.05, |x: f64, _| 0.05 + delta * (0.98 - 1.0 + 10.0 / (1000.0 * (0.1 + x))));
        let found =
            ten(&format!("{delta}s")).summary.links["bottleneck"].queueing_delay_s.clone().expect("packets");
        // The queue comes in packets, 1 ms each.
        assert!((found.mean - x).abs() < 1e-3, "{delta}: {} {x}", found.mean);
        assert!(found.p99 - found.p50 < 2.5e-3, "{delta}: {found:?}");
    }
}

/// Below the theorem's 2/3 of the delay, the queue swings. The 95th percentile exceeds the mean by less than 2 ms at a delta of
/// 100 ms, and by more than 5 ms at 30 ms.
#[test]
fn the_queue_swings_below_the_border() {
    let swing = |delta| {
        let found = ten(delta).summary.links["bottleneck"].queueing_delay_s.clone().expect("packets");
        found.p95 - found.mean
    };
    let [stable, unstable] = ["100ms", "30ms"].map(swing);
    assert!(stable < 2e-3 && unstable > 5e-3, "{stable} {unstable}");
}

/// Defaults follow the paths: data centre, Internet, satellite, and a link that is slow for its RTT.
#[test]
fn defaults_suit_any_path() {
    for (rate, rtt, duration, buffer) in [
        ("10Gbps", "30us", "20ms", "4BDP"),
        ("100Gbps", "30us", "10ms", "4BDP"),
        ("1Mbps", "1s", "200s", "4BDP"),
        ("1Mbps", "30us", "20s", "30pkt"), // three initial windows
        ("100Mbps", "20ms", "10s", "4BDP"),
    ] {
        let r = run(&format!(
            r#"
            duration = "{duration}"
            [dumbbell]
            rate = "{rate}"
            rtt = "{rtt}"
            buffer = "{buffer}"
            router = "abc"
            [[flows]]
            name = "abc"
            law = "abc"
            count = 3
            "#
        ));
        let link = &r.summary.links["bottleneck"];
        assert!(link.utilization > 0.9, "{rate} {rtt}: {}", link.utilization);
        assert_eq!(link.drops, 0, "{rate} {rtt}");
    }
}

fn beside(router: &str, first: &str) -> [f64; 2] {
    let r = run(&format!(
        r#"
        duration = "60s"
        warmup = "20s"
        packet = "1500B"
        [dumbbell]
        rate = "24Mbps"
        rtt = "40ms"
        buffer = "1BDP"
        {router}
        [[flows]]
        name = "first"
        law = "{first}"
        count = 2
        [[flows]]
        name = "cubic"
        law = "cubic"
        count = 2
        "#
    ));
    ["first", "cubic"].map(|group| r.summary.groups[group].goodput_bps)
}

/// Section 4.1: at a bottleneck without ABC, a flow of ABC is a flow of CUBIC.
#[test]
fn without_a_router_it_is_cubic() {
    let [abc, cubic] = beside("", "abc");
    let [other, same] = beside("", "cubic");
    assert!(
        (abc / other - 1.0).abs() < 0.1 && (cubic / same - 1.0).abs() < 0.1,
        "{abc} {cubic} {other} {same}"
    );
    let alone = r#"
        duration = "1s"
        [dumbbell]
        rate = "24Mbps"
        rtt = "40ms"
        buffer = "1BDP"
        [[flows]]
        name = "abc"
        law = { law = "abc", coexist = false }
        "#;
    let refused = try_load(alone).expect_err("nothing limits it").to_string();
    assert!(refused.contains("\"abc\" obeys routers"), "{refused}");
}

/// Beside CUBIC at its own router, two queues share the link, and one queue does not. ABC leaves 2% of its share (`eta`). CUBIC's
/// windows fall to 0.7, so that its two flows count as `(1 + 0.7)^2 / (1 + 0.7^2) = 1.94` at least, 3% less than two.
#[test]
fn two_queues_share_the_link() {
    let [abc, cubic] = beside(
        r#"router = "abc"
        share = "wfq""#,
        "abc",
    );
    assert!((abc / cubic - 1.0).abs() < 0.02 + 0.03, "{abc} {cubic}");
    let [abc, cubic] = beside(r#"router = "abc""#, "abc");
    assert!(abc < 0.5 * cubic, "{abc} {cubic}");
}

/// Throughput of three long flows of ABC over that of three long flows of CUBIC, beside short flows of CUBIC with a quarter of the
/// load.
fn beside_short_flows(weights: &str) -> f64 {
    let r = run(&format!(
        r#"
        duration = "60s"
        warmup = "20s"
        packet = "1500B"
        [dumbbell]
        rate = "24Mbps"
        rtt = "100ms"
        buffer = "1BDP"
        router = "abc"
        share = {{ scheduler = "wfq", weights = "{weights}" }}
        [[flows]]
        name = "abc"
        law = "abc"
        count = 3
        [[flows]]
        name = "cubic"
        law = "cubic"
        count = 3
        [[flows]]
        name = "short"
        law = "cubic"
        web = {{ load = 0.25, sizes = {{ distribution = "fixed", size = "10kB" }} }}
        "#
    ));
    r.summary.groups["abc"].goodput_bps / r.summary.groups["cubic"].goodput_bps
}

/// Weights by demands give long flows of both classes the same rate. By the number of flows, short flows count, too: their ratio
/// is then that of `long_flows_of_both_classes_become_equal` in the laws' tests, `(y - l) / y` with `l = 0.25`. ABC gains from two
/// effects:
/// - CUBIC's windows are between 0.7 and 1 of their largest, and a flow that is at a low demands less than the level: 1.5%.
/// - In a period of 200 ms 14.4 short flows arrive, with a deviation of 3.8. When fewer come than usual, 0.4 deviations on average,
///   ABC takes what they leave: 1.5 flows of 10.4 kB are 2.6% of the link, 7% of what the long flows of a class have.
#[test]
fn short_flows_do_not_count_as_demands() {
    let demands = beside_short_flows("demands");
    assert!((demands - 1.0).abs() < 0.015 + 0.07, "{demands}");
    let counts = beside_short_flows("flows");
    let other = (1.5 + 1.75f64.sqrt()) / 4.0; // 2 y^2 - (1 + 2 l) y + l^2 = 0
    let expected = (other - 0.25) / other;
    assert!((counts / expected - 1.0).abs() < 0.015 + 0.07, "{counts}, expected {expected}");
}

/// One ack for two packets returns both marks.
#[test]
fn delayed_acks_change_little() {
    let alone = |acks: bool| {
        let r = run(&format!(
            r#"
            duration = "30s"
            warmup = "10s"
            packet = "1500B"
            [dumbbell]
            rate = {{ steps = [["0s", "12Mbps"], ["15s", "3Mbps"], ["20s", "24Mbps"]] }}
            rtt = "100ms"
            buffer = "250pkt"
            router = "abc"
            [[flows]]
            name = "abc"
            law = "abc"
            transport = {{ delayed_acks = {acks} }}
            "#
        ));
        let link = &r.summary.links["bottleneck"];
        [link.utilization, link.queueing_delay_s.as_ref().expect("packets").mean]
    };
    let [every, second] = [alone(false), alone(true)];
    assert!((every[0] - second[0]).abs() < 0.03, "{every:?} {second:?}");
    assert!((every[1] - second[1]).abs() < 0.02, "{every:?} {second:?}");
    assert!(every[0] > 0.9, "{every:?}");
}

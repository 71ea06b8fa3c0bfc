//! Links that a router law shares with other traffic.

mod common;

use common::{run, timeless, try_load};
use flowstamp_sim::results::SeriesKey;
use proptest::prelude::*;

/// RCP and TCP, long and short, over two shared links of which the first varies.
fn mixed(seed: u64, share: &str, rate_mbps: u32, buffer: &str, extra: &str) -> String {
    format!(
        r#"
        duration = "6s"
        warmup = "1s"
        seed = {seed}
        [graph]
        rtt = "40ms"
        [[graph.links]]
        name = "a"
        from = "x"
        to = "y"
        rate = {{ steps = [["0s", "{rate_mbps}Mbps"], ["3s", "7Mbps"]] }}
        delay = "10ms"
        buffer = "{buffer}"
        router = "rcp"
        share = "{share}"
        [[graph.links]]
        name = "b"
        from = "y"
        to = "z"
        rate = "10Mbps"
        delay = "5ms"
        buffer = "{buffer}"
        router = "rcp"
        queue = "red"
        share = "{share}"
        [[flows]]
        name = "rcp"
        law = {{ law = "rcp", switch = true }}
        from = "x"
        to = "z"
        count = 3
        spread = "1s"
        [[flows]]
        name = "tcp"
        law = "sack"
        from = "x"
        to = "z"
        count = 3
        spread = "1s"
        [[flows]]
        name = "back"
        law = "reno"
        from = "z"
        to = "x"
        count = 2
        [[flows]]
        name = "web"
        law = "rcp"
        from = "x"
        to = "y"
        web = {{ flows_per_s = 20.0, sizes = {{ distribution = "pareto", mean = "20kB", shape = 1.35 }} }}
        [probes]
        flows = true
        laws = true
        {extra}
        "#
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The engine asserts that packets are conserved; besides, two runs are the same, and no link sends more than it can.
    #[test]
    fn shared_links_conserve_packets(
        seed in 0u64..1000,
        share in prop::sample::select(vec!["fifo", "wfq", "drr"]),
        rate in 1u32..40,
        buffer in prop::sample::select(vec!["1pkt", "3pkt", "5kB", "0.2BDP", "1BDP", "10BDP"]),
    ) {
        let text = mixed(seed, share, rate, buffer, "");
        let r = run(&text);
        prop_assert!(timeless(&r.summary) == timeless(&run(&text).summary), "two runs differ");
        let p = r.summary.packets.expect("a whole run");
        prop_assert!(p.arrived + p.lost <= p.sent);
        for (name, link) in &r.summary.links {
            prop_assert!((0.0..=1.0 + 1e-6).contains(&link.utilization), "{name}: {link:?}");
            // One queue has the buffer; of two each may have as much while the other is silent.
            let room = if share == "fifo" { 1.0 } else { 2.0 };
            prop_assert!(link.max_queue_bytes <= link.buffer_bytes * room, "{name}: {link:?}");
        }
        for f in &r.flows {
            if let (Some(size), Some(_)) = (f.size_bytes, f.end_s) {
                prop_assert_eq!(size, f.delivered_bytes, "a complete flow has all its bytes, once: {:?}", f);
            }
        }
        prop_assert!(r.flows.iter().map(|f| f.delivered_bytes).sum::<u64>() > 0);
    }
}

/// Without other traffic a scheduler changes only the order of events at one instant: the same packets get through, at
/// the same rates.
#[test]
fn a_scheduler_with_one_class_is_a_fifo() {
    let goodputs = |share: &str| {
        let text = format!(
            r#"
            duration = "10s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "50ms"
            router = "rcp"
            share = "{share}"
            [[flows]]
            name = "rcp"
            law = "rcp"
            count = 4
            every = "1s"
            "#
        );
        let r = run(&text);
        (
            r.flows.iter().map(|f| f.delivered_bytes).collect::<Vec<_>>(),
            r.summary.links["bottleneck"].max_queue_bytes,
        )
    };
    let fifo = goodputs("fifo");
    assert_eq!(fifo, goodputs("wfq"));
    assert_eq!(fifo, goodputs("drr"));
}

/// Two classes that always have something to send get what their weights say, which the law has brought to one half.
#[test]
fn equal_flows_get_equal_rates() {
    for share in ["wfq", "drr", "fifo"] {
        let r = run(&format!(
            r#"
            duration = "120s"
            warmup = "40s"
            [dumbbell]
            rate = "20Mbps"
            rtt = "50ms"
            router = "rcp"
            share = "{share}"
            [[flows]]
            name = "rcp"
            law = "rcp"
            count = 4
            [[flows]]
            name = "tcp"
            law = "sack"
            count = 4
            spread = "1s"
            "#
        ));
        let rate = |name: &str| r.summary.groups[name].goodput_bps;
        let ratio = rate("rcp") / rate("tcp");
        assert!((0.8..1.25).contains(&ratio), "{share}: {ratio}");
        assert!(r.summary.links["bottleneck"].utilization > 0.95, "{share}");
    }
}

#[test]
fn what_is_asked_for_is_checked() {
    let refused = |from: &str, to: &str| {
        let text = mixed(1, "wfq", 10, "1BDP", "").replace(from, to);
        let loaded = match try_load(&text) {
            Ok(loaded) => loaded,
            Err(e) => return e.to_string(),
        };
        flowstamp_sim::Simulation::new(&loaded, None).expect_err("refused").to_string()
    };
    let without = refused("router = \"rcp\"\n        share", "share");
    assert!(without.contains("graph.links[0].share: ") && without.contains("router law"), "{without}");
    let theta = refused("share = \"wfq\"", "share = { scheduler = \"wfq\", theta = \"150%\" }");
    assert!(theta.contains("theta"), "{theta}");
    let order = refused("share = \"wfq\"", "share = { scheduler = \"drr\", max_interval = \"1ms\" }");
    assert!(order.contains("max_interval") && order.contains("min_interval, 200ms"), "{order}");
    let name = refused("share = \"wfq\"", "share = \"sfq\"");
    assert!(name.contains("sfq") && name.contains("wfq"), "{name}");
}

/// Probes report the queue law that is at work: each class's, if each has a queue.
#[test]
fn probes_see_the_queue_laws_of_classes() {
    for (share, averages) in [("fifo", vec!["average"]), ("wfq", vec!["own_average", "other_average"])] {
        let r = run(&mixed(1, share, 20, "1BDP", "links = true"));
        for metric in ["average", "own_average", "other_average"] {
            let of_b = |k: &SeriesKey| k.kind == "law" && k.name == "b" && k.metric == metric;
            let key = r.series.keys.iter().position(of_b);
            assert_eq!(key.is_some(), averages.contains(&metric), "{share}: {metric}");
            let Some(key) = key else { continue };
            let mut values = r.series.key.iter().zip(&r.series.value).filter(|(k, _)| **k as usize == key);
            assert!(values.any(|(_, v)| *v > 0.0), "{share}: {metric} never moves");
        }
    }
}

/// XCP beside TCP by windows (Katabi, Handley, Rohrs 2002, section 8.2): what the router law works with is its weight's part of the link
/// at every instant (eq. 14), the link is full, and the average flow of both kinds gets the fair share (figure 13).
#[test]
fn xcp_keeps_to_its_part() {
    for (xcp, tcp) in [(10, 20), (15, 15), (20, 10)] {
        let r = run(&format!(
            r#"
            duration = "30s"
            warmup = "10s"
            [dumbbell]
            rate = "45Mbps"
            rtt = "40ms"
            queue = {{ kind = "red", gentle = true }}
            router = "xcp"
            share = {{ scheduler = "wfq", weights = "windows", own_droptail = true, theta = 0.01, min_interval = "1ms" }}
            [[flows]]
            name = "xcp"
            law = "xcp"
            count = {xcp}
            [[flows]]
            name = "tcp"
            law = "reno"
            count = {tcp}
            spread = "1s"
            [probes]
            laws = true
            "#
        ));
        let of = |metric: &str| {
            let is = |k: &SeriesKey| k.kind == "law" && k.name == "bottleneck" && k.metric == metric;
            let key = r.series.keys.iter().position(is).expect(metric);
            let series = r.series.key.iter().zip(&r.series.value);
            series.filter(|(k, _)| **k as usize == key).map(|(_, v)| *v).collect::<Vec<_>>()
        };
        let weights = of("own_weight");
        let (last, flows) = (weights.last().expect("sampled"), f64::from(xcp) / f64::from(xcp + tcp));
        assert!((last - flows).abs() < 0.1, "{last} beside {flows}");
        for (weight, capacity) in weights.iter().zip(of("own_capacity_bps")) {
            assert!((capacity / (weight * 45e6) - 1.0).abs() < 1e-9, "{capacity} at {weight}");
        }
        assert!(r.summary.links["bottleneck"].utilization > 0.95);
        for (name, flows) in [("xcp", xcp), ("tcp", tcp)] {
            let fair = 0.96 * 45e6 / f64::from(xcp + tcp); // of 1000 bytes 960 are payload
            let share = r.summary.groups[name].goodput_bps / f64::from(flows) / fair;
            assert!((0.8..1.2).contains(&share), "{xcp} XCP, {tcp} TCP: {name} has {share}");
        }
    }
}

/// A link with a queue for each class stays within its buffer while its parts move: one part may still be full while
/// the other's has grown.
#[test]
fn parts_that_move_keep_to_the_buffer() {
    for (scheduler, law) in [("wfq", "rcp"), ("drr", "rcp"), ("wfq", "xcp")] {
        let r = run(&format!(
            r#"
            duration = "6s"
            [dumbbell]
            rate = "20Mbps"
            rtt = "40ms"
            router = "{law}"
            share = {{ scheduler = "{scheduler}", theta = 0.5 }}
            [[flows]]
            name = "own"
            law = "{law}"
            count = 3
            lifetime = "1500ms"
            every = "1s"
            [[flows]]
            name = "tcp"
            law = "cubic"
            count = 8
            every = "300ms"
            "#
        ));
        for (name, link) in &r.summary.links {
            assert!(
                link.max_queue_bytes <= link.buffer_bytes,
                "{scheduler}, {law}: {name} had {} of {}",
                link.max_queue_bytes,
                link.buffer_bytes
            );
        }
        assert!(
            r.summary.links["bottleneck"].max_queue_bytes > 0.9 * r.summary.links["bottleneck"].buffer_bytes
        );
    }
}

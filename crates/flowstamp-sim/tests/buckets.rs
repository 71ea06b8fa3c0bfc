//! Queues that hold back, police, or drop at the head: departures and losses by closed forms, and what cannot be together.

mod common;

use common::{run, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;

/// A burst of 60 packets of 1000 bytes that reaches a link of 1 Gb/s within 1.2 us, for `duration`.
fn burst(link: &str, duration: &str) -> Results {
    run(&format!(
        r#"
        duration = "{duration}"
        header = "0B"
        [dumbbell]
        rate = "1Gbps"
        access_rate = "400Gbps"
        rtt = "100ms"
        {link}
        [[flows]]
        name = "burst"
        law = "sack"
        size = "60kB"
        transport = {{ initial_window = 60, handshake = false }}
        [capture]
        packets = 1000
        "#
    ))
}

/// Number and time of each transmission at the bottleneck, seconds after the first.
fn departures(results: &Results) -> Vec<(u32, f64)> {
    let data = results.capture.packets.iter().filter(|p| p.link == 0 && p.data);
    let all: Vec<_> = data.map(|p| (p.seq, p.time_ps)).collect();
    all.iter().map(|(seq, ps)| (*seq, (ps - all[0].1) as f64 * 1e-12)).collect()
}

/// Cruz 1991: what leaves a shaper by t is min(b + r t, mtu + p t) and what has come. Packet k, from 0 on, leaves when that is k + 1 packets.
#[test]
fn a_shaped_burst_leaves_along_the_arrival_curve() {
    for (peak, mtu) in [(None, 1000.0), (Some(40e6), 1000.0), (Some(40e6), 4000.0)] {
        let peak_keys = peak.map_or(String::new(), |p| format!(r#", peak = "{p}bps", mtu = "{mtu}B""#));
        let queue = format!(
            r#"queue = {{ kind = "shaper", rate = "10Mbps", burst = "10kB", limit = "100kB"{peak_keys} }}"#
        );
        let results = burst(&queue, "90ms");
        let leaves = departures(&results);
        assert_eq!(leaves.len(), 60);
        for (k, (seq, time)) in leaves.iter().enumerate() {
            let sent = 1000.0 * (k + 1) as f64;
            let by_rate = (sent - 10_000.0) * 8.0 / 10e6;
            let by_peak = peak.map_or(0.0, |peak| (sent - mtu) * 8.0 / peak);
            let by_line = k as f64 * 8e-6;
            let expected = by_rate.max(by_peak).max(by_line);
            assert_eq!(*seq, k as u32);
            // The packets came 20 ns apart, and each time is rounded to a picosecond.
            assert!(
                (time - expected).abs() < 2e-9 + 20e-9 * f64::from(u8::from(expected == by_line)),
                "{k}: {time}, not {expected}"
            );
        }
    }
}

/// Packets that do not fit are lost: in a simultaneous burst, one is sent, `limit` are queued. `latency` as tbf has it:
/// b + r latency.
#[test]
fn a_shaper_holds_its_limit() {
    for (key, waits) in [(r#"limit = "20kB""#, 20), (r#"latency = "8ms""#, 20), (r#"limit = "0B""#, 0)] {
        let queue = format!(r#"queue = {{ kind = "shaper", rate = "10Mbps", burst = "10kB", {key} }}"#);
        let results = burst(&queue, "60ms");
        let link = &results.summary.links["bottleneck"];
        assert_eq!(link.buffer_bytes, f64::from(waits) * 1000.0);
        assert_eq!(
            (link.drops, link.max_queue_bytes),
            (59 - waits as u64, f64::from(waits) * 1000.0),
            "{key}"
        );
    }
}

/// A TCP flow through a shaper has its rate, and waits as the closed form of a full buffer says.
#[test]
fn a_flow_through_a_shaper_has_its_rate() {
    let results = run(r#"
        duration = "20s"
        warmup = "5s"
        header = "0B"
        [dumbbell]
        rate = "1Gbps"
        rtt = "20ms"
        queue = { kind = "shaper", rate = "10Mbps", burst = "32kB", latency = "40ms" }
        [[flows]]
        name = "tcp"
        law = "sack"
        [probes]
        every = "10ms"
        links = true
        "#);
    let goodput = results.summary.groups["tcp"].goodput_bps;
    assert!(goodput > 0.99 * 10e6 && goodput < 10e6 + 32e3 * 8.0 / 15.0, "{goodput}");
    let link = &results.summary.links["bottleneck"];
    assert!((link.utilization - 0.01).abs() < 2e-4, "{}", link.utilization);
    assert_eq!(link.buffer_bytes, 32e3 + 50e3);
    assert!(link.drops > 0 && link.max_queue_bytes > 80e3, "{link:?}");
}

/// A policer lets b of a burst pass at once; of a constant rate R above r, b + r t by t.
#[test]
fn a_policer_lets_rate_and_burst_pass() {
    let queue = r#"queue = { kind = "policer", rate = "10Mbps", burst = "10kB" }"#;
    let results = burst(queue, "60ms");
    let passed: Vec<u32> = departures(&results).iter().map(|(seq, _)| *seq).collect();
    assert_eq!((passed, results.summary.links["bottleneck"].drops), ((0..10).collect(), 50));
    for ecn in [false, true] {
        let results = run(&format!(
            r#"
            duration = "10s"
            header = "0B"
            [dumbbell]
            rate = "100Mbps"
            rtt = "10ms"
            queue = {{ kind = "policer", rate = "10Mbps", burst = "20kB", ecn = {ecn} }}
            [[flows]]
            name = "constant"
            law = "udp"
            rate = "16Mbps"
            transport = {{ ecn = true }}
            "#
        ));
        let link = &results.summary.links["bottleneck"];
        // 20,000 packets come in 10 s, of which 20 and 12,500 conform; one more or less is at the ends.
        let excess = 20_000.0 - 20.0 - 12_500.0;
        let (beyond, none) = if ecn { (link.marks, link.drops) } else { (link.drops, link.marks) };
        assert!((beyond as f64 - excess).abs() <= 20.0 && none == 0, "{link:?}");
    }
}

/// With 60 packets at once, one is in transmission and 20 are queued: with `drop = "head"` those that came last. Packet
/// by packet they leave as the link has transmitted those before, 8 us each.
#[test]
fn what_is_lost_at_the_head_is_what_came_first() {
    for (drop, buffer) in [("tail", "20pkt"), ("head", "20pkt"), ("head", "20500B")] {
        let queue = format!("buffer = \"{buffer}\"\nqueue = {{ kind = \"droptail\", drop = \"{drop}\" }}");
        let results = burst(&queue, "60ms");
        let expected: Vec<u32> =
            if drop == "tail" { (0..21).collect() } else { std::iter::once(0).chain(40..60).collect() };
        let leaves = departures(&results);
        assert_eq!(leaves.iter().map(|d| d.0).collect::<Vec<_>>(), expected, "{drop}");
        for (n, (_, time)) in leaves.iter().enumerate() {
            assert!((time - n as f64 * 8e-6).abs() < 1e-11, "{n}: {time}");
        }
        let link = &results.summary.links["bottleneck"];
        assert_eq!((link.drops, link.max_queue_bytes), (39, 20e3), "{drop}");
    }
}

/// TCP fills a link whose queue drops at the head, and the queue stays within its buffer.
#[test]
fn flows_live_with_drops_at_the_head() {
    for buffer in ["100ms", "30pkt", "1pkt"] {
        let results = run(&format!(
            r#"
            duration = "20s"
            warmup = "2s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "20ms"
            buffer = "{buffer}"
            queue = {{ kind = "droptail", drop = "head" }}
            [[flows]]
            name = "tcp"
            law = "sack"
            count = 2
            "#
        ));
        let link = &results.summary.links["bottleneck"];
        // Windows that halve with a buffer of a BDP or more leave the link full; with one packet half of a BDP is left in the worst case.
        assert!(link.utilization > if buffer == "1pkt" { 0.5 } else { 0.95 }, "{link:?}");
        assert!(link.drops > 10 && link.marks == 0 && link.max_queue_bytes <= link.buffer_bytes, "{link:?}");
    }
}

#[test]
fn a_shapers_own_limit_stays_and_another_buffer_changes() {
    let with = |queue: &str| {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = {queue}\n[[flows]]\nname = \"tcp\"\nlaw = \"sack\"\n"
        );
        let mut sim = Simulation::new(&try_load(&text).expect("a scenario"), None).expect("a network");
        sim.set("dumbbell.buffer", "7pkt").map_err(|e| e.to_string())
    };
    assert!(with(r#"{ kind = "shaper", rate = "5Mbps", burst = "5kB" }"#).is_ok());
    assert!(with(r#"{ kind = "droptail", drop = "head" }"#).is_ok());
    let refused =
        with(r#"{ kind = "shaper", rate = "5Mbps", burst = "5kB", limit = "9kB" }"#).expect_err("refused");
    assert!(refused.contains("the shaper of bottleneck says how much may wait"), "{refused}");
}

#[test]
fn what_cannot_be_together_is_refused_by_name() {
    const SHAPER: &str = r#"{ kind = "shaper", rate = "5Mbps", burst = "5kB" }"#;
    const POLICER: &str = r#"{ kind = "policer", rate = "5Mbps", burst = "5kB" }"#;
    const HEAD: &str = r#"{ kind = "droptail", drop = "head" }"#;
    let refused = |queue: &str, more: &str| {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = {queue}\n{more}\n[[flows]]\nname = \"tcp\"\nlaw = \"sack\"\n"
        );
        match try_load(&text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ())) {
            Ok(()) => panic!("accepted: {text}"),
            Err(e) => e.to_string(),
        }
    };
    for (queue, more, told) in [
        (
            SHAPER,
            "priority = \"acks\"",
            "dumbbell.queue: \"shaper\" has one bucket for the whole link, and cannot be together with priority = \"acks\"",
        ),
        (SHAPER, "priority = \"labels\"", "cannot be together with priority = \"labels\""),
        (SHAPER, "router = \"xcp\"", "whole rate router = \"xcp\" gives to flows"),
        (POLICER, "priority = \"labels\"", "cannot be together with priority = \"labels\""),
        (
            POLICER,
            "router = \"xcp\"\nshare = \"wfq\"",
            "\"policer\" has one bucket for the whole link, and cannot be together with share",
        ),
        (
            HEAD,
            "priority = \"acks\"",
            "\"droptail\" with drop = \"head\" drops the packet that has waited longest",
        ),
        (HEAD, "router = \"xcp\"\nshare = \"fifo\"", "cannot be together with share"),
        (
            "\"fq_codel\"",
            "priority = \"labels\"",
            "\"fq_codel\" divides the link among its flows, and cannot be together with priority",
        ),
        (
            "\"dualpi2\"",
            "priority = \"labels\"",
            "\"dualpi2\" is two queues with a scheduler, and cannot be together with priority",
        ),
        ("\"shaper\"", "", "rate"),
        (
            r#"{ kind = "shaper", rate = "5Mbps", burst = "999B" }"#,
            "",
            "dumbbell.queue.burst: is 999B, and no packet of 1kB would pass",
        ),
        (
            r#"{ kind = "policer", rate = "5Mbps", burst = "5kB", peak = "1Mbps" }"#,
            "",
            "dumbbell.queue.peak: is 1Mbps",
        ),
        (
            r#"{ kind = "shaper", rate = "5Mbps", burst = "5kB", limit = "9kB", latency = "1ms" }"#,
            "",
            "leave out one of them",
        ),
        (r#"{ kind = "droptail", drop = "middle" }"#, "", "middle"),
    ] {
        let error = refused(queue, more);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn policer_and_head_go_with_acks_and_routers() {
    for more in ["router = \"xcp\"", "router = \"vcp\""] {
        for queue in [
            r#"{ kind = "droptail", drop = "head" }"#,
            r#"{ kind = "policer", rate = "8Mbps", burst = "20kB" }"#,
            "\"pie\"",
        ] {
            let law = more.split('"').nth(1).expect("a name");
            let r = run(&format!(
                "duration = \"2s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = {queue}\n{more}\n[[flows]]\nname = \"own\"\nlaw = \"{law}\"\ncount = 2\n"
            ));
            let link = &r.summary.links["bottleneck"];
            assert!(link.utilization > 0.3, "{more} {queue}: {link:?}");
        }
    }
}

//! Links on which acks go before data.

mod common;

use common::{run, try_load};

/// Poisson arrivals of single data packets (1 ms each) and of acks (0.5 ms each) at one link: forward flows bring the data,
/// reverse ones the acks, and everything else is so fast that it keeps arrivals as they were.
fn two_streams(priority: &str) -> String {
    format!(
        r#"
        duration = "3000s"
        warmup = "10s"
        header = "0B"
        ack = "500B"
        [dumbbell]
        rate = "8Mbps"
        reverse_rate = "400Gbps"
        access_rate = "400Gbps"
        rtt = "1ms"
        buffer = "10000pkt"
        priority = "{priority}"
        [[flows]]
        name = "data"
        law = "sack"
        web = {{ flows_per_s = 400.0, sizes = {{ distribution = "fixed", size = "1000B" }} }}
        [[flows]]
        name = "acks"
        law = "sack"
        reverse = true
        web = {{ flows_per_s = 600.0, sizes = {{ distribution = "fixed", size = "1000B" }} }}
        [probes]
        links = false
        groups = false
        "#
    )
}

/// Mean waits of acks and data, seconds, and the mean queue in bytes.
fn waits(priority: &str) -> (f64, f64, f64) {
    let r = run(&two_streams(priority));
    let rtts: Vec<f64> =
        r.flows.iter().filter(|f| &*f.group == "acks").filter_map(|f| f.min_rtt_s.get()).collect();
    let fct = r.summary.groups["data"].fct_s.as_ref().expect("transfers").all.mean;
    let link = &r.summary.links["bottleneck"];
    assert_eq!(link.drops, 0);
    // One sample for each flow of one packet: 1 ms of propagation, 0.5 ms of transmission, the rest below 0.1 us.
    let ack = rtts.iter().sum::<f64>() / rtts.len() as f64 - 1.5e-3;
    (ack, fct - 1.5e-3, link.mean_queue_bytes)
}

/// Cobham 1954: `W_k = W_0 / ((1 - sigma_{k-1}) (1 - sigma_k))`; Kleinrock's conservation law: the bytes that wait are as
/// many as without priorities.
#[test]
fn waits_are_cobhams() {
    let (load_acks, load_data) = (0.3, 0.4);
    let residual = (600.0 * 0.5e-3f64.powi(2) + 400.0 * 1e-3f64.powi(2)) / 2.0;
    let fifo = residual / (1.0 - load_acks - load_data);
    let first = residual / (1.0 - load_acks);
    let second = first / (1.0 - load_acks - load_data);
    let bytes = 600.0 * 500.0 * fifo + 400.0 * 1000.0 * fifo;
    // The time average over 3000 s of a queue whose correlation time is about 1 / (mu (1 - sqrt(rho))^2), 40 ms: some
    // 40,000 independent samples whose standard deviation is 1.3 means, hence 0.7%; three of them.
    for (priority, acks, data) in [("none", fifo, fifo), ("acks", first, second)] {
        let (ack, packet, queue) = waits(priority);
        for (what, measured, expected) in
            [("acks", ack, acks), ("data", packet, data), ("bytes", queue, bytes)]
        {
            let error = measured / expected - 1.0;
            assert!(error.abs() < 0.02, "{priority}, {what}: {measured}, not {expected}");
        }
    }
}

/// With a router law on the link or without, and beside any queue law, all packets are accounted for (the engine asserts
/// it) and acks that have priority do not wait for the data that they meet.
#[test]
fn acks_of_crowded_links_come_back_soon() {
    let srtt = |router: &str, law: &str, queue: &str, priority: &str| {
        let r = run(&format!(
            r#"
            duration = "10s"
            warmup = "2s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "20ms"
            buffer = "100ms"
            router = "{router}"
            queue = "{queue}"
            priority = "{priority}"
            [[flows]]
            name = "there"
            law = "{law}"
            count = 5
            [[flows]]
            name = "back"
            law = "{law}"
            count = 5
            reverse = true
            "#
        ));
        let link = &r.summary.links["bottleneck"];
        assert!(link.utilization > 0.5 && link.utilization <= 1.0 + 1e-6, "{link:?}");
        assert!(link.max_queue_bytes <= link.buffer_bytes, "{link:?}");
        let p = r.summary.packets.expect("a whole run");
        assert!(p.arrived + p.lost <= p.sent);
        r.flows.iter().filter_map(|f| f.srtt_s.get()).sum::<f64>() / r.flows.len() as f64
    };
    // The time above the path's 20 ms is two equal waits, one of the data and one of their acks on the way back;
    // without the second, half of it is left, give or take where in their saw-teeth the flows end.
    let (plain, first) = (srtt("none", "sack", "droptail", "none"), srtt("none", "sack", "droptail", "acks"));
    let left = (first - 0.020) / (plain - 0.020);
    assert!((0.35..0.75).contains(&left), "{plain} {first}");
    for (router, law, queue) in
        [("xcp", "xcp", "droptail"), ("rcp", "rcp", "droptail"), ("none", "reno", "red")]
    {
        let _ = srtt(router, law, queue, "acks");
    }
}

/// Strict priority by label: Poisson arrivals of single packets of two groups, 500 and 1000 bytes, that go the same way. Each group's mean
/// transfer time is its wait, a transmission and half a round trip; Cobham's waits as above.
#[test]
fn waits_by_label_are_cobhams() {
    let nightly = std::env::var_os("FLOWSTAMP_NIGHTLY").is_some();
    let (duration_s, within) = if nightly { (3000, 0.02) } else { (200, 0.08) };
    let times = |priority: &str| {
        let r = run(&format!(
            r#"
            duration = "{duration_s}s"
            warmup = "10s"
            header = "0B"
            ack = "1B"
            [dumbbell]
            rate = "8Mbps"
            access_rate = "400Gbps"
            rtt = "1ms"
            buffer = "10000pkt"
            priority = "{priority}"
            [[flows]]
            name = "first"
            law = "sack"
            label = 5
            web = {{ flows_per_s = 600.0, sizes = {{ distribution = "fixed", size = "500B" }} }}
            [[flows]]
            name = "rest"
            law = "sack"
            web = {{ flows_per_s = 400.0, sizes = {{ distribution = "fixed", size = "1000B" }} }}
            [probes]
            links = false
            groups = false
            "#
        ));
        assert_eq!(r.summary.links["bottleneck"].drops, 0);
        let wait = |group: &str, own_s: f64| {
            r.summary.groups[group].fct_s.as_ref().expect("transfers").all.mean - 0.5e-3 - own_s
        };
        (wait("first", 0.5e-3), wait("rest", 1e-3))
    };
    let (load_first, load_rest) = (0.3, 0.4);
    let residual = (600.0 * 0.5e-3f64.powi(2) + 400.0 * 1e-3f64.powi(2)) / 2.0;
    let fifo = residual / (1.0 - load_first - load_rest);
    let first = residual / (1.0 - load_first);
    // 200 s have a fifteenth of the samples of the 3000 s above: 2.7% of standard deviation, three of them.
    for (priority, expected) in
        [("none", (fifo, fifo)), ("labels", (first, first / (1.0 - load_first - load_rest)))]
    {
        let waited = times(priority);
        for (wait, expected) in [(waited.0, expected.0), (waited.1, expected.1)] {
            assert!((wait / expected - 1.0).abs() < within, "{priority}: {wait}, not {expected}");
        }
    }
}

/// Three labels beyond the capacity: the first has all that it asks for and waits for one packet at most, the second what is left, the
/// third nothing; and each has a buffer of its own, so that nobody's packets are lost for those of another.
#[test]
fn a_greater_label_takes_what_it_asks_for() {
    let r = run(r#"
        duration = "20s"
        warmup = "1s"
        header = "0B"
        [dumbbell]
        rate = "10Mbps"
        access_rate = "10Gbps"
        rtt = "10ms"
        buffer = "20pkt"
        priority = "labels"
        [[flows]]
        name = "high"
        law = "udp"
        jitter = "none"
        label = 7
        rate = "6Mbps"
        [[flows]]
        name = "middle"
        law = "udp"
        jitter = "none"
        label = 3
        rate = "7Mbps"
        [[flows]]
        name = "low"
        law = "udp"
        jitter = "none"
        rate = "5Mbps"
        [probes]
        laws = true
        "#);
    let goodput = |name: &str| r.summary.groups[name].goodput_bps / 1e6;
    // In 19 s, to a packet or two: 0.8 ms of the link each.
    assert!((goodput("high") - 6.0).abs() < 0.002, "{}", goodput("high"));
    assert!((goodput("middle") - 4.0).abs() < 0.002, "{}", goodput("middle"));
    assert!(goodput("low") < 0.001, "{}", goodput("low"));
    // A packet's own transmission, 0.8 ms, after at most one residual of another and a path of 5 ms.
    let delay = &r.summary.groups["high"].packet_delay_s.as_ref().expect("packets").all;
    assert!(delay.max < 5e-3 + 2.0 * 0.8e-3 + 0.1e-3, "{delay:?}");
    let link = &r.summary.links["bottleneck"];
    assert_eq!(link.buffer_bytes, 60e3, "20 packets for each of three labels");
    assert!(link.max_queue_bytes <= link.buffer_bytes && link.max_queue_bytes > 35e3, "{link:?}");
    // Every packet that is lost is of the second or the third.
    let lost = 19.0 * (7.0 - 4.0 + 5.0) * 1e6 / 8000.0;
    assert!((link.drops as f64 - lost).abs() < 30.0, "{} of {lost}", link.drops);
    for label in ["label7_queue_bytes", "label3_queue_bytes", "label0_queue_bytes"] {
        assert!(r.series.keys.iter().any(|k| k.metric == label), "{label}");
    }
}

/// Flows of a slot that another left have the label of their own group, and acks have their flow's.
#[test]
fn labels_go_with_flows() {
    let srtt = |label: u32| {
        let r = run(&format!(
            r#"
            duration = "10s"
            warmup = "1s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "20ms"
            buffer = "100ms"
            priority = "labels"
            [[flows]]
            name = "short"
            law = "sack"
            label = {label}
            web = {{ flows_per_s = 5.0, sizes = {{ distribution = "fixed", size = "1000B" }} }}
            [[flows]]
            name = "other"
            law = "sack"
            label = 1
            web = {{ flows_per_s = 5.0, sizes = {{ distribution = "fixed", size = "1000B" }} }}
            [[flows]]
            name = "long"
            law = "sack"
            count = 2
            label = 1
            [[flows]]
            name = "back"
            law = "sack"
            count = 2
            reverse = true
            label = 1
            "#
        ));
        let rtts: Vec<f64> =
            r.flows.iter().filter(|f| &*f.group == "short").filter_map(|f| f.min_rtt_s.get()).collect();
        rtts.iter().copied().fold(0.0, f64::max)
    };
    // 20 ms, a packet and an ack through links of 10 and 100 Mb/s, and a residual packet each way.
    assert!(srtt(2) < 20e-3 + 4.0 * 0.8e-3, "{}", srtt(2));
    assert!(srtt(1) > 40e-3, "{}", srtt(1));
}

#[test]
fn labels_that_nobody_reads_are_told_of() {
    let warnings = |priority: &str, label: u32| {
        let text = two_streams(priority)
            .replace("3000s", "11s")
            .replace("reverse = true", &format!("reverse = true\nlabel = {label}"));
        run(&text).summary.warnings
    };
    let told = warnings("acks", 3);
    assert!(told[0].starts_with("flows.acks.label: is 3, but no link goes by labels"), "{told:?}");
    let told = warnings("labels", 0);
    assert!(
        told[0].starts_with("priority of bottleneck: is \"labels\", but no flow has a label"),
        "{told:?}"
    );
    assert!(warnings("labels", 3).is_empty());
    let text = two_streams("labels").replace("reverse = true", "reverse = true\nlabel = 8");
    let refused = try_load(&text).expect_err("refused").to_string();
    assert!(refused.contains("flows.acks.label: is 8; it must be 0 to 7"), "{refused}");
}

#[test]
fn what_is_asked_for_is_checked() {
    let refused = |extra: &str| {
        let text = two_streams("acks").replace("priority = \"acks\"", extra);
        try_load(&text).expect_err("refused").to_string()
    };
    let both = refused("priority = \"acks\"\nrouter = \"xcp\"\nshare = \"wfq\"");
    assert!(both.contains("dumbbell.priority: ") && both.contains("share"), "{both}");
    let name = refused("priority = \"data\"");
    assert!(name.contains("data") && name.contains("acks"), "{name}");
}

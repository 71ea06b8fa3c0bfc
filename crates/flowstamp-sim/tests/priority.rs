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
        let p = r.summary.packets;
        assert!(p.arrived + p.lost <= p.sent);
        r.flows.iter().filter_map(|f| f.srtt_s.get()).sum::<f64>() / r.flows.len() as f64
    };
    // What is above the path's 20 ms is two waits alike, one of the data and one of their acks on the way back; without the
    // second, half of it is left, give or take where in their saw-teeth the flows end.
    let (plain, first) = (srtt("none", "sack", "droptail", "none"), srtt("none", "sack", "droptail", "acks"));
    let left = (first - 0.020) / (plain - 0.020);
    assert!((0.35..0.75).contains(&left), "{plain} {first}");
    for (router, law, queue) in
        [("xcp", "xcp", "droptail"), ("rcp", "rcp", "droptail"), ("none", "reno", "red")]
    {
        let _ = srtt(router, law, queue, "acks");
    }
}

#[test]
fn what_is_asked_for_is_checked() {
    let refused = |extra: &str| {
        let text = two_streams("acks").replace("priority = \"acks\"", extra);
        try_load(&text).expect_err("refused").to_string()
    };
    let both = refused("priority = \"acks\"\nrouter = \"xcp\"\nshare = \"wfq\"");
    assert!(both.contains("priority of bottleneck") && both.contains("share"), "{both}");
    let name = refused("priority = \"data\"");
    assert!(name.contains("data") && name.contains("acks"), "{name}");
}

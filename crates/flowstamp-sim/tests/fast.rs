//! FAST on a link: every flow keeps its packets in the queue, and so all have the same share.

mod common;

use common::run;

/// Wei and others 2006: in equilibrium alpha packets of each flow are queued, N alpha in total, and the shares are
/// even. The queue is without the packet in transmission, and windows, which are whole in flight, a packet less at
/// most.
#[test]
fn each_flow_keeps_alpha_packets_in_the_queue() {
    for (rate, rtt, count) in [("50Mbps", "80ms", 1), ("50Mbps", "80ms", 4), ("10Mbps", "40ms", 2)] {
        let results = run(&format!(
            r#"
            duration = "30s"
            warmup = "15s"
            header = "0B"
            [dumbbell]
            rate = "{rate}"
            rtt = "{rtt}"
            buffer = "4BDP"
            [[flows]]
            name = "fast"
            law = "fast"
            count = {count}
            "#
        ));
        let link = &results.summary.links["bottleneck"];
        assert!(link.utilization > 0.999, "{}", link.utilization);
        let queued = link.mean_queue_bytes / 1000.0 / f64::from(count);
        assert!((18.0..=20.5).contains(&queued), "{rate}, {rtt}, {count}: {queued} packets of each");
        assert_eq!(link.drops, 0);
        let jain = results.summary.groups["fast"].jain_index.expect("flows");
        assert!(jain > 0.999, "{count}: {jain}");
    }
}

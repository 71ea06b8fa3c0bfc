//! Little's law and conservation of work hold in every run of random flows, whatever the scenario.

mod common;

use common::{laws, run};
use proptest::prelude::*;

/// All laws, with buffers that lose packets and with buffers that do not.
fn scenario() -> impl Strategy<Value = String> {
    let law = prop::sample::select(laws());
    let sizes = prop_oneof![
        Just(r#"{ distribution = "exponential", mean = "20kB" }"#),
        Just(r#"{ distribution = "pareto", mean = "20kB", shape = 1.2 }"#),
        Just(r#"{ distribution = "fixed", size = "7500B" }"#),
    ];
    // A load near 1 leaves flows that do not end; a warm-up of 0 leaves none that begin before the window.
    (law, sizes, 0.1..0.99f64, 1.0..40.0f64, 5u32..200, 2u32..300, 0u32..2000, any::<u32>()).prop_map(
        |((law, router), sizes, load, rate, rtt, buffer, warmup, seed)| {
            format!(
                r#"
                duration = "4s"
                warmup = "{warmup}ms"
                seed = {seed}
                [dumbbell]
                rate = "{rate}Mbps"
                rtt = "{rtt}ms"
                buffer = "{buffer}pkt"
                router = "{router}"
                [[flows]]
                name = "forward"
                law = "{law}"
                [flows.web]
                load = {load}
                sizes = {sizes}
                [[flows]]
                name = "back"
                law = "{law}"
                reverse = true
                [flows.web]
                load = {load}
                sizes = {sizes}
                "#
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn holds_in_every_scenario(text in scenario()) {
        let results = run(&text);
        let window_s = results.summary.duration_s - results.summary.warmup_s;
        for (name, group) in &results.summary.groups {
            let flows: Vec<_> = results.flows.iter().filter(|f| *f.group == **name).collect();
            let Some(law) = group.littles_law else {
                prop_assert!(flows.iter().all(|f| f.end_s.is_some_and(|end| end <= results.summary.warmup_s)));
                continue;
            };
            // Both sides are whole numbers of picoseconds: nothing is rounded.
            prop_assert_eq!(law.unaccounted, 0.0);
            // The difference is at most the packets that straddle the window's ends.
            prop_assert!(law.relative_difference <= law.edge_bound * (1.0 + 1e-12), "{:?}", law);
            // The table of flows says the same: times are rounded to a picosecond in 4 s.
            let inside: f64 = flows
                .iter()
                .map(|f| f.end_s.unwrap_or(f64::INFINITY).min(results.summary.duration_s)
                    - f.start_s.max(results.summary.warmup_s))
                .filter(|s| *s > 0.0)
                .sum();
            prop_assert!((inside / window_s / law.mean_active - 1.0).abs() < 1e-9, "{} {:?}", inside, law);

            // Work: what was asked for is delivered or still to come, and no flow gets more than it asked for.
            for f in &flows {
                let size = f.size_bytes.expect("web flows have a size");
                prop_assert!(f.delivered_bytes <= size, "{:?}", f);
                prop_assert_eq!(f.end_s.is_some(), f.delivered_bytes == size, "{:?}", f);
            }
            // Counted by the group as packets arrive, and by each flow.
            let since_warmup = group.goodput_bps * window_s / 8.0;
            let all: u64 = flows.iter().map(|f| f.delivered_bytes).sum();
            prop_assert!(since_warmup <= all as f64 + 0.5);
            if results.summary.warmup_s <= 0.0 {
                prop_assert!((since_warmup - all as f64).abs() < 0.5, "{} {}", since_warmup, all);
            }
        }
        // No link carries more than it can, and it carries at least what was delivered over it.
        for (link, group) in [("bottleneck", "forward"), ("bottleneck.reverse", "back")] {
            let link = &results.summary.links[link];
            // Transmissions last whole picoseconds: half of one too short at most, of an ack of 40 bytes.
            let rounding = 0.5e-12 * link.rate_bps / (40.0 * 8.0);
            prop_assert!(link.utilization <= 1.0 + rounding, "{}", link.utilization - 1.0);
            // Packets that left the link before the window may arrive in it, for one propagation time.
            let early = link.rate_bps * 0.2;
            let carried = link.utilization * link.rate_bps * window_s;
            prop_assert!(results.summary.groups[group].goodput_bps * window_s <= carried + early);
        }
    }
}

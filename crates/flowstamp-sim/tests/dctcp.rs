//! DCTCP's queue, marks and period in the steady state against Alizadeh et al. 2010, section 3.3, and marks from the switch to
//! the sender.
//!
//! The paper's windows are real numbers; those of a network are whole packets: half a packet either way. Its windows grow while
//! acks have echoes; RFC 3168 section 6.1.2, and so RFC 8257, holds them for that round trip. So a measured value must be
//! between the model's without and with a round trip held, widened by half a packet in each window (the queue's by one packet
//! more: what finds K packets goes unmarked, and makes them K + 1 before the first mark).
//!
//! `cargo test -p flowstamp-sim --test dctcp -- --nocapture` prints the table of docs/models/dctcp.md.
#![expect(clippy::print_stdout, reason = "the model page's table")]

mod common;

use common::run;
use flowstamp_fluid::dctcp::SteadyState;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_sim::results::{Results, Series};

const PACKET: u32 = 1500;

fn scenario(rate: &str, threshold: u32, flows: u32) -> String {
    format!(
        r#"
        duration = "400ms"
        warmup = "100ms"
        packet = "{PACKET}B"
        [dumbbell]
        rate = "{rate}"
        rtt = "100us"
        buffer = "1000pkt"
        queue = {{ kind = "red", step = {threshold} }}
        [[flows]]
        name = "dctcp"
        law = "dctcp"
        count = {flows}
        [probes]
        every = "2us"
        flows = true
        "#
    )
}

/// Samples of a metric after the warm-up.
fn samples(series: &Series, kind: &str, metric: &str) -> Vec<Vec<f64>> {
    let keys = (0..).zip(&series.keys).filter(|(_, key)| key.kind == kind && key.metric == metric);
    let of = |key: u32| {
        let rows = series.key.iter().zip(&series.time_s).zip(&series.value);
        rows.filter(|((k, time), _)| **k == key && **time > 0.1).map(|(_, value)| *value).collect()
    };
    keys.map(|(key, _)| of(key)).collect()
}

#[derive(Debug)]
struct Measured {
    alpha: f64,
    queue_max: f64,
    queue_min: f64,
    period_rtts: f64,
    least_rtt: Time,
}

fn measure(results: &Results) -> Measured {
    let link = &results.summary.links["bottleneck"];
    assert_eq!((link.drops, link.utilization > 0.999), (0, true), "{link:?}");
    let packet = f64::from(PACKET);
    let least_rtt = results.flows.iter().filter_map(|f| f.min_rtt_s).fold(f64::MAX, f64::min);
    let rtt = least_rtt + link.mean_queue_bytes * 8.0 / link.rate_bps;
    // The queue of the forward link: that of the acks never fills.
    let queue = samples(&results.series, "link", "queue_bytes").swap_remove(0);
    let windows = samples(&results.series, "flow", "cwnd_packets");
    let cuts = |w: &Vec<f64>| w.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64;
    let cuts = windows.iter().map(cuts).sum::<f64>() / windows.len() as f64;
    Measured {
        alpha: link.marks as f64 / link.arrivals as f64,
        queue_max: queue.iter().copied().fold(0.0, f64::max) / packet,
        queue_min: queue.iter().copied().fold(f64::MAX, f64::min) / packet,
        period_rtts: 0.3 / cuts / rtt,
        least_rtt: Time::from_secs_f64(least_rtt),
    }
}

/// `value` is between the two models', in either order, `margin` beyond them at most.
fn between(what: &str, value: f64, models: [f64; 2], margin: f64) {
    let (low, high) = (models[0].min(models[1]) - margin, models[0].max(models[1]) + margin);
    println!("  {what:12} {value:8.3}   model {:8.3}, held {:8.3}", models[0], models[1]);
    assert!((low..=high).contains(&value), "{what}: {value} is not in {low} to {high}");
}

#[test]
fn queue_marks_and_period_are_those_of_the_paper() {
    // K of the paper's section 4 at 1 and 10 Gb/s; then figure 12's K at 10 Gb/s with 2 and 10 flows.
    for (gbps, threshold, flows) in [(1, 20, 2), (10, 65, 2), (10, 40, 2), (10, 40, 10)] {
        println!("{gbps} Gb/s, K = {threshold}, {flows} flows");
        let m = measure(&run(&scenario(&format!("{gbps}Gbps"), threshold, flows)));
        let capacity = Rate::from_gbps(f64::from(gbps));
        let model = |held, wider: f64| {
            let threshold = f64::from(threshold) + wider * f64::from(flows);
            SteadyState::new(flows, capacity, m.least_rtt, PACKET, threshold, held).expect("a steady state")
        };
        let models = [model(0.0, 0.0), model(1.0, 0.0)];
        let of = |f: fn(&SteadyState) -> f64| [f(&models[0]), f(&models[1])];
        // Half a packet in each window, and the one that finds K.
        let packets = 0.5 * f64::from(flows) + 1.0;
        between("queue_max", m.queue_max, of(|s| s.queue_max), packets);
        between("queue_min", m.queue_min, of(|s| s.queue_min), packets);
        // By half a packet in W*, which alpha follows.
        let alpha = 0.5 * (model(1.0, -0.5).alpha - model(1.0, 0.5).alpha);
        between("alpha", m.alpha, of(|s| s.alpha), alpha);
        // A packet in a window is a round trip of growth.
        between("period_rtts", m.period_rtts, of(|s| s.period_rtts), 0.5);
    }
}

/// What the switch marks, echoes tell: a single flow whose `alpha` reduces it has as many marks as its acks have echoes.
#[test]
fn marks_of_the_switch_arrive_as_echoes() {
    for (delayed, acks) in [("false", 1.0), ("true", 0.5)] {
        let text = format!(
            r#"
            duration = "50ms"
            packet = "{PACKET}B"
            [dumbbell]
            rate = "1Gbps"
            rtt = "100us"
            buffer = "1000pkt"
            queue = {{ kind = "red", step = 20 }}
            [[flows]]
            name = "dctcp"
            law = "dctcp"
            size = "4MB"
            transport = {{ delayed_acks = {delayed}, delayed_ack_timeout = "1ms" }}
            [capture]
            packets = 100000
            "#
        );
        let results = run(&text);
        assert_eq!(results.summary.groups["dctcp"].completed, 1);
        let forward = &results.summary.links["bottleneck"];
        assert!(forward.marks > 50 && forward.drops == 0, "{forward:?}");
        let mut packets: Vec<_> = results.capture.packets.iter().filter(|p| !p.data).collect();
        packets.sort_by_key(|p| p.time_ps);
        let (mut next, mut marked) = (0, 0);
        for ack in &packets {
            marked += if ack.ecn_echo { u64::from(ack.seq - next) } else { 0 };
            next = ack.seq;
        }
        assert_eq!(marked, forward.marks);
        // With delayed acks those that a change of mark calls for come on top.
        let share = packets.len() as f64 / f64::from(next);
        assert!(share >= acks && share < acks + 0.2, "{share}");
    }
}

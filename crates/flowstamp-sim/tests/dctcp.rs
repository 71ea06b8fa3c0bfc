//! DCTCP's queue, marks and period in the steady state against Alizadeh et al. 2010, section 3.3, and marks from the switch to
//! the sender.
//!
//! The paper's windows are real numbers; those of a network are whole packets: half a packet either way. Its windows grow while
//! acks have echoes; RFC 3168 section 6.1.2, and so RFC 8257, holds them for that round trip. Therefore a measured value must be
//! between the model's without and with a round trip held, widened by half a packet in each window (the queue's by one packet
//! more: what finds K packets goes unmarked, and makes them K + 1 before the first mark).
//!
//! `tools/dctcp.py` writes what it prints into docs/notes/dctcp.md.
#![expect(clippy::print_stdout, reason = "a table of docs/notes/dctcp.md")]

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
    let least_rtt = results.flows.iter().filter_map(|f| f.min_rtt_s.get()).fold(f64::MAX, f64::min);
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

/// A figure of the paper: as measured, by the paper's model and by the one with a round trip held, and how far beyond these
/// it may be.
struct Figure {
    what: &'static str,
    measured: f64,
    models: [f64; 2],
    margin: f64,
    digits: usize,
}

impl Figure {
    /// Between the two models, in either order, and `margin` beyond them at most.
    fn bounds(&self) -> (f64, f64) {
        let [paper, held] = self.models;
        (paper.min(held) - self.margin, paper.max(held) + self.margin)
    }

    fn check(&self) {
        let (low, high) = self.bounds();
        let Self { what, measured, .. } = self;
        assert!((low..=high).contains(measured), "{what}: {measured} is not in {low} to {high}");
    }
}

/// A row of the table for each thing that there is to say of the figures.
fn print_rows(setting: &str, figures: &[Figure]) {
    let row = |head: &str, name: &str, cell: &dyn Fn(&Figure) -> String| {
        let cells: Vec<_> = figures.iter().map(cell).collect();
        println!("| {head} | {name} | {} |", cells.join(" | "));
    };
    row(setting, "measured", &|f| format!("{:.*}", f.digits, f.measured));
    row("", "paper", &|f| format!("{:.*}", f.digits, f.models[0]));
    row("", "one round trip held", &|f| format!("{:.*}", f.digits, f.models[1]));
    row("", "bounds", &|f| format!("{1:.0$} to {2:.0$}", f.digits, f.bounds().0, f.bounds().1));
    row("", "measured / paper", &|f| format!("{:+.1}%", 100.0 * (f.measured / f.models[0] - 1.0)));
}

#[test]
fn queue_marks_and_period_are_those_of_the_paper() {
    // K of the paper's section 4 at 1 and 10 Gb/s; then figure 12's K at 10 Gb/s with 2 and 10 flows.
    for (gbps, threshold, flows) in [(1, 20, 2), (10, 65, 2), (10, 40, 2), (10, 40, 10)] {
        let m = measure(&run(&scenario(&format!("{gbps}Gbps"), threshold, flows)));
        let capacity = Rate::from_gbps(f64::from(gbps));
        let model = |held, wider: f64| {
            let threshold = f64::from(threshold) + wider * f64::from(flows);
            SteadyState::new(flows, capacity, m.least_rtt, PACKET, threshold, held).expect("a steady state")
        };
        let models = [model(0.0, 0.0), model(1.0, 0.0)];
        let figure = |what, measured, of: fn(&SteadyState) -> f64, margin, digits| {
            let models = [of(&models[0]), of(&models[1])];
            Figure { what, measured, models, margin, digits }
        };
        // Half a packet in each window, and the one that finds K.
        let packets = 0.5 * f64::from(flows) + 1.0;
        // By half a packet in W*, which alpha follows.
        let alpha = 0.5 * (model(1.0, -0.5).alpha - model(1.0, 0.5).alpha);
        let figures = [
            figure("queue_max", m.queue_max, |s| s.queue_max, packets, 1),
            figure("queue_min", m.queue_min, |s| s.queue_min, packets, 1),
            figure("alpha", m.alpha, |s| s.alpha, alpha, 3),
            // A packet in a window is a round trip of growth.
            figure("period_rtts", m.period_rtts, |s| s.period_rtts, 0.5, 2),
        ];
        print_rows(&format!("{gbps} Gb/s, $K = {threshold}$, $N = {flows}$"), &figures);
        figures.iter().for_each(Figure::check);
    }
}

/// Echoes report the switch's marks: a single flow whose `alpha` reduces it has as many marks as its acks have echoes.
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

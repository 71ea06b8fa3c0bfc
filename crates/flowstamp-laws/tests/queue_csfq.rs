//! CSFQ: labels and the fair rate against the paper's arithmetic, the paper's 32 unequal flows on one link, labels from an edge to a
//! core, and what must never happen.

use flowstamp_laws::queue::csfq::{Csfq, Params};
use flowstamp_laws::queue::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::{Rate, Time};
use proptest::prelude::*;

const PACKET: u32 = 1000;
/// Bytes per second: 10 Mb/s.
const C: f64 = 1.25e6;

/// The paper's link: 10 Mb/s, 64 KB.
fn view() -> QueueView {
    QueueView {
        limit: Limit::Bytes(64_000),
        capacity: Rate::from_bytes_per_sec(C),
        mean_packet_bytes: PACKET,
    }
}

fn arrival(now: Time, flow: u64, label: Option<f64>, queue_bytes: u64) -> Arrival {
    Arrival {
        now,
        size: PACKET,
        flow,
        label,
        queue_bytes,
        queue_packets: (queue_bytes / u64::from(PACKET)) as u32,
        ecn_capable: false,
        l4s: false,
        idle_since: None,
    }
}

/// xorshift64*, uniform in [0, 1): seeded, so that a statistical test gives the same answer for ever.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut x = seed;
    move || {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        (x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value}, expected {expected}");
}

#[test]
fn a_flows_label_is_its_exponential_average() {
    let mut law = Csfq::new(&Params::default(), &view());
    let mut label = |at_ms: u64, flow: u64| {
        law.on_arrival(&arrival(Time::from_millis(at_ms), flow, None, 0), || 0.9);
        law.last_label().bytes_per_sec()
    };
    // K = 100 ms. By hand: l/K = 10,000; then (1 - e^-0.1) 1000/0.01 + e^-0.1 10,000 = 9516.26 + 9048.37.
    close(label(0, 1), 10_000.0, 1e-12);
    close(label(10, 1), 18_564.63, 1e-6);
    // It knows nothing of another flow, and the first continues from where it was.
    close(label(15, 2), 10_000.0, 1e-12);
    // A packet of the same instant: T -> 0.
    close(label(10, 1), 28_564.63, 1e-6);
    // A steady flow of a packet in 4 ms is one of 250,000 bytes/s, e^-10 of the start after 10 K.
    let last = (0..=250).map(|n| label(2000 + 4 * n, 3)).last().expect("some");
    close(last, 250_000.0, 1e-4);
}

/// Flows that send at constant rates, C times `shares`, through the law and a queue of 64 KB served at C, for `seconds` after
/// as many to settle. The admitted share of C of each flow, the law, and its last label.
fn constant_flows(params: &Params, shares: &[f64], seconds: f64, ecn: bool) -> (Vec<f64>, Csfq, f64) {
    let mut law = Csfq::new(params, &view());
    let mut draw = uniform(0x9E37_79B9_7F4A_7C15);
    // Phases that are not all alike.
    let mut next: Vec<f64> =
        shares.iter().enumerate().map(|(i, s)| (i as f64 * 0.618).fract() * 1000.0 / (s * C)).collect();
    let (mut queue, mut last, mut marks) = (0.0f64, 0.0f64, 0.0);
    let mut passed = vec![0.0; shares.len()];
    loop {
        let flow = (0..shares.len()).min_by(|a, b| next[*a].total_cmp(&next[*b])).expect("a flow");
        let now = next[flow];
        if now > 2.0 * seconds {
            break;
        }
        queue = (queue - (now - last) * C).max(0.0);
        last = now;
        next[flow] += f64::from(PACKET) / (shares[flow] * C);
        let packet = arrival(Time::from_secs_f64(now), flow as u64, None, queue as u64);
        let verdict = law.on_arrival(&Arrival { ecn_capable: ecn, ..packet }, &mut draw);
        if verdict == Verdict::Drop {
            continue;
        }
        marks += f64::from(u8::from(verdict == Verdict::Mark));
        queue += f64::from(PACKET);
        if now > seconds {
            passed[flow] += f64::from(PACKET) / (seconds * C);
        }
    }
    (passed, law, marks)
}

#[test]
fn thirty_two_flows_of_which_each_sends_more_than_the_one_before() {
    // Section 4.1: 32 flows on 10 Mb/s, flow i sends i+1 times its share of 0.3125 Mb/s, i = 0 to 31. Max-min is 1/32 for each.
    let shares: Vec<f64> = (1..=32).map(|i| f64::from(i) / 32.0).collect();
    let (passed, law, _) = constant_flows(&Params::default(), &shares, 20.0, false);
    let all: f64 = passed.iter().sum();
    assert!((0.97..=1.001).contains(&all), "{all} of the link");
    close(law.fair_rate().expect("congested").bytes_per_sec(), C / 32.0, 0.1);
    // Flows above 1/32 are thinned at random: of 781 packets in 20 s, three standard deviations are 11%, and the fair rate is
    // known to a few per cent. Flow 0 sends just the fair rate.
    for (flow, share) in passed.iter().enumerate() {
        assert!((share * 32.0 - 1.0).abs() < 0.15, "flow {flow}: {} of its share", share * 32.0);
    }
}

#[test]
fn a_flow_below_the_fair_rate_loses_nothing() {
    // Max-min of C between 0.1, 0.5 and 2: 0.1, 0.45, 0.45.
    let (passed, law, _) = constant_flows(&Params::default(), &[0.1, 0.5, 2.0], 20.0, false);
    close(passed[0], 0.1, 0.01);
    close(law.fair_rate().expect("congested").bytes_per_sec(), 0.45 * C, 0.05);
    // 2500 packets a second of the third, a fifth of them let in: the average says it to 1%, the fair rate to 5%.
    close(passed[1], 0.45, 0.06);
    close(passed[2], 0.45, 0.06);
}

#[test]
fn what_can_be_marked_is_marked_at_the_rate_that_others_are_lost() {
    let lost = |ecn: bool| {
        let mut law = Csfq::new(&Params::default(), &view());
        let mut draw = uniform(1);
        let (mut marks, mut drops) = (0, 0);
        // One flow at twice C, seen with half of the buffer in use.
        for n in 0..20_000u64 {
            let packet = arrival(Time::from_micros(400 * n), 1, None, 32_000);
            match law.on_arrival(&Arrival { ecn_capable: ecn, ..packet }, &mut draw) {
                Verdict::Drop => drops += 1,
                Verdict::Mark => marks += 1,
                Verdict::Enqueue => {}
            }
        }
        (marks, drops)
    };
    let ((marks, none), (no_marks, drops)) = (lost(true), lost(false));
    assert_eq!((none, no_marks), (0, 0));
    assert_eq!(marks, drops, "the same draws, the same fair rate");
    // 1 - C/2C: half, except in the first second or so, when alpha is found.
    close(f64::from(marks) / 20_000.0, 0.5, 0.1);
}

#[test]
fn an_edge_labels_and_a_core_believes() {
    let core = Params { edge: Some(false), ..Params::default() };
    let mut law = Csfq::new(&core, &view());
    for n in 0..10u64 {
        // Nobody was congested yet: what has a label keeps it, and what has none gets none here.
        let packet = arrival(Time::from_millis(n), 1, Some(5e5), 0);
        assert_eq!(law.on_arrival(&packet, || 0.0), Verdict::Enqueue);
        assert_eq!(law.label(&packet), Some(5e5));
        let packet = arrival(Time::from_millis(n), 1, None, 0);
        assert_eq!(law.on_arrival(&packet, || 0.0), Verdict::Enqueue);
    }
    // Told nothing, the law is an edge to those without label and core to the others; told so, an edge to all.
    for (edge, believes) in [(None, true), (Some(true), false)] {
        let mut law = Csfq::new(&Params { edge, ..Params::default() }, &view());
        law.on_arrival(&arrival(Time::ZERO, 1, None, 0), || 0.0);
        close(law.last_label().bytes_per_sec(), 10_000.0, 1e-12);
        law.on_arrival(&arrival(Time::ZERO, 2, Some(7e5), 0), || 0.0);
        close(law.last_label().bytes_per_sec(), if believes { 7e5 } else { 10_000.0 }, 1e-12);
    }
}

/// Two labelled flows at C each, seen with a full half of the buffer: alpha is C/2 and what goes on carries it.
#[test]
fn what_passes_carries_at_most_the_fair_rate() {
    let mut law = Csfq::new(&Params::default(), &view());
    let mut draw = uniform(3);
    for n in 0..20_000u64 {
        let packet = arrival(Time::from_micros(400 * n), n % 2, Some(C), 32_000);
        if law.on_arrival(&packet, &mut draw) == Verdict::Enqueue {
            let (label, fair) = (law.label(&packet).expect("a label"), law.fair_rate());
            assert!(label <= C && fair.is_none_or(|f| label <= f.bytes_per_sec()), "{label}");
        }
    }
    // F averages 2 K_alpha of 2500 packets/s, of which half pass: 500 draws, whose mean is known to 1/sqrt(500) = 4.5%.
    close(law.fair_rate().expect("congested").bytes_per_sec(), C / 2.0, 3.0 * 0.045);
}

#[test]
fn with_little_waiting_a_link_is_not_congested() {
    let fair = |queue: u64| {
        let mut law = Csfq::new(&Params::default(), &view());
        for n in 0..5_000u64 {
            law.on_arrival(&arrival(Time::from_micros(400 * n), 1, None, queue), || 0.9);
        }
        law.fair_rate()
    };
    // A quarter of 64 KB.
    assert_eq!(fair(15_000), None);
    assert!(fair(16_000).is_some());
}

#[test]
fn overflows_lower_the_fair_rate_by_a_quarter_at_most() {
    let mut law = Csfq::new(&Params { window: Some(Time::from_secs(100)), ..Params::default() }, &view());
    // Congested from the first packets on, and alpha not set again within 100 s.
    for n in 0..1_000u64 {
        law.on_arrival(&arrival(Time::from_micros(400 * n), 1, None, 32_000), || 1.0);
    }
    let before = law.fair_rate().expect("congested").bytes_per_sec();
    let mut overflow = |n: u64| {
        let packet = arrival(Time::from_millis(400) + Time::from_micros(400 * n), 1, None, 64_000);
        assert_eq!(law.on_arrival(&packet, || 1.0), Verdict::Drop);
        law.fair_rate().expect("congested").bytes_per_sec()
    };
    close(overflow(0), 0.99 * before, 1e-9);
    close(overflow(1), 0.99 * 0.99 * before, 1e-9);
    let least = (2..200).map(&mut overflow).last().expect("some");
    close(least, 0.75 * before, 1e-9);
}

#[test]
fn flows_are_forgotten() {
    let mut law = Csfq::new(&Params::default(), &view());
    let mut most = 0.0f64;
    for n in 0..200_000u64 {
        // A new flow each millisecond: those of the last 10 K = 1 s are 1000.
        law.on_arrival(&arrival(Time::from_millis(n), n, None, 0), || 0.5);
        law.variables(&mut |name, value| most = if name == "flows" { most.max(value) } else { most });
    }
    // At most twice as many as when they were last looked through, which was when there were 1000 or a second's.
    assert!(most <= 2002.0, "{most}");
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: &Params| Csfq::check(p).expect_err("a refusal").0;
    let default = Params::default();
    assert!(Csfq::check(&default).is_ok());
    assert_eq!(name(&Params { interval: Some(Time::ZERO), ..default }), "interval");
    assert_eq!(name(&Params { link_interval: Some(Time::MAX), ..default }), "link_interval");
    assert_eq!(name(&Params { window: Some(Time::ZERO), ..default }), "window");
    assert_eq!(name(&Params { threshold: flowstamp_laws::Ratio::new(1.1), ..default }), "threshold");
    assert_eq!(name(&Params { overflow_cut: flowstamp_laws::Ratio::new(0.6), ..default }), "overflow_cut");
}

proptest! {
    /// For any arrivals, rates are finite, the fair rate is at most the capacity, and a label never rises on its way.
    #[test]
    fn state_stays_finite(
        steps in prop::collection::vec(
            (0u64..u64::MAX / 1024, 1u32..65_535, 0u64..5, prop::option::of(0.0f64..1e300), 0u64..100_000, 0.0f64..1.0),
            1..300,
        ),
        shift in 0u32..50,
    ) {
        let mut law = Csfq::new(&Params::default(), &view());
        let mut now = Time::ZERO;
        for (gap_ps, size, flow, label, queue, draw) in steps {
            now += Time::from_ps(gap_ps >> shift);
            let packet = Arrival { size, ecn_capable: flow % 2 == 0, ..arrival(now, flow, label, queue) };
            let verdict = law.on_arrival(&packet, || draw);
            let came = law.last_label().bytes_per_sec();
            prop_assert!(came.is_finite() && came >= 0.0, "{}", came);
            if let Some(fair) = law.fair_rate() {
                prop_assert!(fair.bytes_per_sec() > 0.0 && fair.bytes_per_sec() <= C * (1.0 + 1e-12), "{}", fair);
            }
            if verdict != Verdict::Drop {
                prop_assert!(law.label(&packet).is_some_and(|label| label <= came));
            }
            law.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
        }
    }
}

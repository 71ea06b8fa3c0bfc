//! Weights by demands: max-min allocations, space saving, and where the weights of two classes settle.

use flowstamp_laws::share::demands::{Demands, HEADROOM, LARGEST, Largest, level};
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::{OTHER, OWN, Params, Weights};
use flowstamp_laws::units::{Rate, Time};
use proptest::prelude::*;

/// 12 MB/s.
const RATE: Rate = Rate::from_mbps(96.0);

#[test]
fn levels_are_those_of_max_min_fairness() {
    assert_eq!(level(&mut [1.0, 2.0, 9.0], 12.0), f64::INFINITY);
    assert_eq!(level(&mut [9.0, 1.0, 2.0], 10.0), 7.0); // 1 and 2 fit, the third gets the rest
    assert_eq!(level(&mut [8.0, 1.0, 8.0], 10.0), 4.5);
    assert_eq!(level(&mut [8.0, 8.0], 0.0), 0.0);
    assert_eq!(level(&mut [], 5.0), f64::INFINITY);
}

/// One large flow with 8 MB/s in the own class, one with 2 MB/s and short ones with 1 MB/s in the other. Demands are 8.8 and 2.2,
/// and 1 more. A link of 12.1 has room for all. On one of 10 the small demands fit, and the large flow gets the rest.
#[test]
fn allocations_are_those_of_the_equations() {
    let of = |capacity: f64| {
        let mut demands = Demands::default();
        demands.on_arrival(OWN, 1, 8_000_000);
        demands.on_arrival(OTHER, 2, 2_000_000);
        (0..1000u64).for_each(|flow| demands.on_arrival(OTHER, 100 + flow, 1000));
        demands.allocate(1.0, capacity)
    };
    // Some of the short flows have counters, and demand a tenth more.
    let near = |[own, other]: [f64; 2], expected: [f64; 2]| {
        let found = format!("{own} {other}, expected {expected:?}");
        assert!((own - expected[0]).abs() < 1.0 && (other - expected[1]).abs() < 0.01e6, "{found}");
    };
    near(of(12.1e6), [8.8e6, 3.2e6]);
    let [own, other] = of(10e6);
    assert!((own + other - 10e6).abs() < 1.0 && (other - 3.2e6).abs() < 0.01e6, "{own} {other}");
}

/// The keys of the weights by flows are refused by name.
#[test]
fn keys_of_other_weights_are_refused() {
    let usual = Params { weights: Weights::Demands, ..Params::default() };
    assert!(usual.check().is_ok());
    let other = Params { zombies: 7, ..usual };
    assert_eq!(other.check().map_err(|refused| refused.0), Err("zombies"));
    let other = Params { max_interval: Time::from_secs(1), ..usual };
    assert_eq!(other.check().map_err(|refused| refused.0), Err("max_interval"));
}

/// Three long flows in each class, and many short flows in the other. The long flows take what their class leaves them. All
/// six get the same rate at any load of the short flows, except for two effects:
/// - Short flows with a counter demand a tenth more than their 30 kB. At most 29 have one in the 0.8 s for which counts stand.
/// - A class gets whole packets in each period, so that its long flows miss one at most.
///
/// By the number of flows, the long flows of the other class get more. Shares of a class's packets give its number of flows:
/// `N = 1 / sum(p^2)`, 3 in the own class and `3 / (1 - l / y)^2` in the other, which sends `y` and has short flows `l`. Equal
/// `y / N` of both classes is `2 y^2 - (1 + 2 l) y + l^2 = 0`. The long flows' ratio is then `y / (y - l)`. In the law the numbers
/// of flows are estimates from some 300 packets each, and their errors of 12% are averaged over ten periods: three
/// standard deviations of the ratio are 0.18 of it.
#[test]
fn long_flows_of_both_classes_become_equal() {
    let ratio = |weights: Weights, load: f64| {
        let mut split = Split::new(&Params { weights, ..Params::default() }, RATE);
        let (mut now, mut uniform) = (Time::ZERO, 0.0f64);
        let mut short = 1000u64;
        let mut rates = [0.0; 2];
        for _ in 0..400 {
            let bytes = RATE.bytes_per_sec() * split.interval().as_secs_f64();
            let [own, other] = split.weights().map(|weight| weight * bytes);
            rates = [own, (other - load * bytes).max(0.0)];
            // Packets of 10 kB, in turn.
            let packets = (bytes / 10_000.0) as u64;
            for n in 0..packets {
                let place = (n as f64 + 0.5) / packets as f64 * bytes;
                let (class, flow) = if place < own {
                    (OWN, n % 3)
                } else if place < own + load * bytes {
                    short += 1;
                    (OTHER, short / 3)
                } else {
                    (OTHER, 10 + n % 3)
                };
                let mut next = || {
                    uniform = (uniform + 0.618_034).fract();
                    uniform
                };
                split.on_arrival(class, flow, 10_000, &mut next);
            }
            now += split.interval();
            split.on_timer(now);
        }
        rates[1] / rates[0]
    };
    for load in [0.0, 0.125, 0.25, 0.5] {
        let equal = ratio(Weights::Demands, load);
        let (long, second) = ((1.0 - load) / 2.0, RATE.bytes_per_sec());
        let counted = if load > 0.0 { (LARGEST - 3) as f64 * 30e3 / (0.8 * second) } else { 0.0 };
        let bound = HEADROOM * counted / long + 10e3 / (long * 0.2 * second);
        assert!((equal - 1.0).abs() < bound, "load {load}: {equal}, bound {bound}");
    }
    let load = 0.25f64;
    let other = ((1.0 + 2.0 * load) + ((1.0 + 2.0 * load).powi(2) - 8.0 * load * load).sqrt()) / 4.0;
    let expected = other / (other - load);
    let counted = ratio(Weights::Flows, load);
    assert!((counted / expected - 1.0).abs() < 0.18, "{counted}, expected {expected}");
}

/// A flow that begins on a full link, from 5% to 49% of it. By demands its weight grows by `1.1 / 4 + 3 / 4 = 1.025` in each
/// update, because counts keep three quarters: `ln(0.49 / 0.05) / ln(1.025) = 92.4` updates, after some four that fill the counts.
/// By the number of flows the weight's
/// distance from a half shrinks by `2 theta`, a fifth: `ln(0.45 / 0.01) / ln(1 / 0.8) = 17.1` updates.
#[test]
fn a_new_class_grows_to_its_share() {
    let updates = |weights: Weights| {
        let params = Params { weights, ..Params::default() };
        let mut split = Split::resume(&params, RATE, 0.05, Time::ZERO);
        let mut now = Time::ZERO;
        // Before, the other flow has the whole link, and the new one a packet.
        let mut next = [1e-4, 1.0 - 1e-4];
        for update in 0..1000 {
            let bytes = RATE.bytes_per_sec() * split.interval().as_secs_f64();
            for (class, share) in [OWN, OTHER].into_iter().zip(next) {
                (0..100).for_each(|_| {
                    split.on_arrival(class, class as u64, (share * bytes / 100.0) as u32, || 0.5);
                });
            }
            now += split.interval();
            split.on_timer(now);
            next = split.weights();
            if next[OWN] >= 0.49 {
                return update;
            }
        }
        panic!("never")
    };
    let [demands, flows] = [Weights::Demands, Weights::Flows].map(updates);
    assert!((94..=100).contains(&demands) && (16..=20).contains(&flows), "{demands} {flows}");
}

/// A class whose flow needs little keeps what it needs, and the other gets the rest.
#[test]
fn a_flow_that_needs_little_leaves_the_rest() {
    let mut split = Split::new(&Params { weights: Weights::Demands, ..Params::default() }, RATE);
    let mut now = Time::ZERO;
    for _ in 0..100 {
        let bytes = RATE.bytes_per_sec() * split.interval().as_secs_f64();
        let needs = 0.2 * bytes;
        split.on_arrival(OWN, 1, needs as u32, || 0.5);
        split.on_arrival(OTHER, 2, (bytes - needs) as u32, || 0.5);
        now += split.interval();
        split.on_timer(now);
    }
    let [own, _] = split.weights();
    assert!((own - 0.22).abs() < 0.01, "{own}"); // 1.1 times the rate, and the capacity
    // A class without packets keeps 5%.
    for _ in 0..50 {
        let bytes = RATE.bytes_per_sec() * split.interval().as_secs_f64();
        split.on_arrival(OTHER, 2, bytes as u32, || 0.5);
        now += split.interval();
        split.on_timer(now);
    }
    assert!((split.weights()[0] - 0.05).abs() < 1e-9, "{:?}", split.weights());
}

proptest! {
    /// No allocation exceeds its demand, the sum is the capacity or all demands, and who gets less than its demand gets the most.
    #[test]
    fn levels_divide_the_capacity(
        demands in prop::collection::vec(0.0f64..1e9, 0..50),
        capacity in 0.0f64..1e10,
    ) {
        let level = level(&mut demands.clone(), capacity);
        let given: Vec<f64> = demands.iter().map(|demand| demand.min(level)).collect();
        let (sum, wanted) = (given.iter().sum::<f64>(), demands.iter().sum::<f64>());
        prop_assert!((sum - wanted.min(capacity)).abs() <= 1e-6 * capacity.max(1.0), "{sum} of {capacity}, {wanted} wanted");
        prop_assert!(level >= 0.0);
    }

    /// Space saving: a counter never has less than its flow, its certain part never more, and each flow with more than its part of
    /// the bytes has a counter.
    #[test]
    fn space_saving_finds_large_flows(packets in prop::collection::vec((0u64..80, 40u32..9000), 1..2000)) {
        let mut largest = Largest::default();
        let mut truth = std::collections::BTreeMap::<u64, f64>::new();
        for (flow, size) in &packets {
            largest.on_arrival(*flow, *size);
            *truth.entry(*flow).or_default() += f64::from(*size);
        }
        let total: f64 = truth.values().sum();
        prop_assert!(largest.counters().len() <= LARGEST);
        for counter in largest.counters() {
            let bytes = truth[&counter.flow];
            prop_assert!(counter.bytes >= bytes - 1e-6 && counter.bytes - counter.error <= bytes + 1e-6, "{counter:?}: {bytes}");
        }
        for (flow, bytes) in &truth {
            let found = largest.counters().iter().any(|counter| counter.flow == *flow);
            prop_assert!(found || *bytes <= total / LARGEST as f64, "{flow}: {bytes} of {total}");
        }
        let (large, rest) = largest.bytes();
        prop_assert!((large.iter().sum::<f64>() + rest - total).abs() <= 1e-6 * total);
    }

    /// Weights stay within 5% and 95% and add up to one, whatever comes.
    #[test]
    fn weights_are_bounded(
        periods in prop::collection::vec(prop::collection::vec((0usize..2, 0u64..1000, 40u32..65_000), 0..50), 1..50),
        mbps in 0.001f64..400_000.0,
    ) {
        let rate = Rate::from_mbps(mbps);
        let mut split = Split::new(&Params { weights: Weights::Demands, ..Params::default() }, rate);
        let mut now = Time::ZERO;
        for packets in periods {
            for (class, flow, size) in packets {
                split.on_arrival(class, flow, size, || 0.5);
            }
            now += split.interval();
            prop_assert_eq!(split.on_timer(now), now + Params::default().min_interval());
            let [own, other] = split.weights();
            prop_assert!((0.049..=0.951).contains(&own) && (own + other - 1.0).abs() < 1e-12, "{own} {other}");
            prop_assert!(split.own_capacity() <= rate);
        }
    }
}

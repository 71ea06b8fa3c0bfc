//! Properties of the ideal servers on every input, and a second, slower implementation of each.

use flowstamp_fluid::servers::{Discipline, Flow, ServerError, completions, rate_limited, sojourns};
use flowstamp_laws::Rate;
use proptest::prelude::*;

/// A byte a second: times and sizes are the same numbers.
const UNIT: Rate = Rate::from_bytes_per_sec(1.0);
/// Rounding allowed, relative to the run's length.
const ROUNDING: f64 = 1e-9;

/// Flows with gaps and sizes over four decades, some of them equal.
fn flows() -> impl Strategy<Value = Vec<Flow>> {
    // No round gaps: where an end and an arrival coincide, rounding decides who is served (`by_hand` has such cases).
    let gap = prop_oneof![Just(0.0), (-2.0..2.0f64).prop_map(|e| 10f64.powf(e))];
    let size = prop_oneof![Just(1.0), Just(2.0), (-2.0..2.0f64).prop_map(|e| 10f64.powf(e))];
    prop::collection::vec((gap, size), 1..60).prop_map(|list| {
        let mut now = 0.0;
        list.into_iter()
            .map(|(gap, size_bytes)| {
                now += gap;
                Flow { arrival_s: now, size_bytes }
            })
            .collect()
    })
}

/// The stretches of time, in seconds, during which any flow was there; `flows` sorted by arrival.
///
/// A gap of at most `slack_s` seconds is none: completions are rounded.
fn busy_periods(flows: &[Flow], completions_s: &[f64], slack_s: f64) -> Vec<(f64, f64)> {
    let mut periods: Vec<(f64, f64)> = Vec::new();
    for (flow, &end) in flows.iter().zip(completions_s) {
        match periods.last_mut() {
            Some(last) if flow.arrival_s <= last.1 + slack_s => last.1 = last.1.max(end),
            _ => periods.push((flow.arrival_s, end)),
        }
    }
    periods
}

/// The same disciplines from their definitions: every flow's remaining work, stepped from event to event.
fn by_definition(discipline: Discipline, flows: &[Flow]) -> Vec<f64> {
    let n = flows.len();
    let mut left: Vec<f64> = flows.iter().map(|f| f.size_bytes).collect();
    let mut done = vec![f64::NAN; n];
    let (mut now, mut arrived) = (0.0, 0);
    loop {
        while arrived < n && flows[arrived].arrival_s <= now {
            arrived += 1;
        }
        let there: Vec<usize> = (0..arrived).filter(|i| done[*i].is_nan()).collect();
        if there.is_empty() {
            if arrived == n {
                return done;
            }
            now = flows[arrived].arrival_s;
            continue;
        }
        let received = |i: &usize| flows[*i].size_bytes - left[*i];
        let served: Vec<usize> = match discipline {
            Discipline::Fcfs => vec![there[0]],
            Discipline::Ps => there.clone(),
            Discipline::Srpt => {
                let least = there.iter().min_by(|a, b| left[**a].total_cmp(&left[**b])).expect("valid");
                vec![*least]
            }
            Discipline::Fb => {
                let least = there.iter().map(received).fold(f64::INFINITY, f64::min);
                there.iter().copied().filter(|i| received(i) <= least + 1e-10).collect()
            }
        };
        let share = 1.0 / served.len() as f64;
        // To the next arrival, end, or (FB) the instant at which the next flow is caught up with.
        let mut step = served.iter().map(|i| left[*i] / share).fold(f64::INFINITY, f64::min);
        if arrived < n {
            step = step.min(flows[arrived].arrival_s - now);
        }
        if discipline == Discipline::Fb {
            let level = served.iter().map(received).fold(f64::INFINITY, f64::min);
            for i in there.iter().filter(|i| !served.contains(i)) {
                step = step.min((received(i) - level) / share);
            }
        }
        // An arrival is met exactly, or a rounded clock might never get there.
        let at_arrival = arrived < n && step >= flows[arrived].arrival_s - now;
        now = if at_arrival { flows[arrived].arrival_s } else { now + step };
        for i in served {
            left[i] -= step * share;
            if left[i] <= 1e-11 {
                done[i] = now;
            }
        }
    }
}

fn total(flows: &[Flow], done: &[f64]) -> f64 {
    sojourns(flows, done).iter().sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agree_with_their_definitions(flows in flows()) {
        for d in Discipline::ALL {
            let fast = completions(d, &flows, UNIT).expect("valid");
            let slow = by_definition(d, &flows);
            // The mean: at a tie, rounding may let the one or the other of two flows go first.
            let scale = slow.iter().copied().fold(1.0, f64::max);
            let (a, b) = (total(&flows, &fast), total(&flows, &slow));
            prop_assert!((a - b).abs() <= 1e-8 * scale * flows.len() as f64, "{d:?}: {a} {b}");
            let mut ends = (fast, slow);
            ends.0.sort_by(f64::total_cmp);
            ends.1.sort_by(f64::total_cmp);
            for (x, y) in ends.0.iter().zip(&ends.1) {
                prop_assert!((x - y).abs() <= 1e-7 * scale, "{d:?}: {x} {y}");
            }
        }
    }

    #[test]
    fn work_is_conserved(flows in flows()) {
        let work: f64 = flows.iter().map(|f| f.size_bytes).sum();
        let reference = completions(Discipline::Fcfs, &flows, UNIT).expect("valid");
        let slack = ROUNDING * reference[reference.len() - 1];
        let periods = busy_periods(&flows, &reference, slack);
        for d in Discipline::ALL {
            let done = completions(d, &flows, UNIT).expect("valid");
            let these = busy_periods(&flows, &done, slack);
            prop_assert_eq!(these.len(), periods.len(), "{:?}", d);
            for (a, b) in these.iter().zip(&periods) {
                prop_assert!((a.0 - b.0).abs() <= slack && (a.1 - b.1).abs() <= slack, "{d:?} {a:?} {b:?}");
            }
            // The server works whenever it is busy, and only then.
            let busy: f64 = these.iter().map(|p| p.1 - p.0).sum();
            prop_assert!((busy - work).abs() <= ROUNDING * work + slack * these.len() as f64);
            // No flow ends sooner than alone.
            for (f, end) in flows.iter().zip(&done) {
                prop_assert!(end - f.arrival_s >= f.size_bytes - slack, "{d:?}");
            }
        }
    }

    #[test]
    fn srpt_has_the_least_mean(flows in flows()) {
        let of = |d| total(&flows, &completions(d, &flows, UNIT).expect("valid"));
        let least = of(Discipline::Srpt);
        for d in [Discipline::Fcfs, Discipline::Ps, Discipline::Fb] {
            prop_assert!(least <= of(d) * (1.0 + ROUNDING), "{d:?}");
        }
    }

    #[test]
    fn ps_ends_in_the_order_of_virtual_finish(flows in flows()) {
        // If two flows overlap, the later one trails by the bytes that the earlier one had received when it came.
        let done = completions(Discipline::Ps, &flows, UNIT).expect("valid");
        let slack = ROUNDING * done.iter().copied().fold(1.0, f64::max);
        for (i, a) in flows.iter().enumerate() {
            for (b, end) in flows.iter().zip(&done).skip(i + 1) {
                // Came later and brings no less: ends no sooner.
                if b.size_bytes >= a.size_bytes {
                    prop_assert!(*end >= done[i] - slack);
                }
            }
        }
    }

    #[test]
    fn fb_ends_by_size_among_those_that_meet(flows in flows()) {
        // A smaller flow that is present has received no more than any larger one before it ends.
        let done = completions(Discipline::Fb, &flows, UNIT).expect("valid");
        let slack = ROUNDING * done.iter().copied().fold(1.0, f64::max);
        for (i, a) in flows.iter().enumerate() {
            for (j, b) in flows.iter().enumerate() {
                if b.size_bytes < a.size_bytes && a.arrival_s <= b.arrival_s && done[i] > b.arrival_s + slack {
                    // The larger came first and was still there: unless it had already received more than b wants, it
                    // is b that ends first; and if it had, b is served alone.
                    prop_assert!(done[j] <= done[i] + slack, "{i} {j}");
                }
            }
        }
    }

    #[test]
    fn fcfs_waits(flows in flows()) {
        let done = completions(Discipline::Fcfs, &flows, UNIT).expect("valid");
        let mut free = 0.0f64;
        for (f, end) in flows.iter().zip(&done) {
            prop_assert_eq!(*end, free.max(f.arrival_s) + f.size_bytes);
            free = *end;
        }
        prop_assert!(done.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn rate_limited_conserves_and_ends_at_fcfs(flows in flows(), rate in 0.05..50.0f64) {
        let limited = rate_limited(&flows, Rate::from_bytes_per_sec(rate), UNIT).expect("valid");
        for (f, d) in flows.iter().zip(&limited.durations_s) {
            prop_assert!(*d >= f.size_bytes / rate.min(1.0) * (1.0 - ROUNDING));
        }
        prop_assert!(limited.utilization <= 1.0 + ROUNDING && limited.utilization > 0.0);
        prop_assert!(limited.mean_queue_bytes >= 0.0);
        // The very last byte to leave: no later than FCFS of flows that have ended sending.
        let whole: f64 = flows.iter().map(|f| f.size_bytes).sum();
        let (first, last) = (flows[0].arrival_s, flows[flows.len() - 1].arrival_s);
        let longest = flows.iter().map(|f| f.size_bytes).fold(0.0, f64::max);
        let end = flows.iter().zip(&limited.durations_s).map(|(f, d)| f.arrival_s + d).fold(0.0, f64::max);
        prop_assert!(end <= last + longest / rate + whole + 1e-6 && end >= first + whole - 1e-6);
    }
}

#[test]
fn by_hand() {
    let flows: Vec<Flow> = [(0.0, 4.0), (1.0, 1.0), (2.0, 2.0), (20.0, 1.0)]
        .iter()
        .map(|&(arrival_s, size_bytes)| Flow { arrival_s, size_bytes })
        .collect();
    let of = |d| completions(d, &flows, UNIT).expect("valid");
    assert_eq!(of(Discipline::Fcfs), [4.0, 5.0, 7.0, 21.0]);
    // At 1 the second comes with 1 and the first has 3 left: the second ends at 2, then 2 goes before 3.
    assert_eq!(of(Discipline::Srpt), [7.0, 2.0, 4.0, 21.0]);
    // From 1 to 2 two share; from 2 three share: the second ends at 3.5, the third at 6.5.
    assert_eq!(of(Discipline::Ps), [7.0, 3.5, 6.5, 21.0]);
    // The second catches up with the first as it ends, at 2; the third at 3, and they share until it has 2, at 5.
    assert_eq!(of(Discipline::Fb), [7.0, 2.0, 5.0, 21.0]);
}

#[test]
fn a_million_flows() {
    // A long busy period of heavy tails, all on one server: what O(n^2) would not finish.
    let flows: Vec<Flow> = (0..1_000_000u32)
        .map(|i| {
            let u = (f64::from(i) * 0.618_033_988_749_895).fract();
            Flow { arrival_s: f64::from(i), size_bytes: 0.2 * (1.0 - u).max(1e-6).powf(-0.8) }
        })
        .collect();
    let work: f64 = flows.iter().map(|f| f.size_bytes).sum();
    for d in Discipline::ALL {
        let done = completions(d, &flows, UNIT).expect("valid");
        let busy: f64 = busy_periods(&flows, &done, 1e-6).iter().map(|p| p.1 - p.0).sum();
        assert!((busy / work - 1.0).abs() < 1e-9, "{d:?}");
    }
}

#[test]
fn refuses_what_cannot_be_served() {
    let flow = |arrival_s, size_bytes| Flow { arrival_s, size_bytes };
    let of = |flows: &[Flow], rate| completions(Discipline::Ps, flows, rate).unwrap_err();
    assert_eq!(of(&[], Rate::ZERO), ServerError::Rate);
    assert_eq!(of(&[flow(1.0, 1.0), flow(0.5, 1.0)], UNIT), ServerError::Order { index: 1 });
    for bad in [flow(-1.0, 1.0), flow(0.0, 0.0), flow(0.0, f64::INFINITY), flow(f64::NAN, 1.0)] {
        assert!(matches!(of(&[bad], UNIT), ServerError::Flow { index: 0, .. }));
    }
    assert_eq!(completions(Discipline::Fb, &[], UNIT), Ok(vec![]));
}

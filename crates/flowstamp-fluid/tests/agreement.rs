//! Formulas against exact simulations. Tolerances are four standard errors of the simulated mean, by batch means over
//! independent seeds' runs; a mean that is exact fails that once in 16000 times, and the seeds are fixed.

mod common;

use common::poisson;
use flowstamp_fluid::formulas::Mg1Queue;
use flowstamp_fluid::servers::{Discipline, completions, rate_limited, sojourns};
use flowstamp_fluid::sizes::SizeDistribution;
use flowstamp_fluid::stats::{Interval, Little, Warmup, batch_means};
use flowstamp_fluid::u_curve::{Blocking, Reading, mean_duration, mean_queue_bytes};
use flowstamp_laws::Rate;

const C: Rate = Rate::from_mbps(150.0);
const SIGMAS: f64 = 4.0;

/// Mean and standard error, from a 68.27% interval of many batches.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let Interval { mean, half_width, .. } = batch_means(values, 50, 0.682_689_5).expect("valid");
    (mean, half_width)
}

fn assert_close(what: &str, seed: u64, (mean, error): (f64, f64), formula: f64) {
    let off = (mean - formula) / error;
    assert!(
        off.abs() < SIGMAS,
        "{what}, seed {seed}: simulated {mean:.6e} +- {error:.1e}, formula {formula:.6e}, off by {off:.1} errors"
    );
    // An error so large that anything would pass is no check.
    assert!(error < 0.03 * formula, "{what}, seed {seed}: error {error:.1e} of {formula:.3e}");
}

fn check(sizes: &SizeDistribution, load: f64, disciplines: &[Discipline], seed: u64) {
    let link = Mg1Queue::new(sizes, C, load).expect("valid");
    let flows = poisson(seed, 400_000, link.flows_per_s(), sizes);
    for &d in disciplines {
        let done = completions(d, &flows, C).expect("valid");
        let times = sojourns(&flows, &done);
        let steady = Warmup::Fixed(20_000).remove(&times);
        assert_close(
            &format!("{d:?} {load} {sizes:?}"),
            seed,
            mean_and_error(steady),
            link.mean_time(d).seconds(),
        );
    }
}

#[test]
fn m_m_1() {
    let sizes = SizeDistribution::exponential(50_000.0).expect("valid");
    for (load, seed) in [(0.3, 1), (0.7, 2)] {
        check(&sizes, load, &Discipline::ALL, seed);
    }
    // PS and FCFS have one mean (section 3.3).
    let link = Mg1Queue::new(&sizes, C, 0.7).expect("valid");
    let (ps, fcfs) = (link.mean_time(Discipline::Ps), link.mean_time(Discipline::Fcfs));
    assert!((ps.seconds() / fcfs.seconds() - 1.0).abs() < 1e-12);
}

#[test]
fn other_sizes_with_a_variance() {
    check(&SizeDistribution::fixed(20_000.0).expect("valid"), 0.7, &Discipline::ALL, 3);
    check(&SizeDistribution::uniform(1000.0, 99_000.0).expect("valid"), 0.7, &Discipline::ALL, 4);
    let mixed =
        SizeDistribution::empirical(&[(500.0, 0.1), (2000.0, 0.5), (2000.0, 0.7), (1e5, 0.99), (1e6, 1.0)])
            .expect("valid");
    check(&mixed, 0.6, &Discipline::ALL, 5);
    check(&SizeDistribution::pareto(25_000.0, 3.5).expect("valid"), 0.6, &Discipline::ALL, 6);
}

#[test]
fn heavy_tails() {
    // Cut at 100 times the mean, and no FCFS: its mean's error is in the sizes' fourth moment.
    let sizes = SizeDistribution::bounded_pareto_with_mean(25_000.0, 2.5e6, 1.2).expect("valid");
    check(&sizes, 0.5, &[Discipline::Ps, Discipline::Srpt, Discipline::Fb], 7);
}

#[test]
fn ps_time_is_proportional_to_size() {
    // Eq. 4.1 by size: mean of time over size is 1/(C (1 - rho)) for every size.
    let (load, seed) = (0.6, 8);
    let sizes = SizeDistribution::pareto(25_000.0, 1.8).expect("valid");
    let link = Mg1Queue::new(&sizes, C, load).expect("valid");
    let flows = poisson(seed, 400_000, link.flows_per_s(), &sizes);
    let done = completions(Discipline::Ps, &flows, C).expect("valid");
    let times = sojourns(&flows, &done);
    for (from, to) in [(0.0, 15_000.0), (15_000.0, 50_000.0), (50_000.0, 500_000.0)] {
        let slowness: Vec<f64> = flows
            .iter()
            .zip(&times)
            .skip(20_000)
            .filter(|(f, _)| f.size_bytes >= from && f.size_bytes < to)
            .map(|(f, t)| t / f.size_bytes)
            .collect();
        let formula = 1.0 / (C.bytes_per_sec() * (1.0 - load));
        assert_close(&format!("PS from {from}"), seed, mean_and_error(&slowness), formula);
    }
}

#[test]
fn little_holds_on_every_server() {
    let sizes = SizeDistribution::exponential(50_000.0).expect("valid");
    let link = Mg1Queue::new(&sizes, C, 0.7).expect("valid");
    let seed = 9;
    let flows = poisson(seed, 100_000, link.flows_per_s(), &sizes);
    for d in Discipline::ALL {
        let done = completions(d, &flows, C).expect("valid");
        // Counted independently, by walking over arrivals and ends.
        let mut events: Vec<(f64, f64)> =
            flows.iter().map(|f| (f.arrival_s, 1.0)).chain(done.iter().map(|c| (*c, -1.0))).collect();
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (from, to) = (5.0, flows[flows.len() - 1].arrival_s);
        let (mut active, mut area, mut last) = (0.0, 0.0, 0.0f64);
        for (at, change) in events {
            area += active * (at.clamp(from, to) - last.clamp(from, to));
            active += change;
            last = at;
        }
        let spans: Vec<(f64, f64)> = flows.iter().zip(&done).map(|(f, c)| (f.arrival_s, *c)).collect();
        let little = Little::over(&spans, from, to, area / (to - from)).expect("valid");
        assert!(little.count_error() < 1e-9, "{d:?}, seed {seed}: {little:?}");
        assert!(little.law_error() < 1e-3, "{d:?}, seed {seed}: {little:?}");
    }
}

/// The mean duration and queue of section 3.3's system, over `runs` independent runs, with standard errors.
fn simulate(
    sizes: &SizeDistribution,
    flows_per_s: f64,
    rate: f64,
    runs: u64,
    flows: usize,
) -> ((f64, f64), (f64, f64)) {
    let (durations, queues): (Vec<f64>, Vec<f64>) = (0..runs)
        .map(|seed| {
            let list = poisson(seed + 1000, flows, flows_per_s, sizes);
            let run = rate_limited(&list, C * rate, C).expect("valid");
            let steady = Warmup::Fixed(flows / 10).remove(&run.durations_s);
            (steady.iter().sum::<f64>() / steady.len() as f64, run.mean_queue_bytes)
        })
        .unzip();
    let of = |v: &[f64]| {
        let i = batch_means(v, v.len(), 0.682_689_5).expect("valid");
        (i.mean, i.half_width)
    };
    (of(&durations), of(&queues))
}

#[test]
fn u_curve_is_exact_from_the_capacity_on() {
    let exponential = SizeDistribution::exponential(50_000.0).expect("valid");
    let tail = SizeDistribution::bounded_pareto_with_mean(25_000.0, 2.5e6, 1.2).expect("valid");
    for (sizes, flows_per_s) in [(&exponential, 175.0), (&tail, 400.0)] {
        let link = Mg1Queue::with_arrivals(sizes, C, flows_per_s).expect("valid");
        for rate in [1.0, 2.0, 20.0] {
            let (duration, queue) = simulate(sizes, flows_per_s, rate, 20, 50_000);
            let blocking = Blocking::for_link(&link);
            let exact = mean_duration(&link, rate, Reading::LastPacket, blocking).expect("valid").seconds();
            assert_close(&format!("duration at {rate} C"), 1000, duration, exact);
            assert_close(
                &format!("queue at {rate} C"),
                1000,
                queue,
                mean_queue_bytes(&link, rate, blocking).expect("valid"),
            );
            // The printed reading is off by more than the error allows: deviation 1.
            let printed = mean_duration(&link, rate, Reading::AsPrinted, blocking).expect("valid").seconds();
            assert!(duration.0 - printed > SIGMAS * duration.1, "{rate}: {duration:?} {printed}");
        }
    }
}

#[test]
fn u_curve_below_the_capacity() {
    // Appendix A's queue is a bound (A.6) for exponential sizes, where A.7 is exact; for the Pareto an estimate, which is
    // here within a factor of two where the queue matters. Durations then agree to 30%, most of it at R = C/5.
    let exponential = SizeDistribution::exponential(50_000.0).expect("valid");
    let pareto = SizeDistribution::bounded_pareto_with_mean(25_000.0, 2.5e7, 1.2).expect("valid");
    for (sizes, flows_per_s, within) in [(&exponential, 175.0, 0.12), (&pareto, 600.0, 0.3)] {
        let link = Mg1Queue::with_arrivals(sizes, C, flows_per_s).expect("valid");
        let blocking = Blocking::for_link(&link);
        for rate in [0.02, 0.05, 0.1, 0.2, 0.5] {
            let (duration, queue) = simulate(sizes, flows_per_s, rate, 10, 100_000);
            let model = mean_duration(&link, rate, Reading::LastPacket, blocking).expect("valid").seconds();
            let model_queue = mean_queue_bytes(&link, rate, blocking).expect("valid");
            let (lowest, highest) = (model * (1.0 - within), model * (1.0 + within));
            assert!(
                duration.0 + SIGMAS * duration.1 > lowest && duration.0 - SIGMAS * duration.1 < highest,
                "{rate}"
            );
            if blocking == Blocking::ErlangC {
                assert!(queue.0 - SIGMAS * queue.1 <= model_queue, "{rate}: {queue:?} {model_queue}");
            } else {
                assert!(queue.0 - SIGMAS * queue.1 < 2.0 * model_queue, "{rate}: {queue:?} {model_queue}");
                assert!(queue.0 + SIGMAS * queue.1 > 0.5 * model_queue, "{rate}: {queue:?} {model_queue}");
            }
        }
    }
}

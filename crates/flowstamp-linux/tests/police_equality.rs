//! Compares the kernel's police in C with the law in Rust: every function of bpf/police.h, packet by packet.
//! It runs 10^4 flows, or 10^6 with FLOWSTAMP_NIGHTLY=1. A failure prints the smallest failing case;
//! PROPTEST_RNG_SEED=N repeats a run.
//!
//! A flow is compared until a rate is within police.h's error of a limit; from there on, the two may differ.

#![expect(clippy::cast_precision_loss, reason = "bounds are of 2^-29, f64's rounding is of 2^-53")]

#[macro_use]
mod c_laws;

use c_laws::{U, config, log_uniform};
use flowstamp_laws::share::police::{self, Packet, Phase};
use flowstamp_laws::{Rate, Time};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

/// f64's own rounding, over many packets.
const F64: f64 = 1e-9;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Params {
    heavy: u64,
    retest_ns: u64,
    isolate_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    phase: u64,
    since_ns: u64,
    until_ns: u64,
    bytes: u64,
    rest_until_ns: u64,
    rate: u64,
    before: u64,
    round_ns: u64,
    named_ns: u64,
    named_before_ns: u64,
    last_rate: u64,
    last_ns: u64,
    last_bytes: u64,
    passed_ns: u64,
    probation: u64,
    credit: u64,
    test_drops: u64,
    judge_held: u64,
    marked: u64,
    allowed: u64,
    eased: u64,
    failures: u64,
    told: u64,
    told_before: u64,
    tokens_q16: u64,
    tokens_ns: u64,
    largest: u64,
    tests: u64,
    isolations: u64,
    held: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct View {
    now_ns: u64,
    bytes: u64,
    rtt_us: u64,
    told: u64,
    free: u64,
    drops: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    since_ns: u64,
    seen: u64,
    row: u64,
    all: u64,
    longest_ns: u64,
    before_ns: u64,
    until_ns: u64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_police_packet(p: &Params, f: &mut Flow, v: &View);
    safe fn fs_host_police_told(p: &Params, f: &Flow) -> u64;
    safe fn fs_host_police_change(p: &Params, f: &Flow, now: u64, bytes: u64) -> i64;
    safe fn fs_host_police_admit(p: &Params, f: &mut Flow, now: u64, bytes: u64, l: &Link) -> bool;
    safe fn fs_host_police_look(l: &mut Link, now: u64, drops: u64);
    safe fn fs_host_police_witness(p: &Params, l: &mut Link, now: u64, rtt_ns: u64);
    safe fn fs_host_police_isolated(f: &Flow) -> bool;
    safe fn fs_host_police_proven(f: &Flow) -> bool;
    safe fn fs_host_police_most_rtt_us(f: &Flow, l: &Link) -> u64;
    safe fn fs_host_police_least_flight(f: &Flow, rtt_us: u64, bytes: u64) -> u64;
    safe fn fs_host_police_test_ns(f: &Flow) -> u64;
}

/// In the order of police.h.
const PHASES: [Phase; 6] =
    [Phase::Watch, Phase::Hold, Phase::Refer, Phase::Tell, Phase::Judge, Phase::Isolate];

/// Some packets of a flow that are alike.
#[derive(Clone, Debug)]
struct Train {
    packets: u32,
    /// Share of the flow's round trip: its duration.
    rounds: f64,
    /// Share of the flow's rate.
    pace: f64,
    /// Share of the flow's round trip: the value that its sender states, if it knows one.
    names: Option<f64>,
    /// Share of the flow's rate; none with XCP.
    told: Option<f64>,
    free: bool,
    /// Packets that the link drops for each of it.
    drops: u64,
}

/// Half of them go on as a flow that does not obey would.
fn train() -> impl Strategy<Value = Train> {
    let pace = prop_oneof![Just(1.0), log_uniform(0.2, 4.0)];
    let names =
        prop_oneof![6 => Just(Some(1.0)), 1 => Just(None), 1 => log_uniform(1e-3, 1e3).prop_map(Some)];
    let told = prop_oneof![Just(None), log_uniform(0.3, 1.5).prop_map(Some)];
    let free = prop::bool::weighted(0.9);
    let drops = prop_oneof![3 => Just(0), 1 => 1u64..3];
    (1u32..24, log_uniform(0.1, 8.0), pace, names, told, free, drops).prop_map(
        |(packets, rounds, pace, names, told, free, drops)| Train {
            packets,
            rounds,
            pace,
            names,
            told,
            free,
            drops,
        },
    )
}

#[derive(Clone, Debug)]
struct Case {
    /// bytes/s
    rate: f64,
    round_us: f64,
    c: Params,
    trains: Vec<Train>,
}

fn case() -> impl Strategy<Value = Case> {
    let time_ns = || log_uniform(1e6, 1e10).prop_map(|v| v as u64);
    let parts = (
        log_uniform(1e3, 12.5e9),
        log_uniform(100.0, 4e6),
        log_uniform(0.01, 1.5),
        time_ns(),
        time_ns(),
        prop::collection::vec(train(), 1..24),
    );
    parts.prop_map(|(rate, round_us, heavy, retest_ns, isolate_ns, trains)| {
        let c = Params { heavy: (rate * heavy) as u64 + 1, retest_ns, isolate_ns };
        Case { rate, round_us, c, trains }
    })
}

/// Whether what the phase that ends at `now` is decided by is closer to its limit than the errors are.
fn is_close(c: &Flow, heavy: u64, now_ns: u64, told: u64) -> bool {
    let rate = c.bytes as f64 * 1e9 / (now_ns - c.since_ns).max(1) as f64;
    let heavy = heavy >> c.marked;
    let near = |limit: f64, more: f64| (rate - limit).abs() <= U * rate + 1.0 + more;
    let told = 1.25 * told.max(c.told).max(c.told_before) as f64;
    match PHASES[c.phase as usize] {
        Phase::Watch => near(heavy as f64, 0.0) || near(told, 1.0),
        // The larger of Hold's and this one's counts.
        Phase::Refer => {
            near(heavy as f64, 0.0) || (c.rate as f64 - heavy as f64).abs() <= U * c.rate as f64 + 1.0
        }
        Phase::Judge => {
            let (named, window) = (c.named_ns.max(c.named_before_ns) as f64 / 1e9, 3000.0);
            [(0.25, c.rate), (0.75, c.rate), (0.75, c.before), (0.75, heavy)]
                .iter()
                .any(|(limit, of)| near(limit * *of as f64, U * *of as f64 + 2.0))
                || (rate * named - window).abs() <= 2.0 * U * window + named + 1.0
        }
        _ => false,
    }
}

/// Depth of the bucket for a rate limit in bytes/s.
fn depth(c: &Flow, allowed: f64, bytes: u32) -> f64 {
    let seconds = if c.failures < 2 { 0.1 } else { 0.02 };
    (allowed * seconds).max(2.0 * c.largest.max(u64::from(bytes)) as f64)
}

/// One flow by both; `entered` counts the phases that it comes to, `refused` what isolation holds back.
fn follow(case: &Case, entered: &[Cell<u64>; 6], refused: &Cell<u64>) -> Result<(), TestCaseError> {
    let params = police::Params {
        heavy: Rate::from_bytes_per_sec(case.c.heavy as f64),
        retest: Time::from_nanos(case.c.retest_ns),
        isolate: Time::from_nanos(case.c.isolate_ns),
    };
    let (mut rust, mut c) = (police::Flow::default(), Flow::default());
    let (mut witnesses, mut trouble, mut link) =
        (police::Witnesses::default(), police::Trouble::default(), Link::default());
    let mut now_ns = 1_000_000_000;
    let mut drops = 0;
    let mut tokens_error = 0.0;
    for train in &case.trains {
        let gap_ns = (case.round_us * 1000.0 * train.rounds / f64::from(train.packets)) as u64 + 1;
        let bytes = (case.rate * train.pace * gap_ns as f64 / 1e9).clamp(1.0, 4e9) as u32;
        let rtt_us = train.names.map_or(0, |names| (case.round_us * names) as u64);
        let told = train.told.map(|told| (case.rate * told) as u64);
        for _ in 0..train.packets {
            now_ns += gap_ns;
            drops += train.drops;
            let now = Time::from_nanos(now_ns);
            let view = View {
                now_ns,
                bytes: u64::from(bytes),
                rtt_us,
                told: told.unwrap_or(0),
                free: u64::from(train.free),
                drops,
            };
            if c.until_ns != 0 && now_ns >= c.until_ns && is_close(&c, case.c.heavy, now_ns, view.told) {
                return Ok(());
            }
            let before = c.phase;
            fs_host_police_packet(&case.c, &mut c, &view);
            rust.on_packet(
                &params,
                &Packet {
                    now,
                    bytes,
                    rtt: (rtt_us > 0).then(|| Time::from_micros(rtt_us)),
                    told: told.map(|told| Rate::from_bytes_per_sec(told as f64)),
                    free: train.free,
                    drops,
                },
            );
            if c.phase != before {
                entered[c.phase as usize].set(entered[c.phase as usize].get() + 1);
            }
            let (tests, failures, isolations) = rust.outcome();
            let (since, came) = rust.running();
            prop_assert_eq!(PHASES[c.phase as usize], rust.phase());
            prop_assert_eq!(
                (c.tests, c.failures, c.isolations, c.bytes),
                (tests, u64::from(failures), isolations, came)
            );
            prop_assert_eq!(Time::from_nanos(c.since_ns), since);
            prop_assert_eq!((c.round_ns > 0).then(|| Time::from_nanos(c.round_ns)), rust.round());
            prop_assert_eq!(Time::from_nanos(fs_host_police_test_ns(&c)), rust.test_time());
            prop_assert_eq!(
                (fs_host_police_isolated(&c), fs_host_police_proven(&c), c.passed_ns),
                (rust.is_isolated(), rust.is_proven(), rust.passed().map_or(0, |rtt| rtt.as_ps() / 1000))
            );
            trouble.look(now, drops);
            fs_host_police_look(&mut link, now_ns, drops);
            if let (true, Some(rtt)) = (c.since_ns == now_ns && rust.is_proven(), rust.passed()) {
                witnesses.passed(&params, now, rtt);
                fs_host_police_witness(&case.c, &mut link, now_ns, c.passed_ns);
            }
            let belief = rust.belief(&witnesses);
            let most_us = belief.most_rtt.map_or(u64::MAX, |rtt| (rtt.as_ps() / 1_000_000).max(1));
            prop_assert_eq!(fs_host_police_most_rtt_us(&c, &link), most_us);
            let flight = fs_host_police_least_flight(&c, rtt_us, u64::from(bytes)) as f64;
            let exact = belief.least_rate * rtt_us as f64 / 1e6 / f64::from(bytes);
            let rate_error = (U * 1.25 * belief.least_rate + 1.0) * rtt_us as f64 / 1e6 / f64::from(bytes);
            close!(flight, exact, 2.0 * U * exact + rate_error + 1.0, "packets in flight");

            let half = depth(&c, case.c.heavy as f64, 0) / 2.0;
            if c.marked > 0 && (c.tokens_q16 as f64 / 65536.0 - half).abs() <= tokens_error + 1.0 {
                return Ok(());
            }
            let reference = rust.reference().bytes_per_sec();
            let rate_error = U * reference + 1.0;
            close!(c.rate as f64, reference, rate_error, "r_0");
            match (fs_host_police_told(&case.c, &c), rust.feedback_bounds(&params, now, bytes).rate) {
                (u64::MAX, None) => {}
                (got, exact) => {
                    let exact = exact.map_or(f64::NAN, Rate::bytes_per_sec);
                    close!(got as f64, exact, rate_error / 2.0 + 1.0, "told");
                }
            }
            let got = fs_host_police_change(&case.c, &c, now_ns, u64::from(bytes));
            match rust.feedback_bounds(&params, now, bytes).change {
                None => prop_assert_eq!(got, 0x7fff_ffff),
                Some(0.0) => prop_assert_eq!(got, 0),
                Some(exact) => {
                    let exact = exact.max(-f64::from(i32::MAX));
                    let (exact, error) = (exact.min(f64::from(i32::MAX)), U * exact.abs());
                    prop_assert!(got as f64 <= exact + error, "{got} is more than {exact}");
                    close!(got as f64, exact, error + 1.0, "change");
                }
            }
            if rust.phase() == Phase::Isolate && c.tokens_ns == now_ns {
                tokens_error = 0.0;
            }
            let isolated = rust.is_isolated();
            if isolated || (!rust.is_proven() && (trouble.lasts() || c.marked > 0)) {
                // Near what the packet needs, one may let it pass and the other not.
                let mut after = c;
                fs_host_police_admit(&case.c, &mut after, now_ns, u64::from(bytes), &link);
                let allowed = if isolated { after.allowed } else { case.c.heavy } as f64;
                let passed_s = ((now_ns - c.tokens_ns) as f64 / 1e9).min(1.0);
                tokens_error +=
                    1.0 / 65536.0 + passed_s * (2.0 * U * allowed + 4.0) + F64 * allowed * passed_s;
                let mut full = depth(&c, allowed, bytes);
                full = (c.tokens_q16 as f64 / 65536.0 + passed_s * allowed).min(full);
                if (full - f64::from(bytes)).abs() <= tokens_error + 1.0 {
                    return Ok(());
                }
            }
            let admitted = rust.admits(&params, now, bytes, &trouble);
            prop_assert_eq!(
                fs_host_police_admit(&case.c, &mut c, now_ns, u64::from(bytes), &link),
                admitted,
                "{:?}, {:?}, {} bytes",
                c,
                rust,
                bytes
            );
            prop_assert_eq!(fs_host_police_isolated(&c), rust.is_isolated());
            refused.set(refused.get() + u64::from(!admitted));
        }
    }
    Ok(())
}

#[test]
fn flows() {
    let (entered, refused) = (<[Cell<u64>; 6]>::default(), Cell::new(0));
    let mut runner = TestRunner::new(config());
    let result = runner.run(&case(), |case| follow(&case, &entered, &refused));
    result.unwrap_or_else(|failure| panic!("{failure}"));
    let entered = entered.map(|count| count.get());
    println!("phases entered: {entered:?}; packets held back: {}", refused.get());
    // All of it has been compared, not only the quiet phases.
    assert!(entered.iter().all(|count| *count > u64::from(config().cases) / 100), "{entered:?}");
    assert!(refused.get() > u64::from(config().cases) / 100);
}

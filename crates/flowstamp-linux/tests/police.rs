//! The police's judgement on flows that obey and flows that do not: the same C as the kernel's, on the host.

use proptest::prelude::*;
use std::collections::VecDeque;

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
    round_ns: u64,
    failures: u64,
    told: u64,
    told_before: u64,
    tokens: u64,
    tokens_ns: u64,
    tests: u64,
    isolations: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct View {
    now_ns: u64,
    bytes: u64,
    rtt_us: u64,
    told: u64,
    free: u64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_police_packet(p: &Params, f: &mut Flow, v: &View);
    safe fn fs_host_police_told(f: &Flow) -> u64;
    safe fn fs_host_police_change(f: &Flow, now: u64, bytes: u64) -> i64;
    safe fn fs_host_police_admit(f: &mut Flow, now: u64, bytes: u64) -> bool;
}

const PARAMS: Params = Params { heavy: 12_500, retest_ns: 1_000_000_000, isolate_ns: 5_000_000_000 };
const PACKET: u64 = 1500;
const ISOLATED: u64 = 5;

/// How a flow answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    /// To RCP's rates.
    ObeysRates,
    /// To XCP's changes.
    ObeysChanges,
    Ignores,
}

/// A flow in a path of `round_ns` whose router offers `offer` bytes/s, for `rounds` round trips of at least 10 ms.
/// A `suspect` is tested even if it sends no more than it is told.
/// `held` packets leave at once, as a stack with segmentation offload and held-back acks lets them.
fn live(habit: Habit, suspect: bool, offer: f64, round_ns: u64, held: u64, rounds: u64) -> Flow {
    let mut flow = Flow::default();
    let mut rate = offer;
    let mut now = 1_000_000_000u64;
    let end = now + rounds * round_ns.max(10_000_000);
    // What was stamped, and when it is back at the sender.
    let mut answers: VecDeque<(u64, f64)> = VecDeque::new();
    while now < end && flow.isolations == 0 {
        while answers.front().is_some_and(|(at, _)| *at <= now) {
            let (_, answer) = answers.pop_front().expect("there is one");
            match habit {
                Habit::ObeysRates => rate = answer,
                Habit::ObeysChanges => {
                    rate = (rate + answer).clamp(PACKET as f64 * 1e9 / round_ns as f64, offer)
                }
                Habit::Ignores => {}
            }
        }
        for _ in 0..held {
            let view = View {
                now_ns: now,
                bytes: PACKET,
                rtt_us: round_ns / 1000,
                told: if suspect { 0 } else { offer as u64 },
                free: 1,
            };
            fs_host_police_packet(&PARAMS, &mut flow, &view);
            let told = match habit {
                Habit::ObeysChanges => {
                    // The router gives back a tenth of the offer in a round trip.
                    let given = offer / 10.0 / (rate * round_ns as f64 / 1e9 / PACKET as f64).max(1.0);
                    given.min(fs_host_police_change(&flow, now, PACKET) as f64)
                }
                _ => offer.min(fs_host_police_told(&flow) as f64),
            };
            answers.push_back((now + round_ns, told));
        }
        now += ((held * PACKET) as f64 / rate * 1e9) as u64 + 1;
    }
    flow
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_obeys_is_never_isolated(
        changes in any::<bool>(),
        window in 40.0f64..400.0,
        round_us in 100u64..500_000,
        held in 1u64..5,
    ) {
        let round_ns = round_us * 1000;
        // A window of packets in a round trip, of 10 ms at least: shorter ones are judged over that.
        let offer = window * PACKET as f64 / (round_ns.max(10_000_000) as f64 / 1e9);
        let habit = if changes { Habit::ObeysChanges } else { Habit::ObeysRates };
        let flow = live(habit, true, offer, round_ns, held, 400);
        prop_assert_eq!((flow.isolations, flow.failures), (0, 0), "{:?}", flow);
        prop_assert!(flow.tests > 0, "{:?}", flow);
    }

    #[test]
    fn who_ignores_is_isolated(window in 40.0f64..400.0, round_us in 100u64..500_000, held in 1u64..5) {
        let round_ns = round_us * 1000;
        let offer = window * PACKET as f64 / (round_ns.max(10_000_000) as f64 / 1e9);
        let flow = live(Habit::Ignores, true, offer, round_ns, held, 80);
        prop_assert_eq!((flow.phase, flow.isolations, flow.tests), (ISOLATED, 1, 2), "{:?}", flow);
        // Two tests of six round trips each, the grace time three times in both, and a packet's time at each change.
        let took = flow.since_ns - 1_000_000_000;
        prop_assert!(took < 13 * flow.round_ns + 6 * 50_000_000, "{} ns, {:?}", took, flow);
    }

    #[test]
    fn who_sends_what_it_is_told_is_not_even_tested(window in 40.0f64..400.0, round_us in 100u64..500_000) {
        let round_ns = round_us * 1000;
        let offer = window * PACKET as f64 / (round_ns.max(10_000_000) as f64 / 1e9);
        prop_assert_eq!(live(Habit::Ignores, false, offer, round_ns, 4, 80).tests, 0);
    }

    #[test]
    fn an_isolated_flow_has_half_its_rate(rate in 100_000u64..1_000_000_000, share in 0.6f64..3.0) {
        let mut flow = Flow { phase: ISOLATED, rate, ..Flow::default() };
        let step = (PACKET as f64 / (rate as f64 * share) * 1e9) as u64 + 1;
        let (mut now, mut sent) = (0, 0);
        // Long enough for the bucket's depth not to count.
        for _ in 0..20_000 {
            now += step;
            sent += if fs_host_police_admit(&mut flow, now, PACKET) { PACKET } else { 0 };
        }
        let allowed = rate as f64 / 2.0 * now as f64 / 1e9;
        prop_assert!(sent as f64 <= allowed + PACKET as f64);
        prop_assert!(sent as f64 >= allowed * 0.99 - 2.0 * PACKET as f64, "{} of {}", sent, allowed);
    }
}

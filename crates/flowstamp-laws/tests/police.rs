//! The police's judgement on flows that obey and flows that do not (Katabi 2002, section 7).

use flowstamp_laws::share::police::{Flow, Packet, Params, Phase, Trouble, Witnesses};
use flowstamp_laws::units::{Rate, Time};
use proptest::prelude::*;
use std::collections::VecDeque;

const PARAMS: Params =
    Params { heavy: Rate::from_bps(100_000.0), retest: Time::from_secs(1), isolate: Time::from_secs(5) };
const PACKET: u32 = 1500;
const START: Time = Time::from_secs(1);
const MIN_ROUND: Time = Time::from_millis(10);
const GRACE: Time = Time::from_millis(50);
const MEASURE: Time = Time::from_millis(200);

/// How a flow answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    /// To RCP's rates.
    ObeysRates,
    /// To XCP's changes.
    ObeysChanges,
    Ignores,
    /// Obeys rates at first, until it has passed a test.
    ObeysOnce,
}

/// Runs a flow on a path of round trip `round` whose router offers `offer` bytes/s. The run lasts `rounds` round trips of at least 10 ms and
/// the time over which rates are measured, or until the flow is isolated. Returns the flow and the time when the last phase began.
///
/// A `suspect` is tested even if it sends no more than it is told. `held` packets leave at once, as a stack with
/// segmentation offload and held-back acks lets them.
fn live(habit: Habit, suspect: bool, offer: f64, round: Time, held: u32, rounds: u64) -> (Flow, Time) {
    live_naming(habit, suspect, offer, round, held, rounds, &[Some(round)], 0)
}

/// The same, with what its packets name, one after the other and over again. One packet of `lose` is dropped, by chance; who obeys then halves
/// its rate, once in a round trip.
#[expect(clippy::too_many_arguments, reason = "a path and a habit")]
fn live_naming(
    habit: Habit,
    suspect: bool,
    offer: f64,
    round: Time,
    held: u32,
    rounds: u64,
    names: &[Option<Time>],
    lose: u64,
) -> (Flow, Time) {
    let mut random = 88_172_645_463_325_252u64 ^ round.as_ps();
    let (mut drops, mut halved) = (0, Time::ZERO);
    let mut names = names.iter().cycle();
    let mut flow = Flow::default();
    let mut rate = offer;
    // One packet in a round trip, or the offer where that is less.
    let least = (f64::from(PACKET) / round.as_secs_f64()).min(offer);
    let mut now = START;
    let end = now + round.max(MIN_ROUND) * rounds + MEASURE * 10;
    // The stamp, and the time when it is back at the sender.
    let mut answers: VecDeque<(Time, f64)> = VecDeque::new();
    while now < end && flow.phase() != Phase::Isolate {
        while answers.front().is_some_and(|(at, _)| *at <= now) {
            let (_, answer) = answers.pop_front().expect("there is one");
            match habit {
                Habit::ObeysRates => rate = answer,
                Habit::ObeysChanges => {
                    rate = (rate + answer).clamp(least, offer);
                }
                Habit::ObeysOnce if flow.outcome().0 < 2 => rate = answer,
                Habit::ObeysOnce => rate = offer,
                Habit::Ignores => {}
            }
        }
        for _ in 0..held {
            let told = (!suspect).then(|| Rate::from_bytes_per_sec(offer));
            let rtt = *names.next().expect("a flow names something or nothing");
            flow.on_packet(&PARAMS, &Packet { now, bytes: PACKET, rtt, told, free: true, drops });
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if lose > 0 && random.is_multiple_of(lose) {
                drops += 1;
                if habit != Habit::Ignores && now >= halved + round {
                    rate = (rate / 2.0).max(least);
                    halved = now;
                }
                continue;
            }
            let told = match habit {
                Habit::ObeysChanges => {
                    // The router gives back a tenth of the offer in a round trip.
                    let packets = (rate * round.as_secs_f64() / f64::from(PACKET)).max(1.0);
                    (offer / 10.0 / packets).min(flow.most_change(now, PACKET).unwrap_or(f64::INFINITY))
                }
                _ => flow.most_told().map_or(offer, |most| most.bytes_per_sec().min(offer)),
            };
            answers.push_back((now + round, told));
        }
        now += Time::from_secs_f64(f64::from(held * PACKET) / rate);
    }
    let since = flow.running().0;
    (flow, since)
}

/// Paths, and offers of so many packets in a round trip, of 10 ms at least: shorter ones are judged over that.
fn path() -> impl Strategy<Value = (Time, f64)> {
    path_of(1000..500_000)
}

/// The same for round trips in a range, in us.
fn path_of(rounds_us: std::ops::Range<u64>) -> impl Strategy<Value = (Time, f64)> {
    (40.0f64..400.0, rounds_us).prop_map(|(window, round_us)| {
        let round = Time::from_micros(round_us);
        (round, window * f64::from(PACKET) / round.max(MIN_ROUND).as_secs_f64())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_obeys_is_never_isolated(
        changes in any::<bool>(), (round, offer) in prop_oneof![path(), path_of(100..10_000)], held in 1u32..5,
    ) {
        let habit = if changes { Habit::ObeysChanges } else { Habit::ObeysRates };
        let (flow, _) = live(habit, true, offer, round, held, 400);
        let (tests, failures, isolations) = flow.outcome();
        prop_assert_eq!((failures, isolations), (0, 0), "{:?}", flow);
        prop_assert!(tests > 0, "{:?}", flow);
    }

    /// Its own losses, from one packet in ten to one in a thousand, do not make it look like one that does not obey.
    #[test]
    fn who_obeys_and_loses_packets_is_never_isolated(
        changes in any::<bool>(), (round, offer) in prop_oneof![path(), path_of(100..10_000)], held in 1u32..5,
        lose in prop_oneof![10u64..1000, 10u64..100],
    ) {
        let habit = if changes { Habit::ObeysChanges } else { Habit::ObeysRates };
        let (flow, _) = live_naming(habit, true, offer, round, held, 400, &[Some(round)], lose);
        prop_assert_eq!(flow.outcome().2, 0, "{:?}", flow);
    }

    #[test]
    fn who_ignores_is_isolated((round, offer) in path(), held in 1u32..5) {
        let (flow, since) = live(Habit::Ignores, true, offer, round, held, 80);
        prop_assert_eq!(flow.phase(), Phase::Isolate);
        prop_assert_eq!(flow.outcome(), (2, 2, 1), "{:?}", flow);
        // A watch, two tests of six round trips each, the grace time three times in both, and a packet's time at each change. Rates are taken
        // over 200 ms at least.
        let round = flow.round().unwrap();
        let most = round * 9 + round.max(MEASURE) * 4 + GRACE * 6;
        prop_assert!(since - START < most, "{} after {:?}", since - START, flow);
    }

    /// No name that a flow gives its round trip puts it out of the police's sight.
    #[test]
    fn who_ignores_is_isolated_in_30_s_whatever_it_names(
        names in prop::collection::vec(prop::option::of(prop_oneof![Just(0), 0u64..100_000, 0u64..100_000_000]), 1..6),
        held in 1u32..5,
    ) {
        let names: Vec<_> = names.into_iter().map(|us| us.map(Time::from_micros)).collect();
        let offer = 5.0 * PARAMS.heavy.bytes_per_sec();
        let (flow, since) = live_naming(Habit::Ignores, true, offer, Time::from_secs(1), held, 40, &names, 0);
        // A window below two packets in the longest stated round trip cannot be halved. Such a flow is limited to `heavy`.
        let longest = names.iter().flatten().max().copied().unwrap_or_default();
        if (Time::from_nanos(1)..Time::from_secs_f64(2.0 * f64::from(PACKET) / offer)).contains(&longest) {
            prop_assert_eq!(flow.feedback_bounds(&PARAMS, since, PACKET).rate, Some(PARAMS.heavy), "{:?}", flow);
        } else {
            prop_assert_eq!(flow.phase(), Phase::Isolate, "{:?}", flow);
            prop_assert!(since - START <= Time::from_secs(30), "{} for {:?}", since - START, names);
        }
    }

    /// A stranger's packets that name other round trips in its name, up to a quarter of all, isolate nobody who obeys, nor do they if they
    /// are all that names any.
    #[test]
    fn who_obeys_is_never_isolated_whatever_strangers_name(
        changes in any::<bool>(), (round, offer) in path(), tells in any::<bool>(),
        forged in prop::collection::vec(0u64..100_000_000, 1..4),
    ) {
        let habit = if changes { Habit::ObeysChanges } else { Habit::ObeysRates };
        let forged = forged.into_iter().map(|us| Some(Time::from_micros(us)));
        let names: Vec<_> = if tells {
            forged.flat_map(|name| [Some(round), Some(round), Some(round), name]).collect()
        } else {
            vec![None]
        };
        // Long enough for ten watches of the longest kind.
        let rounds = 400 + (Time::from_secs(20).as_ps() / round.as_ps()).min(4000);
        let (flow, _) = live_naming(habit, true, offer, round, 2, rounds, &names, 0);
        prop_assert_eq!((flow.outcome().1, flow.outcome().2), (0, 0), "{:?}", flow);
    }

    /// To have passed a test is no licence: the next one comes.
    #[test]
    fn who_stops_obeying_is_isolated((round, offer) in path(), held in 1u32..5) {
        // It ignores the feedback of the second test; there is rest of 1 s before it.
        let rounds = 80 + (PARAMS.retest.as_ps() / round.max(MIN_ROUND).as_ps());
        let (flow, since) = live(Habit::ObeysOnce, true, offer, round, held, rounds);
        prop_assert_eq!(flow.phase(), Phase::Isolate);
        prop_assert_eq!(flow.outcome(), (3, 2, 1), "{:?}", flow);
        prop_assert!(since - START > PARAMS.retest);
    }

    #[test]
    fn who_sends_what_it_is_told_is_not_even_tested((round, offer) in path()) {
        prop_assert_eq!(live(Habit::Ignores, false, offer, round, 4, 80).0.outcome().0, 0);
    }

    /// The caller's leave is asked for once, when a test begins, and a test ends within the time that it is given.
    #[test]
    fn one_flow_at_a_time((round, offer) in path(), held in 1u32..5) {
        let gap = Time::from_secs_f64(f64::from(held * PACKET) / offer);
        let mut flows = [Flow::default(), Flow::default(), Flow::default()];
        let (mut now, mut busy_until, mut tests) = (START, Time::ZERO, 0);
        for _ in 0..(round.max(MIN_ROUND) * 200 + MEASURE * 20).as_ps() / gap.as_ps() {
            for flow in &mut flows {
                let free = now >= busy_until || flow.phase() != Phase::Watch;
                let before = flow.phase();
                for _ in 0..held {
                    flow.on_packet(&PARAMS, &Packet { now, bytes: PACKET, rtt: Some(round), told: None, free, drops: 0 });
                }
                if before == Phase::Watch && flow.phase() == Phase::Hold {
                    prop_assert!(now >= busy_until);
                    busy_until = now + flow.test_time();
                    tests += 1;
                }
            }
            let testing = |f: &&Flow| !matches!(f.phase(), Phase::Watch | Phase::Isolate);
            prop_assert!(flows.iter().filter(testing).count() <= 1, "{:?}", flows);
            now += gap;
        }
        prop_assert!(tests >= 3, "{}", tests);
    }

    /// The test feedback of XCP adds up to half of the rate, that of RCP is half of it.
    #[test]
    fn a_test_tells_to_halve((round, offer) in path()) {
        let mut flow = Flow::default();
        let gap = Time::from_secs_f64(f64::from(PACKET) / offer);
        let (mut now, mut sum) = (START, 0.0);
        while flow.phase() != Phase::Judge {
            flow.on_packet(&PARAMS, &Packet { now, bytes: PACKET, rtt: Some(round), told: None, free: true, drops: 0 });
            let change = flow.most_change(now, PACKET);
            match flow.phase() {
                Phase::Watch => prop_assert_eq!(change, None),
                Phase::Tell => sum += change.unwrap(),
                _ => prop_assert_eq!(change, Some(0.0)),
            }
            prop_assert_eq!(flow.most_told().is_some(), matches!(flow.phase(), Phase::Tell | Phase::Judge));
            now += gap;
        }
        let reference = flow.reference().bytes_per_sec();
        let told = flow.most_told().unwrap().bytes_per_sec();
        // A packet's share may be in the round trip or not.
        let slack = f64::from(PACKET) / round.max(MIN_ROUND).as_secs_f64();
        prop_assert!((told - reference / 2.0).abs() < 1e-6 && (sum + reference / 2.0).abs() <= slack, "{sum} of {reference}");
    }

    /// Whichever round trip a flow states, and however it sends, it gets individual feedback only in a test.
    #[test]
    fn any_flow(
        packets in prop::collection::vec((0u64..3_000_000_000, 1u32..65536, prop::option::of(0u64..200_000_000), prop::option::of(0.0..1e9), any::<bool>()), 1..200),
    ) {
        let mut flow = Flow::default();
        let mut now = START;
        for (gap_ns, bytes, rtt_us, told, free) in packets {
            now += Time::from_nanos(gap_ns);
            let rtt = rtt_us.map(Time::from_micros);
            let before = flow.clone();
            flow.on_packet(&PARAMS, &Packet { now, bytes, rtt, told: told.map(Rate::from_bytes_per_sec), free, drops: 0 });
            if let Some(round) = flow.round() {
                prop_assert!((MIN_ROUND..=Time::from_secs(2)).contains(&round));
            }
            if flow.phase() == Phase::Hold && before.phase() == Phase::Watch {
                prop_assert!(free);
            }
            let (tests, failures, isolations) = flow.outcome();
            prop_assert!(failures <= 2 && (isolations == 0 || isolations < tests), "{flow:?}");
            prop_assert!(flow.most_change(now, bytes).is_none_or(|c| c <= 0.0));
            prop_assert!(flow.phase() != Phase::Isolate || failures == 2);
            if tests > before.outcome().0 {
                // A marked flow is tested from half of `heavy` on. An unclear verdict leaves at least 3/4 of that as r_0,
                // and a failure after it more than 3/4 of this r_0.
                prop_assert!(flow.reference().bps() >= 0.75 * 0.75 / 2.0 * PARAMS.heavy.bps());
            }
        }
    }

    #[test]
    fn an_isolated_flow_has_half_its_rate(bytes_per_s in 100_000.0f64..1e9, share in 0.6f64..3.0) {
        let params = Params { heavy: Rate::from_bytes_per_sec(bytes_per_s / 4.0), ..PARAMS };
        let mut flow = Flow::default();
        let mut now = START;
        let gap = Time::from_secs_f64(f64::from(PACKET) / bytes_per_s);
        let rtt = Some(Time::from_millis(200));
        while flow.phase() != Phase::Isolate {
            flow.on_packet(&params, &Packet { now, bytes: PACKET, rtt, told: None, free: true, drops: 0 });
            now += gap;
        }
        let begun = flow.running().0;
        let gap = Time::from_secs_f64(f64::from(PACKET) / (bytes_per_s * share));
        let mut sent = 0.0;
        // Long enough for the bucket's depth not to count.
        for _ in 0..20_000 {
            now += gap;
            sent += if flow.admits(&params, now, PACKET, &Trouble::default()) { f64::from(PACKET) } else { 0.0 };
        }
        let allowed = flow.reference().bytes_per_sec() / 2.0 * (now - begun).as_secs_f64();
        prop_assert!(sent <= allowed + f64::from(PACKET));
        prop_assert!(sent >= allowed * 0.99 - 2.0 * f64::from(PACKET), "{} of {}", sent, allowed);
    }
}

#[test]
fn isolation_ends() {
    let mut flow = Flow::default();
    let mut now = START;
    let mut phases = vec![];
    while now < Time::from_secs(10) {
        let rtt = Some(Time::from_millis(20));
        flow.on_packet(&PARAMS, &Packet { now, bytes: PACKET, rtt, told: None, free: true, drops: 0 });
        if phases.last() != Some(&flow.phase()) {
            phases.push(flow.phase());
        }
        now += Time::from_millis(1);
    }
    use Phase::{Hold, Isolate, Judge, Refer, Tell, Watch};
    // A failure is told again at once; on probation one is enough.
    let (test, again) = ([Watch, Hold, Refer, Tell, Judge], [Tell, Judge, Isolate]);
    assert_eq!(phases, [&test[..], &again, &test, &[Isolate]].concat());
}

/// A flow at 1 MB/s that names 100 ms, from `now` until `done`; its link has dropped `drops`.
fn deaf(flow: &mut Flow, now: &mut Time, drops: u64, mut done: impl FnMut(&Flow, Time) -> bool) {
    while !done(flow, *now) {
        let rtt = Some(Time::from_millis(100));
        flow.on_packet(&PARAMS, &Packet { now: *now, bytes: PACKET, rtt, told: None, free: true, drops });
        *now += Time::from_micros(1500);
    }
}

/// The bytes that an isolated flow sends in a second equal its bucket's rate, bytes/s, whether or not the link dropped
/// more.
fn allowance(
    params: &Params,
    flow: &mut Flow,
    now: &mut Time,
    trouble: &mut Trouble,
    drops: &mut u64,
    more: bool,
) -> f64 {
    let mut sent = 0.0;
    *drops += u64::from(more);
    for _ in 0..10_000 {
        *now += Time::from_micros(100);
        trouble.look(*now, *drops);
        sent += if flow.admits(params, *now, PACKET, trouble) { f64::from(PACKET) } else { 0.0 };
    }
    sent
}

/// Half of r_0, and half again after each second in which the link dropped packets, but an eighth of `heavy` at least (deviation 8).
#[test]
fn isolation_falls_in_steps_while_the_link_drops() {
    let params = Params { heavy: Rate::from_bytes_per_sec(4e6), isolate: Time::from_secs(100), ..PARAMS };
    let (mut flow, mut now) = (Flow::default(), START);
    while flow.phase() != Phase::Isolate {
        let rtt = Some(Time::from_millis(100));
        flow.on_packet(&params, &Packet { now, bytes: PACKET, rtt, told: None, free: true, drops: 0 });
        now += Time::from_micros(150);
    }
    let (mut trouble, mut drops) = (Trouble::default(), 0);
    trouble.look(now, 0);
    // The bucket is filled and empty before anything is measured.
    allowance(&params, &mut flow, &mut now, &mut trouble, &mut drops, false);
    let first = allowance(&params, &mut flow, &mut now, &mut trouble, &mut drops, false);
    assert!((first - 5e6).abs() < 0.02 * 5e6, "{first}");
    let steps: Vec<f64> =
        (0..6).map(|_| allowance(&params, &mut flow, &mut now, &mut trouble, &mut drops, true)).collect();
    let least = params.heavy.bytes_per_sec() / 8.0;
    for (i, sent) in steps.iter().enumerate().skip(1) {
        let wanted = (5e6 / f64::from(1u32 << i)).max(least);
        assert!(*sent <= 2.0 * wanted + 3e5, "second {i}: {sent}, {wanted}");
    }
    let last = allowance(&params, &mut flow, &mut now, &mut trouble, &mut drops, false);
    assert!((last - least).abs() < 0.02 * least, "{last}, {least}");
}

/// On a link that drops packets all the time, a flow that is not proven has `heavy`; a proven one is free (deviation 10).
#[test]
fn trouble_holds_who_is_not_proven() {
    let mut trouble = Trouble::default();
    for second in 0..4 {
        trouble.look(Time::from_secs(1 + second), 10 * second);
    }
    assert!(trouble.lasts());
    let proven = live(Habit::ObeysRates, true, 1e6, Time::from_millis(20), 1, 60).0;
    assert!(proven.is_proven());
    for (mut flow, free) in [(proven, true), (Flow::default(), false)] {
        let mut now = Time::from_secs(9);
        let mut sent = 0.0;
        for _ in 0..20_000 {
            now += Time::from_millis(1);
            let within = flow.admits(&PARAMS, now, PACKET, &trouble);
            sent += if within { f64::from(PACKET) } else { 0.0 };
        }
        assert_eq!(flow.is_isolated(), !free);
        let most = if free { 1.5e6 } else { PARAMS.heavy.bytes_per_sec() } * 20.0;
        let bucket = 2.0 * 65536.0;
        assert!(sent <= most + bucket && sent > 0.9 * most - bucket, "{sent} of {most}");
    }
}

/// A flow that falls silent during its test has not obeyed: less than a quarter is no pass (deviation 7).
#[test]
fn silence_is_no_obedience() {
    let (mut flow, mut now) = (Flow::default(), START);
    deaf(&mut flow, &mut now, 0, |flow, _| flow.phase() == Phase::Judge);
    now += Time::from_secs(1);
    deaf(&mut flow, &mut now, 0, |flow, _| flow.phase() == Phase::Watch);
    assert!(!flow.is_proven() && flow.passed().is_none(), "{flow:?}");
    // Nor does it count against it.
    assert_eq!(flow.outcome(), (1, 0, 0));
}

/// RTTs are believed up to four times the longest that a proven flow has named, and windows down to 0.8 of the rate that was measured.
#[test]
fn beliefs_are_bounded_by_what_was_seen() {
    let mut witnesses = Witnesses::default();
    let (mut flow, mut now) = (Flow::default(), START);
    deaf(&mut flow, &mut now, 0, |_, now| now > Time::from_secs(2));
    assert_eq!(flow.belief(&witnesses).most_rtt, None);
    witnesses.passed(&PARAMS, now, Time::from_millis(50));
    let belief = flow.belief(&witnesses);
    assert_eq!(belief.most_rtt, Some(Time::from_millis(200)));
    assert!((belief.least_rate - 8e5).abs() < 2e4, "{belief:?}");
    // One of the last retest time is remembered, one of long ago is not.
    witnesses.passed(&PARAMS, now + Time::from_secs(3), Time::from_millis(10));
    assert_eq!(witnesses.longest(), Some(Time::from_millis(50)));
    witnesses.passed(&PARAMS, now + Time::from_secs(9), Time::from_millis(20));
    assert_eq!(witnesses.longest(), Some(Time::from_millis(20)));
}

#[test]
fn parameters_are_checked() {
    assert_eq!(PARAMS.check(), Ok(()));
    for (wrong, key) in [
        (Params { heavy: Rate::ZERO, ..PARAMS }, "heavy"),
        (Params { heavy: Rate::from_bps(f64::NAN), ..PARAMS }, "heavy"),
        (Params { isolate: Time::ZERO, ..PARAMS }, "isolate"),
    ] {
        assert_eq!(wrong.check().map_err(|(name, _)| name), Err(key));
    }
}

//! Properties of any cell under any load.

use super::{Run, us};
use flowstamp_fluid::bianchi::{Backoff, Decrement, Durations};
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use flowstamp_scenario::wireless::{Dcf, Preamble, Standard};
use flowstamp_sim::medium::dcf::{Happened, Params, StationParams};
use proptest::prelude::*;

/// One thing to do: wait, then offer a frame if the station has none, or set a rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Do {
    Offer { after_us: u64, station: u32, bytes: u32, to: u32 },
    Rate { after_us: u64, station: u32, rate: usize },
}

pub(super) fn doings() -> impl Strategy<Value = Vec<Do>> {
    let after = || prop_oneof![Just(0u64), 0u64..100, 0u64..20_000];
    let offer = (after(), 0u32..6, 20u32..2300, 0u32..6)
        .prop_map(|(after_us, station, bytes, to)| Do::Offer { after_us, station, bytes, to });
    let rate = (after(), 1u32..6, 0usize..4).prop_map(|(after_us, station, rate)| Do::Rate {
        after_us,
        station,
        rate,
    });
    prop::collection::vec(prop_oneof![9 => offer, 1 => rate], 1..200)
}

prop_compose! {
    pub(super) fn params()(
        standard in prop::sample::select(vec![Standard::B, Standard::G, Standard::BNs2, Standard::GNs2]),
        short in any::<bool>(),
        rts_threshold in prop_oneof![Just(2347u64), 0u64..2000],
        cw in 1u32..6,
        limits in (1u32..8, 1u32..8),
        scale in prop::sample::select(vec![1.0, 2.0, 20.0]),
        scale_plcp in any::<bool>(),
        control_kbps in prop::option::weighted(0.3, prop::sample::select(vec![40.0, 1000.0, 11_000.0])),
        ack_timeout_us in prop::option::weighted(0.3, prop::sample::select(vec![0u64, 222, 5000])),
        eifs_us in prop::option::weighted(0.3, prop::sample::select(vec![0u64, 342, 5000])),
    ) -> Params {
        Dcf {
            standard,
            preamble: Some(if short { Preamble::Short } else { Preamble::Long }),
            rts_threshold: Some(Bytes::new(rts_threshold)),
            cw_min: Some((1 << cw) - 1),
            short_retry_limit: Some(limits.0),
            long_retry_limit: Some(limits.1),
            scale: Some(Ratio::new(scale)),
            scale_plcp: Some(scale_plcp),
            control_rate: control_kbps.map(|kbps| Rate::from_mbps(kbps * 1e-3)),
            ack_timeout: ack_timeout_us.map(Time::from_micros),
            eifs: eifs_us.map(Time::from_micros),
            ..Dcf::default()
        }
        .params()
    }
}

/// Events with their times, for comparison, and the checks so far.
pub(super) type Log = Vec<(Time, Happened)>;

/// An access point, which has the number 0, and five stations.
pub(super) fn run(params: &Params, error_rates: &[f64], doings: &[Do], seed: u64) -> (Run, Log) {
    run_from(params, error_rates, doings, seed, |_| {})
}

/// The same, listening.
pub(super) fn run_and_hear(params: &Params, error_rates: &[f64], doings: &[Do], seed: u64) -> (Run, Log) {
    run_from(params, error_rates, doings, seed, |run| run.cell.listen())
}

fn run_from(
    params: &Params,
    error_rates: &[f64],
    doings: &[Do],
    seed: u64,
    begin: impl Fn(&mut Run),
) -> (Run, Log) {
    let rate = |i: usize| params.rates[i % params.rates.len()];
    let station = |(i, e): (usize, &f64)| StationParams { rate: Some(rate(i)), error_rate: Ratio::new(*e) };
    let mut stations = vec![StationParams::ACCESS_POINT];
    stations.extend(error_rates.iter().enumerate().map(station));
    let mut run = Run::new(params, &stations, seed);
    begin(&mut run);
    let mut log = Log::new();
    let mut has = [None; 6];
    let mut step = |run: &mut Run, has: &mut [Option<Time>; 6]| {
        for happened in run.step() {
            if let Happened::Free { station, .. } = happened {
                assert!(has[station as usize].take().is_some(), "station {station} had no frame");
            }
            log.push((run.now, happened));
        }
    };
    for doing in doings {
        let (Do::Offer { after_us, .. } | Do::Rate { after_us, .. }) = *doing;
        let at = run.now + Time::from_micros(after_us);
        while run.cell.next().is_some_and(|next| next <= at) {
            step(&mut run, &mut has);
        }
        run.now = at;
        match *doing {
            Do::Offer { station, to, .. } if has[station as usize].is_none() && to != station => {
                has[station as usize] = Some(at);
                super::ampdu::offer_one(&mut run, doing);
            }
            Do::Offer { .. } => {}
            Do::Rate { station, rate: i, .. } => run.cell.set_rate(at, station, rate(i)),
        }
        // Future events are not in the past.
        assert!(run.cell.next().is_none_or(|next| next >= at));
        assert_eq!(run.cell.next().is_some(), has.iter().any(Option::is_some), "a station waits for ever");
    }
    while run.cell.next().is_some() {
        step(&mut run, &mut has);
    }
    assert_eq!(has, [None; 6]);
    (run, log)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn frames_are_sent_one_after_the_other_or_given_up(
        params in params(),
        error_rates in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0f64..1.0], 5),
        doings in doings(),
        seed in 0u64..1000,
    ) {
        let (run, log) = run(&params, &error_rates, &doings, seed);
        // The least that a frame can take: its PLCP and SIFS and that of its ack.
        let phy = if params.scale_plcp { params.scale.get() } else { 1.0 };
        let plcp = params.plcp.min(params.plcp_short).scale(0.999 / phy);
        let sifs = params.sifs.scale(0.999 / params.scale.get());
        let mut free_at = Time::ZERO;
        let mut waits_for_ack = None;
        for (at, happened) in &log {
            match *happened {
                Happened::Delivered { station } => {
                    prop_assert_eq!(waits_for_ack, None);
                    prop_assert!(*at >= free_at + plcp, "{} after {}", at, free_at);
                    waits_for_ack = Some(station);
                    free_at = *at;
                }
                Happened::Free { station, sent: true } => {
                    prop_assert_eq!(waits_for_ack, Some(station));
                    prop_assert!(*at >= free_at + sifs + plcp);
                    waits_for_ack = None;
                    free_at = *at;
                }
                Happened::Free { sent: false, .. } => {
                    // Several may be given up at once, but not while an exchange is under way.
                    prop_assert_eq!(waits_for_ack, None);
                    prop_assert!(*at >= free_at);
                    free_at = *at;
                }
                _ => prop_assert!(false, "{:?} in a cell of single frames", happened),
            }
        }
        let limit = u64::from(params.short_retry_limit + params.long_retry_limit);
        let (mut sent, mut errors, mut collided, mut airtime) = (0, 0, 0, Time::ZERO);
        for i in 0..6 {
            let s = run.cell.stats(i);
            prop_assert_eq!(s.offered, s.sent + s.given_up);
            prop_assert_eq!(s.attempts, s.sent + s.errors + s.collisions);
            prop_assert_eq!(s.attempts - s.retries, s.offered);
            prop_assert!(s.attempts <= s.offered * limit);
            prop_assert!(s.delay >= (sifs + plcp * 2) * s.sent);
            prop_assert!(s.delay <= run.now);
            sent += s.sent;
            errors += s.errors;
            collided += s.collisions;
            airtime += s.airtime;
        }
        let medium = run.cell.medium(run.now);
        prop_assert_eq!((medium.exchanges, medium.errors), (sent, errors));
        prop_assert!(collided >= 2 * medium.collisions);
        prop_assert_eq!(medium.busy + medium.idle, run.now);
        prop_assert!(collided > 0 || medium.busy >= airtime);
        prop_assert!(run.steps == 2 * sent + errors + medium.collisions);
    }

    #[test]
    fn the_same_gives_the_same(params in params(), doings in doings(), seed in 0u64..1000) {
        let errors = [0.0, 0.1, 0.0, 0.3, 0.0];
        prop_assert_eq!(run(&params, &errors, &doings, seed).1, run(&params, &errors, &doings, seed).1);
        // A station with nothing to send has no effect.
        let silent: Vec<_> = doings.iter().copied().filter(|d| !matches!(d, Do::Offer { station: 5, .. } | Do::Rate { .. })).collect();
        let more = [0.0, 0.1, 0.0, 0.3, 0.9];
        let to_others: Vec<_> = silent.iter().copied().filter(|d| !matches!(d, Do::Offer { to: 5, .. })).collect();
        prop_assert_eq!(run(&params, &errors, &to_others, seed).1, run(&params, &more, &to_others, seed).1);
    }

    /// With the PHY's overhead scaled too, everything is faster by the same factor, except for fractions of
    /// picoseconds.
    #[test]
    fn a_scaled_cell_is_as_much_faster(factor in prop::sample::select(vec![2.0, 5.0, 10.0, 20.0]), n in 1u32..8, seed in 0u64..100) {
        for standard in [Standard::B, Standard::G] {
            let plain = Params::of(standard);
            let scaled = Params { scale: Ratio::new(factor), scale_plcp: true, ..plain.clone() };
            let rate = plain.rates[plain.rates.len() - 1];
            let of = |params: &Params| {
                let mut run = Run::cell_of(params, n, rate, seed);
                run.saturate(n, 1300, n, |r| r.steps >= 300);
                run
            };
            let (slow, fast) = (of(&plain), of(&scaled));
            let ratio = slow.now.as_secs_f64() / fast.now.as_secs_f64();
            prop_assert!((ratio / factor - 1.0).abs() < 1e-6, "{} for {}", ratio, factor);
            let attempts = |run: &Run| (0..n).map(|i| run.cell.stats(i).attempts).collect::<Vec<_>>();
            prop_assert_eq!(attempts(&slow), attempts(&fast));
        }
    }
}

/// Table 1 of Abrantes and Ricardo 2006 says that the throughput is proportional to the factor. Taken to the letter, with the PHY's preamble
/// and header as they are, 20 times the rates give a station that sends alone 1838/458 = 4.0 times as much.
#[test]
fn table_1_to_the_letter_is_not_proportional() {
    let throughput = |n: u32, scale: f64, scale_plcp| {
        let params = Params {
            scale: Ratio::new(scale),
            scale_plcp,
            basic_rates: vec![Rate::from_mbps(1.0)],
            ..Params::b()
        };
        let mut run = Run::cell_of(&params, n, Rate::from_mbps(11.0), 1);
        run.saturate(n, 1300, n, |r| r.steps >= 40_000);
        run.cell.medium(run.now).exchanges as f64 / run.now.as_secs_f64()
    };
    let one = throughput(1, 1.0, false);
    // 192 + 49 + 0.5 + 198 us, DIFS 2.5 and half of 31 slots of 1 us.
    let letter = (1164.0 + 314.0 + 50.0 + 310.0) / (192.0 + 49.0 + 0.5 + 198.0 + 2.5 + 15.5);
    assert!((throughput(1, 20.0, false) / one / letter - 1.0).abs() < 0.01, "{letter}");
    assert!((throughput(1, 20.0, true) / one / 20.0 - 1.0).abs() < 1e-6);
    // Collisions end with EIFS, of which 304 us are at the rate of the PHY: with ten stations it is 3.4 to 3.5 times.
    let model = |slot, success, collision| {
        let durations = Durations { slot: us(slot), success: us(success), collision: us(collision) };
        let backoff = Backoff::new(31, 1023, Some(7), Decrement::Freezing);
        backoff.saturation(10, 1300, &durations).throughput.bps()
    };
    let expected = model(1.0, 442.0, 192.0 + 49.0 + 0.5 + 304.0 + 2.5) / model(20.0, 1528.0, 1528.0);
    let ten = throughput(10, 20.0, false) / throughput(10, 1.0, false);
    assert!((ten / expected - 1.0).abs() < 0.01, "{ten} for {expected}");
}

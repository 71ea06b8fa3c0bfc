//! Saturated cells against Bianchi's model, with and without freezing, and one station against the closed form.

use super::{Run, us};
use flowstamp_fluid::bianchi::{Backoff, Decrement, Durations, alone, pair};
use flowstamp_laws::units::{Bytes, Rate, Ratio};
use flowstamp_sim::medium::dcf::{Happened, Params, StationParams, Stats};

const BYTES: u32 = 1300;

/// A kind of cell, and the same in the models' numbers.
struct Kind {
    params: Params,
    rate: Rate,
    durations: Durations,
    cw_min: u32,
    exclusive: bool,
}

impl Kind {
    fn backoff(&self, decrement: Decrement) -> Backoff {
        let backoff = Backoff::new(self.cw_min, 1023, Some(7), decrement);
        if self.exclusive { backoff.exclusive() } else { backoff }
    }
}

/// Times by hand, as in `by_hand.rs`: frame and ack and DIFS; what collides and EIFS.
fn kinds() -> [Kind; 4] {
    let kind = |params: Params, mbps, slot, success, collision| Kind {
        cw_min: params.cw_min,
        exclusive: false,
        params,
        rate: Rate::from_mbps(mbps),
        durations: Durations { slot: us(slot), success: us(success), collision: us(collision) },
    };
    let data_ns2 = 192.0 + 10_672.0 / 11.0;
    [
        kind(Params::b(), 11.0, 20.0, 1164.0 + 258.0 + 50.0, 1164.0 + 364.0),
        kind(
            Params { rts_threshold: Bytes::ZERO, ..Params::b() },
            11.0,
            20.0,
            272.0 + 258.0 + 10.0 + 1164.0 + 258.0 + 50.0,
            272.0 + 364.0,
        ),
        kind(Params::g(), 54.0, 9.0, 226.0 + 44.0 + 28.0, 226.0 + 88.0),
        Kind {
            exclusive: true,
            ..kind(Params::b_ns2(), 11.0, 20.0, data_ns2 + 314.0 + 50.0, data_ns2 + 364.0 + 50.0)
        },
    ]
}

/// Results of `n` stations.
struct Measured {
    mbps: f64,
    /// Collisions per attempt.
    collisions: f64,
    /// Collisions of the medium, and these and exchanges.
    collided: f64,
    periods: f64,
    steps_per_exchange: f64,
    given_up: f64,
    /// Jain's index of what stations sent.
    fairness: f64,
}

fn measure(params: &Params, n: u32, rate: Rate, steps: u64) -> Measured {
    let mut run = Run::cell_of(params, n, rate, 1);
    run.saturate(n, BYTES, n, |r| r.steps >= steps);
    let medium = run.cell.medium(run.now);
    let stats: Vec<Stats> = (0..n).map(|i| *run.cell.stats(i)).collect();
    let sum = |of: fn(&Stats) -> u64| stats.iter().map(of).sum::<u64>() as f64;
    for s in &stats {
        // Each has one frame left, and the last may be without its ack yet.
        assert_eq!(s.offered, s.sent + s.given_up + 1);
        assert!((0..=1).contains(&(s.attempts - s.sent - s.collisions)));
        assert!(s.delay <= run.now && s.airtime <= medium.busy);
    }
    assert_eq!(medium.idle + medium.busy, run.now);
    let (sent, exchanges) = (sum(|s| s.sent), medium.exchanges as f64);
    assert_eq!(sent, exchanges);
    Measured {
        mbps: sent * f64::from(BYTES) * 8.0 / run.now.as_secs_f64() * 1e-6,
        collisions: sum(|s| s.collisions) / sum(|s| s.attempts),
        collided: medium.collisions as f64,
        periods: exchanges + medium.collisions as f64,
        steps_per_exchange: run.steps as f64 / exchanges,
        given_up: sum(|s| s.given_up) / sum(|s| s.offered),
        fairness: jain(stats.iter().map(|s| s.sent as f64)),
    }
}

fn jain(shares: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = shares.len() as f64;
    let sum: f64 = shares.clone().sum();
    sum * sum / (n * shares.map(|s| s * s).sum::<f64>())
}

#[track_caller]
fn assert_within(measured: f64, expected: f64, share: f64, what: &str) {
    assert!((measured - expected).abs() <= share * expected, "{what}: {measured} for {expected}");
}

/// Within 3% of Bianchi's model, as the throughput is everywhere. Collisions are not: his counters fall in busy periods too. With CWmin
/// 15 his are 4% above from ten stations on; two stations meet more often than the model has it, as they are not
/// independent. There the models that freeze backoffs are held to: that of Tinnirello and others from five stations on, the exact one
/// for two. Counted values have a standard error. Two errors are allowed on top of it, and four for exact values.
#[test]
fn throughput_and_collisions_are_those_of_the_models() {
    println!(
        "| cell | stations | Mb/s | Bianchi | freezing | collisions | Bianchi | freezing | given up | Bianchi | Jain | steps |"
    );
    for kind in kinds() {
        for n in [1, 2, 3, 5, 10, 20, 50] {
            let m = measure(&kind.params, n, kind.rate, 500_000);
            let of = |d| kind.backoff(d).saturation(n, BYTES, &kind.durations);
            let (plain, freezing) = (of(Decrement::EachPeriod), of(Decrement::Freezing));
            let (plain_mbps, freezing_mbps) =
                (plain.throughput.bps() * 1e-6, freezing.throughput.bps() * 1e-6);
            let name = format!(
                "{}{}",
                kind.params.standard,
                if kind.params.rts_threshold == Bytes::ZERO { ", RTS" } else { "" }
            );
            println!(
                "| {name} | {n} | {:.4} | {plain_mbps:.4} | {freezing_mbps:.4} | {:.4} | {:.4} | {:.4} | {:.6} | {:.6} | {:.5} | {:.2} |",
                m.mbps,
                m.collisions,
                plain.collisions,
                freezing.collisions,
                m.given_up,
                plain.given_up,
                m.fairness,
                m.steps_per_exchange,
            );
            let name = format!("{name}, {n} stations");
            assert_within(m.mbps, plain_mbps, 0.03, &name);
            // For this number of collisions, if they were independent.
            let error = 1.0 / m.collided.sqrt();
            let share = 0.03 + 2.0 * error;
            match n {
                1 => assert_eq!(m.collisions, 0.0),
                2 => {
                    let (collisions, throughput) =
                        pair(&kind.backoff(Decrement::Freezing), BYTES, &kind.durations).expect("exact");
                    assert_within(m.collisions, collisions, 4.0 * error, &name);
                    // A period carries a frame or not and is some slots long: its share varies by less than 0.3 of the mean.
                    assert_within(m.mbps, throughput.bps() * 1e-6, 4.0 * 0.3 / m.periods.sqrt(), &name);
                }
                3 => assert_within(m.collisions, plain.collisions, share, &name),
                _ => {
                    assert_within(m.collisions, freezing.collisions, share, &name);
                    assert_within(m.mbps, freezing_mbps, 0.005, &name);
                    if kind.cw_min > 15 {
                        assert_within(m.collisions, plain.collisions, share, &name);
                    }
                }
            }
            // A success costs two steps, a collision one.
            assert!(m.steps_per_exchange < 3.0, "{name}: {}", m.steps_per_exchange);
            // Were each exchange anybody's alike, 1 less the index would be about n/exchanges; but who has just sent draws from
            // CWmin again, and sends in runs: ten times as much is seen.
            assert!(1.0 - m.fairness < 30.0 * f64::from(n) / m.periods, "{name}: {}", m.fairness);
        }
    }
}

/// Each time it has sent: DIFS, what it has drawn, the frame, SIFS and the ack.
#[test]
fn one_station_comes_to_the_closed_form() {
    for kind in kinds() {
        let mut run = Run::cell_of(&kind.params, 1, kind.rate, 7);
        let frames = 200_000;
        run.offer(0, BYTES, 1);
        for _ in 1..frames {
            assert_eq!(run.step(), vec![Happened::Delivered { station: 0 }]);
            run.step();
            run.offer(0, BYTES, 1);
        }
        run.step();
        run.step();
        // The last backoff is not over. The standard has none before the first frame.
        let values = f64::from(kind.cw_min + u32::from(!kind.exclusive));
        let drawn = run.numbers[0].drawn.iter().map(|u| (u * values).floor());
        let drawn: f64 = drawn.take(run.numbers[0].drawn.len() - 1).sum();
        let time = f64::from(frames) * kind.durations.success.as_secs_f64()
            + drawn * kind.durations.slot.as_secs_f64();
        assert_within(run.now.as_secs_f64(), time, 1e-9, "time");
        // Uniform values have the deviation sqrt((values^2 - 1)/12).
        let cw = kind.cw_min - u32::from(kind.exclusive);
        let expected = alone(cw, BYTES, &kind.durations).bps();
        let mbps = f64::from(BYTES) * 8.0 * f64::from(frames) / run.now.as_secs_f64();
        let deviation = ((values * values - 1.0) / 12.0).sqrt() * kind.durations.slot.as_secs_f64();
        let cycle = f64::from(BYTES) * 8.0 / expected;
        assert_within(mbps, expected, 4.0 * deviation / f64::from(frames).sqrt() / cycle, "mean");
    }
}

/// 1300 bytes of payload at 11 Mb/s, long preamble, basic rate 1 Mb/s: 1340 bytes last 192 + 1001 us, with ack,
/// DIFS and half of 31 slots 1867 us, which is 5.6 Mb/s; ten stations collide in a quarter to a third of their attempts.
#[test]
fn a_cell_of_the_papers_numbers_carries_what_it_should() {
    for params in [Params { basic_rates: vec![Rate::from_mbps(1.0)], ..Params::b() }, Params::b_ns2()] {
        let rate = Rate::from_mbps(11.0);
        let mut run = Run::cell_of(&params, 1, rate, 1);
        // Headers of TCP and IP are 40 bytes.
        run.saturate(1, BYTES + 40, 1, |r| r.steps >= 100_000);
        let mbps = run.cell.stats(0).sent as f64 * f64::from(BYTES) * 8.0 / run.now.as_secs_f64() * 1e-6;
        assert!((mbps - 5.6).abs() < 0.05, "{mbps}");
        let m = measure(&params, 10, rate, 200_000);
        assert!((0.25..0.334).contains(&m.collisions), "{}", m.collisions);
    }
}

/// Heusse and others 2003 ("Performance anomaly of 802.11b", INFOCOM): who is slow takes the time of the others, and all carry the
/// same. A station at 1 Mb/s beside three at 11 has as many frames, each 10880/1164 times as long.
#[test]
fn a_slow_station_slows_all() {
    let mut stations = vec![StationParams::at(Rate::from_mbps(11.0)); 3];
    stations.extend([StationParams::at(Rate::from_mbps(1.0)), StationParams::ACCESS_POINT]);
    let mut run = Run::new(&Params::b(), &stations, 1);
    run.saturate(4, BYTES, 4, |r| r.steps >= 200_000);
    let stats: Vec<_> = (0..4).map(|i| run.cell.stats(i)).collect();
    let sent = stats.iter().map(|s| s.sent as f64);
    assert!(jain(sent.clone()) > 0.999, "{:?}", sent.collect::<Vec<_>>());
    for s in &stats[..3] {
        let attempts = stats[3].attempts as f64 / s.attempts as f64;
        let airtime = stats[3].airtime.as_secs_f64() / s.airtime.as_secs_f64();
        assert_within(airtime / attempts, 10_880.0 / 1164.0, 1e-9, "airtime of an attempt");
        // It has 11 Mb/s of its own.
        assert!(s.sent as f64 * 10_400.0 / run.now.as_secs_f64() < 1e6);
    }
}

/// Nothing is lost of frames that errors hit: attempts are geometric up to the limit.
#[test]
fn errors_are_as_frequent_as_told() {
    let share = 0.3;
    let lossy = StationParams { error_rate: Ratio::new(share), ..StationParams::at(Rate::from_mbps(11.0)) };
    let mut run = Run::new(&Params::b(), &[lossy, StationParams::ACCESS_POINT], 1);
    // To it and from it alike.
    run.saturate(1, BYTES, 1, |r| r.steps >= 300_000);
    let s = run.cell.stats(0);
    let (attempts, errors) = (s.attempts as f64, s.errors as f64);
    let error = (share * (1.0 - share) / attempts).sqrt();
    assert!((errors / attempts - share).abs() < 4.0 * error, "{s:?}");
    assert!((0..=1).contains(&(s.attempts - s.errors - s.sent)), "{s:?}");
    // 0.3^7 = 0.0002187 of frames; a count of some 40 is within four of its roots.
    let expected = (s.sent + s.given_up) as f64 * share.powi(7);
    assert!((s.given_up as f64 - expected).abs() < 4.0 * expected.sqrt(), "{s:?}");
    // Each error but a frame's last is followed by a retry, which may still be to come.
    assert!((0..=1).contains(&(s.errors - s.given_up - s.retries)), "{s:?}");
}

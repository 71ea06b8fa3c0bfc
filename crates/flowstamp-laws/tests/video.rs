//! Adaptive video: accounts that must balance whatever the network does, and choices computed from the papers' equations.

use flowstamp_laws::video::{Action, Advice, Choice, Client, Params, Segment};
use flowstamp_laws::{Bytes, Rate, Ratio, Time};
use proptest::prelude::*;

const S: u64 = 1_000_000_000_000;

fn secs(s: f64) -> Time {
    Time::from_secs_f64(s)
}

/// A ladder of 1, 2, 3, 4 and 5 Mb/s.
fn params(choice: Choice) -> Params {
    Params { ladder: (1..=5).map(|m| Rate::from_mbps(f64::from(m))).collect(), choice, ..Params::default() }
}

fn fetch(client: &mut Client, now: Time) -> Segment {
    match client.poll(now) {
        Action::Fetch(segment) => segment,
        other => panic!("{other:?} at {now}"),
    }
}

/// Fetches until `until`; segment `k` takes `takes(k, bytes)`. Returns the level of each segment.
fn run(client: &mut Client, until: Time, mut takes: impl FnMut(u32, Bytes) -> Time) -> Vec<usize> {
    let (mut now, mut levels) = (Time::ZERO, Vec::new());
    while now < until {
        match client.poll(now) {
            Action::Fetch(segment) => {
                levels.push(segment.level);
                now += takes(segment.number, segment.bytes);
                client.arrived(now, segment.bytes);
            }
            Action::Wait(time) => {
                assert!(time > now, "waits until {time} at {now}");
                now = time;
            }
            Action::Await | Action::Done => break,
        }
    }
    levels
}

fn any_params() -> impl Strategy<Value = Params> {
    let choice = prop_oneof![Just(Choice::Buffer), Just(Choice::Rate), Just(Choice::Advice)];
    let ladder = prop::collection::btree_set(1_000u64..50_000_000, 1..12);
    let times = (S..=10 * S, 0u64..100 * S, 0u64..200 * S, 1u64..200 * S);
    (choice, ladder, times, any::<bool>(), 1u32..8, 0.1f64..1.0, prop::option::of(1u64..40)).prop_map(
        |(choice, ladder, (segment, startup, more, cushion), ignores, samples, safety, length)| Params {
            segment: Time::from_ps(segment),
            ladder: ladder.into_iter().map(|bps| Rate::from_bps(bps as f64)).collect(),
            // A full buffer is above reservoir and cushion, so that `check` accepts any ladder.
            max_buffer: Time::from_ps(startup + segment + more + cushion),
            startup: Time::from_ps(startup),
            choice,
            advice: if ignores && choice != Choice::Advice { Advice::Ignore } else { Advice::Follow },
            reservoir: Time::from_ps(more),
            cushion: Time::from_ps(cushion),
            safety: Ratio::new(safety),
            samples,
            length: length.map(|segments| Time::from_ps(segment) * segments),
        },
    )
}

proptest! {
    /// The four times sum to the wall time, the media played and buffered to the media fetched, the buffer stays within
    /// its maximum, bitrates are the ladder's and obey the advice, and a client never asks twice.
    #[test]
    fn the_accounts_balance(
        params in any_params(),
        steps in prop::collection::vec((0u64..30 * S, prop::option::of(0u64..60_000_000), any::<bool>()), 1..200),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        let mut client = Client::new(params.clone(), Time::from_secs(3));
        let (mut now, mut advice) = (Time::from_secs(3), None);
        let (mut requested, mut fetched): (Option<Segment>, u32) = (None, 0);
        for (gap, advised, change) in steps {
            if change {
                advice = advised.map(|bps| Rate::from_bps(bps as f64));
                client.advised(now, advice);
            }
            match client.poll(now) {
                Action::Fetch(segment) => {
                    prop_assert!(requested.is_none());
                    prop_assert_eq!(segment.number, fetched);
                    prop_assert_eq!(segment.bitrate, params.ladder[segment.level]);
                    prop_assert_eq!(segment.bytes, params.segment_bytes(segment.level));
                    if let (Some(rate), Advice::Follow) = (advice, params.advice) {
                        prop_assert!(segment.bitrate <= rate || segment.level == 0);
                    }
                    requested = Some(segment);
                    now += Time::from_ps(gap);
                }
                Action::Await => {
                    let segment = requested.take().expect("a request");
                    client.arrived(now, segment.bytes);
                    fetched += 1;
                }
                Action::Wait(time) => {
                    prop_assert!(time > now && requested.is_none());
                    now = time;
                }
                Action::Done => {
                    prop_assert_eq!(Some(params.segment * u64::from(fetched)), params.length);
                    now += Time::from_ps(gap);
                }
            }
            let (viewed, buffer) = (client.viewed(now), client.buffer(now));
            prop_assert!(buffer <= params.max_buffer, "{} of {}", buffer, params.max_buffer);
            let sum = viewed.startup + viewed.played + viewed.stalled + viewed.ended;
            prop_assert_eq!(sum + Time::from_secs(3), now);
            prop_assert_eq!(viewed.segments, fetched);
            prop_assert_eq!(viewed.played + buffer, params.segment * u64::from(fetched));
            prop_assert!(viewed.switches < fetched.max(1));
            prop_assert_eq!(viewed.stalls == 0, viewed.stalled == Time::ZERO);
        }
    }

    /// On a path of constant rate, rate-based choice settles on the highest bitrate below `safety` times the rate.
    #[test]
    fn a_constant_rate_gives_its_bitrate(mbps in 0.5f64..8.0) {
        let mut client = Client::new(params(Choice::Rate), Time::ZERO);
        let rate = Rate::from_mbps(mbps);
        let levels = run(&mut client, secs(300.0), |_, bytes| rate.tx_time(bytes));
        let expected = ((0.85 * mbps).floor() as usize).clamp(1, 5) - 1;
        prop_assert_eq!(levels[0], 0);
        prop_assert!(levels[1..].iter().all(|level| *level == expected), "{:?}", levels);
        let viewed = client.viewed(secs(300.0));
        prop_assert!(viewed.stalls == 0 || mbps < 1.0);
    }
}

/// Segment k takes k s: the harmonic mean of 4 Mb over 1, 2, ... s. With 5 samples and safety 1, H = 5 * 4 / (sum of the last five k).
#[test]
fn the_throughput_is_a_harmonic_mean() {
    let mut params = params(Choice::Rate);
    (params.safety, params.max_buffer) = (Ratio::new(1.0), secs(1000.0));
    params.ladder =
        vec![Rate::from_mbps(1.0), Rate::from_mbps(1.01), Rate::from_mbps(1.34), Rate::from_mbps(2.0)];
    let mut client = Client::new(params, Time::ZERO);
    let mut now = Time::ZERO;
    let mut levels = Vec::new();
    for k in 1..=7 {
        levels.push(fetch(&mut client, now).level);
        now += secs(f64::from(k));
        client.arrived(now, Bytes::new(500_000));
    }
    // H = 4, 8/3, 2, 1.6, 4/3, 1 (k = 2 to 6)
    assert_eq!(levels, [0, 3, 3, 3, 2, 1, 0]);
}

/// Equation of section 4 with r = 10 s and c = 16 s: f = 1 + 4 (B - 10) / 16 Mb/s.
#[test]
fn the_buffer_chooses_by_a_line() {
    let mut params = params(Choice::Buffer);
    (params.segment, params.startup, params.max_buffer) = (secs(2.0), secs(100.0), secs(100.0));
    let mut client = Client::new(params, Time::ZERO);
    // Playback waits for 100 s, so B = 2 k before segment k.
    let levels: Vec<_> = (0..15)
        .map(|_| {
            let segment = fetch(&mut client, Time::ZERO);
            client.arrived(Time::ZERO, segment.bytes);
            segment.level
        })
        .collect();
    // f is 1.5 at 12 s, 2 at 14 s, 2.5, 3 at 18 s, 3.5, 4 at 22 s, 4.5, and 5 at 26 s. It must reach the next bitrate, and
    // the choice is the highest one below f, so that f must pass a bitrate before the client takes it.
    assert_eq!(levels, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4]);
}

#[test]
fn a_falling_buffer_steps_down_late() {
    let mut params = params(Choice::Buffer);
    (params.segment, params.startup, params.max_buffer) = (secs(2.0), secs(30.0), secs(30.0));
    let mut client = Client::new(params, Time::ZERO);
    for _ in 0..15 {
        let segment = fetch(&mut client, Time::ZERO);
        client.arrived(Time::ZERO, segment.bytes);
    }
    // B is 30 s, and playback runs. Segments that take 4 s each cost 2 s of buffer.
    let mut now = secs(2.0);
    let mut levels = Vec::new();
    for _ in 0..10 {
        let segment = fetch(&mut client, now);
        levels.push(segment.level);
        now += secs(4.0);
        client.arrived(now, segment.bytes);
    }
    // B is 28, 26, 24, ... and f 5, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5 Mb/s. It steps down once f is at most the bitrate below
    // the last, to the lowest bitrate above f.
    assert_eq!(levels, [4, 4, 4, 4, 3, 3, 2, 2, 1, 0]);
}

#[test]
fn advice_bounds_the_next_request() {
    for (choice, before) in [(Choice::Rate, 4), (Choice::Buffer, 4), (Choice::Advice, 0)] {
        // The highest bitrate from 18 s of media on; the requests below find more.
        let mut client = Client::new(Params { cushion: secs(8.0), ..params(choice) }, Time::ZERO);
        let quick = |_: u32, _: Bytes| secs(0.001);
        assert_eq!(run(&mut client, secs(60.0), quick).last(), Some(&before), "{choice:?}");
        let mut next = |now: f64, mbps: Option<f64>| {
            client.advised(secs(now), mbps.map(Rate::from_mbps));
            let segment = fetch(&mut client, secs(now));
            client.arrived(secs(now + 0.001), segment.bytes);
            segment.level
        };
        assert_eq!(next(64.0, Some(2.99)), 1, "{choice:?}");
        assert_eq!(next(68.0, Some(3.0)), 2, "{choice:?}");
        assert_eq!(next(72.0, Some(0.1)), 0, "{choice:?}: the lowest bitrate, although it is above");
        assert_eq!(next(76.0, None), before, "{choice:?}: advice has expired");
    }
}

#[test]
fn a_client_may_ignore_advice() {
    let mut client = Client::new(Params { advice: Advice::Ignore, ..params(Choice::Rate) }, Time::ZERO);
    client.advised(Time::ZERO, Some(Rate::from_mbps(1.0)));
    assert_eq!(run(&mut client, secs(60.0), |_, _| secs(0.001)).last(), Some(&4));
}

/// Two segments of 4 s start playback. The third comes 5 s late: one stall, which lasts until 8 s are buffered again.
#[test]
fn a_late_segment_is_one_stall() {
    let mut client = Client::new(Params { length: Some(secs(20.0)), ..params(Choice::Rate) }, Time::ZERO);
    let takes = [1.0, 1.0, 13.0, 2.0, 1.0];
    let levels = run(&mut client, secs(1000.0), |k, _| secs(takes[k as usize]));
    assert_eq!(levels.len(), 5);
    let viewed = client.viewed(secs(40.0));
    // Playback from 2 s to 10 s, from 17 s (8 s buffered) to 29 s; the last segment comes at 18 s.
    assert_eq!((viewed.startup, viewed.stalls, viewed.stalled), (secs(2.0), 1, secs(7.0)));
    assert_eq!((viewed.played, viewed.ended, viewed.segments), (secs(20.0), secs(11.0), 5));
    assert_eq!(viewed.stalled_share(), Some(7.0 / 27.0));
    assert_eq!(client.poll(secs(41.0)), Action::Done);
}

/// A full buffer makes a client fetch a segment each segment's time.
#[test]
fn a_full_buffer_waits() {
    let mut client = Client::new(params(Choice::Rate), Time::ZERO);
    let levels = run(&mut client, secs(100.0), |_, _| secs(0.001));
    let viewed = client.viewed(secs(100.0));
    // 30 s hold seven segments of 4 s and half of one; 100 s of playback are 25 segments.
    assert!((levels.len() as i32 - 32).abs() <= 1, "{}", levels.len());
    assert_eq!((viewed.switches, viewed.stalls), (1, 0));
    assert_eq!(viewed.mean_bitrate().map(|rate| rate.bps() > 4.8e6), Some(true));
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    let ok = Params::default();
    assert_eq!(ok.check(), Ok(()));
    let cases: [(&str, Params); 10] = [
        ("segment", Params { segment: secs(11.0), ..ok.clone() }),
        ("ladder", Params { ladder: Vec::new(), ..ok.clone() }),
        ("ladder", Params { ladder: vec![Rate::from_mbps(2.0), Rate::from_mbps(2.0)], ..ok.clone() }),
        ("ladder", Params { ladder: vec![Rate::ZERO], ..ok.clone() }),
        ("max_buffer", Params { max_buffer: secs(3.0), startup: Time::ZERO, ..ok.clone() }),
        ("startup", Params { startup: secs(29.0), ..ok.clone() }),
        ("cushion", Params { cushion: Time::ZERO, ..ok.clone() }),
        ("advice", Params { choice: Choice::Advice, advice: Advice::Ignore, ..ok.clone() }),
        ("samples", Params { samples: 0, ..ok.clone() }),
        ("length", Params { length: Some(secs(5.0)), ..ok.clone() }),
    ];
    for (key, params) in cases {
        assert_eq!(params.check().expect_err(key).0, key);
    }
}

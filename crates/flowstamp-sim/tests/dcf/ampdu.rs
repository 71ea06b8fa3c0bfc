//! A-MPDUs and block acks: exchanges by hand, losses, limits, and single frames as before.

use super::any::{self, Do, doings};
use super::{Run, assert_close, us};
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use flowstamp_scenario::wireless::{Dcf, Rules, Standard};
use flowstamp_sim::medium::dcf::{Frame, Happened, Params, StationParams};
use proptest::prelude::*;
use std::collections::VecDeque;

const FULL_RATE: Rate = Rate::from_mbps(54.0);

fn params(frames: u32) -> Params {
    Dcf { standard: Standard::G, ampdu_frames: Some(frames), ..Dcf::default() }.params()
}

/// An access point and a station that loses this share of frames.
fn cell(params: &Params, error_rate: f64) -> Run {
    let station = StationParams { error_rate: Ratio::new(error_rate), ..StationParams::at(FULL_RATE) };
    Run::new(params, &[StationParams::ACCESS_POINT, station], 1)
}

impl Run {
    fn add(&mut self, count: u32, bytes: u32) -> u32 {
        (0..count).take_while(|_| self.cell.add(self.now, 0, Frame { bytes, to: 1 })).count() as u32
    }

    fn offer_added(&mut self, station: u32) {
        let numbers = &mut self.numbers;
        assert!(self.cell.offer_added(self.now, station, |s| numbers[s as usize].next()));
    }
}

const DELIVERED: Happened = Happened::PassedOn { station: 0 };
const ROOM: Happened = Happened::Room { station: 0 };
const LOST: Happened = Happened::Lost { station: 0 };
const FREE: Happened = Happened::Free { station: 0, sent: true };

/// 802.11g at 54 Mb/s, 216 bits for each symbol of 4 us: MPDUs of 1536 bytes with their delimiters, 22 bits of SERVICE and
/// tail, 20 us of preamble and 6 us of signal extension.
fn data_us(frames: u32) -> f64 {
    26.0 + 4.0 * ((f64::from(frames) * 1540.0 * 8.0 + 22.0) / 216.0).ceil()
}

/// DIFS.
const DIFS: f64 = 28.0;
/// SIFS, and a block ack of 32 bytes at 24 Mb/s: three symbols.
const BLOCK_ACK: f64 = 10.0 + 26.0 + 12.0;

#[test]
fn three_frames_have_one_turn_and_one_block_ack() {
    let mut run = cell(&params(32), 0.0);
    run.cell.report();
    assert_eq!(run.add(3, 1500), 3);
    run.offer_added(0);
    assert_eq!(run.step(), [DELIVERED; 3]);
    assert_close(run.now, us(DIFS + data_us(3)));
    assert_eq!(run.step(), [Happened::Acked { station: 0 }, FREE]);
    assert_close(run.now, us(DIFS + data_us(3) + BLOCK_ACK));
    let batch = run.cell.batch(0, false);
    assert_eq!((batch.frames, batch.acked, batch.most), (3, 3, 23)); // 23 take 5.28 ms
    assert_eq!((batch.packet_bytes, batch.frame_bytes), (1500.0, 1540.0));
    assert_eq!(batch.elapsed, run.now);
    assert_eq!(run.cell.batch(0, true).most, 3);
    let stats = *run.cell.stats(0);
    assert_eq!((stats.offered, stats.sent, stats.attempts), (3, 3, 1));
    assert_eq!((stats.exchanges, stats.mpdus, stats.mpdus_lost), (1, 3, 0));
    assert_eq!(stats.delay, run.now * 3);
}

/// A turn's time begins with the ack before it, unless the station had nothing to send.
#[test]
fn idle_time_is_no_overhead() {
    let mut run = cell(&params(32), 0.0);
    run.cell.report();
    let elapsed = |run: &mut Run, idle_us: f64| {
        run.now += us(idle_us);
        run.add(2, 1500);
        run.backoffs(0, &[(0, 16)]);
        run.offer_added(0);
        let begins = run.now;
        run.step();
        run.step();
        assert_eq!(run.cell.batch(0, false).elapsed, run.now - begins);
    };
    elapsed(&mut run, 0.0);
    elapsed(&mut run, 0.0);
    elapsed(&mut run, 5000.0);
}

/// The second of three frames is lost. The third has arrived, and waits for it at the receiver.
#[test]
fn a_lost_frame_goes_again_and_the_others_wait_for_it() {
    let mut run = cell(&params(32), 0.5);
    assert_eq!(run.add(3, 1500), 3);
    run.offer_added(0);
    run.numbers[0].given.extend([0.9, 0.1, 0.9]);
    assert_eq!(run.step(), [DELIVERED]);
    run.backoffs(0, &[(2, 16)]);
    assert_eq!(run.step(), [ROOM]);
    let begins = run.now;
    // One more joins it, and both arrive.
    assert_eq!(run.add(1, 1500), 1);
    run.offer_added(0);
    run.numbers[0].given.extend([0.9, 0.9]);
    assert_eq!(run.step(), [DELIVERED; 3]);
    assert_close(run.now, begins + us(DIFS + 2.0 * 9.0 + data_us(2)));
    assert_eq!(run.step(), [FREE]);
    let stats = run.cell.stats(0);
    assert_eq!((stats.sent, stats.mpdus, stats.mpdus_lost, stats.retries), (4, 5, 1, 1));
}

/// A single frame that goes again has a plain ack, and at the limit it is given up.
#[test]
fn a_frame_is_given_up_at_its_retry_limit() {
    let mut run = cell(&Params { short_retry_limit: 2, ..params(32) }, 0.5);
    assert_eq!(run.add(3, 1500), 3);
    run.offer_added(0);
    run.numbers[0].given.extend([0.1, 0.9, 0.9]);
    assert_eq!(run.step(), []);
    run.backoffs(0, &[(0, 16)]);
    assert_eq!(run.step(), [ROOM]);
    let begins = run.now;
    run.numbers[0].given.push_back(0.1);
    assert_eq!(run.step(), [LOST, DELIVERED, DELIVERED, FREE]);
    let single = 26.0 + 4.0 * ((1536.0f64 * 8.0 + 22.0) / 216.0).ceil();
    assert_close(run.now, begins + us(DIFS + single));
    let stats = run.cell.stats(0);
    assert_eq!((stats.sent, stats.given_up, stats.errors), (2, 1, 1));
    // Nothing arrives: there is no block ack, and the contention window doubles.
    let mut run = cell(&params(32), 0.5);
    run.add(2, 1500);
    run.offer_added(0);
    run.numbers[0].given.extend([0.1, 0.1]);
    run.backoffs(0, &[(31, 32)]);
    assert_eq!(run.step(), [ROOM]);
    let begins = run.now;
    run.numbers[0].given.extend([0.9, 0.9]);
    run.step();
    assert!(run.now > begins + us(31.0 * 9.0 + data_us(2)), "{}", run.now);
    assert_eq!(run.cell.stats(0).errors, 1);
}

/// 42 MPDUs of 1540 bytes fill 65535 bytes, and 23 take 5.28 ms.
#[test]
fn limits_are_kept() {
    let most = |change: &dyn Fn(&mut Params)| {
        let mut params = params(64);
        change(&mut params);
        let mut run = cell(&params, 0.0);
        run.cell.report();
        let count = run.add(64, 1500);
        run.offer_added(0);
        run.step();
        run.step();
        // The estimate's limit is the same.
        assert_eq!(run.cell.batch(0, false).most, count);
        count
    };
    assert_eq!(most(&|p| p.ampdu_time = Time::from_millis(20)), 42);
    let by_time = most(&|_| {});
    assert!(data_us(by_time) <= 5484.0 && data_us(by_time + 1) > 5484.0, "{by_time}");
    assert_eq!(most(&|p| p.ampdu_frames = 8), 8);
    assert_eq!(most(&|p| p.ampdu_bytes = Bytes::new(1)), 1);
    // A frame for another receiver does not join.
    let mut run = Run::cell_of(&params(32), 2, FULL_RATE, 1);
    assert!(run.cell.add(run.now, 0, Frame { bytes: 100, to: 1 }));
    assert!(!run.cell.add(run.now, 0, Frame { bytes: 100, to: 2 }));
}

/// A station that always has 16 frames needs DIFS, 7.5 slots, the A-MPDU, SIFS and the block ack for them.
#[test]
fn a_busy_station_carries_what_its_turns_allow() {
    let mut run = cell(&params(16), 0.0);
    let turns = 4000;
    run.add(16, 1500);
    run.offer_added(0);
    for _ in 0..turns {
        run.step();
        assert_eq!(run.step(), [FREE]);
        run.add(16, 1500);
        run.offer_added(0);
    }
    let expected = DIFS + 7.5 * 9.0 + data_us(16) + BLOCK_ACK;
    let mean = run.now.as_secs_f64() * 1e6 / f64::from(turns);
    // A backoff's standard deviation is 4.6 slots: 0.7 us over all turns.
    assert!((mean - expected).abs() < 3.0, "{mean} {expected}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// With room for one frame, a cell of A-MPDUs does the same at the same times as one of single frames.
    #[test]
    fn one_frame_is_a_single_frame(
        params in any::params(),
        error_rates in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0f64..1.0], 5),
        doings in doings(),
        seed in 0u64..1000,
    ) {
        let params = Params { rules: Rules::Standard, ..params };
        let single = any::run(&params, &error_rates, &doings, seed);
        let ampdu = any::run(&Params { ampdu_frames: 64, ..params }, &error_rates, &doings, seed);
        let told = |log: &any::Log| {
            let told = |(at, what): &(Time, Happened)| match *what {
                Happened::Delivered { station } | Happened::PassedOn { station } => Some((*at, station, true)),
                Happened::Free { station, .. } => Some((*at, station, false)),
                _ => None,
            };
            log.iter().filter_map(told).collect::<Vec<_>>()
        };
        prop_assert_eq!(told(&single.1), told(&ampdu.1));
        for station in 0..6 {
            let (a, b) = (single.0.cell.stats(station), ampdu.0.cell.stats(station));
            prop_assert_eq!((a.sent, a.given_up, a.attempts, a.retries), (b.sent, b.given_up, b.attempts, b.retries));
            prop_assert_eq!((a.delay, a.airtime, a.errors, a.collisions), (b.delay, b.airtime, b.errors, b.collisions));
        }
    }

    /// Each frame is delivered or lost once, and in the order in which the station took it, within an A-MPDU and across
    /// A-MPDUs. A frame that has arrived waits for older ones.
    #[test]
    fn frames_come_to_one_end_each(
        params in any::params(),
        frames in 2u32..=64,
        bytes in 1u64..100_000,
        error_rates in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0f64..0.9], 5),
        loads in prop::collection::vec((0u32..6, 0u64..5_000, 1u32..80, 20u32..2300, 1u32..6), 1..60),
        seed in 0u64..1000,
    ) {
        let params = Params { rules: Rules::Standard, ampdu_frames: frames, ampdu_bytes: Bytes::new(bytes), ..params };
        let rate = |i: usize| params.rates[i % params.rates.len()];
        let station = |(i, e): (usize, &f64)| StationParams { rate: Some(rate(i)), error_rate: Ratio::new(*e) };
        let mut stations = vec![StationParams::ACCESS_POINT];
        stations.extend(error_rates.iter().enumerate().map(station));
        let mut run = Run::new(&params, &stations, seed);
        let (mut added, mut over, mut has) = ([0u64; 6], [0u64; 6], [false; 6]);
        let mut models: [Model; 6] = Default::default();
        let mut step = |run: &mut Run, has: &mut [bool; 6], models: &mut [Model; 6]| {
            for happened in step_both(run, &params, models) {
                match happened {
                    Happened::PassedOn { station } | Happened::Lost { station } => over[station as usize] += 1,
                    Happened::Free { station, .. } => has[station as usize] = false,
                    Happened::Room { station } => assert!(has[station as usize]),
                    Happened::Acked { .. } | Happened::Delivered { .. } => panic!("{happened:?}"),
                }
            }
        };
        for (station, after_us, count, bytes, to) in loads {
            let at = run.now + Time::from_micros(after_us);
            while run.cell.next().is_some_and(|next| next <= at) {
                step(&mut run, &mut has, &mut models);
            }
            run.now = at;
            if has[station as usize] || to == station {
                continue;
            }
            let arrives = [station, to].map(|i| 1.0 - stations[i as usize].error_rate.get());
            models[station as usize].lost = 1.0 - arrives[0] * arrives[1];
            for _ in 0..count {
                if run.cell.add(at, station, Frame { bytes, to }) {
                    added[station as usize] += 1;
                    models[station as usize].frames.push_back((bytes, At::Sender(0, 0)));
                }
            }
            has[station as usize] = true;
            run.offer_added(station);
        }
        while run.cell.next().is_some() {
            step(&mut run, &mut has, &mut models);
        }
        prop_assert_eq!(has, [false; 6]);
        prop_assert!(models.iter().all(|model| model.frames.is_empty()));
        let (mut exchanges, mut errors) = (0, 0);
        for i in 0..6 {
            let s = run.cell.stats(i);
            prop_assert_eq!((s.offered, s.sent + s.given_up), (added[i as usize], over[i as usize]));
            prop_assert_eq!(s.offered, s.sent + s.given_up);
            prop_assert_eq!(s.mpdus, s.sent + s.mpdus_lost);
            prop_assert_eq!(s.attempts, s.exchanges + s.errors + s.collisions);
            exchanges += s.exchanges;
            errors += s.errors;
        }
        let medium = run.cell.medium(run.now);
        prop_assert_eq!((medium.exchanges, medium.errors), (exchanges, errors));
        prop_assert_eq!(medium.busy + medium.idle, run.now);
    }
}

/// Where a frame is, for [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The sender, after these failed attempts without an RTS that was answered, and with one.
    Sender(u32, u32),
    Receiver,
    GivenUp,
}

/// The frames of a station in the order in which it took them: their bytes, and where the station's draws put them.
#[derive(Clone, Debug, Default)]
struct Model {
    frames: VecDeque<(u32, At)>,
    /// The probability that a frame to their receiver is lost.
    lost: f64,
    /// The turn has an RTS that was answered.
    announced: bool,
}

impl Model {
    /// The frames in the sender are sent, `sent` in number. Each has a draw if it may be lost.
    fn send(&mut self, params: &Params, sent: u64, draws: &[f64]) {
        let (lost, mut draws) = (self.lost, draws.iter());
        let (mut longest, mut count) = (0, 0);
        for (bytes, at) in self.frames.iter_mut().filter(|(_, at)| matches!(at, At::Sender(..))) {
            (longest, count) = (longest.max(*bytes), count + 1);
            if lost <= 0.0 || draws.next().is_some_and(|u| *u >= lost) {
                *at = At::Receiver;
            }
        }
        assert_eq!(count, sent);
        self.announced = u64::from(longest) + params.overhead() > params.rts_threshold.get();
    }

    /// The turn ends, and has failed for frames that are still in the sender.
    fn end_turn(&mut self, short_limit: u32, long_limit: u32) {
        let announced = std::mem::take(&mut self.announced);
        for (_, at) in &mut self.frames {
            let At::Sender(short, long) = *at else { continue };
            let (short, long) = if announced { (short, long + 1) } else { (short + 1, long) };
            *at =
                if short < short_limit && long < long_limit { At::Sender(short, long) } else { At::GivenUp };
        }
    }

    /// The cell says where its oldest frame has ended.
    fn end_oldest(&mut self, expected: At) {
        let oldest = self.frames.pop_front().map(|(_, at)| at);
        assert_eq!(oldest, Some(expected), "the oldest frame, before {:?}", self.frames);
    }
}

/// A step of a cell and the models of its stations.
fn step_both(run: &mut Run, params: &Params, models: &mut [Model; 6]) -> Vec<Happened> {
    let before = [0, 1, 2, 3, 4, 5].map(|i| (run.cell.stats(i).mpdus, run.numbers[i as usize].drawn.len()));
    let told = run.step();
    for (i, (mpdus, drawn)) in before.into_iter().enumerate() {
        let sent = run.cell.stats(i as u32).mpdus - mpdus;
        if sent > 0 {
            models[i].send(params, sent, &run.numbers[i].drawn[drawn..]);
        }
    }
    for happened in &told {
        if let Happened::Room { station } | Happened::Free { station, .. } = *happened {
            models[station as usize].end_turn(params.short_retry_limit, params.long_retry_limit);
        }
    }
    for happened in &told {
        match *happened {
            Happened::PassedOn { station } => models[station as usize].end_oldest(At::Receiver),
            Happened::Lost { station } => models[station as usize].end_oldest(At::GivenUp),
            _ => {}
        }
    }
    // Nothing waits for a frame that has come to its end.
    for model in models {
        assert!(model.frames.front().is_none_or(|(_, at)| matches!(at, At::Sender(..))), "{model:?}");
    }
    told
}

/// Offers a frame by itself, in cells of either kind.
pub(super) fn offer_one(run: &mut Run, doing: &Do) {
    let Do::Offer { station, bytes, to, .. } = *doing else { return };
    if run.cell.aggregates() {
        assert!(run.cell.add(run.now, station, Frame { bytes, to }));
        run.offer_added(station);
    } else {
        run.offer(station, bytes, to);
    }
}

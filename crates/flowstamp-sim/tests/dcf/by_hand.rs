//! A cell's events, computed by hand.

use super::{Run, assert_close, us};
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use flowstamp_scenario::wireless::Preamble;
use flowstamp_sim::medium::dcf::{Happened, Params, StationParams};

const MBPS_11: Rate = Rate::from_mbps(11.0);
const MBPS_54: Rate = Rate::from_mbps(54.0);

fn delivered(station: u32) -> Vec<Happened> {
    vec![Happened::Delivered { station }]
}
fn sent(station: u32) -> Vec<Happened> {
    vec![Happened::Free { station, sent: true }]
}
fn given_up(station: u32) -> Happened {
    Happened::Free { station, sent: false }
}

/// 802.11b with acks at 1 Mb/s, as in the paper: 1300 bytes last 192 + ceil(8 * 1336/11) = 1164 us, an ack 192 + 112 = 304 us, DIFS
/// 50 us, EIFS 10 + 304 + 50 = 364 us.
fn b() -> Params {
    Params { basic_rates: vec![Rate::from_mbps(1.0)], ..Params::b() }
}
const DATA: f64 = 1164.0;
const ANSWER: f64 = 10.0 + 304.0;
const DIFS: f64 = 50.0;
const EIFS: f64 = 364.0;
const SLOT: f64 = 20.0;

/// One frame in a cell that has been idle from the start: DIFS, then the frame, SIFS and the ack.
#[test]
fn frames_last_as_long_as_the_standard_says() {
    let change = |of: Params, change: &dyn Fn(&mut Params)| {
        let mut params = of;
        change(&mut params);
        params
    };
    let fast_b = |p: &mut Params| p.rates.push(MBPS_54);
    for (params, mbps, bytes, data, answer) in [
        // 36 bytes of headers; at 11 Mb/s 971.6 us, in whole microseconds. An ack at 2 Mb/s is 192 + 56 us.
        (Params::b(), 11.0, 1300, 50.0 + 192.0 + 972.0, 10.0 + 248.0),
        // At 1 Mb/s an ack cannot go at 2.
        (Params::b(), 1.0, 1300, 50.0 + 192.0 + 10_688.0, 10.0 + 304.0),
        (b(), 11.0, 1300, DIFS + DATA, ANSWER),
        // The short preamble is 96 us; frames at 1 Mb/s have the long one.
        (
            change(Params::b(), &|p| p.preamble = Preamble::Short),
            11.0,
            1300,
            50.0 + 96.0 + 972.0,
            10.0 + 152.0,
        ),
        (change(b(), &|p| p.preamble = Preamble::Short), 11.0, 1300, 50.0 + 96.0 + 972.0, 10.0 + 304.0),
        (
            change(b(), &|p| p.control_rate = Some(MBPS_11)),
            2.0,
            40,
            50.0 + 192.0 + 304.0,
            10.0 + 192.0 + 11.0,
        ),
        // An RTS of 160 bits at 2 Mb/s, 192 + 80 us, and a CTS of 248.
        (
            change(Params::b(), &|p| p.rts_threshold = Bytes::new(1335)),
            11.0,
            1300,
            50.0 + 272.0 + 10.0 + 248.0 + 10.0 + 1164.0,
            10.0 + 248.0,
        ),
        (change(Params::b(), &|p| p.rts_threshold = Bytes::new(1336)), 11.0, 1300, 50.0 + 1164.0, 258.0),
        // The paper's 54 Mb/s in a cell of 802.11b: 197.9 us.
        (change(b(), &fast_b), 54.0, 1300, 50.0 + 192.0 + 198.0, 314.0),
        // OFDM: (16 + 8 * 1336 + 6)/216 = 49.6 symbols of 4 us, 20 us before and 6 after; an ack at 24 Mb/s has 134/96 = 1.4.
        (Params::g(), 54.0, 1300, 28.0 + 20.0 + 200.0 + 6.0, 10.0 + 20.0 + 8.0 + 6.0),
        // (22 + 8 * 1336)/24 = 446.25 symbols, an ack at 6 Mb/s 134/24 = 5.6.
        (Params::g(), 6.0, 1300, 28.0 + 20.0 + 1788.0 + 6.0, 10.0 + 20.0 + 24.0 + 6.0),
        // At 9 Mb/s the ack goes at 6, at 36 at 24.
        (Params::g(), 9.0, 1300, 28.0 + 20.0 + 1192.0 + 6.0, 10.0 + 50.0),
        (Params::g(), 36.0, 40, 28.0 + 20.0 + 20.0 + 6.0, 10.0 + 34.0),
    ] {
        let mut run = Run::cell_of(&params, 1, Rate::from_mbps(mbps), 1);
        run.offer(0, bytes, 1);
        assert_eq!(run.step(), delivered(0));
        assert_close(run.now, us(data));
        assert_eq!(run.step(), sent(0));
        assert_close(run.now, us(data + answer));
        assert_eq!(run.cell.next(), None);
        let stats = run.cell.stats(0);
        assert_close(stats.delay, us(data + answer));
        assert_eq!((stats.offered, stats.sent, stats.attempts, stats.retries), (1, 1, 1, 0));
    }
}

/// ns-2: a backoff from 0 to 30 before the first frame too, 34 bytes of header, fractions of microseconds.
#[test]
fn frames_last_as_long_as_in_ns_2() {
    // 30 slots, 192 + 8 * 1334/11 us, and an ack of 304 us. The 31st value is 30.
    let mut run = Run::cell_of(&Params::b_ns2(), 1, MBPS_11, 1);
    run.numbers[0].given.push_back(0.999_999);
    run.offer(0, 1300, 1);
    run.step();
    assert_close(run.now, us(50.0 + 30.0 * 20.0 + 192.0 + 10_672.0 / 11.0));
    // Idle for long, and its backoff is over: DIFS and a new backoff all the same.
    run.step();
    run.backoffs(0, &[(2, 31)]);
    run.now = Time::from_millis(50);
    run.offer(0, 1300, 1);
    run.step();
    assert_close(run.now, us(50_000.0 + 50.0 + 2.0 * 20.0 + 192.0 + 10_672.0 / 11.0));
    // 802.11g as scripts set it: 15 values, DIFS 16 + 2 * 9 us, 20 us and 10672/54.
    let mut run = Run::cell_of(&Params::g_ns2(), 1, MBPS_54, 1);
    run.backoffs(0, &[(14, 15)]);
    run.offer(0, 1300, 1);
    run.step();
    assert_close(run.now, us(34.0 + 14.0 * 9.0 + 20.0 + 10_672.0 / 54.0));
    run.step();
    assert_close(run.now, us(34.0 + 14.0 * 9.0 + 20.0 + 10_672.0 / 54.0 + 16.0 + 20.0 + 112.0 / 6.0));
}

/// Two stations: the lesser backoff wins, the other's is frozen, and goes on after DIFS.
#[test]
fn backoffs_freeze() {
    let mut run = Run::cell_of(&b(), 2, MBPS_11, 1);
    // The medium is busy with a first frame of station 0 when station 1 gets one.
    run.backoffs(0, &[(3, 32), (9, 32)]);
    run.backoffs(1, &[(5, 32)]);
    run.offer(0, 1300, 2);
    run.now = us(100.0);
    run.offer(1, 1300, 2);
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    let mut end = DIFS + DATA + ANSWER;
    assert_close(run.now, us(end));
    run.offer(0, 1300, 2);
    // 3 slots against 5.
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    end += DIFS + 3.0 * SLOT + DATA + ANSWER;
    assert_close(run.now, us(end));
    // 2 left, against 9.
    run.offer(0, 1300, 2);
    assert_eq!((run.step(), run.step()), (delivered(1), sent(1)));
    end += DIFS + 2.0 * SLOT + DATA + ANSWER;
    assert_close(run.now, us(end));
    // 7 left, and nobody else.
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    end += DIFS + 7.0 * SLOT + DATA + ANSWER;
    assert_close(run.now, us(end));
    assert_close(
        run.cell.stats(1).delay,
        us(DIFS + DATA + ANSWER + 2.0 * DIFS + 5.0 * SLOT + 2.0 * (DATA + ANSWER) - 100.0),
    );
    let busy = us(4.0 * (DATA + ANSWER));
    let medium = run.cell.medium(run.now);
    assert_close(medium.busy, busy);
    assert_close(medium.idle, run.now - busy);
    assert_eq!((medium.exchanges, medium.collisions, medium.errors), (4, 0, 0));
}

/// A frame that comes while nobody sends changes who is next; one that comes during a transmission does not.
#[test]
fn a_frame_may_come_before_the_one_that_was_to_be_next() {
    let mut run = Run::cell_of(&b(), 3, MBPS_11, 1);
    run.backoffs(0, &[(10, 32)]);
    run.offer(0, 1300, 3);
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    let idle = run.now;
    run.offer(0, 1300, 3);
    assert_close(run.cell.next().expect("its turn"), idle + us(DIFS + 10.0 * SLOT + DATA));
    // In the middle of a slot, the medium idle for longer than DIFS and no backoff left: at once.
    run.now = idle + us(DIFS + 95.0);
    run.offer(1, 1300, 3);
    let begin = run.now;
    assert_close(run.cell.next().expect("its turn"), begin + us(DATA));
    // Station 2 finds it busy.
    run.now = begin + us(1.0);
    run.backoffs(2, &[(30, 32)]);
    run.backoffs(1, &[(20, 32)]);
    run.offer(2, 1300, 3);
    assert_eq!((run.step(), run.step()), (delivered(1), sent(1)));
    assert_close(run.now, begin + us(DATA + ANSWER));
    // Station 0 had been through 4 slots and most of a fifth.
    let idle = run.now;
    assert_eq!(run.step(), delivered(0));
    assert_close(run.now, idle + us(DIFS + 6.0 * SLOT + DATA));
}

/// Between the end of an ack and the end of DIFS the medium is idle: a frame that comes then needs no backoff.
#[test]
fn a_frame_within_difs_is_sent_at_its_end() {
    let mut run = Run::cell_of(&b(), 2, MBPS_11, 1);
    run.backoffs(0, &[(0, 32)]);
    run.offer(0, 1300, 2);
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    let idle = run.now;
    run.now = idle + us(30.0);
    run.offer(1, 1300, 2);
    assert_close(run.cell.next().expect("its turn"), idle + us(DIFS + DATA));
    // Station 0, whose backoff was 0, would begin in the same instant.
    run.now = idle + us(40.0);
    run.offer(0, 500, 2);
    run.backoffs(0, &[(63, 64)]);
    run.backoffs(1, &[(0, 64)]);
    assert_eq!(run.step(), vec![]);
    assert_close(run.now, idle + us(DIFS + DATA));
    // Nobody could read it: EIFS.
    assert_eq!(run.step(), delivered(1));
    assert_close(run.now, idle + us(DIFS + DATA + EIFS + DATA));
    let stats = run.cell.stats(0);
    assert_eq!((stats.attempts, stats.collisions, stats.retries), (2, 1, 0));
    // 500 bytes are 192 + ceil(8 * 536/11) = 582 us.
    assert_close(stats.airtime, us(DATA + 582.0));
}

/// Two that always draw the middle of what they may collide until they give up: 7 attempts, CW 31 to 1023.
#[test]
fn cw_doubles_until_the_frame_is_given_up() {
    let mut run = Run::cell_of(&b(), 2, MBPS_11, 1);
    let mut end = DIFS + DATA;
    run.offer(0, 1300, 2);
    run.offer(1, 1300, 2);
    for of in [64, 128, 256, 512, 1024, 1024] {
        run.backoffs(0, &[(of / 2, of)]);
        run.backoffs(1, &[(of / 2, of)]);
        assert_eq!(run.step(), vec![]);
        assert_close(run.now, us(end));
        end += EIFS + f64::from(of / 2) * SLOT + DATA;
    }
    // The first backoff of the next frame is one of 32 again.
    run.backoffs(0, &[(31, 32)]);
    run.backoffs(1, &[(17, 32)]);
    assert_eq!(run.step(), vec![given_up(0), given_up(1)]);
    assert_close(run.now, us(end));
    run.offer(0, 1300, 2);
    run.offer(1, 1300, 2);
    assert_eq!(run.step(), delivered(1));
    assert_close(run.now, us(end + EIFS + 17.0 * SLOT + DATA));
    let stats = run.cell.stats(0);
    assert_eq!((stats.attempts, stats.collisions, stats.retries, stats.given_up), (7, 7, 6, 1));
    assert_close(stats.delay, us(end));
    assert_eq!(run.cell.medium(run.now).collisions, 7);
}

/// With the standard's ACKTimeout, 10 + 20 + 192 us, who collided begins 92 us before the others: DIFS after it, or after the end of the
/// longest frame.
#[test]
fn with_an_ack_timeout_who_collided_is_ahead() {
    let params = Params { ack_timeout: Some(us(222.0)), ..b() };
    let mut run = Run::cell_of(&params, 3, MBPS_11, 1);
    run.offer(0, 1300, 3);
    run.offer(1, 20, 3);
    run.now = us(60.0);
    run.backoffs(2, &[(0, 32)]);
    run.offer(2, 1300, 3);
    run.backoffs(0, &[(5, 64)]);
    run.backoffs(1, &[(6, 64)]);
    assert_eq!(run.step(), vec![]);
    let end = run.now;
    assert_close(end, us(DIFS + DATA));
    // 192 + ceil(8 * 56/11) = 233 us: its timeout was over before the other's end. 6 slots after DIFS are before all else.
    let begin = end + us(DIFS + 6.0 * SLOT);
    assert_eq!(run.step(), delivered(1));
    assert_close(run.now, begin + us(233.0));
    assert_eq!(run.step(), sent(1));
    // Nothing of station 0's five slots has gone by, which begin 272 us after the collision, nor of EIFS.
    let end = run.now;
    assert_eq!(run.step(), delivered(2));
    assert_close(run.now, end + us(DIFS + DATA));
    run.step();
    let end = run.now;
    run.backoffs(1, &[(20, 32)]);
    assert_eq!(run.step(), delivered(0));
    assert_close(run.now, end + us(DIFS + 5.0 * SLOT + DATA));
}

/// RTSs collide for 272 us, and are given up at the short limit; data frames that are lost after them, at the long one.
#[test]
fn rts_have_a_limit_of_their_own() {
    let params = Params { rts_threshold: Bytes::ZERO, short_retry_limit: 2, ..Params::b() };
    let mut run = Run::cell_of(&params, 2, MBPS_11, 1);
    run.offer(0, 1300, 2);
    run.offer(1, 1300, 2);
    run.backoffs(0, &[(1, 64)]);
    run.backoffs(1, &[(1, 64)]);
    assert_eq!(run.step(), vec![]);
    assert_close(run.now, us(50.0 + 272.0));
    assert_eq!(run.step(), vec![given_up(0), given_up(1)]);
    assert_close(run.now, us(50.0 + 272.0 + 364.0 + 20.0 + 272.0));
    assert_close(run.cell.stats(1).airtime, us(2.0 * 272.0));
    // The same with an EIFS that is given.
    let params = Params { eifs: Some(us(342.0)), ..params };
    let mut run = Run::cell_of(&params, 2, MBPS_11, 1);
    run.offer(0, 1300, 2);
    run.offer(1, 1300, 2);
    run.backoffs(0, &[(1, 64)]);
    run.backoffs(1, &[(1, 64)]);
    run.step();
    run.step();
    assert_close(run.now, us(50.0 + 272.0 + 342.0 + 20.0 + 272.0));

    let lossy = StationParams { error_rate: Ratio::new(1.0), ..StationParams::at(MBPS_11) };
    for (threshold, attempts) in [(0, 4), (2347, 7)] {
        let params = Params { rts_threshold: Bytes::new(threshold), ..Params::b() };
        let mut run = Run::new(&params, &[lossy, StationParams::ACCESS_POINT], 1);
        run.offer(0, 1300, 1);
        for _ in 1..attempts {
            assert_eq!(run.step(), vec![]);
        }
        assert_eq!(run.step(), vec![given_up(0)]);
        let stats = run.cell.stats(0);
        assert_eq!(
            (stats.attempts, stats.errors, stats.collisions, stats.given_up),
            (attempts, attempts, 0, 1)
        );
    }
}

/// A frame lost by an error: the sender and all who read it hold still for the ack, the receiver for EIFS.
#[test]
fn a_lost_frame_is_sent_again() {
    let lossy = StationParams { error_rate: Ratio::new(0.5), ..StationParams::at(MBPS_54) };
    let mut run =
        Run::new(&Params::g(), &[lossy, StationParams::ACCESS_POINT, StationParams::at(MBPS_54)], 1);
    run.offer(0, 1300, 1);
    run.now = us(29.0);
    run.numbers[1].given.push_back(0.0);
    run.offer(1, 1300, 2);
    run.numbers[2].given.push_back(0.0);
    run.offer(2, 1300, 1);
    // Below a half is lost; then 20 of 32 slots.
    run.numbers[0].given.extend([0.49, 20.5 / 32.0]);
    assert_eq!(run.step(), vec![]);
    assert_close(run.now, us(28.0 + 226.0));
    // Station 2 begins SIFS, 34 us and DIFS later, the access point only 16 us after: an ack at 6 Mb/s has 4 symbols more.
    assert_eq!(run.step(), delivered(2));
    assert_close(run.now, us(28.0 + 226.0 + 44.0 + 28.0 + 226.0));
    assert_eq!(run.step(), sent(2));
    assert_eq!(run.step(), delivered(1));
    assert_close(run.now, us(28.0 + 226.0 + 44.0 + 28.0 + 226.0 + 44.0 + 28.0 + 226.0));
    run.step();
    let end = run.now;
    // None of the 20 slots has gone by.
    run.numbers[0].given.push_back(0.5);
    assert_eq!(run.step(), delivered(0));
    assert_close(run.now, end + us(28.0 + 20.0 * 9.0 + 226.0));
    let stats = run.cell.stats(0);
    assert_eq!((stats.attempts, stats.errors, stats.retries), (2, 1, 1));
    assert_eq!(run.cell.medium(run.now).errors, 1);
}

/// A frame goes at the rate of the station that is not the access point, and between two stations at the lower.
#[test]
fn rates_are_those_of_the_stations() {
    let stations =
        [StationParams::ACCESS_POINT, StationParams::at(MBPS_11), StationParams::at(Rate::from_mbps(2.0))];
    for (from, to, data) in [(0, 1, 1164.0), (1, 0, 1164.0), (0, 2, 5536.0), (2, 0, 5536.0), (1, 2, 5536.0)] {
        let mut run = Run::new(&b(), &stations, 1);
        run.offer(from, 1300, to);
        run.step();
        assert_close(run.now, us(50.0 + data));
    }
}

#[test]
fn a_new_rate_is_that_of_the_next_frame() {
    let mut run = Run::cell_of(&b(), 1, MBPS_11, 1);
    run.backoffs(0, &[(0, 32)]);
    run.offer(0, 1300, 1);
    // Not begun: 8 * 1336/2 = 5344 us.
    run.cell.set_rate(us(50.0), 0, Rate::from_mbps(2.0));
    assert_close(run.cell.next().expect("its end"), us(50.0 + 192.0 + 5344.0));
    // Begun.
    run.cell.set_rate(us(51.0), 0, MBPS_11);
    assert_eq!(run.step(), delivered(0));
    assert_close(run.now, us(50.0 + 192.0 + 5344.0));
    run.cell.set_rate(run.now, 0, Rate::from_mbps(5.5));
    assert_eq!(run.step(), sent(0));
    let idle = run.now;
    run.offer(0, 1300, 1);
    run.step();
    assert_close(run.now, idle + us(50.0 + 192.0 + 1944.0));
}

/// Table 1 of Abrantes and Ricardo 2006, factor 20: taken to the letter, and with what the PHY adds.
#[test]
fn a_scaled_cell_is_faster() {
    let scaled = |scale_plcp| Params { scale: Ratio::new(20.0), scale_plcp, ..b() };
    // 220 Mb/s: 192 us and ceil(48.6) us; 20 Mb/s: 192 + 5.6, but in whole microseconds; SIFS 0.5, slot 1 us.
    let mut run = Run::cell_of(&scaled(false), 1, MBPS_11, 1);
    run.offer(0, 1300, 1);
    run.step();
    assert_close(run.now, us(2.5 + 192.0 + 49.0));
    run.step();
    assert_close(run.now, us(2.5 + 192.0 + 49.0 + 0.5 + 192.0 + 6.0));
    // With the PHY everything is a twentieth.
    let mut run = Run::cell_of(&scaled(true), 1, MBPS_11, 1);
    run.offer(0, 1300, 1);
    run.step();
    assert_close(run.now, us((DIFS + DATA) / 20.0));
    run.step();
    assert_close(run.now, us((DIFS + DATA + ANSWER) / 20.0));
}

/// ns-2 rounds 16 us and an ack of 38.667 us to 55: who has just sent is a third of a microsecond ahead of the others.
#[test]
fn in_ns_2_a_rounded_reservation_decides_ties() {
    let mut run = Run::cell_of(&Params::g_ns2(), 2, MBPS_54, 1);
    run.backoffs(0, &[(0, 15), (3, 15)]);
    run.backoffs(1, &[(3, 15)]);
    run.offer(0, 1300, 2);
    run.now = us(35.0);
    run.offer(1, 1300, 2);
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    let end = run.now;
    run.backoffs(0, &[(14, 15)]);
    run.offer(0, 1300, 2);
    let data = 20.0 + 10_672.0 / 54.0;
    assert_eq!((run.step(), run.step()), (delivered(0), sent(0)));
    assert_close(run.now, end + us(34.0 + 27.0 + data + 16.0 + 20.0 + 112.0 / 6.0));
    // Station 1 has heard 2 slots and most of the third.
    let end = run.now;
    assert_eq!(run.step(), delivered(1));
    assert_close(run.now, end + us(1.0 / 3.0 + 34.0 + 9.0 + data));
}

/// In ns-2 the others wait for EIFS, 364 us, and DIFS after a collision, and who was longest for 10 + 304 + 4 us and DIFS.
#[test]
fn in_ns_2_who_sent_longest_waits_least() {
    let mut run = Run::cell_of(&Params::b_ns2(), 2, MBPS_11, 1);
    run.backoffs(0, &[(3, 31), (0, 63)]);
    run.backoffs(1, &[(3, 31), (0, 63)]);
    run.offer(0, 1300, 2);
    run.offer(1, 1200, 2);
    assert_eq!(run.step(), vec![]);
    let end = run.now;
    let data = 192.0 + 10_672.0 / 11.0;
    assert_close(end, us(50.0 + 60.0 + data));
    assert_eq!(run.step(), delivered(0));
    assert_close(run.now, end + us(318.0 + 50.0 + data));
    // With frames of one length both have heard the other's end.
    let mut run = Run::cell_of(&Params::b_ns2(), 2, MBPS_11, 1);
    run.backoffs(0, &[(3, 31), (5, 63)]);
    run.backoffs(1, &[(3, 31), (9, 63)]);
    run.offer(0, 1300, 2);
    run.offer(1, 1300, 2);
    assert_eq!(run.step(), vec![]);
    let end = run.now;
    assert_eq!(run.step(), delivered(0));
    assert_close(run.now, end + us(364.0 + 50.0 + 100.0 + data));
}

/// A receiver that could not read a frame waits for EIFS and keeps no reservation: where acks last longer than that, it is ahead of
/// those who do, and a frame that comes after its EIFS goes at once.
#[test]
fn who_could_not_read_waits_for_eifs_alone() {
    let params = Params { eifs: Some(Time::from_micros(100)), ..b() };
    let lossy = StationParams { error_rate: Ratio::new(0.5), ..StationParams::at(MBPS_11) };
    let mut run = Run::new(&params, &[lossy, StationParams::at(MBPS_11)], 1);
    run.numbers[0].given.push_back(0.0); // lost
    run.backoffs(0, &[(60, 64)]);
    run.offer(0, 1300, 1);
    assert_eq!(run.step(), []);
    assert_close(run.now, us(DIFS + DATA));
    // Up to 314 us after that the others would keep quiet for the ack.
    run.now += us(200.0);
    run.numbers[1].given.push_back(0.9); // not lost
    run.offer(1, 1300, 0);
    assert_eq!(run.step(), delivered(1));
    assert_close(run.now, us(DIFS + DATA + 200.0 + DATA));
}

//! Frames that a monitor receives from a cell.

use super::any::{doings, params, run, run_and_hear};
use super::{Run, assert_close, us};
use flowstamp_laws::units::{Bytes, Rate};
use flowstamp_scenario::wireless::Preamble;
use flowstamp_sim::medium::dcf::{Kind, Params, StationParams, Transmission};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// All frames of one packet of 1300 bytes in a cell that has been idle.
fn exchange(params: &Params, mbps: f64) -> Vec<Transmission> {
    let mut run = Run::cell_of(params, 1, Rate::from_mbps(mbps), 1);
    run.cell.listen();
    run.offer(0, 1300, 1);
    run.step();
    run.step();
    run.cell.heard()
}

/// Times of `by_hand.rs`; what is reserved is what is left of the exchange (802.11-2012, 8.3.1).
#[test]
fn an_exchange_frame_by_frame() {
    let params = Params { rts_threshold: Bytes::new(1335), ..Params::b() };
    let heard = exchange(&params, 11.0);
    // RTS 272 us, CTS 248, data 1164, ack 248, SIFS 10; 192 of each are preamble and header.
    let expected = [
        (Kind::Rts, 0, 50.0, 2.0, 3 * 10 + 248 + 1164 + 248),
        (Kind::Cts, 1, 50.0 + 282.0, 2.0, 2 * 10 + 1164 + 248),
        (Kind::Data, 0, 50.0 + 282.0 + 258.0, 11.0, 10 + 248),
        (Kind::Ack, 1, 50.0 + 282.0 + 258.0 + 1174.0, 2.0, 0),
    ];
    assert_eq!(heard.len(), expected.len());
    for (frame, (kind, from, begin, mbps, duration_us)) in heard.iter().zip(expected) {
        assert_eq!((frame.kind, frame.from, frame.to), (kind, from, 1 - from));
        assert_close(frame.begin, us(begin));
        assert_close(frame.mpdu, us(begin + 192.0));
        assert_eq!((frame.rate, frame.duration_us), (Rate::from_mbps(mbps), duration_us));
        let expected = (0, 0, false, true, false);
        assert_eq!((frame.sequence, frame.failed, frame.retry, frame.good, frame.short_preamble), expected);
    }
}

#[test]
fn preambles_are_those_of_the_rate() {
    let params = Params { preamble: Preamble::Short, basic_rates: vec![Rate::from_mbps(1.0)], ..Params::b() };
    let heard = exchange(&params, 5.5);
    assert_eq!(heard.iter().map(|f| f.short_preamble).collect::<Vec<_>>(), [true, false]);
    // 96 us, and 192 before an ack at 1 Mb/s, which lasts 304.
    assert_close(heard[0].mpdu, us(50.0 + 96.0));
    assert_eq!(heard[0].duration_us, 10 + 304);
    // OFDM has one preamble, of 20 us. An ack at 24 Mb/s: 20 + 8 + 6 us.
    let heard = exchange(&Params::g(), 54.0);
    assert!(heard.iter().all(|f| !f.short_preamble));
    assert_close(heard[0].mpdu, us(28.0 + 20.0));
    assert_eq!(heard[0].duration_us, 10 + 34);
}

/// A rate that changes while a frame is under way is that of the next.
#[test]
fn a_frame_ends_at_the_rate_at_which_it_began() {
    let mut run = Run::cell_of(&Params::b(), 1, Rate::from_mbps(11.0), 1);
    run.cell.listen();
    run.offer(0, 1300, 1);
    run.now = us(300.0);
    run.backoffs(1, &[(3, 32)]);
    run.offer(1, 100, 0); // notices that the medium is busy
    run.cell.set_rate(run.now, 0, Rate::from_mbps(1.0));
    for _ in 0..4 {
        run.step();
    }
    let rates: Vec<_> = run.cell.heard().iter().map(|f| (f.kind, f.rate.bps() * 1e-6)).collect();
    assert_eq!(rates, [(Kind::Data, 11.0), (Kind::Ack, 2.0), (Kind::Data, 1.0), (Kind::Ack, 1.0)]);
}

#[test]
fn who_collides_is_heard_and_not_read() {
    let mut run = Run::new(&Params::b(), &[StationParams::at(Rate::from_mbps(11.0)); 2], 1);
    run.cell.listen();
    run.offer(0, 1300, 1);
    run.offer(1, 40, 0);
    run.backoffs(0, &[(0, 64)]);
    run.backoffs(1, &[(5, 64)]);
    for _ in 0..3 {
        run.step();
    }
    let heard: Vec<_> =
        run.cell.heard().iter().map(|f| (f.kind, f.from, f.good, f.failed, f.retry)).collect();
    let expected = [
        (Kind::Data, 0, false, 0, false),
        (Kind::Data, 1, false, 0, false),
        (Kind::Data, 0, true, 1, true),
        (Kind::Ack, 1, true, 1, false),
    ];
    assert_eq!(heard, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Listening changes nothing, and what is heard is what stations count.
    #[test]
    fn what_is_heard_is_what_is_counted(
        params in params(),
        error_rates in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0f64..1.0], 5),
        doings in doings(),
        seed in 0u64..1000,
    ) {
        let (_, expected) = run(&params, &error_rates, &doings, seed);
        let (mut run, told) = run_and_hear(&params, &error_rates, &doings, seed);
        prop_assert_eq!(expected, told);
        let heard = run.cell.heard();
        for station in 0..6 {
            let stats = run.cell.stats(station);
            let count = |of: &dyn Fn(&&Transmission) -> bool| heard.iter().filter(of).count() as u64;
            let rts = |f: &&Transmission| f.from == station && f.kind == Kind::Rts;
            let data = |f: &&Transmission| f.from == station && f.kind == Kind::Data;
            // A data frame behind an RTS is of the attempt that this began; so is a CTS.
            let cts = count(&|f| f.to == station && f.kind == Kind::Cts);
            prop_assert_eq!(stats.attempts, count(&|f| rts(f) || data(f)) - cts);
            prop_assert_eq!(cts, count(&|f| rts(f) && f.good));
            prop_assert_eq!(stats.sent, count(&|f| f.to == station && f.kind == Kind::Ack));
            prop_assert_eq!(stats.sent, count(&|f| data(f) && f.good));
            prop_assert_eq!(stats.collisions + stats.errors, count(&|f| f.from == station && !f.good));
            // The first frame of a packet is not a retry, and all others are.
            let mut times_of = BTreeMap::new();
            let mut retries = 0;
            for frame in heard.iter().filter(|f| data(f) || rts(f)) {
                let seen: &mut (u64, u64) = times_of.entry(frame.sequence).or_default();
                prop_assert_eq!(frame.retry, frame.kind == Kind::Data && seen.0 > 0);
                prop_assert_eq!(frame.failed > 0, seen.1 > 0);
                seen.0 += u64::from(frame.kind == Kind::Data);
                seen.1 += u64::from(!frame.good);
                let announced = frame.kind == Kind::Data && params.rts_threshold.get() < u64::from(frame.bytes) + params.overhead();
                retries += u64::from(!announced && frame.failed > 0);
            }
            prop_assert_eq!(stats.retries, retries);
            prop_assert_eq!(stats.offered, times_of.len() as u64);
            prop_assert!(times_of.keys().copied().eq(0..stats.offered));
        }
        for frame in &heard {
            prop_assert!(frame.begin < frame.mpdu || params.plcp.min(params.plcp_short).as_ps() == 0);
            prop_assert_eq!(frame.kind == Kind::Ack, frame.duration_us == 0);
        }
    }
}

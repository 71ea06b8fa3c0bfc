//! The receiver against a naive model: reassembly, SACK blocks, the ECN echo, delayed acks and merged stamps.

use flowstamp_laws::sender::{Echo, Recovery};
use flowstamp_laws::transport::{AckInfo, Agreed, DataPacket, MAX_SACK_BLOCKS, Params, Receiver};
use flowstamp_laws::{Stamp, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn packet(seq: u32, stamp: &Stamp) -> DataPacket<'_> {
    DataPacket { seq, ce: false, cwr: false, sent_at: Time::from_millis(u64::from(seq) + 1), stamp, bits: 0 }
}

fn get(receiver: &mut Receiver, seq: u32) -> Option<AckInfo> {
    let stamp = Stamp([f64::from(seq), 1.0, 0.0]);
    receiver.on_data(Time::from_millis(u64::from(seq) + 100), &packet(seq, &stamp), |pending, newer| {
        pending.0[1] += newer.0[1];
    })
}

fn delayed() -> Receiver {
    Receiver::new(&Params { delayed_acks: true, ..Params::default() }, Recovery::Sack)
}

#[test]
fn blocks_are_most_recent_first() {
    // RFC 2018 section 4, as its example in section 7.
    let mut r = Receiver::new(&Params::default(), Recovery::Sack);
    let mut blocks = |seq| get(&mut r, seq).map(|a| (a.cumulative, a.sack.as_slice().to_vec())).expect("ack");
    assert_eq!(blocks(0), (1, vec![]));
    assert_eq!(blocks(2), (1, vec![(2, 3)]));
    assert_eq!(blocks(4), (1, vec![(4, 5), (2, 3)]));
    assert_eq!(blocks(6), (1, vec![(6, 7), (4, 5), (2, 3)]));
    assert_eq!(blocks(8), (1, vec![(8, 9), (6, 7), (4, 5)]));
    assert_eq!(blocks(3), (1, vec![(2, 5), (8, 9), (6, 7)]));
    assert_eq!(blocks(1), (5, vec![(8, 9), (6, 7)]));
    assert_eq!(blocks(5), (7, vec![(8, 9)]));
    assert_eq!(blocks(7), (9, vec![]));
    assert_eq!(r.delivered(), 9);
}

#[test]
fn every_second_packet_is_acknowledged() {
    let mut r = delayed();
    assert_eq!(get(&mut r, 0), None);
    let ack = get(&mut r, 1).expect("the second packet");
    assert_eq!(ack.cumulative, 2);
    assert_eq!(ack.sent_at, Time::from_millis(1), "RFC 7323: the earliest packet's");
    assert_eq!(ack.stamp, Stamp([0.0, 2.0, 0.0]), "both stamps, merged");
    assert_eq!(r.deadline(), Time::MAX);
    assert_eq!(get(&mut r, 2), None);
}

#[test]
fn a_delayed_ack_is_sent_at_its_deadline() {
    let mut r = delayed();
    assert_eq!(get(&mut r, 0), None);
    assert_eq!(r.deadline(), Time::from_millis(200));
    assert_eq!(r.on_timer(Time::from_millis(199)), None);
    let ack = r.on_timer(Time::from_millis(200)).expect("due");
    assert_eq!((ack.cumulative, ack.stamp), (1, Stamp([0.0, 1.0, 0.0])));
    assert_eq!(r.deadline(), Time::MAX);
    assert_eq!(r.on_timer(Time::from_secs(9)), None);
    // The next packet begins a new pair: its stamp is its own.
    assert_eq!(get(&mut r, 1), None);
    assert_eq!(get(&mut r, 2).expect("second").stamp, Stamp([1.0, 2.0, 0.0]));
}

#[test]
fn gaps_and_copies_are_acknowledged_at_once() {
    let mut r = delayed();
    assert_eq!(get(&mut r, 0), None);
    let ack = get(&mut r, 2).expect("above a gap");
    assert_eq!((ack.cumulative, ack.sent_at), (1, Time::from_millis(1)));
    assert_eq!(get(&mut r, 2).expect("a copy above").sack.as_slice(), [(2, 3)]);
    assert_eq!(get(&mut r, 0).expect("a copy below").cumulative, 1);
    assert_eq!(get(&mut r, 1).expect("fills the gap").cumulative, 3);
    assert_eq!(r.delivered(), 3);
    assert_eq!(get(&mut r, 3), None);
}

#[test]
fn the_echo_lasts_until_cwr() {
    let mut r = Receiver::new(&Params::default(), Recovery::Sack);
    let stamp = Stamp::default();
    let mut echo = |seq, ce, cwr| {
        let data = DataPacket { ce, cwr, ..packet(seq, &stamp) };
        r.on_data(Time::ZERO, &data, |_, _| {}).expect("ack").ecn_echo
    };
    assert!(!echo(0, false, false));
    assert!(echo(1, true, false));
    assert!(echo(2, false, false));
    assert!(!echo(3, false, true));
    assert!(echo(4, true, true), "a mark on the packet with CWR is a new one");
    assert!(echo(5, false, false));
}

#[test]
fn a_delayed_ack_echoes_a_mark_on_any_of_its_packets() {
    let stamp = Stamp::default();
    let mut r = delayed();
    let first = DataPacket { ce: true, ..packet(0, &stamp) };
    assert_eq!(r.on_data(Time::ZERO, &first, |_, _| {}), None);
    let second = DataPacket { cwr: true, ..packet(1, &stamp) };
    assert!(r.on_data(Time::ZERO, &second, |_, _| {}).expect("ack").ecn_echo);
    assert_eq!(r.on_data(Time::ZERO, &packet(2, &stamp), |_, _| {}), None);
    assert!(!r.on_data(Time::ZERO, &packet(3, &stamp), |_, _| {}).expect("ack").ecn_echo);
}

/// RFC 8257 section 3.2 and figure 10 of its paper: what a delayed ack answers has one mark.
#[test]
fn an_echo_per_packet_holds_for_all_that_an_ack_answers() {
    let stamp = Stamp::default();
    let agreed = Agreed { echo: Echo::PerPacket, ..Recovery::Sack.into() };
    let mut r = Receiver::new(&Params { delayed_acks: true, ..Params::default() }, agreed);
    let mut get = |seq, ce| {
        let data = DataPacket { ce, ..packet(seq, &stamp) };
        let acks = [r.before_data(ce), r.on_data(Time::ZERO, &data, |_, _| {})];
        acks.into_iter().flatten().map(|a| (a.cumulative, a.ecn_echo)).collect::<Vec<_>>()
    };
    assert_eq!(get(0, false), []);
    assert_eq!(get(1, true), [(1, false)], "the packet before, at once");
    assert_eq!(get(2, true), [(3, true)]);
    assert_eq!(get(3, true), []);
    assert_eq!(get(4, false), [(4, true)]);
    assert_eq!(get(6, true), [(5, false), (5, true)], "above a gap, at once");
    assert_eq!(get(5, false), [(7, false)], "fills the gap");
    assert_eq!(get(7, false), []);
    assert_eq!(get(8, false), [(9, false)]);
}

fn runs_above(have: &BTreeSet<u32>, next: u32) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = vec![];
    for &s in have.range(next..) {
        match runs.last_mut() {
            Some(run) if run.1 == s => run.1 += 1,
            _ => runs.push((s, s + 1)),
        }
    }
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn agrees_with_a_naive_model(
        arrivals in prop::collection::vec(prop_oneof![3 => 0u32..40, 1 => 0u32..400], 1..400),
        delayed_acks: bool,
    ) {
        let mut r = Receiver::new(&Params { delayed_acks, ..Params::default() }, Recovery::Sack);
        let mut have = BTreeSet::new();
        // Runs by when they were last reported first, most recent first.
        let mut reported: Vec<(u32, u32)> = vec![];
        let (mut merged, mut acked) = (0.0, 0u32);
        for (n, offset) in arrivals.into_iter().enumerate() {
            // Arrivals crowd around the next packet in line, so that gaps open, close and merge.
            let seq = (r.next_expected() + offset).saturating_sub(5);
            let was_in_line = runs_above(&have, r.next_expected()).is_empty() && seq == r.next_expected();
            let ack = get(&mut r, seq);
            have.insert(seq);
            let next = (0..).find(|s| !have.contains(s)).expect("finite");
            prop_assert_eq!((r.next_expected(), r.delivered() as usize), (next, have.len()));
            // Duplicates that D-SACK (RFC 2883) would report: all arrivals except the first of each.
            prop_assert_eq!(r.copies() as usize, n + 1 - have.len());
            merged += 1.0;
            let Some(ack) = ack else {
                prop_assert!(delayed_acks && was_in_line, "arrival {} was not acknowledged", n);
                prop_assert!(next - acked <= 1);
                continue;
            };
            acked = next;
            prop_assert_eq!((ack.cumulative, ack.stamp.0[1]), (next, merged));
            merged = 0.0;
            let runs = runs_above(&have, next);
            let blocks = ack.sack.as_slice();
            prop_assert_eq!(blocks.len(), runs.len().min(MAX_SACK_BLOCKS));
            prop_assert!(blocks.iter().all(|b| runs.contains(b)), "{:?} of {:?}", blocks, runs);
            prop_assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), blocks.len());
            let mut expected: Vec<_> = runs.iter().copied().filter(|b| b.0 <= seq && seq < b.1).collect();
            expected.extend(reported.iter().filter(|b| runs.contains(b) && !expected.contains(b)).copied().collect::<Vec<_>>());
            expected.truncate(MAX_SACK_BLOCKS);
            prop_assert_eq!(&blocks[..expected.len()], &expected[..]);
            reported = blocks.to_vec();
        }
    }
}

//! Repair by count (Dukkipati 2007, section 6.3.1) over a pipe that loses what it is told to.

use flowstamp_laws::sender::{Ack, Congestion, FlowView, Recovery, SenderLaw};
use flowstamp_laws::transport::{AckInfo, AckPacket, DataPacket, Outgoing, Params, Receiver, Sender};
use flowstamp_laws::{Stamp, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

const PACKET: u32 = 1000;
const DELAY: Time = Time::from_millis(20);
const TX: Time = Time::from_micros(100);

/// A window that stays, and what it heard.
#[derive(Default)]
struct Fixed {
    window: u32,
    newly: u32,
    losses: u32,
}

impl SenderLaw for Fixed {
    type Params = ();
    fn new((): &(), flow: &FlowView) -> Self {
        Self { window: flow.initial_window as u32, ..Self::default() }
    }
    fn cwnd(&self) -> f64 {
        f64::from(self.window * PACKET)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.newly += ack.newly_acked;
    }
    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {
        self.losses += 1;
    }
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}

fn fixed(window: u32) -> Fixed {
    Fixed { window, ..Fixed::default() }
}

/// The path's effect on the n-th transmission and on the n-th ack.
struct Impairments {
    lose: Box<dyn Fn(usize) -> bool>,
    late: Box<dyn Fn(usize) -> u64>,
    /// A copy comes so much later than its original would.
    copy: Box<dyn Fn(usize) -> Option<u64>>,
    lose_ack: Box<dyn Fn(usize) -> bool>,
}

impl Default for Impairments {
    fn default() -> Self {
        Self {
            lose: Box::new(|_| false),
            late: Box::new(|_| 0),
            copy: Box::new(|_| None),
            lose_ack: Box::new(|_| false),
        }
    }
}

enum Event {
    Data(Outgoing, Time),
    Ack(AckInfo),
}

struct Run {
    sent: u32,
    lost: u32,
    /// The missing and the sent packets of each round of repair.
    rounds: Vec<(u32, u32)>,
}

/// Runs a flow of `length` packets to its end, by the sender's word.
fn run(params: &Params, length: u32, window: u32, path: &Impairments) -> Run {
    let mut law = fixed(window);
    let mut sender = Sender::new(params, Recovery::Count, Some(length));
    let mut receiver = Receiver::new(params, Recovery::Count);
    let (mut now, mut link_free, mut order, mut acks) = (Time::ZERO, Time::ZERO, 0u64, 0);
    let mut queue = BinaryHeap::new();
    let mut events: BTreeMap<u64, Event> = BTreeMap::new();
    let mut out = Run { sent: 0, lost: 0, rounds: vec![] };
    let (mut known, mut came) = (0, BTreeSet::new());
    let stamp = Stamp::default();
    for _ in 0..100_000 {
        while let Some(packet) = sender.next_packet(now, &law, PACKET, u32::MAX) {
            assert_eq!(packet.seq, out.sent, "every transmission has the next number");
            assert_eq!(packet.retransmission, out.sent >= length, "the flow goes first");
            if let (true, Some(round)) = (packet.retransmission, out.rounds.last_mut()) {
                round.1 += 1;
            }
            let n = out.sent as usize;
            out.sent += 1;
            link_free = link_free.max(now) + TX;
            let lost = (path.lose)(n);
            out.lost += u32::from(lost);
            let original = (!lost).then(|| (path.late)(n));
            for late in original.into_iter().chain((path.copy)(n)) {
                order += 1;
                queue.push(Reverse((link_free + DELAY + Time::from_micros(late), order)));
                events.insert(order, Event::Data(packet, now));
            }
        }
        if sender.is_complete() {
            assert!(
                receiver.delivered() >= length,
                "complete, but the receiver has {}",
                receiver.delivered()
            );
            assert_eq!(law.newly, length, "each packet is acknowledged once");
            assert_eq!(law.losses, 0, "the law hears of no loss");
            assert_eq!((sender.deadline(), sender.retransmissions()), (Time::MAX, out.sent - length));
            assert_eq!(sender.timeouts() as usize, out.rounds.len());
            return out;
        }
        let next = queue.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        now = next.min(sender.deadline()).min(receiver.deadline());
        assert!(now < Time::MAX, "nothing will happen any more");
        let mut ack = receiver.on_timer(now);
        if ack.is_none() && next == now {
            let (_, id) = queue.pop().expect("peeked").0;
            match events.remove(&id).expect("scheduled") {
                Event::Data(p, sent_at) => {
                    let data =
                        DataPacket { seq: p.seq, ce: false, cwr: p.cwr, sent_at, stamp: &stamp, bits: 0 };
                    ack = receiver.on_data(now, &data, |_, _| {});
                    came.insert(p.seq);
                    assert_eq!(receiver.delivered() as usize, came.len(), "a copy does not count");
                }
                Event::Ack(a) => {
                    known = known.max(a.cumulative);
                    let packet = AckPacket {
                        cumulative: a.cumulative,
                        sack: a.sack.as_slice(),
                        ecn_echo: a.ecn_echo,
                        sent_at: a.sent_at,
                        stamp: &a.stamp,
                        bits: a.bits,
                    };
                    sender.on_ack(now, &mut law, PACKET, &packet);
                    assert!(sender.flight() <= window, "more under way than the window");
                }
            }
        } else if ack.is_none() && sender.deadline() == now {
            let rounds = sender.timeouts();
            sender.on_timeout(now, &mut law);
            if sender.timeouts() > rounds {
                out.rounds.push((length - known, 0));
            }
        }
        if let Some(ack) = ack {
            acks += 1;
            if !(path.lose_ack)(acks - 1) {
                order += 1;
                queue.push(Reverse((now + DELAY, order)));
                events.insert(order, Event::Ack(ack));
            }
        }
    }
    panic!("no end in sight: {} of {length}", sender.unacked());
}

#[test]
fn what_is_missing_leaves_two_round_trips_after_the_last() {
    let mut law = fixed(100);
    let mut sender = Sender::new(&Params::default(), Recovery::Count, Some(10));
    let (rtt, stamp) = (Time::from_millis(40), Stamp::default());
    sender.on_answer(rtt, Time::ZERO);
    let take = |sender: &mut Sender, law: &Fixed, now| {
        core::iter::from_fn(|| sender.next_packet(now, law, PACKET, u32::MAX).map(|p| p.seq))
            .collect::<Vec<_>>()
    };
    assert_eq!(take(&mut sender, &law, rtt), (0..10).collect::<Vec<_>>());
    // Three are lost, the last among them. Duplicate acks and their blocks move nothing.
    for (received, top) in [(1, 1), (2, 2), (3, 4), (4, 5), (5, 7), (6, 8), (7, 9)] {
        let block = [(top - 1, top)];
        let ack = AckPacket {
            cumulative: received,
            sack: if top > received { &block } else { &[] },
            ecn_echo: false,
            sent_at: rtt,
            stamp: &stamp,
            bits: 0,
        };
        assert_eq!(sender.on_ack(rtt + rtt, &mut law, PACKET, &ack), 1);
        assert_eq!(take(&mut sender, &law, rtt + rtt), Vec::<u32>::new());
    }
    assert_eq!(sender.flight(), 1, "below the highest number that arrived nothing is under way");
    assert_eq!(sender.deadline(), rtt + rtt * 2);
    let mut now = sender.deadline();
    sender.on_timeout(now, &mut law);
    assert_eq!(take(&mut sender, &law, now), [10, 11, 12]);
    // Nothing of it arrives: the same again, after the same wait.
    assert_eq!(sender.deadline(), now + rtt * 2);
    now = sender.deadline();
    sender.on_timeout(now, &mut law);
    assert_eq!(take(&mut sender, &law, now), [13, 14, 15]);
    let ack = AckPacket {
        cumulative: 10,
        sack: &[(15, 16)],
        ecn_echo: false,
        sent_at: now,
        stamp: &stamp,
        bits: 0,
    };
    assert_eq!(sender.on_ack(now + rtt, &mut law, PACKET, &ack), 3);
    assert!(sender.is_complete());
    assert_eq!((sender.retransmissions(), sender.timeouts(), law.losses), (6, 2, 0));
}

#[test]
fn without_a_round_trip_time_the_wait_is_the_initial_timeout() {
    let params = Params { initial_rto: Some(Time::from_millis(700)), ..Params::default() };
    let mut law = fixed(4);
    let mut sender = Sender::new(&params, Recovery::Count, Some(4));
    let mut now = Time::ZERO;
    for round in 0..5 {
        let sent = core::iter::from_fn(|| sender.next_packet(now, &law, PACKET, u32::MAX)).count();
        assert_eq!((sent, sender.deadline()), (4, Time::from_millis(700 * (round + 1))), "no backoff");
        now = sender.deadline();
        sender.on_timeout(now, &mut law);
    }
}

#[test]
fn losses_do_not_hold_the_window() {
    // Every second packet is lost, five at a time: no acks, and so no sending, only if a whole window is lost.
    let path = Impairments { lose: Box::new(|n| n < 400 && n % 2 == 1), ..Impairments::default() };
    let run = run(&Params::default(), 400, 5, &path);
    assert_eq!((run.lost, run.sent), (200, 600));
    assert_eq!(run.rounds, [(200, 200)]);
}

#[test]
fn a_window_that_is_lost_whole_is_given_up_and_sending_goes_on() {
    let path = Impairments { lose: Box::new(|n| (5..10).contains(&n)), ..Impairments::default() };
    let run = run(&Params::default(), 100, 5, &path);
    assert_eq!((run.lost, run.sent, run.rounds), (5, 105, vec![(5, 5)]));
}

#[test]
fn a_lost_last_ack_costs_a_packet_sent_in_vain() {
    let path = Impairments { lose_ack: Box::new(|n| n == 19), ..Impairments::default() };
    let run = run(&Params::default(), 20, 5, &path);
    assert_eq!((run.lost, run.sent, run.rounds), (0, 21, vec![(1, 1)]));
}

/// Each transmission has a number of its own, so that its copies are known for what they are, right behind it or long after: the
/// receiver needs all twenty, and the sender sends what is lost once more.
#[test]
fn a_copy_stands_for_nothing_that_is_missing() {
    for late in [0, 50_000] {
        let path = Impairments { copy: Box::new(move |_| Some(late)), ..Impairments::default() };
        let run = run(&Params::default(), 20, 5, &path);
        assert_eq!((run.lost, run.sent), (0, 20));
    }
    let path = Impairments {
        lose: Box::new(|n| n == 3),
        copy: Box::new(|n| (n % 4 != 3).then_some(0)),
        ..Impairments::default()
    };
    let run = run(&Params::default(), 20, 5, &path);
    assert_eq!((run.lost, run.sent, run.rounds), (1, 21, vec![(1, 1)]));
}

#[test]
fn a_stopped_flow_repairs_what_it_had_sent() {
    let mut law = fixed(3);
    let mut sender = Sender::new(&Params::default(), Recovery::Count, None);
    let stamp = Stamp::default();
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let now = sender.deadline();
    sender.on_timeout(now, &mut law);
    assert_eq!((sender.flight(), sender.deadline()), (0, Time::MAX), "an endless flow repairs nothing");
    sender.stop();
    assert_eq!((sender.length(), sender.is_complete()), (3, false));
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX), None);
    let later = sender.deadline();
    assert!(later > now && later < Time::MAX, "{later}");
    sender.on_timeout(later, &mut law);
    assert_eq!(core::iter::from_fn(|| sender.next_packet(later, &law, PACKET, u32::MAX)).count(), 3);
    let ack =
        AckPacket { cumulative: 3, sack: &[(5, 6)], ecn_echo: false, sent_at: later, stamp: &stamp, bits: 0 };
    sender.on_ack(later + DELAY, &mut law, PACKET, &ack);
    assert!(sender.is_complete());
}

#[test]
fn acks_of_what_was_never_sent_are_ignored() {
    let mut law = fixed(4);
    let mut sender = Sender::new(&Params::default(), Recovery::Count, Some(9));
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let stamp = Stamp::default();
    for (cumulative, sack) in [(5, &[][..]), (u32::MAX, &[]), (2, &[(8, 9)]), (3, &[(1, 2)])] {
        let ack =
            AckPacket { cumulative, sack, ecn_echo: false, sent_at: Time::ZERO, stamp: &stamp, bits: 0 };
        assert_eq!(sender.on_ack(DELAY, &mut law, PACKET, &ack), 0);
    }
    assert_eq!((sender.unacked(), sender.is_complete()), (0, false));
}

#[test]
fn a_mark_reaches_the_law_once_a_window() {
    let mut law = fixed(4);
    let mut sender = Sender::new(&Params::default(), Recovery::Count, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let stamp = Stamp::default();
    for cumulative in 1..=4 {
        let ack =
            AckPacket { cumulative, sack: &[], ecn_echo: true, sent_at: Time::ZERO, stamp: &stamp, bits: 0 };
        sender.on_ack(DELAY, &mut law, PACKET, &ack);
    }
    assert_eq!(law.losses, 1);
    assert!(sender.next_packet(DELAY, &law, PACKET, u32::MAX).is_some_and(|p| p.cwr));
}

fn coins(weight: f64) -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(prop::bool::weighted(weight), 0..400)
}

fn nth(coins: Vec<bool>) -> Box<dyn Fn(usize) -> bool> {
    Box::new(move |n| coins.get(n).copied().unwrap_or(false))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// With any losses, copies and delays, the flow ends, and not before the receiver has all (`run` asserts it).
    #[test]
    fn every_flow_completes_and_none_short(
        length in 1u32..250,
        window in 1u32..300,
        lost in coins(0.3),
        lost_acks in coins(0.3),
        late in prop::collection::vec(prop_oneof![4 => Just(0u64), 1 => 0u64..200_000], 1..50),
        copies in prop::collection::vec(prop::option::weighted(0.3, 0u64..200_000), 1..50),
        delayed_acks: bool,
    ) {
        let path = Impairments {
            lose: nth(lost),
            late: Box::new(move |n| late[n % late.len()]),
            copy: Box::new(move |n| copies[n % copies.len()]),
            lose_ack: nth(lost_acks),
        };
        let params = Params { delayed_acks, ..Params::default() };
        let run = run(&params, length, window, &path);
        for (missing, sent) in run.rounds {
            prop_assert!(sent <= missing, "{sent} sent for {missing}");
        }
    }

    /// On a path that keeps order and loses no acks, each lost packet costs one: no more and no fewer.
    #[test]
    fn as_many_packets_as_are_lost(length in 1u32..250, window in 1u32..300, lost in coins(0.3)) {
        let run = run(&Params::default(), length, window, &Impairments { lose: nth(lost), ..Impairments::default() });
        prop_assert_eq!(run.sent, length + run.lost);
        for (missing, sent) in run.rounds {
            prop_assert_eq!(sent, missing);
        }
    }

    /// With acks lost, a round sends what its sender does not know to have arrived, unless it learns of it meanwhile.
    #[test]
    fn a_round_sends_what_the_sender_takes_for_missing(
        length in 1u32..250,
        lost in coins(0.3),
        lost_acks in coins(0.5),
    ) {
        // The window lets each round leave at once, so that nothing can be learned in it.
        let path = Impairments { lose: nth(lost), lose_ack: nth(lost_acks), ..Impairments::default() };
        for (missing, sent) in run(&Params::default(), length, 1000, &path).rounds {
            prop_assert_eq!(sent, missing);
        }
    }
}

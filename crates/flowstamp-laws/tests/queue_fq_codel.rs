//! FQ-CoDel: turns and new flows by hand, the bound of deficit round robin, sparse flows, each queue's CoDel against the law by itself, the
//! buffer's limit, the hash against what a random one gives, and what must never happen.

use flowstamp_laws::queue::codel::{self, CoDel};
use flowstamp_laws::queue::fq_codel::{FqCodel, Joins, Params, Waits};
use flowstamp_laws::queue::{Arrival, Departure, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::{Bytes, Rate, Time};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const QUANTUM: u32 = 1514;

fn view() -> QueueView {
    let capacity = Rate::from_mbps(8.0);
    QueueView { limit: Limit::Packets(1_000_000), capacity, mean_packet_bytes: QUANTUM }
}

#[derive(Clone, Debug, PartialEq)]
struct Packet {
    flow: u64,
    number: u32,
    size: u32,
    since: Time,
    ecn_capable: bool,
}

impl Waits for Packet {
    fn size(&self) -> u32 {
        self.size
    }
    fn since(&self) -> Time {
        self.since
    }
    fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }
}

fn packet(flow: u64, number: u32, size: u32) -> Packet {
    Packet { flow, number, size, since: Time::ZERO, ecn_capable: false }
}

fn queues(params: &Params) -> FqCodel<Packet> {
    FqCodel::new(params, &view(), 0)
}

fn fill(packets: &[(u64, u32)]) -> FqCodel<Packet> {
    let mut queues = queues(&Params::default());
    for (number, (flow, size)) in packets.iter().enumerate() {
        queues.enqueue(*flow, packet(*flow, number as u32, *size));
    }
    queues
}

/// The departures if no packet has waited for long.
fn drain(queues: &mut FqCodel<Packet>) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| queues.dequeue(Time::ZERO))
        .map(|(packet, verdict)| {
            assert_eq!(verdict, Verdict::Enqueue);
            (packet.flow, packet.number)
        })
        .collect()
}

/// Flows that are alone in their queues.
fn apart(queues: &FqCodel<Packet>, count: usize) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    (0..).filter(|flow| seen.insert(queues.queue_of(*flow))).take(count).collect()
}

#[test]
fn defaults_are_the_published_ones() {
    // RFC 8290, sections 4.1 (64 packets), 5.2.5 (1024 queues), 5.2.6 (ECN on).
    let Params { target, interval, ecn, flows, quantum, drop_batch } = Params::default();
    assert_eq!((flows, drop_batch, ecn), (1024, 64, true));
    assert_eq!((target, interval, quantum), (None, None, None));
}

/// RFC 8290, section 4.2, by hand: turns of a quantum, and a flow that begins comes first.
#[test]
fn flows_take_turns_and_a_new_one_is_first() {
    let mut queues = fill(&[(1, 1514), (1, 1514), (1, 1514), (2, 757), (2, 757), (2, 757)]);
    let first = queues.dequeue(Time::ZERO).expect("there is one");
    assert_eq!((first.0.flow, first.0.number), (1, 0));
    queues.enqueue(3, packet(3, 9, 100));
    // 1 has had its quantum; 2 has two of half a quantum; then 3, which is new, and only then those that are old.
    assert_eq!(drain(&mut queues), [(2, 3), (2, 4), (3, 9), (1, 1), (2, 5), (1, 2)]);
}

/// Section 4.2: a new queue that is found empty goes to the end of the old ones, so that it is not new again at once.
#[test]
fn a_flow_that_comes_back_within_the_round_waits_for_its_turn() {
    let mut queues = fill(&[(1, 1514), (1, 1514), (1, 1514), (1, 1514)]);
    let numbers = |queues: &mut FqCodel<Packet>| queues.dequeue(Time::ZERO).map(|(p, _)| p.number);
    assert_eq!(numbers(&mut queues), Some(0));
    queues.enqueue(2, packet(2, 10, 100));
    assert_eq!(numbers(&mut queues), Some(10));
    // 2 is found empty as 1 is looked for, goes behind it, and what comes now is behind 1's turn; then it has credit from
    // before, 1414 bytes.
    assert_eq!(numbers(&mut queues), Some(1));
    queues.enqueue(2, packet(2, 11, 100));
    queues.enqueue(2, packet(2, 12, 100));
    assert_eq!(drain(&mut queues), [(2, 11), (2, 12), (1, 2), (1, 3)]);
    // Both are found empty as old ones, and leave: 2 is new again, before 1, which is so too, as it came first.
    queues.enqueue(2, packet(2, 13, 100));
    queues.enqueue(1, packet(1, 14, 100));
    assert_eq!(drain(&mut queues), [(2, 13), (1, 14)]);
}

/// Section 4.1: the queue with the most bytes, half of its packets, at most 64, from its head.
#[test]
fn the_longest_queue_gives_up_half_of_its_packets() {
    let lost = |queues: &mut FqCodel<Packet>| {
        let mut lost = Vec::new();
        queues.give_up(|packet| lost.push((packet.flow, packet.number)));
        lost
    };
    // The most packets are 2's, the most bytes 1's.
    let mut short =
        fill(&[(2, 100), (1, 1000), (1, 1000), (2, 100), (2, 100), (2, 100), (1, 1000), (1, 1000)]);
    assert_eq!(lost(&mut short), [(1, 1), (1, 2)]);
    assert_eq!(lost(&mut short), [(1, 6)]);
    // 1000 and 400 bytes: of one packet it is that one.
    assert_eq!(lost(&mut short), [(1, 7)]);
    assert_eq!(lost(&mut short), [(2, 0), (2, 3)]);
    let mut long = fill(&[(1, 1000); 200]);
    assert_eq!(lost(&mut long), (0..64).map(|n| (1, n)).collect::<Vec<_>>());
    let mut none = fill(&[]);
    assert!(lost(&mut none).is_empty() && none.longest_bytes() == 0);
}

/// A queue whose packets are given up is one that has been seen empty: RFC 8289, section 5.6, `first_above_time = 0`.
#[test]
fn a_queue_that_was_emptied_begins_its_interval_anew() {
    let params = Params { ecn: false, ..Params::default() };
    let mut queues = queues(&params);
    let ms = Time::from_millis;
    let join = |queues: &mut FqCodel<Packet>, n: u32, at| {
        for number in 0..n {
            queues.enqueue(1, Packet { since: at, ..packet(1, number, 1000) });
        }
    };
    join(&mut queues, 4, ms(0));
    // Waited 20 ms, with 3000 bytes behind: 100 ms run from here.
    assert_eq!(queues.dequeue(ms(20)).expect("one").1, Verdict::Enqueue);
    for _ in 0..2 {
        queues.give_up(|_| ());
    }
    assert!(queues.dequeue(ms(30)).is_none());
    join(&mut queues, 4, ms(90));
    // 110 ms after that the last one has waited too long, but not for an interval since the queue was empty.
    assert_eq!(queues.dequeue(ms(130)).expect("one").1, Verdict::Enqueue);
}

#[test]
fn one_that_fits_nowhere_is_lost_on_arrival() {
    let mut law = Joins::new(&Params::default(), &QueueView { limit: Limit::Bytes(3000), ..view() });
    let arrival = |size, queue_packets, idle_since| Arrival {
        now: Time::ZERO,
        size,
        flow: 1,
        label: None,
        queue_bytes: u64::from(queue_packets) * 1000,
        queue_packets,
        ecn_capable: true,
        l4s: false,
        idle_since,
    };
    assert_eq!(law.on_arrival(&arrival(3000, 0, None), || 0.0), Verdict::Enqueue);
    assert_eq!(law.on_arrival(&arrival(3001, 0, None), || 0.0), Verdict::Drop);
    assert_eq!(law.on_arrival(&arrival(3001, 0, Some(Time::ZERO)), || 0.0), Verdict::Enqueue);
    // Where others wait, the longest queue makes room.
    assert_eq!(law.on_arrival(&arrival(1000, 3, None), || 0.0), Verdict::Enqueue);
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: &Params| Joins::check(p).expect_err("a refusal").0;
    let default = Params::default();
    assert!(Joins::check(&default).is_ok());
    assert_eq!(name(&Params { flows: 0, ..default }), "flows");
    assert_eq!(name(&Params { flows: 65_537, ..default }), "flows");
    assert_eq!(name(&Params { drop_batch: 0, ..default }), "drop_batch");
    assert_eq!(name(&Params { quantum: Some(Bytes::new(255)), ..default }), "quantum");
    assert_eq!(name(&Params { interval: Some(Time::ZERO), ..default }), "interval");
    assert_eq!(name(&Params { target: Some(Time::from_millis(101)), ..default }), "target");
    assert!(Joins::check(&Params { quantum: Some(Bytes::new(300)), flows: 1, ..default }).is_ok());
}

/// m queues of which n flows at random take K: E[K] = m (1 - (1 - 1/m)^n), var[K] = m (m-1) (1 - 2/m)^n + m (1 - 1/m)^n - m^2 (1 - 1/m)^2n
/// (the occupancy problem). Numbers in a row, as a simulator's flows have, by a hundred salts: within five standard errors.
#[test]
fn flows_share_queues_as_often_as_by_chance() {
    for (m, n) in [(1024u32, 100u64), (1024, 1000), (7, 5)] {
        let params = Params { flows: m, ..Params::default() };
        let taken = |salt| {
            let queues = FqCodel::<Packet>::new(&params, &view(), salt);
            (0..n).map(|flow| queues.queue_of(flow << 16)).collect::<BTreeSet<_>>().len() as f64
        };
        let salts = 100;
        let mean = (0..salts).map(|salt| taken(salt * 0x1234_5678_9abc)).sum::<f64>() / salts as f64;
        let (m, n) = (f64::from(m), n as f64);
        let (one, two) = ((1.0 - 1.0 / m).powf(n), (1.0 - 2.0 / m).powf(n));
        let expected = m * (1.0 - one);
        let variance = m * (m - 1.0) * two + m * one - m * m * one * one;
        let error = (variance / salts as f64).sqrt();
        assert!(
            (mean - expected).abs() < 5.0 * error,
            "{m} queues, {n} flows: {mean}, expected {expected} +- {error}"
        );
    }
}

#[test]
fn a_large_packet_is_paid_for_with_turns() {
    // RFC 8290, section 5.2.4: of a quantum of 300 bytes a packet of 1500 takes five turns: credit 300, then -1200, and 0 after four more,
    // for which it waits again. Packets of 300 take one each.
    let mut queues = queues(&Params { quantum: Some(Bytes::new(300)), ..Params::default() });
    for number in 0..2 {
        queues.enqueue(1, packet(1, number, 1500));
    }
    for number in 0..8 {
        queues.enqueue(2, packet(2, number, 300));
    }
    let got = drain(&mut queues);
    let second = got.iter().position(|sent| *sent == (1, 1)).expect("it is sent");
    assert_eq!((got[0], got[second - 1]), ((1, 0), (2, 4)));
}

/// Packets that come and are sent.
#[derive(Clone, Debug)]
enum Step {
    Come { flow: u64, size: u32, ecn_capable: bool },
    Leave { gap_us: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let come = (0u64..6, 1u32..3000, any::<bool>());
    let come = come.prop_map(|(flow, size, ecn_capable)| Step::Come { flow, size, ecn_capable });
    prop::collection::vec(
        prop_oneof![3 => come, 2 => (0u64..5000).prop_map(|gap_us| Step::Leave { gap_us })],
        1..600,
    )
}

proptest! {
    /// Every packet that came has left, was lost or is queued; of a flow in the order in which it came. The backlog is
    /// never above the limit, and the flow that loses has the longest queue.
    #[test]
    fn packets_are_conserved_and_fit(
        steps in steps(),
        flows in 1u32..20,
        limit in 3000u64..60_000,
        drop_batch in 1u32..80,
        ecn: bool,
    ) {
        let params = Params {
            flows, drop_batch, ecn,
            interval: Some(Time::from_millis(5)),
            ..Params::default()
        };
        let mut queues = queues(&params);
        let mut waits: Vec<Packet> = Vec::new();
        let (mut now, mut number) = (Time::ZERO, 0);
        for step in steps {
            match step {
                Step::Come { flow, size, ecn_capable } => {
                    let packet = Packet { flow, number, size, since: now, ecn_capable };
                    number += 1;
                    waits.push(packet.clone());
                    queues.enqueue(flow, packet);
                    while waits.iter().map(|p| u64::from(p.size)).sum::<u64>() > limit {
                        let mut bytes = vec![(0, 0usize); flows as usize];
                        for packet in &waits {
                            let of = &mut bytes[queues.queue_of(packet.flow)];
                            *of = (of.0 + packet.size, of.1 + 1);
                        }
                        let most = bytes.iter().map(|b| b.0).max();
                        let mut lost = Vec::new();
                        queues.give_up(|packet| lost.push(packet));
                        let queue = queues.queue_of(lost[0].flow);
                        prop_assert_eq!(Some(bytes[queue].0), most);
                        // Section 4.1, rounded up.
                        prop_assert_eq!(lost.len(), bytes[queue].1.div_ceil(2).min(drop_batch as usize));
                        for packet in lost {
                            let first = waits.iter().position(|p| queues.queue_of(p.flow) == queue);
                            prop_assert_eq!(&waits.remove(first.expect("it waits")), &packet);
                        }
                    }
                }
                Step::Leave { gap_us } => {
                    now += Time::from_micros(gap_us);
                    let Some((packet, verdict)) = queues.dequeue(now) else {
                        prop_assert!(waits.is_empty());
                        continue;
                    };
                    let queue = queues.queue_of(packet.flow);
                    let first = waits.iter().position(|p| queues.queue_of(p.flow) == queue);
                    prop_assert_eq!(&waits.remove(first.expect("it waits")), &packet);
                    prop_assert!(verdict != Verdict::Mark || ecn && packet.ecn_capable);
                    prop_assert!(verdict != Verdict::Drop || !(ecn && packet.ecn_capable));
                }
            }
        }
        queues.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
        while let Some((packet, _)) = queues.dequeue(now) {
            let at = waits.iter().position(|p| *p == packet);
            waits.remove(at.expect("it waits"));
        }
        prop_assert!(waits.is_empty(), "{:?}", waits);
    }

    /// Flows that all have something: since they began together, all have sent equally, within a quantum and a packet;
    /// and for no more than a quantum where packets fill it. (Credits are above minus a packet and at most a quantum,
    /// and turns differ by one: Shreedhar and Varghese 1996, section IV.)
    #[test]
    fn backlogged_flows_have_equal_parts(
        count in 2usize..12,
        quantum in 256u32..4000,
        sizes in prop::collection::vec(40u32..3000, 1..50),
        part in prop::option::of(1u32..5),
    ) {
        let quantum = part.map_or(quantum, |part| quantum / part * part);
        let params = Params { quantum: Some(Bytes::new(u64::from(quantum))), ..Params::default() };
        let mut queues = queues(&params);
        let flows = apart(&queues, count);
        let mut sizes = sizes.into_iter().cycle();
        let mut size = || part.map_or_else(|| sizes.next().expect("endless"), |part| quantum / part);
        let mut largest = 0;
        for flow in &flows {
            for number in 0..100 {
                let size = size();
                largest = largest.max(size);
                queues.enqueue(*flow, packet(*flow, number, size));
            }
        }
        let mut sent = vec![(0u32, 0); count];
        while sent.iter().all(|(_, packets)| *packets < 100) {
            let (packet, _) = queues.dequeue(Time::ZERO).expect("all have something");
            let of = flows.iter().position(|flow| *flow == packet.flow).expect("one of them");
            sent[of] = (sent[of].0 + packet.size, sent[of].1 + 1);
            let (least, most) = (sent.iter().min().expect("some").0, sent.iter().max().expect("some").0);
            let bound = if part.is_some() { quantum } else { quantum + largest - 1 };
            prop_assert!(most - least <= bound, "{} and {}, a quantum of {}", most, least, quantum);
        }
    }

    /// Sections 1.3 and 4.2: a packet of a flow that has nothing waiting and has left the lists is before all of the backlogged ones, whenever it
    /// comes; those of several such flows go in the order in which they came.
    #[test]
    fn sparse_flows_go_first(
        count in 1usize..20,
        served in prop::collection::vec(0usize..60, 1..10),
        sparse in 1usize..5,
        size in 40u32..1500,
    ) {
        let mut queues = queues(&Params::default());
        let flows = apart(&queues, count + sparse);
        let (flows, sparse) = flows.split_at(count);
        for number in 0..1000 {
            for flow in flows {
                queues.enqueue(*flow, packet(*flow, number, 1000));
            }
        }
        // All have had their first turn: quanta of 1514 make two packets of 1000.
        for _ in 0..2 * count {
            queues.dequeue(Time::ZERO);
        }
        for packets in served {
            for flow in sparse {
                queues.enqueue(*flow, packet(*flow, 0, size));
            }
            for flow in sparse {
                prop_assert_eq!(queues.dequeue(Time::ZERO).expect("it waits").0.flow, *flow);
            }
            // They leave the lists once the others have had a turn: sparse is who sends less than a packet in a round.
            for _ in 0..2 * count + 2 + packets {
                prop_assert!(flows.contains(&queues.dequeue(Time::ZERO).expect("they wait").0.flow));
            }
        }
    }

    /// One flow: its packets fare as under CoDel alone.
    #[test]
    fn one_flow_alone_is_codel(
        target_us in 1u64..20_000,
        factor in 1u64..30,
        ecn: bool,
        steps in prop::collection::vec((1u64..400, 0u32..4, any::<bool>(), 40u32..1514), 50..800),
        scale in 1u64..200,
        quantum in 256u64..5000,
    ) {
        let (target, interval) = (Time::from_micros(target_us), Time::from_micros(target_us * factor));
        let (target, interval) = (Some(target), Some(interval));
        let params = Params { target, interval, ecn, quantum: Some(Bytes::new(quantum)), ..Params::default() };
        let mut ours = queues(&params);
        let mut law = CoDel::new(&codel::Params { target, interval, ecn }, &view());
        let mut alone: VecDeque<Packet> = VecDeque::new();
        let (mut now, mut number) = (Time::ZERO, 0);
        for (gap, arrivals, ecn_capable, size) in steps {
            now += Time::from_micros(gap * scale);
            for _ in 0..arrivals {
                let packet = Packet { flow: 5, number, size, since: now, ecn_capable };
                number += 1;
                ours.enqueue(5, packet.clone());
                alone.push_back(packet);
            }
            now += Time::from_micros(gap * scale / 2);
            loop {
                let expected = alone.pop_front().map(|packet| {
                    let behind = alone.iter().map(|p| u64::from(p.size)).sum();
                    let verdict = law.on_departure(&Departure {
                        now,
                        size: packet.size,
                        flow: 5,
                        sojourn: now - packet.since,
                        queue_bytes: behind,
                        queue_packets: alone.len() as u32,
                        ecn_capable: packet.ecn_capable,
                        l4s: false,
                    }, || 0.5);
                    (packet, verdict)
                });
                let got = ours.dequeue(now);
                prop_assert_eq!(&got, &expected);
                if got.is_none_or(|(_, verdict)| verdict != Verdict::Drop) {
                    break;
                }
            }
        }
    }
}

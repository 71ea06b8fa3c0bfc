//! Property tests of served links: packets are conserved, leave in the order of their class, and the transmitter never
//! rests while a packet is queued.

use super::*;
use crate::medium::{Capacity, Service};
use crate::packet::DATA;
use crate::random::Stream;
use flowstamp_laws::queue::{Limit, QueueLaw, QueueView};
use flowstamp_laws::registry::{QueueSpec, scripted};
use flowstamp_laws::router::NoParams;
use flowstamp_laws::share::{self, Scheduler};
use flowstamp_laws::share::{drr::Drr, priority::Priority, wfq::Wfq};
use proptest::prelude::*;

const DELAY: Time = Time::from_millis(3);

fn packet(seq: u32, size: u16, ack: bool) -> Packet {
    Packet { seq, size, flags: if ack { 0 } else { DATA }, ..Packet::NONE }
}

fn served(scheduler: Scheduler, rate: Rate, limit: Limit) -> (Plain, Served) {
    let view = QueueView { limit, capacity: rate, mean_packet_bytes: 1000 };
    let laws = Laws::new(
        "link".to_owned(),
        Capacity::Constant(rate),
        limit,
        QueueSpec::default().build(&view),
        None,
        Stream::new(1, "queue"),
        false,
    );
    (Plain::new(Service::constant(rate), DELAY), Served::new(laws, Classifier::Acks, scheduler, None))
}

/// A packet that passed.
#[derive(Clone, Copy, Debug)]
struct Passed {
    seq: u32,
    ack: bool,
    came: Time,
    start: Time,
    finish: Time,
}

/// Sends `arrivals` (gap, size, ack) through a link; returns those that passed in the order of their transmission, and how
/// many were lost.
fn pass(scheduler: Scheduler, limit: Limit, arrivals: &[(u64, u16, bool)]) -> (Vec<Passed>, usize) {
    let rate = Rate::from_mbps(8.0); // a microsecond a byte
    let (mut line, mut port) = served(scheduler, rate, limit);
    let (mut capture, sacks) = (Capture::default(), SackPool::default());
    let mut tap = Tap { capture: &mut capture, sacks: &sacks, link: 0 };
    let mut came = Vec::new();
    let mut choice = None;
    let mut lost = 0;
    let mut now = Time::ZERO;
    let mut serve = |port: &mut Served, line: &mut Plain, until: Time, choice: &mut Option<Time>| {
        while let Some(at) = choice.filter(|at| *at <= until) {
            port.choose(line, at, &mut tap);
            *choice = port.choice(line);
        }
    };
    for (seq, (gap, size, ack)) in arrivals.iter().enumerate() {
        now += Time::from_micros(*gap);
        // A choice of the same instant comes before an arrival, as `Class` orders them.
        serve(&mut port, &mut line, now, &mut choice);
        let mut none = Capture::default();
        let mut tap = Tap { capture: &mut none, sacks: &sacks, link: 0 };
        match port.admit(&mut line, now, &packet(seq as u32, *size, *ack), &mut tap) {
            Admission::Dropped => lost += 1,
            Admission::Choose(at) => choice = Some(at),
            Admission::First(_) | Admission::Behind | Admission::Overfull => {}
        }
        came.push(now);
    }
    serve(&mut port, &mut line, Time::MAX, &mut choice);
    assert_eq!(port.waiting(), 0);
    assert_eq!(port.laws.queue_bytes(), 0);
    let mut passed = Vec::new();
    while let Some(at) = line.next_arrival() {
        let p = *line.deliver();
        let finish = at - DELAY;
        let start = finish - Time::from_micros(u64::from(p.size));
        passed.push(Passed {
            seq: p.seq,
            ack: p.flags & DATA == 0,
            came: came[p.seq as usize],
            start,
            finish,
        });
    }
    (passed, lost)
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u16, bool)>> {
    prop::collection::vec((0u64..1500, 40u16..1500, any::<bool>()), 1..200)
}

proptest! {
    #[test]
    fn any_scheduler_serves_all(
        arrivals in arrivals(),
        which in 0usize..3,
        packets in prop::sample::select(vec![1u32, 3, 1000]),
    ) {
        let scheduler = match which {
            0 => Scheduler::Wfq(Wfq::new(2)),
            1 => Scheduler::Drr(Drr::new(2, 1500.0)),
            _ => Scheduler::Priority(Priority),
        };
        let (passed, lost) = pass(scheduler, Limit::Packets(packets), &arrivals);
        prop_assert_eq!(passed.len() + lost, arrivals.len());
        prop_assert!(packets < 1000 || lost == 0);
        for ack in [false, true] {
            let order: Vec<u32> = passed.iter().filter(|p| p.ack == ack).map(|p| p.seq).collect();
            prop_assert!(order.is_sorted(), "{order:?}");
        }
        for (before, p) in passed.iter().zip(&passed[1..]) {
            prop_assert!(p.start >= before.finish && p.start >= p.came, "{before:?} {p:?}");
            // It begins as soon as the link is free and something is there.
            let there = passed.iter().filter(|q| q.start >= p.start).map(|q| q.came).min();
            prop_assert_eq!(Some(p.start), there.map(|there| there.max(before.finish)));
        }
    }

    /// An ack waits only for the packet in transmission and for earlier acks.
    #[test]
    fn acks_wait_for_no_data(arrivals in arrivals()) {
        let (passed, _) = pass(Scheduler::Priority(Priority), Limit::Packets(1000), &arrivals);
        for data in passed.iter().filter(|p| !p.ack) {
            let passed_over = passed.iter().find(|p| p.ack && p.came < data.start && p.start > data.start);
            prop_assert!(passed_over.is_none(), "{data:?} before {passed_over:?}");
        }
    }
}

/// Four classes. Only the first may delay the others indefinitely.
#[test]
fn schedulers_serve_any_number_of_classes() {
    let heads = [None, Some(100), Some(100), Some(100)];
    assert_eq!(Priority.pick(&heads), Some(1));
    assert_eq!(Priority.pick(&[None; 4]), None);
    let weights = [1.0, 1.0, 2.0, 4.0];
    let mut drr = Drr::new(4, 100.0);
    let mut wfq = Wfq::new(4);
    let (mut by_drr, mut by_wfq) = ([0; 4], [0; 4]);
    for _ in 0..700 {
        for (class, weight) in weights.iter().enumerate().skip(1) {
            wfq.enqueue(class, 100, *weight);
        }
    }
    for _ in 0..700 {
        by_drr[drr.pick(&heads, &weights).expect("three wait")] += 1;
        by_wfq[wfq.pick().expect("three wait")] += 1;
    }
    assert_eq!(by_drr, [0, 100, 200, 400]);
    // To within one packet of each.
    for (class, sent) in by_wfq.iter().enumerate().skip(1) {
        let fair = 100.0 * weights[class];
        assert!((f64::from(*sent) - fair).abs() <= 2.0, "{by_wfq:?}");
    }
}

/// On a divided link each class's law is told its part of the capacity: all of it at first, because the other class may
/// send nothing, and its weight once the other class takes all.
#[test]
fn each_classs_law_is_told_its_part_of_the_capacity() {
    let (rate, limit) = (Rate::from_mbps(8.0), Limit::Packets(1000));
    let view = QueueView { limit, capacity: rate, mean_packet_bytes: 1000 };
    let queue = AnyQueue::Scripted(Box::new(scripted::Queue::new(&NoParams {}, &view)));
    let laws = Laws::new(
        "link".to_owned(),
        Capacity::Constant(rate),
        limit,
        queue,
        None,
        Stream::new(1, "queue"),
        false,
    );
    let split = Split::new(&share::Params::default(), rate);
    let mut port = Served::new(laws, Classifier::Protocol, Scheduler::Wfq(Wfq::new(2)), Some(split));
    let mut line = Plain::new(Service::constant(rate), DELAY);
    let (mut capture, sacks) = (Capture::default(), SackPool::default());
    let mut tap = Tap { capture: &mut capture, sacks: &sacks, link: 0 };
    // 200 packets in the 200 ms of the first period are 8 Mb/s of the other class.
    for n in 0..200 {
        port.admit(&mut line, Time::from_millis(n), &packet(n as u32, 1000, false), &mut tap);
    }
    port.divide(Time::from_millis(200));
    let told: Vec<_> = port
        .queue_laws()
        .iter()
        .map(|law| match law {
            AnyQueue::Scripted(law) => law.capacities.iter().map(|c| c.bps() / 8e6).collect::<Vec<_>>(),
            _ => panic!("it was put there"),
        })
        .collect();
    assert_eq!(told, [vec![1.0, 0.5], vec![1.0, 1.0]]);
}

//! Sender and receiver of every recovery mode over a pipe of fixed rate and delay, with chosen losses, marks and
//! reordering.

use flowstamp_laws::sender::{Ack, Echo, FlowView, RateSample, Recovery, SenderLaw};
use flowstamp_laws::tcp::reno::{self, NewReno, Reno, Sack};
use flowstamp_laws::transport::{AckInfo, AckPacket, Agreed, DataPacket, Outgoing, Params, Receiver, Sender};
use flowstamp_laws::{Stamp, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const PACKET: u32 = 1000;
const MODES: [Recovery; 3] = [Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// A law that notes what the transport tells it.
struct Noted<L> {
    law: L,
    /// Losses and marks, and marks alone.
    congestion: Vec<u32>,
    marks: usize,
    timeouts: Vec<u32>,
    newly: u64,
    marked: u32,
    wants_rate: bool,
    rates: Vec<RateSample>,
    least_rtt: Time,
    limited: Vec<bool>,
    in_recovery: usize,
}

impl<L: SenderLaw> Noted<L> {
    fn with(params: &L::Params, initial_window: f64) -> Self {
        let law = L::new(params, &FlowView { packet_bytes: PACKET, initial_window, app_rate: None });
        Self {
            law,
            congestion: vec![],
            marks: 0,
            timeouts: vec![],
            newly: 0,
            marked: 0,
            wants_rate: false,
            rates: vec![],
            least_rtt: Time::MAX,
            limited: vec![],
            in_recovery: 0,
        }
    }
}

impl<L: SenderLaw> SenderLaw for Noted<L> {
    type Params = L::Params;
    fn new(params: &L::Params, flow: &FlowView) -> Self {
        Self::with(params, flow.initial_window)
    }
    fn recovery(&self) -> Recovery {
        self.law.recovery()
    }
    fn cwnd(&self) -> f64 {
        self.law.cwnd()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        assert!(ack.newly_acked > 0, "the law hears of new data only");
        self.newly += u64::from(ack.newly_acked);
        assert_eq!(u64::from(ack.delivered), self.newly);
        assert!(ack.marked <= ack.newly_acked);
        self.marked += ack.marked;
        self.least_rtt = self.least_rtt.min(ack.rtt);
        assert_eq!(ack.min_rtt, self.least_rtt);
        assert!(self.wants_rate || ack.rate.is_none());
        self.rates.extend(ack.rate);
        self.limited.push(ack.window_limited);
        self.in_recovery += usize::from(ack.in_recovery);
        self.law.on_ack(ack);
    }
    fn on_loss(&mut self, now: Time, flight: u32) {
        self.congestion.push(flight);
        self.law.on_loss(now, flight);
    }
    fn on_mark(&mut self, now: Time, flight: u32) {
        self.congestion.push(flight);
        self.marks += 1;
        self.law.on_mark(now, flight);
    }
    fn wants_delivery_rate(&self) -> bool {
        self.wants_rate
    }
    fn on_timeout(&mut self, now: Time, flight: u32) {
        self.timeouts.push(flight);
        self.law.on_timeout(now, flight);
    }
    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        self.law.stamp(now, srtt)
    }
}

type OfPacket = Box<dyn Fn(usize, &Outgoing) -> bool>;

/// What the path does to the n-th data packet and to the n-th ack.
struct Path {
    lose: OfPacket,
    mark: OfPacket,
    late: Box<dyn Fn(usize) -> u64>,
    lose_ack: Box<dyn Fn(usize) -> bool>,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            lose: Box::new(|_, _| false),
            mark: Box::new(|_, _| false),
            late: Box::new(|_| 0),
            lose_ack: Box::new(|_| false),
        }
    }
}

enum Event {
    Data(Outgoing, bool, Time),
    Ack(AckInfo),
}

/// What a run came to.
struct Run {
    sent: Vec<Outgoing>,
    lost: usize,
    finished: Time,
    retransmissions: u32,
    timeouts: u32,
    echoes: usize,
    acks: usize,
    /// Packets that were marked when they first arrived.
    marked: u32,
    /// Packets of the congestion window after each ack.
    windows: Vec<f64>,
}

const DELAY: Time = Time::from_millis(20);
const TX: Time = Time::from_micros(100);

/// Runs a flow of `length` packets to its end and checks what must hold whatever the path does.
fn run<L: SenderLaw>(
    params: &Params,
    recovery: Recovery,
    length: u32,
    law: &mut Noted<L>,
    path: &Path,
) -> Run {
    let agreed = Agreed { recovery, ..Agreed::between(params, law) };
    let mut sender = Sender::new(params, agreed, Some(length));
    let mut receiver = Receiver::new(params, agreed);
    let (mut now, mut link_free, mut order) = (Time::ZERO, Time::ZERO, 0u64);
    let mut queue = BinaryHeap::new();
    let mut events: BTreeMap<u64, Event> = BTreeMap::new();
    let mut out = Run {
        sent: vec![],
        lost: 0,
        finished: now,
        retransmissions: 0,
        timeouts: 0,
        echoes: 0,
        acks: 0,
        marked: 0,
        windows: vec![],
    };
    let (mut newly, mut cumulative) = (0u64, 0);
    let stamp = Stamp::default();
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps < 200_000, "no end in sight: {} of {length}", sender.unacked());
        while let Some(packet) = sender.next_packet(now, law, PACKET, u32::MAX) {
            assert!(packet.seq < length);
            assert!(packet.seq >= sender.unacked(), "resends what is acknowledged");
            assert_eq!(packet.retransmission, out.sent.iter().any(|p| p.seq == packet.seq), "{packet:?}");
            assert!(
                !packet.retransmission || !packet.cwr || sender.timeouts() > 0,
                "CWR belongs on new data"
            );
            let n = out.sent.len();
            out.sent.push(packet);
            link_free = link_free.max(now) + TX;
            if (path.lose)(n, &packet) {
                out.lost += 1;
                continue;
            }
            order += 1;
            let at = link_free + DELAY + Time::from_micros((path.late)(n));
            queue.push(Reverse((at, order)));
            events.insert(order, Event::Data(packet, (path.mark)(n, &packet), now));
        }
        if sender.is_complete() {
            break;
        }
        let next = queue.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        let first = next.min(sender.deadline()).min(receiver.deadline());
        assert!(first < Time::MAX, "data is outstanding but nothing will happen");
        now = first;
        let mut acks = [receiver.on_timer(now), None];
        if acks[0].is_none() && next == now {
            let (_, id) = queue.pop().expect("peeked").0;
            match events.remove(&id).expect("scheduled") {
                Event::Data(p, ce, sent_at) => {
                    let data = DataPacket { seq: p.seq, ce, cwr: p.cwr, sent_at, stamp: &stamp, bits: 0 };
                    let before = receiver.delivered();
                    acks = [receiver.before_data(ce), receiver.on_data(now, &data, |_, _| {})];
                    out.marked += u32::from(ce && receiver.delivered() > before);
                }
                Event::Ack(a) => {
                    let before = sender.unacked();
                    let packet = AckPacket {
                        cumulative: a.cumulative,
                        sack: a.sack.as_slice(),
                        ecn_echo: a.ecn_echo,
                        sent_at: a.sent_at,
                        stamp: &a.stamp,
                        bits: a.bits,
                    };
                    newly += u64::from(sender.on_ack(now, law, PACKET, &packet));
                    assert!(sender.unacked() >= before);
                    assert!(sender.flight() <= sender.next_seq() - sender.unacked() + out.lost as u32 + 2);
                    out.windows.push(law.cwnd() / f64::from(PACKET));
                }
            }
        } else if acks[0].is_none() && sender.deadline() == now {
            sender.on_timeout(now, law);
        }
        for ack in acks.into_iter().flatten() {
            assert!(ack.cumulative >= cumulative, "the cumulative ack moved back");
            cumulative = ack.cumulative;
            out.echoes += usize::from(ack.ecn_echo);
            out.acks += 1;
            if !(path.lose_ack)(out.acks - 1) {
                order += 1;
                queue.push(Reverse((now + DELAY, order)));
                events.insert(order, Event::Ack(ack));
            }
        }
    }
    assert_eq!((receiver.delivered(), receiver.next_expected()), (length, length));
    assert_eq!(newly, u64::from(length), "every packet is acknowledged once");
    assert_eq!(law.newly, newly);
    assert_eq!(out.sent.iter().filter(|p| !p.retransmission).count(), length as usize);
    assert!(
        out.sent.iter().filter(|p| !p.retransmission).map(|p| p.seq).eq(0..length),
        "new data out of order"
    );
    assert_eq!(out.sent.len(), length as usize + sender.retransmissions() as usize);
    assert_eq!(law.timeouts.len(), sender.timeouts() as usize);
    assert_eq!(sender.deadline(), Time::MAX);
    out.finished = now;
    out.retransmissions = sender.retransmissions();
    out.timeouts = sender.timeouts();
    out
}

/// Runs a TCP that starts at `window` packets in congestion avoidance.
fn tcp(params: &Params, recovery: Recovery, window: f64, length: u32, path: &Path) -> (Run, Noted<Reno>) {
    let law = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    let mut law = Noted::with(&law, window);
    (run(params, recovery, length, &mut law, path), law)
}

/// Loses the first transmission of each of `seqs`.
fn losing(seqs: &[u32]) -> Path {
    let seqs = seqs.to_vec();
    Path { lose: Box::new(move |_, p| !p.retransmission && seqs.contains(&p.seq)), ..Path::default() }
}

#[test]
fn without_loss_nothing_is_sent_twice_and_slow_start_doubles() {
    for recovery in MODES {
        let mut law = Noted::<Sack>::with(&reno::Params::default(), 2.0);
        let run = run(&Params::default(), recovery, 126, &mut law, &Path::default());
        assert_eq!((run.retransmissions, run.timeouts, run.lost), (0, 0, 0));
        // 2 + 4 + 8 + 16 + 32 + 64 = 126: six round trips of 40.1 ms and the last window's 63 packets behind the first.
        let expected = 6.0 * 40.1 + 63.0 * 0.1;
        let took = run.finished.as_secs_f64() * 1e3;
        assert!((took - expected).abs() < 0.5, "{took} ms, expected {expected}");
    }
}

#[test]
fn one_loss_costs_one_retransmission_and_one_halving() {
    for recovery in MODES {
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &losing(&[50]));
        assert_eq!((run.retransmissions, run.timeouts), (1, 0), "{recovery:?}");
        assert_eq!(law.congestion.len(), 1);
        // The window had grown to 41 at the most; FlightSize leaves out the two packets of limited transmit.
        assert!((40..=41).contains(&law.congestion[0]), "{:?}", law.congestion);
        let least = run.windows.iter().copied().fold(f64::MAX, f64::min);
        assert!((least - f64::from(law.congestion[0]) / 2.0).abs() < 1e-9, "{least}");
    }
}

#[test]
fn the_very_first_packet_can_be_fast_retransmitted() {
    for recovery in MODES {
        let (run, _) = tcp(&Params::default(), recovery, 10.0, 60, &losing(&[0]));
        assert_eq!((run.retransmissions, run.timeouts), (1, 0), "{recovery:?}");
    }
}

#[test]
fn sack_and_newreno_repair_a_window_with_many_losses_in_one_event() {
    let seqs: Vec<u32> = (50..64).step_by(3).collect();
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 600, &losing(&seqs));
        assert_eq!(run.timeouts, 0, "{recovery:?}");
        assert_eq!(run.retransmissions as usize, seqs.len(), "{recovery:?}");
        assert_eq!(law.congestion.len(), 1, "{recovery:?}");
    }
}

#[test]
fn sack_repairs_half_a_window_within_two_round_trips_of_the_loss() {
    let seqs: Vec<u32> = (100..300).step_by(2).collect();
    let (run, law) = tcp(&Params::default(), Recovery::Sack, 400.0, 3000, &losing(&seqs));
    assert_eq!((run.timeouts, run.retransmissions), (0, 100));
    assert_eq!(law.congestion.len(), 1);
    let (clean, _) = tcp(&Params::default(), Recovery::Sack, 200.0, 3000, &Path::default());
    assert!(run.finished < clean.finished + Time::from_millis(80), "{} {}", run.finished, clean.finished);
}

#[test]
fn newreno_sends_one_hole_per_round_trip() {
    let (run, _) = tcp(&Params::default(), Recovery::NewReno, 40.0, 600, &losing(&[50, 53, 56]));
    let again: Vec<u32> = run.sent.iter().filter(|p| p.retransmission).map(|p| p.seq).collect();
    assert_eq!(again, [50, 53, 56]);
    assert_eq!(run.timeouts, 0);
}

#[test]
fn reno_halves_for_each_loss_of_a_window() {
    // Two losses far enough apart for a second fast retransmit (deviation 2).
    let (run, law) = tcp(&Params::default(), Recovery::Reno, 40.0, 600, &losing(&[50, 51]));
    assert_eq!(run.retransmissions, 2);
    assert_eq!((law.congestion.len(), run.timeouts), (2, 0));
}

#[test]
fn a_lost_retransmission_costs_a_timeout_and_the_law_hears_of_it_once() {
    for recovery in MODES {
        let path = Path {
            lose: Box::new(|n, p| p.seq == 50 && (n < 60 || p.retransmission && n < 115)),
            ..Path::default()
        };
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &path);
        assert!(run.lost >= 2);
        assert_eq!((run.timeouts, law.timeouts.len()), (1, 1), "{recovery:?}");
        if recovery == Recovery::Sack {
            assert_eq!(run.retransmissions, 2, "what is sacked is not sent again");
        }
    }
}

#[test]
fn limited_transmit_saves_a_small_window_from_the_timer() {
    for recovery in MODES {
        for limited_transmit in [false, true] {
            let params = Params { limited_transmit, ..Params::default() };
            // Three packets in flight: two duplicate acks, unless they let new packets go. Initial ssthresh 2 and
            // growth by 1/cwnd keep the window below 4.
            let (run, _) = tcp(&params, recovery, 3.0, 30, &losing(&[1]));
            assert_eq!(run.timeouts, u32::from(!limited_transmit), "{recovery:?} {limited_transmit}");
        }
    }
}

#[test]
fn the_rescue_retransmission_repairs_a_lost_tail() {
    // The first loss starts a recovery in which the last packet's loss would otherwise wait for the timer.
    let (run, _) = tcp(&Params::default(), Recovery::Sack, 40.0, 60, &losing(&[45, 59]));
    assert_eq!((run.timeouts, run.retransmissions), (0, 2));
}

#[test]
fn the_timer_doubles_up_to_its_bound() {
    let params = Params { max_rto: Time::from_secs(10), ..Params::default() };
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 2.0);
    let mut sender = Sender::new(&params, Recovery::NewReno, Some(5));
    let mut now = Time::ZERO;
    let mut waits = vec![];
    for _ in 0..6 {
        while sender.next_packet(now, &law, PACKET, u32::MAX).is_some() {}
        let deadline = sender.deadline();
        waits.push((deadline - now).as_secs_f64());
        now = deadline;
        sender.on_timeout(now, &mut law);
    }
    assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]); // RFC 6298 (2.1), (5.5), (2.5)
    assert_eq!(law.law.ssthresh(), 2000.0);
    // An ack ends the backoff: 20 ms is the first sample, so RTO = 3 * 20 ms, below the least, 200 ms.
    let stamp = Stamp::default();
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(0));
    let sent_at = now;
    now += Time::from_millis(20);
    let ack = AckPacket { cumulative: 1, sack: &[], ecn_echo: false, sent_at, stamp: &stamp, bits: 0 };
    assert_eq!(sender.on_ack(now, &mut law, PACKET, &ack), 1);
    assert_eq!(sender.rto(), Time::from_millis(200));
}

#[test]
fn after_a_timeout_the_next_packet_jumps_over_what_is_acknowledged() {
    let params = Params::default();
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 8.0);
    let mut sender = Sender::new(&params, Recovery::NewReno, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    assert_eq!(sender.next_seq(), 8);
    let now = sender.deadline();
    sender.on_timeout(now, &mut law);
    assert_eq!(law.timeouts, [8]);
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(0));
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX), None);
    let stamp = Stamp::default();
    let ack = AckPacket { cumulative: 6, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
    assert_eq!(sender.on_ack(now + DELAY, &mut law, PACKET, &ack), 6);
    let next: Vec<_> =
        core::iter::from_fn(|| sender.next_packet(now + DELAY, &law, PACKET, u32::MAX)).collect();
    assert_eq!(next.iter().map(|p| (p.seq, p.retransmission)).collect::<Vec<_>>(), [(6, true), (7, true)]);
}

#[test]
fn duplicate_acks_after_a_timeout_start_no_recovery() {
    // RFC 6582 section 4: they come from what was sent twice, not from a new loss.
    let params = Params { limited_transmit: false, ..Params::default() };
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 8.0);
    let mut sender = Sender::new(&params, Recovery::NewReno, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let now = sender.deadline();
    sender.on_timeout(now, &mut law);
    sender.next_packet(now, &law, PACKET, u32::MAX);
    let stamp = Stamp::default();
    for cumulative in [2, 2, 2, 2, 2] {
        let ack = AckPacket { cumulative, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
        sender.on_ack(now, &mut law, PACKET, &ack);
        while sender.next_packet(now, &law, PACKET, u32::MAX).is_some() {}
    }
    assert!(!sender.in_recovery());
    assert!(law.congestion.is_empty());
}

#[test]
fn marks_reduce_the_window_once_per_window_and_are_answered_by_cwr() {
    for recovery in MODES {
        // Every packet of the second window is marked.
        let path = Path { mark: Box::new(|_, p| (40..80).contains(&p.seq)), ..Path::default() };
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &path);
        assert_eq!(run.retransmissions + run.timeouts, 0);
        assert_eq!(law.congestion.len(), 1, "{recovery:?}: {:?}", law.congestion);
        assert_eq!(law.congestion, [40]);
        assert_eq!(run.sent.iter().filter(|p| p.cwr).count(), 1);
        // The echo lasts from the first mark until CWR arrives.
        let cwr = run.sent.iter().find(|p| p.cwr).expect("cwr").seq;
        assert_eq!(run.echoes as u32, cwr - 40);
    }
}

/// A mark and then a timeout: the receiver echoes until it sees CWR, and going back N sends nothing new for long.
#[test]
fn echoes_end_with_the_first_packet_after_a_timeout() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let path = Path {
            mark: Box::new(|_, p| !p.retransmission && p.seq == 30),
            lose: Box::new(|_, p| !p.retransmission && (31..300).contains(&p.seq)),
            ..Path::default()
        };
        let (run, _) = tcp(&Params::default(), recovery, 300.0, 400, &path);
        assert!(run.timeouts >= 1, "{recovery:?}");
        // The window grows again: 270 packets take slow start and some linear growth, not 270 round trips of 40 ms.
        assert!(run.finished < Time::from_secs(5), "{recovery:?}: {}", run.finished);
    }
}

#[test]
fn lasting_marks_reduce_the_window_about_once_per_round_trip() {
    let path = Path { mark: Box::new(|_, _| true), ..Path::default() };
    let (run, law) = tcp(&Params::default(), Recovery::NewReno, 32.0, 200, &path);
    // 32, 16, 8, 4 and then 2 for ever: a window's packets per reduction, and never more often than that.
    let rounds = run.finished.as_secs_f64() / 0.0401;
    let n = law.congestion.len() as f64;
    assert!(n <= rounds && n >= rounds / 2.0 - 1.0, "{n} reductions in {rounds} round trips");
    assert_eq!(law.congestion[..3], [32, 16, 8]);
}

#[test]
fn without_ecn_marks_mean_nothing() {
    let params = Params { ecn: false, ..Params::default() };
    let path = Path { mark: Box::new(|_, _| true), ..Path::default() };
    let (run, law) = tcp(&params, Recovery::Sack, 20.0, 200, &path);
    assert_eq!((run.echoes, law.congestion.len()), (0, 0));
    assert!(run.sent.iter().all(|p| !p.cwr));
}

#[test]
fn a_loss_in_a_marked_window_reduces_once() {
    for recovery in MODES {
        let mut path = losing(&[60]);
        path.mark = Box::new(|_, p| p.seq == 45);
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &path);
        assert_eq!((run.retransmissions, run.timeouts), (1, 0));
        assert_eq!(law.congestion.len(), 1, "{recovery:?}");
    }
}

#[test]
fn delayed_acks_halve_the_acks() {
    let params = Params { delayed_acks: true, ..Params::default() };
    let (with, _) = tcp(&params, Recovery::Sack, 20.0, 400, &Path::default());
    let (without, _) = tcp(&Params::default(), Recovery::Sack, 20.0, 400, &Path::default());
    assert_eq!((with.acks, without.acks), (200, 400));
}

#[test]
fn the_application_limits_and_the_law_is_told() {
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 10.0);
    let mut sender = Sender::new(&Params::default(), Recovery::Sack, None);
    let stamp = Stamp::default();
    for n in 1..=5u32 {
        let now = Time::from_millis(u64::from(n));
        assert_eq!(sender.next_packet(now, &law, PACKET, n).map(|p| p.seq), Some(n - 1));
        assert_eq!(sender.next_packet(now, &law, PACKET, n), None);
        let ack =
            AckPacket { cumulative: n, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
        sender.on_ack(now, &mut law, PACKET, &ack);
    }
    assert_eq!(law.limited, [false; 5]);
    assert_eq!(law.cwnd(), 10_000.0);
    let now = Time::from_secs(1);
    while sender.next_packet(now, &law, PACKET, u32::MAX).is_some() {}
    assert_eq!(sender.flight(), 10);
    let ack = AckPacket { cumulative: 6, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
    sender.on_ack(now, &mut law, PACKET, &ack);
    assert_eq!(law.limited.last(), Some(&true));
    assert_eq!(law.cwnd(), 11_000.0);
}

#[test]
fn a_stopped_flow_still_repairs_what_is_in_flight() {
    for recovery in MODES {
        let mut law = Noted::<Reno>::with(&reno::Params::default(), 4.0);
        let mut sender = Sender::new(&Params::default(), recovery, None);
        while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
        sender.stop();
        assert!(!sender.is_complete());
        let stamp = Stamp::default();
        let mut ack = AckPacket {
            cumulative: 3,
            sack: &[],
            ecn_echo: false,
            sent_at: Time::ZERO,
            stamp: &stamp,
            bits: 0,
        };
        sender.on_ack(DELAY, &mut law, PACKET, &ack);
        assert_eq!(sender.next_packet(DELAY, &law, PACKET, u32::MAX), None);
        let now = sender.deadline();
        sender.on_timeout(now, &mut law);
        assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(3));
        ack.cumulative = 4;
        sender.on_ack(now + DELAY, &mut law, PACKET, &ack);
        assert!(sender.is_complete());
        assert_eq!(sender.deadline(), Time::MAX);
    }
}

/// A sender with `window` packets in flight since time zero.
fn in_flight(recovery: Recovery, window: u32) -> (Sender, Noted<Reno>) {
    let params = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    let law = Noted::with(&params, f64::from(window));
    let mut sender = Sender::new(&Params::default(), recovery, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    assert_eq!(sender.next_seq(), window);
    (sender, law)
}

/// Gives the sender an ack at `now`, and returns what it then sends.
fn feed(
    sender: &mut Sender,
    law: &mut Noted<Reno>,
    now: Time,
    cumulative: u32,
    sack: &[(u32, u32)],
) -> Vec<(u32, bool)> {
    let stamp = Stamp::default();
    let sent_at = now.saturating_sub(DELAY + DELAY);
    sender.on_ack(
        now,
        law,
        PACKET,
        &AckPacket { cumulative, sack, ecn_echo: false, sent_at, stamp: &stamp, bits: 0 },
    );
    core::iter::from_fn(|| sender.next_packet(now, law, PACKET, u32::MAX).map(|p| (p.seq, p.retransmission)))
        .collect()
}

#[test]
fn the_third_duplicate_ack_resends_at_once_and_restarts_the_timer() {
    for recovery in MODES {
        let (mut sender, mut law) = in_flight(recovery, 20);
        let at = Time::from_millis;
        assert_eq!(feed(&mut sender, &mut law, at(40), 0, &[(1, 2)]), [(20, false)], "{recovery:?}");
        assert_eq!(feed(&mut sender, &mut law, at(41), 0, &[(1, 3)]), [(21, false)]);
        assert_eq!(feed(&mut sender, &mut law, at(42), 0, &[(1, 4)]), [(0, true)]);
        assert!(sender.in_recovery());
        assert_eq!(law.congestion, [20]);
        assert_eq!(sender.deadline(), at(42) + sender.rto());
    }
}

#[test]
fn sack_restarts_the_timer_at_every_retransmission_of_a_recovery() {
    let (mut sender, mut law) = in_flight(Recovery::Sack, 20);
    let at = Time::from_millis;
    // 1 is lost too. Half of the window must arrive before the pipe lets it go.
    feed(&mut sender, &mut law, at(40), 0, &[(2, 5)]);
    let mut resent = None;
    for n in 6..20 {
        let sent = feed(&mut sender, &mut law, at(40 + u64::from(n)), 0, &[(2, n)]);
        if sent.contains(&(1, true)) {
            resent = Some(at(40 + u64::from(n)));
            break;
        }
    }
    assert_eq!(sender.deadline(), resent.expect("1 is sent again") + sender.rto());
}

#[test]
fn a_partial_ack_deflates_the_window_by_what_it_acknowledges_less_one() {
    let (mut sender, mut law) = in_flight(Recovery::NewReno, 10);
    let at = Time::from_millis;
    // 0 and 5 are lost; 1 to 4 and 6 to 9 make eight duplicate acks.
    let sent: Vec<_> = (0..8).flat_map(|n| feed(&mut sender, &mut law, at(40 + n), 0, &[])).collect();
    // Window 5, inflated by 8: 13 outstanding.
    assert_eq!(sent, [(10, false), (11, false), (0, true), (12, false)]);
    // 13 - 5 outstanding; window 5 + 8 - 5 + 1 = 9: the hole, and one new packet.
    assert_eq!(feed(&mut sender, &mut law, at(80), 5, &[]), [(5, true), (13, false)]);
    assert!(sender.in_recovery());
    let deadline = sender.deadline();
    // Impatient: a second partial ack leaves the timer alone.
    feed(&mut sender, &mut law, at(120), 7, &[]);
    assert_eq!(sender.deadline(), deadline);
    // A full ack ends the inflation and restarts the timer.
    feed(&mut sender, &mut law, at(160), 13, &[]);
    assert!(!sender.in_recovery());
    assert_eq!(sender.deadline(), at(160) + sender.rto());
    assert_eq!(sender.flight(), 5);
}

#[test]
fn the_law_is_told_of_recovery_and_does_not_grow_in_it() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &losing(&[50, 60]));
        // NewReno hears of the partial and the full ack; Sack of every selective ack of the round trips between.
        let least = if recovery == Recovery::Sack { 36 } else { 2 };
        assert!(law.in_recovery >= least, "{recovery:?}: {}", law.in_recovery);
        let start = run.windows.iter().position(|w| *w < 40.0).expect("a reduction");
        let growth = run.windows[start..].windows(2).filter(|w| w[1] > w[0]).count();
        let acks = law.limited.len() - law.in_recovery;
        assert!(growth <= acks, "{growth} {acks}");
    }
}

fn window(packets: f64) -> Reno {
    let params = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    Reno::new(&params, &FlowView { packet_bytes: PACKET, initial_window: packets, app_rate: None })
}

#[test]
fn the_window_is_halved_but_never_raised_by_a_loss() {
    let mut law = window(20.0);
    law.on_loss(Time::ZERO, 16);
    assert_eq!(law.cwnd(), 8_000.0);
    law.on_loss(Time::ZERO, 16);
    assert_eq!(law.cwnd(), 4_000.0);
    law.on_loss(Time::ZERO, 1);
    assert_eq!(law.cwnd(), 2_000.0); // RFC 5681 eq. 4
}

#[test]
fn a_second_timeout_leaves_ssthresh() {
    let mut law = window(20.0);
    law.on_timeout(Time::ZERO, 20);
    assert_eq!((law.cwnd(), law.ssthresh()), (1_000.0, 10_000.0));
    law.on_timeout(Time::ZERO, 1);
    assert_eq!((law.cwnd(), law.ssthresh()), (1_000.0, 10_000.0)); // RFC 5681 section 3.1
}

#[test]
fn congestion_avoidance_adds_one_packet_per_window() {
    let mut law = window(10.0);
    let stamp = Stamp::default();
    let mut ack = Ack { flight: 10, ..Ack::of_one(Time::ZERO, DELAY, &stamp) };
    (0..10).for_each(|_| law.on_ack(&ack));
    assert!((10_900.0..=11_000.0).contains(&law.cwnd()), "{}", law.cwnd());
    let before = law.cwnd();
    ack.in_recovery = true;
    law.on_ack(&ack);
    (ack.in_recovery, ack.window_limited) = (false, false);
    law.on_ack(&ack);
    assert_eq!(law.cwnd(), before);
}

#[test]
fn acks_of_what_was_never_sent_are_ignored() {
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 4.0);
    let mut sender = Sender::new(&Params::default(), Recovery::Sack, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let stamp = Stamp::default();
    for (cumulative, sack) in [(5, &[][..]), (u32::MAX, &[]), (0, &[(90, 100)]), (0, &[(3, 1)])] {
        let ack =
            AckPacket { cumulative, sack, ecn_echo: false, sent_at: Time::ZERO, stamp: &stamp, bits: 0 };
        assert_eq!(sender.on_ack(DELAY, &mut law, PACKET, &ack), 0);
    }
    assert_eq!(sender.unacked(), 0);
}

#[test]
fn a_flow_is_small() {
    assert!(size_of::<Sender>() <= 200, "{}", size_of::<Sender>());
    assert!(size_of::<Receiver>() <= 120, "{}", size_of::<Receiver>());
    assert!(size_of::<AckInfo>() <= 80, "{}", size_of::<AckInfo>());
    assert!(size_of::<Reno>() <= 72, "{}", size_of::<Reno>());
}

#[test]
fn the_three_names_differ_in_their_repair() {
    let flow = FlowView { packet_bytes: PACKET, initial_window: 2.0, app_rate: None };
    let params = reno::Params::default();
    assert_eq!(Reno::new(&params, &flow).recovery(), Recovery::Reno);
    assert_eq!(NewReno::new(&params, &flow).recovery(), Recovery::NewReno);
    assert_eq!(Sack::new(&params, &flow).recovery(), Recovery::Sack);
}

#[test]
fn an_echo_per_packet_reduces_once_per_window_and_leaves_the_window_to_the_law() {
    for recovery in MODES {
        let params = Params { echo: Some(Echo::PerPacket), ..Params::default() };
        let path = Path { mark: Box::new(|_, p| (40..80).contains(&p.seq)), ..Path::default() };
        let (run, law) = tcp(&params, recovery, 40.0, 400, &path);
        assert_eq!((run.echoes, law.marked, run.marked), (40, 40, 40), "{recovery:?}");
        assert_eq!((law.marks, &law.congestion[..]), (1, &[40][..]), "{recovery:?}");
        assert_eq!(run.sent.iter().filter(|p| p.cwr).count(), 1);
        // RFC 3168 section 6.1.2, by the law's own doing: acks with an echo add nothing.
        assert_eq!(law.in_recovery, 0);
        let marked = run.windows.iter().position(|w| *w < 40.0).expect("a reduction");
        assert!(run.windows[marked..marked + 39].iter().all(|w| *w == run.windows[marked]));
    }
}

/// A law that asks for delivery rates, at a fixed window.
fn measured(window: f64, length: u32, path: &Path, params: &Params) -> Noted<Reno> {
    let limits =
        reno::Params { initial_ssthresh: Some(2.0), max_window: Some(window), ..reno::Params::default() };
    let mut law = Noted::<Reno>::with(&limits, window);
    law.wants_rate = true;
    run(params, Recovery::Sack, length, &mut law, path);
    law
}

/// The link carries a packet in 0.1 ms, and an ack comes 40.1 ms after its packet has left the head of the line.
#[test]
fn the_delivery_rate_is_that_of_window_or_link() {
    let rate = |sample: &RateSample| sample.rate(PACKET).bytes_per_sec() / f64::from(PACKET);
    // A window of 100 packets takes 40.1 ms round trips, with the last packet's 9.9 ms behind the first.
    let law = measured(100.0, 2000, &Path::default(), &Params::default());
    let last = law.rates[law.rates.len() - 150];
    assert!((rate(&last) / (100.0 / 0.0401) - 1.0).abs() < 0.01, "{last:?}");
    // One of 800 fills the link.
    let law = measured(800.0, 8000, &Path::default(), &Params::default());
    let last = law.rates[law.rates.len() - 900];
    assert!((rate(&last) / 10_000.0 - 1.0).abs() < 0.01, "{last:?}");
    assert!(law.rates.iter().all(|s| rate(s) <= 10_000.0 * (1.0 + 1e-9)));
    // The flow's end leaves window open: what is sent at that time is the application's rate.
    assert!(!law.rates.iter().any(|s| s.app_limited), "no packet left after the data had run out");
}

#[test]
fn a_sample_of_an_application_that_is_slow_says_so() {
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 50.0);
    law.wants_rate = true;
    let agreed = Agreed::between(&Params::default(), &law);
    let mut sender = Sender::new(&Params::default(), agreed, None);
    let stamp = Stamp::default();
    // A packet each 10 ms, answered 40 ms later: 100 packets/s, whatever the window.
    let mut now = Time::ZERO;
    let mut answered = 0;
    for packet in 0..60 {
        assert!(sender.next_packet(now, &law, PACKET, packet + 1).is_some());
        assert!(sender.next_packet(now, &law, PACKET, packet + 1).is_none());
        if packet >= 4 {
            answered += 1;
            let sent_at = now - Time::from_millis(40);
            let cumulative = answered;
            let ack = AckPacket { cumulative, sack: &[], ecn_echo: false, sent_at, stamp: &stamp, bits: 0 };
            sender.on_ack(now, &mut law, PACKET, &ack);
        }
        now += Time::from_millis(10);
    }
    assert!(law.rates.len() > 50 && law.rates[1..].iter().all(|s| s.app_limited), "{:?}", law.rates);
    let rates: Vec<_> = law.rates[10..].iter().map(|s| s.rate(PACKET).bytes_per_sec() / 1000.0).collect();
    assert!(rates.iter().all(|r| (r - 100.0).abs() < 1e-6), "{rates:?}");
}

/// The sixteen bits of a data packet come back; of several that one ack answers, the newest's.
#[test]
fn the_newest_bits_are_echoed() {
    let params = Params { delayed_acks: true, ..Params::default() };
    let mut receiver = Receiver::new(&params, Recovery::Sack);
    let stamp = Stamp::default();
    let data =
        |seq, bits| DataPacket { seq, ce: false, cwr: false, sent_at: Time::ZERO, stamp: &stamp, bits };
    assert!(receiver.on_data(Time::ZERO, &data(0, 7), |_, _| {}).is_none());
    assert_eq!(receiver.on_data(Time::ZERO, &data(1, 3), |_, _| {}).map(|a| a.bits), Some(3));
    assert!(receiver.on_data(Time::ZERO, &data(2, 0xffff), |_, _| {}).is_none());
    assert_eq!(receiver.on_timer(receiver.deadline()).map(|a| a.bits), Some(0xffff));
}

fn modes() -> impl Strategy<Value = Recovery> {
    prop::sample::select(MODES.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// With an echo per packet the law counts each marked packet that arrives once, and no other; selective acks say which
    /// packet an ack is for, whatever was lost.
    #[test]
    fn marks_are_conserved(
        length in 1u32..250,
        window in 1.0..60.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.1), 0..300),
        marked in prop::collection::vec(prop::bool::weighted(0.4), 1..300),
        delayed_acks: bool,
        timeout in 1u64..100,
    ) {
        let params = Params {
            delayed_acks,
            delayed_ack_timeout: Time::from_millis(timeout),
            echo: Some(Echo::PerPacket),
            ..Params::default()
        };
        let path = Path {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            mark: Box::new(move |n, _| marked[n % marked.len()]),
            ..Path::default()
        };
        let (run, law) = tcp(&params, Recovery::Sack, window, length, &path);
        prop_assert_eq!(law.marked, run.marked);
        prop_assert!(law.least_rtt >= DELAY * 2, "{}", law.least_rtt);
    }

    /// No delivery rate is above the link's where each packet is acknowledged as it arrives, whatever is lost or marked, and
    /// asking for it changes nothing else.
    #[test]
    fn delivery_rates_are_at_most_the_links(
        length in 1u32..250,
        window in 1.0..60.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.1), 0..300),
        marked in prop::collection::vec(prop::bool::weighted(0.05), 0..300),
    ) {
        let path = Path {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            mark: Box::new(move |n, _| marked.get(n).copied().unwrap_or(false)),
            ..Path::default()
        };
        let (without, _) = tcp(&Params::default(), Recovery::Sack, window, length, &path);
        let law = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
        let mut law = Noted::<Reno>::with(&law, window);
        law.wants_rate = true;
        let with = run(&Params::default(), Recovery::Sack, length, &mut law, &path);
        prop_assert_eq!((with.sent, with.finished), (without.sent, without.finished));
        for sample in &law.rates {
            let rate = sample.rate(PACKET).bytes_per_sec() / f64::from(PACKET);
            prop_assert!(rate <= 10_000.0 * (1.0 + 1e-9), "{:?}", sample);
            prop_assert!(sample.interval >= DELAY * 2);
        }
    }

    /// `run` itself asserts that everything arrives and is acknowledged exactly once.
    #[test]
    fn everything_arrives_whatever_is_lost(
        recovery in modes(),
        length in 1u32..250,
        window in 1.0..60.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.15), 0..300),
        lost_acks in prop::collection::vec(prop::bool::weighted(0.2), 0..300),
        late in prop::collection::vec(prop_oneof![4 => Just(0u64), 1 => 0u64..30_000], 1..50),
        marked in prop::collection::vec(prop::bool::weighted(0.05), 0..300),
        delayed_acks: bool,
        limited_transmit: bool,
    ) {
        let losses = lost.iter().filter(|l| **l).count() as u32;
        let path = Path {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            lose_ack: Box::new(move |n| lost_acks.get(n).copied().unwrap_or(false)),
            late: Box::new(move |n| late[n % late.len()]),
            mark: Box::new(move |n, _| marked.get(n).copied().unwrap_or(false)),
        };
        let params = Params { delayed_acks, limited_transmit, ..Params::default() };
        let (run, _) = tcp(&params, recovery, window, length, &path);
        // Going back N may resend a window per timeout; nothing resends without end.
        prop_assert!(run.retransmissions <= (length + losses) * (run.timeouts + 2));
    }

    /// Without reordering SACK resends what was lost, and one rescue packet per recovery at the most.
    #[test]
    fn sack_resends_little_but_what_was_lost(
        length in 1u32..400,
        window in 1.0..80.0f64,
        lost in prop::collection::vec(prop::bool::weighted(0.1), 0..400),
        delayed_acks: bool,
    ) {
        let path = Path {
            lose: Box::new(move |n, _| lost.get(n).copied().unwrap_or(false)),
            ..Path::default()
        };
        let params = Params { delayed_acks, ..Params::default() };
        let (run, law) = tcp(&params, Recovery::Sack, window, length, &path);
        if run.timeouts == 0 {
            prop_assert!(run.retransmissions as usize <= run.lost + law.congestion.len());
        }
        prop_assert!(run.retransmissions as usize >= run.lost);
    }

    /// Original transmissions lost from a window that keeps sending, large enough that three others always arrive
    /// above: SACK needs neither timer nor copies.
    #[test]
    fn sack_needs_no_timer_where_retransmissions_arrive(
        window in 48u32..120,
        seqs in prop::collection::btree_set(100u32..140, 1..10),
    ) {
        let seqs: Vec<u32> = seqs.into_iter().collect();
        let (run, law) = tcp(&Params::default(), Recovery::Sack, f64::from(window), 600, &losing(&seqs));
        prop_assert!(run.timeouts == 0, "{} timeouts", run.timeouts);
        prop_assert_eq!(run.retransmissions as usize, seqs.len());
        // The losses span less than a window, which may border on the next.
        prop_assert!((1..=2).contains(&law.congestion.len()), "{:?}", law.congestion);
    }
}

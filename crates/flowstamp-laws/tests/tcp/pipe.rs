//! A pipe of fixed rate and delay, with chosen losses, marks and reordering, and a law that notes what it is told.

use flowstamp_laws::sender::{
    Ack, Congestion, FlowView, LostPacket, RateSample, Recovery, SenderLaw, SenderTraits,
};
use flowstamp_laws::tcp::reno::{self, Reno};
use flowstamp_laws::transport::{AckInfo, AckPacket, Agreed, DataPacket, Outgoing, Params, Receiver, Sender};
use flowstamp_laws::{Stamp, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub const PACKET: u32 = 1000;
pub const MODES: [Recovery; 3] = [Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// A law that notes what the transport tells it.
pub struct Noted<L> {
    pub law: L,
    /// Losses and marks, and marks alone.
    pub congestion: Vec<u32>,
    pub marks: usize,
    pub timeouts: Vec<u32>,
    pub newly: u64,
    pub marked: u32,
    pub wants_rate: bool,
    pub rates: Vec<RateSample>,
    pub lost: Vec<LostPacket>,
    /// Repairs that were vain, by how many packets had been delivered when that was told.
    pub spurious: Vec<u32>,
    pub least_rtt: Time,
    pub limited: Vec<bool>,
    pub in_recovery: usize,
}

impl<L: SenderLaw> Noted<L> {
    pub fn with(params: &L::Params, initial_window: f64) -> Self {
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
            lost: vec![],
            spurious: vec![],
            least_rtt: Time::MAX,
            limited: vec![],
            in_recovery: 0,
        }
    }

    /// Settings of both ends: this repair, and rates if the law wants them.
    pub fn agreed(&self, params: &Params, recovery: Recovery) -> Agreed {
        let traits = SenderTraits { recovery, delivery_rate: self.wants_rate, ..SenderTraits::DEFAULT };
        Agreed { recovery, ..Agreed::between(params, &traits) }
    }
}

impl<L: SenderLaw> SenderLaw for Noted<L> {
    type Params = L::Params;
    fn new(params: &L::Params, flow: &FlowView) -> Self {
        Self::with(params, flow.initial_window)
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
    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        match sign {
            Congestion::Loss { flight } => self.congestion.push(flight),
            Congestion::Mark { flight } => {
                self.congestion.push(flight);
                self.marks += 1;
            }
            Congestion::Timeout { flight } => self.timeouts.push(flight),
            Congestion::Packet(packet) => {
                assert!(self.wants_rate);
                self.lost.push(*packet);
            }
            Congestion::Spurious { delivered } => {
                assert!(self.wants_rate);
                self.spurious.push(delivered);
            }
        }
        self.law.on_congestion(now, sign);
    }
    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        self.law.stamp(now, srtt)
    }
}

pub type OfPacket = Box<dyn Fn(usize, &Outgoing) -> bool>;

/// The path's effect on the n-th data packet and on the n-th ack.
pub struct Impairments {
    pub lose: OfPacket,
    pub mark: OfPacket,
    pub late: Box<dyn Fn(usize) -> u64>,
    pub lose_ack: Box<dyn Fn(usize) -> bool>,
}

impl Default for Impairments {
    fn default() -> Self {
        Self {
            lose: Box::new(|_, _| false),
            mark: Box::new(|_, _| false),
            late: Box::new(|_| 0),
            lose_ack: Box::new(|_| false),
        }
    }
}

pub enum Event {
    Data(Outgoing, bool, Time),
    Ack(AckInfo),
}

/// The result of a run.
pub struct Run {
    pub sent: Vec<Outgoing>,
    pub lost: usize,
    pub finished: Time,
    pub retransmissions: u32,
    pub timeouts: u32,
    pub echoes: usize,
    pub acks: usize,
    /// Packets that were marked when they first arrived.
    pub marked: u32,
    /// Packets of the congestion window after each ack.
    pub windows: Vec<f64>,
}

pub const DELAY: Time = Time::from_millis(20);
pub const TX: Time = Time::from_micros(100);

/// Runs a flow of `length` packets to its end and checks what must hold whatever the path does.
pub fn run<L: SenderLaw>(
    params: &Params,
    recovery: Recovery,
    length: u32,
    law: &mut Noted<L>,
    path: &Impairments,
) -> Run {
    let agreed = law.agreed(params, recovery);
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
pub fn tcp(
    params: &Params,
    recovery: Recovery,
    window: f64,
    length: u32,
    path: &Impairments,
) -> (Run, Noted<Reno>) {
    let law = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    let mut law = Noted::with(&law, window);
    (run(params, recovery, length, &mut law, path), law)
}

/// Loses the first transmission of each of `seqs`.
pub fn losing(seqs: &[u32]) -> Impairments {
    let seqs = seqs.to_vec();
    Impairments {
        lose: Box::new(move |_, p| !p.retransmission && seqs.contains(&p.seq)),
        ..Impairments::default()
    }
}

/// A sender with `window` packets in flight since time zero.
pub fn in_flight(recovery: Recovery, window: u32) -> (Sender, Noted<Reno>) {
    let params = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    let law = Noted::with(&params, f64::from(window));
    let mut sender = Sender::new(&Params::default(), recovery, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    assert_eq!(sender.next_seq(), window);
    (sender, law)
}

/// Gives the sender an ack at `now`, and returns what it then sends.
pub fn feed(
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

/// A law that asks for delivery rates, at a fixed window.
pub fn measured(window: f64, length: u32, path: &Impairments, params: &Params) -> Noted<Reno> {
    measured_with(Recovery::Sack, window, length, path, params)
}

/// The same with a repair.
pub fn measured_with(
    recovery: Recovery,
    window: f64,
    length: u32,
    path: &Impairments,
    params: &Params,
) -> Noted<Reno> {
    let limits =
        reno::Params { initial_ssthresh: Some(2.0), max_window: Some(window), ..reno::Params::default() };
    let mut law = Noted::<Reno>::with(&limits, window);
    law.wants_rate = true;
    run(params, recovery, length, &mut law, path);
    law
}

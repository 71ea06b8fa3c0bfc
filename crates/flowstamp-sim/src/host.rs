//! What hosts do: flows and both of their ends.

mod ahead;
mod application;
mod audit;
mod change;
mod edge;
mod handshake;
mod jitter;
mod receiver;
mod record;
mod sender;
mod timers;

pub use ahead::sides;
pub use application::{APP_BYTES, MESSAGE_BYTES, MOST_FRAMES, Offered, Tally, WAITING_BYTES};
pub use record::{Done, Outcome, Record};
pub use timers::LazyTimer;

use crate::active::ActiveFlows;
use crate::capture::User;
use crate::delays::Delays;
use crate::events::{Class, Source};
use crate::fabric::Fabric;
use crate::flow_list::Listed;
use crate::packet::{CONTROL, DATA, ECN_CAPABLE, L4S, Packet, flow_id};
use crate::plan::{Comes, GroupPlan, Path, WebPlan};
use crate::prefetch::prefetch_part;
use crate::scenario::{self, Scenario};
use crate::size_bins::{self, BINS};
use application::App;
use flowstamp_laws::registry::{AnySender, Header, SenderSpec};
use flowstamp_laws::sender::{FlowChange, FlowView, SenderLaw, SenderTraits};
use flowstamp_laws::transport::{self, Agreed, Receiver, Sender};
use flowstamp_laws::units::{Rate, Time};
use jitter::Jitter;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::num::NonZeroU64;
use std::ops::Range;

/// What the flows of a group share.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name in results.
    pub name: String,
    /// What was known of it before the run.
    pub plan: GroupPlan,
    /// The senders' laws: one, but of a list of flows those that it names.
    pub laws: Vec<Law>,
    /// Their receivers bring no stamps back.
    deaf: bool,
    /// Of its flows, for links that go by it.
    label: u8,
    /// Bytes that the link that its flow governs had sent at the last answer.
    carried: f64,
    /// What each flow transfers.
    pub size: Option<u64>,
    /// How fast applications produce data, at a constant rate.
    pub rate: Option<Rate>,
    /// What applications have done that produce messages, or datagrams.
    pub tally: Tally,
    /// The most bytes of datagrams that wait for a host's link, and how fast that is.
    send_buffer: Option<(f64, Rate)>,
    /// When flows stop sending new data.
    pub stop: Time,
    /// Unique bytes of payload delivered to all its flows.
    pub delivered_bytes: u64,
    /// The same at the end of warm-up.
    pub delivered_at_warmup: u64,
    /// Flows that arrive in the run, at random or as a file lists them.
    pub web: bool,
    /// Flows so far.
    pub flows: u32,
    /// Of a list, the record of its first row.
    first_record: u32,
    /// How many web flows are there.
    pub active: ActiveFlows,
    /// Which of [`Hosts::delays`] are its own: one, or of flows that arrive with sizes of their own one for each bin.
    pub delays: Range<usize>,
}

/// A law of a group, and what its flows do by it.
#[derive(Clone, Debug)]
pub struct Law {
    /// The sender's law.
    pub spec: SenderSpec,
    traits: SenderTraits,
    /// Window, acks and recovery.
    transport: transport::Params,
    /// What its data packets say of ECN.
    ect: u8,
}

impl Group {
    fn new(scenario: &Scenario, plan: &GroupPlan) -> Self {
        let spec = &scenario.flows[plan.spec];
        let law = |law: &SenderSpec| {
            let traits = law.traits();
            let ecn = spec.transport.ecn.unwrap_or(traits.ecn);
            Law {
                spec: law.clone(),
                traits,
                transport: transport::Params {
                    ecn: Some(ecn),
                    initial_rto: Some(plan.initial_rto),
                    max_rto: Some(plan.max_rto),
                    ..spec.transport.clone()
                },
                ect: match ecn {
                    true if traits.l4s => ECN_CAPABLE | L4S,
                    true => ECN_CAPABLE,
                    false => 0,
                },
            }
        };
        Self {
            name: plan.name.clone(),
            plan: plan.clone(),
            laws: plan.laws.iter().map(law).collect(),
            carried: 0.0,
            deaf: spec.receiver == scenario::Receiver::Tcp,
            label: spec.label,
            size: spec.size.map(flowstamp_laws::Bytes::get),
            rate: plan.rate,
            tally: Tally::default(),
            send_buffer: spec.send_buffer.zip(plan.access).map(|(most, rate)| (most.as_f64(), rate)),
            stop: spec.stop.unwrap_or(Time::MAX),
            delivered_bytes: 0,
            delivered_at_warmup: 0,
            web: spec.web.is_some() || spec.list.is_some(),
            flows: 0,
            first_record: 0,
            active: ActiveFlows::default(),
            delays: 0..0,
        }
    }

    /// Window, acks and recovery, apart from what follows from a law.
    fn transport(&self) -> &transport::Params {
        &self.laws[0].transport
    }

    /// The names of the laws that its flows have.
    #[must_use]
    pub fn law(&self) -> String {
        let list = self.plan.list.as_ref();
        let used = |law: u32| list.is_none_or(|list| list.uses.keys().any(|(_, used)| *used == law));
        let names = (0..).zip(&self.laws).filter(|(number, _)| used(*number)).map(|(_, law)| law.spec.name());
        names.collect::<Vec<_>>().join(", ")
    }

    /// The name of a flow's law.
    #[must_use]
    pub fn law_of(&self, flow: &Record) -> &'static str {
        let law = self.plan.list.as_ref().map_or(0, |list| list.rows[flow.index as usize].law);
        self.laws[law as usize].spec.name()
    }

    /// Whether a flow has begun by `now`, of a run that ends at `end`. Those of a list are known before; those that would start when
    /// arrivals have ended do not.
    #[must_use]
    pub fn began(&self, flow: &Record, now: Time, end: Time) -> bool {
        flow.start <= now && (self.plan.list.is_none() || flow.start < self.stop.min(end))
    }

    /// When one of its flows, which do not arrive at random, stops sending new data.
    #[must_use]
    pub fn stops(&self, flow: &Record) -> Time {
        let lifetime = self.plan.lifetimes.get(flow.index as usize);
        lifetime.map_or(self.stop, |l| self.stop.min(flow.start.saturating_add(*l)))
    }
}

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    /// What a window allows.
    Window,
    /// The same of what its application has produced, message by message.
    Messages,
    /// Datagrams at its pace, whatever comes back.
    Datagrams,
    /// No data: it governs a link and asks for it.
    Requests,
}

impl Sends {
    fn of(group: &Group, law: &SenderTraits) -> Self {
        match group.plan.governs {
            Some(_) => Self::Requests,
            None if law.datagrams => Self::Datagrams,
            None if group.plan.application.is_some() => Self::Messages,
            None => Self::Window,
        }
    }
}

/// One flow: both ends of it. Fields stand in the order in which packets need them: the first two cache lines are all that most
/// data need, and acks need the rest too ([`Flow::expect`]).
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Flow {
    generation: u16,
    header: Header,
    /// What its data packets say of ECN.
    ect: u8,
    started: bool,
    /// Data may leave: there is no handshake, or it has been answered.
    open: bool,
    sends: Sends,
    /// Its receiver knows no stamps and brings none back.
    deaf: bool,
    path: Path,
    /// Packets to transfer; `u32::MAX` for endless.
    packets: u32,
    /// Its group.
    pub group: u32,
    /// Index into the records.
    pub record: u32,
    /// Index into the delays.
    delays: u32,
    receiver: Receiver,
    /// Unique bytes of payload delivered.
    pub delivered_bytes: u64,
    application: LazyTimer,
    ack: LazyTimer,
    /// Size of the last packet.
    last_size: u16,
    /// Its law may give its protocol up.
    falls_back: bool,
    /// It opens with a SYN and ends with a FIN.
    handshake: bool,
    /// All is acknowledged, and the FIN is sent.
    closing: bool,
    /// SYNs sent, then FINs.
    tries: u8,
    /// A paced sender's last departure: how many bytes, and when.
    last_departed: u16,
    last_departure: Time,
    retransmit: LazyTimer,
    pace: LazyTimer,
    control: LazyTimer,
    /// The sending end.
    pub sender: Sender,
    /// The sender's law.
    pub law: AnySender,
    jitter: Option<Box<Jitter>>, // few flows have one
    app: Option<Box<App>>,       // as few
    /// Datagrams sent.
    sent: u32,
}

/// Bytes of a flow's random delays before departures.
pub const JITTER_BYTES: usize = size_of::<Jitter>();

impl Flow {
    /// Its law has held packets back that the window allowed.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.last_departed > 0
    }

    /// Packets that its receiver got once more.
    #[must_use]
    pub fn copies(&self) -> u32 {
        self.receiver.copies()
    }

    /// Since when it waits for its retransmission timeout, if it does: from its last ack or packet.
    #[must_use]
    pub fn waits_since(&self) -> Option<Time> {
        let deadline = self.sender.deadline();
        (deadline < Time::MAX).then(|| deadline.saturating_sub(self.sender.rto()))
    }

    /// The header of the packets that it sends now, at both ends: what this looks at of the sender, receivers must not run
    /// ahead of ([`sides`]).
    #[inline]
    fn spoken(&self) -> Header {
        if self.falls_back && self.law.report().fallen_back.is_some() { Header::Plain } else { self.header }
    }

    /// A packet of its is about to arrive, data or an ack: what that needs of it is brought near.
    #[inline]
    fn expect(&self, data: bool) {
        prefetch_part(self, 0..if data { offset_of!(Self, last_departure) } else { size_of::<Self>() });
    }
}

/// All flows.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Groups.
    pub groups: Vec<Group>,
    /// Flows: those known before the run keep their slots, web flows use them in turn.
    pub flows: Vec<Flow>,
    free: Vec<u32>,
    /// How long data packets were on their way, after warm-up; whose they are is said by [`Group::delays`].
    pub delays: Vec<Delays>,
    /// What remains of each flow.
    pub records: Vec<Record>,
    /// Which record belongs to a packet's flow, where there is a police that will want to know.
    pub policed: BTreeMap<u64, u32>,
    /// Of the flows up to the last that is over.
    outcomes: Vec<Outcome>,
    web: Vec<WebPlan>,
    packet_bytes: u16,
    /// Of a data packet's bytes, those that are no payload.
    header_bytes: u16,
    ack_bytes: u16,
    seed: u64,
}

impl Hosts {
    /// Hosts without flows; web flows arrive from their first gap on.
    #[must_use]
    pub fn new(scenario: &Scenario, groups: &[GroupPlan], web: Vec<WebPlan>, net: &mut Fabric) -> Self {
        let mut groups: Vec<Group> = groups.iter().map(|plan| Group::new(scenario, plan)).collect();
        let mut delays = 0;
        for group in &mut groups {
            let first = delays;
            delays += if group.web { BINS } else { 1 };
            group.delays = first..delays;
        }
        let mut hosts = Self {
            groups,
            delays: vec![Delays::default(); delays],
            flows: Vec::new(),
            free: Vec::new(),
            records: Vec::new(),
            policed: BTreeMap::new(),
            outcomes: Vec::new(),
            web,
            packet_bytes: scenario.packet.get() as u16,
            header_bytes: scenario.header.get() as u16,
            ack_bytes: scenario.ack.get() as u16,
            seed: scenario.seed,
        };
        for (number, web) in hosts.web.iter_mut().enumerate() {
            let first = web.first();
            net.events.push(first, Source::new(Class::Web, number as u32));
        }
        hosts
    }

    /// Payload of a full data packet, bytes.
    #[inline]
    fn payload(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }

    /// A packet has reached its host.
    #[inline]
    pub fn arrive(&mut self, net: &mut Fabric, packet: &Packet) {
        let flow = &self.flows[packet.flow as usize];
        if flow.generation != packet.generation {
            // A late copy for a flow that has ended; its slot serves another.
            net.sacks.release(packet.sack);
        } else if packet.flags & CONTROL != 0 {
            self.arrive_control(net, packet);
        } else if packet.flags & DATA == 0 {
            self.arrive_ack(net, packet);
        } else {
            self.arrive_data(net, packet);
        }
    }

    /// A web flow arrives.
    pub fn web_arrival(&mut self, net: &mut Fabric, number: u32) {
        let WebPlan { group, paths, comes, start, stop } = &mut self.web[number as usize];
        if net.now >= *stop {
            return;
        }
        let group = *group;
        let (next, pair, law, record) = match comes {
            Comes::Random { arrivals, sizes } => {
                let size = sizes.draw();
                let index = self.groups[group as usize].flows;
                self.records.push(Record::new(group, index, net.now, Some(size)));
                (net.now + arrivals.gap(), 0, 0, self.records.len() - 1)
            }
            Comes::Listed { list, next } => {
                let row = list.order[*next];
                *next += 1;
                let after =
                    list.order.get(*next).map(|row| start.saturating_add(list.rows[*row as usize].start));
                let listed = &list.rows[row as usize];
                let first = self.groups[group as usize].first_record;
                (after.unwrap_or(Time::MAX), listed.pair as usize, listed.law, (first + row) as usize)
            }
        };
        let path = paths[pair][0];
        paths[pair].rotate_left(1);
        if next < Time::MAX {
            net.events.push(next, Source::new(Class::Web, number));
        }
        let slot = self.add_flow(net, record as u32, law, path);
        self.groups[group as usize].active.begin(net.now);
        self.begin(net, slot);
    }

    /// Adds a flow that is known before the run.
    pub fn add_planned(&mut self, net: &mut Fabric, group: u32, index: u32, path: Path, start: Time) {
        let size = self.groups[group as usize].size;
        self.records.push(Record::new(group, index, start, size));
        let slot = self.add_flow(net, self.records.len() as u32 - 1, 0, path);
        self.flows[slot as usize].application.arm(start, &mut net.events, Class::Application, slot);
    }

    /// Makes the records of flows that files list, in the order of the rows: after those that are known before the run.
    pub fn add_listed(&mut self) {
        for web in &self.web {
            let Comes::Listed { list, .. } = &web.comes else { continue };
            self.groups[web.group as usize].first_record = self.records.len() as u32;
            let record = |(row, listed): (u32, &Listed)| {
                Record::new(web.group, row, web.start.saturating_add(listed.start), Some(listed.size))
            };
            self.records.reserve_exact(list.rows.len());
            self.records.extend((0..).zip(&list.rows).map(record));
        }
    }

    /// Takes a slot for the flow of a record.
    fn add_flow(&mut self, net: &mut Fabric, record: u32, law: u32, path: Path) -> u32 {
        self.records[record as usize].route = path.data;
        let flow = self.flow(net, record, law, path);
        let Record { group, size, .. } = self.records[record as usize];
        self.groups[group as usize].flows += 1;
        let (packets, last_size) = self.packets(size.map(NonZeroU64::get));
        let slot = self.take_slot(flow);
        let generation = self.flows[slot as usize].generation;
        net.capture.open(slot, User { generation, record, packets, last_size });
        net.label(slot, self.groups[group as usize].label);
        if net.has_police() {
            self.policed.insert(flow_id(slot, generation), record);
        }
        slot
    }

    /// How many packets a size takes, and how large the last one is; `u32::MAX` of an endless flow.
    fn packets(&self, size: Option<u64>) -> (u32, u16) {
        let payload = u64::from(self.payload());
        let packets = size.map_or(u32::MAX, |s| s.div_ceil(payload).min(u64::from(u32::MAX - 1)) as u32);
        // A size of more packets than are counted ends with a full one.
        let last = size.map_or(payload, |s| (s - (u64::from(packets) - 1) * payload).min(payload));
        (packets, self.header_bytes + last as u16)
    }

    /// The two ends of a flow that has not begun.
    fn flow(&self, net: &Fabric, record: u32, law: u32, path: Path) -> Flow {
        let Record { group, index, size, .. } = self.records[record as usize];
        let size = size.map(NonZeroU64::get);
        let (packets, last_size) = self.packets(size);
        let payload = u64::from(self.payload());
        let spec = &self.groups[group as usize];
        // Laws count packets as they are on the wire.
        let wire = |rate: Rate| Rate::from_bps(rate.bps() * (f64::from(self.packet_bytes) / payload as f64));
        let Law { spec: law_spec, traits, transport, ect } = &spec.laws[law as usize];
        let view = FlowView {
            packet_bytes: u32::from(self.packet_bytes),
            initial_window: transport.initial_window,
            app_rate: spec.plan.governs.map_or_else(|| spec.rate.map(wire), |(_, most)| Some(most)),
        };
        let mut law = law_spec.build(&view);
        if traits.falls_back {
            law.on_change(FlowChange::Hops(net.hops(path.data)));
        }
        let bin = size.filter(|_| spec.web).map_or(0, |size| size_bins::bin(size, payload));
        let handshake = transport.handshake.unwrap_or(traits.handshake);
        let agreed = Agreed::between(transport, traits);
        let sends = Sends::of(spec, traits);
        let app = spec.plan.application.as_ref();
        Flow {
            falls_back: traits.falls_back,
            sender: Sender::new(transport, agreed, size.map(|_| packets)),
            law,
            receiver: Receiver::new(transport, agreed),
            path,
            group,
            record,
            delays: (spec.delays.start + bin) as u32,
            delivered_bytes: 0,
            // Of messages each has an end of its own.
            packets: if sends == Sends::Messages { 0 } else { packets },
            last_size,
            generation: 0,
            header: law_spec.header(),
            ect: *ect,
            started: false,
            retransmit: LazyTimer::IDLE,
            ack: LazyTimer::IDLE,
            pace: LazyTimer::IDLE,
            application: LazyTimer::IDLE,
            control: LazyTimer::IDLE,
            handshake,
            deaf: spec.deaf,
            sends,
            sent: 0,
            open: !handshake,
            closing: false,
            tries: 0,
            last_departure: Time::ZERO,
            last_departed: 0,
            jitter: Jitter::new(spec.plan.send_jitter, self.seed, &spec.plan.name, index),
            app: app.map(|app| App::new(app.of_flow(self.seed, &spec.plan.name, index))),
        }
    }

    /// Puts a flow where another has left, or behind all.
    fn take_slot(&mut self, mut flow: Flow) -> u32 {
        if let Some(slot) = self.free.pop() {
            let old = &mut self.flows[slot as usize];
            flow.generation = old.generation.wrapping_add(1);
            // Events of the flow before are still pending; they find nothing due and are reused.
            flow.retransmit = old.retransmit;
            flow.ack = old.ack;
            flow.pace = old.pace;
            flow.application = old.application;
            flow.control = old.control;
            *old = flow;
            slot
        } else {
            self.flows.push(flow);
            (self.flows.len() - 1) as u32
        }
    }

    /// A flow has everything acknowledged: its figures go into its record. What had a handshake ends with a FIN.
    fn complete(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        if flow.closing {
            return;
        }
        flow.closing = flow.handshake;
        flow.tries = 0;
        self.write_outcome(number, net.now);
        if self.flows[number as usize].closing {
            self.send_control(net, number);
        } else {
            self.close(number);
        }
    }

    /// A flow is over: a web flow's slot is free.
    fn close(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if self.groups[flow.group as usize].web && flow.started {
            flow.started = false;
            self.free.push(number);
        }
    }

    /// Writes what became of a flow, of which all is acknowledged since `acknowledged` at the latest.
    fn write_outcome(&mut self, number: u32, acknowledged: Time) {
        let flow = &self.flows[number as usize];
        let record = flow.record as usize;
        if record >= self.outcomes.len() {
            self.outcomes.resize(record + 1, Outcome::NONE);
        }
        let acknowledged = self.outcomes[record].acknowledged.min(acknowledged);
        self.outcomes[record] = Outcome::of(flow, acknowledged);
    }

    /// What became of the flow with this record, if that has been written.
    #[must_use]
    pub fn outcome(&self, record: usize) -> Outcome {
        self.outcomes.get(record).copied().unwrap_or(Outcome::NONE)
    }

    /// The run is over: writes what became of the flows that are still there, and frees their memory.
    pub fn end(&mut self) {
        for number in 0..self.flows.len() as u32 {
            let flow = &self.flows[number as usize];
            if flow.started || !self.groups[flow.group as usize].web {
                self.write_outcome(number, Time::MAX);
            }
        }
        self.flows = Vec::new();
    }
}

//! Hosts: flows, and both of their ends.

mod ahead;
mod application;
mod arrivals;
mod audit;
mod balance;
mod change;
mod collective;
mod edge;
mod handshake;
mod jitter;
#[cfg(feature = "parallel")]
mod parts;
mod receiver;
mod record;
mod sender;
mod supply;
mod timers;
#[cfg(feature = "full")]
mod video;

pub use ahead::sides;
pub use application::{MESSAGE_BYTES, MOST_FRAMES, Offered, Tally, WAITING_BYTES, app_bytes};
use arrivals::Arrivals;
pub use balance::Pick;
pub use collective::Operations;
pub use record::{Done, Outcome, Record};
pub use timers::LazyTimer;
#[cfg(feature = "full")]
pub use video::Watched;

use crate::active::ActiveFlows;
use crate::capture::User;
use crate::delays::Delays;
use crate::events::Class;
use crate::fabric::Fabric;
use crate::flow_list::Listed;
use crate::packet::{CONTROL, DATA, ECN_CAPABLE, L4S, Packet, flow_id};
use crate::plan::{ArrivalPlan, Choice, Comes, FlowRoutes, GroupPlan};
use crate::prefetch::prefetch_part;
use crate::scenario::{self, Scenario};
use crate::size_bins::{self, BINS};
use application::App;
use balance::Balancer;
use flowstamp_laws::registry::{AnySender, Header, SenderSpec};
use flowstamp_laws::sender::{FlowChange, FlowView, SenderLaw, SenderTraits};
use flowstamp_laws::transport::{self, Agreed, Receiver, Sender};
use flowstamp_laws::units::{Rate, Time};
use jitter::Jitter;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::num::NonZeroU64;
use std::ops::Range;
use supply::Supply;

/// State that the flows of a group share.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name in results.
    pub name: String,
    /// The group's plan, laid out before the run.
    pub plan: GroupPlan,
    /// The senders' laws: one, or for a list of flows those that it names.
    pub laws: Vec<GroupLaw>,
    /// Receivers return no stamps.
    deaf: bool,
    /// Label of its flows, for links whose classes are labels.
    label: u8,
    /// Bytes that the governed link had sent at the last answer.
    carried: f64,
    /// Bytes of payload that each flow transfers; `None` for endless.
    pub size: Option<u64>,
    /// The data that applications produce, if not messages.
    pub supply: Supply,
    /// Counts of applications that produce messages or datagrams.
    pub tally: Tally,
    /// The collective operations that the flows carry out.
    pub operations: Option<Box<Operations>>,
    /// Send buffer for datagrams, bytes, and the rate of the host's link.
    send_buffer: Option<(f64, Rate)>,
    /// When the flows stop sending new data.
    pub stop: Time,
    /// Unique bytes of payload delivered by all its flows.
    pub delivered_bytes: u64,
    /// `delivered_bytes` at the end of warm-up.
    pub delivered_at_warmup: u64,
    /// Its flows arrive during the run, at random or as a file lists them.
    pub arriving: bool,
    /// Number of flows so far.
    pub flows: u32,
    /// For a list of flows, the record of its first row.
    first_record: u32,
    /// Number of active flows, for flows that arrive during the run.
    pub active: ActiveFlows,
    /// The group's part of [`Hosts::delays`]: one entry, or one for each size bin if flows arrive with sizes of their
    /// own.
    pub delays: Range<usize>,
}

/// A law of a group, and the transport parameters that go with it.
#[derive(Clone, Debug)]
pub struct GroupLaw {
    /// The sender's law.
    pub spec: SenderSpec,
    traits: SenderTraits,
    /// Window, acks and loss recovery.
    transport: transport::Params,
    /// ECN flags of its data packets.
    ect: u8,
}

impl Group {
    fn new(scenario: &Scenario, plan: &GroupPlan) -> Self {
        let spec = &scenario.flows[plan.spec];
        let law = |law: &SenderSpec| {
            let traits = law.traits();
            let ecn = spec.transport.ecn.unwrap_or(traits.ecn);
            GroupLaw {
                spec: law.clone(),
                traits,
                transport: transport::Params {
                    ecn: Some(ecn),
                    initial_rto: Some(plan.initial_rto),
                    max_rto: Some(plan.max_rto),
                    ..spec.transport
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
            size: spec.size.filter(|_| plan.collective.is_none()).map(flowstamp_laws::Bytes::get),
            supply: Supply::of(plan),
            tally: Tally::default(),
            operations: None,
            send_buffer: spec.send_buffer.zip(plan.access).map(|(most, rate)| (most.as_f64(), rate)),
            stop: spec.stop.unwrap_or(Time::MAX),
            delivered_bytes: 0,
            delivered_at_warmup: 0,
            arriving: spec.arrives(),
            flows: 0,
            first_record: 0,
            active: ActiveFlows::default(),
            delays: 0..0,
        }
    }

    /// Constant rate at which applications produce data.
    fn rate(&self) -> Option<Rate> {
        self.supply.rate()
    }

    /// Window, acks and loss recovery, apart from the settings that depend on the law.
    fn transport(&self) -> &transport::Params {
        &self.laws[0].transport
    }

    /// Names of the laws that its flows use, separated by commas.
    #[must_use]
    pub fn law(&self) -> String {
        let list = self.plan.list.as_ref();
        let used = |law: u32| list.is_none_or(|list| list.uses.keys().any(|(_, used)| *used == law));
        let names = (0..).zip(&self.laws).filter(|(number, _)| used(*number)).map(|(_, law)| law.spec.name());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Name of a flow's law.
    #[must_use]
    pub fn law_of(&self, flow: &Record) -> &'static str {
        let law = self.plan.list.as_ref().map_or(0, |list| list.rows[flow.index as usize].law);
        self.laws[law as usize].spec.name()
    }

    /// Whether a flow has begun by `now`, in a run that ends at `end`. Records of listed flows exist before the flows
    /// begin. A listed flow that would start after arrivals have ended never begins.
    #[must_use]
    pub fn began(&self, flow: &Record, now: Time, end: Time) -> bool {
        flow.start <= now && (self.plan.list.is_none() || flow.start < self.stop.min(end))
    }

    /// When a flow of this group stops sending new data. Its flows must not arrive at random.
    #[must_use]
    pub fn stops(&self, flow: &Record) -> Time {
        let lifetime = self.plan.lifetimes.get(flow.index as usize);
        lifetime.map_or(self.stop, |l| self.stop.min(flow.start.saturating_add(*l)))
    }
}

/// The kind of data that a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    /// Endless data or a fixed size, as the window allows.
    Window,
    /// The application's messages, as the window allows.
    Messages,
    /// Datagrams at the application's pace, without regard to feedback.
    Datagrams,
    /// No data: the flow sets a link's rate and sends only requests.
    Requests,
}

impl Sends {
    fn of(group: &Group, law: &SenderTraits) -> Self {
        match group.plan.governs() {
            Some(_) => Self::Requests,
            None if law.datagrams => Self::Datagrams,
            None if group.plan.application.is_some() => Self::Messages,
            None => Self::Window,
        }
    }
}

/// Both ends of one flow. Fields are in the order in which packets need them. Most data need only the first two cache
/// lines; acks need the rest too ([`Flow::expect`]).
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Flow {
    generation: u16,
    header: Header,
    /// ECN flags of its data packets.
    ect: u8,
    started: bool,
    /// Data may leave: no handshake is needed, or it has been answered.
    open: bool,
    sends: Sends,
    /// The receiver returns no stamps.
    deaf: bool,
    routes: FlowRoutes,
    /// Packets to transfer; `u32::MAX` for endless.
    packets: u32,
    /// Index of the group.
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
    /// The law may fall back to plain TCP packets.
    falls_back: bool,
    /// The flow opens with a SYN and ends with a FIN.
    handshake: bool,
    /// All data are acknowledged and the FIN is sent.
    closing: bool,
    /// SYNs sent, then FINs.
    tries: u8,
    /// A paced sender's last departure: size, bytes, and time.
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

/// Memory of a flow's random send delays, bytes.
pub const JITTER_BYTES: usize = size_of::<Jitter>();

impl Flow {
    /// Whether the law has paced packets that the window allowed.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.last_departed > 0
    }

    /// Duplicate packets that the receiver got.
    #[must_use]
    pub fn copies(&self) -> u32 {
        self.receiver.copies()
    }

    /// When the retransmission timer last restarted, if it runs: at the last ack or packet.
    #[must_use]
    pub fn waits_since(&self) -> Option<Time> {
        let deadline = self.sender.deadline();
        (deadline < Time::MAX).then(|| deadline.saturating_sub(self.sender.rto()))
    }

    /// The header of packets sent now, at both ends. It depends on the sender's state, so receivers must not run ahead
    /// of the sender ([`sides`]).
    #[inline]
    fn spoken(&self) -> Header {
        if self.falls_back && self.law.report().fallen_back.is_some() { Header::Plain } else { self.header }
    }

    /// Prefetches the fields that an arriving packet needs, data or ack.
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
    /// Flows by slot. Flows known before the run keep their slots; flows that arrive during the run reuse slots.
    pub flows: Vec<Flow>,
    /// One-way delays of data packets after warm-up; [`Group::delays`] says which entries belong to which group.
    pub delays: Vec<Delays>,
    /// Record of each flow for the results.
    pub records: Vec<Record>,
    /// Record of each flow identifier, kept only where a link has police.
    pub policed: BTreeMap<u64, u32>,
    /// Outcomes by record, up to the last flow that has ended.
    outcomes: Vec<Outcome>,
    /// By record, the viewers' statistics at the end of the run.
    #[cfg(feature = "full")]
    pub watched: BTreeMap<u32, Watched>,
    arrivals: Arrivals,
    /// Picks a route for each packet or flowlet, where flows have several.
    balancer: Option<Box<Balancer>>,
    packet_bytes: u16,
    /// Header bytes of a data packet.
    header_bytes: u16,
    ack_bytes: u16,
    seed: u64,
}

impl Hosts {
    /// Makes hosts without flows and schedules the first arrival of each group with arrivals.
    #[must_use]
    pub fn new(
        scenario: &Scenario,
        groups: &[GroupPlan],
        arrivals: Vec<ArrivalPlan>,
        spreads: BTreeMap<u32, Vec<Choice>>,
        net: &mut Fabric,
    ) -> Self {
        let mut groups: Vec<Group> = groups.iter().map(|plan| Group::new(scenario, plan)).collect();
        let mut delays = 0;
        for group in &mut groups {
            let first = delays;
            delays += if group.arriving { BINS } else { 1 };
            group.delays = first..delays;
        }
        Self {
            groups,
            delays: vec![Delays::default(); delays],
            flows: Vec::new(),
            records: Vec::new(),
            policed: BTreeMap::new(),
            outcomes: Vec::new(),
            #[cfg(feature = "full")]
            watched: BTreeMap::new(),
            arrivals: Arrivals::new(arrivals, net),
            balancer: Balancer::new(&scenario.routing, spreads, scenario.seed),
            packet_bytes: scenario.packet.get() as u16,
            header_bytes: scenario.header.get() as u16,
            ack_bytes: scenario.ack.get() as u16,
            seed: scenario.seed,
        }
    }

    /// Payload of a full data packet, bytes.
    #[inline]
    fn payload(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }

    /// Handles a packet that has reached its host.
    #[inline]
    pub fn arrive(&mut self, net: &mut Fabric, packet: &Packet) {
        let flow = &self.flows[packet.flow as usize];
        if flow.generation != packet.generation {
            // A late copy for a flow that has left its slot.
            net.sacks.release(packet.sack);
        } else if packet.flags & CONTROL != 0 {
            self.arrive_control(net, packet);
        } else if packet.flags & DATA == 0 {
            self.arrive_ack(net, packet);
        } else {
            self.arrive_data(net, packet);
        }
    }

    /// Adds a flow that is known before the run.
    pub fn add_planned(&mut self, net: &mut Fabric, group: u32, index: u32, routes: FlowRoutes, start: Time) {
        let size = self.groups[group as usize].size;
        self.records.push(Record::new(group, index, start, size));
        let slot = self.add_flow(net, self.records.len() as u32 - 1, 0, routes, None);
        self.join_operations(slot);
        self.flows[slot as usize].application.arm(start, &mut net.events, Class::Application, slot);
    }

    /// Makes records for listed flows, in the order of the rows, after those of the planned flows.
    pub fn add_listed(&mut self) {
        for plan in &self.arrivals.plans {
            let Comes::Listed { list, .. } = &plan.comes else { continue };
            self.groups[plan.group as usize].first_record = self.records.len() as u32;
            let record = |(row, listed): (u32, &Listed)| {
                Record::new(plan.group, row, plan.start.saturating_add(listed.start), Some(listed.size))
            };
            self.records.reserve_exact(list.rows.len());
            self.records.extend((0..).zip(&list.rows).map(record));
        }
    }

    /// Puts the flow of a record into a free slot, or into a new one.
    fn add_flow(
        &mut self,
        net: &mut Fabric,
        record: u32,
        law: u32,
        routes: FlowRoutes,
        free: Option<u32>,
    ) -> u32 {
        self.records[record as usize].route = routes.data;
        let flow = self.flow(net, record, law, routes);
        let Record { group, size, .. } = self.records[record as usize];
        self.groups[group as usize].flows += 1;
        let (packets, last_size) = self.packets(size.map(NonZeroU64::get));
        let slot = self.take_slot(flow, free);
        if let Some(balancer) = &mut self.balancer {
            let index = self.records[record as usize].index;
            balancer.open(slot, &self.groups[group as usize].name, index, routes);
        }
        let generation = self.flows[slot as usize].generation;
        let datagrams = self.flows[slot as usize].sends == Sends::Datagrams;
        net.capture.open(slot, User { generation, record, packets, last_size, datagrams });
        net.label(slot, self.groups[group as usize].label);
        if net.has_police() {
            self.policed.insert(flow_id(slot, generation), record);
        }
        slot
    }

    /// Both ends of a flow that has not begun.
    fn flow(&self, net: &Fabric, record: u32, law: u32, routes: FlowRoutes) -> Flow {
        let Record { group, index, size, .. } = self.records[record as usize];
        let size = size.map(NonZeroU64::get);
        let (packets, last_size) = self.packets(size);
        let payload = u64::from(self.payload());
        let spec = &self.groups[group as usize];
        // Laws count bytes on the wire, headers included.
        let wire = |rate: Rate| Rate::from_bps(rate.bps() * (f64::from(self.packet_bytes) / payload as f64));
        let GroupLaw { spec: law_spec, traits, transport, ect } = &spec.laws[law as usize];
        let view = FlowView {
            packet_bytes: u32::from(self.packet_bytes),
            initial_window: transport.initial_window,
            app_rate: spec.plan.governs().map_or_else(|| spec.rate().map(wire), |(_, most)| Some(most)),
        };
        let mut law = law_spec.build(&view);
        if traits.falls_back || traits.knows_path {
            law.on_change(FlowChange::Path(net.path(routes, [self.packet_bytes, self.ack_bytes])));
        }
        let bin = size.filter(|_| spec.arriving).map_or(0, |size| size_bins::bin(size, payload));
        let handshake = transport.handshake.unwrap_or(traits.handshake);
        let agreed = Agreed::between(transport, traits);
        let sends = Sends::of(spec, traits);
        let app = spec.plan.application.as_ref();
        Flow {
            falls_back: traits.falls_back,
            sender: Sender::new(transport, agreed, size.map(|_| packets)),
            law,
            receiver: Receiver::new(transport, agreed),
            routes,
            group,
            record,
            delays: (spec.delays.start + bin) as u32,
            delivered_bytes: 0,
            // With messages, each message has an end of its own.
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

    /// Ends a flow whose data are all acknowledged: writes its outcome, and sends a FIN if it began with a handshake.
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
            self.close(net, number);
        }
    }
}

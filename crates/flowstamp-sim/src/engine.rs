//! The event loop: packets from link to link, hosts, timers.
//!
//! Cost is per packet-hop. A delivery takes one packet out of its link's ring and puts it into the next one's; the
//! event queue holds one event per busy link and the timers. State is in flat arrays; nothing is allocated, hashed or
//! looked up through a vtable per packet.

use crate::active::ActiveFlows;
use crate::events::{Class, EventQueue, Source};
use crate::link::{Admission, Link, PLAIN, Policy, Share};
use crate::load::Loaded;
use crate::network::{END, Network, Path, WebPlan};
use crate::packet::{
    CONGESTED, CONTROL, DATA, ECN_CAPABLE, ECN_ECHO, FIN, NO_SACK, Packet, REDUCED, SYN, SackPool,
};
use crate::probe::Probe;
use crate::random::Stream;
use crate::results::{Captured, CapturedPacket, Named, Results};
use crate::scenario::Scenario;
use crate::service::Service;
use crate::{Progress, ScenarioError};
use flowstamp_laws::queue::QueueView;
use flowstamp_laws::registry::{AnySender, Protocol, SenderSpec};
use flowstamp_laws::router::MAX_TIMERS;
use flowstamp_laws::sender::{FlowView, SenderLaw};
use flowstamp_laws::share::split::Split;
use flowstamp_laws::transport::{self, AckPacket, DataPacket, Receiver, Sender};
use flowstamp_laws::units::{Rate, Time};
use std::ops::ControlFlow;

/// How often a FIN is sent before its answer is no longer waited for: 31 timeouts in all.
const MOST_FINS: u8 = 5;

/// Events between two calls of the progress function.
const EVENTS_PER_TICK: u64 = 1 << 16;

/// A run that was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// What the flows of a group share.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub name: String,
    pub law: SenderSpec,
    pub transport: transport::Params,
    pub size: Option<u64>,
    pub rate: Option<Rate>,
    pub stop: Time,
    /// Unique bytes of payload delivered to all its flows.
    pub delivered_bytes: u64,
    pub delivered_at_warmup: u64,
    /// Flows that arrive at random.
    pub web: bool,
    /// Flows so far.
    pub flows: u32,
    /// How many web flows are there.
    pub active: ActiveFlows,
}

/// One flow: both ends of it.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub sender: Sender,
    pub law: AnySender,
    pub receiver: Receiver,
    pub path: Path,
    pub group: u32,
    /// Index into the records.
    pub record: u32,
    /// Unique bytes of payload delivered.
    pub delivered_bytes: u64,
    /// Packets to transfer; `u32::MAX` for endless.
    packets: u32,
    /// Size of the last packet.
    last_size: u16,
    generation: u16,
    protocol: Protocol,
    started: bool,
    /// The earliest pending event of each kind; `Time::MAX` if none.
    retransmit_at: Time,
    ack_at: Time,
    pace_at: Time,
    application_at: Time,
    control_at: Time,
    /// It opens with a SYN and ends with a FIN.
    handshake: bool,
    /// Data may leave: there is no handshake, or it has been answered.
    open: bool,
    /// All is acknowledged, and the FIN is sent.
    closing: bool,
    /// SYNs sent, then FINs.
    tries: u8,
    /// A paced sender's last departure: when, and how many bytes.
    last_departure: Time,
    last_departed: u16,
}

impl Flow {
    /// The protocol of the packets that it sends now.
    #[inline]
    fn spoken(&self) -> Protocol {
        self.law.fallen_back().map_or(self.protocol, |(protocol, _)| protocol)
    }
}

/// What remains of a flow in the results.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub group: u32,
    pub index: u32,
    pub start: Time,
    pub end: Time,
    pub size: Option<u64>,
    pub delivered_bytes: u64,
    pub delivered_at_warmup: u64,
    pub retransmissions: u32,
    pub timeouts: u32,
    pub min_rtt: Time,
    pub srtt: Time,
    /// When the flow gave up its protocol; [`Time::MAX`] if it did not.
    pub switched: Time,
}

/// A laid-out network, ready to run.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) scenario: Scenario,
    pub(crate) now: Time,
    queue: EventQueue,
    pub(crate) links: Vec<Link>,
    pub(crate) policies: Vec<Policy>,
    pub(crate) link_names: Vec<String>,
    routes: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    pub(crate) flows: Vec<Flow>,
    free: Vec<u32>,
    pub(crate) records: Vec<Record>,
    web: Vec<WebPlan>,
    sacks: SackPool,
    packet_bytes: u16,
    /// Of a data packet's bytes, those that are no payload.
    header_bytes: u16,
    ack_bytes: u16,
    pub(crate) events: u64,
    probe: Option<Probe>,
    recorder: Recorder,
    /// Packets that reached a host, for the conservation of packets.
    pub(crate) arrived: u64,
    /// Packets that hosts sent.
    pub(crate) sent: u64,
    /// Packets that queues dropped.
    pub(crate) lost: u64,
    /// See [`Network::assumed`] and [`Network::warnings`].
    pub(crate) assumed: Named<String>,
    pub(crate) warnings: Vec<String>,
}

impl Simulation {
    /// Lays out `loaded`; `seed` replaces the scenario's.
    ///
    /// # Errors
    /// Whatever cannot be, in one line.
    pub fn new(loaded: &Loaded, seed: Option<u64>) -> Result<Self, ScenarioError> {
        let mut scenario = loaded.scenario.clone();
        scenario.seed = seed.unwrap_or(scenario.seed);
        let Network { links: plans, access, routes, groups, flows, web, assumed, warnings } =
            Network::new(loaded, scenario.seed)?;
        let mut links = Vec::with_capacity(plans.len() + access.len());
        let mut policies = Vec::with_capacity(plans.len());
        for plan in &plans {
            links.push(Link::new(plan.capacity.service(), plan.delay, policies.len() as u32));
            let (rate, _) = plan.capacity.known_at(Time::ZERO);
            let view = QueueView {
                limit: plan.limit,
                capacity: plan.capacity.mean(Time::ZERO, scenario.duration),
                mean_packet_bytes: scenario.packet.get() as u32,
            };
            let mut policy = Policy::new(
                plan.capacity.clone(),
                plan.limit,
                plan.queue.build(&view),
                plan.router.build(rate),
                Stream::new(scenario.seed, &format!("queue/{}", plan.name)),
            );
            if let (Some(scheduler), Some(params)) = (plan.share.build(), plan.share.params()) {
                let split = Split::new(params, rate);
                policy.share = Some(Box::new(Share::new(split, scheduler, &policy.queue)));
            }
            policies.push(policy);
        }
        links.extend(access.iter().map(|a| Link::new(Service::constant(a.rate), a.delay, PLAIN)));
        let mut recorder = Recorder {
            captured: Captured::default(),
            left: Vec::new(),
            packet_bytes: scenario.packet.get() as u32,
        };
        if let Some(capture) = &scenario.capture {
            recorder.left = vec![capture.packets; plans.len()];
            for (plan, policy) in plans.iter().zip(&mut policies) {
                policy.captured = capture.links.as_ref().is_none_or(|names| names.contains(&plan.name));
            }
            recorder.captured.links = plans.iter().map(|p| p.name.clone()).collect();
        }
        let group_state = |g: &crate::network::GroupPlan| {
            let spec = &scenario.flows[g.spec];
            Group {
                name: g.name.clone(),
                law: spec.law.clone(),
                transport: transport::Params { initial_rto: Some(g.initial_rto), ..spec.transport.clone() },
                size: spec.size.map(flowstamp_laws::Bytes::get),
                rate: spec.rate,
                stop: spec.stop.unwrap_or(Time::MAX),
                delivered_bytes: 0,
                delivered_at_warmup: 0,
                web: spec.web.is_some(),
                flows: 0,
                active: ActiveFlows::default(),
            }
        };
        let mut sim = Self {
            now: Time::ZERO,
            queue: EventQueue::default(),
            links,
            policies,
            link_names: plans.into_iter().map(|p| p.name).collect(),
            routes,
            groups: groups.iter().map(group_state).collect(),
            flows: Vec::with_capacity(flows.len()),
            free: Vec::new(),
            records: Vec::new(),
            web,
            sacks: SackPool::default(),
            packet_bytes: scenario.packet.get() as u16,
            header_bytes: scenario.header.get() as u16,
            ack_bytes: scenario.ack.get() as u16,
            events: 0,
            probe: None,
            recorder,
            arrived: 0,
            sent: 0,
            lost: 0,
            assumed,
            warnings,
            scenario,
        };
        for plan in &flows {
            let size = sim.groups[plan.group as usize].size;
            let slot = sim.add_flow(plan.group, plan.index, plan.path, plan.start, size);
            sim.schedule_application(slot, plan.start);
        }
        for number in 0..sim.web.len() {
            let first = sim.web[number].start + sim.web[number].arrivals.gap();
            sim.queue.push(first, Source::new(Class::Web, number as u32));
        }
        for (number, policy) in sim.policies.iter().enumerate() {
            for which in 0..MAX_TIMERS {
                if let Some(at) = policy.router.as_ref().and_then(|r| r.first_timer(which)) {
                    sim.queue.push(at, Source::new(Class::Router, (number * MAX_TIMERS + which) as u32));
                }
            }
            if let Some(share) = &policy.share {
                sim.queue.push(share.split.first_timer(), Source::new(Class::Share, number as u32));
            }
            if let (Some(_), (_, Some(at))) = (&policy.router, policy.capacity.known_at(Time::ZERO)) {
                sim.queue.push(at, Source::new(Class::Capacity, number as u32));
            }
        }
        sim.queue.push(sim.scenario.warmup, Source::new(Class::Warmup, 0));
        sim.probe = Probe::new(&sim);
        if let Some(probe) = &sim.probe {
            sim.queue.push(probe.every(), Source::new(Class::Probe, 0));
        }
        Ok(sim)
    }

    /// Runs to the end. `tick` is called every 65,536 events and may stop the run.
    ///
    /// # Errors
    /// [`Stopped`] if `tick` said so.
    pub fn run(mut self, tick: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Results, Stopped> {
        let clock = crate::clock::Clock::start();
        let end = self.scenario.duration;
        loop {
            let events = self.events;
            let done = self.run_events(end, EVENTS_PER_TICK);
            debug_assert!(done || self.events > events, "no progress");
            if tick(Progress { simulated: self.now, duration: end, events: self.events }).is_break() {
                return Err(Stopped);
            }
            if done {
                break;
            }
        }
        self.now = end;
        Ok(self.finish(&clock))
    }

    /// Handles up to `limit` events; true if none is left before `end`.
    fn run_events(&mut self, end: Time, limit: u64) -> bool {
        for _ in 0..limit {
            let Some((time, source)) = self.queue.pop_until(end) else { return true };
            debug_assert!(time >= self.now, "time goes backward");
            self.now = time;
            self.events += 1;
            let number = source.number();
            if source.class() == Class::Delivery {
                self.deliver(number, source);
            } else {
                self.other(source.class(), number);
            }
        }
        false
    }

    fn other(&mut self, class: Class, number: u32) {
        match class {
            Class::Delivery => {}
            Class::Warmup => self.end_warmup(),
            Class::Capacity => {
                let policy = &mut self.policies[number as usize];
                let (mut rate, next) = policy.capacity.known_at(self.now);
                if let Some(share) = &mut policy.share {
                    share.split.set_capacity(rate);
                    rate = share.split.own_capacity();
                }
                if let Some(router) = &mut policy.router {
                    router.set_capacity(rate);
                }
                if let Some(next) = next {
                    self.queue.push(next, Source::new(Class::Capacity, number));
                }
            }
            Class::Transmit => self.choose(number),
            Class::Share => {
                let policy = &mut self.policies[number as usize];
                if let (Some(share), Some(router)) = (&mut policy.share, &mut policy.router) {
                    let next = share.split.on_timer(self.now).max(self.now + Time::from_ps(1));
                    router.set_capacity(share.split.own_capacity());
                    self.queue.push(next, Source::new(Class::Share, number));
                }
            }
            Class::Router => self.router_timer(number),
            Class::Retransmit => self.retransmission_timer(number),
            Class::Ack => {
                let flow = &mut self.flows[number as usize];
                if flow.ack_at == self.now {
                    flow.ack_at = Time::MAX;
                    if flow.receiver.deadline() <= self.now {
                        if let Some(info) = flow.receiver.on_timer(self.now) {
                            self.send_ack(number, &info);
                        }
                    }
                    self.schedule_ack(number);
                }
            }
            Class::Pace => {
                let flow = &mut self.flows[number as usize];
                if flow.pace_at == self.now {
                    flow.pace_at = Time::MAX;
                    self.send(number);
                }
            }
            Class::Control => self.control(number),
            Class::Application => self.application(number),
            Class::Web => self.web_arrival(number),
            Class::Probe => {
                self.settle();
                if let Some(mut probe) = self.probe.take() {
                    let next = probe.sample(self);
                    self.queue.push(next, Source::new(Class::Probe, 0));
                    self.probe = Some(probe);
                }
            }
        }
    }

    /// The head of a link's flight has arrived: on to the next link, or to its host.
    #[inline]
    fn deliver(&mut self, number: u32, source: Source) {
        let link = &mut self.links[number as usize];
        if link.waiting() > 0 && link.policy != PLAIN {
            self.advance(number);
        }
        let link = &mut self.links[number as usize];
        let to = self.routes[link.head().next as usize];
        if to == END {
            let packet = *link.deliver();
            if let Some(time) = link.next_arrival() {
                self.queue.push(time, source);
            }
            self.arrive(&packet);
            return;
        }
        // From ring to ring in one copy. A route never has a link twice in a row: ends of a link differ.
        let Ok([link, next]) = self.links.get_disjoint_mut([number as usize, to as usize]) else { return };
        let packet = link.deliver();
        let admission = if next.policy == PLAIN {
            next.admit_plain(self.now, packet)
        } else {
            let id = next.policy;
            let policy = &mut self.policies[id as usize];
            next.admit(self.now, packet, policy, |t, p| {
                self.recorder.record(&self.flows, &self.sacks, id, t, p);
            })
        };
        let sack = packet.sack;
        if let Some(time) = link.next_arrival() {
            self.queue.push(time, source);
        }
        self.admitted(to, admission, sack);
    }

    /// What follows from a link's answer.
    #[inline]
    fn admitted(&mut self, number: u32, admission: Admission, sack: u32) {
        match admission {
            Admission::First(time) => self.queue.push(time, Source::new(Class::Delivery, number)),
            Admission::Behind | Admission::Waits(None) => {}
            Admission::Waits(Some(time)) => self.queue.push(time, Source::new(Class::Transmit, number)),
            Admission::Dropped => {
                self.lost += 1;
                self.sacks.release(sack);
            }
        }
    }

    /// A shared link sends the next packet.
    fn choose(&mut self, number: u32) {
        let policy = &mut self.policies[number as usize];
        let (admission, next) = self.links[number as usize].choose(self.now, policy, |t, p| {
            self.recorder.record(&self.flows, &self.sacks, number, t, p);
        });
        if let Some(next) = next {
            self.queue.push(next, Source::new(Class::Transmit, number));
        }
        self.admitted(number, admission, NO_SACK);
    }

    fn advance(&mut self, number: u32) {
        let link = &mut self.links[number as usize];
        let policy = &mut self.policies[link.policy as usize];
        let id = link.policy;
        link.advance(self.now, policy, |t, p| self.recorder.record(&self.flows, &self.sacks, id, t, p));
    }

    /// Brings the statistics of all router links up to now. Router links come first, so a policy's number is its
    /// link's.
    fn settle(&mut self) {
        for (number, policy) in self.policies.iter_mut().enumerate() {
            let id = number as u32;
            self.links[number]
                .settle(self.now, policy, |t, p| self.recorder.record(&self.flows, &self.sacks, id, t, p));
        }
    }

    /// A host's packet reaches its first link.
    #[inline]
    fn enqueue(&mut self, number: u32, packet: &Packet) {
        let link = &mut self.links[number as usize];
        let admission = if link.policy == PLAIN {
            link.admit_plain(self.now, packet)
        } else {
            let id = link.policy;
            let policy = &mut self.policies[id as usize];
            link.admit(self.now, packet, policy, |t, p| {
                self.recorder.record(&self.flows, &self.sacks, id, t, p);
            })
        };
        self.admitted(number, admission, packet.sack);
    }

    /// A packet has reached its host.
    #[inline]
    fn arrive(&mut self, packet: &Packet) {
        self.arrived += 1;
        let number = packet.flow;
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        if flow.generation != packet.generation {
            // A late copy for a flow that has ended; its slot serves another.
            self.sacks.release(packet.sack);
            return;
        }
        if packet.flags & CONTROL != 0 {
            self.arrive_control(packet);
            return;
        }
        if packet.flags & DATA == 0 {
            let sack = self.sacks.get(packet.sack);
            let ack = AckPacket {
                cumulative: packet.seq,
                sack: sack.as_slice(),
                ecn_echo: packet.flags & ECN_ECHO != 0,
                sent_at: packet.sent_at,
                stamp: &packet.stamp,
            };
            flow.sender.on_ack(now, &mut flow.law, u32::from(self.packet_bytes), &ack);
            if packet.sack != NO_SACK {
                self.sacks.release(packet.sack);
            }
            self.send(number);
            return;
        }
        let before = flow.receiver.delivered();
        let data = DataPacket {
            seq: packet.seq,
            ce: packet.flags & CONGESTED != 0,
            cwr: packet.flags & REDUCED != 0,
            sent_at: packet.sent_at,
            stamp: &packet.stamp,
        };
        let protocol = flow.protocol;
        let info = flow.receiver.on_data(now, &data, |pending, newer| protocol.merge(pending, newer));
        let delivered = flow.receiver.delivered();
        // With repair by count more may come than the flow has.
        if delivered != before && before < flow.sender.length() {
            let mut bytes = u64::from(packet.size - self.header_bytes);
            if delivered == flow.packets {
                let record = &mut self.records[flow.record as usize];
                record.end = now;
                // What stood for a shorter last packet may have been a full one.
                bytes = record.size.map_or(bytes, |size| size - flow.delivered_bytes);
                if self.groups[flow.group as usize].web {
                    self.groups[flow.group as usize].active.end(now);
                }
            }
            self.groups[flow.group as usize].delivered_bytes += bytes;
            flow.delivered_bytes += bytes;
        }
        match info {
            Some(info) => self.send_ack(number, &info),
            None => self.schedule_ack(number),
        }
    }

    fn send_ack(&mut self, number: u32, info: &transport::AckInfo) {
        let flow = &self.flows[number as usize];
        let packet = Packet {
            stamp: info.stamp,
            sent_at: info.sent_at,
            flow: number,
            seq: info.cumulative,
            next: flow.path.acks,
            sack: self.sacks.put(info.sack),
            size: self.ack_bytes,
            generation: flow.generation,
            flags: if info.ecn_echo { ECN_ECHO } else { 0 },
            protocol: flow.spoken(),
        };
        self.sent += 1;
        self.enqueue(self.routes[flow.path.acks as usize], &packet);
    }

    /// Sends what the window, the pace and the application allow.
    fn send(&mut self, number: u32) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[number as usize];
            if !(flow.started && flow.open) {
                return;
            }
            let group = &self.groups[flow.group as usize];
            let available = match group.rate {
                None => u32::MAX,
                Some(rate) => {
                    // The first packet is there at the start, a further one each packet time.
                    let since = now.saturating_sub(self.records[flow.record as usize].start);
                    (rate.bytes_in(since) / f64::from(self.packet_bytes - self.header_bytes) + 1e-9) as u32
                        + 1
                }
            };
            let pace = flow.law.pacing_rate();
            if let Some(rate) = pace {
                let size = flowstamp_laws::Bytes::new(u64::from(flow.last_departed));
                let next = flow.last_departure.saturating_add(rate.tx_time(size));
                if next > now {
                    self.wait_for_pace(number, next);
                    break;
                }
            }
            let Some(out) = flow.sender.next_packet(now, &flow.law, u32::from(self.packet_bytes), available)
            else {
                if available != u32::MAX && flow.sender.next_seq() >= available {
                    self.wait_for_application(number, available);
                }
                break;
            };
            let last = out.seq + 1 == flow.packets || flow.packets == 1;
            let size = if last { flow.last_size } else { self.packet_bytes };
            if pace.is_some() {
                flow.last_departure = now;
                flow.last_departed = size;
            }
            let ecn = group.transport.ecn;
            let packet = Packet {
                stamp: flow.law.stamp(now, flow.sender.srtt()),
                sent_at: now,
                flow: number,
                seq: out.seq,
                next: flow.path.data,
                sack: NO_SACK,
                size,
                generation: flow.generation,
                flags: DATA | if ecn { ECN_CAPABLE } else { 0 } | if out.cwr { REDUCED } else { 0 },
                protocol: flow.spoken(),
            };
            let first = self.routes[flow.path.data as usize];
            self.sent += 1;
            self.enqueue(first, &packet);
        }
        let flow = &mut self.flows[number as usize];
        if flow.sender.is_complete() {
            self.complete(number);
            return;
        }
        let deadline = flow.sender.deadline();
        if deadline < flow.retransmit_at {
            flow.retransmit_at = deadline;
            self.queue.push(deadline, Source::new(Class::Retransmit, number));
        }
    }

    /// A paced flow may send its next packet at `next`.
    fn wait_for_pace(&mut self, number: u32, next: Time) {
        let flow = &mut self.flows[number as usize];
        if next < flow.pace_at && next < Time::MAX {
            flow.pace_at = next;
            self.queue.push(next, Source::new(Class::Pace, number));
        }
        // A gap longer than the round trip: probe meanwhile, or a better rate would be seen only after it.
        let srtt = flow.sender.srtt();
        let probe = self.now + srtt;
        if next > probe && flow.control_at == Time::MAX && srtt > Time::ZERO && !flow.sender.is_complete() {
            flow.control_at = probe;
            self.queue.push(probe, Source::new(Class::Control, number));
        }
    }

    /// Starts a flow: with a handshake if its law or its scenario wants one.
    fn begin(&mut self, number: u32) {
        self.flows[number as usize].started = true;
        if self.flows[number as usize].open {
            self.send(number);
        } else {
            self.send_control(number);
        }
    }

    /// Sends a packet without data: a SYN, a FIN or a probe. Sets when to try a SYN or FIN again.
    fn send_control(&mut self, number: u32) {
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        let (kind, seq) = match (flow.open, flow.closing) {
            (false, _) => (SYN, 0),
            (true, true) => (FIN, flow.sender.length()),
            (true, false) => (0, flow.sender.next_seq()),
        };
        let packet = Packet {
            stamp: flow.law.stamp(now, flow.sender.srtt()),
            sent_at: now,
            flow: number,
            seq,
            next: flow.path.data,
            sack: NO_SACK,
            size: self.ack_bytes,
            generation: flow.generation,
            flags: DATA | CONTROL | kind,
            protocol: flow.spoken(),
        };
        let first = self.routes[flow.path.data as usize];
        if kind != 0 {
            let params = &self.groups[flow.group as usize].transport;
            let first = if flow.open { flow.sender.rto() } else { params.first_rto(Time::ZERO) };
            let wait = (first * (1 << flow.tries.min(10))).min(params.max_rto);
            flow.tries = flow.tries.saturating_add(1);
            flow.control_at = now + wait;
            self.queue.push(flow.control_at, Source::new(Class::Control, number));
        }
        self.sent += 1;
        self.enqueue(first, &packet);
    }

    fn control(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if flow.control_at != self.now {
            return;
        }
        flow.control_at = Time::MAX;
        if !flow.started {
            return;
        }
        if flow.closing {
            if flow.tries < MOST_FINS {
                self.send_control(number);
            } else {
                self.close(number);
            }
            return;
        }
        if !flow.open || flow.pace_at < Time::MAX && !flow.sender.is_complete() {
            self.send_control(number);
            self.send(number);
        }
    }

    /// A packet without data has reached a host: the receiver answers, the sender takes the answer.
    fn arrive_control(&mut self, packet: &Packet) {
        let now = self.now;
        let flow = &mut self.flows[packet.flow as usize];
        if packet.flags & DATA != 0 {
            let flags = packet.flags & !DATA;
            let answer = Packet { next: flow.path.acks, size: self.ack_bytes, flags, ..*packet };
            let first = self.routes[flow.path.acks as usize];
            self.sent += 1;
            self.enqueue(first, &answer);
            return;
        }
        if flow.closing {
            // Else a probe's, which comes too late.
            if packet.flags & FIN != 0 {
                flow.control_at = Time::MAX;
                self.close(packet.flow);
            }
            return;
        }
        flow.sender.on_answer(now, packet.sent_at);
        flow.law.on_feedback(now, flow.sender.srtt(), &packet.stamp);
        if !flow.open {
            flow.open = true;
            flow.control_at = Time::MAX;
        }
        self.send(packet.flow);
    }

    fn retransmission_timer(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if flow.retransmit_at != self.now {
            return; // an earlier deadline came after this event was set
        }
        flow.retransmit_at = Time::MAX;
        if flow.sender.deadline() <= self.now {
            flow.sender.on_timeout(self.now, &mut flow.law);
        }
        self.send(number);
    }

    fn schedule_ack(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let deadline = flow.receiver.deadline();
        if deadline < flow.ack_at {
            flow.ack_at = deadline;
            self.queue.push(deadline, Source::new(Class::Ack, number));
        }
    }

    fn schedule_application(&mut self, number: u32, at: Time) {
        let flow = &mut self.flows[number as usize];
        if at < flow.application_at {
            flow.application_at = at;
            self.queue.push(at, Source::new(Class::Application, number));
        }
    }

    /// The application of a flow with a rate has to produce packet `available` first.
    fn wait_for_application(&mut self, number: u32, available: u32) {
        let flow = &self.flows[number as usize];
        let group = &self.groups[flow.group as usize];
        let start = self.records[flow.record as usize].start;
        if let Some(rate) = group.rate {
            let bytes = f64::from(available) * f64::from(self.packet_bytes - self.header_bytes);
            let at = start + Time::from_secs_f64(bytes / rate.bytes_per_sec());
            self.schedule_application(number, at.max(self.now + Time::from_ps(1)));
        }
    }

    fn application(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if flow.application_at != self.now {
            return;
        }
        flow.application_at = Time::MAX;
        let begins = !flow.started;
        let stop = self.groups[flow.group as usize].stop;
        if self.now >= stop {
            flow.sender.stop();
        }
        if begins {
            self.begin(number);
        } else {
            self.send(number);
        }
        if self.now < stop && stop < Time::MAX {
            self.schedule_application(number, stop);
        }
    }

    fn web_arrival(&mut self, number: u32) {
        let plan = &mut self.web[number as usize];
        if self.now >= plan.stop {
            return;
        }
        let size = plan.sizes.draw();
        let next = self.now + plan.arrivals.gap();
        let path = plan.paths[0];
        plan.paths.rotate_left(1);
        let group = plan.group;
        self.queue.push(next, Source::new(Class::Web, number));
        let index = self.groups[group as usize].flows;
        let slot = self.add_flow(group, index, path, self.now, Some(size));
        self.groups[group as usize].active.begin(self.now);
        self.begin(slot);
    }

    /// Takes a slot for a flow.
    fn add_flow(&mut self, group: u32, index: u32, path: Path, start: Time, size: Option<u64>) -> u32 {
        let spec = &mut self.groups[group as usize];
        spec.flows += 1;
        let payload = u64::from(self.packet_bytes - self.header_bytes);
        let packets = size.map_or(u32::MAX, |s| s.div_ceil(payload).min(u64::from(u32::MAX - 1)) as u32);
        let last = size.map_or(payload, |s| s - (u64::from(packets) - 1) * payload);
        let last_size = self.header_bytes + last as u16;
        // Laws count packets as they are on the wire.
        let wire = |rate: Rate| Rate::from_bps(rate.bps() * (f64::from(self.packet_bytes) / payload as f64));
        let view = FlowView {
            packet_bytes: u32::from(self.packet_bytes),
            initial_window: spec.transport.initial_window,
            app_rate: spec.rate.map(wire),
        };
        let law = spec.law.build(&view);
        let handshake = spec.transport.handshake.unwrap_or(law.handshake());
        let recovery = spec.transport.recovery.unwrap_or(law.recovery());
        let record = self.records.len() as u32;
        self.records.push(Record {
            group,
            index,
            start,
            end: Time::MAX,
            size,
            delivered_bytes: 0,
            delivered_at_warmup: 0,
            retransmissions: 0,
            timeouts: 0,
            min_rtt: Time::ZERO,
            srtt: Time::ZERO,
            switched: Time::MAX,
        });
        let flow = Flow {
            sender: Sender::new(&spec.transport, recovery, size.map(|_| packets)),
            law,
            receiver: Receiver::new(&spec.transport, recovery),
            path,
            group,
            record,
            delivered_bytes: 0,
            packets,
            last_size,
            generation: 0,
            protocol: spec.law.protocol(),
            started: false,
            retransmit_at: Time::MAX,
            ack_at: Time::MAX,
            pace_at: Time::MAX,
            application_at: Time::MAX,
            control_at: Time::MAX,
            handshake,
            open: !handshake,
            closing: false,
            tries: 0,
            last_departure: Time::ZERO,
            last_departed: 0,
        };
        if let Some(slot) = self.free.pop() {
            let old = &mut self.flows[slot as usize];
            // Events of the flow before are still pending; they find nothing due and are reused.
            *old = Flow {
                generation: old.generation.wrapping_add(1),
                retransmit_at: old.retransmit_at,
                ack_at: old.ack_at,
                pace_at: old.pace_at,
                application_at: old.application_at,
                control_at: old.control_at,
                ..flow
            };
            return slot;
        }
        self.flows.push(flow);
        (self.flows.len() - 1) as u32
    }

    /// A flow has everything acknowledged: its figures go into its record. What had a handshake ends with a FIN.
    fn complete(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if flow.closing {
            return;
        }
        flow.closing = flow.handshake;
        flow.tries = 0;
        self.write_record(number);
        if self.flows[number as usize].closing {
            self.send_control(number);
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

    fn write_record(&mut self, number: u32) {
        let flow = &self.flows[number as usize];
        let record = &mut self.records[flow.record as usize];
        record.delivered_bytes = flow.delivered_bytes;
        record.retransmissions = flow.sender.retransmissions();
        record.timeouts = flow.sender.timeouts();
        record.min_rtt = flow.sender.min_rtt();
        record.srtt = flow.sender.srtt();
        record.switched = flow.law.fallen_back().map_or(Time::MAX, |(_, when)| when);
    }

    fn router_timer(&mut self, number: u32) {
        let (policy, which) = (number / MAX_TIMERS as u32, number as usize % MAX_TIMERS);
        // Router links come first, so a policy's number is its link's.
        self.advance(policy);
        let policy = &mut self.policies[policy as usize];
        let view = policy.view(self.now);
        if let Some(router) = &mut policy.router {
            // A law whose timer stands still must not stop time.
            let next = router.on_timer(which, view).max(self.now + Time::from_ps(1));
            self.queue.push(next, Source::new(Class::Router, number));
        }
    }

    fn end_warmup(&mut self) {
        self.settle();
        for number in 0..self.policies.len() {
            let (link, policy) = (&self.links[number], &mut self.policies[number]);
            if let Some(probe) = &mut self.probe {
                probe.restart_link(number, link.sent_bytes(self.now, policy), policy);
            }
            let queue = policy.queue_bytes();
            policy.stats.restart(self.now, queue);
            // What waits or is under way was accepted before and is sent after.
            let sent = link.sent_bytes(self.now, policy);
            policy.stats.accepted_bytes = 0.0 - sent;
        }
        for group in &mut self.groups {
            group.delivered_at_warmup = group.delivered_bytes;
            group.active.restart(self.now);
        }
        for record in &mut self.records {
            record.delivered_at_warmup = record.delivered_bytes;
        }
        for flow in self.flows.iter().filter(|f| f.started) {
            self.records[flow.record as usize].delivered_at_warmup = flow.delivered_bytes;
        }
    }

    fn finish(mut self, clock: &crate::clock::Clock) -> Results {
        self.settle();
        let waiting = self.policies.iter().filter_map(|p| p.share.as_ref()).map(|s| s.held());
        let held: u64 = self.links.iter().map(Link::held).chain(waiting).map(u64::from).sum();
        assert_eq!(self.sent, self.arrived + self.lost + held, "packets are conserved");
        for number in 0..self.flows.len() as u32 {
            let flow = &self.flows[number as usize];
            if flow.started || !self.groups[flow.group as usize].web {
                self.write_record(number);
            }
        }
        let series = self.probe.take().map(Probe::into_series).unwrap_or_default();
        let mut captured = std::mem::take(&mut self.recorder.captured);
        captured.packets.sort_by_key(|p| (p.time_ps, p.link));
        if let Some(capture) = &self.scenario.capture {
            captured.packets.truncate(capture.packets as usize);
        }
        crate::summary::results(self, series, captured, clock)
    }
}

/// Records packets whose transmission begins, until it has enough.
#[derive(Debug)]
struct Recorder {
    captured: Captured,
    /// How many packets of each link may still be recorded.
    left: Vec<u32>,
    packet_bytes: u32,
}

impl Recorder {
    #[cold]
    fn record(&mut self, flows: &[Flow], sacks: &SackPool, link: u32, time: Time, packet: &Packet) {
        // Links are looked at when there is a reason to, not in the order of time: each may fill the capture alone, and
        // the first packets of all are picked at the end.
        let left = &mut self.left[link as usize];
        let flow = &flows[packet.flow as usize];
        if *left == 0 || flow.generation != packet.generation {
            return;
        }
        *left -= 1;
        self.captured.packets.push(CapturedPacket {
            time_ps: time.as_ps(),
            link,
            flow: flow.record,
            data: packet.flags & DATA != 0,
            control: packet.flags & CONTROL != 0,
            syn: packet.flags & SYN != 0,
            fin: packet.flags & FIN != 0,
            seq: packet.seq,
            size: u32::from(packet.size),
            packet_bytes: self.packet_bytes,
            packets: flow.packets,
            last_size: u32::from(flow.last_size),
            ecn_capable: packet.flags & ECN_CAPABLE != 0,
            congestion_experienced: packet.flags & CONGESTED != 0,
            ecn_echo: packet.flags & ECN_ECHO != 0,
            cwr: packet.flags & REDUCED != 0,
            protocol: packet.protocol,
            stamp: packet.stamp,
            sack: sacks.get(packet.sack),
        });
    }
}

//! The networks of single links.

use super::flows::{Flow, Flows};
use crate::flow_list::{FlowList, Listed};
use crate::medium::Capacity;
use crate::plan::{ArrivalPlan, Comes, END, FlowPlan, FlowRoutes, GroupPlan, LinkPlan, Network};
use crate::scenario::{Access, Loaded, Scenario};
use flowstamp_laws::units::{Rate, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Rate of the links that carry packets to and from a single link: no packet waits for another there.
const UNLIMITED: Rate = Rate::from_bps(1e15);

/// Largest share of a link's capacity that acks may take away. Acks of flows that the link carries are never that many.
const MOST_FOR_ACKS: f64 = 0.9;

/// A flow that crosses a link.
#[derive(Clone, Copy, Debug)]
pub struct CrossingFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Index of the link among the router links of the flow's path.
    pub place: u32,
    /// RTT of a packet on the empty path, with the time of its transmission on each link.
    pub rtt: Time,
}

/// What a flow's packets pass before and behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Around {
    /// The first link of the path, unless it is the link itself.
    first: Option<u32>,
    /// Delay from the sender to the link, that of the first link's transmission not included.
    before: Time,
    /// Delay from the end of the link to the receiver.
    behind: Time,
    /// Delay of acks.
    back: Time,
}

/// All links of a network, and what each carries.
pub struct Links<'a> {
    network: &'a Network,
    flows: &'a [Flow],
    planned: u32,
    scenario: &'a Scenario,
    /// The scenario of the runs of single links, which need neither its files nor its graph.
    pub loaded: Arc<Loaded>,
    /// Plans of the groups, without the links of the whole network.
    groups: Vec<GroupPlan>,
    /// The flows whose data cross each link: those of link `l` are `crossing[first[l]..first[l + 1]]`.
    first: Vec<usize>,
    crossing: Vec<u32>,
    /// Bytes of acks that cross each router link.
    ack_bytes: Vec<f64>,
    /// Packets that cross each router link.
    work: Vec<u64>,
}

impl<'a> Links<'a> {
    pub fn new(loaded: &'a Loaded, network: &'a Network, flows: &'a Flows) -> Self {
        let scenario = &loaded.scenario;
        let mut own = loaded.clone();
        own.files.clear();
        own.scenario.graph = None;
        let groups = network.groups.iter().map(|plan| GroupPlan {
            links: Vec::new(),
            ways: Vec::new(),
            offered_bps: Vec::new(),
            phase: None,
            ..plan.clone()
        });
        let routers = network.links.len();
        let mut links = Self {
            network,
            flows: &flows.all,
            planned: flows.planned,
            scenario,
            loaded: Arc::new(own),
            groups: groups.collect(),
            first: vec![0; routers + 1],
            crossing: Vec::new(),
            ack_bytes: vec![0.0; routers],
            work: vec![0; routers],
        };
        links.sort();
        links
    }

    /// Number of router links on the path of each flow.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let routers = self.network.links.len();
        let path = move |flow: &Flow| self.route(flow.routes.data).filter(|link| (*link as usize) < routers).count();
        self.flows.iter().map(move |flow| if flow.runs { path(flow) } else { 0 })
    }

    /// Finds the flows that cross each link.
    fn sort(&mut self) {
        let payload = self.scenario.payload();
        let routers = self.network.links.len();
        let running = || (0..).zip(self.flows).filter(|(_, flow)| flow.runs);
        let routed = |route| self.route(route).filter(|link| (*link as usize) < routers);
        let (mut first, mut work) = (vec![0; routers + 1], vec![0; routers]);
        let mut ack_bytes = vec![0.0; routers];
        for (_, flow) in running() {
            let packets = flow.size.div_ceil(payload);
            for link in routed(flow.routes.data) {
                first[link as usize + 1] += 1;
                work[link as usize] += packets;
            }
            for link in routed(flow.routes.acks) {
                ack_bytes[link as usize] += packets as f64 * self.scenario.ack.as_f64();
            }
        }
        (0..routers).for_each(|link| first[link + 1] += first[link]);
        let mut next = first.clone();
        let mut crossing = vec![0; first[routers]];
        for (number, flow) in running() {
            for link in routed(flow.routes.data) {
                crossing[next[link as usize]] = number;
                next[link as usize] += 1;
            }
        }
        (self.first, self.crossing, self.ack_bytes, self.work) = (first, crossing, ack_bytes, work);
    }

    /// The links that carry data, those with most packets first, each with its number of packets.
    pub fn by_work(&self) -> Vec<(u32, u64)> {
        let mut links: Vec<(u32, u64)> = (0..).zip(self.work.iter().copied()).filter(|it| it.1 > 0).collect();
        links.sort_by_key(|(_, work)| std::cmp::Reverse(*work));
        links
    }

    fn route(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.network.routes[from as usize..].iter().copied().take_while(|link| *link != END)
    }

    /// Rate and delay of a link.
    fn line(&self, link: u32) -> (Rate, Time) {
        match self.network.links.get(link as usize) {
            Some(plan) => (plan.capacity.mean(Time::ZERO, self.scenario.duration), plan.delay),
            None => {
                let access = &self.network.access[link as usize - self.network.links.len()];
                (access.rate, access.delay)
            }
        }
    }

    /// Delay of a link with the transmission of `bytes`.
    fn crossing_time(&self, link: u32, bytes: f64) -> Time {
        let (rate, delay) = self.line(link);
        delay + Time::from_secs_f64(bytes / rate.bytes_per_sec())
    }

    fn around(&self, flow: &Flow, link: u32) -> Around {
        let packet = self.scenario.packet.as_f64();
        let mut data = self.route(flow.routes.data);
        let first = data.next().filter(|first| *first != link);
        let mut before = first.map_or(Time::ZERO, |first| self.line(first).1);
        if first.is_some() {
            for next in data.by_ref().take_while(|next| *next != link) {
                before += self.crossing_time(next, packet);
            }
        }
        let sum = |links: &mut dyn Iterator<Item = u32>, bytes| {
            links.fold(Time::ZERO, |sum, link| sum + self.crossing_time(link, bytes))
        };
        let behind = sum(&mut data, packet);
        let back = sum(&mut self.route(flow.routes.acks), self.scenario.ack.as_f64());
        Around { first, before, behind, back }
    }

    /// The network of one link, and the flows that cross it in the order of its records.
    pub fn network(&self, link: u32) -> (Network, Vec<CrossingFlow>) {
        let numbers = &self.crossing[self.first[link as usize]..self.first[link as usize + 1]];
        let around: Vec<Around> =
            numbers.iter().map(|number| self.around(&self.flows[*number as usize], link)).collect();
        let mut own = Own::new(self, link);
        own.sources(&around);
        let planned = numbers.partition_point(|number| *number < self.planned);
        let mut all = numbers.iter().zip(&around);
        let mut crossing = Vec::with_capacity(numbers.len());
        for (number, around) in all.by_ref().take(planned) {
            let flow = &self.flows[*number as usize];
            let (group, index, routes) = (flow.group, flow.index, own.routes(around));
            own.network.flows.push(FlowPlan { group, index, routes, start: flow.start });
            crossing.push(own.crossing(*number, around));
        }
        for arriving in &self.network.arrivals {
            let group = arriving.group;
            let of_group = |(number, _): &(&u32, &Around)| self.flows[**number as usize].group == group;
            own.arrivals(arriving, all.clone().filter(of_group), &mut crossing);
        }
        (own.network, crossing)
    }
}

/// The network of one link, while it is made.
struct Own<'a> {
    links: &'a Links<'a>,
    link: u32,
    network: Network,
    /// The sources by the first link of the path and the delay from there.
    sources: BTreeMap<(u32, Time), u32>,
    /// Routes by what is around the link.
    known: BTreeMap<Around, FlowRoutes>,
}

impl<'a> Own<'a> {
    fn new(links: &'a Links<'a>, link: u32) -> Self {
        let mut plan = links.network.links[link as usize].clone();
        let rate = plan.capacity.mean(Time::ZERO, links.scenario.duration);
        let acks = links.ack_bytes[link as usize] / rate.bytes_in(links.scenario.duration);
        plan.capacity = Capacity::Constant(Rate::from_bps(rate.bps() * (1.0 - acks.min(MOST_FOR_ACKS))));
        let network = Network { links: vec![plan], groups: links.groups.clone(), ..Network::default() };
        Self { links, link, network, sources: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// Makes the first links of the paths. A link that several flows share keeps its queue and laws.
    fn sources(&mut self, around: &[Around]) {
        let mut uses: BTreeMap<(u32, Time), u32> = BTreeMap::new();
        for around in around {
            if let Some(first) = around.first {
                *uses.entry((first, around.before)).or_default() += 1;
            }
        }
        let routers = &self.links.network.links;
        let shared = |(first, _): &(u32, Time), flows: u32| flows > 1 && (*first as usize) < routers.len();
        for (key, _) in uses.iter().filter(|(key, flows)| shared(key, **flows)) {
            self.sources.insert(*key, self.network.links.len() as u32);
            self.network.links.push(LinkPlan { delay: key.1, ..routers[key.0 as usize].clone() });
        }
        for (key, _) in uses.iter().filter(|(key, flows)| !shared(key, **flows)) {
            let source = self.access(self.links.line(key.0).0, key.1);
            self.sources.insert(*key, source);
        }
    }

    /// Adds an access link and returns its number.
    fn access(&mut self, rate: Rate, delay: Time) -> u32 {
        self.network.access.push(Access { rate, delay });
        (self.network.links.len() + self.network.access.len() - 1) as u32
    }

    /// The routes of a flow.
    fn routes(&mut self, around: &Around) -> FlowRoutes {
        if let Some(known) = self.known.get(around) {
            return *known;
        }
        let source = around.first.map(|first| self.sources[&(first, around.before)]);
        let down = self.access(UNLIMITED, around.behind);
        let back = self.access(UNLIMITED, around.back);
        let data = self.network.routes.len() as u32;
        self.network.routes.extend(source);
        self.network.routes.extend([0, down, END]);
        let acks = self.network.routes.len() as u32;
        self.network.routes.extend([back, END]);
        let routes = FlowRoutes { data, acks };
        self.known.insert(*around, routes);
        routes
    }

    /// A flow that crosses the link, whose routes are known.
    fn crossing(&self, number: u32, around: &Around) -> CrossingFlow {
        let links = self.links;
        let packet = links.scenario.packet.as_f64();
        let first = around.first.map_or(Time::ZERO, |first| {
            Time::from_secs_f64(packet / links.line(first).0.bytes_per_sec())
        });
        let rtt =
            first + around.before + links.crossing_time(self.link, packet) + around.behind + around.back;
        let routers = links.network.links.len();
        let path = links.route(links.flows[number as usize].routes.data);
        let place = path.filter(|link| (*link as usize) < routers).take_while(|link| *link != self.link);
        CrossingFlow { flow: number, place: place.count() as u32, rtt }
    }

    /// Adds the flows of a group that arrive during the run, as a list.
    fn arrivals<'f>(
        &mut self,
        arriving: &ArrivalPlan,
        flows: impl Iterator<Item = (&'f u32, &'f Around)>,
        crossing: &mut Vec<CrossingFlow>,
    ) {
        let mut list = FlowList::default();
        let mut pairs: BTreeMap<u32, u32> = BTreeMap::new();
        let mut routes = Vec::new();
        for (number, around) in flows {
            let flow = &self.links.flows[*number as usize];
            let of_flow = self.routes(around);
            let pair = *pairs.entry(of_flow.data).or_insert_with(|| {
                routes.push(VecDeque::from([of_flow]));
                routes.len() as u32 - 1
            });
            list.rows.push(Listed { start: flow.start, size: flow.size, pair, law: flow.law });
            crossing.push(self.crossing(*number, around));
        }
        if list.rows.is_empty() {
            return;
        }
        list.order = (0..list.rows.len() as u32).collect();
        list.order.sort_by_key(|row| list.rows[*row as usize].start);
        let list = Arc::new(list);
        self.network.groups[arriving.group as usize].list = Some(list.clone());
        let (group, stop) = (arriving.group, arriving.stop);
        let comes = Comes::Listed { list, next: 0 };
        self.network.arrivals.push(ArrivalPlan { group, routes, comes, start: Time::ZERO, stop });
    }
}

//! The networks of single links.

use super::flows::{CrossingFlow, Elsewhere, Flow, Flows};
use crate::flow_list::{FlowList, Listed};
use crate::medium::Capacity;
use crate::plan::{ArrivalPlan, Comes, END, FlowPlan, FlowRoutes, GroupPlan, LinkPlan, Network};
use crate::release::Release;
use crate::scenario::{Access, Loaded, Scenario};
use flowstamp_laws::units::{Rate, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Rate of the links that carry packets to and from a single link: no packet waits for another there.
const UNLIMITED: Rate = Rate::from_bps(1e15);

/// Largest share of a link's capacity that acks may take away. Acks never need that much on a link that carries them.
const MOST_FOR_ACKS: f64 = 0.9;

/// The part of a flow's path before and behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Around {
    /// The first link of the path, unless it is the link itself, and the delay from there to the next one that is kept.
    first: Option<(u32, Time)>,
    /// The link before, with its delay, unless that is the first one.
    previous: Option<(u32, Time)>,
    /// Delay from the end of the link to the receiver.
    behind: Time,
    /// Delay of acks.
    back: Time,
}

/// Returns a flow's slowest other link ([`super::combine::Delays::elsewhere`]). The arguments are the link, the flow, and
/// the link's place on the flow's path.
pub type Slower<'a> = &'a (dyn Fn(u32, u32, u32) -> Option<Elsewhere> + Sync);

/// All links of a network, and the flows that each carries.
pub struct Links {
    /// The network.
    pub network: Network,
    /// Its flows, of which the first `planned` are planned ones.
    pub flows: Vec<Flow>,
    planned: u32,
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

impl Links {
    pub fn new(loaded: &Loaded, network: Network, flows: Flows) -> Self {
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
            groups: groups.collect(),
            network,
            flows: flows.all,
            planned: flows.planned,
            loaded: Arc::new(own),
            first: vec![0; routers + 1],
            crossing: Vec::new(),
            ack_bytes: vec![0.0; routers],
            work: vec![0; routers],
        };
        links.sort();
        links
    }

    fn scenario(&self) -> &Scenario {
        &self.loaded.scenario
    }

    /// Numbers of the flows whose data cross a link, in ascending order.
    pub fn crossing(&self, link: u32) -> &[u32] {
        &self.crossing[self.first[link as usize]..self.first[link as usize + 1]]
    }

    /// Number of router links on the path of each flow.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let routers = self.network.links.len();
        let path =
            move |flow: &Flow| self.route(flow.routes.data).filter(|link| (*link as usize) < routers).count();
        self.flows.iter().map(move |flow| if flow.runs { path(flow) } else { 0 })
    }

    /// Finds the flows that cross each link.
    fn sort(&mut self) {
        let payload = self.scenario().payload();
        let routers = self.network.links.len();
        let running = || (0..).zip(&self.flows).filter(|(_, flow)| flow.runs);
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
                ack_bytes[link as usize] += packets as f64 * self.scenario().ack.as_f64();
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

    /// Index of a link among the router links of a flow's path.
    pub fn place(&self, link: u32, flow: u32) -> u32 {
        let routers = self.network.links.len();
        let path = self.route(self.flows[flow as usize].routes.data);
        path.filter(|on| (*on as usize) < routers).take_while(|on| *on != link).count() as u32
    }

    /// The longest RTT of a flow on empty links.
    pub fn longest_rtt(&self) -> Time {
        let sum = |route| {
            let bytes = self.scenario().packet.as_f64();
            self.route(route).fold(Time::ZERO, |sum, link| sum + self.crossing_time(link, bytes))
        };
        let routes: BTreeSet<(u32, u32)> = self
            .flows
            .iter()
            .filter(|flow| flow.runs)
            .map(|flow| (flow.routes.data, flow.routes.acks))
            .collect();
        routes.into_iter().map(|(data, acks)| sum(data) + sum(acks)).max().unwrap_or_default()
    }

    fn route(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.network.routes[from as usize..].iter().copied().take_while(|link| *link != END)
    }

    /// Rate and delay of a link.
    fn line(&self, link: u32) -> (Rate, Time) {
        match self.network.links.get(link as usize) {
            Some(plan) => (plan.capacity.mean(Time::ZERO, self.scenario().duration), plan.delay),
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
        let packet = self.scenario().packet.as_f64();
        let sum = |links: &mut dyn Iterator<Item = u32>, bytes| {
            links.fold(Time::ZERO, |sum, link| sum + self.crossing_time(link, bytes))
        };
        let mut data = self.route(flow.routes.data);
        let upstream: Vec<u32> = data.by_ref().take_while(|next| *next != link).collect();
        let behind = sum(&mut data, packet);
        let back = sum(&mut self.route(flow.routes.acks), self.scenario().ack.as_f64());
        let (first, previous) = match *upstream.as_slice() {
            [] => (None, None),
            [first] => (Some((first, self.line(first).1)), None),
            [first, ref between @ .., previous] => {
                let delay = self.line(first).1 + sum(&mut between.iter().copied(), packet);
                (Some((first, delay)), Some((previous, self.line(previous).1)))
            }
        };
        Around { first, previous, behind, back }
    }

    /// The network of one link, and the flows that cross it in the order of its records. `slower` is that of the pass
    /// before, if there was one.
    pub fn network(&self, link: u32, slower: Option<Slower<'_>>) -> (Network, Vec<CrossingFlow>) {
        let numbers = self.crossing(link);
        let around: Vec<Around> =
            numbers.iter().map(|number| self.around(&self.flows[*number as usize], link)).collect();
        let mut own = Own::new(self, link, slower);
        own.upstream(&around);
        let planned = numbers.partition_point(|number| *number < self.planned);
        let mut all = numbers.iter().zip(&around);
        let mut crossing = Vec::with_capacity(numbers.len());
        for (number, around) in all.by_ref().take(planned) {
            let flow = &self.flows[*number as usize];
            let (index, routes) = (flow.index, own.routes(around));
            let crosses = own.crossing(*number, around);
            let group = own.group(flow.group, &crosses);
            own.release(group, index, &crosses);
            own.network.flows.push(FlowPlan { group, index, routes, start: flow.start });
            crossing.push(crosses);
        }
        for arriving in &self.network.arrivals {
            let group = arriving.group;
            let of_group = |(number, _): &(&u32, &Around)| self.flows[**number as usize].group == group;
            own.arrivals(arriving, all.clone().filter(of_group), &mut crossing);
        }
        (own.network, crossing)
    }
}

/// Builds the network of one link.
struct Own<'a> {
    links: &'a Links,
    link: u32,
    slower: Option<Slower<'a>>,
    network: Network,
    /// The links upstream, by their numbers and delays.
    upstream: BTreeMap<(u32, Time), u32>,
    /// Routes by the parts of paths before and behind the link.
    known: BTreeMap<Around, FlowRoutes>,
    /// Groups of flows whose data come late, by the groups that they come from.
    late: BTreeMap<u32, u32>,
}

impl<'a> Own<'a> {
    fn new(links: &'a Links, link: u32, slower: Option<Slower<'a>>) -> Self {
        let mut plan = links.network.links[link as usize].clone();
        let rate = plan.capacity.mean(Time::ZERO, links.scenario().duration);
        let acks = links.ack_bytes[link as usize] / rate.bytes_in(links.scenario().duration);
        plan.capacity = Capacity::Constant(Rate::from_bps(rate.bps() * (1.0 - acks.min(MOST_FOR_ACKS))));
        let network = Network { links: vec![plan], groups: links.groups.clone(), ..Network::default() };
        let (upstream, known, late) = Default::default();
        Self { links, link, slower, network, upstream, known, late }
    }

    /// Makes the links upstream. Those that several flows share keep their queues and laws.
    fn upstream(&mut self, around: &[Around]) {
        let mut uses: BTreeMap<(u32, Time), u32> = BTreeMap::new();
        for link in around.iter().flat_map(|around| around.first.into_iter().chain(around.previous)) {
            *uses.entry(link).or_default() += 1;
        }
        let routers = &self.links.network.links;
        let shared = |(link, _): &(u32, Time), flows: u32| flows > 1 && (*link as usize) < routers.len();
        for (key, _) in uses.iter().filter(|(key, flows)| shared(key, **flows)) {
            self.upstream.insert(*key, self.network.links.len() as u32);
            self.network.links.push(LinkPlan { delay: key.1, ..routers[key.0 as usize].clone() });
        }
        for (key, _) in uses.iter().filter(|(key, flows)| !shared(key, **flows)) {
            let link = self.access(self.links.line(key.0).0, key.1);
            self.upstream.insert(*key, link);
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
        let upstream: Vec<u32> =
            around.first.iter().chain(&around.previous).map(|link| self.upstream[link]).collect();
        let down = self.access(UNLIMITED, around.behind);
        let back = self.access(UNLIMITED, around.back);
        let data = self.network.routes.len() as u32;
        self.network.routes.extend(upstream);
        self.network.routes.extend([0, down, END]);
        let acks = self.network.routes.len() as u32;
        self.network.routes.extend([back, END]);
        let routes = FlowRoutes { data, acks };
        self.known.insert(*around, routes);
        routes
    }

    /// Returns the group for a flow of `group`. A flow with a feed gets a copy of the group, whose data come late.
    fn group(&mut self, group: u32, crosses: &CrossingFlow) -> u32 {
        if crosses.elsewhere.is_none() {
            return group;
        }
        let groups = &mut self.network.groups;
        *self.late.entry(group).or_insert_with(|| {
            groups.push(groups[group as usize].clone());
            groups.len() as u32 - 1
        })
    }

    /// Sets when the data of a flow come, if another link slows it down.
    fn release(&mut self, group: u32, index: u32, crosses: &CrossingFlow) {
        let Some(Elsewhere { release, .. }) = crosses.elsewhere else { return };
        let plan = &mut self.network.groups[group as usize];
        let all = Arc::make_mut(plan.release.get_or_insert_default());
        all.resize(all.len().max(index as usize + 1), Release::default());
        all[index as usize] = release;
    }

    /// A flow that crosses the link, whose routes are known.
    fn crossing(&self, number: u32, around: &Around) -> CrossingFlow {
        let links = self.links;
        let packet = links.scenario().packet.as_f64();
        let sent = |link: u32| Time::from_secs_f64(packet / links.line(link).0.bytes_per_sec());
        let mut rtt = links.crossing_time(self.link, packet) + around.behind + around.back;
        for (link, delay) in around.first.iter().chain(&around.previous) {
            rtt += sent(*link) + *delay;
        }
        let place = links.place(self.link, number);
        let elsewhere = self.slower.and_then(|slower| slower(self.link, number, place));
        let path = links.route(links.flows[number as usize].routes.data);
        let upstream = path.take_while(|on| *on != self.link);
        let before = upstream.fold(Time::ZERO, |sum, on| sum + links.crossing_time(on, packet));
        CrossingFlow { flow: number, place, rtt, before, elsewhere }
    }

    /// Adds the flows of a group that arrive during the run, as a list.
    fn arrivals<'f>(
        &mut self,
        arriving: &ArrivalPlan,
        flows: impl Iterator<Item = (&'f u32, &'f Around)>,
        crossing: &mut Vec<CrossingFlow>,
    ) {
        // The flows of each group, with the routes between each pair.
        let mut lists: BTreeMap<u32, OwnList> = BTreeMap::new();
        for (number, around) in flows {
            let flow = &self.links.flows[*number as usize];
            let crosses = self.crossing(*number, around);
            let routes = self.routes(around);
            let group = self.group(arriving.group, &crosses);
            let list = lists.entry(group).or_default();
            self.release(group, list.rows.len() as u32, &crosses);
            list.add(flow, routes, crosses);
        }
        for (group, own) in lists {
            let mut list = FlowList { rows: own.rows, ..FlowList::default() };
            list.order = (0..list.rows.len() as u32).collect();
            list.order.sort_by_key(|row| list.rows[*row as usize].start);
            let list = Arc::new(list);
            self.network.groups[group as usize].list = Some(list.clone());
            let (routes, stop) = (own.routes, arriving.stop);
            let comes = Comes::Listed { list, next: 0 };
            self.network.arrivals.push(ArrivalPlan { group, routes, comes, start: Time::ZERO, stop });
            crossing.extend(own.crossing);
        }
    }
}

/// The flows of a group that arrive during the run of one link.
#[derive(Default)]
struct OwnList {
    rows: Vec<Listed>,
    crossing: Vec<CrossingFlow>,
    /// Numbers of pairs by their routes for data.
    pairs: BTreeMap<u32, u32>,
    routes: Vec<VecDeque<FlowRoutes>>,
}

impl OwnList {
    fn add(&mut self, flow: &Flow, routes: FlowRoutes, crossing: CrossingFlow) {
        let pair = *self.pairs.entry(routes.data).or_insert_with(|| {
            self.routes.push(VecDeque::from([routes]));
            self.routes.len() as u32 - 1
        });
        self.rows.push(Listed { start: flow.start, size: flow.size, pair, law: flow.law });
        self.crossing.push(crossing);
    }
}

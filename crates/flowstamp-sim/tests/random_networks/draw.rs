//! Scenarios at random: topologies, laws, workloads and sizes of everything, from tiny to huge.
//!
//! This file has only the relations between keys: that one topology is given, that names of nodes are those of
//! the topology, that a flow which obeys routers has one of its kind on its path. All else is drawn from the schema.

use super::cells::{MOST_PACKET, aggregate, is_blind};
use super::impairments::{balance, fail, impair};
use super::lists::list;
use super::operations::operate;
use super::pauses::pause;
use super::schema::{Dice, Drawer, Scale, bits_per_second, bytes, resolve, round, seconds, variants};
use flowstamp_sim::random::Stream;
use flowstamp_sim::{Format, load};
use serde_json::Value as Json;
use std::path::Path;
use toml::{Table, Value};

/// The files that scenarios may name, in the folder of [`super::folder`].
const TRACES: [&str; 3] = ["even.down", "bursty.down", "slow.down"];
const SIZES: &str = "sizes.cdf";

/// Most flows that arrive at random in a run, about.
const WEB_FLOWS: f64 = 300.0;

/// The space of draws: the schema, and which senders may be used beside which router.
pub struct Registry {
    pub schema: Json,
    pub routers: Vec<(String, Vec<String>)>,
    pub senders: Vec<String>,
    /// Senders that need no router.
    alone: Vec<String>,
    /// Router laws that need no capacity, among them that of a link which only forwards.
    pub blind: Vec<String>,
}

impl Registry {
    /// The schema of this build. Which sender goes with which router is asked of [`load`], so that a law registered
    /// tomorrow is drawn together with its router.
    pub fn new() -> Self {
        let schema = flowstamp_sim::scenario::schema();
        let names = |spec| variants(&schema, spec).into_iter().map(|(n, _)| n.to_owned()).collect::<Vec<_>>();
        let senders = names("SenderSpec");
        let goes = |sender: &str, router: &str| {
            // Some have no pace of their own.
            ["", ", rate = \"1Mbps\""].into_iter().any(|rate| {
                let text = format!(
                    "duration = \"1s\"\ndumbbell = {{ rate = \"1Mbps\", rtt = \"10ms\", router = \"{router}\" }}\n\
                     flows = [{{ name = \"a\", law = \"{sender}\"{rate} }}]"
                );
                load(&text, Format::Toml, "pair", &[], Path::new(".")).is_ok()
            })
        };
        let with =
            |router: &String| senders.iter().filter(|s| goes(s, router)).cloned().collect::<Vec<String>>();
        let routers: Vec<_> = names("RouterSpec").into_iter().map(|r| (r.clone(), with(&r))).collect();
        let alone =
            senders.iter().filter(|s| routers.iter().all(|(_, goes)| goes.contains(s))).cloned().collect();
        let blind = routers.iter().filter(|(r, goes)| is_blind(r, goes)).map(|(r, _)| r.clone()).collect();
        Self { schema, routers, senders, alone, blind }
    }

    pub fn node(&self, name: &str) -> &Json {
        &self.schema["$defs"][name]
    }
}

/// Inserts a text.
pub fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

pub struct Network<'a> {
    pub registry: &'a Registry,
    pub d: Drawer<'a>,
    /// Router law of most links, and the senders that may use it.
    pub router: &'a (String, Vec<String>),
    pub nodes: Vec<String>,
    pub links: Vec<String>,
    /// It has cells.
    radio: bool,
}

/// The scenario of `seed`.
pub fn scenario(registry: &Registry, seed: u64) -> Table {
    let mut dice = Dice(Stream::new(seed, "random network"));
    let usual = dice.chance(0.5);
    let rate = if usual { dice.magnitude(1e6, 1e9) } else { dice.magnitude(1e3, 1e11) };
    let rtt = if usual { dice.magnitude(1e-3, 0.3) } else { dice.magnitude(1e-6, 10.0) };
    let packet = match dice.below(3) {
        0 => 1000.0,
        1 => 1500.0,
        _ => dice.magnitude(40.0, 65_535.0).round(),
    };
    // Some round trips, and some packets' times.
    let trips = rtt * dice.magnitude(3.0, 300.0);
    let packets = packet * 8.0 / rate * dice.magnitude(30.0, 30_000.0);
    let duration = if dice.chance(0.7) { trips.max(packets) } else { trips.min(packets) };
    let mut scale = Scale { rate, rtt, duration, packet };
    // By dice of their own: other seeds are what they would be without cells.
    let mut radio_dice = Dice(Stream::new(seed, "random cells"));
    let radio = radio_dice.chance(0.2);
    if radio {
        scale.rate = radio_dice.magnitude(1e6, 1e8);
        scale.rtt = radio_dice.magnitude(1e-4, 0.3);
        scale.duration = radio_dice.magnitude(0.02, 5.0);
        scale.packet = packet.min(MOST_PACKET);
    }
    // Mostly a router that there are senders for.
    let stamping: Vec<_> = registry.routers.iter().filter(|(_, s)| s.len() > registry.alone.len()).collect();
    let any: Vec<_> = registry.routers.iter().collect();
    let some = dice.chance(0.7) && !stamping.is_empty();
    let router = *dice.pick(if some { &stamping } else { &any });
    let optional = *dice.pick(&[0.02, 0.1, 0.3]);
    let mended = dice.chance(0.9);
    let mut network = Network {
        registry,
        d: Drawer { root: &registry.schema, dice, scale, optional },
        router,
        nodes: vec![],
        links: vec![],
        radio,
    };
    let mut tree = network.scenario();
    if mended {
        mend(registry, &mut tree);
    }
    impair(&mut tree, seed, scale);
    fail(&mut tree, &network.links, seed, scale);
    balance(&mut tree, seed, scale);
    list(&mut tree, &network.nodes, seed, scale);
    operate(&mut tree, &network.nodes, seed, scale);
    pause(registry, &mut tree, seed, scale);
    aggregate(&mut tree, seed);
    tree
}

/// Leaves out what is refused, a few times: the ranges of parameters are not in the schema, and what is beyond them is
/// tried often enough all the same.
pub fn mend(registry: &Registry, tree: &mut Table) {
    for _ in 0..8 {
        let text = toml::to_string(tree).unwrap_or_default();
        let Err(error) = load(&text, Format::Toml, "random.toml", &[], &super::folder()) else { return };
        let mut value = Value::Table(std::mem::take(tree));
        if error.key.ends_with(".law") {
            // It obeys routers, of which there are none on its path.
            let alone = registry.alone.first().cloned().unwrap_or_default();
            let name = error.key.trim_start_matches("flows.").trim_end_matches(".law");
            let groups = value["flows"].as_array_mut().into_iter().flatten().filter_map(Value::as_table_mut);
            for group in groups.filter(|g| g.get("name").and_then(Value::as_str) == Some(name)) {
                put(group, "law", alone.clone());
            }
        } else if !without_path(&mut value, &error.key) {
            // "impairments of l1: loss"
            let key = error.key.rsplit(": ").next().unwrap_or_default();
            let key = key.split(" of ").next().unwrap_or_default();
            without(&mut value, key.rsplit('.').next().unwrap_or_default());
        }
        if let Value::Table(mended) = value {
            *tree = mended;
        }
    }
}

/// Drops what `path` leads to, such as "graph.links[0].queue.max_p" or "flows.g0.law.price", and says whether it was there.
fn without_path(value: &mut Value, path: &str) -> bool {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let (key, index) = match first.trim_end_matches(']').split_once('[') {
        Some((key, index)) => (key, index.parse::<usize>().ok()),
        None => (first, None),
    };
    let Some(rest) = rest else {
        return index.is_none() && value.as_table_mut().is_some_and(|t| t.remove(key).is_some());
    };
    let Some(inner) = value.get_mut(key) else { return false };
    match (inner, index) {
        (Value::Array(items), Some(index)) => {
            items.get_mut(index).is_some_and(|item| without_path(item, rest))
        }
        (Value::Array(groups), None) => {
            let Some((name, rest)) = rest.split_once('.') else { return false };
            let named = groups.iter_mut().find(|g| g.get("name").and_then(Value::as_str) == Some(name));
            named.is_some_and(|group| without_path(group, rest))
        }
        (table, _) => without_path(table, rest),
    }
}

/// Drops `key` wherever it is.
fn without(value: &mut Value, key: &str) {
    match value {
        Value::Table(table) => {
            table.remove(key);
            table.iter_mut().for_each(|(_, v)| without(v, key));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| without(v, key)),
        _ => {}
    }
}

/// A graph's keys for the links of a file.
const OF_FILE: [&str; 9] = ["file", "rate", "delay", "buffer", "queue", "router", "share", "priority", "pfc"];

impl Network<'_> {
    fn scenario(&mut self) -> Table {
        let mut s = Table::new();
        put(&mut s, "duration", seconds(self.d.scale.duration));
        put(&mut s, "seed", self.d.dice.below(1000) as i64);
        put(&mut s, "packet", bytes(self.d.scale.packet));
        if self.d.dice.chance(0.3) {
            let ack = self.d.dice.magnitude(1.0, 65_535.0);
            let ack = if self.radio { ack.min(MOST_PACKET) } else { ack };
            put(&mut s, "ack", bytes(ack));
        }
        match self.d.dice.below(4) {
            _ if self.radio => s.insert("graph".into(), self.graph()),
            0 => s.insert("dumbbell".into(), self.dumbbell()),
            1 => s.insert("parking_lot".into(), self.parking_lot()),
            2 => {
                let (kind, table) = self.datacentre();
                s.insert(kind.into(), table)
            }
            _ => s.insert("graph".into(), self.graph()),
        };
        if self.radio {
            s.insert("wireless".into(), self.cells());
        }
        let groups = 1 + self.d.dice.below(4);
        let flows = (0..groups).map(|i| Value::Table(self.group(i, s.contains_key("parking_lot"))));
        let flows = flows.collect::<Vec<_>>();
        s.insert("flows".into(), Value::Array(flows));
        if s.contains_key("graph")
            && matches!(self.router.0.as_str(), "xcp" | "vcp")
            && self.d.dice.chance(0.4)
        {
            self.cloud(&mut s);
        }
        if self.d.dice.chance(0.5) {
            let probes = self.d.object(self.registry.node("Probes"), Table::new(), &["every"]);
            s.insert("probes".into(), Value::Table(probes));
            if self.d.dice.chance(0.3) {
                let every = seconds(self.d.scale.duration * self.d.dice.magnitude(1e-3, 2.0));
                s["probes"].as_table_mut().expect("a table").insert("every".into(), every.into());
            }
        }
        if self.d.dice.chance(0.2) {
            let mut capture = self.d.object(self.registry.node("Capture"), Table::new(), &["links"]);
            if self.d.dice.chance(0.3) && !self.links.is_empty() {
                let link = self.d.dice.pick(&self.links).clone();
                put(&mut capture, "links", vec![link]);
            }
            s.insert("capture".into(), Value::Table(capture));
        }
        let mut done =
            vec!["dumbbell", "parking_lot", "graph", "flows", "probes", "capture", "name", "description"];
        done.extend(["leaf_spine", "fat_tree", "outages", "routing"]);
        // Cells drawn from the schema alone would be refused.
        done.extend((self.radio || self.d.dice.chance(0.95)).then_some("wireless"));
        self.d.object(&self.registry.schema, s, &done)
    }

    /// The keys of every kind of link: its router, queue and share.
    fn laws(&mut self, table: &mut Table) {
        if self.d.dice.chance(0.9) {
            let spec = self.d.variant("RouterSpec", &self.router.0);
            table.insert("router".into(), spec);
        }
        for (key, spec, chance) in [("queue", "QueueSpec", 0.6), ("share", "ShareSpec", 0.3)] {
            // A share is refused where there is no router law.
            let stamps = self.router.1.len() > self.registry.alone.len() && table.contains_key("router");
            let wanted = key == "queue" || stamps;
            if wanted && self.d.dice.chance(chance) {
                let names = variants(self.d.root, spec);
                let name = self.d.dice.pick(&names).0;
                let spec = self.d.variant(spec, name);
                table.insert(key.into(), spec);
            }
        }
    }

    fn rate(&mut self) -> Value {
        let scale = self.d.scale;
        let constant = bits_per_second(scale.rate * self.d.dice.magnitude(0.5, 2.0));
        if self.d.dice.chance(0.8) {
            return constant.into();
        }
        let mut varying = Table::new();
        if self.d.dice.chance(0.3) {
            put(&mut varying, "trace", *self.d.dice.pick(&TRACES));
        } else {
            let n = 2 + self.d.dice.below(4);
            let step = |i: usize, d: &mut Drawer<'_>| {
                let at = if i == 0 { "0s".to_owned() } else { seconds(scale.duration * i as f64 / n as f64) };
                let stands = i + 1 < n && d.dice.chance(0.15);
                let rate = if stands { 0.0 } else { scale.rate * d.dice.magnitude(0.03, 3.0) };
                Value::Array(vec![at.into(), bits_per_second(rate).into()])
            };
            let steps: Vec<_> = (0..n).map(|i| step(i, &mut self.d)).collect();
            put(&mut varying, "steps", steps);
        }
        let node = self.registry.node("VaryingRate");
        Value::Table(self.d.object(node, varying, &["steps", "trace"]))
    }

    fn dumbbell(&mut self) -> Value {
        let mut t = Table::new();
        let rtt = self.d.scale.rtt;
        t.insert("rate".into(), self.rate());
        put(&mut t, "rtt", seconds(rtt));
        if self.d.dice.chance(0.2) {
            put(&mut t, "delay", seconds(rtt * self.d.dice.within(0.0, 0.5)));
        }
        if self.d.dice.chance(0.2) {
            t.insert("reverse_rate".into(), self.rate());
        }
        self.laws(&mut t);
        self.nodes = ["left", "right"].map(String::from).into();
        self.links = ["bottleneck", "bottleneck.reverse"].map(String::from).into();
        let done = [
            "router",
            "queue",
            "share",
            "scone",
            "delay",
            "reverse_rate",
            "impairments",
            "reverse_impairments",
        ];
        self.advice(&mut t);
        Value::Table(self.d.object(self.registry.node("Dumbbell"), t, &done))
    }

    fn parking_lot(&mut self) -> Value {
        let mut t = Table::new();
        let scale = self.d.scale;
        let hops = 1 + self.d.dice.below(5);
        let rates: Vec<_> =
            (0..hops).map(|_| bits_per_second(scale.rate * self.d.dice.magnitude(0.5, 2.0))).collect();
        put(&mut t, "rates", rates);
        put(&mut t, "delay", seconds(scale.rtt / (2 * hops) as f64));
        if self.d.dice.chance(0.3) {
            put(&mut t, "access_delay", seconds(scale.rtt * self.d.dice.magnitude(0.001, 0.3)));
        }
        self.laws(&mut t);
        self.nodes = (0..=hops).map(|i| format!("n{i}")).collect();
        self.links = (1..=hops).map(|i| format!("link{i}")).collect();
        let done = ["router", "queue", "share", "access_delay", "impairments"];
        Value::Table(self.d.object(self.registry.node("ParkingLot"), t, &done))
    }

    /// A network with several paths of the same length between most hosts.
    fn datacentre(&mut self) -> (&'static str, Value) {
        let scale = self.d.scale;
        let mut t = Table::new();
        put(&mut t, "rate", bits_per_second(scale.rate));
        put(&mut t, "delay", seconds(scale.rtt / 12.0));
        self.laws(&mut t);
        let mut done = vec!["router", "queue", "share"];
        let (kind, node, hosts) = if self.d.dice.chance(0.5) {
            let k = 2 * (1 + self.d.dice.below(2));
            put(&mut t, "k", k as i64);
            ("fat_tree", "FatTree", k * k * k / 4)
        } else {
            let counts: Vec<usize> = (0..3).map(|_| 1 + self.d.dice.below(3)).collect();
            let hosts = (counts[2] * counts[0]).max(2);
            for (key, count) in [("leaves", counts[0]), ("spines", counts[1]), ("hosts", hosts / counts[0])] {
                put(&mut t, key, count.max(1) as i64);
            }
            done.push("spine_delay");
            ("leaf_spine", "LeafSpine", hosts / counts[0] * counts[0])
        };
        done.extend(["oversubscription", "pfc"]);
        self.nodes = (0..hosts.max(2)).map(|i| format!("h{i}")).collect();
        // As of a graph, a router is on each link, and flows have no hosts of their own.
        self.links = vec!["h0->leaf0".to_owned()];
        (kind, Value::Table(self.d.object(self.registry.node(node), t, &done)))
    }

    /// A chain of nodes both ways, and further links between any of them.
    fn graph(&mut self) -> Value {
        let nodes = 2 + self.d.dice.below(5);
        self.nodes = (0..nodes).map(|i| format!("n{i}")).collect();
        let more = self.d.dice.below(4);
        let mut ends: Vec<_> = (1..nodes).map(|i| (i - 1, i)).collect();
        for _ in 0..more {
            let (a, b) = (self.d.dice.below(nodes), self.d.dice.below(nodes));
            if a != b {
                ends.push((a, b));
            }
        }
        let mut links = Vec::new();
        for (i, (a, b)) in ends.into_iter().enumerate() {
            let mut t = Table::new();
            put(&mut t, "from", self.nodes[a].clone());
            put(&mut t, "to", self.nodes[b].clone());
            // Two nodes can have several links: each has its name.
            let name = format!("l{i}");
            put(&mut t, "name", name.clone());
            self.links.push(name);
            t.insert("rate".into(), self.rate());
            let delay = self.d.scale.rtt * self.d.dice.within(0.0, 1.0) / nodes as f64;
            put(&mut t, "delay", seconds(delay));
            self.laws(&mut t);
            if i + 1 >= nodes && self.d.dice.chance(0.5) {
                put(&mut t, "duplex", false);
            }
            self.advice(&mut t);
            let done = ["router", "queue", "share", "duplex", "impairments", "pfc", "scone"];
            links.push(Value::Table(self.d.object(self.registry.node("Link"), t, &done)));
        }
        let mut t = Table::new();
        put(&mut t, "links", links);
        Value::Table(self.d.object(self.registry.node("Graph"), t, &OF_FILE))
    }

    /// A further node, whose link into the graph is governed by a macro-flow, and flows that take it.
    fn cloud(&mut self, s: &mut Table) {
        let scale = self.d.scale;
        let ingress = self.d.dice.below(self.nodes.len());
        let egress = (ingress + 1 + self.d.dice.below(self.nodes.len() - 1)) % self.nodes.len();
        let (ingress, egress) = (self.nodes[ingress].clone(), self.nodes[egress].clone());
        let mut link = Table::new();
        let ends = [("from", "site"), ("to", &ingress), ("name", "edge")];
        ends.iter().for_each(|(key, value)| put(&mut link, key, *value));
        put(&mut link, "rate", bits_per_second(scale.rate * self.d.dice.magnitude(0.3, 30.0)));
        put(&mut link, "delay", seconds(scale.rtt * self.d.dice.within(0.0, 0.1)));
        if self.d.dice.chance(0.5) {
            put(&mut link, "buffer", format!("{}pkt", 1 + self.d.dice.below(200)));
        }
        let links = s["graph"].get_mut("links").and_then(Value::as_array_mut);
        links.into_iter().for_each(|links| links.push(Value::Table(link.clone())));
        let mut macro_flow = Table::new();
        let law = self.d.variant("SenderSpec", &format!("{}-edge", self.router.0));
        macro_flow.insert("law".into(), law);
        let said = [("name", "macro"), ("from", &ingress), ("to", &egress), ("governs", "edge")];
        said.iter().for_each(|(key, value)| put(&mut macro_flow, key, *value));
        let mut micro = Table::new();
        let law = self.d.dice.pick(&self.registry.alone).clone();
        let law = self.d.variant("SenderSpec", &law);
        micro.insert("law".into(), law);
        [("name", "micro"), ("from", "site"), ("to", &egress)]
            .iter()
            .for_each(|(k, v)| put(&mut micro, k, *v));
        put(&mut micro, "count", 1 + self.d.dice.below(5) as i64);
        put(&mut micro, "rate", bits_per_second(scale.rate * self.d.dice.magnitude(1e-2, 10.0)));
        let flows = s["flows"].as_array_mut();
        flows
            .into_iter()
            .for_each(|flows| flows.extend([macro_flow.clone(), micro.clone()].map(Value::Table)));
    }

    fn group(&mut self, number: usize, parking_lot: bool) -> Table {
        let scale = self.d.scale;
        let mut t = Table::new();
        put(&mut t, "name", format!("g{number}"));
        let (goes, registry) = (&self.router.1, self.registry);
        let obeying: Vec<_> = goes.iter().filter(|s| !registry.alone.contains(s)).collect();
        let law = match () {
            () if !obeying.is_empty() && self.d.dice.chance(0.6) => (*self.d.dice.pick(&obeying)).clone(),
            () if !goes.is_empty() && self.d.dice.chance(0.98) => self.d.dice.pick(goes).clone(),
            () => self.d.dice.pick(&registry.senders).clone(),
        };
        let datagrams = law == "udp";
        let law = self.d.variant("SenderSpec", &law);
        t.insert("law".into(), law);
        let hosts = self.nodes.first().is_some_and(|node| node == "h0");
        let graph = hosts || self.links.first().is_some_and(|l| l == "l0");
        let pattern = hosts && self.d.dice.chance(0.5);
        if pattern {
            put(&mut t, "pattern", *self.d.dice.pick(&["random", "permutation", "incast"]));
        } else if graph || self.d.dice.chance(0.1) {
            let from = self.d.dice.below(self.nodes.len());
            let to = (from + 1 + self.d.dice.below(self.nodes.len() - 1)) % self.nodes.len();
            put(&mut t, "from", self.nodes[from].clone());
            put(&mut t, "to", self.nodes[to].clone());
        }
        if parking_lot && self.d.dice.chance(0.2) {
            put(&mut t, "each_hop", true);
        }
        let web = !datagrams && self.d.dice.chance(0.3);
        if web {
            let web = self.web();
            t.insert("web".into(), web);
        } else {
            let count =
                if self.d.dice.chance(0.9) { 1 + self.d.dice.below(5) } else { self.d.dice.below(500) };
            put(&mut t, "count", count as i64);
            let applies = self.d.dice.chance(if datagrams { 0.6 } else { 0.2 });
            if applies {
                self.application(&mut t, datagrams);
            }
            if datagrams {
                self.datagrams(&mut t);
            }
            if !(datagrams || applies) && self.d.dice.chance(0.4) {
                put(&mut t, "size", bytes(scale.packet * self.d.dice.magnitude(0.01, 3000.0)));
            }
            if !applies && (datagrams || self.d.dice.chance(0.2)) {
                put(&mut t, "rate", bits_per_second(scale.rate * self.d.dice.magnitude(1e-3, 2.0)));
            }
            if self.d.dice.chance(0.2) {
                put(&mut t, "lifetime", seconds(scale.duration * self.d.dice.magnitude(1e-3, 1.0)));
                put(&mut t, "lifetime_spread", seconds(scale.duration * self.d.dice.within(0.0, 0.5)));
            }
        }
        if graph && self.d.dice.chance(0.3) {
            let access = self.d.value(self.registry.node("Access"), "access");
            t.extend(access.map(|a| ("access".to_owned(), a)));
        }
        if (!graph || t.contains_key("access")) && self.d.dice.chance(0.2) {
            // The shortest path is at most `rtt` long, or a little more in a graph of many links.
            let rtts: Vec<_> = (0..t.get("count").and_then(Value::as_integer).unwrap_or(0))
                .map(|_| Value::from(seconds(scale.rtt * self.d.dice.magnitude(2.0, 10.0))))
                .collect();
            match rtts.first().cloned() {
                Some(one) if self.d.dice.chance(0.5) => t.insert("rtt".into(), one),
                Some(_) => t.insert("rtt".into(), Value::Array(rtts)),
                None => None,
            };
        }
        let mut done = vec![
            "pattern",
            "hosts",
            "incast",
            "collective",
            "web",
            "list",
            "ignore_columns",
            "start",
            "size",
            "rate",
            "application",
            "packet",
            "jitter",
            "send_buffer",
            "rtt",
            "access",
            "each_hop",
            "from",
            "to",
            "lifetime",
            "lifetime_spread",
        ];
        let starts = if web { 1 } else { t.get("count").and_then(Value::as_integer).unwrap_or(1) };
        if self.d.dice.chance(self.d.optional) {
            let starts: Vec<_> = (0..starts)
                .map(|_| Value::from(seconds(scale.duration * self.d.dice.magnitude(1e-4, 1.0))))
                .collect();
            match starts.first().cloned() {
                Some(one) if web || self.d.dice.chance(0.5) => t.insert("start".into(), one),
                Some(_) => t.insert("start".into(), Value::Array(starts)),
                None => None,
            };
        }
        done.extend(self.d.dice.chance(0.9).then_some("governs"));
        done.extend(web.then_some("every"));
        self.d.object(self.registry.node("FlowGroup"), t, &done)
    }

    /// An application of any kind, and the repair that it needs.
    fn application(&mut self, group: &mut Table, datagrams: bool) {
        let scale = self.d.scale;
        let kinds = ["constant", "poisson", "onoff", "frames", "requests", "video"];
        let kind = kinds[self.d.dice.below(if datagrams { 4 } else { 6 })];
        let mut t = Table::new();
        put(&mut t, "kind", kind);
        let rate = scale.rate * self.d.dice.magnitude(1e-3, 2.0);
        let frame = scale.packet * self.d.dice.magnitude(0.01, 100.0);
        match kind {
            "frames" => {
                put(&mut t, "fps", round(rate / 8.0 / frame));
                let sizes = self.message_sizes(frame);
                t.insert("sizes".into(), sizes);
            }
            "requests" => {
                let sizes = self.message_sizes(frame);
                t.insert("sizes".into(), sizes);
                let think = self.periods();
                t.insert("think".into(), think);
            }
            "video" => {
                put(&mut t, "segment", "1s");
                put(&mut t, "ladder", vec![bits_per_second(1e3 + frame), bits_per_second(1e4 + 8.0 * frame)]);
                put(&mut t, "choice", *self.d.dice.pick(&["buffer", "rate", "advice"]));
            }
            _ if self.d.dice.chance(0.5) => put(&mut t, "rate", bits_per_second(rate)),
            _ => put(&mut t, "interval", seconds(scale.packet * 8.0 / rate)),
        }
        if kind == "onoff" {
            for key in ["on", "off"] {
                let periods = self.periods();
                t.insert(key.into(), periods);
            }
        }
        group.insert("application".into(), Value::Table(t));
        if !datagrams && self.d.dice.chance(0.9) {
            let mut transport = Table::new();
            put(&mut transport, "recovery", *self.d.dice.pick(&["reno", "newreno", "sack"]));
            group.insert("transport".into(), Value::Table(transport));
        }
    }

    /// Throughput advice of some links.
    fn advice(&mut self, link: &mut Table) {
        if self.d.dice.chance(0.1) {
            let mut scone = Table::new();
            put(&mut scone, "rate", bits_per_second(self.d.scale.rate.clamp(1e5, 1e11)));
            link.insert("scone".into(), Value::Table(scone));
        }
    }

    /// Keys that only datagrams have.
    fn datagrams(&mut self, group: &mut Table) {
        let scale = self.d.scale;
        if self.d.dice.chance(0.3) {
            put(
                group,
                "jitter",
                if self.d.dice.chance(0.5) { "none".to_owned() } else { seconds(scale.rtt * 0.1) },
            );
        }
        if self.d.dice.chance(0.2) {
            put(group, "send_buffer", bytes(scale.packet * self.d.dice.magnitude(1.0, 100.0)));
        }
        if self.d.dice.chance(0.2) {
            put(group, "packet", bytes(scale.packet));
        }
    }

    fn message_sizes(&mut self, mean: f64) -> Value {
        match self.d.dice.below(3) {
            0 => bytes(mean).into(),
            1 => Value::Array(vec![bytes(mean * 3.0).into(), bytes(mean.max(1.0)).into()]),
            _ => {
                let mut t = Table::new();
                put(&mut t, "distribution", "exponential");
                put(&mut t, "mean", bytes(mean));
                Value::Table(t)
            }
        }
    }

    fn periods(&mut self) -> Value {
        let mean = seconds(self.d.scale.duration * self.d.dice.magnitude(1e-3, 0.3));
        let mut t = Table::new();
        match self.d.dice.below(3) {
            0 => return mean.into(),
            1 => put(&mut t, "distribution", "exponential"),
            _ => {
                put(&mut t, "distribution", "pareto");
                put(&mut t, "shape", round(1.0 + self.d.dice.magnitude(0.02, 3.0)));
            }
        }
        put(&mut t, "mean", mean);
        Value::Table(t)
    }

    fn web(&mut self) -> Value {
        let scale = self.d.scale;
        let mut t = Table::new();
        let flows = self.d.dice.magnitude(1.0, WEB_FLOWS);
        if self.d.dice.chance(0.5) {
            put(&mut t, "load", format!("{}", round(self.d.dice.within(0.05, 0.95))));
        } else {
            put(&mut t, "flows_per_s", round(flows / scale.duration));
        }
        let root = self.d.root;
        let kinds = variants(root, "Sizes");
        let (_, node) = *self.d.dice.pick(&kinds);
        let mut sizes = self.d.object(node, Table::new(), &["file"]);
        // Sizes of which about as many flows come as are wanted, whatever the load.
        let most = (scale.rate * scale.duration / 8.0 / flows).max(scale.packet);
        for (key, value) in &mut sizes {
            let of_bytes = resolve(root, &node["properties"][key]).1 == "Bytes";
            if of_bytes && !self.d.dice.chance(0.02) {
                let size = most * self.d.dice.magnitude(0.3, 1.0) * if key == "min" { 0.1 } else { 1.0 };
                *value = bytes(size).into();
            }
        }
        fix_shape(&mut sizes, &mut self.d.dice);
        if node["properties"].get("file").is_some() {
            put(&mut sizes, "file", SIZES);
        }
        t.insert("sizes".into(), Value::Table(sizes));
        let mut web = self.d.object(self.registry.node("Web"), t, &["load", "flows_per_s"]);
        if let Some(Value::Table(arrivals)) = web.get_mut("arrivals") {
            fix_shape(arrivals, &mut self.d.dice);
        }
        Value::Table(web)
    }
}

/// A Pareto shape of at most 1 is refused.
fn fix_shape(table: &mut Table, dice: &mut Dice) {
    if table.contains_key("shape") && dice.chance(0.95) {
        put(table, "shape", round(1.0 + dice.magnitude(0.02, 3.0)));
    }
}

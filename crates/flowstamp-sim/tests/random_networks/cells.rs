//! Cells of a radio at random, among the nodes of a graph and with nodes of their own.

use super::draw::{Network, Registry, put};
use super::schema::{Dice, bits_per_second, bytes, round, seconds, variants};
use flowstamp_sim::random::Stream;
use flowstamp_sim::{Format, load};
use std::path::Path;
use toml::{Table, Value};

/// Standards, and their data rates in Mb/s.
pub const STANDARDS: [(&str, &[f64]); 4] = [
    ("802.11b", &[1.0, 2.0, 5.5, 11.0]),
    ("802.11g", &[6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0]),
    ("802.11b-ns2", &[1.0, 2.0, 5.5, 11.0]),
    ("802.11g-ns2", &[6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0]),
];

/// Bytes of the longest packet that is drawn: none is longer than 802.11 carries.
pub const MOST_PACKET: f64 = 2000.0;

/// Whether a router law can do without a capacity, as [`load`] has it.
pub fn is_blind(router: &str, senders: &[String]) -> bool {
    senders.iter().any(|sender| {
        let text = format!(
            "duration = \"1s\"\ngraph.links = []\n\
             wireless = [{{ name = \"air\", access_point = \"a\", router = \"{router}\", stations = [{{ name = \"b\", rate = \"1Mbps\" }}] }}]\n\
             flows = [{{ name = \"f\", law = \"{sender}\", from = \"a\", to = \"b\" }}]"
        );
        load(&text, Format::Toml, "cell", &[], Path::new(".")).is_ok()
    })
}

impl Registry {
    /// Router laws for the same senders that need no capacity.
    fn blind(&self, router: &(String, Vec<String>)) -> Vec<String> {
        let blind = self.routers.iter().filter(|r| r.1 == router.1 && self.blind.contains(&r.0));
        blind.map(|r| r.0.clone()).collect()
    }
}

impl Network<'_> {
    /// A cell, or sometimes two that do not hear each other.
    pub fn cells(&mut self) -> Value {
        let wired = self.nodes.len();
        let first = self.d.dice.below(wired);
        let mut cells = vec![self.cell("air", 'w', first)];
        if self.d.dice.chance(0.2) {
            cells.push(self.cell("other", 'v', (first + 1) % wired));
        }
        Value::Array(cells)
    }

    /// A cell around a node of the graph, its access point or a station like the others.
    fn cell(&mut self, name: &str, prefix: char, node: usize) -> Value {
        let node = self.nodes[node].clone();
        let (standard, rates) = *self.d.dice.pick(&STANDARDS);
        let mut t = Table::new();
        put(&mut t, "name", name);
        let mac = self.mac(standard);
        t.insert("mac".into(), mac);
        let told = self.d.dice.chance(0.4);
        if told {
            put(&mut t, "told", bits_per_second(self.d.dice.magnitude(0.5e6, 50e6)));
        }
        self.interface(&mut t, told, [0.9, 0.5, 0.6]);
        if self.d.dice.chance(0.2) {
            put(&mut t, "priority", *self.d.dice.pick(&["acks", "none"]));
        }
        let mut names: Vec<_> = (0..=self.d.dice.below(6)).map(|i| format!("{prefix}{i}")).collect();
        self.nodes.extend(names.iter().cloned());
        if self.d.dice.chance(0.7) {
            put(&mut t, "access_point", node.clone());
            self.links.push(format!("{name}.{node}"));
        } else {
            names.push(node);
        }
        let stations: Vec<_> = names.into_iter().map(|n| self.station(name, n, rates, told)).collect();
        self.links.push(name.to_owned());
        put(&mut t, "stations", stations);
        Value::Table(t)
    }

    fn station(&mut self, cell: &str, node: String, rates: &[f64], told: bool) -> Value {
        self.links.push(format!("{cell}.{node}"));
        let mut t = Table::new();
        put(&mut t, "name", node);
        let rate = |dice: &mut Dice| {
            let lacking = dice.chance(0.002);
            format!("{}Mbps", if lacking { 7.0 } else { *dice.pick(rates) })
        };
        if self.d.dice.chance(0.7) {
            put(&mut t, "rate", rate(&mut self.d.dice));
        } else {
            let n = 1 + self.d.dice.below(5);
            let duration = self.d.scale.duration;
            let step = |i: usize| {
                let at = if i == 0 { "0s".to_owned() } else { seconds(duration * i as f64 / n as f64) };
                Value::Array(vec![at.into(), rate(&mut self.d.dice).into()])
            };
            let mut varying = Table::new();
            put(&mut varying, "steps", (0..n).map(step).collect::<Vec<_>>());
            put(&mut t, "rate", varying);
        }
        if self.d.dice.chance(0.3) {
            put(&mut t, "error_rate", round(self.d.dice.within(0.0, 0.95)));
        }
        self.interface(&mut t, told, [0.1, 0.1, 0.1]);
        Value::Table(t)
    }

    /// Router, queue and buffer, each as likely as is said.
    fn interface(&mut self, table: &mut Table, told: bool, chances: [f64; 3]) {
        if self.d.dice.chance(chances[0]) {
            let blind = self.registry.blind(self.router);
            let own = told || blind.is_empty() || self.d.dice.chance(0.02);
            // One that is told and can do without may be either.
            let name = if own && (blind.is_empty() || self.d.dice.chance(0.7)) {
                self.router.0.clone()
            } else {
                self.d.dice.pick(&blind).clone()
            };
            if told || self.registry.blind.contains(&name) || self.d.dice.chance(0.02) {
                let spec = self.d.variant("RouterSpec", &name);
                table.insert("router".into(), spec);
            }
        }
        if self.d.dice.chance(chances[1]) {
            let names = variants(self.d.root, "QueueSpec");
            let name = self.d.dice.pick(&names).0;
            let spec = self.d.variant("QueueSpec", name);
            table.insert("queue".into(), spec);
        }
        if self.d.dice.chance(chances[2]) {
            let packets = format!("{}pkt", self.d.dice.pick(&[0, 1, 2, 10, 50, 1000]));
            let room = bytes(self.d.scale.packet * self.d.dice.magnitude(0.5, 500.0));
            let buffer = if self.d.dice.chance(0.5) { packets } else { room };
            put(table, "buffer", buffer);
        }
    }

    /// A standard, with or without RTS, and now and then with numbers of its own.
    fn mac(&mut self, standard: &str) -> Value {
        let mut t = Table::new();
        put(&mut t, "standard", standard);
        if self.d.dice.chance(0.3) {
            put(&mut t, "rts_threshold", bytes(self.d.dice.magnitude(1.0, 2400.0)));
        }
        if self.d.dice.chance(0.2) {
            put(&mut t, "preamble", *self.d.dice.pick(&["short", "long"]));
        }
        if self.d.dice.chance(0.1) {
            put(&mut t, "scale", *self.d.dice.pick(&[0.1, 2.0, 20.0]));
            put(&mut t, "scale_plcp", self.d.dice.chance(0.5));
        }
        if self.d.dice.chance(0.2) {
            put(&mut t, "short_retry_limit", 1 + self.d.dice.below(8) as i64);
            put(&mut t, "long_retry_limit", 1 + self.d.dice.below(8) as i64);
        }
        if self.d.dice.chance(0.1) {
            put(&mut t, "cw_min", (1 << (1 + self.d.dice.below(6))) - 1);
        }
        if self.d.dice.chance(0.1) {
            // Rates that stations have must be there.
            let kept = ["rates", "basic_rates", "mandatory_rate"];
            t = self.d.object(self.registry.node("Dcf"), t, &kept);
        }
        if t.len() == 1 { standard.into() } else { Value::Table(t) }
    }
}

/// Lets stations of cells send A-MPDUs, and routers of ABC learn the capacity from them, by dice of their own: other
/// seeds are what they would be without them.
pub fn aggregate(tree: &mut Table, seed: u64) {
    let mut dice = Dice(Stream::new(seed, "random A-MPDUs"));
    let captured = tree.contains_key("capture");
    let cells = tree.get_mut("wireless").and_then(Value::as_array_mut).into_iter().flatten();
    for cell in cells.filter_map(Value::as_table_mut) {
        for router in cell.get_mut("router").into_iter() {
            if router.as_str() == Some("abc") {
                let mut table = Table::new();
                put(&mut table, "law", "abc");
                *router = Value::Table(table);
            }
            let abc = router.as_table_mut().filter(|t| t.get("law").and_then(Value::as_str) == Some("abc"));
            if let Some(table) = abc.filter(|t| !t.contains_key("variant") && dice.chance(0.7)) {
                put(table, "capacity", "wifi");
            }
        }
        // Mostly not what is refused: ns-2's rules, and captures of such cells.
        let mac = match cell.get("mac") {
            Some(Value::Table(mac)) => mac.clone(),
            Some(name) => Table::from_iter([("standard".to_owned(), name.clone())]),
            None => Table::new(),
        };
        let standard = mac.get("standard").and_then(Value::as_str).unwrap_or_default();
        let refused = captured || standard.ends_with("ns2") || mac.contains_key("rules");
        if !dice.chance(if refused { 0.02 } else { 0.6 }) {
            continue;
        }
        let mut mac = mac;
        put(&mut mac, "ampdu_frames", *dice.pick(&[2i64, 8, 32, 64]));
        if dice.chance(0.3) {
            put(&mut mac, "ampdu_bytes", bytes(dice.magnitude(1.0, 1e6)));
        }
        if dice.chance(0.3) {
            put(&mut mac, "ampdu_time", seconds(dice.magnitude(1e-4, 1e-2)));
        }
        cell.insert("mac".to_owned(), Value::Table(mac));
    }
}

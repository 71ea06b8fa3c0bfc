//! The scenario's JSON Schema, and values drawn by it.
//!
//! Nothing here knows a law, a queue, a scheduler or a parameter by its name: what is registered is in the schema, and is
//! drawn from there. [`Hints`] says what cannot be seen from a schema: which orders of magnitude make a network.

use flowstamp_sim::random::Stream;
use serde_json::Value as Json;
use toml::{Table, Value};

/// Random choices.
pub struct Dice(pub Stream);

impl Dice {
    pub fn chance(&mut self, p: f64) -> bool {
        self.0.uniform() < p
    }
    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.0.uniform() * n as f64) as usize
    }
    pub fn within(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.uniform()
    }
    /// Between `least` and `most`, each order of magnitude alike.
    pub fn magnitude(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.uniform())
    }
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// The orders of magnitude of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// A link's rate, bits per second.
    pub rate: f64,
    /// A path's round-trip time, seconds.
    pub rtt: f64,
    /// Simulated time, seconds.
    pub duration: f64,
    /// A data packet, bytes.
    pub packet: f64,
}

/// How likely a number is far out of its range.
const EXTREME: f64 = 0.005;

/// Draws values by a schema.
pub struct Drawer<'a> {
    pub root: &'a Json,
    pub dice: Dice,
    pub scale: Scale,
    /// How likely a key is given that need not be.
    pub optional: f64,
}

/// Follows `$ref`; gives the last name on the way too.
pub fn resolve<'a>(root: &'a Json, mut node: &'a Json) -> (&'a Json, &'a str) {
    let mut name = "";
    while let Some(target) = node["$ref"].as_str() {
        // A variant whose parameters are a type of their own has properties and a `$ref`.
        if node.get("properties").is_some() {
            break;
        }
        name = target.trim_start_matches("#/$defs/");
        node = &root["$defs"][name];
    }
    (node, name)
}

/// Properties of an object, those of a `$ref` beside them included, and the names of those that must be given.
fn properties<'a>(root: &'a Json, node: &'a Json) -> (Vec<(&'a String, &'a Json)>, Vec<&'a str>) {
    let mut all: Vec<_> = node["properties"].as_object().into_iter().flatten().collect();
    let mut required: Vec<_> =
        node["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    if let Some(target) = node["$ref"].as_str() {
        let (more, needed) = properties(root, &root["$defs"][target.trim_start_matches("#/$defs/")]);
        all.extend(more);
        required.extend(needed);
    }
    (all, required)
}

/// The variants of a law's specification, by name: `{law = "xcp", ...}` and similar tables.
pub fn variants<'a>(root: &'a Json, name: &str) -> Vec<(&'a str, &'a Json)> {
    fn find<'a>(root: &'a Json, node: &'a Json, found: &mut Vec<(&'a str, &'a Json)>) {
        let (node, _) = resolve(root, node);
        for branch in ["anyOf", "oneOf"] {
            for child in node[branch].as_array().into_iter().flatten() {
                find(root, child, found);
            }
        }
        let tag = node["properties"].as_object().into_iter().flatten().find_map(|(_, p)| p["const"].as_str());
        found.extend(tag.map(|tag| (tag, node)));
    }
    let mut found = Vec::new();
    find(root, &root["$defs"][name], &mut found);
    found
}

impl Drawer<'_> {
    /// A value of `node`, which is the value of `key`; `None` if nothing is to be given.
    pub fn value(&mut self, node: &Json, key: &str) -> Option<Value> {
        let default = node.get("default").cloned().unwrap_or(Json::Null);
        let (node, name) = resolve(self.root, node);
        if let Some(value) = self.quantity(name, key, &default) {
            return Some(value);
        }
        if let Some(value) = node["const"].as_str() {
            return Some(value.into());
        }
        if let Some(names) = node["enum"].as_array() {
            return self.dice.pick(names).as_str().map(Value::from);
        }
        for branch in ["anyOf", "oneOf"] {
            if let Some(all) = node[branch].as_array() {
                let all: Vec<_> = all.iter().filter(|n| n["type"] != "null").collect();
                let chosen = *self.dice.pick(&all);
                return self.value(chosen, key);
            }
        }
        let kinds: Vec<&str> = match &node["type"] {
            Json::String(kind) => vec![kind],
            Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).filter(|k| *k != "null").collect(),
            _ => vec![],
        };
        match kinds.first().copied()? {
            "object" => Some(Value::Table(self.object(node, Table::new(), &[]))),
            "array" => {
                let n = 1 + self.dice.below(4);
                let item = &node["items"];
                Some(Value::Array((0..n).filter_map(|_| self.value(item, key)).collect()))
            }
            "boolean" => Some(self.dice.chance(0.5).into()),
            "integer" => Some(self.integer(&default).into()),
            "number" => Some(self.number(&default).into()),
            _ => Some("word".into()),
        }
    }

    /// A table of `node`: `given` stays as it is, `left_out` is not drawn.
    pub fn object(&mut self, node: &Json, given: Table, left_out: &[&str]) -> Table {
        let mut table = given;
        let (all, required) = properties(self.root, node);
        for (key, property) in all {
            if table.contains_key(key) || left_out.contains(&key.as_str()) {
                continue;
            }
            if required.contains(&key.as_str()) || self.dice.chance(self.optional) {
                if let Some(value) = self.value(property, key) {
                    table.insert(key.clone(), value);
                }
            }
        }
        table
    }

    /// The specification called `variant` of those of `name`, with some of its parameters.
    pub fn variant(&mut self, name: &str, variant: &str) -> Value {
        let node = variants(self.root, name).into_iter().find(|(n, _)| *n == variant);
        let Some((_, node)) = node else { return variant.into() };
        let table = self.object(node, Table::new(), &[]);
        if table.len() == 1 { variant.into() } else { Value::Table(table) }
    }

    fn integer(&mut self, default: &Json) -> i64 {
        if self.dice.chance(EXTREME) {
            return *self.dice.pick(&[0, -1, 1, i64::from(u32::MAX), i64::MAX]);
        }
        let around = default.as_f64().unwrap_or(10.0).max(1.0);
        self.dice.magnitude(around / 30.0, around * 10.0) as i64
    }

    fn number(&mut self, default: &Json) -> f64 {
        if self.dice.chance(EXTREME) {
            return *self.dice.pick(&[0.0, -1.0, 1e-300, 1e300, f64::INFINITY, f64::NAN]);
        }
        let around = default.as_f64().filter(|d| *d > 0.0).unwrap_or(1.0);
        let spread = if self.dice.chance(0.8) { 3.0 } else { 1000.0 };
        round(self.dice.magnitude(around / spread, around * spread))
    }

    /// A quantity with its unit, if the schema calls it one.
    fn quantity(&mut self, name: &str, key: &str, default: &Json) -> Option<Value> {
        let Scale { rate, rtt, duration, packet } = self.scale;
        let extreme = self.dice.chance(EXTREME);
        let default = default.as_str();
        let text = match name {
            "Time" if extreme => (*self.dice.pick(&["0s", "1ps", "1ns", "213d", "5000h"])).to_owned(),
            "Time" => {
                let spread = if self.dice.chance(0.8) { 3.0 } else { 1000.0 };
                seconds(match (default.and_then(parse_seconds), key) {
                    (_, "warmup" | "start") => duration * self.dice.within(0.0, 0.5),
                    (_, "spread" | "every") => duration * self.dice.magnitude(0.003, 0.3),
                    (_, "stop") => duration * self.dice.within(0.5, 1.1),
                    // The origin of a law's constants: their defaults, or the network that they serve.
                    (Some(default), _) if default > 0.0 && self.dice.chance(0.5) => {
                        default * self.dice.magnitude(1.0 / spread, spread)
                    }
                    _ => rtt * self.dice.magnitude(1.0 / spread, spread),
                })
            }
            "Rate" if extreme => (*self.dice.pick(&["0bps", "1bps", "100Tbps", "101Tbps"])).to_owned(),
            "Rate" => bits_per_second(rate * self.dice.magnitude(0.1, 10.0)),
            "Bytes" if extreme => (*self.dice.pick(&["0B", "1B", "65535B", "65536B", "1GB"])).to_owned(),
            "Bytes" => {
                let around = default.and_then(parse_bytes).unwrap_or(packet * 10.0);
                bytes(around * self.dice.magnitude(0.1, 10.0))
            }
            "Ratio" if extreme => (*self.dice.pick(&["0", "1", "-1", "1e9"])).to_owned(),
            "Ratio" => match default.and_then(|d| d.parse::<f64>().ok()).filter(|_| self.dice.chance(0.5)) {
                Some(default) => format!("{}", round(default * self.dice.magnitude(0.5, 2.0))),
                None => format!("{}", round(self.dice.0.uniform())),
            },
            "Buffer" => match self.dice.below(4) {
                0 => format!("{}BDP", round(self.dice.magnitude(0.01, 10.0))),
                1 => format!("{}pkt", self.dice.pick(&[0, 1, 1, 2, 3, 10, 100, 1000])),
                2 => bytes(packet * self.dice.magnitude(0.5, 500.0)),
                _ => seconds(rtt * self.dice.magnitude(0.01, 10.0)),
            },
            _ => return None,
        };
        Some(text.into())
    }
}

/// To three digits, so that a printed scenario can be read.
pub fn round(v: f64) -> f64 {
    format!("{v:.2e}").parse().unwrap_or(v)
}

pub fn seconds(s: f64) -> String {
    match round(s * 1e12) {
        ps if ps < 1e6 => format!("{}ps", ps.round()),
        ps if ps < 1e12 => format!("{}us", ps / 1e6),
        ps => format!("{}s", ps / 1e12),
    }
}

pub fn bits_per_second(bps: f64) -> String {
    match round(bps) {
        bps if bps < 1e6 => format!("{bps}bps"),
        bps => format!("{}Mbps", bps / 1e6),
    }
}

pub fn bytes(b: f64) -> String {
    format!("{}B", round(b).round().max(1.0))
}

fn parse_seconds(text: &str) -> Option<f64> {
    text.parse::<flowstamp_laws::Time>().ok().map(flowstamp_laws::Time::as_secs_f64)
}

fn parse_bytes(text: &str) -> Option<f64> {
    text.parse::<flowstamp_laws::Bytes>().ok().map(flowstamp_laws::Bytes::as_f64)
}

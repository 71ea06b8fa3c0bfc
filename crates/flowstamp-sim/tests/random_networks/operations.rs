//! Incasts of a given size, collective operations, and lists in HPCC's format, in the place of some groups of flows
//! between hosts.

use super::draw::put;
use super::schema::{Dice, Scale, bytes, seconds};
use flowstamp_sim::random::Stream;
use toml::{Table, Value};

/// A list in the format of HPCC's simulator, between the first two hosts.
pub const LIST: &str = "hpcc.txt";

/// Keys that contradict operations.
const BESIDE: [&str; 13] = [
    "web",
    "list",
    "ignore_columns",
    "count",
    "size",
    "rate",
    "application",
    "lifetime",
    "lifetime_spread",
    "every",
    "to",
    "start",
    "rtt",
];

/// Lets some groups that have a pattern carry out operations, by dice of their own: a network is what it would be
/// without.
pub fn operate(tree: &mut Table, nodes: &[String], seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random operations"));
    let hosts: Vec<&String> = nodes.iter().filter(|name| name.starts_with('h')).collect();
    let groups = tree.get_mut("flows").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten().filter_map(Value::as_table_mut) {
        let law = group.get("law").map(Value::to_string).unwrap_or_default();
        if !group.contains_key("pattern") || law.contains("udp") || dice.chance(0.4) {
            continue;
        }
        if !dice.chance(0.02) {
            BESIDE.iter().for_each(|key| drop(group.remove(*key)));
        }
        if dice.chance(0.3) && hosts.len() > 2 {
            let first = dice.below(hosts.len() - 1);
            let some: Vec<Value> = hosts[first..].iter().map(|name| name.as_str().into()).collect();
            put(group, "hosts", some);
        }
        let size = bytes((scale.packet * dice.magnitude(0.1, 300.0)).max(200.0));
        match dice.below(4) {
            3 => {
                ["pattern", "hosts", "spread", "each_hop"].iter().for_each(|key| drop(group.remove(*key)));
                put(group, "list", LIST);
            }
            0 => {
                put(group, "pattern", "incast");
                let mut t = Table::new();
                put(&mut t, "total", size);
                if dice.chance(0.5) {
                    put(&mut t, "senders", 1 + dice.below(3) as i64);
                }
                if dice.chance(0.7) {
                    put(&mut t, "every", seconds(scale.duration * dice.magnitude(0.02, 2.0)));
                }
                put(&mut t, "random_receiver", dice.chance(0.5));
                group.insert("incast".to_owned(), Value::Table(t));
            }
            kind => {
                put(group, "pattern", if kind == 1 { "all-to-all" } else { "ring-all-reduce" });
                put(group, "size", size);
                if dice.chance(0.5) {
                    put(group, "count", 2 + dice.below(3) as i64);
                }
                if dice.chance(0.5) {
                    let mut t = Table::new();
                    put(&mut t, "operations", 1 + dice.below(5) as i64);
                    put(&mut t, "gap", seconds(scale.rtt * dice.magnitude(0.01, 10.0)));
                    group.insert("collective".to_owned(), Value::Table(t));
                }
            }
        }
    }
}

//! Priority flow control in some of the networks.

use super::draw::{Registry, mend, put};
use super::schema::{Dice, Scale, bits_per_second, bytes};
use flowstamp_laws::pfc;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_sim::random::Stream;
use flowstamp_sim::{Format, load};
use toml::{Table, Value};

/// Gives links of half of the networks flow control, by dice of their own: a network is what it would be without.
pub fn pause(registry: &Registry, tree: &mut Table, seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random pauses"));
    if !dice.chance(0.5) {
        return;
    }
    let before = tree.clone();
    let mtu = ["packet", "ack"].into_iter().filter_map(|key| tree.get(key)?.as_str()?.parse::<Bytes>().ok());
    let mtu = mtu.map(Bytes::get).max().unwrap_or_default();
    for kind in ["leaf_spine", "fat_tree"] {
        if let Some(links) = tree.get_mut(kind).and_then(Value::as_table_mut) {
            control(links, &mut dice, scale, mtu);
        }
    }
    let links = tree.get_mut("graph").and_then(|g| g.get_mut("links")).and_then(Value::as_array_mut);
    for link in links.into_iter().flatten().filter_map(Value::as_table_mut) {
        if dice.chance(0.8) {
            control(link, &mut dice, scale, mtu);
        }
    }
    if dice.chance(0.9) {
        // Mostly not what is refused: links that fail, and hosts whose own links cannot be paused.
        tree.remove("outages");
        for group in groups(tree) {
            group.remove("access");
            group.remove("rtt");
        }
    }
    if dice.chance(0.8) {
        congest(tree, &mut dice, scale);
    }
    let fails = |tree: &Table| {
        let text = toml::to_string(tree).unwrap_or_default();
        load(&text, Format::Toml, "random.toml", &[], &super::folder()).is_err()
    };
    if fails(tree) && dice.chance(0.9) {
        mend(registry, tree);
        if fails(tree) {
            *tree = before;
        }
    }
}

fn groups(tree: &mut Table) -> impl Iterator<Item = &mut Table> {
    let groups = tree.get_mut("flows").and_then(Value::as_array_mut);
    groups.into_iter().flatten().filter_map(Value::as_table_mut)
}

/// Makes several endless flows of most groups, which go to one node over several links.
fn congest(tree: &mut Table, dice: &mut Dice, scale: Scale) {
    let links = tree.get("graph").and_then(|graph| graph.get("links")).and_then(Value::as_array);
    let nodes = 1 + links.into_iter().flatten().filter_map(|link| node(link.get("to")?)).max().unwrap_or(0);
    let hosts = tree.contains_key("leaf_spine") || tree.contains_key("fat_tree");
    for group in groups(tree) {
        if ["web", "list", "application", "governs", "collective"].iter().any(|key| group.contains_key(*key))
        {
            continue;
        }
        for key in ["size", "lifetime", "lifetime_spread", "stop", "start"] {
            group.remove(key);
        }
        if group.get("law").is_some_and(|law| law.as_str() == Some("udp")) {
            put(group, "rate", bits_per_second(scale.rate * dice.within(0.1, 2.0)));
        } else if dice.chance(0.7) {
            let transport = group.entry("transport").or_insert_with(|| Value::Table(Table::new()));
            if let Some(transport) = transport.as_table_mut() {
                put(transport, "initial_window", 10 + dice.below(90) as i64);
            }
        }
        if hosts && dice.chance(0.7) {
            for key in ["from", "to", "count", "incast", "hosts"] {
                group.remove(key);
            }
            put(group, "pattern", "incast");
            continue;
        }
        if !group.contains_key("pattern") {
            put(group, "count", 2 + dice.below(7) as i64);
            if nodes > 2 {
                // A chain leads to the first node from all others.
                put(group, "from", format!("n{}", nodes - 1 - dice.below(nodes - 2)));
                put(group, "to", "n0");
            }
        }
    }
}

/// The number in the name of a node.
fn node(name: &Value) -> Option<usize> {
    name.as_str()?.strip_prefix('n')?.parse().ok()
}

/// Gives a link flow control. Mostly takes away what cannot be together with it.
fn control(link: &mut Table, dice: &mut Dice, scale: Scale, mtu: u64) {
    let mut thresholds = Table::new();
    for key in ["xoff", "xon", "headroom"] {
        if dice.chance(0.2) {
            put(&mut thresholds, key, bytes((scale.packet * dice.magnitude(0.1, 100.0)).ceil()));
        }
    }
    let by_default = thresholds.is_empty() && dice.chance(0.7);
    put(link, "pfc", if by_default { Value::Boolean(true) } else { Value::Table(thresholds) });
    if dice.chance(0.95) {
        for key in ["share", "priority", "impairments", "medium"] {
            link.remove(key);
        }
        put(link, "queue", *dice.pick(&["droptail", "red"]));
        if link.get("rate").is_some_and(Value::is_table) {
            put(link, "rate", bits_per_second(scale.rate));
        }
        // Room for the headroom and some packets.
        let text = |key: &str| link.get(key).and_then(Value::as_str).unwrap_or_default();
        let rate = text("rate").parse::<Rate>().unwrap_or_default();
        let delay = text("delay").parse::<Time>().unwrap_or_default();
        let headroom = pfc::headroom(rate, rate, delay, delay, mtu) as f64;
        put(link, "buffer", bytes((headroom + scale.packet * dice.within(1.0, 8.0)).ceil()));
    }
}

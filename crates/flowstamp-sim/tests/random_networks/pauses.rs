//! Priority flow control in some of the networks.

use super::draw::put;
use super::schema::{Dice, Scale, bytes};
use flowstamp_sim::random::Stream;
use flowstamp_sim::{Format, load};
use toml::{Table, Value};

/// Gives links of a third of the networks flow control, by dice of their own: a network is what it would be without.
pub fn pause(tree: &mut Table, seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random pauses"));
    if !dice.chance(0.35) {
        return;
    }
    let before = tree.clone();
    for kind in ["leaf_spine", "fat_tree"] {
        if let Some(links) = tree.get_mut(kind).and_then(Value::as_table_mut) {
            control(links, &mut dice, scale);
        }
    }
    let links = tree.get_mut("graph").and_then(|g| g.get_mut("links")).and_then(Value::as_array_mut);
    for link in links.into_iter().flatten().filter_map(Value::as_table_mut) {
        if dice.chance(0.7) {
            control(link, &mut dice, scale);
        }
    }
    if dice.chance(0.9) {
        // Mostly not what is refused: links that fail, and hosts whose own links cannot be paused.
        tree.remove("outages");
        for group in tree.get_mut("flows").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(group) = group.as_table_mut() {
                group.remove("access");
                group.remove("rtt");
            }
        }
    }
    let text = toml::to_string(tree).unwrap_or_default();
    if load(&text, Format::Toml, "random.toml", &[], &super::folder()).is_err() && dice.chance(0.9) {
        *tree = before;
    }
}

/// Gives a link flow control. Mostly takes away what cannot be together with it.
fn control(link: &mut Table, dice: &mut Dice, scale: Scale) {
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
            put(link, "rate", super::schema::bits_per_second(scale.rate));
        }
        // Room for the headroom and some packets.
        let flight = scale.rate / 8.0 * scale.rtt;
        put(link, "buffer", bytes((flight + scale.packet * dice.magnitude(4.0, 100.0)).ceil()));
    }
}

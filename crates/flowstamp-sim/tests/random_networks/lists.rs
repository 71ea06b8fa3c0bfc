//! Flows that files list, in the place of some that arrive at random.

use super::draw::put;
use super::schema::{Dice, Scale, seconds};
use flowstamp_sim::random::Stream;
use toml::{Table, Value};

/// The files, in the folder of [`super::folder`]. `pairs.csv` names nodes of parking lots and graphs; its rows
/// without a start are not to `n0`, those without an end not from the last node.
pub const LISTS: [&str; 3] = ["burst.csv", "spread.csv", "pairs.csv"];

/// Lists flows between `nodes` of some groups that arrive at random, by dice of their own: a network is what it would be without.
pub fn list(tree: &mut Table, nodes: &[String], seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random lists"));
    let graph = !tree.contains_key("dumbbell") && !tree.contains_key("parking_lot");
    let named = ["n0", "n1", "n2"].iter().all(|name| nodes.iter().any(|node| node == name));
    let lists = if named { LISTS.len() } else { LISTS.len() - 1 };
    let groups = tree.get_mut("flows").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten().filter_map(Value::as_table_mut) {
        if !group.contains_key("web") || dice.chance(0.5) {
            continue;
        }
        group.remove("web");
        group.remove("each_hop");
        group.remove("spread");
        let file = LISTS[dice.below(lists)];
        put(group, "list", file);
        if graph {
            put(group, "from", nodes[0].clone());
            put(group, "to", nodes[nodes.len() - 1].clone());
        }
        if dice.chance(0.3) {
            put(group, "start", seconds(scale.duration * dice.magnitude(1e-4, 1.0)));
        }
        if dice.chance(0.2) {
            put(group, "stop", seconds(scale.duration * dice.magnitude(1e-2, 1.0)));
        }
        if dice.chance(0.02) {
            put(group, "size", "1kB");
        }
    }
}

//! Flows that files list, in the place of some that arrive at random.

use super::draw::put;
use super::schema::{Dice, Scale, seconds};
use flowstamp_sim::random::Stream;
use toml::{Table, Value};

/// The files, in the folder of [`super::folder`]. `pairs.csv` names the nodes of parking lots and graphs.
pub const LISTS: [&str; 3] = ["burst.csv", "spread.csv", "pairs.csv"];

/// Lists flows of some groups that arrive at random, by dice of their own: a network is what it would be without.
pub fn list(tree: &mut Table, seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random lists"));
    let nodes = if tree.contains_key("dumbbell") { 2 } else { 3 };
    let groups = tree.get_mut("flows").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten().filter_map(Value::as_table_mut) {
        if !group.contains_key("web") || dice.chance(0.5) {
            continue;
        }
        group.remove("web");
        group.remove("each_hop");
        group.remove("spread");
        put(group, "list", LISTS[dice.below(nodes)]);
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

//! Links that lose, copy, hold back and lead elsewhere, in some of the networks.

use super::draw::put;
use super::schema::{Dice, Scale, round, seconds};
use flowstamp_sim::random::Stream;
use toml::{Table, Value};

/// Impairs some links of a fifth of the networks, by dice of their own: a network is what it would be without.
pub fn impair(tree: &mut Table, seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random impairments"));
    if !dice.chance(0.2) {
        return;
    }
    for (kind, keys) in
        [("dumbbell", &["impairments", "reverse_impairments"][..]), ("parking_lot", &["impairments"])]
    {
        if let Some(link) = tree.get_mut(kind).and_then(Value::as_table_mut) {
            for (i, key) in keys.iter().enumerate() {
                if i == 0 || dice.chance(0.3) {
                    link.insert((*key).to_owned(), impairments(&mut dice, scale));
                }
            }
        }
    }
    let links = tree.get_mut("graph").and_then(|g| g.get_mut("links")).and_then(Value::as_array_mut);
    for link in links.into_iter().flatten().filter_map(Value::as_table_mut) {
        if dice.chance(0.5) {
            link.insert("impairments".to_owned(), impairments(&mut dice, scale));
        }
    }
}

fn impairments(dice: &mut Dice, scale: Scale) -> Value {
    let mut t = Table::new();
    let some = |dice: &mut Dice| match dice.below(20) {
        0 => 1.0,
        1 => 0.0,
        _ => round(dice.magnitude(1e-4, 0.5)),
    };
    for key in ["loss", "duplicate", "reorder"] {
        if dice.chance(0.5) {
            let share = if dice.chance(0.005) { 1.5 } else { some(dice) };
            put(&mut t, key, share);
        }
    }
    if t.contains_key("reorder") && !dice.chance(0.01) {
        put(&mut t, "reorder_delay", seconds(scale.rtt * dice.magnitude(1e-3, 3.0)));
    }
    if dice.chance(0.5) {
        let n = 1 + dice.below(3);
        let mut times: Vec<_> = (0..2 * n).map(|_| dice.within(0.0, scale.duration)).collect();
        if !dice.chance(0.02) {
            times.sort_by(f64::total_cmp);
        }
        let detour = |i: usize| {
            let mut t = Table::new();
            put(&mut t, "from", seconds(times[2 * i]));
            if i + 1 < n || dice.chance(0.8) {
                put(&mut t, "until", seconds(times[2 * i + 1]));
            }
            put(&mut t, "delay", seconds(scale.rtt * dice.magnitude(1e-3, 3.0)));
            Value::Table(t)
        };
        let detours: Vec<_> = (0..n).map(detour).collect();
        put(&mut t, "detours", detours);
    }
    Value::Table(t)
}

//! Links that lose, copy, hold back and lead elsewhere, in some of the networks.

use super::draw::put;
use super::schema::{Dice, Scale, round, seconds};
use flowstamp_sim::random::Stream;
use flowstamp_sim::{Format, load};
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

/// Lets some links of a fifth of the networks fail and return, by dice of their own.
pub fn fail(tree: &mut Table, links: &[String], seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random outages"));
    if !dice.chance(0.2) {
        return;
    }
    let mut names: Vec<String> = links.to_vec();
    if tree.contains_key("leaf_spine") {
        names.extend(["leaf0->spine0", "spine0->leaf0", "leaf0->h0"].map(str::to_owned));
    }
    if tree.contains_key("fat_tree") {
        names.extend(["pod0-edge0->pod0-agg0", "core0->pod0-agg0"].map(str::to_owned));
    }
    if dice.chance(0.02) || names.is_empty() {
        names.push("nowhere".to_owned());
    }
    let outage = |dice: &mut Dice| {
        let mut t = Table::new();
        put(&mut t, "link", dice.pick(&names).clone());
        let mut times = [0; 2].map(|_| dice.within(0.0, scale.duration));
        if !dice.chance(0.02) {
            times.sort_by(f64::total_cmp);
        }
        put(&mut t, "from", if dice.chance(0.1) { "0s".to_owned() } else { seconds(times[0]) });
        if dice.chance(0.8) {
            put(&mut t, "until", seconds(times[1]));
        }
        if dice.chance(0.3) {
            put(&mut t, "both_ways", dice.chance(0.5));
        }
        if dice.chance(0.4) {
            put(&mut t, "on_failure", *dice.pick(&["hold", "lose"]));
        }
        Value::Table(t)
    };
    let n = if dice.chance(0.8) { 1 } else { 1 + dice.below(4) };
    let outages: Vec<_> = (0..n).map(|_| outage(&mut dice)).collect();
    put(tree, "outages", outages);
    // Mostly not what is refused: a trace that would hold, a way without the routers that flows obey.
    let text = toml::to_string(tree).unwrap_or_default();
    let refused = load(&text, Format::Toml, "random.toml", &[], &super::folder()).is_err();
    if refused && dice.chance(0.9) {
        tree.remove("outages");
        return;
    }
    if dice.chance(0.5) {
        let mut routing = Table::new();
        put(&mut routing, "reroute", dice.chance(0.7));
        put(&mut routing, "convergence", seconds(scale.rtt * dice.magnitude(1e-2, 10.0)));
        put(tree, "routing", routing);
    }
}

/// Balances packets over equal paths in a third of the networks, by dice of their own.
pub fn balance(tree: &mut Table, seed: u64, scale: Scale) {
    let mut dice = Dice(Stream::new(seed, "random balance"));
    if !dice.chance(0.35) {
        return;
    }
    let routing = tree.entry("routing").or_insert_with(|| Value::Table(Table::new()));
    let Some(routing) = routing.as_table_mut() else { return };
    put(routing, "balance", *dice.pick(&["spray", "flowlet", "ecmp"]));
    if dice.chance(0.7) {
        put(routing, "flowlet_gap", seconds(scale.rtt * dice.magnitude(1e-3, 10.0)));
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
    // By dice of their own: other seeds are what they would be without.
    let next = Dice(dice.0.clone()).below(1 << 30);
    let mut more = Dice(Stream::new(next as u64, "more impairments"));
    losses(&mut more, &mut t);
    delays(&mut more, &mut t, scale);
    Value::Table(t)
}

/// Losses in bursts and by a list, and marks.
fn losses(dice: &mut Dice, t: &mut Table) {
    if dice.chance(0.3) {
        let mut burst = Table::new();
        put(&mut burst, "p", round(dice.magnitude(1e-4, 1.0)));
        put(&mut burst, "r", if dice.chance(0.01) { 0.0 } else { round(dice.magnitude(1e-3, 1.0)) });
        for key in ["bad", "good"] {
            if dice.chance(0.5) {
                put(&mut burst, key, round(dice.magnitude(1e-3, 1.0)));
            }
        }
        put(t, "burst_loss", burst);
    }
    if dice.chance(0.3) {
        let n = 1 + dice.below(20);
        let first = i64::from(!dice.chance(0.01));
        let packets: Vec<Value> = (0..n).map(|_| (first + dice.below(1000) as i64).into()).collect();
        put(t, "lost_packets", packets);
    }
    if dice.chance(0.3) {
        put(t, "mark", round(dice.magnitude(1e-4, 1.0)));
    }
    if dice.chance(0.2) {
        put(t, "ecn", true);
    }
}

/// Delays of packets' own.
fn delays(dice: &mut Dice, t: &mut Table, scale: Scale) {
    if dice.chance(0.3) {
        let mut jitter = Table::new();
        let kind = *dice.pick(&["uniform", "normal", "pareto"]);
        put(&mut jitter, "distribution", kind);
        let size = seconds(scale.rtt * dice.magnitude(1e-4, 0.03));
        put(&mut jitter, if kind == "uniform" { "spread" } else { "deviation" }, size);
        if kind == "pareto" && dice.chance(0.5) {
            put(&mut jitter, "shape", round(dice.magnitude(2.05, 20.0)));
        }
        put(t, "jitter", jitter);
    }
    if dice.chance(0.3) {
        let mut delays = Table::new();
        if dice.chance(0.3) {
            put(&mut delays, "trace", "leo.delay");
        } else {
            let n = 1 + dice.below(4);
            let step = |i: usize| {
                let at = if i == 0 { 0.0 } else { scale.duration * i as f64 / n as f64 };
                Value::Array(vec![seconds(at).into(), seconds(scale.rtt * dice.magnitude(1e-3, 3.0)).into()])
            };
            let steps: Vec<_> = (0..n).map(step).collect();
            put(&mut delays, "steps", steps);
        }
        if dice.chance(0.5) {
            put(&mut delays, "interpolate", true);
        }
        put(t, "delays", delays);
    }
    if dice.chance(0.3) && (!t.contains_key("reorder") || dice.chance(0.02)) {
        put(t, "keep_order", true);
    }
}

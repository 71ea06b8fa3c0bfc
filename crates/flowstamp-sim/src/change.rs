//! What may change in mid-run.
//!
//! A change goes through the scenario: the value is put there, the whole is checked and laid out anew, and where the
//! network differs from the one before, the running one follows. So a value is right or wrong as it would be in a file.

use crate::ScenarioError;
use crate::fabric::Fabric;
use crate::host::Hosts;
use crate::load;
use crate::medium::Capacity;
use crate::network::{Medium, Network};
use crate::scenario::{LinkRate, Loaded, Scenario, parts};
use flowstamp_laws::units::Time;

/// Puts `text` under `key` from now on; returns the scenario with it.
///
/// # Errors
/// One line for a key that cannot change, or a value that cannot be; nothing has changed then.
pub fn apply(
    net: &mut Fabric,
    hosts: &mut Hosts,
    loaded: &Loaded,
    key: &str,
    text: &str,
) -> Result<Loaded, ScenarioError> {
    let refused = |message: String| Err(ScenarioError::new(key, message));
    let parts = parts(key)?;
    let what = match parts.as_slice() {
        ["dumbbell", "rate" | "reverse_rate"]
        | ["parking_lot", "rates"]
        | ["parking_lot", "rates", _]
        | ["leaf_spine", "rate" | "spine_rate"]
        | ["fat_tree", "rate"]
        | ["graph", "links", _, "rate"] => What::Rate,
        ["wireless", _, "stations", _, "rate"] => What::StationRate,
        ["dumbbell" | "parking_lot" | "leaf_spine" | "fat_tree", "router", parameter]
        | ["graph", "links", _, "router", parameter]
        | ["wireless", _, "router", parameter]
        | ["wireless", _, "stations", _, "router", parameter]
            if *parameter != "law" =>
        {
            What::Router(parameter)
        }
        ["dumbbell", "rtt" | "delay"]
        | ["parking_lot", "delay" | "access_delay"]
        | ["graph", "links", _, "delay"]
        | ["flows", _, "rtt"]
        | ["flows", _, "rtt", _] => What::Delay,
        ["dumbbell" | "parking_lot", "buffer"] | ["graph", "links", _, "buffer"] => What::Buffer,
        ["flows", _, "start"] | ["flows", _, "start", _] => What::Start,
        ["flows", _, "stop"] => What::Stop,
        ["flows", _, "law", parameter] if *parameter != "law" => What::Sender,
        _ => {
            return refused(
                "cannot change in mid-run; a link's rate, delay and buffer, a station's data rate, a parameter of a router law, the window and rate of a sender that is told, and the start and stop of flows can"
                    .to_owned(),
            );
        }
    };
    let scenario = &loaded.scenario;
    let absent = match parts[0] {
        "dumbbell" => scenario.dumbbell.is_none(),
        "parking_lot" => scenario.parking_lot.is_none(),
        "leaf_spine" => scenario.leaf_spine.is_none(),
        "fat_tree" => scenario.fat_tree.is_none(),
        "graph" => scenario.graph.is_none(),
        "wireless" => scenario.wireless.is_empty(),
        _ => false,
    };
    if absent {
        return refused(format!("the scenario has no {}", parts[0]));
    }
    // What a law that is not told calls its parameters is beside the point.
    let flows = || scenario.flows.iter().enumerate();
    let named = flows().find(|(number, group)| group.name == parts[1] || parts[1].parse() == Ok(*number));
    if let (What::Sender, Some((_, group))) = (&what, named) {
        if !group.law.told() {
            return refused(format!(
                "cannot change in mid-run: {} sets its window itself; law = \"told\" is a sender that is told",
                group.law.name()
            ));
        }
    }
    let before = Network::new(loaded, loaded.scenario.seed)?;
    let changed = load::with(loaded, key, text)?;
    let after = Network::new(&changed, changed.scenario.seed)?;
    match what {
        What::Rate => {
            let links = before.links.iter().zip(&after.links).enumerate();
            let mut rates = Vec::new();
            for (number, (old, new)) in links.filter(|(_, (old, new))| old.capacity != new.capacity) {
                if !old.told {
                    return refused(format!(
                        "cannot change in mid-run: nobody knows the rate of {}",
                        new.name
                    ));
                }
                match (&old.capacity, &new.capacity) {
                    _ if new.holds => {
                        let name = &new.name;
                        return refused(format!(
                            "cannot change in mid-run: {name} has outages that hold its packets"
                        ));
                    }
                    _ if new.medium.is_shared() => {
                        return refused(format!("cannot change in mid-run: {} shares its medium", new.name));
                    }
                    (Capacity::Trace(..), _) => {
                        return refused(format!("cannot change in mid-run: {} follows a trace", new.name));
                    }
                    (_, Capacity::Constant(rate)) => rates.push((number, *rate)),
                    _ => return refused("must be a rate such as \"45Mbps\" in mid-run".to_owned()),
                }
            }
            for (number, rate) in rates {
                net.set_rate(number, rate);
            }
        }
        What::StationRate => {
            let of = |s: &Scenario| s.wireless.iter().flat_map(|c| c.stations.clone()).collect::<Vec<_>>();
            let mut changes =
                of(scenario).into_iter().zip(of(&changed.scenario)).filter(|(old, new)| old != new);
            if changes.any(|(_, new)| !matches!(new.rate, LinkRate::Constant(_))) {
                return refused("must be a rate such as \"11Mbps\" in mid-run".to_owned());
            }
            for (number, (old, new)) in before.cells.iter().zip(&after.cells).enumerate() {
                for (station, (old, new)) in old.stations.iter().zip(&new.stations).enumerate() {
                    let differs = (old.params.rate, &old.rates) != (new.params.rate, &new.rates);
                    if let (true, Some(rate)) = (differs, new.params.rate) {
                        net.set_station_rate(number as u32, station as u32, rate);
                    }
                }
            }
            for (number, link) in after.links.iter().enumerate().filter(|(_, link)| !link.told) {
                if let (Medium::Cell { .. }, Capacity::Constant(rate)) = (link.medium, &link.capacity) {
                    net.raise_capacity(number, *rate);
                }
            }
        }
        What::Router(parameter) => {
            let differ = |number: &usize| before.links[*number].router != after.links[*number].router;
            let numbers: Vec<usize> = (0..after.links.len()).filter(differ).collect();
            for number in &numbers {
                let law = net.laws_mut(*number).router.as_ref();
                if law.is_some_and(|law| law.begins_with().contains(&parameter)) {
                    return refused("is what the law begins with; it means nothing in mid-run".to_owned());
                }
            }
            for number in numbers {
                net.advance(number); // what left before was stamped before
                if let Some(law) = &mut net.laws_mut(number).router {
                    law.set_params(&after.links[number].router);
                }
            }
        }
        What::Sender => {
            let differ = |number: &usize| before.groups[*number].laws != after.groups[*number].laws;
            let mut changes = Vec::new();
            for number in (0..after.groups.len()).filter(differ) {
                match after.groups[number].laws.as_slice() {
                    [law] => changes.push((number, law)),
                    _ => return refused("cannot change in mid-run: its list names several laws".to_owned()),
                }
            }
            for (number, law) in changes {
                hosts.set_law(net, number, law);
            }
        }
        What::Delay => {
            if before.routes != after.routes || before.reroutes != after.reroutes {
                return refused("cannot change in mid-run: packets would take other links".to_owned());
            }
            let mut moved: Vec<(usize, Time)> = Vec::new();
            for (number, (old, new)) in before.links.iter().zip(&after.links).enumerate() {
                if old.delay != new.delay && new.is_impaired() {
                    return refused(format!(
                        "cannot change in mid-run: {} has impairments or outages",
                        new.name
                    ));
                }
                if old.delay != new.delay {
                    moved.push((number, new.delay));
                }
            }
            let routers = before.links.len();
            for (number, (old, new)) in before.access.iter().zip(&after.access).enumerate() {
                if old.delay != new.delay {
                    moved.push((routers + number, new.delay));
                }
            }
            for (number, delay) in moved {
                net.set_delay(number, delay);
            }
        }
        What::Buffer => {
            // What runs may differ from what the scenario before says: a rate that changed has left the buffer's bytes as they were.
            let named = |number: usize, name: &str| {
                parts[0] != "graph" || parts[2] == name || parts[2].parse() == Ok(number)
            };
            for (number, (old, new)) in before.links.iter().zip(&after.links).enumerate() {
                let own = new.queue.shaper().and_then(|shaper| shaper.own_limit(changed.scenario.packet));
                if own.is_some() && named(number, &new.name) {
                    return refused(format!(
                        "cannot change: the shaper of {} says how much may wait",
                        new.name
                    ));
                }
                if old.limit != new.limit || named(number, &new.name) {
                    net.set_limit(number, new.limit);
                }
            }
        }
        What::Start => {
            if before.web.iter().zip(&after.web).any(|(old, new)| old.start != new.start) {
                return refused(
                    "cannot change in mid-run: these flows arrive at random, or as a file lists them"
                        .to_owned(),
                );
            }
            let mut starts = Vec::new();
            for (number, (old, new)) in before.flows.iter().zip(&after.flows).enumerate() {
                if old.start == new.start {
                    continue;
                }
                if old.start <= net.now {
                    return refused(format!("cannot change: a flow started at {}", old.start));
                }
                if new.start <= net.now {
                    return refused(format!("must be later than now, {}", net.now));
                }
                starts.push((number, new.start));
            }
            for (number, start) in starts {
                hosts.set_start(net, number, start);
            }
        }
        What::Stop => {
            let groups: Vec<usize> = (0..hosts.groups.len())
                .filter(|group| {
                    let spec = hosts.groups[*group].plan.spec;
                    loaded.scenario.flows[spec].stop != changed.scenario.flows[spec].stop
                })
                .collect();
            for group in &groups {
                let (old, stop) =
                    (hosts.groups[*group].stop, changed.scenario.flows[hosts.groups[*group].plan.spec].stop);
                if old <= net.now {
                    return refused(format!("cannot change: the flows stopped at {old}"));
                }
                if stop.is_none_or(|stop| stop <= net.now) {
                    return refused(format!("must be later than now, {}", net.now));
                }
            }
            for group in groups {
                let spec = hosts.groups[group].plan.spec;
                if let Some(stop) = changed.scenario.flows[spec].stop {
                    hosts.set_stop(net, group, stop);
                }
            }
        }
    }
    Ok(changed)
}

/// What a key is about.
enum What<'a> {
    Rate,
    StationRate,
    Router(&'a str),
    Sender,
    Delay,
    Buffer,
    Start,
    Stop,
}

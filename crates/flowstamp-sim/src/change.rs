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
        ["flows", _, "stop"] => What::Stop,
        _ => {
            return refused(
                "cannot change in mid-run; a link's rate, a station's data rate, a parameter of a router law and the stop of flows can"
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
    Stop,
}

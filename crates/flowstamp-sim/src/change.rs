//! Changes of a scenario during a run.
//!
//! A change goes through the scenario: the value is set there, and the scenario is checked and laid out anew. Where the
//! new network differs from the old one, the running network is updated. Therefore a value is valid or not as it would be in a
//! file.

use crate::ScenarioError;
use crate::fabric::Fabric;
use crate::host::Hosts;
use crate::load;
use crate::medium::Capacity;
use crate::plan::{Medium, Network};
use crate::scenario::{LinkRate, Loaded, Scenario, parts};
use flowstamp_laws::router::LinkChange;
use flowstamp_laws::units::Time;

/// A refused value: the message, without the key.
type Refused = Result<(), String>;

/// Sets `key` to `text` from now on and returns the changed scenario.
///
/// # Errors
/// One line for a key that cannot change, or for an invalid value. Nothing has changed then.
pub fn apply(
    net: &mut Fabric,
    hosts: &mut Hosts,
    loaded: &Loaded,
    key: &str,
    text: &str,
) -> Result<Loaded, ScenarioError> {
    let refused = |message: String| ScenarioError::new(key, message);
    let parts = parts(key)?;
    let what = What::of(&parts).map_err(refused)?;
    is_there(&loaded.scenario, &parts, &what).map_err(refused)?;
    let before = Network::new(loaded, loaded.scenario.seed)?;
    let changed = load::with(loaded, key, text)?;
    let after = Network::new(&changed, changed.scenario.seed)?;
    let (old, new) = (&loaded.scenario, &changed.scenario);
    let change = Change { before: &before, after: &after };
    match what {
        What::Rate => change.rates(net),
        What::StationRate => change.station_rates(net, old, new),
        What::Router(parameter) => change.routers(net, parameter),
        What::Sender => change.senders(net, hosts),
        What::Delay => change.delays(net),
        What::Buffer => change.buffers(net, new, &parts),
        What::Start => change.starts(net, hosts),
        What::Stop => stops(net, hosts, old, new),
    }
    .map_err(refused)?;
    Ok(changed)
}

/// The quantity that a key sets.
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

impl<'a> What<'a> {
    fn of(parts: &[&'a str]) -> Result<Self, String> {
        match parts {
            ["dumbbell", "rate" | "reverse_rate"]
            | ["parking_lot", "rates"]
            | ["parking_lot", "rates", _]
            | ["leaf_spine", "rate" | "spine_rate"]
            | ["fat_tree", "rate"]
            | ["graph", "links", _, "rate"] => Ok(Self::Rate),
            ["wireless", _, "stations", _, "rate"] => Ok(Self::StationRate),
            ["dumbbell" | "parking_lot" | "leaf_spine" | "fat_tree", "router", parameter]
            | ["graph", "links", _, "router", parameter]
            | ["wireless", _, "router", parameter]
            | ["wireless", _, "stations", _, "router", parameter]
                if *parameter != "law" =>
            {
                Ok(Self::Router(parameter))
            }
            ["dumbbell", "rtt" | "delay"]
            | ["parking_lot", "delay" | "access_delay"]
            | ["graph", "links", _, "delay"]
            | ["flows", _, "rtt"]
            | ["flows", _, "rtt", _] => Ok(Self::Delay),
            ["dumbbell" | "parking_lot", "buffer"] | ["graph", "links", _, "buffer"] => Ok(Self::Buffer),
            ["flows", _, "start"] | ["flows", _, "start", _] => Ok(Self::Start),
            ["flows", _, "stop"] => Ok(Self::Stop),
            ["flows", _, "law", parameter] if *parameter != "law" => Ok(Self::Sender),
            _ => Err(
                "cannot change in mid-run; a link's rate, delay and buffer, a station's data rate, a parameter of a router law, the window and rate of a sender that is told, and the start and stop of flows can"
                    .to_owned(),
            ),
        }
    }
}

/// Refuses a key that the scenario does not have, and a sender that sets its own window.
fn is_there(scenario: &Scenario, parts: &[&str], what: &What<'_>) -> Refused {
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
        return Err(format!("the scenario has no {}", parts[0]));
    }
    // The parameter names of a law that is not told do not matter here.
    let flows = || scenario.flows.iter().enumerate();
    let named = flows().find(|(number, group)| group.name == parts[1] || parts[1].parse() == Ok(*number));
    match (what, named) {
        (What::Sender, Some((_, group))) if !group.law.traits().told => Err(format!(
            "cannot change in mid-run: {} sets its window itself; law = \"told\" is a sender that is told",
            group.law.name()
        )),
        _ => Ok(()),
    }
}

/// The network before and after the change. Each kind of change is checked completely before it is applied.
struct Change<'a> {
    before: &'a Network,
    after: &'a Network,
}

impl Change<'_> {
    fn rates(&self, net: &mut Fabric) -> Refused {
        let links = self.before.links.iter().zip(&self.after.links).enumerate();
        let mut rates = Vec::new();
        for (number, (old, new)) in links.filter(|(_, (old, new))| old.capacity != new.capacity) {
            let name = &new.name;
            let refused = |why: String| Err(format!("cannot change in mid-run: {why}"));
            match (&old.capacity, &new.capacity) {
                _ if !old.told => return refused(format!("nobody knows the rate of {name}")),
                _ if new.is_held() => return refused(paused(name)),
                _ if new.holds => return refused(format!("{name} has outages that hold its packets")),
                _ if new.medium.is_shared() => return refused(format!("{name} shares its medium")),
                (Capacity::Trace(..), _) => return refused(format!("{name} follows a trace")),
                (_, Capacity::Constant(rate)) => rates.push((number, *rate)),
                _ => return Err("must be a rate such as \"45Mbps\" in mid-run".to_owned()),
            }
        }
        for (number, rate) in rates {
            net.set_rate(number, rate);
        }
        Ok(())
    }

    fn station_rates(&self, net: &mut Fabric, old: &Scenario, new: &Scenario) -> Refused {
        let of = |s: &Scenario| s.wireless.iter().flat_map(|c| c.stations.clone()).collect::<Vec<_>>();
        let mut changes = of(old).into_iter().zip(of(new)).filter(|(old, new)| old != new);
        if changes.any(|(_, new)| !matches!(new.rate, LinkRate::Constant(_))) {
            return Err("must be a rate such as \"11Mbps\" in mid-run".to_owned());
        }
        for (number, (old, new)) in self.before.cells.iter().zip(&self.after.cells).enumerate() {
            for (station, (old, new)) in old.stations.iter().zip(&new.stations).enumerate() {
                let differs = (old.params.rate, &old.rates) != (new.params.rate, &new.rates);
                if let (true, Some(rate)) = (differs, new.params.rate) {
                    net.set_station_rate(number as u32, station as u32, rate);
                }
            }
        }
        for (number, link) in self.after.links.iter().enumerate().filter(|(_, link)| !link.told) {
            if let (Medium::Cell { .. }, Capacity::Constant(rate)) = (link.medium, &link.capacity) {
                net.raise_capacity(number, *rate);
            }
        }
        Ok(())
    }

    fn routers(&self, net: &mut Fabric, parameter: &str) -> Refused {
        let (before, after) = (&self.before.links, &self.after.links);
        let differ = |number: &usize| before[*number].router != after[*number].router;
        let numbers: Vec<usize> = (0..after.len()).filter(differ).collect();
        for number in &numbers {
            if before[*number].router.traits().begins_with.contains(&parameter) {
                return Err("is what the law begins with; it means nothing in mid-run".to_owned());
            }
        }
        for number in numbers {
            net.advance(number); // packets that left earlier were stamped with the old parameters
            if let Some(law) = &mut net.laws_mut(number).router {
                law.on_change(LinkChange::Params(&after[number].router));
            }
        }
        Ok(())
    }

    fn senders(&self, net: &mut Fabric, hosts: &mut Hosts) -> Refused {
        let (before, after) = (&self.before.groups, &self.after.groups);
        let mut changes = Vec::new();
        for number in (0..after.len()).filter(|number| before[*number].laws != after[*number].laws) {
            match after[number].laws.as_slice() {
                [law] => changes.push((number, law)),
                _ => return Err("cannot change in mid-run: its list names several laws".to_owned()),
            }
        }
        for (number, law) in changes {
            hosts.set_law(net, number, law);
        }
        Ok(())
    }

    fn delays(&self, net: &mut Fabric) -> Refused {
        let (before, after) = (self.before, self.after);
        if before.routes != after.routes || before.reroutes != after.reroutes {
            return Err("cannot change in mid-run: packets would take other links".to_owned());
        }
        let mut moved: Vec<(usize, Time)> = Vec::new();
        for (number, (old, new)) in before.links.iter().zip(&after.links).enumerate() {
            if old.delay != new.delay && new.acts_at_its_end() {
                let what =
                    if new.is_impaired() { "impairments or outages" } else { "throughput advice (scone)" };
                return Err(format!("cannot change in mid-run: {} has {what}", new.name));
            }
            if old.delay != new.delay && new.is_held() {
                return Err(format!("cannot change in mid-run: {}", paused(&new.name)));
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
        Ok(())
    }

    fn buffers(&self, net: &mut Fabric, scenario: &Scenario, parts: &[&str]) -> Refused {
        // The running buffers may differ from those of the scenario before: a changed rate leaves the buffer's bytes as
        // they were.
        let named = |number: usize, name: &str| {
            parts[0] != "graph" || parts[2] == name || parts[2].parse() == Ok(number)
        };
        for (number, (old, new)) in self.before.links.iter().zip(&self.after.links).enumerate() {
            let own = new.queue.shaper().and_then(|shaper| shaper.own_limit(scenario.packet));
            if own.is_some() && named(number, &new.name) {
                return Err(format!("cannot change: the shaper of {} says how much may wait", new.name));
            }
            let changes = old.limit != new.limit || named(number, &new.name);
            if changes && new.is_held() {
                return Err(format!("cannot change in mid-run: {}", paused(&new.name)));
            }
            if changes {
                net.set_limit(number, new.limit);
            }
        }
        Ok(())
    }

    fn starts(&self, net: &mut Fabric, hosts: &mut Hosts) -> Refused {
        let (before, after) = (self.before, self.after);
        if before.arrivals.iter().zip(&after.arrivals).any(|(old, new)| old.start != new.start) {
            return Err(
                "cannot change in mid-run: these flows arrive at random, or as a file lists them".to_owned()
            );
        }
        let flows = before.flows.iter().zip(&after.flows).enumerate();
        let mut starts = Vec::new();
        for (number, (old, new)) in flows.filter(|(_, (old, new))| old.start != new.start) {
            if old.start <= net.now {
                return Err(format!("cannot change: a flow started at {}", old.start));
            }
            if new.start <= net.now {
                return Err(format!("must be later than now, {}", net.now));
            }
            starts.push((number, new.start));
        }
        for (number, start) in starts {
            hosts.set_start(net, number, start);
        }
        Ok(())
    }
}

/// Why rate, delay and buffer of a link with priority flow control stay.
fn paused(name: &str) -> String {
    format!("thresholds of priority flow control (pfc) follow from those of {name}")
}

fn stops(net: &mut Fabric, hosts: &mut Hosts, old: &Scenario, new: &Scenario) -> Refused {
    let mut changes = Vec::new();
    for (number, group) in hosts.groups.iter().enumerate() {
        let stop = new.flows[group.plan.spec].stop;
        if old.flows[group.plan.spec].stop == stop {
            continue;
        }
        if group.stop <= net.now {
            return Err(format!("cannot change: the flows stopped at {}", group.stop));
        }
        match stop.filter(|stop| *stop > net.now) {
            Some(stop) => changes.push((number, stop)),
            None => return Err(format!("must be later than now, {}", net.now)),
        }
    }
    for (number, stop) in changes {
        hosts.set_stop(net, number, stop);
    }
    Ok(())
}

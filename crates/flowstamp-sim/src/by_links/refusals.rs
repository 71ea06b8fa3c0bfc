//! Refuses scenarios that runs of single links cannot answer.

use crate::ScenarioError;
use crate::medium::Capacity;
use crate::plan::Network;
use crate::scenario::{Balance, FlowGroup, Scenario};

type Result = std::result::Result<(), ScenarioError>;

fn refused(key: impl Into<String>, message: &str) -> Result {
    Err(ScenarioError::new(key, message))
}

/// Refuses keys of a scenario that runs of single links cannot answer.
pub fn check_scenario(scenario: &Scenario) -> Result {
    let asked = [
        (
            "capture",
            scenario.capture.is_some(),
            "records packets along whole paths, and each link runs alone",
        ),
        (
            "probes.laws",
            scenario.probes.laws,
            "samples laws over time, and runs of single links have no time series",
        ),
        (
            "probes.flows",
            scenario.probes.flows,
            "samples flows over time, and runs of single links have no time series",
        ),
        ("outages", !scenario.outages.is_empty(), "change routes, and runs of single links need fixed ones"),
        (
            "routing.balance",
            scenario.routing.balance != Balance::Ecmp,
            "spreads a flow's packets over several paths, and runs of single links need one path",
        ),
        ("wireless", !scenario.wireless.is_empty(), "has cells, whose links cannot run alone"),
    ];
    for (key, is, why) in asked {
        if is {
            return refused(key, &format!("{why}; leave it out, or run without --by-links"));
        }
    }
    scenario.flows.iter().try_for_each(check_group)
}

fn check_group(group: &FlowGroup) -> Result {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    let sized = group.arrives() || group.size.is_some();
    let law = group.law.traits();
    let asked = [
        ("governs", group.governs.is_some() || law.governs, "sets the rate of a link that others cross"),
        ("pattern", group.is_collective(), "sends messages that wait for those of other hosts"),
        ("application", group.produces(), "produces data at its own pace, which is not the pace of a path"),
        ("law", law.datagrams, "sends datagrams, which have no completion time"),
        ("lifetime", group.lifetime.is_some(), "ends flows before their size"),
    ];
    for (k, is, why) in asked {
        if is {
            return refused(key(k), &format!("{why}; leave it out, or run without --by-links"));
        }
    }
    if sized {
        return Ok(());
    }
    refused(
        key("size"),
        "is missing; --by-links answers for flows that end, not for shares of endless flows over several links; \
         give size, web or list, or run without --by-links",
    )
}

/// Refuses links that runs of single links cannot answer for.
pub fn check_network(network: &Network) -> Result {
    for plan in &network.links {
        let asked = [
            ("medium", plan.medium.is_shared(), "is shared with other links"),
            ("rate", !matches!(plan.capacity, Capacity::Constant(_)), "varies over time"),
            ("delay", plan.varying_delay.is_some(), "varies over time"),
            ("impairments", plan.is_impaired(), "lose or delay packets behind the link"),
            ("pfc", plan.pfc.is_some(), "pauses other links"),
            ("scone", plan.scone.is_some(), "advises videos"),
            ("police", plan.police.is_some(), "tests flows against other links"),
        ];
        for (k, is, why) in asked {
            if is {
                return refused(plan.key(k), &format!("{why}; leave it out, or run without --by-links"));
            }
        }
    }
    Ok(())
}

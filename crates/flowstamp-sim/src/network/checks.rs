//! Checks of a scenario and its links that do not depend on flows.

use super::{MOST_SAMPLES, Result, error, of_full};
use crate::ScenarioError;
use crate::capture::wanted;
use crate::link::Classifier;
use crate::plan::{CellPlan, LinkPlan, Medium};
use crate::scenario::{FlowGroup, Priority, Scenario};
use flowstamp_laws::registry::{RouterSpec, ShareSpec};
use flowstamp_laws::router::Batches;
use flowstamp_laws::share::Weights;
use flowstamp_laws::units::{Bytes, Time};

/// Checks times and sizes, and that there is one topology.
pub(super) fn scenario(s: &Scenario) -> Result<()> {
    times(s)?;
    for (key, size) in [("packet", s.packet), ("ack", s.ack)] {
        if !(1..=65_535).contains(&size.get()) {
            return error(key, format!("is {size}; it must be 1B to 65535B"));
        }
    }
    if s.header >= s.packet {
        let message = format!("is {}; it must be less than packet, {}", s.header, s.packet);
        return error("header", message);
    }
    probes(s)?;
    one_topology(s)
}

fn times(s: &Scenario) -> Result<()> {
    if s.duration == Time::ZERO {
        return error("duration", "is 0s; it must be longer");
    }
    if s.warmup >= s.duration {
        return error("warmup", format!("is {}; it must be shorter than duration, {}", s.warmup, s.duration));
    }
    Ok(())
}

fn probes(s: &Scenario) -> Result<()> {
    let Some(every) = s.probes.every else { return Ok(()) };
    if every == Time::ZERO {
        return error("probes.every", "is 0s; it must be above zero");
    }
    if s.duration.as_ps() / every.as_ps() > MOST_SAMPLES {
        return error(
            "probes.every",
            format!("is {every}; the run of {} may have {MOST_SAMPLES} samples", s.duration),
        );
    }
    Ok(())
}

fn one_topology(s: &Scenario) -> Result<()> {
    const ONE_OF: &str = "give one of [dumbbell], [parking_lot], [leaf_spine], [fat_tree] and [graph]";
    let given = [
        s.dumbbell.is_some(),
        s.parking_lot.is_some(),
        s.leaf_spine.is_some(),
        s.fat_tree.is_some(),
        s.graph.is_some(),
    ];
    match given.iter().filter(|given| **given).count() {
        0 => error("", format!("no topology; {ONE_OF}")),
        1 => Ok(()),
        _ => error("", format!("more than one topology; {ONE_OF}")),
    }
}

/// Checks a link's laws, alone and together.
pub(super) fn link(plan: &LinkPlan, packet: Bytes) -> Result<()> {
    let at = |kind: &str, k: &str| plan.key(&format!("{kind}.{k}"));
    plan.router.check().map_err(|(k, m)| ScenarioError::new(at("router", k), m))?;
    plan.queue.check().map_err(|(k, m)| ScenarioError::new(at("queue", k), m))?;
    plan.share.check().map_err(|(k, m)| ScenarioError::new(at("share", k), m))?;
    if let Some(impairments) = &plan.impairments {
        of_full(format!("impairments of {}", plan.name), "impairments")?;
        let at = |k: &str| format!("impairments of {}: {k}", plan.name);
        impairments.check_on(plan.delay).map_err(|(k, m)| ScenarioError::new(at(&k), m))?;
    }
    unknown_capacity(plan)?;
    queue(plan, packet)?;
    queue_beside_others(plan)?;
    share(plan)
}

/// Checks that no law of a link needs a capacity that the link does not tell. A law that estimates the capacity must be on an
/// interface of a radio cell.
fn unknown_capacity(plan: &LinkPlan) -> Result<()> {
    let batches = plan.router.traits().batches;
    let in_cell = matches!(plan.medium, Medium::Cell { .. });
    if batches == Batches::Needed && !in_cell {
        let message = "is \"wifi\", but the link is no interface of a radio cell; leave it out";
        return error(plan.key("router.capacity"), message);
    }
    if plan.told {
        return Ok(());
    }
    if plan.router.traits().needs_capacity {
        let law = plan.router.name();
        let message = if in_cell {
            let other = plan.router.blind();
            let other = other.map_or(String::new(), |other| format!("take \"{}\", or ", other.name()));
            let other = if let Batches::Suffice(key) = batches { format!("set {key}, or ") } else { other };
            format!(
                "\"{law}\" needs the link's capacity, which is unknown in a cell; {other}set the capacity that it assumes with `told`"
            )
        } else {
            format!(
                "\"{law}\" needs the link's capacity, which rate.known = false keeps from it; leave out known"
            )
        };
        return error(plan.key("router"), message);
    }
    if plan.share.params().is_some() {
        return error(
            plan.key("share"),
            "divides the link's capacity, which rate.known = false keeps from it; leave out one of them",
        );
    }
    Ok(())
}

/// Checks that a link supports its queue law.
fn queue(plan: &LinkPlan, packet: Bytes) -> Result<()> {
    let queue = plan.queue.name();
    let refused = |message: String| error(plan.key("queue"), message);
    let shares = plan.share.params().is_some();
    if let Some(why) = plan.queue.is_alone() {
        let acks =
            plan.priority == Priority::Acks && (plan.queue.drops_head() || plan.queue.shaper().is_some());
        let other = match plan.priority {
            _ if shares => Some("share"),
            Priority::Labels => Some("priority = \"labels\""),
            Priority::Acks if acks => Some("priority = \"acks\""),
            _ => None,
        };
        if let Some(other) = other {
            return refused(format!(
                "\"{queue}\" {why}, and cannot be together with {other}; leave out one of them"
            ));
        }
    }
    if plan.queue.shaper().is_some() {
        if !matches!(plan.router, RouterSpec::None(_)) {
            let law = plan.router.name();
            return refused(format!(
                "\"{queue}\" holds packets back from a link whose whole rate router = \"{law}\" gives to flows; give the link the shaper's rate in its place"
            ));
        }
        if plan.medium.is_shared() {
            return refused(format!(
                "\"{queue}\" says when packets leave, and so does a shared medium; leave out one of them"
            ));
        }
    }
    match plan.queue.smallest_bucket() {
        Some((key, most)) if most < packet => error(
            plan.key(&format!("queue.{key}")),
            format!("is {most}, and no packet of {packet} would pass; give {packet} or more"),
        ),
        _ => Ok(()),
    }
}

/// Whether the scheduler of a link has one queue for all classes.
fn has_one_queue(plan: &LinkPlan) -> bool {
    plan.share.params().is_some() && plan.share.build(Classifier::Protocol.classes()).is_none()
}

/// Checks a queue law against the link's share and priority.
fn queue_beside_others(plan: &LinkPlan) -> Result<()> {
    let queue = plan.queue.name();
    let refused = |message: String| error(plan.key("queue"), message);
    let shares = plan.share.params().is_some();
    if has_one_queue(plan) && plan.queue.needs_events() {
        let share = plan.share.name();
        return refused(format!(
            "\"{queue}\" decides as packets leave, which share = \"{share}\" has no event for; use \"wfq\" or \"drr\""
        ));
    }
    let other = [("share", shares), ("priority", plan.priority != Priority::None)];
    if let (Some(_), Some((key, _))) = (plan.queue.two_queues(), other.iter().find(|o| o.1)) {
        return refused(format!(
            "\"{queue}\" is two queues with a scheduler, and cannot be together with {key}; leave out one of them"
        ));
    }
    Ok(())
}

/// Checks that a link supports its share.
fn share(plan: &LinkPlan) -> Result<()> {
    let Some(params) = plan.share.params() else { return Ok(()) };
    let key = plan.key("share");
    if matches!(plan.router, RouterSpec::None(_)) {
        return error(key, "is for a link with a router law; give router, or leave out share");
    }
    if has_one_queue(plan) && params.own_droptail {
        let share = plan.share.name();
        return error(
            format!("{key}.own_droptail"),
            format!("is true, but share = \"{share}\" has one queue for all; give \"wfq\" or \"drr\""),
        );
    }
    if params.weights == Weights::Windows && plan.router.traits().by_windows.is_none() {
        let law = plan.router.name();
        return error(
            format!("{key}.weights"),
            format!("is \"windows\", but \"{law}\" does not know its flows' mean window; give \"flows\""),
        );
    }
    Ok(())
}

/// Checks that no link has two schedulers, or one without events on a shared medium, and that police can test the
/// router's protocol.
pub(super) fn schedulers(links: &[LinkPlan]) -> Result<()> {
    if let Some(plan) = links.iter().find(|l| l.share.params().is_some() && l.priority != Priority::None) {
        return error(
            plan.key("priority"),
            "cannot be together with share: a link has one scheduler; leave out one of them",
        );
    }
    let soft = |l: &&LinkPlan| matches!(l.share, ShareSpec::Fifo(_)) && l.medium.is_shared();
    if let Some(plan) = links.iter().find(soft) {
        return error(
            plan.key("share"),
            "is \"fifo\" on a shared medium, where departures are not known on arrival; give \"wfq\" or \"drr\"",
        );
    }
    let untested = |l: &&LinkPlan| l.police.is_some() && !l.router.header().is_tested();
    if let Some(plan) = links.iter().find(untested) {
        let law = plan.router.name();
        return error(
            plan.key("police"),
            format!(
                "\"{law}\" gives flows no individual feedback to test; use a router of xcp or rcp, or leave police out"
            ),
        );
    }
    Ok(())
}

/// Checks that there are flows.
pub(super) fn flows_are_given(s: &Scenario) -> Result<()> {
    if s.flows.is_empty() { error("flows", "is empty; give at least one [[flows]]") } else { Ok(()) }
}

/// Checks that the links and cells to be captured exist, and that the frames of the cells can be captured.
pub(super) fn captured_links(s: &Scenario, links: &[LinkPlan], cells: &[CellPlan]) -> Result<()> {
    let ampdus = |cell: &&CellPlan| cell.params.ampdu_frames > 1 && wanted(s, &cell.name, false);
    if let Some(cell) = cells.iter().find(ampdus) {
        let (name, frames) = (&cell.name, cell.params.ampdu_frames);
        let message = format!(
            "would have the frames of cell \"{name}\", whose ampdu_frames is {frames}; only single frames can be captured: name links, such as its interfaces \"{name}.NODE\""
        );
        return error("capture.links", message);
    }
    let Some(asked) = s.capture.as_ref().and_then(|c| c.links.as_ref()) else { return Ok(()) };
    let names = links.iter().map(|l| &l.name).chain(cells.iter().map(|c| &c.name));
    let known: Vec<_> = names.map(String::as_str).collect();
    match asked.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let or_cell = if cells.is_empty() { "" } else { " and not a cell" };
            error(
                "capture.links",
                format!("\"{name}\" is not a link{or_cell}; there are {}", known.join(", ")),
            )
        }
        None => Ok(()),
    }
}

/// The warning for a link that advises videos in a network without any.
pub(super) fn advice(scenario: &Scenario, links: &[LinkPlan]) -> Option<String> {
    let advises = links.iter().find(|plan| cfg!(feature = "full") && plan.scone.is_some())?;
    let is_video = |group: &FlowGroup| group.application.as_ref().is_some_and(|it| it.kind() == "video");
    (!scenario.flows.iter().any(is_video)).then(|| {
        format!(
            "scone of {}: no flow is a video, so no packet carries advice; leave it out, or give flows application = {{ kind = \"video\" }}",
            advises.name
        )
    })
}

/// The warning for labels without a link that uses them, or a link by labels without labelled flows.
pub(super) fn labels(scenario: &Scenario, links: &[LinkPlan]) -> Option<String> {
    let labelled = scenario.flows.iter().find(|group| group.label > 0);
    match (labelled, links.iter().find(|plan| plan.priority == Priority::Labels)) {
        (Some(group), None) => Some(format!(
            "flows.{}.label: is {}, but no link goes by labels; give one priority = \"labels\"",
            group.name, group.label
        )),
        (None, Some(plan)) => Some(format!(
            "priority of {}: is \"labels\", but no flow has a label; give [[flows]] label = 1 to those that go first",
            plan.name
        )),
        _ => None,
    }
}

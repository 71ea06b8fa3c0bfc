//! Checks of a group of flows, and of the links on its paths.

use super::lists::{Placed, listed};
use super::paths::Ways;
use super::patterns::check_patterns;
use super::{Builder, MOST_FLOWS, Result, error};
use crate::ScenarioError;
use crate::packet::Labels;
use crate::scenario::{FlowGroup, OneOrMany, Receiver, check_rate};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::transport;
use flowstamp_laws::units::Time;

/// The warning for timers that cannot work on a path of this RTT, or contradict each other.
pub(super) fn timers_at_odds(name: &str, t: &transport::Params, rtt: Time) -> Option<String> {
    let key = |k: &str| format!("flows.{name}.transport.{k}");
    if let Some(max_rto) = t.max_rto.filter(|max_rto| *max_rto <= rtt) {
        let message = format!("is {max_rto}, but the flows' RTT is {rtt}, so that every packet times out");
        return Some(format!("{}: {message}; leave it out, or give more than the RTT", key("max_rto")));
    }
    let patience = t.min_rto.max(rtt);
    (t.delayed_acks && t.delayed_ack_timeout >= patience).then(|| {
        format!(
            "{}: is {}, but senders may time out after {patience}, before a delayed ack comes; give less than min_rto, {}",
            key("delayed_ack_timeout"),
            t.delayed_ack_timeout,
            t.min_rto
        )
    })
}

/// Checks the number of flows of a group, `pairs` of them between pairs of nodes, and that lists of times have one
/// entry per flow.
pub(super) fn check_count(group: &FlowGroup, count: u32, pairs: u64, arrives: bool) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    let least = u32::from(arrives);
    let listed = group.is_listed();
    if count < least || pairs > u64::from(MOST_FLOWS) {
        let of = if listed { ", which the pairs of nodes of its list take together" } else { "" };
        return error(
            key("count"),
            format!("is {count}; it must be at least {least} and at most {MOST_FLOWS}{of}"),
        );
    }
    let flows = if listed { u64::from(count) } else { pairs };
    for (k, given) in [("rtt", group.rtt.as_ref()), ("start", Some(&group.start))] {
        if let Some(OneOrMany::Many(list)) = given {
            if list.len() as u64 != flows {
                return error(
                    key(k),
                    format!("has {} entries; it needs one for each of {flows} flows", list.len()),
                );
            }
        }
    }
    Ok(())
}

impl Builder<'_> {
    /// Checks each law that a list names against its group and the links on its flows' paths.
    pub(super) fn check_listed(&self, group: &FlowGroup, list: &Placed) -> Result<()> {
        let Some(file) = &group.list else {
            self.check_group(group)?;
            return list.ways.iter().try_for_each(|ways| self.check_ways(group, ways));
        };
        for ((pair, law), at) in &list.flows.uses {
            let group = FlowGroup { law: list.flows.laws[*law as usize].clone(), ..group.clone() };
            let checked =
                self.check_group(&group).and_then(|()| self.check_ways(&group, &list.ways[*pair as usize]));
            if let Err(e) = checked {
                let key = e.key.rsplit('.').next().unwrap_or_default();
                return Err(listed(&group, file, &format!("{at}: {key}: {}", e.message)));
            }
        }
        Ok(())
    }

    pub(super) fn check_ways(&self, group: &FlowGroup, ways: &Ways) -> Result<()> {
        ways.iter().try_for_each(|(there, _)| self.check_routers(group, &there.links))
    }

    /// Checks a group, except what depends on its paths.
    pub(super) fn check_group(&self, group: &FlowGroup) -> Result<()> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        if usize::from(group.label) >= Labels::COUNT {
            let most = Labels::COUNT - 1;
            return error(
                key("label"),
                format!("is {}; it must be 0 to {most}, the greatest goes first", group.label),
            );
        }
        check_patterns(group)?;
        check_times(group, self.scenario.duration)?;
        if let Some(rate) = group.rate {
            check_rate(&key("rate"), rate)?;
        }
        self.check_application(group)?;
        if group.size.is_some_and(|s| s.get() == 0) {
            return error(key("size"), "is 0B; it must be larger");
        }
        let given = group.size.is_some() || group.produces() || group.lifetime.is_some();
        if group.web.is_some() && (given || group.every > Time::ZERO) {
            return error(key("web"), "sets sizes and arrivals; leave out size, rate, lifetime and every");
        }
        check_datagrams(group)?;
        group.law.check().map_err(|(k, m)| ScenarioError::new(key(&format!("law.{k}")), m))?;
        check_timers(group)?;
        check_transport(group)
    }

    /// Checks that a flow whose law obeys routers has one on its path that writes its header: nothing else would limit
    /// the flow.
    pub(super) fn check_routers(&self, group: &FlowGroup, route: &[u32]) -> Result<()> {
        let header = group.law.header();
        if group.receiver == Receiver::Tcp && !group.law.asks_receiver() {
            let name = group.law.name();
            return error(
                format!("flows.{}.receiver", group.name),
                format!(
                    "is \"tcp\", which echoes no feedback, but \"{name}\" obeys feedback; leave it out, or use a law with negotiate = true"
                ),
            );
        }
        let has_one = route.iter().any(|l| self.links[*l as usize].router.header() == header);
        if group.law.needs_router() && !has_one {
            let name = group.law.name();
            let router = group.law.router().map_or(header.name(), |router| router.name());
            return error(
                format!("flows.{}.law", group.name),
                format!("\"{name}\" obeys routers, but no link on the path has router = \"{router}\""),
            );
        }
        Ok(())
    }
}

/// Checks when a group's flows start and stop.
fn check_times(group: &FlowGroup, duration: Time) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    let starts = match &group.start {
        OneOrMany::One(start) => std::slice::from_ref(start),
        OneOrMany::Many(starts) => {
            let other = [
                ("every", group.every > Time::ZERO),
                ("web", group.web.is_some()),
                ("list", group.list.is_some()),
                ("incast", group.incast.is_some()),
            ];
            if let Some((k, _)) = other.iter().find(|o| o.1) {
                let message = format!("says when each flow starts, and so does {k}; leave out one of them");
                return error(key("start"), message);
            }
            starts
        }
    };
    let latest = starts.iter().max().copied().unwrap_or_default();
    if latest >= duration {
        return error(key("start"), format!("is {latest}; it must be before duration, {duration}"));
    }
    if group.stop.is_some_and(|s| s <= latest) {
        return error(key("stop"), format!("must be after start, {latest}"));
    }
    match group.lifetime {
        Some(Time::ZERO) => return error(key("lifetime"), "is 0s; it must be longer"),
        None if group.lifetime_spread > Time::ZERO => {
            return error(key("lifetime"), "is missing; lifetime_spread is what flows last beyond it");
        }
        _ => {}
    }
    Ok(())
}

/// Checks that datagrams have an application and no size, whose delivery the sender could not observe.
fn check_datagrams(group: &FlowGroup) -> Result<()> {
    if !group.law.traits().datagrams {
        return Ok(());
    }
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    if !group.produces() {
        let message = format!(
            "is missing; \"{}\" sends at the application's rate, such as \"2Mbps\", or give application",
            group.law.name()
        );
        return error(key("rate"), message);
    }
    let given = [("size", group.size.is_some()), ("web", group.web.is_some())];
    if let Some((k, _)) = given.iter().find(|(_, given)| *given) {
        let message = format!("is for flows that end; \"{}\" gets no acks; leave it out", group.law.name());
        return error(key(k), message);
    }
    Ok(())
}

/// Checks a transport's timers.
fn check_timers(group: &FlowGroup) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    let t = &group.transport;
    let max_rto = t.last_rto(Time::ZERO);
    let timeouts = [("initial_rto", t.initial_rto), ("min_rto", Some(t.min_rto)), ("max_rto", t.max_rto)];
    for (k, time) in timeouts {
        let Some(time) = time else { continue };
        if time < Time::from_micros(1) {
            return error(key(&format!("transport.{k}")), format!("is {time}; it must be 1us or longer"));
        }
    }
    for (k, time) in timeouts {
        if let Some(time) = time.filter(|time| *time > max_rto) {
            let message = format!("is {time}; it must be at most max_rto, {max_rto}");
            return error(key(&format!("transport.{k}")), message);
        }
    }
    Ok(())
}

/// Checks what else a transport is given.
fn check_transport(group: &FlowGroup) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    let t = &group.transport;
    if let Some(tick) = t.tick.filter(|tick| !(Time::from_micros(1)..=Time::from_secs(1)).contains(tick)) {
        return error(key("transport.tick"), format!("is {tick}; it must be 1us to 1s"));
    }
    if t.send_jitter > Time::from_secs(1) {
        return error(key("transport.send_jitter"), format!("is {}; it must be at most 1s", t.send_jitter));
    }
    if t.recovery == Some(Recovery::Count) && !group.law.needs_router() {
        let message = format!(
            "is \"count\", which tells the law of no loss; \"{}\" must hear of them, where it does without routers: \
             leave it out",
            group.law.name()
        );
        return error(key("transport.recovery"), message);
    }
    let window = t.initial_window;
    if !(1.0..=65_536.0).contains(&window) {
        return error(key("transport.initial_window"), format!("is {window}; it must be 1 to 65536 packets"));
    }
    Ok(())
}

//! Incasts of a given size: a list of flows that is drawn instead of read.

use super::group_keys::{check_transfers, refuse_keys};
use super::paths::Core;
use super::{Builder, MOST_FLOWS, Result, error};
use crate::flow_list::{FlowList, Listed, Pair};
use crate::random::Stream;
use crate::scenario::{FlowGroup, Incast, Pattern};
use flowstamp_laws::units::Time;
use std::collections::BTreeMap;

/// Hosts of an incast, and its times.
struct Drawn {
    hosts: Vec<usize>,
    /// The receiver; `None` if it is drawn each time.
    receiver: Option<usize>,
    senders: usize,
    /// Number of incasts, and the time from one to the next.
    incasts: u64,
    every: Time,
}

impl Builder<'_> {
    /// Draws the flows of a group's incasts, one incast after the other.
    pub(super) fn incasts(&self, group: &FlowGroup, spec: &Incast, core: &Core) -> Result<FlowList> {
        check(group)?;
        let drawn = self.drawn(group, spec, core)?;
        let mut draws = Stream::new(self.seed, &format!("pattern/{}", group.name));
        let mut later = Stream::new(self.seed, &format!("start/{}", group.name));
        let laws = vec![group.law.clone()];
        let mut list = FlowList { laws, senders: drawn.senders as u32, ..FlowList::default() };
        let mut pairs = BTreeMap::new();
        let total = spec.total.get();
        for incast in 0..drawn.incasts {
            let to = drawn.receiver.unwrap_or_else(|| drawn.hosts[draws.below(drawn.hosts.len())]);
            let mut from: Vec<usize> = drawn.hosts.iter().copied().filter(|host| *host != to).collect();
            for sender in 0..drawn.senders {
                let other = sender + draws.below(from.len() - sender);
                from.swap(sender, other);
                let pair = *pairs.entry((from[sender], to)).or_insert_with(|| {
                    let name = |node: usize| Some(core.names[node].clone());
                    let at = format!("incast {}", incast + 1);
                    list.uses.insert((list.pairs.len() as u32, 0), at.clone());
                    list.pairs.push(Pair { from: name(from[sender]), to: name(to), at });
                    list.pairs.len() as u32 - 1
                });
                // The first senders have a byte more where the total cannot be divided.
                let (share, rest) = (total / drawn.senders as u64, total % drawn.senders as u64);
                let size = share + u64::from((sender as u64) < rest);
                let start = drawn.every * incast + group.spread.scale(later.uniform());
                list.rows.push(Listed { start, size, pair, law: 0 });
            }
        }
        Ok(list.ordered())
    }

    /// Checks the numbers of hosts, senders and incasts.
    fn drawn(&self, group: &FlowGroup, spec: &Incast, core: &Core) -> Result<Drawn> {
        let key = |k: &str| format!("flows.{}.incast.{k}", group.name);
        let hosts = self.hosts_of(group, core)?;
        let receiver =
            if spec.random_receiver { None } else { Some(super::patterns::receiver(group, core, &hosts)?) };
        let others = hosts.len() - 1;
        let senders = spec.senders.map_or(others, |senders| senders as usize);
        if !(1..=others).contains(&senders) {
            return error(
                key("senders"),
                format!("is {senders}; it must be 1 to {others}, the number of the other hosts"),
            );
        }
        if spec.total.get() < senders as u64 {
            return error(
                key("total"),
                format!("is {}; it must be at least 1B for each of {senders} senders", spec.total),
            );
        }
        let every = spec.every.unwrap_or(Time::MAX);
        if every == Time::ZERO {
            return error(key("every"), "is 0s; it must be longer");
        }
        let stop = group.stop.unwrap_or(Time::MAX).min(self.scenario.duration);
        let span = stop.saturating_sub(Self::begins(group)).as_ps().max(1);
        let incasts = span.div_ceil(every.as_ps());
        let most = u64::from(MOST_FLOWS);
        if incasts.saturating_mul(senders as u64) > most {
            return error(
                key("every"),
                format!(
                    "is {every}, which makes {incasts} incasts of {senders} flows; at most {most} flows are placed"
                ),
            );
        }
        Ok(Drawn { hosts, receiver, senders, incasts, every })
    }
}

/// Refuses keys that contradict incasts.
fn check(group: &FlowGroup) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    if group.pattern != Some(Pattern::Incast) {
        return error(key("incast"), "is for pattern = \"incast\" only");
    }
    let random = group.incast.as_ref().is_some_and(|incast| incast.random_receiver);
    let given = [
        ("list", group.list.is_some()),
        ("web", group.web.is_some()),
        ("from", group.from.is_some()),
        ("to", random && group.to.is_some()),
        ("count", group.count.is_some()),
        ("size", group.size.is_some()),
        ("every", group.every > Time::ZERO),
        ("rate", group.rate.is_some()),
        ("application", group.application.is_some()),
        ("lifetime", group.lifetime.is_some() || group.lifetime_spread > Time::ZERO),
        ("each_hop", group.each_hop),
        ("governs", group.governs.is_some()),
    ];
    refuse_keys(group, &given, "incasts, which say when flows start, how large they are and where they go")?;
    check_transfers(group, "incasts")
}

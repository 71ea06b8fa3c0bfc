//! Lists of flows in files: their paths, and the maximum number of concurrent flows.

use super::group_keys::{check_transfers, refuse_keys};
use super::paths::{Core, Hashed, Ways};
use super::{Builder, Result, error, of_full};
use crate::ScenarioError;
use crate::flow_list::{Counted, FlowList, Pair};
use crate::scenario::{FlowGroup, OneOrMany};
use crate::workload::wire_bytes;
use flowstamp_laws::units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;
use std::sync::Arc;

/// Number of hashed flows whose paths the rows of a list take in turn, between two nodes with several paths, unless the
/// scenario sets it.
const LISTED_TURNS: u32 = 64;

/// A list, with the paths of its flows there and back for each pair of nodes.
pub(super) struct Placed {
    pub flows: Arc<FlowList>,
    pub ways: Vec<Ways>,
    /// Number of rows of each pair.
    pub rows: Vec<u32>,
    /// Number of packets of each pair.
    pub packets: Vec<f64>,
}

/// Makes an error about a line or row of a group's list.
pub(super) fn listed(group: &FlowGroup, list: &Path, message: &str) -> ScenarioError {
    ScenarioError::new(format!("flows.{}.list", group.name), format!("\"{}\": {message}", list.display()))
}

/// The name by which the rows of a group's list between two nodes are hashed.
pub(super) fn listed_name(group: &FlowGroup, from: &str, to: &str) -> String {
    format!("{}/{from}/{to}", group.name)
}

impl Builder<'_> {
    /// Reads the lists of all groups that have one, by the group's number.
    pub(super) fn read_lists(&self, core: &Core) -> Result<BTreeMap<usize, Placed>> {
        let mut lists = BTreeMap::new();
        for (at, group) in self.scenario.flows.iter().enumerate() {
            if let Some(incast) = &group.incast {
                of_full(format!("flows.{}.incast", group.name), "patterns of flows")?;
                let flows = self.incasts(group, incast, core)?;
                let key = || format!("flows.{}.pattern", group.name);
                let placed = self.placed(group, flows, core).map_err(|m| ScenarioError::new(key(), m))?;
                lists.insert(at, placed);
                continue;
            }
            let Some(file) = &group.list else {
                if !group.ignore_columns.is_empty() {
                    let key = format!("flows.{}.ignore_columns", group.name);
                    return error(key, "is for a list in a file, and none is named; leave it out");
                }
                continue;
            };
            of_full(format!("flows.{}.list", group.name), "lists of flows")?;
            check_keys(group)?;
            let is_table = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
            let counted = if is_table { Counted::Rows } else { Counted::Lines };
            let text = self.loaded.files.get(file).map_or("", String::as_str);
            let flows = FlowList::read(text, &group.law, counted, &group.ignore_columns);
            let flows = flows.map_err(|m| listed(group, file, &m))?;
            lists.insert(at, self.placed(group, flows, core).map_err(|m| listed(group, file, &m))?);
        }
        Ok(lists)
    }

    /// Finds the paths of a list's flows. The error names the place of the first pair without one.
    fn placed(&self, group: &FlowGroup, flows: FlowList, core: &Core) -> std::result::Result<Placed, String> {
        let (mut rows, mut packets) = (vec![0; flows.pairs.len()], vec![0.0; flows.pairs.len()]);
        for row in &flows.rows {
            rows[row.pair as usize] += 1;
            packets[row.pair as usize] += row.size.div_ceil(self.scenario.payload()) as f64;
        }
        let ways = flows.pairs.iter().zip(&rows);
        let ways = ways
            .map(|(pair, rows)| self.ways_of(group, pair, *rows, core))
            .collect::<std::result::Result<_, _>>()?;
        Ok(Placed { flows: Arc::new(flows), ways, rows, packets })
    }

    /// The paths there and back of a pair with this number of rows.
    fn ways_of(
        &self,
        group: &FlowGroup,
        pair: &Pair,
        rows: u32,
        core: &Core,
    ) -> std::result::Result<Ways, String> {
        let at = &pair.at;
        let node = |column: &str, listed: &Option<String>, given: &Option<String>, default: &str| {
            let name = listed.as_deref().or(given.as_deref()).unwrap_or(default);
            let known = || core.names.join(", ");
            match core.nodes.get(name) {
                Some(node) => Ok((name.to_owned(), *node)),
                None if name.is_empty() => Err(format!(
                    "{at}: {column} is missing, and the group names none; name one of {}",
                    known()
                )),
                None => {
                    Err(format!("{at}: {column} is \"{name}\", which is not a node; use one of {}", known()))
                }
            }
        };
        let from = node("from", &pair.from, &group.from, &core.first)?;
        let to = node("to", &pair.to, &group.to, &core.last)?;
        if from.1 == to.1 {
            return Err(format!("{at}: to is \"{}\", where the flow starts", to.0));
        }
        let (from, to) = if group.reverse { (to, from) } else { (from, to) };
        // The rows take these paths in turn.
        let turns = if group.incast.is_some() { rows } else { LISTED_TURNS }.min(LISTED_TURNS);
        let turns = if self.is_balanced(group) { 1 } else { group.count.unwrap_or(turns) };
        let name = listed_name(group, &from.0, &to.0);
        let flows = (0..u64::from(turns.max(1))).map(|flow| Hashed::new(self.seed, &name, flow));
        core.all_ways(&self.links, (from.1, to.1), flows).ok_or_else(|| {
            if core.leads(&self.links, from.1, to.1) {
                format!("{at}: there is no path for acks from {} to {}", to.0, from.0)
            } else {
                format!("{at}: there is no path from {} to {}", from.0, to.0)
            }
        })
    }

    /// The time from which the starts of a list's flows count.
    pub(super) fn begins(group: &FlowGroup) -> Time {
        match &group.start {
            OneOrMany::One(start) => *start,
            OneOrMany::Many(_) => Time::ZERO, // refused elsewhere
        }
    }

    /// The warning that `late` flows of a list would start too late.
    pub(super) fn late(
        &self,
        name: &str,
        group: &FlowGroup,
        list: &Placed,
        start: Time,
        late: usize,
    ) -> String {
        let all = list.flows.rows.len();
        let stop = group.stop.unwrap_or(Time::MAX).min(self.scenario.duration);
        let last = list.flows.order.last().map_or(Time::ZERO, |row| list.flows.rows[*row as usize].start);
        let last = start.saturating_add(last);
        let key = if stop < self.scenario.duration { "stop" } else { "duration" };
        format!(
            "flows.{name}.list: {late} of {all} flows would start at {stop} or later, and do not; set {key} to more than {last}"
        )
    }

    /// Upper bound of the number of concurrent flows of a list: in total, and for each pair.
    ///
    /// A flow counts until all links on its path would be idle if each carried the whole list at once. It then counts
    /// for another 30 round trips and a second, as a flow that arrives at random.
    pub(super) fn live(&self, placed: &Placed, group: &FlowGroup, rtts_s: &[f64]) -> (f64, Vec<f64>) {
        /// Fraction of its capacity that a link certainly carries, as for flows that arrive at random.
        const CARRIES: f64 = 0.98;
        let list = &placed.flows;
        let (payload, header) = (self.scenario.payload(), self.scenario.header.get());
        let stop = group.stop.unwrap_or(Time::MAX).min(self.scenario.duration);
        let begins = Self::begins(group);
        let rows = || {
            let rows = list.order.iter().map(|row| &list.rows[*row as usize]);
            rows.map(move |row| (row, begins.saturating_add(row.start)))
                .take_while(move |(_, start)| *start < stop)
        };
        let per_byte_s: Vec<f64> = self.links.iter().map(|link| 1.0 / (CARRIES * self.peak(link))).collect();
        // End of each busy period of each link.
        let mut busy: Vec<Vec<f64>> = vec![Vec::new(); self.links.len()];
        for (row, start) in rows() {
            let start = start.as_secs_f64();
            let wire = wire_bytes(row.size, payload, header);
            for link in &placed.ways[row.pair as usize][0].0.links {
                let (busy, takes) = (&mut busy[*link as usize], wire * per_byte_s[*link as usize]);
                match busy.last_mut().filter(|end| **end >= start) {
                    Some(end) => *end += takes,
                    None => busy.push(start + takes),
                }
            }
        }
        let mut now = vec![0; self.links.len()];
        let mut there: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
        let (mut most, mut of, mut most_of) =
            (0, vec![0u32; placed.ways.len()], vec![0u32; placed.ways.len()]);
        for (row, start) in rows() {
            while let Some(Reverse((_, pair))) =
                there.peek().copied().filter(|Reverse((end, _))| *end < start)
            {
                there.pop();
                of[pair as usize] -= 1;
            }
            let mut end_s = start.as_secs_f64();
            for link in &placed.ways[row.pair as usize][0].0.links {
                let (busy, now) = (&busy[*link as usize], &mut now[*link as usize]);
                while busy[*now] < start.as_secs_f64() {
                    *now += 1;
                }
                end_s = end_s.max(busy[*now]);
            }
            let pair = row.pair as usize;
            there.push(Reverse((Time::from_secs_f64(end_s + 30.0 * rtts_s[pair] + 1.0), row.pair)));
            of[pair] += 1;
            most_of[pair] = most_of[pair].max(of[pair]);
            most = most.max(there.len());
        }
        (most as f64, most_of.into_iter().map(f64::from).collect())
    }
}

/// Refuses keys that contradict a list.
fn check_keys(group: &FlowGroup) -> Result<()> {
    let given = [
        ("size", group.size.is_some()),
        ("web", group.web.is_some()),
        ("every", group.every > Time::ZERO),
        ("spread", group.spread > Time::ZERO),
        ("rate", group.rate.is_some()),
        ("application", group.application.is_some()),
        ("lifetime", group.lifetime.is_some() || group.lifetime_spread > Time::ZERO),
        ("each_hop", group.each_hop),
        ("governs", group.governs.is_some()),
    ];
    refuse_keys(
        group,
        &given,
        "a list, whose rows say when flows start, how large they are and where they go",
    )?;
    check_transfers(group, "a list")
}

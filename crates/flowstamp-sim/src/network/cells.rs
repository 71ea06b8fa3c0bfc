//! Cells of the scenario: interfaces, which are links, and the nodes that each interface reaches.

use super::paths::Core;
use super::topology::priority;
use super::{Builder, Result, error, of_full};
use crate::ScenarioError;
use crate::medium::{Capacity, dcf};
use crate::plan::{CellPlan, LinkPlan, Medium, NOBODY, StationPlan};
use crate::scenario::{Buffer, Cell, LinkRate, Station, Weight, check_rate};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::ShareSpec;
use flowstamp_laws::units::{Rate, Time};

impl Builder<'_> {
    pub(super) fn cells(&mut self, core: &mut Core) -> Result<()> {
        for (number, cell) in self.scenario.wireless.iter().enumerate() {
            let key = format!("wireless[{number}]");
            self.cell(&key, number as u32, cell, core)?;
        }
        Ok(())
    }

    fn cell(&mut self, key: &str, number: u32, cell: &Cell, core: &mut Core) -> Result<()> {
        self.check_cell(key, cell)?;
        let mut plan =
            CellPlan { name: cell.name.clone(), params: cell.mac.0.params(), stations: Vec::new() };
        let mut nodes = Vec::new();
        if let Some(name) = &cell.access_point {
            let fastest = self.fastest(key, &plan.params, cell)?;
            let link = self.interface(key, number, 0, cell, name, None, fastest)?;
            plan.stations.push(StationPlan {
                name: name.clone(),
                link,
                params: dcf::StationParams::ACCESS_POINT,
                rates: Vec::new(),
            });
            nodes.push(core.node(name));
        }
        for (i, station) in cell.stations.iter().enumerate() {
            let key = format!("{key}.stations[{i}]");
            let rates = rates(&key, &plan.params, station)?;
            let node = core.node(&station.name);
            self.check_station(&key, station, node, &nodes)?;
            let (name, index) = (&station.name, plan.stations.len() as u32);
            let fastest = Rate::from_bps(rates.iter().map(|r| r.1.bps()).fold(0.0, f64::max));
            let link = self.interface(&key, number, index, cell, name, Some(station), fastest)?;
            plan.stations.push(StationPlan {
                name: name.clone(),
                link,
                params: dcf::StationParams { rate: Some(rates[0].1), error_rate: station.error_rate },
                rates: if rates.len() > 1 { rates } else { Vec::new() },
            });
            nodes.push(node);
        }
        for (i, from) in plan.stations.iter().enumerate() {
            for (j, to) in nodes.iter().enumerate() {
                let by_access_point = cell.access_point.is_some() && i > 0 && j > 0;
                if i != j && !by_access_point {
                    core.edges.push((nodes[i], *to, from.link));
                }
            }
        }
        self.nodes.push(nodes);
        self.cells.push(plan);
        Ok(())
    }

    /// Checks a cell, except its stations.
    fn check_cell(&self, key: &str, cell: &Cell) -> Result<()> {
        if self.cells.iter().any(|other| other.name == cell.name) {
            return error(
                format!("{key}.name"),
                format!("\"{}\" appears twice; names must differ", cell.name),
            );
        }
        let params = cell.mac.0.params();
        params.check().map_err(|(k, m)| ScenarioError::new(format!("{key}.mac.{k}"), m))?;
        if params.ampdu_frames > 1 {
            of_full(format!("{key}.mac.ampdu_frames"), "A-MPDUs")?;
        }
        for (k, size) in [("packet", self.scenario.packet), ("ack", self.scenario.ack)] {
            params.check_packet(size).map_err(|m| ScenarioError::new(k, m))?;
        }
        if let Some(rate) = cell.told {
            check_rate(&format!("{key}.told"), rate)?;
        }
        if cell.stations.len() + usize::from(cell.access_point.is_some()) < 2 {
            return error(format!("{key}.stations"), "needs two nodes at least to be a cell; name more");
        }
        Ok(())
    }

    /// Checks a station; `nodes` are already in its cell.
    fn check_station(&self, key: &str, station: &Station, node: usize, nodes: &[usize]) -> Result<()> {
        if !(0.0..1.0).contains(&station.error_rate.get()) {
            let message = format!("is {}; it must be at least 0 and below 1", station.error_rate);
            return error(format!("{key}.error_rate"), message);
        }
        if nodes.contains(&node) {
            return error(format!("{key}.name"), format!("\"{}\" is in the cell already", station.name));
        }
        match self.nodes.iter().zip(&self.cells).find(|(nodes, _)| nodes.contains(&node)) {
            Some((_, other)) => error(
                format!("{key}.name"),
                format!(
                    "\"{}\" is a node of cell \"{}\" already; a node has one radio",
                    station.name, other.name
                ),
            ),
            None => Ok(()),
        }
    }

    /// The highest rate of any station, which is the nominal capacity of an access point's link.
    fn fastest(&self, key: &str, params: &dcf::Params, cell: &Cell) -> Result<Rate> {
        let mut fastest = 0.0f64;
        for (i, station) in cell.stations.iter().enumerate() {
            for (_, rate) in rates(&format!("{key}.stations[{i}]"), params, station)? {
                fastest = fastest.max(rate.bps());
            }
        }
        Ok(Rate::from_bps(fastest))
    }

    /// Adds the link that is a node's interface.
    #[expect(clippy::too_many_arguments, reason = "where it is, and what it is like")]
    fn interface(
        &mut self,
        key: &str,
        cell_number: u32,
        station_number: u32,
        cell: &Cell,
        node: &str,
        station: Option<&Station>,
        nominal: Rate,
    ) -> Result<u32> {
        let name = format!("{}.{node}", cell.name);
        if self.links.iter().any(|other| other.name == name) {
            return error(format!("{key}.name"), format!("\"{name}\" appears twice; give names that differ"));
        }
        let own = |k: &str, given: bool| {
            if given { format!("{key}.{k}") } else { format!("wireless.{}.{k}", cell.name) }
        };
        let given = station.and_then(|s| s.buffer);
        let limit = match given.unwrap_or(cell.buffer) {
            Buffer::Packets(n) => Limit::Packets(n),
            Buffer::Bytes(n) => Limit::Bytes(n.get()),
            other => {
                let message = format!(
                    "is {other}, but a cell has no fixed capacity; give packets or bytes, such as \"50pkt\""
                );
                return error(own("buffer", given.is_some()), message);
            }
        };
        let router = station.and_then(|s| s.router.clone()).unwrap_or_else(|| cell.router.clone());
        let queue = station.and_then(|s| s.queue.clone()).unwrap_or_else(|| cell.queue.clone());
        let share = ShareSpec::default();
        let laws = station.is_some_and(|s| s.router.is_some() || s.queue.is_some());
        Ok(self.add_link(LinkPlan {
            name,
            table: if laws { key.to_owned() } else { format!("wireless.{}", cell.name) },
            capacity: Capacity::Constant(cell.told.unwrap_or(nominal)),
            told: cell.told.is_some(),
            delay: Time::ZERO,
            weight: self.weighted().then(|| cell.weight.unwrap_or(Weight::ONE)),
            limit,
            priority: priority(cell.priority, &router, &share, &queue),
            queue,
            router,
            share,
            police: None,
            medium: Medium::Cell { cell: cell_number, station: station_number },
            governed: false,
            impairments: None,
            varying_delay: None, // known when impairments are checked, as are outages
            outages: Vec::new(),
            holds: false,
            pfc: None,
            fed_by: Vec::new(),
            scone: None,
        }))
    }

    /// Maximum number of packets that the MAC of a station holds for A-MPDUs; zero for other links.
    pub(super) fn most_in_mac(&self, plan: &LinkPlan) -> f64 {
        let Medium::Cell { cell, .. } = plan.medium else { return 0.0 };
        let frames = self.cells[cell as usize].params.ampdu_frames;
        if frames > 1 { f64::from(frames + 1) } else { 0.0 }
    }

    /// The station to which a link leads, if `node` is the link's end; [`NOBODY`] if the link is not over the air.
    pub(super) fn receiver(&self, link: u32, node: usize) -> u32 {
        match self.links[link as usize].medium {
            Medium::Cell { cell, .. } => {
                let station = self.nodes[cell as usize].iter().position(|n| *n == node);
                station.map_or(NOBODY, |station| station as u32)
            }
            _ => NOBODY,
        }
    }
}

/// The data rates of a station over time.
fn rates(key: &str, params: &dcf::Params, station: &Station) -> Result<Vec<(Time, Rate)>> {
    let key = format!("{key}.rate");
    let steps = match &station.rate {
        LinkRate::Constant(rate) => vec![(Time::ZERO, *rate)],
        LinkRate::Varying(v) => {
            if v.trace.is_some() {
                return error(format!("{key}.trace"), "is for links; a station has data rates: give steps");
            }
            if !v.known {
                let message = "is false, as always in a cell; leave it out";
                return error(format!("{key}.known"), message);
            }
            v.steps.clone().unwrap_or_default()
        }
    };
    if steps.first().is_none_or(|(at, _)| *at != Time::ZERO) {
        return error(format!("{key}.steps"), "must start with an entry at \"0s\"");
    }
    if steps.windows(2).any(|w| w[1].0 <= w[0].0) {
        return error(format!("{key}.steps"), "must be in rising order of time");
    }
    for (_, rate) in &steps {
        params.check_rate(*rate).map_err(|m| ScenarioError::new(key.clone(), m))?;
    }
    Ok(steps)
}

//! Results of links as bytes, which jobs in other processes return.

use super::combine::{Delays, OnLink};
use super::flows::Elsewhere;
use super::link::Links;
use crate::results::LinkSummary;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Packet-hops, events and CPU time of runs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    pub packet_hops: u64,
    pub events: u64,
    pub cpu: Duration,
}

impl Spent {
    pub fn add(&mut self, other: &Self) {
        self.packet_hops += other.packet_hops;
        self.events += other.events;
        self.cpu += other.cpu;
    }
}

/// A link's results: its number, its summary, and the distribution of its queueing delay.
pub type Left = (u32, LinkSummary, Vec<(f64, f64)>);

/// The results of one link's run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// Results of the flows on the link.
    pub flows: Vec<OnLink>,
    /// Results of the link itself.
    pub left: Left,
    /// The work that the run took.
    pub spent: Spent,
}

/// The reason why bytes cannot be read as a job's results.
pub type Broken = String;

/// Encodes a value as CBOR, which keeps floating-point numbers exact.
pub fn written<T: Serialize>(value: &T) -> Result<Vec<u8>, Broken> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Decodes bytes of [`written`].
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Broken> {
    ciborium::from_reader(bytes).map_err(|error| error.to_string())
}

/// For some links, the flows that other links slow down, by their places among those that cross the link.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlowerOn(Vec<(u32, Vec<(u32, Elsewhere)>)>);

impl SlowerOn {
    /// The flows of these links after the first pass.
    pub fn of(links: &Links, wanted: &[u32], delays: &Delays) -> Self {
        let one = |link: &u32| {
            let slower = |flow: &u32| delays.elsewhere(*flow, links.place(*link, *flow));
            let flows = (0..).zip(links.crossing(*link));
            (*link, flows.filter_map(|(at, flow)| Some((at, slower(flow)?))).collect())
        };
        let mut all: Vec<_> = wanted.iter().map(one).collect();
        all.sort_unstable_by_key(|(link, _)| *link);
        Self(all)
    }

    /// A flow on a link.
    pub fn get(&self, links: &Links, link: u32, flow: u32) -> Option<Elsewhere> {
        let at = self.0.binary_search_by_key(&link, |(link, _)| *link).ok()?;
        let place = links.crossing(link).binary_search(&flow).ok()? as u32;
        let flows = &self.0[at].1;
        flows.binary_search_by_key(&place, |(place, _)| *place).ok().map(|found| flows[found].1)
    }
}

//! The scenario, which users write in TOML, as a Python object or with `--set`.
//!
//! All three have one format: a tree of tables that these types define. The JSON Schema is made from the same types
//! ([`schema`]), so it cannot differ. Quantities carry their units.
//!
//! This crate is separate from the simulator because a release compiles code that reads text for build speed, and code
//! that moves packets for run speed. The simulator checks whether a scenario's network can exist.

mod application;
mod capacity;
mod cells;
mod error;
#[cfg(feature = "full")]
mod from_toml;
mod graph_file;
mod impairments;
mod load;
mod outages;
mod patterns;
mod pfc;
pub mod rows;
mod scone;
mod sizes;
mod topology;
mod traffic;
mod weight;
pub mod wireless;

pub use application::{
    Application, DrawnPeriods, Jitter, MessageSizes, NamedMix, NoJitter, PacketSizes, Periods, WeightedSize,
};
pub use capacity::{Buffer, LinkRate, VaryingRate, check_rate};
pub use cells::{Cell, Mac, Station};
pub use error::ScenarioError;
#[cfg(feature = "full")]
pub use from_toml::tree as tree_of_toml;
pub use impairments::{BurstLoss, Delays, Detour, Impairments, LinkJitter};
pub use load::{FilesFrom, Format, MOST_BYTES, Tables, parts, read, value_of, with, without_nulls};
pub use outages::{Balance, OnFailure, Outage, Routing};
pub use patterns::{Collective, Incast, Pattern};
pub use pfc::{Pfc, PfcThresholds};
pub use scone::Scone;
pub use sizes::Sizes;
pub use topology::{Dumbbell, FatTree, Graph, LeafSpine, Link, ParkingLot, Police, Priority};
pub use traffic::{Access, Arrivals, FlowGroup, OneOrMany, Receiver, Web};
pub use weight::Weight;

use capacity::is_true;
use flowstamp_laws::tree::Value;
use flowstamp_laws::units::{Bytes, Time};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A whole experiment: a network, the flows on it, and what to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A name for titles and tables.
    #[serde(default)]
    pub name: String,
    /// The purpose of the scenario, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Simulated time.
    pub duration: Time,
    /// When statistics start. Series cover the whole run.
    #[serde(default)]
    pub warmup: Time,
    /// Every random choice follows from this and from stable names.
    #[serde(default = "one")]
    pub seed: u64,
    /// Size of a data packet on the wire.
    #[serde(default = "data_packet")]
    pub packet: Bytes,
    /// Bytes of headers in a data packet; the rest is payload. Flow sizes, application rates, goodput and delivered
    /// bytes count payload. Links, queues and windows count whole packets.
    #[serde(default = "headers")]
    pub header: Bytes,
    /// Size of an ack on the wire.
    #[serde(default = "ack_packet")]
    pub ack: Bytes,
    /// One bottleneck. Exactly one of `dumbbell`, `parking_lot`, `leaf_spine`, `fat_tree` and `graph` is given.
    pub dumbbell: Option<Dumbbell>,
    /// Several bottlenecks in a row.
    pub parking_lot: Option<ParkingLot>,
    /// A data-centre network of two stages.
    pub leaf_spine: Option<LeafSpine>,
    /// A data-centre network of three stages.
    pub fat_tree: Option<FatTree>,
    /// Any network.
    pub graph: Option<Graph>,
    /// Wireless cells. Their nodes belong to the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wireless: Vec<Cell>,
    /// Times during which links carry nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// How routes follow outages, and how packets are balanced over equal routes.
    #[serde(default, skip_serializing_if = "Routing::is_default")]
    pub routing: Routing,
    /// Groups of flows.
    #[serde(default)]
    pub flows: Vec<FlowGroup>,
    /// Values to sample over time.
    #[serde(default)]
    pub probes: Probes,
    /// Packets to record in `trace.pcapng` as they leave links, and frames on the air of cells.
    pub capture: Option<Capture>,
}

fn one() -> u64 {
    1
}
fn data_packet() -> Bytes {
    Bytes::new(1000) // Katabi 2002, section 5.1
}
/// Headers of IPv4 and TCP without options, which is an ack's size. A law's stamp on the wire is not included; the user
/// may add it.
fn headers() -> Bytes {
    ack_packet()
}
fn ack_packet() -> Bytes {
    Bytes::new(40)
}

impl Scenario {
    /// Payload of a full data packet, bytes.
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.packet.get().saturating_sub(self.header.get()).max(1)
    }

    /// The scenario as TOML, with every default.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Every type of the scenario serialises to TOML by construction.
        toml::to_string(self).unwrap_or_default()
    }

    /// The scenario as JSON, with every default. Nulls, which TOML does not have, are left out, so that the result is a
    /// valid scenario.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        load::without_nulls(serde_json::json!(self))
    }
}

/// Values to sample over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Probes {
    /// Sampling interval. Default: a hundredth of the duration.
    pub every: Option<Time>,
    /// Utilisation, queue, drops and marks of each router link.
    pub links: bool,
    /// Throughput of each group.
    pub groups: bool,
    /// Throughput, window and RTT of each long flow.
    pub flows: bool,
    /// Variables of router and queue laws.
    pub laws: bool,
    /// Share of time that each cell is busy; airtime, collisions, retries, data rate and MAC delay of each station.
    #[serde(skip_serializing_if = "is_true")]
    pub cells: bool,
}

impl Default for Probes {
    fn default() -> Self {
        Self { every: None, links: true, groups: true, flows: false, laws: false, cells: true }
    }
}

/// Packets to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Links whose departures are recorded, and cells whose frames are recorded as 802.11 with radiotap headers.
    /// Default: all cells, and all router links except the interfaces of cells.
    pub links: Option<Vec<String>>,
    /// Number of packets and frames after which recording ends.
    #[serde(default = "capture_packets")]
    pub packets: u32,
}

fn capture_packets() -> u32 {
    100_000
}

/// The JSON Schema of a scenario.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Scenario);
    schema.insert("title".to_owned(), "Flowstamp scenario".into());
    // Unset parameters are left out of scenarios, because TOML has no null.
    let no_nulls = |schema: &mut Schema| {
        if let Some(default) = schema.remove("default").map(load::without_nulls).filter(|d| !d.is_null()) {
            schema.insert("default".to_owned(), default);
        }
    };
    RecursiveTransform(no_nulls).transform(&mut schema);
    schema.to_value()
}

/// Extra data that a scenario names by path, read before the run so that the engine does no I/O.
pub type Files = BTreeMap<PathBuf, String>;

/// A scenario and the files that it names.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// Contents of traces, size distributions and lists of flows, by the path in the scenario.
    pub files: Files,
    /// The name of the source in messages.
    pub source: String,
    /// The text's values, with what has been set since.
    pub(crate) tree: Value,
    /// Where the links of a graph's file stand.
    pub(crate) places: graph_file::Places,
}

impl Loaded {
    /// Returns the error, but names the line of the graph's file if it is about a link of that file.
    #[must_use]
    pub fn in_file(&self, error: ScenarioError) -> ScenarioError {
        self.places.name(error)
    }

    /// Returns the scenario with this seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut same = self.clone();
        same.scenario.seed = seed;
        // The seed of a scenario from text fits into TOML's integers.
        if let Value::Table(tree) = &mut same.tree {
            tree.insert("seed", Value::Integer(seed as i64));
        }
        same
    }
}

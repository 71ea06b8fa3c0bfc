//! Reports on the pinned routers and their laws' state.

use super::pins::{SCONE, open_to_read, pinned_config, shown_name};
use super::program::{types, value_of};
use super::staged::{STAGED, is_on, settled};
use crate::bpffs;
use crate::law::{self, Law, bps};
use crate::path::monotonic_ns;
use crate::refusal::Refusal;
use flowstamp_laws::share::{OTHER, OWN};
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// State of one interface's router. Units are the suffixes of the names.
#[derive(Debug, Serialize)]
pub struct Report {
    pub interface: String,
    pub law: &'static Law,
    /// Whether packets still pass through it; false if the device is gone.
    pub attached: bool,
    /// Only for a law that uses a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_rate_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_rate_bps: Option<f64>,
    /// The law's variables, by the names of the simulator's probes.
    #[serde(flatten)]
    pub variables: BTreeMap<&'static str, f64>,
    pub queue_bytes: u64,
    pub queue_packets: u64,
    pub dropped_packets: u64,
    /// Only for a shared link.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    pub input_bytes: u64,
    pub decisions: u64,
    /// The last interval, and the lateness of decisions.
    pub interval_s: f64,
    pub late_mean_s: f64,
    pub late_max_s: f64,
}

/// State of a shared link, by the names of the simulator's probes.
#[derive(Debug, Serialize)]
pub struct Split {
    /// Whether `router share` runs. Otherwise the weights stay constant and the law's capacity is its
    /// weight's share.
    pub is_updated: bool,
    pub own_weight: f64,
    pub own_capacity_bps: f64,
    pub own_flows: f64,
    pub other_flows: f64,
    pub own_input_bps: f64,
    pub other_input_bps: f64,
    pub own_queue_bytes: u64,
    pub other_queue_bytes: u64,
    pub update_interval_s: f64,
    pub updates: u64,
    /// Whether the classes that `attach` made exist; a new root queueing discipline removes them.
    pub has_classes: bool,
}

impl Split {
    fn of(s: &types::fs_share, link: &types::fs_link) -> Self {
        let is_updated = monotonic_ns() < s.until_ns;
        Self {
            is_updated,
            own_weight: s.own_weight_q32 as f64 / 4_294_967_296.0,
            own_capacity_bps: bps(link.own_capacity_q16 as f64),
            own_flows: s.flows_q16[OWN] as f64 / 65536.0,
            other_flows: s.flows_q16[OTHER] as f64 / 65536.0,
            own_input_bps: bps(s.input_q16[OWN] as f64),
            other_input_bps: bps(s.input_q16[OTHER] as f64),
            own_queue_bytes: link.queue_bytes,
            other_queue_bytes: link.other_queue_bytes,
            update_interval_s: s.interval_ns as f64 / 1e9,
            updates: s.updates,
            has_classes: link.without_classes == 0,
        }
    }
}

/// The report on the router pinned under this name; `None` if there is none, or if another version pinned it.
fn report(root: &Path, name: &str) -> Option<Report> {
    let directory = settled(&root.join(name));
    let state = open_to_read(&directory.join("state")).ok()?;
    if state.value_size() as usize != size_of::<types::fs_link>() {
        return None;
    }
    let bytes = state.lookup(&0u32.to_ne_bytes(), MapFlags::LOCK).ok()??;
    let (c, s): (_, types::fs_link) = (&pinned_config(&directory)?, value_of(&bytes)?);
    let law = law::numbered(c.law)?;
    let share = open_to_read(&directory.join("share")).ok()?;
    let split = share.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
    let split = (c.share != 0).then(|| Some(Split::of(&value_of(&split)?, &s))).flatten();
    let capacity_bps = split.as_ref().map_or(bps(c.link_rate_q16 as f64), |s: &Split| s.own_capacity_bps);
    Some(Report {
        interface: shown_name(name),
        law,
        attached: is_on(&directory, None),
        link_rate_bps: (!law.blind).then(|| bps(c.link_rate_q16 as f64)),
        target_rate_bps: (!law.blind).then(|| capacity_bps * c.eta_q32 as f64 / 4_294_967_296.0),
        variables: law.variables.iter().map(|v| (v.name, (v.of)(c, &s))).collect(),
        queue_bytes: s.queue_bytes,
        queue_packets: s.queue_packets,
        dropped_packets: s.dropped_packets,
        split,
        input_bytes: (law.input_bytes)(&s),
        decisions: s.decisions,
        interval_s: s.interval_ns as f64 / 1e9,
        late_mean_s: s.late_sum_ns as f64 / 1e9 / s.decisions.max(1) as f64,
        late_max_s: s.late_max_ns as f64 / 1e9,
    })
}

/// Reports on all routers, sorted by name.
pub fn reports(root: &Path) -> anyhow::Result<Vec<Report>> {
    bpffs::check_owners(root)?;
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        // The directory exists only while it holds pins.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let text = format!("{} cannot be read ({error}); it needs root, or CAP_BPF", root.display());
            return Err(Refusal(text).into());
        }
    };
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_suffix(STAGED).map(str::to_owned).unwrap_or(name);
        (!name.ends_with(SCONE)).then_some(name)
    };
    let mut names: Vec<_> = entries.flatten().filter_map(name).collect();
    names.sort();
    names.dedup();
    Ok(names.iter().filter_map(|name| report(root, name)).collect())
}

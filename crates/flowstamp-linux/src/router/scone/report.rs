//! Reports on the pinned network elements of SCONE.

use super::types;
use crate::bpf::value_of;
use crate::router::pins::{SCONE, open_to_read, shown_name};
use crate::router::staged::{STAGED, is_on, settled};
use flowstamp_wire::scone::Signal;
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;
use std::path::Path;

/// State of one interface's network element. Units are the suffixes of the names.
#[derive(Debug, Default, Serialize)]
pub struct Element {
    #[serde(skip)]
    pub interface: String,
    /// Whether packets still pass through it; false if the device is gone.
    pub attached: bool,
    /// Advice for all flows, rounded down to the scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice_bps: Option<u64>,
    /// Number of prefixes with advice of their own.
    pub prefixes: u32,
    /// Whether the law gives advice. It does as soon as it knows an RTT.
    pub follows_law: bool,
    /// Advice from the law, its lowest, and the mean that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law_advice_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law_least_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law_mean_bps: Option<u64>,
    /// Whether flows over their advice are limited.
    pub enforced: bool,
    #[serde(flatten)]
    pub counts: Counts,
}

/// Sums over all CPUs since the element was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Datagrams with a SCONE packet.
    pub packets: u64,
    /// Those whose signal was lowered, and those whose signal was as low already.
    pub lowered_packets: u64,
    pub kept_packets: u64,
    /// Those left unchanged because the flow's datagrams had been changed often enough in this period.
    pub spared_packets: u64,
    /// Those without advice, and those of flows for which the table had no place.
    pub unadvised_packets: u64,
    pub untracked_packets: u64,
    /// Flows with SCONE packets, and flows that were over their advice. A flow that was and then obeyed counts again.
    pub flows: u64,
    pub flows_over: u64,
    /// Periods of flows in which they were monitored, and those over the advice.
    pub periods: u64,
    pub periods_over: u64,
    /// Frames that enforcement dropped.
    pub dropped_packets: u64,
}

impl Counts {
    fn add(&mut self, one: &types::fs_scone_counts) {
        self.packets += one.packets;
        self.lowered_packets += one.lowered;
        self.kept_packets += one.kept;
        self.spared_packets += one.spared;
        self.unadvised_packets += one.unadvised;
        self.untracked_packets += one.untracked;
        self.flows += one.flows;
        self.flows_over += one.flows_over;
        self.periods += one.periods;
        self.periods_over += one.periods_over;
        self.dropped_packets += one.dropped;
    }
}

impl Element {
    /// Says so if the law's rate is below the lowest advice.
    fn why_least(&self) -> String {
        match (self.law_least_bps, self.law_mean_bps) {
            (Some(least), Some(mean)) if mean < least => {
                format!(" (the least, because the law's mean is {:.3} Mb/s)", mean as f64 / 1e6)
            }
            _ => String::new(),
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mbps = |bps: u64| format!("{:.3} Mb/s", bps as f64 / 1e6);
        let mut advice = Vec::new();
        advice.extend(self.advice_bps.map(mbps));
        advice.extend((self.prefixes > 0).then(|| format!("that of {} prefixes", self.prefixes)));
        advice
            .extend(self.law_advice_bps.map(|bps| format!("{} from the law{}", mbps(bps), self.why_least())));
        if self.follows_law && self.law_advice_bps.is_none() {
            advice.push("none from the law, which knows no RTT yet (--set initial_rtt=50ms)".into());
        }
        let lowest = if advice.len() > 1 { "the lowest of " } else { "" };
        let c = &self.counts;
        write!(
            f,
            "{}: scone {}, advice {lowest}{}; packets: {}, {} lowered, {} as low, {} spared, {} without advice, {} untracked; \
             flows: {}; periods over the advice: {} of {}{}",
            self.interface,
            if self.attached { "attached" } else { "of an interface that is gone" },
            advice.join(", "),
            c.packets,
            c.lowered_packets,
            c.kept_packets,
            c.spared_packets,
            c.unadvised_packets,
            c.untracked_packets,
            c.flows,
            c.periods_over,
            c.periods,
            if self.enforced { format!("; dropped: {}", c.dropped_packets) } else { String::new() },
        )
    }
}

/// The configuration of the element pinned in `directory`.
pub fn pinned_config(directory: &Path) -> Option<types::fs_scone_config> {
    let map = open_to_read(&directory.join("config")).ok()?;
    value_of(&map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??)
}

/// The report on the element pinned in this directory; `None` if another version pinned it.
fn element(directory: &Path, name: &str) -> Option<Element> {
    let directory = settled(directory);
    let config = pinned_config(&directory)?;
    let state = open_to_read(&directory.join("state")).ok()?;
    let counts = open_to_read(&directory.join("counts")).ok()?;
    if state.value_size() as usize != size_of::<types::fs_scone_state>()
        || counts.value_size() as usize != size_of::<types::fs_scone_counts>()
    {
        return None;
    }
    let law: types::fs_scone_state = value_of(&state.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??)?;
    let mut sum = Counts::default();
    for cpu in counts.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?? {
        sum.add(&value_of(&cpu)?);
    }
    let bps = |signal: u32| Signal::from_bits(signal as u8)?.bits_per_sec();
    let has_law = config.offer_at != 0;
    Some(Element {
        interface: shown_name(name),
        attached: is_on(&directory, None),
        advice_bps: bps(config.signal),
        prefixes: config.prefixes,
        follows_law: has_law,
        law_advice_bps: has_law.then(|| bps(law.law_signal)).flatten(),
        law_least_bps: has_law.then(|| bps(config.least)).flatten(),
        law_mean_bps: (has_law && law.mean.count > 0).then_some(law.law_rate),
        enforced: config.enforce != 0,
        counts: sum,
    })
}

/// Reports on all elements, sorted by name. The caller has checked the directory's owners.
pub fn elements(root: &Path) -> Vec<Element> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Some(name.strip_suffix(STAGED).unwrap_or(&name).strip_suffix(SCONE)?.to_owned())
    };
    let mut names: Vec<_> = entries.flatten().filter_map(name).collect();
    names.sort();
    names.dedup();
    names.iter().filter_map(|name| element(&root.join(format!("{name}{SCONE}")), name)).collect()
}

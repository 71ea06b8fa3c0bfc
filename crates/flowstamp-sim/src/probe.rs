//! Samples of links, groups, flows, laws and cells over time.

#[cfg(feature = "parallel")]
mod parts;

use crate::fabric::Fabric;
use crate::host::Hosts;
use crate::link::{Laws, LinkStats};
use crate::medium::dcf::Stats;
use crate::results::{Series, SeriesKey};
use crate::scenario::{Probes, Scenario};
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::Time;

/// Number of samples in a run whose scenario sets no interval.
const DEFAULT_SAMPLES: u64 = 100;
/// Number of series of a link.
#[cfg(feature = "parallel")]
const LINK_METRICS: usize = 5;

/// Takes samples at a fixed interval.
#[derive(Clone, Debug)]
pub struct Probe {
    every: Time,
    what: Probes,
    packet_bytes: f64,
    series: Series,
    /// Counters at the last sample.
    links: Vec<LinkMark>,
    groups: Vec<u64>,
    /// Bytes of each sample of a group, where this is the probe of a part of the network.
    group_bytes: Option<Vec<u64>>,
    flows: Vec<u64>,
    stations: Vec<Stats>,
    /// Busy time of each cell.
    cells: Vec<Time>,
    /// The series' keys exist: the first sample makes them.
    keys_made: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct LinkMark {
    sent: f64,
    drops: u64,
    marks: u64,
    integral: u128,
}

impl Probe {
    /// Makes the probe that the scenario asks for; `None` if it asks for nothing.
    pub fn new(scenario: &Scenario, net: &Fabric, hosts: &Hosts) -> Option<Self> {
        let what = scenario.probes.clone();
        let cells = what.cells && net.cells().stations().next().is_some();
        if !(what.links || what.groups || what.flows || what.laws || cells) {
            return None;
        }
        let every = what.every.unwrap_or(Time::from_ps((scenario.duration / DEFAULT_SAMPLES).as_ps().max(1)));
        Some(Self {
            every,
            what,
            packet_bytes: scenario.packet.as_f64(),
            series: Series::default(),
            links: vec![LinkMark::default(); net.routers().count()],
            groups: vec![0; hosts.groups.len()],
            group_bytes: None,
            flows: vec![0; hosts.flows.len()],
            stations: vec![Stats::default(); net.cells().stations().count()],
            cells: vec![Time::ZERO; net.cells().cells(net.now).count()],
            keys_made: false,
        })
    }

    /// The sampling interval.
    #[must_use]
    pub fn every(&self) -> Time {
        self.every
    }

    /// The samples so far.
    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The samples.
    #[must_use]
    pub fn into_series(self) -> Series {
        self.series
    }

    /// Follows the restart of a link's counters, which stood at `sent` and `stats`. The part of the current interval
    /// before the restart is carried over.
    pub fn restart_link(&mut self, number: usize, sent: f64, stats: &LinkStats) {
        let mark = &mut self.links[number];
        // Wrapping arithmetic, because the differences of counters wrap too.
        *mark = LinkMark {
            sent: mark.sent - sent,
            drops: mark.drops.wrapping_sub(stats.drops),
            marks: mark.marks.wrapping_sub(stats.marks),
            integral: mark.integral.wrapping_sub(stats.queue_times.integral()),
        };
    }

    /// Takes one sample of everything. Returns the time of the next one.
    pub fn sample(&mut self, net: &Fabric, hosts: &Hosts) -> Time {
        let now = net.now;
        let probes = &self.what;
        let mut rows = Rows {
            series: &mut self.series,
            at: 0,
            name_keys: !self.keys_made,
            time_s: now.as_secs_f64(),
            every: self.every,
        };
        if probes.links {
            rows.links(net, &mut self.links);
        }
        if probes.groups {
            rows.groups(hosts, &mut self.groups, self.group_bytes.as_mut());
        }
        if probes.flows {
            rows.flows(hosts, &mut self.flows, self.packet_bytes);
        }
        if probes.laws {
            for (port, _) in net.routers() {
                let name = &port.laws().name;
                port.variables(&mut |metric, value| rows.push("law", name, metric, value));
            }
        }
        if probes.cells {
            rows.cells(net, &mut self.cells, &mut self.stations);
        }
        self.keys_made = true;
        now + self.every
    }
}

/// Mean goodput over a sampling interval, bits per second.
fn goodput(bytes: u64, every: Time) -> f64 {
    bytes as f64 * 8.0 / every.as_secs_f64()
}

/// Appends the rows of one sample. Each sample has the same keys in the same order.
struct Rows<'a> {
    series: &'a mut Series,
    at: u32,
    name_keys: bool,
    time_s: f64,
    /// The sampling interval.
    every: Time,
}

impl Rows<'_> {
    /// Samples links: the difference to `marks`, which are then updated.
    fn links(&mut self, net: &Fabric, marks: &mut [LinkMark]) {
        for ((port, line), mark) in net.routers().zip(marks) {
            let Laws { name, stats, capacity, .. } = port.laws();
            let sent = port.sent_bytes(line, net.now);
            let integral = stats.queue_times.integral();
            let now = LinkMark { sent, drops: stats.drops, marks: stats.marks, integral };
            let before = std::mem::replace(mark, now);
            let room = capacity.bytes_between(net.now.saturating_sub(self.every), net.now);
            let share = if room > 0.0 { (sent - before.sent).max(0.0) / room } else { 0.0 };
            let queued = integral.wrapping_sub(before.integral) as f64 / self.every.as_ps() as f64;
            self.push("link", name, "utilization", share);
            self.push("link", name, "queue_bytes", port.laws().queue_bytes() as f64);
            self.push("link", name, "mean_queue_bytes", queued);
            self.push("link", name, "drops", now.drops.wrapping_sub(before.drops) as f64);
            self.push("link", name, "marks", now.marks.wrapping_sub(before.marks) as f64);
        }
    }

    fn groups(&mut self, hosts: &Hosts, marks: &mut [u64], mut all: Option<&mut Vec<u64>>) {
        for (group, mark) in hosts.groups.iter().zip(marks) {
            let bytes = group.delivered_bytes - std::mem::replace(mark, group.delivered_bytes);
            self.push("group", &group.name, "goodput_bps", goodput(bytes, self.every));
            if let Some(all) = &mut all {
                all.push(bytes);
            }
        }
    }

    /// Samples planned flows, which keep their slots. Flows that arrive during the run are sampled only as a group.
    fn flows(&mut self, hosts: &Hosts, marks: &mut [u64], packet_bytes: f64) {
        for (flow, mark) in hosts.flows.iter().zip(marks) {
            let record = &hosts.records[flow.record as usize];
            let name = format!("{}.{}", hosts.groups[flow.group as usize].name, record.index);
            let bytes = flow.delivered_bytes - std::mem::replace(mark, flow.delivered_bytes);
            self.push("flow", &name, "goodput_bps", goodput(bytes, self.every));
            self.push("flow", &name, "cwnd_packets", flow.law.cwnd() / packet_bytes);
            self.push("flow", &name, "rtt_s", flow.sender.srtt().as_secs_f64());
        }
    }

    fn cells(&mut self, net: &Fabric, cells: &mut [Time], stations: &mut [Stats]) {
        let seconds = self.every.as_secs_f64();
        let share = |time: Time| time.as_secs_f64() / seconds;
        for ((name, medium, _), before) in net.cells().cells(net.now).zip(cells) {
            let busy = medium.busy - std::mem::replace(before, medium.busy);
            self.push("cell", name, "busy", share(busy));
        }
        for (view, before) in net.cells().stations().zip(stations) {
            let (cell, node) = view.name;
            let (name, stats) = (format!("{cell}.{node}"), view.stats);
            let before = std::mem::replace(before, stats);
            let done = (stats.sent + stats.given_up) - (before.sent + before.given_up);
            let delay = (stats.delay - before.delay).as_secs_f64() / done.max(1) as f64;
            self.push("station", &name, "airtime", share(stats.airtime - before.airtime));
            self.push("station", &name, "collisions", (stats.collisions - before.collisions) as f64);
            self.push("station", &name, "retries", (stats.retries - before.retries) as f64);
            self.push("station", &name, "mac_delay_s", delay);
            if let Some(rate) = view.rate {
                self.push("station", &name, "rate_bps", rate.bps());
            }
        }
    }

    fn push(&mut self, kind: &'static str, name: &str, metric: &str, value: f64) {
        if self.name_keys {
            self.series.keys.push(SeriesKey { kind, name: name.to_owned(), metric: metric.to_owned() });
        }
        self.series.time_s.push(self.time_s);
        self.series.key.push(self.at);
        self.series.value.push(value);
        self.at += 1;
    }
}

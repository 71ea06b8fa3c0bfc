//! Delays of each flow on each link, and the flow's times on the whole path.

use super::flows::{CrossingFlow, Elsewhere, Flow};
use crate::host::{Done, Outcome, Record};
use crate::release::Release;
use crate::results::FlowRow;
use flowstamp_laws::units::Time;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Times of one flow on one link, in picoseconds. Their sum `queued + sender` is its completion time there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Hop {
    /// Mean time that the flow's packets waited at the link.
    queued: u64,
    /// Time that the sender took.
    sender: u64,
    /// Ideal completion time.
    ideal: u64,
}

impl From<(u64, u64, u64)> for Hop {
    fn from((queued, sender, ideal): (u64, u64, u64)) -> Self {
        Self { queued, sender, ideal }
    }
}

impl From<Hop> for (u64, u64, u64) {
    fn from(hop: Hop) -> Self {
        (hop.queued, hop.sender, hop.ideal)
    }
}

/// One flow's results on one link. Times are picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct OnLink {
    /// Number of the flow.
    flow: u32,
    /// Index of the link among the router links of the flow's path.
    place: u32,
    /// RTT of the empty path, and what the link adds to the smallest and to the last sample.
    rtt: u64,
    least: u64,
    last: u64,
    /// Bytes delivered.
    delivered: u64,
    retransmissions: u32,
    timeouts: u32,
    /// If the flow ended: its times, and the time from the last byte's arrival to its ack.
    ended: Option<(Hop, u64)>,
    /// When the flow's packets would have left the host to cross the link as they did, without a wait before it.
    release: Release,
}

/// The fields of [`OnLink`] in their order. Without names they are a third as long.
type Fields = (u32, u32, [u64; 4], u32, u32, Option<(Hop, u64)>, Release);

impl From<Fields> for OnLink {
    fn from(fields: Fields) -> Self {
        let (flow, place, [rtt, least, last, delivered], retransmissions, timeouts, ended, release) = fields;
        Self { flow, place, rtt, least, last, delivered, retransmissions, timeouts, ended, release }
    }
}

impl From<OnLink> for Fields {
    fn from(on: OnLink) -> Self {
        let times = [on.rtt, on.least, on.last, on.delivered];
        (on.flow, on.place, times, on.retransmissions, on.timeouts, on.ended, on.release)
    }
}

impl OnLink {
    /// The results of a flow whose packets waited for this time on average, and left the link at these times.
    pub fn of(row: &FlowRow, (waited, left): (Time, Release), crossing: &CrossingFlow) -> Self {
        let rtt = crossing.rtt.as_ps();
        let release = left.since(crossing.before);
        let above = |sample: Option<f64>| sample.map_or(0, |sample| ps(sample).saturating_sub(rtt));
        let ended = row.fct_s.zip(row.ideal_fct_s.get()).map(|(fct, ideal)| {
            let ideal = ps(ideal);
            let late = ps(fct).saturating_sub(ideal);
            let queued = waited.as_ps().min(late);
            let sender = ideal
                + crossing.elsewhere.as_ref().map_or(late - queued, |elsewhere| {
                    let after = release.last().saturating_sub(elsewhere.release.last()).as_ps();
                    let alone = elsewhere.slowest.map(|time| time.saturating_sub(ideal));
                    of_sender(late, queued, after, alone)
                });
            let acked = row.fct_sender_s.get().map_or(0, |sender| ps(sender - fct));
            (Hop { queued, sender, ideal }, acked)
        });
        Self {
            flow: crossing.flow,
            place: crossing.place,
            rtt,
            least: above(row.min_rtt_s.get()),
            last: above(row.srtt_s.get()),
            delivered: row.delivered_bytes,
            retransmissions: row.retransmissions,
            timeouts: row.timeouts,
            ended,
            release,
        }
    }
}

/// One flow's results on all links, apart from its delays. No value depends on the order of the links.
#[derive(Clone, Copy, Debug)]
struct Crossed {
    /// Index of the flow's first hop.
    first: usize,
    /// Largest time from the last byte's arrival to its ack, picoseconds.
    acked: u64,
    /// RTT of the empty path, picoseconds, and what the links add to the smallest and to the last sample.
    rtt: u64,
    least: u64,
    last: u64,
    /// Bytes delivered on the link that delivered least.
    delivered: u64,
    retransmissions: u32,
    timeouts: u32,
    /// Number of links on which the flow did not end.
    open: u32,
}

/// A link on which a flow's sender takes long: its time, picoseconds, the link's place, and when the data come from there.
type Slow = ((u64, Reverse<u32>), Release);

/// Returns `S - ideal` for a flow with a feed, in the symbols of [`crate::by_links`]. All times are picoseconds.
///
/// `late` is `F - ideal`, `queued` is Q, and `after` is A. `alone` is `S1 - ideal` if no other link was slower in the first
/// pass.
fn of_sender(late: u64, queued: u64, after: u64, alone: Option<u64>) -> u64 {
    let low = late.min(after).saturating_sub(queued);
    alone.map_or(low, |alone| alone.clamp(low, late - queued))
}

/// Results of all flows on all links.
#[derive(Debug)]
pub struct Delays {
    hops: Vec<Hop>,
    flows: Vec<Crossed>,
    /// The two slowest links of each flow, if there is another pass.
    slowest: Vec<[Slow; 2]>,
}

fn ps(seconds: f64) -> u64 {
    Time::from_secs_f64(seconds.max(0.0)).as_ps()
}

impl Delays {
    /// Memory for each flow, and for each link on its path, bytes: the mean of both passes.
    pub const PER_FLOW: f64 = (size_of::<Crossed>() + size_of::<Slow>()) as f64;
    pub const PER_HOP: f64 = size_of::<Hop>() as f64;

    /// Makes empty results of flows. `places` is the number of router links on each flow's path. `more` says whether there is
    /// another pass.
    pub fn new(places: impl Iterator<Item = usize>, more: bool) -> Self {
        let (mut first, mut flows) = (0, Vec::new());
        for places in places {
            flows.push(Crossed {
                first,
                acked: 0,
                rtt: 0,
                least: 0,
                last: 0,
                delivered: u64::MAX,
                retransmissions: 0,
                timeouts: 0,
                open: 0,
            });
            first += places;
        }
        let slowest = vec![<[Slow; 2]>::default(); if more { flows.len() } else { 0 }];
        Self { hops: vec![Hop::default(); first], flows, slowest }
    }

    /// Adds a flow's results on one link.
    pub fn add(&mut self, on: &OnLink) {
        let flow = &mut self.flows[on.flow as usize];
        flow.rtt = flow.rtt.max(on.rtt);
        flow.last += on.last;
        flow.least += on.least;
        flow.retransmissions += on.retransmissions;
        flow.timeouts += on.timeouts;
        flow.delivered = flow.delivered.min(on.delivered);
        let Some((hop, acked)) = on.ended else {
            flow.open += 1;
            return;
        };
        flow.acked = flow.acked.max(acked);
        if let Some([first, second]) = self.slowest.get_mut(on.flow as usize) {
            let slow = ((hop.sender, Reverse(on.place)), on.release);
            if slow.0 > first.0 {
                (*first, *second) = (slow, *first);
            } else if slow.0 > second.0 {
                *second = slow;
            }
        }
        self.hops[flow.first + on.place as usize] = hop;
    }

    /// A flow on the link at `place` in the next pass. `None` if no other link slows the flow down, or if the flow did not end
    /// on each link.
    pub fn elsewhere(&self, flow: u32, place: u32) -> Option<Elsewhere> {
        let hops = self.hops(flow as usize)?;
        let ideal = hops.iter().map(|hop| hop.ideal).min()?;
        let [first, second] = self.slowest.get(flow as usize)?;
        let ((time, Reverse(_)), release) = if first.0.1 == Reverse(place) { second } else { first };
        let here = hops.get(place as usize)?.sender;
        (*time > ideal).then_some(Elsewhere { release: *release, slowest: (here >= *time).then_some(here) })
    }

    /// A flow's hops; `None` if it did not end on each of them, or has none.
    fn hops(&self, number: usize) -> Option<&[Hop]> {
        let flow = &self.flows[number];
        let end = self.flows.get(number + 1).map_or(self.hops.len(), |next| next.first);
        let hops = &self.hops[flow.first..end];
        (flow.open == 0 && !hops.is_empty()).then_some(hops)
    }

    /// A flow's completion time on a path with this ideal time; `None` if it did not end on each link.
    fn time(&self, number: usize, ideal: Time) -> Option<Time> {
        let hops = self.hops(number)?;
        let queued: u64 = hops.iter().map(|hop| hop.queued).sum();
        let sender = hops.iter().map(|hop| hop.sender).max()?;
        Some(Time::from_ps(queued + sender.max(ideal.as_ps())))
    }

    /// A flow's record and outcome in a run to `end` whose warm-up ends at `warmup`. `ideal` is the ideal completion
    /// time on the whole path, `None` if it has none.
    pub fn ended(
        &self,
        number: usize,
        flow: &Flow,
        ideal: Option<Time>,
        (warmup, end): (Time, Time),
    ) -> (Record, Outcome) {
        let crossed = &self.flows[number];
        let mut record = Record::new(flow.group, flow.index, flow.start, Some(flow.size));
        if !flow.runs {
            return (record, Outcome::NONE);
        }
        let arrived = ideal.and_then(|ideal| self.time(number, ideal)).map(|time| flow.start + time);
        let arrived = arrived.filter(|arrived| *arrived <= end);
        let acked = arrived.map(|at| at + Time::from_ps(crossed.acked)).filter(|at| *at <= end);
        record.route = flow.routes.data;
        record.end = arrived.unwrap_or(Time::MAX);
        let least = crossed.delivered.min(flow.size.saturating_sub(1));
        let done = Done {
            delivered_bytes: if arrived.is_some() { flow.size } else { least },
            retransmissions: crossed.retransmissions,
            timeouts: crossed.timeouts,
        };
        if flow.start < warmup {
            record.at_warmup = done.by(flow.start, warmup, arrived.unwrap_or(end));
        }
        let outcome = Outcome {
            done,
            acknowledged: acked.unwrap_or(Time::MAX),
            min_rtt: Time::from_ps(crossed.rtt + crossed.least),
            srtt: Time::from_ps(crossed.rtt + crossed.last),
            switched: Time::MAX,
        };
        (record, outcome)
    }
}

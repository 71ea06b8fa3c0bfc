//! Simulations of single links, and of a network whose flows' outcomes are known from those.

use super::{Simulation, Stopped};
use crate::Progress;
use crate::capture::{Capture, User, Waited};
use crate::host::{Outcome, Record};
use crate::release::Release;
use crate::results::{DelayCurve, FlowRow, LinkSummary, Results};
use crate::summary;
use flowstamp_laws::units::Time;
use std::ops::ControlFlow;
use std::time::Duration;

/// The results of a run of a single link.
pub struct LinkRun {
    /// The link.
    pub summary: LinkSummary,
    /// Distribution of its queueing delay.
    pub waits: DelayCurve,
    /// The flows, planned ones first, then the listed ones by group and row.
    pub flows: Vec<FlowRow>,
    /// How long a packet of each flow waited on average, and when the packets left, counted from the flow's start.
    pub waited: Vec<(Time, Release)>,
    /// Number of packet-hops.
    pub packet_hops: u64,
    /// Number of events handled.
    pub events: u64,
    /// CPU time.
    pub cpu: Duration,
}

impl Simulation {
    /// Runs a network of which only router link 0 matters to the end.
    pub(crate) fn run_link(
        mut self,
        tick: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<LinkRun, Stopped> {
        self.net.capture = Capture::of_waits();
        self.net.laws_mut(0).captured = true;
        for planned in 0..self.hosts.flows.len() as u32 {
            let packets = self.hosts.packets_of(planned);
            self.net.capture.open(planned, User { record: planned, packets, ..User::default() });
        }
        self.advance(self.scenario.duration, tick)?;
        self.net.settle();
        let (packet_hops, events, cpu) = (self.net.packet_hops(), self.events, self.took.1);
        let mut waited = self.net.capture.take_waits();
        // Flows at the end may have sent nothing.
        waited.resize(self.hosts.records.len(), Waited::default());
        let flows = waited.iter().zip(&self.hosts.records);
        let waited = flows.map(|(flow, record)| (flow.mean(), flow.left.since(record.start))).collect();
        let (summary, waits, flows) = summary::of_link(self.finished());
        Ok(LinkRun { summary, waits, flows, waited, packet_hops, events, cpu })
    }

    /// The results as if the flows had run with these outcomes.
    pub(crate) fn with_outcomes(mut self, records: Vec<Record>, outcomes: Vec<Outcome>) -> Results {
        self.net.now = self.scenario.duration;
        self.hosts.replace(records, outcomes, self.scenario.warmup, self.net.now);
        self.finish()
    }
}

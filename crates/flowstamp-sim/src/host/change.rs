//! What changes in mid-run: starts and stops, the laws of senders that are told, routes, and counts that begin anew.

use super::{Done, Hosts};
use crate::delays::Delays;
use crate::events::Class;
use crate::fabric::Fabric;
use crate::plan::{Path, Reroute};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::sender::{FlowChange, SenderLaw};
use flowstamp_laws::units::Time;

impl Hosts {
    /// The flows of a group stop at `stop`, which is yet to come, as was their stop before.
    pub fn set_stop(&mut self, net: &mut Fabric, group: usize, stop: Time) {
        self.groups[group].stop = stop;
        for web in self.web.iter_mut().filter(|web| web.group as usize == group) {
            web.stop = stop;
        }
        if self.groups[group].web {
            return; // their stop ends arrivals, not flows
        }
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if flow.group as usize == group && flow.started {
                let stop = self.groups[group].stops(&self.records[flow.record as usize]);
                flow.application.arm(stop, &mut net.events, Class::Application, number as u32);
            }
        }
    }

    /// The law of a group's flows, which is told, has these parameters from now on.
    pub fn set_law(&mut self, net: &mut Fabric, group: usize, law: &SenderSpec) {
        self.groups[group].laws[0].spec = law.clone();
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.group as usize == group {
                flow.law.on_change(FlowChange::Params(law));
                self.send(net, number as u32); // which more may allow now
            }
        }
    }

    /// A flow that is known before the run and has not begun starts at `start`, which is yet to come.
    pub fn set_start(&mut self, net: &mut Fabric, number: usize, start: Time) {
        let flow = &mut self.flows[number];
        self.records[flow.record as usize].start = start;
        flow.application.set(start, &mut net.events, Class::Application, number as u32);
    }

    /// Flows take other routes from now on, those to come too. Packets under way keep theirs.
    pub fn reroute(&mut self, net: &Fabric, reroute: &Reroute) {
        let follow = |path: &mut Path| {
            let to = [path.data, path.acks].map(|route| reroute.of(route));
            let before = *path;
            *path = Path { data: to[0].unwrap_or(path.data), acks: to[1].unwrap_or(path.acks) };
            before != *path
        };
        for flow in &mut self.flows {
            let before = flow.path.data;
            if follow(&mut flow.path) && flow.falls_back && flow.started {
                // Routers are counted in packets of both ways for a while: more of them than told are none that is unknown.
                let hops = net.hops(before).min(net.hops(flow.path.data));
                flow.law.on_change(FlowChange::Hops(hops));
            }
        }
        self.web.iter_mut().flat_map(|web| web.paths.iter_mut().flatten()).for_each(|path| {
            follow(path);
        });
    }

    /// Warm-up ends: what was delivered before does not count.
    pub fn end_warmup(&mut self, now: Time) {
        for group in &mut self.groups {
            group.delivered_at_warmup = group.delivered_bytes;
            group.tally.at_warmup = group.tally.now;
            group.tally.times = Delays::default();
            group.active.restart(now);
        }
        self.delays.fill(Delays::default());
        for (record, outcome) in self.records.iter_mut().zip(&self.outcomes) {
            record.at_warmup = outcome.done;
        }
        for flow in self.flows.iter().filter(|f| f.started) {
            self.records[flow.record as usize].at_warmup = Done::of(flow);
        }
    }
}

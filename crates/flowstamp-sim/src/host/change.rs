//! Changes to hosts during a run: starts and stops, parameters of told laws, routes, and statistics at the end of
//! warm-up.

use super::{Done, Hosts};
use crate::delays::Delays;
use crate::events::Class;
use crate::fabric::Fabric;
use crate::plan::{FlowRoutes, Reroute};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::sender::{FlowChange, SenderLaw};
use flowstamp_laws::units::Time;

impl Hosts {
    /// Sets the stop of a group's flows. Both the old and the new stop must be in the future.
    pub fn set_stop(&mut self, net: &mut Fabric, group: usize, stop: Time) {
        self.groups[group].stop = stop;
        for plan in self.arrivals.plans.iter_mut().filter(|plan| plan.group as usize == group) {
            plan.stop = stop;
        }
        if self.groups[group].arriving {
            return; // their stop ends arrivals, not flows
        }
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if flow.group as usize == group && flow.started {
                let stop = self.groups[group].stops(&self.records[flow.record as usize]);
                flow.application.arm(stop, &mut net.events, Class::Application, number as u32);
            }
        }
    }

    /// Sets the parameters of a group's law. The law must be one that is told.
    pub fn set_law(&mut self, net: &mut Fabric, group: usize, law: &SenderSpec) {
        let told = &mut self.groups[group].laws[0];
        (told.spec, told.traits) = (law.clone(), law.traits());
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.group as usize == group {
                flow.law.on_change(FlowChange::Params(law));
                self.send(net, number as u32); // the new parameters may allow more
            }
        }
    }

    /// Sets the start of a planned flow that has not begun. The new start must be in the future.
    pub fn set_start(&mut self, net: &mut Fabric, number: usize, start: Time) {
        let flow = &mut self.flows[number];
        self.records[flow.record as usize].start = start;
        flow.application.set(start, &mut net.events, Class::Application, number as u32);
    }

    /// Moves flows to other routes, including flows still to arrive. Packets in flight keep their routes.
    pub fn reroute(&mut self, net: &Fabric, reroute: &Reroute) {
        let follow = |routes: &mut FlowRoutes| {
            let to = [routes.data, routes.acks].map(|route| reroute.of(route));
            let before = *routes;
            *routes = FlowRoutes { data: to[0].unwrap_or(routes.data), acks: to[1].unwrap_or(routes.acks) };
            before != *routes
        };
        let sizes = [self.packet_bytes, self.ack_bytes];
        for (slot, flow) in self.flows.iter_mut().enumerate() {
            let follows = follow(&mut flow.routes);
            if let Some(balancer) = self.balancer.as_mut().filter(|_| follows) {
                balancer.follow(slot, flow.routes);
            }
            if follows && flow.started {
                flow.law.on_change(FlowChange::Path(net.path(flow.routes, sizes)));
            }
        }
        self.arrivals.plans.iter_mut().flat_map(|plan| plan.routes.iter_mut().flatten()).for_each(|routes| {
            follow(routes);
        });
    }

    /// Ends warm-up: deliveries before it do not count.
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
        #[cfg(feature = "full")]
        self.videos_at_warmup(now);
    }
}

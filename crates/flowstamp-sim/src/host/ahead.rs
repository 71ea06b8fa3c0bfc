//! Hosts that run ahead of the event loop.
//!
//! A packet on an access link to a host is certain to arrive, at a known time. The host can handle it before the event
//! loop reaches that time, without an event, if nothing in between affects or observes the result:
//!
//! - the host's packets enter an access link that no other host uses, or only receivers that get their data from the
//!   same link and so send in its order ([`sides`]);
//! - no timer of the flow is due before;
//! - nothing observes hosts before: no probe, no end of warm-up, no end of a step;
//! - the packet neither opens nor ends a flow, because slots, records and counts of active flows are shared.
//!
//! Each packet then leaves at the same time and in the same order as without this, and results are identical to the
//! bit. Links never run ahead, because a router's behaviour depends on all arrivals.

use super::Hosts;
use crate::events::Source;
use crate::fabric::{Exit, Fabric, RECEIVERS, SENDER};
use crate::packet::{CONTROL, DATA, Packet};
use crate::plan::{ArrivalPlan, END, Network};
use crate::scenario::Scenario;
use flowstamp_laws::transport::Params;
use flowstamp_laws::units::Time;

/// Maximum number of packets that leave a router in one batch, small enough to stay in the cache.
const MOST_AT_ONCE: u64 = 32;

/// Number of packets ahead for which flows are prefetched, which matches the memory latency.
const ASKED_AHEAD: u32 = 3;

/// The senders into an access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Users {
    Nobody,
    /// Acks for data that arrive over this link.
    AcksFor(u32),
    /// Data of one flow whose acks arrive over this link.
    OneFlow(u32),
    Several,
}

/// For each link to a host, what the host may do ahead of time, as bits (`RECEIVERS`, `SENDER`). It depends on which
/// flows send into which access link.
#[must_use]
pub fn sides(network: &Network, scenario: &Scenario) -> Vec<u32> {
    let routers = network.links.len();
    let links = routers + network.access.len();
    let routes = &network.routes;
    let ends = |route: u32| {
        let route = &routes[route as usize..];
        let length = route.iter().position(|link| *link == END).unwrap_or(route.len());
        (route[0] as usize, route[length - 1] as usize)
    };
    let mut users = vec![Users::Nobody; links];
    let mut join = |link: usize, user: Users, again: bool| {
        users[link] = match users[link] {
            Users::Nobody => user,
            before if before == user && again => user,
            _ => Users::Several,
        };
    };
    let planned = network.flows.iter().map(|flow| (flow.group, flow.routes, false));
    let arriving = |plan: &'_ ArrivalPlan| {
        let group = plan.group;
        plan.routes.iter().flatten().map(|routes| (group, *routes, true)).collect::<Vec<_>>()
    };
    let arriving = network.arrivals.iter().flat_map(arriving);
    let all: Vec<_> = planned.chain(arriving).collect();
    for (group, routes, arrives) in &all {
        let spec = &scenario.flows[network.groups[*group as usize].spec];
        let Params { delayed_acks, .. } = spec.transport;
        let (data, acks) = (ends(routes.data), ends(routes.acks));
        // Delayed acks leave by a timer. Where a law may fall back, the receiver's header follows the sender's state,
        // so that neither may be ahead of the other.
        let laws = &network.groups[*group as usize].laws;
        let (prompt, apart) = (!delayed_acks, !laws.iter().any(|law| law.traits().falls_back));
        let receivers = if prompt && apart { Users::AcksFor(data.1 as u32) } else { Users::Several };
        // In a collective operation a host sends when it has received what others send.
        let alone = !*arrives && !spec.is_collective();
        let sender = if alone && apart { Users::OneFlow(acks.1 as u32) } else { Users::Several };
        join(acks.0, receivers, true);
        join(data.0, sender, false);
    }
    let mut sides = vec![RECEIVERS | SENDER; links];
    sides[..routers].fill(0);
    for (_, routes, _) in &all {
        let (data, acks) = (ends(routes.data), ends(routes.acks));
        if acks.0 < routers || users[acks.0] != Users::AcksFor(data.1 as u32) {
            sides[data.1] &= !RECEIVERS;
        }
        if data.0 < routers || users[data.0] != Users::OneFlow(acks.1 as u32) {
            sides[acks.1] &= !SENDER;
        }
    }
    sides
}

impl Hosts {
    /// Handles a packet that has reached its host over link `number`. Also handles those behind it that arrive by
    /// `horizon` and can be handled ahead of time. Returns the number of events done.
    #[inline(always)] // as `Fabric::forward`
    pub fn receive(&mut self, net: &mut Fabric, number: u32, source: Source, horizon: Time) -> u64 {
        let now = net.now;
        let mut handled = 0;
        loop {
            let packet = net.take(number);
            self.arrive(net, &packet);
            handled += 1;
            let Some(time) = net.next_arrival(number) else { break };
            if time > horizon || !self.may_be_ahead(net.sides(number), net.head(number), time) {
                net.events.push(time, source);
                break;
            }
            net.now = time;
        }
        net.reached = net.reached.max(net.now);
        net.now = now;
        handled
    }

    /// Handles packets that arrive at the end of router link `number`, the first of them now. They go on to access
    /// links that no other link feeds. All that have left the transmitter are moved, up to `end`. Those that reach
    /// their hosts by `horizon` and can be handled ahead of time are handled. Returns the number of events done.
    #[inline(always)] // as `Fabric::forward`
    pub fn receive_exits(
        &mut self,
        net: &mut Fabric,
        number: u32,
        source: Source,
        end: Time,
        horizon: Time,
    ) -> u64 {
        let now = net.now;
        // Packets that arrive later may still be in transmission and have no stamp yet.
        let latest = end.min(now.saturating_add(net.delay(number)));
        let (mut handled, mut left) = (0, 0);
        let mut next = Some(now);
        while let Some(time) = next {
            if time > latest || left == MOST_AT_ONCE {
                break;
            }
            let exit = net.exit(number, time, |sides, packet, arrives| {
                arrives <= horizon && self.may_be_ahead(sides, packet, arrives)
            });
            match exit {
                Exit::Other => break,
                Exit::Access => {}
                Exit::Host(arrives, packet) => {
                    net.now = arrives;
                    net.reached = net.reached.max(arrives);
                    self.arrive(net, &packet);
                    net.now = now;
                    handled += 1;
                }
            }
            left += 1;
            net.reached = net.reached.max(time);
            next = net.next_arrival(number);
            // Consecutive packets belong to different flows, so links and flows are prefetched.
            if let Some((flow, data)) = net.ask_for_exit(number, ASKED_AHEAD) {
                self.flows[flow as usize].expect(data);
            }
        }
        if let Some(time) = next {
            net.events.push(time, source);
        }
        handled + left
    }

    /// Whether the host may handle `packet`, which arrives at `time`, ahead of time. `sides` is what its link allows.
    #[inline]
    fn may_be_ahead(&self, sides: u32, packet: &Packet, time: Time) -> bool {
        let flow = &self.flows[packet.flow as usize];
        if packet.flags & CONTROL != 0
            || flow.generation != packet.generation
            || flow.application.due() <= time
        {
            return false;
        }
        if packet.flags & DATA != 0 {
            // The flow cannot end before this packet arrives if it still lacks data after it. (A flow stopped before
            // its end keeps its slot.)
            return sides & RECEIVERS != 0 && flow.receiver.delivered() < flow.packets.saturating_sub(1);
        }
        sides & SENDER != 0
            && flow.started
            && flow.open
            && flow.retransmit.due().min(flow.pace.due()).min(flow.control.due()) > time
            && flow.sender.lasts_beyond(packet.seq)
    }
}

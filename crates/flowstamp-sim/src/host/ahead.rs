//! Hosts that run ahead of the loop.
//!
//! A packet on an access link that leads to a host is certain to arrive, and when is known. What the host does then can be
//! done before the loop comes to that time, without an event, if nothing that happens in between bears on it or looks at
//! it:
//!
//! - what the host sends enters an access link that nobody else sends into, or only receivers that hear from the very same
//!   link, in whose order they send ([`sides`]);
//! - no timer of the flow is due before;
//! - nobody looks at hosts before: neither a probe, nor the end of warm-up or of a step;
//! - the packet neither opens nor ends a flow: slots, records and what is counted of web flows belong to all.
//!
//! So each packet leaves at the time and in the order that it would, and results are the same to the bit. Links are never
//! ahead: what a router does depends on whatever else reaches it.

use super::Hosts;
use crate::events::Source;
use crate::fabric::{Exit, Fabric, RECEIVERS, SENDER};
use crate::packet::{CONTROL, DATA, Packet};
use crate::plan::{END, Network, WebPlan};
use crate::scenario::Scenario;
use flowstamp_laws::transport::Params;
use flowstamp_laws::units::Time;

/// The most packets that leave a router at once: few enough to stay in the cache.
const MOST_AT_ONCE: u64 = 32;

/// A packet's flow is asked for so many packets before it is needed, which takes as long as memory does to answer.
const ASKED_AHEAD: u32 = 3;

/// Who sends into an access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Users {
    Nobody,
    /// Acks for the data that come by this link.
    AcksFor(u32),
    /// Data of one flow, whose acks come by this link.
    OneFlow(u32),
    Several,
}

/// Of each link that leads to a host what may be done there ahead of time, as bits: it follows from who sends into which
/// access link.
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
    let planned = network.flows.iter().map(|flow| (flow.group, flow.path, false));
    let web_paths = |web: &'_ WebPlan| {
        let group = web.group;
        web.paths.iter().flatten().map(|path| (group, *path, true)).collect::<Vec<_>>()
    };
    let web = network.web.iter().flat_map(web_paths);
    let all: Vec<_> = planned.chain(web).collect();
    for (group, path, web) in &all {
        let spec = &scenario.flows[network.groups[*group as usize].spec];
        let Params { delayed_acks, .. } = spec.transport;
        let (data, acks) = (ends(path.data), ends(path.acks));
        // Delayed acks leave by a timer; where a law falls back, a receiver's header follows what the sender does, so that
        // neither may be ahead of the other.
        let laws = &network.groups[*group as usize].laws;
        let (prompt, apart) = (!delayed_acks, !laws.iter().any(|law| law.traits().falls_back));
        let receivers = if prompt && apart { Users::AcksFor(data.1 as u32) } else { Users::Several };
        let sender = if !*web && apart { Users::OneFlow(acks.1 as u32) } else { Users::Several };
        join(acks.0, receivers, true);
        join(data.0, sender, false);
    }
    let mut sides = vec![RECEIVERS | SENDER; links];
    sides[..routers].fill(0);
    for (_, path, _) in &all {
        let (data, acks) = (ends(path.data), ends(path.acks));
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
    /// A packet has reached its host by link `number`; those behind it are handled too, up to `horizon`, if they can be
    /// ahead of time. Returns how many: so many events are done.
    #[inline]
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

    /// Packets have left a router by link `number`, the first of them now, and go on to access links that no other link
    /// feeds: all that have left the transmitter, up to `end`. Those that reach their hosts up to `horizon` and can be
    /// handled ahead of time are. Returns how many events are done.
    #[inline]
    pub fn receive_exits(
        &mut self,
        net: &mut Fabric,
        number: u32,
        source: Source,
        end: Time,
        horizon: Time,
    ) -> u64 {
        let now = net.now;
        // What arrives later may still be in transmission, and then has no stamp.
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
            // Where packets go and whose they are is far away, as flows' packets alternate.
            if let Some((flow, data)) = net.ask_for_exit(number, ASKED_AHEAD) {
                self.flows[flow as usize].expect(data);
            }
        }
        if let Some(time) = next {
            net.events.push(time, source);
        }
        handled + left
    }

    /// Whether what the host does when `packet` arrives at `time` can be done ahead of time, if its link lets these sides.
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
            // Nor can the flow be over before this packet arrives if it does not have all even then. (One that is stopped
            // before its end keeps its slot.)
            return sides & RECEIVERS != 0 && flow.receiver.delivered() < flow.packets.saturating_sub(1);
        }
        sides & SENDER != 0
            && flow.started
            && flow.open
            && flow.retransmit.due().min(flow.pace.due()).min(flow.control.due()) > time
            && flow.sender.lasts_beyond(packet.seq)
    }
}

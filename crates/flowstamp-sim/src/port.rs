//! Builds the port of each router link: laws, classes and scheduler, as the scenario asks for them.

use crate::capture::wanted;
use crate::link::{Alone, Classifier, Fifo, Laws, Police, Port, Ranked, Ranks, Served, Soft};
use crate::plan::{LinkPlan, Medium};
use crate::random::Stream;
use crate::scenario::{Priority, Scenario};
use flowstamp_laws::queue::QueueView;
use flowstamp_laws::queue::fq_codel::FqCodel;
use flowstamp_laws::registry::QueueSpec;
use flowstamp_laws::router::{Room, RouterView};
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::{self, Scheduler};
use flowstamp_laws::units::{Rate, Time};

/// Builds the port of a link.
pub fn port(scenario: &Scenario, plan: &LinkPlan) -> Port {
    let (rate, _) = plan.capacity.known_at(Time::ZERO);
    let view = QueueView {
        limit: plan.limit,
        capacity: plan.capacity.mean(Time::ZERO, scenario.duration),
        mean_packet_bytes: scenario.packet.get() as u32,
    };
    let room = plan.router.traits().by_windows.unwrap_or(Room::Leftover);
    let split = plan.share.params().map(|params| Split::new(params, rate).with_room(room));
    let known = plan.told.then(|| split.as_ref().map_or(rate, Split::own_capacity));
    let mut laws = laws(scenario, plan, &view, known);
    let flows = plan.queue.by_flow().map(|params| {
        // Each link has its own salt, so that different flows share a hash bucket on different links.
        let salt = laws.random.uniform().to_bits();
        FqCodel::new(params, &view, salt)
    });
    let served = |laws: Laws, classifier: Classifier, scheduler: Scheduler, split: Option<Split>| {
        let port = Served::new(laws, classifier, scheduler, split);
        let port = match plan.medium {
            _ if plan.governed => port.governed(),
            Medium::Own => port,
            _ => port.asking(),
        };
        let port = if plan.is_held() { port.holding(plan.limit) } else { port };
        if let Some(flows) = &flows { port.by_flow(flows) } else { port }
    };
    let in_turn = Scheduler::Priority(share::priority::Priority);
    let in_order = !(plan.governed || plan.medium.is_shared() || plan.queue.needs_events() || plan.is_held());
    if plan.priority == Priority::Labels {
        let labels: Vec<u8> = scenario.flows.iter().map(|group| group.label).collect();
        let port = served(laws, Classifier::Labels(Ranks::new(&labels)), in_turn, None);
        return Port::served(port.apart());
    }
    if plan.priority == Priority::Acks {
        return if in_order {
            Port::Ranked(Ranked::new(laws))
        } else {
            Port::served(served(laws, Classifier::Acks, in_turn, None))
        };
    }
    if let Some(weights) = plan.queue.two_queues() {
        let scheduler = Scheduler::Wfq(share::wfq::Wfq::new(weights.len()));
        return Port::served(served(laws, Classifier::L4s, scheduler, None).weighing(weights));
    }
    match (split, plan.share.build(Classifier::Protocol.classes())) {
        (None, _) if in_order => Port::Fifo(Fifo::new(laws, Alone)),
        (None, _) => {
            let port = served(laws, Classifier::None, in_turn, None);
            let port = if plan.queue.drops_head() { port.dropping_head() } else { port };
            let shaper = plan.queue.shaper().map(|shaper| shaper.buckets(scenario.packet));
            Port::served(if let Some(buckets) = shaper { port.shaped(buckets) } else { port })
        }
        (Some(split), None) => Port::Soft(Box::new(Fifo::new(laws, Soft::new(split)))),
        (Some(split), Some(scheduler)) => {
            let port = served(laws, Classifier::Protocol, scheduler, Some(split));
            let own_droptail = plan.share.params().is_some_and(|params| params.own_droptail);
            Port::served(if own_droptail { port.with_first(QueueSpec::default().build(&view)) } else { port })
        }
    }
}

/// Builds a link's laws. The router law is told `capacity`.
fn laws(scenario: &Scenario, plan: &LinkPlan, view: &QueueView, capacity: Option<Rate>) -> Laws {
    let router_view = RouterView { capacity, limit: plan.limit, packet_bytes: scenario.packet.get() as u32 };
    let mut laws = Laws::new(
        plan.name.clone(),
        plan.capacity.clone(),
        plan.limit,
        plan.queue.build(view),
        plan.router.build(&router_view),
        Stream::new(scenario.seed, &format!("queue/{}", plan.name)),
        wanted(scenario, &plan.name, matches!(plan.medium, Medium::Cell { .. })),
    );
    let traits = plan.router.traits();
    (laws.marks, laws.over_medium) = (traits.marks, traits.over_medium);
    laws.told = plan.told;
    laws.police = plan.police.map(|params| Box::new(Police::new(params)));
    laws
}

//! Packets from one router link to access links need no event each, and hosts run ahead: the results have the same bits
//! as with events.
//!
//! A failure prints the scenario and, as proptest does, the seed that draws it again.

mod common;

use common::try_load;
use flowstamp_laws::registry::{Header, QueueSpec, RouterSpec, SenderSpec};
use flowstamp_laws::units::Time;
use flowstamp_sim::results::Results;
use flowstamp_sim::{Loaded, Simulation};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::ops::ControlFlow;

/// Senders that go with a router law: those of its header, and TCPs.
fn senders(router: &str) -> Vec<&'static str> {
    let header = RouterSpec::all().iter().find(|it| it.name() == router).map(RouterSpec::header);
    let fits = |law: &SenderSpec| law.header() == Header::Plain || Some(law.header()) == header;
    let laws = common::senders();
    let names = laws.iter().filter(|law| fits(law)).map(SenderSpec::name);
    names.chain((header == Some(Header::Rcp)).then_some("rcp that falls back")).collect()
}

/// A group of flows; times are shares of the network's RTT.
#[derive(Clone, Debug)]
struct Group {
    law: prop::sample::Index,
    count: u32,
    reverse: bool,
    each_hop: bool,
    /// RTTs of the flows, above the network's.
    rtts: Vec<f64>,
    /// Their access links' rate, as a multiple of the slowest link's, and their delay.
    access: Option<(f64, f64)>,
    /// Load and mean size in packets, of flows that arrive at random.
    web: Option<(f64, f64)>,
    delayed_acks: bool,
    every: f64,
}

fn group() -> impl Strategy<Value = Group> {
    let some = |chance| prop::bool::weighted(chance);
    (
        any::<prop::sample::Index>(),
        1u32..8,
        (some(0.2), some(0.3), any::<bool>()),
        prop::collection::vec(prop_oneof![Just(1.0), 1.0..4.0], 0..4),
        prop::option::weighted(0.4, (prop_oneof![Just(1.0), 0.3..20.0], prop_oneof![Just(0.0), 0.0..1.0])),
        prop::option::weighted(0.5, (0.1..0.8, 2.0..60.0)),
        prop_oneof![Just(0.0), 0.0..5.0],
    )
        .prop_map(|(law, count, (reverse, each_hop, delayed_acks), rtts, access, web, every)| Group {
            law,
            count,
            reverse,
            each_hop,
            rtts,
            access,
            web,
            delayed_acks,
            every,
        })
}

#[derive(Clone, Debug)]
struct Network {
    /// Rates of the links: one of a dumbbell, more of a parking lot.
    mbps: Vec<f64>,
    rtt_ms: f64,
    /// The bottleneck's part of the one-way delay.
    delay: f64,
    access_rate: Option<f64>,
    buffer: f64,
    queue: &'static str,
    router: &'static str,
    /// How the links are divided between the router's flows and others; where there is a router.
    share: Option<&'static str>,
    packet: u32,
    groups: Vec<Group>,
    /// Where a run is cut, as shares of it.
    cuts: Vec<f64>,
    /// The first link's rate after the first cut.
    then: Option<f64>,
    seed: u32,
}

fn network() -> impl Strategy<Value = Network> {
    let link = || prop_oneof![Just(8.0), Just(1000.0), 1.0..200.0];
    (
        prop_oneof![2 => prop::collection::vec(link(), 1), 1 => prop::collection::vec(link(), 2..4)],
        (prop_oneof![Just(20.0), 0.1..200.0], prop_oneof![Just(0.8), 0.0..0.9]),
        prop::option::of(prop_oneof![Just(1.0), 0.4..30.0]),
        (0.1f64..3.0, prop_oneof![Just("droptail"), prop::sample::select(QueueSpec::NAMES)]),
        (
            prop::sample::select(RouterSpec::NAMES),
            prop::option::weighted(0.3, prop::sample::select(vec!["wfq", "drr", "fifo"])),
        ),
        prop::sample::select(vec![1000, 1500, 100]),
        prop::collection::vec(group(), 1..4),
        (prop::collection::vec(0.0f64..1.0, 0..3), prop::option::weighted(0.3, 0.2..3.0)),
        any::<u32>(),
    )
        .prop_map(
            |(
                mbps,
                (rtt_ms, delay),
                access_rate,
                (buffer, queue),
                (router, share),
                packet,
                groups,
                cuts,
                seed,
            )| {
                let (mut cuts, then) = cuts;
                cuts.sort_by(f64::total_cmp);
                Network {
                    mbps,
                    rtt_ms,
                    delay,
                    access_rate,
                    buffer,
                    queue,
                    router,
                    share,
                    packet,
                    groups,
                    cuts,
                    then,
                    seed,
                }
            },
        )
}

impl Network {
    fn slowest(&self) -> f64 {
        self.mbps.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Some round trips, in not too many packets.
    fn duration_ms(&self) -> f64 {
        let fastest = self.mbps.iter().copied().fold(0.0, f64::max);
        let packets_per_ms = fastest * 1e3 / 8.0 / f64::from(self.packet);
        (self.rtt_ms * 20.0).min(10_000.0 / packets_per_ms).max(self.rtt_ms * 3.0)
    }

    fn toml(&self) -> String {
        let mut text = String::new();
        let rtt = self.rtt_ms;
        let us = |ms: f64| format!("'{}us'", (ms * 1e3).round());
        let put = |text: &mut String, line: String| writeln!(text, "{line}").expect("a text");
        put(&mut text, format!("duration = {}\nseed = {}", us(self.duration_ms()), self.seed));
        put(&mut text, format!("packet = '{}B'", self.packet));
        if self.mbps.len() == 1 {
            let (rate, delay) = (self.mbps[0], us(rtt / 2.0 * self.delay));
            put(&mut text, format!("[dumbbell]\nrate = '{rate:.3}Mbps'\nrtt = {}\ndelay = {delay}", us(rtt)));
        } else {
            let rates: Vec<_> = self.mbps.iter().map(|rate| format!("'{rate:.3}Mbps'")).collect();
            let delay = us(rtt / 2.0 * self.delay / self.mbps.len() as f64);
            put(&mut text, format!("[parking_lot]\nrates = [{}]\ndelay = {delay}", rates.join(", ")));
            put(&mut text, format!("access_delay = {}", us(rtt * (1.0 - self.delay) / 4.0)));
        }
        put(&mut text, format!("buffer = '{:.2}BDP'", self.buffer));
        put(&mut text, format!("queue = '{}'\nrouter = '{}'", self.queue, self.router));
        if let Some(share) = self.share.filter(|_| self.router != "none") {
            put(&mut text, format!("share = '{share}'"));
        }
        if let Some(multiple) = self.access_rate {
            put(&mut text, format!("access_rate = '{:.3}Mbps'", multiple * self.slowest()));
        }
        for (number, group) in self.groups.iter().enumerate() {
            let law = *group.law.get(&senders(self.router));
            let law = match law {
                "rcp that falls back" => "{ law = 'rcp', switch = true }".to_owned(),
                law => format!("'{law}'"),
            };
            put(&mut text, format!("[[flows]]\nname = 'g{number}'\nlaw = {law}"));
            put(&mut text, format!("reverse = {}\nevery = {}", group.reverse, us(group.every * rtt)));
            put(&mut text, format!("transport = {{ delayed_acks = {} }}", group.delayed_acks));
            if group.each_hop && self.mbps.len() > 1 {
                put(&mut text, "each_hop = true".to_owned());
            }
            match &group.access {
                Some((rate, delay)) => {
                    let rate = rate * self.slowest();
                    put(
                        &mut text,
                        format!("access = {{ rate = '{rate:.3}Mbps', delay = {} }}", us(delay * rtt)),
                    );
                }
                None if group.rtts.len() == group.count as usize && self.mbps.len() == 1 => {
                    let rtts: Vec<_> = group.rtts.iter().map(|part| us(part * rtt)).collect();
                    put(&mut text, format!("rtt = [{}]", rtts.join(", ")));
                }
                None => {}
            }
            put(&mut text, format!("count = {}", group.count));
            if let Some((load, packets)) = group.web {
                let load = load / self.groups.len() as f64;
                let mean = (packets * f64::from(self.packet)).round();
                put(
                    &mut text,
                    format!(
                        "web = {{ load = {load:.3}, sizes = {{ distribution = 'pareto', mean = '{mean}B', shape = 1.3 }} }}"
                    ),
                );
            }
        }
        text
    }

    /// The results of a run in pieces, each packet by an event of its own or not.
    fn run(&self, loaded: &Loaded, one_by_one: bool, cuts: &[f64]) -> Results {
        let mut sim = Simulation::new(loaded, None).unwrap_or_else(|e| panic!("{e}\n{}", self.toml()));
        if one_by_one {
            sim = sim.one_by_one();
        }
        let mut go_on = &mut |_| ControlFlow::Continue(());
        for (number, cut) in cuts.iter().enumerate() {
            let at = Time::from_secs_f64(self.duration_ms() / 1e3 * cut);
            sim.run_until(at, &mut go_on).expect("nobody stops it");
            if let (0, Some(factor)) = (number, self.then) {
                let rate = format!("{:.3}Mbps", self.mbps[0] * factor);
                let key = if self.mbps.len() == 1 { "dumbbell.rate" } else { "parking_lot.rates.0" };
                // Changes that are not possible during a run are refused, with events and without.
                let _ = sim.set(key, &rate);
            }
        }
        sim.run(&mut go_on).expect("nobody stops it")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn packets_in_batches_give_the_same_bits(network in network()) {
        let text = network.toml();
        let Ok(loaded) = try_load(&text) else {
            // A law may refuse what it is drawn with.
            return Err(TestCaseError::reject("refused"));
        };
        let with = network.run(&loaded, false, &network.cuts);
        let without = network.run(&loaded, true, &network.cuts);
        prop_assert_eq!(with.digest(), without.digest(), "{}", &text);
        prop_assert_eq!(with.summary.events, without.summary.events, "{}", &text);
        if network.then.is_none() {
            let in_one = network.run(&loaded, false, &[]);
            prop_assert_eq!(in_one.digest(), without.digest(), "in one piece\n{}", &text);
        }
    }
}

/// A receiver's acks bear the header of a sender that has given up its law from that instant on: neither end may be ahead of
/// the other, or an ack is in the wrong class of a divided link.
#[test]
fn a_flow_that_falls_back_has_both_ends_at_one_time() {
    let text = "
        duration = '6s'
        seed = 4
        [[graph.links]]
        from = 'a'
        to = 'b'
        rate = '24Mbps'
        delay = '5ms'
        buffer = '200kB'
        router = 'rcp'
        share = 'drr'
        [[graph.links]]
        from = 'b'
        to = 'c'
        rate = '10Mbps'
        delay = '5ms'
        buffer = '400kB'
        [[flows]]
        name = 'x'
        law = { law = 'rcp', switch = true }
        from = 'a'
        to = 'c'
        count = 4
        every = '137ms'
        spread = '200ms'
        access = { rate = '100Mbps', delay = '20ms' }
        [[flows]]
        name = 'r'
        law = 'sack'
        from = 'b'
        to = 'a'
        count = 2
        access = { rate = '100Mbps', delay = '3ms' }
        [[flows]]
        name = 's'
        law = 'rcp'
        from = 'b'
        to = 'a'
        count = 2
        access = { rate = '100Mbps', delay = '3ms' }
    ";
    let loaded = try_load(text).unwrap_or_else(|e| panic!("{e}"));
    let sim = || Simulation::new(&loaded, None).expect("a network");
    let with = sim().run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
    let without = sim().one_by_one().run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
    assert_eq!(with.digest(), without.digest());
    assert!(with.flows.iter().any(|flow| flow.switched_s.get().is_some()), "a flow that falls back");
}

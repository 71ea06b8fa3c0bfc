//! Packet spraying and flowlets: which of several equal paths packets take.

mod common;

use common::{run, try_load};
use flowstamp_sim::plan::{END, Network};
use flowstamp_sim::results::Results;
use flowstamp_sim::{Progress, Simulation};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// One stream of 10,000 packets a second from s to t, over a, or over b and then c or d, all in the same time.
fn stream(routing: &str, more: &str) -> Results {
    run(&format!(
        r#"
        duration = "1s"
        header = "0B"
        graph.links = [
            {{ name = "sa", from = "s", to = "a", rate = "1Gbps", delay = "10us", weight = 1 }},
            {{ name = "at", from = "a", to = "t", rate = "1Gbps", delay = "20us", weight = 2 }},
            {{ name = "sb", from = "s", to = "b", rate = "1Gbps", delay = "10us", weight = 1 }},
            {{ name = "bc", from = "b", to = "c", rate = "1Gbps", delay = "10us", weight = 1 }},
            {{ name = "bd", from = "b", to = "d", rate = "1Gbps", delay = "10us", weight = 1 }},
            {{ name = "ct", from = "c", to = "t", rate = "1Gbps", delay = "10us", weight = 1 }},
            {{ name = "dt", from = "d", to = "t", rate = "1Gbps", delay = "10us", weight = 1 }},
        ]
        flows = [{{ name = "stream", law = "udp", jitter = "none", rate = "80Mbps", from = "s", to = "t" }}]
        {routing}
        capture = {{ packets = 100000 }}
        {more}
        "#
    ))
}

/// Data packets on a link, by the time at which their transmission began, in milliseconds.
fn on(r: &Results, link: &str) -> Vec<f64> {
    let number = r.capture.links.iter().position(|name| name == link).expect("it is recorded") as u32;
    let packets = r.capture.packets.iter().filter(|p| p.link == number && p.data);
    packets.map(|p| p.time_ps as f64 / 1e9).collect()
}

fn counts(r: &Results, links: &[&str]) -> Vec<f64> {
    links.iter().map(|link| on(r, link).len() as f64).collect()
}

/// Each node picks one of its links at random: half go over a, a quarter over c and a quarter over d. Five standard deviations of
/// a binomial distribution are allowed.
#[test]
fn each_packet_picks_as_each_node_would() {
    let r = stream("routing.balance = \"spray\"", "");
    let got = counts(&r, &["sa", "sb", "ct", "dt"]);
    let all = got[0] + got[1];
    assert!((all - 10_000.0).abs() <= 2.0, "{got:?}");
    for (count, share) in got.iter().zip([0.5, 0.5, 0.25, 0.25]) {
        let deviation = (all * share * (1.0 - share)).sqrt();
        assert!((count - all * share).abs() < 5.0 * deviation, "{got:?}");
    }
    let ecmp = counts(&stream("", ""), &["sa", "ct", "dt"]);
    assert_eq!(ecmp.iter().filter(|count| **count > 0.0).count(), 1, "{ecmp:?}");
    assert_eq!(r.summary.packets.expect("a whole run").lost, 0);
}

/// Packets come every 100 us: a longer gap keeps one path, a shorter one gives each packet a pick.
#[test]
fn a_flowlet_ends_with_a_pause_longer_than_the_gap() {
    let of = |gap: &str| {
        let routing = format!("routing = {{ balance = \"flowlet\", flowlet_gap = \"{gap}\" }}");
        counts(&stream(&routing, ""), &["sa", "ct", "dt"])
    };
    let (longer, shorter) = (of("101us"), of("99us"));
    assert_eq!(longer.iter().filter(|count| **count > 0.0).count(), 1, "{longer:?}");
    assert!(shorter.iter().all(|count| *count > 2000.0), "{shorter:?}");
}

/// While a link is down, packets share the paths that are left; afterwards all again. Only packets on the link are lost.
#[test]
fn outages_take_paths_away_and_give_them_back() {
    for balance in ["balance = \"spray\"", "balance = \"flowlet\", flowlet_gap = \"50us\""] {
        let routing = format!("routing = {{ {balance} }}");
        let outage = "outages = [{ link = \"bd\", from = \"300ms\", until = \"600ms\" }]";
        let r = stream(&routing, outage);
        let within = |link, from: f64, to: f64| {
            on(&r, link).iter().filter(|ms| (from..to).contains(*ms)).count() as f64
        };
        for (from, to, shares) in [
            (0.0, 300.0, [0.5, 0.25, 0.25]),
            (300.1, 600.0, [0.5, 0.5, 0.0]),
            (600.1, 1e3, [0.5, 0.25, 0.25]),
        ] {
            let all = (to - from) * 10.0;
            for (link, share) in ["sa", "ct", "dt"].iter().zip(shares) {
                let (got, want) = (within(link, from, to), all * share);
                assert!((got - want).abs() <= 5.0 * (want * (1.0 - share)).sqrt(), "{balance} {link} {got}");
            }
        }
        assert!(
            r.summary.packets.expect("a whole run").lost <= 1,
            "{balance}: {}",
            r.summary.packets.expect("a whole run").lost
        );
    }
}

fn fat_tree(k: u32, law: &str, rest: &str) -> String {
    let router = if law == "rcp" || law == "xcp" { format!("router = \"{law}\"\n") } else { String::new() };
    format!(
        "duration = \"4ms\"\n[fat_tree]\nk = {k}\nrate = \"10Gbps\"\ndelay = \"1us\"\nbuffer = \"400kB\"\n{router}\
         [[flows]]\nname = \"p\"\nlaw = \"{law}\"\npattern = \"permutation\"\n{rest}"
    )
}

/// All (k / 2)^2 paths between pods, k / 2 within a pod and one within a rack are routes, and all are different.
#[test]
fn a_fat_tree_has_the_paths_of_its_paper() {
    let loaded = try_load(&fat_tree(8, "sack", "[routing]\nbalance = \"spray\"\n")).expect("it loads");
    let network = Network::new(&loaded, 1).expect("a network");
    let mut seen = BTreeMap::new();
    for flow in &network.flows {
        let route = |at: u32| -> Vec<u32> {
            network.routes[at as usize..].iter().copied().take_while(|link| *link != END).collect()
        };
        let hops = route(flow.routes.data).len();
        let choices = network.spreads.get(&flow.routes.data).map_or(&[][..], |choices| choices);
        let routes: BTreeSet<Vec<u32>> = choices.iter().map(|choice| route(choice.route)).collect();
        assert!(routes.iter().all(|route| route.len() == hops));
        assert_eq!(routes.len(), choices.len());
        seen.insert(hops, choices.len());
    }
    assert_eq!(seen.get(&6), Some(&16));
    assert!(seen.get(&4).is_none_or(|routes| *routes == 4), "{seen:?}");
    assert!(seen.get(&2).is_none_or(|routes| *routes == 0), "{seen:?}");
}

/// A permutation at nine tenths of the hosts' rate fits into a fat tree, but not where hashes collide.
#[test]
fn spraying_carries_a_permutation_that_hashing_does_not() {
    let lost = |balance: &str| {
        let routing = format!("rate = \"9Gbps\"\n[routing]\nbalance = \"{balance}\"\n");
        let r = run(&fat_tree(4, "udp", &routing));
        let packets = &r.summary.packets.expect("a whole run");
        packets.lost as f64 / packets.sent as f64
    };
    let (ecmp, spray) = (lost("ecmp"), lost("spray"));
    assert!(spray == 0.0 && ecmp > 0.05, "{ecmp} {spray}");
}

/// Every law finishes its flows, whichever order packets and acks arrive in.
#[test]
fn laws_keep_working() {
    for law in ["rcp", "xcp", "dctcp", "cubic", "newreno", "bbr"] {
        for balance in ["spray", "flowlet"] {
            let rest =
                format!("size = \"200kB\"\n[routing]\nbalance = \"{balance}\"\nflowlet_gap = \"5us\"\n");
            let r = run(&fat_tree(4, law, &rest));
            let ended = r.flows.iter().filter(|flow| flow.fct_s.is_some()).count();
            assert_eq!((ended, r.flows.len()), (16, 16), "{law} {balance}");
        }
    }
}

/// However it is cut, and without the engine's short cuts, a run gives the same bits; hosts have links of their own here, so
/// they run ahead.
#[test]
fn a_sprayed_run_is_a_function_of_its_seed() {
    let text = r#"
        duration = "300ms"
        warmup = "50ms"
        graph.links = [
            { from = "s", to = "a", rate = "50Mbps", delay = "1ms" }, { from = "a", to = "t", rate = "50Mbps", delay = "1ms" },
            { from = "s", to = "b", rate = "50Mbps", delay = "1ms" }, { from = "b", to = "t", rate = "20Mbps", delay = "1ms" },
        ]
        flows = [
            { name = "long", law = "sack", from = "s", to = "t", count = 3, access = { rate = "100Mbps", delay = "1ms" } },
            { name = "web", law = "cubic", from = "s", to = "t", web = { flows_per_s = 200.0, sizes = { distribution = "exponential", mean = "20kB" } } },
            { name = "back", law = "bbr", from = "t", to = "s", access = { rate = "100Mbps", delay = "1ms" }, transport = { delayed_acks = true } },
        ]
        outages = [{ link = "b->t", from = "100ms", until = "200ms" }]
        [routing]
        balance = "BALANCE"
        flowlet_gap = "2ms"
    "#;
    let mut go = |_: Progress| ControlFlow::Continue(());
    for balance in ["spray", "flowlet"] {
        let loaded = try_load(&text.replace("BALANCE", balance)).unwrap_or_else(|e| panic!("{e}"));
        let sim = || Simulation::new(&loaded, None).expect("a network");
        let whole = sim().run(&mut go).expect("nobody stops it");
        assert!(whole.summary.links["b->t"].arrivals > 100);
        assert_eq!(sim().one_by_one().run(&mut go).expect("nobody stops it").digest(), whole.digest());
        let mut steps = sim();
        for ms in 1..300 {
            steps.run_until(flowstamp_laws::Time::from_millis(ms), &mut go).expect("a step");
        }
        assert_eq!(steps.run(&mut go).expect("nobody stops it").digest(), whole.digest());
    }
}

/// Both paths must have a router that the law obeys, and the line says which key makes it so.
#[test]
fn a_path_without_a_router_is_refused() {
    let refused = try_load(
        r#"
        duration = "1s"
        graph.links = [
            { from = "s", to = "a", rate = "50Mbps", delay = "1ms", router = "rcp" }, { from = "a", to = "t", rate = "50Mbps", delay = "1ms" },
            { from = "s", to = "b", rate = "50Mbps", delay = "1ms" }, { from = "b", to = "t", rate = "50Mbps", delay = "1ms" },
        ]
        flows = [{ name = "f", law = "rcp", from = "s", to = "t", count = 9 }]
        routing.balance = "spray"
        "#,
    );
    let told = refused.expect_err("one of the paths has no router").to_string();
    assert!(told.contains("flows.f.law: \"rcp\" obeys routers, but no link on"), "{told}");
}

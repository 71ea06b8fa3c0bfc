//! Which way flows go where there are several.

mod common;

use common::{run, try_load};
use flowstamp_sim::plan::{END, Network};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

fn laid(text: &str) -> Network {
    let loaded = try_load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Network::new(&loaded, loaded.scenario.seed).expect("it was laid out once")
}

/// The names of the links that a route takes.
fn route(network: &Network, start: u32) -> Vec<&str> {
    let links = network.routes[start as usize..].iter().take_while(|link| **link != END);
    links.map(|link| network.links[*link as usize].name.as_str()).collect()
}

/// The nodes of a link's name.
fn ends(link: &str) -> (&str, &str) {
    link.split_once("->").expect("a link that is named by its ends")
}

/// Data of each flow of a group.
fn data<'a>(network: &'a Network, group: &str) -> Vec<Vec<&'a str>> {
    let of = |group: u32| network.groups[group as usize].name.clone();
    network.flows.iter().filter(|f| of(f.group) == group).map(|f| route(network, f.routes.data)).collect()
}

const FAT_TREE: &str = "duration = \"1ms\"\n[fat_tree]\nk = 8\nrate = \"100Gbps\"\ndelay = \"1us\"\n";

fn group(name: &str, count: usize, rest: &str) -> String {
    format!("[[flows]]\nname = \"{name}\"\nlaw = \"sack\"\ncount = {count}\n{rest}\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Routes are contiguous, from end to end, and no way is shorter: by Bellman and Ford's relaxation of all links, which knows nothing
    /// of how the routes were found. Delays of few values make many ways alike. By weights, of which 0.1 is added to the delay in
    /// microseconds, delays and hops do not matter.
    #[test]
    fn every_route_is_a_shortest_one(
        nodes in 2usize..9, seed in any::<u32>(), weighted in any::<bool>(),
        links in prop::collection::vec((0usize..9, 0usize..9, 0u32..3, any::<bool>()), 1..30),
        flows in prop::collection::vec((0usize..9, 0usize..9), 1..4),
    ) {
        let mut text = format!("duration = \"1s\"\nseed = {seed}\n[graph]\nrtt = \"1ms\"\n");
        let mut delays: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for (a, b, delay, duplex) in links {
            let (a, b) = (a % nodes, b % nodes);
            if a == b || delays.contains_key(&(a, b)) || (duplex && delays.contains_key(&(b, a))) {
                continue;
            }
            let cost = if weighted { format!("delay = \"{}us\"\nweight = {delay}.1", 3 - delay) } else { format!("delay = \"{delay}us\"") };
            let _ = write!(text, "[[graph.links]]\nfrom = \"{a}\"\nto = \"{b}\"\nrate = \"1Gbps\"\n{cost}\nduplex = {duplex}\n");
            delays.insert((a, b), delay);
            if duplex {
                delays.insert((b, a), delay);
            }
        }
        for (at, (from, to)) in flows.into_iter().enumerate() {
            text += &group(&format!("g{at}"), 5, &format!("from = \"{}\"\nto = \"{}\"", from % nodes, to % nodes));
        }
        let Ok(loaded) = try_load(&text) else { return Ok(()) }; // no way there or back
        let network = Network::new(&loaded, loaded.scenario.seed).expect("it was laid out once");
        // Delay and hops, of which fewer win; or ten times the weight.
        let of_link = |delay: u32| if weighted { (10 * delay + 1, 0) } else { (delay, 1) };
        let cost = |links: &[&str]| {
            let of = |link: &&str| { let (a, b) = ends(link); of_link(delays[&(a.parse().unwrap(), b.parse().unwrap())]) };
            links.iter().map(of).fold((0, 0), |sum, link| (sum.0 + link.0, sum.1 + link.1))
        };
        for flow in &network.flows {
            let spec = &loaded.scenario.flows[network.groups[flow.group as usize].spec];
            let (from, to) = (spec.from.as_deref().unwrap(), spec.to.as_deref().unwrap());
            for (start, from, to) in [(flow.routes.data, from, to), (flow.routes.acks, to, from)] {
                let links = route(&network, start);
                let end = links.iter().fold(from, |at, link| { assert_eq!(ends(link).0, at); ends(link).1 });
                prop_assert_eq!(end, to);
                let mut least = vec![None; nodes];
                least[from.parse::<usize>().unwrap()] = Some((0, 0));
                for _ in 0..nodes {
                    for ((a, b), delay) in &delays {
                        let Some((sum, hops)) = least[*a] else { continue };
                        let more = of_link(*delay);
                        let there = (sum + more.0, hops + more.1);
                        if least[*b].is_none_or(|other| there < other) {
                            least[*b] = Some(there);
                        }
                    }
                }
                prop_assert_eq!(Some(cost(&links)), least[to.parse::<usize>().unwrap()]);
            }
        }
    }

    /// Other groups, more flows of its own and links elsewhere do not move a flow.
    #[test]
    fn a_flow_keeps_its_way(seed in any::<u32>(), more in 1usize..50) {
        let seed = format!("seed = {seed}\n");
        let own = |count| group("own", count, "from = \"h0\"\nto = \"h127\"");
        let alone = laid(&format!("{seed}{FAT_TREE}{}", own(20)));
        let other = laid(&format!("{seed}{FAT_TREE}{}{}", group("first", more, "pattern = \"random\""), own(20 + more)));
        prop_assert_eq!(data(&alone, "own"), &data(&other, "own")[..20]);
        let acks = |n: &Network| n.flows[0].routes.acks;
        let of = other.flows.iter().find(|f| other.groups[f.group as usize].name == "own").expect("it is there");
        prop_assert_eq!(route(&alone, acks(&alone)), route(&other, of.routes.acks));
    }

    /// Between two pods of a fat tree there are 16 ways; flows are spread over them as evenly as if each had drawn one: chi-square with
    /// 15 degrees of freedom is above 56.5 once in a million times. The cases are those of seeds 0 to 199.
    #[test]
    fn flows_are_spread_evenly(seed in 0u32..200) {
        let network = laid(&format!("seed = {seed}\n{FAT_TREE}{}", group("a", 1600, "from = \"h0\"\nto = \"h127\"")));
        for acks in [false, true] {
            let mut ways: BTreeMap<Vec<&str>, f64> = BTreeMap::new();
            for flow in &network.flows {
                *ways.entry(route(&network, if acks { flow.routes.acks } else { flow.routes.data })).or_default() += 1.0;
            }
            prop_assert_eq!(ways.len(), 16);
            let chi_square: f64 = ways.values().map(|n| (n - 100.0) * (n - 100.0) / 100.0).sum();
            prop_assert!(chi_square < 56.5, "{}", chi_square);
            // Fewer than by chance would be no hash: below 1.9 once in a hundred thousand.
            prop_assert!(chi_square > 1.9, "{}", chi_square);
        }
    }
}

#[test]
fn fat_trees_and_leaf_spines_are_as_drawn() {
    let network = laid(&format!("{FAT_TREE}{}", group("a", 128, "pattern = \"permutation\"")));
    // k^3 / 4 hosts, each stage has as many links, each both ways.
    assert_eq!(network.links.len(), 128 * 3 * 2);
    let nodes: BTreeSet<&str> =
        network.links.iter().flat_map(|l| [ends(&l.name).0, ends(&l.name).1]).collect();
    for (kind, count) in [("h", 128), ("core", 16)] {
        assert_eq!(nodes.iter().filter(|n| n.starts_with(kind)).count(), count, "{kind}");
    }
    for (kind, count) in [("edge", 32), ("agg", 32)] {
        assert_eq!(nodes.iter().filter(|n| n.contains(kind)).count(), count, "{kind}");
    }
    // Every switch has 8 ports.
    for switch in nodes.iter().filter(|n| !n.starts_with('h')) {
        assert_eq!(network.links.iter().filter(|l| ends(&l.name).0 == *switch).count(), 8, "{switch}");
    }
    // Each host sends to one and receives from one.
    let flows = data(&network, "a");
    let from: BTreeSet<&str> = flows.iter().map(|way| ends(way[0]).0).collect();
    let to: BTreeSet<&str> = flows.iter().map(|way| ends(way[way.len() - 1]).1).collect();
    assert_eq!((from.len(), to.len()), (128, 128));

    let leaf_spine = "duration = \"1ms\"\n[leaf_spine]\nleaves = 3\nspines = 2\nhosts = 4\nrate = \"10Gbps\"\nspine_rate = \"40Gbps\"\ndelay = \"1us\"\n";
    let network = laid(&format!("{leaf_spine}{}", group("a", 30, "pattern = \"incast\"\nto = \"h5\"")));
    assert_eq!(network.links.len(), 2 * (12 + 6));
    let flows = data(&network, "a");
    assert!(flows.iter().all(|way| way[way.len() - 1] == "leaf1->h5"));
    let from: BTreeSet<&str> = flows.iter().map(|way| ends(way[0]).0).collect();
    assert_eq!(from.len(), 11, "all others, h5 not");
    // Between leaves by a spine, at a leaf without.
    assert!(flows.iter().all(|way| way.len() == if ends(way[0]).1 == "leaf1" { 2 } else { 4 }));
}

#[test]
fn idle_paths_are_told_of() {
    let warnings =
        |count| laid(&format!("{FAT_TREE}{}", group("a", count, "from = \"h0\"\nto = \"h127\""))).warnings;
    // One flow takes one of 4 links up, then one of 4 to the core: 4 + 16 + 16 + 4 links are beside others or behind those.
    let [line] = &warnings(1)[..] else { panic!("{:?}", warnings(1)) };
    assert!(
        line.starts_with("18 of 20 links on equal-cost paths carry no data (pod0-edge0->pod0-agg"),
        "{line}"
    );
    assert_eq!(warnings(2000), Vec::<String>::new());
    // A path that is longer is no equal: the golden graph has some, and no warning.
    let graph = std::fs::read_to_string("tests/golden/graph.toml").expect("a golden scenario");
    assert!(!laid(&graph).warnings.iter().any(|w| w.contains("equal-cost")));
}

/// A load is a share of what hosts' links carry: of a random pattern all of them, of an incast the receiver's.
#[test]
fn loads_are_shares_of_hosts_links() {
    for (pattern, links) in [("random", 8.0), ("permutation", 8.0), ("incast", 1.0)] {
        let text = format!(
            "duration = \"40ms\"\n[leaf_spine]\nleaves = 2\nspines = 2\nhosts = 4\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
             [[flows]]\nname = \"web\"\nlaw = \"sack\"\npattern = \"{pattern}\"\n\
             [flows.web]\nload = 0.3\nsizes = {{ distribution = \"fixed\", size = \"9600B\" }}\n"
        );
        let results = run(&text);
        let sent: f64 = results.flows.iter().filter_map(|f| f.size_bytes).map(|b| b as f64 / 0.96).sum();
        let load = sent / (0.04 * 1.25e9 * links);
        // Held to the load within 5%.
        assert!((0.285..0.316).contains(&load), "{pattern}: {load}");
    }
}

/// Alone on its path a datagram-like flow that knows its window from the start takes the ideal time: 10 packets of 1000 B at 1 Gb/s with a
/// link of 10 Gb/s before and of 10 Gb/s behind.
#[test]
fn the_ideal_is_what_a_flow_alone_takes() {
    let link = |from, to, rate| {
        format!(
            "[[graph.links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"10us\"\nbuffer = \"100pkt\"\n"
        )
    };
    let flow = "[[flows]]\nname = \"a\"\nlaw = \"sack\"\nfrom = \"a\"\nto = \"d\"\nsize = \"9100B\"\ntransport = { initial_window = 20 }\n";
    let text = format!(
        "duration = \"1s\"\n[graph]\n{}{}{}{flow}",
        link("a", "b", "10Gbps"),
        link("b", "c", "1Gbps"),
        link("c", "d", "10Gbps")
    );
    let results = run(&text);
    // 9 packets of 960 B of payload and one of 460 B; 40 B of headers each: 9.5 kB at the slow link.
    let (first, all, last) = (1000.0 * 8.0 / 10e9, 9500.0 * 8.0 / 1e9, 500.0 * 8.0 / 10e9);
    let expected = 30e-6 + first + all + last;
    let flow = &results.flows[0];
    let (ideal, took) = (flow.ideal_fct_s.get().expect("it has a size"), flow.fct_s.expect("it ended"));
    assert!((ideal - expected).abs() < 1e-12, "{ideal} {expected}");
    assert!((took - ideal).abs() < 1e-11, "{took} {ideal}");
    let slowdown = results.summary.groups["a"].fct_slowdown.as_ref().expect("one flow").all.max;
    assert!((slowdown - 1.0).abs() < 1e-6, "{slowdown}");
}

/// A graph of links `(from, to, rate, delay, rest)`.
fn graph(keys: &str, links: &[(&str, &str, &str, &str, &str)]) -> String {
    let links = links.iter().map(|(from, to, rate, delay, rest)| {
        format!("[[graph.links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n{rest}\n")
    });
    format!("duration = \"5s\"\n[graph]\n{keys}\n{}", links.collect::<String>())
}

/// By delay the direct link is the shortest (1 ms); by weight the way over b is (1 + 1 < 3).
#[test]
fn weights_go_before_delays() {
    let with = |weights: [&str; 3]| {
        let links = [
            ("a", "b", "1Mbps", "50ms", weights[0]),
            ("b", "c", "1Mbps", "50ms", weights[1]),
            ("a", "c", "1Mbps", "1ms", weights[2]),
        ];
        graph("", &links) + &group("g", 1, "from = \"a\"\nto = \"c\"")
    };
    assert_eq!(data(&laid(&with([""; 3])), "g"), [["a->c"]]);
    let by_weight = laid(&with(["weight = 1", "weight = 1", "weight = 3"]));
    assert_eq!(data(&by_weight, "g"), [["a->b", "b->c"]]);
    assert_eq!(route(&by_weight, by_weight.flows[0].routes.acks), ["c->b", "b->a"]);
    let refused =
        try_load(&with(["weight = 1", "", "weight = 3"])).expect_err("a weight is missing").to_string();
    assert!(refused.contains("graph.links[1].weight: is missing, but other links have weights"), "{refused}");
    let refused = try_load(&with(["weight = 0", "", ""])).expect_err("it is zero").to_string();
    assert!(
        refused.contains("graph.links[0].weight: is 0; write a number from 0.000001 to 1000000000"),
        "{refused}"
    );
}

/// 0.1 + 0.2 is 0.3, whatever floating-point numbers say: flows take both ways.
#[test]
fn ways_of_equal_weight_are_shared() {
    let links = [
        ("a", "b", "1Mbps", "1ms", "weight = 0.1"),
        ("b", "c", "1Mbps", "1ms", "weight = 0.2"),
        ("a", "c", "1Mbps", "9ms", "weight = 0.3"),
    ];
    let network = laid(&(graph("", &links) + &group("g", 64, "from = \"a\"\nto = \"c\"")));
    let ways: BTreeSet<_> = data(&network, "g").into_iter().collect();
    assert_eq!(ways, BTreeSet::from([vec!["a->b", "b->c"], vec!["a->c"]]));
}

/// Two links side by side carry twice as much as one: 32 flows leave neither empty (except once in 2^31 seeds), and
/// each is full.
#[test]
fn links_side_by_side_carry_as_much_as_both() {
    let pair = ("a", "b", "5Mbps", "5ms", "");
    let goodput = |links: &[(&str, &str, &str, &str, &str)]| {
        let results = run(&(graph("rtt = \"20ms\"", links) + &group("g", 32, "from = \"a\"\nto = \"b\"")));
        let names: Vec<_> = results.summary.links.keys().map(|name| name.to_owned()).collect();
        (results.summary.groups.values().map(|group| group.goodput_bps).sum::<f64>(), names)
    };
    let (one, names) = goodput(&[pair]);
    assert_eq!(names, ["a->b", "b->a"]);
    let (two, names) = goodput(&[pair, pair]);
    assert_eq!(names, ["a->b", "a->b#2", "a->b#2.reverse", "b->a"]);
    assert!((two / one - 2.0).abs() < 0.04, "{two} of two, {one} of one");
}

/// A ring of one direction: data take one link and acks the two others. The RTT is 1 + 10 + 20 ms and the transmissions of a packet of
/// 1000 bytes (8 ms) and of an ack of 40 (0.32 ms, twice); without a way back the flow is refused.
#[test]
fn acks_of_a_directed_graph_go_round() {
    let ring =
        [("a", "b", "1Mbps", "1ms", ""), ("b", "c", "1Mbps", "10ms", ""), ("c", "a", "1Mbps", "20ms", "")];
    let one = "from = \"a\"\nto = \"b\"\nsize = \"960B\"";
    let text = graph("directed = true", &ring) + &group("g", 1, one);
    let network = laid(&text);
    assert_eq!(data(&network, "g"), [["a->b"]]);
    assert_eq!(route(&network, network.flows[0].routes.acks), ["b->c", "c->a"]);
    assert_eq!(network.links.len(), 3);
    let answered_s = run(&text).flows[0].fct_sender_s.get().expect("it is answered");
    assert!((answered_s - (0.001 + 0.010 + 0.020 + 0.008 + 2.0 * 0.000_32)).abs() < 1e-9, "{answered_s}");
    let refused =
        try_load(&(graph("directed = true", &ring[..2]) + &group("g", 1, one))).expect_err("no way back");
    assert!(refused.to_string().contains("there is no path for acks from b to a"), "{refused}");
}

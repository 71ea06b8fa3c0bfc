//! Oversubscribed data centres: what all hosts of a rack together get to other racks.

mod common;

use common::{run, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;
use std::fmt::Write;

/// Capacity of the links of these results from one node to nodes of a kind, bits per second, by the names of the links.
fn cut(r: &Results, from: &str, to: &str) -> f64 {
    let links = r.summary.links.iter().filter(|(name, _)| {
        name.split_once("->").is_some_and(|(a, b)| a.starts_with(from) && b.starts_with(to))
    });
    links.map(|(_, link)| link.rate_bps).sum()
}

/// A permutation in which each host sends an endless flow to the same place in the next rack.
fn across(racks: usize, hosts: usize, law: &str) -> String {
    let mut text = String::new();
    for host in 0..racks * hosts {
        let to = (host + hosts) % (racks * hosts);
        let _ = writeln!(text, "[[flows]]\nname = \"{host}\"\n{law}\nfrom = \"h{host}\"\nto = \"h{to}\"");
    }
    text
}

fn goodput(r: &Results) -> Vec<f64> {
    r.summary.groups.values().map(|group| group.goodput_bps).collect()
}

const RUN: &str = "duration = \"4ms\"\nwarmup = \"2ms\"\nheader = \"0B\"\n";

/// 12 hosts of 10 Gb/s in a rack offer 120 Gb/s, of which a spine carries 30 at 4:1. RCP gives all flows of one link the same
/// rate. Acks of 40 bytes for packets of 1000 take a part of the links up, because the flows of two racks cross in both
/// directions: a flow has 1 / 1.04 of a twelfth of what the link carries. In the 2 ms after warm-up that are about 600
/// packets, of which one at each end of that time may count or not.
///
/// Near equilibrium, RCP's `alpha (C - y) = beta q / d`, so that a link carries `y = C - beta q / (alpha d)`. The RTT d is at least the
/// 8 us of delays, and the transmissions of a packet: two at 10 Gb/s and two at 30 Gb/s, together 2.1 us.
#[test]
fn hosts_of_a_rack_share_a_quarter() {
    let r = run(&format!(
        "{RUN}[leaf_spine]\nleaves = 2\nspines = 1\nhosts = 12\nrate = \"10Gbps\"\ndelay = \"1us\"\noversubscription = 4\n\
         router = \"rcp\"\n{}",
        across(2, 12, "law = \"rcp\"")
    ));
    assert_eq!(cut(&r, "h", "leaf"), 4.0 * cut(&r, "leaf", "spine"));
    assert_eq!(cut(&r, "leaf0", "spine"), 12.0 * 10e9 / 4.0);
    let up = &r.summary.links["leaf0->spine0"];
    let (capacity, least_rtt_s) = (30e9 / 8.0, 10.1e-6);
    let idle = 0.5 / 0.4 * up.mean_queue_bytes / (capacity * least_rtt_s);
    assert!((1.0 - idle..=1.0).contains(&up.utilization), "{} with {idle} idle", up.utilization);
    let packet = 8.0 * 1000.0 / 2e-3;
    for rate in goodput(&r) {
        let share = up.utilization * 2.5e9 / 1.04;
        assert!((rate - share).abs() <= 2.0 * packet, "{rate} is not {share}");
    }
}

/// A fat tree keeps equal links, and an edge switch has four times as many hosts. Each host sends datagrams at its own
/// rate, and packets are sprayed, so that no hash leaves a link idle: all links up are always busy. Random packets at a load of 1
/// lose about one in twice the number that a queue holds (M/D/1), a four-hundredth here, on each of three later links. Two queues
/// of 200 packets that fill or empty meanwhile are 4% of what a rack sends in the 4 ms after warm-up.
#[test]
fn an_edge_switch_has_four_times_as_many_hosts() {
    let r = run(&format!(
        "duration = \"6ms\"\nwarmup = \"2ms\"\nheader = \"0B\"\nrouting.balance = \"spray\"\n[fat_tree]\nk = 4\nrate = \"10Gbps\"\ndelay = \"1us\"\noversubscription = 4\nbuffer = \"200pkt\"\n{}",
        across(8, 8, "law = \"udp\"\nrate = \"10Gbps\"\njitter = \"none\"")
    ));
    assert_eq!(r.summary.groups.len(), 64);
    let edges: Vec<String> =
        (0..4).flat_map(|pod| (0..2).map(move |edge| format!("pod{pod}-edge{edge}"))).collect();
    for (number, edge) in edges.iter().enumerate() {
        let down = cut(&r, edge, "h");
        assert_eq!(down, 8.0 * 10e9);
        let up = cut(&r, edge, "pod");
        assert_eq!(up, down / 4.0);
        let of = |host: usize| r.summary.groups[&host.to_string()].goodput_bps;
        let sent: f64 = (number * 8..).take(8).map(of).sum();
        assert!((0.96..=1.04).contains(&(sent / up)), "{edge} sends {sent} of {up}");
    }
    let all = cut(&r, "pod", "core");
    assert_eq!(all, 64.0 * 10e9 / 4.0);
}

fn refused(table: &str) -> String {
    let text = format!(
        "duration = \"1ms\"\n{table}\n[[flows]]\nname = \"a\"\nlaw = \"sack\"\npattern = \"permutation\"\n"
    );
    let loaded = try_load(&text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ()));
    loaded.expect_err("it cannot be laid out").to_string()
}

/// The ratio that a refusal proposes is accepted, although (29 / 7) * 7 is not 29 in doubles.
#[test]
fn proposed_ratios_are_accepted() {
    let message = refused("[fat_tree]\nk = 14\nrate = \"10Gbps\"\ndelay = \"1us\"\noversubscription = 4.2");
    assert!(message.contains("give 4.142857142857143 or"), "{message}");
    let text = "duration = \"1us\"\n[fat_tree]\nk = 14\nrate = \"10Gbps\"\ndelay = \"1us\"\noversubscription = 4.142857142857143\n\
                [[flows]]\nname = \"a\"\nlaw = \"sack\"\npattern = \"permutation\"\n";
    try_load(text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ())).unwrap();
}

#[test]
fn ratios_that_cannot_be_laid_out_are_refused() {
    const LEAVES: &str = "[leaf_spine]\nleaves = 2\nspines = 1\nhosts = 4\nrate = \"10Gbps\"\ndelay = \"1us\"\noversubscription = ";
    const TREE: &str = "[fat_tree]\nrate = \"10Gbps\"\ndelay = \"1us\"\n";
    for (table, parts) in [
        (format!("{LEAVES}0.5"), ["leaf_spine.oversubscription", "is 0.5; it must be 1 to 1000"]),
        (format!("{LEAVES}nan"), ["leaf_spine.oversubscription", "must be 1 to 1000"]),
        (format!("{LEAVES}4\nspine_rate = \"10Gbps\""), ["leaf_spine.oversubscription", "sets spine_rate"]),
        (
            format!("{TREE}k = 4\noversubscription = 1.7"),
            ["fat_tree.oversubscription", "give 1.5 or 2 for a whole number"],
        ),
        (
            format!("{TREE}k = 32\noversubscription = 4"),
            ["fat_tree.oversubscription", "links; a topology has at most 24576"],
        ),
    ] {
        let message = refused(&table);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

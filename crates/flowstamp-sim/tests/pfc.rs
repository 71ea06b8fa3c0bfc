//! Priority flow control (IEEE 802.1Qbb).
//!
//! Something that we did not write: the switch of HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control,
//! `simulation/src/point-to-point/model/switch-mmu.cc` at 78c386c). It counts bytes by incoming port too, and releases them
//! when a packet is dequeued. It admits every packet at the egress. It drops one only if both the shared part and the headroom
//! of its port are full. It pauses once a byte is in the headroom, which is "above xoff" here. It resumes when the headroom
//! is empty and the rest is 3 kB below the threshold, which is two packets of 1.5 kB, as `xon` here. Its headroom is
//! given by hand: `simulation/scratch/third.cc` uses `rate * delay / 8 / 10^9 * 3`, with delay in ns, one way. At 100 Gb/s and 1 us that is
//! 37.5 kB, and the default here is 28.1 kB for packets of 1000 bytes, counted part by part. Its threshold follows the free
//! part of a memory that all ports share; here it is constant.

mod common;

use common::{run, try_load};
use flowstamp_laws::pfc::headroom;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_sim::Simulation;
use flowstamp_sim::random::Stream;
use flowstamp_sim::results::{PfcSummary, Results};
use proptest::prelude::*;
use std::fmt::Write;

fn pfc(r: &Results, link: &str) -> PfcSummary {
    r.summary.links[link].pfc.expect("the link has flow control")
}

/// A host sends packets of 1000 bytes at 8 Gb/s, one in each microsecond, to a switch 10 us away, which sends them on at half the
/// rate.
fn one_link(thresholds: &str) -> Results {
    run(&format!(
        r#"
        duration = "100us"
        header = "0B"
        graph.links = [
            {{ from = "a", to = "s", rate = "8Gbps", delay = "10us", buffer = "100pkt", pfc = {{ {thresholds} }} }},
            {{ from = "s", to = "b", rate = "4Gbps", delay = "1us", buffer = "1pkt" }},
        ]
        flows = [{{ name = "stream", law = "udp", jitter = "none", rate = "8Gbps", from = "a", to = "b" }}]
        "#
    ))
}

/// By hand, in microseconds:
///
/// - Packet k arrives at the switch at 11 + k, and packet j leaves from 11 + 2j on. After arrival k, (k + 1) / 2 packets
///   wait, rounded down.
/// - Packet 21 is the 11th that waits, above 10 kB, at 32. The pause frame takes 0.064 and 10, and arrives at 42.064.
/// - Packet 42, which began at 42, is finished and arrives at 53. 21 packets wait then, the most.
/// - Packet 37 leaves 5 of 43 packets behind, at 11 + 74 = 85. The resume arrives at 95.064, 53 after the pause.
#[test]
fn a_paused_link_by_hand() {
    let r = one_link("xoff = \"10kB\", xon = \"5kB\"");
    let PfcSummary { pauses, paused_s, max_ingress_bytes, drops, headroom_bytes, .. } = pfc(&r, "a->s");
    assert_eq!((pauses, drops), (1, 0));
    assert!((paused_s - 53e-6).abs() < 1e-12, "{paused_s}");
    assert_eq!(max_ingress_bytes, 21_000.0);
    // 20 us in flight both ways, a frame of 1000 bytes ahead of the 64 of the pause, and two packets.
    assert_eq!(headroom_bytes, 20_000.0 + 1_064.0 + 2_000.0);
    assert_eq!(r.summary.packets.expect("a whole run").lost, 0);
    assert_eq!(pfc(&r, "s->a").pauses, 0);
}

/// In that run 11 kB arrive above `xoff` and wait. A byte less of headroom loses a packet.
#[test]
fn headroom_below_the_arithmetic_loses_packets() {
    let enough = one_link("xoff = \"10kB\", xon = \"5kB\", headroom = \"11kB\"");
    assert_eq!((pfc(&enough, "a->s").drops, enough.summary.packets.expect("a whole run").lost), (0, 0));
    let short = one_link("xoff = \"10kB\", xon = \"5kB\", headroom = \"10999B\"");
    let drops = pfc(&short, "a->s").drops;
    assert!(drops >= 1);
    assert_eq!(drops, short.summary.packets.expect("a whole run").lost);
    assert_eq!(short.summary.links["s->b"].drops, drops);
    assert!(pfc(&short, "a->s").max_ingress_bytes <= 20_999.0);
}

/// Senders at the edge of one switch, or of others, whose flows all go to one host.
fn incast(seed: u64, packet: u64, rate: f64, delay_ns: u64, more: &str, law: &str) -> String {
    format!(
        "seed = {seed}\nduration = \"600us\"\npacket = \"{packet}B\"\n[leaf_spine]\nleaves = 2\nspines = 2\nhosts = 5\n\
         rate = \"{rate}Gbps\"\ndelay = \"{delay_ns}ns\"\n{more}\n[[flows]]\nname = \"incast\"\nlaw = \"{law}\"\n\
         pattern = \"incast\"\nsize = \"300kB\"\ntransport.initial_window = 400\ntransport.min_rto = \"100ms\"\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With the default headroom no packet is lost at 10 to 400 Gb/s, however small the part of the buffer above it is. A
    /// timeout would send packets twice, but it does not come before the end.
    #[test]
    fn nothing_is_lost_in_an_incast(
        seed in 1u64..1000,
        packet in prop_oneof![Just(256u64), Just(1000), Just(1500), Just(4096), Just(9000)],
        rate in prop_oneof![Just(10.0), Just(25.0), Just(100.0), Just(400.0)],
        delay_ns in 0u64..3000,
        spare in 0.0f64..6.0,
        law in prop_oneof![Just("sack"), Just("dctcp"), Just("cubic")],
    ) {
        // `xoff` has what the default headroom leaves: at least one byte, and up to six packets more.
        let (rate_of, delay) = (Rate::from_gbps(rate), Time::from_nanos(delay_ns));
        let room = headroom(rate_of, rate_of, delay, delay, packet);
        let buffer = room + 1 + (spare * packet as f64) as u64;
        let more = format!("buffer = \"{buffer}B\"\npfc = true");
        let r = run(&incast(seed, packet, rate, delay_ns, &more, law));
        prop_assert_eq!(r.summary.packets.expect("a whole run").lost, 0);
        let paused = r.summary.links.iter().filter(|(_, link)| link.pfc.is_some_and(|pfc| pfc.pauses > 0)).count();
        prop_assert!(paused > 0, "nothing was paused");
        for (name, link) in &r.summary.links {
            let pfc = link.pfc.expect("all have it");
            prop_assert!(pfc.max_ingress_bytes <= pfc.xoff_bytes + pfc.headroom_bytes, "{}: {:?}", name, pfc);
            prop_assert!(pfc.paused_s <= 600e-6);
        }
        prop_assert!(r.summary.pfc_deadlock.is_none());
        let without = run(&incast(seed, packet, rate, delay_ns, &format!("buffer = \"{buffer}B\""), law));
        prop_assert!(without.summary.packets.expect("a whole run").lost > 0, "nothing would be lost without it");
    }
}

/// The default headroom is not only enough, but little more than what an incast needs: its parts other than a full frame
/// ahead of the pause all occur.
#[test]
fn the_default_headroom_is_used() {
    let r = run(&incast(1, 1000, 100.0, 2000, "buffer = \"80kB\"\npfc = true", "sack"));
    let used = |link: &str| {
        let pfc = pfc(&r, link);
        (pfc.max_ingress_bytes - pfc.xoff_bytes) / pfc.headroom_bytes
    };
    let most = (0..5)
        .map(|host| used(&format!("h{host}->leaf0")))
        .chain([used("spine0->leaf1")])
        .fold(0.0, f64::max);
    assert!((0.8..=1.0).contains(&most), "{most}");
}

/// Three switches in a ring, each with a host whose packets go around two links. Weights keep packets from the short way.
fn ring(duration: &str, flows: usize, pfc: &str) -> Results {
    let mut text = format!("duration = \"{duration}\"\nprobes = {{ links = false, groups = false }}\n");
    for i in 0..3 {
        let next = (i + 1) % 3;
        for (from, to, weight) in
            [(format!("s{i}"), format!("s{next}"), 1), (format!("s{next}"), format!("s{i}"), 100)]
        {
            let _ = writeln!(
                text,
                "[[graph.links]]\nfrom = \"{from}\"\nto = \"{to}\"\nweight = {weight}\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
                 buffer = \"20kB\"\nduplex = false\n{pfc}"
            );
        }
        let _ = writeln!(
            text,
            "[[graph.links]]\nfrom = \"h{i}\"\nto = \"s{i}\"\nweight = 1\nrate = \"10Gbps\"\ndelay = \"1us\"\nbuffer = \"2MB\"\n{pfc}"
        );
    }
    for i in 0..flows {
        let _ = writeln!(
            text,
            "[[flows]]\nname = \"f{i}\"\nlaw = \"udp\"\nrate = \"10Gbps\"\nfrom = \"h{i}\"\nto = \"h{}\"",
            (i + 2) % 3
        );
    }
    run(&text)
}

#[test]
fn a_cyclic_dependency_deadlocks_and_is_reported() {
    let (short, long) = (ring("1ms", 3, "pfc = true"), ring("3ms", 3, "pfc = true"));
    let deadlock = short.summary.pfc_deadlock.clone().expect("the ring deadlocks");
    assert_eq!(deadlock.links, ["s0->s1", "s1->s2", "s2->s0"]);
    assert!((1e-6..1e-3).contains(&deadlock.time_s), "{deadlock:?}");
    assert_eq!(long.summary.pfc_deadlock.as_ref(), Some(&deadlock));
    // Nothing moves any more: the longer run delivers nothing else.
    assert_eq!(
        short.summary.packets.expect("a whole run").arrived,
        long.summary.packets.expect("a whole run").arrived
    );
    for link in &deadlock.links {
        let rest = 1e-3 - deadlock.time_s;
        assert!(pfc(&short, link).paused_s >= rest);
    }
    let warnings: Vec<_> =
        short.summary.warnings.iter().filter(|line| line.starts_with("pfc: deadlock")).collect();
    assert_eq!(warnings.len(), 1);
    let page = include_str!("../../../docs/how-to/lossless-fabric.md");
    let shown = page.lines().find_map(|line| line.strip_prefix("warning: ")).expect("the page shows it");
    assert!(warnings[0].starts_with(shown.trim_end_matches("; ...")), "{}", warnings[0]);
}

/// With two of the flows, one link of the ring leads on to none of the others, and nothing deadlocks. Without flow
/// control packets are lost instead.
#[test]
fn pauses_without_a_cycle_do_not_deadlock() {
    let two = ring("1ms", 2, "pfc = true");
    assert!(two.summary.pfc_deadlock.is_none());
    assert!(pfc(&two, "s0->s1").pauses > 0);
    let lossy = ring("1ms", 3, "");
    assert!(lossy.summary.pfc_deadlock.is_none());
    assert!(lossy.summary.packets.expect("a whole run").lost > 0);
}

/// A ring of three switches whose flows end, at random: some rings deadlock, others nearly. A host sends to the next one and
/// to the one after that.
fn ring_of_short_flows(seed: u64) -> Results {
    let mut stream = Stream::new(seed, "short flows on a ring");
    let mut below = |n: u64| (stream.uniform() * n as f64) as u64;
    let (delay, xoff) = ([0, 1, 3, 10][below(4) as usize], 1 + below(12));
    let xon = below(xoff + 1);
    let mut text =
        format!("seed = {seed}\nduration = \"2ms\"\nprobes = {{ links = false, groups = false }}\n");
    let mut link = |from: &str, to: &str, more: &str| {
        let _ = writeln!(
            text,
            "[[graph.links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10Gbps\"\nbuffer = \"200kB\"\n{more}"
        );
    };
    for i in 0..3 {
        let (here, next) = (format!("s{i}"), format!("s{}", (i + 1) % 3));
        let more = format!(
            "delay = \"{delay}us\"\nduplex = false\npfc = {{ xoff = \"{xoff}kB\", xon = \"{xon}kB\" }}\nweight = "
        );
        link(&here, &next, &format!("{more}1"));
        link(&next, &here, &format!("{more}100"));
        link(&format!("h{i}"), &here, "delay = \"1us\"\nweight = 1\npfc = true");
    }
    for i in 0..3 {
        let start = below(60);
        let law = match below(3) {
            0 => format!(
                "law = \"udp\"\nrate = \"{}Gbps\"\nstop = \"{}us\"",
                2 + below(9),
                start + 20 + below(300)
            ),
            tcp => {
                format!("law = \"{}\"\nsize = \"{}kB\"", ["dctcp", "sack"][tcp as usize - 1], 20 + below(300))
            }
        };
        for (name, hops) in [("next", 1), ("far", 2)] {
            let to = (i + hops) % 3;
            let _ = writeln!(
                text,
                "[[flows]]\nname = \"{name}{i}\"\n{law}\nstart = \"{start}us\"\nfrom = \"h{i}\"\nto = \"h{to}\""
            );
        }
    }
    run(&text)
}

/// Links of a reported deadlock never go on. Where none is reported, no link is paused for 1 ms: the three flows of a link of
/// the ring have at most 400 kB each, which take 0.96 ms. In some of these rings a resume is under way to a link whose far
/// end fills again.
#[test]
fn a_deadlock_is_reported_if_and_only_if_links_never_go_on() {
    let mut deadlocks = 0;
    for seed in 0..400 {
        let r = ring_of_short_flows(seed);
        let paused = |link: &str| pfc(&r, link).paused_s;
        if let Some(deadlock) = &r.summary.pfc_deadlock {
            deadlocks += 1;
            for link in &deadlock.links {
                let rest = 2e-3 - deadlock.time_s;
                assert!(paused(link) >= rest - 1e-9, "seed {seed}: {link} of {deadlock:?}, {}", paused(link));
            }
        } else {
            let most = r.summary.links.keys().map(|link| paused(link)).fold(0.0, f64::max);
            assert!(most < 1e-3, "seed {seed}: {most}");
        }
    }
    assert!((50..350).contains(&deadlocks), "{deadlocks}");
}

/// A priority to acks leaves two queues before each link, which a pause stops together.
#[test]
fn links_that_send_acks_first_can_be_paused() {
    let r = run(&incast(1, 1000, 10.0, 1000, "buffer = \"20kB\"\npfc = true\npriority = \"acks\"", "sack"));
    assert_eq!(r.summary.packets.expect("a whole run").lost, 0);
    assert!(r.summary.links.iter().any(|(_, link)| link.pfc.is_some_and(|pfc| pfc.pauses > 0)));
}

fn refused(text: &str) -> String {
    let loaded = try_load(text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ()));
    loaded.expect_err(text).to_string()
}

#[test]
fn what_cannot_be_paused_is_refused_by_name() {
    let tree = |more: &str| {
        format!(
            "duration = \"1ms\"\n[leaf_spine]\nleaves = 2\nspines = 1\nhosts = 2\nrate = \"10Gbps\"\ndelay = \"1us\"\nbuffer = \"50kB\"\n{more}\n"
        )
    };
    let flow = "[[flows]]\nname = \"f\"\nlaw = \"sack\"\nfrom = \"h0\"\nto = \"h2\"\n";
    let graph = |links: &str, more: &str| {
        format!(
            "duration = \"1ms\"\ngraph.links = [{links}]\n{more}\n[[flows]]\nname = \"f\"\nlaw = \"sack\"\nfrom = \"a\"\nto = \"c\"\n"
        )
    };
    let link = |from: &str, to: &str, more: &str| {
        format!(
            "{{ from = \"{from}\", to = \"{to}\", rate = \"10Gbps\", delay = \"1us\", buffer = \"50kB\"{more} }},"
        )
    };
    let two = |first: &str, second: &str| format!("{}{}", link("a", "b", first), link("b", "c", second));
    const ON: &str = ", pfc = true";
    for (text, key, part) in [
        (tree("pfc = 3") + flow, "leaf_spine.pfc", "true, false, or a table"),
        (tree("pfc = { xof = \"3kB\" }") + flow, "leaf_spine.pfc.xof", "xoff"),
        (tree("pfc = { xoff = \"50kB\" }") + flow, "leaf_spine.pfc.xoff", "with headroom of 5564B"),
        (tree("pfc = { xoff = \"20kB\", xon = \"30kB\" }") + flow, "leaf_spine.pfc.xon", "at most xoff, 20kB"),
        (tree("pfc = { headroom = \"50kB\" }") + flow, "leaf_spine.pfc", "give buffer = \"54kB\" or more"),
        (tree("pfc = true\nqueue = \"codel\"") + flow, "leaf_spine.pfc", "together with its queue"),
        (tree("pfc = true\npriority = \"labels\"") + flow, "leaf_spine.pfc", "together with its priority"),
        (tree("pfc = true\nrouter = \"rcp\"\nshare = \"wfq\"") + &flow.replace("sack", "rcp"), "leaf_spine.pfc", "together with its share"),
        (tree("pfc = true") + flow + "access = { rate = \"10Gbps\", delay = \"1us\" }\n", "flows.f.access", "cannot be paused"),
        (
            tree("pfc = true") + flow + "[[outages]]\nlink = \"leaf0->spine0\"\nfrom = \"100us\"\nuntil = \"200us\"\n",
            "leaf_spine.pfc",
            "outage",
        ),
        (graph(&two(", duplex = false, pfc = true", ""), ""), "graph.links[0].pfc", "needs a link back"),
        (graph(&two(", pfc = true, impairments = { loss = 0.1 }", ""), ""), "graph.links[0].pfc", "impairments"),
        (graph(&two(", pfc = true, medium = \"air\"", ", medium = \"air\""), ""), "graph.links[0].pfc", "medium"),
        (graph(&two(ON, "").replacen("\"10Gbps\"", "{ steps = [[\"0s\", \"1Gbps\"]] }", 1), ""), "graph.links[0].pfc", "rate"),
        (
            "duration = \"1ms\"\n[dumbbell]\nrate = \"1Gbps\"\nrtt = \"1ms\"\npfc = true\n[[flows]]\nname = \"f\"\nlaw = \"sack\"\n".to_owned(),
            "dumbbell.pfc",
            "unknown",
        ),
    ] {
        let message = refused(&text);
        assert!(message.contains(key) && message.contains(part), "{message}\n{text}");
    }
    // The next link need not be able to pause.
    let fine = graph(&two(ON, ", impairments = { loss = 0.1 }"), "");
    assert!(run(&fine).summary.links["a->b"].pfc.is_some());
}

#[test]
fn a_change_in_mid_run_that_would_move_thresholds_is_refused() {
    let text = incast(1, 1000, 10.0, 1000, "buffer = \"20kB\"\npfc = true\nrouter = \"rcp\"", "rcp");
    let mut sim = Simulation::new(&try_load(&text).expect("valid"), None).expect("valid");
    let refused = sim.set("leaf_spine.rate", "20Gbps").expect_err("thresholds would move").to_string();
    assert!(refused.contains("pfc"), "{refused}");
    sim.set("leaf_spine.router.alpha", "0.3").expect("a law may change");
}

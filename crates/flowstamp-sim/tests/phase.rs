//! Phase effects, and the random delay of senders that ends them.

mod common;

use common::{run, timeless, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;
use std::ops::ControlFlow;

/// Five TCPs whose hosts' links are as fast as the bottleneck, where `access` does not say otherwise.
fn five(law: &str, access: &str, transport: &str, more: &str) -> String {
    format!(
        r#"
        duration = "60s"
        warmup = "20s"
        [dumbbell]
        rate = "10Mbps"
        access_rate = "{access}"
        rtt = "80ms"
        buffer = "1BDP"
        [[flows]]
        name = "tcp"
        law = "{law}"
        count = 5
        spread = "1s"
        transport = {{ {transport} }}
        {more}
        "#
    )
}

fn jain(results: &Results) -> f64 {
    results.summary.groups["tcp"].jain_index.expect("flows")
}

/// Below this index flows may be locked (network/phase.rs).
const UNEVEN: f64 = 0.75;

/// Floyd and Jacobson 1992: a delay of one packet time of the bottleneck, 0.8 ms, is enough.
#[test]
fn a_random_delay_ends_phase_effects() {
    for law in ["reno", "newreno", "sack"] {
        let locked = run(&five(law, "10Mbps", "", ""));
        assert!(jain(&locked) < UNEVEN, "{law}: {}", jain(&locked));
        let told = &locked.summary.warnings;
        assert!(told.len() == 1 && told[0].contains("set transport.send_jitter = \"800us\""), "{told:?}");
        for (access, transport) in [("10Mbps", "send_jitter = '800us'"), ("9.99999Mbps", "")] {
            let free = run(&five(law, access, transport, ""));
            assert!(jain(&free) > UNEVEN, "{law}, {access}, {transport}: {}", jain(&free));
            assert!(free.summary.warnings.is_empty(), "{:?}", free.summary.warnings);
        }
    }
}

/// Uneven shares with another cause are not called a phase effect.
#[test]
fn nothing_is_told_where_something_else_explains_it() {
    let locked = five("sack", "10Mbps", "", "");
    assert_eq!(run(&locked).summary.warnings.len(), 1);
    for (from, to) in [
        ("duration = \"60s\"", "duration = \"30s\""), // three epochs of 3.2 s
        ("count = 5", "count = 5\nrtt = ['80ms', '81ms', '82ms', '83ms', '84ms']"),
        ("buffer = \"1BDP\"", "buffer = \"1BDP\"\nqueue = 'red'"),
        ("count = 5", "count = 60"), // windows of 3.3 packets
        ("count = 5", "count = 5\nlifetime = '50s'"),
        ("spread = \"1s\"", "every = '6s'"),
    ] {
        assert!(locked.contains(from));
        let results = run(&locked.replace(from, to));
        assert_eq!(jain(&results) < UNEVEN, !to.contains("red"), "{to}: {}", jain(&results));
        assert!(results.summary.warnings.is_empty(), "{to}: {:?}", results.summary.warnings);
    }
    let web = "[[flows]]\nname = 'web'\nlaw = 'sack'\nweb = { flows_per_s = 1.0, sizes = { distribution = 'exponential', mean = '10kB' } }";
    let results = run(&five("sack", "10Mbps", "", web));
    assert!(results.summary.warnings.is_empty() && jain(&results) < UNEVEN);
}

#[test]
fn without_a_delay_nothing_changes() {
    let given = run(&five("sack", "10Mbps", "send_jitter = '0s'", ""));
    assert_eq!(given.digest(), run(&five("sack", "10Mbps", "", "")).digest());
}

/// Four hundred flows of one packet each: what they take beyond the least possible is the delay alone.
fn single_packets(seed: u64, more: &str) -> Vec<f64> {
    let text = format!(
        r#"
        duration = "30s"
        seed = {seed}
        [dumbbell]
        rate = "1Gbps"
        rtt = "10ms"
        [[flows]]
        name = "one"
        law = "sack"
        size = "500B"
        count = 400
        every = "50ms"
        transport = {{ send_jitter = "5ms" }}
        {more}
        "#
    );
    let results = run(&text);
    let of_group = results.flows.iter().filter(|flow| &*flow.group == "one");
    of_group.map(|flow| flow.fct_s.expect("it ends")).collect()
}

#[test]
fn delays_are_uniform_and_follow_from_seed_and_name() {
    let times = single_packets(1, "");
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    let delays: Vec<f64> = times.iter().map(|time| (time - least) / 5e-3).collect();
    assert!(delays.iter().all(|delay| (0.0..1.0).contains(delay)));
    // Mean 1/2 and mean square 1/3, with standard deviations of 1/sqrt(12) and sqrt(4/45) a flow: five standard errors.
    let mean = |of: &dyn Fn(f64) -> f64| delays.iter().map(|d| of(*d)).sum::<f64>() / 400.0;
    assert!((mean(&|d| d) - 0.5).abs() < 5.0 * (1.0 / 12.0_f64).sqrt() / 20.0, "{}", mean(&|d| d));
    assert!((mean(&|d| d * d) - 1.0 / 3.0).abs() < 5.0 * (4.0 / 45.0_f64).sqrt() / 20.0);
    assert_eq!(times, single_packets(1, ""));
    assert_ne!(times, single_packets(2, ""));
    let other = "[[flows]]\nname = 'other'\nlaw = 'sack'\nreverse = true\ncount = 2\ntransport = { send_jitter = '1ms' }";
    let beside = single_packets(1, &format!("{other}\nsize = '50kB'\nstart = '25s'"));
    assert_eq!(times, beside, "another group changes these draws");
}

/// Packets leave in order, whatever the law: with and without a pace, through slow start and losses.
#[test]
fn packets_keep_their_order() {
    for (law, buffer) in [("sack", "20pkt"), ("reno", "20pkt"), ("bbr", "1BDP"), ("cubic", "1BDP")] {
        let text = five(law, "1Gbps", "send_jitter = '3ms'", "[capture]\nlinks = ['bottleneck']")
            .replace("1BDP", buffer)
            .replace("duration = \"60s\"", "duration = \"30s\"");
        let results = run(&text);
        let mut next = [0u32; 5];
        let (mut sent, mut again) = (0, 0);
        for packet in results.capture.packets.iter().filter(|p| p.data) {
            let next = &mut next[packet.flow as usize];
            sent += 1;
            if packet.seq >= *next {
                *next = packet.seq + 1;
            } else {
                again += 1;
            }
        }
        // A dropped packet is not seen before it is resent: a packet that is behind was resent.
        let retransmissions: u64 = results.summary.groups.values().map(|group| group.retransmissions).sum();
        assert!(sent > 1000, "{law}: {sent}");
        assert!(again <= retransmissions, "{law}: {again} behind, {retransmissions} sent again");
    }
}

/// The engine's short cuts change nothing, nor does a second run.
#[test]
fn a_run_with_delays_is_a_function_of_scenario_and_seed() {
    let reverse = "[[flows]]\nname = 'back'\nlaw = 'reno'\nreverse = true\ncount = 3\ntransport = { send_jitter = '300us' }";
    for law in ["sack", "bbr"] {
        let text = five(law, "10Mbps", "send_jitter = '800us'", reverse);
        let whole = run(&text);
        let loaded = try_load(&text).expect("scenario");
        let sim = Simulation::new(&loaded, None).expect("network").one_by_one();
        let slow = sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
        assert_eq!(whole.digest(), slow.digest(), "{law}");
        let seeded = Simulation::new(&loaded, Some(2)).expect("network");
        let other = seeded.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
        assert!(timeless(&whole.summary) != timeless(&other.summary));
    }
}

/// A paced law's delay counts from the packet's paced time: its rate stays.
#[test]
fn a_pace_is_kept() {
    let text = |transport: &str| {
        five("rcp", "100Mbps", transport, "")
            .replace("buffer = \"1BDP\"", "buffer = \"1BDP\"\nrouter = 'rcp'")
    };
    let (plain, delayed) = (run(&text("")), run(&text("send_jitter = '3ms'")));
    let utilization = |results: &Results| results.summary.links["bottleneck"].utilization;
    // Gaps are 4 ms, delays 3 ms: the pace would be 5.5 ms if each gap began at a departure, 27% less.
    assert!(utilization(&delayed) > 0.97 * utilization(&plain), "{}", utilization(&delayed));
    assert_ne!(plain.digest(), delayed.digest());
}

#[test]
fn a_delay_of_more_than_a_second_is_refused() {
    let told = |text: &str| try_load(text).expect_err("it is refused").to_string();
    let long = told(&five("sack", "10Mbps", "send_jitter = '2s'", ""));
    assert!(long.contains("flows.tcp.transport.send_jitter: is 2s; it must be at most 1s"), "{long}");
}

/// Datagrams of equal rates over one interface of a cell: by a bare clock one gets all that the others lose, and is told of; with the default jitter
/// they share.
#[test]
fn datagrams_in_a_cell_are_told_of_and_share() {
    let cell = |jitter: &str| {
        let flow = |i: usize| {
            format!(
                "[[flows]]\nname = \"f{i}\"\nlaw = \"udp\"\nrate = \"6Mbps\"\nfrom = \"n\"\nto = \"w\"\n{jitter}\n"
            )
        };
        let flows: String = (0..3).map(flow).collect();
        run(&format!(
            r#"
            duration = "10s"
            warmup = "1s"
            [graph]
            links = [{{ from = "n", to = "ap", rate = "1Gbps", delay = "1ms", buffer = "1000pkt" }}]
            [[wireless]]
            name = "air"
            access_point = "ap"
            stations = [{{ name = "w", rate = "11Mbps" }}]
            buffer = "50pkt"
            {flows}
            "#
        ))
    };
    let (locked, free) = (cell("jitter = 'none'"), cell(""));
    let share =
        |r: &Results, i: usize| r.summary.groups[&format!("f{i}")].goodput_bps / r.summary.total.goodput_bps;
    assert!((0..3).all(|i| (share(&free, i) * 3.0 - 1.0).abs() < 0.08), "{:?}", free.summary.groups);
    assert!(free.summary.warnings.is_empty(), "{:?}", free.summary.warnings);
    let told = &locked.summary.warnings;
    assert!(told.len() == 1 && told[0].contains("flows.f0: looks phase-locked"), "{told:?}");
}

/// Flows that govern a link ask for it later by a delay of their own.
#[test]
fn a_flow_that_governs_waits_before_it_asks() {
    let text = |jitter: &str| {
        format!(
            r#"
            duration = "10s"
            [graph]
            links = [
                {{ name = "edge", from = "site", to = "in", rate = "100Mbps", delay = "1ms", buffer = "50pkt" }},
                {{ name = "core", from = "in", to = "out", rate = "20Mbps", delay = "10ms", router = "xcp" }},
            ]
            [[flows]]
            name = "macro"
            law = "xcp-edge"
            from = "in"
            to = "out"
            governs = "edge"
            transport = {{ {jitter} }}
            [[flows]]
            name = "tcp"
            law = "sack"
            from = "site"
            to = "out"
            "#
        )
    };
    let packets = |r: &Results| r.summary.packets.expect("a whole run").sent;
    let (plain, later) = (run(&text("")), run(&text("send_jitter = '20ms'")));
    let goodput = |r: &Results| r.summary.groups["tcp"].goodput_bps;
    assert!(packets(&plain) != packets(&later));
    assert!(goodput(&later) > 0.9 * goodput(&plain), "{} {}", goodput(&later), goodput(&plain));
}

//! The engine: determinism, conservation, exact timing, and queueing theory.

mod common;

use common::{laws, run, timeless, try_load};
use flowstamp_sim::{Progress, Simulation, run_many};
use proptest::prelude::*;
use std::ops::ControlFlow;

/// A scenario with everything that draws random numbers: web flows both ways over RED, long flows, losses.
fn busy(seed: u64, (protocol, router): (&str, &str), rate_mbps: u32, buffer: &str) -> String {
    let queue = if router == "none" { "red" } else { "droptail" };
    format!(
        r#"
        duration = "4s"
        warmup = "1s"
        seed = {seed}
        [dumbbell]
        rate = "{rate_mbps}Mbps"
        rtt = "40ms"
        buffer = "{buffer}"
        queue = "{queue}"
        router = "{router}"
        [[flows]]
        name = "long"
        law = "{protocol}"
        count = 5
        spread = "1s"
        [[flows]]
        name = "back"
        law = "{protocol}"
        count = 3
        reverse = true
        every = "100ms"
        stop = "3s"
        [[flows]]
        name = "web"
        law = "{protocol}"
        web = {{ flows_per_s = 50.0, sizes = {{ distribution = "pareto", mean = "20kB", shape = 1.35 }} }}
        [[flows]]
        name = "slow"
        law = "{protocol}"
        rate = "200kbps"
        transport = {{ delayed_acks = true }}
        [probes]
        flows = true
        laws = true
        "#
    )
}

#[test]
fn a_run_is_a_function_of_scenario_and_seed() {
    for law in laws() {
        let protocol = law.0;
        let loaded: Vec<_> =
            (1..3).map(|seed| try_load(&busy(seed, law, 10, "20pkt")).expect("scenario")).collect();
        let all = |threads| {
            let results =
                run_many(&loaded, None, Some(threads), &|_, _| ControlFlow::Continue(())).expect("results");
            results
                .into_iter()
                .map(|r| (timeless(&r.summary), r.series.value, r.flows.len()))
                .collect::<Vec<_>>()
        };
        let one = all(1);
        assert!(one == all(2), "{protocol}: two threads differ from one");
        assert!(one == all(4), "{protocol}: four threads differ from one");
        assert!(one[0].0 != one[1].0, "{protocol}: seeds 1 and 2 give the same");
    }
}

#[test]
fn a_new_group_leaves_the_arrivals_of_others() {
    let text = busy(1, ("sack", "none"), 10, "1BDP");
    let more = format!("{text}\n[[flows]]\nname = \"more\"\nlaw = \"sack\"\nspread = \"1s\"\n");
    let starts = |text: &str| {
        let rows = run(text).flows;
        rows.into_iter()
            .filter(|f| &*f.group != "more")
            .map(|f| (f.group, f.start_s, f.size_bytes))
            .collect::<Vec<_>>()
    };
    let (mut a, mut b) = (starts(&text), starts(&more));
    a.sort_by(|x, y| x.partial_cmp(y).expect("no NaN"));
    b.sort_by(|x, y| x.partial_cmp(y).expect("no NaN"));
    assert_eq!(a, b);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The engine itself asserts that packets are conserved; here, that nothing else is amiss in any run.
    #[test]
    fn packets_and_bytes_are_conserved(
        seed in 0u64..1000,
        law in prop::sample::select(laws()),
        rate in 1u32..40,
        buffer in prop::sample::select(vec!["1pkt", "3pkt", "5kB", "0.2BDP", "1BDP", "10BDP"]),
    ) {
        let r = run(&busy(seed, law, rate, buffer));
        let s = &r.summary;
        let p = s.packets.expect("a whole run");
        prop_assert!(p.arrived + p.lost <= p.sent);
        for (name, link) in &s.links {
            prop_assert!((0.0..=1.0 + 1e-6).contains(&link.utilization), "{name}: {link:?}");
            prop_assert!(link.mean_queue_bytes <= link.max_queue_bytes + 1e-9, "{name}: {link:?}");
            prop_assert!(link.p95_queue_bytes <= link.max_queue_bytes, "{name}: {link:?}");
            prop_assert!(link.max_queue_bytes <= link.buffer_bytes, "{name}: {link:?}");
            prop_assert!(link.drops <= link.arrivals);
        }
        // Goodput is not more than what the bottleneck carried.
        let forward: f64 = s.groups.iter().filter(|(n, _)| *n != "back").map(|(_, g)| g.goodput_bps).sum();
        prop_assert!(forward <= s.links["bottleneck"].rate_bps * 1.01, "{forward}");
        for f in &r.flows {
            if let (Some(size), Some(_)) = (f.size_bytes, f.end_s) {
                prop_assert_eq!(size, f.delivered_bytes, "a complete flow has all its bytes, once: {:?}", f);
            }
            if let Some(rtt) = f.min_rtt_s.get() {
                prop_assert!(rtt >= 0.040, "faster than light: {f:?}");
            }
        }
        let delivered: u64 = r.flows.iter().map(|f| f.delivered_bytes).sum();
        prop_assert!(delivered > 0);
    }
}

/// One packet and its ack over three links each way, by hand.
#[test]
fn times_are_exact() {
    let r = run(r#"
        duration = "1s"
        packet = "1000B"
        [dumbbell]
        rate = "8Mbps"
        access_rate = "80Mbps"
        rtt = "40ms"
        [[flows]]
        name = "one"
        law = "sack"
        size = "460B"
        start = "100ms"
        "#);
    let flow = &r.flows[0];
    // 460 bytes behind 40 of headers: 50 us on each access link, 500 us on the bottleneck, 20 ms one way.
    assert!((flow.fct_s.expect("done") - 0.020_600).abs() < 1e-12, "{flow:?}");
    // The ack of 40 bytes: 4 us, 40 us, 4 us.
    assert!((flow.min_rtt_s.get().expect("a sample") - (0.040_600 + 0.000_048)).abs() < 1e-12, "{flow:?}");
    assert_eq!(r.summary.packet_hops, 6);
    assert_eq!(r.summary.packets.expect("a whole run").sent, 2);
}

/// Poisson arrivals of single packets at a FIFO link are an M/D/1 queue: the mean number waiting is
/// rho^2 / (2 (1 - rho)) (Pollaczek-Khinchine).
#[test]
fn the_queue_is_that_of_m_d_1() {
    for (rho, tolerance) in [(0.5, 0.02), (0.8, 0.03)] {
        // 8 Mb/s and 1000-byte packets: 1000 packets per second. Access is so fast that it keeps the arrivals Poisson.
        let r = run(&format!(
            r#"
            duration = "2000s"
            warmup = "10s"
            [dumbbell]
            rate = "8Mbps"
            access_rate = "400Gbps"
            rtt = "1ms"
            buffer = "1000pkt"
            [[flows]]
            name = "web"
            law = "sack"
            web = {{ flows_per_s = {}, sizes = {{ distribution = "fixed", size = "960B" }} }}
            "#,
            rho * 1000.0
        ));
        let link = &r.summary.links["bottleneck"];
        let expected = rho * rho / (2.0 * (1.0 - rho)) * 1000.0;
        let error = link.mean_queue_bytes / expected - 1.0;
        // Tolerance: the standard error of the time average over 2000 s; its correlation time is about
        // 1 / (mu (1 - sqrt(rho))^2), 12 ms and 90 ms, and the queue's standard deviation 1.6 and 1.9 means, hence
        // 0.6% and 1.8% at two standard errors, doubled for the tail of the correlation.
        assert!(
            error.abs() < tolerance * 1.5,
            "rho {rho}: {} bytes, expected {expected}",
            link.mean_queue_bytes
        );
        assert!((link.utilization - rho).abs() < 0.01, "{}", link.utilization);
        // P(wait = 0) = 1 - rho: at 0.5 the median queue is empty.
        assert_eq!(link.drops, 0);
    }
}

/// A link whose rate steps, and one that follows a trace, carry what they can and no more.
#[test]
fn varying_links_carry_their_capacity() {
    let text = |rate: &str| {
        format!(
            r#"
            duration = "20s"
            warmup = "2s"
            [dumbbell]
            rate = {rate}
            rtt = "40ms"
            buffer = "200kB"
            [[flows]]
            name = "long"
            law = "sack"
            count = 10
            "#
        )
    };
    let r = run(&text(r#"{ steps = [["0s", "10Mbps"], ["5s", "20Mbps"], ["10s", "5Mbps"]] }"#));
    let link = &r.summary.links["bottleneck"];
    let mean = (3.0 * 10e6 + 5.0 * 20e6 + 10.0 * 5e6) / 18.0;
    assert!((link.rate_bps / mean - 1.0).abs() < 1e-9, "{}", link.rate_bps);
    assert!(link.utilization > 0.97 && link.utilization <= 1.0 + 1e-3, "{link:?}");
    let folder = std::env::temp_dir().join(format!("flowstamp-trace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let path = folder.join("trace");
    std::fs::write(&path, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n10\n").expect("trace"); // 11 lines in 10 ms: 13.2 Mb/s
    let r = run(&text(&format!("{{ trace = {:?} }}", path.display().to_string())));
    std::fs::remove_dir_all(&folder).expect("clean");
    let link = &r.summary.links["bottleneck"];
    assert!((link.rate_bps / 13.2e6 - 1.0).abs() < 1e-3, "{}", link.rate_bps);
    // 1000-byte packets share 1500-byte opportunities: nothing is lost while packets wait.
    assert!(link.utilization > 0.97 && link.utilization <= 1.0 + 1e-3, "{link:?}");
}

/// An application that produces 1 Mb/s gets 1 Mb/s, no more and no less, under each law.
#[test]
fn an_application_rate_is_kept() {
    for protocol in ["xcp", "sack"] {
        let router = if protocol == "xcp" { "xcp" } else { "none" };
        let r = run(&format!(
            r#"
            duration = "20s"
            warmup = "5s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "40ms"
            router = "{router}"
            [[flows]]
            name = "slow"
            law = "{protocol}"
            rate = "1Mbps"
            [[flows]]
            name = "long"
            law = "{protocol}"
            "#
        ));
        let slow = r.summary.groups["slow"].goodput_bps;
        assert!((slow / 1e6 - 1.0).abs() < 0.02, "{protocol}: {slow}");
        let long = r.summary.groups["long"].goodput_bps;
        // 0.96 of the remaining 8.96 Mb/s are payload; a tenth of it for windows that come and go in bursts.
        assert!(long > 0.9 * 8.96e6 * 0.96, "{protocol}: the other flow gets the rest, not {long}");
    }
}

/// Flows that stop send nothing new and free the link.
/// Observers do not change a link's measurements by a bit: the rates and times here are not round numbers of
/// picoseconds.
#[test]
fn probes_change_nothing_that_is_measured() {
    let scenario = |probes: &str| {
        format!(
            "duration = \"5s\"\nwarmup = \"1.3s\"\n[dumbbell]\nrate = \"17.3Mbps\"\nrtt = \"41.7ms\"\n[probes]\n{probes}\n\
             [[flows]]\nname = \"a\"\nlaw = \"cubic\"\ncount = 3\nspread = \"1s\"\n"
        )
    };
    let summary = |probes: &str| {
        let mut summary = run(&scenario(probes)).summary;
        summary.events = 0; // the engine's, samples among them
        timeless(&summary)
    };
    let without = summary("links = false\ngroups = false");
    for probes in ["", "every = \"7ms\"", "every = \"1.234567ms\"\nlaws = true\nflows = true"] {
        assert_eq!(summary(probes), without, "{probes}");
    }
}

/// An application that has produced more packets than a number of 32 bits counts goes on, and so does a transfer of more.
#[test]
fn more_packets_than_are_counted_are_enough() {
    let scenario = |rest: &str| {
        format!(
            "duration = \"2s\"\n[dumbbell]\nrate = \"1Mbps\"\nrtt = \"10ms\"\n\
             [[flows]]\nname = \"a\"\nlaw = \"reno\"\n{rest}\n"
        )
    };
    let endless = run(&scenario("")).summary;
    // 2^32 packets of 960 B are produced in 0.33 s.
    for rest in ["rate = \"100Tbps\"", "size = \"10000GB\""] {
        let loaded = try_load(&scenario(rest)).unwrap_or_else(|e| panic!("{e}"));
        let sim = Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"));
        let enough = |p: Progress| {
            if p.events < 1_000_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let results = sim.run(&mut { enough }).expect("it ends");
        let (ours, theirs) = (&results.summary.groups["a"], &endless.groups["a"]);
        assert!((ours.goodput_bps - theirs.goodput_bps).abs() < f64::EPSILON, "{rest}: {}", ours.goodput_bps);
    }
}

#[test]
fn stopped_flows_stop() {
    let r = run(r#"
        duration = "10s"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        router = "xcp"
        [[flows]]
        name = "stays"
        law = "xcp"
        [[flows]]
        name = "stops"
        law = "xcp"
        stop = "5s"
        [probes]
        every = "400ms"
        "#);
    let rate = |name: &str, at: f64| {
        let key =
            r.series.keys.iter().position(|k| k.name == name && k.metric == "goodput_bps").expect("series");
        let rows = (0..r.series.key.len()).filter(|i| r.series.key[*i] as usize == key);
        rows.min_by(|a, b| {
            let gap = |i: &usize| (r.series.time_s[*i] - at).abs();
            gap(a).total_cmp(&gap(b))
        })
        .map(|i| r.series.value[i])
        .expect("a sample")
    };
    // Samples are ten round trips long, and windows leave in bursts: one burst more or less is a tenth.
    let (stays, stops) = (rate("stays", 4.4), rate("stops", 4.4));
    assert!((stays / stops - 1.0).abs() <= 0.1, "{stays} {stops}");
    assert_eq!(rate("stops", 6.4), 0.0);
    assert!(rate("stays", 7.2) > 9.5e6);
}

/// The end of warm-up leaves no trace in the series, wherever in a sampling interval it falls.
#[test]
fn warm_up_leaves_no_trace_in_the_series() {
    let series = |warmup: &str| {
        let text = busy(1, ("reno", "none"), 10, "20pkt")
            .replace("warmup = \"1s\"", &format!("warmup = \"{warmup}\""));
        let r = run(&text);
        r.series.value
    };
    let (plain, within, between) = (series("0s"), series("1.013s"), series("1s"));
    assert_eq!(plain.len(), within.len());
    for i in 0..plain.len() {
        for other in [within[i], between[i]] {
            assert!(
                (plain[i] - other).abs() <= 1e-9 * plain[i].abs().max(1.0),
                "row {i}: {} and {other}",
                plain[i]
            );
        }
    }
}

/// An event beyond the end of time never comes: time does not wrap.
#[test]
fn times_beyond_the_end_do_not_wrap() {
    let r = run(r#"
        duration = "5s"
        [dumbbell]
        rate = { steps = [["0s", "1Mbps"], ["1s", "1bps"]] }
        rtt = "10ms"
        [[flows]]
        name = "rare"
        law = "sack"
        start = "1s"
        web = { flows_per_s = 1e-9, sizes = { distribution = "fixed", size = "1kB" } }
        [[flows]]
        name = "late"
        law = "sack"
        count = 5
        start = "1s"
        every = "4000h"
        "#);
    assert_eq!(r.summary.groups["rare"].flows, 0);
    assert_eq!(r.summary.groups["late"].flows, 1);
}

/// Fairness is among flows that had time to send; a group of none has none.
#[test]
fn fairness_is_among_active_flows() {
    let r = run(r#"
        duration = "10s"
        warmup = "5s"
        [dumbbell]
        rate = "10Mbps"
        rtt = "40ms"
        router = "xcp"
        [[flows]]
        name = "long"
        law = "xcp"
        count = 2
        [[flows]]
        name = "done"
        law = "xcp"
        count = 2
        size = "100kB"
        [[flows]]
        name = "web"
        law = "xcp"
        stop = "2s"
        web = { flows_per_s = 20.0, sizes = { distribution = "fixed", size = "300kB" } }
        "#);
    assert!(r.summary.total.jain_index.expect("two active flows") > 0.99, "{:?}", r.summary.total);
    assert_eq!(r.summary.groups["done"].jain_index, None);
    for f in &r.flows {
        assert!(f.goodput_bps <= 10e6, "faster than the link: {f:?}");
    }
}

/// A packet in transmission counts by the part that has left, on links of any kind.
#[test]
fn utilisation_of_a_slow_stepped_link() {
    let utilization = |rate: &str| {
        let r = run(&format!(
            r#"
            duration = "10s"
            [dumbbell]
            rate = {rate}
            rtt = "10ms"
            buffer = "10pkt"
            access_rate = "1Mbps"
            [[flows]]
            name = "long"
            law = "sack"
            "#
        ));
        r.summary.links["bottleneck"].utilization
    };
    let (constant, stepped) = (utilization("\"1kbps\""), utilization("{ steps = [[\"0s\", \"1kbps\"]] }"));
    assert!((constant - stepped).abs() < 1e-9 && stepped <= 1.0, "{constant} and {stepped}");
}

/// A capture holds the first packets of all links, in the order of time, without holes.
#[test]
fn a_limited_capture_has_no_holes() {
    let capture = |packets: u32| {
        let r = run(&format!(
            r#"
            duration = "2s"
            [graph]
            links = [
                {{ from = "a", to = "b", rate = "1Mbps", delay = "300ms", buffer = "50pkt" }},
                {{ from = "c", to = "d", rate = "10Mbps", delay = "1ms", buffer = "50pkt" }},
            ]
            [[flows]]
            name = "slow"
            law = "sack"
            from = "a"
            to = "b"
            [[flows]]
            name = "fast"
            law = "sack"
            from = "c"
            to = "d"
            [capture]
            packets = {packets}
            "#
        ));
        r.capture.packets.iter().map(|p| (p.time_ps, p.link, p.seq)).collect::<Vec<_>>()
    };
    let all = capture(1_000_000);
    assert!(all.is_sorted_by_key(|p| p.0) && all.len() > 500);
    assert_eq!(capture(200), all[..200]);
}

/// A flow that lives for 2 s from 1 s on is a flow that stops at 3 s; lives that differ are those that the file allows.
#[test]
fn a_lifetime_is_a_stop_of_each_flow_s_own() {
    let scenario = |flow: &str| {
        run(&format!(
            r#"
            duration = "6s"
            warmup = "0s"
            packet = "1000B"
            header = "0B"
            [dumbbell]
            rate = "100Mbps"
            rtt = "20ms"
            [[flows]]
            name = "other"
            law = "sack"
            [[flows]]
            name = "one"
            start = "1s"
            {flow}
            "#
        ))
    };
    for law in ["law = \"sack\"", "law = \"udp\"\nrate = \"2Mbps\""] {
        let delivered = |end: &str| {
            let run = scenario(&format!("{law}\n{end}"));
            let rows =
                run.flows.iter().map(|f| (f.delivered_bytes, f.goodput_bps.to_bits())).collect::<Vec<_>>();
            (rows, run.summary.groups["one"].goodput_bps.to_bits())
        };
        assert_eq!(delivered("lifetime = \"2s\""), delivered("stop = \"3s\""));
        assert_eq!(delivered("lifetime = \"4s\"\nstop = \"3s\""), delivered("stop = \"3s\""));
        assert_ne!(delivered("lifetime = \"2s\""), delivered("stop = \"3500ms\""));
    }
    // The data of an application of 1 Mb/s gives its lifetime to within a packet of 8 ms.
    let many = scenario(
        "law = \"udp\"\nrate = \"1Mbps\"\ncount = 40\nspread = \"1s\"\nlifetime = \"1s\"\nlifetime_spread = \"2s\"",
    );
    let lives: Vec<f64> = many
        .flows
        .iter()
        .filter(|f| &*f.group == "one")
        .map(|f| f.delivered_bytes as f64 * 8.0 / 1e6)
        .collect();
    assert!(lives.iter().all(|l| (0.992..=3.008).contains(l)), "{lives:?}");
    let mean = lives.iter().sum::<f64>() / 40.0;
    // Three standard errors of the mean of 40 that are uniform over 2 s.
    assert!((mean - 2.0).abs() <= 3.0 * 2.0 / f64::sqrt(12.0 * 40.0), "{mean}");
}

/// A group without flows changes nothing except its name in the results.
#[test]
fn a_group_may_have_no_flows() {
    let one = "[[flows]]\nname = \"one\"\nlaw = \"sack\"\n";
    let scenario = |more: &str| {
        run(&format!("duration = \"2s\"\n[dumbbell]\nrate = \"10Mbps\"\nrtt = \"20ms\"\n{one}{more}"))
    };
    let (with, without) =
        (scenario("[[flows]]\nname = \"none\"\nlaw = \"cubic\"\ncount = 0\n"), scenario(""));
    let text =
        |run: &flowstamp_sim::results::Results| format!("{:?} {:?}", run.summary.total, run.summary.links);
    assert_eq!(text(&with), text(&without));
    assert_eq!((with.summary.groups["none"].flows, with.summary.groups["none"].jain_index), (0, None));
    assert_eq!(with.summary.groups["none"].path_rtt_s, 0.0);
}

/// A window of half the bandwidth-delay product leaves the queue empty if its packets leave evenly. In slow start without pacing
/// two packets leave for each ack, and a third of the window queues.
#[test]
fn paced_tcp_sends_no_bursts() {
    let queue = |law: &str, pacing| {
        let results = run(&format!(
            r#"
            duration = "3s"
            header = "0B"
            [dumbbell]
            rate = "10Mbps"
            rtt = "80ms"
            buffer = "2BDP"
            [[flows]]
            name = "one"
            law = {{ law = "{law}", max_window = 50.0, pacing = {pacing} }}
            "#
        ));
        let goodput = results.summary.groups["one"].goodput_bps;
        assert!((4.2e6..=5e6).contains(&goodput), "{law}: {goodput}");
        results.summary.links["bottleneck"].max_queue_bytes
    };
    for law in ["reno", "newreno", "sack", "highspeed", "scalable", "htcp", "bic", "cubic", "dctcp"] {
        let (plain, paced) = (queue(law, false), queue(law, true));
        assert!(plain >= 15_000.0, "{law}: {plain}");
        assert!(paced <= 3_000.0, "{law}: {paced}");
    }
}

//! Links that lose, copy, hold back and lead elsewhere.

mod common;

use common::{honest, run, try_load, with_routers};
use flowstamp_sim::results::{ImpairedSummary, Results};
use flowstamp_sim::scenario::Impairments;
use flowstamp_sim::{Format, Progress, Simulation, load};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

/// A datagram each millisecond for 50 s over a link with these impairments, and a faster one behind it, where they are recorded.
fn datagrams(impairments: &str) -> Results {
    run(&format!(
        r#"
        duration = "51s"
        header = "0B"
        graph.links = [
            {{ name = "a", from = "x", to = "y", rate = "100Mbps", delay = "10ms", duplex = false, impairments = {impairments} }},
            {{ name = "b", from = "y", to = "z", rate = "1Gbps", delay = "1ms", duplex = false, buffer = "100pkt" }},
            {{ name = "c", from = "z", to = "x", rate = "1Gbps", delay = "1ms", duplex = false }},
        ]
        flows = [{{ name = "stream", law = "udp", jitter = "none", rate = "8Mbps", from = "x", to = "z", stop = "50s" }}]
        capture = {{ links = ["b"], packets = 200000 }}
        "#
    ))
}

const SENT: u64 = 50_000;

/// Numbers of the packets in the order in which they came to the second link.
fn came(r: &Results) -> Vec<u32> {
    r.capture.packets.iter().map(|p| p.seq).collect()
}

fn counts(r: &Results, link: &str) -> ImpairedSummary {
    r.summary.links[link].impaired.expect("it is impaired")
}

/// `n` is that of so many independent events of probability `p`, within four standard deviations of the binomial distribution: a
/// seed in 16,000 is further off.
fn is_binomial(n: u64, of: u64, p: f64) {
    let (mean, deviation) = (of as f64 * p, (of as f64 * p * (1.0 - p)).sqrt());
    assert!((n as f64 - mean).abs() <= 4.0 * deviation, "{n} of {of}: {mean} +- {deviation}");
}

#[test]
fn as_many_are_lost_as_are_asked_for_and_counted() {
    let r = datagrams("{ loss = \"1%\" }");
    let seen = came(&r);
    let lost = counts(&r, "a").lost;
    assert!(seen.is_sorted() && seen.len() as u64 + lost == SENT, "{lost} lost, {} came", seen.len());
    is_binomial(lost, SENT, 0.01);
    // In a row, too: each by itself. With p = 1% five in 50,000 follow another loss.
    let missing: Vec<_> = (0..SENT as u32).filter(|seq| seen.binary_search(seq).is_err()).collect();
    let pairs = missing.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() as u64;
    is_binomial(pairs, SENT, 0.01 * 0.01);
    // They are no queue's drops.
    let link = &r.summary.links["a"];
    assert_eq!(
        (link.drops, r.summary.total.drops, r.summary.packets.expect("a whole run").lost),
        (0, 0, lost)
    );
    assert!(r.summary.links["b"].impaired.is_none());
    assert_eq!(r.flows[0].delivered_bytes, (SENT - lost) * 1000);
}

#[test]
fn as_many_are_copied_as_are_asked_for_and_counted() {
    let r = datagrams("{ duplicate = \"2%\" }");
    let seen = came(&r);
    let ImpairedSummary { lost, duplicated, reordered, detoured, .. } = counts(&r, "a");
    assert_eq!((lost, reordered, detoured), (0, 0, 0));
    is_binomial(duplicated, SENT, 0.02);
    // A copy follows at once, and is a packet that the network sent.
    assert!(seen.is_sorted());
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len() as u64, SENT);
    assert_eq!(seen.len() as u64, SENT + duplicated);
    assert_eq!(r.summary.packets.expect("a whole run").sent, SENT + duplicated);
    assert_eq!(r.summary.packets.expect("a whole run").arrived, SENT + duplicated);
    assert_eq!(r.flows[0].delivered_bytes, SENT * 1000, "and no byte that is delivered");
}

/// One packet is sent each millisecond; who is held back for 4.5 ms comes behind the four after it, which is RFC 4737's extent of
/// reordering (section 4.2.2), and of those some are held back too.
#[test]
fn as_many_are_held_back_as_are_asked_for_and_overtaken() {
    let r = datagrams("{ reorder = \"3%\", reorder_delay = \"4500us\" }");
    let seen = came(&r);
    let reordered = counts(&r, "a").reordered;
    assert_eq!(seen.len() as u64, SENT);
    is_binomial(reordered, SENT, 0.03);
    let mut top = 0;
    let mut late = BTreeSet::new();
    for (at, seq) in seen.iter().enumerate() {
        if *seq < top {
            late.insert(*seq);
            let before = seen[..at].iter().filter(|s| *s > seq).count();
            assert!(before <= 4, "{seq} came behind {before}");
        }
        top = top.max(*seq);
    }
    // Five in a row, of whom the first would be overtaken by nobody, are one in 10^7.
    assert_eq!(late.len() as u64, reordered);
    let mut expected: Vec<u32> = (0..SENT as u32).collect();
    expected.sort_by_key(|seq| u64::from(*seq) * 1000 + if late.contains(seq) { 4500 } else { 0 });
    assert!(seen == expected, "4.5 ms behind where they would be");
}

/// Other impairments do not change which packets are lost, because each packet takes the same number of draws.
#[test]
fn the_same_are_lost_whatever_else_is_asked_for() {
    let lost = |impairments| {
        let seen: BTreeSet<_> = came(&datagrams(impairments)).into_iter().collect();
        (0..SENT as u32).filter(|seq| !seen.contains(seq)).collect::<Vec<_>>()
    };
    let alone = lost("{ loss = \"1%\" }");
    let with = lost("{ loss = \"1%\", duplicate = \"10%\", reorder = \"50%\", reorder_delay = \"3ms\" }");
    assert_eq!(alone, with);
    let more: BTreeSet<_> = lost("{ loss = \"2%\" }").into_iter().collect();
    assert!(
        alone.iter().all(|seq| more.contains(seq)),
        "of two shares the larger takes all that the smaller does"
    );
}

/// All of them at once: each share is of what is left by the ones before.
#[test]
fn shares_are_of_what_is_left() {
    let r = datagrams("{ loss = \"20%\", duplicate = \"10%\", reorder = \"5%\", reorder_delay = \"2ms\" }");
    let ImpairedSummary { lost, duplicated, reordered, detoured, .. } = counts(&r, "a");
    is_binomial(lost, SENT, 0.2);
    is_binomial(duplicated, SENT - lost, 0.1);
    is_binomial(reordered, SENT - lost + duplicated, 0.05);
    assert_eq!(detoured, 0);
    assert_eq!(came(&r).len() as u64, SENT - lost + duplicated);
}

/// From 20 s to 30 s the way is 30.5 ms longer. Transmission takes 80 us, so that packet `k` leaves at `k` ms + 80 us: those of
/// 20,000 to 29,999 take it, and the last 30 of them, which are on their way as it ends, are overtaken by the first 30 after it.
#[test]
fn packets_overtake_those_on_a_detour_when_it_ends() {
    let r = datagrams("{ detours = [{ from = \"20s\", until = \"30s\", delay = \"30500us\" }] }");
    let seen = came(&r);
    assert_eq!(counts(&r, "a").detoured, 10_000);
    let late = |seq: u32| (20_000..30_000).contains(&seq);
    let mut expected: Vec<u32> = (0..SENT as u32).collect();
    expected.sort_by_key(|seq| u64::from(*seq) * 1000 + if late(*seq) { 30_500 } else { 0 });
    assert!(seen == expected, "in another order");
    let overtaken = seen.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert_eq!(overtaken, 30, "each of the last 30 comes behind one that was sent 31 ms later");
}

/// Nothing arrives where all is lost, and a flow that begins keeps asking.
#[test]
fn a_link_may_lose_all() {
    let r = datagrams("{ loss = 1 }");
    assert_eq!((counts(&r, "a").lost, r.summary.packets.expect("a whole run").arrived), (SENT, 0));
}

const LONG: &str = r#"
duration = "10s"
header = "0B"
probes = { every = "10ms", flows = true }
flows = [{ name = "long", law = { law = "sack", max_window = 20.0 } }]
[dumbbell]
rate = "10Mbps"
rtt = "100ms"
impairments = { detours = [{ from = "3s", until = "6s", delay = "30ms" }] }
reverse_impairments = {}
"#;

/// RTT samples of the first flow, with their times.
fn rtts(r: &Results) -> Vec<(f64, f64)> {
    let key = r.series.keys.iter().position(|k| k.kind == "flow" && k.metric == "rtt_s").expect("a series");
    let rows = 0..r.series.value.len();
    rows.filter(|i| r.series.key[*i] as usize == key)
        .map(|i| (r.series.time_s[i], r.series.value[i]))
        .collect()
}

/// Another way of 30 ms more, one way, from 3 s to 6 s: the RTT is 100 ms, then 130 ms, then 100 ms again, and a transmission or
/// two of 0.8 ms beside. The smoothed RTT has come to within a hundredth of a step after 40 samples (0.875^40), which is two windows.
#[test]
fn a_detour_is_seen_as_a_step_of_the_rtt() {
    let r = run(LONG);
    for (from, to, rtt) in [(1.0, 3.0, 0.1), (3.6, 6.0, 0.13), (6.6, 10.0, 0.1)] {
        for (time, sample) in rtts(&r).into_iter().filter(|(time, _)| (from..to).contains(time)) {
            assert!((rtt..rtt + 0.0025).contains(&sample), "{sample} s at {time} s");
        }
    }
    assert_eq!(counts(&r, "bottleneck").lost, 0);
    assert_eq!(counts(&r, "bottleneck.reverse").detoured, 0);
    assert!(counts(&r, "bottleneck").detoured > 0);
}

/// A link that is impaired and impairs nothing gives the same bits as one that is not: the way around the engine's short cuts is the
/// same way.
#[test]
fn impairing_nothing_changes_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut tried = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of golden scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.display().to_string();
        let mut loaded = load(&text, Format::Toml, &name, &[], &folder).unwrap_or_else(|e| panic!("{e}"));
        let digest = |loaded| {
            let sim = Simulation::new(loaded, None).expect("a network");
            let mut results = sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
            results.summary.links.values_mut().for_each(|link| link.impaired = None);
            results.digest()
        };
        let scenario = &mut loaded.scenario;
        let of_graph = scenario.graph.iter_mut().flat_map(|g| &mut g.links).map(|l| &mut l.impairments);
        let of_dumbbell =
            scenario.dumbbell.iter_mut().flat_map(|d| [&mut d.impairments, &mut d.reverse_impairments]);
        let of_parking_lot = scenario.parking_lot.iter_mut().map(|p| &mut p.impairments);
        let all: Vec<_> = of_graph.chain(of_dumbbell).chain(of_parking_lot).collect();
        if all.iter().any(|impairments| impairments.is_some()) {
            continue;
        }
        all.into_iter().for_each(|impairments| *impairments = Some(Impairments::default()));
        let with = digest(&loaded);
        let without = load(&text, Format::Toml, &name, &[], &folder).expect("as before");
        assert_eq!(with, digest(&without), "{name}");
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}

const BROKEN: &str = "{ loss = 0.02, burst_loss = { p = 0.005, r = 0.5 }, lost_packets = [1, 20, 21], mark = 0.01, \
                      jitter = { distribution = \"normal\", deviation = \"2ms\" }, delays = { steps = [[\"0s\", \"16ms\"], [\"3s\", \"10ms\"]], interpolate = true }, \
                      duplicate = 0.05, reorder = 0.05, reorder_delay = \"7ms\", detours = [{ from = \"1s\", until = \"2s\", delay = \"30ms\" }] }";

/// Transfers of each honest sender arrive complete and once over links with all impairments at the same time.
#[test]
fn transfers_survive_broken_paths() {
    for (law, router) in with_routers(&honest()) {
        let r = run(&format!(
            r#"
            duration = "120s"
            dumbbell = {{ rate = "10Mbps", rtt = "40ms", router = "{router}", impairments = {BROKEN} }}
            flows = [{{ name = "a", law = "{law}", count = 3, size = "1MB" }}]
            "#
        ));
        for flow in &r.flows {
            assert_eq!((flow.end_s.is_some(), flow.delivered_bytes), (true, 1_000_000), "{law}: {flow:?}");
        }
    }
}

/// However it is cut, a run over broken links gives the same bits, and so does the same seed; another seed gives others.
#[test]
fn a_run_over_broken_links_is_a_function_of_its_seed() {
    let text = format!(
        r#"
        duration = "5s"
        dumbbell = {{ rate = "10Mbps", rtt = "40ms", router = "xcp", impairments = {BROKEN} }}
        flows = [{{ name = "a", law = "xcp", count = 3 }}, {{ name = "b", law = "sack", reverse = true }}]
        "#
    );
    let loaded = try_load(&text).expect("a scenario");
    let mut go = |_: Progress| ControlFlow::Continue(());
    let sim = |seed| Simulation::new(&loaded, Some(seed)).expect("a network");
    let whole = sim(1).run(&mut go).expect("nobody stops it").digest();
    let mut cut = sim(1);
    for tenths in [3, 11, 12, 29] {
        cut.run_until(flowstamp_laws::Time::from_millis(100 * tenths), &mut go).expect("a step");
        cut.results().expect("a look");
    }
    assert_eq!(whole, cut.run(&mut go).expect("nobody stops it").digest());
    assert_eq!(whole, sim(1).one_by_one().run(&mut go).expect("nobody stops it").digest());
    assert_ne!(whole.flows, sim(2).run(&mut go).expect("nobody stops it").digest().flows);
}

/// The square-root law (Mathis, Semke, Mahdavi and Ott 1997): `rate = MSS / RTT sqrt(3/2) / sqrt(p)` for losses at equal distances.
///
/// Random ones and timeouts are what the literature has beside it. Above is the ideal TCP that loses each packet by itself and never
/// waits for its timer: 1.3098 in place of sqrt(3/2) = 1.2247 (Ott, Kemperman and Mathis 1996). Below is Padhye's equation, as RFC 5348
/// section 3.1 has it with b = 1 and `t_RTO = 4 RTT` (section 4.3), which makes a timeout of most losses at small windows, as Reno does
/// and selective acks do not; of what it sends the share p is lost. Two standard errors of the sum of 5 flows with about 1,000 losses each, of which a window
/// halves at each, are 3%.
#[test]
fn sack_keeps_to_the_square_root_law() {
    let (mss, rtt, flows) = (1000.0 * 8.0, 0.1, 5.0);
    for p in [0.003_f64, 0.01] {
        let seconds = 1000.0 * (p / 0.01_f64).powf(-0.5);
        let r = run(&format!(
            r#"
            duration = "{seconds:.0}s"
            warmup = "20s"
            header = "0B"
            dumbbell = {{ rate = "1Gbps", rtt = "100ms", impairments = {{ loss = {p} }}, reverse_impairments = {{}} }}
            flows = [{{ name = "a", law = "sack", count = 5 }}]
            "#
        ));
        let root = |c: f64| mss / rtt * c / p.sqrt();
        let (mathis, ideal) = (root(1.5_f64.sqrt()), root(1.3098));
        let timeouts = 4.0 * rtt * (3.0 * (3.0 * p / 8.0).sqrt()) * p * (1.0 + 32.0 * p * p);
        let padhye = mss / (rtt * (2.0 * p / 3.0).sqrt() + timeouts);
        let rate = r.summary.groups["a"].goodput_bps / flows;
        let said =
            format!("p = {p}: {rate:.0} b/s; Mathis {mathis:.0}, ideal {ideal:.0}, Padhye {padhye:.0}");
        assert!(rate <= ideal * 1.03 && rate >= padhye * (1.0 - p) * 0.97, "{said}");
    }
}

/// Invalid values are refused in one line that names the link, the key, the value and a right value.
#[test]
fn impairments_that_make_no_sense_are_refused() {
    for (impairments, expected) in [
        (
            "{ loss = 1.5 }",
            "impairments of bottleneck: loss: is 1.5; it is a share of packets, from 0 to 1 or 100%",
        ),
        ("{ duplicate = \"200%\" }", "impairments of bottleneck: duplicate: is 2; it is"),
        (
            "{ reorder = 0.1 }",
            "impairments of bottleneck: reorder_delay: is missing; where packets are held back (reorder) it must be longer than 0s",
        ),
        ("{ reorder = 0.1, reorder_delay = \"0s\" }", "reorder_delay: is 0s; where"),
        (
            "{ detours = [{ from = \"2s\", until = \"1s\", delay = \"1ms\" }] }",
            "impairments of bottleneck: detours[0].until: is 1s; it must be later than from, 2s",
        ),
        (
            "{ detours = [{ from = \"1s\", until = \"3s\", delay = \"1ms\" }, { from = \"2s\", delay = \"1ms\" }] }",
            "detours[1].from: is 2s, but the detour before ends at 3s",
        ),
        (
            "{ detours = [{ from = \"1s\", delay = \"1ms\" }, { from = \"2s\", delay = \"1ms\" }] }",
            "detours[1].from: is 2s, but the detour before has no end",
        ),
        ("{ detours = [{ from = \"1s\" }] }", "dumbbell.impairments.detours[0]: `delay` is missing"),
        ("{ losses = 0.1 }", "dumbbell.impairments.losses: unknown key `losses`; did you mean `loss`?"),
        ("{ loss = -0.1 }", "dumbbell.impairments.loss: -0.1 is not a factor of at least 0"),
    ] {
        let text = format!(
            "duration = \"1s\"\ndumbbell = {{ rate = \"1Mbps\", rtt = \"10ms\", impairments = {impairments} }}\n\
             flows = [{{ name = \"a\", law = \"sack\" }}]"
        );
        let error = try_load(&text).map(|l| l.source).expect_err(impairments).to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    // A share of nothing goes with a delay, so that a sweep may begin at 0.
    let sweep = "duration = \"1s\"\ndumbbell = { rate = \"1Mbps\", rtt = \"10ms\", impairments = { reorder = 0, reorder_delay = \"1ms\" } }\n\
                 flows = [{ name = \"a\", law = \"sack\" }]";
    assert!(try_load(sweep).is_ok());
    let cell = "duration = \"1s\"\ngraph.links = []\n\
                wireless = [{ name = \"air\", access_point = \"a\", impairments = {}, stations = [{ name = \"b\", rate = \"11Mbps\" }] }]\n\
                flows = [{ name = \"f\", law = \"sack\", from = \"a\", to = \"b\" }]";
    let error = try_load(cell).map(|l| l.source).expect_err("a cell").to_string();
    assert!(error.contains("impairments"), "{error}");
}

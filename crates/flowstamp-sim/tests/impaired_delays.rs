//! Delays of packets' own, losses in bursts and by a list, and marks: each against its closed form.

mod common;

use common::try_load;
use flowstamp_sim::results::{ImpairedSummary, Results};
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Format, Simulation, load};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

const SENT: u32 = 50_000;
/// A packet each millisecond.
const GAP_S: f64 = 1e-3;
/// How long the link takes for a packet.
const TRANSMISSION_S: f64 = 80e-6;
/// A packet's waiting time at the next link behind a few others.
const BEHIND_S: f64 = 1e-6;

/// Datagrams over a link of 20 ms with these impairments, and a much faster one behind it. Both are recorded.
fn datagrams(impairments: &str, trace: &str) -> Results {
    let text = format!(
        r#"
        duration = "52s"
        header = "0B"
        graph.links = [
            {{ name = "a", from = "x", to = "y", rate = "100Mbps", delay = "20ms", duplex = false, impairments = {impairments} }},
            {{ name = "b", from = "y", to = "z", rate = "100Gbps", delay = "1ms", duplex = false, buffer = "1000pkt" }},
            {{ name = "c", from = "z", to = "x", rate = "1Gbps", delay = "1ms", duplex = false }},
        ]
        flows = [{{ name = "stream", law = "udp", jitter = "none", rate = "8Mbps", from = "x", to = "z", stop = "50s" }}]
        capture = {{ links = ["a", "b"], packets = 200000 }}
        "#
    );
    let files: Files = [(PathBuf::from("leo.delay"), trace.to_owned())].into();
    let loaded = load(&text, Format::Toml, "test.toml", &[], &files).unwrap_or_else(|e| panic!("{e}"));
    let sim = Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"));
    sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it")
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// For each packet, the times when it left the first link's transmitter and reached the second; by its number.
fn crossings(r: &Results) -> Vec<(f64, Option<f64>)> {
    let mut all = Vec::new();
    for packet in r.capture.packets.iter().filter(|p| p.link == 0) {
        assert_eq!(packet.seq as usize, all.len());
        all.push((seconds(packet.time_ps) + TRANSMISSION_S, None));
    }
    for packet in r.capture.packets.iter().filter(|p| p.link == 1) {
        all[packet.seq as usize].1 = Some(seconds(packet.time_ps));
    }
    all
}

/// The delay of each, all of which arrive.
fn delays(r: &Results) -> Vec<f64> {
    crossings(r).iter().map(|(left, came)| came.expect("none is lost") - left).collect()
}

fn order(r: &Results) -> Vec<u32> {
    r.capture.packets.iter().filter(|p| p.link == 1).map(|p| p.seq).collect()
}

fn counts(r: &Results) -> ImpairedSummary {
    r.summary.links["a"].impaired.expect("it is impaired")
}

/// `n` is that of so many events with this mean and variance of their sum, within four standard deviations.
fn is_about(n: f64, mean: f64, variance: f64) {
    let deviation = variance.sqrt();
    assert!((n - mean).abs() <= 4.0 * deviation, "{n}: {mean} +- {deviation}");
}

/// The largest distance of samples' distribution from another: Kolmogorov's. One in 10^4 of `n` independent samples is further off than
/// 2.2/sqrt(n).
fn is_distributed(mut samples: Vec<f64>, of: impl Fn(f64) -> f64) {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let distance = |(i, x): (usize, &f64)| ((i as f64 + 0.5) / n - of(*x)).abs();
    let furthest = samples.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(furthest <= 2.2 / n.sqrt(), "{furthest} of {n}");
}

fn uniform(x: f64) -> f64 {
    ((x - 0.015) / 0.01).clamp(0.0, 1.0)
}

/// For a normal distribution: `(1 + erf(z/sqrt 2))/2`.
fn normal(x: f64) -> f64 {
    0.5 * (1.0 + libm::erf((x - 0.02) / 0.002 / std::f64::consts::SQRT_2))
}

/// For a Pareto distribution of this shape whose mean is 20 ms and whose standard deviation is 2 ms: with the scale m
/// it is `m a/(a - 1)` and `m/(a - 1) sqrt(a/(a - 2))` (Johnson, Kotz and Balakrishnan 1994, chapter 20).
fn pareto(x: f64, a: f64) -> f64 {
    let m = 0.002 * (a - 1.0) / (a / (a - 2.0)).sqrt();
    let x = x - (0.02 - m * a / (a - 1.0));
    if x > m { 1.0 - (m / x).powf(a) } else { 0.0 }
}

/// The one-way delay has the mean of the link's `delay`, the deviation that is asked for, and the whole distribution.
#[test]
fn jitter_has_the_distribution_that_is_asked_for() {
    let n = f64::from(SENT);
    for (jitter, deviation, distribution) in [
        ("uniform\", spread = \"5ms\"", 0.005 / 3.0_f64.sqrt(), &uniform as &dyn Fn(f64) -> f64),
        ("normal\", deviation = \"2ms\"", 0.002, &normal),
        ("pareto\", deviation = \"2ms\", shape = 5.0", 0.002, &|x| pareto(x, 5.0)),
        // With shape 3 the third moment is infinite, and a sample's deviation says little.
        ("pareto\", deviation = \"2ms\"", 0.0, &|x| pareto(x, 3.0)),
    ] {
        let r = datagrams(&format!("{{ jitter = {{ distribution = \"{jitter} }} }}"), "");
        let all = delays(&r);
        let mean = all.iter().sum::<f64>() / n;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 0.02).abs() < 4.0 * 0.003 / n.sqrt() + BEHIND_S, "{jitter}: {mean}");
        if deviation > 0.0 {
            // The kurtosis of Pareto's of shape 5 is 73.8, so that the deviation of a sample of 50,000 varies by 2%.
            assert!((variance.sqrt() / deviation - 1.0).abs() < 0.08, "{jitter}: {variance}");
        }
        is_distributed(all, distribution);
        assert!(!order(&r).is_sorted(), "nothing keeps packets in their order");
    }
}

/// Where order is kept, a packet arrives at its own time or at that of the one before, whichever is later. With a packet each T the
/// delay is the largest of `D(k - j) - jT` over all j before: it is at most x with the probability F(x) F(x + T) F(x + 2T) ...
#[test]
fn jitter_that_keeps_order_delays_by_the_one_before() {
    for (jitter, one) in [
        ("uniform\", spread = \"5ms\"", &uniform as &dyn Fn(f64) -> f64),
        ("normal\", deviation = \"2ms\"", &normal),
        ("pareto\", deviation = \"2ms\"", &|x| pareto(x, 3.0)),
    ] {
        let jitter = format!("jitter = {{ distribution = \"{jitter} }}");
        let free = crossings(&datagrams(&format!("{{ {jitter} }}"), ""));
        let r = datagrams(&format!("{{ {jitter}, keep_order = true }}"), "");
        assert!(order(&r).is_sorted());
        let mut latest = 0.0_f64;
        for (kept, free) in crossings(&r).iter().zip(free) {
            latest = latest.max(free.1.expect("it comes"));
            let came = kept.1.expect("it comes");
            assert!((came - latest).abs() < 10.0 * BEHIND_S, "{came} and {latest}");
        }
        // Those of every 20 ms have hardly anything in common.
        let samples: Vec<f64> = delays(&r).into_iter().step_by(20).collect();
        is_distributed(samples, |x| (0..60).map(|j| one(x + f64::from(j) * GAP_S)).product());
    }
}

/// A packet's delay is what the list or the file says of the instant at which it leaves the transmitter.
#[test]
fn a_delay_follows_its_steps_or_its_trace() {
    const TRACE: &str = "# time delay\n0 20\n4000, 30\n\n10000 15\n15000 40\n";
    let entries = [(0.0, 0.02), (4.0, 0.03), (10.0, 0.015), (15.0, 0.04)];
    let stepped = |t: f64| entries.iter().rev().find(|(from, _)| *from <= t).expect("the first is at 0").1;
    let linear = |t: f64| {
        let next = entries.iter().position(|(from, _)| *from > t).expect("it is before the end");
        let ((from, before), (to, after)) = (entries[next - 1], entries[next]);
        before + (after - before) * (t - from) / (to - from)
    };
    let steps = "steps = [[\"0s\", \"20ms\"], [\"4s\", \"30ms\"], [\"10s\", \"15ms\"], [\"15s\", \"40ms\"]]";
    let cases: [(&str, &dyn Fn(f64) -> f64); 3] = [
        (steps, &stepped),
        // A trace repeats.
        ("trace = \"leo.delay\"", &|t| stepped(t % 15.0)),
        ("trace = \"leo.delay\", interpolate = true", &|t| linear(t % 15.0)),
    ];
    for (delays, expected) in cases {
        let r = datagrams(&format!("{{ delays = {{ {delays} }} }}"), TRACE);
        for (left, came) in crossings(&r) {
            let delay = came.expect("none is lost") - left;
            assert!((delay - expected(left)).abs() < BEHIND_S, "{delay} s at {left} s of {delays}");
        }
        // From 30 ms to 15 ms: the last 15 before are overtaken by the first 15 after; or they wait.
        assert!(!order(&r).is_sorted());
        let kept = datagrams(&format!("{{ delays = {{ {delays} }}, keep_order = true }}"), TRACE);
        assert!(order(&kept).is_sorted());
        let mut latest = 0.0_f64;
        for (left, came) in crossings(&kept) {
            latest = latest.max(left + expected(left));
            assert!(
                (came.expect("none is lost") - latest).abs() < 20.0 * BEHIND_S,
                "{came:?} and {latest} s"
            );
        }
    }
}

/// The share lost over a long run is `(r good + p bad)/(p + r)`. The states' correlation falls by 1 - p - r per packet, which adds to the
/// binomial variance `2 (bad - good)^2 pr/(p + r)^2 (1 - p - r)/(p + r)` for each packet.
#[test]
fn bursts_lose_the_share_of_the_stationary_states() {
    for (p, r, bad, good) in
        [(0.01_f64, 0.25_f64, 1.0_f64, 0.0_f64), (0.05, 0.5, 0.6, 0.01), (0.3, 0.9, 1.0, 0.1)]
    {
        let burst = format!("{{ burst_loss = {{ p = {p}, r = {r}, bad = {bad}, good = {good} }} }}");
        let run = datagrams(&burst, "");
        let share = (r * good + p * bad) / (p + r);
        let together = 2.0 * (bad - good).powi(2) * p * r / (p + r).powi(2) * (1.0 - p - r) / (p + r);
        let n = f64::from(SENT);
        is_about(counts(&run).lost as f64, n * share, n * (share * (1.0 - share) + together));
        let lost: Vec<bool> = crossings(&run).iter().map(|(_, came)| came.is_none()).collect();
        assert_eq!(lost.iter().filter(|lost| **lost).count() as u64, counts(&run).lost);
        if (bad, good) == (1.0, 0.0) {
            // Gilbert's own: bursts last a geometric number of packets, 1/r on average, with the variance (1 - r)/r^2.
            let begin = |pair: &&[bool]| !pair[0] && pair[1];
            let bursts = lost.windows(2).filter(begin).count() as f64;
            is_about(counts(&run).lost as f64, bursts / r, bursts * (1.0 - r) / (r * r));
            // And as many begin as good states end.
            let good = n - counts(&run).lost as f64;
            is_about(bursts, good * p, good * p * (1.0 - p));
        }
    }
}

#[test]
fn exactly_the_listed_packets_are_lost() {
    let r = datagrams("{ lost_packets = [50000, 7, 1, 7, 500, 60000] }", "");
    let crossings = crossings(&r);
    let lost: Vec<usize> = (0..crossings.len()).filter(|seq| crossings[*seq].1.is_none()).collect();
    // Sequence numbers of datagrams begin at 0, numbers of packets at 1.
    assert_eq!(lost, [0, 6, 499, 49_999]);
    assert_eq!(counts(&r).lost, 4);
}

/// Two senders with a constant window, of which one is ECN-capable, over a link with these impairments one way. How many packets of the other
/// and of that crossed it.
fn capable_and_not(impairments: &str) -> (Results, [u64; 2]) {
    let loaded = try_load(&format!(
        r#"
        duration = "20s"
        dumbbell = {{ rate = "100Mbps", rtt = "10ms", impairments = {impairments}, reverse_impairments = {{}} }}
        capture = {{ links = ["bottleneck"], packets = 1000000 }}
        flows = [
            {{ name = "with", law = {{ law = "told", window = 30.0 }}, transport = {{ ecn = true }} }},
            {{ name = "without", law = {{ law = "told", window = 30.0 }} }},
        ]
        "#
    ))
    .unwrap_or_else(|e| panic!("{e}"));
    let sim = Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"));
    let r = sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
    let mut crossed = [0; 2];
    for packet in &r.capture.packets {
        crossed[usize::from(packet.ecn_capable)] += 1;
    }
    (r, crossed)
}

/// ECN-capable data are marked, each by itself, and nothing else is.
#[test]
fn a_share_of_ecn_capable_packets_is_marked() {
    let (r, [_, capable]) = capable_and_not("{ mark = \"2%\" }");
    let ImpairedSummary { lost, marked, .. } = r.summary.links["bottleneck"].impaired.expect("it is");
    is_about(marked as f64, capable as f64 * 0.02, capable as f64 * 0.02 * 0.98);
    assert_eq!(lost, 0);
    assert!(capable > 10_000, "{capable}");
    assert_eq!(r.summary.links["bottleneck"].marks, 0, "no queue's marks");
    // All that comes back of a mark is an echo: nobody had to send anything again.
    assert!(r.flows.iter().all(|flow| flow.retransmissions == 0));
}

/// With `ecn` who would be lost is marked if that means something, as netem has it.
#[test]
fn marks_in_place_of_losses() {
    let (r, [other, capable]) = capable_and_not("{ loss = \"1%\", ecn = true }");
    let ImpairedSummary { lost, marked, .. } = r.summary.links["bottleneck"].impaired.expect("it is");
    is_about(marked as f64, capable as f64 * 0.01, capable as f64 * 0.01 * 0.99);
    is_about(lost as f64, other as f64 * 0.01, other as f64 * 0.01 * 0.99);
    let again =
        |name: &str| r.flows.iter().filter(|f| &*f.group == name).map(|f| f.retransmissions).sum::<u32>();
    assert_eq!(again("with"), 0);
    assert!(again("without") > 0);
}

/// A stream of its own for each impairment: who is lost is the same with and without the others.
#[test]
fn each_impairment_has_its_own_stream() {
    let lost = |impairments: &str| {
        let all = crossings(&datagrams(impairments, ""));
        (0..all.len()).filter(|seq| all[*seq].1.is_none()).collect::<BTreeSet<_>>()
    };
    let burst = "burst_loss = { p = 0.01, r = 0.25 }";
    let jitter =
        "jitter = { distribution = \"normal\", deviation = \"2ms\" }, mark = 0.5, lost_packets = [3]";
    let alone = lost(&format!("{{ {burst} }}"));
    let mut with = lost(&format!("{{ {burst}, {jitter}, loss = 0.0 }}"));
    assert!(with.contains(&2));
    with.retain(|seq| *seq != 2 || alone.contains(seq));
    assert_eq!(alone, with);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let of = |impairments: &str, files: &Files| {
        let text = format!(
            "duration = \"1s\"\ndumbbell = {{ rate = \"1Mbps\", rtt = \"10ms\", impairments = {impairments} }}\n\
             flows = [{{ name = \"a\", law = \"sack\" }}]"
        );
        let loaded = load(&text, Format::Toml, "test.toml", &[], files)?;
        Simulation::new(&loaded, None).map(|_| ())
    };
    for (impairments, expected) in [
        (
            "{ burst_loss = { p = 0.1, r = 0 } }",
            "burst_loss.r: is 0; it must be above 0, or a bad state would never end",
        ),
        (
            "{ burst_loss = { p = 1.1, r = 1 } }",
            "burst_loss.p: is 1.1; it is a share of packets, from 0 to 1 or 100%",
        ),
        ("{ lost_packets = [0] }", "lost_packets: has 0; the first packet is number 1"),
        ("{ mark = 2 }", "mark: is 2; it is a share"),
        (
            "{ jitter = { distribution = \"uniform\", spread = \"5ms\" } }",
            "impairments of bottleneck: jitter: has delays of 5ms less than the mean, and the link's delay is 4ms; use less, or a longer delay",
        ),
        (
            "{ jitter = { distribution = \"uniform\", spread = \"0s\" } }",
            "jitter.spread: is 0s; it must be longer",
        ),
        (
            "{ jitter = { distribution = \"pareto\", deviation = \"1ms\", shape = 2.0 } }",
            "jitter.shape: is 2; it must be above 2",
        ),
        ("{ jitter = { distribution = \"gamma\" } }", "jitter"),
        (
            "{ reorder = 0.1, reorder_delay = \"1ms\", keep_order = true }",
            "keep_order: is true, but reorder holds packets back",
        ),
        ("{ delays = {} }", "impairments of bottleneck: delays: needs exactly one of `steps` and `trace`"),
        ("{ delays = { steps = [[\"1s\", \"1ms\"]] } }", "delays.steps: must start with an entry at \"0s\""),
        (
            "{ delays = { steps = [[\"0s\", \"1ms\"], [\"0s\", \"2ms\"]] } }",
            "delays.steps: must be in rising order",
        ),
        (
            "{ delays = { trace = \"gone\" } }",
            "dumbbell.impairments.delays.trace: \"gone\" is not among the files given",
        ),
        (
            "{ delays = { trace = \"one\" } }",
            "delays.trace: \"one\": has one line; the last time is the period",
        ),
        (
            "{ delays = { trace = \"late\" } }",
            "delays.trace: \"late\": line 1: the first time is 5ms; it must be 0",
        ),
        (
            "{ delays = { trace = \"back\" } }",
            "delays.trace: \"back\": line 2: 0s is not after the line above",
        ),
        (
            "{ delays = { trace = \"text\" } }",
            "delays.trace: \"text\": line 2: \"1 20ms\" is not a time and a delay in milliseconds",
        ),
    ] {
        let files =
            [("one", "0 1\n"), ("late", "5 1\n6 1\n"), ("back", "0 1\n0 1\n"), ("text", "0 1\n1 20ms\n")];
        let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into();
        let error = of(impairments, &files).expect_err(impairments).to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    assert!(
        of("{ burst_loss = { p = 0, r = \"100%\" }, keep_order = true, ecn = true }", &Files::new()).is_ok()
    );
}

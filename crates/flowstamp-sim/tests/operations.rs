//! Incasts of a given size, and collective operations whose steps wait for each other.

mod common;

use common::{run, try_load};
use flowstamp_sim::results::{OperationsSummary, Results};
use std::collections::BTreeSet;

const LEAF: &str = "duration = \"20ms\"\npacket = \"1500B\"\nack = \"40B\"\n\
    [leaf_spine]\nleaves = 1\nspines = 1\nhosts = 8\nrate = \"10Gbps\"\ndelay = \"1us\"\nbuffer = \"20MB\"\nhost_buffer = \"20MB\"\n";

fn group(rest: &str) -> String {
    format!("[[flows]]\nname = \"g\"\nlaw = \"sack\"\ntransport = {{ initial_window = 1000 }}\n{rest}\n")
}

fn operations(results: &Results) -> &OperationsSummary {
    results.summary.groups["g"].operations.as_ref().expect("operations")
}

/// Seconds of a message over two links of 10 Gb/s and 1 us: packets back to back, and the first one again.
fn message_s(bytes: u64) -> f64 {
    let packets = bytes.div_ceil(1460);
    let first = bytes.min(1460) + 40;
    ((bytes + 40 * packets + first) * 8) as f64 / 10e9 + 2e-6
}

/// Without congestion, a ring of N hosts takes 2 (N - 1) times as long as one message. Acks of 40 bytes share the links.
#[test]
fn a_ring_takes_as_long_as_its_messages() {
    for (hosts, size) in [(2, 1_000_000), (3, 900_001), (8, 80_000), (8, 8_000_000), (8, 8)] {
        let rest = format!("pattern = \"ring-all-reduce\"\ncount = {hosts}\nsize = \"{size}B\"");
        let results = run(&format!("{LEAF}{}", group(&rest)));
        let summary = operations(&results);
        let ideal = f64::from(2 * (hosts - 1)) * message_s(u64::div_ceil(size, hosts as u64));
        let told = summary.ideal_s.expect("an ideal time");
        assert!((told / ideal - 1.0).abs() < 1e-9, "{hosts} hosts, {size} B: {told} for {ideal}");
        let time = summary.time_s.as_ref().expect("one operation").max;
        assert!(
            (1.0..=1540.0 / 1500.0 + 0.05).contains(&(time / ideal)),
            "{hosts} hosts, {size} B: {time} for {ideal}"
        );
        let application = results.summary.groups["g"].application.as_ref().expect("messages");
        assert_eq!(application.whole_run.completed, hosts as u64 * 2 * (hosts as u64 - 1));
        assert_eq!((summary.started, summary.completed), (1, 1));
    }
}

/// All to all: each host sends N - 1 messages over its own link.
#[test]
fn all_to_all_takes_as_long_as_a_hosts_link() {
    let rest = "pattern = \"all-to-all\"\nsize = \"8MB\"";
    let results = run(&format!("{LEAF}{}", group(rest)));
    let summary = operations(&results);
    let own = f64::from(7 * (1_000_000 + 40 * 685)) * 8.0 / 10e9;
    let (time, ideal) =
        (summary.time_s.as_ref().expect("one operation").max, summary.ideal_s.expect("a bound"));
    assert!((ideal / own - 1.0).abs() < 1e-9, "{ideal} for {own}");
    assert!((1.0..1.1).contains(&(time / own)), "{time} for {own}");
    assert_eq!(results.flows.len(), 56);
    assert!(results.flows.iter().all(|flow| flow.delivered_bytes == 1_000_000));
}

/// An operation begins after the end of the one before it and the gap, and steps without a lost packet take equally long.
#[test]
fn operations_follow_each_other() {
    let rest = "pattern = \"ring-all-reduce\"\nsize = \"80kB\"\nhosts = [\"h5\", \"h1\", \"h3\"]\nstart = \"1ms\"\n\
        collective = { operations = 5, gap = \"100us\" }";
    let results = run(&format!("{LEAF}{}", group(rest)));
    let summary = operations(&results);
    assert_eq!((summary.started, summary.completed, summary.runs.len()), (5, 5, 5));
    assert_eq!(summary.runs[0].start_s, 1e-3);
    for pair in summary.runs.windows(2) {
        let end = pair[0].end_s.expect("it ended");
        assert!((pair[1].start_s - end - 100e-6).abs() < 1e-12, "{pair:?}");
    }
    let sent: BTreeSet<_> = results.flows.iter().map(|flow| flow.delivered_bytes).collect();
    assert_eq!(sent, BTreeSet::from([5 * 4 * 80_000_u64.div_ceil(3)]));
    // An operation that the run or the group's stop cuts short has no end.
    let short = rest.replace("start = \"1ms\"", "stop = \"60us\"");
    let results = run(&format!("{LEAF}{}", group(&short)));
    let summary = operations(&results);
    assert_eq!((summary.started, summary.completed), (1, 0), "{summary:?}");
}

/// A ring whose packets are lost still ends, and its hosts may start at different times.
#[test]
fn a_ring_survives_losses() {
    let text = format!(
        "{}{}",
        LEAF.replace("20MB", "4pkt"),
        group(
            "pattern = \"all-to-all\"\nsize = \"400kB\"\nspread = \"50us\"\ncollective = { operations = 3 }"
        )
        .replace("initial_window = 1000", "initial_window = 10, min_rto = \"200us\", initial_rto = \"1ms\"")
    );
    let results = run(&text);
    assert!(results.summary.total.drops > 0);
    assert_eq!(operations(&results).completed, 3);
}

#[test]
fn incasts_have_the_total_and_the_times_that_are_asked_for() {
    let rest =
        "pattern = \"incast\"\nto = \"h2\"\nincast = { total = \"100001B\", senders = 5, every = \"1ms\" }";
    let results = run(&format!("{LEAF}{}", group(rest)));
    let summary = operations(&results);
    assert_eq!((summary.started, summary.completed, summary.runs.len()), (20, 20, 20));
    for (incast, flows) in results.flows.chunks(5).enumerate() {
        assert_eq!(flows.iter().filter_map(|flow| flow.size_bytes).sum::<u64>(), 100_001);
        assert!(flows.iter().all(|flow| (flow.start_s - incast as f64 * 1e-3).abs() < 1e-12));
        let end = flows.iter().filter_map(|flow| flow.end_s).fold(0.0, f64::max);
        assert_eq!(summary.runs[incast].end_s, Some(end));
    }
    let time = summary.time_s.as_ref().expect("incasts").p50;
    let wire = f64::from(100_001 + 40 * 5 * 14) * 8.0 / 10e9;
    assert!((wire..wire + 10e-6).contains(&time), "{time} for {wire}");
    assert!(results.summary.groups["g"].fct_slowdown.is_some());
}

/// Senders are drawn anew each time, and so are receivers where that is asked for. None sends to itself.
#[test]
fn incasts_draw_their_hosts() {
    let laid = |rest: &str| {
        let loaded = try_load(&format!("{LEAF}{}", group(rest))).expect(rest);
        let network = flowstamp_sim::plan::Network::new(&loaded, 1).expect("laid out");
        let list = network.groups[0].list.clone().expect("a list");
        let ends = list.rows.iter().map(|row| {
            let pair = &list.pairs[row.pair as usize];
            (pair.from.clone().expect("a sender"), pair.to.clone().expect("a receiver"))
        });
        ends.collect::<Vec<_>>()
    };
    let fixed = laid("pattern = \"incast\"\nincast = { total = \"1MB\", senders = 3, every = \"100us\" }");
    let of =
        |incast: &[(String, String)]| incast.iter().map(|(from, _)| from.clone()).collect::<BTreeSet<_>>();
    assert!(fixed.iter().all(|(from, to)| to == "h7" && from != "h7"));
    assert!(fixed.chunks(3).all(|incast| of(incast).len() == 3));
    assert!(fixed.chunks(3).map(of).collect::<BTreeSet<_>>().len() > 10);
    let random =
        laid("pattern = \"incast\"\nincast = { total = \"1MB\", every = \"100us\", random_receiver = true }");
    assert!(
        random
            .chunks(7)
            .all(|incast| of(incast).len() == 7 && incast.iter().all(|(f, t)| f != t && *t == incast[0].1))
    );
    assert_eq!(random.iter().map(|(_, to)| to).collect::<BTreeSet<_>>().len(), 8);
}

#[test]
fn what_is_wrong_is_named() {
    for (rest, words) in [
        ("pattern = \"ring-all-reduce\"", "flows.g.size: is missing"),
        ("pattern = \"all-to-all\"\nsize = \"1MB\"\ncount = 1", "flows.g.count: is 1; it must be 2 to 8"),
        ("pattern = \"all-to-all\"\nsize = \"1MB\"\ncount = 9", "flows.g.count: is 9; it must be 2 to 8"),
        ("pattern = \"all-to-all\"\nsize = \"1MB\"\nto = \"h1\"", "flows.g.to: is not for a pattern"),
        ("pattern = \"all-to-all\"\nsize = \"1MB\"\nevery = \"1ms\"", "flows.g.every: is not for collective"),
        ("pattern = \"random\"\ncollective = { operations = 2 }", "flows.g.collective: is for pattern"),
        ("pattern = \"all-to-all\"\nsize = \"1MB\"\ncollective = { operations = 0 }", "operations: is 0"),
        ("hosts = [\"h1\", \"h2\"]\nfrom = \"h1\"\nto = \"h2\"", "flows.g.hosts: is for a pattern"),
        (
            "pattern = \"random\"\nhosts = [\"h1\", \"leaf0\"]",
            "flows.g.hosts: \"leaf0\" is not a host; there are h0",
        ),
        ("pattern = \"random\"\nhosts = [\"h1\", \"h1\"]", "flows.g.hosts: names \"h1\" twice"),
        ("pattern = \"random\"\nhosts = [\"h1\"]", "flows.g.hosts: names one host"),
        ("incast = { total = \"1MB\" }", "flows.g.incast: is for pattern = \"incast\""),
        (
            "pattern = \"incast\"\nsize = \"1MB\"\nincast = { total = \"1MB\" }",
            "flows.g.size: is not for incasts",
        ),
        (
            "pattern = \"incast\"\nincast = { total = \"1MB\", senders = 8 }",
            "incast.senders: is 8; it must be 1 to 7",
        ),
        (
            "pattern = \"incast\"\nincast = { total = \"3B\" }",
            "incast.total: is 3B; it must be at least 1B for each of 7",
        ),
        ("pattern = \"incast\"\nincast = { total = \"1MB\", every = \"0s\" }", "incast.every: is 0s"),
        (
            "pattern = \"incast\"\nincast = { total = \"1MB\", every = \"1ns\" }",
            "incast.every: is 1ns, which makes",
        ),
    ] {
        let error = try_load(&format!("{LEAF}{}", group(rest))).expect_err(rest).to_string();
        assert!(error.contains(words), "{rest:?}: {error}");
    }
}

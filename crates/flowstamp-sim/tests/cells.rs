//! Cells of 802.11 in a graph: flows up and down over the air, whatever is known of DCF by itself (tests/dcf).

mod common;

use common::{refusal, run, run_in_steps, timeless};
use flowstamp_laws::Time;
use proptest::prelude::*;

/// One wired node behind an access point, and stations at these rates.
fn cell(rates: &[&str], cell: &str, flows: &str) -> String {
    let stations: Vec<_> =
        rates.iter().enumerate().map(|(i, rate)| format!("{{ name = \"w{i}\", rate = {rate} }}")).collect();
    format!(
        r#"
        duration = "20s"
        warmup = "5s"
        packet = "1300B"
        header = "0B"
        [graph]
        links = [{{ from = "n", to = "ap", rate = "100Mbps", delay = "10ms", buffer = "1000pkt", router = "xcp" }}]
        [[wireless]]
        name = "air"
        access_point = "ap"
        stations = [{}]
        {cell}
        {flows}
        "#,
        stations.join(", ")
    )
}

fn flow(name: &str, law: &str, from: &str, to: &str) -> String {
    format!("[[flows]]\nname = \"{name}\"\nlaw = {law}\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

/// Datagrams faster than the air: a MAC that always has a frame carries 1300 bytes in DIFS, 15.5 slots, preamble, 1336 bytes at
/// 11 Mb/s, SIFS and an ack at 2 Mb/s (802.11b, clauses 9.3 and 17).
#[test]
fn one_station_carries_what_the_standard_allows() {
    for (from, to) in [("ap", "w0"), ("w0", "ap")] {
        let flows = flow("udp", "\"udp\"", from, to) + "rate = \"11Mbps\"\n";
        let r = run(&cell(&["\"11Mbps\""], "", &flows));
        let us =
            50.0 + 15.5 * 20.0 + 192.0 + (1336.0f64 * 8.0 / 11.0).ceil() + 10.0 + 192.0 + 14.0 * 8.0 / 2.0;
        let expected = 1300.0 * 8.0 / us;
        let got = r.summary.total.goodput_bps * 1e-6;
        // Backoffs have a standard deviation of 9.2 slots: over 8,000 frames 2 us of 1,785.
        assert!((got / expected - 1.0).abs() < 0.004, "{from} to {to}: {got}, expected {expected}");
        assert!(r.summary.links[&format!("air.{from}")].drops > 0, "{:?}", r.summary.links);
    }
}

#[test]
fn xcp_b_fills_the_air_with_a_short_queue() {
    let flows: String = (0..3).map(|i| flow(&format!("down{i}"), "\"xcp\"", "n", &format!("w{i}"))).collect();
    let r = run(&cell(&["\"11Mbps\""; 3], "router = \"xcp-b\"\nbuffer = \"64kB\"", &flows));
    let link = &r.summary.links["air.ap"];
    assert!((2000.0..12_000.0).contains(&link.mean_queue_bytes), "{link:?}");
    assert_eq!(r.summary.links.values().map(|l| l.drops).sum::<u64>(), 0);
    assert!(r.summary.total.jain_index.is_some_and(|j| j > 0.99), "{:?}", r.summary.groups);
    assert!(r.summary.total.goodput_bps > 4.0e6, "{}", r.summary.total.goodput_bps);
}

/// An access point with three transfers and a call to stations of one rate: transfers have equal parts. The call's
/// packets wait only for the frame in the MAC; a FIFO would hold tens of them before. A capture has each as its MAC
/// takes it.
#[test]
fn flows_wait_apart_before_the_air() {
    let waits = |queue: &str| {
        let laws = ["cubic", "reno", "sack"].iter().enumerate();
        let transfers: String =
            laws.map(|(i, law)| flow(law, &format!("\"{law}\""), "n", &format!("w{i}"))).collect();
        let call = flow("call", "\"udp\"", "n", "w3") + "rate = \"52kbps\"\njitter = \"none\"\n";
        let text = cell(
            &["\"11Mbps\""; 4],
            &format!("buffer = \"200pkt\"\nqueue = \"{queue}\""),
            &(call + &transfers),
        );
        let r = run(&(text + "[capture]\nlinks = [\"air.ap\"]\npackets = 1000000\n"));
        // 1300 bytes each 200 ms; the first of them finds nobody.
        let late =
            |p: &flowstamp_sim::results::CapturedPacket| p.time_ps as f64 * 1e-12 - f64::from(p.seq) * 0.2;
        let sent: Vec<_> = r.capture.packets.iter().filter(|p| p.flow == 0).map(late).collect();
        let waited = sent.iter().map(|at| at - sent[0]);
        let goodputs = ["cubic", "reno", "sack"].map(|law| r.summary.groups[law].goodput_bps);
        (waited.skip(25).fold(0.0, f64::max), sent.len(), goodputs)
    };
    let (longest, count, goodputs) = waits("fq_codel");
    assert_eq!(count, 100);
    // The frame that the MAC has, 2.2 ms with the longest backoff, and one of each transfer that is new before it; between them as many of the
    // stations' acks, of less than a millisecond.
    assert!(longest < 4.0 * (2.2e-3 + 1e-3), "{longest} s");
    // 15 s of 1.4 Mb/s are 2,000 packets, of which one may have a quantum and a packet more than another at both ends; and a percent for
    // turns in which it had nothing.
    let (least, most) =
        (goodputs.iter().copied().fold(f64::MAX, f64::min), goodputs.iter().copied().fold(0.0, f64::max));
    assert!(most / least < 1.012, "{goodputs:?}");
    let (fifo, _, others) = waits("droptail");
    assert!(fifo > 0.1, "{fifo} s");
    assert!(others[0] > 2.0 * others[1], "{others:?}");
}

#[test]
fn bad_cells_are_refused_in_one_line() {
    let down = flow("f", "\"sack\"", "n", "w0");
    let good = cell(&["\"11Mbps\""], "", &down);
    for (text, words) in [
        (good.replace(", rate = \"11Mbps\" }", " }"), "`rate` is missing"),
        (
            good.replace("\"11Mbps\"", "\"54Mbps\""),
            "is 54Mbps, a rate that 802.11b lacks; it has 1Mbps, 2Mbps, 5.5Mbps, 11Mbps",
        ),
        (cell(&["\"11Mbps\""], "router = \"xcp\"", &down), "is unknown in a cell; take \"xcp-b\""),
        (
            cell(&["\"11Mbps\""], "router = \"vcp\"", &down),
            "is unknown in a cell; set the capacity that it assumes with `told`",
        ),
        (cell(&["\"11Mbps\""], "router = { law = \"xcp-b\", q_max = \"0B\" }", &down), "q_max: is 0B"),
        (cell(&["\"11Mbps\""], "buffer = \"1BDP\"", &down), "give packets or bytes"),
        (
            cell(
                &["\"11Mbps\""],
                "[[wireless]]\nname = \"other\"\naccess_point = \"n\"\nstations = [{ name = \"w0\", rate = \"1Mbps\" }]",
                &down,
            ),
            "\"w0\" is a node of cell \"air\" already",
        ),
        (
            cell(
                &["\"11Mbps\""],
                "[[wireless]]\nname = \"air\"\naccess_point = \"n\"\nstations = [{ name = \"v\", rate = \"1Mbps\" }]",
                &down,
            ),
            "\"air\" appears twice",
        ),
        (cell(&[], "", &down), "needs two nodes at least"),
        (
            good.replace("[graph]", "[graph]\nrtt = \"0s\"").replace("\"1300B\"", "\"3000B\""),
            "is 3kB; a frame of 802.11b carries 2296B at most",
        ),
    ] {
        let message = refusal(&text);
        assert!(message.contains(words) && !message.contains('\n'), "{words}: {message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Packets are conserved (the engine asserts it), and a run that is done again, or cut into steps, is the same run, whatever the laws, the
    /// rates and the errors.
    #[test]
    fn runs_are_the_same_to_the_bit(
        seed in 0u64..1000,
        law in prop::sample::select(vec!["xcp", "sack", "cubic"]),
        stations in 1usize..6,
        errors in prop::sample::select(vec![0.0, 0.1, 0.6]),
        mac in prop::sample::select(vec!["802.11b", "802.11g", "802.11b-ns2"]),
        queue in prop::sample::select(vec!["droptail", "fq_codel"]),
    ) {
        let rate = if mac == "802.11g" { "\"6Mbps\"" } else { "{ steps = [[\"0s\", \"11Mbps\"], [\"7s\", \"2Mbps\"]] }" };
        let flows: String = (0..stations)
            .flat_map(|i| [("n".to_owned(), format!("w{i}")), (format!("w{i}"), "n".to_owned())])
            .enumerate()
            .map(|(i, (from, to))| flow(&format!("f{i}"), &format!("\"{law}\""), &from, &to))
            .collect();
        let router = if law == "xcp" { "xcp-b" } else { "none" };
        let text = cell(&vec![rate; stations], &format!("mac = \"{mac}\"\nrouter = \"{router}\"\nqueue = \"{queue}\""), &flows)
            .replace(&format!("rate = {rate} }}"), &format!("rate = {rate}, error_rate = {errors} }}"))
            .replace("duration = \"20s\"", &format!("seed = {seed}\nduration = \"20s\""));
        let whole = timeless(&run(&text).summary);
        prop_assert_eq!(&whole, &timeless(&run(&text).summary));
        let ends = [1, 6, 7, 8, 20].map(Time::from_secs);
        prop_assert_eq!(&whole, &timeless(&run_in_steps(&text, &ends).summary));
    }
}

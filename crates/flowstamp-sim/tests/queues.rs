//! Queue laws on links: CoDel's standing queue, and links that are served by events as if they were not.

mod common;

use common::{run, samples, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;

/// Eight long flows over 20 Mb/s and 40 ms with a buffer of 160 ms, a sample each millisecond.
fn long_flows(queue: &str, ecn: bool) -> Results {
    run(&format!(
        r#"
        duration = "30s"
        warmup = "10s"
        [dumbbell]
        rate = "20Mbps"
        rtt = "40ms"
        buffer = "4BDP"
        queue = {queue}
        [[flows]]
        name = "long"
        law = "sack"
        count = 8
        spread = "1s"
        transport = {{ ecn = {ecn} }}
        [probes]
        every = "1ms"
        links = true
        groups = false
        "#
    ))
}

/// The queue's delay at each sample after 10 s, seconds, at 20 Mb/s.
fn delays(results: &Results) -> Vec<f64> {
    samples(results, "bottleneck", "queue_bytes", 10.0).iter().map(|bytes| bytes * 8.0 / 20e6).collect()
}

/// The median over time of the least delay in 100 ms: the standing queue of RFC 8289, section 3.1.
fn standing(delays: &[f64]) -> f64 {
    let least = |window: &[f64]| window.iter().copied().fold(f64::INFINITY, f64::min);
    let mut windows: Vec<f64> = delays.windows(100).map(least).collect();
    windows.sort_by(f64::total_cmp);
    windows[windows.len() / 2]
}

#[test]
fn codel_holds_the_standing_queue_near_its_target() {
    // CoDel drops while the least delay is above its target of 5 ms and not below. A drop takes half of one window out of
    // eight, 1/16 of a path that holds 40 ms and the queue: the least delay moves up and down by so much about the target.
    let (target, step) = (5e-3, (40e-3 + 5e-3) / 16.0);
    for ecn in [false, true] {
        let (tail, codel) = (long_flows("\"droptail\"", ecn), long_flows("\"codel\"", ecn));
        let (long, short) = (standing(&delays(&tail)), standing(&delays(&codel)));
        assert!((short - target).abs() < step, "CoDel: {short} s");
        // A full buffer is 160 ms, and eight windows that all halve leave (40 + 160) / 2 - 40 ms of it.
        assert!(long > 60e-3, "drop-tail: {long} s");
        let link = &codel.summary.links["bottleneck"];
        // One step down from the target the queue is not empty.
        assert!(link.utilization > 0.99, "{}", link.utilization);
        let (drops, marks) = (link.drops, link.marks);
        assert!(if ecn { drops == 0 && marks > 0 } else { drops > 0 && marks == 0 }, "{drops} {marks}");
    }
}

/// A served link whose law never drops as packets leave is the FIFO with its events: the same packets at the same instants.
#[test]
fn a_served_link_is_a_fifo_with_events() {
    let never = r#"{ kind = "codel", target = "100s", interval = "100s" }"#;
    for (rate, extra) in [
        ("\"20Mbps\"", ""),
        (r#"{ steps = [["0s", "20Mbps"], ["700ms", "5Mbps"], ["1500ms", "30Mbps"]] }"#, ""),
        ("\"20Mbps\"", "router = \"xcp\""),
    ] {
        let with = |queue: &str| {
            run(&format!(
                r#"
                duration = "3s"
                warmup = "500ms"
                [dumbbell]
                rate = {rate}
                rtt = "40ms"
                buffer = "30pkt"
                queue = {queue}
                {extra}
                [[flows]]
                name = "there"
                law = "sack"
                count = 5
                spread = "300ms"
                [[flows]]
                name = "back"
                law = "reno"
                count = 3
                reverse = true
                [capture]
                packets = 100000
                [probes]
                every = "10ms"
                flows = true
                "#
            ))
        };
        let (fifo, served) = (with("\"droptail\""), with(never));
        assert!(fifo.summary.links["bottleneck"].drops > 0 || !extra.is_empty(), "nothing to compare");
        assert_eq!(fifo.flows.len(), served.flows.len());
        let (a, b) = (fifo.digest(), served.digest());
        assert_eq!((a.flows, a.series, a.capture), (b.flows, b.series, b.capture), "{rate} {extra}");
        let links = |r: &Results| format!("{:#?}", r.summary.links);
        assert_eq!(links(&fifo), links(&served), "{rate} {extra}");
    }
}

fn refused(text: &str) -> String {
    match try_load(text).and_then(|loaded| Simulation::new(&loaded, None).map(|_| ())) {
        Ok(()) => panic!("accepted: {text}"),
        Err(e) => e.to_string(),
    }
}

fn dumbbell(rate: &str, links: &str, law: &str) -> String {
    format!(
        "duration = \"8s\"\nwarmup = \"4s\"\n[dumbbell]\nrate = {rate}\nrtt = \"40ms\"\n{links}\n[[flows]]\nname = \"long\"\nlaw = \"{law}\"\ncount = 2\n"
    )
}

#[test]
fn what_cannot_be_together_is_refused() {
    let shared = dumbbell("\"20Mbps\"", "router = \"xcp\"\nshare = \"fifo\"\nqueue = \"codel\"", "xcp");
    let error = refused(&shared);
    assert!(error.contains("dumbbell.queue: \"codel\" decides as packets leave"), "{error}");
    let target = dumbbell("\"20Mbps\"", "queue = { kind = \"codel\", target = \"200ms\" }", "sack");
    assert!(refused(&target).contains("dumbbell.queue.target: is 200ms"), "{}", refused(&target));
}

#[test]
fn codels_interval_follows_a_path_that_the_rfcs_does_not_fit() {
    let assumed = |rtt: &str| {
        let text = format!(
            "duration = \"100ms\"\n[dumbbell]\nrate = \"1Gbps\"\nrtt = \"{rtt}\"\nqueue = \"codel\"\n[[flows]]\nname = \"one\"\nlaw = \"sack\"\n"
        );
        run(&text).summary.assumed.get("bottleneck.queue.interval").cloned()
    };
    // Section 4.3: 100 ms is right for RTTs from 10 ms to 1 s.
    assert_eq!(assumed("30us").as_deref(), Some("30us"));
    assert_eq!(assumed("9ms").as_deref(), Some("9ms"));
    assert_eq!(assumed("10ms"), None);
    assert_eq!(assumed("1s"), None);
    assert_eq!(assumed("2s").as_deref(), Some("2s"));
    let far = dumbbell("\"1Gbps\"", "queue = { kind = \"codel\", interval = \"1s\" }", "sack");
    let warnings = run(&far).summary.warnings;
    let told = "queue of bottleneck and bottleneck.reverse: interval: is 1s, but the flows' RTT is 40ms; leave it out for that";
    assert_eq!(warnings, [told]);
}

#[test]
fn a_capacity_that_nobody_knows() {
    let unknown = r#"{ steps = [["0s", "4Mbps"], ["5s", "2Mbps"]], known = false }"#;
    let xcp = refused(&dumbbell(unknown, "router = \"xcp\"", "xcp"));
    assert!(xcp.contains("dumbbell.router: \"xcp\" needs the link's capacity"), "{xcp}");
    let rcp = refused(&dumbbell(unknown, "router = \"rcp\"", "rcp"));
    assert!(rcp.contains("dumbbell.router: \"rcp\" needs the link's capacity"), "{rcp}");
    let works = r#"router = { law = "rcp", capacity = "unknown", growth = 0.5 }"#;
    let results = run(&dumbbell(unknown, works, "rcp"));
    let link = &results.summary.links["bottleneck"];
    // Equation 6.2: while the queue is empty R grows by alpha growth = 0.2 in an RTT, so it comes from no lower than that
    // below what the link carries; a queue brings it back.
    assert!(link.utilization > 0.8 && link.utilization < 1.0 + 1e-9, "{}", link.utilization);
    assert_eq!(link.drops, 0);
    // The law that is told bounds R by what it is told.
    let told = run(&dumbbell(&unknown.replace(", known = false", ""), works, "rcp"));
    assert_ne!(results.digest().flows, told.digest().flows);
}

/// RFC 3168 section 6.1.5: no packet is ECN-capable that was sent before. Nothing overtakes on this path: data below what was seen is
/// data sent again, and so are, with repair by count, numbers above the flow's last.
#[test]
fn what_is_sent_again_is_not_ecn_capable() {
    for (law, recovery) in [("sack", "sack"), ("newreno", "newreno"), ("reno", "reno"), ("rcp", "count")] {
        let queue = if law == "rcp" {
            "router = \"rcp\"\nbuffer = \"2pkt\""
        } else {
            "queue = \"red\"\nbuffer = \"10pkt\""
        };
        let results = run(&format!(
            r#"
            duration = "20s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "40ms"
            {queue}
            [[flows]]
            name = "flows"
            law = "{law}"
            count = 8
            size = "1MB"
            transport = {{ recovery = "{recovery}" }}
            [capture]
            packets = 100000
            "#
        ));
        let mut next = [0; 8];
        let mut count = [[0; 2]; 2];
        for packet in results.capture.packets.iter().filter(|p| p.data && !p.control) {
            let next = &mut next[packet.flow as usize];
            let again = packet.seq < *next || packet.seq >= packet.packets;
            *next = (*next).max(packet.seq + 1);
            count[usize::from(again)][usize::from(packet.ecn_capable)] += 1;
        }
        let [[plain, capable], [again, again_capable]] = count;
        assert_eq!(again_capable, 0, "{law}");
        // A packet whose first transmission was lost with all after it looks new.
        assert!(again > 50 && capable > 5000 && plain < capable / 10, "{law}: {count:?}");
    }
}

/// Flows are ECN-capable, except those of a law that does not answer marks; both unless the scenario says otherwise.
#[test]
fn a_law_that_does_not_answer_marks_is_not_marked() {
    let marks_and_drops = |law: &str, transport: &str| {
        let results = run(&format!(
            r#"
            duration = "5s"
            [dumbbell]
            rate = "10Mbps"
            rtt = "40ms"
            queue = "red"
            [[flows]]
            name = "flows"
            law = "{law}"
            count = 4
            transport = {{ {transport} }}
            "#
        ));
        let link = &results.summary.links["bottleneck"];
        (link.marks > 0, link.drops > 0)
    };
    for law in ["bbr", "bbr3"] {
        assert_eq!(marks_and_drops(law, ""), (false, true));
        assert!(marks_and_drops(law, "ecn = true").0);
    }
    assert!(marks_and_drops("sack", "").0);
    assert_eq!(marks_and_drops("sack", "ecn = false"), (false, true));
}

//! FQ-CoDel on links: a sparse flow does not wait, unequal flows have equal parts, a flow that does not react harms itself, and
//! what a link has beside: priority, marks, a buffer.

mod common;

use common::{run, samples, try_load};
use flowstamp_sim::Simulation;
use flowstamp_sim::results::Results;

/// Flows over 10 Mb/s, where a packet lasts 0.8 ms, with a buffer of 250 ms; the last 20 s of 30.
fn results(link: &str, flows: &str) -> Results {
    run(&format!(
        r#"
        duration = "30s"
        warmup = "10s"
        header = "0B"
        [dumbbell]
        rate = "10Mbps"
        rtt = "20ms"
        buffer = "250ms"
        {link}
        {flows}
        [capture]
        links = ["bottleneck"]
        packets = 1000000
        [probes]
        every = "5ms"
        laws = true
        "#
    ))
}

const CUBIC: &str = "[[flows]]\nname = \"cubic\"\nlaw = \"cubic\"\nstart = \"2s\"\n";
const CALL: &str = "[[flows]]\nname = \"call\"\nlaw = \"udp\"\njitter = \"none\"\nrate = \"100kbps\"\n";

/// How long packets of the first flow waited, seconds, which sends 1000 bytes each 80 ms: those of its first second found nobody.
fn waits(results: &Results) -> Vec<f64> {
    let sent = results.capture.packets.iter().filter(|p| p.flow == 0);
    let late: Vec<_> = sent.map(|p| (p.time_ps as f64 * 1e-12, f64::from(p.seq) * 0.08)).collect();
    let alone = late[0].0 - late[0].1;
    late.iter().map(|(at, of)| at - of - alone).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// RFC 8290, section 1.3: flows that send less than a quantum in a round are served at once. The packet in transmission
/// is finished, 0.8 ms; a TCP flow whose queue was empty may be new before it, and send a quantum. Under drop-tail it
/// waits as all do.
#[test]
fn a_sparse_flow_does_not_wait() {
    let flows = format!("{CALL}{CUBIC}count = 2\n");
    let waited = waits(&results("queue = \"fq_codel\"", &flows));
    assert!(waited.len() > 300, "{} packets", waited.len());
    let longest = waited.iter().copied().fold(0.0, f64::max);
    assert!(longest < 3.0 * 0.8e-3, "{longest} s");
    // In the mean half a packet's transmission, and no more than a whole one.
    assert!(mean(&waited) < 0.8e-3, "{} s", mean(&waited));
    let plain = waits(&results("queue = \"droptail\"", &flows));
    assert!(mean(&plain[100..]) > 0.1, "{} s", mean(&plain[100..]));
}

/// Flows that always have something have equal parts, whatever their laws and round trips make of a FIFO.
#[test]
fn unequal_flows_have_equal_parts() {
    let ratio = |queue: &str, rtt: &str| {
        let flow = |law, rtt| format!("[[flows]]\nname = \"{law}\"\nlaw = \"{law}\"\nrtt = [\"{rtt}\"]\n");
        let flows = flow("cubic", "12ms") + &flow("reno", rtt);
        let r = results(&format!("delay = \"1ms\"\nqueue = {queue}"), &flows);
        r.summary.groups["cubic"].goodput_bps / r.summary.groups["reno"].goodput_bps
    };
    // Half of the link is 7.5 packets in 12 ms and 15 in 24 ms. At a target of 50 ms 31 more wait before Reno's window halves, so that half of it is
    // more than the path's: no queue is ever empty. Each flow may have a quantum and a packet more of the 12,500 than
    // the other, at both ends.
    for rtt in ["12ms", "24ms"] {
        let ratio = ratio("{ kind = \"fq_codel\", target = \"50ms\", interval = \"500ms\" }", rtt);
        assert!((ratio - 1.0).abs() < 4.0 / 12_500.0, "{rtt}: {ratio}");
    }
    // At 5 ms it is 3.1 more, and one each round for the 100 ms of an interval: the halved window is about the path's, 7.5, and the queue
    // empty for parts of the next round. A packet in 7.5 for less than half of the time is 7%.
    let usual = ratio("\"fq_codel\"", "12ms");
    assert!((usual - 1.0).abs() < 0.07, "{usual}");
    // Without it, a FIFO of 250 ms favours CUBIC.
    assert!(ratio("\"droptail\"", "12ms") > 2.0);
}

/// An unresponsive flow fills the buffer and loses from its own queue (section 4.1). The other has half of the link and
/// loses only to its own CoDel.
#[test]
fn a_flow_that_does_not_react_harms_itself() {
    let flows = "[[flows]]\nname = \"flood\"\nlaw = \"udp\"\nrate = \"20Mbps\"\n[[flows]]\nname = \"tcp\"\nlaw = \"cubic\"\n";
    let r = results("queue = \"fq_codel\"", flows);
    let link = &r.summary.links["bottleneck"];
    // 250 ms of 10 Mb/s.
    assert!(link.max_queue_bytes <= 312_500.0 && link.max_queue_bytes > 300_000.0, "{link:?}");
    assert!(link.utilization > 0.999, "{link:?}");
    let goodput = |group: &str| r.summary.groups[group].goodput_bps;
    assert!((goodput("tcp") / 5e6 - 1.0).abs() < 0.05, "{}", goodput("tcp"));
    assert!((goodput("flood") / 5e6 - 1.0).abs() < 0.05, "{}", goodput("flood"));
}

#[test]
fn flows_that_can_be_marked_are_not_lost() {
    let r = results("queue = \"fq_codel\"", &format!("{CUBIC}count = 4\n"));
    let link = &r.summary.links["bottleneck"];
    assert!(link.marks > 0 && link.drops == 0, "{link:?}");
}

/// Acks before data, and flows among each: an ack waits for the packet in transmission and other acks, not for data.
#[test]
fn acks_may_go_first() {
    let flows =
        format!("{CUBIC}count = 4\n{}reverse = true\n", CUBIC.replace("\"cubic\"\nlaw", "\"back\"\nlaw"));
    let r = results("queue = \"fq_codel\"\npriority = \"acks\"", &flows);
    let (acks, data) =
        (samples(&r, "bottleneck", "ack_sojourn_s", 10.0), samples(&r, "bottleneck", "data_sojourn_s", 10.0));
    assert!(mean(&acks) < 0.8e-3, "{}", mean(&acks));
    assert!(mean(&data) > 2.0 * 0.8e-3, "{}", mean(&data));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (link, words) in [
        (
            "queue = \"fq_codel\"\nrouter = \"xcp\"\nshare = \"wfq\"",
            "\"fq_codel\" divides the link among its flows",
        ),
        (
            "queue = \"fq_codel\"\nrouter = \"xcp\"\nshare = \"fifo\"",
            "\"fq_codel\" divides the link among its flows",
        ),
        ("queue = { kind = \"fq_codel\", quantum = \"100B\" }", "quantum: is 100B; it must be 256B to 1MiB"),
        ("queue = { kind = \"fq_codel\", flows = 0 }", "flows: is 0; it must be 1 to 65536"),
    ] {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = \"1Mbps\"\nrtt = \"20ms\"\n{link}\n[[flows]]\nname = \"one\"\nlaw = \"sack\"\n"
        );
        let error = try_load(&text)
            .and_then(|loaded| Simulation::new(&loaded, None).map(|_| ()))
            .expect_err("refused")
            .to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
}

/// The longest round trip stands for `interval` where the RFC's does not fit the paths, and `target` follows.
#[test]
fn the_interval_follows_a_path_that_the_rfcs_does_not_fit() {
    let assumed = |rtt: &str| {
        let text = format!(
            "duration = \"10ms\"\n[dumbbell]\nrate = \"10Gbps\"\nrtt = \"{rtt}\"\nqueue = \"fq_codel\"\n[[flows]]\nname = \"one\"\nlaw = \"sack\"\n"
        );
        run(&text).summary.assumed.get("bottleneck.queue.interval").cloned()
    };
    assert_eq!(assumed("30us").as_deref(), Some("30us"));
    assert_eq!(assumed("50ms"), None);
    assert_eq!(assumed("2s").as_deref(), Some("2s"));
}

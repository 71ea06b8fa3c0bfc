//! Applications against closed forms: how much they offer, how it is spread over time, and how long it takes to arrive.

mod common;

use common::{run, senders, try_load};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_sim::results::{ApplicationSummary, Results};

const HEADER: f64 = 40.0;

/// One flow over 10 Mb/s in 20 ms; hosts' links take no time.
fn one(law: &str, application: &str, more: &str) -> String {
    format!(
        r#"
        duration = "200s"
        dumbbell = {{ rate = "10Mbps", access_rate = "10Tbps", rtt = "20ms", buffer = "10000pkt" }}
        [[flows]]
        name = "one"
        law = "{law}"
        application = {application}
        {more}
        "#
    )
}

fn told(results: &Results) -> &ApplicationSummary {
    results.summary.groups["one"].application.as_ref().expect("an application")
}

fn near(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance, "{what}: {got}, expected {expected} within {tolerance}");
}

/// When packets left the bottleneck, seconds.
fn left(results: &Results) -> Vec<f64> {
    results.capture.packets.iter().filter(|p| p.data).map(|p| p.time_ps as f64 * 1e-12).collect()
}

const CAPTURE: &str = "[capture]\nlinks = ['bottleneck']\npackets = 1000000";

/// Counts of a Poisson process have a variance that is their mean. With n windows the index of dispersion has a
/// standard deviation of sqrt(2 / n): five of them.
#[test]
fn poisson_datagrams_have_a_dispersion_of_one() {
    for law in ["udp", "sack"] {
        let r = run(&one(law, "{ kind = 'poisson', rate = '960kbps' }", CAPTURE));
        let times = left(&r);
        // 125 packets/s; the count has a standard deviation of its square root.
        near(times.len() as f64, 25_000.0, 5.0 * 25_000f64.sqrt(), "packets");
        let mut counts = vec![0.0; 5000];
        times.iter().for_each(|t| counts[((t / 0.04) as usize).min(4999)] += 1.0);
        let mean = counts.iter().sum::<f64>() / 5000.0;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 4999.0;
        near(variance / mean, 1.0, 5.0 * (2.0f64 / 5000.0).sqrt(), law);
        assert_eq!(told(&r).whole_run.offered_bytes, told(&r).whole_run.offered * 960);
    }
}

/// Pollaczek and Khinchine: the mean wait in M/D/1 is rho S / (2 (1 - rho)). Over 125,000 packets at a load of 1/2, whose waits are
/// alike over about ten, it has a standard error of 1%.
#[test]
fn poisson_datagrams_wait_as_in_m_d_1() {
    let r = run(&one("udp", "{ kind = 'poisson', rate = '4800kbps' }", ""));
    let link = &r.summary.links["bottleneck"];
    near(link.utilization, 0.5, 5.0 * 0.5 / 125_000f64.sqrt(), "load");
    let service = 1000.0 * 8.0 / 10e6;
    let expected = link.utilization * service / (2.0 * (1.0 - link.utilization));
    let mean = link.queueing_delay_s.as_ref().expect("packets").mean;
    near(mean, expected, 0.05 * expected, "mean wait");
}

/// A renewal reward process: in a time T the on-time has a mean of T a / (a + b) and a variance of T (Va b^2 + Vb a^2) / (a + b)^3,
/// for periods of means a and b and variances Va and Vb.
#[test]
fn on_off_sends_its_duty_cycle_times_its_peak() {
    let (a, b) = (0.3f64, 0.7f64);
    let pareto = "{ distribution = 'pareto', mean = 'MEAN', shape = 3 }";
    let exponential = "{ distribution = 'exponential', mean = 'MEAN' }";
    for (law, periods, variance) in [
        // For a Pareto variable: mean^2 / (shape (shape - 2)).
        ("udp", pareto, 1.0 / 3.0),
        ("udp", exponential, 1.0),
        ("sack", exponential, 1.0),
        ("udp", "'MEAN'", 0.0),
    ] {
        let (on, off) = (periods.replace("MEAN", "300ms"), periods.replace("MEAN", "700ms"));
        let r =
            run(&one(law, &format!("{{ kind = 'onoff', rate = '960kbps', on = {on}, off = {off} }}"), ""));
        let sigma = (200.0 * variance * 2.0 * a * a * b * b / (a + b).powi(3)).sqrt();
        // On-time in seconds, to a packet and a period.
        let on_s = told(&r).whole_run.offered_bytes as f64 * 8.0 / 960e3;
        near(on_s, 200.0 * a / (a + b), 5.0 * sigma + 0.5, &format!("{law} {periods}"));
    }
}

/// The mean of Pareto periods, told from the silences: of shape 3, a standard deviation of mean / sqrt(3).
#[test]
fn silences_are_as_long_as_asked() {
    let off = "{ distribution = 'pareto', mean = '100ms', shape = 3 }";
    let text =
        one("udp", &format!("{{ kind = 'onoff', interval = '1ms', on = '10ms', off = {off} }}"), CAPTURE);
    let times = left(&run(&text));
    // The least Pareto period is 2/3 of the mean. An on-period of ten ticks ends at the tick of its eleventh, which the next begins with.
    let silences: Vec<f64> =
        times.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap > 0.05).map(|gap| gap - 1e-3).collect();
    let n = silences.len() as f64;
    near(n, 200.0 / 0.11, 100.0, "periods");
    // Jitter moves both ends by up to 0.8 ms.
    near(silences.iter().sum::<f64>() / n, 0.1, 5.0 * 0.1 / (3.0 * n).sqrt() + 1e-4, "mean silence");
}

/// On an idle path the last byte of a frame comes when the bottleneck has sent it: wire bytes / C + RTT / 2.
#[test]
fn a_frame_takes_its_bytes_over_the_capacity_and_half_a_round_trip() {
    let took = |payload: f64| (payload + HEADER * (payload / 960.0).ceil()) * 8.0 / 10e6 + 0.01;
    for law in ["udp", "sack"] {
        for (sizes, means) in [("'20kB'", vec![20e3]), ("['20kB', '5kB', '500B']", vec![20e3, 5e3, 500.0])] {
            let more = if law == "udp" { "jitter = 'none'" } else { "transport = { initial_window = 100 }" };
            let text = one(law, &format!("{{ kind = 'frames', fps = 25, sizes = {sizes} }}"), more);
            let r = run(&text.replace("200s", "11995ms"));
            let told = told(&r);
            let n = means.len() as f64;
            near(told.whole_run.offered_bytes as f64, 300.0 * means.iter().sum::<f64>() / n, 0.0, "bytes");
            assert_eq!(told.whole_run.offered, 300);
            // The last one begins 35 ms before the end, and takes 26.8 ms.
            assert_eq!(told.whole_run.completed, 300);
            let times = told.time_s.as_ref().expect("frames");
            let expected = means.iter().map(|size| took(*size)).sum::<f64>() / n;
            // Hosts' links take 1 ns a packet.
            near(times.mean, expected, 1e-7, &format!("{law} {sizes}"));
            near(times.max, took(20e3), took(20e3) / 100.0, "largest");
        }
    }
}

/// Frames with a distribution have its mean: exponential, whose standard deviation is the mean.
#[test]
fn sizes_of_frames_are_drawn() {
    let sizes = "{ distribution = 'exponential', mean = '10kB' }";
    let r = run(&one("udp", &format!("{{ kind = 'frames', fps = 30, sizes = {sizes} }}"), ""));
    let told = told(&r).whole_run;
    assert_eq!(told.offered, 6000);
    near(told.offered_bytes as f64 / 6000.0, 10e3, 5.0 * 10e3 / 6000f64.sqrt(), "mean");
}

/// A closed loop: one response in each (think + response time), which is RTT + wire bytes / C on an idle path, if the first window holds it.
#[test]
fn requests_are_answered_one_after_the_other() {
    let application = "{ kind = 'requests', sizes = '9600B', think = '80ms' }";
    let r = run(&one("sack", application, "transport = { initial_window = 10 }"));
    let told = told(&r);
    // The request is an ack's 40 bytes.
    let response = 0.02 + (10.0 * 1000.0 + 40.0) * 8.0 / 10e6;
    near(told.time_s.as_ref().expect("responses").mean, response, 1e-7, "response time");
    near(told.whole_run.completed as f64, 200.0 / (0.08 + response), 1.0, "responses");
    let rate = 9600.0 * 8.0 / (0.08 + response);
    near(r.summary.groups["one"].goodput_bps, rate, 0.001 * rate, "rate");
}

/// Thinking is drawn: with exponential times the mean time of a turn is known to its standard error.
#[test]
fn thinking_takes_its_mean() {
    let think = "{ distribution = 'exponential', mean = '100ms' }";
    let application = format!("{{ kind = 'requests', sizes = '960B', think = {think} }}");
    for law in ["sack", "cubic", "bbr"] {
        let told = told(&run(&one(law, &application, ""))).clone();
        let turn = 0.1 + 0.02 + 1040.0 * 8.0 / 10e6;
        let n = 200.0 / turn;
        near(told.whole_run.completed as f64, n, 5.0 * n.sqrt() * 0.1 / turn + 1.0, law);
    }
}

/// Lost packets are requested again, and no flow waits for ever.
#[test]
fn lost_requests_and_responses_come_in_the_end() {
    let application = "{ kind = 'requests', sizes = '2kB', think = '10ms' }";
    let text = one("sack", application, "transport = { initial_rto = '300ms' }").replace(
        "buffer = \"10000pkt\"",
        "impairments = { loss = '10%' }, reverse_impairments = { loss = '10%' }",
    );
    let told = told(&run(&text)).clone();
    // A turn takes 32 ms if nothing is lost, and 0.2 s or 0.3 s more if something is: half of them at the most.
    assert!(told.whole_run.completed > 500, "{told:?}");
    assert!(told.whole_run.offered - told.whole_run.completed <= 1, "{told:?}");
}

/// Messages arrive in order and are whole, whatever is lost on the way.
#[test]
fn frames_of_a_window_all_arrive() {
    let application = "{ kind = 'frames', fps = 30, sizes = ['20kB', '3kB', '1B'] }";
    for law in senders().iter().filter(|law| law.router().is_none()).map(SenderSpec::name) {
        let text = one(law, application, "stop = '19s'")
            .replace("buffer = \"10000pkt\"", "buffer = '20pkt', impairments = { loss = '1%' }")
            .replace("200s", "30s");
        let r = run(&text);
        let told = told(&r);
        let bytes = r.summary.groups["one"].whole_run.delivered_bytes;
        assert_eq!(told.whole_run.offered, 570, "{law}");
        // The stop discards the queue.
        assert!(told.whole_run.completed >= 560, "{law}: {told:?}");
        assert!(told.whole_run.offered_bytes - bytes <= 200_000, "{law}: {bytes} of {told:?}");
    }
}

/// 40, 576 and 1500 bytes at 7:4:1 are 340.33 bytes on average.
#[test]
fn imix_has_its_mean_packet() {
    let text = one("udp", "{ kind = 'constant', rate = '1Mbps' }", &format!("packet = 'imix'\n{CAPTURE}"))
        .replace("duration", "packet = '1500B'\nduration");
    let r = run(&text);
    let sizes: Vec<f64> = r.capture.packets.iter().map(|p| f64::from(p.size)).collect();
    let n = sizes.len() as f64;
    let (mean, square): (f64, f64) = (4084.0 / 12.0, (7.0 * 1600.0 + 4.0 * 331_776.0 + 2_250_000.0) / 12.0);
    let sd = (square - mean * mean).sqrt();
    near(sizes.iter().sum::<f64>() / n, mean, 5.0 * sd / n.sqrt(), "mean packet");
    let goodput = r.summary.groups["one"].goodput_bps;
    near(goodput, 1e6, 1e6 * 5.0 * sd / (mean - HEADER) / n.sqrt(), "payload");
}

/// Voice: 160 bytes of G.711 each 20 ms behind 40 bytes of headers are 64 kb/s of payload.
#[test]
fn a_call_is_a_small_packet_each_20_ms() {
    let text = one("udp", "{ kind = 'constant', interval = '20ms' }", "packet = '200B'");
    let r = run(&text);
    assert_eq!(told(&r).whole_run.offered, 10_000);
    near(r.summary.groups["one"].goodput_bps, 64e3, 64.0, "payload");
    assert_eq!(told(&r).whole_run.source_drops, 0);
}

/// The queue at the host's own link is bounded by `send_buffer`; the rest is dropped at the source and counted.
#[test]
fn a_source_drops_what_its_buffer_does_not_hold() {
    let text =
        one("udp", "{ kind = 'frames', fps = 10, sizes = '48kB' }", "send_buffer = '20kB'\njitter = 'none'")
            .replace("10Tbps", "100Mbps")
            .replace("200s", "199950ms");
    let told = told(&run(&text)).clone();
    // Each frame has 20 queued packets, one of them in transmission; 30 do not.
    assert_eq!(told.whole_run.offered, 2000);
    assert_eq!(told.whole_run.source_drops, 2000 * 30);
    assert_eq!(told.whole_run.completed, 0);
}

/// A window queues what it does not let through: an application of twice the capacity waits, and nothing is lost at its source.
#[test]
fn a_window_queues_what_it_does_not_let_through() {
    let text = one("cubic", "{ kind = 'poisson', rate = '19200kbps' }", "").replace("10000pkt", "100pkt");
    let r = run(&text.replace("200s", "20s"));
    let told = told(&r);
    near(told.whole_run.offered_bytes as f64, 48e6, 5.0 * 50_000f64.sqrt() * 960.0, "offered");
    assert!(r.summary.links["bottleneck"].utilization > 0.95);
    // A packet that comes at t leaves at 2 t.
    near(told.time_s.as_ref().expect("packets").mean, 5.0, 0.5, "wait");
}

/// Three senders of 5, 10 and 15 Mb/s into 10 Mb/s get what they offer in proportion.
#[test]
fn datagrams_share_a_link_in_proportion_to_what_they_offer() {
    let flows = |rates: &[f64], more: &str| {
        let flow = |(i, rate): (usize, &f64)| {
            format!("[[flows]]\nname = \"f{i}\"\nlaw = \"udp\"\nrate = \"{rate}Mbps\"\n{more}\n")
        };
        let flows: String = rates.iter().enumerate().map(flow).collect();
        format!(
            "duration = \"60s\"\nwarmup = \"5s\"\ndumbbell = {{ rate = \"10Mbps\", rtt = \"20ms\" }}\n{flows}"
        )
    };
    for rates in
        [&[5.0, 10.0, 15.0][..], &[10.0, 10.0, 10.0], &[4.0, 4.0, 4.0], &[1.0, 2.0, 20.0], &[20.0, 20.0]]
    {
        let r = run(&flows(rates, ""));
        let sum: f64 = rates.iter().sum();
        for (i, rate) in rates.iter().enumerate() {
            let share = r.summary.groups[&format!("f{i}")].goodput_bps / r.summary.total.goodput_bps;
            near(share / (rate / sum), 1.0, 0.05, &format!("flow {i} of {rates:?}"));
        }
        assert!(r.summary.warnings.is_empty(), "{:?}", r.summary.warnings);
    }
    let locked = run(&flows(&[5.0, 10.0, 15.0], "jitter = \"none\""));
    let told = &locked.summary.warnings;
    assert!(told.len() == 1 && told[0].contains("flows.f0: looks phase-locked"), "{told:?}");
    assert!(told[0].contains("set jitter = \"6400us\""), "{told:?}");
}

/// The bare clock's ticks are exact; the default jitter is a packet time of the slowest link, or the clock's beat.
#[test]
fn jitter_is_behind_the_clock_and_bounded() {
    for (rate, more, most) in [
        ("960kbps", "jitter = 'none'", 0.0),
        ("960kbps", "", 6.4e-3),
        ("960kbps", "jitter = '3ms'", 3e-3),
        ("960kbps", "transport = { send_jitter = '3ms' }", 3e-3),
        ("9.6Mbps", "", 6.4e-3),
    ] {
        // A first link that nobody waits for shows when packets come; the second is the slowest.
        let text = format!(
            "duration = '4s'\n[graph]\nlinks = [{{ name = 'bottleneck', from = 'a', to = 'b', rate = '10Tbps', delay = '1us' }}, \
             {{ from = 'b', to = 'c', rate = '10Mbps', delay = '1ms' }}]\n[[flows]]\nname = 'one'\nlaw = 'udp'\nfrom = 'a'\nto = 'c'\nrate = '{rate}'\n{more}\n{CAPTURE}"
        );
        let times = left(&run(&text));
        let beat = 960.0 * 8.0 / if rate == "960kbps" { 960e3 } else { 9.6e6 };
        let late: Vec<f64> = times.iter().enumerate().map(|(i, t)| t - i as f64 * beat).collect();
        let (least, greatest) = late.iter().fold((1.0f64, -1.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
        assert!(least >= -1e-9 && greatest <= most + 1e-9, "{rate} {more}: {least} to {greatest}");
        assert!(greatest >= most * 0.8, "{rate} {more}: {greatest}");
    }
}

/// A flow added beside another does not change its draws.
#[test]
fn draws_follow_from_seed_and_name() {
    let text = |more: &str| {
        one("udp", "{ kind = 'poisson', rate = '100kbps' }", &format!("packet = 'imix'\n{more}\n{CAPTURE}"))
            .replace("duration = \"200s\"", "packet = '1500B'\nduration = '20s'")
    };
    let drawn = |text: &str| -> Vec<(u64, u32)> {
        let r = run(text);
        let of_one = r.flows.iter().find(|f| &*f.group == "one").expect("it is there").flow;
        r.capture.packets.iter().filter(|p| p.flow == of_one).map(|p| (p.time_ps, p.size)).collect()
    };
    let alone = drawn(&text(""));
    assert!(!alone.is_empty());
    let other = "[[flows]]\nname = 'other'\nreverse = true\nlaw = 'udp'\napplication = { kind = 'poisson', rate = '1Mbps' }";
    assert_eq!(alone, drawn(&text(other)));
    assert_ne!(alone, drawn(&text("").replace("packet = '1500B'", "packet = '1500B'\nseed = 2")));
}

#[test]
fn what_makes_no_sense_is_refused_by_key() {
    let frames = "{ kind = 'frames', fps = 30, sizes = '20kB' }";
    for (law, application, more, message) in [
        ("udp", "{ kind = 'poisson' }", "", "application.rate: give exactly one of rate and interval"),
        ("udp", "{ kind = 'poisson', rate = '0bps' }", "", "application.rate: is 0bps; it must be above 0"),
        (
            "udp",
            "{ kind = 'constant', interval = '0s' }",
            "",
            "application.interval: is 0s; it must be longer",
        ),
        ("udp", "{ kind = 'onoff', rate = '1Mbps', on = '0s', off = '1s' }", "", "application.on: is 0s"),
        (
            "udp",
            "{ kind = 'onoff', rate = '1Mbps', on = { distribution = 'pareto', mean = '1s', shape = 1 }, off = '1s' }",
            "",
            "application.on.shape: is 1; it must be a number above 1",
        ),
        (
            "udp",
            "{ kind = 'frames', fps = 0, sizes = '1kB' }",
            "",
            "application.fps: is 0; it must be above 0",
        ),
        ("udp", "{ kind = 'frames', fps = 30, sizes = [] }", "", "application.sizes: is an empty list"),
        (
            "udp",
            "{ kind = 'frames', fps = 30, sizes = ['1kB', '0B'] }",
            "",
            "application.sizes: has a size of 0B",
        ),
        (
            "udp",
            "{ kind = 'frames', fps = 30, sizes = { distribution = 'pareto', mean = '1kB', shape = 0.5 } }",
            "",
            "application.sizes.shape: is 0.5",
        ),
        (
            "udp",
            "{ kind = 'requests', sizes = '1kB', think = '1s' }",
            "",
            "application.kind: is \"requests\"",
        ),
        ("sack", frames, "rate = '1Mbps'", "rate: is short for an application of kind \"constant\""),
        ("sack", frames, "size = '1MB'", "size: says how much flows transfer, and so does application"),
        ("sack", frames, "packet = '500B'", "packet: is for datagrams, and \"sack\" has a window"),
        ("sack", frames, "jitter = 'none'", "jitter: is for datagrams, and \"sack\" has a window"),
        ("sack", frames, "send_buffer = '20kB'", "send_buffer: is for datagrams"),
        (
            "udp",
            frames,
            "packet = '2kB'",
            "packet: has 2kB; it must be at least the scenario's header, 40B, and at most its packet, 1kB",
        ),
        (
            "udp",
            frames,
            "packet = [{ size = '500B', weight = 1 }, { size = '700B', weight = 1 }]",
            "packet: must be one size",
        ),
        ("udp", frames, "packet = [{ size = '500B', weight = 0 }]", "packet: has a weight of 0"),
        ("udp", frames, "packet = '40B'", "packet: is 40B; it must be larger than header, 40B"),
        ("udp", frames, "jitter = '2s'", "jitter: is 2s; it must be at most 1s"),
        (
            "udp",
            frames,
            "jitter = '1ms'\ntransport = { send_jitter = '1ms' }",
            "jitter: says how long packets wait at random",
        ),
        ("udp", frames, "send_buffer = '20B'", "send_buffer: is 20B; it must hold a packet, 1kB"),
        ("udp", "{ kind = 'film' }", "", "application.kind: there is no `film`"),
        (
            "udp",
            "{ kind = 'frames', fps = 30, sizes = 7 }",
            "",
            "application.sizes: 7 must be a size such as \"20kB\"",
        ),
        (
            "udp",
            "{ kind = 'frames', fp = 30, sizes = '7B' }",
            "",
            "application.fp: unknown key `fp`; did you mean `fps`?",
        ),
        ("udp", frames, "packet = 'jmix'", "packet: \"jmix\" must be a size such as \"200B\", \"imix\""),
        ("udp", frames, "packet = '7'", "packet: \"7\" has no unit"),
        ("udp", frames, "jitter = 'off'", "jitter: \"off\" must be \"none\", or a duration such as \"1ms\""),
    ] {
        let refused = try_load(&one(law, application, more)).expect_err(message).to_string();
        assert!(refused.contains(message), "{refused}\nshould have: {message}");
        assert_eq!(refused.lines().count(), 1, "{refused}");
    }
    let text = "duration = '1s'\ngraph = { links = [{ from = 'a', to = 'b', rate = '1Mbps', delay = '1ms' }] }\n[[flows]]\nname = 'one'\n\
                law = 'udp'\nrate = '1Mbps'\nfrom = 'a'\nto = 'b'\nsend_buffer = '20kB'";
    let refused = try_load(text).expect_err("there are no hosts").to_string();
    assert!(refused.contains("flows.one.send_buffer: needs a host's link"), "{refused}");
}

/// The example of the documentation: each kind does something.
#[test]
fn the_example_runs() {
    let text = std::fs::read_to_string("../../examples/applications.toml").expect("the example");
    let r = run(&text);
    for (name, group) in &r.summary.groups {
        let told = group.application.as_ref().expect("an application");
        assert!(told.after_warmup.completed > 10, "{name}: {told:?}");
    }
    assert!(r.summary.warnings.is_empty(), "{:?}", r.summary.warnings);
}

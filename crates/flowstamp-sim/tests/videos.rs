//! Adaptive video as an application: playback against closed forms, and accounts that balance.

mod common;

use common::{run, try_load};
use flowstamp_sim::results::{Results, VideoCounts};

/// One viewer over `rate` in 20 ms.
fn one(rate: &str, application: &str, more: &str) -> String {
    format!(
        r#"
        duration = "300s"
        dumbbell = {{ rate = "{rate}", rtt = "20ms" }}
        [[flows]]
        name = "tv"
        law = "cubic"
        application = {{ kind = "video", {application} }}
        {more}
        "#
    )
}

fn whole(results: &Results) -> VideoCounts {
    results.summary.groups["tv"].video.as_ref().expect("a video").whole_run
}

const LADDER: &str = "ladder = ['1Mbps', '2Mbps', '4Mbps'], max_buffer = '20s', startup = '4s'";

/// On a fast path a viewer sees the highest bitrate from the second segment on, starts after one segment, and never stalls. 300 s of
/// playback and 20 s of buffer are 80 segments of 4 s.
#[test]
fn a_fast_path_plays_the_highest_bitrate() {
    let r = run(&one("100Mbps", LADDER, ""));
    let seen = whole(&r);
    // A segment of 1 Mb/s has 500 kB, 525 packets: under 0.3 s in slow start of 20 ms round trips.
    assert!(seen.startup_s > 0.02 && seen.startup_s < 0.5, "{seen:?}");
    assert_eq!((seen.stalls, seen.stalled_s, seen.switches), (0, 0.0, 1));
    assert!((seen.played_s + seen.startup_s - 300.0).abs() < 1e-6, "{seen:?}");
    assert!((79..=80).contains(&seen.segments), "{seen:?}");
    let mean = (1.0 + 4.0 * (seen.segments as f64 - 1.0)) / seen.segments as f64;
    assert!((seen.bitrate_bps.expect("segments") / 1e6 - mean).abs() < 1e-9);
    let told = r.summary.groups["tv"].application.as_ref().expect("an application").whole_run;
    assert_eq!(told.completed, seen.segments);
    // A segment has bitrate x 4 s / 8 bytes.
    assert_eq!(told.offered_bytes, 500_000 + 2_000_000 * (told.offered - 1));
}

/// Below the lowest bitrate a viewer stalls: media arrive at the rate of payload, 0.96 x 0.5 Mb/s, for bitrates of 1 Mb/s. It plays at
/// most 0.48 of the time. Retransmissions and the segment under way take at most a tenth of that.
#[test]
fn a_slow_path_stalls() {
    let r = run(&one("500kbps", LADDER, ""));
    let seen = whole(&r);
    let shown = seen.played_s + seen.stalled_s + seen.startup_s;
    assert!((shown - 300.0).abs() < 1e-6, "{seen:?}");
    assert!(seen.played_s / 300.0 < 0.48 && seen.played_s / 300.0 > 0.43, "{seen:?}");
    assert_eq!((seen.switches, seen.bitrate_bps), (0, Some(1e6)));
    // Each segment of 4 s takes 8.3 s, and playback resumes with each.
    assert!((30..=36).contains(&seen.stalls), "{seen:?}");
    let share = seen.stalled_share.expect("playback started");
    assert!((share - seen.stalled_s / (seen.stalled_s + seen.played_s)).abs() < 1e-12);
    // Before the first picture there is no share of stalls. A segment of 500 kB takes more than 8 s.
    let early = whole(&run(&one("500kbps", LADDER, "").replace("\"300s\"", "\"5s\"")));
    assert_eq!((early.startup_s, early.played_s, early.stalled_share), (5.0, 0.0, None));
}

/// The last fetch of a bounded video ends it; a viewer who leaves sees no more.
#[test]
fn a_video_ends() {
    let seen = whole(&run(&one("100Mbps", &format!("{LADDER}, length = '40s'"), "")));
    assert_eq!((seen.segments, seen.played_s), (10, 40.0));
    let seen = whole(&run(&one("100Mbps", LADDER, "stop = '100s'")));
    assert!((seen.played_s + seen.startup_s - 100.0).abs() < 1e-6, "{seen:?}");
}

/// Counts after warm-up and before it sum to those of the whole run, and to those of the flows.
#[test]
fn counts_add_up() {
    let text = one("4Mbps", LADDER, "count = 3\nstart = ['0s', '1s', '2s']");
    let r = run(&text.replace("duration = \"300s\"", "duration = \"300s\"\nwarmup = \"100s\""));
    let video = r.summary.groups["tv"].video.as_ref().expect("a video");
    let (after, all) = (video.after_warmup, video.whole_run);
    assert!((all.played_s + all.stalled_s + all.startup_s - 897.0).abs() < 1e-6);
    assert!((after.played_s + after.stalled_s + after.startup_s - 600.0).abs() < 1e-6);
    assert!(after.segments < all.segments && after.startup_s == 0.0);
    let flows: Vec<_> = r.flows.iter().map(|flow| flow.video.as_deref().expect("a video")).collect();
    assert_eq!(flows.iter().map(|video| video.segments).sum::<u64>(), all.segments);
    assert_eq!(flows.iter().map(|video| video.stalls).sum::<u64>(), all.stalls);
    assert!(flows.iter().all(|video| video.startup_s > 0.0));
}

/// A link that advises 3 Mb/s signals 100 kb/s x 10^(29/20), 2.818 Mb/s. Media have 0.96 of it, so that 2 Mb/s is the highest bitrate. The
/// advice comes with the first response, before the second request. A SCONE packet leaves each 20 to 30 s, with a segment of 4 s.
#[test]
fn advice_caps_the_bitrate() {
    let advised = |more: &str| {
        let text = one("100Mbps", &format!("{LADDER}{more}"), "");
        run(&text.replace("rtt = \"20ms\" }", "rtt = \"20ms\", scone = { rate = '3Mbps' } }"))
    };
    let r = advised("");
    let seen = whole(&r);
    assert_eq!((seen.switches, seen.stalls), (1, 0), "{seen:?}");
    let mean = (1.0 + 2.0 * (seen.segments as f64 - 1.0)) / seen.segments as f64;
    assert!((seen.bitrate_bps.expect("segments") / 1e6 - mean).abs() < 1e-9);
    let scone = r.summary.links["bottleneck"].scone.expect("advice");
    assert!((9..=16).contains(&scone.packets), "{scone:?}");
    assert_eq!(scone.lowered, scone.packets);
    assert_eq!(scone.mean_advice_bps, Some(2_818_382.0));
    assert!(r.summary.links["bottleneck"].impaired.is_none());
    // A client that ignores it sees the same as on a path without advice.
    let ignores = whole(&advised(", advice = 'ignore'"));
    assert!(ignores.bitrate_bps.expect("segments") > 3.9e6, "{ignores:?}");
    // The choice by advice needs no measurement.
    assert_eq!(whole(&advised(", choice = 'advice'")).switches, 1);
}

/// RCP gives four viewers who fetch all the time a quarter of the link each, 2.5 Mb/s, and more to those left when some wait. Its mean is
/// therefore at least the fair rate, and at most the link's. A signal is rounded down by less than a step, 10^(1/20).
#[test]
fn a_router_advises_its_mean_rate() {
    let text = one("10Mbps", LADDER, "count = 4")
        .replace("cubic", "rcp")
        .replace("law = \"rcp\"", "law = \"rcp\"\ntransport = { recovery = 'sack' }");
    let r = run(&text.replace("rtt = \"20ms\" }", "rtt = \"20ms\", router = 'rcp', scone = {} }"));
    let scone = r.summary.links["bottleneck"].scone.expect("advice");
    let mean = scone.mean_advice_bps.expect("advice");
    assert!(mean > 2.5e6 / 10f64.powf(0.05) && mean <= 10e6, "{scone:?}");
    assert!(whole(&r).segments > 200);
}

/// The policer of each flow passes 2 Mb/s. Datagrams of 1 Mb/s lose nothing beside others of 4 Mb/s, which lose half.
#[test]
fn a_policer_may_have_a_bucket_for_each_flow() {
    let text = |per: &str| {
        format!(
            r#"
            duration = "20s"
            warmup = "2s"
            dumbbell = {{ rate = "100Mbps", rtt = "20ms", queue = {{ kind = "policer", rate = "2Mbps", burst = "10kB", per = "{per}" }} }}
            [[flows]]
            name = "small"
            law = "udp"
            rate = "960kbps"
            [[flows]]
            name = "large"
            law = "udp"
            rate = "3840kbps"
            "#
        )
    };
    let rate = |r: &Results, group: &str| r.summary.groups[group].goodput_bps / 960e3;
    let r = run(&text("flow"));
    assert!(
        (rate(&r, "small") - 1.0).abs() < 0.01 && (rate(&r, "large") - 2.0).abs() < 0.01,
        "{:?}",
        r.summary.groups
    );
    let r = run(&text("link"));
    assert!(rate(&r, "small") < 0.9, "{:?}", r.summary.groups);
}

#[test]
fn wrong_advice_is_refused_by_name() {
    let refused = |scone: &str| {
        let text = one("1Mbps", LADDER, "")
            .replace("rtt = \"20ms\" }", &format!("rtt = \"20ms\", scone = {scone} }}"));
        try_load(&text).expect_err("a refusal").to_string()
    };
    assert!(
        refused("{ rate = '50kbps' }")
            .contains("dumbbell.scone.rate: is 50kbps; it must be 100kbps to 199Gbps")
    );
    assert!(refused("{}").contains("dumbbell.scone.rate: is missing, and the router \"none\""));
    assert!(refused("{ rates = '3Mbps' }").contains("rates"));
}

/// Only videos send SCONE packets.
#[test]
fn advice_without_videos_has_a_warning() {
    let advised =
        one("1Mbps", LADDER, "").replace("rtt = \"20ms\" }", "rtt = \"20ms\", scone = { rate = '3Mbps' } }");
    let short = advised.replace("\"300s\"", "\"1s\"");
    assert_eq!(run(&short).summary.warnings, Vec::<String>::new());
    let plain = short.replace(&format!("application = {{ kind = \"video\", {LADDER} }}"), "");
    assert_eq!(
        run(&plain).summary.warnings,
        [
            "scone of bottleneck: no flow is a video, so no packet carries advice; leave it out, or give flows application = { kind = \"video\" }"
        ]
    );
}

#[test]
fn wrong_videos_are_refused_by_name() {
    let refused = |application: &str, more: &str| {
        try_load(&one("1Mbps", application, more)).expect_err("a refusal").to_string()
    };
    for (application, key) in [
        ("segment = '11s'", "flows.tv.application.segment: is 11s; it must be 1s to 10s"),
        ("ladder = ['2Mbps', '1Mbps']", "flows.tv.application.ladder: has 2Mbps before 1Mbps"),
        ("choice = 'advice', advice = 'ignore'", "flows.tv.application.advice"),
        ("ladders = []", "ladders"),
        // f(26 s) = 0.235 + 4.765 (26 - r) / 16 exceeds 0.375 Mb/s for r below 26 - 16 (0.14 / 4.765) = 25.530 s.
        (
            "choice = 'buffer', reservoir = '25.6s'",
            "flows.tv.application.reservoir: is 25600ms, and the client would never leave the lowest bitrate, because it requests with at most 26s in its buffer; it must be below 25.530 s",
        ),
        (
            "choice = 'buffer', ladder = ['1Mbps', '2Mbps'], cushion = '40s'",
            "set a larger max_buffer or a smaller cushion",
        ),
    ] {
        let message = refused(application, "");
        assert!(message.contains(key), "{message}");
    }
    // Just inside the bound, and with a rule that has no reservoir.
    for right in ["choice = 'buffer', reservoir = '25.5s'", "choice = 'rate', reservoir = '29s'"] {
        assert!(try_load(&one("1Mbps", right, "")).is_ok(), "{right}");
    }
    assert!(refused("", "size = '1MB'").contains("flows.tv.size"));
    let udp = one("1Mbps", LADDER, "").replace("cubic", "udp");
    let message = try_load(&udp).expect_err("a refusal").to_string();
    assert!(
        message.contains("flows.tv.application.kind") && message.contains("repairs no loss"),
        "{message}"
    );
}

//! Captures of cells as the real tshark reads them: 802.11 behind radiotap, with the counts of the run's summary.
//!
//! Without tshark each test says that it is skipped and passes; with `FLOWSTAMP_REQUIRE_TSHARK=1` it fails instead.
#![cfg(feature = "tables")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod common;
#[path = "../../flowstamp-wire/tests/skip/mod.rs"]
mod skip;

use common::{run, timeless, try_load};
use flowstamp_sim::output::trace_to;
use flowstamp_sim::results::Results;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

fn tshark() -> Option<Command> {
    let found = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(Command::new("tshark"));
    }
    let required = std::env::var_os("FLOWSTAMP_REQUIRE_TSHARK").is_some_and(|value| value == "1");
    assert!(!required, "FLOWSTAMP_REQUIRE_TSHARK=1, but tshark is not installed");
    skip::skip("tshark is not installed (FLOWSTAMP_REQUIRE_TSHARK=1 makes this a failure)");
    None
}

const FIELDS: [&str; 26] = [
    "frame.interface_name",
    "frame.time_epoch",
    "frame.len",
    "radiotap.length",
    "radiotap.mactime",
    "radiotap.datarate",
    "radiotap.channel.flags.cck",
    "radiotap.channel.flags.ofdm",
    "radiotap.flags.preamble",
    "radiotap.flags.fcs",
    "radiotap.flags.badfcs",
    "radiotap.data_retries",
    "wlan.fc.type_subtype",
    "wlan.fc.ds",
    "wlan.fc.retry",
    "wlan.duration",
    "wlan.ra",
    "wlan.ta",
    "wlan.seq",
    "wlan.fcs.status",
    "ip.len",
    "ip.checksum.status",
    "xcp.protocol",
    "xcp.rtt",
    "tcp.checksum.status",
    "_ws.malformed",
];

/// A frame by its fields' names.
type Row = BTreeMap<&'static str, String>;

/// Fields that tshark reads in the capture of a run.
fn read(mut tshark: Command, name: &str, results: &Results) -> Vec<Row> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).expect("a folder");
    std::fs::write(dir.join("flowstamp.lua"), flowstamp_wire::DISSECTOR).expect("the dissector");
    let mut file = Vec::new();
    trace_to(results, &mut file).expect("a capture");
    std::fs::write(dir.join("trace.pcapng"), file).expect("room for a capture");
    let output = tshark
        .current_dir(&dir)
        .env("HOME", &dir)
        .env("XDG_CONFIG_HOME", &dir)
        .args([
            "-X",
            "lua_script:flowstamp.lua",
            "-r",
            "trace.pcapng",
            "-n",
            "-T",
            "fields",
            "-E",
            "separator=|",
        ])
        .args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
            "-o",
            "wlan.check_checksum:TRUE",
        ])
        .args(FIELDS.iter().flat_map(|field| ["-e", *field]))
        .output()
        .expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| FIELDS.into_iter().zip(line.split('|').map(str::to_owned)).collect()).collect()
}

const RTS: &str = "0x001b";
const CTS: &str = "0x001c";
const ACK: &str = "0x001d";
const DATA: &str = "0x0020";

fn cell(mac: &str, stations: &str, rest: &str) -> String {
    format!(
        r#"
        duration = "3s"
        packet = "1000B"
        [graph]
        links = [{{ name = "wire", from = "n", to = "ap", rate = "100Mbps", delay = "5ms", router = "xcp" }}]
        [[wireless]]
        name = "air"
        access_point = "ap"
        mac = {mac}
        router = "xcp-b"
        stations = {stations}
        {rest}
        [[flows]]
        name = "down"
        law = "xcp"
        from = "n"
        to = "near"
        [[flows]]
        name = "up"
        law = "xcp"
        from = "far"
        to = "n"
        "#
    )
}

const STATIONS: &str =
    r#"[{ name = "near", rate = "11Mbps", error_rate = 0.1 }, { name = "far", rate = "5.5Mbps" }]"#;

/// Counts of a station's frames against what the summary says of it.
fn counts_agree(rows: &[Row], results: &Results, announced: bool) {
    let stations = &results.summary.cells["air"].stations;
    assert!(stations.values().map(|s| s.collisions).sum::<u64>() > 10, "{stations:?}");
    assert!(stations.values().map(|s| s.errors).sum::<u64>() > 10, "{stations:?}");
    for (number, name) in ["ap", "near", "far"].into_iter().enumerate() {
        let (station, mac) = (&stations[name], format!("02:01:00:00:00:0{number}"));
        let count = |of: &dyn Fn(&&Row) -> bool| rows.iter().filter(of).count() as u64;
        let kind = |row: &&Row, kind: &str| row["wlan.fc.type_subtype"] == kind;
        let opens = if announced { RTS } else { DATA };
        assert_eq!(count(&|r| kind(r, opens) && r["wlan.ta"] == mac), station.attempts, "{name}");
        assert_eq!(
            count(&|r| kind(r, opens) && r["wlan.ta"] == mac && r["radiotap.data_retries"] != "0"),
            station.retries,
            "{name}"
        );
        if !announced {
            let retries = count(&|r| kind(r, DATA) && r["wlan.ta"] == mac && r["wlan.fc.retry"] == "1");
            assert_eq!(retries, station.retries, "{name}");
        }
        assert_eq!(count(&|r| kind(r, ACK) && r["wlan.ra"] == mac), station.sent, "{name}");
        assert_eq!(
            count(&|r| r["wlan.ta"] == mac && r["radiotap.flags.badfcs"] == "1"),
            station.collisions + station.errors,
            "{name}"
        );
    }
    // A check sequence that is wrong counts as malformed; of a data frame it is not captured.
    let spoiled = |r: &Row| r["wlan.fc.type_subtype"] == RTS && r["radiotap.flags.badfcs"] == "1";
    assert!(rows.iter().all(|r| r["_ws.malformed"].is_empty() != spoiled(r)));
    assert!(rows.iter().all(|r| r["frame.interface_name"] == "air" && r["radiotap.flags.fcs"] == "1"));
}

/// 802.11b, a short preamble, no RTS: a data frame reserves SIFS and an ack at 2 Mb/s, 10 + 96 + 56 us.
#[test]
#[ignore = "long: needs tshark"]
fn data_and_acks_are_those_of_the_summary() {
    let Some(tshark) = tshark() else { return };
    let mac = r#"{ standard = "802.11b", preamble = "short" }"#;
    let results = run(&cell(mac, STATIONS, "[capture]\nlinks = [\"air\"]"));
    let rows = read(tshark, "radiotap-b", &results);
    counts_agree(&rows, &results, false);
    let (mut stamps, mut sequences) = (0, BTreeMap::new());
    for row in &rows {
        let length: u64 = row["frame.len"].parse().expect("a number");
        let time: f64 = row["frame.time_epoch"].parse().expect("seconds");
        let mactime: f64 = row["radiotap.mactime"].parse().expect("microseconds");
        // The first bit behind the PLCP header, cut to a microsecond.
        let plcp = time * 1e6 + 96.0 - mactime;
        assert!((-1e-2..1.0 + 1e-2).contains(&plcp), "{row:?}");
        assert_eq!((&*row["radiotap.channel.flags.cck"], &*row["radiotap.channel.flags.ofdm"]), ("1", "0"));
        assert_eq!(row["radiotap.flags.preamble"], "1");
        if row["wlan.fc.type_subtype"] == ACK {
            assert_eq!((length, &*row["radiotap.length"]), (22 + 14, "22"));
            assert_eq!((&*row["radiotap.datarate"], &*row["wlan.duration"]), ("2", "0"));
            assert_eq!(row["wlan.fcs.status"], "1", "{row:?}");
            continue;
        }
        assert_eq!(row["wlan.fc.type_subtype"], DATA);
        assert_eq!(row["wlan.duration"], "162", "{row:?}");
        // From DS or to DS, and the rate of the station, 1 or 2.
        let ap = "02:01:00:00:00:00";
        let (ds, station) =
            if row["wlan.ta"] == ap { ("0x02", &row["wlan.ra"]) } else { ("0x01", &row["wlan.ta"]) };
        assert_eq!(row["wlan.fc.ds"], ds);
        assert!(row["wlan.ra"] == ap || row["wlan.ta"] == ap);
        let rate = if station.ends_with('1') { "11" } else { "5.5" };
        assert_eq!(row["radiotap.datarate"], rate);
        // 36 bytes of 802.11 around the packet, and XCP's header and TCP's options in an ack.
        let ip: u64 = row["ip.len"].parse().expect("a length");
        assert_eq!(length, 23 + 36 + ip);
        assert!(ip == 1000 || (60..100).contains(&ip), "{row:?}");
        assert_eq!((&*row["ip.checksum.status"], &*row["tcp.checksum.status"]), ("1", "1"), "{row:?}");
        assert_eq!(row["xcp.protocol"], "6");
        stamps += u64::from(ip == 1000 && row["xcp.rtt"].parse::<f64>().is_ok_and(|rtt| rtt > 0.01));
        // Numbers rise by one with each packet of a sender, and stay for its retries.
        let sequence: u64 = row["wlan.seq"].parse().expect("a number");
        let retry = u64::from(row["wlan.fc.retry"] == "0");
        let before = sequences.insert(row["wlan.ta"].clone(), sequence);
        assert_eq!(sequence, before.map_or(0, |before| (before + retry) % 4096), "{row:?}");
    }
    assert!(stamps > 100, "{stamps} of {}", rows.len());
}

/// 802.11g with RTS for data: everything goes by OFDM, and CTS say what is left of what RTS said.
#[test]
#[ignore = "long: needs tshark"]
fn rts_and_cts_are_there() {
    let Some(tshark) = tshark() else { return };
    let mac = r#"{ standard = "802.11g", rts_threshold = "20B" }"#;
    let stations = STATIONS.replace("11Mbps", "54Mbps").replace("5.5Mbps", "6Mbps");
    let results = run(&cell(mac, &stations, "[capture]\nlinks = [\"air\"]"));
    let rows = read(tshark, "radiotap-g", &results);
    counts_agree(&rows, &results, true);
    for pair in rows.windows(2).filter(|pair| pair[1]["wlan.fc.type_subtype"] == CTS) {
        let duration = |row: &Row| row["wlan.duration"].parse::<u64>().expect("microseconds");
        assert_eq!(pair[0]["wlan.fc.type_subtype"], RTS);
        // SIFS and 20 us, 8 or 24 of symbols and 6 more at 24 or 6 Mb/s (112 + 22 bits in symbols of 96 or 24).
        let cts = if pair[1]["radiotap.datarate"] == "24" { 10 + 34 } else { 10 + 50 };
        assert_eq!(duration(&pair[0]) - duration(&pair[1]), cts);
    }
    assert!(rows.iter().all(|r| r["radiotap.channel.flags.ofdm"] == "1"));
    assert!(rows.iter().filter(|r| r["wlan.fc.type_subtype"] == DATA).all(|r| r["xcp.protocol"] == "6"));
}

/// By default links are captured as before and the cell as a monitor hears it; an interface that is named, as its own host sees it.
#[test]
#[ignore = "long: needs tshark"]
fn what_is_captured_is_what_is_named() {
    let Some(_) = tshark() else { return };
    let plain = cell("\"802.11b-ns2\"", STATIONS, "");
    let without = run(&plain);
    let names = |capture: &str| {
        let results = run(&plain.replacen("[[flows]]", &format!("{capture}\n[[flows]]"), 1));
        assert_eq!(timeless(&results.summary), timeless(&without.summary), "a capture changes nothing");
        let rows = read(tshark().expect("as before"), "radiotap-names", &results);
        assert!(rows.iter().all(|r| r["_ws.malformed"].is_empty()));
        let mut times = rows.iter().map(|r| r["frame.time_epoch"].clone());
        assert!(times.clone().skip(1).zip(times.by_ref()).all(|(next, this)| next >= this));
        let mut counts = BTreeMap::<String, usize>::new();
        rows.iter().for_each(|r| *counts.entry(r["frame.interface_name"].clone()).or_default() += 1);
        counts
    };
    let all = names("[capture]");
    assert_eq!(all.keys().collect::<Vec<_>>(), ["air", "wire", "wire.reverse"]);
    let some = names("[capture]\npackets = 1000");
    assert_eq!(some.values().sum::<usize>(), 1000);
    let own = names("[capture]\nlinks = [\"air.ap\"]");
    assert_eq!(own.keys().collect::<Vec<_>>(), ["air.ap"]);
    // A packet each, or one that the MAC has still got.
    let cell = &without.summary.cells["air"].stations["ap"];
    let taken = cell.sent + cell.given_up;
    assert!((taken..=taken + 1).contains(&(own["air.ap"] as u64)), "{own:?} {cell:?}");
    let text = plain.replacen("[[flows]]", "[capture]\nlinks = [\"ether\"]\n[[flows]]", 1);
    let refused = try_load(&text).expect_err("no such cell").to_string();
    assert!(refused.contains("\"ether\" is not a link and not a cell; there are wire, "), "{refused}");
}

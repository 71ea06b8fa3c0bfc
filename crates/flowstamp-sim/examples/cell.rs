//! A saturated cell of IEEE 802.11: stations that always have a packet for one more, which only receives. For `tools/dcf.py`.
//!
//! `cell CELL.toml stations=10 rate=11Mbps packet=1300B duration=100s [seed=1]`, where the file has what a scenario would say of
//! the cell: `standard = "802.11b-ns2"` and what differs from it. `-` is standard input.

use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_sim::medium::dcf::{Cell, Frame, Happened, StationParams, Stats};
use flowstamp_sim::random::Stream;
use flowstamp_sim::scenario::wireless::Dcf;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::str::FromStr;

fn get<T: FromStr<Err: std::fmt::Display>>(
    given: &BTreeMap<String, String>,
    key: &str,
    default: &str,
) -> Result<T, String> {
    given.get(key).map_or(default, String::as_str).parse().map_err(|e| format!("{key}: {e}"))
}

fn run() -> Result<(), String> {
    let usage = "usage: cell CELL.toml stations=10 rate=11Mbps packet=1300B duration=100s seed=1";
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or(usage)?;
    let given: BTreeMap<_, _> =
        args.filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
    let mut text = String::new();
    match path.as_str() {
        "-" => std::io::stdin().read_to_string(&mut text).map_err(|e| e.to_string()),
        file => {
            std::fs::read_to_string(file).map(|t| text = t).map(|()| 0).map_err(|e| format!("{file}: {e}"))
        }
    }?;
    let dcf: Dcf = toml::from_str(&text).map_err(|e| format!("{path}: {}", e.message()))?;
    let params = dcf.params();
    params.check().map_err(|(name, message)| format!("{path}: {name} {message}"))?;
    let n: u32 = get(&given, "stations", "10")?;
    let rate: Rate = get(&given, "rate", "11Mbps")?;
    params.check_rate(rate).map_err(|e| format!("rate {e}"))?;
    let packet: Bytes = get(&given, "packet", "1300B")?;
    let duration: Time = get(&given, "duration", "100s")?;
    let seed: u64 = get(&given, "seed", "1")?;

    let mut stations = vec![StationParams::at(rate); n as usize];
    stations.push(StationParams::ACCESS_POINT);
    let mut cell = Cell::new(&params, &stations);
    let mut streams: Vec<_> = (0..=n).map(|i| Stream::new(seed, &format!("station {i}"))).collect();
    let frame = Frame { bytes: u32::try_from(packet.get()).map_err(|_| "packet: too large")?, to: n };
    for station in 0..n {
        cell.offer(Time::ZERO, station, frame, |s| streams[s as usize].uniform());
    }
    let (mut steps, mut now) = (0u64, Time::ZERO);
    let mut free = Vec::new();
    while let Some(next) = cell.next().filter(|next| *next <= duration) {
        now = next;
        steps += 1;
        cell.step(now, |s| streams[s as usize].uniform(), &mut |happened| {
            if let Happened::Free { station, .. } = happened {
                free.push(station);
            }
        });
        for station in free.drain(..) {
            cell.offer(now, station, frame, |s| streams[s as usize].uniform());
        }
    }
    let sum = |of: fn(&Stats) -> u64| (0..n).map(|i| of(cell.stats(i))).sum::<u64>();
    let medium = cell.medium(now);
    let seconds = now.as_secs_f64().max(f64::MIN_POSITIVE);
    let out = serde_json::json!({
        "throughput_bps": medium.exchanges as f64 * packet.as_f64() * 8.0 / seconds,
        "collisions": sum(|s| s.collisions) as f64 / sum(|s| s.attempts).max(1) as f64,
        "attempts": sum(|s| s.attempts),
        "sent": sum(|s| s.sent),
        "given_up": sum(|s| s.given_up),
        "idle": medium.idle.as_secs_f64() / seconds,
        "steps_per_exchange": steps as f64 / medium.exchanges.max(1) as f64,
    });
    writeln!(std::io::stdout(), "{out:#}").map_err(|e| e.to_string())
}

#[expect(clippy::print_stderr, reason = "a command's output")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

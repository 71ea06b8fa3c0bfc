//! Flows over QUIC: `flowstamp quic serve` on the sending host, and `flowstamp quic get` or `video` per flow on the receiving
//! one.
//!
//! A flow's client chooses the flow's law. The hosts' kernels need no program for it.

use super::carried::MTU;
use super::file::Lab;
use super::flows::{Application, Flows, Planned};
use super::namespaces::{Id, Place, command};
use super::network::LEFT;
use crate::path::{Flow, Flows as Measured, PORTS};
use crate::refusal::Refusal;
use anyhow::{Context, bail};
use flowstamp_laws::units::{Bytes, Time};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PROGRAM: &str = "flowstamp-quic";
/// The server's UDP port.
const PORT: u16 = 4433;
/// How long a server may take until it listens.
const LISTENS: Duration = Duration::from_secs(10);

/// Finds the program: the one that FLOWSTAMP_QUIC names, else one beside this program, else one in PATH.
pub fn program() -> anyhow::Result<String> {
    let named = std::env::var_os("FLOWSTAMP_QUIC").filter(|named| !named.is_empty()).map(PathBuf::from);
    let beside = std::env::current_exe()?.with_file_name(PROGRAM);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    let found = find(named, [beside].into_iter().chain(in_path))?;
    Ok(found.to_str().context("its path is not UTF-8")?.to_owned())
}

/// Returns the named program, or without a name the first of the others that exists. If the named file does not exist, this
/// is an error, and no other program is tried.
fn find(named: Option<PathBuf>, mut others: impl Iterator<Item = PathBuf>) -> Result<PathBuf, Refusal> {
    match named {
        Some(named) if named.is_file() => Ok(named),
        Some(named) => Err(Refusal(format!(
            "FLOWSTAMP_QUIC: there is no file {}; set it to {PROGRAM}'s path, or unset it",
            named.display()
        ))),
        None => others
            .find(|program| program.is_file())
            .ok_or_else(|| Refusal(format!("{PROGRAM} is missing, which app = \"h3\" needs; run make quic"))),
    }
}

/// A running server.
pub struct Server {
    child: Child,
    fingerprint: String,
}

impl Server {
    /// Starts the server, and returns once it listens.
    pub fn start(id: &Id) -> anyhow::Result<Self> {
        let mut serve = command(id, Place::Left, &program()?)?;
        let listen = format!("{LEFT}:{PORT}");
        serve.args(["quic", "serve", "--json", "--listen", &listen, "--mtu", &MTU.to_string()]);
        Self::listening(&mut serve, &id.folder().join("quic-serve.log"), LISTENS)
    }

    /// Starts a server, and waits until it prints its certificate's fingerprint. Its standard error goes to `log`. If it fails,
    /// the error quotes the log's first line.
    fn listening(serve: &mut Command, log: &Path, wait: Duration) -> anyhow::Result<Self> {
        serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let child = serve.spawn().context(PROGRAM)?;
        let mut server = Self { child, fingerprint: String::new() };
        let mut out = BufReader::new(server.child.stdout.take().context("its output")?);
        let (tell, told) = mpsc::channel();
        // This thread ends when the server prints a line or exits.
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = out.read_line(&mut line);
            let _ = tell.send(line);
        });
        let Ok(line) = told.recv_timeout(wait) else {
            bail!("quic serve does not listen after {} s{}", wait.as_secs_f64(), complaint(log));
        };
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        let Some(fingerprint) = told["fingerprint"].as_str() else {
            bail!("quic serve does not listen{}", complaint(log));
        };
        server.fingerprint = fingerprint.to_owned();
        Ok(server)
    }

    /// The command of one flow's client. The client runs no longer than the flow, and prints a report when it ends.
    pub fn client(
        &self,
        id: &Id,
        lab: &Lab,
        flows: &Flows,
        number: usize,
        start: Time,
    ) -> anyhow::Result<Command> {
        let mut client = command(id, Place::Right, &program()?)?;
        let own_port = (PORTS.start + number as u16).to_string();
        let end = flows.stop.map_or(lab.duration, |stop| stop.min(lab.duration));
        let left = end.saturating_sub(start).max(Time::from_millis(1));
        let seconds = left.as_secs_f64();
        let server = format!("https://{LEFT}:{PORT}");
        if flows.app == Application::Video {
            let mut video = flows.video.clone().unwrap_or_default();
            // Without a length, the video is longer than the lab can play.
            let longest = video.segment * (((left + video.max_buffer).as_ps() / video.segment.as_ps()) + 2);
            video.length.get_or_insert(longest);
            client.args(["quic", "video", &format!("{server}/"), "--scone"]);
            client.args(["--player", &serde_json::to_string(&video)?]);
        } else {
            // Without a size, ask for more than a lab can transfer: the largest size that `serve` offers.
            let size = flows.size.map_or(1_000_000_000_000, Bytes::get);
            client.args(["quic", "get", &format!("{server}/bytes/{size}")]);
            client.args(["--every", &lab.probes.every.as_secs_f64().to_string()]);
        }
        client.args(["--json", "--fingerprint", &self.fingerprint, "--law", lab.law_of(flows).name()]);
        client.args(["--local-port", &own_port, "--mtu", &MTU.to_string()]);
        client.args(["--seconds", &seconds.to_string(), "--timeout", &(seconds + 60.0).to_string()]);
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line of a program's log, to end an error message with.
fn complaint(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let line = log.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("flowstamp: ");
    if line.is_empty() { String::new() } else { format!(": {line}") }
}

/// Adds the reports of QUIC's clients to the path's measurements.
pub fn report(measured: &mut Measured, lab: &Lab, plan: &[Planned], said: &[Value]) {
    for (number, said) in said.iter().enumerate() {
        if !lab.flows[plan[number].group].app.is_tcp() {
            report_one(measured, number, lab, said);
        }
    }
}

/// Adds the report of one flow's client to the path's measurements. A report has only durations. They count from the client's
/// first datagram, whose time the path has recorded.
///
/// Losses include those of the warm-up, because QUIC reports one number for the whole connection.
fn report_one(measured: &mut Measured, number: usize, lab: &Lab, said: &Value) {
    let Some(opened) = measured.flows()[number].opened else { return };
    let seconds = |name: &str| Time::from_secs_f64(said[name].as_f64().unwrap_or(0.0));
    let Some(bytes) = said["bytes"].as_u64() else { return };
    let began = opened + seconds("handshake_seconds");
    let ended = began + seconds("seconds");
    let mut arrived = vec![(began, 0)];
    arrived.extend(said["arrived"].as_array().into_iter().flatten().filter_map(|sample| {
        Some((began + Time::from_secs_f64(sample["seconds"].as_f64()?), sample["bytes"].as_u64()?))
    }));
    arrived.push((ended, bytes));
    let delivered = |at: Time| interpolated(&arrived, at);
    let server = |name: &str| said["server"][name].as_u64().unwrap_or(0);
    let in_time = ended <= lab.duration;
    let mut flow = Flow::default();
    flow.opened = Some(opened);
    flow.started = Some(began);
    flow.finished = (said["complete"] == true && in_time).then_some(ended);
    flow.delivered_bytes = delivered(lab.duration);
    flow.last_ack = Some(ended.min(lab.duration));
    flow.retransmissions = server("lost_packets") as u32;
    flow.packets = server("sent_packets");
    measured.report(number, flow, delivered);
}

/// Interpolates the bytes at a time linearly between samples, which are sorted by time.
fn interpolated(samples: &[(Time, u64)], at: Time) -> u64 {
    let after = samples.partition_point(|(time, _)| *time <= at);
    match (after.checked_sub(1).map(|before| samples[before]), samples.get(after)) {
        (None, _) => 0,
        (Some((_, bytes)), None) => bytes,
        (Some((from, least)), Some((to, most))) => {
            let share = at.saturating_sub(from).as_secs_f64() / to.saturating_sub(from).as_secs_f64();
            least + (share * (most - least) as f64) as u64
        }
    }
}

/// Summarises the report of a download's client.
pub fn application(flow: &str, said: &Value) -> Value {
    let total_s =
        said["seconds"].as_f64().zip(said["handshake_seconds"].as_f64()).map(|(body, hand)| body + hand);
    json!({
        "flow": flow,
        "app": "h3",
        "time_total_s": total_s.filter(|_| said["complete"] == true),
        "handshake_s": said["handshake_seconds"],
        "size_bytes": said["bytes"],
        "complete": said["complete"],
        "response_code": said["status"],
        "stamps": said["stamps"],
        "server": said["server"],
    })
}

/// Summarises the report of a video's client.
pub fn video(flow: &str, said: &Value) -> Value {
    let mut told =
        json!({"flow": flow, "app": "video", "segments": said["segments"].as_array().map(Vec::len)});
    for name in ["startup_seconds", "stalls", "stalled_seconds", "switches", "mean_bitrate_bps"] {
        told[name] = said[name].clone();
    }
    for name in ["scone_packets", "advice_bps", "server"] {
        told[name] = said[name].clone();
    }
    told
}

/// Formats a video's summary as a line of text.
pub fn line(video: &Value) -> String {
    let number = |name: &str| video[name].as_f64().unwrap_or(f64::NAN);
    let advice = video["advice_bps"].as_f64();
    let advice = advice.map_or_else(|| "no advice".to_owned(), |bps| format!("advice {:.3} Mb/s", bps / 1e6));
    format!(
        "{}: {:.2} Mb/s of media on average, {} switches, startup {:.1} s, {} stalls of {:.1} s, {advice}",
        video["flow"].as_str().unwrap_or_default(),
        number("mean_bitrate_bps") / 1e6,
        video["switches"],
        number("startup_seconds"),
        video["stalls"],
        number("stalled_seconds"),
    )
}

/// The reason why a flow fell back from its law, if it did.
pub fn left(said: &Value) -> Option<&'static str> {
    (said["server"]["fell_back"] == true).then_some("its routers are not the bottleneck")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Starts a shell's script as a server.
    fn start(script: &str, wait: Duration) -> anyhow::Result<Server> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("flowstamp-serve-{}-{number}.log", std::process::id()));
        let started = Server::listening(Command::new("sh").args(["-c", script]), &log, wait);
        let _ = fs::remove_file(log);
        started
    }

    #[test]
    fn a_server_that_does_not_listen_says_why() {
        let why = |script| start(script, LISTENS).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(
            why("echo 'flowstamp: 10.0.0.1:4433: in use' >&2; exit 1"),
            "quic serve does not listen: 10.0.0.1:4433: in use"
        );
        assert_eq!(why("exit 1"), "quic serve does not listen");
        let late = start("exec sleep 60", Duration::from_millis(50)).err().map(|error| error.to_string());
        assert_eq!(late.unwrap_or_default(), "quic serve does not listen after 0.05 s");
        let server = start("echo '{\"fingerprint\": \"e80c\"}'", LISTENS);
        assert!(server.is_ok_and(|server| server.fingerprint == "e80c"));
    }

    #[test]
    fn a_named_program_is_not_replaced_by_another() {
        let there = std::env::current_exe().unwrap();
        let find = |named: Option<&str>| find(named.map(PathBuf::from), [there.clone()].into_iter());
        assert_eq!(find(None).unwrap(), there);
        assert_eq!(
            find(Some("/no/such")).unwrap_err().0,
            "FLOWSTAMP_QUIC: there is no file /no/such; set it to flowstamp-quic's path, or unset it"
        );
    }

    proptest! {
        /// Bytes never fall with time, and agree with the samples.
        #[test]
        fn bytes_over_time_rise(steps in proptest::collection::vec((1u64..1000, 0u64..100_000), 1..20), at in 0u64..30_000) {
            let mut samples = vec![(Time::from_millis(10), 0)];
            for (ms, bytes) in steps {
                let (time, before) = samples[samples.len() - 1];
                samples.push((time + Time::from_millis(ms), before + bytes));
            }
            for (time, bytes) in &samples {
                prop_assert_eq!(interpolated(&samples, *time), *bytes);
            }
            let at = Time::from_millis(at);
            prop_assert!(interpolated(&samples, at) <= interpolated(&samples, at + Time::from_millis(7)));
        }
    }
}

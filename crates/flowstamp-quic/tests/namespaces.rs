//! `flowstamp-quic` between two network namespaces, as root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test may panic, and says why it is skipped"
)]

#[path = "../../flowstamp-wire/tests/skip/mod.rs"]
mod skip;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_flowstamp-quic");

/// Two namespaces with a veth pair between them. They are removed when this is dropped.
struct Namespaces {
    names: [String; 2],
}

fn ip(arguments: &str) -> bool {
    let done =
        Command::new("ip").args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

impl Namespaces {
    /// `None` without root, `ip`, or the right to make a namespace.
    fn make(test: &str) -> Option<Self> {
        let names = ["s", "c"].map(|end| format!("fsq{}{test}{end}", std::process::id()));
        let [server, client] = &names;
        if !ip("-V") || !may_make_namespaces() {
            return None;
        }
        let made = Self { names: names.clone() };
        for command in [
            format!("netns add {server}"),
            format!("netns add {client}"),
            format!("link add v0 netns {server} type veth peer name v0 netns {client}"),
            format!("-n {server} addr add 10.99.0.1/24 dev v0"),
            format!("-n {client} addr add 10.99.0.2/24 dev v0"),
            format!("-n {server} link set v0 up"),
            format!("-n {client} link set v0 up"),
            format!("-n {server} link set lo up"),
        ] {
            assert!(ip(&command), "ip {command}");
        }
        Some(made)
    }

    fn run(&self, end: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end], PROGRAM, "quic"]).args(arguments);
        command
    }
}

/// Whether this process has the right to make and enter network namespaces: the capability CAP_SYS_ADMIN.
fn may_make_namespaces() -> bool {
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() & CAP_SYS_ADMIN != 0
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

/// A program that runs until this is dropped.
struct Running(Child);

impl Running {
    /// Starts it, and returns its first line too.
    fn start(command: &mut Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "long"]
fn a_file_crosses_from_one_namespace_to_another_under_every_law() {
    let Some(namespaces) = Namespaces::make("laws") else {
        // `make test` names skipped tests by this line.
        skip::skip("network namespaces need root and ip");
        return;
    };
    let (_server, told) =
        Running::start(&mut namespaces.run(0, &["serve", "--listen", "10.99.0.1:4433", "--json"]));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let fingerprint = told["fingerprint"].as_str().unwrap();
    let path = |port: &str, law| {
        let listen = format!("10.99.0.1:{port}");
        let limits = ["--rate", "20Mbps", "--delay", "10ms", "--law", law];
        let mut command = namespaces.run(0, &["path", "--listen", &listen, "--to", "10.99.0.1:4433"]);
        Running::start(command.args(limits)).0
    };
    let _paths = [path("4434", "none"), path("4435", "rcp"), path("4436", "xcp")];
    let laws = namespaces.run(0, &["laws"]).output().unwrap();
    let laws = String::from_utf8(laws.stdout).unwrap();
    assert!(laws.lines().count() >= 15, "{laws}");
    for law in laws.lines() {
        let port = match law {
            "rcp" => 4435,
            "xcp" => 4436,
            _ => 4434,
        };
        let url = format!("https://10.99.0.1:{port}/bytes/1500000");
        let mut get = namespaces.run(1, &["get", &url, "--law", law, "--fingerprint", fingerprint, "--json"]);
        let done = get.output().unwrap();
        assert!(done.status.success(), "{law}: {}", String::from_utf8_lossy(&done.stderr));
        let fetched: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(fetched["bytes"], 1_500_000, "{law}");
        assert_eq!(fetched["server"]["law"], law);
        assert_eq!(fetched["server"]["fell_back"], false, "{law}");
        assert!(fetched["server"]["min_rtt_ms"].as_f64().unwrap() >= 20.0, "{law}: the path's delay");
        assert_eq!(fetched["stamps"].as_u64().unwrap() > 0, port != 4434, "{law}");
    }
    // Without a path, the processes' delay is many times the minimum RTT. With its default target, Swift mostly has less than
    // 2 Mb/s here, and with this one 30 Mb/s (docs/notes/quic-measurements.md).
    let law = r#"{"law": "swift", "base_target": "5ms"}"#;
    let url = "https://10.99.0.1:4433/bytes/1500000";
    for _ in 0..4 {
        let mut get = namespaces.run(1, &["get", url, "--law", law, "--fingerprint", fingerprint, "--json"]);
        let done = get.args(["--timeout", "20"]).output().unwrap();
        assert!(done.status.success(), "swift: {}", String::from_utf8_lossy(&done.stderr));
        let fetched: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(fetched["goodput_bps"].as_f64().unwrap() > 5e6, "{fetched}");
    }
}

/// Whether this machine cannot run BPF programs that outlive their command, and why.
fn lacks() -> Option<&'static str> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Some("the kernel has no BTF");
    }
    (!mounts.contains(" /sys/fs/bpf bpf ")).then_some("no BPF file system can be mounted")
}

/// The router of `flowstamp-linux` writes advice into the SCONE packets, and the client reads it.
#[test]
#[ignore = "long"]
fn scone_advice_of_the_bpf_router_reaches_the_client() {
    let (Some(namespaces), Some(linux)) = (Namespaces::make("scone"), std::env::var_os("FLOWSTAMP_LINUX"))
    else {
        skip::skip("it needs root, ip, and flowstamp-linux, which FLOWSTAMP_LINUX names");
        return;
    };
    let router = |action: &str, more: &[&str]| {
        let mut command = Command::new(&linux);
        command.args(["router", action, "v0", "--netns", &namespaces.names[0]]).args(more).output().unwrap()
    };
    let attached = router("attach", &["--scone", "--scone-rate", "5Mbps"]);
    if let Some(lacks) = lacks().filter(|_| !attached.status.success()) {
        skip::skip(lacks);
        return;
    }
    assert!(attached.status.success(), "{}", String::from_utf8_lossy(&attached.stderr));
    let (_server, told) =
        Running::start(&mut namespaces.run(0, &["serve", "--listen", "10.99.0.1:4433", "--json"]));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let fingerprint = told["fingerprint"].as_str().unwrap();
    let url = "https://10.99.0.1:4433/bytes/100000";
    let get = |more: &[&str]| {
        let done = namespaces
            .run(1, &["get", url, "--fingerprint", fingerprint, "--json"])
            .args(more)
            .output()
            .unwrap();
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
    };
    let (asked, silent) = (get(&["--scone"]), get(&[]));
    router("detach", &[]);
    // 4.467 Mb/s is the highest signal up to 5 Mb/s.
    assert_eq!((&asked["bytes"], &asked["advice_bps"]), (&100_000.into(), &4_466_835.into()), "{asked}");
    assert_eq!((&silent["bytes"], &silent["scone_packets"]), (&100_000.into(), &0.into()), "{silent}");
}

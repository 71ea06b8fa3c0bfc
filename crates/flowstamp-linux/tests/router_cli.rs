//! `router` as users have it, in network namespaces and a BPF file system of this test's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Two namespaces with a veth between them whose one end's name has a dot, and a place for pins; gone when dropped.
struct Net {
    name: String,
    pins: PathBuf,
}

fn sh(command: &str) -> bool {
    Command::new("sh").args(["-c", command]).output().is_ok_and(|o| o.status.success())
}

impl Net {
    fn new(test: &str) -> Option<Self> {
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } != 0 || !Path::new("/sys/kernel/btf/vmlinux").exists() {
            eprintln!("skipped: BPF programs need root and a kernel with BTF");
            return None;
        }
        let name = format!("fs-rt-{test}-{}", std::process::id());
        let pins = std::env::temp_dir().join(&name);
        let net = Self { name, pins };
        let (n, p) = (&net.name, net.pins.display());
        let made = sh(&format!(
            "mkdir {p} && mount -t bpf bpf {p} && ip netns add {n} && ip netns add {n}-peer && \
             ip link add out.1 netns {n} type veth peer name in netns {n}-peer && \
             ip -n {n} link set out.1 up && ip -n {n}-peer link set in up && \
             ip -n {n} addr add 10.79.0.1/24 dev out.1 && ip -n {n}-peer addr add 10.79.0.2/24 dev in"
        ));
        if !made {
            eprintln!("skipped: no network namespaces, veth or BPF file system can be made here");
            return None;
        }
        Some(net)
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"));
        command.arg("router").args(arguments.split(' ')).arg("--pins").arg(self.pins.join("router"));
        command.output().expect("it was built")
    }

    /// What it prints, when it is to succeed.
    fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// One line, and exit code 2.
    fn refused(&self, arguments: &str, part: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.lines().count() == 1 && said.contains(part), "{arguments}: {said}");
    }

    fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.ok("status --json")).expect("JSON")
    }

    fn pinned(&self) -> usize {
        std::fs::read_dir(self.pins.join("router")).into_iter().flatten().count()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let (n, p) = (&self.name, self.pins.display());
        sh(&format!("ip netns del {n}; ip netns del {n}-peer; umount {p}; rmdir {p}"));
    }
}

#[test]
fn attaches_once_counts_and_leaves_nothing() {
    let Some(net) = Net::new("a") else { return };
    let attach = format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name);
    net.ok(&attach);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let before = net.status()[0]["decisions"].as_u64().expect("a number");
    assert!(before > 5, "{before}");
    // Again is nothing: the law goes on where it is.
    net.ok(&attach);
    assert!(sh(&format!(
        "ip netns exec {} bash -c 'for i in 1 2 3; do echo hello > /dev/udp/10.79.0.2/9; done'",
        net.name
    )));
    // What is counted shows when the next interval ends.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let status = net.status();
    assert!(status[0]["decisions"].as_u64() > Some(before));
    assert_eq!(status[0]["interface"], format!("{}:out.1", net.name));
    assert_eq!(status[0]["attached"], true);
    assert!(status[0]["input_bytes"].as_u64() >= Some(3 * 48), "{status}");
    // Another law takes its place.
    net.ok(&format!("attach out.1 --netns {} --law xcp --rate 1Gbps", net.name));
    assert_eq!(net.status()[0]["law"], "xcp");
    assert_eq!(net.status().as_array().map(Vec::len), Some(1));
    net.refused(&format!("police out.1 --netns {} --least 1bps", net.name), "--least is 1bps; it must be");
    net.refused(&format!("police out.1 --netns {} --isolate 0s", net.name), "--isolate is 0s");
    net.ok(&format!("police out.1 --netns {}", net.name));
    assert_eq!(net.pinned(), 2);
    assert_eq!(net.ok(&format!("police out.1 --netns {} --list", net.name)), "");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert!(!net.pins.join("router").exists());
    // Neither program is on the interface any more.
    assert!(sh(&format!("! tc -n {} filter show dev out.1 egress | grep -q fs_", net.name)));
    net.ok(&format!("detach out.1 --netns {}", net.name));
}

#[test]
fn an_interface_that_goes_takes_its_router_off() {
    let Some(net) = Net::new("b") else { return };
    let attach = format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name);
    net.ok(&attach);
    assert!(sh(&format!("ip -n {} link del out.1", net.name)));
    assert_eq!(net.status()[0]["attached"], false);
    net.refused(&attach, "no interface out.1");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.pinned(), 0);
}

#[test]
fn refuses_what_it_cannot_do() {
    let Some(net) = Net::new("c") else { return };
    let on = format!("attach out.1 --netns {} --law", net.name);
    net.refused("attach nothing --law rcp --rate 1Gbps", "no interface nothing");
    net.refused(&format!("attach out.1 --netns none-{} --law rcp --rate 1Gbps", net.name), "--netns");
    net.refused(&format!("{on} vcp --rate 1Gbps"), "not yet; it must be rcp or xcp");
    net.refused(&format!("{on} rcp --rate 1kbps"), "100kbps to 100Gbps");
    net.refused(&format!("{on} rcp --rate 1Gbps --eta 1.5"), "--eta");
    net.refused(&format!("{on} rcp --rate 1Gbps --alpha 11"), "--alpha");
    net.refused(&format!("{on} rcp --rate 1Gbps --gamma 0.1"), "--gamma");
    net.refused(&format!("{on} xcp --rate 1Gbps --initial-rate 0.1"), "--initial-rate");
    net.refused(&format!("police out.1 --netns {}", net.name), "not a router");
    net.refused("metrics --listen 127.0.0.1:0", "no router");
    assert_eq!(net.pinned(), 0);
    // A bare number has no unit.
    assert_eq!(net.run(&format!("{on} rcp --rate 1000000")).status.code(), Some(2));
}

#[test]
fn metrics_are_served_without_privileges() {
    use std::io::{BufRead, BufReader, Read, Write};
    let Some(net) = Net::new("d") else { return };
    net.ok(&format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name));
    let mut server = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"))
        .args(["router", "metrics", "--listen", "127.0.0.1:0", "--pins"])
        .arg(net.pins.join("router"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it was built");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address =
        line.trim().trim_start_matches("listening at http://").trim_end_matches("/metrics").to_owned();
    let ask = |request: &str| {
        let mut stream = std::net::TcpStream::connect(&address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        text
    };
    let text = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let labels = format!("{{interface=\"{}:out.1\",law=\"rcp\"}}", net.name);
    let missing = ask("GET /x HTTP/1.1\r\n\r\n");
    let user = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
    server.kill().expect("it ran");
    server.wait().expect("it ran");
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains(&format!("flowstamp_router_rate_bps{labels} ")), "{text}");
    assert!(text.contains(&format!("flowstamp_router_decisions_total{labels} ")), "{text}");
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    assert!(
        user.contains("Uid:\t65534\t65534\t65534\t65534") && user.contains("CapEff:\t0000000000000000"),
        "{user}"
    );
}

//! Two namespaces with a veth between them, a cgroup, and commands in them. Dropping it removes everything.

use super::skip::skip;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The laws that `host enable --law` takes.
pub const LAWS: [&str; 3] = ["rcp", "xcp", "vcp"];

/// The two ends.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Client,
    Server,
}

/// A middlebox's change of the option.
#[derive(Clone, Copy)]
pub enum How {
    Loses,
    Pads,
    Noise,
}

/// Measurements of [`Net::legs`].
#[derive(Debug)]
pub struct Leg {
    /// The congestion control at its end.
    pub name: String,
    /// Bits/s acked: the median of five parts of its second half, as a machine may stop for a while.
    pub rate: f64,
    /// The kernel's pacing rate at its end, bits/s.
    pub pacing: f64,
    /// The smoothed RTT at its end.
    pub srtt: Duration,
}

pub struct Net {
    pub name: String,
    pub cgroup: PathBuf,
    scratch: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// Why these tests cannot run here, if they cannot.
fn missing() -> Option<String> {
    if unsafe { libc::geteuid() } != 0 {
        return Some("not root".into());
    }
    if !PathBuf::from("/sys/kernel/btf/vmlinux").exists() {
        return Some("this kernel has no BTF".into());
    }
    for (tool, flag) in [
        ("ip", "-V"),
        ("tc", "-V"),
        ("ethtool", "--version"),
        ("iperf3", "-v"),
        ("curl", "-V"),
        ("nginx", "-v"),
        ("python3", "-V"),
    ] {
        if Command::new(tool).arg(flag).output().is_err() {
            return Some(format!("{tool} is not installed"));
        }
    }
    if cgroup2().is_none() {
        return Some("cgroup version 2 is not mounted".into());
    }
    None
}

fn cgroup2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let line = mounts.lines().find(|l| l.split(' ').nth(2) == Some("cgroup2"))?;
    line.split(' ').nth(1).map(PathBuf::from)
}

/// At most five letters that no other process of tests has now.
fn unique() -> String {
    let mut rest = std::process::id();
    let mut letters = String::new();
    while rest > 0 {
        letters.push(char::from_digit(rest % 36, 36).unwrap());
        rest /= 36;
    }
    letters
}

fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn ip(arguments: &str) {
    run(Command::new("ip").args(arguments.split(' ')));
}

impl Net {
    /// None, with the reason on standard output, where it cannot be made.
    pub fn new() -> Option<Self> {
        if let Some(reason) = missing() {
            skip(&reason);
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("fs-h1-{}", unique());
        let cgroup = cgroup2().unwrap().join(&name);
        let scratch = std::env::temp_dir().join(&name);
        fs::create_dir_all(&cgroup).unwrap();
        fs::create_dir_all(&scratch).unwrap();
        let net = Self { name, cgroup, scratch, _turn: turn };
        let (client, server) = (net.namespace(End::Client), net.namespace(End::Server));
        ip(&format!("netns add {client}"));
        ip(&format!("netns add {server}"));
        ip(&format!("link add veth0 netns {client} type veth peer name veth0 netns {server}"));
        for (namespace, host) in [(&client, 1), (&server, 2)] {
            ip(&format!("-n {namespace} addr add 10.201.0.{host}/24 dev veth0"));
            ip(&format!("-n {namespace} addr add fd00:201::{host}/64 dev veth0 nodad"));
            ip(&format!("-n {namespace} link set lo up"));
            ip(&format!("-n {namespace} link set veth0 up"));
            run(Command::new("tc").args(["-n", namespace, "qdisc", "add", "dev", "veth0", "clsact"]));
        }
        Some(net)
    }

    pub fn namespace(&self, end: End) -> String {
        format!("{}-{}", self.name, if end == End::Client { "c" } else { "s" })
    }

    /// A file of this test's own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// A part of the cgroup that is one end's alone.
    pub fn cgroup_of(&self, end: End) -> PathBuf {
        let cgroup = self.cgroup.join(if end == End::Client { "c" } else { "s" });
        fs::create_dir_all(&cgroup).unwrap();
        cgroup
    }

    /// The name of an end that has its own pins; `drop` knows of them.
    pub fn name_of(&self, end: End) -> String {
        format!("{}{}", self.name, if end == End::Client { 'c' } else { 's' })
    }

    /// A command at one end, its sockets in the cgroup if `inside`.
    pub fn command(&self, end: End, inside: bool, program: &str) -> Command {
        self.command_in(end, inside.then_some(self.cgroup.as_path()), program)
    }

    fn command_in(&self, end: End, cgroup: Option<&Path>, program: &str) -> Command {
        let mut command = Command::new("sh");
        let join = cgroup.map(|cgroup| format!("echo $$ > {}/cgroup.procs && ", cgroup.display()));
        let script = format!("{}exec ip netns exec {} \"$@\"", join.unwrap_or_default(), self.namespace(end));
        command.args(["-c", &script, "sh", program]);
        command
    }

    /// `flowstamp-linux host ...`, with its exit code and what it says on either output.
    pub fn host(&self, end: End, arguments: &str) -> (i32, String) {
        self.host_of(&self.name, end, arguments)
    }

    /// The same under another name.
    pub fn host_of(&self, name: &str, end: End, arguments: &str) -> (i32, String) {
        let mut command = self.command(end, false, env!("CARGO_BIN_EXE_flowstamp-linux"));
        let output = command
            .env("FLOWSTAMP_NAME", name)
            .arg("host")
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].map(|o| String::from_utf8_lossy(&o).into_owned()).concat();
        (output.status.code().unwrap(), said)
    }

    /// Enables at both ends, for this net's cgroup.
    pub fn enable(&self, law: &str) {
        for end in [End::Client, End::Server] {
            let (code, said) =
                self.host(end, &format!("enable --law {law} --cgroup {}", self.cgroup.display()));
            assert_eq!((code, said.as_str()), (0, ""));
        }
    }

    /// `host status`.
    pub fn status(&self) -> serde_json::Value {
        self.status_of(&self.name)
    }

    /// That of another name, such as a lab's.
    pub fn status_of(&self, name: &str) -> serde_json::Value {
        let mut command = self.command(End::Client, false, env!("CARGO_BIN_EXE_flowstamp-linux"));
        let output = command.env("FLOWSTAMP_NAME", name).args(["host", "status", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// One of its counters.
    pub fn counter(&self, name: &str) -> u64 {
        self.status()["counters"][name].as_u64().unwrap()
    }

    /// Why ends with this local port left.
    pub fn causes(&self, port: u16) -> Vec<String> {
        let (code, said) = self.host(End::Client, "status --json --departures");
        assert_eq!(code, 0, "{said}");
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        let departures = status["departures"].as_array().unwrap().iter();
        departures
            .filter(|d| d["local_port"] == port)
            .inspect(|d| assert!(d["at_s"].as_f64() > Some(0.0), "{d}"))
            .map(|d| d["cause"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The congestion control for `law`.
    pub fn congestion_control(&self, law: &str) -> String {
        format!("{}_{law}", self.name.replace('-', "_"))
    }

    /// The same of an end that has a name of its own.
    pub fn control_of(&self, end: End, law: &str) -> String {
        format!("{}_{law}", self.name_of(end).replace('-', "_"))
    }

    /// A stand-in for a router, at both ends; packets to the server are lost too.
    pub fn stamp(&self, rate_bytes_per_ms: u32, change_bytes_per_s: u32, drop_one_in: u32) {
        let router = self.stamper(rate_bytes_per_ms, change_bytes_per_s, 0);
        for end in [End::Client, End::Server] {
            self.filter(end, "egress", &router);
        }
        if drop_one_in > 0 {
            let loser = self.stamper(rate_bytes_per_ms, change_bytes_per_s, drop_one_in);
            self.filter(End::Server, "ingress", &loser);
        }
    }

    /// The same for what one end sends, alone.
    pub fn stamp_from(&self, end: End, rate_bytes_per_ms: u32, change_bytes_per_s: u32) {
        self.filter(end, "egress", &self.stamper(rate_bytes_per_ms, change_bytes_per_s, 0));
    }

    /// Two routers in a row on the way to the server; one on the way back, of the first's rate.
    pub fn stamp_twice(&self, first: u32, second: u32) {
        for end in [End::Client, End::Server] {
            self.filter(end, "egress", &self.stamper(first, 0, 0));
        }
        self.filter(End::Server, "ingress", &self.stamper(second, 0, 0));
    }

    /// SYN-ACKs are lost for a time from now on.
    pub fn lose_synacks(&self, duration: Duration) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is there to be written to.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        let until = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 + duration.as_nanos() as u64;
        let object = self.compile("synacks", "tests/synacks.bpf.c", &[format!("-DLOSE_UNTIL_NS={until}ull")]);
        self.filter(End::Client, "ingress", &object);
    }

    /// ECN's bits of what comes to the server are cleared.
    pub fn bleach(&self) {
        self.filter(End::Server, "ingress", &self.compile("bleach", "tests/bleach.bpf.c", &[]));
    }

    /// Changes of the option on its way to one end: in SYNs, data and acks, bits 0 to 2 of `kinds`.
    pub fn middlebox(&self, end: End, kinds: u32, how: How) {
        let defines = [format!("-DKINDS={kinds}"), format!("-DHOW={}", how as u32)];
        self.filter(end, "ingress", &self.compile("middlebox", "tests/middlebox.bpf.c", &defines));
    }

    /// One full packet in 16 that an end sends waits in a queue of its own, for some 1.5 ms.
    pub fn reorder(&self, end: End) {
        let namespace = self.namespace(end);
        for words in [
            "qdisc add dev veth0 root handle 1: htb default 1",
            "class add dev veth0 parent 1: classid 1:1 htb rate 10gbit",
            "class add dev veth0 parent 1: classid 1:2 htb rate 8mbit burst 1600",
        ] {
            run(Command::new("tc").args(["-n", &namespace]).args(words.split(' ')));
        }
        self.filter(end, "egress", &self.compile("slower", "tests/slower.bpf.c", &[]));
    }

    /// The server sees the client's connections from another address and port.
    pub fn translate(&self) {
        let [client, seen] = [0x0ac9_0001, 0x0ac9_004d];
        for (end, from, to, at) in [(End::Server, client, seen, 12), (End::Client, seen, client, 16)] {
            let defines = [format!("-DFROM={from}"), format!("-DTO={to}"), format!("-DAT={at}")];
            self.filter(end, "ingress", &self.compile(&format!("nat-{at}"), "tests/nat.bpf.c", &defines));
        }
        let namespace = self.namespace(End::Client);
        let shown = run(Command::new("ip").args(["-n", &namespace, "-j", "link", "show", "veth0"]));
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let mac = shown[0]["address"].as_str().unwrap();
        ip(&format!("-n {} neigh replace 10.201.0.77 lladdr {mac} dev veth0", self.namespace(End::Server)));
    }

    /// How many packets filters at one end have lost.
    pub fn dropped(&self, end: End) -> u64 {
        let namespace = self.namespace(end);
        let shown =
            run(Command::new("tc").args(["-n", &namespace, "-s", "-j", "qdisc", "show", "dev", "veth0"]));
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let clsact = shown.as_array().unwrap().iter().find(|q| q["kind"] == "clsact").unwrap();
        clsact["drops"].as_u64().unwrap()
    }

    /// Waits until no connection is left at either end, for some seconds.
    pub fn settle(&self) {
        for _ in 0..100 {
            let busy = [End::Client, End::Server].into_iter().any(|end| {
                let mut ss = Command::new("ip");
                let words = ["-Htn", "state", "connected", "exclude", "time-wait"];
                let ss = ss.args(["netns", "exec", &self.namespace(end), "ss"]).args(words);
                !run(ss).stdout.is_empty()
            });
            if !busy {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Addresses of IPv4 for connections that are not to know of each other: 10.201.0.10 and up at the server, .110 and up at the client.
    pub fn own_addresses(&self, count: u32) {
        for (end, first) in [(End::Server, 10), (End::Client, 110)] {
            for k in 0..count {
                ip(&format!("-n {} addr add 10.201.0.{}/24 dev veth0", self.namespace(end), first + k));
            }
        }
    }

    /// Some of the first packets of each connection are lost that come in by an interface of a namespace, which is anybody's.
    pub fn lose_first(&self, namespace: &str, device: &str, one_in: u32) {
        let object = self.compile("first", "tests/first.bpf.c", &[format!("-DLOSE_ONE_IN={one_in}")]);
        run(Command::new("tc").args(["-n", namespace, "qdisc", "add", "dev", device, "clsact"]));
        let options = ["filter", "add", "dev", device, "ingress", "bpf", "da", "obj", &object, "sec", "tc"];
        run(Command::new("tc").args(["-n", namespace]).args(options));
    }

    /// Removes the settings of `filter` there.
    pub fn unfilter(&self, end: End, direction: &str) {
        let namespace = self.namespace(end);
        run(Command::new("tc").args(["-n", &namespace, "filter", "del", "dev", "veth0", direction]));
    }

    fn filter(&self, end: End, direction: &str, object: &str) {
        let namespace = self.namespace(end);
        let options = ["filter", "add", "dev", "veth0", direction, "bpf", "da", "obj", object, "sec", "tc"];
        run(Command::new("tc").args(["-n", &namespace]).args(options));
    }

    fn stamper(&self, rate: u32, change: u32, drop: u32) -> String {
        let defines = [
            format!("-DRATE_BYTES_PER_MS={rate}"),
            format!("-DCHANGE_BYTES_PER_S={change}"),
            format!("-DDROP_ONE_IN={drop}"),
        ];
        self.compile(&format!("stamper-{rate}-{change}-{drop}"), "tests/stamper.bpf.c", &defines)
    }

    fn compile(&self, name: &str, source: &str, defines: &[String]) -> String {
        let object = self.file(&format!("{name}.o"));
        let multiarch = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        run(Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/bpf-cc"))
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Ibpf", &multiarch])
            .args(defines)
            .args(["-c", source, "-o"])
            .arg(&object)
            .current_dir(env!("CARGO_MANIFEST_DIR")));
        object.display().to_string()
    }

    /// Packets as they would be on a wire: one segment each, with real checksums.
    pub fn no_offload(&self) {
        for end in [End::Client, End::Server] {
            let namespace = self.namespace(end);
            let options = ["-K", "veth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off"];
            run(Command::new("ip").args(["netns", "exec", &namespace, "ethtool"]).args(options));
        }
    }

    /// A bottleneck that knows nothing, on what one end sends.
    pub fn tbf(&self, end: End, rate: &str, limit: &str) {
        let namespace = self.namespace(end);
        let options = [
            "qdisc", "replace", "dev", "veth0", "root", "handle", "1:", "tbf", "rate", rate, "burst", "15k",
            "limit", limit,
        ];
        run(Command::new("tc").args(["-n", &namespace]).args(options));
    }

    /// Three bands below that bottleneck, of which the first is sent first.
    pub fn pfifo_fast(&self, end: End) {
        let words = ["qdisc", "add", "dev", "veth0", "parent", "1:1", "pfifo_fast"];
        run(Command::new("tc").args(["-n", &self.namespace(end)]).args(words));
    }

    /// As many datagrams as leave one end for the other.
    pub fn flood(&self, end: End) -> Running {
        const SOURCE: &str = "\
import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
while True: s.sendto(bytes(1400), (sys.argv[1], 9))
";
        let to = if end == End::Client { "10.201.0.2" } else { "10.201.0.1" };
        Running(self.command(end, false, "python3").args(["-c", SOURCE, to]).spawn().unwrap())
    }

    /// Sets a value under /proc/sys/net of one end.
    pub fn sysctl(&self, end: End, key: &str, value: u32) {
        let namespace = self.namespace(end);
        let setting = format!("net.{key}={value}");
        run(Command::new("ip").args(["netns", "exec", &namespace, "sysctl", "-qw", &setting]));
    }

    /// A machine that is busy has losses and delays of its own, for which flows leave: whether one has, with what the kernel
    /// counted. A failed check of such a run is tried again; a flow that leaves for its own path does so each time.
    pub fn disturbed(&self) -> bool {
        let left = self.counter("left_loss") + self.counter("left_rtt_doubled");
        if left > 0 {
            let counts = self.command(End::Client, false, "nstat").arg("-as").output().unwrap();
            println!("{} {}", self.status()["counters"], String::from_utf8_lossy(&counts.stdout));
        }
        left > 0
    }

    /// One connection from client to server whose application sends under one congestion control after the other, given
    /// as NAME:SECONDS.
    pub fn legs(&self, legs: &[&str]) -> Vec<Leg> {
        const SOURCE: &str = "\
import socket, statistics, struct, sys, time
s = socket.socket()
s.settimeout(20)
def cc(): return s.getsockopt(6, 13, 16).split(b'\\0')[0].decode()
def info(at): return struct.unpack_from('Q', s.getsockopt(6, socket.TCP_INFO, 128), at)[0]
# tcpi_bytes_acked only grows, which what was sent less what is queued need not.
def rate(seconds):
    begun, before = time.monotonic(), info(120)
    while time.monotonic() < begun + seconds: s.send(bytes(65536))
    return 8 * (info(120) - before) / (time.monotonic() - begun)
s.setsockopt(6, 13, sys.argv[1].split(':')[0].encode())
s.connect(('10.201.0.2', 5300))
for number, leg in enumerate(sys.argv[1:]):
    name, seconds = leg.split(':')
    if number > 0: s.setsockopt(6, 13, name.encode())
    # What was in flight when the leg began is acked in its first half.
    rate(float(seconds) / 2)
    rates = [rate(float(seconds) / 10) for _ in range(5)]
    ca_state, srtt_us, window = info(1) & 255, info(68) & 0xffffffff, info(80) & 0xffffffff
    print(cc(), statistics.median(rates), 8 * info(104), srtt_us, f'{ca_state=} {window=}', [f'{r:.3g}' for r in rates], flush=True)
";
        let said = self.feed_a_sink(SOURCE, legs);
        println!("{said}");
        said.lines()
            .map(|line| {
                let [name, rate, pacing, srtt_us, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                Leg {
                    name: name.to_owned(),
                    rate: rate.parse().unwrap(),
                    pacing: pacing.parse().unwrap(),
                    srtt: Duration::from_micros(srtt_us.parse().unwrap()),
                }
            })
            .collect()
    }

    /// The output of a Python program at the client, while port 5300 of the server accepts one connection and reads all
    /// its data.
    pub fn feed_a_sink(&self, source: &str, arguments: &[&str]) -> String {
        const SINK: &str = "import socket; s = socket.create_server(('', 5300)); c = s.accept()[0]\nwhile c.recv(1 << 20): pass";
        let mut sink = self.command(End::Server, true, "python3");
        let _sink = Running(sink.args(["-c", SINK]).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(700));
        let mut client = self.command(End::Client, true, "timeout");
        let output = client.args(["30", "python3", "-c", source]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// iperf3 from client to server: bits/s that arrived.
    pub fn iperf3(&self, server_inside: bool, arguments: &str) -> f64 {
        self.iperf3_in(server_inside.then_some(self.cgroup.as_path()), &self.cgroup, arguments)
    }

    /// The same, each end in its own cgroup.
    pub fn iperf3_apart(&self, arguments: &str) -> f64 {
        self.iperf3_in(Some(&self.cgroup_of(End::Server)), &self.cgroup_of(End::Client), arguments)
    }

    fn iperf3_in(&self, server: Option<&Path>, client: &Path, arguments: &str) -> f64 {
        let mut server = self.command_in(End::Server, server, "iperf3");
        let mut server = Running(server.args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(700));
        let mut client = self.command_in(End::Client, Some(client), "timeout");
        let output =
            client.args(["30", "iperf3", "-J", "-c"]).args(arguments.split_whitespace()).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
        server.0.kill().ok();
        rate.unwrap_or_else(|| panic!("{report}"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [self.name.clone(), self.name_of(End::Client), self.name_of(End::Server)] {
            let _ = self.host_of(&name, End::Client, "disable");
        }
        for end in [End::Client, End::Server] {
            let namespace = self.namespace(end);
            if let Ok(pids) = Command::new("ip").args(["netns", "pids", &namespace]).output() {
                for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
                    let _ = Command::new("kill").arg(pid).output();
                }
            }
            let _ = Command::new("ip").args(["netns", "del", &namespace]).output();
        }
        let _ = fs::remove_dir_all(&self.scratch);
        // Processes leave their cgroup a moment after they end.
        for _ in 0..100 {
            for part in ["c", "s"] {
                let _ = fs::remove_dir(self.cgroup.join(part));
            }
            if fs::remove_dir(&self.cgroup).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Running {
    /// Begun, and done with what it has to do before it says a line.
    pub fn that_speaks(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{command:?}");
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

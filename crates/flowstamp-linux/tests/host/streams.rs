//! Streams of datagrams over a bottleneck of 10 Mb/s with a router of RCP, at an RTT of 20 ms. The streams are those of
//! examples/streaming.py, alone and beside a TCP connection, and that of an application that does not read R.

use super::between;
use super::net::{End, Net, Running};
use std::process::{Command, Stdio};
use std::time::Duration;

fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const STREAMING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/streaming.py");

/// client veth0 - rc ROUTER rs - p0 PATH p1 - veth0 server
struct Street {
    _path: Running,
    router: String,
    path: String,
    pins: String,
    net: Net,
}

impl Street {
    fn new() -> Option<Self> {
        let net = Net::new()?;
        let [client, server] = [End::Client, End::Server].map(|end| net.namespace(end));
        let (router, path) = (format!("{}-r", net.name), format!("{}-p", net.name));
        sh(&format!(
            "ip netns add {router}; ip netns add {path}; ip -n {client} link del veth0
             # Neighbours answer over IPv6 at once, and not only a second or two after the links are up.
             for net in {client} {server} {router} {path}; do
               ip netns exec $net sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
             done
             ip link add veth0 netns {client} type veth peer name rc netns {router}
             ip link add rs netns {router} type veth peer name p0 netns {path}
             ip link add p1 netns {path} type veth peer name veth0 netns {server}
             for at in {client}:veth0 {router}:rc {router}:rs {path}:p0 {path}:p1 {server}:veth0; do
               ip -n ${{at%:*}} link set ${{at#*:}} up
               ip netns exec ${{at%:*}} ethtool -K ${{at#*:}} tx off gro off > /dev/null
             done
             for net in 1:{client}:veth0:rc 2:{server}:veth0:rs; do
               IFS=: read -r n host device side <<EOF
$net
EOF
               ip -n $host addr add 10.202.$n.1/24 dev $device
               ip -n $host addr add fd00:202:$n::1/64 dev $device nodad
               ip -n {router} addr add 10.202.$n.254/24 dev $side
               ip -n {router} addr add fd00:202:$n::fe/64 dev $side nodad
               ip -n $host route add default via 10.202.$n.254
               ip -n $host -6 route add default via fd00:202:$n::fe
             done
             ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
             tc -n {router} qdisc add dev rs root tbf rate 10mbit burst 3000 limit 60000"
        ));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/host/delay.py");
        let mut delay = Command::new("ip");
        delay.args(["netns", "exec", &path, "python3", script, "p0", "p1", "0.01"]);
        let pins = format!("/sys/fs/bpf/{}-r", net.name);
        let street = Self { _path: Running::that_speaks(&mut delay), router, path, pins, net };
        street.router("attach rs", "--law rcp --rate 10Mbps");
        let cgroup = street.net.cgroup.display().to_string();
        for end in [End::Client, End::Server] {
            let words = format!("enable --law rcp --cgroup {cgroup} --udp 5004,6000-6010");
            assert_eq!(street.net.host(end, &words), (0, String::new()));
        }
        Some(street)
    }

    fn router(&self, what: &str, options: &str) {
        let program = env!("CARGO_BIN_EXE_flowstamp-linux");
        sh(&format!("{program} router {what} --netns {} --pins {} {options}", self.router, self.pins));
    }

    /// The example's receiver, which ends after this many streams.
    fn receiver(&self, streams: u32) -> Running {
        let mut receiver = self.net.command(End::Server, true, "timeout");
        receiver.args(["40", "python3", STREAMING, "receive", "--streams", &streams.to_string()]);
        let receiver = receiver.stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        Running(receiver)
    }

    /// The output of the example's sender.
    fn send(&self, seconds: u32) -> String {
        let mut sender = self.net.command(End::Client, true, "python3");
        let words = ["send", "10.202.2.1", "--seconds", &seconds.to_string()];
        let output = sender.arg(STREAMING).args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        println!("{said}");
        said
    }

    /// Packets that the bottleneck has dropped.
    fn drops(&self) -> u64 {
        let shown = sh(&format!("tc -n {} -s -j qdisc show dev rs root", self.router));
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        shown[0]["drops"].as_u64().unwrap()
    }
}

impl Drop for Street {
    fn drop(&mut self) {
        self.router("detach rs", "");
        for namespace in [&self.router, &self.path] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
        }
    }
}

/// R in a second, Mb/s, as the example's sender says it.
fn rate_at(said: &str, second: u32) -> f64 {
    let line = said.lines().find(|line| line.starts_with(&format!("{second} s: R "))).expect("a line");
    line.split(' ').nth(3).unwrap().parse().unwrap_or(f64::NAN)
}

/// Lines of the receiver, each without a loss.
fn nothing_is_lost(receiver: &mut Running, streams: usize) {
    use std::io::Read;
    let mut said = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    println!("{said}");
    assert_eq!(said.lines().filter(|line| line.contains(" sent, 0 lost, ")).count(), streams);
}

#[test]
fn two_streams_share_a_bottleneck_and_nothing_is_lost() {
    let Some(street) = Street::new() else { return };
    let mut receiver = street.receiver(2);
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| street.send(7));
        std::thread::sleep(Duration::from_millis(2500));
        let second = scope.spawn(|| street.send(7));
        std::thread::sleep(Duration::from_secs(3));
        let status = street.net.status();
        println!("{}", status["udp"]);
        assert_eq!(status["udp"]["ports"], "5004,6000-6010");
        assert_eq!(status["udp"]["counters"]["without_header"], 0);
        let flows = status["udp"]["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 2);
        for flow in flows {
            assert_eq!((&flow["obeys"], &flow["remote"]), (&true.into(), &"10.202.2.1:5004".into()));
            between(2.5e6, flow["rate_bps"].as_f64().unwrap(), 7e6);
            between(0.015, flow["rtt_s"].as_f64().unwrap(), 0.1);
        }
        (first.join().unwrap(), second.join().unwrap())
    });
    nothing_is_lost(&mut receiver, 2);
    assert_eq!(street.drops(), 0);
    // Alone, then together, then alone.
    between(8.0, rate_at(&first, 1), 9.6);
    between(3.0, rate_at(&first, 6), 7.0);
    between(3.0, rate_at(&second, 4), 7.0);
    between(8.0, rate_at(&second, 7), 9.6);
    assert_eq!(street.net.host(End::Client, "disable"), (0, String::new()));
    let qdisc = || sh(&format!("tc -n {} qdisc show dev veth0 root", street.net.namespace(End::Server)));
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !qdisc().contains("htb")
    });
    assert!(gone, "{}", qdisc());
}

#[test]
fn a_stream_shares_with_a_tcp_of_rcp() {
    let Some(street) = Street::new() else { return };
    let mut receiver = street.receiver(1);
    let (said, tcp) = std::thread::scope(|scope| {
        let stream = scope.spawn(|| street.send(8));
        std::thread::sleep(Duration::from_secs(1));
        let words = format!("10.202.2.1 -t 6 -O 2 -C {}", street.net.congestion_control("rcp"));
        let tcp = street.net.iperf3(true, &words);
        (stream.join().unwrap(), tcp)
    });
    println!("{}", street.net.status()["counters"]);
    nothing_is_lost(&mut receiver, 1);
    between(3e6, tcp, 6.5e6);
    between(3.0, rate_at(&said, 6), 7.0);
}

/// The application begins with a few datagrams, because the kernel knows no rate before the first answer.
#[test]
fn an_application_that_does_not_read_the_rate_is_paced() {
    const SENDER: &str = "\
import socket, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.connect(('fd00:202:2::1', 6004))
for _ in range(3): s.send(bytes(1200)); time.sleep(0.2)
sent, end = 3, time.monotonic() + 3
while time.monotonic() < end: s.send(bytes(1200)); sent += 1
print(sent)
";
    const RECEIVER: &str = "\
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(('::', 6004))
s.settimeout(5)
got = 0
print('ready', flush=True)
try:
    while s.recv(2000): got += 1
except TimeoutError:
    print(got)
";
    use std::io::Read;
    let Some(street) = Street::new() else { return };
    let mut receiver = street.net.command(End::Server, true, "python3");
    let mut receiver = Running::that_speaks(receiver.args(["-c", RECEIVER]));
    let mut sender = street.net.command(End::Client, true, "python3");
    let sent = String::from_utf8(sender.args(["-c", SENDER]).output().unwrap().stdout).unwrap();
    let mut got = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut got).unwrap();
    println!("sent {} got {} {}", sent.trim(), got.trim(), street.net.status()["udp"]);
    assert_eq!(got.trim(), sent.trim());
    assert_eq!(street.drops(), 0);
    // 9.5 Mb/s of frames with 1274 bytes, for 3 s, and a socket's buffer.
    between(1800.0, sent.trim().parse().unwrap(), 3100.0);
}

#[test]
fn a_peer_without_flowstamp_gets_plain_datagrams() {
    let Some(net) = Net::new() else { return };
    let cgroup = net.cgroup.display();
    assert_eq!(
        net.host(End::Client, &format!("enable --law rcp --cgroup {cgroup} --udp 5004")),
        (0, String::new())
    );
    // The programs of the server's interface are those of another name.
    const RECEIVER: &str = "\
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 5004))
s.settimeout(10)
print('ready', flush=True)
print(sum(len(s.recv(2000)) for _ in range(100)))
";
    const SENDER: &str = "\
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('10.201.0.2', 5004))
for _ in range(100): s.send(bytes(500)); time.sleep(0.01)
";
    use std::io::Read;
    let mut receiver = net.command(End::Server, false, "python3");
    let mut receiver = Running::that_speaks(receiver.args(["-c", RECEIVER]));
    let mut sender = net.command(End::Client, true, "python3");
    assert!(sender.args(["-c", SENDER]).status().unwrap().success());
    let mut got = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut got).unwrap();
    assert_eq!(got.trim(), "50000");
    let udp = &net.status()["udp"];
    println!("{udp}");
    assert_eq!((&udp["flows"][0]["obeys"], &udp["counters"]["answered"]), (&false.into(), &0.into()));
}

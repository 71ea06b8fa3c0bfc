//! Tests unusual peers and applications: flows obey or switch to the kernel's TCP, and never stall.

use super::capture::Capture;
use super::net::{End, LAWS, Leg, Net};
use super::skip::skip;
use super::{R, between};
use std::process::{Command, Stdio};
use std::time::Duration;

const CHANGE: u32 = 20_000;

/// Payload's share of R, and what XCP's flows are held to by `--max-rate`.
fn enable_within_20_mbps(net: &Net, law: &str) {
    for end in [End::Client, End::Server] {
        let cgroup = net.cgroup.display();
        let enabled = net.host(end, &format!("enable --law {law} --cgroup {cgroup} --max-rate 20Mbps"));
        assert_eq!(enabled, (0, String::new()));
    }
}

/// 20 Mb/s with headers, payload's share of which is 0.946: what the kernel is told, and what comes of it.
#[track_caller]
fn obeys(leg: &Leg) {
    between(18.8e6, leg.pacing, 19e6);
    between(15e6, leg.rate, 20.5e6);
}

#[track_caller]
fn nobody_left(net: &Net) {
    let counters = net.status()["counters"].clone();
    for (name, count) in counters.as_object().unwrap() {
        assert!(!name.starts_with("left_") || count == 0, "{counters}");
    }
}

#[test]
#[ignore = "long"]
fn syn_cookies() {
    for law in LAWS {
        let Some(net) = Net::new() else { return };
        net.stamp(2 * R, CHANGE, 0);
        net.sysctl(End::Server, "ipv4.tcp_syncookies", 2);
        enable_within_20_mbps(&net, law);
        let ours = net.congestion_control(law);
        for direction in ["", "-R"] {
            let rate = net.iperf3(true, &format!("10.201.0.2 -t 2 {direction} -C {ours}"));
            println!("{law} {direction}: {rate} {}", net.status()["counters"]);
            between(15e6, rate, 20.5e6);
        }
        nobody_left(&net);
        // The kernel's count of cookies that have come back: every connection's.
        let counts = net.command(End::Server, false, "cat").arg("/proc/net/netstat").output().unwrap();
        let counts = String::from_utf8(counts.stdout).unwrap();
        let mut lines = counts.lines().filter(|line| line.starts_with("TcpExt:")).map(str::split_whitespace);
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let came = names.zip(values).find(|(name, _)| *name == "SyncookiesRecv").unwrap().1;
        assert_eq!(came, "4");
    }
}

#[test]
#[ignore = "long"]
fn timestamps_off_at_one_end() {
    for law in LAWS {
        let Some(net) = Net::new() else { return };
        net.stamp(2 * R, CHANGE, 0);
        net.sysctl(End::Server, "ipv4.tcp_timestamps", 0);
        enable_within_20_mbps(&net, law);
        let ours = net.congestion_control(law);
        for direction in ["", "-R"] {
            let rate = net.iperf3(true, &format!("10.201.0.2 -t 2 {direction} -C {ours}"));
            println!("{law} {direction}: {rate} {}", net.status()["counters"]);
            between(15e6, rate, 20.5e6);
        }
        nobody_left(&net);
    }
}

/// One that left for the SYN-ACK would do so each time.
#[test]
#[ignore = "long"]
fn a_synack_that_is_sent_again() {
    for law in LAWS {
        for last in [false, false, true] {
            let Some(net) = Net::new() else { return };
            net.stamp(2 * R, CHANGE, 0);
            enable_within_20_mbps(&net, law);
            let ours = net.congestion_control(law);
            net.lose_synacks(Duration::from_millis(1300));
            // The first RTT is the second that the SYN-ACK took, in which windows hardly grow.
            let legs = net.legs(&[&format!("{ours}:4")]);
            println!("{law}: {legs:?} {}", net.status()["counters"]);
            if !last && net.disturbed() {
                continue;
            }
            assert_eq!(legs[0].name, ours);
            obeys(&legs[0]);
            nobody_left(&net);
            break;
        }
    }
}

/// A router does not raise feedback that another has lowered, in either order.
#[test]
#[ignore = "long"]
fn two_routers_in_a_row() {
    for (first, second) in [(2 * R, R / 2), (R / 2, 2 * R)] {
        let Some(net) = Net::new() else { return };
        net.no_offload();
        net.stamp_twice(first, second);
        net.enable("rcp");
        let capture = Capture::start(&net.namespace(End::Server));
        let rate = net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control("rcp")));
        let packets = capture.finish();
        // 25 Mb/s with headers; payload is 0.946 of it.
        between(21e6, rate, 24.5e6);
        nobody_left(&net);
        // Captured before the second router, which the echoes have seen.
        let stamps = |from: usize, ours: u16| -> Vec<u32> {
            let of = packets
                .iter()
                .filter(|p| if ours == 0 { p.source_port == 5201 } else { p.destination_port == 5201 });
            let stamps = of.filter_map(|p| p.stamp()).filter(|s| s.len() >= from + 4);
            stamps.map(|s| u32::from_be_bytes(s[from..from + 4].try_into().unwrap())).collect()
        };
        let (came, echoed) = (stamps(8, 1), stamps(4, 0));
        println!("{} stamps, {} echoes", came.len(), echoed.len());
        assert!(came.len() > 1000 && came.iter().all(|stamp| *stamp == first));
        assert!(echoed.len() > 500 && echoed.iter().all(|echo| *echo == R / 2));
    }
}

/// A lab of 20 Mb/s and 40 ms, and before its router another one with a shaper of its own: the run's summary, none if the
/// machine was too busy.
fn lab_behind_a_router(net: &Net, law: &str, mbps: u32) -> Option<serde_json::Value> {
    let program = env!("CARGO_BIN_EXE_flowstamp-linux");
    let id = format!("t{}", net.name.rsplit('-').next().unwrap());
    let lab = format!(
        "duration = \"6s\"\nwarmup = \"3s\"\n[path]\nrate = \"20Mbps\"\nrtt = \"40ms\"\nbuffer = \"2BDP\"\n[router]\n\
         law = \"{law}\"\nwhere = \"bpf\"\n{}[host]\nlaw = \"{law}\"\n[[flows]]\nname = \"long\"\napp = \"iperf3\"\ncount = 2\n",
        if law == "rcp" { "eta = 0.95\n" } else { "" }
    );
    let file = net.file("lab.toml");
    std::fs::write(&file, lab).unwrap();
    let mut run = Command::new(program);
    let run = run.args(["lab", "run", "--json", "--id", &id]).arg(file);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The lab's own things are there before its flows start, but not at once.
    let script = format!(
        "until ip -n fs-{id}-left -o link show l0 up 2>&1 | grep -q LOWER_UP; do sleep 0.02; done
         tc -n fs-{id}-left qdisc replace dev l0 root tbf rate {mbps}mbit burst 15k limit 200k &&
         {program} router attach l0 --netns fs-{id}-left --law {law} --rate {mbps}Mbps --pins /sys/fs/bpf/{name}-r",
        name = net.name
    );
    let attached = Command::new("timeout").args(["5", "sh", "-c", &script]).status().unwrap().success();
    let output = run.wait_with_output().unwrap();
    std::fs::remove_dir_all(format!("/sys/fs/bpf/{}-r", net.name)).ok();
    assert!(attached);
    match output.status.code() {
        Some(3) => None,
        code => {
            assert_eq!(code, Some(0));
            Some(serde_json::from_slice(&output.stdout).unwrap())
        }
    }
}

/// Routers' laws, both with queues of their own: the slower one sets the flows' rate, whichever comes first.
#[test]
#[ignore = "long"]
fn the_slower_of_two_routers_is_the_bottleneck() {
    for (law, mbps) in [("rcp", 40), ("rcp", 10), ("xcp", 40), ("xcp", 10)] {
        let Some(net) = Net::new() else { return };
        let Some(summary) = (0..3).find_map(|_| lab_behind_a_router(&net, law, mbps)) else {
            skip("the machine is too busy");
            return;
        };
        let group = &summary["groups"]["long"];
        let [rate, jain] = ["goodput_bps", "jain_index"].map(|key| group[key].as_f64().unwrap());
        println!("{law}, {mbps} Mb/s before 20: {:.2} Mb/s, Jain {jain:.4}", rate / 1e6);
        // Payload is 0.946 of what routers count, and 0.95 of that is aimed at.
        let most = 0.946e6 * f64::from(mbps.min(20));
        between(0.85 * most, rate, most);
        between(0.98, jain, 1.0);
    }
}

#[test]
#[ignore = "long"]
fn an_application_that_changes_its_mind() {
    for law in LAWS {
        for last in [false, false, true] {
            let Some(net) = Net::new() else { return };
            net.stamp(2 * R, CHANGE, 0);
            enable_within_20_mbps(&net, law);
            let ours = net.congestion_control(law);
            let other = net.congestion_control(if law == "rcp" { "xcp" } else { "rcp" });
            let [there, away, back, never] =
                [format!("{ours}:2"), "cubic:1".to_owned(), format!("{ours}:2"), format!("{other}:1")];
            let legs = net.legs(&[&there, &away, &back, &never]);
            println!("{law}: {legs:?} {}", net.status()["counters"]);
            if !last && net.disturbed() {
                continue;
            }
            let names: Vec<_> = legs.iter().map(|leg| leg.name.as_str()).collect();
            assert_eq!(names, [&ours, "cubic", &ours, "cubic"]);
            obeys(&legs[0]);
            between(50e6, legs[1].rate, f64::INFINITY);
            obeys(&legs[2]);
            between(50e6, legs[3].rate, f64::INFINITY);
            break;
        }
    }
}

/// A flow that leaves keeps the pace that its application has set.
#[test]
fn an_application_with_a_limit_of_its_own() {
    const SOURCE: &str = "\
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, 47, 1_000_000) # SO_MAX_PACING_RATE
s.setsockopt(6, 13, sys.argv[1].encode())
s.connect(('10.201.0.2', 5300))
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
s.send(bytes(65536))
begun, sent = time.monotonic(), 0
while time.monotonic() < begun + 2: sent += s.send(bytes(8192))
print(s.getsockopt(6, 13, 16).split(b'\\0')[0].decode(), 8 * sent / (time.monotonic() - begun))
";
    let Some(net) = Net::new() else { return };
    net.enable("rcp");
    let said = net.feed_a_sink(SOURCE, &[&net.congestion_control("rcp")]);
    println!("{said} {}", net.status()["counters"]);
    let (name, rate) = said.trim().split_once(' ').unwrap();
    assert_eq!((name, net.counter("left_no_router")), ("cubic", 1));
    between(6e6, rate.parse().unwrap(), 9e6);
}

/// XCP's window is as stale as the kernel's: the first ack does not bring it back.
#[test]
#[ignore = "long"]
fn a_flow_that_has_been_idle() {
    const SOURCE: &str = "\
import socket, struct, sys, time
s = socket.socket()
s.setsockopt(6, 13, sys.argv[1].encode())
s.connect(('10.201.0.2', 5300))
s.setsockopt(6, socket.TCP_NODELAY, 1)
def info(at): return struct.unpack_from('I', s.getsockopt(6, socket.TCP_INFO, 104), at)[0]
def window(): return info(80)
# In bursts: what always sends queues, and may leave for that.
for _ in range(100):
    s.sendall(bytes(200_000))
    time.sleep(0.01)
before = window()
time.sleep(0.7)
srtt_us = info(68)
for _ in range(3):
    s.send(b'x')
    time.sleep(0.02)
    srtt_us = max(srtt_us, info(68))
print(before, window(), srtt_us, s.getsockopt(6, 13, 16).split(b'\\0')[0].decode())
";
    let Some(net) = Net::new() else { return };
    const GRANT: u32 = 2_000_000;
    net.stamp(R, GRANT, 0);
    net.enable("xcp");
    let ours = net.congestion_control("xcp");
    let said = net.feed_a_sink(SOURCE, &[&ours]);
    println!("{said}");
    let said: Vec<_> = said.split_whitespace().collect();
    let [before, after, srtt_us] = [said[0], said[1], said[2]].map(|number| number.parse::<f64>().unwrap());
    assert_eq!(said[3], ours);
    // Each of the three acks grants so many bytes/s more.
    let granted = 3.0 * f64::from(GRANT) * srtt_us / 1e6 / 1448.0;
    assert!(after < 11.0 + granted && before > 4.0 * after, "{before} {after} {granted}");
}

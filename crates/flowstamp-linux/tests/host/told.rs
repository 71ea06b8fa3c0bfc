//! Tests that flows without feedback leave their law.

use super::capture::Capture;
use super::net::{End, LAWS, Net};
use super::{R, SYN, between};
use std::time::Duration;

/// It is XCP's window that is to limit, not iperf3, whom a busy machine keeps waiting: what an application does not use tells
/// enough. A window of ten packets lasts 6 ms here, and 50 us of a CPU without it.
fn slow(net: &Net) {
    net.tbf(End::Client, "20mbit", "300k");
}

/// Every packet gets a change of zero: echoes come, and say nothing.
#[test]
fn a_router_that_tells_nothing() {
    let Some(net) = Net::new() else { return };
    net.stamp(R, 0, 0);
    slow(&net);
    for end in [End::Client, End::Server] {
        let words = format!("enable --law xcp --any-rtt --cgroup {}", net.cgroup.display());
        assert_eq!(net.host(end, &words), (0, String::new()));
    }
    let ours = net.congestion_control("xcp");
    let rate = net.iperf3(true, &format!("10.201.0.2 -t 3 --cport 40000 -C {ours}"));
    println!("{rate} {}", net.status()["counters"]);
    assert_eq!(net.causes(40000), ["untold"]);
    assert_eq!(net.counter("left_untold"), 1);
}

/// One that has all that it asks for is told nothing either, and stays: XCP's wish of a flow at its own limit is zero.
#[test]
fn a_flow_that_wants_no_more() {
    let Some(net) = Net::new() else { return };
    net.stamp(R, 100_000, 0);
    for end in [End::Client, End::Server] {
        let words = format!("enable --law xcp --max-rate 20Mbps --any-rtt --cgroup {}", net.cgroup.display());
        assert_eq!(net.host(end, &words), (0, String::new()));
    }
    let rate = net.iperf3(true, &format!("10.201.0.2 -t 3 -C {}", net.congestion_control("xcp")));
    println!("{rate} {}", net.status()["counters"]);
    between(15e6, rate, 20.5e6);
    assert_eq!(net.counter("left_untold"), 0);
}

/// The routers of both directions go while data flow.
#[test]
#[ignore = "long"]
fn a_router_that_goes_away() {
    for law in LAWS {
        let Some(net) = Net::new() else { return };
        net.stamp(2 * R, 200, 0);
        if law == "xcp" {
            slow(&net);
        }
        for end in [End::Client, End::Server] {
            let words = format!("enable --law {law} --any-rtt --cgroup {}", net.cgroup.display());
            assert_eq!(net.host(end, &words), (0, String::new()));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(1700));
                net.unfilter(End::Client, "egress");
                net.unfilter(End::Server, "egress");
            });
            let ours = net.congestion_control(law);
            net.iperf3(true, &format!("10.201.0.2 -t 3 --cport 40000 -C {ours}"));
        });
        println!("{law} {}", net.status()["counters"]);
        assert_eq!(net.causes(40000), [if law == "xcp" { "untold" } else { "silent" }], "{law}");
    }
}

/// `init` comes once, at a time when nobody can know yet whether a router answers.
#[test]
#[ignore = "long"]
fn a_congestion_control_chosen_while_the_syn_is_under_way() {
    const SOURCE: &str = "\
import errno, select, socket, struct, sys, time
s = socket.socket()
s.setblocking(False)
assert s.connect_ex(('10.201.0.2', 5300)) == errno.EINPROGRESS
s.setsockopt(6, 13, sys.argv[1].encode())
select.select([], [s], [], 10)
s.settimeout(10)
begun = time.monotonic()
# The first RTT is the second that the SYN-ACK took, in which windows hardly grow.
while time.monotonic() < begun + 4: s.send(bytes(65536))
info = s.getsockopt(6, socket.TCP_INFO, 128)
print(s.getsockopt(6, 13, 16).split(b'\\0')[0].decode(), 8 * struct.unpack_from('Q', info, 104)[0])
";
    for law in LAWS {
        let Some(net) = Net::new() else { return };
        net.stamp(2 * R, 100_000, 0);
        for end in [End::Client, End::Server] {
            let words =
                format!("enable --law {law} --max-rate 20Mbps --any-rtt --cgroup {}", net.cgroup.display());
            assert_eq!(net.host(end, &words), (0, String::new()));
        }
        // For the sink to listen, and one SYN-ACK more.
        net.lose_synacks(Duration::from_millis(1500));
        let ours = net.congestion_control(law);
        let said = net.feed_a_sink(SOURCE, &[&ours]);
        println!("{said} {}", net.status()["counters"]);
        let (name, pacing) = said.trim().split_once(' ').unwrap();
        assert_eq!((name, net.counter("left_no_router")), (ours.as_str(), 0), "{law}");
        // Share of 20 Mb/s with headers; XCP's pace is up to 1.2 windows a round trip.
        between(15e6, pacing.parse().unwrap(), 19e6);
    }
}

/// A SYN-ACK that comes again makes a second of the handshake's RTT. A router is not to be told so of data: it would decide once a second.
#[test]
#[ignore = "long"]
fn the_rtt_named_is_not_that_of_a_handshake_sent_again() {
    const SOURCE: &str = "\
import socket, sys, time
s = socket.socket()
s.setsockopt(6, 13, sys.argv[1].encode())
s.connect(('10.201.0.2', 5300))
begun = time.monotonic()
while time.monotonic() < begun + 1: s.send(bytes(65536))
";
    for law in ["rcp", "xcp"] {
        assert!((0..3).any(|_| named_rtt_is_short(law, SOURCE)), "{law}: no SYN-ACK was lost in time");
    }
}

/// False if the program came so late that no SYN-ACK was lost.
fn named_rtt_is_short(law: &str, source: &str) -> bool {
    let Some(net) = Net::new() else { return true };
    net.no_offload();
    net.stamp(R, 20_000, 0);
    net.enable(law);
    // For the sink to listen, and one SYN-ACK more.
    net.lose_synacks(Duration::from_millis(1500));
    let capture = Capture::start(&net.namespace(End::Server));
    net.feed_a_sink(source, &[&net.congestion_control(law)]);
    let packets = capture.finish();
    if packets.iter().filter(|p| p.source_port == 5300 && p.flags & SYN != 0).count() < 2 {
        return false;
    }
    let data = packets.iter().filter(|p| p.destination_port == 5300 && p.payload > 0);
    let named = data.filter_map(|p| p.stamp()).filter(|s| s.len() == 16);
    let named: Vec<_> = named.map(|s| u16::from_be_bytes([s[12], s[13]])).collect();
    let us = |bits: &u16| if *bits == 0xffff { 0 } else { u64::from(bits & 0xfff) << (bits >> 12) };
    let longest = named.iter().map(us).max().unwrap();
    println!("{law}: {} packets, {longest} us {}", named.len(), net.status()["counters"]);
    assert!(named.len() > 100, "{}", named.len());
    // The kernel sends a SYN again after a second (RFC 6298), and these two namespaces have some ms at most between them.
    assert!(longest < 500_000, "{longest}");
    true
}

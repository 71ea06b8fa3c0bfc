//! Tests `router attach --scone` in its own network namespaces: advice reaches a receiver, status and metrics report it, and
//! nothing stays after `detach`.

mod routers;

use flowstamp_wire::scone::{Packet, Signal};
use routers::{Net, eventually, serve, sh};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A socket in a namespace.
fn socket_in(namespace: &str, address: &str) -> UdpSocket {
    let netns = std::fs::File::open(Path::new("/run/netns").join(namespace)).expect("it was made");
    let address = address.to_owned();
    // Runs on its own thread, so that the test stays in its namespace.
    let open = move || {
        // SAFETY: a descriptor that is open.
        assert_eq!(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
        UdpSocket::bind(address).expect("a socket")
    };
    let socket = std::thread::spawn(open).join().expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    socket
}

/// Sends a SCONE packet without advice from a new port, and returns the signal that arrives.
fn advice(net: &Net, receiver: &UdpSocket) -> Signal {
    let sender = socket_in(&net.name, "10.79.0.1:0");
    let packet = Packet { signal: Signal::UNKNOWN, dcid: &[1; 8], scid: &[] };
    let mut bytes = [0x41; 100];
    packet.emit(&mut bytes).expect("room");
    sender.send_to(&bytes, "10.79.0.2:4433").expect("sent");
    let mut arrived = [0; 200];
    let len = receiver.recv(&mut arrived).expect("a datagram, whose checksum is right");
    assert_eq!(len, bytes.len());
    let found = Packet::parse(&arrived[..len]).expect("a SCONE packet");
    assert_eq!(Packet { signal: Signal::UNKNOWN, ..found }, packet);
    found.signal
}

fn at_most(bits_per_sec: u64) -> Signal {
    Signal::at_most(bits_per_sec).expect("a rate")
}

#[test]
fn advice_alone_reaches_the_receiver_and_leaves_nothing() {
    let Some(net) = Net::new("sc") else { return };
    let receiver = socket_in(&format!("{}-peer", net.name), "10.79.0.2:4433");
    let on = format!("attach out.1 --netns {} --scone", net.name);
    net.refused(&on, "there is no advice to give; add --scone-rate, --scone-map, or --law rcp");
    assert!(!net.pins.join("router").exists());
    net.ok(&format!("{on} --scone-rate 5Mbps"));
    assert_eq!(net.programs(), ["fs_scone"]);
    assert_eq!(advice(&net, &receiver), at_most(5_000_000));
    let status = net.status();
    assert_eq!(status[0]["interface"], format!("{}:out.1", net.name));
    assert_eq!(status[0]["law"], serde_json::Value::Null);
    let scone = &status[0]["scone"];
    assert_eq!((&scone["attached"], &scone["enforced"]), (&true.into(), &false.into()));
    assert_eq!(scone["advice_bps"], 4_466_835);
    assert_eq!(
        (&scone["packets"], &scone["lowered_packets"], &scone["flows"]),
        (&1.into(), &1.into(), &1.into())
    );
    let line = net.ok("status");
    assert!(line.contains("scone attached, advice 4.467 Mb/s; packets: 1, 1 lowered"), "{line}");
    // A map takes its place without a gap; the lowest advice counts.
    let map = std::env::temp_dir().join(format!("{}.map", net.name));
    std::fs::write(&map, "10.0.0.0/8 20Mbps\n10.79.0.0/24 2Mbps # this one\n").expect("written");
    net.ok(&format!("{on} --scone-rate 5Mbps --scone-map {}", map.display()));
    assert_eq!(net.programs(), ["fs_scone"]);
    assert_eq!(advice(&net, &receiver), at_most(2_000_000));
    assert_eq!(net.status()[0]["scone"]["prefixes"], 2);
    std::fs::write(&map, "10.0.0.0/8 20Mbps\n10.79.0.0/24 2Mbpz\n").expect("written");
    net.refused(&format!("{on} --scone-map {}", map.display()), ".map:2: ");
    std::fs::remove_file(&map).expect("it is there");
    net.refused(&format!("{on} --scone-map {}", map.display()), "No such file");
    assert_eq!(advice(&net, &receiver), at_most(2_000_000), "a refusal changes nothing");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.left(), [""; 0]);
    assert!(!net.pins.join("router").exists());
    assert_eq!(advice(&net, &receiver), Signal::UNKNOWN);
}

/// Without packets RCP's rate is its initial one, here half of the link's, so the advice is that.
#[test]
fn advice_comes_from_rcp() {
    let Some(net) = Net::new("sd") else { return };
    let receiver = socket_in(&format!("{}-peer", net.name), "10.79.0.2:4433");
    let on = format!("attach out.1 --netns {} --law", net.name);
    net.refused(&format!("{on} xcp --rate 20Mbps --scone"), "xcp has no rate for all flows");
    let rcp =
        format!("{on} rcp --rate 20Mbps --set initial_rate=0.5 --set initial_rtt=19s --set max_interval=19s");
    net.ok(&format!("{rcp} --scone --scone-enforce"));
    assert_eq!(net.programs(), ["fs_scone", "fs_router"]);
    assert!(eventually(|| net.status()[0]["scone"]["law_mean_bps"].as_u64() == Some(10_000_000)));
    assert_eq!(advice(&net, &receiver), at_most(10_000_000));
    let status = net.status();
    assert_eq!((&status[0]["law"], &status[0]["scone"]["enforced"]), (&"rcp".into(), &true.into()));
    assert_eq!(status.as_array().map(Vec::len), Some(1));
    // A plain policy that is lower, beside the same law, which goes on.
    net.ok(&format!("{rcp} --scone --scone-rate 1Mbps"));
    assert_eq!(net.programs(), ["fs_scone", "fs_router"]);
    assert_eq!(advice(&net, &receiver), at_most(1_000_000));
    // Before the law knows an RTT, its rate says nothing.
    net.ok(&format!("{on} rcp --rate 20Mbps --scone"));
    assert_eq!(advice(&net, &receiver), Signal::UNKNOWN);
    assert_eq!(net.status()[0]["scone"]["unadvised_packets"], 1);
    let line = net.ok("status");
    assert!(
        line.contains("advice none from the law, which knows no RTT yet (--set initial_rtt=50ms)"),
        "{line}"
    );
    // Another router takes the advice of the old one with it, but a policy of its own stays.
    let said = net.ok(&format!("{on} xcp --rate 20Mbps"));
    assert_eq!(said, "the advice of out.1, which followed its old law, has ended: add --scone\n");
    assert_eq!(net.programs(), ["fs_router"]);
    net.ok(&format!("{on} xcp --rate 20Mbps --scone --scone-rate 1Mbps"));
    net.ok(&format!("{on} rcp --rate 20Mbps"));
    assert_eq!(net.programs(), ["fs_scone", "fs_router"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"));
    let (_server, address) = serve(&net, &mut command, "status");
    let mut page = String::new();
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("sent");
    stream.read_to_string(&mut page).expect("text");
    let label = format!("{{interface=\"{}:out.1\"}}", net.name);
    assert!(page.contains(&format!("flowstamp_scone_advice_bps{label} 1000000.0\n")), "{page}");
    assert!(page.contains(&format!("flowstamp_scone_packets_total{label} 0\n")), "{page}");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.left(), [""; 0]);
}

/// The kernel's own frames: IPv6, and a frame of segmentation offload with a SCONE packet in each datagram. The receiver's kernel
/// drops datagrams with a wrong checksum.
#[test]
fn datagrams_of_segmentation_offload_and_ipv6() {
    let Some(net) = Net::new("sf") else { return };
    let n = &net.name;
    assert!(sh(&format!(
        "ip -n {n} addr add fd79::1/64 dev out.1 nodad && ip -n {n}-peer addr add fd79::2/64 dev in nodad"
    )));
    net.ok(&format!("attach out.1 --netns {n} --scone --scone-rate 5Mbps"));
    let packet = Packet { signal: Signal::UNKNOWN, dcid: &[1; 8], scid: &[] };
    let mut one = [0x41; 100];
    packet.emit(&mut one).expect("room");
    let other = [0x42; 100];
    for (from, to) in [("10.79.0.1:0", "10.79.0.2:4433"), ("[fd79::1]:0", "[fd79::2]:4433")] {
        let receiver = socket_in(&format!("{n}-peer"), to);
        let sender = socket_in(n, from);
        let bytes = 100_i32;
        // SAFETY: a descriptor that is open, and a value of the length given.
        let set = unsafe {
            let value = (&raw const bytes).cast();
            libc::setsockopt(sender.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
        };
        assert_eq!(set, 0);
        sender.send_to(&[one, other, one, one].concat(), to).expect("sent");
        let signals: Vec<_> = (0..4)
            .map(|_| {
                let mut arrived = [0; 1000];
                let len = receiver.recv(&mut arrived).expect("a datagram, whose checksum is right");
                assert_eq!(len, 100);
                Packet::parse(&arrived[..len]).ok().map(|packet| packet.signal)
            })
            .collect();
        let low = Some(at_most(5_000_000));
        assert_eq!(signals, [low, None, low, low], "to {to}");
    }
    let scone = &net.status()[0]["scone"];
    assert_eq!((&scone["lowered_packets"], &scone["flows"]), (&6.into(), &2.into()), "{scone}");
}

/// Greedy flows drive RCP's rate to nothing. Here its initial rate is 16 kb/s, and stays small without packets.
#[test]
fn rcps_advice_has_a_least() {
    let Some(net) = Net::new("sl") else { return };
    let receiver = socket_in(&format!("{}-peer", net.name), "10.79.0.2:4433");
    let on = format!("attach out.1 --netns {}", net.name);
    let rcp = format!(
        "{on} --law rcp --rate 20Mbps --set initial_rate=0.001 --set initial_rtt=19s --set max_interval=19s --scone"
    );
    let is_told = || net.status()[0]["scone"]["law_advice_bps"].as_u64().is_some();
    net.ok(&rcp);
    assert!(eventually(is_told));
    assert_eq!(advice(&net, &receiver), at_most(235_000));
    let scone = &net.status()[0]["scone"];
    assert_eq!((&scone["law_least_bps"], &scone["law_advice_bps"]), (&223_872.into(), &223_872.into()));
    let line = net.ok("status");
    assert!(
        line.contains("advice 0.224 Mb/s from the law (the least, because the law's mean is 0.0"),
        "{line}"
    );
    // The least is the law's: a policy may be lower.
    net.ok(&format!("{rcp} --scone-least 1Mbps --scone-rate 500kbps"));
    assert!(eventually(is_told));
    assert_eq!(net.status()[0]["scone"]["law_advice_bps"], 1_000_000);
    assert_eq!(advice(&net, &receiver), at_most(500_000));
    net.refused(
        &format!("{rcp} --scone-least 30Mbps"),
        "--scone-least: 30Mbps is more than --rate; use at most 20Mbps",
    );
    net.refused(&format!("{rcp} --scone-least 50kbps"), "use at least 100kbps");
    net.refused(
        &format!("{on} --scone --scone-rate 5Mbps --scone-least 1Mbps"),
        "there is no --law rcp; add it, or leave out --scone-least",
    );
    net.refused(&format!("{on} --scone-least 1Mbps"), "--scone");
}

#[test]
fn options_need_each_other() {
    let Some(net) = Net::new("se") else { return };
    let on = format!("attach out.1 --netns {}", net.name);
    net.refused(&on, "--law");
    net.refused(&format!("{on} --law rcp --rate 1Gbps --scone-rate 5Mbps"), "--scone");
    net.refused(&format!("{on} --scone --scone-rate 5Mbps --rate 1Gbps"), "--law");
    net.refused(&format!("{on} --scone --scone-rate 5Mbps --eta 0.9"), "--law");
    net.refused(&format!("{on} --scone --scone-rate 99kbps"), "use at least 100kbps");
    assert_eq!(net.pinned(), 0);
}

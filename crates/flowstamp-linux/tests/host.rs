//! Tests `flowstamp-linux host` on this kernel, between two namespaces. Needs root; prints the reason if
//! skipped.

#[path = "host/capture.rs"]
mod capture;
#[path = "host/net.rs"]
mod net;
#[path = "host/paths.rs"]
mod paths;
#[path = "../../flowstamp-wire/tests/skip/mod.rs"]
mod skip;
#[path = "host/soak.rs"]
mod soak;
#[path = "host/streams.rs"]
mod streams;
#[path = "host/told.rs"]
mod told;
#[path = "host/unusual.rs"]
mod unusual;
#[path = "host/vcp.rs"]
mod vcp;

use capture::Capture;
use net::{End, LAWS, Net, Running};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

const SYN: u8 = 2;
const FIN: u8 = 1;
const RST: u8 = 4;

/// 50 Mb/s, with headers; payload is 0.946 of it.
const R: u32 = 6250;

#[track_caller]
fn between(low: f64, value: f64, high: f64) {
    assert!((low..=high).contains(&value), "{value} is not in {low} to {high}");
}

#[test]
fn rcp_sends_at_the_rate_given_and_every_packet_carries_the_option() {
    let Some(net) = Net::new() else { return };
    net.no_offload();
    net.stamp(R, 0, 0);
    net.enable("rcp");
    let capture = Capture::start(&net.namespace(End::Server));
    let rate = net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control("rcp")));
    let packets = capture.finish();
    println!("{}", net.status());
    between(43e6, rate, 49e6);
    assert_eq!(net.counter("left_loss") + net.counter("left_rtt_doubled") + net.counter("left_silent"), 0);
    // The second connection is the one of the data: nearly all packets are its.
    let mut data: Vec<_> =
        packets.iter().filter(|p| p.destination_port == 5201).map(|p| p.source_port).collect();
    data.dedup();
    let port = data
        .into_iter()
        .max_by_key(|port| packets.iter().filter(|p| p.source_port == *port).count())
        .unwrap();
    let mut long = 0;
    for p in packets.iter().filter(|p| p.source_port == port || p.destination_port == port) {
        assert!(p.checksum_is_right);
        // iperf3 sends a cookie before it chooses the congestion control: no stamp, so nothing to echo yet either.
        let chosen = long > 2 || p.stamp().is_some_and(|s| s.len() == 16);
        if p.flags & RST != 0 || !chosen {
            continue;
        }
        if p.flags & SYN != 0 || (p.source_port == port && (p.payload > 0 || p.flags & FIN != 0)) {
            let stamp = p.stamp().expect("a SYN, or data, without the option");
            assert_eq!((stamp.len(), &stamp[2..4]), (16, &b"RC"[..]));
            assert_eq!(stamp[8..12], R.to_be_bytes());
            long += 1;
        } else {
            assert!(
                p.stamp().is_some_and(|s| s.len() == 8 || p.flags & FIN != 0),
                "after {long} with a stamp: {p:?}"
            );
        }
    }
    assert!(long > 5000, "{long}");
}

#[test]
fn a_host_has_its_own_limit() {
    let Some(net) = Net::new() else { return };
    net.stamp(2 * R, 20_000, 0);
    for law in LAWS {
        let cgroup = net.cgroup.display();
        for end in [End::Client, End::Server] {
            let enabled = net.host(end, &format!("enable --law {law} --cgroup {cgroup} --max-rate 20Mbps"));
            assert_eq!(enabled, (0, String::new()));
        }
        let rate = net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control(law)));
        between(15e6, rate, 20.5e6);
    }
}

#[test]
#[ignore = "long"]
fn a_router_one_way_is_enough_for_that_way() {
    for (law, stamped) in LAWS.into_iter().flat_map(|law| [(law, End::Client), (law, End::Server)]) {
        let Some(net) = Net::new() else { return };
        net.stamp_from(stamped, 2 * R, 20_000);
        let cgroup = net.cgroup.display();
        for end in [End::Client, End::Server] {
            let enabled = net.host(end, &format!("enable --law {law} --cgroup {cgroup} --max-rate 20Mbps"));
            assert_eq!(enabled, (0, String::new()));
        }
        let mut left = 0;
        let mut run = |direction, connections| {
            let options = format!("10.201.0.2 -t 2 {direction} -C {}", net.congestion_control(law));
            let rate = net.iperf3(true, &options);
            println!("{law} {direction}: {rate} {}", net.status()["counters"]);
            // Both ends of a connection have chosen the law, and one of them has no router.
            left += connections;
            assert_eq!(net.counter("left_no_router"), left, "{law} {direction}");
            assert_eq!(net.counter("left_no_peer") + net.counter("left_silent"), 0, "{law} {direction}");
            rate
        };
        let (with, without) = if stamped == End::Client { ("", "-R") } else { ("-R", "") };
        between(15e6, run(with, 1), 20.5e6);
        between(40e6, run(without, 1), f64::INFINITY);
        run("--bidir", 2);
    }
}

#[test]
#[ignore = "long"]
fn a_queue_of_acks_is_not_the_datas() {
    for law in LAWS {
        let Some(net) = Net::new() else { return };
        net.stamp_from(End::Client, 2 * R, 20_000);
        net.tbf(End::Server, "50mbit", "300k");
        let cgroup = net.cgroup.display();
        for end in [End::Client, End::Server] {
            let enabled = net.host(end, &format!("enable --law {law} --cgroup {cgroup} --max-rate 20Mbps"));
            assert_eq!(enabled, (0, String::new()));
        }
        // The server's data is CUBIC's and fills the queue, up to 48 ms.
        let rate = net.iperf3(true, &format!("10.201.0.2 -t 3 --bidir -C {}", net.congestion_control(law)));
        println!("{law}: {rate} {}", net.status()["counters"]);
        assert_eq!(net.counter("left_no_router"), 2);
        assert_eq!(net.counter("left_rtt_doubled") + net.counter("left_loss"), 0);
        between(10e6, rate, 20.5e6);
    }
}

#[test]
fn rcp_over_ipv6() {
    let Some(net) = Net::new() else { return };
    net.stamp(R, 0, 0);
    net.enable("rcp");
    between(43e6, net.iperf3(true, &format!("fd00:201::2 -t 2 -C {}", net.congestion_control("rcp"))), 49e6);
}

#[test]
fn without_a_peer_or_a_router_a_flow_is_the_kernels() {
    let Some(net) = Net::new() else { return };
    net.enable("rcp");
    let rcp = format!("10.201.0.2 -t 1 -C {}", net.congestion_control("rcp"));
    let plain = net.iperf3(false, "10.201.0.2 -t 1 -C cubic");
    let no_router = net.iperf3(true, &format!("{rcp} --cport 40001"));
    assert!(net.counter("left_no_router") > 0);
    let no_peer = net.iperf3(false, &format!("{rcp} --cport 40002"));
    assert!(net.counter("left_no_peer") > 0);
    assert_eq!(net.causes(40001), ["no_router"]);
    assert_eq!(net.causes(40002), ["no_peer"]);
    // Close to the line rate: but the machine is shared, and the option costs the fast path of reception.
    for rate in [no_router, no_peer] {
        assert!(rate > plain / 4.0, "{rate} where cubic has {plain}");
    }
}

#[test]
fn a_queue_elsewhere_switches_for_good() {
    let Some(net) = Net::new() else { return };
    net.stamp(2 * R, 20_000, 0);
    // XCP and VCP halve their window at a loss as TCP does, so that for them only a queue without a loss belongs to
    // other traffic.
    for (law, queue) in [("rcp", "60k"), ("xcp", "2m"), ("vcp", "2m")] {
        net.tbf(End::Client, "50mbit", queue);
        net.enable(law);
        let left = || net.counter("left_loss") + net.counter("left_rtt_doubled");
        let before = left();
        between(40e6, net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control(law))), 50e6);
        assert!(left() > before, "{law}");
    }
}

/// The same queue, where the RTT is not to count: of the law's own link that has become slower, for all that the host knows.
#[test]
#[ignore = "long"]
fn a_queue_elsewhere_switches_none_that_takes_any_rtt() {
    let Some(net) = Net::new() else { return };
    net.stamp(2 * R, 20_000, 0);
    net.tbf(End::Client, "50mbit", "2m");
    for end in [End::Client, End::Server] {
        let words = format!("enable --law xcp --any-rtt --cgroup {}", net.cgroup.display());
        assert_eq!(net.host(end, &words), (0, String::new()));
    }
    between(40e6, net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control("xcp"))), 50e6);
    assert_eq!(net.counter("left_rtt_doubled"), 0);
    // Enabled anew without it, it counts again.
    net.enable("xcp");
    net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control("xcp")));
    assert!(net.counter("left_rtt_doubled") > 0);
}

#[test]
fn a_loss_elsewhere_switches_for_good() {
    let Some(net) = Net::new() else { return };
    net.no_offload();
    net.stamp(R, 0, 200);
    net.enable("rcp");
    net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control("rcp")));
    assert_eq!(net.counter("left_loss") + net.counter("left_rtt_doubled"), 1);
}

#[test]
fn acks_full_of_sack_blocks_carry_the_echo() {
    let Some(net) = Net::new() else { return };
    net.no_offload();
    // Windows that grow by more than a packet an ack, and many flows: losses leave three holes at once now and then.
    net.stamp(R, 100_000_000, 8);
    net.enable("xcp");
    let capture = Capture::start(&net.namespace(End::Server));
    net.iperf3(true, &format!("10.201.0.2 -t 2 -P 16 -C {}", net.congestion_control("xcp")));
    let packets = capture.finish();
    assert!(net.counter("acks_repaired") > 0);
    // With one block there is room for the echo in any case.
    let mut blocks = [0; 5];
    for ack in packets.iter().filter(|p| p.source_port == 5201) {
        let Some((_, sack)) = ack.options.iter().find(|(kind, _)| *kind == 5) else { continue };
        let count = sack.len() / 8;
        assert!(ack.checksum_is_right);
        // A flow that has left the law gets no feedback.
        let told = || ack.stamp().is_some() || !net.causes(ack.destination_port).is_empty();
        assert!(count < 2 || told(), "{ack:?}");
        blocks[count] += 1;
    }
    assert!(blocks[2] > 0 && blocks[3] == 0, "{blocks:?}");
}

/// Serves 5 MB at the server's end.
fn nginx(net: &Net) -> Running {
    fs::write(net.file("body"), vec![b'x'; 5_000_000]).unwrap();
    let root = net.file("");
    let config = format!(
        "daemon off; pid {0}/pid; error_log {0}/error; user root; events {{}} http {{ access_log off; \
         client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0}; \
         server {{ listen 8080; root {0}; }} }}",
        root.display()
    );
    fs::write(net.file("conf"), config).unwrap();
    let mut nginx = net.command(End::Server, true, "nginx");
    let nginx = nginx.arg("-c").arg(net.file("conf")).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    Running(nginx)
}

#[test]
fn a_namespaces_default_serves_nginx_and_curl() {
    let Some(net) = Net::new() else { return };
    net.stamp(R, 0, 0);
    let default = |end| {
        let mut command = net.command(end, false, "cat");
        let output = command.arg("/proc/sys/net/ipv4/tcp_congestion_control").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let was = default(End::Server);
    // It listens before anything is enabled, and is not told.
    let nginx = nginx(&net);
    net.enable("rcp");
    for _ in 0..2 {
        assert_eq!(net.host(End::Server, "enable --law rcp --default"), (0, String::new()));
    }
    assert_eq!(default(End::Server), net.congestion_control("rcp"));
    assert_eq!(default(End::Client), was);

    let mut curl = net.command(End::Client, true, "curl");
    let options = ["-s", "-o", "/dev/null", "-w", "%{speed_download}", "http://10.201.0.2:8080/body"];
    let output = curl.args(options).output().unwrap();
    let bytes_per_s: f64 = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    between(40e6, bytes_per_s * 8.0, 50e6);
    // nginx's master ends its workers when it is told to, not when it is killed.
    unsafe { libc::kill(nginx.0.id() as i32, libc::SIGTERM) };
    std::thread::sleep(Duration::from_millis(300));

    assert_eq!(net.host(End::Client, "disable"), (0, String::new()));
    assert_eq!(default(End::Server), was);
}

#[test]
fn enable_twice_is_once_and_disable_leaves_nothing() {
    use std::os::unix::fs::MetadataExt;
    let Some(net) = Net::new() else { return };
    let pins = std::path::Path::new("/sys/fs/bpf").join(&net.name);
    let cgroup = fs::metadata(&net.cgroup).unwrap().ino();
    let attached = || {
        let links = libbpf_rs::query::LinkInfoIter::default();
        links
            .filter(|l| matches!(&l.info, libbpf_rs::query::LinkTypeInfo::Cgroup(c) if c.cgroup_id == cgroup))
            .count()
    };
    let registered = || {
        let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        names.split_whitespace().filter(|n| n.starts_with(&net.name.replace('-', "_"))).count()
    };
    let there = || {
        let names =
            fs::read_dir(&pins).into_iter().flatten().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(net.host(End::Client, "disable"), (0, String::new()));
    assert_eq!(net.status()["enabled"], false);
    net.enable("rcp");
    let once = there();
    assert_eq!(once.len(), 12, "{once:?}");
    net.enable("xcp");
    assert_eq!((there(), attached(), registered()), (once, 1, 3));
    assert_eq!(net.status()["law"], "xcp");
    let (code, said) = net
        .host(End::Client, &format!("enable --law rcp --cgroup {}", net.cgroup.parent().unwrap().display()));
    assert_eq!(code, 2);
    assert!(said.contains("enabled for cgroup"), "{said}");
    // An enable that was killed half way.
    fs::remove_file(pins.join("settings")).unwrap();
    assert_eq!(net.status()["enabled"], false);
    net.enable("rcp");
    assert_eq!((attached(), registered()), (1, 3));
    assert_eq!(net.host(End::Client, "disable"), (0, String::new()));
    assert_eq!((pins.exists(), attached(), registered()), (false, 0, 0));
}

/// A router's pins are inside the host's directory, by default.
#[test]
fn a_router_on_the_same_machine_is_left_alone() {
    let Some(net) = Net::new() else { return };
    let pins = std::path::Path::new("/sys/fs/bpf").join(&net.name);
    let router = |what: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"));
        let place = format!("--netns {} --pins {}/router", net.namespace(End::Client), pins.display());
        let output = command.arg("router").args(format!("{what} {place}").split(' ')).output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    };
    for router_first in [true, false] {
        if router_first {
            router("attach veth0 --law rcp --rate 100Mbps");
        }
        net.enable("rcp");
        if !router_first {
            router("attach veth0 --law rcp --rate 100Mbps");
        }
        assert_eq!(net.status()["enabled"], true);
        assert_eq!(net.host(End::Client, "disable"), (0, String::new()));
        assert_eq!(net.status()["enabled"], false);
        assert_eq!(fs::read_dir(&pins).unwrap().count(), 1);
        assert!(fs::read_dir(pins.join("router")).unwrap().count() > 0);
        router("detach veth0");
        assert!(!pins.exists());
    }
}

/// /sys/fs is everybody's to lock.
#[test]
fn enable_waits_for_nobody_where_the_bpf_file_system_is_mounted() {
    let Some(net) = Net::new() else { return };
    net.enable("rcp");
    let mut held =
        Running(std::process::Command::new("flock").args(["-F", "/sys/fs", "sleep", "20"]).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    net.enable("xcp");
    assert!(held.0.try_wait().unwrap().is_none());
}

#[test]
fn flows_outlive_what_enabled_them_and_its_end() {
    let Some(net) = Net::new() else { return };
    net.stamp(R, 0, 0);
    net.enable("rcp");
    // Both ends' options go while it runs: it must not stay at a rate that nobody confirms.
    let rate = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(1700));
            assert_eq!(net.host(End::Client, "disable"), (0, String::new()));
        });
        net.iperf3(true, &format!("10.201.0.2 -t 3 -C {}", net.congestion_control("rcp")))
    });
    assert!(rate > 200e6, "{rate}");
}

#[test]
fn what_cannot_be_is_one_line_and_exit_code_2() {
    let Some(net) = Net::new() else { return };
    for (arguments, line) in [
        ("enable --law rcp --cgroup /tmp", "flowstamp: --cgroup /tmp: not a directory of cgroup version 2\n"),
        ("enable --law rcp --iface nope", "flowstamp: --iface nope: there are lo, veth0\n"),
        ("enable --law rcp --iface lo", "flowstamp: --iface lo: not an Ethernet interface\n"),
        (
            "enable --law pcp",
            "flowstamp: invalid value 'pcp' for '--law <LAW>': it must be rcp, xcp or vcp\n",
        ),
        (
            "enable --law rcp --set alpha=2",
            "flowstamp: --set alpha=2: hosts have no parameters of rcp's senders\n",
        ),
        (
            "enable --law vcp --set t_rho=1s",
            "flowstamp: vcp parameter `t_rho` = 1s cannot be carried out by hosts, who have it from routers; leave it at unset\n",
        ),
        (
            "enable --law xcp --set error_losses=true",
            "flowstamp: xcp parameter `error_losses` = true cannot be carried out by hosts, who halve the window at each loss; leave it at false\n",
        ),
        ("enable --law xcp --udp 5004", "flowstamp: --udp: xcp has no header for datagrams; use --law rcp\n"),
        (
            "enable --law rcp --udp 7-5",
            "flowstamp: invalid value '7-5' for '--udp <PORTS>': \"7-5\" must be a port from 1 to 65535, or a range of them such as 6000-6010\n",
        ),
        ("enable --law vcp --set beta=2", "flowstamp: vcp parameter `beta` is 2; it must be 0 to 1\n"),
    ] {
        let (code, said) = net.host(End::Client, arguments);
        assert!(code == 2 && said.starts_with(line) && said.lines().count() == 1, "{arguments}: {said}");
        assert_eq!(net.status()["enabled"], false);
    }
    assert_eq!(net.host(End::Client, "enable").0, 2);
    net.tbf(End::Client, "50mbit", "2m");
    let (code, said) = net.host(End::Client, "enable --law rcp --udp 5004");
    let line = "flowstamp: --udp: veth0 has the queueing discipline tbf at its root, which does not pace datagrams; replace it: ";
    assert!(code == 2 && said.starts_with(line) && said.lines().count() == 1, "{said}");
    assert_eq!(net.status()["enabled"], false);
}

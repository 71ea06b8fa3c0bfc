//! Tests paths that change or drop the option: flows obey or switch to the kernel's TCP, and never stall.

use super::net::{End, How, LAWS, Net, Running};
use super::{R, between};
use std::process::Stdio;
use std::time::Duration;

/// The parts that `tests/middlebox.bpf.c` changes.
const SYNS: u32 = 1;
const DATA: u32 = 2;
const ACKS: u32 = 4;

/// Four connections at once, between addresses of their own: 1 MB up and down, by the law's congestion control and by the kernel's.
/// Port 5300 takes what comes and says so with a byte; 5301 and 5302 send as soon as a client has connected. FINs come
/// by themselves, so that each connection has the same kinds of packets.
const SERVER: &str = "\
import socket, sys, threading, time
def end(c):
    time.sleep(0.3)
    c.close()
def take(c):
    while c.recv(1 << 16): pass
    c.send(b'.')
    end(c)
def give(c):
    c.sendall(bytes(1_000_000))
    end(c)
def serve(s, what):
    while True: threading.Thread(target=what, args=[s.accept()[0]]).start()
for port, name, what in [(5300, 'cubic', take), (5301, sys.argv[1], give), (5302, 'cubic', give)]:
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(6, 13, name.encode())
    s.bind(('', port))
    s.listen(8)
    threading.Thread(target=serve, args=[s, what]).start()
print('listens', flush=True)
";
const CLIENT: &str = "\
import socket, sys, threading, time
failed = []
def run(k, port, name):
    s = socket.socket()
    try:
        s.setsockopt(6, 13, name.encode())
        s.bind((f'10.201.0.{110 + k}', 0))
        begun = time.monotonic()
        def left():
            rest = begun + 10 - time.monotonic()
            if rest <= 0: raise TimeoutError('10 s')
            s.settimeout(rest)
            return s
        left().connect((f'10.201.0.{10 + k}', port))
        if port == 5300:
            left().sendall(bytes(1_000_000))
            time.sleep(0.3)
            s.shutdown(socket.SHUT_WR)
            if left().recv(1) != b'.': raise OSError('not taken')
        else:
            came = 0
            while came < 1_000_000:
                got = len(left().recv(1 << 16))
                if got == 0: raise OSError(f'{came} bytes')
                came += got
        print(k, port, name, f'{time.monotonic() - begun:.2f} s', s.getsockopt(6, 13, 16).split(b'\\0')[0].decode())
        time.sleep(0.3)
    except OSError as error:
        failed.append(f'{k} {port} {name}: {error}')
threads = [threading.Thread(target=run, args=args) for args in [(0, 5300, sys.argv[1]), (1, 5300, 'cubic'), (2, 5301, 'cubic'), (3, 5302, 'cubic')]]
for t in threads: t.start()
for t in threads: t.join()
sys.exit('; '.join(failed) or 0)
";

/// The output of the four; fails if one of them has not had its 1 MB after 10 s.
fn four(net: &Net, law: &str) -> String {
    let mut server = net.command(End::Server, true, "python3");
    let ours = net.congestion_control(law);
    let _server = Running::that_speaks(server.args(["-c", SERVER, &ours]).stderr(Stdio::null()));
    let output = net.command(End::Client, true, "python3").args(["-c", CLIENT, &ours]).output().unwrap();
    let said = [output.stdout, output.stderr].map(|o| String::from_utf8_lossy(&o).into_owned()).concat();
    assert!(output.status.success(), "{said} {}", net.status()["counters"]);
    said
}

/// A path that drops what carries the option costs a connection some time-outs, whoever sends; the next one knows.
#[test]
#[ignore = "long"]
fn a_path_that_drops_the_option() {
    let ends = [End::Server, End::Client];
    for (kinds, law, ends) in [
        (SYNS, "rcp", &ends[..1]),
        (SYNS, "rcp", &ends[1..]),
        (DATA, "xcp", &ends[..1]),
        (DATA, "xcp", &ends[1..]),
        (ACKS, "vcp", &ends[..1]),
        (ACKS, "vcp", &ends[1..]),
        (ACKS | DATA, "rcp", &ends),
    ] {
        let Some(net) = Net::new() else { return };
        net.own_addresses(4);
        net.stamp(2 * R, 100_000, 0);
        net.enable(law);
        for end in ends {
            net.middlebox(*end, kinds, How::Loses);
        }
        let said = four(&net, law);
        // Their last packets are not the next connections'.
        net.settle();
        let dropped = || ends.iter().map(|end| net.dropped(*end)).sum::<u64>();
        let (lost, left) = (dropped(), net.counter("left_blackhole"));
        println!("{kinds} {law}: {said}{lost} lost {}", net.status()["counters"]);
        assert!(lost > 0);
        // Data go one way in two of them.
        assert!(left >= 2, "{left}");
        four(&net, law);
        assert_eq!(dropped(), lost);
    }
}

/// It leaves no option, or none of a law.
#[test]
#[ignore = "long"]
fn a_path_that_rewrites_the_option() {
    for (how, law) in [(How::Pads, "rcp"), (How::Noise, "xcp"), (How::Noise, "vcp")] {
        for (kinds, cause, ends) in [(SYNS, "left_no_peer", 8), (DATA, "left_silent", 1)] {
            let Some(net) = Net::new() else { return };
            net.own_addresses(4);
            net.no_offload();
            net.stamp(2 * R, 100_000, 0);
            net.enable(law);
            net.middlebox(End::Server, kinds, how);
            let said = four(&net, law);
            println!("{kinds} {law}: {said}{}", net.status()["counters"]);
            // Both ends of four connections; the one that sends its data by a law on this way.
            assert_eq!(net.counter(cause), ends, "{law} {kinds}");
            assert_eq!(net.counter("left_blackhole") + net.counter("left_loss"), 0);
        }
    }
}

/// Every law within a limit of 20 Mb/s, by routers of 100 Mb/s.
fn within_20_mbps(net: &Net, law: &str) {
    net.stamp(2 * R, 20_000, 0);
    for end in [End::Client, End::Server] {
        let words = format!("enable --law {law} --cgroup {} --max-rate 20Mbps", net.cgroup.display());
        assert_eq!(net.host(end, &words), (0, String::new()));
    }
}

/// The same, each end by itself: cgroup, name and pins.
fn within_20_mbps_apart(net: &Net, law: &str) {
    net.stamp(2 * R, 20_000, 0);
    for end in [End::Client, End::Server] {
        let words = format!("enable --law {law} --cgroup {} --max-rate 20Mbps", net.cgroup_of(end).display());
        assert_eq!(net.host_of(&net.name_of(end), end, &words), (0, String::new()));
    }
}

/// One full packet in 16 comes some 12 packets late, which is neither a loss nor silence. The late packet's ack shows
/// that a loss was none. A law waits for it an RTT and 5 ms. A busy machine may take as long: then the flow leaves, as
/// it should for another queue, and obeys in another try.
#[test]
#[ignore = "long"]
fn a_path_that_reorders() {
    for law in LAWS {
        let obeyed = (0..5).any(|_| {
            let Some(net) = Net::new() else { return true };
            net.no_offload();
            within_20_mbps(&net, law);
            net.reorder(End::Client);
            let rate = net.iperf3(true, &format!("10.201.0.2 -t 2 -C {}", net.congestion_control(law)));
            println!("{law}: {rate} {}", net.status()["counters"]);
            for cause in ["left_no_peer", "left_no_router", "left_blackhole", "left_silent", "left_untold"] {
                assert_eq!(net.counter(cause), 0, "{law} {cause}");
            }
            assert!(rate > 10e6, "{law}: {rate}");
            if net.counter("left_loss") + net.counter("left_rtt_doubled") > 0 {
                return false;
            }
            between(10e6, rate, 20.5e6);
            true
        });
        assert!(obeyed, "{law} left each time");
    }
}

/// The option says nothing of addresses and ports.
#[test]
#[ignore = "long"]
fn a_translation_of_addresses_and_ports() {
    for law in LAWS {
        let Some(net) = Net::new() else { return };
        net.no_offload();
        within_20_mbps(&net, law);
        net.translate();
        for direction in ["", "-R"] {
            let options = format!("10.201.0.2 -t 2 {direction} -C {}", net.congestion_control(law));
            let rate = net.iperf3(true, &options);
            println!("{law} {direction}: {rate} {}", net.status()["counters"]);
            between(15e6, rate, 20.5e6);
        }
        for cause in ["left_no_peer", "left_no_router", "left_blackhole", "left_silent", "left_untold"] {
            assert_eq!(net.counter(cause), 0, "{law} {cause}");
        }
    }
}

/// `host disable` at one end, while its own sockets send or receive: whoever sends is the kernel's own soon.
#[test]
#[ignore = "long"]
fn a_peer_that_is_disabled_in_mid_connection() {
    for law in LAWS {
        for goes in [End::Server, End::Client] {
            let Some(net) = Net::new() else { return };
            within_20_mbps_apart(&net, law);
            let rate = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(1700));
                    let (code, said) = net.host_of(&net.name_of(goes), goes, "disable");
                    assert_eq!((code, said.as_str()), (0, ""));
                });
                net.iperf3_apart(&format!(
                    "10.201.0.2 -t 3 --cport 40000 -C {}",
                    net.control_of(End::Client, law)
                ))
            });
            println!("{law}: {rate}");
            if goes == End::Server {
                let status = net.status_of(&net.name_of(End::Client));
                println!("{}", status["counters"]);
                assert_eq!(status["counters"]["left_silent"], 1, "{law}");
            }
            // 20 Mb/s for a second of three, and then what the machine gives.
            assert!(rate > 60e6, "{law}: {rate}");
        }
    }
}

//! Tests the `router` command in its own network namespaces and BPF file system.

mod routers;

use libbpf_rs::MapCore;
use routers::{Net, eventually, serve, sh};
use std::process::Command;

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
    // Counts show when the next interval ends.
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
    // The police has to come behind its router, and is told anew what that one is.
    let said = net.ok(&format!("attach out.1 --netns {} --law xcp --rate 2Gbps", net.name));
    assert_eq!(said, "the police of out.1 has ended: run `router police` again\n");
    net.refused(&format!("police out.1 --netns {} --list", net.name), "not policed");
    net.ok(&format!("police out.1 --netns {}", net.name));
    assert_eq!(net.pinned(), 2);
    assert_eq!(net.programs(), ["fs_gate", "fs_router", "fs_police"]);
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert!(!net.pins.join("router").exists());
    assert_eq!(net.left(), [""; 0]);
    net.ok(&format!("detach out.1 --netns {}", net.name));
}

/// The registry's parameters, as in a scenario, show in what the law then knows.
#[test]
fn parameters_reach_the_law() {
    let Some(net) = Net::new("k") else { return };
    let attach = format!("attach out.1 --netns {} --rate 100Mbps --law", net.name);
    let sets = "--set eta=0.5 --set initial_rate=0.1 --set initial_rtt=30ms --set max_interval=19s";
    net.ok(&format!("{attach} rcp {sets}"));
    let status = net.status()[0].clone();
    let number = |name: &str| status[name].as_f64().unwrap_or_else(|| panic!("no {name}: {status}"));
    assert!((number("target_rate_bps") - 50e6).abs() < 1.0, "{status}");
    // Nothing has been decided yet: the first interval is the first RTT.
    if number("decisions") < 1.0 {
        assert!((number("rate_bps") - 10e6).abs() < 1.0, "{status}");
        assert!((number("flows_estimate") - 5.0).abs() < 1e-6, "{status}");
    }
    assert!((number("avg_rtt_s") - 0.03).abs() < 1e-9, "{status}");
    // Nobody has told it of the path, nor any packet.
    net.ok(&format!("{attach} rcp"));
    assert_eq!(net.status()[0]["avg_rtt_s"], 0.0);
    // Another initial value replaces it, and the same one does not.
    net.ok(&format!("{attach} rcp --set initial_rtt=19s --set max_interval=19s"));
    assert_eq!(net.status()[0]["avg_rtt_s"], 19.0);
    let before = net.programs_ids();
    net.ok(&format!("{attach} rcp --set initial_rtt=19s --set max_interval=19s"));
    assert_eq!(net.programs_ids(), before);
    net.ok(&format!("{attach} rcp --set initial_rtt=18s --set max_interval=19s"));
    assert_eq!(net.status()[0]["avg_rtt_s"], 18.0);
    assert_ne!(net.programs_ids(), before);
    // XCP's timer keeps to the average RTT, of which no packet has told: 19 s.
    net.ok(&format!("{attach} xcp --eta 1 --set initial_interval=19s"));
    std::thread::sleep(std::time::Duration::from_millis(100));
    let status = net.status()[0].clone();
    assert_eq!(status["decisions"], 0, "{status}");
    assert_eq!(status["avg_rtt_s"], 19.0, "{status}");
    assert_eq!(status["target_rate_bps"], 100e6, "{status}");
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

/// 100 kb/s are 250 bytes in 20 ms.
#[test]
fn vcp_knows_its_load() {
    let Some(net) = Net::new("l") else { return };
    net.ok(&format!("attach out.1 --netns {} --law vcp --rate 100kbps --set t_rho=20ms", net.name));
    net.refused(&format!("police out.1 --netns {}", net.name), "vcp tells no flow a rate");
    let seen = |code: u64, meanwhile: &str| {
        (0..200).any(|_| {
            assert!(sh(&format!("ip netns exec {} bash -c '{meanwhile}'", net.name)));
            let status = net.status()[0].clone();
            let load = status["load_factor"].as_f64().expect("a number");
            // Section III-B; both are of one decision.
            let of_load: u64 = if load >= 1.0 {
                3
            } else if load >= 0.8 {
                2
            } else {
                1
            };
            assert_eq!(status["load_code"].as_f64(), Some(of_load as f64), "{status}");
            of_load == code
        })
    };
    assert!(seen(3, "for i in 1 2 3 4 5; do head -c 1000 /dev/zero > /dev/udp/10.79.0.2/9; done"));
    assert!(seen(1, "sleep 0.05"));
    let status = net.status()[0].clone();
    // gamma is 0.95.
    assert!((status["target_rate_bps"].as_f64().expect("a number") - 95e3).abs() < 1.0, "{status}");
    assert!(status["input_bytes"].as_u64() >= Some(5 * 1042), "{status}");
    assert!(net.ok("status").contains("load 0."), "{}", net.ok("status"));
}

/// ABC's packets have no option: no class of their own, and no police. A queue of a second leaves no accelerates.
#[test]
fn abc_follows_the_queue() {
    let Some(net) = Net::new("abc") else { return };
    let attach = format!("attach out.1 --netns {} --law abc", net.name);
    net.refused(&attach, "abc needs the link's capacity; set it with --rate");
    let attach = format!("{attach} --rate 100kbps");
    net.refused(&format!("{attach} --share htb"), "--share: packets of abc have no option");
    net.refused(&format!("{attach} --set variant=emulation"), "abc parameter `variant` = emulation cannot");
    assert!(sh(&format!(
        "tc -n {} qdisc replace dev out.1 root tbf rate 100kbit burst 1540 limit 150kb",
        net.name
    )));
    assert_eq!(net.ok(&attach), "");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let status = net.status()[0].clone();
    assert_eq!((&status["law"], &status["accelerate_share"]), (&"abc".into(), &1.0.into()), "{status}");
    let send = "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 1400 /dev/zero > /dev/udp/10.79.0.2/9; done";
    assert!(sh(&format!("ip netns exec {} bash -c '{send}'", net.name)));
    // The law decides every 121 ms here, and the queue needs more than a second to empty.
    let mut status = net.status()[0].clone();
    for _ in 0..40 {
        if status["accelerate_share"] == 0.0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        status = net.status()[0].clone();
    }
    assert_eq!(status["accelerate_share"], 0.0, "{status}");
    assert!(status["dequeue_rate_bps"].as_f64() > Some(1e3), "{status}");
    assert!(net.ok("status").contains("abc attached"), "{}", net.ok("status"));
    net.refused(&format!("police out.1 --netns {}", net.name), "police: abc tells no flow a rate");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.left(), Vec::<String>::new());
}

/// No rate, and no class of its own: it uses the queue's length.
#[test]
fn xcp_b_goes_by_the_queue_and_takes_no_rate() {
    let Some(net) = Net::new("x") else { return };
    let attach = format!("attach out.1 --netns {} --law xcp-b", net.name);
    // A veth has no queue.
    net.refused(
        &attach,
        "out.1 has the queueing discipline noqueue at its root, whose backlog always reads zero",
    );
    let root = |words: &str| assert!(sh(&format!("tc -n {} qdisc replace dev out.1 root {words}", net.name)));
    // It hands on what it gets, which only a shaper holds back.
    root("bfifo limit 150kb");
    let said = net.ok(&attach);
    assert!(
        said.lines().count() == 1 && said.contains("a virtual interface hands on whatever it gets"),
        "{said}"
    );
    root("handle 1: tbf rate 100kbit burst 1540 limit 150kb");
    let before = net.tc("qdisc");
    for (more, part) in [
        ("--rate 1Mbps", "--rate: xcp-b goes by its queue and takes no rate"),
        ("--eta 0.9", "--eta 0.9: it is a share of the rate, which xcp-b does not know"),
        ("--share htb", "--share htb divides a rate, which xcp-b is not told"),
        ("--set kappa=0pkt", "xcp-b parameter `kappa` is 0pkt; it must be above 0"),
        ("--set kapa=3pkt", "--set kapa=3pkt: unknown key `kapa`"),
        ("--set q_max=0B", "xcp-b parameter `q_max` is 0B"),
        (
            "--set detection=counter --set tau=0.2",
            "xcp-b parameter `tau` is 0.2; detection = \"counter\" goes by n alone",
        ),
        (
            "--set min_interval=1us",
            "xcp-b parameter `min_interval` = 1us cannot be carried out by the kernel's law",
        ),
    ] {
        net.refused(&format!("{attach} {more}"), part);
    }
    net.refused(&attach.replace("xcp-b", "xcp"), "xcp needs the link's capacity; set it with --rate");
    // It is idle, and its interval a millisecond: chi Qmax / d, with tc's 150 kB of 1024 bytes.
    assert_eq!(net.ok(&attach), "");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let given = |status: &serde_json::Value| {
        assert_eq!((&status["law"], &status["under_used"]), (&"xcp-b".into(), &1.0.into()), "{status}");
        assert!(status.get("link_rate_bps").is_none() && status.get("target_rate_bps").is_none(), "{status}");
        status["aggregate_feedback_bps"].as_f64().expect("a number")
    };
    let limit = 8.0 * 150.0 * 1024.0 / 4.3737 * 1e3;
    assert!((given(&net.status()[0]) / limit - 1.0).abs() < 1e-6, "{}", net.status());
    // Other parameters take the place of those that were.
    net.ok(&format!("{attach} --set q_max=15kB --set chi=0.1"));
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!((given(&net.status()[0]) / (8.0 * 1500.0 * 1e3) - 1.0).abs() < 1e-6, "{}", net.status());
    // Some 14 kB wait for a second, and that it sees.
    let send = "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 1400 /dev/zero > /dev/udp/10.79.0.2/9; done";
    assert!(sh(&format!("ip netns exec {} bash -c '{send}'", net.name)));
    std::thread::sleep(std::time::Duration::from_millis(100));
    let status = net.status()[0].clone();
    assert!(status["queue_packets"].as_u64() > Some(3) && status["under_used"] == 0.0, "{status}");
    assert!(status["aggregate_feedback_bps"].as_f64() < Some(0.0), "{status}");
    assert!(net.ok("status").contains("xcp-b attached, "), "{}", net.ok("status"));
    assert!(!net.ok("status").contains(" of 0.000 Mb/s"), "{}", net.ok("status"));
    net.refused(&format!("police out.1 --netns {}", net.name), "set the rate of a heavy flow with --least");
    net.ok(&format!("police out.1 --netns {} --least 10kbps", net.name));
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!((net.tc("qdisc"), net.left()), (before, vec![]));
    // On a medium of both directions what comes in counts, too.
    let came = |more: &str| {
        net.ok(&format!("{attach}{more}"));
        let send = "for i in 1 2 3 4 5; do head -c 1400 /dev/zero > /dev/udp/10.79.0.1/9; done";
        assert!(sh(&format!("ip netns exec {}-peer bash -c '{send}'", net.name)));
        std::thread::sleep(std::time::Duration::from_millis(100));
        net.status()[0]["input_bytes"].as_u64().expect("a number")
    };
    assert!(came(" --half-duplex") >= 5 * 1428);
    assert!(came("") < 5 * 1428);
    net.refused(
        &format!("{} --rate 1Mbps --half-duplex", attach.replace("xcp-b", "xcp")),
        "--half-duplex: xcp is told the rate of what leaves",
    );
    came(" --half-duplex");
    let incoming = || net.programs_at(libbpf_rs::libbpf_sys::BPF_TCX_INGRESS);
    assert_eq!(incoming(), ["fs_router_in"]);
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.pinned(), 0);
    assert_eq!(incoming(), [""; 0]);
    // A limit that no queue is to reach is none.
    root("handle 2: htb");
    net.refused(&attach, "set it, such as --set q_max=64kB");
    net.ok(&format!("{attach} --set q_max=64kB"));
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.pinned(), 0);
}

#[test]
fn refuses_what_it_cannot_do() {
    let Some(net) = Net::new("c") else { return };
    let on = format!("attach out.1 --netns {} --law", net.name);
    net.refused("attach nothing --law rcp --rate 1Gbps", "no interface nothing");
    net.refused(&format!("attach out.1 --netns none-{} --law rcp --rate 1Gbps", net.name), "--netns");
    net.refused(&format!("{on} pcp --rate 1Gbps"), "it must be rcp, xcp, vcp, xcp-b or abc");
    net.refused(&format!("{on} rcp --rate 1kbps"), "100kbps to 100Gbps");
    net.refused(&format!("{on} rcp --rate 1Gbps --eta 1.5"), "--eta is 1.5; it must be");
    net.refused(&format!("{on} xcp --rate 1Gbps --eta 1.5"), "--eta is 1.5");
    net.refused(&format!("{on} vcp --rate 1Gbps --eta 1.5"), "--eta is 1.5");
    net.refused(
        &format!("{on} vcp --rate 1Gbps --set t_rho=20s"),
        "vcp parameter `t_rho` = 20s cannot be carried out",
    );
    net.refused(&format!("{on} rcp --rate 1Gbps --set alpha=11"), "`alpha` is 11; it must be");
    net.refused(&format!("{on} rcp --rate 1Gbps --set gamma=0.1"), "--set gamma=0.1: unknown key `gamma`");
    net.refused(&format!("{on} xcp --rate 1Gbps --set initial_rate=0.1"), "unknown key `initial_rate`");
    net.refused(
        &format!("{on} rcp --rate 1Gbps --set fairness=1"),
        "rcp parameter `fairness` = 1.0 cannot be carried out by the kernel's law; leave it at 0.0",
    );
    net.refused(&format!("{on} rcp --rate 1Gbps --eta 0.9 --set eta=0.9"), "set only one of them");
    net.refused(&format!("police out.1 --netns {}", net.name), "has no router");
    net.refused(&format!("{on} rcp --rate 1Gbps --metrics 192.0.2.1:1"), "--metrics 192.0.2.1:1");
    assert_eq!(net.pinned(), 0);
    // A bare number has no unit.
    assert_eq!(net.run(&format!("{on} rcp --rate 1000000")).status.code(), Some(2));
}

/// The kernel's information on each BPF map that a process has open.
fn open_maps(process: u32) -> Vec<String> {
    let of = |what: &str, file: &str| std::fs::read_to_string(format!("/proc/{process}/{what}/{file}"));
    let open = std::fs::read_dir(format!("/proc/{process}/fdinfo")).expect("it runs").flatten();
    let maps = open.filter_map(|file| of("fdinfo", &file.file_name().into_string().ok()?).ok());
    maps.filter(|info| info.contains("map_type:")).collect()
}

/// How many BPF maps a process has open to write to.
fn writable_maps(process: u32) -> usize {
    let maps = open_maps(process);
    assert!(maps.len() >= 2, "{maps:?}");
    // The last octal digit of the flags is zero: O_RDONLY.
    maps.iter().filter(|info| !info.lines().any(|l| l.starts_with("flags:") && l.ends_with('0'))).count()
}

/// The process that reads for the one that answers, and what the kernel says of it.
fn reader_of(server: u32) -> (u32, String) {
    let children =
        std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).expect("it runs");
    let reader = children.trim().parse().expect("it has one child");
    (reader, std::fs::read_to_string(format!("/proc/{reader}/status")).expect("it runs"))
}

fn get(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    text
}

/// Each scrape reports the routers that are attached at that time: none, one, another law on the same interface, and
/// one in place of another. After the interface has gone it reports none, though the pins are there.
#[test]
fn metrics_follow_the_interface() {
    let Some(net) = Net::new("m") else { return };
    let (_server, address) = serve(&net, &mut Command::new(env!("CARGO_BIN_EXE_flowstamp-linux")), "status");
    let scrape = || get(&address, "/metrics");
    let on = |law: &str| format!("{{interface=\"{}:out.1\",law=\"{law}\"}}", net.name);
    let none = |text: &str| text.contains("\nflowstamp_routers 0\n") && !text.contains("out.1");
    let attach = |what: &str| net.ok(&format!("attach out.1 --netns {} --law {what}", net.name));
    assert!(none(&scrape()), "{}", scrape());
    // eta is 0.95 by default.
    for (law, rate, target) in [("rcp", "100Mbps", 95e6), ("xcp", "200Mbps", 190e6)] {
        attach(&format!("{law} --rate {rate}"));
        let text = scrape();
        assert!(text.contains("\nflowstamp_routers 1\n"), "{text}");
        let line = format!("flowstamp_router_target_rate_bps{} ", on(law));
        let value = text.lines().find_map(|l| l.strip_prefix(&line)).unwrap_or_else(|| panic!("{text}"));
        assert!((value.parse::<f64>().expect("a number") / target - 1.0).abs() < 1e-3, "{value}");
        net.ok(&format!("detach out.1 --netns {}", net.name));
        assert!(none(&scrape()), "{}", scrape());
    }
    attach("rcp --rate 100Mbps");
    attach("vcp --rate 100Mbps");
    let text = scrape();
    assert!(text.contains(&on("vcp")) && !text.contains(&on("rcp")), "{text}");
    assert!(sh(&format!("ip -n {} link del out.1", net.name)));
    assert!(net.ok("status").contains("of an interface that is gone"));
    assert!(none(&scrape()), "{}", scrape());
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert!(none(&scrape()), "{}", scrape());
}

/// A user who cannot read the routers gets an error, not an empty list.
#[test]
fn metrics_need_a_capability() {
    let Some(net) = Net::new("n") else { return };
    net.ok(&format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name));
    let refused = |user: &str, pins: &std::path::Path, said: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups", "--bounding-set", "-all"]);
        command.args([env!("CARGO_BIN_EXE_flowstamp-linux"), "router", "status", "--metrics", "127.0.0.1:0"]);
        let output = command.arg("--pins").arg(pins).output().expect("util-linux");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    };
    refused("65534", &net.pins.join("router"), "it needs root, or CAP_BPF");
    refused("65534", &net.pins.join("nothing"), "--metrics needs root, or CAP_BPF");
    refused("0", &net.pins.join("router"), "--metrics needs root, or CAP_BPF");
}

/// By a service manager that gives another user root's capabilities, too.
#[test]
fn metrics_keep_no_capability_that_they_were_given() {
    let Some(net) = Net::new("j") else { return };
    net.ok(&format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name));
    let mut command = Command::new("setpriv");
    let given = "+bpf,+net_admin,+dac_override";
    command.args(["--reuid", "65533", "--regid", "65533", "--clear-groups", "--inh-caps", given]);
    command.args(["--ambient-caps", given, env!("CARGO_BIN_EXE_flowstamp-linux")]);
    let (server, address) = serve(&net, &mut command, "status");
    let user = std::fs::read_to_string(format!("/proc/{}/status", server.0.id())).expect("it runs");
    let text = get(&address, "/metrics");
    let (_, reader) = reader_of(server.0.id());
    drop(server);
    assert!(text.contains("out.1"), "{text}");
    // CAP_BPF (39) to open maps and CAP_DAC_OVERRIDE (1) for root's folders, of those that it was given.
    assert!(reader.contains("CapPrm:\t0000008000000002") && reader.contains("NoNewPrivs:\t1"), "{reader}");
    assert!(!address.is_empty() && user.contains("Uid:\t65533\t65533\t65533\t65533"), "{user}");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(user.contains(&format!("{set}:\t0000000000000000")), "{user}");
    }
}

#[test]
fn metrics_are_served_without_privileges() {
    let Some(net) = Net::new("d") else { return };
    let attach = format!("attach out.1 --netns {} --law rcp --rate 100Mbps --share htb", net.name);
    let (server, address) = serve(&net, &mut Command::new(env!("CARGO_BIN_EXE_flowstamp-linux")), &attach);
    let text = get(&address, "/metrics");
    let labels = format!("{{interface=\"{}:out.1\",law=\"rcp\"}}", net.name);
    let missing = get(&address, "/x");
    let user = std::fs::read_to_string(format!("/proc/{}/status", server.0.id())).expect("it runs");
    // The server has no map open; who reads has CAP_BPF (39) alone, and none open between two questions.
    let (reader, rights) = reader_of(server.0.id());
    assert_eq!((open_maps(server.0.id()), open_maps(reader)), (Vec::new(), Vec::new()));
    for set in ["CapPrm", "CapEff"] {
        assert!(rights.contains(&format!("{set}:\t0000008000000000")), "{rights}");
    }
    assert!(rights.contains("NoNewPrivs:\t1"), "{rights}");
    // A law ends with its router even if processes have its maps open, and its metrics end.
    let file = format!("router/{}:out%2e1/state", net.name);
    let state = libbpf_rs::MapHandle::from_pinned_path(net.pins.join(file)).expect("it is pinned");
    let look = || {
        std::thread::sleep(std::time::Duration::from_millis(150));
        state.lookup(&[0; 4], libbpf_rs::MapFlags::ANY).expect("an array")
    };
    assert_ne!(look(), look());
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(look(), look());
    let after = get(&address, "/metrics");
    drop(server);
    // The reader ends with the client; a process that nobody has waited for has no program.
    assert!(eventually(|| std::fs::read_link(format!("/proc/{reader}/exe")).is_err()));
    assert!(after.ends_with("# EOF\n") && !after.contains("out.1"), "{after}");
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains(&format!("flowstamp_router_rate_bps{labels} ")), "{text}");
    assert!(text.contains(&format!("flowstamp_router_decisions_total{labels} ")), "{text}");
    assert!(text.contains(&format!("flowstamp_router_own_weight{labels} 0.5\n")), "{text}");
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    assert!(
        user.contains("Uid:\t65534\t65534\t65534\t65534") && user.contains("CapEff:\t0000000000000000"),
        "{user}"
    );
}

/// A client that sends a byte now and then, for ever, and more that send nothing at all.
#[test]
fn slow_clients_keep_nobody_from_metrics() {
    use std::io::{Read, Write};
    let Some(net) = Net::new("s") else { return };
    net.ok(&format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name));
    let (_server, address) = serve(&net, &mut Command::new(env!("CARGO_BIN_EXE_flowstamp-linux")), "status");
    let connect = || std::net::TcpStream::connect(&address).expect("it listens");
    let mut slow = connect();
    let sender = std::thread::spawn(move || {
        while slow.write_all(b"G").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    let _silent: Vec<_> = (0..200).map(|_| connect()).collect();
    for _ in 0..3 {
        let (mut stream, mut text) = (connect(), String::new());
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("set");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        stream.read_to_string(&mut text).expect("an answer before all others have gone");
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("# EOF\n"), "{text}");
    }
    // Its deadline is for the whole of its request.
    sender.join().expect("it is let go");
}

/// `router share` of an interface; it is killed when this goes.
struct Sharer(std::process::Child, #[expect(dead_code, reason = "it has a client")] Said);

type Said = std::io::BufReader<std::process::ChildStdout>;

impl Sharer {
    fn start(net: &Net) -> Self {
        Self::by(net, Command::new(env!("CARGO_BIN_EXE_flowstamp-linux")))
    }

    /// The same, by another command that runs it.
    fn by(net: &Net, mut command: Command) -> Self {
        use std::io::BufRead;
        let mut daemon = command
            .args(["router", "share", "out.1", "--netns", &net.name, "--max-interval", "250ms", "--pins"])
            .arg(net.pins.join("router"))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it was built");
        let mut line = String::new();
        let mut said = Said::new(daemon.stdout.take().expect("piped"));
        said.read_line(&mut line).expect("a line");
        assert_eq!(line, "sharing out.1\n");
        Self(daemon, said)
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn classes_are_made_kept_and_taken_away() {
    let Some(net) = Net::new("e") else { return };
    let before = net.tc("qdisc");
    let attach = format!("attach out.1 --netns {} --law rcp --rate 100Mbps --share htb", net.name);
    let detach = format!("detach out.1 --netns {}", net.name);
    net.ok(&format!("{attach} --own-share 0.25 --buffer 400kB"));
    let qdiscs = net.tc("qdisc");
    for part in
        ["qdisc htb 4653: root", "4654: parent 4653:1 limit 100000b", "4655: parent 4653:2 limit 300000b"]
    {
        assert!(qdiscs.contains(part), "{part}: {qdiscs}");
    }
    let classes = net.tc("class");
    for part in
        ["4653:1 parent 4653:ff leaf 4654: prio 0 rate 25Mbit ceil 100Mbit", "rate 75Mbit ceil 100Mbit"]
    {
        assert!(classes.contains(part), "{part}: {classes}");
    }
    // While nobody else sends, the law has the whole link, without a daemon too.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let status = net.status()[0].clone();
    assert_eq!(status["own_weight"], 0.25);
    assert!(status["own_capacity_bps"].as_f64() > Some(99.9e6), "{status}");
    assert_eq!(status["is_updated"], false);
    // Again is nothing.
    net.ok(&format!("{attach} --own-share 0.25 --buffer 400kB"));
    assert_eq!((net.tc("qdisc"), net.tc("class")), (qdiscs, classes));
    // Other classes take their place; without --share there are none.
    net.ok(&format!("{attach} --buffer 400kB"));
    assert!(net.tc("class").contains("rate 50Mbit ceil 100Mbit"));
    net.ok(attach.trim_end_matches(" --share htb"));
    assert_eq!(net.tc("qdisc"), before);
    assert!(net.status()[0].get("own_weight").is_none());
    // Isolated flows need a class that there is.
    net.ok(&attach);
    for class in ["9:9", "4653:9", "4654:1"] {
        net.refused(
            &format!("police out.1 --netns {} --class {class}", net.name),
            "not an htb with such a class",
        );
    }
    net.ok(&format!("police out.1 --netns {} --class 4653:2", net.name));
    net.ok(&format!("police out.1 --netns {} --stop", net.name));
    // If they were removed, attaching again makes them.
    net.ok(&attach);
    assert!(sh(&format!("tc -n {} qdisc del dev out.1 root", net.name)));
    net.ok(&attach);
    assert!(net.tc("qdisc").contains("htb 4653: root"));
    // And if they take a part of them.
    let take = || sh(&format!("tc -n {} qdisc del dev out.1 parent 4653:1 handle 4654:", net.name));
    assert!(take());
    net.refused(&format!("share out.1 --netns {}", net.name), "have been taken away");
    net.ok(&attach);
    assert!(net.tc("qdisc").contains("4654: parent 4653:1"));
    assert!(take());
    net.ok(&detach);
    assert_eq!((net.tc("qdisc"), net.tc("class")), (before.clone(), String::new()));
    net.ok(&attach);
    // Classes that other pins have made are theirs.
    let others =
        |command: &str| command.replace("out.1", &format!("out.1 --pins {}/others", net.pins.display()));
    let bin = env!("CARGO_BIN_EXE_flowstamp-linux");
    assert!(sh(&format!("{bin} router {}", others(&detach))));
    assert!(!sh(&format!("{bin} router {}", others(&attach))));
    assert!(net.tc("qdisc").contains("htb 4653: root"));
    net.ok(&detach);
    assert_eq!((net.tc("qdisc"), net.tc("class")), (before, String::new()));
    assert!(!net.pins.join("router").exists());
    net.ok(&detach);
}

#[test]
fn the_split_outlives_its_daemon() {
    let Some(net) = Net::new("f") else { return };
    net.ok(&format!(
        "attach out.1 --netns {} --law xcp --rate 100Mbps --share htb --own-share 0.3",
        net.name
    ));
    let share = format!("share out.1 --netns {}", net.name);
    let daemon = Sharer::start(&net);
    let user = std::fs::read_to_string(format!("/proc/{}/status", daemon.0.id())).expect("it runs");
    assert!(user.contains("Uid:\t65534\t65534\t65534\t65534"), "{user}");
    // CAP_NET_ADMIN alone, and no way to more.
    assert!(
        user.contains("CapPrm:\t0000000000001000") && user.contains("CapEff:\t0000000000001000"),
        "{user}"
    );
    assert!(user.contains("NoNewPrivs:\t1") && user.contains("Groups:\t \n"), "{user}");
    // The split is what it writes.
    assert_eq!(writable_maps(daemon.0.id()), 1);
    net.refused(&share, "another `router share` runs");
    assert!(sh(&format!(
        "ip netns exec {} bash -c 'for i in 1 2 3; do echo hello > /dev/udp/10.79.0.2/9; done'",
        net.name
    )));
    std::thread::sleep(std::time::Duration::from_millis(700));
    let status = net.status()[0].clone();
    assert_eq!(status["is_updated"], true);
    assert!(status["updates"].as_u64() >= Some(2), "{status}");
    // One class alone moves no weight.
    assert!((status["own_weight"].as_f64().expect("a number") - 0.3).abs() < 1e-9, "{status}");
    drop(daemon);
    // Killed, its classes stand, and what it knew of other traffic is soon out of date.
    std::thread::sleep(std::time::Duration::from_millis(1700));
    assert!(net.tc("class").contains("rate 30Mbit ceil 100Mbit"));
    assert_eq!(net.status()[0]["is_updated"], false);
    let mut daemon = Sharer::start(&net);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let after = net.status()[0].clone();
    assert!(after["updates"].as_u64() > status["updates"].as_u64(), "{after}");
    assert!((after["own_weight"].as_f64().expect("a number") - 0.3).abs() < 1e-9, "{after}");
    // It ends with its router.
    net.ok(&format!("detach out.1 --netns {}", net.name));
    let ended = (0..40).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        daemon.0.try_wait().expect("it ran")
    });
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    net.refused(&share, "has no router");
}

/// On a machine that has run for longer than `Time` can say, and than any sum with it.
#[test]
fn a_long_uptime_hurries_no_update() {
    let Some(net) = Net::new("i") else { return };
    net.ok(&format!("attach out.1 --netns {} --law rcp --rate 100Mbps --share htb", net.name));
    let mut aged = Command::new("unshare");
    aged.args(["--time", "--monotonic", "18500000", env!("CARGO_BIN_EXE_flowstamp-linux")]);
    let _daemon = Sharer::by(&net, aged);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let updates = net.status()[0]["updates"].as_u64();
    assert!(updates >= Some(2) && updates <= Some(8), "{updates:?}");
}

#[test]
fn queues_of_both_classes_are_told_apart() {
    let Some(net) = Net::new("h") else { return };
    for law in ["rcp", "xcp"] {
        net.ok(&format!(
            "attach out.1 --netns {} --law {law} --rate 100kbps --share htb --buffer 200kB",
            net.name
        ));
        // Some 14 kB of others wait for a second.
        assert!(sh(&format!(
            "ip netns exec {} bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do \
             head -c 1400 /dev/zero > /dev/udp/10.79.0.2/9; done'",
            net.name
        )));
        std::thread::sleep(std::time::Duration::from_millis(300));
        let status = net.status()[0].clone();
        let waiting = status["other_queue_bytes"].as_u64();
        assert!(waiting > Some(1442) && waiting < Some(14_420), "{status}");
        assert_eq!((&status["own_queue_bytes"], &status["queue_bytes"]), (&0.into(), &0.into()), "{status}");
        // None of it is the law's input, and what it may fill is what is left.
        assert_eq!(status["input_bytes"], 0, "{status}");
        net.ok(&format!("detach out.1 --netns {}", net.name));
    }
}

#[test]
fn refuses_roots_that_it_cannot_use() {
    let Some(net) = Net::new("g") else { return };
    let attach = format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name);
    let share = format!("{attach} --share htb");
    net.refused(&format!("{share} --own-share 1"), "--own-share is 1; it must be 0.01 to 0.99");
    net.refused(&format!("{share} --buffer 1kB"), "--buffer");
    assert_eq!(net.run(&format!("{attach} --own-share 0.5")).status.code(), Some(2));
    net.refused(
        &attach.replace("attach", "share").replace(" --law rcp --rate 100Mbps", " --theta 2"),
        "--theta",
    );
    let set = |words: &str| assert!(sh(&format!("tc -n {} qdisc replace dev out.1 root {words}", net.name)));
    set("handle 1: tbf rate 100mbit burst 10kb limit 100kb");
    let before = net.tc("qdisc");
    net.refused(&share, "tbf at its root");
    assert_eq!(net.tc("qdisc"), before);
    // It is a good root for a router alone, and stays when that is detached.
    net.ok(&attach);
    net.refused(&share, "tbf at its root");
    assert_eq!(net.status()[0]["attached"], true);
    net.refused(&format!("share out.1 --netns {}", net.name), "no classes");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert_eq!(net.tc("qdisc"), before);
    // An existing htb belongs to its owner, with any handle.
    set("handle 4653: htb");
    net.refused(&share, "htb at its root");
    net.ok(&format!("detach out.1 --netns {}", net.name));
    assert!(net.tc("qdisc").contains("htb 4653: root"));
    // Backlogs that always read zero.
    set("handle 1: pfifo_fast");
    net.refused(&attach, "pfifo_fast at its root, whose backlog always reads zero");
    assert!(sh(&format!(
        "ip -n {0} link add multi numtxqueues 2 type veth peer name multi2 && tc -n {0} qdisc replace dev multi root mq",
        net.name
    )));
    net.refused(&attach.replace("out.1", "multi"), "mq at its root, whose backlog always reads zero");
    net.refused(&share.replace("out.1", "multi"), "mq at its root");
    assert_eq!(net.pinned(), 0);
}

//! Tests `router attach` over an existing router: if it is killed at any point, one of the two routers is
//! attached and works. Also tests which users' pins are trusted.

mod routers;

use routers::{Net, eventually, serve, sh};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn attach(net: &Net, what: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"));
    let words = format!("router attach out.1 --netns {} {what} --pins", net.name);
    command.args(words.split(' ')).arg(net.pins.join("router")).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Commands that change state that outlives a process. (A library may use either of two for a name.)
const STEPS: [libc::c_long; 7] = [
    libc::SYS_bpf,
    libc::SYS_mkdirat,
    libc::SYS_mkdir,
    libc::SYS_renameat2,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_sendto,
];

/// Runs it and kills it just before the `n`th such step from the one on which makes its second directory, where what is loaded begins to be
/// put in place; whether it came to that.
fn killed_before(mut command: Command, n: usize) -> bool {
    // SAFETY: one system call, of plain numbers.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    #[expect(clippy::zombie_processes, reason = "every way out of this function has waited for it")]
    let child = command.spawn().expect("it was built");
    let process = child.id() as libc::pid_t;
    let (mut made, mut steps, mut status) = (0, 0, 0);
    // SAFETY: of a child that is traced and stopped; the kernel writes registers where there is room for them.
    unsafe {
        assert_eq!(libc::waitpid(process, &raw mut status, 0), process);
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
        assert_eq!(libc::ptrace(libc::PTRACE_SETOPTIONS, process, 0, options), 0);
        let mut signal = 0;
        loop {
            assert_eq!(libc::ptrace(libc::PTRACE_SYSCALL, process, 0, signal), 0);
            assert_eq!(libc::waitpid(process, &raw mut status, 0), process);
            if !libc::WIFSTOPPED(status) {
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:x}");
                return false;
            }
            signal = libc::WSTOPSIG(status);
            if signal != libc::SIGTRAP | 0x80 {
                continue;
            }
            signal = 0;
            let mut info = std::mem::zeroed::<libc::ptrace_syscall_info>();
            let size = size_of_val(&info);
            assert!(libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, process, size, &raw mut info) > 0);
            if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
                continue;
            }
            let call = info.u.entry.nr as libc::c_long;
            made += usize::from([libc::SYS_mkdir, libc::SYS_mkdirat].contains(&call));
            steps += usize::from(made >= 2 && STEPS.contains(&call));
            if steps > n {
                libc::kill(process, libc::SIGKILL);
                assert_eq!(libc::waitpid(process, &raw mut status, 0), process);
                return true;
            }
        }
    }
}

impl Net {
    /// One program is attached, and the state that is shown is the one that it works on.
    fn works(&self, what: &str) -> serde_json::Value {
        assert_eq!(self.programs(), ["fs_router"], "{what}");
        let status = self.status();
        assert_eq!(status.as_array().map(Vec::len), Some(1), "{what}: {status}");
        assert_eq!(status[0]["attached"], true, "{what}: {status}");
        // With classes nothing of this is the law's, whose decisions are all that shows.
        let shared = status[0].get("own_weight").is_some();
        let (name, more) = if shared { ("decisions", 1) } else { ("input_bytes", 48) };
        let input = |status: &serde_json::Value| status[0][name].as_u64().expect("a number");
        let before = input(&status);
        let send = "echo hello > /dev/udp/10.79.0.2/9";
        assert!(sh(&format!("ip netns exec {} bash -c '{send}'", self.name)));
        let counted = eventually(|| input(&self.status()) >= before + more);
        assert!(counted, "{what}: what is sent is not counted: {}", self.status());
        status[0].clone()
    }
}

#[test]
fn killed_at_any_step_one_router_is_attached() {
    let Some(net) = Net::new("ka") else { return };
    let before = net.tc("qdisc");
    // All steps of all changes each night; per change every other one of the first, and some of the rest.
    let stride = |some| if std::env::var_os("FLOWSTAMP_NIGHTLY").is_some() { 1 } else { some };
    for (stride, old, new) in [
        (stride(2), "--law rcp --rate 100Mbps", "--law rcp --rate 200Mbps"),
        (stride(5), "--law rcp --rate 100Mbps", "--law xcp --rate 200Mbps --share htb"),
        (
            stride(5),
            "--law xcp --rate 100Mbps --share htb",
            "--law rcp --rate 200Mbps --share htb --own-share 0.3",
        ),
        (stride(5), "--law xcp --rate 100Mbps --share htb", "--law rcp --rate 200Mbps"),
    ] {
        let mut seen = [false; 2];
        for n in (0..).step_by(stride) {
            net.ok(&format!("attach out.1 --netns {} {old}", net.name));
            assert_eq!((net.works(old)["link_rate_bps"].as_f64(), net.pinned()), (Some(100e6), 1));
            assert_eq!(net.tc("qdisc").contains("htb 4653: root"), old.contains("htb"), "{old} after {new}");
            if !killed_before(attach(&net, new), n) {
                assert!(n > 15, "{n} steps");
                break;
            }
            let at = format!("{old}, killed before step {n} of {new}");
            let rate = net.works(&at)["link_rate_bps"].as_f64();
            assert!([Some(100e6), Some(200e6)].contains(&rate), "{at}: {rate:?}");
            seen[usize::from(rate == Some(200e6))] = true;
        }
        assert_eq!(seen, [true; 2], "{old}, {new}");
        // The last one was not killed.
        assert_eq!((net.works(new)["link_rate_bps"].as_f64(), net.pinned()), (Some(200e6), 1));
        assert_eq!(net.tc("qdisc").contains("htb 4653: root"), new.contains("htb"), "{new}");
    }
    // Detaching takes away what a killed one has left, too.
    for n in [3, 12, 20] {
        net.ok(&format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name));
        assert!(killed_before(attach(&net, "--law xcp --rate 200Mbps --share htb"), n));
        net.ok(&format!("detach out.1 --netns {}", net.name));
        assert_eq!((net.tc("qdisc"), net.left(), net.pinned()), (before.clone(), vec![], 0));
    }
}

/// The same for the first one: all of it, or nothing that anybody sees.
#[test]
fn killed_at_any_step_of_the_first_nothing_is_half_attached() {
    let Some(net) = Net::new("kf") else { return };
    let before = net.tc("qdisc");
    let new = "--law rcp --rate 200Mbps --share htb";
    let stride = if std::env::var_os("FLOWSTAMP_NIGHTLY").is_some() { 1 } else { 3 };
    for n in (0..).step_by(stride) {
        let killed = killed_before(attach(&net, new), n);
        let attached = net.programs().len();
        assert_eq!(net.status().as_array().map(Vec::len), Some(attached), "killed before step {n}");
        if !killed {
            break;
        }
        net.ok(&format!("attach out.1 --netns {} {new}", net.name));
        net.works(new);
        net.ok(&format!("detach out.1 --netns {}", net.name));
        assert_eq!((net.tc("qdisc"), net.left(), net.pinned()), (before.clone(), vec![], 0));
    }
}

/// At moments as they come, and while it is not killed at all.
#[test]
fn killed_at_any_moment_one_router_is_attached() {
    let Some(net) = Net::new("km") else { return };
    let rates = ["--law rcp --rate 100Mbps", "--law xcp --rate 200Mbps"];
    let run = |which: usize| attach(&net, rates[which % 2]).spawn().expect("it was built");
    assert!(run(0).wait().expect("ran").success());
    // How long it takes, in looks at what is attached.
    let looks_until = |child: &mut std::process::Child, end: usize| {
        (0..end).find(|look| {
            assert_eq!(net.attached(), 1, "at look {look}");
            child.try_wait().expect("it ran").is_some()
        })
    };
    let looks = looks_until(&mut run(1), usize::MAX).expect("it ends");
    let kills = if std::env::var_os("FLOWSTAMP_NIGHTLY").is_some() { 200 } else { 20 };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for kill in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = run(kill);
        looks_until(&mut child, (random >> 32) as usize % looks);
        child.kill().expect("sent");
        child.wait().expect("ran");
        net.works(&format!("kill {kill}"));
    }
    net.ok(&format!("attach out.1 --netns {} {}", net.name, rates[0]));
    assert_eq!((net.works(rates[0])["link_rate_bps"].as_f64(), net.pinned()), (Some(100e6), 1));
}

#[test]
fn pins_in_folders_of_others_are_not_believed() {
    let Some(net) = Net::new("o") else { return };
    let attach = format!("attach out.1 --netns {} --law rcp --rate 100Mbps", net.name);
    let (folder, within) = (net.pins.join("router"), net.pins.join("router/x"));
    let all = [attach.as_str(), "status", "detach out.1", "share out.1", "police out.1 --list"];
    std::fs::create_dir(&folder).expect("made");
    let mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).expect("set");
    for bad in [0o777, 0o1777, 0o720] {
        mode(bad);
        for command in all {
            net.refused(command, "router can be written by others than root (mode ");
        }
    }
    mode(0o755);
    chown(&folder, Some(65534), None).expect("root may");
    for command in all {
        net.refused(command, "router is owned by user 65534: pins in it may be anybody's; remove it first");
    }
    // Nor below them, nor by links.
    chown(&folder, Some(0), None).expect("root may");
    std::fs::rename(&folder, net.pins.join("other")).expect("renamed");
    std::os::unix::fs::symlink(net.pins.join("other"), &folder).expect("made");
    net.refused(&attach, "router is not a folder");
    std::fs::remove_file(&folder).expect("removed");
    std::fs::rename(net.pins.join("other"), &folder).expect("renamed");
    std::fs::create_dir(&within).expect("made");
    chown(&within, Some(65534), None).expect("root may");
    let below = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"))
        .args(["router", "status", "--pins"])
        .arg(within.join("y"))
        .output()
        .expect("it was built");
    assert!(String::from_utf8_lossy(&below.stderr).contains("router/x is owned by user 65534"));
    std::fs::remove_dir(&within).expect("removed");
    std::fs::remove_dir(&folder).expect("removed");
    // Only root may use the folders that it makes.
    net.ok(&attach);
    let interface = folder.join(format!("{}:out%2e1", net.name));
    for made in [&folder, &interface] {
        let found = made.metadata().expect("made");
        assert_eq!((found.uid(), found.mode() & 0o7777), (0, 0o700), "{}", made.display());
    }
}

#[test]
fn classes_that_another_root_took_away_are_missed() {
    use std::io::{Read, Write};
    let Some(net) = Net::new("q") else { return };
    let attach = format!("attach out.1 --netns {} --law xcp --rate 100Mbps --share htb", net.name);
    net.ok(&attach);
    let text = "another root queueing discipline has removed the classes of --share htb";
    let (_server, address) = serve(&net, &mut Command::new(env!("CARGO_BIN_EXE_flowstamp-linux")), "status");
    let metric = || {
        let mut stream = std::net::TcpStream::connect(&address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        let line = text.lines().find(|l| l.starts_with("flowstamp_router_share_has_classes{")).expect("told");
        line.split(' ').next_back().expect("a value").to_owned()
    };
    // The law's counts show after its next decision.
    let becomes = |has: bool| {
        assert!(eventually(|| net.status()[0]["has_classes"] == has), "{}", net.status());
        assert_eq!(net.ok("status").lines().filter(|line| line.contains(text)).count(), usize::from(!has));
    };
    becomes(true);
    assert_eq!(metric(), "1.0");
    let root = |what: &str| assert!(sh(&format!("tc -n {} qdisc {what}", net.name)));
    root("replace dev out.1 root handle 1: tbf rate 100mbit burst 10kb limit 100kb");
    becomes(false);
    assert_eq!(metric(), "0.0");
    net.refused(&attach, "tbf at its root");
    root("del dev out.1 root");
    becomes(false);
    net.ok(&attach);
    becomes(true);
}

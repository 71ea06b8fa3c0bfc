//! Shared helpers for tests of the `router` command.

#![allow(dead_code, reason = "each test has its own part")]

#[path = "../../../flowstamp-wire/tests/skip/mod.rs"]
mod skip;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Two namespaces with a veth between them whose one end's name has a dot, and a place for pins; gone when dropped.
pub struct Net {
    pub name: String,
    pub pins: PathBuf,
}

pub fn sh(command: &str) -> bool {
    Command::new("sh").args(["-c", command]).output().is_ok_and(|o| o.status.success())
}

impl Net {
    pub fn new(test: &str) -> Option<Self> {
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } != 0 || !Path::new("/sys/kernel/btf/vmlinux").exists() {
            skip::skip("BPF programs need root and a kernel with BTF");
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
            skip::skip("no network namespaces, veth or BPF file system can be made here");
            return None;
        }
        Some(net)
    }

    pub fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowstamp-linux"));
        command.arg("router").args(arguments.split(' ')).arg("--pins").arg(self.pins.join("router"));
        command.output().expect("it was built")
    }

    /// Its output, if it should succeed.
    pub fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// One line, and exit code 2.
    pub fn refused(&self, arguments: &str, part: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.lines().count() == 1 && said.contains(part), "{arguments}: {said}");
    }

    pub fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.ok("status --json")).expect("JSON")
    }

    pub fn pinned(&self) -> usize {
        std::fs::read_dir(self.pins.join("router")).into_iter().flatten().count()
    }
}

/// Whether it becomes so, within time enough for a busy machine.
pub fn eventually(is_so: impl Fn() -> bool) -> bool {
    (0..500).any(|_| is_so() || (std::thread::sleep(std::time::Duration::from_millis(20)), false).1)
}

impl Drop for Net {
    fn drop(&mut self) {
        let (n, p) = (&self.name, self.pins.display());
        sh(&format!("ip netns del {n}; ip netns del {n}-peer; umount {p}; rmdir {p}"));
    }
}

/// It is killed when this goes, however the test ends.
pub struct Server(pub std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Metrics by a command, and where they are.
pub fn serve(net: &Net, command: &mut Command, what: &str) -> (Server, String) {
    use std::io::BufRead;
    let mut server = command
        .arg("router")
        .args(what.split(' '))
        .args(["--metrics", "127.0.0.1:0", "--pins"])
        .arg(net.pins.join("router"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it was built");
    let mut line = String::new();
    std::io::BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.trim().trim_start_matches("listening at http://").trim_end_matches("/metrics");
    (Server(server), address.to_owned())
}

impl Net {
    pub fn tc(&self, what: &str) -> String {
        let arguments = format!("-n {} {what} show dev out.1", self.name);
        let output = Command::new("tc").args(arguments.split(' ')).output().expect("tc");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The programs at the interface's egress, in their order. tc knows nothing of those.
    pub fn programs(&self) -> Vec<String> {
        self.programs_at(libbpf_rs::libbpf_sys::BPF_TCX_EGRESS)
    }

    /// The programs that stay at the egress after a detach. The kernel removes a link that is no longer pinned in a work
    /// queue, so that it may still be there for a moment.
    pub fn left(&self) -> Vec<String> {
        for _ in 0..500 {
            if self.programs().is_empty() {
                return Vec::new();
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.programs()
    }

    /// The programs at another hook.
    pub fn programs_at(&self, hook: u32) -> Vec<String> {
        let ids = self.ids_at(hook);
        let all: Vec<_> = libbpf_rs::query::ProgInfoIter::default().collect();
        let name = |id| all.iter().find(|p| p.id == id).map(|p| p.name.to_string_lossy().into_owned());
        ids.into_iter().filter_map(name).collect()
    }

    /// The kernel's numbers of the programs at the egress.
    pub fn programs_ids(&self) -> Vec<u32> {
        self.ids_at(libbpf_rs::libbpf_sys::BPF_TCX_EGRESS)
    }

    /// How many are at the egress, even if some go meanwhile.
    pub fn attached(&self) -> usize {
        self.ids_at(libbpf_rs::libbpf_sys::BPF_TCX_EGRESS).len()
    }

    fn ids_at(&self, hook: u32) -> Vec<u32> {
        use libbpf_rs::libbpf_sys::bpf_prog_query_opts;
        let netns = std::fs::File::open(Path::new("/run/netns").join(&self.name)).expect("it was made");
        let ask = move || {
            let mut ids = [0; 16];
            let mut query = bpf_prog_query_opts { prog_ids: ids.as_mut_ptr(), ..Default::default() };
            query.sz = size_of_val(&query) as _;
            query.__bindgen_anon_1.count = ids.len() as u32;
            // SAFETY: a descriptor that is open, a terminated name, and room for as many programs as are asked for; what the
            // kernel then writes is their number.
            let count = unsafe {
                assert_eq!(libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET), 0);
                let index = libc::if_nametoindex(c"out.1".as_ptr()) as i32;
                assert_eq!(libbpf_rs::libbpf_sys::bpf_prog_query_opts(index, hook, &raw mut query), 0);
                query.__bindgen_anon_1.count
            };
            ids[..count as usize].to_vec()
        };
        // Runs on its own thread, so that no other test enters another namespace.
        std::thread::spawn(ask).join().expect("an answer")
    }
}

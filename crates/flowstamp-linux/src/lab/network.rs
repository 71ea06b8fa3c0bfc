//! The lab's namespaces and what holds them together. Everything outside this process carries the lab's id in its name, and only
//! such names are ever taken away.
//!
//! ```text
//!   left 10.199.1.2 l0 ------- in  path  out ------- r0 10.199.2.2 right
//!   left 10.199.1.2 l0 ------- in router out ------- in  path  out ------- r0 10.199.2.2 right      with a BPF router
//! ```

use crate::path::{By, PROCESSOR};
use crate::refusal::Refusal;
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The sender of data.
pub const LEFT: &str = "10.199.1.2";
/// Their receiver.
pub const RIGHT: &str = "10.199.2.2";
const ROUTER: [&str; 2] = ["10.199.1.1", "10.199.2.1"];

/// Which namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Left,
    Router,
    Path,
    Right,
}

impl Place {
    const ALL: [Self; 4] = [Self::Left, Self::Router, Self::Path, Self::Right];

    const fn word(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Router => "router",
            Self::Path => "path",
            Self::Right => "right",
        }
    }
}

/// A lab's name among others on this machine.
#[derive(Clone, Debug)]
pub struct Id(String);

impl Id {
    /// Lower-case letters and digits.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if text.is_empty() || text.len() > 8 || !text.chars().all(good) {
            return Err(Refusal(format!(
                "--id: \"{text}\" must be 1 to 8 lower-case letters and digits, such as \"lab\""
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The id.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// A namespace's name.
    pub fn namespace(&self, place: Place) -> String {
        format!("fs-{}-{}", self.0, place.word())
    }

    /// A namespace's file.
    pub fn file(&self, place: Place) -> PathBuf {
        Path::new("/run/netns").join(self.namespace(place))
    }

    /// The folder of what the applications need and leave.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(format!("/run/fs-{}-lab", self.0))
    }

    /// The control group of the applications, if there is a second-version hierarchy.
    pub fn cgroup(&self) -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (path, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(path))
        })?;
        Some(mount.join(format!("fs-{}-lab", self.0)))
    }
}

/// Holds the id against a second lab of the same name, for as long as it lives.
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock, or says that another lab runs.
    pub fn take(id: &Id) -> anyhow::Result<Self> {
        let path = PathBuf::from(format!("/run/fs-{}-lab.lock", id.0));
        loop {
            let file = File::create(&path).map_err(|error| {
                Refusal(format!(
                    "{}: {error}; a lab makes network namespaces and needs to be root",
                    path.display()
                ))
            })?;
            // SAFETY: the descriptor is open.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } < 0 {
                return Err(Refusal(format!(
                    "a lab of the id \"{}\" runs already; name another with --id",
                    id.0
                ))
                .into());
            }
            let lock = Self { path: path.clone(), file };
            if lock.is_current() {
                return Ok(lock);
            }
        }
    }

    /// Whether the file that is locked still is the one of that name: its holder removes it at the end.
    fn is_current(&self) -> bool {
        let named = fs::metadata(&self.path).map(|m| m.ino());
        matches!((named, self.file.metadata()), (Ok(named), Ok(held)) if named == held.ino())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_current() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Runs a command to its end; its words are in the error.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            anyhow::Error::new(Refusal(format!("{program} is missing; tools/install-linux.sh installs it")))
        }
        _ => anyhow::Error::new(error).context(program.clone()),
    })?;
    if !output.status.success() {
        let words: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        bail!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn ip(words: &str) -> anyhow::Result<String> {
    ip_with(words, &[])
}

fn ip_with(words: &str, more: &[&str]) -> anyhow::Result<String> {
    run(Command::new("ip").args(words.split(' ')).args(more))
}

/// A program to be started in a namespace (and the lab's control group). It dies with the lab, and Ctrl-C does not reach it.
pub fn command(id: &Id, place: Place, program: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("within").arg("--netns").arg(id.file(place));
    if let Some(procs) = id.cgroup().map(|path| path.join("cgroup.procs")).filter(|procs| procs.exists()) {
        command.arg("--procs").arg(procs);
    }
    command.args(["--", program]);
    Ok(command)
}

/// What [`command`] becomes before it becomes the program: a process of its own, as the lab's own memory would have to be marked for copying page by page
/// to do so between fork and exec, and the path's thread would wait for that.
#[derive(clap::Args)]
pub struct Within {
    #[arg(long)]
    netns: PathBuf,
    #[arg(long)]
    procs: Option<PathBuf>,
    #[arg(last = true, required = true)]
    program: Vec<std::ffi::OsString>,
}

impl Within {
    /// Only comes back with an error.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        // SAFETY: no memory is involved.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::setpgid(0, 0);
        }
        let namespace = File::open(&self.netns).with_context(|| format!("{}", self.netns.display()))?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
            return Err(std::io::Error::last_os_error()).context("setns");
        }
        if let Some(procs) = &self.procs {
            File::options().write(true).open(procs)?.write_all(b"0")?;
        }
        let mut program = Command::new(&self.program[0]);
        Err(program.args(&self.program[1..]).exec())
            .with_context(|| self.program[0].to_string_lossy().into_owned())
    }
}

/// Sets a value under /proc/sys/net in a namespace.
pub fn sysctl(id: &Id, place: Place, key: &str, value: &str) -> anyhow::Result<()> {
    let script = format!("echo '{value}' > /proc/sys/net/{}", key.replace('.', "/"));
    run(command(id, place, "sh")?.args(["-c", &script])).map(|_| ())
}

/// The lab's network. It goes when this goes.
pub struct Network {
    id: Id,
    with_router: bool,
    by: By,
}

impl Network {
    /// Makes namespaces and what joins them.
    pub fn make(id: &Id, with_router: bool, by: By) -> anyhow::Result<Self> {
        let network = Self { id: id.clone(), with_router, by };
        for place in Place::ALL.into_iter().filter(|place| with_router || *place != Place::Router) {
            let name = id.namespace(place);
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        if let Some(cgroup) = id.cgroup() {
            fs::create_dir(&cgroup).with_context(|| format!("{}", cgroup.display()))?;
        }
        fs::create_dir(id.folder()).with_context(|| format!("{}", id.folder().display()))?;
        // What only forwards frames has no addresses and makes no traffic of its own.
        sysctl(id, Place::Path, "ipv6.conf.all.disable_ipv6", "1")?;
        if with_router {
            network.pair((Place::Left, "l0", 1), (Place::Router, "in", 2))?;
            network.to_path((Place::Router, "out", 3), ("in", 4))?;
            sysctl(id, Place::Router, "ipv4.ip_forward", "1")?;
            network.host(Place::Left, "l0", &format!("{LEFT}/24"))?;
            network.host(Place::Router, "in", &format!("{}/24", ROUTER[0]))?;
            network.host(Place::Router, "out", &format!("{}/24", ROUTER[1]))?;
        } else {
            network.to_path((Place::Left, "l0", 1), ("in", 4))?;
            network.host(Place::Left, "l0", &format!("{LEFT}/16"))?;
        }
        network.to_path((Place::Right, "r0", 6), ("out", 5))?;
        network.host(Place::Right, "r0", &format!("{RIGHT}/{}", if with_router { 24 } else { 16 }))?;
        let neighbour = |place, device: &str, address, mac: u8| {
            let name = id.namespace(place);
            ip(&format!(
                "-n {name} neigh replace {address} lladdr {} dev {device} nud permanent",
                mac_of(mac)
            ))
        };
        if with_router {
            neighbour(Place::Left, "l0", ROUTER[0], 2)?;
            neighbour(Place::Router, "in", LEFT, 1)?;
            neighbour(Place::Router, "out", RIGHT, 6)?;
            neighbour(Place::Right, "r0", ROUTER[1], 3)?;
        } else {
            neighbour(Place::Left, "l0", RIGHT, 6)?;
            neighbour(Place::Right, "r0", LEFT, 1)?;
        }
        for (place, device) in [(Place::Left, "l0"), (Place::Right, "r0")] {
            network.spread(place, device)?;
            // Ports of flows stay free of other connections.
            sysctl(id, place, "ipv4.ip_local_port_range", "20000 29999")?;
            // A flow starts from nothing, whatever the one before learnt.
            sysctl(id, place, "ipv4.tcp_no_metrics_save", "1")?;
            sysctl(id, place, "ipv4.tcp_rmem", "4096 131072 67108864")?;
            sysctl(id, place, "ipv4.tcp_wmem", "4096 131072 67108864")?;
        }
        Ok(network)
    }

    /// What connections between the two hosts use unless they say otherwise. By the route: the sysctl of a namespace takes only
    /// laws that any user may choose, and CUBIC and BBR are none.
    pub fn congestion_control(&self, name: &str) -> anyhow::Result<()> {
        for (place, device, address, gateway) in
            [(Place::Left, "l0", LEFT, ROUTER[0]), (Place::Right, "r0", RIGHT, ROUTER[1])]
        {
            let route = if self.with_router {
                format!("default via {gateway}")
            } else {
                format!("10.199.0.0/16 dev {device} src {address}")
            };
            ip(&format!("-n {} route replace {route} congctl {name}", self.id.namespace(place)))?;
        }
        Ok(())
    }

    /// How frames reach the path.
    pub fn path_by(&self) -> By {
        self.by
    }

    /// What the path is to open: the file of a namespace and the name of an interface, at each end.
    pub fn path_interfaces(&self) -> [(PathBuf, String); 2] {
        let near = if self.with_router { (Place::Router, "out") } else { (Place::Left, "l0") };
        let ends = match self.by {
            By::Tap => [near, (Place::Right, "r0")],
            By::AfXdp => [(Place::Path, "in"), (Place::Path, "out")],
        };
        ends.map(|(place, name)| (self.id.file(place), name.to_owned()))
    }

    /// Frames that were dropped on the way into the path and out of it, which no congestion control is to see.
    pub fn dropped(&self) -> anyhow::Result<u64> {
        let near = if self.with_router { (Place::Router, "out") } else { (Place::Left, "l0") };
        let mut ends = vec![near, (Place::Right, "r0")];
        if self.by != By::Tap {
            ends.extend([(Place::Path, "in"), (Place::Path, "out")]);
        }
        if self.with_router {
            ends.extend([(Place::Left, "l0"), (Place::Router, "in")]);
        }
        let mut all = 0;
        for (place, device) in ends {
            let table = run(command(&self.id, place, "cat")?.arg("/proc/net/dev"))?;
            let [came, went] =
                dropped(&table, device).with_context(|| format!("{device} is not in /proc/net/dev"))?;
            // What a TAP device gets from its file and has no room for counts as having come.
            all += went + if self.by == By::Tap { came } else { 0 };
        }
        Ok(all)
    }

    /// An interface whose frames the path gets: a TAP device, or one end of a veth whose other is the path's.
    fn to_path(
        &self,
        (place, device, mac): (Place, &str, u8),
        (end, end_mac): (&str, u8),
    ) -> anyhow::Result<()> {
        if self.by != By::Tap {
            return self.pair((place, device, mac), (Place::Path, end, end_mac));
        }
        let name = self.id.namespace(place);
        ip(&format!("-n {name} tuntap add dev {device} mode tap"))?;
        ip(&format!("-n {name} link set {device} address {} txqueuelen {TAP_FRAMES} up", mac_of(mac)))?;
        self.offload_off(place, device)
    }

    fn offload_off(&self, place: Place, device: &str) -> anyhow::Result<()> {
        // The path sees frames as they are on a wire: with their checksums, and one segment each.
        let words = ["-K", device, "tx", "off", "tso", "off", "gro", "off"];
        run(command(&self.id, place, "ethtool")?.args(words)).map(|_| ())
    }

    fn pair(&self, a: (Place, &str, u8), b: (Place, &str, u8)) -> anyhow::Result<()> {
        let [from, to] = [a, b].map(|(place, _, _)| self.id.namespace(place));
        ip(&format!(
            "link add name {} netns {from} address {} type veth peer name {} netns {to} address {}",
            a.1,
            mac_of(a.2),
            b.1,
            mac_of(b.2)
        ))?;
        for (place, device, _) in [a, b] {
            ip(&format!("-n {} link set {device} up", self.id.namespace(place)))?;
            self.offload_off(place, device)?;
        }
        Ok(())
    }

    /// What the hosts receive is worked on by processors other than the path's: the path's own sending would else do the receiver's
    /// TCP, or leave it to a thread of the kernel that the path's priority starves.
    fn spread(&self, place: Place, device: &str) -> anyhow::Result<()> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from).min(32);
        let others = ((1u64 << processors) - 1) & !(1 << PROCESSOR);
        if others == 0 {
            return Ok(());
        }
        // Only `ip netns exec` shows a namespace's own devices in /sys.
        let script = format!("echo {others:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus");
        ip_with(&format!("netns exec {} sh -c", self.id.namespace(place)), &[&script]).map(|_| ())
    }

    fn host(&self, place: Place, device: &str, address: &str) -> anyhow::Result<()> {
        ip(&format!("-n {} address add {address} dev {device}", self.id.namespace(place))).map(|_| ())
    }
}

/// Drops of an interface in a table as /proc/net/dev, of what came and of what was to go: each has eight numbers, of which
/// the first four are bytes, packets, errors and drops.
fn dropped(table: &str, device: &str) -> Option<[u64; 2]> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    let number = |column| line.split_whitespace().nth(column)?.parse().ok();
    Some([number(3)?, number(11)?])
}

/// Frames that may wait to be read from a TAP device, as many as an AF_XDP socket's ring holds.
const TAP_FRAMES: u32 = 8192;

fn mac_of(last: u8) -> String {
    format!("02:00:00:00:00:{last:02x}")
}

impl Drop for Network {
    fn drop(&mut self) {
        clean(&self.id);
    }
}

/// Takes away whatever carries the lab's id; returns the names.
pub fn clean(id: &Id) -> Vec<String> {
    let mut gone = Vec::new();
    if super::stamped::remove(id) {
        gone.push(format!("BPF objects of fs-{}", id.0));
    }
    for place in Place::ALL {
        let name = id.namespace(place);
        if !id.file(place).exists() {
            continue;
        }
        // Programs of an earlier lab that outlived it hold the namespace.
        for pid in ip(&format!("netns pids {name}")).unwrap_or_default().lines() {
            if let Ok(pid) = pid.trim().parse::<i32>()
                && pid != std::process::id() as i32
            {
                // SAFETY: no memory is involved.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
        if ip(&format!("netns delete {name}")).is_ok() {
            gone.push(name);
        }
    }
    if let Some(cgroup) = id.cgroup().filter(|path| path.exists()) {
        // The group empties once the programs in it are gone.
        for _ in 0..50 {
            if fs::remove_dir(&cgroup).is_ok() {
                gone.push(cgroup.display().to_string());
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    if fs::remove_dir_all(id.folder()).is_ok() {
        gone.push(id.folder().display().to_string());
    }
    gone
}

//! The network between the lab's namespaces. Cleaning up removes only names that contain the lab's id.
//!
//! ```text
//!   left 10.199.1.2 l0 ------- in  path  out ------- r0 10.199.2.2 right
//!   left 10.199.1.2 l0 ------- in router out ------- in  path  out ------- r0 10.199.2.2 right      with a BPF router
//! ```

use super::namespaces::{Id, Place, command, run, sysctl};
use super::stamped;
use crate::path::{By, PROCESSOR};
use anyhow::Context;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Address of the data's sender.
pub const LEFT: &str = "10.199.1.2";
/// Address of the data's receiver.
pub const RIGHT: &str = "10.199.2.2";
const ROUTER: [&str; 2] = ["10.199.1.1", "10.199.2.1"];

fn ip(words: &str) -> anyhow::Result<String> {
    ip_with(words, &[])
}

fn ip_with(words: &str, more: &[&str]) -> anyhow::Result<String> {
    run(Command::new("ip").args(words.split(' ')).args(more))
}

/// The lab's network, which is removed when this is dropped.
pub struct Network {
    id: Id,
    with_router: bool,
    by: By,
}

impl Network {
    /// Makes the namespaces and the links between them.
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
        // The path's namespace only forwards frames, so it has no addresses and sends no traffic of its own.
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
            // Other connections do not use the flows' ports.
            sysctl(id, place, "ipv4.ip_local_port_range", "20000 29999")?;
            // A flow does not reuse metrics of earlier flows.
            sysctl(id, place, "ipv4.tcp_no_metrics_save", "1")?;
            sysctl(id, place, "ipv4.tcp_rmem", "4096 131072 67108864")?;
            sysctl(id, place, "ipv4.tcp_wmem", "4096 131072 67108864")?;
        }
        Ok(network)
    }

    /// Sets the default congestion control between the two hosts. Uses the route, because a namespace's
    /// sysctl accepts only those that unprivileged users may choose, which excludes CUBIC and BBR.
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

    /// The kind of the path's devices.
    pub fn path_by(&self) -> By {
        self.by
    }

    /// The path's interface at each end: the network namespace's file and the interface's name.
    pub fn path_interfaces(&self) -> [(PathBuf, String); 2] {
        let near = if self.with_router { (Place::Router, "out") } else { (Place::Left, "l0") };
        let ends = match self.by {
            By::Tap => [near, (Place::Right, "r0")],
            By::AfXdp => [(Place::Path, "in"), (Place::Path, "out")],
        };
        ends.map(|(place, name)| (self.id.file(place), name.to_owned()))
    }

    /// Frames dropped between the hosts and the path. Such drops invalidate the run.
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
            // Frames that a TAP device receives from its file but drops count as its receive drops.
            all += went + if self.by == By::Tap { came } else { 0 };
        }
        Ok(all)
    }

    /// Makes an interface on the path: a TAP device, or a veth whose other end belongs to the path.
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
        // Without offloads, the path sees frames as on a wire: with checksums, and one segment each.
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

    /// Moves the hosts' receive processing to CPUs other than the path's. Otherwise the path's sending would
    /// run the receiver's TCP, or leave it to a kernel thread that the path's priority starves.
    fn spread(&self, place: Place, device: &str) -> anyhow::Result<()> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from).min(32);
        let others = ((1u64 << processors) - 1) & !(1 << PROCESSOR);
        if others == 0 {
            return Ok(());
        }
        // `ip netns exec` mounts a /sys that shows the namespace's own devices.
        let script = format!("echo {others:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus");
        ip_with(&format!("netns exec {} sh -c", self.id.namespace(place)), &[&script]).map(|_| ())
    }

    fn host(&self, place: Place, device: &str, address: &str) -> anyhow::Result<()> {
        ip(&format!("-n {} address add {address} dev {device}", self.id.namespace(place))).map(|_| ())
    }
}

/// Receive and transmit drops of an interface in a table like /proc/net/dev. Each direction has eight
/// numbers, of which the first four are bytes, packets, errors and drops.
fn dropped(table: &str, device: &str) -> Option<[u64; 2]> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    let number = |column| line.split_whitespace().nth(column)?.parse().ok();
    Some([number(3)?, number(11)?])
}

/// Queue length of a TAP device in frames, equal to an AF_XDP socket's ring.
const TAP_FRAMES: u32 = 8192;

fn mac_of(last: u8) -> String {
    format!("02:00:00:00:00:{last:02x}")
}

impl Drop for Network {
    fn drop(&mut self) {
        clean(&self.id);
    }
}

/// Removes everything with the lab's id; returns the names.
pub fn clean(id: &Id) -> Vec<String> {
    let mut gone = Vec::new();
    if stamped::remove(id) {
        gone.push(format!("BPF objects of fs-{}", id.text()));
    }
    for place in Place::ALL {
        let name = id.namespace(place);
        if !id.file(place).exists() {
            continue;
        }
        // Surviving programs of an earlier lab keep the namespace alive.
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
        // The cgroup can be removed once its programs have ended.
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

//! Checks whether the backlog of an interface's root queueing discipline shows its queue, which is the only
//! input of a law without a rate.

use super::htb::{self, BLIND, Root};
use super::pins;
use crate::netlink::Socket;
use crate::refusal::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// Roots that limit the rate themselves, so that packets queue where they are counted.
const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cake", "netem"];

/// Where packets can queue below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// mac80211's queues for each station.
    WiFi,
    /// A modem's driver.
    Modem,
    /// The program that reads from a TUN or TAP device.
    Tun,
    /// Another device, to which a virtual interface passes packets.
    Other,
    /// The driver's ring, without byte queue limits.
    Ring,
}

impl Below {
    const fn words(self) -> &'static str {
        match self {
            Self::WiFi => "Wi-Fi queues packets below it, for each station (mac80211)",
            Self::Modem => "a modem's driver queues packets below it",
            Self::Tun => "a TUN or TAP device queues packets below it",
            Self::Other => "a virtual interface hands on whatever it gets",
            Self::Ring => "the driver queues packets below it, without a limit in bytes (BQL)",
        }
    }
}

/// Drivers of USB modems.
const MODEMS: [&str; 8] =
    ["cdc_ether", "cdc_ncm", "cdc_mbim", "huawei_cdc_ncm", "qmi_wwan", "rndis_host", "sierra_net", "ipheth"];

/// Number of sent packets after which a driver with byte queue limits has set a limit.
const SENT: u64 = 100;

/// Where packets can queue below the root of the interface that `folder` in /sys describes, as far as it can
/// be detected.
fn below(folder: &Path) -> Option<Below> {
    let number = |file: &Path| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let event = fs::read_to_string(folder.join("uevent")).unwrap_or_default();
    let driver = fs::read_link(folder.join("device/driver")).unwrap_or_default();
    let driver = driver.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if folder.join("phy80211").exists() || folder.join("wireless").exists() {
        return Some(Below::WiFi);
    }
    if event.contains("DEVTYPE=wwan") || MODEMS.contains(&driver) {
        return Some(Below::Modem);
    }
    if folder.join("tun_flags").exists() {
        return Some(Below::Tun);
    }
    if !folder.join("device").exists() {
        return Some(Below::Other);
    }
    let queues = fs::read_dir(folder.join("queues")).into_iter().flatten().flatten();
    let mut limits = queues.filter_map(|queue| number(&queue.path().join("byte_queue_limits/limit")));
    let is_limited = limits.any(|limit| limit > 0);
    let sent = number(&folder.join("statistics/tx_packets")).unwrap_or(0);
    (!is_limited && sent >= SENT).then_some(Below::Ring)
}

/// The remedy: if no packets queue below the root, a root that counts its backlog is enough.
fn advice(name: &str, below: Option<Below>) -> String {
    let shaper = "tbf rate 19mbit burst 16kb limit 150kb (or htb, or cake with a bandwidth)";
    match below {
        Some(_) => format!(
            "hold the rate at its root, slightly below the link's: tc qdisc replace dev {name} root {shaper}"
        ),
        None => format!("give it one that counts: tc qdisc replace dev {name} root bfifo limit 150kb"),
    }
}

/// Refuses a root without a queue; returns a warning for a doubtful one.
fn judge(name: &str, root: &Root, below: Option<Below>) -> Result<Option<String>, Refusal> {
    let kind = match root {
        Root::Default(kind) | Root::Other(kind) => kind.as_str(),
        Root::Ours | Root::Part => "htb",
    };
    if kind.is_empty() || kind == "noqueue" || BLIND.contains(&kind) {
        let kind = if kind.is_empty() { "noqueue" } else { kind };
        let why = below.filter(|_| kind == "noqueue").map_or(String::new(), |b| format!(" ({})", b.words()));
        return Err(Refusal(format!(
            "{name} has the queueing discipline {kind} at its root, whose backlog always reads zero{why}: xcp-b would take the link \
             for idle for ever; {}",
            advice(name, below)
        )));
    }
    Ok(below.filter(|_| !SHAPERS.contains(&kind)).map(|below| {
        format!(
            "{name}: {}, so that the backlog of {kind} may read zero while they wait, and xcp-b would take the link for idle; {}",
            below.words(),
            advice(name, Some(below))
        )
    }))
}

/// Runs `what` with the /sys of this thread's network namespace, because an existing mount shows the
/// namespace of the process that mounted it.
fn with_sysfs<T: Send>(of_another: bool, what: impl FnOnce() -> T + Send) -> T {
    if !of_another {
        return what();
    }
    let within = move || {
        // SAFETY: terminated strings; the mount namespace is private to this thread and ends with it.
        let _ = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(
                    c"".as_ptr(),
                    c"/".as_ptr(),
                    std::ptr::null(),
                    libc::MS_REC | libc::MS_PRIVATE,
                    std::ptr::null(),
                ) == 0
                && libc::mount(
                    c"flowstamp".as_ptr(),
                    c"/sys".as_ptr(),
                    c"sysfs".as_ptr(),
                    0,
                    std::ptr::null(),
                ) == 0
        };
        what()
    };
    std::thread::scope(|scope| scope.spawn(within).join().expect("it does not panic"))
}

fn folder(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

/// Refuses an interface of this thread's network namespace whose queue a law can never see; otherwise returns
/// a warning if it is doubtful. `of_another` says that the namespace is not the process's own.
pub fn look(name: &str, root: &Root, of_another: bool) -> Result<Option<String>, Refusal> {
    let below = with_sysfs(of_another, || below(&folder(name)));
    judge(name, root, below)
}

/// All interfaces of this namespace that are up, without loopback, each with the reason against a law that
/// observes only the queue, if any.
pub fn of_all() -> Vec<(String, Option<String>)> {
    let Ok(socket) = Socket::open() else { return Vec::new() };
    let names = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut all: Vec<_> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    all.sort();
    let is_up = |name: &String| {
        let flags = fs::read_to_string(folder(name).join("flags")).unwrap_or_default();
        let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0) as i32;
        flags & libc::IFF_UP != 0 && flags & libc::IFF_LOOPBACK == 0
    };
    let doubt = |name: String| {
        let (index, _) = pins::look_up(&name).ok()?;
        let root = htb::root(&socket, index).ok()?;
        let doubt = judge(&name, &root, below(&folder(&name))).unwrap_or_else(|refusal| Some(refusal.0));
        Some((name, doubt))
    };
    all.into_iter().filter(is_up).filter_map(doubt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of a /sys directory; removed when dropped.
    struct Sys(PathBuf);

    impl Sys {
        fn with(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("flowstamp-sight-{name}-{}", std::process::id()));
            for (file, text) in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("a file has one")).expect("made");
                fs::write(path, text).expect("written");
            }
            Self(root)
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_queues_below_the_root_is_seen() {
        let sent = ("statistics/tx_packets", "5000\n");
        let limit = |value| [("device/vendor", ""), sent, ("queues/tx-0/byte_queue_limits/limit", value)];
        for (name, files, expected) in [
            ("wifi", vec![("phy80211/name", "phy0"), ("device/vendor", "")], Some(Below::WiFi)),
            (
                "wwan",
                vec![("uevent", "DEVTYPE=wwan\nINTERFACE=wwan0\n"), ("device/vendor", "")],
                Some(Below::Modem),
            ),
            ("tun", vec![("tun_flags", "0x1001\n")], Some(Below::Tun)),
            ("veth", vec![("uevent", "INTERFACE=veth0\n"), sent], Some(Below::Other)),
            ("bql", limit("2020\n").to_vec(), None),
            ("no-bql", limit("0\n").to_vec(), Some(Below::Ring)),
            ("no-files", vec![("device/vendor", ""), sent], Some(Below::Ring)),
            // Unknown before it has sent enough packets.
            ("idle", vec![("device/vendor", ""), ("statistics/tx_packets", "3\n")], None),
        ] {
            assert_eq!(below(&Sys::with(name, &files).0), expected, "{name}");
        }
    }

    #[test]
    fn a_root_that_never_shows_a_queue_is_refused_and_a_doubtful_one_named() {
        let default = |kind: &str| Root::Default(kind.to_owned());
        for (root, below, part) in [
            (
                default("noqueue"),
                Some(Below::WiFi),
                "noqueue at its root, whose backlog always reads zero (Wi-Fi queues",
            ),
            (default("mq"), None, "mq at its root, whose backlog always reads zero: xcp-b would"),
            (
                default("pfifo_fast"),
                Some(Below::Ring),
                "slightly below the link's: tc qdisc replace dev x0 root tbf",
            ),
            (default("pfifo_fast"), None, "one that counts: tc qdisc replace dev x0 root bfifo"),
        ] {
            let said = judge("x0", &root, below).expect_err("refused").0;
            assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        }
        let doubt = |kind: &str, below| judge("x0", &Root::Other(kind.to_owned()), below).expect("a queue");
        for below in [Below::WiFi, Below::Modem, Below::Tun, Below::Other, Below::Ring] {
            let said = doubt("fq_codel", Some(below)).expect("doubtful");
            assert!(
                said.starts_with(&format!("x0: {}", below.words())) && said.contains("backlog of fq_codel")
            );
            // A root that limits the rate holds the queue, whatever is below it.
            assert_eq!(doubt("tbf", Some(below)), None);
        }
        assert_eq!(doubt("bfifo", None), None);
        assert_eq!(judge("x0", &Root::Ours, Some(Below::Other)).expect("classes have queues"), None);
    }
}

//! The BPF objects of `host`, and their pins.

use super::place::{self, Cgroup, Interface};
use crate::bpffs;
use crate::law::{self, LAWS, Law, Senders};
use crate::refusal::Refusal;
use anyhow::{Context, Result, bail};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Program, libbpf_sys};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

mod skel {
    #![allow(clippy::all, clippy::pedantic, missing_docs, dead_code, reason = "generated")]
    include!(concat!(env!("OUT_DIR"), "/host.skel.rs"));
}

/// Round trips without an echo after which a flow leaves. The limit outlasts a recovery in which no ack has
/// room for the option.
const SILENT_ROUNDS_MAX: u32 = 16;

/// bpf_attach_type BPF_TCX_INGRESS, BPF_TCX_EGRESS and BPF_TRACE_ITER.
pub const TCX_INGRESS: u32 = 46;
pub const TCX_EGRESS: u32 = 47;
/// Runs before all other programs, so that a router on the same interface sees VCP's code.
const BPF_F_BEFORE: u32 = 1 << 3;
const TRACE_ITER: u32 = 28;

/// `struct fs_settings` of host_flow.h.
#[repr(C)]
#[derive(Clone)]
pub struct Settings {
    law: u32,
    silent_rounds_max: u32,
    names: [[u8; 16]; LAWS.len() + 1],
    fallback: [u8; 16],
    rate_max: u32,
    any_rtt: u32,
    cgroup_id: u64,
    senders: Senders,
    cgroup: [u8; 256],
}

/// The configuration that `host enable` asks for.
pub struct Wanted {
    /// The law that connections request.
    pub law: &'static Law,
    /// Upper limit on each flow's rate, in bytes/ms; `u32::MAX` is none.
    pub rate_max: u32,
    /// Flows do not leave when their RTT doubles.
    pub any_rtt: bool,
    /// Parameters of the senders.
    pub senders: Senders,
}

impl Settings {
    /// The law that connections request.
    pub fn law(&self) -> Result<&'static Law> {
        law::numbered(self.law.into()).context("pinned settings are another version's")
    }

    /// The congestion control of flows that leave.
    pub fn fallback(&self) -> String {
        text(&self.fallback)
    }

    /// Upper limit on each flow's rate in bytes/ms, if there is one.
    pub fn rate_max(&self) -> Option<u32> {
        (self.rate_max != u32::MAX).then_some(self.rate_max)
    }

    /// The cgroup whose sockets carry the option.
    pub fn cgroup(&self) -> String {
        text(&self.cgroup)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: plain numbers without padding.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

/// Counts of connections and acks since `host enable`.
#[derive(serde::Serialize)]
pub struct Counters {
    /// A router has answered the request in the handshake.
    answered: u64,
    /// The peer does not run Flowstamp, or the path drops the option.
    left_no_peer: u64,
    /// Our congestion control was selected, but no router has answered.
    left_no_router: u64,
    /// The RTT doubled, but the rate did not fall.
    left_rtt_doubled: u64,
    /// A packet was lost, but the rate had not fallen.
    left_loss: u64,
    /// Echoes stopped.
    left_silent: u64,
    /// The SYN requested the law of `host enable`, but the application then selected another law's congestion
    /// control.
    left_other_law: u64,
    /// All packets with the option were lost, on this connection or recently to the same peer.
    left_blackhole: u64,
    /// Echoes arrived, but brought no feedback for 20 round trips.
    left_untold: u64,
    /// Acks in which the option replaced a SACK block.
    acks_repaired: u64,
}

/// One end of a connection that has left its law.
#[derive(serde::Serialize)]
pub struct Departure {
    /// Seconds on the monotonic clock.
    pub at_s: f64,
    /// The reason, named as in [`Counters`].
    pub cause: &'static str,
    pub local_port: u16,
    pub remote_port: u16,
}

/// FS_DEPARTURES of host_flow.h.
const DEPARTURES: u64 = 8192;
/// Reasons by number in `enum fs_counter`.
const CAUSES: [(u32, &str); 8] = [
    (1, "no_peer"),
    (2, "no_router"),
    (3, "rtt_doubled"),
    (4, "loss"),
    (5, "silent"),
    (7, "other_law"),
    (9, "blackhole"),
    (10, "untold"),
];

/// The directory `/sys/fs/bpf/NAME`, locked by this process.
pub struct Pins {
    name: String,
    directory: PathBuf,
    _lock: File,
}

impl Pins {
    /// Waits for the lock.
    pub fn lock(name: &str) -> Result<Self> {
        if std::env::var_os("FLOWSTAMP_BPF_LOG").is_none() {
            libbpf_rs::set_print(None);
        }
        let lock = bpffs::lock(Path::new(bpffs::USUAL))?;
        let directory = Path::new(bpffs::USUAL).join(name);
        bpffs::check_owners(&directory)?;
        Ok(Self { name: name.to_owned(), directory, _lock: lock })
    }

    /// The path of a pin.
    pub fn at(&self, pin: &str) -> PathBuf {
        self.directory.join(pin)
    }

    pub fn any(&self) -> bool {
        self.directory.exists()
    }

    /// Whether all pins of `load` exist; `settings` is pinned last.
    pub fn complete(&self) -> bool {
        self.at("settings").exists()
    }

    /// Loads, attaches and pins everything; on failure, nothing stays.
    pub fn load(&self, wanted: &Wanted, cgroup: &Cgroup) -> Result<()> {
        self.remove()?; // left by an `enable` that was killed
        for law in LAWS {
            let name = law.congestion_control(&self.name);
            if place::available(&name)? {
                let what = "is registered already, but not by `host enable`";
                return Err(Refusal(format!("a congestion control named {name} {what}")).into());
            }
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Refusal("this kernel has no BTF: CONFIG_DEBUG_INFO_BTF".into()).into());
        }
        self.try_load(wanted, cgroup).inspect_err(|_| drop(self.remove()))
    }

    fn try_load(&self, wanted: &Wanted, cgroup: &Cgroup) -> Result<()> {
        let refused = |e: libbpf_rs::Error| {
            Refusal(format!("this kernel refuses the host's programs: {e}; FLOWSTAMP_BPF_LOG=1 says more"))
        };
        let mut object = MaybeUninit::uninit();
        let open = skel::HostSkelBuilder::default().open(&mut object).context("opening the programs")?;
        let ops: [_; LAWS.len()] = [open.struct_ops.rcp, open.struct_ops.xcp, open.struct_ops.vcp];
        for (law, ops) in LAWS.into_iter().zip(ops) {
            let name = padded::<16>(&law.congestion_control(&self.name)).map(|b| b as _);
            // SAFETY: points into the object, which is open; nothing else refers to it now.
            unsafe { (*ops).name = name };
        }
        let mut skel = open.load().map_err(refused)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .context("the directory of pins")?;
        skel.maps.counters.pin(self.at("counters"))?;
        skel.maps.defaults.pin(self.at("defaults"))?;
        skel.maps.departures.pin(self.at("departures"))?;
        skel.progs.fs_egress.pin(self.at("egress"))?;
        skel.progs.fs_listeners.pin(self.at("listeners"))?;
        // The settings must exist before any SYN calls the program.
        let settings = self.fresh_settings(wanted, cgroup)?;
        skel.maps.settings.update(&0u32.to_ne_bytes(), settings.bytes(), MapFlags::ANY)?;
        let mut options =
            skel.progs.fs_options.attach_cgroup(cgroup.directory.as_raw_fd()).map_err(refused)?;
        options.pin(self.at("options"))?;
        skel.maps.rcp.attach_struct_ops().map_err(refused)?.pin(self.at("rcp"))?;
        skel.maps.xcp.attach_struct_ops().map_err(refused)?.pin(self.at("xcp"))?;
        skel.maps.vcp.attach_struct_ops().map_err(refused)?.pin(self.at("vcp"))?;
        skel.maps.settings.pin(self.at("settings"))?;
        Ok(())
    }

    fn fresh_settings(&self, wanted: &Wanted, cgroup: &Cgroup) -> Result<Settings> {
        let mut names = [[0; 16]; LAWS.len() + 1];
        for law in LAWS {
            names[law.number as usize] = padded(&law.congestion_control(&self.name));
        }
        let fallback = padded(if place::available("cubic")? { "cubic" } else { "reno" });
        Ok(Settings {
            law: wanted.law.number,
            silent_rounds_max: SILENT_ROUNDS_MAX,
            names,
            fallback,
            rate_max: wanted.rate_max,
            any_rtt: wanted.any_rtt.into(),
            cgroup_id: cgroup.directory.metadata()?.ino(),
            senders: wanted.senders,
            cgroup: padded(&cgroup.path),
        })
    }

    /// Changes the settings of loaded programs; new connections use `wanted`.
    pub fn retarget(&self, wanted: &Wanted, cgroup: Option<&Cgroup>) -> Result<()> {
        if let Some(cgroup) = cgroup {
            let info = Link::open(self.at("options"))?.info()?;
            let attached = match info.info {
                libbpf_rs::query::LinkTypeInfo::Cgroup(c) => c.cgroup_id,
                _ => bail!("{} is not a cgroup's link", self.at("options").display()),
            };
            if attached != cgroup.directory.metadata()?.ino() {
                let was = self.settings()?.cgroup();
                return Err(Refusal(format!("enabled for cgroup {was} already: `host disable` first")).into());
            }
        }
        let Wanted { law, rate_max, any_rtt, senders } = *wanted;
        let any_rtt = any_rtt.into();
        let settings = Settings { law: law.number, rate_max, any_rtt, senders, ..self.settings()? };
        self.map("settings")?.update(&0u32.to_ne_bytes(), settings.bytes(), MapFlags::ANY)?;
        Ok(())
    }

    /// A pinned map.
    pub fn map(&self, pin: &str) -> Result<MapHandle> {
        MapHandle::from_pinned_path(self.at(pin)).with_context(|| self.at(pin).display().to_string())
    }

    /// The settings that the programs use.
    pub fn settings(&self) -> Result<Settings> {
        let bytes = self.map("settings")?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        if bytes.len() != size_of::<Settings>() {
            bail!(
                "enabled by another version: `host disable` with that one, or with this one, and enable again"
            );
        }
        // SAFETY: the size is the same, and any bytes are valid.
        Ok(unsafe { bytes.as_ptr().cast::<Settings>().read_unaligned() })
    }

    /// Reads the counters; keys are those of `enum fs_counter`.
    pub fn counters(&self) -> Result<Counters> {
        let map = self.map("counters")?;
        let read = |which: u32| -> Result<u64> {
            let bytes = map.lookup(&which.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            Ok(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
        };
        Ok(Counters {
            answered: read(0)?,
            left_no_peer: read(1)?,
            left_no_router: read(2)?,
            left_rtt_doubled: read(3)?,
            left_loss: read(4)?,
            left_silent: read(5)?,
            left_other_law: read(7)?,
            left_blackhole: read(9)?,
            left_untold: read(10)?,
            acks_repaired: read(6)?,
        })
    }

    /// The last ends of connections that left, oldest first.
    pub fn departures(&self) -> Result<Vec<Departure>> {
        let bytes = |map: &MapHandle, key: u64| -> Result<Vec<u8>> {
            let key = u32::try_from(key)?.to_ne_bytes();
            map.lookup(&key, MapFlags::ANY)?.context("a place of an array")
        };
        let all = bytes(&self.map("counters")?, 8)?;
        let all = u64::from_ne_bytes(all.try_into().unwrap_or_default());
        let map = self.map("departures")?;
        (all.saturating_sub(DEPARTURES)..all)
            .map(|number| {
                let entry = bytes(&map, number % DEPARTURES)?;
                let (at, rest) = entry.split_first_chunk().context("a departure")?;
                let (why, ports) = rest.split_first_chunk().context("a departure")?;
                let why = u32::from_ne_bytes(*why);
                Ok(Departure {
                    at_s: u64::from_ne_bytes(*at) as f64 * 1e-6,
                    cause: CAUSES
                        .iter()
                        .find(|(number, _)| *number == why)
                        .map_or("unknown", |(_, name)| name),
                    local_port: u16::from_ne_bytes([ports[0], ports[1]]),
                    remote_port: u16::from_ne_bytes([ports[2], ports[3]]),
                })
            })
            .collect()
    }

    /// Saves a namespace's default congestion control, unless one is saved already.
    pub fn keep_default(&self, namespace: u64, was: &str) -> Result<()> {
        let value = padded::<16>(was);
        match self.map("defaults")?.update(&namespace.to_ne_bytes(), &value, MapFlags::NO_EXIST) {
            Err(e) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists => Ok(()),
            other => other.context("keeping the default congestion control"),
        }
    }

    /// The saved default congestion control of a namespace.
    pub fn kept_default(&self, namespace: u64) -> Option<String> {
        let value = self.map("defaults").ok()?.lookup(&namespace.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(text(&value))
    }

    fn interface_pin(&self, namespace: u64, index: u32) -> PathBuf {
        self.at(&format!("if-{namespace}-{index}"))
    }

    /// Enables the option on the sockets that listen in this namespace.
    pub fn tell_listeners(&self) -> Result<()> {
        let program = Program::fd_from_pinned_path(self.at("listeners"))?;
        // SAFETY: descriptors are open, and no options are given; each result is owned once.
        let mut walk = unsafe {
            let link = libbpf_sys::bpf_link_create(program.as_raw_fd(), 0, TRACE_ITER, std::ptr::null());
            let link = checked(link).context("a walk over sockets")?;
            File::from(checked(libbpf_sys::bpf_iter_create(link.as_raw_fd())).context("a walk over sockets")?)
        };
        std::io::copy(&mut walk, &mut std::io::sink()).context("telling those who listen")?;
        Ok(())
    }

    /// Attaches the egress program to these interfaces too.
    pub fn attach_interfaces(&self, interfaces: &[Interface]) -> Result<()> {
        self.attach_as(interfaces, "egress", "if", TCX_EGRESS)
    }

    /// Attaches a pinned program to these interfaces too, at `hook`; its name begins the links' pins.
    pub fn attach(&self, interfaces: &[Interface], program: &str, hook: u32) -> Result<()> {
        self.attach_as(interfaces, program, program, hook)
    }

    fn attach_as(&self, interfaces: &[Interface], program: &str, links: &str, hook: u32) -> Result<()> {
        let namespace = place::namespace()?;
        let program = Program::fd_from_pinned_path(self.at(program))?;
        for interface in interfaces {
            let pin = self.at(&format!("{links}-{namespace}-{}", interface.index));
            // Inode numbers of namespaces are reused; an old namespace's links then have no interface.
            if Link::open(&pin).and_then(|l| l.info()).is_ok_and(|i| is_attached(&i)) {
                continue;
            }
            let _ = fs::remove_file(&pin);
            let refused =
                |e| Refusal(format!("interface {} does not take a tcx program: {e}", interface.name));
            let link = tcx(&program, interface.index, hook).map_err(refused)?;
            pin_fd(&link, &pin).with_context(|| pin.display().to_string())?;
        }
        Ok(())
    }

    /// Names of this namespace's interfaces with the egress program.
    pub fn interfaces(&self) -> Result<Vec<String>> {
        let namespace = place::namespace()?;
        let all = place::all_interfaces()?;
        Ok(all
            .into_iter()
            .filter(|i| self.interface_pin(namespace, i.index).exists())
            .map(|i| i.name)
            .collect())
    }

    /// Detaches and unpins the pins that `which` selects by name.
    pub fn remove_pins(&self, which: impl Fn(&str) -> bool) -> Result<()> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            // The directory of routers' pins stays.
            if entry.file_type()?.is_dir() || !which(&entry.file_name().to_string_lossy()) {
                continue;
            }
            // Detaches first, because another process may hold the link open. Maps and programs are not
            // links, and a struct_ops link ends with its last holder.
            if let Ok(link) = Link::open(&path) {
                let _ = link.detach();
            }
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Detaches and unpins everything.
    pub fn remove(&self) -> Result<()> {
        if !self.any() {
            return Ok(());
        }
        self.remove_pins(|_| true)?;
        match fs::remove_dir(&self.directory) {
            Err(e) if !matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
                return Err(e).with_context(|| self.directory.display().to_string());
            }
            _ => {}
        }
        // The kernel unregisters the congestion controls a moment later.
        for law in LAWS {
            let name = law.congestion_control(&self.name);
            let mut waits = 0;
            while place::available(&name)? {
                if waits == 300 {
                    bail!("the congestion control {name} is still registered: another process holds it");
                }
                waits += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }
}

fn is_attached(info: &libbpf_rs::query::LinkInfo) -> bool {
    matches!(&info.info, libbpf_rs::query::LinkTypeInfo::Tcx(t) if t.ifindex != 0)
}

fn tcx(program: &OwnedFd, index: u32, hook: u32) -> std::io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        flags: BPF_F_BEFORE,
        ..Default::default()
    };
    // SAFETY: descriptors are open, and options say how long they are; the result is owned once.
    unsafe {
        checked(libbpf_sys::bpf_link_create(program.as_raw_fd(), index as i32, hook, &raw const options))
    }
}

/// Turns a libbpf result into an owned descriptor, or into the error that it encodes.
unsafe fn checked(fd: i32) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: as the caller says.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn pin_fd(fd: &OwnedFd, path: &Path) -> std::io::Result<()> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: a descriptor that is open and a string that ends in NUL.
    let done = unsafe { libbpf_sys::bpf_obj_pin(fd.as_fd().as_raw_fd(), name.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::from_raw_os_error(-done)) }
}

/// The text, cut and zero-padded to `N` bytes, of which the last is zero.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let len = text.len().min(N - 1);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

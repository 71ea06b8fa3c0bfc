//! `router share`: runs the simulator's law of sharing a link on the counts of the kernel's program.
//!
//! This is a daemon instead of a kernel timer, so that it can run the simulator's own law. Its periods are
//! 200 ms or more, so an ordinary thread's lateness does not matter. When it stops, the link keeps its last
//! division.

use super::pins::{self, pinned_config};
use super::program::{bytes_of, types, value_of};
use super::staged::{is_on, settled};
use super::{Interface, htb, privileges};
use crate::bpffs;
use crate::law::{ns, q16, q32};
use crate::netlink::Socket;
use crate::path::monotonic_ns;
use crate::refusal::Refusal;
use anyhow::Context;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::{CLASSES, OTHER, OWN, Params};
use flowstamp_laws::{Rate, Ratio, Time};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

/// The interface, and the speed of adaptation.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    interface: Interface,
    /// Largest change of the weights in one update.
    #[arg(long, default_value_t = Params::default().theta.get())]
    theta: f64,
    /// Shortest time between two updates. The law's stability rule may lengthen it.
    #[arg(long, default_value = "200ms")]
    min_interval: Time,
    /// Longest time between two updates.
    #[arg(long, default_value = "2s")]
    max_interval: Time,
}

/// Time for which a decision stays valid after its period, in nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;

/// Time after which the law restarts its clock, which would overflow after 213 days.
const LONGEST: Time = Time::from_secs(100 * 24 * 3600);

/// Total counts of each class, summed over all CPUs.
fn counted(classes: &MapHandle) -> anyhow::Result<[types::fs_class; CLASSES]> {
    let mut all = [types::fs_class::default(); CLASSES];
    for (key, sum) in (0u32..).zip(&mut all) {
        let cpus = classes.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)?.context("no such class")?;
        for one in cpus.iter().filter_map(|bytes| value_of::<types::fs_class>(bytes)) {
            sum.bytes += one.bytes;
            sum.compared += one.compared;
            sum.found += one.found;
        }
    }
    Ok(all)
}

/// The state of the split with a constant weight, before the law's first update.
pub fn state(capacity: f64, own_weight: f64) -> types::fs_share {
    types::fs_share {
        own_least_q16: q16(capacity * own_weight),
        own_weight_q32: q32(own_weight),
        ..Default::default()
    }
}

fn state_of(split: &Split, capacity: f64, until_ns: u64, updates: u64) -> types::fs_share {
    let mut state = state(capacity, split.weights()[OWN]);
    split.variables(&mut |name, value| match name {
        "own_flows" => state.flows_q16[OWN] = q16(value),
        "other_flows" => state.flows_q16[OTHER] = q16(value),
        "own_input_bps" => state.input_q16[OWN] = q16(value / 8.0),
        "other_input_bps" => state.input_q16[OTHER] = q16(value / 8.0),
        _ => {}
    });
    state.other_q16 = state.input_q16[OTHER];
    state.interval_ns = ns(split.interval());
    state.until_ns = until_ns;
    state.updates = updates;
    state
}

/// One interface's classes.
struct Shared {
    directory: File,
    ifindex: u32,
    socket: Socket,
    classes: MapHandle,
    share: MapHandle,
    capacity: f64,
    buffer_bytes: u64,
}

impl Shared {
    /// Opens the pinned maps, and locks out other instances.
    fn open(interface: &Interface) -> anyhow::Result<Self> {
        bpffs::check_owners(&interface.pins.root)?;
        let directory = settled(&pins::directory(interface));
        let name = &interface.name;
        let Some(config) = pinned_config(&directory).filter(|_| is_on(&directory, None)) else {
            let text = format!("{name} has no router: run `router attach --share htb` first");
            return Err(Refusal(text).into());
        };
        if config.share == 0 {
            let text = format!("{name} has no classes: run `router attach` again, with --share htb");
            return Err(Refusal(text).into());
        }
        let classes = pins::open_to_read(&directory.join("classes"))?;
        let share = MapHandle::from_pinned_path(directory.join("share"))?;
        let held = File::open(&directory)?;
        // SAFETY: a descriptor that is open.
        if unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return Err(Refusal(format!("another `router share` runs for {name}")).into());
        }
        pins::enter(interface)?;
        let (ifindex, _) = pins::look_up(name)?;
        let socket = Socket::open()?;
        if htb::root(&socket, ifindex)? != htb::Root::Ours {
            let text = format!("the classes of {name} have been taken away: run `router attach` again");
            return Err(Refusal(text).into());
        }
        let capacity = config.link_rate_q16 as f64 / 65536.0;
        let buffer_bytes = config.buffer_bytes;
        Ok(Self { directory: held, ifindex, socket, classes, share, capacity, buffer_bytes })
    }

    fn apply(&self, split: &Split, state: &types::fs_share) -> anyhow::Result<()> {
        let htb = htb::Split {
            capacity: self.capacity,
            weights: split.weights(),
            shares: split.shares(),
            buffer_bytes: self.buffer_bytes,
        };
        htb::change(&self.socket, self.ifindex, &htb)?;
        self.share.update(&0u32.to_ne_bytes(), bytes_of(state), MapFlags::ANY)?;
        Ok(())
    }
}

/// Runs `router share` until the router is detached.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let params = Params {
        theta: Ratio::new(arguments.theta),
        min_interval: Some(arguments.min_interval),
        max_interval: arguments.max_interval,
        ..Params::default()
    };
    let refuse = |(name, why): (&str, String)| Refusal(format!("--{} {why}", name.replace('_', "-")));
    params.check().map_err(refuse)?;
    let interface = &arguments.interface;
    let shared = Shared::open(interface)?;
    privileges::keep_only(&[privileges::CAP_NET_ADMIN])?;
    let before = shared.share.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    let before: types::fs_share = before.and_then(|bytes| value_of(&bytes)).context("no split")?;
    let own_weight = before.own_weight_q32 as f64 / 4_294_967_296.0;
    let mut updates = before.updates;
    let mut seen = counted(&shared.classes)?;
    let resume = |own_weight| {
        Split::resume(&params, Rate::from_bytes_per_sec(shared.capacity), own_weight, Time::ZERO)
    };
    // The law's time starts here, because the machine's uptime may exceed its range.
    let mut began_ns = monotonic_ns();
    let mut split = resume(own_weight);
    let mut next_ns = began_ns + ns(split.interval());
    println!("sharing {}", interface.name);
    loop {
        std::thread::sleep(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())));
        if pins::is_gone(&shared.directory) {
            break;
        }
        let all = counted(&shared.classes)?;
        for (class, (now, seen)) in all.iter().zip(&seen).enumerate() {
            split.on_counts(
                class,
                now.bytes - seen.bytes,
                now.compared - seen.compared,
                now.found - seen.found,
            );
        }
        seen = all;
        let now = Time::from_nanos(monotonic_ns() - began_ns);
        next_ns = began_ns + ns(split.on_timer(now));
        updates += 1;
        let state = state_of(&split, shared.capacity, next_ns + GRACE_NS, updates);
        if let Err(error) = shared.apply(&split, &state) {
            // `router detach` removes the classes before the pins, so an error may mean that it is running.
            std::thread::sleep(Duration::from_millis(500));
            if pins::is_gone(&shared.directory) {
                break;
            }
            return Err(error.context(format!("the classes of {} cannot be set", interface.name)));
        }
        if now > LONGEST {
            (began_ns, split) = (began_ns + ns(now), resume(split.weights()[OWN]));
        }
    }
    println!("{} is a router no more", interface.name);
    Ok(ExitCode::SUCCESS)
}

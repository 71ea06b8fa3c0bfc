//! `router attach` and `router detach`.

use super::pins::{self, pinned_config};
use super::program::{self, LinkConfig, Share, bytes_of, load, start};
use super::{Interface, htb, metrics, scone, share, sight, staged};
use crate::bpffs;
use crate::law::{self, Law};
use crate::netlink::Socket;
use crate::refusal::Refusal;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::{Bytes, Rate, Time};
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

/// The interface, and the law on it.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    interface: Interface,
    /// The law: rcp, xcp, vcp, xcp-b or abc.
    #[arg(long, value_name = "LAW", value_parser = law::parse_router)]
    // With an option of SCONE's alone, clap asks for --scone, not for a law.
    #[arg(required_unless_present_any = ["scone", "scone_rate", "scone_map", "scone_least", "scone_enforce"])]
    law: Option<&'static Law>,
    /// Capacity of the link: its shaper's or device's rate. Not for xcp-b, which is for links of unknown
    /// rate.
    #[arg(long, requires = "law")]
    rate: Option<Rate>,
    /// A parameter of the law, as in a scenario's `router`, such as alpha=0.4 or max_interval=20ms; can be
    /// repeated. Parameters that the kernel's law does not support are refused.
    #[arg(long, value_name = "KEY=VALUE", requires = "law")]
    set: Vec<String>,
    /// Target utilisation: RCP's `eta`, VCP's `gamma`. Keep it below 1, because a shaper's rate and a law's
    /// estimate never agree exactly [default: 0.95].
    #[arg(long, requires = "law")]
    eta: Option<f64>,
    /// Shortest interval between decisions: XCP's `min_interval` [default: 1ms].
    #[arg(long, requires = "law")]
    min_interval: Option<Time>,
    /// Received packets share the interface's medium, as on a radio. Data packets are then also counted and
    /// stamped when they are received (xcp-b).
    #[arg(long, requires = "law")]
    half_duplex: bool,
    /// Make classes for the law's own traffic and for other traffic, limited together to --rate. Under xcp,
    /// flows over QUIC are other traffic and get no feedback.
    #[arg(long, value_name = "SCHEDULER", requires = "law")]
    share: Option<Scheduler>,
    /// Initial share of the own class, which `router share` adapts.
    #[arg(long, requires = "share", default_value_t = 0.5)]
    own_share: f64,
    /// Buffer of both classes together [default: 100 ms at the link's rate].
    #[arg(long, requires = "share", value_name = "SIZE")]
    buffer: Option<Bytes>,
    #[command(flatten)]
    scone: scone::Options,
    /// After attaching, serve Prometheus at this address and port for all routers, until stopped; see `router status`.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
}

/// The scheduler that holds classes to their shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scheduler {
    /// The kernel's hierarchical token bucket.
    Htb,
}

/// Default buffer: this time at the link's rate, and at least ten large packets on slow links.
const DEFAULT_BUFFER: Time = Time::from_millis(100);
const LEAST_DEFAULT_BUFFER: u64 = 15_140;

pub fn attach(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interface = &arguments.interface;
    let law = arguments.law.map(|law| Ok::<_, Refusal>((law, wanted(arguments, law)?))).transpose()?;
    let advice = arguments.scone.wanted(arguments.law, arguments.rate)?;
    let listener = arguments.metrics.map(metrics::listen).transpose()?;
    let lock = pins::prepare(&interface.pins.root)?;
    let done = law
        .map_or(Ok(()), |(law, wanted)| attach_law(interface, law, wanted, advice.is_some()))
        .and_then(|()| advice.map_or(Ok(()), |advice| scone::attach(interface, &advice)));
    if done.is_err() {
        pins::tidy(&interface.pins.root);
    }
    drop(lock);
    done?;
    listener.map_or(Ok(ExitCode::SUCCESS), |listener| metrics::serve(listener, &interface.pins.root))
}

/// The requested router. Reports wrong arguments before anything changes.
fn wanted(arguments: &Arguments, law: &'static Law) -> Result<LinkConfig, Refusal> {
    let law::Given { spec, eta, min_interval } =
        law::given(law, &arguments.set, arguments.eta, arguments.min_interval)?;
    let name = law.name;
    if arguments.share.is_some() && law.blind {
        let text = format!("--share htb divides a rate, which {name} is not told; leave it out, or use xcp");
        return Err(Refusal(text));
    }
    if arguments.half_duplex && !law.blind {
        let text =
            format!("--half-duplex: {name} is told the rate of what leaves; leave it out, or use xcp-b");
        return Err(Refusal(text));
    }
    let wanted = LinkConfig {
        half_duplex: arguments.half_duplex,
        law: spec,
        rate: arguments.rate,
        limit: None,
        eta,
        min_interval,
        share: arguments.share.map(|Scheduler::Htb| Share {
            own_weight: arguments.own_share,
            buffer: arguments.buffer.unwrap_or_else(|| {
                let rate = arguments.rate.unwrap_or(Rate::ZERO);
                Bytes::new((rate.bytes_in(DEFAULT_BUFFER) as u64).max(LEAST_DEFAULT_BUFFER))
            }),
        }),
    };
    LinkConfig { limit: Some(Limit::Bytes(1)), ..wanted.clone() }.translate(1, 14)?;
    Ok(wanted)
}

/// Attaches the router; the caller holds the lock on the directory of pins. `advised` says that a SCONE element follows.
fn attach_law(interface: &Interface, law: &Law, mut wanted: LinkConfig, advised: bool) -> anyhow::Result<()> {
    pins::enter(interface)?;
    let (ifindex, link_bytes) = pins::look_up(&interface.name)?;
    let directory = pins::directory(interface);
    let socket = Socket::open()?;
    if law.blind {
        let root = htb::root(&socket, ifindex)?;
        if let Some(doubt) = sight::look(&interface.name, &root, interface.netns.is_some())? {
            println!("{doubt}");
        }
        wanted.limit = htb::limit(&socket, ifindex)?;
    }
    let (config, first) = wanted.translate(ifindex, link_bytes)?;
    let owned = owns_classes(&directory);
    let interrupted = staged::recover(&directory)?;
    let old = pinned_config(&directory);
    let root = match htb::root(&socket, ifindex)? {
        // Our handles, but no pins of ours: something else made these classes.
        root if root.is_ours() && !owned => htb::Root::Other("htb".into()),
        root => root,
    };
    let classes_stand = root.is_ours() == wanted.share.is_some() && root != htb::Root::Part;
    if !interrupted
        && old.is_some_and(|c| bytes_of(&c) == bytes_of(&config))
        && classes_stand
        && staged::is_on(&directory, Some(ifindex))
    {
        return Ok(());
    }
    htb::check(&interface.name, &root, wanted.share.is_some())?;
    let mut object = MaybeUninit::uninit();
    let mut skeleton = load(&mut object, &config, &first, false)?;
    end_police(interface, advised)?;
    let stood = staged::is_on(&directory, Some(ifindex));
    let done = stage(&staged::beside(&directory), &mut skeleton, &wanted)
        .and_then(|()| Ok(arrange(&interface.name, &socket, ifindex, &root, &wanted)?))
        .and_then(|()| put_on(interface, &directory, &mut skeleton, ifindex, &wanted))
        .and_then(|()| Ok(staged::exchange(&directory)?));
    if let Err(error) = done {
        // Restores the previous state as far as possible.
        if wanted.share.is_some() && !root.is_ours() {
            let _ = htb::remove(&socket, ifindex);
        }
        let _ = if stood { staged::recover(&directory) } else { staged::discard(&directory).map(|()| true) };
        return Err(error);
    }
    if root.is_ours() && wanted.share.is_none() {
        htb::remove(&socket, ifindex)?;
        // The kernel's default root exists only from here on, so it is checked now.
        if let Err(refusal) = htb::check(&interface.name, &htb::root(&socket, ifindex)?, false) {
            pins::remove(&directory)?;
            let _ = staged::discard(&directory);
            return Err(refusal.into());
        }
    }
    // Removed last, because these pins say that the classes are ours.
    staged::discard(&directory)
}

/// Detaches the police, whose settings depend on the old router and which must run after the new one. Also ends advice that
/// comes from the old router.
fn end_police(interface: &Interface, advised: bool) -> anyhow::Result<()> {
    let policed = pins::of_police(interface);
    if policed.exists() {
        pins::remove(&policed)?;
        println!("the police of {} has ended: run `router police` again", interface.name);
    }
    scone::end(interface, advised)
}

/// Whether pins say that the interface's classes are ours. Includes the pins of an `attach` that was killed.
fn owns_classes(directory: &Path) -> bool {
    let owns = |directory: &Path| pinned_config(directory).is_some_and(|c| c.share != 0);
    owns(directory) || owns(&staged::beside(directory))
}

/// Creates or changes the requested classes. Until the router is complete, the staged pins say that the
/// classes are ours.
fn arrange(
    name: &str,
    socket: &Socket,
    ifindex: u32,
    root: &htb::Root,
    wanted: &LinkConfig,
) -> Result<(), Refusal> {
    let Some(share) = &wanted.share else { return Ok(()) };
    let weights = [share.own_weight, 1.0 - share.own_weight];
    let split = htb::Split {
        capacity: wanted.rate.unwrap_or(Rate::ZERO).bytes_per_sec(),
        weights,
        shares: weights,
        buffer_bytes: share.buffer.get(),
    };
    let made = match root {
        // Queued packets stay.
        htb::Root::Ours => htb::change_all(socket, ifindex, &split),
        htb::Root::Part => htb::remove(socket, ifindex).and_then(|()| htb::make(socket, ifindex, &split)),
        _ => htb::make(socket, ifindex, &split),
    };
    made.map_err(|error| {
        Refusal(format!("{name} cannot have classes ({error}); --share needs the queueing discipline htb"))
    })
}

/// Pins the law's maps in the directory `new`.
fn stage(new: &Path, skeleton: &mut program::RouterSkel<'_>, wanted: &LinkConfig) -> anyhow::Result<()> {
    if let Some(shared) = &wanted.share {
        let rate = wanted.rate.unwrap_or(Rate::ZERO);
        let state = share::state(rate.bytes_per_sec(), shared.own_weight);
        skeleton.maps.share.update(&0u32.to_ne_bytes(), bytes_of(&state), MapFlags::ANY)?;
    }
    pins::create(new)?;
    let maps = &mut skeleton.maps;
    maps.link_state.pin(new.join("state"))?;
    maps.sums.pin(new.join("sums"))?;
    maps.classes.pin(new.join("classes"))?;
    maps.share.pin(new.join("share"))?;
    maps.rodata.pin(new.join("config"))?;
    Ok(())
}

/// Starts the law and attaches its programs, in place of those pinned in `directory` if there are any.
fn put_on(
    interface: &Interface,
    directory: &Path,
    skeleton: &mut program::RouterSkel<'_>,
    ifindex: u32,
    wanted: &LinkConfig,
) -> anyhow::Result<()> {
    start(skeleton, ifindex)?;
    let programs = &skeleton.progs;
    let put = |program: &libbpf_rs::ProgramMut<'_>, pin| -> anyhow::Result<()> {
        if staged::take_over(directory, pin, ifindex, program.as_fd())? {
            return Ok(());
        }
        // SAFETY: a loaded program.
        let link = unsafe { program::attach_tcx(program.as_libbpf_object(), ifindex, program::Place::Last) };
        let refused = |e| Refusal(format!("cannot attach to {} ({e}); it needs Linux 6.6", interface.name));
        Ok(link.map_err(refused)?.pin(staged::beside(directory).join(pin))?)
    };
    put(&programs.fs_router, pins::LINK)?;
    if wanted.half_duplex {
        put(&programs.fs_router_in, pins::LINK_IN)?;
    }
    Ok(())
}

/// Removes the classes that `attach` made. If the interface is gone, so are its classes.
fn remove_classes(interface: &Interface) -> anyhow::Result<()> {
    if !owns_classes(&pins::directory(interface)) {
        return Ok(());
    }
    if pins::enter(interface).is_err() {
        return Ok(());
    }
    let Ok((ifindex, _)) = pins::look_up(&interface.name) else { return Ok(()) };
    let socket = Socket::open()?;
    if htb::root(&socket, ifindex)?.is_ours() {
        htb::remove(&socket, ifindex)?;
    }
    Ok(())
}

/// Runs `router detach`, which also works for an interface that is gone.
pub fn detach(interface: &Interface) -> anyhow::Result<ExitCode> {
    bpffs::check_owners(&interface.pins.root)?;
    let directory = pins::directory(interface);
    let scone = pins::of_scone(interface);
    let directories =
        [pins::of_police(interface), staged::beside(&scone), scone, staged::beside(&directory), directory];
    // Creates nothing if there is nothing to remove.
    if !directories.iter().any(|d| d.exists()) {
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return Err(
                Refusal("the router needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON".into()).into()
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let lock = pins::prepare(&interface.pins.root)?;
    remove_classes(interface)?;
    for directory in directories.iter().filter(|d| d.exists()) {
        pins::remove(directory)?;
    }
    pins::tidy(&interface.pins.root);
    drop(lock);
    Ok(ExitCode::SUCCESS)
}

//! `router attach` and `router detach`.

use super::program::{self, Law, Link, bytes_of, load, start, types, value_of};
use super::{Interface, pins, police};
use crate::refusal::Refusal;
use flowstamp_laws::{Rate, Time};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags, MapHandle, MapMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::ExitCode;

/// Which interface, and the law on it.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    interface: Interface,
    /// The law.
    #[arg(long, value_name = "rcp|xcp", value_parser = crate::law::parse::<Law>)]
    law: Law,
    /// What the link carries; its shaper's or device's rate.
    #[arg(long)]
    rate: Rate,
    /// Share of the rate that is aimed at. Below 1, as a shaper's rate and a law's estimate never agree quite.
    #[arg(long, default_value_t = 0.95)]
    eta: f64,
    /// Gain on spare capacity.
    #[arg(long)]
    alpha: Option<f64>,
    /// Gain on the queue.
    #[arg(long)]
    beta: Option<f64>,
    /// XCP: share of the traffic that is shuffled every average RTT.
    #[arg(long)]
    gamma: Option<f64>,
    /// The shortest interval between decisions.
    #[arg(long, default_value = "1ms")]
    min_interval: Time,
    /// RCP: the first rate, as a share of the link's.
    #[arg(long)]
    initial_rate: Option<f64>,
    /// The average RTT until a packet carries one.
    #[arg(long)]
    initial_rtt: Option<Time>,
}

/// Whether the link pinned in `directory` still is on interface `ifindex`: a device that went away takes it off.
pub fn is_on(directory: &Path, ifindex: Option<u64>) -> bool {
    libbpf_rs::Link::open(directory.join("link")).and_then(|l| l.info()).is_ok_and(|info| match info.info {
        LinkTypeInfo::Tcx(tcx) => tcx.ifindex != 0 && ifindex.is_none_or(|i| i == u64::from(tcx.ifindex)),
        _ => false,
    })
}

/// What the router pinned in `directory` was attached with.
pub fn pinned_config(directory: &Path) -> Option<types::fs_config> {
    let map = MapHandle::from_pinned_path(directory.join("config")).ok()?;
    value_of(&map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??)
}

/// Does it.
pub fn attach(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interface = &arguments.interface;
    let wanted = Link {
        law: arguments.law,
        rate: arguments.rate,
        eta: arguments.eta,
        alpha: arguments.alpha,
        beta: arguments.beta,
        gamma: arguments.gamma,
        min_interval: arguments.min_interval,
        initial_rate: arguments.initial_rate,
        initial_rtt: arguments.initial_rtt,
    };
    // What was asked wrongly is said before anything is touched.
    wanted.translate(1, 14)?;
    let _lock = pins::prepare(&interface.pins.root)?;
    let done = attach_prepared(interface, &wanted);
    if done.is_err() {
        pins::tidy(&interface.pins.root);
    }
    done
}

/// The same, with a directory for pins, and nobody else at it.
fn attach_prepared(interface: &Interface, wanted: &Link) -> anyhow::Result<ExitCode> {
    pins::enter(interface)?;
    let (ifindex, link_bytes) = pins::look_up(&interface.name)?;
    let (config, first) = wanted.translate(ifindex, link_bytes)?;
    let directory = pins::directory(interface);
    if directory.exists() {
        let same = pinned_config(&directory).is_some_and(|c| bytes_of(&c) == bytes_of(&config));
        if same && is_on(&directory, Some(u64::from(ifindex))) {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut object = MaybeUninit::uninit();
    let mut skeleton = load(&mut object, &config, &first, false)?;
    // All that the kernel may refuse has been asked; an earlier router gives way.
    if directory.exists() {
        pins::remove(&directory)?;
    }
    start(&skeleton, ifindex)?;
    // SAFETY: a loaded program.
    let mut link = unsafe { program::attach_egress(skeleton.progs.fs_router.as_libbpf_object(), ifindex) }
        .map_err(|e| Refusal(format!("cannot attach to {} ({e}); it needs Linux 6.6", interface.name)))?;
    adopt(
        &directory,
        &mut link,
        &mut [
            (&mut skeleton.maps.link_state, "state"),
            (&mut skeleton.maps.sums, "sums"),
            (&mut skeleton.maps.rodata, "config"),
        ],
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Pins a link and its maps in `directory`: all of them, or nothing is left.
pub fn adopt(
    directory: &Path,
    link: &mut libbpf_rs::Link,
    maps: &mut [(&mut MapMut<'_>, &str)],
) -> anyhow::Result<()> {
    std::fs::create_dir(directory)?;
    let pinned = maps
        .iter_mut()
        .try_for_each(|(map, name)| map.pin(directory.join(name)))
        .and_then(|()| link.pin(directory.join("link")));
    if let Err(error) = pinned {
        let _ = pins::remove(directory);
        return Err(error.into());
    }
    Ok(())
}

/// Undoes it; also for an interface that is gone.
pub fn detach(interface: &Interface) -> anyhow::Result<ExitCode> {
    let directories = [police::directory(interface), pins::directory(interface)];
    // Nothing is created in order to take something away.
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
    for directory in directories.iter().filter(|d| d.exists()) {
        pins::remove(directory)?;
    }
    pins::tidy(&interface.pins.root);
    drop(lock);
    Ok(ExitCode::SUCCESS)
}

//! The classes of an interface whose link is shared: two leaves of an `htb` root, which together are limited
//! to the link's rate.
//!
//! ```text
//!   4653: htb, default 2        "FS"
//!    \_ 4653:ff                 rate C
//!        |_ 4653:1   own        rate C w_R, ceil C      4654: bfifo
//!        \_ 4653:2   other      rate C w_T, ceil C      4655: bfifo
//! ```
//!
//! `router share` changes the rates and limits. bpf/router.bpf.c has the same handles.

use crate::netlink::{
    Object, RTM_DELQDISC, RTM_DELTCLASS, RTM_GETTCLASS, RTM_NEWQDISC, RTM_NEWTCLASS, Socket, TC_H_INGRESS,
    TC_H_ROOT, TCA_KIND, TCA_OPTIONS, attribute, push_attribute, u32_at,
};
use crate::refusal::Refusal;
use flowstamp_laws::Rate;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::share::{CLASSES, OWN};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const ROOT: u32 = 0x4653_0000;
const LINK: u32 = ROOT | 0xff;
const CLASS: [u32; CLASSES] = [ROOT | 1, ROOT | 2];
const LEAF: [u32; CLASSES] = [0x4654_0000, 0x4655_0000];

/// linux/pkt_sched.h.
const TCA_TBF_PARMS: u16 = 1;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const HTB_VERSION: u32 = 3;
const LINKLAYER_ETHERNET: u8 = 1;
/// Unit of times in requests, in nanoseconds.
const TICK_NS: f64 = 64.0;

/// Size of a full frame with two VLAN tags.
const FRAME_BYTES: f64 = 1522.0;

/// Roots whose own backlog is always zero, because their children or per-CPU queues count it.
pub const BLIND: [&str; 4] = ["mq", "mqprio", "taprio", "pfifo_fast"];

/// The root queueing discipline of an interface.
#[derive(Debug, PartialEq, Eq)]
pub enum Root {
    /// The kernel's default, with its kind.
    Default(String),
    /// The classes of this module.
    Ours,
    /// An incomplete set of them, because some were removed or `attach` was killed.
    Part,
    /// Another program's or the user's, with its kind.
    Other(String),
}

impl Root {
    /// Whether this module made it. It may then be removed if pins say that it is ours.
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Ours | Self::Part)
    }
}

/// Reads the root queueing discipline of an interface.
pub fn root(socket: &Socket, index: u32) -> io::Result<Root> {
    let (mut kind, mut handle, mut leaves) = (String::new(), 0, 0);
    socket.qdiscs(index, |qdisc| {
        if qdisc.parent == TC_H_ROOT {
            kind = qdisc.kind().to_owned();
            handle = qdisc.handle;
        } else if CLASS.contains(&qdisc.parent) && LEAF.contains(&qdisc.handle) {
            leaves += 1;
        }
    })?;
    Ok(match handle {
        ROOT if kind == "htb" && leaves == CLASSES => Root::Ours,
        ROOT if kind == "htb" => Root::Part,
        // Every explicitly created one has a handle.
        0 => Root::Default(kind),
        _ => Root::Other(kind),
    })
}

/// The maximum queue of an interface, if its queueing disciplines have one: the limit of a FIFO or token
/// bucket at the root, or of the only such leaf. Limits of other kinds (fq_codel) are not lengths that a
/// queue is meant to reach.
pub fn limit(socket: &Socket, index: u32) -> io::Result<Option<Limit>> {
    let (mut of_root, mut of_leaves) = (None, Vec::new());
    socket.qdiscs(index, |qdisc| {
        let limit = limit_of(qdisc.kind(), attribute(qdisc.attributes, TCA_OPTIONS).unwrap_or_default());
        if qdisc.parent == TC_H_ROOT {
            of_root = limit;
        } else if qdisc.parent != TC_H_INGRESS {
            of_leaves.push(limit);
        }
    })?;
    Ok(of_root.or(if let [leaf] = of_leaves[..] { leaf } else { None }))
}

fn limit_of(kind: &str, options: &[u8]) -> Option<Limit> {
    match kind {
        // `struct tc_fifo_qopt`.
        "bfifo" => u32_at(options, 0).map(|bytes| Limit::Bytes(bytes.into())),
        "pfifo" | "pfifo_head_drop" => u32_at(options, 0).map(Limit::Packets),
        // The limit in `struct tc_tbf_qopt`, after two `struct tc_ratespec`.
        "tbf" => u32_at(attribute(options, TCA_TBF_PARMS)?, 24).map(|bytes| Limit::Bytes(bytes.into())),
        _ => None,
    }
}

/// Whether the root is an `htb` with this class. Only such a class receives packets by their priority.
pub fn has_class(socket: &Socket, index: u32, class: u32) -> io::Result<bool> {
    let mut is_root = false;
    socket.qdiscs(index, |qdisc| {
        is_root |= qdisc.parent == TC_H_ROOT && qdisc.handle == class & 0xffff_0000 && qdisc.kind() == "htb";
    })?;
    if !is_root {
        return Ok(false);
    }
    match put(socket, RTM_GETTCLASS, 0, [index, class, 0], &[]) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        done => done.map(|()| true),
    }
}

/// Refuses a root that classes must not replace or, without classes, a root whose backlog always reads zero.
pub fn check(name: &str, root: &Root, wants_classes: bool) -> Result<(), Refusal> {
    match root {
        Root::Other(kind) if wants_classes => Err(Refusal(format!(
            "{name} has the queueing discipline {kind} at its root, which --share htb would replace; remove it first: tc qdisc \
             del dev {name} root"
        ))),
        Root::Default(kind) | Root::Other(kind) if !wants_classes && BLIND.contains(&kind.as_str()) => {
            Err(Refusal(format!(
                "{name} has the queueing discipline {kind} at its root, whose backlog always reads zero; give it one that \
                 counts, such as tbf at the link's rate, or attach with --share htb"
            )))
        }
        _ => Ok(()),
    }
}

/// The classes' parameters.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// C, bytes/s.
    pub capacity: f64,
    pub weights: [f64; CLASSES],
    /// Each class's expected share of the link, which is also its share of the buffer.
    pub shares: [f64; CLASSES],
    pub buffer_bytes: u64,
}

fn kind(name: &str, options: &[u8]) -> Vec<u8> {
    let mut attributes = Vec::new();
    push_attribute(&mut attributes, TCA_KIND, &[name.as_bytes(), &[0]].concat());
    push_attribute(&mut attributes, TCA_OPTIONS, options);
    attributes
}

/// `struct tc_htb_opt` of a class with a guaranteed `rate`, in bytes/s, and up to `ceil` if others leave
/// capacity.
fn class(rate: f64, ceil: f64) -> Vec<u8> {
    let rate = rate.max(1.0);
    let mut parameters = Vec::with_capacity(44);
    for rate in [rate, ceil] {
        parameters.extend([0, LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
        parameters.extend((rate.min(f64::from(u32::MAX)) as u32).to_ne_bytes());
    }
    // Burst: 1 ms at `ceil`, and at least two frames. Timers need that much at high rates, and no more.
    for rate in [rate, ceil] {
        let burst = (ceil * 1e-3).max(2.0 * FRAME_BYTES);
        let ticks = burst / rate * 1e9 / TICK_NS;
        parameters.extend((ticks.min(f64::from(u32::MAX)) as u32).to_ne_bytes());
    }
    // Quantum, proportional to the rate, for sharing spare capacity.
    let quantum = (rate * 1e-3).clamp(FRAME_BYTES, 65_536.0) as u32;
    for number in [quantum, 0, 0] {
        parameters.extend(number.to_ne_bytes());
    }
    let mut options = Vec::new();
    push_attribute(&mut options, TCA_HTB_PARMS, &parameters);
    push_attribute(&mut options, TCA_HTB_RATE64, &(rate as u64).to_ne_bytes());
    push_attribute(&mut options, TCA_HTB_CEIL64, &(ceil as u64).to_ne_bytes());
    kind("htb", &options)
}

fn put(socket: &Socket, what: u16, flags: i32, ids: [u32; 3], attributes: &[u8]) -> io::Result<()> {
    let [index, handle, parent] = ids;
    socket.change(what, flags, &Object { index, handle, parent, attributes })
}

/// Sets both classes' rates and buffers; `flags` say whether to create them.
fn set(socket: &Socket, index: u32, split: &Split, flags: i32) -> io::Result<()> {
    for of in OWN..CLASSES {
        let options = class(split.capacity * split.weights[of], split.capacity);
        put(socket, RTM_NEWTCLASS, flags, [index, CLASS[of], LINK], &options)?;
        let limit = (split.buffer_bytes as f64 * split.shares[of]).max(2.0 * FRAME_BYTES) as u32;
        let fifo = kind("bfifo", &limit.to_ne_bytes());
        put(socket, RTM_NEWQDISC, flags, [index, LEAF[of], CLASS[of]], &fifo)?;
    }
    Ok(())
}

/// Attributes of a root whose default class is `default`.
fn init(default: u32) -> Vec<u8> {
    let mut global = Vec::new();
    for number in [HTB_VERSION, 10, default & 0xffff, 0, 0] {
        global.extend(number.to_ne_bytes());
    }
    let mut options = Vec::new();
    push_attribute(&mut options, TCA_HTB_INIT, &global);
    kind("htb", &options)
}

/// Creates the classes in place of the kernel's default. On failure, nothing stays.
pub fn make(socket: &Socket, index: u32, split: &Split) -> io::Result<()> {
    let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    put(socket, RTM_NEWQDISC, create, [index, ROOT, TC_H_ROOT], &init(CLASS[1]))?;
    let done =
        put(socket, RTM_NEWTCLASS, create, [index, LINK, ROOT], &class(split.capacity, split.capacity))
            .and_then(|()| set(socket, index, split, create));
    if done.is_err() {
        let _ = remove(socket, index);
    }
    done
}

const ONE_ROOT: u32 = 0x4657_0000;
const ONE_CLASS: u32 = ONE_ROOT | 1;

fn put_one(socket: &Socket, index: u32, rate: Rate, flags: i32) -> io::Result<()> {
    let rate = rate.bytes_per_sec();
    put(socket, RTM_NEWTCLASS, flags, [index, ONE_CLASS, ONE_ROOT], &class(rate, rate))
}

/// Creates a root with one class of this rate and a FIFO: a lab's bottleneck.
pub fn make_one(socket: &Socket, index: u32, rate: Rate, buffer_bytes: u64) -> io::Result<()> {
    let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    put(socket, RTM_NEWQDISC, create, [index, ONE_ROOT, TC_H_ROOT], &init(ONE_CLASS))?;
    put_one(socket, index, rate, create)?;
    let limit = buffer_bytes.min(u32::MAX.into()) as u32;
    put(socket, RTM_NEWQDISC, create, [index, 0x4658_0000, ONE_CLASS], &kind("bfifo", &limit.to_ne_bytes()))
}

/// Changes the rate of the lab's bottleneck.
pub fn change_one(socket: &Socket, index: u32, rate: Rate) -> io::Result<()> {
    put_one(socket, index, rate, 0)
}

/// The root of classes for flows of datagrams; unclassified packets bypass them.
pub const FLOWS_ROOT: u32 = 0x465a_0000;
/// Packets that may wait in a flow's class. A socket's buffer holds fewer.
const FLOW_PACKETS: u32 = 100_000;

/// Whether the root is that of [`make_flows`].
pub fn has_flows(socket: &Socket, index: u32) -> io::Result<bool> {
    let mut has = false;
    socket.qdiscs(index, |qdisc| has |= qdisc.parent == TC_H_ROOT && qdisc.handle == FLOWS_ROOT)?;
    Ok(has)
}

/// Creates the root of flows' classes in place of the kernel's default.
pub fn make_flows(socket: &Socket, index: u32) -> io::Result<()> {
    let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    put(socket, RTM_NEWQDISC, create, [index, FLOWS_ROOT, TC_H_ROOT], &init(0))
}

/// Creates a flow's class of `rate` bytes/s, and its FIFO.
pub fn make_flow(socket: &Socket, index: u32, minor: u16, rate: f64) -> io::Result<()> {
    let handle = FLOWS_ROOT | u32::from(minor);
    let create = libc::NLM_F_CREATE;
    put(socket, RTM_NEWTCLASS, create, [index, handle, FLOWS_ROOT], &class(rate, rate))?;
    put(socket, RTM_NEWQDISC, create, [index, 0, handle], &kind("pfifo", &FLOW_PACKETS.to_ne_bytes()))
}

/// Changes the rate of a flow's class.
pub fn put_flow(socket: &Socket, index: u32, minor: u16, rate: f64) -> io::Result<()> {
    put(socket, RTM_NEWTCLASS, 0, [index, FLOWS_ROOT | u32::from(minor), FLOWS_ROOT], &class(rate, rate))
}

/// Removes a flow's class.
pub fn remove_flow(socket: &Socket, index: u32, minor: u16) -> io::Result<()> {
    put(socket, RTM_DELTCLASS, 0, [index, FLOWS_ROOT | u32::from(minor), FLOWS_ROOT], &[])
}

/// Removes all flows' classes; the kernel then installs its default.
pub fn remove_flows(socket: &Socket, index: u32) -> io::Result<()> {
    put(socket, RTM_DELQDISC, 0, [index, FLOWS_ROOT, TC_H_ROOT], &[])
}

/// An rtnetlink socket in `namespace`, and the interface's index. The calling thread moves into the
/// namespace.
pub fn socket_in(namespace: &File, interface: &str) -> io::Result<(Socket, u32)> {
    let name = CString::new(interface)?;
    // SAFETY: the descriptor is open, the name ends in zero.
    let index = unsafe {
        if libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::if_nametoindex(name.as_ptr())
    };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((Socket::open()?, index))
}

/// Changes the rates and buffers of existing classes.
pub fn change(socket: &Socket, index: u32, split: &Split) -> io::Result<()> {
    set(socket, index, split, 0)
}

/// Like [`change`], and also changes their total rate.
pub fn change_all(socket: &Socket, index: u32, split: &Split) -> io::Result<()> {
    put(socket, RTM_NEWTCLASS, 0, [index, LINK, ROOT], &class(split.capacity, split.capacity))?;
    change(socket, index, split)
}

/// Removes the classes; the kernel then installs its default.
pub fn remove(socket: &Socket, index: u32) -> io::Result<()> {
    put(socket, RTM_DELQDISC, 0, [index, ROOT, TC_H_ROOT], &[])
}

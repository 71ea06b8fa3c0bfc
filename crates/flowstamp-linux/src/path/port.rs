//! One interface, whole frames in and out.
//!
//! | by | how | instant of arrival |
//! |---|---|---|
//! | AF_XDP | a veth's end; an XDP program hands frames to a socket whose rings lie in shared memory | the program's |
//! | AF_PACKET | a veth's end; a ring for what comes, `sendmmsg` for what goes | the kernel's |
//! | TAP | the host's interface itself is the device, its file the path's | that of its reading |

mod af_packet;
mod af_xdp;
mod tap;

use crate::refusal::Refusal;
use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;

/// How frames reach the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum By {
    /// An AF_XDP socket on a veth's end.
    AfXdp,
    /// A packet socket on a veth's end.
    AfPacket,
    /// A TAP device.
    Tap,
}

impl By {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AfXdp => "af_xdp",
            Self::AfPacket => "af_packet",
            Self::Tap => "tap",
        }
    }

    /// Why it cannot be had here, if so.
    pub fn missing(self) -> Option<io::Error> {
        match self {
            Self::AfXdp => af_xdp::Port::probe().err(),
            Self::AfPacket => None,
            Self::Tap => tap::Port::probe().err(),
        }
    }

    /// The first that is there.
    pub fn choose() -> Result<Self, Refusal> {
        [Self::AfXdp, Self::Tap].into_iter().find(|by| by.missing().is_none()).ok_or_else(|| {
            Refusal(
                "the path needs AF_XDP sockets (CONFIG_XDP_SOCKETS) or TAP devices (CONFIG_TUN), and neither is here"
                    .to_owned(),
            )
        })
    }
}

fn option<T>(socket: RawFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes of `value`.
    let done = unsafe { libc::setsockopt(socket, level, name, std::ptr::from_ref(value).cast(), size) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for what is on its way out of a socket, whatever the machine's own limit is.
fn send_buffer(socket: RawFd) -> io::Result<()> {
    option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(32i32 << 20))
}

/// An interface.
pub enum Port {
    AfXdp(Box<af_xdp::Port>),
    AfPacket(af_packet::Port),
    Tap(tap::Port),
}

impl Port {
    /// Opens the interface of this name in the thread's network namespace.
    pub fn open(by: By, name: &str) -> anyhow::Result<Self> {
        let port = match by {
            By::AfXdp => af_xdp::Port::open(name).map(|port| Self::AfXdp(Box::new(port))),
            By::AfPacket => af_packet::Port::open(name).map(Self::AfPacket),
            By::Tap => tap::Port::open(name).map(Self::Tap),
        };
        port.map_err(|error| Refusal(format!("the path's {} on {name}: {error}", by.name())).into())
    }

    /// What to wait on.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::AfXdp(port) => port.descriptor(),
            Self::AfPacket(port) => port.descriptor(),
            Self::Tap(port) => port.descriptor(),
        }
    }

    /// The next frame that came: appended to `into`, which is empty; when, in nanoseconds of the monotonic clock.
    /// A frame that was cut leaves `into` empty.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<Option<u64>> {
        match self {
            Self::AfXdp(port) => Ok(port.receive(into)),
            Self::AfPacket(port) => Ok(port.receive(into)),
            Self::Tap(port) => port.receive(into),
        }
    }

    /// Sends frames; returns how many of them have gone. What has not must be the first to be given again.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        match self {
            Self::AfXdp(port) => port.send(frames),
            Self::AfPacket(port) => port.send(frames),
            Self::Tap(port) => port.send(frames),
        }
    }

    /// Frames that the kernel had no room for since the last call.
    pub fn overruns(&mut self) -> u64 {
        match self {
            Self::AfXdp(port) => port.overruns(),
            Self::AfPacket(port) => port.overruns(),
            // What a TAP device has no room for it counts itself, in its own namespace.
            Self::Tap(_) => 0,
        }
    }
}

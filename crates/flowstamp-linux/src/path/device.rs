//! An interface of the path: receives and sends whole frames.
//!
//! | by | how | time of arrival |
//! |---|---|---|
//! | AF_XDP | on a veth's end, an XDP program passes frames to a socket with rings in shared memory | when the program runs |
//! | TAP | the host's interface is the TAP device, and the path opens its file | when the path reads the frame |

mod af_xdp;
mod tap;

use crate::refusal::Refusal;
use af_xdp::AfXdpSocket;
use std::io;
use std::os::fd::RawFd;
use tap::TapDevice;

/// How frames reach the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum By {
    /// An AF_XDP socket on a veth's end.
    AfXdp,
    /// A TAP device.
    Tap,
}

impl By {
    pub const fn name(self) -> &'static str {
        match self {
            Self::AfXdp => "af_xdp",
            Self::Tap => "tap",
        }
    }

    /// Why this machine does not support it, if so.
    pub fn missing(self) -> Option<io::Error> {
        match self {
            Self::AfXdp => AfXdpSocket::probe().err(),
            Self::Tap => TapDevice::probe().err(),
        }
    }

    /// The first kind that this machine supports.
    pub fn choose() -> Result<Self, Refusal> {
        [Self::AfXdp, Self::Tap].into_iter().find(|by| by.missing().is_none()).ok_or_else(|| {
            Refusal(
                "the path needs AF_XDP sockets (CONFIG_XDP_SOCKETS) or TAP devices (CONFIG_TUN), and neither is here"
                    .to_owned(),
            )
        })
    }
}

pub enum Device {
    AfXdp(Box<AfXdpSocket>),
    Tap(TapDevice),
}

impl Device {
    /// Opens the interface of this name in the thread's network namespace.
    pub fn open(by: By, name: &str) -> anyhow::Result<Self> {
        let device = match by {
            By::AfXdp => AfXdpSocket::open(name).map(|device| Self::AfXdp(Box::new(device))),
            By::Tap => TapDevice::open(name).map(Self::Tap),
        };
        device.map_err(|error| {
            let what = format!("the path's {} on {name}: {error}", by.name());
            if by.missing().is_some() { Refusal(what).into() } else { anyhow::anyhow!(what) }
        })
    }

    /// The descriptor to poll.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::AfXdp(device) => device.descriptor(),
            Self::Tap(device) => device.descriptor(),
        }
    }

    /// Receives the next frame: appends it to the empty `into`, and returns its arrival time in nanoseconds
    /// of the monotonic clock. A truncated frame leaves `into` empty.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<Option<u64>> {
        match self {
            Self::AfXdp(device) => Ok(device.receive(into)),
            Self::Tap(device) => device.receive(into),
        }
    }

    /// Sends frames and returns how many were sent. The caller must start the next call with the first unsent
    /// frame.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        match self {
            Self::AfXdp(device) => device.send(frames),
            Self::Tap(device) => device.send(frames),
        }
    }

    /// Frames that the kernel dropped for lack of room since the last call.
    pub fn overruns(&mut self) -> io::Result<u64> {
        match self {
            Self::AfXdp(device) => device.overruns(),
            // A TAP device counts its drops itself, in its own namespace.
            Self::Tap(_) => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::By;
    use crate::path::{EmulatedPath, LinkSpecification, Specification};
    use flowstamp_laws::units::Time;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::path::PathBuf;
    use std::process::Command;

    /// Three namespaces like a lab's; removed when dropped.
    struct Net(String);

    impl Net {
        fn new(by: By) -> Option<Self> {
            // SAFETY: no arguments.
            if unsafe { libc::geteuid() } != 0 || by.missing().is_some() {
                eprintln!("skipped: {} is not to be had here, or not without root", by.name());
                return None;
            }
            let net = Self(format!("fs-path-{}-{}", by.name(), std::process::id()));
            let n = &net.0;
            let mut script = format!("set -e; for p in left right path; do ip netns add {n}-$p; done; ");
            for (place, end) in [("left", "in"), ("right", "out")] {
                script += &match by {
                    By::AfXdp => format!(
                        "ip link add x0 netns {n}-{place} type veth peer name {end} netns {n}-path; \
                         ip -n {n}-path link set {end} up; "
                    ),
                    By::Tap => format!("ip -n {n}-{place} tuntap add dev x0 mode tap; "),
                };
                // Only the test sends frames.
                script += &format!(
                    "ip netns exec {n}-{place} sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip -n {n}-{place} link set x0 up; "
                );
            }
            script += &format!("ip netns exec {n}-path sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
            let made = Command::new("sh").args(["-c", &script]).status().expect("sh");
            assert!(made.success(), "{script}");
            Some(net)
        }

        fn file(&self, place: &str) -> PathBuf {
            PathBuf::from(format!("/run/netns/{}-{place}", self.0))
        }

        fn path(&self, by: By) -> EmulatedPath {
            let ends = match by {
                By::AfXdp => [("path", "in"), ("path", "out")],
                By::Tap => [("left", "x0"), ("right", "x0")],
            };
            let link = || LinkSpecification {
                told: 0,
                service: None,
                queue: crate::path::QueueKind::Droptail,
                delay: Time::from_millis(1),
                buffer_bytes: 1 << 20,
                loss: 0.0,
                router: None,
                timers: [None; flowstamp_laws::router::MAX_TIMERS],
                seed: (1, "test"),
                warmup: Time::ZERO,
                until: Time::from_secs(100),
                every: Time::from_millis(100),
                recorded: 0,
            };
            let interfaces = ends.map(|(place, name)| (self.file(place), name.to_owned()));
            let path =
                Specification { by, interfaces, links: [link(), link()], preambles: Vec::new(), liars: None };
            EmulatedPath::start(path).expect("the path")
        }

        /// A raw socket on the host's end, for frames of one EtherType.
        fn host(&self, place: &str) -> File {
            let namespace = File::open(self.file(place)).expect("a namespace");
            std::thread::spawn(move || {
                // SAFETY: the thread is this socket's alone; the kernel reads `address` and `patience`.
                unsafe {
                    assert_eq!(libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET), 0);
                    let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(0x88b5u16.to_be()));
                    assert!(fd >= 0);
                    let mut address: libc::sockaddr_ll = std::mem::zeroed();
                    address.sll_family = libc::AF_PACKET as u16;
                    address.sll_protocol = 0x88b5u16.to_be();
                    address.sll_ifindex = libc::if_nametoindex(c"x0".as_ptr()) as i32;
                    let size = size_of::<libc::sockaddr_ll>() as u32;
                    assert_eq!(libc::bind(fd, (&raw const address).cast(), size), 0);
                    let patience = libc::timeval { tv_sec: 5, tv_usec: 0 };
                    let size = size_of::<libc::timeval>() as u32;
                    libc::setsockopt(
                        fd,
                        libc::SOL_SOCKET,
                        libc::SO_RCVTIMEO,
                        (&raw const patience).cast(),
                        size,
                    );
                    File::from_raw_fd(fd)
                }
            })
            .join()
            .expect("a socket")
        }
    }

    impl Drop for Net {
        fn drop(&mut self) {
            for place in ["left", "right", "path"] {
                let _ = Command::new("ip").args(["netns", "delete", &format!("{}-{place}", self.0)]).status();
            }
        }
    }

    /// Sends frames of the smallest and largest sizes, more than one batch, each way.
    fn carries(by: By) {
        let Some(net) = Net::new(by) else { return };
        let path = net.path(by);
        let (left, right) = (net.host("left"), net.host("right"));
        for number in 0..100u8 {
            let size = [60, 1514, 61, 777][usize::from(number % 4)];
            let mut frame: Vec<u8> = (0..size).map(|at: usize| at as u8 ^ number).collect();
            frame[..6].fill(0xff);
            frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
            frame[12..14].copy_from_slice(&0x88b5u16.to_be_bytes());
            for (mut from, mut to) in [(&left, &right), (&right, &left)] {
                from.write_all(&frame).expect("sent");
                let mut got = [0; 2048];
                let length = to.read(&mut got).expect("in time");
                assert_eq!(got[..length], frame, "{} frame {number}", by.name());
            }
        }
        let report = path.stop().expect("an end");
        assert_eq!((report.frames, report.overruns), (200, 0));
        if by == By::AfXdp {
            let shown = Command::new("ip").args(["-n", &format!("{}-path", net.0), "-d", "link"]).output();
            let shown = String::from_utf8(shown.expect("ip").stdout).expect("text");
            assert!(shown.contains("veth") && !shown.contains("prog/xdp"), "{shown}");
        }
    }

    #[test]
    fn af_xdp_carries_frames_unchanged_and_leaves_no_program() {
        carries(By::AfXdp);
    }

    #[test]
    fn tap_carries_frames_unchanged() {
        carries(By::Tap);
    }
}

//! A TAP device: the path reads the host's frames from its file, and writes frames to the host there.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// Buffer size, larger than any frame.
const MAX_BYTES: usize = 2048;

pub struct TapDevice {
    file: File,
}

fn device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

impl TapDevice {
    /// Checks that the kernel supports TAP devices.
    pub fn probe() -> io::Result<()> {
        device().map(|_| ())
    }

    /// Opens the device of this name in the thread's network namespace.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = device()?;
        let name = CString::new(name)?;
        // SAFETY: all zero is a request; the kernel reads it.
        let done = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.as_bytes()) {
                *to = *from as libc::c_char;
            }
            request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
            libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw const request)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { file }) }
    }

    /// The descriptor to poll.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// As `super::Device::receive`.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<Option<u64>> {
        into.resize(MAX_BYTES, 0);
        let length = match self.file.read(into) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                into.clear();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        into.truncate(if length < MAX_BYTES { length } else { 0 });
        Ok(Some(super::super::monotonic_ns()))
    }

    /// As `super::Device::send`.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut sent = 0;
        for frame in frames {
            match self.file.write(frame) {
                Ok(_) => sent += 1,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }
}

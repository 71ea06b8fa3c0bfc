//! Queueing disciplines and classes through rtnetlink. No library knows htb without needing an asynchronous
//! runtime.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// linux/rtnetlink.h and linux/pkt_sched.h.
pub const RTM_NEWQDISC: u16 = 36;
pub const RTM_DELQDISC: u16 = 37;
pub const RTM_GETQDISC: u16 = 38;
pub const RTM_NEWTCLASS: u16 = 40;
pub const RTM_DELTCLASS: u16 = 41;
pub const RTM_GETTCLASS: u16 = 42;
pub const TC_H_ROOT: u32 = 0xffff_ffff;
pub const TC_H_INGRESS: u32 = 0xffff_fff1;
pub const TCA_KIND: u16 = 1;
pub const TCA_OPTIONS: u16 = 2;
pub const TCA_STATS2: u16 = 7;
const HEADER_BYTES: usize = 16;
const TCMSG_BYTES: usize = 20;

/// Reads a number from a message; `None` if it is too short.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The content of the first attribute of this kind.
pub fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    while bytes.len() >= 4 {
        let len = usize::from(u16_at(bytes, 0)?);
        if len < 4 || len > bytes.len() {
            return None;
        }
        // The upper two bits are flags for nesting and byte order.
        if u16_at(bytes, 2)? & 0x3fff == kind {
            return Some(&bytes[4..len]);
        }
        bytes = bytes.get(len.next_multiple_of(4)..)?;
    }
    None
}

pub fn push_attribute(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) {
    bytes.extend((4 + content.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A queueing discipline or a class: the fields of `struct tcmsg` and its attributes.
pub struct Object<'a> {
    pub index: u32,
    pub handle: u32,
    pub parent: u32,
    pub attributes: &'a [u8],
}

impl Object<'_> {
    /// The name of its kind, as in tc.
    pub fn kind(&self) -> &str {
        let name = attribute(self.attributes, TCA_KIND).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default().trim_end_matches('\0')
    }
}

/// The result in the kernel's last message of a request or a dump; zero is success.
fn verdict(message: &[u8]) -> io::Result<()> {
    match u32_at(message, HEADER_BYTES).map(|code| code as i32) {
        Some(0) => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.map_or(libc::EBADMSG, |code| -code))),
    }
}

/// Passes the queueing disciplines of interface `index` in one part of a dump to `see`; returns whether it
/// was the last part.
fn dumped(mut rest: &[u8], index: u32, see: &mut impl FnMut(&Object<'_>)) -> io::Result<bool> {
    while let (Some(len), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
        let len = len as usize;
        if len < HEADER_BYTES || len > rest.len() {
            return Err(io::Error::from_raw_os_error(libc::EBADMSG));
        }
        // A failed dump may end with either message.
        if [libc::NLMSG_DONE as u16, libc::NLMSG_ERROR as u16].contains(&kind) {
            return verdict(&rest[..len]).map(|()| true);
        }
        let body = &rest[HEADER_BYTES..len];
        if let (Some(found), Some(handle), Some(parent)) =
            (u32_at(body, 4), u32_at(body, 8), u32_at(body, 12))
            && kind == RTM_NEWQDISC
            && found == index
        {
            see(&Object { index, handle, parent, attributes: body.get(TCMSG_BYTES..).unwrap_or_default() });
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// An rtnetlink socket of the network namespace in which it was opened.
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket in the thread's network namespace.
    pub fn open() -> io::Result<Self> {
        // SAFETY: plain numbers; the new descriptor is owned from here on.
        unsafe {
            let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    fn send(&self, kind: u16, flags: i32, object: &Object<'_>) -> io::Result<()> {
        let mut request = Vec::with_capacity(HEADER_BYTES + TCMSG_BYTES + object.attributes.len());
        request.extend(((HEADER_BYTES + TCMSG_BYTES + object.attributes.len()) as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        request.extend([0; 12]);
        for number in [object.index, object.handle, object.parent, 0] {
            request.extend(number.to_ne_bytes());
        }
        request.extend(object.attributes);
        // SAFETY: the kernel reads the request and the address, of the lengths given.
        let sent = unsafe {
            let mut address: libc::sockaddr_nl = zeroed();
            address.nl_family = libc::AF_NETLINK as u16;
            let to = std::ptr::from_ref(&address).cast();
            let size = size_of::<libc::sockaddr_nl>() as u32;
            libc::sendto(self.0.as_raw_fd(), request.as_ptr().cast(), request.len(), 0, to, size)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        // SAFETY: the kernel writes at most the buffer's length.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if got < 0 { Err(io::Error::last_os_error()) } else { Ok(&buffer[..got as usize]) }
    }

    /// Creates, changes or deletes an object, and waits for the kernel's result.
    pub fn change(&self, kind: u16, flags: i32, object: &Object<'_>) -> io::Result<()> {
        self.send(kind, flags | libc::NLM_F_ACK, object)?;
        let mut buffer = [0u8; 8192];
        loop {
            let answer = self.receive(&mut buffer)?;
            if u16_at(answer, 4) == Some(libc::NLMSG_ERROR as u16) {
                return verdict(answer);
            }
        }
    }

    /// Passes all queueing disciplines of interface `index` to `see`.
    pub fn qdiscs(&self, index: u32, mut see: impl FnMut(&Object<'_>)) -> io::Result<()> {
        let all = Object { index, handle: 0, parent: 0, attributes: &[] };
        self.send(RTM_GETQDISC, libc::NLM_F_DUMP, &all)?;
        let mut buffer = [0u8; 32768];
        loop {
            if dumped(self.receive(&mut buffer)?, index, &mut see)? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u32]) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + 4 * body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body.iter().flat_map(|number| number.to_ne_bytes()));
        bytes
    }

    /// Handles of interface 7 in parts of a dump, and how it ends: whether it was the last part, or the error
    /// number.
    fn seen(parts: &[Vec<u8>]) -> (Vec<u32>, Result<bool, Option<i32>>) {
        let mut handles = vec![];
        let end = dumped(&parts.concat(), 7, &mut |qdisc| handles.push(qdisc.handle));
        (handles, end.map_err(|error| error.raw_os_error()))
    }

    #[test]
    fn a_dump_that_fails_is_no_short_dump() {
        let (done, error) = (libc::NLMSG_DONE as u16, libc::NLMSG_ERROR as u16);
        let qdisc = |index| message(RTM_NEWQDISC, &[0, index, 0x10000, TC_H_ROOT, 0]);
        assert_eq!(seen(&[qdisc(7), qdisc(8)]), (vec![0x10000], Ok(false)));
        assert_eq!(seen(&[qdisc(7), message(done, &[0])]), (vec![0x10000], Ok(true)));
        let code = -libc::EPERM as u32;
        for kind in [error, done] {
            assert_eq!(seen(&[message(kind, &[code])]), (vec![], Err(Some(libc::EPERM))));
        }
        assert_eq!(seen(&[message(error, &[])]), (vec![], Err(Some(libc::EBADMSG))));
        assert_eq!(seen(&[qdisc(7)[..20].to_vec()]), (vec![], Err(Some(libc::EBADMSG))));
    }
}

//! Runs the router's frame parser, `packet.h` compiled for this machine, on frames that are only partly linear. It
//! stays inside the frame, terminates, and agrees with a second implementation, for QUIC's stamp packets with the codec.

#![no_main]

use flowstamp_wire::option::{self, Protocol};
use flowstamp_wire::quic_stamp::{self, Packet};
use libfuzzer_sys::fuzz_target;
use std::ptr;

#[path = "../../crates/flowstamp-linux/tests/packets/finder.rs"]
mod finder;

/// `struct fs_found` of packet.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    network: u32,
    tcp: u32,
    option: u32,
    version: u8,
    shim: u8,
    ack: u8,
    protocol: u8,
    quic: u8,
}

unsafe extern "C" {
    fn fs_fuzz_find(
        frame: *const u8,
        len: u32,
        linear: u32,
        link_bytes: u32,
        protocol: u16,
        exid: u16,
        found: *mut Found,
    ) -> bool;
}

const PAGE: usize = 4096;

/// A page behind which nothing can be read, and a place for a frame's end at its end.
struct Fence(*mut u8);

impl Fence {
    fn new() -> Self {
        // SAFETY: plain numbers; what is mapped is this process's alone, and stays.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let both =
                libc::mmap(ptr::null_mut(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(both, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(both.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
            Self(both.cast())
        }
    }

    fn put(&self, bytes: &[u8]) -> *const u8 {
        // SAFETY: as many bytes as the page has, at most.
        unsafe {
            let to = self.0.add(PAGE - bytes.len());
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            to
        }
    }
}

thread_local! {
    static FENCE: Fence = Fence::new();
}

fuzz_target!(|bytes: &[u8]| {
    // How much is linear, which law, and whether there is an Ethernet header; else what a packet socket says the protocol is.
    let Some((&[linear, law, link], frame)) = bytes.split_first_chunk::<3>() else { return };
    let frame = &frame[..frame.len().min(PAGE)];
    let law = Protocol::ALL[usize::from(law) % Protocol::ALL.len()];
    let (link_bytes, protocol) = [(14, 0), (0, 0x0800), (0, 0x86dd)][usize::from(link) % 3];
    let linear = frame.len().min(8 * usize::from(linear));
    let mut found = Found::default();
    // SAFETY: the frame is as long as it says.
    let is_there = FENCE.with(|fence| unsafe {
        let exid = u16::from_be_bytes(law.identifier());
        let (len, linear) = (frame.len() as u32, linear as u32);
        fs_fuzz_find(fence.put(frame), len, linear, link_bytes, u16::to_be(protocol), exid, &raw mut found)
    });
    if found.protocol == 17 {
        // The codec finds the same stamp packet in UDP's payload, if the datagram is whole.
        let udp = found.tcp as usize;
        let length = frame.get(udp + 4..udp + 6).map_or(0, |l| usize::from(u16::from_be_bytes([l[0], l[1]])));
        let packet = frame.get(udp + 8..udp + length).and_then(Packet::parse).filter(|p| p.protocol == law);
        let expected = packet.map(|p| udp + 8 + p.wire_len() - quic_stamp::STAMP_LEN - option::STAMP.start);
        assert_eq!(is_there.then_some(found.option as usize), expected);
        assert_eq!(is_there, found.quic == 1);
        return;
    }
    let expected = finder::find(frame, link_bytes as usize, protocol, law);
    let here = is_there.then_some(finder::Place {
        network: found.network as usize,
        tcp: found.tcp as usize,
        option: found.option as usize,
    });
    assert_eq!(here, expected);
});

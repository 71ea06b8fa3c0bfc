//! AF_XDP in copy mode: the kernel copies each frame once into or out of memory that it shares with the path.

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, libbpf_sys};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab};
use xdp::socket::{XdpSocket, XdpSocketBuilder};
use xdp::umem::{FrameSize, Umem, UmemCfgBuilder};
use xdp::{RingConfigBuilder, Rings};

#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/path.skel.rs"));
}

/// Receive ring size in frames.
const RECEIVE_SLOTS: u32 = 8192;
/// Maximum frames being sent; a buffer returns once the receiving host's IP has the frame.
const SEND_SLOTS: u32 = 4096;
/// Maximum frames per `sendto`: TX_BATCH_SIZE of net/xdp/xsk.c.
const BATCH: usize = 32;
/// Room before each frame for its arrival time.
const STAMP_BYTES: i32 = 8;

pub struct AfXdpSocket {
    // Fields are dropped in this order: the program first, the memory last.
    _program: OwnedFd,
    socket: XdpSocket,
    rings: Rings,
    came: HeapSlab,
    going: HeapSlab,
    /// Number of frames in the ring that the kernel has not taken yet; the next send continues with them.
    unsent: usize,
    memory: Umem,
    overruns: u64,
}

// SAFETY: only this socket uses the program's link and the memory.
unsafe impl Send for AfXdpSocket {}

/// Enlarges the send buffer beyond the machine's own limit.
fn send_buffer(socket: &XdpSocket) -> io::Result<()> {
    let bytes = 32i32 << 20;
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes of `bytes`.
    let done = unsafe {
        let value = std::ptr::from_ref(&bytes).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, value, size)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Attaches the program in generic XDP mode: frames queue in the CPU's backlog of 1000, while a veth's queue
/// for native XDP holds 256. The program detaches with the descriptor.
fn attach(program: BorrowedFd<'_>, index: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as u64,
        flags: libbpf_sys::XDP_FLAGS_SKB_MODE,
        ..Default::default()
    };
    // SAFETY: the kernel reads `options`; the descriptor that comes back is ours.
    unsafe {
        let link = libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            index as i32,
            libbpf_sys::BPF_XDP,
            &raw const options,
        );
        if link < 0 { Err(io::Error::from_raw_os_error(-link)) } else { Ok(OwnedFd::from_raw_fd(link)) }
    }
}

impl AfXdpSocket {
    /// Checks the kernel's support by trying everything but the interface.
    pub fn probe() -> io::Result<()> {
        let _ = XdpSocketBuilder::new().map_err(other)?;
        let mut object = MaybeUninit::uninit();
        skeleton::PathSkelBuilder::default().open(&mut object).and_then(OpenSkel::load).map_err(other)?;
        Ok(())
    }

    /// Opens the interface of this name in the thread's network namespace.
    pub fn open(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: `name` ends in zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let frames = UmemCfgBuilder {
            frame_size: FrameSize::TwoK,
            head_room: STAMP_BYTES as u32,
            frame_count: RECEIVE_SLOTS + SEND_SLOTS,
            ..Default::default()
        };
        let mut memory = Umem::map(frames.build().map_err(other)?)?;
        let mut builder = XdpSocketBuilder::new().map_err(other)?;
        let rings = RingConfigBuilder {
            rx_count: RECEIVE_SLOTS,
            tx_count: SEND_SLOTS,
            fill_count: RECEIVE_SLOTS,
            completion_count: SEND_SLOTS,
        };
        let (mut rings, mut flags) =
            builder.build_rings(&memory, rings.build().map_err(other)?).map_err(other)?;
        flags.force_copy();
        // SAFETY: `memory` goes after `socket`.
        unsafe { rings.fill_ring.enqueue(&mut memory, RECEIVE_SLOTS as usize) };
        let socket = builder.bind(NicIndex::new(index), 0, flags).map_err(other)?;
        send_buffer(&socket)?;
        let mut object = MaybeUninit::uninit();
        let skel =
            skeleton::PathSkelBuilder::default().open(&mut object).and_then(OpenSkel::load).map_err(other)?;
        let value = socket.as_raw_fd().to_ne_bytes();
        skel.maps.sockets.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY).map_err(other)?;
        let program = attach(skel.progs.fs_path.as_fd(), index)?;
        Ok(Self {
            _program: program,
            socket,
            rings,
            came: HeapSlab::with_capacity(BATCH),
            going: HeapSlab::with_capacity(BATCH),
            unsent: 0,
            memory,
            overruns: 0,
        })
    }

    /// The descriptor to poll.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// As `super::Device::receive`.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Option<u64> {
        if self.came.is_empty() {
            // SAFETY: the packets are given back to `memory` below.
            unsafe { self.rings.rx_ring.as_mut()?.recv(&self.memory, &mut self.came) };
        }
        let mut packet = self.came.pop_back()?;
        into.extend_from_slice(&packet);
        let came_ns = packet.adjust_head(-STAMP_BYTES).and_then(|()| packet.read::<Nanoseconds>(0));
        self.memory.free_packet(packet);
        // SAFETY: `memory` goes after `socket`.
        unsafe { self.rings.fill_ring.enqueue(&mut self.memory, 1) };
        came_ns.ok().map(|came| came.0)
    }

    /// As `super::Device::send`.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        if self.unsent == 0 {
            self.rings.completion_ring.dequeue(&mut self.memory, SEND_SLOTS as usize);
            for frame in frames.take(BATCH) {
                // SAFETY: the packet goes into the ring, and is given back from there.
                let Some(mut packet) = (unsafe { self.memory.alloc() }) else { break };
                if packet.append(frame).is_err() {
                    self.memory.free_packet(packet);
                    return Err(other("a frame is longer than the path's memory holds"));
                }
                self.going.push_front(packet);
            }
            // SAFETY: `memory` goes after `socket`.
            self.unsent = unsafe { self.rings.tx_ring.as_mut().map_or(0, |ring| ring.send(&mut self.going)) };
            while let Some(packet) = self.going.pop_back() {
                self.memory.free_packet(packet);
            }
        }
        if self.unsent == 0 {
            return Ok(0);
        }
        // SAFETY: no pointers.
        let done = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        if done >= 0 {
            return Ok(std::mem::take(&mut self.unsent));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(0),
            _ => Err(error),
        }
    }

    /// As `super::Device::overruns`.
    pub fn overruns(&mut self) -> io::Result<u64> {
        let seen = self.socket.statistics().map_err(io::Error::other)?;
        // Frames dropped because the fill ring was empty are included in rx_dropped.
        let all = seen.rx_dropped + seen.rx_ring_full;
        Ok(all - std::mem::replace(&mut self.overruns, all))
    }
}

/// The arrival time that the program wrote, in nanoseconds.
#[repr(transparent)]
struct Nanoseconds(u64);

// SAFETY: any eight bytes are a number.
unsafe impl xdp::packet::Pod for Nanoseconds {}

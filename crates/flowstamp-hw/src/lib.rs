//! The control path of the router in `hardware/`: it reads a port's counters at the end of each slot, runs the law of
//! `flowstamp-laws`, and writes the result back (Dukkipati 2007, section 6.1.3).
//!
//! A port is anything with 32-bit registers ([`Registers`]). A slice of atomics is one, so on a board it is enough to map
//! the register page into memory. With the flag `model`, which `make hardware` sets, the module `model` has a port that
//! Verilator simulates.

pub mod control;
#[cfg(model)]
pub mod model;

use std::sync::atomic::{AtomicU32, Ordering};

/// The registers of a port, by byte offset; docs/hardware.md has the map.
pub trait Registers {
    /// Reads the register at a byte offset.
    fn read(&mut self, at: u8) -> u32;
    /// Writes the register at a byte offset.
    fn write(&mut self, at: u8, value: u32);
}

/// A register page that is mapped into memory.
///
/// # Panics
///
/// If the page is shorter than the register's offset.
impl Registers for &[AtomicU32] {
    fn read(&mut self, at: u8) -> u32 {
        self[usize::from(at) / 4].load(Ordering::SeqCst)
    }

    fn write(&mut self, at: u8, value: u32) {
        self[usize::from(at) / 4].store(value, Ordering::SeqCst);
    }
}

impl<T: Registers> Registers for &mut T {
    fn read(&mut self, at: u8) -> u32 {
        (**self).read(at)
    }

    fn write(&mut self, at: u8, value: u32) {
        (**self).write(at, value);
    }
}

/// Two routers with the output queue between them: the first counts what arrives, the second stamps what leaves. RCP's and
/// VCP's laws do the same. A single router does both in one place, and its results differ while the queue is long.
///
/// The first router must be as after its reset: it then stamps nothing.
#[derive(Debug)]
pub struct Around<A, B> {
    /// The router before the queue.
    pub before: A,
    /// The router behind it.
    pub behind: B,
}

impl<A: Registers, B: Registers> Registers for Around<A, B> {
    fn read(&mut self, at: u8) -> u32 {
        self.before.read(at)
    }

    fn write(&mut self, at: u8, value: u32) {
        if at > at::QUEUE_NOW { self.behind.write(at, value) } else { self.before.write(at, value) }
    }
}

/// Byte offsets of the registers. Those above [`at::QUEUE_NOW`] belong to a law.
pub mod at {
    /// "FS", the law's number, and the bytes of a word of the data path.
    pub const ID: u8 = 0x00;
    /// Bit 0 ends the slot; bit 1 makes XCP's new gains and pools count.
    pub const CONTROL: u8 = 0x04;
    /// Which counters have reached their end: bit 0 bytes, bit 1 RTTs, bit 2 packets.
    pub const OVERFLOW: u8 = 0x08;
    /// Length of a slot in microseconds, for the interrupt.
    pub const SLOT: u8 = 0x0c;
    /// Microseconds that the slot has lasted.
    pub const ELAPSED: u8 = 0x10;
    /// Queue at the slot's end, bytes.
    pub const QUEUE: u8 = 0x14;
    /// Input of the slot, bytes.
    pub const INPUT: u8 = 0x18;
    /// Queue now, bytes.
    pub const QUEUE_NOW: u8 = 0x1c;
    /// RCP: the rate that packets are stamped with, bytes/ms.
    pub const RCP_RATE: u8 = 0x20;
    /// RCP: sum of the RTTs, microseconds.
    pub const RCP_SUM_RTT: u8 = 0x24;
    /// RCP: packets in that sum.
    pub const RCP_RTT_PACKETS: u8 = 0x28;
    /// XCP: bytes of packets with an X.
    pub const XCP_X_BYTES: u8 = 0x20;
    /// XCP: sum of X, 2^-28 s; two words, the low one first.
    pub const XCP_SUM_X: u8 = 0x24;
    /// XCP: sum of X times RTT, 2^-48 s^2; two words.
    pub const XCP_SUM_X_RTT: u8 = 0x2c;
    /// XCP: the least queue that packets saw, bytes.
    pub const XCP_LEAST_QUEUE: u8 = 0x34;
    /// XCP: `xi_p`, a mantissa of 24 bits and a shift of 7.
    pub const XCP_GIVE: u8 = 0x40;
    /// XCP: `xi_n`.
    pub const XCP_TAKE: u8 = 0x44;
    /// XCP: the positive pool, bytes/s with 16 fraction bits; two words.
    pub const XCP_POOL_POS: u8 = 0x48;
    /// XCP: the negative pool; two words.
    pub const XCP_POOL_NEG: u8 = 0x50;
    /// VCP: the load code; bit 2 extends it to packets without our option.
    pub const VCP_CODE: u8 = 0x20;
    /// VCP: `t_rho`, microseconds.
    pub const VCP_T_RHO: u8 = 0x24;
}

/// Bit of [`at::CONTROL`] that ends the slot.
pub const SNAPSHOT: u32 = 1;
/// Bit of [`at::CONTROL`] that makes staged values count.
pub const COMMIT: u32 = 2;

/// Reads a counter of two words.
pub fn read_long(port: &mut impl Registers, at: u8) -> u64 {
    u64::from(port.read(at)) | u64::from(port.read(at + 4)) << 32
}

/// Writes a value of two words.
pub fn write_long(port: &mut impl Registers, at: u8, value: u64) {
    port.write(at, value as u32);
    port.write(at + 4, (value >> 32) as u32);
}

//! The router of `hardware/rtl` as a Verilator model: a port whose clock is a function call.
#![expect(unsafe_code, reason = "the model is C++ behind the C interface of model/shim.cpp")]

use crate::Registers;
use std::collections::VecDeque;

/// The pins, in the layout of model/shim.cpp.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Pins {
    s_data: [u8; 64],
    m_data: [u8; 64],
    s_keep: u64,
    m_keep: u64,
    wdata: u32,
    rdata: u32,
    queue_bytes: u32,
    awaddr: u8,
    araddr: u8,
    rst: u8,
    s_valid: u8,
    s_last: u8,
    s_ready: u8,
    m_valid: u8,
    m_last: u8,
    m_ready: u8,
    write: u8,
    written: u8,
    read: u8,
    has_read: u8,
    slot_over: u8,
}

#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn fs_model_new(law: u32, width: u32) -> *mut Opaque;
    fn fs_model_cycle(model: *mut Opaque, pins: *mut Pins);
    fn fs_model_free(model: *mut Opaque);
}

/// Laws, by the number of the parameter LAW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// The Rate Control Protocol.
    Rcp = 1,
    /// The eXplicit Control Protocol.
    Xcp = 2,
    /// The Variable-structure congestion Control Protocol.
    Vcp = 3,
}

/// A port: frames go in by [`Port::send`] and come out by [`Port::receive`] while its clock runs.
#[derive(Debug)]
pub struct Port {
    model: *mut Opaque,
    pins: Pins,
    /// Bytes of a word.
    bytes: usize,
    /// Words that wait to be sent: frame, and offset in it.
    waiting: VecDeque<Vec<u8>>,
    offset: usize,
    partial: Vec<u8>,
    received: VecDeque<Vec<u8>>,
    /// In so many of 256 cycles, at random, a word is offered, and one is taken.
    pace: [u8; 2],
    random: u64,
    cycles: u64,
    refused: u64,
}

// SAFETY: only this value reaches the model, and the model keeps nothing of the thread that made it.
unsafe impl Send for Port {}

impl Port {
    /// A port after reset.
    ///
    /// # Panics
    ///
    /// If the build has no model of this law and width.
    #[must_use]
    pub fn new(law: Law, width: u16) -> Self {
        // SAFETY: a constructor without preconditions.
        let model = unsafe { fs_model_new(law as u32, width.into()) };
        assert!(!model.is_null(), "no model of {law:?} with {width} bits");
        // SAFETY: numbers, all of which may be zero.
        let pins: Pins = unsafe { std::mem::zeroed() };
        let mut port = Self {
            model,
            pins,
            bytes: usize::from(width / 8),
            waiting: VecDeque::new(),
            offset: 0,
            partial: vec![],
            received: VecDeque::new(),
            pace: [255, 255],
            random: 1,
            cycles: 0,
            refused: 0,
        };
        port.pins.rst = 1;
        port.eval();
        port.eval();
        port.pins.rst = 0;
        port
    }

    /// Sets how often a word is offered and taken, in 1/256; 255 stands for always.
    pub fn set_pace(&mut self, offered: u8, taken: u8) {
        self.pace = [offered, taken];
    }

    /// Sets the queue that the port sees behind itself, bytes.
    pub fn set_queue(&mut self, bytes: u32) {
        self.pins.queue_bytes = bytes;
    }

    /// Cycles so far, and those in which a word was offered and not accepted.
    #[must_use]
    pub fn cycles(&self) -> (u64, u64) {
        (self.cycles, self.refused)
    }

    /// Queues a frame at the port's input.
    ///
    /// # Panics
    ///
    /// If it is empty.
    pub fn send(&mut self, frame: Vec<u8>) {
        assert!(!frame.is_empty(), "a frame without bytes");
        self.waiting.push_back(frame);
    }

    /// The next frame that has come out.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.received.pop_front()
    }

    /// Frames that wait at the input.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.waiting.len()
    }

    fn eval(&mut self) {
        // SAFETY: the model lives as long as this, and the layout of the pins is the shim's.
        unsafe { fs_model_cycle(self.model, &raw mut self.pins) }
        self.cycles += 1;
    }

    /// True in `pace` of 256 calls.
    fn draw(&mut self, pace: u8) -> u8 {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        u8::from(pace == 255 || (self.random >> 32) as u8 <= pace)
    }

    /// One clock cycle.
    pub fn cycle(&mut self) {
        // A word that was offered stays until it is taken.
        if self.pins.s_valid == 0 && !self.waiting.is_empty() && self.draw(self.pace[0]) == 1 {
            let frame = &self.waiting[0];
            let word = &frame[self.offset..frame.len().min(self.offset + self.bytes)];
            self.pins.s_data = [0xa5; 64];
            self.pins.s_data[..word.len()].copy_from_slice(word);
            self.pins.s_keep = u64::MAX >> (64 - word.len());
            self.pins.s_last = u8::from(self.offset + word.len() == frame.len());
            self.pins.s_valid = 1;
        }
        self.pins.m_ready = self.draw(self.pace[1]);
        self.eval();
        if self.pins.s_valid == 1 {
            if self.pins.s_ready == 1 {
                self.offset += self.bytes;
                if self.pins.s_last == 1 {
                    self.waiting.pop_front();
                    self.offset = 0;
                }
                self.pins.s_valid = 0;
            } else {
                self.refused += 1;
            }
        }
        if self.pins.m_valid == 1 && self.pins.m_ready == 1 {
            let count = self.pins.m_keep.count_ones() as usize;
            self.partial.extend(&self.pins.m_data[..count]);
            if self.pins.m_last == 1 {
                self.received.push_back(std::mem::take(&mut self.partial));
            }
        }
    }

    /// Runs until all frames have come out and are counted. A long frame's end leaves before the parser has reported it.
    ///
    /// # Panics
    ///
    /// If nothing moves for 100,000 cycles.
    pub fn drain(&mut self, frames: usize) {
        let mut idle = 0;
        while self.received.len() < frames {
            let before = (self.received.len(), self.offset, self.waiting.len());
            self.cycle();
            idle =
                if before == (self.received.len(), self.offset, self.waiting.len()) { idle + 1 } else { 0 };
            assert!(idle < 100_000, "{} of {frames} frames came out", self.received.len());
        }
        for _ in 0..16 {
            self.cycle();
        }
    }
}

/// Reads and writes take cycles, in which frames go on.
impl Registers for Port {
    fn read(&mut self, at: u8) -> u32 {
        self.pins.araddr = at;
        self.pins.read = 1;
        self.cycle();
        self.pins.read = 0;
        loop {
            self.cycle();
            if self.pins.has_read == 1 {
                return self.pins.rdata;
            }
        }
    }

    fn write(&mut self, at: u8, value: u32) {
        (self.pins.awaddr, self.pins.wdata, self.pins.write) = (at, value, 1);
        loop {
            self.cycle();
            if self.pins.written == 1 {
                break;
            }
        }
        self.pins.write = 0;
        // The write is in effect at most eight cycles later: XCP's pools change when the first packet with the new gains reaches them.
        for _ in 0..8 {
            self.cycle();
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: made by fs_model_new, and used no more.
        unsafe { fs_model_free(self.model) }
    }
}

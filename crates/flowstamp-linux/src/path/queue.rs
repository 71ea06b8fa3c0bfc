//! What waits before a link of the path: a FIFO, or FQ-CoDel (RFC 8290) where the kernel has none to compare with.
//!
//! FQ-CoDel: a queue for each flow (a hash of its ports), each with a CoDel of its own (`laws/queue/codel.rs`), served by deficit round
//! robin of a full frame's quantum; a flow that begins is served before those that have been (RFC 8290, section 4.2). What does
//! not fit pushes out the first packet of the flow that has the most bytes (section 4.1).
//!
//! Deviations (RFC says / we do / because):
//! 1. Flows by addresses, protocol and ports / by TCP's ports, all else is one flow / the path is between two hosts.
//! 2. A limit in packets (10,240) / the path's buffer in bytes / so that it is the one that a FIFO has.
//! 3. ECN-capable packets are marked / dropped / labs have none: `tcp_ecn` is off for who connects.

use super::frame;
use flowstamp_laws::queue::codel::{CoDel, Params};
use flowstamp_laws::queue::{Departure, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::units::{Rate, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// First in, first out; what does not fit is lost.
    #[default]
    Droptail,
    /// A queue for each flow, and CoDel in each.
    FqCodel,
}

/// A frame that waits.
#[derive(Debug)]
pub struct Waiting {
    /// When it came.
    pub came: Time,
    /// It will be lost on the way.
    pub lost: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A frame's size, as laws have it.
fn size(frame: &Waiting) -> u32 {
    frame.bytes.len() as u32
}

/// What waits.
#[derive(Debug)]
pub struct Queue {
    /// Room in it.
    limit: u64,
    /// What is in it.
    bytes: u64,
    packets: u32,
    /// Frames that it has given up by itself, to be asked for.
    drops: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Fifo(VecDeque<Waiting>),
    FqCodel(Box<FqCodel>),
}

impl Queue {
    /// An empty one, with room for so many bytes.
    pub fn new(kind: Kind, limit: u64) -> Self {
        let order = match kind {
            Kind::Droptail => Order::Fifo(VecDeque::new()),
            Kind::FqCodel => Order::FqCodel(Box::new(FqCodel::new(limit))),
        };
        Self { limit, bytes: 0, packets: 0, drops: 0, order }
    }

    /// Bytes that wait.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that wait.
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// How many frames it has given up since it was asked.
    pub fn take_drops(&mut self) -> u64 {
        std::mem::take(&mut self.drops)
    }

    /// Whether a frame of so many bytes joins it.
    pub const fn has_room(&self, size: u64) -> bool {
        matches!(self.order, Order::FqCodel(_)) || self.bytes + size <= self.limit
    }

    /// A frame joins it, whatever the room.
    pub fn push(&mut self, frame: Waiting) {
        self.bytes += u64::from(size(&frame));
        self.packets += 1;
        match &mut self.order {
            Order::Fifo(frames) => frames.push_back(frame),
            Order::FqCodel(flows) => flows.push(frame),
        }
    }

    /// A frame joins it if there is room; else gives up one, which is counted, and gives back its bytes.
    pub fn admit(&mut self, frame: Waiting) -> Option<Vec<u8>> {
        if !self.has_room(size(&frame).into()) {
            self.drops += 1;
            return Some(frame.bytes);
        }
        self.push(frame);
        let mut given_up = None;
        while let Order::FqCodel(flows) = &mut self.order
            && self.bytes > self.limit
            && let Some(victim) = flows.give_up()
        {
            self.bytes -= u64::from(size(&victim));
            self.packets -= 1;
            self.drops += 1;
            given_up = Some(victim.bytes);
        }
        given_up
    }

    /// The frame whose transmission begins now.
    pub fn next(&mut self, now: Time) -> Option<Waiting> {
        let (frame, dropped) = match &mut self.order {
            Order::Fifo(frames) => (frames.pop_front(), [0, 0]),
            Order::FqCodel(flows) => flows.next(now),
        };
        let [packets, bytes] = dropped;
        self.drops += packets;
        self.packets -= packets as u32 + u32::from(frame.is_some());
        self.bytes -= bytes + frame.as_ref().map_or(0, |frame| size(frame).into());
        frame
    }
}

/// RFC 8290, sections 4.1 and 5.2.
const FLOWS: usize = 1024;
const QUANTUM: i64 = 1514;

#[derive(Debug)]
struct Flow {
    frames: VecDeque<Waiting>,
    bytes: u64,
    deficit: i64,
    codel: CoDel,
    /// It is in one of the two lists.
    listed: bool,
}

#[derive(Debug)]
struct FqCodel {
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl FqCodel {
    fn new(limit: u64) -> Self {
        // The capacity is nothing that CoDel reckons with.
        let view =
            QueueView { limit: Limit::Bytes(limit), capacity: Rate::ZERO, mean_packet_bytes: QUANTUM as u32 };
        let flow = || Flow {
            frames: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            codel: CoDel::new(&Params::default(), &view),
            listed: false,
        };
        Self { flows: (0..FLOWS).map(|_| flow()).collect(), new: VecDeque::new(), old: VecDeque::new() }
    }

    fn flow_of(frame: &Waiting) -> usize {
        frame::segment(&frame.bytes).map_or(0, |s| {
            let ports = u32::from(s.source) << 16 | u32::from(s.destination);
            // Knuth's multiplicative hash; its upper bits.
            (ports.wrapping_mul(2_654_435_761) >> 22) as usize % FLOWS
        })
    }

    fn push(&mut self, frame: Waiting) {
        let number = Self::flow_of(&frame);
        let flow = &mut self.flows[number];
        flow.bytes += u64::from(size(&frame));
        flow.frames.push_back(frame);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(number);
        }
    }

    /// The first frame of the flow that has the most bytes.
    fn give_up(&mut self) -> Option<Waiting> {
        let fattest = self.flows.iter_mut().max_by_key(|flow| flow.bytes)?;
        let victim = fattest.frames.pop_front()?;
        fattest.bytes -= u64::from(size(&victim));
        Some(victim)
    }

    /// The next one to send; packets and bytes that were dropped before it.
    fn next(&mut self, now: Time) -> (Option<Waiting>, [u64; 2]) {
        let mut dropped = [0, 0];
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let Some(number) = list.pop_front() else { return (None, dropped) };
            let flow = &mut self.flows[number];
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                self.old.push_back(number);
                continue;
            }
            let sent = loop {
                let Some(frame) = flow.frames.pop_front() else { break None };
                flow.bytes -= u64::from(size(&frame));
                let departure = Departure {
                    now,
                    size: size(&frame),
                    flow: number as u64,
                    sojourn: now.saturating_sub(frame.came),
                    queue_bytes: flow.bytes,
                    queue_packets: flow.frames.len() as u32,
                    ecn_capable: false,
                    l4s: false,
                };
                if flow.codel.on_departure(&departure, || 0.5) != Verdict::Drop {
                    break Some(frame);
                }
                dropped[0] += 1;
                dropped[1] += u64::from(size(&frame));
            };
            let Some(frame) = sent else {
                // One that has just been new waits for its turn among the others, so that it is not new again at once.
                flow.listed = is_new && !self.old.is_empty();
                if flow.listed {
                    self.old.push_back(number);
                }
                continue;
            };
            flow.deficit -= i64::from(size(&frame));
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.push_front(number);
            return (Some(frame), dropped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP segment from this port, of `size` bytes, with its number at the end.
    fn frame(port: u16, size: usize, number: u8, came: Time) -> Waiting {
        let mut bytes = vec![0; size];
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&((size - 14) as u16).to_be_bytes());
        bytes[23] = 6;
        bytes[34..36].copy_from_slice(&port.to_be_bytes());
        bytes[46] = 0x50;
        bytes[size - 1] = number;
        Waiting { came, lost: false, bytes }
    }

    fn said(frame: &Waiting) -> (u16, u8) {
        let port = u16::from_be_bytes([frame.bytes[34], frame.bytes[35]]);
        (port, frame.bytes[frame.bytes.len() - 1])
    }

    fn drain(queue: &mut Queue) -> Vec<(u16, u8)> {
        std::iter::from_fn(|| queue.next(Time::ZERO).map(|frame| said(&frame))).collect()
    }

    fn fill(kind: Kind, limit: u64, frames: &[(u16, usize)]) -> Queue {
        let mut queue = Queue::new(kind, limit);
        for (number, (port, size)) in frames.iter().enumerate() {
            queue.admit(frame(*port, *size, number as u8, Time::ZERO));
        }
        queue
    }

    #[test]
    fn a_fifo_keeps_the_order_and_loses_what_does_not_fit() {
        let mut queue = fill(Kind::Droptail, 2500, &[(1, 1000), (2, 1000), (1, 1000), (2, 500)]);
        assert_eq!((queue.bytes(), queue.packets(), queue.take_drops()), (2500, 3, 1));
        assert_eq!(drain(&mut queue), [(1, 0), (2, 1), (2, 3)]);
        assert_eq!((queue.bytes(), queue.packets()), (0, 0));
    }

    /// RFC 8290, section 4.2: turns of a quantum, and a flow that begins comes first.
    #[test]
    fn flows_take_turns_and_a_new_one_is_first() {
        let mut queue =
            fill(Kind::FqCodel, 1 << 20, &[(1, 1514), (1, 1514), (1, 1514), (2, 757), (2, 757), (2, 757)]);
        let first = queue.next(Time::ZERO).expect("there is one");
        assert_eq!(said(&first), (1, 0));
        queue.admit(frame(3, 100, 9, Time::ZERO));
        // 1 has had its quantum; 2 has two of half a quantum; then 3, which is new, and only then those that are old.
        assert_eq!(drain(&mut queue), [(2, 3), (2, 4), (3, 9), (1, 1), (2, 5), (1, 2)]);
        assert_eq!((queue.bytes(), queue.packets(), queue.take_drops()), (0, 0, 0));
    }

    #[test]
    fn what_does_not_fit_pushes_out_the_first_of_the_fattest() {
        let mut queue = fill(Kind::FqCodel, 4000, &[(2, 1000), (1, 1500), (1, 1500), (2, 1000)]);
        assert_eq!((queue.bytes(), queue.packets(), queue.take_drops()), (3500, 3, 1));
        assert_eq!(drain(&mut queue), [(2, 0), (2, 3), (1, 2)]);
    }

    /// RFC 8289, section 5.6: the first drop comes an interval, 100 ms, after a packet that waited for the target, 5 ms, or longer; the second
    /// 100 ms after it, the third 100 / sqrt(2) ms after that.
    #[test]
    fn each_flow_has_a_codel() {
        let mut queue = Queue::new(Kind::FqCodel, 1 << 20);
        let mut drops = Vec::new();
        // A packet each millisecond, which waits for 20 ms.
        for now in 0..300u64 {
            queue.admit(frame(1, 1514, 0, Time::from_millis(now)));
            if now >= 20 {
                assert!(queue.next(Time::from_millis(now)).is_some());
                drops.extend((0..queue.take_drops()).map(|_| now));
                // Where one was dropped, another takes its place, so that the queue stays.
                while queue.packets() < 20 {
                    queue.admit(frame(1, 1514, 0, Time::from_millis(now - 19)));
                }
            }
        }
        assert_eq!(drops, [120, 220, 291]);
    }
}

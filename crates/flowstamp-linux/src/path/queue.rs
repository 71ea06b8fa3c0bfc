//! The queue before a link of the path: a FIFO, or FQ-CoDel (RFC 8290) for kernels without it.
//!
//! FQ-CoDel is `laws/queue/fq_codel.rs` with its default parameters, applied to frames.
//!
//! Deviations (RFC says / we do / because):
//! 1. Flows are identified by addresses, protocol and ports, with a random salt / by TCP's ports without
//!    salt, and all other traffic is one flow / the path is between two hosts, and a repeated lab gets the
//!    same queues.
//! 2. The limit is in packets (10,240) / it is the path's buffer in bytes / that is the limit of a FIFO here.
//! 3. ECN-capable packets are marked / dropped / labs have none, because `tcp_ecn` is off for connecting
//!    hosts.

use super::frame;
use crate::law::PACKET_BYTES;
use flowstamp_laws::queue::fq_codel::{FqCodel, Params, Waits};
use flowstamp_laws::queue::{Limit, QueueView, Verdict};
use flowstamp_laws::units::{Rate, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The kind of queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// First in, first out; packets that do not fit are dropped.
    #[default]
    Droptail,
    /// A queue for each flow, with CoDel in each.
    FqCodel,
}

#[derive(Debug)]
pub struct Waiting {
    /// When it arrived.
    pub came: Time,
    /// Whether it will be lost on the link.
    pub lost: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
pub struct Queue {
    /// Buffer size in bytes.
    limit: u64,
    /// Queued bytes.
    bytes: u64,
    packets: u32,
    /// Frames dropped by the queue since the last [`Queue::take_drops`].
    drops: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Fifo(VecDeque<Waiting>),
    FqCodel(Box<FqCodel<Waiting>>),
}

impl Queue {
    /// An empty queue with a buffer of `limit` bytes.
    pub fn new(kind: Kind, limit: u64) -> Self {
        let order = match kind {
            Kind::Droptail => Order::Fifo(VecDeque::new()),
            Kind::FqCodel => {
                // CoDel does not use the capacity. The quantum is a full frame (RFC 8290, section 5.2.4).
                let (limit, mean_packet_bytes) = (Limit::Bytes(limit), PACKET_BYTES);
                let view = QueueView { limit, capacity: Rate::ZERO, mean_packet_bytes };
                Order::FqCodel(Box::new(FqCodel::new(&Params::default(), &view, 0)))
            }
        };
        Self { limit, bytes: 0, packets: 0, drops: 0, order }
    }

    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Number of frames dropped since the last call.
    pub fn take_drops(&mut self) -> u64 {
        std::mem::take(&mut self.drops)
    }

    /// Whether a frame of `size` bytes is accepted.
    pub const fn has_room(&self, size: u64) -> bool {
        matches!(self.order, Order::FqCodel(_)) || self.bytes + size <= self.limit
    }

    /// Enqueues a frame regardless of the limit.
    pub fn push(&mut self, frame: Waiting) {
        self.bytes += u64::from(frame.size());
        self.packets += 1;
        match &mut self.order {
            Order::Fifo(frames) => frames.push_back(frame),
            Order::FqCodel(flows) => flows.enqueue(flow_of(&frame), frame),
        }
    }

    /// Enqueues a frame within the limit. Otherwise drops and counts one or more frames, and returns the
    /// buffer of one.
    pub fn admit(&mut self, frame: Waiting) -> Option<Vec<u8>> {
        if !self.has_room(frame.size().into()) {
            self.drops += 1;
            return Some(frame.bytes);
        }
        self.push(frame);
        let Self { limit, bytes, packets, drops, order } = self;
        let mut given_up = None;
        while let Order::FqCodel(flows) = order
            && *bytes > *limit
        {
            flows.give_up(|victim| {
                *bytes -= u64::from(victim.size());
                *packets -= 1;
                *drops += 1;
                given_up = Some(victim.bytes);
            });
        }
        given_up
    }

    /// Dequeues the frame whose transmission starts now.
    pub fn next(&mut self, now: Time) -> Option<Waiting> {
        loop {
            let (frame, verdict) = match &mut self.order {
                Order::Fifo(frames) => (frames.pop_front()?, Verdict::Enqueue),
                Order::FqCodel(flows) => flows.dequeue(now)?,
            };
            self.bytes -= u64::from(frame.size());
            self.packets -= 1;
            if verdict != Verdict::Drop {
                return Some(frame);
            }
            self.drops += 1;
        }
    }
}

impl Waits for Waiting {
    fn size(&self) -> u32 {
        self.bytes.len() as u32
    }
    fn since(&self) -> Time {
        self.came
    }
    fn ecn_capable(&self) -> bool {
        false // deviation 3
    }
}

/// The flow of a frame: its ports if it carries TCP or UDP, otherwise 0.
fn flow_of(frame: &Waiting) -> u64 {
    let tcp = frame::segment(&frame.bytes).map(|s| [s.source, s.destination]);
    let ports = tcp.or_else(|| frame::datagram(&frame.bytes).map(|d| [d.source, d.destination]));
    ports.map_or(0, |[from, to]| u64::from(from) << 16 | u64::from(to))
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

    /// RFC 8290, section 4.2: turns of a quantum, a full frame, for flows by their ports; all that is neither TCP nor UDP is one.
    #[test]
    fn flows_are_those_of_ports() {
        let mut queue =
            fill(Kind::FqCodel, 1 << 20, &[(1, 1514), (1, 1514), (1, 1514), (2, 757), (2, 757), (2, 757)]);
        let mut other = frame(1, 1514, 6, Time::ZERO);
        other.bytes[23] = 1;
        queue.admit(other);
        // Flow 1 has used its quantum; flow 2 sends two halves of a quantum; then other traffic, and the
        // round starts again.
        assert_eq!(drain(&mut queue), [(1, 0), (2, 3), (2, 4), (1, 6), (1, 1), (2, 5), (1, 2)]);
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
        // One packet per millisecond, each queued for 20 ms.
        for now in 0..300u64 {
            queue.admit(frame(1, 1514, 0, Time::from_millis(now)));
            if now >= 20 {
                assert!(queue.next(Time::from_millis(now)).is_some());
                drops.extend((0..queue.take_drops()).map(|_| now));
                // Replaces dropped packets, so that the queue keeps its length.
                while queue.packets() < 20 {
                    queue.admit(frame(1, 1514, 0, Time::from_millis(now - 19)));
                }
            }
        }
        assert_eq!(drops, [120, 220, 291]);
    }
}

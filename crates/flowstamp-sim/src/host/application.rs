//! Applications of hosts: produced data, arrived messages, and requests for more.
//!
//! ```text
//!   window     produced messages wait in the flow until its window lets their packets go
//!   datagrams  leave at the ticks of a clock, each delayed by a jitter of its own; they leave in order, at the sorted times
//!   requests   the receiver sends one; when it comes, the sender produces a response; when all of that has come, the receiver thinks
//! ```

use super::jitter::Jitter;
#[cfg(feature = "full")]
use super::video::Viewer;
use super::{Hosts, Sends, balance};
use crate::application::{Process, Produced};
use crate::delays::Delays;
use crate::events::Class;
use crate::fabric::Fabric;
use crate::packet::{CONTROL, DATA, NO_SACK, Packet, REQUEST};
#[cfg(feature = "full")]
use crate::scenario::Application;
use crate::scenario::FlowGroup;
use flowstamp_laws::Stamp;
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::{Bytes, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Maximum number of frames of datagrams in flight; beyond it the oldest counts as lost.
pub const MOST_FRAMES: usize = 4096;

/// The application of one flow.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) process: Process,
    /// When the application produces next; [`Time::MAX`] before the flow has begun and while a response is in flight.
    due: Time,
    /// Datagrams and frames that are due, each with its tick. `leaves` holds the times at which they leave.
    waiting: VecDeque<(Produced, Time)>,
    leaves: BinaryHeap<Reverse<Time>>,
    /// Messages that were produced and are not yet finished, in order.
    messages: VecDeque<Message>,
    /// Number of messages, from the first, that have arrived completely.
    complete: usize,
    /// First packet of the first message.
    base: u32,
    /// Number of packets produced so far.
    produced: u32,
    /// Number of requests so far. Then of the last request: when it was first sent, how often it was sent, and whether
    /// it has arrived.
    asked: u32,
    asked_at: Time,
    tries: u8,
    heard: bool,
    /// The client of a video.
    #[cfg(feature = "full")]
    pub(super) viewer: Option<Box<Viewer>>,
}

/// Memory of the application of each flow of a group, bytes.
#[must_use]
pub fn app_bytes(group: &FlowGroup) -> usize {
    match &group.application {
        #[cfg(feature = "full")]
        Some(Application::Video(params)) => {
            size_of::<App>() + size_of::<Viewer>() + Viewer::heap_bytes(params)
        }
        _ => size_of::<App>(),
    }
}
/// Memory of a message that is not finished, bytes.
pub const MESSAGE_BYTES: usize = size_of::<Message>();
/// Memory of a datagram that is due, bytes.
pub const WAITING_BYTES: usize = size_of::<(Produced, Time)>() + size_of::<Time>();

/// A frame, a response, or a packet of an application.
#[derive(Clone, Copy, Debug)]
struct Message {
    at: Time,
    /// One above the number of its last packet.
    end: u32,
    /// Packets that have not arrived (datagrams).
    missing: u32,
    /// Bytes of its last packet.
    last: u16,
}

/// Counts of the applications of a group.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Counts so far.
    pub now: Offered,
    /// Counts at the end of warm-up.
    pub at_warmup: Offered,
    /// Times from production or request of a message to its complete arrival, after warm-up.
    pub times: Delays,
}

/// Counts of messages: packets, frames or responses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered {
    /// Messages produced.
    pub offered: u64,
    /// Bytes of payload produced.
    pub offered_bytes: u64,
    /// Messages that arrived completely.
    pub completed: u64,
    /// Datagrams that the source dropped.
    pub dropped: u64,
}

impl Tally {
    /// Adds the counts of other flows of the group.
    #[cfg(feature = "parallel")]
    pub(super) fn add(&mut self, of: &Self) {
        for (here, there) in [(&mut self.now, &of.now), (&mut self.at_warmup, &of.at_warmup)] {
            here.offered += there.offered;
            here.offered_bytes += there.offered_bytes;
            here.completed += there.completed;
            here.dropped += there.dropped;
        }
        self.times = Delays::together([&self.times, &of.times]);
    }
}

impl App {
    pub(super) fn new(process: Process) -> Box<Self> {
        Box::new(Self {
            #[cfg(feature = "full")]
            viewer: process.video().map(|params| Box::new(Viewer::new(params))),
            process,
            due: Time::MAX,
            waiting: VecDeque::new(),
            leaves: BinaryHeap::new(),
            messages: VecDeque::new(),
            complete: 0,
            base: 0,
            produced: 0,
            asked: 0,
            asked_at: Time::ZERO,
            tries: 0,
            heard: true,
        })
    }

    /// Number of packets produced.
    pub(super) fn available(&self) -> u32 {
        self.produced.min(u32::MAX - 1)
    }

    /// Removes complete messages below `una`, the first packet that is not acknowledged.
    pub(super) fn forget(&mut self, una: u32) {
        while self.complete > 0 && self.messages.front().is_some_and(|m| m.end <= una) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.base = message.end;
            self.complete = self.complete.saturating_sub(1);
        }
    }

    /// Size on the wire, bytes, of a packet whose message is not finished.
    pub(super) fn size(&self, seq: u32, full: u16) -> u16 {
        let at = self.messages.partition_point(|m| m.end <= seq);
        self.messages.get(at).filter(|m| m.end == seq + 1).map_or(full, |m| m.last)
    }

    /// Produces the response to a request.
    fn response(&mut self) -> Produced {
        #[cfg(feature = "full")]
        if let Some(viewer) = &self.viewer {
            return self.process.response(viewer.requested_bytes());
        }
        self.process.produce()
    }

    fn push(&mut self, made: &Produced, at: Time) {
        self.produced = self.produced.saturating_add(made.packets);
        let message = Message { at, end: self.produced, missing: made.packets, last: made.last };
        self.messages.push_back(message);
    }

    /// When the next datagram or frame leaves. A tick after that time cannot produce an earlier departure.
    /// A law with a `pace` lets the next one be produced when this one has left at that rate.
    fn next_leaves(&mut self, jitter: &mut Option<Box<Jitter>>, pace: Option<Rate>) -> Time {
        loop {
            let first = self.leaves.peek().map_or(Time::MAX, |Reverse(time)| *time);
            if self.due >= first {
                return first;
            }
            let made = self.process.produce();
            let later = jitter.as_mut().map_or(Time::ZERO, |jitter| jitter.draw());
            self.leaves.push(Reverse(self.due.saturating_add(later)));
            self.waiting.push_back((made, self.due));
            let wire = u64::from(made.packets - 1) * u64::from(made.full) + u64::from(made.last);
            let paced = pace.map_or(Time::ZERO, |rate| rate.tx_time(Bytes::new(wire)));
            self.due = self.due.saturating_add(self.process.gap(&made).max(paced));
        }
    }

    /// Takes note that a datagram has arrived. Returns when its frame was produced, if the frame is now complete.
    fn came(&mut self, seq: u32) -> Option<Time> {
        if seq < self.base {
            return None;
        }
        let at = self.messages.partition_point(|m| m.end <= seq);
        let message = self.messages.get_mut(at)?;
        message.missing -= 1;
        let since = (message.missing == 0).then_some(message.at);
        while self.messages.front().is_some_and(|m| m.missing == 0) {
            self.pop();
        }
        since
    }
}

impl Hosts {
    /// For a flow with a window, produces the messages that are due, or lets the receiver send its request.
    pub(super) fn produce(&mut self, net: &mut Fabric, number: u32, stop: Time) {
        let now = net.now;
        let flow = &mut self.flows[number as usize];
        let Some(app) = &mut flow.app else { return };
        if flow.sends != Sends::Messages || now >= stop {
            return;
        }
        if !flow.started {
            app.due = now + app.process.first();
        }
        if let Some(operations) =
            self.groups[flow.group as usize].operations.as_mut().filter(|_| app.due <= now)
        {
            operations.begin(now);
        }
        if app.process.is_asked() {
            if app.due <= now {
                self.ask(net, number);
            }
        } else {
            while app.due <= now {
                let made = app.process.produce();
                app.push(&made, now);
                app.due = app.due.saturating_add(app.process.gap(&made));
                offered(&mut self.groups[flow.group as usize].tally, &made);
            }
        }
        let flow = &mut self.flows[number as usize];
        let due = flow.app.as_ref().map_or(Time::MAX, |app| app.due);
        flow.application.arm(due, &mut net.events, Class::Application, number);
    }

    /// Sends the receiver's next request, or repeats the last one if it has not arrived.
    fn ask(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Some(app) = &mut flow.app else { return };
        if app.heard {
            #[cfg(feature = "full")]
            if let Some(due) = app.viewer.as_mut().and_then(|viewer| viewer.waits(net.now)) {
                app.due = due;
                return;
            }
            app.heard = false;
            app.asked += 1;
            app.asked_at = net.now;
            app.tries = 0;
        }
        let params = self.groups[flow.group as usize].transport();
        let wait = (params.first_rto(Time::ZERO) * (1 << app.tries.min(10))).min(params.last_rto(Time::ZERO));
        app.tries = app.tries.saturating_add(1);
        app.due = net.now.saturating_add(wait);
        let request = Packet {
            stamp: Stamp::default(),
            sent_at: net.now,
            flow: number,
            seq: app.asked,
            next: balance::route(&mut self.balancer, flow.routes.acks, number, balance::ACKS, net.now),
            sack: NO_SACK,
            size: self.ack_bytes,
            generation: flow.generation,
            bits: 0,
            flags: CONTROL | REQUEST,
            header: flow.spoken(),
        };
        net.send(request);
    }

    /// Handles a request: produces the response, unless the request is a copy.
    pub(super) fn asked(&mut self, net: &mut Fabric, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let Some(app) = &mut flow.app else { return };
        if app.heard || packet.seq != app.asked {
            return;
        }
        app.heard = true;
        app.due = Time::MAX;
        let made = app.response();
        app.push(&made, app.asked_at);
        offered(&mut self.groups[flow.group as usize].tally, &made);
        #[cfg(feature = "full")]
        if net.advises() {
            self.ask_for_advice(net, packet.flow);
        }
        self.send(net, packet.flow);
    }

    /// Takes note that data of a flow with a window have arrived in order, which may complete messages.
    pub(super) fn delivered(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Some(app) = &mut flow.app else { return };
        let next = flow.receiver.next_expected();
        let mut arrived = 0;
        while let Some(message) = app.messages.get(app.complete).filter(|m| m.end <= next) {
            app.complete += 1;
            arrived += 1;
            let tally = &mut self.groups[flow.group as usize].tally;
            tally.now.completed += 1;
            tally.times.add(net.now - message.at);
            if app.process.is_asked() {
                let made = Produced { payload: 0, packets: 0, full: 0, last: 0 };
                app.due = net.now.saturating_add(app.process.gap(&made));
                flow.application.arm(app.due, &mut net.events, Class::Application, number);
            }
        }
        #[cfg(feature = "full")]
        if arrived > 0 && app.viewer.is_some() {
            return self.segment_arrived(net.now, number);
        }
        if cfg!(feature = "full") && self.groups[flow.group as usize].operations.is_some() {
            self.messages_arrived(net, number, arrived);
        }
    }

    /// Produces a message now, which another host's message has caused.
    pub(super) fn produce_now(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Some(app) = &mut flow.app else { return };
        let made = app.process.produce();
        app.push(&made, net.now);
        offered(&mut self.groups[flow.group as usize].tally, &made);
        self.send(net, number);
    }

    /// Lets a flow's application produce at `time`.
    pub(super) fn produce_at(&mut self, net: &mut Fabric, number: u32, time: Time) {
        let flow = &mut self.flows[number as usize];
        let Some(app) = &mut flow.app else { return };
        app.due = time;
        flow.application.arm(time, &mut net.events, Class::Application, number);
    }

    /// Sends the datagrams that the application has produced, until the flow stops.
    pub(super) fn send_datagrams(&mut self, net: &mut Fabric, number: u32) {
        let now = net.now;
        let flow = &mut self.flows[number as usize];
        let stop = self.groups[flow.group as usize].stops(&self.records[flow.record as usize]);
        if now >= stop {
            return;
        }
        let Some(mut app) = flow.app.take() else { return };
        if app.due == Time::MAX {
            app.due = now + app.process.first();
        }
        let pacing = flow.law.pacing();
        let pace = pacing.map(|pacing| pacing.rate);
        let next = loop {
            let next = app.next_leaves(&mut self.flows[number as usize].jitter, pace);
            if next > now {
                break next.min(Time::from_ps(Time::MAX.as_ps() - 1));
            }
            app.leaves.pop();
            if let Some((made, at)) = app.waiting.pop_front() {
                self.send_at_once(net, number, &mut app, &made, at);
            }
        };
        let flow = &mut self.flows[number as usize];
        flow.app = Some(app);
        flow.pace.arm(next, &mut net.events, Class::Pace, number);
        if let Some(pacing) = pacing {
            let ask = now + pacing.probe_after(flow.sender.srtt(), self.ack_bytes.into());
            self.arm_probe(net, number, ask);
        }
    }

    /// Sends a datagram or frame that was due `at`.
    fn send_at_once(&mut self, net: &mut Fabric, number: u32, app: &mut App, made: &Produced, at: Time) {
        let flow = &mut self.flows[number as usize];
        let group = &mut self.groups[flow.group as usize];
        offered(&mut group.tally, made);
        let first = flow.sent;
        for left in (0..made.packets).rev() {
            let size = if left == 0 { made.last } else { made.full };
            if let Some((most, rate)) = group.send_buffer {
                if rate.bytes_in(net.backlog(flow.routes.data)) + f64::from(size) > most {
                    group.tally.now.dropped += 1;
                    continue;
                }
            }
            net.send(Packet {
                stamp: flow.law.stamp(net.now, flow.sender.srtt()),
                sent_at: net.now,
                flow: number,
                seq: flow.sent,
                next: balance::route(&mut self.balancer, flow.routes.data, number, balance::DATA, net.now),
                sack: NO_SACK,
                size,
                generation: flow.generation,
                bits: flow.law.bits(),
                flags: DATA | flow.ect,
                header: flow.spoken(),
            });
            flow.sent = flow.sent.wrapping_add(1);
        }
        // A frame whose packets were all dropped at the source is lost.
        if app.process.makes_messages() && flow.sent != first {
            app.messages.push_back(Message { at, end: flow.sent, missing: made.packets, last: made.last });
            if app.messages.len() > MOST_FRAMES {
                app.pop();
            }
        }
    }

    /// Handles a datagram that has arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn arrive_datagram(&mut self, net: &Fabric, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        if !flow.receiver.count(packet.seq) {
            return; // A copy.
        }
        let bytes = u64::from(packet.size - self.header_bytes);
        flow.delivered_bytes += bytes;
        let group = &mut self.groups[flow.group as usize];
        group.delivered_bytes += bytes;
        let Some(app) = &mut flow.app else { return };
        if !app.process.makes_messages() {
            group.tally.now.completed += 1;
        } else if let Some(at) = app.came(packet.seq) {
            group.tally.now.completed += 1;
            group.tally.times.add(net.now - at);
        }
    }
}

fn offered(tally: &mut Tally, made: &Produced) {
    tally.now.offered += 1;
    tally.now.offered_bytes += made.payload;
}

//! One direction of the path: a buffer, a router's law, a link with a capacity, and a propagation delay. It
//! uses no clock and no I/O: callers pass times in, and events between two calls run in order of their own
//! times.

use super::frame;
use super::queue::{self, Queue, Waiting};
use crate::law::{self, Law};
use flowstamp_laws::medium::Service;
use flowstamp_laws::random::Stream;
use flowstamp_laws::registry::AnyRouter;
use flowstamp_laws::router::{LinkView, MAX_TIMERS, PacketIn, PacketOut};
use flowstamp_laws::units::Time;
use std::collections::{BTreeMap, VecDeque};

/// The properties of a link.
#[derive(Clone, Debug)]
pub struct LinkSpecification {
    /// The capacity, which determines when transmissions end; `None` transmits in no time.
    pub service: Option<Service>,
    pub delay: Time,
    /// Buffer size in bytes, and the order of its packets.
    pub buffer_bytes: u64,
    pub queue: queue::Kind,
    /// Probability that a packet is lost on the link.
    pub loss: f64,
    /// The router's law, if any.
    pub router: Option<AnyRouter>,
    /// When the law's timers first fire.
    pub timers: [Option<Time>; MAX_TIMERS],
    /// The value that the router announces to packets: [`Law::told`].
    pub told: u32,
    /// Seed of the random losses, and the name of their stream.
    pub seed: (u64, &'static str),
    /// Statistics start here.
    pub warmup: Time,
    /// Statistics end here.
    pub until: Time,
    /// Interval of samples.
    pub every: Time,
    /// Maximum number of recorded departures.
    pub recorded: usize,
}

/// Bytes kept of a recorded frame: room for Ethernet, two VLAN tags, IPv6 and TCP with all its options.
const HEADERS: usize = 128;

/// A frame at the start of its transmission.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Time of the start.
    pub time: Time,
    /// Its first bytes, at most `HEADERS`.
    pub headers: Vec<u8>,
    /// Its full size in bytes.
    pub wire_len: u32,
}

/// A frame in flight.
#[derive(Debug)]
pub struct InFlight {
    /// When it is due at the other interface.
    pub deadline: Time,
    /// Whether it is lost on the link.
    pub lost: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Counters since the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Packets that arrived at the link.
    pub arrivals: u64,
    /// Packets dropped because the buffer was full, or by the queue.
    pub drops: u64,
    /// Packets lost at random.
    pub losses: u64,
    /// Packets that the law stamped.
    pub stamped: u64,
    /// Bytes that started their transmission.
    pub sent_bytes: u64,
    /// The largest queue.
    pub max_queue_bytes: u64,
    /// Time integral of the queue, bytes x picoseconds.
    integral: u128,
    /// Time spent at each queue length in bytes, picoseconds.
    time_by_queue: BTreeMap<u64, u64>,
}

/// The state of the link over one sampling interval.
#[derive(Clone, Debug)]
pub struct Sample {
    /// End of the interval.
    pub time: Time,
    /// Bytes whose transmission started in the interval.
    pub sent_bytes: u64,
    /// The queue at the end of the interval.
    pub queue_bytes: u64,
    /// The mean queue over the interval.
    pub mean_queue_bytes: f64,
    /// Packets dropped in the interval.
    pub drops: u64,
    /// The law's variables.
    pub law: Vec<(&'static str, f64)>,
}

#[derive(Debug)]
pub struct EmulatedLink {
    spec: LinkSpecification,
    /// The law whose stamps the router reads and writes.
    law: Option<&'static Law>,
    random: Stream,
    /// All events up to this time are done.
    now: Time,
    /// The end of the last transmission.
    free: Time,
    /// When the next transmission starts, if a packet is queued.
    starts: Option<Time>,
    waiting: Queue,
    frames: VecDeque<InFlight>,
    timers: [Option<Time>; MAX_TIMERS],
    counters: Counters,
    warm: bool,
    /// Counters at `until`.
    ended: Option<Counters>,
    /// The next sample, and counters at the last one.
    sample_at: Time,
    sampled: (u64, u64, u128),
    samples: Vec<Sample>,
    recorded: Vec<Recorded>,
}

/// The next event without an arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start,
    Timer(usize),
    // Ordered so that a sample's interval ends before statistics begin or end.
    Sample,
    Warm,
    End,
}

impl EmulatedLink {
    pub fn new(spec: LinkSpecification) -> Self {
        Self {
            law: spec.router.as_ref().and_then(|router| law::of_header(router.header())),
            random: Stream::new(spec.seed.0, spec.seed.1),
            now: Time::ZERO,
            free: Time::ZERO,
            starts: None,
            waiting: Queue::new(spec.queue, spec.buffer_bytes),
            frames: VecDeque::new(),
            timers: spec.timers,
            counters: Counters::default(),
            warm: false,
            ended: None,
            sample_at: spec.every,
            sampled: (0, 0, 0),
            samples: Vec::new(),
            // Allocated at once, so that the path never has to grow it.
            recorded: Vec::with_capacity(spec.recorded),
            spec,
        }
    }

    /// The recorded departures.
    pub fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }

    /// Counters from the warm-up to the end of statistics.
    pub fn counters(&self) -> &Counters {
        self.ended.as_ref().unwrap_or(&self.counters)
    }

    /// Samples so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Time average of the queue since the warm-up.
    pub fn mean_queue_bytes(&self) -> f64 {
        let span = self.now.min(self.spec.until).saturating_sub(self.spec.warmup).as_ps().max(1);
        self.counters().integral as f64 / span as f64
    }

    /// The queue length that was not exceeded for `share` of the time since the warm-up.
    pub fn queue_quantile(&self, share: f64) -> u64 {
        let all: u64 = self.counters().time_by_queue.values().sum();
        let mut seen = 0;
        for (queue, time) in &self.counters().time_by_queue {
            seen += time;
            if seen as f64 >= share * all as f64 {
                return *queue;
            }
        }
        0
    }

    fn next_event(&self) -> (Time, Event) {
        // Samples continue until statistics end.
        let mut next = (Time::MAX, Event::End);
        if self.ended.is_none() {
            next = (self.sample_at, Event::Sample).min((self.spec.until, Event::End));
        }
        if !self.warm {
            next = next.min((self.spec.warmup, Event::Warm));
        }
        if let Some(starts) = self.starts {
            next = next.min((starts, Event::Start));
        }
        for (which, timer) in self.timers.iter().enumerate() {
            if let Some(at) = timer {
                next = next.min((*at, Event::Timer(which)));
            }
        }
        next
    }

    /// Runs all events up to `to`. A time in the past changes nothing.
    pub fn advance(&mut self, to: Time) {
        loop {
            let (at, event) = self.next_event();
            if at > to {
                break;
            }
            self.pass(at);
            let view = self.view();
            match event {
                Event::Warm => {
                    self.warm = true;
                    self.counters = Counters { max_queue_bytes: self.waiting.bytes(), ..Counters::default() };
                    self.sampled = (0, 0, 0);
                }
                Event::Start => self.start(),
                Event::Timer(which) => {
                    if let Some(router) = &mut self.spec.router {
                        self.timers[which] = Some(router.on_timer(which, view));
                    }
                }
                Event::Sample => self.sample(),
                Event::End => self.ended = Some(self.counters.clone()),
            }
        }
        self.pass(to);
    }

    /// Advances the time to `to` with a constant queue.
    fn pass(&mut self, to: Time) {
        let span = to.saturating_sub(self.now).as_ps();
        if span > 0 {
            self.counters.integral += u128::from(self.waiting.bytes()) * u128::from(span);
            *self.counters.time_by_queue.entry(self.waiting.bytes()).or_default() += span;
            self.now = to;
        }
    }

    /// The link as the router sees it.
    fn view(&self) -> LinkView {
        LinkView { now: self.now, queue_bytes: self.waiting.bytes(), queue_packets: self.waiting.packets() }
    }

    /// Starts the transmission of the next packet, if the queue has one that it does not drop.
    fn start(&mut self) {
        let next = self.waiting.next(self.now);
        self.counters.drops += self.waiting.take_drops();
        let Some(mut frame) = next else {
            self.starts = None;
            return;
        };
        let view = self.view();
        let size = frame.bytes.len();
        self.counters.sent_bytes += size as u64;
        if let Some((router, law)) = self.spec.router.as_mut().zip(self.law)
            && let Some(mut stamped) = frame::stamp_in(&frame.bytes, law)
        {
            let random = &mut self.random;
            let mut bits = frame::ecn(&frame.bytes, &stamped);
            let packet = PacketOut { size: size as u32, stamp: &mut stamped.stamp, bits: &mut bits };
            router.on_departure(view, packet, || random.uniform());
            (law.tell)(&mut stamped.stamp, self.spec.told);
            frame::write(&mut frame.bytes, &stamped, law);
            frame::write_ecn(&mut frame.bytes, &stamped, bits);
            self.counters.stamped += 1;
        }
        if self.recorded.len() < self.spec.recorded {
            let headers = frame.bytes[..size.min(HEADERS)].to_vec();
            self.recorded.push(Recorded { time: self.now, headers, wire_len: size as u32 });
        }
        let service = self.spec.service.as_mut();
        self.free = service.map_or(self.now, |service| service.finish(self.now, size as u32));
        self.starts = (self.waiting.packets() > 0).then_some(self.free);
        let deadline = self.free + self.spec.delay;
        self.frames.push_back(InFlight { deadline, lost: frame.lost, bytes: frame.bytes });
    }

    fn sample(&mut self) {
        let (sent, drops, integral) = self.sampled;
        let c = &self.counters;
        let mut law = Vec::new();
        if let Some(router) = &self.spec.router {
            router.variables(&mut |name, value| law.push((name, value)));
        }
        self.samples.push(Sample {
            time: self.now,
            sent_bytes: c.sent_bytes.saturating_sub(sent),
            queue_bytes: self.waiting.bytes(),
            mean_queue_bytes: c.integral.saturating_sub(integral) as f64 / self.spec.every.as_ps() as f64,
            drops: c.drops - drops,
            law,
        });
        self.sampled = (c.sent_bytes, c.drops, c.integral);
        self.sample_at += self.spec.every;
    }

    /// Handles the arrival of a frame at `at`. Returns the buffer of a dropped frame, for reuse.
    pub fn arrive(&mut self, at: Time, bytes: Vec<u8>) -> Option<Vec<u8>> {
        self.advance(at);
        let at = self.now;
        let size = bytes.len() as u64;
        self.counters.arrivals += 1;
        if let Some(router) = &mut self.spec.router {
            let view = LinkView {
                now: at,
                queue_bytes: self.waiting.bytes(),
                queue_packets: self.waiting.packets(),
            };
            let stamped = self.law.and_then(|law| frame::stamp_in(&bytes, law));
            router.on_arrival(view, PacketIn::of(size as u32, stamped.as_ref().map(|s| &s.stamp)));
        }
        let is_idle = self.starts.is_none() && self.free <= at;
        // A frame that a FIFO drops on arrival draws no random number.
        let fits = is_idle || self.waiting.has_room(size);
        let lost = fits && self.spec.loss > 0.0 && self.random.uniform() < self.spec.loss;
        self.counters.losses += u64::from(lost);
        let frame = Waiting { came: at, lost, bytes };
        if is_idle {
            self.waiting.push(frame);
            self.starts = Some(at);
            self.advance(at);
            return None;
        }
        let back = self.waiting.admit(frame);
        self.counters.drops += self.waiting.take_drops();
        self.starts.get_or_insert(self.free);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(self.waiting.bytes());
        back
    }

    /// When the next packet is due.
    pub fn deadline(&self) -> Option<Time> {
        self.frames.front().map(|frame| frame.deadline)
    }

    /// The packets that are due at `now`; `advance` must have reached `now`.
    pub fn due(&self, now: Time) -> impl Iterator<Item = &InFlight> {
        self.frames.iter().take_while(move |frame| frame.deadline <= now)
    }

    /// Removes the first packet in flight.
    pub fn take(&mut self) -> Option<InFlight> {
        self.frames.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rate_mbps: f64, buffer_bytes: u64) -> EmulatedLink {
        EmulatedLink::new(LinkSpecification {
            service: Some(Service::constant(flowstamp_laws::Rate::from_mbps(rate_mbps))),
            delay: Time::from_millis(5),
            buffer_bytes,
            queue: queue::Kind::Droptail,
            loss: 0.0,
            router: None,
            timers: [None; MAX_TIMERS],
            told: 0,
            seed: (1, "test"),
            warmup: Time::ZERO,
            until: Time::from_millis(20_000),
            every: Time::from_millis(10),
            recorded: 2,
        })
    }

    #[test]
    fn packets_leave_at_the_rate_and_in_order() {
        // 1000 bytes at 8 Mb/s take 1 ms; three frames fit into the buffer, and one is in transmission.
        let mut link = link(8.0, 3000);
        let back: Vec<bool> =
            (0..6).map(|_| link.arrive(Time::from_millis(1), vec![0; 1000]).is_some()).collect();
        assert_eq!(back, [false, false, false, false, true, true]);
        link.advance(Time::from_millis(20));
        let mut deadlines = Vec::new();
        while let Some(frame) = link.take() {
            deadlines.push(frame.deadline);
        }
        assert_eq!(deadlines, [7, 8, 9, 10].map(Time::from_millis));
        assert_eq!((link.counters().drops, link.counters().max_queue_bytes), (2, 3000));
        // 3000 B for 1 ms, 2000 B for 1 ms, 1000 B for 1 ms, of 20 ms.
        assert!((link.mean_queue_bytes() - 300.0).abs() < 1e-6);
        assert_eq!(link.samples().len(), 2);
        assert_eq!(link.samples()[0].sent_bytes, 4000);
        let recorded: Vec<_> =
            link.recorded().iter().map(|r| (r.time, r.headers.len(), r.wire_len)).collect();
        assert_eq!(recorded, [1, 2].map(|ms| (Time::from_millis(ms), HEADERS, 1000)));
    }

    #[test]
    fn when_it_is_told_changes_nothing() {
        let run = |late: bool| {
            let mut link = link(8.0, 30_000);
            for n in 0..50u64 {
                if !late {
                    link.advance(Time::from_micros(100 * n));
                }
                link.arrive(Time::from_micros(100 * n), vec![0; 100 + n as usize]);
            }
            link.advance(Time::from_millis(50));
            (link.mean_queue_bytes(), link.queue_quantile(0.95), link.frames.back().map(|f| f.deadline))
        };
        assert_eq!(run(true), run(false));
    }

    #[test]
    fn losses_follow_from_the_seed() {
        let run = |seed| {
            let mut link = EmulatedLink::new(LinkSpecification {
                loss: 0.1,
                seed: (seed, "test"),
                ..link(8.0, 1 << 30).spec
            });
            for n in 0..10_000 {
                link.arrive(Time::from_millis(n), vec![0; 100]);
            }
            link.counters().losses
        };
        assert_eq!(run(1), run(1));
        // 1000 +- five standard deviations.
        assert!((850..1150).contains(&run(2)), "{}", run(2));
    }
}

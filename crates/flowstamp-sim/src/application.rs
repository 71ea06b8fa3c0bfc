//! Data that an application produces over time: the processes that `application` of a group of flows names.
//!
//! ```text
//!   constant   packet, gap, packet, gap, ...          gap = its size / rate
//!   poisson    gap, packet, gap, packet, ...          gap exponential
//!   onoff      as constant, by a clock that stops in off-periods
//!   frames     frame k at k / fps
//!   requests   request, response, think, request, ... a closed loop, which hosts drive (host/application.rs)
//!   video      the same with segments of a video, whose sizes the client chooses (host/video.rs)
//!   collective a message in each step, which hosts drive (host/collective.rs)
//! ```
//!
//! Each flow draws from its own streams, `application/<group>/<index>` and `packet/<group>/<index>`, so that a change
//! of one flow leaves the others' draws as they were.

use crate::random::Stream;
use crate::scenario::{self, DrawnPeriods, FlowGroup, Loaded, MessageSizes, PacketSizes, Periods, Scenario};
use crate::workload::{SizeLaw, shape_with_mean};
use flowstamp_laws::units::{Bytes, Rate, Time};
#[cfg(feature = "full")]
use flowstamp_laws::video;

/// A refused parameter: its key below the group, and why.
type Refused = (String, String);

fn refused<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, Refused> {
    Err((key.into(), message.into()))
}

/// Maximum number of frames per second.
const MOST_FPS: f64 = 1e6;

/// One product of an application: a packet, a frame or a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// Bytes of payload.
    pub payload: u64,
    /// Number of packets.
    pub packets: u32,
    /// Size on the wire of each packet except the last, bytes.
    pub full: u16,
    /// Size on the wire of the last packet, bytes.
    pub last: u16,
}

/// The application of one flow.
#[derive(Clone, Debug)]
pub struct Process {
    clock: Clock,
    content: Content,
    /// Rate on the wire during on-periods, for [`Clock::Constant`] and [`Clock::OnOff`].
    rate: Rate,
    header: u16,
    draws: Stream,
}

#[derive(Clone, Debug)]
enum Clock {
    Constant,
    Poisson {
        mean_gap_s: f64,
    },
    OnOff {
        on: Periods,
        off: Periods,
        sends: bool,
        left_s: f64,
    },
    Frames {
        fps: f64,
        ticks: u64,
        elapsed: Time,
    },
    Requests {
        think: Periods,
    },
    #[cfg(feature = "full")]
    Video(Box<video::Params>),
    Collective,
}

#[derive(Clone, Debug)]
enum Content {
    /// Packets of one size.
    Packet(u16),
    /// Packets of several sizes, with cumulative shares.
    Mix(Vec<(u16, f64)>, Stream),
    /// Frames or responses, cut into packets of `full` bytes.
    Messages { sizes: Messages, full: u16 },
}

#[derive(Clone, Debug)]
enum Messages {
    InTurn(Vec<u64>, usize),
    Drawn(Box<SizeLaw>),
}

impl Process {
    /// Makes the application of the flows of `group`; `None` if they always have data to send.
    ///
    /// # Errors
    /// The first invalid key.
    pub fn new(group: &FlowGroup, loaded: &Loaded) -> Result<Option<Self>, Refused> {
        let scenario = &loaded.scenario;
        let constant;
        let (application, below) = match (&group.application, group.rate) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return refused(
                    "rate",
                    "is short for an application of kind \"constant\"; leave out one of them",
                );
            }
            (Some(application), None) => (application, "application."),
            (None, rate) => {
                constant = scenario::Application::Constant { rate, interval: None };
                (&constant, "")
            }
        };
        let key = |k: &str| format!("{below}{k}");
        let header = scenario.header.get() as u16;
        let mix = packet_sizes(group.packet.as_ref(), scenario)?;
        let mean = |of: fn(u16) -> f64| mix.iter().map(|(size, share)| of(*size) * share).sum::<f64>();
        let wire = mean(f64::from);
        let wire_rate =
            |rate: &Option<Rate>, interval: &Option<Time>| on_the_wire(*rate, *interval, wire, header, &key);
        let mut rate = Rate::from_bps(0.0);
        let clock = match application {
            scenario::Application::Constant { rate: of, interval } => {
                rate = wire_rate(of, interval)?;
                Clock::Constant
            }
            scenario::Application::Poisson { rate: of, interval } => {
                Clock::Poisson { mean_gap_s: wire / wire_rate(of, interval)?.bytes_per_sec() }
            }
            scenario::Application::OnOff { rate: of, interval, on, off } => {
                rate = wire_rate(of, interval)?;
                check_periods(&key("on"), on, Time::from_ps(1))?;
                check_periods(&key("off"), off, Time::ZERO)?;
                Clock::OnOff { on: on.clone(), off: off.clone(), sends: false, left_s: 0.0 }
            }
            scenario::Application::Frames { fps, .. } if !(*fps > 0.0 && *fps <= MOST_FPS) => {
                return refused(key("fps"), format!("is {fps}; it must be above 0 and at most {MOST_FPS}"));
            }
            scenario::Application::Frames { fps, .. } => {
                Clock::Frames { fps: *fps, ticks: 0, elapsed: Time::ZERO }
            }
            scenario::Application::Requests { think, .. } => {
                check_periods(&key("think"), think, Time::ZERO)?;
                Clock::Requests { think: think.clone() }
            }
            #[cfg(feature = "full")]
            scenario::Application::Video(params) => {
                params.check().map_err(|(k, message)| (key(k), message))?;
                Clock::Video(Box::new(params.clone()))
            }
        };
        let content = content(application, &mix, header, &key, loaded)?;
        Ok(Some(Self { clock, content, rate, header, draws: Stream::new(0, "") }))
    }

    /// Makes the process of a flow that takes part in collective operations: messages of `message` bytes, in packets
    /// of the scenario's size.
    #[must_use]
    pub fn collective(message: u64, scenario: &Scenario) -> Self {
        let (full, header) = (scenario.packet.get() as u16, scenario.header.get() as u16);
        let content = Content::Messages { sizes: Messages::InTurn(vec![message], 0), full };
        Self {
            clock: Clock::Collective,
            content,
            rate: Rate::from_bps(0.0),
            header,
            draws: Stream::new(0, ""),
        }
    }

    /// Returns the process for one flow of a group, with its own streams.
    #[must_use]
    pub fn of_flow(&self, seed: u64, group: &str, index: u32) -> Self {
        let stream = |what: &str| Stream::new(seed, &format!("{what}/{group}/{index}"));
        let mut own = Self { draws: stream("application"), ..self.clone() };
        match &mut own.content {
            Content::Mix(_, draws) => *draws = stream("packet"),
            Content::Messages { sizes: Messages::Drawn(law), .. } => law.draws_from(stream("message")),
            _ => {}
        }
        if let Clock::OnOff { on, off, sends, left_s } = &mut own.clock {
            let (mean_on, mean_off) = (on.mean_s(), off.mean_s());
            *sends = own.draws.uniform() * (mean_on + mean_off) < mean_on;
            *left_s = if *sends { &*on } else { &*off }.draw_s(&mut own.draws);
        }
        own
    }

    /// Whether the receiving host requests what the application produces.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        match self.clock {
            Clock::Requests { .. } => true,
            #[cfg(feature = "full")]
            Clock::Video(_) => true,
            _ => false,
        }
    }

    /// The video's parameters, if it is one.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn video(&self) -> Option<&video::Params> {
        match &self.clock {
            Clock::Video(params) => Some(params),
            _ => None,
        }
    }

    /// Whether the application produces frames or responses, which count when they arrive completely.
    #[must_use]
    pub fn makes_messages(&self) -> bool {
        matches!(self.content, Content::Messages { .. })
    }

    /// Rate of payload, if it is constant and all packets have the same size.
    #[must_use]
    pub fn constant_rate(&self) -> Option<Rate> {
        let payload = self.mean_payload();
        let wire = payload + f64::from(self.header);
        matches!(self.clock, Clock::Constant).then(|| Rate::from_bps(self.rate.bps() * (payload / wire)))
    }

    /// Mean gap of a periodic clock, which may become phase-locked with others; zero for a clock that is not periodic.
    #[must_use]
    pub fn beat(&self) -> Time {
        match self.clock {
            Clock::Constant | Clock::OnOff { .. } => {
                let wire = self.mean_payload() + f64::from(self.header);
                Time::from_secs_f64(wire / self.rate.bytes_per_sec())
            }
            Clock::Frames { fps, .. } => Time::from_secs_f64(1.0 / fps),
            _ => Time::ZERO,
        }
    }

    /// Upper bounds for memory estimates: messages per second, and packets per message.
    #[must_use]
    pub fn most(&self) -> (f64, f64) {
        let per_message = match &self.content {
            Content::Messages { sizes, full } => {
                let most = match sizes {
                    Messages::InTurn(sizes, _) => sizes.iter().max().copied().unwrap_or_default() as f64,
                    Messages::Drawn(law) => 20.0 * law.mean_bytes(),
                };
                most / f64::from(full - self.header) + 1.0
            }
            _ => 1.0,
        };
        let per_s = match self.clock {
            Clock::Poisson { mean_gap_s } => 2.0 / mean_gap_s,
            _ if self.is_asked() => 0.0,
            _ => 1.0 / self.beat().as_secs_f64().max(1e-12),
        };
        (per_s, per_message)
    }

    /// Mean payload of a message, bytes.
    #[must_use]
    pub fn mean_payload(&self) -> f64 {
        match &self.content {
            Content::Packet(size) => f64::from(size - self.header),
            Content::Mix(sizes, _) => {
                let mut before = 0.0;
                let share = |(size, until): &(u16, f64)| {
                    let share = until - before;
                    before = *until;
                    f64::from(size - self.header) * share
                };
                sizes.iter().map(share).sum()
            }
            Content::Messages { sizes: Messages::InTurn(sizes, _), .. } => {
                sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
            }
            Content::Messages { sizes: Messages::Drawn(law), .. } => law.mean_bytes(),
        }
    }

    /// Mean size of a packet on the wire, bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> f64 {
        match &self.content {
            Content::Messages { full, .. } => f64::from(*full),
            _ => self.mean_payload() + f64::from(self.header),
        }
    }

    /// Size on the wire of the largest packet, bytes.
    #[must_use]
    pub fn largest_packet(&self) -> u16 {
        match &self.content {
            Content::Packet(size) => *size,
            Content::Mix(sizes, _) => sizes.iter().map(|(size, _)| *size).max().unwrap_or_default(),
            Content::Messages { full, .. } => *full,
        }
    }

    /// Time from the flow's start to the first product.
    pub fn first(&mut self) -> Time {
        match &self.clock {
            Clock::Poisson { mean_gap_s } => Time::from_secs_f64(self.draws.exponential(*mean_gap_s)),
            Clock::OnOff { .. } => self.on_time(0.0),
            _ => Time::ZERO,
        }
    }

    /// Produces the next packet, frame or response.
    pub fn produce(&mut self) -> Produced {
        let size = match &mut self.content {
            Content::Packet(size) => *size,
            Content::Mix(sizes, draws) => {
                let drawn = draws.uniform();
                let at = sizes.partition_point(|(_, until)| *until <= drawn).min(sizes.len() - 1);
                sizes[at].0
            }
            Content::Messages { sizes, full } => {
                let payload = match sizes {
                    Messages::InTurn(sizes, next) => {
                        let size = sizes[*next];
                        *next = (*next + 1) % sizes.len();
                        size
                    }
                    Messages::Drawn(law) => law.draw(),
                };
                return cut(payload, *full, self.header);
            }
        };
        Produced { payload: u64::from(size - self.header), packets: 1, full: size, last: size }
    }

    /// Draws from `[0, 1)`.
    #[cfg(feature = "full")]
    pub fn uniform(&mut self) -> f64 {
        self.draws.uniform()
    }

    /// Produces a response of this many bytes of payload.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn response(&self, payload: u64) -> Produced {
        cut(payload, self.largest_packet(), self.header)
    }

    /// Time from the product `after` to the next one: never 0.
    pub fn gap(&mut self, after: &Produced) -> Time {
        let gap = match &mut self.clock {
            Clock::Constant => self.rate.tx_time(Bytes::new(u64::from(after.last))),
            Clock::Poisson { mean_gap_s } => Time::from_secs_f64(self.draws.exponential(*mean_gap_s)),
            Clock::OnOff { .. } => self.on_time(f64::from(after.last) / self.rate.bytes_per_sec()),
            Clock::Frames { fps, ticks, elapsed } => {
                *ticks += 1;
                let before = *elapsed;
                *elapsed = Time::from_secs_f64(*ticks as f64 / *fps);
                *elapsed - before
            }
            Clock::Requests { think } => Time::from_secs_f64(think.draw_s(&mut self.draws)),
            // The client decides when it requests the next segment.
            #[cfg(feature = "full")]
            Clock::Video(_) => Time::ZERO,
            // The next message waits for other hosts.
            Clock::Collective => Time::MAX,
        };
        gap.max(Time::from_ps(1))
    }

    /// Time until `need_s` seconds of on-time have passed.
    fn on_time(&mut self, mut need_s: f64) -> Time {
        const LONGEST_S: f64 = 1e7; // longer than any run
        let Clock::OnOff { on, off, sends, left_s } = &mut self.clock else { return Time::MAX };
        let mut passed_s = 0.0;
        while passed_s < LONGEST_S {
            if *sends && need_s < *left_s {
                *left_s -= need_s;
                passed_s += need_s;
                break;
            }
            passed_s += *left_s;
            need_s -= if *sends { *left_s } else { 0.0 };
            *sends = !*sends;
            *left_s = if *sends { &*on } else { &*off }.draw_s(&mut self.draws);
        }
        Time::from_secs_f64(passed_s)
    }
}

/// Cuts a message into packets of `full` bytes.
fn cut(payload: u64, full: u16, header: u16) -> Produced {
    let room = u64::from(full - header);
    let packets = payload.div_ceil(room).clamp(1, u64::from(u32::MAX - 1));
    let last = (payload - (packets - 1) * room).min(room) as u16;
    Produced { payload, packets: packets as u32, full, last: header + last }
}

/// Rate on the wire of packets with the mean size `wire`, bytes.
fn on_the_wire(
    rate: Option<Rate>,
    interval: Option<Time>,
    wire: f64,
    header: u16,
    key: &dyn Fn(&str) -> String,
) -> Result<Rate, Refused> {
    let payload = wire - f64::from(header);
    match (rate, interval) {
        (Some(rate), None) if rate.bps() > 0.0 && rate.bps().is_finite() && payload > 0.0 => {
            Ok(Rate::from_bps(rate.bps() * (wire / payload)))
        }
        (Some(rate), None) if rate.bps() > 0.0 => refused(
            "packet",
            format!(
                "leaves no payload beside a header of {header} B; give application.interval in place of a rate"
            ),
        ),
        (Some(_), None) => refused(key("rate"), "is 0bps; it must be above 0"),
        (None, Some(interval)) if interval > Time::ZERO => {
            Ok(Rate::from_bytes_per_sec(wire / interval.as_secs_f64()))
        }
        (None, Some(_)) => refused(key("interval"), "is 0s; it must be longer"),
        _ => refused(key("rate"), "give exactly one of rate and interval"),
    }
}

/// Content of an application's messages, in packets of these sizes.
fn content(
    application: &scenario::Application,
    mix: &[(u16, f64)],
    header: u16,
    key: &dyn Fn(&str) -> String,
    loaded: &Loaded,
) -> Result<Content, Refused> {
    let segments = match application {
        // The mean over the ladder; the client chooses each segment's size.
        #[cfg(feature = "full")]
        scenario::Application::Video(params) => Some(MessageSizes::Many(
            (0..params.ladder.len()).map(|level| params.segment_bytes(level)).collect(),
        )),
        _ => None,
    };
    match (application.message_sizes().or(segments.as_ref()), mix) {
        (Some(sizes), [(full, _)]) if *full > header => {
            Ok(Content::Messages { sizes: messages(&key("sizes"), sizes, loaded)?, full: *full })
        }
        (Some(_), [(full, _)]) => {
            refused("packet", format!("is {full}B; it must be larger than header, {header}B"))
        }
        (Some(_), _) => {
            let kind = application.kind();
            refused("packet", format!("must be one size for \"{kind}\", which are cut into packets"))
        }
        (None, [(size, _)]) => Ok(Content::Packet(*size)),
        (None, _) => Ok(Content::Mix(cumulative(mix), Stream::new(0, ""))),
    }
}

/// Durations of periods.
trait Lasts {
    /// Draws the next duration, seconds.
    fn draw_s(&self, draws: &mut Stream) -> f64;
    /// Mean duration, seconds.
    fn mean_s(&self) -> f64;
}

impl Lasts for Periods {
    fn draw_s(&self, draws: &mut Stream) -> f64 {
        match self {
            Self::Constant(time) => time.as_secs_f64(),
            Self::Drawn(DrawnPeriods::Exponential { mean }) => draws.exponential(mean.as_secs_f64()),
            Self::Drawn(DrawnPeriods::Pareto { mean, shape }) => draws.pareto(mean.as_secs_f64(), *shape),
        }
    }

    fn mean_s(&self) -> f64 {
        match self {
            Self::Constant(mean)
            | Self::Drawn(DrawnPeriods::Exponential { mean } | DrawnPeriods::Pareto { mean, .. }) => {
                mean.as_secs_f64()
            }
        }
    }
}

fn check_periods(key: &str, periods: &Periods, least: Time) -> Result<(), Refused> {
    let least = if matches!(periods, Periods::Drawn(_)) { Time::from_ps(1) } else { least };
    if periods.mean_s() < least.as_secs_f64() {
        let mean = if matches!(periods, Periods::Drawn(_)) { ".mean" } else { "" };
        return refused(format!("{key}{mean}"), "is 0s; it must be longer");
    }
    if let Periods::Drawn(DrawnPeriods::Pareto { shape, .. }) = periods {
        shape_with_mean("shape", *shape).map_err(|(k, m)| (format!("{key}.{k}"), m))?;
    }
    Ok(())
}

fn messages(key: &str, sizes: &MessageSizes, loaded: &Loaded) -> Result<Messages, Refused> {
    let in_turn = |sizes: &[Bytes]| match sizes {
        [] => refused(key, "is an empty list; it must have at least one size"),
        _ if sizes.iter().any(|size| size.get() == 0) => refused(key, "has a size of 0B; it must be larger"),
        _ => Ok(Messages::InTurn(sizes.iter().map(|size| size.get()).collect(), 0)),
    };
    match sizes {
        MessageSizes::One(size) => in_turn(&[*size]),
        MessageSizes::Many(sizes) => in_turn(sizes),
        MessageSizes::Drawn(law) => {
            let law = SizeLaw::new(law, loaded, Stream::new(0, ""))
                .map_err(|(k, m)| (format!("{key}{}", k.trim_start_matches("sizes")), m))?;
            Ok(Messages::Drawn(Box::new(law)))
        }
    }
}

/// Packet sizes on the wire, each with its share of packets.
fn packet_sizes(given: Option<&PacketSizes>, scenario: &Scenario) -> Result<Vec<(u16, f64)>, Refused> {
    let (header, packet) = (scenario.header, scenario.packet);
    let Some(given) = given else { return Ok(vec![(packet.get() as u16, 1.0)]) };
    let mix = given.weights();
    let total: f64 = mix.iter().map(|(_, weight)| weight).sum();
    if mix.is_empty() {
        return refused("packet", "is an empty list; it must have at least one size");
    }
    for (size, weight) in &mix {
        if *size < header || *size > packet {
            return refused(
                "packet",
                format!(
                    "has {size}; it must be at least the scenario's header, {header}, and at most its packet, {packet}"
                ),
            );
        }
        if !(*weight > 0.0 && weight.is_finite()) {
            return refused("packet", format!("has a weight of {weight}; it must be above 0"));
        }
    }
    Ok(mix.iter().map(|(size, weight)| (size.get() as u16, weight / total)).collect())
}

fn cumulative(mix: &[(u16, f64)]) -> Vec<(u16, f64)> {
    let mut until = 0.0;
    let part = |(size, share): &(u16, f64)| {
        until += share;
        (*size, until)
    };
    mix.iter().map(part).collect()
}

//! Adaptive video: which bitrate a client requests next, when, and what its viewer sees.
//!
//! The client is a state machine without clock or I/O, like the control laws. The simulator's application of kind
//! `video` and real HTTP clients both use it. A video has segments of one duration V, and each exists at every bitrate
//! of a ladder R_1 < R_2 < ... < R_n. One segment is fetched at a time.
//!
//! ```text
//! B            media in the buffer, s; falls by 1 s per second of playback
//! fetch        when B <= max_buffer - V, else wait until it is
//! play         from B >= startup on; after B = 0 (a stall) again from B >= startup on, or with the last segment
//!
//! buffer       f(B) = R_1 + (R_n - R_1) (B - r) / c, kept within R_1 and R_n        BBA-0: Huang 2014, section 4
//!              R = R_1            if B <= r
//!                  R_n            if B >= r + c
//!                  max R_i < f(B) if f(B) >= the bitrate above the last one
//!                  min R_i > f(B) if f(B) <= the bitrate below the last one
//!                  the last one   otherwise
//! rate         R = max R_i <= safety H,  H = n / (1/x_1 + ... + 1/x_n)              Jiang 2012, section 4; Yin 2015, section 6
//!              x_k: bytes of a segment over the time from its request to its last byte, for the last n = `samples` of them
//! advice       R is at most max R_i <= A, or R_1 if there is none; A is the advised rate of media
//! ```
//!
//! Sources: Huang, Johari, McKeown, Trunnell, Watson 2014, "A buffer-based approach to rate adaptation" (SIGCOMM); Jiang,
//! Sekar, Zhang 2012, "Improving fairness, efficiency, and stability in HTTP-based adaptive video streaming with
//! FESTIVE" (CoNEXT); Yin, Jindal, Sekar, Sinopoli 2015, "A control-theoretic approach for dynamic adaptive video
//! streaming over HTTP" (SIGCOMM); draft-ietf-scone-protocol for the advice.
//!
//! Deviations (paper says / we do / because):
//! 1. Huang: a reservoir of 90 s and a cushion of 126 s in a buffer of 240 s / a reservoir of 10 s and a cushion of 16 s
//!    in a buffer of 30 s / today's clients buffer less; the shares of the buffer are about the same.
//! 2. Huang's BBA-1 computes the reservoir from the sizes of coming segments, and its map is one of segment sizes / all
//!    segments of a bitrate have one size here / the two maps are then the same, and the reservoir is a parameter.
//! 3. Jiang: the harmonic mean of 20 segments, gradual switching, and randomised requests / the mean of the last five, as
//!    in Yin, and neither of the others / they are for fairness among clients, which is the network's task here.
//! 4. The first segment of `rate` / the lowest bitrate / no throughput is known.

use crate::units::{Bytes, Rate, Ratio, Time};
use crate::{Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that chooses the bitrate of the next segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The media in the buffer (BBA-0).
    Buffer,
    /// The throughput of the last segments.
    #[default]
    Rate,
    /// The advice alone: the highest bitrate that it allows, and the lowest one without advice.
    Advice,
}

/// The client's use of the network's advice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Advice {
    /// It requests no bitrate above the advised rate, except the lowest one.
    #[default]
    Follow,
    /// The client behaves as if there were no advice.
    Ignore,
}

/// Parameters of a video and of its client, the receiving host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Params {
    /// Duration of a segment, 1s to 10s.
    pub segment: Time,
    /// Bitrates of the media, rising: 1 to 32 of them.
    pub ladder: Vec<Rate>,
    /// The most media that the client buffers, at least `startup` and at most 10000s.
    pub max_buffer: Time,
    /// Media in the buffer at which playback starts, and starts again after a stall.
    pub startup: Time,
    /// The rule that chooses the bitrate of the next segment.
    pub choice: Choice,
    /// Whether the client follows or ignores the network's advice.
    pub advice: Advice,
    /// For `choice = "buffer"`: the client takes the lowest bitrate if it has no more media than this. It must be small
    /// enough that the client can reach the second bitrate with `max_buffer` minus one segment in its buffer.
    pub reservoir: Time,
    /// For `choice = "buffer"`: the client takes the highest bitrate if it has this much media above the reservoir.
    pub cushion: Time,
    /// For `choice = "rate"`: share of the measured throughput that the client uses, 0.1 to 1.
    pub safety: Ratio,
    /// For `choice = "rate"`: number of segments whose throughput the client averages, 1 to 100.
    pub samples: u32,
    /// Duration of the whole video, a whole number of segments. Default: no end.
    pub length: Option<Time>,
}

impl Default for Params {
    fn default() -> Self {
        // The ladder of Huang 2014, figure 4, from 235 kb/s to 5 Mb/s.
        let ladder = [0.235, 0.375, 0.56, 0.75, 1.05, 1.75, 2.35, 3.0, 3.6, 4.3, 5.0];
        Self {
            segment: Time::from_secs(4), // as in Huang 2014, section 2.1
            ladder: ladder.map(Rate::from_mbps).to_vec(),
            max_buffer: Time::from_secs(30), // ours; Yin 2015, section 7.1
            startup: Time::from_secs(8),     // ours: two segments
            choice: Choice::Rate,
            advice: Advice::Follow,
            reservoir: Time::from_secs(10), // deviation 1
            cushion: Time::from_secs(16),   // deviation 1
            safety: Ratio::new(0.85),       // Jiang 2012, section 4.3
            samples: 5,                     // Yin 2015, section 7.1
            length: None,
        }
    }
}

impl Params {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The first invalid parameter, and a value that would be right.
    pub fn check(&self) -> Result<(), Refused> {
        let wrong = |key, message: String| Err((key, message));
        if self.segment < Time::from_secs(1) || self.segment > Time::from_secs(10) {
            return wrong("segment", format!("is {}; it must be 1s to 10s", self.segment));
        }
        if self.ladder.is_empty() || self.ladder.len() > 32 {
            return wrong("ladder", format!("has {} bitrates; it must have 1 to 32", self.ladder.len()));
        }
        let (least, most) = (Rate::from_bps(1e3), Rate::from_gbps(1.0));
        if let Some(rate) = self.ladder.iter().find(|rate| !(**rate >= least && **rate <= most)) {
            return wrong("ladder", format!("has {rate}; each bitrate must be {least} to {most}"));
        }
        if let Some(pair) = self.ladder.windows(2).find(|pair| pair[0] >= pair[1]) {
            return wrong("ladder", format!("has {} before {}; the bitrates must rise", pair[0], pair[1]));
        }
        // Segments are whole, so the buffer fills to a multiple of one before playback.
        let fills_to = self.segment * (self.max_buffer.as_ps() / self.segment.as_ps());
        let longest = Time::from_secs(10_000);
        if self.max_buffer > longest {
            return wrong("max_buffer", format!("is {}; it must be at most {longest}", self.max_buffer));
        }
        if fills_to == Time::ZERO {
            return wrong(
                "max_buffer",
                format!("is {}; it must hold a segment, {}", self.max_buffer, self.segment),
            );
        }
        if self.startup > fills_to {
            let message = format!(
                "is {}; it must be at most {fills_to}, the whole segments of max_buffer",
                self.startup
            );
            return wrong("startup", message);
        }
        if self.cushion == Time::ZERO {
            return wrong("cushion", "is 0s; it must be longer".to_owned());
        }
        self.check_reservoir()?;
        if self.choice == Choice::Advice && self.advice == Advice::Ignore {
            return wrong("advice", "is \"ignore\", but choice is \"advice\"; set another choice".to_owned());
        }
        within("safety", self.safety.get(), 0.1, 1.0)?;
        within("samples", f64::from(self.samples), 1.0, 100.0)?;
        match self.length {
            Some(length) if length == Time::ZERO || length.as_ps() % self.segment.as_ps() != 0 => wrong(
                "length",
                format!("is {length}; it must be a whole number of segments of {}", self.segment),
            ),
            _ => Ok(()),
        }
    }

    /// Refuses a reservoir with which BBA-0 never leaves the lowest bitrate. A client requests with at most `max_buffer - V`
    /// in its buffer, where V is a segment. It takes the second bitrate only where `f(B) > R_2`, or where `B >= r + c` with a
    /// ladder of two.
    fn check_reservoir(&self) -> Result<(), Refused> {
        let fullest = self.max_buffer.saturating_sub(self.segment);
        if cfg!(not(feature = "full")) {
            return Ok(()); // the browser lab has no videos
        }
        if self.choice != Choice::Buffer || self.ladder.len() < 2 || self.by_buffer(fullest, 0) > 0 {
            return Ok(());
        }
        let (low, high) = (self.ladder[0].bps(), self.ladder[self.ladder.len() - 1].bps());
        let share = (self.ladder[1].bps() - low) / (high - low);
        let most = fullest.as_secs_f64() - share * self.cushion.as_secs_f64();
        let right = if most > 0.001 {
            format!("it must be below {most:.3} s")
        } else {
            "set a larger max_buffer or a smaller cushion".to_owned()
        };
        let message = format!(
            "is {}, and the client would never leave the lowest bitrate, because it requests with at most {fullest} in its buffer; {right}",
            self.reservoir
        );
        Err(("reservoir", message))
    }

    /// BBA-0: the level for this much media in the buffer, after a segment of level `last`.
    fn by_buffer(&self, buffer: Time, last: usize) -> usize {
        let Self { ladder, reservoir, cushion, .. } = self;
        let highest = ladder.len() - 1;
        if buffer <= *reservoir {
            return 0;
        }
        if buffer >= *reservoir + *cushion {
            return highest;
        }
        let share = (buffer - *reservoir).as_secs_f64() / cushion.as_secs_f64();
        let (low, high) = (ladder[0].bps(), ladder[highest].bps());
        let rate = low + (high - low) * share;
        let (above, below) = ((last + 1).min(highest), last.saturating_sub(1));
        if rate >= ladder[above].bps() {
            ladder.partition_point(|bitrate| bitrate.bps() < rate).saturating_sub(1)
        } else if rate <= ladder[below].bps() {
            ladder.partition_point(|bitrate| bitrate.bps() <= rate).min(highest)
        } else {
            last
        }
    }

    /// Bytes of a segment at this level of the ladder.
    #[must_use]
    pub fn segment_bytes(&self, level: usize) -> Bytes {
        Bytes::new(self.ladder[level].bytes_in(self.segment).ceil() as u64)
    }

    /// The highest level of the ladder at or below `rate`; the lowest one if there is none.
    fn at_most(&self, rate: f64) -> usize {
        self.ladder.partition_point(|bitrate| bitrate.bps() <= rate).saturating_sub(1)
    }
}

/// The caller's next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Request this segment now, and report [`Client::arrived`].
    Fetch(Segment),
    /// Call [`Client::poll`] again at this time.
    Wait(Time),
    /// Wait until the requested segment arrives.
    Await,
    /// Stop: the last segment has arrived.
    Done,
}

/// A segment to request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Number of the segment, from 0.
    pub number: u32,
    /// Level of the ladder, from 0, the lowest.
    pub level: usize,
    /// Bitrate of the media.
    pub bitrate: Rate,
    /// Size.
    pub bytes: Bytes,
}

/// Playback and requests so far. The four times sum to the time since the client began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Viewed {
    /// Time from the client's start to the first picture, so far.
    pub startup: Time,
    /// Media played.
    pub played: Time,
    /// Time for which playback stood still after it had started.
    pub stalled: Time,
    /// Time since the end of the video.
    pub ended: Time,
    /// Number of stalls.
    pub stalls: u32,
    /// Segments that have arrived.
    pub segments: u32,
    /// Arrived segments whose bitrate differs from that of the segment before.
    pub switches: u32,
    /// Sum of the bitrates of the segments that have arrived, bits/s.
    pub bitrates_bps: f64,
}

impl Viewed {
    /// Mean bitrate of the segments that have arrived, each of which plays equally long; `None` without any.
    #[must_use]
    pub fn mean_bitrate(&self) -> Option<Rate> {
        (self.segments > 0).then(|| Rate::from_bps(self.bitrates_bps / f64::from(self.segments)))
    }

    /// Share of the time since playback started, up to the video's end, for which it stood still; `None` before that.
    #[must_use]
    pub fn stalled_share(&self) -> Option<f64> {
        let shown = self.played + self.stalled;
        (shown > Time::ZERO).then(|| self.stalled.as_secs_f64() / shown.as_secs_f64())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Playback {
    Starting,
    Playing,
    Stalled,
    Ended,
}

/// The client of one video.
#[derive(Clone, Debug)]
pub struct Client {
    params: Params,
    /// Time of the last call.
    now: Time,
    /// Media in the buffer.
    buffer: Time,
    playback: Playback,
    /// Level of the last request, and when the segment was requested if it has not arrived.
    level: Option<usize>,
    requested: Option<Time>,
    /// Throughput of the last segments, bits/s: a ring of at most `samples`.
    throughputs: Vec<f64>,
    advice: Option<Rate>,
    /// Level of the last segment that has arrived.
    arrived_level: Option<usize>,
    viewed: Viewed,
}

impl Client {
    /// A client that begins at `now`. `params` must pass [`Params::check`].
    #[must_use]
    pub fn new(params: Params, now: Time) -> Self {
        Self {
            params,
            now,
            buffer: Time::ZERO,
            playback: Playback::Starting,
            level: None,
            requested: None,
            throughputs: Vec::new(),
            advice: None,
            arrived_level: None,
            viewed: Viewed::default(),
        }
    }

    /// Says what to do at `now`. After [`Action::Fetch`], the segment counts as requested.
    pub fn poll(&mut self, now: Time) -> Action {
        self.advance(now);
        if self.requested.is_some() {
            return Action::Await;
        }
        if self.has_all() {
            return Action::Done;
        }
        let over = (self.buffer + self.params.segment).saturating_sub(self.params.max_buffer);
        if over > Time::ZERO {
            // `check` makes sure that playback runs when the buffer is this full.
            return Action::Wait(self.now + over);
        }
        let level = self.choose();
        self.level = Some(level);
        self.requested = Some(self.now);
        Action::Fetch(Segment {
            number: self.viewed.segments,
            level,
            bitrate: self.params.ladder[level],
            bytes: self.params.segment_bytes(level),
        })
    }

    /// Takes note that the requested segment has arrived completely, with this many bytes. Without a request it does
    /// nothing.
    pub fn arrived(&mut self, now: Time, bytes: Bytes) {
        self.advance(now);
        let (Some(since), Some(level)) = (self.requested.take(), self.level) else { return };
        let took = (self.now - since).max(Time::from_ps(1));
        let at = self.viewed.segments as usize % self.params.samples as usize;
        let throughput = bytes.as_f64() * 8.0 / took.as_secs_f64();
        match self.throughputs.get_mut(at) {
            Some(oldest) => *oldest = throughput,
            None => self.throughputs.push(throughput),
        }
        self.viewed.segments += 1;
        self.viewed.bitrates_bps += self.params.ladder[level].bps();
        self.viewed.switches += u32::from(self.arrived_level.is_some_and(|before| before != level));
        self.arrived_level = Some(level);
        self.buffer += self.params.segment;
        let stands = matches!(self.playback, Playback::Starting | Playback::Stalled);
        if stands && (self.buffer >= self.params.startup || self.has_all()) {
            self.playback = Playback::Playing;
        }
    }

    /// Takes note of the network's advice: the rate that media may have, or `None` if it has expired. The caller takes
    /// off the share of headers, which the network's rate includes. It counts from the next request on.
    pub fn advised(&mut self, now: Time, rate: Option<Rate>) {
        self.advance(now);
        self.advice = rate;
    }

    /// Media in the buffer at `now`.
    pub fn buffer(&mut self, now: Time) -> Time {
        self.advance(now);
        self.buffer
    }

    /// Playback and requests by `now`.
    pub fn viewed(&mut self, now: Time) -> Viewed {
        self.advance(now);
        self.viewed
    }

    /// Lets time pass. A time before the last call counts as that of the last call.
    fn advance(&mut self, now: Time) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        match self.playback {
            Playback::Starting => self.viewed.startup += passed,
            Playback::Stalled => self.viewed.stalled += passed,
            Playback::Ended => self.viewed.ended += passed,
            Playback::Playing => {
                let played = passed.min(self.buffer);
                self.buffer -= played;
                self.viewed.played += played;
                let rest = passed - played;
                if rest == Time::ZERO {
                    // A segment that arrives when the buffer runs empty comes in time.
                } else if self.has_all() {
                    self.playback = Playback::Ended;
                    self.viewed.ended += rest;
                } else {
                    self.playback = Playback::Stalled;
                    self.viewed.stalls += 1;
                    self.viewed.stalled += rest;
                }
            }
        }
    }

    /// Whether all segments have arrived.
    fn has_all(&self) -> bool {
        let arrived = self.params.segment * u64::from(self.viewed.segments);
        self.params.length.is_some_and(|length| arrived >= length)
    }

    /// The level of the next segment.
    fn choose(&self) -> usize {
        let advised = self.advice.filter(|_| self.params.advice == Advice::Follow);
        let cap = advised.map_or(self.params.ladder.len() - 1, |rate| self.params.at_most(rate.bps()));
        let wish = match self.params.choice {
            Choice::Buffer => self.params.by_buffer(self.buffer, self.level.unwrap_or(0)),
            Choice::Rate => self.by_rate(),
            Choice::Advice => advised.map_or(0, |_| cap),
        };
        wish.min(cap)
    }

    /// The level for the harmonic mean of the last segments' throughput.
    fn by_rate(&self) -> usize {
        if self.throughputs.is_empty() {
            return 0;
        }
        let inverse: f64 = self.throughputs.iter().map(|throughput| 1.0 / throughput).sum();
        let mean = self.throughputs.len() as f64 / inverse;
        self.params.at_most(self.params.safety.get() * mean)
    }
}

//! The tables of results: one row per flow, samples over time, distributions of delays.

use crate::summary::VideoCounts;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One column of a table.
#[derive(Debug)]
pub enum Values<'a> {
    /// Strings, as indices into a list of distinct ones.
    Words {
        /// The distinct strings.
        words: Vec<&'a str>,
        /// The index of each row's string.
        codes: Vec<i32>,
    },
    /// Numbers.
    Numbers(Cow<'a, [f64]>),
    /// Numbers that may be missing.
    Seconds(Vec<Seconds>),
    /// Integers.
    Counts(Vec<u64>),
    /// Integers that may be missing.
    OptionalCounts(Vec<Option<u64>>),
    /// 32-bit integers.
    Small(Vec<u32>),
}

/// The distinct strings, and the index of each row's string.
fn numbered<'a>(rows: impl Iterator<Item = &'a str>) -> (Vec<&'a str>, Vec<i32>) {
    let (mut words, mut seen) = (Vec::new(), HashMap::new());
    let codes = rows
        .map(|word| {
            *seen.entry(word).or_insert_with(|| {
                words.push(word);
                words.len() as i32 - 1
            })
        })
        .collect();
    (words, codes)
}

/// The columns of `flows.parquet`, with the fields of [`FlowRow`].
pub fn flow_columns<'a>(rows: &'a [FlowRow], add: &mut dyn FnMut(&'static str, Values<'a>)) {
    macro_rules! columns {
        ($($field:ident: $kind:ident)*) => {
            $(add(stringify!($field), Values::$kind(rows.iter().map(|row| row.$field.into()).collect()));)*
        };
    }
    let words = |word: fn(&FlowRow) -> &str| {
        let (words, codes) = numbered(rows.iter().map(word));
        Values::Words { words, codes }
    };
    columns! { flow: Small }
    add("group", words(|row| &*row.group));
    columns! { index: Small }
    add("law", words(|row| row.law));
    columns! {
        start_s: Numbers
        end_s: Seconds
        size_bytes: OptionalCounts
        fct_s: Seconds
        fct_sender_s: Seconds
        ideal_fct_s: Seconds
        delivered_bytes: Counts
        delivered_bytes_after_warmup: Counts
        goodput_bps: Numbers
        retransmissions: Small
        retransmissions_after_warmup: Small
        timeouts: Small
        timeouts_after_warmup: Small
        min_rtt_s: Seconds
        srtt_s: Seconds
        switched_s: Seconds
        stop_s: Seconds
    }
    video_columns(rows, add);
}

/// The columns of videos, if a flow has one. Each name begins with `video_`.
fn video_columns<'a>(rows: &'a [FlowRow], add: &mut dyn FnMut(&'static str, Values<'a>)) {
    if rows.iter().all(|row| row.video.is_none()) {
        return;
    }
    let seconds = |of: fn(&VideoCounts) -> f64| {
        Values::Seconds(rows.iter().map(|row| row.video.as_deref().map(of).into()).collect())
    };
    let counts = |of: fn(&VideoCounts) -> u64| {
        Values::OptionalCounts(rows.iter().map(|row| row.video.as_deref().map(of)).collect())
    };
    add("video_played_s", seconds(|video| video.played_s));
    add("video_stalled_s", seconds(|video| video.stalled_s));
    add("video_stalls", counts(|video| video.stalls));
    add("video_startup_s", seconds(|video| video.startup_s));
    add("video_segments", counts(|video| video.segments));
    add("video_switches", counts(|video| video.switches));
    let bitrates = rows.iter().map(|row| row.video.as_deref().and_then(|video| video.bitrate_bps).into());
    add("video_bitrate_bps", Values::Seconds(bitrates.collect()));
}

fn text<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

/// Seconds, or a missing value as NaN: half the size of an [`Option`], because tables can have many rows.
#[derive(Clone, Copy)]
pub struct Seconds(f64);

impl Seconds {
    /// The number, if there is one.
    #[must_use]
    #[inline]
    pub fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl From<Option<f64>> for Seconds {
    fn from(seconds: Option<f64>) -> Self {
        Self(seconds.unwrap_or(f64::NAN))
    }
}

impl fmt::Debug for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(to)
    }
}

/// One flow; a row of `flows.parquet`.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRow {
    /// Number of the flow. Flows known before the run come first, in the order of the scenario. Flows listed in files follow, in the order of
    /// their rows, then flows that arrive at random, in the order of their starts.
    pub flow: u32,
    /// Group's name.
    #[serde(serialize_with = "text")]
    pub group: Arc<str>,
    /// Number within the group; for a listed flow, its row's number.
    pub index: u32,
    /// The sender's law.
    pub law: &'static str,
    /// Start time, seconds.
    pub start_s: f64,
    /// Arrival time of its last byte, seconds.
    pub end_s: Option<f64>,
    /// Size of the flow, bytes of payload; `None` if it is endless.
    pub size_bytes: Option<u64>,
    /// Completion time at the receiver, from the start until the last byte arrived, seconds.
    pub fct_s: Option<f64>,
    /// Completion time at the sender, from the start until all of the flow was acknowledged, seconds; `None` if the run ended before.
    pub fct_sender_s: Seconds,
    /// Shortest possible completion time, alone on its path, seconds: packets back to back at the slowest link, without a handshake. `None` if
    /// rates or delays changed in mid-run.
    pub ideal_fct_s: Seconds,
    /// Unique bytes of payload delivered in the whole run.
    pub delivered_bytes: u64,
    /// Unique bytes of payload delivered after warm-up.
    pub delivered_bytes_after_warmup: u64,
    /// Unique payload delivered after warm-up over the time that the flow was active, bits per second.
    pub goodput_bps: f64,
    /// Packets retransmitted in the whole run.
    pub retransmissions: u32,
    /// Packets retransmitted after warm-up.
    pub retransmissions_after_warmup: u32,
    /// Retransmission timeouts in the whole run.
    pub timeouts: u32,
    /// Retransmission timeouts after warm-up.
    pub timeouts_after_warmup: u32,
    /// Smallest RTT sample, seconds.
    pub min_rtt_s: Seconds,
    /// Last smoothed RTT, seconds.
    pub srtt_s: Seconds,
    /// Time at which the flow fell back from its law's protocol to TCP, seconds; `None` if it did not.
    pub switched_s: Seconds,
    /// Time at which it is to stop sending new data, seconds; `None` if it is not.
    pub stop_s: Seconds,
    /// Playback of its video in the whole run; `None` for other flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<Box<VideoCounts>>,
}

/// Samples over time in long form: column by column, one row per sample.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The distinct keys.
    pub keys: Vec<SeriesKey>,
    /// Time of each row, seconds: the end of its sampling interval.
    pub time_s: Vec<f64>,
    /// Index of each row's key.
    pub key: Vec<u32>,
    /// Value of each sample.
    pub value: Vec<f64>,
}

impl Series {
    /// A column of one string of each row's key. It indexes the strings of the keys, which are far fewer than the rows.
    fn words(&self, word: fn(&SeriesKey) -> &str) -> Values<'_> {
        let (words, of_keys) = numbered(self.keys.iter().map(word));
        Values::Words { words, codes: self.key.iter().map(|key| of_keys[*key as usize]).collect() }
    }

    /// The columns of `series.parquet`, one row per sample.
    pub fn columns<'a>(&'a self, add: &mut dyn FnMut(&'static str, Values<'a>)) {
        add("time_s", Values::Numbers(Cow::Borrowed(&self.time_s)));
        add("kind", self.words(|key| key.kind));
        add("name", self.words(|key| &key.name));
        add("metric", self.words(|key| &key.metric));
        add("value", Values::Numbers(Cow::Borrowed(&self.value)));
    }

    /// The rows after `time_s`, with all keys.
    #[must_use]
    pub fn since(&self, time_s: f64) -> Self {
        let first = self.time_s.partition_point(|t| *t <= time_s);
        Self {
            keys: self.keys.clone(),
            time_s: self.time_s[first..].to_vec(),
            key: self.key[first..].to_vec(),
            value: self.value[first..].to_vec(),
        }
    }
}

/// Name of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesKey {
    /// `link`, `group`, `flow` or `law`.
    pub kind: &'static str,
    /// Name of the link or group; `group.index` for a flow.
    pub name: String,
    /// For a link `utilization`, `queue_bytes`, `drops` or `marks`; for a group or flow `goodput_bps`; for a flow also `cwnd_packets` and
    /// `rtt_s`; for a law a variable's name.
    pub metric: String,
}

/// A distribution of delays; its points are rows of `delays.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayCurve {
    /// `link` or `group`.
    pub kind: &'static str,
    /// Name of the link or group.
    pub name: String,
    /// Range of flow sizes, bytes of payload, the second exclusive; `None` for all flows.
    pub bytes: Option<(u64, u64)>,
    /// `(delay in seconds, share of packets with at most that delay)`; about 500 points at most.
    pub points: Vec<(f64, f64)>,
}

//! The tables: one row per flow, samples over time, distributions of delays.

use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One column of a table.
#[derive(Debug)]
pub enum Values<'a> {
    /// A word in each row: its number in `words`.
    Words {
        /// Each word once.
        words: Vec<&'a str>,
        /// The word of each row.
        codes: Vec<i32>,
    },
    /// Numbers.
    Numbers(Cow<'a, [f64]>),
    /// Numbers that may be missing.
    Seconds(Vec<Seconds>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Whole numbers that may be missing.
    OptionalCounts(Vec<Option<u64>>),
    /// Whole numbers of 32 bits.
    Small(Vec<u32>),
}

/// Each word once, and the number of each row's word.
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
}

fn text<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

/// Seconds, or none: in half of the room that an [`Option`] takes, as there may be many rows.
#[derive(Clone, Copy)]
pub struct Seconds(f64);

impl Seconds {
    /// The number, if there is one.
    #[must_use]
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
    /// Number: first of flows that are known before the run, in the order of the scenario, then of those that files list, in the order of their
    /// rows, then of those that arrive at random, in the order of their starts.
    pub flow: u32,
    /// Group's name.
    #[serde(serialize_with = "text")]
    pub group: Arc<str>,
    /// Number within the group; of a list, that of the row.
    pub index: u32,
    /// The sender's law.
    pub law: &'static str,
    /// When it started, seconds.
    pub start_s: f64,
    /// When its last byte arrived.
    pub end_s: Option<f64>,
    /// What it was to transfer, bytes of payload.
    pub size_bytes: Option<u64>,
    /// Completion time at the receiver: from start to the last byte's arrival there.
    pub fct_s: Option<f64>,
    /// Completion time at the sender: from start until all of the flow was acknowledged there; `None` if the run ended before.
    pub fct_sender_s: Seconds,
    /// The shortest time in which its bytes could arrive, alone on its path: packets back to back at the slowest link, without a handshake.
    /// None where rates or delays changed in mid-run.
    pub ideal_fct_s: Seconds,
    /// Unique bytes of payload delivered in the whole run.
    pub delivered_bytes: u64,
    /// Those delivered after warm-up.
    pub delivered_bytes_after_warmup: u64,
    /// Unique bytes of payload delivered after warm-up, while active, over that time, bits per second.
    pub goodput_bps: f64,
    /// Packets sent again in the whole run.
    pub retransmissions: u32,
    /// Those sent again after warm-up.
    pub retransmissions_after_warmup: u32,
    /// Retransmission timeouts in the whole run.
    pub timeouts: u32,
    /// Those after warm-up.
    pub timeouts_after_warmup: u32,
    /// Least RTT sample.
    pub min_rtt_s: Seconds,
    /// Last smoothed RTT.
    pub srtt_s: Seconds,
    /// When the flow gave up its law's protocol for TCP, if it did.
    pub switched_s: Seconds,
    /// When it is to stop sending new data, if it is.
    pub stop_s: Seconds,
}

/// Samples over time in long form: column by column, one row per sample.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Names of what is sampled, each once.
    pub keys: Vec<SeriesKey>,
    /// Time of each row, seconds: the end of its sampling interval.
    pub time_s: Vec<f64>,
    /// Which key each row belongs to.
    pub key: Vec<u32>,
    /// The sample.
    pub value: Vec<f64>,
}

impl Series {
    /// A word of each row's key. Numbers the words of the keys, which are far fewer than the rows.
    fn words(&self, word: fn(&SeriesKey) -> &str) -> Values<'_> {
        let (words, of_keys) = numbered(self.keys.iter().map(word));
        Values::Words { words, codes: self.key.iter().map(|key| of_keys[*key as usize]).collect() }
    }

    /// The columns of `series.parquet`: long form, one row per sample.
    pub fn columns<'a>(&'a self, add: &mut dyn FnMut(&'static str, Values<'a>)) {
        add("time_s", Values::Numbers(Cow::Borrowed(&self.time_s)));
        add("kind", self.words(|key| key.kind));
        add("name", self.words(|key| &key.name));
        add("metric", self.words(|key| &key.metric));
        add("value", Values::Numbers(Cow::Borrowed(&self.value)));
    }

    /// The rows whose time is after `time_s`. Keys are those of the whole.
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

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesKey {
    /// `link`, `group`, `flow` or `law`.
    pub kind: &'static str,
    /// The link's or group's name, or `group.index` of a flow.
    pub name: String,
    /// `utilization`, `queue_bytes`, `drops`, `marks` of a link; `goodput_bps` of a group or flow, `cwnd_packets` and
    /// `rtt_s` of a flow; a variable's name of a law.
    pub metric: String,
}

/// A distribution of delays; its points are rows of `delays.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayCurve {
    /// `link` or `group`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Flows of which sizes, bytes of payload, the second exclusive; `None` for all.
    pub bytes: Option<(u64, u64)>,
    /// Delays in seconds, and the share of packets that took at most as long; some five hundred at most.
    pub points: Vec<(f64, f64)>,
}

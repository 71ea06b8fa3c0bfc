//! Digests of results: two runs with the same digest gave the same bits.

use crate::results::{Results, Summary, Took};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// SHA-256 of each part of a run's results, cut to 64 bits.
///
/// Values that depend on the machine ([`Results::took`]) or on how the engine is built (`events`) are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Digest of the summary as JSON.
    pub summary: u64,
    /// Digest of the rows of flows as JSON.
    pub flows: u64,
    /// Digest of the series' names, times and values, to the bit.
    pub series: u64,
    /// Digest of the captured packets.
    pub capture: u64,
}

impl Results {
    /// The digest of these results.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut series = Sha256::new();
        for key in &self.series.keys {
            for part in [key.kind, &key.name, &key.metric] {
                series.update(part);
                series.update([0]);
            }
        }
        for (at, key) in self.series.key.iter().enumerate() {
            series.update(key.to_le_bytes());
            series.update(self.series.time_s[at].to_bits().to_le_bytes());
            series.update(self.series.value[at].to_bits().to_le_bytes());
        }
        let mut capture = Sha256::new();
        for packet in &self.capture.packets {
            let at = (packet.time_ps, packet.link, packet.flow, packet.seq, packet.size);
            let kind = (packet.data, packet.control, packet.syn, packet.fin);
            let ecn = (packet.ecn_capable, packet.congestion_experienced, packet.ecn_echo, packet.cwr);
            capture.update(format!("{at:?} {kind:?} {ecn:?} {:?}\n", packet.sack));
            if packet.bits != 0 {
                capture.update(packet.bits.to_le_bytes());
            }
            if packet.l4s {
                capture.update("l4s\n");
            }
            packet.stamp.0.iter().for_each(|word| capture.update(word.to_bits().to_le_bytes()));
        }
        for frame in &self.capture.frames {
            let of = frame.packet.map(|p| (p.flow, p.seq, p.size, p.stamp.0.map(f64::to_bits)));
            capture.update(format!("{} {:?} {of:?}\n", frame.cell, frame.sent));
        }
        Digest {
            summary: of_json(&timeless(&self.summary)),
            flows: of_json(&self.flows),
            series: cut(series),
            capture: cut(capture),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { summary, flows, series, capture } = self;
        write!(f, "{summary:016x} {flows:016x} {series:016x} {capture:016x}")
    }
}

/// A summary without the values that differ between engines. Zeros stand for wall and CPU time, which are no longer in
/// the summary, so that digests stay comparable with those of older engines.
#[derive(Serialize)]
struct Timeless {
    #[serde(flatten)]
    summary: Summary,
    #[serde(flatten)]
    took: Took,
}

fn timeless(summary: &Summary) -> Timeless {
    Timeless { summary: Summary { events: 0, ..summary.clone() }, took: Took::default() }
}

/// Keys added to the results after digests were introduced. They are left out, so that digests stay comparable with
/// those of older engines. Other tests cover them.
const LATER: [&str; 13] = [
    "drops_data",
    "drops_acks",
    "after_warmup",
    "whole_run",
    "delivered_bytes_after_warmup",
    "retransmissions_after_warmup",
    "timeouts_after_warmup",
    "fct_sender_s",
    "queueing_delay_s",
    "packet_delay_s",
    "ideal_fct_s",
    "fct_slowdown",
    "p999",
];

fn of_json(value: &impl Serialize) -> u64 {
    // Results always serialise: they have string keys and finite depth.
    let text = serde_json::to_string(value).unwrap_or_default();
    let text = LATER.iter().fold(text, |text, key| without(&text, key));
    cut(Sha256::new().chain_update(text))
}

/// Removes the values under a key from JSON. The key must never be the first of its object; values are numbers, or
/// tables of them.
fn without(json: &str, key: &str) -> String {
    let key = format!(",\"{key}\":");
    let mut parts = json.split(&key);
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut depth = 0;
        let end = part.find(|c: char| {
            let over = depth == 0 && matches!(c, ',' | '}' | ']');
            depth += i32::from(matches!(c, '{' | '[')) - i32::from(matches!(c, '}' | ']'));
            over
        });
        left.push_str(&part[end.unwrap_or(part.len())..]);
    }
    left
}

fn cut(hash: Sha256) -> u64 {
    hash.finalize().iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

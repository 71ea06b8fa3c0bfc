//! Token buckets: one that polices, and one that shapes.
//!
//! ```text
//!   tokens(t) = min(b, tokens(t') + r (t - t'))      bytes; b at the beginning
//!   a packet of s bytes conforms if s <= tokens(t), and takes them
//!
//!   policer   a packet that does not conform on arrival is dropped or marked; one that conforms joins the queue
//!   shaper    the packet at the head leaves as soon as it conforms
//! ```
//! In any `[t', t]` at most `b + r (t - t')` bytes pass (Cruz 1991, eq. 2.1; RFC 2697 and RFC 2698 describe policers of this kind). With
//! a peak rate `p` there is a second bucket of `mtu` bytes, and a packet must conform to both: at most
//! `min(b + r (t - t'), mtu + p (t - t'))`.
//!
//! The state is not the number of tokens but the time at which the bucket is full again, as in the virtual scheduling
//! of ITU-T I.371. A packet conforms from `full + s/r - b/r` on, and then sets `full = max(full, t) + s/r`. This is
//! exact to a picosecond for each packet.
//!
//! Valid for 1 bit/s to 100 Tb/s. A packet larger than the bucket never conforms, and is dropped on arrival, as in
//! Linux's `tbf`.
//!
//! A policer may have a bucket for each flow (`per = "flow"`). A bucket that is full is like a new one, so it is
//! forgotten if there are many.
//!
//! Deviations (Linux says / we do / because):
//! 1. `tbf` needs `limit` or `latency` / the link's buffer is the limit where neither is given / every queue here has
//!    a buffer.
//! 2. `tbf`'s rate is the link's rate, and its burst must exceed a clock tick / a packet is also transmitted at the
//!    link's own rate / the bucket precedes a transmission line.
//! 3. `police` may pass nonconforming packets to another class / they are dropped, or marked with `ecn` / no other
//!    use is needed here.

use super::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use crate::Refused;
use crate::units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A bucket of byte tokens that fills at a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    burst: Bytes,
    /// How long an empty bucket takes to fill.
    depth: Time,
    /// When the bucket is full again, if no more tokens are taken.
    full_at: Time,
}

impl Bucket {
    /// Creates a full bucket of `burst` bytes, which fills at `rate`.
    #[must_use]
    pub fn new(rate: Rate, burst: Bytes) -> Self {
        Self { rate, burst, depth: rate.tx_time(burst), full_at: Time::ZERO }
    }

    /// Whether a packet of `size` bytes can ever pass.
    #[must_use]
    pub fn holds(&self, size: u32) -> bool {
        u64::from(size) <= self.burst.get()
    }

    /// When there will be tokens for `size` bytes, if none are taken before. Valid only for sizes that it
    /// [holds](Self::holds).
    #[must_use]
    pub fn ready(&self, size: u32) -> Time {
        self.full_at.saturating_add(self.time_of(size)).saturating_sub(self.depth)
    }

    /// Takes tokens for `size` bytes at `now`.
    pub fn take(&mut self, now: Time, size: u32) {
        self.full_at = self.full_at.max(now).saturating_add(self.time_of(size));
    }

    /// Bytes that could pass at `now`.
    #[must_use]
    pub fn tokens(&self, now: Time) -> f64 {
        self.rate.bytes_in(self.depth.saturating_sub(self.full_at.saturating_sub(now)))
    }

    fn time_of(&self, size: u32) -> Time {
        self.rate.tx_time(Bytes::new(u64::from(size)))
    }
}

/// A bucket for the rate, and an optional one for the peak rate.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    sustained: Bucket,
    peak: Option<Bucket>,
}

impl Buckets {
    /// Creates full buckets. That of the peak rate holds `mtu` bytes.
    #[must_use]
    pub fn new(rate: Rate, burst: Bytes, peak: Option<Rate>, mtu: Bytes) -> Self {
        Self { sustained: Bucket::new(rate, burst), peak: peak.map(|peak| Bucket::new(peak, mtu)) }
    }

    /// Whether a packet of `size` bytes can ever pass.
    #[must_use]
    pub fn holds(&self, size: u32) -> bool {
        self.sustained.holds(size) && self.peak.is_none_or(|peak| peak.holds(size))
    }

    /// When a packet of `size` bytes conforms to both buckets.
    #[must_use]
    pub fn ready(&self, size: u32) -> Time {
        self.peak.map_or(Time::ZERO, |peak| peak.ready(size)).max(self.sustained.ready(size))
    }

    /// Takes tokens for `size` bytes at `now`.
    pub fn take(&mut self, now: Time, size: u32) {
        self.sustained.take(now, size);
        if let Some(peak) = &mut self.peak {
            peak.take(now, size);
        }
    }

    /// Whether no tokens are missing at `now`.
    fn are_full(&self, now: Time) -> bool {
        self.sustained.full_at <= now && self.peak.is_none_or(|peak| peak.full_at <= now)
    }

    /// Bytes that could pass at `now` by the rate, without the peak rate.
    #[must_use]
    pub fn tokens(&self, now: Time) -> f64 {
        self.sustained.tokens(now)
    }
}

/// Checks the parameters of both buckets.
fn check(rate: Rate, burst: Bytes, peak: Option<Rate>, mtu: Option<Bytes>) -> Result<(), Refused> {
    let range = 1.0..=1e14;
    if !range.contains(&rate.bps()) {
        return Err(("rate", format!("is {rate}; it must be 1bps to 100Tbps")));
    }
    if burst.get() == 0 {
        return Err(("burst", format!("is {burst}; it must be a packet or more")));
    }
    match (peak, mtu) {
        (Some(peak), _) if peak < rate || !range.contains(&peak.bps()) => {
            Err(("peak", format!("is {peak}; it must be rate, {rate}, or more, and 100Tbps at most")))
        }
        (Some(_), Some(mtu)) if mtu.get() == 0 => {
            Err(("mtu", format!("is {mtu}; it must be a packet or more")))
        }
        (None, Some(mtu)) => Err((
            "mtu",
            format!("is {mtu}, but mtu is the bucket of peak, which is missing; give peak, or leave mtu out"),
        )),
        _ => Ok(()),
    }
}

/// The traffic that shares a policer's bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// All packets of the link.
    #[default]
    Link,
    /// The packets of one flow. A subscriber with one flow has a bucket of its own.
    Flow,
}

/// Parameters of a policer that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerParams {
    /// Average rate `r` at which packets pass, headers included; 1bps to 100Tbps.
    pub rate: Rate,
    /// Bucket size `b`: bytes that may pass at once; at least the scenario's `packet`.
    pub burst: Bytes,
    /// Peak rate `p`, at which `burst` may pass; `rate` to 100Tbps. Default: no limit.
    pub peak: Option<Rate>,
    /// Bucket size of the peak rate: bytes that may pass at once at `peak`. Default: the scenario's `packet`.
    pub mtu: Option<Bytes>,
    /// Whether ECN-capable packets that do not conform are marked and pass, instead of being dropped. They take no
    /// tokens.
    #[serde(default)]
    pub ecn: bool,
    /// The traffic that shares a bucket: that of the `"link"` or of each `"flow"`.
    #[serde(default)]
    pub per: Per,
}

impl Default for PolicerParams {
    fn default() -> Self {
        // Placeholders for lists of all laws: a scenario must set these values.
        Self {
            rate: Rate::from_mbps(10.0),
            burst: Bytes::new(32_000),
            peak: None,
            mtu: None,
            ecn: false,
            per: Per::Link,
        }
    }
}

/// State of the policer: a drop-tail queue behind token buckets.
#[derive(Clone, Debug)]
pub struct Policer {
    limit: Limit,
    /// The link's buckets, or those of a flow that has not sent yet.
    buckets: Buckets,
    /// The buckets of each flow.
    flows: Option<Box<FlowBuckets>>,
    ecn: bool,
    /// Tokens after the last arrival, for probes.
    tokens: f64,
}

/// The buckets of flows. Without `full` there are none, and the compiler leaves out their code.
const OF_FLOWS: bool = cfg!(feature = "full");
/// Number of buckets from which full ones are forgotten.
const MANY: usize = 4096;

/// Buckets by flow.
#[derive(Clone, Debug, Default)]
struct FlowBuckets {
    of: BTreeMap<u64, Buckets>,
    /// Full buckets are forgotten above this number.
    most: usize,
}

impl FlowBuckets {
    fn of(&mut self, packet: &Arrival, new: &Buckets) -> &mut Buckets {
        if self.of.len() > self.most.max(MANY) {
            self.of.retain(|_, buckets| !buckets.are_full(packet.now));
            self.most = 2 * self.of.len();
        }
        self.of.entry(packet.flow).or_insert(*new)
    }
}

impl QueueLaw for Policer {
    type Params = PolicerParams;

    fn check(p: &PolicerParams) -> Result<(), Refused> {
        if p.per == Per::Flow && !OF_FLOWS {
            return Err((
                "per",
                "is \"flow\", but in this build a link has one bucket; leave it out".to_owned(),
            ));
        }
        check(p.rate, p.burst, p.peak, p.mtu)
    }

    fn smallest_bucket(params: &PolicerParams) -> Option<(&'static str, Bytes)> {
        smallest(params.burst, params.mtu)
    }

    fn new(params: &PolicerParams, view: &QueueView) -> Self {
        let mtu = params.mtu.unwrap_or(Bytes::new(u64::from(view.mean_packet_bytes)));
        Self {
            limit: view.limit,
            buckets: Buckets::new(params.rate, params.burst, params.peak, mtu),
            flows: (OF_FLOWS && params.per == Per::Flow).then(Box::default),
            ecn: params.ecn,
            tokens: params.burst.as_f64(),
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, packet: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        let buckets = match &mut self.flows {
            Some(flows) if OF_FLOWS => flows.of(packet, &self.buckets),
            _ => &mut self.buckets,
        };
        let conforms = buckets.holds(packet.size) && buckets.ready(packet.size) <= packet.now;
        if conforms {
            buckets.take(packet.now, packet.size);
        }
        self.tokens = buckets.tokens(packet.now);
        match (packet.fits(self.limit), conforms) {
            (false, _) => Verdict::Drop,
            (true, true) => Verdict::Enqueue,
            (true, false) if self.ecn && packet.ecn_capable => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("tokens_bytes", self.tokens);
    }
}

/// Parameters of a shaper that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShaperParams {
    /// Average rate `r` at which packets leave, headers included; 1bps to 100Tbps.
    pub rate: Rate,
    /// Bucket size `b`: bytes that may leave at once, at the link's rate or at `peak`; at least the scenario's `packet`.
    pub burst: Bytes,
    /// Peak rate `p`, at which `burst` may leave; `rate` to 100Tbps. Default: no limit.
    pub peak: Option<Rate>,
    /// Bucket size of the peak rate: bytes that may leave at once at `peak`. Default: the scenario's `packet`.
    pub mtu: Option<Bytes>,
    /// Size of the queue in bytes; replaces the link's `buffer`.
    pub limit: Option<Bytes>,
    /// Longest wait of a packet; replaces the link's `buffer`. The queue holds as many bytes as leave in this time if
    /// the buckets are full. Set only one of `limit` and `latency`.
    pub latency: Option<Time>,
}

impl Default for ShaperParams {
    fn default() -> Self {
        let PolicerParams { rate, burst, peak, mtu, .. } = PolicerParams::default();
        Self { rate, burst, peak, mtu, limit: None, latency: None }
    }
}

impl ShaperParams {
    /// The queue's limit by `limit` or `latency`, if one is given. A latency allows `b + r latency` bytes, or `mtu +
    /// p latency` if that is less, as in Linux's `tbf`. `packet` is the size of a full packet.
    #[must_use]
    pub fn own_limit(&self, packet: Bytes) -> Option<Limit> {
        let within = |rate: Rate, burst: Bytes, latency| burst.as_f64() + rate.bytes_in(latency);
        let by_latency = self.latency.map(|latency| {
            let most = within(self.rate, self.burst, latency);
            let mtu = self.mtu.unwrap_or(packet);
            // Rounds to the nearest byte: 50 ms at 8 Mb/s are 50,000 bytes, less a rounding error.
            self.peak.map_or(most, |peak| most.min(within(peak, mtu, latency))).round() as u64
        });
        self.limit.map(Bytes::get).or(by_latency).map(Limit::Bytes)
    }

    /// The buckets that decide when packets may leave, for the code that serves the queue. `packet` is the size of a
    /// full packet.
    #[must_use]
    pub fn buckets(&self, packet: Bytes) -> Buckets {
        Buckets::new(self.rate, self.burst, self.peak, self.mtu.unwrap_or(packet))
    }
}

/// The queue of a shaper, which admits packets that fit. [`ShaperParams::buckets`] decide when packets leave.
#[derive(Clone, Debug)]
pub struct Shaper {
    limit: Limit,
    buckets: Buckets,
}

impl QueueLaw for Shaper {
    type Params = ShaperParams;

    fn check(p: &ShaperParams) -> Result<(), Refused> {
        check(p.rate, p.burst, p.peak, p.mtu)?;
        match (p.limit, p.latency) {
            (Some(_), Some(latency)) => {
                Err(("latency", format!("is {latency}, and limit is given too; leave out one of them")))
            }
            _ => Ok(()),
        }
    }

    fn smallest_bucket(params: &ShaperParams) -> Option<(&'static str, Bytes)> {
        smallest(params.burst, params.mtu)
    }

    fn new(params: &ShaperParams, view: &QueueView) -> Self {
        let packet = Bytes::new(u64::from(view.mean_packet_bytes));
        Self { limit: params.own_limit(packet).unwrap_or(view.limit), buckets: params.buckets(packet) }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, packet: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        if self.buckets.holds(packet.size) && packet.fits(self.limit) {
            Verdict::Enqueue
        } else {
            Verdict::Drop
        }
    }
}

/// Name of the smaller bucket's parameter, and its size in bytes.
fn smallest(burst: Bytes, mtu: Option<Bytes>) -> Option<(&'static str, Bytes)> {
    match mtu {
        Some(mtu) if mtu < burst => Some(("mtu", mtu)),
        _ => Some(("burst", burst)),
    }
}

//! Impaired links, which lose, mark, copy or delay packets at random, or lead over a detour for a while.

use flowstamp_laws::units::{Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Changes to packets after they have crossed a link: data, acks, and packets that open or end a flow. The
/// choice is made for each packet on its own. The queue's drops are counted separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Impairments {
    /// Share of packets that are lost.
    pub loss: Ratio,
    /// Loss in bursts, by the model of Gilbert and Elliott (netem's `loss gemodel`). Default: none.
    pub burst_loss: Option<BurstLoss>,
    /// Numbers of packets that are lost, in the order in which they cross the link from the start of the run. The
    /// first packet is 1, whatever it carries. (ns-3's `ReceiveListErrorModel` counts from 0.)
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_packets: Vec<u64>,
    /// Whether ECN-capable data packets are marked where `loss` or `burst_loss` would lose them (netem's `ecn`).
    #[serde(skip_serializing_if = "is_false")]
    pub ecn: bool,
    /// Share of ECN-capable data packets, of those not lost, that are marked (congestion experienced).
    #[serde(skip_serializing_if = "is_zero")]
    pub mark: Ratio,
    /// Random part of the delay, drawn for each packet. Default: none.
    pub jitter: Option<LinkJitter>,
    /// A delay that varies over time, in place of the link's `delay`. Routes, and defaults that depend on RTTs,
    /// still use `delay`.
    pub delays: Option<Delays>,
    /// Whether packets keep their order: each arrives no earlier than the one that left before it. Otherwise
    /// packets with a shorter delay overtake others, as in netem. It excludes `reorder`.
    #[serde(skip_serializing_if = "is_false")]
    pub keep_order: bool,
    /// Share of packets, of those not lost, that are duplicated.
    pub duplicate: Ratio,
    /// Share of packets not lost, copies included, that are held back by `reorder_delay`, so that others overtake
    /// them.
    pub reorder: Ratio,
    /// How long reordered packets are held back.
    pub reorder_delay: Option<Time>,
    /// Times during which packets take a longer route, in order. Packets that leave the link after a detour
    /// overtake those that are still on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Detour>,
}

/// A time during which packets take a longer route to the same end. Defaults that depend on RTTs ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detour {
    /// When it begins, for packets that leave the link's transmitter from then on.
    pub from: Time,
    /// When it ends. Default: never.
    pub until: Option<Time>,
    /// Delay of the longer route in addition to the link's `delay`.
    pub delay: Time,
}

/// Loss in bursts (Gilbert 1960, Elliott 1963). The link is in a good or a bad state, with a loss rate for each,
/// and may change its state after every packet. It begins in the good state. A bad state lasts 1/r packets on
/// average. Over a long run the share (r good + p bad)/(p + r) is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstLoss {
    /// Probability that a good state ends after a packet: netem's `p`.
    pub p: Ratio,
    /// Probability that a bad state ends after a packet: netem's `r`.
    pub r: Ratio,
    /// Share of packets lost in the bad state: netem's `1-h`.
    #[serde(default = "all")]
    pub bad: Ratio,
    /// Share of packets lost in the good state: netem's `1-k`.
    #[serde(default)]
    pub good: Ratio,
}

/// Distribution of the random part of a link's delay. Its mean is zero, so the mean delay is the link's `delay`. A
/// negative total counts as zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum LinkJitter {
    /// Uniform from `delay` - `spread` to `delay` + `spread`.
    Uniform {
        /// Half of the width.
        spread: Time,
    },
    /// Normal.
    Normal {
        /// Standard deviation.
        deviation: Time,
    },
    /// Pareto: a long tail above a shortest delay of `delay` - `deviation` sqrt(1 - 2/`shape`).
    Pareto {
        /// Standard deviation.
        deviation: Time,
        /// Exponent of the tail, above 2. Default: 3, as in netem's table `pareto`.
        #[serde(default = "three")]
        shape: f64,
    },
}

/// One-way propagation delay over time; exactly one of `steps` and `trace` is given. A packet has the delay of the
/// instant at which it leaves the link's transmitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// Instants, each with the delay from then on. The first is 0s, and the last delay stays.
    pub steps: Option<Vec<(Time, Time)>>,
    /// A file of lines `time delay`, both in milliseconds, the first at 0. It repeats after its last time, as a
    /// rate's trace does. A path is relative to the scenario's folder.
    pub trace: Option<PathBuf>,
    /// Whether the delay changes linearly between two entries. Otherwise it stays at the earlier entry's.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interpolate: bool,
}

fn all() -> Ratio {
    Ratio::new(1.0)
}
fn three() -> f64 {
    3.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn is_false(given: &bool) -> bool {
    !*given
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(share: &Ratio) -> bool {
    share.get() == 0.0
}

impl LinkJitter {
    /// How far the shortest delay is below the mean; `None` if there is no bound.
    #[must_use]
    pub fn below_mean(&self) -> Option<Time> {
        match self {
            Self::Uniform { spread } => Some(*spread),
            Self::Normal { .. } => None,
            Self::Pareto { deviation, shape } => Some(deviation.scale((1.0 - 2.0 / shape).sqrt())),
        }
    }

    fn check(&self) -> Result<(), (String, String)> {
        let (key, time) = match self {
            Self::Uniform { spread } => ("spread", *spread),
            Self::Normal { deviation } | Self::Pareto { deviation, .. } => ("deviation", *deviation),
        };
        if time == Time::ZERO {
            return Err((
                format!("jitter.{key}"),
                "is 0s; it must be longer, or leave jitter out".to_owned(),
            ));
        }
        match self {
            Self::Pareto { shape, .. } if !(shape.is_finite() && *shape > 2.0) => {
                let message =
                    format!("is {shape}; it must be above 2, where the standard deviation is finite");
                Err(("jitter.shape".to_owned(), message))
            }
            _ => Ok(()),
        }
    }
}

impl Impairments {
    /// Whether packets have delays of their own, instead of one delay for all.
    #[must_use]
    pub fn have_delays(&self) -> bool {
        self.jitter.is_some() || self.delays.is_some()
    }

    /// Checks the impairments on a link with this delay.
    ///
    /// # Errors
    /// The first invalid key, and a value that would be right.
    pub fn check_on(&self, delay: Time) -> Result<(), (String, String)> {
        self.check()?;
        let below = self.jitter.filter(|_| self.delays.is_none()).and_then(|jitter| jitter.below_mean());
        match below.filter(|below| *below > delay) {
            Some(below) => Err((
                "jitter".to_owned(),
                format!(
                    "has delays of {below} less than the mean, and the link's delay is {delay}; use less, or a longer delay"
                ),
            )),
            None => Ok(()),
        }
    }

    /// Checks the impairments alone.
    ///
    /// # Errors
    /// The first invalid key, and a value that would be right.
    pub fn check(&self) -> Result<(), (String, String)> {
        let refused = |key: &str, message| Err((key.to_owned(), message));
        let mut shares = vec![
            ("loss", self.loss),
            ("mark", self.mark),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
        ];
        if let Some(BurstLoss { p, r, bad, good }) = self.burst_loss {
            shares.extend([
                ("burst_loss.p", p),
                ("burst_loss.r", r),
                ("burst_loss.bad", bad),
                ("burst_loss.good", good),
            ]);
        }
        for (key, share) in shares {
            if !(0.0..=1.0).contains(&share.get()) {
                return refused(key, format!("is {share}; it is a share of packets, from 0 to 1 or 100%"));
            }
        }
        if self.reorder.get() > 0.0 && self.reorder_delay.is_none_or(|delay| delay == Time::ZERO) {
            let is = self.reorder_delay.map_or("is missing".to_owned(), |delay| format!("is {delay}"));
            let message = format!("{is}; where packets are held back (reorder) it must be longer than 0s");
            return refused("reorder_delay", message);
        }
        if let Some(BurstLoss { r, .. }) = self.burst_loss.filter(|burst| burst.r.get() == 0.0) {
            return refused(
                "burst_loss.r",
                format!("is {r}; it must be above 0, or a bad state would never end"),
            );
        }
        if self.lost_packets.contains(&0) {
            return refused("lost_packets", "has 0; the first packet is number 1".to_owned());
        }
        if self.keep_order && self.reorder.get() > 0.0 {
            return refused(
                "keep_order",
                "is true, but reorder holds packets back; leave out one of them".to_owned(),
            );
        }
        if let Some(jitter) = &self.jitter {
            jitter.check()?;
        }
        self.check_detours()
    }

    /// Checks that each detour begins after the one before it has ended.
    fn check_detours(&self) -> Result<(), (String, String)> {
        let refused = |key: String, message| Err((key, message));
        let mut free = Time::ZERO;
        for (number, detour) in self.detours.iter().enumerate() {
            let until = detour.until.unwrap_or(Time::MAX);
            if detour.from < free {
                let ends =
                    if free == Time::MAX { "has no end".to_owned() } else { format!("ends at {free}") };
                let message = format!("is {}, but the detour before {ends}", detour.from);
                return refused(format!("detours[{number}].from"), message);
            }
            if until <= detour.from {
                let message = format!("is {until}; it must be later than from, {}", detour.from);
                return refused(format!("detours[{number}].until"), message);
            }
            free = until;
        }
        Ok(())
    }
}

//! Impaired links, which lose, mark, copy or delay packets at random, or lead over a detour for a while.

use flowstamp_laws::units::{Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What becomes of packets that have crossed a link, whatever they are: data, acks and those that open or end a flow. Each is decided
/// by itself. A queue's drops are something else, and are counted apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Impairments {
    /// Share of packets that are lost.
    pub loss: Ratio,
    /// Loss in bursts, by the model of Gilbert and Elliott (netem's `loss gemodel`). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_loss: Option<BurstLoss>,
    /// Packets that are lost, by their number in the order in which they cross the link since the run began: 1 is the first, whatever it
    /// carries. (ns-3's `ReceiveListErrorModel` counts from 0.)
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_packets: Vec<u64>,
    /// Packets that `loss` or `burst_loss` picks are marked in place of lost if they are ECN-capable data (netem's `ecn`).
    #[serde(skip_serializing_if = "is_false")]
    pub ecn: bool,
    /// Share of ECN-capable data packets, of those not lost, that are marked: congestion experienced. Others never are.
    #[serde(skip_serializing_if = "is_zero")]
    pub mark: Ratio,
    /// Random part of the delay: each packet has its own. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<LinkJitter>,
    /// A delay that varies over time, in place of the link's `delay`. Routes, and what is assumed from the paths' RTTs, go by `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
    /// Nothing overtakes: a packet arrives no earlier than the one that left before it. Without it packets whose delay is shorter
    /// overtake others, as netem has it. Not together with `reorder`.
    #[serde(skip_serializing_if = "is_false")]
    pub keep_order: bool,
    /// Share of those not lost of which a copy goes on, too.
    pub duplicate: Ratio,
    /// Share of those that go on, copies among them, that are held back by `reorder_delay`, so that others overtake them.
    pub reorder: Ratio,
    /// How long they are held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_delay: Option<Time>,
    /// Times at which packets take another, longer route, in their order. What leaves the link after one of them overtakes what
    /// is still on the longer route.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Detour>,
}

/// A time at which packets take a longer route than the link's own, to the same end. What is assumed from the paths' RTTs does not
/// know of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detour {
    /// It begins: for packets that leave the link's transmitter from then on.
    pub from: Time,
    /// It is over. Default: it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// How much longer than the link's `delay` the way is.
    pub delay: Time,
}

/// Loss in bursts: the link is in a good or a bad state, loses its share of packets in each, and may change its state after every packet
/// (Gilbert 1960, Elliott 1963). It begins in the good one. Bad states last 1/r packets on average, and over a long run the share
/// (r good + p bad)/(p + r) is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstLoss {
    /// Chance that a good state ends after a packet: netem's `p`.
    pub p: Ratio,
    /// Chance that a bad state ends after a packet: netem's `r`.
    pub r: Ratio,
    /// Share of packets lost in the bad state: netem's `1-h`.
    #[serde(default = "all")]
    pub bad: Ratio,
    /// Share of packets lost in the good state: netem's `1-k`.
    #[serde(default)]
    pub good: Ratio,
}

/// How the random part of a link's delay is distributed. Its mean is zero, so that the mean of the whole is the link's `delay`. A delay below
/// zero would be zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum LinkJitter {
    /// Evenly spread over `delay` - `spread` to `delay` + `spread`.
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

/// One-way propagation delay over time; exactly one of `steps` and `trace` is given. A packet's delay is that of the instant at which it leaves
/// the link's transmitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// Instants and the delay from then on; the first is at 0s, the last lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<(Time, Time)>>,
    /// A file of lines `time delay`, both in milliseconds, the first at 0. It repeats from its last time on, as a rate's trace does. A path is
    /// relative to the scenario's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// Between two entries the delay changes linearly. Default: it is that of the entry before.
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
    /// The first invalid key, and what would be right.
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
    /// The first invalid key, and what would be right.
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

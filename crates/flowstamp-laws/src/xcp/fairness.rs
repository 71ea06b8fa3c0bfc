//! Fairness controllers that may replace XCP's own (Katabi 2002, section 6): proportional fairness, and strict priority.
//!
//! Section 6 names both and gives neither: "the designer needs to replace the AIMD policy used by the FC". The
//! efficiency controller keeps `F` and the shuffled traffic `h` ([`super::router`]). In throughput, with a flow's rate
//! `x = s / X`, its price in it:
//!
//! ```text
//!   min-max        p = (h + F+) X / sum X           n = (h + F-) s / sum s
//!   proportional   p = (F+ - g) X / sum X + (h + g) s / sum s      g = min(F+, gamma y)
//!                  n = max(0, r (h + F+) - F) s x / sum (s x)
//!                  feedback = min(feedback of earlier routers, p) - n
//!   priority       p = F+ X / sum X + g_k X / sum_k X    n = (c_k + t_k) s / sum_k s     sums over level k
//! ```
//!
//! Proportional: near full use a flow's rate changes by `gamma x (1 - x / s_1 - x / s_2 ...)`, where link `i` alone would
//! give it `s_i`. It rests at `x = 1 / sum (1 / s_i)`, which is Kelly's proportional fairness with the links' shadow
//! prices `1 / s_i`. `r` is the share of the link's increases that earlier routers left. Flows get small increases in
//! proportion to their rates: in equal parts, fluctuations of `F` would move the allocation towards equal rates.
//!
//! Priority: level `k` contributes `c_k`, its part of `h`, to levels that wish for more: the highest first, and its own
//! last. A level whose wishes the levels below can meet contributes nothing. Decreases `F-` take up to half of the
//! lowest level's rate, then of the next (`t_k`). Spare bandwidth goes to all levels alike: a high level that
//! another link holds back would otherwise keep it unused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a router divides its feedback among flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fairness {
    /// Equal throughput, or in proportion to price (section 3.5.2).
    #[default]
    MinMax,
    /// Proportional fairness: each bottleneck on a flow's path costs it throughput.
    Proportional,
    /// Strict priority by the senders' `priority`.
    Priority,
}

/// Number of priority levels; level 0 is the lowest.
pub const LEVELS: usize = 8;

/// The aggregate of an interval, from the efficiency controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregate {
    /// `F`, bytes/s.
    pub feedback: f64,
    /// `h`, bytes/s.
    pub shuffled: f64,
    /// `gamma y`, bytes/s.
    pub part: f64,
    /// `sum X`, seconds.
    pub sum_x: f64,
    /// `sum s` over the same packets, bytes.
    pub sum_bytes: f64,
    /// Length of the interval that has ended, seconds.
    pub interval: f64,
}

/// A controller that replaces the min-max one.
#[derive(Clone, Debug)]
pub(super) enum Controller {
    Proportional(Box<Proportional>),
    Priority(Box<[Level; LEVELS]>),
}

/// State of the proportionally fair controller.
#[derive(Clone, Debug, Default)]
pub(super) struct Proportional {
    /// `sum s x` of this interval.
    sum_squares: f64,
    /// Offered increases of this interval, and what earlier routers left of them, bytes/s.
    offered: f64,
    left: f64,
    /// Throughput per second of inter-packet time, per byte, and per `s x`.
    per_x: f64,
    per_byte: f64,
    per_square: f64,
}

/// State of one priority level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    /// Sums of this interval: `X`, bytes, and wishes as earlier routers left them, bytes/s.
    sum_x: f64,
    sum_bytes: f64,
    wishes: f64,
    /// Throughput per second of inter-packet time, and per byte.
    per_x: f64,
    per_byte: f64,
}

impl Controller {
    pub fn of(fairness: Fairness) -> Option<Self> {
        match fairness {
            Fairness::MinMax => None,
            Fairness::Proportional => Some(Self::Proportional(Box::default())),
            Fairness::Priority => Some(Self::Priority(Box::new([Level::default(); LEVELS]))),
        }
    }

    /// Counts an arriving packet of `size` bytes with the inter-packet time `x`.
    pub fn count(&mut self, x: f64, size: f64, level: usize) {
        match self {
            Self::Proportional(it) => it.sum_squares += size * size / x,
            Self::Priority(levels) => {
                levels[level].sum_x += x;
                levels[level].sum_bytes += size;
            }
        }
    }

    /// Sets what the next interval's packets get, and returns the positive and the negative pool.
    pub fn decide(&mut self, all: &Aggregate) -> [f64; 2] {
        match self {
            Self::Proportional(it) => it.decide(all),
            Self::Priority(levels) => decide_levels(levels, all),
        }
    }

    /// `p` and `n` of a departing packet to which earlier routers have left `allowed`.
    pub fn portions(&mut self, x: f64, size: f64, level: usize, allowed: f64) -> [f64; 2] {
        match self {
            Self::Proportional(it) => {
                let give = it.per_x * x + it.per_byte * size;
                it.offered += give;
                it.left += give.min(allowed);
                [give, if x > 0.0 { it.per_square * size * size / x } else { 0.0 }]
            }
            Self::Priority(levels) => {
                let it = &mut levels[level];
                it.wishes += allowed.max(0.0);
                [it.per_x * x, it.per_byte * size]
            }
        }
    }

    /// Whether decreases of all routers on a path add up.
    pub const fn adds_up(&self) -> bool {
        matches!(self, Self::Proportional(_))
    }
}

impl Proportional {
    fn decide(&mut self, all: &Aggregate) -> [f64; 2] {
        let increase = all.feedback.max(0.0);
        let give = all.shuffled + increase;
        let left = if self.offered > 0.0 { self.left / self.offered } else { 1.0 };
        let take = (left * give - all.feedback).max(0.0);
        let per_square = if self.sum_squares > 0.0 { take / self.sum_squares } else { 0.0 };
        let small = increase.min(all.part);
        *self = Self {
            per_x: (increase - small) / all.sum_x,
            per_byte: (all.shuffled + small) / all.sum_bytes,
            per_square,
            ..Self::default()
        };
        [give, take]
    }
}

fn decide_levels(levels: &mut [Level; LEVELS], all: &Aggregate) -> [f64; 2] {
    let contributes = levels.map(|it| all.shuffled * it.sum_bytes / all.sum_bytes);
    // The highest level whose wishes the levels below cannot meet; levels above get what they wish.
    let mut met = 0.0;
    let mut needy = None;
    for k in (0..LEVELS).rev().filter(|&k| levels[k].sum_x > 0.0) {
        let below: f64 = contributes[..k].iter().sum();
        if levels[k].wishes > below - met {
            needy = Some((k, (below + contributes[k] - met).max(0.0)));
            break;
        }
        met += levels[k].wishes;
    }
    let last = levels.iter().rposition(|it| it.sum_x > 0.0);
    let mut rest = (-all.feedback).max(0.0);
    let mut pools = [0.0; 2];
    for (k, it) in levels.iter_mut().enumerate() {
        if it.sum_x <= 0.0 {
            *it = Level::default();
            continue;
        }
        let (most, got) = needy.unwrap_or((0, 0.0));
        let gift = if k > most {
            it.wishes
        } else if k == most {
            got
        } else {
            0.0
        };
        let gift = if needy.is_some() { gift } else { 0.0 };
        let half = it.sum_bytes / all.interval / 2.0;
        let taken = if last == Some(k) { rest } else { rest.min(half) };
        rest -= taken;
        let given = gift + all.feedback.max(0.0) * it.sum_x / all.sum_x;
        let taken = taken + if needy.is_some() && k <= most { contributes[k] } else { 0.0 };
        pools = [pools[0] + given, pools[1] + taken];
        *it = Level { per_x: given / it.sum_x, per_byte: taken / it.sum_bytes, ..Level::default() };
    }
    pools
}

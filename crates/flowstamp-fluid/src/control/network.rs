//! XCP and RCP on several links, with groups of flows of several routes and RTTs.
//!
//! A flow's packets pass its links at known times after they were sent. The flow hears the feedback of a link when the acks are back.
//! Therefore a link's loop takes an RTT, wherever the link is on the route. As in all such models, traffic leaves a full link as it
//! arrived, so a queue behind another sees more traffic than in a real network. At equilibrium, where queues are empty, this makes no difference.
//!
//! A state is `V` numbers: queues by link, then rates, by group or by link. Any consistent units will do; with one link its
//! capacity and mean RTT are the natural ones. Groups without flows are skipped, so a model also serves fewer groups than it has
//! room for.

use super::delay::{Past, System};
use super::models::Queue;
use flowstamp_laws::rcp;
use flowstamp_laws::xcp::router::aggregate_feedback;
use flowstamp_laws::xcp::shares::{Shuffle, pools};

/// Capacities, routes and delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paths<const L: usize, const G: usize> {
    /// By link.
    pub capacities: [f64; L],
    /// By group: number of flows.
    pub flows: [f64; G],
    /// By group: RTT without queues.
    pub rtts: [f64; G],
    /// By group and link: time from sending until packets pass the link; `None` off the route, zero at the first link.
    pub passes: [[Option<f64>; L]; G],
}

impl<const G: usize> Paths<1, G> {
    /// Groups that share one link of capacity 1.
    #[must_use]
    pub fn shared(flows: [f64; G], rtts: [f64; G]) -> Self {
        Self { capacities: [1.0], flows, rtts, passes: [[Some(0.0)]; G] }
    }
}

impl<const L: usize, const G: usize> Paths<L, G> {
    /// Returns itself if it is a valid network: each group with flows has a route, and passes each of its links within its RTT.
    #[must_use]
    pub fn checked(self) -> Option<Self> {
        let sound = |i: usize| {
            let times = self.passes[i].iter().flatten();
            self.rtts[i].is_finite()
                && times.clone().count() > 0
                && times.clone().all(|after| (0.0..self.rtts[i]).contains(after))
        };
        let finite = |values: &[f64], least: f64| values.iter().all(|v| v.is_finite() && *v >= least);
        let mut groups = (0..G).filter(|i| self.flows[*i] > 0.0);
        let good = finite(&self.flows, 0.0) && finite(&self.capacities, f64::MIN_POSITIVE);
        (good && groups.clone().count() > 0 && groups.all(sound)).then_some(self)
    }

    /// The groups over a link, each with the time from sending until it passes the link.
    #[inline]
    pub(super) fn over(&self, link: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..G)
            .filter(|i| self.flows[*i] > 0.0)
            .filter_map(move |i| self.passes[i][link].map(|after| (i, after)))
    }

    /// The links of a group, each with the time from sending until the group passes it.
    #[inline]
    pub(super) fn route(&self, group: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..L).filter_map(move |l| self.passes[group][l].map(|after| (l, after)))
    }

    /// Number of flows over a link.
    #[must_use]
    pub fn count(&self, link: usize) -> f64 {
        self.over(link).map(|(i, _)| self.flows[i]).sum()
    }

    /// The mean RTT of the flows over a link. Each flow counts once, as in XCP's routers. Zero without flows.
    #[must_use]
    pub fn mean_rtt(&self, link: usize) -> f64 {
        let count = self.count(link);
        if count > 0.0 {
            self.over(link).map(|(i, _)| self.flows[i] * self.rtts[i]).sum::<f64>() / count
        } else {
            0.0
        }
    }

    /// The shortest and the longest delay in the equations.
    pub(super) fn delays(&self) -> (f64, f64) {
        let (mut shortest, mut longest) = (f64::INFINITY, 0.0f64);
        for link in 0..L {
            let passes = self.over(link).map(|(_, after)| after).fold(0.0, f64::max);
            for (i, after) in self.over(link) {
                shortest = shortest.min(self.rtts[i] - after);
                shortest = if after > 0.0 { shortest.min(after) } else { shortest };
                longest = longest.max(self.rtts[i] - after + passes);
            }
        }
        (shortest, longest)
    }

    /// Max-min fair rates of one flow of each group: all grow alike until their first link is full.
    #[must_use]
    pub fn max_min(&self) -> [f64; G] {
        let mut rates: [Option<f64>; G] = self.flows.map(|n| (n <= 0.0).then_some(0.0));
        while rates.iter().any(Option::is_none) {
            let left = |l: usize| {
                let open: f64 =
                    self.over(l).filter(|(i, _)| rates[*i].is_none()).map(|(i, _)| self.flows[i]).sum();
                let taken: f64 = self.over(l).filter_map(|(i, _)| Some(self.flows[i] * rates[i]?)).sum();
                (open > 0.0).then(|| (self.capacities[l] - taken) / open)
            };
            let full = (0..L).filter_map(|l| Some((left(l)?, l))).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((rate, link)) = full else { break };
            for (i, _) in self.over(link) {
                rates[i].get_or_insert(rate);
            }
        }
        rates.map(|rate| rate.unwrap_or(0.0))
    }
}

/// XCP (Katabi 2002, equations 15 to 17). A link's control interval is the mean RTT of its flows. A group hears the feedback after its own RTT.
///
/// ```text
///   F(t)  = alpha (C - y) / d - beta q / d^2                                      rate per time, of all flows
///   r_i'  = ([F]+ + h) / n - (r_i / y) ([-F]+ + h),   d_i later                   n flows, h = max(0.1 y / d - |F|, 0)
///           and not below 0 where r_i = 0
///   q'    = y - C, and max(y - C, 0) where q = 0
/// ```
///
/// Equation 17 has the aggregate's slope in place of F. That slope is F itself a round trip later (equation 16), so equation 17 would
/// count the delay twice. `h` is that of section 3.5.2. On a route of several links the least feedback counts.
///
/// At equilibrium on one link a flow has its fair share. If flows of a link are bottlenecked elsewhere, the link settles below its
/// capacity, the more so the more is shuffled (Low, Andrew and Wydrowski 2005). Rates are max-min fair only as `shuffle` goes to zero.
///
/// Variables are queues, then the rate of one flow of each group: `V` is `L + G`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xcp<const L: usize, const G: usize, const V: usize> {
    alpha: f64,
    beta: f64,
    shuffle: f64,
    paths: Paths<L, G>,
    rtts: [f64; L],
    counts: [f64; L],
}

impl<const L: usize, const G: usize, const V: usize> Xcp<L, G, V> {
    /// `alpha` and `beta` are the gains on spare capacity and on the queue. `shuffle` is the share of the traffic that is shuffled in a
    /// mean RTT, 0.1 in the paper. `None` if the paths do not form a valid network.
    #[must_use]
    pub fn new(alpha: f64, beta: f64, shuffle: f64, paths: Paths<L, G>) -> Option<Self> {
        const { assert!(V == L + G, "a queue for each link, a rate for each group") };
        let paths = paths.checked()?;
        let (rtts, counts) =
            (std::array::from_fn(|l| paths.mean_rtt(l)), std::array::from_fn(|l| paths.count(l)));
        Some(Self { alpha, beta, shuffle, paths, rtts, counts })
    }

    /// Arrival rate at a link where the state is `x` at `t`.
    #[inline]
    #[must_use]
    pub fn arriving(&self, link: usize, t: f64, x: &[f64; V], past: &Past<V>) -> f64 {
        self.paths
            .over(link)
            .map(|(i, after)| {
                let rate = if after > 0.0 { past.at(t - after)[L + i] } else { x[L + i] };
                self.paths.flows[i] * rate
            })
            .sum()
    }

    /// A link's feedback to a flow with this rate: the change of the rate, per time.
    #[inline]
    fn feedback(&self, link: usize, queue: f64, arriving: f64, rate: f64) -> f64 {
        let d = self.rtts[link];
        let aggregate =
            aggregate_feedback(self.alpha, self.beta, self.paths.capacities[link] - arriving, queue, d);
        let [give, take] = pools(aggregate, self.shuffle, arriving, Shuffle::Rest);
        let taken = if arriving > 0.0 { rate / arriving * take } else { 0.0 };
        (give / self.counts[link] - taken) / d
    }

    /// Feedback that a group hears at `t`: the change of the rate of one of its flows, per time.
    #[inline]
    fn heard(&self, group: usize, t: f64, past: &Past<V>) -> f64 {
        let said = self.paths.route(group).map(|(l, after)| {
            let from = t - (self.paths.rtts[group] - after);
            let then = past.at(from);
            let rate = if after > 0.0 { past.at(from - after)[L + group] } else { then[L + group] };
            self.feedback(l, then[l], self.arriving(l, from, &then, past), rate)
        });
        said.fold(f64::INFINITY, f64::min)
    }

    /// How far a queue or a rate is from its border.
    #[inline]
    fn border(&self, v: usize, mode: AtZero<L, G>, t: f64, x: &[f64; V], past: &Past<V>) -> f64 {
        if v < L {
            return if mode.queues[v] {
                self.paths.capacities[v] - self.arriving(v, t, x, past)
            } else {
                x[v]
            };
        }
        let group = v - L;
        if self.paths.flows[group] <= 0.0 {
            f64::INFINITY
        } else if mode.rates[group] {
            // Without traffic there is no feedback, and so no border.
            let change = self.heard(group, t, past);
            if change == 0.0 { f64::INFINITY } else { -change }
        } else {
            x[v]
        }
    }
}

/// Which queues and rates are at zero and would fall below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtZero<const L: usize, const G: usize> {
    queues: [bool; L],
    rates: [bool; G],
}

impl<const L: usize, const G: usize, const V: usize> System<V> for Xcp<L, G, V> {
    type Mode = AtZero<L, G>;

    fn delays(&self) -> (f64, f64) {
        self.paths.delays()
    }

    fn mode(&self, t: f64, x: &[f64; V], past: &Past<V>) -> AtZero<L, G> {
        AtZero {
            queues: std::array::from_fn(|l| {
                x[l] <= 0.0 && self.arriving(l, t, x, past) < self.paths.capacities[l]
            }),
            rates: std::array::from_fn(|i| {
                self.paths.flows[i] > 0.0 && x[L + i] <= 0.0 && self.heard(i, t, past) < 0.0
            }),
        }
    }

    #[inline]
    fn slope(&self, mode: AtZero<L, G>, t: f64, x: &[f64; V], past: &Past<V>) -> [f64; V] {
        std::array::from_fn(|v| {
            if v < L {
                return if mode.queues[v] {
                    0.0
                } else {
                    self.arriving(v, t, x, past) - self.paths.capacities[v]
                };
            }
            let i = v - L;
            if self.paths.flows[i] <= 0.0 || mode.rates[i] { 0.0 } else { self.heard(i, t, past) }
        })
    }

    #[inline]
    fn guard(&self, mode: AtZero<L, G>, t: f64, x: &[f64; V], past: &Past<V>) -> f64 {
        (0..V).map(|v| self.border(v, mode, t, x, past)).fold(f64::INFINITY, f64::min)
    }

    fn switch(&self, mode: AtZero<L, G>, t: f64, x: &mut [f64; V], past: &Past<V>) -> AtZero<L, G> {
        let borders: [f64; V] = std::array::from_fn(|v| self.border(v, mode, t, x, past));
        // By rounding, the border that the step was cut for may be a hair away.
        let least = borders.iter().copied().fold(f64::INFINITY, f64::min).max(0.0);
        let mut next = mode;
        for (v, _) in borders.iter().enumerate().filter(|(_, border)| **border <= least) {
            if let Some(i) = v.checked_sub(L) {
                if mode.rates[i] {
                    next.rates[i] = false;
                } else {
                    x[v] = 0.0;
                    next.rates[i] = self.heard(i, t, past) <= 0.0;
                }
            } else if mode.queues[v] {
                next.queues[v] = false;
            } else {
                x[v] = 0.0;
                next.queues[v] = self.arriving(v, t, x, past) <= self.paths.capacities[v];
            }
        }
        next
    }
}

/// RCP (Dukkipati 2007, equations 5.1 to 5.4): each link has a rate, and a flow sends at the lowest rate on its route.
///
/// ```text
///   R' = R / (C d) (alpha (C - y) - beta q / d)        d = mean RTT of the arrivals, plus q / C,  R at most C
///   q' = y - C, and max(y - C, 0) where q = 0,  min(y - C, 0) where q fills the buffer
/// ```
///
/// Variables are queues, then rates of links: `V` is `2 L`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rcp<const L: usize, const G: usize, const V: usize> {
    alpha: f64,
    beta: f64,
    paths: Paths<L, G>,
    rtts: [f64; L],
    buffers: [f64; L],
}

/// States of the queues, and which rates are at their maximum and would grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes<const L: usize> {
    queues: [Queue; L],
    held: [bool; L],
}

impl<const L: usize, const G: usize, const V: usize> Rcp<L, G, V> {
    /// With gains on spare capacity and on the queue, and infinite buffers. `None` if the paths do not form a valid network.
    #[must_use]
    pub fn new(alpha: f64, beta: f64, paths: Paths<L, G>) -> Option<Self> {
        const { assert!(V == 2 * L, "a queue and a rate for each link") };
        let paths = paths.checked()?;
        let rtts = std::array::from_fn(|l| paths.mean_rtt(l));
        Some(Self { alpha, beta, rtts, paths, buffers: [f64::INFINITY; L] })
    }

    /// Sets the buffers, in the unit of queues. Traffic that a full buffer drops counts as arrived for the rates.
    #[must_use]
    pub fn with_buffers(self, buffers: [f64; L]) -> Self {
        Self { buffers, ..self }
    }

    /// Arrival rate at a link, and the mean RTT of the arrivals without queues.
    #[inline]
    fn arriving(&self, link: usize, t: f64, past: &Past<V>) -> (f64, f64) {
        let (mut sum, mut rtts) = (0.0, 0.0);
        for (i, after) in self.paths.over(link) {
            // The rate was set when the flow heard each link of its route, as the acks of packets that passed that link came back.
            let sent = t - after - self.paths.rtts[i];
            let rate = self
                .paths
                .route(i)
                .map(|(l, passes)| past.at(sent + passes)[L + l])
                .fold(f64::INFINITY, f64::min);
            sum += self.paths.flows[i] * rate;
            rtts += self.paths.flows[i] * rate * self.paths.rtts[i];
        }
        (sum, if sum > 0.0 { rtts / sum } else { self.rtts[link] })
    }

    /// The relative growth of a link's rate, per time.
    #[inline]
    fn growth(&self, link: usize, queue: f64, (arriving, rtt): (f64, f64)) -> f64 {
        let capacity = self.paths.capacities[link];
        let d = rtt + queue / capacity;
        rcp::router::growth(self.alpha, self.beta, capacity - arriving, queue, d, capacity) / d
    }

    /// How far a link's queue and rate are from their borders. Each has its own scale, so that neither hides the other.
    #[inline]
    fn guards(&self, link: usize, mode: Modes<L>, x: &[f64; V], arriving: (f64, f64)) -> [f64; 2] {
        let (capacity, rtt) = (self.paths.capacities[link], self.rtts[link]);
        let queue = match mode.queues[link] {
            Queue::Empty => 1.0 - arriving.0 / capacity,
            Queue::Full => arriving.0 / capacity - 1.0,
            Queue::Free => x[link].min(self.buffers[link] - x[link]) / capacity,
        };
        let rate = if mode.held[link] {
            self.growth(link, x[link], arriving) * rtt
        } else {
            1.0 - x[L + link] / capacity
        };
        [queue, rate]
    }
}

impl<const L: usize, const G: usize, const V: usize> System<V> for Rcp<L, G, V> {
    type Mode = Modes<L>;

    fn delays(&self) -> (f64, f64) {
        let mut longest = 0.0f64;
        let mut shortest = f64::INFINITY;
        for link in 0..L {
            for (i, after) in self.paths.over(link) {
                for (_, passes) in self.paths.route(i) {
                    let delay = after + self.paths.rtts[i] - passes;
                    (shortest, longest) = (shortest.min(delay), longest.max(delay));
                }
            }
        }
        (shortest, longest)
    }

    fn mode(&self, t: f64, x: &[f64; V], past: &Past<V>) -> Modes<L> {
        let arriving: [(f64, f64); L] = std::array::from_fn(|l| self.arriving(l, t, past));
        Modes {
            queues: std::array::from_fn(|l| {
                let over = arriving[l].0 - self.paths.capacities[l];
                if x[l] <= 0.0 && over < 0.0 {
                    Queue::Empty
                } else if x[l] >= self.buffers[l] && over > 0.0 {
                    Queue::Full
                } else {
                    Queue::Free
                }
            }),
            held: std::array::from_fn(|l| {
                x[L + l] >= self.paths.capacities[l] && self.growth(l, x[l], arriving[l]) > 0.0
            }),
        }
    }

    #[inline]
    fn slope(&self, mode: Modes<L>, t: f64, x: &[f64; V], past: &Past<V>) -> [f64; V] {
        let arriving: [(f64, f64); L] = std::array::from_fn(|l| self.arriving(l, t, past));
        std::array::from_fn(|v| {
            if v < L {
                let over = arriving[v].0 - self.paths.capacities[v];
                return if mode.queues[v] == Queue::Free { over } else { 0.0 };
            }
            let l = v - L;
            // Nobody hears a link without flows.
            if mode.held[l] || self.rtts[l] <= 0.0 { 0.0 } else { x[v] * self.growth(l, x[l], arriving[l]) }
        })
    }

    #[inline]
    fn guard(&self, mode: Modes<L>, t: f64, x: &[f64; V], past: &Past<V>) -> f64 {
        let of = |l: usize| self.guards(l, mode, x, self.arriving(l, t, past));
        (0..L).flat_map(of).fold(f64::INFINITY, f64::min)
    }

    fn switch(&self, mut mode: Modes<L>, t: f64, x: &mut [f64; V], past: &Past<V>) -> Modes<L> {
        let arriving: [(f64, f64); L] = std::array::from_fn(|l| self.arriving(l, t, past));
        let capacities = &self.paths.capacities;
        let guards: [[f64; 2]; L] = std::array::from_fn(|l| self.guards(l, mode, x, arriving[l]));
        let least = guards.iter().flatten().copied().fold(f64::INFINITY, f64::min).max(0.0);
        for (l, [queue, rate]) in guards.into_iter().enumerate() {
            if queue <= least {
                let was = std::mem::replace(&mut mode.queues[l], Queue::Free);
                let over = arriving[l].0 - capacities[l];
                // It has reached the nearer of its two borders.
                if was == Queue::Free && x[l] > 0.5 * self.buffers[l] {
                    x[l] = self.buffers[l];
                    mode.queues[l] = if over >= 0.0 { Queue::Full } else { Queue::Free };
                } else if was == Queue::Free {
                    x[l] = 0.0;
                    mode.queues[l] = if over <= 0.0 { Queue::Empty } else { Queue::Free };
                }
            }
            if rate <= least {
                if mode.held[l] {
                    mode.held[l] = false;
                } else {
                    x[L + l] = capacities[l];
                    mode.held[l] = self.growth(l, x[l], arriving[l]) >= 0.0;
                }
            }
        }
        mode
    }
}

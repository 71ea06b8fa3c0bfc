//! Solves laws with given gains on one link after a disturbance, with flows of one RTT or of several: whether and when they settle.
//!
//! The solvers are generic in the size of a state. This module instantiates the sizes in use, so that they are compiled once, with
//! this crate's optimisation.

use super::delay::{Solution, System, Trouble};
use super::models::{Rcp, Switched};
use super::network::{self, Paths, Xcp};
use super::region::{Fate, Patience, fate};
use super::routes::{self, Group, Routes, STEP};

/// Distance from equilibrium: 1 where the rate is off by 2% or the queue by 1% (Dukkipati 2007, section 5.4).
fn distance(x: &[f64; 2], rest: f64) -> f64 {
    ((x[0] - rest).abs() / 0.02).max(x[1].abs() / 0.01)
}

/// The equations of flows of one RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// [`Rcp`].
    Rcp {
        /// The highest rate over the equilibrium's.
        most: f64,
        /// Buffer in bandwidth-delay products.
        buffer: f64,
    },
    /// [`Switched`].
    Switched,
    /// [`Switched`] without a floor: the queue may be negative.
    Linear,
}

/// A model and its start: the rate over the equilibrium's less one, and the queue in bandwidth-delay products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Which equations.
    pub model: Model,
    /// The initial rate and queue.
    pub start: [f64; 2],
}

impl Setting {
    /// The outcome. A solution that switches too often to be resolved counts as not settled.
    #[must_use]
    pub fn fate(&self, alpha: f64, beta: f64, patience: &Patience) -> Fate {
        let [rate, queue] = self.start;
        let found = match self.model {
            Model::Rcp { most, buffer } => {
                let model = Rcp { alpha, beta, most, buffer, queue_in_rtt: true };
                fate(model, [1.0 + rate, queue], STEP, patience, |x| distance(x, 1.0))
            }
            Model::Switched | Model::Linear => {
                let floor = self.model == Model::Switched;
                let model = Switched { alpha, beta, floor, error: 0.0 };
                fate(model, self.start, STEP, patience, |x| distance(x, 0.0))
            }
        };
        found.unwrap_or(Fate::Oscillates)
    }

    /// Rate and queue, as in the start, at ascending times; `error` is [`Switched::error`].
    ///
    /// # Errors
    ///
    /// [`Trouble`] of the solver.
    pub fn states(&self, alpha: f64, beta: f64, error: f64, times: &[f64]) -> Result<Vec<[f64; 2]>, Trouble> {
        let [rate, queue] = self.start;
        match self.model {
            Model::Rcp { most, buffer } => {
                let model = Rcp { alpha, beta, most, buffer, queue_in_rtt: true };
                let mut found = states(model, [1.0 + rate, queue], STEP, times)?;
                found.iter_mut().for_each(|x| x[0] -= 1.0);
                Ok(found)
            }
            Model::Switched | Model::Linear => {
                let floor = self.model == Model::Switched;
                states(Switched { alpha, beta, floor, error }, self.start, STEP, times)
            }
        }
    }
}

/// The states at ascending times.
fn states<const N: usize, S: System<N>>(
    system: S,
    start: [f64; N],
    step: f64,
    times: &[f64],
) -> Result<Vec<[f64; N]>, Trouble> {
    Solution::new(system, start, step)?.sampled(times)
}

/// One link and flows of one RTT under RCP in the thesis's own units (Dukkipati 2007, equations 5.1 to 5.4). It tests the thesis's claim that
/// capacity, delay and number of flows do not matter; in [`Rcp`]'s units they cannot. Starts and states are R over C and the queue in
/// bandwidth-delay products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpLink {
    /// Gain on spare capacity.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// C, in bit/s.
    pub capacity: f64,
    /// d0, in seconds.
    pub rtt: f64,
    /// N, the number of flows.
    pub flows: f64,
    /// Buffer in bandwidth-delay products; infinite in the thesis's equations.
    pub buffer: f64,
}

impl RcpLink {
    fn model(&self) -> network::Rcp<1, 1, 2> {
        let paths = Paths {
            capacities: [self.capacity],
            flows: [self.flows],
            rtts: [self.rtt],
            passes: [[Some(0.0)]],
        };
        network::Rcp::new(self.alpha, self.beta, paths)
            .expect("a capacity, an RTT and flows above 0")
            .with_buffers([self.buffer * self.capacity * self.rtt])
    }

    fn start(&self, [rate, queue]: [f64; 2]) -> [f64; 2] {
        [queue.min(self.buffer) * self.capacity * self.rtt, rate.min(1.0) * self.capacity]
    }

    /// The outcome of a start. Times in `patience` and in the result are round trips. At distance 1 the rate is off by 2% or the queue by 1%
    /// of a bandwidth-delay product (section 5.4). A solution that switches too often to be resolved counts as not settled.
    #[must_use]
    pub fn fate(&self, start: [f64; 2], patience: &Patience) -> Fate {
        let rest = self.capacity / self.flows;
        let far = |x: &[f64; 2]| distance(&[x[1] / rest, x[0] / (self.capacity * self.rtt)], 1.0);
        let seconds =
            Patience { hold: patience.hold * self.rtt, most: patience.most * self.rtt, ..*patience };
        match fate(self.model(), self.start(start), self.rtt * STEP, &seconds, far) {
            Ok(Fate::Settles { after }) => Fate::Settles { after: after / self.rtt },
            _ => Fate::Oscillates,
        }
    }

    /// The states at ascending times in seconds.
    ///
    /// # Errors
    ///
    /// [`Trouble`] of the solver.
    pub fn states(&self, start: [f64; 2], times: &[f64]) -> Result<Vec<[f64; 2]>, Trouble> {
        let found = states(self.model(), self.start(start), self.rtt * STEP, times)?;
        Ok(found.into_iter().map(|[q, r]| [r / self.capacity, q / (self.capacity * self.rtt)]).collect())
    }
}

/// VCP's MIAIMD model with the window of each flow (Xia 2008, equations 9 to 15), all of one RTT: a row for each of the ascending `times`,
/// in round trips. `alpha` is what a flow adds in a round trip, in packets. A link is the packets it carries in a round trip at its
/// target, and the flows that cross it. If routers adjust their target ([`routes::FluidLaw::Vcp`], in round trips), a row also has the
/// adjusted target of each link, over the wanted one, after the windows.
///
/// # Errors
///
/// As [`Routes::new`] and [`Routes::rows`].
pub fn windows(
    kappa: f64,
    alpha: f64,
    start: &[f64],
    links: &[(f64, Vec<usize>)],
    adjusts: Option<(f64, f64)>,
    times: &[f64],
) -> Result<Vec<f64>, String> {
    let crossed = |flow: usize| {
        let over = links.iter().enumerate().filter(|(_, (_, flows))| flows.contains(&flow));
        over.map(|(link, _)| (link, 0.0)).collect()
    };
    let flows: Vec<Group> =
        (0..start.len()).map(|flow| Group { over: crossed(flow), rtt: 1.0, flows: 1.0 }).collect();
    let capacities: Vec<f64> = links.iter().map(|(capacity, _)| *capacity).collect();
    let law = routes::FluidLaw::Vcp { kappa, addition: alpha, target: 1.0, t_rho: 1.0, adjusts };
    Routes::new(&capacities, &flows)?.rows(law, start, times)
}

/// One link that groups of flows of several RTTs share. Its capacity is 1, and the flows' mean RTT is the unit of time.
#[derive(Clone, Debug)]
pub struct Shared {
    law: SharedLaw,
    rtts: Vec<f64>,
    flows: Vec<f64>,
    /// Traffic over the capacity less one, and the queue. All flows start with the same rate.
    start: [f64; 2],
    step: f64,
}

/// The law of the routers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SharedLaw {
    /// XCP, with the share of the traffic that is shuffled in a mean RTT.
    Xcp(f64),
    /// RCP.
    Rcp,
}

/// Maximum number of groups of different RTTs.
const MOST_GROUPS: usize = 32;
/// Maximum ratio of the longest RTT to the shortest: steps are no longer than the shortest, and the past covers the longest.
const MOST_APART: f64 = 1000.0;

/// Calls a generic function with the number of groups, and the size of XCP's state, as its constants.
macro_rules! with_room {
    ($groups:expr, $self:ident.$call:ident($($argument:expr),*)) => {
        match $groups {
            0..=2 => $self.$call::<2, 3>($($argument),*),
            3..=4 => $self.$call::<4, 5>($($argument),*),
            5..=8 => $self.$call::<8, 9>($($argument),*),
            9..=16 => $self.$call::<16, 17>($($argument),*),
            _ => $self.$call::<32, 33>($($argument),*),
        }
    };
}

impl Shared {
    /// Creates the system from the RTTs of the groups, in any unit of time, and their numbers of flows.
    ///
    /// # Errors
    ///
    /// A message for the user that names what is out of range.
    pub fn new(law: SharedLaw, rtts: &[f64], flows: &[f64], start: [f64; 2]) -> Result<Self, String> {
        let good = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
        if rtts.is_empty() || rtts.len() > MOST_GROUPS {
            return Err(format!("rtt has {} values; it must have 1 to {MOST_GROUPS}", rtts.len()));
        }
        if rtts.len() != flows.len() {
            let told =
                format!("flows has {} values; it must have {}, as many as rtt", flows.len(), rtts.len());
            return Err(told);
        }
        if !good(rtts) || !good(flows) {
            return Err("rtt and flows must be above 0".to_owned());
        }
        let shortest = rtts.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = rtts.iter().copied().fold(0.0, f64::max);
        if longest > MOST_APART * shortest {
            return Err(format!(
                "rtt is from {shortest} s to {longest} s; the longest must be at most {MOST_APART} times the shortest"
            ));
        }
        let count: f64 = flows.iter().sum();
        let mean = rtts.iter().zip(flows).map(|(rtt, n)| rtt * n).sum::<f64>() / count;
        let rtts: Vec<f64> = rtts.iter().map(|rtt| rtt / mean).collect();
        let step = STEP.min(shortest / mean);
        Ok(Self { law, rtts, flows: flows.to_vec(), start, step })
    }

    fn paths<const G: usize>(&self) -> Paths<1, G> {
        let of = |values: &[f64]| std::array::from_fn(|i| values.get(i).copied().unwrap_or(0.0));
        Paths::shared(of(&self.flows), of(&self.rtts))
    }

    /// The rate of one flow if all send alike and `traffic` together.
    fn each(&self, traffic: f64) -> f64 {
        traffic / self.flows.iter().sum::<f64>()
    }

    fn xcp<const G: usize, const V: usize>(
        &self,
        alpha: f64,
        beta: f64,
        shuffle: f64,
    ) -> (Xcp<1, G, V>, [f64; V]) {
        let model = Xcp::new(alpha, beta, shuffle, self.paths()).expect("groups with flows and RTTs");
        let rate = self.each(1.0 + self.start[0]);
        let start = std::array::from_fn(|v| match v.checked_sub(1) {
            None => self.start[1],
            Some(group) if group < self.flows.len() => rate,
            Some(_) => 0.0,
        });
        (model, start)
    }

    fn rcp<const G: usize>(&self, alpha: f64, beta: f64) -> (network::Rcp<1, G, 2>, [f64; 2]) {
        let model = network::Rcp::new(alpha, beta, self.paths()).expect("groups with flows and RTTs");
        (model, [self.start[1], self.each(1.0 + self.start[0]).min(1.0)])
    }

    /// Total traffic of flows that send at these rates.
    fn traffic(&self, rates: &[f64]) -> f64 {
        rates.iter().zip(&self.flows).map(|(rate, n)| rate * n).sum()
    }

    fn fate_of<const G: usize, const V: usize>(&self, alpha: f64, beta: f64, patience: &Patience) -> Fate {
        let found = match self.law {
            SharedLaw::Xcp(shuffle) => {
                let (model, start) = self.xcp::<G, V>(alpha, beta, shuffle);
                fate(model, start, self.step, patience, |x| distance(&[self.traffic(&x[1..]), x[0]], 1.0))
            }
            SharedLaw::Rcp => {
                let (model, start) = self.rcp::<G>(alpha, beta);
                let even = self.each(1.0);
                fate(model, start, self.step, patience, |x| distance(&[x[1] / even, x[0]], 1.0))
            }
        };
        found.unwrap_or(Fate::Oscillates)
    }

    /// The outcome, as [`Setting::fate`].
    #[must_use]
    pub fn fate(&self, alpha: f64, beta: f64, patience: &Patience) -> Fate {
        with_room!(self.flows.len(), self.fate_of(alpha, beta, patience))
    }

    fn rows_of<const G: usize, const V: usize>(
        &self,
        alpha: f64,
        beta: f64,
        times: &[f64],
    ) -> Result<Vec<f64>, Trouble> {
        let even = self.each(1.0);
        let mut rows = Vec::with_capacity(times.len() * (2 + self.flows.len()));
        match self.law {
            SharedLaw::Xcp(shuffle) => {
                let (model, start) = self.xcp::<G, V>(alpha, beta, shuffle);
                for x in states(model, start, self.step, times)? {
                    rows.extend([self.traffic(&x[1..]) - 1.0, x[0]]);
                    rows.extend(x[1..=self.flows.len()].iter().map(|rate| rate / even));
                }
            }
            SharedLaw::Rcp => {
                let (model, start) = self.rcp::<G>(alpha, beta);
                for [queue, rate] in states(model, start, self.step, times)? {
                    rows.extend([rate / even - 1.0, queue]);
                    rows.extend(self.flows.iter().map(|_| rate / even));
                }
            }
        }
        Ok(rows)
    }

    /// A row for each time, in mean RTTs: traffic over the capacity less one, the queue, and the rate of one flow of each group over its fair share.
    ///
    /// # Errors
    ///
    /// [`Trouble`] of the solver.
    pub fn rows(&self, alpha: f64, beta: f64, times: &[f64]) -> Result<Vec<f64>, Trouble> {
        with_room!(self.flows.len(), self.rows_of(alpha, beta, times))
    }
}

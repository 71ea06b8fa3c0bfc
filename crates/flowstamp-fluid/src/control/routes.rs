//! What a user asks of [`super::network`]: links, and groups of flows over some of them, however many there are.
//!
//! Models are generic in the numbers of links and groups; here are the sizes that they are compiled for.

use super::delay::{Solution, System};
use super::network::{Adjusting, Paths, Rcp, Vcp, Xcp};
use super::settle::STEP;

/// As many links.
pub const MOST_LINKS: usize = 8;
/// As many groups of flows.
pub const MOST_GROUPS: usize = 16;
/// As many steps in the longest delay: the past is kept for so long.
const MOST_STEPS: f64 = 100_000.0;

/// Flows that take one way.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Numbers of the links, each with how long after they were sent data pass it.
    pub over: Vec<(usize, f64)>,
    /// Propagation alone.
    pub rtt: f64,
    /// How many.
    pub flows: f64,
}

/// Whose routers and senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Gains, and the share of the traffic that is shuffled.
    Xcp {
        /// On spare capacity.
        alpha: f64,
        /// On the queue.
        beta: f64,
        /// Shuffled in a mean RTT.
        gamma: f64,
    },
    /// Gains.
    Rcp {
        /// On spare capacity.
        alpha: f64,
        /// On the queue.
        beta: f64,
    },
    /// The MIAIMD model, without queues.
    Vcp {
        /// Of multiplicative increase.
        kappa: f64,
        /// What a flow adds in `t_rho`: a window.
        addition: f64,
        /// Share of the capacity.
        target: f64,
        /// The interval to which senders scale.
        t_rho: f64,
        /// Routers adjust what they take for the target (equation 14): by how much at a time, and after how long; none leaves it.
        adjusts: Option<(f64, f64)>,
    },
}

/// Links and the flows over them. Units are any that go together.
#[derive(Clone, Debug)]
pub struct Routes {
    capacities: Vec<f64>,
    groups: Vec<Group>,
}

/// Calls a function that has the room as its constants: links, groups, and the sizes of the states of XCP, RCP and VCP that adjusts.
macro_rules! with_room {
    ($self:ident.$call:ident($($argument:expr),*)) => {
        match ($self.capacities.len(), $self.groups.len()) {
            (0..=2, 0..=4) => $self.$call::<2, 4, 6, 4, 8>($($argument),*),
            (0..=4, 0..=8) => $self.$call::<4, 8, 12, 8, 16>($($argument),*),
            _ => $self.$call::<8, 16, 24, 16, 32>($($argument),*),
        }
    };
}

impl Routes {
    /// Of links with these capacities.
    ///
    /// # Errors
    ///
    /// What is wrong with them, in the words of a user.
    pub fn new(capacities: &[f64], groups: &[Group]) -> Result<Self, String> {
        for (count, most, of) in
            [(capacities.len(), MOST_LINKS, "links"), (groups.len(), MOST_GROUPS, "routes")]
        {
            if !(1..=most).contains(&count) {
                return Err(format!("{count} {of}; there must be 1 to {most}"));
            }
        }
        for group in groups {
            if let Some((link, _)) = group.over.iter().find(|(link, _)| *link >= capacities.len()) {
                return Err(format!("a route has link {link}; there are {}, from 0 on", capacities.len()));
            }
        }
        let routes = Self { capacities: capacities.to_vec(), groups: groups.to_vec() };
        let sound = routes.paths::<MOST_LINKS, MOST_GROUPS>().checked().is_some()
            && groups.iter().all(|group| group.flows > 0.0);
        if !sound {
            return Err("capacities, RTTs and flows must be above 0, and each route has links that its data pass from 0 on and before the RTT is over".to_owned());
        }
        Ok(routes)
    }

    fn paths<const L: usize, const G: usize>(&self) -> Paths<L, G> {
        let group = |i: usize| self.groups.get(i);
        let passes =
            |i: usize, l: usize| group(i)?.over.iter().find(|(link, _)| *link == l).map(|(_, after)| *after);
        Paths {
            capacities: std::array::from_fn(|l| self.capacities.get(l).copied().unwrap_or(1.0)),
            flows: std::array::from_fn(|i| group(i).map_or(0.0, |group| group.flows)),
            rtts: std::array::from_fn(|i| group(i).map_or(1.0, |group| group.rtt)),
            passes: std::array::from_fn(|i| std::array::from_fn(|l| passes(i, l))),
        }
    }

    /// Max-min fair rates of a flow of each group.
    #[must_use]
    pub fn max_min(&self) -> Vec<f64> {
        let rates = self.paths::<MOST_LINKS, MOST_GROUPS>().max_min();
        rates[..self.groups.len()].to_vec()
    }

    /// At times that only grow a row: queues by link, which the model of VCP does not have, the rate of a flow of each group, and of VCP that adjusts
    /// by link what routers take for their target. Flows start with `rates`; routers of RCP with the highest of them over their link, its capacity at the most.
    ///
    /// # Errors
    ///
    /// What the model has no room for, or [`super::delay::Trouble`] of the solver.
    pub fn rows(&self, law: Law, rates: &[f64], times: &[f64]) -> Result<Vec<f64>, String> {
        if rates.len() != self.groups.len() {
            return Err(format!("{} rates to start with; there must be {}", rates.len(), self.groups.len()));
        }
        with_room!(self.rows_of(law, rates, times))
    }

    fn rows_of<const L: usize, const G: usize, const X: usize, const R: usize, const A: usize>(
        &self,
        law: Law,
        rates: &[f64],
        times: &[f64],
    ) -> Result<Vec<f64>, String> {
        let (links, groups) = (self.capacities.len(), self.groups.len());
        let paths = self.paths::<L, G>();
        let none = || "what is no network".to_owned();
        let rate = |i: usize| rates.get(i).copied().unwrap_or(0.0);
        let mut rows = Vec::with_capacity(times.len() * (links + groups));
        match law {
            Law::Xcp { alpha, beta, gamma } => {
                let model = Xcp::<L, G, X>::new(alpha, beta, gamma, paths).ok_or_else(none)?;
                let start = std::array::from_fn(|v| if v < L { 0.0 } else { rate(v - L) });
                for x in self.sampled(model, start, times)? {
                    rows.extend_from_slice(&x[..links]);
                    rows.extend_from_slice(&x[L..L + groups]);
                }
            }
            Law::Rcp { alpha, beta } => {
                let model = Rcp::<L, G, R>::new(alpha, beta, paths).ok_or_else(none)?;
                let highest = |l: usize| {
                    let over = (0..groups).filter(|i| paths.passes[*i][l].is_some());
                    over.map(rate).fold(0.0, f64::max).min(paths.capacities[l])
                };
                let start = std::array::from_fn(|v| if v < L { 0.0 } else { highest(v - L) });
                for x in self.sampled(model, start, times)? {
                    rows.extend_from_slice(&x[..links]);
                    rows.extend(self.groups.iter().map(|group| {
                        group.over.iter().map(|(link, _)| x[L + link]).fold(f64::INFINITY, f64::min)
                    }));
                }
            }
            Law::Vcp { kappa, addition, target, t_rho, adjusts } => {
                let paths = paths.checked().ok_or_else(none)?;
                let model = Vcp { kappa, addition, target, t_rho, paths };
                if let Some((step, every)) = adjusts {
                    let model = Adjusting::<L, G, A> { vcp: model, step, every };
                    for x in self.sampled(model, model.begin(std::array::from_fn(rate)), times)? {
                        rows.extend_from_slice(&x[..groups]);
                        rows.extend_from_slice(&x[G..G + links]);
                    }
                    return Ok(rows);
                }
                for x in self.sampled(model, std::array::from_fn(rate), times)? {
                    rows.extend_from_slice(&x[..groups]);
                }
            }
        }
        Ok(rows)
    }

    fn sampled<const N: usize, S: System<N>>(
        &self,
        system: S,
        start: [f64; N],
        times: &[f64],
    ) -> Result<Vec<[f64; N]>, String> {
        let flows: f64 = self.groups.iter().map(|group| group.flows).sum();
        let mean = self.groups.iter().map(|group| group.flows * group.rtt).sum::<f64>() / flows;
        let (shortest, longest) = system.delays();
        let step = (STEP * mean).min(shortest);
        if longest > MOST_STEPS * step {
            return Err(format!(
                "delays are from {shortest} to {longest}; the longest must be at most {MOST_STEPS} steps, and a step no longer than the shortest"
            ));
        }
        let told = |trouble: super::delay::Trouble| trouble.to_string();
        Solution::new(system, start, step).map_err(told)?.sampled(times).map_err(told)
    }
}

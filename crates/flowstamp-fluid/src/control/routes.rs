//! Links and groups of flows over some of them, in any number up to a limit, as a user gives them to [`super::network`].
//!
//! The models are generic in the numbers of links and groups. This module compiles them for a few sizes.

use super::delay::{Solution, System};
use super::network::{Paths, Rcp, Xcp};
use super::network_vcp::{Adjusting, Vcp};

/// Step length in round trips. Near the border, where errors add up longest, peaks after 1600 round trips differ by 1e-4 from those
/// with an eighth of this step (`steps_of_a_thirty_second_do`, in the crate's tests).
pub const STEP: f64 = 1.0 / 32.0;
/// Maximum number of links.
pub const MOST_LINKS: usize = 8;
/// Maximum number of groups of flows.
pub const MOST_GROUPS: usize = 16;
/// Maximum number of steps in the longest delay, over which the past is kept.
const MOST_STEPS: f64 = 100_000.0;

/// Flows that take one route.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Links by number, each with the time from sending until packets pass it.
    pub over: Vec<(usize, f64)>,
    /// RTT without queues.
    pub rtt: f64,
    /// Number of flows.
    pub flows: f64,
}

/// The law of routers and senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FluidLaw {
    /// XCP.
    Xcp {
        /// Gain on spare capacity.
        alpha: f64,
        /// Gain on the queue.
        beta: f64,
        /// Share of the traffic that is shuffled in a mean RTT.
        gamma: f64,
    },
    /// RCP.
    Rcp {
        /// Gain on spare capacity.
        alpha: f64,
        /// Gain on the queue.
        beta: f64,
    },
    /// VCP's MIAIMD model, which has no queues.
    Vcp {
        /// Stability coefficient of the multiplicative increase.
        kappa: f64,
        /// Window that a flow adds in `t_rho`.
        addition: f64,
        /// Target utilisation, as a share of the capacity.
        target: f64,
        /// Interval to which senders scale.
        t_rho: f64,
        /// `(step, interval)` by which routers adjust their target (equation 14); `None` keeps it fixed.
        adjusts: Option<(f64, f64)>,
    },
}

/// Links and the flows over them, in any consistent units.
#[derive(Clone, Debug)]
pub struct Routes {
    capacities: Vec<f64>,
    groups: Vec<Group>,
}

/// Calls a generic function with the sizes as its constants: links, groups, and the state sizes of XCP, RCP and adjusting VCP.
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
    /// Creates the network from the links' capacities and the groups of flows.
    ///
    /// # Errors
    ///
    /// A message for the user that names what is out of range.
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

    /// Max-min fair rates of one flow of each group.
    #[must_use]
    pub fn max_min(&self) -> Vec<f64> {
        let rates = self.paths::<MOST_LINKS, MOST_GROUPS>().max_min();
        rates[..self.groups.len()].to_vec()
    }

    /// A row for each of the ascending `times`: queues by link (not for VCP, whose model has none), then the rate of one flow of each
    /// group, then for adjusting VCP each link's target. Flows start with `rates`. RCP's routers start with the highest of these over
    /// their link, at most its capacity.
    ///
    /// # Errors
    ///
    /// Rates that do not match the groups, delays beyond the limit, or [`super::delay::Trouble`] of the solver.
    pub fn rows(&self, law: FluidLaw, rates: &[f64], times: &[f64]) -> Result<Vec<f64>, String> {
        if rates.len() != self.groups.len() {
            return Err(format!("{} rates to start with; there must be {}", rates.len(), self.groups.len()));
        }
        with_room!(self.rows_of(law, rates, times))
    }

    fn rows_of<const L: usize, const G: usize, const X: usize, const R: usize, const A: usize>(
        &self,
        law: FluidLaw,
        rates: &[f64],
        times: &[f64],
    ) -> Result<Vec<f64>, String> {
        let (links, groups) = (self.capacities.len(), self.groups.len());
        let paths = self.paths::<L, G>();
        let none = || "what is no network".to_owned();
        let rate = |i: usize| rates.get(i).copied().unwrap_or(0.0);
        let mut rows = Vec::with_capacity(times.len() * (links + groups));
        match law {
            FluidLaw::Xcp { alpha, beta, gamma } => {
                let model = Xcp::<L, G, X>::new(alpha, beta, gamma, paths).ok_or_else(none)?;
                let start = std::array::from_fn(|v| if v < L { 0.0 } else { rate(v - L) });
                for x in self.sampled(model, start, times)? {
                    rows.extend_from_slice(&x[..links]);
                    rows.extend_from_slice(&x[L..L + groups]);
                }
            }
            FluidLaw::Rcp { alpha, beta } => {
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
            FluidLaw::Vcp { kappa, addition, target, t_rho, adjusts } => {
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

//! VCP on several links, with groups of flows of several routes and RTTs; units and paths are those of [`network`](super::network).

use super::delay::{Past, System};
use super::network::Paths;
use flowstamp_laws::vcp;

/// VCP's MIAIMD model (Xia 2008, equations 9 to 11 and 15), scaled for RTTs other than `t_rho` (section III-D, equations 6 and 8).
///
/// ```text
///   r_i' = r_i ((1 + xi)^(d_i / t_rho) - 1) / d_i + a / t_rho^2        xi = kappa (1 / rho - 1),  d_i later
///   rho  = the highest load of the route, y / (gamma C)
/// ```
///
/// `a` is the additive increase, in units of rate times time. With one link and all RTTs equal to `t_rho` this is
/// [`super::models::Miaimd`]. The senders decrease as in the model, which knows the load exactly; they do not have VCP's fixed cut.
///
/// Variables are the rates of one flow of each group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vcp<const L: usize, const G: usize> {
    /// Stability coefficient of the multiplicative increase. If RTTs differ from `t_rho` it must be below 1, so that even an unbounded
    /// load leaves part of a rate.
    pub kappa: f64,
    /// Window that a flow adds in `t_rho`.
    pub addition: f64,
    /// Target utilisation.
    pub target: f64,
    /// Interval over which routers measure their load.
    pub t_rho: f64,
    /// Capacities, routes and delays.
    pub paths: Paths<L, G>,
}

impl<const L: usize, const G: usize> Vcp<L, G> {
    /// The growth per round trip of a rate under a load: `xi_s` of equation 6.
    #[must_use]
    pub fn multiplies_by(&self, load: f64, rtt: f64) -> f64 {
        let xi = vcp::growth(self.kappa, load);
        if rtt == self.t_rho { xi } else { vcp::scaled_growth(libm::log1p(xi), rtt / self.t_rho) }
    }

    /// Window that a flow adds in a round trip: `alpha_s` of equation 8.
    #[must_use]
    pub fn adds(&self, rtt: f64) -> f64 {
        vcp::exact::addition(self.addition, rtt / self.t_rho)
    }

    /// Arrival rate at a link at `t`, for a state `x` whose first variables are the rates.
    fn arriving<const V: usize>(&self, link: usize, t: f64, x: &[f64; V], past: &Past<V>) -> f64 {
        self.paths
            .over(link)
            .map(|(i, after)| self.paths.flows[i] * if after > 0.0 { past.at(t - after)[i] } else { x[i] })
            .sum()
    }

    /// The slope of the rate of a flow of a group. `target` returns a link's target utilisation in the state that the flow hears.
    #[inline]
    fn rate_slope<const V: usize>(
        &self,
        group: usize,
        t: f64,
        x: &[f64; V],
        past: &Past<V>,
        target: impl Fn(usize, &[f64; V]) -> f64,
    ) -> f64 {
        if self.paths.flows[group] <= 0.0 {
            return 0.0;
        }
        let rtt = self.paths.rtts[group];
        let loads = self.paths.route(group).map(|(l, after)| {
            let from = t - (rtt - after);
            let then = past.at(from);
            self.arriving(l, from, &then, past) / (target(l, &then) * self.paths.capacities[l])
        });
        let load = loads.fold(0.0, f64::max);
        (x[group] * self.multiplies_by(load, rtt) + self.adds(rtt) / rtt) / rtt
    }
}

impl<const L: usize, const G: usize> System<G> for Vcp<L, G> {
    type Mode = ();

    fn delays(&self) -> (f64, f64) {
        self.paths.delays()
    }

    fn mode(&self, _: f64, _: &[f64; G], _: &Past<G>) {}

    fn slope(&self, (): (), t: f64, x: &[f64; G], past: &Past<G>) -> [f64; G] {
        std::array::from_fn(|i| self.rate_slope(i, t, x, past, |_, _| self.target))
    }

    fn guard(&self, (): (), _: f64, _: &[f64; G], _: &Past<G>) -> f64 {
        1.0
    }

    fn switch(&self, (): (), _: f64, _: &mut [f64; G], _: &Past<G>) {}
}

/// [`Vcp`] whose routers adjust their target so that the utilisation reaches the wanted one (equation 14).
///
/// ```text
///   gamma <- gamma + step sgn(U* - U)     after each `every`,  U = mean of y / C since the last time,  U* = the model's target
/// ```
///
/// Each router starts with `gamma = U*` and changes it by [`exact::adjusted`]. Senders hear a load relative to the `gamma` of the time
/// at which it was measured.
///
/// Variables are the rates of one flow of each group, then by link `gamma`, then by link the arrivals since the last adjustment: `V` is `G + 2 L`.
///
/// [`exact::adjusted`]: vcp::exact::adjusted
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusting<const L: usize, const G: usize, const V: usize> {
    /// The model, with the target `U*`.
    pub vcp: Vcp<L, G>,
    /// Change of `gamma` per adjustment.
    pub step: f64,
    /// Time between adjustments; much longer than an RTT.
    pub every: f64,
}

impl<const L: usize, const G: usize, const V: usize> Adjusting<L, G, V> {
    /// The initial state with these rates, before any adjustment.
    #[must_use]
    pub fn begin(&self, rates: [f64; G]) -> [f64; V] {
        const { assert!(V == G + 2 * L, "a rate for each group, a target and a sum for each link") };
        std::array::from_fn(|v| match v {
            v if v < G => rates[v],
            v if v < G + L => self.vcp.target,
            _ => 0.0,
        })
    }
}

impl<const L: usize, const G: usize, const V: usize> System<V> for Adjusting<L, G, V> {
    /// Number of adjustments so far.
    type Mode = u32;

    fn delays(&self) -> (f64, f64) {
        self.vcp.paths.delays()
    }

    fn mode(&self, _: f64, _: &[f64; V], _: &Past<V>) -> u32 {
        0
    }

    #[inline]
    fn slope(&self, _: u32, t: f64, x: &[f64; V], past: &Past<V>) -> [f64; V] {
        std::array::from_fn(|v| match v {
            v if v < G => self.vcp.rate_slope(v, t, x, past, |l, then| then[G + l]),
            v if v < G + L => 0.0,
            _ => self.vcp.arriving(v - G - L, t, x, past),
        })
    }

    fn guard(&self, times: u32, t: f64, _: &[f64; V], _: &Past<V>) -> f64 {
        f64::from(times + 1) * self.every - t
    }

    fn switch(&self, times: u32, _: f64, x: &mut [f64; V], _: &Past<V>) -> u32 {
        let target = self.vcp.target;
        for (l, capacity) in self.vcp.paths.capacities.iter().enumerate() {
            let wanted = target * capacity * self.every;
            x[G + l] = vcp::exact::adjusted(x[G + l], x[G + L + l], wanted, self.step, target);
            x[G + L + l] = 0.0;
        }
        times + 1
    }
}

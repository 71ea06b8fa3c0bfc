//! VCP's MIAIMD model with the window of each flow, over one link or several (Xia 2008, equations 9 to 15).
//!
//! ```text
//!   w_i'  = kappa w_i (1 / rho_i - 1) + alpha                        time in RTTs, windows in packets
//!   rho_i = max over the links of flow i of sum_j w_j(t - 1) / c_l   c_l = gamma C_l T, packets
//! ```
//!
//! With one link the sum of windows is [`super::models::Miaimd`].

use super::delay::{Past, System};

/// `N` flows of one RTT.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows<const N: usize> {
    /// Stability coefficient of the multiplicative increase.
    pub kappa: f64,
    /// Packets that a flow adds in an RTT.
    pub alpha: f64,
    /// Of each link the packets that it carries in an RTT at its target, and the flows that cross it.
    pub links: Vec<(f64, [bool; N])>,
}

impl<const N: usize> System<N> for Windows<N> {
    type Mode = ();

    fn delays(&self) -> (f64, f64) {
        (1.0, 1.0)
    }

    fn mode(&self, _: f64, _: &[f64; N], _: &Past<N>) {}

    fn slope(&self, (): (), t: f64, x: &[f64; N], past: &Past<N>) -> [f64; N] {
        let then = past.at(t - 1.0);
        let mut load = [0.0f64; N];
        for (capacity, crossed) in &self.links {
            let sum: f64 = (0..N).filter(|i| crossed[*i]).map(|i| then[i]).sum();
            (0..N).filter(|i| crossed[*i]).for_each(|i| load[i] = load[i].max(sum / capacity));
        }
        std::array::from_fn(|i| self.kappa * x[i] * (1.0 / load[i] - 1.0) + self.alpha)
    }

    fn guard(&self, (): (), _: f64, _: &[f64; N], _: &Past<N>) -> f64 {
        1.0
    }

    fn switch(&self, (): (), _: f64, _: &mut [f64; N], _: &Past<N>) {}
}

//! Strict priority between the classes of a link.
//!
//! Whenever the link is free, the first packet of the lowest-numbered class that has one is next. A transmission is not
//! interrupted. For Poisson arrivals of classes `1..n` with loads `rho_i` the mean wait of class `k` is (Cobham 1954)
//!
//! ```text
//!   W_k = W_0 / ((1 - sum_{i<k} rho_i) (1 - sum_{i<=k} rho_i))      W_0 = sum_i lambda_i E[S_i^2] / 2
//! ```
//!
//! A class gets nothing while those before it fill the link.

/// The rule, which has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority;

impl Priority {
    /// The class whose first packet is next, of those whose sizes `heads` has.
    #[must_use]
    pub fn pick(self, heads: &[Option<u32>]) -> Option<usize> {
        heads.iter().position(Option::is_some)
    }
}

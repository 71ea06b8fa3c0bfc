//! Strict priority between the classes of a link.
//!
//! Whenever the link is free, it sends the first packet of the lowest-numbered class that has one. A transmission is
//! never interrupted. For Poisson arrivals of classes `1..n` with loads `rho_i` the mean wait of class `k` is (Cobham
//! 1954)
//!
//! ```text
//!   W_k = W_0 / ((1 - sum_{i<k} rho_i) (1 - sum_{i<=k} rho_i))      W_0 = sum_i lambda_i E[S_i^2] / 2
//! ```
//!
//! A class gets nothing while lower-numbered classes fill the link.

/// The scheduler, which has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority;

impl Priority {
    /// The class whose first packet is sent next. `heads` has the size of each class's first packet.
    #[must_use]
    pub fn pick(self, heads: &[Option<u32>]) -> Option<usize> {
        heads.iter().position(Option::is_some)
    }
}

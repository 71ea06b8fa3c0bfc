//! Distributions of sizes, for transfers that arrive at random and for applications.

use flowstamp_laws::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Sizes of transfers, in bytes of payload; a transfer has at least one packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum Sizes {
    /// One size for all.
    Fixed {
        /// The size.
        size: Bytes,
    },
    /// Uniform from `min` to `max`.
    Uniform {
        /// The smallest size.
        min: Bytes,
        /// The largest size.
        max: Bytes,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Bytes,
    },
    /// Pareto: heavy-tailed, as web transfers are.
    Pareto {
        /// The mean.
        mean: Bytes,
        /// Exponent of the tail, above 1; the mean diverges at 1.
        shape: f64,
    },
    /// A measured distribution: a file of lines `bytes percent`, a cumulative distribution that ends at 100.
    Empirical {
        /// The file, relative to the scenario's folder.
        file: PathBuf,
    },
}

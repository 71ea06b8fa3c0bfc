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
    /// Web search in a data centre: a fit to the sizes of DCTCP's paper (Alizadeh 2010), up to 30 MB. The mean is
    /// 1.70 MB.
    WebSearch,
    /// Hadoop in a data centre: a fit to the sizes that Facebook measured (Roy 2015), up to 10 MB. The mean is 120 kB.
    Hadoop,
    /// Storage in a data centre: a fit to the sizes that Alibaba measured (the file of HPCC's simulator, 2019), up to
    /// 2 MB. The mean is 40.9 kB.
    Storage,
}

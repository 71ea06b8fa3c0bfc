//! How a router law shares its link with traffic that it does not stamp.
//!
//! Two classes meet at the link: packets of the router's own protocol, and all others. [`split::Split`] estimates the
//! number of flows in each class and moves the link's weights until the average flow of both has the same rate. The
//! router law works with its class's part of the capacity. A [`Scheduler`] enforces the weights. Without one, a
//! single queue serves both classes and only the router law keeps to its part ("soft isolation"). Schedulers serve
//! any number of classes, however these are defined.
//!
//! Dukkipati 2007, section 6.2.1; Katabi and Handley 2001, section 4.2; Katabi, Handley, Rohrs 2002, section 8.2; Goyal et
//! al. 2020 ([`demands`]). The module [`police`] handles flows that do not obey (Katabi 2002, section 7).

pub mod demands;
pub mod drr;
pub mod police;
pub mod priority;
pub mod split;
pub mod wfq;
pub mod windows;
pub mod zombies;

use crate::units::{Bytes, Ratio, Time};
use crate::{Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of classes at a link that a router law shares.
pub const CLASSES: usize = 2;
/// The class of the router law's own protocol.
pub const OWN: usize = 0;
/// The class of everything else.
pub const OTHER: usize = 1;

/// The quantity that the classes' weights equalise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Equal rates: the average flows of both classes get the same rate (Dukkipati 2007, section 6.2.1).
    #[default]
    Flows,
    /// Equal windows: the average flows of both classes get the same window (PCP: Katabi and Handley 2001, section
    /// 4.2; XCP: Katabi, Handley, Rohrs 2002, section 8.2). Needs a router law that knows its flows' windows.
    Windows,
    /// Max-min fairness among the largest flows of both classes (Goyal et al. 2020). Long flows of both classes get the
    /// same rate, whatever the number of short ones.
    Demands,
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// The quantity that the weights equalise between the classes.
        pub weights: Weights = Weights::Flows,
        /// Whether the class of the router law's protocol has a drop-tail queue, whatever the link's queue law. Needs a
        /// scheduler with a queue for each class. In the papers the queue of PCP and XCP is drop-tail, and that of TCP is
        /// RED (Katabi and Handley 2001, section 4.2; Katabi, Handley, Rohrs 2002, section 8.2).
        pub own_droptail: bool = false,
        /// Largest change of the weights in one update, 0.001 to 0.999. It is theta of the RCP thesis. With windows, it is
        /// k4 of PCP and kappa of XCP.
        pub theta: Ratio = Ratio::new(0.1), // ours: the thesis says in (0, 1)
        /// Shortest time between two updates, at least 1us. The stability rule may require more. With windows the updates
        /// are one mean RTT apart. Default: 200ms; with windows none, once the mean RTT is known.
        pub min_interval: Option<Time> = None,
        /// Longest time between two updates, at least `min_interval`.
        pub max_interval: Time = Time::from_secs(2), // ours: some 20 round trips of 100 ms
        /// Number of entries in each class's zombie list, by which the law counts flows; 1 to 1000000.
        pub zombies: u32 = 1000, // SRED (Ott, Lakshman, Wong 1999), section 2
        /// Probability that a packet of another flow replaces the zombie-list entry with which it is compared; 0.001 to 1.
        pub overwrite: Ratio = Ratio::new(0.25), // the same
        /// Size of the largest packet; 64B to 65535B. It is the smallest quantum of deficit round robin.
        pub mtu: Bytes = Bytes::new(1500),
    }
}

/// Weights by demands exist. Without `full` they do not, and the compiler leaves out their code.
const OF_DEMANDS: bool = cfg!(feature = "full");

/// Default of the shortest time between two updates. Ours: a few round trips, to count flows in.
const MIN_INTERVAL: Time = Time::from_millis(200);

impl Params {
    /// The shortest time between two updates that follow the number of flows.
    #[must_use]
    pub fn min_interval(&self) -> Time {
        self.min_interval.unwrap_or(MIN_INTERVAL)
    }

    /// Checks the parameters.
    ///
    /// # Errors The first invalid parameter, and a value that would be right.
    pub fn check(&self) -> Result<(), Refused> {
        within("theta", self.theta.get(), 0.001, 0.999)?;
        within("overwrite", self.overwrite.get(), 0.001, 1.0)?;
        within("zombies", f64::from(self.zombies), 1.0, 1e6)?;
        within("mtu", self.mtu.as_f64(), 64.0, 65_535.0)?;
        let usual = Self::default();
        let demands = self.weights == Weights::Demands;
        if demands && !OF_DEMANDS {
            return Err(("weights", "is \"demands\", which this build lacks; use \"flows\"".to_owned()));
        }
        for (key, same) in [
            ("theta", self.theta == usual.theta),
            ("max_interval", self.max_interval == usual.max_interval),
            ("zombies", self.zombies == usual.zombies),
            ("overwrite", self.overwrite == usual.overwrite),
        ] {
            if demands && !same {
                return Err((key, "has no effect with weights = \"demands\"; leave it out".to_owned()));
            }
        }
        let least = self.min_interval();
        if least < Time::from_micros(1) {
            return Err(("min_interval", format!("is {least}; it must be 1us or longer")));
        }
        if !demands && self.max_interval < least {
            return Err((
                "max_interval",
                format!("is {}; it must be at least min_interval, {least}", self.max_interval),
            ));
        }
        Ok(())
    }
}

/// Decides which class sends next.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// Weighted fair queueing.
    Wfq(wfq::Wfq),
    /// Deficit round robin.
    Drr(drr::Drr),
    /// Strict priority: the lower class first.
    Priority(priority::Priority),
}

impl Scheduler {
    /// Notes that a packet of `size` bytes joins the queue of `class`. `weights` has one entry per class.
    pub fn enqueue(&mut self, class: usize, size: u32, weights: &[f64]) {
        if let Self::Wfq(wfq) = self {
            wfq.enqueue(class, size, weights[class]);
        }
    }

    /// The class whose first packet is sent next. `heads` has the size of each class's first packet. `None` if all
    /// queues are empty.
    pub fn pick(&mut self, heads: &[Option<u32>], weights: &[f64]) -> Option<usize> {
        match self {
            Self::Wfq(wfq) => wfq.pick(),
            Self::Drr(drr) => drr.pick(heads, weights),
            Self::Priority(priority) => priority.pick(heads),
        }
    }
}

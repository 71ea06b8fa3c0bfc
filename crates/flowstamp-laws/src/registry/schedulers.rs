//! The list of schedulers, by which a router law shares its link with other traffic. A scheduler is one line of
//! `schedulers!`: its name and its constructor.

use super::spec;
use crate::Refused;
use crate::router::NoParams;
use crate::share::{self, Scheduler, drr, wfq};

macro_rules! schedulers {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $new:expr; )*) => {
        spec! {
            /// How a router law shares its link with other traffic, as a scenario names it.
            ShareSpec, ShareTable, "scheduler", "the name of a scheduler, or a table with `scheduler` and its parameters",
            {
                /// No sharing: the law treats all traffic as its own.
                None "none" NoParams;
                $( $(#[$doc])* $variant $name share::Params; )*
            }
        }

        impl Default for ShareSpec { fn default() -> Self { Self::None(NoParams {}) } }
        impl ShareSpec {
            /// The law's parameters; `None` where the link is not shared.
            #[must_use]
            pub const fn params(&self) -> Option<&share::Params> {
                match self { Self::None(_) => None, $( Self::$variant(p) => Some(p) ),* }
            }
            /// Checks the parameters.
            ///
            /// # Errors The first invalid parameter, and a value that would be right.
            pub fn check(&self) -> Result<(), Refused> { self.params().map_or(Ok(()), share::Params::check) }
            /// Creates the scheduler for `classes` empty queues; `None` where one queue serves all.
            #[must_use]
            pub fn build(&self, classes: usize) -> Option<Scheduler> {
                match self { Self::None(_) => None, $( Self::$variant(p) => $new(p, classes) ),* }
            }
        }
    };
}

schedulers! {
    /// One queue for all traffic; only the router law keeps to its share (soft isolation).
    Fifo "fifo" |_, _| None;
    /// A queue for each class, served by weighted fair queueing.
    Wfq "wfq" |_, classes| Some(Scheduler::Wfq(wfq::Wfq::new(classes)));
    /// A queue for each class, served by deficit round robin.
    Drr "drr" |p: &share::Params, classes| Some(Scheduler::Drr(drr::Drr::new(classes, p.mtu.as_f64())));
}

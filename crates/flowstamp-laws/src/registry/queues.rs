//! Who is dropped, marked or let in. A queue law is one line of `queues!`: its name, its type.

use super::spec;
use crate::Refused;
use crate::queue::{Arrival, QueueLaw, QueueView, Verdict, droptail, red};

macro_rules! queues {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $queue:ty; )*) => {
        spec! {
            /// A queue law and its parameters, as a scenario names them.
            QueueSpec, QueueTable, "kind", "the name of a queue, or a table with `kind` and its parameters",
            { $( $(#[$doc])* $variant $name <$queue as QueueLaw>::Params; )* }
        }

        impl QueueSpec {
            /// Every law with its default parameters, in the order of the registry.
            #[must_use]
            pub fn all() -> Vec<Self> { vec![$( Self::$variant(Default::default()) ),*] }

            /// Whether the parameters make sense; else the parameter, and what would be right.
            ///
            /// # Errors
            /// The first parameter that does not.
            pub fn check(&self) -> Result<(), Refused> {
                match self { $( Self::$variant(p) => <$queue as QueueLaw>::check(p) ),* }
            }

            /// The law for one link.
            #[must_use]
            pub fn build(&self, view: &QueueView) -> AnyQueue {
                match self { $( Self::$variant(p) => AnyQueue::$variant(<$queue as QueueLaw>::new(p, view)) ),* }
            }
        }

        /// A queue law of any kind.
        #[derive(Clone, Debug)]
        pub enum AnyQueue { $( $(#[$doc])* $variant($queue) ),* }
        impl AnyQueue {
            /// [`QueueLaw::on_arrival`].
            #[inline]
            pub fn on_arrival(&mut self, arrival: &Arrival, uniform: impl FnMut() -> f64) -> Verdict {
                match self { $( Self::$variant(l) => l.on_arrival(arrival, uniform) ),* }
            }
            /// [`QueueLaw::variables`].
            pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) { match self { $( Self::$variant(l) => l.variables(report) ),* } }
        }
    };
}

queues! {
    /// First in, first out; what does not fit is lost.
    DropTail "droptail" droptail::DropTail;
    /// Random early detection (Floyd and Jacobson 1993).
    Red "red" red::Red;
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::DropTail(<droptail::DropTail as QueueLaw>::Params::default())
    }
}

//! The list of queue laws, which drop, mark or admit packets. A queue law is one line of `queues!`: its name, its
//! type.

use super::{each, in_this_build, spec};
use crate::Refused;
use crate::queue::{
    self, Arrival, Departure, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict, droptail, fq_codel,
    token_bucket,
};
use crate::router::LinkView;
use crate::units::{Bytes, Rate, Time};

macro_rules! queues {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $queue:ty; )*) => {
        spec! {
            /// A queue law and its parameters, as a scenario names them.
            QueueSpec, QueueTable, "kind", "the name of a queue, or a table with `kind` and its parameters",
            { $( $(#[$doc])* $variant $name <$queue as QueueLaw>::Params; )* }
        }

        impl QueueSpec {
            /// All laws with their default parameters, in the order of the registry.
            #[must_use]
            pub fn all() -> Vec<Self> { vec![$( Self::$variant(Default::default()) ),*] }

            /// Checks the parameters.
            ///
            /// # Errors The first invalid parameter, and a value that would be right.
            pub fn check(&self) -> Result<(), Refused> {
                match self { $( Self::$variant(p) => <$queue as QueueLaw>::check(p) ),* }
            }

            /// [`QueueLaw::HEARS`].
            #[must_use]
            pub const fn hears(&self) -> Hears {
                match self { $( Self::$variant(_) => <$queue as QueueLaw>::HEARS ),* }
            }

            /// [`QueueLaw::time_constant`].
            pub fn time_constant(&mut self) -> Option<TimeConstant<'_>> {
                match self { $( Self::$variant(p) => <$queue as QueueLaw>::time_constant(p) ),* }
            }

            /// [`QueueLaw::two_queues`].
            #[must_use]
            pub fn two_queues(&self) -> Option<[f64; 2]> {
                match self { $( Self::$variant(p) => <$queue as QueueLaw>::two_queues(p) ),* }
            }

            /// [`QueueLaw::smallest_bucket`].
            #[must_use]
            pub fn smallest_bucket(&self) -> Option<(&'static str, Bytes)> {
                match self { $( Self::$variant(p) => <$queue as QueueLaw>::smallest_bucket(p) ),* }
            }

            /// Creates the law for one link.
            #[must_use]
            pub fn build(&self, view: &QueueView) -> AnyQueue {
                match self { $( Self::$variant(p) => AnyQueue::$variant(<$queue as QueueLaw>::new(p, view)) ),* }
            }
        }

        /// A queue law of any kind.
        #[derive(Clone, Debug)]
        pub enum AnyQueue {
            $( $(#[$doc])* $variant($queue), )*
            /// A test's scripted law.
            #[cfg(feature = "scripted")]
            Scripted(Box<super::scripted::Queue>),
        }
        impl AnyQueue {
            /// [`QueueLaw::on_arrival`].
            #[inline(always)] // called once per packet, and small for most laws
            pub fn on_arrival(&mut self, arrival: &Arrival, uniform: impl FnMut() -> f64) -> Verdict {
                each!(self, $($variant)*; l => l.on_arrival(arrival, uniform))
            }
            /// [`QueueLaw::HEARS`].
            #[must_use]
            pub const fn hears(&self) -> Hears {
                match self {
                    $( Self::$variant(_) => <$queue as QueueLaw>::HEARS, )*
                    #[cfg(feature = "scripted")]
                    Self::Scripted(l) => l.hears,
                }
            }
            /// [`QueueLaw::set_capacity`].
            pub fn set_capacity(&mut self, capacity: Rate) { each!(self, $($variant)*; l => l.set_capacity(capacity)) }
            /// [`QueueLaw::set_limit`].
            pub fn set_limit(&mut self, limit: Limit) { each!(self, $($variant)*; l => l.set_limit(limit)) }
            /// [`QueueLaw::label`].
            pub fn label(&mut self, arrival: &Arrival) -> Option<f64> { each!(self, $($variant)*; l => l.label(arrival)) }
            /// [`QueueLaw::on_departure`].
            pub fn on_departure(&mut self, departure: &Departure, uniform: impl FnMut() -> f64) -> Verdict {
                each!(self, $($variant)*; l => l.on_departure(departure, uniform))
            }
            /// [`QueueLaw::first_timer`].
            #[must_use]
            pub fn first_timer(&self) -> Option<Time> { each!(self, $($variant)*; l => l.first_timer()) }
            /// [`QueueLaw::on_timer`].
            pub fn on_timer(&mut self, link: LinkView) -> Time { each!(self, $($variant)*; l => l.on_timer(link)) }
            /// [`QueueLaw::variables`].
            pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) { each!(self, $($variant)*; l => l.variables(report)) }
        }
    };
}

in_this_build! { queues
    {
        /// First in, first out; packets that do not fit are dropped.
        DropTail "droptail" queue::droptail::DropTail;
        /// Random early detection (Floyd and Jacobson 1993).
        Red "red" queue::red::Red;
        /// Controlled delay (Nichols and others, RFC 8289).
        CoDel "codel" queue::codel::CoDel;
    }
    full {
        /// Random exponential marking (Athuraliya, Low, Li and Yin 2001).
        Rem "rem" queue::rem::Rem;
        /// Adaptive virtual queue (Kunniyur and Srikant 2001).
        Avq "avq" queue::avq::Avq;
        /// Core-stateless fair queueing (Stoica, Shenker and Zhang 1998).
        Csfq "csfq" queue::csfq::Csfq;
        /// A proportional-integral controller, squared for classic flows (De Schepper and others 2016).
        Pi2 "pi2" queue::pi2::Pi2;
        /// Two coupled queues, for L4S and for classic flows (RFC 9332).
        DualPi2 "dualpi2" queue::dualpi2::DualPi2;
    }
    {
        /// A queue with CoDel for each flow, served in turn, sparse flows first (RFC 8290).
        FqCodel "fq_codel" queue::fq_codel::Joins;
    }
    full {
        /// A proportional-integral controller of the delay, which drops or marks on arrival (RFC 8033).
        Pie "pie" queue::pie::Pie;
        /// A token bucket that drops or marks packets beyond a rate and a burst.
        Policer "policer" token_bucket::Policer;
        /// A token bucket that holds back packets beyond a rate and a burst.
        Shaper "shaper" token_bucket::Shaper;
    }
}

impl QueueSpec {
    /// Whether each flow has a bucket of its own.
    #[must_use]
    pub fn has_buckets_of_flows(&self) -> bool {
        match self {
            #[cfg(feature = "full")]
            Self::Policer(params) => params.per == token_bucket::Per::Flow,
            _ => false,
        }
    }

    /// Parameters of per-flow queues, if the law has these. The link then keeps its packets in [`fq_codel::FqCodel`].
    #[must_use]
    pub const fn by_flow(&self) -> Option<&fq_codel::Params> {
        match self {
            Self::FqCodel(params) => Some(params),
            _ => None,
        }
    }

    /// Whether packets at the head are dropped to make room for an arriving one. The owner of the queue drops them.
    #[must_use]
    pub const fn drops_head(&self) -> bool {
        matches!(self, Self::DropTail(droptail::Params { drop: droptail::Drop::Head }))
    }

    /// Parameters of the token buckets that decide when packets leave, if the law has these.
    #[must_use]
    pub const fn shaper(&self) -> Option<&token_bucket::ShaperParams> {
        match self {
            #[cfg(feature = "full")]
            Self::Shaper(params) => Some(params),
            _ => None,
        }
    }

    /// Whether the link needs an event for each queued packet.
    #[must_use]
    pub const fn needs_events(&self) -> bool {
        self.hears().each_departure() || self.drops_head() || self.shaper().is_some()
    }

    /// The reason why the queue must be the only one of its link, if it must.
    #[must_use]
    pub const fn is_alone(&self) -> Option<&'static str> {
        match self {
            Self::FqCodel(_) => Some("divides the link among its flows"),
            Self::DropTail(droptail::Params { drop: droptail::Drop::Head }) => {
                Some("with drop = \"head\" drops the packet that has waited longest")
            }
            #[cfg(feature = "full")]
            Self::Policer(_) => Some("has one bucket for the whole link"),
            #[cfg(feature = "full")]
            Self::Shaper(_) => Some("has one bucket for the whole link"),
            _ => None,
        }
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::DropTail(<droptail::DropTail as QueueLaw>::Params::default())
    }
}

//! The one list of laws. A protocol is one line of `protocols!`; a queue law is one line of `queues!`.
//!
//! The macros make an enum of each kind, so that the engine dispatches by a jump and not through a vtable, and the
//! names and parameters that a scenario may write. Nothing else in the project names a law.

use crate::Refused;
use crate::queue::{self, Arrival, QueueLaw, QueueView, Verdict};
use crate::router::{self, LinkView, RouterLaw};
use crate::sender::{self, Ack, FlowView, Recovery, SenderLaw};
use crate::share::{self, Scheduler};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use schemars::JsonSchema;
use serde::de;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// Lets `key = "name"` stand for `key = { law = "name" }`.
macro_rules! name_or_table {
    ($spec:ident, $table:ident, $tag:literal, $expecting:literal, [$($names:literal),*]) => {
        impl JsonSchema for $spec {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($spec))
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let table = $table::json_schema(generator);
                schemars::json_schema!({
                    "description": $expecting,
                    "anyOf": [{ "type": "string", "enum": [$($names),*] }, table],
                })
            }
        }
        impl<'de> Deserialize<'de> for $spec {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct V;
                impl<'de> de::Visitor<'de> for V {
                    type Value = $spec;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, name: &str) -> Result<$spec, E> {
                        let pair = [($tag, name)];
                        let map = de::value::MapDeserializer::new(pair.into_iter());
                        $table::deserialize(map).map(Into::into)
                    }
                    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<$spec, A::Error> {
                        $table::deserialize(de::value::MapAccessDeserializer::new(map)).map(Into::into)
                    }
                }
                deserializer.deserialize_any(V)
            }
        }
    };
}

macro_rules! protocols {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $router:ty, $sender:ty; )*) => {
        /// Which protocol a packet, a router or a flow belongs to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Protocol { $( $(#[$doc])* $variant ),* }

        impl Protocol {
            /// Every protocol, in the order of the registry.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),*];

            /// The name in scenarios.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name ),* }
            }

            /// Whether the protocol's flows rely on routers: without one on their path nothing limits them.
            #[must_use]
            pub fn needs_router(self) -> bool {
                match self {
                    $( Self::$variant => std::any::TypeId::of::<$router>() != std::any::TypeId::of::<router::NoRouter>() ),*
                }
            }

            /// Folds a further packet's stamp into one not yet acknowledged ([`SenderLaw::merge`]).
            pub fn merge(self, pending: &mut Stamp, newer: &Stamp) {
                match self { $( Self::$variant => <$sender as SenderLaw>::merge(pending, newer) ),* }
            }
        }

        /// A sender law and its parameters, as a scenario names them.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "law")]
        pub enum SenderSpec {
            $( $(#[$doc])* #[serde(rename = $name)] $variant(<$sender as SenderLaw>::Params) ),*
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "law")]
        enum SenderTable { $( $(#[$doc])* #[serde(rename = $name)] $variant(<$sender as SenderLaw>::Params) ),* }
        impl From<SenderTable> for SenderSpec {
            fn from(t: SenderTable) -> Self { match t { $( SenderTable::$variant(p) => Self::$variant(p) ),* } }
        }
        name_or_table!(SenderSpec, SenderTable, "law", "the name of a law, or a table with `law` and its parameters", [$($name),*]);
        impl SenderSpec {
            /// The protocol of the law.
            #[must_use]
            pub const fn protocol(&self) -> Protocol { match self { $( Self::$variant(_) => Protocol::$variant ),* } }
            /// Whether the parameters make sense; else the parameter, and what would be right.
            pub fn check(&self) -> Result<(), Refused> {
                match self { $( Self::$variant(p) => <$sender as SenderLaw>::check(p) ),* }
            }
            /// Whether flows of this law rely on a router of their protocol: without one on their path nothing limits them.
            #[must_use]
            pub fn needs_router(&self) -> bool {
                self.protocol().needs_router()
                    && match self { $( Self::$variant(p) => !<$sender as SenderLaw>::falls_back(p) ),* }
            }
            /// The law for one flow.
            #[must_use]
            pub fn build(&self, flow: &FlowView) -> AnySender {
                match self { $( Self::$variant(p) => AnySender::$variant(<$sender as SenderLaw>::new(p, flow)) ),* }
            }
        }

        /// A sender of any protocol.
        #[derive(Clone, Debug)]
        pub enum AnySender { $( $(#[$doc])* $variant($sender) ),* }
        impl SenderLaw for AnySender {
            type Params = SenderSpecOrDefault;
            fn new(params: &SenderSpecOrDefault, flow: &FlowView) -> Self { params.0.build(flow) }
            fn recovery(&self) -> Recovery { match self { $( Self::$variant(l) => l.recovery() ),* } }
            fn handshake(&self) -> bool { match self { $( Self::$variant(l) => l.handshake() ),* } }
            #[inline]
            fn fallen_back(&self) -> Option<(Protocol, Time)> { match self { $( Self::$variant(l) => l.fallen_back() ),* } }
            fn on_feedback(&mut self, now: Time, srtt: Time, stamp: &Stamp) { match self { $( Self::$variant(l) => l.on_feedback(now, srtt, stamp) ),* } }
            #[inline]
            fn cwnd(&self) -> f64 { match self { $( Self::$variant(l) => l.cwnd() ),* } }
            #[inline]
            fn pacing_rate(&self) -> Option<Rate> { match self { $( Self::$variant(l) => l.pacing_rate() ),* } }
            #[inline]
            fn on_ack(&mut self, ack: &Ack<'_>) { match self { $( Self::$variant(l) => l.on_ack(ack) ),* } }
            fn on_congestion(&mut self, now: Time, flight: u32) { match self { $( Self::$variant(l) => l.on_congestion(now, flight) ),* } }
            fn on_timeout(&mut self, now: Time, flight: u32) { match self { $( Self::$variant(l) => l.on_timeout(now, flight) ),* } }
            #[inline]
            fn stamp(&self, now: Time, srtt: Time) -> Stamp { match self { $( Self::$variant(l) => l.stamp(now, srtt) ),* } }
        }

        /// A router law and its parameters, as a scenario names them.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "law")]
        pub enum RouterSpec {
            /// No law: the link only forwards.
            #[serde(rename = "none")] None(router::NoParams),
            $( $(#[$doc])* #[serde(rename = $name)] $variant(<$router as RouterLaw>::Params) ),*
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "law")]
        enum RouterTable {
            /// No law: the link only forwards.
            #[serde(rename = "none")] None(router::NoParams),
            $( $(#[$doc])* #[serde(rename = $name)] $variant(<$router as RouterLaw>::Params) ),*
        }
        impl From<RouterTable> for RouterSpec {
            fn from(t: RouterTable) -> Self {
                match t { RouterTable::None(p) => Self::None(p), $( RouterTable::$variant(p) => Self::$variant(p) ),* }
            }
        }
        name_or_table!(RouterSpec, RouterTable, "law", "the name of a router law, or a table with `law` and its parameters", ["none" $(, $name)*]);
        impl Default for RouterSpec { fn default() -> Self { Self::None(router::NoParams {}) } }
        impl RouterSpec {
            /// Whether the parameters make sense; else the parameter, and what would be right.
            pub fn check(&self) -> Result<(), Refused> {
                match self {
                    Self::None(_) => Ok(()),
                    $( Self::$variant(p) => <$router as RouterLaw>::check(p) ),*
                }
            }
            /// [`RouterLaw::time_constant`].
            pub fn time_constant(&mut self) -> Option<(&'static str, &mut Option<Time>)> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(p) => <$router as RouterLaw>::time_constant(p) ),*
                }
            }
            /// The law on a link of this capacity; `None` where the link only forwards.
            #[must_use]
            pub fn build(&self, capacity: Rate) -> Option<AnyRouter> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(p) => Protocol::$variant.needs_router().then(|| AnyRouter::$variant(<$router as RouterLaw>::new(p, capacity))) ),*
                }
            }
        }

        /// A router law of any protocol.
        #[derive(Clone, Debug)]
        pub enum AnyRouter { $( $(#[$doc])* $variant($router) ),* }
        impl AnyRouter {
            /// Whose packets it stamps.
            #[must_use]
            pub const fn protocol(&self) -> Protocol { match self { $( Self::$variant(_) => Protocol::$variant ),* } }
            /// [`RouterLaw::set_capacity`].
            pub fn set_capacity(&mut self, capacity: Rate) { match self { $( Self::$variant(l) => l.set_capacity(capacity) ),* } }
            /// [`RouterLaw::set_params`], if they are this law's; else nothing happens.
            pub fn set_params(&mut self, spec: &RouterSpec) {
                match (self, spec) {
                    $( (Self::$variant(l), RouterSpec::$variant(p)) => l.set_params(p), )*
                    _ => {}
                }
            }
            /// [`RouterLaw::BEGINS_WITH`].
            #[must_use]
            pub const fn begins_with(&self) -> &'static [&'static str] {
                match self { $( Self::$variant(_) => <$router as RouterLaw>::BEGINS_WITH ),* }
            }
            /// [`RouterLaw::on_arrival`].
            #[inline]
            pub fn on_arrival(&mut self, link: LinkView, size: u32, stamp: Option<&Stamp>) {
                match self { $( Self::$variant(l) => l.on_arrival(link, size, stamp) ),* }
            }
            /// [`RouterLaw::on_departure`].
            #[inline]
            pub fn on_departure(&mut self, link: LinkView, size: u32, stamp: &mut Stamp) {
                match self { $( Self::$variant(l) => l.on_departure(link, size, stamp) ),* }
            }
            /// [`RouterLaw::first_timer`].
            #[must_use]
            pub fn first_timer(&self, which: usize) -> Option<Time> { match self { $( Self::$variant(l) => l.first_timer(which) ),* } }
            /// [`RouterLaw::on_timer`].
            pub fn on_timer(&mut self, which: usize, link: LinkView) -> Time { match self { $( Self::$variant(l) => l.on_timer(which, link) ),* } }
            /// [`RouterLaw::variables`].
            pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) { match self { $( Self::$variant(l) => l.variables(report) ),* } }
        }
    };
}

macro_rules! queues {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $queue:ty; )*) => {
        /// A queue law and its parameters, as a scenario names them.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "kind")]
        pub enum QueueSpec { $( $(#[$doc])* #[serde(rename = $name)] $variant(<$queue as QueueLaw>::Params) ),* }
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        enum QueueTable { $( $(#[$doc])* #[serde(rename = $name)] $variant(<$queue as QueueLaw>::Params) ),* }
        impl From<QueueTable> for QueueSpec {
            fn from(t: QueueTable) -> Self { match t { $( QueueTable::$variant(p) => Self::$variant(p) ),* } }
        }
        name_or_table!(QueueSpec, QueueTable, "kind", "the name of a queue, or a table with `kind` and its parameters", [$($name),*]);
        impl QueueSpec {
            /// Names of all queue laws, in the order of the registry.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Whether the parameters make sense; else the parameter, and what would be right.
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

protocols! {
    /// XCP as the paper writes it: congestion window and RTT in the header, window feedback (Katabi 2002).
    Xcp "xcp" router::xcp::Router<router::xcp::Window>, sender::xcp::Sender<router::xcp::Window>;
    /// XCP as the Internet-Draft writes it: inter-packet time in the header, throughput feedback.
    XcpDraft "xcp-draft" router::xcp::Router<router::xcp::Throughput>, sender::xcp::Sender<router::xcp::Throughput>;
    /// RCP: one rate from the slowest router (Dukkipati 2007).
    Rcp "rcp" router::rcp::Router, sender::rcp::Sender;
    /// TCP Reno (RFC 2581).
    Reno "reno" router::NoRouter, sender::reno::Reno;
    /// TCP NewReno (RFC 6582).
    NewReno "newreno" router::NoRouter, sender::reno::NewReno;
    /// TCP with selective acks (RFC 6675).
    Sack "sack" router::NoRouter, sender::reno::Sack;
    /// HighSpeed TCP (RFC 3649).
    HighSpeed "highspeed" router::NoRouter, sender::highspeed::HighSpeed;
}

queues! {
    /// First in, first out; what does not fit is lost.
    DropTail "droptail" queue::droptail::DropTail;
    /// Random early detection (Floyd and Jacobson 1993).
    Red "red" queue::red::Red;
}

macro_rules! schedulers {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $new:expr; )*) => {
        /// How a router law shares its link with other traffic, as a scenario names it.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "scheduler")]
        pub enum ShareSpec {
            /// Not at all: the law takes all traffic for its own.
            #[serde(rename = "none")] None(router::NoParams),
            $( $(#[$doc])* #[serde(rename = $name)] $variant(share::Params) ),*
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "scheduler")]
        enum ShareTable {
            /// Not at all: the law takes all traffic for its own.
            #[serde(rename = "none")] None(router::NoParams),
            $( $(#[$doc])* #[serde(rename = $name)] $variant(share::Params) ),*
        }
        impl From<ShareTable> for ShareSpec {
            fn from(t: ShareTable) -> Self {
                match t { ShareTable::None(p) => Self::None(p), $( ShareTable::$variant(p) => Self::$variant(p) ),* }
            }
        }
        name_or_table!(ShareSpec, ShareTable, "scheduler", "the name of a scheduler, or a table with `scheduler` and its parameters", ["none" $(, $name)*]);
        impl Default for ShareSpec { fn default() -> Self { Self::None(router::NoParams {}) } }
        impl ShareSpec {
            /// The law's parameters; `None` where the link is not shared.
            #[must_use]
            pub const fn params(&self) -> Option<&share::Params> {
                match self { Self::None(_) => None, $( Self::$variant(p) => Some(p) ),* }
            }
            /// Whether the parameters make sense; else the parameter, and what would be right.
            pub fn check(&self) -> Result<(), Refused> { self.params().map_or(Ok(()), share::Params::check) }
            /// The scheduler between so many classes, nothing waiting; `None` where one queue serves all.
            #[must_use]
            pub fn build(&self, classes: usize) -> Option<Scheduler> {
                match self { Self::None(_) => None, $( Self::$variant(p) => $new(p, classes) ),* }
            }
        }
    };
}

schedulers! {
    /// One queue for all; only the router law keeps to its part (soft isolation).
    Fifo "fifo" |_, _| None;
    /// A queue for each class, served by weighted fair queueing.
    Wfq "wfq" |_, classes| Some(Scheduler::Wfq(share::wfq::Wfq::new(classes)));
    /// A queue for each class, served by deficit round robin.
    Drr "drr" |p: &share::Params, classes| Some(Scheduler::Drr(share::drr::Drr::new(classes, p.mtu.as_f64())));
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::DropTail(<queue::droptail::DropTail as QueueLaw>::Params::default())
    }
}

/// [`SenderSpec`] with the default that the trait asks for: TCP with selective acks.
#[derive(Clone, Debug)]
pub struct SenderSpecOrDefault(pub SenderSpec);

impl Default for SenderSpecOrDefault {
    fn default() -> Self {
        Self(SenderSpec::Sack(<sender::reno::Sack as SenderLaw>::Params::default()))
    }
}

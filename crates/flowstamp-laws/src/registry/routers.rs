//! What routers write into packets. A router law is one line of `routers!`: its name, the header that it writes into, its
//! type.

use super::{Header, SenderSpec, each, in_this_build, spec};
use crate::router::{Gains, LinkView, NoParams, OwnFlows, Room, RouterLaw, RouterView};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{AgreedTime, LongestRtt, Refused, pcp, rcp, vcp, xcp};

macro_rules! routers {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $header:ident $router:ty; )*) => {
        spec! {
            /// A router law and its parameters, as a scenario names them.
            RouterSpec, RouterTable, "law", "the name of a router law, or a table with `law` and its parameters",
            {
                /// No law: the link only forwards.
                None "none" NoParams;
                $( $(#[$doc])* $variant $name <$router as RouterLaw>::Params; )*
            }
        }

        impl Default for RouterSpec { fn default() -> Self { Self::None(NoParams {}) } }
        impl RouterSpec {
            /// Every law with its default parameters, in the order of the registry; without `none`.
            #[must_use]
            pub fn all() -> Vec<Self> { vec![$( Self::$variant(Default::default()) ),*] }
            /// A router law that writes into the same header and needs no capacity, as the senders name it that have this one by themselves.
            #[must_use]
            pub fn blind(&self) -> Option<Self> {
                let own = |sender: &SenderSpec| sender.router().is_some_and(|router| router.name() == self.name());
                SenderSpec::all().iter().find(|sender| own(sender))?.blind_router().filter(|it| !it.needs_capacity())
            }
            /// What it writes into; [`Header::Plain`] where the link only forwards.
            #[must_use]
            pub const fn header(&self) -> Header {
                match self { Self::None(_) => Header::Plain, $( Self::$variant(_) => Header::$header ),* }
            }
            /// Whether the parameters make sense; else the parameter, and what would be right.
            ///
            /// # Errors
            /// The first parameter that does not.
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
            /// [`RouterLaw::longest_rtt`].
            pub fn longest_rtt(&mut self) -> Option<LongestRtt<'_>> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(p) => <$router as RouterLaw>::longest_rtt(p) ),*
                }
            }
            /// [`RouterLaw::agreed_time`].
            pub fn agreed_time(&mut self) -> Option<AgreedTime<'_>> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(p) => <$router as RouterLaw>::agreed_time(p) ),*
                }
            }
            /// [`RouterLaw::gains`].
            #[must_use]
            pub fn gains(&self) -> Option<Gains> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(p) => <$router as RouterLaw>::gains(p) ),*
                }
            }
            /// [`RouterLaw::ACKS_FIRST`].
            #[must_use]
            pub const fn acks_first(&self) -> bool {
                match self { Self::None(_) => false, $( Self::$variant(_) => <$router as RouterLaw>::ACKS_FIRST ),* }
            }
            /// [`RouterLaw::needs_capacity`].
            #[must_use]
            pub fn needs_capacity(&self) -> bool {
                match self {
                    Self::None(_) => false,
                    $( Self::$variant(p) => <$router as RouterLaw>::needs_capacity(p) ),*
                }
            }
            /// [`RouterLaw::BY_WINDOWS`].
            #[must_use]
            pub const fn by_windows(&self) -> Option<Room> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(_) => <$router as RouterLaw>::BY_WINDOWS ),*
                }
            }
            /// The law on this link; `None` where the link only forwards.
            #[must_use]
            pub fn build(&self, link: &RouterView) -> Option<AnyRouter> {
                match self {
                    Self::None(_) => None,
                    $( Self::$variant(p) => Some(AnyRouter::$variant(<$router as RouterLaw>::new(p, link))) ),*
                }
            }
        }

        /// A router law of any kind.
        #[derive(Clone, Debug)]
        pub enum AnyRouter {
            $( $(#[$doc])* $variant($router), )*
            /// A test's.
            #[cfg(feature = "scripted")]
            Scripted(Box<super::scripted::Router>),
        }
        impl AnyRouter {
            /// Into which header it writes.
            #[inline]
            #[must_use]
            pub const fn header(&self) -> Header {
                match self {
                    $( Self::$variant(_) => Header::$header, )*
                    #[cfg(feature = "scripted")]
                    Self::Scripted(l) => l.header,
                }
            }
            /// [`RouterLaw::set_capacity`].
            pub fn set_capacity(&mut self, capacity: Rate) { each!(self, $($variant)*; l => l.set_capacity(capacity)) }
            /// [`RouterLaw::own_flows`].
            #[must_use]
            pub fn own_flows(&self) -> Option<OwnFlows> { each!(self, $($variant)*; l => l.own_flows()) }
            /// [`RouterLaw::set_part`].
            pub fn set_part(&mut self, part: Rate, link: Rate) { each!(self, $($variant)*; l => l.set_part(part, link)) }
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
                match self {
                    $( Self::$variant(_) => <$router as RouterLaw>::BEGINS_WITH, )*
                    #[cfg(feature = "scripted")]
                    Self::Scripted(_) => &[],
                }
            }
            /// [`RouterLaw::on_arrival`], after [`RouterLaw::read_bits`] where there is a stamp.
            #[inline]
            pub fn on_arrival(&mut self, link: LinkView, size: u32, stamp: Option<&Stamp>, bits: u16) {
                each!(self, $($variant)*; l => {
                    if stamp.is_some() {
                        l.read_bits(bits);
                    }
                    l.on_arrival(link, size, stamp);
                })
            }
            /// [`RouterLaw::on_medium_arrival`], after [`RouterLaw::read_bits`] where there is a stamp.
            pub fn on_medium_arrival(&mut self, link: LinkView, size: u32, stamp: Option<&mut Stamp>, bits: u16) {
                each!(self, $($variant)*; l => {
                    if stamp.is_some() {
                        l.read_bits(bits);
                    }
                    l.on_medium_arrival(link, size, stamp);
                })
            }
            /// [`RouterLaw::read_bits`], [`RouterLaw::on_departure`], then [`RouterLaw::bits`].
            #[inline]
            pub fn on_departure(
                &mut self, link: LinkView, size: u32, stamp: &mut Stamp, bits: &mut u16, uniform: impl FnMut() -> f64,
            ) {
                each!(self, $($variant)*; l => {
                    l.read_bits(*bits);
                    l.on_departure(link, size, stamp);
                    *bits = l.bits(link, size, *bits, uniform);
                })
            }
            /// [`RouterLaw::marks`], of a law with [`RouterLaw::MARKS`].
            #[inline]
            pub fn marks(&mut self, link: LinkView, size: u32, uniform: impl FnMut() -> f64) -> bool {
                match self {
                    $( Self::$variant(l) => <$router as RouterLaw>::MARKS && l.marks(link, size, uniform), )*
                    #[cfg(feature = "scripted")]
                    Self::Scripted(_) => false,
                }
            }
            /// [`RouterLaw::first_timer`].
            #[must_use]
            pub fn first_timer(&self, which: usize) -> Option<Time> { each!(self, $($variant)*; l => l.first_timer(which)) }
            /// [`RouterLaw::on_timer`].
            pub fn on_timer(&mut self, which: usize, link: LinkView) -> Time { each!(self, $($variant)*; l => l.on_timer(which, link)) }
            /// [`RouterLaw::variables`].
            pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) { each!(self, $($variant)*; l => l.variables(report)) }
        }
    };
}

#[cfg(test)]
pub(super) use routers;

in_this_build! { routers
    {
        /// XCP's router, in the paper's terms (Katabi 2002).
        Xcp "xcp" Xcp xcp::Router<xcp::header::Window>;
    }
    full {
        /// XCP's router, in the Internet-Draft's terms.
        XcpDraft "xcp-draft" XcpDraft xcp::Router<xcp::header::Throughput>;
    }
    {
        /// XCP-b's router, which needs no capacity (Abrantes and Ricardo 2006), in the paper's terms.
        XcpB "xcp-b" Xcp xcp::blind::Router<xcp::header::Window>;
    }
    full {
        /// XCP-b's router, in the Internet-Draft's terms.
        XcpBDraft "xcp-b-draft" XcpDraft xcp::blind::Router<xcp::header::Throughput>;
    }
    {
        /// RCP's router: one rate for all flows (Dukkipati 2007).
        Rcp "rcp" Rcp rcp::Router;
        /// PCP's router, which estimates in one interval and decides for another (Katabi and Handley 2001).
        Pcp "pcp" Pcp pcp::Router;
        /// VCP's router: how loaded the link is, in two bits (Xia 2008).
        Vcp "vcp" Vcp vcp::Router;
    }
    full {
        /// VCP as its section V models it: the load factor itself.
        VcpExact "vcp-exact" VcpExact vcp::exact::Router;
    }
}

//! The list of router laws, which write into packets. A router law is one line of `routers!`: its name, the header
//! that it writes into, its type.

use super::{Header, SenderSpec, each, in_this_build, spec};
use crate::router::{
    LinkChange, LinkView, NoParams, OwnFlows, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView,
};
use crate::units::Time;
use crate::{Open, Refused, pcp, rcp, vcp, xcp};

macro_rules! routers {
    ($(
        $(#[$doc:meta])* $variant:ident $name:literal $header:ident $router:ty $(, mod $module:ident $file:literal)?;
    )*) => {
        $($( #[path = $file] pub mod $module; )?)*

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
            /// All laws except `none` with their default parameters, in the order of the registry.
            #[must_use]
            pub fn all() -> Vec<Self> { vec![$( Self::$variant(Default::default()) ),*] }
            /// A router law for the same header that needs no capacity, taken from the line of a sender whose default
            /// router is this one.
            #[must_use]
            pub fn blind(&self) -> Option<Self> {
                let own = |sender: &SenderSpec| sender.router().is_some_and(|router| router.name() == self.name());
                SenderSpec::all().iter().find(|sender| own(sender))?.blind_router().filter(|it| !it.traits().needs_capacity)
            }
            /// The header that the law writes into; [`Header::Plain`] where the link only forwards.
            #[must_use]
            pub const fn header(&self) -> Header {
                match self { Self::None(_) => Header::Plain, $( Self::$variant(_) => Header::$header ),* }
            }
            /// Checks the parameters.
            ///
            /// # Errors The first invalid parameter, and a value that would be right.
            pub fn check(&self) -> Result<(), Refused> {
                match self {
                    Self::None(_) => Ok(()),
                    $( Self::$variant(p) => <$router as RouterLaw>::check(p) ),*
                }
            }
            /// [`RouterLaw::traits`].
            #[must_use]
            pub fn traits(&self) -> RouterTraits {
                match self {
                    Self::None(_) => RouterTraits { needs_capacity: false, ..RouterTraits::DEFAULT },
                    $( Self::$variant(p) => <$router as RouterLaw>::traits(p) ),*
                }
            }
            /// [`RouterLaw::open`].
            pub fn open(&mut self) -> Open<'_> {
                match self {
                    Self::None(_) => Open::default(),
                    $( Self::$variant(p) => <$router as RouterLaw>::open(p) ),*
                }
            }
            /// Creates the law for a link; `None` where the link only forwards.
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
            /// A test's scripted law.
            #[cfg(feature = "scripted")]
            Scripted(Box<super::scripted::Router>),
        }
        impl AnyRouter {
            /// The header that the law writes into.
            #[inline]
            #[must_use]
            pub const fn header(&self) -> Header {
                match self {
                    $( Self::$variant(_) => Header::$header, )*
                    #[cfg(feature = "scripted")]
                    Self::Scripted(l) => l.header,
                }
            }
            /// [`RouterLaw::on_arrival`].
            #[inline]
            pub fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
                each!(self, $($variant)*; l => l.on_arrival(link, packet))
            }
            /// [`RouterLaw::on_departure`].
            #[inline]
            pub fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, uniform: impl FnMut() -> f64) {
                each!(self, $($variant)*; l => l.on_departure(link, packet, uniform))
            }
            /// [`RouterLaw::on_timer`].
            pub fn on_timer(&mut self, which: usize, link: LinkView) -> Time { each!(self, $($variant)*; l => l.on_timer(which, link)) }
            /// [`RouterLaw::on_change`]; parameters of another law change nothing.
            pub fn on_change(&mut self, change: LinkChange<'_, RouterSpec>) {
                match (self, change) {
                    $(
                        (Self::$variant(l), LinkChange::Params(RouterSpec::$variant(p))) => l.on_change(LinkChange::Params(p)),
                        (Self::$variant(l), LinkChange::Capacity(rate)) => l.on_change(LinkChange::Capacity(rate)),
                        (Self::$variant(l), LinkChange::Part { own, link }) => l.on_change(LinkChange::Part { own, link }),
                        (Self::$variant(l), LinkChange::Buffer(limit)) => l.on_change(LinkChange::Buffer(limit)),
                        (Self::$variant(l), LinkChange::Acked(batch)) => l.on_change(LinkChange::Acked(batch)),
                    )*
                    _ => {}
                }
            }
            /// [`RouterLaw::own_flows`].
            #[must_use]
            pub fn own_flows(&self) -> Option<OwnFlows> { each!(self, $($variant)*; l => l.own_flows()) }
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
        /// XCPw's router: XCP with feedback computed for each packet (Goyal et al. 2020).
        XcpW "xcp-w" Xcp xcp::wireless::Router;
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
        /// HPCC's router: utilisation of the link (Li et al. 2019, Ben Basat et al. 2020).
        Hpcc "hpcc" Hpcc crate::hpcc::Router;
        /// ABC's router: accelerate or brake, by the dequeue rate (Goyal et al. 2020).
        Abc "abc" Abc crate::abc::Router;
    }
}

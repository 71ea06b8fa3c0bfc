//! The list of sender laws, which set a flow's window or rate. A sender law is one line of `senders!`: its name, the
//! header that its packets carry, its type, and the default router law of its flows, if they rely on one. If that
//! router law needs the link's capacity, another may follow for links of unknown capacity.

use super::{Header, RouterSpec, each, in_this_build, spec};
use crate::sender::{
    Ack, Congestion, Feedback, FlowChange, FlowView, Pacing, Report, SenderLaw, SenderTraits,
};
use crate::stamp::Stamp;
use crate::units::Time;
use crate::{Open, Refused, pcp, rcp, tcp, vcp, xcp};

macro_rules! senders {
    ($(
        $(#[$doc:meta])* $variant:ident $name:literal $header:ident $sender:ty
            $(=> $router:ident $(, blind $blind:ident)?)? $(, mod $module:ident $file:literal)?;
    )*) => {
        $($( #[path = $file] pub mod $module; )?)*

        spec! {
            /// A sender law and its parameters, as a scenario names them.
            SenderSpec, SenderTable, "law", "the name of a law, or a table with `law` and its parameters",
            { $( $(#[$doc])* $variant $name <$sender as SenderLaw>::Params; )* }
        }

        impl SenderSpec {
            /// All laws with their default parameters, in the order of the registry.
            #[must_use]
            pub fn all() -> Vec<Self> { vec![$( Self::$variant(Default::default()) ),*] }
            /// The header that the law's packets carry.
            #[must_use]
            pub const fn header(&self) -> Header { match self { $( Self::$variant(_) => Header::$header ),* } }
            /// The default router law of its flows, with default parameters; `None` if they rely on none.
            #[must_use]
            pub fn router(&self) -> Option<RouterSpec> {
                match self {
                    $( Self::$variant(_) => [$( RouterSpec::$router(Default::default()) )?].into_iter().next(), )*
                }
            }
            /// The default router law for a link of unknown capacity: one that needs no capacity, if there is one.
            #[must_use]
            pub fn blind_router(&self) -> Option<RouterSpec> {
                match self {
                    $( Self::$variant(_) => [$( $( RouterSpec::$blind(Default::default()) )? )?].into_iter().next(), )*
                }
                .or_else(|| self.router())
            }
            /// Checks the parameters.
            ///
            /// # Errors The first invalid parameter, and a value that would be right.
            pub fn check(&self) -> Result<(), Refused> {
                match self { $( Self::$variant(p) => <$sender as SenderLaw>::check(p) ),* }
            }
            /// [`SenderLaw::traits`].
            #[must_use]
            pub fn traits(&self) -> SenderTraits {
                match self { $( Self::$variant(p) => <$sender as SenderLaw>::traits(p) ),* }
            }
            /// [`SenderLaw::open`].
            pub fn open(&mut self) -> Open<'_> {
                match self { $( Self::$variant(p) => <$sender as SenderLaw>::open(p) ),* }
            }
            /// Creates the law for one flow.
            #[must_use]
            pub fn build(&self, flow: &FlowView) -> AnySender {
                match self { $( Self::$variant(p) => AnySender::$variant(<$sender as SenderLaw>::new(p, flow)) ),* }
            }
        }

        /// A sender of any law. Laws with more state than TCP are boxed, because every flow takes the size of the
        /// largest variant.
        #[derive(Clone, Debug)]
        pub enum AnySender {
            $( $(#[$doc])* $variant($sender), )*
            /// A test's scripted law.
            #[cfg(feature = "scripted")]
            Scripted(Box<super::scripted::Sender>),
        }
        impl SenderLaw for AnySender {
            type Params = SenderSpec;
            fn new(params: &SenderSpec, flow: &FlowView) -> Self { params.build(flow) }
            #[inline(always)] // asked for each packet
            fn cwnd(&self) -> f64 { each!(self, $($variant)*; l => l.cwnd()) }
            #[inline(always)]
            fn pacing(&self) -> Option<Pacing> { each!(self, $($variant)*; l => l.pacing()) }
            #[inline(always)] // a stamp returned through memory would stall the caller that copies it
            fn stamp(&self, now: Time, srtt: Time) -> Stamp { each!(self, $($variant)*; l => l.stamp(now, srtt)) }
            #[inline(always)] // asked for each packet
            fn bits(&self) -> u16 { each!(self, $($variant)*; l => l.bits()) }
            #[inline]
            fn on_ack(&mut self, ack: &Ack<'_>) { each!(self, $($variant)*; l => l.on_ack(ack)) }
            fn on_feedback(&mut self, feedback: &Feedback<'_>) { each!(self, $($variant)*; l => l.on_feedback(feedback)) }
            fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
                each!(self, $($variant)*; l => l.on_congestion(now, sign))
            }
            fn on_change(&mut self, change: FlowChange<'_, SenderSpec>) {
                match (self, change) {
                    $(
                        (Self::$variant(l), FlowChange::Params(SenderSpec::$variant(p))) => l.on_change(FlowChange::Params(p)),
                        (Self::$variant(l), FlowChange::Path(path)) => l.on_change(FlowChange::Path(path)),
                        (Self::$variant(l), FlowChange::Ingress { micro_flows, min_rtt }) => {
                            l.on_change(FlowChange::Ingress { micro_flows, min_rtt });
                        }
                    )*
                    _ => {}
                }
            }
            #[inline(always)] // asked for each packet of a flow that may fall back
            fn report(&self) -> Report { each!(self, $($variant)*; l => l.report()) }
        }
    };
}

#[cfg(test)]
pub(super) use senders;

in_this_build! { senders
    {
        /// XCP as the paper writes it (Katabi 2002).
        Xcp "xcp" Xcp xcp::Sender<xcp::header::Window> => Xcp, blind XcpB;
    }
    full {
        /// XCP as the Internet-Draft writes it.
        XcpDraft "xcp-draft" XcpDraft xcp::Sender<xcp::header::Throughput> => XcpDraft, blind XcpBDraft;
        /// An XCP macro-flow between edges of a core cloud (Katabi 2002, section 8.1).
        XcpEdge "xcp-edge" Xcp xcp::edge::Sender => Xcp, blind XcpB;
    }
    {
        /// RCP: the rate that the slowest router gives (Dukkipati 2007).
        Rcp "rcp" Rcp rcp::Sender => Rcp;
        /// PCP, from which XCP came (Katabi and Handley 2001).
        Pcp "pcp" Pcp pcp::Sender => Pcp;
        /// VCP: multiplicative increase, additive increase or decrease, as two bits say (Xia 2008).
        Vcp "vcp" Vcp Box<vcp::Sender> => Vcp;
    }
    full {
        /// A VCP flow between borders of an island (Xia 2008, section VI-D).
        VcpEdge "vcp-edge" Vcp Box<vcp::edge::Sender> => Vcp;
        /// VCP as its section V models it: by the load factor itself.
        VcpExact "vcp-exact" VcpExact vcp::exact::Sender => VcpExact;
        /// HPCC: a window that follows the utilisation of the busiest link (Li et al. 2019).
        Hpcc "hpcc" Hpcc Box<crate::hpcc::Sender> => Hpcc;
        /// ABC: two packets for an accelerate, none for a brake, and CUBIC's window beside it (Goyal et al. 2020).
        Abc "abc" Abc Box<crate::abc::Sender> => Abc;
        /// An XCP sender that lies or does not obey.
        XcpLiar "xcp-liar" Xcp Box<crate::liar::Sender<xcp::Sender<xcp::header::Window>>> => Xcp, blind XcpB;
        /// A sender of XCP as the Internet-Draft writes it that lies or does not obey.
        XcpDraftLiar "xcp-draft-liar" XcpDraft Box<crate::liar::Sender<xcp::Sender<xcp::header::Throughput>>> => XcpDraft, blind XcpBDraft;
        /// An RCP sender that lies or does not obey.
        RcpLiar "rcp-liar" Rcp Box<crate::liar::Sender<rcp::Sender>> => Rcp;
        /// A VCP sender that lies or does not obey.
        VcpLiar "vcp-liar" Vcp Box<crate::liar::Sender<vcp::Sender>> => Vcp;
    }
    {
        /// TCP Reno (RFC 2581).
        Reno "reno" Plain tcp::Reno;
        /// TCP NewReno (RFC 6582).
        NewReno "newreno" Plain tcp::NewReno;
        /// TCP with selective acks (RFC 6675).
        Sack "sack" Plain tcp::Sack;
    }
    full {
        /// HighSpeed TCP (RFC 3649).
        HighSpeed "highspeed" Plain Box<tcp::HighSpeed>;
        /// Scalable TCP (Kelly 2003).
        Scalable "scalable" Plain Box<tcp::Scalable>;
        /// H-TCP (Leith and Shorten 2004).
        Htcp "htcp" Plain Box<tcp::Htcp>;
        /// BIC TCP (Xu, Harfoush and Rhee 2004).
        Bic "bic" Plain Box<tcp::Bic>;
    }
    {
        /// CUBIC (RFC 9438; Ha, Rhee and Xu 2008).
        Cubic "cubic" Plain Box<tcp::Cubic>;
    }
    full {
        /// FAST TCP (Wei, Jin, Low and Hegde 2006).
        Fast "fast" Plain Box<tcp::Fast>;
    }
    {
        /// BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00).
        Bbr "bbr" Plain Box<tcp::Bbr>;
    }
    full {
        /// BBR, version 3 (draft-ietf-ccwg-bbr).
        Bbr3 "bbr3" Plain Box<tcp::Bbr3>;
        /// Data Center TCP (RFC 8257).
        Dctcp "dctcp" Plain Box<tcp::Dctcp>;
        /// Swift: a window that follows a target delay (Kumar et al. 2020).
        Swift "swift" Plain Box<crate::swift::Sender>;
    }
    {
        /// Datagrams at the application's rate, whatever comes back.
        Udp "udp" Plain crate::udp::Sender;
    }
    full {
        /// Datagrams at the rate of RCP's routers (Dukkipati 2007, section 6.1.1).
        RcpStream "rcp-stream" Rcp crate::rcp::stream::Sender => Rcp;
        /// A window and a rate that are set from outside.
        Told "told" Plain crate::told::Sender;
    }
}

impl SenderSpec {
    /// Whether flows of this law rely on a router that writes into their header. Without one on their path nothing
    /// limits them.
    #[must_use]
    pub fn needs_router(&self) -> bool {
        let traits = self.traits();
        self.header() != Header::Plain && !traits.falls_back && !traits.works_without_routers
    }

    /// Returns whether flows over QUIC can have this law. The law must set a window or a rate by itself. It must need no header,
    /// or one that stamp packets carry. `flowstamp quic`, its paths and labs all ask this.
    #[must_use]
    pub fn is_over_quic(&self) -> bool {
        let carried = self.header() == Header::Plain || matches!(self, Self::Xcp(_) | Self::Rcp(_));
        carried && self.traits().stands_alone()
    }

    /// Names of all laws of flows over QUIC, in the order of the registry.
    #[must_use]
    pub fn names_over_quic() -> Vec<&'static str> {
        Self::all().iter().filter(|spec| spec.is_over_quic()).map(Self::name).collect()
    }

    /// Whether its flows work without a receiver that echoes their header: those of TCP laws, and those with
    /// [`SenderTraits::asks_receiver`].
    #[must_use]
    pub fn asks_receiver(&self) -> bool {
        self.header() == Header::Plain || self.traits().asks_receiver
    }
}

/// TCP with selective acks, because [`AnySender`] needs a default law.
impl Default for SenderSpec {
    fn default() -> Self {
        Self::Sack(tcp::Params::default())
    }
}

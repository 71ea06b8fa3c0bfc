//! The list of headers. A header is one line of `headers!`.

use crate::share::police::{Belief, FeedbackBounds};
use crate::stamp::{Stamp, StampLaw};
use crate::units::{Rate, Time};
use crate::{abc, hpcc, pcp, rcp, vcp, xcp};

macro_rules! headers {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $header:ty; )*) => {
        /// The header that a packet carries, which decides which routers may write into it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Header {
            /// No header: a plain packet, which no router law stamps.
            Plain,
            $( $(#[$doc])* $variant ),*
        }

        impl Header {
            /// All headers that routers write into, in the order of the registry.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),*];

            /// The header's name in messages and in results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { Self::Plain => "plain", $( Self::$variant => $name ),* }
            }

            /// [`StampLaw::TESTED`].
            #[must_use]
            pub const fn is_tested(self) -> bool {
                match self { Self::Plain => false, $( Self::$variant => <$header as StampLaw>::TESTED ),* }
            }

            /// [`StampLaw::LONGEST_RTT`].
            #[must_use]
            pub const fn longest_rtt(self) -> Option<Time> {
                match self { Self::Plain => None, $( Self::$variant => <$header as StampLaw>::LONGEST_RTT ),* }
            }

            /// [`StampLaw::named_rtt`].
            #[must_use]
            pub fn named_rtt(self, stamp: &Stamp) -> Option<Time> {
                match self { Self::Plain => None, $( Self::$variant => <$header as StampLaw>::named_rtt(stamp) ),* }
            }

            /// [`StampLaw::forget_rtt`].
            pub fn forget_rtt(self, stamp: &mut Stamp) {
                match self { Self::Plain => {} $( Self::$variant => <$header as StampLaw>::forget_rtt(stamp) ),* }
            }

            /// [`StampLaw::recall`].
            pub fn recall(self, stamp: &mut Stamp, named: &Stamp) {
                match self { Self::Plain => {} $( Self::$variant => <$header as StampLaw>::recall(stamp, named) ),* }
            }

            /// [`StampLaw::believe`].
            pub fn believe(self, stamp: &mut Stamp, size: u32, belief: &Belief) {
                match self { Self::Plain => {} $( Self::$variant => <$header as StampLaw>::believe(stamp, size, belief) ),* }
            }

            /// [`StampLaw::told`].
            #[must_use]
            pub fn told(self, stamp: &Stamp) -> Option<Rate> {
                match self { Self::Plain => None, $( Self::$variant => <$header as StampLaw>::told(stamp) ),* }
            }

            /// [`StampLaw::test`].
            pub fn test(self, stamp: &mut Stamp, size: u32, bounds: &FeedbackBounds) {
                match self { Self::Plain => {} $( Self::$variant => <$header as StampLaw>::test(stamp, size, bounds) ),* }
            }

            /// Merges a newer packet's stamp into one not yet acknowledged ([`StampLaw::merge`]).
            #[inline]
            pub fn merge(self, pending: &mut Stamp, newer: &Stamp) {
                match self {
                    Self::Plain => *pending = *newer,
                    $( Self::$variant => <$header as StampLaw>::merge(pending, newer) ),*
                }
            }
        }
    };
}

headers! {
    /// XCP's as the paper writes it: congestion window and RTT, and a change of the window (Katabi 2002).
    Xcp "xcp" xcp::header::Window;
    /// XCP's as the Internet-Draft writes it: inter-packet time and RTT, and a change of throughput.
    XcpDraft "xcp-draft" xcp::header::Throughput;
    /// RCP's: a rate, and the RTT (Dukkipati 2007).
    Rcp "rcp" rcp::header::Header;
    /// PCP's: congestion window, RTT and a change of the window, and bits (Katabi and Handley 2001).
    Pcp "pcp" pcp::header::Header;
    /// VCP's: two bits, those of ECN (Xia 2008).
    Vcp "vcp" vcp::header::Header;
    /// A load factor, as VCP's section V has it.
    VcpExact "vcp-exact" vcp::exact::Header;
    /// HPCC's: utilisation of the busiest link, and capacity of the slowest.
    Hpcc "hpcc" hpcc::Header;
    /// ABC's: accelerate or brake, in the two ECN bits (Goyal et al. 2020).
    Abc "abc" abc::Header;
}

//! A sender's default router is the one that its line names, wherever other routers of its header are in the list.

#[cfg(feature = "scripted")]
use super::scripted;
use super::{Header, RouterSpec, SenderSpec};

/// Defines a registry with a toy router on RCP's header, above or below RCP's own.
macro_rules! with_a_toy {
    ($module:ident: $($line:tt)*) => {
        mod $module {
            #![expect(dead_code, reason = "of a registry the test asks for two functions")]

            use crate::registry::routers::routers;
            use crate::registry::senders::senders;
            use crate::registry::{Header, spec};
            use crate::router::{
                LinkChange, LinkView, NoParams, OwnFlows, PacketIn, PacketOut, RouterLaw, RouterTraits,
                RouterView,
            };
            use crate::sender::{
                Ack, Congestion, Feedback, FlowChange, FlowView, Pacing, Report, SenderLaw, SenderTraits,
            };
            use crate::stamp::Stamp;
            use crate::units::Time;
            use crate::{Open, Refused};

            senders! {
                /// RCP.
                Rcp "rcp" Rcp crate::rcp::Sender => Rcp;
                /// A law without routers.
                Sack "sack" Plain crate::tcp::Sack;
            }
            routers! { $($line)* }

            impl Default for SenderSpec {
                fn default() -> Self {
                    Self::Rcp(crate::rcp::sender::Params::default())
                }
            }
        }
    };
}

with_a_toy! { above:
    /// A toy that divides nothing.
    Toy "toy" Rcp crate::rcp::Router;
    /// RCP's.
    Rcp "rcp" Rcp crate::rcp::Router;
}
with_a_toy! { below:
    /// RCP's.
    Rcp "rcp" Rcp crate::rcp::Router;
    /// A toy that divides nothing.
    Toy "toy" Rcp crate::rcp::Router;
}

#[test]
fn a_router_above_or_below_changes_no_default() {
    assert_eq!(above::RouterSpec::NAMES, ["none", "toy", "rcp"]);
    assert_eq!(below::RouterSpec::NAMES, ["none", "rcp", "toy"]);
    let above = above::SenderSpec::all().iter().map(|s| s.router().map(|r| r.name())).collect::<Vec<_>>();
    let below = below::SenderSpec::all().iter().map(|s| s.router().map(|r| r.name())).collect::<Vec<_>>();
    assert_eq!([above, below], [[Some("rcp"), None], [Some("rcp"), None]]);
}

#[test]
fn each_sender_has_a_router_of_its_header_or_none_at_all() {
    for sender in SenderSpec::all() {
        let name = sender.name();
        match sender.router() {
            Some(router) => assert_eq!(router.header(), sender.header(), "{name}"),
            None => assert_eq!(sender.header(), Header::Plain, "{name}"),
        }
        if let Some(router) = sender.blind_router() {
            assert_eq!(router.header(), sender.header(), "{name}");
        }
    }
    for router in RouterSpec::all() {
        let Some(blind) = router.blind() else { continue };
        assert!(blind.header() == router.header() && !blind.traits().needs_capacity, "{}", router.name());
    }
}

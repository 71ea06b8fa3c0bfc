//! The headers of RCP and XCP as stamp packets and their echoes carry them.
//!
//! ```text
//!          stamp.value                 stamp.rtt   stamp.last          echo.value
//!   RCP    rate, bytes/ms              RTT         0                   the newest rate
//!   XCP    change of throughput,       RTT         packets in flight   the sum of all changes granted, plus 1,
//!          bytes/s, signed                                             mod 2^32; 0 before the first
//! ```
//!
//! The fields are those of the TCP option ([`flowstamp_wire::option`]). RCP's rate is a state, so the newest is enough. XCP's changes
//! add up over all packets of a flow. Their sum is a state too, so an echo that is lost or left out loses nothing.
//!
//! Deviations (the laws say / we do / because):
//! 1. XCP's header has a window in bytes and a change of it / packets in flight, and a change of throughput, as in the Internet-Draft
//!    / a router then needs no size of a flow's other packets. Changes are rounded down to whole bytes/s.
//! 2. A packet of XCP without an RTT wishes for nothing / it asks for as much as there is / a router grants such packets nothing, so a
//!    request that arrives unchanged has met no router.

use flowstamp_laws::rcp;
use flowstamp_laws::registry::Header;
use flowstamp_laws::sender::AS_MUCH_AS_THERE_IS;
use flowstamp_laws::stamp::Stamp;
use flowstamp_laws::units::Time;
use flowstamp_laws::xcp::header::{Encoding, View, Window};
use flowstamp_wire::option::{self, MicrosFloat, Protocol, UNBOUNDED_DELTA, UNBOUNDED_RATE};
use flowstamp_wire::quic_stamp::Echo;

/// The protocol whose stamp packets carry a header; `None` if none does.
#[must_use]
pub const fn protocol_of(header: Header) -> Option<Protocol> {
    match header {
        Header::Rcp => Some(Protocol::Rcp),
        Header::Xcp => Some(Protocol::Xcp),
        _ => None,
    }
}

fn wire_rtt(rtt_s: f64) -> MicrosFloat {
    let micros = rtt_s * 1e6;
    if micros > 0.0 { MicrosFloat::from_micros(micros as u64) } else { MicrosFloat::UNKNOWN }
}

/// A rate as RCP's stamp has it, at least 1 bytes/ms.
fn wire_rate(rate: f64) -> u32 {
    // A float-to-integer cast saturates, here at the request for an unbounded rate.
    ((rate / 1e3).round() as u32).max(1)
}

/// A change of throughput as XCP's stamp has it. A request for an unbounded one stays that.
fn wire_change(change: f64) -> u32 {
    (change.floor() as i32) as u32
}

/// The stamp that a sender's packet carries; `None` if the law sends none, as after a switch to TCP. A full packet has
/// `packet_bytes`.
#[must_use]
pub fn request(protocol: Protocol, stamp: &Stamp, packet_bytes: u32) -> Option<option::Stamp> {
    match protocol {
        Protocol::Rcp => {
            let header = rcp::Header::from(*stamp);
            let value = wire_rate(header.rate);
            (header.rate > 0.0).then_some(option::Stamp { value, rtt: wire_rtt(header.rtt_s), last: 0 })
        }
        Protocol::Xcp => {
            let View { inter_packet_s, rtt_s, feedback } = Window::read(stamp, f64::from(packet_bytes));
            let (value, in_flight) = if rtt_s > 0.0 {
                (wire_change(feedback), (rtt_s / inter_packet_s).round() as u16)
            } else {
                (UNBOUNDED_DELTA as u32, 1)
            };
            Some(option::Stamp { value, rtt: wire_rtt(rtt_s), last: in_flight.max(1) })
        }
        Protocol::Vcp => None,
    }
}

/// The stamp of a packet of `size` bytes, as a router's law reads it.
#[must_use]
pub fn at_router(protocol: Protocol, wire: option::Stamp, size: u32) -> Stamp {
    let rtt = wire.rtt.to_micros().map_or(Time::ZERO, |micros| Time::from_micros(micros.into()));
    let rtt_s = rtt.as_secs_f64();
    if protocol == Protocol::Rcp {
        return rcp::Header { rtt_s, ..rate_of(wire.value) }.into();
    }
    let mut stamp = Stamp([f64::from(wire.last.max(1)) * f64::from(size), rtt_s, 0.0]);
    let change = f64::from(wire.value as i32);
    if rtt_s > 0.0 {
        Window::write_feedback(&mut stamp, change, rtt_s);
    } else {
        stamp.0[2] = change;
    }
    stamp
}

/// The value that a router's law leaves in a stamp whose value was `was`. It is never above that.
#[must_use]
pub fn from_router(protocol: Protocol, stamp: &Stamp, was: u32) -> u32 {
    match protocol {
        Protocol::Xcp => {
            let offered = wire_change(Window::read(stamp, 1.0).feedback) as i32;
            offered.min(was as i32) as u32
        }
        _ => wire_rate(rcp::Header::from(*stamp).rate).min(was),
    }
}

/// RCP's header for a rate on the wire.
#[must_use]
pub fn rate_of(value: u32) -> rcp::Header {
    let rate = if value == UNBOUNDED_RATE { AS_MUCH_AS_THERE_IS } else { f64::from(value) * 1e3 };
    rcp::Header { rate, rtt_s: 0.0, age_bytes: 0.0 }
}

/// XCP's stamp for a change of throughput in bytes/s, of a flow with this RTT in seconds.
#[must_use]
pub fn change_of(bytes_per_sec: f64, rtt_s: f64) -> Stamp {
    let mut stamp = Stamp::default();
    Window::write_feedback(&mut stamp, bytes_per_sec, rtt_s);
    stamp
}

/// The stamps that a receiver has to echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// XCP: the sum of all changes that routers have granted, plus 1; zero before the first.
    sum: u32,
    newest: Option<Echo>,
}

impl Received {
    /// Takes the stamp of a packet that has arrived.
    pub fn take(&mut self, protocol: Protocol, stamp: option::Stamp) {
        let value = match protocol {
            Protocol::Xcp => {
                if stamp.value as i32 != UNBOUNDED_DELTA {
                    self.sum = self.sum.max(1).wrapping_add(stamp.value).max(1);
                }
                self.sum
            }
            _ => stamp.value,
        };
        self.newest = Some(Echo { protocol, value });
    }

    /// Whether there is something to echo.
    #[must_use]
    pub const fn has_echo(&self) -> bool {
        self.newest.is_some()
    }

    /// The echo that is due, if any stamp has come since the last one.
    pub const fn echo(&mut self) -> Option<Echo> {
        self.newest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKET: u32 = 1251;

    #[test]
    fn rates_survive_the_wire() {
        let there_and_back = |rate, rtt_s| {
            let stamp = rcp::Header { rate, rtt_s, age_bytes: 0.0 }.into();
            request(Protocol::Rcp, &stamp, PACKET)
                .map(|wire| rcp::Header::from(at_router(Protocol::Rcp, wire, PACKET)))
        };
        let known = there_and_back(1.25e6, 0.04).expect("a stamp");
        assert_eq!((known.rate, known.rtt_s), (1.25e6, 0.04));
        assert_eq!(there_and_back(AS_MUCH_AS_THERE_IS, 0.0).map(|h| h.rate), Some(AS_MUCH_AS_THERE_IS));
        assert_eq!(there_and_back(1.0, 0.0).map(|h| (h.rate, h.rtt_s)), Some((1e3, 0.0)), "never zero");
        assert_eq!(there_and_back(0.0, 0.04), None, "a flow that became a TCP");
    }

    /// A packet of XCP without an RTT asks for an unbounded change, and a router that grants nothing shows that it is there.
    #[test]
    fn a_request_without_a_round_trip_shows_whether_there_is_a_router() {
        let wire = request(Protocol::Xcp, &Stamp([12_510.0, 0.0, 0.0]), PACKET).expect("a stamp");
        assert_eq!((wire.value as i32, wire.rtt, wire.last), (UNBOUNDED_DELTA, MicrosFloat::UNKNOWN, 1));
        let mut received = Received::default();
        received.take(Protocol::Xcp, wire);
        assert_eq!(received.echo().map(|echo| echo.value), Some(0), "no router");
        let mut stamp = at_router(Protocol::Xcp, wire, PACKET);
        Window::refuse_increase(&mut stamp);
        let value = from_router(Protocol::Xcp, &stamp, wire.value);
        assert_eq!(value, 0);
        received.take(Protocol::Xcp, option::Stamp { value, ..wire });
        assert_eq!(received.echo().map(|echo| echo.value), Some(1), "a router that grants nothing yet");
        assert_eq!(received.echo(), None);
    }

    proptest! {
        /// Window over RTT, RTT and feedback arrive at a router within the steps of the wire: whole packets, a 2048th, and a
        /// byte/s.
        #[test]
        fn headers_of_xcp_survive_the_wire(packets in 1_u16..2000, rtt_ms in 1_u32..2000, change in -1e8..1e8_f64) {
            let rtt_s = f64::from(rtt_ms) * 1e-3;
            let window = f64::from(packets) * f64::from(PACKET);
            let wire = request(Protocol::Xcp, &Stamp([window, rtt_s, change * rtt_s]), PACKET).expect("a stamp");
            prop_assert_eq!(wire.last, packets);
            let view = Window::read(&at_router(Protocol::Xcp, wire, PACKET), f64::from(PACKET));
            // A time is cut to whole microseconds before it becomes a float.
            prop_assert!((view.rtt_s / rtt_s - 1.0).abs() <= 1.0 / 2048.0 + 1.001e-6 / rtt_s, "{:?}", view);
            prop_assert!((view.inter_packet_s * f64::from(packets) / view.rtt_s - 1.0).abs() < 1e-9, "{:?}", view);
            prop_assert!((-1e-3..1.001).contains(&(change - view.feedback)), "{} became {:?}", change, view);
        }

        /// A router lowers a value by what its law takes away, whatever is on the wire. A value that the law leaves alone
        /// changes only by rounding.
        #[test]
        fn routers_never_raise(protocol in prop_oneof![Just(Protocol::Rcp), Just(Protocol::Xcp)], value: u32, rtt: u16, last: u16, lower in 0.0..1e9_f64) {
            let wire = option::Stamp { value, rtt: MicrosFloat::from_bits(rtt), last };
            let mut stamp = at_router(protocol, wire, PACKET);
            let order = |value: u32| if protocol == Protocol::Xcp { i64::from(value as i32) } else { i64::from(value) };
            let untouched = order(from_router(protocol, &stamp, value));
            prop_assert!((order(value) - 1..=order(value)).contains(&untouched), "{} became {}", order(value), untouched);
            // RCP's wire has kilobytes per second, XCP's has bytes per second.
            let (before, unit, least) = if protocol == Protocol::Xcp {
                (f64::from(value as i32), 1.0, f64::from(i32::MIN))
            } else {
                (rate_of(value).rate, 1e3, 0.0)
            };
            let after = before - lower;
            if protocol == Protocol::Rcp {
                stamp = rcp::Header { rate: after, ..rcp::Header::from(stamp) }.into();
            } else {
                let rtt_s = Window::read(&stamp, f64::from(PACKET)).rtt_s;
                stamp = Stamp([stamp.0[0], stamp.0[1], if rtt_s > 0.0 { after * rtt_s } else { after }]);
            }
            let lowered = order(from_router(protocol, &stamp, value)) as f64;
            let most = if protocol == Protocol::Xcp { before } else { order(value) as f64 };
            let expected = (after / unit).max(least).min(most);
            // Changes are floats of 53 bits, multiplied by the RTT and divided by it.
            prop_assert!((lowered - expected).abs() <= 1.0 + 1e-6, "{} less {} became {}", before, lower, lowered);
        }

        /// The echoed sum, from which a sender takes the difference, brings each change once, however many echoes are left out.
        #[test]
        fn the_sum_of_changes_survives_lost_echoes(changes in proptest::collection::vec((-1_000_000..1_000_000_i32, any::<bool>()), 1..60)) {
            let (mut received, mut heard, mut applied, mut granted) = (Received::default(), 0_u32, 0_i64, 0_i64);
            for (change, echoes) in changes {
                let wire = option::Stamp { value: change as u32, rtt: MicrosFloat::from_micros(1000), last: 1 };
                received.take(Protocol::Xcp, wire);
                granted += i64::from(change);
                if let Some(echo) = if echoes { received.echo() } else { None } {
                    applied += i64::from(echo.value.wrapping_sub(heard.max(1)) as i32);
                    heard = echo.value;
                    // The sum leaves out zero.
                    prop_assert!((applied - granted).abs() <= 1, "{} of {}", applied, granted);
                }
            }
        }
    }
}

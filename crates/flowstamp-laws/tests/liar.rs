//! The headers of liars, and their reaction to feedback.

use flowstamp_laws::liar::{Hears, Params, Sender};
use flowstamp_laws::rcp;
use flowstamp_laws::sender::{Ack, Congestion, FlowView, Pacing, SenderLaw};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::vcp::{self, header::Code};
use flowstamp_laws::xcp::{self, Throughput, Window};
use flowstamp_laws::{Stamp, liar::Mask};

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
const RTT: Time = Time::from_millis(100);

fn liar<L: Mask>(params: Params) -> Sender<L> {
    assert_eq!(Sender::<L>::check(&params), Ok(()));
    Sender::new(&params, &FLOW)
}

/// Windows after each of these answers, in packets, of a flow that uses its window.
fn windows<L: Mask>(hears: Hears, answers: &[(Stamp, u16)]) -> Vec<f64> {
    let mut liar = liar::<L>(Params { hears, t_rho: None, ..Params::default() });
    let mut now = Time::from_secs(1);
    let window = |(stamp, bits): &(Stamp, u16)| {
        now += RTT;
        liar.on_ack(&Ack { bits: *bits, flight: 10, ..Ack::of_one(now, RTT, stamp) });
        liar.cwnd() / 1000.0
    };
    answers.iter().map(window).collect()
}

/// 4 packets more, 2 less, 1 more; what is heard as less than nothing is left out, taken for the largest, or not heard at all.
#[test]
fn changes_of_a_window() {
    let answers = [4000.0, -2000.0, 1000.0].map(|change| (Stamp([10_000.0, 0.1, change]), 0));
    for (hears, wanted) in [
        (Hears::All, [14.0, 12.0, 13.0]),
        (Hears::Increases, [14.0, 14.0, 15.0]),
        (Hears::Largest, [14.0, 18.0, 22.0]),
        (Hears::Nothing, [10.0, 10.0, 10.0]),
    ] {
        assert_eq!(windows::<xcp::Sender<Window>>(hears, &answers), wanted, "{hears:?}");
    }
}

/// Rates of 100, 50 and 200 kB/s: windows of R rtt and a packet.
#[test]
fn rates() {
    let answers = [1e5, 5e4, 2e5].map(|rate| (rcp::Header { rate, rtt_s: 0.1, age_bytes: 0.0 }.into(), 0));
    for (hears, wanted) in [
        (Hears::All, [11.0, 6.0, 21.0]),
        (Hears::Increases, [11.0, 11.0, 21.0]),
        (Hears::Largest, [11.0, 11.0, 21.0]),
        (Hears::Nothing, [11.0, 11.0, 11.0]),
    ] {
        let got = windows::<rcp::Sender>(hears, &answers);
        assert!(
            got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-9),
            "{hears:?}: {got:?}"
        );
    }
}

/// Overload cuts to 7/8; as high load it adds; as low load it multiplies by a sixteenth in `t_rho`; unheard it does nothing.
#[test]
fn codes() {
    let overload = [(Stamp::default(), Code::Overload.bits())];
    let window = |hears| windows::<vcp::Sender>(hears, &overload)[0];
    assert_eq!(window(Hears::All), 8.75);
    let high = windows::<vcp::Sender>(Hears::All, &[(Stamp::default(), Code::High.bits())])[0];
    let low = windows::<vcp::Sender>(Hears::All, &[(Stamp::default(), Code::Low.bits())])[0];
    assert!(10.0 < high && high < low, "{high} and {low}");
    assert_eq!(window(Hears::Increases), high);
    assert_eq!(window(Hears::Largest), low);
    assert_eq!(window(Hears::Nothing), 10.0);
}

/// Values in packets: 20 s and one packet in flight is an X of 20 s, in both of XCP's headers, as far as these have
/// room.
#[test]
fn packets_say_what_is_set() {
    let lies = Params { rtt: Some(Time::from_secs(15)), window: Some(1.0), ..Params::default() };
    let said = liar::<xcp::Sender<Window>>(lies).stamp(Time::ZERO, RTT);
    assert_eq!(said.0[..2], [1000.0, 15.0]);
    let said = liar::<xcp::Sender<Throughput>>(lies).stamp(Time::ZERO, RTT);
    assert_eq!(said.0[..2], [15.0, 15.0]);
    let wish = Params { rtt: Some(Time::ZERO), wish: Some(Rate::from_mbps(8.0)), ..Params::default() };
    let said = rcp::Header::from(liar::<rcp::Sender>(wish).stamp(Time::ZERO, RTT));
    assert_eq!((said.rate, said.rtt_s), (1e6, 0.0));
    assert_eq!(liar::<vcp::Sender>(Params { code: Some(0), ..Params::default() }).bits(), 0);
    // Told nothing, they say what honest senders do.
    let (liar, honest) = (
        liar::<xcp::Sender<Window>>(Params::default()),
        xcp::Sender::<Window>::new(&Default::default(), &FLOW),
    );
    assert_eq!(liar.stamp(Time::ZERO, RTT).0[..2], honest.stamp(Time::ZERO, RTT).0[..2]);
}

/// With its own pace it follows nothing else, except its limit of bytes in flight.
#[test]
fn a_pace_is_kept() {
    let pace = Some(Rate::from_mbps(8.0));
    let mut liar =
        liar::<xcp::Sender<Window>>(Params { hears: Hears::Nothing, pace, most: 50.0, ..Params::default() });
    for _ in 0..10 {
        liar.on_congestion(Time::ZERO, Congestion::Loss { flight: 10 });
        liar.on_congestion(Time::ZERO, Congestion::Timeout { flight: 10 });
        liar.on_ack(&Ack::of_one(Time::ZERO, RTT, &Stamp([0.0, 0.0, -1e9])));
        assert_eq!((liar.pacing(), liar.cwnd()), (pace.map(Pacing::from), 50_000.0));
    }
}

#[test]
fn what_a_header_cannot_carry_is_refused() {
    let refused = |check: fn(&Params) -> Result<(), flowstamp_laws::Refused>, params| {
        check(&params).map_err(|(name, _)| name).expect_err("it makes no sense")
    };
    let xcp = Sender::<xcp::Sender<Window>>::check;
    let vcp = Sender::<vcp::Sender>::check;
    let rcp = Sender::<rcp::Sender>::check;
    assert_eq!(refused(xcp, Params { code: Some(1), ..Params::default() }), "code");
    assert_eq!(refused(rcp, Params { window: Some(1.0), ..Params::default() }), "window");
    assert_eq!(refused(vcp, Params { rtt: Some(RTT), ..Params::default() }), "rtt");
    assert_eq!(refused(vcp, Params { code: Some(4), ..Params::default() }), "code");
    assert_eq!(refused(xcp, Params { window: Some(0.0), ..Params::default() }), "window");
    assert_eq!(refused(xcp, Params { pace: Some(Rate::ZERO), ..Params::default() }), "pace");
    assert_eq!(refused(xcp, Params { most: f64::NAN, ..Params::default() }), "most");
}

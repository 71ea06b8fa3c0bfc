//! The RCP sender's switch to TCP (Dukkipati 2007, section 6.2.2).

use flowstamp_laws::Stamp;
use flowstamp_laws::rcp::Header;
use flowstamp_laws::rcp::sender::{Params, Sender};
use flowstamp_laws::sender::{Ack, Congestion, Feedback, FlowView, SenderLaw};
use flowstamp_laws::units::Time;
use proptest::prelude::*;

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None };

fn answer(rate: f64) -> Stamp {
    Header { rate, rtt_s: 0.1, age_bytes: 0.0 }.into()
}

/// A sender that got `rate` in its handshake at 100 ms.
fn opened(switch: bool, rate: f64) -> Sender {
    let mut sender = Sender::new(&Params { switch, ..Params::default() }, &FLOW);
    sender.on_feedback(&Feedback {
        now: Time::from_millis(100),
        srtt: Time::from_millis(100),
        stamp: &answer(rate),
        bits: 0,
        carried: 0.0,
    });
    sender
}

fn ack(sender: &mut Sender, at_ms: u64, srtt_ms: u64, rate: f64) {
    let stamp = answer(rate);
    sender.on_ack(&Ack {
        flight: 50,
        ..Ack::of_one(Time::from_millis(at_ms), Time::from_millis(srtt_ms), &stamp)
    });
}

fn switched(sender: &Sender) -> Option<Time> {
    sender.report().fallen_back
}

#[test]
fn no_answer_means_tcp() {
    let asked = Header::from(
        Sender::new(&Params { switch: true, ..Params::default() }, &FLOW).stamp(Time::ZERO, Time::ZERO),
    );
    let sender = opened(true, asked.rate);
    assert_eq!(switched(&sender), Some(Time::from_millis(100)));
    assert_eq!(sender.cwnd(), 2000.0, "from the initial window");
    assert!(sender.pacing().is_none());
    assert_eq!(sender.stamp(Time::ZERO, Time::ZERO), Stamp::default(), "it asks for nothing any more");
    assert_eq!(switched(&opened(false, asked.rate)), None, "only where the scenario says so");
}

#[test]
fn a_doubled_rtt_without_a_lower_rate_means_tcp() {
    let mut sender = opened(true, 1e6);
    for at in 1..20 {
        ack(&mut sender, 100 + at * 50, 100, 1e6);
    }
    assert_eq!(switched(&sender), None);
    let mut at = 1100;
    while switched(&sender).is_none() {
        at += 50;
        assert!(at <= 1100 + 10 * 200, "not within ten round trips");
        ack(&mut sender, at, 200, 1e6);
    }
    // Reduced as after a loss: half of the lesser of window and flight.
    assert_eq!(sender.cwnd(), 25_000.0);
    // And never back.
    for _ in 0..100 {
        at += 50;
        ack(&mut sender, at, 100, 9e6);
    }
    assert!(switched(&sender).is_some());
    assert!(sender.pacing().is_none());
}

#[test]
fn a_loss_without_a_lower_rate_means_tcp() {
    let mut sender = opened(true, 1e6);
    ack(&mut sender, 200, 100, 1e6);
    sender.on_congestion(Time::from_millis(250), Congestion::Loss { flight: 40 });
    // Not in the round trip of the loss, but when the one after it has ended.
    ack(&mut sender, 310, 100, 1e6);
    assert_eq!(switched(&sender), None);
    ack(&mut sender, 420, 100, 1e6);
    assert_eq!(switched(&sender), Some(Time::from_millis(420)));
    assert_eq!(sender.cwnd(), 25_000.0);
    let mut sender = opened(true, 1e6);
    ack(&mut sender, 200, 100, 1e6);
    sender.on_congestion(Time::from_millis(450), Congestion::Timeout { flight: 40 });
    assert_eq!(switched(&sender), Some(Time::from_millis(450)));
    assert_eq!(sender.cwnd(), 1000.0);
}

proptest! {
    /// A router that answers its queue keeps its flows: while the rate falls by a tenth or more in four round trips, no
    /// loss and no delay is a sign.
    #[test]
    fn a_falling_rate_is_an_answer(fall in 0.6f64..0.96, losses in prop::collection::vec(0u64..60, 0..10)) {
        let mut sender = opened(true, 1e6);
        let mut rate = 1e6;
        let mut now = 100;
        // Three round trips before a first sign can come: the queue has to build up.
        for step in 0..60 {
            now += 100;
            ack(&mut sender, now, if step < 4 { 100 } else { 220 }, rate);
            if step >= 4 && losses.contains(&step) {
                sender.on_congestion(Time::from_millis(now), Congestion::Loss { flight: 30 });
            }
            rate *= fall;
            prop_assert_eq!(switched(&sender), None);
        }
    }

    /// Wherever the rate stands still, the first loss is a sign, two round trips later at most.
    #[test]
    fn no_false_negative(rate in 1e3f64..1e9, rounds in 6u64..50, wobble in 0.0f64..0.09) {
        let mut sender = opened(true, rate);
        for at in 1..=rounds {
            let given = if at % 2 == 0 { rate } else { rate * (1.0 - wobble) };
            ack(&mut sender, 100 + at * 100, 100, given);
        }
        sender.on_congestion(Time::from_millis(100 + rounds * 100 + 50), Congestion::Loss { flight: 30 });
        for at in rounds + 1..=rounds + 3 {
            ack(&mut sender, 100 + at * 100, 100, rate);
        }
        prop_assert!(switched(&sender).is_some());
    }
}

/// Without a handshake the first ack is the answer, and brings no rate: nothing may be sent at the wish.
#[test]
fn no_answer_to_the_first_data_means_tcp() {
    let mut sender = Sender::new(&Params { switch: true, ..Params::default() }, &FLOW);
    assert!(sender.pacing().is_none(), "nothing to keep to, and the first packet may have to leave twice");
    let asked = Header::from(sender.stamp(Time::ZERO, Time::ZERO)).rate;
    ack(&mut sender, 100, 100, asked);
    assert_eq!(switched(&sender), Some(Time::from_millis(100)));
    assert!(sender.cwnd() <= 4000.0, "{}", sender.cwnd());
}

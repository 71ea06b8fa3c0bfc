//! Losses by error and by congestion (Katabi 2002, section 1).

use flowstamp_laws::Stamp;
use flowstamp_laws::sender::{Ack, Congestion, FlowView, SenderLaw};
use flowstamp_laws::units::Time;
use flowstamp_laws::xcp::{Sender, Window, sender::Params};
use proptest::prelude::*;

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 20.0, app_rate: None };
const RTT: Time = Time::from_millis(100);

fn sender(error_losses: bool) -> Sender<Window> {
    Sender::new(&Params { error_losses, ..Params::default() }, &FLOW)
}

/// Twenty acks within the round trip `round`, each with this change of the window in bytes.
fn hears(law: &mut Sender<Window>, round: u64, change: f64) {
    for ack in 1..=20 {
        let now = RTT * round + Time::from_millis(5) * ack;
        let stamp = Stamp([20_000.0, 0.1, change]);
        law.on_ack(&Ack { flight: 20, in_recovery: true, ..Ack::of_one(now, RTT, &stamp) });
    }
}

/// The window before a loss, after it, and at the end of each of the two round trips that follow.
fn windows(error_losses: bool, before: f64, after: f64) -> [f64; 4] {
    let mut law = sender(error_losses);
    hears(&mut law, 0, before);
    let first = law.cwnd();
    law.on_congestion(RTT, Congestion::Loss { flight: 1000 });
    let second = law.cwnd();
    hears(&mut law, 1, after);
    let third = law.cwnd();
    hears(&mut law, 2, after);
    [first, second, third, law.cwnd()]
}

#[test]
fn a_loss_between_increases_is_an_error() {
    // Increases go on in fast recovery: 20 of 10 bytes in each round trip.
    assert_eq!(windows(true, 0.0, 10.0), [20_000.0, 20_000.0, 20_200.0, 20_400.0]);
    // By section 3.3 the loss halves the window, and increases wait for the end of fast recovery.
    assert_eq!(windows(false, 0.0, 10.0), [20_000.0, 10_000.0, 10_000.0, 10_000.0]);
}

#[test]
fn a_loss_after_or_before_decreases_is_congestion() {
    assert_eq!(windows(true, -10.0, 10.0), [19_800.0, 9_900.0, 9_900.0, 9_900.0]);
    // A round trip after the loss the window is halved, and the decreases of that round trip count, too.
    let [before, lost, _, later] = windows(true, 0.0, -10.0);
    assert_eq!([before, lost], [20_000.0, 20_000.0]);
    assert!((later - (20_000.0 / 2.0 - 300.0)).abs() <= 200.0, "{later}");
}

#[test]
fn a_timeout_is_congestion() {
    let mut law = sender(true);
    hears(&mut law, 0, 10.0);
    law.on_congestion(RTT, Congestion::Timeout { flight: 20 });
    assert_eq!(law.cwnd(), 1000.0);
}

proptest! {
    /// With decreases only, both senders have the same window. With increases only, no loss lowers it. It is finite and
    /// at least a packet in any case.
    #[test]
    fn the_verdict_follows_the_feedback(
        events in prop::collection::vec((-1e4..1e4f64, 0u32..8), 1..200),
    ) {
        let run = |error_losses, sign: fn(f64) -> f64| {
            let mut law = sender(error_losses);
            let mut windows = vec![];
            for (at, (change, event)) in events.iter().enumerate() {
                let now = Time::from_millis(7) * (at as u64 + 1);
                let stamp = Stamp([20_000.0, 0.1, sign(*change)]);
                law.on_ack(&Ack { flight: 20, ..Ack::of_one(now, RTT, &stamp) });
                if *event == 0 {
                    law.on_congestion(now, Congestion::Loss { flight: 20 });
                }
                windows.push(law.cwnd());
            }
            windows
        };
        prop_assert_eq!(run(true, |c| -c.abs() - 1e-3), run(false, |c| -c.abs() - 1e-3));
        prop_assert!(run(true, f64::abs).is_sorted());
        prop_assert!(run(true, |c| c).iter().all(|w| w.is_finite() && *w >= 1000.0));
    }
}

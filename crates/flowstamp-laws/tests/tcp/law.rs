//! Reno's window, and what the transport tells a law.

use super::pipe::{DELAY, Impairments, Noted, PACKET, measured};
use flowstamp_laws::sender::{Ack, Congestion, FlowView, RateSample, Recovery, SenderLaw};
use flowstamp_laws::tcp::reno::{self, Reno};
use flowstamp_laws::transport::{AckPacket, Params, Sender};
use flowstamp_laws::{Stamp, Time};

fn window(packets: f64) -> Reno {
    let params = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    Reno::new(&params, &FlowView { packet_bytes: PACKET, initial_window: packets, app_rate: None })
}

#[test]
fn the_window_is_halved_but_never_raised_by_a_loss() {
    let mut law = window(20.0);
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 16 });
    assert_eq!(law.cwnd(), 8_000.0);
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 16 });
    assert_eq!(law.cwnd(), 4_000.0);
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 1 });
    assert_eq!(law.cwnd(), 2_000.0); // RFC 5681 eq. 4
}

#[test]
fn a_second_timeout_leaves_ssthresh() {
    let mut law = window(20.0);
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 20 });
    assert_eq!((law.cwnd(), law.ssthresh()), (1_000.0, 10_000.0));
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 1 });
    assert_eq!((law.cwnd(), law.ssthresh()), (1_000.0, 10_000.0)); // RFC 5681 section 3.1
}

#[test]
fn congestion_avoidance_adds_one_packet_per_window() {
    let mut law = window(10.0);
    let stamp = Stamp::default();
    let mut ack = Ack { flight: 10, ..Ack::of_one(Time::ZERO, DELAY, &stamp) };
    (0..10).for_each(|_| law.on_ack(&ack));
    assert!((10_900.0..=11_000.0).contains(&law.cwnd()), "{}", law.cwnd());
    let before = law.cwnd();
    ack.in_recovery = true;
    law.on_ack(&ack);
    (ack.in_recovery, ack.window_limited) = (false, false);
    law.on_ack(&ack);
    assert_eq!(law.cwnd(), before);
}

#[test]
fn the_application_limits_and_the_law_is_told() {
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 10.0);
    let mut sender = Sender::new(&Params::default(), Recovery::Sack, None);
    let stamp = Stamp::default();
    for n in 1..=5u32 {
        let now = Time::from_millis(u64::from(n));
        assert_eq!(sender.next_packet(now, &law, PACKET, n).map(|p| p.seq), Some(n - 1));
        assert_eq!(sender.next_packet(now, &law, PACKET, n), None);
        let ack =
            AckPacket { cumulative: n, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
        sender.on_ack(now, &mut law, PACKET, &ack);
    }
    assert_eq!(law.limited, [false; 5]);
    assert_eq!(law.cwnd(), 10_000.0);
    let now = Time::from_secs(1);
    while sender.next_packet(now, &law, PACKET, u32::MAX).is_some() {}
    assert_eq!(sender.flight(), 10);
    let ack = AckPacket { cumulative: 6, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
    sender.on_ack(now, &mut law, PACKET, &ack);
    assert_eq!(law.limited.last(), Some(&true));
    assert_eq!(law.cwnd(), 11_000.0);
}

/// The link carries a packet in 0.1 ms, and an ack comes 40.1 ms after its packet has left the head of the line.
#[test]
fn the_delivery_rate_is_that_of_window_or_link() {
    let rate = |sample: &RateSample| sample.rate(PACKET).bytes_per_sec() / f64::from(PACKET);
    // A window of 100 packets takes 40.1 ms round trips, with the last packet's 9.9 ms behind the first.
    let law = measured(100.0, 2000, &Impairments::default(), &Params::default());
    let last = law.rates[law.rates.len() - 150];
    assert!((rate(&last) / (100.0 / 0.0401) - 1.0).abs() < 0.01, "{last:?}");
    // One of 800 fills the link.
    let law = measured(800.0, 8000, &Impairments::default(), &Params::default());
    let last = law.rates[law.rates.len() - 900];
    assert!((rate(&last) / 10_000.0 - 1.0).abs() < 0.01, "{last:?}");
    assert!(law.rates.iter().all(|s| rate(s) <= 10_000.0 * (1.0 + 1e-9)));
    // The flow's end leaves window open: what is sent at that time is the application's rate.
    assert!(!law.rates.iter().any(|s| s.app_limited), "no packet left after the data had run out");
}

#[test]
fn a_sample_of_an_application_that_is_slow_says_so() {
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 50.0);
    law.wants_rate = true;
    let agreed = law.agreed(&Params::default(), Recovery::Reno);
    let mut sender = Sender::new(&Params::default(), agreed, None);
    let stamp = Stamp::default();
    // A packet each 10 ms, answered 40 ms later: 100 packets/s, whatever the window.
    let mut now = Time::ZERO;
    let mut answered = 0;
    for packet in 0..60 {
        assert!(sender.next_packet(now, &law, PACKET, packet + 1).is_some());
        assert!(sender.next_packet(now, &law, PACKET, packet + 1).is_none());
        if packet >= 4 {
            answered += 1;
            let sent_at = now - Time::from_millis(40);
            let cumulative = answered;
            let ack = AckPacket { cumulative, sack: &[], ecn_echo: false, sent_at, stamp: &stamp, bits: 0 };
            sender.on_ack(now, &mut law, PACKET, &ack);
        }
        now += Time::from_millis(10);
    }
    assert!(law.rates.len() > 50 && law.rates[1..].iter().all(|s| s.app_limited), "{:?}", law.rates);
    let rates: Vec<_> = law.rates[10..].iter().map(|s| s.rate(PACKET).bytes_per_sec() / 1000.0).collect();
    assert!(rates.iter().all(|r| (r - 100.0).abs() < 1e-6), "{rates:?}");
}

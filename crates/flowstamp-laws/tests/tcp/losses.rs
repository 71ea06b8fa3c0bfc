//! Losses as reported to a law that asks for delivery rates (draft-ietf-ccwg-bbr sections 2.3, 4.1.2, 5.5.10.2 and
//! 5.5.11).

use crate::pipe::{Impairments, MODES, losing, measured, measured_with, tcp};
use flowstamp_laws::sender::{LostPacket, Recovery};
use flowstamp_laws::transport::Params;
use proptest::prelude::*;

/// A window of 20 leaves at once, so that packet n has n + 1 in flight when it has left, and none was lost before it. Each of three
/// is found by the third ack beyond it: those of 12, 13 and 14 find 10 and 11, as the ack of 15 is missing that of 16 finds nothing,
/// and the ack of 18 finds 15.
#[test]
fn each_loss_is_told_once_with_what_was_in_flight() {
    let law = measured(20.0, 200, &losing(&[10, 11, 15]), &Params::default());
    let lost = |seq, tx_in_flight, lost, delivered| LostPacket {
        seq,
        tx_in_flight,
        lost,
        delivered,
        app_limited: false,
        selective: true,
    };
    // Delivered: 0 to 9 and 12 to 14; then 16, 17 and 18, too.
    assert_eq!(law.lost, [lost(10, 11, 1, 13), lost(11, 12, 2, 13), lost(15, 16, 3, 16)]);
    assert!(law.spurious.is_empty());
}

/// The losses while a packet was in flight: all three where it left into a full window before any loss was found;
/// nothing where it left when all was repaired.
#[test]
fn a_sample_knows_what_was_lost_in_its_flight() {
    let law = measured(20.0, 200, &losing(&[10, 11, 15]), &Params::default());
    assert_eq!(law.rates.iter().map(|sample| sample.lost).max(), Some(3));
    // The first is that of packet 18, whose ack finds the third.
    let in_flight: Vec<_> = law.rates.iter().filter(|s| s.lost == 3).map(|s| s.tx_in_flight).collect();
    assert!(in_flight[0] == 19 && in_flight[1..].iter().all(|n| *n == 20), "{in_flight:?}");
    assert_eq!(law.rates.last().map(|sample| sample.lost), Some(0));
    // A window that is always full, except for the first packets and the repair.
    let full = law.rates.iter().filter(|sample| sample.window_full).count();
    assert!(full > 150, "{full}");
}

/// An application with ten packets in all: the window of 20 is never full.
#[test]
fn a_window_that_is_not_filled_is_not_full() {
    let law = measured(20.0, 10, &Impairments::default(), &Params::default());
    assert!(law.rates.iter().all(|sample| !sample.window_full && !sample.restarted));
}

/// All of a window is lost but what a timeout then finds: each of its packets is told, with what had left by then.
#[test]
fn a_timeout_finds_all_that_is_out() {
    for recovery in MODES {
        let law = measured_with(recovery, 4.0, 4, &losing(&[0, 1, 2, 3]), &Params::default());
        assert_eq!(law.timeouts.len(), 1);
        let told: Vec<_> = law.lost.iter().map(|p| (p.seq, p.tx_in_flight, p.lost, p.delivered)).collect();
        assert_eq!(told, [(0, 1, 1, 0), (1, 2, 2, 0), (2, 3, 3, 0), (3, 4, 4, 0)], "{recovery:?}");
        assert!(law.spurious.is_empty(), "{recovery:?}");
    }
}

/// Without selective acks a repair finds a loss a round trip, and says that it can find no more.
#[test]
fn without_selective_acks_a_loss_is_found_each_round_trip() {
    let law = measured_with(Recovery::NewReno, 20.0, 60, &losing(&[5, 9]), &Params::default());
    let told: Vec<_> = law.lost.iter().map(|p| (p.seq, p.tx_in_flight, p.lost, p.selective)).collect();
    assert_eq!(told, [(5, 6, 1, false), (9, 10, 2, false)]);
}

/// A packet that arrives after the four behind it was not lost: its repair was vain. It is told as soon as the packet's own ack
/// comes, which echoes when it left first.
#[test]
fn a_packet_that_was_only_late_is_told() {
    // 100 us a packet on the link: it arrives between the fifth and the sixth after it.
    let late = || Impairments { late: Box::new(|n| if n == 10 { 550 } else { 0 }), ..Impairments::default() };
    let law = measured(20.0, 200, &late(), &Params::default());
    assert_eq!(law.lost.iter().map(|p| p.seq).collect::<Vec<_>>(), [10]);
    assert_eq!(law.spurious, [16], "0 to 15 have arrived, and 10 with them");
    // Beside one that was lost it proves nothing: the repair was not vain.
    let path = Impairments { lose: Box::new(|n, _| n == 12), ..late() };
    let law = measured(20.0, 200, &path, &Params::default());
    assert_eq!(law.lost.iter().map(|p| p.seq).collect::<Vec<_>>(), [10, 12]);
    assert!(law.spurious.is_empty());
}

/// A round trip that takes longer than the timer: all that it found lost was under way.
#[test]
fn a_timer_that_was_too_short_is_told() {
    let path =
        Impairments { late: Box::new(|n| if n < 4 { 2_000_000 } else { 0 }), ..Impairments::default() };
    let law = measured(4.0, 4, &path, &Params::default());
    // Packet 0 is sent again each time that the timer expires, and what is sent again arrives first: that is no proof.
    assert!(!law.timeouts.is_empty() && law.lost.len() >= 4);
    assert!(law.spurious.is_empty());
    let params = Params { initial_rto: Some(flowstamp_laws::Time::from_millis(30)), ..Params::default() };
    let params = Params { min_rto: flowstamp_laws::Time::from_millis(30), ..params };
    let law = measured(4.0, 4, &Impairments::default(), &params);
    assert_eq!((law.timeouts.len(), law.lost.len(), law.spurious), (1, 4, vec![4]));
}

/// A law that does not ask hears nothing, as its notes assert.
#[test]
fn a_law_that_does_not_ask_is_not_told() {
    let (_, law) = tcp(&Params::default(), Recovery::Sack, 20.0, 200, &losing(&[10, 11, 15]));
    assert!(law.lost.is_empty() && law.congestion.len() == 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// On a path that keeps the order and loses no ack, no packet is found lost that was not, none sent once is missed, and no
    /// repair is vain.
    #[test]
    fn what_is_told_is_what_was_lost(lost in prop::collection::btree_set(0u32..150, 0..40), window in 4u32..60) {
        let seqs: Vec<u32> = lost.iter().copied().collect();
        let law = measured(f64::from(window), 200, &losing(&seqs), &Params::default());
        if law.timeouts.is_empty() {
            let mut told: Vec<u32> = law.lost.iter().map(|p| p.seq).collect();
            told.sort_unstable();
            // A packet that is resent before it is found lost is not reported (deviation 4 of the rates).
            prop_assert!(told.iter().all(|seq| lost.contains(seq)), "{told:?} of {lost:?}");
            prop_assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "twice: {told:?}");
            prop_assert!(told.len() + 3 >= lost.len(), "{told:?} of {lost:?}");
        }
        prop_assert!(law.spurious.is_empty());
        for packet in &law.lost {
            prop_assert!(packet.lost >= 1 && packet.tx_in_flight >= 1 && packet.tx_in_flight <= window + 2);
        }
    }
}

//! Losses: how each kind of recovery finds and repairs them.

use super::pipe::{Impairments, MODES, Noted, feed, in_flight, losing, run, tcp};
use flowstamp_laws::Time;
use flowstamp_laws::sender::{Recovery, SenderLaw};
use flowstamp_laws::tcp::reno::{self, NewReno, Reno, Sack};
use flowstamp_laws::transport::Params;

#[test]
fn without_loss_nothing_is_sent_twice_and_slow_start_doubles() {
    for recovery in MODES {
        let mut law = Noted::<Sack>::with(&reno::Params::default(), 2.0);
        let run = run(&Params::default(), recovery, 126, &mut law, &Impairments::default());
        assert_eq!((run.retransmissions, run.timeouts, run.lost), (0, 0, 0));
        // 2 + 4 + 8 + 16 + 32 + 64 = 126: six round trips of 40.1 ms and the last window's 63 packets behind the first.
        let expected = 6.0 * 40.1 + 63.0 * 0.1;
        let took = run.finished.as_secs_f64() * 1e3;
        assert!((took - expected).abs() < 0.5, "{took} ms, expected {expected}");
    }
}

#[test]
fn one_loss_costs_one_retransmission_and_one_halving() {
    for recovery in MODES {
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &losing(&[50]));
        assert_eq!((run.retransmissions, run.timeouts), (1, 0), "{recovery:?}");
        assert_eq!(law.congestion.len(), 1);
        // The window had grown to 41 at the most; FlightSize leaves out the two packets of limited transmit.
        assert!((40..=41).contains(&law.congestion[0]), "{:?}", law.congestion);
        let least = run.windows.iter().copied().fold(f64::MAX, f64::min);
        assert!((least - f64::from(law.congestion[0]) / 2.0).abs() < 1e-9, "{least}");
    }
}

#[test]
fn the_very_first_packet_can_be_fast_retransmitted() {
    for recovery in MODES {
        let (run, _) = tcp(&Params::default(), recovery, 10.0, 60, &losing(&[0]));
        assert_eq!((run.retransmissions, run.timeouts), (1, 0), "{recovery:?}");
    }
}

#[test]
fn sack_and_newreno_repair_a_window_with_many_losses_in_one_event() {
    let seqs: Vec<u32> = (50..64).step_by(3).collect();
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 600, &losing(&seqs));
        assert_eq!(run.timeouts, 0, "{recovery:?}");
        assert_eq!(run.retransmissions as usize, seqs.len(), "{recovery:?}");
        assert_eq!(law.congestion.len(), 1, "{recovery:?}");
    }
}

#[test]
fn sack_repairs_half_a_window_within_two_round_trips_of_the_loss() {
    let seqs: Vec<u32> = (100..300).step_by(2).collect();
    let (run, law) = tcp(&Params::default(), Recovery::Sack, 400.0, 3000, &losing(&seqs));
    assert_eq!((run.timeouts, run.retransmissions), (0, 100));
    assert_eq!(law.congestion.len(), 1);
    let (clean, _) = tcp(&Params::default(), Recovery::Sack, 200.0, 3000, &Impairments::default());
    assert!(run.finished < clean.finished + Time::from_millis(80), "{} {}", run.finished, clean.finished);
}

#[test]
fn newreno_sends_one_hole_per_round_trip() {
    let (run, _) = tcp(&Params::default(), Recovery::NewReno, 40.0, 600, &losing(&[50, 53, 56]));
    let again: Vec<u32> = run.sent.iter().filter(|p| p.retransmission).map(|p| p.seq).collect();
    assert_eq!(again, [50, 53, 56]);
    assert_eq!(run.timeouts, 0);
}

/// RFC 6582 section 3.2 step 1: no fast retransmit unless more is acknowledged than was sent when the last one began.
#[test]
fn a_further_loss_of_a_window_is_no_second_fast_retransmit() {
    for (recovery, timeouts) in [(Recovery::Reno, 1), (Recovery::NewReno, 0)] {
        // NewReno repairs the second hole in the same recovery, Reno leaves it to the timer.
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 600, &losing(&[50, 51]));
        assert_eq!((run.retransmissions, run.timeouts), (2, timeouts), "{recovery:?}");
        assert_eq!((law.congestion.len(), law.timeouts.len()), (1, timeouts as usize), "{recovery:?}");
    }
}

#[test]
fn a_loss_of_the_next_window_is_a_second_fast_retransmit() {
    for recovery in MODES {
        // All that was sent before the third duplicate ack: 41 packets from 50 on and two of limited transmit.
        let mut lost = losing(&[50]);
        let (run, _) = tcp(&Params::default(), recovery, 40.0, 600, &lost);
        let resent = run.sent.iter().position(|p| p.retransmission).expect("one was lost");
        let recover = run.sent[..resent].iter().map(|p| p.seq).max().expect("before it some were sent");
        assert_eq!(recover, 92, "{recovery:?}");
        for (second, fast) in [(recover, 0), (recover + 1, 0), (recover + 2, 1)] {
            lost.lose = Box::new(move |_, p| !p.retransmission && (p.seq == 50 || p.seq == second));
            let (run, law) = tcp(&Params::default(), recovery, 40.0, 600, &lost);
            assert_eq!(run.retransmissions, 2);
            // Sack's scoreboard tells losses of either window apart, NewReno's recovery is over with the whole of the first.
            let repaired =
                fast == 1 || recovery == Recovery::Sack || second == recover && recovery == Recovery::NewReno;
            assert_eq!(run.timeouts, u32::from(!repaired), "{recovery:?} {second}");
            assert!(law.congestion.len() <= 2);
        }
    }
}

#[test]
fn limited_transmit_saves_a_small_window_from_the_timer() {
    for recovery in MODES {
        for limited_transmit in [false, true] {
            let params = Params { limited_transmit, ..Params::default() };
            // Three packets in flight: two duplicate acks, unless they let new packets go. Initial ssthresh 2 and
            // growth by 1/cwnd keep the window below 4.
            let (run, _) = tcp(&params, recovery, 3.0, 30, &losing(&[1]));
            assert_eq!(run.timeouts, u32::from(!limited_transmit), "{recovery:?} {limited_transmit}");
        }
    }
}

#[test]
fn the_rescue_retransmission_repairs_a_lost_tail() {
    // The first loss starts a recovery in which the last packet's loss would otherwise wait for the timer.
    let (run, _) = tcp(&Params::default(), Recovery::Sack, 40.0, 60, &losing(&[45, 59]));
    assert_eq!((run.timeouts, run.retransmissions), (0, 2));
}

#[test]
fn the_third_duplicate_ack_resends_at_once_and_restarts_the_timer() {
    for recovery in MODES {
        let (mut sender, mut law) = in_flight(recovery, 20);
        let at = Time::from_millis;
        assert_eq!(feed(&mut sender, &mut law, at(40), 0, &[(1, 2)]), [(20, false)], "{recovery:?}");
        assert_eq!(feed(&mut sender, &mut law, at(41), 0, &[(1, 3)]), [(21, false)]);
        assert_eq!(feed(&mut sender, &mut law, at(42), 0, &[(1, 4)]), [(0, true)]);
        assert!(sender.in_recovery());
        assert_eq!(law.congestion, [20]);
        assert_eq!(sender.deadline(), at(42) + sender.rto());
    }
}

#[test]
fn a_partial_ack_deflates_the_window_by_what_it_acknowledges_less_one() {
    let (mut sender, mut law) = in_flight(Recovery::NewReno, 10);
    let at = Time::from_millis;
    // 0 and 5 are lost; 1 to 4 and 6 to 9 make eight duplicate acks.
    let sent: Vec<_> = (0..8).flat_map(|n| feed(&mut sender, &mut law, at(40 + n), 0, &[])).collect();
    // Window 5, inflated by 8: 13 outstanding.
    assert_eq!(sent, [(10, false), (11, false), (0, true), (12, false)]);
    // 13 - 5 outstanding; window 5 + 8 - 5 + 1 = 9: the hole, and one new packet.
    assert_eq!(feed(&mut sender, &mut law, at(80), 5, &[]), [(5, true), (13, false)]);
    assert!(sender.in_recovery());
    let deadline = sender.deadline();
    // Impatient: a second partial ack leaves the timer alone.
    feed(&mut sender, &mut law, at(120), 7, &[]);
    assert_eq!(sender.deadline(), deadline);
    // A full ack ends the inflation and restarts the timer.
    feed(&mut sender, &mut law, at(160), 13, &[]);
    assert!(!sender.in_recovery());
    assert_eq!(sender.deadline(), at(160) + sender.rto());
    assert_eq!(sender.flight(), 5);
}

#[test]
fn the_law_is_told_of_recovery_and_does_not_grow_in_it() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &losing(&[50, 60]));
        // NewReno hears of the partial and the full ack; Sack of every selective ack of the round trips between.
        let least = if recovery == Recovery::Sack { 36 } else { 2 };
        assert!(law.in_recovery >= least, "{recovery:?}: {}", law.in_recovery);
        let start = run.windows.iter().position(|w| *w < 40.0).expect("a reduction");
        let growth = run.windows[start..].windows(2).filter(|w| w[1] > w[0]).count();
        let acks = law.limited.len() - law.in_recovery;
        assert!(growth <= acks, "{growth} {acks}");
    }
}

#[test]
fn the_three_names_differ_in_their_repair() {
    let params = reno::Params::default();
    assert_eq!(Reno::traits(&params).recovery, Recovery::Reno);
    assert_eq!(NewReno::traits(&params).recovery, Recovery::NewReno);
    assert_eq!(Sack::traits(&params).recovery, Recovery::Sack);
}

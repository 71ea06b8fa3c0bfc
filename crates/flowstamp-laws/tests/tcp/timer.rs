//! The retransmission timer: when it runs out, and what is sent after it has.

use super::pipe::{DELAY, Impairments, MODES, Noted, PACKET, feed, in_flight, tcp};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::tcp::reno::{self, Reno};
use flowstamp_laws::transport::{AckPacket, Params, Sender};
use flowstamp_laws::{Stamp, Time};
use std::collections::{BTreeSet, VecDeque};

#[test]
fn a_lost_retransmission_costs_a_timeout_and_the_law_hears_of_it_once() {
    for recovery in MODES {
        let path = Impairments {
            lose: Box::new(|n, p| p.seq == 50 && (n < 60 || p.retransmission && n < 115)),
            ..Impairments::default()
        };
        let (run, law) = tcp(&Params::default(), recovery, 40.0, 400, &path);
        assert!(run.lost >= 2);
        assert_eq!((run.timeouts, law.timeouts.len()), (1, 1), "{recovery:?}");
        if recovery == Recovery::Sack {
            assert_eq!(run.retransmissions, 2, "what is sacked is not sent again");
        }
    }
}

#[test]
fn the_timer_doubles_up_to_its_bound() {
    let params = Params { max_rto: Some(Time::from_secs(10)), ..Params::default() };
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 2.0);
    let mut sender = Sender::new(&params, Recovery::NewReno, Some(5));
    let mut now = Time::ZERO;
    let mut waits = vec![];
    for _ in 0..6 {
        while sender.next_packet(now, &law, PACKET, u32::MAX).is_some() {}
        let deadline = sender.deadline();
        waits.push((deadline - now).as_secs_f64());
        now = deadline;
        sender.on_timeout(now, &mut law);
    }
    assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]); // RFC 6298 (2.1), (5.5), (2.5)
    assert_eq!(law.law.ssthresh(), 2000.0);
    // An ack ends the backoff: 20 ms is the first sample, so RTO = 3 * 20 ms, below the least, 200 ms.
    let stamp = Stamp::default();
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(0));
    let sent_at = now;
    now += Time::from_millis(20);
    let ack = AckPacket { cumulative: 1, sack: &[], ecn_echo: false, sent_at, stamp: &stamp, bits: 0 };
    assert_eq!(sender.on_ack(now, &mut law, PACKET, &ack), 1);
    assert_eq!(sender.rto(), Time::from_millis(200));
}

#[test]
fn after_a_timeout_the_next_packet_jumps_over_what_is_acknowledged() {
    let params = Params::default();
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 8.0);
    let mut sender = Sender::new(&params, Recovery::NewReno, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    assert_eq!(sender.next_seq(), 8);
    let now = sender.deadline();
    sender.on_timeout(now, &mut law);
    assert_eq!(law.timeouts, [8]);
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(0));
    assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX), None);
    let stamp = Stamp::default();
    let ack = AckPacket { cumulative: 6, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
    assert_eq!(sender.on_ack(now + DELAY, &mut law, PACKET, &ack), 6);
    let next: Vec<_> =
        core::iter::from_fn(|| sender.next_packet(now + DELAY, &law, PACKET, u32::MAX)).collect();
    assert_eq!(next.iter().map(|p| (p.seq, p.retransmission)).collect::<Vec<_>>(), [(6, true), (7, true)]);
}

#[test]
fn duplicate_acks_after_a_timeout_start_no_recovery() {
    // RFC 6582 section 4: they come from what was sent twice, not from a new loss.
    let params = Params { limited_transmit: false, ..Params::default() };
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 8.0);
    let mut sender = Sender::new(&params, Recovery::NewReno, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let now = sender.deadline();
    sender.on_timeout(now, &mut law);
    sender.next_packet(now, &law, PACKET, u32::MAX);
    let stamp = Stamp::default();
    for cumulative in [2, 2, 2, 2, 2] {
        let ack = AckPacket { cumulative, sack: &[], ecn_echo: false, sent_at: now, stamp: &stamp, bits: 0 };
        sender.on_ack(now, &mut law, PACKET, &ack);
        while sender.next_packet(now, &law, PACKET, u32::MAX).is_some() {}
    }
    assert!(!sender.in_recovery());
    assert!(law.congestion.is_empty());
}

#[test]
fn limited_transmit_goes_on_after_a_timeout() {
    // RFC 5681 section 3.2 step 1 asks for it at any duplicate ack; section 3.2 of RFC 6582 forbids the fast retransmit alone.
    let stamp = Stamp::default();
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        for limited_transmit in [false, true] {
            let params = Params { limited_transmit, ..Params::default() };
            let mut law = Noted::<Reno>::with(&reno::Params::default(), 8.0);
            let mut sender = Sender::new(&params, recovery, None);
            while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
            let now = sender.deadline();
            sender.on_timeout(now, &mut law);
            assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(0));
            // All but the last had arrived. The window of 2 packets has this packet and a new one.
            let sent = [7, 7, 7, 7].map(|cumulative| {
                let ack = AckPacket {
                    cumulative,
                    sack: &[],
                    ecn_echo: false,
                    sent_at: now,
                    stamp: &stamp,
                    bits: 0,
                };
                sender.on_ack(now, &mut law, PACKET, &ack);
                core::iter::from_fn(|| sender.next_packet(now, &law, PACKET, u32::MAX))
                    .map(|p| p.seq)
                    .collect::<Vec<_>>()
            });
            let more = |seq| if limited_transmit { vec![seq] } else { vec![] };
            assert_eq!(sent, [vec![7, 8], more(9), more(10), vec![]], "{recovery:?}");
            assert!(!sender.in_recovery());
            assert!(law.congestion.is_empty());
        }
    }
}

#[test]
fn sack_restarts_the_timer_as_the_first_packet_is_sent_again_and_at_no_later_repair() {
    let (mut sender, mut law) = in_flight(Recovery::Sack, 20);
    let at = Time::from_millis;
    // 1 is lost too. Half of the window must arrive before the pipe lets it go.
    assert!(feed(&mut sender, &mut law, at(40), 0, &[(2, 5)]).contains(&(0, true)));
    assert_eq!(sender.deadline(), at(40) + sender.rto());
    let sent = (6..20)
        .any(|n| feed(&mut sender, &mut law, at(40 + u64::from(n)), 0, &[(2, n)]).contains(&(1, true)));
    assert!(sent, "1 is sent again");
    assert_eq!(sender.deadline(), at(40) + sender.rto());
}

/// However many repairs go on, the packet that holds the window back is sent again after a timeout.
#[test]
fn losses_without_end_do_not_keep_a_lost_retransmission_waiting() {
    let (mut sender, mut law) = in_flight(Recovery::Sack, 40);
    let at = Time::from_millis;
    // Every fourth packet is lost, and the first one each time.
    let arrives = |seq: u32, again: bool| seq != 0 && (again || seq % 4 != 1);
    let mut flying: VecDeque<_> = (0..40).filter(|&seq| arrives(seq, false)).map(|seq| (40, seq)).collect();
    let (mut sacked, mut resent, mut repaired) = (BTreeSet::new(), None, 0);
    while let Some((ms, seq)) = flying.pop_front().filter(|&(ms, _)| at(ms) < sender.deadline()) {
        assert!(ms < 2000, "the timer does not expire");
        sacked.insert(seq);
        let blocks: Vec<_> = sacked.iter().map(|&seq| (seq, seq + 1)).collect();
        for (seq, again) in feed(&mut sender, &mut law, at(ms), 0, &blocks) {
            if seq == 0 {
                assert_eq!(resent.replace(at(ms)), None, "once before the timer says so");
            }
            repaired += usize::from(again && seq != 0);
            if arrives(seq, again) {
                flying.push_back((ms + 40, seq));
            }
        }
    }
    assert!(repaired > 10 && !flying.is_empty(), "{repaired} repairs, and the timer ran out");
    assert_eq!(sender.deadline(), resent.expect("0 is sent again") + sender.rto());
}

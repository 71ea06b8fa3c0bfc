//! Both ends of a flow: acks, its end, its size.

use super::pipe::{DELAY, Impairments, MODES, Noted, PACKET, tcp};
use flowstamp_laws::registry::AnySender;
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::tcp::reno::{self, Reno};
use flowstamp_laws::transport::{AckInfo, AckPacket, DataPacket, Params, Receiver, Sender};
use flowstamp_laws::{Stamp, Time};

#[test]
fn delayed_acks_halve_the_acks() {
    let params = Params { delayed_acks: true, ..Params::default() };
    let (with, _) = tcp(&params, Recovery::Sack, 20.0, 400, &Impairments::default());
    let (without, _) = tcp(&Params::default(), Recovery::Sack, 20.0, 400, &Impairments::default());
    assert_eq!((with.acks, without.acks), (200, 400));
}

#[test]
fn a_stopped_flow_still_repairs_what_is_in_flight() {
    for recovery in MODES {
        let mut law = Noted::<Reno>::with(&reno::Params::default(), 4.0);
        let mut sender = Sender::new(&Params::default(), recovery, None);
        while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
        sender.stop();
        assert!(!sender.is_complete());
        let stamp = Stamp::default();
        let mut ack = AckPacket {
            cumulative: 3,
            sack: &[],
            ecn_echo: false,
            sent_at: Time::ZERO,
            stamp: &stamp,
            bits: 0,
        };
        sender.on_ack(DELAY, &mut law, PACKET, &ack);
        assert_eq!(sender.next_packet(DELAY, &law, PACKET, u32::MAX), None);
        let now = sender.deadline();
        sender.on_timeout(now, &mut law);
        assert_eq!(sender.next_packet(now, &law, PACKET, u32::MAX).map(|p| p.seq), Some(3));
        ack.cumulative = 4;
        sender.on_ack(now + DELAY, &mut law, PACKET, &ack);
        assert!(sender.is_complete());
        assert_eq!(sender.deadline(), Time::MAX);
    }
}

#[test]
fn acks_of_what_was_never_sent_are_ignored() {
    let mut law = Noted::<Reno>::with(&reno::Params::default(), 4.0);
    let mut sender = Sender::new(&Params::default(), Recovery::Sack, None);
    while sender.next_packet(Time::ZERO, &law, PACKET, u32::MAX).is_some() {}
    let stamp = Stamp::default();
    for (cumulative, sack) in [(5, &[][..]), (u32::MAX, &[]), (0, &[(90, 100)]), (0, &[(3, 1)])] {
        let ack =
            AckPacket { cumulative, sack, ecn_echo: false, sent_at: Time::ZERO, stamp: &stamp, bits: 0 };
        assert_eq!(sender.on_ack(DELAY, &mut law, PACKET, &ack), 0);
    }
    assert_eq!(sender.unacked(), 0);
}

#[test]
fn a_flow_is_small() {
    assert!(size_of::<Sender>() <= 200, "{}", size_of::<Sender>());
    assert!(size_of::<Receiver>() <= 120, "{}", size_of::<Receiver>());
    assert!(size_of::<AckInfo>() <= 80, "{}", size_of::<AckInfo>());
    // `AnySender` has the size of its largest variant, RCP or XCP.
    assert!(
        size_of::<Reno>() <= 56 && 56 < size_of::<AnySender>(),
        "{} {}",
        size_of::<Reno>(),
        size_of::<AnySender>()
    );
}

/// The sixteen bits of a data packet come back; of several that one ack answers, the newest's.
#[test]
fn the_newest_bits_are_echoed() {
    let params = Params { delayed_acks: true, ..Params::default() };
    let mut receiver = Receiver::new(&params, Recovery::Sack);
    let stamp = Stamp::default();
    let data =
        |seq, bits| DataPacket { seq, ce: false, cwr: false, sent_at: Time::ZERO, stamp: &stamp, bits };
    assert!(receiver.on_data(Time::ZERO, &data(0, 7), |_, _| {}).is_none());
    assert_eq!(receiver.on_data(Time::ZERO, &data(1, 3), |_, _| {}).map(|a| a.bits), Some(3));
    assert!(receiver.on_data(Time::ZERO, &data(2, 0xffff), |_, _| {}).is_none());
    assert_eq!(receiver.on_timer(receiver.deadline()).map(|a| a.bits), Some(0xffff));
}

//! DCTCP's estimate and window against RFC 8257 section 3.3, line by line, and what must hold whatever is marked.

use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::sender::{Ack, Congestion, Echo, FlowView, Recovery, SenderLaw};
use flowstamp_laws::tcp::dctcp::{Dctcp, Params, least_threshold};
use flowstamp_laws::tcp::{Sack, reno};
use flowstamp_laws::transport::{Agreed, Params as Transport};
use flowstamp_laws::{Rate, Ratio, Stamp, Time};
use proptest::prelude::*;

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };

/// A law whose acks come one by one, and the number of packets that they have acknowledged.
struct Acked {
    law: Dctcp,
    delivered: u32,
}

impl Acked {
    fn new(params: &Params) -> Self {
        Self { law: Dctcp::new(params, &FLOW), delivered: 0 }
    }

    /// An ack of `newly` packets of `flight`.
    fn ack(&mut self, newly: u32, marked: bool, flight: u32) {
        let stamp = Stamp::default();
        self.delivered += newly;
        self.law.on_ack(&Ack {
            newly_acked: newly,
            marked: if marked { newly } else { 0 },
            delivered: self.delivered,
            flight,
            ..Ack::of_one(Time::ZERO, Time::from_millis(1), &stamp)
        });
    }

    fn alpha(&self) -> f64 {
        self.law.growth().alpha()
    }
}

/// 2010 eq. 13, K > C RTT / 7: 10 Gb/s and 98 us have 122,500 bytes on the way, and a seventh of them is 17,500.
#[test]
fn the_threshold_is_a_seventh_of_the_bandwidth_delay_product() {
    let threshold = least_threshold(Rate::from_bps(1e10), Time::from_micros(98));
    assert!((threshold - 17_500.0).abs() < 1e-6, "{threshold}");
}

#[test]
fn it_asks_for_an_echo_per_packet_and_selective_acks() {
    let law = SenderSpec::Dctcp(Params::default()).traits();
    let agreed = Agreed::between(&Transport::default(), &law);
    assert_eq!(
        (agreed.echo, agreed.recovery, agreed.delivery_rate),
        (Echo::PerPacket, Recovery::Sack, false)
    );
    let classic = Transport { echo: Some(Echo::Classic), ..Transport::default() };
    assert_eq!(Agreed::between(&classic, &law).echo, Echo::Classic);
}

/// RFC 8257 section 3.3 in its own variables, in bytes and sequence numbers, for a flow without losses.
#[test]
fn alpha_is_that_of_section_3_3() {
    let mut acked = Acked::new(&Params::default());
    let (mut window_end, mut bytes_acked, mut bytes_marked, mut alpha) = (0u64, 0.0, 0.0, 1.0f64);
    let (mut una, mut nxt) = (0u64, 10_000u64);
    for n in 0..5_000u64 {
        let (newly, marked) = (1 + n % 2, n % 7 < 3);
        let flight = (nxt - una) / 1000;
        acked.ack(newly as u32, marked, flight as u32);
        let seg_ack = una + newly * 1000;
        bytes_acked += (seg_ack - una) as f64; // steps 1 and 2
        bytes_marked += if marked { (seg_ack - una) as f64 } else { 0.0 }; // step 3
        if seg_ack > window_end {
            let m = bytes_marked / bytes_acked; // step 5
            alpha = alpha * (1.0 - 1.0 / 16.0) + m / 16.0; // step 6
            window_end = nxt; // step 7, before this ack lets anything go
            (bytes_acked, bytes_marked) = (0.0, 0.0); // step 8
        }
        una = seg_ack;
        nxt = una + 1000 * (10 + n % 5);
        assert!((acked.alpha() - alpha).abs() < 1e-12, "{n}: {} {alpha}", acked.alpha());
    }
    // Three in seven.
    assert!((alpha - 3.0 / 7.0).abs() < 0.1, "{alpha}");
}

#[test]
fn a_mark_takes_half_of_alpha() {
    for (initial, left) in [(1.0, 0.5), (0.5, 0.75), (0.1, 0.95), (0.0, 1.0)] {
        let mut law = Dctcp::new(&Params { initial_alpha: Ratio::new(initial), ..Params::default() }, &FLOW);
        law.on_congestion(Time::ZERO, Congestion::Mark { flight: 10 });
        assert!((law.cwnd() - 10_000.0 * left).abs() < 1e-9, "{}", law.cwnd()); // step 9
        assert_eq!(law.cwnd(), law.ssthresh());
        law.on_congestion(Time::ZERO, Congestion::Loss { flight: 10 });
        assert_eq!(law.cwnd(), 10_000.0 * left / 2.0, "section 3.5: a loss is TCP's");
        law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 10 });
        assert_eq!(law.cwnd(), 1000.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn everything_stays_in_its_bounds(
        g in 1e-6..=1.0f64,
        initial in 0.0..=1.0f64,
        acks in prop::collection::vec((1u32..4, any::<bool>(), 0u32..5, 0u8..20), 1..400),
    ) {
        let params = Params { g: Ratio::new(g), initial_alpha: Ratio::new(initial), ..Params::default() };
        prop_assert!(Dctcp::check(&params).is_ok());
        let mut acked = Acked::new(&params);
        for (newly, marked, more, event) in acks {
            let before = acked.law.cwnd();
            acked.ack(newly, marked, newly + more);
            prop_assert!(!marked || acked.law.cwnd() == before, "an ack with an echo opens no window");
            match event {
                0 => acked.law.on_congestion(Time::ZERO, Congestion::Mark { flight: newly + more }),
                1 => acked.law.on_congestion(Time::ZERO, Congestion::Loss { flight: newly + more }),
                2 => acked.law.on_congestion(Time::ZERO, Congestion::Timeout { flight: newly + more }),
                _ => {}
            }
            prop_assert!((0.0..=1.0).contains(&acked.alpha()), "{}", acked.alpha());
            prop_assert!(acked.law.cwnd().is_finite() && acked.law.cwnd() >= 1000.0, "{}", acked.law.cwnd());
        }
    }

    /// Section 3.4: without marks it is TCP.
    #[test]
    fn without_marks_it_is_sack(events in prop::collection::vec((1u32..3, 0u8..20), 1..300)) {
        let mut acked = Acked::new(&Params::default());
        let mut sack = Sack::new(&reno::Params::default(), &FLOW);
        let stamp = Stamp::default();
        for (newly, event) in events {
            acked.ack(newly, false, 8);
            let ack = Ack::of_one(Time::ZERO, Time::from_millis(1), &stamp);
            sack.on_ack(&Ack { newly_acked: newly, flight: 8, ..ack });
            match event {
                0 => { acked.law.on_congestion(Time::ZERO, Congestion::Loss { flight: 8 }); sack.on_congestion(Time::ZERO, Congestion::Loss { flight: 8 }); }
                1 => { acked.law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 8 }); sack.on_congestion(Time::ZERO, Congestion::Timeout { flight: 8 }); }
                _ => {}
            }
            prop_assert_eq!(acked.law.cwnd(), sack.cwnd());
        }
    }
}

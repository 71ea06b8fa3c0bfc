//! Swift against its paper's algorithm 1 and section 3.5, and against numbers of htsim's model.

use flowstamp_laws::sender::{Ack, Congestion, FlowChange, FlowView, PathView, SenderLaw};
use flowstamp_laws::swift::{Params, Sender, flow_scaling};
use flowstamp_laws::{Ratio, Stamp, Time};
use proptest::prelude::*;

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
const US: fn(u64) -> Time = Time::from_micros;

/// A flow on a path of `hops` routers whose idle RTT is 20 us.
fn flow(params: &Params, window: f64, hops: u8) -> Sender {
    let mut law = Sender::new(params, &FlowView { initial_window: window, ..FLOW });
    law.on_change(FlowChange::Path(PathView { hops, rtt: Some(US(20)), rate: None }));
    law
}

fn ack(law: &mut Sender, now: Time, rtt: Time, newly_acked: u32) -> f64 {
    let stamp = Stamp::default();
    law.on_ack(&Ack { newly_acked, delivered: newly_acked, ..Ack::of_one(now, rtt, &stamp) });
    law.window()
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

/// A target of 40 us, whatever the window.
fn constant_target() -> Params {
    Params { base_target: Some(US(40)), fs_range: Some(Time::ZERO), ..Params::default() }
}

/// Target delays in us that htsim's model (`targetDelay` of swift.cpp) computes with its own constants, for these windows
/// in packets and hops: base 20 us, `h` = base / 6.55, `fs_range` five times the base, `fs_min_cwnd` 0.1, `fs_max_cwnd`
/// 100. The numbers follow by hand from its lines.
const TARGETS: [(f64, u8, f64); 7] = [
    (1.0, 1, 52.443_323_944_849_58),
    (4.0, 5, 48.329_348_386_006_096),
    (10.0, 5, 42.328_186_689_484_52),
    (25.0, 3, 32.425_848_546_883_21),
    (64.0, 5, 36.083_561_373_362_02),
    (100.0, 5, 35.267_175_572_519_086),
    (400.0, 2, 26.106_870_229_007_637),
];

#[test]
fn targets_are_those_of_htsim() {
    let params = Params {
        base_target: Some(US(20)),
        hop_target: Time::from_secs_f64(20e-6 / 6.55),
        fs_range: Some(US(100)),
        ..Params::default()
    };
    for (cwnd, hops, expected) in TARGETS {
        let got = flow(&params, cwnd, hops).target() * 1e6;
        assert!((got / expected - 1.0).abs() < 1e-6, "{cwnd} packets, {hops} hops: {got} us, not {expected}"); // ps
    }
}

/// Windows that htsim's model (`adjust_cwnd`) computes with its own constants, for a target of 40 us: us since the last ack,
/// delay, packets acknowledged, and the window after it. In real numbers, where the model has whole bytes.
const WINDOWS: [(u64, u64, u32, f64); 13] = [
    (5, 30, 1, 10.1),
    (5, 30, 2, 10.298_019_801_980_198),
    (5, 44, 1, 9.549_072_907_290_729),
    (20, 60, 1, 9.549_072_907_290_729),
    (30, 60, 1, 9.549_072_907_290_729),
    (5, 39, 1, 9.653_795_115_374_038),
    (100, 400, 1, 9.653_795_115_374_038),
    (401, 400, 1, 4.826_897_557_687_019),
    (401, 400, 1, 2.413_448_778_843_509_5),
    (401, 400, 1, 1.206_724_389_421_754_8),
    (401, 400, 1, 0.603_362_194_710_877_4),
    (50, 30, 1, 1.603_362_194_710_877_4),
    (50, 39, 1, 2.227_051_591_466_501),
];

#[test]
fn windows_are_those_of_htsim() {
    let mut law = flow(&constant_target(), 10.0, 1);
    let mut now = Time::ZERO;
    for (n, (apart, delay, newly, expected)) in WINDOWS.into_iter().enumerate() {
        now += US(apart);
        let got = ack(&mut law, now, US(delay), newly);
        assert!(close(got, expected), "ack {n}: {got} {expected}");
    }
}

/// Section 3.5: the scaling is `fs_range` at `fs_min_cwnd`, nothing at `fs_max_cwnd`, and falls as 1 / sqrt(cwnd) between.
#[test]
fn flow_scaling_is_that_of_section_3_5() {
    let scaling = |cwnd| flow_scaling(cwnd, 30e-6, 0.1, 100.0);
    assert!(close(scaling(0.1), 30e-6) && close(scaling(0.01), 30e-6));
    assert!(scaling(100.0).abs() < 1e-18 && scaling(1e6) == 0.0);
    // 1 / sqrt(cwnd) is 1, 1/2 and 1/4.
    let [one, four, sixteen] = [1.0, 4.0, 16.0].map(scaling);
    assert!(close(one - four, 2.0 * (four - sixteen)));
}

/// Deviation 2: by default the target is 1.25 times the RTT of the idle path, plus flow scaling.
#[test]
fn the_default_target_follows_the_path() {
    assert!(close(flow(&Params::default(), 100.0, 7).target(), 25e-6));
    assert!(close(flow(&Params::default(), 1.0, 7).target(), 25e-6 + flow_scaling(1.0, 25e-6, 0.1, 100.0)));
    let mut unknown = Sender::new(&Params::default(), &FlowView { initial_window: 100.0, ..FLOW });
    ack(&mut unknown, US(100), US(32), 1);
    assert!(close(unknown.target(), 40e-6));
    let hops = Params { hop_target: US(3), ..Params::default() };
    assert!(close(flow(&hops, 100.0, 7).target(), 25e-6 + 21e-6));
}

/// Algorithm 1 on timeouts: a decrease, and the least window from the fifth in a row on. An ack begins the count anew.
#[test]
fn timeouts_in_a_row_reset_the_window() {
    let mut law = flow(&constant_target(), 64.0, 1);
    let mut now = US(1000);
    ack(&mut law, now, US(40), 1);
    let mut timeout = |law: &mut Sender| {
        now += US(20_000);
        law.on_congestion(now, Congestion::Timeout { flight: 1 });
        law.window()
    };
    assert_eq!([0; 4].map(|_| timeout(&mut law)), [32.0, 16.0, 8.0, 4.0]);
    // At a delay equal to the target the ack resets only the count.
    ack(&mut law, US(10_000), US(40), 1);
    assert_eq!([0; 4].map(|_| timeout(&mut law)), [2.0, 1.0, 0.5, 0.25]);
    assert_eq!(timeout(&mut law), 0.001);
}

/// Deviation 7: while the pace holds a retransmission back, the timer may expire, which says nothing new.
#[test]
fn a_timeout_that_waits_for_the_pace_does_not_count() {
    let mut law = flow(&constant_target(), 1.0, 1);
    ack(&mut law, US(40), US(40), 1);
    let mut timeout = |at| {
        law.on_congestion(US(at), Congestion::Timeout { flight: 1 });
        law.window()
    };
    // A window of half a packet at 40 us lets a packet go every 80 us.
    assert_eq!([1000, 1079, 1080, 1239, 1240].map(&mut timeout), [0.5, 0.5, 0.25, 0.25, 0.125]);
}

/// Algorithm 1 on fast recovery: `1 - max_mdf`, once per RTT. Marks say nothing to a law of delays.
#[test]
fn a_loss_takes_the_largest_decrease_once_per_round_trip() {
    let mut law = flow(&constant_target(), 16.0, 1);
    ack(&mut law, US(100), US(40), 1);
    law.on_congestion(US(100), Congestion::Loss { flight: 16 });
    assert_eq!(law.window(), 8.0);
    law.on_congestion(US(139), Congestion::Loss { flight: 8 });
    law.on_congestion(US(139), Congestion::Mark { flight: 8 });
    assert_eq!(law.window(), 8.0);
    law.on_congestion(US(140), Congestion::Loss { flight: 8 });
    assert_eq!(law.window(), 4.0);
}

/// Below one packet, algorithm 1's `pacing_delay` is rtt / cwnd. The engine then sees a window of one packet, and no probes.
#[test]
fn a_window_below_a_packet_is_paced() {
    let mut law = flow(&constant_target(), 1.0, 1);
    let unpaced = law.pacing().expect("a pace").rate.tx_time(flowstamp_laws::Bytes::new(9000));
    assert_eq!((law.cwnd(), unpaced), (1000.0, Time::ZERO));
    assert_eq!(ack(&mut law, US(1000), US(400), 1), 0.5);
    let pacing = law.pacing().expect("a pace");
    assert!(close(pacing.rate.bytes_per_sec(), 1000.0 / 800e-6));
    assert_eq!((law.cwnd(), pacing.probe_after(US(400), 40)), (1000.0, Time::MAX));
}

#[test]
fn parameters_without_sense_are_refused() {
    let refused = |p: Params| Sender::check(&p).expect_err("nonsense");
    let name = |p: Params| refused(p).0;
    let default = Params::default;
    assert_eq!(Sender::check(&default()), Ok(()));
    assert_eq!(name(Params { ai: 0.0, ..default() }), "ai");
    assert_eq!(name(Params { beta: f64::NAN, ..default() }), "beta");
    assert_eq!(name(Params { max_mdf: Ratio::new(0.0), ..default() }), "max_mdf");
    assert_eq!(name(Params { min_cwnd: 0.0, ..default() }), "min_cwnd");
    assert_eq!(name(Params { max_cwnd: 0.5, ..default() }), "max_cwnd");
    assert_eq!(name(Params { fs_max_cwnd: 0.1, ..default() }), "fs_max_cwnd");
    assert_eq!(name(Params { base_target: Some(Time::ZERO), ..default() }), "base_target");
    let (key, message) = refused(Params { endpoint_target: Some(US(100)), ..default() });
    assert_eq!(key, "endpoint_target");
    assert!(message.contains("hosts here have no delay of their own"), "{message}");
}

proptest! {
    /// The window stays within its bounds, no decrease takes more than `max_mdf`, and a flow that
    /// its application limits does not grow.
    #[test]
    fn every_window_stays_in_its_bounds(
        acks in prop::collection::vec((1u64..2_000, 1u64..2_000, 1u32..4, any::<bool>(), 0u8..12), 1..200),
        (ai, beta, max_mdf) in (1e-3..100.0f64, 1e-3..=1.0f64, 1e-3..=1.0f64),
        window in 1.0..1e4f64,
    ) {
        let params = Params {
            ai, beta, max_mdf: Ratio::new(max_mdf), max_cwnd: 5e3, ..Params::default()
        };
        prop_assert_eq!(Sender::check(&params), Ok(()));
        let mut law = flow(&params, window, 5);
        let mut now = Time::ZERO;
        let stamp = Stamp::default();
        for (apart, rtt, newly_acked, window_limited, event) in acks {
            now += US(apart);
            let before = law.window();
            match event {
                0 => law.on_congestion(now, Congestion::Loss { flight: 9 }),
                1 => law.on_congestion(now, Congestion::Timeout { flight: 9 }),
                _ => law.on_ack(&Ack { newly_acked, window_limited, ..Ack::of_one(now, US(rtt), &stamp) }),
            }
            let after = law.window();
            prop_assert!((0.001..=5e3).contains(&after), "{}", after);
            prop_assert!(event == 1 || after >= before * (1.0 - max_mdf) * (1.0 - 1e-12), "{} {}", before, after);
            prop_assert!(after <= before || event > 1 && window_limited);
            prop_assert!(law.cwnd() >= 1000.0);
            prop_assert!(law.target() >= 25e-6 * (1.0 - 1e-9) && law.target() <= 50e-6 * (1.0 + 1e-9));
        }
    }
}

//! Properties of every law for any input.

use super::path::PACKET;
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::sender::{Ack, Congestion, FlowView, SenderLaw};
use flowstamp_laws::{Ratio, Stamp, Time, tcp};
use proptest::prelude::*;

/// Possible events of a flow.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Acks of so many packets each, so far apart, with this round-trip time.
    Acks {
        count: u32,
        newly: u32,
        apart_ns: u64,
        rtt_ns: u64,
        used: bool,
    },
    Loss(u32),
    Mark(u32),
    Timeout(u32),
    Silence(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let span = prop_oneof![1u64..1_000, 1_000u64..1_000_000, 1_000_000u64..5_000_000_000];
    let acks = (1u32..200, 1u32..3, span.clone(), span, any::<bool>());
    prop_oneof![
        6 => acks.prop_map(|(count, newly, apart_ns, rtt_ns, used)| Event::Acks { count, newly, apart_ns, rtt_ns, used }),
        1 => any::<u32>().prop_map(Event::Loss),
        1 => any::<u32>().prop_map(Event::Mark),
        1 => (0u32..100_000).prop_map(Event::Timeout),
        1 => any::<u64>().prop_map(|ns| Event::Silence(ns % 100_000_000_000)),
    ]
}

fn law() -> impl Strategy<Value = SenderSpec> {
    let share = || (0.0..=1.0f64).prop_map(Ratio::new);
    let limit = || prop::option::of(2.0..1e6f64);
    prop_oneof![
        (0.0..=1.0f64, share(), 0.0..1e4f64, limit()).prop_map(
            |(increase, decrease, legacy_window, initial_ssthresh)| {
                let default = tcp::scalable::Params::default();
                SenderSpec::Scalable(tcp::scalable::Params {
                    increase,
                    decrease,
                    legacy_window,
                    initial_ssthresh,
                    ..default
                })
            }
        ),
        (share(), share(), any::<u64>(), limit()).prop_map(|(low, change, reference, initial_ssthresh)| {
            SenderSpec::Htcp(tcp::htcp::Params {
                min_beta: low,
                max_beta: Ratio::new(1.0),
                throughput_change: change,
                reference_rtt: Time::from_nanos(reference % 10_000_000_000),
                initial_ssthresh,
                ..tcp::htcp::Params::default()
            })
        }),
        (1e-6..1e9f64, share(), 0.0..1e4f64, any::<bool>(), limit()).prop_map(
            |(step, decrease, low_window, fast, limit)| {
                SenderSpec::Bic(tcp::bic::Params {
                    max_step: step,
                    min_step: (0.01 * step).max(1e-6),
                    decrease,
                    low_window,
                    fast_convergence: fast,
                    initial_ssthresh: limit,
                    ..tcp::bic::Params::default()
                })
            }
        ),
        (1e-6..1e6f64, 0.0..0.999f64, any::<[bool; 3]>(), limit()).prop_map(
            |(c, beta, [paper, fast, friendly], limit)| {
                SenderSpec::Cubic(tcp::cubic::Params {
                    variant: if paper { tcp::cubic::Variant::Paper } else { tcp::cubic::Variant::Rfc9438 },
                    c,
                    beta: Some(Ratio::new(beta)),
                    fast_convergence: fast,
                    tcp_friendly: friendly,
                    initial_ssthresh: limit,
                    ..tcp::cubic::Params::default()
                })
            }
        ),
        (1e-3..1e9f64, 1e-6..=1.0f64).prop_map(|(alpha, gamma)| {
            SenderSpec::Fast(tcp::fast::Params { alpha, gamma: Ratio::new(gamma), max_window: None })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The window is finite and at least one packet. An ack opens it by at most the acknowledged bytes. No congestion
    /// signal opens it, except to the least window of two packets.
    #[test]
    fn every_window_stays_in_its_bounds(
        spec in law(),
        events in prop::collection::vec(event(), 1..60),
        window in 0.0..1e9f64,
    ) {
        prop_assert_eq!(spec.check(), Ok(()));
        let mut law = spec.build(&FlowView { packet_bytes: PACKET as u32, initial_window: window, app_rate: None });
        let (mut now, mut min_rtt, mut delivered) = (Time::ZERO, Time::MAX, 0u32);
        let stamp = Stamp::default();
        for event in events {
            let before = law.cwnd();
            match event {
                Event::Acks { count, newly, apart_ns, rtt_ns, used } => {
                    let rtt = Time::from_nanos(rtt_ns);
                    min_rtt = min_rtt.min(rtt);
                    for _ in 0..count {
                        let before = law.cwnd();
                        now = now.saturating_add(Time::from_nanos(apart_ns));
                        delivered += newly;
                        law.on_ack(&Ack {
                            newly_acked: newly,
                            delivered,
                            min_rtt,
                            flight: newly + (before / PACKET).min(1e6) as u32,
                            window_limited: used,
                            ..Ack::of_one(now, rtt, &stamp)
                        });
                        let more = law.cwnd() - before;
                        prop_assert!(more <= f64::from(newly) * PACKET + 1e-6 * before, "{more}");
                        prop_assert!(used || more <= 0.0, "not used, and opened by {more}");
                        prop_assert!(law.cwnd().is_finite() && law.cwnd() >= PACKET, "{}", law.cwnd());
                    }
                }
                Event::Loss(flight) => law.on_congestion(now, Congestion::Loss { flight }),
                Event::Mark(flight) => law.on_congestion(now, Congestion::Mark { flight }),
                Event::Timeout(flight) => law.on_congestion(now, Congestion::Timeout { flight }),
                Event::Silence(ns) => now = now.saturating_add(Time::from_nanos(ns)),
            }
            prop_assert!(law.cwnd().is_finite() && law.cwnd() >= PACKET, "{}", law.cwnd());
            if matches!(event, Event::Loss(_) | Event::Mark(_) | Event::Timeout(_)) {
                prop_assert!(law.cwnd() <= before.max(2.0 * PACKET) * (1.0 + 1e-9), "{event:?}: {before} {}", law.cwnd());
            }
        }
    }
}

/// Each growth law without and with pacing.
fn unpaced_and_paced() -> Vec<[SenderSpec; 2]> {
    macro_rules! pairs {
        ($($law:ident $module:ident),*) => {
            vec![$([false, true].map(|pacing| SenderSpec::$law(tcp::$module::Params { pacing, ..Default::default() }))),*]
        };
    }
    pairs!(
        Reno reno, NewReno reno, Sack reno, HighSpeed highspeed, Scalable scalable, Htcp htcp, Bic bic, Cubic cubic,
        Dctcp dctcp
    )
}

proptest! {
    /// Aggarwal, Savage and Anderson 2000: the pace is the window over the RTT, in slow start and after it. There is
    /// none before the first RTT sample, and the window is the same as without pacing.
    #[test]
    fn a_pace_is_the_window_over_the_rtt(
        events in prop::collection::vec((100u64..2_000_000, 0u8..12), 1..60),
        window in 1.0..100.0f64,
    ) {
        let flow = FlowView { packet_bytes: PACKET as u32, initial_window: window, app_rate: None };
        let stamp = Stamp::default();
        for specs in unpaced_and_paced() {
            let [mut plain, mut paced] = specs.map(|spec| spec.build(&flow));
            let (mut now, mut newest) = (Time::ZERO, None);
            for (rtt_us, event) in &events {
                let srtt = Time::from_micros(*rtt_us);
                now += srtt;
                for law in [&mut plain, &mut paced] {
                    match event {
                        0 => law.on_congestion(now, Congestion::Loss { flight: 7 }),
                        1 => law.on_congestion(now, Congestion::Mark { flight: 7 }),
                        2 => law.on_congestion(now, Congestion::Timeout { flight: 7 }),
                        _ => law.on_ack(&Ack::of_one(now, srtt, &stamp)),
                    }
                }
                newest = if *event > 2 { Some(srtt) } else { newest };
                prop_assert_eq!(paced.cwnd(), plain.cwnd());
                prop_assert_eq!(plain.pacing(), None);
                let expected = newest.map(|srtt| paced.cwnd() / srtt.as_secs_f64());
                prop_assert_eq!(paced.pacing().map(|pace| pace.rate.bytes_per_sec()), expected);
            }
        }
    }
}

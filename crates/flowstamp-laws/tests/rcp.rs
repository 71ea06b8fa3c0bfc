//! Properties of the RCP law (Dukkipati 2007, chapter 3 and appendix F).

use flowstamp_laws::Stamp;
use flowstamp_laws::rcp::Header;
use flowstamp_laws::rcp::header::{MOST_WEIGHT, weight_bits, weight_of};
use flowstamp_laws::rcp::router::{Capacity, Params, Router};
use flowstamp_laws::rcp::sender::Sender;
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Congestion, Feedback, FlowView, SenderLaw};
use flowstamp_laws::units::{Bytes, Rate, Time};
use proptest::prelude::*;

fn view(now: Time, queue_bytes: u64) -> LinkView {
    LinkView { now, queue_bytes, queue_packets: 0 }
}

fn packet(rtt_s: f64) -> Stamp {
    Header { rate: 1e15, rtt_s, age_bytes: 0.0 }.into()
}

fn variable(router: &Router, name: &str) -> f64 {
    let mut found = f64::NAN;
    router.variables(&mut |n, v| {
        if n == name {
            found = v;
        }
    });
    found
}

/// With the first RTT of the author's ns-2 model.
fn params() -> Params {
    Params { initial_rtt: Some(Time::from_millis(200)), ..Params::default() }
}

/// A law that is told nothing keeps its first rate until packets carry RTTs, whose mean is then its own (deviation 5).
#[test]
fn the_first_rtt_is_the_packets() {
    let mut router = Router::new(&Params::default(), &RouterView::of(Rate::from_bytes_per_sec(1e9)));
    assert_eq!(Router::traits(&Params::default()).first_timers[0], Some(Time::from_millis(10)));
    let mut now = Time::from_millis(10);
    router.on_arrival(view(now, 0), PacketIn::of(1000, Some(&packet(0.0)))); // carries none
    assert_eq!(router.on_timer(0, view(now, 0)), Time::from_millis(20));
    assert_eq!((router.rate(), router.avg_rtt_s()), (50_000_000.0, 0.0));
    now = Time::from_millis(20);
    router.on_arrival(view(now, 0), PacketIn::of(1000, Some(&packet(20e-6))));
    router.on_arrival(view(now, 0), PacketIn::of(1000, Some(&packet(40e-6))));
    assert_eq!(router.on_timer(0, view(now, 0)), now + Time::from_micros(30));
    assert_eq!(router.rate(), 50_000_000.0);
    assert!((router.avg_rtt_s() - 30e-6).abs() < 1e-15);
    // From then on it is equation 3.3: an empty interval of d raises R by alpha.
    now += Time::from_micros(30);
    router.on_timer(0, view(now, 0));
    assert!((router.rate() / 70_000_000.0 - 1.0).abs() < 1e-9, "{}", router.rate());
}

/// Equation 6.2 where nobody knows the capacity: from one packet per RTT, R grows by alpha growth T/d while the queue is empty,
/// and line 6 goes by `R/y` (deviation 6).
#[test]
fn a_router_without_a_capacity() {
    let known = Params { capacity: Capacity::Known, ..params() };
    let unknown = Params { capacity: Capacity::Unknown, growth: 0.5, alpha: 0.4, ..params() };
    assert!(Router::traits(&known).needs_capacity && !Router::traits(&unknown).needs_capacity);
    let link = RouterView { capacity: None, packet_bytes: 1000, ..RouterView::of(Rate::ZERO) };
    let mut router = Router::new(&unknown, &link);
    assert_eq!(router.rate(), 1000.0 / 0.2);
    let mut now = Time::from_millis(10);
    // A packet of an RTT of 0.1 s: theta = (5 kB/s / 100 kB/s) x 0.5 x 0.05 = 0.00125 of y = 100 kB/s.
    router.on_arrival(view(now, 0), PacketIn::of(1000, Some(&packet(0.1))));
    router.on_timer(0, view(now, 0));
    let delay = 0.2 - 0.00125 * 0.1;
    assert!((router.avg_rtt_s() - delay).abs() < 1e-12, "{}", router.avg_rtt_s());
    let expected = 5000.0 * (1.0 + 0.01 / delay * 0.4 * 0.5);
    assert!((router.rate() - expected).abs() < 1e-9, "{}", router.rate());
    // A rate that nothing limits stays within the range of the law.
    for _ in 0..100_000 {
        now += Time::from_millis(10);
        router.on_timer(0, view(now, 0));
    }
    assert_eq!(router.rate(), 50e9);
}

/// Appendix F by hand: two intervals on 1 MB/s.
#[test]
fn numbers_of_two_intervals() {
    let params = Params { alpha: 0.4, beta: 0.5, ..params() };
    let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    assert_eq!(Router::traits(&params).first_timers[0], Some(Time::from_millis(10)));
    assert_eq!(router.rate(), 50_000.0);
    // Ten packets of 1000 bytes with an RTT of 0.1 s in 10 ms: y = 1 MB/s, d_T = 0.1 < d = 0.2:
    // theta = 0.05 x 0.5 x 0.05 = 0.00125; d = 0.2 - 0.00125 x 0.1 = 0.199875.
    for _ in 0..10 {
        router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1000, Some(&packet(0.1))));
    }
    let next = router.on_timer(0, view(Time::from_millis(10), 4000));
    assert_eq!(next, Time::from_millis(20));
    assert!((router.avg_rtt_s() - 0.199_875).abs() < 1e-12);
    // R = 50000 (1 + 0.01 / 0.199875 x (0 - 0.5 x 4000 / 0.199875) / 1e6).
    let expected = 50_000.0 * (1.0 + 0.01 / 0.199_875 * (-0.5 * 4000.0 / 0.199_875) / 1e6);
    assert!((router.rate() - expected).abs() < 1e-6, "{}", router.rate());
    // A longer RTT counts by T/d; packets without one, or beyond 20 s, count as traffic alone.
    router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1000, Some(&packet(0.4))));
    router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1000, Some(&packet(0.0))));
    router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1000, Some(&packet(20.0))));
    router.on_arrival(view(Time::ZERO, 0), PacketIn::of(40, None));
    router.on_timer(0, view(Time::from_millis(20), 0));
    let weight = 0.01 / 0.199_875;
    let d = weight * 0.4 + (1.0 - weight) * 0.199_875;
    assert!((router.avg_rtt_s() - d).abs() < 1e-12);
    assert!((variable(&router, "input_rate_bps") - 3040.0 / 0.01 * 8.0).abs() < 1e-6);
}

#[test]
fn the_stamp_is_the_smaller_of_rate_and_wish() {
    let mut router = Router::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    let mut large = packet(0.1);
    router.on_departure(
        view(Time::ZERO, 0),
        PacketOut { size: 1000, stamp: &mut large, bits: &mut 0 },
        || 0.5,
    );
    assert_eq!(Header::from(large).rate, router.rate());
    let mut small: Stamp = Header { rate: 10.0, rtt_s: 0.1, age_bytes: 0.0 }.into();
    router.on_departure(
        view(Time::ZERO, 0),
        PacketOut { size: 1000, stamp: &mut small, bits: &mut 0 },
        || 0.5,
    );
    assert_eq!(Header::from(small).rate, 10.0);
}

/// Section 3.6: long flows get theta R, and R may grow to C / theta so that they alone can fill the link.
#[test]
fn two_classes_by_age() {
    let params = Params { long_share: 0.25, long_after: Bytes::new(5000), ..params() };
    let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    let offers = |router: &mut Router| {
        [0.0, 6000.0].map(|age_bytes| {
            let mut stamp: Stamp = Header { rate: 1e15, rtt_s: 0.1, age_bytes }.into();
            router.on_departure(
                view(Time::ZERO, 0),
                PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 },
                || 0.5,
            );
            Header::from(stamp).rate
        })
    };
    let [short, long] = offers(&mut router);
    assert!((long / short - 0.25).abs() < 1e-12);
    // An idle link: R grows to 4 C, short flows get C and long ones C.
    let mut now = Time::ZERO;
    for _ in 0..20_000 {
        now = router.on_timer(0, view(now, 0));
    }
    assert_eq!(offers(&mut router), [1e6, 1e6]);
}

/// Classes by age: class `k` gets theta^k R from `long_after` times the ratio to the power of `k - 1` on, and R may grow
/// until the oldest class alone can fill the link.
#[test]
fn four_classes_by_age() {
    let params = Params {
        long_share: 0.5,
        long_after: Bytes::new(1000),
        levels: 4,
        level_ratio: 10.0,
        initial_rate: 0.01,
        ..params()
    };
    let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    let ages = [0.0, 1000.0, 1001.0, 10_000.0, 10_001.0, 100_001.0, 1e12];
    let rate = router.rate();
    let shares = ages.map(|age_bytes| offer(&mut router, age_bytes, 0) / rate);
    assert_eq!(shares, [1.0, 1.0, 0.5, 0.5, 0.25, 0.125, 0.125]);
    let mut now = Time::ZERO;
    for _ in 0..20_000 {
        now = router.on_timer(0, view(now, 0));
    }
    assert!((router.rate() / 8e6 - 1.0).abs() < 1e-12);
    assert_eq!(ages.map(|age_bytes| offer(&mut router, age_bytes, 0)), [1e6; 7]);
}

/// The rate with which a packet of a flow without a wish leaves.
fn offer(router: &mut Router, age_bytes: f64, mut bits: u16) -> f64 {
    let mut stamp: Stamp = Header { rate: 1e15, rtt_s: 0.1, age_bytes }.into();
    router.on_departure(
        view(Time::ZERO, 0),
        PacketOut { size: 1000, stamp: &mut stamp, bits: &mut bits },
        || 0.5,
    );
    Header::from(stamp).rate
}

/// A packet states five binary digits of a weight, and no bits state the weight 1.
#[test]
fn weights_as_packets_state_them() {
    assert_eq!(weight_bits(1.0), 0);
    for whole in 1..=32 {
        assert_eq!(weight_of(weight_bits(f64::from(whole))), f64::from(whole));
    }
    assert_eq!(weight_of(weight_bits(MOST_WEIGHT)), MOST_WEIGHT);
    assert_eq!(weight_of(u16::MAX), MOST_WEIGHT, "the upper byte is not read");
    for weight in [1.03, 2.97, 33.3, 1000.0, 31_999.0, 63_000.0] {
        assert!((weight_of(weight_bits(weight)) / weight - 1.0).abs() <= 1.0 / 32.0, "{weight}");
    }
}

/// A flow of weight w gets w R, at most the link's rate, and at most what the router's own bound allows.
#[test]
fn a_weight_multiplies_the_rate() {
    let link = RouterView::of(Rate::from_bytes_per_sec(1e6));
    let mut router = Router::new(&params(), &link);
    let rate = router.rate();
    assert_eq!(offer(&mut router, 0.0, weight_bits(10.0)), 10.0 * rate);
    assert_eq!(offer(&mut router, 0.0, weight_bits(1000.0)), 1e6);
    let mut router = Router::new(&Params { max_weight: Some(4.0), ..params() }, &link);
    assert_eq!(offer(&mut router, 0.0, weight_bits(10.0)), 4.0 * rate);
    assert_eq!(offer(&mut router, 0.0, weight_bits(2.0)), 2.0 * rate);
}

/// The estimator of section 5.3: each packet moves d by the gain, and what ends an interval leaves it.
#[test]
fn a_fixed_gain() {
    let params = Params { rtt_gain: Some(0.02), ..params() };
    let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    for rtt in [0.1, 0.4] {
        router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1000, Some(&packet(rtt))));
    }
    let expected = 0.02 * 0.4 + 0.98 * (0.02 * 0.1 + 0.98 * 0.2);
    router.on_timer(0, view(Time::from_millis(10), 0));
    assert!((router.avg_rtt_s() - expected).abs() < 1e-15, "{}", router.avg_rtt_s());
    assert!((variable(&router, "sample_rtt_s") - 0.25).abs() < 1e-15);
}

/// Section 3.7: of many packets the share counts, and of two flows that alternate both do.
#[test]
fn a_share_of_the_rtts() {
    let params = Params { rtt_share: 0.125, ..params() };
    let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    for _ in 0..4000 {
        for rtt in [0.1, 0.3] {
            router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1, Some(&packet(rtt))));
        }
    }
    router.on_timer(0, view(Time::from_millis(10), 0));
    assert!((variable(&router, "sampled_packets") - 1000.0).abs() <= 2.0);
    assert!((variable(&router, "sample_rtt_s") - 0.2).abs() < 0.002, "{}", variable(&router, "sample_rtt_s"));
    assert!(
        (variable(&router, "input_rate_bps") - 8000.0 * 8.0 / 0.01).abs() < 1e-6,
        "all packets are input"
    );
}

/// The routers of a path add up R^-alpha: two equal ones at alpha = 1 leave half the rate, at alpha = 64 almost all.
#[test]
fn alpha_fair_stamps() {
    for (alpha, factor) in [(1.0, 0.5), (2.0, 0.5f64.sqrt()), (64.0, 0.5f64.powf(1.0 / 64.0))] {
        let params = Params { fairness: alpha, ..params() };
        let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
        let mut stamp = packet(0.1);
        router.on_departure(
            view(Time::ZERO, 0),
            PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 },
            || 0.5,
        );
        assert!((Header::from(stamp).rate / router.rate() - 1.0).abs() < 1e-3, "one router alone");
        router.on_departure(
            view(Time::ZERO, 0),
            PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 },
            || 0.5,
        );
        let share = Header::from(stamp).rate / router.rate();
        assert!((share / factor - 1.0).abs() < 1e-3, "alpha {alpha}: {share}");
    }
}

/// A fluid of `n` flows that send at the router's rate of an RTT ago: C/R becomes n.
fn converge(params: &Params, n: f64, rtt_s: f64, capacity: f64) -> (f64, f64) {
    let mut router = Router::new(params, &RouterView::of(Rate::from_bytes_per_sec(capacity)));
    let mut now = Time::ZERO;
    let mut queue = 0.0f64;
    // The start of each rate where the flows' bytes arrive. An RTT is no whole number of intervals: a delay rounded up
    // to one would be half as long again at the shortest RTT, and no gains stand that.
    let mut rates = std::collections::VecDeque::from([(0.0, router.rate())]);
    let mut next = Router::traits(params).first_timers[0].expect("a timer");
    for _ in 0..200_000 {
        let (from, to) = (now.as_secs_f64(), next.as_secs_f64());
        let step = to - from;
        now = next;
        while rates.get(1).is_some_and(|(t, _)| *t <= from) {
            rates.pop_front();
        }
        let until = rates.iter().skip(1).map(|(t, _)| *t).chain([f64::INFINITY]);
        let sent =
            rates.iter().zip(until).map(|((t, rate), end)| rate * (end.min(to) - t.max(from)).max(0.0));
        let input = n * sent.sum::<f64>();
        queue = (queue + input - capacity * step).max(0.0);
        // Packets large enough that the interval's traffic is one packet.
        router.on_arrival(
            view(now, queue as u64),
            PacketIn::of(input.min(4e9) as u32, Some(&packet(rtt_s + queue / capacity))),
        );
        next = router.on_timer(0, view(now, queue as u64));
        rates.push_back((to + rtt_s, router.rate()));
        // With many flows d forgets its first value, ten times the shortest RTT here, slowly: theta holds R/C (section 3.5).
        if now.as_secs_f64() > 3000.0 * rtt_s {
            break;
        }
    }
    (capacity / router.rate(), queue / (capacity * rtt_s))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Flows of any weights at one router: C/R becomes the sum of the weights, so that shares are in proportion to them
    /// and add up to C.
    #[test]
    fn shares_are_proportional_to_weights(
        weights in prop::collection::vec(1.0..64.0f64, 1..20),
        rtt_ms in 20.0..500.0f64,
        mbps in 10.0..1000.0f64,
    ) {
        let capacity = mbps * 125_000.0;
        let bits: Vec<u16> = weights.iter().map(|weight| weight_bits(*weight)).collect();
        let stated: Vec<f64> = bits.iter().map(|bits| weight_of(*bits)).collect();
        let sum: f64 = stated.iter().sum();
        let (estimate, _) = converge(&params(), sum, rtt_ms / 1e3, capacity);
        let mut router = Router::new(
            &Params { initial_rate: 1.0 / estimate, ..params() },
            &RouterView::of(Rate::from_bytes_per_sec(capacity)),
        );
        let offers: Vec<f64> = bits.iter().map(|bits| offer(&mut router, 0.0, *bits)).collect();
        prop_assert!((offers.iter().sum::<f64>() / capacity - 1.0).abs() < 0.02);
        for (offer, weight) in offers.iter().zip(&stated) {
            prop_assert!((offer / offers[0] / (weight / stated[0]) - 1.0).abs() < 1e-9 || *offer == capacity);
        }
    }

    /// Section 3.2.1: C/R is the number of long flows, whatever capacity, RTT and number, at the recommended gains.
    #[test]
    fn the_rate_is_the_fair_share(
        n in 1u32..200,
        rtt_ms in 20.0..500.0f64,
        mbps in 10.0..1000.0f64,
        alpha in 0.4..0.6f64,
        beta in 0.2..0.6f64,
    ) {
        let params = Params { alpha, beta, ..params() };
        let (estimate, queue) = converge(&params, f64::from(n), rtt_ms / 1e3, mbps * 125_000.0);
        prop_assert!((estimate / f64::from(n) - 1.0).abs() < 0.02, "C/R is {estimate}, not {n}");
        prop_assert!(queue < 0.05, "{queue} of the pipe wait");
    }

    /// R stays between MIN_RATE and eta C, all state is finite and the timer moves on, from 1 kb/s to 400 Gb/s and from
    /// 1 us to 20 s, whatever arrives.
    #[test]
    fn the_rate_stays_in_its_bounds(
        bps in 3.0..11.602f64,
        eta in 0.9..1.0f64,
        known in any::<bool>(),
        intervals in prop::collection::vec((prop::collection::vec((40u32..9000, -6.0..1.4f64), 0..30), 0u64..1 << 34), 1..40),
    ) {
        let capacity = if known { Capacity::Known } else { Capacity::Unknown };
        let params = Params { eta, capacity, ..params() };
        let link = Rate::from_bps(10f64.powf(bps));
        let mut router = Router::new(&params, &RouterView::of(link));
        let mut now = Time::ZERO;
        for (packets, queue) in intervals {
            for (size, rtt) in packets {
                let mut stamp = packet(10f64.powf(rtt));
                router.on_arrival(view(now, queue), PacketIn::of(size, Some(&stamp)));
                router.on_departure(view(now, queue), PacketOut { size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
                prop_assert!(Header::from(stamp).rate <= 1e15);
                prop_assert!(Header::from(stamp).rate >= 0.0);
            }
            let next = router.on_timer(0, view(now, queue));
            prop_assert!(next > now);
            now = next;
            let most = eta * link.bytes_per_sec();
            let least = (0.01 * 1000.0 / router.avg_rtt_s()).min(most);
            prop_assert!(router.rate().is_finite() && router.avg_rtt_s() > 0.0);
            prop_assert!(router.rate() <= most * (1.0 + 1e-12), "{} above {most}", router.rate());
            prop_assert!(router.rate() >= least * (1.0 - 1e-12), "{} below {least}", router.rate());
        }
    }
}

#[test]
fn a_sender_takes_the_rate_and_paces() {
    let flow = FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None };
    let mut law = Sender::new(&Default::default(), &flow);
    assert_eq!(law.bits(), 0);
    let weighted =
        Sender::new(&flowstamp_laws::rcp::sender::Params { weight: 10.0, ..Default::default() }, &flow);
    assert_eq!(weight_of(weighted.bits()), 10.0);
    assert!(Sender::traits(&Default::default()).handshake);
    assert!(law.pacing().is_none(), "no rate before the answer: the handshake holds the data back");
    let rtt = Time::from_millis(100);
    let answer: Stamp = Header { rate: 50_000.0, rtt_s: 0.0, age_bytes: 0.0 }.into();
    law.on_feedback(&Feedback { now: Time::ZERO, srtt: rtt, stamp: &answer, bits: 0, carried: 0.0 });
    assert_eq!(law.pacing().map(|it| it.rate), Some(Rate::from_bytes_per_sec(50_000.0)));
    // R rtt = 5000 bytes, and a packet to spare (deviation 1).
    assert!((law.cwnd() - 6000.0).abs() < 1e-9);
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 5 });
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 5 });
    assert!((law.cwnd() - 6000.0).abs() < 1e-9, "losses are repaired and do not change the rate");
}

/// Without the window of section 6.1.1 the pace alone holds a flow, from the first rate on; before, the initial window does.
#[test]
fn without_a_window_the_pace_alone_holds() {
    let flow = FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None };
    let mut law =
        Sender::new(&flowstamp_laws::rcp::sender::Params { window: false, ..Default::default() }, &flow);
    assert_eq!((law.pacing(), law.cwnd()), (None, 1000.0));
    let answer: Stamp = Header { rate: 50_000.0, rtt_s: 0.0, age_bytes: 0.0 }.into();
    law.on_feedback(&Feedback {
        now: Time::ZERO,
        srtt: Time::from_millis(100),
        stamp: &answer,
        bits: 0,
        carried: 0.0,
    });
    assert_eq!((law.pacing().map(|it| it.alone), law.cwnd()), (Some(true), 6000.0));
}

/// Alone on its path a router gives its own R, whatever the exponent and the capacity: no power may leave the range of
/// numbers, or the flow would be told to send without bound.
#[test]
fn alpha_fair_rates_stay_numbers() {
    for fairness in [0.5, 1.0, 30.0, 100.0] {
        for mbps in [0.001, 20.0, 400_000.0] {
            let mut router =
                Router::new(&Params { fairness, ..params() }, &RouterView::of(Rate::from_mbps(mbps)));
            let mut stamp = Header { rate: 1e15, rtt_s: 0.1, age_bytes: 0.0 }.into();
            router.on_departure(
                view(Time::ZERO, 0),
                PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 },
                || 0.5,
            );
            let given = Header::from(stamp).rate;
            assert!((given / router.rate() - 1.0).abs() < 0.05, "{fairness}, {mbps} Mb/s: {given}");
            // A second like it halves R^-alpha's inverse: R 2^(-1/alpha).
            router.on_departure(
                view(Time::ZERO, 0),
                PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 },
                || 0.5,
            );
            let both = Header::from(stamp).rate / given;
            assert!(
                (both / 0.5f64.powf(1.0 / fairness) - 1.0).abs() < 0.05,
                "{fairness}, {mbps} Mb/s: {both}"
            );
        }
    }
}

/// While a link carries nothing there is no rate to give; what is known of RTTs stays, and the law goes on after it.
#[test]
fn an_outage_leaves_no_trace() {
    let capacity = Rate::from_mbps(20.0);
    let mut router = Router::new(&params(), &RouterView::of(capacity));
    let mut now = Router::traits(&params()).first_timers[0].expect("a timer");
    let mut interval = |router: &mut Router, rtt_s| {
        router.on_arrival(view(now, 0), PacketIn::of(1000, Some(&packet(rtt_s))));
        now = router.on_timer(0, view(now, 0));
        router.variables(&mut |name, value| assert!(value.is_finite(), "{name} is {value}"));
    };
    for _ in 0..100 {
        interval(&mut router, 0.1);
    }
    let before = router.avg_rtt_s();
    router.on_change(LinkChange::Capacity(Rate::ZERO));
    for _ in 0..100 {
        interval(&mut router, 0.05);
        assert_eq!(router.rate(), 0.0);
    }
    assert!((router.avg_rtt_s() / before - 1.0).abs() < 0.1, "{} was {before}", router.avg_rtt_s());
    router.on_change(LinkChange::Capacity(capacity));
    let share = |router: &Router| router.rate() / capacity.bytes_per_sec();
    interval(&mut router, 0.1);
    assert!(share(&router) < 0.01, "it starts anew from the least rate: {}", share(&router));
    for _ in 0..2000 {
        interval(&mut router, 0.1);
    }
    assert!(share(&router) > 0.9, "and comes back: {}", share(&router));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Liars have a share `b < 1/c` of the bytes of each interval. For any RTT that they state and any arrival times: m
    /// is at most (1 - b) r / (1 - c b), d at most c times that, and neither falls below what the honest alone would
    /// let it, (1 - b) r.
    #[test]
    fn liars_with_few_bytes_do_not_move_d_far(
        c in 1.5f64..32.0,
        part in 0.01f64..0.5,
        flows in 1u32..200,
        intervals in prop::collection::vec(prop::collection::vec(
            prop_oneof![Just(1e-6), 1e-6..20.0f64, Just(19.999)], 0..6), 20..200),
    ) {
        let r = 0.05;
        let b = part / c;
        let honest_bytes = 1_000_000u32;
        let params = Params { max_rtt_factor: Some(c), initial_rate: 1.0 / f64::from(flows), ..Params::default() };
        let mut router = Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(1e8)));
        let mut now = Time::from_millis(10);
        let first = [vec![]];
        for lies in first.iter().chain(&intervals) {
            router.on_arrival(view(now, 0), PacketIn::of(honest_bytes, Some(&packet(r))));
            let each = f64::from(honest_bytes) * b / (1.0 - b) / lies.len().max(1) as f64;
            for rtt_s in lies {
                router.on_arrival(view(now, 0), PacketIn::of(each as u32, Some(&packet(*rtt_s))));
            }
            now = router.on_timer(0, view(now, 0));
            let bound = (1.0 - b) * r / (1.0 - c * b);
            let d = router.avg_rtt_s();
            prop_assert!(d <= c * bound * (1.0 + 1e-9), "d {} above {} m", d, c);
            // The RTT that counts in an interval is at most m's bound and b c m of the liars: d, which follows the
            // highest, is no more.
            prop_assert!(d <= ((1.0 - b) * r + b * c * bound) * (1.0 + 1e-9), "d {}", d);
            prop_assert!(d >= (1.0 - b) * r * (1.0 - 1e-6), "d {}", d);
        }
    }

    /// Where all say what is so, and none is more than c times the mean of all, RTTs count as they are.
    #[test]
    fn honest_rtts_are_not_bounded(rtts in prop::collection::vec(0.02f64..0.08, 1..20), intervals in 2u32..50) {
        let bounded = Params { max_rtt_factor: Some(4.0), ..Params::default() };
        let mut routers = [Params::default(), bounded].map(|p| Router::new(&p, &RouterView::of(Rate::from_bytes_per_sec(1e8))));
        for _ in 0..intervals {
            for router in &mut routers {
                for rtt_s in &rtts {
                    router.on_arrival(view(Time::ZERO, 0), PacketIn::of(1000, Some(&packet(*rtt_s))));
                }
                router.on_timer(0, view(Time::ZERO, 0));
            }
            let [free, bounded] = [&routers[0], &routers[1]].map(Router::avg_rtt_s);
            prop_assert!((free - bounded).abs() <= 1e-9 * free, "{} and {}", free, bounded);
        }
    }
}

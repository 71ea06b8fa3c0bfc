//! Token buckets: decisions against a bucket of integers, what passes in any window, a constant rate's excess, departures of a burst, and
//! what a latency holds.

use flowstamp_laws::queue::token_bucket::{Buckets, Per, Policer, PolicerParams, Shaper, ShaperParams};
use flowstamp_laws::queue::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::{Bytes, Rate, Time};
use proptest::prelude::*;

/// A byte in a microsecond.
const RATE: Rate = Rate::from_mbps(8.0);

fn view() -> QueueView {
    QueueView { limit: Limit::Bytes(50_000), capacity: Rate::from_gbps(1.0), mean_packet_bytes: 1000 }
}

fn arrival(now: Time, size: u32, ecn_capable: bool) -> Arrival {
    Arrival {
        now,
        size,
        flow: 1,
        label: None,
        queue_bytes: 0,
        queue_packets: 0,
        ecn_capable,
        l4s: false,
        idle_since: Some(now),
    }
}

fn policer(burst: u64, peak: Option<(f64, u64)>, ecn: bool) -> Policer {
    let params = PolicerParams {
        rate: RATE,
        burst: Bytes::new(burst),
        peak: peak.map(|(times, _)| RATE * times),
        mtu: peak.map(|(_, mtu)| Bytes::new(mtu)),
        ecn,
        per: Per::Link,
    };
    assert!(Policer::check(&params).is_ok());
    Policer::new(&params, &view())
}

proptest! {
    /// Each decision is that of a bucket of whole bytes, which has one more each microsecond, and of a second one with four more.
    #[test]
    fn a_policer_is_a_bucket_of_bytes(
        burst in 500u64..20_000,
        mtu in 500u64..5000,
        packets in prop::collection::vec((0u64..4000, 40u64..1500), 1..300),
    ) {
        let mut law = policer(burst, Some((4.0, mtu)), false);
        let (mut now, mut tokens, mut quick) = (0, burst, mtu);
        let mut passed: Vec<(u64, u64)> = Vec::new();
        for (gap_us, size) in packets {
            now += gap_us;
            tokens = burst.min(tokens + gap_us);
            quick = mtu.min(quick + 4 * gap_us);
            let conforms = size <= tokens && size <= quick;
            let verdict = law.on_arrival(&arrival(Time::from_micros(now), size as u32, true), || 0.5);
            prop_assert_eq!(verdict == Verdict::Enqueue, conforms, "{} of {} and {}", size, tokens, quick);
            if conforms {
                (tokens, quick) = (tokens - size, quick - size);
                passed.push((now, size));
            }
        }
        // In any window at most b + r (t - t') and mtu + p (t - t').
        for (first, (from, _)) in passed.iter().enumerate() {
            let mut sum = 0;
            for (to, size) in &passed[first..] {
                sum += size;
                prop_assert!(sum <= burst + (to - from) && sum <= mtu + 4 * (to - from));
            }
        }
    }

    /// A backlog leaves as early as min(b + r t, mtu + p t) lets it, whatever the sizes.
    #[test]
    fn a_shaped_backlog_follows_the_arrival_curve(
        burst in 1500u64..20_000,
        mtu in 1500u64..5000,
        sizes in prop::collection::vec(40u64..1500, 1..200),
    ) {
        let mut buckets = Buckets::new(RATE, Bytes::new(burst), Some(RATE * 4.0), Bytes::new(mtu));
        let (mut sum, mut now) = (0, Time::ZERO);
        for size in sizes {
            sum += size;
            now = now.max(buckets.ready(size as u32));
            buckets.take(now, size as u32);
            // Whole picoseconds: sum - b bytes at a byte a microsecond, sum - mtu at four.
            let by_rate = Time::from_micros(sum.saturating_sub(burst));
            let by_peak = Time::from_nanos(250 * sum.saturating_sub(mtu));
            prop_assert_eq!(now, by_rate.max(by_peak));
        }
    }

    /// At a constant rate above r, exactly the excess is lost: from n packets min(n, (b + r t) / s) have passed at t.
    /// That needs room for a packet and for what comes until the next; a smaller bucket overflows between two packets.
    #[test]
    fn a_constant_rate_loses_its_excess(gap_us in 1u64..1000, burst in 2000u64..20_000) {
        let mut law = policer(burst, None, false);
        let mut passed = 0;
        for n in 0..500 {
            let now = n * gap_us;
            let verdict = law.on_arrival(&arrival(Time::from_micros(now), 1000, false), || 0.5);
            passed += u64::from(verdict == Verdict::Enqueue);
            prop_assert_eq!(passed, (n + 1).min((burst + now) / 1000), "packet {}", n);
        }
    }
}

#[test]
fn what_exceeds_may_be_marked() {
    let mut law = policer(1000, None, true);
    let mut next = |us: u64, ecn: bool| law.on_arrival(&arrival(Time::from_micros(us), 1000, ecn), || 0.5);
    assert_eq!(
        [next(0, true), next(0, true), next(0, false)],
        [Verdict::Enqueue, Verdict::Mark, Verdict::Drop]
    );
    // Marked packets took no tokens: a millisecond later there are 1000.
    assert_eq!([next(999, true), next(1000, true)], [Verdict::Mark, Verdict::Enqueue]);
}

#[test]
fn a_packet_larger_than_the_bucket_never_passes() {
    let mut law = policer(1000, None, true);
    assert_eq!(law.on_arrival(&arrival(Time::from_secs(9), 1001, false), || 0.5), Verdict::Drop);
    let params = ShaperParams { burst: Bytes::new(1000), ..ShaperParams::default() };
    let mut law = Shaper::new(&params, &view());
    assert_eq!(law.on_arrival(&arrival(Time::ZERO, 1001, false), || 0.5), Verdict::Drop);
    assert_eq!(law.on_arrival(&arrival(Time::ZERO, 1000, false), || 0.5), Verdict::Enqueue);
}

/// `tbf_parse_opt` of iproute2's `q_tbf.c`: limit = rate latency + burst, and no more than peakrate latency + mtu.
#[test]
fn a_latency_is_a_limit_as_tbf_has_it() {
    let params = ShaperParams {
        rate: RATE,
        burst: Bytes::new(10_000),
        latency: Some(Time::from_millis(50)),
        ..ShaperParams::default()
    };
    let packet = Bytes::new(1500);
    assert_eq!(params.own_limit(packet), Some(Limit::Bytes(60_000)));
    let peak = ShaperParams { peak: Some(RATE * 1.1), ..params };
    assert_eq!(peak.own_limit(packet), Some(Limit::Bytes(56_500)));
    let limit = ShaperParams { latency: None, limit: Some(Bytes::new(7000)), ..params };
    assert_eq!(limit.own_limit(packet), Some(Limit::Bytes(7000)));
    assert_eq!(ShaperParams { latency: None, ..params }.own_limit(packet), None);
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: PolicerParams| Policer::check(&p).expect_err("a refusal").0;
    let default = PolicerParams::default();
    assert!(Policer::check(&default).is_ok());
    assert_eq!(name(PolicerParams { rate: Rate::ZERO, ..default }), "rate");
    assert_eq!(name(PolicerParams { rate: Rate::from_bps(f64::NAN), ..default }), "rate");
    assert_eq!(name(PolicerParams { burst: Bytes::new(0), ..default }), "burst");
    assert_eq!(name(PolicerParams { peak: Some(RATE * 0.5), ..default }), "peak");
    assert_eq!(name(PolicerParams { mtu: Some(Bytes::new(1500)), ..default }), "mtu");
    assert_eq!(name(PolicerParams { peak: Some(RATE * 4.0), mtu: Some(Bytes::new(0)), ..default }), "mtu");
    let (limit, latency) = (Some(Bytes::new(1)), Some(Time::ZERO));
    let both = ShaperParams { limit, latency, ..ShaperParams::default() };
    assert_eq!(Shaper::check(&both).expect_err("a refusal").0, "latency");
}

proptest! {
    /// With a bucket for each flow, each flow is policed as if it were alone, whatever the others send, also when there are so many that
    /// full buckets are forgotten.
    #[test]
    fn flows_do_not_share_a_bucket(
        packets in prop::collection::vec((0u64..2000, 0u64..4, 40u32..1500), 1..300),
        others in 0u64..2,
    ) {
        let params = PolicerParams { rate: RATE, burst: Bytes::new(2000), per: Per::Flow, ..PolicerParams::default() };
        let mut all = Policer::new(&params, &view());
        let mut alone: Vec<_> = (0..4).map(|_| policer(2000, None, false)).collect();
        let mut now = 0;
        for (gap, flow, size) in packets {
            now += gap;
            for other in 0..others * 50 {
                all.on_arrival(&Arrival { flow: 1000 + now * 50 + other, ..arrival(Time::from_micros(now), 40, false) }, || 0.5);
            }
            let arrival = Arrival { flow, ..arrival(Time::from_micros(now), size, false) };
            let verdict = all.on_arrival(&arrival, || 0.5);
            prop_assert_eq!(verdict, alone[flow as usize].on_arrival(&arrival, || 0.5));
        }
    }
}

//! AVQ: its steps by hand and against the paper's algorithm, the rate at which it rests, the stability condition against the
//! linear system itself, and what must never happen.

use flowstamp_laws::queue::avq::{Avq, Params, stable_below};
use flowstamp_laws::queue::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::{Rate, Ratio, Time};
use proptest::prelude::*;

const PACKET: u32 = 1000;
/// Bytes per second.
const C: f64 = 1e6;

fn view(packets: u32) -> QueueView {
    QueueView {
        limit: Limit::Packets(packets),
        capacity: Rate::from_bytes_per_sec(C),
        mean_packet_bytes: PACKET,
    }
}

fn arrival(now: Time) -> Arrival {
    Arrival {
        now,
        size: PACKET,
        flow: 1,
        label: None,
        queue_bytes: 0,
        queue_packets: 0,
        ecn_capable: true,
        l4s: false,
        idle_since: None,
    }
}

fn with_alpha(alpha: f64) -> Params {
    Params { alpha: Some(alpha), ..Params::default() }
}

fn close(law: &Avq, queue: f64, capacity: f64) {
    let (vq, c) = law.virtual_state();
    assert!((vq - queue).abs() < 1e-6, "VQ {vq}, expected {queue}");
    assert!((c.bytes_per_sec() - capacity).abs() < 1e-6, "C~ {}, expected {capacity}", c.bytes_per_sec());
}

#[test]
fn steps_are_the_papers() {
    // C = 1e6 B/s, gamma C = 980,000, alpha = 2/s, B = 3000 B. By hand:
    let mut law = Avq::new(&with_alpha(2.0), &view(3));
    let mut come = |at_us: u64| {
        let verdict = law.on_arrival(&arrival(Time::from_micros(at_us)), || 0.5);
        (verdict, law.clone())
    };
    // VQ = 1000; C~ = 980,000 - 2 * 1000.
    let (verdict, law) = come(0);
    assert_eq!(verdict, Verdict::Enqueue);
    close(&law, 1000.0, 978_000.0);
    // VQ = 1000 - 978,000 * 500 us + 1000 = 1511; C~ = 978,000 + 2 * 980,000 * 500 us - 2000 = 976,980.
    close(&come(500).1, 1511.0, 976_980.0);
    close(&come(500).1, 2511.0, 974_980.0);
    // 2511 + 1000 > 3000: marked, and not counted in.
    let (verdict, law) = come(500);
    assert_eq!(verdict, Verdict::Mark);
    close(&law, 2511.0, 972_980.0);
    // A second later nothing waits, and C~ is at its most: 10^6 - 2000.
    close(&come(1_000_500).1, 1000.0, 998_000.0);
}

#[test]
fn what_cannot_be_marked_is_lost_and_not_counted() {
    let mut law = Avq::new(&with_alpha(2.0), &view(1));
    assert_eq!(law.on_arrival(&arrival(Time::ZERO), || 0.5), Verdict::Enqueue);
    let dropped = law.on_arrival(&Arrival { ecn_capable: false, ..arrival(Time::ZERO) }, || 0.5);
    assert_eq!(dropped, Verdict::Drop);
    // Only the first took alpha b off C~: lambda is what was let in.
    close(&law, 1000.0, 978_000.0);
    // Packets that the buffer does not hold take it too.
    let full = Arrival { queue_packets: 1, queue_bytes: 1000, ..arrival(Time::ZERO) };
    assert_eq!(law.on_arrival(&full, || 0.5), Verdict::Drop);
    close(&law, 1000.0, 976_000.0);
}

/// A source that adds a bit to its rate with each packet and takes more off with each mark, of which there is then one in ten: C~ is
/// about 0.9 gamma C, off its bounds. Over T, the mean rate is gamma C except for the change of C~, which is at most C
/// / (alpha T).
#[test]
fn it_rests_at_the_utilisation_asked_for() {
    for gamma in [0.98, 0.9, 0.5] {
        let params = Params { gamma: Ratio::new(gamma), ..with_alpha(1.0) };
        let mut law = Avq::new(&params, &view(20));
        let (mut now, mut rate, mut bytes) = (0.0f64, 0.3 * C, 0.0);
        let end = 200.0;
        while now < end {
            bytes += f64::from(PACKET);
            let verdict = law.on_arrival(&arrival(Time::from_secs_f64(now)), || 0.5);
            rate = if verdict == Verdict::Mark { rate * 0.98 } else { rate + 0.002 * C };
            now += f64::from(PACKET) / rate;
        }
        let (mean, slack) = (bytes / end, C / end);
        assert!((mean - gamma * C).abs() <= slack + f64::from(PACKET) / end, "{gamma}: {mean}");
    }
}

/// The linear system about the rest of gamma C/N = `share` packets per second and flow, by Euler's method: how a disturbance
/// of 30 round trips ago compares with that of now. beta = 2/3, p = (lambda - C~)/lambda.
fn grows(alpha: f64, share: f64, rtt: f64) -> f64 {
    let (k1, k2) = (1.0 / (share * rtt * rtt), share * 2.0 / 3.0);
    let steps_per_rtt = 4000;
    let dt = rtt / f64::from(steps_per_rtt);
    let mut past = std::collections::VecDeque::from(vec![(0.0f64, 0.0f64); steps_per_rtt as usize]);
    let (mut rate, mut capacity) = (1.0, 0.0);
    let mut peaks = Vec::new();
    for _ in 0..120 {
        let mut peak = 0.0f64;
        for _ in 0..steps_per_rtt {
            let (rate_then, capacity_then) = past.pop_front().expect("a round trip of the past");
            past.push_back((rate, capacity));
            // K12 = K1 + (beta/N) gamma C (1 - p), which is K2 in equilibrium.
            rate += dt * (-k1 * rate - k2 * rate_then + k2 * capacity_then);
            capacity -= dt * alpha * past.back().expect("just put there").0;
            peak = peak.max(rate.abs());
        }
        peaks.push(peak);
    }
    let largest = |range: std::ops::Range<usize>| peaks[range].iter().copied().fold(0.0, f64::max);
    largest(90..120) / largest(60..90)
}

#[test]
fn the_bound_on_alpha_is_where_the_linear_system_turns() {
    // Packets per flow and round trip, and the bound times the round trip: solved by bisection outside of this crate.
    for (window, known) in [(1.3, 1.602_975), (1.5, 1.285_584), (2.0, 0.751_677), (2.5, 0.277_546)] {
        for rtt in [0.1, 30e-6] {
            let bound = stable_below(1.0, window / rtt, 1.0, rtt).expect("a bound");
            assert!((bound * rtt - known).abs() < 1e-6, "{window} packets: {}", bound * rtt);
            assert!(
                grows(0.9 * bound, window / rtt, rtt) < 1.0,
                "{window} packets: unstable below the bound"
            );
            assert!(grows(1.1 * bound, window / rtt, rtt) > 1.0, "{window} packets: stable above the bound");
        }
    }
    // Katabi and Blake 2002: with a larger share of each flow nothing is stable, however slow. Here even alpha = 0 turns.
    assert_eq!(stable_below(1.0, 30.0, 1.0, 0.1), None);
    assert!(grows(1e-6, 30.0, 0.1) > 1.0);
    // p = 1/(beta W^2) above 1 is no rest.
    assert_eq!(stable_below(1.0, 12.0, 1.0, 0.1), None);
}

#[test]
fn alpha_follows_from_flows_and_round_trip() {
    // 1000 packets/s, gamma 0.98, 50 ms, 25 flows: 1.96 packets each.
    let given = Params { flows: Some(25), rtt: Some(Time::from_millis(50)), ..Params::default() };
    let bound = stable_below(0.98, 1000.0, 25.0, 0.05).expect("a bound");
    let mut law = Avq::new(&given, &view(50));
    assert!((law.alpha() - bound / 2.0).abs() < 1e-12);
    // A capacity for which there is none.
    law.set_capacity(Rate::from_bytes_per_sec(10.0 * C));
    assert!((law.alpha() - 0.15).abs() < 1e-12);
    for other in [Params::default(), Params { flows: None, ..given }, Params { rtt: None, ..given }] {
        assert!((Avq::new(&other, &view(50)).alpha() - 0.15).abs() < 1e-12);
    }
    assert!((Avq::new(&with_alpha(7.0), &view(50)).alpha() - 7.0).abs() < 1e-12);
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: &Params| Avq::check(p).expect_err("a refusal").0;
    let default = Params::default();
    assert!(Avq::check(&default).is_ok());
    assert_eq!(name(&Params { gamma: Ratio::new(1.01), ..default }), "gamma");
    assert_eq!(name(&with_alpha(-1.0)), "alpha");
    assert_eq!(name(&Params { flows: Some(0), ..default }), "flows");
    assert_eq!(name(&Params { flows: Some(3), ..with_alpha(1.0) }), "flows");
    assert_eq!(name(&Params { virtual_buffer: Ratio::new(0.0), ..default }), "virtual_buffer");
    assert_eq!(name(&Params { rtt: Some(Time::ZERO), ..default }), "rtt");
}

proptest! {
    /// The paper's algorithm, in seconds and plain numbers: the same marks, the same state.
    #[test]
    fn decisions_are_those_of_the_algorithm(
        alpha in 0.0f64..1000.0,
        gamma in 0.1f64..1.0,
        buffer in 1u32..100,
        gaps in prop::collection::vec((0u64..5_000, 40u32..1500), 1..400),
    ) {
        let params = Params { gamma: Ratio::new(gamma), ..with_alpha(alpha) };
        let mut law = Avq::new(&params, &view(buffer));
        let most = f64::from(buffer * PACKET);
        let (mut vq, mut c, mut s, mut now) = (0.0f64, gamma * C, None, Time::ZERO);
        for (gap_us, size) in gaps {
            now += Time::from_micros(gap_us);
            let (t, b) = (now.as_secs_f64(), f64::from(size));
            let passed = (now - s.unwrap_or(now)).as_secs_f64();
            vq = (vq - c * passed).max(0.0);
            let mark = vq + b > most;
            if !mark {
                vq += b;
            }
            c = ((c + alpha * gamma * C * passed).min(C) - alpha * b).max(0.0);
            s = Some(now);
            let verdict = law.on_arrival(&Arrival { size, ..arrival(now) }, || 0.5);
            prop_assert_eq!(verdict == Verdict::Mark, mark, "at {}", t);
            let (queue, capacity) = law.virtual_state();
            prop_assert!((queue - vq).abs() < 1e-6 && (capacity.bytes_per_sec() - c).abs() < 1e-3);
        }
    }

    #[test]
    fn state_stays_finite(
        alpha in 0.0f64..1e9,
        steps in prop::collection::vec((0u64..u64::MAX / 512, 1u32..65_535, 0.0f64..1e14, any::<bool>()), 1..200),
    ) {
        let mut law = Avq::new(&with_alpha(alpha), &view(10));
        let mut now = Time::ZERO;
        for (gap_ps, size, bps, ecn_capable) in steps {
            now += Time::from_ps(gap_ps);
            law.set_capacity(Rate::from_bps(bps));
            law.on_arrival(&Arrival { size, ecn_capable, ..arrival(now) }, || 0.5);
            let (queue, capacity) = law.virtual_state();
            prop_assert!((0.0..=10_000.0).contains(&queue), "{}", queue);
            prop_assert!(capacity.bps() >= 0.0 && capacity.bps() <= bps * (1.0 + 1e-12), "{}", capacity);
            law.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
        }
    }
}

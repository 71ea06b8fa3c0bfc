//! Compares the kernel's ABC in C with the Rust law: every function of bpf/abc.h, within the error bound stated there.
//! It runs 10^4 cases of each function, or 10^6 with FLOWSTAMP_NIGHTLY=1. A failure prints the smallest failing case;
//! PROPTEST_RNG_SEED=N repeats a run.

#![expect(clippy::cast_precision_loss, reason = "bounds are of 2^-29, f64's rounding is of 2^-53")]

#[macro_use]
mod c_laws;

use c_laws::{U, config, log_uniform};
use flowstamp_laws::abc::router::{Params as LawParams, accelerates, dequeue_rate, target_rate};
use flowstamp_laws::abc::{Header, Mark, Router};
use flowstamp_laws::router::{LinkView, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::{Rate, Stamp, Time};
use proptest::prelude::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Params {
    capacity_q16: u64,
    target_q16: u64,
    tolerated_bytes: u64,
    delta_ns: u64,
    mean_age_ns: u64,
    interval_ns: u64,
    token_limit_q16: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    input_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct State {
    dequeue_q16: u64,
    share_q16: u64,
    queue_bytes: u64,
    tokens_q16: i64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_abc_left(p: &Params, s: &State, input: u64, interval_ns: u64, queue: u64) -> u64;
    safe fn fs_host_abc_dequeue(p: &Params, dequeue_q16: u64, bytes: u64, interval_ns: u64) -> u64;
    safe fn fs_host_abc_share(p: &Params, dequeue_q16: u64, queue_bytes: u64) -> u64;
    safe fn fs_host_abc_measure(p: &Params, s: &mut State, sums: &Sums, interval_ns: u64, queue_bytes: u64);
    safe fn fs_host_abc_stays(tokens_q16: &mut i64, limit_q16: u64, share_q16: u64, packets: u32) -> bool;
}

fn q16(v: f64) -> u64 {
    (v * ONE).round() as u64
}

const ONE: f64 = 65536.0;
const S: f64 = 1e9;

fn params(rate: f64, eta: f64, [delta_ns, d_t_ns, window_ns]: [u64; 3]) -> Params {
    Params {
        capacity_q16: q16(rate),
        target_q16: q16(rate * eta),
        tolerated_bytes: (rate * d_t_ns as f64 / S) as u64,
        delta_ns,
        mean_age_ns: window_ns / 2,
        interval_ns: (window_ns / 10).max(1),
        token_limit_q16: 5 << 16,
    }
}

prop_compose! {
    /// Links of 100 kb/s to 100 Gb/s, and times from 1 us to 20 s.
    fn parameters()(
        rate in log_uniform(1.25e4, 1.25e10),
        eta in 0.01f64..1.0,
        delta in log_uniform(1e3, 2e10),
        d_t in log_uniform(1e3, 2e10),
        window in log_uniform(1e3, 2e10),
    ) -> Params {
        params(rate, eta, [delta as u64, d_t as u64, window as u64])
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bytes_that_left(
        p in parameters(),
        before in log_uniform(1.0, 1e12),
        input in log_uniform(1.0, 1e12),
        queue in log_uniform(1.0, 1e12),
        interval in log_uniform(1e3, 2e10),
    ) {
        let s = State { queue_bytes: before as u64, ..State::default() };
        let (input, queue, interval) = (input as u64, queue as u64, interval as u64);
        let left = fs_host_abc_left(&p, &s, input, interval, queue) as f64;
        let most = p.capacity_q16 as f64 / ONE * interval as f64 / S;
        let exact = ((s.queue_bytes + input) as f64 - queue as f64).clamp(0.0, most);
        prop_assert!((left - exact).abs() <= U * most + 1.0, "{} {}", left, exact);
    }

    /// The rate as the Rust law computes it, for an interval in which `bytes` left.
    #[test]
    fn the_dequeue_rate(
        p in parameters(),
        dequeue in log_uniform(1.0, 1.25e10),
        rate in log_uniform(1.0, 1e12),
        interval in log_uniform(1e3, 2e10),
    ) {
        let (dequeue, interval) = (q16(dequeue), interval as u64);
        let bytes = (rate * interval as f64 / S) as u64;
        let rate = bytes as f64 * S / interval as f64;
        let had = dequeue as f64 / ONE;
        let exact = dequeue_rate(had, bytes as f64, interval as f64 / S, p.mean_age_ns as f64 / S);
        let found = fs_host_abc_dequeue(&p, dequeue, bytes, interval) as f64 / ONE;
        prop_assert!((found - exact).abs() <= 4.0 * U * had.max(rate) + 2f64.powi(-15), "{} {}", found, exact);
    }

    /// Equations 1 and 2 as the Rust law computes them.
    #[test]
    fn the_share(p in parameters(), dequeue in log_uniform(1.0, 1.25e10), queue in log_uniform(1.0, 4e9)) {
        let (dequeue, queue) = (q16(dequeue), queue as u64);
        let rate = p.capacity_q16 as f64 / ONE;
        let (base, cr) = (p.target_q16 as f64 / ONE, dequeue as f64 / ONE);
        let delta = p.delta_ns as f64 / S;
        let d_t = p.tolerated_bytes as f64 / rate;
        let exact = accelerates(target_rate(base, queue as f64, rate, d_t, delta), cr);
        let found = fs_host_abc_share(&p, dequeue, queue) as f64 / ONE;
        let drain = (queue as f64 - p.tolerated_bytes as f64).max(0.0) / delta;
        let bound = 2f64.powi(-15) + 4.0 * U * (base + drain) / (2.0 * cr);
        prop_assert!((0.0..=1.0).contains(&found) && (found - exact).abs() <= bound, "{} {} {}", found, exact, bound);
    }

    /// A bucket never exceeds its limit, and its debt is at most the longest frame.
    #[test]
    fn the_bucket(
        limit in 2u64..1_000_000,
        frames in prop::collection::vec((0u64..=65536, 1u32..=64), 1..200),
    ) {
        let (mut tokens, mut exact) = ((limit << 16) as i64, limit as f64);
        for (share, packets) in frames {
            let stays = fs_host_abc_stays(&mut tokens, limit << 16, share, packets);
            exact = (exact + share as f64 / ONE * f64::from(packets)).min(limit as f64);
            prop_assert_eq!(stays, exact > 1.0);
            exact -= if stays { f64::from(packets) } else { 0.0 };
            prop_assert_eq!(tokens as f64 / ONE, exact); // both are exact
            prop_assert!(tokens <= (limit << 16) as i64 && tokens > -(64 << 16));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..config() })]

    /// A link whose queue rises or falls: the kernel's law in intervals of 2 ms, with packets of 1500 bytes that leave in
    /// turn, marks as many accelerates as the Rust law, which hears of each departure.
    #[test]
    fn as_many_accelerates_as_the_rust_law(
        mbps in 10.0f64..200.0,
        fill in 0.1f64..1.0,
        swing_ms in 1.0f64..200.0,
        mean_ms in 0.0f64..150.0,
    ) {
        let (rate, packet) = (mbps * 1e6 / 8.0, 1500.0);
        let p = params(rate, 0.98, [133_000_000, 50_000_000, 20_000_000]);
        let view = RouterView { packet_bytes: 1500, ..RouterView::of(Rate::from_bytes_per_sec(rate)) };
        let mut law = Router::new(&LawParams::default(), &view);
        let mut kernel = State { tokens_q16: 5 << 16, share_q16: 1 << 16, ..State::default() };
        let gap = packet / rate / if mean_ms > swing_ms { 1.0 } else { fill }; // a queue needs a busy link
        let queue = |at: f64| {
            let ms = if mean_ms > swing_ms { mean_ms + swing_ms * (3.0 * at).sin() } else { 0.0 };
            (ms / 1e3 * rate / packet).floor() * packet
        };
        let (mut marks, mut sums, mut input, mut interval, mut last) = ([0u32; 2], [0.0; 2], 0, 0.002, 0.0);
        let mut at = 0.001;
        while at < 3.0 {
            if at >= interval {
                // Bytes that left had come, or waited.
                let (before, after) = (queue(last), queue(at));
                let came = (f64::from(input) * packet + after - before).max(0.0) as u64;
                let ns = ((at - last) * S) as u64;
                fs_host_abc_measure(&p, &mut kernel, &Sums { input_bytes: came }, ns, after as u64);
                (input, last, interval) = (0, at, at + 0.002);
            }
            input += 1;
            let stays = fs_host_abc_stays(&mut kernel.tokens_q16, p.token_limit_q16, kernel.share_q16, 1);
            let (mut stamp, mut bits) = (Stamp::from(Header::SENT), Mark::Accelerate.bits());
            let link = LinkView { now: Time::from_secs_f64(at), queue_bytes: queue(at) as u64, queue_packets: 1 };
            law.on_departure(link, PacketOut { size: 1500, stamp: &mut stamp, bits: &mut bits }, || 0.0);
            if at > 0.5 {
                marks[0] += u32::from(stays);
                marks[1] += u32::from(Mark::read(bits) == Mark::Accelerate);
                sums[0] += kernel.share_q16 as f64 / ONE;
                sums[1] += law.share();
            }
            at += gap;
        }
        let total = 2.5 / gap;
        // The kernel's f is that of the interval's start, so a queue that changes by `slope` seconds per second makes it older by
        // an interval: at most slope / (2 delta) of f for each second. Both buckets start anywhere in their size and end there,
        // which is 5 marks, and a mark may be under way. Its own error is that of fs_abc_share_q16().
        let slope = if mean_ms > swing_ms { 3.0 * swing_ms / 1e3 } else { 0.0 };
        let older = slope / (2.0 * 0.133) * (0.002 + gap);
        let tolerance = older + 6.0 / total + 2f64.powi(-15) + 4.0 * U;
        let [kernel, rust] = marks.map(|marks| f64::from(marks) / total);
        prop_assert!((kernel - rust).abs() < tolerance, "{} {} {:?} {}", kernel, rust, sums, tolerance);
    }
}

//! Compares SCONE's scale, mean and monitoring in C with Rust: the codec's scale, and models in exact arithmetic.

use flowstamp_laws::scone;
use flowstamp_laws::units::Time;
use flowstamp_wire::scone::{PERIOD_S, RATES, Signal};
use proptest::prelude::*;

/// `struct fs_scone_mean` of bpf/scone.h.
#[repr(C)]
struct Mean {
    total: u64,
    count: u64,
    at: u32,
    samples: u32,
    sums: [u64; PERIOD_S as usize],
    counts: [u64; PERIOD_S as usize],
}

/// `struct fs_scone_flow` of bpf/scone.h.
#[repr(C)]
#[derive(Default)]
struct Flow {
    tag: u64,
    since_ns: u64,
    last_ns: u64,
    bytes: u64,
    written_ns: u64,
    tokens: u64,
    tokens_ns: u64,
    policy: u8,
    most: u8,
    most_before: u8,
    written: u8,
    writes: u8,
    seasoned: u8,
    over: u8,
    reserved: u8,
}

unsafe extern "C" {
    fn fs_host_scone_rate(signal: u32) -> u64;
    fn fs_host_scone_at_most(rate: u64) -> u32;
    fn fs_host_scone_mean(mean: *mut Mean, sample: u64) -> u64;
    fn fs_host_scone_begin(flow: *mut Flow, now: u64, policy: u32);
    fn fs_host_scone_count(flow: *mut Flow, now: u64, bytes: u64, advice: u32) -> u32;
    fn fs_host_scone_may_write(flow: *mut Flow, now: u64, advice: u32) -> bool;
    fn fs_host_scone_admit(flow: *mut Flow, now: u64, bytes: u64, rate: u64) -> bool;
}

const SECOND: u64 = 1_000_000_000;
const PERIOD: u64 = PERIOD_S * SECOND;
/// Results of `fs_scone_count`.
const JUDGED: u32 = 1;
const OVER: u32 = 2;

/// A signal below the scale is the lowest, because a law's rate may be below 100 kb/s.
fn rust_at_most(rate: u64) -> u32 {
    Signal::at_most(rate).unwrap_or(Signal::MIN).bits().into()
}

#[test]
fn the_scales_are_the_same() {
    // SAFETY: plain numbers.
    unsafe {
        for (bits, rate) in RATES.iter().enumerate() {
            assert_eq!(fs_host_scone_rate(bits as u32), *rate);
            for near in [rate - 1, *rate, rate + 1] {
                assert_eq!(fs_host_scone_at_most(near), rust_at_most(near), "{near}");
            }
        }
        assert_eq!(fs_host_scone_rate(127), u64::MAX);
        for rate in [0, 1, u64::MAX] {
            assert_eq!(fs_host_scone_at_most(rate), rust_at_most(rate));
        }
    }
}

fn flow() -> Flow {
    let mut flow = Flow::default();
    // SAFETY: the structure is C's.
    unsafe { fs_host_scone_begin(&raw mut flow, SECOND, 127) };
    flow
}

proptest! {
    #[test]
    fn rates_are_rounded_alike(exponent in 0.0..64.0_f64) {
        let rate = exponent.exp2() as u64;
        // SAFETY: a plain number.
        prop_assert_eq!(unsafe { fs_host_scone_at_most(rate) }, rust_at_most(rate));
    }

    /// With ten samples per second, C's mean is the law's: of the current second, and of the 66 whole seconds before it. C rounds down
    /// to a whole bit/s. The law weights samples by time, and the first sample lasts a nanosecond less, so that ten are in a second.
    #[test]
    fn the_mean_is_that_of_the_law(samples in proptest::collection::vec(0_u64..35_000_000_000_000, 1..1500)) {
        let mut mean = Mean { total: 0, count: 0, at: 0, samples: 0, sums: [0; 67], counts: [0; 67] };
        let mut law = scone::Mean::default();
        for (i, sample) in (1..).zip(&samples) {
            law.add(Time::from_nanos(i * (SECOND / 10) - 1), *sample as f64);
            // SAFETY: the structure is C's.
            let found = unsafe { fs_host_scone_mean(&raw mut mean, *sample) } as f64;
            let expected = law.get().expect("a sample");
            let most = samples.iter().max().map_or(0.0, |most| *most as f64);
            prop_assert!((found - expected).abs() <= 1.0 + 1e-7 * most, "{} of {}", found, expected);
        }
    }

    /// Judgements against exact arithmetic, by the higher advice of two periods. The period's length counts in whole ms.
    #[test]
    fn judgements_are_exact(periods in proptest::collection::vec((0_u32..128, 0.5..2.0_f64, 0_u64..SECOND), 1..12)) {
        let (mut flow, mut now, mut before) = (flow(), SECOND, None::<u32>);
        for (i, (advice, share, late)) in periods.into_iter().enumerate() {
            let most = before.map_or(advice, |before: u32| before.max(advice));
            let rate = RATES.get(most as usize).copied();
            let bytes = rate.map_or(1 << 40, |rate| (rate as f64 / 8.0 * PERIOD_S as f64 * share) as u64);
            let allowed = rate.map(|rate| u128::from(rate) * u128::from((PERIOD + late) / 1_000_000 + 1));
            // SAFETY: the structure is C's.
            let result = unsafe {
                assert_eq!(fs_host_scone_count(&raw mut flow, now, bytes, advice) & JUDGED, 0, "a period has just begun");
                now += PERIOD + late;
                fs_host_scone_count(&raw mut flow, now, 0, 0)
            };
            prop_assert_eq!(result & JUDGED != 0, i > 0 && rate.is_some());
            let over = allowed.is_some_and(|allowed| u128::from(bytes) * 8000 > allowed);
            prop_assert_eq!(result & OVER != 0, i > 0 && over, "{} bytes, signal {}", bytes, most);
            before = Some(advice);
        }
    }

    /// For any requests at any times, a period has at most four changes for each advice that is lower than the last, and one per 14 s.
    #[test]
    fn changes_are_few(steps in proptest::collection::vec((0_u64..3 * SECOND, 0_u32..127), 1..200)) {
        let (mut flow, mut now, mut lowest) = (flow(), SECOND, 127);
        let (mut falls, mut written) = (0, 0);
        for (step, advice) in steps {
            now += step;
            if now - SECOND >= PERIOD {
                break;
            }
            falls += u64::from(advice < lowest);
            lowest = lowest.min(advice);
            // SAFETY: the structure is C's.
            written += u64::from(unsafe { fs_host_scone_may_write(&raw mut flow, now, advice) });
        }
        prop_assert!(written <= 4 * falls + PERIOD_S / 14, "{} changes", written);
    }

    /// A policed flow passes a token bucket of its rate and one burst. The C counts whole us.
    #[test]
    fn the_limit_is_a_rate_and_a_burst(
        signal in 0_usize..127, packets in proptest::collection::vec((0_u64..2_000_000, 1_u64..65536), 1..300)
    ) {
        let (rate, mut flow, mut now) = (RATES[signal], flow(), SECOND);
        let bytes_per_ns = rate as f64 / 8e9;
        let burst = ((rate / 8).max(131_072)) as f64;
        let mut tokens = burst;
        for (gap, bytes) in packets {
            now += gap;
            tokens = (tokens + gap as f64 * bytes_per_ns).min(burst);
            // SAFETY: the structure is C's.
            let passes = unsafe { fs_host_scone_admit(&raw mut flow, now, bytes, rate) };
            // A us at the rate, and the rounding of the burst to a byte and of this sum.
            let margin = 1e3 * bytes_per_ns + 1.0 + 1e-9 * burst;
            let needed = bytes as f64;
            let agrees = if passes { tokens >= needed - margin } else { tokens <= needed + margin };
            prop_assert!(agrees, "{} of {} needed, passes: {}", tokens, needed, passes);
            if passes {
                tokens -= needed;
            }
        }
    }
}

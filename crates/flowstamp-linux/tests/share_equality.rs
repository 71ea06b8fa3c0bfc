//! Compares sharing a link in C (bpf/share.h) with the Rust law: the flow count packet by packet, and the
//! router law's capacity. It runs 10^4 cases, or 10^6 with FLOWSTAMP_NIGHTLY=1. A case of the flow count is a
//! run of 5,000 packets and counts as a hundred.

#![expect(clippy::cast_precision_loss, reason = "counts below 2^53")]

#[macro_use]
mod c_laws;

use c_laws::config_of;
use flowstamp_laws::Rate;
use flowstamp_laws::Time;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::zombies::Zombies;
use flowstamp_laws::share::{OTHER, OWN, Params};
use proptest::prelude::*;

const LENGTH: usize = 1000;
const OVERWRITE_Q16: u32 = 16384;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    bytes: u64,
    compared: u64,
    found: u64,
}

#[repr(C)]
struct List {
    length: u32,
    list: [u32; LENGTH],
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_zombies_arrival(z: &mut List, class: &mut Class, flow: u32, random: u32);
    safe fn fs_host_share_capacity(
        capacity: u64,
        own_least: u64,
        other_of_period: u64,
        other_now: u64,
    ) -> u64;
}

/// A generator good enough to pick packets with (splitmix64).
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }
}

#[test]
fn constants_are_the_laws_defaults() {
    let params = Params::default();
    assert_eq!(params.zombies as usize, LENGTH);
    assert_eq!(params.overwrite.get(), f64::from(OVERWRITE_Q16) / 65536.0);
}

proptest! {
    #![proptest_config(config_of(100))]

    #[test]
    fn flows_are_counted_alike(seed: u64, flows in 1u32..3000, packets in 0u32..5000, period in 1u32..5000) {
        let mut rust = Zombies::new(LENGTH as u32, f64::from(OVERWRITE_Q16) / 65536.0);
        let mut list = List { length: 0, list: [0; LENGTH] };
        let (mut class, mut dice) = (Class::default(), Dice(seed));
        // The kernel's counters only grow; the estimate keeps half of what was counted before.
        let (mut seen, mut kept) = (Class::default(), (0, 0));
        for at in 1..=packets {
            let (flow, random) = (dice.draw() % flows, dice.draw());
            fs_host_zombies_arrival(&mut list, &mut class, flow, random);
            // The first draw is the whole word, the second its lower half.
            let mut draws = [f64::from(random) / 2f64.powi(32), f64::from(random & 0xffff) / 65536.0].into_iter();
            rust.on_arrival(u64::from(flow), || draws.next().expect("two at most"));
            if at % period == 0 || at == packets {
                let compared = kept.0 + class.compared - seen.compared;
                let found = kept.1 + class.found - seen.found;
                prop_assert_eq!(rust.estimate(), compared as f64 / found.max(1) as f64, "after {}", at);
                kept = (compared / 2, found / 2);
                seen = class;
            }
        }
    }
}

proptest! {
    #![proptest_config(config_of(1))]

    // Given what the last period saw and no more since, it is the law's, to a unit of the fixed point for each of three roundings.
    #[test]
    fn the_law_may_fill_as_much(
        mbps in 0.1f64..100_000.0,
        weight in 0.01f64..0.99,
        ms in 200u64..2000,
        other_load in 0.0f64..2.0,
        own_load in 0.0f64..2.0,
        counts in prop::array::uniform4(0u64..10_000),
    ) {
        let capacity = Rate::from_mbps(mbps);
        let period = Time::from_millis(ms);
        let mut split = Split::resume(&Params::default(), capacity, weight, Time::ZERO);
        let bytes = |load: f64| (load * capacity.bytes_in(period)) as u64;
        split.on_counts(OWN, bytes(own_load), counts[0] + counts[1], counts[1]);
        split.on_counts(OTHER, bytes(other_load), counts[2] + counts[3], counts[3]);
        split.on_timer(period);
        let q16 = |v: f64| (v * 65536.0).round() as u64;
        let c = q16(capacity.bytes_per_sec());
        let least = q16(capacity.bytes_per_sec() * split.weights()[OWN]);
        let other = q16(bytes(other_load) as f64 / period.as_secs_f64());
        let got = fs_host_share_capacity(c, least, other, 0);
        let law = split.own_capacity().bytes_per_sec() * 65536.0;
        // f64 has 53 bits, of which rates of 100 Gb/s take 50 here.
        prop_assert!((got as f64 - law).abs() <= 3.0 + law * 2f64.powi(-50), "{} instead of {}", got, law);
    }

    // Later arrivals can only lower it, down to the own weight's part.
    #[test]
    fn newer_traffic_only_lowers_it(c in 1u64..1 << 50, least in 0.01f64..0.99, other in 0u64..1 << 52, now in 0u64..1 << 52) {
        let least = (c as f64 * least) as u64;
        let before = fs_host_share_capacity(c, least, other, 0);
        let after = fs_host_share_capacity(c, least, other, now);
        prop_assert!(least <= after && after <= before && before <= c);
        prop_assert_eq!(after, c.saturating_sub(other.max(now)).max(least));
    }
}

//! Code shared by the tests that compare the laws in C with those in Rust.

#![allow(dead_code, unused_macros, reason = "each comparison has its laws")]

use flowstamp_laws::router::RouterLaw;
use proptest::prelude::*;
use std::collections::HashMap;

/// Largest relative error of a product of fs_mul_div.
pub const U: f64 = 1.0 / (1u64 << 29) as f64;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct XcpParams {
    pub capacity_q16: u64,
    pub alpha_q32: u64,
    pub beta_q32: u64,
    pub gamma_q32: u64,
    pub min_interval_ns: u64,
    pub max_rtt_us: u64,
    pub queue_window_q32: u64,
    pub min_queue_interval_ns: u64,
    pub max_weight_q16: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct XcpSums {
    pub input_bytes: u64,
    pub sum_x_q4: u64,
    pub sum_x_rtt_low: u64,
    pub sum_x_rtt_high: u64,
    pub x_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Gain {
    pub mantissa: u64,
    pub shift: i64,
}

impl Gain {
    pub fn value(self) -> f64 {
        self.mantissa as f64 * 2f64.powi(-self.shift as i32)
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Xcp {
    pub give: Gain,
    pub take: Gain,
    pub most_x: Gain,
    pub residue_pos_q16: u64,
    pub residue_neg_q16: u64,
    pub avg_rtt_q8: u64,
    pub persistent_queue_bytes: u64,
    pub min_queue_bytes: u64,
    pub aggregate_q16: i64,
    pub input_rate_q16: u64,
}

/// 10^4 cases, or 10^6 in the nightly run, divided by the number of cases that each one stands for.
pub fn config_of(each_counts_for: u32) -> ProptestConfig {
    let nightly = std::env::var_os("FLOWSTAMP_NIGHTLY").is_some_and(|v| v == "1");
    let cases = if nightly { 1_000_000 } else { 10_000 } / each_counts_for;
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

pub fn config() -> ProptestConfig {
    config_of(1)
}

/// Uniform in the logarithm: every order of magnitude alike.
pub fn log_uniform(least: f64, most: f64) -> impl Strategy<Value = f64> {
    (least.ln()..=most.ln()).prop_map(f64::exp)
}

pub fn q32(v: u64) -> f64 {
    v as f64 / 4_294_967_296.0
}

pub fn q16(v: u64) -> f64 {
    v as f64 / 65536.0
}

/// A law's variables by name.
pub fn variables(law: &impl RouterLaw) -> HashMap<&'static str, f64> {
    let mut all = HashMap::new();
    law.variables(&mut |name, value| {
        all.insert(name, value);
    });
    all
}

macro_rules! close {
    ($c:expr, $rust:expr, $bound:expr, $what:expr) => {
        let (c, rust, bound): (f64, f64, f64) = ($c, $rust, $bound);
        prop_assert!(
            (c - rust).abs() <= bound,
            "{}: C {c}, Rust {rust}, off by {} of {bound}",
            $what,
            (c - rust).abs()
        );
    };
}

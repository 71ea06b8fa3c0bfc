//! RCP in the kernel: `fs_rcp_*` of bpf/laws.h.

use super::fixed::{bps, ns, q16, q32, seconds};
use super::parameters::{BOUND, RTT, TIMER, between, lacked, lacks};
use super::{Law, LinkProperties, Variable};
use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::rcp::Header;
use flowstamp_laws::rcp::router::{MAX_ALLOWABLE_RTT, Params};
use flowstamp_laws::registry::{self, RouterSpec};
use flowstamp_wire::option;

pub static LAW: Law = Law {
    name: "rcp",
    number: 1,
    header: registry::Header::Rcp,
    option: Some(option::Protocol::Rcp),
    blind: false,
    // eta: a shaper's rate and a law's estimate never match exactly. max_rtt_factor: caps the RTTs that other
    // hosts' packets can claim, to limit their harm.
    defaults: &[("eta", "0.95"), ("max_rtt_factor", "4")],
    options: &[("eta", "eta")],
    variables: &[
        Variable {
            name: "rate_bps",
            help: "RCP: rate given to flows",
            of: |_, link| bps(link.rcp.rate_q16 as f64),
        },
        Variable {
            name: "avg_rtt_s",
            help: "Average RTT that packets carry",
            of: |_, link| seconds(link.rcp.avg_rtt_q8),
        },
        Variable {
            name: "input_rate_bps",
            help: "Input of the last interval",
            of: |_, link| bps(link.rcp.input_rate_q16 as f64),
        },
        Variable {
            name: "flows_estimate",
            help: "RCP: target rate over the rate given to flows",
            of: |config, link| {
                let target = link.own_capacity_q16 as f64 * config.eta_q32 as f64 / 4_294_967_296.0;
                target / (link.rcp.rate_q16 as f64).max(1.0)
            },
        },
    ],
    carries,
    translate,
    input_bytes: |link| link.seen.rcp.input_bytes,
    read: |carried| {
        let rtt_s = f64::from(carried.rtt.to_micros().unwrap_or(0)) * 1e-6;
        Header { rate: f64::from(carried.value) * PER_MS, rtt_s, age_bytes: 0.0 }.into()
    },
    // At least 1, because zero means no rate.
    write: |stamp| ((Header::from(*stamp).rate / PER_MS) as u32).max(1),
    told: |_| 0,
    tell: |_, _| {},
    least: 1,
    most: option::UNBOUNDED_RATE,
    what: "rate",
};

/// The option's rate is in bytes per millisecond.
const PER_MS: f64 = 1000.0;

/// Refuses classes by age and weights, because the option has no fields for them.
fn carries(spec: &RouterSpec) -> Result<(), Refusal> {
    let RouterSpec::Rcp(parameters) = spec else { unreachable!("it is another law's") };
    let (p, default, whom) = (parameters, Params::default(), "hosts, whose option has no age");
    lacked(&LAW, "long_share", &p.long_share, &default.long_share, whom)?;
    lacked(&LAW, "long_after", &p.long_after, &default.long_after, whom)?;
    lacked(&LAW, "levels", &p.levels, &default.levels, whom)?;
    lacked(&LAW, "level_ratio", &p.level_ratio, &default.level_ratio, whom)?;
    lacked(&LAW, "max_weight", &p.max_weight, &default.max_weight, "hosts, whose option has no weight")
}

/// Refuses parameters that the kernel's router does not have.
fn lacked_here(p: &Params) -> Result<(), Refusal> {
    let default = Params::default();
    lacks(&LAW, "capacity", &p.capacity, &default.capacity)?;
    lacks(&LAW, "growth", &p.growth, &default.growth)?;
    lacks(&LAW, "fairness", &p.fairness, &default.fairness)?;
    lacks(&LAW, "rtt_gain", &p.rtt_gain, &default.rtt_gain)?;
    lacks(&LAW, "rtt_share", &p.rtt_share, &default.rtt_share)
}

fn translate(
    spec: &RouterSpec,
    link: &LinkProperties,
    config: &mut types::fs_config,
    first: &mut types::fs_link,
) -> Result<(), Refusal> {
    let RouterSpec::Rcp(parameters) = spec else { unreachable!("it is another law's") };
    // Destructured, so that each new parameter must be translated or refused below.
    let Params {
        alpha,
        beta,
        eta,
        max_interval,
        max_allowable_rtt,
        max_rtt_factor,
        mtu,
        initial_rate,
        initial_rtt,
        // Refused by `lacked_here` unless they are the default.
        capacity: _,
        growth: _,
        fairness: _,
        rtt_gain: _,
        rtt_share: _,
        // Refused by `carries` unless they are the default.
        long_share: _,
        long_after: _,
        levels: _,
        level_ratio: _,
        max_weight: _,
    } = parameters;
    lacked_here(parameters)?;
    let max_interval = between(&LAW, "max_interval", *max_interval, [link.min_interval, TIMER[1]])?;
    let max_allowable_rtt =
        between(&LAW, "max_allowable_rtt", max_allowable_rtt.unwrap_or(MAX_ALLOWABLE_RTT), RTT)?;
    let max_rtt_factor = max_rtt_factor.map(|c| between(&LAW, "max_rtt_factor", c, BOUND)).transpose()?;
    let initial_rtt = initial_rtt.map(|rtt| between(&LAW, "initial_rtt", rtt, RTT)).transpose()?;

    let bytes_per_sec = link.known_rate().bytes_per_sec();
    config.eta_q32 = q32(*eta);
    config.rcp = types::fs_rcp_params {
        link_rate_q16: q16(bytes_per_sec),
        target_rate_q16: q16(bytes_per_sec * eta),
        alpha_q32: q32(*alpha),
        beta_q32: q32(*beta),
        mtu_bytes: mtu.get(),
        max_interval_ns: ns(max_interval),
        min_interval_ns: ns(link.min_interval),
        // RTTs are whole microseconds.
        max_rtt_us: ns(max_allowable_rtt).div_ceil(1000),
        max_rtt_factor_q16: max_rtt_factor.map_or(0, q16),
    };
    let rate = link.own_weight * bytes_per_sec * initial_rate;
    first.rcp.rate_q16 = q16(rate);
    // Zero means unknown; the first packets' RTT then sets it.
    first.rcp.avg_rtt_q8 = initial_rtt.map_or(0, ns) << 8;
    first.offer = ((rate / PER_MS) as u32).max(1);
    first.interval_ns = ns(initial_rtt.unwrap_or(max_interval).min(max_interval)).max(ns(link.min_interval));
    Ok(())
}

//! ABC in the kernel: `fs_abc_*` of bpf/abc.h. Its packets have no option: ECT(1) marks an accelerate. Hosts here do not
//! know the law; senders are those of ABC's authors, or others that count marks.

use super::fixed::{bps, ns, q16};
use super::parameters::{between, lacks};
use super::{Law, LinkProperties, PACKET_BYTES, Variable, vcp};
use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::Time;
use flowstamp_laws::abc::RTT;
use flowstamp_laws::abc::router::Params;
use flowstamp_laws::registry::{self, RouterSpec};

pub static LAW: Law = Law {
    name: "abc",
    // FS_ABC of bpf/router.bpf.c.
    number: 5,
    header: registry::Header::Abc,
    option: None,
    // eta: a shaper's rate and a law's estimate never match exactly.
    defaults: &[("eta", "0.95")],
    options: &[("eta", "eta")],
    variables: &[
        Variable {
            name: "dequeue_rate_bps",
            help: "ABC: rate at which the link sends",
            of: |_, link| bps(link.abc.dequeue_q16 as f64),
        },
        Variable {
            name: "accelerate_share",
            help: "ABC: share of packets that may stay accelerates",
            of: |_, link| link.abc.share_q16 as f64 / 65536.0,
        },
    ],
    carries: |_| Ok(()),
    translate,
    input_bytes: |link| link.seen.abc.input_bytes,
    told: |_| 0,
    tell: |_, _| {},
    least: 0,
    most: 0,
    what: "mark",
    // The rest is for packets with an option.
    ..vcp::LAW
};

/// The range of times for which bpf/abc.h is valid.
const TIMES: [Time; 2] = [Time::from_micros(1), Time::from_secs(20)];
/// The longest RTT for which the default of delta, 1.33 times as long, is within this range.
pub(super) const LONGEST_RTT: Time = Time::from_secs(15);
/// Defaults of `rate_window` in an RTT.
pub(super) const WINDOWS: u64 = 5;
/// Intervals in the time over which the rate is measured.
const INTERVALS: u64 = 10;
/// The range of token buckets: those that the registry allows, and that 16 fraction bits can count.
const TOKENS: [f64; 2] = [2.0, 1e6];

fn translate(
    spec: &RouterSpec,
    link: &LinkProperties,
    config: &mut types::fs_config,
    first: &mut types::fs_link,
) -> Result<(), Refusal> {
    let RouterSpec::Abc(parameters) = spec else { unreachable!("it is another law's") };
    // Destructured, so that each new parameter must be translated or refused below.
    let Params { eta, delta, d_t, rate_window, rtt, token_limit, variant, capacity, wifi_window } =
        parameters;
    lacks(&LAW, "variant", variant, &Params::default().variant)?;
    // Another window is accepted with another capacity only, so it comes first.
    lacks(&LAW, "wifi_window", wifi_window, &Params::default().wifi_window)?;
    lacks(&LAW, "capacity", capacity, &Params::default().capacity)?;
    // Times that are not set follow from `rtt`, and are then within their ranges.
    between(&LAW, "rtt", rtt.unwrap_or(RTT), [link.min_interval * WINDOWS, LONGEST_RTT])?;
    let within = |key, set: &Option<Time>, least, value| match set {
        Some(_) => between(&LAW, key, value, [least, TIMES[1]]),
        None => Ok(value),
    };
    let delta = within("delta", delta, TIMES[0], parameters.delta())?;
    let d_t = within("d_t", d_t, TIMES[0], parameters.d_t())?;
    let window = within("rate_window", rate_window, link.min_interval, parameters.rate_window())?;
    // A timer also sees intervals without a packet, which a law that hears of departures does not.
    let ten_packets = Time::from_secs_f64(10.0 * f64::from(PACKET_BYTES) / link.known_rate().bytes_per_sec());
    let window = if rate_window.is_some() { window } else { window.max(ten_packets) };
    let token_limit = between(&LAW, "token_limit", *token_limit, TOKENS)?;
    let interval = Time::from_ps(window.as_ps() / INTERVALS).max(link.min_interval);
    let capacity = link.known_rate().bytes_per_sec();

    config.eta_q32 = super::q32(eta.get());
    config.abc = types::fs_abc_params {
        capacity_q16: q16(capacity),
        target_q16: q16(capacity * eta.get()),
        tolerated_bytes: (capacity * d_t.as_secs_f64()) as u64,
        delta_ns: ns(delta),
        mean_age_ns: ns(window) / 2,
        interval_ns: ns(interval),
        token_limit_q16: q16(token_limit),
    };
    // Starts full, and with the share of an idle link.
    first.abc.tokens_q16 = q16(token_limit) as i64;
    first.abc.share_q16 = 1 << 16;
    first.interval_ns = ns(interval);
    Ok(())
}

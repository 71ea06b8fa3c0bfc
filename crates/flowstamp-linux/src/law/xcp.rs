//! XCP in the kernel, in the Internet-Draft's throughput form: `fs_xcp_*` of bpf/laws.h.

use super::fixed::{bps, ns, q16, q32, seconds, us};
use super::parameters::{BOUND, RTT, TIMER, between, cannot, lacked, lacks};
use super::{Law, LinkProperties, Variable};
use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::Stamp;
use flowstamp_laws::Time;
use flowstamp_laws::registry::{self, RouterSpec};
pub use flowstamp_laws::xcp::sender::Params as SenderParams;
use flowstamp_laws::xcp::{router::Params, shares::MAX_RTT};
use flowstamp_wire::option;

pub static LAW: Law = Law {
    name: "xcp",
    number: 2,
    header: registry::Header::XcpDraft,
    option: Some(option::Protocol::Xcp),
    blind: false,
    // Values of the authors' ns-2 model and the Internet-Draft, because a timer cannot follow shorter
    // intervals.
    defaults: &[("min_interval", "1ms"), ("min_queue_interval", "2ms"), MAX_WEIGHT],
    options: &[("min_interval", "min_interval")],
    variables: &[AGGREGATE, AVG_RTT, INPUT_RATE, PERSISTENT_QUEUE],
    carries: |_| Ok(()),
    translate,
    input_bytes: |link| link.seen.xcp.input_bytes,
    read,
    write: |stamp| stamp.0[2] as i32 as u32,
    told: |_| 0,
    tell: |_, _| {},
    // A router leaves this value unchanged, but still does all its work.
    least: i32::MIN as u32,
    most: option::UNBOUNDED_DELTA as u32,
    what: "delta",
};

// Variables of every router law on XCP's packets.
pub const AGGREGATE: Variable = Variable {
    name: "aggregate_feedback_bps",
    help: "XCP: change requested from all flows",
    of: |_, link| bps(link.xcp.aggregate_q16 as f64),
};
pub const AVG_RTT: Variable = Variable {
    name: "avg_rtt_s",
    help: "Average RTT that packets carry",
    of: |_, link| seconds(link.xcp.avg_rtt_q8),
};
pub const INPUT_RATE: Variable = Variable {
    name: "input_rate_bps",
    help: "Input of the last interval",
    of: |_, link| bps(link.xcp.input_rate_q16 as f64),
};
pub const PERSISTENT_QUEUE: Variable = Variable {
    name: "persistent_queue_bytes",
    help: "XCP: least queue in a propagation delay; XCP-b: in a control interval",
    of: |_, link| link.xcp.persistent_queue_bytes as f64,
};

/// `struct fs_xcp_sender_params` of bpf/sender.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XcpSender {
    inverse_price_q16: u64,
}

/// The range of prices: an option states the packets in flight over the price, from 1 to 65535.
const PRICE: [f64; 2] = [0.001, 1000.0];

/// The sender's parameters as hosts implement them. Refuses a parameter that they do not support.
pub fn sender(parameters: &SenderParams) -> Result<XcpSender, Refusal> {
    // Destructured, so that each new parameter must be translated or refused below.
    let SenderParams { price, priority, desired_rate, negotiate, stamped_window, error_losses, pacing } =
        parameters;
    let default = SenderParams::default();
    lacked(&LAW, "priority", priority, &default.priority, "the TCP option, which has no field for it")?;
    lacked(&LAW, "desired_rate", desired_rate, &None, "hosts, who have it from SO_MAX_PACING_RATE")?;
    lacked(&LAW, "negotiate", negotiate, &default.negotiate, "hosts, who always negotiate")?;
    lacked(
        &LAW,
        "stamped_window",
        stamped_window,
        &default.stamped_window,
        "hosts, who state packets in flight",
    )?;
    lacked(
        &LAW,
        "error_losses",
        error_losses,
        &default.error_losses,
        "hosts, who halve the window at each loss",
    )?;
    lacked(&LAW, "pacing", pacing, &default.pacing, "hosts, who always pace")?;
    Ok(XcpSender { inverse_price_q16: q16(1.0 / between(&LAW, "price", *price, PRICE)?) })
}

/// Converts the option's fields to the Internet-Draft's header.
pub fn read(carried: &option::Stamp) -> Stamp {
    let rtt_s = f64::from(carried.rtt.to_micros().unwrap_or(0)) * 1e-6;
    Stamp([rtt_s / f64::from(carried.last.max(1)), rtt_s, f64::from(carried.value as i32)])
}

/// FS_UNKNOWN_NS of bpf/laws.h.
const UNKNOWN: Time = Time::from_millis(1);
/// The range of factors that `fs_times` supports.
const FACTOR: [f64; 2] = [0.001, 16.0];

fn translate(
    spec: &RouterSpec,
    link: &LinkProperties,
    config: &mut types::fs_config,
    first: &mut types::fs_link,
) -> Result<(), Refusal> {
    let RouterSpec::Xcp(parameters) = spec else { unreachable!("it is another law's") };
    // Destructured, so that each new parameter must be translated or refused below.
    let Params {
        alpha,
        beta,
        gamma,
        fairness,
        initial_interval,
        min_interval,
        max_rtt,
        queue_window,
        min_queue_interval,
        max_weight,
        target_queue,
        max_fill,
    } = parameters;
    lacks(&LAW, "fairness", fairness, &Params::default().fairness)?;
    lacks(&LAW, "target_queue", target_queue, &None)?;
    let Times { min_interval, max_rtt } =
        times(&LAW, *initial_interval, *min_interval, max_rtt.unwrap_or(MAX_RTT), first)?;
    if let Some(share) = max_fill {
        return Err(cannot(&LAW, "max_fill", share, "leave it out"));
    }
    let max_weight_q16 = max_weight_q16(&LAW, *max_weight)?;
    let min_queue_interval = between(&LAW, "min_queue_interval", *min_queue_interval, TIMER)?;
    let queue_window = between(&LAW, "queue_window", *queue_window, FACTOR)?;

    config.eta_q32 = q32(link.eta);
    config.queue_interval_ns = ns(min_queue_interval);
    config.xcp = types::fs_xcp_params {
        // XCP has no target utilisation of its own, so eta reduces its capacity.
        capacity_q16: q16(link.known_rate().bytes_per_sec() * link.eta),
        alpha_q32: q32(*alpha),
        beta_q32: q32(*beta),
        gamma_q32: q32(*gamma),
        min_interval_ns: ns(min_interval),
        max_rtt_us: us(max_rtt),
        max_weight_q16,
        queue_window_q32: q32(queue_window),
        min_queue_interval_ns: ns(min_queue_interval),
    };
    Ok(())
}

/// `c` of shares.rs, which keeps a misbehaving flow's packets from outweighing all others. Other flows keep
/// 94.9 of 95 Mb/s beside a flow that takes a fifth of that without this cap (docs/security.md).
pub const MAX_WEIGHT: (&str, &str) = ("max_weight", "16");

/// `max_weight` in fixed point; zero means no cap.
pub fn max_weight_q16(law: &Law, max_weight: Option<f64>) -> Result<u64, Refusal> {
    Ok(max_weight.map(|c| between(law, "max_weight", c, BOUND)).transpose()?.map_or(0, q16))
}

/// Times of every router law on XCP's packets, within the range of kernel timers.
pub struct Times {
    pub min_interval: Time,
    pub max_rtt: Time,
}

/// Checks these times and writes the first interval into the initial state. Refuses times that no kernel
/// timer can keep.
pub fn times(
    law: &Law,
    initial_interval: Option<Time>,
    min_interval: Time,
    max_rtt: Time,
    first: &mut types::fs_link,
) -> Result<Times, Refusal> {
    let min_interval = between(law, "min_interval", min_interval, TIMER)?;
    let initial_interval =
        initial_interval.map(|time| between(law, "initial_interval", time, TIMER)).transpose()?;
    let max_rtt = between(law, "max_rtt", max_rtt, RTT)?;
    // Zero means unknown; the first packets' RTT then sets it.
    first.xcp.avg_rtt_q8 = initial_interval.map_or(0, ns) << 8;
    first.interval_ns = ns(initial_interval.unwrap_or(UNKNOWN.max(min_interval)));
    Ok(Times { min_interval, max_rtt })
}

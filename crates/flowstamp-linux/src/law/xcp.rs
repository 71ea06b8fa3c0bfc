//! XCP in the kernel, in the Internet-Draft's throughput form: `fs_xcp_*` of bpf/laws.h.

use super::fixed::{bps, ns, q16, q32, seconds, us};
use super::parameters::{BOUND, RTT, TIMER, between};
use super::{Law, Link, Variable};
use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::Stamp;
use flowstamp_laws::Time;
use flowstamp_laws::registry::{self, RouterSpec};
use flowstamp_laws::xcp::{router::Params, shares::MAX_RTT};
use flowstamp_wire::option;

pub static LAW: Law = Law {
    name: "xcp",
    number: 2,
    header: registry::Header::XcpDraft,
    option: option::Law::Xcp,
    blind: false,
    // The authors' ns-2 model and the Internet-Draft: a timer cannot follow shorter ones.
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
    // This router takes nothing from it, and works all the same.
    least: i32::MIN as u32,
    most: option::UNBOUNDED_DELTA as u32,
    what: "delta",
};

// What any router of XCP's packets knows.
pub const AGGREGATE: Variable = Variable {
    name: "aggregate_feedback_bps",
    help: "XCP: change asked of all flows",
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

/// The option's fields as the Internet-Draft's header has them.
pub fn read(carried: &option::Stamp) -> Stamp {
    let rtt_s = f64::from(carried.rtt.to_micros().unwrap_or(0)) * 1e-6;
    Stamp([rtt_s / f64::from(carried.last.max(1)), rtt_s, f64::from(carried.value as i32)])
}

/// FS_UNKNOWN_NS of bpf/laws.h.
const UNKNOWN: Time = Time::from_millis(1);
/// Factors that `fs_times` takes.
const FACTOR: [f64; 2] = [0.001, 16.0];

fn translate(
    spec: &RouterSpec,
    link: &Link,
    config: &mut types::fs_config,
    first: &mut types::fs_link,
) -> Result<(), Refusal> {
    let RouterSpec::Xcp(parameters) = spec else { unreachable!("it is another law's") };
    // Whatever is new here is carried out below, or refused.
    let Params {
        alpha,
        beta,
        gamma,
        initial_interval,
        min_interval,
        max_rtt,
        queue_window,
        min_queue_interval,
        max_weight,
    } = parameters;
    let Times { min_interval, max_rtt } =
        times(&LAW, *initial_interval, *min_interval, max_rtt.unwrap_or(MAX_RTT), first)?;
    let max_weight_q16 = max_weight_q16(&LAW, *max_weight)?;
    let min_queue_interval = between(&LAW, "min_queue_interval", *min_queue_interval, TIMER)?;
    let queue_window = between(&LAW, "queue_window", *queue_window, FACTOR)?;

    config.eta_q32 = q32(link.eta);
    config.queue_interval_ns = ns(min_queue_interval);
    config.xcp = types::fs_xcp_params {
        // XCP has no target utilisation of its own: a link that is to be filled to eta is that much smaller.
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

/// `c` of shares.rs, which keeps a stranger's packets from outweighing all others: 94.9 of 95 Mb/s beside one that takes a fifth of them without it
/// (docs/security.md).
pub const MAX_WEIGHT: (&str, &str) = ("max_weight", "16");

/// It in fixed point; zero is none.
pub fn max_weight_q16(law: &Law, max_weight: Option<f64>) -> Result<u64, Refusal> {
    Ok(max_weight.map(|c| between(law, "max_weight", c, BOUND)).transpose()?.map_or(0, q16))
}

/// Times of any router of XCP's packets, as a timer can keep them.
pub struct Times {
    pub min_interval: Time,
    pub max_rtt: Time,
}

/// These, and the first interval into the first state; or the one refused that no timer can keep.
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
    // Zero is unknown: the first packets' RTT.
    first.xcp.avg_rtt_q8 = initial_interval.map_or(0, ns) << 8;
    first.interval_ns = ns(initial_interval.unwrap_or(UNKNOWN.max(min_interval)));
    Ok(Times { min_interval, max_rtt })
}

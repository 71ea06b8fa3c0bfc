//! XCP-b in the kernel: `fs_xcp_b_decide` of bpf/xcpb.h, and XCP's functions of bpf/laws.h. Hosts do not know
//! XCP-b: its packets are XCP's.

use super::fixed::{ns, q16, q32, us};
use super::parameters::{between, cannot};
use super::xcp::{
    self, AGGREGATE, AVG_RTT, INPUT_RATE, MAX_WEIGHT, PERSISTENT_QUEUE, Times, max_weight_q16, times,
};
use super::{Law, LinkProperties, PACKET_BYTES, Variable};
use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::Bytes;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::units::QueueLength;
use flowstamp_laws::xcp::blind::{Detection, Params};
use flowstamp_laws::xcp::shares::{MAX_RTT, Shuffle};

pub static LAW: Law = Law {
    name: "xcp-b",
    // FS_XCP_B of bpf/router.bpf.c.
    number: 4,
    blind: true,
    // Same reasons as for XCP.
    defaults: &[("min_interval", "1ms"), MAX_WEIGHT],
    options: &[("min_interval", "min_interval")],
    variables: &[
        AGGREGATE,
        AVG_RTT,
        INPUT_RATE,
        PERSISTENT_QUEUE,
        Variable {
            name: "average_queue",
            help: "XCP-b: weighted average of the queue, in the unit of kappa",
            of: |_, link| link.xcp_b.average_q24 as f64 / 16_777_216.0,
        },
        Variable {
            name: "under_used",
            help: "XCP-b: whether the link counts as under-used",
            of: |_, link| link.xcp_b.under_used as f64,
        },
    ],
    carries: |_| Ok(()),
    translate,
    ..xcp::LAW
};

/// The range of the root queueing discipline's 32-bit backlog.
const QUEUE: [Bytes; 2] = [Bytes::new(1), Bytes::new(u32::MAX as u64)];
/// The range of kappa in packets: a smaller queue shows no change, and no queue is longer.
const PACKETS: [f64; 2] = [0.01, 1e6];
fn translate(
    spec: &RouterSpec,
    link: &LinkProperties,
    config: &mut types::fs_config,
    first: &mut types::fs_link,
) -> Result<(), Refusal> {
    let RouterSpec::XcpB(parameters) = spec else { unreachable!("it is another law's") };
    // Destructured, so that each new parameter must be translated or refused below.
    let Params {
        alpha,
        beta,
        gamma,
        shuffle,
        kappa,
        q_max,
        chi: _,
        detection,
        n,
        tau: _,
        weight,
        initial_interval,
        min_interval,
        max_rtt,
        max_weight,
    } = parameters;
    let Times { min_interval, max_rtt } =
        times(&LAW, *initial_interval, *min_interval, max_rtt.unwrap_or(MAX_RTT), first)?;
    let max_weight_q16 = max_weight_q16(&LAW, *max_weight)?;
    let (in_packets, kappa) = in_packets(*kappa)?;
    let q_max = most_queue(*q_max, link.limit)?;
    let weight_q32 = q32(parameters.weight());
    // tau follows from the weight after rounding to fixed point.
    let carried = Params { weight: weight.map(|_| weight_q32 as f64 / 4_294_967_296.0), ..*parameters };
    let counted = if *detection == Detection::Counter { n.ceil() as u64 } else { 0 };

    config.xcp = types::fs_xcp_params {
        alpha_q32: q32(*alpha),
        beta_q32: q32(*beta),
        gamma_q32: q32(*gamma),
        min_interval_ns: ns(min_interval),
        max_rtt_us: us(max_rtt),
        max_weight_q16,
        ..Default::default()
    };
    config.xcp_b = types::fs_xcp_b_params {
        kappa_q16: q16(kappa),
        in_packets: u64::from(in_packets),
        most_q16: q16((parameters.chi() * q_max).min(QUEUE[1].as_f64())),
        n: counted,
        weight_q32,
        rest_q32: (1u64 << 32) - weight_q32,
        // Rounded up, because averages are rounded down.
        border_q24: (carried.tau() * kappa * 16_777_216.0).ceil() as u64,
        shuffle_rest: u64::from(*shuffle == Shuffle::Rest),
    };
    first.xcp_b = idle(counted);
    Ok(())
}

/// The state of a link at the start, which is idle (blind.rs, deviation 3): packets have full size before the first arrival.
fn idle(empty: u64) -> types::fs_xcp_b {
    types::fs_xcp_b {
        each_q16: 1 << 16,
        mean_packet_q16: u64::from(PACKET_BYTES) << 16,
        empty,
        under_used: 1,
        ..Default::default()
    }
}

/// Whether kappa counts packets, and its value in its own unit.
fn in_packets(kappa: QueueLength) -> Result<(bool, f64), Refusal> {
    match kappa {
        QueueLength::Packets(packets) if (PACKETS[0]..=PACKETS[1]).contains(&packets) => Ok((true, packets)),
        QueueLength::Packets(_) => {
            let right = format!("it must be {}pkt to {}pkt", PACKETS[0], PACKETS[1]);
            Err(cannot(&LAW, "kappa", kappa, &right))
        }
        QueueLength::Bytes(bytes) => Ok((false, between(&LAW, "kappa", bytes, QUEUE)?.as_f64())),
    }
}

/// Qmax in bytes: the parameter, or else the limit of the queue, which may be in packets of full size.
fn most_queue(q_max: Option<Bytes>, limit: Option<Limit>) -> Result<f64, Refusal> {
    match (q_max, limit) {
        (Some(bytes), _) => Ok(between(&LAW, "q_max", bytes, QUEUE)?.as_f64()),
        (None, Some(Limit::Bytes(bytes))) => Ok(bytes as f64),
        (None, Some(Limit::Packets(packets))) => Ok(f64::from(packets) * f64::from(PACKET_BYTES)),
        (None, None) => Err(Refusal(NO_LIMIT.to_owned())),
    }
}

/// The refusal if no limit can be read.
const NO_LIMIT: &str = "xcp-b needs the longest possible queue, and the root queueing discipline does not report it; set it, such as \
                        --set q_max=64kB";

//! VCP in the kernel: `fs_vcp_*` of bpf/vcp.h.

use super::fixed::{ns, q16, q32, us};
use super::parameters::{between, lacked, lacks};
use super::{Law, LinkProperties, Variable};
use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::registry::{self, RouterSpec};
pub use flowstamp_laws::vcp::sender::Params as SenderParams;
use flowstamp_laws::vcp::{T_RHO, TRANSITION, router::Params};
use flowstamp_laws::{Stamp, Time};
use flowstamp_wire::option;

pub static LAW: Law = Law {
    name: "vcp",
    number: 3,
    header: registry::Header::Vcp,
    option: Some(option::Protocol::Vcp),
    blind: false,
    // gamma: a shaper's rate and a law's estimate never match exactly. t_rho: the paths are unknown, so this
    // is the paper's value for the Internet.
    // mark_others: other packets' marks belong to their own hosts, unless the user asks for them.
    defaults: &[("gamma", "0.95"), ("t_rho", "200ms"), ("mark_others", "false")],
    options: &[("eta", "gamma")],
    variables: &[
        Variable {
            name: "load_factor",
            help: "VCP: load over its target",
            of: |_, link| link.vcp.load_q32 as f64 / 4_294_967_296.0,
        },
        Variable {
            name: "load_code",
            help: "VCP: load code given to packets",
            of: |_, link| link.vcp.code as f64,
        },
        Variable {
            name: "persistent_queue_bytes",
            help: "XCP: least queue in a propagation delay; VCP: queue through a low-pass filter",
            of: |_, link| link.vcp.queue_q16 as f64 / 65536.0,
        },
    ],
    carries: |_| Ok(()),
    translate,
    input_bytes: |link| link.seen.vcp.input_bytes,
    // The law writes its code into the ECN bits, not into the option.
    read: |carried| Stamp([f64::from(carried.value), 0.0, 0.0]),
    write: |stamp| stamp.0[0] as u32,
    told: |spec| if let RouterSpec::Vcp(p) = spec { us(p.t_rho.unwrap_or(T_RHO)) as u32 } else { 0 },
    tell: |stamp, t_rho| stamp.0[0] = stamp.0[0].max(f64::from(t_rho)),
    least: u32::MAX,
    most: 0,
    what: "t_rho",
};

/// The longest t_rho that fits into the option (2^24 us), in whole seconds.
const LONGEST: Time = Time::from_secs(16);
/// The range of factors that `fs_times` supports.
const FACTOR: [f64; 2] = [0.0, 16.0];
/// Queue samples per `t_rho` (section III-B).
const SAMPLES: u64 = 20;

fn translate(
    spec: &RouterSpec,
    link: &LinkProperties,
    config: &mut types::fs_config,
    first: &mut types::fs_link,
) -> Result<(), Refusal> {
    let RouterSpec::Vcp(parameters) = spec else { unreachable!("it is another law's") };
    // Destructured, so that each new parameter must be translated or refused below.
    let Params {
        t_rho,
        t_q,
        k_q,
        gamma,
        queue_weight,
        mark_others,
        tcp_friendly,
        red_min,
        red_max,
        red_max_p,
    } = parameters;
    let default = Params::default();
    lacks(&LAW, "tcp_friendly", tcp_friendly, &default.tcp_friendly)?;
    lacks(&LAW, "red_min", red_min, &default.red_min)?;
    lacks(&LAW, "red_max", red_max, &default.red_max)?;
    lacks(&LAW, "red_max_p", red_max_p, &default.red_max_p)?;
    let t_rho = between(&LAW, "t_rho", t_rho.unwrap_or(T_RHO), [link.min_interval, LONGEST])?;
    let least_t_q = Time::from_ps(t_rho.as_ps() / SAMPLES).max(link.min_interval);
    let t_q = between(&LAW, "t_q", t_q.unwrap_or(least_t_q), [link.min_interval, LONGEST])?;
    let k_q = between(&LAW, "k_q", *k_q, FACTOR)?;

    config.eta_q32 = q32(gamma.get());
    config.mark_others = u64::from(*mark_others);
    config.queue_interval_ns = ns(t_q);
    config.vcp = types::fs_vcp_params {
        target_rate_q16: q16(link.known_rate().bytes_per_sec() * gamma.get()),
        k_q_q32: q32(k_q),
        queue_weight_q32: q32(queue_weight.get()),
        t_rho_ns: ns(t_rho),
        t_q_ns: ns(t_q),
        t_rho_us: us(t_rho),
    };
    // Starts with the code of an idle link: vcp/router.rs, deviation 1.
    first.vcp.code = 1;
    first.interval_ns = ns(t_rho);
    Ok(())
}

/// `struct fs_vcp_sender_params` of bpf/vcp.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VcpSender {
    ln_growth_q40: u64,
    alpha_q44: u64,
    beta_q32: u64,
}

/// The ranges for which `fs_vcp_growth_q40` and `fs_vcp_addition_q44` are valid.
const KAPPA: [f64; 2] = [1e-3, 1.0];
const ALPHA: [f64; 2] = [1e-3, 1000.0];

/// The sender's parameters as hosts implement them. Refuses a parameter that they do not support.
pub fn sender(parameters: &SenderParams) -> Result<VcpSender, Refusal> {
    // Destructured, so that each new parameter must be translated or refused below.
    let SenderParams {
        t_rho,
        kappa,
        alpha,
        beta,
        weight,
        mi_limit,
        ai_base,
        equal_windows,
        ai_square_from,
        ai_square_to,
        ai_most,
        ai_limiter,
        tcp_friendly,
    } = parameters;
    let default = SenderParams::default();
    lacked(&LAW, "t_rho", t_rho, &None, "hosts, who have it from routers")?;
    lacks(&LAW, "mi_limit", mi_limit, &default.mi_limit)?;
    lacks(&LAW, "ai_base", ai_base, &default.ai_base)?;
    lacks(&LAW, "equal_windows", equal_windows, &default.equal_windows)?;
    lacks(&LAW, "ai_square_from", ai_square_from, &default.ai_square_from)?;
    lacks(&LAW, "ai_square_to", ai_square_to, &default.ai_square_to)?;
    lacks(&LAW, "ai_most", ai_most, &default.ai_most)?;
    lacks(&LAW, "ai_limiter", ai_limiter, &default.ai_limiter)?;
    lacks(&LAW, "tcp_friendly", tcp_friendly, &default.tcp_friendly)?;
    let kappa = between(&LAW, "kappa", *kappa, KAPPA)?;
    let alpha = between(&LAW, "alpha", *alpha, ALPHA)?;
    // alpha and weight form one factor.
    between(&LAW, "weight", *weight, [ALPHA[0] / alpha, ALPHA[1] / alpha])?;
    let xi = kappa * (1.0 - TRANSITION) / TRANSITION; // eq. 5
    Ok(VcpSender {
        ln_growth_q40: (xi.ln_1p() * 2f64.powi(40)).round() as u64,
        alpha_q44: (alpha * weight * 2f64.powi(44)).round() as u64,
        beta_q32: q32(beta.get()),
    })
}

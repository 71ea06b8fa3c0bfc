//! The loaded BPF program, and laws' parameters in its fixed point.

use super::pins::no_bpf;
use crate::refusal::Refusal;
use flowstamp_laws::router::{RouterLaw, rcp, xcp};
use flowstamp_laws::{Bytes, Rate, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use std::mem::{MaybeUninit, offset_of};
use std::ptr::NonNull;

#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
pub use skeleton::types;
pub use skeleton::{OpenRouterSkel, RouterSkel, RouterSkelBuilder};

/// The laws there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Law {
    /// One rate for all flows.
    Rcp,
    /// Changes of throughput for each packet.
    Xcp,
}

impl Law {
    /// As the program has it.
    pub fn number(self) -> u64 {
        match self {
            Self::Rcp => 1,
            Self::Xcp => 2,
        }
    }

    /// From the program's.
    pub fn from_number(number: u64) -> Option<Self> {
        [Self::Rcp, Self::Xcp].into_iter().find(|law| law.number() == number)
    }
}

/// What a link is to be, in the law's own terms.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub law: Law,
    pub rate: Rate,
    /// Share of the rate that the law aims at.
    pub eta: f64,
    pub alpha: Option<f64>,
    pub beta: Option<f64>,
    pub gamma: Option<f64>,
    /// The shortest interval between decisions.
    pub min_interval: Time,
    pub initial_rate: Option<f64>,
    pub initial_rtt: Option<Time>,
    /// Classes for the law's own traffic and the rest.
    pub share: Option<Share>,
}

/// How a link is shared at first.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The own class's weight.
    pub own_weight: f64,
    /// Room for what waits in both classes together.
    pub buffer: Bytes,
}

/// 16 fraction bits.
pub fn q16(v: f64) -> u64 {
    (v * 65536.0).round() as u64
}

/// 32 fraction bits.
pub fn q32(v: f64) -> u64 {
    (v * 4_294_967_296.0).round() as u64
}

fn ns(t: Time) -> u64 {
    t.as_ps() / 1000
}

impl Link {
    /// Parameters and first state for the program, for an interface `ifindex` with `link_bytes` before IP's header.
    pub fn translate(
        &self,
        ifindex: u32,
        link_bytes: u64,
    ) -> Result<(types::fs_config, types::fs_link), Refusal> {
        let refuse = |(name, why): (&str, String)| Refusal(format!("--{} {why}", name.replace('_', "-")));
        let bps = self.rate.bps();
        if !(1e5..=1e11).contains(&bps) {
            return Err(Refusal(format!("--rate is {}; it must be 100kbps to 100Gbps", self.rate)));
        }
        if !(0.01..=1.0).contains(&self.eta) {
            return Err(Refusal(format!("--eta is {}; it must be 0.01 to 1", self.eta)));
        }
        if !(Time::from_micros(100)..=Time::from_millis(100)).contains(&self.min_interval) {
            return Err(Refusal(format!(
                "--min-interval is {}; it must be 100us to 100ms",
                self.min_interval
            )));
        }
        if let Some(share) = self.share {
            if !(0.01..=0.99).contains(&share.own_weight) {
                return Err(Refusal(format!("--own-share is {}; it must be 0.01 to 0.99", share.own_weight)));
            }
            if !(4 * 1514..=u64::from(u32::MAX)).contains(&share.buffer.get()) {
                return Err(Refusal(format!("--buffer is {}; it must be 6056B to 4GB", share.buffer)));
            }
        }
        let mut config = types::fs_config {
            law: self.law.number(),
            ifindex: u64::from(ifindex),
            link_bytes,
            cpus: libbpf_rs::num_possible_cpus().map_err(|e| no_bpf(&e))? as u64,
            ..Default::default()
        };
        let mut link = types::fs_link::default();
        let capacity = self.rate.bytes_per_sec();
        config.link_rate_q16 = q16(capacity);
        config.eta_q32 = q32(self.eta);
        if let Some(share) = self.share {
            config.share = 1;
            config.buffer_bytes = share.buffer.get();
            config.own_weight_q32 = q32(share.own_weight);
        }
        link.own_capacity_q16 = q16(self.share.map_or(capacity, |share| capacity * share.own_weight));
        let own_weight = self.share.map_or(1.0, |share| share.own_weight);
        match self.law {
            Law::Rcp => {
                let mut p = rcp::Params { eta: self.eta, ..Default::default() };
                p.alpha = self.alpha.unwrap_or(p.alpha);
                p.beta = self.beta.unwrap_or(p.beta);
                p.initial_rate = self.initial_rate.unwrap_or(p.initial_rate);
                let initial_rtt = self.initial_rtt.unwrap_or(Time::from_millis(200));
                p.initial_rtt = Some(initial_rtt);
                if self.gamma.is_some() {
                    return Err(Refusal("--gamma is XCP's; RCP has --alpha and --beta".into()));
                }
                rcp::Router::check(&p).map_err(refuse)?;
                config.rcp = types::fs_rcp_params {
                    link_rate_q16: q16(capacity),
                    target_rate_q16: q16(capacity * p.eta),
                    alpha_q32: q32(p.alpha),
                    beta_q32: q32(p.beta),
                    mtu_bytes: p.mtu.get(),
                    max_interval_ns: ns(p.max_interval),
                    min_interval_ns: ns(self.min_interval),
                };
                let rate = own_weight * capacity * p.initial_rate.min(p.eta);
                link.rcp.rate_q16 = q16(rate);
                link.rcp.avg_rtt_q8 = ns(initial_rtt) << 8;
                link.offer = ((rate / 1000.0) as u32).max(1);
                link.interval_ns = ns(initial_rtt.min(p.max_interval)).max(ns(self.min_interval));
            }
            Law::Xcp => {
                let min_queue_interval = self.min_interval * 2;
                let mut p = xcp::Params { min_interval: self.min_interval, min_queue_interval, ..Default::default() };
                p.alpha = self.alpha.unwrap_or(p.alpha);
                p.beta = self.beta.unwrap_or(p.beta);
                p.gamma = self.gamma.unwrap_or(p.gamma);
                let initial_interval = self.initial_rtt.unwrap_or(Time::from_millis(50));
                p.initial_interval = Some(initial_interval);
                if self.initial_rate.is_some() {
                    return Err(Refusal("--initial-rate is RCP's; XCP gives changes, not rates".into()));
                }
                xcp::Router::<xcp::Throughput>::check(&p).map_err(refuse)?;
                config.xcp = types::fs_xcp_params {
                    // XCP has no target utilisation of its own: a link that is to be filled to eta is that much smaller.
                    capacity_q16: q16(capacity * self.eta),
                    alpha_q32: q32(p.alpha),
                    beta_q32: q32(p.beta),
                    gamma_q32: q32(p.gamma),
                    min_interval_ns: ns(p.min_interval),
                    max_rtt_us: ns(p.max_rtt) / 1000,
                    queue_window_q32: q32(p.queue_window),
                    min_queue_interval_ns: ns(p.min_queue_interval),
                };
                link.xcp.avg_rtt_q8 = ns(initial_interval) << 8;
                link.interval_ns = ns(initial_interval);
            }
        }
        Ok((config, link))
    }
}

/// A plain value's bytes, as maps take them.
pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the skeleton's types are plain integers in C's layout, with padding spelled out.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value that a map holds as `bytes`; none if it is not as long, as another version's may be.
pub fn value_of<T: Copy>(bytes: &[u8]) -> Option<T> {
    (bytes.len() >= size_of::<T>()).then(|| {
        // SAFETY: long enough, and any bits are a value of the skeleton's types.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    })
}

/// Loads the program with all its maps, without attaching it.
pub fn load<'a>(
    object: &'a mut MaybeUninit<OpenObject>,
    config: &types::fs_config,
    link: &types::fs_link,
    bench: bool,
) -> anyhow::Result<RouterSkel<'a>> {
    // libbpf would print for itself; what went wrong is said in one line by whoever called.
    libbpf_rs::set_print(None);
    let mut open: OpenRouterSkel = RouterSkelBuilder::default().open(object)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.config = *config;
    }
    for program in [&mut open.progs.fs_nothing, &mut open.progs.fs_rewrite] {
        program.set_autoload(bench);
    }
    let skeleton = open.load().map_err(|e| no_bpf(&e))?;
    skeleton.maps.link_state.update(&0u32.to_ne_bytes(), bytes_of(link), MapFlags::ANY)?;
    Ok(skeleton)
}

/// Starts the law's timer, in the interface's network namespace.
pub fn start(skeleton: &RouterSkel<'_>, ifindex: u32) -> anyhow::Result<()> {
    // The kernel wants all but what is set to be zero, padding too.
    let mut context = [0; size_of::<types::__sk_buff>()];
    let at = offset_of!(types::__sk_buff, ifindex);
    context[at..at + 4].copy_from_slice(&ifindex.to_ne_bytes());
    let input =
        ProgramInput { context_in: Some(&mut context), data_in: Some(&[0; 64]), ..ProgramInput::default() };
    let code = skeleton.progs.fs_start.test_run(input)?.return_value;
    anyhow::ensure!(code == 0, "the timer did not start: step {code}");
    Ok(())
}

/// Attaches a program behind those that an interface's egress has.
///
/// # Safety
/// `program` is loaded and stays so during the call.
pub unsafe fn attach_egress(
    program: NonNull<libbpf_rs::libbpf_sys::bpf_program>,
    ifindex: u32,
) -> std::io::Result<libbpf_rs::Link> {
    // SAFETY: as promised; no options.
    let link = unsafe {
        libbpf_rs::libbpf_sys::bpf_program__attach_tcx(program.as_ptr(), ifindex as i32, std::ptr::null())
    };
    let link = NonNull::new(link).ok_or_else(std::io::Error::last_os_error)?;
    // SAFETY: owned by nobody else.
    Ok(unsafe { libbpf_rs::Link::from_ptr(link) })
}

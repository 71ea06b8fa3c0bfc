//! Loads, starts and attaches the router's BPF program.

use super::pins::no_bpf;
use crate::law::{self, PACKET_BYTES, q16, q32};
use crate::refusal::Refusal;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::{Bytes, Rate, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use std::mem::{MaybeUninit, offset_of};
use std::ptr::NonNull;

pub use crate::bpf::router::{OpenRouterSkel, RouterSkel, RouterSkelBuilder, types};
pub use crate::bpf::{bytes_of, value_of};

/// The requested properties of a router's link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    pub law: RouterSpec,
    /// Its capacity, if known.
    pub rate: Option<Rate>,
    /// The limit of its queue, if known.
    pub limit: Option<Limit>,
    /// Target utilisation, for laws without a parameter for it.
    pub eta: f64,
    /// Minimum interval between decisions, for laws without a parameter for it.
    pub min_interval: Time,
    /// Whether received packets share the medium.
    pub half_duplex: bool,
    /// Classes for the law's own traffic and the rest.
    pub share: Option<Share>,
}

/// Initial settings of a shared link.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Weight of the law's own class.
    pub own_weight: f64,
    /// Buffer of both classes together.
    pub buffer: Bytes,
}

impl LinkConfig {
    /// The program's configuration and initial state, for an interface `ifindex` with `link_bytes` of
    /// link-layer header.
    pub fn translate(
        &self,
        ifindex: u32,
        link_bytes: u64,
    ) -> Result<(types::fs_config, types::fs_link), Refusal> {
        if let Some(share) = self.share {
            let law = law::law_of(&self.law)?;
            if !law.has_option() {
                let text = format!(
                    "--share: packets of {} have no option, by which they could get a class; leave it out",
                    law.name
                );
                return Err(Refusal(text));
            }
            if !(0.01..=0.99).contains(&share.own_weight) {
                return Err(Refusal(format!("--own-share is {}; it must be 0.01 to 0.99", share.own_weight)));
            }
            if !(4 * u64::from(PACKET_BYTES)..=u64::from(u32::MAX)).contains(&share.buffer.get()) {
                return Err(Refusal(format!("--buffer is {}; it must be 6056B to 4GB", share.buffer)));
            }
        }
        let own_weight = self.share.map_or(1.0, |share| share.own_weight);
        let Self { rate, limit, eta, min_interval, .. } = *self;
        let (mut config, mut link) =
            law::translate(&self.law, &law::LinkProperties { rate, limit, own_weight, eta, min_interval })?;
        config.ifindex = u64::from(ifindex);
        config.link_bytes = link_bytes;
        config.half_duplex = self.half_duplex.into();
        config.cpus = libbpf_rs::num_possible_cpus().map_err(|e| no_bpf(&e))? as u64;
        if let Some(share) = self.share {
            config.share = 1;
            config.buffer_bytes = share.buffer.get();
            config.own_weight_q32 = q32(share.own_weight);
        }
        link.own_capacity_q16 = q16(rate.unwrap_or(Rate::ZERO).bytes_per_sec() * own_weight);
        // FNV-1a
        let mixed = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        config.first_hash = bytes_of(&link).iter().fold(0xcbf2_9ce4_8422_2325, mixed);
        Ok((config, link))
    }
}

/// Loads the program with all its maps, without attaching it.
pub fn load<'a>(
    object: &'a mut MaybeUninit<OpenObject>,
    config: &types::fs_config,
    link: &types::fs_link,
    bench: bool,
) -> anyhow::Result<RouterSkel<'a>> {
    // Silences libbpf's own messages, because the caller reports errors in one line.
    libbpf_rs::set_print(None);
    let mut open: OpenRouterSkel = RouterSkelBuilder::default().open(object)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.config = *config;
    }
    for program in [&mut open.progs.fs_nothing, &mut open.progs.fs_rewrite] {
        program.set_autoload(bench);
    }
    open.progs.fs_router_in.set_autoload(config.half_duplex != 0);
    let skeleton = open.load().map_err(|e| no_bpf(&e))?;
    skeleton.maps.link_state.update(&0u32.to_ne_bytes(), bytes_of(link), MapFlags::ANY)?;
    Ok(skeleton)
}

/// Starts the law's timer, in the interface's network namespace.
pub fn start(skeleton: &RouterSkel<'_>, ifindex: u32) -> anyhow::Result<()> {
    // The kernel requires all other bytes of the context to be zero, including padding.
    let mut context = [0; size_of::<types::__sk_buff>()];
    let at = offset_of!(types::__sk_buff, ifindex);
    context[at..at + 4].copy_from_slice(&ifindex.to_ne_bytes());
    let input =
        ProgramInput { context_in: Some(&mut context), data_in: Some(&[0; 64]), ..ProgramInput::default() };
    let code = skeleton.progs.fs_start.test_run(input)?.return_value;
    anyhow::ensure!(code == 0, "the timer did not start: step {code}");
    Ok(())
}

/// Position of a program among those attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before all others.
    First,
    /// After all others.
    Last,
}

/// Attaches a program to an interface, for sent or received packets as the program's type says.
///
/// # Safety
/// `program` is loaded and stays so during the call.
pub unsafe fn attach_tcx(
    program: NonNull<libbpf_rs::libbpf_sys::bpf_program>,
    ifindex: u32,
    place: Place,
) -> std::io::Result<libbpf_rs::Link> {
    let options = libbpf_rs::libbpf_sys::bpf_tcx_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_tcx_opts>() as _,
        flags: if place == Place::First { libbpf_rs::libbpf_sys::BPF_F_BEFORE } else { 0 },
        ..Default::default()
    };
    // SAFETY: as promised; the options live as long as the call.
    let link = unsafe {
        libbpf_rs::libbpf_sys::bpf_program__attach_tcx(program.as_ptr(), ifindex as i32, &raw const options)
    };
    let link = NonNull::new(link).ok_or_else(std::io::Error::last_os_error)?;
    // SAFETY: owned by nobody else.
    Ok(unsafe { libbpf_rs::Link::from_ptr(link) })
}

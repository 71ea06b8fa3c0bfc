//! `router attach --scone`: throughput advice in QUIC datagrams (draft-ietf-scone-protocol), beside the law or without one.
//!
//! The advice for a datagram is the lowest of those that apply: `--scone-rate`, the longest matching prefix of `--scone-map`,
//! and the mean of RCP's rate with `--law rcp`.

mod map;
mod report;

pub use report::{Element, elements};

use super::pins::{self, no_bpf};
use super::program::{Place, attach_tcx, bytes_of};
use super::{Interface, staged};
use crate::bpf::router::types as router_types;
use crate::law::Law;
use crate::refusal::Refusal;
use flowstamp_laws::Rate;
use flowstamp_wire::scone::Signal;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags, MapHandle, OpenObject, ProgramInput};
use map::Entry;
use std::io::Read;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::AsFd;
use std::path::PathBuf;

#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/scone.skel.rs"));
}
pub use skeleton::{SconeSkel, SconeSkelBuilder, types};

/// Datagrams of a flow that are changed at once: `FS_SCONE_FIRST` of bpf/scone.h.
const FIRST: u32 = 4;

/// The law's lowest advice, if the user sets none: 223.9 kb/s, the highest signal up to this. Less is of no use to a client that
/// streams video: 235 kb/s is the lowest bitrate of a common ladder (Netflix Technology Blog, "Per-Title Encode Optimization", 2015).
const LEAST_BPS: u64 = 235_000;

/// Options of `router attach`.
#[derive(clap::Args)]
pub struct Options {
    /// Write throughput advice into SCONE packets of QUIC. Without --law, the interface gets no law, and one that it has
    /// stays. The advice is the lowest that applies: --scone-rate, --scone-map, and with --law rcp the mean of RCP's rate
    /// over 67 s. It only lowers a signal, and rounds down to SCONE's scale, in which 20 steps are a factor of ten.
    #[arg(long)]
    scone: bool,
    /// Advice for all flows, at least 100kbps.
    #[arg(long, requires = "scone", value_name = "RATE")]
    scone_rate: Option<Rate>,
    /// File with the advice for each subscriber: lines such as `192.0.2.0/24 5Mbps`. The longest prefix of a datagram's
    /// destination counts.
    #[arg(long, requires = "scone", value_name = "FILE")]
    scone_map: Option<PathBuf>,
    /// RCP's lowest advice, at least 100kbps and at most --rate. Greedy flows that ignore RCP's rate drive it to nothing, and
    /// the advice to this [default: 223.9kbps, about the lowest bitrate of video].
    #[arg(long, requires = "scone", value_name = "RATE")]
    scone_least: Option<Rate>,
    /// Limit a flow to its advice while it was over it in the last period of 67 s. Without this, such flows are counted.
    #[arg(long, requires = "scone")]
    scone_enforce: bool,
}

/// The requested network element.
pub struct Wanted {
    /// Advice for all flows.
    signal: Signal,
    prefixes: Vec<Entry>,
    /// The lowest advice of the router's law; `None` if that gives none.
    least: Option<Signal>,
    enforce: bool,
}

/// The signal for a rate of the user's, or what is wrong with the rate.
fn signal_of(rate: Rate) -> Result<Signal, String> {
    Signal::at_most(rate.bps().round() as u64)
        .ok_or_else(|| format!("{rate} is below SCONE's lowest rate; use at least 100kbps"))
}

impl Options {
    /// Reads the map and checks the options, before anything changes; `None` without `--scone`.
    pub fn wanted(&self, law: Option<&Law>, rate: Option<Rate>) -> Result<Option<Wanted>, Refusal> {
        if !self.scone {
            return Ok(None);
        }
        let by_law = law.is_some_and(|law| law.name == "rcp");
        if !by_law && self.scone_rate.is_none() && self.scone_map.is_none() {
            return Err(Refusal(law.map_or_else(
                || "--scone: there is no advice to give; add --scone-rate, --scone-map, or --law rcp".into(),
                |law| {
                    let name = law.name;
                    format!("--scone: {name} has no rate for all flows; add --scone-rate or --scone-map, or use rcp")
                },
            )));
        }
        let least = if by_law { Some(self.least(rate)?) } else { None };
        if let (None, Some(given)) = (least, self.scone_least) {
            let text = format!(
                "--scone-least {given}: it is the lowest advice that --law rcp gives, and there is no --law rcp; add it, or leave out --scone-least"
            );
            return Err(Refusal(text));
        }
        let signal = match self.scone_rate {
            Some(rate) => signal_of(rate).map_err(|why| Refusal(format!("--scone-rate: {why}")))?,
            None => Signal::UNKNOWN,
        };
        let prefixes = self.scone_map.as_deref().map_or(Ok(Vec::new()), map::read)?;
        Ok(Some(Wanted { signal, prefixes, least, enforce: self.scone_enforce }))
    }

    /// RCP's lowest advice on a link of this rate.
    fn least(&self, link: Option<Rate>) -> Result<Signal, Refusal> {
        let link = link.unwrap_or(Rate::ZERO);
        let Some(given) = self.scone_least else {
            return Ok(Signal::at_most(LEAST_BPS.min(link.bps() as u64)).unwrap_or(Signal::MIN));
        };
        if given > link {
            return Err(Refusal(format!("--scone-least: {given} is more than --rate; use at most {link}")));
        }
        signal_of(given).map_err(|why| Refusal(format!("--scone-least: {why}")))
    }
}

/// Whether the element in these pins follows the interface's router.
fn follows_law(interface: &Interface) -> bool {
    report::pinned_config(&staged::settled(&pins::of_scone(interface)))
        .is_some_and(|config| config.offer_at != 0)
}

/// Detaches an element whose advice comes from the old router, because that one is about to be replaced.
pub fn end(interface: &Interface, comes_again: bool) -> anyhow::Result<()> {
    let directory = pins::of_scone(interface);
    if !directory.exists() || !follows_law(interface) {
        return Ok(());
    }
    staged::discard(&directory)?;
    pins::remove(&directory)?;
    if !comes_again {
        println!("the advice of {}, which followed its old law, has ended: add --scone", interface.name);
    }
    Ok(())
}

/// Loads the program with its configuration, prefixes and the router's state.
fn load<'a>(
    object: &'a mut MaybeUninit<OpenObject>,
    wanted: &Wanted,
    link_bytes: u64,
    router: Option<&MapHandle>,
) -> anyhow::Result<SconeSkel<'a>> {
    libbpf_rs::set_print(None);
    let mut key = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let key = u128::from_ne_bytes(key);
    let mut open = SconeSkelBuilder::default().open(object)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.config = types::fs_scone_config {
            link_bytes,
            key: [key as u64, (key >> 64) as u64],
            offer_at: router.map_or(0, |_| offset_of!(router_types::fs_link, offer) as u64),
            rtt_at: router.map_or(0, |_| offset_of!(router_types::fs_link, rcp.avg_rtt_q8) as u64),
            signal: wanted.signal.bits().into(),
            prefixes: wanted.prefixes.len() as u32,
            enforce: wanted.enforce.into(),
            first: FIRST,
            least: wanted.least.unwrap_or(Signal::MIN).bits().into(),
            ..Default::default()
        };
    }
    open.maps.prefixes.set_max_entries(wanted.prefixes.len().max(1) as u32)?;
    if let Some(router) = router {
        open.maps.link_state.reuse_fd(router.as_fd())?;
    }
    let skeleton = open.load().map_err(|e| no_bpf(&e))?;
    for entry in &wanted.prefixes {
        let signal = u32::from(entry.signal.bits()).to_ne_bytes();
        skeleton.maps.prefixes.update(bytes_of(&entry.key()), &signal, MapFlags::ANY)?;
    }
    let state = types::fs_scone_state { law_signal: Signal::UNKNOWN.bits().into(), ..Default::default() };
    skeleton.maps.state.update(&0u32.to_ne_bytes(), bytes_of(&state), MapFlags::ANY)?;
    if router.is_some() {
        let input = ProgramInput { data_in: Some(&[0; 64]), ..ProgramInput::default() };
        let code = skeleton.progs.fs_start.test_run(input)?.return_value;
        anyhow::ensure!(code == 0, "the timer did not start: step {code}");
    }
    Ok(skeleton)
}

/// The program for `router bench`, with advice of 5 Mb/s for all flows.
pub fn load_bench(object: &mut MaybeUninit<OpenObject>) -> anyhow::Result<SconeSkel<'_>> {
    let signal = Signal::at_most(5_000_000).unwrap_or(Signal::MAX);
    load(object, &Wanted { signal, prefixes: Vec::new(), least: None, enforce: false }, 14, None)
}

/// Attaches the element, in place of one that is there. Its counters and its flows' periods start again. The caller holds the
/// lock on the directory of pins.
pub fn attach(interface: &Interface, wanted: &Wanted) -> anyhow::Result<()> {
    pins::enter(interface)?;
    let (ifindex, link_bytes) = pins::look_up(&interface.name)?;
    let directory = pins::of_scone(interface);
    staged::recover(&directory)?;
    let router = staged::settled(&pins::directory(interface)).join("state");
    let router = wanted.least.map(|_| MapHandle::from_pinned_path(router)).transpose()?;
    let mut object = MaybeUninit::uninit();
    let mut skeleton = load(&mut object, wanted, link_bytes, router.as_ref())?;
    let done = put_on(interface, ifindex, &mut skeleton).and_then(|()| Ok(staged::exchange(&directory)?));
    if let Err(error) = done {
        let _ = staged::recover(&directory);
        return Err(error);
    }
    staged::discard(&directory)
}

/// Pins the maps in the staged directory, and attaches the program before all others: packets that it drops are not counted
/// by the router.
fn put_on(interface: &Interface, ifindex: u32, skeleton: &mut SconeSkel<'_>) -> anyhow::Result<()> {
    let directory = pins::of_scone(interface);
    let new = staged::beside(&directory);
    pins::create(&new)?;
    let maps = &mut skeleton.maps;
    maps.state.pin(new.join("state"))?;
    maps.counts.pin(new.join("counts"))?;
    maps.rodata.pin(new.join("config"))?;
    let program = &skeleton.progs.fs_scone;
    if staged::take_over(&directory, pins::LINK, ifindex, program.as_fd())? {
        return Ok(());
    }
    let refused = |e| Refusal(format!("cannot attach to {} ({e}); it needs Linux 6.6", interface.name));
    // SAFETY: a loaded program.
    let link = unsafe { attach_tcx(program.as_libbpf_object(), ifindex, Place::First) };
    Ok(link.map_err(refused)?.pin(new.join(pins::LINK))?)
}

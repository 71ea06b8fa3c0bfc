//! Runs SCONE's network element on constructed datagrams with BPF_PROG_RUN, and compares every frame with the Rust codec's
//! result. Then checks prefixes, the limit on changes, monitoring and enforcement.

mod packets;

use flowstamp_wire::scone::{self, Lowered, Signal};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{ones_sum, skipped};
use proptest::prelude::*;
use std::mem::MaybeUninit;
use std::time::Duration;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/scone.skel.rs"));
}
use skeleton::{SconeSkel, SconeSkelBuilder, types};

const NEXT: i32 = -1;
const DROP: i32 = 2;
const UDP_LEN: usize = 8;
const UNKNOWN: u32 = 127;

fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: only for the skeleton's types, which are plain C structures.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

fn value_of<T>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>());
    // SAFETY: the size is right, and any bytes are valid.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// The element on Ethernet, with this signal for the interface, and datagrams of a flow that may be changed at once.
fn load(object: &mut MaybeUninit<OpenObject>, signal: u32, change: impl FnOnce(&mut types::fs_scone_config)) -> SconeSkel<'_> {
    let mut open = SconeSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.link_bytes = 14;
    config.key = [0x0123_4567_89ab_cdef, 0xfeed];
    config.signal = signal;
    config.first = u32::MAX;
    change(config);
    open.maps.prefixes.set_max_entries(16).expect("before it is made");
    let skeleton = open.load().expect("the kernel takes it");
    let state = types::fs_scone_state { law_signal: UNKNOWN, ..Default::default() };
    skeleton.maps.state.update(&[0; 4], bytes_of(&state), MapFlags::ANY).expect("an array");
    skeleton
}

/// The verdict on a frame, and the frame after it.
fn run(skeleton: &SconeSkel<'_>, frame: &[u8]) -> (i32, Vec<u8>) {
    let mut out = vec![0; frame.len()];
    let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..ProgramInput::default() };
    let code = skeleton.progs.fs_scone.test_run(input).expect("it runs").return_value as i32;
    (code, out)
}

fn counts(skeleton: &SconeSkel<'_>) -> types::fs_scone_counts {
    let mut sum = types::fs_scone_counts::default();
    let each = skeleton.maps.counts.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("an entry");
    for cpu in each {
        let one: types::fs_scone_counts = value_of(&cpu);
        sum.packets += one.packets;
        sum.lowered += one.lowered;
        sum.kept += one.kept;
        sum.spared += one.spared;
        sum.unadvised += one.unadvised;
        sum.untracked += one.untracked;
        sum.flows += one.flows;
        sum.flows_over += one.flows_over;
        sum.periods += one.periods;
        sum.periods_over += one.periods_over;
        sum.dropped += one.dropped;
    }
    sum
}

/// How a datagram is wrapped.
#[derive(Clone, Debug)]
struct Wrapping {
    tags: Vec<u16>,
    /// IPv4's options in units of four bytes; `None` is IPv6.
    ip_options: Option<usize>,
    /// IPv6's extension headers.
    extensions: Vec<u8>,
    /// Fragment field: IPv4's third word, or IPv6's fragment header's.
    fragment: u16,
    protocol: u8,
    checksum: bool,
    from_port: u16,
    to: [u8; 16],
    /// Added to the length fields of UDP and of IP.
    longer: [i32; 2],
    /// Bytes of Ethernet padding.
    padding: usize,
}

impl Default for Wrapping {
    fn default() -> Self {
        Self {
            tags: vec![],
            ip_options: Some(0),
            extensions: vec![],
            fragment: 0,
            protocol: 17,
            checksum: true,
            from_port: 443,
            to: [10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
            longer: [0; 2],
            padding: 0,
        }
    }
}

/// A frame, and where UDP's header and the IP packet's end are.
struct Frame {
    bytes: Vec<u8>,
    udp: usize,
    end: usize,
    pseudo: Vec<u8>,
}

impl Wrapping {
    fn frame(&self, payload: &[u8]) -> Frame {
        let length = UDP_LEN + payload.len();
        let shown = |by: i32, length: usize| (length as i32 + by).clamp(0, 0xffff) as u16;
        let udp_length = shown(self.longer[0], length);
        let mut udp = [self.from_port.to_be_bytes(), [0xc3, 0x50], udp_length.to_be_bytes(), [0; 2]].concat();
        udp.extend(payload);
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tag in &self.tags {
            bytes.extend(tag.to_be_bytes());
            bytes.extend([0, 42]);
        }
        let mut pseudo = vec![];
        if let Some(options) = self.ip_options {
            bytes.extend([8, 0]);
            let header = 20 + 4 * options;
            let [high, low] = shown(self.longer[1], header + length).to_be_bytes();
            let [flags, offset] = self.fragment.to_be_bytes();
            let start = bytes.len();
            bytes.extend([0x40 | (header / 4) as u8, 0, high, low, 0, 7, flags, offset, 64, self.protocol, 0, 0]);
            let hosts = [&[10, 0, 0, 1], &self.to[..4]].concat();
            bytes.extend(&hosts);
            bytes.extend(vec![1; 4 * options]);
            let sum = !ones_sum(&[&bytes[start..]]);
            bytes[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
            pseudo.extend(hosts);
        } else {
            bytes.extend([0x86, 0xdd]);
            let mut chain = vec![];
            for (i, number) in self.extensions.iter().enumerate() {
                let next = self.extensions.get(i + 1).copied().unwrap_or(self.protocol);
                let [high, low] = self.fragment.to_be_bytes();
                match number {
                    44 => chain.extend([next, 0, high, low, 0, 0, 0, 7]),
                    _ => chain.extend([next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                }
            }
            bytes.extend([0x60, 0, 0xab, 0xcd]);
            bytes.extend(shown(self.longer[1], chain.len() + length).to_be_bytes());
            bytes.extend([self.extensions.first().copied().unwrap_or(self.protocol), 64]);
            bytes.extend([0xfd; 16]);
            bytes.extend(self.to);
            bytes.extend(chain);
            pseudo.extend([0xfd; 16]);
            pseudo.extend(self.to);
        }
        pseudo.extend([0, 17]);
        pseudo.extend(udp_length.to_be_bytes());
        if self.checksum {
            let sum = !ones_sum(&[&pseudo, &udp]);
            udp[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
        }
        let at = bytes.len();
        bytes.extend(udp);
        let end = (bytes.len() as i32 + self.longer[1]) as usize;
        bytes.resize(bytes.len() + self.padding, 0xee);
        Frame { bytes, udp: at, end, pseudo }
    }

    /// Whether the frame has a UDP header in it.
    fn has_udp(&self) -> bool {
        let later = if self.ip_options.is_some() {
            self.fragment & 0x1fff != 0
        } else {
            self.extensions.contains(&44) && self.fragment & 0xfff8 != 0
        };
        self.protocol == 17 && !later
    }
}

/// What the element should make of the frame, by the Rust codec.
fn expected(wrapping: &Wrapping, frame: &Frame, advice: Signal) -> (Vec<u8>, Lowered) {
    let mut bytes = frame.bytes.clone();
    let length = usize::from(u16::from_be_bytes([bytes[frame.udp + 4], bytes[frame.udp + 5]]));
    let end = frame.end.min(bytes.len()).min(frame.udp + length);
    if !wrapping.has_udp() || end < frame.udp + UDP_LEN {
        return (bytes, Lowered::NotScone);
    }
    let lowered = scone::lower_in_udp(&mut bytes[frame.udp..end], advice);
    (bytes, lowered)
}

fn signal(bits: u8) -> Signal {
    Signal::from_bits(bits).expect("seven bits")
}

/// A SCONE packet with these connection IDs, and bytes behind it.
fn payload(bits: u8, dcid: &[u8], scid: &[u8], rest: &[u8]) -> Vec<u8> {
    let packet = scone::Packet { signal: signal(bits), dcid, scid };
    let mut bytes = vec![0; packet.wire_len()];
    packet.emit(&mut bytes).expect("short");
    bytes.extend(rest);
    bytes
}

fn wrappings() -> Vec<Wrapping> {
    let plain = Wrapping::default();
    let v6 = Wrapping { ip_options: None, ..plain.clone() };
    vec![
        plain.clone(),
        Wrapping { tags: vec![0x8100], ..plain.clone() },
        Wrapping { tags: vec![0x88a8, 0x8100], ..plain.clone() },
        Wrapping { ip_options: Some(1), ..plain.clone() },
        Wrapping { ip_options: Some(10), tags: vec![0x8100], ..plain.clone() },
        // The first fragment, and a later one.
        Wrapping { fragment: 0x2000, ..plain.clone() },
        Wrapping { fragment: 0x2001, ..plain.clone() },
        Wrapping { checksum: false, ..plain.clone() },
        Wrapping { protocol: 6, ..plain.clone() },
        Wrapping { protocol: 136, ..plain.clone() },
        Wrapping { padding: 6, ..plain },
        v6.clone(),
        Wrapping { tags: vec![0x88a8, 0x8100], ..v6.clone() },
        Wrapping { extensions: vec![0, 43, 60], ..v6.clone() },
        Wrapping { extensions: vec![44], fragment: 1, ..v6.clone() },
        Wrapping { extensions: vec![44], fragment: 8, ..v6.clone() },
        Wrapping { checksum: false, ..v6 },
    ]
}

/// Every wrapping with every signal: the codec's bytes, and the checksum that a full computation gives.
#[test]
fn every_wrapping_and_signal() {
    if skipped() {
        return;
    }
    let advice = signal(33);
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 33, |_| {});
    let mut lowered = 0;
    for wrapping in wrappings() {
        for bits in 0..128 {
            let frame = wrapping.frame(&payload(bits, &[1; 8], &[], &[0x41, 2, 3, 4, 5]));
            let (bytes, result) = expected(&wrapping, &frame, advice);
            assert_eq!(run(&skeleton, &frame.bytes), (NEXT, bytes.clone()), "{wrapping:?}, signal {bits}");
            let is_lowered = wrapping.has_udp() && bits > 33;
            assert_eq!(matches!(result, Lowered::From(_)), is_lowered);
            lowered += u64::from(is_lowered);
            if is_lowered && wrapping.checksum {
                assert_eq!(ones_sum(&[&frame.pseudo, &bytes[frame.udp..frame.end]]), 0xffff, "{wrapping:?}");
            } else if is_lowered {
                assert_eq!(bytes[frame.udp + 6..frame.udp + 8], [0, 0]);
            }
        }
    }
    let counts = counts(&skeleton);
    assert_eq!((counts.lowered, counts.spared, counts.untracked), (lowered, 0, 0));
    // Signals 0 to 33 in the 13 wrappings with a UDP header.
    assert_eq!((counts.kept, counts.packets), (13 * 34, 13 * 128));
}

fn any_wrapping() -> impl Strategy<Value = Wrapping> {
    let lengths = prop_oneof![4 => Just([0, 0]), 1 => (-40_i32..20, -40_i32..20).prop_map(|(udp, ip)| [udp, ip.min(0)])];
    (proptest::sample::select(wrappings()), lengths, 0_usize..8)
        .prop_map(|(wrapping, longer, padding)| Wrapping { longer, padding, ..wrapping })
}

/// Payloads of QUIC's form, short ones and damaged ones among them.
fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    let id = || proptest::collection::vec(any::<u8>(), 0..=20);
    let rest = proptest::collection::vec(any::<u8>(), 0..30);
    let whole = (0_u8..128, id(), id(), rest).prop_map(|(bits, dcid, scid, rest)| payload(bits, &dcid, &scid, &rest));
    let cut = (whole.clone(), 0_usize..60).prop_map(|(bytes, len)| bytes[..len.min(bytes.len())].to_vec());
    let damaged = (whole.clone(), 0_usize..8, any::<u8>()).prop_map(|(mut bytes, at, byte)| {
        bytes[at % 7] = byte;
        bytes
    });
    prop_oneof![3 => whole, 1 => cut, 2 => damaged, 1 => proptest::collection::vec(any::<u8>(), 0..60)]
}

/// The program and the codec agree on random datagrams, whatever their length fields say.
#[test]
fn the_program_does_what_the_codec_does() {
    if skipped() {
        return;
    }
    let mut objects: Vec<_> = (0..4).map(|_| MaybeUninit::uninit()).collect();
    let skeletons: Vec<_> =
        [0, 33, 126, UNKNOWN].into_iter().zip(&mut objects).map(|(bits, object)| load(object, bits, |_| {})).collect();
    let config = ProptestConfig::with_cases(3000);
    proptest!(config, |(wrapping in any_wrapping(), payload in any_payload(), which in 0_usize..4)| {
        let advice = signal([0, 33, 126, 127][which]);
        let frame = wrapping.frame(&payload);
        let (bytes, lowered) = expected(&wrapping, &frame, advice);
        prop_assert_eq!(run(&skeletons[which], &frame.bytes), (NEXT, bytes.clone()));
        if let Lowered::From(_) = lowered {
            // Again changes nothing.
            prop_assert_eq!(run(&skeletons[which], &bytes), (NEXT, bytes));
        }
    });
}

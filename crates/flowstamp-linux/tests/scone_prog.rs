//! Runs SCONE's network element on constructed datagrams with BPF_PROG_RUN, and compares every frame with the Rust codec's
//! result. Then checks prefixes, the limit on changes, monitoring and enforcement.

mod packets;

use flowstamp_wire::scone::{self, Lowered, Signal};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{ones_sum, skipped};
use proptest::prelude::*;
use std::cell::Cell;
use std::mem::MaybeUninit;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/scone.skel.rs"));
}
use skeleton::{SconeSkel, SconeSkelBuilder, types};

const NEXT: i32 = -1;
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
fn load(
    object: &mut MaybeUninit<OpenObject>,
    signal: u32,
    change: impl FnOnce(&mut types::fs_scone_config),
) -> SconeSkel<'_> {
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
    let each =
        skeleton.maps.counts.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("an entry");
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
            bytes.extend([
                0x40 | (header / 4) as u8,
                0,
                high,
                low,
                0,
                7,
                flags,
                offset,
                64,
                self.protocol,
                0,
                0,
            ]);
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

/// The frame as the Rust codec changes it.
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
    let whole =
        (0_u8..128, id(), id(), rest).prop_map(|(bits, dcid, scid, rest)| payload(bits, &dcid, &scid, &rest));
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
    let skeletons: Vec<_> = [0, 33, 126, UNKNOWN]
        .into_iter()
        .zip(&mut objects)
        .map(|(bits, object)| load(object, bits, |_| {}))
        .collect();
    let config = ProptestConfig::with_cases(800);
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

/// CLOCK_MONOTONIC, which is the program's, in ns.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

const SECOND: u64 = 1_000_000_000;
const PERIOD: u64 = scone::PERIOD_S * SECOND;
/// The program's clock is behind by a tick, at most this.
const TICK: u64 = SECOND / 100;

/// The bucket at this place.
fn bucket(skeleton: &SconeSkel<'_>, at: u32) -> types::fs_scone_bucket {
    value_of(
        &skeleton.maps.buckets.lookup(&at.to_ne_bytes(), MapFlags::ANY).expect("an array").expect("an entry"),
    )
}

thread_local! {
    /// The bucket of this test's only flow, once it has been found.
    static AT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Changes the state of the only flow.
fn change_flow(skeleton: &SconeSkel<'_>, change: impl Fn(&mut types::fs_scone_flow)) {
    let is_there = |at: &u32| bucket(skeleton, *at).flows.iter().any(|flow| flow.tag != 0);
    let at = AT.get().or_else(|| (0..32768).find(is_there)).expect("a flow");
    AT.set(Some(at));
    let mut bucket = bucket(skeleton, at);
    bucket.flows.iter_mut().filter(|flow| flow.tag != 0).for_each(change);
    skeleton.maps.buckets.update(&at.to_ne_bytes(), bytes_of(&bucket), MapFlags::ANY).expect("an array");
}

/// A datagram without advice yet, and one with a short header, of the same flow.
fn scone_and_other(wrapping: &Wrapping, other_bytes: usize) -> [Vec<u8>; 2] {
    let head = payload(127, &[1; 8], &[], &[0x41, 2, 3]);
    [head, vec![0x41; other_bytes]].map(|payload| wrapping.frame(&payload).bytes)
}

/// The signal in a frame of the plain wrapping.
fn signal_in(frame: &[u8]) -> u8 {
    scone::Packet::parse(&frame[14 + 20 + UDP_LEN..]).expect("a SCONE packet").signal.bits()
}

/// The longest prefix of the destination, and the lowest of all advice.
#[test]
fn the_lowest_advice_counts() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 60, |config| config.prefixes = 5);
    let put = |version: u8, address: &[u8], bits: u32, signal: u32| {
        let mut key = types::fs_scone_prefix { bits: 8 + bits, version, ..Default::default() };
        key.address[..address.len()].copy_from_slice(address);
        skeleton.maps.prefixes.update(bytes_of(&key), &signal.to_ne_bytes(), MapFlags::ANY).expect("a map");
    };
    put(4, &[10, 0, 0, 0], 8, 50);
    put(4, &[10, 0, 1, 0], 24, 40);
    put(4, &[10, 0, 1, 7], 32, 70);
    put(6, &[0x0a, 0], 16, 45);
    put(6, &[], 0, 20);
    let advice = |v6: bool, to: &[u8], port: u16| {
        let mut wrapping =
            Wrapping { from_port: port, ip_options: (!v6).then_some(0), ..Wrapping::default() };
        wrapping.to[..to.len()].copy_from_slice(to);
        let frame = wrapping.frame(&payload(127, &[1; 8], &[], &[0x41]));
        let (code, out) = run(&skeleton, &frame.bytes);
        assert_eq!(code, NEXT);
        scone::Packet::parse(&out[frame.udp + UDP_LEN..]).expect("a SCONE packet").signal.bits()
    };
    // The interface's 60 is lower than the 70 of one address.
    let found =
        [[10, 9, 9, 9], [10, 0, 1, 2], [10, 0, 1, 7], [11, 0, 0, 1]].map(|to| advice(false, &to, 443));
    assert_eq!(found, [50, 40, 60, 60]);
    // The same bytes are other prefixes in IPv6.
    assert_eq!([[0x0a, 0], [0x0b, 0]].map(|to| advice(true, &to, 443)), [45, 20]);
    // Advice of a law, for a flow that has begun and for a new one.
    let law = types::fs_scone_state { law_signal: 42, ..Default::default() };
    skeleton.maps.state.update(&[0; 4], bytes_of(&law), MapFlags::ANY).expect("an array");
    assert_eq!([443, 444].map(|port| advice(false, &[10, 9, 9, 9], port)), [42, 42]);
    assert_eq!(advice(false, &[10, 0, 1, 2], 443), 40);
    let counts = counts(&skeleton);
    assert_eq!((counts.packets, counts.lowered, counts.flows), (9, 9, 7));
}

/// RCP's rate as the router's state has it, in bytes/ms behind a known RTT, and the advice that follows: at least 1 Mb/s.
#[test]
fn the_laws_advice_has_a_least() {
    if skipped() {
        return;
    }
    for (offer, expected) in [(1000_u64, 38), (125, 20), (3, 20), (0, 20)] {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, UNKNOWN, |config| {
            (config.rtt_at, config.offer_at, config.least) = (0, 8, 20);
        });
        let router = [1_u64.to_ne_bytes(), offer.to_ne_bytes()].concat();
        skeleton.maps.link_state.update(&[0; 4], &router, MapFlags::ANY).expect("an array");
        let input = ProgramInput { data_in: Some(&[0; 64]), ..ProgramInput::default() };
        assert_eq!(skeleton.progs.fs_start.test_run(input).expect("it runs").return_value, 0);
        let state = skeleton.maps.state.lookup(&[0; 4], MapFlags::ANY).expect("an array").expect("an entry");
        assert_eq!(value_of::<types::fs_scone_state>(&state).law_signal, expected, "{offer} bytes/ms");
    }
}

/// The draft allows a few changes of a flow's datagrams in a period: four, one each 14 s, and four more for lower advice.
#[test]
fn a_flow_is_changed_a_few_times_in_a_period() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 40, |config| config.first = 4);
    let plain = Wrapping::default();
    let [frame, other] = scone_and_other(&plain, 100);
    let signals = || (0..6).map(|_| signal_in(&run(&skeleton, &frame).1)).collect::<Vec<_>>();
    assert_eq!(signals(), [40, 40, 40, 40, 127, 127]);
    // As low already: nothing to change.
    let low = plain.frame(&payload(39, &[1; 8], &[], &[0x41])).bytes;
    assert_eq!(run(&skeleton, &low).1, low);
    change_flow(&skeleton, |flow| flow.written_ns -= 14 * SECOND + TICK);
    assert_eq!(signals(), [40, 127, 127, 127, 127, 127]);
    let law = types::fs_scone_state { law_signal: 30, ..Default::default() };
    skeleton.maps.state.update(&[0; 4], bytes_of(&law), MapFlags::ANY).expect("an array");
    assert_eq!(signals(), [30, 30, 30, 30, 127, 127]);
    // Higher advice waits, so that an advice that changes to and fro does not change every datagram.
    let law = types::fs_scone_state { law_signal: 31, ..Default::default() };
    skeleton.maps.state.update(&[0; 4], bytes_of(&law), MapFlags::ANY).expect("an array");
    assert_eq!(signals(), [127; 6]);
    // The next period begins with any packet of the flow.
    change_flow(&skeleton, |flow| flow.since_ns -= PERIOD + TICK);
    assert_eq!(run(&skeleton, &other).1, other);
    assert_eq!(signals(), [31, 31, 31, 31, 127, 127]);
    let counts = counts(&skeleton);
    assert_eq!((counts.lowered, counts.kept, counts.flows), (13, 1, 1));
    assert_eq!(counts.packets, counts.lowered + counts.kept + counts.spared);
}

/// A flow is judged by bytes of payload in a period, from its second period on, and by the higher advice of two periods.
#[test]
fn flows_are_judged_by_the_higher_advice_of_two_periods() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    // 1 Mb/s: 8.375 MB in a period.
    let skeleton = load(&mut object, 20, |_| {});
    let [frame, other] = scone_and_other(&Wrapping::default(), 1000);
    let set_law = |signal| {
        let law = types::fs_scone_state { law_signal: signal, ..Default::default() };
        skeleton.maps.state.update(&[0; 4], bytes_of(&law), MapFlags::ANY).expect("an array");
    };
    // Ends the period with so many bytes in it, and tells the judgements so far.
    let period = |bytes: u64| {
        change_flow(&skeleton, |flow| {
            flow.since_ns = now() - PERIOD - TICK;
            flow.bytes = bytes;
        });
        assert_eq!(run(&skeleton, &other), (NEXT, other.clone()));
        let counts = counts(&skeleton);
        (counts.periods, counts.periods_over, counts.flows_over)
    };
    assert_eq!(run(&skeleton, &other), (NEXT, other.clone()));
    assert_eq!(counts(&skeleton).flows, 0, "no SCONE packet yet");
    run(&skeleton, &frame);
    assert_eq!(period(100_000_000), (0, 0, 0), "the first period");
    assert_eq!(period(8_375_000), (1, 0, 0));
    // A tick of 10 ms allows 1250 bytes more, and the limit is in whole ms.
    assert_eq!(period(8_377_000), (2, 1, 1));
    assert_eq!(period(8_377_000), (3, 2, 1), "the same flow");
    // Lower advice counts after two periods in which it applied.
    set_law(0);
    assert_eq!(period(8_000_000), (4, 2, 1));
    assert_eq!(period(8_000_000), (5, 2, 1));
    assert_eq!(period(8_000_000), (6, 3, 2));
    assert_eq!(period(837_000), (7, 3, 2));
    // Higher advice counts at once.
    set_law(UNKNOWN);
    run(&skeleton, &other);
    assert_eq!(period(8_000_000), (8, 3, 2));
    assert_eq!(counts(&skeleton).dropped, 0);
}

/// With enforcement a flow that was over its advice gets that rate, until it has obeyed for a period.
#[test]
fn enforcement_limits_flows_over_their_advice() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    // 10 Mb/s: a burst of a second is 1.25 MB, and a period 83.75 MB.
    let skeleton = load(&mut object, 40, |config| config.enforce = 1);
    let [frame, other] = scone_and_other(&Wrapping::default(), 1000);
    let passed = |n: usize| (0..n).filter(|_| run(&skeleton, &other).0 == NEXT).count();
    let end_period = |bytes: u64| {
        change_flow(&skeleton, |flow| {
            flow.since_ns = now() - PERIOD - TICK;
            flow.bytes = bytes;
        });
    };
    run(&skeleton, &frame);
    end_period(100_000_000);
    assert_eq!(passed(1500), 1500);
    end_period(100_000_000);
    // The burst, and what 10 Mb/s add during the calls.
    // A tick is 12 packets.
    let start = now();
    let first = passed(2500);
    let added = ((now() - start) as f64 * 1.25e6 / 1e9 / 1000.0) as usize;
    assert!((1249..=1263 + added).contains(&first), "{first} of 2500 passed, {added} since");
    assert_eq!(counts(&skeleton).dropped, 2500 - first as u64);
    let start = now();
    change_flow(&skeleton, |flow| {
        flow.tokens = 0;
        flow.tokens_ns = start - SECOND / 10;
    });
    let later = passed(400);
    let added = ((now() - start) as f64 * 1.25e6 / 1e9 / 1000.0) as usize;
    assert!((112..=127 + added).contains(&later), "{later} passed after 100 ms, {added} since");
    // Dropped packets count as sent, and a flow that has obeyed is free again.
    end_period(80_000_000);
    assert_eq!(passed(1500), 1500);
    // Other flows of the same hosts are left alone.
    let [_, stranger] = scone_and_other(&Wrapping { from_port: 444, ..Wrapping::default() }, 1000);
    end_period(100_000_000);
    passed(1500);
    assert_eq!((0..1500).filter(|_| run(&skeleton, &stranger).0 == NEXT).count(), 1500);
}

/// A table full of flows that are not idle gives no advice to new ones, and leaves their datagrams alone.
#[test]
fn a_full_table_leaves_new_flows_alone() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 40, |_| {});
    let fill = |age: u64| {
        let flow = types::fs_scone_flow {
            tag: 1 << 63,
            last_ns: now() - age,
            since_ns: now() - age,
            ..Default::default()
        };
        let bucket = types::fs_scone_bucket { flows: [flow; 2], ..Default::default() };
        for at in 0..32768_u32 {
            skeleton
                .maps
                .buckets
                .update(&at.to_ne_bytes(), bytes_of(&bucket), MapFlags::ANY)
                .expect("an array");
        }
    };
    let [frame, _] = scone_and_other(&Wrapping::default(), 100);
    fill(PERIOD / 2);
    assert_eq!(run(&skeleton, &frame), (NEXT, frame.clone()));
    assert_eq!((counts(&skeleton).untracked, counts(&skeleton).flows), (1, 0));
    fill(PERIOD + SECOND);
    assert_eq!(signal_in(&run(&skeleton, &frame).1), 40);
    assert_eq!((counts(&skeleton).untracked, counts(&skeleton).flows), (1, 1));
}

/// Each datagram of a frame of segmentation offload may begin with a SCONE packet.
#[test]
fn datagrams_of_a_large_frame() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 33, |_| {});
    let segment = |bits: u8| {
        let mut bytes = payload(bits, &[1; 8], &[], &[0x41]);
        bytes.resize(500, 0x55);
        bytes
    };
    let mut other = segment(127);
    other[0] = 0x41;
    // The last one is shorter; in it, nothing follows the SCONE packet.
    let end = payload(127, &[1; 8], &[], &[]);
    let payload = [segment(127), other, segment(20), segment(40), end].concat();
    let frame = Wrapping::default().frame(&payload);
    let mut context = types::__sk_buff { gso_size: 500, gso_segs: 5, ..Default::default() };
    let mut out = vec![0; frame.bytes.len()];
    // SAFETY: a plain structure of the kernel's.
    let context = unsafe {
        std::slice::from_raw_parts_mut((&raw mut context).cast::<u8>(), size_of::<types::__sk_buff>())
    };
    let input = ProgramInput {
        context_in: Some(context),
        data_in: Some(&frame.bytes),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    assert_eq!(skeleton.progs.fs_scone.test_run(input).expect("it runs").return_value as i32, NEXT);
    let mut expected = frame.bytes.clone();
    assert_eq!(scone::lower_in_udp(&mut expected[frame.udp..], signal(33)), Lowered::From(Signal::UNKNOWN));
    // The kernel computes the checksums of later datagrams.
    scone::lower(&mut expected[frame.udp + UDP_LEN + 1500..], signal(33));
    assert_eq!(out, expected);
    let counts = counts(&skeleton);
    assert_eq!((counts.packets, counts.lowered, counts.kept), (3, 2, 1));
}

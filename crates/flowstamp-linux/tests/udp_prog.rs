//! Runs the host's programs for datagrams with BPF_PROG_RUN. The shim goes in and out without a trace, questions are made
//! and answered, and departures follow R. All other packets stay as they are.

mod packets;

use flowstamp_wire::rcp::{BytesPerMilli, Header, Millis16};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput, ProgramMut};
use packets::{ones_sum, skipped};
use proptest::prelude::*;
use std::mem::{MaybeUninit, offset_of};

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/udp.skel.rs"));
}
use skeleton::{UdpSkel, UdpSkelBuilder, types};

const NEXT: i32 = -1;
const DROP: i32 = 2;
const REDIRECT: i32 = 7;
/// `enum fs_udp_copy` and `enum fs_udp_state`.
const QUESTION: u32 = 1;
const RETURN: u32 = 2;
const OBEYS: u32 = 1;
/// The listed port, and the other end's.
const PORT: u16 = 5004;
const PEER: u16 = 40_000;

fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: only for the skeleton's types, which are plain C structures.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

fn value_of<T: Default>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>());
    // SAFETY: the size is right, and any bytes are valid.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// The programs in a network namespace of this thread's own, which forwards nothing.
fn load(object: &mut MaybeUninit<OpenObject>) -> UdpSkel<'_> {
    // SAFETY: no pointers.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").expect("a namespace");
    std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "0").expect("a namespace");
    let open = UdpSkelBuilder::default().open(object).expect("the object is whole");
    let skeleton = open.load().expect("the kernel takes it");
    let mut settings = vec![0u8; 8192];
    settings[usize::from(PORT / 8)] |= 1 << (PORT % 8);
    settings.extend(u32::MAX.to_ne_bytes());
    settings.extend([0; 4]);
    skeleton.maps.settings.update(&[0; 4], &settings, MapFlags::ANY).expect("an array");
    skeleton
}

/// A datagram's frame, as the device that receives it has the address zero.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    v6: bool,
    to_port: u16,
    payload: usize,
}

const PLAIN: Datagram = Datagram { v6: false, to_port: PORT, payload: 100 };

impl Datagram {
    const fn ip_bytes(self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    const fn udp_at(self) -> usize {
        14 + self.ip_bytes()
    }

    fn frame(self) -> Vec<u8> {
        let length = (8 + self.payload) as u16;
        let mut udp = [PEER.to_be_bytes(), self.to_port.to_be_bytes(), length.to_be_bytes(), [0; 2]].concat();
        udp.extend((0..self.payload).map(|i| i as u8));
        let mut frame = vec![0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1];
        let addresses = if self.v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([17, 3]);
            [[0xfd; 16], [0xfe; 16]].concat()
        } else {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + length).to_be_bytes());
            frame.extend([0, 7, 0x40, 0, 3, 17, 0, 0]);
            vec![10, 0, 0, 1, 10, 0, 0, 2]
        };
        frame.extend(&addresses);
        if !self.v6 {
            let sum = !ones_sum(&[&frame[14..]]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        let sum = !ones_sum(&[&addresses, &[0, 17], &length.to_be_bytes(), &udp]);
        udp[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
        frame.extend(udp);
        frame
    }

    /// The key of its flow at the sender, or at the receiver.
    fn key(self, at_sender: bool) -> types::fs_udp_key {
        let mut key = types::fs_udp_key { netns: cookie(), ..Default::default() };
        let [mut from, mut to] = [[0; 16]; 2];
        if self.v6 {
            (from, to) = ([0xfd; 16], [0xfe; 16]);
        } else {
            from[..4].copy_from_slice(&[10, 0, 0, 1]);
            to[..4].copy_from_slice(&[10, 0, 0, 2]);
        }
        let (from_port, to_port) = (PEER.to_be(), self.to_port.to_be());
        (key.local, key.remote) = if at_sender { (from, to) } else { (to, from) };
        (key.local_port, key.remote_port) =
            if at_sender { (from_port, to_port) } else { (to_port, from_port) };
        key.version = if self.v6 { 6 } else { 4 };
        key
    }
}

fn cookie() -> u64 {
    use std::os::fd::AsRawFd;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let (mut cookie, mut len) = (0u64, 8u32);
    // SAFETY: a descriptor that is open, and a place of the length given.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, 71, (&raw mut cookie).cast(), &raw mut len)
    };
    assert_eq!(done, 0);
    cookie
}

fn set(skeleton: &UdpSkel<'_>, key: &types::fs_udp_key, flow: &types::fs_udp_flow) {
    skeleton.maps.flows.update(bytes_of(key), bytes_of(flow), MapFlags::ANY).expect("a map");
}

fn flow(skeleton: &UdpSkel<'_>, key: &types::fs_udp_key) -> Option<types::fs_udp_flow> {
    let bytes = skeleton.maps.flows.lookup(bytes_of(key), MapFlags::ANY).expect("a map");
    bytes.map(|bytes| value_of(&bytes))
}

/// The next run on any CPU handles a copy.
fn copies(skeleton: &UdpSkel<'_>, kind: u32) {
    let cpus = libbpf_rs::num_possible_cpus().expect("a number");
    let values = vec![kind.to_ne_bytes().to_vec(); cpus];
    skeleton.maps.copying.update_percpu(&[0; 4], &values, MapFlags::ANY).expect("an array");
}

struct Ran {
    code: i32,
    bytes: Vec<u8>,
    departs_ns: u64,
}

fn run_with(program: &ProgramMut<'_>, frame: &[u8], gso_size: u32) -> Ran {
    let mut out = vec![0; frame.len() + 64];
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    let at = offset_of!(types::__sk_buff, gso_size);
    context[at..at + 4].copy_from_slice(&gso_size.to_ne_bytes());
    let mut after = vec![0; context.len()];
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut after),
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let output = program.test_run(input).expect("it runs");
    let (code, length) = (output.return_value as i32, output.data.map_or(0, |data| data.len()));
    out.truncate(length);
    let at = offset_of!(types::__sk_buff, tstamp);
    let departs_ns = u64::from_ne_bytes(after[at..at + 8].try_into().expect("eight"));
    Ran { code, bytes: out, departs_ns }
}

fn run(program: &ProgramMut<'_>, frame: &[u8]) -> Ran {
    run_with(program, frame, 0)
}

fn obeying(rate: u32) -> types::fs_udp_flow {
    types::fs_udp_flow { rate, state: OBEYS, asked_ns: u64::MAX >> 1, srtt_us: 20_400, ..Default::default() }
}

/// IPv4's header sums to zero.
fn ip_is_right(frame: &[u8], v6: bool) -> bool {
    v6 || ones_sum(&[&frame[14..34]]) == 0xffff
}

#[test]
fn the_shim_goes_in_and_out_without_a_trace() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    let config = ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let draws = (any::<bool>(), 1usize..1400, 1u32..=u32::MAX, any::<u32>(), 0u32..4_000_000);
    proptest!(config, |((v6, payload, rate, received, srtt_us) in draws)| {
        let datagram = Datagram { v6, payload, ..PLAIN };
        let frame = datagram.frame();
        let (key, back) = (datagram.key(true), datagram.key(false));
        // A time of the last question that lies ahead: none is due.
        set(&skeleton, &key, &types::fs_udp_flow { received, srtt_us, ..obeying(rate) });
        let sent = run(&skeleton.progs.fs_udp_out, &frame);
        prop_assert_eq!(sent.code, NEXT);
        prop_assert_eq!(sent.bytes.len(), frame.len() + 12);
        prop_assert!(ip_is_right(&sent.bytes, v6));
        prop_assert_eq!(sent.bytes[14 + if v6 { 6 } else { 9 }], 254);
        let header = Header::parse(&sent.bytes[datagram.udp_at()..]).expect("a header");
        let ms = ((srtt_us + 500) / 1000).max(1) as u16;
        prop_assert_eq!(header.bottleneck_rate, BytesPerMilli::NONE);
        prop_assert_eq!(header.reverse_bottleneck_rate.to_bits(), received);
        prop_assert_eq!(header.rtt, if srtt_us == 0 { Millis16::UNKNOWN } else { Millis16::from_bits(ms) });
        prop_assert_eq!((header.protocol, header.weight), (17, 0));
        // A router writes its rate.
        let mut stamped = sent.bytes.clone();
        stamped[datagram.udp_at()..datagram.udp_at() + 4].copy_from_slice(&rate.to_be_bytes());
        let got = run(&skeleton.progs.fs_udp_in, &stamped);
        prop_assert_eq!(got.code, NEXT);
        prop_assert_eq!(got.bytes, frame);
        prop_assert_eq!(flow(&skeleton, &back).expect("kept").received, rate);
    });
}

#[test]
fn a_question_is_answered_and_a_return_needs_none() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    for v6 in [false, true] {
        let datagram = Datagram { v6, ..PLAIN };
        let (frame, at, key) = (datagram.frame(), datagram.udp_at(), datagram.key(true));
        // The first datagram asks, and leaves as it is.
        let sent = run(&skeleton.progs.fs_udp_out, &frame);
        assert_eq!((sent.code, &sent.bytes), (NEXT, &frame));
        let asks = flow(&skeleton, &key).expect("new");
        assert_eq!((asks.waits, asks.state), (1, 0));
        copies(&skeleton, QUESTION);
        let question = run(&skeleton.progs.fs_udp_out, &frame);
        assert_eq!((question.code, question.bytes.len()), (NEXT, at + 12 + 8));
        let empty = Datagram { payload: 0, ..datagram }.frame();
        // Its UDP header is that of a datagram without payload.
        assert_eq!(question.bytes[at + 12..], empty[at..]);
        assert!(ip_is_right(&question.bytes, v6));
        let mut stamped = question.bytes;
        stamped[at..at + 4].copy_from_slice(&700u32.to_be_bytes());
        let answer = run(&skeleton.progs.fs_udp_in, &stamped);
        assert_eq!(answer.code, REDIRECT);
        let header = Header::parse(&answer.bytes[at..]).expect("a header");
        assert_eq!(header, Header { protocol: 17, ..Header::ack(BytesPerMilli::from_bits(700)) });
        assert!(ip_is_right(&answer.bytes, v6));
        let ip_end = at - 2 * if v6 { 16 } else { 4 };
        let (half, end) = ((at - ip_end) / 2, at);
        let swapped = [&stamped[ip_end + half..end], &stamped[ip_end..ip_end + half]].concat();
        assert_eq!(answer.bytes[ip_end..end], swapped);
        assert_eq!(
            answer.bytes[at + 12..at + 16],
            [&stamped[at + 14..at + 16], &stamped[at + 12..at + 14]].concat()
        );
        assert_eq!(answer.bytes[0..12], [&stamped[6..12], &stamped[0..6]].concat());
        // At the sender, whose device has the address zero here too.
        let mut back = answer.bytes;
        back[0..6].fill(0);
        assert_eq!(run(&skeleton.progs.fs_udp_in, &back).code, DROP);
        let obeys = flow(&skeleton, &key).expect("known");
        assert_eq!((obeys.rate, obeys.state, obeys.waits), (700, OBEYS, 0));
        assert!(obeys.srtt_us > 0);
        // Nobody has asked: an answer is not believed.
        back[at + 4..at + 8].copy_from_slice(&9u32.to_be_bytes());
        assert_eq!(run(&skeleton.progs.fs_udp_in, &back).code, DROP);
        assert_eq!(flow(&skeleton, &key).expect("known").rate, 700);
        // A return of the receiver for a datagram with the shim.
        set(&skeleton, &key, &obeying(700));
        let carried = run(&skeleton.progs.fs_udp_out, &frame).bytes;
        copies(&skeleton, RETURN);
        let made = run(&skeleton.progs.fs_udp_out, &carried);
        assert_eq!((made.code, made.bytes.len()), (NEXT, at + 12 + 8));
        let header = Header::parse(&made.bytes[at..]).expect("a header");
        assert_eq!(header, Header { protocol: 59, ..Header::ack(BytesPerMilli::from_bits(700)) });
        assert!(ip_is_right(&made.bytes, v6));
        let mut back = made.bytes;
        back[0..6].fill(0);
        back[at + 4..at + 8].copy_from_slice(&300u32.to_be_bytes());
        assert_eq!(run(&skeleton.progs.fs_udp_in, &back).code, DROP);
        assert_eq!(flow(&skeleton, &key).expect("known").rate, 300);
    }
}

#[test]
fn departures_follow_the_rate() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    let (frame, key) = (PLAIN.frame(), PLAIN.key(true));
    set(&skeleton, &key, &obeying(1));
    let gap_ns = frame.len() as u64 * 1_000_000;
    let first = run(&skeleton.progs.fs_udp_out, &frame).departs_ns;
    for number in 1..10 {
        assert_eq!(run(&skeleton.progs.fs_udp_out, &frame).departs_ns, first + number * gap_ns);
    }
    for _ in 0..100 {
        run(&skeleton.progs.fs_udp_out, &frame);
    }
    // Never so far ahead that fq would drop it.
    let ahead_ns = run(&skeleton.progs.fs_udp_out, &frame).departs_ns - first;
    assert!(ahead_ns < 9_900_000_000, "{ahead_ns}");
}

#[test]
fn a_flow_leaves_after_four_silences() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    let (frame, key) = (PLAIN.frame(), PLAIN.key(true));
    for misses in 0..4 {
        set(&skeleton, &key, &types::fs_udp_flow { asked_ns: 1, waits: 1, misses, ..obeying(1000) });
        let sent = run(&skeleton.progs.fs_udp_out, &frame);
        let after = flow(&skeleton, &key).expect("known");
        let leaves = misses == 3;
        assert_eq!((after.misses, after.state == OBEYS, after.waits), (misses + 1, !leaves, 1));
        assert_eq!(sent.bytes.len() == frame.len(), leaves);
    }
}

#[test]
fn all_else_stays_as_it_is() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    let out = &skeleton.progs.fs_udp_out;
    let stays = |frame: &[u8], what: &str| {
        let sent = run(out, frame);
        assert_eq!((sent.code, sent.bytes.as_slice()), (NEXT, frame), "{what}");
    };
    for v6 in [false, true] {
        let datagram = Datagram { v6, ..PLAIN };
        let frame = datagram.frame();
        set(&skeleton, &datagram.key(true), &obeying(1000));
        stays(&Datagram { to_port: 5005, ..datagram }.frame(), "another port");
        stays(&Datagram { payload: 0, ..datagram }.frame(), "no payload");
        let protocol = 14 + if v6 { 6 } else { 9 };
        for other in [6, 0, 44, 60, 254] {
            let mut bytes = frame.clone();
            bytes[protocol] = other;
            stays(&bytes, "another protocol or an extension header");
        }
        // A frame that the kernel will split.
        let sent = run_with(out, &frame, 40);
        assert_eq!(sent.bytes, frame);
        assert!(sent.departs_ns > 0);
        // The shim makes it too long.
        let mtu = |bytes: usize| {
            let mtu = bytes.to_string();
            let done = std::process::Command::new("ip").args(["link", "set", "lo", "mtu", &mtu]).status();
            assert!(done.expect("ip").success());
        };
        mtu(datagram.ip_bytes() + 8 + 100 + 11);
        stays(&frame, "too long");
        mtu(65_536);
        let carried = run(out, &frame).bytes;
        assert_eq!(carried.len(), frame.len() + 12);
        in_stays(&skeleton, datagram, &carried);
    }
    for (at, value, what) in [(14, 0x46, "options"), (20, 0x20, "a first fragment"), (21, 9, "a later one")] {
        let mut frame = PLAIN.frame();
        frame[at] = value;
        stays(&frame, what);
    }
}

/// Malformed packets with the shim, and those of another host or port, stay as they are.
fn in_stays(skeleton: &UdpSkel<'_>, datagram: Datagram, carried: &[u8]) {
    let at = datagram.udp_at();
    let stays = |bytes: &[u8], what: &str| {
        let got = run(&skeleton.progs.fs_udp_in, bytes);
        assert_eq!((got.code, got.bytes.as_slice()), (NEXT, bytes), "{what}");
    };
    let changed = |place: usize, value: u8| {
        let mut bytes = carried.to_vec();
        bytes[place] = value;
        bytes
    };
    stays(&changed(0, 4), "another host's");
    stays(&changed(at + 15, 0x8d), "another port");
    for protocol in [0, 6, 59, 254] {
        stays(&changed(at + 10, protocol), "another protocol behind the shim");
    }
    stays(&changed(14, 0x55), "another version");
    for kept in at..at + 20 {
        stays(&carried[..kept], "cut");
        let mut bytes = carried.to_vec();
        let (place, shown) = if datagram.v6 { (18, kept - 54) } else { (16, kept - 14) };
        bytes[place..place + 2].copy_from_slice(&(shown as u16).to_be_bytes());
        stays(&bytes, "too short by its own length");
    }
    assert_eq!(run(&skeleton.progs.fs_udp_in, carried).bytes, datagram.frame());
}

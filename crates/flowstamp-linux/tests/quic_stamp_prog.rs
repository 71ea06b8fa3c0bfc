//! Runs the routers of RCP and XCP on datagrams with stamp packets of QUIC with BPF_PROG_RUN, and compares every frame with the Rust codec's
//! result.

mod packets;

use flowstamp_wire::option::{self, MicrosFloat, Protocol};
use flowstamp_wire::quic_stamp::{self, Packet};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{ones_sum, skipped};
use proptest::collection::vec;
use proptest::prelude::*;
use std::mem::MaybeUninit;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
use skeleton::{RouterSkel, RouterSkelBuilder, types};

/// The router's rate, bytes/ms.
const OFFER: u32 = 1000;
const UDP_LEN: usize = 8;

/// A router of this law; with `share`, one with classes.
fn load(object: &mut MaybeUninit<OpenObject>, protocol: Protocol, share: bool) -> RouterSkel<'_> {
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.law = packets::number(protocol);
    config.ifindex = 1;
    config.link_bytes = 14;
    config.share = u64::from(share);
    config.cpus = libbpf_rs::num_possible_cpus().expect("a number") as u64;
    config.rcp.max_rtt_us = 20_000_000;
    config.xcp.max_rtt_us = 4_000_000;
    let skeleton = open.load().expect("the kernel takes it");
    let link = types::fs_link { offer: OFFER, ..Default::default() };
    // SAFETY: a plain C structure.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const link).cast::<u8>(), size_of_val(&link)) };
    skeleton.maps.link_state.update(&[0; 4], bytes, MapFlags::ANY).expect("there is one");
    skeleton
}

fn run(skeleton: &RouterSkel<'_>, frame: &[u8]) -> Vec<u8> {
    let mut out = vec![0; frame.len()];
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    let input = ProgramInput {
        context_in: Some(&mut context),
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let code = skeleton.progs.fs_router.test_run(input).expect("it runs").return_value as i32;
    assert_eq!(code, -1, "others are not let at {frame:02x?}");
    out
}

/// Sum of the RTTs, us, and number of packets that RCP has counted.
fn counted(skeleton: &RouterSkel<'_>) -> [u64; 2] {
    let cpus = skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    let word = |cpu: &[u8], at: usize| u64::from_ne_bytes(cpu[8 * at..8 * at + 8].try_into().expect("eight"));
    [1, 2].map(|at| cpus.iter().map(|cpu| word(cpu, at)).sum())
}

/// How a datagram is wrapped.
#[derive(Clone, Copy, Debug)]
struct Wrapping {
    v6: bool,
    tagged: bool,
    has_checksum: bool,
    protocol: u8,
    /// Bytes of Ethernet padding.
    padding: usize,
}

/// A frame, where its payload starts, and the pseudo header of its checksum.
fn wrapped(payload: &[u8], wrapping: Wrapping) -> (Vec<u8>, usize, Vec<u8>) {
    let length = (UDP_LEN + payload.len()) as u16;
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if wrapping.tagged {
        bytes.extend([0x81, 0, 0, 42]);
    }
    let mut pseudo = Vec::new();
    if wrapping.v6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([wrapping.protocol, 64]);
        pseudo.extend([[0xfd; 16], [0xfe; 16]].concat());
    } else {
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend((20 + length).to_be_bytes());
        bytes.extend([0, 7, 0x40, 0, 64, wrapping.protocol, 0, 0]);
        pseudo.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    }
    bytes.extend(&pseudo);
    pseudo.extend([0, wrapping.protocol]);
    pseudo.extend(length.to_be_bytes());
    let mut udp =
        [[0x11, 0x51, 0xc3, 0x50], [length.to_be_bytes(), [0; 2]].concat().try_into().expect("four")]
            .concat();
    udp.extend(payload);
    if wrapping.has_checksum {
        let sum = !ones_sum(&[&pseudo, &udp]);
        udp[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
    }
    let start = bytes.len() + UDP_LEN;
    bytes.extend(udp);
    bytes.extend(vec![0xaa; wrapping.padding]);
    (bytes, start, pseudo)
}

prop_compose! {
    fn wrapping()(v6: bool, tagged: bool, has_checksum: bool, other in 0..8, padding in 0usize..4) -> Wrapping {
        Wrapping { v6, tagged, has_checksum, protocol: if other == 0 { 132 } else { 17 }, padding }
    }
}

prop_compose! {
    /// A payload that is a stamp packet, or nearly one.
    fn payload()(protocol in 0..3_usize, ids in prop::array::uniform2(vec(any::<u8>(), 0..=20)),
        value in prop_oneof![any::<u32>(), 0..2 * OFFER], rtt_us in 1..100_000_u64, behind in vec(any::<u8>(), 0..40),
        changed in prop::option::of((0usize..60, any::<u8>())), cut in prop::option::of(0usize..60)) -> Vec<u8>
    {
        let stamp = option::Stamp { value, rtt: MicrosFloat::from_micros(rtt_us), last: 7 };
        let mut bytes = Vec::new();
        Packet { protocol: Protocol::ALL[protocol], dcid: &ids[0], scid: &ids[1], stamp }.append(&mut bytes);
        bytes.extend(behind);
        if let Some((at, to)) = changed && let Some(byte) = bytes.get_mut(at) {
            *byte = to;
        }
        bytes.truncate(cut.unwrap_or(bytes.len()));
        bytes
    }
}

/// The router writes what the codec writes: the lower of its rate and the packet's. A checksum stays as right as it was, and
/// an absent one stays absent. Nothing else changes, and nothing in other datagrams.
#[test]
fn stamp_packets_get_the_routers_rate() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, Protocol::Rcp, false);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(2000));
    let stamped = std::cell::Cell::new(0);
    let case = |(payload, wrapping): (Vec<u8>, Wrapping)| {
        let (frame, start, pseudo) = wrapped(&payload, wrapping);
        let before = counted(&skeleton);
        let out = run(&skeleton, &frame);
        let mut expected = payload.clone();
        let packet =
            Packet::parse(&payload).filter(|p| p.protocol == Protocol::Rcp && wrapping.protocol == 17);
        if packet.is_some() {
            quic_stamp::replace(&mut expected, Protocol::Rcp, |old| old.value.min(OFFER));
        }
        let end = start + payload.len();
        prop_assert_eq!(&out[start..end], &expected);
        prop_assert_eq!((&out[..start - 2], &out[end..]), (&frame[..start - 2], &frame[end..]));
        if expected == payload || !wrapping.has_checksum {
            prop_assert_eq!(&out[start - 2..start], &frame[start - 2..start]);
        } else {
            prop_assert_eq!(ones_sum(&[&pseudo, &out[start - UDP_LEN..end]]), 0xffff);
            stamped.set(stamped.get() + 1);
        }
        // The law hears of the packet's RTT, if it believes it.
        let rtt_us = packet
            .and_then(|p| p.stamp.rtt.to_micros())
            .map(u64::from)
            .filter(|us| (1..=20_000_000).contains(us));
        let after = counted(&skeleton);
        prop_assert_eq!(after[0] - before[0], rtt_us.unwrap_or(0));
        prop_assert_eq!(after[1] - before[1], u64::from(rtt_us.is_some()));
        Ok(())
    };
    runner.run(&(payload(), wrapping()), case).unwrap_or_else(|error| panic!("{error}"));
    assert!(stamped.get() > 100, "few of the cases were stamp packets: {}", stamped.get());
}

/// The fields of `fs_xcp_sums`: bytes, the sum of X, and the bytes of packets with X. They follow RCP's three.
fn counted_by_xcp(skeleton: &RouterSkel<'_>) -> [u64; 3] {
    let cpus = skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    cpus.iter().fold([0; 3], |sum, cpu| {
        // SAFETY: a plain C structure, as long as the map's value.
        let own = unsafe { std::ptr::read_unaligned(cpu.as_ptr().cast::<types::fs_sums>()) };
        let more = [own.xcp.input_bytes, own.xcp.sum_x_q4, own.xcp.x_bytes];
        [0, 1, 2].map(|at| sum[at] + more[at])
    })
}

/// A router of XCP whose pools are empty grants no increase and leaves decreases. It hears of RTT and packets in flight, and counts
/// all bytes as input.
#[test]
fn stamp_packets_get_the_feedback_of_xcp() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, Protocol::Xcp, false);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1000));
    let stamped = std::cell::Cell::new(0);
    let case = |(payload, wrapping): (Vec<u8>, Wrapping)| {
        let (frame, start, pseudo) = wrapped(&payload, wrapping);
        let before = counted_by_xcp(&skeleton);
        let out = run(&skeleton, &frame);
        let mut expected = payload.clone();
        let packet =
            Packet::parse(&payload).filter(|p| p.protocol == Protocol::Xcp && wrapping.protocol == 17);
        if packet.is_some() {
            quic_stamp::replace(&mut expected, Protocol::Xcp, |old| (old.value as i32).min(0) as u32);
        }
        let end = start + payload.len();
        prop_assert_eq!(&out[start..end], &expected);
        if expected != payload && wrapping.has_checksum {
            prop_assert_eq!(ones_sum(&[&pseudo, &out[start - UDP_LEN..end]]), 0xffff);
            stamped.set(stamped.get() + 1);
        }
        let after = counted_by_xcp(&skeleton);
        let x_q4 = packet.map_or(0, |p| {
            let rtt_us = u64::from(p.stamp.rtt.to_micros().unwrap_or(0)).min(20_000_000);
            if p.stamp.last == 0 { 0 } else { rtt_us * 16_000 / u64::from(p.stamp.last) }
        });
        let bytes = after[0] - before[0];
        prop_assert!(bytes >= payload.len() as u64 && bytes <= frame.len() as u64);
        prop_assert_eq!(after[1] - before[1], x_q4);
        prop_assert_eq!(after[2] - before[2], if x_q4 > 0 { bytes } else { 0 });
        Ok(())
    };
    runner.run(&(payload(), wrapping()), case).unwrap_or_else(|error| panic!("{error}"));
    assert!(stamped.get() > 50, "few of the cases were stamp packets: {}", stamped.get());
}

/// Bytes of the law's own class and of other traffic.
fn class_bytes(skeleton: &RouterSkel<'_>) -> [u64; 2] {
    [0u32, 1].map(|class| {
        let cpus = skeleton.maps.classes.lookup_percpu(&class.to_ne_bytes(), MapFlags::ANY);
        let bytes = |cpu: &Vec<u8>| u64::from_ne_bytes(cpu[..8].try_into().expect("eight"));
        cpus.expect("an array").expect("of two").iter().map(bytes).sum()
    })
}

/// On a shared link, RCP's stamp packets are of the own class and get its rate. XCP's are other traffic: the router leaves them
/// unchanged, and its law does not hear of them.
#[test]
fn a_shared_link_stamps_rcp_over_quic_and_leaves_xcp() {
    if skipped() {
        return;
    }
    for protocol in [Protocol::Rcp, Protocol::Xcp] {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, protocol, true);
        let is_own = protocol == Protocol::Rcp;
        for (v6, tagged, has_checksum) in [(false, false, true), (true, false, true), (false, true, false)] {
            let stamp = option::Stamp { value: 5000, rtt: MicrosFloat::from_micros(50_000), last: 50 };
            let mut payload = Vec::new();
            Packet { protocol, dcid: &[7; 8], scid: &[], stamp }.append(&mut payload);
            payload.extend([0x40; 1200]);
            let wrapping = Wrapping { v6, tagged, has_checksum, protocol: 17, padding: 0 };
            let (frame, start, _) = wrapped(&payload, wrapping);
            let (before, heard) = (class_bytes(&skeleton), counted_by_xcp(&skeleton));
            let out = run(&skeleton, &frame);
            if is_own {
                assert_eq!(Packet::parse(&out[start..]).expect("a stamp packet").stamp.value, OFFER);
            } else {
                assert_eq!(out, frame);
                assert_eq!(counted_by_xcp(&skeleton), heard);
            }
            let after = class_bytes(&skeleton);
            let (its, others) = if is_own { (0, 1) } else { (1, 0) };
            assert_eq!(after[its] - before[its], frame.len() as u64, "{protocol:?} {wrapping:?}");
            assert_eq!(after[others], before[others], "{protocol:?} {wrapping:?}");
        }
    }
}

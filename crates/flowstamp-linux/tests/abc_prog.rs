//! Runs ABC's router on constructed packets with BPF_PROG_RUN. A packet with ECT(1) stays as it is while there are tokens,
//! and gets ECT(0) otherwise, whatever its protocol. DSCP stays, the checksum of IPv4 is updated, and no other byte changes.

mod packets;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{Packet, RCP, VCP, ones_sum, skipped, stamped, wrappings};
use std::mem::{MaybeUninit, offset_of};

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
use skeleton::{RouterSkel, RouterSkelBuilder, types};

const TOKEN: i64 = 1 << 16;

/// A router of 10 MB/s with this share of accelerates and these tokens, in a bucket of five.
fn load(object: &mut MaybeUninit<OpenObject>, share_q16: u64, tokens_q16: i64) -> RouterSkel<'_> {
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    (config.law, config.ifindex, config.link_bytes) = (5, 1, 14);
    config.cpus = libbpf_rs::num_possible_cpus().expect("a number") as u64;
    config.abc = types::fs_abc_params {
        capacity_q16: 10_000_000 << 16,
        target_q16: 9_500_000 << 16,
        tolerated_bytes: 500_000,
        delta_ns: 133_000_000,
        mean_age_ns: 10_000_000,
        interval_ns: 2_000_000,
        token_limit_q16: 5 << 16,
    };
    let skeleton = open.load().expect("the kernel takes it");
    let mut link = types::fs_link { interval_ns: 2_000_000, ..Default::default() };
    (link.abc.share_q16, link.abc.tokens_q16) = (share_q16, tokens_q16);
    // SAFETY: a plain C structure.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&link).cast(), size_of::<types::fs_link>()) };
    skeleton.maps.link_state.update(&[0; 4], bytes, MapFlags::ANY).expect("there is one");
    skeleton
}

/// The packet after the program, if the kernel calls it a frame of so many segments.
fn run(skeleton: &RouterSkel<'_>, packet: &[u8], segments: u32) -> Vec<u8> {
    let mut out = vec![0; packet.len() + 64];
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    let fields = [
        (offset_of!(types::__sk_buff, gso_segs), segments),
        (offset_of!(types::__sk_buff, gso_size), 200),
        (offset_of!(types::__sk_buff, wire_len), packet.len() as u32 + (segments - 1) * 70),
    ];
    for (at, value) in fields.into_iter().filter(|_| segments > 1) {
        context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    let input = ProgramInput {
        context_in: Some(&mut context),
        data_in: Some(packet),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let output = skeleton.progs.fs_router.test_run(input).expect("runs");
    assert_eq!(output.return_value as i32, -1, "others are not let at {packet:02x?}");
    out.truncate(packet.len());
    out
}

fn tokens(skeleton: &RouterSkel<'_>) -> i64 {
    let at = offset_of!(types::fs_link, abc) + offset_of!(types::fs_abc, tokens_q16);
    let link = skeleton.maps.link_state.lookup(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    i64::from_ne_bytes(link[at..at + 8].try_into().expect("eight"))
}

/// Bytes that have come.
fn input(skeleton: &RouterSkel<'_>) -> u64 {
    let at = offset_of!(types::fs_sums, abc);
    let cpus = skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    cpus.iter().map(|bytes| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight"))).sum()
}

/// All wrappings that the kernel's headers find, each also as a packet that is not TCP's.
fn all() -> impl Iterator<Item = Packet> {
    let options = || [vec![], stamped(VCP, 7), stamped(RCP, 9)].into_iter();
    wrappings().into_iter().flat_map(move |wrapping| {
        let packets = options().map(move |options| Packet { options, ..wrapping.clone() });
        packets.flat_map(|packet| [Packet { protocol: 17, ..packet.clone() }, packet])
    })
}

#[test]
fn accelerates_become_brakes_without_tokens_and_nothing_else_changes() {
    if skipped() {
        return;
    }
    let (mut object, mut other) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let (none, full) = (load(&mut object, 0, TOKEN), load(&mut other, 1 << 16, 5 * TOKEN));
    let mut came = 0;
    for packet in all() {
        for (ecn, after) in [(0, 0), (1, 2), (2, 2), (3, 3)] {
            for dscp in [0, 1, 46, 63] {
                let packet = Packet { class: dscp << 2 | ecn, ..packet.clone() };
                let frame = packet.frame(true).bytes;
                assert_eq!(run(&full, &frame, 1), frame, "{packet:?}");
                let mut out = run(&none, &frame, 1);
                came += frame.len() as u64;
                let ip = 14 + 4 * packet.tags.len();
                if packet.extensions.is_some() {
                    assert_eq!(out[ip + 1] >> 4 & 3, after, "{packet:?}");
                    out[ip + 1] = out[ip + 1] & 0xcf | ecn << 4;
                } else {
                    assert_eq!(out[ip + 1], dscp << 2 | after, "{packet:?}");
                    let header = ip..ip + 20 + packet.ip_options.len();
                    assert_eq!(ones_sum(&[&out[header]]), 0xffff, "{packet:?}");
                    out[ip + 1] = frame[ip + 1];
                    out[ip + 10..ip + 12].copy_from_slice(&frame[ip + 10..ip + 12]);
                }
                assert_eq!(out, frame, "{packet:?}");
            }
        }
    }
    assert_eq!((tokens(&none), tokens(&full)), (TOKEN, 5 * TOKEN - TOKEN));
    assert_eq!((input(&none), input(&full)), (came, came));
}

/// Algorithm 1 with a share of 1/2, from one token: two in four packets stay. A frame of seven packets takes seven tokens.
#[test]
fn tokens_go_to_every_second_packet() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 1 << 15, TOKEN);
    let frame = Packet { class: 1, payload: 1400, ..Packet::default() }.frame(true).bytes;
    let mark = |segments| run(&skeleton, &frame, segments)[15] & 3;
    // 1.5 stays and 0.5 is left; 1 does not; 1.5 does.
    assert_eq!([1; 6].map(mark), [1, 2, 1, 2, 1, 2]);
    assert_eq!(tokens(&skeleton), TOKEN);
    assert_eq!(mark(7), 1); // 1 + 3.5 - 7
    assert_eq!(tokens(&skeleton), -5 * TOKEN / 2);
    assert_eq!([1; 8].map(mark), [2, 2, 2, 2, 2, 2, 2, 1]);
}

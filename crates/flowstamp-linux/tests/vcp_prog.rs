//! Runs VCP's router on constructed packets with BPF_PROG_RUN. In each packet with VCP's option, the ECN bits
//! rise to the link's code unless they are 00, and `t_rho` rises to the router's. DSCP stays, both checksums
//! are updated, and no other byte changes. In any other packet, whatever its ECN bits, nothing changes.

mod packets;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{Packet, RCP, VCP, XCP, number, ones_sum, skipped, stamped, wrappings};
use proptest::prelude::*;
use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
use skeleton::{RouterSkel, RouterSkelBuilder, types};

const T_RHO_US: u32 = 50_000;

/// A router whose code is `code`, of a link that is to carry 10 kB/s.
fn load(object: &mut MaybeUninit<OpenObject>, code: u8) -> RouterSkel<'_> {
    load_marking(object, code, false)
}

fn load_marking(object: &mut MaybeUninit<OpenObject>, code: u8, marks: bool) -> RouterSkel<'_> {
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.law = number(VCP);
    config.ifindex = 1;
    config.link_bytes = 14;
    config.cpus = libbpf_rs::num_possible_cpus().expect("a number") as u64;
    config.queue_interval_ns = 5_000_000;
    config.mark_others = marks.into();
    config.vcp = types::fs_vcp_params {
        target_rate_q16: 10_000 << 16,
        k_q_q32: 1 << 31,
        queue_weight_q32: 1 << 29,
        t_rho_ns: u64::from(T_RHO_US) * 1000,
        t_q_ns: 5_000_000,
        t_rho_us: T_RHO_US.into(),
    };
    let skeleton = open.load().expect("the kernel takes it");
    let mut link = types::fs_link { interval_ns: u64::from(T_RHO_US) * 1000, ..Default::default() };
    link.vcp.code = code.into();
    // SAFETY: a plain C structure.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&link).cast(), size_of::<types::fs_link>()) };
    skeleton.maps.link_state.update(&[0; 4], bytes, MapFlags::ANY).expect("there is one");
    skeleton
}

/// The packet after the program.
fn run(skeleton: &RouterSkel<'_>, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0; packet.len() + 64];
    let mut context = vec![0; size_of::<types::__sk_buff>()];
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

/// Bytes that have come.
fn input(skeleton: &RouterSkel<'_>) -> u64 {
    let at = offset_of!(types::fs_sums, vcp);
    let cpus = skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    cpus.iter().map(|bytes| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight"))).sum()
}

/// Where IP's header is in a frame of so many VLAN tags, and DSCP and ECN of it.
fn class(packet: &Packet, bytes: &[u8]) -> (usize, u8) {
    let ip = 14 + 4 * packet.tags.len();
    let class = if packet.extensions.is_some() { bytes[ip] << 4 | bytes[ip + 1] >> 4 } else { bytes[ip + 1] };
    (ip, class)
}

/// Section III-B: a router overwrites a code only with that of a higher load; and 00 is no code at all.
const RAISED: [[u8; 4]; 4] = [
    // From a packet with 00, 01, 10, 11; by a router that has not measured yet, or of low, high load, overload.
    [0, 1, 2, 3],
    [0, 1, 2, 3],
    [0, 2, 2, 3],
    [0, 3, 3, 3],
];

#[test]
fn codes_rise_whatever_the_wrapping_and_dscp_stays() {
    if skipped() {
        return;
    }
    for (code, raised) in (0..).zip(RAISED) {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, code);
        for (wrapping, offset) in wrappings().into_iter().flat_map(|w| [(w.clone(), 0), (w, 5)]) {
            for (ecn, expected) in (0..).zip(raised) {
                for dscp in [0, 1, 46, 63] {
                    for right_checksum in [true, false] {
                        for (carried, after) in [
                            (0, T_RHO_US),
                            (T_RHO_US - 1, T_RHO_US),
                            (T_RHO_US, T_RHO_US),
                            (200_000, 200_000),
                        ] {
                            let options = [vec![1; offset], stamped(VCP, carried)].concat();
                            let packet = Packet {
                                class: dscp << 2 | ecn,
                                options,
                                right_checksum,
                                ..wrapping.clone()
                            };
                            let frame = packet.frame(true);
                            let (ip, before) = class(&packet, &frame.bytes);
                            assert_eq!(before, dscp << 2 | ecn);
                            let mut out = run(&skeleton, &frame.bytes);
                            assert_eq!(class(&packet, &out).1, dscp << 2 | expected, "{packet:?}");
                            if packet.extensions.is_none() {
                                let header = ip..ip + 20 + packet.ip_options.len();
                                assert_eq!(ones_sum(&[&out[header]]), 0xffff, "{packet:?}");
                                out[ip + 10..ip + 12].copy_from_slice(&frame.bytes[ip + 10..ip + 12]);
                            }
                            // All else is as with any stamp.
                            out[ip + 1] = frame.bytes[ip + 1];
                            assert_eq!(packet.check(&frame, &out), Some(after), "{packet:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_not_vcps_passes_untouched_at_overload() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 3);
    let own = stamped(VCP, 0);
    let short = [&[253, 8], &own[2..8]].concat();
    let mut packets = vec![];
    for wrapping in wrappings() {
        // An echo is an ack's; data with it alone are those of a sender that does not obey.
        for options in
            [vec![], stamped(RCP, 5000), stamped(XCP, 5000), short.clone(), [&[254], &own[1..]].concat()]
        {
            packets.push(Packet { options, ..wrapping.clone() });
        }
    }
    for protocol in [1, 17, 47, 132] {
        packets.push(Packet { protocol, options: own.clone(), ..Packet::default() });
    }
    packets.push(Packet { fragment: 0x00ff, options: own.clone(), ..Packet::default() });
    packets.push(Packet { options: [vec![8, 1], own.clone()].concat(), ..Packet::default() });
    for packet in packets {
        for class in [0, 1, 2, 3, 46 << 2 | 1, 46 << 2 | 2, 0xff] {
            let packet = Packet { class, ..packet.clone() };
            let frame = packet.frame(true).bytes;
            let before = input(&skeleton);
            assert_eq!(run(&skeleton, &frame), frame, "{packet:?}");
            assert_eq!(input(&skeleton) - before, frame.len() as u64);
        }
    }
    let arp = [&[0xff; 12][..], &[8, 6], &[3; 46]].concat();
    assert_eq!(run(&skeleton, &arp), arp);
}

/// Section VI-C: with `mark_others` overload is congestion experienced for ECN-capable packets of other protocols, and no other code
/// changes them.
#[test]
fn others_are_marked_at_overload_if_asked() {
    if skipped() {
        return;
    }
    for code in 1..=3 {
        let mut object = MaybeUninit::uninit();
        let skeleton = load_marking(&mut object, code, true);
        for extensions in [None, Some(vec![])] {
            for (ecn, marked) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
                let packet =
                    Packet { class: 46 << 2 | ecn, extensions: extensions.clone(), ..Packet::default() };
                let frame = packet.frame(true).bytes;
                let after = class(&packet, &run(&skeleton, &frame)).1;
                assert_eq!(after, 46 << 2 | if code == 3 { marked } else { ecn }, "{packet:?}");
            }
        }
    }
}

/// Section III-E.1: acks of VCP leave in the band of interactive traffic, if nobody has chosen another.
#[test]
fn acks_have_the_priority_of_interactive_traffic() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 1);
    let at = offset_of!(types::__sk_buff, priority);
    let own = stamped(VCP, 0);
    let ack = [&[253, 8], &own[2..8]].concat();
    for (options, had, has) in [(ack.clone(), 0u32, 6u32), (ack, 3, 3), (own, 0, 0), (vec![], 0, 0)] {
        let frame = Packet { options, payload: 0, ..Packet::default() }.frame(true).bytes;
        let mut context = vec![0; size_of::<types::__sk_buff>()];
        context[at..at + 4].copy_from_slice(&had.to_ne_bytes());
        let (mut after, mut out) = (context.clone(), vec![0; frame.len() + 64]);
        let input = ProgramInput {
            context_in: Some(&mut context),
            context_out: Some(&mut after),
            data_in: Some(&frame),
            data_out: Some(&mut out),
            ..ProgramInput::default()
        };
        skeleton.progs.fs_router.test_run(input).expect("runs");
        assert_eq!(after[at..at + 4], has.to_ne_bytes());
    }
}

/// The timer measures what has come: overload while more does than the link is to carry, low load when nothing does.
#[test]
fn the_code_is_that_of_the_load() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, 1);
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    let at = offset_of!(types::__sk_buff, ifindex);
    context[at..at + 4].copy_from_slice(&1u32.to_ne_bytes());
    let start =
        ProgramInput { context_in: Some(&mut context), data_in: Some(&[0; 64]), ..ProgramInput::default() };
    assert_eq!(skeleton.progs.fs_start.test_run(start).expect("runs").return_value, 0);
    let packet = Packet { class: 1, options: stamped(VCP, 0), payload: 1000, ..Packet::default() };
    let frame = packet.frame(true).bytes;
    // A kilobyte every 5 ms is 20 times what the link is to carry.
    for (sends, wanted) in [(true, 3), (false, 1)] {
        let seen = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            if sends {
                return class(&packet, &run(&skeleton, &frame)).1 == wanted;
            }
            let bytes = skeleton.maps.link_state.lookup(&[0; 4], MapFlags::LOCK).expect("an array");
            let at = offset_of!(types::fs_link, vcp) + offset_of!(types::fs_vcp, code);
            bytes.expect("of one")[at] == wanted
        });
        assert!(seen, "never {wanted}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    // Any options, with any bytes of the frame corrupted.
    #[test]
    fn arbitrary_bytes(
        options in prop::collection::vec(any::<u8>(), 0..=40),
        at in 0usize..24,
        spoilt in prop::collection::vec((0usize..120, any::<u8>()), 0..4),
        wrapping in 0usize..9,
        class in any::<u8>(),
    ) {
        if skipped() {
            return Ok(());
        }
        thread_local! {
            static LOADED: RouterSkel<'static> = load(Box::leak(Box::new(MaybeUninit::uninit())), 3);
        }
        let mut options = options;
        if options.len() >= at + 16 {
            options[at..at + 16].copy_from_slice(&stamped(VCP, 7));
        }
        let packet = Packet { class, options, ..wrappings()[wrapping].clone() };
        let mut frame = packet.frame(true).bytes;
        for (i, byte) in spoilt {
            if let Some(b) = frame.get_mut(i) {
                *b = byte;
            }
        }
        LOADED.with(|loaded| {
            let out = run(loaded, &frame);
            let changed = (0..out.len()).filter(|i| out[*i] != frame[*i]).count();
            // Stamp, TCP's checksum, ECN, IPv4's checksum.
            prop_assert!(changed <= 4 + 2 + 1 + 2, "{}", changed);
            Ok(())
        })?;
    }
}

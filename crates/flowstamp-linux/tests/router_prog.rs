//! Runs the router's program on constructed packets with BPF_PROG_RUN, and checks what it changes and that no
//! packet makes it fail.
//!
//! In each packet, only the stamp's four bytes and the checksum's two bytes may change. A right checksum
//! stays right, and a wrong one stays wrong by the same amount. A rate or a delta never rises.

mod packets;

use flowstamp_wire::option::Protocol;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{Frame, Packet, RCP, VCP, XCP, number, ones_sum, skipped, stamped, wrappings};
use proptest::prelude::*;
use std::mem::{MaybeUninit, offset_of};

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
use skeleton::{RouterSkel, RouterSkelBuilder, types};

/// The RCP router's rate, bytes/ms.
const OFFER: u32 = 1000;

fn load(object: &mut MaybeUninit<OpenObject>, law: Protocol, link_bytes: u64) -> RouterSkel<'_> {
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.law = number(law);
    config.ifindex = 1;
    config.link_bytes = link_bytes;
    config.cpus = libbpf_rs::num_possible_cpus().expect("a number") as u64;
    config.xcp.max_rtt_us = 4_000_000;
    config.rcp = types::fs_rcp_params {
        link_rate_q16: 12_500_000 << 16,
        target_rate_q16: 12_500_000 << 16,
        alpha_q32: 1 << 31,
        beta_q32: 1 << 31,
        mtu_bytes: 1000,
        max_interval_ns: 2_000_000,
        min_interval_ns: 1_000_000,
        max_rtt_us: 20_000_000,
        max_rtt_factor_q16: 0,
    };
    let skeleton = open.load().expect("the kernel takes it");
    let mut link = types::fs_link { offer: OFFER, ..Default::default() };
    // 1 ms between packets gives 10 kB/s, and takes nothing: deltas above that come down to it.
    link.xcp.give = types::fs_gain { mantissa: (10_000 << 26) / 16_000_000, shift: 10 };
    link.xcp.residue_pos_q16 = u64::MAX >> 4;
    link.xcp.residue_neg_q16 = u64::MAX >> 4;
    set(&skeleton, &link);
    skeleton
}

fn bytes_of<T>(value: &mut T) -> &mut [u8] {
    // SAFETY: only for the skeleton's types, which are plain C structures.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

fn set(skeleton: &RouterSkel<'_>, link: &types::fs_link) {
    skeleton
        .maps
        .link_state
        .update(&[0; 4], bytes_of(&mut link.clone()), MapFlags::ANY)
        .expect("there is one");
}

/// Bytes, microseconds and packets counted so far by RCP's router, on all CPUs.
fn counted(skeleton: &RouterSkel<'_>) -> [u64; 3] {
    let [bytes, us, packets, ..] = all_counted(skeleton);
    [bytes, us, packets]
}

/// The same, and bytes and three sums of XCP's.
fn all_counted(skeleton: &RouterSkel<'_>) -> [u64; 7] {
    let mut total = [0; 7];
    let cpus = skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    for bytes in cpus {
        for (sum, part) in total.iter_mut().zip(bytes.chunks_exact(8)) {
            *sum += u64::from_ne_bytes(part.try_into().expect("eight"));
        }
    }
    total
}

/// A packet's context with some fields; the kernel wants all else zero, padding too.
fn context(fields: &[(usize, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<types::__sk_buff>()];
    for (at, value) in fields {
        bytes[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// The packet after the program; what the kernel itself refuses before it runs (a frame without a header) is none.
fn run(skeleton: &RouterSkel<'_>, packet: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; packet.len() + 64];
    // With a context, even an empty one, the kernel knows the packet's length on the wire.
    let mut context = context(&[]);
    let input = ProgramInput {
        context_in: Some(&mut context),
        data_in: Some(packet),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    match skeleton.progs.fs_router.test_run(input) {
        Ok(output) => {
            assert_eq!(output.return_value as i32, -1, "others are not let at {packet:02x?}");
            let length = output.data.map_or(0, |d| d.len());
            out.truncate(length.max(packet.len()).min(out.len()));
            out.truncate(packet.len());
            Some(out)
        }
        Err(error) => {
            // Less than IP's header, the kernel itself refuses.
            assert!(packet.len() < 14 + 40, "{error} for {packet:02x?}");
            None
        }
    }
}

/// Properties of every packet; returns what is carried after it, if there is an option.
fn check(skeleton: &RouterSkel<'_>, packet: &Packet, ethernet: bool) -> Option<u32> {
    let frame = packet.frame(ethernet);
    let out = run(skeleton, &frame.bytes).expect("a whole packet");
    packet.check(&frame, &out)
}

#[test]
fn stamps_whatever_the_wrapping_and_wherever_the_option() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    let mut other = MaybeUninit::uninit();
    let xcp = load(&mut other, XCP, 14);
    for wrapping in wrappings() {
        for offset in 0..=24 {
            for right_checksum in [true, false] {
                for (carried, after) in [(5000, OFFER), (1000, 1000), (999, 999), (0, 0), (u32::MAX, OFFER)] {
                    let mut options = vec![1; offset];
                    options.extend(stamped(RCP, carried));
                    let packet = Packet { options, right_checksum, ..wrapping.clone() };
                    assert_eq!(check(&skeleton, &packet, true), Some(after), "{packet:?}");
                }
                for (carried, least, most) in
                    [(50_000, 9_980, 10_000), (500, 500, 500), (-7, -7, -7), (i32::MAX, 9_980, 10_000)]
                {
                    let mut options = vec![1; offset];
                    options.extend(stamped(XCP, carried as u32));
                    let packet = Packet { options, right_checksum, ..wrapping.clone() };
                    let got = check(&xcp, &packet, true).expect("an option") as i32;
                    assert!((least..=most).contains(&got), "{carried} became {got} in {packet:?}");
                }
            }
        }
    }
}

#[test]
fn behind_timestamps_and_sacks_and_on_any_segment() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9];
    for flags in [0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14, 0xff] {
        for before in [&timestamps[..], &sack, &[&timestamps[..], &sack].concat()] {
            let options = [before, &stamped(RCP, 5000)].concat();
            for payload in [0, 1, 1000] {
                let packet = Packet { flags, options: options.clone(), payload, ..Packet::default() };
                assert_eq!(check(&skeleton, &packet, true), Some(OFFER), "{packet:?}");
            }
        }
    }
}

#[test]
fn what_is_not_its_own_is_counted_and_left() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    let own = stamped(RCP, 5000);
    let short = [&[253, 8], &own[2..8]].concat();
    let mut packets = vec![];
    for options in [vec![], stamped(XCP, 5000), short, [&[254], &own[1..]].concat()] {
        packets.push(Packet { options, ..Packet::default() });
    }
    for protocol in [1, 17, 47, 132] {
        packets.push(Packet { protocol, options: own.clone(), ..Packet::default() });
        packets.push(Packet {
            protocol,
            options: own.clone(),
            extensions: Some(vec![0]),
            ..Packet::default()
        });
    }
    // Later fragments: what is where TCP's header would be is payload.
    packets.push(Packet { fragment: 0x2001, options: own.clone(), ..Packet::default() });
    packets.push(Packet { fragment: 0x00ff, options: own.clone(), ..Packet::default() });
    packets.push(Packet {
        fragment: 8,
        options: own.clone(),
        extensions: Some(vec![44]),
        ..Packet::default()
    });
    // Three tags are one more than the program reads.
    packets.push(Packet { tags: vec![0x88a8, 0x8100, 0x8100], options: own.clone(), ..Packet::default() });
    // Malformed: lengths of 0 and 1, beyond the header, and an end before it.
    for bad in [vec![8, 0], vec![8, 1], vec![8, 200], vec![0]] {
        packets.push(Packet { options: [bad, own.clone()].concat(), ..Packet::default() });
    }
    for packet in packets {
        let frame = packet.frame(true);
        let before = counted(&skeleton);
        let out = run(&skeleton, &frame.bytes).expect("a whole packet");
        assert_eq!(out, frame.bytes, "{packet:?}");
        let after = counted(&skeleton);
        assert_eq!(after[0] - before[0], frame.bytes.len() as u64, "{packet:?}");
        assert_eq!(after[1..], before[1..], "{packet:?}");
    }
    // A first fragment has the header, and more to follow.
    let first = Packet { fragment: 0x2000, options: own, ..Packet::default() };
    assert_eq!(check(&skeleton, &first, true), Some(OFFER));
}

/// RCP's header between IP and UDP is stamped, and counted with its RTT. Zero asks for as much as there is.
#[test]
fn stamps_the_shim_whatever_the_wrapping() {
    if skipped() {
        return;
    }
    let (mut object, mut other) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let (skeleton, xcp) = (load(&mut object, RCP, 14), load(&mut other, XCP, 14));
    for wrapping in wrappings() {
        for (rate, after) in [(5000, OFFER), (1000, 1000), (999, 999), (0, OFFER), (u32::MAX, OFFER)] {
            for (rtt_ms, us) in [(40u16, 40_000), (0, 0), (u16::MAX, 0)] {
                let packet = Packet { protocol: 254, ..wrapping.clone() };
                let Frame { mut bytes, tcp: at, .. } = packet.frame(true);
                bytes[at..at + 4].copy_from_slice(&u32::to_be_bytes(rate));
                bytes[at + 8..at + 10].copy_from_slice(&rtt_ms.to_be_bytes());
                let mut expected = bytes.clone();
                expected[at..at + 4].copy_from_slice(&after.to_be_bytes());
                let before = counted(&skeleton);
                assert_eq!(run(&skeleton, &bytes).expect("a whole packet"), expected, "{rate} in {packet:?}");
                let got = counted(&skeleton);
                let length = bytes.len() as u64;
                let more = [got[0] - before[0], got[1] - before[1], got[2] - before[2]];
                assert_eq!(more, [length, us, u64::from(us > 0)]);
                assert_eq!(run(&xcp, &bytes).expect("a whole packet"), bytes);
            }
        }
    }
}

/// A shim that the packet does not hold, later fragments, and another protocol.
#[test]
fn leaves_what_is_no_shim() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    for wrapping in wrappings() {
        let whole = Packet { protocol: 254, payload: 0, ..wrapping.clone() }.frame(true);
        for kept in 0..12 {
            let mut bytes = whole.bytes[..whole.tcp + kept].to_vec();
            assert_eq!(run(&skeleton, &bytes).unwrap_or_else(|| bytes.clone()), bytes, "{kept}");
            // The packet ends before its frame.
            bytes.resize(whole.bytes.len(), 0xff);
            let network = if wrapping.extensions.is_some() { 4 } else { 2 };
            let ip = 14 + 4 * wrapping.tags.len();
            let shown = whole.tcp + kept - ip - if network == 4 { 40 } else { 0 };
            bytes[ip + network..ip + network + 2].copy_from_slice(&(shown as u16).to_be_bytes());
            // Zero stands for a length that is not known yet.
            assert!(
                shown == 0 || run(&skeleton, &bytes).expect("a whole frame") == bytes,
                "{kept} {wrapping:?}"
            );
        }
    }
    for packet in [
        Packet { protocol: 254, fragment: 0x00ff, ..Packet::default() },
        Packet { protocol: 253, ..Packet::default() },
        Packet { protocol: 17, ..Packet::default() },
    ] {
        let bytes = packet.frame(true).bytes;
        assert_eq!(run(&skeleton, &bytes).expect("a whole packet"), bytes, "{packet:?}");
    }
}

/// Other laws' routers let it pass, whatever its form and place, and it is input as any other.
#[test]
fn vcps_option_passes_byte_for_byte() {
    if skipped() {
        return;
    }
    for law in [RCP, XCP] {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, law, 14);
        for (length, offset, wrapping) in [16, 8]
            .into_iter()
            .flat_map(|l| (0..=24).flat_map(move |o| wrappings().into_iter().map(move |w| (l, o, w))))
        {
            let mut form = stamped(VCP, 200_000)[..length].to_vec();
            form[1] = length as u8;
            let packet = Packet { options: [vec![1; offset], form].concat(), ..wrapping };
            let frame = packet.frame(true);
            let before = all_counted(&skeleton);
            assert_eq!(run(&skeleton, &frame.bytes).expect("a whole packet"), frame.bytes, "{packet:?}");
            let mut expected = before;
            expected[if law == RCP { 0 } else { 3 }] += frame.bytes.len() as u64;
            assert_eq!(all_counted(&skeleton), expected, "{packet:?}");
        }
    }
}

/// An option's length leads far beyond the packet; counted in few bits, that would be back among the headers, where an
/// IPv6 extension header has what looks like a stamp.
#[test]
fn lengths_do_not_wrap_around() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    for length in 2..=255 {
        let packet =
            Packet { options: [8, length, 0, 0].repeat(8), extensions: Some(vec![]), ..Packet::default() };
        let mut frame = packet.frame(true).bytes;
        let mut extension = vec![6, 30, 1, 242];
        while extension.len() < 248 - 16 {
            extension.extend(stamped(RCP, 5000));
        }
        extension.resize(248, 0);
        let payload = (frame.len() - 54 + extension.len()) as u16;
        frame[18..20].copy_from_slice(&payload.to_be_bytes());
        frame[20] = 60;
        frame.splice(54..54, extension);
        assert_eq!(run(&skeleton, &frame).expect("a whole packet"), frame, "{length}");
    }
}

#[test]
fn counts_bytes_and_rtts() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    // The longest are not believed, zero and all ones say that there is none.
    for (rtt, us) in [
        ([0x4c, 0x35], Some(0xc35 << 4)),
        ([0, 0], None),
        ([0xff, 0xff], None),
        ([0, 10], Some(10)),
        ([0xff, 0xfe], None),
    ] {
        let mut options = stamped(RCP, 500);
        options[12..14].copy_from_slice(&rtt);
        let packet = Packet { options, ..Packet::default() };
        let before = counted(&skeleton);
        check(&skeleton, &packet, true);
        let after = counted(&skeleton);
        let length = packet.frame(true).bytes.len() as u64;
        assert_eq!(after[0] - before[0], length);
        assert_eq!(after[1] - before[1], us.unwrap_or(0));
        assert_eq!(after[2] - before[2], u64::from(us.is_some()));
    }
}

/// A law that is told nothing of the path takes the first packets' RTT for its average, and one that is told keeps what it has.
#[test]
fn the_first_rtt_is_the_packets() {
    if skipped() {
        return;
    }
    for law in [RCP, XCP] {
        for told_ns in [0, 200_000_000_u64] {
            let mut object = MaybeUninit::uninit();
            let skeleton = load(&mut object, law, 14);
            let mut link = types::fs_link { offer: OFFER, interval_ns: 1_000_000, ..Default::default() };
            link.rcp.rate_q16 = 1_000_000 << 16;
            link.rcp.avg_rtt_q8 = told_ns << 8;
            link.xcp.avg_rtt_q8 = told_ns << 8;
            set(&skeleton, &link);
            let avg_rtt_ns = || {
                let bytes = skeleton.maps.link_state.lookup(&[0; 4], MapFlags::LOCK).expect("an array");
                let mut link = types::fs_link::default();
                bytes_of(&mut link).copy_from_slice(&bytes.expect("of one"));
                (link.decisions, if law == RCP { link.rcp.avg_rtt_q8 } else { link.xcp.avg_rtt_q8 } >> 8)
            };
            let mut context = context(&[(offset_of!(types::__sk_buff, ifindex), 1)]);
            let input = ProgramInput {
                context_in: Some(&mut context),
                data_in: Some(&[0; 64]),
                ..ProgramInput::default()
            };
            assert_eq!(skeleton.progs.fs_start.test_run(input).expect("runs").return_value, 0);
            let decided = |more: u64| {
                let until = avg_rtt_ns().0 + more;
                for _ in 0..1000 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    if avg_rtt_ns().0 >= until {
                        return;
                    }
                }
                panic!("the timer does not run");
            };
            decided(2);
            assert_eq!(avg_rtt_ns().1, told_ns, "nothing has come");
            // Its RTT is 50 ms.
            let packet = Packet { options: stamped(law, 500), ..Packet::default() };
            check(&skeleton, &packet, true);
            decided(2);
            let rtt_ns = 50_000_000_u64;
            match (law, told_ns) {
                // XCP's is the mean of the last interval that had any. Within a nanosecond: bpf/laws.h.
                (_, 0) | (XCP, _) => assert!(avg_rtt_ns().1.abs_diff(rtt_ns) <= 1, "{:?}", avg_rtt_ns()),
                _ => assert!(avg_rtt_ns().1 < told_ns && avg_rtt_ns().1 > rtt_ns),
            }
        }
    }
}

#[test]
fn a_large_frame_counts_as_the_packets_it_becomes() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 14);
    let packet = Packet { options: stamped(RCP, 500), payload: 1400, ..Packet::default() };
    let frame = packet.frame(true).bytes;
    let mut context = context(&[
        (offset_of!(types::__sk_buff, gso_segs), 7),
        (offset_of!(types::__sk_buff, gso_size), 200),
        (offset_of!(types::__sk_buff, wire_len), frame.len() as u32 + 6 * 70),
    ]);
    let input =
        ProgramInput { context_in: Some(&mut context), data_in: Some(&frame), ..ProgramInput::default() };
    skeleton.progs.fs_router.test_run(input).expect("runs");
    assert_eq!(counted(&skeleton), [frame.len() as u64 + 420, 7 * (0xc35 << 4), 7]);
}

#[test]
fn nothing_fails_however_short() {
    if skipped() {
        return;
    }
    for law in [RCP, XCP] {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, law, 14);
        for wrapping in wrappings() {
            let packet = Packet { options: [vec![1, 1, 1], stamped(law, 50_000)].concat(), ..wrapping };
            let frame = packet.frame(true);
            for length in 14..frame.bytes.len() {
                let cut = &frame.bytes[..length];
                if let Some(out) = run(&skeleton, cut) {
                    // IP's length says that there is more, but a header that is whole may be stamped.
                    let whole = length >= frame.tcp + 20 + packet.options.len();
                    assert!(out == cut || whole, "{length} of {packet:?}");
                }
            }
        }
    }
}

#[test]
fn frames_without_a_link_header() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    // BPF_PROG_RUN always has Ethernet's: only that nothing is found and nothing fails can be seen here.
    let skeleton = load(&mut object, RCP, 0);
    let packet = Packet { options: stamped(RCP, 5000), ..Packet::default() };
    let frame = packet.frame(true);
    assert_eq!(run(&skeleton, &frame.bytes).expect("a whole packet"), frame.bytes);
}

/// A router with classes.
fn load_shared(object: &mut MaybeUninit<OpenObject>, law: Protocol) -> RouterSkel<'_> {
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.law = number(law);
    config.ifindex = 1;
    config.link_bytes = 14;
    config.cpus = 1;
    config.share = 1;
    config.xcp.max_rtt_us = 4_000_000;
    config.rcp.max_rtt_us = 20_000_000;
    let skeleton = open.load().expect("the kernel takes it");
    set(&skeleton, &types::fs_link { offer: OFFER, ..Default::default() });
    skeleton
}

/// Bytes, packets compared and packets found of each class.
fn classes(skeleton: &RouterSkel<'_>) -> [[u64; 3]; 2] {
    [0u32, 1].map(|class| {
        let cpus = skeleton.maps.classes.lookup_percpu(&class.to_ne_bytes(), MapFlags::ANY);
        let mut total = [0; 3];
        for bytes in cpus.expect("an array").expect("of two") {
            for (sum, part) in total.iter_mut().zip(bytes.chunks_exact(8)) {
                *sum += u64::from_ne_bytes(part.try_into().expect("eight"));
            }
        }
        total
    })
}

/// Where the program puts the frame: the class's handle.
fn class_of(skeleton: &RouterSkel<'_>, frame: &[u8], fields: &[(usize, u32)]) -> u32 {
    let mut context = context(fields);
    let mut after = context.clone();
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut after),
        data_in: Some(frame),
        ..ProgramInput::default()
    };
    skeleton.progs.fs_router.test_run(input).expect("runs");
    let at = offset_of!(types::__sk_buff, priority);
    u32::from_ne_bytes(after[at..at + 4].try_into().expect("four"))
}

const OWN_CLASS: u32 = 0x4653_0001;
const OTHER_CLASS: u32 = 0x4653_0002;

#[test]
fn what_carries_the_law_is_a_class_of_its_own() {
    if skipped() {
        return;
    }
    for law in [RCP, XCP, VCP] {
        let mut object = MaybeUninit::uninit();
        let skeleton = load_shared(&mut object, law);
        let (long, foreign) = (stamped(law, 500), stamped(if law == RCP { XCP } else { RCP }, 500));
        let short = [&[253, 8], &long[2..8]].concat();
        let sacks = [&[1, 1, 5, 18][..], &[7; 16]].concat();
        let mut expected = [0u64; 2];
        for wrapping in wrappings() {
            for (options, payload, flags, own) in [
                (long.clone(), 100, 0x10, true),
                (long.clone(), 0, 0x02, true),
                (long.clone(), 0, 0x12, true),
                ([vec![1], long.clone()].concat(), 0, 0x11, true),
                // An ack's echo alone.
                (short.clone(), 0, 0x10, true),
                ([sacks.clone(), short.clone()].concat(), 0, 0x10, true),
                ([vec![1, 1], short.clone()].concat(), 0, 0x10, true),
                // Data with an echo alone: its sender does not obey.
                (short.clone(), 100, 0x18, false),
                ([vec![1, 1], short.clone()].concat(), 1, 0x10, false),
                (vec![], 100, 0x10, false),
                (vec![], 0, 0x10, false),
                (foreign.clone(), 100, 0x10, false),
                // Neither form's length.
                ([&[253, 12], &long[2..12]].concat(), 0, 0x10, false),
            ] {
                let packet = Packet { options, payload, flags, ..wrapping.clone() };
                let frame = packet.frame(true).bytes;
                let before = classes(&skeleton);
                let class = class_of(&skeleton, &frame, &[]);
                assert_eq!(class, if own { OWN_CLASS } else { OTHER_CLASS }, "{packet:?}");
                let after = classes(&skeleton);
                let (mine, theirs) = if own { (0, 1) } else { (1, 0) };
                assert_eq!(after[mine][0] - before[mine][0], frame.len() as u64, "{packet:?}");
                assert_eq!(after[theirs], before[theirs], "{packet:?}");
                expected[mine] += frame.len() as u64;
            }
        }
        // The law sees its own class alone.
        let cpus =
            skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
        let at = match law {
            RCP => offset_of!(types::fs_sums, rcp),
            XCP => offset_of!(types::fs_sums, xcp),
            _ => offset_of!(types::fs_sums, vcp),
        };
        let input: u64 =
            cpus.iter().map(|b| u64::from_ne_bytes(b[at..at + 8].try_into().expect("eight"))).sum();
        assert_eq!(input, expected[0]);
    }
}

#[test]
fn a_frame_of_any_kind_has_a_class_and_a_priority_of_its_own_has_none() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load_shared(&mut object, RCP);
    let own = Packet { options: stamped(RCP, 500), ..Packet::default() };
    let priority = offset_of!(types::__sk_buff, priority);
    // No request of an application gets the own class, or skips the classes.
    for asked in [0, 6, 0x4653_0000, OWN_CLASS, 0x4653_00ff, u32::MAX] {
        let udp = Packet { protocol: 17, ..own.clone() }.frame(true).bytes;
        assert_eq!(class_of(&skeleton, &udp, &[(priority, asked)]), OTHER_CLASS);
        assert_eq!(class_of(&skeleton, &own.frame(true).bytes, &[(priority, asked)]), OWN_CLASS);
    }
    let later = Packet { fragment: 0x2001, ..own };
    assert_eq!(class_of(&skeleton, &later.frame(true).bytes, &[]), OTHER_CLASS);
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
    assert_eq!(class_of(&skeleton, &arp, &[]), OTHER_CLASS);
}

#[test]
fn a_shared_link_stamps_as_any() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load_shared(&mut object, RCP);
    for wrapping in wrappings() {
        let packet = Packet { options: stamped(RCP, 5000), ..wrapping };
        assert_eq!(check(&skeleton, &packet, true), Some(OFFER), "{packet:?}");
    }
}

#[test]
fn flows_are_counted_by_packets() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load_shared(&mut object, RCP);
    // Ten flows in turn, told apart by their ports.
    let mut frame = Packet { options: stamped(RCP, 500), ..Packet::default() }.frame(true).bytes;
    for at in 0..80_000u32 {
        frame[34..36].copy_from_slice(&(5000 + (at % 10) as u16).to_be_bytes());
        class_of(&skeleton, &frame, &[]);
    }
    let [_, compared, found] = classes(&skeleton)[0];
    assert_eq!(compared, 79_999);
    let flows = compared as f64 / found as f64;
    // Hits are binomial with a probability of 1/10: five standard errors of 10 sqrt(0.9 / (0.1 80,000)).
    assert!((9.47..10.53).contains(&flows), "{flows}");
    // A segmentation-offload frame is as many packets as it becomes, up to 64.
    for (segments, counted) in [(7, 7), (64, 64), (1000, 64)] {
        let before = classes(&skeleton)[0][1];
        let fields = [
            (offset_of!(types::__sk_buff, gso_segs), segments),
            (offset_of!(types::__sk_buff, gso_size), 20),
            (offset_of!(types::__sk_buff, wire_len), frame.len() as u32),
        ];
        class_of(&skeleton, &frame, &fields);
        assert_eq!(classes(&skeleton)[0][1] - before, counted);
    }
}

#[test]
fn xcp_never_gives_more_than_the_pool() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, XCP, 14);
    let mut link = types::fs_link::default();
    link.xcp.give = types::fs_gain { mantissa: (10_000 << 26) / 16_000_000, shift: 10 };
    link.xcp.residue_pos_q16 = 35_000 << 16;
    set(&skeleton, &link);
    let packet = Packet { options: stamped(XCP, 1_000_000), ..Packet::default() };
    let given: Vec<u32> = (0..6).map(|_| check(&skeleton, &packet, true).expect("an option")).collect();
    let sum: u32 = given.iter().sum();
    assert!((34_990..=35_000).contains(&sum) && given[4..] == [0, 0], "{given:?}");
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
        xcp in any::<bool>(),
    ) {
        if skipped() {
            return Ok(());
        }
        thread_local! {
            static LOADED: [RouterSkel<'static>; 2] = [RCP, XCP].map(|law| load(Box::leak(Box::new(MaybeUninit::uninit())), law, 14));
        }
        let mut options = options;
        let stamp = stamped(if xcp { XCP } else { RCP }, 2_000_000_000);
        if options.len() >= at + 16 {
            options[at..at + 16].copy_from_slice(&stamp);
        }
        let packet = Packet { options, ..wrappings()[wrapping].clone() };
        let mut frame = packet.frame(true);
        for (i, byte) in spoilt {
            if let Some(b) = frame.bytes.get_mut(i) {
                *b = byte;
            }
        }
        LOADED.with(|loaded| {
            let out = run(&loaded[usize::from(xcp)], &frame.bytes).expect("a whole packet");
            let changed: Vec<usize> = (0..out.len()).filter(|i| out[*i] != frame.bytes[*i]).collect();
            prop_assert!(changed.len() <= 6, "{:?}", changed);
            prop_assert_eq!(ones_sum(&[&frame.bytes[14..]]) % 0xffff, ones_sum(&[&out[14..]]) % 0xffff);
            Ok(())
        })?;
    }
}

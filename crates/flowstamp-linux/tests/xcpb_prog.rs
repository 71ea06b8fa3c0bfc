//! Runs XCP-b's router on constructed packets with BPF_PROG_RUN. Its packets are XCP's, and router_prog.rs
//! tests what may change in them. This file tests its additional counters, and that its law runs on them.

mod packets;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{Packet, RCP, XCP, skipped, stamped, wrappings};
use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
use skeleton::{RouterSkel, RouterSkelBuilder, types};

/// FS_XCP_B of bpf/router.bpf.c.
const XCP_B: u64 = 4;
/// chi Qmax for Qmax 64 kB: 64,000 / (5 - 0.4 - 0.2263).
const MOST: f64 = 64_000.0 / 4.3737;

/// A router of the paper's numbers, on the loopback, which has no queue.
fn load(object: &mut MaybeUninit<OpenObject>) -> RouterSkel<'_> {
    let q32 = |v: f64| (v * 4_294_967_296.0) as u64;
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.law = XCP_B;
    config.ifindex = 1;
    config.link_bytes = 14;
    config.cpus = libbpf_rs::num_possible_cpus().expect("a number") as u64;
    config.xcp = types::fs_xcp_params {
        alpha_q32: q32(0.4),
        beta_q32: q32(0.2263),
        gamma_q32: q32(0.1),
        min_interval_ns: 1_000_000,
        max_rtt_us: 4_000_000,
        ..Default::default()
    };
    config.xcp_b = types::fs_xcp_b_params {
        kappa_q16: 3 << 16,
        in_packets: 1,
        most_q16: (MOST * 65536.0) as u64,
        weight_q32: 1 << 30,
        rest_q32: 3 << 30,
        border_q24: 3 * 729 * 4096,
        ..Default::default()
    };
    let skeleton = open.load().expect("the kernel takes it");
    let mut link = types::fs_link { interval_ns: 1_000_000, ..Default::default() };
    link.xcp_b.each_q16 = 1 << 16;
    link.xcp_b.mean_packet_q16 = 1514 << 16;
    link.xcp_b.under_used = 1;
    set(&skeleton, &link);
    skeleton
}

fn set(skeleton: &RouterSkel<'_>, link: &types::fs_link) {
    // SAFETY: a plain C structure.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(link).cast(), size_of::<types::fs_link>()) };
    skeleton.maps.link_state.update(&[0; 4], bytes, MapFlags::ANY).expect("there is one");
}

fn state(skeleton: &RouterSkel<'_>) -> types::fs_link {
    let bytes = skeleton.maps.link_state.lookup(&[0; 4], MapFlags::LOCK).expect("an array").expect("of one");
    // SAFETY: a plain C structure, of the length that the map has.
    unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
}

/// Frames and packets that have come.
fn counted(skeleton: &RouterSkel<'_>) -> [u64; 2] {
    let at = offset_of!(types::fs_sums, xcp_b);
    let cpus = skeleton.maps.sums.lookup_percpu(&[0; 4], MapFlags::ANY).expect("an array").expect("of one");
    [at, at + 8]
        .map(|at| cpus.iter().map(|b| u64::from_ne_bytes(b[at..at + 8].try_into().expect("eight"))).sum())
}

/// The packet after the program, with `fields` in its context.
fn run(skeleton: &RouterSkel<'_>, packet: &[u8], fields: &[(usize, u32)]) -> Vec<u8> {
    let mut out = vec![0; packet.len() + 64];
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    for (at, value) in fields {
        context[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
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

#[test]
fn packets_of_xcp_are_counted_and_stamped_and_no_others() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    let mut link = state(&skeleton);
    // 1 ms between packets gives 10 kB/s, and takes nothing: deltas above that come down to it.
    link.xcp.give = types::fs_gain { mantissa: (10_000 << 26) / 16_000_000, shift: 10 };
    link.xcp.residue_pos_q16 = u64::MAX >> 4;
    set(&skeleton, &link);
    let mut came = 0;
    for wrapping in wrappings() {
        for (options, after) in [
            (stamped(XCP, 50_000), Some(9999)),
            (stamped(XCP, 500), Some(500)),
            (stamped(XCP, -7i32 as u32), Some(-7i32 as u32)),
            (stamped(RCP, 50_000), Some(50_000)),
            (vec![], None),
        ] {
            let packet = Packet { options, ..wrapping.clone() };
            let frame = packet.frame(true);
            let out = run(&skeleton, &frame.bytes, &[]);
            assert_eq!(packet.check(&frame, &out), after, "{packet:?}");
            came += 1;
            assert_eq!(counted(&skeleton), [came, came]);
        }
    }
    // A segmentation-offload frame is one that becomes seven.
    let frame = Packet { options: stamped(XCP, 500), payload: 1400, ..Packet::default() }.frame(true).bytes;
    let fields = [
        (offset_of!(types::__sk_buff, gso_segs), 7),
        (offset_of!(types::__sk_buff, gso_size), 200),
        (offset_of!(types::__sk_buff, wire_len), frame.len() as u32 + 6 * 70),
    ];
    run(&skeleton, &frame, &fields);
    assert_eq!(counted(&skeleton), [came + 1, came + 7]);
}

/// Equation 7, with the packets' RTT of 50 ms: what the law asks for, and what its packets then get of it.
#[test]
fn an_idle_link_gives_chi_q_max_in_a_round_trip() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object);
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    let at = offset_of!(types::__sk_buff, ifindex);
    context[at..at + 4].copy_from_slice(&1u32.to_ne_bytes());
    let input =
        ProgramInput { context_in: Some(&mut context), data_in: Some(&[0; 64]), ..ProgramInput::default() };
    assert_eq!(skeleton.progs.fs_start.test_run(input).expect("runs").return_value, 0);
    let packet = Packet { options: stamped(XCP, 2_000_000_000), ..Packet::default() };
    let frame = packet.frame(true);
    let send = || packet.check(&frame, &run(&skeleton, &frame.bytes, &[])).expect("an option") as i32;
    // The first RTT sets d and gives nothing; the packets of the second interval say among how many it is divided.
    let mut given = Vec::new();
    let known = || state(&skeleton).xcp.avg_rtt_q8 > 0;
    for _ in 0..400 {
        given.push(send());
        std::thread::sleep(Duration::from_millis(5));
        if known() && given.last() > Some(&0) {
            break;
        }
    }
    let link = state(&skeleton);
    let asked = link.xcp.aggregate_q16 as f64 / 65536.0;
    assert_eq!((link.xcp_b.under_used, link.queue_bytes), (1, 0));
    // The RTT is within a nanosecond (bpf/laws.h).
    assert!((asked / (MOST / 0.05) - 1.0).abs() < 1e-6, "{asked}");
    // Nothing while nothing was known; then a part, and never more than there is.
    assert_eq!(given[0], 0);
    let last = *given.last().expect("some");
    assert!(last > 0 && f64::from(last) <= asked * 1.1, "{given:?}");
}

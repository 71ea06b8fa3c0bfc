//! Runs the police's program on constructed packets with BPF_PROG_RUN, and checks what it changes and which
//! flows it isolates.

mod packets;

use flowstamp_wire::option::Protocol;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{Packet, RCP, XCP, skipped, stamped, wrappings};
use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/police.skel.rs"));
}
use skeleton::{PoliceSkel, PoliceSkelBuilder, types};

const NEXT: i32 = -1;
const DROP: i32 = 2;
/// Constants of bpf/police.h.
const WATCH: u64 = 0;
const HOLD: u64 = 1;
const TELL: u64 = 3;
const ISOLATE: u64 = 5;
/// Where the RTT is in an option, and one of 2 s there.
const AT_RTT: usize = 12;
const RTT_2_S: [u8; 2] = (9u16 << 12 | 3906).to_be_bytes();
const RTT_10_MS: [u8; 2] = (2u16 << 12 | 2500).to_be_bytes();

fn load(object: &mut MaybeUninit<OpenObject>, law: Protocol, class: u64) -> PoliceSkel<'_> {
    let mut open = PoliceSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.exid = u16::from_be_bytes(law.identifier()).into();
    config.link_bytes = 14;
    config.class = class;
    config.params = types::fs_police_params { heavy: 10_000, retest_ns: 1, isolate_ns: 1 << 40 };
    open.load().expect("the kernel takes it")
}

/// Its verdict on a frame, the frame after it, and the frame's priority.
fn run(skeleton: &PoliceSkel<'_>, frame: &[u8]) -> (i32, Vec<u8>, u32) {
    run_program(&skeleton.progs.fs_police, frame)
}

/// The verdict of the program before the router.
fn gate(skeleton: &PoliceSkel<'_>, frame: &[u8]) -> (i32, Vec<u8>, u32) {
    run_program(&skeleton.progs.fs_gate, frame)
}

fn run_program(program: &libbpf_rs::ProgramMut<'_>, frame: &[u8]) -> (i32, Vec<u8>, u32) {
    let mut out = vec![0; frame.len()];
    let mut context = [0; size_of::<types::__sk_buff>()];
    let mut after = context;
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut after),
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let code = program.test_run(input).expect("it runs").return_value as i32;
    let at = offset_of!(types::__sk_buff, priority);
    (code, out, u32::from_ne_bytes(after[at..at + 4].try_into().expect("four")))
}

/// Its state of the only flow.
fn flow(skeleton: &PoliceSkel<'_>) -> Option<types::fs_police_flow> {
    let key = skeleton.maps.flows.keys().next()?;
    let bytes = skeleton.maps.flows.lookup(&key, MapFlags::ANY).expect("a hash")?;
    // SAFETY: a value of that map is of this type, of plain integers.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// CLOCK_MONOTONIC, which is the program's.
fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// All flows that it has seen are so from now on, for long.
fn put(skeleton: &PoliceSkel<'_>, phase: u64, rate: u64) {
    let now = now().as_nanos() as u64;
    let state = types::fs_police_flow {
        phase,
        since_ns: now,
        until_ns: now + (1 << 40),
        tokens_ns: now,
        round_ns: 3906 * 512 * 1000, // RTT_2_S
        rate,
        ..Default::default()
    };
    // SAFETY: plain integers.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(&state).cast(), size_of::<types::fs_police_flow>())
    };
    for key in skeleton.maps.flows.keys() {
        skeleton.maps.flows.update(&key, bytes, MapFlags::EXIST).expect("it is there");
    }
}

/// Every wrapping, every place of the option, and checksums that are right and wrong.
fn all(law: Protocol, carried: u32) -> impl Iterator<Item = Packet> {
    let mut stamp = stamped(law, carried);
    stamp[AT_RTT..AT_RTT + 2].copy_from_slice(&RTT_2_S);
    let places = (0..=24).flat_map(|offset| [(offset, true), (offset, false)]);
    places.flat_map(move |(offset, right_checksum)| {
        let options = [vec![1; offset], stamp.clone()].concat();
        wrappings().into_iter().map(move |w| Packet { options: options.clone(), right_checksum, ..w })
    })
}

#[test]
fn a_flow_under_test_is_told_less_and_nothing_else_changes() {
    if skipped() {
        return;
    }
    // Bytes/ms: half of 2 MB/s, and never more than came.
    let rcp =
        [5000, 1001, 1000, 999, 0, u32::MAX].map(|carried: u32| (RCP, TELL, carried, carried.min(1000)));
    // Bytes/s: none while the rate is held; half of a packet for each round trip, here a quarter of its bytes, while it is to halve.
    let held = [500, 0, -7, i32::MIN].map(|carried: i32| (XCP, HOLD, carried as u32, carried.min(0) as u32));
    let left = [(RCP, WATCH, 5000, 5000), (XCP, WATCH, 500, 500)];
    for (law, phase, carried, after) in rcp.into_iter().chain(held).chain(left) {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, law, 0);
        for packet in all(law, carried) {
            let frame = packet.frame(true);
            // The first makes the flow known.
            run(&skeleton, &frame.bytes);
            put(&skeleton, phase, 2_000_000);
            let (code, out, _) = run(&skeleton, &frame.bytes);
            assert_eq!((code, packet.check(&frame, &out)), (NEXT, Some(after)), "{packet:?}");
        }
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, XCP, 0);
    for (carried, packet) in [0, -1_000_000].into_iter().flat_map(|c| all(XCP, c as u32).map(move |p| (c, p)))
    {
        let frame = packet.frame(true);
        run(&skeleton, &frame.bytes);
        put(&skeleton, TELL, 2_000_000);
        let (code, out, _) = run(&skeleton, &frame.bytes);
        let got = packet.check(&frame, &out).expect("an option") as i32;
        // An RTT of 3906 x 512 us is 0.006% short of 2 s.
        let quarter = -(frame.bytes.len() as i32 / 4);
        assert!(
            code == NEXT
                && if carried == 0 { (quarter - 2..=quarter).contains(&got) } else { got == carried },
            "{carried} became {got} in {packet:?}"
        );
    }
}

#[test]
fn what_is_isolated_is_dropped_or_put_into_its_class() {
    if skipped() {
        return;
    }
    for law in [RCP, XCP] {
        for class in [0, 0x1_0020] {
            let mut object = MaybeUninit::uninit();
            let skeleton = load(&mut object, law, class);
            for packet in all(law, 5000) {
                let frame = packet.frame(true);
                run(&skeleton, &frame.bytes);
                put(&skeleton, WATCH, 0);
                assert_eq!(gate(&skeleton, &frame.bytes), (NEXT, frame.bytes.clone(), 0), "{packet:?}");
                // Without a class there are no tokens yet.
                put(&skeleton, ISOLATE, 0);
                let (code, out, priority) = gate(&skeleton, &frame.bytes);
                let wanted = (if class == 0 { DROP } else { NEXT }, class as u32, Some(5000));
                assert_eq!((code, priority, packet.check_bytes(&frame, &out, 6)), wanted, "{packet:?}");
                if class != 0 {
                    // The router is to know of no round trip.
                    let unknown = out.windows(2).filter(|w| *w == [0xff, 0xff]).count();
                    assert!(unknown >= 1 && out != frame.bytes, "{packet:?}");
                }
                // XCP: -1 byte/s. A host that is told zero for 20 round trips takes the router for gone.
                let told = if law == XCP { u32::MAX } else { 5000 };
                let (code, after, _) = run(&skeleton, &out);
                assert_eq!((code, packet.check_bytes(&frame, &after, 6)), (NEXT, Some(told)), "{packet:?}");
            }
        }
    }
}

/// Dropped packets count for the flow's rates, as in the Rust law.
#[test]
fn dropped_packets_count_for_the_rate() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, XCP, 0);
    let packet = Packet { options: stamped(XCP, 5000), payload: 1000, ..Packet::default() };
    let frame = packet.frame(true);
    run(&skeleton, &frame.bytes);
    put(&skeleton, ISOLATE, 0);
    for _ in 0..3 {
        assert_eq!(gate(&skeleton, &frame.bytes).0, DROP);
    }
    let flow = flow(&skeleton).expect("it has been seen");
    let arrived = 3 * frame.bytes.len() as u64;
    assert_eq!((flow.held, flow.bytes, flow.last_bytes), (3, arrived, arrived));
}

/// The flow sends 2.2 MB/s whatever it is told, at a round trip of 10 ms. The watch and two tests take some 0.6 s.
#[test]
fn who_ignores_what_he_is_told_is_isolated_after_two_tests() {
    if skipped() {
        return;
    }
    for (law, carried) in [(RCP, 1400), (XCP, 500_000)] {
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, law, 0);
        let mut stamp = stamped(law, carried);
        stamp[AT_RTT..AT_RTT + 2].copy_from_slice(&RTT_10_MS);
        let packet = Packet { options: stamp, payload: 1000, ..Packet::default() };
        let frame = packet.frame(true);
        let (began, mut sent, mut told) = (now(), 0, 0);
        let isolated = loop {
            let (code, out, _) = run(&skeleton, &frame.bytes);
            let known = flow(&skeleton).expect("it has been seen");
            let got = packet.check(&frame, &out).expect("an option");
            assert!(got as i32 <= carried as i32, "{got}");
            told += u32::from(got != carried);
            if known.phase == ISOLATE {
                break known;
            }
            assert_eq!((code, known.isolations), (NEXT, 0));
            // Where the machine stands still the flow seems to obey, and is tested again.
            assert!(now() - began < Duration::from_secs(20), "{sent} packets, {} tests", known.tests);
            sent += 1;
            std::thread::sleep((Duration::from_micros(500) * sent).saturating_sub(now() - began));
        };
        assert!(isolated.tests >= 2 && isolated.failures == 2 && isolated.isolations == 1, "{law:?}");
        assert!(told > 100, "{law:?}: {told}");
        // Half of its rate, by turns.
        let codes: Vec<_> = (0..500).map(|_| gate(&skeleton, &frame.bytes).0).collect();
        assert!(codes.contains(&DROP) && codes.iter().all(|c| [NEXT, DROP].contains(c)), "{codes:?}");
    }
}

/// Forged packets in a flow's name count as another flow, unless they are in the same region of sequence numbers; the
/// flow itself is known on in its next region. Two flows of a source are tested at a time.
#[test]
fn packets_in_anothers_name_are_not_its_own() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 0);
    let packet = Packet { options: stamped(RCP, 5000), payload: 1000, ..Packet::default() };
    let frame = packet.frame(true);
    let with_sequence = |seq: u32| {
        let mut bytes = frame.bytes.clone();
        bytes[frame.tcp + 4..frame.tcp + 8].copy_from_slice(&seq.to_be_bytes());
        bytes
    };
    let region = 1u32 << 26;
    run(&skeleton, &with_sequence(10 * region));
    put(&skeleton, ISOLATE, 0);
    assert_eq!(gate(&skeleton, &with_sequence(10 * region + 1000)).0, DROP);
    // Elsewhere it is nobody known.
    assert_eq!(gate(&skeleton, &with_sequence(40 * region)).0, NEXT);
    run(&skeleton, &with_sequence(40 * region));
    assert_eq!(gate(&skeleton, &with_sequence(40 * region)).0, NEXT);
    assert_eq!(skeleton.maps.flows.keys().count(), 2);
    // The flow goes on, around the end of the numbers too.
    run(&skeleton, &with_sequence(11 * region));
    assert_eq!(gate(&skeleton, &with_sequence(11 * region)).0, DROP);
    run(&skeleton, &with_sequence(63 * region));
    put(&skeleton, ISOLATE, 0);
    run(&skeleton, &with_sequence(5));
    assert_eq!(gate(&skeleton, &with_sequence(5)).0, DROP);
}

/// Three heavy flows of one source: two are tested at once, the third waits.
#[test]
fn a_source_has_two_tests_at_a_time() {
    if skipped() {
        return;
    }
    let mut object = MaybeUninit::uninit();
    let skeleton = load(&mut object, RCP, 0);
    let mut stamp = stamped(RCP, 1);
    stamp[AT_RTT..AT_RTT + 2].copy_from_slice(&RTT_2_S);
    let packet = Packet { options: stamp, payload: 1000, ..Packet::default() };
    let frame = packet.frame(true);
    let from_port = |port: u16| {
        let mut bytes = frame.bytes.clone();
        bytes[frame.tcp..frame.tcp + 2].copy_from_slice(&port.to_be_bytes());
        bytes
    };
    let watched: Vec<_> = (1..=3).map(from_port).collect();
    watched.iter().for_each(|frame| drop(run(&skeleton, frame)));
    // Their watches end with the next packet, and were heavy.
    for key in skeleton.maps.flows.keys() {
        let bytes = skeleton.maps.flows.lookup(&key, MapFlags::ANY).expect("a hash").expect("it is there");
        // SAFETY: a value of that map is of this type, of plain integers.
        let mut state: types::fs_police_flow = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        state.until_ns = now().as_nanos() as u64;
        state.bytes = 1 << 40;
        // SAFETY: plain integers.
        let bytes = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(&state).cast(), size_of::<types::fs_police_flow>())
        };
        skeleton.maps.flows.update(&key, bytes, MapFlags::EXIST).expect("it is there");
    }
    watched.iter().for_each(|frame| drop(run(&skeleton, frame)));
    let phases: Vec<u64> = skeleton
        .maps
        .flows
        .keys()
        .map(|key| {
            let bytes =
                skeleton.maps.flows.lookup(&key, MapFlags::ANY).expect("a hash").expect("it is there");
            // SAFETY: as above.
            unsafe { std::ptr::read_unaligned::<types::fs_police_flow>(bytes.as_ptr().cast()) }.phase
        })
        .collect();
    assert_eq!(phases.iter().filter(|phase| **phase == HOLD).count(), 2, "{phases:?}");
    assert_eq!(phases.iter().filter(|phase| **phase == WATCH).count(), 1, "{phases:?}");
}

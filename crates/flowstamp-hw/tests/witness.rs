//! Every frame that leaves the router of hardware/rtl, and every register, is what the kernel's laws in C make of it. Those
//! are held against the Rust laws in crates/flowstamp-linux/tests. Frames come and go at random, and many are malformed.
//!
//! 6,000 frames per law and width; a million in all with FLOWSTAMP_NIGHTLY=1.
#![cfg(model)]
#![expect(unsafe_code, reason = "the laws are in C")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "how much was seen")]

#[path = "../../flowstamp-linux/tests/packets/finder.rs"]
mod finder;
#[path = "witness/frames.rs"]
mod frames;
#[path = "witness/kernel.rs"]
mod kernel;
#[path = "../../flowstamp-linux/tests/packets/mod.rs"]
mod packets;
#[path = "../../flowstamp-linux/tests/packets/random.rs"]
mod random;

use flowstamp_hw::model::{Law, Port};
use flowstamp_hw::{COMMIT, Registers, SNAPSHOT, at, read_long, write_long};
use flowstamp_sim::output::trace_to;
use flowstamp_sim::{Format, Simulation, load};
use kernel::{Expected, Gain, Kernel};
use random::Random;
use std::ops::ControlFlow;
use std::path::Path;

/// Frames of a batch, after which registers are compared and set anew.
const BATCH: u64 = 200;

fn frames() -> u64 {
    if std::env::var_os("FLOWSTAMP_NIGHTLY").is_some_and(|v| v == "1") { 150_000 } else { 6_000 }
}

/// Sets random decisions of the law, in the port and in the kernel.
fn decide(law: Law, random: &mut Random, port: &mut Port, kernel: &mut Kernel) {
    let mut bits = |least: usize, most: usize| {
        let bits = least + random.below(most - least + 1);
        random.below(usize::MAX) as u64 & ((1 << bits) - 1)
    };
    match law {
        Law::Rcp => {
            kernel.rate = bits(1, 32) as u32;
            port.write(at::RCP_RATE, kernel.rate);
        }
        Law::Xcp => {
            // A gain's shift in the kernel is 16 less.
            let [give, take] = [bits(24, 24), bits(24, 24)];
            let [give_shift, take_shift] = [bits(6, 6), bits(5, 5)];
            kernel.xcp.give = Gain { mantissa: give, shift: give_shift as i64 - 16 };
            kernel.xcp.take = Gain { mantissa: take, shift: take_shift as i64 - 16 };
            kernel.xcp.residue_pos_q16 = bits(10, 56);
            kernel.xcp.residue_neg_q16 = bits(10, 56);
            port.write(at::XCP_GIVE, (give_shift << 24 | give) as u32);
            port.write(at::XCP_TAKE, (take_shift << 24 | take) as u32);
            write_long(port, at::XCP_POOL_POS, kernel.xcp.residue_pos_q16);
            write_long(port, at::XCP_POOL_NEG, kernel.xcp.residue_neg_q16);
            port.write(at::CONTROL, COMMIT);
        }
        Law::Vcp => {
            kernel.code = 1 + bits(2, 2) as u32 % 3;
            kernel.any_ecn = bits(1, 1) == 1;
            kernel.t_rho_us = bits(1, 32) as u32;
            port.write(at::VCP_CODE, u32::from(kernel.any_ecn) << 2 | kernel.code);
            port.write(at::VCP_T_RHO, kernel.t_rho_us);
        }
    }
}

/// Ends the slot, and compares what it counted.
fn compare_registers(law: Law, port: &mut Port, kernel: &mut Kernel) {
    port.write(at::CONTROL, SNAPSHOT);
    assert_eq!(u64::from(port.read(at::INPUT)), kernel.rcp.input_bytes);
    match law {
        Law::Rcp => {
            let sum = kernel.rcp.sum_rtt_us;
            assert_eq!(u64::from(port.read(at::RCP_SUM_RTT)), sum.min(u32::MAX.into()));
            assert_eq!(port.read(at::OVERFLOW), if sum > u32::MAX.into() { 2 } else { 0 });
            assert_eq!(u64::from(port.read(at::RCP_RTT_PACKETS)), kernel.rcp.sum_weight);
            assert_eq!(port.read(at::RCP_RATE), kernel.rate);
        }
        Law::Xcp => {
            let sums = &kernel.xcp_sums;
            assert_eq!(u64::from(port.read(at::XCP_X_BYTES)), sums.x_bytes);
            assert_eq!(read_long(port, at::XCP_SUM_X), sums.sum_x_q4);
            let exact = (u128::from(sums.sum_x_rtt_high) << 32) + u128::from(sums.sum_x_rtt_low);
            assert_eq!(u128::from(read_long(port, at::XCP_SUM_X_RTT)), exact.min(u64::MAX.into()));
            assert_eq!(read_long(port, at::XCP_POOL_POS), kernel.xcp.residue_pos_q16);
            assert_eq!(read_long(port, at::XCP_POOL_NEG), kernel.xcp.residue_neg_q16);
        }
        Law::Vcp => {
            assert_eq!(port.read(at::VCP_CODE) & 3, kernel.code);
            assert_eq!(port.read(at::VCP_T_RHO), kernel.t_rho_us);
        }
    }
    (kernel.rcp, kernel.xcp_sums) = Default::default();
}

/// The same bytes, and checksums that are as right or as wrong as before.
fn compare(before: &[u8], after: &[u8], expected: &Expected) -> Result<(), String> {
    if after.len() != before.len() {
        return Err(format!("{} bytes became {}", before.len(), after.len()));
    }
    let is_checksum = |at: usize| expected.checksums.iter().any(|(_, field)| field.contains(&at));
    if let Some(at) = (0..after.len()).find(|at| after[*at] != expected.bytes[*at] && !is_checksum(*at)) {
        return Err(format!("byte {at} is {} instead of {}", after[at], expected.bytes[at]));
    }
    for (over, field) in &expected.checksums {
        let over = over.start..over.end.min(before.len());
        let sum = |bytes: &[u8]| packets::ones_sum(&[&bytes[over.clone()]]) % 0xffff;
        if sum(before) != sum(after) {
            return Err(format!("the checksum at {field:?} is not what it was"));
        }
    }
    if before == expected.bytes && before != after {
        return Err("a checksum changed without need".to_owned());
    }
    Ok(())
}

/// The frames of a simulated run's pcapng file. The file has their headers; zeros stand for the payload.
fn captured(law: Law) -> Vec<Vec<u8>> {
    let (router, sender) = match law {
        Law::Rcp => ("rcp", "rcp"),
        Law::Xcp => ("xcp-draft", "xcp-draft"),
        Law::Vcp => ("vcp", "vcp"),
    };
    let scenario = format!(
        "duration = '1s'
        capture = {{ links = ['bottleneck'] }}
        [dumbbell]
        rate = '30Mbps'
        rtt = '40ms'
        router = '{router}'
        [[flows]]
        name = 'there'
        law = '{sender}'
        count = 3
        [[flows]]
        name = 'back'
        law = '{sender}'
        reverse = true
        [[flows]]
        name = 'others'
        law = 'cubic'"
    );
    let loaded = load(&scenario, Format::Toml, "witness", &[], Path::new(".")).expect("a scenario");
    let results = Simulation::new(&loaded, None).expect("a network").run(&mut |_| ControlFlow::Continue(()));
    let mut file = Vec::new();
    trace_to(&results.expect("not stopped"), &mut file).expect("room");
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut frames, mut at) = (vec![], 0);
    while at < file.len() {
        if word(at) == PACKET_BLOCK {
            let (kept, whole) = (word(at + 20), word(at + 24));
            let mut frame = file[at + 28..at + 28 + kept].to_vec();
            frame.resize(whole, 0);
            frames.push(frame);
        }
        at += word(at + 4);
    }
    frames
}

/// An enhanced packet block of pcapng.
const PACKET_BLOCK: usize = 6;

#[test]
fn frames_of_a_simulated_run() {
    for (law, width) in [(Law::Rcp, 64), (Law::Xcp, 64), (Law::Vcp, 64), (Law::Rcp, 512)] {
        let mut random = Random(u64::from(width) << 8 | law as u64);
        let (mut port, mut kernel) = (Port::new(law, width), Kernel::default());
        let frames = captured(law);
        for batch in frames.chunks(BATCH as usize) {
            decide(law, &mut random, &mut port, &mut kernel);
            batch.iter().for_each(|frame| port.send(frame.clone()));
            port.drain(batch.len());
            for before in batch {
                let after = port.receive().expect("it has come out");
                let expected = kernel.packet(law, before);
                compare(before, &after, &expected).unwrap_or_else(|what| panic!("{what}: {before:02x?}"));
            }
            compare_registers(law, &mut port, &mut kernel);
        }
        println!("{law:?} {width}: {} frames of a run, {} changed", frames.len(), kernel.changed);
        assert!(kernel.changed as usize > frames.len() / 20, "{}", kernel.changed);
    }
}

fn witness(law: Law, width: u16) {
    let mut random = Random(u64::from(width) << 8 | law as u64);
    let (mut port, mut kernel) = (Port::new(law, width), Kernel::default());
    let mut seen = 0;
    while seen < frames() {
        decide(law, &mut random, &mut port, &mut kernel);
        let paces = [255, 255, 128, 30];
        port.set_pace(paces[random.below(4)], paces[random.below(4)]);
        let sent: Vec<Vec<u8>> = (0..BATCH).map(|_| frames::any(&mut random, law)).collect();
        sent.iter().for_each(|frame| port.send(frame.clone()));
        port.drain(sent.len());
        for (i, before) in sent.iter().enumerate() {
            let after = port.receive().expect("it has come out");
            let expected = kernel.packet(law, before);
            compare(before, &after, &expected)
                .unwrap_or_else(|what| panic!("frame {}: {what}: {before:02x?}", seen + i as u64));
        }
        compare_registers(law, &mut port, &mut kernel);
        seen += BATCH;
    }
    println!("{law:?} {width}: {seen} frames, {} stamps, {} changed", kernel.stamped, kernel.changed);
    assert!(kernel.changed > seen / 10, "{} of {seen}", kernel.changed);
}

#[test]
fn rcp_with_64_bits() {
    witness(Law::Rcp, 64);
}

#[test]
fn rcp_with_256_bits() {
    witness(Law::Rcp, 256);
}

#[test]
fn rcp_with_512_bits() {
    witness(Law::Rcp, 512);
}

#[test]
fn xcp_with_64_bits() {
    witness(Law::Xcp, 64);
}

#[test]
fn xcp_with_512_bits() {
    witness(Law::Xcp, 512);
}

#[test]
fn vcp_with_64_bits() {
    witness(Law::Vcp, 64);
}

#[test]
fn vcp_with_512_bits() {
    witness(Law::Vcp, 512);
}

/// Snapshots while frames pass: each frame is counted once.
#[test]
fn a_snapshot_neither_loses_nor_repeats() {
    for (law, width) in [(Law::Rcp, 64), (Law::Xcp, 512), (Law::Vcp, 64)] {
        let mut random = Random(7);
        let (mut port, mut kernel) = (Port::new(law, width), Kernel { rate: u32::MAX, ..Kernel::default() });
        port.set_pace(255, 200);
        let sent: Vec<Vec<u8>> = (0..2000).map(|_| frames::any(&mut random, law)).collect();
        for frame in &sent {
            let _ = kernel.packet(law, frame);
            port.send(frame.clone());
        }
        let (mut input, mut packets, mut x_bytes, mut is_last) = (0, 0, 0, false);
        while !is_last {
            for _ in 0..random.below(500) {
                port.cycle();
            }
            is_last = port.queued() == 0;
            if is_last {
                port.drain(sent.len());
            }
            port.write(at::CONTROL, SNAPSHOT);
            input += u64::from(port.read(at::INPUT));
            packets += u64::from(port.read(at::RCP_RTT_PACKETS));
            x_bytes += u64::from(port.read(at::XCP_X_BYTES));
        }
        assert_eq!(input, kernel.rcp.input_bytes, "{law:?}");
        match law {
            Law::Rcp => assert_eq!(packets, kernel.rcp.sum_weight),
            Law::Xcp => assert_eq!(x_bytes, kernel.xcp_sums.x_bytes),
            Law::Vcp => {}
        }
    }
}

/// A word per cycle passes whatever the frames, if the far end takes it: none is refused.
#[test]
fn a_word_passes_in_every_cycle() {
    for (law, width) in [(Law::Rcp, 64), (Law::Rcp, 256), (Law::Rcp, 512), (Law::Xcp, 64), (Law::Vcp, 512)] {
        let mut random = Random(3);
        let mut port = Port::new(law, width);
        let (mut sent, mut words) = (0, 0);
        for _ in 0..3000 {
            let frame = frames::any(&mut random, law);
            words += frame.len().div_ceil(usize::from(width / 8)) as u64;
            sent += 1;
            port.send(frame);
        }
        let (before, _) = port.cycles();
        port.drain(sent);
        let (after, refused) = port.cycles();
        let waits = after - before - words;
        println!("{law:?} {width}: {words} words in {} cycles, {refused} refused", after - before);
        assert_eq!(refused, 0);
        // The last frame's way through the router: at most 448 bytes of headers, the stages, and the cycles that `drain` adds.
        assert!(waits < 56 + 30 + 16, "{waits} cycles more than words");
    }
}

//! Runs the router's program on randomly changed packets with BPF_PROG_RUN. It writes only where an
//! independent implementation finds the stamp. Right checksums stay right and wrong ones stay wrong. It only
//! lowers values that routers may lower, and only raises those that they may raise.
//!
//! `FLOWSTAMP_FUZZ_SECONDS` sets the duration and `FLOWSTAMP_FUZZ_FROM` the first seed.

#[path = "packets/finder.rs"]
mod finder;
mod packets;
#[path = "packets/random.rs"]
mod random;

use finder::{find, find_shim};
use flowstamp_wire::option::Protocol;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use packets::{RCP, VCP, XCP, number, ones_sum, skipped, stamped, wrappings};
use random::Random;
use std::mem::MaybeUninit;

#[allow(clippy::all, clippy::pedantic, unused, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
use skeleton::{RouterSkel, RouterSkelBuilder, types};

/// A router that lowers, or raises, whatever it may.
fn load(object: &mut MaybeUninit<OpenObject>, law: Protocol) -> RouterSkel<'_> {
    let mut open = RouterSkelBuilder::default().open(object).expect("the object is whole");
    let config = &mut open.maps.rodata_data.as_deref_mut().expect("it has constants").config;
    config.law = number(law);
    config.ifindex = 1;
    config.link_bytes = 14;
    config.cpus = libbpf_rs::num_possible_cpus().expect("a number") as u64;
    config.xcp.max_rtt_us = 4_000_000;
    config.rcp.max_rtt_us = 20_000_000;
    config.vcp.t_rho_us = 200_000;
    let skeleton = open.load().expect("the kernel takes it");
    let mut link = types::fs_link { offer: 1000, ..Default::default() };
    link.xcp.take = types::fs_gain { mantissa: 1 << 20, shift: 0 };
    link.xcp.residue_neg_q16 = u64::MAX >> 4;
    link.vcp.code = 3;
    // SAFETY: a plain C structure.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(&link).cast::<u8>(), size_of::<types::fs_link>())
    };
    skeleton.maps.link_state.update(&[0; 4], bytes, MapFlags::ANY).expect("there is one");
    skeleton
}

/// Its result for a packet; none if the kernel refuses that before.
fn run(skeleton: &RouterSkel<'_>, packet: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; packet.len() + 64];
    let mut context = vec![0; size_of::<types::__sk_buff>()];
    let input = ProgramInput {
        context_in: Some(&mut context),
        data_in: Some(packet),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    match skeleton.progs.fs_router.test_run(input) {
        Ok(output) => {
            assert_eq!(output.return_value as i32, -1, "others are not let at {packet:02x?}");
            out.truncate(packet.len());
            Some(out)
        }
        Err(error) => {
            assert!(packet.len() < 14 + 40, "{error} for {packet:02x?}");
            None
        }
    }
}

/// Numbers that headers have, lengths that just fit or do not.
const LIKELY: [u8; 24] =
    [0, 1, 2, 4, 5, 6, 7, 8, 15, 16, 20, 40, 43, 44, 0x45, 0x4f, 60, 0x60, 0x81, 0x88, 0xdd, 253, 254, 255];

fn changed(seed: u64, law: Protocol) -> Vec<u8> {
    let mut random = Random(seed);
    let mut packet = wrappings()[random.below(9)].clone();
    packet.options = vec![1; random.below(25)];
    packet.options.extend(stamped(law, [0, 5, 1 << 20, 1 << 31, u32::MAX][random.below(5)]));
    packet.payload = random.below(30);
    if law == RCP && random.below(2) == 0 {
        // TCP's ports and sequence number then are the shim's rates.
        packet.protocol = 254;
    }
    let mut bytes = packet.frame(true).bytes;
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at.max(14)),
            1 => bytes.insert(at, LIKELY[random.below(LIKELY.len())]),
            2 => drop(bytes.remove(at)),
            3 => bytes[at] ^= 1 << random.below(8),
            4 => bytes[at] = random.below(256) as u8,
            _ => bytes[at] = LIKELY[random.below(LIKELY.len())],
        }
    }
    bytes
}

/// The shim's rate is lowered, or granted if it is zero, and nothing else changes.
fn check_shim(at: usize, before: &[u8], after: &[u8]) -> Result<(), String> {
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
    let (was, is) = (word(before), word(after));
    if before[..at] != after[..at] || before[at + 4..] != after[at + 4..] {
        return Err(format!("more than the rate of the shim at {at} changed"));
    }
    if is <= was || was == 0 { Ok(()) } else { Err(format!("shim: {was} became {is}")) }
}

fn check(law: Protocol, before: &[u8], after: &[u8]) -> Result<(), String> {
    if law == RCP
        && let Some(place) = find_shim(before)
    {
        return check_shim(place.option, before, after);
    }
    let Some(place) = find(before, 14, 0, law) else {
        return if before == after { Ok(()) } else { Err("changed without a stamp".to_owned()) };
    };
    let (stamp, tcp, ip) = (place.option + 8, place.tcp, place.network);
    let is_v4 = before[ip] >> 4 == 4;
    let mut may = vec![stamp..stamp + 4, tcp + 16..tcp + 18];
    if law == VCP {
        may.push(ip + 1..ip + 2);
        if is_v4 {
            may.push(ip + 10..ip + 12);
        }
    }
    if let Some(at) =
        (0..before.len()).find(|at| before[*at] != after[*at] && !may.iter().any(|r| r.contains(at)))
    {
        return Err(format!("byte {at} changed, of a stamp at {place:?}"));
    }
    let sum = |bytes: &[u8]| ones_sum(&[&bytes[tcp..]]) % 0xffff;
    if sum(before) != sum(after) {
        return Err("TCP's checksum is not what it was".to_owned());
    }
    let header = |bytes: &[u8]| ones_sum(&[&bytes[ip..tcp]]) % 0xffff;
    if is_v4 && header(before) != header(after) {
        return Err("IP's checksum is not what it was".to_owned());
    }
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes[stamp..stamp + 4].try_into().expect("four"));
    let (was, is) = (word(before), word(after));
    let ecn = |bytes: &[u8]| bytes[ip + 1] >> if is_v4 { 0 } else { 4 } & 3;
    let kept = |bytes: &[u8]| bytes[ip + 1] & !(3 << if is_v4 { 0 } else { 4 });
    let holds = match law {
        Protocol::Rcp => is <= was,
        Protocol::Xcp => is as i32 <= was as i32,
        // Codes are 1, 2 and 3; what has none is not raised.
        Protocol::Vcp => {
            is >= was && kept(before) == kept(after) && (ecn(before) == ecn(after) || ecn(before) > 0)
        }
    };
    if holds { Ok(()) } else { Err(format!("{law:?}: {was} became {is}")) }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the duration is given in seconds")]
fn mutated_packets_are_changed_where_the_stamp_is_or_not_at_all() {
    if skipped() {
        return;
    }
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seconds, from) = (number("FLOWSTAMP_FUZZ_SECONDS"), number("FLOWSTAMP_FUZZ_FROM").unwrap_or(0));
    let mut objects = [const { MaybeUninit::uninit() }; 3];
    let laws = [RCP, XCP, VCP];
    let routers: Vec<_> = objects.iter_mut().zip(laws).map(|(object, law)| load(object, law)).collect();
    let began = std::time::Instant::now();
    let (mut seen, mut stamped, mut written) = (0u64, 0u64, 0u64);
    while seconds.map_or(seen < 30_000, |s| began.elapsed().as_secs() < s) {
        let seed = from + seen;
        let of = (seen % 3) as usize;
        let before = changed(seed, laws[of]);
        seen += 1;
        let Some(after) = run(&routers[of], &before) else { continue };
        check(laws[of], &before, &after).unwrap_or_else(|what| panic!("seed {seed}: {what}: {before:02x?}"));
        let has_shim = laws[of] == RCP && find_shim(&before).is_some();
        stamped += u64::from(has_shim || find(&before, 14, 0, laws[of]).is_some());
        written += u64::from(before != after);
    }
    println!("{seen} packets from seed {from}: {stamped} with a stamp, {written} written to");
    // It looked at what it is for.
    assert!(stamped > seen / 10 && written > seen / 20, "{stamped}, {written} of {seen}");
}

//! Frames for the router: those of real hosts, shims of `flowstamp-wire`, and what may come instead.

use crate::packets::{self, stamped, wrappings};
use crate::random::Random;
use flowstamp_hw::model::Law;
use flowstamp_wire::frame::{ETHERNET_LEN, Ecn, FrameSpec, MAX_LEN};
use flowstamp_wire::option::Protocol;
use flowstamp_wire::{rcp, xcp};

pub fn protocol(law: Law) -> Protocol {
    match law {
        Law::Rcp => packets::RCP,
        Law::Xcp => packets::XCP,
        Law::Vcp => packets::VCP,
    }
}

/// A number of one of several magnitudes.
fn number(random: &mut Random) -> u32 {
    let bits = random.below(33);
    (random.below(1 << 32) as u64 & ((1u64 << bits) - 1)) as u32
}

/// A shim before TCP, as the simulator's captures have it; the payload is zeros.
fn shim(random: &mut Random, law: Law) -> Vec<u8> {
    let header = match law {
        Law::Rcp => rcp::Header {
            bottleneck_rate: rcp::BytesPerMilli::from_bits(number(random)),
            reverse_bottleneck_rate: rcp::BytesPerMilli::from_bits(number(random)),
            rtt: rcp::Millis16::from_bits(number(random) as u16),
            protocol: 6,
            // Neither the kernel nor the hardware reads it.
            weight: number(random) as u8,
        }
        .into(),
        Law::Xcp | Law::Vcp if random.below(8) == 0 => xcp::Header::minimal(number(random) as i32).into(),
        Law::Xcp | Law::Vcp => {
            let [x, rtt] = [0, 1].map(|_| xcp::Seconds28::from_bits(number(random)));
            xcp::Header::standard(x, rtt, number(random) as i32, number(random) as i32).into()
        }
    };
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][random.below(4)];
    let ip_len = (random.below(1500)) as u16;
    let spec =
        FrameSpec { shim: Some(header), ecn, ip_len, src_host: 1, dst_host: 2, ..FrameSpec::default() };
    let mut buffer = [0; MAX_LEN];
    let len = spec.write(&mut buffer);
    let mut frame = buffer[..len].to_vec();
    frame.resize(spec.wire_len() as usize, 0);
    wrap(random, frame)
}

/// The same with a VLAN tag, IP options, or in IPv6.
fn wrap(random: &mut Random, mut frame: Vec<u8>) -> Vec<u8> {
    match random.below(4) {
        0 => frame.splice(12..12, [0x81, 0, 0, 42]).for_each(drop),
        1 => {
            let words = random.below(11);
            frame.splice(ETHERNET_LEN + 20..ETHERNET_LEN + 20, vec![1; 4 * words]).for_each(drop);
            frame[ETHERNET_LEN] += words as u8;
            let total = (frame.len() - ETHERNET_LEN) as u16;
            frame[ETHERNET_LEN + 2..ETHERNET_LEN + 4].copy_from_slice(&total.to_be_bytes());
        }
        2 => {
            let (next, chain) = extensions(random, frame[ETHERNET_LEN + 9]);
            let payload = (frame.len() - ETHERNET_LEN - 20 + chain.len()) as u16;
            let mut head = vec![0x60, random.below(256) as u8, 0xab, 0xcd];
            head.extend(payload.to_be_bytes());
            head.extend([next, 64]);
            head.extend([0xfd; 32]);
            head.extend(chain);
            frame.splice(ETHERNET_LEN..ETHERNET_LEN + 20, head).for_each(drop);
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        }
        _ => {}
    }
    frame
}

/// A chain of IPv6 extension headers before `protocol`: the first one's number, and their bytes. Some are one header too
/// many, some too long, and some fragments are not the first.
fn extensions(random: &mut Random, protocol: u8) -> (u8, Vec<u8>) {
    let (mut next, mut chain) = (protocol, vec![]);
    for _ in 0..[0, 0, 1, 2, 4, 6, 7][random.below(7)] {
        let number = [0, 43, 44, 60][random.below(4)];
        let most = [1, 2, 6, 24][random.below(4)];
        let length = if number == 44 { 0 } else { random.below(most) };
        let mut header = vec![0; 8 + 8 * length];
        header[0] = next;
        // A fragment header has no length, and its second byte no meaning.
        header[1] = if number == 44 { random.below(2) as u8 } else { length as u8 };
        header[3] = if random.below(8) == 0 { 8 } else { random.below(8) as u8 };
        chain.splice(0..0, header).for_each(drop);
        next = number;
    }
    (next, chain)
}

/// The same packet in IPv6 with such headers.
fn extend(random: &mut Random, frame: &mut Vec<u8>) {
    let at = ETHERNET_LEN + 40;
    let (next, chain) = extensions(random, frame[ETHERNET_LEN + 6]);
    let payload = (frame.len() - at + chain.len()) as u16;
    frame[ETHERNET_LEN + 4..ETHERNET_LEN + 6].copy_from_slice(&payload.to_be_bytes());
    frame[ETHERNET_LEN + 6] = next;
    frame.splice(at..at, chain).for_each(drop);
}

/// Numbers that headers have, and lengths that just fit or do not.
const LIKELY: [u8; 24] =
    [0, 1, 2, 4, 5, 6, 7, 8, 15, 16, 20, 40, 43, 44, 0x45, 0x4f, 60, 0x60, 0x81, 0x88, 0xdd, 253, 254, 255];

/// A frame: with the law's option, its shim, neither, or with a few bytes changed, lost or added.
pub fn any(random: &mut Random, law: Law) -> Vec<u8> {
    let mut frame = match random.below(8) {
        0 => (0..1 + random.below(200)).map(|_| random.below(256) as u8).collect(),
        1..4 if law != Law::Vcp => shim(random, law),
        _ => {
            let mut packet = wrappings()[random.below(9)].clone();
            packet.class = random.below(256) as u8;
            packet.options = vec![1; random.below(25)];
            if random.below(3) == 0 {
                packet
                    .options
                    .splice(0..packet.options.len().min(10), [8, 10, 1, 2, 3, 4, 5, 6, 7, 8])
                    .for_each(drop);
            }
            let mut option = stamped(protocol(law), number(random));
            option[12..14].copy_from_slice(&(number(random) as u16).to_be_bytes());
            packet.options.extend(option);
            packet.options.truncate(40);
            let most = if random.below(4) == 0 { 1400 } else { 60 };
            packet.payload = random.below(most);
            let mut frame = packet.frame(true).bytes;
            if packet.extensions.as_deref() == Some(&[]) && packet.tags.is_empty() {
                extend(random, &mut frame);
            }
            frame
        }
    };
    if random.below(2) == 0 {
        for _ in 0..random.below(4) {
            change(random, &mut frame);
        }
    }
    frame
}

fn change(random: &mut Random, frame: &mut Vec<u8>) {
    // Most often among the headers.
    let most = if random.below(4) == 0 { 2000 } else { 90 };
    let at = random.below(frame.len().min(most));
    match random.below(8) {
        0 => frame.truncate(at.max(1)),
        1 => frame.insert(at, LIKELY[random.below(LIKELY.len())]),
        2 if frame.len() > 1 => drop(frame.remove(at)),
        3 => frame[at] ^= 1 << random.below(8),
        4 => frame[at] = random.below(256) as u8,
        _ => frame[at] = LIKELY[random.below(LIKELY.len())],
    }
}

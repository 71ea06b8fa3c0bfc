//! Gives any bytes to the code that reads SCONE. A router that lowers a datagram changes only the signal and the checksum, and only
//! once. A peer's transport parameters are read without a panic.

#![no_main]

use flowstamp_wire::scone::{self, Lowered, Packet, Signal};
use libfuzzer_sys::fuzz_target;

/// Bytes of a UDP header.
const UDP_LEN: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let _ = scone::parameter::is_supported(bytes);
    let Some((&[mode, advice], datagram)) = bytes.split_first_chunk::<2>() else { return };
    let Some(advice) = Signal::from_bits(advice & 0x7f) else { return };
    let mut before = datagram.to_vec();
    // Random bytes rarely have SCONE's version: half of all inputs get it.
    if mode & 1 == 1
        && let Some(head) = before.get_mut(UDP_LEN..UDP_LEN + 5)
    {
        head[0] |= 0x80;
        head[1] = head[1] & 0x80 | 0x6f;
        head[2..].copy_from_slice(&[0x7d, 0xc0, 0xfd]);
    }
    let mut after = before.clone();
    let lowered = scone::lower_in_udp(&mut after, advice);
    let parse = |bytes: &[u8]| {
        bytes.get(UDP_LEN..).and_then(|payload| {
            let packet = Packet::parse(payload).ok()?;
            let mut out = vec![0; packet.wire_len()];
            assert_eq!(packet.emit(&mut out), Ok(payload.len().min(out.len())));
            assert_eq!(out[2..], payload[2..out.len()]);
            Some((packet.signal, packet.wire_len() < payload.len()))
        })
    };
    match (lowered, parse(&before)) {
        (Lowered::From(was), Some((signal, true))) => {
            assert!(was == signal && advice < was);
            assert_eq!(parse(&after), Some((advice, true)));
            // Restoring the signal's two bytes restores the datagram and, up to the two forms of zero, its checksum.
            let has_sum = before[6..UDP_LEN] != [0, 0];
            assert_eq!(has_sum, after[6..UDP_LEN] != [0, 0]);
            after[..UDP_LEN].copy_from_slice(&before[..UDP_LEN]);
            after[UDP_LEN] = after[UDP_LEN] & 0xc0 | was.bits() >> 1;
            after[UDP_LEN + 1] = after[UDP_LEN + 1] & 0x7f | was.bits() << 7;
            assert_eq!(after, before);
        }
        (Lowered::Kept(was), Some((signal, true))) => {
            assert!(was == signal && advice >= was);
            assert_eq!(after, before);
        }
        (Lowered::NotScone, None | Some((_, false))) => assert_eq!(after, before),
        other => panic!("{other:?}"),
    }
});

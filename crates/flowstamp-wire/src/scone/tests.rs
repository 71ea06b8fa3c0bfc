use super::*;
use proptest::prelude::*;

/// Unknown (127 = 0b111111_1), DCID 01 02 03, SCID 04.
const SAMPLE: [u8; 11] = [0xff, 0xef, 0x7d, 0xc0, 0xfd, 3, 1, 2, 3, 1, 4];

fn signal(bits: u8) -> Signal {
    Signal::from_bits(bits).unwrap()
}

/// The draft's examples, and those of the scale: 20 steps are a factor of ten.
#[test]
fn rates_of_the_draft() {
    let rate = |bits| signal(bits).bits_per_sec();
    for (bits, bits_per_sec) in [
        (0, 100_000),
        (20, 1_000_000),
        (40, 10_000_000),
        (60, 100_000_000),
        (80, 1_000_000_000),
        (100, 10_000_000_000),
        (120, 100_000_000_000),
        (126, 199_526_231_496),
        // 100 kb/s times 10^(1/20) and 10^(33/20), computed with 30 digits.
        (1, 112_201),
        (33, 4_466_835),
    ] {
        assert_eq!(rate(bits), Some(bits_per_sec), "signal {bits}");
    }
    assert_eq!((rate(127), Signal::from_bits(128)), (None, None));
    let exact = |n: usize| 1e5 * 10_f64.powf(n as f64 / 20.0);
    assert!(RATES.iter().enumerate().all(|(n, rate)| (exact(n) - *rate as f64).abs() <= 1.001));
}

#[test]
fn rates_are_rounded_down() {
    assert_eq!(Signal::at_most(99_999), None);
    assert_eq!(Signal::at_most(100_000), Some(Signal::MIN));
    assert_eq!(Signal::at_most(5_000_000), Some(signal(33)));
    assert_eq!(Signal::at_most(u64::MAX), Some(Signal::MAX));
    for bits in 0..127 {
        let rate = signal(bits).bits_per_sec().unwrap();
        assert_eq!(Signal::at_most(rate), Some(signal(bits)));
        assert_eq!(Signal::at_most(rate - 1), bits.checked_sub(1).map(signal));
    }
}

#[test]
fn known_bytes() {
    let packet = Packet { signal: Signal::UNKNOWN, dcid: &[1, 2, 3], scid: &[4] };
    assert_eq!(Packet::parse(&SAMPLE), Ok(packet));
    let mut buffer = [0xaa; 13];
    assert_eq!(packet.emit(&mut buffer), Ok(11));
    assert_eq!(buffer[..11], SAMPLE);
    assert_eq!(buffer[11..], [0xaa; 2]);
    // 5 Mb/s are signal 33 = 0b010000_1; 100 kb/s are 0.
    assert!(Packet { signal: signal(33), ..packet }.emit(&mut buffer).is_ok());
    assert_eq!(buffer[..5], [0xd0, 0xef, 0x7d, 0xc0, 0xfd]);
    assert!(Packet { signal: Signal::MIN, ..packet }.emit(&mut buffer).is_ok());
    assert_eq!(buffer[..5], [0xc0, 0x6f, 0x7d, 0xc0, 0xfd]);
}

#[test]
fn errors_name_the_bad_value() {
    let text = |bytes: &[u8]| Packet::parse(bytes).unwrap_err().to_string();
    assert_eq!(text(&SAMPLE[..4]), "truncated SCONE packet: 4 bytes, must be at least 7");
    assert_eq!(text(&SAMPLE[..8]), "truncated SCONE packet: 8 bytes, must be at least 9");
    assert_eq!(text(&SAMPLE[..9]), "truncated SCONE packet: 9 bytes, must be at least 10");
    assert_eq!(text(&SAMPLE[..10]), "truncated SCONE packet: 10 bytes, must be at least 11");
    assert_eq!(
        text(&[0x40, 0x6f, 0x7d, 0xc0, 0xfd]),
        "no long header: first byte 0x40, must be 0x80 or more"
    );
    assert_eq!(
        text(&[0xc0, 0, 0, 0, 1]),
        "version 0x00000001 is not SCONE's: must be 0x6f7dc0fd or 0xef7dc0fd"
    );
    let long = [0; 256];
    let packet = Packet { signal: Signal::MIN, dcid: &long, scid: &[] };
    assert_eq!(packet.emit(&mut [0; 400]), Err(EmitError::ConnectionId { len: 256 }));
    let mut short = [0xaa; 10];
    let packet = Packet::parse(&SAMPLE).unwrap();
    assert_eq!(packet.emit(&mut short), Err(EmitError::Buffer { len: 10, needed: 11 }));
    assert_eq!(short, [0xaa; 10]);
}

#[test]
fn a_packet_alone_in_its_datagram_is_left_alone() {
    let mut payload = SAMPLE;
    assert_eq!(lower(&mut payload, Signal::MIN), Lowered::NotScone);
    assert_eq!(payload, SAMPLE);
}

#[test]
fn the_indication_is_at_the_end() {
    assert!(indicates(&[1, 2, 0xc8, 0x13]));
    assert!(!indicates(&[0xc8, 0x13, 0]) && !indicates(&[0x13]) && !indicates(&[]));
}

/// Full computation of UDP's checksum over a pseudo-header whose words add up to `pseudo`, with the field itself left out.
fn full_checksum(datagram: &[u8], pseudo: u16) -> u16 {
    let words = datagram.chunks(2).enumerate().filter(|(at, _)| 2 * at != UDP_CHECKSUM);
    let sum: u64 = words
        .map(|(_, word)| u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])))
        .sum::<u64>()
        + u64::from(pseudo);
    let result = !((0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16);
    if result == 0 { 0xffff } else { result }
}

/// A datagram with a SCONE packet, its SCID and what follows, behind a UDP header without checksum.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let id = || proptest::collection::vec(any::<u8>(), 0..=20);
    let rest = proptest::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 1..60);
    (0_u8..128, id(), id(), rest, any::<[u8; 6]>()).prop_map(|(bits, dcid, scid, rest, ports)| {
        let packet = Packet { signal: signal(bits), dcid: &dcid, scid: &scid };
        let mut datagram = [&ports[..], &[0; 2]].concat();
        datagram.resize(UDP_LEN + packet.wire_len(), 0);
        packet.emit(&mut datagram[UDP_LEN..]).unwrap();
        [datagram, rest].concat()
    })
}

proptest! {
    #[test]
    fn packets_come_out_as_they_went_in(datagram in datagrams()) {
        let packet = Packet::parse(&datagram[UDP_LEN..]).unwrap();
        let mut out = vec![0; packet.wire_len()];
        packet.emit(&mut out).unwrap();
        prop_assert_eq!(&out[..], &datagram[UDP_LEN..][..out.len()]);
    }

    /// The signal becomes the lower of the two, once; the checksum is that of the new datagram; no other byte changes.
    #[test]
    fn lowering_changes_only_the_signal(before in datagrams(), advice in 0_u8..128, pseudo: u16, with_checksum: bool) {
        let mut before = before;
        if with_checksum {
            let checksum = full_checksum(&before, pseudo.max(17));
            before[UDP_CHECKSUM..UDP_LEN].copy_from_slice(&checksum.to_be_bytes());
        }
        let was = Packet::parse(&before[UDP_LEN..]).unwrap();
        let mut after = before.clone();
        let lowered = lower_in_udp(&mut after, signal(advice));
        let expected = if advice < was.signal.bits() { Lowered::From(was.signal) } else { Lowered::Kept(was.signal) };
        prop_assert_eq!(lowered, expected);
        let is = Packet::parse(&after[UDP_LEN..]).unwrap();
        prop_assert_eq!(is, Packet { signal: was.signal.min(signal(advice)), ..was });
        let checksum = u16::from_be_bytes([after[UDP_CHECKSUM], after[UDP_CHECKSUM + 1]]);
        prop_assert_eq!(checksum, if with_checksum { full_checksum(&after, pseudo.max(17)) } else { 0 });
        // 0x40 of the first byte and the other bits of the version's first byte are in no field of `Packet`.
        let mut rest = after.clone();
        rest[UDP_CHECKSUM..UDP_LEN].copy_from_slice(&before[UDP_CHECKSUM..UDP_LEN]);
        write_signal(&mut rest[UDP_LEN..], was.signal);
        prop_assert_eq!(rest, before);
        let again = lower_in_udp(&mut after.clone(), signal(advice));
        prop_assert_eq!(again, Lowered::Kept(is.signal));
    }

    /// A wrong checksum stays wrong by the same amount: the router does not hide damage.
    #[test]
    fn damage_stays(was: u16, is: u16, right in 1_u16.., wrong in 1_u16..) {
        let distance = |a: u16, b: u16| (u32::from(a) + 0xffff - u32::from(b)) % 0xffff;
        let after = (updated_checksum(right, was, is), updated_checksum(wrong, was, is));
        prop_assert!(after.0 != 0 && after.1 != 0);
        prop_assert_eq!(distance(after.0, after.1), distance(right, wrong));
    }

    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), advice in 0_u8..128) {
        let mut after = bytes.clone();
        if lower_in_udp(&mut after, signal(advice)) == Lowered::NotScone {
            prop_assert_eq!(&after, &bytes);
        }
        let _ = Packet::parse(&bytes);
        let _ = indicates(&bytes);
    }

    #[test]
    fn what_fits_is_found_and_nothing_else(bytes in proptest::collection::vec(0_u8..4, 0..20), advice in 0_u8..127) {
        // A long header of SCONE's version with arbitrary lengths.
        let mut payload = [&[0xff, 0xef, 0x7d, 0xc0, 0xfd], &bytes[..]].concat();
        let fits = || {
            let dcid = usize::from(*bytes.first()?);
            let scid = usize::from(*bytes.get(1 + dcid)?);
            bytes.get(2 + dcid + scid)
        };
        let expected = if fits().is_some() { Lowered::From(Signal::UNKNOWN) } else { Lowered::NotScone };
        prop_assert_eq!(lower(&mut payload, signal(advice)), expected);
    }
}

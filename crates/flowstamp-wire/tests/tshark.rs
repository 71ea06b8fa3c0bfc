//! Has the real tshark read what this crate writes: the capture file, the frames, and the headers of XCP, RCP and PCP by way of the
//! Lua dissector.
//!
//! Without tshark each test says that it is skipped and passes; with `FLOWSTAMP_REQUIRE_TSHARK=1` it
//! fails instead.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers are test code too, which clippy's exception for tests leaves out"
)]

mod skip;

use etherparse::{Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};
use flowstamp_wire::frame::{self, Ecn, Flags, FrameSpec};
use flowstamp_wire::pcp;
use flowstamp_wire::rcp::{self, BytesPerMilli, Millis16};
use flowstamp_wire::scone::{self, Signal};
use flowstamp_wire::xcp::{self, Header, Seconds28};
use flowstamp_wire::{DISSECTOR, pcapng};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const IP_TOTAL_LEN: usize = frame::ETHERNET_LEN + 2;
const XCP_START: usize = frame::ETHERNET_LEN + 20;

/// A packet as it goes into the file, and the fields that its case changes.
struct Packet {
    time_ps: u64,
    bytes: Vec<u8>,
    wire_len: u32,
    comment: Option<&'static str>,
}

impl Packet {
    fn new(time_ps: u64, spec: &FrameSpec<'_>) -> Self {
        let mut buffer = [0; frame::MAX_LEN];
        let len = spec.write(&mut buffer);
        Self { time_ps, bytes: buffer[..len].to_vec(), wire_len: spec.wire_len(), comment: None }
    }

    /// With its payload of zeros, as a capture without a snap length has it.
    fn whole(mut self) -> Self {
        self.bytes.resize(self.wire_len as usize, 0);
        self
    }

    fn comment(mut self, comment: &'static str) -> Self {
        self.comment = Some(comment);
        self
    }

    /// As captured with a snap length that ends `len` bytes into the XCP header; on the wire it is longer.
    fn snap(mut self, len: usize) -> Self {
        self.bytes.truncate(XCP_START + len);
        self
    }

    /// Over IPv6 instead: the same addresses behind ten bytes fd00::.
    fn over_ipv6(mut self) -> Self {
        let (ip, rest) = Ipv4Header::from_slice(&self.bytes[frame::ETHERNET_LEN..]).unwrap();
        let address = |v4: [u8; 4]| {
            let mut v6 = [0; 16];
            v6[0] = 0xfd;
            v6[12..].copy_from_slice(&v4);
            v6
        };
        let ip = Ipv6Header {
            payload_length: ip.total_len - 20,
            next_header: ip.protocol,
            hop_limit: ip.time_to_live,
            source: address(ip.source),
            destination: address(ip.destination),
            ..Ipv6Header::default()
        };
        let (xcp, tcp) = rest.split_at(xcp::HEADER_LEN);
        let (mut tcp, payload) = TcpHeader::from_slice(tcp).unwrap();
        tcp.checksum = tcp.calc_checksum_ipv6(&ip, payload).unwrap();
        let ethernet = &self.bytes[..frame::ETHERNET_LEN - 2];
        self.bytes = [ethernet, &[0x86, 0xdd], &ip.to_bytes(), xcp, &tcp.to_bytes(), payload].concat();
        self.wire_len += 20;
        self
    }

    /// Sets one byte of the XCP header, which no checksum covers.
    fn xcp_byte(mut self, at: usize, value: u8) -> Self {
        self.bytes[XCP_START + at] = value;
        self
    }

    /// Ends the packet `len` bytes into the XCP header, for IP as well.
    fn cut(mut self, len: usize) -> Self {
        self.bytes.truncate(XCP_START + len);
        self.wire_len = self.bytes.len() as u32;
        let ip_len = (20 + len) as u16;
        self.bytes[IP_TOTAL_LEN..IP_TOTAL_LEN + 2].copy_from_slice(&ip_len.to_be_bytes());
        let (ip, _) = Ipv4Header::from_slice(&self.bytes[frame::ETHERNET_LEN..]).unwrap();
        let checksum = ip.calc_header_checksum();
        self.bytes[frame::ETHERNET_LEN + 10..][..2].copy_from_slice(&checksum.to_be_bytes());
        self
    }
}

fn spec(xcp: Option<Header>) -> FrameSpec<'static> {
    FrameSpec {
        src_host: 1,
        dst_host: 0x0002_0304,
        src_port: 50001,
        dst_port: 50002,
        seq: 0xffff_0000,
        ack: 42,
        window: 8192,
        flags: Flags { ack: true, ..Flags::default() },
        ecn: Ecn::Ect0,
        sack: &[],
        shim: xcp.map(Into::into),
        udp: false,
        ip_len: 1500,
        id: 7,
    }
}

fn standard(reverse_feedback: i32, delta_throughput: i32) -> Header {
    let (x, rtt) = (Seconds28::from_secs_f64(0.003_906_25), Seconds28::from_secs_f64(0.08));
    Header::standard(x, rtt, reverse_feedback, delta_throughput)
}

const SEC: u64 = 1_000_000_000_000;

/// One packet per line of [`EXPECTED`].
fn packets() -> Vec<Packet> {
    let ack_flags = Flags { ack: true, ece: true, ..Flags::default() };
    let pure_ack = FrameSpec { ip_len: 0, ..spec(Some(Header::minimal(-1))) };
    vec![
        Packet::new(0, &spec(Some(standard(0, 1000)))).whole().comment("whole frame"),
        Packet::new(123_456_789_012, &spec(Some(standard(i32::MAX, -2_000_000_000)))),
        Packet::new(999_999_999_999, &FrameSpec { ecn: Ecn::Ce, ..spec(Some(standard(0, 0))) }),
        Packet::new(3 * SEC + 500_000_000_000, &pure_ack),
        Packet::new(
            4000 * SEC + 18_500_000_000,
            &FrameSpec {
                flags: ack_flags,
                sack: &[(1000, 2000), (3000, 4000), (5000, 6000)],
                ecn: Ecn::NotEct,
                ..pure_ack
            },
        ),
        Packet::new(4001 * SEC, &spec(None)),
        Packet::new(4002 * SEC, &pure_ack).xcp_byte(2, 0x22),
        Packet::new(4003 * SEC, &pure_ack).xcp_byte(2, 0x37),
        Packet::new(4004 * SEC, &pure_ack).xcp_byte(1, 16),
        Packet::new(4005 * SEC, &pure_ack).cut(12),
        Packet::new(4006 * SEC, &pure_ack).cut(0),
        Packet::new(4007 * SEC, &pure_ack).snap(14),
        Packet::new(4008 * SEC, &pure_ack).snap(0),
        Packet::new(4009 * SEC, &pure_ack).over_ipv6(),
    ]
}

const FIELDS: [&str; 20] = [
    "frame.time_epoch",
    "frame.len",
    "ip.dsfield.ecn",
    "ip.checksum.status",
    "xcp.protocol",
    "xcp.length",
    "xcp.version",
    "xcp.format",
    "xcp.x",
    "xcp.rtt",
    "xcp.reverse_feedback",
    "xcp.delta_throughput",
    "tcp.seq_raw",
    "tcp.len",
    "tcp.checksum.status",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "frame.comment",
    "_ws.malformed",
    "_ws.expert.message",
];

/// [`FIELDS`] of [`packets`]. In a status 1 is "good" and 2 "unverified". 0.08 s is the header's nearest step to it.
///
/// That a segment cut to its headers (line 2) has a length of 1440 and a good checksum is the dissector's doing; without
/// XCP (line 6) Wireshark itself leaves the checksum unverified.
const EXPECTED: &str = "\
0.000000000|1514|2|1|6|20|3|1|0.00390625|0.0799999982118607|0|1000|4294901760|1440|1|||whole frame||whole frame
0.123456789|1514|2|1|6|20|3|1|0.00390625|0.0799999982118607|2147483647|-2000000000|4294901760|1440|1|||||
0.999999999|1514|3|1|6|20|3|1|0.00390625|0.0799999982118607|0|0|4294901760|1440|1|||||
3.500000000|74|2|1|6|20|3|2|0|0|-1|0|4294901760|0|1|||||
4000.018500000|102|0|1|6|20|3|2|0|0|-1|0|4294901760|0|1|1000,3000,5000|2000,4000,6000|||
4001.000000000|1514|2|1|||||||||4294901760|1460|2|||||
4002.000000000|74|2|1|6|20|2|2|0|0|-1|0|4294901760|0|1|||||unknown XCP version 2: must be 3
4003.000000000|74|2|1|6|20|3|7|0|0|-1|0|4294901760|0|1|||||unknown XCP format 7: must be 1 (standard) or 2 (minimal)
4004.000000000|74|2|1|6|16|3|2|0|0|-1|0|4294901760|0|1|||||bad XCP length 16: must be 20
4005.000000000|46|2|1|6|20|3|2|0|0|||||||||_ws.malformed|XCP header truncated: 12 bytes, must be 20
4006.000000000|34|2|1||||||||||||||||
4007.000000000|74|2|1|6|20|3|2|0|0||||||||||
4008.000000000|74|2|1||||||||||||||||
4009.000000000|94|||6|20|3|2|0|0|-1|0|4294901760|0|1|||||
";

/// A flow of RCP, from its SYN to the answer to its FIN; one per line of [`RCP_EXPECTED`].
fn rcp_packets() -> Vec<Packet> {
    let rate = BytesPerMilli::from_bytes_per_sec;
    let rtt = Millis16::from_secs_f64(0.08);
    let wish = rcp::Header::data(BytesPerMilli::NONE, Millis16::UNKNOWN);
    let answer = rcp::Header::ack(rate(125e6));
    let data = rcp::Header::data(rate(125e6), rtt);
    let syn = Flags { syn: true, ..Flags::default() };
    let ack = Flags { ack: true, ..Flags::default() };
    let fin = Flags { fin: true, ..ack };
    let of = |header: rcp::Header, flags, seq, ip_len| FrameSpec {
        shim: Some(header.into()),
        flags,
        seq,
        ip_len,
        ..spec(None)
    };
    vec![
        Packet::new(0, &of(wish, syn, 0, 0)),
        Packet::new(1, &of(answer, Flags { ack: true, ..syn }, 0, 0)),
        Packet::new(2, &of(data, ack, 1, 1000)),
        Packet::new(3, &of(data, ack, 949, 1000)).whole(),
        Packet::new(4, &of(answer, ack, 1, 0)),
        Packet::new(5, &of(data, fin, 1897, 0)),
        Packet::new(6, &of(answer, fin, 1, 0)),
        Packet::new(7, &of(data, ack, 1, 0)).cut(9),
        Packet::new(8, &of(data, ack, 1, 1000)).snap(11),
    ]
}

const RCP_FIELDS: [&str; 12] = [
    "frame.number",
    "rcp.bottleneck_rate",
    "rcp.reverse_bottleneck_rate",
    "rcp.rtt",
    "rcp.protocol",
    "tcp.flags.syn",
    "tcp.flags.fin",
    "tcp.flags.ack",
    "tcp.seq_raw",
    "tcp.len",
    "tcp.checksum.status",
    "_ws.malformed",
];

/// [`RCP_FIELDS`] of [`rcp_packets`]: 1 Gb/s are 125 MB/s, and an unknown RTT has no value.
const RCP_EXPECTED: &str = "\
1|0|0||6|1|0|0|0|0|1|
2|0|125000000||6|1|0|1|0|0|1|
3|125000000|0|0.08|6|0|0|1|1|948|1|
4|125000000|0|0.08|6|0|0|1|949|948|1|
5|0|125000000||6|0|0|1|1|0|1|
6|125000000|0|0.08|6|0|1|1|1897|0|1|
7|0|125000000||6|0|1|1|1|0|1|
8|125000000|0|||||||||_ws.malformed
9|125000000|0|0.08|6|||||||
";

/// A first packet, one with feedback behind a bottleneck, its ack, and two that are cut; one per line of [`PCP_EXPECTED`].
fn pcp_packets() -> Vec<Packet> {
    let header = |rtt_s, bits: [bool; 3], ptl, feedback| pcp::Header {
        ack: bits[0],
        b1: bits[1],
        b2: bits[2],
        ptl,
        protocol: 6,
        cwnd: 9000,
        rtt: Seconds28::from_secs_f64(rtt_s),
        feedback,
    };
    let of =
        |header: pcp::Header, ip_len| FrameSpec { shim: Some(header.into()), seq: 1, ip_len, ..spec(None) };
    let data = header(0.0625, [false, true, false], 61, -300);
    vec![
        Packet::new(0, &of(header(0.0, [false; 3], 64, i32::MAX), 1000)),
        Packet::new(1, &of(data, 1000)).whole(),
        Packet::new(2, &of(header(0.0625, [true, true, true], 61, -300), 0)),
        Packet::new(3, &of(data, 0)).cut(11),
        Packet::new(4, &of(data, 1000)).snap(12),
    ]
}

const PCP_FIELDS: [&str; 12] = [
    "frame.number",
    "precise.ack",
    "precise.b1",
    "precise.b2",
    "precise.ptl",
    "precise.protocol",
    "precise.cwnd",
    "precise.rtt",
    "precise.feedback",
    "tcp.len",
    "tcp.checksum.status",
    "_ws.malformed",
];

/// [`PCP_FIELDS`] of [`pcp_packets`]: of 1000 bytes 56 are headers.
const PCP_EXPECTED: &str = "\
1|0|0|0|64|6|9000|0|2147483647|944|1|
2|0|1|0|61|6|9000|0.0625|-300|944|1|
3|1|1|1|61|6|9000|0.0625|-300|0|1|
4|0|1|0|61|6|9000|||||_ws.malformed
5|0|1|0|61|6|9000|0.0625||||
";

/// A segment with these TCP options, of which Linux writes ours behind its own.
fn with_options(time_ps: u64, options: &[u8]) -> Packet {
    let mut packet = Packet::new(time_ps, &FrameSpec { ip_len: 0, ..spec(None) });
    let (mut ip, rest) = Ipv4Header::from_slice(&packet.bytes[frame::ETHERNET_LEN..]).unwrap();
    let (mut tcp, _) = TcpHeader::from_slice(rest).unwrap();
    tcp.set_options_raw(options).unwrap();
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, &[]).unwrap();
    ip.total_len = 20 + tcp.header_len_u16();
    ip.header_checksum = ip.calc_header_checksum();
    packet.bytes = [&packet.bytes[..frame::ETHERNET_LEN], &ip.to_bytes(), &tcp.to_bytes()].concat();
    packet.wire_len = packet.bytes.len() as u32;
    packet
}

/// The stamps of crates/flowstamp-linux/bpf/option.h; one per line of [`OPTION_EXPECTED`].
fn option_packets() -> Vec<Packet> {
    // No-ops and timestamps, as before every option of ours.
    let before = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    // 125 bytes/ms; 100000 us are 0xc35 2^5 us.
    let rcp = [253, 16, b'R', b'C', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 125, 0x5c, 0x35, 0, 1];
    let xcp = [253, 16, b'X', b'C', 0, 0, 0x03, 0xe8, 0xff, 0xff, 0xff, 0x38, 0xff, 0xff, 0, 7];
    let short = [253, 8, b'R', b'C', 0, 0, 0, 125];
    // A SYN-ACK, whose router has a t_rho of 200000 us and whose echo is one of 100000 us; then an ack of 5, 6 and 7 packets.
    let vcp = [253, 16, b'V', b'C', 0, 0x01, 0x86, 0xa0, 0, 0x03, 0x0d, 0x40, 0, 0, 0, 1];
    let codes = [253, 8, b'V', b'C', 3, 5, 6, 7];
    // TCP Fast Open's cookie request in the same kind is no stamp, nor one of another length.
    let other = [253, 8, 0xf9, 0x89, 1, 2, 3, 4];
    let odd = [253, 12, b'R', b'C', 0, 0, 0, 125, 0, 0, 0, 1];
    let options =
        [[&before[..], &rcp].concat(), [&before[..], &xcp].concat(), [&short[..], &before].concat()];
    options
        .iter()
        .map(Vec::as_slice)
        .chain([&vcp[..], &codes, &other, &odd])
        .map(|options| with_options(0, options))
        .collect()
}

const OPTION_FIELDS: [&str; 14] = [
    "flowstamp.law",
    "flowstamp.length",
    "flowstamp.echo",
    "flowstamp.rate",
    "flowstamp.delta",
    "flowstamp.rtt",
    "flowstamp.handshake",
    "flowstamp.in_flight",
    "flowstamp.t_rho",
    "flowstamp.code",
    "flowstamp.came_low",
    "flowstamp.came_high",
    "flowstamp.came_overload",
    "tcp.checksum.status",
];

/// [`OPTION_FIELDS`] of [`option_packets`].
const OPTION_EXPECTED: &str = "\
RCP|16|4294967295000|125000||0.1|1|||||||1
XCP|16|1000||-200|||7||||||1
RCP|8|125000|||||||||||1
VCP|16|0.1||||1||0.2|||||1
VCP|8||||||||3|5|6|7|1
|||||||||||||1
|||||||||||||1
";

/// A UDP datagram with this payload, its checksum included.
fn with_payload(payload: &[u8]) -> Packet {
    let spec = FrameSpec { udp: true, ip_len: 28 + payload.len() as u16, ..spec(None) };
    let mut packet = Packet::new(0, &spec);
    let (ip, _) = Ipv4Header::from_slice(&packet.bytes[frame::ETHERNET_LEN..]).unwrap();
    let udp = UdpHeader::with_ipv4_checksum(spec.src_port, spec.dst_port, &ip, payload).unwrap();
    packet.bytes = [&packet.bytes[..IP_TOTAL_LEN + 18], &udp.to_bytes(), payload].concat();
    packet
}

/// No advice, advice from [`scone::lower_in_udp`], a packet alone, and datagrams that are not SCONE; one per line of [`SCONE_EXPECTED`].
fn scone_packets() -> Vec<Packet> {
    let advice = |bits_per_sec| Signal::at_most(bits_per_sec).unwrap();
    let head = |signal| {
        let mut bytes = [0; 14];
        let packet = scone::Packet { signal, dcid: &[1, 2, 3, 4], scid: &[5, 6, 7] };
        assert_eq!(packet.emit(&mut bytes), Ok(14));
        bytes.to_vec()
    };
    // A packet of QUIC version 1, its type "handshake", that nobody can decrypt.
    let quic = [0xe0, 0, 0, 0, 1, 4, 1, 2, 3, 4, 3, 5, 6, 7, 0x14].into_iter().chain([0x55; 20]);
    let whole = |signal| head(signal).into_iter().chain(quic.clone()).collect::<Vec<u8>>();
    let mut lowered = with_payload(&whole(Signal::UNKNOWN));
    let now = scone::lower_in_udp(&mut lowered.bytes[frame::ETHERNET_LEN + 20..], advice(5_000_000));
    assert_eq!(now, scone::Lowered::From(Signal::UNKNOWN));
    let mut initial = [0xc0, 0, 0, 0, 1, 0, 0].to_vec();
    initial.resize(1198, 0);
    initial.extend(scone::INDICATION);
    let mut short = whole(Signal::UNKNOWN);
    short[0] = 0x7f;
    let mut cut = head(Signal::UNKNOWN);
    cut.truncate(13);
    vec![
        with_payload(&whole(Signal::UNKNOWN)),
        lowered,
        with_payload(&whole(Signal::MAX)),
        with_payload(&head(Signal::MIN)),
        with_payload(&initial),
        with_payload(&short),
        with_payload(&cut),
    ]
}

const SCONE_FIELDS: [&str; 10] = [
    "frame.number",
    "scone.signal",
    "scone.rate",
    "scone.version",
    "scone.dcid",
    "scone.scid",
    "quic.version",
    "scone.indication",
    "udp.checksum.status",
    "scone.alone",
];

/// [`SCONE_FIELDS`] of [`scone_packets`].
const SCONE_EXPECTED: &str = "\
1|127||0xef7dc0fd|01020304|050607|0x00000001||1|
2|33|4466835.92150963|0xef7dc0fd|01020304|050607|0x00000001||1|
3|126|199526231496.888|0x6f7dc0fd|01020304|050607|0x00000001||1|
4|0|100000|0x6f7dc0fd|01020304|050607|||1|1
5|||||||0xc813|1|
6||||||||1|
7||||||||1|
";

/// The program, or `None` (said on standard error) where it is not installed.
fn tshark() -> Option<Command> {
    let found = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(Command::new("tshark"));
    }
    let required = std::env::var_os("FLOWSTAMP_REQUIRE_TSHARK").is_some_and(|value| value == "1");
    assert!(!required, "FLOWSTAMP_REQUIRE_TSHARK=1, but tshark is not installed");
    skip::skip("tshark is not installed (FLOWSTAMP_REQUIRE_TSHARK=1 makes this a failure)");
    None
}

/// A fresh directory with the capture and the dissector.
fn prepare(name: &str, packets: &[Packet]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("flowstamp.lua"), DISSECTOR).unwrap();
    let mut writer = pcapng::Writer::new(Vec::new(), "flowstamp").unwrap();
    let unused = writer.add_interface("other", "sees nothing", pcapng::LinkType::Ethernet).unwrap();
    let iface = writer.add_interface("bottleneck", "r1 to r2, 150 Mb/s", pcapng::LinkType::Ethernet).unwrap();
    assert_eq!((unused, iface), (0, 1));
    for packet in packets {
        writer.write_packet(iface, packet.time_ps, &packet.bytes, packet.wire_len, packet.comment).unwrap();
    }
    std::fs::write(dir.join("run.pcapng"), writer.finish().unwrap()).unwrap();
    dir
}

/// Runs tshark over the capture, with checksums checked and no personal configuration; gives standard output.
fn dissect(mut tshark: Command, dir: &Path, args: &[&str]) -> String {
    let output = tshark
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_CONFIG_HOME", dir)
        .env("TZ", "UTC")
        .args(["-X", "lua_script:flowstamp.lua", "-r", "run.pcapng", "-n"])
        .args(["-o", "tcp.relative_sequence_numbers:FALSE", "-o", "tcp.analyze_sequence_numbers:FALSE"])
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE"])
        .args(args)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let hint = "if xcp fields are unknown, tshark refuses Lua scripts to root: see the crate's documentation";
    assert!(output.status.success(), "tshark failed ({hint}): {errors}");
    // As root tshark warns on standard error and goes on; trouble in the script is reported there as well.
    assert!(!errors.to_lowercase().contains("lua"), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "long: needs tshark"]
fn every_field_has_its_value() {
    let Some(tshark) = tshark() else { return };
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(FIELDS.iter().flat_map(|field| ["-e", *field]));
    let output = dissect(tshark, &prepare("fields", &packets()), &args);
    assert_eq!(output, EXPECTED, "fields: {FIELDS:?}");
}

#[test]
#[ignore = "long: needs tshark"]
fn a_flow_of_rcp_from_syn_to_fin() {
    let Some(tshark) = tshark() else { return };
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(RCP_FIELDS.iter().flat_map(|field| ["-e", *field]));
    let output = dissect(tshark, &prepare("rcp", &rcp_packets()), &args);
    assert_eq!(output, RCP_EXPECTED, "fields: {RCP_FIELDS:?}");
}

#[test]
#[ignore = "long: needs tshark"]
fn a_flow_of_pcp() {
    let Some(tshark) = tshark() else { return };
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(PCP_FIELDS.iter().flat_map(|field| ["-e", *field]));
    let output = dissect(tshark, &prepare("pcp", &pcp_packets()), &args);
    assert_eq!(output, PCP_EXPECTED, "fields: {PCP_FIELDS:?}");
}

#[test]
#[ignore = "long: needs tshark"]
fn the_tcp_option_of_linux() {
    let Some(tshark) = tshark() else { return };
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(OPTION_FIELDS.iter().flat_map(|field| ["-e", *field]));
    let output = dissect(tshark, &prepare("option", &option_packets()), &args);
    assert_eq!(output, OPTION_EXPECTED, "fields: {OPTION_FIELDS:?}");
}

#[test]
#[ignore = "long: needs tshark"]
fn advice_in_quic_datagrams() {
    let Some(tshark) = tshark() else { return };
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(SCONE_FIELDS.iter().flat_map(|field| ["-e", *field]));
    let output = dissect(tshark, &prepare("scone", &scone_packets()), &args);
    assert_eq!(output, SCONE_EXPECTED, "fields: {SCONE_FIELDS:?}");
}

#[test]
#[ignore = "long: needs tshark"]
fn json_nests_xcp_between_ip_and_tcp() {
    let Some(tshark) = tshark() else { return };
    let output = dissect(tshark, &prepare("json", &packets()), &["-T", "json"]);
    let frames: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(frames.as_array().unwrap().len(), packets().len());

    let layers = &frames[1]["_source"]["layers"];
    let names: Vec<_> = layers.as_object().unwrap().keys().map(String::as_str).collect();
    for name in ["frame", "eth", "ip", "xcp", "tcp"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert_eq!(layers["frame"]["frame.protocols"], "eth:ethertype:ip:xcp:tcp:data");
    assert_eq!(layers["frame"]["frame.interface_id_tree"]["frame.interface_name"], "bottleneck");
    assert_eq!(
        layers["frame"]["frame.interface_id_tree"]["frame.interface_description"],
        "r1 to r2, 150 Mb/s"
    );
    assert_eq!(layers["frame"]["frame.cap_len"], "74");
    assert_eq!(layers["eth"]["eth.src"], "02:00:00:00:00:01");
    assert_eq!(layers["ip"]["ip.src"], "10.0.0.1");
    assert_eq!(layers["ip"]["ip.dst"], "10.2.3.4");
    assert_eq!(layers["ip"]["ip.len"], "1500");
    assert_eq!(layers["ip"]["ip.proto"], xcp::IP_PROTOCOL.to_string());
    assert_eq!(layers["xcp"]["xcp.rtt"], "0.0799999982118607");
    assert_eq!(layers["xcp"]["xcp.delta_throughput"], "-2000000000");
    assert_eq!(layers["tcp"]["tcp.srcport"], "50001");
    assert_eq!(layers["tcp"]["tcp.window_size_value"], "8192");
}

#[test]
#[ignore = "long: needs tshark"]
fn fields_are_display_filters() {
    let Some(tshark) = tshark() else { return };
    let filter = "xcp.delta_throughput < 0 && xcp.rtt > 0.0799 && xcp.rtt < 0.0801 && xcp.x == 0.00390625";
    let output = dissect(
        tshark,
        &prepare("filter", &packets()),
        &["-Y", filter, "-T", "fields", "-e", "frame.number"],
    );
    assert_eq!(output, "2\n");
}

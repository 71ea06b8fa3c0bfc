//! The bytes of a simulated packet: Ethernet II, IPv4, optionally XCP, RCP or PCP, TCP or UDP.
//!
//! The simulator's packets carry no payload bytes, so a frame holds headers only, cut like a capture with a small snap length. The
//! IPv4 total length gives the packet's true size, and [`FrameSpec::wire_len`] is the original length for the capture file. The
//! TCP checksum is that of a payload of zeros. Zeros add nothing to the sum, so the payload enters it only through the
//! pseudo-header's length.
//!
//! Values that the simulator does not have are made up:
//! - addresses: host `h` is 10.0.0.0 + `h` and 02:00:00:00:00:00 + `h` (locally administered);
//! - the checksum's pseudo-header is TCP's own, as if TCP followed IP directly: the header in between does not enter the sum;
//! - time to live 64 everywhere, "don't fragment" set, no Ethernet padding or frame check sequence.

use etherparse::checksum::Sum16BitWords;
use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader,
};
use flowstamp_laws::Stamp;

/// Bytes of the Ethernet II header.
pub const ETHERNET_LEN: usize = Ethernet2Header::LEN;
/// Most SACK blocks in a frame: as many as fit beside timestamps (RFC 2018, section 3), although frames carry no timestamps.
pub const MAX_SACK_BLOCKS: usize = 3;
/// Bytes of the longest header between IP and TCP: XCP's.
pub const MAX_SHIM_LEN: usize = 20;
/// Bytes of the longest frame: Ethernet, IPv4, the longest shim, TCP with two no-ops and a SACK option of three blocks.
pub const MAX_LEN: usize =
    ETHERNET_LEN + Ipv4Header::MIN_LEN + MAX_SHIM_LEN + TcpHeader::MIN_LEN + 4 + 8 * MAX_SACK_BLOCKS;

/// Time to live of every packet, in hops: the usual initial value (RFC 1700), which no simulated router lowers.
const TTL: u8 = 64;

/// The content of a packet's header, in the laws' terms.
#[derive(Clone, Copy, Debug)]
pub struct HeaderContent {
    /// The stamp.
    pub stamp: Stamp,
    /// The header's bits beside the stamp.
    pub bits: u16,
    /// Whether the packet carries data in the flow's direction; if not it is an ack or an answer.
    pub data: bool,
    /// Bytes of a full data packet.
    pub packet_bytes: u32,
    /// UDP follows, not TCP.
    pub udp: bool,
}

/// Writes a header between IP and TCP.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// The header's length in bytes.
    pub len: usize,
    /// Writes a packet's header.
    pub shim: fn(&HeaderContent) -> Shim,
}

/// The IP header's two ECN bits (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// 00: not ECN-capable.
    #[default]
    NotEct,
    /// 10: ECN-capable transport.
    Ect0,
    /// 01: ECN-capable transport; VCP's low load, L4S's mark.
    Ect1,
    /// 11: congestion experienced.
    Ce,
}

/// The TCP flags a simulated packet may have set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Opens a connection.
    pub syn: bool,
    /// No more data from the sender.
    pub fin: bool,
    /// The acknowledgement number counts.
    pub ack: bool,
    /// Congestion has been echoed (RFC 3168).
    pub ece: bool,
    /// The congestion window has been reduced (RFC 3168).
    pub cwr: bool,
}

/// The header of an explicit-feedback protocol between IP and TCP, as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    ip_protocol: u8,
    len: u8,
    bytes: [u8; MAX_SHIM_LEN],
}

impl Shim {
    /// A header of these bytes with this IP protocol number. Bytes beyond [`MAX_SHIM_LEN`] are cut.
    #[must_use]
    pub fn new(ip_protocol: u8, header: &[u8]) -> Self {
        debug_assert!(header.len() <= MAX_SHIM_LEN, "{} bytes", header.len());
        let len = header.len().min(MAX_SHIM_LEN);
        let mut bytes = [0; MAX_SHIM_LEN];
        bytes[..len].copy_from_slice(&header[..len]);
        Self { ip_protocol, len: len as u8, bytes }
    }

    /// The header's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The IP protocol number of the header.
    #[must_use]
    pub const fn ip_protocol(&self) -> u8 {
        self.ip_protocol
    }
}

/// The fields of a simulated packet that its headers show.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameSpec<'a> {
    /// Number of the sending host; the low 24 bits become the address 10.x.y.z.
    pub src_host: u32,
    /// Number of the receiving host, as `src_host`.
    pub dst_host: u32,
    /// TCP source port. Best from 49152 up: Wireshark passes the payload of a well-known port to that protocol's dissector, which
    /// then reports the zeros as malformed.
    pub src_port: u16,
    /// TCP destination port, as `src_port`.
    pub dst_port: u16,
    /// TCP sequence number of the first payload byte, in bytes.
    pub seq: u32,
    /// TCP acknowledgement number, in bytes.
    pub ack: u32,
    /// TCP receive window as in the header, in bytes (no scaling is announced).
    pub window: u16,
    /// TCP flags.
    pub flags: Flags,
    /// ECN bits of the IP header.
    pub ecn: Ecn,
    /// SACK blocks: sequence numbers of the first byte and of the one after the last. Those beyond the first
    /// [`MAX_SACK_BLOCKS`] are left out.
    pub sack: &'a [(u32, u32)],
    /// The header between IP and TCP, if the flow's law has one. Its protocol field should name TCP.
    pub shim: Option<Shim>,
    /// The transport is UDP: only ports and length are of use, and the packet's number is in the IP identification.
    pub udp: bool,
    /// IP total length on the simulated wire, in bytes; raised to the headers' length if below it.
    pub ip_len: u16,
    /// IP identification.
    pub id: u16,
}

impl FrameSpec<'_> {
    /// Writes the headers to the start of `buffer` and returns their length in bytes; the rest of `buffer` stays as it
    /// was.
    ///
    /// # Panics
    ///
    /// Never: [`MAX_LEN`] bytes hold every frame.
    pub fn write(&self, buffer: &mut [u8; MAX_LEN]) -> usize {
        let mut tcp = self.tcp_header();
        let (source, destination) = (host_address(self.src_host), host_address(self.dst_host));
        let ip_len = self.ip_len(if self.udp { UdpHeader::LEN } else { tcp.header_len() });
        let transport = if self.udp { IpNumber::UDP } else { IpNumber::TCP };
        let mut ip = Ipv4Header {
            ecn: match self.ecn {
                Ecn::NotEct => IpEcn::NotEct,
                Ecn::Ect0 => IpEcn::Ect0,
                Ecn::Ect1 => IpEcn::Ect1,
                Ecn::Ce => IpEcn::CongestionExperienced,
            },
            total_len: ip_len,
            identification: self.id,
            time_to_live: TTL,
            protocol: self.shim.map_or(transport, |shim| IpNumber(shim.ip_protocol)),
            source,
            destination,
            ..Ipv4Header::default()
        };
        ip.header_checksum = ip.calc_header_checksum();

        let len = ip_len - (Ipv4Header::MIN_LEN + self.shim_len()) as u16;
        let mut udp = UdpHeader {
            source_port: self.src_port,
            destination_port: self.dst_port,
            length: len,
            checksum: 0,
        };
        // The crate's own checksum needs the payload as a slice. Summing the header alone, with the payload's length in the
        // pseudo-header, gives the same sum for zeros at no cost per byte.
        let sum = |header: &[u8]| {
            Sum16BitWords::new()
                .add_4bytes(source)
                .add_4bytes(destination)
                .add_2bytes([0, transport.0])
                .add_2bytes(len.to_be_bytes())
                .add_slice(header)
                .ones_complement()
                .to_be()
        };
        if self.udp {
            // A checksum of zero is written as all ones (RFC 768).
            udp.checksum = Some(sum(&udp.to_bytes())).filter(|sum| *sum != 0).unwrap_or(u16::MAX);
        } else {
            tcp.checksum = sum(&tcp.to_bytes());
        }

        let ethernet = Ethernet2Header {
            source: host_mac(self.src_host),
            destination: host_mac(self.dst_host),
            ether_type: EtherType::IPV4,
        };
        let mut len = 0;
        let mut push = |bytes: &[u8]| {
            buffer[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        push(&ethernet.to_bytes());
        push(&ip.to_bytes());
        if let Some(shim) = &self.shim {
            push(shim.bytes());
        }
        if self.udp {
            push(&udp.to_bytes());
        } else {
            push(&tcp.to_bytes());
        }
        len
    }

    /// Length of the whole packet on the wire in bytes, Ethernet header included: the capture's original length.
    #[must_use]
    pub fn wire_len(&self) -> u32 {
        let sack_len = if self.sack_blocks() == 0 { 0 } else { 4 + 8 * self.sack_blocks() };
        let transport = if self.udp { UdpHeader::LEN } else { TcpHeader::MIN_LEN + sack_len };
        ETHERNET_LEN as u32 + u32::from(self.ip_len(transport))
    }

    fn ip_len(&self, transport_len: usize) -> u16 {
        let headers = Ipv4Header::MIN_LEN + self.shim_len() + transport_len;
        self.ip_len.max(headers as u16) // at most MAX_LEN
    }

    fn shim_len(&self) -> usize {
        self.shim.map_or(0, |shim| usize::from(shim.len))
    }

    fn sack_blocks(&self) -> usize {
        self.sack.len().min(MAX_SACK_BLOCKS)
    }

    /// The TCP header with a checksum of zero.
    fn tcp_header(&self) -> TcpHeader {
        let mut tcp = TcpHeader::new(self.src_port, self.dst_port, self.seq, self.window);
        tcp.acknowledgment_number = self.ack;
        tcp.syn = self.flags.syn;
        tcp.fin = self.flags.fin;
        tcp.ack = self.flags.ack;
        tcp.ece = self.flags.ece;
        tcp.cwr = self.flags.cwr;
        if let Some((first, rest)) = self.sack[..self.sack_blocks()].split_first() {
            let sack = TcpOptionElement::SelectiveAcknowledgement(
                *first,
                [rest.first().copied(), rest.get(1).copied(), None],
            );
            // Two no-ops first, as deployed stacks do: the option's edges are then aligned (RFC 2018, section 3).
            let set = tcp.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, sack]);
            debug_assert!(set.is_ok(), "28 bytes of options fit into 40");
        }
        tcp
    }
}

/// The IPv4 address of a host: 10.x.y.z, of the number's low 24 bits.
#[must_use]
pub const fn host_address(host: u32) -> [u8; 4] {
    let [_, x, y, z] = host.to_be_bytes();
    [10, x, y, z]
}

/// The MAC address of a host: 02:00, locally administered, then the number.
#[must_use]
pub const fn host_mac(host: u32) -> [u8; 6] {
    let [w, x, y, z] = host.to_be_bytes();
    [0x02, 0x00, w, x, y, z]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rcp, xcp};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    const SACK: [(u32, u32); 4] = [(100, 200), (300, 400), (500, 600), (700, 800)];

    fn spec() -> FrameSpec<'static> {
        FrameSpec {
            src_host: 1,
            dst_host: 0x0002_0304,
            src_port: 5001,
            dst_port: 80,
            seq: 0xffff_ff00,
            ack: 42,
            window: 65535,
            flags: Flags { ack: true, ..Flags::default() },
            ecn: Ecn::Ect0,
            sack: &[],
            shim: None,
            udp: false,
            ip_len: 1500,
            id: 7,
        }
    }

    /// The frame as it would be on the wire: with its payload of zeros.
    fn whole(spec: &FrameSpec<'_>) -> Vec<u8> {
        let mut buffer = [0xee; MAX_LEN];
        let len = spec.write(&mut buffer);
        assert!(buffer[len..].iter().all(|byte| *byte == 0xee), "wrote past the returned length");
        let mut frame = buffer[..len].to_vec();
        frame.resize(spec.wire_len() as usize, 0);
        frame
    }

    /// Checks both checksums, with TCP parsed as if the header in between were not there.
    fn check(spec: &FrameSpec<'_>) {
        let frame = whole(spec);
        let (ip, after_ip) = Ipv4Header::from_slice(&frame[ETHERNET_LEN..]).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(usize::from(ip.total_len), frame.len() - ETHERNET_LEN);
        match spec.shim {
            Some(shim) => {
                assert_eq!(ip.protocol.0, shim.ip_protocol());
                assert_eq!(&after_ip[..shim.bytes().len()], shim.bytes());
            }
            None => assert_eq!(ip.protocol, IpNumber::TCP),
        }
        let after_shim = &after_ip[spec.shim_len()..];
        let (tcp, payload) = TcpHeader::from_slice(after_shim).unwrap();
        assert!(payload.iter().all(|byte| *byte == 0));
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, payload).unwrap());
        assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), (spec.seq, spec.ack));
    }

    #[test]
    fn datagrams_are_in_udp() {
        let shim: Shim = rcp::Header { protocol: 17, ..rcp::Header::ack(rcp::BytesPerMilli::NONE) }.into();
        for shim in [None, Some(shim)] {
            let frame = whole(&FrameSpec { udp: true, shim, ip_len: 1000, ..spec() });
            let (ip, after_ip) = Ipv4Header::from_slice(&frame[ETHERNET_LEN..]).unwrap();
            assert_eq!(ip.protocol.0, shim.map_or(17, |shim| shim.ip_protocol()));
            let shim_len = shim.map_or(0, |shim| shim.bytes().len());
            let (udp, payload) = UdpHeader::from_slice(&after_ip[shim_len..]).unwrap();
            assert_eq!((udp.source_port, usize::from(udp.length)), (5001, 8 + payload.len()));
            assert_eq!(payload.len(), 1000 - 20 - shim_len - 8);
            assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, payload).unwrap());
        }
    }

    #[test]
    fn data_segment() {
        check(&spec());
        let frame = whole(&spec());
        assert_eq!(frame.len(), 1514);
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("not ipv4") };
        assert_eq!(ip.header().source(), [10, 0, 0, 1]);
        assert_eq!(ip.header().destination(), [10, 2, 3, 4]);
        assert_eq!(ip.header().ecn(), IpEcn::Ect0);
        assert_eq!(ip.header().identification(), 7);
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("not tcp") };
        assert_eq!(tcp.payload().len(), 1460);
        assert!(tcp.ack() && !tcp.syn() && !tcp.fin() && !tcp.ece() && !tcp.cwr());
    }

    #[test]
    fn sack_blocks_beyond_three_are_left_out() {
        let spec = FrameSpec { sack: &SACK, shim: Some(xcp::Header::minimal(0).into()), ip_len: 0, ..spec() };
        check(&spec);
        let frame = whole(&spec);
        assert_eq!(frame.len(), MAX_LEN);
        let (tcp, _) = TcpHeader::from_slice(&frame[ETHERNET_LEN + 40..]).unwrap();
        let options: Vec<_> = tcp.options_iterator().map(|option| option.unwrap()).collect();
        assert_eq!(
            options[2..],
            [TcpOptionElement::SelectiveAcknowledgement(
                (100, 200),
                [Some((300, 400)), Some((500, 600)), None]
            )]
        );
    }

    proptest! {
        #[test]
        fn checksums_are_right(
            src_host: u32, dst_host: u32, seq: u32, ack: u32, window: u16, ip_len: u16, id: u16,
            flags: [bool; 5], blocks in 0_usize..=4, feedback in proptest::option::of(any::<i32>()),
            rate in proptest::option::of(any::<u32>()),
        ) {
            let [syn, fin, ack_flag, ece, cwr] = flags;
            check(&FrameSpec {
                src_host, dst_host, seq, ack, window, ip_len, id,
                flags: Flags { syn, fin, ack: ack_flag, ece, cwr },
                sack: &SACK[..blocks],
                shim: rate
                    .map(|rate| rcp::Header::ack(rcp::BytesPerMilli::from_bits(rate)).into())
                    .or(feedback.map(|feedback| xcp::Header::minimal(feedback).into())),
                ..spec()
            });
        }
    }
}

//! Builds captured packets and frames as they would be on a real wire.

use crate::medium::dcf::Kind;
use crate::results::{CapturedCell, CapturedFrame, CapturedPacket};
use flowstamp_laws::registry::Header;
use flowstamp_wire::codec::{codec, ecn};
use flowstamp_wire::frame::{Ecn, Flags, FrameSpec, HeaderContent, Shim};
use flowstamp_wire::radio::{self, Ds, Heard};

/// Bytes of the IPv4 header and of a TCP header without options.
const IP_TCP_LEN: u32 = 40;

/// Converts a sequence number from packets to TCP's bytes. The first byte is number 1, after a SYN.
pub(super) fn tcp_sequence(packet: &CapturedPacket, seq: u32) -> u32 {
    let shim_len = codec(packet.header).map_or(0, |codec| codec.len as u32);
    let payload = packet.packet_bytes.saturating_sub(IP_TCP_LEN + shim_len).max(1);
    // The last packet may be shorter.
    let short = if seq >= packet.packets { packet.packet_bytes.saturating_sub(packet.last_size) } else { 0 };
    seq.wrapping_mul(payload).wrapping_sub(short.min(payload)).wrapping_add(1)
}

fn shim_of(packet: &CapturedPacket) -> Option<Shim> {
    let content = HeaderContent {
        stamp: packet.stamp,
        bits: packet.bits,
        data: packet.data,
        packet_bytes: packet.packet_bytes,
        udp: packet.datagrams,
    };
    codec(packet.header).map(|codec| (codec.shim)(&content))
}

/// Sequence and acknowledgement number. A SYN takes the number before the first byte, a FIN the one after the last.
fn numbers(packet: &CapturedPacket) -> (u32, u32) {
    let here = tcp_sequence(packet, packet.seq);
    match (packet.data, packet.syn) {
        (true, true) => (0, 0),
        (false, true) => (0, 1),
        (true, false) => (here, 1),
        (false, false) => (1, here.wrapping_add(u32::from(packet.fin))),
    }
}

/// Builds the packet as it would be on a real wire. Host `2 flow + 1` sends the data, host `2 flow + 2` the acks.
pub(super) fn frame_of<'a>(packet: &CapturedPacket, sack: &'a [(u32, u32)]) -> FrameSpec<'a> {
    let (sender, receiver) = (2 * packet.flow + 1, 2 * packet.flow + 2);
    let port = 49_152 + (packet.flow % 16_384) as u16; // ports without a registered service
    let (seq, ack) = numbers(packet);
    // A CE mark replaces ABC's bits, and ABC's acks have none.
    let own = packet.header != Header::Abc || (packet.data && !packet.congestion_experienced);
    FrameSpec {
        src_host: if packet.data { sender } else { receiver },
        dst_host: if packet.data { receiver } else { sender },
        src_port: port,
        dst_port: port,
        seq,
        ack,
        window: u16::MAX,
        flags: Flags {
            syn: packet.syn,
            fin: packet.fin,
            ack: !(packet.syn && packet.data),
            ece: packet.ecn_echo,
            cwr: packet.cwr,
        },
        ecn: ecn(packet.header, packet.bits).filter(|_| own).unwrap_or(
            match (packet.ecn_capable, packet.congestion_experienced) {
                (_, true) => Ecn::Ce,
                (true, false) if packet.l4s => Ecn::Ect1,
                (true, false) => Ecn::Ect0,
                (false, false) => Ecn::NotEct,
            },
        ),
        sack,
        shim: shim_of(packet),
        udp: packet.datagrams,
        ip_len: packet.size.min(u32::from(u16::MAX)) as u16,
        id: packet.seq as u16,
    }
}

/// Builds the frame as a monitor would receive it. Station `s` of cell `c` has the address 02:01:c:s. The access
/// point's address is the BSSID. It is a router, so stations send to it and not to nodes behind it.
pub(super) fn heard_of(frame: &CapturedFrame, cell: &CapturedCell) -> Heard {
    let (sent, number) = (&frame.sent, frame.cell as u16);
    let ds = match (cell.access_point, sent.from) {
        (false, _) => Ds::Independent(radio::independent_bssid(number)),
        (true, 0) => Ds::From,
        (true, _) => Ds::To,
    };
    Heard {
        tsf_us: sent.mpdu.as_ps() / 1_000_000,
        rate_bps: sent.rate.bps(),
        ofdm: cell.ofdm,
        short_preamble: sent.short_preamble,
        bad_fcs: !sent.good,
        retries: sent.failed.min(255) as u8,
        duration_us: sent.duration_us.min(u64::from(u16::MAX)) as u16,
        from: radio::station_mac(number, sent.from as u16),
        to: radio::station_mac(number, sent.to as u16),
        kind: match sent.kind {
            Kind::Rts => radio::Kind::Rts,
            Kind::Cts => radio::Kind::Cts,
            Kind::Ack => radio::Kind::Ack,
            Kind::Data => {
                radio::Kind::Data { ds, retry: sent.retry, sequence: (sent.sequence & 0xfff) as u16 }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_laws::Stamp;
    use flowstamp_laws::registry::Header;
    use flowstamp_wire::{rcp, xcp};

    fn packet(header: Header, data: bool, stamp: [f64; 3]) -> CapturedPacket {
        CapturedPacket {
            time_ps: 0,
            link: 0,
            flow: 3,
            data,
            control: false,
            syn: false,
            fin: false,
            seq: 2,
            size: if data { 1000 } else { 40 },
            packet_bytes: 1000,
            packets: u32::MAX,
            last_size: 1000,
            datagrams: false,
            ecn_capable: false,
            l4s: false,
            congestion_experienced: false,
            ecn_echo: false,
            cwr: false,
            header,
            stamp: Stamp(stamp),
            bits: 0,
            sack: Default::default(),
        }
    }

    fn xcp_of(packet: &CapturedPacket) -> xcp::Header {
        let shim = frame_of(packet, &[]).shim.expect("a header");
        assert_eq!(shim.ip_protocol(), xcp::IP_PROTOCOL);
        xcp::Header::parse(shim.bytes()).expect("XCP's")
    }

    #[test]
    fn the_window_form_is_told_as_throughput() {
        // 40 packets per 80 ms are one each 2 ms; 500 bytes more per 80 ms are 6250 bytes/s more.
        let stamp = [40_000.0, 0.08, 500.0];
        let data = xcp_of(&packet(Header::Xcp, true, stamp));
        assert_eq!(data.x, xcp::Seconds28::from_secs_f64(0.002));
        assert_eq!(data.rtt, xcp::Seconds28::from_secs_f64(0.08));
        assert_eq!((data.delta_throughput, data.reverse_feedback), (6250, 0));
        assert_eq!(xcp_of(&packet(Header::Xcp, false, stamp)), xcp::Header::minimal(6250));
    }

    #[test]
    fn the_draft_form_is_told_as_it_is() {
        let stamp = [0.002, 0.08, -6250.0];
        let data = xcp_of(&packet(Header::XcpDraft, true, stamp));
        assert_eq!((data.x.to_secs_f64() * 1e3).round(), 2.0);
        assert_eq!(data.delta_throughput, -6250);
        // Before the first round trip the fields are zero.
        let first = xcp_of(&packet(Header::Xcp, true, [2000.0, 0.0, 0.0]));
        assert_eq!((first.x, first.rtt), (xcp::Seconds28::ZERO, xcp::Seconds28::ZERO));
    }

    #[test]
    fn the_ecn_bits_are_those_of_the_transport() {
        let of = |ecn_capable, l4s, congestion_experienced| {
            let data = packet(Header::Plain, true, [0.0; 3]);
            frame_of(&CapturedPacket { ecn_capable, l4s, congestion_experienced, ..data }, &[]).ecn
        };
        // RFC 3168, section 5; RFC 9331, section 4.1.
        assert_eq!(of(false, false, false), Ecn::NotEct);
        assert_eq!(of(true, false, false), Ecn::Ect0);
        assert_eq!(of(true, true, false), Ecn::Ect1);
        assert_eq!(of(true, true, true), Ecn::Ce);
    }

    #[test]
    fn sequence_numbers_are_of_payload_bytes() {
        let reno = frame_of(&packet(Header::Plain, true, [0.0; 3]), &[]);
        assert_eq!((reno.seq, reno.ack, reno.shim), (1 + 2 * 960, 1, None));
        assert_eq!((reno.src_host, reno.dst_host), (7, 8));
        let ack = frame_of(&packet(Header::Xcp, false, [0.0; 3]), &[]);
        assert_eq!((ack.seq, ack.ack), (1, 1 + 2 * 940));
        assert_eq!((ack.src_host, ack.dst_host), (8, 7));
    }

    fn rcp_of(packet: &CapturedPacket) -> rcp::Header {
        let shim = frame_of(packet, &[]).shim.expect("a header");
        assert_eq!(shim.ip_protocol(), rcp::IP_PROTOCOL);
        rcp::Header::parse(shim.bytes()).expect("RCP's")
    }

    #[test]
    fn rates_of_rcp_are_told_in_bytes_per_millisecond() {
        let rate = rcp::BytesPerMilli::from_bits;
        // 10 Mb/s are 1250 bytes/ms.
        let data = rcp_of(&packet(Header::Rcp, true, [1.25e6, 0.08, 5000.0]));
        assert_eq!(data, rcp::Header::data(rate(1250), rcp::Millis16::from_bits(80)));
        assert_eq!(rcp_of(&packet(Header::Rcp, false, [1.25e6, 0.08, 5000.0])), rcp::Header::ack(rate(1250)));
        // A SYN before any router carries the largest rate and no RTT.
        let syn = rcp_of(&packet(Header::Rcp, true, [1e15, 0.0, 0.0]));
        assert_eq!(syn, rcp::Header::data(rcp::BytesPerMilli::NONE, rcp::Millis16::UNKNOWN));
    }

    /// Section 6.1.1: the shim names UDP, and the frame is one.
    #[test]
    fn a_stream_of_rcp_is_in_udp() {
        let frame = CapturedPacket { datagrams: true, ..packet(Header::Rcp, true, [1.25e6, 0.08, 0.0]) };
        assert_eq!(rcp_of(&frame).protocol, 17);
        assert!(frame_of(&frame, &[]).udp);
    }

    /// A flow of two packets, the second of 552 bytes: 948 and 500 of payload behind 52 of headers.
    #[test]
    fn a_flow_opens_and_ends_as_tcp_does() {
        let tcp = |data, seq, (control, syn, fin)| {
            let packet = CapturedPacket {
                seq,
                control,
                syn,
                fin,
                packets: 2,
                last_size: 552,
                ..packet(Header::Rcp, data, [1.25e6, 0.08, 0.0])
            };
            let frame = frame_of(&packet, &[]);
            (frame.seq, frame.ack, [frame.flags.syn, frame.flags.fin, frame.flags.ack])
        };
        let (data, syn, fin) = ((false, false, false), (true, true, false), (true, false, true));
        assert_eq!(tcp(true, 0, syn), (0, 0, [true, false, false]));
        assert_eq!(tcp(false, 0, syn), (0, 1, [true, false, true]));
        assert_eq!(tcp(true, 1, data), (949, 1, [false, false, true]));
        assert_eq!(tcp(false, 2, data), (1, 1449, [false, false, true]));
        assert_eq!(tcp(true, 2, fin), (1449, 1, [false, true, true]));
        assert_eq!(tcp(false, 2, fin), (1, 1450, [false, true, true]));
    }
}

//! Writes a frame of IEEE 802.11 as a monitor captures it: radiotap, then a data frame with LLC and SNAP, or a control frame.
//!
//! ```text
//!   radiotap, 22 or 23 | data, 24                   | LLC, SNAP, 8 | IPv4 ...           | FCS, 4
//!                      | ACK, CTS 10; RTS 16        |              |                    | FCS, 4
//!                        802.11-2012, clause 8.3      RFC 1042       as frame::FrameSpec
//! ```
//!
//! A data frame is captured without payload and FCS, headers only, as in [`frame`](crate::frame). Control frames are whole, with their FCS;
//! [`Heard::bad_fcs`] makes it wrong.
//!
//! radiotap (radiotap.org): TSFT is the microsecond in which the first bit after the PLCP header arrives. It is not the frame's start,
//! which is the capture's own time. The rate is left out unless it is a whole number of 500 kb/s below 128 Mb/s. Data and RTS have
//! "data retries": how often their sender has failed with this packet before.
//!
//! Values that the simulator does not have: all frames are on channel 1, and signal strength is left out.

/// Bytes of the longest radiotap header written here.
pub const MAX_RADIOTAP_LEN: usize = 23;
/// Bytes of a data frame's header: three addresses.
pub const DATA_HEADER_LEN: usize = 24;
/// Bytes of the LLC and SNAP headers.
pub const LLC_LEN: usize = 8;
/// Bytes of the frame check sequence.
pub const FCS_LEN: usize = 4;
/// Bytes of the longest frame as captured.
pub const MAX_LEN: usize =
    MAX_RADIOTAP_LEN + DATA_HEADER_LEN + LLC_LEN + crate::frame::MAX_LEN - crate::frame::ETHERNET_LEN;

/// LLC with SNAP, then the type of IPv4 (RFC 1042).
const LLC_SNAP_IPV4: [u8; LLC_LEN] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];

// Bits of radiotap's fields, then bits of the fields "flags" and "channel".
const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const DATA_RETRIES: u32 = 1 << 17;
const FLAG_SHORT_PREAMBLE: u8 = 0x02;
const FLAG_FCS_AT_END: u8 = 0x10;
const FLAG_BAD_FCS: u8 = 0x40;
const CHANNEL_CCK: u16 = 0x0020;
const CHANNEL_OFDM: u16 = 0x0040;
const CHANNEL_2GHZ: u16 = 0x0080;
/// Centre of channel 1, MHz.
const FREQUENCY: u16 = 2412;

// The first byte of frame control, type and subtype, and bits of the second (802.11-2012, 8.2.4.1).
const DATA: u8 = 0x08;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const RETRY: u8 = 0x08;

/// The longest time that a frame can reserve, in microseconds: other values of the 16 bits have other meanings (8.2.4.2).
const MAX_DURATION_US: u16 = 32_767;

/// Direction of a data frame, as seen from the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ds {
    /// From a station to the access point.
    To,
    /// From the access point to a station.
    From,
    /// From station to station, in the cell of this BSSID.
    Independent([u8; 6]),
}

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Carries a packet.
    Data {
        /// Direction.
        ds: Ds,
        /// Whether the frame is a retransmission.
        retry: bool,
        /// Sequence number of the sender's packet; the low 12 bits are written.
        sequence: u16,
    },
    /// Request to send, which announces a data frame.
    Rts,
    /// Clear to send, which answers an RTS.
    Cts,
    /// Acknowledges a data frame.
    Ack,
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Time at which the first bit after its PLCP header was sent, in microseconds.
    pub tsf_us: u64,
    /// Bit rate, in bits per second.
    pub rate_bps: f64,
    /// Whether it is modulated by OFDM; if not, as in 802.11b.
    pub ofdm: bool,
    /// Whether it has a short preamble.
    pub short_preamble: bool,
    /// Whether the frame was corrupted, by a collision or by noise, so that its FCS is wrong.
    pub bad_fcs: bool,
    /// Number of the sender's failed attempts with this packet; for data and RTS.
    pub retries: u8,
    /// Time after its end for which it reserves the medium; at most 32767 us are written.
    pub duration_us: u16,
    /// Address of the sender.
    pub from: [u8; 6],
    /// Address of the receiver.
    pub to: [u8; 6],
    /// Kind of the frame.
    pub kind: Kind,
}

impl Heard {
    /// Writes the frame to the start of `buffer` and returns its captured length in bytes. `packet` holds the captured bytes of a data
    /// frame's packet, from IP on, at most as many as [`frame`](crate::frame) writes. If `packet` is empty, LLC and SNAP are left out too.
    pub fn write(&self, packet: &[u8], buffer: &mut [u8; MAX_LEN]) -> usize {
        let mut out = Out { buffer, len: 0 };
        self.write_radiotap(&mut out);
        let begin = out.len;
        let duration = self.duration_us.min(MAX_DURATION_US).to_le_bytes();
        let (first, second) = match self.kind {
            Kind::Data { ds, retry, .. } => {
                let ds = match ds {
                    Ds::To => TO_DS,
                    Ds::From => FROM_DS,
                    Ds::Independent(_) => 0,
                };
                (DATA, ds | if retry { RETRY } else { 0 })
            }
            Kind::Rts => (RTS, 0),
            Kind::Cts => (CTS, 0),
            Kind::Ack => (ACK, 0),
        };
        out.push(&[first, second]);
        out.push(&duration);
        out.push(&self.to);
        match self.kind {
            Kind::Data { ds, sequence, .. } => {
                out.push(&self.from);
                out.push(&match ds {
                    Ds::To => self.to,
                    Ds::From => self.from,
                    Ds::Independent(bssid) => bssid,
                });
                out.push(&(sequence << 4).to_le_bytes()); // the low 4 bits number fragments
                if !packet.is_empty() {
                    out.push(&LLC_SNAP_IPV4);
                    out.push(packet);
                }
            }
            Kind::Rts => {
                out.push(&self.from);
                self.write_fcs(begin, &mut out);
            }
            Kind::Cts | Kind::Ack => self.write_fcs(begin, &mut out),
        }
        out.len
    }

    /// Length of the whole frame with radiotap and FCS: the capture's original length. `packet` is the length of a data frame's IP packet.
    #[must_use]
    pub fn wire_len(&self, packet: u32) -> u32 {
        let body = match self.kind {
            Kind::Data { .. } => (DATA_HEADER_LEN + LLC_LEN) as u32 + packet,
            Kind::Rts => 16,
            Kind::Cts | Kind::Ack => 10,
        };
        self.radiotap_len() as u32 + body + FCS_LEN as u32
    }

    fn counts_retries(&self) -> bool {
        matches!(self.kind, Kind::Data { .. } | Kind::Rts)
    }

    fn radiotap_len(&self) -> usize {
        MAX_RADIOTAP_LEN - usize::from(!self.counts_retries())
    }

    /// The rate in units of 500 kb/s; `None` if the field cannot hold it.
    fn rate(&self) -> Option<u8> {
        let units = self.rate_bps / 500e3;
        let whole = (1.0..=255.0).contains(&units) && (units - units.round()).abs() < 1e-6;
        whole.then(|| units.round() as u8)
    }

    fn write_radiotap(&self, out: &mut Out<'_>) {
        let rate = self.rate();
        let mut present = TSFT | FLAGS | CHANNEL;
        present |= if rate.is_some() { RATE } else { 0 };
        present |= if self.counts_retries() { DATA_RETRIES } else { 0 };
        let mut flags = FLAG_FCS_AT_END;
        flags |= if self.short_preamble { FLAG_SHORT_PREAMBLE } else { 0 };
        flags |= if self.bad_fcs { FLAG_BAD_FCS } else { 0 };
        let modulation = if self.ofdm { CHANNEL_OFDM } else { CHANNEL_CCK };
        out.push(&[0, 0]); // version, padding
        out.push(&(self.radiotap_len() as u16).to_le_bytes());
        out.push(&present.to_le_bytes());
        out.push(&self.tsf_us.to_le_bytes());
        // Without a rate its byte is padding, so that the channel stays at an even address.
        out.push(&[flags, rate.unwrap_or(0)]);
        out.push(&FREQUENCY.to_le_bytes());
        out.push(&(modulation | CHANNEL_2GHZ).to_le_bytes());
        if self.counts_retries() {
            out.push(&[self.retries]);
        }
    }

    fn write_fcs(&self, begin: usize, out: &mut Out<'_>) {
        let fcs = crc32(&out.buffer[begin..out.len]);
        out.push(&(if self.bad_fcs { !fcs } else { fcs }).to_le_bytes());
    }
}

/// A buffer that is filled from its start; bytes beyond its end are cut.
struct Out<'a> {
    buffer: &'a mut [u8; MAX_LEN],
    len: usize,
}

impl Out<'_> {
    fn push(&mut self, bytes: &[u8]) {
        let room = &mut self.buffer[self.len..];
        let len = bytes.len().min(room.len());
        room[..len].copy_from_slice(&bytes[..len]);
        self.len += len;
    }
}

/// CRC-32 of IEEE 802 (802.11-2012, 8.2.4.8), a bit at a time: control frames are short.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// The MAC address of a station, from the numbers of its cell and its own: 02:01, locally administered, then both.
#[must_use]
pub const fn station_mac(cell: u16, station: u16) -> [u8; 6] {
    let ([c, d], [s, t]) = (cell.to_be_bytes(), station.to_be_bytes());
    [0x02, 0x01, c, d, s, t]
}

/// The BSSID of a cell without an access point: 02:02, locally administered, then the cell's number.
#[must_use]
pub const fn independent_bssid(cell: u16) -> [u8; 6] {
    let [c, d] = cell.to_be_bytes();
    [0x02, 0x02, c, d, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(kind: Kind) -> Heard {
        Heard {
            tsf_us: 0x0102_0304_0506_0708,
            rate_bps: 5.5e6,
            ofdm: false,
            short_preamble: true,
            bad_fcs: false,
            retries: 3,
            duration_us: 314,
            from: station_mac(1, 2),
            to: station_mac(1, 0),
            kind,
        }
    }

    fn bytes(heard: &Heard, packet: &[u8]) -> Vec<u8> {
        let mut buffer = [0xee; MAX_LEN];
        let len = heard.write(packet, &mut buffer);
        assert!(buffer[len..].iter().all(|byte| *byte == 0xee), "wrote past the returned length");
        buffer[..len].to_vec()
    }

    /// The check value of CRC-32/ISO-HDLC, the same polynomial and conventions.
    #[test]
    fn the_check_sequence_is_that_of_ieee_802() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    /// Field by field from radiotap.org's list and 802.11-2012, 8.3.2.
    #[test]
    fn a_data_frame_byte_by_byte() {
        let kind = Kind::Data { ds: Ds::To, retry: true, sequence: 0x1fed };
        let frame = heard(kind);
        let expected = [
            &[0, 0, 23, 0, 0x0f, 0, 0x02, 0][..], // TSFT, flags, rate, channel; bit 17
            &[8, 7, 6, 5, 4, 3, 2, 1],
            &[0x12, 11],               // short preamble, FCS at end; 11 times 500 kb/s
            &[0x6c, 0x09, 0xa0, 0x00], // 2412 MHz; CCK, 2 GHz
            &[3],
            &[0x08, 0x09, 0x3a, 0x01], // data, to DS and retry; 314 us
            &[2, 1, 0, 1, 0, 0],
            &[2, 1, 0, 1, 0, 2],
            &[2, 1, 0, 1, 0, 0],
            &[0xd0, 0xfe],
            &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
            b"packet",
        ]
        .concat();
        assert_eq!(bytes(&frame, b"packet"), expected);
        assert_eq!(frame.wire_len(1000), 23 + 24 + 8 + 1000 + 4);
        // A packet that is no longer known leaves the header alone.
        assert_eq!(bytes(&frame, b""), expected[..23 + 24]);
    }

    #[test]
    fn addresses_are_those_of_the_way() {
        let address = |ds| {
            let frame = bytes(&heard(Kind::Data { ds, retry: false, sequence: 0 }), b"");
            (frame[24], [4, 10, 16].map(|at| <[u8; 6]>::try_from(&frame[23 + at..][..6]).expect("six")))
        };
        let (to, from, bssid) = (station_mac(1, 0), station_mac(1, 2), independent_bssid(1));
        // 802.11-2012, table 8-19.
        assert_eq!(address(Ds::To), (1, [to, from, to]));
        assert_eq!(address(Ds::From), (2, [to, from, from]));
        assert_eq!(address(Ds::Independent(bssid)), (0, [to, from, bssid]));
    }

    #[test]
    fn control_frames_are_whole() {
        for (kind, first, len) in [(Kind::Rts, 0xb4, 20), (Kind::Cts, 0xc4, 14), (Kind::Ack, 0xd4, 14)] {
            let frame = heard(kind);
            let written = bytes(&frame, b"");
            assert_eq!(written.len(), frame.wire_len(0) as usize);
            let mac = &written[usize::from(written[2])..];
            assert_eq!((mac[0], mac.len()), (first, len));
            assert_eq!(mac[len - 4..], crc32(&mac[..len - 4]).to_le_bytes());
            let bad = bytes(&Heard { bad_fcs: true, ..frame }, b"");
            assert_eq!(bad[16], 0x52);
            assert_ne!(bad[written.len() - 4..], written[written.len() - 4..]);
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let frame = heard(Kind::Ack);
        let present = |rate_bps| bytes(&Heard { rate_bps, ..frame }, b"")[4];
        // 54 Mb/s fit; 20 times 11 Mb/s and 0.3 Mb/s do not.
        assert_eq!([54e6, 220e6, 0.3e6, f64::NAN].map(present), [0x0f, 0x0b, 0x0b, 0x0b]);
        let long = bytes(&Heard { duration_us: u16::MAX, ..frame }, b"");
        assert_eq!(long[24..26], [0xff, 0x7f]);
    }
}

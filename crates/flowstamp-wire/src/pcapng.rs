//! Writes pcapng capture files (draft-ietf-opsawg-pcapng): the part of the format that a simulator needs.
//!
//! ```text
//! Section Header Block               application's name
//! Interface Description Block  * n   name, description, link type, time resolution
//! Enhanced Packet Block        * n   interface, time, captured bytes, original length, comment
//! ```
//!
//! Integers are little endian on every machine, so a run gives the same bytes everywhere. Blocks may be interleaved: an interface may be
//! added after packets of another one. Times are stored in whole nanoseconds. The writer neither buffers nor allocates: pass it a
//! [`std::io::BufWriter`].

use std::io::{self, Write};

const SECTION_HEADER_BLOCK: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION_BLOCK: u32 = 1;
const ENHANCED_PACKET_BLOCK: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const VERSION_MAJOR: u16 = 1;
const VERSION_MINOR: u16 = 0;
/// -1: the section's length is not known in advance.
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;

/// No limit to the captured length.
const SNAPLEN_UNLIMITED: u32 = 0;

const OPT_ENDOFOPT: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;

/// Times are stored in units of 10^-9 s.
///
/// The format could hold picoseconds (12), but Wireshark misreads them. It computes the fraction of a second as
/// `ticks % 10^12 * 10^9 / 10^12` in 64 bits, which overflows for every fraction above 18.4 ms (seen in 4.0.17:
/// .123456789 s became .012776324 s). It keeps only nanoseconds in any case.
const TSRESOL: u8 = 9;
const PICOS_PER_TICK: u64 = 1_000;

/// Bytes of a block besides its body: type, and the total length before and after the body.
const BLOCK_OVERHEAD: usize = 12;
/// Bytes of an Enhanced Packet Block's fixed part: interface, time (two words), captured and original length.
const PACKET_FIXED: usize = 20;
/// Bytes of an option's code and length.
const OPTION_HEADER: usize = 4;

/// Link-layer header type of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet.
    Ethernet = 1,
    /// radiotap, then a frame of IEEE 802.11.
    Radiotap = 127,
}

/// Writes one section of a pcapng file.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    interfaces: u32,
}

impl<W: Write> Writer<W> {
    /// Starts a file: writes the Section Header Block, naming `app` as the application that wrote the file.
    ///
    /// # Errors
    ///
    /// Errors of `out`, or [`io::ErrorKind::InvalidInput`] if `app` is longer than 65535 bytes.
    pub fn new(mut out: W, app: &str) -> io::Result<Self> {
        let app = TextOption::new(SHB_USERAPPL, app)?;
        let total = block_len(16 + app.len() + OPTION_HEADER)?;
        out.write_all(&SECTION_HEADER_BLOCK.to_le_bytes())?;
        out.write_all(&total)?;
        out.write_all(&BYTE_ORDER_MAGIC.to_le_bytes())?;
        out.write_all(&VERSION_MAJOR.to_le_bytes())?;
        out.write_all(&VERSION_MINOR.to_le_bytes())?;
        out.write_all(&SECTION_LENGTH_UNKNOWN.to_le_bytes())?;
        app.write(&mut out)?;
        end_of_options(&mut out)?;
        out.write_all(&total)?;
        Ok(Self { out, interfaces: 0 })
    }

    /// Starts a file of packets that links sent, with `links[n]` as interface `n`.
    ///
    /// # Errors
    ///
    /// As [`Writer::new`] and [`Writer::add_interface`].
    pub fn of_links(out: W, links: &[impl AsRef<str>]) -> io::Result<Self> {
        let mut writer = Self::new(out, concat!("flowstamp ", env!("CARGO_PKG_VERSION")))?;
        for link in links {
            let description = "departures, at the start of transmission";
            writer.add_interface(link.as_ref(), description, LinkType::Ethernet)?;
        }
        Ok(writer)
    }

    /// Adds an interface and returns its number, counted from 0, for [`Writer::write_packet`].
    ///
    /// # Errors
    ///
    /// Errors of the output, or [`io::ErrorKind::InvalidInput`] if a text is longer than 65535 bytes.
    pub fn add_interface(&mut self, name: &str, description: &str, link_type: LinkType) -> io::Result<u32> {
        let name = TextOption::new(IF_NAME, name)?;
        let description = TextOption::new(IF_DESCRIPTION, description)?;
        let resolution_len = OPTION_HEADER + 4;
        let total = block_len(8 + name.len() + description.len() + resolution_len + OPTION_HEADER)?;
        let out = &mut self.out;
        out.write_all(&INTERFACE_DESCRIPTION_BLOCK.to_le_bytes())?;
        out.write_all(&total)?;
        out.write_all(&(link_type as u16).to_le_bytes())?;
        out.write_all(&[0; 2])?; // reserved
        out.write_all(&SNAPLEN_UNLIMITED.to_le_bytes())?;
        name.write(out)?;
        description.write(out)?;
        out.write_all(&IF_TSRESOL.to_le_bytes())?;
        out.write_all(&1_u16.to_le_bytes())?;
        out.write_all(&[TSRESOL, 0, 0, 0])?; // one byte, padded to four
        end_of_options(out)?;
        out.write_all(&total)?;
        let number = self.interfaces;
        self.interfaces += 1;
        Ok(number)
    }

    /// Writes a packet seen at interface `iface`.
    ///
    /// `time_ps` is in picoseconds since the file's origin, which readers take to be 1970-01-01 00:00 UTC. The file holds it rounded down to
    /// nanoseconds, which keeps the order. `data` are the captured bytes. `original_len` is the packet's length on the wire in bytes, link
    /// header included. Wireshark shows `comment` above the packet's dissection.
    ///
    /// # Errors
    ///
    /// Errors of the output, or [`io::ErrorKind::InvalidInput`] (nothing is written then) if `iface` is not a number that
    /// [`Writer::add_interface`] returned, if `data` is longer than `original_len`, or if `comment` is longer than 65535 bytes.
    pub fn write_packet(
        &mut self,
        iface: u32,
        time_ps: u64,
        data: &[u8],
        original_len: u32,
        comment: Option<&str>,
    ) -> io::Result<()> {
        if iface >= self.interfaces {
            return Err(invalid(format!("unknown interface {iface}: must be below {}", self.interfaces)));
        }
        let captured_len = u32::try_from(data.len()).ok().filter(|captured| *captured <= original_len);
        let Some(captured_len) = captured_len else {
            return Err(invalid(format!(
                "{} bytes captured of a packet of {original_len}: must not be more",
                data.len()
            )));
        };
        let comment = comment.map(|comment| TextOption::new(OPT_COMMENT, comment)).transpose()?;
        let options_len = comment.as_ref().map_or(0, |comment| comment.len() + OPTION_HEADER);
        let total = block_len(PACKET_FIXED + data.len().next_multiple_of(4) + options_len)?;

        let ticks = time_ps / PICOS_PER_TICK;
        // One call for the fixed part: this is the writer's hot path.
        let mut head = [0; 8 + PACKET_FIXED];
        let words = [
            ENHANCED_PACKET_BLOCK.to_le_bytes(),
            total,
            iface.to_le_bytes(),
            ((ticks >> 32) as u32).to_le_bytes(),
            (ticks as u32).to_le_bytes(),
            captured_len.to_le_bytes(),
            original_len.to_le_bytes(),
        ];
        for (slot, word) in head.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word);
        }
        let out = &mut self.out;
        out.write_all(&head)?;
        out.write_all(data)?;
        pad(out, data.len())?;
        if let Some(comment) = comment {
            comment.write(out)?;
            end_of_options(out)?;
        }
        out.write_all(&total)
    }

    /// Ends the file: flushes the output and gives it back.
    ///
    /// # Errors
    ///
    /// Errors of flushing the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// An option that holds text; its length is known to fit.
struct TextOption<'a> {
    code: u16,
    text: &'a str,
    text_len: u16,
}

impl<'a> TextOption<'a> {
    fn new(code: u16, text: &'a str) -> io::Result<Self> {
        match u16::try_from(text.len()) {
            Ok(text_len) => Ok(Self { code, text, text_len }),
            Err(_) => Err(invalid(format!("text of {} bytes: must be at most {}", text.len(), u16::MAX))),
        }
    }

    /// Bytes in the file, padding included.
    fn len(&self) -> usize {
        OPTION_HEADER + self.text.len().next_multiple_of(4)
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.code.to_le_bytes())?;
        out.write_all(&self.text_len.to_le_bytes())?;
        out.write_all(self.text.as_bytes())?;
        pad(out, self.text.len())
    }
}

/// A block's total length field, for a body of `body` bytes.
fn block_len(body: usize) -> io::Result<[u8; 4]> {
    match u32::try_from(body + BLOCK_OVERHEAD) {
        Ok(total) => Ok(total.to_le_bytes()),
        Err(_) => Err(invalid(format!("block of {body} bytes: must be below 4 GiB"))),
    }
}

/// Pads with zeros to a multiple of four after `len` bytes.
fn pad(out: &mut impl Write, len: usize) -> io::Result<()> {
    out.write_all(&[0; 3][..len.next_multiple_of(4) - len])
}

fn end_of_options(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&OPT_ENDOFOPT.to_le_bytes())?;
    out.write_all(&0_u16.to_le_bytes())
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// The blocks' types and bodies; checks that both total lengths agree and that blocks stay aligned.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let total = word(file, 4) as usize;
            assert_eq!(total % 4, 0);
            assert_eq!(word(file, total - 4) as usize, total);
            blocks.push((word(file, 0), file[8..total - 4].to_vec()));
            file = &file[total..];
        }
        blocks
    }

    #[test]
    fn known_bytes() {
        let mut writer = Writer::new(Vec::new(), "flowstamp").unwrap();
        let iface = writer.add_interface("r1", "to r2", LinkType::Ethernet).unwrap();
        let time_ps = 0x1_0000_0002 * PICOS_PER_TICK;
        writer.write_packet(iface, time_ps, &[1, 2, 3, 4, 5], 60, Some("drop")).unwrap();
        let blocks = blocks(&writer.finish().unwrap());
        assert_eq!(blocks.iter().map(|block| block.0).collect::<Vec<_>>(), [0x0A0D_0D0A, 1, 6]);
        assert_eq!(
            blocks[0].1,
            [
                &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
                &[0xff; 8],
                &[4, 0, 9, 0],
                b"flowstamp\0\0\0",
                &[0; 4]
            ]
            .concat()
        );
        assert_eq!(
            blocks[1].1,
            [
                &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0][..],
                b"r1\0\0\x03\0\x05\0to r2\0\0\0",
                &[9, 0, 1, 0, TSRESOL, 0, 0, 0],
                &[0; 4]
            ]
            .concat()
        );
        assert_eq!(
            blocks[2].1,
            [
                &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 60, 0, 0, 0][..],
                &[1, 2, 3, 4, 5, 0, 0, 0],
                b"\x01\0\x04\0drop",
                &[0; 4]
            ]
            .concat()
        );
    }

    #[test]
    fn bad_input_is_refused_and_nothing_written() {
        let mut writer = Writer::new(Vec::new(), "flowstamp").unwrap();
        let before = writer.out.len();
        let long = "x".repeat(65536);
        let refused = [
            (
                writer.add_interface(&long, "", LinkType::Ethernet).unwrap_err(),
                "text of 65536 bytes: must be at most 65535",
            ),
            (writer.write_packet(0, 0, &[], 0, None).unwrap_err(), "unknown interface 0: must be below 0"),
        ];
        for (error, text) in refused {
            assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidInput, text));
        }
        assert_eq!(writer.out.len(), before);
        writer.add_interface("r1", "", LinkType::Ethernet).unwrap();
        let before = writer.out.len();
        let error = writer.write_packet(0, 0, &[0; 10], 9, None).unwrap_err();
        assert_eq!(error.to_string(), "10 bytes captured of a packet of 9: must not be more");
        assert!(writer.write_packet(0, 0, &[], 0, Some(&long)).is_err());
        assert_eq!(writer.out.len(), before);
    }

    proptest! {
        #[test]
        fn blocks_stay_aligned(
            packets in proptest::collection::vec(
                (any::<u64>(), proptest::collection::vec(any::<u8>(), 0..40), proptest::option::of(".{0,9}")), 0..8),
        ) {
            let mut writer = Writer::new(Vec::new(), "flowstamp").unwrap();
            writer.add_interface("r1", "", LinkType::Ethernet).unwrap();
            for (time_ps, data, comment) in &packets {
                writer.write_packet(0, *time_ps, data, 1500, comment.as_deref()).unwrap();
            }
            let blocks = blocks(&writer.finish().unwrap());
            prop_assert_eq!(blocks.len(), 2 + packets.len());
            for ((kind, body), (time_ps, data, _)) in blocks[2..].iter().zip(&packets) {
                let ticks = u64::from(word(body, 4)) << 32 | u64::from(word(body, 8));
                prop_assert_eq!((*kind, ticks), (6, time_ps / PICOS_PER_TICK));
                prop_assert_eq!(&body[20..20 + data.len()], &data[..]);
            }
        }
    }
}

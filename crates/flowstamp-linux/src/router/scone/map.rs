//! The file of `--scone-map`: advice for each subscriber's prefix.
//!
//! ```text
//! # access network of the north
//! 192.0.2.0/24     5Mbps
//! 2001:db8::/32    20Mbps
//! 198.51.100.7     1Mbps     # one address
//! ```

use super::{signal_of, types};
use crate::refusal::Refusal;
use flowstamp_laws::Rate;
use flowstamp_wire::scone::Signal;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

/// Most prefixes of a file: they take about 100 bytes each in the kernel.
const MOST: usize = 1_000_000;

/// The advice for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first address: all bits behind the prefix are zero.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub bits: u8,
    pub signal: Signal,
}

impl Entry {
    /// The key in the kernel's map, `struct fs_scone_prefix`.
    pub fn key(&self) -> types::fs_scone_prefix {
        let mut key = types::fs_scone_prefix { bits: 8 + u32::from(self.bits), ..Default::default() };
        match self.address {
            IpAddr::V4(address) => {
                key.version = 4;
                key.address[..4].copy_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                key.version = 6;
                key.address = address.octets();
            }
        }
        key
    }
}

/// Reads the file.
pub fn read(path: &Path) -> Result<Vec<Entry>, Refusal> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|e| Refusal(format!("--scone-map {name}: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Refusal(format!("--scone-map {name}: it is not text; it must have lines such as 192.0.2.0/24 5Mbps"))
    })?;
    parse(&text).map_err(|(line, why)| Refusal(format!("--scone-map {name}:{line}: {why}")))
}

/// Parses the file's text, or returns the number of a line and what is wrong with it.
fn parse(text: &str) -> Result<Vec<Entry>, (usize, String)> {
    let mut entries = Vec::new();
    let mut lines = HashMap::new();
    let mut last = 1;
    for (at, line) in text.lines().enumerate() {
        last = at + 1;
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        let [prefix, rate] = words[..] else {
            if words.is_empty() {
                continue;
            }
            let why =
                format!("{:?} is not a prefix and a rate; it must be like 192.0.2.0/24 5Mbps", line.trim());
            return Err((last, why));
        };
        let entry = entry(prefix, rate).map_err(|why| (last, why))?;
        if let Some(before) = lines.insert((entry.address, entry.bits), last) {
            return Err((last, format!("{prefix} is in line {before} too; keep one of them")));
        }
        if entries.len() == MOST {
            return Err((last, format!("more than {MOST} prefixes; use shorter prefixes")));
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err((last, "the file has no prefix; it must have lines such as 192.0.2.0/24 5Mbps".into()));
    }
    Ok(entries)
}

fn entry(prefix: &str, rate: &str) -> Result<Entry, String> {
    let (address, bits) = prefix_of(prefix)?;
    let rate: Rate = rate.parse().map_err(|e| format!("{e}"))?;
    Ok(Entry { address, bits, signal: signal_of(rate)? })
}

/// The address and the length of `192.0.2.0/24`, or of a single address.
fn prefix_of(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let wrong =
        || format!("{text:?} is not a prefix; it must be like 192.0.2.0/24, 2001:db8::/32 or one address");
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
    if bits > most {
        return Err(format!("{text}: the prefix has {bits} bits; an address has {most}"));
    }
    let first = match address {
        IpAddr::V4(a) => {
            IpAddr::V4((a.to_bits() & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)).into())
        }
        IpAddr::V6(a) => {
            IpAddr::V6((a.to_bits() & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)).into())
        }
    };
    if first != address {
        return Err(format!(
            "{text} has bits behind its prefix; use {first}/{bits}, or {address} for one address"
        ));
    }
    Ok((address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str, line: usize, part: &str) {
        let (at, why) = parse(text).expect_err("wrong");
        assert_eq!(at, line, "{text:?}: {why}");
        assert!(why.contains(part) && why.lines().count() == 1, "{text:?}: {why}");
    }

    #[test]
    fn lines_are_prefixes_and_rates() {
        let text = "# north\n\n192.0.2.0/24  5Mbps\r\n2001:db8::/32\t20Mbps # v6\n198.51.100.7 100kbps\n0.0.0.0/0 1Tbps\n::/0 1Gbps";
        let entries = parse(text).expect("right");
        let shown: Vec<_> =
            entries.iter().map(|e| (format!("{}/{}", e.address, e.bits), e.signal.bits())).collect();
        let expected = [
            ("192.0.2.0/24", 33),
            ("2001:db8::/32", 46),
            ("198.51.100.7/32", 0),
            ("0.0.0.0/0", 126),
            ("::/0", 80),
        ];
        assert_eq!(shown, expected.map(|(prefix, signal)| (prefix.to_owned(), signal)));
        let key = entries[0].key();
        assert_eq!((key.bits, key.version, &key.address[..5]), (32, 4, &[192, 0, 2, 0, 0][..]));
    }

    #[test]
    fn wrong_lines_are_refused_by_number() {
        refused("", 1, "no prefix");
        refused("# nothing\n\n", 2, "no prefix");
        refused("10.0.0.0/8 5Mbps\n10.1.0.0/16", 2, "\"10.1.0.0/16\" is not a prefix and a rate");
        refused("10.0.0.0/8 5 Mbps", 1, "must be like 192.0.2.0/24 5Mbps");
        refused("\n10.0.0.0/33 5Mbps", 2, "33 bits; an address has 32");
        refused("2001:db8::/129 5Mbps", 1, "129 bits; an address has 128");
        refused("10.0.0.0/-1 5Mbps", 1, "\"10.0.0.0/-1\" is not a prefix");
        refused("10.0.0/8 5Mbps", 1, "\"10.0.0/8\" is not a prefix");
        refused("example.org 5Mbps", 1, "\"example.org\" is not a prefix");
        refused("10.0.0.1/8 5Mbps", 1, "use 10.0.0.0/8, or 10.0.0.1 for one address");
        refused("2001:db8::1/32 5Mbps", 1, "use 2001:db8::/32");
        refused("10.0.0.0/8 fast", 1, "fast");
        refused("10.0.0.0/8 5000000", 1, "45Mbps");
        refused("10.0.0.0/8 99kbps", 1, "use at least 100kbps");
        refused("10.0.0.0/8 5Mbps\n\n10.0.0.0/8 6Mbps", 3, "is in line 1 too");
    }

    proptest! {
        #[test]
        fn any_text_is_a_map_or_refused_in_a_line(text in "([0-9a-f:./# ]{0,20}( [0-9.]{0,3}[kM]bps)?\n?){0,4}") {
            if let Err((_, why)) = parse(&text) {
                prop_assert_eq!(why.lines().count(), 1);
            }
        }

        #[test]
        fn prefixes_are_read_as_written(address: u32, bits in 0_u8..=32, rate in 100_000_u64..1_000_000_000) {
            let first = std::net::Ipv4Addr::from(u64::from(address) as u32 & (u64::MAX << (32 - bits)) as u32);
            let entries = parse(&format!("{first}/{bits} {rate}bps")).map_err(|(_, why)| TestCaseError::fail(why))?;
            prop_assert_eq!(entries, vec![Entry { address: first.into(), bits, signal: Signal::at_most(rate).expect("enough") }]);
        }
    }
}

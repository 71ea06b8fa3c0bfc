//! Reads types that Parquet does not have and Arrow's writers store beside it. The metadata `ARROW:schema` is the
//! schema message of Arrow's IPC format in base 64, a FlatBuffer (`Schema.fbs` and `Message.fbs` of Arrow's format).
//!
//! ```text
//! ff ff ff ff  length   root -> Message { header_type: 1, header: 2 }
//!                               Schema { fields: 1 } -> Field { name: 0, type_type: 2, type: 3 }
//!                                                       Duration { unit: 0 }
//! ```
//!
//! No length or offset is trusted: one that leads outside the bytes gives `None`.

/// Key of the metadata.
pub const KEY: &str = "ARROW:schema";
/// The number of `Duration` in the union `Type`, and of `Schema` in `MessageHeader`.
const DURATION: u8 = 18;
const SCHEMA: u8 = 1;
/// Maximum number of fields that are read; no list has as many columns.
const MOST_FIELDS: usize = 10_000;

/// Units of Arrow's `TimeUnit` in order, as a scenario writes them.
const UNITS: [&str; 4] = ["s", "ms", "us", "ns"];
/// A duration's unit unless its table says otherwise: milliseconds.
const DEFAULT_UNIT: u16 = 1;

/// The columns that are durations, with their units; a unit is `None` if Arrow does not define it. Returns `None` if
/// the text is no schema.
pub fn durations(text: &str) -> Option<Vec<(String, Option<&'static str>)>> {
    let bytes = base64(text)?;
    let message = match bytes.get(..4)? {
        [0xff, 0xff, 0xff, 0xff] => bytes.get(8..)?,
        _ => bytes.get(4..)?, // before Arrow 0.15
    };
    let root = Table { of: message, at: offset(message, 0)? };
    if root.byte(1)? != SCHEMA {
        return None;
    }
    let fields = root.leads(2)?.field(1).map(|at| follow(message, at)).unwrap_or_default();
    let Some(fields) = fields else { return Some(Vec::new()) };
    let count = usize::try_from(u32_at(message, fields)?).ok()?.min(MOST_FIELDS);
    let mut found = Vec::new();
    for i in 0..count {
        let field = Table { of: message, at: follow(message, fields.checked_add(4 + 4 * i)?)? };
        if field.byte(2) == Some(DURATION) {
            let unit = field.leads(3)?.field(0).map_or(Some(DEFAULT_UNIT), |at| u16_at(message, at))?;
            found.push((field.text(0)?, UNITS.get(usize::from(unit)).copied()));
        }
    }
    Some(found)
}

/// A table of a FlatBuffer.
struct Table<'a> {
    of: &'a [u8],
    at: usize,
}

impl Table<'_> {
    /// Position of a field of the table, if present. The table's vtable begins with two lengths, followed by the
    /// fields' offsets.
    fn field(&self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(array(self.of, self.at)?);
        let vtable = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let entry = 4 + 2 * number;
        if usize::from(u16_at(self.of, vtable)?) < entry + 2 {
            return None;
        }
        let offset = usize::from(u16_at(self.of, vtable.checked_add(entry)?)?);
        (offset > 0).then(|| self.at + offset)
    }

    fn byte(&self, number: usize) -> Option<u8> {
        self.of.get(self.field(number)?).copied()
    }

    /// The table to which a field points.
    fn leads(&self, number: usize) -> Option<Self> {
        Some(Self { of: self.of, at: follow(self.of, self.field(number)?)? })
    }

    fn text(&self, number: usize) -> Option<String> {
        let at = follow(self.of, self.field(number)?)?;
        let length = usize::try_from(u32_at(self.of, at)?).ok()?;
        let bytes = self.of.get(at + 4..)?.get(..length)?;
        String::from_utf8(bytes.to_vec()).ok()
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.get(..N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn offset(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}

/// The position to which an offset points; it counts from its own position.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(offset(bytes, at)?)
}

/// Decodes base 64 (RFC 4648, section 4).
fn base64(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=').bytes();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for letter in letters {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{base64, durations};
    use proptest::prelude::*;

    /// pyarrow's metadata for `pa.schema([("size", pa.int64()), ("start", pa.duration("us"))])`.
    const SCHEMA: &str = "/////7AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABIAAAABAAAAND///8AAAESEAAAABwAAAAEAAAAAAAAAAUAAABzdGFydAAGAAgABgAGAAAAAAACABAAFAAIAAYABwAMAAAAEAAQAAAAAAABAhAAAAAgAAAABAAAAAAAAAAEAAAAc2l6ZQAAAAAIAAwACAAHAAgAAAAAAAABQAAAAA==";

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, section 10.
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")]
        {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(base64("Zm9v\n"), None);
    }

    #[test]
    fn a_duration_has_its_unit() {
        assert_eq!(durations(SCHEMA), Some(vec![("start".to_owned(), Some("us"))]));
        assert_eq!(durations(""), None);
    }

    proptest! {
        /// Damaged input causes no read out of bounds and no overflow.
        #[test]
        fn damage_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), "[A-Za-z0-9+/]"), 0..8), keep in 0usize..2000) {
            let mut text: Vec<u8> = SCHEMA.bytes().collect();
            for (at, letter) in changes {
                let at = at.index(text.len());
                text[at] = letter.as_bytes()[0];
            }
            text.truncate(keep);
            let _ = durations(&String::from_utf8(text).expect("letters"));
        }
    }
}

//! SCONE's QUIC transport parameter, `scone_supported`: whoever sends it is willing to receive SCONE packets.
//!
//! ```text
//!   transport parameters (RFC 9000 section 18), one after the other:
//!   +------------+--------+-----------------+
//!   | identifier | length | value           |   identifier and length are variable-length integers (RFC 9000 section 16)
//!   +------------+--------+-----------------+
//!   | 61 9e      | 00     | (empty)         |   scone_supported, 0x219e
//!   +------------+--------+-----------------+
//! ```
//!
//! Nothing here panics, whatever the bytes.

use super::TRANSPORT_PARAMETER;
use thiserror::Error;

/// The parameter as it is written behind the others: its identifier, and a length of zero.
pub const SUPPORTED: [u8; 3] = [0x61, 0x9e, 0];

/// A list of transport parameters that must end the connection, with the error TRANSPORT_PARAMETER_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The list ends within an identifier, a length or a value.
    #[error(
        "transport parameters end within the one at byte {at}: must be an identifier, a length and as many bytes"
    )]
    Truncated {
        /// Where the incomplete parameter starts, bytes.
        at: usize,
    },
    /// The parameter has a value.
    #[error("scone_supported (0x219e) has {len} bytes: must be empty")]
    NotEmpty {
        /// Bytes of the value.
        len: usize,
    },
    /// The parameter appears twice, which RFC 9000 section 7.4 forbids.
    #[error("scone_supported (0x219e) appears twice: must appear once")]
    Twice,
}

/// Whether a list of transport parameters, as a peer has sent it, contains `scone_supported`.
///
/// # Errors
///
/// [`enum@Error`] if the list is malformed, or the parameter in it.
pub fn is_supported(parameters: &[u8]) -> Result<bool, Error> {
    let (mut rest, mut found) = (parameters, false);
    while !rest.is_empty() {
        let at = parameters.len() - rest.len();
        let (identifier, value) = next(&mut rest).ok_or(Error::Truncated { at })?;
        if identifier != TRANSPORT_PARAMETER {
            continue;
        }
        if found {
            return Err(Error::Twice);
        }
        if !value.is_empty() {
            return Err(Error::NotEmpty { len: value.len() });
        }
        found = true;
    }
    Ok(found)
}

/// Takes the first parameter off the list; `None` if it is incomplete.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let identifier = integer(rest)?;
    let len = usize::try_from(integer(rest)?).ok()?;
    let (value, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some((identifier, value))
}

/// Takes a variable-length integer off the bytes; `None` if it is incomplete.
fn integer(rest: &mut &[u8]) -> Option<u64> {
    let len = 1 << (rest.first()? >> 6);
    let (own, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    let first = u64::from(own[0] & 0x3f);
    Some(own[1..].iter().fold(first, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Writes an integer in 2^`form` bytes, or more if it needs more.
    fn write(out: &mut Vec<u8>, value: u64, form: u32) {
        let needed = [6, 14, 30, 62].into_iter().position(|bits| value < 1 << bits).unwrap() as u32;
        let form = form.max(needed);
        let bytes = value.to_be_bytes();
        let from = out.len();
        out.extend(&bytes[8 - (1 << form)..]);
        out[from] |= (form as u8) << 6;
    }

    fn parameter(identifier: u64, value: &[u8], form: u32) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, identifier, form);
        write(&mut out, value.len() as u64, form);
        out.extend(value);
        out
    }

    /// Parameters of others, in order.
    fn others() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let identifier = (0..1_u64 << 62).prop_filter("SCONE's", |id| *id != TRANSPORT_PARAMETER);
        let one = (identifier, vec(any::<u8>(), 0..80), 0..4_u32);
        vec(one.prop_map(|(identifier, value, form)| parameter(identifier, &value, form)), 0..6)
    }

    #[test]
    fn known_bytes() {
        assert_eq!(parameter(TRANSPORT_PARAMETER, &[], 0), SUPPORTED);
        assert_eq!(is_supported(&[]), Ok(false));
        assert_eq!(is_supported(&SUPPORTED), Ok(true));
        // max_idle_timeout of 30 s, as quinn writes it.
        assert_eq!(is_supported(&[0x01, 0x04, 0x80, 0, 0x75, 0x30]), Ok(false));
    }

    #[test]
    fn errors_name_the_bad_value() {
        let text = |bytes: &[u8]| is_supported(bytes).unwrap_err().to_string();
        assert_eq!(text(&[0x61, 0x9e, 2, 7, 7]), "scone_supported (0x219e) has 2 bytes: must be empty");
        assert_eq!(
            text(&[SUPPORTED, SUPPORTED].concat()),
            "scone_supported (0x219e) appears twice: must appear once"
        );
        assert_eq!(
            text(&[1, 1, 9, 4, 5, 0]),
            "transport parameters end within the one at byte 3: must be an identifier, a length and as many bytes"
        );
    }

    proptest! {
        #[test]
        fn found_at_any_place(others in others(), at: prop::sample::Index, form in 0..4_u32) {
            prop_assert_eq!(is_supported(&others.concat()), Ok(false));
            let mut with = others;
            let at = at.index(with.len() + 1);
            with.insert(at, parameter(TRANSPORT_PARAMETER, &[], form));
            prop_assert_eq!(is_supported(&with.concat()), Ok(true));
            with.insert(at, SUPPORTED.to_vec());
            prop_assert_eq!(is_supported(&with.concat()), Err(Error::Twice));
        }

        #[test]
        fn a_value_is_refused(others in others(), value in vec(any::<u8>(), 1..20), form in 0..4_u32) {
            let mut with = others;
            with.push(parameter(TRANSPORT_PARAMETER, &value, form));
            prop_assert_eq!(is_supported(&with.concat()), Err(Error::NotEmpty { len: value.len() }));
        }

        /// A list that ends early is whole up to a parameter's end, or refused.
        #[test]
        fn a_list_that_ends_early_is_refused(others in others(), cut: prop::sample::Index) {
            let whole = others.concat();
            let cut = cut.index(whole.len() + 1);
            let mut ends = others.iter().scan(0, |end, one| { *end += one.len(); Some(*end) });
            let at_end = cut == 0 || ends.any(|end| end == cut);
            prop_assert_eq!(is_supported(&whole[..cut]).is_ok(), at_end);
        }

        #[test]
        fn any_bytes_are_safe(bytes in vec(any::<u8>(), 0..64)) {
            let _ = is_supported(&bytes);
        }
    }
}

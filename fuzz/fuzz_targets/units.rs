//! Numbers with units, as users write them: what is read is finite, and shown it reads as the same.

#![no_main]

use flowstamp_laws::units::{Bytes, QueueLength, Rate, Ratio, Time};
use flowstamp_scenario::Buffer;
use libfuzzer_sys::fuzz_target;
use std::fmt::{Debug, Display};
use std::str::FromStr;

fn again<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    let shown = value.to_string();
    assert_eq!(shown.parse().ok().as_ref(), Some(&value), "{text:?} is shown as {shown:?}");
    Some(value)
}

fuzz_target!(|text: &str| {
    again::<Time>(text);
    again::<Bytes>(text);
    again::<QueueLength>(text);
    assert!(again::<Rate>(text).is_none_or(|rate| rate.bytes_per_sec().is_finite()), "{text:?}");
    assert!(again::<Ratio>(text).is_none_or(|ratio| ratio.get().is_finite()), "{text:?}");
    let _ = Buffer::from_str(text);
});

//! What the kernel says of parameters of the registry's laws that its own lack.

use super::Law;
use crate::refusal::Refusal;
use flowstamp_laws::Time;
use serde::Serialize;

/// What a timer of the kernel can keep: below, its lateness would be the interval; the router looks at its queue once in the longest.
pub const TIMER: [Time; 2] = [Time::from_micros(100), Time::from_secs(20)];
/// Round trips that bpf/laws.h is valid for.
pub const RTT: [Time; 2] = [Time::from_micros(10), Time::from_secs(20)];

/// Factors by which bpf/laws.h bounds what packets say.
pub const BOUND: [f64; 2] = [1.0, 1000.0];

/// How a value is written: as in a scenario.
fn shown(value: impl Serialize) -> String {
    match serde_json::to_value(value).unwrap_or_default() {
        serde_json::Value::String(text) => text,
        serde_json::Value::Null => "unset".to_owned(),
        value => value.to_string(),
    }
}

fn refused(law: &Law, key: &str, value: impl Serialize, whom: &str, right: &str) -> Refusal {
    let (law, value) = (law.name, shown(value));
    Refusal(format!("{law} parameter `{key}` = {value} cannot be carried out by {whom}; {right}"))
}

const KERNEL: &str = "the kernel's law";

/// A parameter that the kernel's law has not with this value.
pub fn cannot(law: &Law, key: &str, value: impl Serialize, right: &str) -> Refusal {
    refused(law, key, value, KERNEL, right)
}

/// A parameter of which the kernel's law has only the default.
pub fn lacks<T: PartialEq + Serialize>(law: &Law, key: &str, value: &T, default: &T) -> Result<(), Refusal> {
    lacked(law, key, value, default, KERNEL)
}

/// A parameter of which `whom` has only the default.
pub fn lacked<T: PartialEq + Serialize>(
    law: &Law,
    key: &str,
    value: &T,
    default: &T,
    whom: &str,
) -> Result<(), Refusal> {
    if value == default {
        return Ok(());
    }
    Err(refused(law, key, value, whom, &format!("leave it at {}", shown(default))))
}

/// A parameter that the kernel's law has from one value to another.
pub fn between<T: PartialOrd + Serialize + Copy>(
    law: &Law,
    key: &str,
    value: T,
    [least, most]: [T; 2],
) -> Result<T, Refusal> {
    if least <= value && value <= most {
        return Ok(value);
    }
    let right = format!("it must be {} to {}", shown(least), shown(most));
    Err(cannot(law, key, value, &right))
}

//! Refusals of registry parameters that the kernel's laws do not support.

use super::Law;
use crate::refusal::Refusal;
use flowstamp_laws::Time;
use serde::Serialize;

/// The range of a kernel timer's period. Below it, lateness would dominate; above it, the router would rarely
/// sample its queue.
pub const TIMER: [Time; 2] = [Time::from_micros(100), Time::from_secs(20)];
/// The range of RTTs for which bpf/laws.h is valid.
pub const RTT: [Time; 2] = [Time::from_micros(10), Time::from_secs(20)];

/// The range of the factors with which bpf/laws.h caps values from packets.
pub const BOUND: [f64; 2] = [1.0, 1000.0];

/// Formats a value as in a scenario.
pub fn shown(value: impl Serialize) -> String {
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

/// Refuses a value that the kernel's law does not support.
pub fn cannot(law: &Law, key: &str, value: impl Serialize, right: &str) -> Refusal {
    refused(law, key, value, KERNEL, right)
}

/// Refuses any value but the default, which is the only one that the kernel's law supports.
pub fn lacks<T: PartialEq + Serialize>(law: &Law, key: &str, value: &T, default: &T) -> Result<(), Refusal> {
    lacked(law, key, value, default, KERNEL)
}

/// Refuses any value but the default, which is the only one that `whom` supports.
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

/// Refuses a value outside the range that the kernel's law supports.
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

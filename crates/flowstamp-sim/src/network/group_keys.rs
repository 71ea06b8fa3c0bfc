//! Keys and laws that a group of flows must not have.

use super::{Result, error};
use crate::scenario::FlowGroup;

/// Refuses the first key of a group that is given although it is not for `what`.
pub(super) fn refuse_keys(group: &FlowGroup, given: &[(&str, bool)], what: &str) -> Result<()> {
    match given.iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            error(format!("flows.{}.{key}", group.name), format!("is not for {what}; leave it out"))
        }
        None => Ok(()),
    }
}

/// Refuses a law whose flows transfer no size, for `what`.
pub(super) fn check_transfers(group: &FlowGroup, what: &str) -> Result<()> {
    let (name, traits) = (group.law.name(), group.law.traits());
    if traits.datagrams || traits.governs {
        let message =
            format!("\"{name}\" cannot be that of {what}, whose flows transfer a size; name another");
        return error(format!("flows.{}.law", group.name), message);
    }
    Ok(())
}

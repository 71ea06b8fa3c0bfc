//! Throughput advice of links.

use super::{Result, error, of_full};
use crate::plan::SconePlan;
use crate::scenario::Scone;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_wire::scone::Signal;

/// The advice of a link with this router.
pub(super) fn plan(key: &str, given: Option<Scone>, router: &RouterSpec) -> Result<Option<SconePlan>> {
    let Some(given) = given else { return Ok(None) };
    of_full(key, "throughput advice")?;
    if cfg!(not(feature = "full")) {
        return Ok(None);
    }
    let Some(rate) = given.rate else {
        if matches!(router, RouterSpec::Rcp(_)) {
            return Ok(Some(SconePlan::Router));
        }
        let message = format!(
            "is missing, and the router \"{}\" computes no rate for all flows; give a rate, or router = \"rcp\"",
            router.name()
        );
        return error(format!("{key}.rate"), message);
    };
    let most = Signal::MAX.bits_per_sec().map_or(0.0, |bps| bps as f64);
    match Signal::at_most(rate.bps() as u64) {
        Some(signal) if rate.bps() <= most => Ok(Some(SconePlan::Policy(signal.bits()))),
        _ => error(format!("{key}.rate"), format!("is {rate}; it must be 100kbps to 199Gbps")),
    }
}

//! Threads and processes that change and sample the kernel's router while the lab runs.

use super::backlog;
use super::file::{Lab, Where};
use super::namespaces::{Id, Place};
use super::results::Router;
use super::shaper::{Changes, Shaper};
use super::stamped::{self, Sharer, Variables};
use crate::path::Epoch;
use crate::router::police::Flow;
use std::time::Duration;

/// The running threads and processes, which stop when this is dropped.
pub struct Watches {
    shaper: Option<Shaper>,
    sharer: Option<Sharer>,
    queue: backlog::Watch,
    law: stamped::Watch<Variables>,
    police: Option<stamped::Watch<Vec<Flow>>>,
    /// Whether SCONE is attached, and to which lab's router.
    scone: bool,
    id: Id,
}

impl Watches {
    /// Starts them if the router is the kernel's.
    pub fn start(id: &Id, lab: &Lab, epoch: Epoch) -> anyhow::Result<Option<Self>> {
        if lab.router.place != Where::Bpf {
            return Ok(None);
        }
        let every = Duration::from_nanos(lab.probes.every.as_ps() / 1000);
        let varies = lab.path.varies();
        Ok(Some(Self {
            shaper: varies.then(|| Shaper::start(id, lab.path.capacity(), epoch)).transpose()?,
            sharer: lab.router.share.map(|_| Sharer::start(id)).transpose()?,
            queue: backlog::Watch::start(id, Place::Router, "out", epoch)?,
            law: stamped::watch_law(id, lab, every, epoch)?,
            police: stamped::watch_police(id, lab, every, epoch)?,
            scone: lab.router.scone.is_some(),
            id: id.clone(),
        }))
    }

    /// Stops the rate changes, and returns their lateness.
    pub fn end_changes(&mut self) -> anyhow::Result<Option<Changes>> {
        self.shaper.take().map(Shaper::finish).transpose()
    }

    /// Stops the samplers and returns their samples.
    pub fn finish(mut self) -> anyhow::Result<Router> {
        anyhow::ensure!(
            self.sharer.as_mut().is_none_or(Sharer::is_running),
            "`router share` has ended before the lab"
        );
        let (queue, law) = (self.queue.finish(), self.law.finish());
        anyhow::ensure!(!queue.is_empty(), "the router's queue could not be read");
        let scone = if self.scone { stamped::scone_status(&self.id)? } else { serde_json::Value::Null };
        Ok(Router { queue, law, police: self.police.map(stamped::Watch::finish), scone })
    }
}

//! Links that do to packets what a link should not: lose, copy, hold back, and lead elsewhere for a while.

use flowstamp_laws::units::{Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of packets that have crossed a link, whatever they are: data, acks and those that open or end a flow. Each is decided
/// by itself. A queue's drops are something else, and are counted apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Impairments {
    /// Share of packets that are lost.
    pub loss: Ratio,
    /// Share of those not lost of which a copy goes on, too.
    pub duplicate: Ratio,
    /// Share of those that go on, copies among them, that are held back by `reorder_delay`, so that others overtake them.
    pub reorder: Ratio,
    /// How long they are held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_delay: Option<Time>,
    /// Times at which packets take another, longer route, in their order. What leaves the link after one of them overtakes what
    /// is still on the longer route.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Detour>,
}

/// A time at which packets take a longer route than the link's own, to the same end. What is assumed from the paths' RTTs does not
/// know of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detour {
    /// It begins: for packets that leave the link's transmitter from then on.
    pub from: Time,
    /// It is over. Default: it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// How much longer than the link's `delay` the way is.
    pub delay: Time,
}

impl Impairments {
    /// Whether they make sense: else the key that does not, and what would be right.
    ///
    /// # Errors
    /// The first key that makes no sense.
    pub fn check(&self) -> Result<(), (String, String)> {
        let refused = |key: &str, message| Err((key.to_owned(), message));
        for (key, share) in [("loss", self.loss), ("duplicate", self.duplicate), ("reorder", self.reorder)] {
            if !(0.0..=1.0).contains(&share.get()) {
                return refused(key, format!("is {share}; it is a share of packets, from 0 to 1 or 100%"));
            }
        }
        if self.reorder.get() > 0.0 && self.reorder_delay.is_none_or(|delay| delay == Time::ZERO) {
            let is = self.reorder_delay.map_or("is missing".to_owned(), |delay| format!("is {delay}"));
            let message = format!("{is}; where packets are held back (reorder) it must be longer than 0s");
            return refused("reorder_delay", message);
        }
        let mut free = Time::ZERO;
        for (number, detour) in self.detours.iter().enumerate() {
            let until = detour.until.unwrap_or(Time::MAX);
            if detour.from < free {
                let ends =
                    if free == Time::MAX { "has no end".to_owned() } else { format!("ends at {free}") };
                let message = format!("is {}, but the detour before {ends}", detour.from);
                return refused(&format!("detours[{number}].from"), message);
            }
            if until <= detour.from {
                let message = format!("is {until}; it must be later than from, {}", detour.from);
                return refused(&format!("detours[{number}].until"), message);
            }
            free = until;
        }
        Ok(())
    }
}

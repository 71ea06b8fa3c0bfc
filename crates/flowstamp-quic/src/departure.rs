//! A datagram of quinn's on its way out: the pace may hold it back, and a packet of ours may go before it.

use crate::controller::Flow;
use crate::records::SMALL;
use crate::sender::Sender;
use std::time::Instant;

/// Datagrams below this size are not paced and carry no packet of ours, bytes.
const UNPACED: usize = SMALL as usize;

/// A datagram that may leave.
#[derive(Debug)]
pub struct Departure<'a> {
    contents: &'a [u8],
    /// The datagram with a stamp packet or a SCONE packet before it, or with SCONE's indication behind it. `None` if it leaves
    /// unchanged.
    longer: Option<Vec<u8>>,
    is_announced: bool,
}

impl Departure<'_> {
    /// The bytes to send.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.longer.as_deref().unwrap_or(self.contents)
    }

    /// The bytes to send, as a vector.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.longer.unwrap_or_else(|| self.contents.to_vec())
    }
}

impl Flow {
    /// Prepares a datagram to leave at `now`. It counts once [`left`](Self::left) says that it was sent.
    ///
    /// # Errors
    ///
    /// The time until which the pace holds it back.
    pub fn leaving<'a>(
        &self,
        sender: &mut Sender,
        now: Instant,
        contents: &'a [u8],
    ) -> Result<Departure<'a>, Instant> {
        let paced = contents.len() >= UNPACED;
        if let Some(until) = if paced { sender.held(now) } else { None } {
            return Err(until);
        }
        self.stamps.learn(contents);
        let mut departure =
            Departure { contents, longer: self.scone.indicated(contents), is_announced: false };
        if departure.longer.is_none() && paced {
            // SCONE's packet must be the first of its datagram, as a stamp packet must: a datagram has one of them.
            departure.longer = self.scone.announced(now, contents, self.stamps.id_len());
            departure.is_announced = departure.longer.is_some();
            departure.longer = departure.longer.or_else(|| self.stamps.stamped(sender, now, contents));
        }
        Ok(departure)
    }

    /// Records that a datagram was sent. Only then does it use up the pace, and one of the SCONE packets at the start.
    pub fn left(&self, sender: &mut Sender, now: Instant, departure: &Departure<'_>) {
        let contents = departure.contents;
        if contents.len() >= UNPACED {
            sender.use_pace(now, contents.len());
        }
        if departure.is_announced {
            self.scone.note_announced(now, contents, self.stamps.id_len());
        }
        sender.on_departure(now, contents.len() as u64);
    }
}

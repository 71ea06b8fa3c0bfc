//! Who may begin on a medium that several stations share.
//!
//! A station that has something to send makes a request; once it is granted the medium, it sends one packet, and asks again
//! if it has more. Here is the ideal of it, which knows who waits: one transmission at a time, stations in the order of
//! their requests. A medium that only listens (802.11, [`super::dcf`]) differs in when it grants and in what may collide.
//!
//! What a link can carry that shares its medium depends on the others: a scenario that lets nobody know it says `rate.known = false`.

use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// Stations take turns.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    requests: VecDeque<u32>,
    /// A station has been granted the medium and has not begun.
    granted: bool,
    /// When the transmission that began last ends.
    free_at: Time,
}

/// Which station may begin, and when.
pub type Grant = (u32, Time);

impl Turns {
    /// `station` has something to send, and has no request that waits.
    pub fn request(&mut self, now: Time, station: u32) -> Option<Grant> {
        self.requests.push_back(station);
        self.grant(now)
    }

    /// The station that was granted the medium sends until `until`, and then has `more` to send or not.
    pub fn begin(&mut self, now: Time, station: u32, until: Time, more: bool) -> Option<Grant> {
        self.granted = false;
        self.free_at = until;
        if more {
            self.requests.push_back(station);
        }
        self.grant(now)
    }

    fn grant(&mut self, now: Time) -> Option<Grant> {
        if self.granted {
            return None;
        }
        let station = self.requests.pop_front()?;
        self.granted = true;
        Some((station, self.free_at.max(now)))
    }
}

//! Order of transmissions on a medium that several stations share.
//!
//! A station with a packet makes a request. Once granted, it sends one packet and requests again if it has more. This
//! is an ideal medium that knows all requests: one transmission at a time, stations in the order of their requests. A
//! medium that only listens (802.11, [`super::dcf`]) grants at other times and may have collisions.
//!
//! The capacity left to a link on a shared medium depends on the other stations. A scenario sets `rate.known = false`
//! to hide it from the laws.

use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// A medium whose stations take turns.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    requests: VecDeque<u32>,
    /// A station has been granted the medium and has not begun to send.
    granted: bool,
    /// When the last transmission ends.
    free_at: Time,
}

/// The station that may begin, and when.
pub type Grant = (u32, Time);

impl Turns {
    /// Queues a request of `station`, which must not have one already.
    pub fn request(&mut self, now: Time, station: u32) -> Option<Grant> {
        self.requests.push_back(station);
        self.grant(now)
    }

    /// Takes note that the granted station sends until `until`. With `more` it requests again.
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

//! The part of a served link that priority flow control uses: it stops the link, and lets it go on.

use super::hold::Hold;
use super::laws::Backlog;
use super::plain::Plain;
use super::served::Served;
use crate::packet::Packet;
use flowstamp_laws::queue::{Arrival, Limit};
use flowstamp_laws::units::Time;

impl Served {
    /// Returns this link with a queue that a pause can stop. `limit` is the buffer of packets that thresholds have not
    /// admitted.
    #[must_use]
    pub fn holding(mut self, limit: Limit) -> Self {
        self.laws.queue.set_limit(Limit::Bytes(u64::MAX));
        let admitted = Backlog::default();
        let hold = Hold { stopped: false, stalled: false, announced: false, admitted, limit };
        self.hold = Some(Box::new(hold));
        self
    }

    /// Whether an arriving packet has room. Counts a drop if it has none. On a stopped link no packet can leave at once.
    #[cold]
    pub(super) fn has_room(&mut self, arrival: &mut Arrival, packet: &Packet) -> bool {
        let Some(hold) = &self.hold else { return true };
        if hold.stopped {
            arrival.idle_since = None;
        }
        let Backlog { bytes, packets } = self.laws.backlog();
        let (bytes, packets) = (bytes - hold.admitted.bytes, packets - hold.admitted.packets);
        let room = arrival.idle_since.is_some()
            || hold.announced
            || hold.limit.admits(bytes, packets, u32::from(packet.size));
        if !room {
            self.laws.stats.lose(packet);
        }
        room
    }

    /// Says whether packets that arrive from now on were admitted by thresholds.
    pub fn announce(&mut self, admitted: bool) {
        if let Some(hold) = &mut self.hold {
            hold.announced = admitted;
        }
    }

    /// Takes note that a packet of `size` bytes that thresholds have admitted waits, or leaves.
    pub fn note_admitted(&mut self, size: u16, waits: bool) {
        match &mut self.hold {
            Some(hold) if waits => hold.admitted.add(size),
            Some(hold) => hold.admitted.take(size),
            None => {}
        }
    }

    /// Whether a pause has stopped the link.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.stopped)
    }

    /// Stops the link after the packet in transmission.
    pub fn stop(&mut self) {
        if let Some(hold) = &mut self.hold {
            hold.stopped = true;
        }
    }

    /// Puts off the choice of the next packet if the link is stopped. Returns whether it is.
    pub fn stalls(&mut self) -> bool {
        let Some(hold) = self.hold.as_mut().filter(|hold| hold.stopped) else { return false };
        hold.stalled = true;
        self.choice_due = false;
        true
    }

    /// Lets the link go on. Returns when to choose the next packet, if that was put off.
    pub fn go_on(&mut self, line: &Plain, now: Time) -> Option<Time> {
        let hold = self.hold.as_mut()?;
        hold.stopped = false;
        let stalled = std::mem::take(&mut hold.stalled);
        self.choice_due |= stalled;
        stalled.then(|| line.free_at().max(now))
    }
}

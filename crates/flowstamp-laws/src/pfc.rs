//! Priority flow control (PFC, IEEE 802.1Qbb): when a switch pauses a link that fills it, and how much room that needs.
//!
//! The far end of a link counts the bytes that came over it and wait. A packet of s bytes changes the count:
//!
//! ```text
//!   it arrives:                  lost if held + s > xoff + headroom
//!   it waits:                    held += s; above xoff, send a pause to the sender of the link
//!   its transmission begins:     held -= s; at xon or below, send a resume
//! ```
//!
//! Pauses and resumes alternate. The headroom is the most that can arrive after the packet that exceeds `xoff`. With rate r
//! and delay d of the link, r' and d' of the link back, and packets of at most m bytes:
//!
//! ```text
//!   m                          the packet that exceeds xoff
//!   r (max(m, 64) + 64) / r'   the frame that the link back is sending, and then the pause frame
//!   r (d' + d)                 until the pause frame arrives, and what is in flight then
//!   m                          the packet that the sender is sending
//! ```
//!
//! IEEE 802.1Qbb (annex O) and DCQCN (Zhu et al., SIGCOMM 2015, section 4) count the same parts. They add the delay of
//! interface and PHY, which a caller may include in d and d'. The default of `xon` is two packets below `xoff`, as in the switch of
//! HPCC's simulator (`switch-mmu.cc`).
//!
//! Deviations:
//!
//! 1. A pause lasts until the resume. A real pause has a duration, and is repeated.
//! 2. The switch counts only packets that wait. A packet whose transmission begins at once is not counted.

use crate::units::{Bytes, Rate, Time};

/// Size of a pause frame, the smallest Ethernet frame (IEEE 802.3, clause 31; 802.1Qbb), bytes.
pub const PAUSE_FRAME: u16 = 64;

/// The far end of a link with flow control: its count of waiting bytes, and its decisions.
#[derive(Clone, Debug)]
pub struct Ingress {
    xoff: u64,
    xon: u64,
    /// Room for waiting bytes: `xoff` plus headroom.
    room: u64,
    held: u64,
    pausing: bool,
}

impl Ingress {
    /// Creates the state of a link from which no packet waits. All arguments are bytes, and `xon` is at most `xoff`.
    #[must_use]
    pub fn new(xoff: u64, xon: u64, headroom: u64) -> Self {
        debug_assert!(xon <= xoff, "a resume comes below the pause");
        Self { xoff, xon, room: xoff.saturating_add(headroom), held: 0, pausing: false }
    }

    /// Whether there is room for a packet of `size` bytes. If not, it is lost.
    #[must_use]
    pub fn admits(&self, size: u64) -> bool {
        self.held + size <= self.room
    }

    /// Counts an admitted packet that has to wait. Returns whether to send a pause.
    #[must_use]
    pub fn waits(&mut self, size: u64) -> bool {
        self.held += size;
        let pause = self.held > self.xoff && !self.pausing;
        self.pausing |= pause;
        pause
    }

    /// Removes a packet that waited from the count, because its transmission begins. Returns whether to send a resume.
    #[must_use]
    pub fn leaves(&mut self, size: u64) -> bool {
        self.held -= size;
        let resume = self.pausing && self.held <= self.xon;
        self.pausing &= !resume;
        resume
    }

    /// Bytes that wait.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// A pause is sent above this many bytes.
    #[must_use]
    pub fn xoff(&self) -> u64 {
        self.xoff
    }

    /// A resume is sent at this many bytes or below.
    #[must_use]
    pub fn xon(&self) -> u64 {
        self.xon
    }

    /// Room above `xoff`, bytes.
    #[must_use]
    pub fn headroom(&self) -> u64 {
        self.room - self.xoff
    }
}

/// Computes the headroom in bytes: the most that can arrive above `xoff`. `back_rate` and `back_delay` are those of the link
/// that carries pauses. Packets have at most `mtu` bytes both ways.
#[must_use]
pub fn headroom(rate: Rate, back_rate: Rate, delay: Time, back_delay: Time, mtu: u64) -> u64 {
    let frames = mtu.max(u64::from(PAUSE_FRAME)) + u64::from(PAUSE_FRAME);
    let wait = back_rate.tx_time(Bytes::new(frames)).saturating_add(back_delay).saturating_add(delay);
    2 * mtu + (rate.bytes_per_sec() * wait.as_secs_f64()).ceil() as u64
}

/// The default of `xon`, bytes: two packets of `mtu` bytes below `xoff`.
#[must_use]
pub fn default_xon(xoff: u64, mtu: u64) -> u64 {
    xoff.saturating_sub(2 * mtu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// By hand, at 8 Gb/s, which is a byte in each nanosecond: 20 us both ways, 1064 bytes of frames, and two packets.
    #[test]
    fn headroom_by_hand() {
        let (rate, delay) = (Rate::from_gbps(8.0), Time::from_micros(10));
        assert_eq!(headroom(rate, rate, delay, delay, 1000), 20_000 + 1_064 + 2_000);
        // A link back of half the rate takes twice as long for the frames.
        let slow = Rate::from_gbps(4.0);
        assert_eq!(headroom(rate, slow, delay, delay, 1000), 20_000 + 2_128 + 2_000);
        // Packets smaller than a pause frame still find one ahead.
        assert_eq!(headroom(rate, rate, Time::ZERO, Time::ZERO, 40), 128 + 80);
    }

    proptest! {
        /// The count stays within the room, pauses and resumes alternate, a pause comes only above `xoff`, and a resume
        /// only at `xon` or below.
        #[test]
        fn pauses_and_resumes_alternate(
            xoff in 1u64..20_000,
            below in 0u64..20_000,
            headroom in 0u64..20_000,
            steps in proptest::collection::vec((any::<bool>(), 1u64..3_000), 1..300),
        ) {
            let mut link = Ingress::new(xoff, xoff.saturating_sub(below), headroom);
            let (mut queue, mut paused) = (VecDeque::new(), false);
            for (arrives, size) in steps {
                let (mut pause, mut resume) = (false, false);
                if arrives {
                    let room = queue.iter().sum::<u64>() + size <= xoff + headroom;
                    prop_assert_eq!(link.admits(size), room);
                    if room {
                        queue.push_back(size);
                        pause = link.waits(size);
                    }
                } else if let Some(size) = queue.pop_front() {
                    resume = link.leaves(size);
                }
                let held = link.held();
                prop_assert_eq!(held, queue.iter().sum::<u64>());
                prop_assert!(held <= link.xoff() + link.headroom());
                prop_assert!(!pause || !paused && held > xoff);
                prop_assert!(!resume || paused && held <= link.xon());
                paused = (paused || pause) && !resume;
                // A frame is sent as soon as it must be.
                prop_assert!(paused || held <= xoff);
                prop_assert!(!paused || held > link.xon());
            }
        }

        /// The headroom holds all that a sender at full rate sends until a pause stops it, while nothing leaves the switch.
        /// The rates send a byte in whole picoseconds, so that no rounding helps or harms.
        #[test]
        fn headroom_holds_what_arrives_until_the_sender_stops(
            gbps in prop_oneof![Just(1.0), Just(10.0), Just(40.0), Just(100.0), Just(400.0)],
            back_gbps in prop_oneof![Just(1.0), Just(10.0), Just(40.0), Just(100.0), Just(400.0)],
            delay_ns in 0u64..3_000,
            back_delay_ns in 0u64..3_000,
            mtu in 64u64..9_001,
            xoff in 1u64..30_000,
        ) {
            let (rate, back_rate) = (Rate::from_gbps(gbps), Rate::from_gbps(back_gbps));
            let (delay, back_delay) = (Time::from_nanos(delay_ns), Time::from_nanos(back_delay_ns));
            let mut link = Ingress::new(xoff, 0, headroom(rate, back_rate, delay, back_delay, mtu));
            let sending = rate.tx_time(Bytes::new(mtu));
            let (mut begins, mut stops) = (Time::ZERO, Time::MAX);
            // A packet that begins when the pause arrives is still sent.
            while begins <= stops {
                let arrives = begins + sending + delay;
                prop_assert!(link.admits(mtu), "{} of {:?} at {:?}", mtu, link, arrives);
                if link.waits(mtu) {
                    // The link back has just begun a packet.
                    stops = arrives + back_rate.tx_time(Bytes::new(mtu + u64::from(PAUSE_FRAME))) + back_delay;
                }
                begins += sending;
            }
            // It is not too much: what is left is less than the two packets that need not come whole.
            prop_assert!(link.xoff() + link.headroom() - link.held() <= 2 * mtu);
        }
    }
}

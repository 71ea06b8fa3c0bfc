//! A-MPDUs: frames for one receiver that a station sends in one turn on the medium, and the block ack that answers them.
//!
//! ```text
//!   medium   ...|<- DIFS ->|slot|slot| preamble, delimiter MPDU pad, delimiter MPDU pad, ... |SIFS| block ack |<- DIFS ->|
//! ```
//!
//! Each MPDU has a delimiter of 4 bytes and is padded to a multiple of 4 (802.11-2012, clause 8.6.1). A compressed block
//! ack has 32 bytes (8.3.1.9.3) and the rate of an ack. It reports each MPDU, and each may be lost by an error. The MPDUs
//! that are lost go again in the next turn, with new ones. Each has the retry limits that a single frame has. The
//! receiver passes packets on in order, so those behind a lost one wait for it (9.21.7). All other rules are those of
//! single frames. The contention window doubles if no block ack comes. A turn with one MPDU is a frame with an ack.
//!
//! Deviations from the standard:
//! 1. A block ack covers the 64 MPDUs from the oldest one on. Here it covers `ampdu_frames` of them, so that a station
//!    has one limit. With 64 both are the same.
//! 2. A block ack request announces that an MPDU was given up. Here the receiver learns it at once, because the request
//!    is short and rare.
//! 3. The RTS threshold counts the whole transmission. Here it counts the longest MPDU, as in Linux's mac80211.
//!    Otherwise the default threshold would announce all A-MPDUs.
//! 4. In 802.11n the last MPDU has no padding. Here each has, as in 802.11ac. Padding is at most 3 bytes.
//! 5. Only PHYs of 802.11n and later can send A-MPDUs. Here any PHY can. `rates` can name the rates of later PHYs.
//! 6. No transmission lasts longer than its limit. Here limits are checked when frames are gathered. If
//!    the station's rate falls before its turn, the turn can last longer than `ampdu_time`.

use super::air::{Air, Exchange};
use super::{Cell, Frame, Happened, Params};
use flowstamp_laws::router::Batch;
use flowstamp_laws::units::{Rate, Time};
use std::collections::VecDeque;

/// Bytes of an MPDU's delimiter.
const DELIMITER: u64 = 4;
/// Bytes of a compressed block ack, with its FCS.
const BLOCK_ACK: u64 = 32;

/// The limits of an A-MPDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    frames: u32,
    bytes: u64,
    time: Time,
}

impl Limits {
    /// The limits; `None` if each frame has a turn of its own.
    pub fn of(p: &Params) -> Option<Self> {
        let limits = Self { frames: p.ampdu_frames, bytes: p.ampdu_bytes.get(), time: p.ampdu_time };
        (cfg!(feature = "full") && p.ampdu_frames > 1).then_some(limits)
    }

    /// Maximum number of MPDUs of `bytes` bytes, with delimiter and padding, in an A-MPDU.
    fn most(&self, air: &Air, bytes: f64, rate: Rate) -> u32 {
        let fits = |n: u32| {
            let bytes = (f64::from(n) * bytes) as u64;
            bytes <= self.bytes && air.frame(bytes, rate) <= self.time
        };
        let (mut least, mut beyond) = (1, self.frames + 1);
        while beyond - least > 1 {
            let middle = least.midpoint(beyond);
            if fits(middle) { least = middle } else { beyond = middle }
        }
        least
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waits,
    Arrived,
    GivenUp,
}

#[derive(Clone, Copy, Debug)]
struct Mpdu {
    packet: u32,
    since: Time,
    /// Failed attempts that count towards the short and the long retry limit.
    short: u32,
    long: u32,
    fate: Fate,
}

/// The MPDUs of a turn on the medium.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    frames: u32,
    packet_bytes: u64,
    /// Bytes of all MPDUs with delimiters and padding.
    padded: u64,
    longest: u32,
}

/// The frames in a station's MAC, in order. The first is the oldest one that the receiver still waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    mpdus: VecDeque<Mpdu>,
    /// The waiting MPDUs that the next turn sends.
    next: Turn,
    /// The MPDUs sent since the last ack.
    since: Turn,
    /// The MPDUs that the last ack answered, with all sent since the ack before it.
    last: Turn,
    /// Number of MPDUs that the last ack reports as received.
    arrived: u32,
}

impl Window {
    pub fn is_empty(&self) -> bool {
        self.mpdus.is_empty()
    }

    /// Whether a frame goes again.
    pub fn repeats(&self) -> bool {
        self.mpdus.iter().any(|m| m.fate == Fate::Waits && m.short + m.long > 0)
    }

    fn count(&mut self, overhead: u64) {
        self.next = Turn::default();
        for mpdu in self.mpdus.iter().filter(|m| m.fate == Fate::Waits) {
            self.next.frames += 1;
            self.next.packet_bytes += u64::from(mpdu.packet);
            self.next.padded += padded(mpdu.packet, overhead);
            self.next.longest = self.next.longest.max(mpdu.packet);
        }
    }

    /// Counts a failed attempt of all that wait, and gives up those that are at a limit.
    fn fail(&mut self, announced: bool, short_limit: u32, long_limit: u32) {
        for mpdu in self.mpdus.iter_mut().filter(|m| m.fate == Fate::Waits) {
            *(if announced { &mut mpdu.long } else { &mut mpdu.short }) += 1;
            if mpdu.short >= short_limit || mpdu.long >= long_limit {
                mpdu.fate = Fate::GivenUp;
            }
        }
    }
}

/// Bytes of a packet's MPDU in an A-MPDU.
fn padded(packet: u32, overhead: u64) -> u64 {
    DELIMITER + (u64::from(packet) + overhead).next_multiple_of(4)
}

impl Cell {
    /// Whether stations send A-MPDUs. Frames then come by [`add`](Self::add).
    #[inline]
    #[must_use]
    pub fn aggregates(&self) -> bool {
        cfg!(feature = "full") && self.limits.is_some()
    }

    /// Adds a frame to those that go in the station's next turn, if they have the same receiver and it fits.
    /// [`offer_added`](Self::offer_added) must follow before the next step.
    pub fn add(&mut self, now: Time, station: u32, frame: Frame) -> bool {
        let Some(limits) = self.limits else { return false };
        let rate = self.rate(station, frame.to);
        let overhead = self.air.overhead;
        let s = &mut self.stations[station as usize];
        if !s.window.is_empty() {
            let bytes = s.window.next.padded + padded(frame.bytes, overhead);
            let fits = bytes <= limits.bytes && self.air.frame(bytes, rate) <= limits.time;
            if !fits || frame.to != s.to || s.window.mpdus.len() >= limits.frames as usize {
                return false;
            }
            s.stats.offered += 1;
        }
        s.to = frame.to;
        let mpdu = Mpdu { packet: frame.bytes, since: now, short: 0, long: 0, fate: Fate::Waits };
        s.window.mpdus.push_back(mpdu);
        s.window.count(overhead);
        true
    }

    /// Whether the station has as many frames as the limit allows.
    #[must_use]
    pub fn is_full(&self, station: u32) -> bool {
        let held = self.stations[station as usize].window.mpdus.len();
        self.limits.is_none_or(|limits| held >= limits.frames as usize)
    }

    /// Offers the frames that were added, as [`offer`](Self::offer) does with one. Returns whether the MAC has a frame.
    pub fn offer_added(&mut self, now: Time, station: u32, uniform: impl FnMut(u32) -> f64) -> bool {
        let s = &self.stations[station as usize];
        let Some(first) = s.window.mpdus.front() else { return false };
        if s.waiting.is_none() {
            let frame = Frame { bytes: first.packet, to: s.to };
            self.offer(now, station, frame, uniform);
        } else if self.phase == super::Phase::Idle && self.begin >= now {
            self.plan::<true>();
        }
        true
    }

    /// Steps a cell whose stations send A-MPDUs, or that reports acks.
    #[cold]
    #[inline(never)]
    pub(super) fn special_step(
        &mut self,
        now: Time,
        uniform: impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        self.step_as::<true>(now, uniform, told);
    }

    /// Offers a frame to a cell whose stations send A-MPDUs, or that reports acks.
    #[cold]
    #[inline(never)]
    pub(super) fn special_offer(
        &mut self,
        now: Time,
        station: u32,
        frame: Frame,
        uniform: impl FnMut(u32) -> f64,
    ) {
        self.offer_as::<true>(now, station, frame, uniform);
    }

    /// Adds a station, as [`enter`](Self::enter) does, with the frames that wait.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_batch(&mut self, station: u32, at: Time, rate: Rate) {
        self.enter_with(station, at, self.batch_exchange(station, rate));
    }

    /// The exchange of the frames that wait.
    fn batch_exchange(&self, station: u32, rate: Rate) -> Exchange {
        let Turn { frames, padded, longest, .. } = self.stations[station as usize].window.next;
        if frames <= 1 {
            return self.air.exchange(longest, rate);
        }
        let rts = u64::from(longest) + self.air.overhead > self.air.rts_threshold;
        self.air.exchange_of(padded, BLOCK_ACK, rts, rate)
    }

    /// Handles the end of a data frame in a cell with A-MPDUs, or whose acks are told. Returns whether any frame arrives.
    #[cold]
    #[inline(never)]
    pub(super) fn special_data_ends(
        &mut self,
        now: Time,
        station: u32,
        lost: f64,
        uniform: &mut impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) -> bool {
        self.special_sends(station, false);
        if self.aggregates() {
            let good = self.batch_arrives(station, lost, uniform);
            if good {
                self.release(now, station, told);
            }
            return good;
        }
        let good = lost <= 0.0 || uniform(station) >= lost;
        if good {
            told(Happened::Delivered { station });
        }
        good
    }

    /// Counts an attempt of a station to send. `announces` says that the attempt was only an RTS.
    #[cold]
    #[inline(never)]
    pub(super) fn special_sends(&mut self, station: u32, announces: bool) {
        let s = &mut self.stations[station as usize];
        s.stats.retries += u64::from(s.window.repeats());
        if self.reports && !announces {
            self.sends(station);
        }
    }

    /// Handles the end of an ack in such a cell.
    #[cold]
    #[inline(never)]
    pub(super) fn special_ack_ends(&mut self, now: Time, station: u32, told: &mut impl FnMut(Happened)) {
        if self.reports {
            self.measure(now, station);
            told(Happened::Acked { station });
        }
        if self.aggregates() {
            let announced = self.exchange(station).rts;
            self.batch_ends(now, station, (true, announced), told);
        } else {
            self.done(now, station, true, told);
        }
    }

    /// Draws which frames arrive, when their transmission ends. Returns whether any does.
    fn batch_arrives(&mut self, station: u32, lost: f64, uniform: &mut impl FnMut(u32) -> f64) -> bool {
        let acked_at = self.begin + self.exchange(station).ack;
        let overhead = self.air.overhead;
        let s = &mut self.stations[station as usize];
        let sent = s.window.next.frames;
        s.window.arrived = 0;
        for mpdu in s.window.mpdus.iter_mut().filter(|m| m.fate == Fate::Waits) {
            if lost <= 0.0 || uniform(station) >= lost {
                mpdu.fate = Fate::Arrived;
                s.window.arrived += 1;
                s.stats.delay += acked_at - mpdu.since;
            }
        }
        s.stats.sent += u64::from(s.window.arrived);
        s.stats.mpdus += u64::from(sent);
        s.stats.mpdus_lost += u64::from(sent - s.window.arrived);
        s.window.count(overhead);
        s.window.arrived > 0
    }

    /// Passes on, in order, the frames that arrived, and drops those that were given up.
    fn release(&mut self, now: Time, station: u32, told: &mut impl FnMut(Happened)) {
        let s = &mut self.stations[station as usize];
        while let Some(mpdu) = s.window.mpdus.front().copied() {
            match mpdu.fate {
                Fate::Waits => return,
                Fate::Arrived => told(Happened::PassedOn { station }),
                Fate::GivenUp => {
                    s.stats.given_up += 1;
                    s.stats.delay += now - mpdu.since;
                    told(Happened::Lost { station });
                }
            }
            s.window.mpdus.pop_front();
        }
    }

    /// Ends a turn. `acked`: some frames arrived, and the block ack has reported them.
    pub(super) fn batch_ends(
        &mut self,
        now: Time,
        station: u32,
        (acked, announced): (bool, bool),
        told: &mut impl FnMut(Happened),
    ) {
        let (short_limit, long_limit) = (self.short_limit, self.long_limit);
        self.stations[station as usize].window.fail(announced, short_limit, long_limit);
        self.release(now, station, told);
        let (cw_min, cw_max) = (self.cw_min, self.cw_max);
        let overhead = self.air.overhead;
        let s = &mut self.stations[station as usize];
        s.window.count(overhead);
        s.stats.exchanges += u64::from(acked);
        s.cw = if acked || s.window.is_empty() { cw_min } else { (2 * s.cw + 1).min(cw_max) };
        if s.window.is_empty() {
            s.waiting = None;
            s.freed = now;
            told(Happened::Free { station, sent: true });
        } else {
            told(Happened::Room { station });
        }
    }

    /// Makes the cell report [`Happened::Acked`] after each ack from now on.
    pub fn report(&mut self) {
        (self.reports, self.special) = (true, cfg!(feature = "full"));
    }

    /// Starts a new batch at `now`. Frames that the station sent before it became idle no longer count.
    #[inline]
    pub(super) fn begins_anew(&mut self, now: Time, station: u32) {
        let s = &mut self.stations[station as usize];
        (s.from, s.window.since) = (now, Turn::default());
    }

    /// Counts the frames that a station has sent, whether they arrived or not.
    fn sends(&mut self, station: u32) {
        let aggregates = self.aggregates();
        let s = &mut self.stations[station as usize];
        if !aggregates {
            let longest = s.waiting.map_or(0, |w| w.frame.bytes);
            let packet_bytes = u64::from(longest);
            s.window.next =
                Turn { frames: 1, packet_bytes, padded: packet_bytes + self.air.overhead, longest };
            s.window.arrived = 1;
        }
        let Window { since, next, .. } = &mut s.window;
        since.frames += next.frames;
        since.packet_bytes += next.packet_bytes;
        since.padded += next.padded;
    }

    /// Measures the turn that an ack ends now.
    fn measure(&mut self, now: Time, station: u32) {
        let s = &mut self.stations[station as usize];
        s.window.last = std::mem::take(&mut s.window.since);
        s.elapsed = now.saturating_sub(s.from);
        s.from = now;
    }

    /// Returns what the station sent until its last ack. `behind`: packets waited when the MAC took its frames.
    #[must_use]
    pub fn batch(&self, station: u32, behind: bool) -> Batch {
        let s = &self.stations[station as usize];
        let Turn { frames, packet_bytes, padded, .. } = s.window.last;
        let count = f64::from(frames.max(1));
        let (frame_bytes, rate) = (padded as f64 / count, s.exchange.rate);
        let most = match &self.limits {
            Some(limits) if !behind => limits.most(&self.air, frame_bytes, rate).max(frames),
            _ => frames,
        };
        Batch {
            at: s.from,
            frames,
            acked: s.window.arrived,
            most,
            packet_bytes: packet_bytes as f64 / count,
            frame_bytes,
            rate,
            elapsed: s.elapsed,
        }
    }
}

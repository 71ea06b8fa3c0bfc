//! A cell of IEEE 802.11 whose stations share the medium by DCF and all hear one another.
//!
//! ```text
//!   medium   ...busy |<- DIFS ->|slot|slot|slot| DATA |SIFS| ACK |<- DIFS ->|slot|...
//!                    |<- EIFS instead, after a frame that could not be read ->|
//!   DIFS = SIFS + 2 slots        EIFS = SIFS + an ack at the lowest mandatory rate + DIFS
//! ```
//!
//! A station that gets a frame while the medium is idle and its backoff is over sends once the medium has been idle for
//! DIFS. Otherwise it draws a backoff, uniform from 0 to CW slots. Each slot in which the medium is idle, after DIFS,
//! counts the backoff down. While the medium is busy, the remaining slots are kept (freezing). Where several backoffs
//! end at the same instant, the frames collide and none arrives. CW becomes 2 CW + 1, at most CWmax, and each sender
//! draws anew. After as many attempts as the retry limit, the frame is given up. After each exchange, and after giving
//! up, CW is CWmin and a backoff is drawn, whether there is a next frame or not. Frames above a threshold are announced
//! by an RTS, and then only RTSs collide. All this is clause 9.3 of IEEE 802.11-2012.
//!
//! [`Cell`] does not simulate slots one by one. When the medium becomes idle it computes the winner and the end of its
//! transmission, and computes them anew when a frame comes in before. A frame that arrives takes two steps, the end of
//! the data and the end of the ack. A collision takes one, and so does a frame lost by an error. A step looks once at
//! each station that has a frame or a backoff.
//!
//! Stations may send several frames in one turn (`ampdu.rs`).
//!
//! Range: slots of a nanosecond or more; any number of stations, each with one frame or one A-MPDU at a time.
//!
//! Deviations (the standard says / we do / because):
//! 1. ACKTimeout is SIFS, a slot and the PHY's preamble detection time (9.3.2.8), after which the senders of a
//!    collision may begin while EIFS still runs for the others / the senders wait for EIFS, as the others do / EIFS
//!    exists so that all begin together, and models of DCF assume it. Slots shifted against each other by parts of a
//!    slot would need a model of carrier sensing. With `ack_timeout` it is as the standard says, and DIFS follows, as
//!    in ns-3.
//! 2. A signal takes a microsecond for 300 m / it takes no time / a slot includes it, and the distances between
//!    stations are not known.
//! 3. Acks and CTS may be lost / only data frames are, by `error_rate` / they are short and sent at low rates.
//! 4. Frames may be fragmented, sent to all, or of another priority / none is.
//! 5. A frame is given up when its ACKTimeout is over / when its last transmission ends / nothing can begin in between.
//!
//! With [`Rules::Ns2`](flowstamp_scenario::wireless::Rules) it follows ns-2.35's mac/mac-802_11.cc, with its
//! `bugFix_timer_`. There, 9.3.4.3's slots are drawn from 0 to CW-1. Deviation 1 differs: a station that hears
//! another's frame end after its own waits for EIFS and then for DIFS. The one with the longest frame waits for the end
//! of ACKTimeout and then for DIFS. Two things are not taken over: ARP, and `RTSThreshold_` counting the bytes of the
//! PLCP as well.

mod air;
mod ampdu;
mod attempt;
mod counts;
mod heard;

use crate::FULL;
use air::{Air, Exchange};
pub use counts::{Medium, Stats};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_scenario::wireless::Rules;
pub use flowstamp_scenario::wireless::{DcfParams as Params, StationParams};
pub use heard::{Kind, Transmission};

/// A frame that a station sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of the packet; headers of LLC and MAC come on top.
    pub bytes: u32,
    /// The receiving station.
    pub to: u32,
}

/// An outcome that a step reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The data frame ended and its receiver got it without error.
    Delivered {
        /// The sending station.
        station: u32,
    },
    /// The receiver of A-MPDUs passes on the station's oldest frame.
    PassedOn {
        /// The sending station.
        station: u32,
    },
    /// An ack or a block ack ended the station's turn. The cell tells this only after [`Cell::report`].
    Acked {
        /// The sending station.
        station: u32,
    },
    /// The station's oldest frame of an A-MPDU was given up at the retry limit.
    Lost {
        /// The sending station.
        station: u32,
    },
    /// Frames of an A-MPDU go again, and others may [join](Cell::add) them.
    Room {
        /// The sending station.
        station: u32,
    },
    /// The station's MAC has finished its frame and accepts the next one.
    Free {
        /// The station whose MAC it is.
        station: u32,
        /// The frame was acknowledged; otherwise it was given up at the retry limit. True after an A-MPDU, whose frames
        /// are [told](Self::Lost) one by one.
        sent: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    frame: Frame,
    since: Time,
}

#[derive(Clone, Debug)]
struct Station {
    rate: Option<Rate>,
    error_rate: f64,
    waiting: Option<Waiting>,
    /// Durations of the exchange for its frame, once it is about to be sent.
    exchange: Exchange,
    cw: u32,
    /// A backoff was drawn and is not over: `slots` remain, possibly 0.
    backing: bool,
    slots: u32,
    /// Failed attempts of the frame that count towards the short and the long retry limit.
    short: u32,
    long: u32,
    /// In the idle period with this number, its slots begin at this time instead of at `Cell::from`.
    own: (u64, Time),
    /// The station is in `Cell::contenders`.
    contends: bool,
    /// Frames of A-MPDUs and their receiver; empty if stations send single frames.
    window: ampdu::Window,
    to: u32,
    /// Time of the previous ack, or of the first frame after an empty MAC.
    from: Time,
    /// Time when the MAC became empty.
    freed: Time,
    /// Duration of the last turn.
    elapsed: Time,
    stats: Stats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No station sends before `begin`.
    Idle,
    /// One station sends up to the end of its data frame.
    Data,
    /// The receiver acknowledges.
    Ack,
    /// Several stations send.
    Collision,
}

/// A cell of stations that share a medium.
#[derive(Clone, Debug)]
pub struct Cell {
    air: Air,
    rules: Rules,
    cw_min: u32,
    cw_max: u32,
    short_limit: u32,
    long_limit: u32,
    /// Limits of A-MPDUs, if stations send them.
    limits: Option<ampdu::Limits>,
    /// Whether the cell reports each ack ([`Happened::Acked`]).
    reports: bool,
    /// Whether stations send A-MPDUs or the cell reports acks.
    special: bool,
    stations: Vec<Station>,
    /// Stations that have a frame or a backoff, in no order.
    contenders: Vec<u32>,
    phase: Phase,
    /// The medium is busy until this time, by signals or by a reservation.
    busy_until: Time,
    /// DIFS or EIFS ends here and slots begin, except for stations with a beginning of their own.
    from: Time,
    /// Number of this idle period.
    period: u64,
    /// The stations that send next, or now.
    senders: Vec<u32>,
    /// When the `senders` begin, or began.
    begin: Time,
    /// When the senders' frames end, or the ack.
    until: Time,
    medium: Medium,
    /// Recorded frames; `None` unless a capture listens.
    heard: Option<Vec<Transmission>>,
}

impl Cell {
    /// Makes a cell whose stations are numbered 0, 1, ... in the order given. At most one of them is the access point.
    #[must_use]
    pub fn new(params: &Params, stations: &[StationParams]) -> Self {
        let air = Air::new(params);
        let station = |s: &StationParams| Station {
            rate: s.rate.map(|r| air.scaled(r)),
            error_rate: s.error_rate.get().clamp(0.0, 1.0),
            waiting: None,
            exchange: Exchange::default(),
            cw: params.cw_min,
            backing: false,
            slots: 0,
            short: 0,
            long: 0,
            own: (0, Time::ZERO),
            contends: false,
            window: ampdu::Window::default(),
            to: 0,
            from: Time::ZERO,
            freed: Time::MAX,
            elapsed: Time::ZERO,
            stats: Stats::default(),
        };
        Self {
            rules: params.rules,
            cw_min: params.cw_min,
            cw_max: params.cw_max,
            short_limit: params.short_retry_limit,
            long_limit: params.long_retry_limit,
            limits: ampdu::Limits::of(params),
            reports: false,
            special: ampdu::Limits::of(params).is_some(),
            stations: stations.iter().map(station).collect(),
            contenders: Vec::with_capacity(stations.len()),
            phase: Phase::Idle,
            busy_until: Time::ZERO,
            from: air.difs,
            period: 1,
            senders: Vec::with_capacity(stations.len()),
            begin: Time::MAX,
            until: Time::MAX,
            medium: Medium::default(),
            heard: None,
            air,
        }
    }

    /// Gives a frame to the station's MAC, which must be empty. `uniform` draws a number in `[0, 1)` from a station's
    /// own stream, so that an added station leaves the others' draws as they were.
    #[inline]
    pub fn offer(&mut self, now: Time, station: u32, frame: Frame, uniform: impl FnMut(u32) -> f64) {
        if FULL && self.special {
            self.special_offer(now, station, frame, uniform);
        } else {
            self.offer_as::<false>(now, station, frame, uniform);
        }
    }

    #[inline(always)]
    fn offer_as<const S: bool>(
        &mut self,
        now: Time,
        station: u32,
        frame: Frame,
        mut uniform: impl FnMut(u32) -> f64,
    ) {
        // A transmission that begins at `now` is not yet heard: only those that began earlier are known to all.
        if self.phase == Phase::Idle && self.begin < now {
            self.start(&mut uniform);
        }
        if S && self.stations[station as usize].freed != now {
            self.begins_anew(now, station);
        }
        // A station that keeps no reservation may be ahead of those that do.
        let free = now >= self.busy_until || now >= self.begins(station);
        let idle = self.phase == Phase::Idle && free;
        let over = self.ends(station) <= now;
        let earliest = self.begins(station).max(now);
        let s = &mut self.stations[station as usize];
        debug_assert!(s.waiting.is_none(), "station {station} has a frame");
        s.waiting = Some(Waiting { frame, since: now });
        s.stats.offered += 1;
        if !s.backing || (idle && over) {
            if idle && self.rules == Rules::Standard {
                s.backing = false;
                s.slots = 0;
                s.own = (self.period, earliest);
            } else {
                if idle {
                    s.own = (self.period, now + self.air.difs);
                }
                self.draw(station, &mut uniform);
            }
        }
        self.contend(station);
        if self.phase == Phase::Idle {
            self.enter::<S>(station);
        }
    }

    /// When `step` must be called next, if ever. Offering a frame or changing a rate may move it.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        (self.until < Time::MAX).then_some(self.until)
    }

    /// Handles what happens at `now`, which must be [`next`](Self::next). Calls `told` with each outcome, in the order
    /// of stations.
    #[inline]
    pub fn step(&mut self, now: Time, uniform: impl FnMut(u32) -> f64, told: &mut impl FnMut(Happened)) {
        if FULL && self.special {
            self.special_step(now, uniform, told);
        } else {
            self.step_as::<false>(now, uniform, told);
        }
    }

    /// Steps a cell that is [special](Self::special), if `S` says so. Other cells have no code for that in their path.
    #[inline(always)]
    fn step_as<const S: bool>(
        &mut self,
        now: Time,
        mut uniform: impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        debug_assert_eq!(self.next(), Some(now));
        if self.phase == Phase::Idle {
            self.start(&mut uniform);
        }
        match self.phase {
            Phase::Data => self.data_ends::<S>(now, &mut uniform, told),
            Phase::Ack => self.ack_ends::<S>(now, &mut uniform, told),
            Phase::Collision | Phase::Idle => self.collision_ends::<S>(now, &mut uniform, told),
        }
    }

    /// Changes the station's rate, which must be above zero. A frame that is being sent keeps its rate.
    pub fn set_rate(&mut self, now: Time, station: u32, rate: Rate) {
        self.stations[station as usize].rate = Some(self.air.scaled(rate));
        if self.phase == Phase::Idle && self.begin >= now {
            if FULL && self.special { self.plan::<true>() } else { self.plan::<false>() }
        }
    }

    /// Counts of a station so far.
    #[must_use]
    pub fn stats(&self, station: u32) -> &Stats {
        &self.stations[station as usize].stats
    }

    /// Counts of the medium up to `now`.
    #[must_use]
    pub fn medium(&self, now: Time) -> Medium {
        let begun = self.begin.min(now); // of a transmission that is not over
        let busy = self.medium.busy + (now - begun);
        Medium { busy, idle: now.saturating_sub(busy), ..self.medium }
    }

    /// When the station's slots begin in this idle period.
    fn begins(&self, station: u32) -> Time {
        let (period, own) = self.stations[station as usize].own;
        if period == self.period { own } else { self.from }
    }

    /// When the station's backoff ends if the medium stays idle.
    fn ends(&self, station: u32) -> Time {
        self.begins(station) + self.air.slot * u64::from(self.stations[station as usize].slots)
    }

    fn contend(&mut self, station: u32) {
        let s = &mut self.stations[station as usize];
        if !s.contends {
            s.contends = true;
            self.contenders.push(station);
        }
    }

    fn draw(&mut self, station: u32, uniform: &mut impl FnMut(u32) -> f64) {
        let s = &mut self.stations[station as usize];
        let values = match self.rules {
            Rules::Standard => s.cw + 1,
            Rules::Ns2 => s.cw,
        };
        s.slots = (uniform(station) * f64::from(values)) as u32;
        s.backing = true;
    }

    /// Computes which stations send next.
    fn plan<const S: bool>(&mut self) {
        self.senders.clear();
        self.begin = Time::MAX;
        self.until = Time::MAX;
        for i in 0..self.contenders.len() {
            let station = self.contenders[i];
            if self.stations[station as usize].waiting.is_some() {
                self.enter::<S>(station);
            }
        }
    }

    /// Adds a station that has a frame to those that send next, if it is early enough.
    fn enter<const S: bool>(&mut self, station: u32) {
        let at = self.ends(station);
        if at > self.begin {
            return;
        }
        let Some(waiting) = self.stations[station as usize].waiting else { return };
        let rate = self.rate(station, waiting.frame.to);
        if S && self.aggregates() {
            return self.enter_batch(station, at, rate);
        }
        self.enter_with(station, at, self.air.exchange(waiting.frame.bytes, rate));
    }

    /// Adds a station that sends at `at` and not later than the others.
    #[inline(always)] // into the path of cells without A-MPDUs
    fn enter_with(&mut self, station: u32, at: Time, exchange: Exchange) {
        self.stations[station as usize].exchange = exchange;
        if at < self.begin {
            self.senders.clear();
            self.begin = at;
        }
        self.senders.push(station);
        self.until = match self.senders[..] {
            [_] => at + exchange.data,
            [first, _] => at + exchange.first.max(self.exchange(first).first),
            _ => self.until.max(at + exchange.first),
        };
    }

    fn exchange(&self, station: u32) -> Exchange {
        self.stations[station as usize].exchange
    }

    /// The rate of a frame between two stations.
    fn rate(&self, from: u32, to: u32) -> Rate {
        let of = |station: u32| self.stations[station as usize].rate;
        match (of(from), of(to)) {
            (Some(a), Some(b)) => Rate::from_bps(a.bps().min(b.bps())),
            (Some(rate), None) | (None, Some(rate)) => rate,
            (None, None) => self.air.lowest,
        }
    }

    /// Begins the planned transmissions. For all other stations the medium becomes busy.
    #[inline(always)] // into the path of cells without A-MPDUs
    fn start(&mut self, uniform: &mut impl FnMut(u32) -> f64) {
        self.senders.sort_unstable();
        self.phase = if self.senders.len() == 1 { Phase::Data } else { Phase::Collision };
        let mut i = 0;
        while i < self.contenders.len() {
            let station = self.contenders[i];
            let (begins, ends) = (self.begins(station), self.ends(station));
            let s = &mut self.stations[station as usize];
            if ends <= self.begin {
                // A sender, or a backoff that is over before there is a frame.
                s.backing = false;
                s.slots = 0;
                if s.waiting.is_none() {
                    s.contends = false;
                    self.contenders.swap_remove(i);
                    continue;
                }
            } else if s.backing {
                let idle = self.begin.saturating_sub(begins);
                s.slots -= (idle.as_ps() / self.air.slot.as_ps()) as u32;
            } else if s.waiting.is_some() {
                // The station was waiting for DIFS to send at once; now it must back off.
                self.draw(station, uniform);
            }
            i += 1;
        }
    }

    /// Makes the medium idle from `until` on. Slots begin at `from`, except for stations that get another time after
    /// this call.
    fn idle(&mut self, until: Time, from: Time) {
        self.phase = Phase::Idle;
        self.busy_until = until;
        self.from = from;
        self.period += 1;
    }

    fn data_ends<const S: bool>(
        &mut self,
        now: Time,
        uniform: &mut impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        let station = self.senders[0];
        let exchange = self.attempt(station, |e| e.sent);
        let to = self.stations[station as usize].waiting.map_or(station, |w| w.frame.to);
        let arrives = |station: u32| 1.0 - self.stations[station as usize].error_rate;
        let lost = 1.0 - arrives(station) * arrives(to);
        let good = if S {
            self.special_data_ends(now, station, lost, uniform, told)
        } else {
            let good = lost <= 0.0 || uniform(station) >= lost;
            if good {
                told(Happened::Delivered { station });
            }
            good
        };
        self.hear_data(station, good);
        if good {
            self.phase = Phase::Ack;
            self.until = self.begin + exchange.ack;
            return;
        }
        self.medium.errors += 1;
        self.medium.busy += now - self.begin;
        self.stations[station as usize].stats.errors += 1;
        // The other stations have read the duration of the exchange; the receiver has not.
        let reserved = self.begin + exchange.nav;
        self.idle(reserved, reserved + self.air.difs);
        self.stations[station as usize].own = (self.period, self.begin + exchange.timeout + self.air.difs);
        self.stations[to as usize].own = (self.period, now + self.air.eifs);
        self.fail::<S>(now, station, exchange.rts, uniform, told);
        self.plan::<S>();
    }

    fn ack_ends<const S: bool>(
        &mut self,
        now: Time,
        uniform: &mut impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        let station = self.senders[0];
        self.hear_ack(station);
        let nav = self.begin + self.exchange(station).nav;
        self.medium.exchanges += 1;
        self.medium.busy += now - self.begin;
        self.idle(nav, nav + self.air.difs);
        if nav > now {
            // The two stations that took part have no reservation to keep.
            let own = (self.period, now + self.air.difs);
            let to = self.stations[station as usize].waiting.map_or(station, |w| w.frame.to);
            self.stations[station as usize].own = own;
            self.stations[to as usize].own = own;
        }
        if S {
            self.special_ack_ends(now, station, told);
        } else {
            self.done(now, station, true, told);
        }
        self.draw(station, uniform);
        self.contend(station);
        self.plan::<S>();
    }

    fn collision_ends<const S: bool>(
        &mut self,
        now: Time,
        uniform: &mut impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        self.medium.collisions += 1;
        self.medium.busy += now - self.begin;
        let from = now + self.air.eifs;
        let reserved = if self.rules == Rules::Ns2 { from - self.air.difs } else { now };
        self.idle(reserved, from);
        let mut longest = 0;
        for i in 0..self.senders.len() {
            let station = self.senders[i];
            let exchange = self.attempt(station, |e| e.first);
            if S {
                self.special_sends(station, exchange.rts);
            }
            self.stations[station as usize].stats.collisions += 1;
            longest += u32::from(self.begin + exchange.first == now);
            self.hear_collided(station);
            self.fail::<S>(now, station, false, uniform, told);
        }
        for i in 0..self.senders.len() {
            let station = self.senders[i];
            let exchange = self.exchange(station);
            // This station has heard no other frame end after its own (ns-2's rule).
            let alone = longest == 1 && self.begin + exchange.first == now;
            let ahead = match self.rules {
                Rules::Standard => self.air.ack_timeout.is_some(),
                Rules::Ns2 => alone,
            };
            if ahead {
                let from = now.max(self.begin + exchange.first_timeout) + self.air.difs;
                self.stations[station as usize].own = (self.period, from);
            }
        }
        self.plan::<S>();
    }
}

//! A cell of IEEE 802.11 whose stations share the medium by DCF, and all hear one another.
//!
//! ```text
//!   medium   ...busy |<- DIFS ->|slot|slot|slot| DATA |SIFS| ACK |<- DIFS ->|slot|...
//!                    |<- EIFS instead, where what was sent could not be read ->|
//!   DIFS = SIFS + 2 slots        EIFS = SIFS + an ack at the lowest mandatory rate + DIFS
//! ```
//!
//! A station that is given a frame while the medium is idle, and whose backoff is over, sends once the medium has been idle for DIFS.
//! Else it draws a backoff, uniform from 0 to CW slots. A slot counts that the medium is idle in after DIFS; what is left
//! stays as it is while the medium is busy (freezing). Where several backoffs end in the same instant, nothing arrives: CW
//! becomes 2 CW + 1, at most CWmax, and each draws anew, until a frame has been sent as often as the retry limit says and
//! is given up. After each exchange, and after giving up, CW is CWmin and a backoff is drawn, whether there is a next frame or not. An RTS
//! announces frames above a threshold; then it is RTSs that collide. Clauses of IEEE 802.11-2012: 9.3 for all this.
//!
//! [`Cell`] does not go through slots: when the medium becomes idle it plans who wins and when that ends, and plans anew when a frame
//! comes in before. A frame that arrives is two steps, the end of the data and the end of the ack; a collision is one, and so
//! is a frame lost by an error. A step looks at each station once that has a frame or a backoff.
//!
//! Range: any slot of a nanosecond and more; any number of stations, of which each has one frame at a time.
//!
//! Deviations (the standard says / we do / because):
//! 1. ACKTimeout is SIFS, a slot and the time in which a PHY tells of a preamble (9.3.2.8), after which who collided may begin within
//!    what is still EIFS for the others / who collided waits for EIFS, as the others do / EIFS is made so that all begin together, models
//!    of DCF have it so, and slots that are shifted against each other by parts of a slot would need a model of carrier sensing. With
//!    `ack_timeout` it is as the standard says, and DIFS follows, as in ns-3.
//! 2. A signal takes a microsecond for 300 m / it takes no time / slots are made for it, and who is how far from whom is not known.
//! 3. Acks and CTS may be lost / only data frames are, by `error_rate` / they are short and sent at low rates.
//! 4. Frames may be fragmented, sent to all, or of another priority / none is.
//! 5. A frame is given up when its ACKTimeout is over / when its last transmission is / nothing can begin in between.
//!
//! With [`Rules::Ns2`](flowstamp_scenario::wireless::Rules) it does what ns-2.35's mac/mac-802_11.cc does, with its `bugFix_timer_`.
//! There, 9.3.4.3's slots are drawn from 0 to CW-1, and deviation 1 is that whoever hears another's frame end after its own waits for EIFS
//! and then for DIFS, and the one whose frame is longest for the end of ACKTimeout and then for DIFS. Not
//! taken over: ARP, and that `RTSThreshold_` counts the bytes of the PLCP as well.

mod air;
mod heard;

use air::{Air, Exchange};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_scenario::wireless::Rules;
pub use flowstamp_scenario::wireless::{DcfParams as Params, StationParams};
pub use heard::{Kind, Transmission};

/// What a station sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of the packet; headers of LLC and MAC come on top.
    pub bytes: u32,
    /// The station that it is for.
    pub to: u32,
}

/// What a step tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The frame in the station's MAC has arrived whole at its receiver: the end of the data frame.
    Delivered {
        /// Who sent it.
        station: u32,
    },
    /// The station's MAC is done with its frame and may be offered the next one.
    Free {
        /// Whose MAC.
        station: u32,
        /// It was acknowledged; else it was given up at the retry limit.
        sent: bool,
    },
}

/// What a station has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames that its MAC has taken.
    pub offered: u64,
    /// Frames that were acknowledged.
    pub sent: u64,
    /// Frames that were given up.
    pub given_up: u64,
    /// Times that it began to send, a frame or the RTS that announces it.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts whose data frame was lost by an error.
    pub errors: u64,
    /// Attempts that repeat a failed one.
    pub retries: u64,
    /// Time for which it sent data frames and RTS, whatever became of them.
    pub airtime: Time,
    /// Sum of the times that frames were in its MAC, from being offered to being sent or given up; there were `sent + given_up`.
    pub delay: Time,
}

/// What the medium has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Medium {
    /// Time in exchanges, with what is between their frames, and in collisions.
    pub busy: Time,
    /// All other time.
    pub idle: Time,
    /// Exchanges that an ack ended.
    pub exchanges: u64,
    /// Collisions, of two stations or more.
    pub collisions: u64,
    /// Exchanges whose data frame was lost by an error.
    pub errors: u64,
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
    /// What its frame takes, once it is about to be sent.
    exchange: Exchange,
    cw: u32,
    /// A backoff was drawn and is not over: `slots` are left of it, which may be none.
    backing: bool,
    slots: u32,
    /// Failed attempts of the frame that count towards the short and the long retry limit.
    short: u32,
    long: u32,
    /// Its slots begin here instead of at `Cell::from`, in this idle period.
    own: (u64, Time),
    /// It is in `Cell::contenders`.
    contends: bool,
    stats: Stats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody sends before `begin`.
    Idle,
    /// One station sends up to the end of its data frame.
    Data,
    /// Its receiver acknowledges.
    Ack,
    /// Several send.
    Collision,
}

/// A cell.
#[derive(Clone, Debug)]
pub struct Cell {
    air: Air,
    rules: Rules,
    cw_min: u32,
    cw_max: u32,
    short_limit: u32,
    long_limit: u32,
    stations: Vec<Station>,
    /// Stations that have a frame or a backoff, in no order.
    contenders: Vec<u32>,
    phase: Phase,
    /// The medium was or is busy up to here, by signals or reserved.
    busy_until: Time,
    /// DIFS or EIFS ends here, and slots begin, but for stations that have a beginning of their own.
    from: Time,
    /// Number of this idle period.
    period: u64,
    /// Who sends next, or now.
    senders: Vec<u32>,
    /// When they begin, or began.
    begin: Time,
    /// When their frames end, or the ack.
    until: Time,
    medium: Medium,
    /// Frames that have been on the air, if anybody wants to know.
    heard: Option<Vec<Transmission>>,
}

impl Cell {
    /// A cell whose stations have the numbers 0, 1, ... in the order given. One of them, or none, is the access point.
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
            stats: Stats::default(),
        };
        Self {
            rules: params.rules,
            cw_min: params.cw_min,
            cw_max: params.cw_max,
            short_limit: params.short_retry_limit,
            long_limit: params.long_retry_limit,
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

    /// The station's MAC, which is empty, takes a frame. `uniform` gives a number in `[0, 1)` of a station's stream: one for each, so that
    /// another station more leaves the others' choices as they were.
    pub fn offer(&mut self, now: Time, station: u32, frame: Frame, mut uniform: impl FnMut(u32) -> f64) {
        // Who has just begun has not been heard yet: only what began before `now` is known to all.
        if self.phase == Phase::Idle && self.begin < now {
            self.start(&mut uniform);
        }
        // Who keeps no reservation may be ahead of those who do.
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
            self.enter(station);
        }
    }

    /// When `step` is to be called next, if ever. A frame that is offered, or a rate that changes, may move it.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        (self.until < Time::MAX).then_some(self.until)
    }

    /// What happens at `now`, which is [`next`](Self::next): calls `told` for each thing, in the order of stations.
    pub fn step(&mut self, now: Time, mut uniform: impl FnMut(u32) -> f64, told: &mut impl FnMut(Happened)) {
        debug_assert_eq!(self.next(), Some(now));
        if self.phase == Phase::Idle {
            self.start(&mut uniform);
        }
        match self.phase {
            Phase::Data => self.data_ends(now, &mut uniform, told),
            Phase::Ack => self.ack_ends(now, &mut uniform, told),
            Phase::Collision | Phase::Idle => self.collision_ends(now, &mut uniform, told),
        }
    }

    /// The station's rate, above zero, is another from now on. What is being sent ends as it began.
    pub fn set_rate(&mut self, now: Time, station: u32, rate: Rate) {
        self.stations[station as usize].rate = Some(self.air.scaled(rate));
        if self.phase == Phase::Idle && self.begin >= now {
            self.plan();
        }
    }

    /// What a station has done so far.
    #[must_use]
    pub fn stats(&self, station: u32) -> &Stats {
        &self.stations[station as usize].stats
    }

    /// What the medium has seen up to `now`.
    #[must_use]
    pub fn medium(&self, now: Time) -> Medium {
        let begun = self.begin.min(now); // of what is not over
        let busy = self.medium.busy + (now - begun);
        Medium { busy, idle: now.saturating_sub(busy), ..self.medium }
    }

    /// Where the station's slots begin in this idle period.
    fn begins(&self, station: u32) -> Time {
        let (period, own) = self.stations[station as usize].own;
        if period == self.period { own } else { self.from }
    }

    /// When its backoff is over if the medium stays idle.
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

    /// Looks for those who send next.
    fn plan(&mut self) {
        self.senders.clear();
        self.begin = Time::MAX;
        self.until = Time::MAX;
        for i in 0..self.contenders.len() {
            let station = self.contenders[i];
            if self.stations[station as usize].waiting.is_some() {
                self.enter(station);
            }
        }
    }

    /// Lets a station that has a frame be among those who send next, if it is early enough.
    fn enter(&mut self, station: u32) {
        let at = self.ends(station);
        if at > self.begin {
            return;
        }
        let Some(waiting) = self.stations[station as usize].waiting else { return };
        let exchange = self.air.exchange(waiting.frame.bytes, self.rate(station, waiting.frame.to));
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

    /// Those who were to send begin; for the others the medium becomes busy.
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
                // It was about to send when the medium would have been idle for long enough.
                self.draw(station, uniform);
            }
            i += 1;
        }
    }

    /// The medium is idle from `until` on: slots begin at `from` for all but those who are given another time after this.
    fn idle(&mut self, until: Time, from: Time) {
        self.phase = Phase::Idle;
        self.busy_until = until;
        self.from = from;
        self.period += 1;
    }

    fn data_ends(
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
        let good = lost <= 0.0 || uniform(station) >= lost;
        self.hear_data(station, good);
        if good {
            self.phase = Phase::Ack;
            self.until = self.begin + exchange.ack;
            told(Happened::Delivered { station });
            return;
        }
        self.medium.errors += 1;
        self.medium.busy += now - self.begin;
        self.stations[station as usize].stats.errors += 1;
        // The others have read for how long the exchange takes; the receiver has not.
        let reserved = self.begin + exchange.nav;
        self.idle(reserved, reserved + self.air.difs);
        self.stations[station as usize].own = (self.period, self.begin + exchange.timeout + self.air.difs);
        self.stations[to as usize].own = (self.period, now + self.air.eifs);
        self.fail(now, station, exchange.rts, uniform, told);
        self.plan();
    }

    fn ack_ends(&mut self, now: Time, uniform: &mut impl FnMut(u32) -> f64, told: &mut impl FnMut(Happened)) {
        let station = self.senders[0];
        self.hear_ack(station);
        let nav = self.begin + self.exchange(station).nav;
        self.medium.exchanges += 1;
        self.medium.busy += now - self.begin;
        self.idle(nav, nav + self.air.difs);
        if nav > now {
            // Those who took part have no reservation to keep.
            let own = (self.period, now + self.air.difs);
            let to = self.stations[station as usize].waiting.map_or(station, |w| w.frame.to);
            self.stations[station as usize].own = own;
            self.stations[to as usize].own = own;
        }
        self.done(now, station, true, told);
        self.draw(station, uniform);
        self.contend(station);
        self.plan();
    }

    fn collision_ends(
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
            self.stations[station as usize].stats.collisions += 1;
            longest += u32::from(self.begin + exchange.first == now);
            self.hear_collided(station);
            self.fail(now, station, false, uniform, told);
        }
        for i in 0..self.senders.len() {
            let station = self.senders[i];
            let exchange = self.exchange(station);
            // It has not heard another's end after its own, or would not mind.
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
        self.plan();
    }

    /// Counts an attempt of a station, which sent for this time.
    fn attempt(&mut self, station: u32, sent: impl Fn(&Exchange) -> Time) -> Exchange {
        let exchange = self.exchange(station);
        let s = &mut self.stations[station as usize];
        s.stats.attempts += 1;
        s.stats.retries += u64::from(s.short + s.long > 0);
        s.stats.airtime += sent(&exchange);
        exchange
    }

    /// The attempt was for nothing; `announced`: its data frame was, and an RTS had not been.
    fn fail(
        &mut self,
        now: Time,
        station: u32,
        announced: bool,
        uniform: &mut impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        let s = &mut self.stations[station as usize];
        if announced {
            s.long += 1;
            if self.rules == Rules::Ns2 {
                s.short = 0;
            }
        } else {
            s.short += 1;
        }
        if s.short < self.short_limit && s.long < self.long_limit {
            s.cw = (2 * s.cw + 1).min(self.cw_max);
            self.draw(station, uniform);
        } else {
            self.done(now, station, false, told);
            if self.rules == Rules::Standard {
                self.draw(station, uniform);
            }
        }
    }

    fn done(&mut self, now: Time, station: u32, sent: bool, told: &mut impl FnMut(Happened)) {
        let s = &mut self.stations[station as usize];
        let since = s.waiting.take().map_or(now, |w| w.since);
        s.stats.delay += now - since;
        s.stats.sent += u64::from(sent);
        s.stats.given_up += u64::from(!sent);
        s.cw = self.cw_min;
        s.short = 0;
        s.long = 0;
        told(Happened::Free { station, sent });
    }
}

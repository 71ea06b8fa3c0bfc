//! Divides a link between a router law's own traffic and all other traffic.
//!
//! Dukkipati 2007, section 6.2.1, step C, every control update period `Tc`:
//!
//! ```text
//!   N_R, N_T   flows of both classes, by zombie lists                         (C.1)
//!   w_R   = w_R - theta (r_R - r_T) / (r_R + r_T)     r = y / N               (C.2)
//!   C_R   = max(C - y_T, C w_R)                                               (C.3)
//!   Tc    > Tc* = (C_T - y_T) / (d y_T / dt)          the time that TCP needs to fill its allocation
//! ```
//!
//! With [`Weights::Windows`] (PCP: Katabi and Handley 2001, section 4.2; XCP: Katabi, Handley, Rohrs 2002, section 8.2), every
//! estimation interval of the router law, its mean RTT:
//!
//! ```text
//!   w_R   = w_R - k4 (cwnd_R - cwnd_T) / (cwnd_R + cwnd_T)                    2001: eq. 11; 2002: eqs. 11 and 12, kappa
//!                                                                             cwnd_T by [`super::windows`]; k4, kappa is theta
//!   C_R   = C - y_T,  and also the part C w_R                              PCP: SBW and PSBW are the spare bandwidth of each
//!   C_R   = C w_R                                                             XCP: S_X = C_R - y_X, eq. 14
//! ```
//!
//! With [`Weights::Demands`] (ABC: Goyal et al. 2020), every `min_interval`, the weights are those of [`super::demands`], and
//! `C_R` is that of (C.3).
//!
//! `R` is the router's own protocol, `T` all other traffic, and `y` the input rate. `C_R` is the capacity that the
//! router law works with. `w_R` and `w_T = 1 - w_R` are the scheduler's weights.
//!
//! Deviations (thesis says / we do / because):
//! 1. `w_R` has no first value and no bounds / it starts at 1/2 and stays within 1% and 99% / a class that has just
//!    begun must get some service.
//! 2. Nothing on a class without packets / the weights stay / the average rate of no flows is undefined.
//! 3. `C_T` is what TCP was allocated / it is `C w_T` / with `C - C_R` of (C.3) it would never exceed `y_T`, and `Tc*`
//!    would be zero.
//! 4. `Tc` is above `Tc*` / the next period is the larger of `Tc*` and `min_interval`, at most `max_interval`; it is
//!    `min_interval` while TCP has its share or does not grow / there is nothing to wait for then.
//! 5. `w_R` moves whenever the rates differ / it does not move in favour of a class that sends less than half of its
//!    share / flows that end or are limited elsewhere would drive it to its bound, and the class that fills the link
//!    would starve. With windows it moves, as both papers say.
//! 6. With windows, nothing on the time before packets carry an RTT / the period is the default of `min_interval` /
//!    the mean RTT is unknown.

use super::OF_DEMANDS;
use super::demands::{self, Demands};
use super::windows::Windows;
use super::zombies::Zombies;
use super::{CLASSES, OTHER, OWN, Params, Weights};
use crate::router::{OwnFlows, Room};
use crate::units::{Rate, Time};

/// Least weight of a class; the largest is 1 minus this.
const LEAST_WEIGHT: f64 = 0.01;

/// A class that sends less than this part of its share gets no more. TCP's saw-tooth falls to half of its share.
const IN_USE: f64 = 0.5;

/// State of one class.
#[derive(Clone, Debug)]
struct Class {
    zombies: Zombies,
    /// Bytes that arrived in this period.
    bytes: f64,
    /// Input rate of the last period, bytes/s.
    rate: f64,
    /// Estimated number of flows in the last period.
    flows: f64,
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Split {
    params: Params,
    /// Bytes/s.
    capacity: f64,
    classes: [Class; CLASSES],
    /// Estimate of TCP's window, where weights follow windows.
    windows: Option<Windows>,
    /// The largest flows, where weights follow demands.
    demands: Option<Demands>,
    /// The capacity that the router law works with there.
    room: Room,
    /// The router law's estimates of its own flows.
    own_flows: Option<OwnFlows>,
    /// `w_R`.
    weight: f64,
    /// `C_R`, bytes/s.
    own_capacity: f64,
    /// `Tc`: length of the running period.
    interval: Time,
    /// Start of the running period.
    began: Time,
}

impl Split {
    /// Creates the law for a link of `capacity`, with its first period from [`Time::ZERO`] on.
    #[must_use]
    pub fn new(params: &Params, capacity: Rate) -> Self {
        let class = Class {
            zombies: Zombies::new(params.zombies, params.overwrite.get()),
            bytes: 0.0,
            rate: 0.0,
            flows: 0.0,
        };
        Self {
            params: *params,
            capacity: capacity.bytes_per_sec(),
            classes: [class.clone(), class],
            windows: (params.weights == Weights::Windows).then(Windows::default),
            demands: (OF_DEMANDS && params.weights == Weights::Demands).then(Demands::default),
            room: Room::Leftover,
            own_flows: None,
            weight: 0.5,
            own_capacity: capacity.bytes_per_sec(),
            interval: params.min_interval(),
            began: Time::ZERO,
        }
    }

    /// Sets the capacity that the router law works with where weights follow windows.
    #[must_use]
    pub fn with_room(mut self, room: Room) -> Self {
        self.room = room;
        self.divide();
        self
    }

    /// Creates the law at `now` with a given weight of the own class, clamped to its bounds.
    #[must_use]
    pub fn resume(params: &Params, capacity: Rate, own_weight: f64, now: Time) -> Self {
        let weight = own_weight.clamp(LEAST_WEIGHT, 1.0 - LEAST_WEIGHT);
        let fresh = Self::new(params, capacity);
        Self { weight, own_capacity: fresh.capacity * weight, began: now, ..fresh }
    }

    /// Sets the link's capacity.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity.bytes_per_sec();
        self.divide();
    }

    /// Takes an arriving packet of `size` bytes of `flow`, even if it is then dropped. `uniform` draws from `[0, 1)`.
    #[inline]
    pub fn on_arrival(&mut self, class: usize, flow: u64, size: u32, uniform: impl FnMut() -> f64) {
        if let Some(windows) = self.windows.as_mut().filter(|_| class == OTHER) {
            windows.on_arrival(size);
        }
        if OF_DEMANDS && let Some(demands) = &mut self.demands {
            demands.on_arrival(class, flow, size);
        }
        let class = &mut self.classes[class];
        class.bytes += f64::from(size);
        class.zombies.on_arrival(flow, uniform);
    }

    /// Notes that a packet of the class was dropped or marked.
    pub fn on_loss(&mut self, class: usize) {
        if let Some(windows) = self.windows.as_mut().filter(|_| class == OTHER) {
            windows.on_loss();
        }
    }

    /// Sets the router law's estimates of its own flows.
    pub fn set_own_flows(&mut self, flows: Option<OwnFlows>) {
        self.own_flows = flows;
    }

    /// Adds counts of a class that were made elsewhere: `bytes` that arrived, packets `compared` with a zombie list,
    /// and those `found` in it.
    pub fn on_counts(&mut self, class: usize, bytes: u64, compared: u64, found: u64) {
        let class = &mut self.classes[class];
        class.bytes += bytes as f64;
        class.zombies.on_counts(compared, found);
    }

    /// Ends the running period at `now`. Returns when the next one ends.
    pub fn on_timer(&mut self, now: Time) -> Time {
        // Uses the elapsed time, because a kernel's timers are late.
        let seconds = now.saturating_sub(self.began).max(Time::from_micros(1)).as_secs_f64();
        self.began = now;
        let before = self.classes[OTHER].rate;
        for class in &mut self.classes {
            class.rate = class.bytes / seconds;
            class.flows = class.zombies.estimate(); // C.1
            class.bytes = 0.0;
        }
        if OF_DEMANDS && let Some(demands) = &mut self.demands {
            let [own, other] = demands.allocate(seconds, self.capacity);
            if own > 0.0 && other > 0.0 {
                let weight = own / (own + other);
                self.weight = weight.clamp(demands::LEAST_WEIGHT, 1.0 - demands::LEAST_WEIGHT);
            }
            self.divide();
            return now.saturating_add(self.interval);
        }
        let [own, other] = &self.classes;
        let averages = match &self.windows {
            None => Some((own.rate / own.flows, other.rate / other.flows))
                .filter(|_| own.flows > 0.0 && other.flows > 0.0),
            Some(windows) => self.own_flows.map(|flows| (flows.window_bytes, windows.window())),
        };
        if let Some((mine, theirs)) = averages.filter(|_| own.rate > 0.0 && other.rate > 0.0) {
            let theta = self.params.theta.get();
            let finite = theirs < f64::INFINITY;
            let step = if finite { theta * (mine - theirs) / (mine + theirs) } else { -theta };
            let (gains, share) = if step < 0.0 { (own, self.weight) } else { (other, 1.0 - self.weight) };
            if self.windows.is_some() || gains.rate >= IN_USE * share * self.capacity {
                self.weight = (self.weight - step).clamp(LEAST_WEIGHT, 1.0 - LEAST_WEIGHT); // C.2
            }
        }
        self.divide();
        let other = &self.classes[OTHER];
        let missing = self.capacity * (1.0 - self.weight) - other.rate;
        let growth = (other.rate - before) / seconds;
        let (least, most) = (self.params.min_interval(), self.params.max_interval);
        self.interval = if self.windows.is_some() {
            let shortest = self.params.min_interval.unwrap_or(Time::from_micros(1));
            self.own_flows.map_or(least, |flows| flows.rtt.clamp(shortest, most))
        } else if missing > 0.0 && growth > 0.0 {
            Time::from_secs_f64((missing / growth).min(most.as_secs_f64())).max(least)
        } else {
            least
        };
        now.saturating_add(self.interval)
    }

    /// Computes `C_R` (C.3) from the rates of the last period.
    fn divide(&mut self) {
        let left = self.capacity - self.classes[OTHER].rate;
        let part = self.capacity * self.weight;
        self.own_capacity = match (&self.windows, self.room) {
            (None, _) => left.max(part),
            (Some(_), Room::Leftover) => left.max(0.0),
            (Some(_), Room::Part) => part,
        };
    }

    /// When the first period ends.
    #[must_use]
    pub fn first_timer(&self) -> Time {
        self.interval
    }

    /// `C`: the link's capacity.
    #[must_use]
    pub fn capacity(&self) -> Rate {
        Rate::from_bytes_per_sec(self.capacity)
    }

    /// `C_R`: the capacity that the router law works with.
    #[must_use]
    pub fn own_capacity(&self) -> Rate {
        Rate::from_bytes_per_sec(self.own_capacity)
    }

    /// The own class's part of the link, and the link's capacity, where weights follow windows and the law works with
    /// [`Room::Leftover`].
    #[must_use]
    pub fn own_part(&self) -> Option<(Rate, Rate)> {
        let rate = Rate::from_bytes_per_sec;
        let beside = self.windows.is_some() && self.room == Room::Leftover;
        beside.then(|| (rate(self.capacity * self.weight), rate(self.capacity)))
    }

    /// `Tc`: length of the running period.
    #[must_use]
    pub fn interval(&self) -> Time {
        self.interval
    }

    /// `w_R` and `w_T`.
    #[must_use]
    pub fn weights(&self) -> [f64; CLASSES] {
        [self.weight, 1.0 - self.weight]
    }

    /// Share of the link that each class may expect: its weight, or more if the other class leaves more. From 1% to
    /// 1.
    #[must_use]
    pub fn shares(&self) -> [f64; CLASSES] {
        let left_by = |class: usize| 1.0 - self.classes[class].rate / self.capacity;
        let [own, other] = self.weights();
        [own.max(left_by(OTHER)), other.max(left_by(OWN))]
    }

    /// Calls `report` with each variable's name and value, for probes.
    pub fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("own_weight", self.weight);
        report("own_capacity_bps", self.own_capacity * 8.0);
        report("own_flows", self.classes[OWN].flows);
        report("other_flows", self.classes[OTHER].flows);
        report("own_input_bps", self.classes[OWN].rate * 8.0);
        report("other_input_bps", self.classes[OTHER].rate * 8.0);
        report("update_interval_s", self.interval.as_secs_f64());
        if let Some(windows) = &self.windows {
            report("other_loss_rate", windows.loss_rate());
            report("own_window_bytes", self.own_flows.map_or(0.0, |flows| flows.window_bytes));
        }
    }
}

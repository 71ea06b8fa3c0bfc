//! The papers' laws as delay differential equations in normalised units: time in RTTs, rates in shares of the capacity, queues in
//! bandwidth-delay products. In these units most equations contain neither capacity nor RTT nor number of flows.

use super::delay::{Past, System};
use flowstamp_laws::{rcp, vcp, xcp};

/// State of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Between its bounds.
    Free,
    /// Empty, with less arriving than the link can carry.
    Empty,
    /// At the buffer's size, with more arriving than the link can carry: the excess is lost.
    Full,
}

/// Which bounds are active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The queue.
    pub queue: Queue,
    /// The rate is at its maximum and would grow.
    pub held: bool,
}

/// One link and flows of one RTT under RCP (Dukkipati 2007, equations 5.1 to 5.4).
///
/// ```text
///   r' = r / (1 + q) (alpha (1 - r(t - 1)) - beta q / (1 + q))       r = N R / C,  q = queue / (C d0),  t in d0
///   q' = r(t - 1) - 1, and max(r(t - 1) - 1, 0) where q = 0,  min(r(t - 1) - 1, 0) where q = buffer
/// ```
///
/// Traffic that a full buffer drops counts as arrived for the router's rate (appendix F, variable 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rcp {
    /// Gain on spare capacity.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// Highest `r`. R is at most C, so this is the number of flows.
    pub most: f64,
    /// Buffer in bandwidth-delay products; infinite in the thesis's equations.
    pub buffer: f64,
    /// Whether the router's RTT includes the queue (equation 5.3). If not it is `d0`, as where packets carry `d0`.
    pub queue_in_rtt: bool,
}

impl System<2> for Rcp {
    type Mode = Mode;

    fn delays(&self) -> (f64, f64) {
        (1.0, 1.0)
    }

    fn mode(&self, t: f64, x: &[f64; 2], past: &Past<2>) -> Mode {
        let arriving = past.at(t - 1.0)[0];
        let queue = if x[1] <= 0.0 && arriving < 1.0 {
            Queue::Empty
        } else if x[1] >= self.buffer && arriving > 1.0 {
            Queue::Full
        } else {
            Queue::Free
        };
        Mode { queue, held: x[0] >= self.most && self.growth(t, x, past) > 0.0 }
    }

    #[inline]
    fn slope(&self, mode: Mode, t: f64, x: &[f64; 2], past: &Past<2>) -> [f64; 2] {
        let arriving = past.at(t - 1.0)[0];
        let queue = if mode.queue == Queue::Free { arriving - 1.0 } else { 0.0 };
        let rate = if mode.held { 0.0 } else { x[0] * self.growth_at(arriving, x[1]) };
        [rate, queue]
    }

    #[inline]
    fn guard(&self, mode: Mode, t: f64, x: &[f64; 2], past: &Past<2>) -> f64 {
        let queue = match mode.queue {
            Queue::Empty => 1.0 - past.at(t - 1.0)[0],
            Queue::Full => past.at(t - 1.0)[0] - 1.0,
            Queue::Free => x[1].min(self.buffer - x[1]),
        };
        let rate = if mode.held { self.growth(t, x, past) } else { self.most - x[0] };
        queue.min(rate)
    }

    fn switch(&self, mode: Mode, t: f64, x: &mut [f64; 2], past: &Past<2>) -> Mode {
        let mut next = mode;
        let arriving = past.at(t - 1.0)[0];
        let stays = |stays: bool, queue: Queue| if stays { queue } else { Queue::Free };
        next.queue = match mode.queue {
            Queue::Empty => stays(arriving < 1.0, Queue::Empty),
            Queue::Full => stays(arriving > 1.0, Queue::Full),
            Queue::Free if x[1] <= 0.0 => {
                x[1] = 0.0;
                stays(arriving <= 1.0, Queue::Empty)
            }
            Queue::Free if x[1] >= self.buffer => {
                x[1] = self.buffer;
                stays(arriving >= 1.0, Queue::Full)
            }
            Queue::Free => Queue::Free,
        };
        if mode.held {
            next.held = self.growth(t, x, past) > 0.0;
        } else if x[0] >= self.most {
            x[0] = self.most;
            next.held = self.growth(t, x, past) >= 0.0;
        }
        next
    }
}

impl Rcp {
    /// The relative growth of the rate per RTT.
    #[inline]
    fn growth_at(&self, arriving: f64, queue: f64) -> f64 {
        let d = if self.queue_in_rtt { 1.0 + queue } else { 1.0 };
        rcp::router::growth(self.alpha, self.beta, 1.0 - arriving, queue, d, 1.0) / d
    }

    fn growth(&self, t: f64, x: &[f64; 2], past: &Past<2>) -> f64 {
        self.growth_at(past.at(t - 1.0)[0], x[1])
    }
}

/// The switched system of equation 5.14: XCP and RCP near the equilibrium, linear except that the queue stops at zero.
///
/// ```text
///   x' = -alpha x(t - 1) - beta q(t - 1)          x = y/C - 1
///   q' = x, and max(x, 0) where q = 0
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switched {
    /// Gain on spare capacity.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// Whether the queue stops at zero; without this it is equation 5.15, and Katabi 2002's equations 15 and 16.
    pub floor: bool,
    /// Capacity error: by how much the router overestimates the capacity, as a share of it (Abrantes 2006, equation 3).
    pub error: f64,
}

impl System<2> for Switched {
    /// Whether the queue is empty and less arrives than the link can carry.
    type Mode = bool;

    fn delays(&self) -> (f64, f64) {
        (1.0, 1.0)
    }

    fn mode(&self, _: f64, x: &[f64; 2], _: &Past<2>) -> bool {
        self.floor && x[1] <= 0.0 && x[0] < 0.0
    }

    #[inline]
    fn slope(&self, empty: bool, t: f64, x: &[f64; 2], past: &Past<2>) -> [f64; 2] {
        let [y, q] = past.at(t - 1.0);
        let changes = xcp::router::aggregate_feedback(self.alpha, self.beta, self.error - y, q, 1.0);
        [changes, if empty { 0.0 } else { x[0] }]
    }

    #[inline]
    fn guard(&self, empty: bool, _: f64, x: &[f64; 2], _: &Past<2>) -> f64 {
        if empty {
            -x[0]
        } else if self.floor {
            x[1]
        } else {
            1.0
        }
    }

    fn switch(&self, empty: bool, _: f64, x: &mut [f64; 2], _: &Past<2>) -> bool {
        if !empty {
            x[1] = 0.0;
        }
        !empty && x[0] <= 0.0
    }
}

/// VCP's MIAIMD model: the sum of the windows of synchronous flows of one RTT (Xia 2008, equations 9 to 13).
///
/// ```text
///   w' = kappa w (1 / w(t - 1) - 1) + a           w = sum of windows / (gamma C T),  a = N alpha / (gamma C T)
/// ```
///
/// The equilibrium is `w = 1 + a / kappa`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miaimd {
    /// Stability coefficient of the multiplicative increase; theorem 1 requires at most 1/2.
    pub kappa: f64,
    /// Sum of all flows' additive increases per RTT, over the target's bandwidth-delay product.
    pub addition: f64,
}

impl Miaimd {
    /// The equilibrium of `w`.
    #[must_use]
    pub fn equilibrium(&self) -> f64 {
        1.0 + self.addition / self.kappa
    }
}

impl System<1> for Miaimd {
    type Mode = ();

    fn delays(&self) -> (f64, f64) {
        (1.0, 1.0)
    }

    fn mode(&self, _: f64, _: &[f64; 1], _: &Past<1>) {}

    #[inline]
    fn slope(&self, (): (), t: f64, x: &[f64; 1], past: &Past<1>) -> [f64; 1] {
        [vcp::growth(self.kappa, past.at(t - 1.0)[0]) * x[0] + self.addition]
    }

    #[inline]
    fn guard(&self, (): (), _: f64, _: &[f64; 1], _: &Past<1>) -> f64 {
        1.0
    }

    fn switch(&self, (): (), _: f64, _: &mut [f64; 1], _: &Past<1>) {}
}

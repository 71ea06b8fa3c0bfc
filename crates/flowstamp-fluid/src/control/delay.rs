//! Solves delay differential equations that switch between modes, by the classical Runge-Kutta method in fixed steps.
//!
//! ```text
//!   x'(t) = f(mode, t, x(t), x(t - d1), x(t - d2), ...)        constant delays, at least a step long
//! ```
//!
//! Each step keeps the cubic through its end points and slopes, which has the order of the method. The past is read from it at any
//! instant. A mode lasts while its guard is above zero. Where the guard reaches zero, the step is cut there, to the last bit of the
//! cubic, and the state continues in the next mode.
//!
//! A guard is evaluated at the ends of a step, in its middle, and at the minimum of the parabola through these if it lies within the
//! step. Therefore a guard may dip below zero and return unseen, by as much as its third derivative moves it from the parabola
//! (`unseen_dips_are_small`, in the crate's tests). The global error falls with the fourth power of the step if steps end where the
//! kink of the start recurs, at `d`, `2 d` and so on. They do if the delays are whole multiples of the step.
//!
//! The ring buffer of the past covers the longest delay, so steps allocate no memory.

use std::fmt;
use std::ops::ControlFlow;

/// A system of `N` variables.
pub trait System<const N: usize> {
    /// The mode: which of the equations hold.
    type Mode: Copy + PartialEq;

    /// The shortest and the longest delay, in the unit of time.
    fn delays(&self) -> (f64, f64);

    /// The mode of a state.
    fn mode(&self, t: f64, x: &[f64; N], past: &Past<N>) -> Self::Mode;

    /// The slopes of all variables.
    fn slope(&self, mode: Self::Mode, t: f64, x: &[f64; N], past: &Past<N>) -> [f64; N];

    /// Above zero while the mode lasts. Continuous in time.
    fn guard(&self, mode: Self::Mode, t: f64, x: &[f64; N], past: &Past<N>) -> f64;

    /// Called when the guard has reached zero. Puts the state on the border and returns the next mode.
    fn switch(&self, mode: Self::Mode, t: f64, x: &mut [f64; N], past: &Past<N>) -> Self::Mode;
}

/// One step, and the cubic between its ends.
#[derive(Clone, Copy, Debug)]
pub struct Step<const N: usize> {
    /// When it begins.
    pub from: f64,
    /// When it ends.
    pub to: f64,
    /// The state where it begins.
    pub start: [f64; N],
    /// The state where it ends.
    pub end: [f64; N],
    slopes: [[f64; N]; 2],
}

impl<const N: usize> Step<N> {
    /// The state at an instant of the step.
    #[must_use]
    pub fn at(&self, t: f64) -> [f64; N] {
        let h = self.to - self.from;
        let u = (t - self.from) / h;
        let (v, u2) = (1.0 - u, u * u);
        let v2 = v * v;
        let (a, b) = (v2 * (1.0 + 2.0 * u), u2 * (1.0 + 2.0 * v));
        let (c, d) = (h * u * v2, -h * v * u2);
        std::array::from_fn(|i| {
            a * self.start[i] + b * self.end[i] + c * self.slopes[0][i] + d * self.slopes[1][i]
        })
    }
}

/// The recent past of a solution.
#[derive(Clone, Debug)]
pub struct Past<const N: usize> {
    before: [f64; N],
    steps: Vec<Step<N>>,
    /// Number of steps so far; the last is at `(count - 1) % steps.len()`.
    count: usize,
    /// Upper bound of a step's length.
    h: f64,
}

impl<const N: usize> Past<N> {
    /// The state at an instant that is not in the future. The state before time zero is that at zero.
    #[inline]
    #[must_use]
    pub fn at(&self, t: f64) -> [f64; N] {
        if t <= 0.0 || self.count == 0 {
            return self.before;
        }
        let kept = self.count.min(self.room());
        let newest = &self.steps[(self.count - 1) & (self.room() - 1)];
        // Cut steps are shorter than h, so the wanted step is this one or an earlier one.
        let back = ((newest.to - t) / self.h) as usize;
        let mut index = self.count - 1 - back.min(kept - 1);
        let mut step = &self.steps[index & (self.room() - 1)];
        while step.from > t && index + kept > self.count {
            index -= 1;
            step = &self.steps[index & (self.room() - 1)];
        }
        while step.to < t && index + 1 < self.count {
            index += 1;
            step = &self.steps[index & (self.room() - 1)];
        }
        step.at(t.clamp(step.from, step.to))
    }

    fn room(&self) -> usize {
        self.steps.len()
    }

    /// Adds a step. Returns whether the past still reaches back to `needed`.
    fn push(&mut self, step: Step<N>, needed: f64) -> bool {
        let slot = self.count & (self.room() - 1);
        let lost = self.count >= self.room() && self.steps[slot].to > needed;
        self.steps[slot] = step;
        self.count += 1;
        !lost
    }
}

/// Why a system could not be solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// The step is longer than the shortest delay, whose past would then lie in the future.
    Step {
        /// The step.
        step: f64,
        /// The shortest delay.
        delay: f64,
    },
    /// More than [`MOST_SWITCHES`] switches in one step, or more in a delay than the ring buffer holds.
    Chatter {
        /// When.
        at: f64,
    },
    /// A variable has become infinite or NaN.
    Diverged {
        /// When.
        at: f64,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { step, delay } => {
                write!(
                    f,
                    "a step of {step} is above the shortest delay, {delay}; it must be at most that long"
                )
            }
            Self::Chatter { at } => write!(f, "too many switches at {at}: shorter steps may tell them apart"),
            Self::Diverged { at } => write!(f, "the solution is not a finite number after {at}"),
        }
    }
}

impl std::error::Error for Trouble {}

/// Rounding error allowed for a guard, as a share of the largest variable.
const ROUNDING: f64 = 1e-12;

/// Most switches of the mode within one step.
pub const MOST_SWITCHES: usize = 32;

/// A solution that advances as far as it is asked to.
#[derive(Clone, Debug)]
pub struct Solution<const N: usize, S: System<N>> {
    system: S,
    past: Past<N>,
    mode: S::Mode,
    t: f64,
    x: [f64; N],
    /// The guard of the current mode now.
    guard: f64,
    h: f64,
    steps: u64,
}

impl<const N: usize, S: System<N>> Solution<N, S> {
    /// Starts from `x`, constant before time zero, in steps of `h`.
    ///
    /// # Errors
    ///
    /// [`Trouble::Step`].
    pub fn new(system: S, x: [f64; N], h: f64) -> Result<Self, Trouble> {
        let (shortest, longest) = system.delays();
        // A step longer than the delay by less than this is rounding.
        if h.is_nan() || h <= 0.0 || h > shortest * (1.0 + 1e-9) {
            return Err(Trouble::Step { step: h, delay: shortest });
        }
        let empty = Step { from: 0.0, to: 0.0, start: x, end: x, slopes: [[0.0; N]; 2] };
        // Twice the number of whole steps, because some are cut.
        let room = (2.0 * longest / h + 2.0 * MOST_SWITCHES as f64) as usize;
        let past = Past { before: x, steps: vec![empty; room.next_power_of_two()], count: 0, h };
        let mode = system.mode(0.0, &x, &past);
        let guard = system.guard(mode, 0.0, &x, &past);
        Ok(Self { system, past, mode, t: 0.0, x, guard, h, steps: 0 })
    }

    /// The current time.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.t
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> &[f64; N] {
        &self.x
    }

    /// The current slopes.
    #[must_use]
    pub fn slopes(&self) -> [f64; N] {
        self.system.slope(self.mode, self.t, &self.x, &self.past)
    }

    /// The state some time ago, at most the longest delay.
    #[must_use]
    pub fn ago(&self, delay: f64) -> [f64; N] {
        self.past.at(self.t - delay)
    }

    /// Advances to `end`, or until `each` breaks. `each` is called with every step.
    ///
    /// # Errors
    ///
    /// [`Trouble::Chatter`] and [`Trouble::Diverged`].
    pub fn run(
        &mut self,
        end: f64,
        mut each: impl FnMut(&Step<N>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Trouble> {
        // Steps end at whole multiples of h, so switches do not shift later steps.
        while self.t < end - 1e-9 * self.h {
            let to = ((self.steps + 1) as f64 * self.h).min(end);
            let mut switches = 0;
            while self.t < to {
                let (step, guard, switched) = self.step(to);
                if step.end.iter().any(|x| !x.is_finite()) {
                    return Err(Trouble::Diverged { at: step.from });
                }
                if step.to > step.from && !self.past.push(step, step.to - self.system.delays().1) {
                    return Err(Trouble::Chatter { at: self.t });
                }
                (self.t, self.x, self.guard) = (step.to, step.end, guard);
                if switched {
                    switches += 1;
                    if switches > MOST_SWITCHES {
                        return Err(Trouble::Chatter { at: self.t });
                    }
                    self.mode = self.system.switch(self.mode, self.t, &mut self.x, &self.past);
                    self.guard = self.system.guard(self.mode, self.t, &self.x, &self.past);
                }
                if step.to > step.from && each(&step).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if to >= (self.steps + 1) as f64 * self.h {
                self.steps += 1;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The states at ascending times from now on. Advances in whole steps and evaluates their cubics in between, because cutting
    /// a step at every time would cost many steps.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub fn sampled(&mut self, times: &[f64]) -> Result<Vec<[f64; N]>, Trouble> {
        let mut left = times.iter().peekable();
        let mut found = Vec::with_capacity(times.len());
        while left.next_if(|t| **t <= self.t).is_some() {
            found.push(self.x);
        }
        let end = times.last().map_or(self.t, |last| last + self.h);
        let _ = self.run(end, |step| {
            while let Some(time) = left.next_if(|t| **t <= step.to) {
                found.push(step.at(*time));
            }
            if left.peek().is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Advances to `end`.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub fn advance(&mut self, end: f64) -> Result<(), Trouble> {
        self.run(end, |_| ControlFlow::Continue(())).map(|_| ())
    }

    /// A step until `to`, or until the mode ends. Also returns the guard there, and whether the mode ended.
    fn step(&self, to: f64) -> (Step<N>, f64, bool) {
        let whole = self.raw_step(to);
        let guard = |t: f64, x: &[f64; N]| self.system.guard(self.mode, t, x, &self.past);
        let inside = |t: f64| guard(t, &whole.at(t));
        let last = guard(to, &whole.end);
        // At equilibrium on a border, rounding moves the guard above and below zero all the time.
        let rounding = ROUNDING * whole.end.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let Some(below) = Self::below(self.t, to, [self.guard, last], -rounding, inside) else {
            return (whole, last, false);
        };
        // Bisect for the zero of the guard. At the start it may be at zero by rounding, and fall from there.
        let (mut low, mut high) = (self.t, below);
        loop {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                break;
            }
            if inside(middle) >= 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        if high >= to { (whole, last, true) } else { (self.raw_step(high), 0.0, true) }
    }

    /// An instant of a step at which its guard is below zero, within the step by more than rounding. `first` and `last` are the
    /// guard at the step's ends.
    fn below(
        from: f64,
        to: f64,
        [first, last]: [f64; 2],
        rounding: f64,
        guard: impl Fn(f64) -> f64,
    ) -> Option<f64> {
        if last < 0.0 {
            return Some(to);
        }
        let middle = f64::midpoint(from, to);
        let halfway = guard(middle);
        if halfway < rounding {
            return Some(middle);
        }
        // The minimum of the parabola, measured from the middle in halves of the step, if it lies within the step.
        let (bend, slope) = (first - 2.0 * halfway + last, 0.5 * (last - first));
        let least = middle - 0.5 * (to - from) * slope / bend;
        (bend > slope.abs() && guard(least) < rounding).then_some(least)
    }

    fn raw_step(&self, to: f64) -> Step<N> {
        let (t, x, h) = (self.t, &self.x, to - self.t);
        let slope = |t: f64, x: &[f64; N]| self.system.slope(self.mode, t, x, &self.past);
        let plus = |k: &[f64; N], part: f64| std::array::from_fn(|i| x[i] + part * h * k[i]);
        let k1 = slope(t, x);
        let k2 = slope(t + 0.5 * h, &plus(&k1, 0.5));
        let k3 = slope(t + 0.5 * h, &plus(&k2, 0.5));
        let k4 = slope(to, &plus(&k3, 1.0));
        let end = std::array::from_fn(|i| x[i] + h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]));
        let last = slope(to, &end);
        Step { from: t, to, start: *x, end, slopes: [k1, last] }
    }
}

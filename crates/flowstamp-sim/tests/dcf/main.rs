//! A cell of IEEE 802.11: its times by hand, its throughput and collisions against models, and what must hold of any.
//!
//! `tools/dcf.py` holds the same cells against ns-2 and ns-3.
#![expect(clippy::print_stdout, reason = "tables to look at, and for tools/dcf.py")]

mod ampdu;
mod any;
mod by_hand;
mod heard;
mod models;
mod reference;

use flowstamp_laws::units::{Rate, Time};
use flowstamp_sim::medium::dcf::{Cell, Frame, Happened, Params, StationParams};
use flowstamp_sim::random::Stream;
use std::collections::VecDeque;

/// Where a station's numbers come from: those given first, then a stream.
struct Numbers {
    given: VecDeque<f64>,
    stream: Stream,
    drawn: Vec<f64>,
}

impl Numbers {
    fn next(&mut self) -> f64 {
        let u = self.given.pop_front().unwrap_or_else(|| self.stream.uniform());
        self.drawn.push(u);
        u
    }
}

/// A cell and what it draws.
struct Run {
    cell: Cell,
    numbers: Vec<Numbers>,
    now: Time,
    steps: u64,
}

impl Run {
    fn new(params: &Params, stations: &[StationParams], seed: u64) -> Self {
        assert_eq!(params.check(), Ok(()));
        let numbers = |i| Numbers {
            given: VecDeque::new(),
            stream: Stream::new(seed, &format!("station {i}")),
            drawn: Vec::new(),
        };
        Self {
            cell: Cell::new(params, stations),
            numbers: (0..stations.len()).map(numbers).collect(),
            now: Time::ZERO,
            steps: 0,
        }
    }

    /// `n` stations of this rate, and an access point, which has the number `n`.
    fn cell_of(params: &Params, n: u32, rate: Rate, seed: u64) -> Self {
        let mut stations = vec![StationParams::at(rate); n as usize];
        stations.push(StationParams::ACCESS_POINT);
        Self::new(params, &stations, seed)
    }

    /// The station's next backoffs: so many slots of so many values.
    fn backoffs(&mut self, station: u32, slots_of: &[(u32, u32)]) {
        let number = |(slots, of): &(u32, u32)| (f64::from(*slots) + 0.5) / f64::from(*of);
        self.numbers[station as usize].given.extend(slots_of.iter().map(number));
    }

    fn offer(&mut self, station: u32, bytes: u32, to: u32) {
        let numbers = &mut self.numbers;
        self.cell.offer(self.now, station, Frame { bytes, to }, |s| numbers[s as usize].next());
    }

    /// One step, which is due; what it told.
    fn step(&mut self) -> Vec<Happened> {
        let mut told = Vec::new();
        let next = self.cell.next().expect("something is to happen");
        assert!(next >= self.now, "{next} after {}", self.now);
        self.now = next;
        self.steps += 1;
        let numbers = &mut self.numbers;
        self.cell.step(next, |s| numbers[s as usize].next(), &mut |h| told.push(h));
        told
    }

    /// Every station always has a packet for station `to`, until `done`.
    fn saturate(&mut self, n: u32, bytes: u32, to: u32, done: impl Fn(&Self) -> bool) {
        for i in 0..n {
            self.offer(i, bytes, to);
        }
        while !done(self) {
            for happened in self.step() {
                if let Happened::Free { station, .. } = happened {
                    self.offer(station, bytes, to);
                }
            }
            if self.steps.is_multiple_of(1024) {
                self.numbers.iter_mut().for_each(|n| n.drawn.clear());
            }
        }
    }
}

/// Microseconds.
fn us(time: f64) -> Time {
    Time::from_secs_f64(time * 1e-6)
}

/// To a picosecond or two, which is what rates that are no whole number of them give.
#[track_caller]
fn assert_close(time: Time, expected: Time) {
    let off = time.as_ps().abs_diff(expected.as_ps());
    assert!(off <= 3, "{time} for {expected}");
}

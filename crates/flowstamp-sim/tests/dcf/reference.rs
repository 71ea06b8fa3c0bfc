//! The same as a cell does, done without any planning: each microsecond each station looks at the medium, and counts.
//!
//! 802.11b with acks at 1 Mb/s, whose times are whole microseconds.

use super::{Numbers, Run, us};
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use flowstamp_sim::medium::dcf::{Happened, Params, StationParams};
use flowstamp_sim::random::Stream;
use proptest::prelude::*;
use std::collections::VecDeque;

const STATIONS: usize = 5;
const SLOT: u64 = 20;
const SIFS: u64 = 10;
const DIFS: u64 = 50;
const ACK: u64 = 304;
const CTS: u64 = 304;
const RTS: u64 = 352;
const EIFS: u64 = SIFS + ACK + DIFS;
/// Packets of more bytes than this, with 36 of headers, have an RTS.
const RTS_THRESHOLD: u64 = 1400;
const SHORT_LIMIT: u32 = 4;
const LONG_LIMIT: u32 = 3;

fn params() -> Params {
    Params {
        basic_rates: vec![Rate::from_mbps(1.0)],
        rts_threshold: Bytes::new(RTS_THRESHOLD),
        short_retry_limit: SHORT_LIMIT,
        long_retry_limit: LONG_LIMIT,
        cw_min: 7,
        ..Params::b()
    }
}

struct Station {
    numbers: Numbers,
    /// Bytes and receiver.
    frame: Option<(u64, usize)>,
    cw: u32,
    /// Slots left of a backoff, if one was drawn.
    backoff: Option<u32>,
    /// Microseconds of idle medium until slots count, and of the slot that counts.
    wait: u64,
    part: u64,
    short: u32,
    long: u32,
}

impl Station {
    fn draw(&mut self) {
        self.backoff = Some((self.numbers.next() * f64::from(self.cw + 1)) as u32);
    }

    /// Whether its next attempt may begin now.
    fn ready(&self) -> bool {
        self.frame.is_some() && self.wait == 0 && self.part == 0 && self.backoff.unwrap_or(0) == 0
    }
}

enum Air {
    Idle,
    Data { station: usize, ends: u64 },
    Ack { station: usize, ends: u64 },
    Collision { ends: u64, with: Vec<usize> },
}

struct Reference {
    stations: Vec<Station>,
    mbps: Vec<u64>,
    error_rates: Vec<f64>,
    air: Air,
    /// A lost frame had reserved the medium until then.
    reserved: u64,
    told: Vec<(u64, Happened)>,
}

impl Reference {
    fn data(&self, station: usize) -> (u64, bool) {
        let (bytes, to) = self.stations[station].frame.expect("a frame");
        let mbps = self.mbps[station.max(to)].min(self.mbps[station.min(to)]);
        (192 + ((bytes + 36) * 8).div_ceil(mbps), bytes + 36 > RTS_THRESHOLD)
    }

    fn give_up_or_again(&mut self, now: u64, station: usize, long: bool) {
        let s = &mut self.stations[station];
        if long {
            s.long += 1;
        } else {
            s.short += 1;
        }
        if s.short == SHORT_LIMIT || s.long == LONG_LIMIT {
            self.done(now, station, false);
        } else {
            s.cw = (2 * s.cw + 1).min(1023);
            s.draw();
        }
    }

    fn done(&mut self, now: u64, station: usize, sent: bool) {
        let s = &mut self.stations[station];
        (s.frame, s.cw, s.short, s.long) = (None, 7, 0, 0);
        self.told.push((now, Happened::Free { station: station as u32, sent }));
        s.draw();
    }

    fn all_wait(&mut self, time: u64) {
        for s in &mut self.stations {
            (s.wait, s.part) = (time, 0);
        }
    }

    fn ends(&mut self, now: u64) {
        match std::mem::replace(&mut self.air, Air::Idle) {
            Air::Data { station, ends } if ends == now => {
                let (_, to) = self.stations[station].frame.expect("a frame");
                let (_, announced) = self.data(station);
                let arrives = (1.0 - self.error_rates[station]) * (1.0 - self.error_rates[to]);
                if arrives >= 1.0 || self.stations[station].numbers.next() >= 1.0 - arrives {
                    self.told.push((now, Happened::Delivered { station: station as u32 }));
                    self.air = Air::Ack { station, ends: now + SIFS + ACK };
                } else {
                    self.reserved = now + SIFS + ACK;
                    // As long as EIFS here, where acks go at the lowest rate.
                    self.all_wait(SIFS + ACK + DIFS);
                    self.give_up_or_again(now, station, announced);
                }
            }
            Air::Ack { station, ends } if ends == now => {
                self.all_wait(DIFS);
                self.done(now, station, true);
            }
            Air::Collision { ends, with } if ends == now => {
                self.all_wait(EIFS);
                for station in with {
                    self.give_up_or_again(now, station, false);
                }
            }
            other => self.air = other,
        }
    }

    fn offer(&mut self, now: u64, station: usize, bytes: u64, to: usize) {
        let busy = !matches!(self.air, Air::Idle) || now < self.reserved;
        let s = &mut self.stations[station];
        s.frame = Some((bytes, to));
        if busy && s.backoff.is_none() {
            s.draw();
        }
        if s.backoff.is_none() {
            s.part = 0;
        }
    }

    fn begin(&mut self, now: u64) {
        if !matches!(self.air, Air::Idle) {
            return;
        }
        let ready: Vec<usize> = (0..STATIONS).filter(|i| self.stations[*i].ready()).collect();
        let first = |data: u64, announced: bool| if announced { RTS } else { data };
        match ready[..] {
            [] => return,
            [station] => {
                let (data, announced) = self.data(station);
                let opening = if announced { RTS + SIFS + CTS + SIFS } else { 0 };
                self.air = Air::Data { station, ends: now + opening + data };
            }
            _ => {
                let longest = ready.iter().map(|i| self.data(*i)).map(|(d, a)| first(d, a)).max();
                self.air = Air::Collision { ends: now + longest.unwrap_or(0), with: ready.clone() };
            }
        }
        for (i, s) in self.stations.iter_mut().enumerate() {
            if ready.contains(&i) || (s.backoff == Some(0) && s.wait == 0 && s.frame.is_none()) {
                s.backoff = None;
            } else if s.frame.is_some() && s.backoff.is_none() {
                s.draw();
            }
        }
    }

    /// A microsecond goes by.
    fn tick(&mut self) {
        if !matches!(self.air, Air::Idle) {
            return;
        }
        for s in &mut self.stations {
            if s.wait > 0 {
                s.wait -= 1;
                continue;
            }
            match s.backoff {
                // It is over, and there is nothing to send.
                Some(0) => s.backoff = None,
                Some(left) => {
                    s.part += 1;
                    if s.part == SLOT {
                        (s.part, s.backoff) = (0, Some(left - 1));
                    }
                }
                None => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_cell_does_what_counting_each_microsecond_does(
        mbps in prop::collection::vec(prop::sample::select(vec![1u64, 2, 11]), STATIONS - 1),
        error_rates in prop::collection::vec(prop_oneof![3 => Just(0.0), 1 => 0.0f64..0.9], STATIONS - 1),
        offers in prop::collection::vec(
            (prop_oneof![Just(0u64), 0u64..60, 0u64..400, 0u64..6000], 0..STATIONS, 20u64..1500, 0..STATIONS), 1..60),
        seed in 0u64..1_000_000,
    ) {
        let mut stations = vec![StationParams::ACCESS_POINT];
        stations.extend(mbps.iter().zip(&error_rates).map(|(mbps, error)| StationParams {
            rate: Some(Rate::from_mbps(*mbps as f64)),
            error_rate: Ratio::new(*error),
        }));
        let mut run = Run::new(&params(), &stations, seed);
        let mut of_cell = Vec::new();
        let mut has = [false; STATIONS];
        let mut at = 0;
        let mut steps = |run: &mut Run, until: Time, has: &mut [bool; STATIONS]| {
            while run.cell.next().is_some_and(|next| next <= until) {
                for happened in run.step() {
                    if let Happened::Free { station, .. } = happened {
                        has[station as usize] = false;
                    }
                    of_cell.push((run.now, happened));
                }
            }
        };
        let mut taken = Vec::new();
        for (after, station, bytes, to) in offers {
            at += after;
            steps(&mut run, us(at as f64), &mut has);
            run.now = us(at as f64);
            if !has[station] && station != to {
                has[station] = true;
                run.offer(station as u32, bytes as u32, to as u32);
                taken.push((at, station, bytes, to));
            }
        }
        steps(&mut run, Time::MAX, &mut has);

        let station = |i| Station {
            numbers: Numbers {
                given: VecDeque::new(),
                stream: Stream::new(seed, &format!("station {i}")),
                drawn: Vec::new(),
            },
            frame: None,
            cw: 7,
            backoff: None,
            wait: DIFS,
            part: 0,
            short: 0,
            long: 0,
        };
        let mut reference = Reference {
            stations: (0..STATIONS).map(station).collect(),
            mbps: std::iter::once(u64::MAX).chain(mbps).collect(),
            error_rates: std::iter::once(0.0).chain(error_rates).collect(),
            air: Air::Idle,
            reserved: 0,
            told: Vec::new(),
        };
        let mut next = 0;
        for now in 0.. {
            reference.ends(now);
            while next < taken.len() && taken[next].0 == now {
                let (_, station, bytes, to) = taken[next];
                prop_assert!(reference.stations[station].frame.is_none(), "station {} is not free at {} us", station, now);
                reference.offer(now, station, bytes, to);
                next += 1;
            }
            reference.begin(now);
            reference.tick();
            if next == taken.len() && reference.stations.iter().all(|s| s.frame.is_none()) {
                break;
            }
            prop_assert!(now < at + 10_000_000, "it does not end");
        }
        let of_cell: Vec<_> = of_cell.iter().map(|(t, h)| ((t.as_ps() + 500_000) / 1_000_000, *h)).collect();
        prop_assert_eq!(of_cell, reference.told);
    }
}

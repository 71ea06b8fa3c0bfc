//! Cells between their interfaces' queues and the packets' next links: which frame each MAC has, and when to look.

use crate::medium::dcf::{Cell, Frame, Happened, Medium, Stats, Transmission};
use crate::packet::Packet;
use crate::plan::{CellPlan, NOBODY, StationPlan};
use crate::random::Stream;
use flowstamp_laws::units::{Rate, Time};

/// A station at an instant.
#[derive(Clone, Copy, Debug)]
pub struct StationView<'a> {
    /// `cell.node`.
    pub name: (&'a str, &'a str),
    /// What it has done since the beginning.
    pub stats: Stats,
    /// The same when statistics began.
    pub before: Stats,
    /// Its data rate; `None` of an access point.
    pub rate: Option<Rate>,
}

/// Of a cell, what was due before and what is now.
pub type Moved = (Option<Time>, Option<Time>);

/// A cell, its stations, and its MACs' randomness.
#[derive(Clone, Debug)]
struct Radio {
    name: String,
    cell: Cell,
    stations: Vec<StationPlan>,
    streams: Vec<Stream>,
    /// Stations whose MAC has a frame.
    full: Vec<bool>,
    /// When the pending event is.
    due: Option<Time>,
    /// Number of the cell in the capture, if it is there.
    captured: Option<u32>,
    /// Data rates of now.
    rates: Vec<Option<Rate>>,
    /// What stations and medium had done when statistics began.
    before: (Vec<Stats>, Medium),
}

/// All cells.
#[derive(Clone, Debug, Default)]
pub struct Air {
    radios: Vec<Radio>,
    receivers: Vec<u32>,
    /// Its memory is used again.
    happened: Vec<(u32, Happened)>,
}

impl Air {
    /// Cells in which nothing happens yet.
    #[must_use]
    pub fn new(plans: &[CellPlan], receivers: Vec<u32>, seed: u64) -> Self {
        let radio = |plan: &CellPlan| {
            let stations: Vec<_> = plan.stations.iter().map(|s| s.params).collect();
            let stream = |s: &StationPlan| Stream::new(seed, &format!("mac/{}.{}", plan.name, s.name));
            Radio {
                name: plan.name.clone(),
                cell: Cell::new(&plan.params, &stations),
                stations: plan.stations.clone(),
                streams: plan.stations.iter().map(stream).collect(),
                full: vec![false; stations.len()],
                due: None,
                captured: None,
                rates: stations.iter().map(|s| s.rate).collect(),
                before: (vec![Stats::default(); stations.len()], Medium::default()),
            }
        };
        Self { radios: plans.iter().map(radio).collect(), receivers, happened: Vec::new() }
    }

    /// Statistics begin now.
    pub fn end_warmup(&mut self, now: Time) {
        for radio in &mut self.radios {
            let stats = (0..radio.stations.len() as u32).map(|s| *radio.cell.stats(s));
            radio.before = (stats.collect(), radio.cell.medium(now));
        }
    }

    /// Name of each cell, what its medium has seen up to `now`, and had when statistics began.
    pub fn cells(&self, now: Time) -> impl Iterator<Item = (&str, Medium, Medium)> {
        self.radios.iter().map(move |r| (r.name.as_str(), r.cell.medium(now), r.before.1))
    }

    /// The stations of all cells, in order.
    pub fn stations(&self) -> impl Iterator<Item = StationView<'_>> {
        self.radios.iter().flat_map(|radio| {
            radio.stations.iter().enumerate().map(|(number, station)| StationView {
                name: (&radio.name, &station.name),
                stats: *radio.cell.stats(number as u32),
                before: radio.before.0[number],
                rate: radio.rates[number],
            })
        })
    }

    /// Links of stations whose data rate changes, and when first.
    #[must_use]
    pub fn changes(&self) -> Vec<(u32, Time)> {
        let stations = self.radios.iter().flat_map(|r| &r.stations);
        stations.filter_map(|s| Some((s.link, s.rates.get(1)?.0))).collect()
    }

    /// A station's data rate changes; returns when it does again.
    pub fn change(&mut self, now: Time, cell: u32, station: u32) -> Option<Time> {
        let radio = &mut self.radios[cell as usize];
        let rates = &radio.stations[station as usize].rates;
        let next = rates.partition_point(|(at, _)| *at <= now);
        // There are none any more if a rate has been set since.
        let rate = rates[..next].last()?.1;
        radio.rates[station as usize] = Some(rate);
        radio.cell.set_rate(now, station, rate);
        rates.get(next).map(|(at, _)| *at)
    }

    /// A station's data rate is this from now on, whatever it was to be.
    pub fn set_rate(&mut self, now: Time, cell: u32, station: u32, rate: Rate) {
        let radio = &mut self.radios[cell as usize];
        radio.stations[station as usize].rates.clear();
        radio.rates[station as usize] = Some(rate);
        radio.cell.set_rate(now, station, rate);
    }

    /// Whether a station's MAC has a frame.
    #[must_use]
    pub fn has_frame(&self, cell: u32, station: u32) -> bool {
        self.radios[cell as usize].full[station as usize]
    }

    /// A station's MAC, which has no frame, takes a packet that is on its way to the next link of its route.
    pub fn offer(&mut self, now: Time, cell: u32, station: u32, packet: &Packet) -> Moved {
        let to = self.receivers[packet.next as usize - 1];
        let radio = &mut self.radios[cell as usize];
        radio.full[station as usize] = true;
        let streams = &mut radio.streams;
        let frame = Frame { bytes: u32::from(packet.size), to };
        radio.cell.offer(now, station, frame, |s| streams[s as usize].uniform());
        self.planned(cell)
    }

    /// When a cell was to be looked at, and when it is now.
    pub fn planned(&mut self, cell: u32) -> Moved {
        let radio = &mut self.radios[cell as usize];
        let next = radio.cell.next();
        (std::mem::replace(&mut radio.due, next), next)
    }

    /// What happens in a cell now, with the link of each station that it happens to. To be given back.
    pub fn step(&mut self, now: Time, cell: u32) -> Vec<(u32, Happened)> {
        let mut happened = std::mem::take(&mut self.happened);
        let Radio { cell, stations, streams, full, due, .. } = &mut self.radios[cell as usize];
        *due = None;
        cell.step(now, |s| streams[s as usize].uniform(), &mut |what| {
            let (Happened::Delivered { station } | Happened::Free { station, .. }) = what;
            if let Happened::Free { .. } = what {
                full[station as usize] = false;
            }
            happened.push((stations[station as usize].link, what));
        });
        happened
    }

    /// From now on the frames of a cell are recorded, which has this number in the capture.
    pub fn listen(&mut self, cell: u32, captured: u32) {
        let radio = &mut self.radios[cell as usize];
        radio.captured = Some(captured);
        radio.cell.listen();
    }

    /// Hands out what was on the air in a cell, with the link of each sender, if it is recorded, and the cell's number in the capture.
    pub fn heard(&mut self, cell: u32, mut record: impl FnMut(u32, Transmission, u32)) {
        let radio = &mut self.radios[cell as usize];
        let Some(captured) = radio.captured else { return };
        let heard = radio.cell.heard();
        for sent in &heard {
            record(captured, *sent, radio.stations[sent.from as usize].link);
        }
        radio.cell.hear_into(heard);
    }

    /// What [`step`](Self::step) told has been done.
    pub fn give_back(&mut self, mut happened: Vec<(u32, Happened)>) {
        happened.clear();
        self.happened = happened;
    }

    /// The interface of the node at which a packet has arrived.
    #[must_use]
    pub fn interface_of_receiver(&self, cell: u32, packet: &Packet) -> Option<u32> {
        let receiver = self.receivers[packet.next as usize - 1];
        (receiver != NOBODY).then(|| self.radios[cell as usize].stations[receiver as usize].link)
    }
}

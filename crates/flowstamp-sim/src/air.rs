//! The cells of a run: connects each station's MAC with its interface's queue and the packet's next link, and schedules
//! the cells' events.

use crate::medium::dcf::{Cell, Frame, Happened, Medium, Stats, Transmission};
use crate::packet::Packet;
use crate::plan::{CellPlan, NOBODY, StationPlan};
use crate::random::Stream;
use flowstamp_laws::router::Batch;
use flowstamp_laws::units::{Rate, Time};
use std::collections::VecDeque;

/// Counts and rate of a station.
#[derive(Clone, Copy, Debug)]
pub struct StationView<'a> {
    /// Names of cell and node.
    pub name: (&'a str, &'a str),
    /// Counts since the beginning of the run.
    pub stats: Stats,
    /// Counts at the end of warm-up.
    pub before: Stats,
    /// Data rate; `None` for an access point.
    pub rate: Option<Rate>,
    /// It may send A-MPDUs.
    pub aggregates: bool,
}

/// Time of a cell's pending event before and after a call.
pub type Moved = (Option<Time>, Option<Time>);

/// Packets that a station's MAC has for A-MPDUs, in the order of the cell's frames.
#[derive(Clone, Debug, Default)]
struct Mac {
    packets: VecDeque<Packet>,
    /// The packet that did not fit into the last A-MPDU, and is the first of the next.
    staged: Option<Packet>,
}

/// A cell, its stations, and the random streams of their MACs.
#[derive(Clone, Debug)]
struct Radio {
    name: String,
    cell: Cell,
    stations: Vec<StationPlan>,
    streams: Vec<Stream>,
    /// Stations whose MAC has a frame.
    full: Vec<bool>,
    /// Packets in MACs; empty unless stations send A-MPDUs.
    macs: Vec<Mac>,
    /// Stations behind whose frames in the MAC packets waited when it took the frames.
    behind: Vec<bool>,
    /// Stations send A-MPDUs, or a router law hears of acks.
    special: bool,
    /// Time of the pending event.
    due: Option<Time>,
    /// Number of the cell in the capture, if it is captured.
    captured: Option<u32>,
    /// Current data rates.
    rates: Vec<Option<Rate>>,
    /// Counts of stations and medium at the end of warm-up.
    before: (Vec<Stats>, Medium),
}

/// All cells.
#[derive(Clone, Debug, Default)]
pub struct Air {
    radios: Vec<Radio>,
    receivers: Vec<u32>,
    /// Memory that [`step`](Self::step) reuses.
    happened: Vec<(u32, Happened)>,
}

impl Air {
    /// Makes idle cells.
    #[must_use]
    pub fn new(plans: &[CellPlan], receivers: Vec<u32>, seed: u64) -> Self {
        let radio = |plan: &CellPlan| {
            let stations: Vec<_> = plan.stations.iter().map(|s| s.params).collect();
            let stream = |s: &StationPlan| Stream::new(seed, &format!("mac/{}.{}", plan.name, s.name));
            let cell = Cell::new(&plan.params, &stations);
            Radio {
                name: plan.name.clone(),
                macs: vec![Mac::default(); if cell.aggregates() { stations.len() } else { 0 }],
                behind: vec![false; stations.len()],
                special: cell.aggregates(),
                cell,
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

    /// Restarts the statistics at the end of warm-up.
    pub fn end_warmup(&mut self, now: Time) {
        for radio in &mut self.radios {
            let stats = (0..radio.stations.len() as u32).map(|s| *radio.cell.stats(s));
            radio.before = (stats.collect(), radio.cell.medium(now));
        }
    }

    /// Name of each cell, counts of its medium up to `now`, and at the end of warm-up.
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
                aggregates: radio.cell.aggregates(),
            })
        })
    }

    /// Links of stations whose data rate changes, with the time of the first change.
    #[must_use]
    pub fn changes(&self) -> Vec<(u32, Time)> {
        let stations = self.radios.iter().flat_map(|r| &r.stations);
        stations.filter_map(|s| Some((s.link, s.rates.get(1)?.0))).collect()
    }

    /// Applies a scheduled change of a station's data rate. Returns when the next one is.
    pub fn change(&mut self, now: Time, cell: u32, station: u32) -> Option<Time> {
        let radio = &mut self.radios[cell as usize];
        let rates = &radio.stations[station as usize].rates;
        let next = rates.partition_point(|(at, _)| *at <= now);
        // Empty if a rate was set during the run.
        let rate = rates[..next].last()?.1;
        radio.rates[station as usize] = Some(rate);
        radio.cell.set_rate(now, station, rate);
        rates.get(next).map(|(at, _)| *at)
    }

    /// Sets a station's data rate and cancels its scheduled changes.
    pub fn set_rate(&mut self, now: Time, cell: u32, station: u32, rate: Rate) {
        let radio = &mut self.radios[cell as usize];
        radio.stations[station as usize].rates.clear();
        radio.rates[station as usize] = Some(rate);
        radio.cell.set_rate(now, station, rate);
    }

    /// Whether a station's MAC has a frame, and whether its cell has A-MPDUs or a router law that hears of acks.
    #[inline]
    #[must_use]
    pub fn state(&self, cell: u32, station: u32) -> (bool, bool) {
        let radio = &self.radios[cell as usize];
        (radio.full[station as usize], radio.special)
    }

    /// Gives a packet to a station's MAC, which must have no frame. The packet is already on its way to the next link
    /// of its route.
    pub fn offer(&mut self, now: Time, cell: u32, station: u32, packet: &Packet) -> Moved {
        let to = self.receivers[packet.next as usize - 1];
        let radio = &mut self.radios[cell as usize];
        radio.full[station as usize] = true;
        let streams = &mut radio.streams;
        let frame = Frame { bytes: u32::from(packet.size), to };
        radio.cell.offer(now, station, frame, |s| streams[s as usize].uniform());
        self.planned(cell)
    }

    /// Whether the stations of a cell send A-MPDUs.
    #[inline]
    #[must_use]
    pub fn aggregates(&self, cell: u32) -> bool {
        self.radios[cell as usize].cell.aggregates()
    }

    /// Whether a station's MAC has as many packets as an A-MPDU can have.
    #[must_use]
    pub fn is_full(&self, cell: u32, station: u32) -> bool {
        self.radios[cell as usize].cell.is_full(station)
    }

    /// Takes the packet that did not fit into the last A-MPDU.
    pub fn unstage(&mut self, cell: u32, station: u32) -> Option<Packet> {
        self.radios[cell as usize].macs[station as usize].staged.take()
    }

    /// Adds a packet to a station's next A-MPDU. One that does not fit is kept for the A-MPDU after it. Returns whether
    /// the packet fits.
    pub fn join(&mut self, now: Time, cell: u32, station: u32, packet: Packet) -> bool {
        let to = self.receivers[packet.next as usize - 1];
        let Radio { cell, macs, .. } = &mut self.radios[cell as usize];
        let mac = &mut macs[station as usize];
        let fits = cell.add(now, station, Frame { bytes: u32::from(packet.size), to });
        if fits {
            mac.packets.push_back(packet);
        } else {
            mac.staged = Some(packet);
        }
        fits
    }

    /// Offers the packets that joined to a station's MAC. `behind`: others wait in its queue.
    pub fn offer_joined(&mut self, now: Time, cell: u32, station: u32, behind: bool) -> Moved {
        let Radio { cell: of, macs, full, streams, .. } = &mut self.radios[cell as usize];
        full[station as usize] = of.offer_added(now, station, |s| streams[s as usize].uniform());
        let behind = behind || macs[station as usize].staged.is_some();
        self.set_behind(cell, station, behind);
        self.planned(cell)
    }

    /// Takes note of whether packets wait behind those that a station's MAC has.
    pub fn set_behind(&mut self, cell: u32, station: u32, behind: bool) {
        self.radios[cell as usize].behind[station as usize] = behind;
    }

    /// Takes the oldest packet that a station's MAC has for A-MPDUs.
    pub fn take_oldest(&mut self, cell: u32, station: u32) -> Option<Packet> {
        self.radios[cell as usize].macs[station as usize].packets.pop_front()
    }

    /// The packets that a station's MAC has for A-MPDUs, oldest first.
    pub fn held_by(&self, cell: u32, station: u32) -> impl Iterator<Item = &Packet> {
        let mac = self.radios[cell as usize].macs.get(station as usize);
        mac.into_iter().flat_map(|mac| mac.packets.iter().chain(&mac.staged))
    }

    /// Number of packets that MACs have for A-MPDUs.
    #[must_use]
    pub fn held(&self) -> u64 {
        let macs = self.radios.iter().flat_map(|radio| &radio.macs);
        macs.map(|mac| mac.packets.len() as u64 + u64::from(mac.staged.is_some())).sum()
    }

    /// Makes a cell tell of each ack, for a router law of one of its interfaces.
    pub fn report(&mut self, cell: u32) {
        let radio = &mut self.radios[cell as usize];
        radio.special = true;
        radio.cell.report();
    }

    /// The frames that an ack has answered now.
    #[must_use]
    pub fn batch(&self, cell: u32, station: u32) -> Batch {
        let radio = &self.radios[cell as usize];
        radio.cell.batch(station, radio.behind[station as usize])
    }

    /// Time of a cell's pending event before and now.
    pub fn planned(&mut self, cell: u32) -> Moved {
        let radio = &mut self.radios[cell as usize];
        let next = radio.cell.next();
        (std::mem::replace(&mut radio.due, next), next)
    }

    /// Handles what happens in a cell now. Returns each outcome with its station's link; [`give_back`](Self::give_back)
    /// takes the memory back.
    pub fn step(&mut self, now: Time, cell: u32) -> Vec<(u32, Happened)> {
        let mut happened = std::mem::take(&mut self.happened);
        let Radio { cell, stations, streams, full, due, .. } = &mut self.radios[cell as usize];
        *due = None;
        cell.step(now, |s| streams[s as usize].uniform(), &mut |what| {
            let (Happened::Delivered { station }
            | Happened::PassedOn { station }
            | Happened::Free { station, .. }
            | Happened::Acked { station }
            | Happened::Lost { station }
            | Happened::Room { station }) = what;
            if let Happened::Free { .. } = what {
                full[station as usize] = false;
            }
            happened.push((stations[station as usize].link, what));
        });
        happened
    }

    /// Starts to record the frames of a cell, which has number `captured` in the capture.
    pub fn listen(&mut self, cell: u32, captured: u32) {
        let radio = &mut self.radios[cell as usize];
        radio.captured = Some(captured);
        radio.cell.listen();
    }

    /// Passes recorded frames of a cell to `record`, each with its number in the capture and its sender's link.
    pub fn heard(&mut self, cell: u32, mut record: impl FnMut(u32, Transmission, u32)) {
        let radio = &mut self.radios[cell as usize];
        let Some(captured) = radio.captured else { return };
        let heard = radio.cell.heard();
        for sent in &heard {
            record(captured, *sent, radio.stations[sent.from as usize].link);
        }
        radio.cell.hear_into(heard);
    }

    /// Takes back the memory that [`step`](Self::step) returned.
    pub fn give_back(&mut self, mut happened: Vec<(u32, Happened)>) {
        happened.clear();
        self.happened = happened;
    }

    /// The interface of the node at which a packet has arrived, if it has one.
    #[must_use]
    pub fn interface_of_receiver(&self, cell: u32, packet: &Packet) -> Option<u32> {
        let receiver = self.receivers[packet.next as usize - 1];
        (receiver != NOBODY).then(|| self.radios[cell as usize].stations[receiver as usize].link)
    }
}

//! Summaries of links, cells and police.

use super::{Finished, curve};
use crate::fabric::Fabric;
use crate::link::{Counts, Impaired, Plain, Police, Port, Tested};
use crate::results::{
    AmpduCounts, CellCounts, CellSummary, DelayCurve, ImpairedSummary, LinkCounts, LinkSummary, Named,
    StationCounts, StationSummary, TestedFlow, share,
};
use flowstamp_laws::units::{Rate, Time};

/// Summaries of router links by number, and the distribution of queueing delay at each.
pub(super) fn summaries(sim: &Finished) -> (Vec<(String, LinkSummary)>, Vec<DelayCurve>) {
    let routers = || sim.net.routers().enumerate();
    let summary = |(number, (port, line)): (usize, (&Port, &Plain))| {
        (port.laws().name.clone(), link(sim, number, port, line))
    };
    let waits = |(_, (port, _)): (usize, (&Port, &Plain))| {
        let laws = port.laws();
        curve("link", &laws.name, None, &laws.stats.waits)
    };
    (routers().map(summary).collect(), routers().map(waits).collect())
}

/// Mean capacity of each router link over the run.
pub(super) fn capacities(sim: &Finished) -> Vec<Rate> {
    let mean = |port: &Port| port.laws().capacity.mean(Time::ZERO, sim.scenario.duration);
    sim.net.routers().map(|(port, _)| mean(port)).collect()
}

fn link(sim: &Finished, number: usize, port: &Port, line: &Plain) -> LinkSummary {
    let (start, end) = (sim.scenario.warmup, sim.net.now);
    let laws = port.laws();
    let stats = &laws.stats;
    let room = laws.capacity.bytes_between(start, end);
    let sent = port.sent_bytes(line, end);
    let queue = |share| stats.queue_times.quantile(share);
    let impaired = sim.net.impaired(number).filter(|link| link.reported);
    let after_warmup = counts(stats.counts(), impaired.map(|link| link.counts));
    LinkSummary {
        rate_bps: room * 8.0 / (end - start).as_secs_f64(),
        buffer_bytes: laws.buffer_bytes(sim.scenario.packet.as_f64()),
        utilization: if room > 0.0 { sent / room } else { 0.0 },
        mean_queue_bytes: stats.queue_times.integral() as f64 / (end - start).as_ps() as f64,
        p50_queue_bytes: queue(0.5),
        p90_queue_bytes: queue(0.9),
        p95_queue_bytes: queue(0.95),
        p99_queue_bytes: queue(0.99),
        max_queue_bytes: stats.max_queue as f64,
        queueing_delay_s: stats.waits.distribution(),
        arrivals: stats.arrivals,
        drops: stats.drops,
        marks: stats.marks,
        drop_rate: share(stats.drops, stats.arrivals),
        drops_data: after_warmup.drops_data,
        drops_acks: after_warmup.drops_acks,
        whole_run: counts(stats.whole_run(), impaired.map(Impaired::whole_run)),
        police: laws.police.as_ref().map(|police| tested(sim, police)),
        pfc: sim.net.pfc_summary(number),
        #[cfg(feature = "full")]
        scone: sim.net.advice(number),
        #[cfg(not(feature = "full"))]
        scone: None,
        impaired: after_warmup.impaired,
        after_warmup,
    }
}

fn counts([arrivals, drops, drops_acks, marks]: [u64; 4], impaired: Option<Counts>) -> LinkCounts {
    let impaired = impaired.map(|Counts { lost, duplicated, reordered, detoured, marked }| ImpairedSummary {
        lost,
        duplicated,
        reordered,
        detoured,
        marked,
    });
    LinkCounts { arrivals, drops, drops_data: drops - drops_acks, drops_acks, marks, impaired }
}

fn tested(sim: &Finished, police: &Police) -> Vec<TestedFlow> {
    let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
    let flow = |tested: &Tested| {
        let number = sim.hosts.policed.get(&tested.flow).copied().unwrap_or(u32::MAX);
        let record = sim.hosts.records.get(number as usize)?;
        Some(TestedFlow {
            flow: number,
            group: sim.hosts.groups[record.group as usize].name.clone(),
            index: record.index,
            round_s: tested.round.as_secs_f64(),
            told_s: tested.told.as_secs_f64(),
            judged_s: seconds(tested.judged),
            isolated_s: seconds(tested.isolated),
            tests: tested.tests,
            isolations: tested.isolations,
            drops: tested.drops,
        })
    };
    police.tested.iter().filter_map(flow).collect()
}

pub(super) fn cells(net: &Fabric, span_s: f64) -> Named<CellSummary> {
    let share = |time: Time| if span_s > 0.0 { time.as_secs_f64() / span_s } else { 0.0 };
    let mut cells = Named::new();
    for (name, medium, before) in net.cells().cells(net.now) {
        let cell = CellSummary {
            busy: share(medium.busy - before.busy),
            exchanges: medium.exchanges - before.exchanges,
            collisions: medium.collisions - before.collisions,
            whole_run: CellCounts { exchanges: medium.exchanges, collisions: medium.collisions },
            stations: Named::new(),
        };
        cells.insert(name.to_owned(), cell);
    }
    for view in net.cells().stations() {
        let (now, before) = (view.stats, view.before);
        let done = (now.sent + now.given_up) - (before.sent + before.given_up);
        let station = StationSummary {
            rate_bps: view.rate.map(Rate::bps),
            airtime: share(now.airtime - before.airtime),
            sent: now.sent - before.sent,
            given_up: now.given_up - before.given_up,
            attempts: now.attempts - before.attempts,
            collisions: now.collisions - before.collisions,
            errors: now.errors - before.errors,
            retries: now.retries - before.retries,
            ampdu: view.aggregates.then(|| AmpduCounts {
                exchanges: now.exchanges - before.exchanges,
                frames: now.mpdus - before.mpdus,
                frames_lost: now.mpdus_lost - before.mpdus_lost,
            }),
            mean_mac_delay_s: (now.delay - before.delay).as_secs_f64() / done.max(1) as f64,
            whole_run: StationCounts {
                sent: now.sent,
                given_up: now.given_up,
                attempts: now.attempts,
                collisions: now.collisions,
                errors: now.errors,
                retries: now.retries,
            },
        };
        if let Some(cell) = cells.get_mut(view.name.0) {
            cell.stations.insert(view.name.1.to_owned(), station);
        }
    }
    cells
}

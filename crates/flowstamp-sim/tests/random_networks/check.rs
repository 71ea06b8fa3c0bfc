//! One case: a scenario is refused in one clear line, or runs and keeps every invariant.

use super::memory;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_sim::digest::Digest;
use flowstamp_sim::medium::dcf::Kind;
use flowstamp_sim::results::{Recorded, Results};
use flowstamp_sim::scenario::{Impairments, Jitter, LinkJitter, LinkRate, OneOrMany, Scenario};
use flowstamp_sim::{Format, Loaded, Progress, Simulation, load};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use toml::{Table, Value};

/// A run of more events is cut short: its scenario is run again for half of the simulated time that they took.
const MOST_EVENTS: u64 = 1 << 18;

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which invariant, or where the panic was: a shrunk scenario fails in the same way.
    pub kind: String,
    /// The values.
    pub text: String,
}

/// The result of a scenario without a fault.
pub enum Outcome {
    /// Refused in this line.
    Refused(String),
    /// Too many events in however short a time: nothing was checked.
    Endless,
    /// It ran.
    Ran(Box<Ran>),
}

/// A run that kept every invariant.
pub struct Ran {
    pub loaded: Loaded,
    pub digest: Digest,
    /// How many flows were held to making progress.
    pub watched: u64,
    pub events: u64,
    /// Effects of flow control.
    pub pauses: Vec<&'static str>,
}

macro_rules! ensure {
    ($kind:literal, $holds:expr, $($text:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(Failure { kind: $kind.to_owned(), text: format!($($text)+) });
        }
    };
}

/// Loads and runs `tree`; paths in it are relative to `folder`.
pub fn case(tree: &Table, folder: &Path) -> Result<Outcome, Failure> {
    let text = toml::to_string(tree).map_err(|e| Failure { kind: "not TOML".into(), text: e.to_string() })?;
    match catch_unwind(AssertUnwindSafe(|| unguarded(&text, folder))) {
        Ok(result) => result,
        Err(_) => Err(super::quiet::last_panic()),
    }
}

fn unguarded(text: &str, folder: &Path) -> Result<Outcome, Failure> {
    let mut loaded = match load(text, Format::Toml, "random.toml", &[], folder) {
        Ok(loaded) => loaded,
        Err(e) => {
            let line = e.to_string();
            let clear = line.starts_with("random.toml: ") && line.len() > 25 && !line.contains('\n');
            ensure!("a refusal is one clear line", clear && line.len() < 2000, "{line:?}");
            return Ok(Outcome::Refused(line));
        }
    };
    let written = loaded.scenario.to_toml();
    match load(&written, Format::Toml, "written.toml", &[], folder) {
        Ok(again) => {
            ensure!("a scenario is written as it is read", again.scenario == loaded.scenario, "{written}");
        }
        Err(e) => {
            ensure!("a scenario is written as it is read", false, "{e}\n{written}");
        }
    }
    // A run of too many events is made shorter, at most thrice.
    for shorter in [false, true, true, true] {
        let (held, _) = memory::of_this_thread();
        let sim = match Simulation::new(&loaded, None) {
            Ok(sim) => sim,
            // A trace may have nothing in so short a time.
            Err(_) if shorter => break,
            Err(e) => return Err(Failure { kind: "what loads can be laid out".into(), text: e.to_string() }),
        };
        let mut last = None;
        let run = sim.run(&mut |p| {
            let stands = last.replace(p).is_some_and(|l: Progress| l.simulated == p.simulated);
            if stands || p.events > MOST_EVENTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let (_, peak) = memory::of_this_thread();
        if let Ok(results) = run {
            memory_is_bounded(&results, peak.saturating_sub(held))?;
            invariants(&results)?;
            let watched = progress(&results)?;
            if let Some(results) = with_another_rate(&loaded) {
                invariants(&results)?;
            }
            let events = results.summary.events;
            let pauses = paused(&results);
            return Ok(Outcome::Ran(Box::new(Ran {
                loaded,
                digest: results.digest(),
                watched,
                events,
                pauses,
            })));
        }
        let so_far = last.map_or(Time::ZERO, |p| p.simulated);
        ensure!("time goes on", so_far > Time::ZERO, "{MOST_EVENTS} events at the start of the run");
        let s = &mut loaded.scenario;
        s.duration = (so_far / 2).max(Time::from_ps(1));
        s.warmup = s.warmup.min(s.duration / 2);
        s.flows.retain(|g| match &g.start {
            OneOrMany::One(start) => *start < s.duration,
            OneOrMany::Many(starts) => starts.iter().all(|start| *start < s.duration),
        });
        if s.flows.is_empty() {
            break;
        }
    }
    Ok(Outcome::Endless)
}

/// The results if a station's rate is set half-way, where there are stations.
fn with_another_rate(loaded: &Loaded) -> Option<Results> {
    let scenario = &loaded.scenario;
    let cell = scenario.wireless.last()?;
    let (station, rates) = (cell.stations.len() / 2, cell.mac.0.params().rates);
    let mut go = |_: Progress| ControlFlow::Continue(());
    let mut sim = Simulation::new(loaded, None).ok()?;
    sim.run_until(scenario.duration / 2, &mut go).ok()?;
    let key = format!("wireless.{}.stations.{station}.rate", scenario.wireless.len() - 1);
    sim.set(&key, &rates[scenario.seed as usize % rates.len()].to_string()).expect("a rate of the standard");
    sim.run(&mut go).ok()
}

/// Fewer bytes than this hold any run: what its scenario makes, what its results hold, and the packets under way, each of
/// which was sent. A ring doubles, and is there twice while it is copied.
fn memory_is_bounded(r: &Results, peak: usize) -> Result<(), Failure> {
    let s = &r.summary;
    let links = s.links.len() as u64 + s.access.links;
    let zombies = 1_200_000 * 16 * s.links.len() as u64; // at most a million entries a class
    let text = r.scenario.to_owned_text();
    let shared = text.contains("zombies");
    // A random pattern draws 10,000 pairs of hosts, each with two routes. If packets are balanced, each has four ways in a
    // tree with k = 4, whose links are all listed.
    let ways = if text.contains("balance = \"ecmp\"") { 1 } else { 4 };
    let pairs = 10_000 * ways * text.matches("pattern = \"random\"").count() as u64;
    let produced: u64 =
        s.groups.values().filter_map(|g| Some(g.application.as_ref()?.whole_run.offered)).sum();
    // Links do not record packets in the order of time, so each of them may fill the capture alone.
    let each = r.scenario.capture.as_ref().map_or(0, |capture| u64::from(capture.packets));
    let recorded = (each * s.links.len() as u64).min(s.packet_hops);
    let bound = (4 << 20)
        + 4096 * (links + s.links.len() as u64)
        + 4 * 1024 * r.flows.len() as u64
        + 4 * 24 * r.series.value.len() as u64
        + 4 * 256 * recorded
        + 4 * 512 * r.capture.frames.len() as u64
        + 4 * 128 * s.packets.expect("a whole run").sent
        + 4 * 32 * produced
        + 256 * pairs
        + if shared { zombies } else { 0 };
    ensure!("memory is bounded", peak as u64 <= bound, "{peak} bytes where {bound} are enough: {s:?}");
    Ok(())
}

/// A scenario as text, to look for a word in.
trait Text {
    fn to_owned_text(&self) -> String;
}
impl Text for Scenario {
    fn to_owned_text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

/// All that must hold of any results.
fn invariants(r: &Results) -> Result<(), Failure> {
    let (s, scenario) = (&r.summary, &r.scenario);
    for text in [format!("{s:?}"), format!("{:?}", r.flows)] {
        let bad =
            text.split([' ', ',', '(', ')']).find(|w| matches!(w.trim_start_matches('-'), "NaN" | "inf"));
        ensure!("results are finite", bad.is_none(), "{bad:?} in {text}");
    }
    let mut row = 0..r.series.value.len();
    if let Some(i) = row.find(|i| !r.series.value[*i].is_finite()) {
        let key = &r.series.keys[r.series.key[i] as usize];
        ensure!("series are finite", false, "{} of {key:?} at {} s", r.series.value[i], r.series.time_s[i]);
    }
    for i in 0..r.series.value.len() {
        let (key, value) = (&r.series.keys[r.series.key[i] as usize], r.series.value[i]);
        let least = match key.metric.as_str() {
            "cwnd_packets" => 1.0 - 1e-9,
            // Feedback and spare capacity have a sign; all else is a count, a length, a rate or a share.
            metric if metric.contains("feedback") || metric.contains("spare") => f64::MIN,
            _ => 0.0,
        };
        ensure!("series are within bounds", value >= least, "{value} of {key:?} at {} s", r.series.time_s[i]);
    }

    let p = s.packets.expect("a whole run");
    ensure!("packets are conserved", p.arrived + p.lost <= p.sent, "{p:?}");
    let (packet, ack) = (scenario.packet.as_f64(), scenario.ack.as_f64());
    let buffers_of_packets = scenario.to_owned_text().contains("pkt\"");
    let shared = scenario.to_owned_text().contains("scheduler");
    let asks = scenario.to_owned_text().contains("medium") || !scenario.wireless.is_empty();
    let traced = scenario.to_owned_text().contains("trace");
    let rooms = rooms(r);
    for (name, link) in &s.links {
        // A buffer of packets holds the larger ones; with a queue for each class, each may have all of the buffer.
        let larger = if buffers_of_packets { (ack / packet).max(1.0) } else { 1.0 };
        let room = link.buffer_bytes * larger * if shared { 2.0 } else { 1.0 };
        // A station whose transmitter rests takes a packet whatever its buffer, and holds it until the medium is granted;
        // where classes have a queue each, the other one's fills beside it.
        let held = packet.max(ack) + if shared { room / 2.0 } else { 0.0 };
        let room = if asks { room.max(held) } else { room };
        // With flow control the rooms of all links that lead to the node come on top.
        let from = if rooms.is_empty() { None } else { ends(scenario, name).map(|(from, _)| from) };
        let leads = |to: &Option<String>| to.is_none() || from.is_none() || *to == from;
        let room = room + rooms.iter().filter(|(to, _)| leads(to)).map(|(_, room)| room).sum::<f64>();
        ensure!("a queue is within its buffer", link.max_queue_bytes <= room, "{name}: {room} {link:?}");
        // Each transmission takes whole picoseconds; what a trace has carried is known to the opportunities of one instant, of which
        // `bursty.down` has four: a packet that ends there may have had any part of them.
        let span_s = s.duration_s - s.warmup_s;
        let opportunities = if traced { 4.0 * 1500.0 } else { 0.0 };
        // A frame counts when it has arrived, and one may be under way in a cell when statistics begin.
        let under_way =
            if is_of_cell(scenario, name) && s.warmup_s > 0.0 { scenario.packet.as_f64() } else { 0.0 };
        let more = opportunities + under_way;
        let part = if more > 0.0 { 8.0 * more / (link.rate_bps * span_s) } else { 0.0 };
        let most = 1.0 + 1e-6 + (link.arrivals + 2) as f64 * 1e-12 / span_s + part;
        let most = most * over(scenario, name);
        let carries = (-1e-9..=most).contains(&link.utilization);
        ensure!("a link carries its capacity", carries, "{name}: {link:?}");
        ensure!("a mean is within its range", link.mean_queue_bytes >= 0.0, "{name}: {link:?}");
        let most = link.max_queue_bytes * (1.0 + 1e-9);
        ensure!("a mean is within its range", link.mean_queue_bytes <= most, "{name}: {link:?}");
        ensure!("a mean is within its range", link.p95_queue_bytes <= most, "{name}: {link:?}");
        // Packets queued at the end of the warm-up may be dropped or marked as they leave.
        let waited = if s.warmup_s > 0.0 { room / packet.min(ack) + 1.0 } else { 0.0 };
        let (decided, came) = ((link.drops + link.marks) as f64, link.arrivals as f64);
        ensure!("packets are conserved", decided <= came + waited, "{name}: {link:?}");
        // Packets that came before the end of warm-up may cross later.
        if let (Some(i), true) = (link.impaired, s.warmup_s <= 0.0) {
            let crossed = link.arrivals - link.drops;
            let on = i.detoured.max(i.reordered);
            let each = i.lost + i.duplicated <= crossed && i.lost + on <= crossed + i.duplicated;
            ensure!("packets are conserved", each, "{name}: {link:?}");
        }
    }
    for (name, link) in &s.links {
        let (all, after) = (link.whole_run, link.after_warmup);
        for c in [all, after] {
            ensure!("drops are of data or acks", c.drops == c.drops_data + c.drops_acks, "{name}: {link:?}");
        }
        let within = after.arrivals <= all.arrivals && after.drops <= all.drops && after.marks <= all.marks;
        ensure!("a part is less than the whole", within, "{name}: {link:?}");
        ensure!("a part is less than the whole", s.warmup_s > 0.0 || all == after, "{name}: {link:?}");
    }
    pauses(r)?;
    let drops: u64 = s.links.values().map(|l| l.whole_run.drops).sum();
    let stations = s.cells.values().flat_map(|c| c.stations.values());
    let given_up = stations.map(|s| s.whole_run.given_up).sum::<u64>();
    let impaired = s.links.values().filter_map(|l| l.whole_run.impaired).map(|i| i.lost).sum::<u64>();
    let lost = drops + given_up + impaired;
    ensure!("packets are conserved", lost == p.lost, "{drops}, {given_up} and {impaired} of {p:?}");
    cells(r)?;
    for f in &r.flows {
        let (done, start) = (f.end_s.is_some(), f.start_s);
        ensure!("a flow ends after it starts", f.end_s.is_none_or(|e| e >= start), "{f:?}");
        ensure!("a flow ends within the run", f.end_s.is_none_or(|e| e <= s.duration_s), "{f:?}");
        let acknowledged = f.fct_sender_s.get().is_none_or(|at| f.fct_s.is_some_and(|fct| at >= fct));
        ensure!("a flow ends at its receiver first", acknowledged, "{f:?}");
        if let Some(size) = f.size_bytes {
            ensure!("a flow delivers its bytes once", f.delivered_bytes <= size, "{f:?}");
            ensure!("a flow delivers its bytes once", !done || f.delivered_bytes == size, "{f:?}");
        }
        if let Some(rtt) = f.min_rtt_s.get() {
            ensure!("no packet is faster than light", rtt >= least_rtt(scenario, &f.group), "{f:?}");
        }
    }
    for (name, group) in &s.groups {
        let (jain, n) = (group.jain_index.unwrap_or(1.0), group.flows as f64);
        ensure!("fairness is a share", (0.0..=1.0 + 1e-9).contains(&jain), "{name}: {jain} of {n}");
        ensure!("a flow ends after it starts", group.completed <= group.flows, "{name}: {group:?}");
        let (all, after) = (group.whole_run, group.after_warmup);
        let within = after.flows <= all.flows
            && after.completed <= all.completed
            && after.delivered_bytes <= all.delivered_bytes
            && after.retransmissions <= all.retransmissions
            && after.timeouts <= all.timeouts;
        ensure!("a part is less than the whole", within, "{name}: {group:?}");
        ensure!("a part is less than the whole", s.warmup_s > 0.0 || all == after, "{name}: {group:?}");
        let rows = || r.flows.iter().filter(|f| *f.group == **name);
        let bytes = rows().map(|f| f.delivered_bytes).sum::<u64>();
        let later = rows().map(|f| f.delivered_bytes_after_warmup).sum::<u64>();
        let as_rows = (bytes, later) == (all.delivered_bytes, after.delivered_bytes);
        ensure!("a group has what its flows have", as_rows, "{name}: {bytes} and {later} of {group:?}");
        if let Some(law) = &group.littles_law {
            ensure!("Little's law counts each flow", law.unaccounted < 1e-9, "{name}: {law:?}");
        }
    }
    let at = |recorded: &Recorded<'_>| match recorded {
        Recorded::Packet(p) => p.time_ps,
        Recorded::Frame(f) => f.sent.begin.as_ps(),
    };
    let n = r.capture.packets.len() + r.capture.frames.len();
    let ordered = r.capture.in_order().map(|recorded| at(&recorded)).is_sorted();
    let all = r.capture.in_order().count();
    ensure!("a capture is in order of time", ordered && all == n, "{all} of {n} packets and frames");
    if let Some(capture) = &scenario.capture {
        ensure!("a capture ends when it is full", n <= capture.packets as usize, "{n}");
    }
    Ok(())
}

fn is_of_cell(scenario: &Scenario, link: &str) -> bool {
    scenario.wireless.iter().any(|cell| link.starts_with(&format!("{}.", cell.name)))
}

/// How much more a link may carry than it says: an interface of a cell has the rate that it is told, or the fastest of its stations, and these
/// may be scaled.
fn over(scenario: &Scenario, link: &str) -> f64 {
    let cell = scenario.wireless.iter().find(|c| link.starts_with(&format!("{}.", c.name)));
    cell.map_or(1.0, |cell| match cell.told {
        Some(_) => f64::INFINITY,
        None => cell.mac.0.params().scale.get().max(1.0),
    })
}

/// The counters of stations and media agree with each other and with the capture.
fn cells(r: &Results) -> Result<(), Failure> {
    let s = &r.summary;
    for (name, cell) in &s.cells {
        ensure!(
            "a medium is busy at most always",
            (0.0..=1.0 + 1e-9).contains(&cell.busy),
            "{name}: {cell:?}"
        );
        // An attempt is counted at the end of its frame, and what it came to at the end of the ack: an exchange may be under way when
        // statistics begin, and when they end.
        let mut sent = 0;
        for (station, of) in &cell.stations {
            let exchanges = of.ampdu.map_or(of.sent, |ampdu| ampdu.exchanges);
            let ends = exchanges + of.errors + of.collisions;
            if let Some(ampdu) = of.ampdu {
                // The frames of an exchange are counted before its ack, which may come after an edge of the statistics.
                let sent = ampdu.frames - ampdu.frames_lost;
                ensure!("frames come to something", sent == of.sent, "{name}.{station}: {of:?}");
                let least = exchanges + of.errors <= ampdu.frames + 1;
                ensure!("frames come to something", least, "{name}.{station}: {of:?}");
            }
            ensure!(
                "attempts come to something",
                of.attempts.abs_diff(ends) <= 1,
                "{name}.{station}: {of:?}"
            );
            ensure!("attempts come to something", of.retries <= of.attempts, "{name}.{station}: {of:?}");
            let shares = (0.0..=1.0 + 1e-9).contains(&of.airtime);
            ensure!(
                "a medium is busy at most always",
                shares || s.warmup_s > 0.0,
                "{name}.{station}: {of:?}"
            );
            sent += exchanges;
        }
        ensure!("exchanges are those of the stations", cell.exchanges == sent, "{name}: {cell:?}");
        // All frames of the run, if the capture was never full.
        let number = r.capture.cells.iter().position(|c| c.name == *name);
        let most = r.scenario.capture.as_ref().map_or(0, |c| c.packets as usize);
        if let (Some(number), 0.0) = (number, s.warmup_s) {
            let frames: Vec<_> = r.capture.frames.iter().filter(|f| f.cell as usize == number).collect();
            if r.capture.packets.len() + r.capture.frames.len() < most {
                let acks = frames.iter().filter(|f| f.sent.kind == Kind::Ack).count() as u64;
                ensure!("a capture has all acks", acks == sent, "{name}: {acks} of {sent}");
            }
            let known = frames.iter().all(|f| f.packet.is_none_or(|p| p.size == f.sent.bytes));
            ensure!("a frame carries its packet", known, "{name}: {} frames", frames.len());
        }
    }
    Ok(())
}

/// The least propagation time that the scenario asks for, where it says so: on a dumbbell.
fn least_rtt(s: &Scenario, group: &str) -> f64 {
    let Some(dumbbell) = &s.dumbbell else { return 0.0 };
    let impaired = [&dumbbell.impairments, &dumbbell.reverse_impairments];
    if impaired.into_iter().flatten().any(Impairments::have_delays) {
        return 0.0;
    }
    let own = s.flows.iter().find(|g| g.name == group).and_then(|g| {
        g.access.is_none().then_some(())?;
        let path = match &g.rtt {
            Some(OneOrMany::One(t)) => *t,
            Some(OneOrMany::Many(list)) => list.iter().min().copied()?,
            None => dumbbell.rtt,
        };
        // A coarse clock may have ticked just before a packet left.
        Some(path.saturating_sub(g.transport.tick.unwrap_or(Time::ZERO)))
    });
    // Halving odd picoseconds four times may leave the path some short.
    own.map_or(0.0, |t| t.as_secs_f64() - 8e-12)
}

/// The nodes from and to which a link leads, by its entry in the graph or else by its name.
fn ends(scenario: &Scenario, name: &str) -> Option<(String, String)> {
    for link in scenario.graph.iter().flat_map(|graph| &graph.links) {
        let Some(own) = &link.name else { continue };
        if name == own {
            return Some((link.from.clone(), link.to.clone()));
        }
        if name.strip_suffix(".reverse") == Some(own) {
            return Some((link.to.clone(), link.from.clone()));
        }
    }
    name.split_once("->").map(|(from, to)| (from.to_owned(), to.to_owned()))
}

/// Room of each link with flow control at the node to which it leads, bytes. The node is `None` if it is unknown.
fn rooms(r: &Results) -> Vec<(Option<String>, f64)> {
    let guarded = r.summary.links.iter().filter_map(|(name, link)| Some((name, link.pfc?)));
    guarded
        .map(|(name, pfc)| (ends(&r.scenario, name).map(|(_, to)| to), pfc.xoff_bytes + pfc.headroom_bytes))
        .collect()
}

/// Effects of flow control in a run.
fn paused(r: &Results) -> Vec<&'static str> {
    let some = |found: bool, word: &'static str| found.then_some(word);
    let pauses = r.summary.links.values().any(|link| link.pfc.is_some_and(|pfc| pfc.pauses > 0));
    let lost = r.summary.links.values().any(|link| link.pfc.is_some_and(|pfc| pfc.drops > 0));
    let controlled = r.summary.links.values().any(|link| link.pfc.is_some());
    let words = [
        some(controlled, "pfc links"),
        some(pauses, "pfc pauses"),
        some(lost, "pfc drops"),
        some(r.summary.pfc_deadlock.is_some(), "pfc deadlock"),
    ];
    words.into_iter().flatten().collect()
}

/// Flow control counts within its room, and loses nothing with the default headroom.
fn pauses(r: &Results) -> Result<(), Failure> {
    let (s, scenario) = (&r.summary, &r.scenario);
    let given = |name: &str| {
        let link = scenario.graph.iter().flat_map(|graph| &graph.links).find(|link| {
            link.name.as_ref().is_some_and(|own| name == own || name == format!("{own}.reverse"))
        });
        let topology =
            scenario.leaf_spine.iter().map(|t| t.pfc).chain(scenario.fat_tree.iter().map(|t| t.pfc));
        let pfc = link.map(|link| link.pfc).or_else(|| topology.last()).flatten()?;
        pfc.thresholds()?.headroom
    };
    for (name, pfc) in s.links.iter().filter_map(|(name, link)| Some((name, link.pfc?))) {
        let room = pfc.xoff_bytes + pfc.headroom_bytes;
        ensure!("waiting packets have room", pfc.max_ingress_bytes <= room, "{name}: {pfc:?}");
        let span = (s.duration_s - s.warmup_s) * (1.0 + 1e-9);
        ensure!("a pause is part of the run", (0.0..=span).contains(&pfc.paused_s), "{name}: {pfc:?}");
        let lossless = given(name).is_some() || pfc.drops == 0;
        ensure!("the default headroom loses nothing", lossless, "{name}: {pfc:?}");
    }
    if let Some(deadlock) = &s.pfc_deadlock {
        let rest = s.duration_s - deadlock.time_s.max(s.warmup_s) - 1e-9;
        let paused = |name: &String| s.links[name].pfc.is_some_and(|pfc| pfc.paused_s >= rest);
        let stands = deadlock.links.iter().all(paused);
        ensure!("links of a deadlock are paused to the end", stands, "{rest} of {deadlock:?}");
    }
    Ok(())
}

/// No flow stalls for ever. A flow must reach it if only the flow itself can prevent that: no packet was lost in the
/// whole run, and each link has a constant rate. It must then have delivered something by the time that its handshake,
/// its first packets and its ack take on a path of full queues.
///
/// A flow's reaction to losses is bounded by its retransmission timer: [`Simulation`] asserts, in builds with debug
/// assertions, that a flow with something to send always has a packet under way or a timer that is due within its limits.
fn progress(r: &Results) -> Result<u64, Failure> {
    let (s, scenario) = (&r.summary, &r.scenario);
    // A macro-flow's throughput is not a link's rate, and a station's rate depends on others.
    let governed = scenario.flows.iter().any(|g| g.governs.is_some());
    // Paused packets wait for those of other links, and for ever in a deadlock. Counts of pauses restart after warm-up, so
    // that a pause before cannot be excluded.
    let controlled = s.links.values().filter_map(|link| link.pfc);
    let paused = controlled.into_iter().any(|pfc| s.warmup_s > 0.0 || pfc.pauses > 0 || pfc.paused_s > 0.0);
    let held = governed || paused || !scenario.wireless.is_empty() || !scenario.outages.is_empty();
    let Some(slowest) = slowest(scenario).filter(|_| s.packets.expect("a whole run").lost == 0 && !held)
    else {
        return Ok(0);
    };
    let longest_hop = [scenario.packet, scenario.ack].into_iter().map(|b| slowest.tx_time(b)).max();
    // All bytes of the run through the slowest link: no queue can have been longer.
    let bytes =
        s.packets.expect("a whole run").sent as f64 * scenario.packet.as_f64().max(scenario.ack.as_f64());
    let queues = Rate::tx_time(slowest, Bytes::new(bytes as u64)) + longest_hop.unwrap_or_default() * 20;
    let propagation = longest_path(scenario) + longest_detour(scenario);
    let mut watched = 0;
    for f in &r.flows {
        let spec = scenario.flows.iter().find(|g| f.group.starts_with(&g.name));
        // An application may be silent for as long as it likes.
        let Some(spec) = spec.filter(|spec| spec.application.is_none()) else { continue };
        let jitter = match spec.jitter {
            Some(Jitter::UpTo(time)) => time,
            _ => Time::ZERO,
        };
        let patience = (queues + propagation) * 8 + spec.transport.delayed_ack_timeout + jitter;
        let by = Time::from_secs_f64(f.start_s) + patience;
        let stopped = spec.stop.is_some_and(|s| s <= by);
        if by >= scenario.duration
            || stopped
            || (spec.web.is_some() || spec.list.is_some()) && f.end_s.is_some()
        {
            continue;
        }
        watched += 1;
        ensure!("no flow stalls", f.delivered_bytes > 0, "nothing in {patience} of {f:?}");
    }
    Ok(watched)
}

/// The slowest rate of any link, if all are constant.
fn slowest(s: &Scenario) -> Option<Rate> {
    let constant = |r: &LinkRate| match r {
        LinkRate::Constant(r) => Some(*r),
        LinkRate::Varying(_) => None,
    };
    let mut rates = Vec::new();
    if let Some(d) = &s.dumbbell {
        rates.extend([Some(&d.rate), d.reverse_rate.as_ref()].into_iter().flatten().map(constant));
        rates.push(d.access_rate);
        if d.access_rate.is_none() {
            rates.pop();
        }
    }
    if let Some(p) = &s.parking_lot {
        rates.extend(p.rates.iter().chain(&p.access_rate).map(|r| Some(*r)));
    }
    if let Some(g) = &s.graph {
        rates.extend(g.links.iter().map(|l| constant(&l.rate)));
    }
    rates.extend(s.fat_tree.iter().map(|t| Some(t.rate)));
    rates.extend(s.leaf_spine.iter().flat_map(|l| [Some(l.rate), Some(l.spine_rate.unwrap_or(l.rate))]));
    rates.extend(s.flows.iter().filter_map(|g| g.access).map(|a| Some(a.rate)));
    let rates: Option<Vec<Rate>> = rates.into_iter().collect();
    rates?.into_iter().min_by(|a, b| a.bps().total_cmp(&b.bps()))
}

/// A bound on the propagation time of any path and back.
fn longest_path(s: &Scenario) -> Time {
    let links = match (&s.dumbbell, &s.parking_lot, &s.graph) {
        (Some(d), ..) => d.rtt,
        (_, Some(p), _) => (p.delay * p.rates.len() as u64 + p.access_delay * 2) * 2,
        _ if s.fat_tree.is_some() => s.fat_tree.iter().fold(Time::ZERO, |sum, t| sum + t.delay * 12),
        _ if s.leaf_spine.is_some() => s
            .leaf_spine
            .iter()
            .fold(Time::ZERO, |sum, l| sum + (l.delay + l.spine_delay.unwrap_or(l.delay)) * 4),
        (.., Some(g)) => g.links.iter().fold(Time::ZERO, |sum, l| sum + l.delay) * 2,
        _ => Time::ZERO,
    };
    let own = s.flows.iter().map(|g| {
        let access = g.access.map_or(Time::ZERO, |a| a.delay * 4);
        access
            + match &g.rtt {
                Some(OneOrMany::One(t)) => *t,
                Some(OneOrMany::Many(list)) => list.iter().max().copied().unwrap_or_default(),
                None => Time::ZERO,
            }
    });
    links + own.max().unwrap_or_default()
}

/// A bound on what impairments of links add to any path and back: copies that are made on the way are among the packets sent.
fn longest_detour(s: &Scenario) -> Time {
    let longer = |i: &Impairments| {
        let detour = i.detours.iter().map(|d| d.delay).max().unwrap_or_default();
        // A Pareto delay of shape 2.05 is 10^4 deviations above its mean for one packet in 10^8.
        let jitter = match i.jitter {
            None => Time::ZERO,
            Some(LinkJitter::Uniform { spread }) => spread,
            Some(LinkJitter::Normal { deviation }) => deviation * 10,
            Some(LinkJitter::Pareto { deviation, .. }) => deviation * 10_000,
        };
        let steps = i.delays.iter().flat_map(|d| d.steps.iter().flatten()).map(|(_, delay)| *delay).max();
        let trace = i.delays.as_ref().filter(|d| d.trace.is_some()).map(|_| Time::from_secs(1));
        let varying = steps.or(trace).unwrap_or_default();
        detour + i.reorder_delay.unwrap_or_default() + jitter + varying
    };
    let one = |i: &Option<Impairments>| i.as_ref().map_or(Time::ZERO, longer);
    let dumbbell = s.dumbbell.iter().map(|d| one(&d.impairments) * 2 + one(&d.reverse_impairments));
    let parking_lot = s.parking_lot.iter().map(|p| one(&p.impairments) * (2 * p.rates.len() as u64));
    let graph = s.graph.iter().flat_map(|g| &g.links).map(|l| one(&l.impairments) * 2);
    dumbbell.chain(parking_lot).chain(graph).fold(Time::ZERO, |sum, t| sum + t)
}

/// Names in a scenario's tree: laws, queues, schedulers and impairments that it uses.
pub fn words(tree: &Value, found: &mut Vec<String>) {
    match tree {
        Value::Table(t) => {
            for (key, value) in t {
                let tag = match key.as_str() {
                    "law" | "router" | "list" => Some(key.as_str()),
                    "mac" | "standard" => Some("mac"),
                    "ampdu_frames" => {
                        found.push("ampdu frames".to_owned());
                        None
                    }
                    "queue" | "kind" => Some("queue"),
                    "share" | "scheduler" => Some("share"),
                    _ => None,
                };
                match (tag, value) {
                    (Some(tag), Value::String(name)) => found.push(format!("{tag} {name}")),
                    (Some("router"), Value::Table(t)) => {
                        found.extend(t.get("law").and_then(Value::as_str).map(|n| format!("router {n}")));
                    }
                    _ if key == "outages" => {
                        found.extend(value.as_array().map(|_| "impairment outages".to_owned()));
                    }
                    _ if key.ends_with("impairments") => {
                        let keys = value.as_table().into_iter().flat_map(Table::keys);
                        found.extend(keys.map(|key| format!("impairment {key}")));
                    }
                    _ => words(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| words(v, found)),
        _ => {}
    }
}

//! Where the nanoseconds of a packet-hop go, measured in one run: `cargo bench -p flowstamp-sim --bench profile`.
//!
//! Four programs that each do more than the one before, on the same dumbbell (50 flows each way, three links each way):
//! the event queue alone; a bare loop that only serialises, propagates and acknowledges; the engine with TCP senders of
//! a fixed window and the link statistics; the engine with XCP. It prints a Markdown table.

use cpu_time::ThreadTime;
use flowstamp_laws::units::Time;
use flowstamp_sim::events::{Class, EventQueue, Source};
use flowstamp_sim::{Format, Simulation, load};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

const FLOWS: usize = 50;
const REPEATS: usize = 5;

/// Least CPU seconds of several runs of `f`, and what it returned.
fn least<T>(mut f: impl FnMut() -> T) -> (f64, T) {
    let mut best = f64::MAX;
    let mut out = None;
    for _ in 0..REPEATS {
        let start = ThreadTime::now();
        let value = f();
        best = best.min(start.elapsed().as_secs_f64());
        out = Some(value);
    }
    (best, out.expect("at least one repeat"))
}

/// An operation on the event queue.
#[derive(Clone, Copy)]
enum Operation {
    Push(Time, Source),
    Pop,
}

/// The event queue that the bare loop uses, and what was asked of it if that is wanted.
#[derive(Default)]
struct Queue {
    events: EventQueue,
    log: Option<Vec<Operation>>,
}

impl Queue {
    fn push(&mut self, time: Time, source: Source) {
        if let Some(log) = &mut self.log {
            log.push(Operation::Push(time, source));
        }
        self.events.push(time, source);
    }
    fn pop(&mut self) -> Option<(Time, Source)> {
        if let Some(log) = &mut self.log {
            log.push(Operation::Pop);
        }
        self.events.pop()
    }
}

/// The bare loop's operations on the event queue, and nothing else.
fn event_queue_alone(log: &[Operation]) -> u64 {
    let mut queue = EventQueue::default();
    let mut sum = 0;
    for operation in log {
        match *operation {
            Operation::Push(time, source) => queue.push(time, source),
            Operation::Pop => sum ^= queue.pop().map_or(0, |(t, _)| t.as_ps()),
        }
    }
    sum
}

/// A link that serialises and propagates, no more.
struct BareLink {
    flight: VecDeque<(u64, u32)>,
    free_at: u64,
    ps_per_byte: u64,
    delay: u64,
}

/// The bare loop: flow numbers travel over three links, come back as acks over three, and each ack sends a packet.
fn bare_loop(hops: u64, queue: &mut Queue) -> u64 {
    let (mbps, window) = (150u64, 30);
    let link = |rate: u64, delay_us: u64| BareLink {
        flight: VecDeque::with_capacity(64),
        free_at: 0,
        ps_per_byte: 8_000_000 / rate,
        delay: delay_us * 1_000_000,
    };
    // Bottlenecks, then for each of 2 x 50 flows: data up and down, acks up and down.
    let mut links = vec![link(mbps, 32_000), link(mbps, 32_000)];
    for _ in 0..2 * FLOWS * 4 {
        links.push(link(mbps * 10, 4_000));
    }
    let flows = 2 * FLOWS as u32;
    let mut done = 0;
    let mut now;
    // A packet is flow and stage in one word: stages 0..3 data, 3..6 acks.
    let route = |flow: u32, stage: u32| -> usize {
        let own = 2 + 4 * flow as usize;
        let data = (flow as usize) < FLOWS;
        match stage {
            0 => own,
            1 => usize::from(!data),
            2 => own + 1,
            3 => own + 2,
            4 => usize::from(data),
            _ => own + 3,
        }
    };
    let enqueue = |links: &mut Vec<BareLink>, queue: &mut Queue, now: u64, flow: u32, stage: u32| {
        let at = route(flow, stage);
        let l = &mut links[at];
        let size = if stage < 3 { 1000 } else { 40 };
        l.free_at = l.free_at.max(now) + size * l.ps_per_byte;
        let arrives = l.free_at + l.delay;
        if l.flight.is_empty() {
            queue.push(Time::from_ps(arrives), Source::new(Class::Delivery, at as u32));
        }
        l.flight.push_back((arrives, flow << 3 | stage));
    };
    for flow in 0..flows {
        for _ in 0..window {
            enqueue(&mut links, queue, 0, flow, 0);
        }
    }
    while done < hops {
        let Some((time, source)) = queue.pop() else { break };
        now = time.as_ps();
        let l = &mut links[source.number() as usize];
        let Some((_, word)) = l.flight.pop_front() else { break };
        if let Some((next, _)) = l.flight.front() {
            queue.push(Time::from_ps(*next), source);
        }
        done += 1;
        enqueue(&mut links, queue, now, word >> 3, (word + 1) % 8 % 6);
    }
    done
}

fn scenario(law: &str, router: &str) -> String {
    let transport = "transport = { initial_window = 30 }";
    let group = |name: &str, extra: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nlaw = {law}\ncount = {FLOWS}\nspread = \"80ms\"\n{transport}\n{extra}\n"
        )
    };
    format!(
        "duration = \"40s\"\nwarmup = \"10s\"\n[dumbbell]\nrate = \"150Mbps\"\nrtt = \"80ms\"\nrouter = \"{router}\"\n{}{}",
        group("long", ""),
        group("back", "reverse = true")
    )
}

/// CPU seconds and packet-hops of an engine run.
fn engine(law: &str, router: &str) -> (f64, u64) {
    let text = scenario(law, router);
    let loaded = load(&text, Format::Toml, "profile", &[], Path::new(".")).expect("the scenario is valid");
    least(|| {
        let sim = Simulation::new(&loaded, None).expect("the scenario is valid");
        sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it").summary.packet_hops
    })
}

#[expect(clippy::print_stdout, reason = "a bench's output")]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|a| a == "--test") {
        return; // `cargo test --benches` only asks that it builds
    }
    let hops = 8_500_000;
    let mut logged = Queue { log: Some(Vec::new()), ..Queue::default() };
    bare_loop(hops / 4, &mut logged);
    let log = logged.log.unwrap_or_default();
    let (queue_s, _) = least(|| (0..4).fold(0, |sum, _| sum ^ event_queue_alone(&log)));
    let (bare_s, _) = least(|| bare_loop(hops, &mut Queue::default()));
    let (tcp_s, tcp_hops) = engine("{ law = \"sack\", max_window = 30 }", "none");
    let (xcp_s, xcp_hops) = engine("\"xcp\"", "xcp");
    let rows = [
        ("event queue alone: the bare loop's operations on it", queue_s / hops as f64),
        ("bare loop: serialise, propagate, acknowledge", bare_s / hops as f64),
        ("engine: TCP senders of a fixed window, receivers, drop-tail, statistics", tcp_s / tcp_hops as f64),
        ("engine: XCP senders and routers, statistics", xcp_s / xcp_hops as f64),
    ];
    let mut table =
        String::from("| program | ns of CPU per packet-hop | more than the row above |\n|---|---:|---:|\n");
    let mut before = 0.0;
    for (name, seconds) in rows {
        let ns = seconds * 1e9;
        table += &format!("| {name} | {ns:.1} | {:.1} |\n", ns - before);
        before = ns;
    }
    println!("{table}");
}

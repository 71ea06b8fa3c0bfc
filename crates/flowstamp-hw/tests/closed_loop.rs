//! Closes RCP's loop: runs the simulator's dumbbell once with the simulated hardware in place of the law, and once with the
//! law itself. Flows start, join and stop, and obey the stamps. R(t) is the same within 1% at each slot.
#![cfg(model)]
#![expect(unsafe_code, reason = "the packets' module asks who runs it")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "how close they are")]

#[path = "../../flowstamp-linux/tests/packets/mod.rs"]
mod packets;

use flowstamp_hw::control::Rcp;
use flowstamp_hw::model::{Law, Port};
use flowstamp_hw::{Around, Registers, at};
use flowstamp_laws::link::LinkView;
use flowstamp_laws::registry::Header;
use flowstamp_laws::registry::scripted::{Router, Routes};
use flowstamp_laws::router::{PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::{Rate, Stamp, Time, rcp};
use flowstamp_sim::{Format, Simulation, load};
use flowstamp_wire::option::{self, LONG_LEN, MicrosFloat, Protocol, StampOption};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

const SCENARIO: &str = "
    duration = '8s'
    [dumbbell]
    rate = '100Mbps'
    rtt = '80ms'
    buffer = '4BDP'
    router = 'rcp'
    [[flows]]
    name = 'first'
    law = 'rcp'
    count = 5
    [[flows]]
    name = 'more'
    law = 'rcp'
    count = 5
    start = '3s'
    stop = '5s'
";
const CAPACITY: Rate = Rate::from_mbps(100.0);
const RTT: Time = Time::from_millis(80);
/// Bytes of the option's headers: Ethernet, IPv4, and TCP without options.
const HEADERS: usize = 54;

fn params() -> rcp::router::Params {
    rcp::router::Params { initial_rtt: Some(RTT), ..Default::default() }
}

/// R at the end of each slot, in bytes/s.
type Rates = Vec<(Time, f64)>;

trait HasRates: Routes {
    fn rates(&self) -> &Rates;
}

/// The law, which sees each packet.
#[derive(Debug)]
struct Software {
    law: rcp::Router,
    rates: Rates,
}

impl Routes for Software {
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
        self.law.on_arrival(link, packet);
    }

    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>) {
        self.law.on_departure(link, packet, || 0.0);
    }

    fn on_timer(&mut self, which: usize, link: LinkView) -> Time {
        let next = self.law.on_timer(which, link);
        self.rates.push((link.now, self.law.rate()));
        next
    }
}

impl HasRates for Software {
    fn rates(&self) -> &Rates {
        &self.rates
    }
}

/// Where the Verilated router is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Before the queue: it counts and stamps what arrives.
    Before,
    /// Behind the queue: it counts and stamps what leaves.
    Behind,
    /// One on either side: arrivals are counted and departures are stamped.
    Around,
}

/// Verilated routers, and their control path.
#[derive(Debug)]
struct Hardware {
    place: Place,
    before: Port,
    behind: Port,
    driver: Rcp,
    /// Stamps of the queued packets.
    queued: VecDeque<Stamp>,
    rates: Rates,
}

impl Hardware {
    fn new(place: Place) -> Self {
        let [mut before, mut behind] = [(); 2].map(|()| Port::new(Law::Rcp, 64));
        let driver = match place {
            Place::Before => Rcp::new(&params(), CAPACITY, &mut before),
            Place::Behind => Rcp::new(&params(), CAPACITY, &mut behind),
            Place::Around => {
                Rcp::new(&params(), CAPACITY, &mut Around { before: &mut before, behind: &mut behind })
            }
        };
        let driver = driver.expect("carried out");
        Self { place, before, behind, driver, queued: VecDeque::new(), rates: vec![] }
    }
}

/// Passes a packet as a frame through a router. Returns the stamp with which it leaves.
fn pass(port: &mut Port, size: u32, stamp: Stamp) -> Stamp {
    let header = rcp::Header::from(stamp);
    let rtt = match (header.rtt_s * 1e6).round() as u64 {
        0 => MicrosFloat::UNKNOWN,
        micros => MicrosFloat::from_micros(micros),
    };
    let sent = option::Stamp { value: (header.rate / 1e3).round() as u32, rtt, last: 0 };
    let options = StampOption { protocol: Protocol::Rcp, echo: 0, stamp: Some(sent) }.to_vec();
    // The simulator's SYN has 40 bytes, in which no option fits.
    let payload = (size as usize).saturating_sub(HEADERS + LONG_LEN);
    port.send(packets::Packet { options, payload, ..Default::default() }.frame(true).bytes);
    port.drain(1);
    let came = port.receive().expect("no frame is lost");
    let option = StampOption::parse(&came[HEADERS..HEADERS + LONG_LEN]).expect("it has kept its option");
    let value = option.stamp.expect("the long form").value;
    // The option has fewer digits than the simulator's rate, so a rate that the router has not lowered keeps its own.
    let rate = if value == sent.value { header.rate } else { f64::from(value) * 1e3 };
    rcp::Header { rate, ..header }.into()
}

impl Routes for Hardware {
    fn on_arrival(&mut self, _: LinkView, packet: PacketIn<'_>) {
        let stamp = *packet.stamp.expect("only data uses the link");
        let stamped = self.place != Place::Behind;
        self.queued.push_back(if stamped { pass(&mut self.before, packet.size, stamp) } else { stamp });
    }

    fn on_departure(&mut self, _: LinkView, packet: PacketOut<'_>) {
        let stamp = self.queued.pop_front().expect("it has arrived");
        assert_eq!(stamp.0[1..], packet.stamp.0[1..], "another packet's stamp");
        let stamped = self.place != Place::Before;
        *packet.stamp = if stamped { pass(&mut self.behind, packet.size, stamp) } else { stamp };
    }

    fn on_timer(&mut self, _: usize, link: LinkView) -> Time {
        let Self { before, behind, driver, .. } = self;
        before.set_queue(link.queue_bytes as u32);
        behind.set_queue(link.queue_bytes as u32);
        let next = match self.place {
            Place::Before => driver.slot(link.now, before),
            Place::Behind => driver.slot(link.now, behind),
            Place::Around => {
                driver.slot(link.now, &mut Around { before: &mut *before, behind: &mut *behind })
            }
        };
        let stamping = if self.place == Place::Before { before } else { behind };
        self.rates.push((link.now, f64::from(stamping.read(at::RCP_RATE)) * 1e3));
        next
    }
}

impl HasRates for Hardware {
    fn rates(&self) -> &Rates {
        &self.rates
    }
}

/// Runs the scenario with a law on its bottleneck. Returns R, and each flow's bytes.
fn run(law: impl HasRates + 'static) -> (Rates, Vec<f64>) {
    let loaded = load(SCENARIO, Format::Toml, "loop.toml", &[], Path::new(".")).expect("a scenario");
    let mut simulation = Simulation::new(&loaded, None).expect("a network");
    let law = Arc::new(Mutex::new(law));
    simulation.replace_router(0, Router { header: Header::Rcp, law: law.clone() });
    let results = simulation.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it");
    assert_eq!(results.summary.packets.expect("a whole run").lost, 0, "the queue of stamps assumes it");
    let delivered = results.flows.iter().map(|flow| flow.goodput_bps).collect();
    (law.lock().expect("no test has failed").rates().clone(), delivered)
}

/// Prints the relative differences of R and of the flows' goodputs from the law's. Returns the largest difference.
fn difference(place: Place) -> f64 {
    let law = rcp::Router::new(&params(), &RouterView::of(CAPACITY));
    let (rates, flows) = run(Software { law, rates: vec![] });
    let (hardware_rates, hardware_flows) = run(Hardware::new(place));

    assert_eq!(rates.len(), hardware_rates.len(), "slots");
    let (mut largest, mut sum, mut least, mut most) = (0.0f64, 0.0, f64::INFINITY, 0.0f64);
    for (law, hardware) in rates.iter().zip(&hardware_rates) {
        assert_eq!(law.0, hardware.0, "when slots end");
        let difference = (hardware.1 / law.1 - 1.0).abs();
        (largest, sum) = (largest.max(difference), sum + difference);
        (least, most) = (least.min(law.1), most.max(law.1));
    }
    let goodput = flows.iter().zip(&hardware_flows).map(|(law, hardware)| (hardware / law - 1.0).abs());
    let goodput = goodput.fold(0.0, f64::max);
    println!(
        "closed loop, {place:?}: {} slots, R from {:.1} to {:.1} Mb/s, R differs by {:.2}% at most and {:.2}% on average, \
         a flow's goodput by {:.2}%",
        rates.len(),
        least * 8e-6,
        most * 8e-6,
        100.0 * largest,
        100.0 * sum / rates.len() as f64,
        100.0 * goodput
    );
    assert!(most > 2.0 * least, "R hardly moved");
    largest.max(goodput)
}

#[test]
fn rates_are_those_of_the_law_within_a_percent() {
    let found = difference(Place::Around);
    assert!(found < 0.01, "{found}");
}

/// After a sudden overload, the queue delays either the stamps or the counts of a single router. docs/hardware.md has the
/// numbers.
#[test]
fn one_router_beside_the_queue_differs_from_the_law() {
    let [before, behind] = [Place::Before, Place::Behind].map(difference);
    assert!(before > 0.01 && behind > 0.01, "{before} before the queue, {behind} behind it");
}

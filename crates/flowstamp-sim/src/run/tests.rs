//! End-to-end tests of interfaces that no registered law uses yet: a law's bits, a queue's timer and its events.

use super::*;
use crate::{Format, load};
use flowstamp_laws::Stamp;
use flowstamp_laws::queue::{Limit, QueueLaw, QueueView};
use flowstamp_laws::registry::{AnyQueue, AnySender, Header, scripted};
use flowstamp_laws::router::{LinkView as LawView, NoParams, PacketIn, PacketOut};
use flowstamp_laws::units::Rate;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn lay_out(text: &str) -> Simulation {
    let loaded = load(text, Format::Toml, "test.toml", &[], Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"))
}

fn go_on(sim: &mut Simulation, until: Time) {
    sim.run_until(until, &mut |_| ControlFlow::Continue(())).expect("nobody stops it");
}

/// A router law that changes the bits and the first word of each packet's stamp, by one more for each packet.
#[derive(Debug, Default)]
struct Adds {
    /// Bits before, bits after, and the stamp that it wrote, for each packet.
    wrote: Vec<(u16, u16, Stamp)>,
}

impl scripted::Routes for Adds {
    fn on_arrival(&mut self, _: LawView, _: PacketIn<'_>) {}

    fn on_departure(&mut self, _: LawView, packet: PacketOut<'_>) {
        let nth = self.wrote.len() as u16;
        packet.stamp.0[0] += f64::from(nth);
        let found = *packet.bits;
        *packet.bits = found.wrapping_add(0x0100 + nth);
        self.wrote.push((found, *packet.bits, *packet.stamp));
    }

    fn on_timer(&mut self, _: usize, _: LawView) -> Time {
        Time::MAX
    }
}

/// Runs one flow with a scripted sender and router. Returns what the router wrote, and what acks told the sender.
#[expect(clippy::type_complexity, reason = "the scripts' own records")]
fn bits_under(delayed_acks: bool) -> (Vec<(u16, u16, Stamp)>, Vec<(u32, u16, Stamp)>) {
    let mut sim = lay_out(&format!(
        "duration = '1s'\n\
         [dumbbell]\nrate = '8Mbps'\nrtt = '20ms'\nbuffer = '100kB'\nrouter = 'xcp'\n\
         [[flows]]\nname = 'x'\nlaw = 'xcp'\ntransport = {{ delayed_acks = {delayed_acks} }}\n"
    ));
    let router = Arc::new(Mutex::new(Adds::default()));
    sim.replace_router(0, scripted::Router { header: Header::Xcp, law: router.clone() });
    let sender =
        scripted::Sender { window: 7000.0, stamp: Stamp([1.0, 0.0, 0.25]), bits: 0x3003, acks: Vec::new() };
    sim.hosts.flows[0].law = AnySender::Scripted(Box::new(sender));
    go_on(&mut sim, Time::from_secs(1));
    let AnySender::Scripted(sender) = &sim.hosts.flows[0].law else { panic!("it was put there") };
    (router.lock().expect("no test has failed").wrote.clone(), sender.acks.clone())
}

#[test]
fn bits_go_from_sender_to_router_to_receiver_and_back() {
    let (wrote, acks) = bits_under(false);
    assert!(acks.len() > 200, "{}", acks.len());
    for (nth, (found, left, _)) in wrote.iter().enumerate() {
        assert_eq!((*found, *left), (0x3003, 0x3103 + nth as u16));
    }
    for (ack, wrote) in acks.iter().zip(&wrote) {
        assert_eq!(*ack, (1, wrote.1, wrote.2));
    }
}

#[test]
fn a_delayed_ack_has_the_newest_bits_and_its_packets_stamps_merged() {
    let (wrote, acks) = bits_under(true);
    let mut answered = 0;
    let mut of_two = 0;
    for (packets, bits, stamp) in acks {
        let of_ack = &wrote[answered..answered + packets as usize];
        answered += packets as usize;
        of_two += usize::from(packets == 2);
        assert_eq!(bits, of_ack.last().expect("an ack answers something").1);
        let mut merged = of_ack[0].2;
        for (_, _, newer) in &of_ack[1..] {
            Header::Xcp.merge(&mut merged, newer);
        }
        assert_eq!(stamp, merged, "{of_ack:?}");
        assert!(packets == 1 || merged != of_ack.last().expect("two").2, "a header that adds up");
    }
    assert!(of_two > 100, "{of_two} acks of two packets");
}

#[test]
fn a_queue_law_hears_its_timer_departures_and_capacity() {
    // A link with CoDel, so that the queue law hears of departures.
    let mut sim = lay_out(
        "duration = '1s'\n\
         [dumbbell]\nrate = '8Mbps'\nrtt = '20ms'\nbuffer = '100kB'\nqueue = 'codel'\n\
         [[flows]]\nname = 'tcp'\nlaw = 'sack'\nsize = '200kB'\n",
    );
    let view =
        QueueView { limit: Limit::Bytes(100_000), capacity: Rate::from_mbps(8.0), mean_packet_bytes: 1000 };
    let mut law = scripted::Queue::new(&NoParams {}, &view);
    // The third time is in the past: such a timer must not stop simulated time.
    law.timer =
        vec![Time::from_millis(10), Time::from_micros(10_001), Time::from_millis(2), Time::from_millis(400)];
    let first = law.first_timer().expect("it has one");
    sim.net.laws_mut(0).queue = AnyQueue::Scripted(Box::new(law));
    sim.net.events.push(first, Source::new(Class::Queue, 0));
    go_on(&mut sim, Time::from_millis(300));
    sim.set("dumbbell.rate", "4Mbps").unwrap_or_else(|e| panic!("{e}"));
    go_on(&mut sim, Time::from_secs(1));
    let AnyQueue::Scripted(law) = &sim.net.laws_mut(0).queue else { panic!("it was put there") };
    let fired: Vec<Time> = law.fired.iter().map(|link| link.now).collect();
    let after = Time::from_micros(10_001) + Time::from_ps(1);
    assert_eq!(fired, [Time::from_millis(10), Time::from_micros(10_001), after, Time::from_millis(400)]);
    assert_eq!(law.capacities, [Rate::from_mbps(4.0)]);
    // Departures are in the order of arrival, with the same packets, and each sojourn time is exact.
    assert!(law.left.len() > 200, "{}", law.left.len());
    for (arrived, left) in law.arrived.iter().zip(&law.left) {
        assert_eq!((arrived.size, arrived.flow), (left.size, left.flow));
        assert_eq!(arrived.now + left.sojourn, left.now);
        assert_eq!(left.sojourn == Time::ZERO, arrived.idle_since.is_some());
    }
    assert!(law.left.iter().any(|left| left.sojourn >= Time::from_millis(5)));
}

/// The event queue of networks with many links, and prefetching, change no bit of any golden run.
#[test]
fn networks_of_many_links_have_the_same_order_of_events() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut runs = 0;
    for entry in std::fs::read_dir(&folder).expect("golden scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let loaded = load(&text, Format::Toml, "golden", &[], &folder).unwrap_or_else(|e| panic!("{e}"));
        let run = |many: bool| {
            let mut sim = Simulation::new(&loaded, None).unwrap_or_else(|e| panic!("{e}"));
            if many {
                sim.net.as_of_many_links();
            }
            sim.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it").digest().to_string()
        };
        assert_eq!(run(true), run(false), "{}", path.display());
        runs += 1;
    }
    assert!(runs > 50, "{runs}");
}

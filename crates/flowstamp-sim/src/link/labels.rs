//! Tests that labels go from the queue law of one link to that of the next.

use super::laws::Laws;
use super::*;
use crate::medium::{Capacity, Service};
use crate::packet::DATA;
use crate::random::Stream;
use flowstamp_laws::queue::{Hears, Limit, QueueLaw, QueueView};
use flowstamp_laws::registry::{Header, scripted};
use flowstamp_laws::router::NoParams;
use flowstamp_laws::share::{Scheduler, priority::Priority};

/// A link whose queue law asks for labels or not, and writes `label`.
fn link(labels: bool, label: Option<f64>) -> (Plain, Served) {
    let (rate, limit) = (Rate::from_mbps(8.0), Limit::Packets(100));
    let view = QueueView { limit, capacity: rate, mean_packet_bytes: 1000 };
    let mut law = scripted::Queue::new(&NoParams {}, &view);
    law.hears = Hears { labels, ..Hears::ARRIVALS };
    law.writes = label;
    let queue = AnyQueue::Scripted(Box::new(law));
    let capacity = Capacity::Constant(rate);
    let laws = Laws::new("link".to_owned(), capacity, limit, queue, None, Stream::new(1, "queue"), false);
    let served = Served::new(laws, Classifier::None, Scheduler::Priority(Priority), None);
    (Plain::new(Service::constant(rate), Time::from_millis(1)), served)
}

/// Sends two packets over the links in turn; the second one waits at each. Returns the labels that each law saw, and
/// the labels with which the packets arrive.
fn pass(flags: u8, header: Header, links: &mut [(Plain, Served)]) -> (Vec<Vec<Option<f64>>>, Vec<f64>) {
    let packet = Packet { size: 1000, flags, header, ..Packet::NONE };
    let (mut capture, sacks) = (Capture::default(), SackPool::default());
    let mut tap = Tap { capture: &mut capture, sacks: &sacks, link: 0 };
    let mut packets = vec![packet; 2];
    let mut seen = Vec::new();
    for (line, port) in links {
        for packet in &packets {
            port.admit(line, Time::ZERO, packet, &mut tap);
        }
        while let Some(at) = port.choice(line) {
            port.choose(line, at, &mut tap);
        }
        for packet in &mut packets {
            *packet = *line.deliver();
        }
        let AnyQueue::Scripted(law) = &port.laws.queue else { panic!("it was put there") };
        seen.push(law.arrived.iter().map(|arrival| arrival.label).collect());
    }
    (seen, packets.iter().map(|packet| packet.stamp.0[0]).collect())
}

#[test]
fn a_label_goes_from_link_to_link() {
    // Written, left as it is, written anew.
    let mut links = [link(true, Some(7.5)), link(true, None), link(true, Some(3.0)), link(true, None)];
    let (seen, last) = pass(DATA, Header::Plain, &mut links);
    assert_eq!(seen, [[None; 2], [Some(7.5); 2], [Some(7.5); 2], [Some(3.0); 2]]);
    assert_eq!(last, [3.0; 2]);
}

#[test]
fn who_does_not_hear_of_labels_neither_sees_nor_writes_them() {
    let mut links = [link(true, Some(7.5)), link(false, Some(1.0)), link(true, None)];
    let (seen, last) = pass(DATA, Header::Plain, &mut links);
    assert_eq!(seen, [[None; 2], [None; 2], [Some(7.5); 2]]);
    assert_eq!(last, [7.5; 2]);
}

#[test]
fn acks_and_packets_that_routers_write_into_bear_none() {
    for (flags, header) in [(0, Header::Plain), (DATA, Header::Xcp)] {
        let (seen, last) = pass(flags, header, &mut [link(true, Some(7.5)), link(true, None)]);
        assert_eq!(seen, [[None; 2]; 2]);
        assert_eq!(last, [0.0; 2]);
    }
}

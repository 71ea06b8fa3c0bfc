//! Parts of a packet-hop, by criterion: `cargo bench -p flowstamp-sim --bench parts`.

#![expect(missing_docs, reason = "criterion's macros make functions without")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use flowstamp_laws::Stamp;
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{FlowView, Recovery, SenderLaw};
use flowstamp_laws::tcp::reno::Sack;
use flowstamp_laws::transport::{self, AckPacket, DataPacket, Receiver, Sender};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::xcp::router::{Params, Router};
use flowstamp_laws::xcp::{Throughput as Draft, Window};
use flowstamp_sim::events::{Class, EventQueue, Source};
use flowstamp_sim::random::Stream;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

const EVENTS: u64 = 100_000;

/// The hold model: take the first event, put one back a random time later; as many pending as a dumbbell has.
fn event_queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("event queue, hold");
    group.throughput(Throughput::Elements(EVENTS));
    for pending in [30u32, 400, 10_000] {
        group.bench_function(format!("calendar/{pending}"), |b| {
            b.iter_batched_ref(
                || {
                    let mut random = Stream::new(1, "hold");
                    let mut queue = EventQueue::default();
                    for n in 0..pending {
                        queue.push(
                            Time::from_secs_f64(random.exponential(1e-3)),
                            Source::new(Class::Delivery, n),
                        );
                    }
                    (queue, random)
                },
                |(queue, random)| {
                    for _ in 0..EVENTS {
                        if let Some((t, s)) = queue.pop() {
                            queue.push(t + Time::from_secs_f64(random.exponential(1e-3)), s);
                        }
                    }
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_function(format!("std BinaryHeap/{pending}"), |b| {
            b.iter_batched_ref(
                || {
                    let mut random = Stream::new(1, "hold");
                    let queue: BinaryHeap<_> = (0..pending)
                        .map(|n| Reverse((Time::from_secs_f64(random.exponential(1e-3)), n)))
                        .collect();
                    (queue, random)
                },
                |(queue, random)| {
                    for _ in 0..EVENTS {
                        if let Some(Reverse((t, n))) = queue.pop() {
                            queue.push(Reverse((t + Time::from_secs_f64(random.exponential(1e-3)), n)));
                        }
                    }
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// An XCP router's work for one packet: account, then stamp.
fn xcp_router(c: &mut Criterion) {
    let mut group = c.benchmark_group("XCP router, per packet");
    group.throughput(Throughput::Elements(1));
    let view = LinkView { now: Time::ZERO, queue_bytes: 5000, queue_packets: 0 };
    let mut window = Router::<Window>::new(&Params::default(), &RouterView::of(Rate::from_mbps(150.0)));
    let header = Stamp([30_000.0, 0.08, 1e9]);
    group.bench_function("window form", |b| {
        b.iter(|| {
            let mut stamp = black_box(header);
            window.on_arrival(view, PacketIn::of(1000, Some(&stamp)));
            window.on_departure(view, PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            stamp
        });
    });
    let mut draft = Router::<Draft>::new(&Params::default(), &RouterView::of(Rate::from_mbps(150.0)));
    let header = Stamp([0.002_67, 0.08, 1e9]);
    group.bench_function("throughput form", |b| {
        b.iter(|| {
            let mut stamp = black_box(header);
            draft.on_arrival(view, PacketIn::of(1000, Some(&stamp)));
            draft.on_departure(view, PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            stamp
        });
    });
    group.finish();
}

/// Both ends of a TCP flow without losses, per data packet and its ack.
fn transport_ends(c: &mut Criterion) {
    let mut group = c.benchmark_group("transport, per data packet and ack");
    group.throughput(Throughput::Elements(1));
    let params = transport::Params { initial_window: 30.0, ..transport::Params::default() };
    let flow = FlowView { packet_bytes: 1000, initial_window: 30.0, app_rate: None };
    let mut law = Sack::new(&Default::default(), &flow);
    let mut sender = Sender::new(&params, Recovery::Sack, None);
    let mut receiver = Receiver::new(&params, Recovery::Sack);
    let mut now = Time::ZERO;
    group.bench_function("sack, no loss", |b| {
        b.iter(|| {
            now += Time::from_micros(10);
            let Some(out) = sender.next_packet(now, &law, 1000, u32::MAX) else { return };
            let stamp = Stamp::default();
            let data =
                DataPacket { seq: out.seq, ce: false, cwr: out.cwr, sent_at: now, stamp: &stamp, bits: 0 };
            if let Some(info) = receiver.on_data(now, &data, |_, _| {}) {
                let ack = AckPacket {
                    cumulative: info.cumulative,
                    sack: info.sack.as_slice(),
                    ecn_echo: info.ecn_echo,
                    sent_at: info.sent_at,
                    stamp: &info.stamp,
                    bits: info.bits,
                };
                black_box(sender.on_ack(now, &mut law, 1000, &ack));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, event_queue, xcp_router, transport_ends);
criterion_main!(benches);

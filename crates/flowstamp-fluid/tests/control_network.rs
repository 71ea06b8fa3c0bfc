//! Models of several links and several RTTs: compared with closed forms in equilibrium, with models of one link, and
//! with the laws.

use flowstamp_fluid::control::delay::{Past, Solution, System, Trouble};
use flowstamp_fluid::control::models::{self, Miaimd};
use flowstamp_fluid::control::network::{Paths, Rcp, Xcp};
use flowstamp_fluid::control::network_vcp::Vcp;
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, FlowView, SenderLaw};
use flowstamp_laws::stamp::Stamp;
use flowstamp_laws::units::{Rate, Ratio, Time};
use flowstamp_laws::vcp::exact;
use flowstamp_laws::vcp::sender::{Limiter, Params as VcpParams, Sender};
use flowstamp_laws::xcp::router::{Params, Router};
use flowstamp_laws::xcp::{Encoding, Window};
use proptest::prelude::*;
use std::collections::VecDeque;

fn at<const N: usize, S: System<N>>(system: S, start: [f64; N], step: f64, end: f64) -> [f64; N] {
    let mut solution = Solution::new(system, start, step).expect("a step below the delay");
    solution.advance(end).expect("a solution");
    *solution.state()
}

/// A parking lot: one group over both links, one over each; the second link has half the capacity.
fn parking_lot() -> Paths<2, 3> {
    Paths {
        capacities: [1.0, 0.5],
        flows: [1.0, 1.0, 1.0],
        rtts: [1.5, 0.5, 1.0],
        passes: [[Some(0.0), Some(0.25)], [Some(0.0), None], [None, Some(0.0)]],
    }
}

#[test]
fn max_min_fills_link_by_link() {
    // The smaller link is full first, of which the long flow has half; the other of the larger link has the rest.
    assert_eq!(parking_lot().max_min(), [0.25, 0.75, 0.25]);
    let shared = Paths::shared([3.0, 0.0, 7.0], [1.0, 0.0, 3.0]);
    assert_eq!(shared.max_min(), [0.1, 0.0, 0.1]);
    assert!((shared.mean_rtt(0) - 2.4).abs() < 1e-12);
}

#[test]
fn what_is_no_network_is_refused() {
    let good = parking_lot();
    assert!(good.checked().is_some());
    for bad in [
        Paths { flows: [0.0; 3], ..good },
        Paths { capacities: [1.0, 0.0], ..good },
        Paths { rtts: [0.2, 0.5, 1.0], ..good },
        Paths { passes: [[None; 2]; 3], ..good },
        Paths { rtts: [f64::NAN, 0.5, 1.0], ..good },
    ] {
        assert!(bad.checked().is_none(), "{bad:?}");
        assert!(
            Xcp::<2, 3, 5>::new(0.4, 0.226, 0.1, bad).is_none()
                && Rcp::<2, 3, 4>::new(0.4, 0.226, bad).is_none()
        );
    }
    // The shortest delay is that between the links.
    let model = Xcp::<2, 3, 5>::new(0.4, 0.226, 0.1, good).unwrap();
    assert_eq!(Solution::new(model, [0.0; 5], 0.3).err(), Some(Trouble::Step { step: 0.3, delay: 0.25 }));
}

#[test]
fn rcp_is_max_min_fair() {
    let paths = parking_lot();
    let model = Rcp::<2, 3, 4>::new(0.4, 0.226, paths).unwrap();
    let x = at(model, [0.0, 0.0, 0.1, 0.4], 1.0 / 32.0, 400.0);
    let [a, b, c] = paths.max_min();
    assert!(x[0].abs() < 1e-9 && x[1].abs() < 1e-9, "{x:?}");
    assert!((x[2] - b).abs() < 1e-9 && (x[3] - a).abs() < 1e-9 && (a - c).abs() < 1e-12, "{x:?}");
}

#[test]
fn one_links_rcp_is_that_of_one_link() {
    // Ten flows, from a tenth and from twice their rates, the latter with a queue.
    for (r, q) in [(0.1, 0.0), (2.0, 1.0)] {
        let one =
            models::Rcp { alpha: 0.5, beta: 0.5, most: 10.0, buffer: f64::INFINITY, queue_in_rtt: true };
        let many = Rcp::<1, 2, 2>::new(0.5, 0.5, Paths::shared([4.0, 6.0], [1.0, 1.0])).unwrap();
        for end in [1.0, 3.3, 17.0] {
            let [rate, queue] = at(one, [r, q], 1.0 / 32.0, end);
            let [same, share] = at(many, [q, r / 10.0], 1.0 / 32.0, end);
            assert!((rate - 10.0 * share).abs() < 1e-12 && (queue - same).abs() < 1e-12, "at {end}");
        }
    }
}

#[test]
fn xcp_shares_one_link_evenly_whatever_the_rtts() {
    for rtts in [[1.0, 1.0], [1.0, 3.0], [0.1, 2.0]] {
        let paths = Paths::shared([3.0, 7.0], rtts);
        let model = Xcp::<1, 2, 3>::new(0.4, 0.226, 0.1, paths).unwrap();
        let [q, a, b] = at(model, [0.0, 0.2, 0.02], 1.0 / 32.0, 600.0);
        let [fair, _] = paths.max_min();
        assert!(
            q.abs() < 1e-9 && (a - fair).abs() < 1e-9 && (b - fair).abs() < 1e-9,
            "{rtts:?}: {q} {a} {b}"
        );
    }
}

/// Low, Andrew and Wydrowski 2005: the flow of the larger link alone comes to rest where what it is given is what is taken of it,
/// `(F + h) / n = r h / y`, in the terms of equation 2: `gamma y^2 / 2 = (y - a) (gamma y - alpha (1 - y))` with the long flow's `a = 1/4`.
#[test]
fn xcp_leaves_of_a_link_what_its_shuffling_holds_back() {
    let paths = parking_lot();
    for gamma in [0.1, 0.01] {
        let alpha = 0.4;
        let model = Xcp::<2, 3, 5>::new(alpha, 0.226, gamma, paths).unwrap();
        let x = at(model, [0.0, 0.0, 0.2, 0.3, 0.1], 1.0 / 16.0, 40_000.0 * 0.01 / gamma);
        let (a, b, c) = (gamma / 2.0 + alpha, -(alpha + 0.25 * (gamma + alpha)), 0.25 * alpha);
        let arriving = (-b + (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
        let expected = [0.25, arriving - 0.25, 0.25];
        assert!(x[0].abs() < 1e-6 && x[1].abs() < 1e-6, "{x:?}");
        assert!(expected.iter().zip(&x[2..]).all(|(e, x)| (e - x).abs() < 1e-6), "{x:?}, not {expected:?}");
    }
}

/// A group of flows as the router sees it.
#[derive(Clone, Debug)]
struct Seen {
    flows: u32,
    rtt_s: f64,
    /// For each flow in an interval.
    packets: u32,
}

const PACKET: f64 = 1000.0;

/// The routers' interval: the mean RTT of the flows.
fn interval(groups: &[Seen]) -> f64 {
    let count: f64 = groups.iter().map(|g| f64::from(g.flows)).sum();
    groups.iter().map(|g| f64::from(g.flows) * g.rtt_s).sum::<f64>() / count
}

/// The feedback of XCP's router for one flow of each group in an interval, bytes/s, and its aggregate, after intervals
/// of just this traffic and queue.
fn routed(capacity: f64, gains: (f64, f64, f64), queue: f64, groups: &[Seen]) -> (Vec<f64>, f64) {
    let d = interval(groups);
    let params = Params {
        alpha: gains.0,
        beta: gains.1,
        gamma: gains.2,
        initial_interval: Some(Time::from_secs_f64(d)),
        ..Params::default()
    };
    let mut router = Router::<Window>::new(&params, &RouterView::of(Rate::from_bytes_per_sec(capacity)));
    let view = LinkView { now: Time::ZERO, queue_bytes: queue as u64, queue_packets: 0 };
    let mut given = vec![0.0; groups.len()];
    for round in 0..3 {
        for (group, given) in groups.iter().zip(&mut given) {
            let rate = f64::from(group.packets) * PACKET / d;
            for _ in 0..group.flows * group.packets {
                let mut stamp = Window::header(rate * group.rtt_s, group.rtt_s, PACKET, 1e15);
                router.on_arrival(view, PacketIn::of(PACKET as u32, Some(&stamp)));
                router.on_departure(
                    view,
                    PacketOut { size: PACKET as u32, stamp: &mut stamp, bits: &mut 0 },
                    || 0.5,
                );
                if round == 2 {
                    *given +=
                        Window::window_change(&stamp, group.rtt_s) / group.rtt_s / f64::from(group.flows);
                }
            }
        }
        // The queue's search begins as if there were none, and has to end twice.
        router.on_timer(1, view);
        router.on_timer(0, view);
    }
    let mut aggregate = f64::NAN;
    router.variables(&mut |name, value| {
        if name == "aggregate_feedback_bps" {
            aggregate = value / 8.0;
        }
    });
    (given, aggregate)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// For traffic and a queue that stay as they are the router hands out in its interval just what the model's slopes come to in it: to
    /// each flow its part, and of all what it says itself.
    #[test]
    fn xcps_router_is_the_model(
        made in prop::collection::vec((1..4u32, 0.01..0.5f64, 1..30u32), 3),
        load in 0.3..2.0f64,
        queue in 0.0..1.5f64,
        alpha in 0.05..1.5f64,
        beta in 0.01..1.0f64,
        gamma in 0.0..0.3f64,
    ) {
        let groups: Vec<Seen> =
            made.into_iter().map(|(flows, rtt_s, packets)| Seen { flows, rtt_s, packets }).collect();
        let sent: f64 = groups.iter().map(|g| f64::from(g.flows * g.packets)).sum();
        let d = interval(&groups);
        let capacity = sent * PACKET / d / load;
        let queue = (queue * capacity * d).floor();
        let (given, aggregate) = routed(capacity, (alpha, beta, gamma), queue, &groups);

        // The model in seconds and shares of the capacity.
        let paths = Paths::shared(
            std::array::from_fn(|i| f64::from(groups[i].flows)),
            std::array::from_fn(|i| groups[i].rtt_s),
        );
        let model = Xcp::<1, 3, 4>::new(alpha, beta, gamma, paths).unwrap();
        let x = [
            queue / capacity,
            f64::from(groups[0].packets) * PACKET / d / capacity,
            f64::from(groups[1].packets) * PACKET / d / capacity,
            f64::from(groups[2].packets) * PACKET / d / capacity,
        ];
        let solution = Solution::new(model, x, groups.iter().map(|g| g.rtt_s).fold(1.0, f64::min)).unwrap();
        let slopes = solution.slopes();
        let scale = capacity * d;
        let mut sum = 0.0;
        for (i, given) in given.iter().enumerate() {
            let expected = slopes[i + 1] * scale;
            // Rounding of sums, and of times that are whole picoseconds.
            prop_assert!((given - expected).abs() < 1e-8 * capacity, "group {i}: {given}, not {expected}");
            sum += f64::from(groups[i].flows) * expected;
        }
        prop_assert!((sum - aggregate).abs() < 1e-8 * capacity, "{aggregate}, not {sum}");
    }

    /// VCP's senders multiply at the load of their code 01 (80%) and add as the model does, whatever the RTT.
    #[test]
    fn vcps_sender_is_the_model(kappa in 0.05..0.9f64, alpha in 0.1..10.0f64, rtt_ms in 1.0..200.0f64) {
        let t_rho = 0.2;
        let params = VcpParams {
            kappa,
            alpha,
            t_rho: Some(Time::from_secs_f64(t_rho)),
            ai_limiter: Limiter::None,
            ..VcpParams::default()
        };
        let sender = Sender::new(&params, &FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None });
        let rtt = Time::from_secs_f64(rtt_ms / 1e3);
        let paths = Paths::shared([1.0], [rtt.as_secs_f64()]);
        let model = Vcp { kappa, addition: alpha, target: 1.0, t_rho, paths };
        let (multiplied, added) = (model.multiplies_by(0.8, rtt.as_secs_f64()), model.adds(rtt.as_secs_f64()));
        prop_assert!((sender.multiplies_by(rtt) / multiplied - 1.0).abs() < 1e-12);
        prop_assert!((sender.adds(rtt, 1e9) / added - 1.0).abs() < 1e-12);
    }
}

/// States of a model at whole multiples of half its unit of time.
fn by_halves<const N: usize>(model: impl System<N>, start: [f64; N], halves: u32) -> Vec<[f64; N]> {
    let times: Vec<f64> = (1..=halves).map(|half| f64::from(half) / 2.0).collect();
    let mut solution = Solution::new(model, start, 1.0 / 64.0).expect("a step below the delay");
    solution.sampled(&times).expect("a solution")
}

/// The most that two paths are apart.
fn apart<const N: usize>(a: &[[f64; N]], b: &[[f64; N]]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// First order: a quarter of the interval, a quarter of the error.
fn first_order(errors: [f64; 3]) -> bool {
    errors[1] < errors[0] / 3.0 && errors[2] < errors[1] / 3.0
}

/// XCP's router every so often, and a flow of half and one of one and a half mean RTTs, which obey it so much later: queue and rates in
/// capacities and mean RTTs, at multiples of half of one. Before zero all is as it is then.
///
/// The law decides once in the RTT that packets say. The router decides `parts` times as often, and each decision is
/// smaller by that factor, with gains of the same slopes: an interval brings one part, and `Q / d` is as many times
/// what it is.
fn xcp_by_parts((alpha, beta, gamma): (f64, f64, f64), start: [f64; 2], parts: u32) -> Vec<[f64; 3]> {
    let (rtts, d, capacity, many) = ([0.05, 0.15], 0.1, 4e10, f64::from(parts));
    let interval = d / many;
    let params = Params {
        alpha: alpha / many,
        beta: beta / many / many,
        gamma: gamma / many,
        initial_interval: Some(Time::from_secs_f64(interval)),
        ..Params::default()
    };
    let mut router = Router::<Window>::new(&params, &RouterView::of(Rate::from_bytes_per_sec(capacity)));
    let mut rates = start.map(|rate| rate * capacity);
    let mut told = [parts / 2, 3 * parts / 2].map(|steps| VecDeque::from(vec![0.0; steps as usize]));
    let (mut queue, mut seen) = (0.0f64, Vec::new());
    for i in -i64::from(2 * parts)..20 * i64::from(parts) {
        let sent = rates.map(|rate| (rate * interval) as u32);
        if i >= 0 {
            queue = (queue + f64::from(sent[0]) + f64::from(sent[1]) - capacity * interval).max(0.0);
        }
        let view = LinkView { now: Time::ZERO, queue_bytes: queue as u64, queue_packets: 0 };
        for ((rate, told), (size, rtt)) in rates.iter_mut().zip(&mut told).zip(sent.into_iter().zip(rtts)) {
            let said = rtt / many;
            let mut stamp = Window::header(*rate * said, said, f64::from(size), 1e15);
            router.on_arrival(view, PacketIn::of(size, Some(&stamp)));
            router.on_departure(view, PacketOut { size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            told.push_back(Window::window_change(&stamp, said) / said);
            let change = told.pop_front().expect("as many as there are steps in an RTT");
            *rate += if i >= 0 { change } else { 0.0 };
        }
        router.on_timer(1, view);
        router.on_timer(0, view);
        if i >= 0 && (i + 1) % i64::from(parts / 2) == 0 {
            seen.push([queue / (capacity * d), rates[0] / capacity, rates[1] / capacity]);
        }
    }
    seen
}

#[test]
fn xcps_router_is_the_model_as_its_interval_shrinks() {
    for (gains, start) in [((0.4, 0.226, 0.1), [0.9, 0.4]), ((0.8, 0.5, 0.05), [0.1, 0.3])] {
        let paths = Paths::shared([1.0, 1.0], [0.5, 1.5]);
        let model = Xcp::<1, 2, 3>::new(gains.0, gains.1, gains.2, paths).unwrap();
        let theory = by_halves(model, [0.0, start[0], start[1]], 40);
        assert!(theory.iter().any(|x| x[0] > 0.05), "no queue to speak of: {theory:?}");
        let errors = [10, 40, 160].map(|parts| apart(&xcp_by_parts(gains, start, parts), &theory));
        assert!(first_order(errors), "{gains:?}: {errors:?}");
    }
}

/// Which acks come.
#[derive(Clone, Copy, PartialEq)]
enum Acks {
    /// A window of now in an RTT, as equation 9 has it.
    Window,
    /// Those of what was sent an RTT ago.
    Sent,
}

/// VCP's router and senders with the exact load, whose router measures `parts` times in an RTT: windows over the link's product of two flows, at multiples of half
/// an RTT. Before zero they are as they are then.
fn vcp_by_parts(kappa: f64, addition: f64, start: [f64; 2], acks: Acks, parts: u32) -> Vec<[f64; 2]> {
    let (rtt, capacity) = (0.1, 1e10);
    let (t_rho, bdp) = (rtt / f64::from(parts), rtt * capacity);
    let params = exact::RouterParams {
        t_rho: Some(Time::from_secs_f64(t_rho)),
        k_q: 0.0,
        step: Ratio::new(0.0),
        ..exact::RouterParams::default()
    };
    let mut router = exact::Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(capacity)));
    let rtt = Time::from_secs_f64(rtt);
    // The senders' interval is the RTT: with one that shrinks as the router's, they would take RTTs for as long as their bound of 2.5 lets them.
    let params = exact::Params { t_rho: Some(rtt), kappa, alpha: addition * bdp };
    let mut senders = start.map(|window| {
        let flow = FlowView { packet_bytes: 1, initial_window: window * bdp, app_rate: None };
        exact::Sender::new(&params, &flow)
    });
    let view = LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 };
    let (mut told, mut sent, mut seen) = (VecDeque::new(), VecDeque::new(), Vec::new());
    for i in -i64::from(parts)..20 * i64::from(parts) {
        let packets = senders.each_ref().map(|sender| (sender.cwnd() / f64::from(parts)) as u32);
        let mut stamp = Stamp::default();
        router.on_arrival(view, PacketIn::of(packets[0] + packets[1], None));
        router.on_timer(0, view);
        router.on_departure(view, PacketOut { size: 1, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
        told.push_back(stamp);
        sent.push_back(packets);
        if i < 0 {
            continue;
        }
        let stamp = told.pop_front().expect("a stamp of an RTT ago");
        let before = sent.pop_front().expect("packets of an RTT ago");
        for (sender, newly_acked) in senders.iter_mut().zip(if acks == Acks::Sent { before } else { packets })
        {
            sender.on_ack(&Ack { newly_acked, ..Ack::of_one(Time::ZERO, rtt, &stamp) });
        }
        if (i + 1) % i64::from(parts / 2) == 0 {
            seen.push(senders.each_ref().map(|sender| sender.cwnd() / bdp));
        }
    }
    seen
}

/// Equations 9 to 11 where acks are those of what was sent an RTT ago: a window grows by so much for each of them.
#[derive(Clone, Copy)]
struct Clocked {
    kappa: f64,
    addition: f64,
    target: f64,
}

impl System<2> for Clocked {
    type Mode = ();
    fn delays(&self) -> (f64, f64) {
        (1.0, 1.0)
    }
    fn mode(&self, _: f64, _: &[f64; 2], _: &Past<2>) {}
    fn slope(&self, (): (), t: f64, x: &[f64; 2], past: &Past<2>) -> [f64; 2] {
        let then = past.at(t - 1.0);
        let xi = flowstamp_laws::vcp::growth(self.kappa, (then[0] + then[1]) / self.target);
        std::array::from_fn(|i| then[i] * (xi + self.addition / x[i]))
    }
    fn guard(&self, (): (), _: f64, _: &[f64; 2], _: &Past<2>) -> f64 {
        1.0
    }
    fn switch(&self, (): (), _: f64, _: &mut [f64; 2], _: &Past<2>) {}
}

#[test]
fn vcps_exact_law_is_the_model_as_its_interval_shrinks() {
    for (kappa, addition, start) in [(0.25, 0.01, [0.3, 0.1]), (0.5, 0.002, [1.2, 0.3])] {
        let paths = Paths::shared([1.0, 1.0], [1.0, 1.0]);
        let model = by_halves(Vcp { kappa, addition, target: 0.98, t_rho: 1.0, paths }, start, 40);
        let clocked = by_halves(Clocked { kappa, addition, target: 0.98 }, start, 40);
        let errors = |acks: Acks, theory: &[[f64; 2]]| {
            [10, 40, 160].map(|parts| apart(&vcp_by_parts(kappa, addition, start, acks, parts), theory))
        };
        let (window, sent) = (errors(Acks::Window, &model), errors(Acks::Sent, &clocked));
        assert!(first_order(window), "kappa {kappa}: {window:?}");
        assert!(first_order(sent), "kappa {kappa}, acks of what was sent: {sent:?}");
        // A window has fewer acks than packets while it grows, of which equation 9 does not know.
        let stays = apart(&model, &clocked);
        assert!(stays > 0.03, "kappa {kappa}: {stays}");
    }
}

#[test]
fn vcp_of_one_rtt_is_miaimd() {
    let (kappa, addition) = (0.25, 0.02);
    let one = Miaimd { kappa, addition };
    let paths = Paths::shared([4.0, 6.0], [1.0, 1.0]);
    let many = Vcp { kappa, addition: 0.98 * addition / 10.0, target: 0.98, t_rho: 1.0, paths };
    for end in [1.0, 7.7, 50.0] {
        let [w] = at(one, [0.3], 1.0 / 32.0, end);
        let [a, b] = at(many, [0.3 * 0.98 / 10.0; 2], 1.0 / 32.0, end);
        assert!((w * 0.98 - 10.0 * a).abs() < 1e-12 && (a - b).abs() < 1e-15, "at {end}: {w}, {a}");
    }
}

/// Theorem 2 and section III-D: rates are max-min fair on several links, and on one link nearly even whatever the RTTs.
#[test]
fn vcp_is_max_min_fair() {
    let (kappa, addition) = (0.25, 1e-4);
    let paths = Paths { rtts: [1.0; 3], ..parking_lot() };
    let x = at(Vcp { kappa, addition, target: 0.98, t_rho: 1.0, paths }, [0.05; 3], 1.0 / 16.0, 2e4);
    // Above the target by what is added, `a / kappa` of each of its flows: the load is 1 + n a / (kappa gamma C).
    for (rate, (share, (n, c))) in
        x.iter().zip(paths.max_min().iter().zip([(2.0, 0.5), (2.0, 1.0), (2.0, 0.5)]))
    {
        let above = n * addition / (kappa * 0.98 * c);
        assert!((rate / (0.98 * share) - 1.0).abs() < 2.0 * above, "{x:?}, {above}");
    }
    let paths = Paths::shared([1.0, 1.0], [0.5, 2.0]);
    let [a, b] = at(Vcp { kappa, addition, target: 0.98, t_rho: 1.0, paths }, [0.6, 0.1], 1.0 / 16.0, 4e4);
    assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
}

/// XCP's equations 15 to 17 on one link by Euler's method in steps of `h`, with flows of two RTTs: queue and rates, none below zero.
fn by_euler(gains: (f64, f64), rtts: [f64; 2], start: [f64; 3], h: f64, end: f64) -> Vec<[f64; 3]> {
    let (mut x, mut found) = (start, vec![start]);
    let d = 0.5 * (rtts[0] + rtts[1]);
    for i in 0..(end / h).round() as usize {
        let mut next = x;
        for (group, rtt) in rtts.iter().enumerate() {
            let [q, a, b] = i.checked_sub((rtt / h).round() as usize).map_or(start, |then| found[then]);
            let (y, r) = (a + b, if group == 0 { a } else { b });
            let f = (gains.0 * (1.0 - y) - gains.1 * q / d) / d;
            let h_ = (0.1 * y / d - f.abs()).max(0.0);
            let taken = if y > 0.0 { r / y * ((-f).max(0.0) + h_) } else { 0.0 };
            next[group + 1] = (x[group + 1] + h * ((f.max(0.0) + h_) / 2.0 - taken)).max(0.0);
        }
        next[0] = (x[0] + h * (x[1] + x[2] - 1.0)).max(0.0);
        x = next;
        found.push(x);
    }
    found
}

/// The difference between Euler's method and ours falls with its step, to a small value.
#[test]
fn xcps_rates_at_zero_are_eulers() {
    // From eight times the fair rates, with a queue that takes all of one's, and with gains that are stable for no RTTs.
    for (gains, rtts, start) in [
        ((0.4, 0.226), [1.5, 0.5], [0.0, 4.0, 4.0]),
        ((0.4, 0.226), [1.0, 1.0], [3.0, 0.5, 0.1]),
        ((1.8, 1.2), [1.5, 0.5], [0.0, 0.25, 0.25]),
    ] {
        let model = Xcp::<1, 2, 3>::new(gains.0, gains.1, 0.1, Paths::shared([1.0; 2], rtts)).unwrap();
        let times: Vec<f64> = (0..=120).map(|i| f64::from(i) / 10.0).collect();
        let found = Solution::new(model, start, 1.0 / 32.0).unwrap().sampled(&times).unwrap();
        let off = |steps: usize| {
            let euler = by_euler(gains, rtts, start, 1.0 / steps as f64, 12.0);
            let each = found.iter().zip(euler.iter().step_by(steps / 10));
            let most = |(x, e): (&[f64; 3], &[f64; 3])| {
                x.iter().zip(e).map(|(x, e)| (x - e).abs()).fold(0.0, f64::max)
            };
            each.map(most).fold(0.0, f64::max)
        };
        let (coarse, fine) = (off(2000), off(8000));
        assert!(fine < coarse / 3.0 && fine < 2e-3, "{gains:?}, {rtts:?}: {coarse} and {fine} from Euler's");
        assert!(found.iter().any(|x| x[1] == 0.0 || x[2] == 0.0), "{gains:?}, {rtts:?}: no rate is zero");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For any network and gains, stable or not: queues and rates are not below zero, RCP's rates are within their
    /// links', and switches are told apart.
    #[test]
    fn queues_and_rates_are_not_below_zero(
        second in 0.2..2.0f64,
        rtts in prop::array::uniform3(0.5..3.0f64),
        between in 0.05..0.45f64,
        start in prop::array::uniform5(0.0..1.5f64),
        alpha in 0.1..1.6f64,
        beta in 0.05..1.2f64,
    ) {
        let paths = Paths {
            capacities: [1.0, second],
            flows: [2.0, 3.0, 1.0],
            rtts,
            passes: [[Some(0.0), Some(between)], [Some(0.0), None], [None, Some(0.0)]],
        };
        let mut xcp = Solution::new(Xcp::<2, 3, 5>::new(alpha, beta, 0.1, paths).unwrap(), start, 1.0 / 32.0).unwrap();
        let [a, b] = [start[2].min(1.0), start[3].min(second)];
        let model = Rcp::<2, 3, 4>::new(alpha, beta, paths).unwrap();
        let mut rcp = Solution::new(model, [start[0], start[1], a, b], 1.0 / 32.0).unwrap();
        for step in 1..=32 * 40 {
            let now = f64::from(step) / 32.0;
            xcp.advance(now).unwrap();
            let x = xcp.state();
            prop_assert!(x.iter().all(|x| *x >= 0.0), "XCP at {now}: {x:?}");
            rcp.advance(now).unwrap();
            let x = rcp.state();
            prop_assert!(x[0] >= 0.0 && x[1] >= 0.0, "RCP at {now}: {x:?}");
            prop_assert!((0.0..=1.0).contains(&x[2]) && (0.0..=second).contains(&x[3]), "RCP at {now}: {x:?}");
        }
    }
}

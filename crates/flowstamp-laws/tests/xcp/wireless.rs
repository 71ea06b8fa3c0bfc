//! XCPw against the equations of XCP, against the algorithm of its authors' emulation, and what must hold of it whatever
//! comes.

use crate::made::{self, Made, capacity, feedback, finite, header, packet};
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::xcp::wireless::{Params, Router, Variant};
use flowstamp_laws::xcp::{Encoding, Window};
use proptest::prelude::*;
use std::collections::VecDeque;

const SIZE: u32 = 1500;
/// One packet per millisecond.
const RATE: Rate = Rate::from_mbps(12.0);
/// `d` of the flows here, in milliseconds.
const RTT: u64 = 100;

fn router(variant: Variant) -> Router {
    let p = Params { variant, initial_interval: Some(Time::from_millis(RTT)), ..Params::default() };
    Router::new(&p, &RouterView::of(RATE))
}

fn view(ms: u64, queue: u64) -> LinkView {
    LinkView {
        now: Time::from_millis(ms),
        queue_bytes: queue * u64::from(SIZE),
        queue_packets: u32::try_from(queue).expect("few"),
    }
}

/// Error of a mean or a sum that is read when a packet has come. Packets come every `ms`, `x` of the time of 50 ms within which
/// weights decay. Half of the newest packet counts, so that the mean is `(x / 2) coth(x / 2) = 1 + x^2 / 12` of the rate. A change
/// of window has a mean and a sum in it. The factor of two is for the next term of the series, and for what is left of the start.
fn error(ms: f64) -> f64 {
    2.0 * 2.0 * (ms / 50.0).powi(2) / 12.0
}

/// A packet of a flow with a window of `window` packets leaves; returns the change of its window in packets.
fn depart(router: &mut Router, at: LinkView, window: f64, rtt_ms: f64) -> f64 {
    let size = f64::from(SIZE);
    let mut stamp = Window::header(window * size, rtt_ms / 1e3, size, 1e12);
    router.on_departure(at, PacketOut { size: SIZE, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    stamp.0[2] / size
}

fn arrive(router: &mut Router, at: LinkView) {
    let stamp = Window::header(1e5, 0.1, f64::from(SIZE), 1e12);
    router.on_arrival(at, PacketIn::of(SIZE, Some(&stamp)));
}

/// A flow of 50 packets in an RTT on a link for 100: `F = alpha (C - y)`, a window of 20 packets more in an RTT, and each
/// packet brings a fiftieth of it. Equation 2 shuffles nothing, because `|F|` exceeds a tenth of `y`.
#[test]
fn a_packet_gets_its_part_of_equation_1() {
    for variant in [Variant::Paper, Variant::Emulation] {
        let mut router = router(variant);
        let mut change = 0.0;
        for n in 0..500 {
            arrive(&mut router, view(2 * n, 0));
            change = depart(&mut router, view(2 * n, 0), 50.0, 100.0);
            assert!(n > 0 || change == 0.0, "no feedback in the first d");
        }
        assert!((change / (0.4 * 50.0 / 50.0) - 1.0).abs() < error(2.0), "{variant:?}: {change}");
        assert!(
            (router.aggregate() / (0.4 * 75e4) - 1.0).abs() < error(2.0),
            "{variant:?}: {}",
            router.aggregate()
        );
    }
}

/// Each packet reflects what its predecessors showed. After half of the capacity is gone, `C` approaches the rest within 50 ms, half of `d`.
/// XCP's own router would give nothing new until the end of its interval.
#[test]
fn each_packet_follows_the_capacity() {
    let mut router = router(Variant::Paper);
    let at = |router: &mut Router, ms: u64| {
        arrive(router, view(ms, 0));
        depart(router, view(ms, 0), 100.0, 100.0)
    };
    (0..500).for_each(|ms| _ = at(&mut router, ms));
    assert!(router.aggregate().abs() < 0.4 * error(1.0) * 1.5e6, "{}", router.aggregate());
    router.on_change(LinkChange::Capacity(Rate::from_mbps(6.0)));
    for ms in 500..600u32 {
        at(&mut router, ms.into());
        let gone = 1.0 - (-f64::from(ms - 499) / 50.0).exp();
        let expected = -0.4 * 75e4 * gone;
        assert!(
            (router.aggregate() - expected).abs() < 0.4 * error(1.0) * 1.5e6,
            "{ms}: {} {expected}",
            router.aggregate()
        );
    }
    // -alpha C / 2 is 20 packets of window in an RTT, of which one of a hundred packets takes its part.
    let change = at(&mut router, 600);
    let expected = -0.2 * (1.0 - (-101.0f64 / 50.0).exp());
    assert!((change - expected).abs() < 0.4 * error(1.0), "{change}, expected {expected}");
}

/// The least queue of the last propagation delay counts, and a short drain resets it at once.
#[test]
fn the_persistent_queue_is_the_least_of_a_propagation_delay() {
    let mut router = router(Variant::Paper);
    let mut queue_at = |ms: u64, queue: u64| {
        arrive(&mut router, view(ms, queue));
        depart(&mut router, view(ms, queue), 100.0, 100.0 + queue as f64);
        let mut found = 0.0;
        router.variables(&mut |name, value| {
            if name == "persistent_queue_bytes" {
                found = value / f64::from(SIZE);
            }
        });
        found
    };
    for ms in 0..50 {
        assert_eq!(queue_at(ms, 10), 0.0); // the link was empty at first
    }
    let at = (50..250).map(|ms| queue_at(ms, 10)).collect::<Vec<_>>();
    assert_eq!(at.last(), Some(&10.0));
    assert_eq!(queue_at(250, 3), 3.0);
    let after = (251..500).map(|ms| queue_at(ms, 10)).take_while(|queue| *queue == 3.0).count();
    assert!((75..=101).contains(&after), "{after} ms"); // between three and four quarters of 100 ms
}

/// The algorithm of the authors' emulation (`xcp_packet_queue.cc`), from its description. Numbers are packets and milliseconds:
/// rates are counts over the mean RTT, which is 100 ms and the mean queueing delay; the queue is the least of 100 ms.
struct Emulation {
    arrivals: VecDeque<u64>,
    opportunities: VecDeque<u64>,
    /// When packets left, their RTT, and the queue behind them.
    departures: VecDeque<(u64, u64, u64)>,
    rtt: f64,
}

impl Emulation {
    fn new() -> Self {
        Self {
            arrivals: VecDeque::new(),
            opportunities: VecDeque::new(),
            departures: VecDeque::new(),
            rtt: 100.0,
        }
    }

    fn recent(times: &VecDeque<u64>, now: u64, span: f64) -> f64 {
        times.iter().filter(|at| (now - **at) as f64 <= span).count() as f64
    }

    /// The change of window for the packet that leaves now, in packets.
    fn depart(&mut self, now: u64, waited: u64, queue: u64) -> f64 {
        self.departures.push_back((now, 100 + waited, queue));
        let span = self.rtt;
        let last = self.departures.iter().filter(|(at, ..)| (now - at) as f64 <= span);
        let (count, sum) =
            last.fold((0.0, 0.0), |(count, sum), (_, rtt, _)| (count + 1.0, sum + *rtt as f64));
        self.rtt = sum / count;
        let recent = self.departures.iter().filter(|(at, ..)| now - at <= 100);
        let least = recent.map(|(.., queue)| *queue).min().unwrap_or(0);
        let [capacity, input] =
            [&self.opportunities, &self.arrivals].map(|times| Self::recent(times, now, self.rtt) / self.rtt);
        (0.4 * self.rtt * (capacity - input) - 0.226 * least as f64) / count
    }
}

/// A link whose load swings between 60% and 140% of its capacity in three seconds: both hand out the same window, within what
/// the shape of the weights changes. The emulation's mean over `d` and our weights that decay within `d / 2` have the same mean
/// age. With `w` for the swing's frequency, the former passes `sin(w d / 2) / (w d / 2)` of the swing, and the latter
/// `1 / sqrt(1 + (w d / 2)^2)`. The queue makes `d` up to 480 ms, where these are 0.96 and 0.89: 7% of the input's part. The
/// mean RTT swings by 190 ms of these 480 and has the same error, 3%. The least queue of three to four quarters of 100 ms
/// misses up to 10 packets of its 380, 3%. The phases differ by 0.03.
#[test]
fn feedback_is_that_of_the_authors_emulation() {
    let mut router = router(Variant::Emulation);
    let mut theirs = Emulation::new();
    let mut waiting: VecDeque<u64> = VecDeque::new();
    let mut due = 0.0;
    let (mut sums, mut sum) = (Vec::new(), [0.0; 2]);
    for ms in 0..12_000u64 {
        due += 1.0 + 0.4 * (ms as f64 / 3000.0 * core::f64::consts::TAU).sin();
        while due >= 1.0 {
            due -= 1.0;
            arrive(&mut router, view(ms, waiting.len() as u64));
            theirs.arrivals.push_back(ms);
            waiting.push_back(ms);
        }
        theirs.opportunities.push_back(ms);
        if let Some(came) = waiting.pop_front() {
            let queue = waiting.len() as u64;
            let ours = depart(&mut router, view(ms, queue), 100.0, (100 + ms - came) as f64);
            let other = theirs.depart(ms, ms - came, queue);
            if ms >= 1000 {
                sum = [sum[0] + ours, sum[1] + other];
            }
        }
        if ms % 500 == 499 {
            sums.push(sum);
            sum = [0.0; 2];
        }
    }
    let size = sums.iter().map(|[_, theirs]| theirs.abs()).fold(0.0, f64::max);
    assert!(size > 50.0, "the load swings: {size}");
    for (n, [ours, theirs]) in sums.iter().enumerate() {
        assert!(
            (ours - theirs).abs() < (0.07 + 0.03 + 0.03 + 0.03) * size,
            "half second {n}: {ours}, the emulation {theirs}"
        );
    }
    let total = |which: usize| sums.iter().map(|both| both[which].abs()).sum::<f64>();
    assert!((total(0) / total(1) - 1.0).abs() < 0.07, "{} {}", total(0), total(1));
}

/// Two flows with 10 and 40 packets in an RTT on a link for 100. With XCP's fairness controller both get the same increase. In the
/// emulation the larger flow gets four times as much.
#[test]
fn the_variants_differ_in_fairness() {
    let gains = |variant: Variant| {
        let mut router = router(variant);
        let mut gains = [0.0; 2];
        for n in 0..2000u64 {
            let ms = 2 * n;
            let small = n % 5 == 0;
            arrive(&mut router, view(ms, 0));
            let change = depart(&mut router, view(ms, 0), if small { 10.0 } else { 40.0 }, 100.0);
            if n >= 500 {
                gains[usize::from(small)] += change;
            }
        }
        gains[0] / gains[1]
    };
    // In 10 ms, X is 10 ms once and 2.5 ms four times. Its sum over 100 ms, 200 ms, changes by up to 10 ms from packet to packet.
    assert!((gains(Variant::Paper) - 1.0).abs() < 10.0 / 200.0, "{}", gains(Variant::Paper));
    assert!((gains(Variant::Emulation) - 4.0).abs() < 1e-6, "{}", gains(Variant::Emulation));
}

#[test]
fn wrong_parameters_are_refused() {
    let of = |change: fn(&mut Params)| {
        let mut p = Params::default();
        change(&mut p);
        Router::check(&p).map_err(|(key, _)| key)
    };
    assert_eq!(of(|_| ()), Ok(()));
    assert_eq!(of(|p| p.alpha = -1.0), Err("alpha"));
    assert_eq!(of(|p| p.gamma = 2.0), Err("gamma"));
    assert_eq!(of(|p| p.max_rtt = Some(Time::ZERO)), Err("max_rtt"));
}

fn variant() -> impl Strategy<Value = Variant> {
    prop_oneof![Just(Variant::Paper), Just(Variant::Emulation)]
}

fn traffic() -> impl Strategy<Value = Vec<(u64, Made)>> {
    prop::collection::vec((0u64..200_000_000, packet()), 1..200)
}

proptest! {
    /// Feedback never exceeds what earlier routers allow, and all is finite.
    #[test]
    fn feedback_only_falls_and_stays_finite(rate in capacity(), variant in variant(), packets in traffic()) {
        let mut router = Router::new(&Params { variant, ..Params::default() }, &RouterView::of(rate));
        let mut now = Time::ZERO;
        for (gap_ns, p) in &packets {
            now += Time::from_nanos(*gap_ns);
            let mut stamp = header::<Window>(p);
            let asked = feedback::<Window>(&stamp, p);
            router.on_arrival(p.view(now), PacketIn::of(p.size, Some(&stamp)));
            router.on_departure(p.view(now), PacketOut { size: p.size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            let got = feedback::<Window>(&stamp, p);
            prop_assert!(got.is_finite() && made::same_or_less(got, asked), "{p:?}: asked {asked}, got {got}");
            finite(&router)?;
        }
    }

    /// A packet gets increases only while those of the last average RTT are below the positive pool, and likewise for decreases
    /// (deviation 5). The newest packet has twice the mean weight in a sum, and is at most all of the pool.
    #[test]
    fn an_rtt_hands_out_no_more_than_the_pools(rate in capacity(), packets in traffic()) {
        let mut router = Router::new(&Params::default(), &RouterView::of(rate));
        let mut now = Time::ZERO;
        for (gap_ns, p) in &packets {
            now += Time::from_nanos(*gap_ns);
            let mut stamp = Window::header(p.cwnd, p.rtt_s, f64::from(p.size), 1e30);
            router.on_arrival(p.view(now), PacketIn::of(p.size, Some(&stamp)));
            router.on_departure(p.view(now), PacketOut { size: p.size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            let got = feedback::<Window>(&stamp, p);
            let [shuffled, aggregate] = [0.1 * router.input_rate(), router.aggregate()];
            let rest = (shuffled - aggregate.abs()).max(0.0);
            let pools = [rest + aggregate.max(0.0), rest + (-aggregate).max(0.0)];
            let [given, taken] = router.handed_out();
            prop_assert!(got <= 0.0 || given <= 2.0 * pools[0] * (1.0 + 1e-9) + 1e-9, "{p:?}: {given} of {pools:?}");
            prop_assert!(got >= 0.0 || taken <= 2.0 * pools[1] * (1.0 + 1e-9) + 1e-9, "{p:?}: {taken} of {pools:?}");
        }
    }

    /// With capacity and nothing in use or waiting, increases exceed decreases; with too much in use, it is the other way round.
    #[test]
    fn feedback_has_the_sign_of_spare_capacity(load in 0.2f64..2.0, variant in variant()) {
        prop_assume!((load - 1.0).abs() > 0.1);
        let mut router = router(variant);
        let mut change = 0.0;
        for n in 0..400u64 {
            let at = LinkView { now: Time::from_secs_f64(n as f64 * 1e-3 / load), queue_bytes: 0, queue_packets: 0 };
            arrive(&mut router, at);
            change = depart(&mut router, at, 100.0 * load, 100.0);
        }
        prop_assert_eq!(change > 0.0, load < 1.0, "{}", change);
    }

    /// Made-up traffic of the other tests of XCP.
    #[test]
    fn traffic_of_bursts(rate in capacity(), intervals in prop::collection::vec(prop::collection::vec(packet(), 0..30), 1..20)) {
        // The law has no timers: each burst comes at the same instant, ten milliseconds after the last.
        let mut router = Router::new(&Params::default(), &RouterView::of(rate));
        for (n, burst) in intervals.iter().enumerate() {
            let now = Time::from_millis(10 * n as u64);
            for p in burst {
                let mut stamp = header::<Window>(p);
                router.on_arrival(p.view(now), PacketIn::of(p.size, None));
                router.on_departure(p.view(now), PacketOut { size: p.size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
                finite(&router)?;
            }
        }
    }
}

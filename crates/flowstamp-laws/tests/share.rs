//! Sharing a link with other traffic (Dukkipati 2007, section 6.2.1).

use flowstamp_laws::router::{OwnFlows, Room};
use flowstamp_laws::share::drr::Drr;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::wfq::Wfq;
use flowstamp_laws::share::windows::Windows;
use flowstamp_laws::share::zombies::Zombies;
use flowstamp_laws::share::{OTHER, OWN, Params, Weights};
use flowstamp_laws::units::{Rate, Ratio, Time};
use proptest::prelude::*;

/// A generator good enough to pick list entries with (splitmix64).
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn variable(split: &Split, name: &str) -> f64 {
    let mut found = f64::NAN;
    split.variables(&mut |n, v| {
        if n == name {
            found = v;
        }
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// `n` flows that send alike are counted as `n`, in whatever order their packets come.
    #[test]
    fn zombies_count_equal_flows(n in 1u64..200, seed: u64, burst in 1u64..8) {
        let mut zombies = Zombies::new(1000, 0.25);
        let mut dice = Dice(seed);
        let packets = 200_000;
        for at in 0..packets / burst {
            let flow = (dice.draw() * n as f64) as u64;
            for _ in 0..burst {
                zombies.on_arrival(flow, || dice.draw());
            }
            if at == packets / burst / 4 {
                let _ = zombies.estimate(); // the list has filled; what was counted meanwhile is let go by halves
            }
        }
        let found = zombies.estimate();
        // Hits are binomial in packets / n, if bursts were independent; the list's own sampling of its flows adds
        // a term of n / length. Four standard errors.
        let error = 4.0 * (n as f64 * burst as f64 / packets as f64 + 1.0 / 1000.0).sqrt() + n as f64 / 1000.0;
        prop_assert!((found / n as f64 - 1.0).abs() < error, "{n} flows counted as {found}");
    }

    /// Two backlogged classes get service in proportion to their weights, within a packet of each and its quantum.
    #[test]
    fn schedulers_keep_to_their_weights(
        weight in 0.05f64..0.95,
        sizes in prop::collection::vec((40u32..1500, 40u32..1500), 50..400),
    ) {
        let weights = [weight, 1.0 - weight];
        let least = weight.min(1.0 - weight);
        let mut wfq = Wfq::new(2);
        for (own, other) in &sizes {
            wfq.enqueue(OWN, *own, weights[OWN]);
            wfq.enqueue(OTHER, *other, weights[OTHER]);
        }
        let mut drr = Drr::new(2, 1500.0);
        let size = |class: usize, at: usize| {
            sizes.get(at).map(|(own, other)| if class == OWN { *own } else { *other })
        };
        let mut by_wfq = ([0usize; 2], [0.0f64; 2]);
        let mut by_drr = ([0usize; 2], [0.0f64; 2]);
        loop {
            let (sent, bytes) = &mut by_wfq;
            let class = wfq.pick().expect("both wait");
            bytes[class] += f64::from(size(class, sent[class]).expect("it waits"));
            sent[class] += 1;
            // Golestani 1994, theorem 1.
            let apart = (bytes[OWN] / weights[OWN] - bytes[OTHER] / weights[OTHER]).abs();
            let bound = 1500.0 / weights[OWN] + 1500.0 / weights[OTHER];
            prop_assert!(apart <= bound + 1e-6, "WFQ: {apart} apart, {bound} allowed");
            if sent.contains(&sizes.len()) {
                break;
            }
        }
        loop {
            let (sent, bytes) = &mut by_drr;
            let heads = [size(OWN, sent[OWN]), size(OTHER, sent[OTHER])];
            if heads.iter().any(Option::is_none) {
                break;
            }
            let class = drr.pick(&heads, &weights).expect("both wait");
            bytes[class] += f64::from(heads[class].expect("it waits"));
            sent[class] += 1;
            // Shreedhar and Varghese 1996, theorem 2: a quantum and a packet of each.
            let apart = (bytes[OWN] / weights[OWN] - bytes[OTHER] / weights[OTHER]).abs();
            let bound = 1500.0 / least + 1500.0 / weights[OWN] + 1500.0 / weights[OTHER];
            prop_assert!(apart <= bound + 1e-6, "DRR: {apart} apart, {bound} allowed");
        }
    }

    /// Section 4.2 of PCP's paper: the window is finite and above zero once something is lost, whatever was, and the rate a probability.
    #[test]
    fn windows_are_finite(steps in prop::collection::vec((40u32..9000, any::<bool>()), 1..300)) {
        let mut windows = Windows::default();
        for (size, lost) in &steps {
            windows.on_arrival(*size);
            if *lost {
                windows.on_loss();
            }
            let any = steps.iter().any(|(_, lost)| *lost) && windows.loss_rate() > 0.0;
            prop_assert!((0.0..=1.0).contains(&windows.loss_rate()));
            prop_assert!(!any || windows.window() > 0.0 && windows.window().is_finite());
        }
    }

    /// A class that is alone is served, and every packet once.
    #[test]
    fn schedulers_conserve_packets(steps in prop::collection::vec((0usize..3, 40u32..1500), 1..300), weight in 0.01f64..0.99) {
        let weights = [weight, 1.0 - weight];
        let (mut wfq, mut drr) = (Wfq::new(2), Drr::new(2, 1500.0));
        let mut queues = [std::collections::VecDeque::new(), std::collections::VecDeque::new()];
        let mut waiting = [0usize; 2];
        for (what, size) in steps {
            if what < 2 {
                wfq.enqueue(what, size, weights[what]);
                waiting[what] += 1;
                queues[what].push_back(size);
                continue;
            }
            let heads = [queues[OWN].front().copied(), queues[OTHER].front().copied()];
            match drr.pick(&heads, &weights) {
                Some(class) => prop_assert!(queues[class].pop_front().is_some()),
                None => prop_assert!(heads == [None, None]),
            }
            match wfq.pick() {
                Some(class) => {
                    prop_assert!(waiting[class] > 0);
                    waiting[class] -= 1;
                }
                None => prop_assert!(waiting == [0, 0]),
            }
        }
    }

    /// Fed with flows that fill what their class is given, the split settles where the average flow of both classes has
    /// the same rate, whatever the numbers.
    #[test]
    fn the_split_equalises_average_flows(own in 1u64..60, other in 1u64..60, seed: u64) {
        let capacity = 12.5e6;
        let params = Params { theta: Ratio::new(0.1), ..Params::default() };
        let mut split = Split::new(&params, Rate::from_bytes_per_sec(capacity));
        let mut dice = Dice(seed);
        let mut now = split.first_timer();
        let mut period = now;
        let mut weights = Vec::new();
        for round in 0..300 {
            let packets = (capacity * period.as_secs_f64() / 1000.0) as u64;
            for _ in 0..packets {
                let mine = dice.draw() < split.weights()[OWN];
                let (class, n) = if mine { (OWN, own) } else { (OTHER, other) };
                let flow = (dice.draw() * n as f64) as u64;
                split.on_arrival(class, flow, 1000, || dice.draw());
            }
            let next = split.on_timer(now);
            period = next - now;
            now = next;
            prop_assert!(period >= params.min_interval() && period <= params.max_interval);
            let capacity_own = split.own_capacity().bytes_per_sec();
            prop_assert!((0.0..=capacity * 1.000_001).contains(&capacity_own));
            if round >= 200 {
                weights.push(split.weights()[OWN]);
            }
        }
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let fair = (own as f64 / (own + other) as f64).clamp(0.01, 0.99);
        // The counts have a standard error of some percent in each period; the steps average it.
        prop_assert!((mean - fair).abs() <= 0.03 + 0.1 * fair.min(1.0 - fair), "{mean}, {fair} is fair");
    }
}

/// One period by hand: step C of section 6.2.1.
#[test]
fn numbers_of_one_period() {
    let params = Params {
        min_interval: Some(Time::from_secs(1)),
        theta: Ratio::new(0.5),
        zombies: 10,
        ..Params::default()
    };
    let mut split = Split::new(&params, Rate::from_bytes_per_sec(1e6));
    assert_eq!(split.first_timer(), Time::from_secs(1));
    assert_eq!(split.own_capacity(), Rate::from_bytes_per_sec(1e6));
    // One flow each: 600 kB of ours and 300 kB of the other in 1 s.
    for _ in 0..600 {
        split.on_arrival(OWN, 1, 1000, || 0.5);
    }
    for _ in 0..300 {
        split.on_arrival(OTHER, 2, 1000, || 0.5);
    }
    let next = split.on_timer(Time::from_secs(1));
    // N = 1 each; w = 0.5 - 0.5 (600 - 300) / 900 = 1/3; C_R = max(1000 - 300, 1000/3) = 700 kB/s.
    assert!((split.weights()[OWN] - 1.0 / 3.0).abs() < 1e-12);
    assert!((split.own_capacity().bytes_per_sec() - 7e5).abs() < 1e-6);
    assert_eq!(variable(&split, "own_flows"), 1.0);
    assert_eq!(variable(&split, "other_flows"), 1.0);
    // Tc* = (C w_T - y_T) / (d y_T/dt) = (666.7 - 300) / 300 = 1.22 s.
    assert!(((next - Time::from_secs(1)).as_secs_f64() - 1.0 / 0.9 * 1.1).abs() < 1e-9, "{next}");
    assert!((split.shares()[OWN] - 0.7).abs() < 1e-12);
    assert!((split.shares()[OTHER] - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn without_other_traffic_the_link_is_ours() {
    let mut split = Split::new(&Params::default(), Rate::from_mbps(8.0));
    for at in 1..50u64 {
        for _ in 0..200 {
            split.on_arrival(OWN, at % 3, 1000, || 0.3);
        }
        let _ = split.on_timer(Time::from_millis(200) * at);
        assert_eq!(split.own_capacity(), Rate::from_mbps(8.0));
        assert_eq!(split.weights(), [0.5, 0.5]);
    }
    // Step C.3 with the new capacity at once, be it after an outage: the next period may be far.
    for mbps in [4.0, 0.0, 4.0] {
        split.set_capacity(Rate::from_mbps(mbps));
        assert!((split.own_capacity().bps() - mbps * 1e6).abs() < 1e-6);
    }
}

/// Counts from elsewhere are as good as packets, and a law that goes on has its weight and no more to wait for.
#[test]
fn goes_on_with_what_others_have_counted() {
    let params = Params {
        min_interval: Some(Time::from_secs(1)),
        max_interval: Time::from_secs(1),
        ..Params::default()
    };
    let capacity = Rate::from_bytes_per_sec(1e6);
    let at = Time::from_secs(500);
    let mut split = Split::resume(&params, capacity, 0.4, at);
    assert_eq!(split.weights(), [0.4, 0.6]);
    assert!((split.own_capacity().bytes_per_sec() - 4e5).abs() < 1e-6);
    // Half a second late: rates are over what has passed.
    split.on_counts(OWN, 600_000, 900, 300);
    split.on_counts(OTHER, 900_000, 600, 300);
    let next = split.on_timer(at + Time::from_millis(1500));
    assert_eq!(next, at + Time::from_millis(2500));
    assert_eq!(variable(&split, "own_flows"), 3.0);
    assert_eq!(variable(&split, "other_flows"), 2.0);
    assert!((variable(&split, "own_input_bps") - 3.2e6).abs() < 1e-6);
    assert!((variable(&split, "other_input_bps") - 4.8e6).abs() < 1e-6);
    // r_R = 4e5 / 3, r_T = 6e5 / 2.
    let step = 0.1 * (4.0 / 3.0 - 3.0) / (4.0 / 3.0 + 3.0);
    assert!((split.weights()[OWN] - (0.4 - step)).abs() < 1e-12);
    for (chosen, kept) in [(0.0, 0.01), (1.0, 0.99)] {
        assert_eq!(Split::resume(&params, capacity, chosen, at).weights()[OWN], kept);
    }
}

/// TCP's equation in section 4.2 of PCP's paper, equation 10 of XCP's, at p = 0.01: 1 / (sqrt(0.02/3) + 0.12 sqrt(0.03/8) 1.0032) = 1 / (0.081650 + 0.007372)
/// = 11.233 packets; at p = 0.1: 1 / (0.258199 + 1.2 0.193649 1.32) = 1 / 0.564939 = 1.7701.
#[test]
fn the_window_of_tcp() {
    for (every, packets) in [(100, 11.233), (10, 1.7701)] {
        let mut windows = Windows::default();
        assert_eq!((windows.loss_rate(), windows.window()), (0.0, f64::INFINITY));
        for _ in 0..8 {
            (0..every).for_each(|_| windows.on_arrival(1500));
            windows.on_loss();
        }
        assert!((windows.loss_rate() * f64::from(every) - 1.0).abs() < 1e-12);
        assert!((windows.window() / 1500.0 / packets - 1.0).abs() < 1e-4, "{}", windows.window());
    }
}

/// RFC 5348, section 5.4: weights 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2, and the open interval where it makes the mean longer. Intervals of 10
/// behind one of 50: (50 + 10 (3 + 0.8 + 0.6 + 0.4 + 0.2)) / 6 = 100 / 6.
#[test]
fn the_mean_loss_interval() {
    let mut windows = Windows::default();
    for interval in [10, 10, 10, 10, 10, 10, 10, 50] {
        (0..interval).for_each(|_| windows.on_arrival(1000));
        windows.on_loss();
    }
    assert!((1.0 / windows.loss_rate() - 100.0 / 6.0).abs() < 1e-9);
    // 200 without a loss: (200 + 50 + 10 (2 + 0.8 + 0.6 + 0.4 + 0.2)) / 6.
    (0..200).for_each(|_| windows.on_arrival(1000));
    assert!((1.0 / windows.loss_rate() - 290.0 / 6.0).abs() < 1e-9);
}

/// Equation 11 by hand: windows of 30 packets and, at p = 0.01, 11.233 of TCP: w_P falls by 0.1 (30 - 11.233) / (30 + 11.233), 0.0455.
#[test]
fn weights_go_by_windows() {
    let params = Params { weights: Weights::Windows, ..Params::default() };
    let mut split = Split::new(&params, Rate::from_bytes_per_sec(1e6));
    let flows = |packets: f64| Some(OwnFlows { window_bytes: packets * 1000.0, rtt: Time::from_millis(300) });
    for _ in 0..8 {
        for _ in 0..100 {
            split.on_arrival(OTHER, 1, 1000, || 0.5);
        }
        split.on_loss(OTHER);
    }
    (0..200).for_each(|_| split.on_arrival(OWN, 2, 1000, || 0.5));
    split.on_loss(OWN); // says nothing of TCP
    split.set_own_flows(flows(30.0));
    assert_eq!(split.on_timer(Time::from_secs(1)), Time::from_millis(1300));
    let weight = 0.5 - 0.1 * (30.0 - 11.233) / (30.0 + 11.233);
    assert!((split.weights()[OWN] - weight).abs() < 1e-5, "{:?}", split.weights());
    // PCP: what TCP leaves, 1 MB/s - 800 kB/s, and its own part.
    assert!((split.own_capacity().bytes_per_sec() - 2e5).abs() < 1e-6);
    let (part, link) = split.own_part().expect("by windows");
    assert!((part.bytes_per_sec() - 1e6 * weight).abs() < 10.0 && (link.bytes_per_sec() - 1e6).abs() < 1e-6);
    // XCP, equation 14: its own part, whatever TCP leaves.
    let split = split.with_room(Room::Part);
    assert!((split.own_capacity().bytes_per_sec() - 1e6 * weight).abs() < 10.0);
    assert_eq!(split.own_part(), None);
}

/// Katabi, Handley, Rohrs 2002, equations 10 to 12 and 14 with kappa = 0.2: at p = 0.01 TCP's window is 11.233 packets. Beside 30 of XCP w_X falls by
/// 0.2 (30 - 11.233) / (30 + 11.233) = 0.091028, beside 2 it rises by 0.2 (11.233 - 2) / (11.233 + 2) = 0.139546; w_T moves the other way.
#[test]
fn both_weights_move_by_the_same() {
    for (packets, step) in [(30.0, -0.091_028), (2.0, 0.139_546)] {
        let params = Params { weights: Weights::Windows, theta: Ratio::new(0.2), ..Params::default() };
        let mut split = Split::new(&params, Rate::from_bytes_per_sec(1e6)).with_room(Room::Part);
        // w_X c, before anything is known.
        assert_eq!(split.own_capacity(), Rate::from_bytes_per_sec(5e5));
        for _ in 0..8 {
            (0..100).for_each(|_| split.on_arrival(OTHER, 1, 1000, || 0.5));
            split.on_loss(OTHER);
        }
        (0..300).for_each(|_| split.on_arrival(OWN, 2, 1000, || 0.5));
        split.set_own_flows(Some(OwnFlows { window_bytes: packets * 1000.0, rtt: Time::from_millis(40) }));
        // The next update is a mean RTT away.
        assert_eq!(split.on_timer(Time::from_secs(1)), Time::from_millis(1040));
        let [own, other] = split.weights();
        assert!((own - (0.5 + step)).abs() < 2e-6, "{own}");
        assert!((other - (0.5 - step)).abs() < 2e-6, "{other}");
        assert!((split.own_capacity().bytes_per_sec() - 1e6 * own).abs() < 1e-6);
    }
}

/// Equations 11 and 12 have no condition: a class of smaller windows gains weight however little of its share it sends.
#[test]
fn a_class_under_half_its_share_gains_by_windows() {
    let params = Params { weights: Weights::Windows, ..Params::default() };
    let mut split = Split::new(&params, Rate::from_bytes_per_sec(1e6));
    (0..8).for_each(|_| {
        (0..100).for_each(|_| split.on_arrival(OTHER, 1, 1000, || 0.5));
        split.on_loss(OTHER);
    });
    split.on_arrival(OWN, 2, 1000, || 0.5);
    split.set_own_flows(Some(OwnFlows { window_bytes: 1000.0, rtt: Time::from_millis(40) }));
    let _ = split.on_timer(Time::from_secs(1));
    let step = 0.1 * (11.233 - 1.0) / (11.233 + 1.0);
    assert!((split.weights()[OWN] - 0.5 - step).abs() < 1e-5, "{:?}", split.weights());
}

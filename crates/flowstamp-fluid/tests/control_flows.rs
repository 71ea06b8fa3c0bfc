//! Loops of flows with several RTTs: against the models they are the linear form of, and against the loop of one RTT.

use flowstamp_fluid::control::delay::{Past, Solution, System};
use flowstamp_fluid::control::frequency::OpenLoop;
use flowstamp_fluid::control::network::{Paths, Rcp, Xcp};
use flowstamp_fluid::stability::{largest_beta, phase_margin};
use num_complex::Complex64;
use proptest::prelude::*;

/// A model whose queue, its first variable, may be below zero.
#[derive(Clone, Copy)]
struct Floorless<S>(S);

impl<const N: usize, S: System<N>> System<N> for Floorless<S> {
    type Mode = S::Mode;
    fn delays(&self) -> (f64, f64) {
        self.0.delays()
    }
    fn mode(&self, t: f64, x: &[f64; N], past: &Past<N>) -> S::Mode {
        let mut queued = *x;
        queued[0] = 1.0;
        self.0.mode(t, &queued, past)
    }
    fn slope(&self, mode: S::Mode, t: f64, x: &[f64; N], past: &Past<N>) -> [f64; N] {
        self.0.slope(mode, t, x, past)
    }
    fn guard(&self, _: S::Mode, _: f64, _: &[f64; N], _: &Past<N>) -> f64 {
        1.0
    }
    fn switch(&self, mode: S::Mode, _: f64, _: &mut [f64; N], _: &Past<N>) -> S::Mode {
        mode
    }
}

/// How far the queue is, late on, from what falls or grows as the first pair of roots alone: `x(t + 2 h) = 2 e^(a h) cos(b h) x(t + h) - e^(2 a h) x(t)`
/// for the roots `a + j b`. `early` is when all other roots' parts are gone.
fn off<const N: usize>(system: impl System<N>, start: [f64; N], root: Complex64, early: f64) -> f64 {
    let h = 1.0;
    let times: Vec<f64> = (0..40).map(|i| early + h * f64::from(i)).collect();
    let mut solution = Solution::new(system, start, 1.0 / 64.0).expect("a step below the delays");
    let x: Vec<f64> = solution.sampled(&times).expect("a solution").iter().map(|x| x[0]).collect();
    let (fall, turn) = ((root.re * h).exp(), 2.0 * (root.im * h).cos());
    let scale = x.iter().copied().map(f64::abs).fold(0.0, f64::max);
    x.windows(3).map(|w| (w[2] - fall * turn * w[1] + fall * fall * w[0]).abs() / scale).fold(0.0, f64::max)
}

/// Bound of the other roots' part once it has fallen by e^-10 beside the first's: that in each of `1 + 2 + 1` times x.
const LEFT: f64 = 4.0 * 4.54e-5;

#[test]
fn the_loop_is_the_models_linear_form() {
    let mut seen = 0;
    // RTTs in units of their mean, so that steps and times are of one scale; gains on both sides of the border.
    let sets = [([3.0, 2.0, 5.0], [0.2, 0.4, 1.72]), ([1.0, 1.0, 1.0], [0.6, 1.0, 1.4])];
    for (flows, rtts) in sets {
        let pairs: Vec<(f64, f64)> = flows.into_iter().zip(rtts).collect();
        for (alpha, beta) in [(0.7, 0.5), (0.9, 0.6), (1.2, 0.4), (0.3, 0.3)] {
            let paths = Paths::shared(flows, rtts);
            let even = 1.0 / flows.iter().sum::<f64>();
            let disturbed = even * (1.0 + 1e-7);
            for shuffle in [0.0, 0.1, 0.3] {
                let open = OpenLoop::of_flows(alpha, beta, shuffle, &pairs).expect("a loop");
                let roots = open.roots_right_of(-1.0).expect("roots");
                let (first, next) = (roots[0], roots.iter().find(|root| root.re < roots[0].re - 1e-9));
                // e^-10 for what falls sooner, and what is looked at still above rounding.
                let gap = first.re - next.map_or(-1.0, |root| root.re);
                let early = 10.0 / gap;
                if first.re * (early + 40.0) < -9.0 || gap < 0.05 {
                    continue;
                }
                seen += 1;
                let model = Xcp::<1, 3, 4>::new(alpha, beta, shuffle, paths).expect("a network");
                let found = off(Floorless(model), [0.0, disturbed, even, even], first, early);
                assert!(found < LEFT, "XCP {alpha} {beta} {shuffle} {rtts:?}: {found}, {roots:?}");
                if shuffle == 0.0 {
                    let model = Rcp::<1, 3, 2>::new(alpha, beta, paths).expect("a network");
                    let found = off(Floorless(model), [0.0, disturbed], first, early);
                    assert!(found < LEFT, "RCP {alpha} {beta} {rtts:?}: {found}, {roots:?}");
                }
            }
        }
    }
    assert!(seen > 12, "{seen} of 24 can be told from rounding");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn flows_of_one_rtt_have_its_loop(alpha in 0.05..1.8f64, beta in 0.02..0.8f64, shuffle in 0.0..1.0f64, w in 0.01..20.0f64) {
        let one = OpenLoop::of_gains(alpha, beta, 0.2).unwrap();
        let nearly = [(2.0, 0.2), (3.0, 0.2 * (1.0 + 1e-9))];
        for flows in [&[(2.0, 0.2), (3.0, 0.2)][..], &nearly] {
            let several = OpenLoop::of_flows(alpha, beta, shuffle, flows).unwrap();
            let [a, b] = [&one, &several].map(|open| open.response(w / 0.2));
            prop_assert!((a.response - b.response).norm() < 1e-6 * a.response.norm());
            prop_assert!((a.phase - b.phase).abs() < 1e-6);
            let [a, b] = [&one, &several].map(OpenLoop::margins);
            prop_assert!((a.phase.unwrap() - b.phase.unwrap()).abs() < 1e-6);
            // If RTTs differ, the equalisation of rates has its own roots: they decay.
            if phase_margin(alpha, beta).unwrap().abs() > 1e-6 {
                prop_assert_eq!(one.unstable_roots(0.0), several.unstable_roots(0.0));
            }
        }
    }

    /// Where the border says that a root lies on the axis there is one, and their number right of it changes there.
    #[test]
    fn the_border_has_a_root_on_the_axis(short in 0.02..0.9f64, flows in 1.0..9.0f64, shuffle in 0.0..0.3f64) {
        let flows = [(flows, short), (1.0, 1.0)];
        let border = OpenLoop::border(shuffle, &flows, (2.0, 1.2)).unwrap();
        prop_assert_eq!(border[0], (0.0, 0.0));
        let of = |(alpha, beta)| OpenLoop::of_flows(alpha, beta, shuffle, &flows).unwrap();
        // Near zero the root is near zero, too, where there are others.
        let within: Vec<_> = (1..border.len() - 1).filter(|i| border[*i].0 > 0.1 && border[*i].1 > 0.02 && !(border[*i - 1].0 + border[*i + 1].0).is_nan()).collect();
        for i in within.iter().copied().step_by(within.len() / 12 + 1) {
            let (at, along) = (border[i], sub(border[i + 1], border[i - 1]));
            prop_assert!(of(at).roots_right_of(-0.1).is_none_or(|roots| roots.iter().any(|root| root.re.abs() < 1e-6)));
            // A short way at right angles to the curve. Where it crosses another part of the curve, too, one pair of roots may
            // leave while another enters.
            let by = 1e-3 * at.0.hypot(at.1) / along.0.hypot(along.1);
            let beside = |by: f64| (at.0 + by * along.1, at.1 - by * along.0);
            let (from, to) = (beside(by), beside(-by));
            let other = |part: usize| part + 1 != i && part != i && crosses(border[part], border[part + 1], from, to);
            if !(0..border.len() - 1).any(other) {
                prop_assert!(of(from).unstable_roots(0.0) != of(to).unstable_roots(0.0), "{at:?}");
            }
        }
    }
}

fn sub(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 - b.0, a.1 - b.1)
}

/// Whether the line from `a` to `b` crosses the line from `c` to `d`. Not if an end is NaN.
fn crosses(a: (f64, f64), b: (f64, f64), c: (f64, f64), d: (f64, f64)) -> bool {
    let side = |from, to, of| {
        let ((x, y), (u, v)) = (sub(to, from), sub(of, from));
        x * v - y * u
    };
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) <= 0.0
}

#[test]
fn the_border_of_one_rtt_is_the_closed_form() {
    for (alpha, beta) in
        OpenLoop::border(0.1, &[(3.0, 0.05)], (2.0, 1.2)).unwrap()[1..].iter().filter(|at| !at.0.is_nan())
    {
        assert!((largest_beta(*alpha).unwrap() - beta).abs() < 1e-9, "{alpha} {beta}");
    }
}

#[test]
fn what_is_no_loop_is_none() {
    for flows in [&[][..], &[(0.0, 1.0)], &[(1.0, 0.0)], &[(1.0, f64::NAN)], &[(f64::INFINITY, 1.0)]] {
        assert!(OpenLoop::of_flows(0.4, 0.2, 0.1, flows).is_none(), "{flows:?}");
    }
    assert!(OpenLoop::of_flows(0.4, 0.2, 1.1, &[(1.0, 1.0)]).is_none());
}

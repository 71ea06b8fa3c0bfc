//! Relations between density, distribution, quantile and moments of one law.

use flowstamp_fluid::sizes::{SizeDistribution, SizeError};
use proptest::prelude::*;

fn laws() -> impl Strategy<Value = SizeDistribution> {
    let mean = (1.0..7.0f64).prop_map(|e| 10f64.powf(e));
    let shape = 1.05..4.0f64;
    prop_oneof![
        mean.clone().prop_map(|m| SizeDistribution::fixed(m).expect("valid")),
        (mean.clone(), 0.0..0.99f64).prop_map(|(m, f)| SizeDistribution::uniform(m * f, m).expect("valid")),
        mean.clone().prop_map(|m| SizeDistribution::exponential(m).expect("valid")),
        (mean.clone(), shape.clone()).prop_map(|(m, a)| SizeDistribution::pareto(m, a).expect("valid")),
        (mean.clone(), 1.1..1e6f64, shape).prop_map(|(m, f, a)| SizeDistribution::bounded_pareto(
            m,
            m * f,
            a
        )
        .expect("valid")),
        (mean, prop::collection::vec((0.0..5.0f64, 0.01..1.0f64, any::<bool>()), 1..8)).prop_map(
            |(m, steps)| {
                let total: f64 = steps.iter().map(|s| s.1).sum();
                let (mut size, mut p) = (m, 0.0);
                let mut points: Vec<(f64, f64)> = Vec::new();
                for (grow, mass, atom) in steps {
                    // A step up is a line or, where the size stays, an atom.
                    size *= if atom { 1.0 } else { 1.0 + grow };
                    p = (p + mass / total).min(1.0);
                    points.push((size, p));
                }
                if let Some(last) = points.last_mut() {
                    last.1 = 1.0;
                }
                SizeDistribution::empirical(&points).expect("valid")
            }
        ),
    ]
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quantile_inverts_the_distribution(law in laws(), u in 0.0..1.0f64) {
        let x = law.quantile(u);
        prop_assert!(x >= law.min_bytes() * (1.0 - 1e-12) && x <= law.max_bytes() * (1.0 + 1e-12));
        prop_assert!(law.cdf(x * (1.0 + 1e-9)) >= u - 1e-9, "{x}");
        prop_assert!(law.cdf(x * (1.0 - 1e-9)) <= u + 1e-6, "{x}");
        prop_assert!(close(law.cdf(x) + law.ccdf(x), 1.0, 1e-12));
    }

    #[test]
    fn moments_are_the_integrals(law in laws(), u in 0.01..0.99f64) {
        let x = law.quantile(u);
        prop_assert!(close(law.expect(|_| 1.0), 1.0, 1e-8));
        prop_assert!(close(law.expect(|t| t), law.mean(), 1e-7), "{} {}", law.expect(|t| t), law.mean());
        prop_assert!(close(law.integrate_ccdf(|_| 1.0), law.mean(), 1e-7));
        prop_assert!(close(law.integrate_to(x, |_| 1.0), x, 1e-9));
        for n in [1u8, 2] {
            // E[min(S, x)^n] by parts: without the kink at x, at which no quadrature is exact.
            let direct = law.integrate_to(x, |t| f64::from(n) * t.powi(i32::from(n) - 1) * law.ccdf(t));
            prop_assert!(close(direct, law.capped_moment(n, x), 1e-6), "{n}: {direct} {}", law.capped_moment(n, x));
            // Whole at the top, nothing at the bottom, and never falling.
            prop_assert!(law.partial_moment(n, law.min_bytes() * 0.999) <= 0.0);
            prop_assert!(law.partial_moment_below(n, x) <= law.partial_moment(n, x));
            prop_assert!(law.partial_moment(n, x) <= law.partial_moment(n, 2.0 * x) * (1.0 + 1e-12));
        }
        prop_assert!(close(law.partial_moment(1, f64::INFINITY), law.mean(), 1e-12));
        if law.second_moment().is_finite() && law.max_bytes().is_finite() {
            prop_assert!(close(law.expect(|t| t * t), law.second_moment(), 1e-7));
        }
    }

    #[test]
    fn density_is_the_slope(law in laws(), u in 0.05..0.95f64) {
        let x = law.quantile(u);
        let (h, density) = (x * 1e-6, law.pdf(x));
        // Away from atoms and corners.
        let (below, above) = (law.pdf(x - 2.0 * h), law.pdf(x + 2.0 * h));
        if density.is_finite() && close(below, above, 1e-3) && close(below, density, 1e-3) {
            let slope = (law.cdf(x + h) - law.cdf(x - h)) / (2.0 * h);
            prop_assert!((slope - density).abs() <= 1e-3 * density + 1e-9 / x, "{slope} {density}");
        }
    }

    #[test]
    fn cut_pareto_keeps_its_mean(mean in 100.0..1e6f64, factor in 1.5..1e6f64, shape in 1.05..3.0f64) {
        let law = SizeDistribution::bounded_pareto_with_mean(mean, mean * factor, shape).expect("valid");
        prop_assert!(close(law.mean(), mean, 1e-9));
        prop_assert_eq!(law.max_bytes(), mean * factor);
    }
}

#[test]
fn by_hand() {
    let pareto = SizeDistribution::pareto(25_000.0, 1.25).expect("valid");
    assert!(close(pareto.min_bytes(), 5000.0, 1e-12));
    assert!(close(pareto.ccdf(50_000.0), 10f64.powf(-1.25), 1e-12));
    assert!(pareto.second_moment().is_infinite());
    let pareto = SizeDistribution::pareto(20_000.0, 3.0).expect("valid");
    assert!(close(pareto.second_moment(), 3.0 * (40_000.0f64 / 3.0).powi(2), 1e-12));
    let uniform = SizeDistribution::uniform(0.0, 6.0).expect("valid");
    assert!(close(uniform.second_moment(), 12.0, 1e-12));
    assert!(close(uniform.partial_moment(1, 3.0), 0.75, 1e-12));
    // Half of the flows have 10 bytes, a quarter 20, the rest between 20 and 40.
    let mixed =
        SizeDistribution::empirical(&[(10.0, 0.5), (20.0, 0.5), (20.0, 0.75), (40.0, 1.0)]).expect("valid");
    assert!(close(mixed.mean(), 5.0 + 5.0 + 7.5, 1e-12));
    assert_eq!((mixed.quantile(0.3), mixed.quantile(0.6), mixed.quantile(1.0)), (10.0, 20.0, 40.0));
    assert_eq!((mixed.cdf(15.0), mixed.cdf(20.0), mixed.cdf(30.0)), (0.5, 0.75, 0.875));
    assert_eq!((mixed.partial_moment_below(1, 20.0), mixed.partial_moment(1, 20.0)), (5.0, 10.0));
    assert!(mixed.pdf(20.0).is_infinite() && mixed.pdf(15.0) == 0.0 && mixed.pdf(30.0) == 0.25 / 20.0);
}

#[test]
fn refuses_what_is_no_distribution() {
    use SizeDistribution as S;
    assert!(matches!(S::fixed(0.0), Err(SizeError::NotPositive { name: "size", .. })));
    assert!(matches!(S::uniform(5.0, 4.0), Err(SizeError::Order { .. })));
    assert!(matches!(S::uniform(-1.0, 4.0), Err(SizeError::NotPositive { name: "min", .. })));
    assert_eq!(S::pareto(100.0, 1.0), Err(SizeError::Shape(1.0)));
    assert!(matches!(S::exponential(f64::NAN), Err(SizeError::NotPositive { .. })));
    assert!(matches!(S::bounded_pareto_with_mean(100.0, 50.0, 1.2), Err(SizeError::Order { .. })));
    assert_eq!(S::empirical(&[]), Err(SizeError::Empty));
    assert_eq!(S::empirical(&[(1.0, 0.5)]), Err(SizeError::LastProbability(0.5)));
    assert!(matches!(S::empirical(&[(2.0, 0.5), (1.0, 1.0)]), Err(SizeError::Point { index: 1, .. })));
    assert!(matches!(S::empirical(&[(2.0, 0.5), (3.0, 0.4)]), Err(SizeError::Point { index: 1, .. })));
}

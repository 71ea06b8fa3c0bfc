//! Functions that the standard library lacks: incomplete gamma and beta.

/// The regularised lower incomplete gamma function `P(a, x)`, `a > 0`, `x >= 0`. For whole `a` it is the probability that a
/// Poisson number of mean `x` is at least `a`; between, it is the smooth continuation (Abramowitz and Stegun, 6.5.29 and 6.5.31).
pub(crate) fn incomplete_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (front * sum).min(1.0);
    }
    // Lentz's method for the upper part.
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut value = d;
    for i in 1..10_000_000u32 {
        let i = f64::from(i);
        let step = -i * (i - a);
        b += 2.0;
        d = 1.0 / guard(step * d + b);
        c = guard(b + step / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (1.0 - front * value).clamp(0.0, 1.0)
}

/// Keeps a continued fraction's denominator away from zero.
fn guard(v: f64) -> f64 {
    if v.abs() < 1e-300 { 1e-300 } else { v }
}

/// The regularised incomplete beta function `I(x; a, b)`, by its continued fraction (Abramowitz and Stegun, 26.5.8).
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    // Lentz's method.
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for i in 1..300 {
        let m = f64::from(i);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for step in [even, odd] {
            d = 1.0 / guard(1.0 + step * d);
            c = guard(1.0 + step / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    libm::exp(log_front) * value / a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_counts_poisson() {
        // P(N > 2), mean 3: 1 - 8.5 e^-3; P(N > 10), mean 1, by its sum.
        assert!((incomplete_gamma(3.0, 3.0) - (1.0 - 8.5 * (-3f64).exp())).abs() < 1e-12);
        let tail: f64 =
            (11..40).map(|j| (-1.0 - (1..=j).map(|i| f64::from(i).ln()).sum::<f64>()).exp()).sum();
        assert!((incomplete_gamma(11.0, 1.0) / tail - 1.0).abs() < 1e-12);
        assert!((incomplete_gamma(1e5, 1e5) - 0.5).abs() < 2e-3);
        assert!((incomplete_gamma(1.0, 30.0) - 1.0).abs() < 1e-12);
        // P(1/2, x) = erf(sqrt x).
        assert!((incomplete_gamma(0.5, 0.25) - libm::erf(0.5)).abs() < 1e-14);
        assert!((incomplete_gamma(0.5, 4.0) - libm::erf(2.0)).abs() < 1e-14);
    }

    #[test]
    fn beta_in_closed_form() {
        // I(x; 1, b) = 1 - (1 - x)^b, and the mirror image.
        assert!((incomplete_beta(0.3, 1.0, 4.0) - (1.0 - 0.7f64.powi(4))).abs() < 1e-14);
        assert!((incomplete_beta(0.9, 4.0, 1.0) - 0.9f64.powi(4)).abs() < 1e-14);
        assert_eq!((incomplete_beta(0.0, 2.0, 3.0), incomplete_beta(1.0, 2.0, 3.0)), (0.0, 1.0));
    }
}

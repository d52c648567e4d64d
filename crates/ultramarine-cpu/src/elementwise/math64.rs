//! float64 functions: the platform's, which are within a unit in the last place
//! or two, and what is not there.

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    #[link_name = "asinh"]
    safe fn c_asinh(x: f64) -> f64;
    #[link_name = "acosh"]
    safe fn c_acosh(x: f64) -> f64;
    #[link_name = "atanh"]
    safe fn c_atanh(x: f64) -> f64;
}

/// Error function.
pub(super) fn error_function(x: f64) -> f64 {
    erf(x)
}

/// Inverse hyperbolic sine.
pub(super) fn arcsinh(x: f64) -> f64 {
    c_asinh(x)
}

/// Inverse hyperbolic cosine.
pub(super) fn arccosh(x: f64) -> f64 {
    c_acosh(x)
}

/// Inverse hyperbolic tangent.
pub(super) fn arctanh(x: f64) -> f64 {
    c_atanh(x)
}

/// Inverse error function: Halley's method from an asymptotic start.
pub(super) fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 || a.is_nan() {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    if a < 1.0e-9 {
        // x sqrt(pi)/2; the cubic term is below a unit.
        return x * 0.886_226_925_452_758;
    }
    // Winitzki's approximation, good to 0.2 %.
    let w = ((1.0 - a) * (1.0 + a)).ln();
    let h = 2.0 / (std::f64::consts::PI * 0.147) + 0.5 * w;
    let mut y = ((h * h - w / 0.147).sqrt() - h).sqrt();
    for _ in 0..3 {
        // Where a is near 1, 1 - a is exact and erfc keeps its relative accuracy.
        let error = if a < 0.5 { erf(y) - a } else { (1.0 - a) - erfc(y) };
        let step = error / (std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp());
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// 1 / (1 + e^-x).
pub(super) fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// ln(e^x + e^y).
pub(super) fn logaddexp(x: f64, y: f64) -> f64 {
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    if low == f64::NEG_INFINITY || high == f64::INFINITY && low == high {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

//! float64 hyperbolic functions and their inverses, from e^x - 1 and ln(1 + x) as two
//! numbers.

use super::double::{fast_sum, quotient, sum};
use super::exp::{scaled_exp, scaled_expm1};
use super::log::log1p_of_sum;
use crate::elementwise::poly::fma64;
use crate::level::Isa;
use std::f64::consts::LN_2;

/// Below this, functions with f(x) = x + O(x^3) equal x.
const TINY: f64 = 1.0e-9;
/// Above this, x^2 + 1 equals x^2.
const LARGE: f64 = 1.0e9;

/// Hyperbolic tangent: m / (m + 2) with m = e^(2|x|) - 1.
#[inline(always)]
pub(in crate::elementwise) fn tanh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 20.0 { 20.0 } else { a };
    let (m, low) = scaled_expm1::<I>(a + a, 0);
    let (d, d_low) = sum(m, 2.0);
    let (q, rest) = quotient::<I>(m, low, d, d_low + low);
    let y = if a < TINY { a } else { q + rest };
    y.copysign(x)
}

/// Hyperbolic sine: (m + m / (m + 1)) / 2 with m = e^|x| - 1, a quarter of which does not
/// overflow before the result does.
#[inline(always)]
pub(in crate::elementwise) fn sinh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (m, low) = scaled_expm1::<I>(if a > 710.6 { 710.6 } else { a }, -2);
    // The quotient matters only for small m.
    let small = if m > 1.0e18 { 1.0e18 } else { m };
    let (d, d_low) = sum(4.0 * small, 1.0);
    let (q, rest) = quotient::<I>(small, low, d, fma64::<I>(4.0, low, d_low));
    let (y, error) = fast_sum(m, q);
    let y = 2.0 * (y + (error + (rest + low)));
    let y = if a < TINY { a } else { y };
    y.copysign(x)
}

/// Hyperbolic cosine: (e^|x| + e^-|x|) / 2.
#[inline(always)]
pub(in crate::elementwise) fn cosh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (e, low) = scaled_exp::<I>(if a > 710.6 { 710.6 } else { a }, -2);
    2.0 * (e + (0.0625 / e + low))
}

/// Inverse hyperbolic sine: ln(1 + (a + a^2 / (1 + sqrt(a^2 + 1)))).
#[inline(always)]
pub fn arcsinh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let s = if a > LARGE { 1.0 } else { a };
    let (z, low) = fast_sum(s, s * s / (1.0 + fma64::<I>(s, s, 1.0).sqrt()));
    let y = log1p_or_log_twice::<I>(a, z, low);
    let y = if a < TINY { a } else { y };
    y.copysign(x)
}

/// ln(1 + z + low), and ln(2x) for large x.
#[inline(always)]
fn log1p_or_log_twice<I: Isa>(x: f64, z: f64, low: f64) -> f64 {
    let large = x > LARGE;
    let y = log1p_of_sum::<I>(if large { x - 1.0 } else { z }, if large { 0.0 } else { low });
    let y = if large { y + LN_2 } else { y };
    if x == f64::INFINITY { x } else { y }
}

/// Inverse hyperbolic cosine: ln(1 + (t + sqrt(2t + t^2))), t = x - 1.
#[inline(always)]
pub fn arccosh<I: Isa>(x: f64) -> f64 {
    let t = if x > LARGE { 1.0 } else { x - 1.0 };
    let (z, low) = fast_sum(fma64::<I>(t, t, t + t).sqrt(), t);
    let y = log1p_or_log_twice::<I>(x, z, low);
    if x < 1.0 { f64::NAN } else { y }
}

/// Inverse hyperbolic tangent: ln(1 + 2a / (1 - a)) / 2.
#[inline(always)]
pub fn arctanh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (d, d_low) = fast_sum(1.0, -a);
    let (z, low) = quotient::<I>(a + a, 0.0, d, d_low);
    let y = 0.5 * log1p_of_sum::<I>(z, low);
    let y = if a < TINY { a } else { y };
    let outside = if a == 1.0 { f64::INFINITY } else { f64::NAN };
    let y = if a < 1.0 { y } else { outside };
    y.copysign(x)
}

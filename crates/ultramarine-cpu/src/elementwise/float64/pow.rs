//! float64 powers: e^(y ln |x|), where ln |x| is two numbers with a relative error of 2^-65. The
//! method is that of [`super::log`] and [`super::exp`].

use super::double::{MAGIC, fast_sum, product};
use super::exp::{LN2_HIGH, LN2_LOW, clamp, near_one, scale};
use super::log::split;
use crate::elementwise::poly::{fma64, poly};
use crate::level::Isa;
use std::f64::consts::LOG2_E;

/// ln x of a positive finite x, as two numbers.
#[inline(always)]
fn log<I: Isa>(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let (k, m) = split(if tiny { x * 18_014_398_509_481_984.0 } else { x });
    let k = if tiny { k - 54.0 } else { k };
    let f = m - 1.0;
    // ln(1 + f) = 2 artanh(s) = s (2 + z (2/3 + z p)), s = f / (2 + f), z = s^2.
    let inverse = 1.0 / (2.0 + f);
    let s = f * inverse;
    // f - 2s is exact.
    let s_low = fma64::<I>(-s, f, f - (s + s)) * inverse;
    let (z, z_low) = product::<I>(s, s);
    let z_low = fma64::<I>(s + s, s_low, z_low);
    // z <= 0.02944: 2^-66.3 of ln(1 + f).
    let p = poly!(
        fma64::<I>,
        z,
        0.131_963_689_119_751_37,
        0.132_568_132_113_171_34,
        0.153_867_575_366_630_8,
        0.181_817_843_623_801_1,
        0.222_222_225_199_810_58,
        0.285_714_285_700_992_2,
        0.400_000_000_000_022_56,
    );
    let tail = fma64::<I>(z, p, fma64::<I>(z_low, 0.4, 3.700_743_415_417_188e-17));
    let (b, b_low) = fast_sum(0.666_666_666_666_666_6, tail);
    let (t, t_low) = product::<I>(z, b);
    let t_low = fma64::<I>(z, b_low, fma64::<I>(z_low, b, t_low));
    let (g, g_low) = fast_sum(2.0, t);
    let (l, l_low) = product::<I>(s, g);
    let l_low = fma64::<I>(s, g_low + t_low, fma64::<I>(s_low, g, l_low));
    let (high, low) = fast_sum(k * LN2_HIGH, l);
    (high, fma64::<I>(k, LN2_LOW, low + l_low))
}

/// e^(x + low), for |low| far below 1 and x within exp's bounds.
#[inline(always)]
fn exp<I: Isa>(x: f64, low: f64) -> f64 {
    let t = fma64::<I>(x, LOG2_E, MAGIC);
    let n = t - MAGIC;
    let high = fma64::<I>(n, -LN2_HIGH, x);
    let product = n * LN2_LOW;
    let r = high - product;
    let low = ((high - r) - product) + low;
    scale(near_one::<I>(r, low), t.to_bits().wrapping_sub(MAGIC.to_bits()), x)
}

/// x^y.
#[inline(always)]
pub(in crate::elementwise) fn power<I: Isa>(x: f64, y: f64) -> f64 {
    // Without fused multiply-add, computing the products' errors is slower than the platform's
    // table-based function.
    if !I::FMA {
        return x.powf(y);
    }
    let a = x.abs();
    // Larger exponents make no difference to the result, but their products would overflow.
    let bounded = clamp(y, -1.0e24, 1.0e24);
    let (l, l_low) = log::<I>(a);
    let (e, e_low) = product::<I>(bounded, l);
    let e_low = fma64::<I>(bounded, l_low, e_low);
    let inside = clamp(e, -746.0, 710.0);
    let r = exp::<I>(inside, if inside == e { e_low } else { 0.0 });
    let edge = if (a == 0.0) == (y < 0.0) { f64::INFINITY } else { 0.0 };
    let r = if (a == 0.0) | (a == f64::INFINITY) { edge } else { r };
    let whole = y.round_ties_even() == y;
    let half = 0.5 * y;
    let odd = whole & (half.round_ties_even() != half);
    let r = if odd { r.copysign(x) } else { r };
    let undefined = (x < 0.0) & (x > f64::NEG_INFINITY) & !whole;
    let r = if undefined | x.is_nan() | y.is_nan() { f64::NAN } else { r };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { r }
}

//! float64 logarithms.
//!
//! x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). With s = f / (2 + f), ln(1 + f) is
//! 2 artanh(s) = f - s (f - R), R = s^2 p(s^2) (W. J. Cody and W. Waite, "Software Manual
//! for the Elementary Functions"), which is f - f^2/2 + s (f^2/2 + R). The first two terms
//! are summed without an error, so only the last rounding counts: 0.55 ULP.

use super::double::{fast_sum, product, sum};
use super::exp::{LN2_HIGH, LN2_LOW, exp};
use crate::elementwise::poly::{fma64, poly};
use crate::level::Isa;
use std::f64::consts::{LN_2, LOG2_E, LOG10_E, SQRT_2};

const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;
const LOG10_E_LOW: f64 = 1.098_319_650_216_765e-17;
/// 42 bits of log10 2, so that products with k are exact.
const LOG10_2_HIGH: f64 = 0.301_029_995_663_952_83;
const LOG10_2_LOW: f64 = 2.836_339_455_104_496_4e-14;
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// k and 1 + f of a positive normal x = 2^k (1 + f).
#[inline(always)]
pub(super) fn split(x: f64) -> (f64, f64) {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    // Carries into the exponent where the mantissa is above sqrt(2).
    let shifted = x.to_bits().wrapping_sub(ROOT_HALF);
    let m = (shifted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF);
    // k + 1024 as the low bits of a number above 2^52, because few levels can convert 64-bit
    // integers.
    let biased = shifted.wrapping_add(1024 << 52) >> 52;
    let k = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1024.0);
    (k, f64::from_bits(m))
}

/// ln(1 + f) as two numbers, the second below a twentieth of f, and s.
#[inline(always)]
fn small<I: Isa>(f: f64) -> (f64, f64, f64) {
    let s = f / (2.0 + f);
    let z = s * s;
    // z <= 0.02944: 2^-59.5 of ln(1 + f).
    let p = poly!(
        fma64::<I>,
        z,
        0.147_961_054_834_854,
        0.153_140_358_301_749_16,
        0.181_835_648_671_457_32,
        0.222_221_985_634_628_64,
        0.285_714_287_424_753_63,
        0.399_999_999_994_143_15,
        0.666_666_666_666_673_4,
    );
    let (half, lost) = product::<I>(0.5 * f, f);
    let (high, low) = fast_sum(f, -half);
    (high, fma64::<I>(s, fma64::<I>(z, p, half), low - lost), s)
}

/// Applies `finish(k, high, low)` to a positive finite x, with ln(1 + f) = high + low, and sets the
/// results for all other x.
#[inline(always)]
fn with_specials<I: Isa>(x: f64, finish: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let (k, m) = split(if tiny { x * 18_014_398_509_481_984.0 } else { x });
    let k = if tiny { k - 54.0 } else { k };
    let (high, low, _) = small::<I>(m - 1.0);
    let y = finish(k, high, low);
    let y = if x == f64::INFINITY { x } else { y };
    let outside = if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    if x > 0.0 { y } else { outside }
}

/// ln x.
#[inline(always)]
pub(in crate::elementwise) fn log<I: Isa>(x: f64) -> f64 {
    with_specials::<I>(x, |k, high, low| {
        let (sum, error) = fast_sum(k * LN2_HIGH, high);
        sum + (error + fma64::<I>(k, LN2_LOW, low))
    })
}

/// log2 x.
#[inline(always)]
pub(in crate::elementwise) fn log2<I: Isa>(x: f64) -> f64 {
    with_specials::<I>(x, |k, high, low| {
        let (p, lost) = product::<I>(high, LOG2_E);
        let low = fma64::<I>(low, LOG2_E, fma64::<I>(high, LOG2_E_LOW, lost));
        let (sum, error) = fast_sum(k, p);
        sum + (error + low)
    })
}

/// log10 x.
#[inline(always)]
pub(in crate::elementwise) fn log10<I: Isa>(x: f64) -> f64 {
    with_specials::<I>(x, |k, high, low| {
        let (p, lost) = product::<I>(high, LOG10_E);
        let low = fma64::<I>(low, LOG10_E, fma64::<I>(high, LOG10_E_LOW, lost));
        let (sum, error) = fast_sum(k * LOG10_2_HIGH, p);
        sum + (error + fma64::<I>(k, LOG10_2_LOW, low))
    })
}

/// ln(1 + x + low) for x > -1, with `low` below a unit of x. For other x the result is unspecified.
#[inline(always)]
pub(super) fn log1p_of_sum<I: Isa>(x: f64, low: f64) -> f64 {
    let (u, lost) = sum(1.0, x);
    let (k, m) = split(u);
    let near = k == 0.0;
    let f = if near { x } else { m - 1.0 };
    let (high, tail, s) = small::<I>(f);
    // The exact sum less u, scaled as f is. 2^-k is m / u.
    let unit = f64::from_bits(ONE.wrapping_add(m.to_bits()).wrapping_sub(u.to_bits()));
    let lacking = if near { low } else { (lost + low) * unit };
    let lacking = if x > 1.0e18 { 0.0 } else { lacking };
    // 1 / (1 + f) = (1 - s) / (1 + s), to 1 %.
    let lacking = lacking * fma64::<I>(s + s, s - 1.0, 1.0);
    let (sum, error) = fast_sum(k * LN2_HIGH, high);
    sum + (error + (fma64::<I>(k, LN2_LOW, tail) + lacking))
}

/// ln(1 + x).
#[inline(always)]
pub(in crate::elementwise) fn log1p<I: Isa>(x: f64) -> f64 {
    let y = log1p_of_sum::<I>(x, 0.0);
    let y = if x == f64::INFINITY { x } else { y };
    // Keeps -0 and subnormal numbers.
    let y = if x.abs() < 1.0e-17 { x } else { y };
    let outside = if x == -1.0 { f64::NEG_INFINITY } else { f64::NAN };
    if x > -1.0 { y } else { outside }
}

/// ln(1 + x) for 0 <= x <= 1, as two numbers.
#[inline(always)]
fn log1p_to_one<I: Isa>(x: f64) -> (f64, f64) {
    let (u, lost) = fast_sum(1.0, x);
    let above = x > SQRT_2 - 1.0;
    let f = if above { 0.5 * u - 1.0 } else { x };
    let (high, low, _) = small::<I>(f);
    // The exact sum less u, over u = 2 (1 + f).
    let low = if above { fma64::<I>(0.5 * lost, 1.0 - f, low) } else { low };
    let (sum, error) = fast_sum(if above { LN_2 } else { 0.0 }, high);
    (sum, error + low)
}

/// ln(e^x + e^y): the larger plus ln(1 + e^-|x - y|).
#[inline(always)]
pub fn logaddexp<I: Isa>(x: f64, y: f64) -> f64 {
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    let difference = low - high;
    // The difference of equal infinities is NaN.
    let difference = if low == high { 0.0 } else { difference };
    let (rest, rest_low) = log1p_to_one::<I>(exp::<I>(difference));
    let (sum, error) = sum(high, rest);
    let sum = sum + (error + rest_low);
    let infinite = (high == f64::INFINITY) & (low <= high);
    if infinite | (low == f64::NEG_INFINITY) { high } else { sum }
}

//! float32 logarithms and the functions made from them, branch-free.
//!
//! x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). ln(1 + f) is f - f^2/2 + f^3 p(f), where the
//! polynomial p minimises the largest error (0.1 ULP).

use super::exp32::{exp, power_of_two};
use super::poly::{fma, poly};
use crate::level::Isa;
use std::f32::consts::{LN_2, LOG2_E, LOG10_E};

const LN2_HIGH: f32 = 0.693_359_4; // 355/512: products with k are exact
const LN2_LOW: f32 = -2.121_944_4e-4;
const LOG10_2_HIGH: f32 = 0.301_025_4; // 4932/2^14: 13 bits
const LOG10_2_LOW: f32 = 4.605_039e-6;

/// ln(1 + f) for f of the reduced range.
#[inline(always)]
fn ln_1p_small<I: Isa>(f: f32) -> f32 {
    let p = poly!(
        fma::<I>,
        f,
        -0.076_362_54,
        0.127_636_33,
        -0.131_605_13,
        0.142_015_08,
        -0.166_233,
        0.200_012_36,
        -0.250_008_23,
        0.333_333_3,
    );
    let square = f * f;
    fma::<I>(square, fma::<I>(f, p, -0.5), f)
}

/// k and f of a positive normal x = 2^k (1 + f).
#[inline(always)]
fn split(x: f32) -> (i32, f32) {
    let bits = x.to_bits();
    // Carries into the exponent where the mantissa is above sqrt(2).
    let shifted = bits.wrapping_sub(0x3f35_04f3);
    let k = (shifted as i32) >> 23;
    let m = (shifted & 0x007f_ffff).wrapping_add(0x3f35_04f3);
    (k, f32::from_bits(m) - 1.0)
}

/// Applies `finish(k, ln(1 + f))` to a positive finite x, and sets the results for all other x.
#[inline(always)]
fn with_specials<I: Isa>(x: f32, finish: impl Fn(f32, f32) -> f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let (k, f) = split(if tiny { x * 8_388_608.0 } else { x });
    let k = (if tiny { k - 23 } else { k }) as f32;
    let y = finish(k, ln_1p_small::<I>(f));
    let y = if x == f32::INFINITY { x } else { y };
    let outside = if x == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    if x > 0.0 { y } else { outside }
}

/// ln x.
#[inline(always)]
pub(super) fn log<I: Isa>(x: f32) -> f32 {
    with_specials::<I>(x, |k, y| fma::<I>(k, LN2_HIGH, fma::<I>(k, LN2_LOW, y)))
}

/// log2 x.
#[inline(always)]
pub(super) fn log2<I: Isa>(x: f32) -> f32 {
    with_specials::<I>(x, |k, y| fma::<I>(y, LOG2_E, k))
}

/// log10 x.
#[inline(always)]
pub(super) fn log10<I: Isa>(x: f32) -> f32 {
    with_specials::<I>(x, |k, y| fma::<I>(k, LOG10_2_HIGH, fma::<I>(k, LOG10_2_LOW, y * LOG10_E)))
}

/// ln(1 + x). The rounding error of the sum 1 + x is added to f.
#[inline(always)]
pub(super) fn log1p<I: Isa>(x: f32) -> f32 {
    let u = 1.0 + x;
    let back = u - 1.0;
    let lost = (1.0 - (u - back)) + (x - back);
    let (k, f) = split(u);
    // 2^-127 becomes 0, which is correct because such x lose nothing.
    let f = fma::<I>(lost, power_of_two((-k).max(-127)), f);
    let k = k as f32;
    let y = fma::<I>(k, LN2_HIGH, fma::<I>(k, LN2_LOW, ln_1p_small::<I>(f)));
    let y = if x == f32::INFINITY { x } else { y };
    // Keeps -0; the sum loses nothing of denormals.
    let y = if x.abs() < 1.0e-10 { x } else { y };
    let outside = if x == -1.0 { f32::NEG_INFINITY } else { f32::NAN };
    if x > -1.0 { y } else { outside }
}

/// ln(e^x + e^y): the larger plus ln(1 + e^-|x - y|).
#[inline(always)]
pub(super) fn logaddexp<I: Isa>(x: f32, y: f32) -> f32 {
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    let difference = low - high;
    // The difference of equal infinities is NaN.
    let difference = if low == high { 0.0 } else { difference };
    let sum = high + log1p::<I>(exp::<I>(difference));
    if low == f32::NEG_INFINITY { high } else { sum }
}

/// Inverse hyperbolic sine: ln(1 + (a + a^2 / (1 + sqrt(a^2 + 1)))).
#[inline(always)]
pub(super) fn arcsinh<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let large = a > 1.0e9;
    // For large a, a^2 may overflow; ln(2a) is the same to the last bit.
    let s = if large { 1.0 } else { a };
    let z = s + s * s / (1.0 + fma::<I>(s, s, 1.0).sqrt());
    let y = log1p::<I>(if large { a } else { z });
    (if large { y + LN_2 } else { y }).copysign(x)
}

/// Inverse hyperbolic cosine: ln(1 + (t + sqrt(2t + t^2))), t = x - 1.
#[inline(always)]
pub(super) fn arccosh<I: Isa>(x: f32) -> f32 {
    let large = x > 1.0e9;
    let t = if large { 1.0 } else { x - 1.0 };
    let z = t + fma::<I>(t, t, t + t).sqrt();
    let y = log1p::<I>(if large { x } else { z });
    let y = if large { y + LN_2 } else { y };
    if x < 1.0 { f32::NAN } else { y }
}

/// Inverse hyperbolic tangent: ln(1 + 2a / (1 - a)) / 2.
#[inline(always)]
pub(super) fn arctanh<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let twice = a + a;
    let z = fma::<I>(twice, a / (1.0 - a), twice);
    let y = 0.5 * log1p::<I>(if a == 1.0 { f32::INFINITY } else { z });
    let y = if a > 1.0 { f32::NAN } else { y };
    y.copysign(x)
}

//! float32 exponentials, branch-free, so that loops over them vectorise.
//!
//! x = n ln2 + r with |r| <= ln2/2. e^r - 1 is r + r^2 q(r), where the polynomial q minimises the
//! largest error (0.12 ULP of the result).

use super::poly::{fma, poly};
use crate::level::Isa;

/// 1.5 * 2^23: adding it rounds to an integer, ties to even, in the low bits.
const MAGIC: f32 = 12_582_912.0;
const LN2_HIGH: f32 = 0.693_359_4; // 355/512: nine bits, so products with n are exact
const LN2_LOW: f32 = -2.121_944_4e-4;

/// 2^n for -126 <= n <= 127.
#[inline(always)]
pub(super) fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// n and r of x = n ln2 + r; |x| < 2^15.
#[inline(always)]
fn reduce<I: Isa>(x: f32) -> (i32, f32) {
    let t = fma::<I>(x, std::f32::consts::LOG2_E, MAGIC);
    let n = t - MAGIC;
    let r = fma::<I>(n, -LN2_LOW, fma::<I>(n, -LN2_HIGH, x));
    ((t.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32), r)
}

/// e^r - 1 for |r| <= ln2/2.
#[inline(always)]
fn small<I: Isa>(r: f32) -> f32 {
    let q = poly!(fma::<I>, r, 0.001_394_655_4, 0.008_366_647, 0.041_666_28, 0.166_665_42, 0.5);
    fma::<I>(r * r, q, r)
}

/// Clamps to the bounds `low` and `high`; NaN is kept.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// e^x.
#[inline(always)]
pub(crate) fn exp<I: Isa>(x: f32) -> f32 {
    let (n, r) = reduce::<I>(clamp(x, -104.0, 89.0));
    // Scale in two steps, because 2^n itself may be out of range.
    let half = n >> 1;
    (1.0 + small::<I>(r)) * power_of_two(half) * power_of_two(n - half)
}

/// 2^x for x up to 127; 0 if the result is below the smallest normal number.
#[inline(always)]
pub(crate) fn exp2<I: Isa>(x: f32) -> f32 {
    let near = if x < -126.0 { -126.0 } else { x };
    let t = near + MAGIC;
    let r = (near - (t - MAGIC)) * std::f32::consts::LN_2;
    let p = 1.0 + small::<I>(r);
    // The exponent is added to that of p: t holds it in its low bits.
    let y = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    if x < -126.0 { 0.0 } else { y }
}

/// Hyperbolic tangent: m / (m + 2) with m = e^(2|x|) - 1.
#[inline(always)]
pub(super) fn tanh<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 9.1 { 9.1 } else { a };
    let (n, r) = reduce::<I>(a + a);
    let scale = power_of_two(n);
    let m = fma::<I>(scale, small::<I>(r), scale - 1.0);
    (m / (m + 2.0)).copysign(x)
}

/// e^x - 1. Its sign is that of x, which also keeps -0.
#[inline(always)]
pub(super) fn expm1<I: Isa>(x: f32) -> f32 {
    let (n, r) = reduce::<I>(clamp(x, -18.0, 89.0));
    // Compute half of it first, because 2^128 is not a float32.
    let scale = power_of_two(n - 1);
    let half = fma::<I>(scale, small::<I>(r), scale - 0.5);
    (half + half).copysign(x)
}

/// (e^|x| - 1) / 4, which does not overflow before sinh and cosh do.
#[inline(always)]
fn quarter_expm1<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let (n, r) = reduce::<I>(if a > 89.5 { 89.5 } else { a });
    let scale = power_of_two(n - 2);
    fma::<I>(scale, small::<I>(r), scale - 0.25)
}

/// Hyperbolic sine: (m + m / (m + 1)) / 2 with m = e^|x| - 1, for small x a
/// polynomial.
#[inline(always)]
pub(super) fn sinh<I: Isa>(x: f32) -> f32 {
    let q = quarter_expm1::<I>(x);
    let y = 2.0 * (q + q / fma::<I>(4.0, q, 1.0));
    let y = if x.abs() > 89.5 { f32::INFINITY } else { y };
    let z = x * x;
    let p = poly!(fma::<I>, z, 2.816_951_3e-6, 1.983_616e-4, 0.008_333_35, 0.166_666_67);
    let small = fma::<I>(x * z, p, x);
    let y = if x.abs() < 1.0 { small } else { y };
    y.copysign(x)
}

/// Hyperbolic cosine: (e^|x| + e^-|x|) / 2.
#[inline(always)]
pub(super) fn cosh<I: Isa>(x: f32) -> f32 {
    let q = quarter_expm1::<I>(x) + 0.25;
    2.0 * q + 0.125 / q
}

/// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x, which keeps tiny results.
#[inline(always)]
pub(super) fn sigmoid<I: Isa>(x: f32) -> f32 {
    let e = exp::<I>(-x.abs());
    let above = if x < 0.0 { e } else { 1.0 };
    above / (1.0 + e)
}

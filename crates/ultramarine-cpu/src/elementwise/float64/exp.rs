//! float64 exponentials.
//!
//! x = n ln2 + r with |r| <= ln2/2, by Cody and Waite's subtraction of ln2 in two parts;
//! e^r - 1 is r + r^2 q(r), for differences r + r^2/2 + r^3 q(r). The rounding errors of r
//! and of the sums' first terms are kept, so only the last rounding counts.

use super::double::{MAGIC, fast_sum, product};
use crate::elementwise::poly::{fma64, poly_by_parity};
use crate::level::Isa;
use std::f64::consts::LOG2_E;

/// 42 bits of ln2, so that products with n are exact.
pub(super) const LN2_HIGH: f64 = 0.693_147_180_559_890_3;
pub(super) const LN2_LOW: f64 = 5.497_923_018_708_371e-14;

/// n, as the low bits of a wrapped integer, and r with its rounding error.
#[inline(always)]
pub(super) fn reduce<I: Isa>(x: f64) -> (u64, f64, f64) {
    let t = fma64::<I>(x, LOG2_E, MAGIC);
    let n = t - MAGIC;
    let high = fma64::<I>(n, -LN2_HIGH, x);
    let low = n * LN2_LOW;
    let r = high - low;
    (t.to_bits().wrapping_sub(MAGIC.to_bits()), r, (high - r) - low)
}

/// e^(r + low) for |r| <= ln2/2, from z = r^2; `low` may have a few bits of r.
#[inline(always)]
pub(super) fn near_one<I: Isa>(r: f64, low: f64) -> f64 {
    let z = r * r;
    // |r| <= 0.347: 2^-57 of e^r.
    let q = poly_by_parity!(
        fma64::<I>,
        r,
        2.505_381_061_185_809e-8,
        2.762_622_197_289_708e-7,
        2.755_740_792_785_429_4e-6,
        2.480_150_483_443_169_6e-5,
        1.984_126_971_810_754e-4,
        0.001_388_888_893_190_752_7,
        0.008_333_333_333_390_125,
        0.041_666_666_666_575_79,
        0.166_666_666_666_665_88,
        0.500_000_000_000_000_6,
    );
    let (y, rest) = fast_sum(1.0, r);
    let w = z * q;
    y + (w + fma64::<I>(low, y + w, rest))
}

/// e^(r + low) - 1 as two numbers, for |r| <= ln2/2.
#[inline(always)]
pub(super) fn small<I: Isa>(r: f64, low: f64) -> (f64, f64) {
    // |r| <= 0.347: 2^-61.7 of e^r - 1.
    let q = poly_by_parity!(
        fma64::<I>,
        r,
        2.087_531_498_088_777_5e-9,
        2.510_913_163_712_675_7e-8,
        2.755_740_312_390_689_4e-7,
        2.755_724_397_181_473e-6,
        2.480_158_717_146_111_3e-5,
        1.984_126_988_632_659_2e-4,
        0.001_388_888_888_896_318_1,
        0.008_333_333_333_321_567,
        0.041_666_666_666_666_505,
        0.166_666_666_666_666_77,
    );
    let (half, lost) = product::<I>(0.5 * r, r);
    let (high, rest) = fast_sum(r, half);
    let low = fma64::<I>(low, r, low) + (rest + lost);
    fast_sum(high, fma64::<I>(half * (r + r), q, low))
}

/// 2^n for -1022 <= n <= 1023.
#[inline(always)]
pub(super) fn power_of_two(n: u64) -> f64 {
    f64::from_bits(n.wrapping_add(1023) << 52)
}

/// e^x from `near_one`'s y and the n of x, for -746 <= x <= 710. It scales in two steps, because
/// 2^n may be out of range.
#[inline(always)]
pub(super) fn scale(y: f64, n: u64, x: f64) -> f64 {
    let tiny = x < -690.0;
    // 2^127 and 1/2, undone at the end.
    let extra = if tiny { 1.701_411_834_604_692_3e38 } else { 0.5 };
    let last = if tiny { 5.877_471_754_111_438e-39 } else { 2.0 };
    let bits = (n << 52).wrapping_add(f64::to_bits(extra));
    y * f64::from_bits(bits) * last
}

/// Clamps to the bounds `low` and `high`; NaN is kept.
#[inline(always)]
pub(super) fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// e^x.
#[inline(always)]
pub(crate) fn exp<I: Isa>(x: f64) -> f64 {
    let x = clamp(x, -746.0, 710.0);
    let (n, r, low) = reduce::<I>(x);
    scale(near_one::<I>(r, low), n, x)
}

/// 2^m e^x as two numbers, for n + m within an exponent's range.
#[inline(always)]
pub(super) fn scaled_exp<I: Isa>(x: f64, m: i64) -> (f64, f64) {
    let (n, r, low) = reduce::<I>(x);
    let (high, low) = small::<I>(r, low);
    let s = power_of_two(n.wrapping_add(m as u64));
    let (y, rest) = fast_sum(s, s * high);
    (y, fma64::<I>(s, low, rest))
}

/// 2^m (e^x - 1) as two numbers, for n + m within an exponent's range.
#[inline(always)]
pub(super) fn scaled_expm1<I: Isa>(x: f64, m: i64) -> (f64, f64) {
    let (n, r, low) = reduce::<I>(x);
    let (high, low) = small::<I>(r, low);
    let s = power_of_two(n.wrapping_add(m as u64));
    let one = power_of_two(m as u64);
    let base = s - one;
    // |2^n - 1| is 0 or not below 2^n |high|.
    let (y, rest) = fast_sum(base, s * high);
    (y, fma64::<I>(s, low, rest + ((s - base) - one)))
}

/// e^x - 1.
#[inline(always)]
pub(in crate::elementwise) fn expm1<I: Isa>(x: f64) -> f64 {
    // Compute half of it first, because 2^1024 is not a float64.
    let (half, rest) = scaled_expm1::<I>(clamp(x, -38.0, 710.0), -1);
    let y = 2.0 * (half + rest);
    // Keeps -0 and subnormal numbers.
    if x.abs() < 1.0e-17 { x } else { y }
}

/// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x, which keeps tiny results.
#[inline(always)]
pub fn sigmoid<I: Isa>(x: f64) -> f64 {
    let e = exp::<I>(-x.abs());
    let above = if x < 0.0 { e } else { 1.0 };
    // The quotient by d, minus the correction for `lost`: 1 + e is d + lost.
    let (d, lost) = fast_sum(1.0, e);
    let y = above / d;
    fma64::<I>(-y, lost * (1.0 - 0.5 * e), y)
}

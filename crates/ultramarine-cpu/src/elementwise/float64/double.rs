//! Sums, products and quotients whose rounding error is kept as a second number.
//!
//! The algorithms are Dekker's ("A floating-point technique for extending the available
//! precision", 1971) and Knuth's; a fused multiply-add gives a product's error at once.

use crate::elementwise::poly::fma64;
use crate::level::Isa;

/// 1.5 * 2^52: adding it rounds to an integer, ties to even, in the low bits.
pub(super) const MAGIC: f64 = 6_755_399_441_055_744.0;

/// a + b and its error, for |a| >= |b| or a = 0.
#[inline(always)]
pub(super) fn fast_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// a + b and its error.
#[inline(always)]
pub(super) fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// a b and its error.
#[inline(always)]
pub(super) fn product<I: Isa>(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    if I::FMA {
        return (p, fma64::<I>(a, b, -p));
    }
    // Halves of 26 and 27 bits.
    let high = |x: f64| f64::from_bits(x.to_bits() & !0x07ff_ffff);
    let (ah, bh) = (high(a), high(b));
    let (al, bl) = (a - ah, b - bh);
    (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

/// (a + a_low) / (b + b_low), as two numbers.
#[inline(always)]
pub(super) fn quotient<I: Isa>(a: f64, a_low: f64, b: f64, b_low: f64) -> (f64, f64) {
    let inverse = 1.0 / b;
    let q = a * inverse;
    let (p, error) = product::<I>(q, b);
    let rest = ((a - p) - error) + fma64::<I>(-q, b_low, a_low);
    (q, rest * inverse)
}

/// The exact square root of `z` minus its float64 approximation `s`.
#[inline(always)]
pub(super) fn root_rest<I: Isa>(z: f64, s: f64) -> f64 {
    let (p, error) = product::<I>(s, s);
    // Avoid 0/0 at 0.
    ((z - p) - error) * (0.5 / (s + f64::MIN_POSITIVE))
}

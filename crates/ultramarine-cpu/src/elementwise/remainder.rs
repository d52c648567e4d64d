//! Exact remainders of float32 and float64, with the divisor's sign, including the sign of zeros.
//!
//! For magnitudes a and b, q = trunc(a / b) exceeds the integer part of the exact quotient by at
//! most one, as long as that is below 2^24 (2^53). a - q b is exact with a fused multiply-add.
//! Larger quotients, divisors of zero, infinite dividends and NaNs are marked with NaN, for
//! [`slow_f32`] or [`slow_f64`].

use crate::level::Isa;

/// Defines the functions of one type: quotients are below `$limit`.
macro_rules! functions {
    ($t:ident, $limit:expr, $fused:ident, $signed:ident, $slow:ident) => {
        /// The remainder of a / b, neither negative, or NaN.
        #[inline(always)]
        fn $fused(a: $t, b: $t) -> $t {
            let q = a / b;
            let r = (-q.trunc()).mul_add(b, a);
            let r = if r < 0.0 { r + b } else { r };
            let r = if b == $t::INFINITY { a } else { r };
            if q < $limit { r } else { $t::NAN }
        }

        /// The remainder of x / y from that of the magnitudes.
        #[inline(always)]
        fn $signed(r: $t, x: $t, y: $t) -> $t {
            let differ = x.is_sign_negative() != y.is_sign_negative();
            let moved = if differ { r.copysign(x) + y } else { r.copysign(x) };
            if r == 0.0 { r.copysign(y) } else { moved }
        }

        /// The remainder of x / y, by the platform's function.
        pub(super) fn $slow(x: $t, y: $t) -> $t {
            let r = x % y;
            match r == 0.0 {
                true => r.copysign(y),
                false if (r < 0.0) != (y < 0.0) => r + y,
                false => r,
            }
        }
    };
}
functions!(f32, 16_777_216.0, fused_f32, signed_f32, slow_f32);
functions!(f64, 9_007_199_254_740_992.0, fused_f64, signed_f64, slow_f64);

/// As [`fused_f32`], without a fused multiply-add: below 2^28 the rounded quotient is below the
/// next whole number, and its product with 24 bits is exact.
#[inline(always)]
fn wide(a: f32, b: f32) -> f32 {
    let (a, b) = (a as f64, b as f64);
    let q = a / b;
    let small = q < 268_435_456.0;
    // SAFETY: not negative, and below 2^28.
    let whole: i32 = unsafe { (if small { q } else { 0.0 }).to_int_unchecked() };
    let r = a - whole as f64 * b;
    let r = if b == f64::INFINITY { a } else { r };
    if small { r as f32 } else { f32::NAN }
}

/// The remainder of x / y, or NaN.
#[inline(always)]
pub(super) fn quick_f32<I: Isa>(x: f32, y: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    signed_f32(if I::FMA { fused_f32(a, b) } else { wide(a, b) }, x, y)
}

/// As [`quick_f32`].
#[inline(always)]
pub(super) fn quick_f64<I: Isa>(x: f64, y: f64) -> f64 {
    if !I::FMA {
        return slow_f64(x, y);
    }
    signed_f64(fused_f64(x.abs(), y.abs()), x, y)
}

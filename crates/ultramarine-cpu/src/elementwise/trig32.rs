//! float32 trigonometry, branch-free.
//!
//! Sine and cosine subtract multiples of pi/2 in float64, which is exact enough
//! while |x| <= [`BOUND`]; the few larger arguments are recomputed one by one by
//! the platform's float64 functions.

use super::poly::{fma, fma64, poly};
use crate::level::Isa;
use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// Above this, the loops call the scalar functions.
pub(super) const BOUND: f32 = 1.0e6;

/// True if `x` is out of the reduction's range (false for NaN and infinities, which become NaN).
#[inline(always)]
pub(super) fn is_large(x: f32) -> bool {
    (x.abs() > BOUND) & (x.abs() < f32::INFINITY)
}

/// r in [-pi/4, pi/4] and the quadrant of x.
#[inline(always)]
pub(super) fn reduce(x: f32) -> (f64, u32) {
    // 1.5 * 2^52: rounds, and holds the integer in the low bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    // 32 bits of pi/2, so that products with a quadrant count are exact.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    let x = x as f64;
    let t = x * std::f64::consts::FRAC_2_PI + MAGIC;
    let n = t - MAGIC;
    let r = (x - n * HIGH) - n * LOW;
    (r, t.to_bits() as u32)
}

/// sin r and cos r for |r| <= pi/4.
#[inline(always)]
fn sin_cos<I: Isa>(r: f32) -> (f32, f32) {
    let z = r * r;
    let s = poly!(fma::<I>, z, 2.718_1e-6, -1.983_931e-4, 0.008_333_329, -0.166_666_67);
    let c = poly!(fma::<I>, z, -2.720_555_3e-7, 2.479_945_8e-5, -0.001_388_888_3, 0.041_666_668);
    (fma::<I>(r * z, s, r), fma::<I>(z * z, c, fma::<I>(z, -0.5, 1.0)))
}

/// Sine.
#[inline(always)]
pub(super) fn sin<I: Isa>(x: f32) -> f32 {
    let (r, quadrant) = reduce(x);
    let (s, c) = sin_cos::<I>(r as f32);
    let y = if quadrant & 1 == 0 { s } else { c };
    let y = f32::from_bits(y.to_bits() ^ ((quadrant & 2) << 30));
    // Keeps -0, and denormals where there is no fused multiply-add.
    if x.abs() < 1.0e-10 { x } else { y }
}

/// Cosine.
#[inline(always)]
pub(super) fn cos<I: Isa>(x: f32) -> f32 {
    let (r, quadrant) = reduce(x);
    let (s, c) = sin_cos::<I>(r as f32);
    let y = if quadrant & 1 == 0 { c } else { s };
    f32::from_bits(y.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 30))
}

/// sin r and cos r for |r| <= pi/4, to 1e-11.
#[inline(always)]
pub(super) fn sin_cos64<I: Isa>(r: f64) -> (f64, f64) {
    let z = r * r;
    let s = poly!(
        fma64::<I>,
        z,
        2.718_100_238_906_946e-6,
        -1.983_931_003_381_983_9e-4,
        0.008_333_329_297_915_415,
        -0.166_666_666_407_374_43,
    );
    let c = poly!(
        fma64::<I>,
        z,
        -2.720_555_288_303_503_6e-7,
        2.479_945_770_669_384_6e-5,
        -0.001_388_888_349_073_254_3,
        0.041_666_666_619_381_74,
        -0.5,
        1.0,
    );
    (fma64::<I>(r * z, s, r), c)
}

/// Tangent: the quotient of sine and cosine in float64. In float32 it would be off by three units.
#[inline(always)]
pub(super) fn tan<I: Isa>(x: f32) -> f32 {
    let (r, quadrant) = reduce(x);
    let (s, c) = sin_cos64::<I>(r);
    let odd = quadrant & 1 != 0;
    let y = (if odd { -c } else { s }) / (if odd { s } else { c });
    if x.abs() < 1.0e-10 { x } else { y as f32 }
}

/// Inverse sine for 0 <= x <= 0.55.
#[inline(always)]
fn arcsin_small<I: Isa>(x: f32, z: f32) -> f32 {
    let p = poly!(
        fma::<I>,
        z,
        0.045_174_453,
        0.008_678_059,
        0.033_412_33,
        0.044_315_305,
        0.075_016_01,
        0.166_666_4
    );
    fma::<I>(x * z, p, x)
}

/// Inverse sine: above 0.55, pi/2 - 2 arcsin(sqrt((1 - x) / 2)).
#[inline(always)]
pub(super) fn arcsin<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let large = a > 0.55;
    let z = if large { 0.5 - 0.5 * a } else { a * a };
    let y = arcsin_small::<I>(if large { z.sqrt() } else { a }, z);
    let y = if large { FRAC_PI_2 - (y + y - PI_2_LOW) } else { y };
    y.copysign(x)
}

/// Inverse cosine.
#[inline(always)]
pub(super) fn arccos<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let large = a > 0.55;
    let z = if large { 0.5 - 0.5 * a } else { a * a };
    let y = arcsin_small::<I>(if large { z.sqrt() } else { a }, z);
    let twice = y + y;
    let outer = if x < 0.0 { PI - (twice - 2.0 * PI_2_LOW) } else { twice };
    let inner = FRAC_PI_2 - (y.copysign(x) - PI_2_LOW);
    if large { outer } else { inner }
}

/// pi/2 minus its float32 approximation.
const PI_2_LOW: f32 = -4.371_139e-8;

/// The angle in [0, pi/2] of the point (x, y). Neither coordinate is negative, and not both are
/// zero.
#[inline(always)]
fn angle<I: Isa>(y: f32, x: f32) -> f32 {
    let steep = y > x;
    let (low, high) = if steep { (x, y) } else { (y, x) };
    // Near the diagonal: pi/4 + arctan((low - high) / (low + high)).
    let middle = low > high * 0.55;
    let t = (if middle { low - high } else { low }) / (if middle { low + high } else { high });
    let z = t * t;
    let p = poly!(
        fma::<I>,
        z,
        0.033_977_326,
        -0.076_310_23,
        0.108_438_23,
        -0.142_600_3,
        0.199_988_44,
        -0.333_333_16
    );
    let a = fma::<I>(t * z, p, t);
    let a = if middle { FRAC_PI_4 + (a + 0.5 * PI_2_LOW) } else { a };
    if steep { FRAC_PI_2 - (a - PI_2_LOW) } else { a }
}

/// Inverse tangent.
#[inline(always)]
pub(super) fn arctan<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    // tan(pi/2 - 2^-25) is far below; the sum in `angle` must not overflow.
    let a = if a > 1.0e18 { 1.0e18 } else { a };
    let y = angle::<I>(a, 1.0);
    y.copysign(x)
}

/// Angle of the point (x, y).
#[inline(always)]
pub(super) fn arctan2<I: Isa>(y: f32, x: f32) -> f32 {
    let (a, b) = (y.abs(), x.abs());
    let both_infinite = (a == f32::INFINITY) & (b == f32::INFINITY);
    // Keep sums finite, and the operands of tiny quotients normal.
    let scale = if (a > 1.0e30) | (b > 1.0e30) { 1.0 / 8_589_934_592.0 } else { 1.0 }; // 2^-33
    let (a, b) =
        (if both_infinite { 1.0 } else { a * scale }, if both_infinite { 1.0 } else { b * scale });
    // For 0/0, use a point on the axis.
    let b = if (a == 0.0) & (b == 0.0) { 1.0 } else { b };
    let t = angle::<I>(a, b);
    // Not x < 0, because the sign of -0 counts.
    let t = if x.is_sign_negative() { PI - (t - 2.0 * PI_2_LOW) } else { t };
    let t = if x.is_nan() | y.is_nan() { f32::NAN } else { t };
    t.copysign(y)
}

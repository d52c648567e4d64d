//! float64 trigonometry.
//!
//! Sine and cosine subtract multiples of pi/2 in parts (Cody and Waite), which gives r as
//! two numbers, for |x| <= [`BOUND`]; the few larger arguments are recomputed one by one by
//! the platform's functions. Arcs are reduced to |t| <= tan(pi/8), or to |t| <= 1/2 for
//! arcsine.

use super::double::{MAGIC, fast_sum, product, quotient, root_rest, sum};
use crate::elementwise::poly::{fma64, poly};
use crate::level::Isa;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI};

/// Above this, the loops call the scalar functions.
const BOUND: f64 = 1.0e6;
/// pi/2 minus its float64 approximation.
const PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// True if `x` is out of the reduction's range (false for NaN and infinities, which become NaN).
#[inline(always)]
pub(in crate::elementwise) fn is_large(x: f64) -> bool {
    (x.abs() > BOUND) & (x.abs() < f64::INFINITY)
}

/// r in [-pi/4, pi/4] as two numbers, and the quadrant of x.
#[inline(always)]
fn reduce<I: Isa>(x: f64) -> (f64, f64, u64) {
    let t = fma64::<I>(x, FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    // The first difference is exact in both cases.
    let (r, low) = if I::FMA {
        let (p, error) = product::<I>(n, PI_2_LOW);
        let (r, low) = sum(fma64::<I>(n, -FRAC_PI_2, x), -p);
        (r, fma64::<I>(n, 1.497_384_904_859_169_8e-33, low - error))
    } else {
        // Parts of 33 bits, so that products with n are exact.
        let (r, low) = sum(x - n * 1.570_796_326_734_125_6, n * -6.077_100_506_303_966e-11);
        let (r, lower) = sum(r, n * -2.022_266_248_711_166_5e-21);
        (r, (low + lower) - n * 8.478_427_660_368_9e-32)
    };
    let (r, low) = fast_sum(r, low);
    (r, low, t.to_bits())
}

/// sin(r + low) and cos(r + low) for |r| <= pi/4, each as two numbers.
#[inline(always)]
fn sin_cos<I: Isa>(r: f64, low: f64) -> ((f64, f64), (f64, f64)) {
    let z = r * r;
    // r^2 <= 0.6172: 2^-58 of the sine.
    let s = poly!(
        fma64::<I>,
        z,
        1.589_674_713_705_442_3e-10,
        -2.505_075_730_751_144e-8,
        2.755_731_368_696_081e-6,
        -1.984_126_982_979_415_5e-4,
        0.008_333_333_333_322_398,
        -0.166_666_666_666_666_32,
    );
    // r^2 <= 0.6172: 2^-64 of the cosine.
    let c = poly!(
        fma64::<I>,
        z,
        -1.135_961_456_926_951_4e-11,
        2.087_572_265_406_201e-9,
        -2.755_731_434_795_577_5e-7,
        2.480_158_728_946_77e-5,
        -0.001_388_888_888_887_41,
        0.041_666_666_666_666_6,
    );
    let half = 0.5 * z;
    let sine = (r, fma64::<I>(r * z, s, fma64::<I>(low, -half, low)));
    // The sum 1 - z / 2 and its error.
    let (cosine, error) = fast_sum(1.0, -half);
    let cosine = (cosine, fma64::<I>(z * z, c, error - r * low));
    (sine, cosine)
}

/// Sine.
#[inline(always)]
pub(in crate::elementwise) fn sin<I: Isa>(x: f64) -> f64 {
    let (r, low, quadrant) = reduce::<I>(x);
    let (s, c) = sin_cos::<I>(r, low);
    let even = quadrant & 1 == 0;
    let y = if even { s.0 + s.1 } else { c.0 + c.1 };
    let y = f64::from_bits(y.to_bits() ^ ((quadrant & 2) << 62));
    // Keeps -0, and subnormals where there is no fused multiply-add.
    if x.abs() < 1.0e-9 { x } else { y }
}

/// Cosine.
#[inline(always)]
pub(in crate::elementwise) fn cos<I: Isa>(x: f64) -> f64 {
    let (r, low, quadrant) = reduce::<I>(x);
    let (s, c) = sin_cos::<I>(r, low);
    let even = quadrant & 1 == 0;
    let y = if even { c.0 + c.1 } else { s.0 + s.1 };
    f64::from_bits(y.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 62))
}

/// Tangent: the quotient of both.
#[inline(always)]
pub(in crate::elementwise) fn tan<I: Isa>(x: f64) -> f64 {
    let (r, low, quadrant) = reduce::<I>(x);
    let (s, c) = sin_cos::<I>(r, low);
    let (s, c) = (fast_sum(s.0, s.1), fast_sum(c.0, c.1));
    let even = quadrant & 1 == 0;
    let (a, a_low) = if even { s } else { (-c.0, -c.1) };
    let (b, b_low) = if even { c } else { s };
    let (q, rest) = quotient::<I>(a, a_low, b, b_low);
    if x.abs() < 1.0e-9 { x } else { q + rest }
}

/// arcsin s as two numbers, for s = a, or s = sqrt((1 - a) / 2) if a > 1/2.
#[inline(always)]
fn arcsin_parts<I: Isa>(a: f64) -> (f64, f64) {
    let large = a > 0.5;
    let z = if large { 0.5 - 0.5 * a } else { a * a };
    let s = if large { z.sqrt() } else { a };
    // z <= 0.2501: 2^-59.8 of the arcsine.
    let p = poly!(
        fma64::<I>,
        z,
        0.032_702_177_003_910_86,
        -0.021_116_715_712_835_59,
        0.021_790_623_802_422_1,
        0.003_672_203_654_436_732,
        0.010_789_313_801_325_721,
        0.011_397_294_791_275_879,
        0.013_981_018_271_721_005,
        0.017_351_595_526_084_063,
        0.022_372_215_904_256_59,
        0.030_381_942_675_344_033,
        0.044_642_857_175_284_635,
        0.074_999_999_999_701,
        0.166_666_666_666_667_63,
    );
    let lack = if large { root_rest::<I>(z, s) } else { 0.0 };
    (s, fma64::<I>(s * z, p, lack))
}

/// Inverse sine: above 1/2, pi/2 - 2 arcsin(sqrt((1 - x) / 2)).
#[inline(always)]
pub(in crate::elementwise) fn arcsin<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (s, rest) = arcsin_parts::<I>(a);
    let (high, low) = fast_sum(FRAC_PI_2, -2.0 * s);
    let outer = high + (low + fma64::<I>(-2.0, rest, PI_2_LOW));
    let y = if a > 0.5 { outer } else { s + rest };
    y.copysign(x)
}

/// Inverse cosine.
#[inline(always)]
pub(in crate::elementwise) fn arccos<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let large = a > 0.5;
    let (s, rest) = arcsin_parts::<I>(a);
    // base - s - rest, or twice the arcsine.
    let (s, rest) = if large { (2.0 * s, 2.0 * rest) } else { (s, rest) };
    let negative = x < 0.0;
    let base = if large { PI } else { FRAC_PI_2 };
    let base_low = if large { 2.0 * PI_2_LOW } else { PI_2_LOW };
    let signed = if large | !negative { (s, rest) } else { (-s, -rest) };
    let (high, low) = fast_sum(base, -signed.0);
    let y = high + (low + (base_low - signed.1));
    let y = if large & !negative { s + rest } else { y };
    // Return one fixed NaN, because a sum's NaN would depend on the operand that the compiler puts
    // first.
    if a <= 1.0 { y } else { f64::NAN }
}

/// The angle in [0, pi/2] of the point (x, y), as two numbers. Neither coordinate is negative, and
/// not both are zero.
#[inline(always)]
fn angle<I: Isa>(y: f64, x: f64) -> (f64, f64) {
    let steep = y > x;
    let (low, high) = if steep { (x, y) } else { (y, x) };
    // Near the diagonal: pi/4 + arctan((low - high) / (low + high)).
    let middle = low > high * std::f64::consts::SQRT_2 - high;
    let (a, a_low) = sum(low, if middle { -high } else { 0.0 });
    let (b, b_low) = sum(high, if middle { low } else { 0.0 });
    let (t, t_low) = quotient::<I>(a, a_low, b, b_low);
    // The error terms of products of subnormal numbers are not valid numbers.
    let t_low = if low < 1.0e-290 { 0.0 } else { t_low };
    let z = t * t;
    // z <= 0.1717: 2^-59.5 of the arctangent.
    let p = poly!(
        fma64::<I>,
        z,
        -0.017_907_352_701_567_44,
        0.038_064_963_106_310_82,
        -0.050_393_311_407_278_124,
        0.058_478_974_556_995_31,
        -0.066_631_054_630_916_08,
        0.076_920_603_622_656_5,
        -0.090_908_977_670_923_25,
        0.111_111_107_838_142_47,
        -0.142_857_142_802_039_98,
        0.199_999_999_999_536_63,
        -0.333_333_333_333_332,
    );
    let rest = fma64::<I>(t * z, p, fma64::<I>(t_low, -z, t_low));
    let base = if middle { FRAC_PI_4 } else { 0.0 };
    let base_low = if middle { 0.5 * PI_2_LOW } else { 0.0 };
    // Steep: pi/2 - (base + t + rest).
    let base = if steep { FRAC_PI_2 - base } else { base };
    let base_low = if steep { PI_2_LOW - base_low } else { base_low };
    let (t, rest) = if steep { (-t, -rest) } else { (t, rest) };
    let (sum, error) = fast_sum(base, t);
    (sum, error + (base_low + rest))
}

/// Inverse tangent.
#[inline(always)]
pub(in crate::elementwise) fn arctan<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    // The result is pi/2 from much smaller values on; clamp because products must not overflow.
    let (y, rest) = angle::<I>(if a > 1.0e18 { 1.0e18 } else { a }, 1.0);
    let y = if a < 1.0e-9 { a } else { y + rest };
    y.copysign(x)
}

/// Angle of the point (x, y).
#[inline(always)]
pub(in crate::elementwise) fn arctan2<I: Isa>(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let most = if a > b { a } else { b };
    // Keep sums and inverses finite, and the operands of tiny quotients normal.
    let scale = if most < 1.0e-200 { 1.329_227_995_784_916e36 } else { 1.0 }; // 2^120
    let scale = if most > 1.0e200 { 7.523_163_845_262_64e-37 } else { scale }; // 2^-120
    let infinite = most == f64::INFINITY;
    // Replace infinities and 0/0 by points in their directions.
    let a = if infinite { if a == most { 1.0 } else { 0.0 } } else { a * scale };
    let b = if infinite { if b == most { 1.0 } else { 0.0 } } else { b * scale };
    let b = if most == 0.0 { 1.0 } else { b };
    let (t, rest) = angle::<I>(a, b);
    // Not x < 0, because the sign of -0 counts.
    let left = 1f64.copysign(x) < 0.0;
    let (high, low) = fast_sum(PI, -t);
    let t = if left { high + (low + (2.0 * PI_2_LOW - rest)) } else { t + rest };
    let t = if x.is_nan() | y.is_nan() { f64::NAN } else { t };
    t.copysign(y)
}

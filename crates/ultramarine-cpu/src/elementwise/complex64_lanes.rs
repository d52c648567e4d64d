//! Functions of complex64 computed in float64 lanes, so that loops over them vectorise.
//!
//! float32 parts neither overflow nor underflow in float64. Polynomials are accurate to 1e-9, so
//! only the final rounding to float32 matters. Zeros, non-finite parts, huge angles and huge
//! exponents are left to [`super::complex64_math`].

use super::poly::{fma64, poly};
use super::pow32::{exp2, log2_of_ratio};
use super::trig32::{BOUND, reduce, sin_cos64};
use crate::{dtype::c64, level::Isa};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, PI};

/// The largest magnitude of an exponent: e^300 squared is a float64.
const LARGEST: f32 = 300.0;

/// True if z is out of the range of functions whose real part grows and whose imaginary part
/// rotates.
#[inline(always)]
pub(super) fn is_large(z: c64) -> bool {
    !((z.re.abs() <= LARGEST) & (z.im.abs() <= BOUND))
}

/// As [`is_large`], for functions whose real part rotates.
#[inline(always)]
pub(super) fn is_large_turned(z: c64) -> bool {
    is_large(turned(z))
}

/// True for zeros, infinities and NaN.
#[inline(always)]
pub(super) fn is_special(z: c64) -> bool {
    let largest = z.re.abs().max(z.im.abs());
    !((largest > 0.0) & (largest < f32::INFINITY)) | z.re.is_nan() | z.im.is_nan()
}

#[inline(always)]
fn rounded((re, im): (f64, f64)) -> c64 {
    c64 { re: re as f32, im: im as f32 }
}

/// i z.
#[inline(always)]
fn turned(z: c64) -> c64 {
    c64 { re: -z.im, im: z.re }
}

/// -i z.
#[inline(always)]
fn turned_back(z: c64) -> c64 {
    c64 { re: z.im, im: -z.re }
}

/// sin x and cos x for |x| up to [`BOUND`].
#[inline(always)]
fn sin_cos<I: Isa>(x: f32) -> (f64, f64) {
    let (r, quadrant) = reduce(x);
    let (s, c) = sin_cos64::<I>(r);
    let (a, b) = if quadrant & 1 == 0 { (s, c) } else { (c, s) };
    let sign = |bits: u32| ((bits & 2) as u64) << 62;
    let sine = f64::from_bits(a.to_bits() ^ sign(quadrant));
    // Keeps -0.
    let sine = if x.abs() < 1.0e-10 { x as f64 } else { sine };
    (sine, f64::from_bits(b.to_bits() ^ sign(quadrant.wrapping_add(1))))
}

/// sinh x and cosh x for |x| up to [`LARGEST`].
#[inline(always)]
fn sinh_cosh<I: Isa>(x: f32) -> (f64, f64) {
    let a = x.abs() as f64;
    let e = 0.5 * exp2::<I>(a * LOG2_E);
    let rest = 0.25 / e;
    let z = a * a;
    let p = poly!(
        fma64::<I>,
        z,
        2.806_300_614_225_290_5e-6,
        0.000_198_380_989_154_950_4,
        0.008_333_339_687_365_34,
        0.166_666_666_467_785_4,
    );
    let small = fma64::<I>(a * z, p, a);
    let sinh = if a < 1.0 { small } else { e - rest };
    (sinh.copysign(x as f64), e + rest)
}

/// e^z.
#[inline(always)]
pub(super) fn exp<I: Isa>(z: c64) -> c64 {
    let size = exp2::<I>(z.re as f64 * LOG2_E);
    let (sin, cos) = sin_cos::<I>(z.im);
    rounded((size * cos, size * sin))
}

#[inline(always)]
pub(super) fn sinh<I: Isa>(z: c64) -> c64 {
    let ((sinh, cosh), (sin, cos)) = (sinh_cosh::<I>(z.re), sin_cos::<I>(z.im));
    rounded((sinh * cos, cosh * sin))
}

#[inline(always)]
pub(super) fn cosh<I: Isa>(z: c64) -> c64 {
    let ((sinh, cosh), (sin, cos)) = (sinh_cosh::<I>(z.re), sin_cos::<I>(z.im));
    rounded((cosh * cos, sinh * sin))
}

#[inline(always)]
pub(super) fn tanh<I: Isa>(z: c64) -> c64 {
    let ((sinh, cosh), (sin, cos)) = (sinh_cosh::<I>(z.re), sin_cos::<I>(z.im));
    let scale = 1.0 / (sinh * sinh + cos * cos);
    rounded((sinh * cosh * scale, sin * cos * scale))
}

#[inline(always)]
pub(super) fn sin<I: Isa>(z: c64) -> c64 {
    turned_back(sinh::<I>(turned(z)))
}

#[inline(always)]
pub(super) fn cos<I: Isa>(z: c64) -> c64 {
    cosh::<I>(turned(z))
}

#[inline(always)]
pub(super) fn tan<I: Isa>(z: c64) -> c64 {
    turned_back(tanh::<I>(turned(z)))
}

/// ln |z|. Near the unit circle it is computed from |z|^2 - 1, which is computed from the parts
/// with one rounding.
#[inline(always)]
fn log_of_size<I: Isa>(re: f64, im: f64) -> f64 {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = fma64::<I>(re, re, im * im).to_bits();
    let shifted = bits.wrapping_sub(ROOT_HALF);
    let k = ((shifted as i64) >> 52) as i32 as f64;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF));
    let (a, b) = (re.abs(), im.abs());
    let (big, small) = if a > b { (a, b) } else { (b, a) };
    let near = fma64::<I>(small, small, (big - 1.0) * (big + 1.0));
    let f = if k == 0.0 { near } else { m - 1.0 };
    0.5 * LN_2 * log2_of_ratio::<I>(f / (2.0 + f), k)
}

/// The angle of z. Neither part is infinite or NaN, and not both are zero.
#[inline(always)]
fn angle<I: Isa>(re: f64, im: f64) -> f64 {
    let (a, b) = (re.abs(), im.abs());
    let steep = b > a;
    let (low, high) = if steep { (a, b) } else { (b, a) };
    // Near the diagonal: pi/4 + arctan((low - high) / (low + high)).
    let middle = low > high * 0.414_213_562_373_095_05;
    let t = (if middle { low - high } else { low }) / (if middle { low + high } else { high });
    let z = t * t;
    let p = poly!(
        fma64::<I>,
        z,
        0.050_602_852_478_300_785,
        -0.086_298_956_318_534_51,
        0.110_721_504_250_289_28,
        -0.142_841_992_194_704_66,
        0.199_999_782_986_572_73,
        -0.333_333_332_828_477_57,
    );
    let t = fma64::<I>(t * z, p, t);
    let t = if middle { FRAC_PI_4 + t } else { t };
    let t = if steep { FRAC_PI_2 - t } else { t };
    let t = if re.is_sign_negative() { PI - t } else { t };
    t.copysign(im)
}

/// ln z times a constant.
#[inline(always)]
pub(super) fn log<I: Isa>(z: c64, scale: f64) -> c64 {
    let (re, im) = (z.re as f64, z.im as f64);
    rounded((scale * log_of_size::<I>(re, im), scale * angle::<I>(re, im)))
}

#[inline(always)]
fn root(z: c64) -> (f64, f64) {
    let (re, im) = (z.re as f64, z.im as f64);
    let t = (0.5 * (re.abs() + (re * re + im * im).sqrt())).sqrt();
    let low = im.abs() / (2.0 * t);
    let (re, size) = if re >= 0.0 { (t, low) } else { (low, t) };
    (re, size.copysign(im))
}

#[inline(always)]
pub(super) fn sqrt(z: c64) -> c64 {
    rounded(root(z))
}

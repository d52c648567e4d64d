//! Complex functions in float64, for float32 arguments.
//!
//! The formulas for inverse functions follow W. Kahan, "Branch cuts for complex
//! elementary functions" (1987).

#![allow(missing_docs, reason = "called as in mathematics")]

use super::float64::{arccosh as acosh, arcsinh as asinh};
use crate::dtype::c64;
use crate::level::IsaBaseline;
use std::f64::consts::{FRAC_PI_2, LN_2, LN_10};

/// A complex number of two float64.
#[derive(Clone, Copy)]
pub struct C {
    re: f64,
    im: f64,
}

#[inline(always)]
const fn c(re: f64, im: f64) -> C {
    C { re, im }
}

impl From<c64> for C {
    #[inline(always)]
    fn from(z: c64) -> C {
        c(z.re as f64, z.im as f64)
    }
}

impl From<C> for c64 {
    #[inline(always)]
    fn from(z: C) -> c64 {
        c64 { re: z.re as f32, im: z.im as f32 }
    }
}

const NAN: C = c(f64::NAN, f64::NAN);

impl C {
    fn is_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }
    fn is_infinite(self) -> bool {
        self.re.is_infinite() || self.im.is_infinite()
    }
    /// True for an infinite real part with an angle that has no sine.
    fn is_infinite_turned(self) -> bool {
        self.re.is_infinite() && !self.im.is_finite()
    }
    fn is_zero(self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }
    fn scale(self, by: f64) -> C {
        c(self.re * by, self.im * by)
    }
    fn plus(self, x: f64) -> C {
        c(self.re + x, self.im)
    }
    /// i z.
    fn times_i(self) -> C {
        c(-self.im, self.re)
    }
    /// -i z.
    fn over_i(self) -> C {
        c(self.im, -self.re)
    }
    /// Replaces infinite parts by huge ones, so that angles become the limits.
    fn bounded(self) -> C {
        c(self.re.clamp(-1.0e150, 1.0e150), self.im.clamp(-1.0e150, 1.0e150))
    }
}

/// a b. 0 times infinity is 0, and 0 times NaN is that zero, because NaN has no sign.
fn product(a: f64, b: f64) -> f64 {
    match (a == 0.0, b == 0.0) {
        (true, _) if b.is_nan() => a,
        (_, true) if a.is_nan() => b,
        (false, false) => a * b,
        _ => 0f64.copysign(a) * 1f64.copysign(b),
    }
}

pub(super) fn multiply(x: C, y: C) -> C {
    c(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)
}

/// x / y, NaN in both parts by zero and of infinities.
#[inline(always)]
pub(super) fn quotient(x: C, y: C) -> C {
    let norm = y.re * y.re + y.im * y.im;
    c((x.re * y.re + x.im * y.im) / norm, (x.im * y.re - x.re * y.im) / norm)
}

/// x / y; by zero and of infinities as in C99's annex G.
pub fn divide(x: C, y: C) -> C {
    let C { re, im } = quotient(x, y);
    if !(re.is_nan() && im.is_nan()) {
        return c(re, im);
    }
    let norm = y.re * y.re + y.im * y.im;
    let finite = |z: C| z.re.is_finite() && z.im.is_finite();
    // Represent an infinite number by its direction.
    let direction = |z: C| {
        let part = |p: f64| (if p.is_infinite() { 1.0f64 } else { 0.0 }).copysign(p);
        c(part(z.re), part(z.im))
    };
    if norm == 0.0 && !(x.re.is_nan() && x.im.is_nan()) {
        let infinity = f64::INFINITY.copysign(y.re);
        c(infinity * x.re, infinity * x.im)
    } else if x.is_infinite() && finite(y) {
        let x = direction(x);
        c(f64::INFINITY * (x.re * y.re + x.im * y.im), f64::INFINITY * (x.im * y.re - x.re * y.im))
    } else if y.is_infinite() && finite(x) {
        let y = direction(y);
        c(0.0 * (x.re * y.re + x.im * y.im), 0.0 * (x.im * y.re - x.re * y.im))
    } else {
        c(re, im)
    }
}

pub fn reciprocal(z: C) -> C {
    divide(c(1.0, 0.0), z)
}

/// z / |z|; 0 for zeros of any sign.
pub(super) fn sign(z: C) -> C {
    if z.is_zero() {
        return c(0.0, 0.0);
    }
    let size = z.re.hypot(z.im);
    if size.is_infinite() { NAN } else { c(z.re / size, z.im / size) }
}

pub fn sqrt(z: C) -> C {
    if z.im.is_infinite() {
        return c(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        let other = if z.im.is_nan() { f64::NAN } else { 0.0 };
        return if z.re > 0.0 {
            c(z.re, other.copysign(z.im))
        } else {
            c(other, f64::INFINITY.copysign(z.im))
        };
    }
    if z.is_nan() {
        return NAN;
    }
    if z.is_zero() {
        return c(0.0, z.im);
    }
    let t = (0.5 * (z.re.abs() + z.re.hypot(z.im))).sqrt();
    if z.re >= 0.0 { c(t, z.im / (2.0 * t)) } else { c(z.im.abs() / (2.0 * t), t.copysign(z.im)) }
}

pub(super) fn rsqrt(z: C) -> C {
    reciprocal(sqrt(z))
}

pub fn exp(z: C) -> C {
    let size = z.re.exp();
    if z.im == 0.0 {
        return c(size, z.im);
    }
    if z.is_infinite_turned() {
        return if z.re > 0.0 { c(size, f64::NAN) } else { c(0.0, product(0.0, z.im)) };
    }
    c(size * z.im.cos(), size * z.im.sin())
}

pub fn log(z: C) -> C {
    if z.is_nan() {
        return if z.is_infinite() { c(f64::INFINITY, f64::NAN) } else { NAN };
    }
    let size = z.re.hypot(z.im);
    // Near the unit circle the logarithm is small, so compute it from the difference to 1.
    let re = if (0.5..2.0).contains(&size) {
        let (big, small) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
        0.5 * ((big - 1.0) * (big + 1.0) + small * small).ln_1p()
    } else {
        size.ln()
    };
    c(re, z.im.atan2(z.re))
}

pub fn log2(z: C) -> C {
    log(z).scale(1.0 / LN_2)
}

pub fn log10(z: C) -> C {
    log(z).scale(1.0 / LN_10)
}

pub(super) fn log1p(z: C) -> C {
    if z.is_nan() || z.is_infinite() {
        return log(z);
    }
    let re = 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p();
    c(re, z.im.atan2(1.0 + z.re))
}

/// ln(e^x + e^y). x must not be below y in the order of complex numbers.
pub(super) fn logaddexp(high: C, low: C) -> C {
    if high.is_nan() || low.is_nan() {
        return NAN;
    }
    if low.re == f64::NEG_INFINITY || high.re == f64::INFINITY {
        return high;
    }
    let ratio = exp(c(low.re - high.re, low.im - high.im));
    let rest = log1p(ratio);
    c(high.re + rest.re, high.im + rest.im)
}

/// e^(y ln x); x^0 is 1, and 0 to any other power is 0 if its real part is positive.
pub(super) fn power(x: C, y: C) -> C {
    if y.is_zero() {
        return c(1.0, 0.0);
    }
    if x.is_zero() {
        return if y.re > 0.0 { c(0.0, 0.0) } else { NAN };
    }
    exp(multiply(y, log(x)))
}

pub fn sinh(z: C) -> C {
    if z.is_infinite_turned() {
        return c(z.re, f64::NAN);
    }
    c(product(z.re.sinh(), z.im.cos()), product(z.re.cosh(), z.im.sin()))
}

pub fn cosh(z: C) -> C {
    if z.is_infinite_turned() {
        return c(f64::INFINITY, f64::NAN);
    }
    c(product(z.re.cosh(), z.im.cos()), product(z.re.sinh(), z.im.sin()))
}

pub fn tanh(z: C) -> C {
    if z.is_infinite_turned() {
        return c(1f64.copysign(z.re), product(0.0, z.im));
    }
    if z.re.is_nan() {
        return c(z.re, if z.im == 0.0 { z.im } else { f64::NAN });
    }
    if !z.im.is_finite() {
        return c(if z.re == 0.0 { z.re } else { f64::NAN }, f64::NAN);
    }
    if z.re.abs() > 300.0 {
        return c(1f64.copysign(z.re), 0f64.copysign((2.0 * z.im).sin()));
    }
    let t = z.im.tan();
    let s = z.re.sinh();
    let b = 1.0 + t * t;
    let d = 1.0 + b * s * s;
    c(b * (1.0 + s * s).sqrt() * s / d, t / d)
}

pub fn sin(z: C) -> C {
    sinh(z.times_i()).over_i()
}

pub fn cos(z: C) -> C {
    cosh(z.times_i())
}

pub fn tan(z: C) -> C {
    tanh(z.times_i()).over_i()
}

/// `y`, or infinity if `z` is infinite.
fn grown(y: f64, z: C) -> f64 {
    if z.is_infinite() { f64::INFINITY.copysign(y) } else { y }
}

/// Roots of 1 - z and 1 + z.
fn roots(z: C) -> (C, C) {
    (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)))
}

/// `x` if it is infinite, else NaN.
fn infinite_or_nan(x: f64) -> f64 {
    if x.is_infinite() { x } else { f64::NAN }
}

pub(super) fn arcsin(z: C) -> C {
    if z.is_nan() {
        let re = if z.re == 0.0 { z.re } else { f64::NAN };
        return c(re, if z.re.is_infinite() { f64::INFINITY } else { infinite_or_nan(z.im) });
    }
    let w = z.bounded();
    let (minus, plus) = roots(w);
    let re = w.re.atan2(minus.re * plus.re - minus.im * plus.im);
    let im = asinh::<IsaBaseline>(minus.re * plus.im - minus.im * plus.re);
    c(re, grown(im, z).copysign(z.im))
}

pub(super) fn arccos(z: C) -> C {
    if z.is_nan() {
        let w = arcsin(z);
        return c(FRAC_PI_2 - w.re, -w.im);
    }
    let (minus, plus) = roots(z.bounded());
    let re = 2.0 * minus.re.atan2(plus.re);
    let im = asinh::<IsaBaseline>(plus.re * minus.im - plus.im * minus.re);
    c(re, grown(im, z).copysign(-z.im))
}

pub(super) fn arccosh(z: C) -> C {
    if z.is_nan() {
        let w = arccos(z);
        return c(w.im.abs(), w.re);
    }
    let w = z.bounded();
    let (minus, plus) = (sqrt(w.plus(-1.0)), sqrt(w.plus(1.0)));
    let re = if w.im == 0.0 && w.re >= 1.0 {
        acosh::<IsaBaseline>(w.re)
    } else {
        asinh::<IsaBaseline>(minus.re * plus.re + minus.im * plus.im)
    };
    c(grown(re, z), 2.0 * minus.im.atan2(plus.re))
}

pub(super) fn arcsinh(z: C) -> C {
    arcsin(z.times_i()).over_i()
}

pub(super) fn arctanh(z: C) -> C {
    if z.is_nan() {
        let re = if z.re == 0.0 || z.is_infinite() { product(0.0, z.re) } else { f64::NAN };
        let im = if z.im.is_infinite() { FRAC_PI_2.copysign(z.im) } else { f64::NAN };
        return c(re, im);
    }
    let w = z.bounded();
    let x = w.re.abs();
    let gap = (1.0 - x) * (1.0 - x) + w.im * w.im;
    let re = 0.25 * (4.0 * x / gap).ln_1p();
    let im = 0.5 * (2.0 * w.im).atan2((1.0 - x) * (1.0 + x) - w.im * w.im);
    c(re.copysign(z.re), im)
}

pub(super) fn arctan(z: C) -> C {
    arctanh(z.times_i()).over_i()
}

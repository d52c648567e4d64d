//! Numbers that layers are computed in.

use crate::level::Isa;
use crate::matmul::simd::Num;

/// A floating dtype that is computed in.
pub trait Real: Num + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    /// The lowest finite number.
    const LOWEST: Self;
    const NEG_INFINITY: Self;
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn is_finite(self) -> bool;
    /// `e^x`.
    fn exp<I: Isa>(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// `2^x` for numbers that are not above 0 by more than rounding; 0 far below.
    fn power_of_two<I: Isa>(self) -> Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const LOWEST: f32 = f32::MIN;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn value(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn minus(self, other: f32) -> f32 {
        self - other
    }
    #[inline(always)]
    fn times(self, other: f32) -> f32 {
        self * other
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
    #[inline(always)]
    fn exp<I: Isa>(self) -> f32 {
        crate::elementwise::exp32::exp::<I>(self)
    }
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    #[inline(always)]
    fn power_of_two<I: Isa>(self) -> f32 {
        crate::elementwise::exp32::exp2::<I>(self)
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const LOWEST: f64 = f64::MIN;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;
    fn of(value: f64) -> f64 {
        value
    }
    fn value(self) -> f64 {
        self
    }
    #[inline(always)]
    fn minus(self, other: f64) -> f64 {
        self - other
    }
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
    #[inline(always)]
    fn exp<I: Isa>(self) -> f64 {
        f64::exp(self)
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    #[inline(always)]
    fn power_of_two<I: Isa>(self) -> f64 {
        self.exp2()
    }
}

//! The types in which layers compute.

use crate::elementwise::{exp32, exp64};
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
    fn over(self, other: Self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    fn is_finite(self) -> bool;
    /// `e^x`.
    fn exp<I: Isa>(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// `2^x` for numbers up to 0 (plus rounding errors); 0 for very negative numbers.
    fn power_of_two<I: Isa>(self) -> Self;
}

macro_rules! real {
    ($t:ident, |$x:ident| $exp:expr, $exp2:expr) => {
        impl Real for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = $t::MIN;
            const NEG_INFINITY: $t = $t::NEG_INFINITY;
            fn of(value: f64) -> $t {
                value as $t
            }
            fn value(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn minus(self, other: $t) -> $t {
                self - other
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                self * other
            }
            #[inline(always)]
            fn over(self, other: $t) -> $t {
                self / other
            }
            #[inline(always)]
            fn root(self) -> $t {
                self.sqrt()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn exp<I: Isa>(self) -> $t {
                let $x = self;
                $exp
            }
            fn ln(self) -> $t {
                $t::ln(self)
            }
            #[inline(always)]
            fn power_of_two<I: Isa>(self) -> $t {
                let $x = self;
                $exp2
            }
        }
    };
}
real!(f32, |x| exp32::exp::<I>(x), exp32::exp2::<I>(x));
real!(f64, |x| exp64::<I>(x), x.exp2());

//! Arithmetic of the element types, for kernels that combine values one by one: scatter, scans and
//! arg-reductions.

use crate::dtype::{Bool, Element, c64};
use crate::elementwise::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use half::{bf16, f16};

/// A type in which values are accumulated.
pub trait Accumulator: Copy + Send + Sync + 'static {
    /// Neutral element of [`Accumulator::add`].
    const ZERO: Self;
    /// Neutral element of [`Accumulator::mul`].
    const ONE: Self;
    /// A value that is not above any other.
    const LOWEST: Self;
    /// A value that is not below any other.
    const HIGHEST: Self;
    /// Neutral element of [`Accumulator::logaddexp`].
    const LOG_ZERO: Self = Self::LOWEST;
    /// Sum. Integers wrap; for bool it is the logical or.
    fn add(self, other: Self) -> Self;
    /// Product. Integers wrap; for bool it is the logical and.
    fn mul(self, other: Self) -> Self;
    /// Less than. Complex numbers compare by real part, then by imaginary part. False with NaNs.
    fn lt(self, other: Self) -> bool;
    /// True for NaN. For complex numbers only the real part counts.
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    /// Set if running extremes keep a NaN (complex ones do not, as in MLX).
    const NAN_STAYS: bool = true;
    /// ln(e^self + e^other). For integers it is meaningless, and returns the larger one.
    fn logaddexp(self, other: Self) -> Self {
        if self.lt(other) { other } else { self }
    }
}

/// The arithmetic of an [`Accumulator`]: sum, product, less.
macro_rules! arithmetic {
    (|$a:ident, $b:ident| $sum:expr, $product:expr, $less:expr) => {
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            let ($a, $b) = (self, other);
            $sum
        }
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            let ($a, $b) = (self, other);
            $product
        }
        #[inline(always)]
        fn lt(self, other: Self) -> bool {
            let ($a, $b) = (self, other);
            $less
        }
    };
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Accumulator for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            arithmetic! { |a, b| a.wrapping_add(b), a.wrapping_mul(b), a < b }
        }
    )*};
}
integers!(u8 u16 u32 u64 i8 i16 i32 i64);

impl Accumulator for Bool {
    const ZERO: Self = Bool(0);
    const ONE: Self = Bool(1);
    const LOWEST: Self = Bool(0);
    const HIGHEST: Self = Bool(1);
    arithmetic! { |a, b| Bool(a.0 | b.0), Bool(a.0 & b.0), a.0 < b.0 }
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Accumulator for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            arithmetic! { |a, b| a + b, a * b, a < b }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn logaddexp(self, other: Self) -> Self {
                let (low, high) = if self < other { (self, other) } else { (other, self) };
                if low != low || high != high {
                    <$t>::NAN
                } else if low == <$t>::NEG_INFINITY || high == <$t>::INFINITY {
                    high
                } else {
                    high + (low - high).exp().ln_1p()
                }
            }
        }
    )*};
}
floats!(f32 f64);

impl Accumulator for c64 {
    const ZERO: Self = c64 { re: 0.0, im: 0.0 };
    const ONE: Self = c64 { re: 1.0, im: 0.0 };
    const LOWEST: Self = c64 { re: f32::NEG_INFINITY, im: f32::NEG_INFINITY };
    const HIGHEST: Self = c64 { re: f32::INFINITY, im: f32::INFINITY };
    const LOG_ZERO: Self = c64 { re: f32::NEG_INFINITY, im: 0.0 };
    const NAN_STAYS: bool = false;
    arithmetic! {
        |a, b| c64 { re: a.re + b.re, im: a.im + b.im },
        c64 { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re },
        a.re < b.re || (a.re == b.re && a.im < b.im)
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.re.is_nan()
    }
    fn logaddexp(self, other: Self) -> Self {
        let nan = |c: c64| c.re.is_nan() || c.im.is_nan();
        if nan(self) || nan(other) {
            return c64 { re: f32::NAN, im: f32::NAN };
        }
        let (low, high) = if self.lt(other) { (self, other) } else { (other, self) };
        if low.re == f32::NEG_INFINITY || high.re == f32::INFINITY {
            return high;
        }
        // high + ln(1 + e^(low - high)), in float64 because the sum may be near zero.
        let (scale, angle) =
            ((low.re as f64 - high.re as f64).exp(), low.im as f64 - high.im as f64);
        let (re, im) = (1.0 + scale * angle.cos(), scale * angle.sin());
        c64 {
            re: (high.re as f64 + re.hypot(im).ln()) as f32,
            // As in MLX, the angle is not reduced to (-pi, pi].
            im: (high.im as f64 + im.atan2(re)) as f32,
        }
    }
}

/// An element, with the type in which it is accumulated.
pub trait Number: Element {
    /// The type itself, or float32 for float16 and bfloat16.
    type Acc: Accumulator;
    /// Widens exactly.
    fn up(self) -> Self::Acc;
    /// Rounds to nearest, ties to even.
    fn down(acc: Self::Acc) -> Self;
}

macro_rules! own {
    ($($t:ty)*) => {$(
        impl Number for $t {
            type Acc = $t;
            #[inline(always)]
            fn up(self) -> $t {
                self
            }
            #[inline(always)]
            fn down(acc: $t) -> $t {
                acc
            }
        }
    )*};
}
own!(Bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 c64);

macro_rules! halves {
    ($($t:ty, $up:ident, $down:ident;)*) => {$(
        impl Number for $t {
            type Acc = f32;
            #[inline(always)]
            fn up(self) -> f32 {
                $up(self.to_bits())
            }
            #[inline(always)]
            fn down(acc: f32) -> $t {
                <$t>::from_bits($down(acc))
            }
        }
    )*};
}
halves! {
    f16, f16_to_f32, f32_to_f16;
    bf16, bf16_to_f32, f32_to_bf16;
}

//! The element types of the algorithms here.

use faer::{
    c32, c64,
    traits::{ComplexField, RealField},
};
use std::ops::{Mul, MulAssign, Neg, Sub, SubAssign};

/// A real type of matrix elements: float32 or float64.
pub trait Real: RealField + Copy + Default + Send + Sync + 'static {
    /// Converts from float64, with rounding.
    fn from_f64(v: f64) -> Self;
    /// Converts to float64, exactly.
    fn to_f64(self) -> f64;
}

/// A real or complex type of matrix elements. It cannot be implemented outside of this crate.
pub trait Number:
    Copy
    + Default
    + Send
    + Sync
    + PartialEq
    + Mul<Output = Self>
    + MulAssign
    + SubAssign
    + Sub<Output = Self>
    + Neg<Output = Self>
    + ComplexField<Real = <Self as Number>::Norm>
    + 'static
{
    /// Type of absolute values.
    type Norm: Real;
    /// The same kind of number in double precision, which the computation of general eigenvalues
    /// uses.
    type Wide: crate::eigen::General;
    /// Squares of elements above this, or below its inverse, may overflow or underflow.
    const LARGE: f64;
    /// One.
    const ONE: Self;
    /// True for numbers with an imaginary part.
    const IS_COMPLEX: bool = !<Self as ComplexField>::IS_REAL;

    /// Real and imaginary part.
    fn parts(self) -> [f64; 2];
    /// Makes a number from its parts, rounded. A real number ignores the imaginary part.
    fn of_parts(parts: [f64; 2]) -> Self;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// Converts to double precision.
    fn wide(self) -> Self::Wide;

    /// The absolute value, up to a factor of 2.
    fn magnitude(self) -> f64 {
        let [re, im] = self.parts();
        re.abs() + im.abs()
    }

    /// True if the number is neither infinite nor NaN.
    fn finite(self) -> bool {
        self.parts().into_iter().all(f64::is_finite)
    }

    /// Multiplies by a float64 that the type itself may not be able to represent.
    fn times(self, by: f64) -> Self {
        Self::of_parts(self.parts().map(|p| p * by))
    }

    /// The quotient, rounded once or twice. Intermediate squares do not overflow.
    fn over(self, by: Self) -> Self;
}

/// float64, or a complex number of two float64.
pub trait Wide: ComplexField<Real = f64> + Copy + Default + 'static {
    /// Makes a number from its parts. A real number ignores the imaginary part.
    fn of_parts(parts: [f64; 2]) -> Self;
    /// Real and imaginary part.
    fn parts(self) -> [f64; 2];
}

macro_rules! reals {
    ($($t:ty, $large:literal;)*) => {$(
        impl Real for $t {
            fn from_f64(v: f64) -> Self {
                v as $t
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
        }

        impl Number for $t {
            type Norm = $t;
            type Wide = f64;
            const LARGE: f64 = $large;
            const ONE: Self = 1.0;

            fn parts(self) -> [f64; 2] {
                [self.into(), 0.0]
            }
            fn of_parts(parts: [f64; 2]) -> Self {
                parts[0] as $t
            }
            fn conjugate(self) -> Self {
                self
            }
            fn wide(self) -> f64 {
                self.into()
            }
            fn over(self, by: Self) -> Self {
                self / by
            }
        }
    )*};
}
reals! {
    f32, 1e6;
    f64, 1e100;
}

impl Number for c32 {
    type Norm = f32;
    type Wide = c64;
    const LARGE: f64 = 1e6;
    const ONE: Self = c32::new(1.0, 0.0);

    fn parts(self) -> [f64; 2] {
        [self.re.into(), self.im.into()]
    }
    fn of_parts([re, im]: [f64; 2]) -> Self {
        c32::new(re as f32, im as f32)
    }
    fn conjugate(self) -> Self {
        c32::new(self.re, -self.im)
    }
    fn wide(self) -> c64 {
        c64::new(self.re.into(), self.im.into())
    }
    fn over(self, by: Self) -> Self {
        let q = self.wide() / by.wide();
        c32::new(q.re as f32, q.im as f32)
    }
}

impl Wide for f64 {
    fn of_parts(parts: [f64; 2]) -> Self {
        parts[0]
    }
    fn parts(self) -> [f64; 2] {
        [self, 0.0]
    }
}

impl Wide for c64 {
    fn of_parts([re, im]: [f64; 2]) -> Self {
        c64::new(re, im)
    }
    fn parts(self) -> [f64; 2] {
        [self.re, self.im]
    }
}

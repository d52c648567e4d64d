//! The arithmetic of matrix elements in the loops of blocked algorithms.

use crate::dtype::DType;
use ultramarine_linalg::{Scalar, c32};

/// A type of matrix elements.
pub trait Element: Scalar {
    /// Its dtype.
    const DTYPE: DType;
    /// Set if float64 can hold the squares of all elements.
    const SQUARES_FIT: bool = true;
    /// Type of the magnitudes that select pivots.
    type Size: Copy + PartialOrd;
    /// A prepared divisor.
    type Divisor: Copy + Default + Sync;
    /// The magnitude, up to a factor of 2.
    fn size(self) -> Self::Size;
    /// `self - a * b`, fused if `FMA`.
    fn minus_product<const FMA: bool>(self, a: Self, b: Self) -> Self;
    /// Prepares divisions by this number, which is not zero.
    fn divisor(self) -> Self::Divisor;
    /// The quotient: intermediate squares do not overflow.
    fn divided(self, by: Self::Divisor) -> Self;
    /// Real and imaginary part.
    fn widened(self) -> [f64; 2];
    /// From real and imaginary part, rounded.
    fn rounded(parts: [f64; 2]) -> Self;
    /// The square root of the real part, if that is positive and finite.
    fn root(self) -> Option<Self>;
}

macro_rules! reals {
    ($($t:ident $dtype:ident)*) => {$(impl Element for $t {
        const DTYPE: DType = DType::$dtype;
        const SQUARES_FIT: bool = size_of::<$t>() == 4;
        type Size = $t;
        type Divisor = $t;
        #[inline(always)]
        fn size(self) -> $t {
            self.abs()
        }
        #[inline(always)]
        fn minus_product<const FMA: bool>(self, a: Self, b: Self) -> Self {
            if FMA { (-a).mul_add(b, self) } else { self - a * b }
        }
        #[inline(always)]
        fn divisor(self) -> $t {
            self
        }
        #[inline(always)]
        fn divided(self, by: $t) -> Self {
            self / by
        }
        #[inline(always)]
        fn widened(self) -> [f64; 2] {
            [self.into(), 0.0]
        }
        #[inline(always)]
        fn rounded([re, _]: [f64; 2]) -> Self {
            re as $t
        }
        #[inline(always)]
        fn root(self) -> Option<Self> {
            (self > 0.0 && self < Self::INFINITY).then(|| self.sqrt())
        }
    })*};
}
reals!(f32 F32 f64 F64);

impl Element for c32 {
    const DTYPE: DType = DType::C64;
    type Size = f64;
    /// The inverse, in double precision.
    type Divisor = [f64; 2];
    #[inline(always)]
    fn size(self) -> f64 {
        f64::from(self.re.abs()) + f64::from(self.im.abs())
    }
    #[inline(always)]
    fn minus_product<const FMA: bool>(self, a: Self, b: Self) -> Self {
        if FMA {
            let re = (-a.re).mul_add(b.re, a.im.mul_add(b.im, self.re));
            c32::new(re, (-a.re).mul_add(b.im, (-a.im).mul_add(b.re, self.im)))
        } else {
            let re = self.re - (a.re * b.re - a.im * b.im);
            c32::new(re, self.im - (a.re * b.im + a.im * b.re))
        }
    }
    #[inline(always)]
    fn divisor(self) -> [f64; 2] {
        let [re, im] = [f64::from(self.re), f64::from(self.im)];
        let square = re * re + im * im;
        [re / square, -im / square]
    }
    #[inline(always)]
    fn divided(self, [re, im]: [f64; 2]) -> Self {
        let [x, y] = [f64::from(self.re), f64::from(self.im)];
        c32::new((x * re - y * im) as f32, (x * im + y * re) as f32)
    }
    #[inline(always)]
    fn widened(self) -> [f64; 2] {
        [self.re.into(), self.im.into()]
    }
    #[inline(always)]
    fn rounded([re, im]: [f64; 2]) -> Self {
        c32::new(re as f32, im as f32)
    }
    #[inline(always)]
    fn root(self) -> Option<Self> {
        self.re.root().map(|root| c32::new(root, 0.0))
    }
}

//! Values and shapes for the tests of families that work along one axis.

use super::{Array, Sample, ravel, shape, unravel};
use half::{bf16, f16};
use ultramarine_cpu::dtype::{Bool, c64};
use ultramarine_test_support::Rng;

/// Values that tests compute with.
pub trait Value: Sample {
    /// Real and imaginary part.
    fn parts(self) -> (f64, f64);
    /// Special values are put in at random.
    fn special(which: usize) -> Option<Self>;
}
macro_rules! values {
    ($($t:ty, $v:ident => $re:expr, $special:expr;)*) => {$(
        impl Value for $t {
            fn parts(self) -> (f64, f64) {
                let $v = self;
                ($re, 0.0)
            }
            fn special(which: usize) -> Option<Self> {
                $special.get(which).copied()
            }
        }
    )*};
}
values! {
    Bool, v => v.0 as f64, [];
    u8, v => v as f64, []; u16, v => v as f64, []; u32, v => v as f64, [u32::MAX];
    i8, v => v as f64, [i8::MIN]; i16, v => v as f64, [];
    i32, v => v as f64, [i32::MIN];
    f16, v => v.to_f64(), [f16::NAN, -f16::ZERO, f16::INFINITY, -f16::INFINITY];
    bf16, v => v.to_f64(), [bf16::NAN, -bf16::ZERO, bf16::INFINITY, -bf16::INFINITY];
    f32, v => v as f64, [f32::NAN, -0.0, f32::INFINITY, -f32::INFINITY];
    f64, v => v, [f64::NAN, -0.0, f64::INFINITY, -f64::INFINITY];
}
// Two numbers that are ordered like the one, as float64 has no 64 bits.
impl Value for u64 {
    fn parts(self) -> (f64, f64) {
        ((self >> 32) as f64, self as u32 as f64)
    }
    fn special(which: usize) -> Option<Self> {
        [u64::MAX].get(which).copied()
    }
}
impl Value for i64 {
    fn parts(self) -> (f64, f64) {
        ((self >> 32) as f64, self as u32 as f64)
    }
    fn special(which: usize) -> Option<Self> {
        [i64::MIN].get(which).copied()
    }
}
impl Value for c64 {
    fn parts(self) -> (f64, f64) {
        (self.re as f64, self.im as f64)
    }
    fn special(which: usize) -> Option<Self> {
        let values = [(f32::NAN, 1.0), (-0.0, 0.0), (0.0, -0.0), (1.0, f32::NAN), (f32::NAN, 0.5)];
        values.get(which).map(|(re, im)| c64 { re: *re, im: *im })
    }
}

pub fn sampled<T: Value>(shape: &[i64], special: bool, plain: bool, rng: &mut Rng) -> Array<T> {
    let span = [3, 200, 1 << 16][rng.below(3)];
    let any = |rng: &mut Rng| {
        let special = if special && rng.below(4) == 0 { T::special(rng.below(5)) } else { None };
        special.unwrap_or_else(|| T::sample(rng.below(span) as i64 - span as i64 / 2))
    };
    let values: Vec<T> = (0..shape.iter().product::<i64>()).map(|_| any(rng)).collect();
    Array::new(shape, &values, plain, rng)
}

/// Indices (in row-major order) of the lanes along an axis.
pub fn lanes(shape: &[i64], axis: usize) -> Vec<Vec<usize>> {
    let all: usize = shape.iter().product::<i64>() as usize;
    let start = (0..all).map(|i| unravel(i, shape)).filter(|at| at[axis] == 0);
    start
        .map(|mut at| {
            let one = |i| {
                at[axis] = i;
                ravel(&at, shape)
            };
            (0..shape[axis]).map(one).collect()
        })
        .collect()
}

/// A random shape with a random axis, longer at times.
pub fn any_shape(rng: &mut Rng, round: usize) -> (Vec<i64>, usize) {
    let ndim = 1 + rng.below(3);
    let mut shape = shape(ndim, 9, rng);
    let axis = rng.below(ndim);
    match round % 6 {
        0 => shape[axis] = 200 + rng.below(200) as i64,
        1 => shape[ndim - 1] = 1 + rng.below(300) as i64,
        2 if ndim == 1 => shape[0] = 4000 + rng.below(2000) as i64,
        _ => (),
    }
    (shape, axis)
}

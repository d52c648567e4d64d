//! This crate's own reductions, for `MPI_Op_create`.
//!
//! MPI's predefined reductions are used only for sums of 32 and 64 bits, because other reductions
//! differ between implementations: Open MPI 4.1 saturates sums of 8 and 16 bits, MPICH 4.0 compares
//! unsigned numbers as signed ones, bools have no sum, and it depends on the order of ranks if a
//! NaN survives a maximum. The reductions here follow `add`, `maximum` and `minimum` of the core.
//! Their results do not depend on the order of operands, so that they are bitwise identical on all
//! ranks.

use crate::dtype::Dtype;
use std::ffi::{c_int, c_void};

/// The type `MPI_User_function`: operand, operand and result, number of elements, datatype.
pub type UserFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut c_void);

/// The reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Sum,
    Max,
    Min,
}

/// # Safety
/// `a` and `b` have `*n` elements each, which need not be aligned.
unsafe fn each<T: Copy>(a: *mut c_void, b: *mut c_void, n: *mut c_int, f: impl Fn(T, T) -> T) {
    let (a, b) = (a.cast::<T>(), b.cast::<T>());
    // SAFETY: by this function's contract. MPI's own scratch memory may be unaligned.
    unsafe {
        for i in 0..usize::try_from(*n).unwrap_or(0) {
            let result = f(a.add(i).read_unaligned(), b.add(i).read_unaligned());
            b.add(i).write_unaligned(result);
        }
    }
}

macro_rules! reductions {
    ($($name:ident $dtype:ident $reduction:ident $t:ty: $f:expr;)*) => {
        $(
            /// # Safety
            /// The arguments are those with which MPI calls a reduction.
            unsafe extern "C" fn $name(a: *mut c_void, b: *mut c_void, n: *mut c_int, _: *mut c_void) {
                // SAFETY: MPI gives `*n` elements of the size of its datatype, which is that of `T`.
                unsafe { each::<$t>(a, b, n, $f) }
            }
        )*

        /// All functions, in the order of [`index`].
        pub const ALL: &[UserFunction] = &[$($name),*];

        const KEYS: &[(Dtype, Reduction)] = &[$((Dtype::$dtype, Reduction::$reduction)),*];
    };
}

/// Returns the index in [`ALL`]; `None` if MPI's own sum is used.
pub fn index(dtype: Dtype, reduction: Reduction) -> Option<usize> {
    KEYS.iter().position(|key| *key == (dtype, reduction))
}

/// Maximum and minimum of floats, by comparing their bits as signed integers. Bits of negative
/// numbers are in the reverse order, which the exclusive or corrects, so -0 is below +0. A NaN of
/// either sign sorts beyond the infinities, on the side that wins.
macro_rules! float_by_bits {
    ($max:ident $min:ident $bits:ty, $signed:ty, $infinity:expr) => {
        fn $max(x: $bits, y: $bits) -> $bits {
            const MAGNITUDE: $bits = <$bits>::MAX >> 1;
            let key = |bits: $bits| {
                let signed = bits as $signed;
                let ordered = signed ^ (((signed >> (<$bits>::BITS - 1)) as $bits) >> 1) as $signed;
                if bits & MAGNITUDE > $infinity { (bits & MAGNITUDE) as $signed } else { ordered }
            };
            if key(x) >= key(y) { x } else { y }
        }

        fn $min(x: $bits, y: $bits) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            $max(x ^ SIGN, y ^ SIGN) ^ SIGN
        }
    };
}

float_by_bits!(max_f16 min_f16 u16, i16, 0x7c00);
float_by_bits!(max_bf16 min_bf16 u16, i16, 0x7f80);
float_by_bits!(max_f32 min_f32 u32, i32, 0x7f80_0000);
float_by_bits!(max_f64 min_f64 u64, i64, 0x7ff0_0000_0000_0000);

/// Compares by real part, then by imaginary part. The result is NaN if a part of either number is
/// NaN.
fn complex(x: [f32; 2], y: [f32; 2], x_wins: bool) -> [f32; 2] {
    let nan = |z: [f32; 2]| z[0].is_nan() | z[1].is_nan();
    let bits = |z: [f32; 2]| z.map(f32::to_bits);
    match (nan(x), nan(y)) {
        (true, false) => x,
        (false, true) => y,
        (true, true) => std::cmp::max_by_key(x, y, |z| bits(*z)),
        // Zeros of both signs are equal, so compare their bits.
        (false, false) if x == y => std::cmp::max_by_key(x, y, |z| bits(*z)),
        (false, false) => {
            if x_wins {
                x
            } else {
                y
            }
        }
    }
}

reductions! {
    bool_sum Bool Sum u8: |x, y| u8::from((x | y) != 0);
    bool_max Bool Max u8: |x, y| u8::from((x | y) != 0);
    bool_min Bool Min u8: |x, y| u8::from((x != 0) & (y != 0));
    u8_sum Uint8 Sum u8: u8::wrapping_add;
    u8_max Uint8 Max u8: Ord::max;
    u8_min Uint8 Min u8: Ord::min;
    i8_sum Int8 Sum i8: i8::wrapping_add;
    i8_max Int8 Max i8: Ord::max;
    i8_min Int8 Min i8: Ord::min;
    u16_sum Uint16 Sum u16: u16::wrapping_add;
    u16_max Uint16 Max u16: Ord::max;
    u16_min Uint16 Min u16: Ord::min;
    i16_sum Int16 Sum i16: i16::wrapping_add;
    i16_max Int16 Max i16: Ord::max;
    i16_min Int16 Min i16: Ord::min;
    u32_max Uint32 Max u32: Ord::max;
    u32_min Uint32 Min u32: Ord::min;
    i32_max Int32 Max i32: Ord::max;
    i32_min Int32 Min i32: Ord::min;
    u64_max Uint64 Max u64: Ord::max;
    u64_min Uint64 Min u64: Ord::min;
    i64_max Int64 Max i64: Ord::max;
    i64_min Int64 Min i64: Ord::min;
    f16_max Float16 Max u16: max_f16;
    f16_min Float16 Min u16: min_f16;
    bf16_max Bfloat16 Max u16: max_bf16;
    bf16_min Bfloat16 Min u16: min_bf16;
    f32_max Float32 Max u32: max_f32;
    f32_min Float32 Min u32: min_f32;
    f64_max Float64 Max u64: max_f64;
    f64_min Float64 Min u64: min_f64;
    c64_max Complex64 Max [f32; 2]: |x, y| complex(x, y, x > y);
    c64_min Complex64 Min [f32; 2]: |x, y| complex(x, y, x < y);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(f: fn(u32, u32) -> u32, x: f32, y: f32) -> f32 {
        let one = f32::from_bits(f(x.to_bits(), y.to_bits()));
        let other = f32::from_bits(f(y.to_bits(), x.to_bits()));
        assert_eq!(one.is_nan(), other.is_nan(), "{x} {y}");
        assert!(one.is_nan() || one.to_bits() == other.to_bits(), "{x} {y}");
        one
    }

    #[test]
    fn floats_are_ordered_by_value_and_nan_wins() {
        let values = [f32::NEG_INFINITY, -2.5, -1e-40, -0.0, 0.0, 1e-40, 3.0, f32::INFINITY];
        for (i, x) in values.into_iter().enumerate() {
            for y in &values[i..] {
                assert_eq!(f32s(max_f32, x, *y).to_bits(), y.to_bits());
                assert_eq!(f32s(min_f32, x, *y).to_bits(), x.to_bits());
            }
            for nan in [f32::NAN, -f32::NAN] {
                assert!(f32s(max_f32, x, nan).is_nan() && f32s(min_f32, x, nan).is_nan());
            }
        }
    }

    #[test]
    fn halves_are_ordered_as_their_float32_values() {
        let floats =
            |bits: u16| [half::f16::from_bits(bits).to_f32(), half::bf16::from_bits(bits).to_f32()];
        let pairs = (0..=u16::MAX)
            .step_by(97)
            .flat_map(|x| (0..=u16::MAX).step_by(101).map(move |y| (x, y)));
        for (x, y) in pairs {
            for (i, functions) in [[max_f16, min_f16], [max_bf16, min_bf16]].into_iter().enumerate()
            {
                let (a, b) = (floats(x)[i], floats(y)[i]);
                let [max, min] = functions.map(|f| floats(f(x, y))[i]);
                if a.is_nan() || b.is_nan() {
                    assert!(max.is_nan() && min.is_nan(), "{a} {b}");
                } else {
                    assert_eq!((max, min), (a.max(b), a.min(b)));
                }
            }
        }
    }

    #[test]
    fn complex_numbers_go_by_real_then_imaginary_part() {
        let run = |index: usize, x: [f32; 2], y: [f32; 2]| {
            let (mut a, mut b, mut n) = (x, y, 1);
            // SAFETY: one element each.
            unsafe {
                ALL[index]((&raw mut a).cast(), (&raw mut b).cast(), &mut n, std::ptr::null_mut())
            };
            b
        };
        let max = index(Dtype::Complex64, Reduction::Max).unwrap();
        let min = index(Dtype::Complex64, Reduction::Min).unwrap();
        assert_eq!(run(max, [1.0, 9.0], [2.0, -9.0]), [2.0, -9.0]);
        assert_eq!(run(min, [1.0, 9.0], [1.0, -9.0]), [1.0, -9.0]);
        assert_eq!(run(max, [-0.0, 5.0], [0.0, 3.0]), [-0.0, 5.0]);
        assert!(run(max, [f32::NAN, 0.0], [7.0, 0.0])[0].is_nan());
        assert!(run(min, [7.0, 0.0], [0.0, f32::NAN])[1].is_nan());
    }

    #[test]
    fn sums_of_our_own_are_those_that_mpi_has_not_alike() {
        let own = |dtype| index(dtype, Reduction::Sum).is_some();
        let wanted = [Dtype::Bool, Dtype::Uint8, Dtype::Uint16, Dtype::Int8, Dtype::Int16];
        assert!(Dtype::ALL.into_iter().all(|dtype| own(dtype) == wanted.contains(&dtype)));
        for dtype in Dtype::ALL {
            assert!(
                index(dtype, Reduction::Max).is_some() && index(dtype, Reduction::Min).is_some()
            );
        }
    }
}

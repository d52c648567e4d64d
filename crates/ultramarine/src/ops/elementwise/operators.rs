//! The operators of Rust on arrays, results of operators, and numbers.
//!
//! They give a `Result`, since shapes may not fit. On the right of an array, owned or borrowed, any [`Operand`] may
//! stand: `&x * 2.0`, `x + &y`, `&x - &y * 0.5f32`. On the left of an array, the result of another operator may stand
//! (`&x * &w + &b`), or a number (`1.0 - &x`).
//!
//! Two things Rust does not permit. A `Result` beside a number or another `Result` has no operators, since none of the
//! types is this crate's: `(&x * 2.0)? + 1.0`. And numbers on the left are `f64`, `i64`, `f16`, `bf16` and
//! `Complex32` only: with `f32` and `i32` beside them, `2.0 * &x` would be ambiguous.

use crate::ops::elementwise::operand::Operand;
use crate::{Complex32, array::Array, error::Result};
use half::{bf16, f16};
use ultramarine_extension::operator;

// `Array::f(a)` instead of `a.f()`, which would be the operator itself inside of its impl.
macro_rules! binary {
    ($($trait:ident $method:ident $function:ident [$($number:ty)*];)*) => {$(
        operator!([T: Operand] $trait $method Array, T, |a, b| Array::$function(&a, b));
        operator!([T: Operand] $trait $method &Array, T, |a, b| Array::$function(a, b));
        operator!(foreign $trait $method Result<Array>, Array, |a, b| Array::$function(&a?, b));
        operator!(foreign $trait $method Result<Array>, &Array, |a, b| Array::$function(&a?, b));
        $(
            operator!(foreign $trait $method $number, Array, |a, b| Array::$function(&b.scalar_like(a)?, b));
            operator!(foreign $trait $method $number, &Array, |a, b| Array::$function(&b.scalar_like(a)?, b));
        )*
    )*};
}

binary! {
    Add add add [f64 i64 f16 bf16 Complex32];
    Sub sub subtract [f64 i64 f16 bf16 Complex32];
    Mul mul multiply [f64 i64 f16 bf16 Complex32];
    Div div divide [f64 i64 f16 bf16 Complex32];
    Rem rem remainder [f64 i64 f16 bf16];
    BitAnd bitand bitwise_and [bool i64];
    BitOr bitor bitwise_or [bool i64];
    BitXor bitxor bitwise_xor [bool i64];
    Shl shl left_shift [i64];
    Shr shr right_shift [i64];
}

macro_rules! unary {
    ($($trait:ident $method:ident $function:ident;)*) => {$(
        impl std::ops::$trait for Array {
            type Output = Result<Array>;
            fn $method(self) -> Result<Array> {
                self.$function()
            }
        }
        impl std::ops::$trait for &Array {
            type Output = Result<Array>;
            fn $method(self) -> Result<Array> {
                self.$function()
            }
        }
    )*};
}

unary! {
    Neg neg negative;
    Not not bitwise_invert;
}

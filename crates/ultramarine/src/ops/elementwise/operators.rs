//! Rust's operators for arrays, for results of operators, and for numbers.
//!
//! The operators return a `Result`, because shapes may not fit. The right operand of an array, owned or borrowed, can
//! be any [`Operand`]: `&x * 2.0`, `x + &y`, `&x - &y * 0.5f32`. The left operand of an array can be the result of
//! another operator (`&x * &w + &b`) or a number (`1.0 - &x`).
//!
//! Rust does not permit two forms. A `Result` beside a number or another `Result` has no operators, because none of the
//! types belongs to this crate; write `(&x * 2.0)? + 1.0` instead. Numbers on the left can only be `f64`, `i64`, `f16`,
//! `bf16` and `Complex32`; if `f32` and `i32` were also implemented, `2.0 * &x` would be ambiguous.

use crate::ops::elementwise::operand::Operand;
use crate::{Complex32, array::Array, error::Result};
use half::{bf16, f16};
use ultramarine_extension::operator;

// Call `Array::f(a)` instead of `a.f()`, because inside the impl `a.f()` would call the operator itself.
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

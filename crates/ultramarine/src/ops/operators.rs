//! The operators of Rust on arrays and numbers.
//!
//! They give a `Result`, since shapes may not fit: `(&x * 2.0)?`. A number adopts
//! the array's dtype, as [`Array::scalar_like`] has it.

use crate::{array::Array, error::Result};

macro_rules! binary {
    ($($trait:ident $method:ident $function:ident [$($number:ty)*];)*) => {$(
        impl std::ops::$trait<&Array> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                self.$function(other)
            }
        }
        $(
            impl std::ops::$trait<$number> for &Array {
                type Output = Result<Array>;
                fn $method(self, other: $number) -> Result<Array> {
                    self.$function(&self.scalar_like(other)?)
                }
            }
            impl std::ops::$trait<&Array> for $number {
                type Output = Result<Array>;
                fn $method(self, other: &Array) -> Result<Array> {
                    other.scalar_like(self)?.$function(other)
                }
            }
        )*
    )*};
}

binary! {
    Add add add [f64 f32 i64 i32];
    Sub sub subtract [f64 f32 i64 i32];
    Mul mul multiply [f64 f32 i64 i32];
    Div div divide [f64 f32 i64 i32];
    Rem rem remainder [f64 f32 i64 i32];
    BitAnd bitand bitwise_and [bool i64 i32];
    BitOr bitor bitwise_or [bool i64 i32];
    BitXor bitxor bitwise_xor [bool i64 i32];
    Shl shl left_shift [i64 i32];
    Shr shr right_shift [i64 i32];
}

impl std::ops::Neg for &Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        self.negative()
    }
}

impl std::ops::Not for &Array {
    type Output = Result<Array>;
    fn not(self) -> Result<Array> {
        self.bitwise_invert()
    }
}

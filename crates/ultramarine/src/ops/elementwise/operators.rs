//! The operators of Rust on arrays and numbers.
//!
//! They give a `Result`, since shapes may not fit: `(&x * 2.0)?`. A number adopts
//! the array's dtype, as [`Array::scalar_like`] has it. Numbers are f64 and i64 only:
//! with more types a literal would be ambiguous.

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
    Add add add [f64 i64];
    Sub sub subtract [f64 i64];
    Mul mul multiply [f64 i64];
    Div div divide [f64 i64];
    Rem rem remainder [f64 i64];
    BitAnd bitand bitwise_and [bool i64];
    BitOr bitor bitwise_or [bool i64];
    BitXor bitxor bitwise_xor [bool i64];
    Shl shl left_shift [i64];
    Shr shr right_shift [i64];
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

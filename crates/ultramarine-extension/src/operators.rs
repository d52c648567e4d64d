//! The operators of Rust on arrays and numbers.
//!
//! They give a `Result`, since shapes may not fit: `(&x * 2.0)?`. A number adopts the array's dtype
//! ([`Array::scalar_like`]).

use crate::{array::Array, error::Result};

macro_rules! operators {
    ($($trait:ident $method:ident $function:ident;)*) => {$(
        impl std::ops::$trait<&Array> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                self.$function(other)
            }
        }
        impl std::ops::$trait<f64> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: f64) -> Result<Array> {
                self.$function(&self.scalar_like(other)?)
            }
        }
        impl std::ops::$trait<&Array> for f64 {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                other.scalar_like(self)?.$function(other)
            }
        }
    )*};
}

operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
}

impl std::ops::Neg for &Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        self.negative()
    }
}

//! Operators of parameters, the same as those of arrays: `(&x * &self.weight)?`. To the right of an array, a parameter
//! is an ordinary operand.

use super::param::Param;
use ultramarine::{Array, Operand, Result};

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<T: Operand> std::ops::$trait<T> for &Param {
            type Output = Result<Array>;

            fn $method(self, other: T) -> Result<Array> {
                std::ops::$trait::$method(&**self, other)
            }
        }

        operators! {
            Result<Array>, $trait $method;
            f64, $trait $method;
            i64, $trait $method;
        }
    )*};
    ($($left:ty, $trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Param> for $left {
            type Output = Result<Array>;

            fn $method(self, other: &Param) -> Result<Array> {
                std::ops::$trait::$method(self, &**other)
            }
        }
    )*};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl std::ops::Neg for &Param {
    type Output = Result<Array>;

    fn neg(self) -> Result<Array> {
        self.negative()
    }
}

//! Operators of parameters with arrays, numbers and parameters, as arrays have them: `(&x * &self.weight)?`.

use super::param::Param;
use ultramarine::{Array, Result};

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {
        $(operators!(one $trait $method {
            [&Param] [&Param] |a, b| (&**a, &**b);
            [&Param] [&Array] |a, b| (&**a, b);
            [&Param] [Array] |a, b| (&**a, &b);
            [&Array] [&Param] |a, b| (a, &**b);
            [Array] [&Param] |a, b| (&a, &**b);
            [&Param] [f64] |a, b| (&**a, b);
            [&Param] [i64] |a, b| (&**a, b);
            [f64] [&Param] |a, b| (a, &**b);
            [i64] [&Param] |a, b| (a, &**b);
        });)*
    };
    (one $trait:ident $method:ident
        {$([$left:ty] [$right:ty] |$a:ident, $b:ident| ($x:expr, $y:expr);)*}
    ) => {$(
        impl std::ops::$trait<$right> for $left {
            type Output = Result<Array>;

            fn $method(self, other: $right) -> Result<Array> {
                let ($a, $b) = (self, other);
                std::ops::$trait::$method($x, $y)
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

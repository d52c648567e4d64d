//! Rust's operators for arrays, results of operators, and numbers.
//!
//! They return a `Result`, because shapes may not fit. The right operand may be any [`Operand`]:
//! `&x * 2.0`, `&x - &y * &z`. Instead of an array, the left operand may be the result of another
//! operator (`&x * &y + &z`) or an `f64` (`1.0 - &x`).

use crate::{
    array::Array,
    error::{Error, Result},
};
use std::borrow::Cow;

/// The right operand of an operator: an array, owned or borrowed; a number, which adopts the dtype
/// of the array on the left ([`Array::scalar_like`]); or a result, whose error becomes the
/// operator's.
pub trait Operand {
    /// Returns the operand as an array, for use with `array`.
    ///
    /// # Errors
    /// The operand's own, and those of [`Array::scalar_like`].
    #[doc(hidden)]
    fn beside(&self, array: &Array) -> Result<Cow<'_, Array>>;
}

impl Operand for Array {
    fn beside(&self, _: &Array) -> Result<Cow<'_, Array>> {
        Ok(Cow::Borrowed(self))
    }
}

impl<T: Operand> Operand for &T {
    fn beside(&self, array: &Array) -> Result<Cow<'_, Array>> {
        (**self).beside(array)
    }
}

impl Operand for Result<Array> {
    fn beside(&self, _: &Array) -> Result<Cow<'_, Array>> {
        self.as_ref().map(Cow::Borrowed).map_err(Error::clone)
    }
}

impl Operand for f64 {
    fn beside(&self, array: &Array) -> Result<Cow<'_, Array>> {
        array.scalar_like(*self).map(Cow::Owned)
    }
}

impl Operand for f32 {
    fn beside(&self, array: &Array) -> Result<Cow<'_, Array>> {
        array.scalar_like(f64::from(*self)).map(Cow::Owned)
    }
}

/// Implements an operator for two types. Its result is the calling module's `Result<Array>`. The
/// core uses it for its arrays too.
#[doc(hidden)]
#[macro_export]
macro_rules! operator {
    // For foreign types on the left: compilers' messages about these types would list the impls,
    // with the macro around them.
    (foreign $($operator:tt)*) => {
        $crate::operator! { #[diagnostic::do_not_recommend] [] $($operator)* }
    };
    ($(#[$attribute:meta])* [$($generic:tt)*] $trait:ident $method:ident $left:ty, $right:ty, |$a:ident, $b:ident| $result:expr) => {
        $(#[$attribute])*
        impl<$($generic)*> std::ops::$trait<$right> for $left {
            type Output = Result<Array>;
            fn $method(self, $b: $right) -> Result<Array> {
                let $a = self;
                $result
            }
        }
    };
}

macro_rules! operators {
    ($($trait:ident $method:ident $function:ident;)*) => {$(
        operator!([T: Operand] $trait $method Array, T, |a, b| Array::$function(&a, b));
        operator!([T: Operand] $trait $method &Array, T, |a, b| Array::$function(a, b));
        operator!(foreign $trait $method Result<Array>, Array, |a, b| Array::$function(&a?, &b));
        operator!(foreign $trait $method Result<Array>, &Array, |a, b| Array::$function(&a?, b));
        operator!(foreign $trait $method f64, Array, |a, b| Array::$function(&b.scalar_like(a)?, &b));
        operator!(foreign $trait $method f64, &Array, |a, b| Array::$function(&b.scalar_like(a)?, b));
    )*};
}

operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
}

impl std::ops::Neg for Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        self.negative()
    }
}

impl std::ops::Neg for &Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        self.negative()
    }
}

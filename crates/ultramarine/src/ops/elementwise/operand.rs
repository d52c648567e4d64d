//! Operands beside an array in functions of several arrays: another array, or a Rust number.

use crate::error::{Error, Result};
use crate::{array::Array, dtype::Dtype, scalar::Scalar};
use half::{bf16, f16};
use std::borrow::Cow;

/// A Rust number beside an array. It takes the array's dtype, unless that dtype cannot hold the number's kind: a float
/// beside integers becomes float32, an integer beside bool int32. See [`Operand`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A truth value, which stays bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above the largest int64.
    Uint(u64),
    /// A real number.
    Float(f64),
    /// A complex number, always complex64.
    Complex(crate::Complex32),
}

impl Number {
    /// Returns the number as an array of its own: int32 (int64 or uint64 if int32 is too narrow), float32, bool or
    /// complex64.
    fn alone(self) -> Array {
        Array::scalar(match self {
            Number::Bool(v) => Scalar::from(v),
            Number::Int(v) => i32::try_from(v).map_or_else(|_| Scalar::from(v), Scalar::from),
            Number::Uint(v) => Scalar::from(v),
            Number::Float(v) => Scalar::from_f64(Dtype::Float32, v),
            Number::Complex(v) => Scalar::from(v),
        })
    }
}

/// The kinds of operands.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Given<'a> {
    Array(&'a Array),
    Number(Number),
}

/// An operand beside an array: an [`Array`] (owned or borrowed), a Rust number, or a `Result<Array>`, whose error the
/// function returns.
///
/// A number adopts the array's dtype, unless that dtype cannot hold the number's kind: a float beside integers or bool
/// becomes float32, an integer beside bool int32, a complex number always complex64. The number's Rust type does not
/// matter: if `x` is float32, `x * 2.0f64` is float32. Two numbers side by side ([`where_`](crate::where_)) get the
/// dtypes that they have as arrays: int32, float32, bool or complex64.
///
/// ```
/// use ultramarine::{Array, Dtype, where_};
/// let x = Array::from_slice(&[-1.0f32, 2.0], &[2])?;
/// assert_eq!(x.maximum(0)?.to_vec::<f32>()?, [0.0, 2.0]);
/// assert_eq!(x.greater(&x * 2.0)?.to_vec::<bool>()?, [true, false]);
/// assert_eq!(where_(&x.less(0.0)?, 0.0, &x)?.to_vec::<f32>()?, [0.0, 2.0]);
/// assert_eq!(Array::scalar(3i32).power(0.5)?.dtype(), Dtype::Float32);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand beside an array",
    label = "neither an array, nor a number, nor a `Result<Array>`",
    note = "operands are `Array`, `&Array`, `Result<Array>`, and numbers such as `2`, `0.5f32`, `half::f16`"
)]
pub trait Operand {
    /// The array or number.
    ///
    /// # Errors
    /// The operand's own.
    #[doc(hidden)]
    fn given(&self) -> Result<Given<'_>>;

    /// The operand as an array beside `array`.
    ///
    /// # Errors
    /// The operand's own; [`Error::Value`] when an integer does not fit the array's integer dtype.
    #[doc(hidden)]
    #[inline]
    fn beside(&self, array: &Array) -> Result<Cow<'_, Array>> {
        Ok(match self.given()? {
            Given::Array(operand) => Cow::Borrowed(operand),
            Given::Number(number) => Cow::Owned(array.scalar_like(number)?),
        })
    }
}

impl<'a> Given<'a> {
    /// Returns the array, or converts the number to an array of its own.
    pub fn alone(self) -> Cow<'a, Array> {
        match self {
            Given::Array(array) => Cow::Borrowed(array),
            Given::Number(number) => Cow::Owned(number.alone()),
        }
    }
}

/// Converts an operand that stands beside no array: a number becomes an array of its own.
pub(crate) fn alone(operand: &impl Operand) -> Result<Cow<'_, Array>> {
    operand.given().map(Given::alone)
}

/// Returns two operands as arrays. A number takes its dtype from the other operand.
pub(crate) fn pair<'a>(
    a: &'a impl Operand,
    b: &'a impl Operand,
) -> Result<(Cow<'a, Array>, Cow<'a, Array>)> {
    use Given::{Array as A, Number as N};
    Ok(match (a.given()?, b.given()?) {
        (A(a), A(b)) => (Cow::Borrowed(a), Cow::Borrowed(b)),
        (A(a), N(b)) => (Cow::Borrowed(a), Cow::Owned(a.scalar_like(b)?)),
        (N(a), A(b)) => (Cow::Owned(b.scalar_like(a)?), Cow::Borrowed(b)),
        (N(a), N(b)) => (Cow::Owned(a.alone()), Cow::Owned(b.alone())),
    })
}

impl Operand for Array {
    #[inline]
    fn given(&self) -> Result<Given<'_>> {
        Ok(Given::Array(self))
    }
}

impl<T: Operand + ?Sized> Operand for &T {
    #[inline]
    fn given(&self) -> Result<Given<'_>> {
        (**self).given()
    }
}

impl Operand for Result<Array> {
    #[inline]
    fn given(&self) -> Result<Given<'_>> {
        self.as_ref().map(Given::Array).map_err(Error::clone)
    }
}

impl Operand for Number {
    fn given(&self) -> Result<Given<'_>> {
        Ok(Given::Number(*self))
    }
}

/// An operand that can be left out: an [`Operand`] or `None`; see [`Array::clip`].
///
/// ```
/// use ultramarine::Array;
/// let x = Array::from_slice(&[-1.0f32, 0.5, 2.0], &[3])?;
/// assert_eq!(x.clip(0.0, None)?.to_vec::<f32>()?, [0.0, 0.5, 2.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub trait OptionalOperand {
    /// The array or number, if there is one.
    ///
    /// # Errors
    /// The operand's own.
    #[doc(hidden)]
    fn if_given(&self) -> Result<Option<Given<'_>>>;

    /// The operand as an array beside `array`.
    ///
    /// # Errors
    /// As [`Operand::beside`].
    #[doc(hidden)]
    fn if_given_beside(&self, array: &Array) -> Result<Option<Cow<'_, Array>>> {
        Ok(match self.if_given()? {
            None => None,
            Some(Given::Array(operand)) => Some(Cow::Borrowed(operand)),
            Some(Given::Number(number)) => Some(Cow::Owned(array.scalar_like(number)?)),
        })
    }
}

impl<T: Operand> OptionalOperand for T {
    fn if_given(&self) -> Result<Option<Given<'_>>> {
        self.given().map(Some)
    }
}

// Implemented for one type only, so that `None` needs no type annotation.
impl OptionalOperand for Option<&Array> {
    fn if_given(&self) -> Result<Option<Given<'_>>> {
        Ok(self.map(Given::Array))
    }
}

macro_rules! numbers {
    ($($t:ty, |$v:ident| $number:expr;)*) => {$(
        impl From<$t> for Number {
            fn from($v: $t) -> Number {
                $number
            }
        }

        impl Operand for $t {
            fn given(&self) -> Result<Given<'_>> {
                Ok(Given::Number(Number::from(*self)))
            }
        }
    )*};
}

numbers! {
    bool, |v| Number::Bool(v);
    i8, |v| Number::Int(v.into());
    i16, |v| Number::Int(v.into());
    i32, |v| Number::Int(v.into());
    i64, |v| Number::Int(v);
    isize, |v| Number::Int(v as i64);
    u8, |v| Number::Int(v.into());
    u16, |v| Number::Int(v.into());
    u32, |v| Number::Int(v.into());
    u64, |v| i64::try_from(v).map_or(Number::Uint(v), Number::Int);
    usize, |v| Number::from(v as u64);
    f16, |v| Number::Float(v.into());
    bf16, |v| Number::Float(v.into());
    f32, |v| Number::Float(v.into());
    f64, |v| Number::Float(v);
    crate::Complex32, |v| Number::Complex(v);
}

impl Array {
    /// Returns a 0-d constant of `number`, in the dtype that it takes beside this array (see
    /// [`Operand`]).
    ///
    /// # Errors
    /// [`Error::Value`] when an integer does not fit the array's integer dtype.
    pub fn scalar_like(&self, number: impl Into<Number>) -> Result<Array> {
        let own = self.dtype();
        let range = crate::iinfo(own);
        let overflow = |v: i128| {
            Err(Error::Value(format!("Converting {v} to {own} would result in overflow. Convert the array to a wider type.").into()))
        };
        Ok(Array::scalar(match number.into() {
            Number::Bool(v) => Scalar::from(v),
            Number::Int(v) if own == Dtype::Bool => Scalar::from_i64(Dtype::Int32, v),
            Number::Int(v) => {
                // uint64 accepts all integers, as in MLX: negative ones wrap.
                let fits = own == Dtype::Uint64
                    || range.is_none_or(|i| (i.min..=i.max).contains(&i128::from(v)));
                if !fits {
                    return overflow(v.into());
                }
                Scalar::from_i64(own, v)
            }
            Number::Uint(v) if own == Dtype::Uint64 => Scalar::from(v),
            Number::Uint(v) if own == Dtype::Bool || range.is_some() => return overflow(v.into()),
            Number::Uint(v) => Scalar::from_f64(own, v as f64),
            Number::Float(v) => Scalar::from_f64(own.to_inexact(), v),
            Number::Complex(v) => Scalar::from_complex(Dtype::Complex64, v),
        }))
    }
}

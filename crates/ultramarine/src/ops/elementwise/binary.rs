//! Elementwise functions of two arrays, broadcast against each other.

use crate::error::{Error, Result, bail};
use crate::ops::rules::{batching, shapeless::broadcast_with};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Elementwise, Jvp, Rules, Vjp, Vmap, attributes,
    elementwise::operand::Operand, select::where_,
};
use crate::shape::{self, Shape};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, scalar::Scalar};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use ultramarine_abi::fused::family;
use ultramarine_abi::schema::{BinaryAttrs, binary, op};

/// Both operands of `op` with the given dtype and the common shape.
fn operands<'a>(
    op: &str,
    a: &'a Array,
    b: &'a Array,
    dtype: Dtype,
) -> Result<(Cow<'a, Array>, Cow<'a, Array>, Shape)> {
    let (x, y) = (a.promoted(dtype), b.promoted(dtype));
    if x.shape() == y.shape() {
        let shape = Shape::from_slice(x.shape());
        return Ok((x, y, shape));
    }
    let shape = shape::broadcast(op, x.shape(), y.shape())?;
    let left = broadcast_with(&x, &shape, &[&y])?.into_owned();
    let right = broadcast_with(&y, &shape, &[&x])?.into_owned();
    Ok((Cow::Owned(left), Cow::Owned(right), shape))
}

/// The dtype in which a function computes, given the promoted dtype of the operands.
#[derive(Clone, Copy, PartialEq)]
enum Types {
    /// Computes in the promoted dtype.
    Keep,
    /// Computes in the promoted dtype; rejects complex64.
    Real,
    /// Computes in the promoted dtype; integers and bool become float32.
    Inexact,
    /// As `Inexact`; rejects complex64.
    RealInexact,
    /// Computes in the promoted dtype and returns bool.
    Compare,
    /// Computes in bool.
    Logical,
    /// Accepts integers and bool only.
    Bits,
    /// As `Bits`; bool becomes uint8.
    Shift,
}

/// Applies the function with this code. Errors name it `name`.
fn apply(name: &str, code: u32, types: Types, a: &Array, b: &Array) -> Result<Array> {
    let promoted = a.dtype().promote(b.dtype());
    let dtype = match types {
        Types::Real | Types::RealInexact if promoted.is_complex() => {
            let text = match types {
                Types::Real => "Complex type not supported. Take real(x), imag(x) or abs(x) first.",
                _ => "Not supported for complex64. Take real(x), imag(x) or abs(x) first.",
            };
            return Err(Error::value(name, text));
        }
        Types::Bits | Types::Shift if promoted.is_inexact() => {
            return Err(Error::runtime(
                name,
                format!(
                    "Only allowed on integer or boolean types but got types {} and {}. Convert them with astype(int32).",
                    a.dtype(),
                    b.dtype()
                ),
            ));
        }
        Types::Inexact | Types::RealInexact => promoted.to_inexact(),
        Types::Logical => Dtype::Bool,
        Types::Shift if promoted == Dtype::Bool => Dtype::Uint8,
        _ => promoted,
    };
    if types == Types::Logical {
        [a, b].into_iter().try_for_each(|x| x.computable(name))?;
    }
    let (a, b, shape) = operands(name, a, b, dtype)?;
    let out = if types == Types::Compare { Dtype::Bool } else { dtype };
    Array::try_of(Binary { code }, &[&a, &b], shape, out)
}

macro_rules! functions {
    ($($(#[$m:meta])* $name:ident $code:ident $types:ident;)*) => {
        impl Array {
            $(
                $(#[$m])*
                ///
                /// # Errors
                /// [`Error::Value`] if the shapes cannot be broadcast, or if the function is not
                /// defined for the dtype ([`Error::Runtime`] for a bitwise function of floats).
                pub fn $name(&self, other: impl Operand) -> Result<Array> {
                    apply(stringify!($name), binary::$code, Types::$types, self, &*other.beside(self)?)
                }
            )*
        }
    };
}

functions! {
    /// Returns `self + other`, in the promoted dtype. Integers wrap; for bool it is the logical or.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::from_slice(&[1, 2, 3], &[3])?;
    /// let column = Array::from_slice(&[0.5f32, 10.0], &[2, 1])?;
    /// let y = x.add(&column)?; // as `&x + &column`
    /// assert_eq!((y.dtype(), y.shape()), (Dtype::Float32, &[2, 3][..]));
    /// assert_eq!(y.to_vec::<f32>()?, [1.5, 2.5, 3.5, 11.0, 12.0, 13.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    add ADD Keep;
    /// Returns `self - other`, in the promoted dtype. Integers wrap; for bool it is the exclusive
    /// or.
    subtract SUBTRACT Keep;
    /// Returns `self * other`, in the promoted dtype. Integers wrap; for bool it is the logical
    /// and.
    multiply MULTIPLY Keep;
    /// Returns `self / other`, in the promoted dtype; integers and bool give float32. See
    /// [`Array::floor_divide`] for the quotient of integers.
    divide DIVIDE Inexact;
    /// Returns the remainder of `self / other`, with the divisor's sign, as Python's `%` does. The
    /// remainder of an integer by 0 is the integer. Not for complex64.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[7, -7], &[2])?;
    /// assert_eq!(x.remainder(3)?.to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(x.floor_divide(3)?.to_vec::<i32>()?, [2, -3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    remainder REMAINDER Real;
    /// Returns the larger element of each pair, in the promoted dtype, or NaN if one of them is
    /// NaN. Complex numbers compare by real part, then by imaginary part.
    maximum MAXIMUM Keep;
    /// Returns the smaller element of each pair, in the promoted dtype, or NaN if one of them is
    /// NaN. Complex numbers compare by real part, then by imaginary part.
    minimum MINIMUM Keep;
    /// Returns `ln(e^self + e^other)`, without intermediate overflow. Integers and bool give
    /// float32.
    logaddexp LOGADDEXP Inexact;
    /// Returns the angle of the point with ordinate `self` and abscissa `other`, in radians from
    /// -pi to pi. Integers and bool give float32. Not for complex64.
    arctan2 ARCTAN2 RealInexact;
    /// Returns true where the elements are equal: bool.
    equal EQUAL Compare;
    /// Returns true where the elements differ, or one of them is NaN: bool.
    not_equal NOT_EQUAL Compare;
    /// Returns true where `self < other`: bool.
    less LESS Compare;
    /// Returns true where `self <= other`: bool.
    less_equal LESS_EQUAL Compare;
    /// Returns true where `self > other`: bool.
    greater GREATER Compare;
    /// Returns true where `self >= other`: bool.
    greater_equal GREATER_EQUAL Compare;
    /// Returns true where neither element is 0: bool.
    logical_and LOGICAL_AND Logical;
    /// Returns true where an element is not 0: bool.
    logical_or LOGICAL_OR Logical;
    /// Returns true where exactly one element is not 0: bool.
    logical_xor NOT_EQUAL Logical;
    /// Returns the bitwise and of integers; for bool, the logical and.
    bitwise_and BITWISE_AND Bits;
    /// Returns the bitwise or of integers; for bool, the logical or.
    bitwise_or BITWISE_OR Bits;
    /// Returns the bitwise exclusive or of integers; for bool, the logical exclusive or.
    bitwise_xor BITWISE_XOR Bits;
    /// Returns `self << other`, for integers; 0 where the count is negative or at least the width
    /// in bits. bool gives uint8.
    left_shift LEFT_SHIFT Shift;
    /// Returns `self >> other`, for integers: arithmetic for signed ones. Where the count is
    /// negative or at least the width in bits, 0, or -1 for negative numbers. bool gives uint8.
    right_shift RIGHT_SHIFT Shift;
}

/// The value of all elements of a constant, or `None` for other arrays.
fn constant(a: &Array) -> Option<(f64, f64)> {
    a.node().constant().map(Scalar::to_complex)
}

impl Array {
    /// Returns `self` to the power of `other`, in the promoted dtype. Integers wrap; an integer to
    /// a negative power gives 0.
    ///
    /// # Errors
    /// [`Error::Value`] when the shapes cannot be broadcast.
    pub fn power(&self, other: impl Operand) -> Result<Array> {
        let other = &*other.beside(self)?;
        let dtype = self.dtype().promote(other.dtype());
        let base = || -> Result<Array> {
            let (a, _, _) = operands("power", self, other, dtype)?;
            Ok(a.into_owned())
        };
        match constant(other) {
            Some((2.0, 0.0)) => base()?.square(),
            Some((3.0, 0.0)) => {
                let a = base()?;
                a.square()?.multiply(&a)
            }
            _ => apply("power", binary::POWER, Types::Keep, self, other),
        }
    }

    /// Returns `floor(self / other)`, in the promoted dtype; an integer divided by 0 gives 0.
    /// Complex quotients are not rounded, as in MLX.
    ///
    /// # Errors
    /// [`Error::Value`] when the shapes cannot be broadcast.
    pub fn floor_divide(&self, other: impl Operand) -> Result<Array> {
        let other = &*other.beside(self)?;
        if self.dtype().promote(other.dtype()).is_complex() {
            return Ok(self.divide(other)?.stop_gradient());
        }
        apply("floor_divide", binary::FLOOR_DIVIDE, Types::Keep, self, other)
    }

    /// Returns [`Array::floor_divide`] and [`Array::remainder`].
    ///
    /// # Errors
    /// [`Error::Value`] when the shapes cannot be broadcast, and for complex64.
    pub fn divmod(&self, other: impl Operand) -> Result<(Array, Array)> {
        let other = &*other.beside(self)?;
        if self.dtype().promote(other.dtype()).is_complex() {
            bail!("divmod", "Complex type not supported. Take real(x), imag(x) or abs(x) first.");
        }
        Ok((self.floor_divide(other)?, self.remainder(other)?))
    }

    /// Returns true where `|self - other| <= atol + rtol * |other|`: bool. Infinities are close to
    /// themselves only. NaN is close to NaN if `equal_nan`, else to nothing.
    ///
    /// # Errors
    /// [`Error::Value`] when the shapes cannot be broadcast.
    pub fn isclose(
        &self,
        other: impl Operand,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<Array> {
        let other = &*other.beside(self)?;
        let dtype = self.dtype().promote(other.dtype()).to_inexact();
        let (a, b, _) = operands("isclose", self, other, dtype)?;
        let size = b.abs()?;
        let bound = size.multiply(size.like(rtol))?.add(size.like(atol))?;
        let near = a.subtract(&*b)?.abs()?.less_equal(&bound)?.logical_and(&b.isfinite()?)?;
        let code = if equal_nan { binary::EQUAL_NAN } else { binary::EQUAL };
        near.logical_or(&apply("isclose", code, Types::Compare, &a, &b)?)
    }

    /// Returns true if all elements are close by [`Array::isclose`]: a 0-d bool.
    ///
    /// # Errors
    /// [`Error::Value`] when the shapes cannot be broadcast.
    pub fn allclose(
        &self,
        other: impl Operand,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<Array> {
        self.isclose(other, rtol, atol, equal_nan)?.all(None)
    }

    /// Returns true if the shapes and all elements are equal, in the promoted dtype: a 0-d bool.
    /// With `equal_nan`, NaN equals NaN.
    ///
    /// # Errors
    /// None at present; shapes that differ give false.
    pub fn array_equal(&self, other: &Array, equal_nan: bool) -> Result<Array> {
        if self.shape() != other.shape() {
            return Ok(Array::scalar(false));
        }
        let code = if equal_nan { binary::EQUAL_NAN } else { binary::EQUAL };
        apply("array_equal", code, Types::Compare, self, other)?.all(None)
    }
}

attributes! {
    /// A function with a code of [`binary`].
    #[derive(Clone, Debug)]
    pub(crate) struct Binary {
        pub code: u32,
    }
}

/// A factor of a derivative. The factors 1 and -1 need no multiplication.
enum Factor {
    Zero,
    One,
    MinusOne,
    Of(Array),
    /// 1 where the bool is true, else 0.
    Where(Array),
}

/// `-a`. For bool it is `a` itself, because -1 is odd, as 1 is.
fn negated(a: &Array) -> Result<Array> {
    if a.dtype() == Dtype::Bool { Ok(a.clone()) } else { a.negative() }
}

impl Factor {
    fn times(self, a: &Array, conjugate: bool) -> Result<Option<Array>> {
        Ok(match self {
            Factor::Zero => None,
            Factor::One => Some(a.clone()),
            Factor::MinusOne => Some(negated(a)?),
            Factor::Of(f) => Some(a.multiply(&if conjugate { f.conjugate()? } else { f })?),
            Factor::Where(mask) => Some(where_(&mask, a, a.like(0.0))?),
        })
    }
}

impl Binary {
    /// Partial derivative with respect to operand `i`.
    fn partial(&self, i: usize, p: &[Array], y: &Array) -> Result<Factor> {
        use Factor::*;
        let (a, b) = (&p[0], &p[1]);
        let first = i == 0;
        Ok(match self.code {
            binary::ADD => One,
            binary::SUBTRACT if first => One,
            binary::SUBTRACT => MinusOne,
            binary::MULTIPLY => Of(p[1 - i].clone()),
            binary::DIVIDE if first => Of(b.reciprocal()?),
            binary::DIVIDE => Of(y.divide(b)?.negative()?),
            binary::REMAINDER if first => One,
            binary::REMAINDER => Of(negated(&a.floor_divide(b)?)?),
            binary::POWER if first => Of(b.multiply(&a.power(&b.subtract(b.like(1.0))?)?)?),
            binary::POWER => {
                // 0 ** b is constant for positive b.
                let grown = a.log()?.multiply(y)?;
                Of(where_(&a.equal(a.like(0.0))?, y.like(0.0), &grown)?)
            }
            binary::MAXIMUM if first => Where(a.greater(b)?),
            binary::MAXIMUM => Where(a.less_equal(b)?),
            binary::MINIMUM if first => Where(a.less(b)?),
            binary::MINIMUM => Where(a.greater_equal(b)?),
            binary::LOGADDEXP if first => Of(a.subtract(b)?.sigmoid()?),
            binary::LOGADDEXP => Of(b.subtract(a)?.sigmoid()?),
            binary::ARCTAN2 => {
                let square = a.square()?.add(&b.square()?)?;
                Of(if first { b.divide(&square)? } else { a.negative()?.divide(&square)? })
            }
            _ => Zero,
        })
    }
}

impl Rules for Binary {
    fn name(&self) -> &'static str {
        binary::NAMES[self.code as usize]
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.is_elementwise(op::BINARY, Some(self.code))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { family: family::BINARY, code: self.code as u8 })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.elementwise(exec, op::BINARY, &BinaryAttrs::new(self.code))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let mut out: Cotangents = smallvec![None, None];
        for i in 0..2 {
            if v.wanted[i] {
                out[i] = self.partial(i, v.primals, v.output)?.times(v.cotangent, true)?;
            }
        }
        Ok(out)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let mut parts: SmallVec<[Array; 2]> = SmallVec::new();
        for (i, tangent) in j.tangents.iter().enumerate() {
            if let Some(t) = tangent {
                parts.extend(self.partial(i, j.primals, j.output)?.times(t, false)?);
            }
        }
        match &parts[..] {
            [a, b] => a.add(b).map(Some),
            _ => Ok(parts.pop()),
        }
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::binary::candidates(self.code, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        batching::elementwise(self.clone(), v)
    }
}

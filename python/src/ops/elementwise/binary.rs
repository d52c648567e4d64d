//! Elementwise functions of two arrays, and comparisons of whole arrays.

use crate::array::PyArray;
use crate::convert::{ArrayArg, operand, operands, pair};
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Array;

/// The operands: as a pair, unless something else is said.
macro_rules! taken {
    ($a:ident, $b:ident) => {
        pair($a, $b)
    };
    ($a:ident, $b:ident, $how:ident) => {
        $how($a, $b)
    };
}

macro_rules! binary {
    ($($(#[doc = $doc:literal])* $name:ident = $f:expr $(, by $how:ident)?;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// The arguments are broadcast and promoted; numbers take the other's dtype.
        #[pyfunction]
        #[pyo3(signature = (a, b, stream=None))]
        fn $name(
            a: &Bound<'_, PyAny>,
            b: &Bound<'_, PyAny>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let (a, b) = taken!(a, b $(, $how)?)?;
            Ok(PyArray::new(on(stream, || $f(&a, &b))?))
        }
        )*

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)* divmod isclose allclose array_equal);
            Ok(())
        }
    };
}

binary! {
    /// a + b, elementwise.
    add = Array::add;
    /// a - b, elementwise.
    subtract = Array::subtract;
    /// a * b, elementwise.
    multiply = Array::multiply;
    /// a / b, elementwise; integers are divided as float32.
    divide = Array::divide;
    /// a / b rounded down, elementwise (towards zero for integers).
    floor_divide = Array::floor_divide;
    /// What is left of a after division by b; it has b's sign.
    remainder = Array::remainder;
    /// a to the power of b, elementwise.
    power = Array::power;
    /// The larger of a and b, elementwise; NaN where either is.
    maximum = Array::maximum;
    /// The smaller of a and b, elementwise; NaN where either is.
    minimum = Array::minimum;
    /// log(exp(a) + exp(b)), elementwise, without overflow.
    logaddexp = Array::logaddexp;
    /// a * log(b), elementwise, and 0 where a is 0, unless b is NaN.
    xlogy = Array::xlogy;
    /// The angle of the point (b, a), elementwise.
    arctan2 = Array::arctan2;
    /// a == b, elementwise.
    equal = Array::equal;
    /// a != b, elementwise.
    not_equal = Array::not_equal;
    /// a < b, elementwise.
    less = Array::less;
    /// a <= b, elementwise.
    less_equal = Array::less_equal;
    /// a > b, elementwise.
    greater = Array::greater;
    /// a >= b, elementwise.
    greater_equal = Array::greater_equal;
    /// Whether both are non-zero, elementwise.
    logical_and = Array::logical_and, by apart;
    /// Whether either is non-zero, elementwise.
    logical_or = Array::logical_or, by apart;
    /// Whether exactly one is non-zero, elementwise.
    logical_xor = Array::logical_xor, by apart;
    /// a & b, elementwise, for integers and bools.
    bitwise_and = Array::bitwise_and;
    /// a | b, elementwise, for integers and bools.
    bitwise_or = Array::bitwise_or;
    /// a ^ b, elementwise, for integers and bools.
    bitwise_xor = Array::bitwise_xor;
    /// a << b, elementwise, for integers.
    left_shift = Array::left_shift;
    /// a >> b, elementwise, for integers.
    right_shift = Array::right_shift;
}

/// Two operands, each by itself: what is asked is whether they are zero, so a number needs no
/// dtype that the other has.
fn apart(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Res<(Array, Array)> {
    Ok((operand(a, None)?, operand(b, None)?))
}

/// The rounded-down quotient and the remainder, elementwise, as a list of two arrays.
#[pyfunction]
#[pyo3(signature = (a, b, stream=None))]
fn divmod(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    stream: Option<StreamArg>,
) -> Res<Vec<PyArray>> {
    let (a, b) = operands(a, b)?;
    let (quotient, rest) = on(stream, || a.divmod(&b))?;
    Ok(vec![PyArray::new(quotient), PyArray::new(rest)])
}

/// Whether |a - b| <= atol + rtol * |b|, elementwise.
#[pyfunction]
#[pyo3(signature = (a, b, /, rtol=1e-5, atol=1e-8, *, equal_nan=false, stream=None))]
fn isclose(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (a, b) = operands(a, b)?;
    Ok(PyArray::new(on(stream, || a.isclose(&b, rtol, atol, equal_nan))?))
}

/// Whether `isclose` holds for all elements, as an array without dimensions.
#[pyfunction]
#[pyo3(signature = (a, b, /, rtol=1e-5, atol=1e-8, *, equal_nan=false, stream=None))]
fn allclose(
    a: ArrayArg,
    b: ArrayArg,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.allclose(&b.0, rtol, atol, equal_nan))?))
}

/// Whether the arrays have one shape and equal elements, as an array without dimensions.
#[pyfunction]
#[pyo3(signature = (a, b, equal_nan=false, stream=None))]
fn array_equal(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    equal_nan: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (a, b) = operands(a, b)?;
    Ok(PyArray::new(on(stream, || a.array_equal(&b, equal_nan))?))
}

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
    ($($(#[doc = $doc:literal])* $name:ident = $f:expr, $args:literal => $out:literal $(, by $how:ident)?;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.
        ///
        /// Args:
        ///     a (ArrayLike): Left operand.
        ///     b (ArrayLike): Right operand.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results in the shape that `a` and `b` are broadcast to.
        ///
        /// Raises:
        ///     ValueError: If the shapes cannot be broadcast.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(", $args, ")")]
        #[doc = concat!("    array(", $out, ")")]
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
    /// Adds two arrays elementwise.
    add = Array::add, "mx.array([1, 2]), 0.5" => "[1.5, 2.5], dtype=float32";
    /// Subtracts `b` from `a` elementwise.
    subtract = Array::subtract, "mx.array([5, 7]), mx.array([1, 2])" => "[4, 5], dtype=int32";
    /// Multiplies two arrays elementwise.
    multiply = Array::multiply, "mx.array([1, 2]), mx.array([3.0, 0.5])" => "[3, 1], dtype=float32";
    /// Divides `a` by `b` elementwise.
    ///
    /// Integers and bools are divided as float32; division by zero gives infinity or NaN.
    divide = Array::divide, "mx.array([1, 2]), 4" => "[0.25, 0.5], dtype=float32";
    /// Divides `a` by `b` elementwise and rounds the quotient down, in the promoted dtype.
    floor_divide = Array::floor_divide, "mx.array([7, -7]), 2" => "[3, -4], dtype=int32";
    /// Computes the remainder of dividing `a` by `b` elementwise.
    ///
    /// It has the sign of `b`, as Python's `%`. Complex numbers raise a ValueError.
    remainder = Array::remainder, "mx.array([7, -7]), 3" => "[1, 2], dtype=int32";
    /// Raises `a` to the power of `b` elementwise, in the promoted dtype.
    power = Array::power, "mx.array([2, 3]), 2" => "[4, 9], dtype=int32";
    /// Returns the larger of `a` and `b` elementwise; NaN where either is NaN.
    maximum = Array::maximum, "mx.array([1, 5]), 3" => "[3, 5], dtype=int32";
    /// Returns the smaller of `a` and `b` elementwise; NaN where either is NaN.
    minimum = Array::minimum, "mx.array([1, 5]), 3" => "[1, 3], dtype=int32";
    /// Computes `log(exp(a) + exp(b))` elementwise, without overflow.
    ///
    /// Integers and bools give float32.
    logaddexp = Array::logaddexp, "mx.array([0.0, 100.0]), 100" => "[100, 100.693], dtype=float32";
    /// Computes `a * log(b)` elementwise: 0 where `a` is 0, unless `b` is NaN.
    ///
    /// Integers and bools give float32; complex numbers raise a ValueError.
    xlogy = Array::xlogy, "mx.array([0.0, 1.0]), mx.array([0.0, mx.e])" => "[0, 1], dtype=float32";
    /// Computes the angle of the point (`b`, `a`) elementwise, from -pi to pi.
    ///
    /// Integers and bools give float32; complex numbers raise a ValueError.
    arctan2 = Array::arctan2, "mx.array([1.0, -1.0]), 1" => "[0.785398, -0.785398], dtype=float32";
    /// Tests `a == b` elementwise; bools. NaN equals nothing.
    equal = Array::equal, "mx.array([1, 2, 3]), 2" => "[False, True, False], dtype=bool";
    /// Tests `a != b` elementwise; bools. NaN differs from everything.
    not_equal = Array::not_equal, "mx.array([1, 2, 3]), 2" => "[True, False, True], dtype=bool";
    /// Tests `a < b` elementwise; bools, False where either is NaN.
    less = Array::less, "mx.array([1, 2, 3]), 2" => "[True, False, False], dtype=bool";
    /// Tests `a <= b` elementwise; bools, False where either is NaN.
    less_equal = Array::less_equal, "mx.array([1, 2, 3]), 2" => "[True, True, False], dtype=bool";
    /// Tests `a > b` elementwise; bools, False where either is NaN.
    greater = Array::greater, "mx.array([1, 2, 3]), 2" => "[False, False, True], dtype=bool";
    /// Tests `a >= b` elementwise; bools, False where either is NaN.
    greater_equal = Array::greater_equal, "mx.array([1, 2, 3]), 2" => "[False, True, True], dtype=bool";
    /// Tests where both `a` and `b` are non-zero; bools.
    logical_and = Array::logical_and, "mx.array([0, 1, 2]), True" => "[False, True, True], dtype=bool", by apart;
    /// Tests where `a` or `b` or both are non-zero; bools.
    logical_or = Array::logical_or, "mx.array([0, 1, 2]), False" => "[False, True, True], dtype=bool", by apart;
    /// Tests where exactly one of `a` and `b` is non-zero; bools.
    logical_xor = Array::logical_xor, "mx.array([0, 1, 2]), True" => "[True, False, False], dtype=bool", by apart;
    /// Computes `a & b` elementwise, of integers and bools. Other dtypes raise a RuntimeError.
    bitwise_and = Array::bitwise_and, "mx.array([5, 6]), 4" => "[4, 4], dtype=int32";
    /// Computes `a | b` elementwise, of integers and bools. Other dtypes raise a RuntimeError.
    bitwise_or = Array::bitwise_or, "mx.array([5, 6]), 8" => "[13, 14], dtype=int32";
    /// Computes `a ^ b` elementwise, of integers and bools. Other dtypes raise a RuntimeError.
    bitwise_xor = Array::bitwise_xor, "mx.array([5, 6]), 4" => "[1, 2], dtype=int32";
    /// Shifts the bits of `a` to the left by `b` places elementwise, of integers.
    ///
    /// Bools count as uint8. Other dtypes raise a RuntimeError.
    left_shift = Array::left_shift, "mx.array([1, 5]), 2" => "[4, 20], dtype=int32";
    /// Shifts the bits of `a` to the right by `b` places elementwise, of integers.
    ///
    /// Bools count as uint8. Other dtypes raise a RuntimeError.
    right_shift = Array::right_shift, "mx.array([8, 5]), 1" => "[4, 2], dtype=int32";
}

/// Two operands, each by itself: what is asked is whether they are zero, so a number needs no
/// dtype that the other has.
fn apart(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Res<(Array, Array)> {
    Ok((operand(a, None)?, operand(b, None)?))
}

/// Divides `a` by `b` elementwise, with remainder.
///
/// Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.
///
/// Args:
///     a (ArrayLike): Dividend.
///     b (ArrayLike): Divisor.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     list[array]: The quotient rounded down, as `floor_divide`, and the remainder, as
///         `remainder`.
///
/// Raises:
///     ValueError: If the shapes cannot be broadcast, or the elements are complex.
///
/// Example:
///     >>> mx.divmod(mx.array([7, -7]), 3)
///     [array([2, -3], dtype=int32), array([1, 2], dtype=int32)]
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

/// Tests where `abs(a - b) <= atol + rtol * abs(b)`, elementwise.
///
/// Infinities of one sign are close to each other. Shapes are broadcast.
///
/// Args:
///     a (ArrayLike): First operand.
///     b (ArrayLike): Second operand, the one that the relative tolerance refers to.
///     rtol (float): Relative tolerance.
///     atol (float): Absolute tolerance.
///     equal_nan (bool): Makes NaN close to NaN.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Bools in the broadcast shape.
///
/// Raises:
///     ValueError: If the shapes cannot be broadcast.
///
/// Example:
///     >>> mx.isclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.1]))
///     array([True, False], dtype=bool)
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

/// Tests whether all elements are close, as `isclose` defines it.
///
/// Args:
///     a (array): First operand.
///     b (array): Second operand, the one that the relative tolerance refers to.
///     rtol (float): Relative tolerance.
///     atol (float): Absolute tolerance.
///     equal_nan (bool): Makes NaN close to NaN.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: One bool, without dimensions.
///
/// Raises:
///     ValueError: If the shapes cannot be broadcast.
///
/// Example:
///     >>> mx.allclose(mx.array([1.0]), mx.array([1.0 + 1e-7]))
///     array(True, dtype=bool)
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

/// Tests whether two arrays have the same shape and equal elements.
///
/// The dtypes may differ: elements are compared in the promoted dtype.
///
/// Args:
///     a (ArrayLike): First operand.
///     b (ArrayLike): Second operand.
///     equal_nan (bool): Makes NaN equal to NaN.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: One bool, without dimensions; False for different shapes.
///
/// Example:
///     >>> mx.array_equal(mx.array([1, 2]), mx.array([1, 2]))
///     array(True, dtype=bool)
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

//! Elementwise functions of one array.

use crate::array::PyArray;
use crate::convert::{ArrayArg, exact, operand};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::{Array, Result};

#[inline]
pub(in crate::ops) fn apply(
    a: &Bound<'_, PyAny>,
    stream: Option<StreamArg>,
    f: impl FnOnce(&Array) -> Result<Array>,
) -> Res<PyArray> {
    let made = match exact(a) {
        // SAFETY: building a node runs no Python code and rebinds no array.
        Some(a) => on(stream, || f(unsafe { a.get().borrow(a.py()) })),
        None => {
            let a = operand(a, None)?;
            on(stream, || f(&a))
        }
    };
    Ok(PyArray::new(made?))
}

macro_rules! unary {
    (
        both { $($(#[doc = $bdoc:literal])* $both:ident = $bf:expr;)* }
        functions { $($(#[doc = $doc:literal])* $name:ident = $f:expr;)* }
        of_arrays { $($(#[doc = $adoc:literal])* $array:ident = $af:expr;)* }
    ) => {
        $(
        $(#[doc = $adoc])*
        ///
        /// Args:
        ///     a (ArrayLike): Array or number of any shape.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results in the shape of `a`.
        #[pyfunction]
        #[pyo3(signature = (a, /, *, stream=None))]
        fn $array(a: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || ($af)(&a.0))?))
        }
        )*
        $(
        $(#[doc = $bdoc])*
        ///
        /// Args:
        ///     a (ArrayLike): Array or number of any shape.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results in the shape of `a`.
        #[pyfunction]
        #[pyo3(signature = (a, /, stream=None))]
        fn $both(a: &Bound<'_, PyAny>, stream: Option<StreamArg>) -> Res<PyArray> {
            apply(a, stream, $bf)
        }
        )*
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (ArrayLike): Array or number of any shape.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results in the shape of `a`.
        #[pyfunction]
        #[pyo3(signature = (a, /, stream=None))]
        fn $name(a: &Bound<'_, PyAny>, stream: Option<StreamArg>) -> Res<PyArray> {
            apply(a, stream, $f)
        }
        )*

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $bdoc])*
            ///
            /// Args:
            ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            ///         else the default device.
            ///
            /// Returns:
            ///     array: Results in the shape of the array.
            #[pyo3(signature = (*, stream=None))]
            fn $both(slf: &Bound<'_, Self>, stream: Option<StreamArg>) -> Res<PyArray> {
                apply(slf, stream, $bf)
            }
            )*
        }

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($both)* $($name)* $($array)* round nan_to_num);
            Ok(())
        }
    };
}

unary! {
    both {
        /// Computes the absolute value of each element.
        ///
        /// Complex numbers give their magnitude in float32. The smallest signed integer stays itself.
        abs = Array::abs;
        /// Computes the square of each element, in the dtype of `a`.
        square = Array::square;
        /// Computes the square root of each element.
        ///
        /// Negative real numbers give NaN. Integers and bools give float32.
        sqrt = Array::sqrt;
        /// Computes the reciprocal of the square root of each element.
        ///
        /// Zero gives infinity and negative numbers give NaN. Integers and bools give float32.
        rsqrt = Array::rsqrt;
        /// Computes one over each element.
        ///
        /// Zero gives infinity. Integers and bools give float32.
        reciprocal = Array::reciprocal;
        /// Computes e to the power of each element.
        ///
        /// Integers and bools give float32.
        exp = Array::exp;
        /// Computes the natural logarithm of each element.
        ///
        /// Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        /// float32.
        log = Array::log;
        /// Computes the logarithm to base 2 of each element.
        ///
        /// Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        /// float32.
        log2 = Array::log2;
        /// Computes the logarithm to base 10 of each element.
        ///
        /// Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        /// float32.
        log10 = Array::log10;
        /// Computes the natural logarithm of one plus each element.
        ///
        /// It is accurate near zero, where `log(1 + a)` loses digits. Integers and bools give float32.
        log1p = Array::log1p;
        /// Computes the sine of each element, an angle in radians.
        ///
        /// Integers and bools give float32.
        sin = Array::sin;
        /// Computes the cosine of each element, an angle in radians.
        ///
        /// Integers and bools give float32.
        cos = Array::cos;
        /// Computes the complex conjugate of each element. Real arrays stay as they are.
        conj = Array::conjugate;
    }
    functions {
        /// Computes the complex conjugate of each element. Real arrays stay as they are.
        ///
        /// Another name of `conj`.
        conjugate = Array::conjugate;
        /// Computes the sign of each element: -1, 0 or 1, in the dtype of `a`.
        ///
        /// A complex number is divided by its magnitude; 0 stays 0.
        sign = Array::sign;
        /// Computes the negative of each element. Bools raise a ValueError: see `logical_not`.
        negative = Array::negative;
        /// Rounds each element down to an integer, in the dtype of `a`.
        ///
        /// Complex numbers raise a ValueError.
        floor = Array::floor;
        /// Rounds each element up to an integer, in the dtype of `a`.
        ///
        /// Complex numbers raise a ValueError.
        ceil = Array::ceil;
        /// Tests where elements are zero: bools, True for 0 and False.
        logical_not = Array::logical_not;
        /// Inverts the bits of each integer; of bools it is the logical not.
        ///
        /// Other dtypes raise a ValueError.
        bitwise_invert = Array::bitwise_invert;
        /// Computes e to the power of each element, minus one.
        ///
        /// It is accurate near zero, where `exp(a) - 1` loses digits. Integers and bools give float32;
        /// complex numbers raise a ValueError.
        expm1 = Array::expm1;
        /// Computes the error function of each element.
        ///
        /// Integers and bools give float32; complex numbers raise a ValueError.
        erf = Array::erf;
        /// Computes the inverse of the error function at each element, which lies between -1 and 1.
        ///
        /// Integers and bools give float32; complex numbers raise a ValueError.
        erfinv = Array::erfinv;
        /// Computes the tangent of each element, an angle in radians.
        ///
        /// Integers and bools give float32.
        tan = Array::tan;
        /// Computes the inverse sine of each element, in radians.
        ///
        /// Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.
        arcsin = Array::arcsin;
        /// Computes the inverse cosine of each element, in radians.
        ///
        /// Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.
        arccos = Array::arccos;
        /// Computes the inverse tangent of each element, in radians.
        ///
        /// Integers and bools give float32. See `arctan2` for the angle of a point.
        arctan = Array::arctan;
        /// Computes the hyperbolic sine of each element.
        ///
        /// Integers and bools give float32.
        sinh = Array::sinh;
        /// Computes the hyperbolic cosine of each element.
        ///
        /// Integers and bools give float32.
        cosh = Array::cosh;
        /// Computes the hyperbolic tangent of each element.
        ///
        /// Integers and bools give float32.
        tanh = Array::tanh;
        /// Computes the inverse hyperbolic sine of each element.
        ///
        /// Integers and bools give float32.
        arcsinh = Array::arcsinh;
        /// Computes the inverse hyperbolic cosine of each element.
        ///
        /// Real numbers below 1 give NaN. Integers and bools give float32.
        arccosh = Array::arccosh;
        /// Computes the inverse hyperbolic tangent of each element.
        ///
        /// Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.
        arctanh = Array::arctanh;
        /// Converts angles from radians to degrees.
        ///
        /// Integers and bools give float32.
        degrees = Array::degrees;
        /// Converts angles from degrees to radians.
        ///
        /// Integers and bools give float32.
        radians = Array::radians;
        /// Computes the logistic function `1 / (1 + exp(-a))` of each element.
        ///
        /// Integers and bools give float32; complex numbers raise a ValueError.
        sigmoid = Array::sigmoid;
        /// Computes `log(1 + exp(a))`, a smooth maximum of each element and zero, without overflow.
        ///
        /// Integers and bools give float32.
        softplus = Array::softplus;
        /// Tests which elements are NaN: bools. Of complex numbers either part counts.
        isnan = Array::isnan;
        /// Tests which elements are infinite: bools. Of complex numbers either part counts.
        isinf = Array::isinf;
        /// Tests which elements are neither infinite nor NaN: bools.
        isfinite = Array::isfinite;
        /// Tests which elements are positive infinity: bools.
        isposinf = Array::isposinf;
        /// Tests which elements are negative infinity: bools.
        isneginf = Array::isneginf;
        /// Returns the real part of each element.
        ///
        /// Complex numbers give float32; other arrays stay as they are.
        real = Array::real;
        /// Returns the imaginary part of each element.
        ///
        /// Complex numbers give float32; of other arrays it is zero, in their dtype.
        imag = Array::imag;
    }
    of_arrays {
        /// Rounds each element towards zero to an integer, in the dtype of `a`.
        ///
        /// Complex numbers raise a ValueError.
        trunc = Array::trunc;
        /// Returns the array itself: the unary plus.
        positive = Array::positive;
        /// Returns the array as a constant to transforms.
        ///
        /// Derivatives with respect to what it was computed from are zero.
        stop_gradient = |a: &Array| Ok::<_, ultramarine::Error>(a.stop_gradient());
    }
}

/// Rounds each element to a number of decimals, halves to even.
///
/// Args:
///     a (ArrayLike): Array or number of any shape.
///     decimals (int): Digits behind the decimal point; negative ones round to tens, hundreds
///         and so on.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Rounded elements in the dtype of `a`.
///
/// Raises:
///     ValueError: If `decimals` does not fit into 32 bits.
///
/// Example:
///     >>> mx.round(mx.array([0.5, 1.5, 2.345]), 1)
///     array([0.5, 1.5, 2.3], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, decimals=0, stream=None))]
fn round(a: &Bound<'_, PyAny>, decimals: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    let decimals = i32::try_from(decimals)
        .map_err(|_| value(format!("[round] There are no {decimals} decimals.")))?;
    apply(a, stream, |a| a.round(decimals))
}

/// Replaces NaN and infinities by numbers. Integers and bools stay as they are.
///
/// Args:
///     a (ArrayLike): Array or number of any shape.
///     nan (float): Replaces NaN.
///     posinf (float | None): Replaces positive infinity; by default the largest finite number
///         of the dtype.
///     neginf (float | None): Replaces negative infinity; by default the lowest finite number
///         of the dtype.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Elements in the dtype of `a`.
///
/// Raises:
///     ValueError: If the elements are complex.
///
/// Example:
///     >>> mx.nan_to_num(mx.array([1.0, mx.nan]))
///     array([1, 0], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, nan=0.0, posinf=None, neginf=None, *, stream=None))]
fn nan_to_num(
    a: &Bound<'_, PyAny>,
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    apply(a, stream, |a| a.nan_to_num(nan, posinf, neginf))
}

#[pymethods]
impl PyArray {
    /// Rounds each element to a number of decimals, halves to even; see the function `round`.
    ///
    /// Args:
    ///     decimals (int): Digits behind the decimal point; negative ones round to tens, hundreds
    ///         and so on.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Rounded elements in the dtype of the array.
    #[pyo3(signature = (decimals=0, *, stream=None))]
    fn round(slf: &Bound<'_, Self>, decimals: isize, stream: Option<StreamArg>) -> Res<PyArray> {
        round(slf, decimals, stream)
    }

    /// array: Real part of each element: float32 for complex numbers, else the array itself.
    #[getter]
    fn real(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::real)
    }

    /// array: Imaginary part of each element: float32 for complex numbers, else zeros.
    #[getter]
    fn imag(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::imag)
    }

    fn __neg__(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::negative)
    }

    fn __pos__(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::positive)
    }

    fn __abs__(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::abs)
    }

    fn __invert__(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::bitwise_invert)
    }
}

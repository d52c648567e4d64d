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
        both { $($(#[doc = $bdoc:literal])* $both:ident = $bf:expr, $barg:literal => $bout:literal;)* }
        functions { $($(#[doc = $doc:literal])* $name:ident = $f:expr, $arg:literal => $out:literal;)* }
        of_arrays { $($(#[doc = $adoc:literal])* $array:ident = $af:expr, $aarg:literal => $aout:literal;)* }
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
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($array), "(mx.array(", $aarg, "))")]
        #[doc = concat!("    array(", $aout, ")")]
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
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($both), "(mx.array(", $barg, "))")]
        #[doc = concat!("    array(", $bout, ")")]
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
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.array(", $arg, "))")]
        #[doc = concat!("    array(", $out, ")")]
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
            ///
            /// Example:
            #[doc = concat!("    >>> mx.array(", $barg, ").", stringify!($both), "()")]
            #[doc = concat!("    array(", $bout, ")")]
            #[pyo3(signature = (*, stream=None))]
            fn $both(slf: &Bound<'_, Self>, stream: Option<StreamArg>) -> Res<PyArray> {
                apply(slf, stream, $bf)
            }
            )*
        }

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($both)* $($name)* $($array)* round nan_to_num stop_gradient);
            Ok(())
        }
    };
}

unary! {
    both {
        /// Computes the absolute value of each element.
        ///
        /// Complex numbers give their magnitude in float32. The smallest signed integer stays itself.
        abs = Array::abs, "[-1.5, 2.0]" => "[1.5, 2], dtype=float32";
        /// Computes the square of each element, in the dtype of `a`.
        square = Array::square, "[1, -2, 3]" => "[1, 4, 9], dtype=int32";
        /// Computes the square root of each element.
        ///
        /// Negative real numbers give NaN. Integers and bools give float32.
        sqrt = Array::sqrt, "[0.25, 4.0]" => "[0.5, 2], dtype=float32";
        /// Computes the reciprocal of the square root of each element.
        ///
        /// Zero gives infinity and negative numbers give NaN. Integers and bools give float32.
        rsqrt = Array::rsqrt, "[0.25, 4.0]" => "[2, 0.5], dtype=float32";
        /// Computes one over each element.
        ///
        /// Zero gives infinity. Integers and bools give float32.
        reciprocal = Array::reciprocal, "[0.5, -4.0]" => "[2, -0.25], dtype=float32";
        /// Computes e to the power of each element.
        ///
        /// Integers and bools give float32.
        exp = Array::exp, "[0.0, 1.0]" => "[1, 2.71828], dtype=float32";
        /// Computes the natural logarithm of each element.
        ///
        /// Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        /// float32.
        log = Array::log, "[1.0, mx.e]" => "[0, 1], dtype=float32";
        /// Computes the logarithm to base 2 of each element.
        ///
        /// Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        /// float32.
        log2 = Array::log2, "[0.5, 8.0]" => "[-1, 3], dtype=float32";
        /// Computes the logarithm to base 10 of each element.
        ///
        /// Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        /// float32.
        log10 = Array::log10, "[1.0, 100.0]" => "[0, 2], dtype=float32";
        /// Computes the natural logarithm of one plus each element.
        ///
        /// It is accurate near zero, where `log(1 + a)` loses digits. Integers and bools give float32.
        log1p = Array::log1p, "[0.0, 1e-10]" => "[0, 1e-10], dtype=float32";
        /// Computes the sine of each element, an angle in radians.
        ///
        /// Integers and bools give float32.
        sin = Array::sin, "[0.0, mx.pi / 2]" => "[0, 1], dtype=float32";
        /// Computes the cosine of each element, an angle in radians.
        ///
        /// Integers and bools give float32.
        cos = Array::cos, "[0.0, mx.pi]" => "[1, -1], dtype=float32";
        /// Computes the complex conjugate of each element. Real arrays stay as they are.
        conj = Array::conjugate, "[1 + 2j, 3.0]" => "[1-2j, 3+-0j], dtype=complex64";
    }
    functions {
        /// Computes the complex conjugate of each element. Real arrays stay as they are.
        ///
        /// Another name of `conj`.
        conjugate = Array::conjugate, "[1 + 2j, 3.0]" => "[1-2j, 3+-0j], dtype=complex64";
        /// Computes the sign of each element: -1, 0 or 1, in the dtype of `a`.
        ///
        /// A complex number is divided by its magnitude; 0 stays 0.
        sign = Array::sign, "[-2.5, 0.0, 3.0]" => "[-1, 0, 1], dtype=float32";
        /// Computes the negative of each element. Bools raise a ValueError: see `logical_not`.
        negative = Array::negative, "[1, -2]" => "[-1, 2], dtype=int32";
        /// Rounds each element down to an integer, in the dtype of `a`.
        ///
        /// Complex numbers raise a ValueError.
        floor = Array::floor, "[-1.5, 1.5]" => "[-2, 1], dtype=float32";
        /// Rounds each element up to an integer, in the dtype of `a`.
        ///
        /// Complex numbers raise a ValueError.
        ceil = Array::ceil, "[-1.5, 1.5]" => "[-1, 2], dtype=float32";
        /// Tests where elements are zero: bools, True for 0 and False.
        logical_not = Array::logical_not, "[0, 1, 2]" => "[True, False, False], dtype=bool";
        /// Inverts the bits of each integer; of bools it is the logical not.
        ///
        /// Other dtypes raise a ValueError.
        bitwise_invert = Array::bitwise_invert, "[0, 5]" => "[-1, -6], dtype=int32";
        /// Computes e to the power of each element, minus one.
        ///
        /// It is accurate near zero, where `exp(a) - 1` loses digits. Integers and bools give float32;
        /// complex numbers raise a ValueError.
        expm1 = Array::expm1, "[0.0, 1e-10]" => "[0, 1e-10], dtype=float32";
        /// Computes the error function of each element.
        ///
        /// Integers and bools give float32; complex numbers raise a ValueError.
        erf = Array::erf, "[0.0, 0.5]" => "[0, 0.5205], dtype=float32";
        /// Computes the inverse of the error function at each element, which lies between -1 and 1.
        ///
        /// Integers and bools give float32; complex numbers raise a ValueError.
        erfinv = Array::erfinv, "[0.0, 0.5]" => "[0, 0.476936], dtype=float32";
        /// Computes the tangent of each element, an angle in radians.
        ///
        /// Integers and bools give float32.
        tan = Array::tan, "[0.0, 1.0]" => "[0, 1.55741], dtype=float32";
        /// Computes the inverse sine of each element, in radians.
        ///
        /// Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.
        arcsin = Array::arcsin, "[0.0, 1.0]" => "[0, 1.5708], dtype=float32";
        /// Computes the inverse cosine of each element, in radians.
        ///
        /// Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.
        arccos = Array::arccos, "[1.0, 0.0]" => "[0, 1.5708], dtype=float32";
        /// Computes the inverse tangent of each element, in radians.
        ///
        /// Integers and bools give float32. See `arctan2` for the angle of a point.
        arctan = Array::arctan, "[0.0, 1.0]" => "[0, 0.785398], dtype=float32";
        /// Computes the hyperbolic sine of each element.
        ///
        /// Integers and bools give float32.
        sinh = Array::sinh, "[0.0, 1.0]" => "[0, 1.1752], dtype=float32";
        /// Computes the hyperbolic cosine of each element.
        ///
        /// Integers and bools give float32.
        cosh = Array::cosh, "[0.0, 1.0]" => "[1, 1.54308], dtype=float32";
        /// Computes the hyperbolic tangent of each element.
        ///
        /// Integers and bools give float32.
        tanh = Array::tanh, "[0.0, 1.0]" => "[0, 0.761594], dtype=float32";
        /// Computes the inverse hyperbolic sine of each element.
        ///
        /// Integers and bools give float32.
        arcsinh = Array::arcsinh, "[0.0, 1.0]" => "[0, 0.881374], dtype=float32";
        /// Computes the inverse hyperbolic cosine of each element.
        ///
        /// Real numbers below 1 give NaN. Integers and bools give float32.
        arccosh = Array::arccosh, "[1.0, 2.0]" => "[0, 1.31696], dtype=float32";
        /// Computes the inverse hyperbolic tangent of each element.
        ///
        /// Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.
        arctanh = Array::arctanh, "[0.0, 0.5]" => "[0, 0.549306], dtype=float32";
        /// Converts angles from radians to degrees.
        ///
        /// Integers and bools give float32.
        degrees = Array::degrees, "[0.0, mx.pi]" => "[0, 180], dtype=float32";
        /// Converts angles from degrees to radians.
        ///
        /// Integers and bools give float32.
        radians = Array::radians, "[0.0, 180.0]" => "[0, 3.14159], dtype=float32";
        /// Computes the logistic function `1 / (1 + exp(-a))` of each element.
        ///
        /// Integers and bools give float32; complex numbers raise a ValueError.
        sigmoid = Array::sigmoid, "[0.0, 2.0]" => "[0.5, 0.880797], dtype=float32";
        /// Computes `log(1 + exp(a))`, a smooth maximum of each element and zero, without overflow.
        ///
        /// Integers and bools give float32.
        softplus = Array::softplus, "[0.0, 100.0]" => "[0.693147, 100], dtype=float32";
        /// Tests which elements are NaN: bools. Of complex numbers either part counts.
        isnan = Array::isnan, "[1.0, mx.nan, mx.inf]" => "[False, True, False], dtype=bool";
        /// Tests which elements are infinite: bools. Of complex numbers either part counts.
        isinf = Array::isinf, "[1.0, mx.nan, -mx.inf]" => "[False, False, True], dtype=bool";
        /// Tests which elements are neither infinite nor NaN: bools.
        isfinite = Array::isfinite, "[1.0, mx.nan, mx.inf]" => "[True, False, False], dtype=bool";
        /// Tests which elements are positive infinity: bools.
        isposinf = Array::isposinf, "[mx.inf, -mx.inf]" => "[True, False], dtype=bool";
        /// Tests which elements are negative infinity: bools.
        isneginf = Array::isneginf, "[mx.inf, -mx.inf]" => "[False, True], dtype=bool";
        /// Returns the real part of each element.
        ///
        /// Complex numbers give float32; other arrays stay as they are.
        real = Array::real, "[1 + 2j, 3.0]" => "[1, 3], dtype=float32";
        /// Returns the imaginary part of each element.
        ///
        /// Complex numbers give float32; of other arrays it is zero, in their dtype.
        imag = Array::imag, "[1 + 2j, 3.0]" => "[2, 0], dtype=float32";
    }
    of_arrays {
        /// Rounds each element towards zero to an integer, in the dtype of `a`.
        ///
        /// Complex numbers raise a ValueError.
        trunc = Array::trunc, "[-1.5, 1.5]" => "[-1, 1], dtype=float32";
        /// Returns the array itself: the unary plus.
        positive = Array::positive, "[1, -2]" => "[1, -2], dtype=int32";
    }
}

/// Returns the array as a constant to transforms.
///
/// Derivatives with respect to what it was computed from are zero.
///
/// Args:
///     a (ArrayLike): Array or number of any shape.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: The elements of `a`.
///
/// Example:
///     >>> mx.grad(lambda x: x * mx.stop_gradient(x))(mx.array(3.0))
///     array(3, dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, *, stream=None))]
fn stop_gradient(a: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || Ok::<_, ultramarine::Error>(a.0.stop_gradient()))?))
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
    let decimals = i32::try_from(decimals).map_err(|_| {
        value(format!("[round] Cannot round to {decimals} decimals. Pass a number of 32 bits."))
    })?;
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
    ///
    /// Example:
    ///     >>> mx.array([0.5, 1.5, 2.34]).round(1)
    ///     array([0.5, 1.5, 2.3], dtype=float32)
    #[pyo3(signature = (decimals=0, *, stream=None))]
    fn round(slf: &Bound<'_, Self>, decimals: isize, stream: Option<StreamArg>) -> Res<PyArray> {
        round(slf, decimals, stream)
    }

    /// array: Real part of each element: float32 for complex numbers, else the array itself.
    ///
    /// Example:
    ///     >>> mx.array([1 + 2j]).real
    ///     array([1], dtype=float32)
    #[getter]
    fn real(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::real)
    }

    /// array: Imaginary part of each element: float32 for complex numbers, else zeros.
    ///
    /// Example:
    ///     >>> mx.array([1 + 2j]).imag
    ///     array([2], dtype=float32)
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

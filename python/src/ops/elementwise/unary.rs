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
        #[pyfunction]
        #[pyo3(signature = (a, /, *, stream=None))]
        fn $array(a: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || ($af)(&a.0))?))
        }
        )*
        $(
        $(#[doc = $bdoc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, stream=None))]
        fn $both(a: &Bound<'_, PyAny>, stream: Option<StreamArg>) -> Res<PyArray> {
            apply(a, stream, $bf)
        }
        )*
        $(
        $(#[doc = $doc])*
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
        /// The absolute value of each element.
        abs = Array::abs;
        /// The square of each element.
        square = Array::square;
        /// The square root of each element.
        sqrt = Array::sqrt;
        /// One over the square root of each element.
        rsqrt = Array::rsqrt;
        /// One over each element.
        reciprocal = Array::reciprocal;
        /// e to the power of each element.
        exp = Array::exp;
        /// The natural logarithm of each element.
        log = Array::log;
        /// The logarithm to base 2 of each element.
        log2 = Array::log2;
        /// The logarithm to base 10 of each element.
        log10 = Array::log10;
        /// The logarithm of one plus each element, precise near zero.
        log1p = Array::log1p;
        /// The sine of each element.
        sin = Array::sin;
        /// The cosine of each element.
        cos = Array::cos;
        /// The complex conjugate of each element.
        conj = Array::conjugate;
    }
    functions {
        /// The complex conjugate of each element.
        conjugate = Array::conjugate;
        /// The sign of each element: -1, 0 or 1.
        sign = Array::sign;
        /// The negative of each element.
        negative = Array::negative;
        /// The largest integer not above each element.
        floor = Array::floor;
        /// The smallest integer not below each element.
        ceil = Array::ceil;
        /// Whether each element is zero.
        logical_not = Array::logical_not;
        /// Each element with its bits inverted; the logical not of bools.
        bitwise_invert = Array::bitwise_invert;
        /// e to the power of each element, less one, precise near zero.
        expm1 = Array::expm1;
        /// The error function of each element.
        erf = Array::erf;
        /// The inverse of the error function at each element.
        erfinv = Array::erfinv;
        /// The tangent of each element.
        tan = Array::tan;
        /// The inverse sine of each element.
        arcsin = Array::arcsin;
        /// The inverse cosine of each element.
        arccos = Array::arccos;
        /// The inverse tangent of each element.
        arctan = Array::arctan;
        /// The hyperbolic sine of each element.
        sinh = Array::sinh;
        /// The hyperbolic cosine of each element.
        cosh = Array::cosh;
        /// The hyperbolic tangent of each element.
        tanh = Array::tanh;
        /// The inverse hyperbolic sine of each element.
        arcsinh = Array::arcsinh;
        /// The inverse hyperbolic cosine of each element.
        arccosh = Array::arccosh;
        /// The inverse hyperbolic tangent of each element.
        arctanh = Array::arctanh;
        /// Radians as degrees.
        degrees = Array::degrees;
        /// Degrees as radians.
        radians = Array::radians;
        /// The logistic function of each element: 1 / (1 + exp(-a)).
        sigmoid = Array::sigmoid;
        /// Whether each element is not a number.
        isnan = Array::isnan;
        /// Whether each element is infinite.
        isinf = Array::isinf;
        /// Whether each element is neither infinite nor NaN.
        isfinite = Array::isfinite;
        /// Whether each element is positive infinity.
        isposinf = Array::isposinf;
        /// Whether each element is negative infinity.
        isneginf = Array::isneginf;
        /// The real part of each element.
        real = Array::real;
        /// The imaginary part of each element.
        imag = Array::imag;
    }
    of_arrays {
        /// Each element rounded towards zero.
        trunc = Array::trunc;
        /// The array itself.
        positive = Array::positive;
        /// The array, as a constant to transforms: no gradient flows through it.
        stop_gradient = |a: &Array| Ok::<_, ultramarine::Error>(a.stop_gradient());
    }
}

/// Each element rounded to `decimals` digits behind the point, halves to even.
#[pyfunction]
#[pyo3(signature = (a, /, decimals=0, stream=None))]
fn round(a: &Bound<'_, PyAny>, decimals: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    let decimals = i32::try_from(decimals)
        .map_err(|_| value(format!("[round] There are no {decimals} decimals.")))?;
    apply(a, stream, |a| a.round(decimals))
}

/// The array with NaN and infinities replaced: by `nan`, `posinf` and `neginf`, the
/// latter two by default the largest and lowest finite numbers.
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
    /// Each element rounded to `decimals` digits behind the point, halves to even.
    #[pyo3(signature = (decimals=0, *, stream=None))]
    fn round(slf: &Bound<'_, Self>, decimals: isize, stream: Option<StreamArg>) -> Res<PyArray> {
        round(slf, decimals, stream)
    }

    /// The real part of each element.
    #[getter]
    fn real(slf: &Bound<'_, Self>) -> Res<PyArray> {
        apply(slf, None, Array::real)
    }

    /// The imaginary part of each element.
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

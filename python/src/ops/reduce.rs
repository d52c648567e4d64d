//! Reductions over axes.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, axes};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

/// Functions and methods `name(axis=None, keepdims=False)`; `$axis` is the type of `axis`
/// and the function `$as` makes what the core takes of it.
macro_rules! reductions {
    ($register:ident, $axis:ty, $as:expr; $($(#[doc = $doc:literal])* $name:ident;)*) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
        fn $name(
            a: ArrayArg,
            axis: Option<$axis>,
            keepdims: bool,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$name($as(&axis), keepdims))?))
        }
        )*

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $doc])*
            #[pyo3(signature = (axis=None, keepdims=false, *, stream=None))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<$axis>,
                keepdims: bool,
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                $name(ArrayArg(self.get(py)), axis, keepdims, stream)
            }
            )*
        }

        pub fn $register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)*);
            Ok(())
        }
    };
}

pub(super) use reductions;

reductions! {
    register_reductions, Ints, axes;
    /// Whether all elements are non-zero, over all axes or the given ones.
    all;
    /// Whether any element is non-zero, over all axes or the given ones.
    any;
    /// The sum over all axes or the given ones.
    sum;
    /// The product over all axes or the given ones.
    prod;
    /// The smallest element over all axes or the given ones; NaN if there is one.
    min;
    /// The largest element over all axes or the given ones; NaN if there is one.
    max;
    /// The logarithm of the sum of exponentials, without overflow.
    logsumexp;
    /// The mean over all axes or the given ones.
    mean;
}

macro_rules! deviations {
    ($($(#[doc = $doc:literal])* $function:ident $name:ident $text:literal;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// The divisor is the number of elements less `ddof` (or `correction`).
        #[pyfunction(name = $text)]
        #[pyo3(signature = (
            a, /, axis=None, keepdims=false, ddof=0, *, correction=None, stream=None
        ))]
        fn $function(
            a: ArrayArg,
            axis: Option<Ints>,
            keepdims: bool,
            ddof: isize,
            correction: Option<isize>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let ddof = usize::try_from(correction.unwrap_or(ddof)).map_err(|_| {
                value(concat!("[", stringify!($name), "] ddof must not be negative."))
            })?;
            Ok(PyArray::new(on(stream, || a.0.$name(axes(&axis), keepdims, ddof))?))
        }
        )*

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $doc])*
            #[pyo3(signature = (
                axis=None, keepdims=false, ddof=0, *, correction=None, stream=None
            ))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<Ints>,
                keepdims: bool,
                ddof: isize,
                correction: Option<isize>,
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                $function(ArrayArg(self.get(py)), axis, keepdims, ddof, correction, stream)
            }
            )*
        }
    };
}

deviations! {
    /// The variance over all axes or the given ones.
    variance var "var";
    /// The standard deviation over all axes or the given ones.
    deviation std "std";
}

/// The median over all axes or the given ones.
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
fn median(
    a: ArrayArg,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.median(axes(&axis), keepdims))?))
}

/// The number of non-zero elements over all axes or the given ones.
#[pyfunction]
#[pyo3(signature = (a, /, *, axis=None, keepdims=false, stream=None))]
fn count_nonzero(
    a: ArrayArg,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.count_nonzero(axes(&axis), keepdims))?))
}

/// The smallest and the largest element over all axes or the given ones.
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
fn minmax(
    a: ArrayArg,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<(PyArray, PyArray)> {
    let (min, max) = on(stream, || a.0.minmax(axes(&axis), keepdims))?;
    Ok((PyArray::new(min), PyArray::new(max)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: variance deviation median count_nonzero minmax);
    register_reductions(m)
}

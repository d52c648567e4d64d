//! Scans and differences along an axis.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

macro_rules! scans {
    ($($(#[doc = $doc:literal])* $name:ident $arg:literal => $out:literal;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (array): Array of any shape.
        ///     axis (int | None): Axis to run along; by default the array is flattened.
        ///     reverse (bool): Runs from the end to the start.
        ///     inclusive (bool): Includes the element itself; else the first result is that of nothing.
        ///     dtype (Dtype | None): Dtype to convert to first.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results in the shape of `a`, or flattened.
        ///
        /// Raises:
        ///     IndexError: If the axis is out of range.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.array(", $arg, "))")]
        #[doc = concat!("    array(", $out, ")")]
        #[pyfunction]
        #[pyo3(signature = (
            a, /, axis=None, *, reverse=false, inclusive=true, dtype=None, stream=None
        ))]
        fn $name(
            a: ArrayArg,
            axis: Option<isize>,
            reverse: bool,
            inclusive: bool,
            dtype: Option<DtypeArg>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || {
                let a = dtype.map_or_else(|| a.0.clone(), |d| a.0.astype(*d));
                a.$name(axis, reverse, inclusive)
            })?))
        }
        )*

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $doc])*
            ///
            /// Args:
            ///     axis (int | None): Axis to run along; by default the array is flattened.
            ///     reverse (bool): Runs from the end to the start.
            ///     inclusive (bool): Includes the element itself; else the first result is that of nothing.
            ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            ///         else the default device.
            ///
            /// Returns:
            ///     array: Results in the shape of the array, or flattened.
            ///
            /// Raises:
            ///     IndexError: If the axis is out of range.
            ///
            /// Example:
            #[doc = concat!("    >>> mx.array(", $arg, ").", stringify!($name), "()")]
            #[doc = concat!("    array(", $out, ")")]
            #[pyo3(signature = (axis=None, *, reverse=false, inclusive=true, stream=None))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<isize>,
                reverse: bool,
                inclusive: bool,
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                $name(ArrayArg(self.get(py)), axis, reverse, inclusive, None, stream)
            }
            )*
        }

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)* diff);
            Ok(())
        }
    };
}

scans! {
    /// Computes the running sum. Bools are summed as int32.
    cumsum "[1, 2, 3]" => "[1, 3, 6], dtype=int32";
    /// Computes the running product.
    cumprod "[1, 2, 3]" => "[1, 2, 6], dtype=int32";
    /// Computes the running maximum; NaN from the first NaN on.
    cummax "[1, 3, 2]" => "[1, 3, 3], dtype=int32";
    /// Computes the running minimum; NaN from the first NaN on.
    cummin "[2, 3, 1]" => "[2, 2, 1], dtype=int32";
    /// Computes the logarithm of the running sum of exponentials, without overflow.
    ///
    /// Integers and bools give float32.
    logcumsumexp "[0.0, 0.0, 0.0]" => "[0, 0.693147, 1.09861], dtype=float32";
}

/// Computes the differences of neighbours along an axis.
///
/// Args:
///     a (array): Array of one dimension at least; of bools the result is True where neighbours
///         differ.
///     n (int): Number of times that differences are taken.
///     axis (int): Axis along which neighbours are subtracted.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Differences; the axis is shorter by `n`, and not shorter than 0.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If `n` is negative.
///
/// Example:
///     >>> mx.diff(mx.array([1, 4, 9, 16]))
///     array([3, 5, 7], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, n=1, axis=-1, *, stream=None),
    text_signature = "(a, /, n=1, axis=-1, *, stream=None)")]
fn diff(a: ArrayArg, n: isize, axis: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    let Ok(n) = usize::try_from(n) else {
        // An axis out of range goes first.
        a.0.diff(0, axis)?;
        return Err(value("[diff] Order `n` must be non-negative. Pass 0 or more."));
    };
    Ok(PyArray::new(on(stream, || a.0.diff(n, axis))?))
}

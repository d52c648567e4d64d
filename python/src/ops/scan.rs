//! Scans and differences along an axis.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

macro_rules! scans {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Along an axis, or of the flattened array; from the end if `reverse`; without
        /// the element itself unless `inclusive`.
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
    /// The running sum.
    cumsum;
    /// The running product.
    cumprod;
    /// The running maximum.
    cummax;
    /// The running minimum.
    cummin;
    /// The logarithm of the running sum of exponentials.
    logcumsumexp;
}

/// Differences of neighbours along an axis, which has one element less each time.
///
/// Args:
///     a (array): The array; of bools, the result says whether neighbours differ.
///     n (int): How many times over.
///     axis (int): The axis.
///
/// Returns:
///     array: The differences.
#[pyfunction]
#[pyo3(signature = (a, /, n=1, axis=-1, *, stream=None))]
fn diff(a: ArrayArg, n: isize, axis: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    let Ok(n) = usize::try_from(n) else {
        // An axis out of range goes first.
        a.0.diff(0, axis)?;
        return Err(value("[diff] Order `n` must be non-negative."));
    };
    Ok(PyArray::new(on(stream, || a.0.diff(n, axis))?))
}

//! Windows and differences.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

macro_rules! windows {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     M (int): Samples of the window; of a negative number there are none.
        ///
        /// Returns:
        ///     array: The window, as float32.
        #[pyfunction]
        #[pyo3(signature = (M, *, stream=None))]
        #[allow(non_snake_case, reason = "MLX's name of the argument")]
        fn $name(M: isize, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || ultramarine::$name(M.max(0) as usize))?))
        }
        )*
    };
}

windows! {
    /// Bartlett's window, a triangle: `1 - abs(2 * n / (M - 1) - 1)`.
    bartlett;
    /// Blackman's window: `0.42 - 0.5 * cos(2 * pi * n / (M - 1)) + 0.08 * cos(4 * pi * n / (M - 1))`.
    blackman;
    /// Hamming's window: `0.54 - 0.46 * cos(2 * pi * n / (M - 1))`.
    hamming;
    /// Hann's window: `0.5 - 0.5 * cos(2 * pi * n / (M - 1))`.
    hanning;
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: bartlett blackman hamming hanning diff);
    Ok(())
}

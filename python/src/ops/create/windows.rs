//! Windows of signals.

use crate::array::PyArray;
use crate::error::Res;
use crate::stream::{DeviceArg, StreamArg, on, placed_on};
use pyo3::prelude::*;

macro_rules! windows {
    ($($(#[doc = $doc:literal])* $name:ident $part:literal $out:literal;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     M (int): Number of samples; of a negative number there are none.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
        ///
        /// Returns:
        ///     array: Window as float32.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(5)", $part)]
        #[doc = concat!("    array(", $out, ")")]
        #[pyfunction]
        #[pyo3(signature = (M, *, stream=None, device=None))]
        #[allow(non_snake_case, reason = "MLX's name of the argument")]
        fn $name(M: isize, stream: Option<StreamArg>, device: Option<DeviceArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(placed_on(stream, device)?, || ultramarine::$name(M.max(0) as usize))?))
        }
        )*
    };
}

windows! {
    /// Creates Bartlett's window, a triangle: `1 - abs(2 * n / (M - 1) - 1)`.
    bartlett "" "[0, 0.5, 1, 0.5, 0], dtype=float32";
    /// Creates Blackman's window: `0.42 - 0.5 * cos(2 * pi * n / (M - 1)) + 0.08 * cos(4 * pi * n /
    /// (M - 1))`.
    blackman "[1:4]" "[0.34, 1, 0.34], dtype=float32";
    /// Creates Hamming's window: `0.54 - 0.46 * cos(2 * pi * n / (M - 1))`.
    hamming "" "[0.08, 0.54, 1, 0.54, 0.08], dtype=float32";
    /// Creates Hann's window: `0.5 - 0.5 * cos(2 * pi * n / (M - 1))`.
    hanning "" "[0, 0.5, 1, 0.5, 0], dtype=float32";
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: bartlett blackman hamming hanning);
    Ok(())
}

//! Creation of arrays.

mod filled;
mod matrices;
mod ranges;
mod windows;

use crate::array::PyArray;
use crate::array::make::{self, Copy, Request};
use crate::dtype::DtypeArg;
use crate::error::Res;
use crate::stream::DeviceArg;
use pyo3::prelude::*;
use ultramarine::Dtype;

fn or_float(dtype: Option<DtypeArg>) -> Dtype {
    dtype.map_or(Dtype::Float32, |d| *d)
}

/// Makes an object an array, over the same memory where that is possible.
///
/// Objects are recognised in the order that `array` names. Unlike there, memory of other
/// libraries keeps its dtype: float64 stays float64 (in MLX it becomes float32). complex128,
/// foreign byte order, bit-packed and misaligned elements can only be copied.
///
/// Shared memory stays its owner's: work that was not evaluated yet sees later writes. Objects
/// of the buffer protocol stay locked while the array needs them: a bytearray cannot be
/// resized.
///
/// Args:
///     a (ArrayLike | Sequence[Any]): Array, number, sequence, or object with memory.
///     dtype (Dtype | None): Dtype of the result; by default that of the memory.
///     copy (bool | None): True always copies; False never does, and raises where a copy, or a
///         cast, would be needed; None copies where it is needed.
///     device (Device | DeviceType | None): Device of the result; by default where the memory
///         is.
///
/// Returns:
///     array: The array.
///
/// Raises:
///     InterchangeError: (a BufferError and a ValueError) If a copy is needed and `copy` is
///         False, or a producer cannot give its memory.
///     ValueError: If no array can be made of the object.
///
/// Example:
///     >>> mx.asarray([1, 2], dtype=mx.float16)
///     array([1, 2], dtype=float16)
#[pyfunction]
#[pyo3(signature = (a, dtype=None, *, copy=None, device=None))]
fn asarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    copy: Option<bool>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let request = Request {
        dtype: dtype.map(|d| *d),
        copy: Copy::asked(copy),
        narrow: false,
        device: device.map(|d| d.get()),
    };
    Ok(PyArray::new(make::made(a, request)?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: asarray);
    filled::register(m)?;
    ranges::register(m)?;
    matrices::register(m)?;
    windows::register(m)
}

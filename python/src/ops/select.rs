//! Selection by conditions and limits.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Operand, operand, operands};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Array;

/// Selects elements of `x` where a condition holds, else of `y`.
///
/// All three are broadcast. The result has the promoted dtype of `x` and `y`.
///
/// Args:
///     condition (ArrayLike): Bools, or numbers of which non-zero ones hold.
///     x (ArrayLike): Elements where the condition holds.
///     y (ArrayLike): Elements elsewhere.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Selected elements in the broadcast shape.
///
/// Raises:
///     ValueError: If the shapes cannot be broadcast.
///
/// Example:
///     >>> mx.where(mx.array([True, False]), 1, mx.array([5, 6]))
///     array([1, 6], dtype=int32)
#[pyfunction(name = "where")]
#[pyo3(signature = (condition, x, y, /, *, stream=None))]
fn where_(
    condition: Operand,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (x, y) = operands(x, y)?;
    Ok(PyArray::new(on(stream, || ultramarine::where_(&condition.0, &x, &y))?))
}

/// Limits elements to a range. If the limits cross, the upper one wins.
///
/// Args:
///     a (array): Array of any shape.
///     a_min (ArrayLike | None): Lower limit, broadcast with `a`; None for no limit.
///     a_max (ArrayLike | None): Upper limit, broadcast with `a`; None for no limit.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Limited elements, in the dtype that the operands promote to.
///
/// Raises:
///     ValueError: If both limits are None, or the shapes cannot be broadcast.
///
/// Example:
///     >>> mx.clip(mx.arange(5), 1, 3)
///     array([1, 1, 2, 3, 3], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, a_min, a_max, *, stream=None))]
fn clip(
    a: ArrayArg,
    a_min: Option<&Bound<'_, PyAny>>,
    a_max: Option<&Bound<'_, PyAny>>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    if a_min.is_none() && a_max.is_none() {
        return Err(value("[clip] At most one of a_min and a_max may be None. Pass one of them."));
    }
    let limit = |v: Option<&Bound<'_, PyAny>>| -> Res<Option<Array>> {
        v.map(|v| operand(v, Some(a.0.dtype()))).transpose()
    };
    let (low, high) = (limit(a_min)?, limit(a_max)?);
    Ok(PyArray::new(on(stream, || a.0.clip(low.as_ref(), high.as_ref()))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: where_ clip);
    Ok(())
}

//! Evenly spaced numbers, and grids of them.

use super::or_float;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Number, integer};
use crate::dtype::DtypeArg;
use crate::error::{Res, type_, value};
use crate::stream::{DeviceArg, StreamArg, on, placed_on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Dtype};

/// Creates numbers from `start` up to, and without, `stop`.
///
/// With one number it is the stop, and numbers start at 0. By name that is `stop`; `start` alone is
/// an error. An infinite step gives the first number alone.
///
/// Args:
///     start (float | None): First number; or the stop, if it is the only one, by place.
///     stop (float | None): Number that the result stays below (above, for a negative step).
///     step (float | None): Difference of neighbours; 1 by default.
///     dtype (Dtype | None): Dtype of the result; by default int32 for integers (int64 where
///         they do not fit), else float32.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Numbers in one dimension.
///
/// Raises:
///     TypeError: If there is no stop.
///     ValueError: If all numbers are bools, one is NaN, the step is zero, or there would be too
///         many numbers.
///
/// Example:
///     >>> mx.arange(0, 1, 0.25)
///     array([0, 0.25, 0.5, 0.75], dtype=float32)
#[pyfunction]
#[pyo3(signature = (*args, start=None, stop=None, step=None, dtype=None, stream=None, device=None),
       text_signature = "(start=None, stop=None, step=None, dtype=None, *, stream=None, device=None)")]
fn arange(
    args: &Bound<'_, PyTuple>,
    start: Option<&Bound<'_, PyAny>>,
    stop: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let named = start.is_some();
    let [start, stop, step, dtype] = placed(
        "arange",
        args,
        [("start", start), ("stop", stop), ("step", step), ("dtype", dtype)],
    )?;
    let (start, stop) = match (start, stop) {
        (Some(_), None) if named => {
            return Err(type_("arange: got `start` without `stop`. Pass both, or `stop` alone"));
        }
        (Some(start), Some(stop)) => (Some(start), stop),
        (Some(stop), None) | (None, Some(stop)) => (None, stop),
        (None, None) => return Err(type_("arange: got no `stop`. Pass it")),
    };
    let dtype: Option<DtypeArg> = dtype.map(|d| d.extract()).transpose()?;
    let mut own = Dtype::Bool;
    let mut number = |argument: Option<Bound<'_, PyAny>>, default: f64| -> Res<f64> {
        let Some(object) = &argument else { return Ok(default) };
        let (v, dtype) = match Number::of(object)? {
            Some(Number::Bool(v)) => (v as u8 as f64, Dtype::Bool),
            Some(Number::Int(v)) => (v as f64, Number::Int(v).dtype()),
            Some(Number::Float(v)) => (v, Dtype::Float32),
            Some(_) => return Err(type_("arange: expected real numbers")),
            None => match integer(object)? {
                Some(v) => (v as f64, Number::Int(v as i64).dtype()),
                None => (object.extract::<f64>()?, Dtype::Float32),
            },
        };
        own = own.promote(dtype);
        Ok(v)
    };
    let (start, stop, step) = (number(start, 0.0)?, number(Some(stop), 0.0)?, number(step, 1.0)?);
    let dtype = match dtype {
        Some(dtype) => *dtype,
        None if own == Dtype::Bool => {
            return Err(value("[arange] bool not supported for arange. Pass an integer dtype."));
        }
        None => own,
    };
    Ok(PyArray::new(on(placed_on(stream, device)?, || Array::arange(start, stop, step, dtype))?))
}

/// Arguments by place and by name, where it matters which: None is an argument that is left out.
fn placed<'py, const N: usize>(
    function: &str,
    args: &Bound<'py, PyTuple>,
    named: [(&str, Option<&Bound<'py, PyAny>>); N],
) -> Res<[Option<Bound<'py, PyAny>>; N]> {
    if args.len() > N {
        let given = args.len();
        return Err(type_(format!(
            "{function}() takes at most {N} positional arguments, got {given}"
        )));
    }
    let mut out = named.map(|(_, value)| value.cloned());
    for (i, value) in args.iter().enumerate().filter(|(_, value)| !value.is_none()) {
        if out[i].replace(value).is_some() {
            let name = named[i].0;
            return Err(type_(format!("{function}() got multiple values for argument '{name}'")));
        }
    }
    Ok(out)
}

/// Creates numbers that are evenly spaced from `start` to `stop`.
///
/// Args:
///     start (float): First number.
///     stop (float): Last number; with `endpoint=False` the one that would come next.
///     num (int): Number of numbers.
///     endpoint (bool): Includes `stop`.
///     dtype (Dtype | None): Dtype of the result; float32 by default.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Numbers in one dimension.
///
/// Raises:
///     ValueError: If `num` is negative.
///
/// Example:
///     >>> mx.linspace(0, 1, 5)
///     array([0, 0.25, 0.5, 0.75, 1], dtype=float32)
#[pyfunction]
#[pyo3(signature = (start, stop, num=50, endpoint=true, dtype=None, stream=None, *, device=None),
       text_signature = "(start, stop, num=50, endpoint=True, dtype=None, stream=None, *, device=None)")]
fn linspace(
    start: f64,
    stop: f64,
    num: Option<isize>,
    endpoint: bool,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let num = num.unwrap_or(50);
    let count = usize::try_from(num).map_err(|_| {
        value(format!("[linspace] number of samples, {num}, must be non-negative. Pass 0 or more."))
    })?;
    let dtype = or_float(dtype);
    Ok(PyArray::new(on(placed_on(stream, device)?, || {
        Array::linspace(start, stop, count, endpoint, dtype)
    })?))
}

/// Creates the coordinates of the grid that vectors span.
///
/// Args:
///     *arrays (array): Vectors; other arrays are flattened.
///     sparse (bool): Leaves axes at size 1 along which a coordinate does not change.
///     indexing (str): "xy" for the order of plots, in which the first two axes are exchanged;
///         "ij" for that of matrices.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     tuple[array, ...]: One array for each vector, with an axis for each vector.
///
/// Raises:
///     ValueError: If `indexing` is another word.
///
/// Example:
///     >>> mx.meshgrid(mx.arange(2), mx.arange(2), indexing="ij")[0]
///     array([[0, 0],
///            [1, 1]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (*arrays, sparse=false, indexing="xy", stream=None))]
fn meshgrid<'py>(
    arrays: Vec<ArrayArg>,
    sparse: Option<bool>,
    indexing: Option<&str>,
    stream: Option<StreamArg>,
    py: Python<'py>,
) -> Res<Bound<'py, PyTuple>> {
    let arrays: Vec<Array> = arrays.into_iter().map(|a| a.0).collect();
    let made = on(stream, || {
        ultramarine::meshgrid(&arrays, sparse.unwrap_or(false), indexing.unwrap_or("xy"))
    })?;
    Ok(PyTuple::new(py, crate::ops::list(made))?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: arange linspace meshgrid);
    Ok(())
}

//! Arrays as NumPy's.

use super::{PyArray, evaluate};
use crate::error::{Res, value};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use ultramarine::{Array, Dtype, Error};

#[pymethods]
impl PyArray {
    /// Returns the array as NumPy's, over the same memory where that is possible.
    ///
    /// Args:
    ///     dtype (Any): Dtype of NumPy, for which elements are copied if it is another.
    ///     copy (bool | None): As NumPy passes it: True always copies, False never does.
    ///
    /// Returns:
    ///     Any: NumPy array.
    ///
    /// Raises:
    ///     ValueError: If `copy` is False and a copy is needed: for another dtype, or where the
    ///         elements are not in the host's memory.
    ///     ImportError: If NumPy lacks the dtype and the package ml_dtypes is not installed.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Res<Bound<'py, PyAny>> {
        let py = slf.py();
        let array = slf.get().get(py);
        evaluate(py, &array)?;
        if copy == Some(false) && !py.detach(|| array.host_value())?.1 {
            let text = format!(
                "An array on {} cannot become NumPy's without a copy. Leave out copy=False.",
                array.device()
            );
            return Err(Error::buffer("__array__", text).into());
        }
        let plain = in_bytes(array.dtype());
        if copy == Some(false) && plain != array.dtype() {
            let text = format!(
                "{} cannot become NumPy's without a copy that unpacks it. Leave out copy=False.",
                array.dtype()
            );
            return Err(Error::buffer("__array__", text).into());
        }
        let shared = to_numpy(slf, &array.try_astype(plain)?)?;
        let asked = dtype.map(|d| py.import("numpy")?.call_method1("dtype", (d,))).transpose()?;
        match asked {
            Some(dtype) if !dtype.eq(shared.getattr("dtype")?)? => {
                if copy == Some(false) {
                    return Err(value(format!(
                        "[__array__] A cast from {} to {dtype} needs a copy. Leave out copy=False.",
                        array.dtype()
                    )));
                }
                Ok(shared.call_method1("astype", (dtype,))?)
            }
            _ if copy == Some(true) => Ok(shared.call_method0("copy")?),
            _ => Ok(shared),
        }
    }
}

/// The dtype in which NumPy can hold the numbers: in a byte each.
fn in_bytes(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::Float6E2m3fnPacked => Dtype::Float6E2m3fn,
        Dtype::Float6E3m2fnPacked => Dtype::Float6E3m2fn,
        Dtype::Float4E2m1fnPacked | Dtype::Float4E2m1fnX2 => Dtype::Float4E2m1fn,
        other => other,
    }
}

/// A NumPy array over the memory. Types that NumPy does not have itself are those of the package
/// ml_dtypes.
fn to_numpy<'py>(object: &Bound<'py, PyArray>, array: &Array) -> Res<Bound<'py, PyAny>> {
    let py = object.py();
    let carrier = match array.dtype() {
        Dtype::Bfloat16 => Dtype::Uint16,
        d if d.is_storage() => Dtype::Uint8,
        _ => {
            let view = PyMemoryView::from(object)?;
            return Ok(py.import("numpy")?.call_method1("asarray", (view,))?);
        }
    };
    let name = array.dtype().name();
    let types = py.import("ml_dtypes").map_err(|cause| {
        let text = format!(
            "[__array__] NumPy has no {name}. Install the package ml_dtypes, or convert with astype first."
        );
        let error = PyImportError::new_err(text);
        error.set_cause(py, Some(cause));
        error
    })?;
    let bits = Bound::new(py, PyArray::new(array.view(carrier)?))?;
    let bits = bits.call_method0("__array__")?;
    Ok(bits.call_method1("view", (types.getattr(name)?,))?)
}

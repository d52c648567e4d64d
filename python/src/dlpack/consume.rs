//! Tensors of other libraries as arrays.

use super::capsule::Lent;
use crate::array::PyArray;
use crate::convert::as_array;
use crate::error::{Res, type_, type_name};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ultramarine::Array;
use ultramarine::interchange::{Import, ImportOptions};

/// Whether an object is a capsule, of whatever.
pub fn is_capsule(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: looks at a live object's type only.
    unsafe { ffi::PyCapsule_CheckExact(object.as_ptr()) != 0 }
}

/// The array of a capsule's tensor, which stays in the capsule if it is refused.
pub fn from_capsule(capsule: &Bound<'_, PyAny>, options: ImportOptions) -> Res<Array> {
    let lent = Lent::new(capsule)?;
    let import = Import::judge(lent.tensor(), lent.checked, options)?;
    let tensor = lent.take()?;
    // SAFETY: judged from this tensor, under the interpreter lock.
    Ok(capsule.py().detach(|| unsafe { import.take(tensor) })?)
}

/// The array of an object whose type has `__dlpack__`; `None` if it has not.
pub fn from_producer(object: &Bound<'_, PyAny>, options: ImportOptions) -> Res<Option<Array>> {
    let py = object.py();
    let name = pyo3::intern!(py, "__dlpack__");
    if !object.get_type().hasattr(name)? {
        return Ok(None);
    }
    let keywords = PyDict::new(py);
    keywords.set_item("max_version", (1, 3))?;
    let capsule = match object.call_method(name, (), Some(&keywords)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0(name)?,
        other => other?,
    };
    from_capsule(&capsule, options).map(Some)
}

/// from_dlpack(x, /, *, device=None, copy=None)
///
/// The tensor of another library as an array, without a copy.
///
/// `x` has `__dlpack__` (and `__dlpack_device__`), or is a capsule that `__dlpack__` gave.
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<crate::stream::DeviceArg>,
    copy: Option<bool>,
) -> Res<PyArray> {
    let options = ImportOptions { device: device.map(|d| d.0), copy };
    if is_capsule(x) {
        return Ok(PyArray::new(from_capsule(x, options)?));
    }
    if copy != Some(true)
        && options.device.is_none()
        && let Some(a) = as_array(x)
    {
        return Ok(PyArray::new(a.get().get(x.py())));
    }
    match from_producer(x, options)? {
        Some(array) => Ok(PyArray::new(array)),
        None => Err(type_(format!(
            "[from_dlpack] expected an object with __dlpack__ or a capsule, got {}",
            type_name(x)
        ))),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: from_dlpack);
    Ok(())
}

//! Arrays as Python objects: numbers, lists, bytes, memory.

use super::{PyArray, attributes::scalar, evaluate};
use crate::dtype::by_name;
use crate::error::{Res, exception};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyList, PyType};
use std::ffi::{CStr, c_int, c_void};
use ultramarine::{Array, Dtype, Scalar};

/// A scalar as a Python number.
fn number<'py>(py: Python<'py>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    Ok(match scalar.dtype() {
        Dtype::Bool => PyBool::new(py, scalar.bits() != 0).to_owned().into_any(),
        Dtype::Uint64 => scalar.bits().into_pyobject(py)?.into_any(),
        d if d.is_complex() => {
            let (re, im) = scalar.to_complex();
            PyComplex::from_doubles(py, re, im).into_any()
        }
        d if d.is_inexact() || d.is_storage() => PyFloat::new(py, scalar.to_f64()).into_any(),
        _ => scalar.to_i64().into_pyobject(py)?.into_any(),
    })
}

/// The only element as a Python number.
pub fn item<'py>(py: Python<'py>, array: &Array) -> Res<Bound<'py, PyAny>> {
    Ok(number(py, scalar(py, array)?)?)
}

/// Nested lists of the elements; a number for an array without dimensions.
pub fn list<'py>(py: Python<'py>, array: &Array) -> Res<Bound<'py, PyAny>> {
    let dtype = array.dtype();
    if dtype.bits() < 8 || dtype == Dtype::Float4E2m1fnX2 {
        // Numbers that have no byte of their own.
        return list(py, &array.try_astype(Dtype::Float32)?);
    }
    if array.ndim() == 0 {
        return item(py, array);
    }
    evaluate(py, array)?;
    Ok(array.with_bytes(|bytes| nested(py, bytes, array.shape(), dtype))??.into_any())
}

fn nested<'py>(
    py: Python<'py>,
    bytes: &[u8],
    shape: &[usize],
    dtype: Dtype,
) -> PyResult<Bound<'py, PyList>> {
    let (n, rest) = (shape[0], &shape[1..]);
    if rest.is_empty() {
        // The dtypes of most lists, without the detour by a scalar.
        return match dtype {
            Dtype::Float32 => row(py, bytes, f32::from_le_bytes),
            Dtype::Float64 => row(py, bytes, f64::from_le_bytes),
            Dtype::Int32 => row(py, bytes, i32::from_le_bytes),
            Dtype::Int64 => row(py, bytes, i64::from_le_bytes),
            _ => others(py, bytes, n, dtype),
        };
    }
    let each = bytes.len().checked_div(n).unwrap_or(0);
    let part = |i: usize| &bytes[i * each..(i + 1) * each];
    let rows = (0..n).map(|i| nested(py, part(i), rest, dtype)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, rows)
}

/// A list of numbers of `N` bytes each.
fn row<'py, T: IntoPyObject<'py>, const N: usize>(
    py: Python<'py>,
    bytes: &[u8],
    number: impl Fn([u8; N]) -> T,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, bytes.as_chunks().0.iter().map(|b| number(*b)))
}

/// A list of `n` numbers of any dtype.
fn others<'py>(
    py: Python<'py>,
    bytes: &[u8],
    n: usize,
    dtype: Dtype,
) -> PyResult<Bound<'py, PyList>> {
    let each = bytes.len().checked_div(n).unwrap_or(0);
    let element = |i: usize| -> PyResult<Bound<'py, PyAny>> {
        let mut bits = [0u8; 8];
        bits[..each].copy_from_slice(&bytes[i * each..(i + 1) * each]);
        number(py, Scalar::from_bits(dtype, u64::from_le_bytes(bits)))
    };
    PyList::new(py, (0..n).map(element).collect::<PyResult<Vec<_>>>()?)
}

/// Memory, shape and strides that a buffer's view points to until it is released.
struct View {
    _memory: ultramarine::Export,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// The buffer protocol's format of a dtype.
fn format(dtype: Dtype) -> Option<&'static CStr> {
    Some(match dtype {
        Dtype::Bool => c"?",
        Dtype::Uint8 => c"B",
        Dtype::Uint16 => c"H",
        Dtype::Uint32 => c"I",
        Dtype::Uint64 => c"Q",
        Dtype::Int8 => c"b",
        Dtype::Int16 => c"h",
        Dtype::Int32 => c"i",
        Dtype::Int64 => c"q",
        Dtype::Float16 => c"e",
        Dtype::Float32 => c"f",
        Dtype::Float64 => c"d",
        Dtype::Complex64 => c"Zf",
        // NumPy then goes on to `__array__`, which has them from ml_dtypes.
        _ => return None,
    })
}

#[pymethods]
impl PyArray {
    /// Returns the only element as a Python number. Evaluates the array.
    ///
    /// Returns:
    ///     Any: bool, int, float or complex.
    ///
    /// Raises:
    ///     ValueError: If there is not exactly one element.
    ///
    /// Example:
    ///     >>> mx.array([[2.5]]).item()
    ///     2.5
    fn item<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        item(py, &self.get(py))
    }

    /// Returns the elements as nested lists of Python numbers. Evaluates the array.
    ///
    /// Returns:
    ///     Any: Nested lists; a number, if there are no dimensions.
    ///
    /// Example:
    ///     >>> mx.array([[1, 2], [3, 4]]).tolist()
    ///     [[1, 2], [3, 4]]
    fn tolist<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        list(py, &self.get(py))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyBytes>> {
        let array = self.get(py);
        evaluate(py, &array)?;
        Ok(array.with_bytes(|b| PyBytes::new(py, b))?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Res<(Bound<'py, PyAny>, Pickled<'py>)> {
        let py = slf.py();
        let array = slf.get().get(py);
        let bytes = slf.get().__bytes__(py)?;
        let load = py.import("ultramarine._core")?.getattr("_unpickle")?;
        let state =
            (slf.get_type(), bytes, array.shape().to_vec(), array.dtype().name().to_owned());
        Ok((load, state))
    }

    /// Elements, shape and name of the dtype, for `__setstate__`.
    fn __getstate__<'py>(&self, py: Python<'py>) -> Res<State<'py>> {
        let array = self.get(py);
        Ok((self.__bytes__(py)?, array.shape().to_vec(), array.dtype().name().to_owned()))
    }

    /// Restores the state of `__getstate__`. Pickles of this package do not need it.
    fn __setstate__(&self, py: Python<'_>, state: State<'_>) -> Res<()> {
        let (bytes, shape, dtype) = state;
        self.set(py, Array::from_bytes(bytes.as_bytes(), &shape, by_name(&dtype)?)?);
        Ok(())
    }

    /// # Safety
    /// Called by the interpreter with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> Res<()> {
        let py = slf.py();
        if view.is_null() {
            return Err(PyBufferError::new_err("no view given").into());
        }
        // SAFETY: not null; the protocol wants `obj` null wherever we fail.
        unsafe { (*view).obj = std::ptr::null_mut() };
        let mut array = slf.get().get(py);
        let wants = |flag| flags & flag == flag;
        let format = format(array.dtype());
        if format.is_none() && wants(ffi::PyBUF_FORMAT) {
            // Only then does NumPy go on to `__array__`, which can.
            let bits = if array.dtype() == Dtype::Bfloat16 { Dtype::Uint16 } else { Dtype::Uint8 };
            let text = format!(
                "The buffer protocol has no {}. Use view({bits}) for its bits, or pass the array to NumPy \
                 itself",
                array.dtype()
            );
            return Err(PyBufferError::new_err(text).into());
        }
        evaluate(py, &array)?;
        let strided = wants(ffi::PyBUF_STRIDES)
            && !wants(ffi::PyBUF_C_CONTIGUOUS)
            && !wants(ffi::PyBUF_F_CONTIGUOUS);
        if !strided {
            array = py.detach(|| array.to_contiguous())?;
        }
        let (value, own) = py.detach(|| array.host_value())?;
        let size = array.itemsize() as isize;
        if array.dtype().is_packed() && wants(ffi::PyBUF_ND) {
            let text =
                format!("Elements of {} share bytes. Convert with astype first", array.dtype());
            return Err(PyBufferError::new_err(text).into());
        }
        let fits = !wants(ffi::PyBUF_F_CONTIGUOUS) || array.ndim() < 2;
        if !fits && !wants(ffi::PyBUF_ANY_CONTIGUOUS) {
            return Err(
                PyBufferError::new_err("The array is not column-major. Ask for C order").into()
            );
        }
        let read_only = value.buffer.is_read_only() || !own;
        if read_only && wants(ffi::PyBUF_WRITABLE) {
            return Err(PyBufferError::new_err(
                "The memory of the array is read-only. Ask for a read-only buffer, or copy it",
            )
            .into());
        }
        let data = value.data();
        let mut export = Box::new(View {
            shape: array.shape().iter().map(|n| *n as isize).collect(),
            strides: value.strides.iter().map(|s| s * size).collect(),
            _memory: value.buffer.export(),
        });
        // SAFETY: `view` is the interpreter's to fill. The pointers lead into the boxed
        // export, freed in `__releasebuffer__`, which also keeps the memory that `buf` points
        // to.
        unsafe {
            (*view).buf = data as *mut c_void;
            (*view).len = array.nbytes() as isize;
            (*view).itemsize = size;
            (*view).readonly = read_only as c_int;
            (*view).ndim = array.ndim() as c_int;
            (*view).format = match format {
                Some(format) if wants(ffi::PyBUF_FORMAT) => format.as_ptr().cast_mut(),
                _ => std::ptr::null_mut(),
            };
            let give = |flag, list: &mut Vec<isize>| {
                if wants(flag) { list.as_mut_ptr() } else { std::ptr::null_mut() }
            };
            (*view).shape = give(ffi::PyBUF_ND, &mut export.shape);
            (*view).strides = give(ffi::PyBUF_STRIDES, &mut export.strides);
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = Box::into_raw(export).cast();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }

    /// # Safety
    /// Called by the interpreter with a view that `__getbuffer__` filled.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box that `__getbuffer__` made, released once.
        unsafe { drop(Box::from_raw((*view).internal as *mut View)) }
    }
}

/// State of an array: elements, shape, name of the dtype.
type State<'py> = (Bound<'py, PyBytes>, Vec<usize>, String);

/// Content of a pickle: class, elements, shape, name of the dtype.
type Pickled<'py> = (Bound<'py, PyType>, Bound<'py, PyBytes>, Vec<usize>, String);

/// Makes an array of a pickle's content.
#[pyfunction]
fn _unpickle<'py>(
    class: &Bound<'py, PyType>,
    bytes: &[u8],
    shape: Vec<usize>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let array = Array::from_bytes(bytes, &shape, by_name(dtype)?).map_err(|e| exception(&e))?;
    let plain = Bound::new(class.py(), PyArray::new(array))?;
    if class.is(class.py().get_type::<PyArray>()) {
        return Ok(plain.into_any());
    }
    if !class.is_subclass_of::<PyArray>()? {
        return Err(PyValueError::new_err(
            "The pickle does not hold an array. Pickle the array again.",
        ));
    }
    class.call1((plain,))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: _unpickle);
    Ok(())
}

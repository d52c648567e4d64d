//! Attributes and the special methods that concern an array as a Python object.

use super::{PyArray, evaluate, item};
use crate::argument_errors::SEVERAL_ELEMENTS;
use crate::dtype::{PyDtype, object};
use crate::error::{Res, type_, value};
use crate::stream::DeviceArg;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyTuple};
use ultramarine::Array;

/// The shape as a tuple.
fn shape<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, array.shape())
}

#[pymethods]
impl PyArray {
    /// tuple[int, ...]: Sizes of the dimensions.
    ///
    /// Example:
    ///     >>> mx.ones((2, 3)).shape
    ///     (2, 3)
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape(py, &self.get(py))
    }

    /// int: Number of dimensions.
    ///
    /// Example:
    ///     >>> mx.ones((2, 3)).ndim
    ///     2
    #[getter]
    fn ndim(&self, py: Python<'_>) -> usize {
        self.get(py).ndim()
    }

    /// int: Number of elements.
    ///
    /// Example:
    ///     >>> mx.ones((2, 3)).size
    ///     6
    #[getter]
    fn size(&self, py: Python<'_>) -> usize {
        self.get(py).size()
    }

    /// int: Bytes of an element.
    ///
    /// Example:
    ///     >>> mx.array([1.0]).itemsize
    ///     4
    #[getter]
    fn itemsize(&self, py: Python<'_>) -> usize {
        self.get(py).itemsize()
    }

    /// int: Bytes of all elements.
    ///
    /// Example:
    ///     >>> mx.ones((2, 3), mx.float16).nbytes
    ///     12
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.get(py).nbytes()
    }

    /// Dtype: Type of the elements.
    ///
    /// Example:
    ///     >>> mx.array([1, 2]).dtype
    ///     ultramarine.int32
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDtype>> {
        object(py, self.get(py).dtype())
    }

    /// Device: Device that computes the array.
    ///
    /// Example:
    ///     >>> mx.array([1.0], device=mx.cpu).device
    ///     Device(cpu, 0)
    #[getter]
    fn device(&self, py: Python<'_>) -> crate::stream::PyDevice {
        crate::stream::PyDevice(self.get(py).device())
    }

    fn __len__(&self, py: Python<'_>) -> Res<usize> {
        self.get(py)
            .shape()
            .first()
            .copied()
            .ok_or_else(|| type_("len() 0-dimensional array. Use size, or reshape it."))
    }

    fn __iter__(&self, py: Python<'_>) -> Res<ArrayIterator> {
        let array = self.get(py);
        if array.ndim() == 0 {
            return Err(type_("iter() 0-dimensional array. Use item(), or reshape it."));
        }
        Ok(ArrayIterator { array, next: 0.into() })
    }

    fn __bool__(&self, py: Python<'_>) -> Res<bool> {
        let value = scalar(py, &self.get(py))?;
        let (re, im) = value.to_complex();
        Ok(re != 0.0 || im != 0.0)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        Ok(py.get_type::<PyInt>().call1((item(py, &self.get(py))?,))?)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        Ok(py.get_type::<PyFloat>().call1((item(py, &self.get(py))?,))?)
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        Ok(py.get_type::<PyComplex>().call1((item(py, &self.get(py))?,))?)
    }

    fn __index__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        let array = self.get(py);
        if array.dtype().is_inexact() || array.ndim() != 0 {
            return Err(type_(
                "Only 0-dimensional integer arrays can be converted to an index. Use item() or astype.",
            ));
        }
        self.__int__(py)
    }

    fn __repr__(&self, py: Python<'_>) -> Res<String> {
        let array = self.get(py);
        evaluate(py, &array)?;
        crate::print::repr(&array)
    }

    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> Res<Bound<'py, PyAny>> {
        let array = self.get(py);
        if array.ndim() == 0 {
            return Ok(item(py, &array)?.call_method1("__format__", (spec,))?);
        }
        if !spec.is_empty() {
            return Err(type_(
                "unsupported format string passed to array.__format__. Format item() instead",
            ));
        }
        Ok(self.__repr__(py)?.into_pyobject(py).map_err(PyErr::from)?.into_any())
    }

    fn __copy__(&self, py: Python<'_>) -> PyArray {
        PyArray::new(self.get(py))
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyArray {
        let _ = memo;
        PyArray::new(self.get(py))
    }

    /// Returns the array on a device: itself, if it is there already, else a copy.
    ///
    /// Args:
    ///     device (Device | DeviceType): Device of the result.
    ///     stream (None): Only None: copies are ordered by the arrays.
    ///
    /// Returns:
    ///     array: Array on the device.
    ///
    /// Raises:
    ///     ValueError: If there is no such device, or a stream is given.
    ///
    /// Example:
    ///     >>> mx.ones(2).to_device(mx.cpu).device
    ///     Device(cpu, 0)
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device<'py>(
        slf: &Bound<'py, Self>,
        device: DeviceArg,
        stream: Option<Bound<'py, PyAny>>,
    ) -> Res<Bound<'py, Self>> {
        if stream.is_some() {
            return Err(value("[to_device] `stream` is not supported. Leave it out."));
        }
        let py = slf.py();
        let array = slf.get().get(py);
        if array.device() == device.0 {
            return Ok(slf.clone());
        }
        // The first need of a device loads the backends.
        let there = py.detach(|| array.copy_to(device.0))?;
        Ok(Bound::new(py, PyArray::new(there))?)
    }

    /// Returns the namespace of the Python array API standard: `ultramarine.array_api`.
    ///
    /// Args:
    ///     api_version (str | None): Version of the standard, such as "2025.12", which is also the
    ///         latest; the namespace fulfils all of them.
    ///
    /// Returns:
    ///     ModuleType: The namespace.
    ///
    /// Raises:
    ///     ValueError: If there is no such version.
    #[pyo3(signature = (api_version=None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> Res<Bound<'py, PyModule>> {
        const VERSIONS: [&str; 5] = ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12"];
        if let Some(version) = api_version.filter(|v| !VERSIONS.contains(v)) {
            return Err(value(format!(
                "[__array_namespace__] There is no version {version:?} of the standard. Pass one of {}.",
                VERSIONS.join(", ")
            )));
        }
        Ok(py.import("ultramarine.array_api")?)
    }
}

/// The only element.
pub fn scalar(py: Python<'_>, array: &Array) -> Res<ultramarine::Scalar> {
    if array.size() != 1 {
        return Err(value(SEVERAL_ELEMENTS));
    }
    evaluate(py, array)?;
    Ok(array.item_scalar()?)
}

/// Iterator over the first axis of an array.
///
/// Example:
///     >>> [row.tolist() for row in iter(mx.array([[1, 2], [3, 4]]))]
///     [[1, 2], [3, 4]]
#[pyclass(name = "ArrayIterator", module = "ultramarine", frozen)]
pub struct ArrayIterator {
    array: Array,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl ArrayIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> Res<Option<PyArray>> {
        let i = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if i >= self.array.shape()[0] {
            return Ok(None);
        }
        Ok(Some(PyArray::new(super::indexing::row(&self.array, i)?)))
    }
}

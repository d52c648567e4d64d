//! `x[...]`, `x[...] = v` and `x.at[...]`.

use super::PyArray;
use super::make::Request;
use crate::convert::{Number, as_array, invalid, try_operand};
use crate::error::{Res, value};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};
use ultramarine::{Array, Dtype, Index, Update};

/// The entry of a slice. One of ordinary integers is read by the interpreter, which has the same rules.
fn slice(object: &Bound<'_, PySlice>) -> Res<Index> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: a live slice, and places for the answers.
    let read = unsafe { ffi::PySlice_Unpack(object.as_ptr(), &mut start, &mut stop, &mut step) };
    if read == 0 {
        let [start, stop, step] = [start, stop, step].map(|n| Some(n as i64));
        return Ok(Index::Slice { start, stop, step });
    }
    // Its error says something else.
    drop(PyErr::take(object.py()));
    Ok(Index::Slice {
        start: bound(object.getattr("start")?)?,
        stop: bound(object.getattr("stop")?)?,
        step: bound(object.getattr("step")?)?,
    })
}

/// A bound or the step of a slice.
fn bound(object: Bound<'_, PyAny>) -> Res<Option<i64>> {
    if object.is_none() {
        return Ok(None);
    }
    match object.extract::<i64>() {
        Ok(v) => Ok(Some(v)),
        Err(e) if e.is_instance_of::<PyTypeError>(object.py()) => {
            Err(value("Slice indices must be integers. Convert them with int()."))
        }
        // Beyond any array: as far as it goes.
        Err(_) => Ok(Some(if object.lt(0)? { i64::MIN } else { i64::MAX })),
    }
}

/// One entry of an index.
fn entry(object: &Bound<'_, PyAny>) -> Res<Index> {
    if let Ok(object) = object.cast::<PySlice>() {
        return slice(object);
    }
    if object.is_none() {
        return Ok(Index::NewAxis);
    }
    if object.is_instance_of::<PyEllipsis>() {
        return Ok(Index::Ellipsis);
    }
    if let Some(a) = as_array(object) {
        return Ok(Index::from(a.get().get(object.py())));
    }
    let invalid = || {
        value(
            "Cannot index an array using the given type. Use ints, slices, None, ... or integer and bool arrays.",
        )
    };
    if object.is_instance_of::<PyBool>() {
        return Err(invalid());
    }
    if object.is_instance_of::<PyInt>() {
        // Integers beyond int64 are out of range for any array.
        return Ok(Index::Int(match object.extract::<i64>() {
            Ok(v) => v,
            Err(_) => {
                return Err(crate::error::Fail::Core(ultramarine::Error::Index(
                    format!("Index {} is out of bounds.", crate::error::shown(object)).into(),
                )));
            }
        }));
    }
    if object.is_instance_of::<PyList>() {
        return Ok(Index::from(indices(super::make::array(object, None)?)));
    }
    if object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyString>() {
        return Err(invalid());
    }
    if let Ok(v) = object.extract::<i64>() {
        return Ok(Index::Int(v));
    }
    match super::make::array_like(object, Request::of_array(None))? {
        Some(a) => Ok(Index::from(a)),
        None => Err(invalid()),
    }
}

/// An empty list is an empty list of indices, not of floats.
fn indices(array: Array) -> Array {
    if array.size() == 0 { array.astype(Dtype::Int32) } else { array }
}

/// The entries of an index. A few are no allocation.
type Entries = SmallVec<[Index; 4]>;

fn entries(object: &Bound<'_, PyAny>) -> Res<Entries> {
    match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|item| entry(&item)).collect(),
        Err(_) => Ok(smallvec![entry(object)?]),
    }
}

/// The array of an object that elements of `dtype` are assigned: besides operands it may be what
/// converts itself to a number, as in MLX.
fn assigned(object: &Bound<'_, PyAny>, dtype: Dtype) -> Res<Array> {
    if let Some(a) = try_operand(object, Some(dtype))? {
        return Ok(a);
    }
    match Number::converted(object)? {
        Some(n) => Ok(Array::scalar(n.beside(dtype)?)),
        None => Err(invalid(object)),
    }
}

/// Row `i` along the first axis.
pub fn row(array: &Array, i: usize) -> Res<Array> {
    Ok(array.index(&[Index::Int(i as i64)])?)
}

#[pymethods]
impl PyArray {
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        arg: &Bound<'_, PyAny>,
    ) -> Res<Bound<'py, PyArray>> {
        let entries = entries(arg)?;
        Ok(PyArray::object(py, self.get(py).index(&entries)?)?)
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        arg0: &Bound<'_, PyAny>,
        arg1: &Bound<'_, PyAny>,
    ) -> Res<()> {
        let entries = match arg0.cast::<PyBool>() {
            // As MLX has it, for assignments alone: a mask without dimensions.
            Ok(mask) => smallvec![Index::from(Array::scalar(mask.is_true()))],
            Err(_) => entries(arg0)?,
        };
        let array = self.get(py);
        let values = assigned(arg1, array.dtype())?;
        let made = array.index_update(&entries, &values, Update::Set)?;
        // The former handle must not count as a user of the memory that is updated.
        drop(array);
        self.set(py, made);
        Ok(())
    }

    /// ArrayAt: Updates at an index, `x.at[i].add(v)`, which return a new array.
    ///
    /// Where an index occurs several times, all its updates count.
    ///
    /// Example:
    ///     >>> mx.array([1, 2, 3]).at[1:].add(10)
    ///     array([1, 12, 13], dtype=int32)
    #[getter]
    fn at(&self, py: Python<'_>) -> ArrayAt {
        ArrayAt { array: self.get(py), entries: None }
    }
}

/// Array and an index, at which updates are applied: `x.at[i]`.
///
/// Example:
///     >>> x = mx.array([1, 2, 3])
///     >>> x.at[mx.array([0, 0, 2])].add(10)
///     array([21, 2, 13], dtype=int32)
///     >>> x
///     array([1, 2, 3], dtype=int32)
#[pyclass(name = "ArrayAt", module = "ultramarine", frozen)]
pub struct ArrayAt {
    array: Array,
    entries: Option<Entries>,
}

impl ArrayAt {
    fn update(&self, updates: &Bound<'_, PyAny>, kind: Update) -> Res<PyArray> {
        let Some(entries) = &self.entries else {
            return Err(value("Must give an index to .at. Write for example x.at[i].add(1)."));
        };
        let updates = assigned(updates, self.array.dtype())?;
        Ok(PyArray::new(self.array.index_update(entries, &updates, kind)?))
    }
}

macro_rules! updates {
    ($($(#[doc = $doc:literal])* $name:ident $kind:ident $out:literal;)*) => {
        #[pymethods]
        impl ArrayAt {
            fn __getitem__(&self, indices: &Bound<'_, PyAny>) -> Res<ArrayAt> {
                Ok(ArrayAt { array: self.array.clone(), entries: Some(entries(indices)?) })
            }

            $(
            $(#[doc = $doc])*
            ///
            /// Args:
            ///     value (ArrayLike): Operand of the update, broadcast to the indexed part.
            ///
            /// Returns:
            ///     array: Copy of the array, updated.
            ///
            /// Raises:
            ///     IndexError: If the index is out of range.
            ///     ValueError: If `value` cannot be broadcast to the part, or there is no index.
            ///
            /// Example:
            #[doc = concat!("    >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].", stringify!($name), "(2)")]
            #[doc = concat!("    array(", $out, ")")]
            fn $name(&self, value: &Bound<'_, PyAny>) -> Res<PyArray> {
                self.update(value, Update::$kind)
            }
            )*
        }
    };
}

updates! {
    /// Adds at the index.
    add Add "[5, 2, 5], dtype=float32";
    /// Subtracts at the index.
    subtract Subtract "[-3, 2, 1], dtype=float32";
    /// Multiplies at the index.
    multiply Multiply "[4, 2, 6], dtype=float32";
    /// Divides at the index.
    divide Divide "[0.25, 2, 1.5], dtype=float32";
    /// Takes the larger of element and value at the index.
    maximum Maximum "[2, 2, 3], dtype=float32";
    /// Takes the smaller of element and value at the index.
    minimum Minimum "[1, 2, 2], dtype=float32";
}

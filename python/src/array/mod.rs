//! The class `array`.

mod attributes;
mod export;
mod indexing;
pub mod make;
#[allow(unsafe_op_in_unsafe_fn)] // PyO3's glue for operators, seen through a macro.
mod operators;

use crate::error::Res;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use ultramarine::Array;

pub use export::item;

#[cfg(Py_GIL_DISABLED)]
compile_error!("the handle of an array relies on the interpreter lock");

/// A lazy n-dimensional array.
///
/// `array(val, dtype=None)` makes one from a number, nested lists or tuples of numbers
/// and arrays, another array, or whatever offers its memory (NumPy arrays, bytes,
/// memoryview ...), which is copied.
#[pyclass(name = "array", module = "ultramarine", frozen, weakref, subclass)]
pub struct PyArray {
    /// Behind a cell since in-place operations rebind it.
    handle: UnsafeCell<Array>,
}

// SAFETY: `Array` is Send and Sync, and the cell is only touched by `get`, `set` and
// `borrow`, which take a token that the interpreter lock is held (this is no build for
// free-threaded Python) and run no Python code meanwhile.
unsafe impl Sync for PyArray {}

impl PyArray {
    /// Wraps an array.
    #[inline]
    pub fn new(array: Array) -> PyArray {
        PyArray { handle: UnsafeCell::new(array) }
    }

    /// The array.
    #[inline]
    pub fn get(&self, _: Python<'_>) -> Array {
        // SAFETY: the interpreter lock is held, and cloning runs no Python code.
        unsafe { (*self.handle.get()).clone() }
    }

    /// The array, without a new handle.
    ///
    /// # Safety
    /// While the reference lives, no Python code may run and nobody may call `set`.
    #[inline]
    pub unsafe fn borrow<'a>(&'a self, _: Python<'a>) -> &'a Array {
        // SAFETY: the caller's promise, and the interpreter lock is held.
        unsafe { &*self.handle.get() }
    }

    /// Makes it another array: what an in-place operation does.
    pub fn set(&self, _: Python<'_>, array: Array) {
        // SAFETY: the interpreter lock is held and `replace` runs no code of others;
        // the former array is dropped after the cell is whole again.
        let former = unsafe { std::mem::replace(&mut *self.handle.get(), array) };
        drop(former);
    }
}

impl From<Array> for PyArray {
    fn from(array: Array) -> PyArray {
        PyArray::new(array)
    }
}

/// Evaluates an array with the interpreter lock released, if that is not done yet.
pub fn evaluate(py: Python<'_>, array: &Array) -> Res<()> {
    if array.is_available() {
        // Fast.
        return Ok(array.eval()?);
    }
    Ok(py.detach(|| array.eval())?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyArray>()?;
    m.add_class::<attributes::ArrayIterator>()?;
    m.add_class::<indexing::ArrayAt>()?;
    export::register(m)
}

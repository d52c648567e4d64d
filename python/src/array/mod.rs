//! The class `array`.

mod attributes;
mod export;
mod indexing;
pub mod make;
mod memory;
mod nested;
mod numpy;
mod object;
#[allow(unsafe_op_in_unsafe_fn)] // PyO3's glue for operators, seen through a macro.
mod operators;

use crate::error::Res;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use ultramarine::{Array, SmallEvaluation};

pub use export::item;

#[cfg(Py_GIL_DISABLED)]
compile_error!("the handle of an array relies on the interpreter lock");

/// Lazy n-dimensional array.
///
/// `array(val, dtype=None, *, copy=None, device=None)` makes one of, in this order:
///
/// 1. an array;
/// 2. a Python number (NumPy's float64 and complex128 scalars are such); a list or a tuple of
///    numbers, arrays and sequences;
/// 3. a DLPack capsule;
/// 4. an object whose type has `__dlpack__`: arrays of NumPy, PyTorch, JAX, pyarrow and others;
/// 5. an object with the buffer protocol (bytes, memoryview, array.array, ctypes), then one
///    whose type has `__array__` (a pandas Series);
/// 6. an object whose type has `__mlx_array__`;
/// 7. any other sequence, as a range: `__len__` and `__getitem__`, no text, no mapping.
///
/// Where a producer (4) cannot give its memory, the later ones of 4 and 5 are asked. Without a
/// dtype float64 becomes float32 and complex128 complex64, as in MLX; `asarray` keeps float64.
///
/// Operators and functions that take numbers beside arrays take objects of 3 to 6, too, on
/// either side. They are copied at the call, so that later writes by their owner do not matter.
/// Functions, and operators with the object on the right, convert it to the dtype of the array
/// beside it (floats beside integers lose their fraction, as in MLX). With the object on the left,
/// and in comparisons, no value is lost: it is what `array(object)` makes (float64 beside float64
/// stays float64), and the dtypes are promoted. The result is an array, also of
/// `numpy_array + array` (in MLX a NumPy array) and of pandas objects on the left.
/// `numpy_array += array` binds the name to a new array and leaves NumPy's as it was;
/// `numpy_array[...] += array` writes into it. NumPy's functions (`numpy.add(x, y)`) give NumPy
/// arrays, its reductions (`numpy.sum(x)`) what the method of that name gives.
///
/// Integers and slices in an index are checked at the call. What index arrays hold is known when
/// they are evaluated: reading with an index out of bounds gives the first or the last element,
/// whichever is nearer, and writing there (`x[i] = v`, `x.at[i].add(v)`) does nothing. In a process
/// that started with `ULTRAMARINE_VALIDATE=1` both are an IndexError when the result is evaluated.
///
/// Args:
///     val (ArrayLike | Sequence[Any]): Object to make the array of.
///     dtype (Dtype | None): Dtype of the elements.
///     copy (bool | None): True always copies, False never: it raises where a copy is needed.
///         None copies foreign memory; an array, which never changes, it does not copy.
///     device (Device | DeviceType | None): Device of the array; by default where the memory is, the
///         host for Python's numbers.
///
/// Raises:
///     ValueError: If no array can be made of `val`.
///     InterchangeError: (a ValueError and a BufferError) If a copy is needed and `copy` is
///         False, or the memory is not accessible.
///
/// Example:
///     >>> mx.array([[1, 2], [3, 4]]) * 2.0
///     array([[2, 4],
///            [6, 8]], dtype=float32)
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

    /// Evaluates the array with the interpreter lock released, if that is not done yet.
    pub fn evaluate(&self, py: Python<'_>) -> Res<()> {
        // SAFETY: these run no Python code.
        let (ready, small) = unsafe {
            let array = self.borrow(py);
            (array.is_available(), SmallEvaluation::of(array))
        };
        // SAFETY: as above, after an evaluation that may have run some.
        if ready || small.run() && unsafe { self.borrow(py).is_available() } {
            return Ok(());
        }
        evaluate(py, &self.get(py))
    }

    /// The array, without a new handle.
    ///
    /// # Safety
    /// While the reference lives, no Python code may run and `set` may not be called.
    #[inline]
    pub unsafe fn borrow<'a>(&'a self, _: Python<'a>) -> &'a Array {
        // SAFETY: the caller's promise, and the interpreter lock is held.
        unsafe { &*self.handle.get() }
    }

    /// Where the array is, for borrowing by other languages: as [`PyArray::borrow`], it is good until Python code
    /// runs.
    #[inline]
    pub fn place(&self) -> *mut Array {
        self.handle.get()
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
    // Evaluations that take less time than releasing the lock keep it.
    if array.is_available() || SmallEvaluation::of(array).run() {
        return Ok(array.eval()?);
    }
    Ok(py.detach(|| array.eval())?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyArray>()?;
    object::learn(m.py())?;
    m.add_class::<attributes::ArrayIterator>()?;
    m.add_class::<indexing::ArrayAt>()?;
    export::register(m)
}

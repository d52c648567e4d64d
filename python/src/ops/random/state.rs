//! The random state of the calling thread as a Python object.

use super::made;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::Res;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use ultramarine::random;

/// Random state of the calling thread, as a list of one key.
#[pyclass(name = "_RandomState", module = "ultramarine.random", frozen, sequence)]
pub struct RandomState;

#[pymethods]
impl RandomState {
    fn __len__(&self) -> usize {
        1
    }

    fn __getitem__(&self, index: isize) -> Res<PyArray> {
        RandomState::check(index)?;
        made(None, random::state)
    }

    fn __setitem__(&self, index: isize, key: ArrayArg) -> Res<()> {
        RandomState::check(index)?;
        Ok(random::set_state(&key.0)?)
    }

    fn __repr__(&self, py: Python<'_>) -> Res<String> {
        let key = Bound::new(py, made(None, random::state)?)?;
        Ok(format!("[{}]", key.repr()?))
    }
}

impl RandomState {
    fn check(index: isize) -> Res<()> {
        match index {
            0 | -1 => Ok(()),
            _ => Err(PyIndexError::new_err("The state is a list of one key. Use index 0.").into()),
        }
    }
}

//! Groups of processes: the part of `ultramarine.distributed` that is not Python.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::distributed::{self, Group};

/// Group of processes, as `ultramarine.distributed.Group` has it.
#[pyclass(name = "_Group", module = "ultramarine._core", frozen)]
pub struct PyGroup(Group);

#[pymethods]
impl PyGroup {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn backend(&self) -> Option<&'static str> {
        self.0.backend()
    }

    fn split(&self, py: Python<'_>, color: i32, key: i32) -> Res<PyGroup> {
        Ok(PyGroup(py.detach(|| self.0.split(color, key))?))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyGroup>().is_ok_and(|group| group.get().0 == self.0)
    }

    /// The operation of that name.
    #[pyo3(signature = (name, x, stream))]
    fn collective(
        &self,
        py: Python<'_>,
        name: &str,
        x: ArrayArg,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let operation = match name {
            "all_sum" => distributed::all_sum,
            "all_max" => distributed::all_max,
            "all_min" => distributed::all_min,
            "all_gather" => distributed::all_gather,
            "sum_scatter" => distributed::sum_scatter,
            _ => {
                return Err(value(format!(
                    "[distributed] There is no operation {name}. Call a function of mx.distributed."
                )));
            }
        };
        // Another thread may have the group, and need the interpreter.
        Ok(PyArray::new(py.detach(|| on(stream, || operation(&x.0, &self.0)))?))
    }

    #[pyo3(signature = (x, to, stream))]
    fn send(
        &self,
        py: Python<'_>,
        x: ArrayArg,
        to: i64,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        Ok(PyArray::new(py.detach(|| on(stream, || distributed::send(&x.0, to, &self.0)))?))
    }

    #[pyo3(signature = (shape, dtype, from_rank, stream))]
    fn recv(
        &self,
        py: Python<'_>,
        shape: Vec<usize>,
        dtype: DtypeArg,
        from_rank: i64,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let receive = || distributed::recv(&shape, *dtype, from_rank, &self.0);
        Ok(PyArray::new(py.detach(|| on(stream, receive))?))
    }

    #[pyo3(signature = (x, from_rank, stream))]
    fn recv_like(
        &self,
        py: Python<'_>,
        x: ArrayArg,
        from_rank: i64,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let receive = || distributed::recv_like(&x.0, from_rank, &self.0);
        Ok(PyArray::new(py.detach(|| on(stream, receive))?))
    }
}

#[pyfunction]
fn _distributed_is_available(py: Python<'_>, backend: &str) -> bool {
    py.detach(|| distributed::is_available(backend))
}

#[pyfunction]
fn _distributed_init(py: Python<'_>, strict: bool, backend: &str) -> Res<PyGroup> {
    Ok(PyGroup(py.detach(|| distributed::init(strict, backend))?))
}

#[pyfunction]
fn _distributed_end_at_exit(py: Python<'_>, reason: &str) {
    py.detach(|| distributed::end_at_exit(reason));
}

#[pyfunction]
fn _distributed_finish(py: Python<'_>) -> Res<()> {
    Ok(py.detach(distributed::finish)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyGroup>()?;
    crate::functions!(m: _distributed_is_available _distributed_init _distributed_end_at_exit _distributed_finish);
    Ok(())
}

//! Compiled functions.

mod key;
mod state;

use crate::array::PyArray;
use crate::error::{Fail, Res};
use crate::transforms::callable;
use crate::tree::Structure;
use key::Words;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use state::{State, Template};
use std::sync::Arc;
use ultramarine::Array;
use ultramarine::transforms::{
    self,
    compile::{Traced, Traces},
};

/// Results of a trace besides the graph.
struct Kept {
    /// Positional and keyword arguments: keeps alive what the key knows by identity.
    arguments: Structure,
    /// Structure that the function returned.
    returned: Structure,
    /// Number of results in there; the others are in `outputs`.
    own: usize,
    /// Structure of the captured outputs after the call.
    outputs: Option<Template>,
}

// A function that is compiled. (Its documentation is the function's.)
#[pyclass(name = "_Compiled", module = "ultramarine", frozen, weakref)]
pub struct Compiled {
    function: Py<PyAny>,
    inputs: State,
    outputs: State,
    shapeless: bool,
    traces: Traces<Kept>,
}

crate::seen_through!(Compiled);

#[pymethods]
impl Compiled {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyAny>> {
        if !transforms::compiles_here() {
            return self.uncompiled(py, args, kwargs);
        }
        let (mut words, mut arrays) = (Words::new(), Vec::new());
        key::arguments(args, kwargs, &mut words, &mut arrays)?;
        self.inputs.read(py, &mut words, &mut arrays)?;
        let call = || self.traces.call(&words, &arrays, self.shapeless);
        // New sizes have passes run, which may compute numbers on a stream whose work needs the interpreter.
        let called = match if self.shapeless { py.detach(call) } else { call() }? {
            Some(called) => called,
            None => self.trace(py, args, kwargs, &words, &arrays)?,
        };
        let (results, trace) = called;
        let kept = &trace.1;
        let (own, state) = results.split_at(kept.own);
        if let Some(outputs) = &kept.outputs {
            self.outputs.write(py, outputs, state)?;
        }
        kept.returned.filled(py, own)
    }

    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__doc__")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<compile of {}>", self.function.bind(py).repr()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        self.inputs.traverse(&visit)?;
        self.outputs.traverse(&visit)?;
        self.traces.try_each(|kept| {
            let Kept { arguments, returned, outputs, .. } = kept;
            arguments.traverse(&visit)?;
            returned.traverse(&visit)?;
            outputs.iter().try_for_each(|o| o.traverse(&visit))
        })
    }
}

type Called = (Vec<Array>, Arc<(Traced, Kept)>);

/// The structure of a call's arguments, and the arrays among them.
fn structure<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Res<(Structure, Vec<Array>)> {
    let kwargs = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
    Structure::of(PyTuple::new(py, [args.clone().into_any(), kwargs.into_any()])?.as_any())
}

/// Arguments of a structure with these arrays.
fn filled<'py>(
    py: Python<'py>,
    structure: &Structure,
    arrays: &[Array],
) -> Res<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let both = structure.filled(py, arrays)?;
    let args = both.get_item(0)?.cast_into::<PyTuple>().map_err(PyErr::from)?;
    Ok((args, both.get_item(1)?.cast_into::<PyDict>().map_err(PyErr::from)?))
}

impl Compiled {
    /// Calls the function as it is, with containers of the call's own as when it is traced.
    fn uncompiled<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyAny>> {
        let (arguments, arrays) = structure(py, args, kwargs)?;
        let (args, kwargs) = filled(py, &arguments, &arrays)?;
        Ok(self.function.bind(py).call(args, Some(&kwargs))?)
    }

    /// Calls the function on arrays without values, and then the graph that it built.
    #[cold]
    fn trace<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        words: &[u64],
        arrays: &[Array],
    ) -> Res<Called> {
        let (arguments, given) = structure(py, args, kwargs)?;
        let given = given.len();
        let mut kept = None;
        let call = |stand_ins: &[Array]| -> Res<Vec<Array>> {
            let (own, captured) = stand_ins.split_at(given);
            let (args, kwargs) = filled(py, &arguments, own)?;
            let (inputs, outputs) = (&self.inputs, &self.outputs);
            let ((returned, mut results), after) =
                state::within(py, inputs, outputs, captured, || {
                    Structure::of(&self.function.bind(py).call(args, Some(&kwargs))?)
                })?;
            let own = results.len();
            let outputs = after.map(|(template, arrays)| {
                results.extend(arrays);
                template
            });
            kept = Some((returned, own, outputs));
            Ok(results)
        };
        let (traced, reusable) = Traced::new::<Fail>(call, arrays, self.shapeless)?;
        let (returned, own, outputs) =
            kept.ok_or_else(|| crate::error::value("[compile] The function was not called."))?;
        // It may compute numbers, on a stream whose work needs the interpreter.
        py.detach(|| traced.prepare());
        let results = py.detach(|| traced.call(arrays))?;
        let trace = Arc::new((traced, Kept { arguments, returned, own, outputs }));
        if reusable {
            self.traces.keep(words, arrays, self.shapeless, trace.clone());
        }
        Ok((results, trace))
    }
}

/// Returns a function that does what `fun` does, by a graph that is recorded at the first call.
///
/// `fun` is called once for each set of shapes and dtypes of the arrays among its arguments,
/// and of constants (numbers, strings, None) among them, on arrays without values. Later calls
/// run the graph. So it should be pure: arrays that it closes over are constants. The 256 graphs
/// that were called last are kept.
///
/// Args:
///     fun (Callable[P, R]): Function of arrays, and trees of them.
///     inputs (Any): List or dictionary, nested or not, of arrays that are arguments, too;
///         `random.state` may be among them.
///     outputs (Any): List or dictionary of arrays that are results, too, which each call puts
///         there.
///     shapeless (bool): Records no other graph for other sizes.
///
/// Returns:
///     Callable[P, R]: Function with the arguments and results of `fun`.
///
/// Example:
///     >>> mx.compile(lambda x: mx.exp(-x) + 1)(mx.zeros(2))
///     array([2, 2], dtype=float32)
#[pyfunction]
#[pyo3(signature = (fun, inputs=None, outputs=None, shapeless=false))]
fn compile(
    fun: &Bound<'_, PyAny>,
    inputs: Option<Py<PyAny>>,
    outputs: Option<Py<PyAny>>,
    shapeless: bool,
) -> Res<Compiled> {
    Ok(Compiled {
        function: callable("compile", fun)?,
        inputs: State(inputs),
        outputs: State(outputs),
        shapeless,
        traces: Traces::default(),
    })
}

/// Lets compiled functions run their graphs.
///
/// They do unless the environment variable `ULTRAMARINE_DISABLE_COMPILE` is set; see
/// `disable_compile`.
///
/// Example:
///     >>> mx.disable_compile()
///     >>> mx.enable_compile()
///     >>> mx.compile(lambda x: x + 1)(mx.array(1))
///     array(2, dtype=int32)
#[pyfunction]
fn enable_compile() {
    transforms::set_compile(true);
}

/// Makes compiled functions run uncompiled, everywhere, until `enable_compile`.
///
/// Example:
///     >>> mx.disable_compile()
///     >>> mx.compile(lambda x: x + 1)(mx.array(1))
///     array(2, dtype=int32)
///     >>> mx.enable_compile()
#[pyfunction]
fn disable_compile() {
    transforms::set_compile(false);
}

/// An array as Python has it.
fn wrapped<'py>(py: Python<'py>, array: &Array) -> Res<Bound<'py, PyAny>> {
    Ok(Bound::new(py, PyArray::new(array.clone()))?.into_any())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Compiled>()?;
    crate::functions!(m: compile enable_compile disable_compile);
    Ok(())
}

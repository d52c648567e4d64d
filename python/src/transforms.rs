//! Function transforms, but for `vmap` (vmap.rs).

use crate::array::PyArray;
use crate::convert::{Arrays, Ints, as_array};
use crate::error::{Fail, Res, type_, type_name, value};
use crate::substitution::Substitution;
use crate::tree::Structure;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use ultramarine::{Array, Scalar, transforms};

/// The arguments that a gradient is with respect to.
struct Wanted {
    op: &'static str,
    positions: Vec<usize>,
    names: Vec<String>,
}

enum Kind {
    Grad(Wanted),
    ValueAndGrad(Wanted),
    Vmap { in_axes: Py<PyAny>, out_axes: Py<PyAny> },
    Checkpoint,
}

/// A function made of another by a transform.
#[pyclass(name = "_Transformed", module = "ultramarine", frozen, weakref)]
pub struct Transformed {
    function: Py<PyAny>,
    kind: Kind,
}

crate::seen_through!(Transformed);

impl Transformed {
    /// Makes the callable that `vmap` returns.
    pub fn vmap(function: Py<PyAny>, in_axes: Py<PyAny>, out_axes: Py<PyAny>) -> Transformed {
        Transformed { function, kind: Kind::Vmap { in_axes, out_axes } }
    }
}

#[pymethods]
impl Transformed {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyAny>> {
        let function = self.function.bind(py);
        match &self.kind {
            Kind::Grad(wanted) => Ok(gradient(function, wanted, args, kwargs, false)?.1),
            Kind::ValueAndGrad(wanted) => {
                let both = gradient(function, wanted, args, kwargs, true)?;
                Ok(PyTuple::new(py, [both.0, both.1])?.into_any())
            }
            Kind::Checkpoint => crate::custom::checkpointed(function, args, kwargs),
            Kind::Vmap { in_axes, out_axes } => {
                if kwargs.is_some_and(|k| !k.is_empty()) {
                    return Err(type_(
                        "[vmap] Keyword arguments are not supported. Pass them by position, or bind them with functools.partial.",
                    ));
                }
                crate::vmap::called(function, in_axes.bind(py), out_axes.bind(py), args)
            }
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = match &self.kind {
            Kind::Grad(_) => "grad",
            Kind::ValueAndGrad(_) => "value_and_grad",
            Kind::Vmap { .. } => "vmap",
            Kind::Checkpoint => "checkpoint",
        };
        Ok(format!("<{name} of {}>", self.function.bind(py).repr()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        if let Kind::Vmap { in_axes, out_axes } = &self.kind {
            visit.call(in_axes)?;
            visit.call(out_axes)?;
        }
        Ok(())
    }
}

pub fn callable(op: &str, function: &Bound<'_, PyAny>) -> Res<Py<PyAny>> {
    if function.is_callable() {
        return Ok(function.clone().unbind());
    }
    Err(type_(format!("{op}: expected a callable, got {}", type_name(function))))
}

/// One name or a sequence of them.
pub struct Names(Vec<String>);

impl FromPyObject<'_, '_> for Names {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return Ok(Names(vec![object.extract()?]));
        }
        object.try_iter()?.map(|n| n?.extract()).collect::<PyResult<_>>().map(Names)
    }
}

fn wanted(op: &'static str, argnums: Option<Ints>, argnames: Option<Names>) -> Res<Wanted> {
    let names = argnames.map_or_else(Vec::new, |n| n.0);
    let numbers = match argnums {
        Some(n) => n.0,
        None if names.is_empty() => vec![0],
        None => Vec::new(),
    };
    if numbers.is_empty() && names.is_empty() {
        return Err(value(format!(
            "[{op}] Gradient wrt no argument requested. Pass argnums or argnames."
        )));
    }
    let mut positions = Vec::new();
    for n in numbers {
        let position = usize::try_from(n).map_err(|_| {
            value(format!("[{op}] Can't compute the gradient of negative argument index {n}. Count arguments from 0."))
        })?;
        if positions.contains(&position) {
            return Err(value(format!(
                "[{op}] Duplicate argument index {n} is not allowed. Name it once."
            )));
        }
        positions.push(position);
    }
    positions.sort_unstable();
    let mut names = names;
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(value(format!(
            "[{op}] Duplicate argument names are not allowed. Name each once."
        )));
    }
    Ok(Wanted { op, positions, names })
}

/// Returns a function that computes the gradient of `fun`.
///
/// `fun` returns an array without dimensions. The gradient has the structure of the argument,
/// which may be a tree of arrays. Several `argnums` give a tuple, in the order of the arguments;
/// with `argnames` it is a pair of that and a dictionary.
///
/// `fun` is called with the caller's own lists and dictionaries. Their arrays are replaced for the
/// call; what `fun` assigns to them stays.
///
/// Args:
///     fun (Callable[P, R]): Function to differentiate.
///     argnums (int | Sequence[int] | None): Positional arguments to differentiate with respect
///         to; by default the first, or none if there are `argnames`.
///     argnames (str | Sequence[str]): Keyword arguments to differentiate with respect to.
///
/// Returns:
///     Callable[P, Any]: Function with the arguments of `fun`, which returns the gradient.
///
/// Raises:
///     ValueError: If an argument is named twice or is negative; at a call, if it is not there, has
///         no array or anything else in it, or `fun` returns something else.
///
/// Example:
///     >>> mx.grad(lambda x: (x * x).sum())(mx.array([1.0, 2.0]))
///     array([2, 4], dtype=float32)
#[pyfunction]
#[pyo3(signature = (fun, argnums=None, argnames=None),
       text_signature = "(fun, argnums=None, argnames=[])")]
fn grad(
    fun: &Bound<'_, PyAny>,
    argnums: Option<Ints>,
    argnames: Option<Names>,
) -> Res<Transformed> {
    let function = callable("grad", fun)?;
    Ok(Transformed { function, kind: Kind::Grad(wanted("grad", argnums, argnames)?) })
}

/// Returns a function that computes the value of `fun` and its gradient; see `grad`.
///
/// `fun` may return a tuple whose first element is the array to differentiate.
///
/// Args:
///     fun (Callable[P, R]): Function to differentiate.
///     argnums (int | Sequence[int] | None): Positional arguments to differentiate with respect
///         to; by default the first, or none if there are `argnames`.
///     argnames (str | Sequence[str]): Keyword arguments to differentiate with respect to.
///
/// Returns:
///     Callable[P, tuple[R, Any]]: Function with the arguments of `fun`, which returns a pair:
///         the value and the gradient.
///
/// Raises:
///     ValueError: If an argument is named twice or is negative; at a call, if it is not there, has
///         no array or anything else in it, or `fun` returns something else.
///
/// Example:
///     >>> mx.value_and_grad(lambda x: x * x)(mx.array(3.0))
///     (array(9, dtype=float32), array(6, dtype=float32))
#[pyfunction]
#[pyo3(signature = (fun, argnums=None, argnames=None),
       text_signature = "(fun, argnums=None, argnames=[])")]
fn value_and_grad(
    fun: &Bound<'_, PyAny>,
    argnums: Option<Ints>,
    argnames: Option<Names>,
) -> Res<Transformed> {
    let function = callable("value_and_grad", fun)?;
    let wanted = wanted("value_and_grad", argnums, argnames)?;
    Ok(Transformed { function, kind: Kind::ValueAndGrad(wanted) })
}

/// The array in a function's result that is differentiated.
fn loss(op: &str, result: &Bound<'_, PyAny>, tuples: bool) -> Res<Array> {
    if let Some(a) = as_array(result) {
        return Ok(a.get().get(result.py()));
    }
    if let Ok(tuple) = result.cast::<PyTuple>()
        && tuples
        && !tuple.is_empty()
        && let Some(a) = as_array(&tuple.get_item(0)?)
    {
        return Ok(a.get().get(result.py()));
    }
    let what = if tuples {
        "either a scalar array or a tuple with the first value being a scalar array"
    } else {
        "a scalar array"
    };
    Err(value(format!(
        "[{op}] The return value of the function whose gradient we want to compute should be \
         {what}; but {} was returned. Return mx.array, for example a mean or sum.",
        type_name(result)
    )))
}

/// The result of `function`, and its gradients.
fn gradient<'py>(
    function: &Bound<'py, PyAny>,
    wanted: &Wanted,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    tuples: bool,
) -> Res<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (py, op) = (function.py(), wanted.op);
    let mut trees = Vec::new();
    for &position in &wanted.positions {
        if position >= args.len() {
            return Err(value(format!(
                "[{op}] Can't compute the gradient of argument index {position} because the \
                 function is called with only {} positional arguments. Pass it by position, or name it in argnames.",
                args.len()
            )));
        }
        trees.push(args.get_item(position)?);
    }
    for name in &wanted.names {
        let given = match kwargs {
            Some(kwargs) => kwargs.get_item(name)?,
            None => None,
        };
        trees.push(given.ok_or_else(|| {
            value(format!(
                "[{op}] Can't compute the gradient of keyword argument '{name}' because the \
                 function is not called with it. Pass it by keyword, or use argnums."
            ))
        })?);
    }
    let mut primals = Vec::new();
    let structures = trees.iter().map(|tree| Structure::of_arrays(tree, &mut primals));
    let structures = structures.collect::<Res<Vec<_>>>()?;
    if primals.is_empty() {
        return Err(value(format!(
            "[{op}] Must specify at least one argument: there is no array in the arguments that are differentiated. Pass an array."
        )));
    }

    let mut result = None;
    let run = |traced: &[Array]| -> Res<Vec<Array>> {
        let mut traced = traced.iter().cloned();
        let mut next = || {
            traced.next().ok_or_else(|| value("[tree_unflatten] The structure of a tree changed during the call. Do not add or remove items in the function."))
        };
        let mut substitution = Substitution::default();
        let mut given: Vec<Bound<'py, PyAny>> = args.iter().collect();
        let named = kwargs.map(|k| k.copy()).transpose()?;
        let (by_position, by_name) = trees.split_at(wanted.positions.len());
        for (position, tree) in wanted.positions.iter().zip(by_position) {
            given[*position] = substitution.differentiated(tree, &mut next)?;
        }
        let mut keywords = Vec::new();
        for (name, tree) in wanted.names.iter().zip(by_name) {
            keywords.push((name, substitution.differentiated(tree, &mut next)?));
        }
        for (position, argument) in given.iter_mut().enumerate() {
            if wanted.positions.binary_search(&position).is_err() {
                *argument = substitution.other(argument)?;
            }
        }
        if let Some(named) = &named {
            for (name, argument) in named.copy()?.iter() {
                let differentiated = wanted.names.iter().any(|n| name.eq(n).unwrap_or(false));
                if !differentiated {
                    named.set_item(name, substitution.other(&argument)?)?;
                }
            }
            for (name, argument) in keywords {
                named.set_item(name, argument)?;
            }
        }
        let returned = function.call(PyTuple::new(py, given)?, named.as_ref())?;
        substitution.restore()?;
        let loss = loss(op, &returned, tuples)?;
        result = Some(returned);
        Ok(vec![loss])
    };
    let one = |outputs: &[Array]| -> Res<Vec<Array>> {
        let dtype = outputs[0].dtype();
        Ok(vec![Array::scalar(Scalar::from_i64(dtype, 1))])
    };
    let (_, gradients) = transforms::vjp_with(run, &primals, one)?;

    let mut gradients = gradients.iter();
    let made = structures.iter().map(|s| s.filled_from(py, &mut gradients));
    let mut made = made.collect::<Res<Vec<_>>>()?;
    let named = made.split_off(wanted.positions.len());
    let positional = match made.len() {
        0 => py.None().into_bound(py),
        1 => made.remove(0),
        _ => PyTuple::new(py, made)?.into_any(),
    };
    let result = result.unwrap_or_else(|| py.None().into_bound(py));
    if wanted.names.is_empty() {
        return Ok((result, positional));
    }
    let dict = PyDict::new(py);
    for (name, gradient) in wanted.names.iter().zip(named) {
        dict.set_item(name, gradient)?;
    }
    Ok((result, PyTuple::new(py, [positional, dict.into_any()])?.into_any()))
}

/// Calls a function of arrays, which returns an array or a list or tuple of arrays.
fn call(function: &Bound<'_, PyAny>, arguments: &[Array]) -> Res<Vec<Array>> {
    let py = function.py();
    let arguments = PyTuple::new(py, arguments.iter().cloned().map(PyArray::new))?;
    let returned = function.call1(arguments)?;
    if let Some(a) = as_array(&returned) {
        return Ok(vec![a.get().get(py)]);
    }
    match returned.extract::<Arrays>() {
        Ok(arrays) if !returned.is_instance_of::<PyDict>() => Ok(arrays.0),
        _ => Err(type_(format!(
            "the function should return an array or a list of arrays, but {} was returned. Return one of these.",
            type_name(&returned)
        ))),
    }
}

/// Outputs and derivatives.
type Pair = (Vec<PyArray>, Vec<PyArray>);

fn pair((outputs, products): (Vec<Array>, Vec<Array>)) -> Pair {
    (crate::ops::list(outputs), crate::ops::list(products))
}

/// Computes a function and the products of cotangents with its Jacobian: reverse mode.
///
/// Args:
///     fun (Callable[..., Any]): Function of arrays that returns an array, or a list or tuple
///         of arrays.
///     primals (Sequence[array]): Arguments of the function.
///     cotangents (Sequence[array]): One array for each output, in its shape.
///
/// Returns:
///     tuple[list[array], list[array]]: Outputs; and the products, one for each of `primals`.
///
/// Raises:
///     ValueError: If the cotangents do not fit the outputs.
///
/// Example:
///     >>> mx.vjp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])
///     ([array(9, dtype=float32)], [array(6, dtype=float32)])
#[pyfunction]
fn vjp(fun: &Bound<'_, PyAny>, primals: Arrays, cotangents: Arrays) -> Res<Pair> {
    Ok(pair(transforms::vjp_with::<Fail>(|a| call(fun, a), &primals.0, |_| Ok(cotangents.0))?))
}

/// Computes a function and the products of its Jacobian with tangents: forward mode.
///
/// Args:
///     fun (Callable[..., Any]): Function of arrays that returns an array, or a list or tuple
///         of arrays.
///     primals (Sequence[array]): Arguments of the function.
///     tangents (Sequence[array]): One array for each of `primals`, in its shape.
///
/// Returns:
///     tuple[list[array], list[array]]: Outputs; and the products, one for each output.
///
/// Raises:
///     ValueError: If the tangents do not fit the primals.
///
/// Example:
///     >>> mx.jvp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])
///     ([array(9, dtype=float32)], [array(6, dtype=float32)])
#[pyfunction]
fn jvp(fun: &Bound<'_, PyAny>, primals: Arrays, tangents: Arrays) -> Res<Pair> {
    Ok(pair(transforms::jvp_with::<Fail>(|a| call(fun, a), &primals.0, &tangents.0)?))
}

/// Returns a function that computes `fun`, and computes it again for a gradient.
///
/// Values between arguments and results are not kept: less memory for more work. Arguments
/// and results may be trees, of which `fun` gets copies. Gradients are those of `fun`, also with
/// respect to arrays that it closes over.
///
/// Args:
///     fun (Callable[P, R]): Function of arrays.
///
/// Returns:
///     Callable[P, R]: Function with the arguments and results of `fun`.
///
/// Example:
///     >>> mx.grad(mx.checkpoint(lambda x: mx.sin(x) * x))(mx.array(0.0))
///     array(0, dtype=float32)
#[pyfunction]
fn checkpoint(fun: &Bound<'_, PyAny>) -> Res<Transformed> {
    Ok(Transformed { function: callable("checkpoint", fun)?, kind: Kind::Checkpoint })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Transformed>()?;
    crate::functions!(m: grad value_and_grad vjp jvp checkpoint);
    Ok(())
}

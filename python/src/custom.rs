//! Functions with transforms of their own, and checkpoints.

use crate::convert::as_array;
use crate::error::{Res, type_name, value};
use crate::transforms::callable;
use crate::tree::{self, Structure};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine::{Array, Error, transforms};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call under way: the function, and how arguments and results are built.
struct Call {
    function: Py<PyAny>,
    /// Of a tuple: positional arguments, keyword arguments.
    arguments: Structure,
    /// Of what the function returned.
    returned: Mutex<Option<Structure>>,
}

/// Positional arguments, keyword arguments.
type Arguments<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

impl Call {
    /// The call, and the arrays among its arguments.
    fn new<'py>(
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<(Arc<Call>, Vec<Array>)> {
        let py = function.py();
        let kwargs = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
        let both = PyTuple::new(py, [args.clone().into_any(), kwargs.into_any()])?;
        let (arguments, arrays) = Structure::of(&both)?;
        let function = function.clone().unbind();
        Ok((Arc::new(Call { function, arguments, returned: Mutex::new(None) }), arrays))
    }

    fn arguments<'py>(&self, py: Python<'py>, arrays: &[Array]) -> Res<Arguments<'py>> {
        let both = self.arguments.filled(py, arrays)?;
        let part = |i: usize| both.get_item(i);
        let args = part(0)?.cast_into::<PyTuple>().map_err(PyErr::from)?;
        Ok((args, part(1)?.cast_into::<PyDict>().map_err(PyErr::from)?))
    }

    /// Calls the function with these arrays in its arguments.
    fn run(&self, arrays: &[Array]) -> ultramarine::Result<Vec<Array>> {
        let run = |py: Python<'_>| -> Res<Vec<Array>> {
            let (args, kwargs) = self.arguments(py, arrays)?;
            let made = self.function.bind(py).call(args, Some(&kwargs))?;
            let (structure, outputs) = Structure::of(&made)?;
            *lock(&self.returned) = Some(structure);
            Ok(outputs)
        };
        Python::attach(run).map_err(Error::from)
    }

    fn returned(&self, py: Python<'_>) -> Res<Structure> {
        let returned = lock(&self.returned).as_ref().map(|s| s.share(py));
        returned.ok_or_else(|| value("[custom_function] The function was not called."))
    }

    /// The argument of a rule for the positional arguments: a tuple, or its only item.
    fn given<'py>(args: Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
        match args.cast::<PyTuple>() {
            Ok(tuple) if tuple.len() == 1 => Ok(tuple.get_item(0)?),
            _ => Ok(args),
        }
    }

    /// Positional arguments with something in the place of each array.
    fn beside<'py, T: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        values: impl IntoIterator<Item = T>,
    ) -> Res<Bound<'py, PyAny>>
    where
        T::Error: Into<PyErr>,
    {
        Call::given(self.arguments.with(py, values)?.get_item(0)?)
    }

    fn reverse(
        &self,
        rule: &Py<PyAny>,
        primals: &[Array],
        cotangents: &[Array],
        outputs: &[Array],
    ) -> Res<Vec<Option<Array>>> {
        Python::attach(|py| {
            let (args, kwargs) = self.arguments(py, primals)?;
            let returned = self.returned(py)?;
            let given = [
                Call::given(args.clone().into_any())?,
                returned.filled(py, cotangents)?,
                returned.filled(py, outputs)?,
            ];
            let made = rule.bind(py).call(PyTuple::new(py, given)?, Some(&kwargs))?;
            let (structure, _) = Structure::of(&args)?;
            let mut all = aligned("vjp", &made, &structure.leaves(py)?, "arguments")?;
            // Keyword arguments have no cotangents.
            all.resize(primals.len(), None);
            Ok(all)
        })
    }

    fn forward(
        &self,
        rule: &Py<PyAny>,
        primals: &[Array],
        tangents: &[Option<Array>],
    ) -> Res<Vec<Option<Array>>> {
        Python::attach(|py| {
            let args = self.only_positional(py, "jvp", primals)?;
            let tangents = tangents.iter().map(|t| t.clone().map(crate::array::PyArray::new));
            let given = [Call::given(args.into_any())?, self.beside(py, tangents)?];
            let made = rule.bind(py).call1(PyTuple::new(py, given)?)?;
            aligned("jvp", &made, &self.returned(py)?.leaves(py)?, "outputs")
        })
    }

    fn batched(
        &self,
        rule: &Py<PyAny>,
        inputs: &[Array],
        axes: &[Option<usize>],
    ) -> Res<Vec<(Array, Option<isize>)>> {
        Python::attach(|py| {
            let args = self.only_positional(py, "vmap", inputs)?;
            let given = [Call::given(args.into_any())?, self.beside(py, axes.iter().copied())?];
            let made = rule.bind(py).call1(PyTuple::new(py, given)?)?;
            let pair = made.cast::<PyTuple>().ok().filter(|t| t.len() == 2).ok_or_else(|| {
                value(format!(
                    "[custom_function] The vmap rule should return a tuple of outputs and their \
                     axes, but {} was returned.",
                    type_name(&made)
                ))
            })?;
            let (outputs, axes_of) = (pair.get_item(0)?, pair.get_item(1)?);
            let mut axes = Vec::new();
            tree::axes("the vmap rule", &outputs, &axes_of, &mut axes)?;
            let (structure, arrays) = Structure::of(&outputs)?;
            let leaves = structure.leaves(py)?;
            let axes =
                axes.into_iter().zip(leaves).filter_map(|(axis, array)| array.then_some(axis));
            Ok(arrays.into_iter().zip(axes).collect())
        })
    }

    fn only_positional<'py>(
        &self,
        py: Python<'py>,
        rule: &str,
        arrays: &[Array],
    ) -> Res<Bound<'py, PyTuple>> {
        let (args, kwargs) = self.arguments(py, arrays)?;
        if kwargs.is_empty() {
            return Ok(args);
        }
        Err(value(format!(
            "[custom_function] The function may have positional arguments only when its {rule} \
             rule is used. Pass them by position."
        )))
    }
}

/// The derivatives that a rule returned, one for each array of a tree with such leaves (`true`: an array).
/// The result has the structure of the tree, or is as many arrays; `None` is a zero.
fn aligned(
    rule: &str,
    made: &Bound<'_, PyAny>,
    leaves: &[bool],
    of: &str,
) -> Res<Vec<Option<Array>>> {
    enum Leaf {
        Array(Array),
        Zero,
        Other(String),
    }
    let mut given = Vec::new();
    tree::visit(made, &mut |leaf| {
        given.push(match as_array(leaf) {
            Some(array) => Leaf::Array(array.get().get(leaf.py())),
            None if leaf.is_none() => Leaf::Zero,
            None => Leaf::Other(type_name(leaf)),
        });
        Ok(())
    })?;
    let arrays = leaves.iter().filter(|array| **array).count();
    if given.len() == leaves.len() && !made.is_none() {
        let wanted = given.into_iter().zip(leaves).filter(|(_, array)| **array);
        let taken = wanted.enumerate().map(|(i, (leaf, _))| match leaf {
            Leaf::Array(array) => Ok(Some(array)),
            Leaf::Zero => Ok(None),
            Leaf::Other(name) => Err(value(format!(
                "[custom_function] The {rule} rule returned {name} for array {i} of the {of}. Return \
                 an array or None for each."
            ))),
        });
        return taken.collect();
    }
    let found: Vec<Option<Array>> = given
        .into_iter()
        .filter_map(|leaf| if let Leaf::Array(array) = leaf { Some(Some(array)) } else { None })
        .collect();
    if found.len() == arrays {
        return Ok(found);
    }
    Err(value(format!(
        "[custom_function] The {rule} rule returned {} arrays for the {arrays} of the {of}. Return one for each.",
        found.len()
    )))
}

/// The rules that a function has been given.
#[derive(Default)]
struct Rules {
    vjp: Option<Py<PyAny>>,
    jvp: Option<Py<PyAny>>,
    vmap: Option<Py<PyAny>>,
}

/// Function with gradients and batching of its own; a decorator.
///
/// It is called as the function. Transforms use the rules that its methods `vjp`, `jvp` and
/// `vmap` set, each of which is optional: without one the transform is that of the function
/// itself. With a rule it is a pure function: arrays that it closes over are constants to
/// derivatives.
///
/// Args:
///     f (Callable[..., Any]): The function.
///
/// Example:
///     >>> @mx.custom_function
///     ... def f(x):
///     ...     return mx.sin(x)
///     >>> @f.vjp
///     ... def f_vjp(primals, cotangents, outputs):
///     ...     return 10 * cotangents
///     >>> mx.grad(f)(mx.array(0.5))
///     array(10, dtype=float32)
#[pyclass(name = "custom_function", module = "ultramarine", frozen, weakref)]
pub struct CustomFunction {
    function: Py<PyAny>,
    rules: Mutex<Rules>,
}

crate::seen_through!(CustomFunction);

#[pymethods]
impl CustomFunction {
    #[new]
    fn new(f: &Bound<'_, PyAny>) -> Res<CustomFunction> {
        Ok(CustomFunction { function: callable("custom_function", f)?, rules: Mutex::default() })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyAny>> {
        let function = self.function.bind(py);
        let shared = |rule: &Option<Py<PyAny>>| rule.as_ref().map(|r| r.clone_ref(py));
        let Rules { vjp, jvp, vmap } = {
            let rules = lock(&self.rules);
            Rules { vjp: shared(&rules.vjp), jvp: shared(&rules.jvp), vmap: shared(&rules.vmap) }
        };
        if vjp.is_none() && jvp.is_none() && vmap.is_none() {
            return Ok(function.call(args, kwargs)?);
        }
        let (call, arrays) = Call::new(function, args, kwargs)?;
        let of = call.clone();
        let mut custom = transforms::CustomFunction::new(move |arrays| of.run(arrays));
        if let Some(rule) = vjp {
            let of = call.clone();
            custom =
                custom.with_vjp(move |p, c, o| of.reverse(&rule, p, c, o).map_err(Error::from));
        }
        if let Some(rule) = jvp {
            let of = call.clone();
            custom = custom.with_jvp(move |p, t| of.forward(&rule, p, t).map_err(Error::from));
        }
        if let Some(rule) = vmap {
            let of = call.clone();
            custom = custom.with_vmap(move |i, a| of.batched(&rule, i, a).map_err(Error::from));
        }
        let outputs = custom.call(&arrays)?;
        call.returned(py)?.filled(py, &outputs)
    }

    /// Sets the reverse rule `f(primals, cotangents, outputs)`; a decorator.
    ///
    /// `primals` are the positional arguments: the argument if there is one, else a tuple.
    /// `cotangents` and `outputs` have the structure of what the function returns. The rule returns
    /// cotangents in the structure of `primals`; None stands for zeros. Keyword arguments are
    /// passed on, and get no gradient.
    ///
    /// Args:
    ///     f (Callable[..., Any]): The rule.
    ///
    /// Returns:
    ///     custom_function: The function, with the rule.
    ///
    /// Example:
    ///     >>> @mx.custom_function
    ///     ... def f(x, y):
    ///     ...     return x * y
    ///     >>> @f.vjp
    ///     ... def f_vjp(primals, cotangents, outputs):
    ///     ...     x, y = primals
    ///     ...     return cotangents * y, None
    ///     >>> mx.grad(f)(mx.array(2.0), mx.array(3.0))
    ///     array(3, dtype=float32)
    fn vjp<'py>(this: &Bound<'py, Self>, f: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        let rule = callable("custom_function.vjp", f)?;
        let _before = lock(&this.get().rules).vjp.replace(rule);
        Ok(this.clone())
    }

    /// Sets the forward rule `f(primals, tangents)`; a decorator.
    ///
    /// `tangents` have the structure of `primals` (see `vjp`), with None where an argument has no
    /// tangent. The rule returns tangents in the structure of what the function returns.
    ///
    /// Args:
    ///     f (Callable[..., Any]): The rule.
    ///
    /// Returns:
    ///     custom_function: The function, with the rule.
    ///
    /// Example:
    ///     >>> @mx.custom_function
    ///     ... def f(x):
    ///     ...     return x * x
    ///     >>> @f.jvp
    ///     ... def f_jvp(primals, tangents):
    ///     ...     return 2 * primals * tangents
    ///     >>> mx.jvp(f, [mx.array(3.0)], [mx.array(1.0)])[1]
    ///     [array(6, dtype=float32)]
    fn jvp<'py>(this: &Bound<'py, Self>, f: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        let rule = callable("custom_function.jvp", f)?;
        let _before = lock(&this.get().rules).jvp.replace(rule);
        Ok(this.clone())
    }

    /// Sets the batching rule `f(inputs, axes)`; a decorator.
    ///
    /// `axes` have the structure of `inputs` (the positional arguments, see `vjp`), with the mapped
    /// axis of each array or None. The rule returns a tuple: outputs as of the function, and their
    /// mapped axes.
    ///
    /// Args:
    ///     f (Callable[..., Any]): The rule.
    ///
    /// Returns:
    ///     custom_function: The function, with the rule.
    ///
    /// Example:
    ///     >>> @mx.custom_function
    ///     ... def f(x):
    ///     ...     return x * x
    ///     >>> @f.vmap
    ///     ... def f_vmap(inputs, axes):
    ///     ...     return inputs * inputs, axes
    ///     >>> mx.vmap(f)(mx.array([1, 2, 3]))
    ///     array([1, 4, 9], dtype=int32)
    fn vmap<'py>(this: &Bound<'py, Self>, f: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        let rule = callable("custom_function.vmap", f)?;
        let _before = lock(&this.get().rules).vmap.replace(rule);
        Ok(this.clone())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<custom_function of {}>", self.function.bind(py).repr()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        if let Ok(rules) = self.rules.try_lock() {
            for rule in [&rules.vjp, &rules.jvp, &rules.vmap].into_iter().flatten() {
                visit.call(rule)?;
            }
        }
        Ok(())
    }
}

/// Calls a function as `checkpoint` says.
pub fn checkpointed<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Res<Bound<'py, PyAny>> {
    let (call, arrays) = Call::new(function, args, kwargs)?;
    let of = call.clone();
    let outputs = transforms::checkpointed(move |arrays| of.run(arrays), &arrays)?;
    call.returned(function.py())?.filled(function.py(), &outputs)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<CustomFunction>()?;
    Ok(())
}

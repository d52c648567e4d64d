//! Functions of examples as functions of batches.

use crate::convert::as_array;
use crate::error::{Fail, Res, type_, value};
use crate::transforms::{Transformed, callable};
use crate::tree::{self, Kind, kind};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::cell::RefCell;
use ultramarine::transforms;

/// The axes that `vmap` is given; by default 0.
struct Axes(Option<Py<PyAny>>);

impl FromPyObject<'_, '_> for Axes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Err(type_("vmap: the axes must be an int or a tree of ints, not None").into());
        }
        Ok(Axes(Some(object.to_owned().unbind())))
    }
}

/// Returns a function that applies `fun` to each slice of its arguments, all at once.
///
/// An axis stands for all arrays below it: `in_axes` and `out_axes` are an axis, or lists, tuples
/// and dictionaries of them in the structure of the arguments and of the result. `fun` gets
/// containers of the call's own, of the same classes as the arguments.
///
/// Args:
///     fun (Callable[P, R]): Function of arrays, and trees of them.
///     in_axes (Any): Axis that is mapped, of all arguments; or a tuple with an entry for each,
///         which may be a tree; or the tree of the only argument. None: not mapped.
///     out_axes (Any): Position of the mapped axis in the outputs, likewise. None: the output does
///         not depend on mapped arguments, and is the same for all.
///
/// Returns:
///     Callable[P, R]: Function with the positional arguments of `fun`.
///
/// Raises:
///     ValueError: If an axis is neither an integer nor None; at a call, if the axes do not fit
///         the structure of the arguments or of the result, or the sizes of mapped axes differ.
///
/// Example:
///     >>> mx.vmap(lambda x, y: (x * y).sum())(mx.ones((2, 3)), mx.ones((2, 3)))
///     array([3, 3], dtype=float32)
#[pyfunction]
#[pyo3(signature = (fun, in_axes=Axes(None), out_axes=Axes(None)),
       text_signature = "(fun, in_axes=0, out_axes=0)")]
fn vmap(py: Python<'_>, fun: &Bound<'_, PyAny>, in_axes: Axes, out_axes: Axes) -> Res<Transformed> {
    let function = callable("vmap", fun)?;
    let axes = |given: Axes| -> Res<Py<PyAny>> {
        let axes = match given.0 {
            Some(axes) => axes.into_bound(py),
            None => 0isize.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        };
        if axes.is_instance_of::<PyString>() {
            return Err(value(
                "[vmap] axis must be int or None, or a tree of them, but is str. Pass one of these.",
            ));
        }
        Ok(axes.unbind())
    };
    Ok(Transformed::vmap(function, axes(in_axes)?, axes(out_axes)?))
}

/// The axis of each array of the arguments. The axes of an only argument are its own tree, as in MLX, or a
/// sequence with that tree, as those of several arguments are.
fn argument_axes(
    args: &Bound<'_, PyTuple>,
    in_axes: &Bound<'_, PyAny>,
    all: &mut Vec<Option<isize>>,
) -> Res<()> {
    if args.len() == 1 {
        let mut own = Vec::new();
        if tree::axes("in_axes", &args.get_item(0)?, in_axes, &mut own).is_ok() {
            *all = own;
            return Ok(());
        }
    }
    tree::axes("in_axes", args, in_axes, all)
}

/// Calls a function as `vmap` says.
pub fn called<'py>(
    function: &Bound<'py, PyAny>,
    in_axes: &Bound<'py, PyAny>,
    out_axes: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> Res<Bound<'py, PyAny>> {
    let (mut inputs, mut axes) = (Vec::new(), Vec::new());
    tree::arrays(args, &mut inputs)?;
    argument_axes(args, in_axes, &mut axes)?;
    // Filled by the first closure, read by the second.
    let (result, wanted_axes) = (RefCell::new(None), RefCell::new(Vec::new()));
    let outputs = transforms::vmap_with::<Fail>(
        |traced| {
            let given = tree::rebuild(args, &mut traced.iter().cloned())?;
            let given = given.cast_into::<PyTuple>().map_err(PyErr::from)?;
            let returned = function.call1(given)?;
            let mut outputs = Vec::new();
            tree::arrays(&returned, &mut outputs)?;
            let mut axes = Vec::new();
            // One output may have its axis in a tuple or a list, too.
            let single = as_array(&returned).is_some();
            let sequence = matches!(kind(out_axes), Kind::List(_) | Kind::Tuple(_));
            if single && sequence && out_axes.len()? == 1 {
                tree::axes("out_axes", &returned, &out_axes.get_item(0)?, &mut axes)?;
            } else {
                tree::axes("out_axes", &returned, out_axes, &mut axes)?;
            }
            result.replace(Some(returned));
            wanted_axes.replace(axes);
            Ok(outputs)
        },
        &inputs,
        &axes,
        |_| Ok(wanted_axes.take()),
    )?;
    match result.take() {
        Some(returned) => tree::rebuild(&returned, &mut outputs.into_iter()),
        None => Err(value("[vmap] the function was not called.")),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: vmap);
    Ok(())
}

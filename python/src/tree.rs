//! Trees of arrays: lists, tuples and dictionaries, nested in any way.

use crate::array::PyArray;
use crate::convert::as_array;
use crate::error::{Res, value};
use crate::stack;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{BoundObject, PyTraverseError};
use ultramarine::Array;

/// What is nested too deeply, for errors.
const WHAT: &str = "A tree of arrays";

/// Kind of a node of a tree.
enum Kind<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
    Dict(&'a Bound<'py, PyDict>),
    Leaf,
}

fn kind<'a, 'py>(tree: &'a Bound<'py, PyAny>) -> Kind<'a, 'py> {
    if let Ok(list) = tree.cast::<PyList>() {
        Kind::List(list)
    } else if let Ok(tuple) = tree.cast::<PyTuple>() {
        Kind::Tuple(tuple)
    } else if let Ok(dict) = tree.cast::<PyDict>() {
        Kind::Dict(dict)
    } else {
        Kind::Leaf
    }
}

/// Calls `f` with every leaf, in order.
pub fn visit<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> Res<()>,
) -> Res<()> {
    if let Kind::Leaf = kind(tree) {
        return f(tree);
    }
    stack::check(WHAT)?;
    match kind(tree) {
        Kind::List(list) => list.iter().try_for_each(|item| visit(&item, f)),
        Kind::Tuple(tuple) => tuple.iter().try_for_each(|item| visit(&item, f)),
        Kind::Dict(dict) => dict.values().iter().try_for_each(|item| visit(&item, f)),
        Kind::Leaf => f(tree),
    }
}

/// The tree with every leaf replaced by what `f` makes of it.
pub fn map<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>>,
) -> Res<Bound<'py, PyAny>> {
    let py = tree.py();
    if let Kind::Leaf = kind(tree) {
        return f(tree);
    }
    stack::check(WHAT)?;
    match kind(tree) {
        Kind::List(list) => {
            let made = PyList::empty(py);
            for item in list.iter() {
                made.append(map(&item, f)?)?;
            }
            Ok(made.into_any())
        }
        Kind::Tuple(tuple) => {
            let made = tuple.iter().map(|item| map(&item, f)).collect::<Res<Vec<_>>>()?;
            let made = PyTuple::new(py, made)?;
            if tuple.is_exact_instance_of::<PyTuple>() {
                return Ok(made.into_any());
            }
            // A named tuple stays one.
            match tuple.get_type().getattr_opt("_make")? {
                Some(make) => Ok(make.call1((made,))?),
                None => Ok(made.into_any()),
            }
        }
        Kind::Dict(dict) => {
            let made = PyDict::new(py);
            for (key, item) in dict.iter() {
                made.set_item(key, map(&item, f)?)?;
            }
            Ok(made.into_any())
        }
        Kind::Leaf => f(tree),
    }
}

/// Appends the arrays of a tree, which must hold nothing else.
pub fn arrays(tree: &Bound<'_, PyAny>, all: &mut Vec<Array>) -> Res<()> {
    visit(tree, &mut |leaf| {
        let array = as_array(leaf)
            .ok_or_else(|| value("[tree_flatten] The argument should contain only arrays"))?;
        all.push(array.get().get(leaf.py()));
        Ok(())
    })
}

/// Appends the arrays of a tree, whatever else it holds.
pub fn arrays_among(tree: &Bound<'_, PyAny>, all: &mut Vec<Array>) -> Res<()> {
    visit(tree, &mut |leaf| {
        if let Some(array) = as_array(leaf) {
            all.push(array.get().get(leaf.py()));
        }
        Ok(())
    })
}

/// The tree with its arrays replaced, in order.
pub fn rebuild<'py>(
    tree: &Bound<'py, PyAny>,
    arrays: &mut dyn Iterator<Item = Array>,
) -> Res<Bound<'py, PyAny>> {
    map(tree, &mut |leaf| match (as_array(leaf), arrays.next()) {
        (Some(_), Some(array)) => Ok(Bound::new(leaf.py(), PyArray::new(array))?.into_any()),
        _ => Err(value("[tree_unflatten] The structure of a tree changed.")),
    })
}

/// For each leaf of a tree the axis that `axes` gives it: an integer or `None` for all
/// leaves below, or the same structure with these.
pub fn axes(
    tree: &Bound<'_, PyAny>,
    axes_of: &Bound<'_, PyAny>,
    all: &mut Vec<Option<isize>>,
) -> Res<()> {
    let invalid = || value("[vmap] axis must be int or None.");
    let mismatch = || value("[vmap] The axes are not a valid prefix of the tree of arguments.");
    let below = |given: &Bound<'_, PyAny>, item: &Bound<'_, PyAny>, all: &mut Vec<_>| {
        axes(item, given, all)
    };
    match kind(axes_of) {
        Kind::Leaf => {
            let axis = if axes_of.is_none() {
                None
            } else {
                Some(axes_of.extract::<isize>().map_err(|_| invalid())?)
            };
            visit(tree, &mut |_| {
                all.push(axis);
                Ok(())
            })
        }
        Kind::Dict(given) => {
            stack::check(WHAT)?;
            let Kind::Dict(dict) = kind(tree) else { return Err(mismatch()) };
            if given.len() != dict.len() {
                return Err(mismatch());
            }
            for (key, item) in dict.iter() {
                let axis = given.get_item(key)?.ok_or_else(mismatch)?;
                below(&axis, &item, all)?;
            }
            Ok(())
        }
        Kind::List(_) | Kind::Tuple(_) => {
            stack::check(WHAT)?;
            if !matches!(kind(tree), Kind::List(_) | Kind::Tuple(_))
                || axes_of.len()? != tree.len()?
            {
                return Err(mismatch());
            }
            for i in 0..tree.len()? {
                below(&axes_of.get_item(i)?, &tree.get_item(i)?, all)?;
            }
            Ok(())
        }
    }
}

/// The place of an array in a [`Structure`].
#[pyclass(name = "_Hole", module = "ultramarine", frozen)]
struct Hole;

/// A place for an array.
pub fn hole(py: Python<'_>) -> Res<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Hole)?.into_any())
}

/// True if an object is such a place.
pub fn is_hole(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<Hole>()
}

/// A tree without its arrays: what else it holds stays where it is.
pub struct Structure(Py<PyAny>);

impl Structure {
    /// The structure of a tree, and its arrays in order.
    pub fn of(tree: &Bound<'_, PyAny>) -> Res<(Structure, Vec<Array>)> {
        let mut arrays = Vec::new();
        arrays_among(tree, &mut arrays)?;
        let holes = map(tree, &mut |leaf| match as_array(leaf) {
            Some(_) => hole(leaf.py()),
            None => Ok(leaf.clone()),
        })?;
        Ok((Structure(holes.unbind()), arrays))
    }

    /// Another reference to it.
    pub fn share(&self, py: Python<'_>) -> Structure {
        Structure(self.0.clone_ref(py))
    }

    /// For the garbage collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }

    /// For each leaf whether it is an array, in order.
    pub fn leaves(&self, py: Python<'_>) -> Res<Vec<bool>> {
        let mut all = Vec::new();
        visit(self.0.bind(py), &mut |leaf| {
            all.push(is_hole(leaf));
            Ok(())
        })?;
        Ok(all)
    }

    /// The tree with these arrays.
    pub fn filled<'py>(&self, py: Python<'py>, arrays: &[Array]) -> Res<Bound<'py, PyAny>> {
        let mut arrays = arrays.iter();
        map(self.0.bind(py), &mut |leaf| {
            if !is_hole(leaf) {
                return Ok(leaf.clone());
            }
            let array = arrays
                .next()
                .ok_or_else(|| value("[tree_unflatten] The structure of a tree changed."))?;
            Ok(Bound::new(py, PyArray::new(array.clone()))?.into_any())
        })
    }

    /// The tree with something else in the place of each array, and `None` in that of all else.
    pub fn with<'py, T: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        values: impl IntoIterator<Item = T>,
    ) -> Res<Bound<'py, PyAny>>
    where
        T::Error: Into<PyErr>,
    {
        let mut values = values.into_iter();
        map(self.0.bind(py), &mut |leaf| match is_hole(leaf) {
            true => match values.next() {
                Some(v) => Ok(v.into_pyobject(py).map_err(Into::into)?.into_bound().into_any()),
                None => Ok(py.None().into_bound(py)),
            },
            false => Ok(py.None().into_bound(py)),
        })
    }
}

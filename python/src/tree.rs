//! Trees of arrays: lists, tuples and dictionaries, nested in any way, and instances of their subclasses.

use crate::array::PyArray;
use crate::convert::as_array;
use crate::error::{Res, type_name, value};
use crate::stack;
use pyo3::exceptions::PyException;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{BoundObject, PyTraverseError, PyTypeInfo};
use ultramarine::Array;

/// The subject of errors about nesting.
pub const WHAT: &str = "A tree of arrays";

/// Kind of a node of a tree.
pub enum Kind<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
    Dict(&'a Bound<'py, PyDict>),
    Leaf,
}

pub fn kind<'a, 'py>(tree: &'a Bound<'py, PyAny>) -> Kind<'a, 'py> {
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
    match kind(tree) {
        Kind::List(list) => list.iter().try_for_each(|item| visit_item(&item, f)),
        Kind::Tuple(tuple) => tuple.iter().try_for_each(|item| visit_item(&item, f)),
        Kind::Dict(dict) => dict.values().iter().try_for_each(|item| visit_item(&item, f)),
        Kind::Leaf => f(tree),
    }
}

/// As `visit`, of what is inside of a container.
fn visit_item<'py>(
    item: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> Res<()>,
) -> Res<()> {
    if let Kind::Leaf = kind(item) {
        return f(item);
    }
    stack::check(WHAT)?;
    visit(item, f)
}

/// The tree with every leaf replaced by what `f` makes of it.
pub fn map<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>>,
) -> Res<Bound<'py, PyAny>> {
    if let Kind::Leaf = kind(tree) {
        return f(tree);
    }
    stack::check(WHAT)?;
    with_items(tree, &mut |item| map(item, f))
}

/// A new container like `container`, with what `f` makes of its items: one of the same class and with the same
/// attributes, or a plain one if the class does not let itself be copied. A tuple whose items stay is itself.
pub fn with_items<'py>(
    container: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>>,
) -> Res<Bound<'py, PyAny>> {
    let py = container.py();
    match kind(container) {
        Kind::List(list) => {
            let items = list.iter().map(|item| f(&item)).collect::<Res<Vec<_>>>()?;
            let made = PyList::new(py, items)?;
            match copied::<PyList>(list)? {
                None => Ok(made.into_any()),
                Some(copy) => {
                    copy.set_slice(0, copy.len(), made.as_any())?;
                    Ok(copy.into_any())
                }
            }
        }
        Kind::Tuple(tuple) => {
            let items = tuple.iter().map(|item| f(&item)).collect::<Res<Vec<_>>>()?;
            tuple_like(tuple, items)
        }
        Kind::Dict(dict) => {
            let made = copied::<PyDict>(dict)?.unwrap_or_else(|| PyDict::new(py));
            for (key, item) in dict.iter() {
                made.set_item(key, f(&item)?)?;
            }
            Ok(made.into_any())
        }
        Kind::Leaf => f(container),
    }
}

/// A tuple of the same class with other items, and the same attributes; the tuple itself if the items are its own.
pub fn tuple_like<'py>(
    tuple: &Bound<'py, PyTuple>,
    items: Vec<Bound<'py, PyAny>>,
) -> Res<Bound<'py, PyAny>> {
    let py = tuple.py();
    if items.len() == tuple.len() && tuple.iter_borrowed().zip(&items).all(|(a, b)| a.is(b)) {
        return Ok(tuple.clone().into_any());
    }
    let items = PyTuple::new(py, items)?;
    if tuple.is_exact_instance_of::<PyTuple>() {
        return Ok(items.into_any());
    }
    // A subclass's own `__new__` may have any signature: named tuples want their fields one by one.
    let made = py.get_type::<PyTuple>().call_method1("__new__", (tuple.get_type(), items))?;
    if let Some(attributes) = tuple.getattr_opt("__dict__")? {
        made.getattr("__dict__")?.call_method1("update", (attributes,))?;
    }
    Ok(made)
}

static COPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A shallow copy of an instance of a subclass. `None` for the class `T` itself, and for classes that cannot be
/// copied (their items may be read-only, or the copy is the instance).
fn copied<'py, T>(container: &Bound<'py, T>) -> Res<Option<Bound<'py, T>>>
where
    T: PyTypeInfo,
{
    let (py, object) = (container.py(), container.as_any());
    if object.is_exact_instance_of::<T>() {
        return Ok(None);
    }
    let copy = COPY.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("copy")?.getattr("copy")?.unbind())
    })?;
    match copy.bind(py).call1((object,)) {
        Ok(made) if made.get_type().is(object.get_type()) && !made.is(object) => {
            Ok(made.cast_into::<T>().ok())
        }
        Err(error) if !error.is_instance_of::<PyException>(py) => Err(error.into()),
        _ => Ok(None),
    }
}

/// Appends the arrays of a tree, which must hold nothing else.
pub fn arrays(tree: &Bound<'_, PyAny>, all: &mut Vec<Array>) -> Res<()> {
    visit(tree, &mut |leaf| {
        all.push(array_in(leaf)?);
        Ok(())
    })
}

/// The array that a leaf has to be.
fn array_in(leaf: &Bound<'_, PyAny>) -> Res<Array> {
    match as_array(leaf) {
        Some(array) => Ok(array.get().get(leaf.py())),
        None => Err(value(format!(
            "[tree_flatten] The argument should contain only arrays, but it has {}. Pass arrays in lists, tuples and \
             dictionaries.",
            type_name(leaf)
        ))),
    }
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
        _ => Err(value(
            "[tree_unflatten] The structure of a tree changed during the call. Do not add or remove items in the function.",
        )),
    })
}

/// For each leaf of a tree the axis that `axes` gives it: an integer or `None` for all
/// leaves below, or the same structure with these. `name` is the argument that gives them.
pub fn axes(
    name: &str,
    tree: &Bound<'_, PyAny>,
    axes_of: &Bound<'_, PyAny>,
    all: &mut Vec<Option<isize>>,
) -> Res<()> {
    let mismatch = || {
        let given = axes_of.repr().map_or_else(|_| type_name(axes_of), |text| text.to_string());
        value(format!(
            "[vmap] {name} does not fit: it has {given} for {}. Pass an int or None, or a tree of them with the \
             structure of the argument or result.",
            match kind(tree) {
                Kind::Leaf => "an array".into(),
                _ => format!("a {} of {} items", type_name(tree), tree.len().unwrap_or(0)),
            }
        ))
    };
    match kind(axes_of) {
        Kind::Leaf => {
            let axis = if axes_of.is_none() {
                None
            } else {
                let invalid = |_| {
                    value(format!(
                        "[vmap] axis must be int or None, but {name} has {}. Pass one of these.",
                        type_name(axes_of)
                    ))
                };
                Some(axes_of.extract::<isize>().map_err(invalid)?)
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
                axes(name, &item, &axis, all)?;
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
                axes(name, &tree.get_item(i)?, &axes_of.get_item(i)?, all)?;
            }
            Ok(())
        }
    }
}

/// The place of an array in a [`Structure`].
#[pyclass(name = "_Hole", module = "ultramarine", frozen)]
struct Hole;

/// A place for an array. There is one such object.
pub fn hole(py: Python<'_>) -> Res<Bound<'_, PyAny>> {
    static HOLE: PyOnceLock<Py<Hole>> = PyOnceLock::new();
    Ok(HOLE.get_or_try_init(py, || Py::new(py, Hole))?.bind(py).clone().into_any())
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
        let holes = map(tree, &mut |leaf| match as_array(leaf) {
            Some(array) => {
                arrays.push(array.get().get(leaf.py()));
                hole(leaf.py())
            }
            None => Ok(leaf.clone()),
        })?;
        Ok((Structure(holes.unbind()), arrays))
    }

    /// The structure of a tree of nothing but arrays, which are appended.
    pub fn of_arrays(tree: &Bound<'_, PyAny>, all: &mut Vec<Array>) -> Res<Structure> {
        let holes = map(tree, &mut |leaf| {
            all.push(array_in(leaf)?);
            hole(leaf.py())
        })?;
        Ok(Structure(holes.unbind()))
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
        self.filled_from(py, &mut arrays.iter())
    }

    /// The tree with the next of these arrays.
    pub fn filled_from<'py, 'a>(
        &self,
        py: Python<'py>,
        arrays: &mut impl Iterator<Item = &'a Array>,
    ) -> Res<Bound<'py, PyAny>> {
        map(self.0.bind(py), &mut |leaf| {
            if !is_hole(leaf) {
                return Ok(leaf.clone());
            }
            let array = arrays
                .next()
                .ok_or_else(|| value("[tree_unflatten] The structure of a tree changed during the call. Do not add or remove items in the function."))?;
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

//! The state that a compiled function captures: arrays in lists and dictionaries, and the state of random
//! numbers.
//!
//! While the function is traced, its arrays are stand-ins. After each call the arrays of the outputs are
//! put where they belong.

use super::key::{Words, constant};
use super::wrapped;
use crate::convert::as_array;
use crate::error::{Res, value};
use crate::ops::random::RandomState;
use crate::stack;
use crate::tree;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use ultramarine::{Array, random};

/// The subject of errors about nesting.
const WHAT: &str = "Captured state";

/// Captured inputs or outputs: lists and dictionaries, or nothing.
pub struct State(pub Option<Py<PyAny>>);

/// A part of captured state that is not a leaf.
enum Part<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Dict(&'a Bound<'py, PyDict>),
    /// Its own arrays stay what they are.
    Tuple(&'a Bound<'py, PyTuple>),
    Random,
    Leaf,
}

fn part<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Part<'a, 'py> {
    if let Ok(list) = object.cast::<PyList>() {
        Part::List(list)
    } else if let Ok(dict) = object.cast::<PyDict>() {
        Part::Dict(dict)
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        Part::Tuple(tuple)
    } else if object.is_instance_of::<RandomState>() {
        Part::Random
    } else {
        Part::Leaf
    }
}

/// A place of an array in captured state.
enum Place<'py> {
    Item(Bound<'py, PyAny>, Bound<'py, PyAny>),
    Random,
}

type Visit<'a, 'py> = dyn FnMut(Place<'py>, Array) -> Res<()> + 'a;

/// Calls `f` with the place of each array, in order. `words` get the structure.
fn visit<'py>(object: &Bound<'py, PyAny>, words: &mut Words, f: &mut Visit<'_, 'py>) -> Res<()> {
    stack::check(WHAT)?;
    let py = object.py();
    match part(object) {
        Part::List(list) => {
            words.push(list.len() as u64);
            for (i, item) in list.iter().enumerate() {
                match as_array(&item) {
                    Some(array) => {
                        let at = i.into_pyobject(py).map_err(PyErr::from)?.into_any();
                        words.push(u64::MAX);
                        f(Place::Item(object.clone(), at), array.get().get(py))?;
                    }
                    None => visit(&item, words, f)?,
                }
            }
        }
        Part::Dict(dict) => {
            words.push(dict.len() as u64);
            for (name, item) in dict.iter() {
                if !constant(&name, words)? {
                    words.push(name.hash()? as u64);
                }
                match as_array(&item) {
                    Some(array) => {
                        words.push(u64::MAX);
                        f(Place::Item(object.clone(), name), array.get().get(py))?;
                    }
                    None => visit(&item, words, f)?,
                }
            }
        }
        Part::Tuple(tuple) => {
            words.push(tuple.len() as u64);
            tuple.iter().try_for_each(|item| visit(&item, words, f))?;
        }
        Part::Random => {
            words.push(u64::MAX - 1);
            f(Place::Random, random::state()?)?;
        }
        Part::Leaf => words.push(u64::MAX - 2),
    }
    Ok(())
}

impl State {
    fn object<'a, 'py>(&'a self, py: Python<'py>) -> Option<&'a Bound<'py, PyAny>> {
        self.0.as_ref().map(|o| o.bind(py))
    }

    /// Appends the arrays, and words for the structure.
    pub fn read(&self, py: Python<'_>, words: &mut Words, arrays: &mut Vec<Array>) -> Res<()> {
        let Some(object) = self.object(py) else { return Ok(()) };
        let mut add = |_: Place<'_>, array: Array| {
            arrays.push(array);
            Ok(())
        };
        visit(object, words, &mut add)
    }

    /// Puts the arrays of a result where they belong.
    pub fn write(&self, py: Python<'_>, template: &Template, arrays: &[Array]) -> Res<()> {
        let Some(object) = self.object(py) else { return Ok(()) };
        put(object, template.0.bind(py), &mut arrays.iter())
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.iter().try_for_each(|o| visit.call(o))
    }
}

/// Captured outputs as a call left them: containers of their own, with holes for arrays.
pub struct Template(Py<PyAny>);

impl Template {
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

/// The template of captured outputs, whose arrays are appended.
fn template<'py>(object: &Bound<'py, PyAny>, arrays: &mut Vec<Array>) -> Res<Bound<'py, PyAny>> {
    stack::check(WHAT)?;
    let py = object.py();
    let mut of = |item: &Bound<'py, PyAny>| match as_array(item) {
        Some(array) => {
            arrays.push(array.get().get(py));
            tree::hole(py)
        }
        None => template(item, arrays),
    };
    Ok(match part(object) {
        Part::List(list) => {
            let made = PyList::empty(py);
            for item in list.iter() {
                made.append(of(&item)?)?;
            }
            made.into_any()
        }
        Part::Dict(dict) => {
            let made = PyDict::new(py);
            for (name, item) in dict.iter() {
                made.set_item(name, of(&item)?)?;
            }
            made.into_any()
        }
        Part::Tuple(tuple) => {
            let each = tuple.iter().map(|item| template(&item, arrays));
            PyTuple::new(py, each.collect::<Res<Vec<_>>>()?)?.into_any()
        }
        Part::Random => {
            arrays.push(random::state()?);
            object.clone()
        }
        Part::Leaf => object.clone(),
    })
}

/// Puts the next arrays into `target`, where `template` has holes. What is there besides stays; what is
/// missing is made.
fn put<'py>(
    target: &Bound<'py, PyAny>,
    template: &Bound<'py, PyAny>,
    arrays: &mut std::slice::Iter<'_, Array>,
) -> Res<()> {
    let py = target.py();
    match (part(target), part(template)) {
        (Part::List(list), Part::List(items)) => {
            for (i, item) in items.iter().enumerate() {
                let there = if i < list.len() { Some(list.get_item(i)?) } else { None };
                match (put_item(there.as_ref(), &item, arrays)?, there) {
                    (Some(new), Some(_)) => target.set_item(i, new)?,
                    (Some(new), None) => list.append(new)?,
                    (None, _) => {}
                }
            }
        }
        (Part::Dict(dict), Part::Dict(items)) => {
            for (name, item) in items.iter() {
                if let Some(new) = put_item(dict.get_item(&name)?.as_ref(), &item, arrays)? {
                    target.set_item(name, new)?;
                }
            }
        }
        (Part::Tuple(there), Part::Tuple(items)) if there.len() == items.len() => {
            for (there, item) in there.iter().zip(items.iter()) {
                put(&there, &item, arrays)?;
            }
        }
        (_, Part::Random) => {
            if let Some(state) = arrays.next() {
                random::set_state(state)?;
            }
        }
        // Something else is there now: its arrays belong to no state.
        _ => drop(filled(py, template, arrays)?),
    }
    Ok(())
}

/// The replacement of an item of a container, if it has one.
fn put_item<'py>(
    there: Option<&Bound<'py, PyAny>>,
    item: &Bound<'py, PyAny>,
    arrays: &mut std::slice::Iter<'_, Array>,
) -> Res<Option<Bound<'py, PyAny>>> {
    let same = |there: &Bound<'py, PyAny>| match (part(there), part(item)) {
        (Part::Tuple(a), Part::Tuple(b)) => a.len() == b.len(),
        (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b),
    };
    match there {
        Some(there) if !tree::is_hole(item) && same(there) => {
            put(there, item, arrays)?;
            Ok(None)
        }
        _ => filled(item.py(), item, arrays).map(Some),
    }
}

/// A template with the next arrays in its holes.
fn filled<'py>(
    py: Python<'py>,
    template: &Bound<'py, PyAny>,
    arrays: &mut std::slice::Iter<'_, Array>,
) -> Res<Bound<'py, PyAny>> {
    tree::map(template, &mut |leaf| {
        if tree::is_hole(leaf) {
            return match arrays.next() {
                Some(array) => wrapped(py, array),
                None => Err(value(
                    "[compile] An output is missing. Do not remove items from `outputs` in the function.",
                )),
            };
        }
        if leaf.is_instance_of::<RandomState>() {
            put(leaf, leaf, arrays)?;
        }
        Ok(leaf.clone())
    })
}

/// A container as it was before a call.
enum Before<'py> {
    List(Bound<'py, PyList>, Vec<Bound<'py, PyAny>>),
    Dict(Bound<'py, PyDict>, Bound<'py, PyDict>),
}

/// Notes all lists and dictionaries of captured state.
fn note<'py>(object: &Bound<'py, PyAny>, all: &mut Vec<Before<'py>>) -> Res<()> {
    stack::check(WHAT)?;
    match part(object) {
        Part::List(list) => {
            all.push(Before::List(list.clone(), list.iter().collect()));
            list.iter().try_for_each(|item| note(&item, all))
        }
        Part::Dict(dict) => {
            all.push(Before::Dict(dict.clone(), dict.copy()?));
            dict.values().iter().try_for_each(|item| note(&item, all))
        }
        Part::Tuple(tuple) => tuple.iter().try_for_each(|item| note(&item, all)),
        Part::Random | Part::Leaf => Ok(()),
    }
}

impl Before<'_> {
    /// Puts everything back.
    fn restore(&self) -> PyResult<()> {
        match self {
            Before::List(list, items) => {
                list.set_slice(0, list.len(), PyList::new(list.py(), items)?.as_any())
            }
            Before::Dict(dict, items) => {
                dict.clear();
                dict.update(items.as_mapping())
            }
        }
    }

    /// Puts arrays back where there are arrays now: stand-ins, or what was made of them.
    fn restore_arrays(&self) -> PyResult<()> {
        match self {
            Before::List(list, items) => {
                for (i, item) in items.iter().enumerate().take(list.len()) {
                    if as_array(item).is_some() && as_array(&list.get_item(i)?).is_some() {
                        list.set_item(i, item)?;
                    }
                }
            }
            Before::Dict(dict, items) => {
                for (name, item) in items.iter() {
                    let now = dict.get_item(&name)?;
                    if as_array(&item).is_some() && now.is_some_and(|n| as_array(&n).is_some()) {
                        dict.set_item(name, item)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The template of captured outputs, if there are any, and their arrays.
pub type After = Option<(Template, Vec<Array>)>;

/// Calls `f` with stand-ins in the place of the captured inputs, which are put back. Of the captured outputs
/// what they are after the call.
pub fn within<'py, T>(
    py: Python<'py>,
    inputs: &State,
    outputs: &State,
    stand_ins: &[Array],
    f: impl FnOnce() -> Res<T>,
) -> Res<(T, After)> {
    let mut before = Vec::new();
    for state in [inputs, outputs] {
        if let Some(object) = state.object(py) {
            note(object, &mut before)?;
        }
    }
    let mut scope = None;
    let run = || -> Res<_> {
        if let Some(object) = inputs.object(py) {
            let mut places = Vec::new();
            let mut add = |place: Place<'py>, _: Array| {
                places.push(place);
                Ok(())
            };
            visit(object, &mut Words::new(), &mut add)?;
            for (place, stand_in) in places.into_iter().zip(stand_ins) {
                match place {
                    Place::Item(container, at) => container.set_item(at, wrapped(py, stand_in)?)?,
                    Place::Random => scope = Some(random::StateScope::new(stand_in)?),
                }
            }
        }
        let made = f()?;
        let mut arrays = Vec::new();
        let after = match outputs.object(py) {
            Some(object) => {
                let template = template(object, &mut arrays)?;
                Some((Template(template.unbind()), arrays))
            }
            None => None,
        };
        Ok((made, after))
    };
    let made = run();
    drop(scope);
    match &made {
        Ok(_) => before.iter().try_for_each(Before::restore_arrays)?,
        // The error of the function is the one to tell.
        Err(_) => before.iter().for_each(|b| drop(b.restore())),
    }
    made
}

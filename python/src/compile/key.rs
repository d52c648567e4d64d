//! The key of a call of a compiled function besides the shapes of its arrays, as words: the structure of its
//! arguments, and the constants among them.
//!
//! Each leaf and each container begins with a word that says what it is and how many words or items follow, so
//! different arguments have different words.

use crate::convert::as_array;
use crate::error::{Res, type_name, value};
use crate::stack;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use ultramarine::Array;

/// The words of a key.
pub type Words = SmallVec<[u64; 32]>;

/// Kind of the item that a word begins, in its upper byte; below are lengths.
mod tag {
    pub const ARRAY: u64 = 1 << 56;
    pub const LIST: u64 = 2 << 56;
    pub const TUPLE: u64 = 3 << 56;
    pub const DICT: u64 = 4 << 56;
    pub const NONE: u64 = 5 << 56;
    pub const BOOL: u64 = 6 << 56;
    pub const INT: u64 = 7 << 56;
    pub const BIG: u64 = 8 << 56;
    pub const FLOAT: u64 = 9 << 56;
    pub const STR: u64 = 10 << 56;
    pub const OBJECT: u64 = 11 << 56;
    /// The type of what comes next, which is a subclass.
    pub const TYPE: u64 = 12 << 56;
}

/// The words of a call's arguments, and the arrays among them in order.
pub fn arguments(
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    words: &mut Words,
    arrays: &mut Vec<Array>,
) -> Res<()> {
    words.push(args.len() as u64);
    for item in args.iter_borrowed() {
        leaf_or_tree(&item, words, arrays)?;
    }
    match kwargs {
        Some(kwargs) => dict(kwargs, words, arrays),
        None => {
            words.push(tag::DICT);
            Ok(())
        }
    }
}

fn leaf_or_tree(object: &Bound<'_, PyAny>, words: &mut Words, arrays: &mut Vec<Array>) -> Res<()> {
    if let Some(array) = as_array(object) {
        words.push(tag::ARRAY);
        arrays.push(array.get().get(object.py()));
        return Ok(());
    }
    stack::check("The arguments' tree")?;
    if let Ok(list) = object.cast::<PyList>() {
        subclass(object, list.is_exact_instance_of::<PyList>(), words);
        words.push(tag::LIST | list.len() as u64);
        list.iter().try_for_each(|item| leaf_or_tree(&item, words, arrays))
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        subclass(object, tuple.is_exact_instance_of::<PyTuple>(), words);
        words.push(tag::TUPLE | tuple.len() as u64);
        tuple.iter_borrowed().try_for_each(|item| leaf_or_tree(&item, words, arrays))
    } else if let Ok(items) = object.cast::<PyDict>() {
        subclass(object, items.is_exact_instance_of::<PyDict>(), words);
        dict(items, words, arrays)
    } else if constant(object, words)? {
        Ok(())
    } else {
        Err(value(format!(
            "[compile] Function arguments must be trees of arrays or constants (floats, ints, strings, \
             or None), but received type {}. Close over other objects instead.",
            type_name(object)
        )))
    }
}

fn dict(items: &Bound<'_, PyDict>, words: &mut Words, arrays: &mut Vec<Array>) -> Res<()> {
    words.push(tag::DICT | items.len() as u64);
    for (name, item) in items.iter() {
        if !constant(&name, words)? {
            // The trace keeps its arguments, so the address stays that of this object.
            words.extend_from_slice(&[tag::OBJECT, name.as_ptr() as u64]);
        }
        leaf_or_tree(&item, words, arrays)?;
    }
    Ok(())
}

/// Says which subclass an object is of, if it is of one: functions may look at the type.
fn subclass(object: &Bound<'_, PyAny>, exact: bool, words: &mut Words) {
    if !exact {
        words.extend_from_slice(&[tag::TYPE, object.get_type_ptr() as u64]);
    }
}

/// The words of a constant; false if the object is none.
pub fn constant(object: &Bound<'_, PyAny>, words: &mut Words) -> Res<bool> {
    if object.is_none() {
        words.push(tag::NONE);
    } else if let Ok(truth) = object.cast::<PyBool>() {
        words.push(tag::BOOL | truth.is_true() as u64);
    } else if let Ok(text) = object.cast::<PyString>() {
        subclass(object, text.is_exact_instance_of::<PyString>(), words);
        string(tag::STR, &text.to_cow()?, words);
    } else if let Ok(number) = object.cast::<PyInt>() {
        subclass(object, number.is_exact_instance_of::<PyInt>(), words);
        match number.extract::<i64>() {
            Ok(v) => words.extend_from_slice(&[tag::INT, v as u64]),
            Err(_) => string(tag::BIG, &digits(number)?, words),
        }
    } else if let Ok(number) = object.cast::<PyFloat>() {
        subclass(object, number.is_exact_instance_of::<PyFloat>(), words);
        words.extend_from_slice(&[tag::FLOAT, number.value().to_bits()]);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// An integer of any size, in hexadecimal digits: of decimal ones Python allows only so many.
fn digits(number: &Bound<'_, PyInt>) -> Res<String> {
    Ok(number.call_method1("__format__", ("x",))?.extract()?)
}

fn string(tag: u64, text: &str, words: &mut Words) {
    words.push(tag | text.len() as u64);
    words.extend(text.as_bytes().chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    }));
}

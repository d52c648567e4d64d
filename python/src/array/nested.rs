//! Arrays of nested sequences.

use super::make;
use crate::convert::{Number, as_array};
use crate::error::{Fail, Res, value};
use pyo3::exceptions::{PyIndexError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};
use ultramarine::{Array, Dtype, Scalar};

/// The numbers of nested sequences, in the narrowest of five kinds.
enum Column {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    /// Integers of which one is beyond int64.
    Wide(Vec<i128>),
    Float(Vec<f64>),
    Complex(Vec<(f64, f64)>),
}

impl Column {
    fn push(&mut self, n: Number) {
        use Column::*;
        loop {
            match (&mut *self, n) {
                (Bool(v), Number::Bool(n)) => return v.push(n),
                (Int(v), Number::Bool(n)) => return v.push(n as i64),
                (Int(v), Number::Int(n)) => return v.push(n),
                (Wide(v), Number::Bool(n)) => return v.push(n.into()),
                (Wide(v), Number::Int(n)) => return v.push(n.into()),
                (Wide(v), Number::Uint(n)) => return v.push(n.into()),
                (Float(v), Number::Bool(n)) => return v.push(n as u8 as f64),
                (Float(v), Number::Int(n)) => return v.push(n as f64),
                (Float(v), Number::Uint(n)) => return v.push(n as f64),
                (Float(v), Number::Float(n)) => return v.push(n),
                (Complex(v), Number::Complex(re, im)) => return v.push((re, im)),
                (Complex(v), n) => {
                    let re = match n {
                        Number::Bool(n) => n as u8 as f64,
                        Number::Int(n) => n as f64,
                        Number::Uint(n) => n as f64,
                        Number::Float(n) => n,
                        Number::Complex(re, _) => re,
                    };
                    return v.push((re, 0.0));
                }
                (Bool(v), _) => *self = Int(v.iter().map(|b| *b as i64).collect()),
                (Int(v), Number::Uint(_)) => *self = Wide(v.iter().map(|n| (*n).into()).collect()),
                (Wide(v), _) => *self = Float(v.iter().map(|n| *n as f64).collect()),
                (Int(v), _) => *self = Float(v.iter().map(|n| *n as f64).collect()),
                (Float(v), _) => *self = Complex(v.iter().map(|n| (*n, 0.0)).collect()),
            }
        }
    }

    fn array(self, shape: &[usize], dtype: Option<Dtype>) -> Res<Array> {
        let own = match &self {
            _ if shape.contains(&0) => Dtype::Float32,
            Column::Bool(_) => Dtype::Bool,
            Column::Int(v) if v.iter().all(|n| i32::try_from(*n).is_ok()) => Dtype::Int32,
            Column::Int(_) => Dtype::Int64,
            Column::Wide(v) if v.iter().all(|n| *n >= 0) => Dtype::Uint64,
            Column::Wide(_) => Dtype::Int64.promote(Dtype::Uint64),
            Column::Float(_) => Dtype::Float32,
            Column::Complex(_) => Dtype::Complex64,
        };
        let dtype = dtype.unwrap_or(own);
        if dtype.is_storage() {
            return Ok(self.array(shape, Some(Dtype::Float32))?.try_astype(dtype)?);
        }
        // The common cases without a detour.
        match (&self, dtype) {
            (Column::Bool(v), Dtype::Bool) => return Ok(Array::from_slice(v, shape)?),
            (Column::Int(v), Dtype::Int64) => return Ok(Array::from_slice(v, shape)?),
            (Column::Int(v), Dtype::Int32) => {
                let v: Vec<i32> = v.iter().map(|n| *n as i32).collect();
                return Ok(Array::from_slice(&v, shape)?);
            }
            (Column::Float(v), Dtype::Float64) => return Ok(Array::from_slice(v, shape)?),
            (Column::Float(v), Dtype::Float32) => {
                let v: Vec<f32> = v.iter().map(|n| *n as f32).collect();
                return Ok(Array::from_slice(&v, shape)?);
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        let mut put = |s: Scalar| bytes.extend_from_slice(&s.bits().to_le_bytes()[..dtype.size()]);
        match self {
            Column::Bool(v) => v.iter().for_each(|n| put(Number::Bool(*n).cast(dtype))),
            Column::Int(v) => v.iter().for_each(|n| put(Number::Int(*n).cast(dtype))),
            Column::Wide(v) => v.iter().for_each(|n| {
                let whole = i64::try_from(*n).map_or(Number::Uint(*n as u64), Number::Int);
                put(whole.cast(dtype));
            }),
            Column::Float(v) => v.iter().for_each(|n| put(Number::Float(*n).cast(dtype))),
            Column::Complex(v) => v.iter().for_each(|n| put(Number::Complex(n.0, n.1).cast(dtype))),
        }
        Ok(Array::from_bytes(&bytes, shape, dtype)?)
    }
}

/// True for a list or a tuple.
pub fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// True for an object with items to make an array of: a list, a tuple, or one with a length and
/// takes positions, and is no text, no mapping and nothing that offers its memory.
pub fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    if is_list(object) {
        return true;
    }
    let class = object.get_type();
    let has = |name| class.hasattr(name).unwrap_or(false);
    // SAFETY: looks at a live object's type only.
    (unsafe { ffi::PySequence_Check(object.as_ptr()) } != 0)
        && !object.is_instance_of::<PyString>()
        && !object.is_instance_of::<PyDict>()
        && has("__len__")
        && !has("keys")
        && !make::offers_memory(object)
}

/// The items of a sequence, one after the other, until `f` says false.
fn each(
    object: &Bound<'_, PyAny>,
    n: usize,
    mut f: impl FnMut(Bound<'_, PyAny>) -> Res<bool>,
) -> Res<bool> {
    if object.len()? != n {
        return Err(value(
            "Initialization encountered non-uniform length. Give all lists of one level the same length.",
        ));
    }
    for i in 0..n {
        let item = match object.get_item(i) {
            // Its length may lie, or have changed meanwhile.
            Err(error) if error.is_instance_of::<PyIndexError>(object.py()) => {
                let name = crate::error::type_name(object);
                return Err(value(format!(
                    "A {name} of length {n} has no item {i}. Do not change it during the conversion."
                )));
            }
            item => item?,
        };
        if !f(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An array of nested sequences of numbers, or of numbers and arrays. `depth` counts the
/// sequences around it.
pub fn nested(object: &Bound<'_, PyAny>, dtype: Option<Dtype>, depth: usize) -> Res<Array> {
    let mut shape = Vec::new();
    let mut first = object.clone();
    while is_sequence(&first) {
        let n = first.len()?;
        shape.push(n);
        if depth + shape.len() > ultramarine::shape::MAX_NDIM {
            return Err(value("array: nested too deeply"));
        }
        if n == 0 {
            break;
        }
        first = first.get_item(0)?;
    }
    // A length that lies may be any number: memory is asked for before it is filled.
    let mut flags = Vec::new();
    let total = shape.iter().try_fold(1usize, |a, n| a.checked_mul(*n));
    if total.is_none_or(|n| flags.try_reserve_exact(n).is_err()) {
        let text = format!("array: no memory for a sequence of {} items", shape[0]);
        return Err(PyMemoryError::new_err(text).into());
    }
    let mut column = Column::Bool(flags);
    if fill(object, &shape, &mut column)? {
        return column.array(&shape, dtype);
    }
    // There are arrays among the elements: stack.
    let mut parts = Vec::new();
    each(object, shape[0], |item| {
        let part = if is_sequence(&item) {
            nested(&item, None, depth + 1)?
        } else {
            make::array(&item, None)?
        };
        parts.push(part);
        Ok(true)
    })?;
    if parts.iter().any(|p| p.shape() != parts[0].shape()) {
        return Err(value(
            "Initialization encountered non-uniform length. Give all lists of one level the same length.",
        ));
    }
    let common = dtype.unwrap_or_else(|| {
        parts.iter().skip(1).fold(parts[0].dtype(), |d, p| d.promote(p.dtype()))
    });
    parts.iter_mut().for_each(|p| *p = p.astype(common));
    Ok(ultramarine::stack(&parts, 0)?)
}

/// Appends the numbers of `object`, which has to have `shape`; false if an array is met.
fn fill(object: &Bound<'_, PyAny>, shape: &[usize], column: &mut Column) -> Res<bool> {
    let Some((&n, rest)) = shape.split_first() else {
        if let Some(n) = Number::of(object)? {
            column.push(n);
            return Ok(true);
        }
        if is_array(object) {
            return Ok(false);
        }
        if is_sequence(object) {
            return Err(value(
                "Initialization encountered extra dimension. Nest all lists equally deeply.",
            ));
        }
        return Err(invalid_element(object));
    };
    if let Ok(list) = object.cast_exact::<PyList>() {
        if list.len() != n {
            return Err(value(
                "Initialization encountered non-uniform length. Give all lists of one level the same length.",
            ));
        }
        for item in list.iter() {
            if !fill(&item, rest, column)? {
                return Ok(false);
            }
        }
    } else if is_sequence(object) {
        return each(object, n, |item| fill(&item, rest, column));
    } else if is_array(object) {
        return Ok(false);
    } else if Number::of(object)?.is_some() {
        return Err(value(
            "Initialization encountered non-uniform length. Give all lists of one level the same length.",
        ));
    } else {
        return Err(invalid_element(object));
    }
    Ok(true)
}

/// True for an element that is an array, also of another library. Bytes are none here: beside
/// numbers they are a mistake.
fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let bytes = object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>();
    as_array(object).is_some() || (!bytes && make::offers_memory(object))
}

/// Elements of a sequence are numbers, arrays and sequences: for others, None included.
fn invalid_element(object: &Bound<'_, PyAny>) -> Fail {
    value(format!(
        "Invalid type {} received in array initialization. Pass numbers, nested lists of numbers, or arrays.",
        crate::error::type_name(object)
    ))
}

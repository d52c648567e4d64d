//! GGUF files: metadata as Python's values, and the choice of how blocks are loaded.

use super::write;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Fail, Res, value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::io::Write;
use ultramarine::Error;
use ultramarine::io::gguf::{self as files, Metadata, Options, Packing, Value};
use ultramarine::io::{Arrays, Format, Loaded};

/// Lists in lists that are taken, more than files have.
const MAX_DEPTH: usize = 32;

/// The options of `load`, which are GGUF's alone.
pub fn options(format: Format, packing: Option<&str>, dtype: Option<DtypeArg>) -> Res<Options> {
    if format != Format::Gguf && (packing.is_some() || dtype.is_some()) {
        return Err(value(
            "[load] `packing` and `dtype` apply to GGUF files only. Leave them out.",
        ));
    }
    let mut options = Options::default();
    if let Some(name) = packing {
        options.packing = Packing::from_name(name)?;
    }
    if let Some(dtype) = dtype {
        options.dtype = dtype.0;
    }
    Ok(options)
}

pub fn loaded((arrays, metadata): (Arrays, Metadata)) -> Loaded {
    Loaded::Gguf(arrays, metadata)
}

pub fn to_python(py: Python<'_>, metadata: Metadata) -> Res<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in metadata {
        dict.set_item(key, value_to_python(py, value)?)?;
    }
    Ok(dict)
}

fn value_to_python(py: Python<'_>, value: Value) -> Res<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Array(array) => Bound::new(py, PyArray::new(array))?.into_any(),
        Value::Text(text) => PyString::new(py, &text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::List(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(value_to_python(py, value)?)?;
            }
            list.into_any()
        }
    })
}

fn from_python(key: &str, found: &Bound<'_, PyAny>, depth: usize) -> Res<Value> {
    if found.is_instance_of::<PyArray>() {
        return Ok(Value::Array(found.extract::<ArrayArg>()?.0));
    }
    if let Ok(text) = found.cast::<PyString>() {
        return Ok(Value::Text(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = found.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_owned()));
    }
    let items = match (found.cast::<PyList>(), found.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect::<Vec<_>>(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => {
            let kind = found.get_type().name()?;
            let remedy = "Pass an array (its dtype says how a number is stored), a string, bytes or a list of these";
            let text = format!("metadata '{key}' has type {kind}. {remedy}.");
            return Err(Fail::from(Error::runtime("save_gguf", text)));
        }
    };
    if depth == MAX_DEPTH {
        let text = format!("metadata '{key}': lists are nested too deeply. Nest fewer.");
        return Err(Fail::from(Error::runtime("save_gguf", text)));
    }
    let values = items.iter().map(|item| from_python(key, item, depth + 1));
    Ok(Value::List(values.collect::<Res<_>>()?))
}

/// Saves named arrays and metadata in the format `.gguf`.
///
/// Quantised arrays, as `load` gives them, are saved as blocks without loss: words of uint32 with
/// `.scales` and `.biases` of float16 beside them, of 4, 5 or 8 bits and group size 32.
///
/// Args:
///     file (Path): Path, to which `.gguf` is added if it lacks it; or a binary file object.
///     arrays (Mapping[str, array]): Arrays by name: of floats but complex64, int8, int16, int32 or
///         int64.
///     metadata (Mapping[str, array | str | bytes | list[Any]] | None): Values by name: arrays of at most
///         one axis, text, or lists.
///
/// Raises:
///     RuntimeError: If the format cannot hold an array or a value, or the file cannot be written.
///     ValueError: If metadata has an array of a dtype that it cannot have, or `file` is neither a
///         path nor a file object.
///
/// Example:
///     >>> mx.save_gguf("weights.gguf", {"w": mx.ones(2)}, {"general.name": "small"})
///     >>> mx.load("weights.gguf")["w"]
///     array([1, 1], dtype=float32)
#[pyfunction]
#[pyo3(signature = (file, arrays, metadata=None))]
pub fn save_gguf(
    file: &Bound<'_, PyAny>,
    arrays: &Bound<'_, PyDict>,
    metadata: Option<&Bound<'_, PyDict>>,
) -> Res<()> {
    let all = super::arrays(arrays)?;
    let mut values = Metadata::new();
    for (key, found) in metadata.into_iter().flat_map(|m| m.iter()) {
        let name = key.extract::<String>().map_err(|_| {
            Fail::from(Error::runtime(
                "save_gguf",
                "Keys of metadata must be strings. Convert them with str().",
            ))
        })?;
        let found = from_python(&name, &found, 0)?;
        values.insert(name, found);
    }
    let write_to = |w: &mut dyn Write, name: &str| files::write(w, &all, &values, name);
    write("save_gguf", file, ".gguf", write_to, |path| files::save(path, &all, &values))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: save_gguf);
    Ok(())
}

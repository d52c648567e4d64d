//! Making arrays from Python objects.

use super::PyArray;
use crate::convert::{Number, as_array, exact, invalid};
use crate::dtype::DtypeArg;
use crate::error::{Fail, Res, value};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use ultramarine::{Array, Dtype, Scalar};

#[pymethods]
impl PyArray {
    #[new]
    #[pyo3(signature = (val, dtype=None))]
    fn py_new(val: &Bound<'_, PyAny>, dtype: Option<DtypeArg>) -> Res<PyArray> {
        Ok(PyArray::new(array(val, dtype.map(|d| *d))?))
    }
}

/// What `array(object, dtype)` makes.
pub fn array(object: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> Res<Array> {
    let cast = |a: Array| dtype.map_or_else(|| a.clone(), |d| a.astype(d));
    if let Some(a) = as_array(object) {
        return Ok(cast(a.get().get(object.py())));
    }
    if let Some(n) = Number::of(object)? {
        return Ok(Array::scalar(n.cast(dtype.unwrap_or_else(|| n.dtype()))));
    }
    if is_sequence(object) {
        return nested(object, dtype);
    }
    if let Some(a) = array_like_as(object, dtype)? {
        return Ok(cast(a));
    }
    if !object.is_instance_of::<PyString>()
        && let Ok(method) = object.getattr("__array__")
    {
        let other = method.call0()?;
        if let Some(a) = array_like_as(&other, dtype)? {
            return Ok(cast(a));
        }
    }
    Err(invalid(object))
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// The array of an object with `__mlx_array__` or the buffer protocol.
pub fn array_like(object: &Bound<'_, PyAny>) -> Res<Option<Array>> {
    array_like_as(object, None)
}

fn array_like_as(object: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> Res<Option<Array>> {
    if object.is_none() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    // SAFETY: looks at a live object's type only.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0 {
        return from_memory(object, dtype);
    }
    if let Ok(method) = object.getattr("__mlx_array__") {
        let made = method.call0()?;
        return match as_array(&made) {
            Some(a) => Ok(Some(a.get().get(object.py()))),
            None => Err(value("__mlx_array__ did not return an array.")),
        };
    }
    Ok(None)
}

/// What an object lends through the buffer protocol, given back when dropped.
struct View<'py> {
    // In place: of a `bytes` object, `shape` and `strides` point into the struct itself.
    raw: Box<ffi::Py_buffer>,
    py: Python<'py>,
}

impl<'py> View<'py> {
    fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let mut raw = Box::new(ffi::Py_buffer::new());
        // SAFETY: the call fills `raw` where it returns 0.
        unsafe {
            let rc = ffi::PyObject_GetBuffer(object.as_ptr(), &mut *raw, ffi::PyBUF_FULL_RO);
            if rc != 0 {
                return Err(PyErr::fetch(object.py()));
            }
            Ok(View { raw, py: object.py() })
        }
    }

    fn shape(&self) -> Vec<usize> {
        if self.raw.ndim <= 0 || self.raw.shape.is_null() {
            return Vec::new();
        }
        // SAFETY: the protocol: `shape` has `ndim` entries while the view is held.
        let shape = unsafe { std::slice::from_raw_parts(self.raw.shape, self.raw.ndim as usize) };
        shape.iter().map(|n| *n as usize).collect()
    }

    fn format(&self) -> &[u8] {
        if self.raw.format.is_null() {
            return b"B";
        }
        // SAFETY: the protocol: a string that lives as long as the view.
        unsafe { std::ffi::CStr::from_ptr(self.raw.format) }.to_bytes()
    }

    /// Calls `f` with the elements' bytes in row-major order.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
        let len = self.raw.len.max(0) as usize;
        if len == 0 {
            return Ok(f(&[]));
        }
        let order = b'C' as std::ffi::c_char;
        // SAFETY: a contiguous view has `len` readable bytes at `buf`, and we hold the
        // interpreter lock, so no Python code writes to them; otherwise they are gathered
        // into a vector of that length.
        unsafe {
            if ffi::PyBuffer_IsContiguous(&*self.raw, order) != 0 {
                return Ok(f(std::slice::from_raw_parts(self.raw.buf as *const u8, len)));
            }
            let mut bytes = vec![0u8; len];
            let target = bytes.as_mut_ptr().cast();
            if ffi::PyBuffer_ToContiguous(target, &*self.raw, self.raw.len, order) != 0 {
                return Err(PyErr::fetch(self.py));
            }
            Ok(f(&bytes))
        }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer and is released once.
        unsafe { ffi::PyBuffer_Release(&mut *self.raw) }
    }
}

/// Copies the memory of an object with the buffer protocol. Float64 and complex128 become
/// float32 and complex64, unless `dtype` asks for more.
fn from_memory(object: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> Res<Option<Array>> {
    let view = match View::new(object) {
        Ok(view) => view,
        // NumPy does not export bfloat16 (of the package ml_dtypes); its bits it does.
        Err(error) => {
            let name = object.getattr("dtype").and_then(|d| d.getattr("name"));
            if !name.is_ok_and(|n| n.to_string() == "bfloat16") {
                return Err(Fail::Py(error));
            }
            let bits = View::new(&object.call_method1("view", ("uint16",))?)?;
            let made =
                bits.with_bytes(|b| Array::from_bytes(b, &bits.shape(), Dtype::Bfloat16))??;
            return Ok(Some(made));
        }
    };
    let item = view.raw.itemsize.max(1) as usize;
    // NumPy's dates lend their memory as bytes.
    let kind = object.getattr("dtype").and_then(|d| d.getattr("kind"));
    if kind.is_ok_and(|k| matches!(k.to_string().as_str(), "M" | "m")) {
        return Err(value(format!(
            "Invalid type {} received in array initialization.",
            crate::error::type_name(object)
        )));
    }
    let Some(format) = Format::read(view.format(), item) else {
        // An object array without dimensions: what it holds may be a number.
        if view.shape().is_empty()
            && let Ok(content) = object.call_method0("item")
            && let Some(n) = Number::of(&content)?
        {
            return Ok(Some(Array::scalar(n.cast(n.dtype()))));
        }
        return Err(value(format!(
            "Invalid type {} (elements '{}' of {item} bytes) received in array initialization.",
            crate::error::type_name(object),
            String::from_utf8_lossy(view.format()),
        )));
    };
    let shape = view.shape();
    let made = view.with_bytes(|bytes| {
        if !format.swap {
            return format.code.array(bytes, &shape, dtype);
        }
        let mut swapped = bytes.to_vec();
        swapped.chunks_exact_mut(format.code.unit(item)).for_each(<[u8]>::reverse);
        format.code.array(&swapped, &shape, dtype)
    })?;
    Ok(Some(made?))
}

impl Code {
    /// Bytes that are one number in the machine's eyes.
    fn unit(self, item: usize) -> usize {
        match self {
            Code::Complex128 | Code::Plain(Dtype::Complex64) => item / 2,
            Code::Plain(_) => item,
        }
    }

    fn array(
        self,
        bytes: &[u8],
        shape: &[usize],
        dtype: Option<Dtype>,
    ) -> ultramarine::Result<Array> {
        match (self, dtype) {
            // Integers are made from the whole float64.
            (Code::Plain(Dtype::Float64), Some(d)) if d == Dtype::Float64 || !d.is_inexact() => {
                Array::from_bytes(bytes, shape, Dtype::Float64)
            }
            (Code::Plain(Dtype::Float64), _) => {
                let narrow: Vec<f32> = f64s(bytes).map(|v| v as f32).collect();
                Array::from_slice(&narrow, shape)
            }
            (Code::Plain(own), _) => Array::from_bytes(bytes, shape, own),
            (Code::Complex128, _) => {
                let mut narrow = Vec::with_capacity(bytes.len() / 2);
                f64s(bytes).for_each(|v| narrow.extend_from_slice(&(v as f32).to_ne_bytes()));
                Array::from_bytes(&narrow, shape, Dtype::Complex64)
            }
        }
    }
}

fn f64s(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b))
}

#[derive(Clone, Copy, PartialEq)]
enum Code {
    Plain(Dtype),
    Complex128,
}

/// What a buffer's elements are.
struct Format {
    code: Code,
    /// The bytes are in the other order than the machine's.
    swap: bool,
}

impl Format {
    fn read(text: &[u8], item: usize) -> Option<Format> {
        let (swap, text) = match text {
            [b'@' | b'=' | b'|', rest @ ..] => (false, rest),
            [b'<', rest @ ..] => (cfg!(target_endian = "big"), rest),
            [b'>' | b'!', rest @ ..] => (cfg!(target_endian = "little"), rest),
            _ => (false, text),
        };
        let integer = |signed: bool| {
            Some(match (item, signed) {
                (1, true) => Dtype::Int8,
                (2, true) => Dtype::Int16,
                (4, true) => Dtype::Int32,
                (8, true) => Dtype::Int64,
                (1, false) => Dtype::Uint8,
                (2, false) => Dtype::Uint16,
                (4, false) => Dtype::Uint32,
                (8, false) => Dtype::Uint64,
                _ => return None,
            })
        };
        let dtype = match text {
            b"?" => Dtype::Bool,
            b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => integer(true)?,
            b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" | b"c" => integer(false)?,
            b"e" => Dtype::Float16,
            b"f" => Dtype::Float32,
            b"d" => Dtype::Float64,
            b"bfloat16" => Dtype::Bfloat16,
            b"Zf" => Dtype::Complex64,
            b"Zd" => return (item == 16).then_some(Format { code: Code::Complex128, swap }),
            _ => return None,
        };
        (dtype.size() == item).then_some(Format { code: Code::Plain(dtype), swap })
    }
}

/// The numbers of nested sequences, in the narrowest of four kinds.
enum Column {
    Bool(Vec<bool>),
    Int(Vec<i64>),
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
            Column::Float(_) => Dtype::Float32,
            Column::Complex(_) => Dtype::Complex64,
        };
        let dtype = dtype.unwrap_or(own);
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
            Column::Float(v) => v.iter().for_each(|n| put(Number::Float(*n).cast(dtype))),
            Column::Complex(v) => v.iter().for_each(|n| put(Number::Complex(n.0, n.1).cast(dtype))),
        }
        Ok(Array::from_bytes(&bytes, shape, dtype)?)
    }
}

/// An array of nested lists and tuples of numbers, or of numbers and arrays.
fn nested(object: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> Res<Array> {
    let mut shape = Vec::new();
    let mut first = object.clone();
    while is_sequence(&first) {
        let n = first.len()?;
        shape.push(n);
        if shape.len() > ultramarine::shape::MAX_NDIM {
            return Err(value("array: nested too deeply"));
        }
        if n == 0 {
            break;
        }
        first = first.get_item(0)?;
    }
    let mut column = Column::Bool(Vec::new());
    if fill(object, &shape, &mut column)? {
        return column.array(&shape, dtype);
    }
    // There are arrays among the elements: stack.
    let mut parts = Vec::new();
    for item in object.try_iter()? {
        let item = item?;
        let number = exact(&item).is_none() && Number::of(&item)?.is_some();
        if !(number || as_array(&item).is_some() || is_sequence(&item)) {
            return Err(invalid(&item));
        }
        parts.push(array(&item, None)?);
    }
    if parts.iter().any(|p| p.shape() != parts[0].shape()) {
        return Err(value("Initialization encountered non-uniform length."));
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
        if as_array(object).is_some() {
            return Ok(false);
        }
        if is_sequence(object) {
            return Err(value("Initialization encountered extra dimension."));
        }
        return Err(invalid_element(object));
    };
    if let Ok(list) = object.cast::<PyList>() {
        if list.len() != n {
            return Err(value("Initialization encountered non-uniform length."));
        }
        for item in list.iter() {
            if !fill(&item, rest, column)? {
                return Ok(false);
            }
        }
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        if tuple.len() != n {
            return Err(value("Initialization encountered non-uniform length."));
        }
        for item in tuple.iter() {
            if !fill(&item, rest, column)? {
                return Ok(false);
            }
        }
    } else if as_array(object).is_some() {
        return Ok(false);
    } else if Number::of(object)?.is_some() {
        return Err(value("Initialization encountered non-uniform length."));
    } else {
        return Err(invalid_element(object));
    }
    Ok(true)
}

/// Elements of a sequence are numbers, arrays and sequences: for others, None included.
fn invalid_element(object: &Bound<'_, PyAny>) -> Fail {
    value(format!(
        "Invalid type {} received in array initialization.",
        crate::error::type_name(object)
    ))
}

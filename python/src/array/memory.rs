//! Arrays of memory that objects lend through the buffer protocol.

use crate::convert::Number;
use crate::error::{Fail, Res, type_name, value};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use std::ptr::NonNull;
use ultramarine::{Array, Buffer, Dtype, Error, shape};

/// Memory lent through the buffer protocol, released when dropped.
struct View {
    // In place: of a `bytes` object, `shape` and `strides` point into the struct itself.
    raw: Box<ffi::Py_buffer>,
}

// SAFETY: what the pointers lead to is read under the interpreter lock, or is the memory lent,
// which is read wherever the array is; it is given back under the lock.
unsafe impl Send for View {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl Sync for View {}

impl View {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut raw = Box::new(ffi::Py_buffer::new());
        // SAFETY: the call fills `raw` where it returns 0.
        unsafe {
            let rc = ffi::PyObject_GetBuffer(object.as_ptr(), &mut *raw, ffi::PyBUF_FULL_RO);
            if rc != 0 {
                return Err(PyErr::fetch(object.py()));
            }
            Ok(View { raw })
        }
    }

    fn ndim(&self) -> usize {
        self.raw.ndim.max(0) as usize
    }

    fn shape(&self) -> Vec<usize> {
        if self.ndim() == 0 || self.raw.shape.is_null() {
            return Vec::new();
        }
        // SAFETY: the protocol: `shape` has `ndim` entries while the view is held.
        let shape = unsafe { std::slice::from_raw_parts(self.raw.shape, self.ndim()) };
        shape.iter().map(|n| *n as usize).collect()
    }

    fn format(&self) -> &[u8] {
        if self.raw.format.is_null() {
            return b"B";
        }
        // SAFETY: the protocol: a string that lives as long as the view.
        unsafe { std::ffi::CStr::from_ptr(self.raw.format) }.to_bytes()
    }

    /// Steps in elements of `dtype`; `None` where the memory is no array as it is.
    fn strides(&self, shape: &[usize], dtype: Dtype) -> Option<Vec<isize>> {
        let size = dtype.size() as isize;
        if shape.len() != self.ndim() {
            return None;
        }
        if self.ndim() > 0 && !self.raw.suboffsets.is_null() {
            // SAFETY: the protocol: `ndim` entries.
            let hops = unsafe { std::slice::from_raw_parts(self.raw.suboffsets, self.ndim()) };
            if hops.iter().any(|hop| *hop >= 0) {
                return None;
            }
        }
        let alignment = if dtype.is_complex() { size / 2 } else { size };
        if !(self.raw.buf as usize).is_multiple_of(alignment as usize) {
            return None;
        }
        if self.ndim() == 0 || self.raw.strides.is_null() {
            return Some(ultramarine::shape::contiguous_strides(shape).to_vec());
        }
        // SAFETY: the protocol: `ndim` entries.
        let steps = unsafe { std::slice::from_raw_parts(self.raw.strides, self.ndim()) };
        let whole = |(step, n): (&isize, &usize)| match *n {
            1 => Some(0),
            _ => (step % size == 0).then_some(step / size),
        };
        steps.iter().zip(shape).map(whole).collect()
    }

    /// Calls `f` with the elements' bytes in row-major order, without the interpreter's lock if
    /// there are many.
    fn with_bytes<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&[u8]) -> R + Send,
    ) -> PyResult<R> {
        let len = self.raw.len.max(0) as usize;
        if len == 0 {
            return Ok(f(&[]));
        }
        let order = b'C' as std::ffi::c_char;
        // SAFETY: a contiguous view has `len` readable bytes at `buf` until it is released.
        // Otherwise they are gathered into a vector of that length. What Python code writes while it
        // is copied is its race, as with NumPy's own copies: any bytes are elements, and only copied.
        unsafe {
            if ffi::PyBuffer_IsContiguous(&*self.raw, order) != 0 {
                let bytes = std::slice::from_raw_parts(self.raw.buf as *const u8, len);
                return Ok(without_lock(py, len, || f(bytes)));
            }
            let mut bytes = vec![0u8; len];
            let target = bytes.as_mut_ptr().cast();
            if ffi::PyBuffer_ToContiguous(target, &*self.raw, self.raw.len, order) != 0 {
                return Err(PyErr::fetch(py));
            }
            Ok(without_lock(py, len, || f(&bytes)))
        }
    }
}

/// Calls `f`, which copies so many bytes: without the interpreter's lock if other threads gain more
/// from that than the exchange costs.
pub fn without_lock<R: Send>(py: Python<'_>, bytes: usize, f: impl FnOnce() -> R + Send) -> R {
    const LARGE: usize = 256 << 10;
    if bytes < LARGE { f() } else { py.detach(f) }
}

impl Drop for View {
    fn drop(&mut self) {
        // On whatever thread the array ends. After the interpreter's end it leaks.
        Python::try_attach(|_| {
            // SAFETY: the view was filled by PyObject_GetBuffer and is released once, under
            // the lock.
            unsafe { ffi::PyBuffer_Release(&mut *self.raw) }
        });
    }
}

/// Requirements on memory that is imported.
#[derive(Clone, Copy)]
pub struct Taking {
    /// As in `asarray`: true always copies, false never.
    pub copy: Option<bool>,
    /// A copy of float64 may become float32 at once.
    pub narrow: bool,
}

/// The array of an object with the buffer protocol, in the dtype of its elements: shared where
/// that is wanted and possible, else copied. (complex128 becomes complex64.)
pub fn lent(object: &Bound<'_, PyAny>, taking: Taking) -> Res<Array> {
    let py = object.py();
    let (view, known) = match View::new(object) {
        Ok(view) => (view, None),
        // NumPy does not lend the types of the package ml_dtypes; their bits it does.
        Err(error) => match bits(object)? {
            Some((view, dtype)) => (view, Some(dtype)),
            // The message of the exception is no help: "cannot include dtype 'M' in a buffer".
            None => match object.getattr("dtype") {
                Ok(dtype) => return Err(no_dtype(object, &dtype.to_string())),
                Err(_) => return Err(error.into()),
            },
        },
    };
    let item = view.raw.itemsize.max(1) as usize;
    // NumPy's dates lend their memory as bytes.
    let kind = object.getattr(intern!(py, "dtype")).and_then(|d| d.getattr(intern!(py, "kind")));
    if kind.is_ok_and(|k| matches!(k.to_string().as_str(), "M" | "m")) {
        return Err(no_dtype(object, "dates"));
    }
    let shape = view.shape();
    let format = match known {
        Some(dtype) => Some(Format { code: Code::Plain(dtype), swap: false }),
        None => Format::read(view.format(), item),
    };
    let Some(format) = format else {
        // An object array without dimensions: what it holds may be a number.
        if shape.is_empty()
            && taking.copy != Some(false)
            && let Ok(content) = object.call_method0("item")
            && let Some(n) = Number::of(&content)?
        {
            return Ok(Array::scalar(n.cast(n.dtype())));
        }
        let text = format!("'{}' of {item} bytes", String::from_utf8_lossy(view.format()));
        return Err(no_dtype(object, &text));
    };
    let mut hindrance = "of the memory's layout or alignment";
    if taking.copy != Some(true) {
        match format.code {
            _ if format.swap => hindrance = "its byte order is not the machine's",
            Code::Complex128 => hindrance = "complex128 has to be converted to complex64",
            Code::Plain(dtype) => {
                if let Some(strides) = view.strides(&shape, dtype) {
                    return Ok(shared(view, &shape, &strides, dtype)?);
                }
            }
        }
    }
    if taking.copy == Some(false) {
        let text = format!(
            "{} cannot be used without a copy: {hindrance}. Leave out copy=False.",
            type_name(object)
        );
        return Err(Error::buffer("array", text).into());
    }
    let made = view.with_bytes(py, |bytes| {
        if !format.swap {
            return format.code.array(bytes, &shape, taking.narrow);
        }
        let mut swapped = bytes.to_vec();
        swapped.chunks_exact_mut(format.code.unit(item)).for_each(<[u8]>::reverse);
        format.code.array(&swapped, &shape, taking.narrow)
    })?;
    Ok(made?)
}

#[cold]
fn no_dtype(object: &Bound<'_, PyAny>, elements: &str) -> Fail {
    let name = type_name(object);
    value(format!(
        "Invalid type {name} (elements {elements}) received in array initialization. Convert the elements to numbers."
    ))
}

/// The bits of a NumPy array of a type that NumPy itself does not know, and what they are.
fn bits(object: &Bound<'_, PyAny>) -> Res<Option<(View, Dtype)>> {
    let name = object.getattr("dtype").and_then(|d| d.getattr("name"));
    let Some(dtype) = name.ok().and_then(|n| Dtype::from_name(&n.to_string())) else {
        return Ok(None);
    };
    let carrier = match dtype {
        Dtype::Bfloat16 => "uint16",
        d if d.is_storage() => "uint8",
        _ => return Ok(None),
    };
    Ok(Some((View::new(&object.call_method1("view", (carrier,))?)?, dtype)))
}

/// An array over the memory itself, which stays lent as long as it needs it.
fn shared(
    view: View,
    shape: &[usize],
    strides: &[isize],
    dtype: Dtype,
) -> ultramarine::Result<Array> {
    let first = view.raw.buf.cast::<u8>();
    if shape.contains(&0) || first.is_null() {
        return Array::from_bytes(&[], shape, dtype);
    }
    let range = shape::byte_range(shape::axes(shape, strides), dtype.bits());
    let (below, bytes) = range
        .map_or((0, 0), |(first, end)| (first.unsigned_abs() as usize, (end - first) as usize));
    let read_only = view.raw.readonly != 0;
    // SAFETY: the protocol: from the lowest to the highest element all is memory of the
    // object, which keeps it where it is until the view is given back; the sums cannot overflow,
    // as that memory exists.
    let buffer = unsafe {
        let lowest = NonNull::new_unchecked(first.sub(below));
        Buffer::from_foreign(lowest, bytes, read_only, Box::new(view))
    };
    Array::from_buffer(buffer, below, shape, strides, dtype)
}

/// An array of its own of bytes in row-major order; float64 as float32 if `narrow`.
pub fn copied(
    bytes: &[u8],
    shape: &[usize],
    dtype: Dtype,
    narrow: bool,
) -> ultramarine::Result<Array> {
    Code::Plain(dtype).array(bytes, shape, narrow)
}

impl Code {
    /// Bytes that are one number in the machine's eyes.
    fn unit(self, item: usize) -> usize {
        match self {
            Code::Complex128 | Code::Plain(Dtype::Complex64) => item / 2,
            Code::Plain(_) => item,
        }
    }

    fn array(self, bytes: &[u8], shape: &[usize], narrow: bool) -> ultramarine::Result<Array> {
        match self {
            Code::Plain(Dtype::Float64) if narrow => {
                Array::from_float64_bytes(bytes, shape, Dtype::Float32)
            }
            Code::Plain(own) => Array::from_bytes(bytes, shape, own),
            Code::Complex128 => Array::from_float64_bytes(bytes, shape, Dtype::Complex64),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Code {
    Plain(Dtype),
    Complex128,
}

/// The dtype of a buffer's elements.
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

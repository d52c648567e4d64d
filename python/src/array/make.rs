//! Making arrays from Python objects: the one place that says what an object is taken for.

use super::memory::{self, Taking};
use super::nested::{is_list, is_sequence, nested};
use super::{PyArray, evaluate};
use crate::convert::{Number, as_array, exact, invalid};
use crate::dlpack::{from_capsule, from_producer, is_capsule};
use crate::dtype::DtypeArg;
use crate::error::{Fail, Res, exception, type_name, value};
use crate::stream::DeviceArg;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use ultramarine::interchange::ImportOptions;
use ultramarine::{Array, Device, Dtype, Error, shape};

#[pymethods]
impl PyArray {
    #[new]
    #[pyo3(signature = (val, dtype=None, *, copy=None, device=None))]
    fn py_new(
        val: &Bound<'_, PyAny>,
        dtype: Option<DtypeArg>,
        copy: Option<bool>,
        device: Option<DeviceArg>,
    ) -> Res<PyArray> {
        let device = device.map(|d| d.get());
        let copy = match copy {
            None => Copy::Foreign,
            Some(copy) => Copy::asked(Some(copy)),
        };
        Ok(PyArray::new(made(
            val,
            Request { copy, device, ..Request::of_array(dtype.map(|d| *d)) },
        )?))
    }
}

/// When memory is copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    /// Always.
    Always,
    /// Foreign memory always, that of arrays only where it is needed: arrays never change.
    Foreign,
    /// Only where it is needed.
    Needed,
    /// Never: an error where it is needed.
    Never,
}

impl Copy {
    /// The meaning of the `copy` of `asarray`.
    pub fn asked(copy: Option<bool>) -> Copy {
        match copy {
            Some(true) => Copy::Always,
            Some(false) => Copy::Never,
            None => Copy::Needed,
        }
    }

    /// The same for memory of others, as other protocols put it.
    fn foreign(self) -> Option<bool> {
        match self {
            Copy::Always | Copy::Foreign => Some(true),
            Copy::Needed => None,
            Copy::Never => Some(false),
        }
    }
}

/// Requirements on the array that is made of an object.
#[derive(Clone, Copy)]
pub struct Request {
    pub dtype: Option<Dtype>,
    pub copy: Copy,
    /// float64 of other libraries becomes float32 unless a dtype is given, as in MLX.
    pub narrow: bool,
    pub device: Option<Device>,
}

impl Request {
    /// The requirements of `array(object, dtype)`.
    pub fn of_array(dtype: Option<Dtype>) -> Request {
        Request { dtype, copy: Copy::Foreign, narrow: true, device: None }
    }

    /// The dtype that elements of `own` get.
    fn dtype_of(&self, own: Dtype) -> Dtype {
        let narrow = self.narrow && own == Dtype::Float64;
        self.dtype.unwrap_or(if narrow { Dtype::Float32 } else { own })
    }

    /// True if copies of float64 may become float32 at once: integers are made from the whole
    /// float64.
    fn narrows(&self) -> bool {
        self.narrow && self.dtype.is_none_or(|d| d.is_inexact() && d != Dtype::Float64)
    }
}

/// Makes `array(object, dtype)`.
pub fn array(object: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> Res<Array> {
    made(object, Request::of_array(dtype))
}

/// The array that an object is to become. This is the order of precedence, and the docstrings
/// of `array` and `asarray` say the same.
pub fn made(object: &Bound<'_, PyAny>, request: Request) -> Res<Array> {
    let py = object.py();
    if let Some(a) = as_array(object) {
        return own(py, a.get().get(py), request);
    }
    let number = Number::of(object)?;
    if number.is_none()
        && !is_list(object)
        && let Some(a) = foreign(object, request)?
    {
        return Ok(a);
    }
    let refused = || copy_needed(object, "its numbers have to be gathered");
    let made = match number {
        _ if request.copy == Copy::Never && (number.is_some() || is_sequence(object)) => {
            return Err(refused());
        }
        Some(n) => Array::scalar(n.cast(request.dtype.unwrap_or_else(|| n.dtype()))),
        None if is_sequence(object) => nested(object, request.dtype, 0)?,
        None => return Err(invalid(object)),
    };
    at_home(py, made, request)
}

/// True if the type of an object offers memory by any protocol.
pub fn offers_memory(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let class = object.get_type();
    let has = |name| class.hasattr(name).unwrap_or(false);
    is_capsule(object)
        || has_buffer(object)
        || has(intern!(py, "__dlpack__"))
        || has(intern!(py, "__array__"))
        || has(intern!(py, "__mlx_array__"))
}

fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: looks at a live object's type only.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// The array of an object of another library, copied, if it offers its memory: what operators
/// and functions take besides arrays and numbers.
pub fn array_like(object: &Bound<'_, PyAny>, request: Request) -> Res<Option<Array>> {
    foreign(object, request)
}

/// Capsule, producer, buffer, `__array__`, `__mlx_array__`, in this order: the part of the
/// precedence that other libraries have. Where a producer refuses, buffer and `__array__` are
/// asked: they have dtypes and layouts that DLPack lacks. Its reason is reported if there are none.
fn foreign(object: &Bound<'_, PyAny>, request: Request) -> Res<Option<Array>> {
    let py = object.py();
    if object.is_none() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let refused = match memory_of(object, request)? {
        Memory::Had(a) => return finish(py, a, request).map(Some),
        Memory::Refused(error) => Some(error),
        Memory::None => None,
    };
    let class = object.get_type();
    if !is_capsule(object) && class.hasattr(intern!(py, "__array__"))? {
        return match by_method(object, request) {
            Ok(a) => finish(py, a, request).map(Some),
            Err(fail) => Err(refused.map_or(fail, Fail::Py)),
        };
    }
    if let Some(error) = refused {
        return Err(error.into());
    }
    if class.hasattr(intern!(py, "__mlx_array__"))? {
        let made = object.call_method0(intern!(py, "__mlx_array__"))?;
        return match as_array(&made) {
            Some(a) => own(py, a.get().get(py), request).map(Some),
            None => {
                Err(value("__mlx_array__ did not return an array. Return an mx.array from it."))
            }
        };
    }
    Ok(None)
}

/// The answer of an object that is asked for its memory.
enum Memory {
    /// It knows no such protocol.
    None,
    Had(Array),
    /// It would, but not this; another protocol may.
    Refused(PyErr),
}

/// The memory of a capsule, of a producer, or of an object with the buffer protocol.
fn memory_of(object: &Bound<'_, PyAny>, request: Request) -> Res<Memory> {
    let refused = match tensor(object, request)? {
        Memory::Had(a) => return Ok(Memory::Had(a)),
        refused => refused,
    };
    if has_buffer(object) {
        let taking = Taking { copy: request.copy.foreign(), narrow: request.narrows() };
        return memory::lent(object, taking).map(Memory::Had);
    }
    Ok(refused)
}

/// The tensor of a capsule or a producer, shared: `finish` takes what has to be a copy.
fn tensor(object: &Bound<'_, PyAny>, request: Request) -> Res<Memory> {
    let take = |object: &Bound<'_, PyAny>, copy| -> Res<Option<Array>> {
        // Narrowing happens on the source's device, because the target may lack float64.
        let device = request.device.filter(|_| !request.narrow);
        let options = ImportOptions { device, copy };
        if is_capsule(object) {
            return from_capsule(object, options).map(Some);
        }
        from_producer(object, options)
    };
    if is_no_producer(object) {
        return Ok(Memory::None);
    }
    let never = request.copy == Copy::Never;
    let refused = match take(object, never.then_some(false)) {
        Ok(None) => {
            remember(object);
            return Ok(Memory::None);
        }
        Ok(Some(a)) => return Ok(Memory::Had(a)),
        Err(fail) => excused(object, fail)?,
    };
    if never {
        return Ok(Memory::Refused(refused));
    }
    // Misaligned memory, and whatever else only a copy can be.
    if let Ok(Some(a)) = take(object, Some(true)) {
        return Ok(Memory::Had(a));
    }
    if let Some(plain) = without_marks(object)
        && let Ok(Some(a)) = take(&plain, None)
    {
        return Ok(Memory::Had(a));
    }
    Ok(Memory::Refused(refused))
}

/// Types without `__dlpack__` that cannot be given one, and that never end: those of NumPy's
/// scalars and the built-in ones. To look for what is not there takes longer than all else.
static WITHOUT: [AtomicPtr<ffi::PyTypeObject>; 8] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; 8];
static REMEMBERED: AtomicUsize = AtomicUsize::new(0);

fn is_no_producer(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type_ptr();
    WITHOUT.iter().any(|known| known.load(Ordering::Relaxed) == class)
}

#[cold]
fn remember(object: &Bound<'_, PyAny>) {
    let class = object.get_type_ptr();
    // SAFETY: a live type.
    if unsafe { ffi::PyType_GetFlags(class) } & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
        let place = REMEMBERED.fetch_add(1, Ordering::Relaxed) % WITHOUT.len();
        WITHOUT[place].store(class, Ordering::Relaxed);
    }
}

/// A torch tensor that needs a gradient or is conjugated or negated lazily, without that: it
/// does not give its memory itself. The values are what is asked for here.
fn without_marks<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let mut plain = object.clone();
    let py = object.py();
    let flag = |o: &Bound<'py, PyAny>, name: &str| -> bool {
        let found = o.getattr(name).and_then(|f| if f.is_callable() { f.call0() } else { Ok(f) });
        found.and_then(|f| f.is_truthy()).unwrap_or(false)
    };
    if !object.get_type().hasattr(intern!(py, "requires_grad")).unwrap_or(false) {
        return None;
    }
    for (mark, remedy) in
        [("requires_grad", "detach"), ("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")]
    {
        if flag(&plain, mark) {
            plain = plain.call_method0(remedy).ok()?;
        }
    }
    (!plain.is(object)).then_some(plain)
}

/// The result of `__array__`: an array of this package, or memory.
fn by_method(object: &Bound<'_, PyAny>, request: Request) -> Res<Array> {
    let py = object.py();
    let name = intern!(py, "__array__");
    let given = if request.copy == Copy::Never {
        let keywords = PyDict::new(py);
        keywords.set_item("copy", false)?;
        let given = object.call_method(name, (), Some(&keywords));
        given.map_err(|e| match e.is_instance_of::<PyTypeError>(py) {
            // It is of before NumPy 2 and cannot promise that.
            true => PyErr::from(copy_needed(object, "its __array__ has no argument copy")),
            false => e,
        })?
    } else {
        object.call_method0(name)?
    };
    if let Some(a) = exact(&given) {
        return Ok(a.get().get(py));
    }
    match memory_of(&given, request)? {
        Memory::Had(a) => Ok(a),
        Memory::Refused(error) => Err(error.into()),
        Memory::None => Err(value(format!(
            "__array__ of {} returned {}. Return a NumPy array from it.",
            type_name(object),
            type_name(&given)
        ))),
    }
}

/// Passes on what is no refusal. A refusal becomes an InterchangeError, which is the ValueError
/// that callers expect of an object that cannot be an array. One by TypeError (pyarrow's, of
/// elements that are missing) is final: what other protocols would give is something else.
fn excused(object: &Bound<'_, PyAny>, fail: Fail) -> Res<PyErr> {
    let py = object.py();
    let error = PyErr::from(fail);
    let buffer = error.is_instance_of::<PyBufferError>(py);
    if error.is_instance_of::<PyValueError>(py) && buffer {
        return Ok(error);
    }
    let by_type = error.is_instance_of::<PyTypeError>(py);
    if !buffer && !by_type {
        return Err(error.into());
    }
    let name = type_name(object);
    let of = match object.getattr(intern!(py, "dtype")) {
        Ok(dtype) => format!("{name} of {dtype}"),
        Err(_) => name,
    };
    let text = format!("{of} cannot be converted to an array: {}", error.value(py));
    let refusal = exception(&Error::buffer("array", text));
    refusal.set_cause(py, Some(error));
    if by_type { Err(refusal.into()) } else { Ok(refusal) }
}

#[cold]
fn copy_needed(object: &Bound<'_, PyAny>, why: &str) -> Fail {
    let text = format!(
        "{} cannot be used without a copy: {why}. Leave out copy=False.",
        type_name(object)
    );
    Error::buffer("array", text).into()
}

/// An array of this package, as requested.
fn own(py: Python<'_>, array: Array, request: Request) -> Res<Array> {
    let dtype = request.dtype.unwrap_or(array.dtype());
    let array = match request.copy {
        Copy::Never if dtype != array.dtype() => return Err(cast_needed(&array, dtype)),
        // Lazy, so that it has a gradient; nothing but that writes the elements elsewhere.
        Copy::Always if dtype == array.dtype() => array.duplicate()?,
        _ => array.try_astype(dtype)?,
    };
    at_home(py, array, request)
}

#[cold]
fn cast_needed(array: &Array, dtype: Dtype) -> Fail {
    let text =
        format!("A cast from {} to {dtype} needs a copy. Leave out copy=False.", array.dtype());
    Error::buffer("array", text).into()
}

/// An array of another library's memory as requested: copies are taken now, so that
/// what the owner writes later is not seen.
fn finish(py: Python<'_>, array: Array, request: Request) -> Res<Array> {
    let own = array.dtype();
    let dtype = request.dtype_of(own);
    if dtype != own && request.copy == Copy::Never {
        return Err(cast_needed(&array, dtype));
    }
    let copies = dtype != own || request.copy.foreign() == Some(true);
    let array = if copies && escaped(&array) { taken(py, array, request)? } else { array };
    at_home(py, array.try_astype(dtype)?, request)
}

/// True if foreign code may write to the array's memory.
fn escaped(array: &Array) -> bool {
    array.is_available() && array.value().is_ok_and(|value| value.buffer.is_escaped())
}

/// A copy of the memory as it is now.
fn taken(py: Python<'_>, array: Array, request: Request) -> Res<Array> {
    // Where the memory is, whatever device is the default one: nothing travels for a copy.
    if array.value()?.buffer.device() != Device::CPU {
        let copy = array.duplicate()?;
        evaluate(py, &copy)?;
        return Ok(copy);
    }
    let narrow = request.narrows();
    let dense = shape::is_contiguous(array.shape(), &array.value()?.strides);
    if narrow && array.dtype() == Dtype::Float64 && !dense {
        // One pass, as below.
        let stream = ultramarine::default_stream(Device::CPU)?;
        let copy = ultramarine::with_stream(stream, || array.astype(Dtype::Float32));
        evaluate(py, &copy)?;
        return Ok(copy);
    }
    if !dense {
        return Ok(py.detach(|| array.to_contiguous())?);
    }
    let copy = |b: &[u8]| memory::copied(b, array.shape(), array.dtype(), narrow);
    Ok(memory::without_lock(py, array.nbytes(), || array.with_bytes(copy))??)
}

/// The array on the device that was asked for, if any was.
fn at_home(py: Python<'_>, array: Array, request: Request) -> Res<Array> {
    let Some(device) = request.device else { return Ok(array) };
    if array.device() == device {
        return Ok(array);
    }
    if request.copy == Copy::Never {
        let text = format!(
            "An array on {} cannot get to {device} without a copy. Leave out copy=False.",
            array.device()
        );
        return Err(Error::buffer_device("array", text).into());
    }
    Ok(py.detach(|| array.copy_to(device))?)
}

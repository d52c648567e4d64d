//! Tensors of other libraries as arrays.

use super::calls::{self, Keywords, Quick, Word, flag, guarded};
use super::capsule::{self, Lent};
use super::foreign;
use crate::array::PyArray;
use crate::convert::as_array;
use crate::error::{Fail, Res, exception, type_, type_name};
use crate::stream::DeviceArg;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::Array;
use ultramarine::interchange::{
    DLDevice, ExportOptions, Import, ImportOptions, consumer_stream, dl_device,
    dlpack::device_type, has_accelerators,
};

pub use super::capsule::is_capsule;

/// The array of a capsule's tensor, which stays in the capsule if it is refused.
pub fn from_capsule(capsule: &Bound<'_, PyAny>, options: ImportOptions) -> Res<Array> {
    Ok(from_answer(capsule, options, false)?)
}

/// As [`from_capsule`]; `synchronized`: the producer has made the consumer's stream wait for the values.
#[inline]
fn from_answer(
    capsule: &Bound<'_, PyAny>,
    options: ImportOptions,
    synchronized: bool,
) -> Quick<Array> {
    if options.copy != Some(true)
        && options.device.is_none()
        && let Some(array) = capsule::take_plain(capsule)
    {
        return Ok(array);
    }
    other_answer(capsule, options, synchronized)
}

/// A tensor that has to be copied, or is on a device, or is refused.
#[cold]
fn other_answer(
    capsule: &Bound<'_, PyAny>,
    mut options: ImportOptions,
    synchronized: bool,
) -> Quick<Array> {
    let lent = Lent::new(capsule)?;
    if options.copy == Some(true) && lent.tensor().is_copied() {
        // Whoever made it copied for us.
        options.copy = None;
    }
    let mut import = Import::validate(lent.tensor(), lent.checked, options)?;
    if !synchronized && let Some(stream) = default_stream(lent.tensor().device()) {
        import = import.after(stream);
    }
    foreign::taken(capsule.py(), import, lent.take()?)
}

/// The stream that a producer makes wait if it is given none, where DLPack names one.
#[inline]
fn default_stream(device: DLDevice) -> Option<u64> {
    match device.device_type {
        device_type::CUDA | device_type::CUDA_MANAGED => Some(1),
        device_type::ROCM => Some(0),
        _ => None,
    }
}

/// The array of an object whose type has `__dlpack__`; `None` if it has not.
pub fn from_producer(object: &Bound<'_, PyAny>, options: ImportOptions) -> Res<Option<Array>> {
    Ok(asked(object, &*foreign::found(object)?, options)?)
}

#[inline]
fn asked(
    object: &Bound<'_, PyAny>,
    known: &foreign::Known,
    options: ImportOptions,
) -> Quick<Option<Array>> {
    if let Some(array) = foreign::take(object, known, options)? {
        return Ok(Some(array));
    }
    let Some(method) = foreign::method(object, known)? else { return Ok(None) };
    let (capsule, synchronized) = match ask(object, &method, options) {
        // Some cannot copy; then it is done here.
        Err(error)
            if options.copy == Some(true) && error.is_instance_of::<PyBufferError>(object.py()) =>
        {
            let shared = ImportOptions { copy: None, ..options };
            ask(object, &method, shared).map_err(|_| error)?
        }
        answer => answer?,
    };
    from_answer(&capsule, options, synchronized).map(Some)
}

/// Keywords of a call of `__dlpack__`.
static MAX_VERSION: Word = Word::new(c"max_version");
static STREAM: Word = Word::new(c"stream");
static DL_DEVICE: Word = Word::new(c"dl_device");
static COPY: Word = Word::new(c"copy");

/// Arguments of most calls of `__dlpack__`.
struct Usual {
    version: Py<PyTuple>,
    names: Py<PyTuple>,
}

static USUAL: pyo3::sync::PyOnceLock<Usual> = pyo3::sync::PyOnceLock::new();

impl Usual {
    fn get(py: Python<'_>) -> PyResult<&Usual> {
        USUAL.get_or_try_init(py, || {
            let name = MAX_VERSION.object(py)?;
            let version = PyTuple::new(py, [1, 3])?.unbind();
            Ok(Usual { version, names: PyTuple::new(py, [name])?.unbind() })
        })
    }
}

/// Asks a producer for its tensor, in the words of DLPack 1.0 and newer first.
#[inline]
fn ask<'py>(
    object: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    options: ImportOptions,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = object.py();
    let usual = Usual::get(py)?;
    if options != ImportOptions::default() || has_accelerators() {
        return ask_for_more(object, method, options, usual);
    }
    let arguments = [object.as_ptr(), usual.version.as_ptr()];
    // SAFETY: live objects, and a name for the second.
    let made = unsafe { calls::call(method.as_ptr(), &arguments, 1, usual.names.as_ptr()) };
    if made.is_null() {
        return Ok((again(object, method, None)?, false));
    }
    // SAFETY: a new reference.
    Ok((unsafe { Bound::from_owned_ptr(py, made) }, false))
}

/// After an exception: asks as producers of before DLPack 1.0 were asked, if that is why.
#[cold]
fn again<'py>(
    object: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    stream: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let error = PyErr::fetch(py);
    // Python raises this for keywords that a function does not know. Classes derived from it
    // (pyarrow's, or our own for devices) are answers.
    if !error.get_type(py).is(py.get_type::<PyTypeError>()) {
        return Err(error);
    }
    match stream {
        None => method.call1((object,)),
        Some(stream) => {
            let keywords = pyo3::types::PyDict::new(py);
            keywords.set_item("stream", stream)?;
            method.call((object,), Some(&keywords))
        }
    }
}

/// Asks with all that the caller or the device wants said.
#[cold]
fn ask_for_more<'py>(
    object: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    options: ImportOptions,
    usual: &Usual,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = object.py();
    let mut names = vec![MAX_VERSION.object(py)?];
    let mut values = vec![usual.version.bind(py).clone().into_any()];
    let mut say = |name: &Word, value: Bound<'py, PyAny>| -> PyResult<()> {
        names.push(name.object(py)?);
        values.push(value);
        Ok(())
    };
    let mut stream = None;
    if let Some(at) = device_of(object)? {
        let wanted = match options.device {
            Some(device) => Some(dl_device(device).map_err(|e| exception(&e))?),
            None => None,
        };
        // Where no backend serves the device, it is the CPU's memory that comes, or an error.
        let ours = consumer_stream(at).ok().flatten();
        if let Some(number) = ours {
            let number = number.into_pyobject(py)?.into_any();
            stream = Some(number.clone());
            say(&STREAM, number)?;
        }
        // Memory of the host is brought to a device here: its libraries know no devices.
        if let Some(wanted) = wanted.filter(|w| *w != at && at.device_type != device_type::CPU) {
            let pair = (wanted.device_type, wanted.device_id).into_pyobject(py)?;
            say(&DL_DEVICE, pair.into_any())?;
        }
    }
    if let Some(copy) = options.copy {
        say(&COPY, pyo3::types::PyBool::new(py, copy).to_owned().into_any())?;
    }
    let names = PyTuple::new(py, names)?;
    let mut arguments = vec![object.as_ptr()];
    arguments.extend(values.iter().map(Bound::as_ptr));
    // SAFETY: live objects, and names for all but the first.
    let made = unsafe { calls::call(method.as_ptr(), &arguments, 1, names.as_ptr()) };
    let synchronized = stream.is_some();
    if made.is_null() {
        return Ok((again(object, method, stream)?, synchronized));
    }
    // SAFETY: a new reference.
    Ok((unsafe { Bound::from_owned_ptr(py, made) }, synchronized))
}

/// Where a producer says that it is; `None` if it does not say.
fn device_of(object: &Bound<'_, PyAny>) -> PyResult<Option<DLDevice>> {
    static DEVICE: Word = Word::new(c"__dlpack_device__");
    let Some(method) = calls::on_type(object, &DEVICE)? else { return Ok(None) };
    let pair = method.call1((object,))?;
    // Device types may be members of an enumeration.
    let (device_type, device_id) = pair.extract::<(i32, i32)>()?;
    Ok(Some(DLDevice { device_type, device_id }))
}

static KEYWORDS: Keywords<2> =
    Keywords { function: "from_dlpack", names: [Word::new(c"device"), Word::new(c"copy")] };

const FROM_DLPACK: &std::ffi::CStr = c"from_dlpack(x, /, *, device=None, copy=None)
--

Imports the tensor of another library as an array, without a copy.

Both share the memory: work that was not evaluated yet sees later writes by its owner.

Args:
    x (SupportsDLPack | Any): Object with `__dlpack__` (and `__dlpack_device__`), or a capsule that
        `__dlpack__` gave.
    device (Device | DeviceType | None): Device of the result; by default where `x` is.
    copy (bool | None): True copies; False raises where a copy would be needed; None copies where
        it is needed.

Returns:
    array: The array.

Raises:
    InterchangeError: (a BufferError and a ValueError) If the memory cannot be imported, or a copy
        is needed and `copy` is False.
    InterchangeDeviceError: (also a TypeError) If that is because of the device.
    TypeError: If `x` is no producer of DLPack.

Example:
    >>> import numpy
    >>> mx.from_dlpack(numpy.arange(3, dtype=\"int32\"))
    array([0, 1, 2], dtype=int32)";

unsafe extern "C" fn from_dlpack(
    _module: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guarded(|py| {
        if count != 1 {
            return Err(KEYWORDS.positional(1, count).into());
        }
        let mut options = ImportOptions::default();
        // SAFETY: a call's arguments: one, and those that have names.
        let x = unsafe {
            if !names.is_null() {
                let [device, copy] = KEYWORDS.read(py, arguments.offset(count), names)?;
                options.copy = flag(py, copy, "copy")?;
                if !device.is_null() && device != ffi::Py_None() {
                    let device = Borrowed::from_ptr(py, device).extract::<DeviceArg>()?;
                    options.device = Some(device.get());
                }
            }
            Borrowed::from_ptr(py, *arguments)
        };
        Ok(PyArray::object(py, taken(&x, options)?)?.into_ptr())
    })
}

/// The array that `from_dlpack` gives.
#[inline]
fn taken(x: &Bound<'_, PyAny>, options: ImportOptions) -> Quick<Array> {
    if let Some(a) = PyArray::exact(x) {
        return own(x.py(), a.get(x.py()), options);
    }
    if is_capsule(x) {
        return from_answer(x, options, false);
    }
    let known = foreign::found(x)?;
    if known.is_ours
        && let Some(a) = as_array(x)
    {
        return own(x.py(), a.get().get(x.py()), options);
    }
    match asked(x, &known, options)? {
        Some(array) => Ok(array),
        None => Err(no_producer(x)),
    }
}

#[cold]
fn no_producer(x: &Bound<'_, PyAny>) -> Box<Fail> {
    Box::new(type_(format!(
        "[from_dlpack] expected an object with __dlpack__ or a capsule, got {}",
        type_name(x)
    )))
}

/// Our own array, where it is wanted and as it is wanted.
fn own(py: Python<'_>, array: Array, options: ImportOptions) -> Quick<Array> {
    if options.copy != Some(true) && options.device.is_none_or(|d| d == array.device()) {
        return Ok(array);
    }
    let device = options.device.map(dl_device).transpose()?;
    let export = ExportOptions { device, copy: options.copy, ..ExportOptions::default() };
    Ok(py.detach(|| Array::from_dlpack(array.to_dlpack_with(export)?))?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    calls::add_function(m, c"from_dlpack", from_dlpack, FROM_DLPACK)
}

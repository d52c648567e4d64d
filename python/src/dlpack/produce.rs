//! `__dlpack__` and `__dlpack_device__`.

use super::calls::{self, Keywords, Word, flag, guarded};
use super::{capsule, streams};
use crate::array::PyArray;
use crate::error::{Res, type_, value};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use ultramarine::Array;
use ultramarine::interchange::{DLDevice, ExportOptions, Kind};

static KEYWORDS: Keywords<4> = Keywords {
    function: "__dlpack__",
    names: [
        Word::new(c"max_version"),
        Word::new(c"stream"),
        Word::new(c"dl_device"),
        Word::new(c"copy"),
    ],
};

const DLPACK: &std::ffi::CStr =
    c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

Exports the array as a tensor in a capsule, for `from_dlpack` of another library.

Args:
    stream (int | None): The consumer's stream, as DLPack numbers those of the device; None on the CPU.
    max_version (tuple[int, int] | None): Newest version of DLPack that the consumer takes; without
        it the tensor has no version, as before DLPack 1.0.
    dl_device (tuple[int, int] | None): DLPack's type and number of a device to copy to.
    copy (bool | None): True copies in any case; False forbids it.

Returns:
    Any: Capsule.

Raises:
    BufferError: If the array cannot be exported so.";

const DEVICE: &std::ffi::CStr = c"__dlpack_device__($self, /)
--

Returns DLPack's type and number of the device that the array is on.

Returns:
    tuple[int, int]: Type and number.";

fn is_none(value: *mut ffi::PyObject) -> bool {
    // SAFETY: a pointer to compare with.
    value.is_null() || value == unsafe { ffi::Py_None() }
}

/// The major version that the consumer takes; 0 if it does not say.
fn major(py: Python<'_>, given: *mut ffi::PyObject) -> Res<i64> {
    if is_none(given) {
        return Ok(0);
    }
    let wrong =
        || type_("max_version must be None or a tuple with two elements. Pass for example (1, 0).");
    // SAFETY: a live object, that is a tuple of two where its items are asked for.
    unsafe {
        if ffi::PyTuple_Check(given) == 0 || ffi::PyTuple_Size(given) != 2 {
            return Err(wrong());
        }
        let number = |i| match ffi::PyLong_AsLongLong(ffi::PyTuple_GetItem(given, i)) {
            -1 if !ffi::PyErr_Occurred().is_null() => Err(PyErr::fetch(py)),
            number => Ok(number),
        };
        let major = number(0)?;
        number(1)?;
        Ok(major)
    }
}

/// The device that the consumer wants.
fn wanted(py: Python<'_>, given: *mut ffi::PyObject) -> Res<DLDevice> {
    // SAFETY: a live object.
    let given = unsafe { Borrowed::from_ptr(py, given) };
    let wrong =
        || type_("dl_device must be None or a tuple of two integers. Pass for example (1, 0).");
    let pair = given.cast::<pyo3::types::PyTuple>().map_err(|_| wrong())?;
    if pair.len() != 2 {
        return Err(wrong());
    }
    // Numbers that no device has stay such.
    let number = |i| -> PyResult<i32> {
        let item = pair.get_item(i)?;
        // SAFETY: a live object.
        match unsafe { ffi::PyLong_AsLongLong(item.as_ptr()) } {
            -1 if PyErr::occurred(py) => Err(PyErr::fetch(py)),
            number => Ok(i32::try_from(number).unwrap_or(i32::MAX)),
        }
    };
    Ok(DLDevice { device_type: number(0)?, device_id: number(1)? })
}

/// The consumer's stream.
fn stream(py: Python<'_>, given: *mut ffi::PyObject, array: &Array) -> Res<Option<isize>> {
    if is_none(given) {
        return Ok(None);
    }
    // SAFETY: a live object.
    let given = unsafe { Borrowed::from_ptr(py, given) };
    match given.extract::<isize>() {
        Ok(number) => Ok(Some(number)),
        Err(_) if array.device() == ultramarine::Device::CPU => {
            Err(value("[__dlpack__] stream must be None for an array on the CPU. Leave it out."))
        }
        Err(error) => Err(error.into()),
    }
}

unsafe extern "C" fn dlpack(
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guarded(|py| {
        if count != 0 {
            return Err(KEYWORDS.positional(0, count).into());
        }
        // SAFETY: a call's arguments; the interpreter has checked that `slf` is an array.
        let ([version, on, device, copy], slf) =
            unsafe { (KEYWORDS.read(py, arguments, names)?, PyArray::of(py, slf)) };
        // Python code may run in here: only then is the array looked at.
        let kind = if major(py, version)? >= 1 { Kind::Versioned } else { Kind::Legacy };
        let device = if is_none(device) { None } else { Some(wanted(py, device)?) };
        let copy = flag(py, copy, "copy")?;
        // SAFETY: an export without a copy runs no Python code.
        let array = unsafe { slf.borrow(py) };
        let tensor = match device {
            // Options are made where they go: to copy what was just written in pieces costs a tenth of the call.
            None if copy != Some(true) && is_none(on) && array.is_available() => array
                .to_dlpack_with(ExportOptions {
                    kind,
                    device: None,
                    stream: None,
                    stream_keeper: None,
                    copy,
                })?,
            _ => {
                let array = slf.get(py);
                let stream = stream(py, on, &array)?;
                let stream_keeper = match stream {
                    // Below are the default streams, which need no keeper.
                    Some(given @ 3..) => streams::keeper(py, array.dlpack_device()?, given),
                    _ => None,
                };
                let options = ExportOptions { kind, device, stream, stream_keeper, copy };
                py.detach(|| array.to_dlpack_with(options))?
            }
        };
        Ok(capsule::wrap(py, tensor)?)
    })
}

unsafe extern "C" fn dlpack_device(
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    static NONE: Keywords<0> = Keywords { function: "__dlpack_device__", names: [] };
    guarded(|py| {
        if count != 0 {
            return Err(NONE.positional(0, count).into());
        }
        // SAFETY: a call's arguments; the interpreter has checked that `slf` is an array; no
        // Python code runs while it is borrowed.
        let device = unsafe {
            NONE.read(py, arguments, names)?;
            PyArray::of(py, slf).borrow(py).dlpack_device()?
        };
        let pair = (device.device_type, device.device_id).into_pyobject(py)?;
        Ok(pair.into_any().into_ptr())
    })
}

pub fn register(class: &Bound<'_, PyType>) -> PyResult<()> {
    calls::add_method(class, c"__dlpack__", dlpack, DLPACK)?;
    calls::add_method(class, c"__dlpack_device__", dlpack_device, DEVICE)
}

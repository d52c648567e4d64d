//! Capsules with tensors. A capsule owns its tensor while it has its first name; who takes
//! the tensor gives it the second.

use crate::error::{Res, type_name};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use ultramarine::Array;
use ultramarine::interchange::{
    Plain,
    dlpack::{Checked, DLManagedTensorVersioned, DLPACK_MAJOR, ManagedTensor, check},
    refusal,
};

/// The names of one kind of capsule. Capsules keep the pointer, so these are statics.
struct Names {
    fresh: &'static CStr,
    used: &'static CStr,
}

static LEGACY: Names = Names { fresh: c"dltensor", used: c"used_dltensor" };
static VERSIONED: Names = Names { fresh: c"dltensor_versioned", used: c"used_dltensor_versioned" };

/// A capsule's tensor that was found valid. The capsule owns it still.
pub struct Lent<'a, 'py> {
    capsule: &'a Bound<'py, PyAny>,
    names: &'static Names,
    tensor: ManuallyDrop<ManagedTensor>,
    pub checked: Checked,
}

/// A capsule's name; NULL if it has none.
///
/// # Safety
/// A capsule.
unsafe fn name_of<'a>(capsule: *mut ffi::PyObject) -> Option<&'a CStr> {
    // SAFETY: a capsule; its name is NULL or a string that it keeps. Valid capsules raise nothing.
    unsafe {
        let name: *const c_char = ffi::PyCapsule_GetName(capsule);
        (!name.is_null()).then(|| CStr::from_ptr(name))
    }
}

/// True for a capsule, of any name.
#[inline]
pub fn is_capsule(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: looks at a live object's type only.
    unsafe { ffi::PyCapsule_CheckExact(object.as_ptr()) != 0 }
}

impl<'a, 'py> Lent<'a, 'py> {
    /// Looks at a capsule's tensor.
    #[inline]
    pub fn new(capsule: &'a Bound<'py, PyAny>) -> Res<Lent<'a, 'py>> {
        if !is_capsule(capsule) {
            return Err(no_capsule(capsule).into());
        }
        let object = capsule.as_ptr();
        // SAFETY: names that are right lead to tensors of their kind, by DLPack's rules; the
        // interpreter lock is held until `take`, so it is not taken meanwhile.
        let (names, found) = unsafe {
            let name = name_of(object);
            let pointer = |names: &Names| ffi::PyCapsule_GetPointer(object, names.fresh.as_ptr());
            if name == Some(VERSIONED.fresh) {
                (&VERSIONED, ManagedTensor::from_versioned(pointer(&VERSIONED).cast()))
            } else if name == Some(LEGACY.fresh) {
                (&LEGACY, ManagedTensor::from_legacy(pointer(&LEGACY).cast()))
            } else {
                return Err(unusable(name).into());
            }
        };
        let (tensor, checked) = found.map_err(refusal)?;
        Ok(Lent { capsule, names, tensor: ManuallyDrop::new(tensor), checked })
    }

    pub fn tensor(&self) -> &ManagedTensor {
        &self.tensor
    }

    /// Takes the tensor out of the capsule.
    #[inline]
    pub fn take(self) -> PyResult<ManagedTensor> {
        // SAFETY: a capsule; the name is static.
        if unsafe { ffi::PyCapsule_SetName(self.capsule.as_ptr(), self.names.used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(self.capsule.py()));
        }
        Ok(ManuallyDrop::into_inner(self.tensor))
    }
}

/// The short way: the array of a capsule's tensor if that has a version and needs nothing but to
/// be taken. If not, nothing has happened, and [`Lent::new`] says why or what else there is to do.
#[inline]
pub fn take_plain(capsule: &Bound<'_, PyAny>) -> Option<Array> {
    unsafe extern "C" {
        fn strcmp(a: *const c_char, b: *const c_char) -> c_int;
    }
    let object = capsule.as_ptr();
    if !is_capsule(capsule) {
        return None;
    }
    // SAFETY: a capsule, whose name is NULL or a string. Under the right name there is a tensor,
    // by DLPack's rules, and of this major version it is laid out as this. The interpreter lock is
    // held, so it is not taken before its name is changed.
    unsafe {
        // Libraries' names are constants, so mostly it is the one that was seen last.
        static SEEN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
        let name = ffi::PyCapsule_GetName(object);
        if name != SEEN.load(Ordering::Relaxed) || name.is_null() {
            if name.is_null() || strcmp(name, VERSIONED.fresh.as_ptr()) != 0 {
                return None;
            }
            SEEN.store(name.cast_mut(), Ordering::Relaxed);
        }
        let raw = ffi::PyCapsule_GetPointer(object, VERSIONED.fresh.as_ptr());
        if raw.is_null() {
            // It was another name's memory meanwhile.
            ffi::PyErr_Clear();
        }
        let raw = NonNull::new(raw.cast::<DLManagedTensorVersioned>())?;
        let header = raw.as_ref();
        if header.version.major != DLPACK_MAJOR {
            return None;
        }
        // Looked at where it is: it is moved in pieces, which are slow to put together.
        let checked = check(&header.dl_tensor, header.flags);
        let checked = checked.as_ref().ok()?;
        let tensor = ManuallyDrop::new(ManagedTensor::assume_versioned(raw));
        let plain = Plain::validate(&tensor, checked)?;
        if ffi::PyCapsule_SetName(object, VERSIONED.used.as_ptr()) != 0 {
            ffi::PyErr_Clear();
            return None;
        }
        Some(plain.take(ManuallyDrop::into_inner(tensor), checked))
    }
}

#[cold]
fn no_capsule(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "[from_dlpack] expected a capsule from __dlpack__, got {}",
        type_name(object)
    ))
}

#[cold]
fn unusable(name: Option<&CStr>) -> ultramarine::Error {
    let name = name.map(CStr::to_string_lossy);
    ultramarine::Error::buffer(
        "from_dlpack",
        match name.as_deref() {
            Some("used_dltensor" | "used_dltensor_versioned") => {
                "The capsule was used already. Call __dlpack__ again for another.".to_owned()
            }
            Some(name) => format!(
                "A capsule named \"{name}\" holds no tensor. Pass what __dlpack__ returned."
            ),
            None => "A capsule without a name holds no tensor. Pass what __dlpack__ returned."
                .to_owned(),
        },
    )
}

/// A capsule of a tensor, which it owns until it is taken.
#[inline]
pub fn wrap(py: Python<'_>, tensor: ManagedTensor) -> PyResult<*mut ffi::PyObject> {
    let (raw, names): (*mut c_void, _) = match tensor.into_versioned() {
        Ok(raw) => (raw.as_ptr().cast(), &VERSIONED),
        Err(tensor) => match tensor.into_legacy() {
            Ok(raw) => (raw.as_ptr().cast(), &LEGACY),
            Err(_) => return Err(PyRuntimeError::new_err("a tensor of no kind")),
        },
    };
    // SAFETY: not NULL, the name is static; where no capsule is made, the tensor is given back.
    unsafe {
        let capsule = ffi::PyCapsule_New(raw, names.fresh.as_ptr(), Some(destroy));
        if capsule.is_null() {
            let error = PyErr::fetch(py);
            discard(raw, names);
            return Err(error);
        }
        Ok(capsule)
    }
}

/// Releases a tensor that was not taken.
///
/// # Safety
/// A tensor of the kind that the names are for, that the caller owns.
unsafe fn discard(raw: *mut c_void, names: &Names) {
    // SAFETY: the caller's promise.
    unsafe {
        if ptr::eq(names, &VERSIONED) {
            ManagedTensor::discard_versioned(raw.cast());
        } else {
            ManagedTensor::discard_legacy(raw.cast());
        }
    }
}

/// Releases the tensor of an unused capsule. A pending exception stays.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule of `wrap`. Asking for the name, and for the
    // pointer by a name that is right, sets no exception. The deleter may be another library's,
    // which may run anything, so what is pending is put aside.
    unsafe {
        let Some(name) = name_of(capsule) else { return };
        let Some(names) = [&VERSIONED, &LEGACY].into_iter().find(|n| n.fresh == name) else {
            return;
        };
        let raw = ffi::PyCapsule_GetPointer(capsule, names.fresh.as_ptr());
        if ffi::PyErr_Occurred().is_null() {
            return discard(raw, names);
        }
        let (mut kind, mut value, mut trace) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        #[allow(deprecated)] // its successor came with 3.12
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut trace);
        discard(raw, names);
        #[allow(deprecated)]
        ffi::PyErr_Restore(kind, value, trace);
    }
}

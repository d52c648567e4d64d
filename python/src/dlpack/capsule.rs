//! Capsules with tensors. A capsule owns its tensor while it has its first name; who takes
//! the tensor gives it the second.

use crate::error::{Res, type_name};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use ultramarine::interchange::{
    dlpack::{Checked, DLManagedTensor, DLManagedTensorVersioned, ManagedTensor},
    refusal,
};

/// The names of one kind of capsule. Capsules keep the pointer: they are static.
pub struct Names {
    pub fresh: &'static CStr,
    pub used: &'static CStr,
}

pub const LEGACY: Names = Names { fresh: c"dltensor", used: c"used_dltensor" };
pub const VERSIONED: Names =
    Names { fresh: c"dltensor_versioned", used: c"used_dltensor_versioned" };

/// A capsule's tensor that was found valid. The capsule owns it still.
pub struct Lent<'a, 'py> {
    capsule: &'a Bound<'py, PyAny>,
    names: &'static Names,
    tensor: std::mem::ManuallyDrop<ManagedTensor>,
    pub checked: Checked,
}

impl<'a, 'py> Lent<'a, 'py> {
    /// Looks at a capsule's tensor.
    pub fn new(capsule: &'a Bound<'py, PyAny>) -> Res<Lent<'a, 'py>> {
        let py = capsule.py();
        let object = capsule.as_ptr();
        // SAFETY: names that are right lead to tensors of their kind, by DLPack's rules; the
        // interpreter lock is held, so nobody takes it meanwhile.
        let (names, (tensor, checked)) = unsafe {
            let pointer = |names: &Names| ffi::PyCapsule_GetPointer(object, names.fresh.as_ptr());
            if ffi::PyCapsule_IsValid(object, VERSIONED.fresh.as_ptr()) != 0 {
                let raw = pointer(&VERSIONED).cast::<DLManagedTensorVersioned>();
                (&VERSIONED, ManagedTensor::from_versioned(raw).map_err(refusal)?)
            } else if ffi::PyCapsule_IsValid(object, LEGACY.fresh.as_ptr()) != 0 {
                let raw = pointer(&LEGACY).cast::<DLManagedTensor>();
                (&LEGACY, ManagedTensor::from_legacy(raw).map_err(refusal)?)
            } else {
                return Err(unusable(py, capsule).into());
            }
        };
        Ok(Lent { capsule, names, tensor: std::mem::ManuallyDrop::new(tensor), checked })
    }

    pub fn tensor(&self) -> &ManagedTensor {
        &self.tensor
    }

    /// Takes the tensor out of the capsule.
    pub fn take(self) -> PyResult<ManagedTensor> {
        // SAFETY: a capsule; the name is static.
        if unsafe { ffi::PyCapsule_SetName(self.capsule.as_ptr(), self.names.used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(self.capsule.py()));
        }
        Ok(std::mem::ManuallyDrop::into_inner(self.tensor))
    }
}

#[cold]
fn unusable(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyErr {
    // SAFETY: looks at a live object's type only.
    if unsafe { ffi::PyCapsule_CheckExact(object.as_ptr()) } == 0 {
        return PyTypeError::new_err(format!(
            "[from_dlpack] expected a capsule from __dlpack__, got {}",
            type_name(object)
        ));
    }
    // SAFETY: a capsule; its name is NULL or a string that it keeps.
    let name = unsafe {
        let name = ffi::PyCapsule_GetName(object.as_ptr());
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    let _ = PyErr::take(py);
    crate::error::exception(&ultramarine::Error::buffer(
        "from_dlpack",
        match name.as_deref() {
            Some("used_dltensor" | "used_dltensor_versioned") => {
                "the capsule was used already: each tensor can be taken once.".to_owned()
            }
            Some(name) => format!("a capsule named \"{name}\" holds no tensor."),
            None => "a capsule without a name holds no tensor.".to_owned(),
        },
    ))
}

/// A capsule of a tensor, which it owns until somebody takes it.
pub fn wrap(py: Python<'_>, tensor: ManagedTensor) -> PyResult<Bound<'_, PyAny>> {
    let (raw, names) = match tensor.into_versioned() {
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
            if std::ptr::eq(names, &VERSIONED) {
                ManagedTensor::discard_versioned(raw.cast());
            } else {
                ManagedTensor::discard_legacy(raw.cast());
            }
            return Err(error);
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}

/// Gives back the tensor of a capsule that nobody used. A pending exception stays.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule of `wrap`. Asking for validity and for
    // a pointer by a name that is right sets no exception.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.fresh.as_ptr()) != 0 {
            let raw = ffi::PyCapsule_GetPointer(capsule, VERSIONED.fresh.as_ptr());
            ManagedTensor::discard_versioned(raw.cast());
        } else if ffi::PyCapsule_IsValid(capsule, LEGACY.fresh.as_ptr()) != 0 {
            let raw = ffi::PyCapsule_GetPointer(capsule, LEGACY.fresh.as_ptr());
            ManagedTensor::discard_legacy(raw.cast());
        }
    }
}

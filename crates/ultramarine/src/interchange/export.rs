//! Exports arrays as tensors.

use super::{device, device_memory, import::HOST, kinds};
use crate::error::{Error, Result};
use crate::{array::Array, backend, device::Device, eval, node::Value};
use core::ffi::c_void;
use std::any::Any;
use std::sync::Arc;
use ultramarine_abi::dlpack::{DLDevice, Description, ManagedTensor, flag};

/// The DLPack struct that a consumer takes. A consumer requests the versioned struct by the argument `max_version` of
/// Python's `__dlpack__`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// With version and flags: available since DLPack 1.0.
    #[default]
    Versioned,
    /// Without version and flags.
    Legacy,
}

/// Keeps a consumer's stream alive as long as it is held. See [`ExportOptions::stream_keeper`].
pub type StreamKeeper = Arc<dyn Any + Send + Sync>;

/// Options of [`Array::to_dlpack_with`]. The default is that of [`Array::to_dlpack`]: a versioned tensor on the array's
/// device, without a copy.
///
/// ```
/// use ultramarine::{Array, interchange::ExportOptions};
/// let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
/// let copied = x.to_dlpack_with(ExportOptions { copy: Some(true), ..Default::default() })?;
/// assert!(copied.is_copied() && !x.to_dlpack()?.is_copied());
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The struct in which the tensor is exported.
    pub kind: Kind,
    /// The device for the tensor; `None`: the array's device. Another device requires a copy.
    pub device: Option<DLDevice>,
    /// The consumer's stream, in DLPack's numbering for the device. It waits for the values. `None`: the device's
    /// default stream. The CPU accepts only `None`.
    pub stream: Option<isize>,
    /// Keeps that stream alive. If a consumer releases the tensor while the stream still works with it, the next user
    /// of the memory waits for the stream. Without a keeper, the next user waits for the device's default stream only
    /// (CUDA, ROCm), or for the stream if the backend can keep it alive itself (OpenCL).
    pub stream_keeper: Option<StreamKeeper>,
    /// `Some(true)`: always copies, and sets the flag for copies. `Some(false)`: never copies. `None`: copies only for
    /// another device.
    pub copy: Option<bool>,
}

impl Array {
    /// Returns the array as a tensor for other libraries, without a copy. The array is evaluated first. While the
    /// tensor lives, its consumer may write to the memory; all arrays that share the memory see these writes.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1i32, 2, 3, 4], &[2, 2])?.transpose()?;
    /// let tensor = x.to_dlpack()?;
    /// assert_eq!((tensor.size(0), tensor.stride(0), tensor.stride(1)), (2, Some(1), Some(2)));
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::eval`]; [`Error::BufferDevice`] when the device's memory cannot be exported.
    pub fn to_dlpack(&self) -> Result<ManagedTensor> {
        self.to_dlpack_with(ExportOptions::default())
    }

    /// Returns the array as a tensor, as [`Array::to_dlpack`] does, with options.
    ///
    /// # Errors
    /// As [`Array::to_dlpack`]; [`Error::Buffer`] when a copy is needed but forbidden, or when read-only memory is
    /// requested in a struct that has no read-only flag.
    pub fn to_dlpack_with(&self, options: ExportOptions) -> Result<ManagedTensor> {
        let ExportOptions { kind, device: None, stream: None, copy: None | Some(false), .. } =
            options
        else {
            return self.give(options);
        };
        match self.node().value() {
            Some(value) if value.buffer.device() == Device::CPU => export(self, value, kind, 0),
            _ => self.give(options),
        }
    }

    /// The tensor of an array that is not evaluated, is on a device or is requested on one, or is to be copied.
    #[cold]
    fn give(&self, options: ExportOptions) -> Result<ManagedTensor> {
        // A device may still be computing the values. The code below makes the consumer wait for them.
        eval::submit(self)?;
        let here = self.dlpack_device()?;
        let waiting = kinds::waiting(here.device_type, options.stream)?;
        let keeper = options.stream_keeper;
        let export = |array: &Array, flags, waiting| {
            let value = match array.node().value() {
                Some(value) => value,
                None => array.value()?,
            };
            if value.buffer.device() == Device::CPU {
                return export(array, value, options.kind, flags);
            }
            if value.buffer.is_read_only() && options.kind == Kind::Legacy {
                return Err(no_read_only());
            }
            let padded = array.dtype().dl_flags();
            if padded != 0 && options.kind == Kind::Legacy {
                return Err(no_padding(array));
            }
            device_memory::export(array, value, options.kind, flags | padded, waiting, keeper)
        };
        // After a copy, only the tensor keeps the memory.
        match options.device {
            Some(wanted) if wanted != here => {
                let target = device::named(wanted)?;
                if options.copy == Some(false) {
                    return Err(Error::buffer(
                        "__dlpack__",
                        format!(
                            "The array is on {}, and cannot get to {target} without a copy. Leave out copy=False.",
                            self.device()
                        ),
                    ));
                }
                let moved = device_memory::fresh(self, target)?;
                export(&moved, flag::IS_COPIED, kinds::Waiting::Host)
            }
            _ if options.copy == Some(true) => {
                let here = self.value()?.buffer.device();
                export(&device_memory::fresh(self, here)?, flag::IS_COPIED, waiting)
            }
            _ => export(self, 0, waiting),
        }
    }

    /// Returns DLPack's type and number of the device of the array's value. The array is evaluated for this only if it
    /// is a view, because a view is on its operand's device.
    ///
    /// # Errors
    /// [`Error::Value`] when no loaded backend has the device; for a view as [`Array::eval`].
    pub fn dlpack_device(&self) -> Result<DLDevice> {
        let node = self.node();
        if !node.is_done() && node.op.forwards_operands() && !backend::gpus().is_empty() {
            eval::submit(self)?;
        }
        let device = self.node().value().map_or(self.device(), |v| v.buffer.device());
        device::of(device)
    }
}

/// The tensor of a value in host memory.
#[inline]
fn export(array: &Array, value: &Value, kind: Kind, flags: u64) -> Result<ManagedTensor> {
    let buffer = &value.buffer;
    let read_only = if buffer.is_read_only() { flag::READ_ONLY } else { 0 };
    let padded = array.dtype().dl_flags();
    if kind == Kind::Legacy && read_only | padded != 0 {
        return Err(if padded != 0 { no_padding(array) } else { no_read_only() });
    }
    // Consumers expect an aligned base and a separate offset. Empty tensors have no data.
    let empty = array.shape().contains(&0);
    let (data, byte_offset) = match (empty, buffer.is_aligned_base()) {
        (true, _) => (std::ptr::null_mut(), 0),
        (false, true) => (buffer.as_ptr(), value.offset as u64),
        (false, false) => (value.data(), 0),
    };
    let description = Description {
        data: data as *mut c_void,
        device: HOST,
        dtype: array.dtype().to_dl(),
        shape: array.shape(),
        strides: &value.strides,
        byte_offset,
        flags: flags | read_only | padded,
    };
    let owner = buffer.export();
    // SAFETY: the export keeps the memory alive, and the value describes it correctly.
    Ok(unsafe { managed(owner, &description, kind) })
}

#[cold]
fn no_padding(array: &Array) -> Error {
    Error::buffer(
        "__dlpack__",
        format!(
            "A tensor without a version cannot say that {} is padded to a byte. Ask with \
             max_version=(1, 3).",
            array.dtype()
        ),
    )
}

/// A tensor in the given kind of struct.
///
/// # Safety
/// As [`ManagedTensor::new`].
pub(super) unsafe fn managed<O: Send + Sync + 'static>(
    owner: O,
    description: &Description<'_>,
    kind: Kind,
) -> ManagedTensor {
    // SAFETY: by this function's contract.
    unsafe {
        match kind {
            Kind::Versioned => ManagedTensor::new(owner, description),
            Kind::Legacy => ManagedTensor::new_legacy(owner, description),
        }
    }
}

#[cold]
fn no_read_only() -> Error {
    Error::buffer(
        "__dlpack__",
        "The memory is read-only, which a tensor without a version cannot say. Ask with \
         max_version=(1, 0) or newer, or for a copy.",
    )
}

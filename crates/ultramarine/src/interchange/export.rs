//! Arrays as tensors.

use super::{device, device_memory, import::HOST, kinds};
use crate::error::{Error, Result};
use crate::{array::Array, backend, device::Device, eval, node::Value};
use core::ffi::c_void;
use std::any::Any;
use std::sync::Arc;
use ultramarine_abi::dlpack::{DLDevice, Description, ManagedTensor, flag};

/// The DLPack struct that a consumer takes. A consumer of the versioned struct says so by the
/// argument `max_version` of Python's `__dlpack__`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// With version and flags: since DLPack 1.0.
    #[default]
    Versioned,
    /// Without.
    Legacy,
}

/// An owner of a consumer's stream: the stream lives as long as this does. See
/// [`ExportOptions::stream_keeper`].
pub type StreamKeeper = Arc<dyn Any + Send + Sync>;

/// Options of [`Array::to_dlpack_with`]. The default is what [`Array::to_dlpack`] does: a versioned
/// tensor where the array is, without a copy.
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
    /// Struct of the tensor.
    pub kind: Kind,
    /// Where the tensor shall be; `None`: where the array is. Another device means a copy.
    pub device: Option<DLDevice>,
    /// The consumer's stream, as DLPack numbers those of the device; it waits for the values. `None`:
    /// the device's default. For the CPU there is only `None`.
    pub stream: Option<isize>,
    /// The owner that keeps that stream alive. A consumer that releases the tensor while the stream still works with it is
    /// then waited for by whoever uses the memory next. Without it that wait is for the device's default stream
    /// alone (CUDA, ROCm), or for the stream if the backend can keep it alive itself (OpenCL).
    pub stream_keeper: Option<StreamKeeper>,
    /// `Some(true)`: a copy, flagged as such. `Some(false)`: never. `None`: only for another
    /// device.
    pub copy: Option<bool>,
}

impl Array {
    /// Returns the array as a tensor for other libraries, without a copy. The array is evaluated
    /// first. While the tensor lives, its consumer may write to the memory, and every array that
    /// shares the memory sees that.
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
    /// As [`Array::to_dlpack`]; [`Error::Buffer`] when a copy is needed and forbidden, or
    /// memory that must not be written is asked for in a form that cannot say so.
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

    /// The tensor of an array that is not evaluated, or on a device, or shall be, or of a copy.
    #[cold]
    fn give(&self, options: ExportOptions) -> Result<ManagedTensor> {
        // A device may still be at work on the values: who waits for it is said below.
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
        // Where a copy is given, the tensor alone keeps it.
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

    /// Returns DLPack's type and number of the device of the array's value. The array is evaluated
    /// for this only if it is a view, whose device is that of its operand.
    ///
    /// # Errors
    /// [`Error::Value`] when no loaded backend has it; for a view as [`Array::eval`].
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
    // Consumers want the base aligned, and the offset beside it; empty tensors have no data.
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
    // SAFETY: the export keeps the memory, which is as the value says.
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

/// A tensor of a kind.
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

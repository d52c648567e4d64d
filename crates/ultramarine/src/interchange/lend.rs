//! Lends arrays as tensors for the duration of a call.

use super::device;
use crate::error::{Error, Result};
use crate::{array::Array, backend, device::Device, dtype::Dtype};
use core::ffi::c_void;
use ultramarine_abi::dlpack::{DLDevice, DLTensor};

/// DLPack's type and number of a device.
///
/// # Errors
/// [`Error::Value`] when no loaded backend has the device.
pub fn dl_device(device: Device) -> Result<DLDevice> {
    device::of(device)
}

/// Ultramarine's device for DLPack's device type and number.
///
/// # Errors
/// [`Error::BufferDevice`] when no loaded backend serves it.
pub fn device_of(dl: DLDevice) -> Result<Device> {
    device::named(dl)
}

/// Returns true if a backend for a device other than the CPU is loaded. The function does not load backends.
#[inline]
pub fn has_accelerators() -> bool {
    !backend::gpus().is_empty()
}

impl Array {
    /// The array as a tensor without an owner. Its pointers are valid while the array lives. The array is evaluated
    /// first. The borrower may write to the memory while the loan lasts.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    /// let lent = x.lend()?;
    /// assert_eq!((lent.ndim, lent.data.cast()), (1, x.value()?.data()));
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::eval`]; [`Error::Buffer`] for read-only memory and for numbers that are padded to a byte, because
    /// this struct has no flags for them; [`Error::BufferDevice`] for memory that the host cannot address.
    #[cfg(target_pointer_width = "64")] // sizes and strides are DLPack's 64 bits
    pub fn lend(&self) -> Result<DLTensor> {
        let value = self.value()?;
        let buffer = &value.buffer;
        if buffer.is_read_only() {
            return Err(read_only());
        }
        if self.dtype().dl_flags() != 0 {
            return Err(padded(self.dtype()));
        }
        if buffer.device() != Device::CPU {
            return Err(Error::buffer_device(
                "__dlpack__",
                format!("Memory of {} cannot be lent. Export it by __dlpack__.", buffer.device()),
            ));
        }
        // Copies of this memory on other devices are out of date from now on.
        drop(buffer.export());
        let data = if self.size() == 0 { std::ptr::null_mut() } else { value.data() };
        Ok(DLTensor {
            data: data.cast::<c_void>(),
            device: device::of(Device::CPU)?,
            ndim: self.ndim() as i32,
            dtype: self.dtype().to_dl(),
            shape: self.shape().as_ptr() as *mut i64,
            strides: value.strides.as_ptr() as *mut i64,
            byte_offset: 0,
        })
    }
}

#[cold]
fn padded(dtype: Dtype) -> Error {
    Error::buffer(
        "__dlpack__",
        format!(
            "{dtype} is padded to a byte, which a lent tensor cannot say. Export it by __dlpack__."
        ),
    )
}

#[cold]
fn read_only() -> Error {
    Error::buffer(
        "__dlpack__",
        "The memory is read-only, which a lent tensor cannot say. Export it by __dlpack__.",
    )
}

//! Owners of tensors.

use crate::{
    Checked, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPACK_MAJOR,
    DLPackVersion, DLTensor, Invalid, check, flag,
};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

#[derive(Clone, Copy)]
enum Raw {
    Legacy(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

/// An owned tensor. Dropping it runs its deleter once, on the thread that drops it.
///
/// The tensor was validated when it was taken over. Its methods read the header again, and rely on
/// the header not being changed meanwhile.
///
/// ```
/// use std::sync::Arc;
/// use ultramarine_dlpack::{
///     DLDataType, DLDevice, Description, ManagedTensor, device_type, flag, type_code,
/// };
///
/// // One side gives three of its numbers away, and keeps them alive until they come back.
/// let numbers: Arc<[i32]> = Arc::new([1, 2, 3]);
/// let description = Description {
///     data: numbers.as_ptr().cast_mut().cast(),
///     device: DLDevice { device_type: device_type::CPU, device_id: 0 },
///     dtype: DLDataType { code: type_code::INT, bits: 32, lanes: 1 },
///     shape: &[3],
///     strides: &[1],
///     byte_offset: 0,
///     flags: flag::READ_ONLY,
/// };
/// // SAFETY: the numbers live as long as the owner, and nobody may write them.
/// let tensor = unsafe { ManagedTensor::new(Arc::clone(&numbers), &description) };
/// let pointer = tensor.into_versioned().expect("it has a version");
/// assert_eq!(Arc::strong_count(&numbers), 2);
///
/// // The other side has nothing but the pointer.
/// // SAFETY: a whole tensor, which nobody else frees.
/// let (tensor, found) = unsafe { ManagedTensor::from_versioned(pointer.as_ptr()) }?;
/// assert_eq!((tensor.ndim(), tensor.size(0), found.bytes), (1, 3, 12));
/// assert!(tensor.is_read_only() && found.contiguous);
/// drop(tensor);
/// assert_eq!(Arc::strong_count(&numbers), 1);
/// # Ok::<(), ultramarine_dlpack::Invalid>(())
/// ```
pub struct ManagedTensor(Raw);

// SAFETY: DLPack lets a deleter run on any thread; the header is only read.
unsafe impl Send for ManagedTensor {}
// SAFETY: as above.
unsafe impl Sync for ManagedTensor {}

impl ManagedTensor {
    /// Takes over a versioned tensor, if it is valid. Otherwise the caller still owns it and can
    /// release it with [`ManagedTensor::discard_versioned`]. If the major version is not 1, only
    /// the version is read.
    ///
    /// # Errors
    /// [`Invalid`].
    ///
    /// # Safety
    /// The pointer is NULL, or points to a tensor that no other code frees once this call has
    /// succeeded. Up to the version, the layout is that of every version. If the major version is
    /// 1, the tensor is a complete [`DLManagedTensorVersioned`], whose shape and strides are NULL
    /// or `ndim` numbers, and which may be freed on any thread.
    #[inline]
    pub unsafe fn from_versioned(
        tensor: *mut DLManagedTensorVersioned,
    ) -> Result<(ManagedTensor, Checked), Invalid> {
        let tensor = NonNull::new(tensor).ok_or(Invalid::Null)?;
        // SAFETY: the caller's promise. Every version has this field.
        let version = unsafe { (&raw const (*tensor.as_ptr()).version).read() };
        if version.major != DLPACK_MAJOR {
            return Err(Invalid::Version { major: version.major, minor: version.minor });
        }
        // SAFETY: the major version is 1, which has this layout, and the caller promises valid
        // shape and strides. The checks read a copy, so there is no reference to memory that others
        // may write.
        let checked = unsafe {
            let flags = (&raw const (*tensor.as_ptr()).flags).read();
            check(&(&raw const (*tensor.as_ptr()).dl_tensor).read(), flags)
        }?;
        Ok((ManagedTensor(Raw::Versioned(tensor)), checked))
    }

    /// Takes over a versioned tensor, with its flags, that [`check`] found valid.
    ///
    /// # Safety
    /// As [`ManagedTensor::from_versioned`], for a valid tensor of major version 1.
    #[inline]
    pub unsafe fn assume_versioned(tensor: NonNull<DLManagedTensorVersioned>) -> ManagedTensor {
        ManagedTensor(Raw::Versioned(tensor))
    }

    /// Takes over a tensor without a version, if it is valid. Otherwise the caller still owns it.
    ///
    /// # Errors
    /// [`Invalid`].
    ///
    /// # Safety
    /// As [`ManagedTensor::from_versioned`], for a [`DLManagedTensor`].
    #[inline]
    pub unsafe fn from_legacy(
        tensor: *mut DLManagedTensor,
    ) -> Result<(ManagedTensor, Checked), Invalid> {
        let tensor = NonNull::new(tensor).ok_or(Invalid::Null)?;
        // SAFETY: the caller's promises. The checks read a copy, as above.
        let checked = unsafe { check(&(&raw const (*tensor.as_ptr()).dl_tensor).read(), 0) }?;
        Ok((ManagedTensor(Raw::Legacy(tensor)), checked))
    }

    /// Runs the deleter of a versioned tensor that was refused, of any version.
    ///
    /// # Safety
    /// The pointer is NULL, or points to a tensor that satisfies [`ManagedTensor::from_versioned`]
    /// and that the caller owns.
    pub unsafe fn discard_versioned(tensor: *mut DLManagedTensorVersioned) {
        if let Some(tensor) = NonNull::new(tensor) {
            // SAFETY: the caller owns the tensor, and the deleter has the same offset in all
            // versions.
            unsafe { release(Raw::Versioned(tensor)) }
        }
    }

    /// Runs the deleter of a refused tensor without a version.
    ///
    /// # Safety
    /// The pointer is NULL, or points to a tensor that satisfies [`ManagedTensor::from_legacy`] and
    /// that the caller owns.
    pub unsafe fn discard_legacy(tensor: *mut DLManagedTensor) {
        if let Some(tensor) = NonNull::new(tensor) {
            // SAFETY: the caller owns it.
            unsafe { release(Raw::Legacy(tensor)) }
        }
    }

    /// Wraps a tensor that this crate made.
    #[inline]
    pub(crate) fn made(tensor: NonNull<DLManagedTensorVersioned>) -> ManagedTensor {
        ManagedTensor(Raw::Versioned(tensor))
    }

    /// Wraps a tensor without a version that this crate made.
    #[inline]
    pub(crate) fn made_legacy(tensor: NonNull<DLManagedTensor>) -> ManagedTensor {
        ManagedTensor(Raw::Legacy(tensor))
    }

    /// Gives up ownership of the tensor. The receiver of the pointer has to run its deleter.
    ///
    /// # Errors
    /// The tensor itself, if it has no version.
    #[inline]
    pub fn into_versioned(self) -> Result<NonNull<DLManagedTensorVersioned>, ManagedTensor> {
        match self.0 {
            Raw::Versioned(tensor) => {
                let _given = ManuallyDrop::new(self);
                Ok(tensor)
            }
            Raw::Legacy(_) => Err(self),
        }
    }

    /// Gives up ownership of the tensor. The receiver of the pointer has to run its deleter.
    ///
    /// # Errors
    /// The tensor itself, if it has a version.
    #[inline]
    pub fn into_legacy(self) -> Result<NonNull<DLManagedTensor>, ManagedTensor> {
        match self.0 {
            Raw::Legacy(tensor) => {
                let _given = ManuallyDrop::new(self);
                Ok(tensor)
            }
            Raw::Versioned(_) => Err(self),
        }
    }

    /// Returns the header: memory, shape, strides and dtype.
    #[inline]
    pub fn tensor(&self) -> &DLTensor {
        match &self.0 {
            // SAFETY: owned, so alive.
            Raw::Legacy(t) => unsafe { &t.as_ref().dl_tensor },
            // SAFETY: owned, so alive.
            Raw::Versioned(t) => unsafe { &t.as_ref().dl_tensor },
        }
    }

    /// Returns the version; `None` for a tensor without one.
    pub fn version(&self) -> Option<DLPackVersion> {
        match &self.0 {
            Raw::Legacy(_) => None,
            // SAFETY: owned, so alive.
            Raw::Versioned(t) => Some(unsafe { t.as_ref().version }),
        }
    }

    /// Returns the bits of [`crate::flag`]; 0 for a tensor without a version.
    #[inline]
    pub fn flags(&self) -> u64 {
        match &self.0 {
            Raw::Legacy(_) => 0,
            // SAFETY: owned, so alive.
            Raw::Versioned(t) => unsafe { t.as_ref().flags },
        }
    }

    /// Returns true if the producer forbids writing.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.flags() & flag::READ_ONLY != 0
    }

    /// Returns true if the producer made a copy for this consumer.
    #[inline]
    pub fn is_copied(&self) -> bool {
        self.flags() & flag::IS_COPIED != 0
    }

    /// Returns the device of the memory.
    #[inline]
    pub fn device(&self) -> DLDevice {
        self.tensor().device
    }

    /// Returns the type of the elements.
    #[inline]
    pub fn dtype(&self) -> DLDataType {
        self.tensor().dtype
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.tensor().ndim as usize
    }

    /// Returns the size of a dimension.
    ///
    /// # Panics
    /// If there is no such dimension.
    #[inline]
    pub fn size(&self, axis: usize) -> usize {
        assert!(axis < self.ndim());
        // SAFETY: a valid tensor has `ndim` sizes, none of them negative.
        unsafe { self.tensor().shape.add(axis).read_unaligned() as usize }
    }

    /// Returns the stride of a dimension in elements; `None` if the tensor has no strides, which
    /// means row-major. In a dimension of size 1, and in a tensor without elements, it may be any
    /// number.
    ///
    /// # Panics
    /// If there is no such dimension.
    #[inline]
    pub fn stride(&self, axis: usize) -> Option<isize> {
        assert!(axis < self.ndim());
        let strides = self.tensor().strides;
        // SAFETY: a valid tensor's strides are NULL or `ndim` numbers.
        (!strides.is_null()).then(|| unsafe { strides.add(axis).read_unaligned() as isize })
    }
}

/// Runs a deleter, if there is one.
///
/// # Safety
/// The caller owns the tensor and does not use it again.
unsafe fn release(raw: Raw) {
    // SAFETY: the tensor is alive until its deleter runs, and the deleter gets its own tensor.
    unsafe {
        match raw {
            Raw::Legacy(t) => {
                if let Some(deleter) = (&raw const (*t.as_ptr()).deleter).read() {
                    deleter(t.as_ptr());
                }
            }
            Raw::Versioned(t) => {
                if let Some(deleter) = (&raw const (*t.as_ptr()).deleter).read() {
                    deleter(t.as_ptr());
                }
            }
        }
    }
}

impl Drop for ManagedTensor {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: owned, and nothing uses it after this.
        unsafe { release(self.0) }
    }
}

impl fmt::Debug for ManagedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<usize> = (0..self.ndim()).map(|i| self.size(i)).collect();
        f.debug_struct("ManagedTensor")
            .field("version", &self.version())
            .field("device", &self.device())
            .field("dtype", &self.dtype())
            .field("shape", &sizes)
            .field("flags", &self.flags())
            .finish_non_exhaustive()
    }
}

//! Tensors for export: header, owner, shape and strides in one allocation.

use crate::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPACK_MAJOR, DLPACK_MINOR,
    DLPackVersion, DLTensor, MAX_NDIM, ManagedTensor,
};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Description of a tensor to be exported: [`ManagedTensor::new`] copies shape and strides.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// Base pointer, or a device's opaque handle.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DLDevice,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// The sizes of the dimensions.
    pub shape: &'a [usize],
    /// The strides in elements, one for each dimension.
    pub strides: &'a [isize],
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
    /// Bits of [`crate::flag`].
    pub flags: u64,
}

/// A managed tensor with the owner of its memory. The numbers of shape and strides follow.
#[repr(C)]
struct Whole<M, O> {
    managed: M,
    owner: O,
    /// The number of dimensions. It is kept here because the consumer may change the header.
    ndim: usize,
}

impl<M, O> Whole<M, O> {
    /// Returns the layout of the allocation, and the offset of the numbers.
    fn layout(ndim: usize) -> (Layout, usize) {
        let numbers = Layout::array::<i64>(2 * ndim);
        match numbers.and_then(|n| Layout::new::<Self>().extend(n)) {
            Ok(found) => found,
            Err(_) => panic!("a tensor of {ndim} dimensions"),
        }
    }

    fn make(owner: O, d: &Description<'_>, managed: impl FnOnce(DLTensor) -> M) -> NonNull<M> {
        let ndim = d.shape.len();
        assert_eq!(ndim, d.strides.len(), "as many strides as sizes");
        assert!(ndim <= MAX_NDIM, "a tensor of {ndim} dimensions");
        let (layout, numbers) = Self::layout(ndim);
        // SAFETY: the layout is not empty, and all writes stay inside of it.
        unsafe {
            let place = alloc(layout);
            if place.is_null() {
                handle_alloc_error(layout);
            }
            let shape = place.add(numbers).cast::<i64>();
            let strides = shape.add(ndim);
            for (i, (size, stride)) in d.shape.iter().zip(d.strides).enumerate() {
                shape.add(i).write(*size as i64);
                strides.add(i).write(*stride as i64);
            }
            let managed = managed(DLTensor {
                data: d.data,
                device: d.device,
                ndim: ndim as i32,
                dtype: d.dtype,
                shape,
                strides,
                byte_offset: d.byte_offset,
            });
            place.cast::<Self>().write(Whole { managed, owner, ndim });
            NonNull::new_unchecked(place.cast())
        }
    }

    /// The deleter: drops the owner and frees the allocation.
    unsafe extern "C" fn delete(managed: *mut M) {
        // SAFETY: called once, with a tensor that `make` made. The header is its first field.
        unsafe {
            let place = managed.cast::<Self>();
            let (layout, _) = Self::layout((*place).ndim);
            place.drop_in_place();
            dealloc(place.cast(), layout);
        }
    }
}

impl ManagedTensor {
    /// Makes a DLPack 1.3 tensor for export. Its last owner drops `owner`, on any thread. If the
    /// drop panics, the process ends, because the caller may be written in another language.
    ///
    /// # Panics
    /// If the numbers of strides and sizes differ, or exceed [`MAX_NDIM`].
    ///
    /// # Safety
    /// The memory is as described for as long as `owner` lives, and may be written unless the flags
    /// forbid it.
    pub unsafe fn new<O: Send + Sync + 'static>(owner: O, d: &Description<'_>) -> ManagedTensor {
        ManagedTensor::made(Whole::<DLManagedTensorVersioned, O>::make(owner, d, |dl_tensor| {
            DLManagedTensorVersioned {
                version: DLPackVersion { major: DLPACK_MAJOR, minor: DLPACK_MINOR },
                manager_ctx: core::ptr::null_mut(),
                deleter: Some(Whole::<DLManagedTensorVersioned, O>::delete),
                flags: d.flags,
                dl_tensor,
            }
        }))
    }

    /// Like [`ManagedTensor::new`], but makes a tensor without a version, for consumers from before
    /// DLPack 1.0. Such a tensor has no flags: the consumer does not see those of the description,
    /// so nothing may depend on them.
    ///
    /// # Panics
    /// As [`ManagedTensor::new`].
    ///
    /// # Safety
    /// As [`ManagedTensor::new`].
    pub unsafe fn new_legacy<O: Send + Sync + 'static>(
        owner: O,
        d: &Description<'_>,
    ) -> ManagedTensor {
        ManagedTensor::made_legacy(Whole::<DLManagedTensor, O>::make(owner, d, |dl_tensor| {
            DLManagedTensor {
                dl_tensor,
                manager_ctx: core::ptr::null_mut(),
                deleter: Some(Whole::<DLManagedTensor, O>::delete),
            }
        }))
    }
}

//! Tensors for others: header, owner, shape and strides in one allocation.

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
    /// Where it is.
    pub device: DLDevice,
    /// Type of its elements.
    pub dtype: DLDataType,
    /// Sizes of its dimensions.
    pub shape: &'a [usize],
    /// Steps in elements, as many.
    pub strides: &'a [isize],
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
    /// Bits of [`crate::flag`].
    pub flags: u64,
}

/// A managed tensor with what keeps its memory. The numbers of shape and strides follow.
#[repr(C)]
struct Whole<M, O> {
    managed: M,
    owner: O,
    /// The consumer may change the header.
    ndim: usize,
}

impl<M, O> Whole<M, O> {
    /// The layout of the allocation, and where the numbers begin.
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
        // SAFETY: the layout is not empty, and what is written lies in it.
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
        // SAFETY: called once, with what `make` made: the header is its first field.
        unsafe {
            let place = managed.cast::<Self>();
            let (layout, _) = Self::layout((*place).ndim);
            place.drop_in_place();
            dealloc(place.cast(), layout);
        }
    }
}

impl ManagedTensor {
    /// A tensor of DLPack 1.3 for others. Whoever has it at last drops `owner`, on any thread. If
    /// that panics, the process ends: the caller may be of another language.
    ///
    /// # Panics
    /// With another number of strides than of sizes, or more than [`MAX_NDIM`].
    ///
    /// # Safety
    /// The memory is as described for as long as `owner` lives, and may be written unless the
    /// flags forbid it.
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

    /// The same without a version, for consumers of before DLPack 1.0. It has no flags: those of
    /// the description are not told, so nothing may depend on them.
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

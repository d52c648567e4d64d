//! A library on the other side: it makes tensors of headers, and counts its deleters' calls.

use super::header::{Header, Memory};
use super::model;
use core::ffi::c_void;
use std::alloc::{Layout, alloc, dealloc};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_dlpack::{
    Checked, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, Invalid,
    ManagedTensor,
};

/// A tensor as others make it.
#[derive(Clone, Copy, Debug)]
pub enum Raw {
    Legacy(*mut DLManagedTensor),
    Versioned(*mut DLManagedTensorVersioned),
}

/// A tensor of a header. What the consumer does not free (for want of a deleter) this does.
pub struct Foreign {
    pub raw: Raw,
    /// What the tensor says of its memory.
    pub data: usize,
    deleted: Arc<AtomicUsize>,
    to_free: Option<*mut Context>,
}

/// What a tensor is made of.
struct Context {
    deleted: Arc<AtomicUsize>,
    tensor: (*mut u8, Layout),
    shape: Option<(*mut u8, Layout)>,
    strides: Option<(*mut u8, Layout)>,
    memory: Option<(*mut u8, Layout)>,
}

impl Foreign {
    pub fn new(header: &Header) -> Foreign {
        let deleted = Arc::new(AtomicUsize::new(0));
        // Of another major version: what follows the flags is not there at all.
        let layout = match header.version {
            None => Layout::new::<DLManagedTensor>(),
            Some((1, _)) => Layout::new::<DLManagedTensorVersioned>(),
            Some(_) => {
                let end = core::mem::offset_of!(DLManagedTensorVersioned, dl_tensor);
                Layout::from_size_align(end, 8).unwrap()
            }
        };
        let (shape, strides) = (numbers(header, &header.shape), numbers(header, &header.strides));
        let (data, memory) = memory(header);
        let place = reserve(layout);
        let context = Box::into_raw(Box::new(Context {
            deleted: Arc::clone(&deleted),
            tensor: (place, layout),
            shape,
            strides,
            memory,
        }));
        // Numbers that are said to be there, where there can be none: nobody may look.
        let nowhere = core::ptr::dangling_mut::<u8>();
        let arrays =
            [(shape, &header.shape), (strides, &header.strides)].map(|(there, said)| {
                match (there, said) {
                    (Some((place, _)), _) => place.cast::<i64>(),
                    (None, Some(_)) => nowhere.cast(),
                    (None, None) => core::ptr::null_mut(),
                }
            });
        let dl_tensor = DLTensor {
            data,
            device: header.device,
            ndim: header.ndim,
            dtype: header.dtype,
            shape: arrays[0],
            strides: arrays[1],
            byte_offset: header.byte_offset,
        };
        let raw = match header.version {
            None => {
                let deleter = header.has_deleter.then_some(delete_legacy as _);
                let at = place.cast::<DLManagedTensor>();
                // SAFETY: reserved for one.
                unsafe {
                    at.write(DLManagedTensor { dl_tensor, manager_ctx: context.cast(), deleter });
                }
                Raw::Legacy(at)
            }
            Some((major, minor)) => {
                let at = place.cast::<DLManagedTensorVersioned>();
                // SAFETY: the beginning is there in all versions, the tensor where it is written.
                unsafe {
                    (&raw mut (*at).version).write(DLPackVersion { major, minor });
                    (&raw mut (*at).manager_ctx).write(context.cast());
                    (&raw mut (*at).deleter)
                        .write(header.has_deleter.then_some(delete_versioned as _));
                    (&raw mut (*at).flags).write(header.flags);
                    if major == 1 {
                        (&raw mut (*at).dl_tensor).write(dl_tensor);
                    }
                }
                Raw::Versioned(at)
            }
        };
        let to_free = (!header.has_deleter).then_some(context);
        Foreign { raw, data: data as usize, deleted, to_free }
    }

    /// How often the deleter ran.
    pub fn deleted(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }

    /// Takes it, as a consumer does.
    pub fn take(&self) -> Result<(ManagedTensor, Checked), Invalid> {
        // SAFETY: a whole tensor of its version, with as many numbers as it says. Who tests takes
        // it once.
        unsafe {
            match self.raw {
                Raw::Legacy(t) => ManagedTensor::from_legacy(t),
                Raw::Versioned(t) => ManagedTensor::from_versioned(t),
            }
        }
    }

    /// Gives a refused one back.
    pub fn discard(&self) {
        // SAFETY: it was refused, so it belongs to who tests.
        unsafe {
            match self.raw {
                Raw::Legacy(t) => ManagedTensor::discard_legacy(t),
                Raw::Versioned(t) => ManagedTensor::discard_versioned(t),
            }
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(context) = self.to_free.take() {
            // SAFETY: no deleter, so nobody else frees it; the tensor is not used any more.
            unsafe { free(context) };
        }
    }
}

/// Memory of its own for each thing, so that a sanitizer sees every step beyond.
fn reserve(layout: Layout) -> *mut u8 {
    assert!(layout.size() > 0);
    // SAFETY: not empty.
    let place = unsafe { alloc(layout) };
    assert!(!place.is_null());
    place
}

/// Shape or strides, where there can be any.
fn numbers(header: &Header, said: &Option<Vec<i64>>) -> Option<(*mut u8, Layout)> {
    let said = said.as_deref().filter(|_| header.dimensions().is_some_and(|n| n > 0))?;
    assert_eq!(said.len(), header.ndim as usize);
    let layout = Layout::array::<i64>(said.len()).unwrap();
    let place = reserve(layout);
    // SAFETY: as long as that.
    unsafe { place.cast::<i64>().copy_from_nonoverlapping(said.as_ptr(), said.len()) };
    Some((place, layout))
}

/// The data pointer, and what is really there.
fn memory(header: &Header) -> (*mut c_void, Option<(*mut u8, Layout)>) {
    let needed = match header.memory {
        Memory::At(address) => return (core::ptr::without_provenance_mut(address), None),
        Memory::Real => model::needs(header),
    };
    let Some(needed) = needed.filter(|n| n.bytes > 0) else {
        return (core::ptr::without_provenance_mut(4096), None);
    };
    let layout = Layout::from_size_align(needed.bytes, 1).unwrap();
    let place = reserve(layout);
    // SAFETY: as long as that.
    unsafe { place.write_bytes(0x5a, needed.bytes) };
    let first = place.wrapping_add(needed.below);
    (first.wrapping_sub(header.byte_offset as usize).cast(), Some((place, layout)))
}

unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
    // SAFETY: called with what has it as deleter, once.
    unsafe { free((*tensor).manager_ctx.cast()) }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: as above; the context stands at the same place in all versions.
    unsafe { free((&raw const (*tensor).manager_ctx).read().cast()) }
}

/// Frees a tensor with all that belongs to it.
unsafe fn free(context: *mut Context) {
    // SAFETY: made by a box; each part was reserved with its layout.
    unsafe {
        let context = Box::from_raw(context);
        let parts = [Some(context.tensor), context.shape, context.strides, context.memory];
        for (place, layout) in parts.into_iter().flatten() {
            dealloc(place, layout);
        }
        context.deleted.fetch_add(1, Ordering::SeqCst);
    }
}

//! Holders of a buffer and its exports, counted in one word.

use super::Buffer;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// One holder.
pub(super) const HOLDER: u64 = 1;
/// One export, in the same word; it is a holder too.
pub(super) const EXPORT: u64 = 1 << 32;
/// The buffer has, or had, mirrors.
pub(super) const MIRRORED: u64 = 1 << 63;
/// Mark of a buffer that is or was exported: a consumer may have written to it.
pub(super) const EXPORTED: u64 = 1 << 62;
/// The marks, which are no part of a count.
pub(super) const MARKS: u64 = MIRRORED | EXPORTED;

/// A holder of a [`Buffer`], which lives as long as it has one.
pub struct BufferRef(pub(super) NonNull<Buffer>);

// SAFETY: holders share the buffer, which is `Sync`, and any may be the last.
unsafe impl Send for BufferRef {}
// SAFETY: as above.
unsafe impl Sync for BufferRef {}

impl Deref for BufferRef {
    type Target = Buffer;
    #[inline]
    fn deref(&self) -> &Buffer {
        // SAFETY: alive while it has a holder.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for BufferRef {
    #[inline]
    fn clone(&self) -> Self {
        self.add(HOLDER);
        BufferRef(self.0)
    }
}

impl Drop for BufferRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this holder was counted, and is not used again.
        unsafe { let_go(self.0, HOLDER) }
    }
}

/// An export of a buffer's memory to another library, until it is dropped. Exported memory is never
/// donated, mirrored or recycled.
pub struct Export(ManuallyDrop<BufferRef>);

impl Export {
    /// The buffer.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        &self.0
    }
}

impl Drop for Export {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: counted when it was made, and not used again.
        unsafe { let_go(self.0.0, EXPORT + HOLDER) }
    }
}

/// Counts a holder (or an export) out; the last one frees the buffer.
///
/// # Safety
/// It was counted, and the caller does not use the buffer again.
#[inline]
unsafe fn let_go(buffer: NonNull<Buffer>, who: u64) {
    // SAFETY: alive as long as it is counted.
    let counts = unsafe { &buffer.as_ref().counts };
    // Where no other holder is counted none can come: holders come from holders.
    if counts.load(Ordering::Acquire) & !MARKS != who {
        if counts.fetch_sub(who, Ordering::Release) as u32 != 1 {
            return;
        }
        // A load, not a fence: the thread sanitizer does not see fences.
        counts.load(Ordering::Acquire);
    }
    // SAFETY: a box that `owned_by` made, and this was the last holder.
    drop(unsafe { Box::from_raw(buffer.as_ptr()) });
}

impl BufferRef {
    /// Counts a holder or an export in, and returns the count before.
    #[inline]
    fn add(&self, who: u64) -> u64 {
        let before = self.counts.fetch_add(who, Ordering::AcqRel);
        if before as u32 > u32::MAX / 2 {
            // As for `Arc`: only leaks without end lead here.
            std::process::abort();
        }
        before
    }

    /// Keeps the memory for a consumer, which may write to it. While the guard lives, the buffer counts as escaped.
    #[inline]
    pub fn export(&self) -> Export {
        // In the common case it was exported before and has no mirrors.
        let marks = self.add(EXPORT + HOLDER) & MARKS;
        if marks != EXPORTED {
            self.counts.fetch_or(EXPORTED, Ordering::AcqRel);
            if marks & MIRRORED != 0 {
                self.drop_mirrors();
            }
        }
        Export(ManuallyDrop::new(BufferRef(self.0)))
    }
}

//! Holders of a buffer and its exports, counted in one word.

use super::Buffer;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// One holder.
pub(super) const HOLDER: u64 = 1;
/// One export, in the same word. An export is a holder too.
pub(super) const EXPORT: u64 = 1 << 32;
/// The buffer has, or had, mirrors.
pub(super) const MIRRORED: u64 = 1 << 63;
/// Marks a buffer that is or was exported, so that a consumer may have written to it.
pub(super) const EXPORTED: u64 = 1 << 62;
/// The marks, which are not part of the counts.
pub(super) const MARKS: u64 = MIRRORED | EXPORTED;

/// A holder of a [`Buffer`]. The buffer lives as long as it has a holder.
pub struct BufferRef(pub(super) NonNull<Buffer>);

// SAFETY: holders share the buffer, which is `Sync`, and any thread may drop the last holder.
unsafe impl Send for BufferRef {}
// SAFETY: as above.
unsafe impl Sync for BufferRef {}

impl Deref for BufferRef {
    type Target = Buffer;
    #[inline]
    fn deref(&self) -> &Buffer {
        // SAFETY: the buffer lives as long as it has this holder.
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
        // SAFETY: this holder was counted, and does not use the buffer again.
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
        // SAFETY: the export was counted when it was made, and does not use the buffer again.
        unsafe { let_go(self.0.0, EXPORT + HOLDER) }
    }
}

/// Removes a holder or an export from the count. The last one frees the buffer.
///
/// # Safety
/// The holder or export was counted, and the caller does not use the buffer again.
#[inline]
unsafe fn let_go(buffer: NonNull<Buffer>, who: u64) {
    // SAFETY: the buffer lives as long as the holder or export is counted.
    let counts = unsafe { &buffer.as_ref().counts };
    // If no other holder is counted, none can appear, because a holder can only be made from
    // another holder.
    if counts.load(Ordering::Acquire) & !MARKS != who {
        if counts.fetch_sub(who, Ordering::Release) as u32 != 1 {
            return;
        }
        // A load, not a fence: the thread sanitizer does not see fences.
        counts.load(Ordering::Acquire);
    }
    // SAFETY: `owned_by` made the box, and this was the last holder.
    drop(unsafe { Box::from_raw(buffer.as_ptr()) });
}

impl BufferRef {
    /// Adds a holder or an export to the count, and returns the previous count.
    #[inline]
    fn add(&self, who: u64) -> u64 {
        let before = self.counts.fetch_add(who, Ordering::AcqRel);
        if before as u32 > u32::MAX / 2 {
            // As in `Arc`: the count can overflow only if holders are leaked in a loop.
            std::process::abort();
        }
        before
    }

    /// Keeps the memory alive for a consumer, which may write to it. The buffer counts as escaped
    /// while the guard lives.
    #[inline]
    pub fn export(&self) -> Export {
        // Usually the buffer was exported before and has no mirrors.
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

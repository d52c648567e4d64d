//! Holders of a buffer and its exports, counted in one word.

use super::Buffer;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// The count of one holder.
pub(super) const HOLDER: u64 = 1;
/// The count of one export, in the same word. An export is counted as a holder too.
pub(super) const EXPORT: u64 = 1 << 32;
/// Mark of a buffer that has, or had, mirrors.
pub(super) const MIRRORED: u64 = 1 << 63;
/// Marks a buffer that is or was exported, so that a consumer may have written to it.
pub(super) const EXPORTED: u64 = 1 << 62;
/// Both marks. They are not part of the counts.
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
        // SAFETY: the buffer is alive while it has a holder.
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
    /// Returns the buffer.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        &self.0
    }
}

impl Drop for Export {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was counted when it was made, and is not used again.
        unsafe { let_go(self.0.0, EXPORT + HOLDER) }
    }
}

/// Uncounts a holder (or an export). The last one frees the buffer.
///
/// # Safety
/// The holder or export was counted, and the caller does not use the buffer again.
#[inline]
unsafe fn let_go(buffer: NonNull<Buffer>, who: u64) {
    // SAFETY: the buffer is alive as long as a holder is counted.
    let counts = unsafe { &buffer.as_ref().counts };
    // If no other holder is counted, no new one can appear, because holders are only made from
    // holders.
    if counts.load(Ordering::Acquire) & !MARKS != who {
        if counts.fetch_sub(who, Ordering::Release) as u32 != 1 {
            return;
        }
        // This is a load and not a fence, because the thread sanitizer does not see fences.
        counts.load(Ordering::Acquire);
    }
    // SAFETY: `owned_by` made the box, and this was the last holder.
    drop(unsafe { Box::from_raw(buffer.as_ptr()) });
}

impl BufferRef {
    /// Counts a holder or an export. Returns the former count.
    #[inline]
    fn add(&self, who: u64) -> u64 {
        let before = self.counts.fetch_add(who, Ordering::AcqRel);
        if before as u32 > u32::MAX / 2 {
            // As in `Arc`, the count can get so high only if a program leaks holders without end.
            std::process::abort();
        }
        before
    }

    /// Keeps the memory alive for a consumer, which may write to it. While the returned guard
    /// lives, the buffer counts as escaped.
    #[inline]
    pub fn export(&self) -> Export {
        // In the common case the buffer was exported before and has no mirrors.
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

//! Stores that go past the caches.
//!
//! An ordinary store reads its cache line first and evicts another, so that an output that nobody reads soon costs twice its
//! bytes. Non-temporal stores write whole lines to memory. They are worth it for outputs larger than the caches only.

/// Outputs of this many bytes or more are written past the caches by [`CpuCall::map2`](crate::CpuCall::map2) and its like.
pub(super) const FROM: usize = 16 << 20;

/// Copies elements past the caches, where the processor can, and by ordinary stores elsewhere. When it returns, other threads may
/// read them as usual.
///
/// ```
/// let (from, mut to) = ([1.5f32; 100], [0.0; 100]);
/// ultramarine_extension::copy_past_cache(&from, &mut to);
/// assert_eq!(from, to);
/// ```
///
/// # Panics
/// The lengths differ.
pub fn copy_past_cache<T: Copy>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "slices of one length");
    // SAFETY: as many bytes as both have, which do not overlap.
    unsafe { copy(from.as_ptr().cast(), to.as_mut_ptr().cast(), size_of_val(from)) };
    fence();
}

/// Orders the writes of [`copy`] before all later ones.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all x86-64 processors have SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies bytes past the caches. [`fence`] must follow before others read them.
///
/// # Safety
/// `bytes` bytes are readable and writable there, and do not overlap.
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: passed on; the feature is there.
    unsafe {
        if bytes >= 64 && is_x86_feature_detected!("avx") {
            return x86::copy(from, to, bytes);
        }
    }
    // SAFETY: by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};

    /// # Safety
    /// As [`super::copy`].
    #[target_feature(enable = "avx")]
    pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
        // Whole lines are streamed; what is left of the first and of the last is written as usual.
        let head = to.align_offset(64).min(bytes);
        let lines = (bytes - head) / 64;
        // SAFETY: within the bytes of both; streamed places are aligned to 64.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, head);
            let (mut from, mut to) = (from.add(head), to.add(head));
            for _ in 0..lines {
                let low = _mm256_loadu_si256(from.cast::<__m256i>());
                let high = _mm256_loadu_si256(from.add(32).cast::<__m256i>());
                _mm256_stream_si256(to.cast::<__m256i>(), low);
                _mm256_stream_si256(to.add(32).cast::<__m256i>(), high);
                (from, to) = (from.add(64), to.add(64));
            }
            std::ptr::copy_nonoverlapping(from, to, bytes - head - lines * 64);
        }
    }
}

//! Stores that bypass the caches.
//!
//! An ordinary store first reads its cache line, and evicts another one. So writing an output that
//! is not read soon costs twice its bytes. Non-temporal stores write whole lines to memory. They
//! are worth it only for outputs larger than the caches.

/// Outputs of at least this many bytes are written with stores that bypass the caches by
/// [`CpuCall::map2`](crate::CpuCall::map2) and similar functions.
pub(super) const FROM: usize = 16 << 20;

/// Copies elements with stores that bypass the caches, if the processor has them, and with ordinary
/// stores otherwise. When it returns, other threads may read the elements as usual.
///
/// ```
/// let (from, mut to) = ([1.5f32; 100], [0.0; 100]);
/// ultramarine_extension::copy_past_cache(&from, &mut to);
/// assert_eq!(from, to);
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn copy_past_cache<T: Copy>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "slices of one length");
    // SAFETY: both have this many bytes, and they do not overlap.
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

/// Copies bytes with stores that bypass the caches. [`fence`] must follow before other threads read
/// them.
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
        // Whole cache lines are streamed. The parts of the first and last line are written as
        // usual.
        let head = to.align_offset(64).min(bytes);
        let lines = (bytes - head) / 64;
        // SAFETY: all accesses are within the bytes of both, and streamed addresses are aligned to
        // 64.
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

//! Strided tensors, and their elements as numbers.

use crate::kernel::View;
use crate::matmul::simd::Storage;

/// A tensor: its first element and its strides in elements.
#[derive(Clone, Copy)]
pub struct Tensor {
    pub data: *mut u8,
    pub strides: [isize; 4],
}

// SAFETY: sharing the address is harmless; every access through it says why it does not race.
unsafe impl Sync for Tensor {}

impl Tensor {
    pub fn new(view: &View<'_>) -> Tensor {
        let mut strides = [0; 4];
        for (to, from) in strides.iter_mut().zip(view.strides) {
            *to = *from as isize;
        }
        Tensor { data: view.data, strides }
    }

    /// The address of the element at an index, of elements of type `T`; of fewer axes than 4, the first count.
    pub fn at<T>(&self, index: [usize; 4]) -> *mut T {
        let offset: isize = index.iter().zip(self.strides).map(|(i, s)| *i as isize * s).sum();
        self.data.cast::<T>().wrapping_offset(offset)
    }
}

/// Widens elements that are `step` apart.
///
/// # Safety
/// There are as many as numbers.
#[inline(always)]
pub unsafe fn widen<S: Storage>(from: *const S, step: isize, to: &mut [S::Acc]) {
    if step == 1 {
        // SAFETY: by this function's contract.
        let from = unsafe { core::slice::from_raw_parts(from, to.len()) };
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen());
    } else {
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: as above.
            *to = unsafe { *from.wrapping_offset(i as isize * step) }.widen();
        }
    }
}

/// Narrows numbers to elements that are `step` apart.
///
/// # Safety
/// There are as many, and nothing else uses them meanwhile.
#[inline(always)]
pub unsafe fn narrow<S: Storage>(from: &[S::Acc], to: *mut S, step: isize) {
    if step == 1 {
        // SAFETY: by this function's contract.
        S::narrow_row(from, unsafe { core::slice::from_raw_parts_mut(to, from.len()) });
        return;
    }
    for (i, number) in from.iter().enumerate() {
        // SAFETY: as above.
        unsafe { *to.wrapping_offset(i as isize * step) = S::narrow(*number) };
    }
}

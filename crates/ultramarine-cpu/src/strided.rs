//! Iteration over the elements of several tensors of one shape and any strides, for kernels that
//! are not fused programs.

use crate::{kernel::View, par::Par, par::Shared};
use std::ops::Range;
use ultramarine_abi::MAX_NDIM;

/// A shape with the strides of `N` tensors, reduced to as few dimensions as possible: axes of size
/// 1 are dropped, and axes that all tensors traverse like one axis are merged. The order of
/// iteration is row-major.
#[derive(Clone, Copy, Debug)]
pub struct Nest<const N: usize> {
    ndim: usize,
    size: usize,
    dims: [(usize, [isize; N]); MAX_NDIM],
}

impl<const N: usize> Nest<N> {
    /// Makes a nest from the sizes and strides (in elements) of the axes, outermost first. There
    /// are at most [`MAX_NDIM`] axes, and no size is zero.
    pub fn new(axes: impl Iterator<Item = (i64, [i64; N])>) -> Self {
        let mut nest = Nest { ndim: 0, size: 1, dims: [(1, [0; N]); MAX_NDIM] };
        for (n, strides) in axes {
            if n == 1 {
                continue;
            }
            let n = n as usize;
            nest.size *= n;
            let strides = strides.map(|s| s as isize);
            if let Some(last) = nest.dims[..nest.ndim].last_mut()
                && (0..N).all(|k| last.1[k] == strides[k] * n as isize)
            {
                *last = (last.0 * n, strides);
            } else {
                nest.dims[nest.ndim] = (n, strides);
                nest.ndim += 1;
            }
        }
        nest
    }

    /// Makes a nest from the axes `axes` of tensors of one shape.
    pub fn of(views: [&View<'_>; N], axes: Range<usize>) -> Self {
        Nest::new(axes.map(|a| (views[0].shape[a], views.map(|v| v.strides[a]))))
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Size and strides of the innermost axis ((1, 0) if there is none).
    pub fn inner(&self) -> (usize, [isize; N]) {
        if self.ndim == 0 { (1, [0; N]) } else { self.dims[self.ndim - 1] }
    }

    /// Calls `f(position, offsets, count)` for each run of elements along the
    /// innermost axis within `range` (positions in row-major order); the offsets
    /// (in elements) are those of the run's first element.
    #[inline]
    pub fn rows(&self, range: Range<usize>, mut f: impl FnMut(usize, [isize; N], usize)) {
        if range.is_empty() {
            return;
        }
        let (inner, steps) = self.inner();
        if inner == self.size {
            return f(range.start, steps.map(|s| range.start as isize * s), range.len());
        }
        let outer = self.ndim.saturating_sub(1);
        let mut index = [0usize; MAX_NDIM];
        let mut at = [0isize; N];
        let mut first = range.start % inner;
        let mut rest = range.start / inner;
        for d in (0..outer).rev() {
            let (n, strides) = self.dims[d];
            index[d] = rest % n;
            rest /= n;
            for k in 0..N {
                at[k] += index[d] as isize * strides[k];
            }
        }
        let mut position = range.start;
        loop {
            let count = (inner - first).min(range.end - position);
            let mut from = at;
            for k in 0..N {
                from[k] += first as isize * steps[k];
            }
            f(position, from, count);
            position += count;
            if position >= range.end {
                return;
            }
            first = 0;
            for d in (0..outer).rev() {
                let (n, strides) = self.dims[d];
                index[d] += 1;
                for k in 0..N {
                    at[k] += strides[k];
                }
                if index[d] < n {
                    break;
                }
                for k in 0..N {
                    at[k] -= n as isize * strides[k];
                }
                index[d] = 0;
            }
        }
    }

    /// Fills `offsets` with the offsets of tensor `k` from position `start` on.
    pub fn offsets(&self, k: usize, start: usize, offsets: &mut [isize]) {
        let step = self.inner().1[k];
        self.rows(start..start + offsets.len(), |position, at, count| {
            for (i, offset) in offsets[position - start..][..count].iter_mut().enumerate() {
                *offset = at[k] + i as isize * step;
            }
        });
    }
}

/// Calls `$body` with `$T` bound to the unsigned integer of `$size` bytes (1, 2, 4 or 8), for
/// moving elements without interpreting them.
macro_rules! for_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}
pub(crate) use for_size;

/// Moves `count` elements of a strided run.
///
/// # Safety
/// All elements of both runs are valid; the runs do not overlap. The pointers
/// need no alignment.
#[inline]
pub unsafe fn move_run<T: Copy>(
    from: *const T,
    from_step: isize,
    to: *mut T,
    to_step: isize,
    count: usize,
) {
    // SAFETY: by this function's contract; `i` stays below `count`.
    unsafe {
        if from_step == 1 && to_step == 1 {
            std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, count * size_of::<T>());
        } else if from_step == 0 {
            let value = from.read_unaligned();
            for i in 0..count as isize {
                to.wrapping_offset(i * to_step).write_unaligned(value);
            }
        } else {
            for i in 0..count as isize {
                let value = from.wrapping_offset(i * from_step).read_unaligned();
                to.wrapping_offset(i * to_step).write_unaligned(value);
            }
        }
    }
}

/// Elements of one task of a parallel loop, if the work per element is cheap.
pub const TASK: usize = 1 << 16;

/// Runs `body(range)` over `0..size` in ranges of `step`, in parallel.
pub fn ranges(par: Par, size: usize, step: usize, body: impl Fn(Range<usize>) + Sync) {
    let step = step.max(1);
    par.run(size.div_ceil(step), |i| body(i * step..((i + 1) * step).min(size)));
}

/// Copies a tensor to one of the same shape and element size. Does nothing if both are the same
/// memory.
///
/// # Safety
/// Both views are valid and, unless they start at the same address, do not overlap.
pub unsafe fn copy(par: Par, from: &View<'_>, to: &View<'_>) {
    if from.data == to.data {
        return;
    }
    let nest = Nest::of([to, from], 0..to.shape.len());
    for_size!(to.dtype.size(), T => {
        let (source, target) = (Shared(from.data as *mut T), Shared(to.data as *mut T));
        let steps = nest.inner().1;
        ranges(par, nest.size(), TASK, |range| {
            nest.rows(range, |_, at, count| {
                // SAFETY: the nest's offsets lie inside both views, and ranges are disjoint.
                unsafe {
                    move_run(
                        source.get().wrapping_offset(at[1]),
                        steps[1],
                        target.get().wrapping_offset(at[0]),
                        steps[0],
                        count,
                    )
                }
            });
        });
    });
}

//! Element offsets from index arrays.

use super::BLOCK;
use crate::kernel::{Desc, Refusal, View};
use crate::level::{self, Body, Isa, Level};
use crate::{dtype::DType, strided::Nest};

/// The treatment of an index outside the axis. (Negative indices have been wrapped once.)
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutOfRange {
    /// The nearest valid index.
    Clamp,
    /// Marks the position with [`SKIP`].
    Skip,
}

/// Offset that marks a position to be left out.
pub const SKIP: isize = isize::MIN;

/// Reads `offsets.len()` indices, and adds `step * index` to each offset. Negative indices first
/// have `size` added. After that, indices below `limit` (at least 1) are valid.
///
/// # Safety
/// The run of indices is valid and of dtype `dtype`, an integer type.
#[expect(clippy::too_many_arguments, reason = "a run of indices and its axis")]
pub unsafe fn add_offsets(
    level: Level,
    dtype: DType,
    indices: *const u8,
    index_step: isize,
    (size, limit): (i64, i64),
    step: isize,
    outside: OutOfRange,
    offsets: &mut [isize],
) {
    let axis = Axis { size, limit, step };
    macro_rules! read {
        ($($d:ident $t:ty)*) => {
            match dtype {
                $(DType::$d => {
                    let indices = indices as *const $t;
                    match outside {
                        OutOfRange::Clamp => {
                            level::at(level, Add::<_, true> { indices, index_step, axis, offsets })
                        }
                        OutOfRange::Skip => {
                            level::at(level, Add::<_, false> { indices, index_step, axis, offsets })
                        }
                    }
                })*
                _ => offsets.fill(if outside == OutOfRange::Clamp { 0 } else { SKIP }),
            }
        };
    }
    read!(U8 u8 U16 u16 U32 u32 U64 u64 I8 i8 I16 i16 I32 i32 I64 i64);
}

/// An axis that indices address: see [`add_offsets`].
#[derive(Clone, Copy)]
struct Axis {
    size: i64,
    limit: i64,
    step: isize,
}

impl Axis {
    /// The offset plus that of an index, computed without branches.
    #[inline(always)]
    fn add<const CLAMP: bool>(&self, offset: isize, index: impl TryInto<i64>) -> isize {
        // An index that does not fit i64 is outside of any axis.
        let index = index.try_into().unwrap_or(i64::MAX);
        let index = index + if index < 0 { self.size } else { 0 };
        if CLAMP {
            return offset + index.clamp(0, self.limit - 1) as isize * self.step;
        }
        let inside = (index >= 0) & (index < self.limit) & (offset != SKIP);
        let moved = offset.wrapping_add((index as isize).wrapping_mul(self.step));
        if inside { moved } else { SKIP }
    }
}

/// The loop of [`add_offsets`], whose contract holds.
struct Add<'a, T, const CLAMP: bool> {
    indices: *const T,
    index_step: isize,
    axis: Axis,
    offsets: &'a mut [isize],
}

impl<T: Copy + TryInto<i64>, const CLAMP: bool> Body for Add<'_, T, CLAMP> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Add { indices, index_step, axis, offsets } = self;
        if index_step == 1 {
            // SAFETY: a contiguous run of as many indices.
            let indices = unsafe { std::slice::from_raw_parts(indices, offsets.len()) };
            for (offset, index) in offsets.iter_mut().zip(indices) {
                *offset = axis.add::<CLAMP>(*offset, *index);
            }
        } else {
            for (i, offset) in offsets.iter_mut().enumerate() {
                // SAFETY: one of the run's indices.
                let index = unsafe { *indices.wrapping_offset(i as isize * index_step) };
                *offset = axis.add::<CLAMP>(*offset, index);
            }
        }
    }
}

/// The index arrays of a GATHER or SCATTER with the axes that they address.
pub struct Addressing {
    axes: Vec<usize>,
    index_ndim: usize,
    level: Level,
}

impl Addressing {
    /// Checks `axes` against the rank of the tensor that is addressed and the
    /// descriptions of the index arrays.
    pub fn new(
        axes: &[u8; 32],
        n_indices: u32,
        index_ndim: u32,
        rank: usize,
        arrays: &[Desc],
        level: Level,
    ) -> Result<Self, Refusal> {
        let invalid = |text: &str| Err(Refusal::Invalid(text.into()));
        let (n, index_ndim) = (n_indices as usize, index_ndim as usize);
        if n > axes.len() || n != arrays.len() {
            return invalid("the number of index arrays is wrong");
        }
        if arrays.iter().any(|a| a.ndim != index_ndim) {
            return invalid("an index array has another rank than the attributes say");
        }
        if arrays.iter().any(|a| !a.dtype.is_int()) {
            return Err(Refusal::Unsupported);
        }
        let axes: Vec<usize> = axes[..n].iter().map(|a| *a as usize).collect();
        for (i, axis) in axes.iter().enumerate() {
            if *axis >= rank || axes[..i].contains(axis) {
                return invalid("an indexed axis does not exist or is there twice");
            }
        }
        Ok(Addressing { axes, index_ndim, level })
    }

    /// Dimensions of the index arrays.
    pub fn index_ndim(&self) -> usize {
        self.index_ndim
    }

    /// Binds the arrays for one run. `whole` is the tensor that is addressed,
    /// `slices` has the shape of the index arrays followed by that of a slice.
    pub fn bind<'a>(
        &'a self,
        whole: &View<'a>,
        arrays: &'a [View<'a>],
        slices: &View<'a>,
    ) -> Result<Bound<'a>, String> {
        let (index_shape, slice_shape) = slices.shape.split_at(self.index_ndim);
        if slice_shape.iter().zip(whole.shape).any(|(s, n)| s > n) {
            return Err(format!("slices {slice_shape:?} do not fit in {:?}", whole.shape));
        }
        let fits =
            |view: &View<'_>| view.shape.iter().zip(index_shape).all(|(a, b)| a == b || *a == 1);
        ensure!(arrays.iter().all(fits), "an index array's shape is not {index_shape:?}");
        let arrays = arrays.iter().zip(&self.axes).map(|(view, &axis)| {
            let steps =
                view.strides.iter().zip(view.shape).map(|(s, n)| if *n == 1 { 0 } else { *s });
            let nest = Nest::new(index_shape.iter().zip(steps).map(|(n, s)| (*n, [s])));
            let size = whole.shape[axis];
            (view, nest, (size, size - slice_shape[axis] + 1), whole.strides[axis] as isize)
        });
        let whole_axes = self.axes.iter().all(|a| slice_shape[*a] == 1);
        Ok(Bound { arrays: arrays.collect(), single: whole_axes, level: self.level })
    }
}

/// Index arrays of one run.
pub struct Bound<'a> {
    arrays: Vec<(&'a View<'a>, Nest<1>, (i64, i64), isize)>,
    /// Set if slices are one element long along every indexed axis. Then different elements of
    /// slices never have the same position.
    pub single: bool,
    level: Level,
}

impl Bound<'_> {
    /// Offsets (in elements) of the slices of positions `start..`; at most [`BLOCK`].
    ///
    /// # Safety
    /// The index arrays are valid.
    pub unsafe fn offsets(&self, start: usize, outside: OutOfRange, offsets: &mut [isize]) {
        debug_assert!(offsets.len() <= BLOCK);
        offsets.fill(0);
        for (view, nest, range, step) in &self.arrays {
            let inner = nest.inner().1[0];
            let bytes = view.dtype.size() as isize;
            nest.rows(start..start + offsets.len(), |position, at, count| {
                let indices = view.data.wrapping_offset(at[0] * bytes);
                let part = &mut offsets[position - start..][..count];
                // SAFETY: the nest's offsets lie inside the view, whose dtype was
                // found to be an integer type when the kernel was prepared.
                unsafe {
                    add_offsets(
                        self.level, view.dtype, indices, inner, *range, *step, outside, part,
                    )
                };
            });
        }
    }
}

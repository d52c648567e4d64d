//! Indexing: index arrays, the offsets that they address, and slices, which are moved in words as
//! wide as their layout allows.

mod dynamic_slice;
pub mod gather;
pub mod scatter;

use crate::launch::{Axes, Desc, Dtype, Grid, Job, MAX_AXES, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::program::{Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::GATHER => gather::prepare_gather(request),
        op::SCATTER => scatter::prepare_scatter(request),
        op::GATHER_AXIS => gather::prepare_gather_axis(request),
        op::SCATTER_AXIS => scatter::prepare_scatter_axis(request),
        op::DYNAMIC_SLICE | op::DYNAMIC_SLICE_UPDATE => dynamic_slice::prepare(request),
        _ => Err(super::unknown(request)),
    }
}

/// Headers of the kernels that read index arrays.
pub const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/index/indices.cuh")];

/// Maximum number of elements, and maximum offset, for 32-bit arithmetic.
pub const MOST: u64 = 1 << 30;

/// The index arrays of a gather or scatter. They address the starts of slices of a tensor.
pub struct Picks {
    /// Number of index arrays.
    pub arrays: usize,
    /// Number of dimensions of each array.
    pub split: usize,
    /// The axis that each addresses.
    pub axes: Vec<usize>,
}

impl Picks {
    /// Checks attributes against the arrays, which follow input 0. `rank` is the rank of the
    /// indexed tensor, and `slices` describes the tensor of all slices.
    pub fn of(
        request: &OpRequest<'_>,
        arrays: u32,
        split: u32,
        axes: &[u8; 32],
        rank: usize,
        slices: Desc,
    ) -> Result<Self> {
        let (arrays, split) = (arrays as usize, split as usize);
        let axes: Vec<usize> = axes.iter().take(arrays).map(|a| usize::from(*a)).collect();
        if arrays > MAX_AXES || slices.ndim != split + rank {
            return Err(Failure::invalid(format!(
                "{arrays} index arrays of rank {split}, a tensor of rank {rank}, and slices of rank {}, expected {}",
                slices.ndim,
                split + rank
            )));
        }
        let mut seen = 0u64;
        for (k, axis) in axes.iter().enumerate() {
            let array = request.input(1 + k)?;
            if array.ndim != split || !array.dtype.is_integer() {
                return Err(Failure::invalid(format!(
                    "index array {k} is {} of rank {}, expected integers of rank {split}",
                    array.dtype.name(),
                    array.ndim
                )));
            }
            if *axis >= rank || seen >> axis & 1 == 1 {
                return Err(Failure::invalid(format!(
                    "axes {axes:?}, which shall be different ones of {rank}"
                )));
            }
            seen |= 1 << axis;
        }
        Ok(Self { arrays, split, axes })
    }

    /// Number of slices.
    pub fn positions(&self, slices: &View<'_>) -> u64 {
        slices.shape[..self.split].iter().map(|n| *n as u64).product()
    }

    /// Strides of an index array over the positions.
    pub fn strides(&self, array: &View<'_>) -> Vec<i64> {
        let each = array.shape.iter().zip(array.strides);
        each.map(|(size, stride)| if *size == 1 { 0 } else { *stride }).collect()
    }

    /// True if 32-bit arithmetic can address every index of the arrays.
    pub fn is_small(&self, job: &Job<'_>) -> bool {
        job.inputs.iter().skip(1).take(self.arrays).all(|array| array.span() <= MOST)
    }

    /// Number of valid start positions of a slice on the axis of array `k`.
    pub fn limit(&self, k: usize, whole: &View<'_>, slices: &View<'_>) -> i64 {
        let axis = self.axes[k];
        whole.shape[axis] - slices.shape[self.split + axis] + 1
    }
}

/// The rank of kernels with two or three walks. It has fewer choices than
/// [`crate::launch::rank_for`].
pub fn rank_of(axes: usize) -> usize {
    [1, 2, 4].into_iter().find(|rank| *rank >= axes).unwrap_or(MAX_AXES)
}

/// Chooses words of up to 16 bytes in place of elements, and returns how many elements of `bytes`
/// bytes make a word. Afterwards, the walk of a slice counts in words. The other strides, `steps`,
/// have to be multiples of a word, and so do the start addresses of the tensors.
pub fn widen(slice: &mut Axes<2>, bytes: u64, steps: &[i64], addresses: [u64; 2]) -> i64 {
    let Some(last) = slice.count.checked_sub(1) else { return 1 };
    if slice.stride[0][last] != 1 || slice.stride[1][last] != 1 {
        return 1;
    }
    let fits = |factor: &i64| {
        let outer = |k: usize| slice.stride[k][..last].iter().all(|s| s % factor == 0);
        slice.size[last] % factor == 0
            && outer(0)
            && outer(1)
            && steps.iter().all(|s| s % factor == 0)
            && addresses.iter().all(|a| a % (*factor as u64 * bytes) == 0)
    };
    let wide = [16, 8, 4, 2].into_iter().filter(|word| *word > bytes);
    let Some(factor) = wide.map(|word| (word / bytes) as i64).find(fits) else { return 1 };
    slice.size[last] /= factor;
    for strides in &mut slice.stride {
        strides[..last].iter_mut().for_each(|s| *s /= factor);
    }
    let [a, b] = &slice.stride;
    *slice = Axes::join(&slice.size[..=last], [&a[..=last], &b[..=last]]);
    factor
}

/// The type of a word of `bytes` bytes.
pub fn word(bytes: u64) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "uint4",
    }
}

/// The kernels that write offsets to memory.
#[derive(Default)]
pub struct OffsetKernels(Kernels<(usize, bool, Dtype, bool)>);

impl OffsetKernels {
    /// Writes the offset of each position: the sum of the indices, each multiplied by its step.
    /// Positions with an index out of bounds get the offset `nowhere`. If `nowhere` is `None`, such
    /// indices are clamped.
    #[allow(clippy::too_many_arguments)]
    pub fn write(
        &self,
        job: &Job<'_>,
        picks: &Picks,
        whole: &View<'_>,
        slices: &View<'_>,
        steps: &[i64],
        nowhere: Option<i64>,
        to: u64,
        small: bool,
    ) -> Result<()> {
        if picks.arrays == 0 {
            let bytes = picks.positions(slices) * if small { 4 } else { 8 };
            let count =
                usize::try_from(bytes).map_err(|_| Failure::invalid("too many positions"))?;
            // SAFETY: the workspace was requested with this size.
            return unsafe { job.fill(to, 0, 1, count) };
        }
        for (k, step) in steps.iter().enumerate() {
            let array = job.input(1 + k)?;
            let axes = Axes::join(&slices.shape[..picks.split], [&picks.strides(array)[..]]);
            let (rank, skip) = (rank_of(axes.count), nowhere.is_some());
            let x = array.dtype;
            let kernel = self.0.get(&job.device.programs, (rank, skip, x, small), || {
                let (tag, index) = (x.tag(), index(!small));
                let parameters = format!(
                    "const {tag}::T *indices, {index} *places, int first, i64 size, i64 limit, i64 step, i64 nowhere, const Walk<1, {rank}> w"
                );
                let arguments = format!("{tag}, {skip}, {rank}, {index}");
                let body = format!(
                    "add_offsets<{arguments}>(indices, places, first, size, limit, step, ({index})nowhere, w);"
                );
                Source::with_body(HEADERS, "add_offsets", arguments, parameters, body)
            })?;
            let first = i32::from(k == 0);
            let (size, limit) = (whole.shape[picks.axes[k]], picks.limit(k, whole, slices));
            let (nowhere, words) = (nowhere.unwrap_or(-1), axes.parameter_in(rank));
            let grid = Grid::over(job.device, axes.len(), 2);
            launch!(job, &kernel, grid; array.address, to, first, size, limit, *step, nowhere, words[..])?;
        }
        Ok(())
    }
}

/// The common dtype of all index arrays of a request, if they have one.
pub fn one_dtype(request: &OpRequest<'_>, arrays: usize) -> Option<Dtype> {
    let mut all = request.inputs.iter().skip(1).take(arrays).map(|d| d.dtype);
    let first = all.next()?;
    all.all(|d| d == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(shape: &[i64], strides: [&[i64]; 2]) -> Axes<2> {
        Axes::join(shape, strides)
    }

    #[test]
    fn rows_are_moved_in_wide_words() {
        let mut row = slice(&[1, 100], [&[100, 1], &[100, 1]]);
        assert_eq!(widen(&mut row, 4, &[100, 100], [256, 512]), 4);
        assert_eq!((row.count, row.size[0]), (1, 25));
        // One misaligned stride or address limits the word.
        let mut row = slice(&[1, 100], [&[100, 1], &[100, 1]]);
        assert_eq!(widen(&mut row, 4, &[102, 100], [256, 512]), 2);
        let mut row = slice(&[1, 100], [&[100, 1], &[100, 1]]);
        assert_eq!(widen(&mut row, 2, &[100, 100], [256, 258]), 1);
    }

    #[test]
    fn what_does_not_lie_together_stays() {
        let mut strided = slice(&[8, 4], [&[9, 2], &[4, 1]]);
        assert_eq!(widen(&mut strided, 4, &[], [0, 0]), 1);
        assert_eq!((strided.count, strided.len()), (2, 32));
        let mut rows = slice(&[3, 8], [&[20, 1], &[8, 1]]);
        assert_eq!(widen(&mut rows, 4, &[], [0, 0]), 4);
        assert_eq!((rows.size[1], rows.stride[0][0], rows.stride[1][0]), (2, 5, 2));
        let mut one = slice(&[4], [&[1], &[1]]);
        assert_eq!(widen(&mut one, 4, &[], [0, 0]), 4);
        assert_eq!((one.count, one.len()), (0, 1));
    }
}

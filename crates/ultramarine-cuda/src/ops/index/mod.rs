//! What gathers and scatters share: index arrays, the places that they point to, and slices that
//! are moved in words as wide as they lie.

pub mod gather;
pub mod scatter;

use crate::launch::{Ask, Axes, Desc, Dtype, Grid, Job, MAX_AXES, View, launch};
use crate::ops::text;
use crate::program::Source;
use crate::program::variants::{Variants, entry, index};
use ultramarine_abi::helper::{Failure, Result};

/// Texts of the kernels that look at index arrays.
pub const TEXTS: &[&str] =
    &[text::NUMBER, text::WALK, include_str!("../../../kernels/index/indices.cuh")];

/// Most elements, and farthest one, that 32-bit arithmetic is used for.
pub const MOST: u64 = 1 << 30;

/// Where the slices of a tensor begin.
pub struct Picks {
    /// Number of index arrays.
    pub arrays: usize,
    /// Dimensions of each.
    pub split: usize,
    /// The axis that each addresses.
    pub axes: Vec<usize>,
}

impl Picks {
    /// Checks attributes against the arrays, which follow input 0; `rank` is that of what is
    /// indexed, and `slices` describes the tensor of all slices.
    pub fn of(
        ask: &Ask<'_>,
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
            let array = ask.input(1 + k)?;
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

    /// Whether 32-bit arithmetic reaches every index of the arrays.
    pub fn is_small(&self, job: &Job<'_>) -> bool {
        job.inputs.iter().skip(1).take(self.arrays).all(|array| reach(array) <= MOST)
    }

    /// Number of places on the axis of array `k` where a slice can begin.
    pub fn limit(&self, k: usize, whole: &View<'_>, slices: &View<'_>) -> i64 {
        let axis = self.axes[k];
        whole.shape[axis] - slices.shape[self.split + axis] + 1
    }
}

/// A walk over axes with room for `room` of them: `Walk<K, room>`.
pub fn walk<const K: usize>(axes: &Axes<K>, room: usize) -> Vec<u64> {
    let mut words = vec![axes.len(), axes.count as u64];
    words.extend(axes.size[..room].iter().map(|n| *n as u64));
    for stride in &axes.stride {
        words.extend(stride[..room].iter().map(|s| *s as u64));
    }
    words
}

/// Room for so many axes where two or three walks are made in one kernel: fewer choices.
pub fn room(axes: usize) -> usize {
    [1, 2, 4].into_iter().find(|room| *room >= axes).unwrap_or(MAX_AXES)
}

/// How far the elements of a view lie apart.
pub fn reach(view: &View<'_>) -> u64 {
    let each = view.shape.iter().zip(view.strides);
    each.map(|(size, stride)| (*size as u64 - 1).saturating_mul(stride.unsigned_abs()))
        .fold(0, u64::saturating_add)
}

/// Words of up to 16 bytes in place of elements: how many elements of `bytes` bytes are one. The
/// walk of a slice counts in these afterwards; `steps` are the other strides that have to be
/// multiples of it, `addresses` where the tensors begin.
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

/// The type of a word of so many bytes.
pub fn word(bytes: u64) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "uint4",
    }
}

/// The kernels that write places to memory.
#[derive(Default)]
pub struct Places(Variants);

impl Places {
    /// Writes the place of each position: the sum of the indices, each times its step. `nowhere`
    /// marks those that an index outside points to; without it such indices are moved inside.
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
            let driver = job.device.driver;
            // SAFETY: the workspace was asked to be so large.
            return unsafe {
                crate::context::failure::cuda!(driver.set_8(to, 0, count, job.queue()))
            };
        }
        for (k, step) in steps.iter().enumerate() {
            let array = job.input(1 + k)?;
            let axes = Axes::join(&slices.shape[..picks.split], [&picks.strides(array)[..]]);
            let (room, skip) = (room(axes.count), nowhere.is_some());
            let x = array.dtype;
            let choice = [room as u64, u64::from(skip), x as u64, u64::from(small)];
            let kernel = self.0.get(&job.device.programs, pack(&choice), || {
                let (tag, index) = (x.tag(), index(small));
                let parameters = format!(
                    "const {tag}::T *indices, {index} *places, int first, i64 size, i64 limit, i64 step, i64 nowhere, const Walk<1, {room}> w"
                );
                let body = format!(
                    "add_places<{tag}, {skip}, {room}, {index}>(indices, places, first, size, limit, step, ({index})nowhere, w);"
                );
                let name = format!("places {tag} {skip} {room} {index}");
                Source::new(name, TEXTS, entry(&parameters, &body))
            })?;
            let first = i32::from(k == 0);
            let (size, limit) = (whole.shape[picks.axes[k]], picks.limit(k, whole, slices));
            let (nowhere, words) = (nowhere.unwrap_or(-1), walk(&axes, room));
            let grid = Grid::over(job.device, axes.len(), 2);
            launch!(job, &kernel, grid; array.address, to, first, size, limit, *step, nowhere, words[..])?;
        }
        Ok(())
    }
}

/// Small numbers as one.
pub fn pack(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |all, n| all << 8 | n)
}

/// Whether all index arrays of a request have one dtype, and which.
pub fn one_dtype(ask: &Ask<'_>, arrays: usize) -> Option<Dtype> {
    let mut all = ask.inputs.iter().skip(1).take(arrays).map(|d| d.dtype);
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
        // One of many strides, or an address, allows for less.
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

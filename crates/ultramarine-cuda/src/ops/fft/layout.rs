//! Tensors in the form that cuFFT's calls require: lines at a constant distance. Other tensors are copied, or each part
//! of the batch gets its own call.

use crate::launch::{Axes, View, row_major};

/// Bytes that a GPU moves in the time that a call takes to launch: 5.7 us on an H200.
const BYTES_OF_A_CALL: u64 = 20 << 20;

/// Alignment in bytes that cuFFT requires, even for real numbers.
const ALIGNMENT: u64 = 8;

/// Where the lines are that cuFFT reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the tensor itself.
    Own,
    /// In a copy with the tensor's order of axes, without gaps.
    Dense,
    /// In a copy with contiguous lines.
    Lines,
}

impl Place {
    /// Strides of a copy of a shape, or of the tensor itself.
    pub fn strides(self, view: &View<'_>, axis: usize) -> Vec<i64> {
        match self {
            Self::Own => view.strides.to_vec(),
            Self::Dense => row_major(view.shape),
            Self::Lines => {
                let mut shape = without(view.shape, axis);
                shape.push(view.shape[axis]);
                let mut strides = row_major(&shape);
                let step = strides.pop().unwrap_or(1);
                strides.insert(axis, step);
                strides
            }
        }
    }
}

/// The sizes of a call. They are the key by which cuFFT's plans are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines {
    /// Length of the transform.
    pub n: i64,
    /// Number of transforms.
    pub count: i64,
    /// Elements from one element of a line to the next, in the input and the output.
    pub step: [i64; 2],
    /// Elements from one line to the next, in the input and the output.
    pub distance: [i64; 2],
}

/// The calls that compute a transform: the location of its lines, the work of one call, and the
/// loop over calls.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The location of the input and of the output.
    pub place: [Place; 2],
    /// The work of one call.
    pub lines: Lines,
    /// The other axes of the batch, over which calls are made in a loop.
    pub outer: Axes<2>,
}

impl Layout {
    /// The cheapest layout of a transform of length `n` along an axis. `destroys` means that cuFFT overwrites
    /// its input.
    pub fn of(n: i64, axis: usize, views: [&View<'_>; 2], destroys: bool) -> Self {
        let inputs = [Place::Own, Place::Dense, Place::Lines];
        let places = inputs.into_iter().flat_map(|i| [[i, Place::Own], [i, Place::Lines]]);
        let can = |place: &[Place; 2]| !(destroys && place[0] == Place::Own);
        let all = places.filter(can).map(|place| Self::with(n, axis, views, place));
        // The first of equally cheap layouts. cuFFT can always read and write copies on both sides.
        let cheapest = all.filter(|l| l.can(views)).min_by_key(|l| l.cost(views));
        cheapest.unwrap_or_else(|| Self::with(n, axis, views, [Place::Lines, Place::Lines]))
    }

    fn with(n: i64, axis: usize, views: [&View<'_>; 2], place: [Place; 2]) -> Self {
        let strides = [0, 1].map(|t| place[t].strides(views[t], axis));
        let step = [strides[0][axis], strides[1][axis]];
        let batch = strides.map(|strides| without(&strides, axis));
        let axes = Axes::<2>::join(&without(views[0].shape, axis), [&batch[0], &batch[1]]);
        let longest = (0..axes.count).max_by_key(|d| axes.size[*d]);
        let (mut count, mut distance, mut outer) = (1, [1, 1], axes);
        if let Some(d) = longest {
            (count, distance) = (outer.size[d], outer.stride.map(|s| s[d]));
            let rest = |all: &[i64]| without(&all[..outer.count], d);
            let (inputs, outputs) = (rest(&outer.stride[0]), rest(&outer.stride[1]));
            outer = Axes::join(&rest(&outer.size), [&inputs, &outputs]);
        }
        // The stride along an axis with one element has no meaning.
        let steps = [0, 1].map(|t| if views[t].shape[axis] == 1 { 1 } else { step[t] });
        Self { place, lines: Lines { n, count, step: steps, distance }, outer }
    }

    /// True if cuFFT can read and write this layout.
    fn can(&self, views: [&View<'_>; 2]) -> bool {
        (0..2).all(|t| {
            let outer = &self.outer.stride[t][..self.outer.count];
            let bytes = views[t].dtype.bytes();
            let aligned = |elements: i64| (elements as u64 * bytes).is_multiple_of(ALIGNMENT);
            let lies = outer.iter().all(|s| *s > 0 && aligned(*s));
            let at = self.place[t] != Place::Own || views[t].is_aligned(ALIGNMENT);
            at && lies && self.lines.step[t] > 0 && self.lines.distance[t] > 0
        })
    }

    /// The cost, as the number of bytes that could be moved in the same time.
    fn cost(&self, views: [&View<'_>; 2]) -> u64 {
        let calls = self.outer.len().saturating_mul(BYTES_OF_A_CALL);
        let moved = calls.max(views[0].bytes() + views[1].bytes());
        let copies = (0..2).map(|t| match self.place[t] {
            Place::Own => 0,
            _ => 2 * views[t].bytes(),
        });
        moved + copies.sum::<u64>()
    }
}

/// Values without that of one axis.
fn without(values: &[i64], axis: usize) -> Vec<i64> {
    values.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, n)| *n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Dtype;

    fn view<'a>(dtype: Dtype, shape: &'a [i64], strides: &'a [i64]) -> View<'a> {
        View { address: 256, dtype, shape, strides }
    }

    fn complex(shape: &[i64], from: &[i64], axis: usize) -> Layout {
        let to = row_major(shape);
        let [from, to] = [from, &to].map(|strides| view(Dtype::Complex64, shape, strides));
        Layout::of(shape[axis], axis, [&from, &to], false)
    }

    fn own(layout: &Layout) -> bool {
        layout.place == [Place::Own, Place::Own]
    }

    #[test]
    fn any_axis_of_a_matrix_is_one_call() {
        let rows = complex(&[30, 50], &[50, 1], 1);
        assert!(own(&rows) && rows.outer.is_scalar(0) && rows.outer.len() == 1);
        let expected = Lines { n: 50, count: 30, step: [1, 1], distance: [50, 50] };
        assert_eq!(rows.lines, expected);
        let columns = complex(&[30, 50], &[50, 1], 0);
        let expected = Lines { n: 30, count: 50, step: [50, 50], distance: [1, 1] };
        assert!(own(&columns) && columns.lines == expected);
        let transposed = complex(&[30, 50], &[1, 30], 1);
        let expected = Lines { n: 50, count: 30, step: [30, 1], distance: [1, 50] };
        assert!(own(&transposed) && transposed.lines == expected);
    }

    #[test]
    fn batches_join_and_single_lines_have_a_distance() {
        let joined = complex(&[3, 5, 8], &[40, 8, 1], 2);
        assert!(own(&joined) && joined.lines.count == 15 && joined.outer.len() == 1);
        let one = complex(&[8], &[1], 0);
        assert_eq!(one.lines, Lines { n: 8, count: 1, step: [1, 1], distance: [1, 1] });
        let overlapping = complex(&[9, 8], &[2, 1], 1);
        assert!(own(&overlapping) && overlapping.lines.distance == [2, 8]);
    }

    #[test]
    fn calls_for_parts_of_a_large_batch_and_copies_of_many_small_ones() {
        let large = complex(&[4, 2048, 2048], &[1 << 22, 2048, 1], 1);
        assert!(own(&large));
        assert_eq!((large.outer.len(), large.lines.count, large.lines.step), (4, 2048, [2048; 2]));
        let small = complex(&[1000, 4, 9], &[36, 9, 1], 1);
        assert_eq!(small.place, [Place::Lines, Place::Lines]);
        assert_eq!((small.outer.len(), small.lines.count, small.lines.distance), (1, 9000, [4; 2]));
    }

    #[test]
    fn tensors_that_cufft_cannot_read_are_copied() {
        for strides in [[-8, 1], [0, 1], [8, -1]] {
            let copied = complex(&[5, 8], &strides, 1);
            assert_eq!(copied.place, [Place::Dense, Place::Own], "{strides:?}");
        }
        let shape = [5, 8];
        let mut from = view(Dtype::Float32, &shape, &[8, 1]);
        let to = view(Dtype::Complex64, &[5, 5], &[5, 1]);
        assert!(own(&Layout::of(8, 1, [&from, &to], false)));
        from.address += 4;
        assert_eq!(Layout::of(8, 1, [&from, &to], false).place, [Place::Dense, Place::Own]);
    }

    #[test]
    fn input_that_would_be_destroyed_is_copied_in_its_order() {
        let from = view(Dtype::Complex64, &[5, 6], &[6, 1]);
        let to = view(Dtype::Float32, &[8, 6], &[6, 1]);
        let layout = Layout::of(8, 0, [&from, &to], true);
        assert_eq!(layout.place, [Place::Dense, Place::Own]);
        let expected = Lines { n: 8, count: 6, step: [6, 6], distance: [1, 1] };
        assert_eq!(layout.lines, expected);
        assert_eq!(Place::Lines.strides(&from, 0), [1, 5]);
    }
}

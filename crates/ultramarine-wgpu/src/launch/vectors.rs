//! The layouts that kernels read and write as vectors.

use super::{AXES, Axes};
use crate::dtype::Dtype;
use crate::shader::source::GROUP;
use crate::shader::vector::{FOUR, PACKED};
use ultramarine_abi::helper::Result;

/// The layout of a command whose tensors are read and written in vectors of several elements. Each
/// layout has its own version of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vectors {
    /// Bit mask of the tensors that are accessed as vectors. Each of the others has one element for
    /// a whole vector.
    tensors: u32,
    /// Elements per vector.
    pub width: usize,
    /// Number of axes of the layout, at least 1.
    pub axes: usize,
    /// Vectors per invocation; their loads are in flight together.
    pub turns: u32,
}

/// Number of invocations that keep a large GPU busy. Invocations get several vectors only if at
/// least this many remain.
const BUSY: i64 = 1 << 19;

impl Vectors {
    /// The vectors of inputs and outputs that are contiguous along the innermost axis. All tensors have to be
    /// contiguous, except inputs that have one element along this axis. `dtypes` are those of the tensors; the first
    /// `inputs` tensors are read.
    pub fn of<const K: usize>(axes: &Axes<K>, inputs: usize, dtypes: &[Dtype]) -> Option<Self> {
        let (n, inner) = *axes.list.last()?;
        if axes.list.len() > AXES
            || inner.iter().take(dtypes.len()).any(|step| !(0..=1).contains(step))
        {
            return None;
        }
        let has = |k: usize| inner[k] == 1;
        if !(inputs..dtypes.len()).all(has) {
            return None;
        }
        let among = || (0..dtypes.len()).filter(|k| has(*k));
        let outer = || axes.list.iter().rev().skip(1);
        let fits = |width: &usize| {
            let whole = |n: i64| n % *width as i64 == 0;
            let lies =
                |k: usize| whole(axes.offsets[k]) && outer().all(|(_, steps)| whole(steps[k]));
            // A layout divides by the sizes of all axes but the outermost, so these have to be at
            // least 2.
            let several = axes.list.len() == 1 || n > *width as i64;
            several && whole(n) && among().all(lies)
        };
        let width = widths(among().map(|k| dtypes[k])).find(fits)?;
        let tensors = among().fold(0, |bits, k| bits | 1 << k);
        // The maximum for which registers hold the loads of all inputs: 4 vectors with one or two
        // inputs, otherwise 2.
        let most = if inputs <= 2 { 4 } else { 2 };
        let vectors = axes.list.iter().map(|(n, _)| n).product::<i64>() / width as i64;
        let turns = if inputs > 0 && vectors >= BUSY { most } else { 1 };
        Some(Self { tensors, width, axes: axes.list.len(), turns })
    }

    /// The vectors if all tensors are contiguous.
    pub fn all(dtypes: &[Dtype]) -> Self {
        let width = widths(dtypes.iter().copied()).next().unwrap_or(FOUR as usize);
        Self { tensors: (1 << dtypes.len()) - 1, width, axes: 1, turns: 1 }
    }

    /// The words of a layout that is counted in vectors, and the number of invocations or workgroups for
    /// it.
    pub fn words<const K: usize>(
        self,
        axes: &Axes<K>,
        words: &mut Vec<u32>,
    ) -> Result<(u32, bool)> {
        let axes = self.axes_of(axes);
        axes.layout(words);
        let vectors = axes.elements()?;
        if self.turns == 1 {
            return Ok((vectors, false));
        }
        words.push(vectors);
        Ok((vectors.div_ceil(self.turns * GROUP), true))
    }

    /// True if tensor `k` is accessed as vectors.
    pub fn has(self, k: usize) -> bool {
        self.tensors >> k & 1 == 1
    }

    /// Sorts items into the order of bindings: tensors of single elements come first.
    pub fn sorted<T: Copy>(self, items: &[T]) -> Vec<T> {
        let of = |wanted: bool| {
            let items = items.iter().enumerate();
            items.filter(move |(k, _)| self.has(*k) == wanted).map(|(_, item)| *item)
        };
        of(false).chain(of(true)).collect()
    }

    /// The axes, counted in vectors for tensors that are accessed as vectors, and in elements for
    /// others.
    fn axes_of<const K: usize>(self, axes: &Axes<K>) -> Axes<K> {
        let width = self.width as i64;
        let in_vectors = |mut all: [i64; K]| {
            for (k, n) in all.iter_mut().enumerate().filter(|(k, _)| *k < 32 && self.has(*k)) {
                debug_assert_eq!(*n % width, 0, "of tensor {k}");
                *n /= width;
            }
            all
        };
        let mut counted = Axes { offsets: in_vectors(axes.offsets), ..axes.clone() };
        if let Some(((n, _), outer)) = counted.list.split_last_mut() {
            *n /= width;
            outer.iter_mut().for_each(|(_, steps)| *steps = in_vectors(*steps));
        }
        counted
    }
}

/// The vector widths that all dtypes support, the largest first: at most 16 bytes with 2-byte dtypes, otherwise 4
/// elements.
fn widths(dtypes: impl Iterator<Item = Dtype>) -> impl Iterator<Item = usize> {
    let bytes = dtypes.map(|dtype| dtype.bytes() as usize).max().unwrap_or(PACKED);
    let packed = [4, 2].map(|n| n * FOUR as usize).into_iter().filter(move |n| n * bytes <= PACKED);
    packed.chain([FOUR as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dtype::{Bool, Float16, Float32, Int64};

    fn of(dtypes: [Dtype; 3], offsets: [i64; 3], axes: &[(i64, [i64; 3])]) -> Option<(u32, usize)> {
        let axes = Axes::<3>::join(offsets, axes.iter().copied());
        Vectors::of(&axes, 2, &dtypes).map(|vectors| (vectors.tensors, vectors.width))
    }

    #[test]
    fn pieces_are_read_in_vectors() {
        let of = |offsets, n, strides| of([Float32; 3], offsets, &[(n, strides)]);
        assert_eq!(of([4, 0, 8], 8, [1, 1, 1]), Some((0b111, 4)));
        assert_eq!(of([3, 0, 8], 8, [0, 1, 1]), Some((0b110, 4)));
        assert_eq!(of([0, 0, 0], 7, [1, 1, 1]), None);
        assert_eq!(of([0, 1, 0], 8, [1, 1, 1]), None);
        assert_eq!(of([0, 0, 0], 8, [2, 1, 1]), None);
        assert_eq!(of([0, 0, 0], 8, [1, 1, 0]), None);
        let vectors = Vectors { tensors: 0b101, width: 4, axes: 1, turns: 1 };
        assert_eq!(vectors.sorted(&['a', 'b', 'c']), ['b', 'a', 'c']);
    }

    #[test]
    fn rows_and_columns_are_broadcast_to_vectors() {
        let of = |axes: &[_]| of([Float32; 3], [0; 3], axes);
        assert_eq!(of(&[(3, [8, 0, 8]), (8, [1, 1, 1])]), Some((0b111, 4)));
        assert_eq!(of(&[(3, [8, 1, 8]), (8, [1, 0, 1])]), Some((0b101, 4)));
        assert_eq!(of(&[(3, [-12, 1, 8]), (8, [1, 0, 1])]), Some((0b101, 4)));
        assert_eq!(of(&[(3, [4, 0, 4]), (4, [1, 1, 1])]), None);
        assert_eq!(of(&[(3, [9, 0, 8]), (8, [1, 1, 1])]), None);
        assert_eq!(of(&[(8, [1, 0, 8]), (8, [8, 1, 1])]), None);
    }

    #[test]
    fn vectors_of_short_elements_are_wider() {
        let of = |dtypes, n| of(dtypes, [0; 3], &[(n, [1, 1, 1])]);
        assert_eq!(of([Float16; 3], 16), Some((0b111, 8)));
        assert_eq!(of([Float16, Float16, Bool], 16), Some((0b111, 8)));
        assert_eq!(of([Float16; 3], 12), Some((0b111, 4)));
        assert_eq!(of([Bool; 3], 16), Some((0b111, 16)));
        assert_eq!(of([Float16, Bool, Int64], 16), Some((0b111, 4)));
    }

    #[test]
    fn invocations_of_large_tensors_have_several_vectors() {
        let turns = |n| {
            let axes = Axes::<3>::join([0; 3], [(n, [1, 1, 1])]);
            let vectors = Vectors::of(&axes, 2, &[Float32; 3]).unwrap();
            let mut words = Vec::new();
            (vectors.words(&axes, &mut words).unwrap(), words.len())
        };
        assert_eq!(turns(4096), ((1024, false), 8));
        assert_eq!(turns((1 << 24) + 4), (((1 << 14) + 1, true), 9));
    }

    #[test]
    fn layouts_are_counted_in_vectors() {
        let axes = Axes::join([8, 3, 0], [(3, [-16, 1, 8]), (8, [1, 0, 1])]);
        let vectors = Vectors::of(&axes, 2, &[Float32; 3]).unwrap();
        let counted = vectors.axes_of(&axes);
        assert_eq!((counted.offsets, counted.list), {
            ([2, 3, 0], vec![(3, [-4, 1, 2]), (2, [1, 0, 1])])
        });
    }
}

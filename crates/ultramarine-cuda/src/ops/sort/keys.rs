//! Sorts indices by integer keys; the order of equal keys is kept. One block sorts a few keys. Many
//! keys take a radix sort, over only as many bits as the largest key has.

use crate::launch::{Grid, Job, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/sort/keys.cuh")];

/// Maximum number of keys that one block sorts, limited by its shared memory.
const FEW: u64 = 2048;
/// Keys of a tile: `SORT_TILE` of `sort/keys.cuh`.
const TILE: u64 = 2048;
/// Number of values of a digit.
const DIGITS: u64 = 256;
const THREADS: u32 = 256;

/// The layout of a workspace: consecutive pieces, each aligned.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkspaceLayout {
    /// Total size in bytes.
    pub bytes: u64,
}

impl WorkspaceLayout {
    /// Takes a piece; returns its offset.
    pub fn take(&mut self, bytes: u64) -> u64 {
        let at = self.bytes;
        self.bytes += bytes.next_multiple_of(256);
        at
    }
}

/// A sort of `n` keys: the algorithm, and the offsets of its arrays in the workspace.
#[derive(Clone, Copy, Debug)]
pub struct KeySort {
    n: u64,
    passes: u32,
    wide: bool,
    few: bool,
    /// Offsets of keys and indices, for two buffers.
    places: [[u64; 2]; 2],
    counts: u64,
    totals: u64,
}

/// The kernels.
#[derive(Default)]
pub struct KeyKernels(Kernels<(&'static str, bool)>);

impl KeySort {
    /// A sort of `n` keys of at most `most`; keys have 64 bits if `wide`, otherwise 32.
    pub fn of(n: u64, most: u64, wide: bool, workspace: &mut WorkspaceLayout) -> Self {
        let (few, width) = (n <= FEW && !wide, if wide { 8 } else { 4 });
        let passes = (u64::BITS - most.leading_zeros()).div_ceil(8).max(1);
        let first = [workspace.take(n * width), workspace.take(n * width)];
        let again = !few && passes > 1;
        let second =
            if again { [workspace.take(n * width), workspace.take(n * width)] } else { first };
        let counts = if few { 0 } else { workspace.take(DIGITS * n.div_ceil(TILE) * width) };
        let totals = if few { 0 } else { workspace.take(DIGITS * width) };
        Self { n, passes, wide, few, places: [first, second], counts, totals }
    }

    /// Offsets of the sorted keys and of their indices in the workspace.
    pub fn sorted(&self) -> [u64; 2] {
        match self.few {
            true => self.places[0],
            false => self.places[(self.passes as usize - 1) % 2],
        }
    }

    /// Sorts the keys at an address; the workspace begins at `work`.
    pub fn run(&self, job: &Job<'_>, kernels: &KeyKernels, keys: u64, work: u64) -> Result<()> {
        let k = if self.wide { "u64" } else { "u32" };
        let kernel = |template: &'static str| self.kernel(job, kernels, template, k);
        if self.few {
            let [sorted, order] = self.places[0].map(|at| work + at);
            let (n, padded) = (self.n as i32, self.n.next_power_of_two() as i32);
            let grid = Grid::line(1, (padded as u32 / 2).clamp(32, 1024));
            return launch!(job, &kernel("sort_few")?, grid; keys, sorted, order, n, padded);
        }
        let tiles = self.n.div_ceil(TILE);
        let (counts, totals) = (work + self.counts, work + self.totals);
        // A u32 argument is read from the lower half of a u64 in memory.
        let (n, mut from) = (self.n, [keys, 0]);
        for pass in 0..self.passes {
            let shift = 8 * pass as i32;
            let to = self.places[pass as usize % 2].map(|at| work + at);
            let grid = Grid::exactly(tiles, THREADS)?;
            launch!(job, &kernel("count_digits")?, grid; from[0], counts, n, shift, tiles)?;
            let all = Grid::line(DIGITS as u32, THREADS);
            launch!(job, &kernel("sum_digits")?, all; counts, totals, tiles)?;
            launch!(job, &kernel("move_digits")?, grid; from[0], from[1], to[0], to[1], counts, totals, n, shift, tiles)?;
            from = to;
        }
        Ok(())
    }

    fn kernel(
        &self,
        job: &Job<'_>,
        kernels: &KeyKernels,
        template: &'static str,
        k: &str,
    ) -> Result<Kernel> {
        kernels.0.get(&job.device.programs, (template, self.wide), || {
            let parameters = match template {
                "sort_few" => "const u32 *keys, u32 *sorted, u32 *order, int n, int padded".to_owned(),
                "count_digits" => {
                    format!("const {k} *keys, {k} *counts, {k} n, int shift, {k} tiles")
                }
                "sum_digits" => format!("{k} *counts, {k} *totals, {k} tiles"),
                _ => format!(
                    "const {k} *keys, const {k} *numbers, {k} *keys_to, {k} *numbers_to, const {k} *counts, const {k} *totals, {k} n, int shift, {k} tiles"
                ),
            };
            let arguments = if template == "sort_few" { "" } else { k };
            Source::instance(HEADERS, template, arguments, parameters)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_passes_as_the_largest_key_has_bytes() {
        let passes = |most: u64| {
            let mut workspace = WorkspaceLayout::default();
            let sort = KeySort::of(100_000, most, false, &mut workspace);
            (sort.passes, sort.sorted() == sort.places[0])
        };
        assert_eq!(passes(0), (1, true));
        assert_eq!(passes(255), (1, true));
        assert_eq!(passes(256), (2, false));
        assert_eq!(passes(50_257), (2, false));
        assert_eq!(passes(1 << 16), (3, true));
    }

    #[test]
    fn pieces_do_not_overlap() {
        let mut workspace = WorkspaceLayout::default();
        let sort = KeySort::of(5000, 1 << 20, true, &mut workspace);
        let mut begins = [sort.places[0], sort.places[1]].concat();
        begins.extend([sort.counts, sort.totals, workspace.bytes]);
        assert!(begins.windows(2).take(3).all(|w| w[1] - w[0] >= 8 * 5000));
        assert!(sort.totals - sort.counts >= 8 * 256 * 3 && workspace.bytes - sort.totals >= 2048);
        assert!(begins.iter().all(|at| at % 256 == 0));
    }
}

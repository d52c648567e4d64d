//! Copies whose source and target are contiguous along different axes, through tiles in shared
//! memory.

use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, View, launch, rank_for};
use crate::ops::{elementwise, headers};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, elementwise::MAP, include_str!("../../../kernels/copy.cuh")];

/// Minimum size of a memory transaction in bytes.
const SECTOR: u64 = 32;
/// Number of elements along an axis below which a tile is mostly empty.
const FEW: i64 = 8;

/// Copies between two dtypes whose source and target are contiguous along different axes. Both
/// sides are accessed in full lines, because the data passes through tiles in shared memory.
pub struct Transpose {
    from: Dtype,
    to: Dtype,
    /// By the number of elements in a pack, and the rank of the outer axes.
    kernels: Kernels<(i64, usize)>,
}

/// The two axes of the plane: the input is contiguous along `j`, the output along the last axis.
#[derive(Debug, PartialEq, Eq)]
struct Plane {
    j: usize,
    pack: i64,
}

impl Transpose {
    /// Nothing is compiled yet.
    pub fn new(from: Dtype, to: Dtype) -> Self {
        Self { from, to, kernels: Kernels::default() }
    }

    /// Enqueues the copy, if tiles are useful for it. `axes` are those of the input and the output,
    /// in the output's memory order.
    pub fn run(
        &self,
        job: &Job<'_>,
        axes: &Axes<2>,
        input: &View<'_>,
        output: &View<'_>,
    ) -> Result<bool> {
        let processors = u64::from(job.device.properties.multiprocessors);
        let Some(Plane { j, pack }) = plane(axes, self.from, self.to, processors) else {
            return Ok(false);
        };
        let (l, side) = (axes.count - 1, 32 * pack);
        let tiles = [j, l].map(|axis| (axes.size[axis] as u64).div_ceil(side as u64));
        let outer = without(axes, j);
        let aligned = |k: usize, view: &View<'_>, along: usize| {
            let bytes = pack as u64 * [self.from, self.to][k].bytes();
            let rest = (0..axes.count).filter(|d| *d != along);
            axes.stride[k][along] == 1
                && view.is_aligned(bytes)
                && rest.into_iter().all(|d| {
                    (axes.stride[k][d].unsigned_abs().wrapping_mul(view.dtype.bytes()))
                        .is_multiple_of(bytes)
                })
        };
        let sides = [
            axes.size[j],
            axes.size[l],
            axes.stride[0][j],
            axes.stride[0][l],
            axes.stride[1][j],
            axes.stride[1][l],
            tiles[0] as i64,
            tiles[1] as i64,
            i64::from(aligned(0, input, j)),
            i64::from(aligned(1, output, l)),
        ];
        let rank = rank_for(outer.count);
        let source = || self.source(pack, rank);
        let kernel = self.kernels.get(&job.device.programs, (pack, rank), source)?;
        let grid = Grid::exactly(tiles[0] * tiles[1] * outer.len(), BLOCK)?;
        let words = outer.parameter();
        launch!(job, &kernel, grid; input.address, output.address, sides[..], words[..])?;
        Ok(true)
    }

    fn source(&self, pack: i64, rank: usize) -> Source {
        let (f, t) = (self.from.tag(), self.to.tag());
        let parameters = format!(
            "const {f}::T *in, {t}::T *out, const TransposePlane t, const Walk<2, {rank}> w"
        );
        Source::instance(
            HEADERS,
            "transpose_tiles",
            format!("{f}, {t}, {pack}, {rank}"),
            parameters,
        )
    }
}

/// The plane whose tiles are transposed. `None` if a copy without tiles uses memory well enough.
fn plane(axes: &Axes<2>, from: Dtype, to: Dtype, processors: u64) -> Option<Plane> {
    let l = axes.count.checked_sub(1)?;
    let step = |d: usize| axes.stride[0][d].unsigned_abs().saturating_mul(from.bytes());
    let j = (0..l).filter(|d| step(*d) != 0).min_by_key(|d| step(*d))?;
    let (size_j, size_l) = (axes.size[j], axes.size[l]);
    if step(l) < SECTOR || step(j) >= SECTOR || size_j < FEW || size_l < FEW {
        return None;
    }
    let mut pack = match from.bytes().max(to.bytes()) {
        1 | 2 => 4,
        4 => 2,
        _ => 1,
    };
    // Tiles have to be full, and there have to be enough of them.
    let tiles = |pack: i64| axes.len() / (32 * pack as u64).pow(2);
    while pack > 1 && (16 * pack > size_j.min(size_l) || tiles(pack) < 2 * processors) {
        pack /= 2;
    }
    Some(Plane { j, pack })
}

/// The axes without `j` and the last one.
fn without(axes: &Axes<2>, j: usize) -> Axes<2> {
    let kept: Vec<usize> = (0..axes.count.saturating_sub(1)).filter(|d| *d != j).collect();
    let of = |values: &[i64]| kept.iter().map(|d| values[*d]).collect::<Vec<_>>();
    let strides = [of(&axes.stride[0]), of(&axes.stride[1])];
    Axes::join(&of(&axes.size), [&strides[0], &strides[1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dtype::*;

    fn of(shape: &[i64], input: &[i64], output: &[i64]) -> Axes<2> {
        Axes::join(shape, [input, output])
    }

    #[test]
    fn transposed_matrices_go_by_tiles() {
        let axes = of(&[1000, 2000], &[1, 1000], &[2000, 1]);
        let plane_of = |from, to| plane(&axes, from, to, 1);
        assert_eq!(plane_of(Uint32, Uint32), Some(Plane { j: 0, pack: 2 }));
        assert_eq!(plane_of(Uint8, Uint8), Some(Plane { j: 0, pack: 4 }));
        assert_eq!(plane_of(Float16, Float64), Some(Plane { j: 0, pack: 1 }));
        assert_eq!(plane(&axes, Uint32, Uint32, 10_000), Some(Plane { j: 0, pack: 1 }));
    }

    #[test]
    fn the_axis_of_the_input_may_lie_anywhere() {
        let axes = of(&[64, 3, 50, 70], &[1, 226_000, 4500, 64], &[10_500, 3500, 70, 1]);
        assert_eq!(plane(&axes, Uint16, Uint16, 1).map(|p| p.j), Some(0));
        let outer = without(&axes, 0);
        assert_eq!((outer.count, outer.size[0], outer.size[1]), (2, 3, 50));
        assert_eq!(outer.stride, {
            let mut stride = [[0; crate::launch::MAX_AXES]; 2];
            (stride[0][0], stride[0][1]) = (226_000, 4500);
            (stride[1][0], stride[1][1]) = (3500, 70);
            stride
        });
        let plain = without(&of(&[64, 64], &[1, 64], &[64, 1]), 0);
        assert_eq!((plain.count, plain.len()), (0, 1));
    }

    #[test]
    fn what_lies_together_or_is_thin_needs_no_tiles() {
        let rows = of(&[100, 100], &[200, 1], &[100, 1]);
        assert_eq!(plane(&rows, Uint32, Uint32, 1), None);
        let thin = of(&[3, 100_000], &[1, 3], &[100_000, 1]);
        assert_eq!(plane(&thin, Uint32, Uint32, 1), None);
        let near = of(&[100, 100], &[1, 2], &[100, 1]);
        assert_eq!(plane(&near, Uint32, Uint32, 1), None, "a sector has elements of both");
        let repeated = of(&[100, 100], &[1, 0], &[100, 1]);
        assert_eq!(plane(&repeated, Uint32, Uint32, 1), None);
    }
}

//! CONVOLVE, by kernels of our own: sums over taps and channels as a product of matrices.

use super::text;
use crate::job::Job;
use crate::launch::{BLOCK, Grid, launch};
use crate::plan::{Ask, Work};
use crate::program::{Lazy, Source};
use crate::view::View;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::ConvolveAttrs;

const TEXTS: &[&str] = &[
    text::NUMBER,
    text::WALK,
    include_str!("../../kernels/matmul.cuh"),
    include_str!("../../kernels/convolve.cuh"),
];

/// Side of a tile, as `matmul.cuh` has it.
const TILE: u64 = 64;
/// Outputs of a group up to which each element has a thread of its own: tiles would be empty.
const FEW_OUTPUTS: i64 = 8;
/// What 32-bit arithmetic reaches, with room for a tile and for a grid's stride.
const SMALL: i64 = 1 << 30;

/// A convolution. Kernels are by width of indices.
struct Convolve {
    flip: bool,
    tiles: [Lazy; 2],
    elements: [Lazy; 2],
}

/// CONVOLVE.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (x, weight, y) = (ask.input(0)?, ask.input(1)?, ask.output(0)?);
    if [x, weight, y].iter().any(|t| t.ndim != 5) {
        return Err(Failure::invalid(format!(
            "a convolution of ranks {} and {} into {}: expected 5",
            x.ndim, weight.ndim, y.ndim
        )));
    }
    if x.dtype != weight.dtype || x.dtype != y.dtype || !x.dtype.is_real() {
        return Err(Failure::unsupported(format!(
            "a convolution of {} and {}: expected one floating dtype",
            x.dtype.name(),
            weight.dtype.name()
        )));
    }
    let ConvolveAttrs { flip, .. } = ask.attributes()?;
    let d = x.dtype.tag();
    let make = |what: &str, index: &str| {
        let pointers = format!("const {d}::T *x, const {d}::T *w, {d}::T *y");
        let body = format!("convolve_{what}<{d}, {index}>(x, w, y, s);");
        let tail = format!(
            "extern \"C\" __global__ void kernel({pointers}, const Convolution s) {{ {body} }}\n"
        );
        Lazy::new(Source::new(format!("convolve {what} {d} {index}"), TEXTS, tail))
    };
    let both = |what: &str| ["i32", "i64"].map(|index| make(what, index));
    Ok(Box::new(Convolve { flip: flip != 0, tiles: both("tiles"), elements: both("elements") }))
}

/// `Convolution` of `convolve.cuh`, in its order.
struct Sizes {
    words: Vec<i64>,
    rows: i64,
    groups: i64,
    outputs: i64,
    is_small: bool,
}

impl Sizes {
    /// `steps`: strides, zeros before the first element, dilations of kernel and input.
    fn of(
        x: &View<'_>,
        weight: &View<'_>,
        y: &View<'_>,
        steps: [[i64; 3]; 4],
        flip: bool,
    ) -> Result<Self> {
        let (xs, ws, ys) = (x.shape, weight.shape, y.shape);
        let groups = xs[4] / ws[4];
        let fits = groups * ws[4] == xs[4] && ws[0] % groups.max(1) == 0;
        if !fits || xs[0] != ys[0] || ws[0] != ys[4] {
            return Err(Failure::invalid(format!(
                "a convolution of {xs:?} and {ws:?} into {ys:?}"
            )));
        }
        let [stride, low, spread, gaps] = steps;
        if [stride, spread, gaps].iter().flatten().any(|n| *n < 1) {
            return Err(Failure::invalid("a convolution whose steps are below 1"));
        }
        let (outputs, rows) = (ws[0] / groups, ys[0] * ys[1] * ys[2] * ys[3]);
        let mut words = vec![ys[0], groups, ws[4], outputs];
        for list in [&xs[1..4], &ys[1..4], &ws[1..4], &stride, &low, &spread, &gaps] {
            words.extend_from_slice(list);
        }
        for strides in [x.strides, weight.strides, y.strides] {
            words.extend_from_slice(strides);
        }
        words.push(i64::from(flip));
        let reach = |v: &View<'_>| {
            let steps = v.shape.iter().zip(v.strides);
            steps
                .map(|(n, s)| (n - 1).saturating_mul(s.saturating_abs()))
                .fold(0, i64::saturating_add)
        };
        let place = |d: usize| {
            let taps = (ws[d + 1] - 1).saturating_mul(spread[d]);
            let last = (ys[d + 1] - 1).saturating_mul(stride[d]).saturating_add(taps);
            last.saturating_add(low[d].saturating_abs()).max(gaps[d]).max(stride[d]).max(spread[d])
        };
        let counts = [y.len() as i64, ws[1..].iter().product()];
        let is_small = [x, weight, y].into_iter().all(|v| reach(v) <= SMALL)
            && (0..3).all(|d| place(d) <= SMALL)
            && counts.into_iter().all(|n| n <= SMALL);
        Ok(Self { words, rows, groups, outputs, is_small })
    }
}

impl Work for Convolve {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (x, weight, y) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let mut steps = [[0; 3]; 4];
        for (i, place) in steps.iter_mut().flatten().enumerate() {
            *place = job.scalar(i)? as i64;
        }
        let sizes = Sizes::of(x, weight, y, steps, self.flip)?;
        let few = sizes.outputs <= FEW_OUTPUTS;
        let kernels = if few { &self.elements } else { &self.tiles };
        let kernel = kernels[usize::from(!sizes.is_small)].get(job.device)?;
        let grid = if few {
            Grid::over(job.device, y.len(), 1)
        } else {
            let down = (sizes.rows as u64).div_ceil(TILE) * sizes.groups as u64;
            let tiles = down * (sizes.outputs as u64).div_ceil(TILE);
            Grid::line(tiles.min(i32::MAX as u64) as u32, BLOCK)
        };
        launch!(job, &kernel, grid; x.address, weight.address, y.address, sizes.words[..])
    }
}

//! CONVOLVE: sums over taps and channels as a product of matrices. By cuBLASLt, for which the
//! input is unfolded in shares, or by kernels of our own, which read it where it is.

use super::matmul::gemm::Gemm;
use super::matmul::library::{Library, Products, Steps};
use super::matmul::product::Product;
use super::{headers, unknown};
use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::program::{Kernel, Kernels, Source, index};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ConvolveAttrs, op};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../kernels/matmul.cuh"),
    include_str!("../../kernels/conv.cuh"),
];

/// Side of a tile, as `matmul.cuh` has it.
const TILE: u64 = 64;
/// Outputs of a group up to which each element has a thread of its own: tiles would be empty.
const FEW_OUTPUTS: i64 = 8;
/// The reach of 32-bit arithmetic, with room for a tile and for a grid's stride.
const SMALL: i64 = 1 << 30;

/// Bytes of the unfolded input at a time.
const SHARE: u64 = 256 << 20;
/// Rows, columns and length of sums from which the library is worth that.
const WORTH: i64 = 16;

/// A convolution.
struct Convolve {
    flip: bool,
    /// By template, whether 16 bytes are moved at once, and whether indices have 64 bits.
    kernels: Kernels<(&'static str, bool, bool)>,
    dtype: Dtype,
    library: Option<Products>,
}

/// CONVOLVE.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    if request.op != op::CONVOLVE {
        return Err(unknown(request));
    }
    let (x, weight, y) = (request.input(0)?, request.input(1)?, request.output(0)?);
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
    let ConvolveAttrs { flip, .. } = request.attributes()?;
    Ok(Box::new(Convolve {
        flip: flip != 0,
        kernels: Kernels::default(),
        dtype: x.dtype,
        library: Products::new(x.dtype).filter(|_| Library::of(request.device).is_some()),
    }))
}

/// `Convolution` of `conv.cuh`, in its order.
struct Sizes {
    words: Vec<i64>,
    rows: i64,
    groups: i64,
    outputs: i64,
    /// Length of the sums.
    k: i64,
    is_small: bool,
    /// The input is what the sums read, in its order.
    is_pointwise: bool,
}

/// Places in [`Sizes::words`].
const CHANNELS: usize = 2;
const X_STRIDES: usize = 25;

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
        let place = |d: usize| {
            let taps = (ws[d + 1] - 1).saturating_mul(spread[d]);
            let last = (ys[d + 1] - 1).saturating_mul(stride[d]).saturating_add(taps);
            last.saturating_add(low[d].saturating_abs()).max(gaps[d]).max(stride[d]).max(spread[d])
        };
        let counts = [y.len() as i64, ws[1..].iter().product()];
        let is_small = [x, weight, y].into_iter().all(|v| v.span() <= SMALL as u64)
            && (0..3).all(|d| place(d) <= SMALL)
            && counts.into_iter().all(|n| n <= SMALL);
        let is_pointwise = ws[1..4] == [1; 3]
            && xs[1..4] == ys[1..4]
            && [stride, gaps] == [[1; 3]; 2]
            && low == [0; 3]
            && x.is_contiguous();
        let k = ws[1..].iter().product();
        Ok(Self { words, rows, groups, outputs, k, is_small, is_pointwise })
    }

    /// The product of so many rows of what the sums read with the weights, for each group.
    fn product(&self, rows: i64) -> Product {
        let (k, n) = (self.k, self.outputs);
        Product {
            m: rows,
            n,
            k,
            a: [self.groups * k, 1],
            b: [1, k],
            out: [self.groups * n, 1],
            batch: Axes::join(&[self.groups], [&[k], &[n * k], &[n]]),
        }
    }

    /// The same in 16 bytes instead of elements of so many, if channels and steps allow that.
    fn in_words(&self, x: &View<'_>, bytes: u64) -> Option<Vec<i64>> {
        let each = (16 / bytes) as i64;
        let mut words = self.words.clone();
        let steps = [CHANNELS].into_iter().chain(X_STRIDES..X_STRIDES + 4);
        for (place, size) in steps.zip([2, x.shape[0], x.shape[1], x.shape[2], x.shape[3]]) {
            if size > 1 && words[place] % each != 0 {
                return None;
            }
            words[place] /= each;
        }
        (x.strides[4] == 1 && x.is_aligned(16)).then_some(words)
    }
}

/// A convolution by the library: shares of rows.
struct Unfolded {
    share: i64,
    /// Of a share, and of what remains.
    steps: [Option<Steps>; 2],
    /// Bytes of a share's unfolded input.
    bytes: u64,
}

impl Convolve {
    fn kernel(
        &self,
        job: &Job<'_>,
        key @ (template, packed, wide): (&'static str, bool, bool),
    ) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, key, || {
            let (d, index) = (self.dtype.tag(), index(wide));
            if template == "unfold" {
                let word = format!("{}::T", self.dtype.word().tag());
                let e = if packed { "Words" } else { &word };
                let parameters =
                    format!("const {e} *x, {e} *to, i64 first, i64 rows, const Convolution s");
                return Source::instance(HEADERS, template, format!("{e}, {index}"), parameters);
            }
            let parameters =
                format!("const {d}::T *x, const {d}::T *w, {d}::T *y, const Convolution s");
            Source::instance(HEADERS, template, format!("{d}, {index}"), parameters)
        })
    }

    fn sizes(&self, job: &Job<'_>) -> Result<Sizes> {
        let mut steps = [[0; 3]; 4];
        for (i, place) in steps.iter_mut().flatten().enumerate() {
            *place = job.scalar(i)? as i64;
        }
        Sizes::of(job.input(0)?, job.input(1)?, job.output(0)?, steps, self.flip)
    }

    /// How the library does it. `None`: our own kernels do.
    fn unfolded(&self, job: &Job<'_>, sizes: &Sizes) -> Result<Option<Unfolded>> {
        let (x, weight, y) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let Some(library) = &self.library else { return Ok(None) };
        let small = sizes.outputs.min(sizes.k).min(sizes.rows) < WORTH;
        if small || !weight.is_contiguous() || !y.is_contiguous() {
            return Ok(None);
        }
        let bytes = self.dtype.bytes();
        let line = (sizes.groups * sizes.k) as u64 * bytes;
        let share = match sizes.is_pointwise {
            true => sizes.rows,
            false => sizes.rows.min((SHARE / line) as i64),
        };
        if share < WORTH {
            return Ok(None);
        }
        let is_whole = share == sizes.rows;
        // The workspace is aligned; shares of the output lie apart.
        let apart = (share * sizes.groups * sizes.outputs) as u64 * bytes;
        let at = [
            if sizes.is_pointwise { x.address } else { 256 },
            weight.address,
            if is_whole { y.address } else { y.address | apart },
        ];
        let rest = if is_whole { 0 } else { sizes.rows % share };
        let mut steps = [None, None];
        for (place, rows) in steps.iter_mut().zip([share, rest]) {
            if rows > 0 {
                let gemm = Gemm::of(&sizes.product(rows), bytes);
                match gemm.and_then(|gemm| library.steps(job.device, gemm, at)) {
                    Some(found) => *place = Some(found),
                    None => return Ok(None),
                }
            }
        }
        let bytes = if sizes.is_pointwise { 0 } else { share as u64 * line };
        Ok(Some(Unfolded { share, steps, bytes: bytes.next_multiple_of(256) }))
    }

    /// True if the library did it.
    fn by_library(&self, job: &Job<'_>, sizes: &Sizes) -> Result<bool> {
        let Some(library) = &self.library else { return Ok(false) };
        let Some(plan) = self.unfolded(job, sizes)? else { return Ok(false) };
        let (x, weight, y) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let bytes = self.dtype.bytes();
        let packed = sizes.in_words(x, bytes);
        let is_small = sizes.is_small && plan.bytes / bytes <= SMALL as u64;
        let words = packed.as_ref().unwrap_or(&sizes.words);
        let mut first = 0;
        while first < sizes.rows {
            let rows = plan.share.min(sizes.rows - first);
            let steps = plan.steps[usize::from(rows < plan.share)].as_ref();
            let steps = steps.ok_or_else(|| Failure::new("a share of rows without its product"))?;
            let mut from = x.address;
            if !sizes.is_pointwise {
                let kernel = self.kernel(job, ("unfold", packed.is_some(), !is_small))?;
                let scratch = job.scratch()?;
                let grid = Grid::over(job.device, plan.bytes / 16, 2);
                launch!(job, &kernel, grid; from, scratch, first, rows, words[..])?;
                from = scratch;
            }
            let to = y.address + (first * sizes.groups * sizes.outputs) as u64 * bytes;
            if !library.run(job, steps, [from, weight.address, to], plan.bytes)? {
                return Ok(false);
            }
            first += rows;
        }
        Ok(true)
    }
}

impl Work for Convolve {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        let plan = self.unfolded(job, &self.sizes(job)?)?;
        Ok(plan.map_or(0, |plan| {
            let own = plan.steps.iter().flatten().map(Steps::workspace).max();
            plan.bytes + own.unwrap_or(0)
        }))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let sizes = self.sizes(job)?;
        if self.by_library(job, &sizes)? {
            return Ok(());
        }
        let (x, weight, y) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let few = sizes.outputs <= FEW_OUTPUTS;
        let template = if few { "convolve_elements" } else { "convolve_tiles" };
        let kernel = self.kernel(job, (template, false, !sizes.is_small))?;
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

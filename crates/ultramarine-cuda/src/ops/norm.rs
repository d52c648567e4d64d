//! RMS_NORM and LAYER_NORM.

use super::reduce::{kernels_of, vector};
use super::reduction::{self, Fold, Kernels, Kind, Problem};
use super::softmax::{self, Rows};
use super::{rooms::ByRoom, text};
use crate::dtype::Dtype;
use crate::job::Job;
use crate::launch::{Grid, launch};
use crate::plan::{Ask, Work};
use crate::program::Source;
use crate::view::{View, row_major};
use crate::walk::Axes;
use ultramarine_abi::helper::{Failure, Result};

const TEXTS: &[&str] = &[
    text::NUMBER,
    text::WALK,
    reduction::TEXT,
    softmax::TEXT,
    include_str!("../../kernels/norm.cuh"),
];

/// The tensors as kernels have them: input, output, weight and bias.
type Tensors<'j> = Vec<&'j View<'j>>;

/// A layer's norm if there is a bias.
struct Norm {
    bias: bool,
    dtype: Dtype,
    moments: Kernels,
    apply: ByRoom,
}

/// RMS_NORM: any strides.
pub fn prepare_rms_norm(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    prepare(ask, false)
}

/// LAYER_NORM: any strides.
pub fn prepare_layer_norm(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    prepare(ask, true)
}

fn prepare(ask: &Ask<'_>, bias: bool) -> Result<Box<dyn Work>> {
    ask.elementwise(2 + usize::from(bias))?;
    let dtype = ask.output(0)?.dtype;
    if !dtype.is_real() || ask.inputs.iter().any(|d| d.dtype != dtype) {
        return Err(Failure::unsupported(format!(
            "norms of {} into {}: all have one floating dtype",
            ask.input(0)?.dtype.name(),
            dtype.name()
        )));
    }
    if ask.output(0)?.ndim == 0 {
        return Err(Failure::invalid("norms are of the last axis, a scalar has none"));
    }
    let d = dtype.tag();
    let op = if bias { "Moments" } else { "Squares" };
    let moments = kernels_of(format!("{op}<{d}>"), dtype, TEXTS);
    let (k, sums) = if bias { (5, format!("Distances<{d}::A>")) } else { (4, format!("{d}::A")) };
    let apply = ByRoom::new(&format!("norm {bias} {d}"), TEXTS, |room, index| {
        (
            format!(
                "const {d}::T *in, {d}::T *out, const {d}::T *weight, const {d}::T *bias, const {sums} *moments, double eps, i64 count, const Walk<{k}, {room}> w"
            ),
            format!(
                "norm_apply<{d}, {bias}, {sums}, {k}, {room}, {index}>(in, out, weight, bias, moments, eps, count, w);"
            ),
        )
    });
    Ok(Box::new(Norm { bias, dtype, moments, apply }))
}

/// The rows of a tensor, as a reduction into packed moments.
struct Sums {
    fold: Fold,
    /// The moments' strides over the tensor's shape.
    strides: Vec<i64>,
    bytes: u64,
}

impl Norm {
    /// Bytes of the moments of a row.
    fn accumulator(&self) -> u64 {
        let words = if self.bias { 3 } else { 1 };
        words * if self.dtype == Dtype::Float64 { 8 } else { 4 }
    }

    fn tensors<'j>(&self, job: &'j Job<'_>) -> Result<Tensors<'j>> {
        let mut all = vec![job.input(0)?, job.output(0)?, job.input(1)?];
        if self.bias {
            all.push(job.input(2)?);
        }
        Ok(all)
    }

    /// All walked together, where a row is one contiguous axis that fits in registers.
    fn rows(&self, job: &Job<'_>, all: &[&View<'_>]) -> Option<(Fold, Rows)> {
        let shape = all[0].shape;
        let strides: Vec<&[i64]> = all.iter().map(|v| v.strides).collect();
        let places: Vec<(u64, u64)> = all.iter().map(|v| (v.address, self.dtype.bytes())).collect();
        let fold = Fold::of(
            &job.device.facts,
            &Problem {
                shape,
                strides: &strides,
                places: &places,
                out: &vec![0; shape.len()],
                axes: 1 << (shape.len() - 1),
                vector: vector(self.dtype),
            },
        );
        let along = fold.along.as_ref()?;
        let packed = along[..2].iter().all(|s| *s == 1) && along.iter().all(|s| (0..2).contains(s));
        let by_rows = matches!(fold.variant.kind, Kind::Rows(_));
        let words = if self.dtype == Dtype::Float64 { 2 } else { 1 };
        let rows = Rows::of(fold.count, fold.variant.vector.into(), words)?;
        (packed && by_rows).then_some((fold, rows))
    }

    fn sums(&self, job: &Job<'_>, input: &View<'_>) -> Sums {
        let last = input.shape.len() - 1;
        let mut kept = input.shape.to_vec();
        kept[last] = 1;
        let mut strides = row_major(&kept);
        strides[last] = 0;
        let fold = Fold::of(
            &job.device.facts,
            &Problem {
                shape: input.shape,
                strides: &[input.strides],
                places: &[(input.address, self.dtype.bytes())],
                out: &strides,
                axes: 1 << last,
                vector: vector(self.dtype),
            },
        );
        let bytes = (fold.outputs * self.accumulator()).next_multiple_of(256);
        Sums { fold, strides, bytes }
    }

    fn run_rows(&self, job: &Job<'_>, all: &[&View<'_>], fold: &Fold, rows: Rows) -> Result<()> {
        let (d, kept, index) = (self.dtype.tag(), fold.variant.rooms.0, fold.variant.index());
        let Rows { team, times, vector } = rows;
        let along = fold.along.as_deref().unwrap_or_default();
        let one = along.iter().enumerate().fold(0, |mask, (k, s)| mask | i32::from(*s == 0) << k);
        let k = all.len();
        let template = format!("{d}, {k}, {kept}, {index}, {team}, {times}, {vector}, {one}");
        let tail = format!(
            "extern \"C\" __global__ void __launch_bounds__({}) kernel(const {d}::T *in, {d}::T *out, const {d}::T *weight, const {d}::T *bias, double eps, const Fold<{k}, {kept}, 1> w) {{ norm_rows<{template}>(in, out, weight, bias, eps, w); }}\n",
            rows.threads()
        );
        let source = Source::new(format!("norm rows {template}"), TEXTS, tail);
        let kernel = job.device.programs.kernel(job.device, &source)?;
        let blocks = fold.outputs.div_ceil(rows.threads() / team).min(1 << 30);
        let grid = Grid::line(blocks as u32, rows.threads() as u32);
        let (input, output, weight) = (all[0].address, all[1].address, all[2].address);
        let bias = all.get(3).map_or(0, |v| v.address);
        let eps = f64::from_bits(job.scalar(0)?);
        launch!(job, &kernel, grid; input, output, weight, bias, eps, fold.words[..])
    }

    fn run_apply<const K: usize>(
        &self,
        job: &Job<'_>,
        all: &[&View<'_>],
        strides: [&[i64]; K],
        at: u64,
    ) -> Result<()> {
        let axes = Axes::join(all[0].shape, strides);
        let (words, _) = axes.parameter();
        let kernel = self.apply.get(job.device, &axes)?;
        let grid = Grid::over(job.device, axes.len(), 4);
        let (input, output, weight) = (all[0].address, all[1].address, all[2].address);
        let bias = all.get(3).map_or(0, |v| v.address);
        let eps = f64::from_bits(job.scalar(0)?);
        let count = all[0].shape.last().copied().unwrap_or(1);
        launch!(job, &kernel, grid; input, output, weight, bias, at, eps, count, words[..])
    }
}

impl Work for Norm {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let all = self.tensors(job)?;
        if self.rows(job, &all).is_some() {
            return Ok(0);
        }
        let sums = self.sums(job, all[0]);
        Ok(sums.bytes + sums.fold.workspace(self.accumulator()))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let all = self.tensors(job)?;
        if let Some(other) = all.iter().find(|v| v.shape != all[1].shape) {
            return Err(Failure::invalid(format!(
                "a norm of {:?} into {:?}: all have one shape",
                other.shape, all[1].shape
            )));
        }
        if let Some((fold, rows)) = self.rows(job, &all) {
            return self.run_rows(job, &all, &fold, rows);
        }
        let sums = self.sums(job, all[0]);
        let fold = &sums.fold;
        let (from, at) = (all[0].address, job.scratch()?);
        let partial = at + sums.bytes;
        let kernel = self.moments.get(job.device, &fold.variant)?;
        launch!(job, &kernel, fold.grid(); from, at, partial, fold.words[..])?;
        self.moments.merge(job, fold, at, partial)?;
        let (x, y, w, m) = (all[0].strides, all[1].strides, all[2].strides, &sums.strides[..]);
        match all.get(3) {
            Some(bias) => self.run_apply(job, &all, [x, y, w, bias.strides, m], at),
            None => self.run_apply(job, &all, [x, y, w, m], at),
        }
    }
}

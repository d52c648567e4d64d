//! CROSS_ENTROPY and its gradient.

use super::{row_kernels, softmax};
use crate::launch::{Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::ops::reduce::{Reduction, fold, kernels_of, vector};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    fold::HEADER,
    row_kernels::HEADER,
    softmax::HEADER,
    include_str!("../../../kernels/nn/cross_entropy.cuh"),
];

/// Bit of the classes' axis.
const CLASSES: u64 = 0b10;

/// The logits' dtype of a request. The operands are logits, targets and `wide` others, which have the dtype of sums.
fn asked(request: &OpRequest<'_>, wide: usize, outputs: &[Dtype]) -> Result<Dtype> {
    let dtype = request.input(0)?.dtype;
    let sums = sums_in(dtype);
    let mut fits = dtype.is_real() && request.input(1)?.dtype == Dtype::Int32;
    for i in 0..wide {
        fits &= request.input(2 + i)?.dtype == sums;
    }
    for (i, expected) in outputs.iter().enumerate() {
        fits &= request.output(i)?.dtype == *expected;
    }
    if fits { Ok(dtype) } else { Err(Failure::unsupported("cross entropy of other dtypes")) }
}

fn sums_in(dtype: Dtype) -> Dtype {
    if dtype.is_half() { Dtype::Float32 } else { dtype }
}

/// Rows and strides, as in the kernels' `CrossEntropy`.
fn strides(job: &Job<'_>, out: Option<&View<'_>>, rows: [&View<'_>; 3]) -> Result<[u64; 9]> {
    let logits = job.input(0)?;
    let &[n, classes] = logits.shape else {
        return Err(Failure::invalid("cross entropy of logits that are not rows"));
    };
    let fits = rows.iter().all(|view| view.shape == [n])
        && out.is_none_or(|out| out.shape == logits.shape);
    if !fits {
        return Err(Failure::invalid(format!(
            "cross entropy of logits {:?} with tensors of other shapes",
            logits.shape
        )));
    }
    let of = |view: &View<'_>| [view.strides[0], view.strides[1]];
    let ([pitch, step], [out_pitch, out_step]) = (of(logits), out.map_or([0, 0], of));
    let each = rows.map(|view| view.strides[0]);
    let all = [n, classes, pitch, step, out_pitch, out_step, each[0], each[1], each[2]];
    Ok(all.map(|n| n as u64))
}

struct CrossEntropy {
    dtype: Dtype,
    sums: Reduction,
    losses: Kernels,
}

/// CROSS_ENTROPY, with any strides.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let wide = sums_in(request.input(0)?.dtype);
    let dtype = asked(request, 0, &[wide, wide])?;
    let sums = Reduction {
        axes: CLASSES,
        accumulator: softmax::accumulator(dtype),
        vector: vector(dtype),
        longest: u64::MAX,
        kernels: kernels_of(format!("LogSum<{}>", dtype.tag()), dtype, HEADERS),
        copy: None,
    };
    Ok(Box::new(CrossEntropy { dtype, sums, losses: Kernels::default() }))
}

impl CrossEntropy {
    /// The reduction of the logits to one logarithm per row.
    fn reduced<T>(&self, job: &Job<'_>, run: impl FnOnce(&Job<'_>) -> Result<T>) -> Result<T> {
        let (logits, to) = (job.input(0)?, job.output(1)?);
        let (&[rows], &[stride]) = (to.shape, to.strides) else {
            return Err(Failure::invalid("cross entropy with logarithms that are no row"));
        };
        let to = View { shape: &[rows, 1], strides: &[stride, 1], ..*to };
        run(&job.part(*logits, to, job.workspace))
    }
}

impl Work for CrossEntropy {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        self.reduced(job, |job| self.sums.workspace(job))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (logits, targets) = (job.input(0)?, job.input(1)?);
        let (losses, logarithms) = (job.output(0)?, job.output(1)?);
        let words = strides(job, None, [targets, logarithms, losses])?;
        self.reduced(job, |job| self.sums.run(job))?;
        let kernel = self.losses.get(&job.device.programs, (), || {
            let d = self.dtype.tag();
            let parameters = format!(
                "const {d}::T *logits, const i32 *targets, const {d}::A *logarithms, {d}::A *losses, const CrossEntropy s"
            );
            Source::instance(HEADERS, "cross_entropy_losses", d.to_string(), parameters)
        })?;
        let grid = Grid::over(job.device, words[0], 1);
        let addresses = [logits, targets, logarithms, losses].map(|view| view.address);
        let [logits, targets, logarithms, losses] = addresses;
        launch!(job, &kernel, grid; logits, targets, logarithms, losses, words[..])
    }
}

struct Gradient {
    dtype: Dtype,
    /// By whether counts need 64 bits, and by the number of adjacent elements that a thread moves
    /// at once.
    kernels: Kernels<(bool, u32)>,
}

/// CROSS_ENTROPY_GRADIENT, with any strides.
pub fn prepare_gradient(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let dtype = asked(request, 2, &[request.input(0)?.dtype])?;
    Ok(Box::new(Gradient { dtype, kernels: Kernels::default() }))
}

impl Work for Gradient {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let [logits, targets] = [job.input(0)?, job.input(1)?];
        let [logarithms, cotangents] = [job.input(2)?, job.input(3)?];
        let out = job.output(0)?;
        let words = strides(job, Some(out), [targets, logarithms, cotangents])?;
        let v = u64::from(vector(self.dtype));
        let packs = |view: &View<'_>| {
            view.strides[1] == 1
                && view.is_aligned(16)
                && (view.strides[0] as u64).is_multiple_of(v)
        };
        let vectors = words[1].is_multiple_of(v) && packs(logits) && packs(out);
        let each = if vectors { v } else { 1 };
        let count = words[0] * words[1] / each;
        let variant = (count >> 31 != 0, each as u32);
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let (d, index) = (self.dtype.tag(), if variant.0 { "i64" } else { "u32" });
            let parameters = format!(
                "const {d}::T *logits, const i32 *targets, const {d}::A *logarithms, const {d}::A *cotangents, \
                 {d}::T *out, const CrossEntropy s"
            );
            let arguments = format!("{d}, {index}, {}", variant.1);
            Source::instance(HEADERS, "cross_entropy_slopes", arguments, parameters)
        })?;
        let grid = Grid::over(job.device, count, 1);
        let addresses = [logits, targets, logarithms, cotangents, out].map(|view| view.address);
        let [logits, targets, logarithms, cotangents, out] = addresses;
        launch!(job, &kernel, grid; logits, targets, logarithms, cotangents, out, words[..])
    }
}

//! REDUCE.

pub mod fold;
mod kernels;

pub use kernels::FoldKernels;

use crate::launch::{Dtype, Job, OpRequest, Work, launch};
use crate::ops::headers;
use crate::program::Source;
use fold::{Fold, Problem, Variant};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ReduceAttrs, reduce};

/// Headers of the kernels.
pub const HEADERS: &[&str] = &[headers::NUMBER, fold::HEADER];

/// The kernels' names of the codes of [`reduce`].
const OPS: [&str; 6] = ["Sum", "Prod", "Min", "Max", "All", "Any"];

/// The op that the kernels call by that name, such as `Sum<F32>`, for values of a dtype, and the
/// bytes of its accumulator; `None` if there is no such reduction.
pub fn op_of(code: u32, dtype: Dtype) -> Option<(String, u64)> {
    let name = OPS.get(code as usize)?;
    let accumulator = match code {
        reduce::ALL | reduce::ANY => 4,
        _ if dtype.is_half() => 4,
        _ => dtype.bytes(),
    };
    let numbers = !matches!(code, reduce::SUM | reduce::PROD) || dtype != Dtype::Bool;
    numbers.then(|| (format!("{name}<{}>", dtype.tag()), accumulator))
}

/// The dtype of a reduction's output.
pub fn output_of(code: u32, dtype: Dtype) -> Dtype {
    if matches!(code, reduce::ALL | reduce::ANY) { Dtype::Bool } else { dtype }
}

/// Elements of a dtype in 16 bytes.
pub fn vector(dtype: Dtype) -> u32 {
    (16 / dtype.bytes()) as u32
}

/// A reduction of one tensor.
pub struct Reduction {
    /// Bit `i`: axis `i` is reduced.
    pub axes: u64,
    /// Bytes of an accumulator.
    pub accumulator: u64,
    /// Elements that are read at once.
    pub vector: u32,
    /// Most elements of a reduction.
    pub longest: u64,
    /// The kernels.
    pub kernels: FoldKernels,
}

/// The kernels of an op for values of a dtype, over one tensor.
pub fn kernels_of(op: String, dtype: Dtype, headers: &'static [&'static str]) -> FoldKernels {
    let (d, name) = (dtype.tag(), op.clone());
    FoldKernels::new(op, headers, move |variant: &Variant| {
        let functor = format!("Load<{d}, {}, {}>", variant.index(), variant.vector);
        let parameters = format!("const {d}::T *in, {}", variant.parameters(&name));
        let body = format!("{functor} f = {{in}}; {}", variant.call(&name, &functor));
        let arguments = format!("{name} {}", variant.name());
        Source::with_body(headers, variant.template(), arguments, parameters, body).bounded(256)
    })
}

impl Reduction {
    fn fold(&self, job: &Job<'_>) -> Result<Fold> {
        let (input, output) = (job.input(0)?, job.output(0)?);
        let axes = self.axes;
        let size = |i: usize, n: i64| if axes >> i & 1 == 1 { 1 } else { n };
        let shape = input.shape.iter().enumerate().map(|(i, n)| size(i, *n));
        if !shape.eq(output.shape.iter().copied()) {
            return Err(Failure::invalid(format!(
                "a reduction of {:?} over the axes of mask {axes:#b} into {:?}",
                input.shape, output.shape
            )));
        }
        let fold = Fold::of(
            &job.device.properties,
            &Problem {
                shape: input.shape,
                strides: &[input.strides],
                places: &[(input.address, input.dtype.bytes())],
                out: output.strides,
                axes,
                vector: self.vector,
            },
        );
        match fold.count <= self.longest {
            true => Ok(fold),
            false => Err(Failure::invalid(format!(
                "indices of {} elements do not fit in uint32",
                fold.count
            ))),
        }
    }
}

impl Work for Reduction {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(self.fold(job)?.workspace(self.accumulator))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let fold = self.fold(job)?;
        let (input, output) = (job.input(0)?.address, job.output(0)?.address);
        let partial = if fold.segments > 1 { job.scratch()? } else { 0 };
        let kernel = self.kernels.get(&job.device.programs, &fold.variant)?;
        launch!(job, &kernel, fold.grid(); input, output, partial, fold.words[..])?;
        self.kernels.merge(job, &fold, output, partial)
    }
}

/// REDUCE: any axes, any strides.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let ReduceAttrs { op: code, axes, .. } = request.attributes()?;
    let dtype = request.input(0)?.dtype;
    let Some((op, accumulator)) = op_of(code, dtype) else {
        let name = reduce::NAMES.get(code as usize).copied().unwrap_or("an unknown code");
        return Err(Failure::unsupported(format!("reduction {code} ({name}) of {}", dtype.name())));
    };
    if request.output(0)?.dtype != output_of(code, dtype) {
        return Err(Failure::invalid(format!(
            "{op} into {}, its output is {}",
            request.output(0)?.dtype.name(),
            output_of(code, dtype).name()
        )));
    }
    let kernels = kernels_of(op, dtype, HEADERS);
    Ok(Box::new(Reduction { axes, accumulator, vector: vector(dtype), longest: u64::MAX, kernels }))
}

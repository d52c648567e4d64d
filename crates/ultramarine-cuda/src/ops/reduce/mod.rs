//! REDUCE. `fold.rs` chooses a kernel of `kernels/reduce.cuh` for the shape and strides of a
//! command, and `kernels.rs` compiles it. ARG_REDUCE, epilogues and row kernels use the same code.

pub mod fold;
mod kernels;

pub use kernels::FoldKernels;

use crate::launch::{Desc, Dtype, Job, OpRequest, View, Work, launch, row_major};
use crate::ops::{copy, headers};
use crate::program::Source;
use fold::{Fold, Problem, Variant};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ReduceAttrs, op, reduce};

/// Headers of the kernels.
pub const HEADERS: &[&str] = &[headers::NUMBER, fold::HEADER];

/// The names that kernels use for the codes of [`reduce`].
const OPS: [&str; 6] = ["Sum", "Prod", "Min", "Max", "All", "Any"];

/// The operation's name in the kernels, such as `Sum<F32>`, for values of a dtype, and the bytes of
/// its accumulator; `None` if there is no such reduction.
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

/// Number of elements of a dtype in 16 bytes.
pub fn vector(dtype: Dtype) -> u32 {
    (16 / dtype.bytes()) as u32
}

/// The work of REDUCE for one tensor.
pub struct Reduction {
    /// Bit `i`: axis `i` is reduced.
    pub axes: u64,
    /// Bytes of an accumulator.
    pub accumulator: u64,
    /// Elements that are loaded at once.
    pub vector: u32,
    /// Maximum number of elements of a reduction.
    pub longest: u64,
    /// The kernels.
    pub kernels: FoldKernels,
    /// Makes a row-major copy of an operand whose layout would be joined in another order. `None` if results do not
    /// depend on the order, or if the operand is row-major.
    pub copy: Option<Box<dyn Work>>,
}

/// The kernels of an operation on values of a dtype, over one tensor.
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
    /// Returns the choice, and the strides of the copy that it reads, unless it reads the operand
    /// itself.
    ///
    /// Values are joined in the order of a row-major operand, whatever the layout. So a reduction is bitwise
    /// identical alone and as the epilogue of a program, which has no layout.
    fn strategy(&self, job: &Job<'_>) -> Result<(Fold, Option<Vec<i64>>)> {
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
        let properties = &job.device.properties;
        let (own, places) = ([input.strides], [(input.address, input.dtype.bytes())]);
        let (shape, out, vector) = (input.shape, output.strides, self.vector);
        let problem = Problem { shape, strides: &own, places: &places, out, axes, vector };
        let fold = Fold::of(properties, &problem);
        if fold.count > self.longest {
            return Err(Failure::invalid(format!(
                "indices of {} elements do not fit in uint32",
                fold.count
            )));
        }
        if self.copy.is_none() {
            return Ok((fold, None));
        }
        let strides = row_major(shape);
        let (copied, places) = ([&strides[..]], [(0, input.dtype.bytes())]);
        let plain = Fold::of(properties, &Problem { strides: &copied, places: &places, ..problem });
        Ok(match fold.like(&plain, &problem) {
            Some(fold) => (fold, None),
            None => (plain, Some(strides)),
        })
    }

    /// Offset of the copy in the workspace.
    fn copy_at(&self, fold: &Fold) -> u64 {
        fold.workspace(self.accumulator).next_multiple_of(256)
    }
}

impl Work for Reduction {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let (fold, copied) = self.strategy(job)?;
        match copied {
            Some(_) => Ok(self.copy_at(&fold) + job.input(0)?.bytes()),
            None => Ok(fold.workspace(self.accumulator)),
        }
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (fold, copied) = self.strategy(job)?;
        let (mut input, output) = (job.input(0)?.address, job.output(0)?.address);
        if let (Some(copy), Some(strides)) = (&self.copy, &copied) {
            input = job.scratch()? + self.copy_at(&fold);
            let to = View { address: input, strides, ..*job.input(0)? };
            copy.run(&job.part(*job.input(0)?, to, 0))?;
        }
        let partial = if fold.segments > 1 { job.scratch()? } else { 0 };
        let kernel = self.kernels.get(&job.device.programs, &fold.variant)?;
        launch!(job, &kernel, fold.grid(); input, output, partial, fold.words[..])?;
        self.kernels.merge(job, &fold, output, partial)
    }
}

/// REDUCE, along any axes and with any strides.
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
    let ordered = matches!(code, reduce::SUM | reduce::PROD)
        && (dtype.is_real() || dtype == Dtype::Complex64);
    let whole = Desc { contiguous: true, ..request.input(0)? };
    let copy = ordered
        .then(|| copy::prepare(&request.part(op::COPY, vec![request.input(0)?], vec![whole])));
    Ok(Box::new(Reduction {
        axes,
        accumulator,
        vector: vector(dtype),
        longest: u64::MAX,
        kernels: kernels_of(op, dtype, HEADERS),
        copy: copy.transpose()?,
    }))
}

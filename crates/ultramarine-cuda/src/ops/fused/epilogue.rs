//! Epilogues: reductions at the end of a program. If possible, the kernels of `reduce.cuh` call the
//! program's function and reduce in one pass over the inputs. This requires that values are joined
//! in the same order as by REDUCE, so that results are bitwise identical. Otherwise, and while the
//! kernel is being compiled, the value is written to the workspace and reduced from there.

use super::program::Program;
use super::source;
use crate::launch::{Desc, Dtype, Job, View, Views, Work, enqueue, row_major};
use crate::ops::reduce::FoldKernels;
use crate::ops::reduce::fold::{Fold, Problem};
use crate::ops::reduce::{self, Reduction};
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, Result};

/// Size of kernel parameters, in bytes, that every device and driver supports.
const PARAMETERS: usize = 4096;
/// Maximum number of copies of an element's code in a kernel, times its weight.
const MOST: usize = 1024;

/// The reduction at the end of a program. Its kernel computes the reduced values itself. Until that
/// kernel is compiled, the program writes the values to the workspace, from which a plain
/// [`Reduction`] reads them.
pub struct Epilogue {
    /// The reduction of the value in the workspace.
    plain: Reduction,
    /// The kernels that reduce the program's function.
    kernels: FoldKernels,
    dtype: Dtype,
    axes: u64,
    accumulator: u64,
    /// Kernels are compiled when they are needed, not in the background.
    waits: bool,
}

/// The strategy for a command.
struct Strategy {
    /// The reduction that REDUCE uses.
    plain: Fold,
    /// The reduction in one pass, if it gives the same bits.
    single: Option<Fold>,
}

impl Epilogue {
    /// The reduction of output 0 by a code, over the axes in the mask.
    pub fn new(
        program: &Program,
        (code, axes): (u32, u64),
        output: &Desc,
        waits: bool,
    ) -> Result<Self> {
        let dtype = program.output(0);
        let known =
            reduce::op_of(code, dtype).filter(|_| output.dtype == reduce::output_of(code, dtype));
        let Some((op, accumulator)) = known else {
            return Err(Failure::unsupported(format!(
                "a program whose value of {} is reduced by code {code} to {}",
                dtype.name(),
                output.dtype.name()
            )));
        };
        let plain = Reduction {
            axes,
            accumulator,
            vector: reduce::vector(dtype),
            longest: u64::MAX,
            kernels: reduce::kernels_of(op.clone(), dtype, reduce::HEADERS),
            copy: None,
        };
        let (program, name) = (program.clone(), op.clone());
        let kernels =
            FoldKernels::new(op, reduce::HEADERS, move |v| source::fold_source(&program, &name, v));
        Ok(Self { plain, kernels, dtype, axes, accumulator, waits })
    }

    fn strategy(&self, program: &Program, job: &Job<'_>) -> Result<Strategy> {
        let (shape, out) = (job.input(0)?.shape, job.output(0)?);
        let size = |(i, n): (usize, &i64)| if self.axes >> i & 1 == 1 { 1 } else { *n };
        if !shape.iter().enumerate().map(size).eq(out.shape.iter().copied()) {
            return Err(Failure::invalid(format!(
                "a program of shape {shape:?} reduced over the axes of mask {:#b} into {:?}",
                self.axes, out.shape
            )));
        }
        let (properties, axes) = (&job.device.properties, self.axes);
        let (vector, out) = (self.plain.vector, out.strides);
        let (copied, place) = ([&row_major(shape)[..]], [(0, self.dtype.bytes())]);
        let of_value = Problem { shape, strides: &copied, places: &place, out, axes, vector };
        let plain = Fold::of(properties, &of_value);
        let tensors: Vec<&View<'_>> = job.inputs.iter().chain(&job.outputs[1..]).collect();
        let strides: Vec<&[i64]> = tensors.iter().map(|t| t.strides).collect();
        let places: Vec<(u64, u64)> =
            tensors.iter().map(|t| (t.address, t.dtype.bytes())).collect();
        let problem = Problem { strides: &strides, places: &places, ..of_value };
        let single = Fold::of(properties, &problem).like(&plain, &problem);
        let fits = |single: &Fold| {
            let vector = single.variant.vector as usize;
            let copies = vector * if vector == 1 { 8 } else { 32 / vector.clamp(8, 16) };
            let words = single.words.len() + tensors.len() + program.constants.max(1) + 2;
            8 * words <= PARAMETERS && copies * program.weight() <= MOST
        };
        let single = single.filter(fits);
        Ok(Strategy { plain, single })
    }

    fn ready<'a>(&self, job: &Job<'_>, strategy: &'a Strategy) -> Result<Option<&'a Fold>> {
        match &strategy.single {
            Some(fold) if self.waits || self.kernels.ready(&job.device.programs, fold)? => {
                Ok(Some(fold))
            }
            _ => Ok(None),
        }
    }

    /// Returns the offset of the value in the workspace.
    fn value_at(&self, plain: &Fold) -> u64 {
        plain.workspace(self.accumulator).next_multiple_of(256)
    }

    /// Bytes of workspace.
    pub fn workspace(&self, program: &Program, job: &Job<'_>) -> Result<u64> {
        let strategy = self.strategy(program, job)?;
        // Loading compiled kernels requires the device's context.
        let _entered = job.device.enter()?;
        Ok(match self.ready(job, &strategy)? {
            Some(fold) => fold.workspace(self.accumulator),
            None => self.value_at(&strategy.plain) + job.input(0)?.len() * self.dtype.bytes(),
        })
    }

    /// Enqueues the reduction; `map` writes the program's values to tensors, inputs first.
    pub fn run(
        &self,
        program: &Program,
        job: &Job<'_>,
        map: impl FnOnce(&[View<'_>]) -> Result<()>,
    ) -> Result<()> {
        let strategy = self.strategy(program, job)?;
        // A kernel that is ready stays ready, so the workspace has at least the size that was
        // requested.
        if let Some(fold) = self.ready(job, &strategy)? {
            return self.single(program, job, fold);
        }
        let shape = job.input(0)?.shape;
        let strides = row_major(shape);
        let address = job.scratch()? + self.value_at(&strategy.plain);
        let value = View { address, dtype: self.dtype, shape, strides: &strides };
        let mut views: Views<'_> = job.inputs.iter().copied().collect();
        views.push(value);
        views.extend_from_slice(&job.outputs[1..]);
        map(&views)?;
        self.plain.run(&job.part(value, *job.output(0)?, job.workspace))
    }

    fn single(&self, program: &Program, job: &Job<'_>, fold: &Fold) -> Result<()> {
        let out = job.output(0)?.address;
        let partial = if fold.segments > 1 { job.scratch()? } else { 0 };
        let tensors = job.inputs.iter().chain(&job.outputs[1..]);
        let addresses: Vec<u64> = tensors.map(|t| t.address).collect();
        let mut constants: Vec<u64> = job.scalars.iter().map(|s| s[0]).collect();
        if constants.len() != program.constants {
            return Err(Failure::invalid(format!(
                "{} constants for a program of {}",
                constants.len(),
                program.constants
            )));
        }
        constants.resize(constants.len().max(1), 0);
        let place = |value: *const u64| value.cast_mut().cast::<c_void>();
        let mut arguments: Vec<*mut c_void> = addresses.iter().map(|a| place(a)).collect();
        arguments.extend([
            place(constants.as_ptr()),
            place(&raw const out),
            place(&raw const partial),
            place(fold.words.as_ptr()),
        ]);
        let kernel = self.kernels.get(&job.device.programs, &fold.variant)?;
        // SAFETY: these are the parameters of `source::fold_source`.
        unsafe { enqueue(job, &kernel, fold.grid(), &mut arguments) }?;
        self.kernels.merge(job, fold, out, partial)
    }
}

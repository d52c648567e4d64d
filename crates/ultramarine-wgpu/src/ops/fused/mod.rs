//! Fused programs, with a kernel for each. If the value that an epilogue reduces needs no loops and is not also an output,
//! the reducing kernel computes it. Otherwise the epilogue reduces a value in the workspace. Norms at the end of programs
//! are in `anchored.rs`.

mod anchored;
mod epilogue;
mod program;
mod source;

pub use program::{INSTRUCTIONS, Program};
pub use source::TENSORS;

use super::native::variants::Variants;
use super::reduce::Reduce;
use crate::dtype::Dtype;
use crate::launch::{AXES, Axes, Desc, Device, Forms, Job, Plan, Vectors, View, Work, row_major};
use crate::memory::Block;
use crate::program::Kernel;
use epilogue::{Folded, Reduced};
use std::sync::Arc;
use ultramarine_abi::fused::Anchor;
use ultramarine_abi::helper::{Failure, Result};

/// Alignment of parts of the workspace, in bytes.
const APART: u64 = 64;

/// The elementwise kernels of a program.
struct Fused {
    program: Program,
    /// The dtypes of [`Program::tensors`].
    dtypes: Vec<Dtype>,
    kernels: Forms<Kernel>,
    vectors: Variants<Vectors>,
    /// The epilogue of output 0, and the dtype of the epilogue's operand.
    fold: Option<(Reduce, Dtype)>,
}

/// The plan of a program, optionally with an anchor. The anchor's inputs come after the program's.
pub fn prepare(
    device: &Device,
    program: Program,
    anchor: Option<&Anchor>,
    inputs: &[Desc],
    outputs: &[Desc],
) -> Result<Plan> {
    let rank = inputs.first().map(|desc| desc.ndim);
    if inputs.iter().chain(outputs).any(|desc| Some(desc.ndim) != rank) {
        return Err(Failure::invalid("tensors of a program have one rank"));
    }
    if program.dtypes.contains(&Dtype::Float64) && !device.context.properties.float64 {
        return Err(Failure::unsupported("the device has no arithmetic of float64"));
    }
    if let Some(anchor) = anchor {
        return anchored::prepare(device, program, anchor, inputs, outputs);
    }
    let tensors = program.tensors();
    for (i, (desc, value)) in outputs.iter().zip(&tensors[program.inputs..]).enumerate() {
        if desc.dtype != *value && (i > 0 || program.reduce.is_none()) {
            return Err(Failure::unsupported("an output of another dtype than its value"));
        }
    }
    let name = format!("a program of {} instructions", program.steps.len());
    let mut fold = None;
    if let Some((code, axes)) = program.reduce {
        let (value, out) = (tensors[program.inputs], outputs[0].dtype);
        let alone = program.outputs.len() == 1;
        if alone && program.outputs[0] >= program.inputs {
            // The output and the partial results need bindings, too.
            let room = program.inputs + 2 <= most_tensors(&device.context.properties);
            // Drivers count the iterations of all loops together, and reductions account only for
            // their own loops.
            let straight = rank.is_some_and(|rank| rank <= AXES) && !source::has_loops(&program);
            if room && straight {
                return Ok(Plan::new(name, Box::new(Reduced::new(device, program, out)?)));
            }
        }
        let reduce = Reduce::new(device, code, axes, (value, out))?;
        if alone && program.outputs[0] < program.inputs {
            let input = program.outputs[0];
            return Ok(Plan::new(name, Box::new(Folded { reduce, input })));
        }
        fold = Some((reduce, value));
    }
    let work = Fused { fold, ..Fused::apart(program) };
    // Compiling the usual kernel now reports errors early.
    match device.context.properties.gpu_kernels {
        true => work.of_vectors(device, Vectors::all(&tensors))?,
        false => work.kernel(device, 1)?,
    };
    Ok(Plan::new(name, Box::new(work)))
}

/// Maximum number of tensors of a program on a device.
pub fn most_tensors(properties: &crate::hal::Properties) -> usize {
    TENSORS.min(properties.buffers as usize - 1)
}

/// The joined axes of a command's tensors, and the words before the layout in its kernel, which are the
/// constants.
fn walked(
    job: &Job<'_>,
    program: &Program,
    views: &[&View<'_>],
) -> Result<(Axes<TENSORS>, Vec<u32>)> {
    if views.len() > TENSORS || program.inputs > job.inputs.len() {
        return Err(Failure::invalid("a command with another number of tensors"));
    }
    let strides = |d: usize| {
        let mut all = [0; TENSORS];
        all.iter_mut().zip(views).for_each(|(to, view)| *to = view.strides[d]);
        all
    };
    let mut offsets = [0; TENSORS];
    offsets.iter_mut().zip(views).for_each(|(to, view)| *to = view.offset);
    let axes = job.input(0)?.shape.iter().enumerate().map(|(d, n)| (*n, strides(d)));
    let axes = Axes::join(offsets, axes).with_tensors(views.len());
    let mut words = Vec::new();
    for i in 0..program.constants {
        let bits = job.scalar(i)?;
        words.extend([bits as u32, (bits >> 32) as u32]);
    }
    Ok((axes, words))
}

impl Fused {
    /// A program whose outputs are all written to memory.
    fn apart(program: Program) -> Self {
        let dtypes = program.tensors();
        let (kernels, vectors) = Default::default();
        Self { program, dtypes, kernels, vectors, fold: None }
    }

    /// The kernel for layouts with the given number of axes.
    fn kernel(&self, device: &Device, axes: usize) -> Result<Arc<Kernel>> {
        self.kernels.get(axes, |axes| device.programs.get(source::source(&self.program, axes)))
    }

    /// Enqueues the kernel for these inputs and outputs.
    fn map(&self, job: &Job<'_>, views: &[&View<'_>]) -> Result<()> {
        let (axes, mut words) = walked(job, &self.program, views)?;
        let blocks: Vec<_> = views.iter().map(|view| &view.block).collect();
        // Elements are numbered with 32 bits.
        let items = axes.elements()?;
        let found = Vectors::of(&axes, self.program.inputs, &self.dtypes);
        if let Some(vectors) = found.filter(|_| job.device.context.properties.gpu_kernels) {
            let kernel = self.of_vectors(job.device, vectors)?;
            return job.launch_vectors(&kernel, &blocks, (vectors, &axes), words);
        }
        axes.layout(&mut words);
        let kernel = self.kernel(job.device, axes.list.len())?;
        job.launch(&kernel, &blocks, items, &words)
    }

    /// The kernel that uses vectors.
    fn of_vectors(&self, device: &Device, vectors: Vectors) -> Result<Arc<Kernel>> {
        self.vectors.get(device, vectors, |vectors| source::vectors(&self.program, *vectors))
    }

    /// Output 0 before it is reduced: row-major, in the workspace after the reduction's partial results.
    fn operand<'a>(
        &self,
        job: &'a Job<'_>,
        memory: Arc<Block>,
        strides: &'a [i64],
    ) -> Result<Option<View<'a>>> {
        let Some((reduce, dtype)) = &self.fold else { return Ok(None) };
        let shape = job.input(0)?.shape;
        let mut view =
            View { block: memory, offset: 0, misaligned: 0, dtype: *dtype, shape, strides };
        let partial = reduce.workspace_of(job.device, (&view, job.output(0)?))?;
        view.offset = (partial.next_multiple_of(APART) / dtype.bytes()) as i64;
        Ok(Some(view))
    }
}

impl Work for Fused {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let strides = row_major(job.input(0)?.shape);
        let view = self.operand(job, job.input(0)?.block.clone(), &strides)?;
        Ok(view.map_or(0, |view| view.byte_offset() + view.bytes()))
    }

    fn has_no_workspace(&self) -> bool {
        self.fold.is_none()
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let mut views: Vec<&View<'_>> = job.inputs.iter().chain(&job.outputs).collect();
        let Some((reduce, _)) = &self.fold else { return self.map(job, &views) };
        let strides = row_major(job.input(0)?.shape);
        let value = self.operand(job, job.scratch()?, &strides)?;
        let Some(value) = &value else { return self.map(job, &views) };
        views[self.program.inputs] = value;
        self.map(job, &views)?;
        reduce.run_views(job, (value, job.output(0)?))
    }
}

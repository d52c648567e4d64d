//! Programs whose anchor is a norm.
//!
//! If a row fits in the registers of a team, the norm's kernel gets its elements from the program's function. It joins
//! them in the same order as the plain norm, so results are bitwise identical. Otherwise, and while the kernel is
//! being compiled, the value is written to the workspace, and the norm reads it from there.

use super::program::Program;
use super::source::{self, NormVariant};
use crate::launch::{Desc, Job, View, Views, Work, enqueue, row_major};
use crate::ops::nn::norm::Norm;
use crate::ops::nn::row_kernels::{Strategy as Rows, Team};
use crate::ops::reduce::fold::Fold;
use crate::program::Kernels;
use core::ffi::c_void;
use smallvec::smallvec;
use ultramarine_abi::fused::{Anchor, position};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;
use ultramarine_abi::status;

/// Size of kernel parameters, in bytes, that every device and driver supports.
const PARAMETERS: usize = 4096;
/// Maximum number of copies of an element's code in a kernel, times its weight.
const MOST: u64 = 1024;

/// The norm at the end of a program, computed in the same pass as the values that it normalises.
pub struct NormEpilogue {
    norm: Norm,
    kernels: Kernels<NormVariant>,
    /// Kernels are compiled when they are needed, not in the background.
    waits: bool,
}

/// The kernel that does everything in one pass.
struct Single {
    fold: Fold,
    variant: NormVariant,
}

impl NormEpilogue {
    /// The norm that is the anchor of a program; `inputs` are its operands after the value.
    pub fn new(
        program: &Program,
        anchor: &Anchor,
        inputs: &[Desc],
        output: Desc,
        waits: bool,
    ) -> Result<Self> {
        let bias = match (anchor.op, anchor.revision, anchor.position) {
            (op::RMS_NORM, 1, position::LAST) => false,
            (op::LAYER_NORM, 1, position::LAST) => true,
            _ => return Err(Failure::unsupported("a program that hangs on no norm")),
        };
        if inputs.len() != 1 + usize::from(bias) || program.reduce.is_some() {
            return Err(Failure::invalid("a program with a norm of other operands, or reduced"));
        }
        if program.output(0) != output.dtype {
            return Err(Failure::unsupported("a norm into another dtype"));
        }
        let norm = Norm::new(bias, inputs, output)?;
        Ok(Self { norm, kernels: Kernels::default(), waits })
    }

    /// The plain norm of the value at an address.
    fn plain<'a>(
        &self,
        program: &Program,
        job: &'a Job<'_>,
        (address, strides): (u64, &'a [i64]),
        workspace: u64,
    ) -> Result<Job<'a>> {
        let output = *job.output(0)?;
        let value = View { address, dtype: output.dtype, shape: output.shape, strides };
        let mut part = job.part(value, output, workspace);
        part.inputs.extend(job.inputs[program.inputs..].iter().copied());
        part.scalars = smallvec![[job.scalar(program.constants)?, 0]];
        Ok(part)
    }

    /// The one-pass kernel, if its results are bitwise identical to those of the plain norm.
    fn single(&self, program: &Program, job: &Job<'_>, plain: &Job<'_>) -> Result<Option<Single>> {
        let Rows::Team(alone, team) = self.norm.strategy(plain)? else { return Ok(None) };
        let (own, parameters) = job.inputs.split_at(program.inputs);
        let output = job.output(0)?;
        let all: Vec<&View<'_>> =
            own.iter().chain(&job.outputs[1..]).chain([output]).chain(parameters).collect();
        let out = program.inputs + job.outputs.len() - 1;
        let written = |k: usize| (program.inputs..=out).contains(&k);
        let Some((fold, found)) = self.norm.rows.in_registers(job, &all, written) else {
            return Ok(None);
        };
        let Team { times, vector, .. } = team;
        let same = found == team && (fold.outputs, fold.count) == (alone.outputs, alone.count);
        let words = fold.words.len() + all.len() + program.constants.max(1) + 3;
        let fits = 8 * words <= PARAMETERS && times * vector * program.weight() as u64 <= MOST;
        let along = fold.along.as_deref().unwrap_or_default();
        let one = along.iter().enumerate().fold(0, |mask, (k, s)| mask | u64::from(*s == 0) << k);
        let bias = self.norm.bias;
        // The kernel uses the team's vector size.
        let mut fold = fold;
        if u64::from(fold.variant.vector) != vector {
            fold.variant.vector = vector as u32;
            fold.variant.unit = if vector > 1 { !one & ((1 << all.len()) - 1) } else { 0 };
        }
        let variant = NormVariant { fold: fold.variant, team, one, bias };
        Ok((same && fits).then_some(Single { fold, variant }))
    }

    fn source(&self, program: &Program, variant: &NormVariant) -> crate::program::Source {
        source::norm_source(program, self.norm.rows.dtype, variant)
    }

    /// The one-pass kernel, if it is compiled. Graphs wait for it, because a graph would otherwise
    /// keep the slower way.
    fn ready(&self, program: &Program, job: &Job<'_>, plain: &Job<'_>) -> Result<Option<Single>> {
        let Some(single) = self.single(program, job, plain)? else { return Ok(None) };
        let source = || self.source(program, &single.variant);
        let name = || source().name();
        let programs = &job.device.programs;
        if self.waits || self.kernels.ready(programs, single.variant, name, source)? {
            return Ok(Some(single));
        }
        match job.graph {
            None => Ok(None),
            Some(_) => Err(Failure {
                code: status::NOT_YET,
                text: "the norm of a program is being compiled".to_owned(),
            }),
        }
    }

    /// Bytes of workspace.
    pub fn workspace(&self, program: &Program, job: &Job<'_>) -> Result<u64> {
        let strides = row_major(job.output(0)?.shape);
        let plain = self.plain(program, job, (0, &strides), 0)?;
        // Loading compiled kernels requires the device's context.
        let _entered = job.device.enter()?;
        Ok(match self.ready(program, job, &plain)? {
            Some(_) => 0,
            None => self.value_at(&plain)? + job.output(0)?.bytes(),
        })
    }

    /// Returns the offset of the value in the workspace.
    fn value_at(&self, plain: &Job<'_>) -> Result<u64> {
        Ok(self.norm.workspace(plain)?.next_multiple_of(256))
    }

    /// Enqueues the norm; `map` writes the program's values to tensors, inputs first.
    pub fn run(
        &self,
        program: &Program,
        job: &Job<'_>,
        map: impl FnOnce(&[View<'_>]) -> Result<()>,
    ) -> Result<()> {
        let output = job.output(0)?;
        let tensors = job.inputs.iter().chain(&job.outputs);
        if let Some(other) = tensors.clone().find(|t| t.shape != output.shape) {
            return Err(Failure::invalid(format!(
                "a norm of {:?} into {:?}: all have one shape",
                other.shape, output.shape
            )));
        }
        let strides = row_major(output.shape);
        let plain = self.plain(program, job, (0, &strides), 0)?;
        // A kernel that is ready stays ready, so the workspace has at least the size that was
        // requested.
        if let Some(single) = self.ready(program, job, &plain)? {
            return self.launch(program, job, &single);
        }
        let address = job.scratch()? + self.value_at(&plain)?;
        let plain = self.plain(program, job, (address, &strides), job.workspace)?;
        let mut views: Views<'_> = job.inputs[..program.inputs].iter().copied().collect();
        views.push(plain.inputs[0]);
        views.extend_from_slice(&job.outputs[1..]);
        map(&views)?;
        self.norm.run(&plain)
    }

    fn launch(&self, program: &Program, job: &Job<'_>, single: &Single) -> Result<()> {
        let (own, parameters) = job.inputs.split_at(program.inputs);
        let addresses: Vec<u64> = own.iter().chain(&job.outputs[1..]).map(|t| t.address).collect();
        let mut constants: Vec<u64> =
            job.scalars.iter().take(program.constants).map(|s| s[0]).collect();
        constants.resize(program.constants.max(1), 0);
        let eps = job.scalar(program.constants)?;
        let out = job.output(0)?.address;
        let [weight, bias] = [0, 1].map(|i| parameters.get(i).map_or(0, |t| t.address));
        let place = |value: *const u64| value.cast_mut().cast::<c_void>();
        let mut arguments: Vec<*mut c_void> = addresses.iter().map(|a| place(a)).collect();
        arguments.extend([
            place(constants.as_ptr()),
            place(&raw const out),
            place(&raw const weight),
            place(&raw const bias),
            place(&raw const eps),
            place(single.fold.words.as_ptr()),
        ]);
        let source = || self.source(program, &single.variant);
        let kernel = self.kernels.get(&job.device.programs, single.variant, source)?;
        let grid = single.variant.team.grid(single.fold.outputs);
        // SAFETY: these are the parameters of `source::norm_source`.
        unsafe { enqueue(job, &kernel, grid, &mut arguments) }
    }
}

//! A command that is being translated to actions. A [`Job`] holds its tensors, scalars and
//! workspace, and appends dispatches and copies to a batch. The families in [`crate::ops`] use it.

use super::{Axes, Device, Vectors, View, Walk};
use crate::memory::{Block, Buffer};
use crate::program::Kernel;
use crate::shader::source::{grid_of, groups_for};
use crate::streams::Batch;
use std::cell::RefCell;
use std::sync::Arc;
use ultramarine_abi::dlpack::element_range;
use ultramarine_abi::helper::{CommandRef, Failure, Result};

/// A command that is being translated to actions: its tensors and scalars, and the batch that it
/// appends to. It is passed to [`Work::run`](super::Work::run).
pub struct Job<'a> {
    /// The device.
    pub device: &'a Device,
    /// Inputs.
    pub inputs: Vec<View<'a>>,
    /// Outputs.
    pub outputs: Vec<View<'a>>,
    scalars: Vec<[u64; 2]>,
    workspace: Option<Arc<Block>>,
    batch: RefCell<&'a mut Batch>,
}

impl<'a> Job<'a> {
    /// Decodes a command; its actions are appended to the batch.
    pub fn of(
        device: &'a Device,
        command: &CommandRef<'a, Device>,
        batch: &'a mut Batch,
    ) -> Result<Self> {
        let inputs = (0..command.n_inputs()).map(|i| View::of(&command.input(i)?));
        let outputs = (0..command.n_outputs()).map(|i| View::of(&command.output(i)?));
        let n_scalars = command.raw().n_scalars;
        // SAFETY: by the contract, the handle of a buffer of this device, or NULL.
        let workspace = unsafe { command.workspace().cast::<Buffer>().as_ref() };
        let mut job = Self {
            device,
            inputs: inputs.collect::<Result<_>>()?,
            outputs: outputs.collect::<Result<_>>()?,
            scalars: (0..n_scalars).map(|i| command.scalar(i)).collect::<Result<_>>()?,
            workspace: workspace.map(|buffer| buffer.0.clone()),
            batch: RefCell::new(batch),
        };
        if let Some(output) = job.outputs.iter().find(|view| view.misaligned != 0) {
            return Err(Failure::invalid(format!(
                "an output of {} begins at byte {}, no multiple of its {} bytes",
                output.dtype.name(),
                output.byte_offset(),
                output.dtype.bytes()
            )));
        }
        for i in 0..job.inputs.len() {
            if job.inputs[i].misaligned != 0 {
                job.inputs[i] = job.realigned(&job.inputs[i])?;
            }
        }
        Ok(job)
    }

    /// Copies an input whose elements are not aligned to their size. The copy covers everything that its strides
    /// reach.
    fn realigned(&self, view: &View<'a>) -> Result<View<'a>> {
        let (low, high) = element_range(view.axes())
            .ok_or_else(|| Failure::invalid("the strides of a tensor overflow"))?;
        let size = view.dtype.bytes();
        let bytes = (high - low + 1) as u64 * size;
        let start = view.byte_offset().wrapping_add_signed(low * size as i64);
        let temporary = self.device.alloc(bytes)?;
        let copy = temporary.0.clone();
        let mut batch = self.batch.borrow_mut();
        batch.copy((view.block.clone(), start), (copy.clone(), 0), bytes);
        batch.temporaries.push(temporary);
        Ok(View { block: copy, offset: -low, misaligned: 0, ..view.clone() })
    }

    /// Input `i`.
    pub fn input(&self, i: usize) -> Result<&View<'a>> {
        self.inputs.get(i).ok_or_else(|| Failure::invalid(format!("the command has no input {i}")))
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> Result<&View<'a>> {
        self.outputs
            .get(i)
            .ok_or_else(|| Failure::invalid(format!("the command has no output {i}")))
    }

    /// The low 64 bits of scalar `i`, which hold the whole value for every dtype that is used here.
    pub fn scalar(&self, i: usize) -> Result<u64> {
        let found = self.scalars.get(i).map(|words| words[0]);
        found.ok_or_else(|| Failure::invalid(format!("the command has no scalar {i}")))
    }

    /// The workspace that the plan asked for.
    pub fn scratch(&self) -> Result<Arc<Block>> {
        self.workspace.clone().ok_or_else(|| {
            Failure::invalid("the command lacks the workspace that its plan asked for")
        })
    }

    /// Enqueues a kernel. Its word 0 is the number of invocations, and `more` are the words after
    /// it.
    pub fn launch(
        &self,
        kernel: &Arc<Kernel>,
        blocks: &[&Arc<Block>],
        invocations: u32,
        more: &[u32],
    ) -> Result<()> {
        let groups = groups_for(invocations.into(), self.device.context.properties.max_groups);
        self.dispatch(kernel, blocks, invocations, more, groups)
    }

    /// Enqueues a kernel whose workgroups compute together. Its word 0 is the number of workgroups.
    pub fn launch_groups(
        &self,
        kernel: &Arc<Kernel>,
        blocks: &[&Arc<Block>],
        groups: u32,
        more: &[u32],
    ) -> Result<()> {
        let grid = grid_of(groups.into(), self.device.context.properties.max_groups);
        self.dispatch(kernel, blocks, groups, more, grid)
    }

    fn dispatch(
        &self,
        kernel: &Arc<Kernel>,
        blocks: &[&Arc<Block>],
        count: u32,
        more: &[u32],
        groups: [u32; 3],
    ) -> Result<()> {
        if 1 + blocks.len() != kernel.bindings() {
            return Err(Failure::new("the kernel has another number of tensors"));
        }
        self.batch.borrow_mut().dispatch(kernel, blocks, (count, more), groups);
        Ok(())
    }

    /// Enqueues a walk over tensors; `more` are the words before the layout.
    pub fn walk<const K: usize>(
        &self,
        walk: &Walk,
        blocks: &[&Arc<Block>],
        axes: &Axes<K>,
        more: &[u32],
    ) -> Result<()> {
        let mut words = more.to_vec();
        let vectors = walk.vectors(self.device, axes);
        let kernel = walk.kernel(self.device, axes, vectors)?;
        // Elements are numbered with 32 bits.
        let items = axes.elements()?;
        match vectors {
            Some(vectors) => self.launch_vectors(&kernel, blocks, (vectors, axes), words),
            None => {
                axes.layout(&mut words);
                self.launch(&kernel, blocks, items, &words)
            }
        }
    }

    /// Enqueues a kernel that uses vectors; `words` are the words before the layout.
    pub fn launch_vectors<const K: usize>(
        &self,
        kernel: &Arc<Kernel>,
        blocks: &[&Arc<Block>],
        (vectors, axes): (Vectors, &Axes<K>),
        mut words: Vec<u32>,
    ) -> Result<()> {
        let (count, groups) = vectors.words(axes, &mut words)?;
        let blocks = vectors.sorted(blocks);
        match groups {
            true => self.launch_groups(kernel, &blocks, count, &words),
            false => self.launch(kernel, &blocks, count, &words),
        }
    }

    /// Enqueues a copy of bytes.
    pub fn copy(&self, from: (&Arc<Block>, u64), to: (&Arc<Block>, u64), bytes: u64) {
        let (from, to) = ((from.0.clone(), from.1), (to.0.clone(), to.1));
        self.batch.borrow_mut().copy(from, to, bytes);
    }
}

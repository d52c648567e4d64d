//! A command buffer of the hal into which batches are recorded.

use super::groups::{Groups, Part};
use super::hazards::{Access, Hazards};
use super::{Action, Batch};
use crate::context::{Context, of_hal};
use crate::hal;
use crate::memory::Block;
use crate::shader::source::IMMEDIATES;
use std::num::NonZero;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use wgpu_hal::{BufferCopy, CommandEncoder as _, ComputePassDescriptor};
use wgpu_types::BufferUses;

/// Bytes of a word.
const WORD: u64 = 4;

/// The words of a batch: their block, and the offset in it.
pub(super) type Words = Option<(Arc<Block>, u64)>;

/// A command buffer that is being recorded.
pub(super) struct Recording {
    encoder: hal::CommandEncoder,
    hazards: Hazards,
    barriers: hal::Barriers,
    in_pass: bool,
    /// The last kernel that was set, by its address, and the index of the last group.
    kernel: usize,
    group: Option<usize>,
    accesses: Vec<Access>,
}

/// Returns the groups of a batch's kernels, in order. It also makes all checks that may fail.
pub(super) fn prepare(
    context: &Context,
    groups: &mut Groups,
    batch: &Batch,
    words: &Words,
) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(batch.actions.len());
    let mut parts = Vec::new();
    for action in &batch.actions {
        match action {
            Action::Copy { from: (from, from_offset), to: (to, to_offset), bytes } => {
                from.check(*from_offset, *bytes)?;
                to.check(*to_offset, *bytes)?;
                from.raw()?;
                to.raw()?;
            }
            Action::Timestamp(_) => {}
            Action::Dispatch { kernel, bindings, words: range, .. } => {
                parts.clear();
                let lacking = || Failure::new("a batch lacks its words");
                if range.is_some() {
                    let (block, _) = words.as_ref().ok_or_else(lacking)?;
                    parts.push(Part { block, offset: 0, bytes: None });
                }
                for binding in bindings {
                    let (block, start) = match &binding.place {
                        Some(block) => (block, 0),
                        None => {
                            words.as_ref().map(|(block, at)| (block, *at)).ok_or_else(lacking)?
                        }
                    };
                    parts.push(Part {
                        block,
                        offset: start + binding.offset,
                        bytes: binding.bytes,
                    });
                }
                if parts.len() != kernel.bindings() {
                    return Err(Failure::new("a kernel with another number of bindings"));
                }
                places.push(groups.get(context, &parts)?);
            }
        }
    }
    Ok(places)
}

impl Recording {
    /// Begins a command buffer. The end of the previous one orders it after all earlier work of the
    /// queue.
    pub fn begin(context: &Context, mut encoder: hal::CommandEncoder) -> Result<Self> {
        // SAFETY: the encoder is not recording.
        let begun = unsafe { encoder.begin_encoding(None) };
        begun.map_err(|why| of_hal("a list of commands", why))?;
        context.count_barrier();
        Ok(Self {
            encoder,
            barriers: hal::Barriers::default(),
            hazards: Hazards::default(),
            in_pass: false,
            kernel: 0,
            group: None,
            accesses: Vec::new(),
        })
    }

    /// Appends a batch, with the indices of its groups.
    pub fn add(
        &mut self,
        context: &Context,
        groups: &Groups,
        batch: &Batch,
        (words, places): (&Words, &[usize]),
    ) -> Result<()> {
        let mut places = places.iter();
        for action in &batch.actions {
            self.accesses.clear();
            accesses(action, &mut self.accesses);
            let hazard = self.hazards.add(&self.accesses);
            if hazard {
                context.count_barrier();
            }
            blocks_of(action).for_each(|block| block.mark_used());
            let uses = || uses(action, words);
            let copies = !matches!(action, Action::Dispatch { .. });
            self.barriers.before(&context.device, &mut self.encoder, (hazard, copies), uses)?;
            match action {
                Action::Copy { from, to, bytes } => self.copy(from, to, *bytes)?,
                Action::Timestamp(stamp) => {
                    self.leave_pass();
                    stamp.record(&mut self.encoder)?;
                }
                Action::Dispatch { kernel, words: range, groups: count, .. } => {
                    let place = places.next().copied().unwrap_or(usize::MAX);
                    let group = groups.at(place).ok_or_else(|| Failure::new("a group is gone"))?;
                    let layout = context.layout(kernel.bindings())?;
                    let start = words.as_ref().map_or(0, |(_, at)| at / WORD);
                    let address = Arc::as_ptr(kernel) as usize;
                    self.enter_pass();
                    // SAFETY: the encoder is recording; the kernel has this layout; the objects that are set live until
                    // the commands have completed.
                    unsafe {
                        if self.kernel != address {
                            self.encoder.set_compute_pipeline(kernel.pipeline());
                            self.kernel = address;
                        }
                        if self.group != Some(place) {
                            self.encoder.set_bind_group(&layout.pipeline, 0, group, &[]);
                            self.group = Some(place);
                        }
                        if let Some(range) = range {
                            let mut all = [0; IMMEDIATES];
                            all[0] = (start + range.start as u64) as u32;
                            let first = batch.words[range.clone()].iter();
                            all[2..].iter_mut().zip(first).for_each(|(to, word)| *to = *word);
                            self.encoder.set_immediates(&layout.pipeline, 0, &all);
                        }
                        self.encoder.dispatch_workgroups(*count);
                    }
                }
            }
        }
        Ok(())
    }

    fn enter_pass(&mut self) {
        if !self.in_pass {
            let descriptor = ComputePassDescriptor { label: None, timestamp_writes: None };
            // SAFETY: the encoder is recording, outside of a pass.
            unsafe { self.encoder.begin_compute_pass(&descriptor) };
            (self.in_pass, self.kernel, self.group) = (true, 0, None);
        }
    }

    fn leave_pass(&mut self) {
        if std::mem::take(&mut self.in_pass) {
            // SAFETY: the encoder is in a pass.
            unsafe { self.encoder.end_compute_pass() };
        }
    }

    fn copy(&mut self, from: &(Arc<Block>, u64), to: &(Arc<Block>, u64), bytes: u64) -> Result<()> {
        let Some(size) = wgpu_types::BufferSize::new(bytes) else { return Ok(()) };
        self.leave_pass();
        let region = BufferCopy { src_offset: from.1, dst_offset: to.1, size };
        let (from, to) = (from.0.raw()?, to.0.raw()?);
        // SAFETY: the ranges were checked; the buffers live until the commands have completed.
        unsafe { self.encoder.copy_buffer_to_buffer(from, to, std::iter::once(region)) };
        Ok(())
    }

    /// Ends the command buffer. The encoder can be reused when the list is complete.
    pub fn end(mut self, context: &Context) -> Result<(hal::CommandEncoder, hal::List)> {
        self.leave_pass();
        self.barriers.end(&context.device, &mut self.encoder);
        // SAFETY: the encoder is recording.
        match unsafe { hal::List::end(&mut self.encoder) } {
            Ok(commands) => Ok((self.encoder, commands)),
            Err(why) => {
                // SAFETY: ending the recording failed; nothing was submitted.
                unsafe { self.encoder.discard_encoding() };
                Err(of_hal("a list of commands", why))
            }
        }
    }

    /// Discards the recorded commands.
    pub fn discard(mut self) {
        self.leave_pass();
        // SAFETY: the encoder is recording; nothing was submitted.
        unsafe { self.encoder.discard_encoding() };
    }
}

/// The buffers that an action uses, each with its use.
fn uses(action: &Action, words: &Words) -> Result<Vec<(*const hal::Buffer, BufferUses)>> {
    let of = |block: &Block, how| block.raw().map(|buffer| (&raw const *buffer, how));
    match action {
        Action::Copy { from, to, .. } => {
            Ok(vec![of(&from.0, BufferUses::COPY_SRC)?, of(&to.0, BufferUses::COPY_DST)?])
        }
        Action::Timestamp(stamp) => Ok(vec![of(stamp.results(), BufferUses::COPY_DST)?]),
        Action::Dispatch { bindings, .. } => {
            let blocks = bindings.iter().filter_map(|binding| binding.place.as_deref());
            let blocks = blocks.chain(words.as_ref().map(|(block, _)| &**block));
            blocks.map(|block| of(block, BufferUses::STORAGE_READ_WRITE)).collect()
        }
    }
}

/// Returns the blocks that an action uses, except words.
fn blocks_of(action: &Action) -> impl Iterator<Item = &Arc<Block>> {
    let (copied, bound) = match action {
        Action::Copy { from, to, .. } => (Some([&from.0, &to.0]), &[][..]),
        Action::Timestamp(_) => (None, &[][..]),
        Action::Dispatch { bindings, .. } => (None, &bindings[..]),
    };
    let bound = bound.iter().filter_map(|binding| binding.place.as_ref());
    copied.into_iter().flatten().chain(bound)
}

/// Lists the memory that an action uses, except words, which the device never writes.
fn accesses(action: &Action, to: &mut Vec<Access>) {
    let access = |block: &Block, start: u64, bytes: Option<u64>, written| {
        let end = bytes.map_or(block.bytes(), |bytes| start + bytes);
        Access { block: block.id(), start, end, written }
    };
    match action {
        Action::Copy { from, to: target, bytes } => {
            to.push(access(&from.0, from.1, Some(*bytes), false));
            to.push(access(&target.0, target.1, Some(*bytes), true));
        }
        Action::Timestamp(_) => {}
        Action::Dispatch { kernel, bindings, words, .. } => {
            for (i, binding) in (usize::from(words.is_some())..).zip(bindings) {
                if let Some(block) = &binding.place {
                    let bytes = binding.bytes.map(NonZero::get);
                    to.push(access(block, binding.offset, bytes, kernel.writes(i)));
                }
            }
        }
    }
}

//! Batches as command buffers of the hal.

use super::{Action, Batch};
use crate::context::{Context, of_hal};
use crate::memory::Block;
use crate::vulkan;
use ultramarine_abi::helper::{Failure, Result};
use wgpu_hal::{
    BindGroupDescriptor, BindGroupEntry, BufferBinding, BufferCopy, CommandEncoder as _,
    ComputePassDescriptor, Device as _,
};

/// An encoded batch.
pub(super) struct Encoded {
    pub commands: vulkan::CommandBuffer,
    pub groups: Vec<vulkan::BindGroup>,
}

/// Encodes a batch whose words are in a block. After a failure the encoder is as it was.
pub(super) fn encode(
    context: &Context,
    encoder: &mut vulkan::CommandEncoder,
    batch: &Batch,
    words: Option<&Block>,
) -> Result<Encoded> {
    let mut groups = Vec::new();
    // SAFETY: the encoder is not recording; what is recorded is discarded or ended below.
    let begun = unsafe { encoder.begin_encoding(None) };
    begun.map_err(|why| of_hal("a list of commands", why))?;
    let recorded = record(context, encoder, batch, words, &mut groups);
    let ended = recorded.and_then(|()| {
        // SAFETY: it is recording.
        unsafe { encoder.end_encoding() }.map_err(|why| of_hal("a list of commands", why))
    });
    match ended {
        Ok(commands) => Ok(Encoded { commands, groups }),
        Err(failure) => {
            // SAFETY: it is recording, or what ending it has left; nothing of it was submitted.
            unsafe {
                encoder.discard_encoding();
                groups.into_iter().for_each(|group| context.device.destroy_bind_group(group));
            }
            Err(failure)
        }
    }
}

fn record(
    context: &Context,
    encoder: &mut vulkan::CommandEncoder,
    batch: &Batch,
    words: Option<&Block>,
    groups: &mut Vec<vulkan::BindGroup>,
) -> Result<()> {
    for action in &batch.actions {
        vulkan::barrier(&context.device, encoder);
        match action {
            Action::Copy { from, to, bytes } => copy(encoder, from, to, *bytes)?,
            Action::Dispatch { kernel, bindings, words: range, groups: count } => {
                let layout = context.layout(kernel.bindings())?;
                let first = range.as_ref().map(|_| (None, 0, None));
                let behind = bindings.iter().map(|b| (b.place.as_deref(), b.offset, b.bytes));
                let mut buffers = Vec::new();
                for (place, offset, bytes) in first.into_iter().chain(behind) {
                    let Some(place) = place.or(words) else {
                        return Err(Failure::new("a batch lacks its words"));
                    };
                    buffers.push(BufferBinding::new_unchecked(place.raw()?, offset, bytes));
                }
                let entry = |i| BindGroupEntry { binding: i, resource_index: i, count: 1 };
                let entries: Vec<_> = (0..buffers.len() as u32).map(entry).collect();
                let descriptor = BindGroupDescriptor {
                    label: None,
                    layout: &layout.group,
                    buffers: &buffers,
                    samplers: &[],
                    textures: &[],
                    entries: &entries,
                    acceleration_structures: &[],
                    external_textures: &[],
                };
                // SAFETY: the buffers are the device's, as many as the layout has, and live as long as the batch.
                let group = unsafe { context.device.create_bind_group(&descriptor) };
                let group = group.map_err(|why| of_hal("the tensors of a kernel", why))?;
                // SAFETY: the encoder is recording; the kernel has this layout; the group lives until the batch is done.
                unsafe {
                    let descriptor = ComputePassDescriptor { label: None, timestamp_writes: None };
                    encoder.begin_compute_pass(&descriptor);
                    encoder.set_compute_pipeline(kernel.pipeline());
                    encoder.set_bind_group(&layout.pipeline, 0, &group, &[]);
                    if let Some(range) = range {
                        encoder.set_immediates(&layout.pipeline, 0, &[range.start as u32, 0]);
                    }
                    encoder.dispatch_workgroups(*count);
                    encoder.end_compute_pass();
                }
                groups.push(group);
            }
        }
    }
    vulkan::barrier(&context.device, encoder);
    Ok(())
}

fn copy(
    encoder: &mut vulkan::CommandEncoder,
    (from, from_offset): &(std::sync::Arc<Block>, u64),
    (to, to_offset): &(std::sync::Arc<Block>, u64),
    bytes: u64,
) -> Result<()> {
    let Some(size) = wgpu_types::BufferSize::new(bytes) else { return Ok(()) };
    from.check(*from_offset, bytes)?;
    to.check(*to_offset, bytes)?;
    let region = BufferCopy { src_offset: *from_offset, dst_offset: *to_offset, size };
    // SAFETY: the ranges are in the buffers, which live until the batch is done.
    unsafe { encoder.copy_buffer_to_buffer(from.raw()?, to.raw()?, std::iter::once(region)) };
    Ok(())
}

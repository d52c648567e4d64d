//! A cache of bind groups for later commands with the same buffers. Drivers take longer to make a
//! bind group than to record the rest of a command, and the arrays of a program often get the same
//! memory again.

use crate::context::{Context, of_hal};
use crate::hal;
use crate::memory::Block;
use std::collections::HashMap;
use std::num::NonZero;
use ultramarine_abi::helper::Result;
use wgpu_hal::{BindGroupDescriptor, BindGroupEntry, BufferBinding, Device as _};

/// Limit on the cached groups.
const MOST: usize = 4096;
/// Number of buffers that may be destroyed until the groups with these buffers are destroyed.
const DESTROYED: u64 = 256;

/// A buffer, as bound to a kernel.
pub(super) struct Part<'a> {
    pub block: &'a Block,
    pub offset: u64,
    /// `None` for all up to the buffer's end.
    pub bytes: Option<NonZero<u64>>,
}

/// The groups of a device.
#[derive(Default)]
pub(super) struct Groups {
    /// Indices of groups, by the id, offset and size of each buffer.
    places: HashMap<Box<[u64]>, usize>,
    groups: Vec<hal::BindGroup>,
    key: Vec<u64>,
    /// Number of destroyed buffers when the groups were last cleared.
    destroyed: u64,
}

impl Groups {
    /// Returns the index of the group with these buffers.
    pub fn get(&mut self, context: &Context, parts: &[Part<'_>]) -> Result<usize> {
        self.key.clear();
        for Part { block, offset, bytes } in parts {
            self.key.extend([block.id(), *offset, bytes.map_or(0, NonZero::get)]);
        }
        if let Some(place) = self.places.get(&self.key[..]) {
            return Ok(*place);
        }
        let group = make(context, parts)?;
        let place = self.groups.len();
        self.groups.push(group);
        self.places.insert(self.key.as_slice().into(), place);
        Ok(place)
    }

    /// Returns the group with an index.
    pub fn at(&self, place: usize) -> Option<&hal::BindGroup> {
        self.groups.get(place)
    }

    /// Removes and returns all groups if there are too many, or too many with destroyed buffers.
    /// They may be in use.
    pub fn overflow(&mut self, context: &Context) -> Vec<hal::BindGroup> {
        let destroyed = context.destroyed();
        if self.groups.len() < MOST && destroyed - self.destroyed < DESTROYED {
            return Vec::new();
        }
        self.destroyed = destroyed;
        self.take()
    }

    /// Removes and returns all groups. They may be in use.
    pub fn take(&mut self) -> Vec<hal::BindGroup> {
        self.places.clear();
        core::mem::take(&mut self.groups)
    }
}

fn make(context: &Context, parts: &[Part<'_>]) -> Result<hal::BindGroup> {
    let layout = context.layout(parts.len())?;
    let mut buffers = Vec::with_capacity(parts.len());
    for Part { block, offset, bytes } in parts {
        buffers.push(BufferBinding::new_unchecked(block.raw()?, *offset, *bytes));
    }
    let entry = |i| BindGroupEntry { binding: i, resource_index: i, count: 1 };
    let entries: Vec<_> = (0..parts.len() as u32).map(entry).collect();
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
    // SAFETY: the buffers belong to the device, and there are as many as the layout requires. Commands that
    // use the group hold them.
    let group = unsafe { context.device.create_bind_group(&descriptor) };
    group.map_err(|why| of_hal("the tensors of a kernel", why))
}

//! The layouts of bind groups and pipelines, by the number of bindings. All bindings are storage buffers. In
//! kernels of operations, binding 0 holds the commands' words, and the bindings after it are tensors.

use super::{lock, of_hal};
use crate::hal;
use crate::shader::source::IMMEDIATES;
use std::sync::{Mutex, OnceLock};
use ultramarine_abi::helper::{Failure, Result};
use wgpu_hal::{
    BindGroupLayoutDescriptor, BindGroupLayoutFlags, Device as _, PipelineLayoutDescriptor,
    PipelineLayoutFlags,
};
use wgpu_types::{BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages};

/// Maximum number of bindings of a kernel.
pub const BINDINGS: usize = 31;

/// The layouts of all kernels with one number of bindings.
pub struct Layout {
    /// The layout of the bind group.
    pub group: hal::BindGroupLayout,
    /// The layout of the pipeline.
    pub pipeline: hal::PipelineLayout,
}

/// The layouts by number of bindings, each made at first use.
#[derive(Default)]
pub(super) struct Layouts {
    made: [OnceLock<Layout>; BINDINGS + 1],
    making: Mutex<()>,
}

impl Layouts {
    pub(super) fn get(&self, device: &hal::Device, bindings: usize) -> Result<&Layout> {
        let Some(slot) = self.made.get(bindings) else {
            return Err(Failure::new(format!("a kernel with {bindings} bindings")));
        };
        if let Some(layout) = slot.get() {
            return Ok(layout);
        }
        let _one = lock(&self.making);
        if slot.get().is_none() {
            let made = make(device, bindings)?;
            return Ok(slot.get_or_init(|| made));
        }
        slot.get().ok_or_else(|| Failure::new("a layout vanished"))
    }

    /// Destroys the layouts, because the hal panics if a device is dropped before them.
    pub(super) fn destroy(&mut self, device: &hal::Device) {
        for layout in self.made.iter_mut().filter_map(OnceLock::take) {
            // SAFETY: every pipeline and bind group holds the context, so none of them exist any
            // more.
            unsafe {
                device.destroy_pipeline_layout(layout.pipeline);
                device.destroy_bind_group_layout(layout.group);
            }
        }
    }
}

fn make(device: &hal::Device, bindings: usize) -> Result<Layout> {
    let entry = |binding: u32| BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty: BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = (0..bindings as u32).map(entry).collect();
    let descriptor = BindGroupLayoutDescriptor {
        label: None,
        flags: BindGroupLayoutFlags::empty(),
        entries: &entries,
    };
    // SAFETY: the descriptor is complete; the device supports that many storage buffers.
    let group = unsafe { device.create_bind_group_layout(&descriptor) };
    let group = group.map_err(|why| of_hal("the layout of a kernel", why))?;
    let descriptor = PipelineLayoutDescriptor {
        label: None,
        // Used by DirectX 12 only: a constant with the number of workgroups.
        flags: PipelineLayoutFlags::NUM_WORK_GROUPS,
        bind_group_layouts: &[Some(&group)],
        immediate_size: 4 * IMMEDIATES as u32,
    };
    // SAFETY: as above.
    match unsafe { device.create_pipeline_layout(&descriptor) } {
        Ok(pipeline) => Ok(Layout { group, pipeline }),
        Err(why) => {
            // SAFETY: nothing uses the layout.
            unsafe { device.destroy_bind_group_layout(group) };
            Err(of_hal("the layout of a kernel", why))
        }
    }
}

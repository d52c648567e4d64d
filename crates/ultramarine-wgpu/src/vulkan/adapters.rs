//! The adapters that the loader lists, in the order in which they become devices.

use super::{Api, Properties};
use wgpu_hal::{Instance as _, InstanceDescriptor};
use wgpu_types::{DeviceType, InstanceFlags};

/// Set to 1, it has adapters that run on the processor listed behind GPUs.
pub const SOFTWARE: &str = "ULTRAMARINE_VULKAN_SOFTWARE";

/// An adapter that can be opened.
pub struct Found {
    pub(super) exposed: wgpu_hal::ExposedAdapter<Api>,
    /// Its properties.
    pub properties: Properties,
}

/// The adapters that become devices. The hal's adapters keep its instance alive.
pub struct Adapters {
    /// In the order of devices: discrete before integrated, software last.
    pub list: Vec<Found>,
}

impl Adapters {
    /// Asks the loader. The error says what to install.
    pub fn enumerate() -> Result<Self, String> {
        let descriptor = InstanceDescriptor {
            name: "ultramarine",
            flags: InstanceFlags::empty(),
            memory_budget_thresholds: Default::default(),
            backend_options: Default::default(),
            telemetry: None,
            display: None,
        };
        // SAFETY: no other requirement than that of a sound Vulkan loader.
        let instance = unsafe { <Api as wgpu_hal::Api>::Instance::init(&descriptor) };
        let instance = instance.map_err(|why| {
            format!(
                "Vulkan does not start ({why}). Install the loader and the GPU's driver (Debian: libvulkan1 and \
                 mesa-vulkan-drivers, or NVIDIA's driver)"
            )
        })?;
        // SAFETY: no surface is asked for.
        let exposed = unsafe { instance.enumerate_adapters(None) };
        if exposed.is_empty() {
            return Err("Vulkan's loader finds no device. Install the GPU's driver (Debian: \
                        mesa-vulkan-drivers, or NVIDIA's driver); in a container, start it with access to the GPU"
                .to_owned());
        }
        let software = std::env::var(SOFTWARE).is_ok_and(|value| value.trim() == "1");
        let (mut list, mut refused) = (Vec::new(), Vec::new());
        for exposed in exposed {
            let shared = exposed.adapter.shared_instance();
            let raw = exposed.adapter.raw_physical_device();
            match Properties::of(shared.raw_instance(), raw, &exposed.info) {
                Ok(properties) => list.push(Found { exposed, properties }),
                Err(why) => refused.push(why),
            }
        }
        if list.is_empty() {
            return Err(refused.join("; "));
        }
        if !software && list.iter().any(|found| !found.properties.is_software()) {
            list.retain(|found| !found.properties.is_software());
        }
        list.sort_by_key(|found| rank(found.properties.kind));
        Ok(Self { list })
    }
}

/// The place of a kind of adapters among the others.
fn rank(kind: DeviceType) -> u32 {
    match kind {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

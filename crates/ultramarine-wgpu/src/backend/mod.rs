//! The backend: its score, the adapters that become devices, and the description of each.
//! `device.rs` has the functions of a single device.

mod device;

use crate::dtype::{self, Dtype};
use crate::hal::Adapters;
use crate::launch::Device;
use crate::ops::fused;
use core::ffi::CStr;
use ultramarine_abi::helper::{Backend, Failure, Host, InterfaceRef, Result, Score};
use ultramarine_abi::{DeviceIdentity, DeviceInfo, device_flag, identity, inline_text};

/// The score of a machine with a GPU. It is lower than that of a backend for the GPU's native
/// interface.
const SCORE_GPU: u32 = 50;
/// The score of a machine whose adapters all run on the CPU. The built-in CPU kernels are faster.
const SCORE_SOFTWARE: u32 = 5;
/// Alignment of buffers that every device guarantees.
const ALIGNMENT: u32 = 16;

/// The backend: the adapters that become devices. A [`Device`] is one of them, opened.
/// `export_backend!` in `lib.rs` generates the plugin's entry points from this type.
///
/// [`Device`]: crate::launch::Device
pub struct Wgpu {
    adapters: Adapters,
}

/// The score, and the identities of the adapters.
fn score_of(adapters: &Adapters) -> Score {
    let software = adapters.list.iter().all(|found| found.properties.is_software());
    let score = if software { SCORE_SOFTWARE } else { SCORE_GPU };
    let mut score = Score::new(score, adapters.list.len() as u32);
    score.devices = adapters.list.iter().map(identity_of).collect();
    score
}

fn identity_of(found: &crate::hal::Found) -> DeviceIdentity {
    let properties = &found.properties;
    let [pci_domain, pci_bus, pci_device, pci_function] = properties.pci.unwrap_or_default();
    let pci = if properties.pci.is_some() { identity::PCI } else { 0 };
    let uuid = if properties.uuid.is_some() { identity::UUID } else { 0 };
    DeviceIdentity {
        size: size_of::<DeviceIdentity>() as u32,
        known: uuid | pci,
        uuid: properties.uuid.unwrap_or_default(),
        pci_domain,
        pci_bus,
        pci_device,
        pci_function,
        memory: properties.memory,
        name: inline_text(&properties.name),
    }
}

impl Backend for Wgpu {
    type Device = Device;

    fn score() -> Score {
        match Adapters::enumerate() {
            Ok(adapters) => score_of(&adapters),
            Err(why) => Score::cannot(why),
        }
    }

    fn new(_host: Host) -> Result<Self> {
        Ok(Self { adapters: Adapters::enumerate().map_err(Failure::new)? })
    }

    fn device_count(&self) -> u32 {
        self.adapters.list.len() as u32
    }

    fn device_info(&self, index: u32, info: &mut DeviceInfo) -> Result<()> {
        let found = &self.adapters.list[index as usize];
        let properties = &found.properties;
        info.dtypes_storage = dtype::MASK;
        info.dtypes_arithmetic = match properties.float64 {
            true => dtype::MASK,
            false => dtype::MASK & !Dtype::Float64.bit(),
        };
        info.dtypes_accumulate = Dtype::Float16.bit() | Dtype::Bfloat16.bit();
        info.fused_max_instructions = fused::INSTRUCTIONS as u32;
        info.fused_max_inputs = fused::most_tensors(properties) as u32 - 1;
        info.memory = properties.memory;
        info.flags = device_flag::UPLOADS_IN_ORDER | device_flag::DETERMINISTIC;
        if !properties.keeps_subnormals {
            info.flags |= device_flag::FLUSHES_SUBNORMALS;
        }
        info.kernel_languages = inline_text(crate::hal::LANGUAGES);
        info.alignment = ALIGNMENT;
        info.max_buffer = properties.max_buffer;
        info.name = inline_text(&format!("{} ({})", properties.name, properties.driver));
        info.identity = identity_of(found);
        Ok(())
    }

    fn interface(&self, id: &CStr) -> Option<InterfaceRef> {
        crate::interfaces::find(id)
    }

    fn open(&self, index: u32) -> Result<Device> {
        Device::open(&self.adapters.list[index as usize])
    }
}

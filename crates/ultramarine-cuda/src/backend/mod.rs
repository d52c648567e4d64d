//! The backend: its score, the GPUs that it finds, and the description of each GPU. `discover.rs`
//! counts GPUs without starting the driver; `device.rs` has the functions of a single device.

mod device;
mod discover;

use crate::context::{DeviceProperties, failure};
use crate::launch::{Device, Dtype};
use crate::sys::driver;
use core::ffi::CStr;
use ultramarine_abi::helper::{Backend, Failure, Host, InterfaceRef, Result, Score, dtype};
use ultramarine_abi::{DeviceInfo, device_flag, identity, inline_text};

/// The backend: the host's functions and the properties of all GPUs. A [`Device`] is one of these
/// GPUs, opened. `export_backend!` in `lib.rs` generates the plugin's entry points from this type.
///
/// [`Device`]: crate::launch::Device
pub struct Cuda {
    host: Host,
    devices: Vec<DeviceProperties>,
}

impl Backend for Cuda {
    type Device = Device;

    fn score() -> Score {
        discover::score()
    }

    fn new(host: Host) -> Result<Self> {
        let driver = discover::driver().map_err(Failure::new)?;
        // SAFETY: flags are 0, as the driver requires.
        let code = unsafe { (driver.init)(0) };
        if code == driver::code::NO_DEVICE {
            return Err(Failure::new(
                "NVIDIA's driver finds no GPU for this process. Check CUDA_VISIBLE_DEVICES and the container's access to GPUs",
            ));
        }
        failure::check(driver, "cuInit", code)?;
        let mut count = 0;
        // SAFETY: the output pointer is valid.
        failure::check(driver, "cuDeviceGetCount", unsafe { (driver.device_count)(&mut count) })?;
        let devices = (0..count).map(|i| DeviceProperties::of(driver, i)).collect::<Result<_>>()?;
        Ok(Self { host, devices })
    }

    fn device_count(&self) -> u32 {
        self.devices.len() as u32
    }

    fn device_info(&self, index: u32, info: &mut DeviceInfo) -> Result<()> {
        let properties = &self.devices[index as usize];
        info.dtypes_storage = dtype::MASK;
        info.dtypes_arithmetic = dtype::MASK;
        info.dtypes_accumulate = Dtype::Float16.bit() | Dtype::Bfloat16.bit();
        info.fused_max_instructions = crate::ops::FUSED_INSTRUCTIONS;
        info.fused_max_inputs = crate::ops::FUSED_INPUTS;
        info.memory = properties.memory;
        // The backend's own kernels add in a fixed order, and from libraries only deterministic
        // algorithms are used.
        info.flags = device_flag::UPLOADS_IN_ORDER | device_flag::DETERMINISTIC;
        info.alignment = crate::memory::ALIGNMENT as u32;
        info.kernel_languages = inline_text("cuda-c cubin ptx");
        info.name = inline_text(&properties.describe());
        info.identity.known = identity::UUID | identity::PCI;
        info.identity.uuid = properties.uuid;
        [info.identity.pci_domain, info.identity.pci_bus, info.identity.pci_device] =
            properties.pci;
        info.identity.memory = properties.memory;
        info.identity.name = inline_text(&properties.name);
        Ok(())
    }

    fn open(&self, index: u32) -> Result<Device> {
        crate::program::background::watch_main_thread();
        Device::open(self.host, self.devices[index as usize].clone())
    }

    fn interface(&self, id: &CStr) -> Option<InterfaceRef> {
        crate::interfaces::find(id)
    }
}

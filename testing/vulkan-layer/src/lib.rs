//! A Vulkan layer between loader and driver that does what is hard to have of a real driver, for tests of the Vulkan
//! backend. It is no driver: what it lets through runs on the one below.
//!
//! `VK_LAYER_PATH` names a folder with a manifest of the layer [`NAME`] (`manifest.json` here shows it),
//! `VK_INSTANCE_LAYERS` its name, and `ULTRAMARINE_TEST_LAYER` what it does, separated by commas:
//!
//! * `lose=N`: the Nth submission, and all that comes later, says that the device is lost;
//! * `range=BYTES`: maxStorageBufferRange and maxMemoryAllocationSize are said to be that;
//! * `memory=BYTES`: larger sums of memory are refused, whatever the driver has;
//! * `allocations=N`: more pieces of memory at a time are refused, as maxMemoryAllocationCount has it;
//! * `twice`: each physical device is listed twice, as two of one kind are;
//! * `idle`: kernels and barriers do nothing, so that the time is the host's;
//! * `count`: says on the standard error, when a device is destroyed, how often what was called.

mod chain;
mod device;
mod instance;
mod settings;

use ash::vk;
use core::ffi::{c_char, c_void};

/// The layer's name.
pub const NAME: &str = "VK_LAYER_ULTRAMARINE_test";

/// `VkNegotiateLayerInterface`, which ash does not have.
#[repr(C)]
pub struct Negotiation {
    kind: i32,
    next: *mut c_void,
    version: u32,
    instance: Option<GetInstance>,
    device: Option<GetDevice>,
    physical_device: Option<GetInstance>,
}

type GetInstance = unsafe extern "system" fn(vk::Instance, *const c_char) -> vk::PFN_vkVoidFunction;
type GetDevice = unsafe extern "system" fn(vk::Device, *const c_char) -> vk::PFN_vkVoidFunction;

/// The version of the interface between loader and layers.
const VERSION: u32 = 2;

/// The loader's first call.
///
/// # Safety
/// As the loader has it: the struct is writable.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    negotiation: *mut Negotiation,
) -> vk::Result {
    // SAFETY: by the loader's contract.
    let Some(negotiation) = (unsafe { negotiation.as_mut() }) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    negotiation.version = negotiation.version.min(VERSION);
    negotiation.instance = Some(instance::get);
    negotiation.device = Some(device::get);
    negotiation.physical_device = None;
    vk::Result::SUCCESS
}

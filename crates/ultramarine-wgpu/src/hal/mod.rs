//! The part of wgpu's hal that this build uses, by target: Metal on Apple's systems, DirectX 12 on Windows, Vulkan
//! elsewhere. Each of them has a module with everything that is specific to it, under the same names. The rest of
//! the crate uses the hal's types through the aliases here.
//!
//! Such a module has:
//!
//! * `Api`; the backend's `NAME`; DLPack's `DEVICE_TYPE`; `LANGUAGES` of users' kernels; `LIMIT`, the name of the limit on
//!   buffer sizes;
//! * `exposed`, the adapters that the system reports; `properties` of an adapter; `open`, which makes
//!   its device;
//! * `create_buffer`; `free_memory`; `Barriers` between the actions of a list; `COHERENT`, which is true if
//!   workgroups see what other workgroups of their kernel wrote;
//! * `List`, recorded commands for the queue. Metal and DirectX use the one in `list.rs`;
//! * `Code`, a kernel in the form that the driver takes, which can be stored as bytes; `compiled`, a user's compiled kernel, if
//!   one of the languages is a compiled one.

mod adapters;
#[cfg(any(test, target_vendor = "apple"))]
pub mod foreign;
#[cfg(any(windows, target_vendor = "apple"))]
mod list;
mod properties;

#[cfg(windows)]
mod dx12;
#[cfg(target_vendor = "apple")]
mod metal;
#[cfg(not(any(windows, target_vendor = "apple")))]
mod vulkan;

#[cfg(windows)]
use dx12 as platform;
#[cfg(target_vendor = "apple")]
use metal as platform;
#[cfg(not(any(windows, target_vendor = "apple")))]
use vulkan as platform;

use std::collections::BTreeMap;

pub use adapters::{Adapters, Found};
#[cfg(any(windows, target_vendor = "apple"))]
pub use list::List;
pub use platform::{
    Api, Barriers, COHERENT, Code, DEVICE_TYPE, LANGUAGES, LIMIT, NAME, create_buffer, free_memory,
    open,
};
#[cfg(not(any(windows, target_vendor = "apple")))]
pub use platform::{List, compiled};
#[cfg(target_vendor = "apple")]
pub use platform::{msl, take, with_group};
pub use properties::{Properties, Units};

/// A device.
pub type Device = <Api as wgpu_hal::Api>::Device;
/// A queue.
pub type Queue = <Api as wgpu_hal::Api>::Queue;
/// A fence whose values grow.
pub type Fence = <Api as wgpu_hal::Api>::Fence;
/// A buffer.
pub type Buffer = <Api as wgpu_hal::Api>::Buffer;
/// A recorder of commands.
pub type CommandEncoder = <Api as wgpu_hal::Api>::CommandEncoder;
/// Queries for timestamps.
pub type QuerySet = <Api as wgpu_hal::Api>::QuerySet;
/// Recorded commands.
pub type CommandBuffer = <Api as wgpu_hal::Api>::CommandBuffer;
/// Buffers bound to a kernel.
pub type BindGroup = <Api as wgpu_hal::Api>::BindGroup;
/// The shape of bind groups.
pub type BindGroupLayout = <Api as wgpu_hal::Api>::BindGroupLayout;
/// The parameters of pipelines.
pub type PipelineLayout = <Api as wgpu_hal::Api>::PipelineLayout;
/// A compiled kernel.
pub type ComputePipeline = <Api as wgpu_hal::Api>::ComputePipeline;

/// An adapter that the system reports.
type Exposed = wgpu_hal::ExposedAdapter<Api>;

/// An open device of the hal with its one queue.
pub struct Opened {
    /// The device.
    pub device: Device,
    /// Its queue.
    pub queue: Queue,
}

/// A newly made buffer of the hal; a [`Block`](crate::memory::Block) owns it.
pub struct Made {
    /// The buffer.
    pub buffer: Buffer,
    /// Its address for other libraries, which is the `MTLBuffer`'s; 0 if they cannot use it.
    pub handle: u64,
}

/// A user's kernel in compiled form, with the information that a launch needs.
pub struct Compiled {
    /// The code for the driver.
    pub code: Code,
    /// Invocations of a workgroup.
    pub group: [u32; 3],
    /// Its bindings by number: true for a scalar (a uniform), false for a tensor.
    pub uniform: BTreeMap<u32, bool>,
}

/// Compiled code is not supported by this hal.
///
/// # Errors
/// Always.
#[cfg(any(windows, target_vendor = "apple"))]
pub fn compiled(_: &[u8], _: &str, _: &Properties) -> Result<Compiled, String> {
    Err(format!("{NAME} takes no compiled kernels"))
}

/// A user's kernel in the Metal Shading Language, and the number of its bindings. Other systems do not
/// support this language.
///
/// # Errors
/// Always.
#[cfg(not(target_vendor = "apple"))]
pub fn msl(_: &str, _: &str) -> Result<(Code, usize), String> {
    Err(format!("{NAME} takes no kernels in the Metal Shading Language"))
}

/// The same kernel for a given workgroup size, which a Metal source does not specify.
#[cfg(not(target_vendor = "apple"))]
pub fn with_group(code: &Code, _: [u32; 3]) -> Code {
    code.clone()
}

/// The kind of memory that a buffer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the device is fastest; the host cannot access it.
    Device,
    /// Mapped for the host to write, if possible in the device's own memory. Reads by the host may be
    /// very slow.
    Upload,
    /// Mapped for the host to read, in memory that the host caches.
    Download,
}

/// The environment variable of a setting, for example ULTRAMARINE_VULKAN_DEVICES for Vulkan's `DEVICES`.
pub fn variable(what: &str) -> String {
    format!("ULTRAMARINE_{}_{what}", NAME.to_uppercase())
}

//! The hal that this build is for, by target: Metal on Apple's systems, DirectX 12 on Windows, Vulkan elsewhere. One
//! module for each has all that is its own, under the same names. The rest of the crate names the hal's types by the
//! aliases here.
//!
//! Such a module has:
//!
//! * `Api`, `NAME` of the backend, DLPack's `DEVICE_TYPE`, `LANGUAGES` of users' kernels, `LIMIT`, the name of the limit of
//!   buffers;
//! * `exposed`, the adapters that the system lists, and `properties` of one; `open`, the device of one;
//! * `create_buffer`, `free_memory`, and `Barriers` between the actions of a list; `COHERENT`, where workgroups
//!   see what others of their kernel wrote;
//! * `List`, recorded commands on their way to the queue: of Metal and DirectX that in `list.rs`;
//! * `Code`, a kernel as the driver takes it, and as bytes to keep it; `compiled`, that of a user's compiled code, where one of
//!   the languages is such.

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
/// A fence with values that grow.
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

/// An adapter that the system lists.
type Exposed = wgpu_hal::ExposedAdapter<Api>;

/// An open device of the hal with its one queue.
pub struct Opened {
    /// The device.
    pub device: Device,
    /// Its queue.
    pub queue: Queue,
}

/// A new buffer of the hal; [`Block`](crate::memory::Block) owns it.
pub struct Made {
    /// The buffer.
    pub buffer: Buffer,
    /// Its address for other libraries, the `MTLBuffer`'s; 0 where they take none.
    pub handle: u64,
}

/// A user's kernel in compiled form, with what a launch needs to know of it.
pub struct Compiled {
    /// For the driver.
    pub code: Code,
    /// Invocations of a workgroup.
    pub group: [u32; 3],
    /// Its bindings by their numbers; true for a number of its own, false for a tensor.
    pub uniform: BTreeMap<u32, bool>,
}

/// No language here is one of compiled code.
///
/// # Errors
/// Always.
#[cfg(any(windows, target_vendor = "apple"))]
pub fn compiled(_: &[u8], _: &str, _: &Properties) -> Result<Compiled, String> {
    Err(format!("{NAME} takes no compiled kernels"))
}

/// A user's kernel in the Metal Shading Language, and the number of its bindings. Other systems have none.
///
/// # Errors
/// Always.
#[cfg(not(target_vendor = "apple"))]
pub fn msl(_: &str, _: &str) -> Result<(Code, usize), String> {
    Err(format!("{NAME} takes no kernels in the Metal Shading Language"))
}

/// Likewise with a size of workgroups, which such a kernel's source does not say.
#[cfg(not(target_vendor = "apple"))]
pub fn with_group(code: &Code, _: [u32; 3]) -> Code {
    code.clone()
}

/// The kind of memory that a buffer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the device is fastest; the host has no address of it.
    Device,
    /// Mapped for the host to write, if possible in memory of the device's own. Reads may be very slow.
    Upload,
    /// Mapped for the host to read, in memory that its caches hold.
    Download,
}

/// A setting of this backend's: the environment variable, for `DEVICES` of Vulkan ULTRAMARINE_VULKAN_DEVICES.
pub fn variable(what: &str) -> String {
    format!("ULTRAMARINE_{}_{what}", NAME.to_uppercase())
}

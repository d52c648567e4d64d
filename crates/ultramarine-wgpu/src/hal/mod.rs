//! The hal of this build, which depends on the target: Metal on Apple's systems, DirectX 12 on
//! Windows, Vulkan elsewhere. There is a module for each hal, with the same names in each. The rest
//! of the crate uses the hal's types by the aliases here.
//!
//! Such a module has:
//!
//! * `Api`; the `NAME` of the backend; DLPack's `DEVICE_TYPE`; the `LANGUAGES` of users' kernels;
//! `LIMIT`, the name of the limit on buffers * `exposed`, which lists the system's adapters;
//! `properties` of an adapter; `open`, which opens its device * `create_buffer`; `free_memory`;
//! `Barriers` between the actions of a list; `COHERENT`, true if workgroups see the writes of other
//! workgroups of their kernel * `List`: recorded commands on their way to the queue; Metal and
//! DirectX use the one in `list.rs` * `Code`: a kernel for the driver, which can be stored as
//! bytes; `compiled`: a user's compiled code, if the hal has a language for it

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
/// A fence whose value increases.
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
    /// Its address for other libraries, which is that of the `MTLBuffer`. 0 if other libraries
    /// cannot use it.
    pub handle: u64,
}

/// A user's kernel in compiled form, with the data that a launch needs.
pub struct Compiled {
    /// For the driver.
    pub code: Code,
    /// Invocations of a workgroup.
    pub group: [u32; 3],
    /// Its bindings by their numbers. The value is true for a scalar, and false for a tensor.
    pub uniform: BTreeMap<u32, bool>,
}

/// On this hal, there is no language for compiled code.
///
/// # Errors
/// Always.
#[cfg(any(windows, target_vendor = "apple"))]
pub fn compiled(_: &[u8], _: &str, _: &Properties) -> Result<Compiled, String> {
    Err(format!("{NAME} takes no compiled kernels"))
}

/// A user's kernel in the Metal Shading Language, and the number of its bindings. Other hals do not
/// support this language.
///
/// # Errors
/// Always.
#[cfg(not(target_vendor = "apple"))]
pub fn msl(_: &str, _: &str) -> Result<(Code, usize), String> {
    Err(format!("{NAME} takes no kernels in the Metal Shading Language"))
}

/// Sets the size of workgroups, which the source of a Metal kernel does not contain.
#[cfg(not(target_vendor = "apple"))]
pub fn with_group(code: &Code, _: [u32; 3]) -> Code {
    code.clone()
}

/// The kind of memory that a buffer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the device is fastest. The host cannot access it.
    Device,
    /// Mapped for writing by the host, in the device's memory if possible. Reads may be very slow.
    Upload,
    /// Mapped for reading by the host, in cached memory.
    Download,
}

/// Returns the name of the environment variable for a setting, for example
/// ULTRAMARINE_VULKAN_DEVICES for `DEVICES` of Vulkan.
pub fn variable(what: &str) -> String {
    format!("ULTRAMARINE_{}_{what}", NAME.to_uppercase())
}

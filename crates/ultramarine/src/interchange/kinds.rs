//! DLPack's device types by number: their names, the processors that can access their memory, the meaning of a tensor's
//! `data`, and their streams. In the core, only this file and the runtime's table of packages may name backends.

use crate::error::{Error, Result};
use ultramarine_abi::{dlpack::device_type, interface::memory::kind};

/// The processors that can access memory of a type of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    /// The host, as its own memory.
    Host,
    /// The host, and devices of the given type.
    Both(i32),
    /// Only devices of that type.
    Device,
}

/// Returns the processors that can access memory of a type of device.
#[inline]
pub(super) fn visibility(device_type: i32) -> Visibility {
    match device_type {
        // The host accesses pinned memory as its own. Its device number is that of the device that pinned it.
        device_type::CPU | device_type::CUDA_HOST | device_type::ROCM_HOST => Visibility::Host,
        device_type::CUDA_MANAGED => Visibility::Both(device_type::CUDA),
        _ => Visibility::Device,
    }
}

/// Name of a device type in other libraries, and the backend that serves it.
pub(super) fn names(device_type: i32) -> (&'static str, Option<&'static str>) {
    use device_type::*;
    match device_type {
        CPU => ("CPU", Some("cpu")),
        CUDA | CUDA_HOST | CUDA_MANAGED => ("CUDA", Some("cuda")),
        OPENCL => ("OpenCL", Some("opencl")),
        VULKAN => ("Vulkan", Some("vulkan")),
        METAL => ("Metal", Some("metal")),
        VPI => ("VPI", None),
        ROCM | ROCM_HOST => ("ROCm", Some("rocm")),
        EXT_DEV => ("extension device", None),
        ONE_API => ("oneAPI", Some("oneapi")),
        WEBGPU => ("WebGPU", Some("webgpu")),
        HEXAGON => ("Hexagon", None),
        MAIA => ("MAIA", None),
        TRN => ("Trainium", None),
        _ => ("unknown device", None),
    }
}

/// Name of a device type in messages.
pub(super) fn name_of(device_type: i32) -> &'static str {
    names(device_type).0
}

/// The kind of memory that a tensor's `data` is on devices of a type.
///
/// # Errors
/// [`Error::BufferDevice`] if the contract has no kind for it.
pub(super) fn kind_of(op: &str, device_type: i32) -> Result<u32> {
    use device_type::*;
    match device_type {
        CPU | CUDA_HOST | ROCM_HOST => Ok(kind::HOST),
        CUDA | CUDA_MANAGED | ROCM | ONE_API | EXT_DEV => Ok(kind::DEVICE_POINTER),
        METAL => Ok(kind::MTL_BUFFER),
        OPENCL => Ok(kind::CL_MEM),
        _ => Err(Error::buffer_device(
            op,
            format!(
                "Memory of {} devices cannot be exchanged between libraries. Copy it to the CPU first.",
                name_of(device_type)
            ),
        )),
    }
}

/// Returns true if a tensor's `data` is an address, to which an offset can be added, rather than a handle.
pub(super) fn is_address(kind: u32) -> bool {
    matches!(kind, kind::HOST | kind::DEVICE_POINTER)
}

/// The consumer's stream, which waits for the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// No stream: the host waits.
    Host,
    /// No stream, and nothing waits.
    Nobody,
    /// This stream, in the device's numbering.
    Stream(u64),
}

/// Interprets a consumer's `stream` argument for tensors on a type of device.
///
/// # Errors
/// [`Error::Value`] for an invalid stream number.
pub(super) fn waiting(device_type: i32, stream: Option<isize>) -> Result<Waiting> {
    use device_type::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED, ROCM, ROCM_HOST};
    let wrong = |why: &str| {
        let name = name_of(device_type);
        let stream = stream.unwrap_or_default();
        Err(Error::value("__dlpack__", format!("stream is {stream} for {name}. {why}")))
    };
    match (device_type, stream) {
        (CPU, None) => Ok(Waiting::Host),
        (CPU, Some(_)) => Err(Error::value(
            "__dlpack__",
            "stream must be None for an array on the CPU. Leave it out.",
        )),
        (_, Some(-1)) => Ok(Waiting::Nobody),
        (_, Some(n)) if n < 0 => wrong("Pass a stream, or -1 not to wait."),
        (CUDA | CUDA_HOST | CUDA_MANAGED, Some(0)) => wrong(
            "0 is ambiguous: pass 1 for the legacy default stream, 2 for the one of each thread.",
        ),
        (CUDA | CUDA_HOST | CUDA_MANAGED, stream) => {
            Ok(Waiting::Stream(stream.map_or(1, |n| n as u64)))
        }
        (ROCM | ROCM_HOST, Some(1 | 2)) => wrong("Pass 0 for the default stream."),
        (ROCM | ROCM_HOST, stream) => Ok(Waiting::Stream(stream.map_or(0, |n| n as u64))),
        (_, None) => Ok(Waiting::Host),
        (_, Some(0..=2)) => wrong("Pass the pointer of a stream, or None to let the host wait."),
        (_, Some(n)) => Ok(Waiting::Stream(n as u64)),
    }
}

/// The stream that stands for consumers' work on memory that they return: the device's default stream, which lives
/// forever and waits for all streams that do not opt out. (The stream that the consumer named when it took the memory
/// may be destroyed.) `None` if there is no such stream.
pub(super) fn default_stream(device_type: i32) -> Option<u64> {
    use device_type::{CUDA, CUDA_HOST, CUDA_MANAGED, ROCM, ROCM_HOST};
    match device_type {
        CUDA | CUDA_HOST | CUDA_MANAGED => Some(1),
        ROCM | ROCM_HOST => Some(0),
        _ => None,
    }
}

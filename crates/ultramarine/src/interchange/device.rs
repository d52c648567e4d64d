//! DLPack's devices and ours: who serves which, and what consumers' streams are.

use crate::{
    backend::{self, DeviceState},
    device::{Device, DeviceType},
    error::{Error, Result},
};
use ultramarine_abi::{
    dlpack::{DLDevice, device_type},
    interface::memory::kind,
};

/// Where a tensor is, as it can be used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Addresses of the host.
    Host,
    /// A device that a loaded backend serves.
    Device(Device),
}

/// The device of a tensor here. The first tensor of a device that is not served yet loads the
/// backends that can be found.
///
/// # Errors
/// [`Error::BufferDevice`] when no loaded backend serves it.
#[inline]
pub(super) fn home(dl: DLDevice) -> Result<Home> {
    match dl.device_type {
        // The host sees pinned memory as its own. Its device is that which pinned it.
        device_type::CPU if dl.device_id != 0 => {
            Err(Error::buffer_device("from_dlpack", format!("there is no CPU {}.", dl.device_id)))
        }
        device_type::CPU | device_type::CUDA_HOST | device_type::ROCM_HOST => Ok(Home::Host),
        device_type::CUDA_MANAGED => {
            // Host and device both see it: it is the device's where that is served.
            let dl = DLDevice { device_type: device_type::CUDA, ..dl };
            Ok(find(dl).map_or(Home::Host, |state| Home::Device(state.device)))
        }
        _ => served("from_dlpack", dl).map(Home::Device),
    }
}

/// The device of ours that a consumer names.
///
/// # Errors
/// [`Error::BufferDevice`] when there is no such.
pub(super) fn named(dl: DLDevice) -> Result<Device> {
    match (dl.device_type, dl.device_id) {
        (device_type::CPU, 0) => Ok(Device::CPU),
        (device_type::CPU, n) => {
            Err(Error::buffer_device("__dlpack__", format!("there is no CPU {n}.")))
        }
        _ => served("__dlpack__", dl),
    }
}

fn find(dl: DLDevice) -> Option<&'static DeviceState> {
    backend::gpus().iter().find(|state| state.dl == dl).copied()
}

#[cold]
fn served(op: &str, dl: DLDevice) -> Result<Device> {
    let loaded = || {
        // This loads what was not loaded yet.
        backend::device_count(DeviceType::Gpu);
        find(dl)
    };
    find(dl).or_else(loaded).map(|state| state.device).ok_or_else(|| missing(op, dl))
}

/// What other libraries call a type of device, and the backend that serves it.
fn names(device_type: i32) -> (&'static str, Option<&'static str>) {
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

/// A device type as messages name it.
pub(super) fn name_of(device_type: i32) -> &'static str {
    names(device_type).0
}

#[cold]
fn missing(op: &str, dl: DLDevice) -> Error {
    let (name, plugin) = names(dl.device_type);
    let served: Vec<_> =
        backend::gpus().iter().filter(|s| s.dl.device_type == dl.device_type).collect();
    if let Some(first) = served.first() {
        let (n, s) = (served.len(), if served.len() == 1 { "" } else { "s" });
        return Error::buffer_device(
            op,
            format!(
                "there is no {name} device {}: backend \"{}\" serves {n} device{s} of that type.",
                dl.device_id, first.backend
            ),
        );
    }
    let article = if name.starts_with(['A', 'E', 'O', 'e', 'o', 'u']) { "an" } else { "a" };
    let takes = match plugin {
        Some(plugin) => format!("the backend \"{plugin}\" (package ultramarine-{plugin})"),
        None => format!("a backend that serves such devices (DLPack type {})", dl.device_type),
    };
    let loaded: Vec<String> = backend::backends()
        .iter()
        .map(|b| format!("{} ({})", b.name, name_of(b.dlpack_device_type)))
        .collect();
    Error::buffer_device(
        op,
        format!(
            "{article} {name} tensor needs {takes}, or a copy on the CPU, which its library can \
             make; loaded: {}.{} See ultramarine.backends.",
            loaded.join(", "),
            backend::hint()
        ),
    )
}

/// The kind of memory that a tensor's `data` is on devices of a type.
///
/// # Errors
/// [`Error::BufferDevice`] where backends have no word for it.
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
                "memory of {} devices cannot cross between libraries here; copy to the CPU first.",
                name_of(device_type)
            ),
        )),
    }
}

/// Whether a tensor's `data` is an address, and no handle: then it can be counted on from there.
pub(super) fn is_address(kind: u32) -> bool {
    matches!(kind, kind::HOST | kind::DEVICE_POINTER)
}

/// An array's device in DLPack.
///
/// # Errors
/// [`Error::Value`] when no loaded backend has it.
pub(super) fn of(device: Device) -> Result<DLDevice> {
    Ok(backend::get(device)?.dl)
}

/// Which of a consumer's streams waits for the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// None: the host waits.
    Host,
    /// None, and nobody waits.
    Nobody,
    /// This one, as the device numbers it.
    Stream(u64),
}

/// What the `stream` of a consumer means for tensors of a type of device.
///
/// # Errors
/// [`Error::Value`] for what is no stream there.
pub(super) fn waiting(device_type: i32, stream: Option<isize>) -> Result<Waiting> {
    use device_type::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED, ROCM, ROCM_HOST};
    let wrong = |why: &str| {
        let name = name_of(device_type);
        let stream = stream.unwrap_or_default();
        Err(Error::value("__dlpack__", format!("stream={stream} for {name}: {why}")))
    };
    match (device_type, stream) {
        (CPU, None) => Ok(Waiting::Host),
        (CPU, Some(_)) => {
            Err(Error::value("__dlpack__", "stream must be None for an array on the CPU."))
        }
        (_, Some(-1)) => Ok(Waiting::Nobody),
        (_, Some(n)) if n < 0 => wrong("it is -1 for no wait, or a stream."),
        (CUDA | CUDA_HOST | CUDA_MANAGED, Some(0)) => {
            wrong("0 is ambiguous; 1 is the legacy default stream, 2 the one of each thread.")
        }
        (CUDA | CUDA_HOST | CUDA_MANAGED, stream) => {
            Ok(Waiting::Stream(stream.map_or(1, |n| n as u64)))
        }
        (ROCM | ROCM_HOST, Some(1 | 2)) => wrong("0 is the default stream."),
        (ROCM | ROCM_HOST, stream) => Ok(Waiting::Stream(stream.map_or(0, |n| n as u64))),
        (_, None) => Ok(Waiting::Host),
        (_, Some(0..=2)) => wrong("a stream is a pointer there; None lets the host wait."),
        (_, Some(n)) => Ok(Waiting::Stream(n as u64)),
    }
}

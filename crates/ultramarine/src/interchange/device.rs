//! Maps DLPack's devices to those of loaded backends.

use super::kinds::{self, Visibility, name_of};
use crate::backend::{self, DeviceState};
use crate::device::{Device, DeviceType};
use crate::devices;
use crate::error::{Error, Result};
use ultramarine_abi::dlpack::{DLDevice, device_type};
use ultramarine_runtime::packages;

/// The place of a tensor, as this process can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Memory that the host can address.
    Host,
    /// A device that a loaded backend serves.
    Device(Device),
}

/// Finds the device of a tensor. The first tensor on a device without a backend makes the process
/// load the backends that can be found.
///
/// # Errors
/// [`Error::BufferDevice`] when no loaded backend serves it.
#[inline]
pub(super) fn home(dl: DLDevice) -> Result<Home> {
    match kinds::visibility(dl.device_type) {
        Visibility::Host if dl.device_type == device_type::CPU && dl.device_id != 0 => {
            Err(Error::buffer_device(
                "from_dlpack",
                format!("There is no CPU {}. Use number 0.", dl.device_id),
            ))
        }
        Visibility::Host => Ok(Home::Host),
        Visibility::Both(device_type) => {
            // If a backend serves the device, the memory belongs to that device.
            let dl = DLDevice { device_type, ..dl };
            Ok(find(dl).map_or(Home::Host, |state| Home::Device(state.device)))
        }
        Visibility::Device => served("from_dlpack", dl).map(Home::Device),
    }
}

/// Ultramarine's device for the device that a consumer names.
///
/// # Errors
/// [`Error::BufferDevice`] when no backend serves it.
pub(super) fn named(dl: DLDevice) -> Result<Device> {
    match (dl.device_type, dl.device_id) {
        (device_type::CPU, 0) => Ok(Device::CPU),
        (device_type::CPU, n) => {
            Err(Error::buffer_device("__dlpack__", format!("There is no CPU {n}. Use number 0.")))
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
        // Loads backends that were not loaded yet.
        devices::device_count(DeviceType::Gpu);
        find(dl)
    };
    find(dl).or_else(loaded).map(|state| state.device).ok_or_else(|| missing(op, dl))
}

#[cold]
fn missing(op: &str, dl: DLDevice) -> Error {
    let (name, plugin) = kinds::names(dl.device_type);
    let served: Vec<_> =
        backend::gpus().iter().filter(|s| s.dl.device_type == dl.device_type).collect();
    if let Some(first) = served.first() {
        let (n, s) = (served.len(), if served.len() == 1 { "" } else { "s" });
        return Error::buffer_device(
            op,
            format!(
                "There is no {name} device {}: backend \"{}\" serves {n} device{s} of that type. Use a smaller number.",
                dl.device_id, first.backend
            ),
        );
    }
    let article = if name.starts_with(['A', 'E', 'O', 'e', 'o', 'u']) { "an" } else { "a" };
    let takes = match plugin {
        Some(plugin) => match packages::find(dl.device_type, plugin) {
            Some(package) => format!("the backend \"{plugin}\" (package {})", package.name),
            None => format!("the backend \"{plugin}\""),
        },
        None => format!("a backend that serves such devices (DLPack type {})", dl.device_type),
    };
    let loaded: Vec<String> = backend::backends()
        .iter()
        .map(|b| format!("{} ({})", b.name, name_of(b.dlpack_device_type)))
        .collect();
    Error::buffer_device(
        op,
        format!(
            "{article} {name} tensor needs {takes}, or a copy on the CPU made by its library; \
             loaded: {}.{} See ultramarine.backends.",
            loaded.join(", "),
            devices::hint()
        ),
    )
}

/// An array's device in DLPack.
///
/// # Errors
/// [`Error::Value`] when no loaded backend serves the device.
pub(super) fn of(device: Device) -> Result<DLDevice> {
    Ok(devices::get(device)?.dl)
}

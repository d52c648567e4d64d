//! The devices of all backends. The backends that can be found are loaded when a GPU is first
//! needed.

mod info;
pub mod memory;

use crate::backend::{BackendInfo, DeviceState, registry};
use crate::device::{Device, DeviceType};
use crate::error::Result;
pub use info::{DeviceInfo, device_info};

#[cfg(feature = "loader")]
use crate::loader::autoload;
#[cfg(feature = "loader")]
pub use crate::loader::hint;

/// Without the loader, this loads nothing.
#[cfg(not(feature = "loader"))]
fn autoload() {}

/// Returns the remedy for a missing device.
#[cfg(not(feature = "loader"))]
#[inline]
pub fn hint() -> String {
    " This program was built without the loader. Link the backend into it, or enable the feature `loader`."
        .to_owned()
}

/// Returns the state of a device. The backends that can be found are loaded when a GPU is first
/// needed.
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
#[inline]
pub fn get(device: Device) -> Result<&'static DeviceState> {
    match registry::find(device) {
        Some(state) => Ok(state),
        None => get_after_loading(device),
    }
}

#[cold]
fn get_after_loading(device: Device) -> Result<&'static DeviceState> {
    if device.kind == DeviceType::Gpu {
        autoload();
    }
    registry::find(device).ok_or_else(|| registry::unknown(device, &hint()))
}

/// Returns the number of devices of a type. The first request for GPUs loads the backends that can
/// be found.
pub fn device_count(kind: DeviceType) -> usize {
    match kind {
        DeviceType::Cpu => 1,
        DeviceType::Gpu => {
            autoload();
            registry::gpus().len()
        }
    }
}

/// Returns all devices, the CPU first. The first request for GPUs loads the backends that can be
/// found.
pub fn devices() -> Vec<Device> {
    let gpus = (0..device_count(DeviceType::Gpu)).filter_map(|i| u16::try_from(i).ok());
    [Device::CPU].into_iter().chain(gpus.map(Device::gpu)).collect()
}

/// Returns true if the device exists. The first request for a GPU loads the backends that can be
/// found.
#[inline]
pub fn is_available(device: Device) -> bool {
    get(device).is_ok()
}

/// Returns the backend that serves a device. For cpu:0 it is the built-in one, even if an overlay
/// lies over it.
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
#[inline]
pub fn backend_of(device: Device) -> Result<BackendInfo> {
    let state = get(device)?;
    registry::backend_of(state).ok_or_else(|| registry::unknown(device, &hint()))
}

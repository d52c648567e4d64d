//! Functions of devices: the default one, counts and descriptions.

use super::{DeviceArg, PyDevice};
use crate::error::Res;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the device that operations use unless a stream or their inputs decide otherwise.
///
/// Returns:
///     Device: The CPU, unless `set_default_device` or `stream` set another.
///
/// Example:
///     >>> mx.default_device().index
///     0
#[pyfunction]
fn default_device() -> PyDevice {
    PyDevice(ultramarine::default_device())
}

/// Sets the default device.
///
/// Args:
///     device (Device | DeviceType): Device that operations use from now on.
///
/// Raises:
///     ValueError: If there is no such device.
///
/// Example:
///     >>> former = mx.default_device()
///     >>> mx.set_default_device(mx.cpu)
///     >>> mx.default_device()
///     Device(cpu, 0)
///     >>> mx.set_default_device(former)
#[pyfunction]
fn set_default_device(device: DeviceArg) -> Res<()> {
    Ok(ultramarine::set_default_device(device.0)?)
}

/// Tests whether a device can be used.
///
/// Args:
///     device (Device | DeviceType): Device, or kind whose first device is meant.
///
/// Returns:
///     bool: True if there is such a device.
///
/// Example:
///     >>> mx.is_available(mx.cpu)
///     True
#[pyfunction]
fn is_available(device: DeviceArg) -> bool {
    ultramarine::is_available(device.0)
}

/// Counts the devices of a kind.
///
/// Args:
///     device_type (Device | DeviceType): Kind, or a device of that kind.
///
/// Returns:
///     int: Number of devices, over all backends.
///
/// Example:
///     >>> mx.device_count(mx.cpu)
///     1
#[pyfunction]
fn device_count(device_type: DeviceArg) -> usize {
    ultramarine::device_count(device_type.0.kind)
}

/// Describes a device.
///
/// Args:
///     d (Device | DeviceType | None): Device; by default the default one.
///
/// Returns:
///     dict[str, str | int]: `device_name`, `architecture`, `backend` and, as far as they are
///         known, `memory_size` and `total_memory` (both the same, in bytes),
///         `max_buffer_length` (bytes) and `threads`. Empty for a device that is not there.
///
/// Example:
///     >>> mx.device_info(mx.cpu)["backend"]
///     'cpu'
#[pyfunction]
#[pyo3(signature = (d=None))]
fn device_info(py: Python<'_>, d: Option<DeviceArg>) -> Res<Bound<'_, PyDict>> {
    let device = d.map_or_else(ultramarine::default_device, |d| d.0);
    let all = PyDict::new(py);
    let Ok(info) = ultramarine::device_info(device) else { return Ok(all) };
    all.set_item("device_name", info.name)?;
    all.set_item("architecture", info.architecture)?;
    all.set_item("backend", info.backend)?;
    let numbers = [
        ("memory_size", info.memory),
        ("total_memory", info.memory),
        ("max_buffer_length", info.largest_buffer),
        ("threads", info.threads),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            all.set_item(key, number)?;
        }
    }
    Ok(all)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: default_device set_default_device is_available device_count device_info);
    Ok(())
}

//! DLPack's devices and ours.

use crate::{
    backend,
    device::Device,
    error::{Error, Result},
};
use ultramarine_abi::dlpack::{DLDevice, device_type};

/// Where a tensor is, as it can be used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Addresses of the host.
    Host,
    /// A device that a loaded backend serves.
    Device(Device),
}

/// The device of a tensor here.
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
        _ => served(dl).map(Home::Device),
    }
}

#[cold]
fn served(dl: DLDevice) -> Result<Device> {
    let found = backend::gpus().iter().find(|state| state.dl == dl);
    found.map(|state| state.device).ok_or_else(|| {
        Error::buffer_device(
            "from_dlpack",
            format!(
                "no loaded backend serves device type {} (device {}).",
                dl.device_type, dl.device_id
            ),
        )
    })
}

/// An array's device in DLPack.
///
/// # Errors
/// [`Error::Value`] when no loaded backend has it.
pub(super) fn of(device: Device) -> Result<DLDevice> {
    Ok(backend::get(device)?.dl)
}

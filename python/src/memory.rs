//! Counters and limits of memory, of the host and of devices. All figures are bytes.

use crate::{
    error::{Res, type_},
    stream::DeviceArg,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::memory;

/// A number of bytes.
struct Bytes(usize);

impl FromPyObject<'_, '_> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<usize>() {
            Ok(n) => Ok(Bytes(n)),
            Err(_) => Err(type_("expected a number of bytes, which is not negative").into()),
        }
    }
}

macro_rules! of_devices {
    ($($(#[$m:meta])* $name:ident($($limit:ident)?) -> $out:ty = $f:path;)*) => {$(
        $(#[$m])*
        #[pyfunction]
        #[pyo3(signature = ($($limit,)? device=None))]
        fn $name(py: Python<'_>, $($limit: Bytes,)? device: Option<DeviceArg>) -> Res<$out> {
            // A device may be asked, and memory given back.
            Ok(py.detach(|| $f($($limit.0,)? device.map(|d| d.0)))?)
        }
    )*};
}

of_devices! {
    /// Bytes of arrays that exist: on a device, or on all accelerators (on the CPU where there is none).
    get_active_memory() -> usize = memory::active_on;
    /// The most bytes that arrays took since the start or the last `reset_peak_memory`: on a device, or summed
    /// over the accelerators (on the CPU where there is none).
    get_peak_memory() -> usize = memory::peak_on;
    /// Starts the peak afresh: of a device, or of all.
    reset_peak_memory() -> () = memory::reset_peak_on;
    /// Bytes that are kept for reuse: on a device, or on all accelerators (on the CPU where there is none).
    get_cache_memory() -> usize = memory::cached_on;
    /// Sets how many bytes arrays and cache should take at most; returns the former limit. Without a device it is
    /// the limit of each device of the one backend that serves accelerators (of the CPU where there is none).
    set_memory_limit(limit) -> usize = memory::set_memory_limit_on;
    /// How many bytes arrays and cache should take at most: on a device, or summed over the backends with
    /// accelerators (on the CPU where there is none).
    get_memory_limit() -> usize = memory::memory_limit_on;
    /// Sets how many bytes may be kept for reuse; returns the former limit. Without a device as `set_memory_limit`.
    set_cache_limit(limit) -> usize = memory::set_cache_limit_on;
    /// Sets how many bytes may be pinned; returns the former limit. On the CPU it is accepted and without effect.
    /// Without a device as `set_memory_limit`.
    set_wired_limit(limit) -> usize = memory::set_wired_limit_on;
    /// Gives the memory that is kept for reuse back to the system: on a device, or everywhere.
    clear_cache() -> () = memory::clear_cache_on;
}

/// Bytes of the memory blocks behind evaluated arrays (of trees; what is no array is left out). A block that
/// several share is counted once.
#[pyfunction]
#[pyo3(signature = (*args))]
fn get_array_buffer_size(args: &Bound<'_, PyTuple>) -> Res<usize> {
    let mut all = Vec::new();
    crate::tree::arrays_among(args, &mut all)?;
    Ok(memory::buffer_bytes(&all)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: get_active_memory get_peak_memory reset_peak_memory get_cache_memory
        set_memory_limit get_memory_limit set_cache_limit set_wired_limit clear_cache get_array_buffer_size);
    Ok(())
}

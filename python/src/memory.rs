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
            Err(_) => Err(type_("expected a number of bytes of 0 or more").into()),
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
    /// Counts the bytes of arrays that exist.
    ///
    /// Args:
    ///     device (Device | DeviceType | None): Device; by default all accelerators, or the CPU
    ///         where there is none.
    ///
    /// Returns:
    ///     int: Number of bytes.
    ///
    /// Example:
    ///     >>> x = mx.zeros(1000)
    ///     >>> mx.eval(x)
    ///     >>> mx.get_active_memory() >= x.nbytes
    ///     True
    get_active_memory() -> usize = memory::active_on;
    /// Returns the most bytes that arrays took since the start or the last `reset_peak_memory`.
    ///
    /// Args:
    ///     device (Device | DeviceType | None): Device; by default the sum over all accelerators,
    ///         or the CPU where there is none.
    ///
    /// Returns:
    ///     int: Number of bytes.
    ///
    /// Example:
    ///     >>> mx.eval(mx.zeros(1000))
    ///     >>> mx.get_peak_memory() >= 4000
    ///     True
    get_peak_memory() -> usize = memory::peak_on;
    /// Starts the measurement of `get_peak_memory` afresh.
    ///
    /// Args:
    ///     device (Device | DeviceType | None): Device; by default all devices.
    ///
    /// Example:
    ///     >>> former = mx.get_peak_memory()
    ///     >>> mx.reset_peak_memory()
    ///     >>> mx.get_peak_memory() <= former
    ///     True
    reset_peak_memory() -> () = memory::reset_peak_on;
    /// Counts the bytes of freed memory that are kept for reuse.
    ///
    /// Args:
    ///     device (Device | DeviceType | None): Device; by default all accelerators, or the CPU
    ///         where there is none.
    ///
    /// Returns:
    ///     int: Number of bytes.
    ///
    /// Example:
    ///     >>> mx.get_cache_memory() >= 0
    ///     True
    get_cache_memory() -> usize = memory::cached_on;
    /// Sets the number of bytes that arrays and cache should take at most.
    ///
    /// Args:
    ///     limit (int): Number of bytes.
    ///     device (Device | DeviceType | None): Device; by default each device of the one backend
    ///         that serves accelerators, or the CPU where there is none.
    ///
    /// Returns:
    ///     int: The former limit.
    ///
    /// Raises:
    ///     TypeError: If the limit is no number of bytes.
    ///
    /// Example:
    ///     >>> former = mx.set_memory_limit(2**30)
    ///     >>> mx.get_memory_limit() == 2**30
    ///     True
    ///     >>> mx.set_memory_limit(former) == 2**30
    ///     True
    set_memory_limit(limit) -> usize = memory::set_memory_limit_on;
    /// Returns the number of bytes that arrays and cache should take at most.
    ///
    /// Args:
    ///     device (Device | DeviceType | None): Device; by default the sum over the backends with
    ///         accelerators, or the CPU where there is none.
    ///
    /// Returns:
    ///     int: Number of bytes.
    ///
    /// Example:
    ///     >>> mx.get_memory_limit() > 0
    ///     True
    get_memory_limit() -> usize = memory::memory_limit_on;
    /// Sets the number of bytes of freed memory that may be kept for reuse.
    ///
    /// That of the CPU also limits the copies that reading arrays of other devices (`item`,
    /// printing, `tolist`) leaves in its memory; the oldest go first.
    ///
    /// Args:
    ///     limit (int): Number of bytes; 0 keeps nothing.
    ///     device (Device | DeviceType | None): Device; by default each device of the one backend
    ///         that serves accelerators, or the CPU where there is none.
    ///
    /// Returns:
    ///     int: The former limit.
    ///
    /// Raises:
    ///     TypeError: If the limit is no number of bytes.
    ///
    /// Example:
    ///     >>> former = mx.set_cache_limit(2**20)
    ///     >>> mx.set_cache_limit(former) == 2**20
    ///     True
    set_cache_limit(limit) -> usize = memory::set_cache_limit_on;
    /// Sets the number of bytes that may be pinned. On the CPU it has no effect.
    ///
    /// Args:
    ///     limit (int): Number of bytes.
    ///     device (Device | DeviceType | None): Device; by default each device of the one backend
    ///         that serves accelerators, or the CPU where there is none.
    ///
    /// Returns:
    ///     int: The former limit.
    ///
    /// Raises:
    ///     TypeError: If the limit is no number of bytes.
    ///
    /// Example:
    ///     >>> mx.set_wired_limit(0) >= 0
    ///     True
    set_wired_limit(limit) -> usize = memory::set_wired_limit_on;
    /// Returns the memory that is kept for reuse to the system, and copies that reading arrays of
    /// other devices left on the CPU.
    ///
    /// Args:
    ///     device (Device | DeviceType | None): Device; by default all devices.
    ///
    /// Example:
    ///     >>> mx.clear_cache()
    clear_cache() -> () = memory::clear_cache_on;
}

/// Counts the bytes of the memory blocks behind evaluated arrays. A block that several share
/// counts once.
///
/// Args:
///     *args (Any): Trees of arrays; leaves that are no arrays are left out.
///
/// Returns:
///     int: Number of bytes.
///
/// Example:
///     >>> x = mx.zeros(1000)
///     >>> mx.eval(x)
///     >>> mx.get_array_buffer_size(x, x[:10]) >= x.nbytes
///     True
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

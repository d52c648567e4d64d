//! Descriptions of devices.

use crate::device::{Device, DeviceType};
use crate::{error::Result, memory, pool};

/// A description of a device; see [`device_info`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Name: the processor's model, or the name that the backend reports.
    pub name: String,
    /// The processor's architecture as Rust names it (`x86_64`, `aarch64`). For an accelerator, the
    /// name of its backend.
    pub architecture: String,
    /// The backend whose kernels run on the device.
    pub backend: String,
    /// Bytes of memory. For the CPU, the memory that this process may use. `None` if unknown.
    pub memory: Option<usize>,
    /// Bytes of the largest array. `None` if only the memory limits it.
    pub largest_buffer: Option<usize>,
    /// Number of threads for a loop, on the CPU.
    pub threads: Option<usize>,
}

/// Returns the description of a device.
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
pub fn device_info(device: Device) -> Result<DeviceInfo> {
    let state = super::get(device)?;
    let (said, memory, largest) = state.properties();
    let backend = state.backend.clone();
    let known = |bytes: u64| usize::try_from(bytes).ok().filter(|n| *n > 0);
    Ok(match device.kind {
        DeviceType::Cpu => DeviceInfo {
            name: processor().unwrap_or_else(|| std::env::consts::ARCH.into()),
            architecture: std::env::consts::ARCH.into(),
            backend,
            memory: Some(memory::physical()),
            largest_buffer: None,
            threads: Some(pool::threads()),
        },
        DeviceType::Gpu => DeviceInfo {
            name: said,
            architecture: backend.clone(),
            backend,
            memory: known(memory),
            largest_buffer: known(largest),
            threads: None,
        },
    })
}

/// Returns the model of the processor, if the operating system reports it.
#[cfg(target_os = "linux")]
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("model name"))?;
    let name = line.trim_start().strip_prefix(':')?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(target_os = "macos")]
fn processor() -> Option<String> {
    let mut bytes = [0u8; 256];
    let mut length = bytes.len();
    // SAFETY: the name is NUL-terminated, and the buffer has room for `length` bytes.
    let code = unsafe {
        libc::sysctlbyname(
            c"machdep.cpu.brand_string".as_ptr(),
            bytes.as_mut_ptr().cast(),
            &mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    let text = std::ffi::CStr::from_bytes_until_nul(&bytes).ok().filter(|_| code == 0)?;
    Some(text.to_string_lossy().into_owned())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn processor() -> Option<String> {
    None
}

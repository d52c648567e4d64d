//! Device properties, as the driver reports them before a context exists.

use crate::context::failure::cuda;
use crate::sys::driver::{Driver, Ordinal, attribute, version_text};
use core::ffi::{CStr, c_char, c_int};
use ultramarine_abi::helper::Result;

/// The properties of a device, by its ordinal: identity, memory and limits. The driver reports them
/// without a context, so querying them takes no memory on the device.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // they are what they are called
pub struct DeviceProperties {
    pub ordinal: Ordinal,
    pub name: String,
    pub uuid: [u8; 16],
    /// Domain, bus, device.
    pub pci: [u32; 3],
    pub memory: u64,
    /// Compute capability.
    pub major: u32,
    pub minor: u32,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    pub threads_per_block: u32,
    pub shared_per_block: u32,
    pub shared_optin: u32,
    pub l2_bytes: u64,
    /// CUDA version of the driver, in the driver's encoding.
    pub driver_version: c_int,
}

impl DeviceProperties {
    /// Returns true if a kernel may start before the previous one has ended (programmatic dependent launch).
    pub fn starts_early(&self) -> bool {
        self.major >= 9
    }

    /// Queries the driver, which must be initialised.
    pub fn of(driver: &'static Driver, index: c_int) -> Result<Self> {
        let (mut ordinal, mut memory, mut driver_version) = (0, 0usize, 0);
        let (mut name, mut uuid) = ([0 as c_char; 128], [0u8; 16]);
        // SAFETY: the output pointers are valid, and the index is below the count.
        unsafe {
            cuda!(driver.device_get(&mut ordinal, index))?;
            cuda!(driver.device_name(name.as_mut_ptr(), 127, ordinal))?;
            cuda!(driver.device_uuid(&mut uuid, ordinal))?;
            cuda!(driver.device_memory(&mut memory, ordinal))?;
            cuda!(driver.driver_version(&mut driver_version))?;
        }
        let ask = |which: c_int| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the output pointer is valid.
            unsafe { cuda!(driver.device_attribute(&mut value, which, ordinal)) }?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        // SAFETY: the last byte is 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        Ok(Self {
            ordinal,
            name,
            uuid,
            pci: [
                ask(attribute::PCI_DOMAIN)?,
                ask(attribute::PCI_BUS)?,
                ask(attribute::PCI_DEVICE)?,
            ],
            memory: memory as u64,
            major: ask(attribute::CAPABILITY_MAJOR)?,
            minor: ask(attribute::CAPABILITY_MINOR)?,
            multiprocessors: ask(attribute::MULTIPROCESSORS)?.max(1),
            threads_per_multiprocessor: ask(attribute::MAX_THREADS_PER_MULTIPROCESSOR)?.max(1024),
            threads_per_block: ask(attribute::MAX_THREADS_PER_BLOCK)?.max(1),
            shared_per_block: ask(attribute::MAX_SHARED_PER_BLOCK)?,
            shared_optin: ask(attribute::MAX_SHARED_OPTIN)?,
            l2_bytes: u64::from(ask(attribute::L2_BYTES)?),
            driver_version,
        })
    }

    /// A line that describes the device in the load report.
    pub fn describe(&self) -> String {
        format!(
            "{} (compute capability {}.{}, {:.0} GiB, driver for CUDA {})",
            self.name,
            self.major,
            self.minor,
            self.memory as f64 / (1u64 << 30) as f64,
            version_text(self.driver_version)
        )
    }

    /// Returns true if four warps can use tensor cores together (PTX's `wgmma`).
    pub fn has_warpgroups(&self) -> bool {
        (self.major, self.minor) == (9, 0)
    }

    /// Returns the number of threads that the device runs at once.
    pub fn parallelism(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads_per_multiprocessor)
    }
}

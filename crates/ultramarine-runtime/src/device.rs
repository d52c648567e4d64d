//! The names of devices and streams.

use std::fmt;
use std::str::FromStr;

/// The kind of a device. A [`Device`] has a kind and an index; `Display` writes `cpu` or `gpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeviceType {
    /// The host's processor. There is always exactly one such device.
    Cpu = 0,
    /// Any accelerator, of any backend.
    Gpu = 1,
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceType::Cpu => "cpu",
            DeviceType::Gpu => "gpu",
        })
    }
}

/// A device: its kind, and its index among all devices of that kind, across all backends. It can be
/// parsed from text such as `gpu:1`, and `Display` writes this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// CPU or GPU.
    pub kind: DeviceType,
    /// Index from zero.
    pub index: u16,
}

impl Device {
    /// The host's processor.
    pub const CPU: Device = Device { kind: DeviceType::Cpu, index: 0 };

    /// Returns the name of accelerator `index`. The existence of the device is checked when the
    /// device is used.
    #[inline]
    pub const fn gpu(index: u16) -> Device {
        Device { kind: DeviceType::Gpu, index }
    }

    pub(crate) const fn pack(self) -> u32 {
        (self.kind as u32) << 16 | self.index as u32
    }

    pub(crate) const fn unpack(bits: u32) -> Device {
        let kind = if bits >> 16 == 0 { DeviceType::Cpu } else { DeviceType::Gpu };
        Device { kind, index: bits as u16 }
    }
}

/// Parses `cpu`, `gpu`, and names with an index such as `gpu:1`.
///
/// ```
/// use ultramarine_runtime::device::Device;
/// assert_eq!("gpu:1".parse(), Ok(Device::gpu(1)));
/// assert!("tpu".parse::<Device>().is_err());
/// ```
impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Device, UnknownDevice> {
        let unknown = || UnknownDevice(name.to_owned());
        let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
        let index = index.parse().map_err(|_| unknown())?;
        match kind {
            "cpu" if index == 0 => Ok(Device::CPU),
            "gpu" => Ok(Device::gpu(index)),
            _ => Err(unknown()),
        }
    }
}

/// The error for a text that does not name a device; see [`Device`].
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of a device. Use `cpu`, `gpu` or, of several, `gpu:0`, `gpu:1` and so on."
)]
pub struct UnknownDevice(String);

/// Prints the message, because `main` and `unwrap` print errors with `Debug`.
impl fmt::Debug for UnknownDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.index)
    }
}

/// An ordered queue of work on a device, identified by a number. Work of one stream runs in order;
/// work of different streams may run at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    /// Index, unique in the process.
    pub index: u32,
    /// Its device.
    pub device: Device,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {})", self.device, self.index)
    }
}

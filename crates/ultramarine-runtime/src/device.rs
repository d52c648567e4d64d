//! The names of devices and streams.

use std::fmt;

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeviceType {
    /// The host's processor: one device, always there.
    Cpu = 0,
    /// Any accelerator, whichever backend serves it.
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

/// A device: its type and its global index among devices of that type.
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

    /// The accelerator of that index.
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

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.index)
    }
}

/// An ordered queue of work on a device.
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

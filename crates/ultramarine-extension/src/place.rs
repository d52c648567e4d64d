//! The device and stream on which operations run.

use ultramarine_abi::extension::{PlaceCode, place};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The CPU.
    Cpu,
    /// An accelerator.
    Gpu,
}

/// The device or stream on which an operation runs. [`apply`](crate::apply) and
/// [`operation`](crate::operation) take one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// The home device of the operands; if they have none, the default device. Rules use this
    /// value.
    #[default]
    Default,
    /// The default stream of a device.
    Device {
        /// Kind of the device.
        kind: DeviceKind,
        /// Its number among those of its kind.
        index: u32,
    },
    /// A stream.
    Stream {
        /// Kind of the device.
        kind: DeviceKind,
        /// Its number among those of its kind.
        index: u32,
        /// The stream's number.
        stream: u32,
    },
}

impl Place {
    /// The CPU's default stream.
    pub const CPU: Place = Place::Device { kind: DeviceKind::Cpu, index: 0 };
    /// The first accelerator's default stream.
    pub const GPU: Place = Place::Device { kind: DeviceKind::Gpu, index: 0 };

    /// Returns kind and number of the device that the place names; `None` for the default.
    pub fn device(self) -> Option<(DeviceKind, u32)> {
        match self {
            Place::Default => None,
            Place::Device { kind, index } | Place::Stream { kind, index, .. } => {
                Some((kind, index))
            }
        }
    }

    /// Returns the place in the contract's form.
    pub fn to_code(self) -> PlaceCode {
        let (kind, (device, device_index), stream_index) = match self {
            Place::Default => (place::DEFAULT, (DeviceKind::Cpu, 0), 0),
            Place::Device { kind, index } => (place::DEVICE, (kind, index), 0),
            Place::Stream { kind, index, stream } => (place::STREAM, (kind, index), stream),
        };
        let device_type = match device {
            DeviceKind::Cpu => place::CPU,
            DeviceKind::Gpu => place::GPU,
        };
        let size = size_of::<PlaceCode>() as u32;
        PlaceCode { size, kind, device_type, device_index, stream_index, reserved: 0 }
    }

    /// Reads a place that crossed the boundary. An unknown kind counts as the default.
    ///
    /// ```
    /// use ultramarine_extension::Place;
    ///
    /// assert_eq!(Place::from_code(&Place::GPU.to_code()), Place::GPU);
    /// ```
    pub fn from_code(code: &PlaceCode) -> Place {
        let kind = if code.device_type == place::CPU { DeviceKind::Cpu } else { DeviceKind::Gpu };
        let (index, stream) = (code.device_index, code.stream_index);
        match code.kind {
            place::DEVICE => Place::Device { kind, index },
            place::STREAM => Place::Stream { kind, index, stream },
            _ => Place::Default,
        }
    }
}

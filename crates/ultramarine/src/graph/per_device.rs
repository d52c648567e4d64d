//! A setting for all devices, which a device may override.

use crate::device::Device;
use crate::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// A type with only a few values.
pub(super) trait Few: Copy {
    /// The number of the value, below [`VARIED`].
    fn number(self) -> u8;
    /// The value with this number.
    fn of(number: u8) -> Option<Self>;
}

impl Few for bool {
    fn number(self) -> u8 {
        self.into()
    }

    fn of(number: u8) -> Option<bool> {
        (number <= 1).then_some(number == 1)
    }
}

/// Used instead of a value's number if the devices' values differ.
const VARIED: u8 = 3;

pub(super) struct PerDevice<T> {
    settings: Mutex<Settings<T>>,
    /// The number of the value that all devices have, or [`VARIED`].
    common: AtomicU8,
    /// Number of changes that made the devices differ, for the keys of traces.
    changes: AtomicU32,
}

struct Settings<T> {
    all: T,
    devices: Vec<(Device, T)>,
}

impl<T: Copy> Settings<T> {
    fn of(&self, device: Option<Device>) -> T {
        let own = |device| self.devices.iter().find(|(d, _)| *d == device);
        device.and_then(own).map_or(self.all, |(_, value)| *value)
    }
}

impl<T: Few> PerDevice<T> {
    pub fn new(all: T) -> PerDevice<T> {
        let settings = Mutex::new(Settings { all, devices: Vec::new() });
        let common = AtomicU8::new(all.number());
        PerDevice { settings, common, changes: AtomicU32::new(0) }
    }

    /// Returns the value of a device. Without a device, returns the value of the devices that have
    /// none of their own.
    pub fn get(&self, device: Option<Device>) -> T {
        lock(&self.settings).of(device)
    }

    /// Sets the value of a device, or of all devices if `device` is `None`. Returns the former
    /// value.
    pub fn set(&self, value: T, device: Option<Device>) -> T {
        let mut settings = lock(&self.settings);
        let before = settings.of(device);
        match device {
            None => {
                settings.all = value;
                settings.devices.clear();
            }
            Some(device) => {
                settings.devices.retain(|(d, _)| *d != device);
                settings.devices.push((device, value));
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
        let common = if settings.devices.is_empty() { value.number() } else { VARIED };
        self.common.store(common, Ordering::Release);
        before
    }

    /// Returns the value of all devices, if it is the same for all.
    #[inline]
    pub fn common(&self) -> Option<T> {
        T::of(self.common.load(Ordering::Acquire))
    }

    /// The setting as part of a trace's key.
    pub fn key(&self) -> u64 {
        match self.common.load(Ordering::Acquire) {
            VARIED => u64::from(VARIED) + u64::from(self.changes.load(Ordering::Relaxed)),
            number => number.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_may_differ_until_all_are_set() {
        let setting = PerDevice::new(false);
        assert_eq!((setting.common(), setting.key()), (Some(false), 0));
        assert!(!setting.set(true, Some(Device::gpu(1))));
        let [first, second] = [0, 1].map(|i| setting.get(Some(Device::gpu(i))));
        assert_eq!((first, second, setting.get(None)), (false, true, false));
        let key = setting.key();
        assert!(setting.common().is_none() && key > 1);
        setting.set(false, Some(Device::gpu(1)));
        assert_ne!(setting.key(), key);
        assert!(!setting.set(true, None));
        assert_eq!((setting.common(), setting.key()), (Some(true), 1));
    }
}

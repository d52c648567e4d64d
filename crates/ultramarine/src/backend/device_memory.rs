//! A device's memory: allocation, the host's own counts of it, and limits.

use super::{DeviceState, host, life};
use crate::error::{Error, Result};
use core::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The host's own count of a device's memory.
#[derive(Debug, Default)]
pub(super) struct MemoryCounters {
    active: AtomicUsize,
    peak: AtomicUsize,
}

impl DeviceState {
    /// Device memory: its handle, and its address for the host or NULL.
    pub(crate) fn alloc(&self, bytes: usize) -> Result<(*mut c_void, *mut u8)> {
        life::check(self)?;
        let Some(alloc) = self.table.buffer_alloc else {
            return Err(self.lacks("buffer_alloc"));
        };
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the places are valid; the device is open.
        let code = unsafe { alloc(self.handle, bytes as u64, &mut handle, &mut error) };
        host::check("buffer_alloc", code, error)?;
        let active = self.memory.active.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.memory.peak.fetch_max(active, Ordering::Relaxed);
        let pointer = match self.table.buffer_host_pointer {
            // SAFETY: the handle was just made by this device.
            Some(f) => unsafe { f(self.handle, handle) as *mut u8 },
            None => std::ptr::null_mut(),
        };
        Ok((handle, pointer))
    }

    /// Frees a buffer that nothing uses any more.
    pub(crate) fn free(&self, handle: *mut c_void, bytes: usize) {
        if let Some(free) = self.table.buffer_free {
            // SAFETY: a handle of this device, given back once.
            unsafe { free(self.handle, handle) };
            self.memory.active.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Memory is short: waits for what is in flight and gives back what that used.
    pub(crate) fn reclaim(&self) {
        // Failures are raised to those who want the values.
        let _ = self.drain();
        self.retire();
    }

    pub(super) fn lacks(&self, what: &str) -> Error {
        Error::Runtime(format!("backend {} lacks {what}", self.backend))
    }
}

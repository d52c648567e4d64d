//! A device's memory: allocation, the host's own counters, and limits.

use super::{DeviceState, DeviceStream, interface_of, shutdown};
use crate::error::{Error, Result};
use crate::host_table;
use core::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_abi::interface::statistics::{
    self, COUNTS, MemoryStatistics, StatisticsInterface, limit,
};
use ultramarine_abi::interface::stream_memory::{self, StreamMemoryInterface};
use ultramarine_abi::{BackendTable, Error as ErrorObject, Status};

/// The host's own counters of a device's memory, and its limits.
#[derive(Debug)]
pub(super) struct MemoryCounters {
    active: AtomicUsize,
    peak: AtomicUsize,
    /// Indexed by [`Limit`]. `usize::MAX` means not set.
    limits: [AtomicUsize; 3],
}

impl Default for MemoryCounters {
    fn default() -> Self {
        MemoryCounters {
            active: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            limits: [const { AtomicUsize::new(usize::MAX) }; 3],
        }
    }
}

type StreamAlloc = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    u64,
    *mut *mut c_void,
    *mut *mut ErrorObject,
) -> Status;

/// The functions of `ultramarine.stream_memory/1`.
#[derive(Clone, Copy)]
pub(super) struct StreamMemory {
    alloc: StreamAlloc,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void),
}

impl StreamMemory {
    /// Returns the functions if the backend has both and its work may continue after a submit
    /// returns.
    pub fn of(table: &BackendTable, synchronous: bool) -> Option<StreamMemory> {
        if synchronous {
            return None;
        }
        let found: StreamMemoryInterface = interface_of(table, stream_memory::INTERFACE)?;
        Some(StreamMemory { alloc: found.alloc?, free: found.free? })
    }
}

/// A limit of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Memory = limit::MEMORY as isize,
    Cache = limit::CACHE as isize,
    Wired = limit::WIRED as isize,
}

/// Bytes in use, their peak, and bytes kept for reuse.
#[derive(Clone, Copy, Debug)]
pub struct InUse {
    pub active: usize,
    pub peak: usize,
    pub cache: usize,
}

impl DeviceState {
    /// Allocates device memory. Returns its handle, and its address for the host or NULL. If a
    /// stream is given, the memory may be memory that was freed in the order of this stream.
    pub fn alloc(
        &self,
        bytes: usize,
        stream: Option<&DeviceStream>,
    ) -> Result<(*mut c_void, *mut u8)> {
        shutdown::check(self)?;
        let Some(alloc) = self.table.buffer_alloc else {
            return Err(self.lacks("buffer_alloc"));
        };
        let active = self.memory.active.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let limit = self.memory.limits[Limit::Memory as usize].load(Ordering::Relaxed);
        let made = if active > limit {
            Err(Error::Memory(
                format!(
                    "no memory for {bytes} bytes on {} {}: {} are in use, the limit is {limit}. Free arrays, or raise the limit by set_memory_limit",
                    self.backend,
                    self.device,
                    active - bytes
                )
                .into(),
            ))
        } else {
            let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
            let size = bytes as u64;
            // SAFETY: the pointers are valid for writing; the device is open, and the stream is its
            // own.
            let code = unsafe {
                match stream.zip(self.stream_memory) {
                    None => alloc(self.handle, size, &mut handle, &mut error),
                    Some((stream, of)) => {
                        (of.alloc)(self.handle, stream.handle(), size, &mut handle, &mut error)
                    }
                }
            };
            host_table::check("buffer_alloc", code, error).map(|()| handle)
        };
        let handle = made.inspect_err(|_| {
            self.memory.active.fetch_sub(bytes, Ordering::Relaxed);
        })?;
        self.memory.peak.fetch_max(active, Ordering::Relaxed);
        let pointer = match self.table.buffer_host_pointer {
            // SAFETY: this device just made the handle.
            Some(f) => unsafe { f(self.handle, handle) as *mut u8 },
            None => std::ptr::null_mut(),
        };
        Ok((handle, pointer))
    }

    /// Frees a buffer that is no longer in use.
    pub(super) fn free(&self, handle: *mut c_void, bytes: usize) {
        if let Some(free) = self.table.buffer_free {
            // SAFETY: the handle is this device's, and is freed once.
            unsafe { free(self.handle, handle) };
            self.memory.active.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Frees a buffer that only work of that stream may still use. Returns `false` if the backend
    /// cannot do this.
    pub(super) fn free_in_order(
        &self,
        stream: &DeviceStream,
        handle: *mut c_void,
        bytes: usize,
    ) -> bool {
        let Some(memory) = self.stream_memory else { return false };
        // SAFETY: the handle is this device's, and is freed once. The stream is the device's own,
        // and all of its work that uses the buffer has been submitted.
        unsafe { (memory.free)(self.handle, stream.handle(), handle) };
        self.memory.active.fetch_sub(bytes, Ordering::Relaxed);
        true
    }

    /// Returns true if buffers can be freed in the order of a stream.
    pub(super) fn has_stream_memory(&self) -> bool {
        self.stream_memory.is_some()
    }

    /// Called when memory is short: waits for the work in flight, and frees the memory that it
    /// used.
    pub fn reclaim(&self) {
        // Ignore the error: it is raised where a value is needed.
        let _ = self.drain();
        self.free_completed();
    }

    fn statistics(&self) -> Option<StatisticsInterface> {
        shutdown::ended().is_none().then(|| self.interface(statistics::INTERFACE))?
    }

    /// Returns counts of the memory in use, after freeing what completed work used.
    pub fn memory(&self) -> Result<InUse> {
        self.free_completed();
        let Some(read) = self.statistics().and_then(|s| s.read) else {
            let [active, peak] =
                [&self.memory.active, &self.memory.peak].map(|n| n.load(Ordering::Relaxed));
            return Ok(InUse { active, peak: peak.max(active), cache: 0 });
        };
        let mut found = MemoryStatistics { size: COUNTS, ..MemoryStatistics::default() };
        let mut error = std::ptr::null_mut();
        // SAFETY: the device is open, and the struct has its size in it.
        let code = unsafe { read(self.handle, &mut found, &mut error) };
        host_table::check("statistics", code, error)?;
        let [active, peak, cache] =
            [found.active, found.peak, found.cache].map(|n| usize::try_from(n).unwrap_or(0));
        Ok(InUse { active, peak, cache })
    }

    /// Resets the peak to the memory in use.
    pub fn reset_peak(&self) {
        self.free_completed();
        self.memory.peak.store(0, Ordering::Relaxed);
        if let Some(reset) = self.statistics().and_then(|s| s.reset_peak) {
            // SAFETY: the device is open.
            unsafe { reset(self.handle) };
        }
    }

    /// Frees the memory that is kept for reuse.
    pub fn clear_cache(&self) {
        self.free_completed();
        if let Some(clear) = self.statistics().and_then(|s| s.clear_cache) {
            // SAFETY: the device is open.
            unsafe { clear(self.handle) };
        }
    }

    /// Returns a limit. If it is not set, returns the size of the device's memory.
    pub fn limit(&self, which: Limit) -> usize {
        if let Some(get) = self.statistics().and_then(|s| s.get_limit) {
            // SAFETY: the device is open.
            let bytes = unsafe { get(self.handle, which as u32) };
            return usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        match (self.memory.limits[which as usize].load(Ordering::Relaxed), self.info.memory) {
            (usize::MAX, known) if known > 0 => usize::try_from(known).unwrap_or(usize::MAX),
            (set, _) => set,
        }
    }

    /// Sets a limit and returns the former one. If the backend does not implement limits, the host
    /// enforces them.
    pub fn set_limit(&self, which: Limit, bytes: usize) -> Result<usize> {
        if let Some(set) = self.statistics().and_then(|s| s.set_limit) {
            let (mut former, mut error) = (0, std::ptr::null_mut());
            // SAFETY: the device is open, the places are valid.
            let code =
                unsafe { set(self.handle, which as u32, bytes as u64, &mut former, &mut error) };
            host_table::check("set_limit", code, error)?;
            return Ok(usize::try_from(former).unwrap_or(usize::MAX));
        }
        let former = self.limit(which);
        self.memory.limits[which as usize].store(bytes, Ordering::Relaxed);
        Ok(former)
    }

    pub(super) fn lacks(&self, what: &str) -> Error {
        Error::Runtime(format!("backend {} lacks {what}. Update it", self.backend).into())
    }
}

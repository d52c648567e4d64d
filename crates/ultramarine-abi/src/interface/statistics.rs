//! Optional interface: a backend's own counts of memory, and its limits. Without it
//! the host's counts stand in.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.statistics/1";

/// Memory of one device, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// `size_of::<MemoryStatistics>()` of the host, or [`COUNTS`] if it wants no more: a driver may be slow to say what is free.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// In buffers that exist.
    pub active: u64,
    /// The most that `active` was since the start or the last reset.
    pub peak: u64,
    /// Kept for reuse.
    pub cache: u64,
    /// On the device in all; 0 when unknown.
    pub total: u64,
    /// Free on the device; 0 when unknown.
    pub free: u64,
}

/// The size of [`MemoryStatistics`] up to `cache`, all of which a backend knows itself.
pub const COUNTS: u32 = core::mem::offset_of!(MemoryStatistics, total) as u32;

/// Values of the `which` of [`StatisticsInterface::set_limit`].
pub mod limit {
    /// Bytes that buffers and cache should take at most.
    pub const MEMORY: u32 = 0;
    /// Bytes kept for reuse at most.
    pub const CACHE: u32 = 1;
    /// Bytes that may be pinned.
    pub const WIRED: u32 = 2;
}

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StatisticsInterface {
    /// `size_of::<StatisticsInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Fills in the counts.
    pub read: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            statistics: *mut MemoryStatistics,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Sets one of [`limit`]; `former` gets what it was.
    pub set_limit: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            which: u32,
            bytes: u64,
            former: *mut u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) One of [`limit`] as it is set.
    pub get_limit: Option<unsafe extern "C" fn(device: *mut c_void, which: u32) -> u64>,
    /// (any) Starts the peak afresh.
    pub reset_peak: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// (any) Frees what is kept for reuse.
    pub clear_cache: Option<unsafe extern "C" fn(device: *mut c_void)>,
}

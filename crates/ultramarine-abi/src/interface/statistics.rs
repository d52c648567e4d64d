//! Optional interface: a backend's own counts of memory, and its limits. Without it the host
//! reports its own counts.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.statistics/1";

/// Memory of one device, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// `size_of::<MemoryStatistics>()` of the host, or [`COUNTS`] if it needs only the first
    /// fields, because drivers may be slow to count free memory.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Bytes in buffers that exist.
    pub active: u64,
    /// The largest `active` since the start or the last [`StatisticsInterface::reset_peak`].
    pub peak: u64,
    /// Freed bytes that are kept for reuse.
    pub cache: u64,
    /// Bytes of the device's memory; 0: unknown.
    pub total: u64,
    /// Free bytes on the device; 0: unknown.
    pub free: u64,
}

/// The size of [`MemoryStatistics`] up to `cache`. A backend knows these counts without asking the
/// driver.
pub const COUNTS: u32 = core::mem::offset_of!(MemoryStatistics, total) as u32;

/// Limits in bytes: values of `which` of [`StatisticsInterface::set_limit`].
pub mod limit {
    /// For buffers and cache together; a guideline.
    pub const MEMORY: u32 = 0;
    /// For memory kept for reuse.
    pub const CACHE: u32 = 1;
    /// For pinned memory.
    pub const WIRED: u32 = 2;
}

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StatisticsInterface {
    /// `size_of::<StatisticsInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Fills `statistics` up to its size.
    pub read: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            statistics: *mut MemoryStatistics,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Sets one of [`limit`], and `former` to its former value.
    pub set_limit: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            which: u32,
            bytes: u64,
            former: *mut u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Returns one of [`limit`].
    pub get_limit: Option<unsafe extern "C" fn(device: *mut c_void, which: u32) -> u64>,
    /// (any) Sets the peak to the present `active`.
    pub reset_peak: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// (any) Frees the memory that is kept for reuse.
    pub clear_cache: Option<unsafe extern "C" fn(device: *mut c_void)>,
}

//! The backends: each a contract table, reached through nothing else.
//!
//! The CPU backend is linked in and registered like any other; a statically
//! linked GPU backend registers with [`register`]. Nothing is ever unloaded, so
//! device states live for the rest of the process.

mod call;
mod counts;
mod host;
mod kernels;
#[cfg(feature = "loader")]
mod loader;
mod plan;
mod registry;
mod start;
mod strict;
mod turn;

pub(crate) use call::{Exec, Operand};
pub use call::{Stats, reset_stats, stats};
pub(crate) use counts::Way;
pub use counts::{OpCount, op_counts, reset_op_counts};
pub(crate) use plan::{Plan, PlanKey, WordHasher};
pub use registry::{BackendInfo, backend_of, backends, by_name, register};
pub(crate) use registry::{device_count, get, gpus, host};
pub(crate) use strict::may_resort;
pub use strict::{set_strict, strict};

use crate::{
    array::Array,
    device::{Device, DeviceType},
    error::{Error, Result},
    node::Value,
    stream::{Stream, lock},
};
use core::ffi::c_void;
use kernels::{KernelList, Kernels};
use plan::PlanCache;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_abi::{self as abi, Status, status};

/// One open device of a backend.
pub struct DeviceState {
    /// Its global name.
    pub device: Device,
    /// The backend's name.
    pub backend: String,
    table: abi::BackendTable,
    handle: *mut c_void,
    /// The backend's handles of our streams, by index; made at the first use.
    streams: Mutex<HashMap<u32, StreamHandle>>,
    info: abi::DeviceInfo,
    /// What makes plans and runs commands.
    kernels: KernelList,
    /// Whether fused programs are taken.
    fused: bool,
    plans: PlanCache,
    memory: MemoryCounters,
}

/// A backend's stream.
#[derive(Clone, Copy)]
struct StreamHandle(*mut c_void);

// SAFETY: stream handles are usable from any thread, one call at a time.
unsafe impl Send for StreamHandle {}

// SAFETY: the handle is only passed to the backend's functions, which the
// contract lets us call from the threads we call them from.
unsafe impl Send for DeviceState {}
// SAFETY: as above.
unsafe impl Sync for DeviceState {}

/// The host's own count of a device's memory.
#[derive(Debug, Default)]
struct MemoryCounters {
    active: AtomicUsize,
    peak: AtomicUsize,
}

/// The locks of this module, held over a fork.
#[cfg(unix)]
pub(crate) struct Held {
    turn: turn::Held,
}

/// Takes the locks of this module, for the time of a fork.
#[cfg(unix)]
pub(crate) fn hold() -> Held {
    Held { turn: turn::hold() }
}

/// What the child does with them.
#[cfg(unix)]
pub(crate) fn after_fork_in_child(held: Held) {
    turn::after_fork_in_child(held.turn);
}

impl DeviceState {
    /// The state of an open device, for the rest of the process.
    fn leak(
        backend: &start::Started,
        index: u32,
        info: abi::DeviceInfo,
        device: Device,
        handle: *mut c_void,
    ) -> &'static DeviceState {
        let own = Kernels::new(&backend.name, "", 0, backend.table, (handle, index as i32), &info);
        Box::leak(Box::new(DeviceState {
            device,
            backend: backend.name.clone(),
            table: backend.table,
            handle,
            streams: Mutex::default(),
            info,
            kernels: KernelList::new(own),
            fused: own.fused.is_some(),
            plans: PlanCache::default(),
            memory: MemoryCounters::default(),
        }))
    }

    /// Whether its memory is the host's own.
    #[inline]
    pub(crate) fn is_host(&self) -> bool {
        matches!(self.device.kind, DeviceType::Cpu)
    }

    fn description(&self) -> String {
        let bytes: Vec<u8> =
            self.info.name.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether arrays of a dtype can lie in its memory. (A backend that does not say takes
    /// all.)
    pub(crate) fn stores(&self, dtype: crate::Dtype) -> bool {
        self.info.dtypes_storage == 0 || self.info.dtypes_storage >> dtype as u32 & 1 == 1
    }

    /// Most instructions of a fused program; 0 when the backend takes none.
    pub(crate) fn fused_limit(&self) -> usize {
        if self.fused { self.info.fused_max_instructions as usize } else { 0 }
    }

    /// Most inputs of a fused program.
    pub(crate) fn fused_inputs(&self) -> usize {
        self.info.fused_max_inputs as usize
    }

    /// Device memory: its handle, and its address for the host or NULL.
    pub(crate) fn alloc(&self, bytes: usize) -> Result<(*mut c_void, *mut u8)> {
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

    pub(crate) fn free(&self, handle: *mut c_void, bytes: usize) {
        if let Some(free) = self.table.buffer_free {
            // SAFETY: a handle of this device, given back once.
            unsafe { free(self.handle, handle) };
            self.memory.active.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The backend's stream for one of ours; NULL where streams are the host's alone.
    fn stream(&self, stream: Stream) -> Result<*mut c_void> {
        let Some(create) = self.table.stream_create else { return Ok(std::ptr::null_mut()) };
        let mut streams = lock(&self.streams);
        if let Some(found) = streams.get(&stream.index) {
            return Ok(found.0);
        }
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the places are valid; the device is open.
        let code = unsafe { create(self.handle, &mut handle, &mut error) };
        host::check("stream_create", code, error)?;
        streams.insert(stream.index, StreamHandle(handle));
        Ok(handle)
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Runtime(format!("backend {} lacks {what}", self.backend))
    }
}

/// The array's value in host memory: its own, or a mirror.
///
/// # Errors
/// When the copy from the device fails.
pub(crate) fn host_value(array: &Array) -> Result<Value> {
    let value = array.value()?;
    call::on_device(value, host())
}

#[cfg(feature = "loader")]
use loader::{autoload, hint};

/// Loads what can be found, at the first need of a device.
#[cfg(not(feature = "loader"))]
fn autoload() {}

/// What to do where a device is missing.
#[cfg(not(feature = "loader"))]
fn hint() -> String {
    " This program was built without the loader: it has only backends that are linked in."
        .to_owned()
}

/// Whether a status means "try another way".
fn is_refusal(code: Status) -> bool {
    matches!(code, status::UNSUPPORTED | status::NEEDS_CONTIGUOUS)
}

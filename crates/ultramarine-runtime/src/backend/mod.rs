//! The backends. Each is a table of the contract, and is called only through this table.
//!
//! The CPU backend is linked in and registered like any other. A statically linked GPU backend
//! registers with [`register`]. Backends are never unloaded, so device states live for the rest of
//! the process.

pub mod buffer;
mod call;
mod collective;
mod counts;
mod device_memory;
mod device_stream;
pub mod executable;
mod foreign;
mod kernels;
mod parts;
mod pending_free;
mod plan;
pub mod registration;
pub mod registry;
pub mod shutdown;
pub mod start;
mod stats;
mod strict;
mod timing;
mod transfer;
mod upload;
mod user_kernel;
pub mod value;

pub use call::{Exec, Operand};
pub use collective::{CollectiveGroup, CollectiveWork, Collectives};
pub use counts::{Dispatch, OpCount, op_counts, reset_op_counts};
pub use device_memory::Limit;
pub use device_stream::DeviceStream;
pub use pending_free::PendingFree;
pub use plan::{Plan, PlanKey, WordHasher, words_of};
pub use registry::{BackendInfo, backends, by_name, gpus, host, register};
pub use stats::{Stats, reset_stats, stats};
pub use strict::{may_fall_back, set_strict, strict};
pub use timing::{Mark, Marks, Range};
pub use transfer::{copy_buffer, on_device};
pub use upload::PART;
pub use user_kernel::{Argument, KernelProperties, KernelSource, UserKernel, show_languages};

use crate::device::{Device, DeviceType};
use crate::validation_layer;
use core::ffi::{CStr, c_void};
use device_memory::{MemoryCounters, StreamMemory};
use device_stream::Streams;
use executable::ReplayFunctions;
use kernels::{KernelList, Kernels};
use plan::PlanCache;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, OnceLock};
use timing::Timing;
use ultramarine_abi::{self as abi, Status, dlpack::DLDevice, status};
use upload::Upload;

/// An open device of a backend: its kernel tables, plans, streams and memory. The registry keeps it
/// until the process ends; [`crate::devices::get`] finds it.
pub struct DeviceState {
    /// The device's global name.
    pub device: Device,
    /// The device in DLPack's terms.
    pub dl: DLDevice,
    /// The backend's name.
    pub backend: String,
    table: abi::BackendTable,
    handle: *mut c_void,
    streams: Streams,
    /// Serialises copies without a stream.
    copies: Mutex<()>,
    /// Bytes of dropped buffers that commands may still use.
    pending_bytes: AtomicUsize,
    info: abi::DeviceInfo,
    /// The tables that make plans and run commands.
    kernels: KernelList,
    /// True if the device takes fused programs.
    fused: bool,
    plans: PlanCache,
    /// Kernels that users gave in source form.
    user_kernels: user_kernel::UserKernels,
    memory: MemoryCounters,
    /// Freeing memory in the order of streams, if the backend supports it and runs ahead.
    stream_memory: Option<StreamMemory>,
    /// Recordings of commands, if the backend supports them.
    replay: Option<ReplayFunctions>,
    /// Timestamps, if the backend supports them.
    timing: Option<Timing>,
    /// Memory for uploads, if the backend lends it.
    upload: Option<Upload>,
}

// SAFETY: the handle is only passed to the backend's functions, and the contract allows calls from
// the threads that make them.
unsafe impl Send for DeviceState {}
// SAFETY: as above.
unsafe impl Sync for DeviceState {}

impl DeviceState {
    /// Makes the state of an open device. It is leaked, so that it lives for the rest of the
    /// process.
    fn leak(
        backend: &start::Started,
        index: u32,
        info: abi::DeviceInfo,
        device: Device,
        handle: *mut c_void,
    ) -> &'static DeviceState {
        if device.kind == DeviceType::Gpu {
            shutdown::register();
        }
        let own = Kernels::new(&backend.name, "", 0, backend.table, (handle, index as i32), &info);
        let dl = DLDevice { device_type: backend.table.device_type, device_id: index as i32 };
        Box::leak(Box::new(DeviceState {
            device,
            dl,
            backend: backend.name.clone(),
            table: backend.table,
            handle,
            streams: Streams::default(),
            copies: Mutex::default(),
            pending_bytes: AtomicUsize::new(0),
            info,
            kernels: KernelList::new(own),
            fused: own.fused.is_some(),
            plans: PlanCache::default(),
            user_kernels: user_kernel::UserKernels::default(),
            memory: MemoryCounters::default(),
            stream_memory: StreamMemory::of(&backend.table, info.synchronous != 0),
            replay: ReplayFunctions::of(&backend.table).filter(|_| device.kind == DeviceType::Gpu),
            timing: Timing::of(&backend.table),
            upload: Upload::of(&backend.table),
        }))
    }

    /// Returns true if the device's memory is the host's own.
    #[inline]
    pub fn is_host(&self) -> bool {
        matches!(self.device.kind, DeviceType::Cpu)
    }

    /// Returns true if the device has the host's built-in kernels, without an overlay or a
    /// validation layer. These kernels have properties that the contract does not promise.
    #[inline]
    pub fn has_built_in_kernels(&self) -> bool {
        static VALIDATED: OnceLock<bool> = OnceLock::new();
        self.is_host()
            && self.kernels.alone().is_some()
            && !*VALIDATED.get_or_init(validation_layer::is_enabled)
    }

    fn description(&self) -> String {
        let bytes: Vec<u8> =
            self.info.name.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the properties that the device declares: its name, the bytes of its memory and of
    /// the largest buffer (0: unknown).
    #[inline]
    pub fn properties(&self) -> (String, u64, u64) {
        (self.description(), self.info.memory, self.info.max_buffer)
    }

    /// Returns true if the device's memory can hold arrays of a dtype. A backend that does not
    /// declare its dtypes accepts all.
    #[inline]
    pub fn stores(&self, dtype: crate::Dtype) -> bool {
        // Backends see storage dtypes as bytes.
        let dtype = if dtype.is_storage() { crate::Dtype::Uint8 } else { dtype };
        self.info.dtypes_storage == 0 || self.info.dtypes_storage >> dtype as u32 & 1 == 1
    }

    /// Returns the most instructions of a fused program; 0 if the backend takes none.
    #[inline]
    pub fn fused_limit(&self) -> usize {
        if self.fused { self.info.fused_max_instructions as usize } else { 0 }
    }

    /// Returns true if fused programs with an anchor may be used. All of the device's tables have
    /// to take them: otherwise an overlay's own kernel for the anchor operation would not be asked.
    #[inline]
    pub fn takes_anchors(&self) -> bool {
        self.kernels.get().iter().all(|k| k.fused.is_some() && k.anchored.is_some())
    }

    /// Returns the most inputs of a fused program.
    #[inline]
    pub fn fused_inputs(&self) -> usize {
        self.info.fused_max_inputs as usize
    }

    /// Returns true if the backend records commands and can replay them.
    pub fn records(&self) -> bool {
        self.replay.is_some()
    }

    /// Returns true if commands carry the events that their inputs have to wait for.
    #[inline]
    pub fn waits_in_commands(&self) -> bool {
        self.info.flags & abi::device_flag::WAITS_IN_COMMANDS != 0
    }

    /// Returns true if equal commands give bitwise identical results.
    #[inline]
    pub fn is_deterministic(&self) -> bool {
        self.info.flags & abi::device_flag::DETERMINISTIC != 0
    }

    /// Returns the table of an optional interface, if the device's backend has it.
    fn interface<T: Copy>(&self, id: &CStr) -> Option<T> {
        interface_of(&self.table, id)
    }
}

/// Returns the table of an optional interface, if a backend has it.
fn interface_of<T: Copy>(table: &abi::BackendTable, id: &CStr) -> Option<T> {
    let interface = table.interface?;
    // SAFETY: the id is NUL-terminated. The answer is NULL or a static struct that begins with its
    // size, and an all-zero interface table is valid.
    unsafe { abi::read_sized(interface(table.backend, id.as_ptr()) as *const T) }
}

/// Returns true for a status after which another candidate may be tried.
fn is_refusal(code: Status) -> bool {
    matches!(code, status::UNSUPPORTED | status::NEEDS_CONTIGUOUS)
}

//! The backends: each a contract table, reached through nothing else.
//!
//! The CPU backend is linked in and registered like any other; a statically
//! linked GPU backend registers with [`register`]. Nothing is ever unloaded, so
//! device states live for the rest of the process.

mod call;
mod counts;
mod host;
mod kernels;
mod plan;

pub(crate) use call::{Exec, Operand};
pub use call::{Stats, reset_stats, stats};
pub use counts::{OpCount, op_counts, reset_op_counts};
pub(crate) use kernels::overlay;
#[allow(unused_imports, reason = "for the loader's list")]
pub(crate) use kernels::overlays;
pub(crate) use plan::{Plan, PlanKey, WordHasher};

use crate::{
    array::Array,
    device::{Device, DeviceType},
    error::{Error, Result},
    node::Value,
    stream::{Stream, lock},
};
use core::ffi::{CStr, c_void};
use kernels::{KernelList, Kernels};
use plan::PlanCache;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};
use ultramarine_abi::{self as abi, Status, dlpack::device_type, status};

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

/// What is known of one loaded backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Name, such as `cpu`.
    pub name: String,
    /// The devices it serves.
    pub devices: Vec<Device>,
    /// What each device calls itself.
    pub descriptions: Vec<String>,
}

static GPUS: RwLock<Vec<&'static DeviceState>> = RwLock::new(Vec::new());
static HOST: OnceLock<&'static DeviceState> = OnceLock::new();

/// The host's device.
#[inline]
pub(crate) fn host() -> &'static DeviceState {
    HOST.get_or_init(|| {
        match start(ultramarine_cpu::backend_init).and_then(|b| open(b, |_| Device::CPU)) {
            Ok(devices) if !devices.is_empty() => devices[0],
            // The linked-in backend cannot fail to open; without it nothing works.
            Ok(_) => unreachable!("the CPU backend has no device"),
            Err(error) => unreachable!("the CPU backend does not open: {error}"),
        }
    })
}

fn gpus() -> std::sync::RwLockReadGuard<'static, Vec<&'static DeviceState>> {
    GPUS.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The state of a device.
///
/// # Errors
/// [`Error::Value`] when no loaded backend has it.
pub(crate) fn get(device: Device) -> Result<&'static DeviceState> {
    if device == Device::CPU {
        return Ok(host());
    }
    let found = match device.kind {
        DeviceType::Gpu => gpus().get(device.index as usize).copied(),
        DeviceType::Cpu => None,
    };
    found.ok_or_else(|| {
        let loaded: Vec<String> = backends()
            .iter()
            .flat_map(|b| b.devices.iter().map(move |d| format!("{d} ({})", b.name)))
            .collect();
        Error::Value(format!(
            "No backend loaded for device {device}; loaded: {}.",
            loaded.join(", ")
        ))
    })
}

/// Number of devices of a type.
pub(crate) fn device_count(kind: DeviceType) -> usize {
    match kind {
        DeviceType::Cpu => 1,
        DeviceType::Gpu => gpus().len(),
    }
}

/// The loaded backends, the CPU first.
pub fn backends() -> Vec<BackendInfo> {
    let mut out: Vec<BackendInfo> = Vec::new();
    let all = std::iter::once(host()).chain(gpus().iter().copied().collect::<Vec<_>>());
    for state in all {
        let description = state.description();
        match out.iter_mut().find(|b| b.name == state.backend) {
            Some(entry) => {
                entry.devices.push(state.device);
                entry.descriptions.push(description);
            }
            None => out.push(BackendInfo {
                name: state.backend.clone(),
                devices: vec![state.device],
                descriptions: vec![description],
            }),
        }
    }
    out
}

/// Registers a backend that is linked into the program: its devices follow those
/// registered before it. One of device type CPU adds no device: it overlays the kernels
/// of cpu:0.
///
/// # Safety
/// `init` obeys the contract of [`abi::BackendInit`].
///
/// # Errors
/// [`Error::Runtime`] with the backend's own words when it does not start, or when
/// its version of the contract is not ours.
pub unsafe fn register(init: abi::BackendInit) -> Result<Vec<Device>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = lock(&ONE_AT_A_TIME);
    let first = gpus().len();
    let started = start(init)?;
    if started.0.device_type == device_type::CPU {
        overlay(started.0, &started.1, "", abi::DEFAULT_SCORE)?;
        return Ok(vec![Device::CPU]);
    }
    let opened = open(started, |i| Device::gpu((first + i) as u16))?;
    let devices = opened.iter().map(|d| d.device).collect();
    GPUS.write().unwrap_or_else(std::sync::PoisonError::into_inner).extend(opened);
    Ok(devices)
}

/// A started backend: its table, its name.
fn start(init: abi::BackendInit) -> Result<(abi::BackendTable, String)> {
    // SAFETY: all-zero is a valid table: no functions, NULL pointers.
    let mut table: abi::BackendTable = unsafe { std::mem::zeroed() };
    table.size = size_of::<abi::BackendTable>() as u32;
    let mut error = std::ptr::null_mut();
    // SAFETY: both tables are valid, and the host's lives for ever.
    let code = unsafe { init(host::table(), &mut table, &mut error) };
    host::check("init", code, error)?;
    if u32::from(table.abi_major) != abi::ABI_MAJOR {
        return Err(Error::Runtime(format!(
            "the backend speaks contract {}.{}, this is {}.{}",
            table.abi_major,
            table.abi_minor,
            abi::ABI_MAJOR,
            abi::ABI_MINOR
        )));
    }
    let backend = if table.name.is_null() {
        "unnamed".to_string()
    } else {
        // SAFETY: the name is a static NUL-terminated string by contract.
        unsafe { CStr::from_ptr(table.name) }.to_string_lossy().into_owned()
    };
    Ok((table, backend))
}

/// Opens the devices of a started backend.
fn open(
    (table, backend): (abi::BackendTable, String),
    name: impl Fn(usize) -> Device,
) -> Result<Vec<&'static DeviceState>> {
    let missing = || Error::Runtime(format!("backend {backend} lacks a required function"));
    let (Some(count), Some(info_of), Some(open)) =
        (table.device_count, table.device_info, table.device_open)
    else {
        return Err(missing());
    };
    if table.prepare.is_none() || table.submit.is_none() {
        return Err(missing());
    }
    // SAFETY: the backend's own function with its own pointer.
    let n = unsafe { count(table.backend) };
    let mut devices = Vec::new();
    for i in 0..n {
        // SAFETY: all-zero is a valid DeviceInfo.
        let mut info: abi::DeviceInfo = unsafe { std::mem::zeroed() };
        info.size = size_of::<abi::DeviceInfo>() as u32;
        let mut handle = std::ptr::null_mut();
        let mut error = std::ptr::null_mut();
        // SAFETY: places for the answers are valid, the index is below the count.
        let code = unsafe { info_of(table.backend, i, &mut info, &mut error) };
        host::check("device_info", code, error)?;
        // SAFETY: as above.
        let code = unsafe { open(table.backend, i, &mut handle, &mut error) };
        host::check("device_open", code, error)?;
        let own = Kernels::new(&backend, "", 0, table, (handle, i as i32), &info);
        let state: &'static DeviceState = Box::leak(Box::new(DeviceState {
            device: name(i as usize),
            backend: backend.clone(),
            table,
            handle,
            streams: Mutex::default(),
            info,
            kernels: KernelList::new(own),
            fused: own.fused.is_some(),
            plans: PlanCache::default(),
            memory: MemoryCounters::default(),
        }));
        devices.push(state);
    }
    Ok(devices)
}

impl DeviceState {
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

/// Whether a status means "try another way".
fn is_refusal(code: Status) -> bool {
    matches!(code, status::UNSUPPORTED | status::NEEDS_CONTIGUOUS)
}

//! A small host, the emulated driver, and tests that run in processes of their own.

use core::ffi::{c_char, c_void};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use ultramarine_abi::helper;
use ultramarine_abi::{ABI_MAJOR, ABI_MINOR, BackendTable, Error, HostTable, Status, status};
use ultramarine_cuda::backend::Cuda;
use ultramarine_test_support::{is_child, run_child, test_of};

/// An error as the backend told it.
#[derive(Debug)]
pub struct ReportedError {
    pub code: Status,
    pub text: String,
}

type Result<T> = std::result::Result<T, ReportedError>;

unsafe extern "C" fn error_new(
    _host: *mut c_void,
    code: Status,
    text: *const c_char,
    length: u64,
) -> *mut Error {
    // SAFETY: the backend's text.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    let text = String::from_utf8_lossy(bytes).into_owned();
    Box::into_raw(Box::new(ReportedError { code, text })).cast()
}

/// Calls an entry, and takes the error that it made.
pub fn call(entry: impl FnOnce(*mut *mut Error) -> Status) -> Result<()> {
    let mut error = std::ptr::null_mut();
    let code = entry(&mut error);
    if error.is_null() {
        assert_eq!(code, status::OK, "a failure without an error");
        return Ok(());
    }
    // SAFETY: made by `error_new` of a box.
    let reported = *unsafe { Box::from_raw(error.cast::<ReportedError>()) };
    assert_eq!(code, reported.code);
    Err(reported)
}

/// An open device, by the backend's table.
pub struct Device {
    pub table: BackendTable,
    pub handle: *mut c_void,
}

macro_rules! entry {
    ($device:expr, $field:ident $(, $argument:expr)*) => {{
        let entry = $device.table.$field.expect(stringify!($field));
        // SAFETY: handles of this device, places that are valid.
        call(|error| unsafe { entry($device.handle $(, $argument)*, error) })
    }};
}

macro_rules! release {
    ($device:expr, $field:ident, $handle:expr) => {
        // SAFETY: a handle of this device, given back once.
        unsafe { $device.table.$field.expect(stringify!($field))($device.handle, $handle) }
    };
}

impl Device {
    /// The backend's table.
    pub fn init() -> Result<BackendTable> {
        // SAFETY: all-zero bytes are tables without functions.
        let (mut host, mut table) = unsafe { std::mem::zeroed::<(HostTable, BackendTable)>() };
        host.size = size_of::<HostTable>() as u32;
        (host.abi_major, host.abi_minor) = (ABI_MAJOR as u16, ABI_MINOR as u16);
        host.error_new = Some(error_new);
        table.size = size_of::<BackendTable>() as u32;
        // SAFETY: the host's table lives as long as the process.
        call(|error| unsafe {
            helper::init::<Cuda>(c"cuda", 2, Box::leak(Box::new(host)), &mut table, error)
        })
        .map(|()| table)
    }

    pub fn open() -> Device {
        let table = Device::init().expect("init");
        let mut handle = std::ptr::null_mut();
        let open = table.device_open.expect("device_open");
        // SAFETY: the backend's function and pointer.
        call(|error| unsafe { open(table.backend, 0, &mut handle, error) }).expect("device_open");
        Device { table, handle }
    }

    pub fn alloc(&self, bytes: u64) -> Result<*mut c_void> {
        let mut buffer = std::ptr::null_mut();
        entry!(self, buffer_alloc, bytes, &mut buffer).map(|()| buffer)
    }

    pub fn free(&self, buffer: *mut c_void) {
        release!(self, buffer_free, buffer);
    }

    pub fn write(&self, buffer: *mut c_void, bytes: &[u8]) -> Result<()> {
        self.upload(std::ptr::null_mut(), buffer, 0, bytes)
    }

    pub fn upload(
        &self,
        stream: *mut c_void,
        buffer: *mut c_void,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let (source, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
        entry!(self, copy_to_device, stream, buffer, offset, source, length)
    }

    pub fn read(&self, stream: *mut c_void, buffer: *mut c_void, bytes: usize) -> Result<Vec<u8>> {
        let mut target = vec![0u8; bytes];
        let place = target.as_mut_ptr().cast();
        entry!(self, copy_to_host, stream, buffer, 0, place, bytes as u64).map(|()| target)
    }

    pub fn stream(&self) -> Result<*mut c_void> {
        let mut stream = std::ptr::null_mut();
        entry!(self, stream_create, &mut stream).map(|()| stream)
    }

    pub fn destroy_stream(&self, stream: *mut c_void) {
        release!(self, stream_destroy, stream);
    }

    pub fn synchronize(&self, stream: *mut c_void) -> Result<()> {
        entry!(self, stream_synchronize, stream)
    }

    pub fn event(&self) -> Result<*mut c_void> {
        let mut event = std::ptr::null_mut();
        entry!(self, event_create, &mut event).map(|()| event)
    }

    pub fn destroy_event(&self, event: *mut c_void) {
        release!(self, event_destroy, event);
    }

    pub fn record(&self, stream: *mut c_void, event: *mut c_void, value: u64) -> Result<()> {
        entry!(self, event_record, stream, event, value)
    }

    pub fn wait_stream(&self, stream: *mut c_void, event: *mut c_void, value: u64) -> Result<()> {
        entry!(self, event_wait_stream, stream, event, value)
    }

    pub fn wait_host(&self, event: *mut c_void, value: u64) -> Result<()> {
        entry!(self, event_wait_host, event, value)
    }

    /// Submits commands without tensors.
    pub fn submit(&self, stream: *mut c_void, plans: &[*mut c_void]) -> Result<()> {
        let command = |plan: &*mut c_void| {
            // SAFETY: all-zero bytes are a command of nothing.
            let mut command: ultramarine_abi::Command = unsafe { std::mem::zeroed() };
            command.size = size_of::<ultramarine_abi::Command>() as u32;
            command.tensor_stride = size_of::<ultramarine_abi::Tensor>() as u32;
            command.plan = *plan;
            command
        };
        let commands: Vec<_> = plans.iter().map(command).collect();
        entry!(self, submit, stream, commands.as_ptr(), commands.len() as u32)
    }

    /// Sets how many bytes may be pinned; returns what it was.
    pub fn set_pinned_limit(&self, bytes: u64) -> Result<u64> {
        use ultramarine_abi::interface::statistics::{INTERFACE, StatisticsInterface, limit};
        let ask = self.table.interface.expect("interface");
        // SAFETY: the backend's function and pointer; the table is static.
        let statistics = unsafe {
            ask(self.table.backend, INTERFACE.as_ptr()).cast::<StatisticsInterface>().as_ref()
        };
        let set = statistics.and_then(|s| s.set_limit).expect("set_limit");
        let mut former = 0;
        // SAFETY: an open device, and a place for the answer.
        call(|error| unsafe { set(self.handle, limit::WIRED, bytes, &mut former, error) })
            .map(|()| former)
    }

    pub fn close(self) {
        // SAFETY: opened once, closed once.
        unsafe { self.table.device_close.expect("device_close")(self.handle) }
    }
}

/// The emulated driver and NVRTC, made if there is a compiler for them.
pub fn emulator() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let out = here.join("../../target/emulated-cuda");
        let made = Command::new("make")
            .args(["--quiet", &format!("OUT={}", out.display())])
            .current_dir(here.join("../../testing/cuda-emulator"))
            .status();
        made.is_ok_and(|status| status.success()).then_some(out)
    });
    made.as_deref()
}

/// Runs the test that `body` stands in, on the emulated driver with these variables, in a process of its
/// own: `body` there, and here the wait for it. One such process runs at a time.
#[track_caller]
pub fn apart<F: FnOnce()>(variables: &[(&str, &str)], body: F) {
    let test = test_of(std::any::type_name::<F>());
    if is_child(test) {
        return body();
    }
    let Some(libraries) = emulator() else {
        eprintln!("skipped: no compiler makes the emulated driver");
        return;
    };
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let cache = libraries.join("../cuda-cache");
    let common = [
        ("ULTRAMARINE_CUDA_LIBRARIES", libraries.as_os_str()),
        ("ULTRAMARINE_CUDA_DEVICES", OsStr::new("1")),
        ("ULTRAMARINE_CACHE_DIR", cache.as_os_str()),
    ];
    let own = variables.iter().map(|(name, value)| (*name, OsStr::new(value)));
    run_child(test, &common.into_iter().chain(own).collect::<Vec<_>>());
}

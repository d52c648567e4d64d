//! A safe wrapper of the host's table.

use super::{Failure, Result};
use crate::{Error, HostTable, Status, read_sized};
use core::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Severity of a log message. The host shows warnings and errors, unless `ULTRAMARINE_LOG` is set
/// to another level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// Something failed.
    Error = 0,
    /// Something is wrong, but nothing has failed.
    Warning = 1,
    /// Information for users.
    Info = 2,
    /// Information for developers.
    Debug = 3,
}

/// A copy of the host's table, which is valid as long as the process lives. If the host lacks a
/// function, the method does nothing or does the work itself.
#[derive(Clone, Copy)]
pub struct Host {
    table: HostTable,
}

impl Host {
    /// # Safety
    /// `table` is NULL or points at a host's table whose functions may be called from any
    /// thread for as long as the process lives.
    pub unsafe fn new(table: *const HostTable) -> Option<Self> {
        // SAFETY: by this function's contract; zero is a valid table.
        unsafe { read_sized(table) }.map(|table| Self { table })
    }

    /// Returns the bare table, for functions that have no method here.
    pub fn table(&self) -> &HostTable {
        &self.table
    }

    /// Logs a text at a level.
    pub fn log(&self, level: Level, text: &str) {
        if let Some(log) = self.table.log {
            // SAFETY: the host's function with the host's pointer; the text is valid.
            unsafe {
                log(
                    self.table.host,
                    level as u32,
                    text.as_ptr().cast::<c_char>(),
                    text.len() as u64,
                )
            };
        }
    }

    /// Makes an error object from a status and a text. Returns NULL if the host cannot make one.
    /// Once an entry point has returned it, the host owns it.
    pub fn error(&self, code: Status, text: &str) -> *mut Error {
        match self.table.error_new {
            // SAFETY: as in `log`.
            Some(new) => unsafe {
                new(self.table.host, code, text.as_ptr().cast::<c_char>(), text.len() as u64)
            },
            None => core::ptr::null_mut(),
        }
    }

    /// Marks the error of a submit as that of command `index` of its list.
    ///
    /// # Safety
    /// `error` is NULL, or [`Host::error`] of this host made it and it has not been returned to the
    /// host yet.
    pub unsafe fn error_command(&self, error: *mut Error, index: u32) {
        if let (Some(say), false) = (self.table.error_command, error.is_null()) {
            // SAFETY: the host's function with the host's pointer, and by this function's contract.
            unsafe { say(self.table.host, error, index) };
        }
    }

    /// Allocates host memory, 256-byte aligned and zeroed. It is freed when the result is dropped.
    ///
    /// # Errors
    /// [`Failure::out_of_memory`], and [`Failure::unsupported`] if the host lends no memory.
    pub fn alloc(&self, bytes: u64) -> Result<HostMemory> {
        let (Some(alloc), Some(_)) = (self.table.alloc, self.table.free) else {
            return Err(Failure::unsupported("the host does not lend memory"));
        };
        let length = usize::try_from(bytes).map_err(|_| Failure::out_of_memory(bytes))?;
        // SAFETY: the host's function with the host's pointer.
        let data = unsafe { alloc(self.table.host, bytes.max(1)) }.cast::<u8>();
        if data.is_null() {
            return Err(Failure::out_of_memory(bytes));
        }
        // SAFETY: the host returned that many bytes.
        unsafe { data.write_bytes(0, length) };
        Ok(HostMemory { host: *self, data, bytes: length })
    }

    /// Returns the most threads that [`Host::parallel_for`] uses, the calling one included.
    pub fn thread_count(&self) -> u32 {
        // SAFETY: the host's function with the host's pointer.
        self.table.thread_count.map_or(1, |f| unsafe { f(self.table.host) }).max(1)
    }

    /// Calls `body(i)` for every `i < count`, on the host's threads and the calling thread. Returns
    /// when all calls have ended. Nested loops run on the calling thread alone.
    ///
    /// # Errors
    /// The first panic of a body, as a [`Failure`]. The other calls are made nevertheless.
    pub fn parallel_for<F: Fn(u64) + Sync>(&self, count: u64, body: F) -> Result<()> {
        struct Shared<'a, F> {
            body: &'a F,
            first: Mutex<Option<Failure>>,
        }
        unsafe extern "C" fn call<F: Fn(u64) + Sync>(context: *mut c_void, index: u64) {
            // SAFETY: the context of this loop, which outlives the call.
            let shared = unsafe { &*context.cast::<Shared<'_, F>>() };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (shared.body)(index))) {
                let failure = Failure::of_panic(payload);
                let mut first = shared.first.lock().unwrap_or_else(|e| e.into_inner());
                first.get_or_insert(failure);
            }
        }
        let shared = Shared { body: &body, first: Mutex::new(None) };
        let context = (&raw const shared).cast_mut().cast::<c_void>();
        match self.table.parallel_for {
            Some(run) if count > 1 => {
                // SAFETY: `call` never unwinds, and `shared` lives until the loop returns. The body
                // is Sync, so many threads may call it.
                unsafe { run(self.table.host, count, call::<F>, context) }
            }
            _ => {
                for index in 0..count {
                    // SAFETY: as above, on this thread.
                    unsafe { call::<F>(context, index) };
                }
            }
        }
        match shared.first.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

/// Memory of the host. Dropping this frees it. Any code that has its address may change its
/// content, so it is accessed only through pointers.
pub struct HostMemory {
    host: Host,
    data: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory, accessed only through raw pointers.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Returns the address of its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.data
    }

    /// Returns its size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns true if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the address of `bytes` bytes from `offset` on.
    fn part(&self, offset: u64, bytes: usize) -> Result<*mut u8> {
        let start = usize::try_from(offset)
            .ok()
            .filter(|start| start.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        match start {
            Some(start) => Ok(self.data.wrapping_add(start)),
            None => Err(Failure::invalid(format!(
                "a copy of {bytes} bytes at {offset} reaches outside the buffer of {}",
                self.bytes
            ))),
        }
    }

    /// Copies `source` to `offset`. It implements [`SyncDevice::upload`](super::SyncDevice::upload)
    /// for this memory.
    ///
    /// # Errors
    /// [`crate::status::INVALID`] if the range is not inside of the memory.
    ///
    /// # Safety
    /// Nothing else uses that part meanwhile. (The host guarantees this in calls of a backend.)
    pub unsafe fn upload(&self, offset: u64, source: &[u8]) -> Result<()> {
        let to = self.part(offset, source.len())?;
        // SAFETY: the memory has that many bytes, and the caller promises exclusive use.
        unsafe { to.copy_from_nonoverlapping(source.as_ptr(), source.len()) };
        Ok(())
    }

    /// Copies the bytes at `offset` to `target`.
    ///
    /// # Errors
    /// [`crate::status::INVALID`] if the range is not inside of the memory.
    ///
    /// # Safety
    /// Nothing writes to that part meanwhile.
    pub unsafe fn download(&self, offset: u64, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        let from = self.part(offset, target.len())?;
        // SAFETY: as in `upload`.
        unsafe { target.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from, target.len()) };
        Ok(())
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(free) = self.host.table.free {
            // SAFETY: `alloc` returned this memory, and it is freed once.
            unsafe { free(self.host.table.host, self.data.cast()) };
        }
    }
}

/// The methods for buffers of an `impl SyncDevice`, for a device whose buffers are memory of the
/// host: `host_memory_buffers!(field)`, where `field` of the device is its [`Host`].
#[macro_export]
macro_rules! host_memory_buffers {
    ($host:tt) => {
        type Buffer = $crate::helper::HostMemory;

        fn alloc(&self, bytes: u64) -> $crate::helper::Result<Self::Buffer> {
            self.$host.alloc(bytes)
        }

        fn host_pointer(&self, buffer: &Self::Buffer) -> *mut u8 {
            buffer.as_ptr()
        }

        fn upload(
            &self,
            buffer: &Self::Buffer,
            offset: u64,
            source: &[u8],
        ) -> $crate::helper::Result<()> {
            // SAFETY: the host calls it for memory that nothing else uses.
            unsafe { buffer.upload(offset, source) }
        }

        fn download(
            &self,
            buffer: &Self::Buffer,
            offset: u64,
            target: &mut [::std::mem::MaybeUninit<u8>],
        ) -> $crate::helper::Result<()> {
            // SAFETY: as in `upload`.
            unsafe { buffer.download(offset, target) }
        }
    };
}

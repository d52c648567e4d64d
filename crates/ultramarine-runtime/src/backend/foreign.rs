//! Memory of other libraries, through a backend's interface `ultramarine.memory/1`.

use super::{DeviceState, DeviceStream, shutdown};
use crate::backend::buffer::{Buffer, Use};
use crate::error::{Error, Result};
use crate::host_table;
use core::ffi::c_void;
use ultramarine_abi::interface::memory::{self, ForeignMemory, MemoryInterface};
use ultramarine_abi::{Status, status};

/// Returns the name of a kind of memory for errors.
fn kind_name(kind: u32) -> &'static str {
    match kind {
        memory::kind::HOST => "host memory",
        memory::kind::DEVICE_POINTER => "device pointers",
        memory::kind::OPAQUE_FD => "file descriptors",
        memory::kind::MTL_BUFFER => "MTLBuffers",
        memory::kind::CL_MEM => "cl_mem objects",
        _ => "memory of an unknown kind",
    }
}

impl DeviceState {
    /// Returns the backend's interface for memory of other libraries, if it may be called now.
    pub fn memory_interface(&self) -> Option<MemoryInterface> {
        shutdown::ended().is_none().then(|| self.interface(memory::INTERFACE))?
    }

    /// Makes a buffer from memory of another library. Returns its handle, and its address for the
    /// host or NULL. If the import succeeds, the backend calls `release` when the buffer is freed.
    ///
    /// # Errors
    /// [`Error::BufferDevice`] if the backend does not accept the memory.
    pub fn import(&self, block: &ForeignMemory) -> Result<(*mut c_void, *mut u8)> {
        shutdown::check(self)?;
        let import = self.memory_interface().filter(|i| i.imports >> block.kind & 1 == 1);
        let Some(import) = import.and_then(|i| i.import) else {
            return Err(self.no_interchange("from_dlpack", "import", block.kind));
        };
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the device is open; the block says its size and is read during the call.
        let code = unsafe { import(self.handle, block, &mut handle, &mut error) };
        self.explain("from_dlpack", code, host_table::check("import", code, error))?;
        let pointer = match self.table.buffer_host_pointer {
            // SAFETY: the handle was just made by this device.
            Some(f) => unsafe { f(self.handle, handle) as *mut u8 },
            None => std::ptr::null_mut(),
        };
        Ok((handle, pointer))
    }

    /// Describes a buffer as memory of a kind. The caller keeps the buffer alive and calls
    /// `release` afterwards.
    ///
    /// # Errors
    /// [`Error::BufferDevice`] if the backend does not export memory of this kind.
    pub fn export(&self, buffer: &Buffer, kind: u32) -> Result<ForeignMemory> {
        shutdown::check(self)?;
        let export = self.memory_interface().filter(|i| i.exports >> kind & 1 == 1);
        let Some(export) = export.and_then(|i| i.export) else {
            return Err(self.no_interchange("__dlpack__", "export", kind));
        };
        // SAFETY: all-zero is a valid description of memory.
        let mut block: ForeignMemory = unsafe { std::mem::zeroed() };
        block.size = size_of::<ForeignMemory>() as u32;
        let mut error = std::ptr::null_mut();
        // SAFETY: the device is open, the handle is its own, and the struct has its size in it.
        let code = unsafe { export(self.handle, buffer.handle(), kind, &mut block, &mut error) };
        self.explain("__dlpack__", code, host_table::check("export", code, error))?;
        Ok(block)
    }

    /// Keeps a consumer's stream alive. Returns `None` if the backend cannot do this.
    ///
    /// # Errors
    /// Those of the backend, if the handle is not a stream of its device.
    pub fn retain_foreign(&'static self, foreign: u64) -> Result<Option<RetainedStream>> {
        shutdown::check(self)?;
        let Some(MemoryInterface {
            retain_foreign: Some(retain), release_foreign: Some(_), ..
        }) = self.memory_interface()
        else {
            return Ok(None);
        };
        let mut error = std::ptr::null_mut();
        // SAFETY: the device is open, and the consumer named a stream of its own.
        let code = unsafe { retain(self.handle, foreign, &mut error) };
        host_table::check("retain_foreign", code, error)?;
        Ok(Some(RetainedStream { device: self, native: foreign }))
    }

    #[cold]
    fn no_interchange(&self, op: &str, what: &str, kind: u32) -> Error {
        let (backend, device, kind) = (&self.backend, self.device, kind_name(kind));
        Error::buffer_device(
            op,
            format!(
                "Backend {backend} ({device}) cannot {what} {kind}. Copy the array to the CPU first."
            ),
        )
    }

    /// Converts the backend's errors about memory to errors of the device, unless memory ran out.
    fn explain(&self, op: &str, code: Status, outcome: Result<()>) -> Result<()> {
        outcome.map_err(|e| match (code, e) {
            (status::OUT_OF_MEMORY | status::FORKED, e) => e,
            (_, Error::Memory(message)) => Error::Memory(message),
            (_, e) => Error::buffer_device(
                op,
                format!("Backend {} ({}) refuses the memory: {e}", self.backend, self.device),
            ),
        })
    }
}

/// A foreign stream that the backend keeps alive.
pub struct RetainedStream {
    device: &'static DeviceState,
    native: u64,
}

impl Drop for RetainedStream {
    fn drop(&mut self) {
        if let Some(release) = self.device.memory_interface().and_then(|i| i.release_foreign) {
            // SAFETY: the device is open, and the stream was retained once for this object.
            unsafe { release(self.device.handle, self.native) }
        }
    }
}

impl DeviceStream {
    /// Returns the handle of the backend's own stream, if other libraries can wait for it and it
    /// can wait for theirs.
    pub fn native(&self) -> Option<u64> {
        let interface = self.device.memory_interface()?;
        let crossing = interface.wait_foreign.is_some() && interface.signal_foreign.is_some();
        let get = interface.native_stream.filter(|_| crossing)?;
        // SAFETY: the stream is the device's; any thread may call it.
        Some(unsafe { get(self.device.handle, self.handle()) }).filter(|native| *native != 0)
    }

    /// Makes the backend's stream wait for a foreign one.
    ///
    /// # Safety
    /// `stream` is the stream that [`DeviceStream::submit`] passes to its `call`, and this call has
    /// not returned yet.
    ///
    /// # Errors
    /// Those of the backend.
    pub unsafe fn wait_foreign(&self, stream: *mut c_void, foreign: u64) -> Result<()> {
        let wait = self.device.memory_interface().and_then(|i| i.wait_foreign);
        let Some(wait) = wait else { return Err(self.device.lacks("wait_foreign")) };
        let mut error = std::ptr::null_mut();
        // SAFETY: the stream is the device's, and this thread holds the stream's lock.
        let code = unsafe { wait(self.device.handle, stream, foreign, &mut error) };
        host_table::check("wait_foreign", code, error)
    }
}

impl Use {
    /// Makes a foreign native stream wait until the device has completed this use, even if the use
    /// fails. If the backend cannot do this, the host waits.
    pub fn signal(&self, foreign: u64) -> Result<()> {
        let device = self.stream.device;
        if self.stream.knows_confirmed(self.number) {
            return Ok(());
        }
        let signal = device.memory_interface().and_then(|i| i.signal_foreign);
        let (Some(signal), false) = (signal, self.stream.event().is_null()) else {
            // Ignore the error: it is raised where a value is needed.
            let _ = self.wait();
            return Ok(());
        };
        self.stream.ask(self.number)?;
        let mut error = std::ptr::null_mut();
        // SAFETY: the event is the device's, and the number is recorded.
        let code =
            unsafe { signal(device.handle, foreign, self.stream.event(), self.number, &mut error) };
        host_table::check("signal_foreign", code, error)
    }
}

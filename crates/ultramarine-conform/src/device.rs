//! A device of a backend, with safe functions. [`call`] checks every call. If the backend leaves
//! memory, streams and events to the host (as a CPU overlay does), they are implemented here.

use crate::dtype::DType;
use crate::host;
use crate::plugin::{Backend, Failure, call};
use crate::record::note_unnamed;
use core::ffi::{CStr, c_void};
use ultramarine_abi::{
    self as abi, Command, DeviceInfo, TensorDesc, device_flag, dlpack::device_type, schema::OpId,
    status,
};

/// An open device of a backend, with safe functions for what the contract offers. Every call is
/// checked.
pub struct Device<'a> {
    pub backend: &'a Backend,
    pub index: u32,
    pub handle: *mut c_void,
    pub info: DeviceInfo,
    /// True if the backend leaves memory, streams and events to the host.
    pub overlay: bool,
}

// SAFETY: by the contract handles may be used on any thread. Callers make sure that functions run
// at the same time only where that is allowed.
unsafe impl Send for Device<'_> {}
// SAFETY: as above.
unsafe impl Sync for Device<'_> {}

/// A handle of the backend that may cross threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub *mut c_void);

// SAFETY: a handle is an opaque value. The contract says for each function on which threads it may
// be used.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A buffer of a device. It is freed by [`Device::free`], or by the end of the process.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub handle: Handle,
    pub bytes: u64,
}

/// The answer of `prepare`: a plan, or a refusal that the contract allows.
pub enum Prepared {
    Plan(Handle),
    NeedsContiguous,
    Unsupported,
}

/// Returns the function, or a failure that says that it is missing.
macro_rules! function {
    ($device:expr, $name:ident) => {
        $device.backend.table.$name.ok_or(Failure {
            call: stringify!($name),
            code: status::UNSUPPORTED,
            text: Some("the table has no such function".into()),
            command: None,
        })
    };
}

/// Bytes, aligned as the host's memory is.
#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Unit([u8; 256]);

/// Checks the handle that a call has made.
fn made(call: &str, handle: *mut c_void) -> Handle {
    if handle.is_null() {
        host::violation(format!(
            "{call} returned OK and a handle that is NULL, which means \"none\": give any other value"
        ));
    }
    Handle(handle)
}

impl<'a> Device<'a> {
    /// Describes and opens a device.
    pub fn open(backend: &'a Backend, index: u32) -> Result<Self, String> {
        let table = &backend.table;
        // SAFETY: all-zero bytes are a device info.
        let mut info: DeviceInfo = unsafe { std::mem::zeroed() };
        info.size = size_of::<DeviceInfo>() as u32;
        let mut device = Device {
            backend,
            index,
            handle: std::ptr::null_mut(),
            info,
            overlay: table.device_type == device_type::CPU && table.buffer_alloc.is_none(),
        };
        let describe = function!(device, device_info)?;
        // SAFETY: the struct is writable and says its size.
        call("device_info", |e| unsafe { describe(table.backend, index, &mut device.info, e) })?;
        let open = function!(device, device_open)?;
        // SAFETY: a place for the handle.
        call("device_open", |e| unsafe { open(table.backend, index, &mut device.handle, e) })?;
        Ok(device)
    }

    pub fn close(self) {
        if let Some(close) = self.backend.table.device_close {
            // SAFETY: the handle was opened here, and the caller no longer uses it.
            unsafe { close(self.handle) };
        }
    }

    pub fn alloc(&self, bytes: u64) -> Result<Buffer, Failure> {
        if self.overlay {
            let units = vec![Unit([0; 256]); bytes.div_ceil(256).max(1) as usize];
            let data = Box::leak(units.into_boxed_slice()).as_mut_ptr();
            return Ok(Buffer { handle: Handle(data as *mut c_void), bytes });
        }
        let alloc = function!(self, buffer_alloc)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the device is open; a place for the handle.
        call("buffer_alloc", |e| unsafe { alloc(self.handle, bytes, &mut handle, e) })?;
        Ok(Buffer { handle: made("buffer_alloc", handle), bytes })
    }

    pub fn free(&self, buffer: Buffer) {
        if self.overlay {
            let units = buffer.bytes.div_ceil(256).max(1) as usize;
            let data = std::ptr::slice_from_raw_parts_mut(buffer.handle.0 as *mut Unit, units);
            // SAFETY: made by `alloc` with this length; buffers are freed once.
            drop(unsafe { Box::from_raw(data) });
        } else if let Some(free) = self.backend.table.buffer_free {
            // SAFETY: the backend's buffer, freed once, with no work on it.
            unsafe { free(self.handle, buffer.handle.0) };
        }
    }

    /// Returns the buffer's address for the host, if it has one.
    pub fn host_pointer(&self, buffer: Buffer) -> *mut c_void {
        if self.overlay {
            return buffer.handle.0;
        }
        match self.backend.table.buffer_host_pointer {
            // SAFETY: a live buffer of the device.
            Some(ask) => unsafe { ask(self.handle, buffer.handle.0) },
            None => std::ptr::null_mut(),
        }
    }

    /// Copies bytes into a buffer. On return, all streams see them.
    pub fn write(
        &self,
        stream: Handle,
        buffer: Buffer,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        self.write_in_order(stream, buffer, offset, bytes)?;
        match self.flag(device_flag::UPLOADS_IN_ORDER) && !stream.0.is_null() {
            true => self.synchronize(stream),
            false => Ok(()),
        }
    }

    /// Copies bytes into a buffer. The stream's later work sees them.
    pub fn write_in_order(
        &self,
        stream: Handle,
        buffer: Buffer,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        if self.overlay {
            // SAFETY: the kit's own memory; callers stay within the buffer.
            unsafe {
                let to = (buffer.handle.0 as *mut u8).add(offset as usize);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            }
            return Ok(());
        }
        let copy = function!(self, copy_to_device)?;
        let (from, n) = (bytes.as_ptr() as *const c_void, bytes.len() as u64);
        // SAFETY: the range lies in the buffer (the callers' care) and in the slice.
        call("copy_to_device", |e| unsafe {
            copy(self.handle, stream.0, buffer.handle.0, offset, from, n, e)
        })
    }

    pub fn read(
        &self,
        stream: Handle,
        buffer: Buffer,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), Failure> {
        if self.overlay {
            // SAFETY: as in `write`.
            unsafe {
                let from = (buffer.handle.0 as *const u8).add(offset as usize);
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
            }
            return Ok(());
        }
        let copy = function!(self, copy_to_host)?;
        let (to, n) = (bytes.as_mut_ptr() as *mut c_void, bytes.len() as u64);
        // SAFETY: as in `write`.
        call("copy_to_host", |e| unsafe {
            copy(self.handle, stream.0, buffer.handle.0, offset, to, n, e)
        })
    }

    pub fn stream(&self) -> Result<Handle, Failure> {
        let mut stream = std::ptr::null_mut();
        if self.overlay {
            return Ok(Handle(stream));
        }
        let create = function!(self, stream_create)?;
        // SAFETY: a place for the handle.
        call("stream_create", |e| unsafe { create(self.handle, &mut stream, e) })?;
        Ok(made("stream_create", stream))
    }

    pub fn destroy_stream(&self, stream: Handle) {
        if let Some(destroy) = self.backend.table.stream_destroy {
            // SAFETY: a stream of the device that has drained.
            unsafe { destroy(self.handle, stream.0) };
        }
    }

    pub fn synchronize(&self, stream: Handle) -> Result<(), Failure> {
        if self.overlay {
            return Ok(());
        }
        let wait = function!(self, stream_synchronize)?;
        // SAFETY: a live stream of the device.
        call("stream_synchronize", |e| unsafe { wait(self.handle, stream.0, e) })
    }

    pub fn event(&self) -> Result<Handle, Failure> {
        let create = function!(self, event_create)?;
        let mut event = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        call("event_create", |e| unsafe { create(self.handle, &mut event, e) })?;
        Ok(made("event_create", event))
    }

    pub fn destroy_event(&self, event: Handle) {
        if let Some(destroy) = self.backend.table.event_destroy {
            // SAFETY: an event that nothing waits for.
            unsafe { destroy(self.handle, event.0) };
        }
    }

    pub fn record(&self, stream: Handle, event: Handle, value: u64) -> Result<(), Failure> {
        let record = function!(self, event_record)?;
        // SAFETY: live handles of the device.
        call("event_record", |e| unsafe { record(self.handle, stream.0, event.0, value, e) })
    }

    pub fn wait_stream(&self, stream: Handle, event: Handle, value: u64) -> Result<(), Failure> {
        let wait = function!(self, event_wait_stream)?;
        // SAFETY: live handles of the device.
        call("event_wait_stream", |e| unsafe { wait(self.handle, stream.0, event.0, value, e) })
    }

    pub fn wait_host(&self, event: Handle, value: u64) -> Result<(), Failure> {
        let wait = function!(self, event_wait_host)?;
        // SAFETY: a live event of the device.
        call("event_wait_host", |e| unsafe { wait(self.handle, event.0, value, e) })
    }

    pub fn query(&self, event: Handle) -> Result<u64, Failure> {
        let query = function!(self, event_query)?;
        // SAFETY: a live event of the device.
        Ok(unsafe { query(self.handle, event.0) })
    }

    /// Requests a plan of revision 1. `attributes` are the bytes of the op's struct.
    pub fn prepare(
        &self,
        op: OpId,
        attributes: &[u64],
        inputs: &[TensorDesc],
        outputs: &[TensorDesc],
    ) -> Result<Prepared, Failure> {
        match self.prepare_raw(op, 1, Some(attributes), inputs, outputs) {
            Ok(plan) => Ok(Prepared::Plan(plan)),
            Err(f) if f.code == status::UNSUPPORTED => Ok(Prepared::Unsupported),
            Err(f) if f.code == status::NEEDS_CONTIGUOUS => Ok(Prepared::NeedsContiguous),
            Err(f) => Err(f),
        }
    }

    /// Requests a plan with arbitrary arguments.
    pub fn prepare_raw(
        &self,
        op: OpId,
        revision: u32,
        attributes: Option<&[u64]>,
        inputs: &[TensorDesc],
        outputs: &[TensorDesc],
    ) -> Result<Handle, Failure> {
        let prepare = function!(self, prepare)?;
        let mut plan = std::ptr::null_mut();
        let attributes = attributes.map_or(std::ptr::null(), |a| a.as_ptr() as *const c_void);
        // SAFETY: the arrays have the given lengths, and attributes begin with their size.
        call("prepare", |e| unsafe {
            prepare(
                self.handle,
                op,
                revision,
                attributes,
                inputs.as_ptr(),
                inputs.len() as u32,
                outputs.as_ptr(),
                outputs.len() as u32,
                &mut plan,
                e,
            )
        })?;
        Ok(made("prepare", plan))
    }

    pub fn release(&self, plan: Handle) {
        if let Some(release) = self.backend.table.plan_release {
            // SAFETY: a plan of the device, released once.
            unsafe { release(self.handle, plan.0) };
        }
    }

    /// Bytes of workspace for a command.
    pub fn workspace(&self, plan: Handle, command: &Command) -> u64 {
        match self.backend.table.plan_workspace {
            // SAFETY: a command that fits the plan.
            Some(ask) => unsafe { ask(self.handle, plan.0, command) },
            None => 0,
        }
    }

    pub fn submit(&self, stream: Handle, commands: &[Command]) -> Result<(), Failure> {
        let submit = function!(self, submit)?;
        let n = commands.len() as u32;
        note_unnamed(|| describe(commands));
        // SAFETY: commands are valid for the call (the callers' care).
        call("submit", |e| unsafe { submit(self.handle, stream.0, commands.as_ptr(), n, e) })
    }

    /// An interface of the backend.
    ///
    /// # Safety
    /// `T` is the interface's struct.
    pub unsafe fn interface<T: Copy>(&self, id: &CStr) -> Option<T> {
        // SAFETY: by this function's contract.
        unsafe { self.backend.interface(id) }
    }

    pub fn flag(&self, bit: u32) -> bool {
        self.info.flags & bit != 0
    }
}

/// Describes a list of commands in words: the first ones, with the dtypes, shapes and strides of
/// their tensors.
fn describe(commands: &[Command]) -> String {
    let tensor = |t: &abi::Tensor| {
        let axes = |p: *const i64| match usize::try_from(t.dl.ndim) {
            // SAFETY: shape and strides of the kit's tensors have as many elements as they have axes.
            Ok(n) if n > 0 && !p.is_null() => unsafe { std::slice::from_raw_parts(p, n) },
            _ => &[],
        };
        let known = DType::all().find(|d| d.dl() == t.dl.dtype);
        let (shape, strides) = (axes(t.dl.shape), axes(t.dl.strides));
        format!("{} {shape:?} with strides {strides:?}", known.map_or("?", DType::name))
    };
    let list = |first: *const abi::Tensor, n: u32, stride: u32| {
        let n = if first.is_null() { 0 } else { n as usize };
        let at = |i: usize| {
            // SAFETY: the kit's tensors, as far apart as their command says.
            tensor(unsafe { &*first.cast::<u8>().add(i * stride as usize).cast() })
        };
        (0..n).map(at).collect::<Vec<_>>().join(", ")
    };
    let one = |c: &Command| {
        let inputs = list(c.inputs, c.n_inputs, c.tensor_stride);
        format!("({inputs}) to ({})", list(c.outputs, c.n_outputs, c.tensor_stride))
    };
    let shown: Vec<String> = commands.iter().take(3).map(one).collect();
    format!("submit of {} commands: {}", commands.len(), shown.join("; "))
}

/// A description of a tensor.
pub fn desc(dtype: crate::dtype::DType, ndim: usize, class: u32) -> TensorDesc {
    TensorDesc {
        size: size_of::<TensorDesc>() as u32,
        ndim: ndim as i32,
        dtype: dtype.dl(),
        layout: class,
    }
}

/// Returns an attribute struct as words.
pub fn words<A: Copy>(attributes: &A) -> Vec<u64> {
    let mut words = vec![0u64; size_of::<A>().div_ceil(8)];
    // SAFETY: attribute structs are plain integers; the words have room for one.
    unsafe {
        let from = (attributes as *const A).cast::<u8>();
        std::ptr::copy_nonoverlapping(from, words.as_mut_ptr().cast(), size_of::<A>());
    }
    words
}

/// A zeroed command of this contract's size.
pub fn empty_command(plan: Handle) -> Command {
    Command {
        size: size_of::<Command>() as u32,
        flags: 0,
        plan: plan.0,
        inputs: std::ptr::null(),
        outputs: std::ptr::null(),
        scalars: std::ptr::null(),
        n_inputs: 0,
        n_outputs: 0,
        n_scalars: 0,
        tensor_stride: size_of::<abi::Tensor>() as u32,
        workspace: std::ptr::null_mut(),
    }
}

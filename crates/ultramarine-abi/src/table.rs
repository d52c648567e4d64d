//! The two function tables: what a backend offers and what the host lends.

use crate::{Status, Tensor, TensorDesc, schema::OpId};
use core::ffi::{c_char, c_void};

/// An error object. Opaque; made by [`HostTable::error_new`], freed by the host.
#[repr(C)]
pub struct Error {
    _opaque: [u8; 0],
}

/// Body of a parallel loop: called once for each index below the count.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, index: u64);

/// Functions that the host lends to a backend. Callable from any thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostTable {
    /// `size_of::<HostTable>()` of the host.
    pub size: u32,
    /// The host's [`crate::ABI_MAJOR`].
    pub abi_major: u16,
    /// The host's [`crate::ABI_MINOR`].
    pub abi_minor: u16,
    /// First argument of the functions below.
    pub host: *mut c_void,
    /// Logs UTF-8 text. `level`: 0 error, 1 warning, 2 info, 3 debug.
    pub log:
        Option<unsafe extern "C" fn(host: *mut c_void, level: u32, text: *const c_char, len: u64)>,
    /// Makes an error from a status code and UTF-8 text.
    pub error_new: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            code: Status,
            text: *const c_char,
            len: u64,
        ) -> *mut Error,
    >,
    /// Allocates host memory, 256-byte aligned, uninitialised; NULL if there is none.
    pub alloc: Option<unsafe extern "C" fn(host: *mut c_void, bytes: u64) -> *mut c_void>,
    /// Frees what `alloc` gave.
    pub free: Option<unsafe extern "C" fn(host: *mut c_void, data: *mut c_void)>,
    /// Calls `body(context, i)` for every `i < count` on the host's thread pool
    /// and the calling thread, and returns when all are done. Nested calls run in
    /// place. `body` must not unwind.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            count: u64,
            body: ParallelBody,
            context: *mut c_void,
        ),
    >,
    /// Threads that `parallel_for` uses at most, the caller included.
    pub thread_count: Option<unsafe extern "C" fn(host: *mut c_void) -> u32>,
    /// Says that the error of a submit is that of command `index` of its list. The error
    /// is still the backend's to return.
    pub error_command:
        Option<unsafe extern "C" fn(host: *mut c_void, error: *mut Error, index: u32)>,
}

// SAFETY: the table is plain data, and its functions are callable from any
// thread by contract; `host` is only handed back to them.
unsafe impl Send for HostTable {}
// SAFETY: as above.
unsafe impl Sync for HostTable {}

/// Properties of one device. The host sets `size`; the backend writes no more than that, and
/// leaves unknown fields zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// `size_of::<DeviceInfo>()` of the writer.
    pub size: u32,
    /// 1 when `submit` returns only after the commands are done.
    pub synchronous: u32,
    /// 1 when buffers are ordinary host memory.
    pub host_memory: u32,
    /// Bit `i`: dtype `i` of [`crate::schema::DTYPES`] may be stored.
    pub dtypes_storage: u32,
    /// Bit `i`: dtype `i` may be computed with.
    pub dtypes_arithmetic: u32,
    /// Most instructions of a fused program; 0 when there is no such interface.
    pub fused_max_instructions: u32,
    /// Most inputs of a fused program.
    pub fused_max_inputs: u32,
    /// Reserved, zero.
    pub reserved: u32,
    /// Bytes of device memory; 0 when unknown.
    pub memory: u64,
    /// UTF-8 name, NUL-terminated.
    pub name: [c_char; 128],
    /// Bits of [`device_flag`].
    pub flags: u32,
    /// Bit `i`: sums and products of dtype `i` accumulate in something wider.
    pub dtypes_accumulate: u32,
    /// Most inputs of one command; 0: no limit.
    pub max_inputs: u32,
    /// Alignment in bytes that buffers have; 0: unknown.
    pub alignment: u32,
    /// Largest buffer in bytes; 0: no limit but memory.
    pub max_buffer: u64,
    /// Languages of [`crate::interface::kernel`], separated by spaces, NUL-padded.
    pub kernel_languages: [c_char; 64],
    /// Identity of the device.
    pub identity: crate::DeviceIdentity,
}

/// Bits of [`DeviceInfo::flags`].
pub mod device_flag {
    /// Equal commands give equal bits.
    pub const DETERMINISTIC: u32 = 1;
    /// Subnormal numbers may become zero.
    pub const FLUSHES_SUBNORMALS: u32 = 2;
    /// float32 products may use a shorter mantissa (TF32 and the like).
    pub const REDUCED_PRECISION: u32 = 4;
    /// The backend itself waits for [`crate::Tensor::wait`].
    pub const WAITS_IN_COMMANDS: u32 = 8;
    /// `copy_to_device` with a stream is enqueued there: see
    /// [`crate::BackendTable::copy_to_device`].
    pub const UPLOADS_IN_ORDER: u32 = 16;
}

/// One command: a plan with its tensors and scalars.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// `size_of::<Command>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Plan that `prepare` (or the fused interface) returned.
    pub plan: *mut c_void,
    /// `n_inputs` tensors.
    pub inputs: *const Tensor,
    /// `n_outputs` tensors, allocated by the host.
    pub outputs: *const Tensor,
    /// `n_scalars` values, each the little-endian bits of its dtype in 16 bytes.
    pub scalars: *const [u64; 2],
    /// Number of inputs.
    pub n_inputs: u32,
    /// Number of outputs.
    pub n_outputs: u32,
    /// Number of scalars.
    pub n_scalars: u32,
    /// Bytes between the elements of `inputs` and `outputs`.
    pub tensor_stride: u32,
    /// Scratch memory of the size that the plan asked for, or NULL: its address where
    /// buffers have one for the host, else the handle of a buffer. Aligned as buffers are.
    pub workspace: *mut c_void,
}

/// Functions of a backend. Those marked *any* may be called from any thread
/// at once; *stream*: one call at a time per stream.
///
/// A function that fails returns a [`Status`] and, through `error` (unless that is NULL), an
/// object of [`HostTable::error_new`]. One that returns ERROR or INVALID should always give
/// one: without it the user reads only that the call failed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BackendTable {
    /// `size_of::<BackendTable>()` of the backend.
    pub size: u32,
    /// The backend's [`crate::ABI_MAJOR`].
    pub abi_major: u16,
    /// The backend's [`crate::ABI_MINOR`].
    pub abi_minor: u16,
    /// First argument of the functions below.
    pub backend: *mut c_void,
    /// Name, NUL-terminated UTF-8, static.
    pub name: *const c_char,
    /// DLPack device type of all its devices.
    pub device_type: i32,
    /// Reserved, zero.
    pub reserved: u32,

    /// (any) Number of devices.
    pub device_count: Option<unsafe extern "C" fn(backend: *mut c_void) -> u32>,
    /// (any) Describes device `index`.
    pub device_info: Option<
        unsafe extern "C" fn(
            backend: *mut c_void,
            index: u32,
            info: *mut DeviceInfo,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Opens device `index`; the handle is the `device` of what follows.
    pub device_open: Option<
        unsafe extern "C" fn(
            backend: *mut c_void,
            index: u32,
            device: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Closes a device whose buffers and streams are gone.
    pub device_close: Option<unsafe extern "C" fn(device: *mut c_void)>,

    /// (any) Allocates at least `bytes`.
    pub buffer_alloc: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            bytes: u64,
            buffer: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a buffer that no stream uses any more.
    pub buffer_free: Option<unsafe extern "C" fn(device: *mut c_void, buffer: *mut c_void)>,
    /// (any) Address of the buffer for the host, or NULL where it has none.
    pub buffer_host_pointer:
        Option<unsafe extern "C" fn(device: *mut c_void, buffer: *mut c_void) -> *mut c_void>,
    /// (stream) Copies host memory into a buffer; done on return. Of a device with
    /// [`device_flag::UPLOADS_IN_ORDER`] and with a stream, only the source has been read on
    /// return, and the bytes are there for the stream's later work, as with `submit`.
    pub copy_to_device: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            buffer: *mut c_void,
            offset: u64,
            source: *const c_void,
            bytes: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Copies a buffer into host memory; done on return.
    pub copy_to_host: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            buffer: *mut c_void,
            offset: u64,
            target: *mut c_void,
            bytes: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,

    /// (any) Creates an ordered stream.
    pub stream_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Destroys a stream that has drained.
    pub stream_destroy: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
    /// (any) Blocks until all work of the stream is done.
    pub stream_synchronize: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,

    /// (any) Creates a timeline event with value 0.
    pub event_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            event: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) The event takes `value` once the stream's earlier work is done.
    pub event_record: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Later work of the stream waits until the event reaches `value`.
    pub event_wait_stream: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Blocks the caller until the event reaches `value`. Fails when work that was
    /// submitted before the value was recorded has failed on the device: the host learns of
    /// it here (or from `stream_synchronize`), and nowhere else.
    pub event_wait_host: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) The event's present value.
    pub event_query: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void) -> u64>,
    /// (any) Destroys an event nobody waits for.
    pub event_destroy: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void)>,

    /// (any) Makes a plan for one op. `attributes` points at the op's struct of
    /// [`crate::schema`]. Plans depend on dtypes, ranks and layout classes only;
    /// they may be used by many threads at once.
    pub prepare: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            op: OpId,
            revision: u32,
            attributes: *const c_void,
            inputs: *const TensorDesc,
            n_inputs: u32,
            outputs: *const TensorDesc,
            n_outputs: u32,
            plan: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a plan.
    pub plan_release: Option<unsafe extern "C" fn(device: *mut c_void, plan: *mut c_void)>,
    /// (any) Bytes of workspace that a plan wants for these tensors. NULL: none.
    pub plan_workspace: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            plan: *mut c_void,
            command: *const Command,
        ) -> u64,
    >,
    /// (stream) Runs commands in order; they lie `commands.size` bytes apart. No tensor of
    /// a command has size zero. A backend that made a plan may refuse sizes only with
    /// [`crate::status::OUT_OF_MEMORY`].
    ///
    /// A list ends at the first command that fails: those before it are enqueued (or done), it
    /// may have begun, and of those behind it nothing has. The error says which one it is by
    /// [`HostTable::error_command`]; a list of several commands whose error does not say so is
    /// lost as a whole.
    pub submit: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            commands: *const Command,
            n_commands: u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Looks up an optional interface by its id, such as
    /// [`crate::fused::INTERFACE`]; NULL when there is none.
    pub interface:
        Option<unsafe extern "C" fn(backend: *mut c_void, id: *const c_char) -> *const c_void>,
}

// SAFETY: the table is plain data; each function says from which threads it may
// be called, and the host keeps to that.
unsafe impl Send for BackendTable {}
// SAFETY: as above.
unsafe impl Sync for BackendTable {}

/// Entry point that fills the table: [`crate::symbol::INIT`]. The host sets
/// `table.size` to the room it has; a backend with a longer table writes only the part
/// that fits, with the size of that part. `host` lives as long as the process.
pub type BackendInit = unsafe extern "C" fn(
    host: *const HostTable,
    table: *mut BackendTable,
    error: *mut *mut Error,
) -> Status;

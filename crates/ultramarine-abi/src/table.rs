//! The two function tables: the one that a backend fills, and the one that the host lends it.

use crate::{Status, Tensor, TensorDesc, schema::OpId};
use core::ffi::{c_char, c_void};

/// An error: a status with a text, opaque to backends. [`HostTable::error_new`] makes it, and the
/// host frees it.
#[repr(C)]
pub struct Error {
    _opaque: [u8; 0],
}

/// Body of [`HostTable::parallel_for`], called once for each index below the count. It must not
/// unwind.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, index: u64);

/// Functions that the host lends to a backend. They may be called from any thread, as long as the
/// process lives.
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
    /// Logs `len` bytes of UTF-8. `level` is 0 for errors, 1 warnings, 2 information, 3 debugging.
    pub log:
        Option<unsafe extern "C" fn(host: *mut c_void, level: u32, text: *const c_char, len: u64)>,
    /// Makes an error of a status and `len` bytes of UTF-8. The text reaches the user unchanged: it
    /// says what failed, the values that were given, and a remedy.
    pub error_new: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            code: Status,
            text: *const c_char,
            len: u64,
        ) -> *mut Error,
    >,
    /// Allocates host memory, 256-byte aligned and uninitialised. NULL: there is none left.
    pub alloc: Option<unsafe extern "C" fn(host: *mut c_void, bytes: u64) -> *mut c_void>,
    /// Frees memory of [`HostTable::alloc`].
    pub free: Option<unsafe extern "C" fn(host: *mut c_void, data: *mut c_void)>,
    /// Calls `body(context, i)` for every `i < count`, on the host's threads and on the calling
    /// one. Returns when all calls have returned. A nested call, and one while another thread's
    /// loop runs, runs on the calling thread alone. `body` must not unwind.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            count: u64,
            body: ParallelBody,
            context: *mut c_void,
        ),
    >,
    /// Returns the most threads that `parallel_for` uses, the calling one included.
    pub thread_count: Option<unsafe extern "C" fn(host: *mut c_void) -> u32>,
    /// Marks the error of a [`BackendTable::submit`] as that of command `index` of its list. The
    /// backend still returns the error.
    pub error_command:
        Option<unsafe extern "C" fn(host: *mut c_void, error: *mut Error, index: u32)>,
}

// SAFETY: the table is plain data, and by the contract its functions may be called from any thread.
// `host` is only passed back to them.
unsafe impl Send for HostTable {}
// SAFETY: as above.
unsafe impl Sync for HostTable {}

/// Properties of a device. The host sets `size`; the backend writes no more bytes than that, and
/// leaves fields that it does not know zero.
///
/// Masks have a bit for each dtype: bit `i`, of value `1 << i`, stands for dtype `i` of
/// [`crate::schema::DTYPES`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// `size_of::<DeviceInfo>()` of the writer.
    pub size: u32,
    /// 1: commands and copies are done when the call returns.
    pub synchronous: u32,
    /// 1: buffers are memory that the host reads and writes by address.
    pub host_memory: u32,
    /// Mask of dtypes that buffers may hold and COPY takes; 0: all.
    pub dtypes_storage: u32,
    /// Mask of dtypes that operations compute with, a part of `dtypes_storage`.
    pub dtypes_arithmetic: u32,
    /// Most instructions of a [fused program](crate::fused::Program); 0: there is no such
    /// interface.
    pub fused_max_instructions: u32,
    /// Most inputs of a fused program.
    pub fused_max_inputs: u32,
    /// Reserved, zero.
    pub reserved: u32,
    /// Memory of the device in bytes; 0: unknown.
    pub memory: u64,
    /// Name for people, NUL-terminated UTF-8.
    pub name: [c_char; 128],
    /// Bits of [`device_flag`].
    pub flags: u32,
    /// Mask of dtypes whose sums and products accumulate in a wider type.
    pub dtypes_accumulate: u32,
    /// Most inputs of a command; 0: no limit.
    pub max_inputs: u32,
    /// Alignment of buffers in bytes, a power of two; 0: unknown.
    pub alignment: u32,
    /// Largest buffer in bytes; 0: no limit but memory.
    pub max_buffer: u64,
    /// Languages of [`crate::interface::kernel`], separated by spaces, NUL-padded.
    pub kernel_languages: [c_char; 64],
    /// Identity of the physical device.
    pub identity: crate::DeviceIdentity,
}

/// Bits of [`DeviceInfo::flags`].
pub mod device_flag {
    /// Equal commands give bitwise identical results, in one process and in the next: see
    /// "Determinism" in `docs/operations.md`.
    pub const DETERMINISTIC: u32 = 1;
    /// Subnormal numbers may become zero, as operands and as results.
    pub const FLUSHES_SUBNORMALS: u32 = 2;
    /// Products of float32 may use fewer mantissa bits (as TensorFloat-32 does), whatever
    /// [`crate::precision`] is asked for.
    pub const REDUCED_PRECISION: u32 = 4;
    /// The backend itself waits for [`crate::Tensor::wait`]. Otherwise the host calls
    /// [`crate::BackendTable::event_wait_stream`] before the command.
    pub const WAITS_IN_COMMANDS: u32 = 8;
    /// [`crate::BackendTable::copy_to_device`] with a stream is enqueued on this stream.
    pub const UPLOADS_IN_ORDER: u32 = 16;
}

/// A command: a plan with its tensors and scalars. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// `size_of::<Command>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Plan of [`BackendTable::prepare`] or of a [fused interface](crate::fused).
    pub plan: *mut c_void,
    /// `n_inputs` tensors, of the dtypes, ranks and layouts that the plan was made for.
    pub inputs: *const Tensor,
    /// `n_outputs` tensors of the dtypes, ranks and layouts that the plan was made for. The host
    /// has allocated their memory.
    pub outputs: *const Tensor,
    /// `n_scalars` values of 16 bytes, each with the little-endian bits of its dtype in the low
    /// bytes.
    pub scalars: *const [u64; 2],
    /// Number of inputs.
    pub n_inputs: u32,
    /// Number of outputs.
    pub n_outputs: u32,
    /// Number of scalars.
    pub n_scalars: u32,
    /// Bytes from one element of `inputs`, and of `outputs`, to the next.
    pub tensor_stride: u32,
    /// Scratch memory of the size that [`BackendTable::plan_workspace`] returned, aligned as
    /// buffers are, or NULL. On devices whose buffers have an address for the host, it is an
    /// address; otherwise it is a buffer's handle. Commands of one list may share it.
    pub workspace: *mut c_void,
}

/// Functions of a backend.
///
/// *(any)*: any thread may call the function at any time, also at the same time as other threads.
/// *(stream)*: for each stream there is one call at a time, from changing threads.
///
/// A failing function returns a [`Status`] other than OK. Through `error`, unless that is NULL, it
/// returns an object of [`HostTable::error_new`]. ERROR and INVALID need such an object; without it
/// the user reads only that the call failed. Output arguments are valid only after OK. Nothing
/// unwinds out of a function.
///
/// Handles are opaque to the host. Live handles of one kind differ from each other. Handles of
/// buffers, streams, events and plans are not NULL, because NULL means "none".
///
/// Required functions are `device_count`, `device_info`, `device_open`, `prepare`, `plan_release`
/// and `submit`. The functions of buffers (without `buffer_host_pointer`), copies, streams and
/// events are required unless `device_type` is the CPU's: a backend of this type leaves memory and
/// streams to the host. All other functions are optional.
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
    /// Name as in the [ABI info](crate::BackendAbiInfo), NUL-terminated UTF-8, valid as long as the
    /// process lives.
    pub name: *const c_char,
    /// DLPack device type of all its devices, as in the ABI info.
    pub device_type: i32,
    /// Reserved, zero.
    pub reserved: u32,

    /// (any) Returns the number of devices, whose indices count from 0. The number does not change.
    pub device_count: Option<unsafe extern "C" fn(backend: *mut c_void) -> u32>,
    /// (any) Fills `info` for device `index`. INVALID: there is no such device.
    pub device_info: Option<
        unsafe extern "C" fn(
            backend: *mut c_void,
            index: u32,
            info: *mut DeviceInfo,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Opens device `index`. The handle is the `device` of the other functions.
    pub device_open: Option<
        unsafe extern "C" fn(
            backend: *mut c_void,
            index: u32,
            device: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Closes a device. Its buffers, streams, events and plans have been freed before.
    pub device_close: Option<unsafe extern "C" fn(device: *mut c_void)>,

    /// (any) Allocates an uninitialised buffer of at least `bytes` bytes. `bytes` is not 0.
    pub buffer_alloc: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            bytes: u64,
            buffer: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a buffer. No stream uses it any more.
    pub buffer_free: Option<unsafe extern "C" fn(device: *mut c_void, buffer: *mut c_void)>,
    /// (any) Returns the buffer's address for the host, or NULL if it has none. The address stays
    /// the same for the buffer's whole life. A missing function means NULL.
    pub buffer_host_pointer:
        Option<unsafe extern "C" fn(device: *mut c_void, buffer: *mut c_void) -> *mut c_void>,
    /// (stream) Copies `bytes` bytes of host memory to a buffer, from byte `offset` on. The copy is
    /// done on return. `stream` may be NULL.
    ///
    /// With [`device_flag::UPLOADS_IN_ORDER`] and a stream, the copy is work of the stream, and the
    /// stream's later work sees the bytes. On return, only the source has been read.
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
    /// (stream) Copies `bytes` bytes of a buffer to host memory, after the stream's earlier work.
    /// The copy is done on return. `stream` may be NULL.
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

    /// (any) Creates a stream: work that is enqueued to it takes effect in order.
    pub stream_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Destroys a stream that has no work left.
    pub stream_destroy: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
    /// (any) Blocks the calling thread until all work of the stream is done. Fails if work of the
    /// stream has failed.
    pub stream_synchronize: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,

    /// (any) Creates a timeline event: a number that begins at 0 and only increases.
    pub event_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            event: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Enqueues a record: the event takes `value` when the stream's earlier work is done.
    /// Each value of an event is higher than those before.
    pub event_record: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Enqueues a wait: later work of the stream begins when the event has reached
    /// `value`. The calling thread does not wait. `value` may not have been recorded yet.
    pub event_wait_stream: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Blocks the calling thread until the event has reached `value`. Fails if work that was
    /// submitted before the record of that value has failed: the host learns of such failures here,
    /// or from `stream_synchronize`.
    pub event_wait_host: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Returns the event's present value, without waiting.
    pub event_query: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void) -> u64>,
    /// (any) Destroys an event for which nothing waits.
    pub event_destroy: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void)>,

    /// (any) Makes a plan for an operation of [`crate::schema::op`].
    ///
    /// `revision` is the revision of its attributes. `attributes` points to the operation's struct
    /// of [`crate::schema`]. If the struct is longer than this build knows and the additional bytes
    /// are not zero, the answer is UNSUPPORTED. NULL, which the host never passes, gives INVALID.
    /// Descriptions are `inputs.size` and `outputs.size` bytes apart.
    ///
    /// A plan depends on dtypes, ranks and layouts, not on sizes, and several threads may use it at
    /// the same time. The answers UNSUPPORTED and NEEDS_CONTIGUOUS need no error object.
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
    /// (any) Frees a plan whose commands are all done.
    pub plan_release: Option<unsafe extern "C" fn(device: *mut c_void, plan: *mut c_void)>,
    /// (any) Returns the workspace in bytes that a command of the plan needs; 0: none. The command
    /// has the shapes and strides of its tensors, but memory need not be allocated yet. A missing
    /// function means 0.
    pub plan_workspace: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            plan: *mut c_void,
            command: *const Command,
        ) -> u64,
    >,
    /// (stream) Runs commands in order, or enqueues them. They are `commands.size` bytes apart, and
    /// each may read what an earlier one writes. No tensor of a command has size zero. Once its
    /// plan was made, a command fails only for lack of memory ([`crate::status::OUT_OF_MEMORY`]),
    /// or if the device fails.
    ///
    /// A list ends at the first command that fails. Commands before it stay enqueued or done. The
    /// failed command may have begun, and no command after it has begun. The backend names the
    /// failed command by [`HostTable::error_command`]. Without that, the host counts the whole list
    /// as lost.
    pub submit: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            commands: *const Command,
            n_commands: u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Returns the table of an optional interface by its id, such as
    /// [`crate::fused::INTERFACE`], or NULL. The table lives as long as the process.
    pub interface:
        Option<unsafe extern "C" fn(backend: *mut c_void, id: *const c_char) -> *const c_void>,
}

// SAFETY: the table is plain data. Each function says which threads may call it, and the host obeys
// that.
unsafe impl Send for BackendTable {}
// SAFETY: as above.
unsafe impl Sync for BackendTable {}

/// Entry point [`crate::symbol::INIT`]: fills the table.
///
/// The host sets `table.size` to the size of its memory. A backend with a longer table writes only
/// the part that fits, and sets the size to the size of that part. `host` lives as long as the
/// process. After a failure the host tries the next variant; the library stays mapped in either
/// case.
pub type BackendInit = unsafe extern "C" fn(
    host: *const HostTable,
    table: *mut BackendTable,
    error: *mut *mut Error,
) -> Status;

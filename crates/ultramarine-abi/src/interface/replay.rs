//! Optional interface: lists of commands, recorded once and replayed on other memory.
//!
//! A recorded command is a command with a source for the memory of each tensor:
//!
//! * *fixed*: the command's own memory, which lives as long as the recording.
//! * *bound*: a slot. Every replay binds a buffer to it.
//! * *arena*: an offset in one buffer for all temporaries. [`ReplayInterface::record`] returns its
//!   size, and the host allocates it.
//!
//! Scalars are the command's own, or values of a slot.
//!
//! A replay has the effect of a submit of the commands, in their order, on the bound memory.
//! Recording may take long, but a replay should cost little more than the kernels, and an update no
//! more than the commands that it changes.
//!
//! `record`, `replay` and `update` may return [`crate::status::UNSUPPORTED`] or
//! [`crate::status::NOT_YET`]. Then nothing was done or enqueued, and the host submits the commands
//! instead. After NOT_YET it asks again at a later run.

use crate::{Command, Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.replay/2";

/// Values of [`MemorySource::kind`].
pub mod source {
    /// The memory that the command names. It lives as long as the recording.
    pub const FIXED: u32 = 0;
    /// The memory that a replay binds to slot `slot`. The tensor's `dl.byte_offset` counts from
    /// [`SlotMemory::offset`](super::SlotMemory::offset).
    pub const BOUND: u32 = 1;
    /// The arena. The tensor's `dl.byte_offset` counts from its beginning.
    pub const ARENA: u32 = 2;
}

/// Source of a tensor's memory. If it is not fixed, `dl.data`, `buffer`, `buffer_size` and `wait`
/// of the tensor are unspecified.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySource {
    /// One of [`source`].
    pub kind: u32,
    /// Number of the slot if the memory is bound; otherwise 0.
    pub slot: u32,
}

/// The slot of a scalar whose value is the command's own.
pub const FIXED_SCALAR: u32 = u32::MAX;

/// A command of a recording. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecordedCommand {
    /// `size_of::<RecordedCommand>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Plan, shapes, strides, offsets and scalars.
    pub command: *const Command,
    /// Sources of the inputs' memory, then of the outputs'. NULL means that all are fixed.
    pub sources: *const MemorySource,
    /// Slot of each scalar, or [`FIXED_SCALAR`]. NULL means that all are fixed.
    pub scalar_slots: *const u32,
    /// Source of the workspace.
    pub workspace: MemorySource,
    /// Bytes from the slot's or the arena's beginning to the workspace.
    pub workspace_offset: u64,
}

/// Commands to record. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecordingRequest {
    /// `size_of::<RecordingRequest>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Commands, in order; they lie `commands.size` bytes apart.
    pub commands: *const RecordedCommand,
    /// Number of commands.
    pub n_commands: u32,
    /// Number of slots for memory.
    pub n_slots: u32,
    /// Number of slots for scalars.
    pub n_scalars: u32,
    /// Reserved, zero.
    pub reserved: u32,
    /// Size in bytes of the arena that the commands and later updates use.
    pub arena_bytes: u64,
}

/// Memory that is bound to a slot for a replay.
///
/// Handles may be reused: the handle of an earlier replay may now belong to another buffer. State
/// that a recording keeps about a buffer is valid only while its memory is the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotMemory {
    /// The backend's handle of the buffer; NULL for memory of the host, and for a slot that no
    /// command names.
    pub buffer: *mut c_void,
    /// Address of the buffer for the host, or NULL.
    pub data: *mut c_void,
    /// Size of the whole buffer in bytes.
    pub bytes: u64,
    /// Bytes from the buffer's beginning to the slot's.
    pub offset: u64,
}

/// Memory and scalars of a replay. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReplayBindings {
    /// `size_of::<ReplayBindings>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// `n_slots` memories.
    pub slots: *const SlotMemory,
    /// `n_scalars` values, as those of a command.
    pub scalars: *const [u64; 2],
    /// Number of slots, which is the recording's.
    pub n_slots: u32,
    /// Number of scalars, which is the recording's.
    pub n_scalars: u32,
    /// The arena, with `offset` 0. It is at least as large as `record` required. Its content is
    /// unspecified. If it differs from the arena of the last replay, the replay may cost as much as
    /// an update of all commands.
    pub arena: SlotMemory,
}

/// Functions of the interface.
///
/// There is one call at a time for each recording, from any thread. Its replays run one after the
/// other: if the last replay was on another stream, the stream of the new one waits for it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReplayInterface {
    /// `size_of::<ReplayInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Records commands without running them. The host keeps their plans and fixed buffers
    /// alive as long as the recording. Sets `arena_bytes` to the request's size or more; the excess
    /// is for the backend's own use.
    pub record: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            request: *const RecordingRequest,
            recording: *mut *mut c_void,
            arena_bytes: *mut u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Runs a recording, as [`crate::BackendTable::submit`] runs its commands.
    pub replay: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            recording: *mut c_void,
            bindings: *const ReplayBindings,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Replaces command `index` for later replays; replays in progress keep the former
    /// command. The plan and the numbers of tensors and scalars stay; shapes, strides, offsets,
    /// scalars and sources may differ. After a failure the former command stays.
    pub update: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            recording: *mut c_void,
            index: u32,
            command: *const RecordedCommand,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a recording that no stream runs any more.
    pub release: Option<unsafe extern "C" fn(device: *mut c_void, recording: *mut c_void)>,
}

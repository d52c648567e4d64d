//! Optional interface: lists of commands, recorded once and replayed on other memory.
//!
//! A recorded command is a command whose tensors say where their memory comes from. *Fixed* memory
//! is that of the command, and lives as long as the recording. *Bound* memory is named by a slot,
//! to which every replay binds a buffer. *Arena* memory is an offset in one buffer for all
//! temporaries: [`ReplayInterface::record`] returns its size, and the host allocates it. Scalars
//! are the command's, or named by a slot, too.
//!
//! A replay does what a submit of the commands would do, in their order, on the memory that is
//! bound. A backend may take its time to record: a replay should cost little more than the kernels,
//! and a change no more than the commands that it concerns.
//!
//! [`crate::status::UNSUPPORTED`] and [`crate::status::NOT_YET`] are answers of `record`, `replay` and
//! `update` after which nothing was done and nothing was enqueued. The host submits the commands
//! instead; after NOT_YET it asks again at a later run.

use crate::{Command, Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.replay/2";

/// Values of [`MemorySource::kind`].
pub mod source {
    /// The memory that the command names, alive for as long as the recording.
    pub const FIXED: u32 = 0;
    /// The memory that a replay binds to slot `slot`. The tensor's `dl.byte_offset` counts from
    /// [`SlotMemory::offset`](super::SlotMemory::offset).
    pub const BOUND: u32 = 1;
    /// The arena. The tensor's `dl.byte_offset` counts from its beginning.
    pub const ARENA: u32 = 2;
}

/// The source of a tensor's memory. Of tensors whose memory is not fixed, `dl.data`, `buffer`,
/// `buffer_size` and `wait` say nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySource {
    /// One of [`source`].
    pub kind: u32,
    /// Number of the slot, if bound; else 0.
    pub slot: u32,
}

/// Value of a recorded scalar's slot: the scalar is the command's.
pub const FIXED_SCALAR: u32 = u32::MAX;

/// A command of a recording. Pointers are valid only during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecordedCommand {
    /// `size_of::<RecordedCommand>()` of the writer.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// Plan, shapes, strides, offsets and scalars.
    pub command: *const Command,
    /// Sources of the inputs' memory, then of the outputs'. NULL: all are fixed.
    pub sources: *const MemorySource,
    /// Slot of each scalar, or [`FIXED_SCALAR`]. NULL: all are fixed.
    pub scalar_slots: *const u32,
    /// Source of the workspace.
    pub workspace: MemorySource,
    /// Bytes from the slot's or the arena's beginning to the workspace.
    pub workspace_offset: u64,
}

/// Commands to be recorded. Pointers are valid only during the call.
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
    /// Bytes of the arena that commands and later updates use.
    pub arena_bytes: u64,
}

/// Memory that is bound for a replay.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotMemory {
    /// The backend's handle of the buffer; NULL for memory of the host, and for a slot that no
    /// command names. The handle of the last replay may be that of another buffer by now: what a
    /// recording keeps of a buffer is good for as long as its memory is the same.
    pub buffer: *mut c_void,
    /// Address of the buffer for the host, or NULL where it has none.
    pub data: *mut c_void,
    /// Bytes in the whole buffer.
    pub bytes: u64,
    /// Bytes from the buffer's beginning to the slot's.
    pub offset: u64,
}

/// The bindings of a replay. Pointers are valid only during the call.
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
    /// Number of slots: the recording's.
    pub n_slots: u32,
    /// Number of scalars: the recording's.
    pub n_scalars: u32,
    /// The arena, at least as large as `record` said; `offset` 0. Its content need not be what the
    /// last replay left. The same one as last time costs nothing, another one may cost as much as a
    /// change of all commands.
    pub arena: SlotMemory,
}

/// The interface's table.
///
/// Calls with one recording come one at a time, from any thread, and `replay`s of it run one after
/// another: the host has a stream wait for the former replay if that was on another stream.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReplayInterface {
    /// `size_of::<ReplayInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Records commands without running them. Their plans and fixed buffers stay alive for as
    /// long as the recording. `arena_bytes` gets the size of the arena: what was asked for, or
    /// more, which is the backend's own.
    pub record: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            request: *const RecordingRequest,
            recording: *mut *mut c_void,
            arena_bytes: *mut u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Runs a recording, as [`crate::BackendTable::submit`] its commands.
    pub replay: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            recording: *mut c_void,
            bindings: *const ReplayBindings,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Replaces command `index` for later replays; replays under way keep the former one. Its
    /// plan and the numbers of its tensors and scalars are the former one's; shapes, strides,
    /// offsets, scalars and sources may differ. After a failure the former command stays.
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

//! Optional interface: collectives among the devices of several processes, in the order of a
//! stream.
//!
//! Each process has one device in a group, and a *rank* from 0 to the group's size - 1. One process
//! makes an id, the host carries it to the other processes, and all of them open the group with it.
//! Every process runs the same collectives in the same order; sends and receives match by their
//! peers.
//!
//! A command waits for the other ranks on the device, never on the host. So if a rank is missing,
//! the stream halts until the host calls [`CollectiveInterface::abort`].

use crate::{Error, Status};
use core::ffi::c_void;
use ultramarine_dlpack::DLDataType;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.collective/1";

/// The most bytes of a group's id.
pub const MOST_ID_BYTES: usize = 256;

/// Values of [`CollectiveCommand::kind`].
pub mod kind {
    /// Sum over the ranks. All ranks get it. For bool, true if any is true.
    pub const SUM: u32 = 0;
    /// Largest element over the ranks. NaN if one is NaN; complex numbers compare as in
    /// [`crate::schema::binary::MAXIMUM`].
    pub const MAX: u32 = 1;
    /// Smallest element over the ranks, with the same rules.
    pub const MIN: u32 = 2;
    /// The inputs of all ranks, concatenated in the order of ranks.
    pub const GATHER: u32 = 3;
    /// Sum over the ranks; rank `r` gets part `r` of it.
    pub const SUM_SCATTER: u32 = 4;
    /// Sends the input to a rank, which receives as many elements.
    pub const SEND: u32 = 5;
    /// Receives the output from a rank.
    pub const RECEIVE: u32 = 6;
    /// Number of kinds.
    pub const COUNT: u32 = 7;
}

/// Id of a group: bytes of the backend, opaque to the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveId {
    /// `size_of::<CollectiveId>()` of the host.
    pub size: u32,
    /// Bytes in use.
    pub length: u32,
    /// The bytes. Those after `length` are zero.
    pub bytes: [u8; MOST_ID_BYTES],
}

impl Default for CollectiveId {
    fn default() -> Self {
        Self { size: size_of::<Self>() as u32, length: 0, bytes: [0; MOST_ID_BYTES] }
    }
}

/// A collective or a message. Tensors are contiguous parts of buffers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCommand {
    /// `size_of::<CollectiveCommand>()` of the writer.
    pub size: u32,
    /// One of [`kind`].
    pub kind: u32,
    /// Element type.
    pub dtype: DLDataType,
    /// Rank of the other side of SEND and RECEIVE; otherwise 0.
    pub peer: u32,
    /// Number of elements of the input; for RECEIVE of the output. Never 0. The output of GATHER
    /// has `count` elements for each rank. For SUM_SCATTER `count` is a multiple of the group's
    /// size, and the output has one part.
    pub count: u64,
    /// The input's buffer; NULL for RECEIVE.
    pub input: *mut c_void,
    /// Bytes from the buffer's beginning to the input.
    pub input_offset: u64,
    /// The output's buffer; NULL for SEND. For SUM, MAX and MIN it may be exactly the input's
    /// memory; otherwise the two do not overlap.
    pub output: *mut c_void,
    /// Bytes from the buffer's beginning to the output.
    pub output_offset: u64,
}

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CollectiveInterface {
    /// `size_of::<CollectiveInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Makes the id of a new group, in one of its processes. If `id` is NULL, the function
    /// only reports if it could make one. UNSUPPORTED means that a library is missing on this
    /// machine; the error object then has the reason and the remedy.
    pub make_id: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            id: *mut CollectiveId,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Begins to open a group on a device, as `rank` of `n_ranks`, without waiting for the
    /// other ranks. `status` reports when the group is ready.
    pub open: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            id: *const CollectiveId,
            rank: u32,
            n_ranks: u32,
            group: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Begins to open a part of a ready group: the ranks with equal `color`, ordered by `key`
    /// and then by rank. All ranks of the group call it. No rank runs a command of the group before
    /// `status` of the new group is OK.
    pub split: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            group: *mut c_void,
            color: u32,
            key: i32,
            new_group: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Returns the state of a group, without waiting. OK: it is ready, and nothing has
    /// failed. NOT_YET: it is being opened. Any other status: it has failed, here or on another
    /// rank; the host then calls only `abort` and `close`.
    pub status: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            group: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Reads rank and size of a ready group. The host calls it before it runs commands.
    pub place: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            group: *mut c_void,
            rank: *mut u32,
            n_ranks: *mut u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Enqueues commands of a ready group. They are `commands.size` bytes apart. They
    /// begin together and do not depend on one another: a send and a receive of one list never wait
    /// for each other. There is one call at a time for each group. UNSUPPORTED means that the
    /// device cannot combine this dtype, and that nothing was enqueued.
    pub run: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            group: *mut c_void,
            stream: *mut c_void,
            commands: *const CollectiveCommand,
            n_commands: u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any, also during other calls with the group) Ends a group. Commands that wait for other
    /// ranks end with unspecified outputs, and their streams continue. Other ranks may see the end
    /// in `status`. The handle stays valid.
    pub abort: Option<unsafe extern "C" fn(device: *mut c_void, group: *mut c_void)>,
    /// (any) Frees a group whose commands are done, or that was aborted. Groups split from it live
    /// on.
    pub close: Option<unsafe extern "C" fn(device: *mut c_void, group: *mut c_void)>,
}

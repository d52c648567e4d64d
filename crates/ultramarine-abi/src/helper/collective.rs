//! The table of `ultramarine.collective/1`, made from a trait.

use super::{
    Device, Dtype, Failure, Plain, Result, device_of, give, guard_value, handle, host_of,
    with_device,
};
use crate::interface::collective::{CollectiveCommand, CollectiveId, CollectiveInterface, kind};
use crate::{Error, Status};
use core::ffi::c_void;

// SAFETY: the struct has only integers, and its size comes first.
unsafe impl Plain for CollectiveId {}

/// A device that takes part in groups of processes, as `ultramarine.collective/1` describes them.
/// [`collective_table`] makes the interface's table.
///
/// Functions marked *any* may be called from any thread, those marked *stream* from one at a time
/// for each stream. Every function that fails returns a [`Failure`].
pub trait Collectives: Device {
    /// A group. Several threads use it at the same time.
    type Group: Send + Sync + 'static;

    /// (any) Checks that the communication library for groups is available.
    ///
    /// # Errors
    /// A [`Failure`] with the reason and the remedy if it is not.
    fn check_library(&self) -> Result<()>;

    /// (any) Returns the id of a new group: at most [`crate::interface::collective::MOST_ID_BYTES`]
    /// bytes.
    ///
    /// # Errors
    /// A [`Failure`] if the library cannot make one.
    fn make_id(&self) -> Result<Vec<u8>>;

    /// (any) Begins to open a group of `n_ranks` processes, of which this one is `rank`. It does
    /// not wait for the others. Once [`Collectives::is_ready`] returns true, the group can be used.
    ///
    /// # Errors
    /// A [`Failure`] if the group cannot be opened.
    fn open(&self, id: &[u8], rank: u32, n_ranks: u32) -> Result<Self::Group>;

    /// (any) Begins to open a part of a group: the ranks that pass the same `color`, ordered by
    /// `key`.
    ///
    /// # Errors
    /// As [`Collectives::open`].
    fn split(&self, group: &Self::Group, color: u32, key: i32) -> Result<Self::Group>;

    /// (any) Returns true once the group is ready.
    ///
    /// # Errors
    /// A [`Failure`] if the group has failed.
    fn is_ready(&self, group: &Self::Group) -> Result<bool>;

    /// (any) Returns rank and size of a group that is ready.
    ///
    /// # Errors
    /// A [`Failure`] if the group has failed.
    fn place(&self, group: &Self::Group) -> Result<(u32, u32)>;

    /// (stream) Enqueues commands, which begin together.
    ///
    /// # Errors
    /// A [`Failure`] if the commands cannot be enqueued, or the group has failed.
    fn run(
        &self,
        group: &Self::Group,
        stream: Option<&Self::Stream>,
        commands: &[CollectiveRef<'_, Self>],
    ) -> Result<()>;

    /// (any) Ends a group. Its work in progress ends, with or without results, and later commands
    /// fail.
    fn abort(&self, group: &Self::Group);
}

/// A collective command, decoded.
pub struct CollectiveRef<'a, D: Device> {
    /// One of [`kind`].
    pub kind: u32,
    /// Element type.
    pub dtype: Dtype,
    /// Rank of the other side of a message.
    pub peer: u32,
    /// Number of elements, as in [`CollectiveCommand::count`]. Not 0.
    pub count: u64,
    /// The input's buffer, and the input's offset in it.
    pub input: Option<(&'a D::Buffer, u64)>,
    /// The output's buffer, and the output's offset in it.
    pub output: Option<(&'a D::Buffer, u64)>,
}

impl<'a, D: Device> CollectiveRef<'a, D> {
    /// Decodes commands.
    ///
    /// # Safety
    /// `commands` points at that many commands, which are `commands.size` bytes apart and have
    /// buffers of the device.
    unsafe fn list(commands: *const CollectiveCommand, n: u32) -> Result<Vec<Self>> {
        let missing = || Failure::invalid("no commands");
        // SAFETY: by this function's contract.
        let stride = unsafe { commands.as_ref() }.ok_or_else(missing)?.size as usize;
        let each = (0..n as usize).map(|i| {
            let at = commands.cast::<u8>().wrapping_add(i * stride).cast::<CollectiveCommand>();
            // SAFETY: as above. An all-zero command is valid.
            let command = unsafe { crate::read_sized(at) }.ok_or_else(missing)?;
            // SAFETY: as above.
            unsafe { Self::of(&command) }
        });
        each.collect()
    }

    /// Decodes a command.
    ///
    /// # Safety
    /// Its buffers are the device's.
    unsafe fn of(command: &CollectiveCommand) -> Result<Self> {
        if command.kind >= kind::COUNT {
            return Err(Failure::unsupported(format!("no collective {}", command.kind)));
        }
        if command.count == 0 {
            return Err(Failure::invalid("the collective has no elements"));
        }
        let dtype = Dtype::of(command.dtype)
            .ok_or_else(|| Failure::unsupported("the collective has an unknown dtype"))?;
        let buffer = |wanted: bool, buffer: *mut c_void, what: &str, offset: u64| {
            if !wanted {
                return Ok(None);
            }
            // SAFETY: by this function's contract.
            unsafe { handle::<D::Buffer>(buffer, what) }.map(|buffer| Some((buffer, offset)))
        };
        let receives = command.kind == kind::RECEIVE;
        let sends = command.kind == kind::SEND;
        Ok(Self {
            kind: command.kind,
            dtype,
            peer: command.peer,
            count: command.count,
            input: buffer(!receives, command.input, "the input", command.input_offset)?,
            output: buffer(!sends, command.output, "the output", command.output_offset)?,
        })
    }
}

/// Returns the table of the interface for a device, for a `static`.
pub const fn collective_table<D: Collectives>() -> CollectiveInterface {
    CollectiveInterface {
        size: size_of::<CollectiveInterface>() as u32,
        flags: 0,
        make_id: Some(make_id::<D>),
        open: Some(open::<D>),
        split: Some(split::<D>),
        status: Some(status::<D>),
        place: Some(place::<D>),
        run: Some(run::<D>),
        abort: Some(abort::<D>),
        close: Some(close::<D>),
    }
}

// The safety of the functions below is that of the contract: handles are those of the device's
// type, pointers are NULL or writable, and a group, which is a box, is closed once.

unsafe extern "C" fn make_id<D: Collectives>(
    device: *mut c_void,
    id: *mut CollectiveId,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            let Some(mut filled) = crate::read_sized(id) else { return device.check_library() };
            let made = device.make_id()?;
            let room = (filled.size as usize)
                .saturating_sub(core::mem::offset_of!(CollectiveId, bytes))
                .min(filled.bytes.len());
            let place = filled.bytes[..room].get_mut(..made.len()).ok_or_else(|| {
                Failure::invalid(format!(
                    "the id has {} bytes, where {room} are possible",
                    made.len()
                ))
            })?;
            place.copy_from_slice(&made);
            filled.length = made.len() as u32;
            crate::write_sized(id, &filled);
            Ok(())
        })
    }
}

unsafe extern "C" fn open<D: Collectives>(
    device: *mut c_void,
    id: *const CollectiveId,
    rank: u32,
    n_ranks: u32,
    group: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            let id = crate::read_sized(id).ok_or_else(|| Failure::invalid("no id"))?;
            let bytes = id.bytes.get(..id.length as usize);
            let bytes =
                bytes.ok_or_else(|| Failure::invalid("the id is longer than its struct"))?;
            if rank >= n_ranks {
                return Err(Failure::invalid(format!(
                    "rank {rank} is not below the number of ranks, {n_ranks}"
                )));
            }
            give(group, device.open(bytes, rank, n_ranks)?)
        })
    }
}

unsafe extern "C" fn split<D: Collectives>(
    device: *mut c_void,
    group: *mut c_void,
    color: u32,
    key: i32,
    new_group: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            give(new_group, device.split(handle(group, "the group")?, color, key)?)
        })
    }
}

unsafe extern "C" fn status<D: Collectives>(
    device: *mut c_void,
    group: *mut c_void,
    error: *mut *mut Error,
) -> Status {
    let mut ready = true;
    // SAFETY: the contract's.
    let code = unsafe {
        with_device::<D>(device, error, |device| {
            ready = device.is_ready(handle(group, "the group")?)?;
            Ok(())
        })
    };
    match ready {
        true => code,
        false => crate::status::NOT_YET,
    }
}

unsafe extern "C" fn place<D: Collectives>(
    device: *mut c_void,
    group: *mut c_void,
    rank: *mut u32,
    n_ranks: *mut u32,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            let (Some(rank), Some(n_ranks)) = (rank.as_mut(), n_ranks.as_mut()) else {
                return Err(Failure::invalid("the pointer to the rank or the size is NULL"));
            };
            (*rank, *n_ranks) = device.place(handle(group, "the group")?)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn run<D: Collectives>(
    device: *mut c_void,
    group: *mut c_void,
    stream: *mut c_void,
    commands: *const CollectiveCommand,
    n_commands: u32,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            let commands = CollectiveRef::list(commands, n_commands)?;
            let stream = stream.cast::<D::Stream>().as_ref();
            device.run(handle(group, "the group")?, stream, &commands)
        })
    }
}

unsafe extern "C" fn abort<D: Collectives>(device: *mut c_void, group: *mut c_void) {
    // SAFETY: the contract's.
    let (host, device, group) = unsafe {
        (host_of::<D>(device), device_of::<D>(device), group.cast::<D::Group>().as_ref())
    };
    guard_value(host.as_ref(), (), || {
        if let (Some(device), Some(group)) = (device, group) {
            device.abort(group);
        }
    });
}

unsafe extern "C" fn close<D: Collectives>(device: *mut c_void, group: *mut c_void) {
    // SAFETY: the contract's.
    unsafe { super::take::<D::Group>(host_of::<D>(device), group) }
}

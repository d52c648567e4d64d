//! The table of `ultramarine.replay/2`, made from a trait.

use super::{Device, RecordedCommands, Result, give, handle, host_of, take, with_device};
use crate::interface::replay::{
    RecordedCommand, RecordingRequest, ReplayBindings, ReplayInterface,
};
use crate::{Error, Status};
use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

/// A device that records commands, as `ultramarine.replay/2` describes it. [`replay_table`] makes
/// the interface's table.
pub trait Recorder: Device {
    /// The device's part of a recording, in addition to its commands.
    type Recording: Send + 'static;

    /// Returns the address of a buffer. While the address stays the same, a recording that uses the
    /// buffer stays valid.
    fn place(&self, buffer: &Self::Buffer) -> u64;

    /// (any) Records commands. Of their memory, only the fixed memory is known.
    ///
    /// # Errors
    /// [`Failure::unsupported`](super::Failure::unsupported) for commands that cannot be recorded:
    /// the host submits them one by one.
    fn record_commands(&self, commands: &RecordedCommands<Self>) -> Result<Self::Recording>;

    /// (stream) Runs a recording. [`RecordedCommands::changed`] names the commands that were
    /// updated or bound to other memory since the last call.
    ///
    /// # Errors
    /// A [`Failure`](super::Failure), after which nothing was enqueued.
    fn replay(
        &self,
        stream: Option<&Self::Stream>,
        commands: &RecordedCommands<Self>,
        recording: &mut Self::Recording,
    ) -> Result<()>;
}

/// Target of a recording's handle.
struct Cell<D: Recorder>(Mutex<(RecordedCommands<D>, D::Recording)>);

impl<D: Recorder> Cell<D> {
    fn lock(&self) -> MutexGuard<'_, (RecordedCommands<D>, D::Recording)> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Returns the table of the interface for a device, for a `static`.
pub const fn replay_table<D: Recorder>() -> ReplayInterface {
    ReplayInterface {
        size: size_of::<ReplayInterface>() as u32,
        flags: 0,
        record: Some(record::<D>),
        replay: Some(replay::<D>),
        update: Some(update::<D>),
        release: Some(release::<D>),
    }
}

unsafe extern "C" fn record<D: Recorder>(
    device: *mut c_void,
    request: *const RecordingRequest,
    recording: *mut *mut c_void,
    arena_bytes: *mut u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: by the contract, a device of this type, a request with everything that it points at,
    // and pointers that are NULL or writable.
    unsafe {
        with_device::<D>(device, error, |device| {
            let commands = RecordedCommands::<D>::read(request)?;
            let bytes = commands.arena_bytes();
            let made = device.record_commands(&commands)?;
            give(recording, Cell::<D>(Mutex::new((commands, made))))?;
            if let Some(place) = arena_bytes.as_mut() {
                *place = bytes;
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn replay<D: Recorder>(
    device: *mut c_void,
    stream: *mut c_void,
    recording: *mut c_void,
    bindings: *const ReplayBindings,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: by the contract, handles of this backend, and bindings with everything that they
    // point at.
    unsafe {
        with_device::<D>(device, error, |device| {
            let mut cell = handle::<Cell<D>>(recording, "the recording")?.lock();
            let (commands, made) = &mut *cell;
            commands.bind(bindings, |buffer| {
                let buffer = buffer.cast::<D::Buffer>().as_ref();
                buffer.map_or(0, |buffer| device.place(buffer))
            })?;
            let stream = stream.cast::<D::Stream>().as_ref();
            let done = device.replay(stream, commands, made);
            if done.is_err() {
                commands.again();
            }
            done
        })
    }
}

unsafe extern "C" fn update<D: Recorder>(
    device: *mut c_void,
    recording: *mut c_void,
    index: u32,
    command: *const RecordedCommand,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: by the contract, handles of this backend, and a command with everything that it
    // points at.
    unsafe {
        with_device::<D>(device, error, |_| {
            let mut cell = handle::<Cell<D>>(recording, "the recording")?.lock();
            cell.0.update(index, command)
        })
    }
}

unsafe extern "C" fn release<D: Recorder>(device: *mut c_void, recording: *mut c_void) {
    // SAFETY: a recording of this device, which is released once; the device is open.
    unsafe { take::<Cell<D>>(host_of::<D>(device), recording) };
}

//! The interface `ultramarine.replay/2` of a wrapped backend. The commands of a recording are
//! checked with the memory that each replay binds, like the commands of a submit.

use super::calls::{ErrorOut, Handle, HandleOut, context, made, open_context};
use super::state::{HandleKey, State, key};
use super::{Check, Context, replaced, tensors};
use crate::sync::lock;
use core::ffi::c_void;
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, RecordedCommands};
use ultramarine_abi::interface::replay::{
    RecordedCommand, RecordingRequest, ReplayBindings, ReplayInterface,
};
use ultramarine_abi::{Status, ensure, status};

/// A recording: its commands, and the buffers that its last replay used.
pub(super) struct Recording {
    commands: RecordedCommands<()>,
    /// Plans and fixed buffers, which have to outlive the recording.
    held: Vec<usize>,
    /// The buffers that each command uses, as bound in the last replay.
    buffers: Vec<Vec<HandleKey>>,
    /// The last replay: its stream, and the number of its work on the stream.
    pub last: Option<(HandleKey, u64)>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a recording of {} commands", self.commands.len())
    }
}

impl Recording {
    fn new(commands: RecordedCommands<()>) -> Self {
        let buffers = vec![Vec::new(); commands.len()];
        let mut recording = Recording { commands, held: Vec::new(), buffers, last: None };
        recording.hold();
        recording
    }

    fn hold(&mut self) {
        self.held.clear();
        for i in 0..self.commands.len() {
            self.held.extend(self.commands.raw(i).map(|c| c.plan as usize));
            self.held.extend(self.commands.fixed_buffers(i).map(|b| b as usize));
        }
        self.held.sort_unstable();
        self.held.dedup();
    }

    /// Returns true for a plan or a fixed buffer of a command.
    pub fn holds(&self, handle: usize) -> bool {
        self.held.binary_search(&handle).is_ok()
    }

    /// Checks that the commands' plans are alive, and that the commands have the plans' tensors.
    fn fits(&self, s: &State, device: Handle) -> Check {
        for i in 0..self.commands.len() {
            let Some(c) = self.commands.raw(i) else { continue };
            let at = |what| format!("command {i}: {what}");
            let plans = s.plans.get(key(device, c.plan)).map_err(at)?;
            let counts = |p: &Arc<super::signature::Signature>| {
                p.counts(c.n_inputs, c.n_outputs, c.n_scalars)
            };
            if !plans.iter().any(|p| counts(p).is_ok()) {
                plans.iter().try_for_each(counts).map_err(at)?;
            }
        }
        Ok(())
    }

    /// Binds memory, and checks the commands that use it.
    ///
    /// # Safety
    /// The bindings are those of a replay, and everything that they point at is valid.
    unsafe fn bind(
        &mut self,
        cx: &Context,
        s: &State,
        device: Handle,
        bindings: *const ReplayBindings,
    ) -> Check {
        // SAFETY: by this function's contract.
        let changed =
            unsafe { self.commands.bind(bindings, |buffer| buffer as u64) }.map_err(text)?.to_vec();
        for i in changed {
            let Some(command) = self.commands.raw(i as usize) else { continue };
            // SAFETY: the command points at memory that the list owns.
            let checked = unsafe { tensors::command(cx, s, device, &command) };
            match checked {
                Ok(buffers) => self.buffers[i as usize] = buffers,
                Err(what) => {
                    self.commands.again();
                    return Err(format!("command {i}: {what}"));
                }
            }
        }
        Ok(())
    }
}

fn text(failure: Failure) -> String {
    failure.text
}

fn interface(cx: &Context) -> Option<&ReplayInterface> {
    cx.replay.get().map(|(real, _)| real)
}

fn find(s: &State, device: Handle, recording: Handle) -> Result<Arc<Mutex<Recording>>, String> {
    s.recordings.get(key(device, recording)).cloned()
}

unsafe fn record(
    slot: usize,
    device: Handle,
    request: *const RecordingRequest,
    recording: HandleOut,
    arena_bytes: *mut u64,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.record) else { return status::UNSUPPORTED };
    // SAFETY: the caller's request.
    let read = unsafe { RecordedCommands::<()>::read(request) };
    let (kept, wrong) = match read {
        Ok(commands) => (Some(Recording::new(commands)), None),
        Err(failure) => (None, Some(failure.text)),
    };
    let asked = kept.as_ref().map_or(0, |r| r.commands.arena_bytes());
    let before = |s: &mut State| {
        s.device(device)?;
        ensure!(!arena_bytes.is_null(), "no place for the arena's size");
        wrong.clone().map_or(Ok(()), Err)?;
        kept.as_ref().map_or(Ok(()), |kept| {
            kept.fits(s, device)?;
            for i in 0..kept.commands.len() {
                for buffer in kept.commands.fixed_buffers(i) {
                    let known = s.buffers.get(key(device, buffer));
                    // A workspace may be an address in host memory.
                    let host = s.device(device).is_ok_and(|d| d.info.host_memory != 0);
                    known.map(|_| ()).or_else(|what| if host { Ok(()) } else { Err(what) })?;
                }
            }
            Ok(())
        })
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, request, recording, arena_bytes, e) };
    let made_here = Cell::new(None);
    let after = |s: &mut State| {
        // SAFETY: the caller's pointers, to which the backend has written.
        let (recording, bytes) = unsafe { (made(recording, "recording")?, *arena_bytes) };
        ensure!(!recording.is_null(), "it returned OK and no recording");
        ensure!(bytes >= asked, "an arena of {bytes} bytes, although {asked} are used");
        made_here.set(Some(key(device, recording)));
        let _ = s;
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    let code = unsafe { cx.call("record", error, None, &before, &real, &after) };
    if let Some((at, kept)) = made_here.get().zip(kept)
        && let Err(what) = cx.state().recordings.add(at, Arc::new(Mutex::new(kept)))
    {
        cx.finding("record", &what);
    }
    code
}

unsafe fn replay(
    slot: usize,
    device: Handle,
    stream: Handle,
    recording: Handle,
    bindings: *const ReplayBindings,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.replay) else { return status::UNSUPPORTED };
    let own = cx.real.stream_create.is_some() && !(cx.is_cpu() && stream.is_null());
    let on = own.then(|| key(device, stream));
    let before = |s: &mut State| {
        let found = find(s, device, recording)?;
        let Ok(mut found) = found.try_lock() else {
            return Err("two calls at once with one recording".into());
        };
        if let Some(on) = on {
            s.may_replay(&found, on)?;
        }
        // SAFETY: the caller's bindings.
        unsafe { found.bind(cx, s, device, bindings) }?;
        if let Some(on) = on {
            s.submitted(on, &found.buffers.concat());
            s.replayed(&mut found, on);
        }
        Ok(())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, recording, bindings, e) };
    // SAFETY: the error pointer is the caller's.
    let code = unsafe { cx.call("replay", error, on, &before, &real, &|_| Ok(())) };
    if code != status::OK && !cx.forked() {
        on.into_iter().for_each(|on| cx.state().not_submitted(on));
    }
    code
}

unsafe fn update(
    slot: usize,
    device: Handle,
    recording: Handle,
    index: u32,
    command: *const RecordedCommand,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.update) else { return status::UNSUPPORTED };
    let before = |s: &mut State| find(s, device, recording).map(|_| ());
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, recording, index, command, e) };
    let after = |s: &mut State| {
        let found = find(s, device, recording)?;
        let mut found = lock(&found);
        // SAFETY: the caller's command.
        unsafe { found.commands.update(index, command) }.map_err(|failure| {
            format!("it took an update that breaks the contract: {}", failure.text)
        })?;
        found.hold();
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("update", error, None, &before, &real, &after) }
}

unsafe fn release(slot: usize, device: Handle, recording: Handle) {
    let Some(cx) = open_context(slot) else { return };
    if !cx.forked()
        && let Err(what) = cx.state().recording_gone(key(device, recording))
    {
        cx.finding("release", &what);
        return;
    }
    if let Some(real) = interface(cx).and_then(|i| i.release) {
        // SAFETY: the recording was alive, and is released once.
        unsafe { real(device, recording) }
    }
}

slots! {
    fn record(
        device: Handle, request: *const RecordingRequest, recording: HandleOut,
        arena_bytes: *mut u64, error: ErrorOut
    ) -> Status;
    fn replay(
        device: Handle, stream: Handle, recording: Handle, bindings: *const ReplayBindings,
        error: ErrorOut
    ) -> Status;
    fn update(
        device: Handle, recording: Handle, index: u32, command: *const RecordedCommand,
        error: ErrorOut
    ) -> Status;
    fn release(device: Handle, recording: Handle);
}

/// Returns the interface of a slot, which replaces the backend's own.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: ReplayInterface| ReplayInterface {
        size: size_of::<ReplayInterface>() as u32,
        record: real.record.map(|_| of_slot::record::<S> as _),
        replay: real.replay.map(|_| of_slot::replay::<S> as _),
        update: real.update.map(|_| of_slot::update::<S> as _),
        release: real.release.map(|_| of_slot::release::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.replay, found, ours) }
}

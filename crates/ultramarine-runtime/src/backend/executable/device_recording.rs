//! An executable as a recording of its backend (`ultramarine.replay/2`), so that a run is one call.
//!
//! All memory of a run exists from its beginning, unlike when commands are submitted one by one.
//! Temporaries lie in one arena, which the recording keeps from run to run. So executables with
//! large temporaries use single commands.
//!
//! Calls are not part of recordings. The commands before, between and after the calls form one
//! recording each, and all share one arena.

use super::list::List;
use super::memory_plan::{self, Lifetime};
use super::{Executable, Failure, Memory, Slot, Step};
use crate::backend::buffer::BufferRef;
use crate::backend::call::Exec;
use crate::backend::{
    DeviceState, Plan, interface_of, pending_free, shutdown::Compiling, value::Value,
};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::{host_table, interrupt};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use ultramarine_abi::interface::replay::{
    self, MemorySource, RecordedCommand, RecordingRequest, ReplayBindings, ReplayInterface,
    SlotMemory, source,
};
use ultramarine_abi::{BackendTable, Command, Error as ErrorObject, Status, Tensor, status};

/// The most bytes of an arena that a recording keeps.
const MOST_BYTES: usize = 4 << 20;
/// The fewest commands that are worth a recording.
const FEWEST: usize = 4;
/// Number of runs by single commands before the commands are recorded. The first run compiles
/// kernels.
const RUNS_BEFORE: u32 = 1;
/// How often a recording may be made anew because commands need more scratch memory.
const MOST_ATTEMPTS: u32 = 4;

/// The functions of the interface.
#[derive(Clone, Copy)]
pub(in crate::backend) struct Functions {
    record: unsafe extern "C" fn(
        *mut c_void,
        *const RecordingRequest,
        *mut *mut c_void,
        *mut u64,
        *mut *mut ErrorObject,
    ) -> Status,
    replay: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *const ReplayBindings,
        *mut *mut ErrorObject,
    ) -> Status,
    release: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

impl Functions {
    /// Returns the functions, if the backend has all of them.
    pub fn of(table: &BackendTable) -> Option<Functions> {
        let found: ReplayInterface = interface_of(table, replay::INTERFACE)?;
        Some(Functions { record: found.record?, replay: found.replay?, release: found.release? })
    }
}

/// An executable's state on its backend.
pub(super) enum OnDevice {
    /// It runs by single commands. The number counts these runs.
    Single(u32),
    Recorded(Box<DeviceRecording>),
    /// The backend refused to record, so it always gets single commands.
    Refused,
}

/// The backend's handle of a recording, with the objects that it refers to, which have to outlive
/// it.
pub struct Held {
    device: &'static DeviceState,
    release: unsafe extern "C" fn(*mut c_void, *mut c_void),
    raw: *mut c_void,
    /// The temporaries' memory. Each replay writes to it, so the uses of the arena are the uses of
    /// the recording.
    pub arena: BufferRef,
    _plans: Vec<Arc<Plan>>,
    constants: Vec<BufferRef>,
}

// SAFETY: any thread may use and release the handle, but only one at a time.
unsafe impl Send for Held {}

impl Held {
    /// Releases the recording. No stream runs it any more.
    pub fn release(self) {
        // SAFETY: this device's backend made the handle, it is released once, and no stream is
        // running it.
        unsafe { (self.release)(self.device.handle, self.raw) };
    }
}

/// A slot that every replay binds to memory.
struct Bound {
    slot: u32,
    /// True if replays write to the memory: it is a result, or an operand that is taken over.
    writes: bool,
    /// The steps that use the slot.
    users: Box<[u32]>,
    /// The handle that was bound in the last replay.
    last: *mut c_void,
}

/// Consecutive steps that are one recording of the backend, or a single call.
struct Part {
    steps: Range<usize>,
    /// `None` for a call, and after this part was dropped.
    held: Option<Held>,
    bound: Vec<Bound>,
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            pending_free::free_recording(held);
        }
    }
}

/// The recordings of an executable.
pub(super) struct DeviceRecording {
    functions: Functions,
    parts: Vec<Part>,
    /// The temporaries' memory.
    arena: BufferRef,
    /// The offset in bytes of each slot in its buffer.
    offsets: SmallVec<[usize; 16]>,
    /// The bytes of scratch memory of each step.
    workspaces: Vec<u64>,
    /// How often the recording was made anew.
    attempts: u32,
}

// SAFETY: handles are only compared, and used as `Held` describes.
unsafe impl Send for DeviceRecording {}

impl Executable {
    /// Runs the executable as a recording, if it is one or can be made one now. `None`: nothing was
    /// enqueued.
    ///
    /// # Errors
    /// Those of the backend.
    pub(super) fn replayed(
        &self,
        exec: &Exec,
        inputs: &[&Value],
        numbers: &[(u32, Scalar)],
    ) -> Result<Option<Memory>, Failure> {
        // If another thread runs the recording at the moment, use single commands.
        let (Some(functions), Ok(mut state)) = (self.device.replay, self.on_device.try_lock())
        else {
            return Ok(None);
        };
        match &mut *state {
            OnDevice::Refused => return Ok(None),
            OnDevice::Single(runs) if *runs < RUNS_BEFORE => {
                *runs += 1;
                return Ok(None);
            }
            _ => {}
        }
        // If there is not enough memory for all commands at once, there may be enough for one
        // command after the other.
        let Ok(mut memory) = self.bound_memory(exec, inputs) else { return Ok(None) };
        memory.numbers = self.with_numbers(numbers);
        loop {
            let attempts = match &mut *state {
                OnDevice::Recorded(recording) => match recording.fits(self, exec, &mut memory) {
                    true => break,
                    false => recording.attempts + 1,
                },
                _ => 0,
            };
            *state = match self.is_recordable() && attempts < MOST_ATTEMPTS {
                true => self.recorded(exec, functions, &mut memory, attempts),
                false => OnDevice::Refused,
            };
            if !matches!(*state, OnDevice::Recorded(_)) {
                return Ok(None);
            }
        }
        let OnDevice::Recorded(recording) = &mut *state else { return Ok(None) };
        if !self.donated.is_empty() || self.calls {
            interrupt::hold();
        }
        for slot in &self.donated {
            memory.buffer(*slot).changes();
        }
        let (mut list, mut refused) = (List::new(self), false);
        for (i, part) in recording.parts.iter().enumerate() {
            if let (Some(held), false) = (&part.held, refused) {
                let answer = recording.replay(self, exec, (part, held), &memory);
                let answer = answer.map_err(|error| Failure {
                    error,
                    op: "compiled",
                    intact: i == 0 && self.donated.is_empty(),
                    outputs: Vec::new(),
                })?;
                match answer {
                    status::OK => continue,
                    // In this case and the next, nothing was enqueued.
                    status::NOT_YET if i == 0 => return Ok(None),
                    status::NOT_YET => {}
                    _ if i == 0 => {
                        *state = OnDevice::Refused;
                        return Ok(None);
                    }
                    _ => refused = true,
                }
            }
            // The part is a call, or commands after a call, which cannot be undone. All memory is
            // allocated.
            let mut next = part.steps.start;
            while next < part.steps.end {
                let steps = next..self.list_from(exec, next).end.min(part.steps.end);
                match self.run_list(exec, steps, &mut memory, &mut list) {
                    Ok(end) => next = end,
                    Err(stopped) => return Err(self.failed(exec, stopped, memory, list)),
                }
            }
        }
        if refused {
            *state = OnDevice::Refused;
        }
        Ok(Some(memory))
    }

    /// Returns true if the backend may get all commands at once.
    fn is_recordable(&self) -> bool {
        let own = self.device.kernels.get().last();
        let is_own = |plan: &Arc<Plan>| own.is_some_and(|own| std::ptr::eq(*own, plan.kernels));
        // SAFETY: the sizes belong to the executable.
        let size = |t: &Tensor, d| unsafe { *t.dl.shape.add(d) };
        let has_elements = |t: &Tensor| (0..t.dl.ndim as usize).all(|d| size(t, d) > 0);
        self.steps.len() >= FEWEST
            && !self.device.waits_in_commands()
            && self.steps.iter().all(|step| match step.plan() {
                Some(plan) => {
                    is_own(plan) && self.tensors[step.tensors.clone()].iter().all(has_elements)
                }
                None => true,
            })
    }

    /// Allocates the memory of a run, except the arena.
    fn bound_memory(&self, exec: &Exec, inputs: &[&Value]) -> Result<Memory> {
        let arena = exec.buffer(0)?;
        let mut buffers = SmallVec::with_capacity(self.slots.len());
        for (i, slot) in self.slots.iter().enumerate() {
            buffers.push(match slot {
                Slot::Input(input) => inputs[*input].buffer.clone(),
                Slot::Constant(buffer) => buffer.clone(),
                Slot::Own(bytes) if self.is_output(i) => exec.buffer(*bytes)?,
                Slot::Arena(..) | Slot::Own(_) | Slot::Unused => arena.clone(),
            });
        }
        Ok(Memory {
            buffers,
            offsets: SmallVec::from_elem(0, self.slots.len()),
            arena,
            numbers: None,
            is_whole: true,
        })
    }

    fn is_output(&self, slot: usize) -> bool {
        self.outputs.iter().any(|o| o.slot as usize == slot)
    }

    /// Returns the size in bytes of a slot if it is a temporary.
    fn temporary(&self, slot: usize) -> Option<usize> {
        match self.slots[slot] {
            Slot::Arena(_, bytes) => Some(bytes),
            Slot::Own(bytes) if !self.is_output(slot) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the steps that use each slot.
    fn users(&self) -> Vec<Vec<u32>> {
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); self.slots.len()];
        for (i, step) in (0..).zip(&self.steps) {
            for slot in &self.slots_of[step.tensors.clone()] {
                let list = &mut users[*slot as usize];
                if list.last() != Some(&i) {
                    list.push(i);
                }
            }
        }
        users
    }

    /// Makes the backend record the commands.
    fn recorded(
        &self,
        exec: &Exec,
        functions: Functions,
        memory: &mut Memory,
        attempts: u32,
    ) -> OnDevice {
        let later = OnDevice::Single(RUNS_BEFORE);
        let users = self.users();
        let mut temporaries: Vec<(usize, Lifetime)> = Vec::new();
        for (slot, users) in users.iter().enumerate() {
            let (Some(first), Some(last)) = (users.first(), users.last()) else { continue };
            let (first, last) = (*first as usize, *last as usize);
            let lifetime = |bytes| (slot, Lifetime { bytes, first, last });
            temporaries.extend(self.temporary(slot).map(lifetime));
        }
        // To ask for the size of scratch memory, the tensors need memory of a run. In the
        // recording, scratch memory lies in the arena too.
        let mut lifetimes: Vec<Lifetime> = temporaries.iter().map(|t| t.1).collect();
        let (places, bytes) = memory_plan::plan(&lifetimes);
        if bytes > MOST_BYTES {
            return OnDevice::Refused;
        }
        let place = |memory: &mut Memory, places: &[usize]| {
            for ((slot, _), place) in temporaries.iter().zip(places) {
                memory.buffers[*slot] = memory.arena.clone();
                memory.offsets[*slot] = *place;
            }
        };
        let Ok(arena) = exec.buffer(bytes) else { return later };
        let nothing = std::mem::replace(&mut memory.arena, arena);
        place(memory, &places);
        let workspaces: Vec<u64> =
            self.steps.iter().map(|step| self.workspace(exec, step, memory)).collect();
        for (step, bytes) in workspaces.iter().enumerate().filter(|w| *w.1 > 0) {
            lifetimes.push(Lifetime { bytes: *bytes as usize, first: step, last: step });
        }
        // Free this arena before the final one is allocated.
        memory.arena = nothing;
        place(memory, &places);
        let (places, bytes) = memory_plan::plan(&lifetimes);
        if bytes > MOST_BYTES {
            return OnDevice::Refused;
        }
        place(memory, &places);
        let mut scratch = places[temporaries.len()..].iter();
        let scratch: Vec<Option<u64>> = workspaces
            .iter()
            .map(|bytes| if *bytes > 0 { scratch.next().map(|at| *at as u64) } else { None })
            .collect();
        // Use at least one byte, because the arena's uses are those of the recording.
        let mut arena_bytes = bytes.max(1) as u64;
        let (asked, mut parts) = (arena_bytes, Vec::new());
        for steps in self.parts() {
            match self.part(functions, steps, (&users, memory), (&scratch, asked)) {
                Ok((part, wanted)) => {
                    parts.push(part);
                    arena_bytes = arena_bytes.max(wanted);
                }
                Err(status::NOT_YET) => return later,
                Err(_) => return OnDevice::Refused,
            }
        }
        let Ok(arena) = exec.buffer(arena_bytes as usize) else { return later };
        for held in parts.iter_mut().filter_map(|part| part.held.as_mut()) {
            held.arena = arena.clone();
        }
        let offsets = memory.offsets.clone();
        let recording = DeviceRecording { functions, parts, arena, offsets, workspaces, attempts };
        OnDevice::Recorded(Box::new(recording))
    }

    /// Splits the steps into parts: the longest ranges of commands, and single calls.
    fn parts(&self) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            match parts.last_mut() {
                Some(last) if !step.is_call() && !self.steps[last.start].is_call() => {
                    last.end = i + 1;
                }
                _ => parts.push(i..i + 1),
            }
        }
        parts
    }

    /// Makes the backend record the commands of a part. The part's arena is allocated later.
    /// Returns the bytes that the backend needs in the arena, or a status.
    fn part(
        &self,
        functions: Functions,
        steps: Range<usize>,
        (users, memory): (&[Vec<u32>], &Memory),
        (scratch, arena_bytes): (&[Option<u64>], u64),
    ) -> std::result::Result<(Part, u64), Status> {
        if self.steps[steps.start].is_call() {
            return Ok((Part { steps, held: None, bound: Vec::new() }, 0));
        }
        // The kind of memory that the backend gets for each slot.
        let mut bound: Vec<Bound> = Vec::new();
        let mut sources = vec![MemorySource::default(); self.slots.len()];
        let mut constants = Vec::new();
        for (slot, users) in users.iter().enumerate() {
            let here = |step: &&u32| steps.contains(&(**step as usize));
            let users: Box<[u32]> = users.iter().filter(here).copied().collect();
            match &self.slots[slot] {
                _ if users.is_empty() => {}
                Slot::Constant(buffer) => constants.push(buffer.clone()),
                _ if self.temporary(slot).is_some() => sources[slot].kind = source::ARENA,
                kind => {
                    sources[slot] = MemorySource { kind: source::BOUND, slot: bound.len() as u32 };
                    let writes =
                        matches!(kind, Slot::Own(_)) || self.donated.contains(&(slot as u32));
                    let (slot, last) = (slot as u32, std::ptr::null_mut());
                    bound.push(Bound { slot, writes, users, last });
                }
            }
        }
        let (raw, arena_bytes) = self.record(
            functions,
            steps.clone(),
            (&sources, memory),
            scratch,
            (bound.len(), arena_bytes),
        )?;
        let plans = self.steps[steps.clone()].iter().filter_map(Step::plan).cloned().collect();
        let (device, release, arena) = (self.device, functions.release, memory.arena.clone());
        let held = Held { device, release, raw, arena, _plans: plans, constants };
        Ok((Part { steps, held: Some(held), bound }, arena_bytes))
    }

    /// Calls `record`. Returns the handle and the size of the arena, or a status.
    fn record(
        &self,
        functions: Functions,
        steps: Range<usize>,
        (sources, memory): (&[MemorySource], &Memory),
        scratch: &[Option<u64>],
        (slots, arena_bytes): (usize, u64),
    ) -> std::result::Result<(*mut c_void, u64), Status> {
        let own_sources: Vec<MemorySource> =
            self.slots_of.iter().map(|slot| sources[*slot as usize]).collect();
        let mut tensors = self.tensors.to_vec();
        for (tensor, slot) in tensors.iter_mut().zip(&self.slots_of) {
            tensor.dl.byte_offset += memory.offsets[*slot as usize] as u64;
            if let Slot::Constant(buffer) = &self.slots[*slot as usize] {
                super::locate(tensor, buffer);
            }
        }
        // Each scalar may differ in a later run.
        let scalars: Vec<u32> = (0..self.scalars.len() as u32).collect();
        let scratch = &scratch[steps.clone()];
        let steps = &self.steps[steps];
        let commands: Vec<Command> = steps
            .iter()
            .map(|step| self.command(step, &tensors[step.tensors.clone()], &self.scalars))
            .collect();
        let recorded: Vec<RecordedCommand> = commands
            .iter()
            .zip(steps)
            .zip(scratch)
            .map(|((command, step), scratch)| RecordedCommand {
                size: size_of::<RecordedCommand>() as u32,
                flags: 0,
                command,
                sources: own_sources[step.tensors.clone()].as_ptr(),
                scalar_slots: scalars[step.scalars.clone()].as_ptr(),
                workspace: MemorySource {
                    kind: if scratch.is_some() { source::ARENA } else { source::FIXED },
                    slot: 0,
                },
                workspace_offset: scratch.unwrap_or(0),
            })
            .collect();
        let request = RecordingRequest {
            size: size_of::<RecordingRequest>() as u32,
            flags: 0,
            commands: recorded.as_ptr(),
            n_commands: recorded.len() as u32,
            n_slots: slots as u32,
            n_scalars: scalars.len() as u32,
            reserved: 0,
            arena_bytes,
        };
        let _compiling = Compiling::enter(self.device).map_err(|_| status::ERROR)?;
        let (mut raw, mut bytes, mut error) = (std::ptr::null_mut(), 0, std::ptr::null_mut());
        // SAFETY: the request and everything that it points at are valid for the call. Plans and
        // constants are kept until the recording is released. The pointers are valid for writing
        // the answers.
        let code = unsafe {
            (functions.record)(self.device.handle, &request, &mut raw, &mut bytes, &mut error)
        };
        match host_table::check("record", code, error) {
            Ok(()) => Ok((raw, bytes)),
            Err(_) => Err(code),
        }
    }

    /// Returns the bytes of scratch memory that a step's plan needs.
    fn workspace(&self, exec: &Exec, step: &Step, memory: &Memory) -> u64 {
        let Some(plan) = step.plan() else { return 0 };
        let tensors: SmallVec<[Tensor; 4]> = self.bound(step, memory).collect();
        exec.workspace_bytes(plan, &self.command(step, &tensors, memory.numbers(self)))
    }
}

impl DeviceRecording {
    /// Gives the arena to a run. Returns `false` if a command needs more scratch memory than it
    /// has.
    ///
    /// A plan's answer may depend on addresses and on kernels that were compiled meanwhile. So only
    /// commands whose memory has changed are checked.
    fn fits(&mut self, executable: &Executable, exec: &Exec, memory: &mut Memory) -> bool {
        memory.arena = self.arena.clone();
        memory.offsets.clone_from(&self.offsets);
        for slot in 0..executable.slots.len() {
            if executable.temporary(slot).is_some() {
                memory.buffers[slot] = memory.arena.clone();
            }
        }
        let mut changed: SmallVec<[u32; 32]> = SmallVec::new();
        for bound in self.parts.iter_mut().flat_map(|part| &mut part.bound) {
            let buffer = memory.buffer(bound.slot);
            if bound.last != buffer.handle() || buffer.is_escaped() {
                bound.last = buffer.handle();
                changed.extend_from_slice(&bound.users);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed.iter().all(|i| {
            let step = &executable.steps[*i as usize];
            executable.workspace(exec, step, memory) <= self.workspaces[*i as usize]
        })
    }

    /// Makes the backend run a part. Returns the backend's status if nothing was enqueued.
    fn replay(
        &self,
        executable: &Executable,
        exec: &Exec,
        (part, held): (&Part, &Held),
        memory: &Memory,
    ) -> Result<Status> {
        let of = |buffer: &BufferRef| SlotMemory {
            buffer: buffer.handle(),
            data: buffer.as_ptr().cast(),
            bytes: buffer.bytes() as u64,
            offset: 0,
        };
        let slots: SmallVec<[SlotMemory; 16]> =
            part.bound.iter().map(|bound| of(memory.buffer(bound.slot))).collect();
        let scalars = memory.numbers(executable);
        let bindings = ReplayBindings {
            size: size_of::<ReplayBindings>() as u32,
            flags: 0,
            slots: slots.as_ptr(),
            scalars: scalars.as_ptr(),
            n_slots: slots.len() as u32,
            n_scalars: scalars.len() as u32,
            arena: of(&held.arena),
        };
        let buffers = |writes: bool| {
            let those = part.bound.iter().filter(move |bound| bound.writes == writes);
            those.map(|bound| &**memory.buffer(bound.slot))
        };
        let reads = buffers(false).chain(held.constants.iter().map(|c| &**c));
        let writes = buffers(true).chain([&*held.arena]);
        exec.op.set("compiled");
        let mut code = status::OK;
        exec.give(reads, writes, |stream| {
            let mut error = std::ptr::null_mut();
            // SAFETY: bindings and everything they point at are valid for the call, and the buffers
            // are the device's. This thread holds the stream's lock, and is the only one that has
            // the recording.
            code = unsafe {
                (self.functions.replay)(held.device.handle, stream, held.raw, &bindings, &mut error)
            };
            let outcome = host_table::check("replay", code, error);
            if matches!(code, status::UNSUPPORTED | status::NOT_YET) { Ok(()) } else { outcome }
        })?;
        Ok(code)
    }
}

//! Recordings for Rust backends: a copy of the commands, and the memory that the last replay bound.

use super::{CommandRef, Device, Failure, Plain, Result};
use crate::interface::replay::{
    FIXED_SCALAR, MemorySource, RecordedCommand, RecordingRequest, ReplayBindings, SlotMemory,
    source,
};
use crate::{Command, Tensor};
use core::ffi::c_void;
use core::marker::PhantomData;

// SAFETY: the struct has only integers and pointers, and its size comes first.
unsafe impl Plain for RecordedCommand {}
// SAFETY: as above.
unsafe impl Plain for RecordingRequest {}
// SAFETY: as above.
unsafe impl Plain for ReplayBindings {}

/// No memory.
const NOTHING: Place = Place {
    memory: SlotMemory {
        buffer: core::ptr::null_mut(),
        data: core::ptr::null_mut(),
        bytes: 0,
        offset: 0,
    },
    place: 0,
};

/// A command, with everything that it points at.
struct Owned {
    plan: *mut c_void,
    n_inputs: u32,
    /// The inputs, then the outputs. `shape` and `strides` point into `sizes`.
    tensors: Vec<Tensor>,
    /// Shape and strides of each tensor, one after the other.
    sizes: Vec<i64>,
    /// The source of each tensor's memory, and the offset in it.
    sources: Vec<(MemorySource, u64)>,
    scalars: Vec<[u64; 2]>,
    scalar_slots: Vec<u32>,
    /// The workspace of a replay: its buffer, or its address for the host.
    workspace: *mut c_void,
    workspace_source: (MemorySource, u64),
}

impl Owned {
    /// Copies a command.
    ///
    /// # Safety
    /// The command is the host's, and everything that it points at is valid.
    ///
    /// # Errors
    /// [`Failure::invalid`] for a request that breaks the contract.
    unsafe fn read(recorded: &RecordedCommand) -> Result<Self> {
        // SAFETY: by this function's contract.
        let command = unsafe { crate::read_sized(recorded.command) }
            .ok_or_else(|| Failure::invalid("a recorded command is empty"))?;
        let n = (command.n_inputs as usize)
            .checked_add(command.n_outputs as usize)
            .ok_or_else(|| Failure::invalid("a command has too many tensors"))?;
        let mut owned = Self {
            plan: command.plan,
            n_inputs: command.n_inputs,
            tensors: Vec::with_capacity(n),
            sizes: Vec::new(),
            sources: Vec::with_capacity(n),
            scalars: Vec::new(),
            scalar_slots: vec![FIXED_SCALAR; command.n_scalars as usize],
            workspace: command.workspace,
            workspace_source: (recorded.workspace, recorded.workspace_offset),
        };
        for i in 0..n {
            let (first, at) = match i.checked_sub(command.n_inputs as usize) {
                None => (command.inputs, i),
                Some(at) => (command.outputs, at),
            };
            // SAFETY: there are that many tensors, `tensor_stride` bytes apart, and a source for
            // each.
            unsafe {
                let place = first.cast::<u8>().wrapping_add(command.tensor_stride as usize * at);
                let tensor: Tensor = crate::read_sized(place.cast())
                    .ok_or_else(|| Failure::invalid("a tensor is NULL"))?;
                let rank = usize::try_from(tensor.dl.ndim)
                    .ok()
                    .filter(|rank| *rank <= crate::MAX_NDIM)
                    .ok_or_else(|| Failure::invalid("a tensor has an impossible rank"))?;
                if rank > 0 {
                    if tensor.dl.shape.is_null() || tensor.dl.strides.is_null() {
                        return Err(Failure::invalid("a tensor has no shape or no strides"));
                    }
                    owned.sizes.extend(core::slice::from_raw_parts(tensor.dl.shape, rank));
                    owned.sizes.extend(core::slice::from_raw_parts(tensor.dl.strides, rank));
                }
                let from = match recorded.sources.is_null() {
                    true => MemorySource::default(),
                    false => recorded.sources.add(i).read_unaligned(),
                };
                owned.sources.push((from, tensor.dl.byte_offset));
                owned.tensors.push(tensor);
            }
        }
        for i in 0..command.n_scalars as usize {
            if command.scalars.is_null() {
                return Err(Failure::invalid("the scalars of a command are NULL"));
            }
            // SAFETY: there are that many.
            unsafe {
                owned.scalars.push(command.scalars.add(i).read_unaligned());
                if !recorded.scalar_slots.is_null() {
                    owned.scalar_slots[i] = recorded.scalar_slots.add(i).read_unaligned();
                }
            }
        }
        owned.point();
        Ok(owned)
    }

    /// Makes the tensors point at this command's own sizes.
    fn point(&mut self) {
        let mut at = 0;
        for tensor in &mut self.tensors {
            let rank = tensor.dl.ndim as usize;
            tensor.dl.shape = self.sizes[at..].as_mut_ptr();
            tensor.dl.strides = self.sizes[at + rank..].as_mut_ptr();
            at += 2 * rank;
        }
    }

    /// Iterates over the sources of memory: those of the tensors, and that of the workspace.
    fn all_sources(&self) -> impl Iterator<Item = MemorySource> {
        self.sources.iter().map(|s| s.0).chain([self.workspace_source.0])
    }

    /// Binds memory and scalars. Returns the commands that differ from those of the last call that
    /// succeeded, in order; at first, all. `place` returns the address of a buffer, or another
    /// number that tells the same memory: a handle may be that of a freed buffer, and the same
    /// memory may have another handle each time.
    ///
    /// # Safety
    /// The argument of `replay`: bindings with all that they point at, buffers those of a device of
    /// type `D`.
    ///
    /// # Errors
    /// [`Failure::invalid`] for bindings that do not fit the recording.
    fn bind(&mut self, bound: &Bound) {
        let resolve = |(from, offset): (MemorySource, u64)| match from.kind {
            source::BOUND => {
                let memory = bound.slots[from.slot as usize].memory;
                Some((memory, memory.offset.wrapping_add(offset)))
            }
            source::ARENA => {
                let memory = bound.arena.memory;
                Some((memory, memory.offset.wrapping_add(offset)))
            }
            _ => None,
        };
        for (tensor, from) in self.tensors.iter_mut().zip(&self.sources) {
            let Some((memory, offset)) = resolve(*from) else { continue };
            (tensor.buffer, tensor.buffer_size) = (memory.buffer, memory.bytes);
            (tensor.dl.data, tensor.dl.byte_offset) = (memory.data, offset);
            (tensor.wait, tensor.wait_value) = (core::ptr::null_mut(), 0);
        }
        for (scalar, slot) in self.scalars.iter_mut().zip(&self.scalar_slots) {
            if *slot != FIXED_SCALAR {
                *scalar = bound.scalars[*slot as usize];
            }
        }
        if let Some((memory, offset)) = resolve(self.workspace_source) {
            self.workspace = match memory.data.is_null() {
                true => memory.buffer,
                false => memory.data.cast::<u8>().wrapping_add(offset as usize).cast(),
            };
        }
    }

    fn command(&self) -> Command {
        let (inputs, outputs) = self.tensors.split_at(self.n_inputs as usize);
        Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan: self.plan,
            inputs: inputs.as_ptr(),
            outputs: outputs.as_ptr(),
            scalars: self.scalars.as_ptr(),
            n_inputs: inputs.len() as u32,
            n_outputs: outputs.len() as u32,
            n_scalars: self.scalars.len() as u32,
            tensor_stride: size_of::<Tensor>() as u32,
            workspace: self.workspace,
        }
    }
}

/// The bindings of the last replay.
struct Bound {
    slots: Vec<Place>,
    scalars: Vec<[u64; 2]>,
    arena: Place,
}

/// Memory that is bound, and its location.
#[derive(Clone, Copy)]
struct Place {
    memory: SlotMemory,
    place: u64,
}

impl Place {
    /// Binds other memory, and marks its users.
    fn set(
        &mut self,
        memory: SlotMemory,
        place: u64,
        users: &[u32],
        touched: &mut Vec<u32>,
        changed: &mut Vec<u32>,
    ) {
        if self.memory == memory && self.place == place {
            return;
        }
        touched.extend(users);
        let same_handle = SlotMemory { buffer: self.memory.buffer, ..memory };
        if self.place != place || self.memory != same_handle {
            changed.extend(users);
        }
        *self = Self { memory, place };
    }
}

/// The commands that use each slot.
#[derive(Default)]
struct Users {
    slots: Vec<Vec<u32>>,
    scalars: Vec<Vec<u32>>,
    arena: Vec<u32>,
}

/// The commands of a recording, bound to the memory of the last replay. `D` is the type of the
/// device to which the handles of buffers and plans belong.
pub struct RecordedCommands<D> {
    commands: Vec<Owned>,
    arena_bytes: u64,
    bound: Bound,
    users: Users,
    /// Commands that the next replay must use again, whatever is bound.
    stale: Vec<u32>,
    changed: Vec<u32>,
    /// Commands whose memory has another handle, even if it is the same memory.
    touched: Vec<u32>,
    life: PhantomData<fn() -> D>,
}

// SAFETY: handles, and the command's own memory. By the contract both may be used on any thread.
unsafe impl<D> Send for RecordedCommands<D> {}
// SAFETY: as above. Shared data is only read.
unsafe impl<D> Sync for RecordedCommands<D> {}

impl<D> RecordedCommands<D> {
    /// Copies a request.
    ///
    /// # Safety
    /// The argument is that of `record`: a request, with everything that it points at. Its plans
    /// and fixed buffers are those of a device of type `D`, and outlive the returned value.
    pub unsafe fn read(request: *const RecordingRequest) -> Result<Self> {
        // SAFETY: by this function's contract.
        let request = unsafe { crate::read_sized(request) }
            .ok_or_else(|| Failure::invalid("there are no commands to record"))?;
        let mut list = Self {
            commands: Vec::with_capacity(request.n_commands as usize),
            arena_bytes: request.arena_bytes,
            bound: Bound {
                slots: vec![NOTHING; request.n_slots as usize],
                scalars: vec![[0; 2]; request.n_scalars as usize],
                arena: NOTHING,
            },
            users: Users::default(),
            stale: (0..request.n_commands).collect(),
            changed: Vec::new(),
            touched: Vec::new(),
            life: PhantomData,
        };
        if request.n_commands > 0 && request.commands.is_null() {
            return Err(Failure::invalid("the recorded commands are NULL"));
        }
        for i in 0..request.n_commands as usize {
            // SAFETY: there are that many, as far apart as the first one says.
            unsafe {
                let stride = request.commands.cast::<u32>().read_unaligned() as usize;
                let at = request.commands.cast::<u8>().wrapping_add(i * stride);
                let command = list.read_one(at.cast())?;
                list.commands.push(command);
            }
        }
        list.index();
        Ok(list)
    }

    /// # Safety
    /// A recorded command, with everything that it points at.
    unsafe fn read_one(&self, command: *const RecordedCommand) -> Result<Owned> {
        // SAFETY: by this function's contract.
        let owned = unsafe {
            let command = crate::read_sized(command)
                .ok_or_else(|| Failure::invalid("a recorded command is NULL"))?;
            Owned::read(&command)?
        };
        for from in owned.all_sources() {
            let known = match from.kind {
                source::FIXED | source::ARENA => true,
                source::BOUND => (from.slot as usize) < self.bound.slots.len(),
                _ => {
                    return Err(Failure::unsupported("the source of a tensor's memory is unknown"));
                }
            };
            if !known {
                return Err(Failure::invalid(format!(
                    "slot {} is not below the number of slots, {}",
                    from.slot,
                    self.bound.slots.len()
                )));
            }
        }
        let n = self.bound.scalars.len();
        match owned.scalar_slots.iter().find(|s| **s != FIXED_SCALAR && **s as usize >= n) {
            Some(slot) => Err(Failure::invalid(format!(
                "scalar {slot} is not below the number of scalars, {n}"
            ))),
            None => Ok(owned),
        }
    }

    fn index(&mut self) {
        let mut users = Users {
            slots: vec![Vec::new(); self.bound.slots.len()],
            scalars: vec![Vec::new(); self.bound.scalars.len()],
            arena: Vec::new(),
        };
        for (i, command) in (0..).zip(&self.commands) {
            for from in command.all_sources() {
                let list = match from.kind {
                    source::BOUND => &mut users.slots[from.slot as usize],
                    source::ARENA => &mut users.arena,
                    _ => continue,
                };
                if list.last() != Some(&i) {
                    list.push(i);
                }
            }
            for slot in command.scalar_slots.iter().filter(|s| **s != FIXED_SCALAR) {
                users.scalars[*slot as usize].push(i);
            }
        }
        self.users = users;
    }

    /// Replaces a command, as `update` does.
    ///
    /// # Safety
    /// As [`RecordedCommands::read`].
    ///
    /// # Errors
    /// [`Failure::invalid`] if there is no such command, or the new one has other tensors.
    pub unsafe fn update(&mut self, index: u32, command: *const RecordedCommand) -> Result<()> {
        // SAFETY: by this function's contract.
        let mut new = unsafe { self.read_one(command) }?;
        let n = self.commands.len();
        let Some(old) = self.commands.get_mut(index as usize) else {
            return Err(Failure::invalid(format!(
                "command {index} is not below the number of commands, {n}"
            )));
        };
        let shape = |c: &Owned| (c.plan, c.n_inputs, c.tensors.len(), c.scalars.len());
        if shape(&new) != shape(old) {
            return Err(Failure::invalid("the update has another plan or another shape"));
        }
        let sources_differ =
            !old.all_sources().eq(new.all_sources()) || old.scalar_slots != new.scalar_slots;
        new.bind(&self.bound);
        *old = new;
        if sources_differ {
            self.index();
        }
        self.stale.push(index);
        Ok(())
    }

    /// Binds memory and scalars. Returns the commands that differ from those of the last successful
    /// call, in order; the first call returns all. `place` returns the address of a buffer, or
    /// another number that identifies the memory. Handles do not suffice: a handle may be that of a
    /// freed buffer, and the same memory may have another handle each time.
    ///
    /// # Safety
    /// The argument is that of `replay`: bindings, with everything that they point at. Buffers are
    /// those of a device of type `D`.
    pub unsafe fn bind(
        &mut self,
        bindings: *const ReplayBindings,
        place: impl Fn(*mut c_void) -> u64,
    ) -> Result<&[u32]> {
        // SAFETY: by this function's contract.
        let given = unsafe { crate::read_sized(bindings) }
            .ok_or_else(|| Failure::invalid("the replay has no bindings"))?;
        let bound = &mut self.bound;
        let expected = (bound.slots.len(), bound.scalars.len());
        if (given.n_slots as usize, given.n_scalars as usize) != expected {
            return Err(Failure::invalid(format!(
                "{} slots and {} scalars are bound, and the recording has {} and {}",
                given.n_slots, given.n_scalars, expected.0, expected.1
            )));
        }
        if (given.slots.is_null() && given.n_slots > 0)
            || (given.scalars.is_null() && given.n_scalars > 0)
        {
            return Err(Failure::invalid("the bindings are NULL"));
        }
        if !self.users.arena.is_empty() && given.arena.bytes < self.arena_bytes {
            return Err(Failure::invalid(format!(
                "the arena has {} bytes, and the recording needs {}",
                given.arena.bytes, self.arena_bytes
            )));
        }
        self.changed.clear();
        self.changed.append(&mut self.stale);
        self.touched.clear();
        self.touched.extend(&self.changed);
        for (i, slot) in bound.slots.iter_mut().enumerate() {
            // SAFETY: there are that many.
            let new = unsafe { given.slots.add(i).read_unaligned() };
            let users = &self.users.slots[i];
            slot.set(new, place(new.buffer), users, &mut self.touched, &mut self.changed);
        }
        for (i, scalar) in bound.scalars.iter_mut().enumerate() {
            // SAFETY: there are that many.
            let new = unsafe { given.scalars.add(i).read_unaligned() };
            if *scalar != new {
                *scalar = new;
                self.touched.extend(&self.users.scalars[i]);
                self.changed.extend(&self.users.scalars[i]);
            }
        }
        let (arena, users) = (place(given.arena.buffer), &self.users.arena);
        bound.arena.set(given.arena, arena, users, &mut self.touched, &mut self.changed);
        for list in [&mut self.changed, &mut self.touched] {
            list.sort_unstable();
            list.dedup();
        }
        for i in &self.touched {
            self.commands[*i as usize].bind(bound);
        }
        Ok(&self.changed)
    }

    /// Makes the next [`RecordedCommands::bind`] also return the commands of the last one, because
    /// they were not used.
    pub fn again(&mut self) {
        self.stale.extend(&self.changed);
    }

    /// Returns the commands that the last [`RecordedCommands::bind`] returned.
    pub fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns true if there are no commands.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Returns the bytes of the arena that the commands use.
    pub fn arena_bytes(&self) -> u64 {
        self.arena_bytes
    }

    /// Returns the struct of command `index` with the bound memory. It is valid until the next call
    /// that changes something.
    pub fn raw(&self, index: usize) -> Option<Command> {
        self.commands.get(index).map(Owned::command)
    }

    /// Returns the fixed buffers of command `index`, including its workspace.
    pub fn fixed_buffers(&self, index: usize) -> impl Iterator<Item = *mut c_void> {
        self.commands.get(index).into_iter().flat_map(|owned| {
            let fixed = |from: &MemorySource| from.kind == source::FIXED;
            let tensors = owned.tensors.iter().zip(&owned.sources);
            let tensors = tensors.filter(move |(_, from)| fixed(&from.0)).map(|(t, _)| t.buffer);
            let workspace = Some(owned.workspace).filter(|_| fixed(&owned.workspace_source.0));
            tensors.chain(workspace).filter(|buffer| !buffer.is_null())
        })
    }

    /// Returns the offset in bytes of the command's workspace in its buffer, if buffers have no
    /// address for the host. Otherwise the command's workspace is already an address.
    pub fn workspace_offset(&self, index: usize) -> u64 {
        let Some(owned) = self.commands.get(index) else { return 0 };
        let (from, offset) = owned.workspace_source;
        let start = match from.kind {
            source::BOUND => self.bound.slots[from.slot as usize].memory.offset,
            source::ARENA => self.bound.arena.memory.offset,
            _ => return 0,
        };
        start.wrapping_add(offset)
    }
}

impl<D: Device> RecordedCommands<D> {
    /// Returns command `index` with the bound memory.
    ///
    /// # Errors
    /// A [`Failure`] if there is no such command.
    pub fn command(&self, index: usize) -> Result<CommandRef<'_, D>> {
        let command = self
            .raw(index)
            .ok_or_else(|| Failure::invalid(format!("there is no command {index}")))?;
        // SAFETY: the command points at memory that the list owns. Buffers and plans are alive by
        // the contract of `read`, and belong to a device of type `D`.
        unsafe { CommandRef::new(&command) }.ok_or_else(|| Failure::invalid("a command is NULL"))
    }
}

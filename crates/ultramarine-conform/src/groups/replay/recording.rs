//! Recordings of commands, as the checks write them.

use crate::device::{Buffer, Device, Handle, empty_command};
use crate::plugin::{Failure, call};
use crate::record::Result;
use crate::tensor::Placed;
use std::ptr::{null, null_mut};
use ultramarine_abi::dlpack::{DLDevice, DLTensor};
use ultramarine_abi::interface::replay::{
    FIXED_SCALAR, MemorySource, RecordedCommand, RecordingRequest, ReplayBindings, ReplayInterface,
    SlotMemory, source,
};
use ultramarine_abi::{Command, Tensor};

/// The memory of a tensor.
#[derive(Clone, Copy)]
pub enum At {
    Fixed(Buffer),
    Slot(u32),
    Arena,
}

/// A tensor of a step, and the bytes by which it lies after its placed offset.
#[derive(Clone, Copy)]
pub struct Piece<'a>(pub &'a Placed, pub At, pub u64);

/// A command of a recording.
#[derive(Clone, Default)]
pub struct Step<'a> {
    pub plan: Option<Handle>,
    pub inputs: Vec<Piece<'a>>,
    pub outputs: Vec<Piece<'a>>,
    /// Values, and the slots of those that are bound.
    pub scalars: Vec<([u64; 2], Option<u32>)>,
    /// Offset of the workspace in the arena.
    pub workspace: Option<u64>,
}

/// The numbers of slots and the bytes of the arena for which a recording is made.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub slots: u32,
    pub scalars: u32,
    pub arena: u64,
}

/// A recorded list of commands with its arena. Released at the end, when nothing runs it any more.
pub struct Recording<'a> {
    device: &'a Device<'a>,
    interface: ReplayInterface,
    handle: Handle,
    arena: Buffer,
}

fn memory(device: &Device<'_>, buffer: Buffer, offset: u64) -> SlotMemory {
    let data = device.host_pointer(buffer);
    SlotMemory { buffer: buffer.handle.0, data, bytes: buffer.bytes, offset }
}

fn tensor(device: &Device<'_>, Piece(placed, at, offset): Piece<'_>) -> Tensor {
    let fixed = match at {
        At::Fixed(buffer) => memory(device, buffer, 0),
        _ => SlotMemory { buffer: null_mut(), data: null_mut(), bytes: 0, offset: 0 },
    };
    let device_id = device.index as i32;
    Tensor {
        size: size_of::<Tensor>() as u32,
        flags: 0,
        dl: DLTensor {
            data: fixed.data,
            device: DLDevice { device_type: device.backend.table.device_type, device_id },
            ndim: placed.shape.len() as i32,
            dtype: placed.dtype.dl(),
            shape: placed.shape.as_ptr().cast_mut(),
            strides: placed.strides.as_ptr().cast_mut(),
            byte_offset: placed.offset + offset,
        },
        buffer: fixed.buffer,
        buffer_size: fixed.bytes,
        wait: null_mut(),
        wait_value: 0,
    }
}

/// The data that the commands of some steps point at.
struct Parts {
    tensors: Vec<Tensor>,
    sources: Vec<MemorySource>,
    scalars: Vec<[u64; 2]>,
    slots: Vec<u32>,
    command: Command,
}

/// Calls `f` with steps as the contract has them.
fn with_commands<T>(
    device: &Device<'_>,
    steps: &[Step<'_>],
    f: impl FnOnce(&[RecordedCommand]) -> T,
) -> T {
    let parts: Vec<Parts> = steps
        .iter()
        .map(|step| {
            let pieces = step.inputs.iter().chain(&step.outputs);
            let source = |piece: &Piece<'_>| match piece.1 {
                At::Fixed(_) => MemorySource { kind: source::FIXED, slot: 0 },
                At::Slot(slot) => MemorySource { kind: source::BOUND, slot },
                At::Arena => MemorySource { kind: source::ARENA, slot: 0 },
            };
            let mut parts = Parts {
                tensors: pieces.clone().map(|piece| tensor(device, *piece)).collect(),
                sources: pieces.map(source).collect(),
                scalars: step.scalars.iter().map(|s| s.0).collect(),
                slots: step.scalars.iter().map(|s| s.1.unwrap_or(FIXED_SCALAR)).collect(),
                command: empty_command(step.plan.unwrap_or(Handle(null_mut()))),
            };
            let n = step.inputs.len();
            (parts.command.inputs, parts.command.n_inputs) = (parts.tensors.as_ptr(), n as u32);
            parts.command.outputs = parts.tensors[n..].as_ptr();
            parts.command.n_outputs = step.outputs.len() as u32;
            parts.command.scalars = parts.scalars.as_ptr();
            parts.command.n_scalars = parts.scalars.len() as u32;
            parts
        })
        .collect();
    let commands: Vec<RecordedCommand> = parts
        .iter()
        .zip(steps)
        .map(|(parts, step)| RecordedCommand {
            size: size_of::<RecordedCommand>() as u32,
            flags: 0,
            command: &parts.command,
            sources: parts.sources.as_ptr(),
            scalar_slots: parts.slots.as_ptr(),
            workspace: match step.workspace {
                Some(_) => MemorySource { kind: source::ARENA, slot: 0 },
                None => MemorySource::default(),
            },
            workspace_offset: step.workspace.unwrap_or(0),
        })
        .collect();
    f(&commands)
}

impl<'a> Recording<'a> {
    pub fn new(
        device: &'a Device<'a>,
        interface: ReplayInterface,
        steps: &[Step<'_>],
        sizes: Sizes,
    ) -> Result<Self, Failure> {
        let record = interface.record.ok_or(Failure {
            call: "record",
            code: ultramarine_abi::status::ERROR,
            text: Some("there is no such function".into()),
            command: None,
        })?;
        let (mut handle, mut bytes) = (null_mut(), 0);
        with_commands(device, steps, |commands| {
            let request = RecordingRequest {
                size: size_of::<RecordingRequest>() as u32,
                flags: 0,
                commands: commands.as_ptr(),
                n_commands: commands.len() as u32,
                n_slots: sizes.slots,
                n_scalars: sizes.scalars,
                reserved: 0,
                arena_bytes: sizes.arena,
            };
            // SAFETY: commands that are valid for the call; places for the answers.
            call("record", |e| unsafe {
                record(device.handle, &request, &mut handle, &mut bytes, e)
            })
        })?;
        let arena = device.alloc(bytes.max(1));
        let mut recording = Recording {
            device,
            interface,
            handle: Handle(handle),
            arena: Buffer { handle: Handle(null_mut()), bytes: 0 },
        };
        if bytes < sizes.arena {
            return Err(Failure {
                call: "record",
                code: ultramarine_abi::status::OK,
                text: Some(format!("an arena of {bytes} bytes, of {} that are used", sizes.arena)),
                command: None,
            });
        }
        recording.arena = arena?;
        Ok(recording)
    }

    /// Replays with buffers from an offset on in the slots.
    pub fn replay(
        &self,
        stream: Handle,
        slots: &[(Buffer, u64)],
        scalars: &[[u64; 2]],
    ) -> Result<(), Failure> {
        self.replay_in(self.arena, stream, slots, scalars)
    }

    /// As [`Recording::replay`], in another arena.
    pub fn replay_in(
        &self,
        arena: Buffer,
        stream: Handle,
        slots: &[(Buffer, u64)],
        scalars: &[[u64; 2]],
    ) -> Result<(), Failure> {
        let slots: Vec<SlotMemory> = slots.iter().map(|s| memory(self.device, s.0, s.1)).collect();
        let bindings = ReplayBindings {
            size: size_of::<ReplayBindings>() as u32,
            flags: 0,
            slots: slots.as_ptr(),
            scalars: if scalars.is_empty() { null() } else { scalars.as_ptr() },
            n_slots: slots.len() as u32,
            n_scalars: scalars.len() as u32,
            arena: memory(self.device, arena, 0),
        };
        let replay = self.interface.replay.ok_or(Failure {
            call: "replay",
            code: ultramarine_abi::status::ERROR,
            text: Some("there is no such function".into()),
            command: None,
        })?;
        // SAFETY: a recording of this device, and bindings that are valid for the call.
        call("replay", |e| unsafe {
            replay(self.device.handle, stream.0, self.handle.0, &bindings, e)
        })
    }

    /// Replaces a command.
    pub fn update(&self, index: u32, step: &Step<'_>) -> Result<(), Failure> {
        let update = self.interface.update.ok_or(Failure {
            call: "update",
            code: ultramarine_abi::status::ERROR,
            text: Some("there is no such function".into()),
            command: None,
        })?;
        with_commands(self.device, std::slice::from_ref(step), |commands| {
            // SAFETY: a recording of this device, and a command that is valid for the call.
            call("update", |e| unsafe {
                update(self.device.handle, self.handle.0, index, commands.as_ptr(), e)
            })
        })
    }

    pub fn arena(&self) -> Buffer {
        self.arena
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if let Some(release) = self.interface.release {
            // SAFETY: a recording of this device that nothing runs any more, released once.
            unsafe { release(self.device.handle, self.handle.0) };
        }
        if !self.arena.handle.0.is_null() {
            self.device.free(self.arena);
        }
    }
}

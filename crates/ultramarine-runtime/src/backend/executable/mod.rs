//! Executables: the commands of an evaluation, kept to be run again on other values of the same
//! shapes, dtypes and layouts, without nodes and without planning.
//!
//! ```text
//! recording.rs         what a thread gives to a device is written down while it runs
//! call.rs              what is no command, and is called anew at each run
//! task.rs              which operations the commands are, for profiles
//! memory_plan.rs       where temporaries lie in one arena
//! mod.rs               the executable, and its runs
//! list.rs              lists of commands, each of which is one submission
//! device_recording.rs  its runs as one call, where the backend records commands
//! failure.rs           a run in which a command fails
//! ```
//!
//! An executable does not change when it runs. So several threads may run one at the same time,
//! each with its own memory.

mod call;
mod device_recording;
mod failure;
mod list;
mod memory_plan;
mod recording;
mod task;

pub use call::Callable;
pub(in crate::backend) use device_recording::{Functions as ReplayFunctions, Held};
pub use failure::Failure;
pub(in crate::backend) use recording::with;
pub use recording::{Recorded, Recording, begin_task, end_task, give_up, recorded};
pub use task::{Task, Watch};

use super::buffer::{Buffer, BufferRef};
use super::call::{Exec, tensor_size};
use super::counts::Dispatch;
use super::kernels::Kernels;
use super::stats::Stats;
use super::{DeviceState, value::Value};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::scalar::Scalar;
use crate::shape::Strides;
use call::Work;
use device_recording::OnDevice;
use list::List;
use recording::Part;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Mutex;
use ultramarine_abi::{Command, Tensor};

/// A step: one command, or a call.
struct Step {
    work: Work,
    /// The graph operation. Errors name it.
    op: &'static str,
    tensors: Part,
    /// Number of inputs among the tensors. The other tensors are outputs.
    inputs: usize,
    scalars: Part,
    /// The bytes that the step reads and writes.
    bytes: (u64, u64),
    /// Slots whose memory is allocated before this step.
    takes: SmallVec<[u32; 2]>,
    /// Slots whose memory is freed after this step.
    frees: SmallVec<[u32; 2]>,
}

/// The memory of a tensor.
enum Slot {
    /// The memory of an input.
    Input(usize),
    /// Memory that is the same in each run.
    Constant(BufferRef),
    /// A part of the arena: its offset and its size in bytes.
    Arena(usize, usize),
    /// Separate memory of this number of bytes, for a result or a large temporary. It exists while
    /// commands use it.
    Own(usize),
    /// No memory, because no command uses the slot.
    Unused,
}

/// A result.
struct Output {
    slot: u32,
    offset: usize,
    strides: Strides,
}

/// The recorded commands of an evaluation: their plans, a static plan of the memory between them,
/// and the slots to which each run binds memory.
pub struct Executable {
    device: &'static DeviceState,
    steps: Box<[Step]>,
    /// The tensors of all steps, without their memory.
    tensors: Box<[Tensor]>,
    /// The slot of each tensor.
    slots_of: Box<[u32]>,
    /// The sizes and strides that the tensors point at.
    _dims: Box<[i64]>,
    scalars: Box<[[u64; 2]]>,
    slots: Box<[Slot]>,
    outputs: Box<[Output]>,
    /// Slots of inputs whose memory is overwritten.
    donated: Box<[u32]>,
    /// The first step that is a call or writes to donated memory. From this step on a run cannot be
    /// given up. If there is no such step, the number of steps.
    stays_from: usize,
    /// True if there are calls.
    calls: bool,
    /// For each step, the end of the longest list that the step may be in.
    list_ends: Box<[usize]>,
    arena: usize,
    counts: Box<[(&'static Kernels, &'static str, Dispatch, u64)]>,
    stats: Stats,
    /// The operations of the steps, for profiles: ranges of consecutive steps, in order.
    tasks: Box<[(Part, Task)]>,
    on_device: Mutex<OnDevice>,
}

// SAFETY: pointers in tensors point to sizes and strides that the executable owns and never
// changes. Memory is filled in only in a run's copies of the tensors.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("commands", &self.steps.len())
            .field("arena", &self.arena)
            .finish_non_exhaustive()
    }
}

/// The lists of a recording: steps; tensors; the slot of each tensor, and where its sizes begin;
/// sizes; scalars.
type Lists = (Vec<Step>, Vec<Tensor>, Vec<(u32, usize)>, Vec<i64>, Vec<[u64; 2]>);

/// The account of a recording: how operations ran, statistics, and the steps of each operation.
type Account = (Vec<(&'static Kernels, &'static str, Dispatch, u64)>, Stats, Vec<(Part, Task)>);

impl Executable {
    fn new(
        device: &'static DeviceState,
        slots: Box<[Slot]>,
        (steps, mut tensors, places, dims, scalars): Lists,
        outputs: Vec<Output>,
        donated: Vec<u32>,
        arena: usize,
        (counts, stats, tasks): Account,
    ) -> Executable {
        let dims = dims.into_boxed_slice();
        for (tensor, (_, start)) in tensors.iter_mut().zip(&places) {
            let rank = tensor.dl.ndim as usize;
            tensor.dl.shape = dims[*start..start + rank].as_ptr().cast_mut();
            tensor.dl.strides = dims[start + rank..start + 2 * rank].as_ptr().cast_mut();
            (tensor.wait, tensor.wait_value) = (std::ptr::null_mut(), 0);
        }
        let slots_of: Box<[u32]> = places.into_iter().map(|(slot, _)| slot).collect();
        let stays = |step: &Step| {
            let writes = &slots_of[step.tensors.clone()][step.inputs..];
            step.is_call() || writes.iter().any(|slot| donated.contains(slot))
        };
        let stays_from = steps.iter().position(stays).unwrap_or(steps.len());
        Executable {
            device,
            stays_from,
            calls: steps.iter().any(Step::is_call),
            list_ends: list::ends(device, &steps, &tensors, stays_from),
            steps: steps.into(),
            tensors: tensors.into(),
            slots_of,
            _dims: dims,
            scalars: scalars.into(),
            slots,
            outputs: outputs.into(),
            donated: donated.into(),
            arena,
            counts: counts.into(),
            stats,
            tasks: tasks.into(),
            on_device: Mutex::new(OnDevice::Single(0)),
        }
    }

    /// Returns the number of commands.
    pub fn commands(&self) -> usize {
        self.steps.len()
    }

    /// Returns the bytes of the memory that temporaries share.
    pub fn arena(&self) -> usize {
        self.arena
    }

    /// Runs the commands on a stream of the device and returns the outputs. The inputs must have
    /// the same shapes, dtypes, offsets, strides and buffer sizes as those of the recording, and
    /// the same inputs must be free to be taken over. `numbers` are the scalars that differ from
    /// the recording, by their index among the scalars of all commands. `watch` is notified of the
    /// operations that run, if a profile is active ([`Exec::is_profiled`]).
    ///
    /// # Errors
    /// Those of the backend, with the graph operation that failed. [`Error::Runtime`] if the
    /// evaluation is given up during the run, which is possible until memory of the inputs is
    /// overwritten or something is called.
    pub fn run(
        &self,
        exec: &Exec,
        inputs: &[&Value],
        numbers: &[(u32, Scalar)],
        watch: Option<&mut dyn Watch>,
    ) -> Result<Vec<Value>, Failure> {
        debug_assert!(std::ptr::eq(exec.device, self.device));
        // If this thread is recording, its recording does not see these commands and becomes
        // useless.
        give_up();
        if interrupt::is_due() {
            return Err(Failure::intact(interrupted(), "compiled"));
        }
        let replayed = match watch {
            // In a profile each command has to have its own time, so the commands run one by one.
            Some(_) => None,
            None => self.replayed(exec, inputs, numbers)?,
        };
        let memory = match replayed {
            Some(memory) => {
                exec.count_replay();
                memory
            }
            None => self.run_steps(exec, inputs, numbers, watch)?,
        };
        exec.ran(&self.stats);
        for (kernels, name, dispatch, runs) in &self.counts {
            kernels.counts.add_runs(name, *dispatch, *runs);
        }
        let outputs = self.outputs.iter().map(|output| self.output(exec, output, &memory));
        outputs.collect::<Result<_>>().map_err(|e| (e, "compile").into())
    }

    /// Returns the value of an output at the end of a run.
    fn output(&self, exec: &Exec, output: &Output, memory: &Memory) -> Result<Value> {
        let buffer = match self.slots[output.slot as usize] {
            // The output has no elements.
            Slot::Unused => exec.buffer(0)?,
            _ => memory.buffer(output.slot).clone(),
        };
        Ok(Value { buffer, offset: output.offset, strides: output.strides.clone() })
    }

    /// Gives the commands to the device in lists, or one by one if they are watched.
    fn run_steps(
        &self,
        exec: &Exec,
        inputs: &[&Value],
        numbers: &[(u32, Scalar)],
        mut watch: Option<&mut dyn Watch>,
    ) -> Result<Memory, Failure> {
        let mut memory = self.memory(exec, inputs).map_err(|e| Failure::intact(e, "compile"))?;
        memory.numbers = self.with_numbers(numbers);
        for slot in &self.donated {
            memory.buffer(*slot).changes();
        }
        let (mut list, mut next) = (List::new(self), 0);
        while let Some(step) = self.steps.get(next) {
            if next <= self.stays_from && interrupt::is_due() {
                return Err(Failure::intact(interrupted(), step.op));
            }
            if next == self.stays_from {
                interrupt::hold();
            }
            let ran = match &mut watch {
                None => self.run_list(exec, self.list_from(exec, next), &mut memory, &mut list),
                Some(watch) => {
                    self.watched_step(exec, next, (&mut memory, &mut list), &mut **watch)
                }
            };
            next = match ran {
                Ok(end) => end,
                Err(stopped) => return Err(self.failed(exec, stopped, memory, list)),
            };
        }
        if interrupt::is_cut() {
            // The last commands were interrupted and are incomplete.
            return Err(Failure::intact(interrupted(), "compile"));
        }
        Ok(memory)
    }

    /// Returns the memory of each slot at the beginning of a run.
    fn memory(&self, exec: &Exec, inputs: &[&Value]) -> Result<Memory> {
        let arena = exec.buffer(self.arena)?;
        let mut offsets = SmallVec::from_elem(0, self.slots.len());
        let mut buffers = SmallVec::with_capacity(self.slots.len());
        for (slot, offset) in self.slots.iter().zip(&mut offsets) {
            buffers.push(match slot {
                Slot::Input(i) => inputs[*i].buffer.clone(),
                Slot::Constant(buffer) => buffer.clone(),
                Slot::Arena(at, _) => {
                    *offset = *at;
                    arena.clone()
                }
                Slot::Own(_) | Slot::Unused => arena.clone(),
            });
        }
        Ok(Memory { buffers, offsets, arena, numbers: None, is_whole: false })
    }

    /// Returns the index of a command's scalar among those of all commands, for
    /// [`Executable::run`].
    pub fn number(&self, command: usize, index: usize) -> Option<u32> {
        let place = self.steps.get(command)?.scalars.clone().nth(index)?;
        u32::try_from(place).ok()
    }

    /// Returns all scalars, if some differ from those of the recording.
    fn with_numbers(&self, numbers: &[(u32, Scalar)]) -> Option<Box<[[u64; 2]]>> {
        let mut all = (!numbers.is_empty()).then(|| self.scalars.clone())?;
        for (place, number) in numbers {
            all[*place as usize] = [number.bits(), 0];
        }
        Some(all)
    }

    /// Returns a step's tensors with the memory of this run.
    fn bound<'a>(
        &'a self,
        step: &Step,
        memory: &'a Memory,
    ) -> impl ExactSizeIterator<Item = Tensor> + 'a {
        let each =
            self.tensors[step.tensors.clone()].iter().zip(&self.slots_of[step.tensors.clone()]);
        each.map(|(template, slot)| {
            let buffer = memory.buffer(*slot);
            let mut tensor = *template;
            tensor.dl.byte_offset += memory.offsets[*slot as usize] as u64;
            locate(&mut tensor, buffer);
            tensor
        })
    }

    /// Makes a step's command on these tensors, with the scalars of all steps.
    fn command(&self, step: &Step, tensors: &[Tensor], numbers: &[[u64; 2]]) -> Command {
        Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan: step.plan().map_or(std::ptr::null_mut(), |plan| plan.raw),
            inputs: tensors.as_ptr(),
            outputs: tensors[step.inputs..].as_ptr(),
            scalars: numbers[step.scalars.clone()].as_ptr(),
            n_inputs: step.inputs as u32,
            n_outputs: (tensors.len() - step.inputs) as u32,
            n_scalars: step.scalars.len() as u32,
            tensor_stride: tensor_size(),
            workspace: std::ptr::null_mut(),
        }
    }
}

/// Sets a tensor's memory.
fn locate(tensor: &mut Tensor, buffer: &Buffer) {
    tensor.dl.data = buffer.as_ptr().cast();
    tensor.buffer = buffer.handle();
    tensor.buffer_size = buffer.bytes() as u64;
}

fn interrupted() -> Error {
    Error::Runtime("The evaluation was interrupted. Evaluate the arrays again.".into())
}

/// The memory of a run's slots.
struct Memory {
    buffers: SmallVec<[BufferRef; 16]>,
    /// The offset in bytes of each slot in its buffer.
    offsets: SmallVec<[usize; 16]>,
    /// The memory that temporaries share. It is also the placeholder for memory that is not
    /// allocated.
    arena: BufferRef,
    /// The scalars of the commands, if they differ from those of the recording.
    numbers: Option<Box<[[u64; 2]]>>,
    /// True if all memory is allocated, so that none is allocated or freed between steps.
    is_whole: bool,
}

impl Memory {
    fn buffer(&self, slot: u32) -> &BufferRef {
        &self.buffers[slot as usize]
    }

    /// Returns the scalars of all steps.
    fn numbers<'a>(&'a self, executable: &'a Executable) -> &'a [[u64; 2]] {
        self.numbers.as_deref().unwrap_or(&executable.scalars)
    }
}

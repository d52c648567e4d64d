//! Recording: the recorder notes the work that a thread gives to one device while the work runs.
//!
//! The recorder sees commands and the memory that is allocated for them, not operations. A buffer
//! is one of three kinds: an input of the recording, memory that was allocated since the recording
//! began, or a constant, which the executable keeps. Work that is no command, such as kernels on
//! the host and copies from other devices, makes the recording useless.

use super::call::{Call, Callable, Layout, Work};
use super::memory_plan::{self, Lifetime};
use super::{Executable, Output, Slot, Step, Task};
use crate::backend::buffer::{Buffer, BufferRef};
use crate::backend::call::Operand;
use crate::backend::counts::Dispatch;
use crate::backend::kernels::Kernels;
use crate::backend::stats::Stats;
use crate::backend::{DeviceState, Plan, value::Value};
use crate::error::Result;
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_abi::Tensor;

/// A temporary of at least this size gets separate memory, which other work can take as soon as it
/// is free. In the arena, large temporaries would leave gaps.
const LARGE: usize = 16 << 10;

/// The number of threads that record. While it is 0, no thread looks for its recording.
static RECORDINGS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// The recorder's data about a buffer.
struct Memory {
    kind: Kind,
    bytes: usize,
    /// The first and the last command that use the buffer.
    used: Option<(usize, usize)>,
    /// True if the buffer has a content.
    written: bool,
}

enum Kind {
    /// An input: its index, and if its memory may be taken over in each run.
    Input(usize, bool),
    Constant(BufferRef),
    Taken,
}

/// A recording in progress: the commands that a thread has given to a device, and the memory that
/// it allocated for them. It becomes an [`Executable`](super::Executable).
pub struct Recording {
    device: &'static DeviceState,
    memory: Vec<Memory>,
    /// The buffer that currently has the address.
    known: HashMap<*const Buffer, usize>,
    steps: Vec<Step>,
    tensors: Vec<Tensor>,
    /// The slot of each tensor, and the index of its sizes and strides in `dims`.
    places: Vec<(u32, usize)>,
    dims: Vec<i64>,
    scalars: Vec<[u64; 2]>,
    donated: Vec<u32>,
    counts: Vec<(&'static Kernels, &'static str, Dispatch, u64)>,
    stats: Stats,
    /// The recorded operations, with their steps.
    tasks: Vec<(Part, Task)>,
    /// The step at which the current operation began.
    began: usize,
    /// True if the current operation ran as simpler operations.
    decomposed: bool,
    useless: bool,
    postponed: bool,
}

/// The result of a recording.
pub enum Recorded {
    Executable(Arc<Executable>),
    /// The work cannot be repeated from its commands.
    Never,
    /// This time it failed because a kernel was not compiled yet and another took its place. A
    /// later recording may succeed.
    NotYet,
}

impl Recording {
    /// Begins a recording of work on a device. `inputs` are the values that may differ in the next
    /// run.
    pub fn new<'a>(
        device: &'static DeviceState,
        inputs: impl Iterator<Item = (&'a Value, bool)>,
    ) -> Recording {
        let mut new = Recording {
            device,
            memory: Vec::new(),
            known: HashMap::new(),
            steps: Vec::new(),
            tensors: Vec::new(),
            places: Vec::new(),
            dims: Vec::new(),
            scalars: Vec::new(),
            donated: Vec::new(),
            counts: Vec::new(),
            stats: Stats::default(),
            tasks: Vec::new(),
            began: 0,
            decomposed: false,
            useless: false,
            postponed: false,
        };
        for (i, (value, may_be_taken)) in inputs.enumerate() {
            let address: *const Buffer = &*value.buffer;
            if !new.known.contains_key(&address) {
                new.know(address, Kind::Input(i, may_be_taken), value.buffer.bytes());
            }
        }
        new
    }

    /// Records the work that `f` gives to the device on this thread. Returns the result of `f` and
    /// the executable.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn run(self, f: impl FnOnce() -> Result<Vec<Value>>) -> Result<(Vec<Value>, Recorded)> {
        // A recording inside of another one makes the outer one useless, because the outer one
        // would miss the commands that the inner one replays later.
        let outer = CURRENT.with_borrow_mut(|current| current.replace(self));
        RECORDINGS.fetch_add(1, Ordering::Relaxed);
        let ended = End(outer);
        let made = f();
        let recording = CURRENT.with_borrow_mut(Option::take);
        drop(ended);
        let made = made?;
        let recorded = recording.map_or(Recorded::Never, |r| r.finish(&made));
        Ok((made, recorded))
    }
}

/// The end of a recording, also by a panic. An outer recording continues, but is useless.
struct End(Option<Recording>);

impl Drop for End {
    fn drop(&mut self) {
        RECORDINGS.fetch_sub(1, Ordering::Relaxed);
        let mut outer = self.0.take();
        if let Some(outer) = &mut outer {
            outer.useless = true;
        }
        CURRENT.with_borrow_mut(|current| *current = outer);
    }
}

/// Calls `f` with the calling thread's recording, if there is one.
#[inline]
pub(in crate::backend) fn with(f: impl FnOnce(&mut Recording)) {
    if RECORDINGS.load(Ordering::Relaxed) > 0 {
        CURRENT.with_borrow_mut(|current| current.as_mut().map(f));
    }
}

/// Calls `f`, and hides its work from the calling thread's recording.
pub(super) fn aside<T>(f: impl FnOnce() -> T) -> T {
    /// Restores the recording, also after a panic.
    struct Back(Option<Recording>);
    impl Drop for Back {
        fn drop(&mut self) {
            let recording = self.0.take();
            CURRENT.with_borrow_mut(|current| *current = recording);
        }
    }
    if RECORDINGS.load(Ordering::Relaxed) == 0 {
        return f();
    }
    let _back = Back(CURRENT.with_borrow_mut(Option::take));
    f()
}

/// Declares that the calling thread does work that no command describes. Its recording becomes
/// useless.
#[inline]
pub fn give_up() {
    with(|recording| recording.useless = true);
}

/// Declares that the calling thread's next commands belong to one operation. [`end_task`] names it.
pub fn begin_task() {
    with(|recording| {
        recording.began = recording.steps.len();
        recording.decomposed = false;
    });
}

/// Names the operation of the commands since [`begin_task`].
pub fn end_task(mut task: Task) {
    with(|recording| {
        let steps = recording.began..recording.steps.len();
        if !steps.is_empty() {
            task.decomposed |= recording.decomposed;
            recording.tasks.push((steps, task));
        }
    });
}

/// Returns the number of commands that the calling thread has recorded; `None` if it does not
/// record.
#[inline]
pub fn recorded() -> Option<usize> {
    let mut commands = None;
    with(|recording| commands = Some(recording.steps.len()));
    commands
}

impl Recording {
    fn know(&mut self, address: *const Buffer, kind: Kind, bytes: usize) -> usize {
        let number = self.memory.len();
        let written = bytes == 0 || matches!(kind, Kind::Input(..) | Kind::Constant(_));
        self.memory.push(Memory { kind, bytes, used: None, written });
        self.known.insert(address, number);
        number
    }

    /// Work on another device makes the recording useless.
    pub(in crate::backend) fn on(&mut self, device: &'static DeviceState) {
        self.useless |= !std::ptr::eq(device, self.device);
    }

    /// Called when a buffer is made, because it may have the address of a freed one.
    pub(in crate::backend) fn forget(&mut self, address: *const Buffer) {
        self.known.remove(&address);
    }

    /// Called when memory is allocated for commands.
    pub(in crate::backend) fn take(&mut self, buffer: &BufferRef) {
        self.know(&**buffer, Kind::Taken, buffer.bytes());
    }

    /// Called when an operand's memory is taken over.
    pub(in crate::backend) fn donate(&mut self, buffer: &BufferRef) {
        self.stats.donations += 1;
        let slot = self.slot(buffer);
        if let Kind::Input(_, may_be_taken) = self.memory[slot].kind {
            self.donated.push(slot as u32);
            // Another thread dropped the input after the recording began. If it had not, the
            // commands would overwrite memory that it holds.
            self.postponed |= !may_be_taken;
        }
    }

    /// Called when a buffer is read on another device than its own. `is_kept` is true if it keeps
    /// its copy there.
    pub(in crate::backend) fn read_elsewhere(&mut self, buffer: &Buffer, is_kept: bool) {
        self.useless |= !is_kept || self.known.contains_key(&std::ptr::from_ref(buffer));
    }

    pub(in crate::backend) fn count(
        &mut self,
        kernels: &'static Kernels,
        name: &'static str,
        dispatch: Dispatch,
    ) {
        self.decomposed |= dispatch == Dispatch::Decomposed;
        let same = |c: &&mut (&Kernels, &'static str, Dispatch, u64)| {
            std::ptr::eq(c.0, kernels) && std::ptr::eq(c.1, name) && c.2 == dispatch
        };
        match self.counts.iter_mut().find(same) {
            Some(known) => known.3 += 1,
            None => self.counts.push((kernels, name, dispatch, 1)),
        }
    }

    /// Called when a plan is not ready.
    pub(in crate::backend) fn postpone(&mut self) {
        self.postponed = true;
    }

    /// Called when an operand is copied because a backend needs it without gaps.
    pub(in crate::backend) fn count_contiguous_copy(&mut self) {
        self.stats.contiguous_copies += 1;
    }

    pub(in crate::backend) fn count_fused(&mut self, operations: usize) {
        self.stats.fused += 1;
        self.stats.fused_operations += operations as u64;
    }

    fn slot(&mut self, buffer: &BufferRef) -> usize {
        match self.known.get(&std::ptr::from_ref(&**buffer)) {
            Some(known) => *known,
            None => {
                // Other libraries may write to memory that they can see, so it is no constant.
                self.useless |= buffer.is_escaped();
                self.know(&**buffer, Kind::Constant(buffer.clone()), buffer.bytes())
            }
        }
    }

    /// Called when a command is given to the device. `bytes` are those that it reads and writes.
    pub(in crate::backend) fn command(
        &mut self,
        plan: &Arc<Plan>,
        op: &'static str,
        (inputs, outputs): (&[Operand<'_>], &[Operand<'_>]),
        scalars: &[Scalar],
        bytes: (u64, u64),
    ) {
        let (kernels, work) = (plan.kernels, Work::Command(plan.clone()));
        self.step((work, kernels), op, (inputs, outputs), scalars, bytes);
        self.stats.commands += 1;
        self.stats.bytes_read += bytes.0;
        self.stats.bytes_written += bytes.1;
    }

    /// Called when a call gives work to the device.
    pub(super) fn call(
        &mut self,
        work: Arc<dyn Callable>,
        op: &'static str,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
    ) {
        let Some(kernels) = self.device.kernels.get().last().copied() else {
            self.useless = true;
            return;
        };
        let layouts = inputs.iter().chain(outputs).map(Layout::of).collect();
        let work = Work::Call(Call { work, layouts });
        self.step((work, kernels), op, (inputs, outputs), &[], (0, 0));
    }

    fn step(
        &mut self,
        (work, kernels): (Work, &'static Kernels),
        op: &'static str,
        (inputs, outputs): (&[Operand<'_>], &[Operand<'_>]),
        scalars: &[Scalar],
        bytes: (u64, u64),
    ) {
        let first = self.tensors.len();
        for (i, t) in inputs.iter().chain(outputs).enumerate() {
            let slot = self.slot(&t.value.buffer);
            self.places.push((slot as u32, self.dims.len()));
            self.dims.extend(t.shape.iter().map(|n| *n as i64));
            self.dims.extend(t.value.strides.iter().map(|n| *n as i64));
            self.tensors.push(crate::backend::call::tensor(kernels, t));
            self.used(slot);
            if i < inputs.len() {
                // If no command wrote the content, the host did.
                self.useless |= !self.memory[slot].written;
            } else {
                self.memory[slot].written = true;
                self.useless |= match self.memory[slot].kind {
                    Kind::Constant(_) => true,
                    Kind::Input(..) => !self.donated.contains(&(slot as u32)),
                    Kind::Taken => false,
                };
            }
        }
        let scalar = self.scalars.len();
        self.scalars.extend(scalars.iter().map(|s| [s.bits(), 0]));
        self.steps.push(Step {
            work,
            op,
            tensors: first..self.tensors.len(),
            inputs: inputs.len(),
            scalars: scalar..self.scalars.len(),
            bytes,
            takes: SmallVec::new(),
            frees: SmallVec::new(),
        });
    }

    fn used(&mut self, slot: usize) {
        let now = self.steps.len();
        let used = &mut self.memory[slot].used;
        *used = Some((used.map_or(now, |(first, _)| first), now));
    }

    /// Makes the executable that returns these values.
    fn finish(mut self, values: &[Value]) -> Recorded {
        let mut outputs = Vec::with_capacity(values.len());
        for value in values {
            let slot = self.slot(&value.buffer);
            self.useless |= !self.memory[slot].written;
            let slot = slot as u32;
            let (offset, strides) = (value.offset, value.strides.clone());
            outputs.push(Output { slot, offset, strides });
        }
        if self.useless {
            return Recorded::Never;
        }
        if self.postponed {
            return Recorded::NotYet;
        }
        let is_output = |slot: usize| outputs.iter().any(|o| o.slot as usize == slot);
        let in_arena = |(slot, memory): &(usize, &Memory)| {
            let temporary = matches!(memory.kind, Kind::Taken);
            temporary && memory.bytes < LARGE && !is_output(*slot)
        };
        let lifetimes: Vec<(usize, Lifetime)> = self
            .memory
            .iter()
            .enumerate()
            .filter(in_arena)
            .filter_map(|(slot, memory)| {
                let (first, last) = memory.used?;
                Some((slot, Lifetime { bytes: memory.bytes, first, last }))
            })
            .collect();
        let only: Vec<Lifetime> = lifetimes.iter().map(|(_, lifetime)| *lifetime).collect();
        let (offsets, arena) = memory_plan::plan(&only);
        let mut place: HashMap<usize, usize> =
            lifetimes.iter().zip(&offsets).map(|((slot, _), offset)| (*slot, *offset)).collect();
        let steps = &mut self.steps;
        let mut own = |slot: usize, memory: &Memory| {
            let Some((first, last)) = memory.used else { return Slot::Unused };
            steps[first].takes.push(slot as u32);
            if !is_output(slot) {
                steps[last].frees.push(slot as u32);
            }
            Slot::Own(memory.bytes)
        };
        let slots = self.memory.into_iter().enumerate().map(|(slot, memory)| match memory.kind {
            Kind::Input(i, _) => Slot::Input(i),
            Kind::Constant(buffer) => Slot::Constant(buffer),
            Kind::Taken => match place.remove(&slot) {
                Some(offset) => Slot::Arena(offset, memory.bytes),
                None => own(slot, &memory),
            },
        });
        let slots = slots.collect();
        Recorded::Executable(Arc::new(Executable::new(
            self.device,
            slots,
            (self.steps, self.tensors, self.places, self.dims, self.scalars),
            outputs,
            self.donated,
            arena,
            (self.counts, Stats { repeated: 1, ..self.stats }, self.tasks),
        )))
    }
}

/// A range of entries of a list.
pub(super) type Part = Range<usize>;

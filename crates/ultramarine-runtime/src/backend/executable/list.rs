//! Lists: consecutive commands that are one submission.
//!
//! First the tensors, scratch memory and commands of a list are built. Then there is one pass over
//! the buffers that the list uses, one call of the backend, and one number of the stream. All
//! memory that the commands free is released after this number.
//!
//! A list ends before a call, and earlier if a longer list would cost more than it saves:
//!
//! - **interruption**: a list ends before the first command that overwrites an input, because a run
//!   can be given up only until then. On a device that runs commands inside of `submit`, a list
//!   also ends after [`MOST_BYTES`].
//! - **memory**: single commands would free memory between them, but a list keeps it until its end;
//!   see [`MOST_IDLE`].
//! - **errors**: on a device that runs ahead without events, the host waits after each command, and
//!   so knows which one failed.

use super::{Executable, Memory, Slot, Step, call::Work};
use crate::backend::DeviceState;
use crate::backend::buffer::{Buffer, BufferRef};
use crate::backend::call::{Exec, scratch};
use crate::error::{Error, Result};
use crate::host_table;
use std::cell::Cell;
use std::ops::Range;
use std::ptr;
use ultramarine_abi::{Command, Tensor};

/// The most commands of a list. A device that runs ahead begins with the first command when the
/// last one is built. Building takes less than 0.2 microseconds per command.
const MOST_COMMANDS: usize = 64;

/// The most bytes of the tensors of a list's commands on a device that runs commands inside of
/// `submit`. A larger command is a list of its own.
///
/// Requests to stop are checked between lists. This limit keeps the time until the check far below
/// 0.2 seconds: commands on so few bytes take some tens of milliseconds in the worst case, which is
/// a matrix decomposition. (The CPU's loops check requests too; then the rest of the list ends
/// early.) Broadcast elements count as often as they are read.
const MOST_BYTES: u64 = 256 << 10;

/// The most bytes that commands of a list may have freed before the list ends. If more was freed
/// inside of the list, including scratch memory, the list ends before a command that takes memory.
/// So a device's peak is higher than with single commands by at most this number.
const MOST_IDLE: usize = 64 << 10;

/// Steps that failed: a single step, or all steps of a list if the backend does not say which
/// command failed.
pub(super) struct Stopped {
    pub steps: Range<usize>,
    pub error: Error,
}

/// A slot that a list uses.
struct Used {
    slot: usize,
    writes: bool,
    /// The last graph operation that writes to the slot. If none writes to it, the last one that
    /// reads it.
    op: &'static str,
}

/// A list of commands under construction. All lists of a run reuse its vectors.
pub(super) struct List {
    tensors: Vec<Tensor>,
    commands: Vec<Command>,
    /// Indices of the commands that need scratch memory.
    with_scratch: Vec<usize>,
    /// The scratch memory, which all commands share because they run one after the other.
    scratch: Option<BufferRef>,
    /// The buffers that the list uses. Each is listed once.
    used: Vec<Used>,
    /// For each slot, and then for the arena, its index in `used`; [`UNUSED`] if the list does not
    /// use it.
    places: Vec<usize>,
}

const UNUSED: usize = usize::MAX;

impl List {
    pub fn new(executable: &Executable) -> List {
        List {
            tensors: Vec::new(),
            commands: Vec::new(),
            with_scratch: Vec::new(),
            scratch: None,
            used: Vec::new(),
            places: vec![UNUSED; executable.slots.len() + 1],
        }
    }

    fn clear(&mut self) {
        self.tensors.clear();
        self.commands.clear();
        self.with_scratch.clear();
        self.scratch = None;
        for used in self.used.drain(..) {
            self.places[used.slot] = UNUSED;
        }
    }

    /// Records a use of a slot, or of the arena.
    fn uses(&mut self, slot: usize, writes: bool, op: &'static str) {
        match self.used.get_mut(self.places[slot]) {
            None => {
                self.places[slot] = self.used.len();
                self.used.push(Used { slot, writes, op });
            }
            Some(used) if writes || !used.writes => (used.writes, used.op) = (writes, op),
            Some(_) => {}
        }
    }
}

/// Returns, for each step, the end of the longest list that the step may be in.
pub(super) fn ends(
    device: &DeviceState,
    steps: &[Step],
    tensors: &[Tensor],
    stays_from: usize,
) -> Box<[usize]> {
    let runs_inside = device.is_host() || device.info.synchronous != 0;
    let mut ends = vec![steps.len(); steps.len()];
    let (mut start, mut bytes) = (0, 0u64);
    for (i, step) in steps.iter().enumerate() {
        let own = tensors[step.tensors.clone()].iter().map(bytes_of).fold(0, u64::saturating_add);
        let is_next = i > start
            && (i == stays_from
                || i - start == MOST_COMMANDS
                || !of_one_table(step, &steps[start])
                || (runs_inside && bytes.saturating_add(own) > MOST_BYTES));
        if is_next {
            ends[start..i].fill(i);
            (start, bytes) = (i, 0);
        }
        bytes = bytes.saturating_add(own);
    }
    ends.into()
}

/// Returns true if both steps are commands for the same kernel table.
fn of_one_table(step: &Step, other: &Step) -> bool {
    match (step.plan(), other.plan()) {
        (Some(plan), Some(other)) => ptr::eq(plan.kernels, other.kernels),
        _ => false,
    }
}

/// Returns the bytes of a tensor's elements.
fn bytes_of(tensor: &Tensor) -> u64 {
    // SAFETY: the sizes are the executable's own, and there are as many as the rank says.
    let size = |d| unsafe { *tensor.dl.shape.add(d) } as u64;
    let element = u64::from(tensor.dl.dtype.bits).div_ceil(8);
    (0..tensor.dl.ndim as usize).map(size).fold(element, u64::saturating_mul)
}

impl Executable {
    /// Returns the steps that may form the next list.
    pub(super) fn list_from(&self, exec: &Exec, start: usize) -> Range<usize> {
        let settles = exec.stream.is_some_and(|s| s.runs_ahead() && s.event().is_null());
        start..if settles { start + 1 } else { self.list_ends[start] }
    }

    /// Runs as many of the steps as may form one list. Returns the index of the next step.
    pub(super) fn run_list(
        &self,
        exec: &Exec,
        steps: Range<usize>,
        memory: &mut Memory,
        list: &mut List,
    ) -> Result<usize, Stopped> {
        let start = steps.start;
        if let Work::Call(call) = &self.steps[start].work {
            return self.run_call(exec, (start, call), memory);
        }
        let built = self.build(exec, steps, memory, list);
        let end = built.map_err(|error| Stopped { steps: start..start + 1, error })?;
        let outcome = self.submit(exec, start..end, memory, list);
        // Not earlier, because it may be in use. It is freed after the list's number.
        list.scratch = None;
        let done = match &outcome {
            Err(Unsubmitted::Nothing) => start..start,
            Err(Unsubmitted::Failed(stopped)) => start..stopped.steps.start,
            Ok(()) => start..end,
        };
        for step in &self.steps[done] {
            self.free(step, memory);
        }
        match outcome {
            Ok(()) => match exec.settle() {
                Ok(()) => Ok(end),
                Err(error) => Err(Stopped { steps: start..end, error }),
            },
            Err(Unsubmitted::Failed(stopped)) => Err(stopped),
            // Something that the list waits for has failed. Run the commands one by one, so that
            // only those that use the failed result fail.
            Err(Unsubmitted::Nothing) => {
                (start..end)
                    .try_for_each(|i| self.run_list(exec, i..i + 1, memory, list).map(drop))?;
                Ok(end)
            }
        }
    }

    /// Allocates memory for a step, unless it has memory already.
    pub(super) fn take(&self, exec: &Exec, step: &Step, memory: &mut Memory) -> Result<()> {
        if memory.is_whole {
            return Ok(());
        }
        for slot in &step.takes {
            let place = *slot as usize;
            if let Slot::Own(bytes) = self.slots[place]
                && ptr::eq(&*memory.buffers[place], &*memory.arena)
            {
                memory.buffers[place] = exec.buffer(bytes)?;
            }
        }
        Ok(())
    }

    /// Releases the memory that no step after this one needs.
    pub(super) fn free(&self, step: &Step, memory: &mut Memory) {
        if !memory.is_whole {
            for slot in &step.frees {
                memory.buffers[*slot as usize] = memory.arena.clone();
            }
        }
    }

    /// Returns the bytes that a step frees.
    fn freed(&self, step: &Step) -> usize {
        let bytes = |slot: &u32| match self.slots[*slot as usize] {
            Slot::Own(bytes) => bytes,
            _ => 0,
        };
        step.frees.iter().map(bytes).sum()
    }

    /// Builds a list of the first of these steps, up to the first step that has to wait for memory.
    /// Returns the end of the list.
    fn build(
        &self,
        exec: &Exec,
        steps: Range<usize>,
        memory: &mut Memory,
        list: &mut List,
    ) -> Result<usize> {
        list.clear();
        let [first, last] = [&self.steps[steps.start], &self.steps[steps.end - 1]];
        // Reserve the capacity, because commands point at the tensors, which must not move.
        list.tensors.reserve(last.tensors.end - first.tensors.start);
        let (mut idle, mut scratch_bytes, mut end) = (0usize, 0u64, steps.end);
        for i in steps.clone() {
            let (step, is_first) = (&self.steps[i], i == steps.start);
            let Some(plan) = step.plan() else {
                end = i;
                break;
            };
            let is_full = !is_first && idle > MOST_IDLE;
            if is_full && !step.takes.is_empty() {
                end = i;
                break;
            }
            match self.take(exec, step, memory) {
                Ok(()) => {}
                // There may be enough memory once the list's own memory is freed.
                Err(_) if !is_first => {
                    end = i;
                    break;
                }
                Err(error) => return Err(error),
            }
            let from = list.tensors.len();
            list.tensors.extend(self.bound(step, memory));
            let slots = &self.slots_of[step.tensors.clone()];
            if self.device.waits_in_commands() {
                for (tensor, slot) in list.tensors[from..].iter_mut().zip(&slots[..step.inputs]) {
                    exec.wait_in_command(tensor, memory.buffer(*slot));
                }
            }
            let command = self.command(step, &list.tensors[from..], memory.numbers(self));
            // Ask each time, because a plan may need more once its kernel is compiled.
            let wanted = exec.workspace_bytes(plan, &command);
            if wanted > scratch_bytes {
                let taken = if is_full { None } else { Some(exec.buffer(wanted as usize)) };
                match taken {
                    Some(Ok(buffer)) => list.scratch = Some(buffer),
                    Some(Err(error)) if is_first => return Err(error),
                    _ => {
                        end = i;
                        break;
                    }
                }
                idle = idle.saturating_add((wanted - scratch_bytes) as usize);
                scratch_bytes = wanted;
            }
            if wanted > 0 {
                list.with_scratch.push(list.commands.len());
            }
            list.commands.push(command);
            idle = idle.saturating_add(self.freed(step));
            if exec.stream.is_some() {
                for (n, slot) in slots.iter().enumerate() {
                    let slot = *slot as usize;
                    let in_arena = matches!(self.slots[slot], Slot::Arena(..));
                    let slot = if in_arena { self.slots.len() } else { slot };
                    list.uses(slot, n >= step.inputs, step.op);
                }
            }
        }
        let workspace = scratch(list.scratch.as_ref());
        for i in &list.with_scratch {
            list.commands[*i].workspace = workspace;
        }
        Ok(end)
    }

    /// Submits a list of these steps to the device.
    fn submit(
        &self,
        exec: &Exec,
        steps: Range<usize>,
        memory: &Memory,
        list: &List,
    ) -> Result<(), Unsubmitted> {
        let stopped = |steps, error| Unsubmitted::Failed(Stopped { steps, error });
        let first = steps.start..steps.start + 1;
        let Some(kernels) = self.steps[steps.start].plan().map(|plan| plan.kernels) else {
            return Ok(());
        };
        let Some(submit) = kernels.table.submit else {
            return Err(stopped(first, self.device.lacks("submit")));
        };
        let op = self.steps[steps.end - 1].op;
        exec.op.set(op);
        let buffers = |writes: bool| {
            let those = list.used.iter().filter(move |used| used.writes == writes);
            those.map(|used| (self.buffer_at(memory, used.slot), used.op))
        };
        let scratch = list.scratch.iter().map(|buffer| (&**buffer, op));
        let (began, failed) = (Cell::new(false), Cell::new(None));
        let commands = list.commands.len();
        let outcome = exec.give_list(
            commands as u64,
            buffers(false),
            buffers(true).chain(scratch),
            |stream| {
                began.set(true);
                let (first, mut error) = (list.commands.as_ptr(), ptr::null_mut());
                // SAFETY: the commands and everything they point at are valid for the call. Tensors
                // have the dtypes and ranks that the plans were made for. This thread holds the
                // stream's lock.
                let code =
                    unsafe { submit(kernels.handle, stream, first, commands as u32, &mut error) };
                failed.set(host_table::failed_command(error));
                host_table::check("submit", code, error)
            },
        );
        let Err(error) = outcome else { return Ok(()) };
        if commands == 1 {
            return Err(stopped(first, error));
        }
        if !began.get() {
            return Err(Unsubmitted::Nothing);
        }
        // By the contract, the commands before the failed one were enqueued, and those after it
        // were not.
        let failed = failed.get().map(|i| steps.start + i as usize).filter(|i| *i < steps.end);
        let steps = failed.map_or(steps, |i| i..i + 1);
        exec.op.set(self.steps[steps.start].op);
        Err(stopped(steps, error))
    }

    /// Returns the buffer of a slot, or of the arena, whose index follows those of the slots.
    fn buffer_at<'a>(&self, memory: &'a Memory, slot: usize) -> &'a Buffer {
        memory.buffers.get(slot).unwrap_or(&memory.arena)
    }
}

/// The reason why a list was not submitted as a whole.
enum Unsubmitted {
    /// The backend was not called, because something that the commands depend on has failed.
    Nothing,
    Failed(Stopped),
}

//! Lists: consecutive commands that are one submission.
//!
//! The tensors, scratch memory and commands of a list are built first. Then there is one pass over the buffers that it
//! uses, one call of the backend, and one number of the stream, behind which all memory that the commands free is
//! released.
//!
//! A list ends before a call, and early where it would cost more than it saves:
//! - **interruption**: before the first command that overwrites an input, up to which a run can be given up, and on a
//!   device that runs commands inside of `submit` after [`MOST_BYTES`];
//! - **memory**: commands one by one would give memory back between them, which a list keeps: see [`MOST_IDLE`];
//! - **errors**: a device that runs ahead without events is waited for after each command, and so knows which one failed.

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

/// Commands of a list at most. A device that runs ahead begins with the first when the last is built, which takes less
/// than 0.2 microseconds for each.
const MOST_COMMANDS: usize = 64;

/// Bytes of the tensors of a list's commands at most, where `submit` runs them; a larger command is a list of its own.
///
/// This bounds the time to a request to stop, which is looked at between lists, to far below 0.2 seconds: commands on so
/// few bytes take some tens of milliseconds in the worst case, a decomposition of matrices. (The CPU's loops look at it,
/// too, and then all that is left of a list ends early.) Broadcast elements count as often as they are read.
const MOST_BYTES: u64 = 256 << 10;

/// Bytes that commands of a list may have freed before it takes more memory. A device's peak is higher than with single
/// commands by this at most: a list ends before a command that takes memory if more than this was freed inside of it,
/// scratch memory included.
const MOST_IDLE: usize = 64 << 10;

/// Steps that failed: one, or all of a list of which the backend does not say which command failed.
pub(super) struct Stopped {
    pub steps: Range<usize>,
    pub error: Error,
}

/// A slot that a list uses.
struct Used {
    slot: usize,
    writes: bool,
    /// The last graph operation that writes to it, or else reads it.
    op: &'static str,
}

/// A list of commands under construction; its vectors serve all lists of a run.
pub(super) struct List {
    tensors: Vec<Tensor>,
    commands: Vec<Command>,
    /// Commands that want scratch memory.
    with_scratch: Vec<usize>,
    /// Memory for all of them, since they run one after the other.
    scratch: Option<BufferRef>,
    /// The buffers that are used, each once.
    used: Vec<Used>,
    /// The place in `used` of each slot, and behind them of the arena; [`UNUSED`] for others.
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

    /// Notes a use of a slot, or of the arena.
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

/// The end of the longest list that each step may be in.
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

/// Returns true for commands that one table of functions takes.
fn of_one_table(step: &Step, other: &Step) -> bool {
    match (step.plan(), other.plan()) {
        (Some(plan), Some(other)) => ptr::eq(plan.kernels, other.kernels),
        _ => false,
    }
}

/// Bytes of a tensor's elements.
fn bytes_of(tensor: &Tensor) -> u64 {
    // SAFETY: the sizes are the executable's own, as many as the rank says.
    let size = |d| unsafe { *tensor.dl.shape.add(d) } as u64;
    let element = u64::from(tensor.dl.dtype.bits).div_ceil(8);
    (0..tensor.dl.ndim as usize).map(size).fold(element, u64::saturating_mul)
}

impl Executable {
    /// The steps that may be the next list.
    pub(super) fn list_from(&self, exec: &Exec, start: usize) -> Range<usize> {
        let settles = exec.stream.is_some_and(|s| s.runs_ahead() && s.event().is_null());
        start..if settles { start + 1 } else { self.list_ends[start] }
    }

    /// Runs as many of the steps as may be one list. Gives the step that comes next.
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
        // Not before: it may be in use, and goes back behind the list.
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
            // Only a command that uses what failed elsewhere fails, too.
            Err(Unsubmitted::Nothing) => {
                (start..end)
                    .try_for_each(|i| self.run_list(exec, i..i + 1, memory, list).map(drop))?;
                Ok(end)
            }
        }
    }

    /// Takes memory for a step, unless it is there.
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

    /// Gives back the memory that nothing behind a step needs.
    pub(super) fn free(&self, step: &Step, memory: &mut Memory) {
        if !memory.is_whole {
            for slot in &step.frees {
                memory.buffers[*slot as usize] = memory.arena.clone();
            }
        }
    }

    /// Bytes that a step frees.
    fn freed(&self, step: &Step) -> usize {
        let bytes = |slot: &u32| match self.slots[*slot as usize] {
            Slot::Own(bytes) => bytes,
            _ => 0,
        };
        step.frees.iter().map(bytes).sum()
    }

    /// Builds a list of the first of these steps, up to one that has to wait for memory. Gives the step behind the list.
    fn build(
        &self,
        exec: &Exec,
        steps: Range<usize>,
        memory: &mut Memory,
        list: &mut List,
    ) -> Result<usize> {
        list.clear();
        let [first, last] = [&self.steps[steps.start], &self.steps[steps.end - 1]];
        // Commands point at tensors, which therefore stay where they are.
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
                // There may be memory once what the list frees is free.
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
            // Asked for each time: a plan may want more once its kernel is compiled.
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

    /// Gives a list of these steps to the device.
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
                // SAFETY: the commands and all they point at are valid for the call; tensors have the dtypes and ranks
                // that the plans were made for; this thread holds the stream's lock.
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
        // Those before it were enqueued, and nothing of those behind it, by the contract.
        let failed = failed.get().map(|i| steps.start + i as usize).filter(|i| *i < steps.end);
        let steps = failed.map_or(steps, |i| i..i + 1);
        exec.op.set(self.steps[steps.start].op);
        Err(stopped(steps, error))
    }

    /// The buffer of a slot, or of the arena, whose number is behind those of the slots.
    fn buffer_at<'a>(&self, memory: &'a Memory, slot: usize) -> &'a Buffer {
        memory.buffers.get(slot).unwrap_or(&memory.arena)
    }
}

/// The reason why a list was not submitted as a whole.
enum Unsubmitted {
    /// The backend was not called: what the commands depend on has failed.
    Nothing,
    Failed(Stopped),
}

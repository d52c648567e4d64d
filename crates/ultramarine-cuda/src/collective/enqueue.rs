//! Translates commands to NCCL's calls.
//!
//! NCCL lacks some dtypes and semantics, so some elements are converted:
//!
//! * 16-bit integers are combined as int32, and therefore modulo 2^16.
//! * NCCL's maximum ignores NaN. Floats are mapped to integers of the same order, in which NaN is the largest.
//! * Complex numbers are summed as pairs of floats. Their maximum is selected from the gathered values.
//! * A sum of bool is true if any element is true.
//! * Data that is only moved is passed as bytes.

use super::helpers::On;
use super::{Communicator, Helpers};
use crate::context;
use crate::launch::{Device, Dtype};
use crate::memory::{Allocator, Buffer};
use crate::streams::Stream;
use crate::sys::nccl::{Code, Handle, Nccl, code, data, reduction};
use core::ffi::{c_int, c_void};
use std::sync::Arc;
use ultramarine_abi::helper::{CollectiveRef, Failure, Result};
use ultramarine_abi::interface::collective::kind;

type Command<'a> = CollectiveRef<'a, Device>;

/// The arguments of NCCL's call for a command.
#[derive(Clone, Copy)]
struct Call {
    kind: u32,
    /// `ncclDataType_t`, and the number of these elements.
    dtype: c_int,
    count: usize,
    reduction: c_int,
    peer: c_int,
    input: u64,
    output: u64,
}

/// A command, with the additional memory that it needs.
struct Step<'a> {
    command: &'a Command<'a>,
    form: Form,
    input: u64,
    output: u64,
    call: Call,
    /// Memory for NCCL's input and output, if they differ from the command's.
    scratch: [Option<Buffer>; 2],
}

/// Bytes of the input and of the output.
fn sizes(command: &Command<'_>, ranks: u32) -> Result<(usize, usize)> {
    let many =
        || Failure::invalid("the collective has more elements than the address space. Split it");
    let bytes = |count: u64| {
        let bytes = count.checked_mul(command.dtype.bytes());
        bytes.and_then(|b| usize::try_from(b).ok()).ok_or_else(many)
    };
    let (count, ranks) = (command.count, u64::from(ranks));
    Ok(match command.kind {
        kind::GATHER => (bytes(count)?, bytes(count.checked_mul(ranks).ok_or_else(many)?)?),
        kind::SUM_SCATTER if count % ranks != 0 => {
            let text =
                format!("{count} elements cannot be divided among {ranks} ranks. Pad the array");
            return Err(Failure::invalid(text));
        }
        kind::SUM_SCATTER => (bytes(count)?, bytes(count / ranks)?),
        kind::SEND => (bytes(count)?, 0),
        kind::RECEIVE => (0, bytes(count)?),
        _ => (bytes(count)?, bytes(count)?),
    })
}

/// The form in which a command's elements are passed to NCCL.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Unchanged.
    Own,
    /// Converted to int32.
    Wide,
    /// Converted to unsigned integers of the same order.
    Keys,
    /// Gathered; the result is then selected from the gathered values.
    Gathered,
}

impl Form {
    fn of(command: &Command<'_>) -> Form {
        let ordered = matches!(command.kind, kind::MAX | kind::MIN);
        match (command.kind, command.dtype) {
            (kind::GATHER | kind::SEND | kind::RECEIVE, _) => Form::Own,
            (_, Dtype::Int16 | Dtype::Uint16) => Form::Wide,
            (_, Dtype::Complex64) if ordered => Form::Gathered,
            (_, Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32 | Dtype::Float64) if ordered => {
                Form::Keys
            }
            _ => Form::Own,
        }
    }
}

/// The `ncclDataType_t` in which elements are combined unchanged, and how many of these an element
/// has.
fn combined(dtype: Dtype) -> (c_int, usize) {
    match dtype {
        // Bools are 0 and 1.
        Dtype::Bool | Dtype::Uint8 => (data::U8, 1),
        Dtype::Int8 => (data::I8, 1),
        Dtype::Int16 | Dtype::Uint16 | Dtype::Int32 => (data::I32, 1),
        Dtype::Uint32 => (data::U32, 1),
        Dtype::Int64 => (data::I64, 1),
        Dtype::Uint64 => (data::U64, 1),
        Dtype::Float16 => (data::F16, 1),
        Dtype::Bfloat16 => (data::BF16, 1),
        Dtype::Float32 => (data::F32, 1),
        Dtype::Float64 => (data::F64, 1),
        Dtype::Complex64 => (data::F32, 2),
    }
}

impl<'a> Step<'a> {
    /// Finds the memory of a command, and allocates the additional memory.
    fn of(
        (device, stream): On<'_>,
        command: &'a Command<'a>,
        (rank, ranks): (u32, u32),
    ) -> Result<Self> {
        let sides = matches!(command.kind, kind::SEND | kind::RECEIVE);
        if sides && command.peer >= ranks {
            return Err(Failure::invalid(format!(
                "rank {} is not below the number of ranks, {ranks}",
                command.peer
            )));
        }
        if sides && command.peer == rank {
            return Err(Failure::invalid(format!(
                "rank {rank} sends a message to itself. Choose another rank"
            )));
        }
        let (input_bytes, output_bytes) = sizes(command, ranks)?;
        let part = |tensor: &Option<(&Buffer, u64)>, bytes| match tensor {
            Some((buffer, offset)) => buffer.part(*offset, bytes),
            None => Ok(0),
        };
        let input = part(&command.input, input_bytes)?;
        let output = part(&command.output, output_bytes)?;
        let scratch =
            |bytes: u64| Allocator::alloc_for(&device.allocator, stream.id(), bytes).map(Some);
        let count = command.count as usize;
        let mut call = Call {
            kind: command.kind,
            dtype: data::I8,
            count: 0,
            reduction: reduction::SUM,
            peer: command.peer as c_int,
            input,
            output,
        };
        let mut taken = [None, None];
        let form = Form::of(command);
        let combines = !matches!(command.kind, kind::GATHER | kind::SEND | kind::RECEIVE);
        if combines {
            let (dtype, each) = combined(command.dtype);
            let parts = if command.kind == kind::SUM_SCATTER { ranks as usize } else { 1 };
            (call.dtype, call.count) = (dtype, count / parts * each);
            call.reduction = match command.kind {
                kind::MAX => reduction::MAX,
                kind::MIN => reduction::MIN,
                _ if command.dtype == Dtype::Bool => reduction::MAX,
                _ => reduction::SUM,
            };
        }
        match form {
            Form::Own if combines => {}
            Form::Own => {
                call.count = if command.kind == kind::RECEIVE { output_bytes } else { input_bytes }
            }
            Form::Gathered => {
                (call.kind, call.dtype, call.count) = (kind::GATHER, data::I8, input_bytes);
                taken[1] = scratch((input_bytes as u64).saturating_mul(ranks.into()))?;
            }
            Form::Wide | Form::Keys => {
                // Keys have at least 4 bytes.
                let factor = 4_u64.div_ceil(command.dtype.bytes());
                taken =
                    [scratch(input_bytes as u64 * factor)?, scratch(output_bytes as u64 * factor)?];
                if form == Form::Keys {
                    call.dtype = if command.dtype.bytes() == 8 { data::U64 } else { data::U32 };
                }
            }
        }
        if let Some(buffer) = &taken[0] {
            call.input = buffer.address();
        }
        if let Some(buffer) = &taken[1] {
            call.output = buffer.address();
        }
        Ok(Self { command, form, input, output, call, scratch: taken })
    }

    /// Enqueues the work before NCCL's call.
    fn before(&self, on: On<'_>, helpers: &Helpers) -> Result<()> {
        let (dtype, count) = (self.command.dtype, self.command.count);
        match self.form {
            Form::Own | Form::Gathered => Ok(()),
            Form::Wide => {
                helpers.convert(on, (self.call.input, Dtype::Int32), (self.input, dtype), count)
            }
            Form::Keys => {
                let largest = self.command.kind == kind::MAX;
                helpers.keys(on, (dtype, largest), (self.call.input, self.input), count)
            }
        }
    }

    /// Enqueues the work after NCCL's call.
    fn after(&self, on: On<'_>, helpers: &Helpers, ranks: u32) -> Result<()> {
        let (dtype, count) = (self.command.dtype, self.command.count);
        let places = (self.output, self.call.output);
        match self.form {
            Form::Own => Ok(()),
            Form::Gathered => {
                helpers.choose(on, self.command.kind == kind::MAX, places, (count, ranks))
            }
            Form::Wide => {
                // As many elements as the output has.
                let count = self.call.count as u64;
                helpers.convert(on, (self.output, dtype), (self.call.output, Dtype::Int32), count)
            }
            Form::Keys => helpers.floats(on, dtype, places, count),
        }
    }
}

impl Call {
    /// Makes NCCL's call.
    fn enqueue(&self, nccl: &Nccl, comm: Handle, stream: &Stream) -> (&'static str, Code) {
        let (from, to) = (self.input as *mut c_void, self.output as *mut c_void);
        let (n, dtype, queue) = (self.count, self.dtype, stream.handle());
        // SAFETY: the communicator is alive, the stream is the device's, and `of` has checked the length of the
        // memory.
        unsafe {
            match self.kind {
                kind::GATHER => {
                    ("ncclAllGather", (nccl.all_gather)(from, to, n, dtype, comm, queue))
                }
                kind::SEND => ("ncclSend", (nccl.send)(from, n, dtype, self.peer, comm, queue)),
                kind::RECEIVE => ("ncclRecv", (nccl.receive)(to, n, dtype, self.peer, comm, queue)),
                kind::SUM_SCATTER => {
                    let code =
                        (nccl.reduce_scatter)(from, to, n, dtype, self.reduction, comm, queue);
                    ("ncclReduceScatter", code)
                }
                _ => {
                    let code = (nccl.all_reduce)(from, to, n, dtype, self.reduction, comm, queue);
                    ("ncclAllReduce", code)
                }
            }
        }
    }
}

/// The name of a command, for errors.
fn name(command: &Command<'_>) -> Arc<str> {
    let kind = match command.kind {
        kind::SUM => "all_sum",
        kind::MAX => "all_max",
        kind::MIN => "all_min",
        kind::GATHER => "all_gather",
        kind::SUM_SCATTER => "sum_scatter",
        kind::SEND => "send",
        _ => "recv",
    };
    format!("{kind} of {}", command.dtype.name()).into()
}

/// Enqueues commands of a communicator as one group.
pub fn enqueue(
    device: &Device,
    stream: &Stream,
    helpers: &Helpers,
    communicator: &Communicator,
    commands: &[Command<'_>],
) -> Result<()> {
    let _entered = device.enter()?;
    let (on, place) = ((device, stream), communicator.place()?);
    let steps: Vec<Step<'_>> =
        commands.iter().map(|command| Step::of(on, command, place)).collect::<Result<_>>()?;
    let outcome = enqueue_steps(on, helpers, communicator, &steps, place.1);
    // The memory is freed in the stream's order even after a failure, because what was enqueued
    // before the failure uses it.
    for buffer in steps.into_iter().flat_map(|step| step.scratch).flatten() {
        buffer.give_in_order(stream.id());
    }
    outcome?;
    match context::blocking() {
        true => stream.drain(),
        false => Ok(()),
    }
}

fn enqueue_steps(
    on: On<'_>,
    helpers: &Helpers,
    communicator: &Communicator,
    steps: &[Step<'_>],
    ranks: u32,
) -> Result<()> {
    steps.iter().try_for_each(|step| step.before(on, helpers))?;
    for step in steps {
        on.1.log().push(&name(step.command));
    }
    let mut next = steps.iter();
    communicator.together(
        |nccl, handle| match next.next() {
            Some(step) => step.call.enqueue(nccl, handle, on.1),
            None => ("", code::SUCCESS),
        },
        steps.len(),
    )?;
    steps.iter().try_for_each(|step| step.after(on, helpers, ranks))
}

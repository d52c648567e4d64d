//! Calls of a backend: conversion of tensors to the contract's form, and submissions.

use super::device_stream::{DeviceStream, Records};
use super::stats::{Local, Stats, bump};
use super::{
    DeviceState, Plan, PlanKey, counts::Dispatch, executable, is_refusal, kernels::Kernels,
    parts::Parts,
};
use crate::backend::buffer::{Buffer, BufferRef};
use crate::error::{Error, Message, Result};
use crate::{
    backend::value::Value, device::Stream, dtype::Dtype, host_table, interrupt, scalar::Scalar,
    shape,
};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use ultramarine_abi::dlpack::{DLDevice, DLTensor};
use ultramarine_abi::schema::{self, OpId, op};
use ultramarine_abi::{
    Command, Tensor,
    fused::{Anchor, Program},
    status,
};

/// A tensor of a call: a [`Value`](super::value::Value) with shape and dtype.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    pub value: &'a Value,
    pub shape: &'a [usize],
    pub dtype: Dtype,
}

/// The device and stream that a job runs on. Commands are submitted through it.
pub struct Exec {
    pub device: &'static DeviceState,
    /// The device's side of the stream; `None` on the host, whose kernels take no stream.
    pub(super) stream: Option<&'static DeviceStream>,
    /// The program's stream; `None` for internal work such as copies.
    program_stream: Option<Stream>,
    /// When the next submission is recorded.
    records: Cell<Records>,
    /// The graph operation that runs. Errors name it.
    pub op: Cell<&'static str>,
    /// True if equal commands have to give bitwise identical results.
    pub deterministic: Cell<bool>,
    /// The table that took the last command; `None` once the command is counted.
    ran: Cell<Option<&'static Kernels>>,
    /// True if the last error means that no table has a kernel. The operands are then unchanged.
    refused: Cell<bool>,
    /// True if a profile records the commands.
    pub(super) profiled: Cell<bool>,
    /// Copies on this device of parts of other devices' buffers.
    parts: Parts,
    local: Local,
}

type Tensors = SmallVec<[Tensor; 8]>;

/// Most bytes that the host copies directly, without a command.
const COPIED_HERE: usize = 4096;

impl Exec {
    pub fn new(device: &'static DeviceState, stream: Stream) -> Result<Self> {
        let on = if device.is_host() { None } else { Some(device.stream(stream)?) };
        Ok(Exec { program_stream: Some(stream), ..Self::on(device, on) })
    }

    /// The program's stream to which it gives work.
    pub fn program_stream(&self) -> Option<Stream> {
        self.program_stream
    }

    /// Called for an evaluation with all its work on one stream. Numbers are then recorded only when something waits
    /// for results.
    pub fn set_alone(&self) {
        self.records.set(Records::Begins);
    }

    /// Makes an `Exec` for copies on a device on which no job runs.
    pub(super) fn beside(device: &'static DeviceState) -> Result<Self> {
        let stream = if device.is_host() { None } else { Some(device.beside()?) };
        let exec = Self::on(device, stream);
        exec.op.set("copy");
        Ok(exec)
    }

    #[inline]
    fn on(device: &'static DeviceState, stream: Option<&'static DeviceStream>) -> Self {
        executable::with(|recording| recording.on(device));
        Exec {
            device,
            stream,
            program_stream: None,
            records: Cell::new(Records::AtOnce),
            op: Cell::new("eval"),
            deterministic: Cell::new(false),
            ran: Cell::new(None),
            refused: Cell::new(false),
            profiled: Cell::new(false),
            parts: Parts::default(),
            local: Local::default(),
        }
    }

    /// The number of commands that were given to the backend so far, and the bytes that they read and wrote.
    pub fn given(&self) -> [u64; 3] {
        let Local { commands, bytes_read, bytes_written, .. } = &self.local;
        [commands, bytes_read, bytes_written].map(Cell::get)
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Called after a task. If the device runs ahead of the host but has no events, this waits for the task.
    #[inline]
    pub fn settle(&self) -> Result<()> {
        self.stream.map_or(Ok(()), |s| s.settle())
    }

    /// Gives work to the stream, to run after the work that it depends on. `call` gets the backend's stream.
    pub fn enqueue<'a>(
        &self,
        reads: impl Iterator<Item = &'a Buffer> + Clone,
        writes: impl Iterator<Item = &'a Buffer> + Clone,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        // The work is no command, so a recording cannot describe it.
        executable::give_up();
        self.give(reads, writes, call)
    }

    /// Gives a command to the stream, to run after the work that it depends on.
    pub(super) fn give<'a>(
        &self,
        reads: impl Iterator<Item = &'a Buffer> + Clone,
        writes: impl Iterator<Item = &'a Buffer> + Clone,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let op = self.op.get();
        let named = move |buffer| (buffer, op);
        self.give_list(1, reads.map(named), writes.map(named), call)
    }

    /// Gives a list of `commands` commands to the stream, to run after the work that they depend on. Each buffer comes
    /// with the graph operation that uses it.
    pub(super) fn give_list<'a>(
        &self,
        commands: u64,
        reads: impl Iterator<Item = (&'a Buffer, &'static str)> + Clone,
        writes: impl Iterator<Item = (&'a Buffer, &'static str)> + Clone,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let call = |stream| match self.is_profiled() {
            false => call(stream),
            true => self.marked(|| call(stream)),
        };
        match self.stream {
            None => call(std::ptr::null_mut()),
            Some(stream) => {
                let records = self.records.get();
                if records == Records::Begins {
                    self.records.set(Records::WhenAsked);
                }
                stream.submit_list((commands, records), reads, writes, call)
            }
        }
    }

    /// Allocates memory of the device.
    #[inline]
    pub fn buffer(&self, bytes: usize) -> Result<BufferRef> {
        let buffer = Buffer::for_stream(bytes, self.device, self.stream)?;
        executable::with(|recording| recording.take(&buffer));
        Ok(buffer)
    }

    /// Allocates memory for a row-major output.
    pub fn alloc(&self, shape: &[usize], dtype: Dtype) -> Result<Value> {
        let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let bytes = elements.map(|n| dtype.bytes_of(n)).filter(|n| *n < usize::MAX);
        let bytes = bytes.ok_or_else(|| {
            Error::Memory(
                format!(
                    "No memory for an array of shape {}. Use a smaller one.",
                    shape::Show(shape)
                )
                .into(),
            )
        })?;
        let buffer = self.buffer(bytes)?;
        Ok(Value { buffer, offset: 0, strides: shape::contiguous_strides(shape) })
    }

    /// Takes over an operand's memory for an output. The caller has made sure that nothing else needs the operand.
    #[inline]
    pub fn donate(&self, operand: &Value) -> Value {
        bump(&self.local.donations, 1);
        executable::with(|recording| recording.donate(&operand.buffer));
        operand.buffer.changes();
        interrupt::hold();
        operand.clone()
    }

    /// Returns true if the last error was a refusal, and forgets it. After a refusal the operands are unchanged, so
    /// another candidate may be tried.
    #[inline]
    pub fn take_refusal(&self) -> bool {
        self.refused.take()
    }

    /// Makes the error for an operation that the device has no kernel for.
    #[cold]
    pub fn refuse(&self, name: &str) -> Error {
        self.refused.set(true);
        let text = format!("[{name}] backend {} has no kernel for this.", self.device.backend);
        Error::Runtime(Message::without_line(text))
    }

    /// Records that a task ran on the host without a command, so that it is counted.
    #[inline]
    pub fn ran_here(&self) {
        executable::give_up();
        self.ran.set(self.device.kernels.get().last().copied());
    }

    /// Counts a replay of a backend's recording.
    pub(super) fn count_replay(&self) {
        bump(&self.local.replays, 1);
    }

    /// Adds the counts of an executable.
    pub(super) fn ran(&self, stats: &Stats) {
        self.local.add(stats);
    }

    /// Counts a launch of a user's kernel on the device, or a call of one on the host.
    #[inline]
    pub fn launched(&self, reads: &[&Operand<'_>], writes: &[&Operand<'_>]) {
        self.ran_here();
        bump(&self.local.commands, 1);
        bump(&self.local.bytes_read, reads.iter().map(|t| distinct_bytes(t)).sum());
        bump(&self.local.bytes_written, writes.iter().map(|t| distinct_bytes(t)).sum());
    }

    /// Counts a graph operation that did not run on the device's own kernels.
    #[inline]
    pub fn count(&self, name: &'static str, dispatch: Dispatch) {
        self.ran.set(None);
        if let Some(own) = self.device.kernels.get().last() {
            own.counts.add(name, dispatch);
            executable::with(|recording| recording.count(own, name, dispatch));
        }
    }

    /// Counts a graph operation that ran on the device's own kernels. An operation without a command, such as a view,
    /// is not counted.
    #[inline]
    pub fn count_native(&self, name: &'static str) {
        if let Some(kernels) = self.ran.take() {
            kernels.counts.add(name, Dispatch::Native);
            executable::with(|recording| recording.count(kernels, name, Dispatch::Native));
        }
    }

    /// Counts a fused program of `n` operations. `names` are the operations that are counted by
    /// name.
    pub fn count_fused(&self, n: usize, names: impl Iterator<Item = &'static str>) {
        bump(&self.local.fused, 1);
        bump(&self.local.fused_operations, n as u64);
        executable::with(|recording| recording.count_fused(n));
        if let Some(kernels) = self.ran.take() {
            names.for_each(|name| {
                kernels.counts.add(name, Dispatch::Native);
                executable::with(|recording| recording.count(kernels, name, Dispatch::Native));
            });
        }
    }

    /// Runs one op of the contract. Does nothing if the outputs have size zero. An input of size zero must not come
    /// with a larger output.
    pub fn run<A: Copy>(
        &self,
        op: OpId,
        attributes: &A,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
        scalars: &[Scalar],
    ) -> Result<()> {
        if outputs.iter().all(|o| o.shape.contains(&0)) {
            return Ok(());
        }
        let plan = self.plan(op, attributes, inputs, outputs)?;
        if plan.status == status::NEEDS_CONTIGUOUS {
            let copies = inputs.iter().map(|i| self.contiguous(i)).collect::<Result<Vec<_>>>()?;
            let inputs: SmallVec<[Operand<'_>; 4]> = inputs
                .iter()
                .zip(&copies)
                .map(|(i, c)| Operand { value: c.as_ref().unwrap_or(i.value), ..*i })
                .collect();
            let plan = self.plan(op, attributes, &inputs, outputs)?;
            return self.submit(&plan, op_name(op), &inputs, outputs, scalars);
        }
        self.submit(&plan, op_name(op), inputs, outputs, scalars)
    }

    /// If determinism is required but not promised, refuses ops whose result may depend on the order of the work.
    #[inline]
    fn check_determinism(&self, op: OpId) -> Result<()> {
        if !self.deterministic.get() || self.device.is_deterministic() {
            return Ok(());
        }
        match schema::find(op).filter(|row| !row.order.is_empty()) {
            None => Ok(()),
            Some(row) => Err(self.not_deterministic(row.name, row.order)),
        }
    }

    #[cold]
    fn not_deterministic(&self, name: &str, why: &str) -> Error {
        let DeviceState { device, backend, .. } = self.device;
        let text = format!(
            "set_deterministic is on, but {device} (backend {backend}) does not promise bitwise identical results, \
             and those of {name} depend on {why}. Run it on another device, or set_deterministic(False)."
        );
        Error::runtime(self.op.get(), text)
    }

    /// Returns the plan for an op of the contract.
    pub fn plan<A: Copy>(
        &self,
        op: OpId,
        attributes: &A,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
    ) -> Result<Arc<Plan>> {
        let words = super::plan::words_of(attributes);
        let raw = attributes as *const A as *const c_void;
        // SAFETY: `raw` is the op's attribute struct; `words` holds its bytes.
        let plan = unsafe { self.device.plan(op, raw, &words, inputs, outputs) }?;
        if plan.status != status::UNSUPPORTED {
            self.check_determinism(op)?;
        }
        Ok(plan)
    }

    /// Runs a fused program, which may have an anchor. `key` is both in words. `Ok(false)`: the backend does not take
    /// this program.
    pub fn run_fused(
        &self,
        program: &Program,
        anchor: Option<&Anchor>,
        key: PlanKey,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
        scalars: &[Scalar],
    ) -> Result<bool> {
        if self.deterministic.get() && !self.device.is_deterministic() {
            // Run the operations one by one, so that the error names the one that is not deterministic.
            return Ok(false);
        }
        let plan = self.device.fused_plan(program, anchor, key, inputs, outputs)?;
        if plan.status != status::OK {
            if plan.status == status::NOT_YET {
                executable::with(|recording| recording.postpone());
            }
            return Ok(false);
        }
        self.submit(&plan, "fused", inputs, outputs, scalars)?;
        Ok(true)
    }

    /// Makes a row-major copy of an operand; `None` if the operand is row-major already.
    pub fn contiguous(&self, t: &Operand<'_>) -> Result<Option<Value>> {
        if shape::is_contiguous(t.shape, &t.value.strides) {
            return Ok(None);
        }
        bump(&self.local.contiguous_copies, 1);
        executable::with(|recording| recording.count_contiguous_copy());
        let copy = self.alloc(t.shape, t.dtype)?;
        self.copy(*t, Operand { value: &copy, ..*t })?;
        Ok(Some(copy))
    }

    /// Copies elements between any strides, and converts the dtype.
    #[inline]
    pub fn copy(&self, from: Operand<'_>, to: Operand<'_>) -> Result<()> {
        if from.dtype.is_storage() && from.dtype == to.dtype {
            return self.copy_bytes(from, to);
        }
        if self.copied_here(&from, &to) {
            return Ok(());
        }
        self.run(op::COPY, &schema::NoAttrs::new(), &[from], &[to], &[])
    }

    /// Copies a small contiguous block of the host directly, because a command takes longer. False if that is
    /// impossible.
    fn copied_here(&self, from: &Operand<'_>, to: &Operand<'_>) -> bool {
        let bytes = to.dtype.bytes_of(shape::size(to.shape));
        let plain = |t: &Operand<'_>| shape::is_contiguous(t.shape, &t.value.strides);
        let Some(own) = self.device.kernels.alone() else { return false };
        let here = (1..=COPIED_HERE).contains(&bytes)
            && self.device.is_host()
            && (from.dtype, from.shape) == (to.dtype, to.shape)
            && plain(from)
            && plain(to)
            && executable::recorded().is_none()
            && !self.is_profiled();
        if here {
            // SAFETY: the elements lie in the host's memory, and only this thread's task writes to those of `to`.
            unsafe { std::ptr::copy(from.value.data(), to.value.data(), bytes) };
            bump(&self.local.commands, 1);
            bump(&self.local.bytes_read, bytes as u64);
            bump(&self.local.bytes_written, bytes as u64);
            self.ran.set(Some(own));
        }
        here
    }

    /// Copies elements as bytes, if their dtype is unknown to backends.
    fn copy_bytes(&self, from: Operand<'_>, to: Operand<'_>) -> Result<()> {
        if !from.dtype.is_packed() {
            return self.copy(
                Operand { dtype: Dtype::Uint8, ..from },
                Operand { dtype: Dtype::Uint8, ..to },
            );
        }
        // Storage dtypes are always row-major without gaps.
        let line = [from.dtype.bytes_of(shape::size(from.shape))];
        let [source, target] = [from, to]
            .map(|t| Value { strides: shape::contiguous_strides(&line), ..t.value.clone() });
        let operand = |value| Operand { value, shape: &line, dtype: Dtype::Uint8 };
        self.copy(operand(&source), operand(&target))
    }

    /// Submits a command to the table that made its plan.
    pub fn submit(
        &self,
        plan: &Arc<Plan>,
        name: &str,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
        scalars: &[Scalar],
    ) -> Result<()> {
        if plan.status != status::OK {
            return Err(self.refuse(name));
        }
        let mut tensors = Tensors::new();
        for t in inputs.iter().chain(outputs) {
            tensors.push(tensor(plan.kernels, t));
        }
        if self.device.waits_in_commands() {
            for (tensor, t) in tensors.iter_mut().zip(inputs) {
                self.wait_in_command(tensor, &t.value.buffer);
            }
        }
        bump(&self.local.commands, 1);
        let bytes = moved_bytes(plan, inputs, outputs);
        bump(&self.local.bytes_read, bytes.0);
        bump(&self.local.bytes_written, bytes.1);
        let mut values: SmallVec<[[u64; 2]; 8]> = SmallVec::new();
        scalars.iter().for_each(|s| values.push([s.bits(), 0]));
        let command = Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan: plan.raw,
            inputs: tensors.as_ptr(),
            // SAFETY: the outputs follow the inputs in the list, so the pointer is inside the list
            // or at its end.
            outputs: unsafe { tensors.as_ptr().add(inputs.len()) },
            scalars: values.as_ptr(),
            n_inputs: inputs.len() as u32,
            n_outputs: outputs.len() as u32,
            n_scalars: values.len() as u32,
            tensor_stride: tensor_size(),
            workspace: std::ptr::null_mut(),
        };
        let workspace = self.workspace(plan, &command)?;
        let command = Command { workspace: scratch(workspace.as_ref()), ..command };
        let Some(submit) = plan.kernels.table.submit else {
            return Err(self.device.lacks("submit"));
        };
        self.ran.set(Some(plan.kernels));
        executable::with(|recording| {
            recording.command(plan, self.op.get(), (inputs, outputs), scalars, bytes);
        });
        let reads = inputs.iter().map(|t| &*t.value.buffer);
        let writes = outputs.iter().map(|t| &*t.value.buffer).chain(workspace.as_deref());
        self.give(reads, writes, |stream| {
            let mut error = std::ptr::null_mut();
            // SAFETY: the command and all it points at are valid for the call; tensors
            // have the dtypes and ranks that the plan was made for; this thread
            // holds the stream's lock.
            let code = unsafe { submit(plan.kernels.handle, stream, &command, 1, &mut error) };
            let outcome = host_table::check("submit", code, error);
            if is_refusal(code) {
                let message = outcome.err().map(|e| e.to_string()).unwrap_or_default();
                return Err(Error::runtime(
                    name,
                    format!(
                        "backend {} accepted an operation and then refused its command, which the \
                         contract forbids: {message}. Report it to the authors of the backend",
                        plan.kernels.backend
                    ),
                ));
            }
            outcome
        })
    }

    /// Makes a command wait for the work of another stream that writes its input.
    pub(super) fn wait_in_command(&self, tensor: &mut Tensor, buffer: &Buffer) {
        let Some(written) = buffer.written() else { return };
        let same = self.stream.is_some_and(|s| std::ptr::eq(s, written.stream));
        if !same && std::ptr::eq(written.stream.device, self.device) {
            // If this fails, the submission fails too.
            let _ = written.stream.ask(written.number);
            tensor.wait = written.stream.event();
            tensor.wait_value = written.number;
        }
    }

    /// Allocates scratch memory for a command, if its plan needs any.
    pub(super) fn workspace(&self, plan: &Plan, command: &Command) -> Result<Option<BufferRef>> {
        let bytes = self.workspace_bytes(plan, command);
        if bytes == 0 { Ok(None) } else { self.buffer(bytes as usize).map(Some) }
    }

    /// Returns the bytes of scratch memory that a plan needs for a command.
    pub(super) fn workspace_bytes(&self, plan: &Plan, command: &Command) -> u64 {
        let Some(ask) = plan.kernels.table.plan_workspace else { return 0 };
        // SAFETY: the plan is this table's; the command is valid for the call.
        unsafe { ask(plan.kernels.handle, plan.raw, command) }
    }
}

/// Returns the bytes that a command reads and writes. An update in its first input's memory touches only the update's
/// part.
fn moved_bytes(plan: &Plan, inputs: &[Operand<'_>], outputs: &[Operand<'_>]) -> (u64, u64) {
    let in_place =
        plan.updates && std::ptr::eq(&*inputs[0].value.buffer, &*outputs[0].value.buffer);
    let (read, written) = match inputs {
        [_, read @ ..] if in_place && let Some(update) = read.last() => {
            (read, (shape::size(update.shape) * update.dtype.size()) as u64)
        }
        _ => (inputs, outputs.iter().map(distinct_bytes).sum()),
    };
    (read.iter().map(distinct_bytes).sum(), written)
}

/// Returns scratch memory as a command names it: its address if the host has one, else its handle; NULL for none.
pub(super) fn scratch(buffer: Option<&BufferRef>) -> *mut c_void {
    let Some(buffer) = buffer else { return std::ptr::null_mut() };
    let pointer = buffer.as_ptr() as *mut c_void;
    if pointer.is_null() { buffer.handle() } else { pointer }
}

/// Returns the distance in bytes between two tensors of a command.
pub(super) fn tensor_size() -> u32 {
    size_of::<Tensor>() as u32
}

/// Makes a tensor in the contract's form.
pub(super) fn tensor(kernels: &Kernels, t: &Operand<'_>) -> Tensor {
    let buffer = &t.value.buffer;
    Tensor {
        size: size_of::<Tensor>() as u32,
        flags: 0,
        dl: DLTensor {
            data: buffer.as_ptr() as *mut c_void,
            device: DLDevice { device_type: kernels.table.device_type, device_id: kernels.ordinal },
            ndim: t.shape.len() as i32,
            dtype: t.dtype.to_dl(),
            // `usize` and `isize` have 64 bits on all supported targets.
            shape: t.shape.as_ptr() as *mut i64,
            strides: t.value.strides.as_ptr() as *mut i64,
            byte_offset: t.value.offset as u64,
        },
        buffer: buffer.handle(),
        buffer_size: buffer.bytes() as u64,
        wait: std::ptr::null_mut(),
        wait_value: 0,
    }
}

fn op_name(op: OpId) -> &'static str {
    op::NAMES.get(op as usize).copied().unwrap_or("unknown")
}

/// Returns the bytes of the distinct elements of a tensor: broadcast elements count once.
fn distinct_bytes(t: &Operand<'_>) -> u64 {
    let n: usize =
        t.shape.iter().zip(&t.value.strides).filter(|(_, s)| **s != 0).map(|(n, _)| *n).product();
    (n * t.dtype.size()) as u64
}

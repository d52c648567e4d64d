//! Calls of a backend: tensors for the boundary, submits, copies between devices,
//! and the counts of all that.

use super::{DeviceState, Plan, PlanKey, counts::Way, host, is_refusal, kernels::Kernels};
use crate::{
    device::Device,
    dtype::Dtype,
    error::{Error, Result},
    memory::buffer::Buffer,
    node::Value,
    scalar::Scalar,
    shape::{self, Strides},
    stream::Stream,
};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ultramarine_abi::{
    self as abi, Command, Tensor,
    dlpack::{DLDevice, DLTensor},
    fused::Program,
    schema::{self, OpId, op},
    status,
};

macro_rules! counters {
    ($($(#[$m:meta])* $name:ident,)*) => {
        /// Counts of what the evaluator did, in the whole process.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[$m])* pub $name: u64,)* }

        #[derive(Default)]
        struct Totals { $($name: AtomicU64,)* }

        #[derive(Default)]
        struct Local { $($name: Cell<u64>,)* }

        static TOTALS: Totals = Totals { $($name: AtomicU64::new(0),)* };

        /// The counts since the start or the last [`reset_stats`].
        pub fn stats() -> Stats {
            Stats { $($name: TOTALS.$name.load(Ordering::Relaxed),)* }
        }

        /// Sets every count to zero.
        pub fn reset_stats() {
            $(TOTALS.$name.store(0, Ordering::Relaxed);)*
        }

        impl Drop for Local {
            fn drop(&mut self) {
                $(if self.$name.get() > 0 {
                    TOTALS.$name.fetch_add(self.$name.get(), Ordering::Relaxed);
                })*
            }
        }
    };
}

counters! {
    /// Commands given to backends.
    commands,
    /// Fused programs among them.
    fused,
    /// Graph operations inside fused programs.
    fused_operations,
    /// Bytes of distinct elements that commands read.
    bytes_read,
    /// Bytes that commands wrote.
    bytes_written,
    /// Outputs that took over an input's memory.
    donations,
    /// Copies made because a backend needs contiguous inputs.
    contiguous_copies,
    /// Buffers copied between devices.
    mirrors,
}

fn bump(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get() + by);
}

/// A tensor of a call.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub value: &'a Value,
    pub shape: &'a [usize],
    pub dtype: Dtype,
}

/// The device and stream that a job runs on.
pub(crate) struct Exec {
    pub device: &'static DeviceState,
    stream: *mut c_void,
    /// Memory that submitted commands of a device that runs ahead still use, be it only
    /// a temporary of an op: nothing of it is freed before the device has passed it.
    in_flight: RefCell<Vec<Arc<Buffer>>>,
    /// The table that took the last command, until it is counted.
    ran: Cell<Option<&'static Kernels>>,
    /// The last error means that no table has a kernel. Operands are as they were.
    refused: Cell<bool>,
    local: Local,
}

impl Drop for Exec {
    fn drop(&mut self) {
        // After an error; otherwise tasks have settled.
        let _ = self.settle();
    }
}

type Tensors = SmallVec<[Tensor; 8]>;

impl Exec {
    pub fn new(device: &'static DeviceState, stream: Stream) -> Result<Self> {
        let stream = device.stream(stream)?;
        Ok(Exec {
            device,
            stream,
            in_flight: RefCell::default(),
            ran: Cell::new(None),
            refused: Cell::new(false),
            local: Local::default(),
        })
    }

    /// Waits until the device has done what was submitted, and lets go of the memory
    /// that it used.
    pub fn settle(&self) -> Result<()> {
        if self.in_flight.borrow().is_empty() {
            return Ok(());
        }
        let Some(wait) = self.device.table.stream_synchronize else {
            return Err(self.device.lacks("stream_synchronize"));
        };
        let mut error = std::ptr::null_mut();
        // SAFETY: the stream is the device's.
        let code = unsafe { wait(self.device.handle, self.stream, &mut error) };
        // If that failed the device may still write: what it uses is leaked, not freed.
        let held = self.in_flight.take();
        if code != status::OK {
            std::mem::forget(held);
        }
        host::check("stream_synchronize", code, error)
    }

    /// Keeps what a command uses until the device has passed it.
    fn hold<'a>(&self, buffers: impl Iterator<Item = &'a Arc<Buffer>>) {
        if self.device.info.synchronous == 0 {
            self.in_flight.borrow_mut().extend(buffers.cloned());
        }
    }

    /// Memory for a row-major output.
    pub fn alloc(&self, shape: &[usize], dtype: Dtype) -> Result<Value> {
        let bytes = shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
        let bytes = bytes.ok_or_else(|| {
            Error::Memory(format!("no memory for an array of shape {}", shape::Show(shape)))
        })?;
        let buffer = Buffer::new(bytes, self.device)?;
        Ok(Value { buffer, offset: 0, strides: shape::contiguous_strides(shape) })
    }

    /// Takes over an operand's memory for an output. The caller has made sure that
    /// nobody else needs the operand.
    pub fn donate(&self, operand: &Value) -> Value {
        bump(&self.local.donations, 1);
        operand.buffer.drop_mirrors();
        operand.clone()
    }

    /// Whether the last error was a refusal: another way may be tried, with the same
    /// operands.
    pub fn take_refusal(&self) -> bool {
        self.refused.take()
    }

    /// Counts a graph operation that ran in another way than by the device's kernels.
    pub fn count(&self, name: &'static str, way: Way) {
        self.ran.set(None);
        if let Some(own) = self.device.kernels.get().last() {
            own.counts.add(name, way);
        }
    }

    /// Counts a graph operation that ran by the device's own kernels. (One that gave no
    /// command, such as a view, is not counted.)
    pub fn count_native(&self, name: &'static str) {
        if let Some(kernels) = self.ran.take() {
            kernels.counts.add(name, Way::Native);
        }
    }

    /// Counts a fused program of `n` operations, and those of them that are counted by name.
    pub fn count_fused(&self, n: usize, names: impl Iterator<Item = &'static str>) {
        bump(&self.local.fused, 1);
        bump(&self.local.fused_operations, n as u64);
        if let Some(kernels) = self.ran.take() {
            names.for_each(|name| kernels.counts.add(name, Way::Native));
        }
    }

    /// Runs one op of the contract. Outputs of size zero are left alone; an input of
    /// size zero must not come with an output that is larger.
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
        let mut words = SmallVec::<[u64; 8]>::new();
        // SAFETY: attribute structs are plain integers without padding that matters:
        // `new` builds them whole, and the key only needs equal bytes for equal plans.
        let bytes = unsafe {
            std::slice::from_raw_parts(attributes as *const A as *const u8, size_of::<A>())
        };
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            words.push(u64::from_le_bytes(word));
        }
        let raw = attributes as *const A as *const c_void;
        // SAFETY: `raw` is the op's attribute struct; `words` holds its bytes.
        let plan = unsafe { self.device.plan(op, raw, &words, inputs, outputs) }?;
        if plan.status == status::NEEDS_CONTIGUOUS {
            let copies = inputs.iter().map(|i| self.contiguous(i)).collect::<Result<Vec<_>>>()?;
            let inputs: SmallVec<[Operand<'_>; 4]> = inputs
                .iter()
                .zip(&copies)
                .map(|(i, c)| Operand { value: c.as_ref().unwrap_or(i.value), ..*i })
                .collect();
            // SAFETY: as above.
            let plan = unsafe { self.device.plan(op, raw, &words, &inputs, outputs) }?;
            return self.submit(&plan, op_name(op), &inputs, outputs, scalars);
        }
        self.submit(&plan, op_name(op), inputs, outputs, scalars)
    }

    /// Runs a fused program. `key` is the program in words. `Ok(false)`: the backend
    /// does not take this program.
    pub fn run_fused(
        &self,
        program: &Program,
        key: PlanKey,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
        scalars: &[Scalar],
    ) -> Result<bool> {
        let plan = self.device.fused_plan(program, key, inputs, outputs)?;
        if plan.status != status::OK {
            return Ok(false);
        }
        self.submit(&plan, "fused", inputs, outputs, scalars)?;
        Ok(true)
    }

    /// A row-major copy of an operand that is not one.
    fn contiguous(&self, t: &Operand<'_>) -> Result<Option<Value>> {
        if shape::is_contiguous(t.shape, &t.value.strides) {
            return Ok(None);
        }
        bump(&self.local.contiguous_copies, 1);
        let copy = self.alloc(t.shape, t.dtype)?;
        self.copy(*t, Operand { value: &copy, ..*t })?;
        Ok(Some(copy))
    }

    /// Copies elements between any strides, converting the dtype.
    pub fn copy(&self, from: Operand<'_>, to: Operand<'_>) -> Result<()> {
        self.run(op::COPY, &schema::NoAttrs::new(), &[from], &[to], &[])
    }

    fn submit(
        &self,
        plan: &Plan,
        name: &str,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
        scalars: &[Scalar],
    ) -> Result<()> {
        if plan.status != status::OK {
            self.refused.set(true);
            return Err(Error::runtime(
                name,
                format!("backend {} has no kernel for this.", plan.kernels.backend),
            ));
        }
        let mut tensors = Tensors::new();
        for t in inputs.iter().chain(outputs) {
            tensors.push(tensor(plan.kernels, t));
        }
        self.hold(inputs.iter().chain(outputs).map(|t| &t.value.buffer));
        bump(&self.local.commands, 1);
        bump(&self.local.bytes_read, inputs.iter().map(distinct_bytes).sum());
        bump(&self.local.bytes_written, outputs.iter().map(distinct_bytes).sum());
        let mut values: SmallVec<[[u64; 2]; 8]> = SmallVec::new();
        values.extend(scalars.iter().map(|s| [s.bits(), 0]));
        let command = Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan: plan.raw,
            inputs: tensors.as_ptr(),
            // SAFETY: one past the inputs is inside the list or its end.
            outputs: unsafe { tensors.as_ptr().add(inputs.len()) },
            scalars: values.as_ptr(),
            n_inputs: inputs.len() as u32,
            n_outputs: outputs.len() as u32,
            n_scalars: values.len() as u32,
            tensor_stride: size_of::<Tensor>() as u32,
            workspace: std::ptr::null_mut(),
        };
        let workspace = self.workspace(plan, &command)?;
        self.hold(workspace.iter());
        let command = Command {
            workspace: workspace
                .as_ref()
                .map_or(std::ptr::null_mut(), |b| b.as_ptr() as *mut c_void),
            ..command
        };
        let Some(submit) = plan.kernels.table.submit else {
            return Err(self.device.lacks("submit"));
        };
        let mut error = std::ptr::null_mut();
        // SAFETY: the command and all it points at are valid for the call; tensors
        // have the dtypes and ranks that the plan was made for; one job at a time
        // runs on a stream.
        let code = unsafe { submit(plan.kernels.handle, self.stream, &command, 1, &mut error) };
        self.ran.set(Some(plan.kernels));
        let outcome = host::check("submit", code, error);
        if is_refusal(code) {
            let words = outcome.err().map(|e| e.to_string()).unwrap_or_default();
            return Err(Error::runtime(
                name,
                format!(
                    "backend {} made a plan and then refused its command, which the contract \
                     forbids: {words}",
                    plan.kernels.backend
                ),
            ));
        }
        outcome
    }

    fn workspace(&self, plan: &Plan, command: &Command) -> Result<Option<Arc<Buffer>>> {
        let Some(ask) = plan.kernels.table.plan_workspace else { return Ok(None) };
        // SAFETY: the plan is this table's; the command is valid for the call.
        let bytes = unsafe { ask(plan.kernels.handle, plan.raw, command) };
        if bytes == 0 { Ok(None) } else { Buffer::new(bytes as usize, self.device).map(Some) }
    }
}

/// A tensor as it crosses the boundary.
fn tensor(kernels: &Kernels, t: &Operand<'_>) -> Tensor {
    let buffer = &t.value.buffer;
    Tensor {
        size: size_of::<Tensor>() as u32,
        flags: 0,
        dl: DLTensor {
            data: buffer.as_ptr() as *mut c_void,
            device: DLDevice { device_type: kernels.table.device_type, device_id: kernels.ordinal },
            ndim: t.shape.len() as i32,
            dtype: t.dtype.to_dl(),
            // usize and isize are 64 bits wide on every target that is supported.
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

/// Bytes of the elements that a tensor really has: broadcast ones count once.
fn distinct_bytes(t: &Operand<'_>) -> u64 {
    let n: usize =
        t.shape.iter().zip(&t.value.strides).filter(|(_, s)| **s != 0).map(|(n, _)| *n).product();
    (n * t.dtype.size()) as u64
}

/// The value on `device`: itself, or a mirror of its buffer there.
pub(super) fn on_device(value: &Value, device: &'static DeviceState) -> Result<Value> {
    if value.buffer.device() == device.device {
        return Ok(value.clone());
    }
    let buffer = value.buffer.mirror(device.device, || copy_buffer(&value.buffer, device))?;
    Ok(Value { buffer, offset: value.offset, strides: Strides::from_slice(&value.strides) })
}

impl Exec {
    /// An operand in host memory, to be looked at.
    pub fn on_host(&self, value: &Value) -> Result<Value> {
        on_device(value, super::host())
    }

    /// An input as this device can read it. Two different GPUs do not mix silently.
    pub fn local(&self, value: &Value) -> Result<Value> {
        let from = value.buffer.device();
        let to = self.device.device;
        if from != to && from != Device::CPU && to != Device::CPU {
            return Err(Error::Value(format!(
                "arrays on {from} and {to} do not mix; copy one with copy(x, device)."
            )));
        }
        on_device(value, self.device)
    }
}

/// A whole buffer's bytes on another device, by way of the host.
fn copy_buffer(from: &Buffer, device: &'static DeviceState) -> Result<Arc<Buffer>> {
    TOTALS.mirrors.fetch_add(1, Ordering::Relaxed);
    let bytes = from.bytes();
    let to = Buffer::new(bytes, device)?;
    if bytes == 0 {
        return Ok(to);
    }
    let mut error: *mut abi::Error = std::ptr::null_mut();
    let source = super::get(from.device())?;
    let code = if device.is_host() {
        let Some(f) = source.table.copy_to_host else { return Err(source.lacks("copy_to_host")) };
        let target = to.as_ptr() as *mut c_void;
        // SAFETY: both blocks have `bytes` bytes; the handle is the source device's.
        unsafe {
            f(
                source.handle,
                std::ptr::null_mut(),
                from.handle(),
                0,
                target,
                bytes as u64,
                &mut error,
            )
        }
    } else {
        let Some(f) = device.table.copy_to_device else {
            return Err(device.lacks("copy_to_device"));
        };
        let data = from.as_ptr() as *const c_void;
        // SAFETY: `from` is host memory (checked by `Exec::local`); sizes are equal.
        unsafe {
            f(device.handle, std::ptr::null_mut(), to.handle(), 0, data, bytes as u64, &mut error)
        }
    };
    host::check("copy", code, error)?;
    Ok(to)
}

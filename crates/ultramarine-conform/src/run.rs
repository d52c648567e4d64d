//! Running one op: from the request with its tensors to the resulting values.

use crate::device::{Buffer, Device, Handle, Prepared, desc, empty_command};
use crate::dtype::Num;
use crate::plugin::Failure;
use crate::record::{note, note_named};
use crate::tensor::Placed;
use std::ptr::null_mut;
use ultramarine_abi::dlpack::{DLDevice, DLTensor};
use ultramarine_abi::schema::{self, OpId};
use ultramarine_abi::{Command, Tensor, layout};

/// An op, and the tensors of one command.
#[derive(Clone, Debug)]
pub struct Request {
    pub op: OpId,
    /// The op's attribute struct.
    pub attributes: Vec<u64>,
    pub inputs: Vec<Placed>,
    pub output: Placed,
    /// All outputs except the first.
    pub more: Vec<Placed>,
    pub scalars: Vec<[u64; 2]>,
    /// The input whose buffer the output takes over. It has the same layout as the output.
    pub donated: Option<usize>,
}

impl Request {
    /// All outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &Placed> {
        std::iter::once(&self.output).chain(&self.more)
    }

    /// The operation with dtypes, shapes and strides, to name a call.
    fn describe(&self) -> String {
        let tensor = |t: &Placed| {
            let strides = match t.class {
                layout::CONTIGUOUS => String::new(),
                _ => format!(" with strides {:?}", t.strides),
            };
            format!("{} {:?}{strides}", t.dtype.name(), t.shape)
        };
        let all = |tensors: &mut dyn Iterator<Item = &Placed>| {
            tensors.map(tensor).collect::<Vec<_>>().join(", ")
        };
        let (inputs, outputs) = (all(&mut self.inputs.iter()), all(&mut self.outputs()));
        let name = schema::find(self.op).map_or("unknown", |row| row.name);
        format!("{name} of ({inputs}) to ({outputs})")
    }
}

/// A backend's answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Values(Vec<Num>),
    Unsupported,
    NeedsContiguous,
}

/// A tensor of a command: its arrays have to outlive the call.
pub fn tensor(device: &Device<'_>, placed: &Placed, buffer: Buffer) -> Tensor {
    Tensor {
        size: size_of::<Tensor>() as u32,
        flags: 0,
        dl: DLTensor {
            data: device.host_pointer(buffer),
            device: DLDevice {
                device_type: device.backend.table.device_type,
                device_id: device.index as i32,
            },
            ndim: placed.shape.len() as i32,
            dtype: placed.dtype.dl(),
            shape: placed.shape.as_ptr() as *mut i64,
            strides: placed.strides.as_ptr() as *mut i64,
            byte_offset: placed.offset,
        },
        buffer: if device.overlay { null_mut() } else { buffer.handle.0 },
        buffer_size: buffer.bytes,
        wait: null_mut(),
        wait_value: 0,
    }
}

/// Buffers that are freed when this is dropped, also after a failure.
pub struct Buffers<'a> {
    device: &'a Device<'a>,
    all: Vec<Buffer>,
}

impl<'a> Buffers<'a> {
    pub fn new(device: &'a Device<'a>) -> Self {
        Buffers { device, all: Vec::new() }
    }

    pub fn alloc(&mut self, bytes: u64) -> Result<Buffer, Failure> {
        let buffer = self.device.alloc(bytes)?;
        self.all.push(buffer);
        Ok(buffer)
    }

    /// Makes a buffer with an array's bytes.
    pub fn upload(&mut self, stream: Handle, placed: &Placed) -> Result<Buffer, Failure> {
        let buffer = self.alloc(placed.bytes.len() as u64)?;
        self.device.write(stream, buffer, 0, &placed.bytes)?;
        Ok(buffer)
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        for buffer in self.all.drain(..) {
            self.device.free(buffer);
        }
    }
}

/// Asks for the plan of a request.
pub fn prepare(device: &Device<'_>, request: &Request) -> Result<Prepared, Failure> {
    let inputs: Vec<_> =
        request.inputs.iter().map(|t| desc(t.dtype, t.shape.len(), t.class)).collect();
    let outputs: Vec<_> =
        request.outputs().map(|t| desc(t.dtype, t.shape.len(), t.class)).collect();
    note(|| format!("prepare, {}", request.describe()));
    device.prepare(request.op, &request.attributes, &inputs, &outputs)
}

/// Prepares, submits and reads back.
pub fn run(device: &Device<'_>, stream: Handle, request: &Request) -> Result<Answer, String> {
    let plan = match prepare(device, request)? {
        Prepared::Plan(plan) => plan,
        Prepared::Unsupported => return Ok(Answer::Unsupported),
        Prepared::NeedsContiguous => {
            if request.inputs.iter().all(|t| t.class == layout::CONTIGUOUS) {
                return Err("NEEDS_CONTIGUOUS for inputs that are contiguous".into());
            }
            return Ok(Answer::NeedsContiguous);
        }
    };
    let values = submit(device, stream, plan, request);
    device.release(plan);
    values.map(Answer::Values)
}

/// Runs a plan on a request's tensors and reads the first output.
pub fn submit(
    device: &Device<'_>,
    stream: Handle,
    plan: Handle,
    request: &Request,
) -> Result<Vec<Num>, String> {
    submit_all(device, stream, plan, request).map(|mut all| all.swap_remove(0))
}

/// Runs a plan on a request's tensors and reads all outputs.
pub fn submit_all(
    device: &Device<'_>,
    stream: Handle,
    plan: Handle,
    request: &Request,
) -> Result<Vec<Vec<Num>>, String> {
    submit_into(device, stream, plan, request, false)
}

/// As [`submit_all`], with the last output in the memory of the first input.
pub fn submit_in_place(
    device: &Device<'_>,
    stream: Handle,
    plan: Handle,
    request: &Request,
) -> Result<Vec<Vec<Num>>, String> {
    submit_into(device, stream, plan, request, true)
}

/// Makes a command that runs a plan on a request's tensors, without a workspace. It points to the
/// tensors and to the request's scalars.
pub fn bare_command(
    plan: Handle,
    request: &Request,
    (inputs, outputs): (&[Tensor], &[Tensor]),
) -> Command {
    Command {
        inputs: inputs.as_ptr(),
        n_inputs: inputs.len() as u32,
        outputs: outputs.as_ptr(),
        n_outputs: outputs.len() as u32,
        scalars: request.scalars.as_ptr(),
        n_scalars: request.scalars.len() as u32,
        ..empty_command(plan)
    }
}

/// Like [`bare_command`], with a workspace from `buffers`.
pub fn command(
    buffers: &mut Buffers<'_>,
    plan: Handle,
    request: &Request,
    tensors: (&[Tensor], &[Tensor]),
) -> Result<Command, Failure> {
    let mut command = bare_command(plan, request, tensors);
    let workspace = buffers.device.workspace(plan, &command);
    if workspace > 0 {
        let buffer = buffers.alloc(workspace)?;
        let address = buffers.device.host_pointer(buffer);
        command.workspace = if address.is_null() { buffer.handle.0 } else { address };
    }
    Ok(command)
}

fn submit_into(
    device: &Device<'_>,
    stream: Handle,
    plan: Handle,
    request: &Request,
    in_place: bool,
) -> Result<Vec<Vec<Num>>, String> {
    let mut buffers = Buffers::new(device);
    let mut given = Vec::new();
    for input in &request.inputs {
        given.push(buffers.upload(stream, input)?);
    }
    let mut targets = Vec::new();
    match request.donated.and_then(|d| given.get(d)) {
        Some(donated) => targets.push(*donated),
        None => targets.push(buffers.upload(stream, &request.output)?),
    }
    for output in &request.more {
        targets.push(buffers.upload(stream, output)?);
    }
    if let (true, Some(last)) = (in_place, targets.last_mut()) {
        *last = given[0];
    }
    let inputs: Vec<Tensor> =
        request.inputs.iter().zip(&given).map(|(t, b)| tensor(device, t, *b)).collect();
    let outputs: Vec<Tensor> =
        request.outputs().zip(&targets).map(|(t, b)| tensor(device, t, *b)).collect();
    let command = command(&mut buffers, plan, request, (&inputs, &outputs))?;
    note_named(|| format!("submit, {}", request.describe()));
    let submitted = device.submit(stream, &[command]);
    // Wait even after a failure, because work may still be running.
    let finished = device.synchronize(stream);
    submitted.map_err(|f| format!("a plan was made, but {f}"))?;
    finished?;

    let mut values = Vec::new();
    for (output, target) in request.outputs().zip(targets) {
        let mut bytes = vec![0; output.bytes.len()];
        device.read(stream, target, 0, &mut bytes)?;
        ensure!(!output.is_spilled(&bytes), "bytes outside the output were written");
        values.push(output.load(&bytes));
    }
    for (i, (input, buffer)) in request.inputs.iter().zip(&given).enumerate() {
        if request.donated == Some(i) || (in_place && i == 0) {
            continue;
        }
        let mut after = vec![0; input.bytes.len()];
        device.read(stream, *buffer, 0, &mut after)?;
        ensure!(after == input.bytes, "input {i} was written to");
    }
    Ok(values)
}

//! Structs of a later version: a backend of this version has to skip longer descriptions, tensors
//! and commands by their sizes.

use crate::device::{Device, Handle, desc, words};
use crate::dtype::{DType, Num};
use crate::plugin::{Failure, call};
use crate::record::{PASSED, Result, skip};
use crate::run::{Buffers, tensor};
use crate::tensor::{Array, Layout, Placed};
use ultramarine_abi::schema::{BinaryAttrs, binary, op};
use ultramarine_abi::{Command, Tensor, TensorDesc, layout, status};

/// A struct with fields that this version does not know.
#[repr(C)]
#[derive(Clone, Copy)]
struct Longer<T> {
    known: T,
    more: [u64; 2],
}

impl<T> Longer<T> {
    const SIZE: u32 = size_of::<Self>() as u32;

    fn new(known: T) -> Self {
        Longer { known, more: [u64::MAX; 2] }
    }
}

/// Computes a difference of float32, with longer structs in all calls.
pub fn structs(device: &Device<'_>) -> Result {
    let Some(plan) = plan(device)? else { return skip("no native difference of float32") };
    let result = difference(device, plan);
    device.release(plan);
    result
}

fn plan(device: &Device<'_>) -> Result<Option<Handle>, Failure> {
    let Some(prepare) = device.backend.table.prepare else { return Ok(None) };
    let mut longer = Longer::new(desc(DType::F32, 1, layout::CONTIGUOUS));
    longer.known.size = Longer::<TensorDesc>::SIZE;
    let inputs = [longer; 2];
    let attributes = words(&BinaryAttrs::new(binary::SUBTRACT));
    let mut plan = std::ptr::null_mut();
    let (first, output) = (inputs.as_ptr().cast(), (&raw const longer).cast());
    let attributes = attributes.as_ptr().cast();
    // SAFETY: two descriptions and one, each of the size that it says.
    let made = call("prepare", |e| unsafe {
        prepare(device.handle, op::BINARY, 1, attributes, first, 2, output, 1, &mut plan, e)
    });
    match made {
        Ok(()) => Ok(Some(Handle(plan))),
        Err(f) if f.code == status::UNSUPPORTED => Ok(None),
        Err(f) => Err(f),
    }
}

fn difference(device: &Device<'_>, plan: Handle) -> Result {
    let stream = device.stream()?;
    let mut buffers = Buffers::new(device);
    let values = |from: i128| (0..9).map(|i| Num::Int(from * (i + 1))).collect::<Vec<_>>();
    let mut given = Vec::new();
    for from in [10, 1] {
        let mut array = Array::cycle(DType::F32, &[9], &values(from));
        let placed = Placed::new(&mut array, Layout::Contiguous);
        let buffer = buffers.upload(stream, &placed)?;
        given.push((placed, buffer));
    }
    let output = Placed::output(DType::F32, &[9], Layout::Contiguous);
    let target = buffers.upload(stream, &output)?;
    let longer = |placed: &Placed, buffer| {
        let mut longer = Longer::new(tensor(device, placed, buffer));
        longer.known.size = Longer::<Tensor>::SIZE;
        longer
    };
    let inputs = [longer(&given[0].0, given[0].1), longer(&given[1].0, given[1].1)];
    let outputs = [longer(&output, target)];
    let command = Longer::new(Command {
        size: Longer::<Command>::SIZE,
        inputs: inputs.as_ptr().cast(),
        n_inputs: 2,
        outputs: outputs.as_ptr().cast(),
        n_outputs: 1,
        tensor_stride: Longer::<Tensor>::SIZE,
        ..crate::device::empty_command(plan)
    });
    let submit = device.backend.table.submit.ok_or("no submit")?;
    let at = (&raw const command).cast();
    // SAFETY: one command of the size that it says; its tensors lie as far apart as it says.
    call("submit", |e| unsafe { submit(device.handle, stream.0, at, 1, e) })?;
    device.synchronize(stream)?;
    let mut bytes = vec![0; output.bytes.len()];
    device.read(stream, target, 0, &mut bytes)?;
    drop(buffers);
    device.destroy_stream(stream);
    let got = output.load(&bytes);
    if got.iter().zip(1..).all(|(x, i)| x.real() == f64::from(9 * i)) {
        PASSED
    } else {
        Err(format!(
            "longer structs: the result is {:?}",
            got.iter().map(|x| x.real()).collect::<Vec<_>>()
        ))
    }
}

//! A replay of each operation is bitwise identical to its submit, whatever memory its tensors have.

use super::recording::{At, Piece, Recording, Sizes, Step};
use super::{is_refusal, offered};
use crate::cases;
use crate::device::{Device, Handle, Prepared};
use crate::dtype::{DType, Num};
use crate::groups::{op_name, ops};
use crate::record::{PASSED, Result, skip};
use crate::run::{self, Buffers, Request, tensor};
use ultramarine_abi::{Tensor, schema};

/// Cases of each operation.
const CASES: usize = 3;

pub fn run(device: &Device<'_>) -> Result {
    let Some(interface) = offered(device) else { return skip("not offered") };
    let mut scope = ops::scope(device, false);
    // Of few dtypes: cases of all of them take longer to make than to run.
    let few = DType::all().filter(|d| ["bool", "int32", "uint32", "float32"].contains(&d.name()));
    scope.storage &= few.map(|d| 1 << d.0).sum::<u32>();
    let stream = device.stream()?;
    for name in schema::op::NAMES {
        let Some(op) = schema::find_name(name) else { continue };
        let Some(all) = cases::of(op, &scope) else { continue };
        let float = all.iter().find(|o| o.dtype.name() == "float32").or(all.first());
        let Some(under_test) = float else { continue };
        let step = under_test.cases.len().div_ceil(CASES).max(1);
        for case in under_test.cases.iter().step_by(step) {
            one(device, stream, interface, &case.request)
                .map_err(|e| format!("{}, {}: {e}", op_name(under_test.family), case.what))?;
        }
    }
    device.destroy_stream(stream);
    PASSED
}

fn one(
    device: &Device<'_>,
    stream: Handle,
    interface: ultramarine_abi::interface::replay::ReplayInterface,
    request: &Request,
) -> Result<()> {
    let Prepared::Plan(plan) = run::prepare(device, request)? else { return Ok(()) };
    let done = with_plan(device, stream, interface, request, plan);
    let drained = device.synchronize(stream);
    device.release(plan);
    done.and(drained.map_err(String::from))
}

fn with_plan(
    device: &Device<'_>,
    stream: Handle,
    interface: ultramarine_abi::interface::replay::ReplayInterface,
    request: &Request,
    plan: Handle,
) -> Result<()> {
    if request.donated.is_some() {
        return Ok(());
    }
    let expected = run::submit_all(device, stream, plan, request)?;
    let arena = workspace(device, request, plan)?;
    let (mut pieces, mut slot) = (Vec::new(), 0);
    for placed in request.inputs.iter().chain(request.outputs()) {
        pieces.push(Piece(placed, At::Slot(slot), 0));
        slot += 1;
    }
    let outputs = pieces.split_off(request.inputs.len());
    let step = Step {
        plan: Some(plan),
        inputs: pieces,
        outputs,
        scalars: request.scalars.iter().map(|s| (*s, None)).collect(),
        workspace: (arena > 0).then_some(0),
    };
    let sizes = Sizes { slots: slot, scalars: 0, arena };
    let recording = match Recording::new(device, interface, &[step], sizes) {
        Err(failure) if is_refusal(&failure) => return Ok(()),
        recording => recording?,
    };
    let mut buffers = Buffers::new(device);
    for round in 0..3u64 {
        // In other buffers, at the same offset or at another one.
        let offset = 256 * (round / 2);
        let mut slots = Vec::new();
        for placed in request.inputs.iter().chain(request.outputs()) {
            let buffer = buffers.alloc(placed.bytes.len() as u64 + offset)?;
            device.write(stream, buffer, offset, &placed.bytes)?;
            slots.push((buffer, offset));
        }
        match recording.replay(stream, &slots, &[]) {
            Err(failure) if is_refusal(&failure) => continue,
            done => done?,
        }
        device.synchronize(stream)?;
        let results = request.outputs().zip(&slots[request.inputs.len()..]);
        for (i, ((placed, (buffer, offset)), expected)) in results.zip(&expected).enumerate() {
            let mut bytes = vec![0; placed.bytes.len()];
            device.read(stream, *buffer, *offset, &mut bytes)?;
            ensure!(!placed.is_spilled(&bytes), "bytes outside output {i} were written");
            let (got, expected) = (placed.load(&bytes), expected);
            let bits = |values: &[Num]| {
                let mut bytes = Vec::new();
                values.iter().for_each(|v| placed.dtype.write(*v, &mut bytes));
                bytes
            };
            ensure!(
                bits(&got) == bits(expected),
                "output {i} of replay {round} is not what submit gave"
            );
        }
    }
    Ok(())
}

/// Bytes of workspace that a command wants.
fn workspace(device: &Device<'_>, request: &Request, plan: Handle) -> Result<u64> {
    let mut buffers = Buffers::new(device);
    let mut place = |placed: &crate::tensor::Placed| -> Result<Tensor> {
        let buffer = buffers.alloc(placed.bytes.len() as u64)?;
        Ok(tensor(device, placed, buffer))
    };
    let inputs = request.inputs.iter().map(&mut place).collect::<Result<Vec<_>>>()?;
    let outputs = request.outputs().map(&mut place).collect::<Result<Vec<_>>>()?;
    let command = run::bare_command(plan, request, (&inputs, &outputs));
    Ok(device.workspace(plan, &command))
}

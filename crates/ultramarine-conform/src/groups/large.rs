//! Tensors of more than 2^31 elements; only with `--large`.

use super::with_device;
use crate::cases::none;
use crate::device::{Buffer, Device, Handle, Prepared, desc, empty_command};
use crate::dtype::DType;
use crate::options::Options;
use crate::plugin::Source;
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::{Buffers, tensor};
use crate::tensor::Placed;
use ultramarine_abi::schema::{OpId, op};
use ultramarine_abi::{Command, layout, status};

/// More than a signed 32-bit number of elements, in rows of an odd length.
const SHAPE: [i64; 2] = [65_537, 32_771];

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "large", |recorder, device| {
        recorder.check("large/fill and copy", || fill_and_copy(device));
    });
}

fn fill_and_copy(device: &Device<'_>) -> Result {
    let n = (SHAPE[0] * SHAPE[1]) as u64;
    if device.info.max_buffer != 0 && device.info.max_buffer < n {
        return skip("buffers are smaller than that");
    }
    let mut buffers = Buffers::new(device);
    let (from, to) = match (buffers.alloc(n), buffers.alloc(n)) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(f), _) | (_, Err(f)) if f.code == status::OUT_OF_MEMORY => {
            return skip("not enough memory");
        }
        (Err(f), _) | (_, Err(f)) => return Err(f.to_string()),
    };
    let placed = Placed {
        dtype: DType::U8,
        shape: SHAPE.to_vec(),
        strides: vec![SHAPE[1], 1],
        offset: 0,
        bytes: Vec::new(),
        class: layout::CONTIGUOUS,
    };
    let stream = device.stream()?;
    let one = |id, input, output, scalar: Option<[u64; 2]>| {
        command(device, stream, id, &placed, input, output, scalar)
    };
    if !one(op::FILL, None, from, Some([171, 0]))? {
        return skip("no native fill of uint8");
    }
    let last = n - 3;
    device.write(stream, from, last, &[1, 2, 3])?;
    device.write(stream, from, 1 << 31, &[9])?;
    if !one(op::COPY, Some(from), to, None)? {
        return skip("no native copy of uint8");
    }
    for (offset, expected) in
        [(0, &[171u8, 171][..]), ((1 << 31) - 1, &[171, 9, 171]), (last - 1, &[171, 1, 2, 3])]
    {
        let mut back = vec![0; expected.len()];
        device.read(stream, to, offset, &mut back)?;
        ensure!(back == expected, "{back:?} at {offset} of {n} bytes, expected {expected:?}");
    }
    device.destroy_stream(stream);
    PASSED
}

fn command(
    device: &Device<'_>,
    stream: Handle,
    id: OpId,
    placed: &Placed,
    input: Option<Buffer>,
    output: Buffer,
    scalar: Option<[u64; 2]>,
) -> Result<bool> {
    let one = desc(DType::U8, 2, layout::CONTIGUOUS);
    let descs = vec![one; usize::from(input.is_some())];
    let Prepared::Plan(plan) = device.prepare(id, &none(), &descs, &[one])? else {
        return Ok(false);
    };
    let inputs: Vec<_> = input.iter().map(|b| tensor(device, placed, *b)).collect();
    let outputs = [tensor(device, placed, output)];
    let scalars: Vec<_> = scalar.into_iter().collect();
    let command = Command {
        inputs: inputs.as_ptr(),
        n_inputs: inputs.len() as u32,
        outputs: outputs.as_ptr(),
        n_outputs: 1,
        scalars: scalars.as_ptr(),
        n_scalars: scalars.len() as u32,
        ..empty_command(plan)
    };
    let submitted = device.submit(stream, &[command]);
    let finished = device.synchronize(stream);
    device.release(plan);
    submitted?;
    finished?;
    Ok(true)
}

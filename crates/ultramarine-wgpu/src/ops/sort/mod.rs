//! SORT and ARG_SORT, which partition too, and SEARCHSORTED.

mod search;

use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{AxisAttrs, op};

const SORT: &str = include_str!("../../../kernels/sort.wgsl");

/// `SMALL` of `sort.wgsl`.
const SMALL: u32 = 32;

struct Sort {
    blocks: Arc<Kernel>,
    merge: Arc<Kernel>,
    last: Arc<Kernel>,
    values: bool,
    axis: usize,
    /// Bytes of a key.
    key: u64,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let values = match request.op {
        op::SORT | op::PARTITION => true,
        op::ARG_SORT | op::ARG_PARTITION => false,
        op::SEARCHSORTED => return search::prepare(request),
        _ => return Err(request.unknown(None)),
    };
    request.elementwise(1)?;
    let axis = request.attributes::<AxisAttrs>()?.axis as usize;
    let (input, out) = (request.input(0)?, request.output(0)?);
    let expected = if values { input.dtype } else { Dtype::Uint32 };
    if axis >= input.ndim || out.dtype != expected {
        return Err(Failure::invalid(format!("axis {axis} or the output's dtype does not fit")));
    }
    let dtype = input.dtype;
    let (key, function) = key_of(dtype);
    let item = key_item(dtype, key, function);
    let a = Tensor { name: "a", dtype };
    let build = |program: Program<'_>, call: &str| {
        request.device.programs.get(program.library(SORT).body(call).build())
    };
    let sorting = |tensors: &[Tensor]| {
        let program = Program::new(tensors).item(&item);
        program.array("keys", key).array("indices", "u32")
    };
    // Values are only moved.
    let word = dtype.word();
    let last = match values {
        true => build(
            Program::new(&[Tensor { name: "a", dtype: word }, Tensor { name: "out", dtype: word }])
                .array("indices", "u32"),
            "sort_values(i);",
        ),
        false => build(
            Program::new(&[Tensor { name: "out", dtype: Dtype::Uint32 }]).array("indices", "u32"),
            "sort_indices(i);",
        ),
    };
    Ok(Box::new(Sort {
        blocks: build(sorting(&[a]), "sort_blocks(i);")?,
        merge: build(sorting(&[]), "sort_merge(i);")?,
        last: last?,
        values,
        axis,
        key: if key == "u64" { 8 } else { 4 },
    }))
}

/// The function that makes keys.
fn key_item(dtype: Dtype, key: &str, function: &str) -> String {
    format!("fn key_of(x: {}) -> {key} {{ return {function}; }}", dtype.register())
}

/// The type of a dtype's keys, and the key of a value `x`.
fn key_of(dtype: Dtype) -> (&'static str, &'static str) {
    match dtype {
        Dtype::Complex64 => ("u64", "key_of_c64(x)"),
        Dtype::Float64 => ("u64", "key_of_f64(x)"),
        Dtype::Uint64 => ("u64", "x"),
        Dtype::Int64 => ("u64", "bitcast<u64>(x) ^ 0x8000000000000000lu"),
        _ if dtype.is_real() => ("u32", "key_of_f32(x)"),
        _ if dtype.is_signed() => ("u32", "bitcast<u32>(x) ^ 0x80000000u"),
        _ => ("u32", "x"),
    }
}

impl Work for Sort {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(2 * (self.key + 4) * job.input(0)?.len())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, out, work) = (job.input(0)?, job.output(0)?, job.scratch()?);
        let axis = self.axis;
        let others = (0..input.shape.len()).filter(|d| *d != axis);
        let others = others.map(|d| (input.shape[d], [input.strides[d], out.strides[d]]));
        let lanes = Axes::join([input.offset, out.offset], others);
        let items = count(input.shape.iter().copied())?;
        let length = count([input.shape[axis]])?;
        // Two places for keys, behind them two for indices, whose elements have 4 bytes. All end within 32 bits, as
        // buffers do.
        let mut keys = [0, items];
        let first = (2 * self.key / 4 * u64::from(items)) as u32;
        let mut indices = [first, first.wrapping_add(items)];
        let words = |width: u32, keys: [u32; 2], indices: [u32; 2]| {
            let steps = [input.strides[axis] as u32, out.strides[axis] as u32];
            let mut words = vec![length, steps[0], steps[1], width];
            words.extend([keys[0], keys[1], indices[0], indices[1]]);
            lanes.words(&mut words);
            words
        };
        let given = words(0, keys, indices);
        job.launch(&self.blocks, &[&input.block, &work, &work], items, &given)?;
        (keys, indices) = ([keys[1], keys[0]], [indices[1], indices[0]]);
        let mut width = SMALL;
        while width < length {
            job.launch(&self.merge, &[&work, &work], items, &words(width, keys, indices))?;
            (keys, indices) = ([keys[1], keys[0]], [indices[1], indices[0]]);
            width = width.saturating_mul(2);
        }
        let given = words(0, keys, indices);
        match self.values {
            true => {
                let blocks = [&input.block, &out.block, &work];
                job.launch(&self.last, &blocks, items, &given)
            }
            false => job.launch(&self.last, &[&out.block, &work], items, &given),
        }
    }
}

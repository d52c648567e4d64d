//! SORT and ARG_SORT, which also implement partitions, and SEARCHSORTED.

mod passes;
mod radix;
mod search;

pub use passes::{Lanes, Passes};
use radix::{Payload, Radix};

use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{AxisAttrs, op};

const SORT: &str = include_str!("../../../kernels/sort.wgsl");

struct Sort {
    passes: Passes,
    last: Arc<Kernel>,
    /// For long lanes, sorts directly into the output.
    radix: Option<Radix>,
    values: bool,
    axis: usize,
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
    let build = |program: Program<'_>, call: &str| {
        request.device.programs.get(program.library(SORT).body(call).build())
    };
    // Values are moved unchanged.
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
    // True if the payload has the type of the output's elements: indices, or values of 4 bytes.
    let whole = key == "u32" && (!values || dtype.bytes() == 4);
    let payload = if values { Payload::Words } else { Payload::Indices };
    let gpu = request.device.context.properties.gpu_kernels;
    let radix = (whole && gpu).then(|| Radix::new(dtype, &item, payload, true));
    Ok(Box::new(Sort {
        radix,
        passes: Passes::new(request, dtype, key, &item)?,
        last: last?,
        values,
        axis,
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
        Ok(self.passes.workspace(job.input(0)?.len()))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, out, work) = (job.input(0)?, job.output(0)?, job.scratch()?);
        let axis = self.axis;
        let others = (0..input.shape.len()).filter(|d| *d != axis);
        let others = others.map(|d| (input.shape[d], [input.strides[d], out.strides[d]]));
        let lanes = Axes::join([input.offset, out.offset], others);
        let items = count(input.shape.iter().copied())?;
        let of = Lanes {
            input: &input.block,
            work: (&work, 0),
            length: count([input.shape[axis]])?,
            steps: [input.strides[axis] as u32, out.strides[axis] as u32],
            lanes: &lanes,
        };
        if let Some(radix) = self.radix.as_ref().filter(|_| Radix::pays(of.length)) {
            // Two buffers for keys, two for indices, and counts. All offsets fit in 32 bits,
            // because buffers do.
            let [keys, indices] = [[0, items], [2, 3].map(|n| items.wrapping_mul(n))];
            let counts = items.wrapping_mul(4);
            return radix.run(job, &of, (keys, indices, counts), Some(&out.block));
        }
        let (_, given) = self.passes.run(job, &of)?;
        match self.values {
            true => {
                let blocks = [&input.block, &out.block, &work];
                job.launch(&self.last, &blocks, items, &given)
            }
            false => job.launch(&self.last, &[&out.block, &work], items, &given),
        }
    }
}

//! FILL and ARANGE.

use super::copy::{LIBRARY, convert};
use crate::dtype::Dtype;
use crate::launch::{Axes, Job, OpRequest, Walk, Work};
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    if !request.inputs.is_empty() {
        return Err(Failure::invalid("fill and arange have no inputs"));
    }
    match request.op {
        op::FILL => fill(request),
        op::ARANGE => arange(request),
        _ => Err(request.unknown(None)),
    }
}

/// The low and high words of a value come before the layout.
struct Fill(Walk);

fn fill(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let dtype = request.output(0)?.dtype.word();
    let value = match dtype {
        Dtype::Uint64 => "(u64(word(2u)) << 32u) | u64(word(1u))",
        _ => "word(1u)",
    };
    let out = [Tensor { name: "out", dtype }];
    Ok(Box::new(Fill(Walk::new(request.device, Program::new(&[]), (&out, 2), value)?)))
}

impl Work for Fill {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (out, value) = (job.output(0)?, job.scalar(0)?);
        let axes = Axes::join([out.offset], out.axes().map(|(n, stride)| (n, [stride])));
        job.walk(&self.0, &[&out.block], &axes, &[value as u32, (value >> 32) as u32])
    }
}

/// Start and step come before the layout, with two words each.
struct Arange {
    walk: Walk,
    /// True if it computes in float32, because the device has no float64.
    single: bool,
}

fn arange(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let out = request.output(0)?;
    if out.ndim != 1 {
        return Err(Failure::invalid("arange makes one dimension"));
    }
    request.computes(&[out.dtype])?;
    let whole = out.dtype.is_integer() || out.dtype == Dtype::Bool;
    let single = !whole && !request.device.context.properties.float64;
    let of = |k: u32| format!("(u64(word({}u)) << 32u) | u64(word({k}u))", k + 1);
    let (start, step) = (of(1), of(3));
    let (counted, value) = match (whole, single) {
        (true, _) => (Dtype::Int64, format!("bitcast<i64>(({start}) + u64(i) * ({step}))")),
        (_, true) => {
            (Dtype::Float32, "bitcast<f32>(word(1u)) + f32(i) * bitcast<f32>(word(3u))".to_owned())
        }
        _ => (Dtype::Float64, format!("bitcast<f64>({start}) + f64(i) * bitcast<f64>({step})")),
    };
    let program = Program::new(&[]).library(LIBRARY);
    let value = convert(&format!("({value})"), counted, out.dtype);
    let out = [Tensor { name: "out", dtype: out.dtype }];
    Ok(Box::new(Arange { walk: Walk::new(request.device, program, (&out, 4), &value)?, single }))
}

impl Work for Arange {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (out, mut given) = (job.output(0)?, [job.scalar(0)?, job.scalar(1)?]);
        if self.single {
            given = given.map(|bits| u64::from((f64::from_bits(bits) as f32).to_bits()));
        }
        let [start, step] = given;
        let more = [start as u32, (start >> 32) as u32, step as u32, (step >> 32) as u32];
        let axes = Axes::join([out.offset], out.axes().map(|(n, stride)| (n, [stride])));
        job.walk(&self.walk, &[&out.block], &axes, &more)
    }
}

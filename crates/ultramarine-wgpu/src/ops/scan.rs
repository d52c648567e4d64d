//! SCAN.

use super::elementwise::with_functions;
use super::reduce::limits;
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Axes, Job, OpRequest, Work};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{self, ScanAttrs, reduce};

const SCAN: &str = include_str!("../../kernels/scan.wgsl");

/// Elements of a chunk at least.
const CHUNK: u64 = 1024;

struct Scan {
    totals: Arc<Kernel>,
    carry: Arc<Kernel>,
    lanes: Arc<Kernel>,
    axis: usize,
    reverse: bool,
    inclusive: bool,
    /// Bytes of a running value.
    running: u64,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ScanAttrs = request.attributes()?;
    let (input, out) = (request.input(0)?, request.output(0)?);
    let row = schema::find(request.op).and_then(|row| row.code(attributes.op));
    let fits = |row: &&schema::CodeSchema| row.dtypes & input.dtype.bit() != 0;
    let known = row.filter(fits).is_some() && input.dtype == out.dtype;
    if !known {
        return Err(request.unknown(Some(attributes.op)));
    }
    request.computes(&[input.dtype])?;
    let axis = attributes.axis as usize;
    if axis >= input.ndim {
        return Err(Failure::invalid(format!("axis {axis} of {}", input.ndim)));
    }
    let dtype = input.dtype;
    let items = items(attributes.op, dtype);
    let build = |tensors: &[Tensor], call: &str| {
        let program = Program::new(tensors).array("totals", dtype.register());
        let program = with_functions(program, dtype, request.device.context.properties.float64);
        request.device.programs.get(program.library(SCAN).item(&items).body(call).build())
    };
    let (a, out) = (Tensor { name: "a", dtype }, Tensor { name: "out", dtype });
    Ok(Box::new(Scan {
        totals: build(&[a], "scan_totals(i);")?,
        carry: build(&[], "scan_carry(i);")?,
        lanes: build(&[a, out], "scan_lanes(i);")?,
        axis,
        reverse: attributes.reverse != 0,
        inclusive: attributes.inclusive != 0,
        running: dtype.bytes().max(4),
    }))
}

/// The neutral value and the step of a code. Of extremes NaN stays, but for complex numbers; of equals the maximum is the
/// later one.
fn items(op: u32, dtype: Dtype) -> String {
    let register = dtype.register();
    let nan = |x: &str| match dtype {
        Dtype::Float64 => format!("isnan64({x}) || "),
        _ if dtype.is_real() => format!("isnan32({x}) || "),
        _ => String::new(),
    };
    let less = match dtype {
        Dtype::Complex64 => "less_complex(value, running)",
        _ => "value < running",
    };
    let (low, high) = match dtype {
        Dtype::Complex64 => {
            ("vec2<f32>(-inf32(), -inf32())".to_owned(), "vec2<f32>(inf32(), inf32())".to_owned())
        }
        _ => limits(dtype),
    };
    let one = match dtype {
        Dtype::Complex64 => "vec2<f32>(1.0, 0.0)".to_owned(),
        _ => format!("{register}(1)"),
    };
    let (start, next) = match op {
        // Sums and products of bool are those of numbers that become true again.
        reduce::SUM if dtype == Dtype::Bool => ("0u".to_owned(), "running | value".to_owned()),
        reduce::PROD if dtype == Dtype::Bool => ("1u".to_owned(), "running & value".to_owned()),
        reduce::SUM => (format!("{register}()"), "running + value".to_owned()),
        reduce::PROD if dtype == Dtype::Complex64 => (
            one,
            "vec2<f32>(running.x * value.x - running.y * value.y, running.x * value.y + running.y * value.x)"
                .to_owned(),
        ),
        reduce::PROD => (one, "running * value".to_owned()),
        reduce::LOGADDEXP => {
            let start = match dtype {
                Dtype::Complex64 => "vec2<f32>(-inf32(), 0.0)".to_owned(),
                _ => low,
            };
            (start, "binary_logaddexp(running, value)".to_owned())
        }
        reduce::MIN => (high, format!("select(running, value, {}{less})", nan("value"))),
        _ => (low, format!("select(value, running, {}{less})", nan("running"))),
    };
    format!(
        "fn start_of() -> {register} {{ return {start}; }}\n\
         fn next_of(running: {register}, value: {register}) -> {register} {{ return {next}; }}"
    )
}

/// How a command's lanes are cut.
struct Lanes {
    axes: Axes<2>,
    lanes: u32,
    length: u32,
    chunk: u32,
    chunks: u32,
    steps: [i64; 2],
}

impl Scan {
    fn cut(&self, job: &Job<'_>) -> Result<Lanes> {
        let (input, out) = (job.input(0)?, job.output(0)?);
        let (axis, n) = (self.axis, input.shape[self.axis]);
        let steps = [input.strides[axis], out.strides[axis]];
        let mut offsets = [input.offset, out.offset];
        if self.reverse {
            offsets = [0, 1].map(|k| offsets[k] + (n - 1) * steps[k]);
        }
        let others = (0..input.shape.len()).filter(|i| *i != axis);
        let others = others.map(|i| (input.shape[i], [input.strides[i], out.strides[i]]));
        let axes = Axes::join(offsets, others);
        let lanes = axes.elements()?;
        let length = crate::launch::count([n])?;
        let wanted = job.device.context.properties.parallelism().div_ceil(lanes.into());
        let most = u64::from(length).div_ceil(CHUNK);
        let iterations = job.device.context.properties.iterations;
        let chunk = u64::from(length).div_ceil(wanted.min(most).max(1)).min(iterations.into());
        let chunks = u64::from(length).div_ceil(chunk) as u32;
        let steps = if self.reverse { steps.map(|step| -step) } else { steps };
        Ok(Lanes { axes, lanes, length, chunk: chunk as u32, chunks, steps })
    }
}

impl Work for Scan {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let cut = self.cut(job)?;
        Ok(match cut.chunks {
            1 => 0,
            n => u64::from(n) * u64::from(cut.lanes) * self.running,
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let cut = self.cut(job)?;
        let (a, out) = (&job.input(0)?.block, &job.output(0)?.block);
        let steps = cut.steps.map(|step| step as u32);
        let inclusive = u32::from(self.inclusive);
        let mut words =
            vec![cut.lanes, cut.length, cut.chunk, cut.chunks, steps[0], steps[1], inclusive];
        cut.axes.words(&mut words);
        if cut.chunks == 1 {
            // The totals are not touched.
            return job.launch(&self.lanes, &[a, out, out], cut.lanes, &words);
        }
        let totals = job.scratch()?;
        let items = crate::launch::count([cut.lanes.into(), cut.chunks.into()])?;
        job.launch(&self.totals, &[a, &totals], items, &words)?;
        job.launch(&self.carry, &[&totals], cut.lanes, &words)?;
        job.launch(&self.lanes, &[a, out, &totals], items, &words)
    }
}

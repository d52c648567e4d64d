//! ARANGE and FILL.

use super::copy;
use super::elementwise::MOVES;
use crate::context::failure::cuda;
use crate::launch::{Ask, Axes, ByRoom, Dtype, Grid, Job, Work, launch};
use crate::program::{Lazy, Source, variants};
use ultramarine_abi::helper::{Failure, Result};

/// The kernel; indices are of 64 bits.
struct Arange(Lazy);

/// ARANGE: computed in float64 or int64, converted as COPY does.
pub fn prepare_arange(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    ask.elementwise(0)?;
    let output = ask.output(0)?;
    if output.ndim != 1 {
        return Err(Failure::invalid(format!("an arange of {} dimensions", output.ndim)));
    }
    let whole = output.dtype == Dtype::Bool || output.dtype.is_integer();
    let (to, from) = (output.dtype.tag(), if whole { "I64" } else { "F64" });
    let tail = format!(
        "extern \"C\" __global__ void kernel({to}::T *out, {from}::T start, {from}::T step, i64 n, i64 stride) {{\n  \
           count_up<{to}, {from}>(out, start, step, n, stride);\n}}\n"
    );
    Ok(Box::new(Arange(Lazy::new(Source::new(format!("arange {to}"), MOVES, tail)))))
}

impl Work for Arange {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let output = job.output(0)?;
        let (start, step) = (job.scalar(0)?, job.scalar(1)?);
        let (n, stride) = (output.len(), output.strides.first().copied().unwrap_or(1));
        let kernel = self.0.get(&job.device.programs)?;
        let grid = Grid::over(job.device, n, 4);
        launch!(job, &kernel, grid; output.address, start, step, n, stride)
    }
}

struct Fill {
    dtype: Dtype,
    kernels: ByRoom,
    pairs: Lazy,
}

/// FILL.
pub fn prepare_fill(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    ask.elementwise(0)?;
    let dtype = ask.output(0)?.dtype.word();
    let name = format!("fill {}", dtype.tag());
    let d = dtype.tag();
    let entry = |room: usize, index: &str| {
        (
            format!("{d}::T *out, u64 value, const Walk<1, {room}> w"),
            format!("fill_elements<{d}, {room}, {index}>(out, value, w);"),
        )
    };
    let pairs = variants::entry("u64 *out, u64 value, i64 n", "fill_pairs(out, value, n);");
    Ok(Box::new(Fill {
        dtype,
        kernels: ByRoom::new(&name, copy::TEXTS, entry),
        pairs: Lazy::new(Source::new("fill pairs", copy::TEXTS, pairs)),
    }))
}

impl Work for Fill {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let output = job.output(0)?;
        let value = job.scalar(0)?;
        let axes = Axes::of([output]);
        let count =
            usize::try_from(axes.len()).map_err(|_| Failure::invalid("too many elements"))?;
        let driver = job.device.driver;
        if axes.is_contiguous(0) && self.dtype.bytes() < 8 {
            // SAFETY: the tensor is of this device, and so long.
            return unsafe {
                match self.dtype.bytes() {
                    1 => cuda!(driver.set_8(output.address, value as u8, count, job.queue())),
                    2 => cuda!(driver.set_16(output.address, value as u16, count, job.queue())),
                    _ => cuda!(driver.set_32(output.address, value as u32, count, job.queue())),
                }
            };
        }
        if axes.is_contiguous(0) && output.is_aligned(16) {
            let kernel = self.pairs.get(&job.device.programs)?;
            let grid = Grid::over(job.device, axes.len(), 8);
            return launch!(job, &kernel, grid; output.address, value, count);
        }
        let (words, _) = axes.parameter();
        let kernel = self.kernels.get(&job.device.programs, &axes)?;
        let grid = Grid::over(job.device, axes.len(), 4);
        launch!(job, &kernel, grid; output.address, value, words[..])
    }
}

//! ARANGE.

use super::elementwise::MOVES;
use crate::dtype::Dtype;
use crate::job::Job;
use crate::launch::{Grid, launch};
use crate::plan::{Ask, Work};
use crate::program::{Lazy, Source};
use ultramarine_abi::helper::{Failure, Result};

/// The kernel; indices are of 64 bits.
struct Arange(Lazy);

/// ARANGE: computed in float64 or int64, converted as COPY does.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
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
        let kernel = self.0.get(job.device)?;
        let grid = Grid::over(job.device, n, 4);
        launch!(job, &kernel, grid; output.address, start, step, n, stride)
    }
}

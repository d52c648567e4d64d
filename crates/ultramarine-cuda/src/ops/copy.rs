//! COPY and FILL.

use super::map::{Map, in_order_of_output};
use super::rooms::ByRoom;
use super::turn::{self, Turned};
use super::{elementwise, variants};
use crate::dtype::Dtype;
use crate::failure::cuda;
use crate::job::Job;
use crate::launch::{Grid, launch};
use crate::plan::{Ask, Work};
use crate::program::{Lazy, Source};
use crate::walk::Axes;
use ultramarine_abi::helper::{Failure, Result};

/// What a copy does.
struct Copy {
    same: bool,
    map: Map<2>,
    turned: Turned,
}

struct Fill {
    dtype: Dtype,
    kernels: ByRoom,
    pairs: Lazy,
}

/// COPY: any strides, any dtypes.
pub fn prepare_copy(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    ask.elementwise(1)?;
    let (mut from, mut to) = (ask.input(0)?.dtype, ask.output(0)?.dtype);
    let same = from == to;
    if same {
        // Bits are moved as they are.
        (from, to) = (from.word(), to.word());
    }
    let map = elementwise::conversion(from, to);
    Ok(Box::new(Copy { same, map, turned: Turned::new(from, to) }))
}

impl Work for Copy {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, output) = (job.input(0)?, job.output(0)?);
        let axes = in_order_of_output(&[*input, *output]);
        if self.same && axes.is_contiguous(0) && axes.is_contiguous(1) {
            let driver = job.device.driver;
            let bytes =
                usize::try_from(input.bytes()).map_err(|_| Failure::invalid("too many bytes"))?;
            if input.address == output.address {
                return Ok(());
            }
            // SAFETY: both tensors are of this device, and so long.
            return unsafe {
                cuda!(driver.copy_within(output.address, input.address, bytes, job.queue()))
            };
        }
        match self.turned.run(job, &axes, input, output)? {
            true => Ok(()),
            false => self.map.run(job, [*input, *output]),
        }
    }
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
        kernels: ByRoom::new(&name, turn::TEXTS, entry),
        pairs: Lazy::new(Source::new("fill pairs", turn::TEXTS, pairs)),
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
            let kernel = self.pairs.get(job.device)?;
            let grid = Grid::over(job.device, axes.len(), 8);
            return launch!(job, &kernel, grid; output.address, value, count);
        }
        let (words, _) = axes.parameter();
        let kernel = self.kernels.get(job.device, &axes)?;
        let grid = Grid::over(job.device, axes.len(), 4);
        launch!(job, &kernel, grid; output.address, value, words[..])
    }
}

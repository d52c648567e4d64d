//! COPY and FILL.

use crate::ops::elementwise::{Map, in_order_of_output};
mod transpose;

use crate::launch::{Job, OpRequest, Work};
use crate::ops::elementwise;
use transpose::Transpose;
use ultramarine_abi::helper::{Failure, Result};

/// A copy by the driver, by tiles or by a map.
struct Copy {
    same: bool,
    map: Map<2>,
    transpose: Transpose,
}

/// COPY, with any strides and dtypes.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let (mut from, mut to) = (request.input(0)?.dtype, request.output(0)?.dtype);
    let same = from == to;
    if same {
        // Bits are moved unchanged.
        (from, to) = (from.word(), to.word());
    }
    let map = elementwise::conversion(from, to);
    Ok(Box::new(Copy { same, map, transpose: Transpose::new(from, to) }))
}

impl Work for Copy {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, output) = (job.input(0)?, job.output(0)?);
        let axes = in_order_of_output(&[*input, *output]);
        if self.same && axes.is_contiguous(0) && axes.is_contiguous(1) {
            let bytes =
                usize::try_from(input.bytes()).map_err(|_| Failure::invalid("too many bytes"))?;
            if input.address == output.address {
                return Ok(());
            }
            // SAFETY: both tensors are of this device, and long enough.
            return unsafe { job.copy(output.address, input.address, bytes) };
        }
        match self.transpose.run(job, &axes, input, output)? {
            true => Ok(()),
            false => self.map.run(job, [*input, *output]),
        }
    }
}

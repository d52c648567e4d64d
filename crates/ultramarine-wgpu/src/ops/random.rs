//! RANDOM_BITS: Threefry-2x32 (Salmon et al., 2011), with the same bits as every other backend.

use crate::dtype::Dtype;
use crate::launch::{Axes, Job, OpRequest, Work, count};
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

const RANDOM: &str = include_str!("../../kernels/random.wgsl");

struct Random(Arc<Kernel>);

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let (keys, out) = (request.input(0)?, request.output(0)?);
    if keys.dtype != Dtype::Uint32 || keys.ndim == 0 {
        return Err(Failure::invalid("keys are uint32, of one dimension at least"));
    }
    if !matches!(out.dtype, Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32) {
        return Err(Failure::unsupported("bits are uint8, uint16 or uint32"));
    }
    let tensors =
        [Tensor { name: "keys", dtype: keys.dtype }, Tensor { name: "out", dtype: out.dtype }];
    let program = Program::new(&tensors)
        .library(RANDOM)
        .item(&format!("const WIDTH: u32 = {}u;", out.dtype.bytes()))
        .body("random_bits(i);");
    Ok(Box::new(Random(request.device.programs.get(program.build())?)))
}

impl Work for Random {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (keys, out) = (job.input(0)?, job.output(0)?);
        let last = out.shape.len() - 1;
        let outer = (0..last).map(|d| (out.shape[d], [keys.strides[d], out.strides[d]]));
        let axes = Axes::join([keys.offset, out.offset], outer);
        let items = count(out.shape.iter().copied())?;
        let steps = [keys.strides[last] as u32, out.strides[last] as u32];
        let mut words = vec![out.shape[last] as u32, steps[0], steps[1]];
        axes.words(&mut words);
        job.launch(&self.0, &[&keys.block, &out.block], items, &words)
    }
}
